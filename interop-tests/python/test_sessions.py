"""S101 to S136: message sessions. (S107, S114 and S137 are for clients that the SDK is not.)"""

import asyncio
import time
from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusMessageState, ServiceBusReceiveMode
from azure.servicebus.exceptions import (
    MessageNotFoundError,
    OperationTimeoutError,
    ServiceBusError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

import both
from conftest import bodies, complete, counts, nothing, numbers, of, receive, soon

# The SDK takes a refused accept up three times more, and so would wait four times for a next session.
ONCE = {"retry_total": 0}
# The lock of those sessions that must be held on a busy machine, seconds.
LOCK = 12
# What is shown of a time is whole milliseconds.
MILLISECOND = timedelta(milliseconds=1)


@pytest.fixture
def other(queue, connect):
    """The same queue through another client, which gives up at once."""
    return queue.through(connect(**ONCE))


def ids(messages) -> list[str]:
    return [each.session_id for each in messages]


async def refused(receiver, error=ServiceBusError) -> str:
    """Asserts that the receiver does not open, and that this is the broker's answer; returns the error's text."""
    began = time.monotonic()
    with pytest.raises(error) as told:
        async with receiver:
            pass
    assert not isinstance(told.value, OperationTimeoutError)
    # Long before the SDK's own timeout of a minute.
    assert time.monotonic() - began <= 30
    return str(told.value)


async def none_next(queue, wait=3.0) -> None:
    """Asserts that there is no session to be had."""
    with pytest.raises(OperationTimeoutError):
        async with queue.next_session(wait) as receiver:
            pytest.fail(f"session {receiver.session.session_id!r} was granted")


async def granted(queue, session_id: str, within: float):
    """Accepts a session that another holds, once it is free."""
    deadline = time.monotonic() + within
    while True:
        receiver = queue.session(session_id)
        try:
            return await receiver.__aenter__()
        except SessionCannotBeLockedError:
            assert time.monotonic() < deadline, f"session {session_id!r} was not granted within {within} s"
            # Refused at once, so this asks often: the other holder's lock is the condition.
            await asyncio.sleep(0.1)


async def test_s101_a_session_is_received_by_name(queue):
    a, b = of("a", "a1", "a2", "a3"), of("b", "b1", "b2")
    await queue.send(a[0], b[0], a[1], b[1], a[2])
    for session_id, expected in (("a", ["a1", "a2", "a3"]), ("b", ["b1", "b2"])):
        async with queue.session(session_id) as receiver:
            messages = await receive(receiver, len(expected))
            assert bodies(messages) == expected
            assert set(ids(messages)) == {session_id}
            assert receiver.session.session_id == session_id
            left = receiver.session.locked_until_utc - datetime.now(timezone.utc)
            assert timedelta(seconds=40) <= left <= timedelta(seconds=62)
            await complete(receiver, messages)
            await nothing(receiver)


async def test_s102_the_next_session_is_one_with_messages(queue):
    await queue.send(*of("x", "1"))
    async with queue.next_session(30) as receiver:
        assert receiver.session.session_id == "x"
        messages = await receive(receiver, 1)
        assert (bodies(messages), ids(messages)) == (["1"], ["x"])
        await complete(receiver, messages)


async def test_s103_a_session_has_one_holder(queue, connect, other):
    await queue.send(*of("x", "of x"), *of("y", "of y"))
    async with queue.next_session(30) as first, queue.through(connect()).next_session(30) as second:
        assert {first.session.session_id, second.session.session_id} == {"x", "y"}
        await none_next(other)
        for receiver in (first, second):
            messages = await receive(receiver, 1)
            assert bodies(messages) == [f"of {receiver.session.session_id}"]
            await complete(receiver, messages)


async def test_s104_the_wait_for_a_session_ends_in_time(other):
    began = time.monotonic()
    await none_next(other, wait=4)
    # Long before the SDK's own timeout of a minute.
    assert 3 <= time.monotonic() - began <= 30


async def test_s105_a_message_ends_the_wait_for_a_session(queue, other):
    receiver = other.next_session(60)
    waiting = asyncio.create_task(receiver.__aenter__())
    async with queue.sender() as sender:
        # Long enough for the other to be waiting; if it were not, the scenario would hold all the same.
        assert not (await asyncio.wait([waiting], timeout=2))[0]
        began = time.monotonic()
        await sender.send_messages(of("late", "1"))
        await waiting
        assert time.monotonic() - began <= 20
    assert receiver.session.session_id == "late"
    messages = await receive(receiver, 1)
    assert bodies(messages) == ["1"]
    await complete(receiver, messages)
    await receiver.__aexit__(None, None, None)


async def test_s106_a_release_ends_the_wait_for_a_session(queue, other):
    await queue.send(*of("x", "1", "2"))
    async with queue.session("x") as first:
        await complete(first, await receive(first, 1))
        receiver = other.next_session(60)
        waiting = asyncio.create_task(receiver.__aenter__())
        assert not (await asyncio.wait([waiting], timeout=2))[0]
    began = time.monotonic()
    await waiting
    assert time.monotonic() - began <= 20
    assert receiver.session.session_id == "x"
    messages = await receive(receiver, 1)
    assert (bodies(messages), counts(messages)) == (["2"], [0])
    await complete(receiver, messages)
    await receiver.__aexit__(None, None, None)


async def test_s108_a_session_need_not_have_a_message(queue, other):
    began = time.monotonic()
    async with queue.session("new") as receiver:
        assert time.monotonic() - began <= 20
        await refused(other.session("new"), SessionCannotBeLockedError)
        await queue.send(*of("new", "1"))
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["1"]
        await complete(receiver, messages)


async def test_s109_a_held_session_is_refused(queue, other):
    async with queue.session("x"):
        await refused(other.session("x"), SessionCannotBeLockedError)
    async with other.session("x") as receiver:
        assert receiver.session.session_id == "x"


async def test_s110_a_renewed_session_is_kept(make_queue, connect):
    queue = await make_queue(requires_session=True, lock_duration=timedelta(seconds=LOCK))
    other = queue.through(connect(**ONCE))
    await queue.send(*of("x", "1"))
    async with queue.session("x") as receiver:
        messages = await receive(receiver, 1)
        first = until = receiver.session.locked_until_utc
        while soon(0) <= first:
            await nothing(receiver, wait=3)
            renewed = await receiver.session.renew_lock()
            assert renewed > until
            left = renewed - datetime.now(timezone.utc)
            assert timedelta(seconds=LOCK / 2) <= left <= timedelta(seconds=LOCK + 1)
            assert receiver.session.locked_until_utc == renewed
            until = renewed
            await refused(other.session("x"), SessionCannotBeLockedError)
        await complete(receiver, messages)
        await nothing(receiver)


async def test_s111_a_session_whose_lock_expires_is_lost(make_queue, connect):
    queue = await make_queue(requires_session=True, lock_duration=timedelta(seconds=LOCK))
    other = queue.through(connect(**ONCE))
    await queue.send(*of("x", "1"))
    async with queue.session("x") as first:
        until = first.session.locked_until_utc
        (message,) = await receive(first, 1)
        second = await granted(other, "x", within=40)
        assert soon(0) >= until - MILLISECOND
        with pytest.raises(SessionLockLostError):
            await first.complete_message(message)
        with pytest.raises(SessionLockLostError):
            await first.session.renew_lock()
        with pytest.raises(SessionLockLostError):
            await first.session.get_state()
    messages = await receive(second, 1)
    assert (bodies(messages), counts(messages)) == (["1"], [1])
    await complete(second, messages)
    await second.__aexit__(None, None, None)


async def test_s140_an_idle_holder_keeps_its_link_to_the_end_and_then_loses_its_session(make_queue, connect):
    queue = await make_queue(requires_session=True, lock_duration=timedelta(seconds=LOCK))
    other = queue.through(connect(**ONCE))
    await queue.send(*of("x", "1"))
    async with queue.session("x", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as idle:
        ends = idle.session.locked_until_utc
        assert bodies(await receive(idle, 1)) == ["1"]
        # A last receive, for as long as the lock lasts, finds nothing; it does not fail.
        left = (ends - datetime.now(timezone.utc)).total_seconds()
        assert await idle.receive_messages(max_wait_time=left + 0.5) == []
        async with other.session("x") as second:
            await queue.send(*of("x", "2"))
            messages = await receive(second, 1)
            assert (bodies(messages), counts(messages)) == (["2"], [0])
            await complete(second, messages)
            with pytest.raises(SessionLockLostError):
                await idle.receive_messages(max_wait_time=30)


async def test_s112_the_sdks_renewer_keeps_a_session(make_queue, connect, kind):
    queue = await make_queue(requires_session=True, lock_duration=timedelta(seconds=LOCK))
    other = queue.through(connect(**ONCE))
    await queue.send(*of("x", "1"))
    renewer = both.lock_renewer(kind)
    async with queue.session("x") as receiver:
        renewer.register(receiver, receiver.session, max_lock_renewal_duration=120)
        messages = await receive(receiver, 1)
        await nothing(receiver, wait=LOCK + 3)
        await refused(other.session("x"), SessionCannotBeLockedError)
        assert receiver.session.auto_renew_error is None
        await complete(receiver, messages)
        await renewer.close()


async def test_s113_giving_a_session_up_is_no_delivery(queue, other):
    await queue.send(*of("x", "1", "2", "3"))
    async with queue.session("x") as first:
        assert bodies(await receive(first, 2)) == ["1", "2"]
    async with other.session("x") as second:
        messages = await receive(second, 3)
        assert (bodies(messages), counts(messages)) == (["1", "2", "3"], [0, 0, 0])
        await complete(second, messages)


async def test_s115_an_abandoned_message_comes_first_in_its_session(queue):
    await queue.send(*of("x", "1", "2", "3"))
    async with queue.session("x") as receiver:
        (first,) = await receive(receiver, 1)
        await receiver.abandon_message(first)
        messages = await receive(receiver, 3)
        assert (bodies(messages), counts(messages)) == (["1", "2", "3"], [1, 0, 0])
        assert messages[0].sequence_number == first.sequence_number
        await complete(receiver, messages)


async def test_s116_workers_share_sessions_and_keep_their_order(queue, connect):
    names = [f"session {index}" for index in range(10)]
    await queue.send_batch(*(ServiceBusMessage(f"{step}", session_id=name) for step in range(20) for name in names))
    found = {name: [] for name in names}
    held = set()

    async def work():
        mine = queue.through(connect(**ONCE))
        while any(len(each) < 20 for each in found.values()):
            try:
                receiver = await mine.next_session(3).__aenter__()
            except OperationTimeoutError:
                # The others hold what is left.
                continue
            name = receiver.session.session_id
            assert name not in held
            held.add(name)
            # Not all at once, so that sessions are given up and taken over half way.
            while len(found[name]) < 20 and (messages := await receiver.receive_messages(max_message_count=15, max_wait_time=1)):
                assert set(ids(messages)) == {name}
                await complete(receiver, messages)
                found[name] += bodies(messages)
                if len(found[name]) == 15:
                    break
            held.remove(name)
            await receiver.__aexit__(None, None, None)

    await asyncio.gather(*(work() for _ in range(3)))
    assert found == {name: [f"{step}" for step in range(20)] for name in names}


async def test_s117_later_messages_go_to_the_holder(queue, other):
    await queue.send(*of("x", "0"))
    async with queue.session("x") as receiver:
        await complete(receiver, await receive(receiver, 1))
        waiting = asyncio.create_task(none_next(other))
        await queue.send(*of("x", "1", "2", "3"))
        messages = await receive(receiver, 3)
        assert bodies(messages) == ["1", "2", "3"]
        await waiting
        await complete(receiver, messages)


async def test_s124_a_deferred_message_stays_in_its_session(queue, other):
    await queue.send(*of("x", "1", "2", "3"))
    async with queue.session("x") as receiver:
        first, second, third = await receive(receiver, 3)
        await receiver.defer_message(first)
        await receiver.defer_message(second)
        await receiver.complete_message(third)
        await nothing(receiver)
    async with queue.session("x") as receiver, other.session("y") as stranger:
        peeked = await receiver.peek_messages(max_message_count=10, sequence_number=1)
        ends = {each.raw_amqp_message.annotations[b"x-opt-locked-until"] for each in peeked}
        assert (len(peeked), ends) == (2, {253_402_300_799_999})
        with pytest.raises(MessageNotFoundError):
            await stranger.receive_deferred_messages(first.sequence_number)
        messages = await receiver.receive_deferred_messages([first.sequence_number, second.sequence_number])
        assert (bodies(messages), ids(messages)) == (["1", "2"], ["x", "x"])
        assert {each.state for each in messages} == {ServiceBusMessageState.DEFERRED}
        await complete(receiver, messages)
        assert await receiver.peek_messages(max_message_count=10, sequence_number=1) == []


async def test_s125_a_scheduled_message_brings_its_session(queue, other):
    due = soon(12)
    kept, cancelled = await queue.schedule(due, *of("x", "kept", "cancelled"))
    await queue.cancel(cancelled)
    async with other.next_session(60) as receiver:
        assert soon(0) >= due - timedelta(seconds=1)
        assert receiver.session.session_id == "x"
        (message,) = await receive(receiver, 1)
        assert str(message) == "kept"
        assert message.sequence_number > cancelled > kept
        await receiver.complete_message(message)
        await nothing(receiver)


async def test_s126_a_session_is_peeked_by_itself(queue):
    a, b = of("a", "a1", "a2"), of("b", "b1", "b2", "b3")
    await queue.send(b[0], a[0], b[1], a[1], b[2])
    async with queue.session("a") as receiver:
        for _ in range(2):
            peeked = await receiver.peek_messages(max_message_count=10, sequence_number=1)
            assert (bodies(peeked), numbers(peeked), ids(peeked)) == (["a1", "a2"], [2, 4], ["a", "a"])


async def test_s127_a_message_needs_a_session(queue):
    async with queue.sender() as sender:
        with pytest.raises(ServiceBusError, match="The SessionId was not set on a message"):
            await sender.send_messages(ServiceBusMessage("nobody's"))
    await queue.send(*of("x", "1"))
    async with queue.session("x") as receiver:
        messages = await receive(receiver, 1)
        assert (bodies(messages), numbers(messages)) == (["1"], [1])
        await complete(receiver, messages)


async def test_s128_a_receiver_needs_a_session(other):
    assert (
        "It is not possible for an entity that requires sessions to create a non-sessionful message receiver"
        in await refused(other.receiver())
    )


async def test_s129_a_plain_queue_has_no_sessions(queue, other):
    for receiver in (other.session("x"), other.next_session(60)):
        assert "A sessionful message receiver cannot be created on an entity that does not require sessions" in await refused(receiver)
    await queue.send(*of("x", "1"), *of("y", "2"))
    messages = await queue.take(2)
    assert (bodies(messages), ids(messages)) == (["1", "2"], ["x", "y"])


async def test_s130_dead_letters_have_no_sessions(queue):
    await queue.send(*of("a", "1"), *of("b", "2"))
    for session_id in "ab":
        async with queue.session(session_id) as receiver:
            (message,) = await receive(receiver, 1)
            await receiver.dead_letter_message(message, reason=f"why {session_id}")
    messages = await queue.take_dead(2)
    assert (bodies(messages), ids(messages), numbers(messages)) == (["1", "2"], ["a", "b"], [1, 2])
    assert [each.dead_letter_reason for each in messages] == ["why a", "why b"]


async def test_s131_too_many_deliveries_dead_letter_in_a_session_too(queue):
    await queue.send(*of("x", "poison", "next"))
    async with queue.session("x") as receiver:
        for count in range(2):
            (message,) = await receive(receiver, 1)
            assert (str(message), message.delivery_count or 0) == ("poison", count)
            await receiver.abandon_message(message)
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["next"]
        await complete(receiver, messages)
    (message,) = await queue.take_dead(1)
    assert (str(message), message.session_id, message.dead_letter_reason) == ("poison", "x", "MaxDeliveryCountExceeded")


async def test_s132_a_session_can_be_taken_without_locks(queue):
    await queue.send(*of("x", "1", "2", "3"))
    async with queue.taker(session_id="x") as receiver:
        assert bodies(await receive(receiver, 3)) == ["1", "2", "3"]
        assert await receiver.peek_messages(max_message_count=10, sequence_number=1) == []
    assert await queue.sessions() == []


async def test_s133_an_expired_message_brings_no_session(queue, other):
    await queue.send(ServiceBusMessage("short", session_id="x", time_to_live=timedelta(seconds=1)))
    async with queue.dead_letters() as receiver:
        (message,) = await receive(receiver, 1)
        assert (str(message), message.session_id, message.dead_letter_reason) == ("short", "x", "TTLExpiredException")
        await receiver.complete_message(message)
    await none_next(other)


async def test_s134_what_was_prefetched_goes_back_to_its_session(queue, other):
    await queue.send_batch(*of("x", *(f"{index}" for index in range(10))))
    async with queue.session("x", prefetch_count=10) as first:
        messages = await receive(first, 1)
        assert bodies(messages) == ["0"]
        await complete(first, messages)
    async with other.session("x") as second:
        messages = await receive(second, 9)
        assert (bodies(messages), counts(messages)) == ([f"{index}" for index in range(1, 10)], [0] * 9)
        await complete(second, messages)


async def test_s135_a_batch_may_be_of_several_sessions(queue):
    await queue.send_batch(*of("a", "1"), *of("b", "2"), *of("a", "3"))
    for session_id, expected in (("a", ["1", "3"]), ("b", ["2"])):
        async with queue.session(session_id) as receiver:
            messages = await receive(receiver, len(expected))
            assert bodies(messages) == expected
            await complete(receiver, messages)


async def test_s136_a_session_may_have_any_name(queue):
    names = ["x", "x" * 128, "with spaces/and slashes", "ü ÿ ≠"]
    await queue.send(*(message for name in names for message in of(name, "1")))
    assert await queue.sessions() == sorted(names)
    for name in names:
        async with queue.session(name) as receiver:
            assert receiver.session.session_id == name
            messages = await receive(receiver, 1)
            assert ids(messages) == [name]
            await complete(receiver, messages)
