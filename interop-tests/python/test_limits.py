"""S64 to S67: properties of the queue."""

import pytest
from azure.servicebus.exceptions import MessagingEntityDisabledError, ServiceBusQuotaExceededError

from conftest import bodies, complete, nothing, receive


async def assert_send_disabled(queue):
    with pytest.raises(MessagingEntityDisabledError):
        await queue.send("no")


async def assert_receive_disabled(queue):
    with pytest.raises(MessagingEntityDisabledError):
        async with queue.receiver() as receiver:
            await receiver.receive_messages(max_wait_time=1)


async def test_s64_sending_can_be_disabled(queue):
    await assert_send_disabled(queue)
    async with queue.receiver() as receiver:
        await nothing(receiver)


async def test_s65_receiving_can_be_disabled(queue):
    await queue.send("waits")
    await assert_receive_disabled(queue)


async def test_s66_a_queue_can_be_disabled(queue):
    await assert_send_disabled(queue)
    await assert_receive_disabled(queue)


async def test_s67_a_full_queue_says_so(queue):
    sent = []
    with pytest.raises(ServiceBusQuotaExceededError):
        for index in range(30):
            await queue.send(f"{index:<102400}")
            sent.append(f"{index}")
    assert len(sent) >= 5
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 5)
        await complete(receiver, messages)
        await queue.send("again")
        messages += (rest := await receive(receiver, len(sent) - 4))
        assert [body.strip() for body in bodies(messages)] == sent + ["again"]
        await complete(receiver, rest)
        await nothing(receiver)
