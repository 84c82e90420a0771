"""A broker that is asked for more than it can do.

Each test has a broker of its own, one load, and beside it a well-behaved pair on another queue (the SDK's), somebody who asks for
health, and somebody who looks at its memory. All of them print what they saw. Asserted is what must hold on any machine: the pair goes
on, health is answered, memory stays within its limit, nothing accepted is lost or doubled, and afterwards all is as before.

    overload.py [WORD…]     the tests whose names have one of the words
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import crew  # noqa: E402
from amqp import WIDE, Peer, int32, int64, request  # noqa: E402
from broker import HERE as INTEROP, Broker  # noqa: E402
from crew import Crew, Drained, Sent  # noqa: E402
from disk import SlowDisk  # noqa: E402
from watch import MEBIBYTE, Pair, Watch  # noqa: E402

# Longest time in which the well-behaved pair may get nothing. It waits behind what was accepted before: 64 MiB for the disk
# (limits::IN_FLIGHT_BYTES_MAX) and a mailbox; the slow disk takes 16 MiB a second.
GAP_MAX = 20.0
# Seconds in which the pair's figures of a calm broker are taken, before and after.
CALM = 1.5
SLOW_DISK = 16 * MEBIBYTE


@dataclass
class Test:
    run: Callable[["Scene"], Awaitable[None]]
    # What the process may have in memory at most, MiB, and why.
    memory: int
    arguments: list[str] = field(default_factory=list)


@dataclass
class Scene:
    """What a test works with."""

    broker: Broker
    watch: Watch
    pair: Pair
    work: Path
    said: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return self.broker.amqp_port

    def say(self, text: str) -> None:
        self.said.append(text)
        print(f"        {text}", flush=True)

    async def drained(self, within: float = 60, **arguments: Any) -> Drained:
        return await Crew(crew.drain, port=self.port, **arguments).result(within)

    async def deposit(self, queue: str, count: int, size: int, within: float = 60) -> Sent:
        """Sends so many messages, and waits until all are accepted."""
        load = Crew(crew.deposit, port=self.port, queue=queue, count=count, size=size)
        return await load.result(within)


def check_numbers(sent: Sent, drained: Drained) -> None:
    """Nothing accepted is lost, nothing is there twice, nothing is there that was not sent."""
    accepted, came = set(sent.accepted), set(drained.numbers)
    lost = accepted - came
    assert not lost, f"{len(lost)} of {len(accepted)} accepted messages are lost: {sorted(lost)[:5]}"
    assert not drained.doubled, f"{len(drained.doubled)} messages came twice: {drained.doubled[:5]}"
    foreign = came - accepted - set(sent.unknown)
    assert not foreign, f"{len(foreign)} messages came that nobody has sent: {sorted(foreign)[:5]}"


# --- tests ------------------------------------------------------------------------------------------------------------------------


async def senders_faster_than_the_disk(scene: Scene) -> None:
    disk = SlowDisk.make(f"jitney-overload-{os.getpid()}", scene.work)
    if isinstance(disk, SlowDisk):
        disk.slow(scene.broker.state["pid"], SLOW_DISK)
    try:
        began = time.monotonic()
        loads = [
            Crew(crew.flood, port=scene.port, queue="flood", connections=24, size=MEBIBYTE - 1024, outstanding=8),
            Crew(crew.flood, port=scene.port, queue="flood", connections=40, size=1024, outstanding=400, first=1_000),
        ]
        await asyncio.sleep(15)
        results = await asyncio.gather(*(load.end() for load in loads))
        seconds = time.monotonic() - began
    finally:
        if isinstance(disk, SlowDisk):
            disk.restore()
    how = f"{SLOW_DISK // MEBIBYTE} MiB/s" if isinstance(disk, SlowDisk) else f"as it is ({disk})"
    large, small = results
    bytes_ = len(large.accepted) * MEBIBYTE + len(small.accepted) * 1024
    scene.say(f"disk {how}; accepted {len(large.accepted)} x 1 MiB and {len(small.accepted)} x 1 KiB, {bytes_ / MEBIBYTE / seconds:.1f} MiB/s")
    sent = Sent(large.accepted + small.accepted, large.unknown + small.unknown)
    assert not large.ended + small.ended, f"connections ended: {(large.ended + small.ended)[:3]}"
    assert not sent.unknown, f"{len(sent.unknown)} messages were never answered"
    drained = await scene.drained(queue="flood")
    check_numbers(sent, drained)


async def receivers_slower_than_senders(scene: Scene) -> None:
    slow = Crew(crew.drain, port=scene.port, queue="flood", connections=100, credit=1_000, pause=0.2)
    load = Crew(crew.flood, port=scene.port, queue="flood", connections=8, size=4096, outstanding=300)
    await asyncio.sleep(8)
    sent = await load.end()
    scene.say(f"accepted {len(sent.accepted)} messages of 4 KiB while 100 slow receivers had 100,000 credit")
    drained = await slow.end()
    scene.say(f"received {drained.slowly} slowly, {len(drained.numbers) - drained.slowly} in a hurry")
    assert 0 < drained.slowly < len(sent.accepted), "they were not slow"
    check_numbers(sent, drained)


CROWD = 10_000


async def ten_thousand_connections_at_once(scene: Scene) -> None:
    before = scene.watch.memory()
    load = Crew(crew.crowd, port=scene.port, queue="other", connections=CROWD)
    await load.there(90)
    each = (scene.watch.memory() - before) / CROWD / 1024
    scene.say(f"{CROWD} connections with a receiver each: {each:.1f} KiB each")
    sent = await scene.deposit("other", CROWD, 200)
    seen: crew.Crowd = await load.end()
    scene.say(f"all were in after {seen.seconds:.1f} s, having come again {seen.again} times")
    # One message to each, whoever had to wait.
    check_numbers(sent, seen.drained)
    await calm(scene.pair)
    scene.say(f"when they have gone: {scene.watch.memory() / MEBIBYTE:.0f} MiB (before: {before / MEBIBYTE:.0f})")


async def reconnect_storms(scene: Scene) -> None:
    connections, times = 2_000, 4
    load = Crew(crew.storm, port=scene.port, queue="storm", connections=connections, times=times, calm=1.0)
    seen: crew.Storm = await load.result(100)
    back = ", ".join(f"{seconds:.1f}" for seconds in seen.back)
    scene.say(f"{connections} connections were in and back after {back} s; turned away: {dict(seen.retries)}; {len(seen.completed)} messages completed")
    drained = await scene.drained(queue="storm")
    accepted, completed, unsure = set(seen.sent.accepted), set(seen.completed), set(seen.unsure)
    came = completed | set(drained.numbers)
    # Of one that was being completed when its connection was lost, nobody knows.
    lost = accepted - came - unsure
    assert not lost, f"{len(lost)} of {len(accepted)} accepted messages are lost: {sorted(lost)[:5]}"
    again = completed & set(drained.numbers)
    assert not again and not seen.doubled, f"completed messages came again: {sorted(again)[:5]} {seen.doubled[:5]}"
    assert not drained.doubled, f"messages came twice: {drained.doubled[:5]}"
    foreign = came - accepted - set(seen.sent.unknown)
    assert not foreign, f"{len(foreign)} messages came that nobody has sent: {sorted(foreign)[:5]}"


async def receivers_that_never_read(scene: Scene) -> None:
    sent = await scene.deposit("flood", 6_000, 65_536)
    hoarders = []
    for _ in range(4):
        peer = await Peer.connect(scene.port)
        links = [await peer.receiver("flood", lambda *_: None) for _ in range(100)]
        assert peer.transport
        peer.transport.pause_reading()
        for link in links:
            link.grant(1_000_000)
        hoarders.append(peer)
    # A session whose window is shut is the same, by other means: it reads, and nothing may come.
    peer = await Peer.connect(scene.port, window=0)
    for link in [await peer.receiver("flood", lambda *_: None) for _ in range(100)]:
        link.grant(1_000_000)
    hoarders.append(peer)
    await asyncio.sleep(10)
    for peer in hoarders:
        peer.drop()
    # What they had locked stays so, and is there: peek sees all of it.
    scene.say(f"{len(sent.accepted)} messages of 64 KiB; 500 receivers on 5 connections that read nothing")


async def requesters_that_never_read(scene: Scene) -> None:
    await scene.deposit("other", 300, 65_000)
    for window in (crew.WIDE, 0):
        peer = await Peer.connect(scene.port, window=window)
        node = "other/$management"
        responses = await peer.receiver(node, lambda *_: None, target="answers")
        links = [await peer.sender(node) for _ in range(2)]
        responses.grant(1_000_000)
        assert peer.transport
        if window:
            peer.transport.pause_reading()
        arguments = {"from-sequence-number": int64(0), "message-count": int32(250)}
        asked, deadline = 0, time.monotonic() + 8
        while time.monotonic() < deadline and not peer.lost.done():
            for link in links:
                while 0 < link.credit < WIDE:
                    peer.transfer(link, request("com.microsoft:peek-message", arguments, "answers"), lambda _accepted: None)
                    asked += 1
            await asyncio.sleep(0.1)
        how = "reads nothing" if window else "has shut its window"
        scene.say(f"{asked} requests to peek 1 MiB each by one who {how}; {links[0].ended or 'nobody was cut off'}")
        peer.drop()


TESTS = [
    Test(senders_faster_than_the_disk, memory=600),
    Test(receivers_slower_than_senders, memory=600),
    Test(ten_thousand_connections_at_once, memory=600),
    Test(reconnect_storms, memory=600),
    Test(receivers_that_never_read, memory=600),
    Test(requesters_that_never_read, memory=600),
]


# --- around a test ----------------------------------------------------------------------------------------------------------------


def describe(seen: dict[str, Any]) -> str:
    """The pair's figures in a line."""
    accepted, received = seen["accepted_ms"], seen["received_ms"]
    return (
        f"accepted after {accepted['p50']} / {accepted['p99']} / {accepted['max']} ms, received after {received['p50']} / "
        f"{received['p99']} / {received['max']} ms, {seen['received']} in {seen['seconds']} s, longest gap {seen['gap']} s"
        + (f", errors {seen['errors']}" if seen["errors"] else "")
    )


async def calm(pair: Pair) -> dict[str, Any]:
    """The pair's figures while nobody else is there; they begin when what was before has passed."""
    deadline = time.monotonic() + 30
    while True:
        await pair.mark()
        await asyncio.sleep(CALM)
        seen = await pair.mark()
        if seen["received"] > 10 and seen["received_ms"]["max"] < 1000 * CALM:
            return seen
        assert time.monotonic() < deadline, f"the pair does not come to rest: {describe(seen)}"


async def perform(test: Test, work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    broker = Broker.create(work, config=Path(__file__).parent / "config.json", arguments=test.arguments)
    broker.start()
    watch = pair = None
    try:
        watch, pair = Watch(broker), await Pair.start(broker)
        scene = Scene(broker, watch, pair, work)
        scene.say(f"before: {describe(await calm(pair))}; {watch.memory() / MEBIBYTE:.0f} MiB")
        watch.peak, watch.health = 0, []
        await test.run(scene)
        during = await pair.mark()
        health = sorted(watch.health)
        peak = watch.peak / MEBIBYTE
        scene.say(f"during: {describe(during)}; at most {peak:.0f} MiB; health in {health[len(health) // 2]:.3f} s, at most {health[-1]:.3f} s")
        scene.say(f"after:  {describe(await calm(pair))}; {watch.memory() / MEBIBYTE:.0f} MiB")
        last = await pair.end()
        await watch.end()
        assert not watch.unhealthy, f"health: {len(watch.unhealthy)} of {len(watch.health)}: {watch.unhealthy[:3]}"
        assert during["gap"] < GAP_MAX, f"the pair got nothing for {during['gap']} s"
        assert not during["errors"], f"the pair failed: {during['errors']}"
        assert not last["lost"] and not last["doubled"], f"the pair's lost {last['lost'][:5]}, doubled {last['doubled'][:5]}"
        assert peak <= test.memory, f"{peak:.0f} MiB in memory, which may be {test.memory}"
        code = broker.stop()
        assert code == 0, f"the broker ended with {code}\n{broker.log_tail()}"
    finally:
        if pair:
            await pair.stop()
        if broker.running():
            broker.kill()
    assert "panicked at" not in broker.log.read_text(errors="replace"), broker.log_tail()


def main() -> int:
    # Ten thousand connections are as many descriptors, here and in the broker, which takes what it is allowed.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    work = Path(os.environ.get("JITNEY_WORK", INTEROP / ".work" / "overload"))
    words = sys.argv[1:]
    tests = [test for test in TESTS if not words or any(word in test.run.__name__ for word in words)]
    passed = failed = 0
    for test in tests:
        name = test.run.__name__
        print(f"        {name}", flush=True)
        began = time.monotonic()
        try:
            asyncio.run(perform(test, work / name))
            passed += 1
            print(f"ok      {name} ({time.monotonic() - began:.1f} s)", flush=True)
            shutil.rmtree(work / name / "data", ignore_errors=True)
        except Exception:
            failed += 1
            print(f"FAILED  {name} ({time.monotonic() - began:.1f} s)\n{traceback.format_exc()}", flush=True)
    print(f"overload: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
