"""Attacks over the JSON API with answers that are long, many, or not read, by those who have a key of one namespace; beside them a neighbour
who asks for its own entities and audit log all the time."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import urllib.parse
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, AsyncIterator

from amqp import FALSE, TRUE, Key, attach, message, source, target
from scene import Scene
from tools import LISTEN, ROOT, SEND, say, token

NEIGHBOUR: Key = ("root", "key-of-the-neighbour")
OWNER: Key = ("owner", "key-of-the-owner")
# The longest that the neighbour may wait for an answer, with all that it has to ask again, seconds.
NEIGHBOUR_WAIT = 5.0
# Bytes of a head of HTTP here.
HEAD = 64 * 1024


@dataclass
class Answer:
    status: int
    body: Any


async def ask(scene: Scene, method: str, path: str, key: Key, *, namespace: str = "attacked", body: object = None, within: float = 60) -> Answer:
    """One request to the JSON API, whose answer is read."""
    reader, writer = await send_request(scene, method, path, key, namespace=namespace, body=body)
    try:
        said = await asyncio.wait_for(reader.read(), within)
    finally:
        writer.close()
    if not said:
        return Answer(0, None)
    head, _, rest = said.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    assert status != 503 or b"\r\nretry-after:" in head.lower(), f"{path}: 503 without Retry-After"
    return Answer(status, json.loads(rest) if rest.startswith(b"{") else rest)


async def send_request(scene: Scene, method: str, path: str, key: Key, *, namespace: str = "attacked", body: object = None, limit: int = HEAD):
    """Sends a request, and reads nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", scene.http_port, limit=limit)
    content = b"" if body is None else json.dumps(body).encode()
    separator = "&" if "?" in path else "?"
    resource = f"http://localhost/{path.split('/')[1]}" if key == OWNER else "http://localhost/"
    writer.write(
        f"{method} /api/v1/{path}{separator}namespace={namespace} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Authorization: {token(resource, key)}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content
    )
    await writer.drain()
    return reader, writer


async def put(scene: Scene, entity: str, messages: list[dict[str, object]], key: Key = SEND) -> None:
    sent = await ask(scene, "POST", f"entities/{urllib.parse.quote(entity, safe='')}/send", key, body={"messages": messages})
    assert sent.status == 200, sent


@asynccontextmanager
async def neighbour(scene: Scene) -> AsyncIterator[None]:
    """Asks for the neighbour's entities again and again, as its console does, and asks once more where it is told to; the longest wait counts."""
    waits: list[float] = []
    refused = 0

    async def look() -> None:
        nonlocal refused
        while True:
            began = time.monotonic()
            for path in ("entities?kind=queue", "audit", "entities/orders"):
                while (answer := await ask(scene, "GET", path, NEIGHBOUR, namespace="neighbour")).status == 503:
                    refused += 1
                    await asyncio.sleep(0.2)
                assert answer.status == 200, answer
            waits.append(time.monotonic() - began)
            await asyncio.sleep(0.1)

    looking = asyncio.create_task(look())
    try:
        yield
        await asyncio.sleep(0.5)
    finally:
        looking.cancel()
        ended = (await asyncio.gather(looking, return_exceptions=True))[0]
    assert isinstance(ended, asyncio.CancelledError), f"the neighbour: {ended!r}"
    assert waits, "the neighbour got nothing"
    scene.say(f"the neighbour waited {max(waits):.2f} s at most, {len(waits)} times answered, {refused} times asked again")
    assert max(waits) < NEIGHBOUR_WAIT, f"the neighbour waited {max(waits):.1f} s"


def told(answers: list[object]) -> str:
    """How many answers of which kind came."""
    kinds: dict[str, int] = {}
    for answer in answers:
        kind = str(answer.status) if isinstance(answer, Answer) else type(answer).__name__
        kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(f"{count} of {kind}" for kind, count in sorted(kinds.items()))


async def all_of(scene: Scene, count: int, method: str, path: str, key: Key, **more: object) -> list[object]:
    """The same request so many times at once; all are read."""
    asked = [ask(scene, method, path, key, **more) for _ in range(count)]
    return await asyncio.gather(*asked, return_exceptions=True)


async def unread(scene: Scene, count: int, path: str, key: Key, seconds: float = 5) -> None:
    """So many requests whose answers nobody reads."""
    held = await asyncio.gather(*(send_request(scene, "GET", path, key, limit=1_024) for _ in range(count)))
    for reader, writer in held:
        writer.transport.pause_reading()
    await asyncio.sleep(seconds)
    for _, writer in held:
        writer.transport.abort()


async def pages_of_compressed_bodies(scene: Scene) -> None:
    """With Listen: a hundred bodies of 289 bytes that are 256 KiB when they are decompressed, in each of eight answers at once."""
    import base64

    bomb = base64.b64encode(gzip.compress(bytes(256 * 1024))).decode()
    await put(scene, "bombs", [{"body_base64": bomb} for _ in range(100)])
    async with neighbour(scene):
        answers = await all_of(scene, 8, "GET", "entities/bombs/messages?body=full", LISTEN)
    scene.say(f"answers: {told(answers)}")
    # Page by page all of them are there.
    numbers, start = [], 0
    while start is not None:
        page = await ask(scene, "GET", f"entities/bombs/messages?body=full&from={start}", LISTEN)
        if page.status == 503:
            continue
        numbers += [one["sequence_number"] for one in page.body["messages"]]
        start = page.body.get("next")
    assert numbers == list(range(1, 101)), numbers


async def answers_that_nobody_reads(scene: Scene) -> None:
    """With Listen: 200 answers with a message of 700 KB of control characters, whose text is six times as long."""
    await put(scene, "controls", [{"body": "\x01" * 600_000}])
    async with neighbour(scene):
        await unread(scene, 200, "entities/controls/messages?body=full&encoded=true", LISTEN)
        await unread(scene, 200, "entities/controls/messages/1", LISTEN)
    answer = await ask(scene, "GET", "entities/controls/messages/1", LISTEN)
    while answer.status == 503:
        await asyncio.sleep(0.2)
        answer = await ask(scene, "GET", "entities/controls/messages/1", LISTEN)
    assert answer.status == 200 and len(answer.body["body"]["text"]) == 600_000, answer.status


async def connections_with_many_links(scene: Scene) -> None:
    """With Listen: 20,000 links, listed by 50 at once, and followed by those who follow changes; then all of them end at once."""
    peers = []
    for _ in range(5):
        peer = await scene.connect(LISTEN, host="attacked")
        peers.append(peer)
        links = (attach(handle, f"link {handle} of {'n' * 100}", TRUE, source("bombs"), target("x")) for handle in range(4_000))
        await say(peer, *links)
    try:
        async with neighbour(scene):
            answers = await all_of(scene, 50, "GET", "connections", LISTEN)
            scene.say(f"answers: {told(answers)}")
            await unread(scene, 50, "connections", LISTEN)
            await unread(scene, 32, "changes", LISTEN, 3)
    finally:
        for peer in peers:
            peer.drop()
    # What the end of a link costs counts here, too.
    async with neighbour(scene):
        while (answer := await ask(scene, "GET", "connections", LISTEN)).status == 503 or answer.body["connections"]:
            await asyncio.sleep(0.1)


async def streams_of_changes(scene: Scene) -> None:
    """With Listen: as many streams of changes as there may be, of a namespace with 200 queues; the neighbour has streams nevertheless."""
    made = asyncio.Semaphore(16)

    async def make(number: int) -> None:
        async with made:
            path = f"entities/{'q' * 150}-{number}"
            answer = await ask(scene, "PUT", path, ROOT, body={"kind": "queue", "properties": {}})
            assert answer.status in (201, 503), answer

    await asyncio.gather(*(make(number) for number in range(200)))
    held = []
    async with neighbour(scene):
        for _ in range(64):
            held.append(await send_request(scene, "GET", "changes", LISTEN, limit=1_024))
        await asyncio.sleep(2)
        heads = await asyncio.gather(*(reader.readline() for reader, _ in held))
        for _, writer in held:
            writer.transport.pause_reading()
        open_streams = sum(b" 200 " in head for head in heads)
        own = []
        for _ in range(4):
            reader, writer = await send_request(scene, "GET", "changes", NEIGHBOUR, namespace="neighbour")
            own.append((await reader.readline(), writer))
        await asyncio.sleep(3)
    scene.say(f"{open_streams} streams of 64 are open")
    for _, writer in held:
        writer.transport.abort()
    for head, writer in own:
        writer.transport.abort()
        assert b" 200 " in head, f"the neighbour cannot follow its changes: {head!r}"


async def tests_of_rules_with_a_long_property(scene: Scene) -> None:
    """With Manage of the namespace: 150 rules, each of which reads a property of 600 KB."""
    expression = " OR ".join(["p='x'"] * 100)
    for number in range(150):
        rule = {"kind": "sql", "expression": expression} if number % 10 == 0 else {"kind": "correlation", "properties": {"p": "x"}}
        answer = await ask(scene, "PUT", f"entities/topic%2FSubscriptions%2Frules/rules/r{number}", ROOT, body={"filter": rule})
        assert answer.status == 201, answer
    body = {"message": {"properties": {"p": "\x01" * 600_000}}}
    async with neighbour(scene):
        answers = await all_of(scene, 4, "POST", "entities/topic/rule-tests", ROOT, body=body)
    scene.say(f"answers: {told(answers)}")
    assert any(isinstance(answer, Answer) and answer.status == 200 for answer in answers), told(answers)


async def dead_letters_with_long_reasons(scene: Scene) -> None:
    """With Manage: 3,000 dead letters, each with a reason and a description of its own of 4,000 characters, grouped by 20 at once."""
    for turn in range(30):
        await put(scene, "dead", [{"body": "x"} for _ in range(100)])
        numbers = range(100 * turn + 1, 100 * turn + 101)
        locked = await ask(scene, "POST", "entities/dead/lock", ROOT, body={"sequence_numbers": list(numbers)})
        assert locked.status == 200, locked
        settlements = [
            {"lock_token": one["lock_token"], "outcome": "dead_letter", "reason": f"{one['sequence_number']} {'r' * 3_900}", "description": "\x01" * 3_900}
            for one in locked.body["messages"]
        ]
        settled = await ask(scene, "POST", "entities/dead/settle", ROOT, body={"settlements": settlements})
        assert settled.status == 200, settled
    async with neighbour(scene):
        answers = await all_of(scene, 20, "GET", "entities/dead/dead-letters", LISTEN)
    scene.say(f"answers: {told(answers)}")
    assert any(isinstance(answer, Answer) and answer.status == 200 for answer in answers), told(answers)


async def jobs_with_long_templates(scene: Scene) -> None:
    """With Manage: 120 jobs with a template of 60 KB of control characters, listed by 30 at once."""
    await put(scene, "bombs", [{"body": "x"}])
    for _ in range(120):
        action = {"kind": "move", "to": "bombs", "body": "\x01" * 60_000}
        job = {"entity": "bombs", "action": action, "selection": {"numbers": [99_999]}}
        answer = await ask(scene, "POST", "jobs?wait=5", ROOT, body=job)
        assert answer.status in (202, 429, 503), answer
    async with neighbour(scene):
        answers = await all_of(scene, 30, "GET", "jobs", LISTEN)
        await unread(scene, 100, "jobs", LISTEN, 3)
    scene.say(f"answers: {told(answers)}")


async def messages_with_many_properties(scene: Scene) -> None:
    """With Send: eight bodies of 4 MB, each of a thousand messages with 300 properties."""
    properties = {f"p{number:03}": 1 for number in range(300)}
    body = {"messages": [{"properties": properties} for _ in range(1_000)]}
    async with neighbour(scene):
        answers = await all_of(scene, 8, "POST", "entities/managed/send", SEND, body=body)
    scene.say(f"answers: {told(answers)}")
    assert any(isinstance(answer, Answer) and answer.status == 200 for answer in answers), told(answers)
    purged = await ask(scene, "POST", "jobs?wait=30", ROOT, body={"entity": "managed", "action": {"kind": "delete"}})
    assert purged.status == 202, purged


async def rotations_of_keys(scene: Scene) -> None:
    """With Manage of one queue: 1,200 operations, more than the audit log of a shard has, which leave what the neighbour's has."""
    made = await ask(scene, "PUT", "entities/noted", NEIGHBOUR, namespace="neighbour", body={"kind": "queue", "properties": {}})
    assert made.status == 201, made
    async with neighbour(scene):
        for turn in range(600):
            # Rules by other names are not equal operations.
            rule = {"rights": ["listen"]}
            answer = await ask(scene, "PUT", f"entities/managed/authorization-rules/r{turn % 10}-{turn}", OWNER, body=rule)
            assert answer.status == 200, answer
            answer = await ask(scene, "DELETE", f"entities/managed/authorization-rules/r{turn % 10}-{turn}", OWNER)
            assert answer.status in (200, 204), answer
    audit = await ask(scene, "GET", "audit?entity=noted", NEIGHBOUR, namespace="neighbour")
    assert [entry["operation"] for entry in audit.body["entries"]] == ["create"], audit
    deleted = await ask(scene, "DELETE", "entities/noted", NEIGHBOUR, namespace="neighbour")
    assert deleted.status == 204, deleted


ATTACKS = [
    pages_of_compressed_bodies, answers_that_nobody_reads, connections_with_many_links, streams_of_changes, tests_of_rules_with_a_long_property,
    dead_letters_with_long_reasons, jobs_with_long_templates,
    messages_with_many_properties, rotations_of_keys,
]
