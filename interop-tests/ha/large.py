#!/usr/bin/env python3
"""Sends or receives a message of some MiB, by the queue `large`. A process of its own: the SDK's work on it would stop the proxies of a test.

    large.py send MEBIBYTES CONNECTION_STRING
    large.py receive MEBIBYTES CONNECTION_STRING            and leaves it locked
    large.py complete MEBIBYTES CONNECTION_STRING
"""

from __future__ import annotations

import hashlib
import sys
import time

from azure.servicebus import ServiceBusClient, ServiceBusMessage

from load import patience


def body_of(mebibytes: int) -> bytes:
    """Less than so much by what else is in the message; no two KiB are alike."""
    blocks = (hashlib.shake_128(number.to_bytes(4, "big")).digest(1024) for number in range(mebibytes * 1024 - 64))
    return b"".join(blocks)


def main() -> int:
    verb, mebibytes, text = sys.argv[1:]
    body, began = body_of(int(mebibytes)), time.monotonic()
    with ServiceBusClient.from_connection_string(text, retry_total=0, socket_timeout=300) as client:
        if verb == "send":
            with client.get_queue_sender("large") as sender:
                sender.send_messages(ServiceBusMessage(body), timeout=300)
        else:
            with client.get_queue_receiver("large") as receiver:
                found = receiver.receive_messages(1, max_wait_time=90 * max(1, patience()))
                if not found:
                    print("nothing came")
                    return 1
                if b"".join(found[0].body) != body:
                    print("it came with another body")
                    return 1
                if verb == "complete":
                    receiver.complete_message(found[0])
    print(f"{verb}: {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
