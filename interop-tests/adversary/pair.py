"""A well-behaved sender and receiver of one queue, with the SDK: what they see while others overload the broker.

    pair.py CONNECTION_STRING QUEUE

sends a message every few milliseconds, receives and completes each, and answers lines on standard input with a line of JSON:
`mark` with what was seen since the last mark, `end` with the same once everything that was sent has come; then it ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender
from azure.servicebus.exceptions import ServiceBusError

PAUSE = 0.02
# After its end, everything sent must have come by then.
LAST_WAIT = 60.0


def spread(seconds: list[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum, in milliseconds."""
    ordered = sorted(seconds) or [0.0]
    at = {"p50": len(ordered) // 2, "p99": len(ordered) * 99 // 100, "max": len(ordered) - 1}
    return {name: round(ordered[index] * 1000, 1) for name, index in at.items()}


@dataclass
class Phase:
    began: float
    told: list[float] = field(default_factory=list)
    came: list[float] = field(default_factory=list)
    # The longest time in which nothing came.
    gap: float = 0.0
    errors: Counter = field(default_factory=Counter)


class Pair:
    def __init__(self) -> None:
        self.phase = Phase(time.monotonic())
        self.last = time.monotonic()
        self.sent_at: dict[int, float] = {}
        self.accepted: set[int] = set()
        self.came: Counter[int] = Counter()
        self.ends = False

    async def send(self, sender: ServiceBusSender) -> None:
        number = 0
        while not self.ends:
            number += 1
            began = self.sent_at[number] = time.monotonic()
            try:
                await sender.send_messages(ServiceBusMessage(str(number)))
                self.accepted.add(number)
                self.phase.told.append(time.monotonic() - began)
            except ServiceBusError as error:
                self.phase.errors[type(error).__name__] += 1
            await asyncio.sleep(PAUSE)

    async def receive(self, receiver: ServiceBusReceiver) -> None:
        settling: set[asyncio.Task] = set()
        while True:
            try:
                async for message in receiver:
                    now = time.monotonic()
                    number = int(str(message))
                    self.came[number] += 1
                    self.phase.came.append(now - self.sent_at[number])
                    self.progress(now)
                    # The next message does not wait until the disk has this one's end.
                    task = asyncio.create_task(self.complete(receiver, message))
                    settling.add(task)
                    task.add_done_callback(settling.discard)
            except ServiceBusError as error:
                self.phase.errors[type(error).__name__] += 1
                await asyncio.sleep(PAUSE)

    async def complete(self, receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage) -> None:
        try:
            await receiver.complete_message(message)
        except ServiceBusError as error:
            self.phase.errors[type(error).__name__] += 1

    def progress(self, now: float) -> None:
        self.phase.gap = max(self.phase.gap, now - self.last)
        self.last = now

    def tell(self) -> None:
        now = time.monotonic()
        phase, self.phase = self.phase, Phase(now)
        # A gap that goes on counts so far.
        gap = max(phase.gap, now - self.last)
        said: dict[str, Any] = {
            "seconds": round(now - phase.began, 1), "received": len(phase.came), "accepted_ms": spread(phase.told),
            "received_ms": spread(phase.came), "gap": round(gap, 2), "errors": dict(phase.errors),
            "lost": sorted(self.accepted - self.came.keys()), "doubled": [number for number, count in self.came.items() if count > 1],
        }
        print(json.dumps(said), flush=True)

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            line = (await loop.run_in_executor(None, sys.stdin.readline)).strip()
            if line != "mark":
                return
            self.tell()


async def main() -> None:
    connection_string, queue = sys.argv[1:]
    pair = Pair()
    # Errors are counted; the SDK's log would tell each in many lines.
    logging.disable(logging.CRITICAL)
    async with (
        ServiceBusClient.from_connection_string(connection_string, retry_total=0) as client,
        client.get_queue_sender(queue) as sender, client.get_queue_receiver(queue, prefetch_count=50) as receiver,
    ):
        tasks = [asyncio.create_task(pair.send(sender)), asyncio.create_task(pair.receive(receiver))]
        await pair.listen()
        pair.ends = True
        await tasks[0]
        deadline = time.monotonic() + LAST_WAIT
        while pair.accepted - pair.came.keys() and time.monotonic() < deadline:
            await asyncio.sleep(PAUSE)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        pair.tell()


if __name__ == "__main__":
    asyncio.run(main())
