"""Thousands of connections of many addresses, none with a key, each of which begins something large and never ends it. They name one
namespace; the pair is in another. All that they hold together has a bound (limits::UNAUTHENTICATED_TOTAL_BYTES_MAX)."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import Awaitable, Callable

from amqp import FALSE, NULL, TRANSFER, TRUE, Ended, attach, composite, frame, hello, target, uint
from scene import Scene
from tools import LISTEN, ROOT, finish, http

# Addresses of the loopback network, and connections of each at most.
MACHINES, EACH = 8, 500
# How long they hold what they have begun, seconds: less than a connection without a right lives.
HOLD = 4.0
# What a well-behaved client may need to come in meanwhile, seconds.
COMES_IN = 5.0
# Clients with a key that connect at once.
HONEST = 2_000

# The namespace that they name. It is as long as the host that `hello` names.
THEIRS = b"their-bus"
HELLO = hello().replace(b"localhost", THEIRS)

Begin = Callable[[int], Awaitable["socket.socket | asyncio.StreamWriter"]]


async def write(port: int, number: int, data: bytes, small: bool = False) -> socket.socket:
    """Connects from one of the addresses, and writes as much as the broker takes within a moment."""
    loop = asyncio.get_running_loop()
    own = socket.socket()
    if small:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    own.setblocking(False)
    own.bind((f"127.0.0.{2 + number % MACHINES}", 0))
    try:
        async with asyncio.timeout(HOLD):
            await loop.sock_connect(own, ("127.0.0.1", port))
            await loop.sock_sendall(own, data)
    except (OSError, TimeoutError):
        pass
    return own


async def crowd(scene: Scene, count: int, begin: Begin) -> None:
    """Lets so many begin, 200 at a time, and holds what they have begun; somebody with a key comes in meanwhile."""
    together = asyncio.Semaphore(200)

    async def one(number: int) -> object:
        async with together:
            try:
                return await begin(number)
            except (OSError, TimeoutError, Ended, asyncio.IncompleteReadError):
                return None

    began = time.monotonic()
    held = await asyncio.gather(*(one(number) for number in range(count)))
    there = sum(each is not None for each in held)
    await asyncio.sleep(HOLD / 2)
    longest = await come_in(scene)
    await asyncio.sleep(HOLD / 2)
    closed = (await metric(scene, "jitney_unauthenticated_closed_total"), await metric(scene, "jitney_unauthenticated_bytes"))
    scene.say(
        f"{there} had begun after {time.monotonic() - began - HOLD:.1f} s; a client with a key came in after {longest:.2f} s; "
        f"{closed[0]:.0f} were closed so far, and {closed[1] / 2**20:.1f} MiB are held"
    )
    for each in held:
        if each is not None:
            each.close()
    assert longest < COMES_IN, f"a client with a key waited {longest:.1f} s"


async def come_in(scene: Scene) -> float:
    """Opens connections with a key, over AMQP and over HTTP; returns the longest time that one took."""
    longest = 0.0
    for _ in range(3):
        began = time.monotonic()
        async with asyncio.timeout(4 * COMES_IN):
            await finish(await scene.connect(LISTEN))
        longest = max(longest, time.monotonic() - began)
        began = time.monotonic()
        assert (await http(scene, "GET", "/health")).status == 200
        longest = max(longest, time.monotonic() - began)
    return longest


async def metric(scene: Scene, name: str) -> float:
    """A metric of the process, with the operator's key."""
    key = (scene.work / "data" / "operator.key").read_text().strip()
    answer = await http(scene, "GET", "/metrics", f"Bearer {key}")
    assert answer.status == 200, answer.text[:200]
    lines = [line for line in answer.text.splitlines() if line.startswith(name + "{} ")]
    return float(lines[0].split()[1])


async def unfinished_heads(scene: Scene) -> None:
    head = b"GET /q HTTP/1.1\r\nHost: their-bus\r\n" + b"".join(b"X-%d: %s\r\n" % (at, b"a" * 1_000) for at in range(59))
    await crowd(scene, MACHINES * EACH, lambda number: write(scene.http_port, number, head))


async def unfinished_bodies_behind_heads(scene: Scene) -> None:
    """Heads that are whole, and of which others wait behind the first."""
    head = b"GET /q HTTP/1.1\r\nHost: their-bus\r\n" + b"X: " + b"a" * 20_000 + b"\r\n"
    await crowd(scene, MACHINES * EACH, lambda number: write(scene.http_port, number, (head + b"\r\n") * 2 + head))


async def parts_of_messages_to_cbs(scene: Scene) -> None:
    head = composite(TRANSFER, uint(0), uint(0), b"\xa0\x01t", uint(0), FALSE, TRUE)
    body = b"\x00\x53\x77\xb0" + struct.pack(">I", 62_000) + b"x" * 20_000
    parts = frame(head + body) + frame(head + b"x" * 20_000) * 2
    said = HELLO + attach(0, "link", FALSE, NULL, target("$cbs")) + parts
    await crowd(scene, MACHINES * EACH, lambda number: write(scene.port, number, said))


async def unfinished_messages_of_websockets(scene: Scene) -> None:
    upgrade = (
        b"GET /$servicebus/websocket HTTP/1.1\r\nHost: their-bus\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: AMQPWSB10\r\n\r\n"
    )
    # A message of a MiB, of which a part comes.
    begun = b"\x82\xff" + struct.pack(">Q", 2**20) + b"\0\0\0\0" + b"x" * 200_000

    async def begin(number: int) -> asyncio.StreamWriter:
        local = (f"127.0.0.{2 + number % MACHINES}", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", scene.http_port, local_addr=local)
        writer.write(upgrade)
        async with asyncio.timeout(HOLD):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(begun)
            await writer.drain()
        return writer

    await crowd(scene, MACHINES * 200, begin)


async def answers_that_no_client_reads(scene: Scene) -> None:
    """Few enough that the system has memory for what it keeps of them: that is not the broker's."""
    request = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: their-bus\r\n\r\n"
    await crowd(scene, MACHINES * 200, lambda number: write(scene.http_port, number, request * 4, small=True))


async def unfinished_handshakes(scene: Scene) -> None:
    """A ClientHello of 64 KB in records of 16, of which three come."""
    record = b"\x16\x03\x01\x40\x00"
    hello_begins = record + b"\x01\x00\xff\xff\x03\x03" + b"h" * (0x4000 - 6) + (record + b"h" * 0x4000) * 2
    await crowd(scene, MACHINES * EACH, lambda number: write(scene.port, number, hello_begins))


async def handshakes_and_then_silence(scene: Scene) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def begin(number: int) -> asyncio.StreamWriter:
        local = (f"127.0.0.{2 + number % MACHINES}", 0)
        async with asyncio.timeout(HOLD):
            _, writer = await asyncio.open_connection("127.0.0.1", scene.port, ssl=context, local_addr=local)
        return writer

    await crowd(scene, MACHINES * 150, begin)


async def opens_of_many(scene: Scene) -> None:
    """Frames before a right is proved: sessions, links and what is sent on them."""
    names = b"".join(attach(handle, f"{handle} {'n' * 1_500}", FALSE, NULL, target("$cbs")) for handle in range(6))
    await crowd(scene, MACHINES * EACH, lambda number: write(scene.port, number, HELLO + names))


async def many_clients_with_a_key_at_once(scene: Scene) -> None:
    """Nobody means harm: all of one address come in."""
    began = time.monotonic()
    before = await metric(scene, "jitney_unauthenticated_closed_total")
    peers = await asyncio.gather(*(scene.connect(ROOT) for _ in range(HONEST)))
    scene.say(f"{len(peers)} clients with a key came in after {time.monotonic() - began:.1f} s")
    assert all(not peer.lost.done() for peer in peers)
    assert await metric(scene, "jitney_unauthenticated_closed_total") == before, "some were closed for want of room"
    for peer in peers:
        await finish(peer)


ATTACKS = [
    many_clients_with_a_key_at_once,
    unfinished_heads,
    unfinished_bodies_behind_heads,
    parts_of_messages_to_cbs,
    unfinished_messages_of_websockets,
    answers_that_no_client_reads,
    unfinished_handshakes,
    handshakes_and_then_silence,
    opens_of_many,
]
