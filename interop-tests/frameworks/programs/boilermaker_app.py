"""A Boilermaker application: `boilermaker_app.py work` is its worker; anything else calls a task of that name."""

import asyncio
import json
import logging
import os
import sys
from collections import Counter

from boilermaker import Boilermaker, retries
from boilermaker.config import Config
from boilermaker.failure import TaskFailureResult
from boilermaker.service_bus import AzureServiceBus

from notebook import note


class State:
    """What the tasks share."""

    app: Boilermaker
    tries: Counter[str] = Counter()


state = State()
# Its configuration is in the environment.
app = state.app = Boilermaker(state, AzureServiceBus.from_config(Config(service_bus_queue_name=os.environ["QUEUE"])))
soon = retries.RetryPolicy(max_tries=4, delay=1, delay_max=1)


@app.task()
async def handle(state: State, number: int, text: str = "", more: dict | None = None) -> None:
    note("handled", number=number, text=text, more=more)


@app.task(policy=soon)
async def fail(state: State, name: str, times: int) -> None:
    state.tries[name] += 1
    note("tried", name=name)
    if state.tries[name] <= times:
        raise retries.RetryException("not yet")


@app.task()
async def wrong(state: State) -> type[TaskFailureResult]:
    note("handled", number=-1)
    return TaskFailureResult


async def sleep(number: int, seconds: float) -> None:
    note("begun", number=number)
    await asyncio.sleep(seconds)
    note("ended", number=number)


@app.task()
async def slow(state: State, number: int, seconds: float) -> None:
    await sleep(number, seconds)


@app.task(acks_late=False)
async def hasty(state: State, number: int, seconds: float) -> None:
    await sleep(number, seconds)


@app.task()
async def long(state: State, number: int, seconds: float) -> None:
    note("begun", number=number)
    for _ in range(int(seconds)):
        await asyncio.sleep(1)
        # A task sees to its lock by itself.
        await state.app.renew_message_lock()
    note("ended", number=number)


TASKS = {"handle": handle, "fail": fail, "wrong": wrong, "slow": slow, "hasty": hasty, "long": long}


def made(name: str, *arguments):
    return app.create_task(TASKS[name], *arguments)


async def call() -> None:
    """Calls [[name, delay, arguments…]…], or chains [name, arguments…] with one for failures."""
    request = json.loads(sys.argv[1])
    if "chain" in request:
        failure = made(*request["failure"])
        await app.publish_task(app.chain(*(made(*each) for each in request["chain"]), on_failure=failure))
    for name, delay, *arguments in request.get("calls", []):
        await app.apply_async(TASKS[name], *arguments, delay=delay)
    await app.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(app.run() if sys.argv[1] == "work" else call())
