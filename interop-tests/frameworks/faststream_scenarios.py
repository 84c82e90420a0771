"""A FastStream application on `faststream-azure-servicebus`: its worker, and a publisher in this process."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone

from faststream_azure_servicebus import ServiceBusBroker

from stage import Play, Program, Scene, check, queue

SHORT = {"LockDuration": "PT10S"}

PLAY = Play(
    "faststream", plain=True,
    entities={
        "Queues": [queue(f"s{number}", **(SHORT if number in (435, 438) else {})) for number in range(431, 448)]
        + [queue("s441-answers")],
        "Topics": [{"Name": "s440-topic", "Subscriptions": [queue("a"), queue("b")]}],
    },
    absent={
        "S439": "queues are made by others",
        "S443": "no chains: a handler publishes by itself",
        "S445": "its timetable is another package's",
    },
)


def worker(scene: Scene, **environment: str) -> Program:
    return scene.start(sys.executable, "-m", "faststream", "run", "faststream_app:app", **environment)


def publish(scene: Scene, act: Callable[[ServiceBusBroker], Awaitable]):
    """What a program that only publishes does."""

    async def run():
        async with ServiceBusBroker(scene.house.connection_string) as broker:
            return await act(broker)

    return asyncio.run(run())


@PLAY.scenario("S431")
def work_goes_through(scene: Scene) -> None:
    worker(scene)
    bodies = [{"number": 1, "text": "ä ☃", "list": [1, 2.5, None, True]}, "a text", 7, [1, 2], {"large": "x" * 200_000}]

    async def act(broker: ServiceBusBroker) -> None:
        for body in bodies:
            await broker.publish(body, scene.queue, headers={"kind": type(body).__name__}, correlation_id="c", subject="s")

    publish(scene, act)
    handled = scene.wait_for("handled", len(bodies))
    check([note["body"] for note in handled] == bodies, f"the bodies were {str([note['body'] for note in handled])[:500]}")
    check([note["kind"] for note in handled] == [type(body).__name__ for body in bodies], "a header is another")
    check({note["correlation"] for note in handled} == {"c"}, "a correlation id is another")
    scene.wait_until_empty()


@PLAY.scenario("S432")
def a_message_fails_and_comes_again(scene: Scene) -> None:
    worker(scene, POLICY="NACK_ON_ERROR")
    publish(scene, lambda broker: broker.publish({"fail": 2}, scene.queue))
    handled = scene.wait_for("handled", 3)
    scene.wait_for("ended")
    check([note["count"] for note in handled] == [0, 1, 2], f"the counts were {[note['count'] for note in handled]}")
    scene.wait_until_empty()


@PLAY.scenario("S433")
def later(scene: Scene) -> None:
    worker(scene)
    began = datetime.now(timezone.utc)

    async def act(broker: ServiceBusBroker) -> None:
        await broker.publish({"number": 1}, scene.queue, scheduled_enqueue_time=began + timedelta(seconds=5))
        await broker.publish({"number": 2}, scene.queue)

    publish(scene, act)
    first, second = scene.wait_for("handled", 2)
    check([first["body"]["number"], second["body"]["number"]] == [2, 1], "the one that was to wait came first")
    check(second["at"] >= began.timestamp() + 5, f"it came after {second['at'] - began.timestamp():.1f} s")


@PLAY.scenario("S434")
def to_the_dead_letters(scene: Scene) -> None:
    worker(scene)

    async def act(broker: ServiceBusBroker) -> None:
        await broker.publish({"fail": 99, "number": 1}, scene.queue)
        await broker.publish({"reject": "too old", "number": 2}, scene.queue)

    publish(scene, act)
    dead = sorted(scene.dead_letters(2), key=lambda each: each.sequence_number)
    check(str(dead[0]) == '{"fail":99,"number":1}', f"the first is {dead[0]}")
    told = (dead[1].dead_letter_reason, dead[1].dead_letter_error_description)
    check(told == ("too old", "because"), f"the second says {told}")
    check(len(scene.notes("handled")) == 2, "one was handled twice")
    scene.wait_until_empty()


@PLAY.scenario("S435")
def a_worker_is_killed(scene: Scene) -> None:
    dying = worker(scene)
    publish(scene, lambda broker: broker.publish({"seconds": 3}, scene.queue))
    [begun] = scene.wait_for("handled")
    dying.kill()
    worker(scene)
    [_, again] = scene.wait_for("handled", 2)
    scene.wait_for("ended")
    check(again["count"] == 1, f"it came again with count {again['count']}")
    check(again["at"] > begun["at"] + 8, f"it came again after {again['at'] - begun['at']:.1f} s, before the lock could end")
    scene.wait_until_empty()


@PLAY.scenario("S436")
def a_worker_stops_in_good_order(scene: Scene) -> None:
    stopping = worker(scene)

    async def act(broker: ServiceBusBroker) -> None:
        for number in range(4):
            await broker.publish({"number": number, "seconds": 3}, scene.queue)

    publish(scene, act)
    scene.wait_for("handled")
    code = stopping.end(signal.SIGTERM)
    check(code == 0, f"the worker ended with {code}")
    begun, ended, left = scene.notes("handled"), scene.notes("ended"), len(scene.left())
    check(len(begun) == len(ended), f"it ended {len(ended)} of {len(begun)} that it had begun")
    check(len(ended) + left == 4 and left, f"{len(ended)} are done and {left} are left")


@PLAY.scenario("S437", alone=True)
def the_broker_is_killed(scene: Scene) -> None:
    worker(scene)
    publish(scene, lambda broker: broker.publish({"number": 0}, scene.queue))
    scene.wait_for("ended")

    async def act(broker: ServiceBusBroker) -> None:
        """A publisher that has been connected before, and is afterwards."""
        await broker.publish({"number": 1}, scene.queue)
        await asyncio.to_thread(scene.house.broker.kill)
        await asyncio.to_thread(scene.house.broker.start)
        for number in range(2, 5):
            await broker.publish({"number": number}, scene.queue)

    publish(scene, act)
    for number in range(5):
        scene.wait_for("ended", body={"number": number})
    scene.wait_until_empty()


@PLAY.scenario("S438")
def longer_than_the_lock(scene: Scene) -> None:
    for _ in range(2):
        worker(scene)
    publish(scene, lambda broker: broker.publish({"seconds": 14}, scene.queue))
    scene.wait_for("ended")
    scene.wait_until_empty()
    check(len(scene.notes("handled")) == 1, "it was begun twice")


@PLAY.scenario("S440")
def to_all_subscriptions(scene: Scene) -> None:
    worker(scene, TOPIC="s440-topic")

    async def act(broker: ServiceBusBroker) -> None:
        for number in range(5):
            await broker.publish({"number": number}, topic="s440-topic")

    publish(scene, act)
    copied = scene.wait_for("copied", 10)
    for subscription in ("a", "b"):
        numbers = [note["body"]["number"] for note in copied if note["subscription"] == subscription]
        check(numbers == list(range(5)), f"{subscription} got {numbers}")


@PLAY.scenario("S441")
def request_and_answer(scene: Scene) -> None:
    worker(scene, WORKERS="4")

    async def act(broker: ServiceBusBroker) -> list:
        ask = [broker.request({"value": value, "seconds": 0.1}, scene.queue, reply_to="s441-answers", timeout=60) for value in range(8)]
        return [await (await answer).decode() for answer in [asyncio.ensure_future(each) for each in ask]]

    answers = publish(scene, act)
    check(answers == [{"answer": value * 2} for value in range(8)], f"the answers were {answers}")
    scene.wait_until_empty()
    scene.wait_until_empty("s441-answers")


@PLAY.scenario("S442")
def many_by_many(scene: Scene) -> None:
    for _ in range(2):
        worker(scene, WORKERS="5")

    async def act(broker: ServiceBusBroker) -> None:
        # Both are there before the many come: they have room for five of these each.
        await broker.publish_batch(*({"number": -1, "seconds": 3} for _ in range(10)), queue=scene.queue)
        await asyncio.to_thread(scene.wait_for, "handled", 10)
        await broker.publish_batch(*({"number": number} for number in range(300)), queue=scene.queue)

    publish(scene, act)
    ended = scene.wait_for("ended", 310, 90)
    scene.wait_until_empty()
    numbers = sorted(note["body"]["number"] for note in ended if note["body"]["number"] >= 0)
    check(numbers == list(range(300)), "not every message was handled once")
    check(len({note["pid"] for note in ended}) == 2, "one worker got nothing")


@PLAY.scenario("S444")
def acknowledged_before_it_is_done(scene: Scene) -> None:
    worker(scene, POLICY="ACK_FIRST")
    publish(scene, lambda broker: broker.publish({"seconds": 4}, scene.queue))
    scene.wait_for("handled")
    check(not scene.left(), "it is still in the queue")
    check(not scene.notes("ended"), "it was done too early for this test")
    scene.wait_for("ended")


@PLAY.scenario("S446")
def with_an_identity(scene: Scene) -> None:
    asked = scene.house.issuer.given
    worker(scene, IDENTITY="yes")
    publish(scene, lambda broker: broker.publish({"number": 1}, scene.queue))
    scene.wait_for("ended")
    check(scene.house.issuer.given > asked, "no token was asked for")
    scene.wait_until_empty()


@PLAY.scenario("S447")
def in_batches(scene: Scene) -> None:
    worker(scene, WORKERS="10")
    large = "x" * 30_000

    async def act(broker: ServiceBusBroker) -> None:
        # More than one batch can hold.
        await broker.publish_batch(*({"number": number, "text": large} for number in range(60)), queue=scene.queue)

    publish(scene, act)
    ended = scene.wait_for("ended", 60)
    check(sorted(note["body"]["number"] for note in ended) == list(range(60)), "not every message came once")
    check(all(note["body"]["text"] == large for note in ended), "a text is another")
    scene.wait_until_empty()
