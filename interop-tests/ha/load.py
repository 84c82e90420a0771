#!/usr/bin/env python3
"""Load for the failures of fleets: clients of the Python SDK that reconnect at once, and write down what they ask and what they are told.

    load.py work JOURNAL ADDRESS NAMESPACE...     the workers, until their input ends; ADDRESS is HOST:PORT
    load.py audit JOURNAL                         what audit.py finds in a journal

Load starts the workers as a process. Each namespace has the queues of QUEUES. The journal has one JSON list a line:
`[when, event, NAMESPACE/QUEUE, ids, more]`, where `when` is the monotonic clock's, an event that ends in `?` is a request, and one that ends
in `!` its acknowledgement.

When its input ends, the process stops sending, receives what is there until nothing comes any more, and writes down what is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import socket
import subprocess
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Collection
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from audit import DEAD, NUMBER, QUEUE, Auditor  # noqa: E402

# The queues of each namespace: `once` remembers duplicates, and its senders repeat what was not acknowledged.
QUEUES = [
    {"Name": "plain", "Properties": {"LockDuration": "PT10S", "MaxDeliveryCount": 1000}},
    {"Name": "grouped", "Properties": {"LockDuration": "PT10S", "MaxDeliveryCount": 1000, "RequiresSession": True}},
    {"Name": "once", "Properties": {"LockDuration": "PT10S", "MaxDeliveryCount": 1000, "RequiresDuplicateDetection": True,
                                    "DuplicateDetectionHistoryTimeWindow": "PT5M"}},
    {"Name": "later", "Properties": {"LockDuration": "PT10S", "MaxDeliveryCount": 1000}},
]
SESSIONS = ["s1", "s2", "s3"]
# Senders wait while their queue is this far ahead of its receivers.
BACKLOG = 100
# Of how many messages that were acknowledged one may be sent again: those of half a minute.
REPEATED = 500
# Between a sender's requests, so that the clients leave the servers some of the machine.
PAUSE = 0.03


def patience() -> float:
    """How much longer than usual everything may take: on a machine with other work."""
    return float(os.environ.get("JITNEY_PATIENCE", 1))


# A request without an answer for so long is given up, with its connection.
ANSWER_SECONDS = 5.0 * min(patience(), 3)
# Before the next try of a client whose connection was lost or refused.
RETRY_SECONDS = 0.05
# At the end: nothing comes any more if nothing came for so long; and how long that may take.
QUIET_SECONDS = 3.0
DRAIN_SECONDS = 60.0


def body_of(id_: str) -> str:
    digest = zlib.crc32(id_.encode())
    return f"{id_} " + f"{digest:08x}" * (1 + digest % 120)


class Workers:
    def __init__(self, journal: str, address: str, namespaces: list[str]):
        self.file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.address, self.namespaces = address, namespaces
        # Several processes may write to queues one after the other: their ids differ.
        self.life = f"{os.getpid():x}{int(time.time()) & 0xfffff:x}"
        self.made = 0
        self.random = random.Random(os.getpid())
        self.stopping = False
        # By entity: sent, less received.
        self.ahead: Counter = Counter()
        # By entity: what may be sent again, although it was acknowledged.
        self.repeated: dict[str, list[str]] = defaultdict(list)
        # By entity: numbers of deferred messages.
        self.deferred: dict[str, list[int]] = defaultdict(list)
        self.last_got = time.monotonic()

    def note(self, event: str, entity: str, ids: list[str], more=None) -> None:
        os.write(self.file, (json.dumps([time.monotonic(), event, entity, ids, more]) + "\n").encode())

    def fresh(self, count: int) -> list[str]:
        self.made += count
        return [f"{self.life}-{number}" for number in range(self.made - count, self.made)]

    # Connections.

    @contextlib.asynccontextmanager
    async def client(self, namespace: str) -> AsyncIterator:
        from azure.servicebus.aio import ServiceBusClient

        text = (
            f"Endpoint=sb://{namespace}.localhost:{self.address.rpartition(':')[2]};SharedAccessKeyName=RootManageSharedAccessKey;"
            "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
        )
        # Without the SDK's tries: these workers connect again at once, and a request whose answer is lost must stay one.
        client = ServiceBusClient.from_connection_string(text, retry_total=0)
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(client.close(), 1)

    @contextlib.asynccontextmanager
    async def link(self, made) -> AsyncIterator:
        """Attaches a sender or a receiver, and closes it without waiting long."""
        try:
            await answered(made._open())  # noqa: SLF001
            yield made
        finally:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(made.close(), 1)

    async def forever(self, work, entity: str, *arguments: object) -> None:
        """Does the work again and again, with a new connection after each fault."""
        while True:
            try:
                await work(entity, *arguments)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001
                self.note("fault", entity, [], f"{type(error).__name__}: {error}"[:200])
                await asyncio.sleep(RETRY_SECONDS)

    # Senders.

    async def paced(self, entity: str) -> None:
        await asyncio.sleep(PAUSE)
        while self.ahead[entity] > BACKLOG and not self.stopping:
            await asyncio.sleep(0.02)
        if self.stopping:
            await asyncio.Event().wait()

    async def sender(self, entity: str, session: str | None = None) -> None:
        namespace, queue = entity.split("/")
        async with self.client(namespace) as client, self.link(client.get_queue_sender(queue)) as sender:
            while True:
                await self.paced(entity)
                ids = self.fresh(self.random.choice([1, 1, 1, 3]))
                self.note("send?", entity, ids, session)
                await answered(sender.send_messages([message(id_, session) for id_ in ids] if len(ids) > 1 else message(ids[0], session)))
                self.note("send!", entity, ids)
                self.ahead[entity] += len(ids)

    async def repeater(self, entity: str, pending: list[str]) -> None:
        """Sends a message until it is acknowledged, and now and then again one that was acknowledged some time ago: a duplicate."""
        namespace, queue = entity.split("/")
        async with self.client(namespace) as client, self.link(client.get_queue_sender(queue)) as sender:
            while True:
                if not pending:
                    await self.paced(entity)
                    pending += self.fresh(1)
                self.note("send?", entity, pending)
                await answered(sender.send_messages(message(pending[0])))
                self.note("send!", entity, pending)
                self.ahead[entity] += pending[0] not in self.repeated[entity]
                self.repeated[entity] = [*self.repeated[entity], *pending][-REPEATED:]
                pending.clear()
                if self.random.random() < 0.2:
                    pending.append(self.random.choice(self.repeated[entity]))

    async def scheduler(self, entity: str) -> None:
        namespace, queue = entity.split("/")
        async with self.client(namespace) as client, self.link(client.get_queue_sender(queue)) as sender:
            while True:
                await self.paced(entity)
                ids = self.fresh(1)
                due = time.time() + self.random.choice([0.5, 2, 6, 36_000])
                self.note("schedule?", entity, ids, due)
                at = datetime.fromtimestamp(due, timezone.utc)
                numbers = await answered(sender.schedule_messages(message(ids[0]), at))
                self.note("schedule!", entity, ids, list(numbers))
                if due > time.time() + 100:
                    if self.random.random() < 0.9:
                        self.note("cancel?", entity, ids)
                        await answered(sender.cancel_scheduled_messages(list(numbers)))
                        self.note("cancel!", entity, ids)
                else:
                    self.ahead[entity] += 1

    # Receivers.

    def got(self, entity: str, messages: list, where: str, asked: float) -> None:
        self.last_got = time.monotonic() if messages else self.last_got
        for each in messages:
            whole = str(each) == body_of(each.message_id)
            self.ahead[entity] -= where == QUEUE
            self.note("got", entity, [each.message_id], [each.sequence_number, where, asked, time.time(), whole])

    async def settle(self, receiver, entity: str, message, verb: str) -> None:
        call = {"complete": receiver.complete_message, "abandon": receiver.abandon_message, "defer": receiver.defer_message,
                "dead": receiver.dead_letter_message}[verb]
        self.note(f"{verb}?", entity, [message.message_id])
        await answered(call(message))
        self.note(f"{verb}!", entity, [message.message_id])
        if verb == "defer":
            self.deferred[entity].append(message.sequence_number)

    async def receiver(self, entity: str, verbs: dict[str, int]) -> None:
        namespace, queue = entity.split("/")
        async with self.client(namespace) as client, self.link(client.get_queue_receiver(queue)) as receiver:
            while True:
                asked = time.monotonic()
                messages = await answered(receiver.receive_messages(10, max_wait_time=1))
                self.got(entity, messages, QUEUE, asked)
                for each in messages:
                    # At the end everything is completed.
                    verb = "complete" if self.stopping else self.random.choices(list(verbs), list(verbs.values()))[0]
                    await self.settle(receiver, entity, each, verb)
                if len(self.deferred[entity]) > (0 if self.stopping else 4):
                    await self.by_number(receiver, entity)

    async def by_number(self, receiver, entity: str) -> None:
        from azure.servicebus.exceptions import MessageNotFoundError

        number, asked = self.deferred[entity].pop(0), time.monotonic()
        try:
            messages = await answered(receiver.receive_deferred_messages([number]))
        except MessageNotFoundError:
            # It was completed, without an answer; or it is lost, which the auditor sees.
            return
        except BaseException:
            self.deferred[entity].append(number)
            raise
        self.got(entity, messages, NUMBER, asked)
        # Until it is known to be completed, it may have to be asked for again.
        self.deferred[entity].append(number)
        for each in messages:
            await self.settle(receiver, entity, each, "complete")
        self.deferred[entity].remove(number)

    async def dead_letters(self, entity: str) -> None:
        from azure.servicebus import ServiceBusSubQueue

        namespace, queue = entity.split("/")
        async with self.client(namespace) as client:
            async with self.link(client.get_queue_receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER)) as receiver:
                while True:
                    asked = time.monotonic()
                    messages = await answered(receiver.receive_messages(10, max_wait_time=1))
                    self.got(entity, messages, DEAD, asked)
                    for each in messages:
                        await self.settle(receiver, entity, each, "complete")

    async def sessions(self, entity: str, session: str) -> None:
        namespace, queue = entity.split("/")
        async with self.client(namespace) as client, self.link(client.get_queue_receiver(queue, session_id=session)) as receiver:
            state = await answered(receiver.session.get_state())
            self.note("state", entity, [session], state.decode() if state else None)
            # Now and then it is another link.
            for _ in range(100):
                asked = time.monotonic()
                # One: with credit for more, the SDK releases what comes while it settles, and that comes again behind the next ones.
                messages = await answered(receiver.receive_messages(1, max_wait_time=1))
                self.got(entity, messages, QUEUE, asked)
                for each in messages:
                    await self.settle(receiver, entity, each, "complete")
                    if self.random.random() < 0.3:
                        self.note("set?", entity, [session], each.message_id)
                        await answered(receiver.session.set_state(each.message_id.encode()))
                        self.note("set!", entity, [session], each.message_id)

    # The whole.

    def start(self, namespace: str) -> list[asyncio.Task]:
        plain, grouped, once, later = (f"{namespace}/{queue['Name']}" for queue in QUEUES)
        mixed = {"complete": 80, "abandon": 5, "defer": 8, "dead": 7}
        works: list[Awaitable] = [
            self.forever(self.sender, plain), self.forever(self.receiver, plain, mixed), self.forever(self.receiver, plain, mixed),
            self.forever(self.dead_letters, plain),
            *(self.forever(self.sender, grouped, session) for session in SESSIONS),
            *(self.forever(self.sessions, grouped, session) for session in SESSIONS),
            self.forever(self.repeater, once, []), self.forever(self.receiver, once, {"complete": 1}),
            self.forever(self.scheduler, later), self.forever(self.receiver, later, {"complete": 1}),
        ]
        return [asyncio.ensure_future(work) for work in works]

    async def run(self) -> None:
        tasks = [task for namespace in self.namespaces for task in self.start(namespace)]
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        self.stopping = True
        await self.drain()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=10)
        # At the same time: the SDK takes a second to connect.
        await asyncio.gather(*(self.leftovers(f"{namespace}/{queue['Name']}") for namespace in self.namespaces for queue in QUEUES))
        self.note("end", "", [])

    async def drain(self) -> None:
        """Waits until the receivers have what is there. A message whose lock was held by a connection that is gone comes when that expires."""
        began, self.last_got = time.monotonic(), time.monotonic()
        while time.monotonic() < began + DRAIN_SECONDS:
            await asyncio.sleep(0.2)
            if time.monotonic() - self.last_got > QUIET_SECONDS and not any(self.deferred.values()):
                return

    async def leftovers(self, entity: str) -> None:
        from azure.servicebus import ServiceBusSubQueue

        has_sessions = any(queue["Properties"].get("RequiresSession") and entity.endswith(f"/{queue['Name']}") for queue in QUEUES)
        dead = {"sub_queue": ServiceBusSubQueue.DEAD_LETTER}
        for options in [*({"session_id": session} for session in SESSIONS), dead] if has_sessions else [{}, dead]:
            for each in await self.peeked(entity, options):
                place = DEAD if options == dead else each.state.name.lower()
                self.note("left", entity, [each.message_id], [each.sequence_number, place])

    async def peeked(self, entity: str, options: dict) -> list:
        """Everything that peek finds; tried until there is an answer."""
        namespace, queue = entity.split("/")
        deadline = time.monotonic() + DRAIN_SECONDS
        while True:
            try:
                found, number = [], 1
                async with self.client(namespace) as client, self.link(client.get_queue_receiver(queue, **options)) as receiver:
                    while page := await answered(receiver.peek_messages(200, sequence_number=number)):
                        found += page
                        number = page[-1].sequence_number + 1
                return found
            except Exception as error:  # noqa: BLE001
                self.note("fault", entity, [], f"peek: {type(error).__name__}: {error}"[:200])
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.5)


def message(id_: str, session: str | None = None):
    from azure.servicebus import ServiceBusMessage

    return ServiceBusMessage(body_of(id_), message_id=id_, session_id=session)


async def answered(call: Awaitable):
    # Not `asyncio.wait_for`, which before Python 3.12 goes on where it is cancelled as the answer comes.
    async with asyncio.timeout(ANSWER_SECONDS):
        return await call


class Load:
    """The workers as a process of their own: those above, or those of another program that takes the same arguments."""

    def __init__(self, journal: Path, address: str, namespaces: list[str], program: list[str] | None = None):
        self.journal, self.namespaces = Path(journal), namespaces
        self.log = self.journal.with_suffix(".log").open("ab")
        self.process = subprocess.Popen(
            [*(program or [sys.executable, str(HERE / "load.py"), "work"]), str(journal), address, *namespaces], stdin=subprocess.PIPE, stdout=self.log,
            stderr=self.log,
        )
        self._acknowledged: Counter = Counter()
        self._reader, self._rest = None, ""

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def acknowledged(self) -> Counter:
        """How many sendings were acknowledged so far, by namespace."""
        if self._reader is None and self.journal.exists():
            self._reader = self.journal.open()
        lines = (self._rest + (self._reader.read() if self._reader else "")).split("\n")
        self._rest = lines.pop()
        for line in lines:
            _, event, entity, ids, _ = json.loads(line)
            if event in ("send!", "commit!"):
                self._acknowledged[entity.split("/")[0]] += len(ids)
        return self._acknowledged

    def wait_more(self, count: int, seconds: float = 60, namespaces: list[str] | None = None) -> None:
        """Waits until so many further sendings were acknowledged in each namespace."""
        wait_more([self], count, seconds, namespaces or self.namespaces)

    def stop(self) -> None:
        """Stops sending; what is there is received."""
        self.process.stdin.close()

    def finish(self) -> Auditor:
        """Stops sending, and returns what the auditor says when all is received."""
        self.stop()
        code = self.process.wait(2 * DRAIN_SECONDS + 60)
        auditor = Auditor.of(self.journal)
        if code != 0 or not auditor.ended:
            raise AssertionError(f"the load ended with {code}\n{self.tail()}")
        return auditor

    def tail(self) -> str:
        return self.journal.with_suffix(".log").read_text(errors="replace")[-3000:]


def wait_more(loads: Collection[Load], count: int, seconds: float, namespaces: list[str]) -> None:
    """Waits until so many further sendings of each load were acknowledged in each namespace."""
    before = [Counter(load.acknowledged()) for load in loads]
    deadline = time.monotonic() + seconds * max(1.0, patience())

    def slow() -> list[str]:
        found = [(load, told, load.acknowledged()) for load, told in zip(loads, before)]
        return [f"{name} of {load.journal.stem}" for load, told, now in found for name in namespaces if now[name] < told[name] + count]

    while missing := slow():
        for load in loads:
            if load.process.poll() is not None:
                raise AssertionError(f"the load ended with {load.process.returncode}\n{load.tail()}")
        if time.monotonic() > deadline:
            raise AssertionError(f"{count} sendings were not acknowledged in {missing} within {seconds:.0f} s")
        time.sleep(0.02)


def main() -> int:
    logging.disable(logging.CRITICAL)
    if sys.argv[1:2] == ["work"] and len(sys.argv) > 4:
        # The names lead here, as lines in /etc/hosts would.
        resolve, host = socket.getaddrinfo, sys.argv[3].rpartition(":")[0]
        socket.getaddrinfo = lambda name, *rest, **options: resolve(host if str(name).endswith(".localhost") else name, *rest, **options)
        asyncio.run(Workers(sys.argv[2], sys.argv[3], sys.argv[4:]).run())
        return 0
    if sys.argv[1:2] == ["audit"] and len(sys.argv) == 3:
        auditor = Auditor.of(Path(sys.argv[2]))
        print(dict(auditor.counts), *auditor.violations, sep="\n")
        return 1 if auditor.violations else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
