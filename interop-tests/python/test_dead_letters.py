"""S38 to S40: the dead-letter queue is a queue."""

from datetime import timedelta

import pytest
from azure.servicebus.exceptions import ServiceBusError

from conftest import Queue, bodies, complete, nothing, receive


async def dead_letter(queue, *contents):
    """Sends the messages and dead-letters them."""
    await queue.send(*contents)
    async with queue.receiver() as receiver:
        for message in await receive(receiver, len(contents)):
            await receiver.dead_letter_message(message, reason="test")


async def test_s38_dead_letters_can_be_peeked_received_and_settled(queue):
    await dead_letter(queue, "1", "2", "3")
    async with queue.dead_letters() as receiver:
        for _ in range(2):
            assert bodies(await receiver.peek_messages(max_message_count=10, sequence_number=1)) == ["1", "2", "3"]
        one, two, three = await receive(receiver, 3)
        await receiver.complete_message(one)
        await receiver.abandon_message(two)
        await receiver.defer_message(three)
        (again,) = await receive(receiver, 1)
        assert (str(again), again.delivery_count) == ("2", two.delivery_count)
        await receiver.complete_message(again)
        await nothing(receiver)
        (deferred,) = await receiver.receive_deferred_messages([three.sequence_number])
        assert str(deferred) == "3"
        await receiver.complete_message(deferred)
        assert await receiver.peek_messages(max_message_count=10, sequence_number=1) == []


async def test_s39_nobody_sends_to_the_dead_letter_queue(queue, client):
    with pytest.raises(ServiceBusError):
        await Queue(client, f"{queue.name}/$DeadLetterQueue").send("no")


async def test_s40_dead_letters_stay(make_queue):
    # Long enough for the message to be received, on a busy machine too.
    queue = await make_queue(default_message_time_to_live=timedelta(seconds=10), dead_lettering_on_message_expiration=True)
    await dead_letter(queue, "old")
    async with queue.receiver() as receiver:
        await nothing(receiver, wait=12)
    async with queue.dead_letters() as receiver:
        for _ in range(12):
            (message,) = await receive(receiver, 1)
            await receiver.abandon_message(message)
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["old"]
        await complete(receiver, messages)
