#!/usr/bin/env python3
"""A client of the Python SDK that has nothing but its defaults, for test_sdks.py: `steady.py CONNECTION_STRING QUEUE`.

It sends the numbers 1, 2, ... with one sender and receives them with one receiver, until its input ends. It prints a line for each message that was
sent (`sent N`) or completed (`received N`), and for each error that the SDK gives to the application (`failed ...`). Clients of the other SDKs
(goload/steady, jsload, javaload/src/Steady.java) print the same.
"""

from __future__ import annotations

import sys
import threading
import time

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiver, ServiceBusSender
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusError

PAUSE = 0.1
# After an error, an application tries again with the same sender or receiver.
RETRY = 0.5


def say(line: str) -> None:
    # As one piece: two threads say something.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def send(sender: ServiceBusSender) -> None:
    number = 1
    while True:
        try:
            sender.send_messages(ServiceBusMessage(str(number)))
            say(f"sent {number}")
            number += 1
            time.sleep(PAUSE)
        except ServiceBusError as error:
            say(f"failed sending {number}: {error!r}")
            time.sleep(RETRY)


def receive(receiver: ServiceBusReceiver) -> None:
    while True:
        try:
            for message in receiver:
                try:
                    receiver.complete_message(message)
                    say(f"received {message}")
                except MessageLockLostError:
                    # Locks end with the owner: the message comes again.
                    pass
        except ServiceBusError as error:
            say(f"failed receiving: {error!r}")
            time.sleep(RETRY)


def main() -> None:
    with ServiceBusClient.from_connection_string(sys.argv[1]) as client:
        for work, end in ((send, client.get_queue_sender(sys.argv[2])), (receive, client.get_queue_receiver(sys.argv[2]))):
            threading.Thread(target=work, args=[end], daemon=True).start()
        sys.stdin.read()


if __name__ == "__main__":
    main()
