"""S41 to S44: time to live."""

from datetime import timedelta

from azure.servicebus import ServiceBusMessage

from conftest import bodies, complete, nothing, receive


def short(body: str, seconds: float = 1) -> ServiceBusMessage:
    return ServiceBusMessage(body, time_to_live=timedelta(seconds=seconds))


async def test_s41_an_expired_message_is_dropped(queue):
    await queue.send(short("gone"), "stays")
    async with queue.dead_letters() as dead, queue.receiver() as receiver:
        await nothing(dead, wait=2)
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["stays"]
        await complete(receiver, messages)
        await nothing(receiver)
        await nothing(dead)


async def test_s42_an_expired_message_is_dead_lettered(queue):
    await queue.send(short("expired"))
    async with queue.dead_letters() as dead, queue.receiver() as receiver:
        # The wait is on another queue, so that nobody takes the message before it expires.
        (message,) = await receive(dead, 1)
        assert str(message) == "expired"
        assert message.dead_letter_reason == "TTLExpiredException"
        assert message.dead_letter_error_description == "The message expired and was dead lettered."
        await dead.complete_message(message)
        await nothing(receiver)


async def test_s43_the_queues_time_to_live_is_the_longest(make_queue):
    longest = timedelta(seconds=8)
    queue = await make_queue(default_message_time_to_live=longest, dead_lettering_on_message_expiration=True)
    async with queue.sender() as sender, queue.receiver() as receiver:
        await sender.send_messages([ServiceBusMessage("without"), short("one hour", seconds=3600)])
        for message in await receive(receiver, 2):
            assert message.time_to_live == longest
            assert message.expires_at_utc == message.enqueued_time_utc + longest
            await receiver.complete_message(message)
        await sender.send_messages([ServiceBusMessage("without"), short("one hour", seconds=3600)])
    async with queue.dead_letters() as dead:
        messages = await receive(dead, 2)
        assert bodies(messages) == ["without", "one hour"]
        await complete(dead, messages)


async def test_s44_a_locked_message_may_be_completed_after_it_expired(queue):
    async with queue.sender() as sender, queue.receiver() as receiver:
        await sender.send_messages(short("just in time", seconds=5))
        (message,) = await receive(receiver, 1)
        await nothing(receiver, wait=6)
        await receiver.complete_message(message)
    assert await queue.left() == []
