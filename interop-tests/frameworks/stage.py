"""What the suites of this directory share: a broker that looks like the service, programs that run beside it, and what they note down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parent / "samples")]
import secured  # noqa: E402
from issuer import Issuer  # noqa: E402

# The namespace, as the service would call it: site/sitecustomize.py knows where it is.
NAMESPACE = "jitney"
HOST = f"{NAMESPACE}.servicebus.windows.net"
# An address of each suite's own, so that two can run at once.
ADDRESSES = {name: f"127.0.0.{number}" for number, name in enumerate(
    ["kombu", "celery", "taskiq", "faststream", "boilermaker", "airflow"], 61)}
KEY_NAME, KEY = secured.ROOT, secured.ROOT_KEY

# For anything that should happen soon. A busy machine takes seconds to start an interpreter.
SOON = 60.0


class Failure(Exception):
    """The broker, or what stands on it, did not do what a scenario says."""


def check(condition: object, text: str) -> None:
    if not condition:
        raise Failure(text)


def wait(condition: Callable[[], object], text: str, seconds: float = SOON):
    """Waits until the condition holds, and returns what it is."""
    deadline = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        if time.monotonic() > deadline:
            raise Failure(f"{text}: not within {seconds:.0f} s")
        time.sleep(0.05)


class House:
    """The broker, which verifies keys and tokens, and the identity provider that it believes."""

    def __init__(self, suite: str, directory: Path, entities: dict, plain: bool):
        self.plain = plain
        self.directory = directory
        self.address = ADDRESSES[suite]
        self.secured = secured.described(directory, self.address, {"Name": NAMESPACE, **entities}, (HOST,))
        self.authority = self.secured.authority
        certs = directory / "certs"
        self.issuer = Issuer(self.address, str(certs / "server.pem"), str(certs / "server.key"))
        self.secured.add("--oidc-issuer", self.issuer.name, "--oidc-ca", self.authority)
        self.broker = self.secured.broker
        # For this process, and for the programs that it starts.
        os.environ.update(
            SUITE_HOST=HOST, SUITE_ADDRESS=self.address, SSL_CERT_FILE=self.authority, REQUESTS_CA_BUNDLE=self.authority,
            **self.issuer.environment(),
        )

    @property
    def connection_string(self) -> str:
        """As the service's portal tells it; or as its emulator does, for TCP without TLS."""
        key = f"SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY}"
        if self.plain:
            return f"Endpoint=sb://localhost:{self.broker.amqp_port};{key};UseDevelopmentEmulator=true;"
        return f"Endpoint=sb://{HOST}/;{key}"

    def finish(self) -> str | None:
        """Stops the broker; tells what is wrong with how it ended."""
        return secured.finish(self.secured)


@dataclass
class Program:
    """A process of a scenario's own, with all that it starts."""

    process: subprocess.Popen
    log: Path
    meant: bool = False

    def failed(self) -> bool:
        """It has ended, and nobody had told it to."""
        return not self.meant and self.process.poll() is not None

    def end(self, number: int, seconds: float = SOON) -> int:
        """Sends a signal to the program itself, and returns its exit code."""
        self.meant = True
        self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.log.name}: not ended {seconds:.0f} s after {signal.Signals(number).name}") from None

    def kill(self) -> None:
        """As if the machine that it runs on had lost its power."""
        self.meant = True
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def tail(self) -> str:
        return "\n".join(f"    {line}" for line in self.log.read_text(errors="replace").splitlines()[-25:])


@dataclass
class Scene:
    """One scenario: its queue, its programs, its notes."""

    house: House
    number: str
    directory: Path
    programs: list[Program] = field(default_factory=list)

    @property
    def queue(self) -> str:
        return self.number.lower()

    @property
    def notebook(self) -> Path:
        return self.directory / "notes"

    def start(self, *command: str, **environment: str) -> Program:
        """Starts a program; it finds the scenario's queue and notebook in its environment."""
        log = self.directory / f"{len(self.programs)}-{Path(command[0]).name}.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True,
                cwd=self.directory, env={**os.environ, **self.environment(), **environment},
            )
        self.programs.append(Program(process, log))
        return self.programs[-1]

    def environment(self) -> dict[str, str]:
        return {
            "QUEUE": self.queue, "NOTEBOOK": str(self.notebook), "CONNECTION_STRING": self.house.connection_string,
            "PYTHONPATH": os.pathsep.join([str(HERE / "site"), str(HERE / "programs")]), "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def notes(self, what: str | None = None, **values) -> list[dict]:
        """What the programs have written down of this kind, in order."""
        try:
            text = self.notebook.read_text()
        except FileNotFoundError:
            return []
        notes = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [
            each for each in notes
            if what in (None, each["what"]) and all(each.get(name) == value for name, value in values.items())
        ]

    def wait_for(self, what: str, count: int = 1, seconds: float = SOON, **values) -> list[dict]:
        named = " ".join([what, *(f"{name}={value}" for name, value in values.items())])

        def noted() -> list[dict] | None:
            found = self.notes(what, **values)
            for each in self.programs:
                check(len(found) >= count or not each.failed(), f"{each.log.name} has ended, without {count} notes of {named}")
            return found if len(found) >= count else None

        return wait(noted, f"{count} notes of {named}", seconds)

    def share(self, send: Callable[[range], object], count: int) -> None:
        """Sends numbers until two workers have handled some: one that is busy yet may get none of the first ones."""
        sent = 0
        while True:
            send(range(sent, sent + count))
            sent += count
            handled = self.wait_for("handled", sent, 90)
            check(sorted(note["number"] for note in handled) == list(range(sent)), "not every message was handled once")
            if len({note["pid"] for note in handled}) == 2:
                return
            check(sent < 10 * count, "one worker got nothing")

    def client(self) -> ServiceBusClient:
        return ServiceBusClient.from_connection_string(self.house.connection_string)

    def send(self, *bodies: str, queue: str | None = None) -> None:
        with self.client() as client, client.get_queue_sender(queue or self.queue) as sender:
            sender.send_messages([ServiceBusMessage(body) for body in bodies])

    def left(self, queue: str | None = None) -> list:
        """What is still in the queue, locked or not."""
        with self.client() as client, client.get_queue_receiver(queue or self.queue) as receiver:
            return receiver.peek_messages(max_message_count=100)

    def wait_until_empty(self, queue: str | None = None, seconds: float = SOON) -> None:
        wait(lambda: not self.left(queue), f"{queue or self.queue} is empty", seconds)

    def dead_letters(self, count: int, queue: str | None = None) -> list:
        """Takes the dead letters, once there are so many."""
        found: list = []
        mode = {"receive_mode": ServiceBusReceiveMode.RECEIVE_AND_DELETE, "sub_queue": ServiceBusSubQueue.DEAD_LETTER}
        with self.client() as client, client.get_queue_receiver(queue or self.queue, **mode) as receiver:
            wait(lambda: found.extend(receiver.receive_messages(count, max_wait_time=2)) or len(found) >= count,
                 f"{count} dead letters in {queue or self.queue}")
        return found

    def close(self) -> None:
        for program in self.programs:
            program.kill()


@dataclass
class Play:
    """The scenarios of one framework."""

    name: str
    entities: dict = field(default_factory=dict)
    # Its connection string is the emulator's.
    plain: bool = False
    # Of those that its column of the matrix has: what the framework has no such thing for, and why.
    absent: dict[str, str] = field(default_factory=dict)
    scenarios: dict[str, Callable[[Scene], None]] = field(default_factory=dict)
    # They come last and by themselves: the broker is killed in the middle.
    alone: set[str] = field(default_factory=set)

    def scenario(self, number: str, alone: bool = False):
        def add(function: Callable[[Scene], None]) -> Callable[[Scene], None]:
            self.scenarios[number] = function
            if alone:
                self.alone.add(number)
            return function

        return add


def queue(name: str, **properties) -> dict:
    return {"Name": name, "Properties": {"LockDuration": "PT1M", "MaxDeliveryCount": 10, **properties}}


@contextmanager
def in_thread(target: Callable[[], None]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    yield thread
    thread.join(SOON)
    check(not thread.is_alive(), "a thread of the scenario has not ended")
