"""S18 to S37: receiving, settling, and locks."""

import asyncio
import time
from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError

import both
from conftest import bodies, complete, nothing, numbers, receive, soon

# The lock of those messages that must be held on a busy machine, seconds.
LOCK = 12
# What is shown of a time is whole milliseconds.
MILLISECOND = timedelta(milliseconds=1)


async def test_s18_a_locked_message_is_nobody_elses(queue, connect):
    await queue.send("mine")
    async with queue.receiver() as first, queue.through(connect()).receiver() as second:
        (message,) = await receive(first, 1)
        await nothing(second)
        await first.complete_message(message)
        await nothing(second)


async def test_s19_receive_and_delete_removes_at_once(queue):
    await queue.send("1", "2", "3")
    async with queue.taker() as receiver:
        assert bodies(await receive(receiver, 3)) == ["1", "2", "3"]
    assert await queue.left() == []


async def test_s20_an_abandoned_message_comes_again_first(queue):
    await queue.send("first", "second")
    async with queue.receiver() as receiver:
        (once,) = await receive(receiver, 1)
        assert str(once) == "first"
        await receiver.abandon_message(once)
        twice, other = await receive(receiver, 2)
        assert (str(twice), twice.sequence_number, twice.delivery_count) == ("first", once.sequence_number, 1)
        assert twice.lock_token != once.lock_token
        assert (str(other), other.delivery_count or 0) == ("second", 0)
        await complete(receiver, [twice, other])


async def test_s22_a_dead_letter_says_why(queue):
    await queue.send(ServiceBusMessage("bad", application_properties={"kept": "yes"}, subject="the subject"))
    async with queue.receiver() as receiver:
        (message,) = await receive(receiver, 1)
        await receiver.dead_letter_message(message, reason="why", error_description="because")
        await nothing(receiver)
    async with queue.dead_letters() as receiver:
        number = message.sequence_number
        (message,) = await receive(receiver, 1)
        assert (str(message), message.sequence_number) == ("bad", number)
        assert message.subject == "the subject"
        assert (message.dead_letter_reason, message.dead_letter_error_description) == ("why", "because")
        assert message.application_properties[b"kept"] == b"yes"
        assert message.application_properties[b"DeadLetterReason"] == b"why"
        await receiver.complete_message(message)
        await nothing(receiver)


async def test_s23_a_dead_letter_needs_no_reason(queue):
    await queue.send("bad")
    async with queue.receiver() as receiver:
        (message,) = await receive(receiver, 1)
        await receiver.dead_letter_message(message)
    async with queue.dead_letters() as receiver:
        (message,) = await receive(receiver, 1)
        assert not message.dead_letter_reason
        await receiver.complete_message(message)


async def test_s24_too_many_deliveries_dead_letter(queue):
    await queue.send("poison")
    async with queue.receiver() as receiver:
        for count in range(3):
            (message,) = await receive(receiver, 1)
            assert (message.delivery_count or 0) == count
            await receiver.abandon_message(message)
        await nothing(receiver)
    async with queue.dead_letters() as receiver:
        (message,) = await receive(receiver, 1)
        assert str(message) == "poison"
        assert message.dead_letter_reason == "MaxDeliveryCountExceeded"
        assert message.dead_letter_error_description == "Message could not be consumed after 3 delivery attempts."
        await receiver.complete_message(message)


async def test_s25_one_delivery_may_be_all(queue):
    await queue.send("once")
    async with queue.receiver() as receiver:
        (message,) = await receive(receiver, 1)
        await receiver.abandon_message(message)
        await nothing(receiver)
    async with queue.dead_letters() as receiver:
        (message,) = await receive(receiver, 1)
        assert message.dead_letter_reason == "MaxDeliveryCountExceeded"
        await receiver.complete_message(message)


async def test_s26_a_lock_that_expires_frees_the_message(queue):
    await queue.send("slow")
    async with queue.receiver() as receiver:
        (first,) = await receive(receiver, 1)
        (second,) = await receive(receiver, 1)
        assert soon(0) >= first.locked_until_utc - MILLISECOND
        assert second.delivery_count == 1
        assert second.sequence_number == first.sequence_number
        assert second.lock_token != first.lock_token
        with pytest.raises(MessageLockLostError):
            await receiver.complete_message(first)
        await receiver.complete_message(second)
        await nothing(receiver)


async def test_s27_a_renewed_lock_holds(make_queue, connect):
    queue = await make_queue(lock_duration=timedelta(seconds=LOCK))
    await queue.send("long work")
    async with queue.receiver() as receiver, queue.through(connect()).receiver() as other:
        (message,) = await receive(receiver, 1)
        first = until = message.locked_until_utc
        while soon(0) <= first:
            await nothing(other, wait=3)
            renewed = await receiver.renew_message_lock(message)
            assert renewed > until
            left = renewed - datetime.now(timezone.utc)
            assert timedelta(seconds=LOCK / 2) <= left <= timedelta(seconds=LOCK + 1)
            assert message.locked_until_utc == renewed
            until = renewed
        await receiver.complete_message(message)
        await nothing(other)


async def test_s28_a_lost_lock_cannot_be_renewed(queue):
    await queue.send("late")
    async with queue.receiver() as receiver:
        (message,) = await receive(receiver, 1)
        (again,) = await receive(receiver, 1)
        with pytest.raises(MessageLockLostError):
            await receiver.renew_message_lock(message)
        await receiver.complete_message(again)


async def test_s29_the_sdks_renewer_holds_a_message(make_queue, connect, kind):
    queue = await make_queue(lock_duration=timedelta(seconds=LOCK))
    await queue.send("renewed")
    renewer = both.lock_renewer(kind)
    async with queue.receiver() as receiver, queue.through(connect()).receiver() as other:
        (message,) = await receive(receiver, 1)
        renewer.register(receiver, message, max_lock_renewal_duration=120)
        await nothing(other, wait=LOCK + 3)
        await receiver.complete_message(message)
        await renewer.close()
        await nothing(other)


async def test_s30_a_lock_outlives_its_receiver(queue, connect):
    await queue.send("kept")
    async with queue.receiver() as first:
        (message,) = await receive(first, 1)
    async with queue.through(connect()).receiver() as second:
        await nothing(second)
        await second.complete_message(message)
        await nothing(second)
    assert await queue.left() == []


async def test_s31_a_closed_receivers_message_waits_for_its_lock(make_queue, connect):
    queue = await make_queue(lock_duration=timedelta(seconds=LOCK))
    await queue.send("1", "2", "3")
    async with queue.receiver() as first:
        (message,) = await receive(first, 1)
        assert str(message) == "1"
    async with queue.through(connect()).receiver() as second:
        others = await receive(second, 2)
        assert bodies(others) == ["2", "3"]
        await complete(second, others)
        (again,) = await receive(second, 1)
        assert soon(0) >= message.locked_until_utc - MILLISECOND
        assert (str(again), again.delivery_count) == ("1", 1)
        await second.complete_message(again)


async def test_s32_what_was_prefetched_is_released_on_close(queue, connect):
    await queue.send("1", "2", "3", "4", "5")
    async with queue.receiver(prefetch_count=10) as first:
        (message,) = await receive(first, 1)
        await first.complete_message(message)
    async with queue.through(connect()).receiver() as second:
        rest = await receive(second, 4)
        assert bodies(rest) == ["2", "3", "4", "5"]
        assert [each.delivery_count or 0 for each in rest] == [0, 0, 0, 0]
        await complete(second, rest)


async def test_s33_a_receive_of_nothing_ends_in_time(queue):
    async with queue.receiver() as receiver:
        began = time.monotonic()
        await nothing(receiver, wait=2)
        assert 1.5 <= time.monotonic() - began <= 20
        await queue.send("now")
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["now"]
        await complete(receiver, messages)


async def test_s34_a_waiting_receive_is_served_at_once(queue, connect):
    async with queue.receiver() as receiver, queue.through(connect()).sender() as sender:
        # The receive is waiting by the time this peek has been answered: both are on open links.
        waiting = asyncio.create_task(receiver.receive_messages(max_wait_time=60))
        await queue.through(connect()).peek()
        assert not waiting.done()
        began = time.monotonic()
        await sender.send_messages(ServiceBusMessage("served"))
        messages = await waiting
        assert time.monotonic() - began <= 20
        assert bodies(messages) == ["served"]
        await complete(receiver, messages)


async def test_s35_competing_receivers_share(queue, connect):
    async with queue.sender() as sender:
        await sender.send_messages([ServiceBusMessage(f"{index}") for index in range(200)])
    found = []

    async def take():
        async with queue.through(connect()).receiver() as receiver:
            while len(found) < 200:
                messages = await receiver.receive_messages(max_message_count=20, max_wait_time=2)
                await complete(receiver, messages)
                found.extend(bodies(messages))
            await nothing(receiver)

    await asyncio.gather(take(), take())
    assert sorted(found, key=int) == [f"{index}" for index in range(200)]


async def test_s36_a_receive_asks_for_no_more_than_it_wants(queue):
    await queue.send(*(f"{index}" for index in range(10)))
    async with queue.receiver() as receiver:
        first = await receiver.receive_messages(max_message_count=4, max_wait_time=5)
        assert 1 <= len(first) <= 4
        rest = await receive(receiver, 10 - len(first))
        assert numbers(first + rest) == list(range(1, 11))
        await complete(receiver, first + rest)


async def test_s37_messages_may_be_completed_in_any_order(queue):
    async with queue.sender() as sender:
        await sender.send_messages([ServiceBusMessage(f"{index}") for index in range(20)])
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 20)
        await complete(receiver, reversed(messages))
        await nothing(receiver)
    assert await queue.left() == []
