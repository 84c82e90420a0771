"""What attacks have in common: keys, tokens, HTTP by hand, and peers that say much at once."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial

from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from amqp import FALSE, TRUE, Ended, Key, Link, Peer, bounded, composite, int32, int64, request, request_with, string
from scene import Scene

ROOT: Key = ("root", "key-of-root")
SEND: Key = ("send", "key-of-send")
LISTEN: Key = ("listen", "key-of-listen")

# How long an attack waits for what must come.
PATIENCE = 20.0
# How long a well-behaved client may need for a few requests, seconds.
REQUESTS_WAIT = 15.0
# Requests that one connection may have waiting, whatever their size here.
HELD_BY_ONE = 7


def token(resource: str, key: Key, life: int = 600) -> str:
    """A shared access signature for a resource, as it stands there."""
    quoted, ends = urllib.parse.quote(resource, safe=""), int(time.time()) + life
    signature = base64.b64encode(hmac.new(key[1].encode(), f"{quoted}\n{ends}".encode(), hashlib.sha256).digest()).decode()
    return f"SharedAccessSignature sr={quoted}&sig={urllib.parse.quote(signature, safe='')}&se={ends}&skn={key[0]}"


@dataclass
class Answer:
    status: int
    text: str


async def http(
    scene: Scene, method: str, path: str, authorization: str | None = None, body: bytes = b"", host: str = "localhost",
    patience: float = PATIENCE,
) -> Answer:
    """One HTTP request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", scene.http_port)
    try:
        proof = f"Authorization: {authorization}\r\n" if authorization else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{proof}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        said = await bounded(reader.read(), patience)
        return Answer(int(said.split(b" ", 2)[1]), said.decode(errors="replace"))
    finally:
        writer.close()


async def say(peer: Peer, *parts: bytes) -> bool:
    """Writes so much as the broker takes; returns whether that is all."""
    try:
        for part in parts:
            peer.write(part)
            await peer.flush()
    except Ended:
        return False
    return True


async def finish(peer: Peer) -> None:
    """Closes in order: then the broker has read all that was said. One that has been closed has, too."""
    try:
        peer.close()
    except Ended:
        return
    await bounded(peer.lost, PATIENCE)


async def until(peer: Peer, condition, within: float = PATIENCE) -> bool:
    """Waits until something holds, the peer is lost, or time is up; returns whether it holds."""
    deadline = time.monotonic() + within
    while not condition():
        left = deadline - time.monotonic()
        if left <= 0 or peer.lost.done():
            return condition()
        peer.changed.clear()
        try:
            await bounded(peer.changed.wait(), min(left, 1))
        except (TimeoutError, asyncio.TimeoutError):
            pass
    return True


async def has_link(peer: Peer, role: bytes, where: bytes, name: str = "") -> Link | None:
    """Asks for a link: None if the broker does not let it in, which it tells with an attach and a detach."""
    empty = composite(0x28 if role == FALSE else 0x29)
    link = peer.attach(role, where if role == TRUE else empty, empty if role == TRUE else where, name=name)
    try:
        await bounded(link.attached, PATIENCE)
        # The detach comes right behind; credit for a sender does too.
        await until(peer, lambda: link.ended is not None or (role == FALSE and 0 < link.credit), 0.5)
    except Ended:
        return None
    return None if link.ended else link


class Node:
    """Requests to a node, answered one by one."""

    def __init__(self, peer: Peer, node: str):
        self.peer, self.node, self.answers = peer, node, asyncio.Queue()

    async def attach(self) -> "Node":
        self.responses = await self.peer.receiver(self.node, lambda _link, _number, payload: self.answers.put_nowait(payload), target="answers")
        self.requests = await self.peer.sender(self.node)
        self.responses.grant(1_000_000)
        await until(self.peer, lambda: 0 < self.requests.credit or self.requests.ended is not None)
        assert not self.requests.ended and not self.responses.ended, f"{self.node}: {self.requests.ended or self.responses.ended}"
        return self

    def ask(self, operation: str, arguments: dict[str, bytes]) -> None:
        """Asks, and does not wait for the answer."""
        self.peer.transfer(self.requests, request(operation, arguments, "answers"), lambda _: None)

    def put_token(self, audience: str, text: str) -> None:
        payload = request_with("put-token", string(text), "answers", type="servicebus.windows.net:sastoken", name=audience)
        self.peer.transfer(self.requests, payload, lambda _: None)

    async def answer(self, within: float = PATIENCE) -> bytes:
        return await bounded(self.answers.get(), within)

    async def answered(self, count: int, within: float = PATIENCE) -> int:
        """Waits for so many answers, or until there is no peer any more; returns how many came."""
        await until(self.peer, lambda: count <= self.answers.qsize(), within)
        return self.answers.qsize()


def status_of(answer: bytes) -> int:
    """The status in an answer's application-properties."""
    at = answer.index(b"statusCode" if b"statusCode" in answer else b"status-code")
    name = 10 if answer[at:at + 10] == b"statusCode" else 11
    value = answer[at + name:]
    return value[1] if value[0] == 0x54 else int.from_bytes(value[1:5], "big")


async def is_there(scene: Scene, queue: str, text: bytes) -> bool:
    """Whether peek finds a message with this text in a queue."""
    peer = await scene.connect(ROOT)
    node = await Node(peer, f"{queue}/$management").attach()
    node.ask("com.microsoft:peek-message", {"from-sequence-number": int64(0), "message-count": int32(250)})
    answer = await node.answer()
    await finish(peer)
    return text in answer


async def send(scene: Scene, queue: str, *payloads: bytes, form: int = 0) -> None:
    """Sends messages with a key that may, and waits until all are accepted. A broker that is short of memory refuses some
    until it has packed what it has: these are sent again, as a client's retries do."""
    peer = await scene.connect(SEND)
    link = await peer.sender(queue)
    left, ends = list(payloads), time.monotonic() + 20
    while left:
        assert time.monotonic() < ends, f"{len(left)} of {len(payloads)} are refused: {link.ended or peer.wrong}"
        accepted: dict[int, bool] = {}
        for index, payload in enumerate(left):
            await until(peer, lambda: 0 < link.credit)
            peer.transfer(link, payload, partial(accepted.__setitem__, index), form=form)
            await peer.flush()
        await until(peer, lambda: len(accepted) == len(left))
        left = [payload for index, payload in enumerate(left) if not accepted[index]]
    await finish(peer)


async def hold_requests(scene: Scene, key: Key | None, node: str, sizes: list[int], make: Callable[[int], bytes]) -> list[Peer]:
    """Requests that wait for a link that is never attached, until none of a size is taken any more, or a dozen peers have sent theirs: of those
    for which there is no room the answer "busy" is kept. Those who have sent them."""
    peers: list[Peer] = []
    for size in sizes:
        is_taken = True
        for _ in range(12):
            if not is_taken:
                break
            peer = await scene.connect(key)
            peers.append(peer)
            link = await peer.sender(node)
            for _ in range(HELD_BY_ONE):
                assert await until(peer, lambda: 0 < link.credit), f"no credit: {link.ended or peer.wrong}"
                told: list[bool] = []
                peer.transfer(link, make(size), told.append)
                assert await until(peer, lambda: bool(told)), f"no answer: {link.ended or peer.wrong}"
                is_taken = told[0]
                if not is_taken:
                    break
            # One without a key is closed when they all hold too much.
            if key is None and any(each.lost.done() for each in peers):
                break
    scene.say(f"{len(peers)} connections to {node} have requests waiting")
    return peers


async def requests_are_answered(scene: Scene) -> None:
    """A new client of the SDK puts its tokens, schedules a message, cancels it, and peeks, each at the first try and in time."""
    began = time.monotonic()
    connection_string = scene.broker.connection_string_of(*ROOT)
    async with asyncio.timeout(REQUESTS_WAIT):
        async with (
            ServiceBusClient.from_connection_string(connection_string, retry_total=0) as client,
            client.get_queue_sender("yours") as sender, client.get_queue_receiver("yours") as receiver,
        ):
            later = datetime.now(timezone.utc) + timedelta(hours=1)
            [number] = await sender.schedule_messages([ServiceBusMessage("later")], later)
            assert number in [message.sequence_number for message in await receiver.peek_messages(250)]
            await sender.cancel_scheduled_messages(number)
            assert number not in [message.sequence_number for message in await receiver.peek_messages(250)]
    scene.say(f"the requests of another client were answered in {time.monotonic() - began:.2f} s")
