import os

import pytest
from azure.servicebus import ServiceBusClient

from servicebus import ServiceBusContainer

IMAGE = os.environ.get("JITNEY_IMAGE", "jitney:latest")


def test_the_text_of_a_configuration_names_the_entities():
    text = '{"UserConfig": {"Namespaces": [{"Name": "tests", "Queues": [{"Name": "of-the-text"}]}]}}'
    with ServiceBusContainer(IMAGE).with_config(text) as container:
        with ServiceBusClient.from_connection_string(container.get_connection_string()) as client:
            with client.get_queue_receiver("of-the-text") as receiver:
                assert receiver.peek_messages() == []


def test_a_mistake_in_the_configuration_is_in_the_error():
    text = '{"UserConfig": {"Namespaces": [{"Queues": [{"Name": "q", "Properties": {"LockDuration": "long"}}]}]}}'
    with pytest.raises(RuntimeError, match="LockDuration"), ServiceBusContainer(IMAGE).with_config(text):
        pass
