"""AMQP 1.0 by hand, on asyncio: a peer that reads and grants exactly as much as a test says, and no more.

What is written is put together from `strangers`; what is read is decoded here, as far as these tests look at it.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "strangers"))
from strangers import AMQP_HEADER, FALSE, NULL, SASL_HEADER, TRUE, composite, frame, string, uint  # noqa: E402

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
ACCEPTED = b"\x00\x53\x24\x45"
FRAME_BYTES = 65_536
# The session window of a peer that does not want one to matter.
WIDE = 0x7FFF_FFFF


@dataclass
class Described:
    code: int
    value: Any


def decode(data: bytes, at: int) -> tuple[Any, int]:
    """Returns the value that begins at `at`, and where it ends."""
    code = data[at]
    at += 1
    if code == 0x00:
        descriptor, at = decode(data, at)
        value, at = decode(data, at)
        return Described(descriptor, value), at
    if code in CONSTANTS:
        return CONSTANTS[code], at
    if code in FIXED:
        form = FIXED[code]
        return form.unpack_from(data, at)[0], at + form.size
    if code == 0x98:
        return uuid.UUID(bytes=bytes(data[at:at + 16])), at + 16
    wide = code & 0x10
    length = struct.unpack_from(">I", data, at)[0] if wide else data[at]
    at += 4 if wide else 1
    end = at + length
    kind = code | 0x10
    if kind == 0xB0:
        return bytes(data[at:end]), end
    if kind in (0xB1, 0xB3):
        return bytes(data[at:end]).decode(), end
    if kind in (0xD0, 0xD1):
        count = struct.unpack_from(">I", data, at)[0] if wide else data[at]
        at += 4 if wide else 1
        values = []
        for _ in range(count):
            value, at = decode(data, at)
            values.append(value)
        return (dict(zip(values[::2], values[1::2])) if kind == 0xD1 else values), end
    if kind == 0xF0:
        # Nothing here looks into an array.
        return bytes(data[at:end]), end
    raise ValueError(f"no type has the code {code:#x}")


CONSTANTS = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0, 0x45: []}
FIXED = {
    code: struct.Struct(">" + form)
    for code, form in {
        0x50: "B", 0x51: "b", 0x52: "B", 0x53: "B", 0x54: "b", 0x55: "b", 0x56: "?", 0x60: "H", 0x61: "h", 0x70: "I",
        0x71: "i", 0x72: "f", 0x80: "Q", 0x81: "q", 0x82: "d", 0x83: "q",
    }.items()
}


def message(body: bytes, life: int | None = None) -> bytes:
    """A message with one data section; it is durable, and may live so many milliseconds."""
    header = composite(0x70, TRUE) if life is None else composite(0x70, TRUE, NULL, uint(life))
    return header + b"\x00\x53\x75\xb0" + struct.pack(">I", len(body)) + body


def body_of(payload: bytes) -> bytes:
    """The bytes of a message's data section."""
    at = 0
    while at < len(payload):
        section, at = decode(payload, at)
        if section.code == 0x75:
            return section.value
    return b""


def text_map(pairs: dict[str, bytes]) -> bytes:
    """A map from text to values that are encoded already."""
    body = b"".join(string(name) + value for name, value in pairs.items())
    return b"\xd1" + struct.pack(">II", len(body) + 4, 2 * len(pairs)) + body


def request(operation: str, arguments: dict[str, bytes], reply_to: str) -> bytes:
    """A request to a management node."""
    properties = composite(0x73, string(str(uuid.uuid4())), NULL, NULL, NULL, string(reply_to))
    application = b"\x00\x53\x74" + text_map({"operation": string(operation)})
    return properties + application + b"\x00\x53\x77" + text_map(arguments)


def int32(number: int) -> bytes:
    return b"\x71" + struct.pack(">i", number)


def int64(number: int) -> bytes:
    return b"\x81" + struct.pack(">q", number)


class Ended(Exception):
    """The connection or the link has ended."""


@dataclass
class Link:
    """One end of a link."""

    peer: "Peer"
    handle: int
    attached: asyncio.Future
    ended: str | None = None
    # Of a sender: up to which of its deliveries the broker takes messages.
    limit: int = 0
    sent: int = 0
    # Of a receiver: what is done with each delivery.
    handler: Callable[["Link", int, bytes], None] | None = None
    received: int = 0
    granted: int = 0
    partial: list[bytes] = field(default_factory=list)
    partial_number: int = 0

    def grant(self, credit: int) -> None:
        """Lets so many more deliveries come."""
        self.granted += credit
        self.peer.write(self.flow(self.granted - self.received))

    def flow(self, credit: int) -> bytes:
        """A flow with so much credit."""
        peer = self.peer
        return frame(composite(
            FLOW, uint(0), uint(peer.window), uint(peer.deliveries), uint(WIDE), uint(self.handle), uint(self.received), uint(credit),
        ))

    def accept(self, first: int, last: int) -> None:
        """Settles deliveries with accepted, by their numbers, without waiting for an answer."""
        body = composite(DISPOSITION, TRUE, uint(first), uint(last), TRUE, ACCEPTED)
        self.peer.write(frame(body))

    def complete(self, delivery: int, done: Callable[[bool], None]) -> None:
        """Asks for accepted, as SDKs do; `done` is called with whether the broker has agreed."""
        self.peer.completing[delivery] = done
        self.peer.write(frame(composite(DISPOSITION, TRUE, uint(delivery), uint(delivery), FALSE, ACCEPTED)))

    @property
    def credit(self) -> int:
        return (self.limit - self.sent) & 0xFFFF_FFFF


class Peer(asyncio.Protocol):
    """A connection with one session."""

    def __init__(self, window: int):
        self.window = window
        self.transport: asyncio.Transport | None = None
        self.buffer = bytearray()
        self.headers = 2
        self.flushed = 0
        self.links: dict[int, Link] = {}
        self.deliveries = 0
        # Deliveries that were sent and are not settled: what is called when they are.
        self.unsettled: dict[int, Callable[[bool], None]] = {}
        # Deliveries that came and are asked to be completed: what is called when they are.
        self.completing: dict[int, Callable[[bool], None]] = {}
        self.opened: asyncio.Future = asyncio.get_running_loop().create_future()
        self.lost: asyncio.Future = asyncio.get_running_loop().create_future()
        self.writable = asyncio.Event()
        self.writable.set()
        self.changed = asyncio.Event()
        self.wrong: str | None = None

    @classmethod
    async def connect(cls, port: int, window: int = WIDE, idle: int | None = None) -> "Peer":
        """Connects as ANONYMOUS, opens and begins; everything is said at once, as a client in a hurry does."""
        loop = asyncio.get_running_loop()
        _, peer = await loop.create_connection(lambda: cls(window), "127.0.0.1", port)
        init = frame(composite(0x41, b"\xa3\x09ANONYMOUS", b"\xa0\x00"), kind=1)
        timeout = uint(idle) if idle else NULL
        open_ = frame(composite(OPEN, string(f"overload-{id(peer):x}"), string("localhost"), uint(FRAME_BYTES), NULL, timeout))
        begin = frame(composite(BEGIN, NULL, uint(0), uint(window), uint(WIDE)))
        peer.write(SASL_HEADER + init + AMQP_HEADER + open_ + begin)
        await peer.opened
        return peer

    # --- what is written ---------------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self.transport is None or self.transport.is_closing():
            raise Ended(self.wrong or "closed")
        self.transport.write(data)

    async def flush(self) -> None:
        """Waits until the broker has taken nearly all that was written; others have their turn now and then."""
        self.flushed += 1
        if self.writable.is_set() and not self.lost.done():
            if self.flushed % 64 == 0:
                await asyncio.sleep(0)
            return
        waits = asyncio.ensure_future(self.writable.wait())
        await asyncio.wait([waits, self.lost], return_when=asyncio.FIRST_COMPLETED)
        waits.cancel()
        if self.lost.done():
            raise Ended(self.wrong or "closed")

    def _attach(self, role: bytes, source: bytes, target: bytes, modes: bytes) -> Link:
        handle = len(self.links)
        link = Link(self, handle, asyncio.get_running_loop().create_future())
        self.links[handle] = link
        name = string(f"link-{id(self):x}-{handle}")
        last = [NULL, NULL, uint(0)] if role == FALSE else []
        self.write(frame(composite(ATTACH, name, uint(handle), role, modes[:2], modes[2:], source, target, *last)))
        return link

    async def sender(self, address: str) -> Link:
        link = self._attach(FALSE, composite(0x28), composite(0x29, string(address)), b"\x50\x00\x50\x00")
        await link.attached
        return link

    async def receiver(
        self, address: str, handler: Callable[[Link, int, bytes], None], deletes: bool = False, target: str | None = None,
    ) -> Link:
        modes = b"\x50\x01\x50\x00" if deletes else b"\x50\x00\x50\x00"
        aim = composite(0x29, string(target)) if target else composite(0x29)
        link = self._attach(TRUE, composite(0x28, string(address)), aim, modes)
        link.handler = handler
        await link.attached
        return link

    def transfer(
        self, link: Link, payload: bytes, settled: Callable[[bool], None] | None = None, more_to_come: bool = False,
    ) -> None:
        """Writes a delivery; `settled` is called with whether it was accepted. It has no end if there is more to come."""
        number = self.deliveries
        self.deliveries += 1
        link.sent += 1
        tag = b"\xa0\x04" + struct.pack(">I", number)
        if settled:
            self.unsettled[number] = settled
        size = FRAME_BYTES - 64
        pieces = [payload[at:at + size] for at in range(0, len(payload), size)]
        frames = []
        for index, piece in enumerate(pieces):
            more = TRUE if more_to_come or index + 1 < len(pieces) else FALSE
            head = [uint(number), tag, uint(0)] if index == 0 else [NULL, NULL, NULL]
            frames.append(frame(composite(TRANSFER, uint(link.handle), *head, FALSE if settled else TRUE, more) + piece))
        self.write(b"".join(frames))

    def close(self) -> None:
        """Closes in order: the broker ends the connection."""
        self.write(frame(composite(CLOSE)))

    def drop(self) -> None:
        """Goes without a word."""
        if self.transport is not None:
            self.transport.abort()

    # --- what is read ------------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.wrong = self.wrong or (repr(error) if error else "closed by the broker")
        for future in [self.opened, *(link.attached for link in self.links.values())]:
            if not future.done():
                future.set_exception(Ended(self.wrong))
                # Whoever waits hears it; nobody must.
                future.exception()
        for link in self.links.values():
            link.ended = link.ended or self.wrong
        if not self.lost.done():
            self.lost.set_result(None)
        self.changed.set()

    def data_received(self, data: bytes) -> None:
        buffer = self.buffer
        buffer += data
        at = 0
        while len(buffer) - at >= 8:
            if self.headers and buffer[at:at + 4] == b"AMQP":
                self.headers -= 1
                at += 8
                continue
            size, offset, kind, _ = struct.unpack_from(">IBBH", buffer, at)
            if len(buffer) - at < size:
                break
            if size > 8 and kind == 0:
                self._take(bytes(buffer[at + 4 * offset:at + size]))
            at += size
        del buffer[:at]
        self.changed.set()

    def _take(self, body: bytes) -> None:
        performative, end = decode(body, 0)
        fields, code = performative.value, performative.code
        if code == TRANSFER:
            self._take_transfer(fields, body[end:])
        elif code == DISPOSITION:
            first = fields[1]
            last = fields[2] if len(fields) > 2 and fields[2] is not None else first
            accepted = len(fields) > 4 and fields[4] is not None and fields[4].code == 0x24
            # What the broker says as a receiver is about what was sent to it.
            asked = self.unsettled if fields[0] else self.completing
            for number in range(first, last + 1):
                if settled := asked.pop(number, None):
                    settled(accepted)
        elif code == FLOW:
            if len(fields) > 6 and fields[4] is not None and (link := self.links.get(fields[4])):
                link.limit = (fields[5] or 0) + fields[6]
        elif code == ATTACH:
            link = self.links[fields[1]]
            if not link.attached.done():
                link.attached.set_result(link)
        elif code == DETACH:
            link = self.links[fields[0]]
            error = fields[2].value if len(fields) > 2 and fields[2] else None
            link.ended = f"{error[0]}: {error[1]}" if error else "detached"
        elif code == BEGIN:
            if not self.opened.done():
                self.opened.set_result(None)
        elif code == CLOSE:
            error = fields[0].value if fields and fields[0] else None
            self.wrong = f"{error[0]}: {error[1]}" if error else "closed by the broker"
            self.drop()

    def _take_transfer(self, fields: list, payload: bytes) -> None:
        link = self.links[fields[0]]
        if fields[1] is not None:
            link.partial_number = fields[1]
        if len(fields) > 5 and fields[5]:
            link.partial.append(payload)
            return
        if link.partial:
            payload = b"".join([*link.partial, payload])
            link.partial.clear()
        link.received += 1
        if link.handler:
            link.handler(link, link.partial_number, payload)
