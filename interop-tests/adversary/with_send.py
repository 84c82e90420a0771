"""Attacks of somebody who may send, and nothing else; and of many who are signed in."""

from __future__ import annotations

import asyncio
import base64
import os
import time

from amqp import FALSE, TRUE, Ended, Peer, bounded, message, source, target
from scene import Scene
from tools import LISTEN, PATIENCE, ROOT, SEND, finish, has_link, requests_are_answered, send, until

# A broker with so many descriptors, and what takes them: peers that have signed in, and WebSockets of those who have not.
DESCRIPTORS, SIGNED_IN, WEBSOCKETS = 300, 205, 140
MEBIBYTE = 1024 * 1024
# Connections that read nothing, and messages enough for all.
CROWD, CROWD_MESSAGES = 200, 800
# What the broker logs of each of them that it closes.
CLOSING = "the peer does not read what is sent to it, and memory is short: closing"


async def what_a_sender_may_not(scene: Scene) -> None:
    """To receive, to browse, and to see dead letters."""
    peer = await scene.connect(SEND)
    for address in ("yours", "mine/$DeadLetterQueue", "topic/Subscriptions/mine"):
        assert await has_link(peer, TRUE, source(address)) is None, f"it may receive from {address}"
    await finish(peer)


async def messages_that_do_not_end(scene: Scene) -> None:
    """Nearly all of a message on each of many links, and then nothing."""
    peers = [await scene.connect(SEND) for _ in range(5)]
    for peer in peers:
        try:
            for link in [await peer.sender("mine") for _ in range(40)]:
                peer.transfer(link, bytes(900_000), more_to_come=True)
                # A broker that does not read all of it is right.
                await bounded(peer.flush(), 0.2)
        except (Ended, TimeoutError):
            continue
    for peer in peers:
        peer.drop()


async def senders_that_never_read(scene: Scene) -> None:
    """What they are told of their messages waits for them."""
    peers = [await scene.connect(SEND) for _ in range(4)]
    for peer in peers:
        link = await peer.sender("mine")
        await until(peer, lambda: 0 < link.credit)
        assert peer.transport
        peer.transport.pause_reading()
    try:
        for _ in range(900):
            for peer in peers:
                peer.transfer(peer.links[0], message(os.urandom(2_000)), lambda _accepted: None)
                await bounded(peer.flush(), 0.2)
    except (Ended, TimeoutError):
        pass
    for peer in peers:
        peer.drop()


async def receivers_that_never_read(scene: Scene) -> None:
    sender = await scene.connect(SEND)
    link = await sender.sender("mine")
    for _ in range(1_000):
        await until(sender, lambda: 0 < link.credit)
        sender.transfer(link, message(os.urandom(64_000)), lambda _accepted: None)
        await sender.flush()
    await finish(sender)
    # Each connection may have 16 MiB (limits::CONNECTION_WINDOW_BYTES), whatever its links grant, and all a share of the memory.
    peers = [await scene.connect(LISTEN) for _ in range(20)]
    for peer in peers:
        links = [await peer.receiver("mine", lambda *_: None) for _ in range(20)]
        assert peer.transport
        peer.transport.pause_reading()
        for receiver in links:
            receiver.grant(1_000_000)
    await asyncio.sleep(4)
    for peer in peers:
        peer.drop()


async def a_crowd_that_never_reads(scene: Scene) -> None:
    """So many that what waits for them is twice its share of the memory: who has read nothing for two seconds is closed."""
    await send(scene, "mine", *(message(os.urandom(64_000)) for _ in range(CROWD_MESSAGES)))
    peers = [await scene.connect(LISTEN, reads=False) for _ in range(CROWD)]
    for peer in peers:
        receiver = await peer.receiver("mine", lambda *_: None)
        assert peer.transport
        peer.transport.pause_reading()
        receiver.grant(1_000)
    ends = time.monotonic() + PATIENCE
    while CLOSING not in scene.broker.log.read_text(errors="replace"):
        assert time.monotonic() < ends, "nobody is closed who does not read"
        await asyncio.sleep(0.1)
    # While the rest of them stay.
    await requests_are_answered(scene)
    closed = scene.broker.log.read_text(errors="replace").count(CLOSING)
    scene.say(f"{closed} of {CROWD} connections were closed")
    for peer in peers:
        peer.drop()


async def frames_without_end(scene: Scene) -> None:
    """Flows and nothing else, as fast as the broker reads."""
    ends = asyncio.get_running_loop().time() + 3

    async def one() -> None:
        peer = await scene.connect(LISTEN)
        link = await peer.receiver("mine", lambda *_: None)
        words = b"".join(link.flow(index % 2) for index in range(2_000))
        while asyncio.get_running_loop().time() < ends:
            peer.write(words)
            await peer.flush()
        await finish(peer)

    await asyncio.gather(*(one() for _ in range(30)))


async def all_descriptors(scene: Scene) -> None:
    """Many who have signed in, and WebSockets of those who have no key; meanwhile the log needs new files."""
    sender = await scene.connect(SEND)
    link = await sender.sender("mine")
    tasks = [asyncio.create_task(scene.connect(ROOT)) for _ in range(SIGNED_IN)]
    await asyncio.wait(tasks, timeout=5)
    sockets = []

    async def websocket() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", scene.http_port)
        sockets.append(writer)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            b"GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: AMQPWSB10\r\nSec-WebSocket-Key: " + key.encode() + b"\r\n\r\n"
        )
        await reader.read(1)

    upgrades = [asyncio.create_task(websocket()) for _ in range(WEBSOCKETS)]
    await asyncio.wait(upgrades, timeout=3)
    accepted: list[bool] = []
    for _ in range(150):
        assert await until(sender, lambda: 0 < link.credit), f"no more credit: {link.ended or sender.wrong}"
        sender.transfer(link, message(os.urandom(MEBIBYTE - 1024)), accepted.append)
        await until(sender, lambda: link.sent - len(accepted) < 4)
    await until(sender, lambda: len(accepted) == 150)
    came = sum(task.done() and not task.exception() for task in tasks)
    scene.say(
        f"{DESCRIPTORS} descriptors: {came} of {SIGNED_IN} peers came in, {sum(task.done() for task in upgrades)} of {WEBSOCKETS} WebSockets; "
        f"{accepted.count(True)} of 150 messages of 1 MiB were accepted"
    )
    assert scene.broker.running(), "the broker has ended"
    assert accepted == [True] * 150, f"{accepted.count(True)} of 150 messages were accepted"
    for task in [*tasks, *upgrades]:
        if not task.done():
            task.cancel()
        elif not task.exception() and isinstance(task.result(), Peer):
            task.result().drop()
    for writer in sockets:
        writer.close()
    sender.drop()


ATTACKS = [
    what_a_sender_may_not, messages_that_do_not_end, senders_that_never_read, receivers_that_never_read,
    a_crowd_that_never_reads, frames_without_end,
]
