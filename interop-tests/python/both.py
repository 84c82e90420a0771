"""One face for the two Python clients, so that every scenario is written once.

The asynchronous client is used as it is. The blocking one is wrapped so that its calls can be awaited: each runs in a worker
thread, one after the other as the scenario says, and what it does inside is the blocking client's own code.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import azure.servicebus
import azure.servicebus.aio
import azure.servicebus.aio.management
import azure.servicebus.management
from azure.core.credentials import AccessToken

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import identity  # noqa: E402


class Blocking:
    """A client, sender, receiver, message session or administrator of the blocking SDK, with methods that can be awaited."""

    # These make senders and receivers, without any input or output.
    FACTORIES = ("get_queue_sender", "get_queue_receiver", "get_topic_sender", "get_subscription_receiver")

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        value = getattr(self.inner, name)
        if name == "session":
            return value and Blocking(value)
        if not callable(value):
            return value
        if name in self.FACTORIES:
            return lambda *args, **kwargs: Blocking(value(*args, **kwargs))

        async def call(*args, **kwargs):
            return await asyncio.to_thread(value, *args, **kwargs)

        return call

    async def __aenter__(self):
        await asyncio.to_thread(self.inner.__enter__)
        return self

    async def __aexit__(self, *details):
        await asyncio.to_thread(self.inner.__exit__, *details)

    def __aiter__(self):
        return self

    async def __anext__(self):
        message = await asyncio.to_thread(next, self.inner, None)
        if message is None:
            raise StopAsyncIteration
        return message


class BlockingRenewer:
    """The blocking SDK's lock renewer."""

    def __init__(self):
        self.inner = azure.servicebus.AutoLockRenewer()

    def register(self, receiver, renewable, **kwargs):
        renewable = renewable.inner if isinstance(renewable, Blocking) else renewable
        self.inner.register(receiver.inner, renewable, **kwargs)

    async def close(self):
        await asyncio.to_thread(self.inner.close)


# The SDK tries three times more when it is told "not found" or "disabled"; sooner than by default, to save minutes.
OPTIONS = {"retry_backoff_factor": 0.1}


def client(kind: str, text: str, **options):
    """A client, from a connection string, or from a host and a `credential`; `options` are the SDK's, and go before ours."""
    options = {**OPTIONS, **options}
    maker = azure.servicebus.aio.ServiceBusClient if kind == "aio" else azure.servicebus.ServiceBusClient
    made = maker(text, **options) if "credential" in options else maker.from_connection_string(text, **options)
    return made if kind == "aio" else Blocking(made)


def administrator(kind: str, text: str, **options):
    """An administration client, from a connection string, or from a host and a `credential`; `options` are the SDK's."""
    package = azure.servicebus.aio.management if kind == "aio" else azure.servicebus.management
    maker = package.ServiceBusAdministrationClient
    made = maker(text, **options) if "credential" in options else maker.from_connection_string(text, **options)
    return made if kind == "aio" else Blocking(made)


class Credential:
    """A credential of the blocking SDK, whose tokens `make` makes."""

    def __init__(self, make):
        self.make = make

    def get_token(self, *scopes, **_) -> AccessToken:
        return AccessToken(self.make(), int(time.time()) + identity.LIFE_SECONDS)

    def close(self) -> None:
        pass


class CredentialOfAio:
    """The same for the asynchronous one."""

    def __init__(self, make):
        self.inner = Credential(make)

    async def get_token(self, *scopes, **_) -> AccessToken:
        return await asyncio.to_thread(self.inner.get_token)

    async def close(self) -> None:
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass


def credential(kind: str, make):
    return (CredentialOfAio if kind == "aio" else Credential)(make)


def redirect(administrator, address: str) -> None:
    """Microsoft's way to administer the emulator, without TLS on a port of its own: the SDK has no other."""
    getattr(administrator, "inner", administrator)._impl._client._base_url = address


async def listed(client, call: str, *args, **kwargs) -> list:
    """All that one of the client's listing calls finds, over all its pages."""
    if isinstance(client, Blocking):
        return await asyncio.to_thread(lambda: list(getattr(client.inner, call)(*args, **kwargs)))
    return [each async for each in getattr(client, call)(*args, **kwargs)]


async def pages(client, call: str, *args, **kwargs) -> list[list]:
    """The same, page by page."""
    if isinstance(client, Blocking):
        return await asyncio.to_thread(lambda: [list(page) for page in getattr(client.inner, call)(*args, **kwargs).by_page()])
    return [[each async for each in page] async for page in getattr(client, call)(*args, **kwargs).by_page()]


def lock_renewer(kind: str):
    return azure.servicebus.aio.AutoLockRenewer() if kind == "aio" else BlockingRenewer()


def failure_callback(kind: str, told):
    """What a lock renewer calls when it has failed: `told`, as the client wants it."""

    async def call(renewable, error):
        told(renewable, error)

    return call if kind == "aio" else told
