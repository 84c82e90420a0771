#!/usr/bin/env python3
"""Three servers over a primary and two standbys, under load, while servers, databases and networks fail.

    ha.py                          the faults of faults.py, once each
    ha.py --rounds 300 [--seed 1]  so many faults, chosen at random
    ha.py --seconds 300            faults chosen at random, for so long
    ha.py WORD...                  those whose names contain a word

A round is one fault under the load of load.py, goload and javaload. No namespace may be silent for longer than the fault allows. After a few
rounds the load ends, and the auditor compares what was acknowledged with what was received and what is there.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import statistics
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from audit import Auditor  # noqa: E402
from broker import WORK  # noqa: E402
from faults import FAULTS, Scene  # noqa: E402
from fleet import Fleet, configuration, wait  # noqa: E402
from loads import ALL_QUEUES, Audits, Loads, build_loads  # noqa: E402
from postgres import Cluster  # noqa: E402

DIRECTORY = Path(os.environ.get("JITNEY_WORK", WORK / "ha")) / "own"
NAMESPACES = ["n1", "n2", "n3", "n4"]
# The queues of each: those of the loads, and one that faults fill.
QUEUES = [*ALL_QUEUES, {"Name": "bulk"}]
# Rounds under one load: its end takes as long as a round.
ROUNDS_OF_A_LOAD = 6
# How long a namespace may take after a fault until the round is given up.
GIVEN_UP_SECONDS = 60.0


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
        build_loads()
        directory.mkdir(parents=True)
        self.cluster = Cluster(directory / "postgres")
        self.cluster.start()
        config = configuration(directory / "Config.json", {name: {"Queues": QUEUES} for name in NAMESPACES})
        self.fleet = Fleet(directory / "fleet", self.cluster.url(), 3, config)
        self.fleet.start()

    def end(self) -> list[str]:
        """Ends both; returns what was wrong with the servers."""
        complaints = self.fleet.finish() if self.fleet else []
        if self.cluster:
            self.cluster.close()
        self.cluster = self.fleet = None
        return complaints

    def loads(self, name: str) -> Loads:
        """The loads on the namespaces."""
        return Loads(self.fleet.directory.parent, self.fleet.balancer.port, NAMESPACES, name)


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


def play(world: World, report: Report, names: Iterator[str], seed: int) -> bool:
    """Some faults, one after the other under one load, and then the audit. Returns whether there may be others."""
    first = next(names, None)
    if first is None:
        return False
    world.start()
    chance = random.Random(seed)
    rounds: list[tuple[str, Scene, list[str]]] = []
    audits = Audits()
    problems: list[str] = []
    with world.loads(f"rounds-{seed}") as loads:
        # A round goes by this SDK: it sends the most, and connects again the soonest.
        load = loads.by_sdk["Python"]
        try:
            loads.wait_more(5)
            # Those behind one that fails are left for the next load.
            for name in itertools.chain([first], itertools.islice(names, ROUNDS_OF_A_LOAD - 1)):
                scene = Scene(world.cluster, world.fleet, load, random.Random(chance.random()))
                rounds.append((name, scene, []))
                FAULTS[name](scene)
                load.wait_more(10, GIVEN_UP_SECONDS)
                scene.until = time.monotonic()
                loads.wait_more(1, GIVEN_UP_SECONDS)
                wait(lambda: len(world.fleet.balancer.well()) == len(world.fleet.servers), 30, "a server did not become well again")
                # Rounds are nearer to each other than failures are: a namespace is left alone after three without a minute between, and a server
                # rests after two without ten minutes between.
                world.cluster.query("update jitney.namespace_state set failures = 0, died_at = null")
                world.cluster.query("update jitney.server set deaths = 0")
            audits = loads.finish()
            problems = audits.violations
        except Exception:  # noqa: BLE001
            problems = [traceback.format_exc(), f"see {world.fleet.directory}"]
    judge(report, rounds, audits.get("Python"))
    report.test(f"audit of seed {seed}: {', '.join(name for name, *_ in rounds)}", problems,
                "; ".join(f"{sdk}: {summary(auditor)}" for sdk, auditor in audits.items()))
    if problems:
        # The next rounds have a cluster and a fleet of their own, and the logs of these stay.
        world.end()
    return True


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
    transactions = f"{counts['commit!'] // 2} transactions, " if counts["commit!"] else ""
    return (f"{counts['send!'] + counts['schedule!']} acknowledged, {transactions}{counts['got']} received, {counts['complete!']} completed, "
            f"{counts['left']} left")


def chosen(options: argparse.Namespace) -> Iterator[str]:
    """The names of the faults, in their order."""
    names = [name for name in FAULTS if not options.words or any(word in name for word in options.words)]
    chance, began = random.Random(options.seed), time.monotonic()
    if options.rounds:
        yield from (chance.choice(names) for _ in range(options.rounds))
        return
    while True:
        # Each once before one comes again.
        for name in chance.sample(names, len(names)):
            if options.seconds and time.monotonic() > began + options.seconds:
                return
            yield name
        if not options.seconds:
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--patience", type=float, default=1, help="how many times the usual limit a namespace may be silent: for machines with other work")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    # The loads read it.
    os.environ["JITNEY_PATIENCE"] = str(options.patience)
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    world, report, names = World(), Report(options.patience), chosen(options)
    complaints: list[str] = []
    try:
        for seed in itertools.count(options.seed):
            if not play(world, report, names, seed):
                break
    finally:
        complaints = world.end()
    if complaints:
        report.test("the servers ended in order", complaints)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
