import os
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from servicebus import ServiceBusContainer

IMAGE = os.environ.get("JITNEY_IMAGE", "jitney:latest")


@pytest.fixture(scope="module")
def connection_string():
    with ServiceBusContainer(IMAGE).with_config(Path(__file__).with_name("Config.json")) as container:
        yield container.get_connection_string()


def test_an_order_is_received(connection_string):
    with ServiceBusClient.from_connection_string(connection_string) as client:
        with client.get_queue_sender("orders") as sender, client.get_queue_receiver("orders") as receiver:
            sender.send_messages(ServiceBusMessage("hello"))
            [message] = receiver.receive_messages(max_wait_time=10)
            assert str(message) == "hello"
            receiver.complete_message(message)


def test_news_reach_the_subscription(connection_string):
    with ServiceBusClient.from_connection_string(connection_string) as client:
        with client.get_topic_sender("news") as sender, client.get_subscription_receiver("news", "eu") as receiver:
            sender.send_messages(ServiceBusMessage("published"))
            [message] = receiver.receive_messages(max_wait_time=10)
            assert str(message) == "published"
            receiver.complete_message(message)
