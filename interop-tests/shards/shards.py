#!/usr/bin/env python3
"""Two namespaces on two shards: each used by the Python SDK, its administration client and plain HTTP, both at the same time, before
and after the broker was killed."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.management import ServiceBusAdministrationClient

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import both  # noqa: E402
from broker import WORK, Broker  # noqa: E402

NAMESPACES = ("left", "right")
MESSAGES = 50
# Behind those, in each life.
SENT_OVER_HTTP = 1
LIVES = 2

# The names lead here, as lines in /etc/hosts would.
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **options: resolve(
    "localhost" if str(host).endswith(".localhost") else host, *rest, **options
)


def configuration(directory: Path) -> Path:
    def namespace(name: str) -> dict:
        return {
            "Name": name,
            "Queues": [{"Name": "plain"}, {"Name": "kept"}, {"Name": "grouped", "Properties": {"RequiresSession": True}}],
            "Topics": [{"Name": "news", "Subscriptions": [{"Name": "all"}]}],
        }

    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "Config.json"
    file.write_text(json.dumps({"UserConfig": {"Namespaces": [namespace(name) for name in NAMESPACES]}}))
    return file


class Use:
    """One namespace, as its clients see it."""

    def __init__(self, broker: Broker, namespace: str, life: int):
        self.broker, self.namespace, self.life = broker, namespace, life
        self.host = f"{namespace}.localhost"
        text = broker.connection_string
        self.bus = ServiceBusClient.from_connection_string(text.replace("localhost", self.host, 1))
        http = f"Endpoint=sb://{self.host}:{broker.http_port};SharedAccessKeyName=any;SharedAccessKey=any;UseDevelopmentEmulator=true;"
        self.administrator = ServiceBusAdministrationClient.from_connection_string(http)
        both.redirect(self.administrator, f"http://{self.host}:{broker.http_port}")

    def all(self) -> None:
        with self.bus:
            self.plain()
            self.kept()
            self.grouped()
            self.topic()
            self.administration()
            self.rest()

    def body(self, index: object) -> str:
        return f"{self.namespace} {self.life} {index}"

    def take(self, receiver, count: int) -> list:
        taken = []
        while len(taken) < count:
            messages = receiver.receive_messages(count - len(taken), max_wait_time=20)
            assert messages, f"{len(taken)} of {count} came"
            for message in messages:
                receiver.complete_message(message)
            taken += messages
        return taken

    def plain(self) -> None:
        expected = [self.body(index) for index in range(MESSAGES)]
        with self.bus.get_queue_sender("plain") as sender:
            for body in expected:
                sender.send_messages(ServiceBusMessage(body))
        with self.bus.get_queue_receiver("plain") as receiver:
            taken = self.take(receiver, MESSAGES)
        assert [str(message) for message in taken] == expected
        # Numbers go on where they were before the broker was killed, in each namespace by itself.
        first = 1 + self.life * (MESSAGES + SENT_OVER_HTTP)
        assert [message.sequence_number for message in taken] == list(range(first, first + MESSAGES))

    def kept(self) -> None:
        with self.bus.get_queue_receiver("kept") as receiver:
            found = [str(message) for message in receiver.peek_messages(100)]
        assert found == [f"{self.namespace} {life} kept" for life in range(self.life)], found
        with self.bus.get_queue_sender("kept") as sender:
            sender.send_messages(ServiceBusMessage(self.body("kept")))

    def grouped(self) -> None:
        with self.bus.get_queue_sender("grouped") as sender:
            sender.send_messages([ServiceBusMessage(self.body(index), session_id="one") for index in range(3)])
        with self.bus.get_queue_receiver("grouped", session_id="one") as receiver:
            expected = f"{self.namespace} {self.life - 1}".encode() if self.life else None
            assert receiver.session.get_state() == expected
            receiver.session.set_state(f"{self.namespace} {self.life}".encode())
            taken = self.take(receiver, 3)
        assert [str(message) for message in taken] == [self.body(index) for index in range(3)]

    def topic(self) -> None:
        with self.bus.get_topic_sender("news") as sender:
            sender.send_messages(ServiceBusMessage(self.body("news")))
        with self.bus.get_subscription_receiver("news", "all") as receiver:
            assert [str(message) for message in self.take(receiver, 1)] == [self.body("news")]

    def administration(self) -> None:
        made = f"made-{self.namespace}-{self.life}"
        self.administrator.create_queue(made)
        expected = {f"made-{self.namespace}-{life}" for life in range(self.life + 1)}
        assert {queue.name for queue in self.administrator.list_queues() if queue.name.startswith("made-")} == expected
        assert self.administrator.get_queue_runtime_properties("kept").active_message_count == self.life + 1

    def rest(self) -> None:
        def ask(method: str, path: str, body: bytes | None = None):
            request = urllib.request.Request(f"http://{self.host}:{self.broker.http_port}/plain/messages{path}", body, method=method)
            return urllib.request.urlopen(request, timeout=30)

        assert ask("POST", "", self.body("rest").encode()).status == 201
        assert ask("DELETE", "/head").read().decode() == self.body("rest")


def placed(broker: Broker) -> dict:
    return json.loads((Path(broker.state["data_dir"]) / "shards.json").read_text())["namespaces"]


def main() -> int:
    logging.disable(logging.CRITICAL)
    directory = Path(os.environ.get("JITNEY_WORK", WORK / "shards")) / "two-shards"
    shutil.rmtree(directory, ignore_errors=True)
    broker = Broker.create(directory, configuration(directory), ["--shards", "2"])
    passed = failed = 0
    try:
        for life in range(LIVES):
            broker.start()
            with ThreadPoolExecutor() as pool:
                uses = {name: pool.submit(Use(broker, name, life).all) for name in NAMESPACES}
                uses["placement"] = pool.submit(check_placement, broker)
                for name, use in uses.items():
                    error = use.exception()
                    passed, failed = passed + (error is None), failed + (error is not None)
                    print(f"{'ok    ' if error is None else 'FAILED'} {name}, life {life}{'' if error is None else f': {error!r}'}")
            broker.kill()
    finally:
        if broker.running():
            broker.kill()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def check_placement(broker: Broker) -> None:
    assert placed(broker) == {"left": 0, "right": 1}, placed(broker)


if __name__ == "__main__":
    sys.exit(main())
