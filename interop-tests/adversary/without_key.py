"""Attacks of somebody who has no key, on a broker that verifies keys."""

from __future__ import annotations

import asyncio
import os
import random
import ssl
import struct
import time

from amqp import (
    COORDINATOR, FALSE, NULL, SASL_HEADER, Ended, Peer, attach, bounded, composite, hello, request_with, section, sends, string, target,
)
from scene import Scene
from tools import ROOT, Node, finish, hold_requests, http, is_there, requests_are_answered, say, send, status_of, token, until

# A stranger's time to prove a right (limits::ADMISSION_DEADLINE), and what a busy machine adds.
ADMISSION, SLACK = 20.0, 12.0
# limits::UNAUTHENTICATED_PER_ADDRESS_MAX
VISITS = 1_000
# Addresses of the loopback network, and connections of each.
MACHINES, VISITS_OF_EACH = 8, 500


async def connect(scene: Scene, source_address: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", scene.port, local_addr=(source_address, 0))


async def read_all(reader: asyncio.StreamReader, within: float = ADMISSION + SLACK) -> bytes:
    """What the broker says before it closes."""
    said = b""
    try:
        async with asyncio.timeout(within):
            while data := await reader.read(65_536):
                said += data
    except ConnectionError:
        pass
    return said


async def exchange(scene: Scene, request: bytes, within: float = ADMISSION + SLACK) -> bytes:
    """Says something, and returns what the broker says before it closes."""
    reader, writer = await connect(scene)
    try:
        writer.write(request)
        return await read_all(reader, within)
    finally:
        writer.close()


def sender(address: str) -> bytes:
    return attach(0, "link", FALSE, NULL, target(address))


async def silence_whatever_was_said_before(scene: Scene) -> None:
    beginnings = {
        "nothing": b"",
        "a byte": b"A",
        "three bytes of no protocol": b"\x00\x01\x02",
        "a header": SASL_HEADER,
        "an open without a token": hello(),
        "a link to $cbs": hello() + sender("$cbs"),
        "a link to the coordinator": hello() + attach(0, "link", FALSE, NULL, COORDINATOR),
        "half a ClientHello": b"\x16\x03\x01\x02\x00\x01",
        "a ClientHello of noise": b"\x16\x03\x01" + os.urandom(500),
        "much that begins as a ClientHello": b"\x16" * 70_000,
        "an alert in the place of a ClientHello": b"\x16\x03\x03\x00\x01\x01",
        "half a request": b"GET /hea",
        "half a head": b"GET /health HTTP/1.1\r\nHost: localhost\r\n",
        "a body that does not come": b"PUT /q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n<",
    }

    async def one(name: str, said: bytes) -> None:
        began = time.monotonic()
        try:
            await exchange(scene, said)
        except TimeoutError:
            raise AssertionError(f"after {name}: not closed after {time.monotonic() - began:.1f} s") from None

    await asyncio.gather(*(one(name, said) for name, said in beginnings.items()))


async def a_connection_that_asks_for_health_for_ever(scene: Scene) -> None:
    reader, writer = await connect(scene)
    began = time.monotonic()
    try:
        while time.monotonic() - began < ADMISSION + SLACK:
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if not await reader.read(65_536):
                return
            await asyncio.sleep(0.5)
    except ConnectionError:
        return
    finally:
        writer.close()
    raise AssertionError("it may ask for ever")


async def more_connections_than_an_address_may_have(scene: Scene) -> None:
    """The next one waits, and other addresses come in. The pair has signed in, and is not counted."""
    served = 0

    async def come_in() -> asyncio.StreamWriter:
        reader, writer = await connect(scene)
        writer.write(SASL_HEADER)

        async def wait() -> None:
            nonlocal served
            if await reader.read(8):
                served += 1

        waits.append(asyncio.create_task(wait()))
        return writer

    waits: list[asyncio.Task] = []
    peers = await asyncio.gather(*(come_in() for _ in range(VISITS)))
    # Others of this address are there too: some of these have to wait. All places are taken when no more of them are let in.
    before = -1
    async with asyncio.timeout(ADMISSION):
        while before < served or served < VISITS - 100:
            before = served
            await asyncio.sleep(0.3)
    late, writer = await connect(scene)
    try:
        writer.write(b"GET /health HTTP/1.0\r\n\r\n")
        # Another machine: another address of the loopback network.
        reader, other = await connect(scene, "127.0.0.77")
        other.write(b"GET /health HTTP/1.0\r\n\r\n")
        assert b"200 OK" in await read_all(reader), "another address is turned away"
        other.close()
        try:
            said = await bounded(late.read(1), 0.5)
            raise AssertionError(f"there was a place for one more: {said!r}")
        except TimeoutError:
            pass
    finally:
        for wait in waits:
            wait.cancel()
        for peer in peers:
            peer.close()
    assert b"200 OK" in await read_all(late), "its turn did not come"
    writer.close()


async def requests_to_cbs_that_take_much_to_decode(scene: Scene) -> None:
    elements = 30_000
    # A list of empty lists, a byte each: what is decoded of it takes a hundred times that.
    value = b"\xd0" + struct.pack(">II", elements + 4, elements) + b"\x45" * elements
    message = request_with("put-token", value, "answers", type="jwt", name="sb://h/q")

    async def one() -> None:
        peer = await scene.connect(None)
        await say(peer, sender("$cbs"), *(sends(message, first=number) for number in range(60)))
        await finish(peer)

    await asyncio.gather(*(one() for _ in range(20)))


async def tokens_for_paths_of_thousands_of_segments(scene: Scene) -> None:
    """Each segment would be a lookup, before anything is verified: so long a path is refused unread."""
    segments, of_each, ends = 7_900, 20, time.monotonic() + 3
    refused, busy = 0, 0
    long = f"SharedAccessSignature sr=h/{'a/' * segments}&sig=c2ln&se=9999999999&skn=root"

    async def one() -> None:
        nonlocal refused, busy
        while time.monotonic() < ends:
            # A connection may send half a MiB before it has proved a right.
            peer = await scene.connect(None)
            node = await Node(peer, "$cbs").attach()
            for _ in range(of_each):
                node.put_token("sb://localhost/yours", long)
            await peer.flush()
            for _ in range(of_each):
                answer = await node.answer()
                # After some of them the address has to wait.
                if b"Too many authentications failed" in answer:
                    busy += 1
                    continue
                assert status_of(answer) in (400, 401) and b"the field 'sr' has more than" in answer, answer[-300:]
                refused += 1
            await finish(peer)

    await asyncio.gather(*(one() for _ in range(8)))
    scene.say(f"{refused} tokens were refused in 3 s, and {busy} were not looked at")
    assert refused, "nothing was refused for its length"


async def requests_to_cbs_whose_answers_nobody_takes(scene: Scene) -> None:
    """They share a part of the memory with those of all others, which are answered all the same."""
    def put_token(size: int) -> bytes:
        return request_with("put-token", string("x" * size), "nobody", type="jwt", name="sb://localhost/yours")

    peers = await hold_requests(scene, None, "$cbs", [60_000, 4_000, 100], put_token)
    await requests_are_answered(scene)
    for peer in peers:
        await finish(peer)


async def first_requests_of_many_machines(scene: Scene) -> None:
    """Each connection may have a small first request waiting, whatever others have: so many connections that these are much."""
    payload = request_with("put-token", string("x" * 60_000), "nobody", type="jwt", name="sb://localhost/yours")
    together = asyncio.Semaphore(100)

    async def one(number: int) -> Peer | None:
        async with together:
            try:
                peer = await scene.connect(None, address=f"127.0.0.{2 + number % MACHINES}")
                link = await peer.sender("$cbs")
                await until(peer, lambda: 0 < link.credit)
                peer.transfer(link, payload)
                await peer.flush()
                return peer
            except Ended:
                # It was closed, to make room for others.
                return None

    for peer in await asyncio.gather(*(one(number) for number in range(MACHINES * VISITS_OF_EACH))):
        if peer:
            await finish(peer)


async def links_that_are_refused(scene: Scene) -> None:
    """Each with a long name and a long source; the peer never answers a detach."""

    async def one() -> None:
        peer = await scene.connect(None)
        long = composite(0x28, string("x" * 25_000))
        await say(peer, *(attach(handle, f"{handle} {'n' * 25_000}", FALSE, long, target("yours")) for handle in range(4_000)))
        await finish(peer)

    await asyncio.gather(*(one() for _ in range(5)))


async def transactions_without_end(scene: Scene) -> None:
    """The coordinator is open to everybody (.NET asks for it before it has a token): how many transactions may a stranger have?"""
    declare = section(0x77, b"\x00\x53\x31\x45")
    declared = []

    async def one() -> None:
        peer = await scene.connect(None)
        link = peer.attach(FALSE, NULL, COORDINATOR)
        await until(peer, lambda: link.attached.done() and (link.ended is not None or 0 < link.credit), 5)
        try:
            for _ in range(2_000):
                if link.ended or not await until(peer, lambda: 0 < link.credit or link.ended is not None, 2) or link.ended:
                    break
                peer.transfer(link, declare, lambda _accepted: None)
                await peer.flush()
        except Ended:
            pass
        declared.append(link.sent)
        await finish(peer)

    await asyncio.gather(*(one() for _ in range(20)))
    scene.say(f"declares that were sent, by connection: {sorted(declared)[:3]} to {max(declared)}")


async def noise(scene: Scene) -> None:
    dice = random.Random(7)
    seeds = [b"", b"A", SASL_HEADER, hello(), b"\x16\x03\x01\x00\xff", b"GET / HTTP/1.1\r\n", b"PUT /q HTTP/1.1\r\nHost: h\r\n\r\n", b"{"]
    for _ in range(300):
        _, writer = await connect(scene)
        writer.write(dice.choice(seeds) + dice.randbytes(dice.randrange(2_000)))
        writer.close()


async def hostile_http(scene: Scene) -> None:
    close = b"Connection: close\r\n"
    cases = [
        (b"GET /q HTTP/1.1\r\nHost: h\r\n" + close + b"\r\n", b" 401 "),
        (b"GET /$Resources/queues HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer a.b.c\r\n" + close + b"\r\n", b" 401 "),
        (b"GET /q HTTP/1.1\r\nHost: h\r\nAuthorization: SharedAccessSignature sr=&sig=&se=&skn=\r\n" + close + b"\r\n", b" 401 "),
        (b"GET /%ff%fe/..%2f..%2fetc HTTP/1.1\r\nHost: h\r\n" + close + b"\r\n", b" 40"),
        (b"BREW /q HTTP/1.1\r\nHost: h\r\n" + close + b"\r\n", b" 40"),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n", b" 4"),
        (b"GET /q HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", b" 4"),
        (b"GET /q HTTP/1.1\r\nHost: h\r\n" + b"X: a\r\n" * 5_000 + b"\r\n", b" 4"),
        (b"GET /$servicebus/websocket HTTP/1.1\r\nHost: h\r\n" + close + b"\r\n", b" 4"),
    ]
    for request, status in cases:
        reader, writer = await connect(scene)
        writer.write(request)
        # The broker may go on reading, or not: its answer is what matters.
        said = await bounded(reader.readuntil(b"\r\n\r\n"), ADMISSION + SLACK)
        writer.close()
        assert status in said[:40], f"{request[:60]!r}: {said[:200]!r}"
        assert b"panic" not in said


async def tls_within_tls(scene: Scene) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", scene.port, ssl=context, server_hostname="localhost")
    writer.write(b"\x16\x03\x01\x02\x00")
    await read_all(reader)
    writer.close()


async def requests_that_are_refused_without_end(scene: Scene) -> None:
    """Over HTTP, many on each connection, as fast as they are answered: each refusal is a line of log, if nobody counts."""
    ends, refused = time.monotonic() + 3, 0
    head = b"GET /yours/messages/head HTTP/1.1\r\nHost: h\r\nAuthorization: SharedAccessSignature sr=a&sig=b&se=1&skn=root\r\n\r\n"

    async def one() -> None:
        nonlocal refused
        while time.monotonic() < ends:
            reader, writer = await asyncio.open_connection("127.0.0.1", scene.http_port)
            try:
                while time.monotonic() < ends:
                    writer.write(head * 20)
                    said = await bounded(reader.read(65_536), 5)
                    if not said:
                        break
                    refused += said.count(b"HTTP/1.1 4")
            except (ConnectionError, TimeoutError):
                pass
            finally:
                writer.close()

    await asyncio.gather(*(one() for _ in range(4)))
    scene.say(f"{refused} requests were refused in 3 s")


async def tokens_of_an_entity_for_another_one(scene: Scene) -> None:
    """A token that names one queue must not reach another, however the path or the resource is written."""
    # A message of somebody else's.
    await send(scene, "yours", composite(0x73, string("private")) + section(0x75, b"\xa0\x07private"))
    host = f"localhost:{scene.http_port}"
    for resource in (f"http://{host}/mine", "sb://localhost/mine", "mine"):
        proof = token(resource, ROOT)
        for path in (
            "/yours/messages", "/mine/x://h/yours/messages", "/mine/sb://localhost/yours/messages", "/x://h/yours/messages",
            "/mine/../yours/messages", "/mine/%2e%2e/yours/messages", "/mine%2f..%2fyours/messages", "//yours/messages", "/mine//yours/messages",
        ):
            for method, end in (("POST", ""), ("DELETE", "/head?timeout=0"), ("POST", "/head?timeout=0")):
                answer = await http(scene, method, path + end, proof, b"planted" if not end else b"")
                assert answer.status >= 400, f"{method} {path + end} with a token for {resource}: {answer.text[:200]}"
        peer = await scene.connect(None)
        node = await Node(peer, "$cbs").attach()
        told = []
        for name in ("yours", "nothing"):
            node.put_token(f"sb://localhost/mine/x://h/{name}", proof)
            told.append(status_of(await node.answer()))
        assert told[0] == told[1], f"$cbs tells which entities exist: {told} with a token for {resource}"
        await finish(peer)
    assert await is_there(scene, "yours", b"private"), "somebody else's message is gone"
    assert not await is_there(scene, "yours", b"planted"), "there is a message that nobody might send"


BESIDE = [silence_whatever_was_said_before, tls_within_tls, a_connection_that_asks_for_health_for_ever]
ATTACKS = [
    tokens_of_an_entity_for_another_one,
    hostile_http,
    noise,
    requests_to_cbs_that_take_much_to_decode,
    tokens_for_paths_of_thousands_of_segments,
    requests_to_cbs_whose_answers_nobody_takes,
    first_requests_of_many_machines,
    links_that_are_refused,
    transactions_without_end,
    requests_that_are_refused_without_end,
    more_connections_than_an_address_may_have,
]
