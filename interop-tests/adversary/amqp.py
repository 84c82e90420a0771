"""AMQP 1.0 by hand, on asyncio: a peer that reads and grants exactly as much as a test says, and no more.

What is written is put together here byte by byte; what is read is decoded as far as these tests look at it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

SASL_HEADER, AMQP_HEADER = b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00"
NULL, TRUE, FALSE = b"\x40", b"\x41", b"\x42"
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
ACCEPTED = b"\x00\x53\x24\x45"
FRAME_BYTES = 65_536
# Bytes of a message in a frame: with what is before them, no more than a client may send before its token is accepted
# (limits::FRAME_SIZE_UNAUTHENTICATED_MAX).
PIECE_BYTES = 32_000
# The session window of a peer that does not want one to matter.
WIDE = 0x7FFF_FFFF
# How long an open or an attach waits for the broker's, seconds: longer than a broker that has too much to do takes.
ANSWER_WAIT = 60.0


# A shared access key's name and the key.
Key = tuple[str, str]
T = TypeVar("T")


async def bounded(what: Awaitable[T], seconds: float) -> T:
    """Waits so long at most, TimeoutError. Who is cancelled meanwhile ends, which is not so with `asyncio.wait_for` before Python 3.12: it
    goes on if the answer has just come, and whoever cancelled it waits for ever."""
    async with asyncio.timeout(seconds):
        return await what


def string(text: str) -> bytes:
    data = text.encode()
    return b"\xb1" + struct.pack(">I", len(data)) + data


def symbol(text: str) -> bytes:
    data = text.encode()
    return b"\xb3" + struct.pack(">I", len(data)) + data


def binary(data: bytes) -> bytes:
    return b"\xb0" + struct.pack(">I", len(data)) + data


def uint(number: int) -> bytes:
    return b"\x70" + struct.pack(">I", number)


def listed(*fields: bytes) -> bytes:
    body = b"".join(fields)
    return b"\xd0" + struct.pack(">II", len(body) + 4, len(fields)) + body


def composite(code: int, *fields: bytes) -> bytes:
    return b"\x00\x53" + bytes([code]) + listed(*fields)


def frame(body: bytes, kind: int = 0, channel: int = 0) -> bytes:
    return struct.pack(">IBBH", len(body) + 8, 2, kind, channel) + body


def hello(key: Key | None = None, container: str = "adversary", window: int = WIDE, idle: int | None = None, jms: bool = False,
          host: str = "localhost") -> bytes:
    """All that comes before a link: SASL (ANONYMOUS, or PLAIN with a key), open, begin; said at once, as a client in a hurry does."""
    if key is None:
        init = composite(0x41, symbol("ANONYMOUS"), binary(b""))
    else:
        init = composite(0x41, symbol("PLAIN"), binary(b"\0" + key[0].encode() + b"\0" + key[1].encode()))
    timeout = uint(idle) if idle else NULL
    properties = symbol_map({"com.microsoft:is-client-provider": TRUE}) if jms else NULL
    desired = symbol("SHARED-SUBS") if jms else NULL
    open_ = composite(OPEN, string(container), string(host), uint(FRAME_BYTES), NULL, timeout, NULL, NULL, NULL, desired, properties)
    begin = composite(BEGIN, NULL, uint(0), uint(window), uint(WIDE))
    return SASL_HEADER + frame(init, kind=1) + AMQP_HEADER + frame(open_) + frame(begin)


def attach(handle: int, name: str, role: bytes, source: bytes, target: bytes, modes: bytes = b"\x50\x00\x50\x00") -> bytes:
    """The attach of a receiver (role TRUE) or of a sender, in a frame."""
    last = [NULL, NULL, uint(0)] if role == FALSE else []
    return frame(composite(ATTACH, string(name), uint(handle), role, modes[:2], modes[2:], source, target, *last))


def source(address: str, filters: bytes = NULL, durable: bool = False, capability: str = "") -> bytes:
    """A source; one that is durable outlives its link."""
    kept = [uint(2), symbol("never")] if durable else [NULL, NULL]
    offered = symbol(capability) if capability else NULL
    return composite(0x28, string(address), *kept, NULL, NULL, NULL, NULL, filters, NULL, NULL, offered)


def target(address: str) -> bytes:
    return composite(0x29, string(address))


COORDINATOR = composite(0x30)


def selector(text: str) -> bytes:
    """A filter set with a selector."""
    described = b"\x00\x80" + struct.pack(">Q", 0x468C_0000_0004) + string(text)
    return symbol_map({"apache.org:selector-filter:string": described})


def sends(*payloads: bytes, handle: int = 0, first: int = 0, state: bytes = NULL, form: int = 0) -> bytes:
    """Transfers of one frame each, unsettled."""
    frames = []
    for number, payload in enumerate(payloads, first):
        head = [uint(handle), uint(number), b"\xa0\x04" + struct.pack(">I", number), uint(form), FALSE, FALSE, NULL, state]
        frames.append(frame(composite(TRANSFER, *head) + payload))
    return b"".join(frames)


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
    return header + section(0x75, binary(body))


def section(code: int, value: bytes) -> bytes:
    return b"\x00\x53" + bytes([code]) + value


def grouped(session: str, body: bytes) -> bytes:
    """A message of a message session."""
    return composite(0x73, *[NULL] * 10, string(session)) + section(0x75, binary(body))


def batch(messages: list[bytes]) -> bytes:
    """The payload of a batch (message-format BATCH)."""
    return b"".join(section(0x75, binary(each)) for each in messages)


BATCH = 0x8001_3700


def body_of(payload: bytes) -> bytes:
    """The bytes of a message's data section."""
    at = 0
    while at < len(payload):
        section, at = decode(payload, at)
        if section.code == 0x75:
            return section.value
    return b""


def mapped(entries: list[bytes]) -> bytes:
    """A map of keys and values, one after the other, that are encoded already."""
    body = b"".join(entries)
    return b"\xd1" + struct.pack(">II", len(body) + 4, len(entries)) + body


def text_map(pairs: dict[str, bytes]) -> bytes:
    """A map from text to values that are encoded already."""
    return mapped([part for name, value in pairs.items() for part in (string(name), value)])


def symbol_map(pairs: dict[str, bytes]) -> bytes:
    """A map from symbols to values that are encoded already."""
    return mapped([part for name, value in pairs.items() for part in (symbol(name), value)])


def request(operation: str, arguments: dict[str, bytes], reply_to: str) -> bytes:
    """A request to a management node."""
    return request_with(operation, text_map(arguments), reply_to)


def request_with(operation: str, body: bytes, reply_to: str, **properties: str) -> bytes:
    """A request whose body is any value, with further application-properties."""
    head = composite(0x73, string(str(uuid.uuid4())), NULL, NULL, NULL, string(reply_to))
    named = {"operation": string(operation), **{name: string(text) for name, text in properties.items()}}
    return head + section(0x74, text_map(named)) + section(0x77, body)


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
        # Transactions that were declared, by their ids.
        self.declared: list[bytes] = []

    @classmethod
    async def connect(
        cls, port: int, window: int = WIDE, idle: int | None = None, key: Key | None = None, container: str | None = None, jms: bool = False,
        reads: bool = True, address: str = "127.0.0.1", host: str = "localhost",
    ) -> "Peer":
        """Connects from an address, opens and begins: as ANONYMOUS, or with a key. Of what one that does not read is sent the system keeps
        little."""
        loop = asyncio.get_running_loop()
        own = socket.socket()
        if not reads:
            # Few bytes on this side, and small segments, of which the other side's buffer is a multiple.
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        own.bind((address, 0))
        own.setblocking(False)
        await loop.sock_connect(own, ("127.0.0.1", port))
        _, peer = await loop.create_connection(lambda: cls(window), sock=own)
        peer.write(hello(key, container or f"adversary-{id(peer):x}", window, idle, jms, host))
        await bounded(peer.opened, ANSWER_WAIT)
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

    def attach(self, role: bytes, source: bytes, target: bytes, modes: bytes = b"\x50\x00\x50\x00", name: str = "") -> Link:
        """Asks for a link, and does not wait for the answer."""
        handle = len(self.links)
        link = Link(self, handle, asyncio.get_running_loop().create_future())
        self.links[handle] = link
        self.write(attach(handle, name or f"link-{id(self):x}-{handle}", role, source, target, modes))
        return link

    async def sender(self, address: str) -> Link:
        link = self.attach(FALSE, composite(0x28), composite(0x29, string(address)), b"\x50\x00\x50\x00")
        await bounded(link.attached, ANSWER_WAIT)
        return link

    async def receiver(
        self, address: str, handler: Callable[[Link, int, bytes], None], deletes: bool = False, target: str | None = None,
    ) -> Link:
        modes = b"\x50\x01\x50\x00" if deletes else b"\x50\x00\x50\x00"
        aim = composite(0x29, string(target)) if target else composite(0x29)
        link = self.attach(TRUE, composite(0x28, string(address)), aim, modes)
        link.handler = handler
        await bounded(link.attached, ANSWER_WAIT)
        return link

    def transfer(
        self, link: Link, payload: bytes, settled: Callable[[bool], None] | None = None, more_to_come: bool = False, form: int = 0,
    ) -> None:
        """Writes a delivery; `settled` is called with whether it was accepted. It has no end if there is more to come."""
        number = self.deliveries
        self.deliveries += 1
        link.sent += 1
        tag = b"\xa0\x04" + struct.pack(">I", number)
        if settled:
            self.unsettled[number] = settled
        size = PIECE_BYTES
        pieces = [payload[at:at + size] for at in range(0, len(payload), size)]
        frames = []
        for index, piece in enumerate(pieces):
            more = TRUE if more_to_come or index + 1 < len(pieces) else FALSE
            head = [uint(number), tag, uint(form)] if index == 0 else [NULL, NULL, NULL]
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
            state = fields[4] if len(fields) > 4 else None
            accepted = state is not None and state.code == 0x24
            if state is not None and state.code == 0x33:
                self.declared.append(state.value[0])
            # What the broker says as a receiver is about what was sent to it.
            asked = self.unsettled if fields[0] else self.completing
            for number in range(first, last + 1):
                if settled := asked.pop(number, None):
                    settled(accepted)
        elif code == FLOW:
            if len(fields) > 6 and fields[4] is not None and (link := self.links.get(fields[4])):
                link.limit = (fields[5] or 0) + fields[6]
        elif code == ATTACH:
            # Those that were attached by hand are not known here.
            link = self.links.get(fields[1])
            if link and not link.attached.done():
                link.attached.set_result(link)
        elif code == DETACH:
            error = fields[2].value if len(fields) > 2 and fields[2] else None
            if link := self.links.get(fields[0]):
                link.ended = f"{error[0]}: {error[1]}" if error else "detached"
        elif code == BEGIN:
            if not self.opened.done():
                self.opened.set_result(None)
        elif code == CLOSE:
            error = fields[0].value if fields and fields[0] else None
            self.wrong = f"{error[0]}: {error[1]}" if error else "closed by the broker"
            self.drop()

    def _take_transfer(self, fields: list, payload: bytes) -> None:
        link = self.links.get(fields[0])
        if link is None:
            return
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
