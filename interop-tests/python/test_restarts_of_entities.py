"""S138, S139, S158, S159, S188, S204, S217: a killed broker's sessions, topics, forwards, known ids and partitions."""

import asyncio

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.exceptions import ServiceBusConnectionError, ServiceBusError, SessionLockLostError

from conftest import Queue, bodies, complete, counts, nothing, numbers, of, receive, soon
from test_restarts import restart

pytestmark = [pytest.mark.restart]


async def send_through_kills(entity, connect, broker, count: int, kills: int) -> tuple[list[str], set[str]]:
    """Sends `count` messages one by one while the broker is killed and started again, several times.

    Returns what was acknowledged, and what may or may not have been taken: the SDK was told of a lost connection.
    """
    acknowledged, unknown = [], set()
    # A retry of the SDK's own could send a message twice.
    through = entity.through(connect(retry_total=0))
    halfway, up = asyncio.Event(), asyncio.Event()
    up.set()

    async def send() -> None:
        sender = through.sender()
        for index in range(count):
            if index % (count // (kills + 1)) == count // (kills + 1) // 2:
                halfway.set()
            try:
                await sender.send_messages(ServiceBusMessage(f"{index}"))
                acknowledged.append(f"{index}")
            except ServiceBusError:
                unknown.add(f"{index}")
                await sender.close()
                # However long the broker takes to come back, one message is all that it costs.
                await up.wait()
                sender = through.sender()
        await sender.close()

    sending = asyncio.create_task(send())
    for _ in range(kills):
        await halfway.wait()
        halfway.clear()
        up.clear()
        await restart(broker, broker.kill)
        up.set()
    await sending
    assert len(acknowledged) >= count // 2
    return acknowledged, unknown


async def taken(queue, least: int) -> list:
    """All that is there, at least so many messages, which are gone afterwards."""
    async with queue.receiver() as receiver:
        found = await receive(receiver, least)
        await complete(receiver, found)
        while messages := await receiver.receive_messages(max_message_count=100, max_wait_time=2):
            await complete(receiver, messages)
            found += messages
    return found


def assert_all_once(found: list[str], acknowledged: list[str], unknown: set[str]) -> None:
    assert sorted(found, key=int) == sorted(set(found), key=int)
    assert set(acknowledged) <= set(found) <= set(acknowledged) | unknown


async def test_s138_sessions_survive_a_kill(queue, connect, broker):
    await queue.send(*of("x", "1", "2", "3", "4"), *of("z", "5"))
    async with queue.session("y") as receiver:
        await receiver.session.set_state(b"of y")
    receiver = queue.session("x")
    async with receiver:
        await receiver.session.set_state(b"of x")
        first, aside, _locked = await receive(receiver, 3)
        await receiver.complete_message(first)
        await receiver.defer_message(aside)
        await restart(broker, broker.kill)

    queue = queue.through(connect())
    assert await queue.sessions() == ["x", "y", "z"]
    await queue.send(*of("x", "6"))
    async with queue.session("x") as receiver:
        assert await receiver.session.get_state() == b"of x"
        messages = await receive(receiver, 3)
        assert (bodies(messages), numbers(messages)) == (["3", "4", "6"], [3, 4, 6])
        (aside,) = await receiver.receive_deferred_messages(2)
        assert (str(aside), aside.state) == ("2", ServiceBusMessageState.DEFERRED)
        await complete(receiver, [*messages, aside])
        await nothing(receiver)
    async with queue.session("y") as receiver:
        assert await receiver.session.get_state() == b"of y"
    async with queue.next_session(30) as receiver:
        assert receiver.session.session_id == "z"
        await complete(receiver, await receive(receiver, 1))


async def test_s139_a_session_receiver_says_that_it_is_lost(queue, connect, broker):
    await queue.send(*of("x", "1"))
    async with queue.session("x") as receiver:
        (message,) = await receive(receiver, 1)
        await restart(broker, broker.kill)
        # The SDK notices the lost connection at the first call, and never accepts a session again by itself.
        with pytest.raises((SessionLockLostError, ServiceBusConnectionError)):
            await receiver.complete_message(message)
        with pytest.raises((SessionLockLostError, ServiceBusConnectionError)):
            await receiver.receive_messages(max_wait_time=2)
    async with queue.through(connect()).session("x") as receiver:
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["1"]
        await complete(receiver, messages)


async def test_s158_subscriptions_survive_a_kill(topic, connect, broker):
    await topic.send(*(f"{index}" for index in range(1, 11)))
    a = topic.subscription("a")
    async with a.receiver() as receiver:
        messages = await receive(receiver, 5)
        await complete(receiver, messages[:3])
        await receiver.defer_message(messages[3])
        await receiver.dead_letter_message(messages[4], reason="why")
    (scheduled,) = await topic.schedule(soon(10), "scheduled")
    assert scheduled == 11
    await restart(broker, broker.kill)

    topic, a = topic.through(connect()), a.through(connect())
    async with a.receiver() as receiver:
        (aside,) = await receiver.receive_deferred_messages(4)
        assert str(aside) == "4"
        await receiver.complete_message(aside)
        messages = await receive(receiver, 6)
        assert bodies(messages) == ["6", "7", "8", "9", "10", "scheduled"]
        assert numbers(messages) == [6, 7, 8, 9, 10, 11]
        assert [each.enqueued_sequence_number for each in messages] == [6, 7, 8, 9, 10, 12]
        await complete(receiver, messages)
        await topic.send("next")
        (message,) = await receive(receiver, 1)
        assert (message.sequence_number, message.enqueued_sequence_number) == (12, 13)
        await receiver.complete_message(message)
        await nothing(receiver)
    (dead,) = await a.take_dead(1)
    assert (str(dead), dead.dead_letter_reason) == ("5", "why")


async def test_s159_a_topics_message_is_everywhere_or_nowhere(topic, connect, broker):
    acknowledged, unknown = await send_through_kills(topic, connect, broker, count=200, kills=3)
    at_a, at_b = [await taken(topic.subscription(name).through(connect()), len(acknowledged)) for name in "ab"]
    assert_all_once(bodies(at_a), acknowledged, unknown)
    assert bodies(at_a) == bodies(at_b)
    assert numbers(at_a) == numbers(at_b) == list(range(1, len(at_a) + 1))


async def test_s188_known_ids_survive_a_kill(queue, connect, broker):
    await queue.send(ServiceBusMessage("first", message_id="1"))
    await restart(broker, broker.kill)
    queue = queue.through(connect())
    await queue.send(ServiceBusMessage("again", message_id="1"), ServiceBusMessage("other", message_id="2"))
    messages = await queue.take(2)
    assert (bodies(messages), numbers(messages)) == (["first", "other"], [1, 2])


async def test_s204_a_forwarded_message_is_in_one_place(queue, connect, broker):
    acknowledged, unknown = await send_through_kills(queue, connect, broker, count=200, kills=3)
    found = await taken(Queue(connect(), f"{queue.name}b"), len(acknowledged))
    assert_all_once(bodies(found), acknowledged, unknown)
    assert numbers(found) == list(range(1, len(found) + 1))
    assert len({each.enqueued_sequence_number for each in found}) == len(found)


async def test_s217_partitions_survive_a_kill(queue, connect, broker):
    def keyed(steps) -> list[ServiceBusMessage]:
        return [ServiceBusMessage(f"{key} {step}", partition_key=f"{key}") for step in steps for key in range(10)]

    await queue.send(*keyed(range(5)))
    async with queue.receiver() as receiver:
        done = await receive(receiver, 10)
        await complete(receiver, done)
        before = await queue.peek()
        assert len(before) == 40
        await restart(broker, broker.kill)

    queue = queue.through(connect())
    assert (bodies(after := await queue.peek()), numbers(after)) == (bodies(before), numbers(before))
    await queue.send(*keyed([5]))
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 50)
        await complete(receiver, messages)
        await nothing(receiver)
    assert set(counts(messages)) == {0}
    for key in range(10):
        own = [each for each in done + messages if each.partition_key == f"{key}"]
        assert bodies(own) == [f"{key} {step}" for step in range(6)]
        assert len({number >> 48 for number in numbers(own)}) == 1
    for partition in {number >> 48 for number in numbers(done + messages)}:
        places = sorted(number & (1 << 48) - 1 for number in numbers(done + messages) if number >> 48 == partition)
        assert places == list(range(1, len(places) + 1))
