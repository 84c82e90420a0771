"""S270: who has a token does what its roles say."""

import time

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusAuthorizationError

from conftest import Queue, bodies
from test_keys import ONCE, denied, denied_receiving, denied_sending, works


async def test_s270_an_identity_does_what_its_roles_say(secured, kind):
    def queue(role, **told) -> Queue:
        return Queue(secured.of(secured.identity(kind, role, **told), **ONCE), "s270")

    def administrator(role, **told):
        return secured.administrator(secured.secured.address, credential=secured.identity(kind, role, **told))

    owner = administrator("Owner")
    await owner.create_queue("s270")
    assert (await owner.get_queue("s270")).max_delivery_count == 10
    await works(queue("Owner"))
    await queue("Sender").send("sent")
    assert bodies(await queue("Receiver").take(1)) == ["sent"]
    await denied_receiving(queue("Sender"))
    await denied_sending(queue("Receiver"))

    now = int(time.time())
    for role, told in (
        (None, {}), ("Owner", {"aud": "https://vault.azure.net"}), ("Owner", {"iss": "https://other.invalid"}),
        ("Owner", {"exp": now - 3600}), ("Owner", {"nbf": now + 3600}), ("Owner", {"signer": "forger"}),
    ):
        with pytest.raises((ServiceBusAuthenticationError, ServiceBusAuthorizationError)):
            await queue(role, **told).send("denied")
    await denied(queue(None))
    for role, told in (("Sender", {}), ("Receiver", {}), (None, {}), ("Owner", {"exp": now - 3600})):
        with pytest.raises(ClientAuthenticationError):
            await administrator(role, **told).create_queue("s270b")
    assert await secured.queue("s270").left() == []
