"""A broker with a limit of memory, and more messages than its indexes have room for.

Each check starts brokers of its own on fresh data and looks at the most that each ever had in RAM, as the system counts it (VmHWM).
The first argument is how many messages wait: two million, or ten for the figure in docs/memory.md; further ones are words in the names of
the checks to be made.
"""

from __future__ import annotations

import base64
import hmac
import re
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proton import Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
from measure import Jitney, MeasureError, Scratch, load, queues  # noqa: E402

MIB = 1 << 20
LIMIT = 128 * MIB
# A limit with so little beside the shares of what is bounded that schedules fill it soon.
LITTLE = 64 * MIB
BODY = 100
# The link credit of the load generator's receivers.
CREDIT = 1_000


class Wrong(Exception):
    """The broker did not do what it should."""


def expect(holds: bool, text: str) -> None:
    if not holds:
        raise Wrong(text)


def within(broker: Jitney, limit: int, when: str) -> None:
    peak = broker.peak_bytes()
    print(f"  {when}: {peak / MIB:.0f} MiB at most, {broker.resident_bytes() / MIB:.0f} MiB now", flush=True)
    expect(peak <= limit, f"{when}: {peak / MIB:.0f} MiB, and {limit / MIB:.0f} MiB are the limit")


def start(directory: Path, limit: int, *names: str) -> Jitney:
    return Jitney.start(directory, queues(*names), ["--memory-limit", f"{limit // MIB}MiB"])


def log(broker: Jitney) -> str:
    path = broker.directory / "broker.log"
    return path.read_text() if path.exists() else ""


def wait_for(what: str, found: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        expect(time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}")
        time.sleep(0.05)


def recovered(broker: Jitney, start: int) -> int:
    """How many messages the broker found at a start on its data, the first of which is 1."""
    def found() -> list[str]:
        return re.findall(r"recovered.*messages=(\d+)", log(broker))

    # The log is copied while the broker goes on.
    wait_for("what was recovered", lambda: len(found()) == start)
    return int(found()[-1])


def a_backlog_comes_goes_and_survives(count: int) -> None:
    """Messages wait, are received, wait again; the broker is killed, finds all of them, and gives them out."""
    with Scratch() as directory:
        with start(directory, LIMIT, "long") as broker:
            load(broker.address, node="long", messages=count, size=BODY, send_only=True)
            within(broker, LIMIT, f"{count:,} messages wait")
            load(broker.address, node="long", messages=count, size=BODY, receive_only=True)
            within(broker, LIMIT, "all were received")
            load(broker.address, node="long", messages=count, size=BODY, send_only=True)
            within(broker, LIMIT, "as many wait again")
            expect("memory is full" not in log(broker), "memory was full")
            broker.kill()
        with start(directory, LIMIT, "long") as broker:
            print(f"  up after {broker.start_seconds:.2f} s", flush=True)
            within(broker, LIMIT, "killed and recovered")
            expect(recovered(broker, 2) == count, f"{recovered(broker, 2):,} were recovered, of {count:,}")
            load(broker.address, node="long", messages=count, size=BODY, receive_only=True)
            within(broker, LIMIT, "all were received")
            broker.stop()
        with start(directory, LIMIT, "long") as broker:
            expect(recovered(broker, 3) == 0, f"{recovered(broker, 3):,} were left")


def messages_come_and_go_beside_a_backlog(count: int) -> None:
    """A pair of a sender and a receiver behind a backlog: what comes is paged, what goes is read back."""
    with Scratch() as directory:
        with start(directory, LIMIT, "long") as broker:
            load(broker.address, node="long", messages=count // 2, size=BODY, send_only=True)
            through = load(broker.address, node="long", messages=count, size=BODY)
            within(broker, LIMIT, f"{count:,} messages went through a backlog")
            broker.kill()
        # What the pair had locked beyond its last message is free again, and what it settled last may not have arrived. The receiver has
        # settled some after the end of what counts.
        left = count // 2 + through["accepted"] - through["received_total"]
        with start(directory, LIMIT, "long") as broker:
            found = recovered(broker, 2)
            expect(left <= found <= left + CREDIT, f"{found:,} were recovered, of {left:,}")
            load(broker.address, node="long", messages=found, size=BODY, receive_only=True)
            within(broker, LIMIT, "all were received")


def what_cannot_be_paged_holds_senders_back(_: int) -> None:
    """Schedules fill the memory: sends are refused, receivers go on, and when it is over sends are taken again."""
    count, due_in = 400_000, 20.0
    with Scratch() as directory, start(directory, LITTLE, "later", "now") as broker:
        load(broker.address, node="now", messages=1_000, size=BODY, send_only=True)
        try:
            load(broker.address, node="later", messages=count, size=BODY, due_in=due_in, send_only=True)
            raise Wrong(f"{count:,} scheduled messages were taken")
        except MeasureError as error:
            expect("full" in str(error) or "resource-limit" in str(error), str(error))
        wait_for("a line in the log", lambda: "memory is full" in log(broker))
        load(broker.address, node="now", messages=1_000, size=BODY, receive_only=True)
        within(broker, LITTLE, "schedules filled it")

        def drain() -> None:
            try:
                load(broker.address, node="later", messages=count, size=BODY, receive_only=True)
            except MeasureError:
                pass  # Fewer are there, and nobody counts them: it ends with the broker.

        threading.Thread(target=drain, daemon=True).start()
        wait_for("room", lambda: "there is room again" in log(broker), due_in + 60)
        load(broker.address, node="now", messages=1_000, size=BODY)
        within(broker, LITTLE, "there is room again")
        told = log(broker).count("memory is full")
        expect(told <= 3, f"the log says {told} times that memory is full")


def a_full_memory_leaves_each_connection_few_tokens(_: int) -> None:
    """Schedules fill the memory. A client puts tokens on one connection until one is refused, which says why; it goes on with those that it
    has."""
    name, key = "root", "key-of-root"
    others = [f"{number}-{'x' * 200}" for number in range(200)]
    config = queues("later", "now", *others)
    [namespace] = config["UserConfig"]["Namespaces"]
    namespace["AuthorizationRules"] = [{"Name": name, "Rights": ["Manage", "Send", "Listen"], "PrimaryKey": key}]
    with Scratch() as directory, Jitney.start(directory, config, ["--memory-limit", f"{LITTLE // MIB}MiB", "--auth", "sas"]) as broker:
        mine = {"user": name, "password": key}
        load(broker.address, node="now", messages=1, size=BODY, send_only=True, **mine)
        try:
            load(broker.address, node="later", messages=400_000, size=BODY, due_in=600.0, send_only=True, **mine)
            raise Wrong("400,000 scheduled messages were taken")
        except MeasureError as error:
            expect("resource-limit" in str(error) or "full" in str(error), str(error))
        connection = BlockingConnection(f"amqp://{broker.address}", timeout=20, allowed_mechs="ANONYMOUS")
        requests = connection.create_sender("$cbs")
        answers = connection.create_receiver("$cbs", options=AtMostOnce())

        def put(path: str) -> dict[str, Any]:
            audience = f"sb://localhost/{path}"
            properties = {"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": audience}
            requests.send(Message(reply_to=answers.link.name, properties=properties, body=signed(audience, name, key)))
            return answers.receive(20).properties

        expect(put("now")["status-code"] == 202, "the first token is refused")
        receiver = connection.create_receiver("now")
        told = [put(path) for path in others]
        taken = [each["status-code"] for each in told].count(202)
        expect(20 <= taken < len(told), f"{taken} of {len(told)} tokens were taken")
        print(f"  {taken} tokens of {len(told)} were taken, then: {told[taken]['status-description']}", flush=True)
        expect("while the broker's memory is full" in told[taken]["status-description"], "the reason is missing")
        receiver.receive(20)
        receiver.accept()
        connection.close()
        within(broker, LITTLE, "schedules filled it")


def signed(resource: str, name: str, key: str) -> str:
    """A shared access signature for ten minutes."""
    quoted, ends = urllib.parse.quote(resource, safe=""), int(time.time()) + 600
    signature = base64.b64encode(hmac.digest(key.encode(), f"{quoted}\n{ends}".encode(), "sha256")).decode()
    return f"SharedAccessSignature sr={quoted}&sig={urllib.parse.quote(signature, safe='')}&se={ends}&skn={name}"


CHECKS = [
    a_backlog_comes_goes_and_survives, messages_come_and_go_beside_a_backlog, what_cannot_be_paged_holds_senders_back,
    a_full_memory_leaves_each_connection_few_tokens,
]


def main(words: list[str]) -> int:
    count = int(words[0]) if words else 2_000_000
    chosen = [check for check in CHECKS if not words[1:] or any(word in check.__name__ for word in words[1:])]
    failed = 0
    for check in chosen:
        print(check.__name__.replace("_", " "), flush=True)
        try:
            check(count)
        except (Wrong, MeasureError) as error:
            failed += 1
            print(f"  FAILED: {error}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
