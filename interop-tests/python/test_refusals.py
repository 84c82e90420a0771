"""S327 and S328: what is refused, and what ends by itself."""

from datetime import timedelta

import pytest
from azure.servicebus.exceptions import AutoLockRenewTimeout, MessageAlreadySettled, MessageLockLostError

import both
from conftest import bodies, complete, counts, nothing, receive, soon

WAYS = ("complete_message", "abandon_message", "defer_message", "dead_letter_message")


async def test_s327_nothing_is_settled_twice(queue):
    await queue.send("gone", "back")
    async with queue.receiver() as receiver:
        gone, back = await receive(receiver, 2)
        await receiver.complete_message(gone)
        await receiver.abandon_message(back)
        for message, ways in ((gone, WAYS), (back, WAYS[:1])):
            for way in ways:
                with pytest.raises((MessageAlreadySettled, MessageLockLostError)):
                    await getattr(receiver, way)(message)
        messages = await receive(receiver, 1)
        assert (bodies(messages), counts(messages)) == (["back"], [1])
        await complete(receiver, messages)
        await nothing(receiver)
    assert await queue.left() == []


async def test_s328_a_renewal_ends_when_it_was_told_to(make_queue, connect, kind):
    queue = await make_queue(lock_duration=timedelta(seconds=12))
    await queue.send("renewed")
    renewer = both.lock_renewer(kind)
    async with queue.receiver() as receiver, queue.through(connect()).receiver() as other:
        (message,) = await receive(receiver, 1)
        first = message.locked_until_utc
        renewer.register(receiver, message, max_lock_renewal_duration=8)
        # Renewed at least once in its 8 s, lost 12 s after the last time.
        (again,) = await receive(other, 1)
        assert soon(0) > first + timedelta(seconds=1)
        assert again.delivery_count == 1
        assert isinstance(message.auto_renew_error, AutoLockRenewTimeout)
        with pytest.raises(MessageLockLostError):
            await receiver.complete_message(message)
        await renewer.close()
        await other.complete_message(again)
