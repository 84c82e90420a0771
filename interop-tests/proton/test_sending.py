import uuid

from proton import (
    Array, Data, Described, Message, UNDESCRIBED, byte, char, decimal32, decimal64, decimal128, float32, int32, short,
    symbol, timestamp, ubyte, uint, ulong, ushort,
)

from client import AT_MOST_ONCE, TestCase, bodies, numbered, plain

# One of every AMQP type that Proton knows, with the Python type that it decodes to.
EVERY_TYPE = {
    "null": None,
    "boolean": True,
    "ubyte": ubyte(255),
    "ushort": ushort(65_535),
    "uint": uint(4_000_000_000),
    "ulong": ulong(2**63 + 1),
    "byte": byte(-128),
    "short": short(-32_768),
    "int": int32(-2_000_000_000),
    "long": -(2**62),
    "float": float32(1.5),
    "double": -2.25,
    "decimal32": decimal32(7),
    "decimal64": decimal64(8),
    "decimal128": decimal128(bytes(range(16))),
    "char": char("ü"),
    "timestamp": timestamp(1_700_000_000_123),
    "uuid": uuid.UUID(int=2**127 + 5),
    "binary": b"\x00\xff",
    "string": "ü",
    "symbol": symbol("symbol"),
}


class Sending(TestCase):
    def test_s07_every_kind_of_body_comes_back(self):
        sent = [
            b"\x00\xff", "text", int32(-1), None, True, {"key": ["value", {"nested": uint(1)}]}, ["a", 1],
            Array(UNDESCRIBED, Data.LONG, 1, 2, 3), Described(symbol("com.example:period"), "P1D"), uuid.UUID(int=7),
        ]
        self.send("s07", *[Message(body=body, inferred=isinstance(body, bytes)) for body in sent])
        received = bodies(self.receive(self.receiver("s07"), len(sent)))
        for got, wanted in zip(received, sent):
            self.assertEqual(got, wanted)

    def test_s08_every_property_and_type_comes_back(self):
        sent = Message(
            id=uuid.UUID(int=1), correlation_id=ulong(2), user_id=b"user", address="to", subject="subject",
            reply_to="reply-to", content_type=symbol("text/plain"), content_encoding=symbol("gzip"),
            group_id="group", group_sequence=7, reply_to_group_id="reply-to-group", ttl=600, properties=EVERY_TYPE,
        )
        self.send("s08", sent)
        message, _ = self.receive_one(self.receiver("s08"))
        for name in (
            "id", "correlation_id", "user_id", "address", "subject", "reply_to", "content_type", "content_encoding",
            "group_id", "group_sequence", "reply_to_group_id", "ttl",
        ):
            self.assertEqual(getattr(message, name), getattr(sent, name), name)
        properties = {name: plain(value) for name, value in message.properties.items()}
        self.assertEqual(properties, EVERY_TYPE)
        kinds = {name: type(value) for name, value in properties.items()}
        self.assertEqual(kinds, {name: type(value) for name, value in EVERY_TYPE.items()})

    def test_s09_annotations_and_header_of_the_sender_come_back(self):
        sent = Message(body=1, durable=True, priority=9)
        sent.annotations = {symbol("x-message"): uint(7)}
        sent.instructions = {symbol("x-delivery"): "delivery"}
        self.send("s09", sent)
        message, _ = self.receive_one(self.receiver("s09"))
        self.assertEqual((message.durable, message.priority), (True, 9))
        self.assertEqual(message.annotations["x-message"], uint(7))
        self.assertEqual(message.instructions["x-delivery"], "delivery")
        self.assertIs(type(message.annotations["x-opt-sequence-number"]), int)
        self.assertIs(type(message.annotations["x-opt-enqueued-time"]), timestamp)

    def test_s11_large_messages_come_back(self):
        receiver = self.receiver("s11")
        for size in (1, 64 * 1024, 200 * 1024, 900 * 1024):
            body = bytes(index * 31 % 251 for index in range(size))
            self.send("s11", Message(body=body, inferred=True))
            message, delivery = self.receive_one(receiver)
            self.assertTrue(message.body == body, f"{size} bytes")
            self.settle(delivery, delivery.ACCEPTED)

    def test_s12_a_message_that_is_too_large_is_refused(self):
        with self.assertRaises(Exception):
            self.send("s12", Message(body=bytes(100 * 1024), inferred=True))
        self.send("s12", *numbered(1))
        self.assertEqual(bodies(self.available(self.receiver("s12"))), [1])

    def test_s14_pre_settled_messages_arrive(self):
        sender = self.sender("s14", AT_MOST_ONCE)
        self.assertEqual(sender.link.remote_snd_settle_mode, sender.link.SND_SETTLED)
        for message in numbered(3):
            sender.link.send(message)
        self.assertEqual(bodies(self.receive(self.receiver("s14"), 3)), [1, 2, 3])
