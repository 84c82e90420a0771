"""Hosts that are cut off: every packet from and to one is lost, in both directions, and no connection is reset."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import NAMESPACES
from faults import LONG_SECONDS, TAKE_OVER_SECONDS
from fleet import Fleet, wait
from hosts import Network, NetworkError
from load import patience
from loads import Loads
from postgres import Cluster

# Of each host, how often it is cut off.
TIMES = 2


@pytest.fixture
def network() -> Iterator[Network]:
    try:
        with Network(3) as made:
            yield made
    except NetworkError as error:
        pytest.skip(f"network namespaces cannot be made: {error}; proxies cut servers off in the rounds")


@pytest.mark.long
def test_the_hosts_of_owners_are_cut_off(network: Network, tmp_path: Path, config: Path) -> None:
    """Clients are connected to them, and through others to them."""
    with Cluster(tmp_path / "postgres", listen=(network.own, 0)) as cluster:
        # The network is this machine alone: neither it nor the clients need keys.
        url = f"{cluster.url()}?sslmode=disable"
        with Fleet(tmp_path / "fleet", url, 3, config, ["--auth", "development", "--allow-any-key-beyond-loopback"], hosts=network.hosts) as fleet:
            fleet.wait_owned(*NAMESPACES)
            rounds = []
            with Loads(tmp_path, fleet.balancer.port, NAMESPACES) as load:
                for server in fleet.servers * TIMES:
                    load.wait_more(20)
                    owned = server.owned()
                    others = [each for each in fleet.servers if each is not server]
                    since = time.monotonic()
                    server.cut_off()
                    wait(lambda: owned <= set().union(*(each.owned() for each in others)), 2 * patience() * TAKE_OVER_SECONDS, f"no other server has {owned}")
                    taken = time.monotonic()
                    load.wait_more(5)
                    time.sleep(max(0.0, since + LONG_SECONDS - time.monotonic()))
                    rounds.append((server, len(owned), taken - since, since, time.monotonic()))
                    server.join()
                    wait(lambda: len(fleet.balancer.well()) == 3, 30, "a server did not become well again")
                    cluster.query("update jitney.namespace_state set failures = 0, died_at = null")
                    cluster.query("update jitney.server set deaths = 0")
                audits = load.finish()
            assert audits.violations == []
            late = []
            for server, count, taken, since, until in rounds:
                longest = audits.longest(NAMESPACES, since, until)
                print(f"{server} with {count} namespaces: others had them after {taken:.1f} s, and clients after {longest}")
                late += [f"{server}: {text}" for text in audits.late(NAMESPACES, since, until, TAKE_OVER_SECONDS)]
            assert late == []
            assert fleet.finish() == []
