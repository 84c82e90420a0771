"""The history of a namespace, which goes with it from server to server."""

from __future__ import annotations

from pathlib import Path

from fleet import Fleet, Server, configuration, wait
from load import patience
from postgres import Cluster

# Looks are ten seconds apart: two make an interval, and the first write comes with the second.
SEEN_SECONDS = 40.0


def busy(server: Server) -> dict[str, int]:
    """The ends of the intervals of the last hour in which messages came in, with their numbers."""
    status, answer = server.ask("GET", "entities/q/history?namespace=one")
    assert status == 200, answer
    return {point["at"]: point["incoming"] for point in answer["points"] if point["incoming"]}


def send(server: Server, count: int) -> None:
    status, answer = server.ask("POST", "entities/q/send?namespace=one", {"messages": [{"body": "x"}] * count})
    assert status == 200, answer


def owned_by_other(fleet: Fleet, server: Server) -> Server:
    return fleet.wait_owned("one", others_than=server)["one"]


def test_the_history_of_a_namespace_goes_with_it_to_its_next_owner(tmp_path: Path) -> None:
    config = configuration(tmp_path / "Config.json", {"zero": {}})
    with Cluster(tmp_path / "postgres", standbys=0) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 2, config) as fleet:
        # It is in no configuration file, so that it can be removed.
        status, answer = fleet.servers[0].ask("PUT", "namespaces/one")
        assert status == 201, answer
        first = fleet.wait_owned("one")["one"]
        status, answer = first.ask("PUT", "entities/q?namespace=one", {"kind": "queue", "properties": {}})
        assert status == 201, answer
        wait(lambda: first.ask("GET", "entities/q/history?namespace=one")[1]["points"], SEEN_SECONDS * patience(), "no interval has ended")
        send(first, 3)
        seen = wait(lambda: busy(first), SEEN_SECONDS * patience(), "nothing has come in")
        assert seen == {next(iter(seen)): 3}
        # It stops in order: the newest part goes with the namespace, too.
        assert first.stop() == 0
        second = owned_by_other(fleet, first)
        wait(lambda: busy(second) == seen, SEEN_SECONDS, "the next owner has no history")
        wait(lambda: second.ask("GET", "entities/q/history?namespace=one")[1]["gaps"], SEEN_SECONDS * patience(), "no gap is told")
        # It is killed: what was written until then is there, and nothing is told twice.
        first.start()
        second.kill()
        third = owned_by_other(fleet, second)
        assert third is first
        wait(lambda: busy(third) == seen, SEEN_SECONDS, "the history is lost with its server")
        assert not (Path(third.broker.state["data_dir"]) / "history.bin").exists()
        # A namespace that is removed leaves nothing.
        kept = "select count(*) from jitney.history h join jitney.namespace n on n.id = h.namespace where n.name = 'one'"
        assert cluster.query(kept) == [(1,)]
        [(number,)] = cluster.query("select id from jitney.namespace where name = 'one'")
        status, answer = third.ask("DELETE", "namespaces/one")
        assert status in (200, 204), answer
        assert cluster.query("select count(*) from jitney.history where namespace = %s", number) == [(0,)]
