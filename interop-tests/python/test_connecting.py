"""S01 to S04: connecting and addressing."""

import json
import urllib.request
import os


from conftest import Queue, bodies, complete, not_there, nothing, receive


async def test_s01_a_message_goes_through(queue):
    await queue.send("hello")
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["hello"]
        await complete(receiver, messages)
        await nothing(receiver)


async def test_s02_an_unknown_queue_cannot_be_sent_to(client):
    with not_there():
        await Queue(client, "no-such-queue").send("lost")


async def test_s02_an_unknown_queue_cannot_be_received_from(client):
    with not_there():
        async with Queue(client, "no-such-queue").receiver() as receiver:
            await receiver.receive_messages(max_wait_time=1)


async def test_s03_names_do_not_depend_on_case(queue, client):
    await Queue(client, "S03").send("case")
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["case"]
        await complete(receiver, messages)


async def test_s04_many_links_work_side_by_side(queue, client):
    other = Queue(client, "s04b")
    senders = [queue.sender(), queue.sender(), other.sender()]
    receivers = [queue.receiver(), queue.receiver(), other.receiver()]
    for link in senders + receivers:
        await link.__aenter__()
    await senders[0].close()
    await receivers[0].close()

    from azure.servicebus import ServiceBusMessage

    await senders[1].send_messages(ServiceBusMessage("one"))
    await senders[2].send_messages(ServiceBusMessage("two"))
    for receiver, body in ((receivers[1], "one"), (receivers[2], "two")):
        messages = await receive(receiver, 1)
        assert bodies(messages) == [body]
        await complete(receiver, messages)
    for link in senders[1:] + receivers[1:]:
        await link.close()


def test_s76_health_is_answered_as_the_emulator_does():
    with urllib.request.urlopen(f"http://127.0.0.1:{os.environ['JITNEY_HTTP_PORT']}/health", timeout=20) as answer:
        assert answer.status == 200
        assert json.load(answer) == {"status": "healthy", "message": "Service is healthy."}
