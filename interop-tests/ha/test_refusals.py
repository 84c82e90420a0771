"""Databases that answer, but refuse one log: to append to it, or to read it. No other log suffers from it, and no server ends."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.exceptions import ServiceBusError

from conftest import store
from fleet import Fleet, configuration, wait
from load import QUEUES, patience
from postgres import Cluster

NAMESPACES = ["one", "two"]
# How often an append that is refused may be tried again in so many seconds: twice a second, and what was on its way.
WATCHED_SECONDS, TRIES_MAX = 3.0, 8
# What a full disk says. Updates of a row that is there need no new page.
FULL = """
create function jitney.refuse() returns trigger language plpgsql as $$
begin raise exception using errcode = '53100', message = 'could not extend file: No space left on device'; end $$
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "postgres", standbys=0) as made:
        yield made


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return configuration(tmp_path / "Config.json", {name: {"Queues": QUEUES} for name in NAMESPACES})


@pytest.fixture(autouse=True)
def names_lead_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets names below `localhost`, which are those of namespaces, lead to this machine."""
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda name, *rest, **options: resolve(
        "127.0.0.1" if str(name).endswith(".localhost") else name, *rest, **options))


def client(fleet: Fleet, namespace: str) -> ServiceBusClient:
    # The balancer leads to a server that has just started within a second.
    return ServiceBusClient.from_connection_string(fleet.connection_string_for(namespace), retry_total=10, retry_mode="fixed", retry_backoff_factor=1)


def send(fleet: Fleet, namespace: str, *bodies: str) -> None:
    with client(fleet, namespace) as opened, opened.get_queue_sender("plain") as sender:
        sender.send_messages([ServiceBusMessage(body) for body in bodies])


def received(fleet: Fleet, namespace: str, count: int) -> list[str]:
    found: list[str] = []
    with client(fleet, namespace) as opened, opened.get_queue_receiver("plain", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
        while len(found) < count and (batch := receiver.receive_messages(count, max_wait_time=10 * patience())):
            found += map(str, batch)
    return found


def peek(fleet: Fleet, namespace: str) -> None:
    """Asks for messages, which needs their bodies and no append; an error is an answer, too."""
    with client(fleet, namespace) as opened, opened.get_queue_receiver("plain") as receiver, suppress(ServiceBusError):
        receiver.peek_messages(3)


def log_of(cluster: Cluster, namespace: str) -> str:
    """The table with the newest rows of a namespace's log."""
    query = ("select 'log_' || s.namespace || '_' || max(s.segment) from jitney.segment s join jitney.namespace n on n.id = s.namespace"
             " where n.name = %s and not s.removed and s.segment = 1 group by s.namespace")
    return cluster.query(query, namespace)[0][0]


def epoch(cluster: Cluster, namespace: str) -> int:
    return cluster.query("select epoch from jitney.namespace where name = %s", namespace)[0][0]


def test_an_append_that_is_refused_is_tried_again_after_a_pause(cluster: Cluster, config: Path, tmp_path: Path) -> None:
    with Fleet(tmp_path / "fleet", cluster.url(), 1, config) as fleet:
        fleet.wait_owned(*NAMESPACES)
        send(fleet, "one", "before")
        cluster.query(FULL)
        cluster.query(f"create trigger full_disk before insert on jitney.{log_of(cluster, 'one')} for each row execute function jitney.refuse()")
        first = epoch(cluster, "one")
        sending = threading.Thread(target=send, args=(fleet, "one", "meanwhile"))
        sending.start()
        wait(lambda: first + 3 <= epoch(cluster, "one"), 20, "the append is not tried again")
        assert "No space left on device" in fleet.servers[0].broker.log_tail(100_000)
        begun = epoch(cluster, "one")
        time.sleep(WATCHED_SECONDS)
        assert epoch(cluster, "one") <= begun + TRIES_MAX
        # The other namespace is served all the time.
        send(fleet, "two", "other")
        assert received(fleet, "two", 1) == ["other"]
        cluster.query("drop function jitney.refuse() cascade")
        sending.join(60)
        assert not sending.is_alive(), "the message is not accepted"
        # The client may have sent it again.
        assert [*dict.fromkeys(received(fleet, "one", 2))] == ["before", "meanwhile"]
        assert fleet.finish() == []


def test_a_log_that_the_database_cannot_read_is_left_alone(cluster: Cluster, config: Path, tmp_path: Path) -> None:
    with Fleet(tmp_path / "fleet", cluster.url(), 1, config) as fleet:
        fleet.wait_owned(*NAMESPACES)
        send(fleet, "one", "a", "b", "c")
        server = fleet.servers[0]
        assert server.stop() == 0
        table = log_of(cluster, "one")
        cluster.query(f"alter table jitney.{table} rename to lost")
        server.start()
        query = "select quarantined from jitney.namespace_state s join jitney.namespace n on n.id = s.namespace where n.name = 'one'"
        wait(lambda: any(why for why, in cluster.query(query)), 30, "the namespace is in no quarantine")
        why = cluster.query(query)[0][0]
        assert table in why and "does not exist" in why
        fleet.wait_owned("two")
        send(fleet, "two", "other")
        assert received(fleet, "two", 1) == ["other"]
        cluster.query(f"alter table jitney.lost rename to {table}")
        store(cluster, "release", "one")
        fleet.wait_owned("one")
        assert received(fleet, "one", 3) == ["a", "b", "c"]
        assert fleet.finish() == []


def test_a_server_that_loses_a_namespace_while_it_reads_bodies_serves_the_others(cluster: Cluster, config: Path, tmp_path: Path) -> None:
    with Fleet(tmp_path / "fleet", cluster.url(), 1, config) as fleet:
        fleet.wait_owned(*NAMESPACES)
        send(fleet, "one", "a", "b", "c")
        server = fleet.servers[0]
        # A take-over reads no bodies.
        assert server.stop() == 0
        server.start()
        fleet.wait_owned(*NAMESPACES)
        table = log_of(cluster, "one")
        cluster.query(f"alter table jitney.{table} rename to lost")
        reading = threading.Thread(target=peek, args=(fleet, "one"))
        reading.start()
        waits = "waiting for the store to read a message"
        wait(lambda: waits in server.broker.log_tail(100_000), 20, "no body is read")
        cluster.query("update jitney.server set alive = false")
        wait(lambda: "have declared this one dead" in server.broker.log_tail(100_000), 20, "the server does not know it")
        cluster.query(f"alter table jitney.lost rename to {table}")
        fleet.wait_owned(*NAMESPACES)
        reading.join(60)
        assert received(fleet, "one", 3) == ["a", "b", "c"]
        send(fleet, "two", "other")
        assert received(fleet, "two", 1) == ["other"]
        assert fleet.finish() == []
