"""S45 to S52: scheduled messages."""

from datetime import timedelta

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.exceptions import MessageNotFoundError

from conftest import bodies, complete, nothing, numbers, receive, soon

# What peek and delivery show of a time is whole milliseconds.
MILLISECOND = timedelta(milliseconds=1)


async def test_s45_a_scheduled_message_comes_when_it_is_due(queue):
    async with queue.receiver() as receiver:
        # It looks before there is a message, so that one that came too soon would be seen too soon.
        assert await receiver.peek_messages() == []
        due = soon(10)
        assert await queue.schedule(due, "later") == [1]
        (message,) = await receive(receiver, 1)
        assert soon(0) >= due - MILLISECOND
        assert str(message) == "later"
        assert message.sequence_number == 2
        assert message.enqueued_time_utc >= due - MILLISECOND
        assert abs(message.scheduled_enqueue_time_utc - due) <= MILLISECOND
        await receiver.complete_message(message)


async def test_s46_several_are_scheduled_at_once(queue):
    contents = [f"{index}" for index in range(10)]
    assert await queue.schedule(soon(10), *contents) == list(range(1, 11))
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 10)
        assert bodies(messages) == contents
        assert numbers(messages) == list(range(11, 21))
        await complete(receiver, messages)


async def test_s47_an_ordinary_send_may_schedule(queue):
    async with queue.sender() as sender, queue.receiver() as receiver:
        due = soon(10)
        await sender.send_messages(ServiceBusMessage("single", scheduled_enqueue_time_utc=due))
        batch = await sender.create_message_batch()
        batch.add_message(ServiceBusMessage("in a batch", scheduled_enqueue_time_utc=due))
        batch.add_message(ServiceBusMessage("at once"))
        await sender.send_messages(batch)
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["at once"]
        await complete(receiver, messages)
        messages = await receive(receiver, 2)
        assert soon(0) >= due - MILLISECOND
        assert sorted(bodies(messages)) == ["in a batch", "single"]
        await complete(receiver, messages)


async def test_s48_peek_finds_a_scheduled_message(queue):
    due = soon(3600)
    (number,) = await queue.schedule(due, "far")
    (message,) = await queue.peek()
    assert (str(message), message.sequence_number) == ("far", number)
    assert message.state == ServiceBusMessageState.SCHEDULED
    assert abs(message.scheduled_enqueue_time_utc - due) <= MILLISECOND
    await queue.cancel(number)


async def test_s49_a_cancelled_message_never_comes(queue):
    due = soon(15)
    one, two, three = await queue.schedule(due, "1", "2", "3")
    await queue.cancel(one)
    await queue.cancel([two, three])
    assert await queue.left() == []
    async with queue.receiver() as receiver:
        await nothing(receiver, wait=max(1.0, (due - soon(-1)).total_seconds()))


async def test_s50_a_late_cancel_says_so(queue):
    (number,) = await queue.schedule(soon(1), "too late")
    async with queue.receiver() as receiver:
        (message,) = await receive(receiver, 1)
        await receiver.abandon_message(message)
        with pytest.raises(MessageNotFoundError):
            await queue.cancel(number)
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["too late"]
        await complete(receiver, messages)


async def test_s51_the_past_is_now(queue):
    (number,) = await queue.schedule(soon(-60), "overdue")
    assert number >= 1
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["overdue"]
        await complete(receiver, messages)


async def test_s52_what_is_not_scheduled_cannot_be_cancelled(queue):
    with pytest.raises(MessageNotFoundError):
        await queue.cancel(4711)
    (number,) = await queue.schedule(soon(3600), "once")
    await queue.cancel(number)
    with pytest.raises(MessageNotFoundError):
        await queue.cancel(number)
