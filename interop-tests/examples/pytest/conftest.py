"""One Jitney for a test session, and a namespace of its own for each test. Copy this file and Config.json.

JITNEY_BINARY names the program; without it, `jitney` is looked for in PATH. Each worker of pytest-xdist has its own
broker.
"""

import http.client
import os
import re
import shutil
import subprocess
import threading
import uuid
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import pytest

# Every namespace has the entities of this file.
CONFIG = Path(__file__).with_name("Config.json")
SECONDS = 30


@dataclass(frozen=True)
class Namespace:
    # Its host is NAME.localhost.
    connection_string: str
    # The broker's address, for `custom_endpoint_address`: not every machine resolves names below localhost.
    endpoint: str


class Broker:
    def __init__(self):
        program = shutil.which(os.environ.get("JITNEY_BINARY", "jitney"))
        if program is None:
            raise RuntimeError("There is no program `jitney` in PATH, nor where JITNEY_BINARY says.")
        # The broker stops when its input is closed, which the system does when this process ends, however it ends.
        options = "--ephemeral --amqp 127.0.0.1:0 --http 127.0.0.1:0 --stop-on-stdin-close".split()
        self.process = subprocess.Popen(
            [program, "serve", "--config", CONFIG, *options],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
        )
        timer = threading.Timer(SECONDS, self.process.kill)
        timer.start()
        log, found = "", None
        for line in self.process.stderr:
            log += line
            if found := re.search(r'Endpoint=sb://localhost:(\d+);[^\s"]+', line):
                break
        timer.cancel()
        if found is None:
            raise RuntimeError(f"The broker has not started:\n{log}")
        # The rest of the log is read, so that the broker never waits for that.
        threading.Thread(target=deque, args=(self.process.stderr, 0), daemon=True).start()
        self.connection_string, self.port = found[0], int(found[1])

    def create_namespace(self, name):
        self._request("PUT", name, CONFIG.read_bytes())
        place = f"localhost:{self.port}"
        return Namespace(self.connection_string.replace(place, f"{name}.{place}"), f"sb://{place}")

    def delete_namespace(self, name):
        self._request("DELETE", name)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(SECONDS)

    def _request(self, method, name, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        connection.request(method, f"/api/v1/namespaces/{name}", body)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {name}: {answer.status} {text}")


@pytest.fixture(scope="session")
def broker():
    broker = Broker()
    yield broker
    broker.stop()


@pytest.fixture
def namespace(broker):
    name = f"test-{uuid.uuid4().hex}"
    yield broker.create_namespace(name)
    broker.delete_namespace(name)
