"""Databases that lose messages, are slow, hold old snapshots, or have many namespaces, or one whose owners die: what the fleet makes of each."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.exceptions import ServiceBusError

from conftest import NAMESPACES, store
from faults import CLIENT_SECONDS, PROMOTED_SECONDS, TAKE_OVER_SECONDS
from fleet import Fleet, configuration, wait
from load import QUEUES, Load, patience
from loads import ALL_QUEUES, Loads
from postgres import HERE, ROLE, Cluster, Member

# Namespaces of the test with many of them, and how long they may take to be owned again.
MANY, MANY_SECONDS = 1000, 30.0
# Those of them that have clients.
USED = 3
# The deaths of its owners that put a namespace into quarantine, and how long it is watched there. Servers look at the store twice a second.
DEATHS, WATCHED_SECONDS = 4, 3.0
# How long a server may take to end that no store answers.
STOP_SECONDS = 8.0
# Beats of ten hours are 72,000 for each server. So many are enough to see what they cost: it grows with their number.
BEATS = 6_000
AGE, SLOTS = "jitney_store_transaction_age", "jitney_store_inactive_slots"


def have_logged(fleet: Fleet, text: str) -> bool:
    return all(text in server.broker.log_tail(100_000) for server in fleet.servers)


def test_the_wrong_standby_is_promoted(tmp_path: Path, config: Path) -> None:
    """The database has lost what was acknowledged. No namespace may go on as if it had not: its owner knows better, and stops it. That
    holds for one without clients, too, which would otherwise be found out by no server. Its next owner gives no number again."""
    # Hosts that name no namespace lead to the first.
    quiet, *busy = NAMESPACES
    with Cluster(tmp_path / "postgres") as cluster, Fleet(tmp_path / "fleet", cluster.url(), 3, config) as fleet:
        with Loads(tmp_path, fleet.balancer.port, busy) as load:
            load.wait_more(20)
            ahead, behind = cluster.standbys
            behind.upstream.down()
            load.wait_more(50)
            last = numbers(fleet, sent=3)[-1]
            cluster.primary.kill()
            cluster.promote(behind)
            before = dict(load.acknowledged())
            told = ""

            def is_told() -> bool:
                nonlocal told
                told = "\n".join(server.broker.log_tail(100_000) for server in fleet.servers)
                return all(re.search(rf'a namespace is stopped: its log ends before group \d+, which was acknowledged.*namespace="?{name}\b', told)
                           for name in NAMESPACES)

            wait(is_told, 3 * patience() * TAKE_OVER_SECONDS, f"no log names each of {NAMESPACES}, and what is missing:\n{told[-3000:]}")
            after = dict(load.acknowledged())
        assert after == before, "a namespace went on after it had lost messages"
        # Commits wait for a standby, and none follows yet.
        cluster.rejoin(ahead)
        text = ("select n.name from jitney.namespace_state s join jitney.namespace n on n.id = s.namespace"
                " where s.quarantined like '%which was acknowledged%' order by 1")
        wait(lambda: [name for name, in cluster.query(text)] == NAMESPACES, 30, f"not all of {NAMESPACES} are in quarantine")
        # No server takes them after a new start either.
        fleet.servers[0].kill()
        fleet.servers[0].start()
        assert fleet.owners() == {}
        store(cluster, "release", quiet)
        fleet.wait_owned(quiet)
        assert numbers(fleet, sent=1)[-1] > last, "a number is given again"
        assert [complaint for complaint in fleet.finish() if "panicked" in complaint] == []


def test_the_wrong_standby_is_promoted_and_no_server_knows_better(tmp_path: Path, config: Path) -> None:
    """The owner is lost with the database. Nobody can say what is missing; but that something may be is said, and no number is given again."""
    with Cluster(tmp_path / "postgres") as cluster, Fleet(tmp_path / "fleet", cluster.url(), 2, config) as fleet:
        fleet.wait_owned(*NAMESPACES)
        numbers(fleet, sent=3)
        ahead, behind = cluster.standbys
        behind.upstream.down()
        last = numbers(fleet, sent=30)[-1]
        for server in fleet.servers:
            server.kill()
        first = cluster.primary
        first.kill()
        cluster.promote(behind)
        cluster.rejoin(ahead)
        for server in fleet.servers:
            server.start()
        fleet.wait_owned(*NAMESPACES)
        found = numbers(fleet, sent=1)
        assert len(found) < 33, "nothing was lost"
        assert found[-1] > last, "a number is given again"
        told = "\n".join(server.broker.log_tail(100_000) for server in fleet.servers)
        for name in NAMESPACES:
            assert re.search(rf'was promoted since the last owner.*namespace="?{name}\b', told), f"nothing is said of {name}"
        assert cluster.query("select count(quarantined) from jitney.namespace_state") == [(0,)]
        # It is said once, and a promotion that a server has seen leaves no numbers out. A client may send again what was not answered.
        for server in fleet.servers:
            assert server.stop() == 0
            server.start()
        fleet.wait_owned(*NAMESPACES)
        assert numbers(fleet, sent=1)[-1] == found[-1] + 1
        cluster.rejoin(first)
        cluster.wait_replicating(2)
        cluster.primary.kill()
        cluster.promote()
        fleet.wait_owned(*NAMESPACES)
        assert numbers(fleet, sent=1)[-1] < found[-1] + 100
        for server in fleet.servers:
            server.stop()
            server.start()
        fleet.wait_owned(*NAMESPACES)
        assert numbers(fleet, sent=1)[-1] < found[-1] + 100
        assert fleet.finish() == []


def numbers(fleet: Fleet, sent: int) -> list[int]:
    """Sends messages to a queue of the first namespace; returns the sequence numbers of all that are there."""
    with ServiceBusClient.from_connection_string(fleet.connection_string) as client, client.get_queue_receiver("plain") as receiver:
        with client.get_queue_sender("plain") as sender:
            sender.send_messages([ServiceBusMessage("numbered") for _ in range(sent)])
        return [message.sequence_number for message in receiver.peek_messages(100)]


def test_no_server_uses_a_former_primary(tmp_path: Path, config: Path) -> None:
    """Its rows are not those of the new one. Sessions to it are ended, and new ones are refused, although it takes connections."""
    with Cluster(tmp_path / "postgres") as cluster, Fleet(tmp_path / "fleet", cluster.url(), 2, config) as fleet:
        with Loads(tmp_path, fleet.balancer.port, NAMESPACES) as load:
            load.wait_more(20)
            former = cluster.primary

            def idle() -> int:
                return former.value("select count(*) from pg_stat_activity where usename = %s and state = 'idle'", ROLE)

            assert idle() >= len(fleet.servers)
            promoted = cluster.promote(cut=False)
            wait(lambda: have_logged(fleet, "the database has another primary"), 3 * PROMOTED_SECONDS, "a server does not know of the new primary")
            # Those that wait for a standby there are ended by time-outs.
            wait(lambda: idle() == 0, 30, "a session stays at the former primary")
            load.wait_more(20)

            cluster.address.point(former.address)
            wait(lambda: have_logged(fleet, "it is a former primary, on timeline 1 "), 30, "a server takes the former primary")
            before = dict(load.acknowledged())
            time.sleep(1)
            assert load.acknowledged() == before
            cluster.address.point(promoted.address)
            load.wait_more(20)
            former.kill()
            cluster.rejoin(former)
            cluster.wait_replicating(2)
            load.wait_more(20)
            assert load.finish().violations == []
        assert fleet.finish() == []


def test_no_server_beats_at_a_former_primary(tmp_path: Path, config: Path) -> None:
    """One that needs no standby goes on to take commits. Servers that beat there, and look elsewhere, would declare each other dead."""
    with Cluster(tmp_path / "postgres", standbys=1, synchronous=0) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 2, config) as fleet:
        fleet.wait_owned(*NAMESPACES)
        former = cluster.primary

        def beats(member: Member) -> int:
            return member.value("select sum(beat) from jitney.server")

        cluster.promote(cut=False)
        assert not former.is_standby()
        # A server opens a session when one has ended.
        for pid, in former.query("select pid from pg_stat_activity where usename = %s and query like '%%skewed is not distinct%%'",
                                 ROLE):
            former.query("select pg_terminate_backend(%s)", pid)
        wait(lambda: have_logged(fleet, "the database has another primary"), 30, "a server does not know of the new primary")
        before = beats(cluster.primary)
        wait(lambda: beats(cluster.primary) > before + 10, 10, "no server beats at the new primary")
        last = beats(former)
        time.sleep(TAKE_OVER_SECONDS)
        assert beats(former) == last, "a server beats at the former primary"
        fleet.wait_owned(*NAMESPACES)
        assert [text for server in fleet.servers if "is silent" in (text := server.broker.log_tail(100_000))] == []
        assert fleet.finish() == []


@pytest.mark.parametrize("fault", ["kill", "freeze"])
def test_a_server_ends_while_its_database_does_not_answer(tmp_path: Path, config: Path, fault: str) -> None:
    """It waits for no answer that does not come. What it could not say it says when it starts again, and nothing is lost."""
    with Cluster(tmp_path / "postgres", standbys=1) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 2, config) as fleet:
        with Loads(tmp_path, fleet.balancer.port, NAMESPACES) as load:
            load.wait_more(20)
            first = fleet.wait_owned(*NAMESPACES)["n1"]
            getattr(cluster.primary, fault)()
            wait(lambda: "suspended" in first.broker.log_tail(100_000), 30, "no namespace is suspended")
            seen = 'jitney_namespace_suspended{namespace="n1"} 1'
            wait(lambda: seen in first.get("/metrics"), 10, "the metrics do not show it")
            begun = time.monotonic()
            assert first.stop() == 0
            assert time.monotonic() - begun < STOP_SECONDS * patience()
            cluster.primary.start() if fault == "kill" else cluster.primary.thaw()
            fleet.wait_owned(*NAMESPACES)
            first.start()
            load.wait_more(20)
            assert load.finish().violations == []
        assert fleet.finish() == []


@pytest.mark.long
def test_a_large_message_passes_a_slow_link(tmp_path: Path) -> None:
    """100 MiB at 8 MiB/s: no other namespace of that server waits for it, and the server is not declared dead."""
    large = [*ALL_QUEUES, {"Name": "large", "Properties": {"MaxMessageSizeInKilobytes": 102_400, "LockDuration": "PT5M"}}]
    config = configuration(tmp_path / "Config.json", {name: {"Queues": large} for name in NAMESPACES})
    with Cluster(tmp_path / "postgres") as cluster, Fleet(tmp_path / "fleet", cluster.url(), 2, config) as fleet:
        networks = [network for server in fleet.servers for network in server.stores.values()]
        for network in networks:
            network.slow(8 * 1024 * 1024)
        with Loads(tmp_path, fleet.balancer.port, NAMESPACES) as load:
            load.wait_more(10)
            owners = fleet.owners()

            def large(verb: str) -> None:
                """Does it while the other namespaces go on."""
                # Hosts that name no namespace lead to the first. The balancer is this process, and has enough to do.
                text = fleet.connection_string_for(server=fleet.owner(NAMESPACES[0]))
                command = [sys.executable, str(HERE / "large.py"), verb, "100", text]
                with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
                    while process.poll() is None:
                        load.wait_more(1, 20, NAMESPACES[1:])
                    text = process.stdout.read()
                    print(text)
                    assert process.returncode == 0, text

            large("send")
            large("receive")
            assert fleet.owners() == owners, "namespaces moved"
            # From the database, too: the other server has nothing of it in memory. The lock is lost with its owner.
            owner = fleet.owner(NAMESPACES[0])
            owner.kill()
            fleet.wait_owned(*NAMESPACES, others_than=owner)
            large("complete")
            owner.start()
            for network in networks:
                network.slow(None)
            assert load.finish().violations == []
        assert fleet.finish() == []


@pytest.mark.long
def test_a_thousand_namespaces_move_at_once(tmp_path: Path) -> None:
    """The first of them have clients, of which nothing is lost."""
    names = [f"many-{number}" for number in range(MANY)]
    used = names[:USED]
    config = configuration(tmp_path / "Config.json", {name: {"Queues": ALL_QUEUES if name in used else [{"Name": "q"}]} for name in names})
    with Cluster(tmp_path / "postgres", standbys=1) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 3, config, proxied=False) as fleet:
        fleet.wait_owned(*names, seconds=120)
        with Loads(tmp_path, fleet.balancer.port, used) as load:
            load.wait_more(20)
            owners = fleet.wait_owned(*names)
            shares = [sum(owner is server for owner in owners.values()) for server in fleet.servers]
            lost = owners[used[0]]
            began = time.monotonic()
            lost.kill()
            fleet.wait_owned(*names, others_than=lost, seconds=120)
            took = time.monotonic() - began
            print(f"{shares} namespaces; those of {lost} were taken over in {took:.1f} s")
            assert took < patience() * MANY_SECONDS
            load.wait_more(20)
            until = time.monotonic()
            wait(lambda: is_even(fleet, 2), 60, "namespaces were not spread evenly over two servers")
            lost.start()
            wait(lambda: is_even(fleet, 3), 120, "namespaces were not spread evenly over three servers")
            load.wait_more(20)
            audits = load.finish()
        assert audits.violations == []
        print(f"longest silences: {audits.longest(used, began, until)}")
        assert audits.late(used, began, until, MANY_SECONDS) == []
        assert fleet.finish() == []


def is_even(fleet: Fleet, servers: int) -> bool:
    shares = [len(server.owned()) for server in fleet.running]
    return len(shares) == servers and sum(shares) == MANY and max(shares) - min(shares) <= 2


@pytest.mark.long
def test_a_snapshot_is_held_for_hours(tmp_path: Path, config: Path) -> None:
    """As a report or a forgotten transaction does it: nothing that was changed since can be removed, and rows that change often have many
    versions. The hours are shortened: the rows of the servers are changed as often as in an hour."""
    with Cluster(tmp_path / "postgres") as cluster, Fleet(tmp_path / "fleet", cluster.url(), 3, config) as fleet:
        with Loads(tmp_path, fleet.balancer.port, NAMESPACES) as load, cluster.connect(cluster.primary, autocommit=False) as reader:
            load.wait_more(20)
            wait(lambda: all(server.owned() for server in fleet.servers), 30, "not each server has its share of the namespaces")
            reader.execute("set transaction isolation level repeatable read")
            beats = reader.execute("select sum(beat) from jitney.server").fetchone()
            with cluster.connect(cluster.primary, options="-c synchronous_commit=off") as hours:
                # The beat stays: it is the servers' own.
                hours.execute(f"do $$ begin for i in 1..{BEATS} loop update jitney.server set address = address; commit; end loop; end $$")
            before = fleet.owners()
            since = time.monotonic()
            load.wait_more(100)
            time.sleep(TAKE_OVER_SECONDS)
            load.wait_more(100)
            assert fleet.owners() == before, "namespaces moved: beats were late"
            fleet.servers[0].kill()
            load.wait_more(10)
            until = time.monotonic()
            fleet.servers[0].start()
            assert reader.execute("select sum(beat) from jitney.server").fetchone() == beats, "the snapshot is over"
            reader.rollback()
            audits = load.finish()
        assert audits.violations == []
        print(f"longest silences: {audits.longest(NAMESPACES, since, until)}")
        assert audits.late(NAMESPACES, since, until, TAKE_OVER_SECONDS) == []
        assert fleet.finish() == []


def test_a_namespace_whose_owners_die_is_left_alone(tmp_path: Path) -> None:
    """A namespace that kills each of its owners ends no more servers after the fourth, and the other namespace is served all the time. When the
    operator has released it, a server takes it with all its messages."""
    # Hosts that name no namespace lead to the first.
    config = configuration(tmp_path / "Config.json", {name: {"Queues": QUEUES} for name in ("poison", "other")})
    text = ("select coalesce(s.failures, 0), s.quarantined, n.epoch from jitney.namespace n"
            " left join jitney.namespace_state s on n.id = s.namespace where n.name = 'poison'")
    with Cluster(tmp_path / "postgres", standbys=0) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 3, config) as fleet:

        def state() -> tuple[int, str | None, int]:
            """The deaths that are counted, the reason of the quarantine, and the epoch."""
            return cluster.query(text)[0]

        fleet.wait_owned("poison", "other")
        sent = [f"message {number}" for number in range(20)]
        with ServiceBusClient.from_connection_string(fleet.connection_string) as client, client.get_queue_sender("plain") as sender:
            sender.send_messages([ServiceBusMessage(body) for body in sent])
        with Load(tmp_path / "journal", f"127.0.0.1:{fleet.balancer.port}", ["other"]) as load:
            load.wait_more(20)
            since = time.monotonic()
            for deaths in range(1, DEATHS + 1):
                owner = fleet.wait_owned("poison")["poison"]
                owner.kill()
                # Not before another server has taken it: one that takes its own again, and dies again, has died itself.
                wait(lambda: state()[0] == deaths, 30, f"not {deaths} deaths of its owners are counted")
                owner.start()
            wait(lambda: state()[1], 30, f"it is in no quarantine after {DEATHS} deaths of its owners")
            why = state()[1]
            assert f"its servers have died {DEATHS} times without a healthy minute between" in why
            seen = 'jitney_namespace_quarantined{namespace="poison"} 1'
            wait(lambda: all(seen in server.get("/metrics") for server in fleet.servers), 30, "a server does not see the quarantine")
            # No server takes it after a new start either. The one that stops may be the one that found out that it must not take it.
            owner.stop()
            held = state()
            owner.start()
            until = time.monotonic() + WATCHED_SECONDS
            while time.monotonic() < until:
                assert "poison" not in fleet.owners()
                load.wait_more(1)
            assert state() == held, "a server has taken it"
            with ServiceBusClient.from_connection_string(fleet.connection_string, retry_total=0) as client, pytest.raises(ServiceBusError):
                with client.get_queue_receiver("plain") as receiver:
                    receiver.peek_messages()

            assert why in store(cluster, "release", "poison")
            fleet.wait_owned("poison")
            assert state()[:2] == (0, None)
            with ServiceBusClient.from_connection_string(fleet.connection_string) as client:
                with client.get_queue_receiver("plain", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
                    received: list[str] = []
                    while len(received) < len(sent) and (batch := receiver.receive_messages(len(sent), max_wait_time=5 * patience())):
                        received += map(str, batch)
                    assert received == sent
                    assert receiver.peek_messages() == []
            load.wait_more(20)
            until = time.monotonic()
            auditor = load.finish()
        assert auditor.violations == []
        silence = auditor.silence("other", since, until)
        assert silence is not None and silence < patience() * (TAKE_OVER_SECONDS + CLIENT_SECONDS), silence
        assert fleet.finish() == []


def metric(fleet: Fleet, name: str) -> float:
    """The value of a metric of the first server."""
    found = re.search(rf"^{name}(?:\{{.*\}})? (\S+)$", fleet.servers[0].get("/metrics"), re.MULTILINE)
    return float(found[1]) if found else -1.0


def test_the_age_of_the_database_and_slots_that_nobody_uses_are_in_the_metrics(tmp_path: Path) -> None:
    with Cluster(tmp_path / "postgres", standbys=1) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 1) as fleet:
        wait(lambda: metric(fleet, AGE) > 0, 60, "no metric has the age of the oldest transaction number")
        age = metric(fleet, AGE)
        with cluster.connect(cluster.primary, options="-c synchronous_commit=off") as connection:
            connection.execute("do $$ begin for i in 1..5000 loop perform pg_current_xact_id(); commit; end loop; end $$")
        wait(lambda: metric(fleet, AGE) >= age + 5000, 60, "the age has not grown by the transactions")
        assert metric(fleet, SLOTS) == 0
        cluster.query("select pg_create_physical_replication_slot('left_behind', true)")
        wait(lambda: metric(fleet, SLOTS) == 1, 60, "no metric counts the inactive slot")
        cluster.query("select pg_drop_replication_slot('left_behind')")
        wait(lambda: metric(fleet, SLOTS) == 0, 60, "the slot is counted still")
        assert fleet.finish() == []


@pytest.mark.long
def test_a_server_that_has_left_is_forgotten(tmp_path: Path, config: Path) -> None:
    """Else pods, which have another name after each start, would stay in the store and in the metrics for ever."""
    with Cluster(tmp_path / "postgres", standbys=0) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 3, config) as fleet:
        fleet.wait_owned(*NAMESPACES)
        left, dead, stays = fleet.servers
        assert left.stop() == 0
        dead.kill()

        def names() -> list[str]:
            return [name for name, in cluster.query("select name from jitney.server order by 1")]

        assert names() == ["server-1", "server-2", "server-3"]
        wait(lambda: names() == ["server-2", "server-3"], 90, "a server that has left stays in the store")
        wait(lambda: "server-1" not in stays.get("/metrics"), 5, "a server that has left stays in the metrics")
        fleet.wait_owned(*NAMESPACES)
        left.start()
        wait(lambda: names() == ["server-1", "server-2", "server-3"], 10, "it does not enter anew")
        assert fleet.finish() == []
