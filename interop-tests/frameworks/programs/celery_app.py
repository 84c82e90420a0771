"""A Celery application: its worker, its timetable and its callers all import this."""

import os
import time

from celery import Celery, Task

from notebook import note

app = Celery("application")
app.conf.update(
    broker_url=os.environ["URL"],
    # "rpc" answers by a queue of the caller's.
    result_backend=os.environ.get("BACKEND") or f"file://{os.environ['RESULTS']}",
    broker_transport_options={
        "wait_time_seconds": 1, "queue_name_prefix": f"{os.environ['QUEUE']}-", "retry_total": 2,
        "peek_lock_seconds": int(os.environ.get("LOCK", 60)), "use_lock_renewal": "RENEW" in os.environ, "max_lock_renewal_duration": 60,
    },
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    worker_prefetch_multiplier=int(os.environ.get("AHEAD", 1)),
    # What the transport has no means for.
    worker_enable_remote_control=False,
    beat_schedule={"every second": {"task": "celery_app.tick", "schedule": 1.0}} if "TICK" in os.environ else {},
    beat_schedule_filename="schedule",
    timezone="UTC",
)


@app.task
def add(*numbers: float) -> float:
    note("added", numbers=numbers)
    return sum(numbers)


@app.task
def total(numbers: list[float]) -> float:
    return sum(numbers)


@app.task
def tick() -> None:
    note("tick")


@app.task
def handle(number: int) -> None:
    note("handled", number=number)


@app.task(bind=True, autoretry_for=(ValueError,), retry_backoff=False, default_retry_delay=1, max_retries=3)
def fail(self: Task, times: int) -> str:
    note("tried", retries=self.request.retries)
    if self.request.retries < times:
        raise ValueError("not yet")
    return "at last"


@app.task(bind=True)
def slow(self: Task, number: int, seconds: float) -> None:
    note("begun", number=number)
    time.sleep(seconds)
    note("ended", number=number)


@app.task(bind=True, acks_late=False)
def hasty(self: Task, number: int, seconds: float) -> None:
    note("begun", number=number)
    time.sleep(seconds)
    note("ended", number=number)
