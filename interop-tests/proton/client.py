"""What every test needs: a connection, links with settle modes, receives with a deadline."""

import os
import unittest
import uuid

from proton import Condition, Delivery, Link, Message, symbol
from proton.reactor import LinkOption
from proton.utils import BlockingConnection

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

    def settle(self, delivery: Delivery, state) -> None:
        """Proposes an outcome, waits until the broker confirms the same, then settles."""
        delivery.update(state)
        self.connection.wait(lambda: delivery.settled, msg="settlement")
        self.assertEqual(delivery.remote_state, state)
        self.assertIsNone(delivery.remote.condition)
        delivery.settle()

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


def numbered(count: int) -> list[Message]:
    return [Message(body=number) for number in range(1, count + 1)]


def bodies(received) -> list:
    return [plain(message.body) for message, _ in received]


def plain(value):
    """Proton decodes binary as a view of its buffer."""
    return bytes(value) if isinstance(value, memoryview) else value


def counts(received) -> list[int]:
    return [message.delivery_count for message, _ in received]
