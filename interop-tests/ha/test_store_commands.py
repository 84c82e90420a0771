"""`jitney store`: namespaces moved between data directories and a store, released, dropped, and the store after a restore."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import ServiceBusError

from conftest import store
from fleet import Fleet, Server, configuration, wait
from postgres import Cluster
from broker import Broker, binary  # fleet.py has made it known

LOCK = {"LockDuration": "PT10S"}
QUEUES = [
    {"Name": "plain", "Properties": LOCK},
    {"Name": "grouped", "Properties": LOCK | {"RequiresSession": True}},
    {"Name": "once", "Properties": LOCK | {"RequiresDuplicateDetection": True, "DuplicateDetectionHistoryTimeWindow": "PT1H"}},
    {"Name": "way", "Properties": {"ForwardTo": "news"}},
]
RED = {"Name": "red", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "colour = 'red'"}}}
TOPICS = [{"Name": "news", "Subscriptions": [{"Name": "all"}, {"Name": "red", "Rules": [RED]}]}]
# Where messages are, for a list of them.
PLACES = [("plain",), ("grouped",), ("once",), ("news", "all"), ("news", "red")]
# Names of two stores: the names of `orders` and of `others` are not reserved in the same one.
STORES = "ab"
# Sequence numbers that are left out after a restore.
GAP = 2**36


@pytest.fixture(autouse=True)
def names_below_localhost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names below `localhost` lead to this machine."""
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo",
                        lambda name, *rest, **options: resolve("127.0.0.1" if str(name).endswith(".localhost") else name, *rest, **options))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "postgres", standbys=1) as made:
        yield made


def listed(cluster: Cluster) -> dict[str, dict]:
    """The namespaces of the store by their names."""
    done = subprocess.run([binary(), "store", "list", "--store", cluster.url(), "--output", "json"], capture_output=True, check=True, timeout=60)
    return {found["name"]: found for found in json.loads(done.stdout)["namespaces"]}


def client(port: int, namespace: str) -> ServiceBusClient:
    text = (f"Endpoint=sb://{namespace}.localhost:{port};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
            "UseDevelopmentEmulator=true;")
    return ServiceBusClient.from_connection_string(text, retry_total=2)


def send(sbc: ServiceBusClient, entity: str, *messages: ServiceBusMessage) -> None:
    with sbc.get_queue_sender(entity) as sender:
        for message in messages:
            sender.send_messages(message)


def receiver(sbc: ServiceBusClient, place: tuple[str, ...], **options: object):
    if len(place) == 1:
        return sbc.get_queue_receiver(place[0], **options)
    return sbc.get_subscription_receiver(*place, **options)


def shown(message) -> tuple:
    """All that a client can see of a message."""
    return (
        message.sequence_number, str(message), message.message_id, message.session_id, str(message.state), message.delivery_count,
        message.enqueued_time_utc, message.scheduled_enqueue_time_utc, message.expires_at_utc, message.dead_letter_reason,
        message.dead_letter_error_description, message.dead_letter_source, message.application_properties, message.correlation_id,
    )


def peeked(sbc: ServiceBusClient, place: tuple[str, ...], **options: object) -> list[tuple]:
    found: list[tuple] = []
    with receiver(sbc, place, **options) as peeking:
        while batch := peeking.peek_messages(max_message_count=100, sequence_number=found[-1][0] + 1 if found else 1):
            found += map(shown, batch)
    return found


def contents(port: int, namespace: str, places: list[tuple[str, ...]]) -> dict[str, list[tuple]]:
    """All messages of a namespace, and the states of the message sessions of its queue `grouped`."""
    found = {}
    with client(port, namespace) as sbc:
        for place in places:
            name = "/".join(place)
            if place == ("grouped",):
                for session in ("s1", "s2"):
                    with sbc.get_queue_receiver("grouped", session_id=session, max_wait_time=5) as accepted:
                        found[f"grouped {session}"] = [shown(message) for message in accepted.peek_messages(100)]
                        found[f"state {session}"] = [(accepted.session.get_state(),)]
            else:
                found[name] = peeked(sbc, place)
            found[f"{name} dead"] = peeked(sbc, place, sub_queue=ServiceBusSubQueue.DEAD_LETTER)
    return found


def fill(port: int) -> int:
    """Gives the namespaces `orders` and `others` messages in every state. Returns the number of the deferred one of `orders`."""
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    with client(port, "orders") as sbc:
        send(sbc, "plain", *(ServiceBusMessage(f"plain {number}", message_id=f"p{number}", application_properties={"number": number},
                                               time_to_live=timedelta(days=1)) for number in range(20)))
        send(sbc, "plain", ServiceBusMessage(b"x" * 300_000, message_id="large"))
        with sbc.get_queue_receiver("plain", max_wait_time=5) as receiving:
            done, deferred, dead, abandoned, *_ = receiving.receive_messages(4, max_wait_time=5)
            receiving.complete_message(done)
            receiving.defer_message(deferred)
            receiving.dead_letter_message(dead, reason="why", error_description="because")
            receiving.abandon_message(abandoned)
        with sbc.get_queue_sender("plain") as sender:
            sender.schedule_messages([ServiceBusMessage("later", message_id="later")], later)
        for session in ("s1", "s2"):
            send(sbc, "grouped", *(ServiceBusMessage(f"{session} {number}", session_id=session) for number in range(3)))
            with sbc.get_queue_receiver("grouped", session_id=session, max_wait_time=5) as accepted:
                accepted.session.set_state(f"state of {session}")
                accepted.complete_message(accepted.receive_messages(1, max_wait_time=5)[0])
        send(sbc, "once", *(ServiceBusMessage(f"once {number}", message_id=f"o{number}") for number in (1, 2, 1)))
        with sbc.get_queue_receiver("once", max_wait_time=5) as receiving:
            receiving.complete_message(receiving.receive_messages(1, max_wait_time=5)[0])
        send(sbc, "way", *(ServiceBusMessage(colour, application_properties={"colour": colour}) for colour in ("red", "blue")))
        with sbc.get_subscription_receiver("news", "red", max_wait_time=10) as receiving:
            receiving.dead_letter_message(receiving.receive_messages(1, max_wait_time=10)[0], reason="too red")
        send(sbc, "way", ServiceBusMessage("red again", application_properties={"colour": "red"}))
        wait(lambda: len(peeked(sbc, ("news", "all"))) == 3, 10, "messages were not forwarded")
    with client(port, "others") as sbc:
        send(sbc, "plain", *(ServiceBusMessage(f"other {number}") for number in range(3)))
    return deferred.sequence_number


@pytest.fixture
def filled(tmp_path: Path) -> tuple[Broker, int, dict[str, dict]]:
    """A data directory with two namespaces in two shards, whose broker is stopped; the number of the deferred message; all messages."""
    config = configuration(tmp_path / "filled.json", {"orders": {"Queues": QUEUES, "Topics": TOPICS}, "others": {"Queues": QUEUES[:1]}})
    broker = Broker.create(tmp_path / "filled", config, ["--shards", "2"])
    broker.start()
    try:
        deferred = fill(broker.amqp_port)
        before = everything(broker.amqp_port)
    finally:
        complaint = broker.finish()
    assert complaint is None
    assert len(before["orders"]["plain"]) == 20 and len(before["orders"]["plain dead"]) == 1
    return broker, deferred, before


def everything(port: int) -> dict[str, dict]:
    return {"orders": contents(port, "orders", PLACES), "others": contents(port, "others", [("plain",)])}


def fleet_of(tmp_path: Path, cluster: Cluster, servers: int = 1) -> Fleet:
    """Servers that are not started, with a configuration of another namespace."""
    config = configuration(tmp_path / "fleet.json", {"base": {"Queues": [{"Name": "plain"}]}})
    return Fleet(tmp_path / "fleet", cluster.url(), servers, config, proxied=False)


def check_use(port: int, deferred: int) -> None:
    """What the messages of `orders` are for: each can be received, numbers continue, duplicates are remembered, rules hold."""
    with client(port, "orders") as sbc:
        last = max(found[0] for found in peeked(sbc, ("plain",)))
        with sbc.get_queue_receiver("plain", max_wait_time=5) as receiving:
            [found] = receiving.receive_deferred_messages([deferred])
            assert str(found) == "plain 1"
            receiving.complete_message(found)
            received = []
            while batch := receiving.receive_messages(30, max_wait_time=2):
                received += [message.message_id for message in batch]
                for message in batch:
                    receiving.complete_message(message)
            assert received == ["p3", *(f"p{number}" for number in range(4, 20)), "large"]
        [(later, *_)] = peeked(sbc, ("plain",))
        with sbc.get_queue_sender("plain") as sender:
            sender.cancel_scheduled_messages([later])
        send(sbc, "plain", ServiceBusMessage("next"))
        assert [found[0] for found in peeked(sbc, ("plain",))] == [last + 1]
        # The first was completed; both are remembered.
        send(sbc, "once", *(ServiceBusMessage("again", message_id=f"o{number}") for number in (1, 2, 3)))
        assert [found[2] for found in peeked(sbc, ("once",))] == ["o2", "o3"]
        send(sbc, "way", *(ServiceBusMessage(f"new {colour}", application_properties={"colour": colour}) for colour in ("red", "blue")))
        wait(lambda: len(peeked(sbc, ("news", "all"))) == 5, 10, "messages were not forwarded")
        assert [found[1] for found in peeked(sbc, ("news", "red"))] == ["red again", "new red"]


def test_namespaces_are_moved_in_and_out_whole(tmp_path: Path, cluster: Cluster, filled) -> None:
    broker, deferred, before = filled
    said = store(cluster, "import", "--data-dir", broker.state["data_dir"])
    assert "orders: all of it" in said and "others: all of it" in said
    assert "is in the store" in store(cluster, "import", "--data-dir", broker.state["data_dir"], code=1)
    with fleet_of(tmp_path, cluster) as fleet:
        fleet.wait_owned("orders", "others")
        assert everything(fleet.balancer.port) == before
        # While a server has it, and goes on with it after that.
        directory = tmp_path / "out"
        said = store(cluster, "export", "orders", "--data-dir", directory)
        assert f"is in {directory}" in said
        fleet.wait_owned("orders", "others")
        assert everything(fleet.balancer.port) == before
        check_use(fleet.balancer.port, deferred)
        assert fleet.finish() == []
    assert subprocess.run([binary(), "log", "check", directory], capture_output=True).returncode == 0
    out = Broker.create(tmp_path / "served", configuration(tmp_path / "out.json", {"orders": {}}))
    out.state["data_dir"] = str(directory)
    out.state_file.write_text(json.dumps(out.state))
    out.start()
    try:
        assert contents(out.amqp_port, "orders", PLACES) == before["orders"]
        check_use(out.amqp_port, deferred)
    finally:
        complaint = out.finish()
    assert complaint is None
    assert "is not empty" in store(cluster, "export", "orders", "--data-dir", directory, code=1)
    assert "no namespace 'none'" in store(cluster, "export", "none", "--data-dir", tmp_path / "none", code=4)
    assert not (tmp_path / "none").exists()
    held = store(cluster, "export", "others", "--data-dir", tmp_path / "held", "--hold")
    assert "in quarantine" in held and "exported" in listed(cluster)["others"]["quarantined"]
    store(cluster, "release", "others")
    assert "quarantined" not in listed(cluster)["others"]


def test_an_import_that_is_killed_is_not_served_and_is_done_again(tmp_path: Path, cluster: Cluster, filled) -> None:
    broker, _, before = filled
    words = ["import", "--data-dir", broker.state["data_dir"]]
    broker.start()
    assert "a broker runs with" in store(cluster, *words, code=1)
    broker.stop()
    with cluster.connect() as reader:
        # The tables are there since the refusal. No checkpoint can be written now.
        reader.execute("begin")
        reader.execute("lock table jitney.checkpoint_chunk in access exclusive mode")
        importing = subprocess.Popen([binary(), "store", words[0], "--store", cluster.url(), *words[1:]], stderr=subprocess.DEVNULL)
        begun = "select count(*) from jitney.segment"
        wait(lambda: cluster.query(begun)[0][0], 30, "nothing was imported")
        importing.send_signal(signal.SIGKILL)
        importing.wait()
        reader.execute("rollback")
    begun = listed(cluster)
    assert begun and all("imported" in found["quarantined"] for found in begun.values())
    name = min(begun)
    assert "cannot be released" in store(cluster, "release", name, code=1)
    with fleet_of(tmp_path, cluster) as fleet:
        fleet.wait_owned("base")
        assert fleet.owner(name) is None
        store(cluster, *words)
        fleet.wait_owned("orders", "others")
        assert everything(fleet.balancer.port) == before
        assert fleet.finish() == []


def test_a_restore_ends_the_quarantine_that_it_has_caused_and_names_those_that_stay(tmp_path: Path, cluster: Cluster) -> None:
    """A server that runs on after the restore does not find what it has acknowledged, and puts its namespace into quarantine."""
    with fleet_of(tmp_path, cluster, 2) as fleet:
        old, new = fleet.servers
        assert new.stop() == 0
        fleet.wait_owned("base")
        with client_of(old) as sbc:
            send(sbc, "plain", *(ServiceBusMessage(f"{number}") for number in range(3)))
        number = cluster.query("select id from jitney.namespace where name = 'base'")[0][0]
        segment = cluster.query(f"select max(segment) from jitney.segment where namespace = {number} and not removed")[0][0]
        rows = f"jitney.log_{number}_{segment}"
        cluster.query(f"delete from {rows} where at = (select max(at) from {rows})")
        with client_of(old) as sbc, pytest.raises(ServiceBusError):
            send(sbc, "plain", ServiceBusMessage("too late"))
        wait(lambda: "which was acknowledged" in listed(cluster)["base"].get("quarantined", ""), 30, "it is in no quarantine")
        said = store(cluster, "restored")
        assert "The quarantine of base was ended" in said and "stays in quarantine" not in said
        assert "quarantined" not in listed(cluster)["base"]
        old.kill()
        new.start()
        fleet.wait_owned("base")
        with client_of(new) as sbc:
            send(sbc, "plain", ServiceBusMessage("after"))
            assert peeked(sbc, ("plain",))[-1][0] > GAP
        # What has another reason stays, and is told.
        cluster.query("update jitney.namespace_state set quarantined = 'for a test'")
        said = store(cluster, "restored")
        assert "base stays in quarantine" in said and "for a test" in said
        assert listed(cluster)["base"]["quarantined"] == "for a test"


def test_a_server_of_before_a_restore_stops_and_no_number_comes_twice(tmp_path: Path, cluster: Cluster) -> None:
    fleet = fleet_of(tmp_path, cluster, 2)
    old, new = fleet.servers
    try:
        old.start()
        fleet.wait_owned("base")
        with client_of(old) as sbc:
            send(sbc, "plain", *(ServiceBusMessage(f"{number}") for number in range(3)))
            before = peeked(sbc, ("plain",))
        assert [found[0] for found in before] == [1, 2, 3]
        epoch = listed(cluster)["base"]["epoch"]
        identity = cluster.query("select identity from jitney.store")
        said = store(cluster, "restored")
        assert "can come twice" in said and "base" in said
        assert cluster.query("select identity from jitney.store") != identity
        assert listed(cluster)["base"]["epoch"] > epoch + 2**32 - 1
        wait(lambda: not old.owned(), 30, "the server of before has the namespace still")
        with pytest.raises(urllib.error.HTTPError, match="503"):
            old.get("/health")
        wait(lambda: "it was restored" in old.broker.log_tail(1000), 10, "the server did not say why")
        with client_of(old) as sbc, pytest.raises(ServiceBusError):
            peeked(sbc, ("plain",))
        new.start()
        fleet.wait_owned("base")
        assert fleet.owner("base") is new
        for number in (GAP + 4, GAP + 5):
            with client_of(new) as sbc:
                send(sbc, "plain", ServiceBusMessage("after"))
                found = peeked(sbc, ("plain",))
                assert found[:3] == before
                assert found[-1][0] == number
            # Once, and not at each take-over.
            new.stop()
            new.start()
            fleet.wait_owned("base")
        # Restarted it serves again.
        new.stop()
        assert old.owned() == set()
        old.stop()
        old.start()
        fleet.wait_owned("base")
        with client_of(old) as sbc:
            assert peeked(sbc, ("plain",)) == found
        assert fleet.finish() == []
    finally:
        fleet.close()


def client_of(server: Server) -> ServiceBusClient:
    """A client of the first namespace at one server."""
    return ServiceBusClient.from_connection_string(server.fleet.connection_string_for(server=server), retry_total=0)


def ask(server: Server, method: str, path: str, body: dict | None = None) -> tuple[int, dict]:
    # A removal waits for readers of the tables.
    return server.ask(method, path, body, 40)


def known(server: Server) -> set[str]:
    return {found["name"] for found in ask(server, "GET", "namespaces")[1]["namespaces"]}


def tables(cluster: Cluster, number: int) -> list[tuple]:
    return cluster.query("select relname from pg_class where relname like %s", rf"log\_{number}\_%")


def test_a_namespace_is_dropped_on_all_servers_with_its_tables(tmp_path: Path, cluster: Cluster) -> None:
    with fleet_of(tmp_path, cluster, 2) as fleet:
        one, two = fleet.servers
        for drop in (lambda: store(cluster, "delete", "extra", "--yes"), lambda: ask(two, "DELETE", "namespaces/extra")):
            assert ask(one, "PUT", "namespaces/extra")[0] == 201
            fleet.wait_owned("extra")
            assert ask(one, "PUT", "entities/plain?namespace=extra", {"kind": "queue", "properties": {"max_message_kilobytes": 4_096}})[0] == 201
            with client(fleet.balancer.port, "extra") as sbc:
                assert peeked(sbc, ("plain",)) == [], "nothing is left of one that had the name before"
                send(sbc, "plain", ServiceBusMessage("one"), ServiceBusMessage(b"x" * 3_000_000))
            number = listed(cluster)["extra"]["number"]
            assert tables(cluster, number)
            with cluster.connect() as reader:
                # As pg_dump reads.
                reader.execute("begin")
                reader.execute(f"select count(*) from jitney.log_{number}_1")
                dropping = threading.Thread(target=drop)
                dropping.start()
                wait(lambda: "removed" in listed(cluster)["extra"].get("quarantined", ""), 10, "it was not begun")
                wait(lambda: "extra" not in fleet.owners(), 10, "a server has it still")
                assert dropping.is_alive() and "extra" in listed(cluster)
                reader.execute("rollback")
            dropping.join()
            assert "extra" not in listed(cluster)
            assert tables(cluster, number) == []
            for table in ("namespace_state", "segment", "checkpoint", "checkpoint_chunk", "body_part"):
                assert cluster.query(f"select * from jitney.{table} where namespace = %s", number) == []
            for server in fleet.servers:
                wait(lambda server=server: "extra" not in known(server), 10, f"{server} knows it still")
        assert ask(one, "DELETE", "namespaces/extra")[0] == 404
        status, answer = ask(one, "DELETE", "namespaces/base")
        assert status == 409 and "jitney store delete base" in answer["detail"], answer
        assert "no namespace 'extra'" in store(cluster, "delete", "extra", "--yes", code=4)
        assert "--yes" in store(cluster, "delete", "base", code=2)
        fleet.wait_owned("base")
        assert fleet.finish() == []


def test_a_server_of_a_store_refuses_a_backup_of_its_data_directory(tmp_path: Path, cluster: Cluster) -> None:
    with fleet_of(tmp_path, cluster) as fleet:
        fleet.wait_owned("base")
        status, answer = ask(fleet.servers[0], "POST", "server/backups", {"directory": str(tmp_path / "backup")})
        assert status == 400 and "pg_dump" in answer["detail"] and "jitney store export" in answer["detail"], answer
        assert not (tmp_path / "backup").exists()
        assert fleet.finish() == []


def test_a_namespace_in_quarantine_is_released(tmp_path: Path, cluster: Cluster) -> None:
    assert "has no store" in store(cluster, "list", code=1)
    with fleet_of(tmp_path, cluster) as fleet:
        fleet.wait_owned("base")
        assert "in no quarantine" in store(cluster, "release", "base", code=1)
        assert "no namespace 'none'" in store(cluster, "release", "none", code=4)
        fleet.servers[0].kill()
        cluster.query("update jitney.namespace_state set quarantined = 'for a test' where namespace ="
                      " (select id from jitney.namespace where name = 'base')")
        assert "for a test" in store(cluster, "list")
        fleet.servers[0].start()
        looked = cluster.query("select beat from jitney.server")
        wait(lambda: cluster.query("select beat from jitney.server") > looked, 10, "the server does not beat")
        assert fleet.owner("base") is None
        # The row names the server that was killed, whose death is not counted once the operator has released the namespace.
        assert "for a test" in store(cluster, "release", "base")
        fleet.wait_owned("base")
        assert failures(cluster) == []
        # The row names a server that is alive: it is released all the same, and another claim ends.
        before = claim(cluster)
        cluster.query("update jitney.namespace_state set quarantined = 'for another test'")
        wait(lambda: fleet.owner("base") is None, 10, "the server does not see the quarantine")
        with cluster.primary.connect() as holder, holder.transaction():
            # No server acts on the release before it was looked at.
            holder.execute("lock table jitney.server in access exclusive mode")
            assert "for another test" in store(cluster, "release", "base")
            epoch, *owner = claim(cluster)
            assert epoch == before[0] + 1 and owner == [None, None, None], "it is ownerless at once"
        fleet.wait_owned("base")
        assert failures(cluster) == []
        # One that is in no quarantine keeps its server.
        before = claim(cluster)
        assert "in no quarantine" in store(cluster, "release", "base", code=1)
        assert claim(cluster) == before and None not in before


def test_clients_send_no_more_than_the_quota_of_their_namespace(tmp_path: Path, cluster: Cluster) -> None:
    """Two namespaces of one server: clients of the one are read from more slowly, and nothing is refused or lost; the other is as before."""
    quota, size, count = 64 * 1024, 32 * 1024, 24
    config = configuration(tmp_path / "two.json", {name: {"Queues": [{"Name": "plain"}]} for name in ("bound", "free")})
    with Fleet(tmp_path / "fleet", cluster.url(), 1, config, proxied=False) as fleet:
        fleet.wait_owned("bound", "free")
        [server] = fleet.servers

        def seconds(namespace: str) -> float:
            begun = time.monotonic()
            with client(fleet.balancer.port, namespace) as sbc:
                send(sbc, "plain", *(ServiceBusMessage(b"x" * size) for _ in range(count)))
                with sbc.get_queue_receiver("plain", receive_mode="receiveanddelete") as receiving:
                    left = count
                    while left:
                        left -= len(receiving.receive_messages(left, max_wait_time=20))
            return time.monotonic() - begun

        def quota_of(namespace: str) -> object:
            found = ask(server, "GET", "fleet")[1]["namespaces"]
            return next(it for it in found if it["name"] == namespace).get("quota")

        def waits() -> float:
            return float(re.search(r'^jitney_namespace_quota_waits_total\{namespace="bound"\} (\S+)$', server.get("/metrics"), re.MULTILINE)[1])

        assert "no namespace 'none'" in store(cluster, "quota", "none", "--none", code=4)
        store(cluster, "quota", "bound", "--bytes-per-second", quota - 1, code=2)
        store(cluster, "quota", "bound", "--bytes-per-second", quota)
        assert listed(cluster)["bound"]["quota"] == quota
        wait(lambda: quota_of("bound") == quota, 10, "the server does not see the quota")
        assert quota_of("free") is None and waits() == 0
        # What comes in the first second comes at once.
        assert seconds("bound") > (count * size - quota) / quota - 1
        assert waits() > 0
        # Over HTTP too.
        body, begun = b"x" * size, time.monotonic()
        place, host = f"http://{server.host}:{server.http[1]}/plain/messages", {"Host": "bound.localhost"}
        for _ in range(5):
            request = urllib.request.Request(place, body, host, method="POST")
            urllib.request.urlopen(request, timeout=20).close()
        assert time.monotonic() - begun > (5 * size - quota) / quota - 1
        # And over the API, where the last of the second's share is used up already.
        sent, begun = {"messages": [{"body": "x" * size}]}, time.monotonic()
        for _ in range(5):
            status, answer = ask(server, "POST", "entities/plain/send?namespace=bound", sent)
            assert status == 200, (status, answer)
        assert time.monotonic() - begun > (5 * size - quota) / quota - 1
        free = seconds("free")
        store(cluster, "quota", "bound", "--none")
        wait(lambda: quota_of("bound") is None, 10, "the server does not see that there is no quota")
        before = waits()
        assert seconds("bound") < 5 + 3 * free and waits() == before
        assert fleet.finish() == []


def claim(cluster: Cluster) -> tuple:
    """The fence of the namespace `base`, and the server that it names."""
    [found] = cluster.query("select epoch, owner, server, incarnation from jitney.namespace where name = 'base'")
    return found


def failures(cluster: Cluster) -> list[tuple]:
    """The namespaces whose servers have died."""
    return cluster.query("select namespace, failures from jitney.namespace_state where failures <> 0")


def test_an_export_ends_no_quarantine_and_leaves_its_reason(tmp_path: Path, cluster: Cluster) -> None:
    def why() -> str | None:
        return listed(cluster)["base"].get("quarantined")

    def export(directory: str, *words: str) -> str:
        return store(cluster, "export", "base", "--data-dir", tmp_path / directory, *words)

    def kill_export(directory: str) -> None:
        epoch = listed(cluster)["base"]["epoch"]
        with cluster.connect() as reader:
            # The log cannot be read now.
            reader.execute("begin")
            reader.execute("lock table jitney.checkpoint in access exclusive mode")
            exporting = subprocess.Popen([binary(), "store", "export", "base", "--store", cluster.url(), "--data-dir", tmp_path / directory],
                                         stderr=subprocess.DEVNULL)
            wait(lambda: listed(cluster)["base"]["epoch"] > epoch, 30, "the namespace was not taken")
            exporting.send_signal(signal.SIGKILL)
            exporting.wait()
            reader.execute("rollback")

    with fleet_of(tmp_path, cluster) as fleet:
        fleet.wait_owned("base")
        assert fleet.servers[0].stop() == 0
        export("held", "--hold")
        held = why()
        assert held and "--hold" in held
        assert held in export("held again"), "it says that the namespace is not served"
        assert why() == held
        assert held in store(cluster, "release", "base")
        # One that was interrupted is done again, and ends its own quarantine.
        kill_export("killed")
        assert "it is being exported" in (why() or "")
        assert "served from the store as before" in export("done again")
        assert why() is None
        cluster.query("update jitney.namespace_state set quarantined = 'for a test' where namespace ="
                      " (select id from jitney.namespace where name = 'base')")
        kill_export("killed in quarantine")
        assert why() == "for a test"
        for words in ((), ("--hold",)):
            assert "for a test" in export(f"in quarantine {len(words)}", *words)
            assert why() == "for a test"
        kill_export("killed before the release")
        assert "for a test" in store(cluster, "release", "base")
        fleet.servers[0].start()
        fleet.wait_owned("base")
        assert fleet.finish() == []


def reserved_in(stores: str, namespace: str) -> str:
    return max(stores, key=lambda store: hashlib.sha256(f"{store}/{namespace}".encode()).digest()[:8])


def test_each_of_several_stores_takes_the_namespaces_whose_names_are_reserved_there(tmp_path: Path, filled) -> None:
    broker, _, before = filled
    words = ["import", "--data-dir", broker.state["data_dir"]]
    with Cluster(tmp_path / "first", standbys=0) as first, Cluster(tmp_path / "second", standbys=0) as second:
        clusters = dict(zip(STORES, (first, second)))
        reservations = "select name, store from jitney.reservation order by name"
        config = configuration(tmp_path / "fleet.json", {"base": {"Queues": [{"Name": "plain"}]}})
        with Fleet(tmp_path / "fleet", {name: cluster.url() for name, cluster in clusters.items()}, 2, config, proxied=False) as fleet:
            fleet.wait_owned("base")
            places = {name: reserved_in(STORES, name) for name in ("orders", "others")}
            assert set(places.values()) == set(STORES), "each store has one"
            for name, place in places.items():
                [other] = set(STORES) - {place}
                said = store(clusters[other], *words, code=1)
                assert f"{name} ({place})" in said and "with --namespace NAME" in said
                assert name not in listed(clusters[other])
                assert "orders, others" in store(clusters[place], *words, "--namespace", "none", code=1)
                store(clusters[place], *words, "--namespace", name)
                assert (name, place) in clusters[place].query(reservations)
            fleet.wait_owned("orders", "others")
            assert everything(fleet.balancer.port) == before
            one = fleet.servers[0]
            assert ask(one, "PUT", "namespaces/orders")[0] == 409
            # A name that is dropped is free again, by a command and by the API.
            for drop in (lambda: store(clusters[places["orders"]], "drop", "orders", "--yes"), lambda: ask(one, "DELETE", "namespaces/orders")):
                drop()
                assert "orders" not in dict(clusters[places["orders"]].query(reservations))
                wait(lambda: "orders" not in known(one), 10, "it is known still")
                assert ask(one, "PUT", "namespaces/orders")[0] == 201
                fleet.wait_owned("orders")
            # As if the store in which the name is reserved had been added later.
            old, added = clusters[places["others"]], clusters[places["orders"]]
            old.query("update jitney.namespace set name = 'orders' where name = 'others'")
            old.query("delete from jitney.reservation where name = 'others'")
            store(added, "drop", "orders", "--yes")
            added.query("insert into jitney.reservation values ('orders', %s)", places["others"])
            assert "is reserved in the store" in store(old, "drop", "orders", "--yes", code=1)
            assert "already" in store(added, *words, "--namespace", "orders", code=1)
            wait(lambda: known(one) == {"base", "orders"}, 10, "the server has not seen it")
            assert ask(one, "DELETE", "namespaces/orders")[0] == 204
            assert added.query("select * from jitney.reservation where name = 'orders'") == []
            assert ask(one, "DELETE", "namespaces/orders")[0] == 404
            assert ask(one, "PUT", "namespaces/orders")[0] == 201
            check_restored(fleet, clusters)
            assert fleet.finish() == []


def check_restored(fleet: Fleet, clusters: dict[str, Cluster]) -> None:
    """Servers lose the namespaces of a store that was restored, and no others; they are in one fleet with servers that start after that."""
    kept, lost = ("base", "orders")
    assert reserved_in(STORES, kept) != reserved_in(STORES, lost)
    fleet.wait_owned(kept, lost)
    sets = "select stores from jitney.store"
    before = [cluster.query(sets) for cluster in clusters.values()]
    store(clusters[reserved_in(STORES, lost)], "restored")
    wait(lambda: lost not in fleet.owners(), 30, "a server of before has the namespace still")
    # It may move meanwhile: the servers have other shares now.
    fleet.wait_owned(kept)
    for server in fleet.servers:
        server.stop()
        server.start()
        fleet.wait_owned(kept, lost)
        assert ask(server, "PUT", f"namespaces/after-{server}")[0] == 201
    assert [cluster.query(sets) for cluster in clusters.values()] == before
    # It has no entities, so that no group says which numbers are left out.
    skips = "select skips from jitney.namespace_state s join jitney.namespace n on n.id = s.namespace where n.name = %s"
    wait(lambda: clusters[reserved_in(STORES, lost)].query(skips, lost) == [(0,)], 10, "it is to leave out numbers still")
