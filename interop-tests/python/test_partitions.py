"""S211 to S216: partitioned entities."""

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.exceptions import ServiceBusError

from conftest import Queue, bodies, complete, nothing, numbers, of, receive, soon

# The partition of a message is the topmost 16 bits of its number.
PARTITION = 48
PLACE = (1 << PARTITION) - 1


def keyed(key: str, body: str, **kwargs) -> ServiceBusMessage:
    return ServiceBusMessage(body, partition_key=key, **kwargs)


def partition_of(messages) -> int:
    """The partition of all these messages."""
    (partition,) = {number >> PARTITION for number in numbers(messages)}
    assert 0 <= partition < 16
    return partition


def places(messages) -> list[int]:
    return [number & PLACE for number in numbers(messages)]


async def assert_keys_kept(receiver, keys: str, count: int) -> None:
    """Receives `count` messages of each key: each key's are of one partition, and in order there; numbers have no gap."""
    messages = await receive(receiver, count * len(keys))
    by_partition: dict[int, list] = {}
    for key in keys:
        own = [each for each in messages if each.partition_key == key]
        assert bodies(own) == [f"{key}{index}" for index in range(count)]
        assert places(own) == sorted(places(own))
        by_partition.setdefault(partition_of(own), []).extend(own)
    for own in by_partition.values():
        assert sorted(places(own)) == list(range(1, len(own) + 1))
    await complete(receiver, messages)
    await nothing(receiver)


async def test_s211_a_key_has_a_partition(queue):
    await queue.send(*(keyed(key, f"{key}{index}") for index in range(5) for key in "kj"))
    async with queue.receiver() as receiver:
        await assert_keys_kept(receiver, "kj", 5)


async def test_s212_a_session_has_a_partition(queue):
    names = "abcde"
    await queue.send(*(message for step in "123" for name in names for message in of(name, step)))
    for name in names:
        async with queue.session(name) as receiver:
            messages = await receive(receiver, 3)
            assert bodies(messages) == ["1", "2", "3"]
            partition_of(messages)
            assert places(messages) == sorted(places(messages))
            await complete(receiver, messages)
    with pytest.raises(ValueError):
        keyed("y", "of two", session_id="x")
    await queue.send(keyed("x", "of one", session_id="x"))
    assert await queue.sessions() == ["x"]


async def test_s213_numbers_of_any_partition_work(queue):
    async with queue.sender() as sender, queue.receiver() as receiver:
        for index in range(100):
            await sender.send_messages(ServiceBusMessage(f"{index}"))
        peeked = await queue.peek(max_message_count=250)
        assert sorted(bodies(peeked), key=int) == [f"{index}" for index in range(100)]
        paged = []
        while page := await receiver.peek_messages(max_message_count=30):
            paged += page
        assert numbers(paged) == numbers(peeked)
        messages = await receive(receiver, 100)
        assert sorted(numbers(messages)) == numbers(peeked)
        partitions = {number >> PARTITION for number in numbers(messages)}
        assert len(partitions) >= 2 and partitions <= set(range(16))
        # One of every partition each way.
        samples = {each.sequence_number >> PARTITION: each for each in messages}
        for each in samples.values():
            await receiver.defer_message(each)
        deferred = await receiver.receive_deferred_messages([each.sequence_number for each in samples.values()])
        assert sorted(bodies(deferred)) == sorted(bodies(samples.values()))
        assert {each.state for each in deferred} == {ServiceBusMessageState.DEFERRED}
        for each in deferred:
            await receiver.dead_letter_message(each)
        await complete(receiver, [each for each in messages if samples[each.sequence_number >> PARTITION] is not each])
        await nothing(receiver)
        dead = await queue.take_dead(len(samples))
        assert sorted(numbers(dead)) == sorted(numbers(samples.values()))
        scheduled = await sender.schedule_messages([ServiceBusMessage(f"{index}") for index in range(20)], soon(3600))
        assert len(set(scheduled)) == 20
        assert sorted(scheduled) == numbers(await queue.peek())
        await sender.cancel_scheduled_messages(scheduled)
        assert await queue.left() == []


async def test_s214_a_duplicate_has_the_same_key(queue):
    await queue.send(
        ServiceBusMessage("1", message_id="1"), ServiceBusMessage("1", message_id="1"),
        keyed("k", "2k", message_id="2"), keyed("k", "2k", message_id="2"), keyed("j", "2j", message_id="2"),
    )
    assert sorted(bodies(await queue.take(3))) == ["1", "2j", "2k"]


async def test_s215_a_batch_may_have_a_key(queue):
    await queue.send_batch(*(keyed("k", f"{index}") for index in range(10)))
    messages = await queue.take(10)
    assert bodies(messages) == [f"{index}" for index in range(10)]
    assert {each.partition_key for each in messages} == {"k"}
    partition_of(messages)
    assert places(messages) == list(range(1, 11))


async def test_s472_a_batch_is_of_one_partition(queue, client):
    detecting = Queue(client, "s472b")
    with pytest.raises(ServiceBusError, match="distinct SessionId or PartitionKey"):
        await queue.send_batch(keyed("k", "1"), keyed("j", "2"))
    with pytest.raises(ServiceBusError, match="distinct SessionId, PartitionKey, or MessageId"):
        await detecting.send_batch(ServiceBusMessage("1", message_id="1"), ServiceBusMessage("2", message_id="2"))
    for each in (queue, detecting):
        await each.send_batch(keyed("k", "1", message_id="1"), keyed("k", "2", message_id="2"))
        assert bodies(await each.take(2)) == ["1", "2"]


async def test_s216_a_subscription_is_partitioned_as_its_topic(topic):
    await topic.send(*(keyed(key, f"{key}{index}") for index in range(5) for key in "kj"))
    async with topic.subscription("a").receiver() as receiver:
        await assert_keys_kept(receiver, "kj", 5)
