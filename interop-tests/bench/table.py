"""The table of budgets: each row measured on the release binary, with fresh data in a temporary directory.

    interop-tests/bench/run                    all rows
    interop-tests/bench/run --row 4 --row 12   these
    PEERS=1 interop-tests/bench/run            the peers that can be installed too, in the same run (peers.py)

What is told is the median of --runs. Where nothing else is said: 2 cores shared by broker and load, loopback, one queue, durable
messages, at least once on both sides, synced to the disk before the sender is told, bodies of 1 KiB, a broker that is warm. Warm
means that a load went before, which is not counted: while the first segments of the log are being prepared a message costs more.
The row about throughput tells the cold figure too. TMPDIR chooses the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import costs  # noqa: E402
from measure import (  # noqa: E402
    Jitney, MeasureError, Scratch, binary, free_ports, hold, load, loadgen, loadgen_command, median, queues,
)

MIB = 1024 * 1024
# The broker's cache of recent bodies, as it is without --cache-mb.
CACHE_BYTES = 64 * MIB
# The head of a message of ours in front of its body: header, and the data section's.
HEAD_BYTES = 15
# Messages that make a broker warm, and those that are counted in a run.
WARM = 200_000
COUNTED = 400_000
# Messages that wait in the rows about memory and recovery, and in the one about a long queue.
WAITING = 1_000_000
LONG = 10_000_000
# Messages that go through a queue of WAITING until its disk use is looked at, and of how many one is deferred.
THROUGH = 4_000_000
DEFER_EVERY = 1_000
# What the filling of a queue sends in one transfer; 10 million messages would take minutes one by one.
BATCH = 100


@dataclass
class Measured:
    """A row's figure, and what the figures behind it are."""

    text: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class Row:
    number: int
    what: str
    budget: str
    stretch: str
    measure: Callable[[Run], Measured]


class Run:
    """What the rows of one run share: how often each is measured, and what is dear to make."""

    def __init__(self, runs: int, stack: ExitStack):
        self.runs = runs
        self.stack = stack
        self.rates: list[float] = []
        self.million: tuple[Path, int] | None = None
        self.peers: list[dict[str, Any]] | None = None

    @contextmanager
    def broker(self, config: dict[str, Any] | None = None, warm: str | None = "bench") -> Iterator[Jitney]:
        """A broker on fresh data; a queue of its is used for its warming up."""
        with Scratch() as directory, Jitney.start(directory, config or queues("bench")) as broker:
            if warm:
                load(broker.address, node=warm, messages=WARM)
            yield broker

    def own_rate(self) -> float:
        """What one pair gets through at most: measured with row 1, or now."""
        if not self.rates:
            with self.broker() as broker:
                self.rates = [load(broker.address, node="bench", messages=COUNTED)["rate"] for _ in range(self.runs)]
        return median(self.rates)

    def filled(self) -> tuple[Path, int]:
        """The data of a broker that was killed with a million messages waiting, and what it had in RAM then."""
        if self.million is None:
            directory = self.stack.enter_context(Scratch())
            with Jitney.start(directory, queues("bench")) as broker:
                load(broker.address, node="bench", messages=WAITING, send_only=True)
                # What was needed on the way goes back to the system by and by.
                time.sleep(3)
                self.million = (directory, broker.resident_bytes())
                broker.kill()
        return self.million


def cost(reports: list[dict[str, Any]]) -> str:
    cpu = median(report["broker"]["cpu_seconds_per_million"] for report in reports)
    return f"{cpu:.2f} CPU s ({median(report['rate'] for report in reports):,.0f} a second)"


def one_pair(run: Run) -> Measured:
    cold, warm = [], []
    for _ in range(run.runs):
        with run.broker(warm=None) as broker:
            cold.append(load(broker.address, node="bench", messages=WARM, pid=broker.pid))
            warm.append(load(broker.address, node="bench", messages=COUNTED, pid=broker.pid))
    run.rates = [report["rate"] for report in warm]
    return Measured(f"{cost(warm)}; cold {cost(cold)}", {"warm": warm, "cold": cold})


def eight_pairs(run: Run) -> Measured:
    names = [f"bench.{number}" for number in range(8)]
    shared, apart = [], []
    for _ in range(run.runs):
        with run.broker(queues("bench", *names)) as broker:
            shared.append(load(broker.address, node="bench", messages=COUNTED, pairs=8, pid=broker.pid))
            load(broker.address, node="bench.", messages=WARM, pairs=8, node_per_pair=True)
            apart.append(load(broker.address, node="bench.", messages=COUNTED, pairs=8, node_per_pair=True, pid=broker.pid))
    return Measured(f"one queue {cost(shared)}; 8 queues {cost(apart)}", {"one": shared, "eight": apart})


def beside_peers(run: Run) -> Measured:
    if os.environ.get("PEERS") != "1":
        return Measured("not measured: PEERS=1 installs and runs them")
    try:
        import peers
    except ImportError as error:
        return Measured(f"not measured: {error}")
    run.peers = peers.compare(runs=run.runs, say=say)
    found = []
    for entry in run.peers:
        if "RabbitMQ 4" in entry["name"] and "quorum" in entry["name"]:
            title = f"{entry['name']} {entry['version']}".strip()
            found.append(f"{entry['ratio']['pair_rate']:.1f} x {title}" if "ratio" in entry else f"{title}: {entry['unavailable']}")
    return Measured("; ".join(found) or "not measured: no RabbitMQ 4.x with quorum queues among the peers")


def latencies(run: Run, rate: int) -> list[dict[str, Any]]:
    with run.broker() as broker:
        return [
            load(broker.address, node="bench", duration=5, warm_up=rate, rate=rate, pid=broker.pid) for _ in range(run.runs)
        ]


def quantiles(reports: list[dict[str, Any]], which: str, *names: str) -> list[float]:
    """Medians of the runs, in milliseconds."""
    return [median(report[which][name] for report in reports) / 1000 for name in names]


def slow_pace(run: Run) -> Measured:
    reports = latencies(run, 2_000)
    p50, p99 = quantiles(reports, "end_to_end", "p50", "p99")
    told50, told99 = quantiles(reports, "acknowledged", "p50", "p99")
    return Measured(f"{p50:.2f} / {p99:.2f} ms (sender told after {told50:.2f} / {told99:.2f})", {"runs": reports})


def half_pace(run: Run) -> Measured:
    rate = int(run.own_rate() / 2)
    reports = latencies(run, rate)
    p50, p99 = quantiles(reports, "end_to_end", "p50", "p99")
    kept = median(report["rate"] for report in reports)
    return Measured(f"{p99:.1f} ms at {kept:,.0f} a second (p50 {p50:.2f})", {"asked": rate, "runs": reports})


def memory(run: Run) -> Measured:
    _, resident = run.filled()
    return Measured(f"{(resident - CACHE_BYTES) / MIB:.0f} MiB (RSS {resident / MIB:.0f} MiB)", {"resident_bytes": resident})


def long_queue(run: Run) -> Measured:
    # Bodies, what goes with each, and room for the segments that are being prepared.
    fits = 1.6 * LONG * 1024 < shutil.disk_usage(os.environ.get("TMPDIR", "/tmp")).free
    size = 1024 if fits else 100
    config = queues("bench", "empty")
    with run.broker(config, warm="empty") as broker:
        def both(node: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
            options = {"node": node, "size": size, "pid": broker.pid}
            fast = [load(broker.address, messages=COUNTED, **options) for _ in range(run.runs)]
            # Without receivers, who would take what waits as fast as they can.
            slow = [load(broker.address, duration=3, warm_up=2000, rate=2000, send_only=True, **options) for _ in range(run.runs)]
            return fast, slow

        load(broker.address, node="bench", messages=LONG, size=size, batch=BATCH, send_only=True)
        resident = broker.resident_bytes()
        long_fast, long_slow = both("bench")
        # In the same process, so that only what waits is different; its own queue is empty.
        fast, slow = both("empty")
    ratio = median(report["rate"] for report in long_fast) / median(report["rate"] for report in fast)
    told = quantiles(long_slow, "acknowledged", "p50", "p99")
    usual = quantiles(slow, "acknowledged", "p50", "p99")
    note = "" if fits else f"; bodies of {size} B, for 10 GiB do not fit on this disk"
    text = (
        f"{ratio:.2f} x throughput; at 2,000/s the sender told after {told[0]:.2f} / {told[1]:.2f} ms (empty queue beside it "
        f"{usual[0]:.2f} / {usual[1]:.2f}); RSS {resident / MIB:,.0f} MiB{note}"
    )
    data = {"size": size, "long": long_fast, "empty": fast, "long_slow": long_slow, "empty_slow": slow, "resident_bytes": resident}
    return Measured(text, data)


def first_message(directory: Path, config: dict[str, Any]) -> float:
    """Starts a broker on a directory, and returns the seconds from before its process was made to its first accepted message."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    # The load is there first and knocks every millisecond: its own start is not part of the time.
    words = loadgen_command("load", address, node="bench", messages=1, send_only=True, connect_timeout=60)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
        time.sleep(0.1)
        with Jitney.start(directory, config, address=address) as broker:
            out, err = client.communicate(timeout=60)
            if client.returncode != 0:
                raise MeasureError(err.strip())
            return json.loads(out)["first_accepted_at"] - broker.started_at


def start(run: Run) -> Measured:
    seconds = []
    for _ in range(max(run.runs, 5)):
        with Scratch() as directory:
            seconds.append(first_message(directory, queues("bench")))
    return Measured(f"{median(seconds) * 1000:.0f} ms", {"seconds": seconds})


def recovery(run: Run) -> Measured:
    killed, _ = run.filled()
    seconds = []
    for _ in range(run.runs):
        # Each from the same data: a broker that has recovered leaves a fresh checkpoint.
        with Scratch() as directory:
            shutil.copytree(killed / "data", directory / "data")
            seconds.append(first_message(directory, queues("bench")))
    return Measured(f"{median(seconds):.2f} s to the first accepted message", {"seconds": seconds})


def disk(run: Run) -> Measured:
    alive = (WAITING + THROUGH // DEFER_EVERY) * (1024 + HEAD_BYTES)
    sizes: list[int] = []
    with run.broker(warm=None) as broker:
        load(broker.address, node="bench", messages=WAITING, batch=BATCH, send_only=True)
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.5):
                sizes.append(broker.data_bytes())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            report = load(broker.address, node="bench", messages=THROUGH, defer_every=DEFER_EVERY, pid=broker.pid)
        finally:
            done.set()
            watcher.join()
    steady = sizes[len(sizes) // 2:]
    text = f"{median(steady) / alive:.2f} x ({max(steady) / alive:.2f} x at most; {alive / MIB:,.0f} MiB alive)"
    return Measured(text, {"alive": alive, "sizes": sizes, "report": report})


def scheduled(run: Run) -> Measured:
    config = queues("bench", "few", "many")
    with run.broker(config) as broker:
        due = []
        for _ in range(run.runs):
            moment = int((time.time() + 6) * 1000)
            due.append(load(broker.address, node="bench", messages=100_000, due_at=moment))
        for node, count in (("few", 1_000), ("many", 1_000_000)):
            # A second apart in the queue: due over many days.
            load(broker.address, node=node, messages=count, batch=BATCH, due_in=10 * 86_400, send_only=True)
        cancels = {
            node: [loadgen("cancel", broker.address, node=node, messages=1_000)["cancel"]["latency"] for _ in range(run.runs)]
            for node in ("few", "many")
        }
    last = median(report["end_to_end"]["max"] for report in due) / 1e6
    early = sum(report["early"] for report in due)
    few, many = (median(latency["p50"] for latency in cancels[node]) / 1000 for node in ("few", "many"))
    text = f"{last:.2f} s ({early} before their time); a cancel {many:.2f} ms, among a thousand {few:.2f} ms"
    return Measured(text, {"due": due, "cancels": cancels})


def fan_out(run: Run) -> Measured:
    def subscription(number: int) -> dict[str, Any]:
        rule = {"FilterType": "Correlation", "CorrelationFilter": {"Label": f"subject {number}"}}
        return {"Name": f"s{number}", "Rules": [{"Name": "r", "Properties": rule}]}

    topic = {"Name": "topic", "Subscriptions": [subscription(number) for number in range(1_000)]}
    ratios, reports = [], []
    with run.broker(queues("bench", topics=[topic])) as broker:
        options = {"subject": "subject 500", "messages": COUNTED, "pid": broker.pid}
        through = {**options, "node": "topic", "source": "topic/Subscriptions/s500"}
        load(broker.address, **{**through, "messages": WARM})
        for _ in range(run.runs):
            plain = load(broker.address, node="bench", **options)
            routed = load(broker.address, **through)
            ratios.append(routed["broker"]["cpu_seconds"] / plain["broker"]["cpu_seconds"])
            reports.append({"plain": plain, "routed": routed})
    return Measured(f"{median(ratios):.2f} x CPU", {"runs": reports})


def message_sessions(run: Run) -> Measured:
    config = queues("bench")
    config["UserConfig"]["Namespaces"][0]["Queues"] += queues("sessions", RequiresSession=True)["UserConfig"]["Namespaces"][0]["Queues"]
    active, plain = [], []
    with run.broker(config) as broker:
        options = {"messages": COUNTED, "pairs": 8, "pid": broker.pid}
        for number in range(run.runs + 1):
            kept = [
                load(broker.address, node="sessions", message_sessions=10_000, credit=20, **options),
                load(broker.address, node="bench", **options),
            ]
            # The first round makes it warm.
            if number:
                active.append(kept[0])
                plain.append(kept[1])
    ratio = median(report["rate"] for report in active) / median(report["rate"] for report in plain)
    return Measured(f"{ratio:.2f} x ({cost(active)}; without {cost(plain)})", {"active": active, "plain": plain})


def idle_connections(run: Run) -> Measured:
    count = 10_000

    def each(**options: Any) -> float:
        with run.broker(queues("bench", "idle"), warm=None) as broker:
            before = broker.resident_bytes()
            with hold(broker.address, connections=count, timeout=120, **options):
                time.sleep(2)
                return (broker.resident_bytes() - before) / count / 1024

    bare = [each() for _ in range(run.runs)]
    linked = [each(link="receiving", node="idle", credit=100) for _ in range(run.runs)]
    text = f"{median(bare):.1f} KiB each; with a link that receives {median(linked):.1f} KiB"
    return Measured(text, {"bare": bare, "linked": linked})


def measured(what: Callable[[Run], tuple[str, dict[str, Any]]]) -> Callable[[Run], Measured]:
    """Makes a row's measurement of a function that returns its text and its data."""
    return lambda run: Measured(*what(run))


def binary_size(_: Run) -> Measured:
    with Scratch() as directory:
        stripped = directory / "jitney"
        try:
            subprocess.run(["strip", "-o", str(stripped), str(binary())], check=True, capture_output=True)
        except FileNotFoundError:
            return Measured(f"{binary().stat().st_size / 1e6:.1f} MB, not stripped: there is no strip")
        return Measured(f"{stripped.stat().st_size / 1e6:.1f} MB", {"bytes": stripped.stat().st_size})


ROWS = [
    Row(1, "CPU s per million messages, 1 KiB, 1 pair", "4.0", "2.5", one_pair),
    Row(2, "the same, 8 pairs on one queue, and 8 queues", "4.0", "2.5", eight_pairs),
    Row(3, "throughput, 1 KiB, 1 pair, to RabbitMQ 4.x quorum in the same run", "4 x", "6 x", beside_peers),
    Row(4, "end-to-end latency p50 / p99 at 2,000 a second, synced", "0.5 / 2 ms", "0.3 / 1 ms", slow_pace),
    Row(5, "the same at half of the own maximum throughput: p99", "10 ms", "3 ms", half_pace),
    Row(6, "memory with 1 M messages of 1 KiB waiting, less 64 MiB of cache", "250 MiB", "150 MiB", memory),
    Row(7, "throughput and latency with 10 M messages waiting, to an empty queue", "0.8 x", "0.95 x", long_queue),
    Row(8, "start on no data, to the first accepted message", "50 ms", "20 ms", start),
    Row(9, "recovery of 1 M live messages after SIGKILL", "2 s", "1 s", recovery),
    Row(10, "disk used to bytes alive, steady state, with one message in 1,000 deferred for good", "2.5 x", "1.5 x", disk),
    Row(11, "100,000 scheduled messages due in the same second, until all are delivered; a cancel among 1 M", "1 s; O(log n)", "", scheduled),
    Row(12, "topic with 1,000 subscriptions, correlation filters, 1 matching: publish, to a plain queue", "1.3 x CPU", "1.1 x", fan_out),
    Row(13, "10,000 message sessions active at once: throughput, to one queue without", "0.7 x", "0.9 x", message_sessions),
    Row(14, "an idle connection's memory, of 10,000", "32 KiB", "16 KiB", idle_connections),
    Row(15, "release binary, stripped", "20 MB", "12 MB", binary_size),
    Row(16, "CPU s per million messages at a slow pace, and of a program that only receives, syncs and sends", "80; 150", "60", measured(costs.quiet)),
    Row(17, "10,000 idle connections with receivers, each with one empty frame both ways in two minutes", "0.5 % of a core", "", measured(costs.idle)),
    Row(18, "a neutral client, to its own sink that stores nothing", "0.7 x, 1.4 x CPU", "", measured(costs.neutral)),
    Row(19, "two busy namespaces in two shards, to one shard", "", "", measured(costs.two_shards)),
    Row(20, "one core and 64 MiB", "serves and refuses", "", measured(costs.small_machine)),
]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the rows of the table of budgets.")
    parser.add_argument("--row", type=int, action="append", choices=[row.number for row in ROWS], help="this one; may be repeated")
    parser.add_argument("--runs", type=int, default=3, help="of each row; the median is told")
    parser.add_argument("--json", metavar="FILE", help="write the figures behind the table there too")
    arguments = parser.parse_args()
    rows = [row for row in ROWS if not arguments.row or row.number in arguments.row]
    lines, figures, failed = [], {}, False
    with ExitStack() as stack:
        run = Run(max(arguments.runs, 1), stack)
        for row in rows:
            began = time.monotonic()
            try:
                measured = row.measure(run)
            except MeasureError as error:
                measured = Measured(f"not measured: {str(error).splitlines()[0]}")
                say(f"row {row.number}: {error}")
                failed = True
            figures[row.number] = {"text": measured.text, **measured.data}
            say(f"row {row.number}: {measured.text} [{time.monotonic() - began:.0f} s]")
            command = f"`interop-tests/bench/run --row {row.number}`"
            lines.append(f"| {row.number} | {row.what} | {row.budget} | {row.stretch} | {measured.text} | {command} |")
        version = subprocess.run([str(binary()), "--version"], capture_output=True, text=True, check=True).stdout.strip()
        print(f"{version}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d %H:%M')}, medians of {run.runs}\n")
        print("| # | what | budget | stretch | measured | command |\n|---|---|---|---|---|---|")
        print("\n".join(lines))
        if run.peers is not None:
            import peers
            print(f"\n{peers.markdown(run.peers)}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
