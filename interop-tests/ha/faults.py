"""The failures of servers, databases and networks, each caused once under load and taken back.

A fault is a function of a Scene. It returns when what it broke is whole again. By `scene.since` it says from when on, to the end of the round,
no namespace may be silent for longer than a time.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import psycopg
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from fleet import Fleet, Server, start
from load import Load, patience
from postgres import ROLE, Cluster, Member, tool
from proxy import Proxy

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
# How long it may take to fill a table.
FILL_SECONDS = 60.0
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

    def kill(self, *servers: Server) -> None:
        """Kills servers, and starts them again when others have taken their namespaces over."""
        self.since(TAKE_OVER_SECONDS)
        for server in servers:
            server.kill()
        self.load.wait_more(1)
        start(servers)

    def check_load(self, complaint: str) -> None:
        """Asserts that no namespace's load has stopped."""
        before = dict(self.load.acknowledged())
        time.sleep(2)
        assert all(self.load.acknowledged()[name] > count for name, count in before.items()), complaint

    def rejoin(self, former: Member) -> None:
        """Makes a former primary a standby."""
        self.cluster.rejoin(former)
        self.cluster.wait_replicating(2)

    def stores(self, *servers: Server) -> list[Proxy]:
        """The networks between servers and their stores; by default, all servers'."""
        return [network for server in servers or self.fleet.servers for network in server.stores.values()]

    def upstreams(self) -> list[Proxy]:
        """The networks between the standbys and the primary."""
        return [standby.upstream for standby in self.cluster.standbys]


@contextlib.contextmanager
def broken(networks: list[Proxy], seconds: float, break_: Callable[[Proxy], None], mend: Callable[[Proxy], None]) -> Iterator[None]:
    """Breaks networks for so long. The block runs at the end of that, just before they are mended."""
    for network in networks:
        break_(network)
    time.sleep(seconds)
    yield
    for network in networks:
        mend(network)


def held(networks: list[Proxy], seconds: float) -> AbstractContextManager[None]:
    """`broken`: networks lose every packet."""
    return broken(networks, seconds, Proxy.hold, Proxy.release)


def down(networks: list[Proxy], seconds: float) -> AbstractContextManager[None]:
    """`broken`: networks refuse every connection, as a machine without its programs."""
    return broken(networks, seconds, Proxy.down, Proxy.up)


FAULTS: dict[str, Callable[[Scene], None]] = {}


def fault(function: Callable[[Scene], None]) -> Callable[[Scene], None]:
    FAULTS[function.__name__.replace("_", " ")] = function
    return function


# Of servers.


@fault
def an_owner_is_killed(scene: Scene) -> None:
    scene.kill(scene.some_owner())


@fault
def two_of_three_servers_are_killed(scene: Scene) -> None:
    first = scene.some_owner()
    scene.kill(first, scene.random.choice(scene.others(first)))


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
    start(scene.fleet.servers)
    scene.since(TAKE_OVER_SECONDS)


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
    with down([scene.some_owner().peers], LONG_SECONDS):
        pass
    scene.since(RESUME_SECONDS)


@fault
def an_owner_loses_its_store_for_long(scene: Scene) -> None:
    networks = scene.stores(scene.some_owner())
    scene.since(TAKE_OVER_SECONDS)
    with held(networks, LONG_SECONDS):
        pass


@fault
def an_owner_loses_its_store_for_a_moment(scene: Scene) -> None:
    with held(scene.stores(scene.some_owner()), SHORT_SECONDS):
        scene.since(RESUME_SECONDS)


@fault
def connections_to_the_store_are_reset(scene: Scene) -> None:
    for _ in range(5):
        for network in scene.stores():
            network.cut()
        time.sleep(scene.random.uniform(0, 0.3))
    scene.since(RESUME_SECONDS)


@fault
def all_servers_lose_the_store(scene: Scene) -> None:
    with down(scene.stores(), LONG_SECONDS):
        pass
    scene.since(TAKE_OVER_SECONDS)


# Of databases. The promotion itself is not in the time.


@fault
def the_primary_is_killed(scene: Scene) -> None:
    former = scene.cluster.fail_over()
    scene.since(TAKE_OVER_SECONDS)
    scene.load.wait_more(1)
    scene.rejoin(former)


@fault
def a_primary_is_promoted_beside_the_former_one(scene: Scene) -> None:
    """Connections to the former primary stay. No commit there has a standby."""
    former = scene.cluster.primary
    scene.cluster.promote(cut=scene.random.random() < 0.5)
    scene.since(PROMOTED_SECONDS)
    time.sleep(LONG_SECONDS)
    former.kill()
    scene.load.wait_more(1)
    scene.rejoin(former)


@fault
def the_former_primary_was_stopped_and_comes_back(scene: Scene) -> None:
    former = scene.cluster.primary
    former.freeze()
    scene.cluster.promote()
    scene.since(PROMOTED_SECONDS)
    scene.load.wait_more(5)
    former.thaw()
    # It still says that it is the primary, and nobody is led to it.
    scene.check_load("a former primary that came back stopped the load")
    scene.rejoin(former)


@fault
def the_primary_restarts_in_its_place_without_its_standbys(scene: Scene) -> None:
    """What was waiting for a standby is there after the restart, although no standby has it."""
    with down(scene.upstreams(), 0.5):
        scene.cluster.primary.restart("immediate")
        time.sleep(1)
    scene.cluster.wait_replicating(2)
    scene.since(TAKE_OVER_SECONDS)


@fault
def both_standbys_are_away(scene: Scene) -> None:
    with held(scene.upstreams(), LONG_SECONDS):
        pass
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
    with held(scene.upstreams(), 0.5):
        for _ in range(3):
            count = len(scene.cluster.query(
                "select pg_cancel_backend(pid) from pg_stat_activity where usename = %s and wait_event = 'SyncRep'", ROLE))
            scene.notes.append(f"{count} cancelled")
            time.sleep(0.3)
    scene.since(TAKE_OVER_SECONDS)


@contextlib.contextmanager
def tables_are_read(scene: Scene) -> Iterator[None]:
    """A transaction has a lock on every table, as pg_dump takes it, and keeps it. The load goes on."""
    with scene.cluster.connect(scene.cluster.primary, autocommit=False) as connection:
        connection.execute("set transaction isolation level repeatable read")
        names = connection.execute("select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables where tableowner = %s",
                                   [ROLE]).fetchall()
        for name, in names:
            connection.execute(f"lock table {name} in access share mode")
        scene.notes.append(f"{len(names)} tables")
        yield
        scene.check_load("a reader of the tables stopped the load")
    scene.since(RESUME_SECONDS)


@fault
def a_table_is_read_by_a_long_transaction(scene: Scene) -> None:
    with tables_are_read(scene):
        time.sleep(LONG_SECONDS)


@fault
def tables_are_read_while_the_log_goes_on_to_others(scene: Scene) -> None:
    """Tables are made, and others are to be dropped, while pg_dump has them all."""
    def tables() -> set[str]:
        return {name for name, in scene.cluster.query("select tablename from pg_tables where tableowner = %s and tablename like 'log%%'", ROLE)}

    before = tables()
    # The next table is made when half of one is full: 32 MiB. It is there, and not used yet, when the reader comes.
    while not tables() - before:
        fill(scene, 4)
    next_ = tables()
    with tables_are_read(scene):
        # Past the end of that one, so that another is made and the one before is to be dropped.
        fill(scene, 70)
        scene.notes.append(f"{len(tables() - next_)} new")
        assert tables() - next_, "no table was made"


def fill(scene: Scene, mebibytes: int) -> None:
    """Sends and receives so much, by the queue `bulk` of the first namespace."""
    body, left = random.randbytes(240 * 1024), mebibytes * 1024 // 960
    deadline = time.monotonic() + FILL_SECONDS * patience()
    while left:
        try:
            # Hosts that name no namespace lead to the first.
            with ServiceBusClient.from_connection_string(scene.fleet.connection_string) as client:
                with client.get_queue_sender("bulk") as sender, client.get_queue_receiver("bulk", receive_mode="receiveanddelete") as receiver:
                    while left:
                        sender.send_messages([ServiceBusMessage(body) for _ in range(4)])
                        left -= 1
                        receiver.receive_messages(8, max_wait_time=1)
        except ServiceBusError:
            # Namespaces may move meanwhile.
            if time.monotonic() > deadline:
                raise


@fault
def pg_dump_runs(scene: Scene) -> None:
    cluster = scene.cluster
    command = [tool("pg_dump"), "-h", "127.0.0.1", "-p", cluster.primary.port, "-U", "postgres", "-d", ROLE, "-f", cluster.directory / "dump"]
    for _ in range(2):
        subprocess.run([str(word) for word in command], check=True, env={"PGPASSWORD": cluster.password, "PGSSLMODE": "disable"}, timeout=60)
    (cluster.directory / "dump").unlink()
    scene.since(RESUME_SECONDS)


# Each would lose messages, or end sessions that wait, if a session kept it.
DEFAULTS = {"default_transaction_isolation": "serializable", "lock_timeout": "50ms", "statement_timeout": "100ms", "idle_session_timeout": "100ms",
            "transaction_timeout": "100ms", "idle_in_transaction_session_timeout": "100ms", "synchronous_commit": "off",
            "client_min_messages": "error"}


@fault
def the_role_gets_other_defaults(scene: Scene) -> None:
    """Sessions must not rely on what the role has."""
    for name, value in DEFAULTS.items():
        scene.cluster.query(f"alter role {ROLE} set {name} = '{value}'")
    try:
        terminate(scene)
        scene.since(TAKE_OVER_SECONDS)
        scene.load.wait_more(20)
        # What the settings would spoil.
        commits_that_wait_for_a_standby_are_cancelled(scene)
        scene.load.wait_more(1)
    finally:
        scene.cluster.query(f"alter role {ROLE} reset all")
        terminate(scene)
    scene.since(TAKE_OVER_SECONDS)


def terminate(scene: Scene) -> None:
    """Ends every session of the servers."""
    for pid in backends(scene):
        scene.cluster.query("select pg_terminate_backend(%s)", pid)


@fault
def a_statement_holds_a_row_of_a_namespace(scene: Scene) -> None:
    """As one does whose server stopped between its execution and its commit. Take-overs end it."""
    server = scene.some_owner()
    with contextlib.closing(psycopg.connect(scene.cluster.url(), autocommit=False)) as blocker:
        blocker.execute("select 1 from jitney.namespace for share").fetchall()
        scene.kill(server)
