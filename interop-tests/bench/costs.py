"""Rows 16 to 20: what a message and a connection cost a quiet broker, and what a neutral client, a second core and a small machine show."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measure import (
    QUIET_PACES, Jitney, MeasureError, Process, Scratch, free_ports, hold, load, load_at_pace, median, queues, wait_for_port,
)

HERE = Path(__file__).resolve().parent
# For how long a slow pace is kept, seconds.
PACED_SECONDS = 6
# How long idle connections are watched, in which each sends and is sent one empty frame; and how long they are left alone before, until
# the deadlines of their beginning are over, seconds.
WATCHED_SECONDS = 120
LEFT_ALONE_SECONDS = 70
# Messages of one run of the neutral client.
NEUTRAL = 400_000
# What a small machine has, MiB, and what goes through it.
SMALL_MIB = 64
SMALL_MESSAGES = 200_000


def compiled(source: Path, directory: Path, packages: tuple[str, ...] = ()) -> Path:
    """Compiles a C program; `packages` are those that pkg-config is asked about."""
    flags: list[str] = []
    if packages:
        asked = subprocess.run(["pkg-config", "--cflags", "--libs", *packages], capture_output=True, text=True)
        if asked.returncode != 0:
            raise MeasureError(f"{source.name} needs {', '.join(packages)}: apt-get install libqpid-proton11-dev pkg-config")
        flags = asked.stdout.split()
    program = directory / source.stem
    built = subprocess.run(["gcc", "-O2", "-o", str(program), str(source), *flags, "-lpthread"], capture_output=True, text=True)
    if built.returncode != 0:
        raise MeasureError(f"{source} does not compile: {built.stderr}")
    return program


def quiet(run: Any) -> tuple[str, dict[str, Any]]:
    """The cost of a message at a slow pace, and that of the program that does the least for it, in turn."""
    texts, data = [], {}
    with Scratch() as directory, run.broker() as broker:
        program = compiled(HERE / "floor" / "floor.c", directory)
        for pace in QUIET_PACES:
            reports, floors, switches = [], [], []
            messages = pace * PACED_SECONDS
            for _ in range(run.runs):
                report, switched = load_at_pace(broker, "bench", pace, PACED_SECONDS)
                reports.append(report)
                switches.append(switched)
                words = [str(program), str(pace), str(messages), str(directory / "floor.dat")]
                done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
                floors.append(json.loads(done.stdout))
            cost = median(report["broker"]["cpu_seconds_per_million"] for report in reports)
            floor = median(each["cpu_seconds_per_million"] for each in floors)
            p50, p99 = (median(report["end_to_end"][name] for report in reports) / 1000 for name in ("p50", "p99"))
            texts.append(f"{pace:,} a second: {cost:.0f} CPU s, the least {floor:.0f}, {median(switches):.1f} switches, {p50:.2f} / {p99:.2f} ms")
            data[str(pace)] = {"runs": reports, "floors": floors, "switches": switches}
    return "; ".join(texts), data


def idle(run: Any) -> tuple[str, dict[str, Any]]:
    """The share of a core that idle connections with receivers take."""
    count = 10_000
    with run.broker(queues("bench", "idle"), warm=None) as broker:
        with hold(broker.address, connections=count, link="receiving", node="idle", credit=100, timeout=240):
            time.sleep(LEFT_ALONE_SECONDS)
            before, began = broker.cpu_seconds(), time.monotonic()
            time.sleep(WATCHED_SECONDS)
            share = (broker.cpu_seconds() - before) / (time.monotonic() - began)
    return f"{100 * share:.2f} % of a core", {"share": share, "connections": count}


@contextmanager
def sink(program: Path) -> Iterator[tuple[str, Process]]:
    """The neutral client as a peer that takes messages and makes others, and stores nothing."""
    (port,) = free_ports(1)
    with subprocess.Popen([str(program), "-m", "sink", "-h", "127.0.0.1", "-p", str(port)]) as process:
        try:
            wait_for_port(f"127.0.0.1:{port}")
            yield f"127.0.0.1:{port}", Process(process.pid)
        finally:
            process.kill()


def neutral_load(program: Path, address: str, node: str, size: int, process: Process) -> tuple[float, float]:
    """Runs the neutral client; returns messages a second, and the CPU seconds of the peer for a million."""
    host, port = address.rsplit(":", 1)
    words = [str(program), "-m", "both", "-h", host, "-p", port, "-a", node, "-n", str(NEUTRAL), "-s", str(size), "-d"]
    before = process.cpu_seconds()
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise MeasureError(f"{' '.join(words)}: {done.stdout} {done.stderr}")
    report = json.loads(done.stdout)
    return report["e2e_rate"], (process.cpu_seconds() - before) / report["received"] * 1e6


def neutral(run: Any) -> tuple[str, dict[str, Any]]:
    """Throughput and cost with the neutral client, to those of its sink in the same run."""
    texts, data = [], {}
    with Scratch() as directory, run.broker() as broker:
        program = compiled(HERE / "aload" / "aload.c", directory, ("libqpid-proton",))
        for size in (1024, 100):
            rates, costs = [], []
            for _ in range(run.runs):
                rate, cost = neutral_load(program, broker.address, "bench", size, broker)
                with sink(program) as (address, process):
                    sink_rate, sink_cost = neutral_load(program, address, "bench", size, process)
                rates.append(rate / sink_rate)
                costs.append(cost / sink_cost)
                data.setdefault(str(size), []).append([rate, cost, sink_rate, sink_cost])
            texts.append(f"{size} B: {median(rates):.2f} x the throughput, {median(costs):.2f} x the CPU")
    return "; ".join(texts), data


def two_shards(run: Any) -> tuple[str, dict[str, Any]]:
    """Two busy namespaces in two shards, to the same in one."""
    config = queues("bench")
    spaces = config["UserConfig"]["Namespaces"]
    spaces.append({**spaces[0], "Name": "other"})

    def together(shards: int) -> float:
        with Scratch() as directory, Jitney.start(directory, config, ["--shards", str(shards)]) as broker:
            def one(host: str) -> float:
                load(broker.address, node="bench", host=host, messages=100_000)
                return load(broker.address, node="bench", host=host, messages=300_000)["rate"]

            with ThreadPoolExecutor(2) as pool:
                return sum(pool.map(one, ("bench.localhost", "other.localhost")))

    one, two = [], []
    for _ in range(run.runs):
        one.append(together(1))
        two.append(together(2))
    ratio = median(after / before for before, after in zip(one, two))
    return f"{ratio:.2f} x ({median(two):,.0f} a second, {median(one):,.0f} with one shard)", {"one": one, "two": two}


def small_machine(run: Any) -> tuple[str, dict[str, Any]]:
    """One core and little memory: it starts, serves, and refuses what does not fit."""
    before = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    arguments = ["--memory-limit", f"{SMALL_MIB}MiB"]
    with Scratch() as directory, Jitney.start(directory, queues("bench", "full"), arguments, before=before) as broker:
        served = load(broker.address, node="bench", messages=SMALL_MESSAGES, pid=broker.pid)
        refusal = ""
        try:
            load(broker.address, node="full", messages=20_000_000, size=8, batch=100, send_only=True, timeout=300)
        except MeasureError as error:
            refusal = str(error).rsplit(": ", 1)[-1]
        peak = broker.peak_bytes()
        again = load(broker.address, node="full", messages=1_000, size=8, receive_only=True, timeout=60)
        broker.stop()
    mib = peak / 1024 / 1024
    text = f"{served['rate']:,.0f} a second; at most {mib:.0f} MiB resident when it refused, and {again['received']:,} were received then"
    return text, {"served": served, "refusal": refusal, "peak": peak}
