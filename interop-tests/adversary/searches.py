"""Attacks by searches in the bytes of messages, of somebody in another namespace than the pair, and by jobs that select with them: JSONPaths
whose parser or evaluation takes very long."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.parse
from collections import Counter

from amqp import Key
from scene import Scene
from tools import LISTEN, ROOT, Answer, http, token

# How many ask at once.
CROWD = 40
# What a path may have, characters.
PATH_MAX = 1_024
# How long one search may take beside so many others, seconds.
SEARCH_MAX = 60.0
MIB = 1024 * 1024


def api(path: str, **query: str) -> str:
    return f"/api/v1/{path}?{urllib.parse.urlencode({'namespace': 'loud', **query})}"


def proof(key: Key) -> str:
    return token("sb://loud/", key)


def filled(before: str, part: str, after: str) -> str:
    """A path that is as long as it may be."""
    return before + part * ((PATH_MAX - len(before) - len(after)) // len(part)) + after


def nested(before: str, part: str, after: str, behind: str, depth: int) -> str:
    return before + part * depth + after + behind * depth


# What takes a parser that tries alternatives a time that doubles with each level.
DEEP = [
    nested("$", "[?@", "", "]", 40),
    nested("$", "[?@", "", "]", 250),
    nested("$[?", "(", "@.a", ")", 400) + "]",
    nested("$[?", "!(", "@.a", ")", 300) + "]",
    nested("$[?", "length(", "@", ")", 100) + "==1]",
    nested("$[?", "count(@[?", "@", "])==1", 60) + "]",
    "$[?" + "(@==@&&" * 120,
]
# What visits each value of a document again and again.
WIDE = [
    filled("$..[?@!=@", "||@!=@", "]"),
    filled("$..[?@==@", "&&@==@", "&&@!=@]"),
    filled("$", "..*", ".z"),
    filled("$", "[0,0]", ".z"),
    filled("$", "[?@]", ".z"),
    "$..[?$..[?$..[?$..[?@==1]]]]",
    "$..[?count($..*)==0].z",
]


def bodies() -> list[str]:
    """JSON of almost a MiB each."""
    deep = "[" * 120 + "]" * 120
    return [
        "[" + ",".join([deep] * 4_000) + "]",
        "[" + "0," * 500_000 + "0]",
        "[" + '{"":0},' * 140_000 + "0]",
        json.dumps({"orders": [{"id": 4711, "tags": ["a", "b"], "total": 12.5}] * 15_000}),
    ]


async def deposit(scene: Scene) -> None:
    """Puts the bodies into `mine`, unless they are there."""
    counted = await ask(scene, "GET", api("entities/mine/messages", body="none"), LISTEN)
    if '"sequence_number"' in counted.text:
        return
    for body in bodies():
        sent = await ask(scene, "POST", api("entities/mine/send"), ROOT, {"messages": [{"body": body}]})
        assert sent.status == 200, sent.text


async def ask(scene: Scene, method: str, path: str, key: Key, body: object = None) -> Answer:
    sent = json.dumps(body).encode() if body is not None else b""
    return await http(scene, method, path, proof(key), sent, patience=SEARCH_MAX)


async def tell(scene: Scene, what: str, asked: list[asyncio.Task[Answer]]) -> Counter[int]:
    began = time.monotonic()
    answers = await asyncio.gather(*asked)
    found = Counter(answer.status for answer in answers)
    scene.say(f"{what}: {dict(found)} after {time.monotonic() - began:.1f} s")
    return found


async def paths_that_are_nested_without_end(scene: Scene) -> None:
    """Searches in an empty queue, with paths for whose nesting a parser may never end: each is refused at once."""
    asked = [
        asyncio.create_task(ask(scene, "GET", path, LISTEN))
        for path in [api("entities/empty/messages", json_path=deep) for deep in DEEP] * 6 + [api("messages", json_path=deep) for deep in DEEP]
    ]
    began = time.monotonic()
    found = await tell(scene, "nested paths", asked)
    assert set(found) == {400}, found
    assert time.monotonic() - began < 5, "a refusal takes long"
    job = {"entity": "empty", "selection": {"json_path": DEEP[0]}, "action": {"kind": "delete"}}
    started = await ask(scene, "POST", api("jobs"), ROOT, job)
    assert started.status == 400 and "json_path" in started.text, started.text


async def paths_that_visit_everything_again(scene: Scene) -> None:
    """Searches in bodies of a MiB, with paths whose evaluation may never end; more of them than may be at once are refused."""
    await deposit(scene)
    asked = [
        asyncio.create_task(ask(scene, "GET", api("entities/mine/messages", body="none", json_path=WIDE[number % len(WIDE)]), LISTEN))
        for number in range(CROWD)
    ]
    found = await tell(scene, "costly paths", asked)
    assert found[200] and set(found) <= {200, 429, 503}, found


async def searches_whose_clients_leave(scene: Scene) -> None:
    """The same, by clients that do not wait for the answer: their places are free again, and a search of somebody else is answered."""
    await deposit(scene)
    path = api("entities/mine/messages", body="none", json_path=WIDE[0])
    for _ in range(5):
        connections = [await asyncio.open_connection("127.0.0.1", scene.http_port) for _ in range(CROWD)]
        for _, writer in connections:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {proof(LISTEN)}\r\n\r\n".encode())
            await writer.drain()
        await asyncio.sleep(0.1)
        for _, writer in connections:
            writer.close()
    began = time.monotonic()
    while (found := await ask(scene, "GET", api("entities/empty/messages", json_path="$.a"), LISTEN)).status == 429:
        assert time.monotonic() - began < 10, "their searches go on"
        await asyncio.sleep(0.1)
    assert found.status == 200, found.text
    scene.say(f"a search was answered {time.monotonic() - began:.1f} s after they had gone")


async def jobs_that_select_with_costly_paths(scene: Scene) -> None:
    """As many jobs as may run, each of which evaluates such a path in every message: they end, and leave what is not decided."""
    await deposit(scene)
    ids = []
    for number in range(16):
        job = {"entity": "mine", "selection": {"json_path": WIDE[number % len(WIDE)]}, "action": {"kind": "activate"}}
        started = await ask(scene, "POST", api("jobs"), ROOT, job)
        if started.status == 429:
            break
        assert started.status == 202, started.text
        ids.append(json.loads(started.text.split("\r\n\r\n", 1)[1])["id"])
    began = time.monotonic()
    for number in ids:
        while True:
            job = await ask(scene, "GET", api(f"jobs/{number}", wait="5"), LISTEN)
            if '"running"' not in job.text:
                break
            assert time.monotonic() - began < 120, f"job {number} does not end: {job.text}"
        assert '"completed"' in job.text, job.text
    scene.say(f"{len(ids)} jobs ended after {time.monotonic() - began:.1f} s; the last: {job.text.splitlines()[-1][-300:]}")


ATTACKS = [
    paths_that_are_nested_without_end,
    paths_that_visit_everything_again,
    searches_whose_clients_leave,
    jobs_that_select_with_costly_paths,
]
