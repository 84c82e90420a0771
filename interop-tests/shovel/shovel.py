"""RabbitMQ's shovels between a queue of RabbitMQ and one of Jitney, each way over a kill (README.md).

    shovel.py [MESSAGES]

A shovel is at-least-once: none may be lost, and what was on its way when the broker was killed may come twice.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pika import BasicProperties, BlockingConnection, URLParameters
from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from broker import Broker, free_ports  # noqa: E402
from outcomes import Outcomes  # noqa: E402

# Seconds for a server to start, for the next message, and for all of them.
START_DEADLINE = 60.0
QUIET_DEADLINE = 30.0
DEADLINE = 200.0
# The parts of all messages that have come across when the broker is killed.
KILLED_AT = 0.25
BODY_BYTES = 500
CONTENT_TYPE = "text/plain"

QUEUE_XML = (
    '<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><QueueDescription '
    'xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/></content></entry>'
)


class ShovelError(Exception):
    """Something did not happen in time, or happened otherwise."""


def wait(condition: Callable[[], bool], seconds: float, complaint: str, pause: float = 0.05) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if deadline < time.monotonic():
            raise ShovelError(f"{complaint} within {seconds:.0f} s")
        time.sleep(pause)


def name(number: int) -> str:
    return f"m{number}"


def body(number: int) -> bytes:
    return f"{number:08}".encode().ljust(BODY_BYTES, b".")


@dataclass
class Arrivals:
    """What has arrived of numbered messages: `expected` of them, among which some may be twice."""

    expected: int
    seen: Counter = field(default_factory=Counter)
    changed: list[str] = field(default_factory=list)

    def add(self, content: bytes, carried: tuple | None) -> None:
        """Notes a message, and what it carries beside its body: identifier, type and number."""
        number = int(bytes(content[:8]))
        if bytes(content) != body(number) or carried not in (None, (name(number), CONTENT_TYPE, number)):
            self.changed.append(f"{number} with {carried}: {bytes(content)!r}")
        self.seen[number] += 1

    @property
    def are_all(self) -> bool:
        return self.seen.total() == self.expected

    def audit(self, count: int) -> str:
        """Says how many came twice; raises ShovelError if one of `count` is lost, or changed on its way."""
        lost = sorted(set(range(count)) - set(self.seen))
        if lost:
            raise ShovelError(f"{len(lost)} messages are lost, the first ones {lost[:5]}; {self.seen.total()} came")
        if not self.are_all:
            raise ShovelError(f"{self.seen.total()} messages were received of {self.expected}")
        if self.changed:
            raise ShovelError(f"{len(self.changed)} messages were changed, the first one {self.changed[0]}")
        return f"{self.expected - count} came twice"


class RabbitMQ:
    """A node of its own, with its data below a directory."""

    QUEUES = ("out", "back")

    def __init__(self, directory: Path):
        directory.mkdir()
        self.directory, self.home = directory, Path(os.environ["RABBITMQ_HOME"])
        port, distribution, names = free_ports(3)
        self.url = f"amqp://shovel:shovel@127.0.0.1:{port}"
        erlang = os.environ["ERL_ROOTDIR"]
        self.environment = {
            "PATH": f"{erlang}/bin:{os.environ['PATH']}", "ERL_ROOTDIR": erlang,
            "HOME": str(directory), "LANG": "C.UTF-8",
            # Otherwise it would read the system's /etc/rabbitmq, too.
            "RABBITMQ_CONF_ENV_FILE": str(directory / "rabbitmq-env.conf"),
            "RABBITMQ_NODENAME": "shovel@localhost", "RABBITMQ_DIST_PORT": str(distribution),
            "ERL_EPMD_PORT": str(names), "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": str(directory / "data"), "RABBITMQ_LOG_BASE": str(directory),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"), "RABBITMQ_LOGS": str(directory / "rabbitmq.log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
        }
        queue = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
        definitions = {
            "vhosts": [{"name": "/"}], "users": [{"name": "shovel", "password": "shovel", "tags": ["administrator"]}],
            "permissions": [{"user": "shovel", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
            "queues": [{"name": name, **queue} for name in self.QUEUES],
        }
        (directory / "definitions.json").write_text(json.dumps(definitions))
        (directory / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{port}\nload_definitions = {directory}/definitions.json\n"
            "disk_free_limit.absolute = 100MB\n")
        (directory / "enabled_plugins").write_text("[rabbitmq_shovel].\n")
        self.started = [self.run([f"{erlang}/bin/epmd", "-port", str(names), "-address", "127.0.0.1"])]
        self.started.append(self.run([str(self.home / "sbin/rabbitmq-server")]))
        wait(self.is_up, START_DEADLINE, f"RabbitMQ ({directory}/rabbitmq.log) did not start", 0.5)

    def run(self, command: list[str]) -> subprocess.Popen:
        """Starts a process that ends with this one, however that ends."""
        with (self.directory / "output.log").open("ab") as log:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command], env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def is_up(self) -> bool:
        if self.started[-1].poll() is not None:
            raise ShovelError(f"RabbitMQ ended with {self.started[-1].returncode}: {self.directory}/output.log")
        return self.asked("await_startup", "--timeout", "20").returncode == 0

    def asked(self, *words: str) -> subprocess.CompletedProcess:
        command = [str(self.home / "sbin/rabbitmqctl"), "--quiet", *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)

    def told(self, *words: str) -> str:
        done = self.asked(*words)
        if done.returncode:
            raise ShovelError(f"rabbitmqctl {words[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def count(self, queue: str) -> int:
        """Its messages, with those that were given out and are not settled."""
        found = json.loads(self.told("list_queues", "--formatter", "json", "name", "messages"))
        return next(each["messages"] for each in found if each["name"] == queue)

    def send(self, queue: str, count: int) -> None:
        """Sends numbered messages, and returns when the queue has them."""
        with BlockingConnection(URLParameters(self.url)) as connection:
            channel = connection.channel()
            for number in range(count):
                channel.basic_publish("", queue, body(number), BasicProperties(
                    message_id=name(number), content_type=CONTENT_TYPE, headers={"number": number}, delivery_mode=2))
        wait(lambda: self.count(queue) == count, DEADLINE, f"RabbitMQ did not have {count} messages", 1)

    def receive(self, queue: str) -> Arrivals:
        """Takes all messages."""
        arrivals = Arrivals(self.count(queue))
        with BlockingConnection(URLParameters(self.url)) as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=500)
            for method, _, content in channel.consume(queue, inactivity_timeout=QUIET_DEADLINE):
                if method is None:
                    break
                # Its shovel from AMQP 1.0 forwards the body alone.
                arrivals.add(content, None)
                channel.basic_ack(method.delivery_tag)
                if arrivals.are_all:
                    break
        return arrivals

    def shovel(self, name: str, settings: dict) -> None:
        settings = {"ack-mode": "on-confirm", "reconnect-delay": 1, **settings}
        self.told("set_parameter", "shovel", name, json.dumps(settings))

    def end(self) -> None:
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


class Sending(MessagingHandler):
    """Sends numbered messages to Jitney, as many at once as there is credit for, until all are accepted."""

    def __init__(self, url: str, address: str, count: int):
        super().__init__()
        self.url, self.address, self.count = url, address, count
        self.sent = self.accepted = 0
        self.failure: str | None = None

    def on_start(self, event) -> None:
        connection = event.container.connect(self.url, reconnect=False)
        event.container.create_sender(connection, self.address)

    def on_sendable(self, event) -> None:
        while event.sender.credit and self.sent < self.count:
            number = self.sent
            message = Message(id=name(number), content_type=CONTENT_TYPE, properties={"number": number}, durable=True)
            message.body, message.inferred = body(number), True
            event.sender.send(message)
            self.sent += 1

    def on_accepted(self, event) -> None:
        self.accepted += 1
        if self.accepted == self.count:
            event.connection.close()

    def on_rejected(self, event) -> None:
        self.fail(event, "a message was rejected")

    def on_released(self, event) -> None:
        self.fail(event, "a message was released")

    def on_link_error(self, event) -> None:
        self.fail(event, str(event.link.remote_condition))

    def on_transport_error(self, event) -> None:
        self.fail(event, str(event.transport.condition))

    def fail(self, event, what: str) -> None:
        self.failure = what
        event.container.stop()


class Receiving(MessagingHandler):
    """Receives and completes so many messages of Jitney, or ends when none has come for a while."""

    def __init__(self, url: str, address: str, arrivals: Arrivals):
        super().__init__(prefetch=500)
        self.url, self.address, self.arrivals = url, address, arrivals
        self.failure: str | None = None

    def on_start(self, event) -> None:
        connection = event.container.connect(self.url, reconnect=False)
        event.container.create_receiver(connection, self.address)
        self.at = time.monotonic()
        event.container.schedule(1, self)

    def on_message(self, event) -> None:
        message = event.message
        self.arrivals.add(message.body, (message.id, message.content_type, message.properties["number"]))
        self.at = time.monotonic()
        if self.arrivals.are_all:
            event.connection.close()

    def on_timer_task(self, event) -> None:
        if QUIET_DEADLINE < time.monotonic() - self.at:
            event.container.stop()
        elif not self.arrivals.are_all:
            event.container.schedule(1, self)

    def on_link_error(self, event) -> None:
        self.fail(event, str(event.link.remote_condition))

    def on_transport_error(self, event) -> None:
        self.fail(event, str(event.transport.condition))

    def fail(self, event, what: str) -> None:
        self.failure = what
        event.container.stop()


class Jitney:
    """The suite's broker."""

    def __init__(self) -> None:
        self.broker = Broker(Path(os.environ["JITNEY_BROKER_STATE"]))
        self.url = f"amqp://RootManageSharedAccessKey:SAS_KEY_VALUE@127.0.0.1:{self.broker.amqp_port}"

    def ask(self, method: str, queue: str, body: str | None = None) -> str:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.broker.http_port}/{queue}?api-version=2021-05",
            method=method, data=body and body.encode(),
            # The development profile takes any.
            headers={"Authorization": "SharedAccessSignature sr=a&sig=b&se=9999999999&skn=c"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    def make(self, queue: str) -> None:
        self.ask("PUT", queue, QUEUE_XML)

    def count(self, queue: str) -> int:
        found = re.search(r"<MessageCount[^>]*>(\d+)<", self.ask("GET", queue))
        return int(found[1])

    def send(self, queue: str, count: int) -> None:
        """Sends numbered messages, all of which are accepted."""
        sending = Sending(self.url, queue, count)
        Container(sending).run()
        if sending.failure or sending.accepted != count:
            raise ShovelError(f"Jitney accepted {sending.accepted} messages of {count}: {sending.failure}")

    def receive(self, queue: str) -> Arrivals:
        """Takes all messages."""
        receiving = Receiving(self.url, queue, Arrivals(self.count(queue)))
        Container(receiving).run()
        if receiving.failure:
            raise ShovelError(f"Jitney gave {receiving.arrivals.seen.total()} messages: {receiving.failure}")
        return receiving.arrivals

    def kill(self) -> None:
        """Kills it, and starts it again on its data."""
        self.broker.kill()
        self.broker.start()


def to_jitney(rabbit: RabbitMQ, jitney: Jitney, count: int) -> str:
    jitney.make("from-rabbitmq")
    rabbit.send("out", count)
    rabbit.shovel("out", {
        "src-protocol": "amqp091", "src-uri": rabbit.url, "src-queue": "out",
        "dest-protocol": "amqp10", "dest-uri": jitney.url, "dest-address": "from-rabbitmq",
    })
    wait(lambda: KILLED_AT * count <= jitney.count("from-rabbitmq"), DEADLINE, "a quarter did not arrive")
    jitney.kill()
    at = jitney.count("from-rabbitmq")
    if count <= at:
        raise ShovelError("the broker was killed when all had arrived")
    wait(lambda: rabbit.count("out") == 0, DEADLINE, "RabbitMQ still had messages, and they did not leave", 1)
    return f"killed after {at}, {jitney.receive('from-rabbitmq').audit(count)}"


def to_rabbitmq(rabbit: RabbitMQ, jitney: Jitney, count: int) -> str:
    jitney.make("to-rabbitmq")
    jitney.send("to-rabbitmq", count)
    rabbit.shovel("back", {
        "src-protocol": "amqp10", "src-uri": jitney.url, "src-address": "to-rabbitmq", "src-prefetch-count": 500,
        "dest-protocol": "amqp091", "dest-uri": rabbit.url, "dest-queue": "back",
    })
    wait(lambda: jitney.count("to-rabbitmq") <= (1 - KILLED_AT) * count, DEADLINE, "a quarter did not leave")
    jitney.kill()
    left = jitney.count("to-rabbitmq")
    if not left:
        raise ShovelError("the broker was killed when all had left")
    wait(lambda: jitney.count("to-rabbitmq") == 0, DEADLINE, "Jitney still had messages, and they did not leave")
    return f"killed after {count - left}, {rabbit.receive('back').audit(count)}"


def main() -> int:
    count = int(sys.argv[1]) if sys.argv[1:] else 40_000
    outcomes, jitney = Outcomes(), Jitney()
    rabbit = RabbitMQ(Path(os.environ["JITNEY_WORK"]) / "rabbitmq")
    try:
        for test in (to_jitney, to_rabbitmq):
            began = time.monotonic()
            try:
                said, has_passed = test(rabbit, jitney, count), True
            except ShovelError as error:
                said, has_passed = str(error), False
            seconds, sign = time.monotonic() - began, "ok   " if has_passed else "FAIL "
            print(f"{sign} {test.__name__}: {count} messages, {said} ({seconds:.1f} s)", flush=True)
            outcomes.program(test.__name__, "pass" if has_passed else "fail")
    finally:
        rabbit.end()
    return outcomes.finish()


if __name__ == "__main__":
    sys.exit(main())
