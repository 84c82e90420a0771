"""Kills the broker while messages go on: through topics and rules, along forwards, by sessions, partitions and known ids.

Where crash/ asks what becomes of the messages of a queue in every state, this asks what becomes of those that one entity gives to
another. Every source has a sender, every end a receiver that completes most of what it gets and abandons the rest; the broker gets
SIGKILL again and again. Afterwards everything is taken out, and at each end must hold:

- what was acknowledged to the sender has been there, and nothing that never was sent;
- what was completed, and acknowledged, did not come again;
- a message had one number, no number was two messages', and where numbers are of one series there is no gap.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import OperationTimeoutError, ServiceBusError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from broker import Broker  # noqa: E402

# What a lost connection looks like: the SDK's errors, and some that it lets through.
LOST = (ServiceBusError, OSError, ValueError)

ROUNDS = 8
# Chances of a receiver's: to give a message back.
ABANDONED = 0.15


def plain(id: str, first: str) -> ServiceBusMessage:
    return ServiceBusMessage(id, message_id=id, application_properties={"n": int(id)})


def of_session(id: str, first: str) -> ServiceBusMessage:
    return ServiceBusMessage(id, message_id=id, session_id=f"session {int(id) % 7}", application_properties={"n": int(id)})


def of_key(id: str, first: str) -> ServiceBusMessage:
    """The messages of a batch have one key, or it is refused."""
    return ServiceBusMessage(id, message_id=id, partition_key=f"key {int(first) % 9}")


@dataclass
class Source:
    """A queue or topic that messages are sent to."""

    name: str
    make: Callable[[str, str], ServiceBusMessage]
    topic: bool = False
    # A message that may not have been taken is sent again, under the same id: duplicates are told.
    persistent: bool = False
    acknowledged: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)


@dataclass
class End:
    """A queue or subscription that messages come to."""

    source: Source
    name: str
    subscription: str | None = None
    sessions: bool = False
    partitioned: bool = False
    # Which of the source's messages come here.
    wants: Callable[[int], bool] = lambda n: True
    # By body: under which numbers it came, and how often its completion was acknowledged.
    numbers: dict[str, set[int]] = field(default_factory=dict)
    completed: dict[str, int] = field(default_factory=dict)
    # Came again although its completion had been acknowledged before.
    returned: set[str] = field(default_factory=set)

    @property
    def title(self) -> str:
        return f"{self.name}/{self.subscription}" if self.subscription else self.name

    def receiver(self, client: ServiceBusClient):
        session = {"session_id": NEXT_AVAILABLE_SESSION, "max_wait_time": 1} if self.sessions else {}
        if self.subscription:
            return client.get_subscription_receiver(self.name, self.subscription, **session)
        return client.get_queue_receiver(self.name, **session)

    def complaints(self) -> list[str]:
        wanted = {id for id in self.source.acknowledged if self.wants(int(id))}
        possible = wanted | {id for id in self.source.unknown if self.wants(int(id))}
        found = set(self.numbers)
        owners: dict[int, set[str]] = {}
        for body, numbers in self.numbers.items():
            for number in numbers:
                owners.setdefault(number, set()).add(body)
        told = {
            "lost": wanted - found,
            "never sent, or not for here": found - possible,
            "came again after they were completed": self.returned,
            "have two numbers": {body for body, numbers in self.numbers.items() if len(numbers) > 1},
            "share a number": {body for bodies in owners.values() if len(bodies) > 1 for body in bodies},
        }
        if not self.partitioned:
            told["numbers that nobody has"] = {f"{number}" for number in range(1, max(owners, default=0) + 1) if number not in owners}
        return [f"{what}: {sorted(ids, key=int)[:10]} ({len(ids)})" for what, ids in told.items() if ids]


TOPIC = Source("crash-topic", of_session, topic=True)
FORWARDING = Source("crash-forward", plain)
SESSIONS = Source("crash-sessions", of_session)
PARTITIONS = Source("crash-partitions", of_key)
KNOWN = Source("crash-known", plain, persistent=True)
SOURCES = [TOPIC, FORWARDING, SESSIONS, PARTITIONS, KNOWN]
ENDS = [
    End(TOPIC, "crash-topic", "all"),
    End(TOPIC, "crash-topic", "even", wants=lambda n: n % 2 == 0),
    End(TOPIC, "crash-topic", "sessions", sessions=True),
    # By way of a subscription that forwards what its rule takes.
    End(TOPIC, "crash-topic-end", wants=lambda n: n % 3 == 0),
    # By way of two queues, and of a queue and a topic.
    End(FORWARDING, "crash-forward-end", "all"),
    End(SESSIONS, "crash-sessions", sessions=True),
    End(PARTITIONS, "crash-partitions", partitioned=True),
    End(KNOWN, "crash-known"),
]


class Run:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.broker = Broker(Path(os.environ["JITNEY_BROKER_STATE"]))
        self.ending = False

    def client(self) -> ServiceBusClient:
        # A retry of the SDK's own could send a message twice.
        return ServiceBusClient.from_connection_string(os.environ["JITNEY_CONNECTION_STRING"], retry_total=0)

    async def send(self, source: Source) -> None:
        """Sends until the end; a new client after each lost connection."""
        next_id = 0
        again: list[str] = []
        while not self.ending or (source.persistent and again):
            try:
                async with self.client() as client:
                    make = client.get_topic_sender if source.topic else client.get_queue_sender
                    async with make(source.name) as sender:
                        while again or not self.ending:
                            count = self.random.choice((1, 1, 5))
                            ids = again or [f"{next_id + index}" for index in range(count)]
                            next_id += 0 if again else count
                            source.unknown.update(ids)
                            again = ids if source.persistent else []
                            await sender.send_messages([source.make(id, ids[0]) for id in ids])
                            again = []
                            source.unknown.difference_update(ids)
                            source.acknowledged.update(ids)
                            # The two cores are the broker's too.
                            await asyncio.sleep(0.005)
            except LOST:
                await asyncio.sleep(0.1)

    async def receive(self, end: End) -> None:
        """Receives until the end, and then until nothing is there."""
        while True:
            last = self.ending
            try:
                async with self.client() as client, end.receiver(client) as receiver:
                    while messages := await receiver.receive_messages(max_message_count=20, max_wait_time=1):
                        for message in messages:
                            await self.take(end, receiver, message)
                    if last and not end.sessions:
                        return
            except OperationTimeoutError:
                # There is no session with a message.
                if last:
                    return
            except LOST:
                await asyncio.sleep(0.1)

    async def take(self, end: End, receiver, message) -> None:
        body = str(message)
        end.numbers.setdefault(body, set()).add(message.sequence_number)
        if end.completed.get(body):
            end.returned.add(body)
        if not self.ending and self.random.random() < ABANDONED:
            await receiver.abandon_message(message)
            return
        await receiver.complete_message(message)
        end.completed[body] = end.completed.get(body, 0) + 1

    async def restart(self) -> None:
        await asyncio.to_thread(self.broker.kill)
        await asyncio.to_thread(self.broker.start)

    async def go(self, rounds: int) -> None:
        sending = [asyncio.create_task(self.send(source)) for source in SOURCES]
        receiving = [asyncio.create_task(self.receive(end)) for end in ENDS]
        for _ in range(rounds):
            # Long enough for connections to be made again, and for some work.
            await asyncio.sleep(self.random.uniform(2, 4))
            await self.restart()
        self.ending = True
        await asyncio.gather(*sending)
        await self.restart()
        await asyncio.gather(*receiving)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"{rounds} kills, seed {seed}", flush=True)
    # The SDK tells of every connection that it loses.
    logging.disable(logging.CRITICAL)
    asyncio.run(Run(seed).go(rounds))
    failed = 0
    for end in ENDS:
        complaints = end.complaints()
        # A run in which little happened shows nothing.
        if len(end.numbers) < 50:
            complaints.append(f"only {len(end.numbers)} messages came")
        failed += bool(complaints)
        print(f"{'FAILED' if complaints else 'ok    '} {end.title}: {len(end.numbers)} messages, {len(end.source.unknown)} unanswered")
        for complaint in complaints:
            print(f"       {complaint}")
    print(f"{len(ENDS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
