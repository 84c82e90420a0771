#!/usr/bin/env python3
"""How Jitney's costs grow: the same measures over a growing number of one thing at a time.

    growth.py measure [CURVE ...] [--at N ...]   measure curves, or single values of one, into docs/performance/growth.json
    growth.py plot                               draw docs/performance/*.svg and the tables of docs/growth.md from it
    growth.py list                               the curves

Each value is measured on a broker of its own, with fresh data, warmed by a load that does not count: throughput and the
broker's CPU time while senders and receivers are as fast as they can, latency at a modest rate, then memory. RUNS=1 measures
each throughput once, to try. Only `plot` needs a package (requirements.txt).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from measure import ROOT, Jitney, Scratch, binary, load, loadgen, median, queues

RESULTS = ROOT / "docs" / "performance" / "growth.json"
PAGE = ROOT / "docs" / "growth.md"

KIB = 1024
MIB = 1024 * KIB
# What a body has beside it in a message's largest size: headers and the body's own descriptor.
ROOM_FOR_HEADERS = 4 * KIB
# The largest that an entity may allow, in the unit of its property.
LARGEST_KILOBYTES = 102_400
# A broker is warm when its first segments were prepared and its buffers have their sizes.
WARM_UP_SECONDS = 2.0
# How long one throughput is measured, and how often: the median counts.
RUN_SECONDS = 2.5
RUNS = int(os.environ.get("RUNS", "3"))
# Latency is measured at this rate, messages a second, for so long.
MODEST_RATE = 2_000
MODEST_SECONDS = 4.0
# Credit of all receiving links of a load together, and credit that one link has at least.
CREDIT = 1_000
CREDIT_MIN = 2
# Publishes on their way to a topic all of whose subscriptions match.
FAN_OUT_MIN = 10
# Requests of the management node whose latency is measured.
REQUESTS = 2_000
# Scheduled messages are due long after the measurement.
FAR_SECONDS = 86_400
# In the same queue as many messages wait, they take so little disk that ten million do.
SMALL_BODY = 100

Point = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """One of a curve's small charts: figures of its points, each with the word for the legend."""

    title: str
    figures: dict[str, str]
    from_zero: bool = True


THROUGHPUT = Panel("messages a second", {"rate": ""})
CPU = Panel("CPU seconds per million messages", {"cpu": ""})
LATENCY = Panel(f"ms to the receiver at {MODEST_RATE:,}/s", {"p50": "p50", "p99": "p99"})
MEMORY = Panel("resident MiB", {"resident": ""})
USUAL = (THROUGHPUT, CPU, LATENCY, MEMORY)


@dataclass(frozen=True)
class Curve:
    """What grows, over which values, and what is measured at one of them."""

    name: str
    title: str
    axis: str
    values: tuple[int, ...]
    # Yields a point for each series: what it is called, and its figures.
    measure: Callable[[int], Iterator[tuple[str, Point]]]
    panels: tuple[Panel, ...] = USUAL


# --- what is measured ---


@contextmanager
def broker(config: dict[str, Any], *arguments: str) -> Iterator[Jitney]:
    """A broker on fresh data."""
    with Scratch() as directory, Jitney.start(directory, config, arguments) as started:
        yield started


def warm(jitney: Jitney, **options: Any) -> None:
    load(jitney.address, duration=WARM_UP_SECONDS, **options)


def saturated(jitney: Jitney, **options: Any) -> Point:
    """As fast as it goes: throughput and CPU, each the median of the runs."""
    reports = [load(jitney.address, duration=RUN_SECONDS, pid=jitney.pid, **options) for _ in range(RUNS)]
    return {
        "rate": median(report["rate"] for report in reports),
        "cpu": median(report["broker"]["cpu_seconds_per_million"] for report in reports),
    }


def paced(jitney: Jitney, rate: float = MODEST_RATE, which: str = "end_to_end", **options: Any) -> Point:
    """Latency at a modest rate, counted from when each message was due."""
    report = load(jitney.address, duration=MODEST_SECONDS, rate=rate, **options)
    return {quantile: report[which][quantile] / 1e3 for quantile in ("p50", "p99")}


def resident(jitney: Jitney) -> Point:
    return {"resident": jitney.resident_bytes() / MIB}


def usual(jitney: Jitney, **options: Any) -> Point:
    """All four, on a warm broker."""
    warm(jitney, **options)
    return {**saturated(jitney, **options), **paced(jitney, **options), **resident(jitney)}


def connections(count: int) -> Iterator[tuple[str, Point]]:
    with broker(queues("bench")) as jitney:
        yield "one queue", usual(jitney, node="bench", pairs=count)
    with broker(queues(*(f"bench{number}" for number in range(count)))) as jitney:
        yield "a queue for each pair", usual(jitney, node="bench", pairs=count, node_per_pair=True)


def credit(links: int) -> int:
    """The credit of one link, if all links together are to have as much as one alone."""
    return max(CREDIT_MIN, CREDIT // links)


def many_queues(count: int) -> Iterator[tuple[str, Point]]:
    names = [f"bench{number}" for number in range(count)]
    with broker(queues(*names)) as jitney:
        start = {"start": jitney.start_seconds * 1e3, **{"idle": jitney.resident_bytes() / MIB}}
        yield "one of them used", {**usual(jitney, node="bench0", pairs=4), **start}
    with broker(queues(*names)) as jitney:
        links = {"nodes": count} if count > 1 else {}
        node = "bench" if count > 1 else "bench0"
        yield "all of them used", usual(jitney, node=node, pairs=4, credit=credit(count), **links)


def waiting(count: int) -> Iterator[tuple[str, Point]]:
    options = {"size": SMALL_BODY}
    with Scratch() as directory:
        with Jitney.start(directory, queues("waiting", "empty")) as jitney:
            warm(jitney, node="waiting", **options)
            before = jitney.resident_bytes()
            fill = load(jitney.address, node="waiting", send_only=True, messages=count, window=4 * CREDIT, pid=jitney.pid, **options)
            filled = {
                "each": (jitney.resident_bytes() - before) / count,
                "fill": fill["broker"]["cpu_seconds_per_million"],
                "resident": jitney.resident_bytes() / MIB,
                "disk": jitney.data_bytes() / MIB,
            }
            # Who receives gets what has waited longest, and as many as are sent.
            through = saturated(jitney, node="waiting", **options)
            told = paced(jitney, which="acknowledged", node="waiting", **options)
            yield "the queue where they wait", {**through, **{f"told_{name}": figure for name, figure in told.items()}, **filled}
            beside = {**saturated(jitney, node="empty", **options), **paced(jitney, node="empty", **options), **resident(jitney)}
            yield "an empty queue beside it", beside
            jitney.kill()
        began = time.monotonic()
        with Jitney.start(directory, queues("waiting", "empty")) as jitney:
            load(jitney.address, node="empty", send_only=True, messages=1)
            yield "after kill -9", {"recovery": time.monotonic() - began, "resident_after": jitney.resident_bytes() / MIB}


def bodies(size: int) -> Iterator[tuple[str, Point]]:
    config = queues("bench", MaxMessageSizeInKilobytes=LARGEST_KILOBYTES)
    body = min(size, LARGEST_KILOBYTES * KIB - ROOM_FOR_HEADERS)
    # Eight MiB or one message on their way, whichever is more.
    window = max(1, min(CREDIT, 8 * MIB // body))
    flow = {"node": "bench", "size": body, "credit": window, "window": window}
    # Sixteen MiB a second, and one message in two seconds at least: a machine of this kind does that easily.
    rate = min(MODEST_RATE, 16 * MIB // body)
    with broker(config) as jitney:
        load(jitney.address, node="bench", messages=1_000)
        before = jitney.peak_bytes()
        load(jitney.address, node="bench", size=body, messages=1, send_only=True)
        sent = jitney.peak_bytes() - before
        load(jitney.address, node="bench", size=body, messages=1, receive_only=True)
        received = jitney.peak_bytes() - before
    with broker(config) as jitney:
        if body < MIB:
            warm(jitney, **flow)
            point = saturated(jitney, **flow)
        else:
            messages = max(4, 512 * MIB // body)
            load(jitney.address, messages=messages, **flow)
            reports = [load(jitney.address, messages=messages, pid=jitney.pid, **flow) for _ in range(RUNS)]
            point = {
                "rate": median(report["rate"] for report in reports),
                "cpu": median(report["broker"]["cpu_seconds_per_million"] for report in reports),
            }
        if rate >= 1:
            latency = paced(jitney, rate=rate, **flow)
        else:
            alone = load(jitney.address, node="bench", size=body, messages=4, credit=1, window=1)
            latency = {quantile: alone["end_to_end"][quantile] / 1e3 for quantile in ("p50", "p99")}
        figures = {
            "mib": point["rate"] * body / MIB,
            "per_kib": point["cpu"] * KIB / body,
            "sent": sent / MIB,
            "received": received / MIB,
        }
        yield "one pair", {**point, **latency, **figures, "peak": jitney.peak_bytes() / MIB}


def subscriptions(count: int) -> Iterator[tuple[str, Point]]:
    def topic(name: str, rules: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
        entries = [{"Name": f"s{number}", "Properties": {"LockDuration": "PT5M"}, **rules(number)} for number in range(count)]
        return {"Name": name, "Properties": {"MaxSizeInMegabytes": 81_920}, "Subscriptions": entries}

    def rule(number: int) -> dict[str, Any]:
        filters = {"FilterType": "Correlation", "CorrelationFilter": {"Label": f"label{number}"}}
        return {"Rules": [{"Name": "rule", "Properties": filters}]}

    with broker(queues(topics=[topic("one", rule)])) as jitney:
        matching = {"node": "one", "source": f"one/Subscriptions/s{count // 2}", "subject": f"label{count // 2}"}
        point = usual(jitney, **matching)
        yield "one matches", {**point, "copy": point["cpu"]}
    with broker(queues(topics=[topic("all", lambda _: {})])) as jitney:
        copies = {"source": "all/Subscriptions/s{}", "sources": count, "copies": count} if count > 1 else {"source": "all/Subscriptions/s0"}
        # A publish to a thousand is a thousand messages: some of them on their way are many.
        some = max(FAN_OUT_MIN, CREDIT // count)
        fan_out = {"node": "all", "credit": some, "window": some, **copies}
        warm(jitney, **fan_out)
        point = saturated(jitney, **fan_out)
        latency = paced(jitney, rate=max(1, MODEST_RATE // count), **fan_out)
        yield "all match", {**point, **latency, **resident(jitney), "copy": point["cpu"] / count, "copies": point["rate"] * count}


def sessions(count: int) -> Iterator[tuple[str, Point]]:
    with broker(queues("bench", RequiresSession=True)) as jitney:
        held = {"node": "bench", "message_sessions": count, "pairs": min(4, count), "credit": credit(count)}
        yield "each held by a receiver", usual(jitney, **held)


def scheduled(count: int) -> Iterator[tuple[str, Point]]:
    options = {"size": SMALL_BODY}
    with broker(queues("bench")) as jitney:
        warm(jitney, node="bench", **options)
        before = jitney.resident_bytes()
        fill = load(jitney.address, node="bench", send_only=True, messages=count, due_in=FAR_SECONDS, pid=jitney.pid, **options)
        each = (jitney.resident_bytes() - before) / count
        request = loadgen("cancel", jitney.address, node="bench", messages=REQUESTS, size=SMALL_BODY)
        point = {**saturated(jitney, node="bench", **options), **paced(jitney, node="bench", **options), **resident(jitney)}
        yield "in that queue", {
            **point, "each": each, "fill": fill["broker"]["cpu_seconds_per_million"],
            **request_figures(request, "cancel"),
        }


def deferred(count: int) -> Iterator[tuple[str, Point]]:
    options = {"size": SMALL_BODY}
    with broker(queues("bench")) as jitney:
        warm(jitney, node="bench", **options)
        before = jitney.resident_bytes()
        fill = load(jitney.address, node="bench", messages=count, defer_every=1, pid=jitney.pid, **options)
        each = (jitney.resident_bytes() - before) / count
        request = loadgen("deferred", jitney.address, node="bench", messages=REQUESTS, size=SMALL_BODY)
        point = {**saturated(jitney, node="bench", **options), **paced(jitney, node="bench", **options), **resident(jitney)}
        yield "in that queue", {
            **point, "each": each, "fill": fill["broker"]["cpu_seconds_per_million"],
            **request_figures(request, "receive"),
        }


def request_figures(report: dict[str, Any], phase: str) -> Point:
    """Latencies of single requests of the management node, one at a time."""
    latency = report[phase]["latency"]
    return {f"one_{quantile}": latency[quantile] / 1e3 for quantile in ("p50", "p99")}


EACH = Panel("bytes of memory for each", {"each": ""})
CURVES = (
    Curve("connections", "Connections", "pairs of a sender and a receiver", (1, 8, 64), connections),
    Curve("queues", "Queues", "queues", (1, 100, 10_000), many_queues),
    Curve(
        "waiting", "Messages waiting", "messages of 100 B waiting", (1_000, 1_000_000, 10_000_000), waiting,
        (THROUGHPUT, CPU, Panel("p99 ms at 2,000/s", {"told_p99": "to the acknowledgement", "p99": "to the receiver"}), MEMORY),
    ),
    Curve(
        "bodies", "Bodies", "bytes of a body", (100, KIB, 64 * KIB, MIB, 100 * MIB), bodies,
        (
            Panel("MiB a second", {"mib": ""}),
            Panel("CPU microseconds per KiB", {"per_kib": ""}, from_zero=False),
            Panel("ms to the receiver, modest rate", {"p50": "p50", "p99": "p99"}, from_zero=False),
            Panel("MiB of memory for one message", {"sent": "sent", "received": "and received"}),
        ),
    ),
    Curve(
        "subscriptions", "Subscriptions of a topic", "subscriptions", (1, 10, 100, 1_000), subscriptions,
        (THROUGHPUT, Panel("CPU microseconds per copy", {"copy": ""}), Panel("ms to the receiver", {"p50": "p50", "p99": "p99"}), MEMORY),
    ),
    Curve("sessions", "Message sessions", "message sessions", (1, 10, 100, 1_000, 10_000), sessions),
    Curve(
        "scheduled", "Scheduled messages", "messages of 100 B scheduled", (1_000, 100_000, 1_000_000), scheduled,
        (Panel("ms to cancel one", {"one_p50": "p50", "one_p99": "p99"}), CPU, LATENCY, EACH),
    ),
    Curve(
        "deferred", "Deferred messages", "messages of 100 B deferred", (1_000, 100_000, 1_000_000), deferred,
        (Panel("ms to receive one by its number", {"one_p50": "p50", "one_p99": "p99"}), CPU, LATENCY, EACH),
    ),
)


def measure(names: list[str], values: list[int], note: str) -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for curve in CURVES:
        if names and curve.name not in names:
            continue
        for value in values or curve.values:
            began = time.monotonic()
            points = [{"at": value, "series": series, **figures} for series, figures in curve.measure(value)]
            kept = [point for point in results.get(curve.name, {}).get("points", []) if point["at"] != value]
            kept = sorted(kept + [rounded(point) for point in points], key=lambda point: point["at"])
            results[curve.name] = {**conditions(), "note": note, "points": kept}
            RESULTS.parent.mkdir(parents=True, exist_ok=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
            print(f"{curve.name} {value:,}: {time.monotonic() - began:.0f} s", flush=True)
            for point in points:
                print("   ", point, flush=True)


def conditions() -> dict[str, Any]:
    """Where and with what a curve was measured."""
    version = subprocess.run([str(binary()), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"date": date, "cores": os.cpu_count(), "version": version, "commit": os.environ.get("JITNEY_COMMIT", commit.stdout.strip())}


def rounded(point: Point) -> Point:
    """Four figures are more than what a measurement says."""
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in point.items()}


# --- what is shown ---


def plot() -> None:
    results = json.loads(RESULTS.read_text())
    page = PAGE.read_text()
    for curve in CURVES:
        text = "Not measured yet."
        if curve.name in results:
            draw(curve, results[curve.name]["points"])
            image = f"![{curve.title}]({RESULTS.parent.name}/{curve.name}.svg)"
            text = f"{image}\n\n{table(curve, results[curve.name])}"
        page = replaced(page, curve.name, text)
    PAGE.write_text(replaced(page, "summary", summary(results)))


def summary(results: dict[str, Any]) -> str:
    """The broker's CPU time at the smallest and the largest value of each curve."""
    lines = ["| what grows | from | to | measured | at the first | at the last | ratio |", "|---" * 7 + "|"]
    for curve in CURVES:
        points = results.get(curve.name, {}).get("points", [])
        key = next((key for panel in curve.panels for key in panel.figures if key in ("cpu", "copy", "per_kib")), "cpu")
        for series in dict.fromkeys(point["series"] for point in points):
            line = [point for point in points if point["series"] == series and key in point]
            if len(line) > 1:
                first, last = line[0], line[-1]
                ratio = last[key] / first[key]
                figures = [f"{first['at']:,}", f"{last['at']:,}", f"{WORDS[key]}, {series}", spoken(first[key]), spoken(last[key]), f"{ratio:.2f}"]
                lines.append(f"| {curve.axis} | " + " | ".join(figures) + " |")
    return "\n".join(lines)


def draw(curve: Curve, points: list[Point]) -> None:
    """Draws a curve's panels beside one another, each series in its colour; the same figures give the same bytes."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({
        "svg.hashsalt": curve.name, "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 8,
        "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6, "lines.linewidth": 1.4, "lines.markersize": 4,
    })
    import matplotlib.pyplot as pyplot
    from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter

    figure, axes = pyplot.subplots(1, len(curve.panels), figsize=(3.0 * len(curve.panels), 2.3), layout="constrained")
    names = list(dict.fromkeys(point["series"] for point in points))
    for axis, panel in zip(axes, curve.panels):
        for (key, word), style in zip(panel.figures.items(), ("o-", "s--")):
            for number, name in enumerate(names):
                line = [(point["at"], point[key]) for point in points if point["series"] == name and key in point]
                if line:
                    label = ", ".join(part for part in (name if len(names) > 1 else "", word) if part)
                    axis.plot(*zip(*line), style, color=f"C{number}", label=label or None)
        axis.set_title(panel.title, fontsize=8)
        axis.set_xscale("log")
        axis.set_xticks(curve.values, [short(value) for value in curve.values])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xlabel(curve.axis)
        if panel.from_zero:
            axis.set_ylim(bottom=0)
        else:
            axis.set_yscale("log")
            axis.yaxis.set_minor_formatter(NullFormatter())
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.grid(axis="y", linewidth=0.3)
        if axis.get_legend_handles_labels()[1]:
            axis.legend(frameon=False, fontsize=7)
    path = RESULTS.parent / f"{curve.name}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    pyplot.close(figure)
    # Whoever shows it has a font; and nobody needs its names and indents.
    text = re.sub(r'font-family: [^;"]*', "font-family: sans-serif", path.read_text())
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
    path.write_text("".join(line.strip() + "\n" for line in text.splitlines() if line.strip()))


def short(number: int) -> str:
    """A number for an axis: 1,000 as 1 k, 65,536 as 64 Ki."""
    for unit, size in (("Mi", MIB), ("Ki", KIB)):
        if number % size == 0:
            return f"{number // size} {unit}"
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number % size == 0:
            return f"{number // size} {unit}"
    return str(number)


WORDS = {
    "rate": "messages/s", "cpu": "CPU s / M", "p50": "p50 ms", "p99": "p99 ms", "resident": "RSS MiB", "mib": "MiB/s",
    "per_kib": "CPU µs / KiB", "sent": "MiB more when sent", "received": "and received", "peak": "peak RSS MiB",
    "copy": "CPU µs / copy", "copies": "copies/s",
    "each": "bytes each", "fill": "CPU s / M to fill", "disk": "disk MiB", "told_p50": "acknowledged p50 ms", "told_p99": "acknowledged p99 ms",
    "recovery": "start s", "resident_after": "RSS MiB", "one_p50": "one: p50 ms", "one_p99": "one: p99 ms", "start": "start ms", "idle": "idle MiB",
}


def table(curve: Curve, result: dict[str, Any]) -> str:
    """A curve's figures as tables, one for each series."""
    lines = []
    for series in dict.fromkeys(point["series"] for point in result["points"]):
        points = [point for point in result["points"] if point["series"] == series]
        keys = [key for key in WORDS if any(key in point for point in points)]
        lines += [f"| {series}: {curve.axis} | " + " | ".join(WORDS[key] for key in keys) + " |", "|---" * (len(keys) + 1) + "|"]
        lines += [f"| {point['at']:,} | " + " | ".join(spoken(point.get(key)) for key in keys) + " |" for point in points]
        lines.append("")
    note = f" {result['note']}" if result.get("note") else ""
    lines.append(f"{result['date']}, {result['cores']} cores, {result['version']} ({result['commit']}).{note}")
    return "\n".join(lines)


def spoken(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def replaced(page: str, name: str, text: str) -> str:
    """The page with the text between a curve's marks exchanged."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        sys.exit(f"{PAGE} has no place for {name}: {begin.strip()} and {end}")
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{text}\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="measure curves into docs/performance/growth.json")
    measuring.add_argument("curves", nargs="*", metavar="CURVE")
    measuring.add_argument("--at", type=int, nargs="+", default=[], metavar="N", help="only at these values")
    measuring.add_argument("--note", default="", help="what else is to be said of these figures, for the page")
    commands.add_parser("plot", help="draw the curves and fill in docs/growth.md")
    commands.add_parser("list", help="print the curves")
    arguments = parser.parse_args()
    if arguments.command == "measure":
        measure(arguments.curves, arguments.at, arguments.note)
    elif arguments.command == "plot":
        plot()
    else:
        for curve in CURVES:
            print(f"{curve.name:14} {curve.axis}: {', '.join(f'{value:,}' for value in curve.values)}")


if __name__ == "__main__":
    main()
