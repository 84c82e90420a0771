"""Load for the crash test: workers that use the broker in every way, and write down what they ask and what they are told.

    load.py JOURNAL ROUND SEED

The journal has one JSON list a line, written with one system call, so it outlives this process: `[event, queue, ids, more]`.
An event ending in `?` stands before the request, the same with `!` after its acknowledgement. The process ends by itself when the
broker is gone, with whatever error that makes.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections import Counter
from datetime import datetime, timedelta, timezone

from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient

from audit import DEAD_LETTERS, IN_FLIGHT, body_of

# Senders wait while their queue is this far ahead of its receivers, so that settlements keep up with them.
BACKLOG = 60

CONNECTION_STRING = os.environ["JITNEY_CONNECTION_STRING"]


def message(id_: str) -> ServiceBusMessage:
    return ServiceBusMessage(body_of(id_), message_id=id_)


class Load:
    def __init__(self, journal: str, round_: int, seed: int):
        self.file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.round = round_
        self.random = random.Random(seed)
        self.made = 0
        # By queue: sent, less received.
        self.ahead: Counter = Counter()

    def note(self, event: str, queue: str, ids: list[str], more=None) -> None:
        os.write(self.file, (json.dumps([event, queue, ids, more]) + "\n").encode())

    def fresh(self, count: int) -> list[str]:
        """New ids; each is the body of its message."""
        ids = [f"r{self.round}-{self.made + index}" for index in range(count)]
        self.made += count
        return ids

    def client(self) -> ServiceBusClient:
        # No second try: a request whose answer is lost must stay a request whose answer is lost.
        return ServiceBusClient.from_connection_string(CONNECTION_STRING, retry_total=0)

    async def sender(self, queue: str) -> None:
        async with self.client() as client, client.get_queue_sender(queue) as sender:
            while True:
                while self.ahead[queue] > BACKLOG:
                    await asyncio.sleep(0.01)
                ids = self.fresh(self.random.choice([1, 1, 5, 20]))
                self.ahead[queue] += len(ids)
                self.note("send?", queue, ids)
                await sender.send_messages([message(id_) for id_ in ids] if len(ids) > 1 else message(ids[0]))
                self.note("send!", queue, ids)

    async def scheduler(self, queue: str) -> None:
        async with self.client() as client, client.get_queue_sender(queue) as sender:
            while True:
                ids = self.fresh(self.random.choice([1, 3, 8]))
                near = self.random.random() < 0.5
                due = datetime.now(timezone.utc) + timedelta(seconds=self.random.uniform(0.2, 1.0) if near else 36_000)
                self.note("schedule?", queue, ids, near)
                numbers = await sender.schedule_messages([message(id_) for id_ in ids], due)
                self.note("schedule!", queue, ids, list(numbers))
                if not near and self.random.random() < 0.6:
                    self.note("cancel?", queue, ids)
                    await sender.cancel_scheduled_messages(list(numbers))
                    self.note("cancel!", queue, ids)

    async def settle(self, receiver, queue: str, message, ways: dict[str, int]) -> str:
        way = self.random.choices(list(ways), weights=list(ways.values()))[0]
        call = {
            "complete": receiver.complete_message, "abandon": receiver.abandon_message,
            "defer": receiver.defer_message, "dead": receiver.dead_letter_message,
        }[way]
        self.note(f"{way}?", queue, [message.message_id])
        await call(message)
        self.note(f"{way}!", queue, [message.message_id])
        return way

    def got(self, queue: str, messages, how: str) -> None:
        for message in messages:
            whole = str(message) == body_of(message.message_id)
            self.ahead[queue] -= 1
            self.note("got", queue, [message.message_id], [message.sequence_number, how, whole])

    async def receiver(self, queue: str, ways: dict[str, int], prefetch: int = 0) -> None:
        dead = queue.endswith(DEAD_LETTERS)
        options = {"sub_queue": ServiceBusSubQueue.DEAD_LETTER} if dead else {}
        deferred: list[int] = []
        async with self.client() as client:
            async with client.get_queue_receiver(queue.removesuffix(DEAD_LETTERS), prefetch_count=prefetch, **options) as receiver:
                while True:
                    messages = await receiver.receive_messages(max_message_count=20, max_wait_time=1)
                    self.got(queue, messages, "received")
                    for message in messages:
                        if await self.settle(receiver, queue, message, ways) == "defer":
                            deferred.append(message.sequence_number)
                    if len(deferred) >= 5:
                        taken, deferred = deferred[:3], deferred[3:]
                        messages = await receiver.receive_deferred_messages(taken)
                        self.got(queue, messages, "by number")
                        for message in messages:
                            await self.settle(receiver, queue, message, {"complete": 3, "dead": 1, "abandon": 1, "defer": 1})

    async def taker(self, queue: str) -> None:
        """Receives and deletes."""
        async with self.client() as client:
            async with client.get_queue_receiver(queue, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
                while True:
                    self.got(queue, await receiver.receive_messages(max_message_count=IN_FLIGHT, max_wait_time=1), "taken")

    async def run(self) -> None:
        await asyncio.gather(
            # A plain queue under competing senders and receivers.
            self.sender("crash-1"), self.sender("crash-1"),
            self.receiver("crash-1", {"complete": 1}), self.receiver("crash-1", {"complete": 1}, prefetch=50),
            # Every outcome, and the dead-letter queue behind it.
            self.sender("crash-2"),
            self.receiver("crash-2", {"complete": 4, "abandon": 1, "defer": 3, "dead": 2}),
            self.receiver("crash-2", {"complete": 4, "abandon": 1, "defer": 3, "dead": 2}),
            self.receiver("crash-2" + DEAD_LETTERS, {"complete": 3, "abandon": 1}),
            # Schedules, near and far.
            self.scheduler("crash-3"), self.scheduler("crash-3"), self.receiver("crash-3", {"complete": 1}),
            # Receive and delete.
            self.sender("crash-4"), self.taker("crash-4"),
        )


if __name__ == "__main__":
    asyncio.run(Load(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])).run())
