"""S60 to S63: peek looks, and changes nothing."""

from azure.servicebus import ServiceBusMessage, ServiceBusMessageState

from conftest import bodies, complete, numbers, receive, soon


async def test_s60_peek_finds_every_state(queue):
    (deferred,) = await queue.defer("deferred")
    await queue.send("locked", "active")
    (scheduled,) = await queue.schedule(soon(3600), "scheduled")
    async with queue.receiver() as receiver:
        (locked,) = await receive(receiver, 1)
        assert str(locked) == "locked"
        for _ in range(2):
            peeked = await queue.peek()
            assert bodies(peeked) == ["deferred", "locked", "active", "scheduled"]
            assert numbers(peeked) == [1, 2, 3, 4]
            assert [each.state for each in peeked] == [
                ServiceBusMessageState.DEFERRED, ServiceBusMessageState.ACTIVE,
                ServiceBusMessageState.ACTIVE, ServiceBusMessageState.SCHEDULED,
            ]
            assert [each.lock_token for each in peeked] == [None] * 4
            assert [each.locked_until_utc for each in peeked] == [None] * 4
        (active,) = await receive(receiver, 1)
        assert (str(active), active.delivery_count or 0) == ("active", 0)
        await complete(receiver, [locked, active])
        await complete(receiver, await receiver.receive_deferred_messages(deferred))
    await queue.cancel(scheduled)


async def test_s61_peek_goes_on_where_it_was(queue):
    await queue.send(*(f"{index}" for index in range(1, 11)))
    async with queue.receiver() as receiver:
        assert numbers(await receiver.peek_messages(3, sequence_number=4)) == [4, 5, 6]
        rest = []
        while page := await receiver.peek_messages(3):
            rest += numbers(page)
        assert rest == [7, 8, 9, 10]
        await complete(receiver, await receive(receiver, 10))


async def test_s62_peek_of_an_empty_queue_is_empty(queue):
    assert await queue.peek() == []


async def test_s63_peek_in_pages_finds_all(queue):
    async with queue.sender() as sender:
        for hundred in range(6):
            await sender.send_messages([ServiceBusMessage(f"{hundred * 100 + each:<1024}") for each in range(100)])
    found = []
    async with queue.receiver() as receiver:
        page = await receiver.peek_messages(250, sequence_number=1)
        while page:
            found += numbers(page)
            page = await receiver.peek_messages(250)
    assert found == list(range(1, 601))
