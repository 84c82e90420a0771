"""The steps (../README.md) with one version of Python's azure-servicebus: `client.py sync|aio amqp|websockets PREFIX`.

The asynchronous client is used as it is; the calls of the blocking one return what is not awaited.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import time
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone

import certifi

# The versions before 7.10 trust what certifi names, for which there is no setting.
certifi.where = lambda: os.environ["SSL_CERT_FILE"]

import azure.servicebus as blocking  # noqa: E402
import azure.servicebus.aio as asynchronous  # noqa: E402
import azure.servicebus.aio.management as asynchronous_management  # noqa: E402
import azure.servicebus.management as blocking_management  # noqa: E402
from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue, TransportType  # noqa: E402
from azure.servicebus.exceptions import MessagingEntityNotFoundError, ServiceBusAuthenticationError  # noqa: E402

try:
    from azure.servicebus._pyamqp._platform import KNOWN_TCP_OPTS
except ImportError:
    # Not these versions.
    pass
else:
    # They set the socket's options to what they are. The kernel refuses this with the segment size of the loopback device, which no
    # network has.
    KNOWN_TCP_OPTS.discard("TCP_MAXSEG")

kind, transport, PREFIX = sys.argv[1:]
CONNECTION_STRING = os.environ["CONNECTION_STRING"]
AUTHORITY = os.environ["SSL_CERT_FILE"]
SOON = 15


def check(condition: object, text: str) -> None:
    if not condition:
        raise AssertionError(text)


async def done(value):
    """What a call of either client returns."""
    return await value if inspect.isawaitable(value) else value


@asynccontextmanager
async def opened(thing):
    if hasattr(thing, "__aenter__"):
        async with thing:
            yield thing
    else:
        with thing:
            yield thing


class Steps:
    def __init__(self, client, administrator):
        self.client = client
        self.administrator = administrator

    def sender(self, queue: str):
        return opened(self.client.get_queue_sender(f"{PREFIX}-{queue}"))

    def receiver(self, queue: str, **options):
        return opened(self.client.get_queue_receiver(f"{PREFIX}-{queue}", **options))

    async def sent(self, queue: str, *bodies: str, **properties) -> None:
        async with self.sender(queue) as sender:
            await done(sender.send_messages([ServiceBusMessage(body, **properties) for body in bodies]))

    async def next(self, receiver, count: int = 1) -> list:
        """As many messages, which may come in several answers."""
        found = []
        deadline = time.monotonic() + SOON
        while len(found) < count and time.monotonic() < deadline:
            found += await done(receiver.receive_messages(max_message_count=count - len(found), max_wait_time=5))
        check(len(found) == count, f"{len(found)} messages of {count}")
        return found

    async def empty(self, queue: str) -> None:
        async with self.receiver(queue) as receiver:
            left = await done(receiver.peek_messages(max_message_count=10))
        check(not left, f"{len(left)} messages are left")

    async def send(self):
        async with self.sender("send") as sender:
            await done(sender.send_messages(ServiceBusMessage("one", application_properties={"number": 7})))
        async with self.receiver("send") as receiver:
            [message] = await self.next(receiver)
            check(str(message) == "one", f"the body is {message}")
            check(message.application_properties == {b"number": 7}, f"the properties are {message.application_properties}")
            await done(receiver.complete_message(message))

    async def batch(self):
        async with self.sender("batch") as sender:
            batch = await done(sender.create_message_batch())
            for number in range(20):
                batch.add_message(ServiceBusMessage(f"{number}"))
            await done(sender.send_messages(batch))
        async with self.receiver("batch") as receiver:
            messages = await self.next(receiver, 20)
            check([str(each) for each in messages] == [f"{number}" for number in range(20)], "another order")
            for message in messages:
                await done(receiver.complete_message(message))
        await self.empty("batch")

    async def receive_and_delete(self):
        await self.sent("receive-and-delete", "one", "two")
        async with self.receiver("receive-and-delete", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
            await self.next(receiver, 2)
        await self.empty("receive-and-delete")

    async def complete(self):
        await self.sent("complete", "one")
        async with self.receiver("complete") as receiver:
            [message] = await self.next(receiver)
            await done(receiver.complete_message(message))
        await self.empty("complete")

    async def abandon(self):
        await self.sent("abandon", "one")
        async with self.receiver("abandon") as receiver:
            [message] = await self.next(receiver)
            await done(receiver.abandon_message(message))
            [message] = await self.next(receiver)
            check(message.delivery_count == 1, f"the delivery count is {message.delivery_count}")
            await done(receiver.complete_message(message))

    async def defer(self):
        await self.sent("defer", "one")
        async with self.receiver("defer") as receiver:
            [message] = await self.next(receiver)
            await done(receiver.defer_message(message))
            [deferred] = await done(receiver.receive_deferred_messages([message.sequence_number]))
            check(str(deferred) == "one", f"the body is {deferred}")
            await done(receiver.complete_message(deferred))
        await self.empty("defer")

    async def dead_letter(self):
        await self.sent("dead-letter", "one")
        async with self.receiver("dead-letter") as receiver:
            [message] = await self.next(receiver)
            await done(receiver.dead_letter_message(message, reason="a reason", error_description="a description"))
        async with self.receiver("dead-letter", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
            [message] = await self.next(receiver)
            check(message.dead_letter_reason == "a reason", f"the reason is {message.dead_letter_reason}")
            check(message.dead_letter_error_description == "a description", f"the text is {message.dead_letter_error_description}")
            await done(receiver.complete_message(message))

    async def schedule(self):
        async with self.sender("schedule") as sender:
            soon = datetime.now(timezone.utc) + timedelta(seconds=1)
            numbers = await done(sender.schedule_messages(ServiceBusMessage("one"), soon))
            check(len(numbers) == 1, f"the numbers are {numbers}")
        async with self.receiver("schedule") as receiver:
            [message] = await self.next(receiver)
            await done(receiver.complete_message(message))

    async def cancel(self):
        async with self.sender("cancel") as sender:
            later = datetime.now(timezone.utc) + timedelta(hours=1)
            numbers = await done(sender.schedule_messages([ServiceBusMessage("one"), ServiceBusMessage("two")], later))
            await done(sender.cancel_scheduled_messages(numbers))
        await self.empty("cancel")

    async def peek(self):
        await self.sent("peek", "one", "two")
        async with self.receiver("peek") as receiver:
            messages = await done(receiver.peek_messages(max_message_count=2))
            check([str(each) for each in messages] == ["one", "two"], f"{len(messages)} messages")

    async def renew(self):
        await self.sent("renew", "one")
        async with self.receiver("renew") as receiver:
            [message] = await self.next(receiver)
            before = message.locked_until_utc
            await asyncio.sleep(0.1)
            await done(receiver.renew_message_lock(message))
            check(message.locked_until_utc > before, "the lock ends no later")
            await done(receiver.complete_message(message))

    async def session(self):
        await self.sent("session", "one", session_id="a")
        async with self.receiver("session", session_id="a") as receiver:
            [message] = await self.next(receiver)
            check(message.session_id == "a", f"the session is {message.session_id}")
            await done(receiver.session.set_state(b"a state"))
            state = await done(receiver.session.get_state())
            check(state == b"a state", f"the state is {state!r}")
            await done(receiver.session.renew_lock())
            await done(receiver.complete_message(message))

    async def next_session(self):
        await self.sent("next-session", "one", session_id="b")
        async with self.receiver("next-session", session_id=blocking.NEXT_AVAILABLE_SESSION) as receiver:
            [message] = await self.next(receiver)
            check(receiver.session.session_id == "b", f"the session is {receiver.session.session_id}")
            await done(receiver.complete_message(message))

    async def rules(self):
        topic = f"{PREFIX}-topic"
        rule = blocking_management.SqlRuleFilter("color = 'red'")
        await done(self.administrator.create_rule(topic, "subscription", "red", filter=rule))
        listed = self.administrator.list_rules(topic, "subscription")
        names = [each.name async for each in listed] if hasattr(listed, "__aiter__") else [each.name for each in listed]
        check("red" in names, f"the rules are {names}")
        await done(self.administrator.delete_rule(topic, "subscription", "$Default"))
        async with opened(self.client.get_topic_sender(topic)) as sender:
            for color in ("blue", "red"):
                await done(sender.send_messages(ServiceBusMessage(color, application_properties={"color": color})))
        async with opened(self.client.get_subscription_receiver(topic, "subscription")) as receiver:
            [message] = await self.next(receiver)
            check(str(message) == "red", f"the message is {message}")
            await done(receiver.complete_message(message))

    async def unknown(self):
        try:
            await self.sent("unknown", "one")
        except (MessagingEntityNotFoundError, ServiceBusAuthenticationError):
            # The second is what the client makes of the answer to its token for an unknown entity, which is 404.
            return
        raise AssertionError("no error")


async def main() -> None:
    options = {"transport_type": TransportType.AmqpOverWebsocket} if transport == "websockets" else {}
    trust = {"connection_verify": AUTHORITY}
    module, management = (blocking, blocking_management) if kind == "sync" else (asynchronous, asynchronous_management)
    # uamqp fails where the answer to its token comes before the disposition of the token, which happens on a busy machine: fewer tries
    # than by default, and sooner.
    retries = {"retry_total": 2, "retry_backoff_factor": 0.1}
    client = module.ServiceBusClient.from_connection_string(CONNECTION_STRING, **retries, **options, **trust)
    administrator = management.ServiceBusAdministrationClient.from_connection_string(CONNECTION_STRING, **trust)
    async with opened(client), opened(administrator):
        steps = Steps(client, administrator)
        for name in os.environ["STEPS"].split():
            try:
                step = getattr(steps, name.replace("-", "_"))
                await asyncio.wait_for(step(), 60)
            except Exception as error:
                text = " ".join(f"{type(error).__name__}: {error}".split())
                print(f"STEP {name} failed {text}", flush=True)
            else:
                print(f"STEP {name} passed", flush=True)


asyncio.run(main())
