"""The failures of servers, databases and networks, each caused once under load and taken back.

A fault is a function of a Scene. It returns when what it broke is whole again. By `scene.since` it says from when on, to the end of the round,
no namespace may be silent for longer than a time.
"""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from fleet import Fleet, Server
from load import Load
from postgres import ROLE, Cluster, tool

# From the loss of an owner to the first acknowledgement of another, at default settings.
TAKE_OVER_SECONDS = 5.0
# A server that is told to stop hands its namespaces over.
HAND_OVER_SECONDS = 1.0
# A namespace whose owner lives goes on when its store is back.
RESUME_SECONDS = 5.0
# After a promotion: connections to a former primary that does not answer are found by time-outs.
PROMOTED_SECONDS = 15.0
# What the SDK takes to connect and attach, after it has seen the fault: sleeps of its own, and two busy cores.
CLIENT_SECONDS = 2.5
# How long a suspended server or network is left so: longer than it takes to declare a server dead.
LONG_SECONDS = 8.0
# Shorter than that: the owner keeps its namespaces.
SHORT_SECONDS = 1.0


@dataclass
class Scene:
    """What a fault acts on."""

    cluster: Cluster
    fleet: Fleet
    load: Load
    random: random.Random
    # From when on no namespace may be without an acknowledgement for longer than so many seconds; None: no time is checked.
    expected: tuple[float, float] | None = None
    # When the round was over.
    until: float = 0.0
    # For the report.
    notes: list[str] = field(default_factory=list)

    def since(self, seconds: float) -> None:
        self.expected = time.monotonic(), seconds + CLIENT_SECONDS

    def some_owner(self) -> Server:
        """A server that owns a namespace, by preference."""
        owners = {server for servers in self.fleet.owners().values() for server in servers}
        return self.random.choice(sorted(owners or self.fleet.running, key=lambda server: server.name))

    def others(self, server: Server) -> list[Server]:
        return [each for each in self.fleet.servers if each is not server]


FAULTS: dict[str, Callable[[Scene], None]] = {}


def fault(function: Callable[[Scene], None]) -> Callable[[Scene], None]:
    FAULTS[function.__name__.replace("_", " ")] = function
    return function


# Of servers.


@fault
def an_owner_is_killed(scene: Scene) -> None:
    server = scene.some_owner()
    scene.since(TAKE_OVER_SECONDS)
    server.kill()
    scene.load.wait_more(1)
    server.start()


@fault
def an_owner_is_stopped_for_long_and_comes_back(scene: Scene) -> None:
    server = scene.some_owner()
    scene.since(TAKE_OVER_SECONDS)
    server.freeze()
    time.sleep(LONG_SECONDS)
    server.thaw()


@fault
def an_owner_is_stopped_for_a_moment(scene: Scene) -> None:
    server = scene.some_owner()
    server.freeze()
    time.sleep(SHORT_SECONDS)
    scene.since(TAKE_OVER_SECONDS)
    server.thaw()


@fault
def an_owner_is_told_to_end(scene: Scene) -> None:
    server = scene.some_owner()
    scene.since(HAND_OVER_SECONDS)
    code = server.stop()
    assert code == 0, f"{server} ended with {code}\n{server.broker.log_tail()}"
    scene.load.wait_more(1)
    server.start()


@fault
def a_server_is_killed_as_it_starts(scene: Scene) -> None:
    server = scene.some_owner()
    scene.since(TAKE_OVER_SECONDS)
    server.kill()
    for _ in range(3):
        server.broker.launch()
        time.sleep(scene.random.uniform(0.02, 0.5))
        server.kill()
    server.start()


@fault
def all_servers_are_killed_and_start_at_the_same_time(scene: Scene) -> None:
    for server in scene.fleet.servers:
        server.kill()
    threads = [threading.Thread(target=server.start) for server in scene.fleet.servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scene.since(TAKE_OVER_SECONDS)


@fault
def two_of_three_servers_are_killed(scene: Scene) -> None:
    first = scene.some_owner()
    second = scene.random.choice(scene.others(first))
    scene.since(TAKE_OVER_SECONDS)
    for server in (first, second):
        server.kill()
    scene.load.wait_more(1)
    for server in (first, second):
        server.start()


# Of networks.


@fault
def the_host_of_an_owner_is_cut_off(scene: Scene) -> None:
    """Clients are connected to it, and others reach it over their servers."""
    server = scene.some_owner()
    scene.since(TAKE_OVER_SECONDS)
    server.cut_off()
    time.sleep(LONG_SECONDS)
    server.join()


@fault
def an_owner_is_cut_off_from_other_servers(scene: Scene) -> None:
    """It keeps its namespaces: its beats are seen in the store. Clients reach them through itself only."""
    server = scene.some_owner()
    server.peers.down()
    time.sleep(LONG_SECONDS)
    server.peers.up()
    scene.since(RESUME_SECONDS)


@fault
def an_owner_loses_its_store_for_long(scene: Scene) -> None:
    server = scene.some_owner()
    scene.since(TAKE_OVER_SECONDS)
    for network in server.stores.values():
        network.hold()
    time.sleep(LONG_SECONDS)
    for network in server.stores.values():
        network.release()


@fault
def an_owner_loses_its_store_for_a_moment(scene: Scene) -> None:
    server = scene.some_owner()
    for network in server.stores.values():
        network.hold()
    time.sleep(SHORT_SECONDS)
    scene.since(RESUME_SECONDS)
    for network in server.stores.values():
        network.release()


@fault
def connections_to_the_store_are_reset(scene: Scene) -> None:
    for _ in range(5):
        for server in scene.fleet.servers:
            for network in server.stores.values():
                network.cut()
        time.sleep(scene.random.uniform(0, 0.3))
    scene.since(RESUME_SECONDS)


@fault
def all_servers_lose_the_store(scene: Scene) -> None:
    networks = [network for server in scene.fleet.servers for network in server.stores.values()]
    for network in networks:
        network.down()
    time.sleep(LONG_SECONDS)
    for network in networks:
        network.up()
    scene.since(TAKE_OVER_SECONDS)


# Of databases. The promotion itself is not in the time.


@fault
def the_primary_is_killed(scene: Scene) -> None:
    former = scene.cluster.fail_over()
    scene.since(TAKE_OVER_SECONDS)
    scene.load.wait_more(1)
    scene.cluster.rejoin(former)
    scene.cluster.wait_replicating(2)


@fault
def a_primary_is_promoted_beside_the_former_one(scene: Scene) -> None:
    """Connections to the former primary stay. No commit there has a standby."""
    former = scene.cluster.primary
    scene.cluster.promote(cut=scene.random.random() < 0.5)
    scene.since(PROMOTED_SECONDS)
    time.sleep(LONG_SECONDS)
    former.kill()
    scene.load.wait_more(1)
    scene.cluster.rejoin(former)
    scene.cluster.wait_replicating(2)


@fault
def the_former_primary_was_stopped_and_comes_back(scene: Scene) -> None:
    former = scene.cluster.primary
    former.freeze()
    scene.cluster.promote()
    scene.since(PROMOTED_SECONDS)
    scene.load.wait_more(5)
    former.thaw()
    time.sleep(2)
    scene.cluster.rejoin(former)
    scene.cluster.wait_replicating(2)


@fault
def the_primary_restarts_in_its_place_without_its_standbys(scene: Scene) -> None:
    """What was waiting for a standby is there after the restart, although no standby has it."""
    for standby in scene.cluster.standbys:
        standby.upstream.down()
    time.sleep(0.5)
    scene.cluster.primary.restart("immediate")
    time.sleep(1)
    for standby in scene.cluster.standbys:
        standby.upstream.up()
    scene.cluster.wait_replicating(2)
    scene.since(TAKE_OVER_SECONDS)


@fault
def both_standbys_are_away(scene: Scene) -> None:
    for standby in scene.cluster.standbys:
        standby.upstream.hold()
    time.sleep(LONG_SECONDS)
    for standby in scene.cluster.standbys:
        standby.upstream.release()
    scene.since(TAKE_OVER_SECONDS)


@fault
def a_standby_is_killed(scene: Scene) -> None:
    standby = scene.random.choice(scene.cluster.standbys)
    scene.since(RESUME_SECONDS)
    standby.kill()
    scene.load.wait_more(5)
    standby.start()
    scene.cluster.wait_replicating(2)


def backends(scene: Scene) -> list[int]:
    return [pid for pid, in scene.cluster.query("select pid from pg_stat_activity where usename = %s", ROLE)]


def each_backend(scene: Scene, function: str, seconds: float) -> None:
    """Calls a function of PostgreSQL's for a backend of the servers' now and then."""
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        if found := backends(scene):
            scene.cluster.query(f"select {function}(%s)", scene.random.choice(found))
            count += 1
        time.sleep(scene.random.uniform(0.02, 0.3))
    scene.notes.append(f"{count} times")


@fault
def statements_are_cancelled(scene: Scene) -> None:
    each_backend(scene, "pg_cancel_backend", LONG_SECONDS)
    scene.since(RESUME_SECONDS)


@fault
def connections_are_terminated(scene: Scene) -> None:
    each_backend(scene, "pg_terminate_backend", LONG_SECONDS)
    scene.since(RESUME_SECONDS)


@fault
def commits_that_wait_for_a_standby_are_cancelled(scene: Scene) -> None:
    """PostgreSQL then says that they are done, with a warning."""
    for standby in scene.cluster.standbys:
        standby.upstream.hold()
    time.sleep(0.5)
    for _ in range(3):
        count = len(scene.cluster.query(
            "select pg_cancel_backend(pid) from pg_stat_activity where usename = %s and wait_event = 'SyncRep'", ROLE))
        scene.notes.append(f"{count} cancelled")
        time.sleep(0.3)
    for standby in scene.cluster.standbys:
        standby.upstream.release()
    scene.since(TAKE_OVER_SECONDS)


@fault
def a_table_is_read_by_a_long_transaction(scene: Scene) -> None:
    """As pg_dump does it, which takes a lock on every table and keeps it."""
    with scene.cluster.connect(scene.cluster.primary, autocommit=False) as connection:
        connection.execute("set transaction isolation level repeatable read")
        names = connection.execute("select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables where tableowner = %s",
                                   [ROLE]).fetchall()
        for name, in names:
            connection.execute(f"lock table {name} in access share mode")
        scene.notes.append(f"{len(names)} tables")
        before = dict(scene.load.acknowledged())
        time.sleep(LONG_SECONDS)
        assert all(scene.load.acknowledged()[name] > count for name, count in before.items()), "a reader of the tables stopped the load"
    scene.since(RESUME_SECONDS)


@fault
def pg_dump_runs(scene: Scene) -> None:
    cluster = scene.cluster
    command = [tool("pg_dump"), "-h", "127.0.0.1", "-p", cluster.primary.port, "-U", "postgres", "-d", ROLE, "-f", cluster.directory / "dump"]
    for _ in range(2):
        subprocess.run([str(word) for word in command], check=True, env={"PGPASSWORD": cluster.password, "PGSSLMODE": "disable"}, timeout=60)
    (cluster.directory / "dump").unlink()
    scene.since(RESUME_SECONDS)


@fault
def the_role_gets_other_defaults(scene: Scene) -> None:
    """Sessions must not rely on what the role or the database has. `synchronous_commit` is not among these: a server may refuse to serve
    where it is off."""
    settings = {"default_transaction_isolation": "serializable", "client_min_messages": "error", "statement_timeout": "'100ms'",
                "idle_in_transaction_session_timeout": "'100ms'", "lock_timeout": "'50ms'"}
    for name, value in settings.items():
        scene.cluster.query(f"alter role {ROLE} set {name} = {value}")
    try:
        for pid in backends(scene):
            scene.cluster.query("select pg_terminate_backend(%s)", pid)
        scene.since(TAKE_OVER_SECONDS)
        scene.load.wait_more(20)
        # What the settings would spoil.
        commits_that_wait_for_a_standby_are_cancelled(scene)
        scene.load.wait_more(1)
    finally:
        scene.cluster.query(f"alter role {ROLE} reset all")
        for pid in backends(scene):
            scene.cluster.query("select pg_terminate_backend(%s)", pid)
    scene.since(TAKE_OVER_SECONDS)


@fault
def a_statement_holds_a_row_of_a_namespace(scene: Scene) -> None:
    """As one does whose server stopped between its execution and its commit. Take-overs end it."""
    server = scene.some_owner()
    blockers = []
    try:
        tables = [name for name, in scene.cluster.query(
            "select quote_ident(table_schema) || '.' || quote_ident(table_name) from information_schema.columns"
            " where column_name = 'epoch' and table_name like '%%namespace%%'")]
        for table in tables:
            connection = psycopg.connect(scene.cluster.url(), autocommit=False)
            blockers.append(connection)
            connection.execute(f"select 1 from {table} for share").fetchall()
        scene.notes.append(f"{len(tables)} tables")
        scene.since(TAKE_OVER_SECONDS)
        server.kill()
        scene.load.wait_more(1)
    finally:
        for connection in blockers:
            connection.close()
    server.start()

