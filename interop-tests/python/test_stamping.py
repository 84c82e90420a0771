"""S15 to S17: sequence numbers, enqueued time, and the other stamps."""

import uuid
from datetime import datetime, timedelta, timezone

from azure.servicebus import ServiceBusMessage, ServiceBusMessageState

from conftest import bodies, complete, numbers, receive


async def test_s15_numbers_have_no_gaps(queue):
    await queue.send("1", "2", "3")
    async with queue.sender() as sender:
        await sender.send_messages([ServiceBusMessage(body) for body in "456"])
    await queue.send("7")
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 7)
        assert bodies(messages) == list("1234567")
        assert numbers(messages) == [1, 2, 3, 4, 5, 6, 7]
        await complete(receiver, messages)


async def test_s16_enqueued_time_is_when_it_came_and_stays(queue):
    tolerance = timedelta(seconds=1)
    before = datetime.now(timezone.utc)
    await queue.send("when")
    after = datetime.now(timezone.utc)
    async with queue.receiver() as receiver:
        (first,) = await receive(receiver, 1)
        assert before - tolerance <= first.enqueued_time_utc <= after + tolerance
        await receiver.abandon_message(first)
        (second,) = await receive(receiver, 1)
        assert second.enqueued_time_utc == first.enqueued_time_utc
        assert second.sequence_number == first.sequence_number
        await receiver.complete_message(second)


async def test_s17_a_locked_message_has_every_stamp(queue):
    await queue.send(ServiceBusMessage("stamps", time_to_live=timedelta(minutes=10)))
    async with queue.receiver() as receiver:
        (message,) = await receive(receiver, 1)
        left = message.locked_until_utc - datetime.now(timezone.utc)
        assert timedelta(seconds=15) <= left <= timedelta(seconds=33)
        assert message.sequence_number == 1
        assert message.enqueued_sequence_number == 0
        assert isinstance(message.lock_token, uuid.UUID)
        assert message.delivery_count in (0, None)
        assert message.state == ServiceBusMessageState.ACTIVE
        assert message.time_to_live == timedelta(minutes=10)
        assert message.expires_at_utc == message.enqueued_time_utc + timedelta(minutes=10)
        assert message.scheduled_enqueue_time_utc is None
        assert message.dead_letter_reason is None
        await receiver.complete_message(message)
