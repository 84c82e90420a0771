"""A Celery application on kombu's transport: worker processes, results in files or by the broker, a timetable."""

from __future__ import annotations

import signal
import sys
import time
from datetime import datetime, timedelta, timezone

from celery import Celery, chain, chord, group
from celery.result import AsyncResult
from kombu import Connection

from stage import KEY, KEY_NAME, NAMESPACE, Play, Program, Scene, check, wait

PLAY = Play("celery", absent={
    "S434": "a task that fails for good is done: its result says FAILURE",
    "S440": "routes are kombu's; this transport has no fan-out",
    "S446": "the URL is kombu's",
    "S447": "one message a task",
})

URL = f"azureservicebus://{KEY_NAME}:{KEY}@{NAMESPACE}"


def settings(scene: Scene, **environment: str) -> dict[str, str]:
    results = scene.directory / "results"
    results.mkdir(exist_ok=True)
    return {"URL": URL, "RESULTS": str(results), **environment}


def worker(scene: Scene, *arguments: str, concurrency: int = 1, **environment: str) -> Program:
    return scene.start(
        sys.executable, "-m", "celery", "-A", "celery_app", "worker", "--loglevel=WARNING", f"--concurrency={concurrency}",
        f"--hostname=w{len(scene.programs)}@{scene.number}", "--without-gossip", "--without-mingle", "--without-heartbeat",
        *arguments, **settings(scene, **environment),
    )


def queue(scene: Scene) -> str:
    """Where the tasks are."""
    return f"{scene.queue}-celery"


class Caller:
    """Somebody who calls tasks by their names, and has none of their code."""

    def __init__(self, scene: Scene, backend: str | None = None, lock: int = 60):
        self.app = Celery("caller", set_as_current=False)
        self.app.conf.update(
            broker_url=URL, result_backend=backend or f"file://{settings(scene)['RESULTS']}",
            broker_transport_options={
                "wait_time_seconds": 1, "queue_name_prefix": f"{scene.queue}-", "peek_lock_seconds": lock, "retry_total": 2,
            },
        )

    def task(self, name: str, *arguments, **options):
        return self.app.signature(f"celery_app.{name}", args=arguments, **options)

    def call(self, name: str, *arguments, **options) -> AsyncResult:
        return self.task(name, *arguments).apply_async(**options)


@PLAY.scenario("S431")
def work_goes_through(scene: Scene) -> None:
    worker(scene, AHEAD="10")
    caller = Caller(scene)
    results = [caller.call("add", number, 1, 0.5) for number in range(20)]
    answers = [result.get(timeout=60) for result in results]
    check(answers == [number + 1.5 for number in range(20)], f"the answers were {answers}")
    noted = sorted(note["numbers"][0] for note in scene.notes("added"))
    check(noted == list(range(20)), f"it did {noted}")
    scene.wait_until_empty(queue(scene))


@PLAY.scenario("S432")
def a_task_fails_and_is_tried_again(scene: Scene) -> None:
    worker(scene)
    caller = Caller(scene)
    good, bad = caller.call("fail", 2), caller.call("fail", 9)
    check(good.get(timeout=60) == "at last", "it did not succeed at last")
    error = bad.get(timeout=60, propagate=False)
    check(bad.state == "FAILURE" and str(error) == "not yet", f"the other is {bad.state}: {error!r}")
    tries = sorted(note["retries"] for note in scene.notes("tried"))
    check(tries == [0, 0, 1, 1, 2, 2, 3], f"the tries were {tries}")
    scene.wait_until_empty(queue(scene))


@PLAY.scenario("S433")
def later(scene: Scene) -> None:
    worker(scene, concurrency=2)
    caller = Caller(scene)
    caller.call("handle", 0)
    scene.wait_for("handled", number=0)
    began = time.time()
    caller.call("handle", 1, countdown=3)
    caller.call("handle", 2, eta=datetime.now(timezone.utc) + timedelta(seconds=4))
    caller.call("handle", 3)
    # What is too old when its turn comes is not done at all.
    caller.call("handle", 4, countdown=3, expires=1)
    times = {number: scene.wait_for("handled", number=number)[0]["at"] - began for number in (3, 1, 2)}
    check(times[3] < times[1], f"they were done after {times}")
    check(times[1] >= 3 and times[2] >= 4, f"they were done after {times}")
    scene.wait_until_empty(queue(scene))
    check(not scene.notes("handled", number=4), "what had expired was done")


@PLAY.scenario("S435")
def a_worker_is_killed(scene: Scene) -> None:
    dying = worker(scene, LOCK="10")
    Caller(scene, lock=10).call("slow", 1, 3)
    [begun] = scene.wait_for("begun")
    dying.kill()
    worker(scene, LOCK="10")
    [_, again] = scene.wait_for("begun", 2)
    scene.wait_for("ended")
    check(again["pid"] != begun["pid"], "the same process had it twice")
    check(again["at"] > begun["at"] + 8, f"it came again after {again['at'] - begun['at']:.1f} s, before the lock could end")
    scene.wait_until_empty(queue(scene))
    check(len(scene.notes("ended")) == 1, "it was done twice")


@PLAY.scenario("S436")
def a_worker_stops_in_good_order(scene: Scene) -> None:
    stopping = worker(scene)
    caller = Caller(scene)
    # More than it asks for before it hears of its end.
    for number in range(4):
        caller.call("slow", number, 3)
    scene.wait_for("begun")
    code = stopping.end(signal.SIGTERM)
    check(code == 0, f"the worker ended with {code}")
    # What it had begun it has ended, and the rest is where it was.
    begun, ended, left = scene.notes("begun"), scene.notes("ended"), len(scene.left(queue(scene)))
    check(len(begun) == len(ended), f"it ended {len(ended)} of {len(begun)} that it had begun")
    check(len(ended) + left == 4 and left, f"{len(ended)} are done and {left} are left")


@PLAY.scenario("S437", alone=True)
def the_broker_is_killed(scene: Scene) -> None:
    worker(scene)
    caller = Caller(scene)
    caller.call("handle", 0)
    scene.wait_for("handled", number=0)
    scene.house.broker.kill()
    scene.house.broker.start()
    for number in range(1, 6):
        caller.call("handle", number, retry=True, retry_policy={"interval_start": 0.2, "max_retries": 20})
    for number in range(1, 6):
        scene.wait_for("handled", number=number)
    scene.wait_until_empty(queue(scene))


@PLAY.scenario("S438")
def longer_than_the_lock(scene: Scene) -> None:
    for _ in range(2):
        worker(scene, LOCK="10", RENEW="yes")
    Caller(scene, lock=10).call("slow", 1, 14)
    scene.wait_for("ended")
    scene.wait_until_empty(queue(scene))
    check(len(scene.notes("begun")) == 1, "it was begun twice")


@PLAY.scenario("S439")
def a_queue_is_purged(scene: Scene) -> None:
    caller = Caller(scene)
    for number in range(10):
        caller.call("handle", number)
    with Connection(URL, transport_options=caller.app.conf.broker_transport_options) as link:
        count = link.channel().queue_declare("celery", passive=True).message_count
    check(count == 10, f"it counts {count}")
    gone: list[int] = []
    # One purge ends with the first short answer of the SDK's, whatever is still there, and does not count what was on its way then.
    wait(lambda: gone.append(caller.app.control.purge()) or not scene.left(queue(scene)), "it is empty")
    check(sum(gone) <= 10, f"it purged {gone}")


@PLAY.scenario("S441")
def answers_by_the_broker(scene: Scene) -> None:
    worker(scene, BACKEND="rpc://")
    caller = Caller(scene, backend="rpc://")
    results = [caller.call("add", number, 1) for number in range(5)]
    answers = [result.get(timeout=60) for result in results]
    check(answers == [1, 2, 3, 4, 5], f"the answers were {answers}")


@PLAY.scenario("S442")
def many_by_many(scene: Scene) -> None:
    count = 200
    for _ in range(2):
        worker(scene, AHEAD="50")
    caller = Caller(scene)
    for _ in range(2):
        # Both are there before the many come.
        caller.call("slow", -1, 1)
    wait(lambda: len(scene.notes("ended")) >= 2, "the workers work", 60)
    scene.share(lambda numbers: group([caller.task("handle", number) for number in numbers], app=caller.app).apply_async(), count)
    scene.wait_until_empty(queue(scene))


@PLAY.scenario("S443")
def one_after_another(scene: Scene) -> None:
    worker(scene)
    caller = Caller(scene)
    task = caller.task
    steps = chain(task("add", 1, 2), task("add", 10), task("add", 100), app=caller.app).apply_async()
    many = group([task("add", number, number) for number in range(5)], app=caller.app).apply_async()
    sums = chord([task("add", number, 1) for number in range(4)], task("total"), app=caller.app).apply_async()
    check(steps.get(timeout=60) == 113, f"the chain gave {steps.result}")
    check(many.get(timeout=60) == [0, 2, 4, 6, 8], "the group gave something else")
    check(sums.get(timeout=60) == 10, f"the chord gave {sums.result}")
    wait(lambda: not scene.left(queue(scene)), "the queue is empty")


@PLAY.scenario("S444")
def acknowledged_before_it_is_done(scene: Scene) -> None:
    worker(scene)
    Caller(scene).call("hasty", 1, 4)
    scene.wait_for("begun")
    check(not scene.left(queue(scene)), "it is still in the queue")
    check(not scene.notes("ended"), "it was done too early for this test")
    scene.wait_for("ended")


@PLAY.scenario("S445")
def by_the_clock(scene: Scene) -> None:
    worker(scene)
    clock = scene.start(sys.executable, "-m", "celery", "-A", "celery_app", "beat", "--loglevel=INFO", **settings(scene, TICK="yes"))
    ticks = scene.wait_for("tick", 4)
    check(ticks[3]["at"] - ticks[0]["at"] < 20, f"four ticks took {ticks[3]['at'] - ticks[0]['at']:.1f} s")
    code = clock.end(signal.SIGTERM)
    check(code == 0, f"beat ended with {code}")
