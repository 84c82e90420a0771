"""What every test needs: a connection, links with settle modes, receives with a deadline."""

import os
import time
import unittest
import uuid

from proton import Condition, Delivery, Link, Message, Timeout, symbol, uint
from proton.reactor import Filter, LinkOption
from proton.utils import BlockingConnection, LinkDetached

URL = f"amqp://localhost:{os.environ['JITNEY_AMQP_PORT']}"

# Seconds for anything to happen.
DEADLINE = 20


class Modes(LinkOption):
    """The settle modes that a link asks for."""

    def __init__(self, sender: int, receiver: int):
        self.sender, self.receiver = sender, receiver

    def apply(self, link: Link) -> None:
        link.snd_settle_mode, link.rcv_settle_mode = self.sender, self.receiver


AT_MOST_ONCE = Modes(Link.SND_SETTLED, Link.RCV_FIRST)
RECEIVER_FIRST = Modes(Link.SND_UNSETTLED, Link.RCV_FIRST)
RECEIVER_SECOND = Modes(Link.SND_UNSETTLED, Link.RCV_SECOND)


SESSION = symbol("com.microsoft:session-filter")


class InSession(LinkOption):
    """A receiver of one message session: of that name, or the next one that comes in so many seconds."""

    def __init__(self, name: str | None, wait: float | None = None, modes: Modes = RECEIVER_SECOND):
        self.filter, self.wait, self.modes = Filter({SESSION: name}), wait, modes

    def apply(self, link: Link) -> None:
        self.modes.apply(link)
        self.filter.apply(link)
        if self.wait is not None:
            link.properties = {symbol("com.microsoft:timeout"): uint(round(self.wait * 1000))}

    def test(self, link: Link) -> bool:
        return link.is_receiver


def session_of(receiver) -> str:
    """The session that was granted."""
    filters = receiver.link.remote_source.filter
    filters.rewind()
    filters.next()
    return filters.get_object()[SESSION]


def connect(**options) -> BlockingConnection:
    """The broker's plain-text port, without a name, unless the options say otherwise."""
    return BlockingConnection(timeout=DEADLINE, **{"url": URL, "allowed_mechs": "ANONYMOUS", **options})


class TestCase(unittest.TestCase):
    """A test with a connection of its own."""

    def setUp(self):
        self.connection = connect()
        self.addCleanup(self.connection.close)

    def sender(self, address: str, options=None):
        return self.connection.create_sender(address, name=unique_name(), options=options)

    def send(self, address: str, *messages: Message, options=None):
        """Sends, and waits until each is accepted: anything else raises."""
        sender = self.sender(address, options)
        for message in messages:
            sender.send(message)
        sender.close()

    def receiver(self, address: str, options=RECEIVER_SECOND, connection=None):
        """A receiver without credit."""
        return (connection or self.connection).create_receiver(address, name=unique_name(), options=options)

    def receive(self, receiver, count: int) -> list[tuple[Message, Delivery | None]]:
        """Exactly `count` messages, each with its delivery (none when it came settled)."""
        return [self._take(receiver, receiver.receive(DEADLINE)) for _ in range(count)]

    def receive_one(self, receiver) -> tuple[Message, Delivery | None]:
        return self.receive(receiver, 1)[0]

    def available(self, receiver, credit: int = 100) -> list[tuple[Message, Delivery | None]]:
        """What comes for `credit` that is taken back by a drain."""
        receiver.link.drain(credit)
        # Drained, and all that came before is decoded.
        receiver.connection.wait(lambda: not receiver.link.draining() and not receiver.link.queued, msg="drain")
        received = []
        while receiver.fetcher.has_message:
            received.append(self._take(receiver, receiver.fetcher.pop()))
        return received

    def nothing(self, receiver, seconds: float = 1) -> None:
        """Nothing arrives for that long. It is how a test lets time pass, too."""
        with self.assertRaises(Timeout):
            receiver.receive(seconds)

    def settle(self, delivery: Delivery, state, connection=None) -> None:
        """Proposes an outcome, waits until the broker confirms the same, then settles."""
        delivery.update(state)
        (connection or self.connection).wait(lambda: delivery.settled, msg="settlement")
        self.assertEqual(delivery.remote_state, state)
        self.assertIsNone(delivery.remote.condition)
        delivery.settle()

    def complete(self, delivery: Delivery, connection=None) -> None:
        self.settle(delivery, Delivery.ACCEPTED, connection)

    def abandon(self, delivery: Delivery) -> None:
        delivery.local.failed = True
        self.settle(delivery, Delivery.MODIFIED)

    def defer(self, delivery: Delivery, properties: dict | None = None, connection=None) -> None:
        delivery.local.undeliverable = True
        if properties:
            delivery.local.annotations = {symbol(name): properties[name] for name in properties}
        self.settle(delivery, Delivery.MODIFIED, connection)

    def dead_letter(self, delivery: Delivery, reason: str, description: str, connection=None) -> None:
        delivery.local.condition = dead_letter(reason, description)
        self.settle(delivery, Delivery.REJECTED, connection)

    def lost(self, delivery: Delivery, condition: str = "com.microsoft:message-lock-lost") -> None:
        """An outcome comes too late."""
        delivery.update(Delivery.ACCEPTED)
        self.connection.wait(lambda: delivery.settled, msg="settlement")
        self.assertEqual((delivery.remote_state, delivery.remote.condition.name), (Delivery.REJECTED, condition))
        delivery.settle()

    def take(self, address: str, count: int) -> list[tuple[Message, Delivery]]:
        """Receives so many, and completes them."""
        receiver = self.receiver(address)
        received = self.receive(receiver, count)
        for _, delivery in received:
            self.complete(delivery)
        receiver.close()
        return received

    def here(self, address: str, connection=None) -> list:
        """What is available at an address; it is given back."""
        receiver = self.receiver(address, connection=connection)
        received = self.available(receiver)
        for _, delivery in received:
            self.settle(delivery, Delivery.RELEASED, connection)
        receiver.close()
        return bodies(received)

    def refused(self, create, *arguments, condition: str, text: str = "", **options) -> None:
        """A link that the broker does not want."""
        with self.assertRaises(LinkDetached) as raised:
            create(*arguments, **options)
        self.assertEqual(raised.exception.condition, condition)
        self.assertIn(text, str(raised.exception))

    def other(self, **options) -> BlockingConnection:
        """One more connection."""
        connection = connect(**options)
        self.addCleanup(connection.close)
        return connection

    def reason(self, message: Message, reason: str, description: str | None = None) -> None:
        """Why it is a dead letter."""
        self.assertEqual(message.properties["DeadLetterReason"], reason)
        if description is not None:
            self.assertEqual(message.properties["DeadLetterErrorDescription"], description)

    @staticmethod
    def _take(receiver, message: Message) -> tuple[Message, Delivery | None]:
        unsettled = receiver.fetcher.unsettled
        return message, unsettled.popleft() if unsettled else None


def unique_name() -> str:
    """Proton names a link after its address: a second one of that name would take the place of the first."""
    return str(uuid.uuid4())


def dead_letter(reason: str, description: str) -> Condition:
    info = {symbol("DeadLetterReason"): reason, symbol("DeadLetterErrorDescription"): description}
    return Condition("com.microsoft:dead-letter", None, info)


def numbers(received) -> list[int]:
    return [message.annotations["x-opt-sequence-number"] for message, _ in received]


def number(message: Message) -> int:
    return message.annotations["x-opt-sequence-number"]


def origin(message: Message) -> int:
    """The number it had where it was sent to."""
    return message.annotations["x-opt-enqueue-sequence-number"]


def stamp(message: Message, name: str) -> float:
    """A time that the broker wrote, in seconds since 1970."""
    return message.annotations[f"x-opt-{name}"] / 1000


def now() -> float:
    return time.time()


def numbered(count: int) -> list[Message]:
    return [Message(body=number) for number in range(1, count + 1)]


def bodies(received) -> list:
    return [plain(message.body) for message, _ in received]


def plain(value):
    """Proton decodes binary as a view of its buffer."""
    return bytes(value) if isinstance(value, memoryview) else value


def counts(received) -> list[int]:
    return [message.delivery_count for message, _ in received]
