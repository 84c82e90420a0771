"""Servers that should have no namespaces, though they are alive: their way to the database is long, they die again and again, or their clocks are
wrong."""

from __future__ import annotations

import datetime
import re
import time
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from clock import Clock
from conftest import NAMESPACES
from fleet import Fleet, Server, configuration, wait
from load import Load, patience
from postgres import Cluster

# The way of each packet to the database. A beat is a statement that is prepared and executed: it takes four times as long, which is longer than the
# lease, and shorter than the time after which the others declare a server dead.
WAY_SECONDS = 0.6
# Three beats, a statement that gives everything away, and the looks and take-overs of the others.
LATE_SECONDS = 25.0
# Frozen for so long a server is declared dead, and so long after it thaws it has joined and is given its share, if it gets one.
FROZEN_SECONDS, THAWED_SECONDS = 4.5, 12.0
# Freezes of the server that flaps.
FREEZES = 5
# The first pause of a namespace whose servers have died, and some looks.
PAUSE_SECONDS = 75.0
# How long a server may take to give everything away when its clock is wrong.
GIVEN_SECONDS = 5.0
AHEAD = 2 * 60 * 60
SILENT, LATE = "a server is silent", "come too late for it to answer clients"


def fit(at: Server, of: Server) -> bool | None:
    """What a server says of the fitness of one that is alive."""
    found = re.search(rf'^jitney_fleet_server_fit\{{server="{of}"\}} (\d)', at.get("/metrics", 5), re.MULTILINE)
    return bool(int(found[1])) if found else None


def split(fleet: Fleet, *names: str) -> tuple[Server, Server]:
    """Waits until each of two servers has some of the namespaces; returns them."""
    wait(lambda: all(server.owned() for server in fleet.servers) and len(fleet.owners()) >= len(names), 60, "a server has no namespace")
    one, other = fleet.servers[:2]
    return one, other


def test_a_server_whose_way_to_the_database_is_long_gives_its_namespaces_away(tmp_path: Path, config: Path) -> None:
    """Its beats come in time, and their answers do not: it would answer nothing, and no other server would take what it has."""
    with Cluster(tmp_path / "postgres", standbys=1) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 2, config) as fleet:
        far, near = split(fleet, *NAMESPACES)
        with Load(tmp_path / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
            load.wait_more(10)
            for network in far.stores.values():
                network.delay(WAY_SECONDS)
            wait(lambda: near.owned() == set(NAMESPACES), LATE_SECONDS * patience(), "it keeps its namespaces")
            load.wait_more(20)
            assert LATE in far.broker.log_tail(100_000)
            assert all(SILENT not in server.broker.log_tail(100_000) for server in fleet.servers), "it was declared dead"
            assert fit(near, far) is False and fit(near, near)
            # It gets none back.
            until = time.monotonic() + 15
            while time.monotonic() < until:
                assert near.owned() == set(NAMESPACES)
                time.sleep(0.2)
            assert cluster.query("select sum(failures) from jitney.namespace_state") == [(0,)], "no namespace has died"
            for network in far.stores.values():
                network.delay(0)
            split(fleet, *NAMESPACES)
            wait(lambda: fit(near, far), 5, "the other does not know that it is well")
            load.wait_more(20)
            assert load.finish().violations == []
        assert fleet.finish() == []


@pytest.mark.long
def test_a_server_that_flaps_gets_no_namespaces_and_puts_none_into_quarantine(tmp_path: Path, config: Path) -> None:
    with Cluster(tmp_path / "postgres", standbys=1) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 3, config) as fleet:
        wait(lambda: all(server.owned() for server in fleet.servers), 60, "a server has no namespace")
        flapping, *others = fleet.servers
        with Load(tmp_path / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
            for freeze in range(1, FREEZES + 1):
                load.wait_more(5)
                flapping.freeze()
                wait(lambda: cluster.query("select deaths from jitney.server where name = %s", str(flapping)) == [(freeze,)],
                     2 * FROZEN_SECONDS * patience(), f"the death {freeze} is not counted")
                flapping.thaw()
                until = time.monotonic() + THAWED_SECONDS
                while time.monotonic() < until:
                    if freeze >= 2:
                        assert flapping.owned() == set(), f"it has namespaces after {freeze} deaths"
                    time.sleep(0.2)
                if freeze >= 2:
                    wait(lambda: fit(others[0], flapping) is False, 10, "the others do not know that it rests")
            told = cluster.query("select coalesce(max(failures), 0), count(quarantined) from jitney.namespace_state")
            assert told == [(1, 0)] or told == [(0, 0)], told
            # While it is the only one it serves, although it rests.
            for other in others:
                other.kill()
            fleet.wait_owned(*NAMESPACES)
            for other in others:
                other.start()
            wait(lambda: flapping.owned() == set(), 30, "it keeps what others may take")
            fleet.wait_owned(*NAMESPACES)
            # A restart in order ends the rest.
            assert flapping.stop() == 0
            flapping.start()
            wait(lambda: flapping.owned(), 30, "it gets no namespace")
            load.wait_more(10)
            assert load.finish().violations == []
        assert fleet.finish() == []


@pytest.mark.long
def test_a_quarantine_because_of_deaths_ends_after_a_pause(tmp_path: Path) -> None:
    """And the next death of an owner puts the namespace there again, for longer."""
    config = configuration(tmp_path / "Config.json", {name: {"Queues": [{"Name": "q"}]} for name in ("poison", "other")})
    text = "select s.quarantined, s.pauses from jitney.namespace n join jitney.namespace_state s on n.id = s.namespace where n.name = 'poison'"
    with Cluster(tmp_path / "postgres", standbys=0) as cluster, Fleet(tmp_path / "fleet", cluster.url(), 3, config) as fleet:

        def end_owners() -> int:
            """Kills the owners until the namespace is in quarantine; returns how many it were."""
            killed = 0
            while True:
                found: list[Server] = []
                wait(lambda: found.append(owner) or True if (owner := fleet.owner("poison")) else held()[0], 60, "it has no owner, and is in no quarantine")
                if not found:
                    return killed
                found[0].kill()
                killed += 1
                found[0].start()

        def held() -> tuple[str | None, int]:
            return next(iter(cluster.query(text)), (None, 0))

        fleet.wait_owned("poison", "other")
        assert end_owners() == 4
        assert "have died 4 times" in held()[0] and held()[1] == 1
        began = time.monotonic()
        fleet.wait_owned("poison", seconds=PAUSE_SECONDS * patience())
        assert time.monotonic() - began > 50
        assert end_owners() == 1
        assert held()[1] == 2
        # What has another reason does not end by itself, also if an older release has given it.
        fleet.wait_owned("other")
        cluster.query("update jitney.namespace_state set quarantined = 'for a test' where quarantined is not null")
        time.sleep(3)
        assert held() == ("for a test", 2)
        assert fleet.finish() == []


def states(text: str) -> list[tuple[str, str]]:
    """The messages of a queue, and which of them are scheduled."""
    with ServiceBusClient.from_connection_string(text) as client, client.get_queue_receiver("plain") as receiver:
        return sorted((str(message), message.state.name) for message in receiver.peek_messages(20))


@pytest.mark.parametrize("monotonic", [False, True], ids=["date", "all"])
def test_a_server_whose_clock_is_set_ends_nothing_early_and_gives_its_namespaces_away(tmp_path: Path, config: Path, monotonic: bool) -> None:
    """Two hours ahead: a message to live for an hour stays, and one that is scheduled stays so."""
    with Cluster(tmp_path / "postgres", standbys=0) as cluster:
        fleet = Fleet(tmp_path / "fleet", cluster.url(), 2, config)
        clocks = {server: Clock(server, tmp_path / f"clock-{server}", monotonic) for server in fleet.servers}
        with fleet:
            split(fleet, *NAMESPACES)
            # Hosts that name no namespace lead to the first.
            text = fleet.connection_string
            wrong = fleet.wait_owned(*NAMESPACES)[NAMESPACES[0]]
            right, = (server for server in fleet.servers if server is not wrong)
            clock = clocks[wrong]
            living, later = datetime.timedelta(hours=1), datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=30)
            with ServiceBusClient.from_connection_string(text) as client, client.get_queue_sender("plain") as sender:
                sender.send_messages([ServiceBusMessage(f"living {number}", time_to_live=living) for number in range(10)])
                sender.schedule_messages([ServiceBusMessage("scheduled")], later)
            before = states(text)
            assert before == [*((f"living {number}", "ACTIVE") for number in range(10)), ("scheduled", "SCHEDULED")]
            clock.set(AHEAD)
            wait(lambda: right.owned() == set(NAMESPACES), GIVEN_SECONDS * patience(), "it keeps its namespaces")
            assert states(text) == before
            wait(lambda: fit(right, wrong) is False, 5, "the other does not know why")
            if not monotonic:
                clock.set(0)
                split(fleet, *NAMESPACES)
                # It is the only one. It keeps its namespaces, and its clock is not followed.
                assert right.stop() == 0
                wait(lambda: wrong.owned() == set(NAMESPACES), 30, "it does not take the namespaces")
                clock.set(AHEAD)
                wait(lambda: "it is not followed until it is right" in wrong.broker.log_tail(5), 10, "it does not know")
                time.sleep(GIVEN_SECONDS)
                assert wrong.owned() == set(NAMESPACES), "no other server may take them"
                assert states(text) == before
                right.start()
                wait(lambda: right.owned() == set(NAMESPACES), 20 * patience(), "it keeps what another server may take")
                assert states(text) == before
            assert fleet.finish() == []
