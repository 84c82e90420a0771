"""S53 to S58: deferred messages."""

from datetime import timedelta

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.exceptions import MessageNotFoundError

from conftest import bodies, complete, nothing, numbers, receive


async def test_s53_deferred_messages_are_received_by_number(queue):
    one, two, three = await queue.defer("1", "2", "3")
    async with queue.receiver() as receiver:
        await nothing(receiver)
        first = await receiver.receive_deferred_messages(one)
        both = await receiver.receive_deferred_messages([two, three])
        assert bodies(first + both) == ["1", "2", "3"]
        assert numbers(first + both) == [one, two, three]
        for message in first + both:
            assert message.state == ServiceBusMessageState.DEFERRED
            assert message.lock_token is not None
            assert message.locked_until_utc is not None
        await complete(receiver, first + both)
        await nothing(receiver)
    assert await queue.left() == []


async def test_s54_deferred_messages_are_received_and_deleted(queue):
    deferred = await queue.defer("1", "2")
    async with queue.taker() as receiver:
        assert bodies(await receiver.receive_deferred_messages(deferred)) == ["1", "2"]
        with pytest.raises(MessageNotFoundError):
            await receiver.receive_deferred_messages(deferred)
    assert await queue.left() == []


async def test_s55_all_the_numbers_asked_for_or_none(queue, connect):
    assert await queue.defer("1", "2", "3") == [1, 2, 3]
    async with queue.receiver() as receiver:
        for wanted in ([3, 4], [5, 6, 7]):
            with pytest.raises(MessageNotFoundError):
                await receiver.receive_deferred_messages(wanted)
        async with queue.through(connect()).receiver() as other:
            (locked,) = await other.receive_deferred_messages(1)
            with pytest.raises(MessageNotFoundError):
                await receiver.receive_deferred_messages([1, 2])
            await other.complete_message(locked)
        rest = await receiver.receive_deferred_messages([2, 3])
        assert bodies(rest) == ["2", "3"]
        await complete(receiver, rest)


async def test_s56_deferred_messages_can_be_settled_every_way(queue):
    one, two, three = await queue.defer("1", "2", "3")
    async with queue.receiver() as receiver:
        abandoned, dead, again = await receiver.receive_deferred_messages([one, two, three])
        await receiver.abandon_message(abandoned)
        await receiver.dead_letter_message(dead, reason="why", error_description="because")
        assert await receiver.renew_message_lock(again) >= again.enqueued_time_utc
        await receiver.defer_message(again)
        await nothing(receiver)
        rest = await receiver.receive_deferred_messages([one, three])
        assert bodies(rest) == ["1", "3"]
        await complete(receiver, rest)
    async with queue.dead_letters() as receiver:
        (message,) = await receive(receiver, 1)
        assert (str(message), message.dead_letter_reason) == ("2", "why")
        assert message.dead_letter_error_description == "because"
        await receiver.complete_message(message)


async def test_s57_peek_finds_a_deferred_message(queue):
    (number,) = await queue.defer("aside")
    (message,) = await queue.peek()
    assert (str(message), message.sequence_number) == ("aside", number)
    assert message.state == ServiceBusMessageState.DEFERRED


async def test_s58_a_deferred_message_does_not_expire(queue):
    (number,) = await queue.defer(ServiceBusMessage("patient", time_to_live=timedelta(seconds=10)))
    async with queue.dead_letters() as dead:
        await nothing(dead, wait=12)
    async with queue.receiver() as receiver:
        await nothing(receiver)
        messages = await receiver.receive_deferred_messages(number)
        assert bodies(messages) == ["patient"]
        await complete(receiver, messages)
