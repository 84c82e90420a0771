"""Attacks with answers that are long, many, or not read, by those who have a key of one namespace, over the JSON API,
and some over ATOM and AMQP; beside them a neighbour who asks for its own entities and audit log all the time."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import socket
import time
import urllib.parse
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, AsyncIterator

from amqp import TRUE, Key, attach, binary, bounded, int32, int64, source, string, symbol_map, target
from scene import Scene
from tools import LISTEN, PATIENCE, ROOT, SEND, Node, say, status_of, token

NEIGHBOUR: Key = ("root", "key-of-the-neighbour")
OWNER: Key = ("owner", "key-of-the-owner")
# The longest that the neighbour may wait for an answer, with all that it has to ask again, seconds.
NEIGHBOUR_WAIT = 5.0
# How long a request over AMQP is waited for, seconds.
REQUEST_WAIT = 60.0
# Bytes of a head of HTTP here.
HEAD = 64 * 1024


@dataclass
class Answer:
    status: int
    body: Any


async def ask(scene: Scene, method: str, path: str, key: Key, *, namespace: str = "attacked", body: object = None, within: float = 60) -> Answer:
    """One request to the JSON API, whose answer is read."""
    reader, writer = await bounded(send_request(scene, method, path, key, namespace=namespace, body=body), within)
    try:
        said = await bounded(reader.read(), within)
    finally:
        writer.close()
    if not said:
        return Answer(0, None)
    head, _, rest = said.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    assert status != 503 or b"\r\nretry-after:" in head.lower(), f"{path}: 503 without Retry-After"
    return Answer(status, json.loads(rest) if rest.startswith(b"{") else rest)


async def connect(scene: Scene, limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects. Of one who has a small limit the system keeps little of the answer, too (`Peer.connect`)."""
    own = socket.socket()
    if limit < HEAD:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    own.setblocking(False)
    await asyncio.get_running_loop().sock_connect(own, ("127.0.0.1", scene.http_port))
    return await asyncio.open_connection(sock=own, limit=limit)


async def send_request(scene: Scene, method: str, path: str, key: Key, *, namespace: str = "attacked", body: object = None, limit: int = HEAD):
    """Sends a request, and reads nothing."""
    reader, writer = await connect(scene, limit)
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


async def delete_all(scene: Scene, entity: str, count: int) -> None:
    """Deletes all messages of an entity, which are so many: what an attack has left would take the next one's memory."""
    deleted = await ask(scene, "POST", "jobs?wait=30", ROOT, body={"entity": entity, "action": {"kind": "delete"}})
    assert deleted.status == 202 and deleted.body["changed"] == count, deleted


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


@asynccontextmanager
async def neighbour_over_amqp(scene: Scene) -> AsyncIterator[None]:
    """Two who peek at the neighbour's queue over AMQP again and again, by requests as those that renew locks are: one
    on a connection that it keeps, and one on a new connection each time. The longest wait counts."""
    waits: dict[str, list[float]] = {"kept": [], "new": []}

    async def look(which: str) -> None:
        node = None
        while True:
            began = time.monotonic()
            try:
                if node is None:
                    peer = await scene.connect(NEIGHBOUR, host="neighbour")
                    node = await Node(peer, "orders/$management").attach()
                node.ask("com.microsoft:peek-message", {"from-sequence-number": int64(0), "message-count": int32(1)})
                assert status_of(await node.answer(REQUEST_WAIT)) in (200, 204)
            finally:
                # One that is not answered yet counts, too.
                waits[which].append(time.monotonic() - began)
            if which == "new":
                node.peer.drop()
                node = None
            await asyncio.sleep(0.1)

    looking = [asyncio.create_task(look(which)) for which in waits]
    try:
        yield
    finally:
        for each in looking:
            each.cancel()
        ended = await asyncio.gather(*looking, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in ended), f"the neighbour over AMQP: {ended!r}"
    for which, each in waits.items():
        told_of = f"over AMQP on a {which} connection, for {len(each)} answers"
        scene.say(f"the neighbour waited {max(each):.2f} s at most {told_of}")
    longest = max(max(each) for each in waits.values())
    assert longest < NEIGHBOUR_WAIT, f"the neighbour waited {longest:.1f} s over AMQP"


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


async def at_last(scene: Scene, path: str, key: Key) -> Answer:
    """The answer to one who asks again while there is no room for it: of many who ask at once, each may find none."""
    async with asyncio.timeout(PATIENCE):
        while (answer := await ask(scene, "GET", path, key)).status == 503:
            await asyncio.sleep(0.2)
    assert answer.status == 200, answer.status
    return answer


async def again(scene: Scene, count: int, times: int, path: str, key: Key) -> list[object]:
    """So many who ask the same again and again, and read the answers."""
    async def one() -> list[object]:
        return [(await asyncio.gather(ask(scene, "GET", path, key), return_exceptions=True))[0] for _ in range(times)]

    return [answer for answers in await asyncio.gather(*(one() for _ in range(count))) for answer in answers]


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
    answer = await at_last(scene, "entities/controls/messages/1", LISTEN)
    assert len(answer.body["body"]["text"]) == 600_000


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
    await at_last(scene, "entities/dead/dead-letters", LISTEN)
    await delete_all(scene, "dead/$DeadLetterQueue", 3_000)


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
    # How many of the eight are accepted depends on the memory that the others take.
    await delete_all(scene, "managed", 1_000 * sum(isinstance(answer, Answer) and answer.status == 200 for answer in answers))


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


# A subscription of answers.json, and how many rules it gets, each of 60 KB: more than the answers of a namespace have, and
# a part of the room for state, because it is answers that are to take the memory.
RULED, LONG_RULES = "ruled%2FSubscriptions%2Flong", 80


@asynccontextmanager
async def long_rules(scene: Scene, character: str) -> AsyncIterator[None]:
    """Makes rules whose values are this character, and deletes them afterwards."""
    filter_ = {"kind": "correlation", "properties": {f"p{number}": character * 15_000 for number in range(4)}}
    for number in range(LONG_RULES):
        answer = await ask(scene, "PUT", f"entities/{RULED}/rules/r{number}", ROOT, body={"filter": filter_})
        assert answer.status == 201, answer
    yield
    for number in range(LONG_RULES):
        answer = await ask(scene, "DELETE", f"entities/{RULED}/rules/r{number}", ROOT)
        assert answer.status == 204, answer


async def configurations_that_are_long(scene: Scene) -> None:
    """With Manage: a configuration of 5 MB, with keys and without, and the list of its rules: 10 ask for them again and
    again, and 100 read nothing."""
    async with long_rules(scene, "x"):
        async with neighbour(scene):
            for path in ("configuration", "configuration?keys=true", f"entities/{RULED}/rules"):
                answers = await again(scene, 10, 5, path, ROOT)
                scene.say(f"answers to {path}: {told(answers)}")
                await at_last(scene, path, ROOT)
                await unread(scene, 100, path, ROOT, 3)
        answer = await at_last(scene, "configuration", ROOT)
        topics = answer.body["UserConfig"]["Namespaces"][0]["Topics"]
        (rules,) = (topic["Subscriptions"][0]["Rules"] for topic in topics if topic["Name"] == "ruled")
        assert len(rules) == LONG_RULES + 1, len(rules)


async def rules_over_amqp_that_nobody_reads(scene: Scene) -> None:
    """With Listen: 60 ask for the rules of a subscription over AMQP, 5 MB, and read nothing; then the neighbour has
    requests."""
    peers = []
    async with long_rules(scene, "x"), neighbour(scene):
        try:
            for _ in range(60):
                peer = await scene.connect(LISTEN, host="attacked", reads=False)
                peers.append(peer)
                node = await Node(peer, "ruled/Subscriptions/long/$management").attach()
                peer.transport.pause_reading()
                for _ in range(20):
                    node.ask("com.microsoft:enumerate-rules", {"top": int32(100), "skip": int32(0)})
            async with neighbour_over_amqp(scene):
                await asyncio.sleep(10)
        finally:
            for peer in peers:
                peer.drop()


async def ask_atom(scene: Scene, path: str, limit: int = HEAD) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Asks for a list of administration, and reads nothing."""
    reader, writer = await connect(scene, limit)
    separator = "&" if "?" in path else "?"
    writer.write(
        f"GET /{path}{separator}api-version=2021-05 HTTP/1.1\r\nHost: attacked.localhost\r\nConnection: close\r\n"
        f"Authorization: {token('http://attacked.localhost/', ROOT)}\r\n\r\n".encode()
    )
    await writer.drain()
    return reader, writer


async def read_atom(scene: Scene, path: str) -> Answer:
    reader, writer = await ask_atom(scene, path)
    try:
        said = await bounded(reader.read(), 60)
    finally:
        writer.close()
    return Answer(int(said.split(b" ", 2)[1]) if said else 0, said)


async def lists_of_rules_that_nobody_reads(scene: Scene) -> None:
    """With Manage: lists over ATOM of 80 rules of 60 KB, each byte of which is five in XML; 8 read them, and 200
    read nothing."""
    async with long_rules(scene, "&"):
        await attack_lists(scene, "ruled/subscriptions/long/rules?$skip=0&$top=100")


async def lists_of_queues_that_nobody_reads(scene: Scene) -> None:
    """With Manage: the same with a hundred queues that have long names, metadata and authorization rules."""
    rules = [{"Name": f"{'r' * 200}{number}", "Rights": ["Listen"], "PrimaryKey": "k" * 44} for number in range(12)]
    own = {"Properties": {"UserMetadata": "&" * 1_024}, "AuthorizationRules": rules}
    queues = [{"Name": f"{'l' * 240}-{number}", **own} for number in range(100)]
    file = {"UserConfig": {"Namespaces": [{"Name": "attacked", "Queues": queues}]}}
    answer = await ask(scene, "PUT", "configuration", ROOT, body=file)
    assert answer.status == 200 and answer.body["made"] == 100, answer
    await attack_lists(scene, "$Resources/queues?$skip=0&$top=100")


async def attack_lists(scene: Scene, path: str) -> None:
    async with neighbour(scene):
        answers = await asyncio.gather(*(read_atom(scene, path) for _ in range(8)), return_exceptions=True)
        longest = max((len(answer.body) for answer in answers if isinstance(answer, Answer)), default=0)
        scene.say(f"answers: {told(answers)}, of {longest} bytes at most")
        held = await asyncio.gather(*(ask_atom(scene, path, 1_024) for _ in range(200)))
        for reader, writer in held:
            writer.transport.pause_reading()
        await asyncio.sleep(5)
        for _, writer in held:
            writer.transport.abort()


# Bytes of the state of a message session here, as many as it may have, and how many have one: a quarter of what there
# is room for, because it is answers that are to take the memory, and not states.
STATE, STATES = 1024 * 1024, 8


@asynccontextmanager
async def states(scene: Scene, count: int) -> AsyncIterator[int]:
    """Gives so many message sessions a long state, or as many as there is room for, and takes it away afterwards.
    Yields how many have one."""
    state, made = base64.b64encode(bytes(STATE)).decode(), 0
    try:
        for number in range(count):
            answer = await ask(scene, "PUT", f"entities/grouped/sessions/s{number}", ROOT, body={"state_base64": state})
            if answer.status == 503:
                break
            assert answer.status == 204, answer
            made += 1
        yield made
    finally:
        for number in range(made):
            cleared = await ask(scene, "PUT", f"entities/grouped/sessions/s{number}", ROOT, body={"state_base64": None})
            assert cleared.status == 204, cleared


async def states_that_are_read_over_the_api(scene: Scene) -> None:
    """With Listen: states of 1 MiB, read by 20 again and again, and asked for by 200 who read nothing; so is a list of
    a thousand message sessions with long ids."""
    await put(scene, "grouped", [{"body": "x", "session_id": f"{number:04}{chr(1) * 124}"} for number in range(1_000)])
    async with states(scene, STATES) as made, neighbour(scene):
        assert made == STATES, made
        for path in ("sessions/s0", "sessions"):
            answers = await again(scene, 20, 10, f"entities/grouped/{path}", LISTEN)
            scene.say(f"answers to {path}: {told(answers)}")
            assert any(isinstance(answer, Answer) and answer.status == 200 for answer in answers), told(answers)
            await unread(scene, 200, f"entities/grouped/{path}", LISTEN, 3)
        while (answer := await ask(scene, "GET", f"entities/grouped/sessions/s{STATES - 1}", LISTEN)).status == 503:
            await asyncio.sleep(0.2)
        assert len(base64.b64decode(answer.body["state_base64"])) == STATE, answer.status
    await delete_all(scene, "grouped", 1_000)


async def states_that_are_read_over_amqp(scene: Scene) -> None:
    """With Listen: 8 who hold a message session with a state of 1 MiB ask for it again and again, and so do 120 who
    read nothing."""
    peers, nodes = [], []

    async def ask_for(number: int, times: int, reads: bool) -> None:
        peer = await scene.connect(LISTEN, host="attacked", reads=reads)
        peers.append(peer)
        if reads:
            mine = symbol_map({"com.microsoft:session-filter": string(f"s{number}")})
            link = peer.attach(TRUE, source("grouped", mine), target("x"))
            await bounded(link.attached, PATIENCE)
        node = await Node(peer, "grouped/$management").attach()
        if reads:
            nodes.append(node)
        else:
            peer.transport.pause_reading()
        for _ in range(times):
            node.ask("com.microsoft:get-session-state", {"session-id": string(f"s{number}")})

    async with states(scene, STATES) as made, neighbour(scene):
        assert made == STATES, made
        for number in range(STATES):
            await ask_for(number, 200, reads=True)
        for number in range(120):
            await ask_for(number % STATES, 20, reads=False)
        for node in nodes:
            assert await node.answered(200, 60) == 200, f"who reads gets all answers: {node.peer.wrong}"
        first = await nodes[0].answer()
        assert status_of(first) == 200 and STATE < len(first), first[:200]
        # Who reads nothing has been closed, or has little that waits.
        for peer in peers:
            peer.drop()


async def states_without_end_over_the_api(scene: Scene) -> None:
    """With Manage: states of 1 MiB for 250 message sessions. There is no room for them, and the pair sends all the
    same."""
    async with neighbour(scene), states(scene, 250) as made:
        scene.say(f"{made} message sessions have a state of 1 MiB")
        await asyncio.sleep(2)
    assert made < 250, "their states have no bound"


async def states_without_end_over_amqp(scene: Scene) -> None:
    """With Listen: the same by who holds the message sessions."""
    peers, made = [], 0
    async with neighbour(scene):
        for number in range(250):
            peer = await scene.connect(LISTEN, host="attacked")
            peers.append(peer)
            mine = symbol_map({"com.microsoft:session-filter": string(f"s{number}")})
            link = peer.attach(TRUE, source("grouped", mine), target("x"))
            await bounded(link.attached, PATIENCE)
            node = await Node(peer, "grouped/$management").attach()
            state = {"session-id": string(f"s{number}"), "session-state": binary(bytes(STATE))}
            node.ask("com.microsoft:set-session-state", state)
            if status_of(await node.answer()) != 200:
                break
            made += 1
        scene.say(f"{made} message sessions have a state of 1 MiB")
        await asyncio.sleep(2)
    for peer in peers:
        peer.drop()
    for number in range(made):
        cleared = await ask(scene, "PUT", f"entities/grouped/sessions/s{number}", ROOT, body={"state_base64": None})
        assert cleared.status == 204, cleared
    assert made < 250, "their states have no bound"


ATTACKS = [
    pages_of_compressed_bodies, answers_that_nobody_reads, connections_with_many_links, streams_of_changes, tests_of_rules_with_a_long_property,
    dead_letters_with_long_reasons, jobs_with_long_templates,
    messages_with_many_properties, rotations_of_keys, configurations_that_are_long, lists_of_rules_that_nobody_reads,
    lists_of_queues_that_nobody_reads, rules_over_amqp_that_nobody_reads, states_that_are_read_over_the_api,
    states_that_are_read_over_amqp, states_without_end_over_the_api, states_without_end_over_amqp,
]
