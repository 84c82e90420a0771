"""S321 to S323 and S326: what is sent is what comes."""

import math
import uuid
from datetime import datetime, timezone

from azure.servicebus import ServiceBusMessage
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType

from conftest import bodies, complete, receive, soon

TEXT = "ü€😀 " * 60
WHEN = datetime(1969, 7, 20, 20, 17, 40, tzinfo=timezone.utc)


def typed(kind: str, value):
    """How the SDK is told a type that Python has not."""
    return {"TYPE": kind, "VALUE": value}


def milliseconds(when: datetime) -> int:
    return round((when - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() * 1000)


# What is sent, and what comes: Python's SDK gives times as milliseconds, and texts in values as bytes. (It sends decimals, and
# cannot read any.)
SCALARS = [
    ("null", None, None),
    ("true", True, True), ("false", False, False),
    *[(f"{kind}-{value}".lower(), typed(kind, value), value) for kind, values in {
        "UBYTE": (0, 255), "BYTE": (-128, 127), "USHORT": (0, 65535), "SHORT": (-32768, 32767),
        "UINT": (0, 1, 255, 256, 2**32 - 1), "INT": (-(2**31), -129, -1, 0, 127, 128, 2**31 - 1),
        "ULONG": (0, 1, 255, 256, 2**64 - 1), "LONG": (-(2**63), -129, -1, 0, 127, 128, 2**63 - 1),
    }.items() for value in values],
    ("float", typed("FLOAT", 1.5), 1.5), ("float-largest", typed("FLOAT", 3.4028234663852886e38), 3.4028234663852886e38),
    ("double", 0.1, 0.1), ("double-largest", 1.7976931348623157e308, 1.7976931348623157e308), ("double-least", 5e-324, 5e-324),
    ("zero", 0.0, 0.0), ("minus-zero", -0.0, -0.0), ("infinity", math.inf, math.inf), ("minus-infinity", -math.inf, -math.inf),
    ("nan", math.nan, math.nan),
    ("epoch", typed("TIMESTAMP", 0), 0), ("before-1970", WHEN, milliseconds(WHEN)),
    ("after-3000", typed("TIMESTAMP", 32503680000001), 32503680000001),
    ("uuid", uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")),
    ("no-bytes", b"", b""), ("bytes", bytes(range(256)) + b"more", bytes(range(256)) + b"more"),
    ("no-text", "", b""), ("text", TEXT, TEXT.encode()),
    ("symbol", typed("SYMBOL", "a:symbol"), b"a:symbol"), ("long-symbol", typed("SYMBOL", "s" * 300), b"s" * 300),
]
NESTED = [
    ("no-list", [], []), ("list", [1, b"two", [3.5, None, [True]], {b"k": [False]}], [1, b"two", [3.5, None, [True]], {b"k": [False]}]),
    ("map", {b"a": {b"b": [1, 2, {b"c": None}]}}, {b"a": {b"b": [1, 2, {b"c": None}]}}),
    ("array", typed("ARRAY", [typed("LONG", 2**40), typed("LONG", -1)]), [2**40, -1]),
]


def same(sent, received) -> bool:
    """Equal, and of one type; zeros have a sign, and a NaN is itself."""
    if isinstance(sent, float):
        return isinstance(received, float) and (
            math.isnan(sent) and math.isnan(received) or sent == received and math.copysign(1, sent) == math.copysign(1, received)
        )
    return type(sent) is type(received) and sent == received


async def test_s321_values_come_back(queue):
    cases = SCALARS + NESTED
    async with queue.sender() as sender:
        # In a list each: for a null, a zero and nothing the SDK would make no body at all, and types it takes inside only.
        await sender.send_messages([AmqpAnnotatedMessage(value_body=[sent], properties={"message_id": name}) for name, sent, _ in cases])
    async with queue.receiver() as receiver:
        messages = await receive(receiver, len(cases))
        await complete(receiver, messages)
    wrong = []
    for (name, _, awaited), received in zip(cases, messages):
        raw = received.raw_amqp_message
        assert (received.message_id, raw.body_type) == (name, AmqpMessageBodyType.VALUE)
        (value,) = raw.body
        if not same(awaited, value):
            wrong.append((name, awaited, value))
    assert wrong == []


async def test_s322_application_properties_come_back(queue):
    # Bytes are texts to the SDK, there.
    cases = [each for each in SCALARS if each[0] != "bytes"]
    sent = ServiceBusMessage("properties", application_properties={name: value for name, value, _ in cases})
    await queue.send(sent)
    (received,) = await queue.take(1)
    assert list(received.application_properties) == [name.encode() for name, _, _ in cases]
    wrong = [
        (name, awaited, received.application_properties[name.encode()])
        for name, _, awaited in cases if not same(awaited, received.application_properties[name.encode()])
    ]
    assert wrong == []


async def test_s323_several_sections_come_back(queue):
    for body in (
        {"data_body": [b"one", b"", b"three"]},
        {"data_body": [bytes([n]) for n in range(100)]},
        {"sequence_body": [[1, b"two"], [], [3.0, None]]},
    ):
        await queue.send(AmqpAnnotatedMessage(**body))
        (received,) = await queue.take(1)
        assert list(received.raw_amqp_message.body) == list(body.values())[0]


TRACE = {
    "Diagnostic-Id": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
}


def traced(body: str) -> ServiceBusMessage:
    return ServiceBusMessage(body, application_properties=dict(TRACE))


def trace(received) -> dict:
    return {name.decode(): value.decode() for name, value in received.application_properties.items() if name.decode() in TRACE}


async def test_s326_trace_headers_go_every_way(queue, topic):
    (number,) = await queue.defer(traced("deferred"))
    await queue.schedule(soon(1), traced("scheduled"))
    await queue.send(traced("dead"))
    async with queue.receiver() as receiver:
        found = {}
        # The deferred one is not among them.
        while len(found) < 2:
            for each in await receive(receiver, 1):
                found[str(each)] = each
                if str(each) == "dead":
                    await receiver.dead_letter_message(each, reason="why")
                else:
                    await receiver.complete_message(each)
        (deferred,) = await receiver.receive_deferred_messages(number)
        await receiver.complete_message(deferred)
    (dead,) = await queue.take_dead(1)
    through = type(topic)(topic.client, "s326t")
    await through.send(traced("topic"))
    (copy,) = await through.subscription("a").take(1)
    arrived = [found["scheduled"], deferred, dead, copy]
    assert bodies(arrived) == ["scheduled", "deferred", "dead", "topic"]
    assert [trace(each) for each in arrived] == [TRACE] * 4
