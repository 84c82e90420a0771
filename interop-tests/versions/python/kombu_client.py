"""The steps (../README.md) that one version of kombu has calls for, by its transport `azureservicebus`: `kombu_client.py PREFIX`.

../../frameworks/site leads the name of the namespace to the suite's broker, because the transport wants a name of the service's.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable

from kombu import Connection, Consumer, Exchange, Producer, Queue

[PREFIX] = sys.argv[1:]
URL = os.environ["KOMBU_URL"]
SOON = 30


def check(condition: object, text: str) -> None:
    if not condition:
        raise AssertionError(text)


def connection() -> Connection:
    return Connection(URL, transport_options={"wait_time_seconds": 1, "retry_total": 0})


def publish(channel, queue: str, *bodies: object) -> Queue:
    declared = Queue(f"{PREFIX}-{queue}", Exchange(f"{PREFIX}-{queue}"), routing_key="key")
    for body in bodies:
        Producer(channel, declared.exchange).publish(body, routing_key="key", declare=[declared])
    return declared


def take(channel, queue: Queue, count: int, handle: Callable, no_ack: bool = False) -> None:
    """Consumes until `handle` has had `count` messages."""
    had = []

    def on_message(message) -> None:
        had.append(message)
        handle(message)

    with Consumer(channel, [queue], on_message=on_message, no_ack=no_ack):
        deadline = time.monotonic() + SOON
        while len(had) < count:
            check(time.monotonic() < deadline, f"{len(had)} messages of {count}")
            try:
                channel.connection.client.drain_events(timeout=2)
            except socket.timeout:
                pass


def empty(channel, queue: Queue) -> None:
    """Waits until nothing is left: some versions do not wait for the answer to a settlement."""
    deadline = time.monotonic() + SOON
    while count := queue(channel).queue_declare(passive=True).message_count:
        check(time.monotonic() < deadline, f"{count} messages are left")
        time.sleep(0.1)


def send(channel) -> None:
    bodies = [{"number": 1}, "a text", [1, 2, 3]]
    queue = publish(channel, "send", *bodies)
    found = []
    take(channel, queue, 3, lambda message: (found.append(message.payload), message.ack()))
    check(found == bodies, f"the bodies are {found}")


def receive_and_delete(channel) -> None:
    queue = publish(channel, "receive-and-delete", "one", "two")
    take(channel, queue, 2, lambda message: None, no_ack=True)
    empty(channel, queue)


def complete(channel) -> None:
    queue = publish(channel, "complete", "one")
    take(channel, queue, 1, lambda message: message.ack())
    empty(channel, queue)


STEPS = {"send": send, "receive-and-delete": receive_and_delete, "complete": complete}
for name in os.environ["STEPS"].split():
    if name not in STEPS:
        print(f"STEP {name} absent", flush=True)
        continue
    try:
        with connection() as link:
            STEPS[name](link.channel())
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"STEP {name} failed {text}", flush=True)
    else:
        print(f"STEP {name} passed", flush=True)
sys.stdout.flush()
# What the client leaves running must not keep the program.
os._exit(0)
