"""What stands around a test: a broker of its own, a well-behaved pair on another queue, somebody who asks for health, and somebody who
looks at memory."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import crew
from crew import Crew, Drained, Sent
from watch import MEBIBYTE, Broker, Pair, Watch

# The longest time in which the pair may get nothing: that it goes on, and not how fast.
GAP_MAX = 15.0
# Seconds in which the pair's figures of a calm broker are taken, before and after.
CALM = 1.0
# How long a broker may need to be itself again.
CALM_WAIT = 30.0


@dataclass
class Test:
    run: Callable[["Scene"], Awaitable[None]]
    # What the process may have in memory at most, MiB.
    memory: int
    # Further arguments of the broker.
    arguments: list[str] = field(default_factory=list)
    # How many descriptors it may have, if it is not as many as the system gives.
    descriptors: int | None = None


@dataclass
class Scene:
    """What a test works with."""

    broker: Broker
    watch: Watch
    pair: Pair
    work: Path

    @property
    def port(self) -> int:
        return self.broker.amqp_port

    @property
    def pid(self) -> int:
        return self.broker.state["pid"]

    def say(self, text: str) -> None:
        print(f"        {text}", flush=True)

    async def drained(self, queue: str, within: float = 60, **arguments: Any) -> Drained:
        """Receives and completes all that is in a queue."""
        return await Crew(crew.drain, port=self.port, queue=queue, **arguments).end(within)

    async def deposit(self, queue: str, count: int, size: int, within: float = 60, **arguments: Any) -> Sent:
        """Sends so many messages, and waits until all are accepted."""
        load = Crew(crew.deposit, port=self.port, queue=queue, count=count, size=size, **arguments)
        return await load.result(within)


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


async def perform(test: Test, work: Path) -> None:
    """Runs a test and checks what holds for all of them."""
    shutil.rmtree(work, ignore_errors=True)
    broker = Broker.create(work, config=Path(__file__).parent / "config.json", arguments=test.arguments)
    if test.descriptors:
        broker.limit_descriptors(test.descriptors)
    broker.start()
    watch = pair = None
    try:
        watch, pair = Watch(broker), await Pair.start(broker)
        scene = Scene(broker, watch, pair, work)
        scene.say(f"before: {describe(await calm(pair))}; {watch.memory() / MEBIBYTE:.0f} MiB")
        watch.begin()
        await test.run(scene)
        during = await pair.mark()
        peak = watch.peak / MEBIBYTE
        scene.say(f"during: {describe(during)}; at most {peak:.0f} MiB; health {watch.describe_health()}")
        scene.say(f"after:  {describe(await calm(pair))}; {watch.memory() / MEBIBYTE:.0f} MiB")
        last = await pair.end()
        await watch.end()
        assert not watch.unhealthy, f"health: {len(watch.unhealthy)} of {len(watch.health)} were not: {watch.unhealthy[:3]}"
        assert during["gap"] < GAP_MAX, f"the pair got nothing for {during['gap']} s"
        assert not during["errors"], f"the pair failed: {during['errors']}"
        assert not last["lost"] and not last["doubled"], f"of the pair's: lost {last['lost'][:5]}, doubled {last['doubled'][:5]}"
        assert peak <= test.memory, f"{peak:.0f} MiB in memory, which may be {test.memory}"
        code = broker.stop()
        assert code == 0, f"the broker ended with {code}\n{broker.log_tail()}"
    finally:
        if pair:
            await pair.stop()
        if broker.running():
            broker.kill()
    assert "panicked at" not in broker.log.read_text(errors="replace"), broker.log_tail()
