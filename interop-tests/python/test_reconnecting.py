"""S301 to S307 and S329: links, connections and networks that end, while objects of the SDK are in use."""

import asyncio
import time

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import (
    MessageLockLostError,
    OperationTimeoutError,
    ServiceBusConnectionError,
    ServiceBusError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

import both
from conftest import bodies, complete, counts, nothing, of, receive


async def recovers(queue, proxy, command: str, met: int) -> None:
    """Ends what is open, and uses the same objects."""
    async with queue.sender() as sender, queue.receiver() as receiver:
        await sender.send_messages(ServiceBusMessage("before"))
        await complete(receiver, await receive(receiver, 1))
        assert await proxy.do(command) >= met
        await sender.send_messages(ServiceBusMessage("after"))
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["after"]
        await complete(receiver, messages)
        await nothing(receiver, wait=5)
    assert await queue.left() == []


async def test_s301_links_that_are_force_detached_recover(queue, proxy, by_proxy):
    await recovers(queue.through(by_proxy()), proxy, "detach s301", 2)


async def test_s302_a_waiting_receiver_survives_a_forced_detach(queue, proxy, by_proxy):
    async with queue.through(by_proxy()).receiver() as receiver:
        # It is open, and used, before it waits.
        await nothing(receiver, wait=5)
        waiting = asyncio.ensure_future(receiver.receive_messages(max_wait_time=30))
        await asyncio.sleep(0.5)
        assert await proxy.do("detach s302") >= 1
        await queue.send("later")
        messages = await waiting or await receive(receiver, 1)
        assert bodies(messages) == ["later"]
        await complete(receiver, messages)


async def test_s303_a_message_of_a_link_that_was_detached_is_settled_or_comes_again(queue, proxy, by_proxy):
    await queue.send("held")
    async with queue.through(by_proxy()).receiver() as receiver:
        (message,) = await receive(receiver, 1)
        assert await proxy.do("detach s303") >= 1
        try:
            await receiver.complete_message(message)
        except ServiceBusError as error:
            assert isinstance(error, MessageLockLostError) or "detach" in str(error).lower(), error
            (again,) = await receive(receiver, 1)
            assert (str(again), again.delivery_count) == ("held", 1)
            await receiver.complete_message(again)
        await nothing(receiver, wait=5)
    assert await queue.left() == []


async def test_s304_a_session_whose_link_is_detached_is_lost_or_taken_anew(queue, proxy, by_proxy):
    await queue.send(*of("x", "1", "2"))
    receiver = await queue.through(by_proxy()).session("x").__aenter__()
    (message,) = await receive(receiver, 1)
    assert str(message) == "1"
    await receiver.session.set_state(b"noted")
    assert await proxy.do("detach s304") >= 1
    try:
        # The SDK takes the session anew by itself, if nobody else has it: all of its messages come from the beginning.
        messages = await receive(receiver, 2)
        assert await receiver.session.get_state() == b"noted"
    except (SessionLockLostError, ServiceBusConnectionError):
        await receiver.close()
        receiver = await accepted(queue, "x", within=30)
        messages = await receive(receiver, 2)
        assert await receiver.session.get_state() == b"noted"
    assert bodies(messages) == ["1", "2"]
    await complete(receiver, messages)
    await nothing(receiver)
    await receiver.close()


async def accepted(queue, session_id: str, within: float):
    """Accepts a session that is free, or soon will be."""
    deadline = time.monotonic() + within
    while True:
        receiver = queue.session(session_id)
        try:
            return await receiver.__aenter__()
        except SessionCannotBeLockedError:
            assert time.monotonic() < deadline


async def test_s305_a_connection_that_the_service_closes_recovers(queue, proxy, by_proxy):
    await recovers(queue.through(by_proxy()), proxy, "close", 1)


async def test_s306_a_connection_that_is_cut_recovers(queue, proxy, by_proxy):
    await recovers(queue.through(by_proxy()), proxy, "cut", 1)


async def test_s307_a_send_without_an_answer_times_out(queue, proxy, by_proxy):
    async with queue.through(by_proxy(retry_total=0)).sender() as sender:
        await sender.send_messages(ServiceBusMessage("before"))
        await proxy.do("hold")
        began = time.monotonic()
        with pytest.raises(OperationTimeoutError):
            await sender.send_messages(ServiceBusMessage("unanswered"), timeout=3)
        # Long before the SDK's own timeout of a minute.
        assert time.monotonic() - began <= 40
        await proxy.do("release")
        await sender.send_messages(ServiceBusMessage("after"))
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 2)
        if bodies(messages) == ["before", "unanswered"]:
            messages += await receive(receiver, 1)
        assert bodies(messages) in (["before", "after"], ["before", "unanswered", "after"])
        await complete(receiver, messages)
        await nothing(receiver, wait=5)


async def test_s329_a_renewal_that_cannot_reach_the_broker_says_so(queue, proxy, by_proxy, kind):
    await queue.send(*of("x", "1"))
    told = asyncio.Queue()
    loop = asyncio.get_running_loop()
    renewer = both.lock_renewer(kind)
    failed = both.failure_callback(kind, lambda renewable, error: loop.call_soon_threadsafe(told.put_nowait, renewable))
    receiver = await queue.through(by_proxy(retry_total=0)).session("x").__aenter__()
    (message,) = await receive(receiver, 1)
    renewer.register(receiver, receiver.session, max_lock_renewal_duration=30, on_lock_renew_failure=failed)
    await proxy.do("hold")
    # Nothing can be waited for while nothing passes: the lock ends meanwhile.
    await asyncio.sleep(8)
    await proxy.do("release")
    await asyncio.wait_for(told.get(), 60)
    with pytest.raises(SessionLockLostError):
        await receiver.complete_message(message)
    await renewer.close()
    await receiver.close()
    async with await accepted(queue, "x", within=30) as anew:
        messages = await receive(anew, 1)
        assert (bodies(messages), counts(messages)) == (["1"], [1])
        await complete(anew, messages)
