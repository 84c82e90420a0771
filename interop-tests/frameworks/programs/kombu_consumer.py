"""Consumes a queue, and notes what it gets; settles it only when it is told to."""

import os
import socket

from kombu import Connection, Consumer, Queue

from notebook import note


def handle(message) -> None:
    note("taken", body=message.payload)
    if "SETTLE" in os.environ:
        message.ack()


with Connection(os.environ["URL"], transport_options={"wait_time_seconds": 1, "peek_lock_seconds": 10}) as link:
    with Consumer(link.channel(), [Queue(os.environ["QUEUE"])], on_message=handle):
        while True:
            try:
                link.drain_events(timeout=2)
            except socket.timeout:
                pass
