"""S191 to S203: messages and dead letters that go on to another entity."""

from datetime import timedelta

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import ServiceBusError

from conftest import Queue, Topic, bodies, complete, nothing, numbers, of, receive, soon

MILLISECOND = timedelta(milliseconds=1)
DEAD_LETTERS = {"sub_queue": ServiceBusSubQueue.DEAD_LETTER}


@pytest.fixture
def follower(client, name):
    """The scenario's further queues: `follower("b")` is `s191b`."""
    return lambda suffix="b": Queue(client, name + suffix)


def enqueued(messages) -> list[int]:
    return [each.enqueued_sequence_number for each in messages]


def of_n(n: int) -> ServiceBusMessage:
    return ServiceBusMessage(f"{n}", application_properties={"n": n})


async def test_s191_a_queue_forwards(queue, follower):
    last = follower()
    await last.send("1", "2")
    await queue.send("3", "4")
    await queue.send_batch("5")
    messages = await last.take(5)
    assert (bodies(messages), numbers(messages)) == (["1", "2", "3", "4", "5"], [1, 2, 3, 4, 5])
    assert enqueued(messages[2:]) == [1, 2, 3]


async def test_s192_a_chain_keeps_the_first_number(queue, follower):
    last = follower("c")
    await last.send("1")
    await follower("b").send("2")
    await queue.send("3")
    messages = await last.take(3)
    assert (bodies(messages), numbers(messages)) == (["1", "2", "3"], [1, 2, 3])
    assert enqueued(messages[1:]) == [1, 1]


async def test_s193_a_message_goes_four_times_at_most(queue, follower):
    await queue.send("too far")
    await follower("b").send("far enough")
    assert bodies(await follower("f").take(1)) == ["far enough"]
    (message,) = await follower("e").take(1, **DEAD_LETTERS)
    assert (str(message), message.dead_letter_reason) == ("too far", "MaxTransferHopCountExceeded")


async def test_s194_nobody_receives_from_a_queue_that_forwards(name, connect):
    queue = Queue(connect(retry_total=0), name)
    with pytest.raises(ServiceBusError):
        async with queue.receiver() as receiver:
            await receiver.receive_messages(max_wait_time=1)
    with pytest.raises(ServiceBusError):
        await queue.peek()
    await queue.send("1")
    assert bodies(await Queue(queue.client, f"{name}b").take(1)) == ["1"]


async def test_s195_what_cannot_be_forwarded_is_set_aside(queue):
    await queue.send("1")
    (message,) = await queue.take(1, **DEAD_LETTERS)
    assert str(message) == "1"
    assert message.dead_letter_reason


async def test_s196_what_does_not_fit_is_set_aside(queue, follower):
    sent = [f"{index}" for index in range(15)]
    await queue.send(*(f"{body:<102400}" for body in sent))
    fitting = [each.strip() for each in await follower().left()]
    assert 5 <= len(fitting) < 15
    aside = await queue.take(15 - len(fitting), **DEAD_LETTERS)
    assert all(each.dead_letter_reason for each in aside)
    assert bodies(await follower().take(len(fitting))) == [f"{body:<102400}" for body in fitting]
    assert sorted(fitting + [body.strip() for body in bodies(aside)], key=int) == sent


async def test_s197_a_subscription_forwards(topic, follower):
    await topic.send(*(of_n(n) for n in (1, 2, 3)))
    messages = await follower().take(2)
    assert (bodies(messages), numbers(messages), enqueued(messages)) == (["2", "3"], [1, 2], [2, 3])


async def test_s198_a_queue_forwards_to_a_topic(queue, client):
    await queue.send(*(ServiceBusMessage(color, application_properties={"color": color}) for color in ("red", "blue")))
    topic = Topic(client, "s198b")
    assert bodies(await topic.subscription("all").take(2)) == ["red", "blue"]
    assert bodies(await topic.subscription("red").take(1)) == ["red"]


async def test_s199_dead_letters_go_on(queue, follower):
    last = follower()
    await last.send("before")
    await queue.send(ServiceBusMessage("expired", time_to_live=timedelta(seconds=1)))
    async with last.receiver() as receiver:
        messages = await receive(receiver, 2)
        await queue.send("dead", "abandoned")
        async with queue.receiver() as source:
            dead, abandoned = await receive(source, 2)
            await source.dead_letter_message(dead, reason="why", error_description="because")
            await source.abandon_message(abandoned)
        messages += await receive(receiver, 2)
        await complete(receiver, messages)
        await nothing(receiver)
    assert (bodies(messages), numbers(messages)) == (["before", "expired", "dead", "abandoned"], [1, 2, 3, 4])
    assert [each.dead_letter_source for each in messages] == [None, "s199", "s199", "s199"]
    assert [each.dead_letter_reason for each in messages] == [None, "TTLExpiredException", "why", "MaxDeliveryCountExceeded"]
    assert messages[2].dead_letter_error_description == "because"
    assert await queue.left() == []


async def test_s200_dead_letters_of_a_subscription_go_on(topic, follower):
    await topic.send("bad")
    a = topic.subscription("a")
    async with a.receiver() as receiver:
        (message,) = await receive(receiver, 1)
        await receiver.dead_letter_message(message, reason="why")
    (message,) = await follower().take(1)
    assert (str(message), message.dead_letter_reason) == ("bad", "why")
    assert "s200" in message.dead_letter_source


async def test_s201_scheduled_messages_are_forwarded_when_they_are_due(queue, follower):
    due = soon(12)
    (kept,) = await queue.schedule(due, "kept")
    (cancelled,) = await queue.schedule(due, "cancelled")
    await queue.cancel(cancelled)
    assert kept < cancelled
    async with follower().receiver() as receiver:
        messages = await receive(receiver, 1)
        assert soon(0) >= due - MILLISECOND
        assert (bodies(messages), numbers(messages)) == (["kept"], [1])
        await complete(receiver, messages)
        await nothing(receiver, wait=2)


async def test_s202_a_queue_forwards_to_sessions(queue, follower):
    await queue.send(*of("x", "1"), "2")
    last = follower()
    async with last.session("x") as receiver:
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["1"]
        await complete(receiver, messages)
    (message,) = await queue.take(1, **DEAD_LETTERS)
    assert (str(message), message.dead_letter_reason) == ("2", "Session ID is null.")


async def test_s470_what_cannot_be_forwarded_goes_to_the_collector(queue, follower):
    await queue.send("1")
    (message,) = await follower().take(1)
    assert (str(message), message.dead_letter_reason) == ("1", "TransferDestinationRefused")
    assert message.dead_letter_source == "s470"


async def test_s471_a_dead_letter_waits_for_room(queue, follower, suite_administrator):
    async def waiting() -> int:
        return (await suite_administrator.get_queue_runtime_properties("s471")).dead_letter_message_count

    last, large = follower(), "x" * 102_400
    with pytest.raises(ServiceBusError):
        while True:
            await last.send(large)
    await queue.send(f"{'dead':<102400}")
    async with queue.receiver() as receiver:
        (message,) = await receive(receiver, 1)
        await receiver.dead_letter_message(message, reason="why")
    assert await waiting() == 1
    async with last.receiver() as receiver:
        before, found = 0, None
        while found is None:
            (message,) = await receive(receiver, 1)
            await complete(receiver, [message])
            if str(message) == large:
                before += 1
            else:
                found = message
    assert before >= 5
    assert (str(found).strip(), found.dead_letter_reason, found.dead_letter_source) == ("dead", "why", "s471")
    assert await waiting() == 0


async def test_s475_what_an_action_sets_holds_at_the_target(topic, follower):
    await topic.send("1", "2")
    last = follower()
    await last.send(ServiceBusMessage("3", message_id="one"))
    (message,) = await last.take(1)
    assert (str(message), message.message_id) == ("1", "one")
    assert await last.left() == []


async def test_s203_duplicates_are_told_where_a_message_goes(queue, follower):
    last = follower()
    await queue.send(*(ServiceBusMessage(f"try {attempt}", message_id="1") for attempt in range(2)))
    await last.send(ServiceBusMessage("direct", message_id="1"))
    assert bodies(await last.take(1)) == ["try 0"]
