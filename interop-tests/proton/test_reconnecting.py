import subprocess
import sys
from pathlib import Path

from proton import (
    Array, Data, Delivery, Described, Endpoint, Message, Timeout, UNDESCRIBED, byte, char, float32, int32, short, symbol,
    timestamp, ubyte, uint, ulong, ushort,
)
from proton.utils import LinkDetached

from client import (
    DEADLINE, InSession, TestCase, bodies, connect, counts, now, number, numbered, numbers, plain, unique_name,
)
from management import Management, in_seconds
from test_sending import EVERY_TYPE

FORCED = "amqp:link:detach-forced"


class FaultProxy:
    """The fault proxy (`fault_proxy.py`), as a child process."""

    def __init__(self, test: TestCase):
        program = Path(__file__).resolve().parent.parent / "fault_proxy.py"
        self.process = subprocess.Popen([sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        self.url = f"amqp://localhost:{int(self.process.stdout.readline())}"

    def tell(self, command: str) -> int:
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(DEADLINE)
        self.process.stdout.close()


class Reconnecting(TestCase):
    def setUp(self):
        super().setUp()
        self.proxy = FaultProxy(self)

    def through(self, close: bool = True):
        """A connection through it."""
        connection = connect(url=self.proxy.url)
        if close:
            self.addCleanup(connection.close)
        return connection

    def links(self, connection, queue: str):
        sender = connection.create_sender(queue, name=unique_name())
        return sender, self.receiver(queue, connection=connection)

    def round_trip(self, connection, sender, receiver, body) -> None:
        sender.send(Message(body=body))
        message, delivery = self.receive_one(receiver)
        self.assertEqual(message.body, body)
        self.complete(delivery, connection)

    def detached(self, connection, *links) -> None:
        """Waits until links have ended, forced."""
        for link in links:
            # The end of another link is told here, too.
            while link.link.state & Endpoint.LOCAL_ACTIVE:
                try:
                    connection.wait(lambda: not link.link.state & Endpoint.LOCAL_ACTIVE, msg="detach")
                except LinkDetached as error:
                    self.assertEqual(error.condition, FORCED)
            self.assertEqual(link.link.remote_condition.name, FORCED)

    def test_s301_forced_detaches(self):
        connection = self.through()
        sender, receiver = self.links(connection, "s301")
        self.round_trip(connection, sender, receiver, 1)
        self.assertEqual(self.proxy.tell("detach s301"), 2)
        self.detached(connection, sender, receiver)
        # On the same session.
        self.round_trip(connection, *self.links(connection, "s301"), 2)
        self.assertEqual(self.here("s301"), [])

    def test_s302_a_forced_detach_of_who_waits(self):
        connection = self.through()
        receiver = self.receiver("s302", connection=connection)
        receiver.link.flow(1)
        self.nothing(receiver)
        self.proxy.tell("detach s302")
        self.detached(connection, receiver)
        self.send("s302", *numbered(1))
        sent = now()
        again = self.receiver("s302", connection=connection)
        self.assertEqual(bodies(self.receive(again, 1)), [1])
        self.assertLess(now() - sent, 15)

    def test_s303_a_forced_detach_with_a_locked_message(self):
        self.send("s303", *numbered(1))
        connection = self.through()
        receiver = self.receiver("s303", connection=connection)
        message, _ = self.receive_one(receiver)
        self.proxy.tell("detach s303")
        self.detached(connection, receiver)
        # By the node, for the link is gone.
        Management(self, "s303").dispose(message, "completed")
        self.nothing(self.receiver("s303"), 11)

    def test_s304_a_forced_detach_of_a_session(self):
        for body in (1, 2):
            self.send("s304", Message(body=body, group_id="x"))
        connection = self.through()
        receiver = self.receiver("s304", InSession("x"), connection)
        self.receive_one(receiver)
        management = Management(self, "s304", connection, link=receiver.link.name)
        # The node's links are of the same address.
        self.proxy.tell(f"detach {receiver.link.name}")
        self.detached(connection, receiver)
        began, again = now(), None
        while again is None and now() - began < 5:
            try:
                again = self.receiver("s304", InSession("x"))
            except LinkDetached as error:
                self.assertEqual(error.condition, "com.microsoft:session-cannot-be-locked")
        self.assertEqual(bodies(self.available(again)), [1, 2])
        management.refused("get-session-state", {"session-id": "x"}, 410, "com.microsoft:session-lock-lost")

    def ended(self, queue: str, command: str) -> None:
        connection = self.through(close=False)
        sender, receiver = self.links(connection, queue)
        self.round_trip(connection, sender, receiver, 1)
        self.assertEqual(self.proxy.tell(command), 1)
        with self.assertRaises(Exception) as raised:
            connection.wait(lambda: False, timeout=DEADLINE)
        self.assertNotIsInstance(raised.exception, Timeout)
        # This client does not reconnect by itself: one more connection does.
        again = self.through()
        self.round_trip(again, *self.links(again, queue), 2)
        self.assertEqual(self.here(queue), [])

    def test_s305_a_closed_connection(self):
        self.ended("s305", "close")

    def test_s306_a_cut_connection(self):
        self.ended("s306", "cut")

    def test_s307_a_send_that_is_not_answered(self):
        connection = self.through()
        sender = connection.create_sender("s307", name=unique_name())
        sender.send(Message(body=1))
        self.proxy.tell("hold")
        with self.assertRaises(Timeout):
            sender.send(Message(body=2), timeout=3)
        self.proxy.tell("release")
        sender.send(Message(body=3))
        self.assertIn(self.here("s307"), ([1, 3], [1, 2, 3]))


class Much(TestCase):
    def test_s309_a_thousand_unsettled_on_one_link(self):
        sender, deliveries = self.sender("s309"), []
        for message in numbered(1000):
            self.connection.wait(lambda: sender.link.credit > 0, msg="credit")
            deliveries.append(sender.link.send(message))
        self.connection.wait(lambda: all(delivery.settled for delivery in deliveries), msg="settlement of all")
        receiver = self.receiver("s309")
        receiver.link.flow(1000)
        received = self.receive(receiver, 1000)
        self.assertEqual(numbers(received), list(range(1, 1001)))
        unsettled = [received[index * 7 % 1000][1] for index in range(1000)]
        for delivery in unsettled:
            delivery.update(delivery.ACCEPTED)
        self.connection.wait(lambda: all(delivery.settled for delivery in unsettled), msg="settlement of all")
        self.assertEqual({delivery.remote_state for delivery in unsettled}, {Delivery.ACCEPTED})
        for delivery in unsettled:
            delivery.settle()
        self.assertEqual(Management(self, "s309").peek(), [])

    def test_s312_a_message_of_20_mib_comes_back(self):
        body = bytes(range(251)) * (20 * 1024 * 1024 // 251)
        self.send("s312", Message(body=body, inferred=True))
        message, delivery = self.receive_one(self.receiver("s312"))
        self.assertTrue(plain(message.body) == body)
        self.complete(delivery)

    def test_s313_another_receiver_gets_what_was_prefetched(self):
        self.send("s313", *numbered(300))
        receiver = self.receiver("s313")
        receiver.link.flow(100)
        for _, delivery in self.receive(receiver, 30):
            self.complete(delivery)
        self.connection.wait(lambda: len(receiver.fetcher.incoming) == 70, msg="prefetch")
        while receiver.fetcher.has_message:
            _, delivery = self._take(receiver, receiver.fetcher.pop())
            self.settle(delivery, Delivery.RELEASED)
        receiver.close()
        received = self.available(self.receiver("s313"), 300)
        self.assertEqual((bodies(received), set(counts(received))), (list(range(31, 301)), {0}))

    def test_s347_a_drain_takes_credit_back_at_once(self):
        receiver = self.receiver("s347")
        for _ in range(10):
            began = now()
            self.assertEqual(self.available(receiver, 10), [])
            self.assertLess(now() - began, 2)
            self.assertEqual(receiver.link.credit, 0)
        self.send("s347", *numbered(5))
        self.assertEqual(bodies(self.available(receiver, 3)), [1, 2, 3])
        self.assertEqual(bodies(self.available(receiver, 10)), [4, 5])
        self.send("s347", Message(body=6))
        with self.assertRaises(Timeout):
            self.connection.wait(lambda: receiver.fetcher.has_message, timeout=0.5)
        self.assertEqual(bodies(self.receive(receiver, 1)), [6])

    def test_s349_no_more_comes_than_there_is_credit_for(self):
        self.send("s349", *numbered(20))
        receiver, seen = self.receiver("s349"), 0
        for credit in ((), (3,), (1, 4), (12,)):
            for each in credit:
                receiver.link.flow(each)
            seen += sum(credit)
            self.connection.wait(lambda: len(receiver.fetcher.incoming) == seen, msg="messages")
            with self.assertRaises(Timeout):
                self.connection.wait(lambda: len(receiver.fetcher.incoming) > seen, timeout=0.3)
        self.assertEqual([message.body for message, _ in receiver.fetcher.incoming], list(range(1, 21)))


# Values at their bounds; what Python has no type for is of Proton's.
VALUES = [
    None, True, False, ubyte(0), ubyte(255), ushort(65_535), uint(0), uint(2**32 - 1), ulong(0), ulong(2**64 - 1), byte(-128),
    byte(127), short(-32_768), int32(-2**31), int32(2**31 - 1), -2**63, 2**63 - 1, 0, float32(1.5), float32(-0.0),
    float("inf"), 0.0, -0.0, -2.25, char("€"), timestamp(0), timestamp(-1), timestamp(32_503_680_000_000), *EVERY_TYPE.values(),
    b"", b"x" * 300, "", "ü€😀", "x" * 300, symbol("symbol"),
]


class Bodies(TestCase):
    def test_s321_s350_bodies_of_every_kind(self):
        nested = [1, ["two", {"three": [3.5, None]}], {uint(4): symbol("four")}]
        sent = [
            *VALUES, [], {}, nested, {"list": nested}, Array(UNDESCRIBED, Data.STRING, "a", "b"), Array(UNDESCRIBED, Data.INT),
            Described(ulong(4711), ["described", Described(symbol("within"), None)]),
        ]
        self.send("s350", *[Message(body=body, inferred=False) for body in sent])
        received = [message for message, _ in self.receive(self.receiver("s350"), len(sent))]
        for message, wanted in zip(received, sent):
            got = plain(message.body)
            self.assertEqual((got, type(got)), (wanted, type(wanted)))

    def test_s322_properties_of_every_kind(self):
        sent = {f"number {index}": value for index, value in enumerate(VALUES)}
        self.send("s322", Message(body=1, properties=sent))
        message, _ = self.receive_one(self.receiver("s322"))
        for name, wanted in sent.items():
            got = plain(message.properties[name])
            self.assertEqual((got, type(got)), (wanted, type(wanted)))

    def test_s326_tracing_properties_stay(self):
        trace = {
            "Diagnostic-Id": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
        }
        def traced(body) -> Message:
            return Message(body=body, properties=dict(trace))
        management = Management(self, "s326")
        self.send("s326", traced(1), traced(2))
        management.schedule([traced(3)], in_seconds(1))
        receiver = self.receiver("s326")
        (one, deferred), (two, letter), (three, _) = self.receive(receiver, 3)
        self.defer(deferred)
        self.dead_letter(letter, "why", "because")
        [(again, _)] = management.by_number(number(one))
        dead, _ = self.receive_one(self.receiver("s326/$DeadLetterQueue"))
        self.send("s326t", traced(4))
        copy, _ = self.receive_one(self.receiver("s326t/Subscriptions/a"))
        for message in (one, two, three, again, dead, copy):
            properties = {name: message.properties[name] for name in trace}
            self.assertEqual(properties, trace)
