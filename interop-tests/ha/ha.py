#!/usr/bin/env python3
"""Three servers over a primary and two standbys, under load, while servers, databases and networks fail.

    ha.py                          the faults of faults.py, once each
    ha.py --tests                  the tests below, which have clusters of their own
    ha.py --rounds 300 [--seed 1]  so many faults, chosen at random
    ha.py WORD...                  those whose names contain a word

A round is one fault under the load of load.py. No namespace may be silent for longer than the fault allows. After a few rounds the load
ends, and the auditor compares what was acknowledged with what was received and what is there.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from audit import Auditor  # noqa: E402
from broker import WORK, BrokerError  # noqa: E402
from faults import CLIENT_SECONDS, FAULTS, TAKE_OVER_SECONDS, Scene  # noqa: E402
from fleet import Fleet, configuration, wait  # noqa: E402
from load import QUEUES, Load  # noqa: E402
from postgres import ROLE, Cluster  # noqa: E402

DIRECTORY = Path(os.environ.get("JITNEY_WORK", WORK / "ha")) / "own"
NAMESPACES = ["n1", "n2", "n3", "n4"]
# The queues of each: the Python SDK's, and the Go SDK's.
ALL_QUEUES = [*QUEUES, {"Name": "go", "Properties": QUEUES[0]["Properties"]}]
GOLOAD = HERE / "target" / "goload"
# Rounds under one load: its end takes as long as a round.
ROUNDS_OF_A_LOAD = 6
# How long a namespace may take after a fault until the round is given up.
GIVEN_UP_SECONDS = 60.0
# Namespaces of the test with many of them, and how long they may take to be owned again.
MANY, MANY_SECONDS = 1000, 15.0


class World:
    """A cluster and a fleet that several tests use, made again after one has failed."""

    def __init__(self) -> None:
        self.cluster: Cluster | None = None
        self.fleet: Fleet | None = None
        self.made = 0

    def start(self) -> None:
        if self.fleet:
            return
        self.made += 1
        directory = DIRECTORY / f"{self.made}"
        build_goload()
        directory.mkdir(parents=True)
        self.cluster = Cluster(directory / "postgres")
        self.cluster.start()
        config = configuration(directory / "Config.json", {name: {"Queues": ALL_QUEUES} for name in NAMESPACES})
        self.fleet = Fleet(directory / "fleet", self.cluster.url(), 3, config)
        self.fleet.start()

    def end(self) -> list[str]:
        """Ends both; returns what was wrong with the servers."""
        complaints = self.fleet.finish() if self.fleet else []
        if self.cluster:
            self.cluster.close()
        self.cluster = self.fleet = None
        return complaints

    def load(self, name: str, program: list[str] | None = None) -> Load:
        """A load on the namespaces: the Python SDK's, or another program's that writes the same journal."""
        journal = self.fleet.directory.parent / f"{name}.journal"
        return Load(journal, f"127.0.0.1:{self.fleet.balancer.port}", NAMESPACES, program)


def build_goload() -> None:
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    subprocess.run(["go", "build", "-o", GOLOAD, "."], cwd=HERE / "goload", env=environment, check=True)


class Report:
    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.passed = self.failed = 0
        # By fault, the longest silence of a namespace in each round.
        self.silences: dict[str, list[float]] = {}

    def test(self, name: str, problems: list[str], note: str = "") -> None:
        self.passed += not problems
        self.failed += bool(problems)
        print(f"{'FAILED' if problems else 'ok'}: {name}{note and f' ({note})'}", flush=True)
        for problem in problems[:20]:
            print(f"   {problem}", flush=True)

    def close(self) -> int:
        for name, silences in sorted(self.silences.items()):
            print(f"   {name}: {len(silences)} rounds, median {statistics.median(silences):.1f} s, longest {max(silences):.1f} s")
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


# Rounds of faults.


def play(world: World, report: Report, names: list[str], seed: int) -> int:
    """The faults, one after the other under one load, and then the audit. Returns how many there were until one failed."""
    world.start()
    chance = random.Random(seed)
    rounds: list[tuple[str, Scene, list[str]]] = []
    auditor = others = None
    problems: list[str] = []
    with world.load(f"rounds-{seed}") as load, world.load(f"rounds-{seed}-go", [str(GOLOAD)]) as go:
        try:
            load.wait_more(10)
            for name in names:
                scene = Scene(world.cluster, world.fleet, load, random.Random(chance.random()))
                rounds.append((name, scene, []))
                FAULTS[name](scene)
                load.wait_more(10, GIVEN_UP_SECONDS)
                scene.until = time.monotonic()
                wait(lambda: len(world.fleet.balancer.well()) == len(world.fleet.servers), 30, "a server did not become well again")
                # Rounds are nearer to each other than failures are: a namespace is left alone after three without a minute between.
                world.cluster.query("update jitney.namespace_state set failures = 0")
            auditor, others = load.finish(), go.finish()
            problems = auditor.violations + others.violations
            problems += [] if others.counts["complete!"] else ["the Go SDK has completed nothing"]
        except Exception:  # noqa: BLE001
            problems = [traceback.format_exc(), f"see {world.fleet.directory}"]
    judge(report, rounds, auditor)
    note = f"{summary(auditor)}; Go: {summary(others)}" if auditor and others else ""
    report.test(f"audit of seed {seed}: {', '.join(name for name, *_ in rounds)}", problems, note)
    if problems:
        # The next rounds have a cluster and a fleet of their own, and the logs of these stay.
        world.end()
    return len(rounds)


def judge(report: Report, rounds: list[tuple[str, Scene, list[str]]], auditor: Auditor | None) -> None:
    """Reports each round: was no namespace silent for too long?"""
    for fault, scene, problems in rounds:
        longest = 0.0
        if auditor and scene.expected:
            since, seconds = scene.expected
            seconds *= report.patience
            silences = {name: auditor.silence(name, since, scene.until) for name in NAMESPACES}
            problems += [f"{name} was silent {'to the end' if silence is None else f'for {silence:.1f} s'}, not {seconds:.1f} s at most"
                         for name, silence in silences.items() if silence is None or silence > seconds]
            longest = max((silence for silence in silences.values() if silence is not None), default=0.0)
            report.silences.setdefault(fault, []).append(longest)
        elif auditor is None:
            problems.append("there was no audit")
        report.test(fault, problems, "; ".join([*scene.notes, f"{longest:.1f} s"]))


def summary(auditor: Auditor) -> str:
    counts = auditor.counts
    return f"{counts['send!'] + counts['schedule!']} acknowledged, {counts['got']} received, {counts['complete!']} completed, {counts['left']} left"


# Tests of their own.


def servers_that_start_at_the_same_time_make_one_schema(world: World) -> list[str]:
    """On an empty database, again and again."""
    problems = []
    with Cluster(DIRECTORY / "empty" / "postgres", standbys=1) as cluster:
        for number in range(5):
            # Without what the servers before have made.
            cluster.query(f"drop database {ROLE}", database="postgres")
            cluster.query(f"create database {ROLE} owner {ROLE}", database="postgres")
            with Fleet(DIRECTORY / "empty" / f"fleet-{number}", cluster.url()) as fleet:
                problems += fleet.finish()
    return problems


def the_wrong_standby_is_promoted(world: World) -> list[str]:
    """The database has lost what was acknowledged. No namespace may go on as if it had not: its owner knows better, and stops it."""
    directory = DIRECTORY / "wrong"
    config = configuration_of(directory)
    with Cluster(directory / "postgres") as cluster, Fleet(directory / "fleet", cluster.url(), 3, config) as fleet:
        with Load(directory / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
            load.wait_more(20)
            _, behind = cluster.standbys
            behind.upstream.down()
            load.wait_more(50)
            cluster.primary.kill()
            before = dict(load.acknowledged())
            cluster.promote(behind)
            time.sleep(3 * TAKE_OVER_SECONDS)
            after = dict(load.acknowledged())
        told = "\n".join(server.broker.log_tail(100_000) for server in fleet.servers)
        problems = [f"{name} went on after it had lost messages: {after[name] - before[name]} were acknowledged"
                    for name in NAMESPACES if after[name] - before[name] > 5]
        problems += [f"no log names {name} and what is missing" for name in NAMESPACES
                     if not re.search(rf"(?i)\b{name}\b.*(shorter|lost|missing|other than)|(shorter|lost|missing|other than).*\b{name}\b", told)]
        return problems + [complaint for complaint in fleet.finish() if "panicked" in complaint]


def a_large_message_passes_a_slow_link(world: World) -> list[str]:
    """100 MiB at 8 MiB/s: no other namespace of that server waits for it, and the server is not declared dead."""
    from azure.servicebus import ServiceBusClient, ServiceBusMessage

    directory = DIRECTORY / "large"
    large = {"Queues": [*QUEUES, {"Name": "large", "Properties": {"MaxMessageSizeInKilobytes": 102_400}}]}
    config = configuration_of(directory, {NAMESPACES[0]: large})
    with Cluster(directory / "postgres") as cluster, Fleet(directory / "fleet", cluster.url(), 2, config) as fleet:
        for server in fleet.servers:
            for network in server.stores.values():
                network.slow(8 * 1024 * 1024)
        body = os.urandom(1024) * (100 * 1024 - 64)
        with Load(directory / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
            load.wait_more(10)
            epochs = fleet.owners()
            # Hosts that name no namespace lead to the first.
            with ServiceBusClient.from_connection_string(fleet.connection_string, retry_total=0) as client:
                with client.get_queue_sender("large") as sender, ThreadPoolExecutor() as pool:
                    sending = pool.submit(sender.send_messages, ServiceBusMessage(body), timeout=120)
                    while not sending.done():
                        load.wait_more(1, 15, NAMESPACES[1:])
                    sending.result()
                with client.get_queue_receiver("large") as receiver:
                    found = receiver.receive_messages(1, max_wait_time=90)
                    assert found, "the large message did not come within 90 s"
                    assert b"".join(found[0].body) == body, "the large message came with another body"
                    receiver.complete_message(found[0])
            for server in fleet.servers:
                for network in server.stores.values():
                    network.slow(None)
            problems = load.finish().violations
        if fleet.owners() != epochs:
            problems.append(f"namespaces moved: {epochs} became {fleet.owners()}")
        return problems + fleet.finish()


def a_thousand_namespaces_move_at_once(world: World) -> list[str]:
    directory = DIRECTORY / "many"
    names = [f"many-{number}" for number in range(MANY)]
    directory.mkdir(parents=True)
    config = configuration(directory / "Config.json", {name: {"Queues": [{"Name": "q"}]} for name in names})
    with Cluster(directory / "postgres", standbys=1) as cluster, Fleet(directory / "fleet", cluster.url(), 3, config, proxied=False) as fleet:
        owners = fleet.wait_owned(*names, seconds=120)
        shares = [sum(owner is server for owner in owners.values()) for server in fleet.servers]
        problems = [f"namespaces are not spread evenly: {shares}"] if max(shares) > 1.5 * min(shares) else []
        lost = fleet.servers[0]
        began = time.monotonic()
        lost.kill()
        fleet.wait_owned(*names, others_than=lost, seconds=120)
        took = time.monotonic() - began
        print(f"   {shares[0]} of {MANY} namespaces were taken over in {took:.1f} s", flush=True)
        if took > MANY_SECONDS:
            problems.append(f"the take-over took {took:.1f} s")
        return problems + fleet.finish()


def two_stores_are_served_by_three_servers(world: World) -> list[str]:
    """The loss of one store stops its namespaces, and no others."""
    directory = DIRECTORY / "two"
    config = configuration_of(directory)
    with Cluster(directory / "a") as a, Cluster(directory / "b", standbys=1) as b:
        with Fleet(directory / "fleet", {"a": a.url(), "b": b.url()}, 3, config) as fleet:
            with Load(directory / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
                load.wait_more(20)
                networks = [server.stores["b"] for server in fleet.servers]
                for network in networks:
                    network.down()
                time.sleep(TAKE_OVER_SECONDS + CLIENT_SECONDS)
                before = dict(load.acknowledged())
                time.sleep(3)
                alive = [name for name in NAMESPACES if load.acknowledged()[name] > before.get(name, 0)]
                for network in networks:
                    network.up()
                load.wait_more(10)
                fleet.servers[0].kill()
                load.wait_more(10)
                fleet.servers[0].start()
                problems = load.finish().violations
            if not 0 < len(alive) < len(NAMESPACES):
                problems.append(f"without store b, {alive} of {NAMESPACES} were served")
            return problems + fleet.finish()


def a_server_verifies_the_certificate_of_the_store(world: World) -> list[str]:
    problems = []
    with Cluster(DIRECTORY / "verified" / "postgres", standbys=1) as cluster:
        url = f"{cluster.url()}?sslmode=require"
        with Fleet(DIRECTORY / "verified" / "fleet", url, 1, arguments=["--store-ca", str(cluster.authority)]) as fleet:
            wait(fleet.owners, 30, "no namespace is owned")
            encrypted = cluster.query("select count(*), count(*) filter (where ssl) from pg_stat_ssl join pg_stat_activity using (pid)"
                                      " where usename = %s", ROLE)[0]
            if encrypted[0] != encrypted[1] or not encrypted[0]:
                problems.append(f"of {encrypted[0]} sessions, {encrypted[1]} are encrypted")
            problems += fleet.finish()
        # The authority is none of the system's.
        other = Fleet(DIRECTORY / "verified" / "other", url, 1)
        try:
            other.start()
            problems.append("a server trusts a certificate of an authority that it does not know")
        except BrokerError as error:
            if "certificate" not in str(error).lower():
                problems.append(f"a refused certificate is not named: {error}")
        finally:
            other.close()
    return problems


def wraparound_and_inactive_slots_are_in_the_metrics(world: World) -> list[str]:
    world.start()
    cluster, server = world.cluster, world.fleet.servers[0]
    cluster.query("select pg_create_physical_replication_slot('left_behind', true)")
    try:
        def text() -> str:
            return server.get("/metrics")

        # The names are not fixed here: a gauge of the store that speaks of slots, and one of the age of transaction numbers.
        wait(lambda: re.search(r"^jitney_store_\w*slots?\w*(\{.*\})? [1-9]", text(), re.MULTILINE), 90, "no metric counts the inactive slot")
        wait(lambda: re.search(r"^jitney_store_\w*(wraparound|transaction_age|xid)\w*(\{.*\})? \d", text(), re.MULTILINE), 90,
             "no metric has the age of the oldest transaction number")
    finally:
        cluster.query("select pg_drop_replication_slot('left_behind')")
    return []


TESTS: list[Callable[[World], list[str]]] = [
    servers_that_start_at_the_same_time_make_one_schema,
    a_server_verifies_the_certificate_of_the_store,
    wraparound_and_inactive_slots_are_in_the_metrics,
    two_stores_are_served_by_three_servers,
    the_wrong_standby_is_promoted,
    a_large_message_passes_a_slow_link,
    a_thousand_namespaces_move_at_once,
]


def configuration_of(directory: Path, others: dict[str, dict] | None = None) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return configuration(directory / "Config.json", {name: {"Queues": QUEUES} for name in NAMESPACES} | (others or {}))


def run_test(test: Callable[[World], list[str]], world: World, report: Report) -> None:
    began = time.monotonic()
    try:
        problems = test(world)
    except Exception:  # noqa: BLE001
        problems = [traceback.format_exc()]
    report.test(test.__name__.replace("_", " "), problems, f"{time.monotonic() - began:.0f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--patience", type=float, default=1, help="how many times the usual limit a namespace may be silent: for machines with other work")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()

    def is_wanted(name: str) -> bool:
        return not options.words or any(word in name for word in options.words)

    shutil.rmtree(DIRECTORY, ignore_errors=True)
    world, report, chance = World(), Report(options.patience), random.Random(options.seed)
    names = list(filter(is_wanted, FAULTS))
    names = [chance.choice(names) for _ in range(options.rounds)] if options.rounds else chance.sample(names, len(names))
    try:
        for test in TESTS if options.tests else []:
            if is_wanted(test.__name__.replace("_", " ")):
                run_test(test, world, report)
        at = len(names) if options.tests else 0
        while at < len(names):
            at += play(world, report, names[at:at + ROUNDS_OF_A_LOAD], options.seed + at)
    finally:
        complaints = world.end()
    if complaints:
        report.test("the servers ended in order", complaints)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
