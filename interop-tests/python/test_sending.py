"""S07 to S13: what is sent comes back."""

import asyncio
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType, AmqpMessageHeader
from azure.servicebus.exceptions import MessageSizeExceededError, ServiceBusError

from conftest import bodies, complete, nothing, numbers, receive


async def one_through(queue, sent):
    """Sends one message, and returns it as received."""
    async with queue.sender() as sender:
        await sender.send_messages(sent)
    async with queue.receiver() as receiver:
        (received,) = await receive(receiver, 1)
        await receiver.complete_message(received)
        return received


@pytest.mark.parametrize(
    "body, kind",
    [
        ({"data_body": b"one"}, AmqpMessageBodyType.DATA),
        ({"data_body": [b"aa", b"bb", b"cc"]}, AmqpMessageBodyType.DATA),
        ({"value_body": b"text"}, AmqpMessageBodyType.VALUE),
        ({"value_body": 12345}, AmqpMessageBodyType.VALUE),
        ({"value_body": {b"key": [-123, b"data", False]}}, AmqpMessageBodyType.VALUE),
        ({"sequence_body": [b"message", 123.456, True]}, AmqpMessageBodyType.SEQUENCE),
    ],
    ids=["data", "several-data", "text-value", "number-value", "map-value", "sequence"],
)
async def test_s07_every_kind_of_body_comes_back(own_queue, body, kind):
    received = (await one_through(own_queue, AmqpAnnotatedMessage(**body))).raw_amqp_message
    assert received.body_type == kind
    (sent,) = body.values()
    if kind == AmqpMessageBodyType.VALUE:
        assert received.body == sent
    elif kind == AmqpMessageBodyType.DATA:
        assert list(received.body) == (sent if isinstance(sent, list) else [sent])
    else:
        assert [item for section in received.body for item in section] == sent


async def test_s07_no_body_comes_back_as_no_body(own_queue):
    received = await one_through(own_queue, ServiceBusMessage(None))
    assert list(received.body or []) == []


async def test_s08_every_property_comes_back(queue):
    identity = uuid.uuid4()
    # The wire knows milliseconds.
    when = datetime.now(timezone.utc).replace(microsecond=123000)
    sent = ServiceBusMessage(
        "properties",
        message_id="the-id",
        correlation_id="the-correlation",
        content_type="text/plain",
        subject="the subject",
        to="somewhere",
        reply_to="back-here",
        reply_to_session_id="session-there",
        partition_key="the-key",
        time_to_live=timedelta(minutes=5),
        # No bytes, which this SDK sends as a string, and no long, which it cannot send here.
        application_properties={
            "string": "text", "empty": "", "yes": True, "no": False, "int": 7, "negative": -7, "double": 0.5,
            "uuid": identity, "none": None, "unicode": "straße ☕", "time": when,
        },
    )
    received = await one_through(queue, sent)
    assert received.message_id == "the-id"
    assert received.correlation_id == "the-correlation"
    assert received.content_type == "text/plain"
    assert received.subject == "the subject"
    assert received.to == "somewhere"
    assert received.reply_to == "back-here"
    assert received.reply_to_session_id == "session-there"
    assert received.partition_key == "the-key"
    assert received.time_to_live == timedelta(minutes=5)
    properties = received.application_properties
    instant = properties.pop(b"time")
    assert instant in (when, int(when.timestamp() * 1000)), instant
    assert properties == {
        b"string": b"text", b"empty": b"", b"yes": True, b"no": False, b"int": 7, b"negative": -7, b"double": 0.5,
        b"uuid": identity, b"none": None, b"unicode": "straße ☕".encode(),
    }


async def test_s09_header_footer_and_annotations_come_back(queue):
    sent = AmqpAnnotatedMessage(
        data_body=b"annotated",
        header=AmqpMessageHeader(priority=10, durable=True),
        footer={"footer_key": "footer_value"},
        annotations={"annotation_key": "annotation_value"},
        delivery_annotations={"delivery_annotation_key": "delivery_annotation_value"},
        properties={"subject": "annotated"},
    )
    received = (await one_through(queue, sent)).raw_amqp_message
    assert received.header.priority == 10
    assert received.header.durable is True
    assert received.footer[b"footer_key"] == b"footer_value"
    assert received.annotations[b"annotation_key"] == b"annotation_value"
    assert received.delivery_annotations[b"delivery_annotation_key"] == b"delivery_annotation_value"
    assert received.properties.subject == b"annotated"


async def test_s10_a_batch_arrives_whole_and_in_order(queue):
    async with queue.sender() as sender:
        batch = await sender.create_message_batch()
        for index in range(100):
            batch.add_message(ServiceBusMessage(f"{index}"))
        await sender.send_messages(batch)
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 100)
        assert bodies(messages) == [f"{index}" for index in range(100)]
        assert numbers(messages) == list(range(1, 101))
        await complete(receiver, messages)


@pytest.mark.parametrize("size", [1, 64 * 1024, 200 * 1024])
async def test_s11_large_bodies_come_back_byte_for_byte(own_queue, size):
    body = bytes(index * 7 % 251 for index in range(size))
    received = await one_through(own_queue, ServiceBusMessage(body))
    assert b"".join(received.body) == body


async def test_s12_a_message_over_the_queues_limit_is_refused(queue):
    with pytest.raises(MessageSizeExceededError):
        await queue.send(b"x" * 100 * 1024)
    await queue.send("small")
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 1)
        assert bodies(messages) == ["small"]
        await complete(receiver, messages)
        await nothing(receiver)


async def test_s13_two_thousand_messages_of_two_senders(queue, connect):
    async def send(name):
        async with queue.through(connect()).sender() as sender:
            for hundred in range(10):
                await sender.send_messages([ServiceBusMessage(f"{name}-{hundred * 100 + each:04}") for each in range(100)])

    async def take():
        found = []
        async with queue.through(connect()).receiver(prefetch_count=100) as receiver:
            while len(found) < 2000:
                messages = await receive(receiver, 1, within=30)
                messages += await receiver.receive_messages(max_message_count=99, max_wait_time=0.2)
                await complete(receiver, messages)
                found += bodies(messages)
            await nothing(receiver)
        return found

    found, _, _ = await asyncio.gather(take(), send("a"), send("b"))
    for name in "ab":
        assert [body for body in found if body.startswith(name)] == [f"{name}-{index:04}" for index in range(1000)]
    assert len(found) == 2000


async def test_s483_properties_have_bounds(queue):
    for sizes in ([33_000], [24_000] * 3):
        large = {f"p{at}": "x" * size for at, size in enumerate(sizes)}
        with pytest.raises(ServiceBusError, match="bytes are the most"):
            await queue.send(ServiceBusMessage("large", application_properties=large))
    await queue.send(ServiceBusMessage("fits", application_properties={"p": "x" * 32_000}))
    assert bodies(await queue.take(1)) == ["fits"]
