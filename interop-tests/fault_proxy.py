#!/usr/bin/env python3
"""A proxy between a suite's client and its broker, which causes the faults of networks and of the service.

    fault_proxy.py [PORT_OF_THE_BROKER]     by default JITNEY_AMQP_PORT

It prints the port on 127.0.0.1 at which it listens. It answers each line of its input with a line, the number of links or connections
that it found:

    detach TEXT    force-detaches every link whose attach frame contains TEXT (`amqp:link:detach-forced`), as the service does;
                   the connection and the other links stay
    close          closes every connection with `amqp:connection:forced`
    cut            resets every connection
    cut-after N    resets every connection, once, when clients have sent N bytes more, counted in whole frames
    hold           stops traffic in both directions on all connections, old and new, which stay open
    hold-answers   stops what the broker sends, on all connections
    release        lets traffic go on
    refuse         resets new connections at once
    accept         takes new connections again
    count          says how many connections there have been, with those that were refused

It ends with its input. Of protocols without TLS it knows AMQP; anything else is forwarded as it comes. A forced detach is sent to both sides at once: to the client as from the
service, to the broker as from the client. Frames of that link that were sent before the detach arrived are dropped, as the service drops
them, and so are the answers to the detach.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from dataclasses import dataclass, field

ATTACH, FLOW, TRANSFER, DETACH, END, CLOSE = 0x12, 0x13, 0x14, 0x16, 0x17, 0x18
# Where a performative has its handle.
HANDLE = {ATTACH: 1, FLOW: 4, TRANSFER: 0, DETACH: 0}


@dataclass
class End:
    """The channel and handle of a link on one of its two sides."""

    channel: int
    handle: int


@dataclass
class Link:
    name: bytes
    # The attach frames of both sides, for `detach TEXT`.
    said: bytes
    ends: dict[str, End] = field(default_factory=dict)
    # Force-detached: frames from these sides are dropped, up to their own detach.
    waits_for: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Passage:
    """One connection."""

    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    links: list[Link] = field(default_factory=list)
    # Closed or reset by command: frames of the client are dropped.
    closed: bool = False

    def passes(self, side: str, frame: bytes) -> bool:
        """Keeps track of the links; returns whether to forward the frame."""
        if self.closed:
            return False
        kind = performative(frame)
        if kind == END:
            # The end of a session ends its links.
            channel = struct.unpack(">H", frame[6:8])[0]
            for link in [each for each in self.links if side in each.ends and each.ends[side].channel == channel]:
                self.leave(link, side)
        if kind not in HANDLE:
            return True
        channel, found = struct.unpack(">H", frame[6:8])[0], fields(frame)
        end = End(channel, found[HANDLE[kind]])
        if end.handle is None:
            return True
        if kind == ATTACH:
            link = next((each for each in self.links if each.name == found[0] and side not in each.ends), None)
            if not link:
                link = Link(found[0], b"")
                self.links.append(link)
            link.ends[side] = end
            link.said += frame
            return True
        # A handle may be in use again before the other side has detached the link that had it before.
        links = [each for each in self.links if each.ends.get(side) == end]
        link = next((each for each in links if side in each.waits_for), links[0] if links else None)
        if not link:
            return True
        dropped = side in link.waits_for
        if kind == DETACH:
            self.leave(link, side)
        return not dropped

    def leave(self, link: Link, side: str) -> None:
        """One side has detached a link."""
        link.waits_for.discard(side)
        del link.ends[side]
        if not link.ends:
            self.links.remove(link)

    def detach(self, text: bytes) -> int:
        """Sends the service's detach to the client, and the client's to the broker."""
        found = [each for each in self.links if text in each.said and len(each.ends) == 2 and not each.waits_for]
        for link in found:
            link.waits_for = {"client", "broker"}
            end = link.ends["broker"]
            self.client.write(ended(end.channel, DETACH, number(end.handle) + b"\x41", 2, error("amqp:link:detach-forced")))
            end = link.ends["client"]
            self.broker.write(ended(end.channel, DETACH, number(end.handle) + b"\x41", 2))
        return len(found)

    def close(self) -> None:
        """Sends the service's close to the client, and resets the broker's connection."""
        self.closed = True
        self.client.write(ended(0, CLOSE, b"", 0, error("amqp:connection:forced")))
        self.broker.transport.abort()

    def cut(self) -> None:
        self.closed = True
        for writer in (self.client, self.broker):
            writer.transport.abort()


class FaultProxy:
    def __init__(self, port: int):
        self.port = port
        self.passages: set[Passage] = set()
        # Whether what a side sends may pass.
        self.open = {side: asyncio.Event() for side in ("client", "broker")}
        self.release()
        self.refuses = False
        self.count = 0
        # How many bytes of clients are left before all is reset.
        self.until_cut: int | None = None

    def release(self) -> None:
        for event in self.open.values():
            event.set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count += 1
        if self.refuses:
            writer.transport.abort()
            return
        await self.open["client"].wait()
        try:
            far, back = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.transport.abort()
            return
        passage = Passage(writer, back)
        self.passages.add(passage)
        up = asyncio.ensure_future(self.carry(passage, "client", reader, back))
        down = asyncio.ensure_future(self.carry(passage, "broker", far, writer))
        await asyncio.wait([up, down], return_when=asyncio.FIRST_COMPLETED)
        if passage.closed:
            # The client may answer the close and end the connection itself.
            await asyncio.wait([up], timeout=10)
        self.passages.discard(passage)
        for task in (up, down):
            task.cancel()
        # Everything written before is flushed.
        writer.close()
        back.close()

    async def carry(self, passage: Passage, side: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forwards the frames of one side to the other."""
        try:
            head = await reader.readexactly(8)
            is_amqp = head[:4] == b"AMQP"
            frame = head
            while frame:
                await self.open[side].wait()
                if passage.passes(side, frame) if is_amqp else not passage.closed:
                    writer.write(frame)
                    await writer.drain()
                if side == "client":
                    self.note(len(frame))
                frame = await next_frame(reader) if is_amqp else await reader.read(65536)
        except (OSError, asyncio.IncompleteReadError):
            pass

    def note(self, length: int) -> None:
        """Notes what a client has sent."""
        if self.until_cut is not None:
            self.until_cut -= length
            if self.until_cut <= 0:
                self.until_cut = None
                for each in self.living():
                    each.cut()

    def living(self) -> list[Passage]:
        return [each for each in self.passages if not each.closed]

    def obey(self, line: str) -> int:
        verb, _, rest = line.strip().partition(" ")
        living = self.living()
        if verb == "detach" and rest:
            return sum(each.detach(rest.encode()) for each in living)
        if verb in ("close", "cut"):
            for each in living:
                getattr(each, verb)()
        elif verb == "cut-after" and rest:
            self.until_cut = int(rest)
        elif verb in ("hold", "hold-answers"):
            for side in ("broker",) if verb == "hold-answers" else self.open:
                self.open[side].clear()
        elif verb == "release":
            self.release()
        elif verb in ("refuse", "accept"):
            self.refuses = verb == "refuse"
        elif verb == "count":
            return self.count
        else:
            raise SystemExit(f"fault_proxy.py: {line!r}?")
        return len(living)


async def next_frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame or protocol header of AMQP."""
    head = await reader.readexactly(8)
    return head if head[:4] == b"AMQP" else head + await reader.readexactly(struct.unpack(">I", head[:4])[0] - 8)


def performative(frame: bytes) -> int | None:
    """The code of an AMQP frame's performative; none of a SASL frame, an empty one or a protocol header."""
    if frame[:4] == b"AMQP" or frame[5] != 0 or len(frame) <= frame[4] * 4:
        return None
    body = frame[frame[4] * 4:]
    return body[2] if body[1] == 0x53 else body[9]


def fields(frame: bytes) -> list[int | bytes | None]:
    """The first fields of a performative, those that are numbers or texts; none for the others."""
    at = frame[4] * 4
    at += 3 if frame[at + 1] == 0x53 else 10
    kind = frame[at]
    if kind == 0x45:
        return [None] * 5
    count, at = (frame[at + 2], at + 3) if kind == 0xC0 else (struct.unpack(">I", frame[at + 5:at + 9])[0], at + 9)
    found: list[int | bytes | None] = []
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
            value = frame[at + 1:at + size] if kind == 0xA1 else None
        elif kind >> 4 in (0xB, 0xD, 0xF):
            size = 4 + struct.unpack(">I", frame[at:at + 4])[0]
            value = frame[at + 4:at + size] if kind == 0xB1 else None
        else:
            size = {0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}[kind >> 4]
        found.append(value)
        at += size
    return found + [None] * (5 - len(found))


def number(value: int) -> bytes:
    return b"\x70" + struct.pack(">I", value)


def error(condition: str) -> bytes:
    text = b"The service ends it, for reasons of its own."
    inner = b"\xa3" + bytes([len(condition)]) + condition.encode() + b"\xa1" + bytes([len(text)]) + text + b"\x40"
    return b"\x00\x53\x1d\xd0" + struct.pack(">II", len(inner) + 4, 3) + inner


def ended(channel: int, kind: int, before: bytes, count: int, error: bytes = b"") -> bytes:
    """A detach or a close; `before` are the fields before its error, `count` of them."""
    body = b"\x00\x53" + bytes([kind]) + b"\xd0" + struct.pack(">II", len(before) + len(error) + 4, count + bool(error)) + before + error
    return struct.pack(">IBBH", len(body) + 8, 2, 0, channel) + body


async def main() -> None:
    proxy = FaultProxy(int(sys.argv[1] if len(sys.argv) > 1 else os.environ["JITNEY_AMQP_PORT"]))
    server = await asyncio.start_server(proxy.take, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        print(proxy.obey(line.decode()), flush=True)
    # Open connections end with the process.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
