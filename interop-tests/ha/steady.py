#!/usr/bin/env python3
"""A client of the Python SDK that has nothing but its defaults, for test_sdks.py: `steady.py CONNECTION_STRING QUEUE`.

It sends the numbers 1, 2, ... with one sender and receives them with one receiver, until its input ends. It prints a line for each message that was
sent (`sent N`) or received (`received N`), and for each error that the SDK gives to the application (`failed ...`). Clients of the other SDKs
(goload/steady, jsload, javaload/src/Steady.java) print the same.
"""

from __future__ import annotations

import sys
import threading
import time

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError

PAUSE = 0.1
# After an error, an application tries again with the same sender or receiver.
RETRY = 0.5


def say(line: str) -> None:
    # As one piece: two threads say something.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def send(client: ServiceBusClient, queue: str) -> None:
    number, sender = 1, client.get_queue_sender(queue)
    while True:
        try:
            sender.send_messages(ServiceBusMessage(str(number)))
            say(f"sent {number}")
            number += 1
            time.sleep(PAUSE)
        except Exception as error:  # noqa: BLE001 - the SDK gives what it meets inside, too
            say(f"failed sending {number}: {error!r}")
            time.sleep(RETRY)
            if isinstance(error, ValueError):
                # "The handler has already been shutdown": what it met has ended the sender.
                sender = client.get_queue_sender(queue)


def receive(client: ServiceBusClient, queue: str) -> None:
    receiver = client.get_queue_receiver(queue)
    while True:
        try:
            for message in receiver:
                # Before it is settled: if only the answer to that is lost, the message does not come again.
                say(f"received {message}")
                try:
                    receiver.complete_message(message)
                except MessageLockLostError:
                    # Locks end with the owner: the message comes again.
                    pass
        except Exception as error:  # noqa: BLE001 - as above
            say(f"failed receiving: {error!r}")
            time.sleep(RETRY)
            if isinstance(error, ValueError):
                receiver = client.get_queue_receiver(queue)


def main() -> None:
    with ServiceBusClient.from_connection_string(sys.argv[1]) as client:
        for work in (send, receive):
            threading.Thread(target=work, args=[client, sys.argv[2]], daemon=True).start()
        sys.stdin.read()


if __name__ == "__main__":
    main()
