#!/usr/bin/env python3
"""Stands between a suite's client and its broker, and does to the client what networks and the service do.

    between.py [PORT_OF_THE_BROKER]     by default JITNEY_AMQP_PORT

prints the port on 127.0.0.1 that it listens at, and then answers each line that it reads with one line, a number:

    detach TEXT    every link whose attach frame contains TEXT is force-detached (`amqp:link:detach-forced`), as the service does;
                   its connection and the other links stay. How many they were.
    close          every connection is closed with `amqp:connection:forced`. How many they were.
    cut            every connection is reset, without a word. How many they were.
    hold           from now on nothing passes, in either direction, on connections old or new; they stay open
    release        what was held goes on

It ends when its input does. AMQP without TLS only. Between the forced detach and the client's answer the broker's frames for that link
are dropped, and so is the broker's answer to the detach, which the client does not expect: both sides see a link that ended in good order.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from dataclasses import dataclass, field

ATTACH, FLOW, TRANSFER, DETACH = 0x12, 0x13, 0x14, 0x16
# Where a performative has its handle.
HANDLE = {ATTACH: 1, FLOW: 4, TRANSFER: 0, DETACH: 0}


@dataclass
class Link:
    channel: int
    handle: int
    attach: bytes
    # Detached by us; the broker does not know it yet.
    forced: bool = False


@dataclass(eq=False)
class Passage:
    """One connection."""

    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    links: dict[tuple[int, int], Link] = field(default_factory=dict)
    # Closed by us: the broker's answer to the client's close is not for the client.
    closed: bool = False

    def end(self) -> None:
        for writer in (self.client, self.broker):
            writer.transport.abort()


class Between:
    def __init__(self, port: int):
        self.port = port
        self.passages: set[Passage] = set()
        self.open = asyncio.Event()
        self.open.set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.open.wait()
        try:
            far, back = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.transport.abort()
            return
        passage = Passage(writer, back)
        self.passages.add(passage)
        tasks = [asyncio.ensure_future(self.up(reader, back)), asyncio.ensure_future(self.down(passage, far))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.passages.discard(passage)
            for task in tasks:
                task.cancel()
            # An end in good order, if it was one, with all that was written before.
            writer.close()
            back.close()

    async def up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """From the client to the broker, as it is."""
        try:
            while data := await reader.read(65536):
                await self.open.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass

    async def down(self, passage: Passage, reader: asyncio.StreamReader) -> None:
        """From the broker to the client, frame by frame."""
        try:
            while True:
                head = await reader.readexactly(8)
                frame = head if head[:4] == b"AMQP" else head + await reader.readexactly(struct.unpack(">I", head[:4])[0] - 8)
                await self.open.wait()
                if self.passes(passage, frame):
                    passage.client.write(frame)
                    await passage.client.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass

    def passes(self, passage: Passage, frame: bytes) -> bool:
        """Notes what links there are; tells whether the client is to see the frame."""
        if passage.closed:
            return False
        kind = performative(frame)
        if kind not in HANDLE:
            return True
        channel, handle = struct.unpack(">H", frame[6:8])[0], fields(frame)[HANDLE[kind]]
        if handle is None:
            return True
        place = (channel, handle)
        link = passage.links.get(place)
        if kind == ATTACH:
            passage.links[place] = Link(channel, handle, frame)
            return True
        if kind == DETACH and link:
            del passage.links[place]
        return not (link and link.forced)

    def detach(self, text: str) -> int:
        found = 0
        for passage in [each for each in self.passages if not each.closed]:
            for link in passage.links.values():
                if text.encode() in link.attach and not link.forced:
                    link.forced = True
                    found += 1
                    passage.client.write(ended(link.channel, DETACH, number(link.handle) + b"\x41", 2, "amqp:link:detach-forced"))
        return found

    def close(self) -> int:
        passages = [each for each in self.passages if not each.closed]
        for each in passages:
            each.client.write(ended(0, 0x18, b"", 0, "amqp:connection:forced"))
            each.closed = True
        return len(passages)

    def cut(self) -> int:
        passages = list(self.passages)
        for each in passages:
            each.end()
        return len(passages)

    def obey(self, line: str) -> int:
        verb, _, rest = line.strip().partition(" ")
        if verb == "detach" and rest:
            return self.detach(rest)
        if verb == "close":
            return self.close()
        if verb == "cut":
            return self.cut()
        if verb == "hold":
            self.open.clear()
            return len(self.passages)
        if verb == "release":
            self.open.set()
            return len(self.passages)
        raise SystemExit(f"between.py: {line!r}?")


def performative(frame: bytes) -> int | None:
    """The code of an AMQP frame's performative; none of a SASL frame, an empty one or a protocol header."""
    if frame[:4] == b"AMQP" or frame[5] != 0 or len(frame) <= frame[4] * 4:
        return None
    body = frame[frame[4] * 4:]
    return {0x53: body[2], 0x80: body[9]}[body[1]]


def fields(frame: bytes) -> list[int | None]:
    """The first fields of a performative, those that are numbers; none for the others."""
    at = frame[4] * 4
    at += 3 if frame[at + 1] == 0x53 else 10
    kind = frame[at]
    if kind == 0x45:
        return [None] * 5
    count, at = (frame[at + 2], at + 3) if kind == 0xC0 else (struct.unpack(">I", frame[at + 5:at + 9])[0], at + 9)
    found: list[int | None] = []
    while len(found) < min(count, 5):
        kind, at = frame[at], at + 1
        value = None
        if kind in (0x40, 0x41, 0x42, 0x43, 0x44, 0x45):
            size, value = 0, 0 if kind in (0x43, 0x44) else None
        elif kind in (0x52, 0x53, 0x50):
            size, value = 1, frame[at]
        elif kind == 0x70:
            size, value = 4, struct.unpack(">I", frame[at:at + 4])[0]
        elif kind >> 4 in (0xA, 0xC, 0xE):
            size = 1 + frame[at]
        elif kind >> 4 in (0xB, 0xD, 0xF):
            size = 4 + struct.unpack(">I", frame[at:at + 4])[0]
        else:
            size = {0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}[kind >> 4]
        found.append(value)
        at += size
    return found + [None] * (5 - len(found))


def number(value: int) -> bytes:
    return b"\x70" + struct.pack(">I", value)


def ended(channel: int, kind: int, before: bytes, count: int, condition: str) -> bytes:
    """A detach or a close with an error."""
    text = b"The service ends it, for reasons of its own."
    inner = b"\xa3" + bytes([len(condition)]) + condition.encode() + b"\xa1" + bytes([len(text)]) + text + b"\x40"
    error = b"\x00\x53\x1d\xd0" + struct.pack(">II", len(inner) + 4, 3) + inner
    body = b"\x00\x53" + bytes([kind]) + b"\xd0" + struct.pack(">II", len(before) + len(error) + 4, count + 1) + before + error
    return struct.pack(">IBBH", len(body) + 8, 2, 0, channel) + body


async def main() -> None:
    between = Between(int(sys.argv[1] if len(sys.argv) > 1 else os.environ["JITNEY_AMQP_PORT"]))
    server = await asyncio.start_server(between.take, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        print(between.obey(line.decode()), flush=True)
    # What is still open ends with the process.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
