"""The loads, each in a process of its own, so that what they take is not taken from those who measure.

A role is a coroutine function that gets its cue and is told where the broker is; what it returns is given back. Every message begins with a number of eight bytes that no other message of the queue has.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import struct
import time
import traceback
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from amqp import WIDE, Ended, Link, Peer, body_of, bounded, int32, int64, message, request

Role = Callable[..., Awaitable[Any]]

# Loads give way to the broker and to those who measure: it is the broker that is overloaded, not the machine.
NICENESS = 5
# Numbers of one connection; the next one's begin behind them.
NUMBERS = 1 << 32
# How long after its end a load waits for answers that are due.
LAST_WAIT = 60.0


@dataclass
class Cue:
    """What a role and those who have started it say to one another."""

    # Set when it is to end.
    ends: asyncio.Event
    # Says that it has begun.
    there: Callable[[], None]


class Load:
    """A load at work."""

    def __init__(self, role: Role, **arguments: Any):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(role, arguments, theirs), daemon=True)
        self.process.start()
        theirs.close()

    async def result(self, within: float) -> Any:
        """Waits until it has ended by itself."""
        loop = asyncio.get_running_loop()
        try:
            return await self._told("done", within)
        finally:
            # It has said all, or nothing in time.
            self.process.terminate()
            self.process.join()

    async def there(self, within: float) -> None:
        """Waits until a load says that it has begun."""
        await self._told("there", within)

    async def _told(self, expected: str, within: float) -> Any:
        loop = asyncio.get_running_loop()
        try:
            kind, value = await bounded(loop.run_in_executor(None, self.pipe.recv), within)
        except (TimeoutError, asyncio.TimeoutError):
            # The thread that reads ends with the pipe.
            self.process.terminate()
            raise AssertionError(f"a load has said nothing within {within:.0f} s") from None
        if kind != expected:
            raise AssertionError(f"a load {kind}:\n{value}")
        return value

    async def end(self, within: float = LAST_WAIT + 30) -> Any:
        """Lets it come to its end, and returns its result."""
        self.pipe.send("end")
        return await self.result(within)


def _work(role: Role, arguments: dict[str, Any], pipe: Connection) -> None:
    os.nice(NICENESS)

    async def run() -> Any:
        ends, loop = asyncio.Event(), asyncio.get_running_loop()

        def hear() -> None:
            loop.remove_reader(pipe.fileno())
            ends.set()

        loop.add_reader(pipe.fileno(), hear)
        return await role(Cue(ends, lambda: pipe.send(("there", None))), **arguments)

    try:
        pipe.send(("done", asyncio.run(run())))
    except BaseException:
        pipe.send(("failed", traceback.format_exc()))
    # Until it is read: a pipe is not emptied into nothing.
    try:
        pipe.recv()
        pipe.recv()
    except EOFError:
        pass


# --- senders ----------------------------------------------------------------------------------------------------------------------


@dataclass
class Sent:
    """Numbers of messages by what is known of them."""

    accepted: array = field(default_factory=lambda: array("Q"))
    # Sent, and never answered.
    unknown: array = field(default_factory=lambda: array("Q"))
    refused: int = 0
    ended: list[str] = field(default_factory=list)


async def flood(
    cue: Cue, port: int, queue: str, connections: int, size: int, outstanding: int, first: int = 0,
) -> Sent:
    """Sends as fast as the broker takes messages, from many connections, until the end."""
    sent = Sent()
    padding = os.urandom(size - 8)

    async def one(index: int) -> None:
        waiting: set[int] = set()
        progress = asyncio.Event()

        def settled(number: int) -> Callable[[bool], None]:
            def note(accepted: bool) -> None:
                waiting.discard(number)
                progress.set()
                if accepted:
                    sent.accepted.append(number)
                else:
                    sent.refused += 1
            return note

        try:
            peer = await Peer.connect(port)
            link = await peer.sender(queue)
            number = (first + index) * NUMBERS
            while not cue.ends.is_set() and link.ended is None:
                if link.credit == 0 or link.credit >= WIDE or len(waiting) >= outstanding:
                    progress.clear()
                    peer.changed.clear()
                    await peer.changed.wait()
                    continue
                number += 1
                waiting.add(number)
                peer.transfer(link, message(struct.pack(">Q", number) + padding), settled(number))
                await peer.flush()
            deadline = time.monotonic() + LAST_WAIT
            while waiting and link.ended is None and time.monotonic() < deadline:
                peer.changed.clear()
                try:
                    await bounded(peer.changed.wait(), 1)
                except (TimeoutError, asyncio.TimeoutError):
                    pass
            if link.ended:
                sent.ended.append(link.ended)
            peer.drop()
        except Ended as error:
            sent.ended.append(str(error))
        sent.unknown.extend(waiting)

    await asyncio.gather(*(one(index) for index in range(connections)))
    return sent


async def deposit(
    cue: Cue, port: int, queue: str, count: int, size: int, expires: float | None = None, cued: bool = False,
) -> Sent:
    """Sends so many messages, and waits until they are accepted; all of them expire at the same time, if at any. If it is cued, it
    connects, and begins when it is told to come to an end."""
    peer = await Peer.connect(port)
    depositor = Depositor(peer, await peer.sender(queue), size)
    if cued:
        cue.there()
        await cue.ends.wait()
    for number in range(count):
        life = None if expires is None else max(1, round(1000 * (expires - time.time())))
        await depositor.send(number, life)
    await depositor.finish()
    peer.drop()
    return depositor.sent


async def scatter(cue: Cue, port: int, small: str, large: str, count: int, size: int) -> Sent:
    """Sends small messages to one queue, with a large one to another behind each; returns what it has of the small ones."""
    del cue
    peer = await Peer.connect(port)
    few, many = Depositor(peer, await peer.sender(small), 8), Depositor(peer, await peer.sender(large), size)
    for number in range(count):
        await few.send(number)
        await many.send(number)
        await many.finish(but=20)
    await few.finish()
    await many.finish()
    peer.drop()
    return few.sent


class Depositor:
    """Sends messages, and knows what has become of them."""

    def __init__(self, peer: Peer, link: Link, size: int):
        self.peer, self.link, self.padding, self.sent, self.count = peer, link, os.urandom(size - 8), Sent(), 0

    async def send(self, number: int, life: int | None = None) -> None:
        """Sends one when there is credit; it may live so many milliseconds."""
        await self._until(lambda: 0 < self.link.credit < WIDE)
        self.count += 1

        def settled(accepted: bool) -> None:
            if accepted:
                self.sent.accepted.append(number)
            else:
                self.sent.refused += 1

        self.peer.transfer(self.link, message(struct.pack(">Q", number) + self.padding, life), settled)
        await self.peer.flush()

    async def finish(self, but: int = 0) -> None:
        """Waits until all are answered but so many."""
        await self._until(lambda: self.count <= len(self.sent.accepted) + self.sent.refused + but)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.peer.changed.clear()
            await self.peer.changed.wait()
            if self.link.ended:
                raise Ended(self.link.ended)


async def chatter(cue: Cue, port: int, queue: str, connections: int) -> int:
    """Sends flows and nothing else, as fast as the broker reads."""
    count, flows, words = 0, 4_000, b""

    async def one() -> None:
        nonlocal count, words
        peer = await Peer.connect(port)
        link = await peer.receiver(queue, lambda *_: None)
        # The same for all: each has one link, on which nothing has come.
        words = words or b"".join(link.flow(1 + index % 2) for index in range(flows))
        while not cue.ends.is_set():
            peer.write(words)
            count += flows
            await peer.flush()
        # In order: the broker has read all of it.
        peer.close()
        await peer.lost

    await asyncio.gather(*(one() for _ in range(connections)))
    return count


# --- receivers --------------------------------------------------------------------------------------------------------------------


def number_of(payload: bytes) -> int:
    return struct.unpack_from(">Q", body_of(payload))[0]


class Management:
    """Requests to a queue's management node, one after the other."""

    def __init__(self, peer: Peer, queue: str):
        self.peer, self.node = peer, f"{queue}/$management"
        self.answers: asyncio.Queue[bytes] = asyncio.Queue()

    async def attach(self) -> "Management":
        self.responses = await self.peer.receiver(self.node, lambda _link, _number, payload: self.answers.put_nowait(payload), target="answers")
        self.requests = await self.peer.sender(self.node)
        self.responses.grant(1_000_000)
        return self

    async def is_empty(self) -> bool:
        """Whether peek finds nothing."""
        arguments = {"from-sequence-number": int64(0), "message-count": int32(1)}
        self.peer.transfer(self.requests, request("com.microsoft:peek-message", arguments, "answers"), lambda _accepted: None)
        return b"statusCode" in (answer := await self.answers.get()) and b"\x00\xcc" in answer


@dataclass
class Drained:
    numbers: array
    doubled: list[int]
    # How many had come when the load was told to hurry.
    slowly: int


async def drain(
    cue: Cue, port: int, queue: str, connections: int = 4, credit: int = 500, pause: float = 0.0, expected: int = 0,
) -> Drained:
    """Receives and completes everything, and as many messages as are expected. Until the end comes it dawdles, if there is a pause: half of the connections read a piece
    of what has come and then nothing for a while, the others think that long about each message. Then all hurry, until peek says
    that the queue is empty."""
    numbers, seen = array("Q"), Counter()
    came, slowly = time.monotonic(), 0

    def take(link: Link, delivery: int, payload: bytes) -> None:
        nonlocal came, slowly
        came = time.monotonic()
        slowly += not cue.ends.is_set()
        number = number_of(payload)
        numbers.append(number)
        seen[number] += 1
        link.accept(delivery, delivery)
        if link.received * 2 >= link.granted:
            link.grant(credit)

    async def reads_slowly(peer: Peer) -> None:
        assert peer.transport
        while not cue.ends.is_set():
            peer.transport.pause_reading()
            await asyncio.sleep(pause)
            peer.transport.resume_reading()
            # One piece of what the system holds.
            await asyncio.sleep(0)

    async def thinks(waiting: asyncio.Queue) -> None:
        while True:
            delivery = await waiting.get()
            if not cue.ends.is_set():
                await asyncio.sleep(pause)
            take(*delivery)

    peers, tasks = [], []
    for index in range(connections):
        peer = await Peer.connect(port)
        peers.append(peer)
        if pause and index % 2 == 0:
            waiting: asyncio.Queue = asyncio.Queue()
            link = await peer.receiver(queue, lambda *delivery, to=waiting: to.put_nowait(delivery))
            tasks.append(asyncio.create_task(thinks(waiting)))
        else:
            link = await peer.receiver(queue, take)
            if pause:
                tasks.append(asyncio.create_task(reads_slowly(peer)))
        link.grant(credit)
    if pause:
        await cue.ends.wait()
    control = await Management(await Peer.connect(port), queue).attach()
    # Peek finds what is locked as well, so nothing is overlooked.
    while len(numbers) < expected or time.monotonic() - came < 0.3 or not await control.is_empty():
        lost = [peer.wrong for peer in [*peers, control.peer] if peer.lost.done()]
        if lost:
            raise Ended(f"a receiver was lost: {lost}")
        await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    for peer in [*peers, control.peer]:
        peer.drop()
    return Drained(numbers, [number for number, count in seen.items() if count > 1], slowly)


# --- crowds -----------------------------------------------------------------------------------------------------------------------


@dataclass
class Crowd:
    """How long it took until all were in, and what they saw."""

    seconds: float
    # Why somebody came again.
    retries: Counter
    drained: Drained


async def persist(port: int, role: Callable[[Peer], Awaitable[Any]], retries: Counter) -> Any:
    """Connects until it is let in and `role` has done what it wants at its beginning, a little later each time, as SDKs do."""
    wait = 0.1

    async def enter() -> Any:
        return await role(await Peer.connect(port))

    while True:
        try:
            return await bounded(enter(), 30)
        except (OSError, Ended, asyncio.TimeoutError) as error:
            retries[type(error).__name__] += 1
            await asyncio.sleep(wait)
            wait = min(2 * wait, 2.0)


async def crowd(cue: Cue, port: int, queue: str, connections: int) -> Crowd:
    """So many receivers at once, each on a connection of its own and with credit for one message."""
    numbers, seen, retries = array("Q"), Counter(), Counter()

    def take(link: Link, delivery: int, payload: bytes) -> None:
        number = number_of(payload)
        numbers.append(number)
        seen[number] += 1
        link.accept(delivery, delivery)

    async def enter(peer: Peer) -> Peer:
        link = await peer.receiver(queue, take)
        link.grant(1)
        return peer

    began = time.monotonic()
    peers = await asyncio.gather(*(persist(port, enter, retries) for _ in range(connections)))
    seconds = time.monotonic() - began
    cue.there()
    await cue.ends.wait()
    drained = Drained(numbers, [number for number, count in seen.items() if count > 1], 0)
    # In order, so that every answer is read before.
    for peer in peers:
        peer.close()
    await asyncio.gather(*(peer.lost for peer in peers))
    return Crowd(seconds, retries, drained)


@dataclass
class Storm:
    """What came of connections that are all lost again and again."""

    # For each time: the seconds until all were back.
    back: list[float]
    retries: Counter
    sent: Sent
    # Numbers of messages that were completed, and the broker has said so; and those of which it has not.
    completed: array
    unsure: array
    doubled: list[int]


async def storm(cue: Cue, port: int, queue: str, connections: int, times: int, calm: float) -> Storm:
    """Connections that send and receive, each on one link for either; all are dropped at once without a word, and come back at once."""
    del cue
    sent, retries = Sent(), Counter()
    completed: Counter[int] = Counter()
    unsure: set[int] = set()
    waiting: set[int] = set()
    next_number = 0

    async def live(peer: Peer) -> Peer:
        nonlocal next_number

        def send() -> None:
            nonlocal next_number
            next_number += 1
            number = next_number
            waiting.add(number)

            def settled(accepted: bool) -> None:
                waiting.discard(number)
                if accepted:
                    sent.accepted.append(number)
                else:
                    sent.refused += 1
                if not peer.lost.done() and peer.transport and not peer.transport.is_closing():
                    send()

            peer.transfer(sender, message(struct.pack(">Q", number) + b"." * 200), settled)

        def take(link: Link, delivery: int, payload: bytes) -> None:
            number = number_of(payload)
            unsure.add(number)

            def done(agreed: bool) -> None:
                completed[number] += agreed

            link.complete(delivery, done)
            if link.received * 2 >= link.granted:
                link.grant(10)

        sender = await peer.sender(queue)
        (await peer.receiver(queue, take)).grant(10)
        while sender.credit == 0:
            peer.changed.clear()
            await peer.changed.wait()
            if peer.lost.done():
                raise Ended(peer.wrong)
        send()
        return peer

    back = []
    peers: list[Peer] = []
    for _ in range(times + 1):
        for peer in peers:
            peer.drop()
        began = time.monotonic()
        peers = await asyncio.gather(*(persist(port, live, retries) for _ in range(connections)))
        back.append(time.monotonic() - began)
        await asyncio.sleep(calm)
    for peer in peers:
        peer.drop()
    await asyncio.gather(*(peer.lost for peer in peers))
    sent.unknown.extend(waiting)
    doubled = [number for number, count in completed.items() if count > 1]
    return Storm(back, retries, sent, array("Q", completed.keys()), array("Q", unsure - completed.keys()), doubled)
