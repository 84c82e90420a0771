import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, TransportType


@pytest.fixture
def client(namespace):
    with ServiceBusClient.from_connection_string(
        namespace.connection_string, custom_endpoint_address=namespace.endpoint, transport_type=TransportType.Amqp,
    ) as client:
        yield client


def test_an_order_is_received(client):
    with client.get_queue_sender("orders") as sender, client.get_queue_receiver("orders") as receiver:
        sender.send_messages(ServiceBusMessage("hello"))
        [message] = receiver.receive_messages(max_wait_time=10)
        assert str(message) == "hello"
        receiver.complete_message(message)


def test_an_order_stays_in_the_queue(client):
    with client.get_queue_sender("orders") as sender:
        sender.send_messages(ServiceBusMessage("stays"))
    with client.get_queue_receiver("orders") as receiver:
        assert [str(message) for message in receiver.peek_messages(10)] == ["stays"]


def test_news_reach_the_subscription(client):
    with client.get_topic_sender("news") as sender, client.get_subscription_receiver("news", "eu") as receiver:
        sender.send_messages(ServiceBusMessage("published"))
        [message] = receiver.receive_messages(max_wait_time=10)
        assert str(message) == "published"
