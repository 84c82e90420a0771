"""A taskiq application: its worker, its scheduler and its callers all import this."""

import asyncio
import os

from taskiq import Context, SimpleRetryMiddleware, TaskiqDepends, TaskiqScheduler
from taskiq.schedule_sources import LabelScheduleSource
from taskiq_service_bus import ServiceBusBroker

from notebook import note

broker = ServiceBusBroker(os.environ["CONNECTION_STRING"], os.environ["QUEUE"], max_lock_renewal_duration=60).with_middlewares(
    SimpleRetryMiddleware(default_retry_count=4))
scheduler = TaskiqScheduler(broker, [LabelScheduleSource(broker)])


@broker.task
async def handle(number: int, text: str = "", more: dict | None = None) -> None:
    note("handled", number=number, text=text, more=more)


@broker.task(retry_on_error=True)
async def fail(times: int, context: Context = TaskiqDepends()) -> None:
    tried = int(context.message.labels.get("_retries", 0))
    note("tried", tried=tried)
    if tried < times:
        raise ValueError("not yet")


@broker.task
async def slow(number: int, seconds: float) -> None:
    note("begun", number=number)
    await asyncio.sleep(seconds)
    note("ended", number=number)


@broker.task(schedule=[{"interval": 1}] if "TICK" in os.environ else [])
async def tick() -> None:
    note("tick")
