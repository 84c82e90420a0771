#!/usr/bin/env python3
"""Writes a data directory with a release, for the test that later ones open it.

    make.py BINARY FILE [--shards N]

BINARY serves the Config.json beside this file; the Python SDK sends and settles, and the process is killed at the end. The log of
the first namespace has two segments and a checkpoint. FILE gets all logs, and the record of the shards if there is one, without their
zeros, which most of their bytes are: for each file the length of its name (a byte), the name, its length (eight bytes,
little-endian), and a count of runs (four); for each run its offset (eight), its length (four), and its bytes.

plain/data.bin was written with a release of 23 November 2026, before data directories had shards. shards/data.bin was written with
one of 29 November 2026, with --shards 2: it has a job, entries of the audit log, and messages with amendments.
"""

import argparse
import datetime
import re
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue

HERE = Path(__file__).resolve().parent
NAMES = ("first", "second", "third")
# Zeros between two runs, at least.
GAP = 24

resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **options: resolve("localhost" if host.split(".")[0] in NAMES else host, *rest, **options)


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def client(namespace: str, amqp: int) -> ServiceBusClient:
    return ServiceBusClient.from_connection_string(
        f"Endpoint=sb://{namespace}.example:{amqp};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=any;"
        "UseDevelopmentEmulator=true;"
    )


def send(sender, *bodies, **properties):
    with sender:
        for body in bodies:
            sender.send_messages(ServiceBusMessage(body, **properties))


def fill(bus, count: int):
    """Writes `count` megabytes of zeros, of which one message in 40 stays."""
    with bus.get_queue_sender("filler") as sender, bus.get_queue_receiver("filler") as receiver:
        for index in range(count):
            sender.send_messages(ServiceBusMessage(bytes(1_000_000), message_id=f"zeros-{index}"))
            [message] = receiver.receive_messages(1, max_wait_time=5)
            if index % 40:
                receiver.complete_message(message)
            else:
                receiver.defer_message(message)


def write(amqp: int):
    bus = client("first", amqp)
    later = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)
    send(bus.get_queue_sender("orders"), *(f"order {index}" for index in range(8)), content_type="text/plain")
    with bus.get_queue_sender("orders") as sender:
        sender.schedule_messages(ServiceBusMessage("scheduled"), later)
    with bus.get_queue_receiver("orders") as receiver:
        messages = receiver.receive_messages(5, max_wait_time=5)
        while len(messages) < 5:
            messages += receiver.receive_messages(5 - len(messages), max_wait_time=5)
        receiver.complete_message(messages[0])
        receiver.defer_message(messages[1])
        receiver.dead_letter_message(messages[2], reason="wrong", error_description="as it is to be")
        receiver.abandon_message(messages[3])
        receiver.complete_message(messages[4])
    for session in ("one", "two", "three"):
        send(bus.get_queue_sender("sessions"), f"a of {session}", f"b of {session}", session_id=session)
    for session in ("one", "two"):
        with bus.get_queue_receiver("sessions", session_id=session) as receiver:
            receiver.session.set_state(f"state of {session}".encode())
            if session == "one":
                [message] = receiver.receive_messages(1, max_wait_time=5)
                receiver.complete_message(message)
    send(bus.get_queue_sender("unique"), "once", "twice", message_id="same")
    send(bus.get_queue_sender("onward"), "sent onward")
    for index in range(6):
        send(bus.get_queue_sender("parts"), f"part {index}", partition_key=f"key {index}")
    for colour in ("red", "blue", "green"):
        send(bus.get_topic_sender("news"), f"{colour} news", application_properties={"colour": colour})
    for namespace in NAMES[1:]:
        with client(namespace, amqp) as other:
            send(other.get_queue_sender("orders"), f"order in {namespace}", f"another in {namespace}")
            if namespace == "second":
                send(other.get_topic_sender("news"), "news in second")
    fill(bus, 80)
    # Behind the checkpoint.
    send(bus.get_queue_sender("orders"), "the last order")
    with bus.get_queue_receiver("orders", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
        [message] = dead.receive_messages(1, max_wait_time=5)
        dead.abandon_message(message)
    with client("third", amqp) as other:
        with other.get_queue_receiver("orders", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
            receiver.receive_messages(1, max_wait_time=5)
    bus.close()


def administer(binary: str, amqp: int, http: int):
    """Has jobs change messages, and makes entities: the audit log tells of both."""

    def jitney(*arguments: str):
        command = [binary, *arguments, "--url", f"http://127.0.0.1:{http}", "--namespace", "first"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    with client("first", amqp) as bus:
        for body in ("moved", "removed"):
            send(bus.get_queue_sender("orders"), f"{body} by a job", message_id=body)
    jitney("dead-letter", "orders", "--message-id", "moved", "--dead-letter-reason", "by a job", "--yes")
    jitney("purge", "orders", "--message-id", "removed", "--yes")
    jitney("queues", "create", "made")
    jitney("queues", "delete", "made", "--yes")


def squeeze(directory: Path) -> bytes:
    """The files of the log without their zeros."""
    out = []
    for path in sorted([*directory.rglob("0*.seg"), *directory.rglob("*.checkpoint"), *directory.glob("shards.json")]):
        data = path.read_bytes()
        runs = [match.span() for match in re.finditer(rb"[^\0](?:\0{0,%d}[^\0])*" % (GAP - 1), data)]
        name = str(path.relative_to(directory)).encode()
        out.append(struct.pack("<B", len(name)) + name + struct.pack("<QI", len(data), len(runs)))
        out.extend(struct.pack("<QI", start, end - start) + data[start:end] for start, end in runs)
    return b"".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("file", type=Path)
    parser.add_argument("--shards", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        run(options.binary, directory, options.shards)
        options.file.write_bytes(squeeze(Path(directory)))


def run(binary: str, directory: str, shards: int):
    amqp, http = port(), port()
    process = subprocess.Popen([
        binary, "serve", "--config", HERE / "Config.json", "--data-dir", directory, "--amqp", f"127.0.0.1:{amqp}",
        "--http", f"127.0.0.1:{http}", "--auth", "development", *(["--shards", str(shards)] if 1 < shards else []),
    ])
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{http}/health")
                break
            except OSError:
                time.sleep(0.05)
        if 1 < shards:
            administer(binary, amqp, http)
        write(amqp)
        deadline = time.monotonic() + 30
        while not list(Path(directory).rglob("*.checkpoint")) and time.monotonic() < deadline:
            time.sleep(0.1)
        if not list(Path(directory).rglob("*.checkpoint")):
            raise SystemExit("there is no checkpoint")
    finally:
        process.kill()
        process.wait()


main()
