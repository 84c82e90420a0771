"""A taskiq application on `taskiq-service-bus`: worker processes, its scheduler, and callers."""

from __future__ import annotations

import asyncio
import signal
import sys
import time

from taskiq.kicker import AsyncKicker
from taskiq_service_bus import ServiceBusBroker

from stage import Play, Program, Scene, check, queue

SHORT = {"LockDuration": "PT10S"}

PLAY = Play(
    "taskiq", plain=True,
    entities={"Queues": [queue(f"s{number}", **(SHORT if number in (435, 438) else {})) for number in range(431, 446)]},
    absent={
        "S434": "a task that fails for good is done: its result is an error",
        "S439": "queues are made by others",
        "S440": "one queue",
        "S441": "results come by a backend of another kind",
        "S443": "pipelines are another package's",
        "S446": "takes a connection string only",
        "S447": "one message a task",
    },
)


def worker(scene: Scene, *arguments: str) -> Program:
    return scene.start(
        sys.executable, "-m", "taskiq", "worker", "taskiq_app:broker", "--workers=1", "--log-level=WARNING", *arguments, QUEUE=scene.queue)


async def kick(scene: Scene, calls: list[tuple]) -> None:
    """Calls tasks by their names, each with labels of its own."""
    broker = ServiceBusBroker(scene.house.connection_string, scene.queue)
    await broker.startup()
    # It connects anew for each message.
    await asyncio.gather(*(AsyncKicker(f"taskiq_app:{name}", broker, labels).kiq(*arguments) for name, labels, *arguments in calls))
    await broker.shutdown()


def call(scene: Scene, *calls: tuple) -> None:
    asyncio.run(kick(scene, list(calls)))


@PLAY.scenario("S431")
def work_goes_through(scene: Scene) -> None:
    worker(scene)
    more = {"list": [1, 2.5, None, True], "text": "ä ☃"}
    call(scene, *(("handle", {"priority": 1, "kind": "text"}, number, "ä", more) for number in range(10)))
    call(scene, ("handle", {}, 10, "x" * 200_000))
    handled = sorted(scene.wait_for("handled", 11), key=lambda note: note["number"])
    check([note["number"] for note in handled] == list(range(11)), f"it did {[note['number'] for note in handled]}")
    check(all(note["more"] == more and note["text"] == "ä" for note in handled[:10]), "an argument is another")
    check(len(handled[10]["text"]) == 200_000, "the long text is shorter")
    scene.wait_until_empty()


@PLAY.scenario("S432")
def a_task_fails_and_is_tried_again(scene: Scene) -> None:
    worker(scene)
    call(scene, ("fail", {"retry_on_error": True}, 2), ("fail", {"retry_on_error": True, "max_retries": 2}, 9))
    scene.wait_for("tried", 5)
    scene.wait_until_empty()
    tried = sorted(note["tried"] for note in scene.notes("tried"))
    check(tried == [0, 0, 1, 1, 2], f"the tries were {tried}")


@PLAY.scenario("S433")
def later(scene: Scene) -> None:
    worker(scene)
    began = time.time()
    call(scene, ("handle", {"delay": 5}, 1), ("handle", {}, 2))
    first, second = scene.wait_for("handled", 2)
    check([first["number"], second["number"]] == [2, 1], "the one that was to wait came first")
    check(second["at"] >= began + 5, f"it came after {second['at'] - began:.1f} s")
    scene.wait_until_empty()


@PLAY.scenario("S435")
def a_worker_is_killed(scene: Scene) -> None:
    dying = worker(scene)
    call(scene, ("slow", {}, 1, 2))
    [begun] = scene.wait_for("begun")
    dying.kill()
    worker(scene)
    [_, again] = scene.wait_for("begun", 2)
    scene.wait_for("ended")
    check(again["at"] > begun["at"] + 8, f"it came again after {again['at'] - begun['at']:.1f} s, before the lock could end")
    scene.wait_until_empty()
    check(len(scene.notes("ended")) == 1, "it was done twice")


@PLAY.scenario("S436")
def a_worker_stops_in_good_order(scene: Scene) -> None:
    stopping = worker(scene, "--max-async-tasks=1", "--wait-tasks-timeout=20", "--shutdown-timeout=20")
    call(scene, *(("slow", {}, number, 3) for number in range(4)))
    scene.wait_for("begun")
    code = stopping.end(signal.SIGTERM)
    check(code == 0, f"the worker ended with {code}")
    begun, ended, left = scene.notes("begun"), scene.notes("ended"), len(scene.left())
    check(len(begun) == len(ended), f"it ended {len(ended)} of {len(begun)} that it had begun")
    check(len(ended) + left == 4 and left, f"{len(ended)} are done and {left} are left")


@PLAY.scenario("S437", alone=True)
def the_broker_is_killed(scene: Scene) -> None:
    worker(scene)
    call(scene, ("handle", {}, 0))
    scene.wait_for("handled", number=0)
    scene.house.broker.kill()
    scene.house.broker.start()
    call(scene, *(("handle", {}, number) for number in range(1, 6)))
    for number in range(1, 6):
        scene.wait_for("handled", number=number)
    scene.wait_until_empty()


@PLAY.scenario("S438")
def longer_than_the_lock(scene: Scene) -> None:
    for _ in range(2):
        worker(scene)
    call(scene, ("slow", {}, 1, 14))
    scene.wait_for("ended")
    scene.wait_until_empty()
    check(len(scene.notes("begun")) == 1, "it was begun twice")


@PLAY.scenario("S442")
def many_by_many(scene: Scene) -> None:
    for _ in range(2):
        worker(scene, "--max-async-tasks=1")
    # Both are there before the many come: one of these is with each, for as long as that takes.
    call(scene, ("slow", {}, -1, 8), ("slow", {}, -2, 8))
    scene.wait_for("begun", 2)
    scene.share(lambda numbers: call(scene, *(("handle", {}, number) for number in numbers)), 30)
    scene.wait_until_empty()


@PLAY.scenario("S444")
def acknowledged_before_it_is_done(scene: Scene) -> None:
    worker(scene, "--ack-type=when_received")
    call(scene, ("slow", {}, 1, 4))
    scene.wait_for("begun")
    check(not scene.left(), "it is still in the queue")
    check(not scene.notes("ended"), "it was done too early for this test")
    scene.wait_for("ended")


@PLAY.scenario("S445")
def by_the_clock(scene: Scene) -> None:
    worker(scene)
    clock = scene.start(sys.executable, "-m", "taskiq", "scheduler", "taskiq_app:scheduler", "--log-level=WARNING", TICK="yes")
    ticks = scene.wait_for("tick", 4)
    check(ticks[3]["at"] - ticks[0]["at"] < 20, f"four ticks took {ticks[3]['at'] - ticks[0]['at']:.1f} s")
    code = clock.end(signal.SIGTERM)
    check(code in (0, -signal.SIGTERM), f"the scheduler ended with {code}")
