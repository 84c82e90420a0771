"""S309 to S313, S319 and S330: much at once."""

import random

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageSizeExceededError, ServiceBusQuotaExceededError

from conftest import bodies, complete, counts, message, nothing, numbers, receive, soon


async def filled(sender, size: int) -> tuple:
    """A batch that the SDK calls full, and what is in it."""
    batch = await sender.create_message_batch()
    content = []
    while True:
        each = f"{len(content):0{size}}"
        try:
            # Neither of the SDK's clients waits for anything in it.
            batch.add_message(ServiceBusMessage(each))
        except MessageSizeExceededError:
            return batch, content
        content.append(each)


async def test_s309_a_thousand_messages_are_unsettled_on_one_link(queue):
    async with queue.sender() as sender:
        for start in range(0, 1000, 250):
            await sender.send_messages([ServiceBusMessage(f"{n}") for n in range(start + 1, start + 251)])
    async with queue.receiver(prefetch_count=200) as receiver:
        messages = await receive(receiver, 1000)
        assert numbers(messages) == list(range(1, 1001))
        assert bodies(messages) == [f"{n}" for n in range(1, 1001)]
        random.Random(309).shuffle(messages)
        await complete(receiver, messages)
        await nothing(receiver)
    assert await queue.left() == []


async def test_s310_a_full_batch_goes_through(queue):
    for size, least in ((1000, 800), (10, 5000)):
        async with queue.sender() as sender:
            batch, content = await filled(sender, size)
            assert len(content) >= least
            await sender.send_messages(batch)
        async with queue.taker(prefetch_count=500) as receiver:
            assert bodies(await receive(receiver, len(content))) == content
            await nothing(receiver)


async def test_s311_messages_near_the_limit_and_beyond(queue):
    fits, too_large = "f" * 1_000_000, "t" * 1_100_000
    async with queue.sender() as sender:
        await sender.send_messages(ServiceBusMessage(fits))
        batch = await sender.create_message_batch()
        batch.add_message(ServiceBusMessage(fits))
        await sender.send_messages(batch)
        with pytest.raises(MessageSizeExceededError):
            (await sender.create_message_batch()).add_message(ServiceBusMessage(too_large))
        with pytest.raises(MessageSizeExceededError):
            await sender.send_messages(ServiceBusMessage(too_large))
    messages = await queue.take(2)
    assert bodies(messages) == [fits, fits]


async def test_s312_a_message_of_20_mib_comes_back(queue):
    body = random.Random(312).randbytes(20 << 20)
    async with queue.sender() as sender:
        await sender.send_messages(ServiceBusMessage(body))
    async with queue.receiver() as receiver:
        (received,) = await receive(receiver, 1)
        assert b"".join(received.body) == body
        await receiver.complete_message(received)
        await nothing(receiver)


async def test_s313_what_was_prefetched_and_not_taken_goes_to_the_next(queue):
    await queue.send_batch(*[f"{n}" for n in range(1, 301)])
    async with queue.receiver(prefetch_count=100) as receiver:
        first = await receive(receiver, 30)
        assert numbers(first) == list(range(1, 31))
        await complete(receiver, first)
    async with queue.receiver(prefetch_count=100) as receiver:
        rest = await receive(receiver, 270)
        assert numbers(rest) == list(range(31, 301))
        assert counts(rest) == [0] * 270
        await complete(receiver, rest)
        await nothing(receiver)


async def test_s319_the_iterator_gives_one_message_after_the_other(queue):
    await queue.send_batch(*[f"{n}" for n in range(1, 51)])
    seen = []
    # It ends when nothing has come for so long.
    async with queue.receiver(max_wait_time=15) as receiver:
        async for each in receiver:
            seen.append(str(each))
            await receiver.complete_message(each)
            if len(seen) == 50:
                await queue.send("51")
    assert seen == [f"{n}" for n in range(1, 52)]
    assert await queue.left() == []


async def test_s330_batches_and_schedules_are_refused_when_the_queue_is_full(queue, connect):
    body = "q" * (100 << 10)
    accepted = 0
    async with queue.through(connect(retry_total=0)).sender() as sender:
        with pytest.raises(ServiceBusQuotaExceededError):
            for _ in range(10):
                await sender.send_messages([message(body)] * 3)
                accepted += 3
        with pytest.raises(ServiceBusQuotaExceededError):
            for _ in range(10):
                await sender.schedule_messages(message(body), soon(3600))
                accepted += 1
    found = await peeked(queue)
    assert len(found) == accepted >= 9
    assert all(len(str(each)) == len(body) for each in found)


async def peeked(queue) -> list:
    """All that is there, in as many calls as it takes: an answer has its limits."""
    found = []
    async with queue.receiver() as receiver:
        while more := await receiver.peek_messages(max_message_count=100, sequence_number=found[-1].sequence_number + 1 if found else 1):
            found += more
    return found
