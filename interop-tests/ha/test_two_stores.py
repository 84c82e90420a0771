"""Three servers over two stores: any server serves namespaces of both, and one store's absence suspends its namespaces only."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.exceptions import ServiceBusError

from fleet import BrokerError, Fleet, Server, configuration, wait
from load import QUEUES, Load, patience
from postgres import Cluster

pytestmark = pytest.mark.long

NAMESPACES = [f"n{number}" for number in range(1, 9)]
# How long a namespace may be silent after its store is back: a beat, and what an append's outcome takes to find out.
BACK_SECONDS = 20.0
# How long a namespace that has a server may take to send a message back.
EXCHANGE_SECONDS = 10.0
# How long it may take until all servers have as many namespaces.
SPREAD_SECONDS = 60.0


class Two:
    """Two stores and a fleet over both."""

    def __init__(self, directory: Path):
        self.a, self.b = (Cluster(directory / name, standbys=0) for name in "ab")
        self.directory = directory
        for cluster in (self.a, self.b):
            cluster.start()
        config = configuration(directory / "Config.json", {name: {"Queues": [{"Name": "q"}, *QUEUES]} for name in NAMESPACES})
        self.fleet = Fleet(directory / "fleet", {"a": self.a.url(), "b": self.b.url()}, 3, config)

    def rows(self, query: str, *values: object) -> dict[str, list[tuple]]:
        return {name: cluster.query(query, *values) for name, cluster in (("a", self.a), ("b", self.b))}

    def places(self) -> dict[str, str]:
        """The namespaces, and the stores that have them."""
        found = self.rows("select name from jitney.namespace")
        return {name: store for store, rows in found.items() for name, in rows}

    def close(self) -> None:
        self.fleet.close()
        for cluster in (self.a, self.b):
            cluster.close()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    world = Two(tmp_path_factory.mktemp("two"))
    try:
        world.fleet.start()
        # The first that has started had all.
        wait(lambda: sorted(len(server.owned()) for server in world.fleet.servers) == [2, 3, 3], SPREAD_SECONDS, "they are not spread")
        world.fleet.wait_owned(*NAMESPACES)
        yield world
        assert world.fleet.finish() == []
    finally:
        world.close()


# The machines of ports that names below `localhost` lead to.
HOSTS: dict[int, str] = {}


@pytest.fixture(autouse=True, scope="module")
def names_below_localhost() -> Iterator[None]:
    resolve = socket.getaddrinfo

    def lookup(name: str, port: int, *rest: object, **options: object) -> list:
        return resolve(HOSTS.get(port, "127.0.0.1") if str(name).endswith(".localhost") else name, port, *rest, **options)

    socket.getaddrinfo = lookup
    yield
    socket.getaddrinfo = resolve


def client(fleet: Fleet, namespace: str, server: Server | None = None, tries: int = 3) -> ServiceBusClient:
    if server:
        HOSTS[server.amqp[1]] = server.host
    return ServiceBusClient.from_connection_string(fleet.connection_string_for(namespace, server), retry_total=tries, retry_backoff_factor=0.2)


def exchange(fleet: Fleet, namespace: str, server: Server | None = None, seconds: float = EXCHANGE_SECONDS) -> None:
    """Sends a message, and receives it. Namespaces may move: what is lost with a connection is done again."""
    text, deadline = uuid.uuid4().hex, time.monotonic() + seconds * patience()
    while True:
        try:
            with client(fleet, namespace, server) as connected:
                with connected.get_queue_sender("q") as sender:
                    sender.send_messages(ServiceBusMessage(text))
                with connected.get_queue_receiver("q", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
                    while found := receiver.receive_messages(10, max_wait_time=3):
                        if text in map(str, found):
                            return
            raise ServiceBusError(f"{namespace} has not sent {text} back")
        except ServiceBusError:
            if time.monotonic() > deadline:
                raise


def post(server: Server, namespace: str) -> int:
    """Sends a message over HTTP; returns the status."""
    request = urllib.request.Request(f"http://{server.host}:{server.http[1]}/q/messages", b"x", {"Host": f"{namespace}.localhost"})
    try:
        with urllib.request.urlopen(request, timeout=15) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def shown(server: Server) -> dict:
    return json.loads(server.get("/api/v1/fleet"))


def test_every_namespace_is_in_one_store_and_its_name_is_reserved(two: Two) -> None:
    found = two.rows("select name from jitney.namespace order by name")
    places = two.places()
    assert set(places) == set(NAMESPACES)
    assert sum(map(len, found.values())) == len(NAMESPACES), "none is in both"
    assert set(places.values()) == {"a", "b"}, "both have some"
    reserved = {name: store for rows in two.rows("select name, store from jitney.reservation").values() for name, store in rows}
    assert reserved == places
    sets = two.rows("select stores, name, root_key, operator_key, peer_authority from jitney.store")
    assert sets["a"][0][0] == sets["b"][0][0]
    assert (sets["a"][0][1], sets["b"][0][1]) == ("a", "b")
    assert sets["a"][0][2:] == sets["b"][0][2:], "the keys are the same"


def test_any_server_serves_namespaces_of_both(two: Two) -> None:
    for server in two.fleet.servers:
        for namespace in NAMESPACES:
            exchange(two.fleet, namespace, server)
    # Namespaces of two stores have the same numbers there, and shards of their own here.
    for server in two.fleet.servers:
        shards = [line for line in server.get("/metrics").splitlines() if line.startswith("jitney_shard_healthy")]
        assert len(shards) == len(set(shards)) == len(server.owned())
    view = shown(two.fleet.servers[0])
    assert {it["name"]: it["store"] for it in view["namespaces"]} == two.places()
    assert [(it["name"], it["reached"], it["lease_held"]) for it in view["stores"]] == [("a", True, True), ("b", True, True)]


def test_a_store_that_is_away_suspends_its_namespaces_and_no_others(two: Two) -> None:
    places = two.places()
    of_a, of_b = ([name for name in NAMESPACES if places[name] == store] for store in "ab")
    epochs = "select name, epoch from jitney.namespace"
    before = dict(two.a.query(epochs))
    with client(two.fleet, of_b[0]) as kept, kept.get_queue_sender("q") as sender:
        sender.send_messages(ServiceBusMessage("before"))
        two.b.primary.kill()
        try:
            wait(lambda: all(not shown(server)["stores"][1]["lease_held"] for server in two.fleet.servers), 10, "leases of b are held")
            began = time.monotonic()
            while time.monotonic() < began + 6:
                for namespace in of_a:
                    exchange(two.fleet, namespace)
            assert dict(two.a.query(epochs)) == before, "nothing of a was taken over"
            for server in two.fleet.servers:
                for namespace in of_b:
                    assert post(server, namespace) == 503, f"{namespace} through {server}"
                    with pytest.raises(ServiceBusError) as caught, client(two.fleet, namespace, server, 0) as refused:
                        with refused.get_queue_sender("q") as other:
                            other.send_messages(ServiceBusMessage("lost"))
                    assert "com.microsoft:server-busy" in str(caught.value), repr(caught.value)
                for namespace in of_a:
                    assert post(server, namespace) == 201, f"{namespace} through {server}"
                view = shown(server)
                assert [it["reached"] for it in view["stores"]] == [True, False]
                assert {it["name"] for it in view["namespaces"]} == set(NAMESPACES), "none is forgotten"
            # A name that is to be reserved in the store that is away is busy; others are made.
            statuses = {make(two.fleet.servers[0], f"new-{number}") for number in range(12)}
            assert statuses == {201, 503}
        finally:
            two.b.primary.start()
        wait(lambda: all(shown(server)["stores"][1]["lease_held"] for server in two.fleet.servers), BACK_SECONDS, "leases of b are not held")
        sender.send_messages(ServiceBusMessage("after"))
    with client(two.fleet, of_b[0]) as connected, connected.get_queue_receiver("q") as receiver:
        texts = [str(message) for message in receiver.receive_messages(9, max_wait_time=5)]
    # The SDK may have sent the second one again, if its answer did not come.
    assert texts.count("before") == 1 <= texts.count("after"), texts
    for namespace in of_b[1:]:
        exchange(two.fleet, namespace)


def make(server: Server, namespace: str) -> int:
    return server.ask("PUT", f"namespaces/{namespace}")[0]


def test_nothing_that_was_acknowledged_is_lost_while_a_store_is_away(two: Two, tmp_path: Path) -> None:
    places = two.places()
    used = [next(name for name in NAMESPACES if places[name] == store) for store in "ab"]
    of_a, of_b = used
    with Load(tmp_path / "journal", f"127.0.0.1:{two.fleet.balancer.port}", used) as load:
        load.wait_more(20)
        networks = [server.stores["b"] for server in two.fleet.servers]
        for network in networks:
            network.down()
        wait(lambda: all(not shown(server)["stores"][1]["lease_held"] for server in two.fleet.servers), 10, "leases of b are held")
        before = load.acknowledged()[of_b]
        load.wait_more(50, namespaces=[of_a])
        assert load.acknowledged()[of_b] == before, "nothing is acknowledged without a lease"
        for network in networks:
            network.up()
        load.wait_more(20, namespaces=[of_b])
        auditor = load.finish()
    assert auditor.violations == []


def test_a_server_that_starts_while_a_store_is_away_confuses_no_namespaces(two: Two) -> None:
    places = two.places()
    of_a, of_b = ([name for name in NAMESPACES if places[name] == store] for store in "ab")
    server = two.fleet.servers[2]
    server.stop()
    two.b.primary.kill()
    try:
        server.start()
        exchange(two.fleet, of_a[0], server)
        for namespace in (of_b[0], "no-such-name"):
            assert post(server, namespace) == 503, f"{namespace} may be in the store that is away"
    finally:
        two.b.primary.start()
    wait(lambda: shown(server)["stores"][1]["lease_held"], BACK_SECONDS, "the server has not joined those of b")
    two.fleet.wait_owned(*NAMESPACES)
    exchange(two.fleet, of_b[0], server)


def test_a_file_is_written_when_the_first_store_is_back(two: Two, tmp_path: Path) -> None:
    server, name = two.fleet.servers[2], NAMESPACES[0]
    texts = "select count(*) from jitney.configuration"
    [(before,)] = two.a.query(texts)
    # The server alone has this file.
    changed = configuration(tmp_path / "Config.json", {it: {"Queues": [{"Name": "q"}, {"Name": "late"}, *QUEUES]} for it in NAMESPACES})
    server.stop()
    own = server.broker.state_file.read_text()
    server.broker.state_file.write_text(json.dumps({**json.loads(own), "config": str(changed)}))
    two.a.primary.kill()
    try:
        server.start()
    finally:
        two.a.primary.start()
    try:
        wait(lambda: two.a.query(texts) == [(before + 1,)], BACK_SECONDS, "the file was not written")
        wait(lambda: server.ask("GET", f"entities/late?namespace={name}")[0] == 200, BACK_SECONDS, "the file was not applied")
        said = server.broker.log_tail(100_000)
        assert "the configuration file is not recorded yet" in said and "newer configuration than this file" not in said, said
    finally:
        server.stop()
        server.broker.state_file.write_text(own)
        server.start()
    wait(lambda: shown(server)["stores"][0]["lease_held"], BACK_SECONDS, "the server has not joined those of a")
    two.fleet.wait_owned(*NAMESPACES)


def test_a_lost_server_s_namespaces_of_both_are_taken_over(two: Two) -> None:
    lost = two.fleet.servers[0]
    wait(lambda: {two.places()[name] for name in lost.owned()} == {"a", "b"}, SPREAD_SECONDS, "it has not some of both")
    lost.kill()
    two.fleet.wait_owned(*NAMESPACES, others_than=lost)
    for namespace in NAMESPACES:
        exchange(two.fleet, namespace)
    lost.start()
    wait(lost.owned, SPREAD_SECONDS, "nothing came back to it")


def test_a_log_with_records_of_a_later_release_is_left_to_servers_that_read_them(two: Two) -> None:
    name = NAMESPACES[0]
    cluster = {"a": two.a, "b": two.b}[two.places()[name]]
    number = "(select id from jitney.namespace where name = %s)"
    change = f"update jitney.namespace_state set formats = %s where namespace = {number}"
    owner = two.fleet.wait_owned(name)[name]
    # The row is there when the owner has recorded what it writes.
    wait(lambda: cluster.query(change + " returning 1", 99, name), 10, "the owner has not recorded what it writes")
    owner.stop()
    owner.start()
    others = [it for it in NAMESPACES if it != name]
    two.fleet.wait_owned(*others)
    # Longer than a late namespace is left to the server that should take it.
    until = time.monotonic() + 4
    while time.monotonic() < until:
        assert name not in two.fleet.owners()
        time.sleep(0.2)
    cluster.query(change + " returning 1", 17, name)
    two.fleet.wait_owned(name)
    exchange(two.fleet, name)


def test_servers_with_other_stores_are_refused(two: Two, tmp_path: Path) -> None:
    for number, (stores, complaint) in enumerate([
        ({"a": two.a.url()}, "give it the same --store"),
        (two.a.url(), "start it with --store a=URL"),
        ({"a": two.b.url(), "b": two.a.url()}, "start it with --store b=URL"),
        ({"a": two.a.url(), "b": two.a.url()}, "start it with --store a=URL"),
        ({"a": two.a.url(), "b": two.b.url(), "c": two.b.url()}, "start it with --store b=URL"),
    ]):
        other = Fleet(tmp_path / f"{number}", stores, 1)
        try:
            with pytest.raises(BrokerError, match=complaint):
                other.start()
        finally:
            other.close()


def test_a_store_is_added_by_starting_the_servers_again_one_after_the_other(tmp_path: Path) -> None:
    more = [*NAMESPACES, *(f"more-{number}" for number in range(8))]
    before, after = (configuration(tmp_path / f"{len(names)}.json", {name: {"Queues": [{"Name": "q"}]} for name in names})
                     for names in (NAMESPACES, more))
    with Cluster(tmp_path / "first", standbys=0) as first, Cluster(tmp_path / "second", standbys=0) as second:
        # The only store has the name `store`.
        old = Fleet(tmp_path / "old", first.url(), 2, before)
        new = Fleet(tmp_path / "new", {"store": first.url(), "second": second.url()}, 2, after)
        try:
            old.start()
            old.wait_owned(*NAMESPACES)
            exchange(old, NAMESPACES[0])
            old.servers[0].stop()
            new.servers[0].start()
            # The new store's namespaces would not be found by the server that does not know it.
            assert make(new.servers[0], "early") == 503
            exchange(new, NAMESPACES[0], new.servers[0])
            old.servers[1].stop()
            new.servers[1].start()
            new.wait_owned(*more)
            found = {cluster: {name for name, in cluster.query("select name from jitney.namespace")} for cluster in (first, second)}
            assert set(NAMESPACES) <= found[first], "what was there stays"
            assert found[second] and not found[first] & found[second]
            assert make(new.servers[1], "late") == 201
            assert make(new.servers[0], NAMESPACES[3]) == 409, "wherever its name is reserved now"
            with pytest.raises(BrokerError, match="give it the same --store"):
                old.servers[0].start()
        finally:
            for fleet in (old, new):
                fleet.close()


def test_a_store_that_comes_late_is_checked_and_gets_what_it_lacks_as_at_a_start(tmp_path: Path) -> None:
    config = configuration(tmp_path / "Config.json", {name: {"Queues": [{"Name": "q"}]} for name in NAMESPACES})
    with Cluster(tmp_path / "a", standbys=0) as a, Cluster(tmp_path / "b", standbys=0) as b:
        fleet = Fleet(tmp_path / "fleet", {"a": a.url(), "b": b.url()}, 1, config, proxied=False)
        server = fleet.servers[0]
        try:
            fleet.start()
            fleet.wait_owned(*NAMESPACES)
            server.stop()
            entered = "select incarnation, alive from jitney.server"
            before = b.query(entered)
            # It comes back as an older release has left it, and with a setting that loses messages.
            b.query("alter table jitney.namespace_state drop column quota")
            b.query("alter system set fsync = off")
            b.primary.stop()
            server.start()
            b.primary.start()
            wait(lambda: "fsync is off" in server.broker.log_tail(100_000), BACK_SECONDS * patience(), "the store is not refused")
            text = server.broker.log_tail(100_000)
            assert "fsync is off, and a crash of the machine loses acknowledged messages: set it to on, or use --store-unchecked" in text, text
            assert not shown(server)["stores"][1]["lease_held"]
            assert b.query(entered) == before, "it has not joined the servers of the store"
            # Its operator mends it, and the server needs no restart.
            b.query("alter system set fsync = on")
            b.query("select pg_reload_conf()")
            wait(lambda: shown(server)["stores"][1]["lease_held"], BACK_SECONDS * patience(), "the server has not joined those of b")
            columns = "select count(*) from information_schema.columns where table_name = 'namespace_state' and column_name = 'quota'"
            assert b.query(columns) == [(1,)]
            fleet.wait_owned(*NAMESPACES)
            assert server.broker.log_tail(100_000).count("a store that was away is not used") == 1
        finally:
            fleet.close()
