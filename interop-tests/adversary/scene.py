"""What stands around attacks: a broker, a well-behaved pair on a queue of its own, somebody who asks for health, and somebody who looks at
memory, at the log and at the data."""

from __future__ import annotations

import asyncio
import shutil
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import loads
from amqp import Key, Peer
from loads import Load, Drained, Sent
from watch import HERE, MEBIBYTE, Broker, Pair, Watch

# Seconds in which the pair's figures of a calm broker are taken, before and after.
CALM = 1.0
# How long a broker may need to be itself again.
CALM_WAIT = 30.0
# What one attack may add to what the broker logs, and to its data, bytes.
LOGGED_MAX = 256 * 1024
WRITTEN_MAX = 512 * MEBIBYTE

Attack = Callable[["Scene"], Awaitable[None]]


@dataclass
class Stage:
    """A broker, and what it has to endure: one attack after the other."""

    name: str
    attacks: list[Attack]
    # What the process may have in memory at most, MiB.
    memory: int
    # The longest time for which the pair may get nothing, seconds.
    gap: float
    config: str
    # Attacks that mostly wait: they go on beside the others.
    beside: list[Attack] = field(default_factory=list)
    # Further arguments of the broker.
    arguments: list[str] = field(default_factory=list)
    # How many descriptors it may have, if it is not as many as the system gives.
    descriptors: int | None = None
    # Its keys are verified: the pair has its own.
    has_keys: bool = True


@dataclass
class Scene:
    """What an attack works with."""

    broker: Broker
    watch: Watch
    pair: Pair
    work: Path

    @property
    def port(self) -> int:
        return self.broker.amqp_port

    @property
    def http_port(self) -> int:
        return self.broker.http_port

    @property
    def pid(self) -> int:
        return self.broker.state["pid"]

    def say(self, text: str) -> None:
        print(f"        {text}", flush=True)

    async def connect(self, key: Key | None, **arguments: Any) -> Peer:
        return await Peer.connect(self.port, key=key, **arguments)

    async def drained(self, queue: str, within: float = 60, **arguments: Any) -> Drained:
        """Receives and completes all that is in a queue."""
        return await Load(loads.drain, port=self.port, queue=queue, **arguments).end(within)

    async def deposit(self, queue: str, count: int, size: int, within: float = 60, **arguments: Any) -> Sent:
        """Sends so many messages, and waits until all are accepted."""
        load = Load(loads.deposit, port=self.port, queue=queue, count=count, size=size, **arguments)
        return await load.result(within)

    def logged(self) -> int:
        """Bytes of the broker's log."""
        return self.broker.log.stat().st_size

    def written(self) -> int:
        """Bytes of its data that the disk has."""
        files = Path(self.broker.state["data_dir"]).rglob("*")
        return sum(path.stat().st_blocks * 512 for path in files if path.is_file())


def all_answered(*loads: Sent) -> Sent:
    """Adds up what senders tell that have come to their end, each of whose messages must have been accepted or refused."""
    sent = Sent()
    for load in loads:
        assert not load.ended, f"{len(load.ended)} connections or links have ended: {load.ended[:3]}"
        assert not load.unknown, f"{len(load.unknown)} messages were never answered"
        sent.accepted.extend(load.accepted)
        sent.refused += load.refused
    assert sent.accepted, "nothing was accepted"
    return sent


def all_accepted(*loads: Sent) -> Sent:
    """The same, where all must have been accepted."""
    sent = all_answered(*loads)
    assert not sent.refused, f"{sent.refused} messages were refused"
    return sent


def check_numbers(sent: Sent, drained: Drained) -> None:
    """Nothing accepted is lost, nothing is there twice, nothing is there that was not sent."""
    accepted, came = set(sent.accepted), set(drained.numbers)
    lost = accepted - came
    assert not lost, f"{len(lost)} of {len(accepted)} accepted messages are lost: {sorted(lost)[:5]}"
    assert not drained.doubled, f"{len(drained.doubled)} messages came twice: {drained.doubled[:5]}"
    foreign = came - accepted - set(sent.unknown)
    assert not foreign, f"{len(foreign)} messages came that nobody has sent: {sorted(foreign)[:5]}"


def describe(seen: dict[str, Any]) -> str:
    """The pair's figures in a line."""
    accepted, received = (" / ".join(str(seen[what][part]) for part in ("p50", "p99", "max")) for what in ("accepted_ms", "received_ms"))
    return (
        f"accepted after {accepted} ms, received after {received} ms, longest gap {seen['gap']} s, {seen['received']} messages in "
        f"{seen['seconds']} s" + (f", errors {seen['errors']}" if seen["errors"] else "")
    )


async def calm(pair: Pair) -> dict[str, Any]:
    """The pair's figures while nobody else is there; they begin when what was before has passed."""
    deadline = time.monotonic() + CALM_WAIT
    while True:
        await pair.mark()
        await asyncio.sleep(CALM)
        seen = await pair.mark()
        if seen["received"] > 2 and seen["received_ms"]["max"] < 1000 * CALM:
            return seen
        assert time.monotonic() < deadline, f"the pair does not come to rest: {describe(seen)}"


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    # The longest time that the pair has waited for a message in any attack, seconds, and in which.
    longest: tuple[float, str] = (0.0, "")
    # The most that a broker has had in memory, MiB.
    peak: float = 0.0

    def add(self, name: str, failure: str | None, seconds: float) -> None:
        if failure is None:
            self.passed += 1
            print(f"ok      {name} ({seconds:.1f} s)", flush=True)
        else:
            self.failed += 1
            print(f"FAILED  {name} ({seconds:.1f} s)\n{failure}", flush=True)

    def note(self, during: dict[str, Any], peak: float, name: str) -> None:
        longest = max(during["received_ms"]["max"] / 1000, during["gap"])
        self.longest = max(self.longest, (longest, name))
        self.peak = max(self.peak, peak)


async def perform(stage: Stage, work: Path, result: Result) -> None:
    """Runs a stage. After an attack that succeeded, the next ones get a new broker: each tells of itself only."""
    left = list(stage.attacks)
    while left:
        shutil.rmtree(work, ignore_errors=True)
        await endure(stage, left, work, result)
    # What they wrote is large.
    shutil.rmtree(work / "data", ignore_errors=True)


async def endure(stage: Stage, left: list[Attack], work: Path, result: Result) -> None:
    """Lets one broker endure what is left, as far as it does; what it has endured is left no more."""
    broker = Broker.create(work, config=HERE / stage.config, arguments=stage.arguments)
    if stage.descriptors:
        broker.limit_descriptors(stage.descriptors)
    broker.start()
    pair = None
    began, name, beside = time.monotonic(), f"{stage.name}: beginning", []
    try:
        watch, pair = Watch(broker), await Pair.start(broker, stage.has_keys)
        scene = Scene(broker, watch, pair, work)
        scene.say(f"[{stage.name}] before: {describe(await calm(pair))}; {watch.memory() / MEBIBYTE:.0f} MiB")
        beside = [(attack.__name__, asyncio.create_task(attack(scene))) for attack in stage.beside]
        while left:
            attack = left.pop(0)
            began, name = time.monotonic(), attack.__name__
            await suffer(stage, scene, attack, result)
            result.add(name, None, time.monotonic() - began)
        for name, task in beside:
            began = time.monotonic()
            await task
            result.add(name, None, time.monotonic() - began)
        began, name = time.monotonic(), f"{stage.name}: the end"
        scene.say(f"[{stage.name}] after:  {describe(await calm(pair))}; {watch.memory() / MEBIBYTE:.0f} MiB")
        last = await pair.end()
        await watch.end()
        assert not last["lost"] and not last["doubled"], f"of the pair's: lost {last['lost'][:5]}, doubled {last['doubled'][:5]}"
        code = broker.stop()
        assert code == 0, f"the broker ended with {code}\n{broker.log_tail()}"
        assert "panicked at" not in broker.log.read_text(errors="replace"), broker.log_tail()
        result.add(name, None, time.monotonic() - began)
    except Exception:
        ended = "" if broker.running() else f"the broker has ended with {broker.state['exit_code']}\n{broker.log_tail()}\n"
        result.add(name, ended + traceback.format_exc(), time.monotonic() - began)
    finally:
        for _, task in beside:
            task.cancel()
        if pair:
            await pair.stop()
        if broker.running():
            broker.kill()


async def suffer(stage: Stage, scene: Scene, attack: Attack, result: Result) -> None:
    """Runs an attack, and checks what holds for all of them."""
    watch, pair = scene.watch, scene.pair
    await pair.mark()
    watch.begin()
    logged, written = scene.logged(), scene.written()
    await attack(scene)
    during = await pair.mark()
    peak = watch.peak / MEBIBYTE
    logged, written = scene.logged() - logged, scene.written() - written
    scene.say(f"during: {describe(during)}")
    scene.say(
        f"        at most {peak:.0f} MiB; health {watch.describe_health()}; {logged / 1024:.0f} KiB logged, {written / MEBIBYTE:.0f} MiB written"
    )
    result.note(during, peak, attack.__name__)
    assert not watch.unhealthy, f"health: {len(watch.unhealthy)} of {len(watch.health)} were not: {watch.unhealthy[:3]}"
    longest = max(during["gap"], during["received_ms"]["max"] / 1000)
    assert longest < stage.gap, f"the pair waited {longest:.1f} s for a message"
    assert not during["errors"], f"the pair failed: {during['errors']}"
    assert peak <= stage.memory, f"{peak:.0f} MiB in memory, which may be {stage.memory}"
    if stage.has_keys:
        assert logged <= LOGGED_MAX, f"{logged / 1024:.0f} KiB of log, which may be {LOGGED_MAX / 1024:.0f}"
        assert written <= WRITTEN_MAX, f"{written / MEBIBYTE:.0f} MiB of data, which may be {WRITTEN_MAX / MEBIBYTE:.0f}"
