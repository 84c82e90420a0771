"""A FastStream application: `faststream run faststream_app:app` is its worker."""

import asyncio
import os
from typing import Any

from faststream import AckPolicy, Context, FastStream
from faststream_azure_servicebus import ServiceBusBroker
from faststream_azure_servicebus.annotations import ServiceBusMessage

from notebook import note

QUEUE = os.environ["QUEUE"]

if "IDENTITY" in os.environ:
    broker = ServiceBusBroker(fully_qualified_namespace=os.environ["SUITE_HOST"], graceful_timeout=20)
else:
    broker = ServiceBusBroker(os.environ["CONNECTION_STRING"], graceful_timeout=20)
app = FastStream(broker)
policy = AckPolicy[os.environ.get("POLICY", "REJECT_ON_ERROR")]
workers = int(os.environ.get("WORKERS", 1))


@broker.subscriber(queue=QUEUE, ack_policy=policy, max_workers=workers, prefetch_count=workers)
async def handle(body: Any, message: ServiceBusMessage, kind: str = Context("message.headers.kind", default="")) -> Any:
    what = body if isinstance(body, dict) else {}
    note("handled", body=body, kind=kind, count=message.delivery_count, correlation=message.correlation_id)
    if seconds := what.get("seconds"):
        await asyncio.sleep(seconds)
    if (message.delivery_count or 0) < what.get("fail", 0):
        raise ValueError("not yet")
    if reason := what.get("reject"):
        await message.reject(reason, "because")
    if what.get("defer"):
        await message.defer()
    note("ended", body=body)
    return {"answer": what["value"] * 2} if "value" in what else None


def copier(subscription: str):
    async def copy(body: dict) -> None:
        note("copied", subscription=subscription, body=body)

    return copy


if "TOPIC" in os.environ:
    for name in ("a", "b"):
        broker.subscriber(topic=os.environ["TOPIC"], subscription=name)(copier(name))
