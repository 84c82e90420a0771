"""What the scenarios share: a client, the scenario's own queue, and waiting for conditions."""

from __future__ import annotations

import os
import re
import sys
import time
import uuid
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue
from azure.servicebus.exceptions import MessagingEntityNotFoundError, OperationTimeoutError, ServiceBusAuthenticationError

import both
from proxy_process import FaultProxy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import secured as secured_broker  # noqa: E402
import identity  # noqa: E402
from broker import Broker  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--client", choices=["sync", "aio"], default="sync", help="which of the SDK's two clients")


@pytest.fixture
def kind(request) -> str:
    return request.config.getoption("--client")


@pytest.fixture
def connection_string() -> str:
    return os.environ["JITNEY_CONNECTION_STRING"]


@pytest.fixture
async def connect(kind, connection_string):
    """Makes further clients, closed at the end of the scenario."""
    made = []

    def make(text: str | None = None, **options):
        made.append(both.client(kind, text or connection_string, **options))
        return made[-1]

    yield make
    for each in made:
        await each.close()


@pytest.fixture
async def administer(kind):
    """Makes administrators, closed at the end of the scenario."""
    made = []

    def make(text: str, **options):
        made.append(both.administrator(kind, text, **options))
        return made[-1]

    yield make
    for each in made:
        await each.close()


@pytest.fixture
def secured(connect, administer) -> "SecuredClients":
    made = secured_broker.Secured(Path(os.environ["JITNEY_SECURED"]), os.environ["JITNEY_SECURED_ADDRESS"])
    return SecuredClients(made, connect, administer)


@pytest.fixture
def administrator(secured):
    """An administrator of the secured broker."""
    return secured.administrator()


@pytest.fixture
def suite_administrator(administer, connection_string, broker):
    """An administrator of the suite's own broker, over HTTP."""
    made = administer(connection_string)
    both.redirect(made, f"http://localhost:{broker.http_port}")
    return made


@pytest.fixture
def client(connect):
    return connect()


@pytest.fixture
def name(request) -> str:
    """The name of the queue or topic that belongs to the scenario: `test_s24_…` has `s24`."""
    return re.match(r"test_(s\d+)_", request.node.name)[1]


@pytest.fixture
def queue(client, name) -> "Queue":
    return Queue(client, name)


@pytest.fixture
async def make_queue(client, name, suite_administrator):
    """Makes queues with the properties given, which are deleted at the end of the scenario.

    For locks and lives that must not end while the scenario is at work on a busy machine, and for cases that run at the same time.
    """
    made = []

    async def make(**properties) -> Queue:
        made.append(f"{name}-{uuid.uuid4().hex}")
        await suite_administrator.create_queue(made[-1], **properties)
        return Queue(client, made[-1])

    yield make
    for each in made:
        await suite_administrator.delete_queue(each)


@pytest.fixture
async def own_queue(make_queue) -> "Queue":
    """A queue for one case alone of a scenario that has several: they may run at the same time."""
    return await make_queue()


@pytest.fixture
def topic(client, name) -> "Topic":
    return Topic(client, name)


def pytest_collection_modifyitems(items):
    """Refuses cases that would share a queue or a topic: one that got what another sent would fail now and then."""
    users = {}
    for item in items:
        scenario = re.match(r"test_(s\d+)_", item.name)
        if scenario and {"queue", "topic"} & set(item.fixturenames):
            users.setdefault(scenario[1], []).append(item.name)
    shared = [names for names in users.values() if len(names) > 1]
    if shared:
        raise pytest.UsageError(f"these cases share a queue or a topic, and must have own_queue: {shared}")


@pytest.fixture
async def proxy(broker):
    """A fault proxy in front of the suite's broker."""
    made = await FaultProxy.start(broker.amqp_port)
    yield made
    await made.end()


@pytest.fixture
def by_proxy(connect, connection_string, broker, proxy):
    """Makes clients that connect through it."""
    return lambda **options: connect(connection_string.replace(f":{broker.amqp_port}", f":{proxy.port}"), **options)


@pytest.fixture
def broker() -> Broker:
    return Broker(Path(os.environ["JITNEY_BROKER_STATE"]))


class SecuredClients:
    """The secured broker, and the clients that come to it, with strings such as the service's portal gives out."""

    def __init__(self, secured: secured_broker.Secured, connect, administer):
        self.secured = secured
        self.connect = connect
        self.administer = administer
        self.trust = {"connection_verify": secured.authority}

    def client(self, text: str | None = None, **options):
        """A client that trusts the broker's authority; with the key to everything, if no connection string is given."""
        return self.connect(text or self.secured.connection_string(), **{**self.trust, **options})

    def keyed(self, name: str, secret: str, **options):
        return self.client(self.secured.connection_string(name, secret), **options)

    def bearing(self, signature: str, **options):
        return self.client(self.secured.bearing(signature), **options)

    def of(self, credential, **options):
        """A client that is made with the namespace's name and a credential."""
        return self.connect(self.secured.address, credential=credential, **{**self.trust, **options})

    def identity(self, kind: str, role: str | None, signer: str = "issuer", **claims):
        """A credential with a role of the service, by a token of the issuer that the broker trusts or of the forger."""
        roles = [f"Azure Service Bus Data {role}"] if role else None
        return both.credential(kind, lambda: identity.token(self.secured.directory, {"roles": roles, **claims}, signer))

    def administrator(self, text: str | None = None, **options):
        return self.administer(text or self.secured.connection_string(), **{**self.trust, **options})

    def queue(self, name: str) -> "Queue":
        return Queue(self.client(), name)

    def topic(self, name: str) -> "Topic":
        return Topic(self.client(), name)


class Entity:
    """A queue, a topic or a subscription through one client."""

    def __init__(self, client, name: str):
        self.client = client
        self.name = name

    def through(self, client):
        """The same through another client."""
        return type(self)(client, self.name)

    def sender(self, **kwargs):
        return self.client.get_queue_sender(self.name, **kwargs)

    async def send(self, *messages) -> None:
        """Sends the messages one by one; a text is a message with that body."""
        async with self.sender() as sender:
            for each in messages:
                await sender.send_messages(message(each))

    async def send_batch(self, *messages) -> None:
        """Sends the messages as one batch."""
        async with self.sender() as sender:
            await sender.send_messages([message(each) for each in messages])

    async def schedule(self, when: datetime, *messages) -> list[int]:
        async with self.sender() as sender:
            return list(await sender.schedule_messages([message(each) for each in messages], when))

    async def cancel(self, numbers) -> None:
        async with self.sender() as sender:
            await sender.cancel_scheduled_messages(numbers)


class Queue(Entity):
    """A queue, or what else can be received from."""

    def receiver(self, **kwargs):
        return self.client.get_queue_receiver(self.name, **kwargs)

    def taker(self, **kwargs):
        """A receiver in receive-and-delete mode."""
        return self.receiver(receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE, **kwargs)

    def dead_letters(self, **kwargs):
        return self.receiver(sub_queue=ServiceBusSubQueue.DEAD_LETTER, **kwargs)

    def session(self, session_id: str, **kwargs):
        """A receiver that accepts the session of that id when it is opened."""
        return self.receiver(session_id=session_id, **kwargs)

    def next_session(self, wait: float, **kwargs):
        """A receiver that waits for any session when it is opened."""
        return self.receiver(session_id=NEXT_AVAILABLE_SESSION, max_wait_time=wait, **kwargs)

    async def sessions(self, **kwargs) -> list[str]:
        """The ids of the sessions that the SDK lists."""
        return sorted(await both.listed(self.client, "list_queue_sessions", self.name, **kwargs))

    async def take(self, count: int, **kwargs) -> list:
        """Receives `count` messages and completes them; nothing may be left."""
        async with self.receiver(**kwargs) as receiver:
            messages = await receive(receiver, count)
            await complete(receiver, messages)
            await nothing(receiver)
        return messages

    async def take_dead(self, count: int, **kwargs) -> list:
        return await self.take(count, sub_queue=ServiceBusSubQueue.DEAD_LETTER, **kwargs)

    async def peek(self, **kwargs) -> list:
        async with self.receiver() as receiver:
            return await receiver.peek_messages(**{"max_message_count": 100, "sequence_number": 1, **kwargs})

    async def defer(self, *messages) -> list[int]:
        """Sends the messages and defers them; returns their numbers."""
        await self.send(*messages)
        numbers = []
        async with self.receiver() as receiver:
            for each in await receive(receiver, len(messages)):
                await receiver.defer_message(each)
                numbers.append(each.sequence_number)
        return numbers

    async def left(self) -> list[str]:
        """The bodies of all that peek finds."""
        return bodies(await self.peek())


class Subscription(Queue):
    """A subscription of a topic; what is sent goes to the topic."""

    def __init__(self, client, topic: str, name: str):
        super().__init__(client, name)
        self.topic = topic

    def through(self, client) -> "Subscription":
        return Subscription(client, self.topic, self.name)

    def sender(self, **kwargs):
        return self.client.get_topic_sender(self.topic, **kwargs)

    def receiver(self, **kwargs):
        return self.client.get_subscription_receiver(self.topic, self.name, **kwargs)

    async def sessions(self, **kwargs) -> list[str]:
        return sorted(await both.listed(self.client, "list_subscription_sessions", self.topic, self.name, **kwargs))


class Topic(Entity):
    """A topic."""

    def sender(self, **kwargs):
        return self.client.get_topic_sender(self.name, **kwargs)

    def subscription(self, name: str) -> Subscription:
        return Subscription(self.client, self.name, name)


def message(content) -> ServiceBusMessage:
    return ServiceBusMessage(content) if isinstance(content, (str, bytes)) else content


def of(session_id: str, *contents: str) -> list[ServiceBusMessage]:
    """Messages of a session."""
    return [ServiceBusMessage(each, session_id=session_id) for each in contents]


def bodies(messages) -> list[str]:
    return [str(each) for each in messages]


def numbers(messages) -> list[int]:
    return [each.sequence_number for each in messages]


def soon(seconds: float) -> datetime:
    return datetime.now(timezone.utc) + timedelta(seconds=seconds)


async def receive(receiver, count: int, within: float = 40.0) -> list:
    """Receives exactly `count` messages, in as many calls as it takes. Fails when none has arrived for `within` seconds."""
    deadline = time.monotonic() + within
    found = []
    while len(found) < count:
        left = deadline - time.monotonic()
        assert left > 0, f"{len(found)} of {count} messages arrived, and no other within {within} s: {bodies(found)[-10:]}"
        if more := await receiver.receive_messages(max_message_count=count - len(found), max_wait_time=left):
            found += more
            deadline = time.monotonic() + within
    return found


@contextmanager
def not_there():
    """Asserts that the SDK is told, and tells, that there is no such entity. Of one that it opens a link to it hears that with
    the answer to its token, and so calls it an error of authentication; of one that goes while it has a link, by its name."""
    with pytest.raises((ServiceBusAuthenticationError, MessagingEntityNotFoundError)) as told:
        yield
    text = f"{told.value} {told.value.inner_exception}"
    assert re.search("The messaging entity .* could not be found", text), text


async def nothing(receiver, wait: float = 1.0) -> None:
    """Asserts that nothing arrives for a while. Also the way to let time pass: the SDK waits, for a message.

    The SDK opens a link within the same time, which a busy machine may not do: then it is tried again."""
    for attempt in range(5):
        try:
            found = await receiver.receive_messages(max_message_count=10, max_wait_time=wait)
        except OperationTimeoutError:
            if attempt == 4:
                raise
        else:
            assert bodies(found) == []
            return


def counts(messages) -> list[int]:
    return [each.delivery_count or 0 for each in messages]


async def complete(receiver, messages) -> None:
    for each in messages:
        await receiver.complete_message(each)
