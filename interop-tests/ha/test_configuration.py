"""The configuration of servers that share a store, followed while they run; and their restart one by one, as at an upgrade."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faults import CLIENT_SECONDS
from fleet import Fleet, Server, configuration, wait
from load import QUEUES, Load
from postgres import Cluster

NAMESPACES = ["one", "two", "three"]
# A file is read every two seconds, as is the store.
FOLLOW_SECONDS = 20
# While a server is restarted in order, no namespace may be without an acknowledgement for longer: a second to hand it over, what the client
# takes to connect again, and some more because it may be given away again when the server has come.
RESTART_SECONDS = 1.0 + CLIENT_SECONDS + 1.5


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "postgres", standbys=1) as made:
        yield made


def ask(server: Server, path: str, method: str = "GET", body: object = None) -> tuple[int, dict]:
    """The status and the body of an answer of the API. While a namespace moves, it is asked again."""
    deadline = time.monotonic() + FOLLOW_SECONDS
    while True:
        status, answer = server.ask(method, path, body, 5)
        if status not in (502, 503) or time.monotonic() > deadline:
            return status, answer
        time.sleep(0.1)


def start(server: Server) -> None:
    """Starts a server; returns when it knows the namespaces."""
    server.start()
    wait(lambda: ask(server, "fleet")[1].get("looked_ms_ago") is not None, 30, f"{server} did not look at the store")


def paths(fleet: Fleet, namespace: str) -> set[str]:
    """The entities of a namespace, by any server."""
    status, found = ask(fleet.running[0], f"entities?kind=queue&namespace={namespace}")
    return {entity["path"] for entity in found["entities"]} if status == 200 else set()


def told(fleet: Fleet, text: str) -> list[Server]:
    """The servers whose log has a text."""
    return [server for server in fleet.servers if text in server.broker.log_tail(100_000)]


def written(cluster: Cluster) -> list[int]:
    """The numbers of the configurations that the store has."""
    return [number for number, in cluster.query("select number from jitney.configuration order by number")]


def followed(condition: Callable[[], object], complaint: str) -> None:
    wait(condition, FOLLOW_SECONDS, complaint)


def applied(cluster: Cluster, namespaces: list[str]) -> bool:
    """Whether the newest configuration was applied to each of the namespaces."""
    found = cluster.query("select n.name from jitney.namespace n join jitney.namespace_state s on s.namespace = n.id"
                          " where s.applied = (select hash from jitney.configuration order by number desc limit 1)")
    return set(namespaces) <= {name for name, in found}


def queues(*names: str, **properties: object) -> dict:
    return {"Queues": [{"Name": name, "Properties": properties} for name in names]}


def test_a_change_of_the_file_is_written_once_and_reaches_every_namespace(cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path / "Config.json", {name: queues("kept", "dropped") for name in NAMESPACES})
    with Fleet(tmp_path / "fleet", cluster.url(), 3, config, proxied=False) as fleet:
        fleet.wait_owned(*NAMESPACES)
        before = written(cluster)
        assert len(before) == 1
        assert ask(fleet.servers[0], "entities/dropped?namespace=three", "DELETE")[0] == 204
        # Another queue, another property, a new namespace; and nothing more of `three`.
        changed = {**{name: queues("kept", "added", LockDuration="PT20S") for name in NAMESPACES[:2]}, "four": queues("new")}
        configuration(config, changed)
        followed(lambda: "added" in paths(fleet, "one") and "added" in paths(fleet, "two"), "the new queue was not made")
        followed(lambda: paths(fleet, "four") == {"new"}, "the new namespace was not made")
        followed(lambda: applied(cluster, [*NAMESPACES, "four"]), "the configuration was not applied to each namespace")
        _, kept = ask(fleet.servers[0], "entities/kept?namespace=one")
        assert kept["properties"]["lock_duration"] == "PT20S", kept
        # What the file names no longer stays, and a namespace always.
        assert paths(fleet, "one") == {"kept", "dropped", "added"}
        assert paths(fleet, "three") == {"kept"}
        after = written(cluster)
        assert len(after) == 2, "three servers have read the same change"
        warned = told(fleet, "jitney namespaces delete three")
        assert len(warned) == 1, f"one server has written it, and says what stays: {warned}"
        # What was deleted since is not made again, and an unchanged file is not written.
        assert ask(fleet.servers[0], "entities/added?namespace=two", "DELETE")[0] == 204
        for server in fleet.servers:
            assert server.stop() == 0
            start(server)
        fleet.wait_owned(*NAMESPACES, "four")
        assert paths(fleet, "two") == {"kept", "dropped"}
        assert written(cluster) == after
        assert fleet.finish() == []


def test_entities_are_deleted_on_demand_also_in_a_namespace_that_moves(cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path / "Config.json", {name: queues("kept", "dropped") for name in NAMESPACES})
    with Fleet(tmp_path / "fleet", cluster.url(), 2, config, arguments=["--config-deletes"], proxied=False) as fleet:
        fleet.wait_owned(*NAMESPACES)
        status, _ = ask(fleet.servers[0], "entities/kept/send?namespace=three", "POST", {"messages": [{"body": "stays"}]})
        assert status in (200, 201), status
        # Its namespaces have no server when the file changes, and are taken over with another configuration than before.
        fleet.servers[0].kill()
        configuration(config, {name: queues("kept") for name in NAMESPACES[:2]})
        for name in NAMESPACES[:2]:
            followed(lambda name=name: paths(fleet, name) == {"kept"}, f"the queue of {name} was not deleted")
        followed(lambda: applied(cluster, NAMESPACES), "the configuration was not applied to each namespace")
        assert paths(fleet, "three") == {"kept", "dropped"}, "a file deletes no namespace"
        _, entity = ask(fleet.servers[1], "entities/kept?namespace=three")
        assert entity["counts"]["active"] == 1, entity
        fleet.servers[0].start()
        assert fleet.finish() == []


def test_entities_are_deleted_in_a_store_that_has_no_copy_of_the_text_before(tmp_path: Path) -> None:
    names = [*NAMESPACES, "four"]
    config = configuration(tmp_path / "Config.json", {name: queues("kept", "dropped") for name in names})
    with Cluster(tmp_path / "a", standbys=0) as first, Cluster(tmp_path / "b", standbys=0) as second:
        stores = {"a": first.url(), "b": second.url()}
        with Fleet(tmp_path / "fleet", stores, 1, config, arguments=["--config-deletes"], proxied=False) as fleet:
            fleet.wait_owned(*names)
            followed(lambda: sum(len(each.query("select namespace from jitney.namespace_state where applied is not null")) for each in (first, second)) == len(names),
                     "the configuration was not applied to each namespace")
            assert second.query("select name from jitney.namespace"), "the second store has some"
            # As if the store had been away when the text was copied.
            second.query("delete from jitney.configuration")
            configuration(config, {name: queues("kept") for name in names})
            for name in names:
                followed(lambda name=name: paths(fleet, name) == {"kept"}, f"the queue of {name} was not deleted")
            assert fleet.finish() == []


def test_a_log_that_takes_nothing_keeps_no_other_namespace_from_being_configured(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(1, 9)]
    config = configuration(tmp_path / "Config.json", {name: queues("kept") for name in names})
    with Cluster(tmp_path / "a", standbys=0) as a, Cluster(tmp_path / "b", standbys=0) as b:
        with Fleet(tmp_path / "fleet", {"a": a.url(), "b": b.url()}, 1, config, proxied=False) as fleet:
            fleet.wait_owned(*names)
            of_a, of_b = ([name for name, in store.query("select name from jitney.namespace order by id")] for store in (a, b))
            assert of_a and of_b, f"the namespaces are in both stores: {of_a}, {of_b}"

            def are_configured(store: Cluster, some: list[str]) -> bool:
                """Whether the newest configuration, which the first store has, was applied to some namespaces of a store."""
                [(newest,)] = a.query("select hash from jitney.configuration order by number desc limit 1")
                found = store.query("select n.name from jitney.namespace n join jitney.namespace_state s on s.namespace = n.id"
                                    " where s.applied = %s", newest)
                return set(some) <= {name for name, in found}

            followed(lambda: are_configured(a, of_a) and are_configured(b, of_b), "the configuration was not applied to each namespace")
            tables = a.query("select format('jitney.log_%%s_%%s', s.namespace, s.segment) from jitney.segment s"
                             " join jitney.namespace n on n.id = s.namespace where n.name = %s and not s.removed", of_a[0])
            # Readers pass, and appends wait.
            with a.primary.connect() as holder, holder.transaction():
                for table, in tables:
                    holder.execute(f"lock table {table} in share mode")
                configuration(config, {name: queues("kept", "added") for name in names})
                followed(lambda: len(written(a)) == 2, "the change was not written")
                followed(lambda: are_configured(b, of_b), "the other store's namespaces were not configured")
                followed(lambda: are_configured(a, of_a[1:]), "the other namespaces of the store were not configured")
                # A later change does not wait for the end of this one either.
                configuration(config, {name: queues("kept", "added", "last") for name in names})
                followed(lambda: len(written(a)) == 3, "the second change was not written")
                followed(lambda: are_configured(b, of_b), "the second change did not reach the other store")
                assert not are_configured(a, of_a[:1]), "it was not held up"
            followed(lambda: are_configured(a, of_a), "the namespace was not configured when its log took records again")
            assert paths(fleet, of_a[0]) == {"kept", "added", "last"}
            assert fleet.finish() == []


def test_of_two_files_the_one_that_changed_last_counts(cluster: Cluster, tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.json", tmp_path / "other.json"
    configuration(mine, {"one": queues("mine.1")})
    configuration(other, {"one": queues("other.1")})
    fleet = Fleet(tmp_path / "fleet", cluster.url(), 2, mine, proxied=False)
    with fleet:
        first, second = fleet.servers
        assert second.stop() == 0
        second.broker.state_file.write_text(json.dumps({**second.broker.state, "config": str(other)}))
        start(second)
        followed(lambda: paths(fleet, "one") == {"mine.1", "other.1"}, "the file of the second server was not applied")
        configuration(mine, {"one": queues("mine.2")})
        followed(lambda: "mine.2" in paths(fleet, "one"), "the file that changed was not applied")
        configuration(other, {"one": queues("other.2")})
        followed(lambda: "other.2" in paths(fleet, "one"), "the file that changed last was not applied")
        followed(lambda: applied(cluster, ["one"]), "the newest configuration was not applied")
        settled = written(cluster)
        assert len(settled) == 4
        # The server whose file was overridden does not write it back, not even when it starts.
        assert first.stop() == 0
        start(first)
        followed(lambda: "A changed file becomes the newest" in first.broker.log_tail(), "the server says nothing of its file")
        assert written(cluster) == settled
        # A text that the store had before counts again when a file becomes it.
        status, answer = ask(first, "entities/mine.1?namespace=one", "DELETE")
        assert status == 204, answer
        configuration(mine, {"one": queues("mine.1")})
        followed(lambda: "mine.1" in paths(fleet, "one"), "a text that the store had before was not applied")
        followed(lambda: applied(cluster, ["one"]), "the newest configuration was not applied")
        assert len(written(cluster)) == 4 and written(cluster)[-1] > settled[-1]
        assert fleet.finish() == []


def test_a_file_with_mistakes_changes_nothing_and_an_impossible_entity_nothing_else(cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path / "Config.json", {"one": queues("kept")})
    with Fleet(tmp_path / "fleet", cluster.url(), 2, config, proxied=False) as fleet:
        fleet.wait_owned("one")
        config.write_text("{")
        followed(lambda: len(told(fleet, "the previous one stays")) == 2, "the servers do not say that the file has mistakes")
        assert len(written(cluster)) == 1
        # It forwards to nothing: what is named beside it is made, also in a namespace that is taken over for the first time.
        broken = {"Queues": [{"Name": "broken", "Properties": {"ForwardTo": "nothing"}}, {"Name": "fine"}]}
        configuration(config, {"one": broken, "two": broken})
        for name in ("one", "two"):
            followed(lambda name=name: "fine" in paths(fleet, name), f"the other queue of {name} was not made")
        followed(lambda: told(fleet, "the configuration cannot be applied in this part"), "no server says what is impossible")
        assert cluster.query("select count(*) from jitney.namespace_state where quarantined is not null") == [(0,)]
        assert fleet.finish() == []


# Refuses the first statement that clears the server of a namespace. A sequence keeps its number when a transaction is rolled back.
REFUSAL = """
create sequence jitney.refusals;
create function jitney.refuse() returns trigger language plpgsql security definer as $$ begin
    if new.server is null and old.server is not null and nextval('jitney.refusals') = 1 then
        raise exception 'refused for a test';
    end if;
    return new;
end $$;
create trigger refuse before update on jitney.namespace for each row execute function jitney.refuse();
"""


def test_a_stop_in_order_is_no_death_though_a_handover_fails(cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path / "Config.json", {name: queues("kept") for name in NAMESPACES})
    with Fleet(tmp_path / "fleet", cluster.url(), 1, config, proxied=False) as fleet:
        [server] = fleet.servers
        fleet.wait_owned(*NAMESPACES)
        cluster.query(REFUSAL)
        assert server.stop() == 0
        log = server.broker.log_tail(100_000)
        assert log.count("could not be given away") == 1, log
        assert "had not ended" in log, log
        assert cluster.query("select name from jitney.namespace where num_nonnulls(owner, server, incarnation) <> 0") == []
        start(server)
        fleet.wait_owned(*NAMESPACES)
        assert cluster.query("select namespace, failures from jitney.namespace_state where failures <> 0") == []
        # An owner that is killed is counted.
        server.kill()
        start(server)
        fleet.wait_owned(*NAMESPACES)
        assert cluster.query("select failures from jitney.namespace_state") == [(1,)] * len(NAMESPACES)
        assert fleet.finish() == []


def test_servers_are_restarted_one_by_one_under_load(cluster: Cluster, tmp_path: Path) -> None:
    """An upgrade: each server ends by SIGTERM and starts again, when the one before is well. No message is lost, and no namespace is silent
    for long."""
    config = configuration(tmp_path / "Config.json", {name: {"Queues": QUEUES} for name in NAMESPACES})
    with Fleet(tmp_path / "fleet", cluster.url(), 3, config) as fleet:
        fleet.wait_owned(*NAMESPACES)
        restarts: list[tuple[Server, float, float]] = []
        with Load(tmp_path / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
            load.wait_more(10)
            for server in fleet.servers:
                since = time.monotonic()
                assert server.stop() == 0, server.broker.log_tail()
                load.wait_more(5)
                server.start()
                wait(lambda: len(fleet.balancer.well()) == len(fleet.servers), 30, "a server did not become well again")
                # What an operator waits for before the next one: each namespace has a server, and this one has its share.
                wait(lambda server=server: server.owned(), 30, "a server that came back got no namespace")
                fleet.wait_owned(*NAMESPACES)
                load.wait_more(5)
                restarts.append((server, since, time.monotonic()))
            auditor = load.finish()
        assert auditor.violations == []
        for server, since, until in restarts:
            for name in NAMESPACES:
                silence = auditor.silence(name, since, until)
                print(f"{server}, {name}: {silence:.1f} s")
                assert silence is not None and silence < RESTART_SECONDS, f"{name} was silent for {silence} s while {server} was restarted"
        assert fleet.finish() == []
