"""What a server does with a database at its start: what it refuses, what it warns of, and what it sets itself."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, TransportType

from broker import BrokerError
from conftest import NAMESPACES
from faults import DEFAULTS
from fleet import Fleet, Server, configuration, wait
from load import Load
from pooler import Pooler
from postgres import NEWEST, ROLE, Cluster
from proxy import Proxy


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), standbys=1) as made:
        yield made


def without_tables(cluster: Cluster) -> None:
    """Removes what the servers before have made."""
    cluster.query(f"drop database if exists {ROLE} with (force)", database="postgres")
    cluster.query(f"create database {ROLE} owner {ROLE}", database="postgres")


def configured(cluster: Cluster, **settings: str) -> None:
    """Sets settings of the primary, and waits until they are in force. None of them needs a restart."""
    for name, value in settings.items():
        cluster.query(f"alter system set {name} = '{value}'")
    cluster.query("select pg_reload_conf()")
    for name, value in settings.items():
        wait(lambda: cluster.query(f"show {name}") == [(value,)], 10, f"{name} was not set")


def refusal(directory: Path, url: str, *arguments: str) -> str:
    """What a server says that does not start."""
    fleet = Fleet(directory / "fleet", url, 1, arguments=list(arguments), proxied=False)
    try:
        with pytest.raises(BrokerError) as error:
            fleet.start()
        return str(error.value)
    finally:
        fleet.close()


def started(directory: Path, url: str, *arguments: str) -> str:
    """What a server says that starts, owns a namespace, and ends in order."""
    with Fleet(directory / "fleet", url, 1, arguments=list(arguments), proxied=False) as fleet:
        wait(fleet.owners, 30, "no namespace is owned")
        text = fleet.servers[0].broker.log_tail(100_000)
        assert fleet.finish() == []
        return text


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_database_that_a_crash_can_damage_is_refused(cluster: Cluster, tmp_path: Path, name: str) -> None:
    configured(cluster, **{name: "off"})
    try:
        text = refusal(tmp_path, cluster.url())
        assert f"{name} is off" in text and "set it to on" in text, text
        assert "--store-unchecked" in text, text
        assert f"{name} is off" in started(tmp_path, cluster.url(), "--store-unchecked")
    finally:
        configured(cluster, **{name: "on"})


class Altering(Proxy):
    """A proxy that replaces bytes of what passes. Nothing else changes: both have the same length."""

    def __init__(self, target: tuple[str, int], before: bytes, after: bytes):
        self.before, self.after = before, after
        super().__init__(target)

    def passing(self, data: bytes) -> bytes:
        return data.replace(self.before, self.after)


def test_an_old_version_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    number, = cluster.query("select current_setting('server_version_num')::int")[0]
    # No older one can be installed here: its number is put into the answer.
    proxy = Altering(cluster.address.address, struct.pack(">ii", 4, number), struct.pack(">ii", 4, 13_00_22))
    try:
        text = refusal(tmp_path, cluster.url(address=proxy.address))
    finally:
        proxy.close()
    assert number // 10_000 == NEWEST
    assert "older than PostgreSQL 14" in text, text


@pytest.mark.parametrize("names", ["", "*", "ANY 1 (*)"])
def test_names_of_standbys_with_which_a_machine_can_take_messages_along_are_told(cluster: Cluster, tmp_path: Path, names: str) -> None:
    usual, = cluster.query("show synchronous_standby_names")[0]
    configured(cluster, synchronous_standby_names=names)
    try:
        text = started(tmp_path, cluster.url())
    finally:
        configured(cluster, synchronous_standby_names=usual)
    wanted = r"synchronous_standby_names is empty.*Name two standbys" if not names else r"synchronous_standby_names has a \*.*name the standbys"
    assert re.search(wanted, text, re.DOTALL), text


def test_a_database_for_few_connections_is_told(tmp_path: Path) -> None:
    with Cluster(tmp_path / "postgres", standbys=1, settings={"max_connections": "25"}) as cluster:
        text = started(tmp_path, cluster.url())
    assert "max_connections is 25, and each server takes up to 25 (alive now: 1): raise it to 35 or more" in text, text


def test_a_usual_database_is_not_complained_of(cluster: Cluster, tmp_path: Path) -> None:
    without_tables(cluster)
    text = started(tmp_path, cluster.url())
    assert not re.search(r"the store: .*(is|has)", text), text


@pytest.mark.parametrize("of", ["role", "database"])
def test_defaults_of_the_role_or_the_database_change_nothing(cluster: Cluster, tmp_path: Path, config: Path, of: str) -> None:
    without_tables(cluster)
    for name, value in DEFAULTS.items():
        cluster.query(f"alter {of} {ROLE} set {name} = '{value}'")
    try:
        with Fleet(tmp_path / "fleet", cluster.url(), 2, config) as fleet:
            with Load(tmp_path / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
                load.wait_more(30)
                standby, = cluster.standbys
                standby.upstream.hold()
                wait(lambda: cluster.query("select count(*) from pg_stat_activity where usename = %s and wait_event = 'SyncRep'", ROLE,
                                           database="postgres")[0][0], 10, "no commit waits for the standby: synchronous_commit is off")
                standby.upstream.release()
                fleet.servers[0].kill()
                load.wait_more(30)
                assert load.finish().violations == []
            fleet.servers[0].start()
            assert fleet.finish() == []
    finally:
        cluster.query(f"alter {of} {ROLE} reset all", database="postgres")


def test_a_role_that_may_only_read_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    cluster.query(f"alter role {ROLE} set default_transaction_read_only = on")
    try:
        assert "does not allow writes" in refusal(tmp_path, cluster.url())
    finally:
        cluster.query(f"alter role {ROLE} reset all")


@pytest.mark.parametrize("turns", [False, True], ids=["last-in-first-out", "in-turns"])
def test_a_pooler_in_transaction_mode_is_refused(cluster: Cluster, tmp_path: Path, turns: bool) -> None:
    without_tables(cluster)
    with Pooler(tmp_path / "pooler", cluster, "transaction", turns=turns) as pooler:
        url = cluster.url(address=pooler.address)
        # Another program leaves a setting behind, in the session that the server gets.
        with psycopg.connect(url.replace("postgres://", "postgresql://"), autocommit=True) as other:
            other.execute("set synchronous_commit = off")
        text = refusal(tmp_path, url)
    assert "pool" in text and "session" in text and "the database's own address" in text, text


def test_a_pooler_in_session_mode_is_accepted(cluster: Cluster, tmp_path: Path, config: Path) -> None:
    without_tables(cluster)
    with Pooler(tmp_path / "pooler", cluster, "session") as pooler:
        with Fleet(tmp_path / "fleet", cluster.url(address=pooler.address), 2, config) as fleet:
            with Load(tmp_path / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
                load.wait_more(30)
                fleet.servers[0].kill()
                load.wait_more(30)
                assert load.finish().violations == []
            fleet.servers[0].start()
            assert fleet.finish() == []


def test_servers_that_start_at_the_same_time_make_one_schema(cluster: Cluster, tmp_path: Path) -> None:
    for number in range(5):
        without_tables(cluster)
        with Fleet(tmp_path / f"fleet-{number}", cluster.url(), proxied=False) as fleet:
            fleet.wait_owned("sbemulatorns")
            assert cluster.query("select count(*) from jitney.store") == [(1,)]
            assert fleet.finish() == []


def test_a_server_verifies_the_certificate_of_the_store(cluster: Cluster, tmp_path: Path) -> None:
    without_tables(cluster)
    url = f"{cluster.url()}?sslmode=require"
    with Fleet(tmp_path / "verified", url, 1, arguments=["--store-ca", str(cluster.authority)]) as fleet:
        wait(fleet.owners, 30, "no namespace is owned")
        count, encrypted = cluster.query("select count(*), count(*) filter (where ssl) from pg_stat_ssl join pg_stat_activity using (pid)"
                                         " where usename = %s", ROLE)[0]
        assert 0 < count == encrypted
        assert fleet.finish() == []
    # The authority is none of the system's.
    assert "certificate" in refusal(tmp_path, url).lower()


def test_the_tables_of_an_older_release_get_what_they_lack(cluster: Cluster, tmp_path: Path) -> None:
    """A release adds columns and tables when it starts. What was in the tables stays."""
    without_tables(cluster)
    config = configuration(tmp_path / "Config.json", {"orders": {"Queues": [{"Name": "queue.1"}]}})
    with Fleet(tmp_path / "before", cluster.url(), 1, config, proxied=False) as fleet:
        wait(fleet.owners, 30, "no namespace is owned")
        with ServiceBusClient.from_connection_string(fleet.connection_string) as client, client.get_queue_sender("queue.1") as sender:
            sender.send_messages([ServiceBusMessage(str(number)) for number in range(10)])
        assert fleet.finish() == []
    columns = {"store": ["name", "stores", "origin", "tls_authority"], "server": ["stores", "skewed", "deaths", "resting"],
               "namespace_state": ["formats", "pending", "skips", "quota", "died_at", "pauses", "paused", "lost"]}
    for table, names in columns.items():
        for name in names:
            cluster.query(f"alter table jitney.{table} drop column {name}")
    cluster.query("drop table jitney.reservation")
    cluster.query("update jitney.store set version = 1")
    with Fleet(tmp_path / "after", cluster.url(), 1, config, proxied=False) as fleet:
        wait(fleet.owners, 30, "no namespace is owned")
        with ServiceBusClient.from_connection_string(fleet.connection_string) as client, client.get_queue_receiver("queue.1") as receiver:
            found = receiver.receive_messages(10, max_wait_time=5)
            assert [str(message) for message in found] == [str(number) for number in range(10)]
        assert fleet.finish() == []
    assert cluster.query("select version from jitney.store") == [(2,)]


def holds_lease(server: Server) -> bool:
    status, fleet = server.ask("GET", "fleet")
    return status == 200 and fleet["lease_held"]


def test_a_reader_of_the_tables_keeps_no_server_from_answering_while_another_adds_a_column(cluster: Cluster, tmp_path: Path) -> None:
    """A change of a table waits for its readers, such as pg_dump, and the beats of all servers wait behind the change."""
    without_tables(cluster)
    with Fleet(tmp_path / "fleet", cluster.url(), 2, proxied=False) as fleet:
        old, new = fleet.servers
        new.stop()
        # Nothing but looks uses it.
        cluster.query("alter table jitney.server drop column skewed")
        reader = cluster.connect(application_name="backup of the night", autocommit=False)
        process = reader.info.backend_pid
        try:
            reader.execute("select count(*) from jitney.server")
            new.broker.launch()
            while new.running:
                assert holds_lease(old), "the beats wait behind the change"
                time.sleep(0.05)
            text = new.broker.log_tail()
            held = f"jitney.server, and cannot while it is held by process {process} \\({ROLE}, backup of the night, in a transaction since 20"
            assert re.search(held, text) and "pg_terminate_backend" in text, text
            new.broker.launch()
            until = time.monotonic() + 3
            while time.monotonic() < until:
                assert holds_lease(old) and new.running
                time.sleep(0.05)
        finally:
            reader.close()
        wait(lambda: holds_lease(new), 30, "the server did not start when the reader had ended")
        assert fleet.finish() == []


def authority_of(server: Server) -> str:
    return server.get("/ca.pem")


def exchange_verified(server: Server, authority: Path) -> None:
    """Sends a message over TLS. The certificate of the server is verified by an authority alone; it is for `localhost`."""
    network = Proxy(server.amqp)
    text = "Endpoint=sb://localhost/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"
    place = f"sb://localhost:{network.port}"
    try:
        with ServiceBusClient.from_connection_string(text, transport_type=TransportType.Amqp, custom_endpoint_address=place,
                                                             connection_verify=str(authority)) as client:
            with client.get_queue_sender("queue.1") as sender:
                sender.send_messages(ServiceBusMessage("verified"))
    finally:
        network.close()


def test_a_client_that_trusts_the_authority_of_one_server_trusts_all(cluster: Cluster, tmp_path: Path) -> None:
    without_tables(cluster)
    trusted = tmp_path / "ca.pem"
    config = configuration(tmp_path / "Config.json", {"orders": {"Queues": [{"Name": "queue.1"}]}})
    with Fleet(tmp_path / "fleet", cluster.url(), 3, config, proxied=False) as fleet:
        fleet.wait_owned("orders")
        first, _, last = fleet.servers
        trusted.write_text(authority_of(first))
        for server in fleet.servers:
            assert authority_of(server) == trusted.read_text()
            exchange_verified(server, trusted)
        # A start with an empty directory makes no other.
        last.stop()
        shutil.rmtree(last.broker.state["data_dir"])
        last.start()
        assert authority_of(last) == trusted.read_text()
        exchange_verified(last, trusted)
        assert fleet.finish() == []


def soon_ending(directory: Path, authority: str) -> str:
    """The certificate and the key of an authority, with a certificate that ends in 100 days. Its name and the identifier of its key are the same."""
    directory.mkdir()
    (directory / "all.pem").write_text(authority)

    def openssl(*words: str) -> str:
        return subprocess.run(["openssl", *words], check=True, capture_output=True, text=True, cwd=directory).stdout

    name = openssl("x509", "-in", "all.pem", "-noout", "-subject", "-nameopt", "multiline").partition("commonName")[2].strip(" =\n")
    identifier = openssl("x509", "-in", "all.pem", "-noout", "-ext", "subjectKeyIdentifier").splitlines()[-1].strip()
    # The system's configuration would add extensions.
    (directory / "request.cnf").write_text(f"[req]\nprompt=no\ndistinguished_name=name\nx509_extensions=extensions\n[name]\nCN={name}\n"
                                           "[extensions]\nbasicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign\n"
                                           f"subjectKeyIdentifier={identifier}\n")
    made = openssl("req", "-x509", "-new", "-config", "request.cnf", "-key", "all.pem", "-days", "100")
    return made + authority[authority.index("-----BEGIN PRIVATE KEY"):]


def test_servers_renew_their_authority_together_and_clients_keep_their_trust(cluster: Cluster, tmp_path: Path) -> None:
    without_tables(cluster)
    trusted = tmp_path / "ca.pem"
    config = configuration(tmp_path / "Config.json", {"orders": {"Queues": [{"Name": "queue.1"}]}})
    with Fleet(tmp_path / "fleet", cluster.url(), 2, config, proxied=False) as fleet:
        fleet.wait_owned("orders")
        (first,), = cluster.query("select tls_authority from jitney.store")
        ending = soon_ending(tmp_path / "made", first)
        former = ending[:ending.index("-----BEGIN PRIVATE KEY")]
        trusted.write_text(former)
        cluster.query("update jitney.store set tls_authority = %s returning 1", ending)
        before = authority_of(fleet.servers[0])

        def renewed() -> str:
            found = {authority_of(server) for server in fleet.servers} - {former}
            return "".join(found - {before}) if len(found) == 1 else ""

        shown = wait(renewed, 60, "the servers have not renewed the authority")
        (now,), = cluster.query("select tls_authority from jitney.store")
        assert shown == now[:now.index("-----BEGIN PRIVATE KEY")]
        assert now.endswith(first[first.index("-----BEGIN PRIVATE KEY"):]), "the key stays"
        for server in fleet.servers:
            exchange_verified(server, trusted)
        assert fleet.finish() == []


def test_the_tables_of_a_newer_release_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    started(tmp_path / "before", cluster.url())
    cluster.query("update jitney.store set version = version + 1")
    try:
        text = refusal(tmp_path / "after", cluster.url())
        assert "its tables have version 3, and this release knows 2: use the release that made them" in text, text
    finally:
        without_tables(cluster)
