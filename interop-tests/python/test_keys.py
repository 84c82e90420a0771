"""S264 to S269 and S287: who has a key, or a signature made with one, does what its rule says, and nothing else."""

import time
from datetime import timedelta

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusAuthorizationError

import both
from conftest import Queue, bodies, complete, nothing, receive, soon
from secured import LISTENER_KEY, ROOT, ROOT_KEY, SPEAKER_KEY, key, signature
from descriptions import access, refused

# The SDK tries three times more when it is told "unauthorized".
ONCE = {"retry_total": 0}
# A bad token is refused at once, and a good one for something else when it is used.
UNAUTHORIZED = (ServiceBusAuthenticationError, ServiceBusAuthorizationError)


async def denied_sending(entity, kinds=UNAUTHORIZED) -> None:
    with pytest.raises(kinds):
        await entity.send("denied")
    with pytest.raises(kinds):
        await entity.schedule(soon(3600), "denied")


async def denied_receiving(queue: Queue, kinds=UNAUTHORIZED) -> None:
    with pytest.raises(kinds):
        async with queue.receiver() as receiver:
            await receiver.receive_messages(max_wait_time=1)
    with pytest.raises(kinds):
        await queue.peek()


async def denied(queue: Queue, kinds=UNAUTHORIZED) -> None:
    await denied_sending(queue, kinds)
    await denied_receiving(queue, kinds)


async def works(queue: Queue) -> None:
    await queue.send("there")
    assert bodies(await queue.take(1)) == ["there"]


async def test_s264_a_wrong_key_and_an_unknown_name_are_unauthorized(administrator, secured):
    await administrator.create_queue("s264")
    for name, secret in ((ROOT, "wrong"), ("no-such-name", ROOT_KEY)):
        await denied(Queue(secured.keyed(name, secret, **ONCE), "s264"), ServiceBusAuthenticationError)
    for name, secret in ((ROOT, ROOT_KEY.lower()), ("speaker", LISTENER_KEY)):
        with pytest.raises(ServiceBusAuthenticationError):
            await Queue(secured.keyed(name, secret, **ONCE), "s264").send("denied")
    queue = secured.queue("s264")
    assert await queue.peek() == []
    await works(queue)


async def test_s264_keys_of_the_namespace_allow_what_their_rules_say(administrator, secured):
    await administrator.create_queue("s264b")
    speaker = Queue(secured.keyed("speaker", SPEAKER_KEY, **ONCE), "s264b")
    listener = Queue(secured.keyed("listener", LISTENER_KEY, **ONCE), "s264b")
    await speaker.send("1")
    await denied_receiving(speaker, ServiceBusAuthorizationError)
    await denied_sending(listener, ServiceBusAuthorizationError)
    assert bodies(await listener.take(1)) == ["1"]


async def test_s264_a_named_key_in_place_of_a_connection_string(administrator, secured):
    await administrator.create_queue("s264c")
    await works(Queue(secured.of(AzureNamedKeyCredential(ROOT, ROOT_KEY)), "s264c"))
    await denied(Queue(secured.of(AzureNamedKeyCredential(ROOT, "wrong"), **ONCE), "s264c"), ServiceBusAuthenticationError)


async def test_s265_a_signature_is_good_for_its_resource_and_its_time(administrator, secured):
    for name in ("s265", "s265b"):
        await administrator.create_queue(name)
    host = secured.secured.address
    # The namespace, in the ways that clients write it.
    for resource in (f"sb://{host}/", f"amqps://{host}", f"https://{host}/", f"SB://{host}:5671"):
        await works(Queue(secured.bearing(signature(resource)), "s265"))
    await works(Queue(secured.of(AzureSasCredential(signature(f"sb://{host}/s265"))), "s265"))
    own = secured.bearing(signature(f"sb://{host}/s265"), **ONCE)
    await works(Queue(own, "s265"))
    await denied(Queue(own, "s265b"))


async def test_s265_a_bad_signature_opens_nothing(administrator, secured):
    await administrator.create_queue("s265f")
    whole = f"sb://{secured.secured.address}/"
    good = signature(whole)
    for bad in (
        signature(whole, secret="wrong"), good.replace("&se=", "&se=1"), good.replace("&skn=", "&skn=x"),
        good.replace("sr=sb", "sr=https"), signature(f"{whole}s265"), "SharedAccessSignature sr=nonsense&se=99999999999",
    ):
        with pytest.raises(UNAUTHORIZED):
            await Queue(secured.bearing(bad, **ONCE), "s265f").send("denied")
    assert await secured.queue("s265f").peek() == []


class Claimed:
    """A credential that says of a signature that it is good for an hour, so that the SDK leaves its end to the broker."""

    # By this the SDK knows a signature.
    token_type = b"servicebus.windows.net:sastoken"

    def __init__(self, kind: str, text: str):
        self.text = text
        # The one client awaits it, the other does not.
        self.get_token = self.get_token_later if kind == "aio" else self.get_token_now

    def get_token_now(self, *scopes, **options) -> AccessToken:
        return AccessToken(self.text, int(time.time()) + 3600)

    async def get_token_later(self, *scopes, **options) -> AccessToken:
        return self.get_token_now()


async def test_s265_a_signature_whose_time_is_over_opens_nothing(administrator, secured, kind):
    await administrator.create_queue("s265d")
    over = signature(f"sb://{secured.secured.address}/", seconds=-3600)
    await denied(Queue(secured.bearing(over, **ONCE), "s265d"))
    await denied(Queue(secured.of(Claimed(kind, over), **ONCE), "s265d"), ServiceBusAuthenticationError)


async def test_s265_a_link_ends_with_its_signature(administrator, secured, kind):
    await administrator.create_queue("s265c")
    # Long enough for the links to be opened and used.
    claimed = Claimed(kind, signature(f"sb://{secured.secured.address}/s265c", seconds=15))
    queue = Queue(secured.of(claimed, **ONCE), "s265c")
    # A sender sends before it reads that its link has ended, and finds out why when it tries again.
    again = queue.through(secured.of(claimed, retry_total=1))
    async with again.sender() as sender, queue.receiver() as receiver:
        await sender.send_messages(ServiceBusMessage("1"))
        await complete(receiver, await receive(receiver, 1))
        with pytest.raises(ServiceBusAuthorizationError, match="ExpiredToken"):
            await receiver.receive_messages(max_wait_time=60)
        with pytest.raises(UNAUTHORIZED):
            await sender.send_messages(ServiceBusMessage("2"))
    await denied(queue)
    # As the SDK finds it without the claim: it knows the end, and says so itself.
    queue = Queue(secured.bearing(signature(f"sb://{secured.secured.address}/s265c", seconds=15), **ONCE), "s265c")
    async with queue.receiver() as receiver:
        with pytest.raises(UNAUTHORIZED):
            await receiver.receive_messages(max_wait_time=60)


class Fresh(AzureSasCredential):
    """A signature that is a new one whenever the SDK asks, good for some seconds."""

    def __init__(self, resource: str, seconds: int):
        self.resource, self.seconds, self.asked = resource, seconds, 0
        super().__init__(signature(resource, seconds=seconds))

    @property
    def signature(self) -> str:
        self.asked += 1
        return signature(self.resource, seconds=self.seconds)


async def test_s265_tokens_are_replaced_without_a_break(administrator, secured):
    """A session is held, and its message locked, beyond the end of the first token: a link that broke would have lost both."""
    await administrator.create_queue("s265e", requires_session=True, lock_duration=timedelta(minutes=5))
    fresh = Fresh(f"sb://{secured.secured.address}/s265e", seconds=60)
    queue = Queue(secured.of(fresh, **ONCE), "s265e")
    async with queue.sender() as sender:
        await sender.send_messages(ServiceBusMessage("held", session_id="x"))
        async with queue.session("x") as receiver:
            (held,) = await receive(receiver, 1)
            asked, sent = fresh.asked, 0
            deadline = time.monotonic() + 65
            # The SDK replaces a token while it works, in the last tenth of the token's time: here in six seconds.
            while time.monotonic() < deadline:
                sent += 1
                await sender.send_messages(ServiceBusMessage(str(sent), session_id="x"))
                (each,) = await receive(receiver, 1)
                assert str(each) == str(sent)
                await receiver.complete_message(each)
            await receiver.complete_message(held)
            await nothing(receiver)
    # Both links had another token.
    assert fresh.asked - asked >= 2 and sent > 20


async def test_s266_a_key_allows_what_its_rule_says_on_its_entity(administrator, secured):
    listener, speaker = access("listener", "Listen"), access("speaker", "Send")
    manager = access("manager", "Manage", "Send", "Listen")
    await administrator.create_queue("s266", authorization_rules=[listener, speaker, manager])
    await administrator.create_queue("s266b")

    sends = Queue(secured.keyed("speaker", speaker.primary_key, **ONCE), "s266")
    await sends.send(*"123")
    await sends.cancel(await sends.schedule(soon(3600), "4"))
    await denied_receiving(sends, ServiceBusAuthorizationError)

    listens = Queue(secured.keyed("listener", listener.secondary_key, **ONCE), "s266")
    assert await listens.left() == ["1", "2", "3"]
    async with listens.receiver() as receiver:
        messages = await receive(receiver, 3)
        await receiver.renew_message_lock(messages[0])
        await receiver.complete_message(messages[0])
        await receiver.defer_message(messages[1])
        await receiver.dead_letter_message(messages[2])
        await complete(receiver, await receiver.receive_deferred_messages(messages[1].sequence_number))
    assert bodies(await listens.take_dead(1)) == ["3"]
    await denied_sending(listens, ServiceBusAuthorizationError)

    await works(Queue(secured.keyed("manager", manager.primary_key), "s266"))
    for rule in (manager, speaker, listener):
        await denied(Queue(secured.keyed(rule.key_name, rule.primary_key, **ONCE), "s266b"))
    await denied(Queue(secured.keyed("speaker", listener.primary_key, **ONCE), "s266"))


async def test_s266_a_session_needs_the_right_to_listen(administrator, secured):
    listener, speaker = access("listener", "Listen"), access("speaker", "Send")
    await administrator.create_queue("s266s", requires_session=True, authorization_rules=[listener, speaker])
    sends = Queue(secured.keyed("speaker", speaker.primary_key, **ONCE), "s266s")
    await sends.send(ServiceBusMessage("1", session_id="x"))
    listens = Queue(secured.keyed("listener", listener.primary_key, **ONCE), "s266s")
    assert await listens.sessions() == ["x"]
    async with listens.session("x") as receiver:
        await receiver.session.set_state("seen")
        await complete(receiver, await receive(receiver, 1))
    for accept in (sends.session("x"), sends.next_session(1)):
        with pytest.raises(ServiceBusAuthorizationError):
            async with accept:
                pass
    with pytest.raises(UNAUTHORIZED):
        await sends.sessions()


async def test_s267_keys_of_a_topic_are_good_for_its_subscriptions(administrator, secured):
    listener, speaker = access("listener", "Listen"), access("speaker", "Send")
    await administrator.create_topic("s267", authorization_rules=[listener, speaker])
    await administrator.create_subscription("s267", "a")
    topic = secured.topic("s267")
    sends = topic.through(secured.keyed("speaker", speaker.primary_key, **ONCE))
    await sends.send("1", "2")
    await denied_receiving(sends.subscription("a"))
    listens = topic.through(secured.keyed("listener", listener.primary_key, **ONCE))
    await denied_sending(listens)
    subscription = listens.subscription("a")
    async with subscription.receiver() as receiver:
        messages = await receive(receiver, 2)
        await receiver.complete_message(messages[0])
        await receiver.dead_letter_message(messages[1])
    assert bodies(await subscription.take_dead(1)) == ["2"]


async def test_s268_a_key_that_was_replaced_opens_nothing_more(administrator, secured):
    before, after = access("speaker", "Send"), access("speaker", "Send")
    after.primary_key, after.secondary_key = before.secondary_key, key("another")
    made = await administrator.create_queue("s268", authorization_rules=[before])
    old = Queue(secured.keyed("speaker", before.primary_key, **ONCE), "s268")
    await old.send("1")
    await administrator.update_queue(made, authorization_rules=[after])
    await denied_sending(old, ServiceBusAuthenticationError)
    for secret in (before.secondary_key, after.secondary_key):
        await Queue(secured.keyed("speaker", secret, **ONCE), "s268").send("2")
    assert bodies(await secured.queue("s268").take(3)) == ["1", "2", "2"]
    # Without a rule there is no key.
    await administrator.update_queue(await administrator.get_queue("s268"), authorization_rules=[])
    await denied_sending(Queue(secured.keyed("speaker", after.primary_key, **ONCE), "s268"), ServiceBusAuthenticationError)


async def test_s269_the_emulators_connection_string_is_verified_too(administrator, suite_administrator, secured, connect, connection_string):
    await administrator.create_queue("s269")
    emulator = secured.secured.connection_string(host=f"localhost:{secured.secured.broker.amqp_port}") + ";UseDevelopmentEmulator=true"
    await works(Queue(connect(emulator), "s269"))
    await denied(Queue(connect(emulator.replace(ROOT_KEY, "SAS_KEY_VALUE"), **ONCE), "s269"), ServiceBusAuthenticationError)
    # Where no key is verified any key is good.
    await suite_administrator.create_queue("s269")
    await works(Queue(connect(connection_string.replace("SAS_KEY_VALUE", "another")), "s269"))


async def test_s287_administration_needs_the_right_to_manage(administrator, secured):
    speaker = access("speaker", "Send", "Listen")
    manager = access("manager", "Manage", "Send", "Listen")
    await administrator.create_queue("s287", authorization_rules=[speaker, manager])
    broker = secured.secured
    for text in (
        broker.connection_string(ROOT, "wrong"), broker.connection_string("no-such-name"),
        broker.connection_string("speaker", speaker.primary_key), broker.connection_string("listener", LISTENER_KEY),
        broker.bearing("SharedAccessSignature sr=nonsense&se=99999999999"),
    ):
        other = secured.administrator(text)
        with refused(401, ClientAuthenticationError):
            await other.create_queue("s287b")
        with refused(401, ClientAuthenticationError):
            await other.delete_queue("s287")
        with refused(401, ClientAuthenticationError):
            await other.get_queue("s287")
        with refused(401, ClientAuthenticationError):
            await both.listed(other, "list_queues")
        with refused(401, ClientAuthenticationError):
            await other.get_namespace_properties()
    await administrator.get_queue("s287")
    # A signature, as the SDK sends it: for a bearer.
    signed = secured.administrator(broker.bearing(signature(f"https://{broker.address}")))
    assert (await signed.get_queue("s287")).name == "s287"
