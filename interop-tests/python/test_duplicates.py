"""S181 to S187 and S189: duplicate detection."""

import uuid

from azure.servicebus import ServiceBusMessage

from conftest import bodies, complete, nothing, numbers, receive, soon


def known(id, body: str | None = None, **kwargs) -> ServiceBusMessage:
    return ServiceBusMessage(body or str(id), message_id=id, **kwargs)


async def test_s181_an_id_is_taken_once(queue):
    await queue.send(*(known("1", f"try {attempt}") for attempt in range(5)), known("2"))
    messages = await queue.take(2)
    assert (bodies(messages), numbers(messages)) == (["try 0", "2"], [1, 2])


async def test_s182_an_id_is_forgotten_after_the_window(queue):
    async with queue.receiver() as receiver:
        await queue.send(known("1", "first"))
        until = soon(20)
        await complete(receiver, await receive(receiver, 1))
        await nothing(receiver, wait=1)
        await queue.send(known("1", "second"))
        while (left := (until - soon(0)).total_seconds()) > -2:
            await nothing(receiver, wait=max(left + 2, 1))
        await queue.send(known("1", "third"))
        messages = await receive(receiver, 1)
        assert (bodies(messages), numbers(messages)) == (["third"], [2])
        await complete(receiver, messages)
        await nothing(receiver)


async def test_s183_a_batch_may_repeat_itself(queue):
    await queue.send_batch(known("1"), known("2"), known("1"), known("3"), known("3"))
    messages = await queue.take(3)
    assert (bodies(messages), numbers(messages)) == (["1", "2", "3"], [1, 2, 3])


async def test_s184_an_id_outlives_its_message(queue):
    async with queue.receiver() as receiver:
        await queue.send(*(known(id) for id in "123"))
        done, aside, dead = await receive(receiver, 3)
        await receiver.complete_message(done)
        await receiver.defer_message(aside)
        await receiver.dead_letter_message(dead)
        await queue.send(*(known(id, "again") for id in "123"))
        await nothing(receiver)
        (aside,) = await receiver.receive_deferred_messages(aside.sequence_number)
        assert str(aside) == "2"
        await receiver.complete_message(aside)
    assert bodies(await queue.take_dead(1)) == ["3"]


async def test_s185_without_an_id_nothing_is_a_duplicate(queue):
    await queue.send("1", "2", "3")
    id = uuid.uuid4()
    await queue.send(*(known(id, f"uuid {attempt}") for attempt in range(5)))
    assert bodies(await queue.take(4)) == ["1", "2", "3", "uuid 0"]


async def test_s186_a_scheduled_message_has_its_id_from_the_beginning(queue):
    await queue.schedule(soon(10), known("1", "scheduled"))
    await queue.send(known("1", "sent"))
    messages = await queue.take(1)
    assert bodies(messages) == ["scheduled"]
    # Its second number, at its activation: the duplicate took none.
    assert numbers(messages) == [2]


async def test_s187_a_topic_tells_duplicates(topic):
    await topic.send(known("1"), known("1", "again"), known("2"))
    for name in "ab":
        messages = await topic.subscription(name).take(2)
        assert (bodies(messages), numbers(messages)) == (["1", "2"], [1, 2])
        assert [each.enqueued_sequence_number for each in messages] == [1, 2]


async def test_s189_sessions_share_the_ids(queue):
    await queue.send(known("1", "first", session_id="x"), known("1", "second", session_id="y"))
    assert await queue.sessions() == ["x"]
    async with queue.session("x") as receiver:
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["first"]
        await complete(receiver, messages)


async def test_s476_a_duplicate_that_is_scheduled_has_a_number(queue):
    due = soon(6)
    first = await queue.schedule(due, ServiceBusMessage("1", message_id="same"))
    second = await queue.schedule(due, ServiceBusMessage("2", message_id="same"))
    assert 0 < first[0] < second[0]
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["1"]
        await complete(receiver, messages)
        await nothing(receiver)
