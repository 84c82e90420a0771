"""A Boilermaker application on `boilermaker-servicebus`: worker processes, callers; signed in with `azure-identity`, as it always is."""

from __future__ import annotations

import json
import signal
import sys
import time

from stage import HERE, HOST, Play, Program, Scene, check, queue, wait

SHORT = {"LockDuration": "PT10S"}

PLAY = Play(
    "boilermaker",
    entities={"Queues": [queue(f"s{number}", **(SHORT if number in (435, 438) else {})) for number in range(431, 448)]},
    absent={
        "S439": "queues are made by others",
        "S440": "one queue",
        "S441": "results are not told to callers",
        "S445": "no timetable",
        "S447": "one message a task",
    },
)


def program(scene: Scene, argument: str) -> Program:
    return scene.start(sys.executable, str(HERE / "programs" / "boilermaker_app.py"), argument, SERVICE_BUS_NAMESPACE_URL=HOST)


def worker(scene: Scene) -> Program:
    return program(scene, "work")


def call(scene: Scene, **request) -> Program:
    caller = program(scene, json.dumps(request))
    caller.meant = True
    return caller


def publish(scene: Scene, **request) -> None:
    """Calls, and returns when the caller has ended."""
    code = call(scene, **request).process.wait(90)
    check(code == 0, f"the caller ended with {code}")


@PLAY.scenario("S431")
def work_goes_through(scene: Scene) -> None:
    worker(scene)
    more = {"list": [1, 2.5, None, True], "text": "ä ☃"}
    publish(scene, calls=[["handle", 0, number, "ä", more] for number in range(10)] + [["handle", 0, 10, "x" * 100_000]])
    handled = sorted(scene.wait_for("handled", 11), key=lambda note: note["number"])
    check([note["number"] for note in handled] == list(range(11)), f"it did {[note['number'] for note in handled]}")
    check(all(note["more"] == more and note["text"] == "ä" for note in handled[:10]), "an argument is another")
    check(len(handled[10]["text"]) == 100_000, "the long text is shorter")
    scene.wait_until_empty()


@PLAY.scenario("S432")
def a_task_fails_and_is_tried_again(scene: Scene) -> None:
    worker(scene)
    publish(scene, calls=[["fail", 0, "good", 2], ["fail", 0, "bad", 99]])
    [dead] = scene.dead_letters(1)
    check(dead.dead_letter_reason == "ProcessingError", f"it is dead because of {dead.dead_letter_reason}")
    check(dead.dead_letter_error_description == "Retries exhausted", f"and {dead.dead_letter_error_description}")
    scene.wait_until_empty()
    tries = {name: len(scene.notes("tried", name=name)) for name in ("good", "bad")}
    check(tries == {"good": 3, "bad": 4}, f"they were tried {tries}")


@PLAY.scenario("S433")
def later(scene: Scene) -> None:
    worker(scene)
    began = time.time()
    publish(scene, calls=[["handle", 8, 1], ["handle", 0, 2]])
    first, second = scene.wait_for("handled", 2)
    check([first["number"], second["number"]] == [2, 1], "the one that was to wait came first")
    check(second["at"] >= began + 8, f"it came after {second['at'] - began:.1f} s")


@PLAY.scenario("S434")
def to_the_dead_letters(scene: Scene) -> None:
    worker(scene)
    scene.send("no task at all")
    publish(scene, calls=[["wrong", 0]])
    reasons = sorted(each.dead_letter_reason for each in scene.dead_letters(2))
    check(reasons == ["InvalidTaskFormat", "TaskFailed"], f"the reasons are {reasons}")
    scene.wait_until_empty()


@PLAY.scenario("S435")
def a_worker_is_killed(scene: Scene) -> None:
    dying = worker(scene)
    call(scene, calls=[["slow", 0, 1, 5]])
    [begun] = scene.wait_for("begun")
    dying.kill()
    worker(scene)
    [_, again] = scene.wait_for("begun", 2)
    scene.wait_for("ended")
    check(again["at"] > begun["at"] + 8, f"it came again after {again['at'] - begun['at']:.1f} s, before the lock could end")
    scene.wait_until_empty()


@PLAY.scenario("S436")
def a_worker_stops_in_good_order(scene: Scene) -> None:
    """It gives the message back that it is at work on, and another has it at once."""
    stopping = worker(scene)
    call(scene, calls=[["slow", 0, 1, 8]])
    [begun] = scene.wait_for("begun")
    stopping.end(signal.SIGTERM)
    given_back = wait(lambda: [each for each in scene.left() if each.delivery_count == 1], "the message is given back", 10)
    check(len(given_back) == 1, f"{len(given_back)} messages are there")
    worker(scene)
    [_, again] = scene.wait_for("begun", 2)
    scene.wait_for("ended")
    check(again["at"] - begun["at"] < 50, "it came only when its lock had ended")
    scene.wait_until_empty()


@PLAY.scenario("S437", alone=True)
def the_broker_is_killed(scene: Scene) -> None:
    worker(scene)
    publish(scene, calls=[["handle", 0, 0]])
    scene.wait_for("handled", number=0)
    scene.house.broker.kill()
    scene.house.broker.start()
    publish(scene, calls=[["handle", 0, number] for number in range(1, 6)])
    for number in range(1, 6):
        scene.wait_for("handled", number=number)
    scene.wait_until_empty()


@PLAY.scenario("S438")
def longer_than_the_lock(scene: Scene) -> None:
    for _ in range(2):
        worker(scene)
    publish(scene, calls=[["long", 0, 1, 14]])
    scene.wait_for("ended")
    scene.wait_until_empty()
    check(len(scene.notes("begun")) == 1, "it was begun twice")


@PLAY.scenario("S442")
def many_by_many(scene: Scene) -> None:
    for _ in range(2):
        worker(scene)
    # Both are there before the many come: one of these is with each, for as long as that takes.
    call(scene, calls=[["slow", 0, -1, 8], ["slow", 0, -2, 8]])
    scene.wait_for("begun", 2)
    scene.share(lambda numbers: publish(scene, calls=[["handle", 0, number] for number in numbers]), 100)
    scene.wait_until_empty()


@PLAY.scenario("S443")
def one_after_another(scene: Scene) -> None:
    worker(scene)
    publish(scene, chain=[["handle", 1], ["handle", 2], ["wrong"], ["handle", 3]], failure=["handle", 4])
    handled = scene.wait_for("handled", 4)
    check([note["number"] for note in handled] == [1, 2, -1, 4], f"they were {[note['number'] for note in handled]}")
    scene.wait_until_empty()


@PLAY.scenario("S444")
def acknowledged_before_it_is_done(scene: Scene) -> None:
    worker(scene)
    call(scene, calls=[["hasty", 0, 1, 8]])
    scene.wait_for("begun")
    check(not scene.left(), "it is still in the queue")
    check(not scene.notes("ended"), "it was done too early for this test")
    scene.wait_for("ended")


@PLAY.scenario("S446")
def with_an_identity(scene: Scene) -> None:
    asked = scene.house.issuer.given
    worker(scene)
    publish(scene, calls=[["handle", 0, 1]])
    scene.wait_for("handled")
    check(scene.house.issuer.given >= asked + 2, "not everybody has asked for a token")
