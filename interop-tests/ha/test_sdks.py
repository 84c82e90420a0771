"""The official SDKs, with nothing but their defaults, while the owner of their namespace is lost: they connect again by themselves, and nothing that
was acknowledged is missing.

Each SDK has a program (steady.py says what it does) that keeps its client, its sender and its receiver over every loss. The .NET SDK has none:
the machines of the tests lack .NET.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fleet import Fleet, Server, configuration, wait
from loads import HERE, JAVA, TARGET, build_loads
from postgres import Cluster

NAMESPACE = "sdks"
PROGRAMS = {
    "python": [sys.executable, str(HERE / "steady.py")],
    "javascript": ["node", str(HERE / "jsload" / "steady.js")],
    "go": [str(TARGET / "steady")],
    "java": [*JAVA, "Steady"],
}
# Messages between two losses, and how long they may take: a program sends ten a second. A send of the JavaScript SDK that waits for its answer when the
# connection ends waits for 60 s more, and the SDK tries again 30 s later.
MESSAGES = 20
SECONDS = 120.0
# Errors that an SDK may give to the application at each loss: one of its sender, one of its receiver. The JavaScript SDK does not try again when a
# connection ends while it is opened ("Failed to connect"). The Python SDK's receiver, whose connection the sender has closed, may raise "'NoneType'
# object has no attribute 'listen'".
FAILURES_MAX = 2


class Client:
    """The program of an SDK, and what it has said."""

    def __init__(self, sdk: str, connection_string: str, log: Path):
        self.sdk = sdk
        # The messages that were acknowledged, and when.
        self.sent: dict[int, float] = {}
        self.received: set[int] = set()
        self.failures: list[str] = []
        self.log = log.open("w")
        self.process = subprocess.Popen([*PROGRAMS[sdk], connection_string, sdk], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "sent":
                self.sent[int(rest)] = time.monotonic()
            elif word == "received":
                self.received.add(int(rest))
            else:
                self.failures.append(line.strip())

    def __str__(self) -> str:
        return f"{self.sdk}: {len(self.sent)} sent, {len(self.received)} received, {self.failures[-3:]}"

    def pause(self, since: float) -> float:
        """Seconds from a time until it sent the next message."""
        return next(at for at in list(self.sent.values()) if at > since) - since

    def continues(self) -> None:
        """Waits until it has sent so many messages more, and received all that it has sent until now."""
        known = len(self.sent)
        wait(lambda: len(self.sent) >= known + MESSAGES, SECONDS, f"it does not send: {self}")
        sent = set(self.sent)
        wait(lambda: self.received >= sent, SECONDS, f"it does not receive: {self}, {sorted(sent - self.received)[:5]} are missing")

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def stop(owner: Server) -> None:
    assert owner.stop() == 0


LOSSES = (Server.kill, stop, Server.cut_off, Server.kill)


@pytest.mark.long
def test_clients_with_default_options_continue_by_themselves(tmp_path: Path) -> None:
    build_loads()
    subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=HERE / "jsload", check=True)
    config = configuration(tmp_path / "Config.json", {NAMESPACE: {"Queues": [{"Name": sdk} for sdk in PROGRAMS]}})
    with Cluster(tmp_path / "postgres", standbys=1) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 2, config) as fleet:
        clients = [Client(sdk, fleet.connection_string, tmp_path / f"{sdk}.log") for sdk in PROGRAMS]
        try:
            for client in clients:
                client.continues()
            for lose in LOSSES:
                owner = fleet.wait_owned(NAMESPACE)[NAMESPACE]
                lost = time.monotonic()
                lose(owner)
                fleet.wait_owned(NAMESPACE, others_than=owner)
                for client in clients:
                    client.continues()
                print(f"{lose.__name__}:", ", ".join(f"{client.sdk} {client.pause(lost):.1f} s" for client in clients))
                owner.join() if owner.running else owner.start()
                wait(lambda: len(fleet.balancer.well()) == 2, SECONDS, f"{owner} did not come back")
        finally:
            for client in clients:
                client.close()
        for client in clients:
            print(client)
            assert len(client.failures) <= FAILURES_MAX * len(LOSSES), client.failures
