"""Attacks of somebody who may receive, and nothing else."""

from __future__ import annotations

import asyncio
import struct
import time

from amqp import (
    BATCH, COORDINATOR, DISPOSITION, FALSE, NULL, TRANSFER, TRUE, Ended, Peer, attach, batch, binary, bounded, composite, frame, grouped, int32, int64,
    listed, message, request, section, selector, sends, source, string, symbol_map, target, text_map, uint,
)
from scene import Scene
from tools import (
    LISTEN, ROOT, SEND, Node, finish, has_link, hold_requests, is_there, requests_are_answered, say, send, token, until,
)

LONG = 60_000


def numbered(count: int, body: bytes = b"") -> list[bytes]:
    return [message(struct.pack(">Q", number) + body) for number in range(count)]


async def locked(scene: Scene, count: int, size: int = 8) -> Peer:
    """Puts messages into `locked`, and returns a peer that holds all of them."""
    await send(scene, "locked", batch(numbered(count, bytes(size - 8))), form=BATCH)
    peer = await scene.connect(LISTEN)
    came = []
    link = await peer.receiver("locked", lambda _link, delivery, _payload: came.append(delivery))
    link.grant(count)
    assert await until(peer, lambda: len(came) == count), f"{len(came)} of {count} messages came"
    return peer


def decision(count: int, outcome: bytes, settled: bool = True) -> bytes:
    return frame(composite(DISPOSITION, TRUE, uint(0), uint(count - 1), TRUE if settled else FALSE, outcome))


async def one_disposition_for_many_messages(scene: Scene) -> None:
    """5,000 messages, and one disposition with 60 KB for all of them: modified with properties, rejected with a description."""
    long = string("x" * 55_000)
    properties = symbol_map({"p": long})
    for outcome in (
        composite(0x27, NULL, NULL, properties),
        composite(0x25, composite(0x1D, b"\xa3\x01c", long)),
        composite(0x25, composite(0x1D, b"\xa3\x16com.microsoft:dead-letter", NULL, symbol_map({"DeadLetterReason": string("r" * 3_000), "p": long}))),
    ):
        peer = await locked(scene, 5_000)
        await say(peer, decision(5_000, outcome))
        await finish(peer)


async def requests_that_take_much_to_decode(scene: Scene) -> None:
    """12 MiB of the smallest elements, by those who may ask and by those who may not."""
    # A list of empty lists, a byte each; no list has more than any may have.
    count = 60_000
    piece = b"\xd0" + struct.pack(">II", count + 4, count) + b"\x45" * count
    one = listed(*[piece] * 200)
    named = section(0x74, text_map({"operation": string("com.microsoft:peek-message")}))
    for key in (LISTEN, SEND):
        for payload in (named + section(0x77, one), named + b"".join(section(0x76, piece) for _ in range(200))):
            peer = await scene.connect(key)
            try:
                link = await peer.sender("large/$management")
                await until(peer, lambda: 0 < link.credit or link.ended is not None, 3)
                peer.transfer(link, payload, lambda _accepted: None)
                await peer.flush()
            except Ended:
                pass
            await finish(peer)


async def link_names_without_end(scene: Scene) -> None:
    """On one connection: 4,000 links with names of 60 KB; the same to an entity that is not there; and termini of that length."""
    name = "n" * LONG
    for where, end in (("mine", target("x")), ("nothing", target("x")), ("mine", target("x" * LONG))):
        peer = await scene.connect(LISTEN)
        names = (f"{handle}{name if end == target('x') else ''}" for handle in range(4_000))
        await say(peer, *(attach(handle, text, TRUE, source(where), end) for handle, text in enumerate(names)))
        await finish(peer)


async def audiences_without_end(scene: Scene) -> None:
    """4,500 tokens on one connection, each for an audience of 60 KB."""
    proof = token("sb://localhost/", LISTEN)
    peer = await scene.connect(LISTEN)
    try:
        node = await Node(peer, "$cbs").attach()
        for number in range(4_500):
            if not await until(peer, lambda: 0 < node.requests.credit or node.requests.ended is not None) or node.requests.ended:
                break
            node.put_token(f"sb://localhost/mine/{number}{'a' * LONG}", proof)
            await peer.flush()
    except Ended:
        pass
    await finish(peer)


async def rules_of_five_megabytes(scene: Scene) -> None:
    """Correlation rules with labels that are as long as a request may be."""
    peer = await scene.connect(LISTEN)
    try:
        node = await Node(peer, "labels/Subscriptions/mine/$management").attach()
        for number in range(60):
            filter_ = {"correlation-filter": text_map({"label": string("l" * 5_000_000)})}
            node.ask("com.microsoft:add-rule", {"rule-name": string(f"r{number}"), "rule-description": text_map(filter_)})
            await peer.flush()
            await node.answered(number + 1, 3)
    except Ended:
        pass
    await finish(peer)


async def transactions_that_hold_much(scene: Scene) -> None:
    """On each of three connections twenty open transactions, each with a hundred settlements that have 55 KB of properties."""
    properties = symbol_map({"p": string("x" * 55_000)})
    outcome = composite(0x27, NULL, NULL, properties)
    declared = []
    for _ in range(3):
        peer = await locked(scene, 2_000)
        control = peer.attach(FALSE, NULL, COORDINATOR)
        await until(peer, lambda: control.ended is not None or (control.attached.done() and 0 < control.credit), 3)
        try:
            for _ in range(20):
                peer.transfer(control, section(0x77, b"\x00\x53\x31\x45"), lambda _accepted: None)
            await until(peer, lambda: 20 <= len(peer.declared), 3)
            for delivery, identity in enumerate(identity for identity in peer.declared for _ in range(100)):
                state = composite(0x34, binary(identity), outcome)
                peer.write(frame(composite(DISPOSITION, TRUE, uint(delivery), uint(delivery), FALSE, state)))
                await peer.flush()
        except Ended:
            pass
        declared.append(peer)
    scene.say(f"{[len(peer.declared) for peer in declared]} transactions were open")
    await asyncio.sleep(1)
    for peer in declared:
        await finish(peer)


async def patterns_without_end(scene: Scene) -> None:
    """A hundred rules with 33 patterns each, and 60 receivers with such selectors; then a message that makes all of them search."""
    condition = " OR ".join("p LIKE '%a%a%a%a%a%ab'" for _ in range(33))
    peer = await scene.connect(LISTEN)
    node = await Node(peer, "topic/Subscriptions/mine/$management").attach()
    for number in range(100):
        description = text_map({"sql-filter": text_map({"expression": string(condition)})})
        node.ask("com.microsoft:add-rule", {"rule-name": string(f"r{number}"), "rule-description": description})
    added = await node.answered(100, 10)
    for number in range(60):
        link = peer.attach(TRUE, source("mine", selector(condition)), target("x"))
        await until(peer, lambda: link.attached.done(), 3)
        if not link.ended:
            link.grant(10)
    scene.say(f"{added} rules were answered, {sum(link.ended is None for link in peer.links.values())} links are there")
    body = section(0x74, text_map({"p": string("a" * 30_000)})) + section(0x75, binary(b"x"))
    for queue in ("topic", "mine"):
        await send(scene, queue, *[body] * 3)
    await finish(peer)


async def requests_that_look_at_a_whole_queue(scene: Scene) -> None:
    """200,000 small messages, and requests that find none of them: for a session that is not there, and to delete what is too new."""
    small = batch([grouped("a", b"12345678") for _ in range(10_000)])
    await send(scene, "sessions", *[small] * 20, form=BATCH)
    await send(scene, "deep", *[batch(numbered(10_000))] * 20, form=BATCH)
    began = time.monotonic()

    async def one() -> int:
        peer = await scene.connect(LISTEN)
        sessions, deep = await Node(peer, "sessions/$management").attach(), await Node(peer, "deep/$management").attach()
        for _ in range(100):
            sessions.ask("com.microsoft:peek-message", {
                "from-sequence-number": int64(0), "message-count": int32(10), "session-id": string("nobody"),
            })
            deep.ask("com.microsoft:batch-delete-messages", {
                "message-count": int32(4_000), "enqueued-time-utc": b"\x83" + struct.pack(">q", 1_000),
            })
        found = await sessions.answered(100, 15) + await deep.answered(100, 15)
        peer.drop()
        return found

    answered = sum(await asyncio.gather(*(one() for _ in range(4))))
    scene.say(f"{answered} of 800 requests were answered after {time.monotonic() - began:.1f} s")


async def a_subscription_of_somebody_else(scene: Scene) -> None:
    """Who may only receive asks for another selector than a durable subscription has: the subscription and its messages stay."""
    owner = await scene.connect(ROOT, container="owner", jms=True)
    where = source("news", durable=True, capability="topic")
    mine = owner.attach(TRUE, where, target("x"), name="kept")
    await bounded(mine.attached, 10)
    await finish(owner)
    await send(scene, "news", composite(0x73, string("kept")) + section(0x75, b"\xa0\x04kept"))
    path = "news/Subscriptions/kept$owner$D"
    assert await is_there(scene, path, b"kept"), "there is no such subscription"
    thief = await scene.connect(LISTEN, container="owner", jms=True)
    await has_link(thief, TRUE, source("news", selector("JMSType = 'x'"), durable=True, capability="topic"), name="kept")
    await finish(thief)
    assert await is_there(scene, path, b"kept"), "the message is gone"


async def what_a_receiver_may_not(scene: Scene) -> None:
    """To send, to schedule, to cancel, to make entities, to take messages from a queue that the key is not for."""
    peer = await scene.connect(LISTEN)
    assert await has_link(peer, FALSE, target("yours")) is None, "it may send"
    node = await Node(peer, "mine/$management").attach()
    node.ask("com.microsoft:cancel-scheduled-message", {"sequence-numbers": b"\xe0\x0a\x01\x81" + struct.pack(">q", 1)})
    answer = await node.answer()
    assert b"unauthorized" in answer.lower() or b"\x01\x91" in answer, f"it may cancel: {answer[:200]!r}"
    await finish(peer)
    pair = await scene.connect(("pair", "key-of-the-pair"))
    for address in ("yours", "yours/$DeadLetterQueue", "pair/../yours", "sb://localhost/yours"):
        assert await has_link(pair, TRUE, source(address)) is None, f"the pair's key is good for {address}"
    await finish(pair)


async def management_requests_whose_answers_nobody_takes(scene: Scene) -> None:
    """They share a part of the memory with those of all others, which are answered all the same."""
    def peek(size: int) -> bytes:
        return request("com.microsoft:peek-message", {"padding": string("x" * size)}, "nobody")

    peers = await hold_requests(scene, LISTEN, "mine/$management", [900_000, 60_000, 4_000, 100], peek)
    await requests_are_answered(scene)
    for peer in peers:
        await finish(peer)


async def attaches_that_are_refused_without_end(scene: Scene) -> None:
    """Each refusal is a line of log, if nobody counts."""
    ends, refused = time.monotonic() + 3, 0
    while time.monotonic() < ends:
        peer = await scene.connect(LISTEN)
        await say(peer, *(attach(handle, f"{handle}", FALSE, NULL, target("yours")) for handle in range(1_000)))
        await until(peer, lambda: False, 0.2)
        refused += 1_000
        await finish(peer)
    scene.say(f"{refused} attaches were refused in 3 s")


ATTACKS = [
    what_a_receiver_may_not,
    a_subscription_of_somebody_else,
    one_disposition_for_many_messages,
    requests_that_take_much_to_decode,
    link_names_without_end,
    audiences_without_end,
    rules_of_five_megabytes,
    transactions_that_hold_much,
    patterns_without_end,
    requests_that_look_at_a_whole_queue,
    management_requests_whose_answers_nobody_takes,
    attaches_that_are_refused_without_end,
]
