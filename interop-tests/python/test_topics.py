"""S141 to S157: topics and subscriptions. (Who can name a subscription as a target, S149's first half, is a generic client.)"""

import asyncio
import os
import time
from datetime import timedelta

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.exceptions import (
    MessageNotFoundError,
    MessagingEntityDisabledError,
    ServiceBusError,
    ServiceBusQuotaExceededError,
)

from conftest import Queue, Subscription, Topic, bodies, complete, counts, not_there, nothing, numbers, of, receive, soon

MILLISECOND = timedelta(milliseconds=1)


def numbered(n: int, **properties) -> ServiceBusMessage:
    return ServiceBusMessage(f"{n}", application_properties={"n": n, **properties})


def enqueued(messages) -> list[int]:
    return [each.enqueued_sequence_number for each in messages]


async def test_s141_every_subscription_has_its_own(topic):
    began = soon(-1)
    await topic.send(*(numbered(n) for n in range(1, 6)))
    for name, expected in (("a", [1, 2, 3, 4, 5]), ("b", [1, 2, 3, 4, 5]), ("odd", [1, 3, 5])):
        messages = await topic.subscription(name).take(len(expected))
        assert bodies(messages) == [f"{n}" for n in expected]
        assert numbers(messages) == list(range(1, len(expected) + 1))
        assert enqueued(messages) == expected
        assert [each.application_properties[b"n"] for each in messages] == expected
        assert all(began <= each.enqueued_time_utc <= soon(1) for each in messages)


async def test_s142_a_topic_needs_no_subscription(topic):
    await topic.send("1", "2")
    await topic.send_batch("3", "4", "5")


async def test_s143_subscriptions_settle_apart(topic, connect):
    await topic.send("1", "2", "3")
    a, b = topic.subscription("a"), topic.subscription("b").through(connect())
    async with a.receiver() as at_a, b.receiver() as at_b:
        first, second, third = await receive(at_a, 3)
        await at_a.complete_message(first)
        await at_a.defer_message(second)
        await at_a.abandon_message(third)
        (again,) = await receive(at_a, 1)
        assert (str(again), again.delivery_count) == ("3", 1)
        others = await receive(at_b, 3)
        assert (bodies(others), counts(others)) == (["1", "2", "3"], [0, 0, 0])
        assert not {each.lock_token for each in others} & {each.lock_token for each in (first, second, third, again)}
        (deferred,) = await at_a.receive_deferred_messages(second.sequence_number)
        assert (str(deferred), deferred.state) == ("2", ServiceBusMessageState.DEFERRED)
        with pytest.raises(MessageNotFoundError):
            await at_b.receive_deferred_messages(second.sequence_number)
        await complete(at_a, [again, deferred])
        await complete(at_b, others)
    assert await a.left() == [] and await b.left() == []


async def test_s144_a_subscription_has_its_dead_letters(topic):
    await topic.send(ServiceBusMessage("bad", application_properties={"kept": 1}))
    a, b = topic.subscription("a"), topic.subscription("b")
    async with a.receiver() as receiver:
        (message,) = await receive(receiver, 1)
        await receiver.dead_letter_message(message, reason="why", error_description="because")
        await nothing(receiver)
    (message,) = await b.take(1)
    assert (str(message), message.application_properties) == ("bad", {b"kept": 1})
    (message,) = await a.take_dead(1)
    assert (message.dead_letter_reason, message.dead_letter_error_description) == ("why", "because")
    assert message.application_properties[b"kept"] == 1
    await b.take_dead(0)


async def test_s145_a_subscription_may_have_sessions(topic, connect):
    await topic.send(*of("x", "1"), *of("y", "2"), *of("x", "3"))
    messages = await topic.subscription("plain").take(3)
    assert [(str(each), each.session_id) for each in messages] == [("1", "x"), ("2", "y"), ("3", "x")]
    s = topic.subscription("s")
    assert await s.sessions() == ["x", "y"]
    async with s.session("x") as x, s.through(connect()).next_session(30) as y:
        assert y.session.session_id == "y"
        await x.session.set_state(b"state")
        assert (await x.session.get_state(), await y.session.get_state()) == (b"state", None)
        until = x.session.locked_until_utc
        assert await x.session.renew_lock() > until
        for receiver, expected in ((x, ["1", "3"]), (y, ["2"])):
            messages = await receive(receiver, len(expected))
            assert bodies(messages) == expected
            await complete(receiver, messages)
    assert await s.sessions() == ["x"]
    async with s.session("x") as x:
        assert await x.session.get_state() == b"state"
        await nothing(x)


async def test_s146_without_a_session_it_is_a_dead_letter(topic):
    await topic.send("nobody's")
    assert bodies(await topic.subscription("plain").take(1)) == ["nobody's"]
    (message,) = await topic.subscription("s").take_dead(1)
    assert (str(message), message.dead_letter_reason) == ("nobody's", "Session ID is null.")


async def test_s147_a_topic_schedules(topic):
    due = soon(20)
    (number,) = await topic.schedule(due, "by request")
    assert number == 1
    await topic.send(ServiceBusMessage("by property", scheduled_enqueue_time_utc=due))
    subscriptions = [topic.subscription("a"), topic.subscription("b")]
    for each in subscriptions:
        assert await each.left() == []
    for each in subscriptions:
        async with each.receiver() as receiver:
            messages = await receive(receiver, 2)
            assert soon(0) >= due - MILLISECOND
            assert sorted(bodies(messages)) == ["by property", "by request"]
            assert all(abs(message.scheduled_enqueue_time_utc - due) <= MILLISECOND for message in messages)
            await complete(receiver, messages)
            await nothing(receiver)


async def test_s148_a_topic_cancels(topic):
    due = soon(12)
    first, *others = await topic.schedule(due, "1", "2", "3")
    await topic.cancel(first)
    await topic.cancel(others)
    with pytest.raises(MessageNotFoundError):
        await topic.cancel(first)
    async with topic.subscription("a").receiver() as receiver:
        await nothing(receiver, wait=max(1.0, (due - soon(-1)).total_seconds()))


async def test_s149_nobody_receives_from_a_topic(name, connect):
    client = connect(retry_total=0)
    began = time.monotonic()
    with pytest.raises(ServiceBusError):
        async with Queue(client, name).receiver() as receiver:
            await receiver.receive_messages(max_wait_time=1)
    with pytest.raises(ServiceBusError):
        await Queue(client, f"{name}/Subscriptions/a").send("no")
    assert time.monotonic() - began <= 30
    assert await Subscription(client, name, "a").left() == []


@pytest.mark.parametrize(("topic_name", "subscription"), [("s150", "no-such"), ("no-such", "a")])
async def test_s150_an_unknown_subscription_is_told(client, topic_name, subscription):
    with not_there():
        async with Subscription(client, topic_name, subscription).receiver() as receiver:
            await receiver.receive_messages(max_wait_time=1)


async def test_s151_names_do_not_depend_on_case(client, connect):
    await Topic(client, "S151").send("1")
    assert bodies(await Subscription(connect(), "s151", "mIXED").take(1)) == ["1"]


async def test_s152_locks_expire_at_a_subscription(topic):
    await topic.send("slow")
    a = topic.subscription("a")
    async with a.receiver() as receiver:
        (first,) = await receive(receiver, 1)
        until = first.locked_until_utc
        renewed = await receiver.renew_message_lock(first)
        assert renewed > until
        (second,) = await receive(receiver, 1)
        assert soon(0) >= renewed - MILLISECOND
        assert (second.delivery_count, second.sequence_number) == (1, 1)
        await nothing(receiver, wait=6)
    (message,) = await a.take_dead(1)
    assert message.dead_letter_reason == "MaxDeliveryCountExceeded"
    messages = await topic.subscription("b").take(1)
    assert counts(messages) == [0]


async def test_s153_the_shorter_time_to_live_counts(topic):
    began = time.monotonic()
    await topic.send("short-lived")
    short, keep, drop = (topic.subscription(name) for name in ("short", "keep", "drop"))
    async with short.dead_letters() as at_short, keep.dead_letters() as at_keep, drop.dead_letters() as at_drop:
        for receiver, seconds in ((at_short, 1), (at_keep, 3)):
            (message,) = await receive(receiver, 1)
            # The broker's clock began a little later than ours; the message was on its way.
            assert time.monotonic() - began >= seconds - 0.1
            assert message.dead_letter_reason == "TTLExpiredException"
            await receiver.complete_message(message)
        async with drop.receiver() as receiver:
            await nothing(receiver)
        await nothing(at_drop)


async def test_s154_subscriptions_share_bytes_and_nothing_else(topic):
    large = os.urandom(200 * 1024)
    await topic.send_batch(*(f"{index}" for index in range(100)))
    await topic.send(large)
    for name in "abc":
        async with topic.subscription(name).receiver() as receiver:
            messages = await receive(receiver, 101)
            assert numbers(messages) == list(range(1, 102))
            assert bodies(messages[:-1]) == [f"{index}" for index in range(100)]
            assert b"".join(messages[-1].body) == large
            await complete(receiver, messages)


async def test_s155_a_topic_and_a_subscription_can_be_disabled(topic, client):
    with pytest.raises(MessagingEntityDisabledError):
        await topic.send("no")
    await topic.subscription("a").take(0)
    other = Topic(client, "s155b")
    await other.send("1")
    assert bodies(await other.subscription("on").take(1)) == ["1"]
    with pytest.raises(MessagingEntityDisabledError):
        await other.subscription("off").take(1)


async def test_s156_a_full_topic_says_so(topic):
    sent = 0
    with pytest.raises(ServiceBusQuotaExceededError):
        for index in range(30):
            await topic.send(f"{index:<102400}")
            sent += 1
    assert sent >= 4
    for name in "ab":
        messages = await topic.subscription(name).take(sent)
        assert [body.strip() for body in bodies(messages)] == [f"{index}" for index in range(sent)]
    deadline = time.monotonic() + 30
    while True:
        try:
            await topic.send("again")
            break
        except ServiceBusQuotaExceededError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
    for name in "ab":
        assert bodies(await topic.subscription(name).take(1)) == ["again"]


async def test_s157_a_subscription_is_peeked(topic):
    await topic.send(*of("x", "1", "2", "3"), *of("y", "4"))
    a = topic.subscription("a")
    async with a.receiver() as receiver:
        aside, *locked = await receive(receiver, 2)
        await receiver.defer_message(aside)
        peeked = await receiver.peek_messages(max_message_count=10, sequence_number=1)
        assert (bodies(peeked), numbers(peeked)) == (["1", "2", "3", "4"], [1, 2, 3, 4])
        states = ServiceBusMessageState
        assert [each.state for each in peeked] == [states.DEFERRED, states.ACTIVE, states.ACTIVE, states.ACTIVE]
        await complete(receiver, locked)
    s = topic.subscription("s")
    async with s.session("x") as receiver:
        assert bodies(await receiver.peek_messages(max_message_count=10, sequence_number=1)) == ["1", "2", "3"]
    assert await s.sessions() == ["x", "y"]
