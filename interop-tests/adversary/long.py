"""A broker with default settings that is asked for more than it can do, minutes long: no key is needed, and nobody means harm.

Each has a broker of its own. Asserted is what must hold on any machine: the pair goes on, health is answered, memory stays within its
limit, nothing accepted is lost or doubled, and afterwards all is as before.
"""

from __future__ import annotations

import asyncio
import os
import time

import loads
from amqp import WIDE, Ended, Peer, bounded, int32, int64, request
from loads import Load, Sent
from disk import SlowDisk
from scene import Attack, Scene, Stage, all_accepted, all_answered, check_numbers
from watch import MEBIBYTE

SLOW_DISK = 16 * MEBIBYTE
CROWD = 10_000
DESCRIPTORS = 600


async def senders_faster_than_the_disk(scene: Scene) -> None:
    disk = SlowDisk.make(f"jitney-adversary-{os.getpid()}", scene.work)
    if isinstance(disk, SlowDisk):
        disk.slow(scene.pid, SLOW_DISK)
    how = f"{SLOW_DISK // MEBIBYTE} MiB/s" if isinstance(disk, SlowDisk) else f"as it is ({disk})"
    try:
        began = time.monotonic()
        loads = [
            Load(loads.flood, port=scene.port, queue="flood", connections=24, size=MEBIBYTE - 1024, outstanding=4),
            Load(loads.flood, port=scene.port, queue="flood", connections=40, size=1024, outstanding=200, first=1_000),
        ]
        await asyncio.sleep(10)
        large, small = await asyncio.gather(*(load.end() for load in loads))
        seconds = time.monotonic() - began
    finally:
        if isinstance(disk, SlowDisk):
            disk.remove()
    rate = (len(large.accepted) * MEBIBYTE + len(small.accepted) * 1024) / MEBIBYTE / seconds
    scene.say(f"disk {how}; accepted {len(large.accepted)} of 1 MiB and {len(small.accepted)} of 1 KiB: {rate:.1f} MiB/s")
    check_numbers(all_accepted(large, small), await scene.drained("flood"))


async def many_senders_of_large_messages(scene: Scene) -> None:
    load = Load(loads.flood, port=scene.port, queue="flood", connections=400, size=MEBIBYTE - 1024, outstanding=2)
    await asyncio.sleep(5)
    # Beyond what may be on its way in at a time, a sender is told that the broker is busy.
    sent = all_answered(await load.end())
    scene.say(f"400 connections: accepted {len(sent.accepted)} of 1 MiB, {sent.refused} were to be sent later")
    check_numbers(sent, await scene.drained("flood"))


async def senders_that_do_not_finish(scene: Scene) -> None:
    """Nearly all of a message on each of many links, and then nothing."""
    peers = [await Peer.connect(scene.port) for _ in range(10)]
    for peer in peers:
        try:
            for link in [await peer.sender("flood") for _ in range(60)]:
                peer.transfer(link, bytes(900_000), more_to_come=True)
                # A broker that does not read all of it is right.
                await bounded(peer.flush(), 0.5)
        except (Ended, asyncio.TimeoutError):
            continue
    await asyncio.sleep(1)
    kept = sum(not peer.lost.done() for peer in peers)
    scene.say(f"{len(peers)} connections with up to 60 messages of 0.9 MB each that do not end; {kept} were kept")
    for peer in peers:
        peer.drop()


async def small_frames_without_end(scene: Scene) -> None:
    load = Load(loads.chatter, port=scene.port, queue="other", connections=200)
    await asyncio.sleep(5)
    scene.say(f"200 connections sent {await load.end()} flows")


async def receivers_slower_than_senders(scene: Scene) -> None:
    slow = Load(loads.drain, port=scene.port, queue="flood", connections=100, credit=1_000, pause=0.2)
    load = Load(loads.flood, port=scene.port, queue="flood", connections=8, size=4096, outstanding=300)
    await asyncio.sleep(5)
    sent = all_accepted(await load.end())
    drained = await slow.end()
    scene.say(
        f"accepted {len(sent.accepted)} of 4 KiB; 100 receivers with a credit of 1,000 each received {drained.slowly} slowly, and then "
        f"{len(drained.numbers) - drained.slowly} in a hurry"
    )
    assert 0 < drained.slowly < len(sent.accepted), "they were not slow"
    check_numbers(sent, drained)


async def receivers_that_never_read(scene: Scene) -> None:
    sent = await scene.deposit("flood", 6_000, 65_536)
    peers = []
    # A session whose window is shut is the same by other means: its peer reads, and nothing may come.
    for window in [WIDE, WIDE, WIDE, 0]:
        peer = await Peer.connect(scene.port, window=window)
        peers.append(peer)
        links = [await peer.receiver("flood", lambda *_: None) for _ in range(100)]
        assert peer.transport
        if window:
            peer.transport.pause_reading()
        for link in links:
            link.grant(1_000_000)
    await asyncio.sleep(6)
    scene.say(f"{len(sent.accepted)} messages of 64 KiB, and 400 receivers on {len(peers)} connections that read nothing")
    for peer in peers:
        peer.drop()


async def requesters_that_never_read(scene: Scene) -> None:
    await scene.deposit("other", 300, 65_000)
    node, arguments = "other/$management", {"from-sequence-number": int64(0), "message-count": int32(250)}
    for window in (WIDE, 0):
        peer = await Peer.connect(scene.port, window=window)
        responses = await peer.receiver(node, lambda *_: None, target="answers")
        links = [await peer.sender(node) for _ in range(2)]
        responses.grant(1_000_000)
        assert peer.transport
        if window:
            peer.transport.pause_reading()
        asked, deadline = 0, time.monotonic() + 5
        # Whether each was accepted, as far as it is told.
        answers: list[bool] = []
        while time.monotonic() < deadline and not peer.lost.done() and not any(link.ended for link in links):
            for link in links:
                while 0 < link.credit < WIDE:
                    peer.transfer(link, request("com.microsoft:peek-message", arguments, "answers"), answers.append)
                    asked += 1
            await asyncio.sleep(0.1)
        how = "reads nothing" if window else "has shut its window"
        told = peer.wrong or links[0].ended or f"{answers.count(False)} were refused"
        scene.say(f"{asked} requests for 1 MiB each by one who {how}: {told}")
        peer.drop()


async def small_messages_far_apart(scene: Scene) -> None:
    """One queue's small messages lie between the large ones of another, and are wanted when they are cold."""
    count = 2_000
    sent: Sent = await Load(loads.scatter, port=scene.port, small="flood", large="other", count=count, size=260_000).result(90)
    before = scene.watch.memory()
    scene.watch.begin()
    drained = await scene.drained("flood", connections=1, credit=100_000)
    peak = scene.watch.peak
    scene.say(f"{count} messages of 8 bytes, 260 KB apart: {before / MEBIBYTE:.0f} MiB before, {peak / MEBIBYTE:.0f} while they were received")
    check_numbers(sent, drained)


async def many_expire_at_once(scene: Scene) -> None:
    count, at = 100_000, time.time() + 10
    sent = await scene.deposit("mortal", count, 8, expires=at)
    assert time.time() < at, "the machine was too slow to send all before"
    await asyncio.sleep(at - time.time())
    dead = await scene.drained("mortal/$DeadLetterQueue", expected=count)
    scene.say(f"{count} messages expired at once; all dead letters had been received {time.time() - at:.1f} s later")
    check_numbers(sent, dead)


async def connections_up_to_the_limit_of_descriptors(scene: Scene) -> None:
    # It comes in before the others, and goes on.
    depositor = Load(loads.deposit, port=scene.port, queue="flood", count=200, size=MEBIBYTE - 1024, cued=True)
    await depositor.there(30)
    tasks = [asyncio.create_task(Peer.connect(scene.port)) for _ in range(DESCRIPTORS + 100)]
    await asyncio.wait(tasks, timeout=4)
    came = [task.result() for task in tasks if task.done() and not task.exception()]
    sent = all_accepted(await depositor.end())
    assert scene.broker.running(), f"the broker has ended\n{scene.broker.log_tail()}"
    scene.say(f"{DESCRIPTORS} descriptors: {len(came)} of {len(tasks)} connections came in, and {len(sent.accepted)} of 1 MiB were accepted")
    for task in tasks:
        task.cancel()
    for task in tasks:
        # Those that came in meanwhile, too.
        if task.done() and not task.cancelled() and not task.exception():
            task.result().drop()
    check_numbers(sent, await scene.drained("flood"))


async def ten_thousand_connections_at_once(scene: Scene) -> None:
    before = scene.watch.memory()
    load = Load(loads.crowd, port=scene.port, queue="other", connections=CROWD)
    await load.there(90)
    each = (scene.watch.memory() - before) / CROWD / 1024
    sent = await scene.deposit("other", CROWD, 200)
    seen: loads.Crowd = await load.end()
    scene.say(
        f"{CROWD} connections with a receiver each: all were in after {seen.seconds:.1f} s, having been turned away {sum(seen.retries.values())} times; "
        f"{each:.1f} KiB each"
    )
    assert not seen.retries["TimeoutError"], f"{seen.retries['TimeoutError']} connections were not answered"
    # One message to each, whoever had to wait.
    check_numbers(sent, seen.drained)


async def reconnect_storms(scene: Scene) -> None:
    connections, times = 1_500, 3
    load = Load(loads.storm, port=scene.port, queue="storm", connections=connections, times=times, calm=0.5)
    seen: loads.Storm = await load.result(90)
    back = ", ".join(f"{seconds:.1f}" for seconds in seen.back)
    scene.say(
        f"{connections} connections were in, and back again {times} times, after {back} s, having been turned away "
        f"{sum(seen.retries.values())} times; {len(seen.completed)} messages completed"
    )
    assert not seen.retries["TimeoutError"], f"{seen.retries['TimeoutError']} connections were not answered"
    drained = await scene.drained("storm")
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
    dead = await scene.drained("storm/$DeadLetterQueue")
    assert not dead.numbers, f"{len(dead.numbers)} dead letters"


# MiB. A broker with nothing to do has some 30, its cache 64, and another 64 may wait for the disk (limits); then there is what waits for
# its owner, and what is on its way in and out, which must not depend on how many there are that send or do not read.
MEMORY = 512
# The longest time in which the pair may get nothing: that it goes on, and not how fast.
GAP_MAX = 15.0


def stage(attack: Attack, memory: int = MEMORY, descriptors: int | None = None) -> Stage:
    return Stage(attack.__name__, [attack], memory, GAP_MAX, "long.json", descriptors=descriptors, has_keys=False)


STAGES = [
    stage(senders_faster_than_the_disk),
    stage(many_senders_of_large_messages),
    stage(senders_that_do_not_finish),
    stage(small_frames_without_end),
    stage(receivers_slower_than_senders),
    stage(receivers_that_never_read),
    stage(requesters_that_never_read),
    # Nothing large is on its way: this is the cache, and what is around it.
    stage(small_messages_far_apart, 320),
    stage(many_expire_at_once),
    stage(connections_up_to_the_limit_of_descriptors, descriptors=DESCRIPTORS),
    # 32 KiB for each (the budget of an idle connection), and what they have between them.
    stage(ten_thousand_connections_at_once),
    stage(reconnect_storms),
]
