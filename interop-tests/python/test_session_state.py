"""S118 to S123: the state of message sessions, and lists of them."""

import os

from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from conftest import Queue, complete, nothing, of, receive, soon


async def set_state(queue, session_id: str, state) -> None:
    async with queue.session(session_id) as receiver:
        await receiver.session.set_state(state)


async def get_state(queue, session_id: str):
    async with queue.session(session_id) as receiver:
        return await receiver.session.get_state()


async def test_s118_a_session_has_a_state_of_its_own(queue):
    async with queue.session("x") as x, queue.session("y") as y:
        assert await x.session.get_state() is None
        await x.session.set_state(b"\x00 any bytes \xff")
        assert await x.session.get_state() == b"\x00 any bytes \xff"
        assert await y.session.get_state() is None
        await x.session.set_state("text")
        assert await x.session.get_state() == b"text"
        for cleared in (b"", None):
            await x.session.set_state(b"again")
            await x.session.set_state(cleared)
            assert await x.session.get_state() is None


async def test_s119_a_state_needs_no_message(queue, connect):
    large = os.urandom(200 * 1024)
    await set_state(queue, "idle", b"kept")
    await set_state(queue, "large", large)
    other = queue.through(connect())
    assert await get_state(other, "idle") == b"kept"
    assert await get_state(other, "large") == large


async def test_s120_sessions_with_messages_or_state_are_listed(queue, connect):
    await queue.send(*of("a", "1"), *of("b", "1", "2"), *of("c", "1"), *of("e", "1"))
    await set_state(queue, "d", b"state")
    async with queue.session("e") as receiver:
        await complete(receiver, await receive(receiver, 1))
    async with queue.session("c") as receiver:
        messages = await receive(receiver, 1)
        assert await queue.through(connect()).sessions() == ["a", "b", "c", "d"]
        await complete(receiver, messages)
    await set_state(queue, "d", None)
    assert await queue.sessions() == ["a", "b"]


async def test_s121_sessions_are_listed_by_the_time_of_their_state(queue):
    await queue.send(*of("plain", "1"))
    await set_state(queue, "old", b"1")
    async with queue.session("nobody's") as receiver:
        await nothing(receiver, wait=1)
        between = soon(0)
        await nothing(receiver, wait=1)
    await set_state(queue, "new", b"2")
    assert await queue.sessions(state_updated_after=between) == ["new"]
    assert await queue.sessions() == ["new", "old", "plain"]


async def test_s122_a_long_list_comes_in_pages(queue):
    names = [f"session {index:03}" for index in range(250)]
    await queue.send_batch(*(ServiceBusMessage("1", session_id=name) for name in names))
    assert await queue.sessions() == names


async def test_s123_there_may_be_no_sessions(queue, client):
    assert await queue.sessions() == []
    try:
        assert await Queue(client, "s123b").sessions() == []
    except ServiceBusError as error:
        assert "session" in str(error).lower()
