"""S261 to S263: TLS and WebSockets, by themselves and on every port."""

import ssl

import pytest
from azure.core.exceptions import ServiceRequestError
from azure.servicebus import ServiceBusMessage, TransportType
from azure.servicebus.exceptions import ServiceBusError

from conftest import Queue, bodies, complete, nothing, numbers, receive, soon

SIZES = (1, 200 * 1024)
# The ports of the secured broker: those that the SDK goes to by itself, and two more, which are there for plain AMQP and HTTP.
PORTS = ("amqps", "https", "amqp", "http")


@pytest.fixture
def port(request, secured) -> str:
    broker, address = secured.secured.broker, secured.secured.address
    return {
        "amqps": f"{address}:5671", "https": f"{address}:443",
        "amqp": f"localhost:{broker.amqp_port}", "http": f"localhost:{broker.http_port}",
    }[request.param]


async def works(queue: Queue) -> None:
    """Small and large messages go through, and what the management node does."""
    await queue.send(*(bytes(size) for size in SIZES))
    async with queue.receiver() as receiver:
        messages = await receive(receiver, len(SIZES))
        assert [b"".join(each.body) for each in messages] == [bytes(size) for size in SIZES]
        await complete(receiver, messages)
    await queue.cancel(await queue.schedule(soon(3600), "later"))
    assert await queue.peek() == []


async def test_s261_a_connection_string_of_production_is_all_that_it_takes(administrator, secured):
    await administrator.create_queue("s261")
    await works(secured.queue("s261"))


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("port", PORTS, indirect=True)
async def test_s261_amqps_on_every_port(secured, administrator, port, version):
    context = ssl.create_default_context(cafile=secured.secured.authority)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    # The SDK goes to another port in no other way than by an endpoint of the user's own.
    client = secured.client(custom_endpoint_address=f"sb://{port}", transport_type=TransportType.Amqp, ssl_context=context)
    name = f"s261-{port.replace(':', '-')}-{version}"
    await administrator.create_queue(name)
    await works(Queue(client, name))


async def test_s262_a_client_that_does_not_trust_the_authority_is_not_served(administrator, secured, administer):
    await administrator.create_queue("s262")
    text = secured.secured.connection_string()
    for options in ({}, {"transport_type": TransportType.AmqpOverWebsocket}):
        with pytest.raises(ServiceBusError) as caught:
            await Queue(secured.connect(text, retry_total=0, **options), "s262").send("1")
        assert "CERTIFICATE_VERIFY_FAILED" in everything(caught.value)
    with pytest.raises(ServiceRequestError, match="CERTIFICATE_VERIFY_FAILED|certificate verify failed"):
        await administer(text, retry_total=0).get_queue("s262")
    assert await secured.queue("s262").peek() == []


def everything(error: BaseException | None) -> str:
    """What an error says, and those that it comes from."""
    return "" if error is None else f"{error!r} {everything(error.__cause__ or error.__context__)}"


async def test_s263_websockets_by_themselves(administrator, secured):
    await administrator.create_queue("s263")
    await works(Queue(secured.client(transport_type=TransportType.AmqpOverWebsocket), "s263"))


@pytest.mark.parametrize("port", PORTS, indirect=True)
async def test_s263_websockets_with_tls_on_every_port(secured, administrator, port):
    name = f"s263-{port.replace(':', '-')}"
    await administrator.create_queue(name)
    await works(Queue(secured.client(custom_endpoint_address=f"sb://{port}"), name))


@pytest.mark.parametrize("port", PORTS, indirect=True)
async def test_s263_websockets_without_tls_on_every_port(secured, administrator, port):
    name = f"s263-ws-{port.replace(':', '-')}"
    await administrator.create_queue(name)
    # The emulator's switch is the SDK's way to leave TLS out.
    text = secured.secured.connection_string(host=port) + ";UseDevelopmentEmulator=true"
    await works(Queue(secured.connect(text, custom_endpoint_address=f"sb://{port}"), name))


async def test_s263_sessions_and_batches_over_a_websocket(administrator, secured):
    await administrator.create_queue("s263s", requires_session=True)
    queue = Queue(secured.client(transport_type=TransportType.AmqpOverWebsocket), "s263s")
    await queue.send_batch(*(ServiceBusMessage(str(n), session_id="x") for n in range(100)))
    state = bytes(range(256)) * 400
    async with queue.session("x") as receiver:
        messages = await receive(receiver, 100)
        assert (bodies(messages), numbers(messages)) == ([str(n) for n in range(100)], list(range(1, 101)))
        await receiver.session.set_state(state)
        assert await receiver.session.get_state() == state
        await complete(receiver, messages)
        await nothing(receiver)
