"""S72 to S75: what is left after the broker was killed or stopped."""

import asyncio

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusMessageState

from conftest import bodies, complete, nothing, numbers, receive, soon

pytestmark = [pytest.mark.restart]


async def restart(broker, how) -> None:
    await asyncio.to_thread(how)
    await asyncio.to_thread(broker.start)


async def test_s72_all_that_was_acknowledged_survives_a_kill(queue, connect, broker):
    async with queue.sender() as sender, queue.receiver() as receiver:
        await sender.send_messages([
            ServiceBusMessage(f"{index}", application_properties={"index": index}, message_id=f"id-{index}") for index in range(1, 11)
        ])
        done = await receive(receiver, 3)
        await complete(receiver, done)
        aside, dead, locked = await receive(receiver, 3)
        await receiver.defer_message(aside)
        await receiver.dead_letter_message(dead, reason="why", error_description="because")
        (scheduled,) = await sender.schedule_messages([ServiceBusMessage("far")], soon(3600))
        assert scheduled == 11

        await restart(broker, broker.kill)

    queue = queue.through(connect())
    peeked = await queue.peek()
    assert numbers(peeked) == [4, 6, 7, 8, 9, 10, 11]
    assert bodies(peeked) == ["4", "6", "7", "8", "9", "10", "far"]
    assert [each.state for each in peeked] == [
        ServiceBusMessageState.DEFERRED, *[ServiceBusMessageState.ACTIVE] * 5, ServiceBusMessageState.SCHEDULED,
    ]
    async with queue.dead_letters() as receiver:
        (message,) = await receive(receiver, 1)
        assert (str(message), message.dead_letter_reason, message.message_id) == ("5", "why", "id-5")
        await receiver.complete_message(message)
    await queue.send("next")
    async with queue.receiver() as receiver:
        (message,) = await receiver.receive_deferred_messages(4)
        assert (str(message), message.message_id) == ("4", "id-4")
        await receiver.complete_message(message)
        messages = await receive(receiver, 6)
        assert numbers(messages) == [6, 7, 8, 9, 10, 12]
        assert [each.application_properties[b"index"] for each in messages[:-1]] == [6, 7, 8, 9, 10]
        await complete(receiver, messages)
        await nothing(receiver)
    await queue.cancel(scheduled)


async def test_s73_what_came_due_while_it_was_down_comes_at_the_start(queue, connect, broker):
    due = soon(6)
    (number,) = await queue.schedule(due, "due")
    await asyncio.to_thread(broker.kill)
    # Nobody is there to wait on: the clock is the condition.
    while soon(0) < due:
        await asyncio.sleep(0.1)
    await asyncio.to_thread(broker.start)
    async with queue.through(connect()).receiver() as receiver:
        (message,) = await receive(receiver, 1)
        assert (str(message), message.sequence_number) == ("due", number + 1)
        await receiver.complete_message(message)


async def test_s74_open_links_recover(queue, broker):
    async with queue.sender() as sender, queue.receiver() as receiver:
        await sender.send_messages(ServiceBusMessage("before"))
        await complete(receiver, await receive(receiver, 1))
        await restart(broker, broker.kill)
        await sender.send_messages(ServiceBusMessage("after"))
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["after"]
        await complete(receiver, messages)
        await nothing(receiver)


async def test_s75_a_stop_is_orderly_and_counts_survive(queue, connect, broker):
    async with queue.sender() as sender, queue.receiver() as receiver:
        await sender.send_messages(ServiceBusMessage("counted"))
        (message,) = await receive(receiver, 1)
        await receiver.abandon_message(message)
        began = asyncio.get_running_loop().time()
        assert await asyncio.to_thread(broker.stop) == 0
        assert asyncio.get_running_loop().time() - began <= 10
        await asyncio.to_thread(broker.start)
    async with queue.through(connect()).receiver() as receiver:
        (message,) = await receive(receiver, 1)
        assert (str(message), message.delivery_count) == ("counted", 1)
        await receiver.complete_message(message)


async def test_s308_links_recover_from_a_stop_in_good_order(queue, broker):
    async with queue.sender() as sender, queue.receiver() as receiver:
        await sender.send_messages(ServiceBusMessage("before"))
        await complete(receiver, await receive(receiver, 1))
        await restart(broker, broker.stop)
        await sender.send_messages(ServiceBusMessage("after"))
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["after"]
        await complete(receiver, messages)
        await nothing(receiver)
