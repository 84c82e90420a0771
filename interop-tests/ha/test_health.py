"""What servers say of their health to balancers and supervisors."""

from __future__ import annotations

import json
import urllib.error
from pathlib import Path

from fleet import Fleet, Server, configuration, wait
from load import patience
from postgres import Cluster

# How long a server may take to know that its store is away, or is back: its lease, and a beat on a new session.
KNOWN_SECONDS = 10.0


def asked(server: Server, path: str) -> tuple[int, str]:
    """The status and the text of an answer about a server's health."""
    try:
        return 200, json.loads(server.get(path, 5))["message"]
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["message"]


def test_a_server_without_a_namespace_is_ready_while_it_reaches_its_store(tmp_path: Path) -> None:
    config = configuration(tmp_path / "Config.json", {"one": {"Queues": [{"Name": "q"}]}})
    with Cluster(tmp_path / "postgres", standbys=0) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 2, config) as fleet:
        owner = fleet.wait_owned("one")["one"]
        other = next(server for server in fleet.servers if server is not owner)
        assert asked(other, "/health/ready")[0] == 200
        for network in other.stores.values():
            network.hold()
        wait(lambda: asked(other, "/health/ready")[0] == 503, KNOWN_SECONDS * patience(), "it is ready without its store")
        assert "reaches no store" in asked(other, "/health/ready")[1]
        assert asked(other, "/health/live")[0] == 200
        assert asked(owner, "/health/ready")[0] == 200
        wait(lambda: len(fleet.balancer.well()) == 1, KNOWN_SECONDS, "the balancer gives it clients")
        for network in other.stores.values():
            network.release()
        wait(lambda: asked(other, "/health/ready")[0] == 200, KNOWN_SECONDS * patience(), "it is not ready with its store")
        assert fleet.owner("one") is owner
        assert fleet.finish() == []
