"""Two servers that were given the same name."""

from __future__ import annotations

import time
from pathlib import Path

from conftest import NAMESPACES
from fleet import Fleet, wait
from postgres import Cluster

# For so long both are watched. A server that took its name back would do that twice a second.
WATCHED_SECONDS = 8.0
TAKEN = "another server with this name is alive: this one serves nothing of the store until the other has stopped"
SILENT = "the other servers have declared this one dead, or may have its namespaces, or one with its name has come"


def incarnations(cluster: Cluster) -> set[str | None]:
    """Those that have the namespaces. The name of the server does not tell which of the two it is."""
    return {incarnation for incarnation, in cluster.query("select incarnation::text from jitney.namespace")}


def wait_taken_from(cluster: Cluster, before: set[str | None]) -> None:
    """Waits until servers of other incarnations have all namespaces."""
    wait(lambda: not incarnations(cluster) & {*before, None}, 30, "it does not take the namespaces")


def test_a_server_does_not_take_its_name_back_from_another_one(tmp_path: Path, config: Path) -> None:
    """It is frozen, and a replacement has its name when it continues. If both took the name in turns, each turn would be a death of all owners,
    and the namespaces would end in quarantine."""
    with Cluster(tmp_path / "postgres", standbys=0) as cluster, Fleet(tmp_path / "first", cluster.url(), 1, config, proxied=False) as first:

        def state() -> list[tuple[object, ...]]:
            """Who has the namespaces, by which acquisition, and the deaths that are counted."""
            return cluster.query("select n.name, n.epoch, n.incarnation::text, coalesce(s.failures, 0), s.quarantined from jitney.namespace n"
                                 " left join jitney.namespace_state s on n.id = s.namespace order by 1")

        first.wait_owned(*NAMESPACES)
        one, = first.servers
        one.freeze()
        # Both fleets have one server, of the same name and at the same address.
        with Fleet(tmp_path / "second", cluster.url(), 1, config, proxied=False) as second:
            two, = second.servers
            assert one.name == two.name
            second.wait_owned(*NAMESPACES)
            before = state()
            assert [failures for *_, failures, _ in before] == [1] * len(before), before
            one.thaw()
            wait(lambda: TAKEN in one.broker.log_tail(100_000), 30, "it does not say that another server has its name")
            until = time.monotonic() + WATCHED_SECONDS
            while time.monotonic() < until:
                assert state() == before
                time.sleep(0.1)
            assert two.owned() == set(NAMESPACES)
            told = one.broker.log_tail(100_000)
            assert told.count(TAKEN) == told.count(SILENT) == 1, told
            assert SILENT not in two.broker.log_tail(100_000)
            held = incarnations(cluster)
            assert second.finish() == []
        # The name is free, and nothing is counted for a server that has left.
        wait_taken_from(cluster, held)
        first.wait_owned(*NAMESPACES)
        assert [(failures, quarantined) for *_, failures, quarantined in state()] == [(1, None)] * len(before)
        assert first.finish() == []


def test_a_server_joins_when_the_one_that_has_its_name_is_killed(tmp_path: Path, config: Path) -> None:
    with Cluster(tmp_path / "postgres", standbys=0) as cluster, Fleet(tmp_path / "first", cluster.url(), 1, config, proxied=False) as first:
        first.wait_owned(*NAMESPACES)
        one, = first.servers
        one.freeze()
        with Fleet(tmp_path / "second", cluster.url(), 1, config, proxied=False) as second:
            second.wait_owned(*NAMESPACES)
            one.thaw()
            wait(lambda: TAKEN in one.broker.log_tail(100_000), 30, "it does not say that another server has its name")
            held = incarnations(cluster)
            second.servers[0].kill()
        wait_taken_from(cluster, held)
        first.wait_owned(*NAMESPACES)
        assert first.finish() == []
