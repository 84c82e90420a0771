"""S251: several namespaces behind one address."""

import socket

import pytest

from conftest import Queue, bodies, not_there, numbers


@pytest.fixture
def other_host(monkeypatch) -> str:
    """A host name that leads here, as a line in /etc/hosts would."""
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *args, **kwargs: resolve("localhost" if host == "other.example" else host, *args, **kwargs)
    )
    return "other.example"


async def test_s251_the_host_name_says_the_namespace(queue, connect, connection_string, other_host):
    other = queue.through(connect(connection_string.replace("localhost", other_host)))
    await queue.send("first")
    await other.send("other")
    await other.send("other again")
    for each, expected in ((queue, ["first"]), (other, ["other", "other again"])):
        messages = await each.take(len(expected))
        assert (bodies(messages), numbers(messages)) == (expected, list(range(1, len(expected) + 1)))
    await Queue(other.client, "s251only").send("1")
    with not_there():
        await Queue(queue.client, "s251only").send("1")
