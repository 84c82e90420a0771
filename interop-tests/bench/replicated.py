#!/usr/bin/env python3
"""Jitney over PostgreSQL with two synchronous standbys, beside RabbitMQ's quorum queues with three members: the same client, the same
messages, the same disk, the same run.

    replicated.py                                    the tables
    replicated.py --kills 2 --losses 2 --seconds 2   shorter
    replicated.py --only jitney                      one of the two
    replicated.py --set commit_delay=100             with another setting of PostgreSQL

Both are three servers on loopback that all run, with one queue; the client is connected to the server that has it: the owner of the
namespace, the leader of the queue. Loads take turns, run by run, and the one whose turn it is not has nothing to do. What is told are medians.

A take-over is the time from SIGKILL of that server, under a load of a few messages a second, until a client that tries the two others in turn,
each at once after an attempt has failed, has had a message accepted and a message delivered. The server is started again before the next one.
Jitney's servers are also lost in other ways: by SIGSTOP, by SIGTERM, which hands the queue over, and by a network that loses every packet. After
SIGTERM, an attempt that began while that server still had the queue does not count. For the lost network there is a fleet of its own, with a
host for each server (hosts.py); without the rights to make hosts it is left out.

It needs root, as RabbitMQ's installation does (peers.py), and psycopg: `make bench-ha` runs it with what it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, ClassVar

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "ha")]
import fleet  # noqa: E402
import hosts  # noqa: E402
import peers  # noqa: E402
import postgres  # noqa: E402
from measure import MeasureError, Process, Scratch, binary, free_ports, load, loadgen_command, median, queues, wait_for_port  # noqa: E402

QUEUE = "bench"
MEMBERS = 3
# How long a load goes before what is counted, and how long one is counted, seconds.
WARM_SECONDS = 4.0
SECONDS = 5.0
# Messages a second for the latency, and while a server is killed.
PACE = 2_000
QUIET_PACE = 200
LOAD_DEADLINE = 120.0
# Loads of one side that may fail.
FAILURES = 3
# The ways to lose a server, as the tables call them.
KILLED, STOPPED, TOLD_TO_END, CUT_OFF = "SIGKILL", "SIGSTOP", "SIGTERM", "a network that loses every packet"
# How long a server or a node may take until it is whole again, and a take-over.
MEND_DEADLINE = 120.0
TAKE_OVER_DEADLINE = 60.0
# PostgreSQL's settings: those of a server that has a machine of its own, but for the memory.
SETTINGS = {
    "shared_buffers": "256MB", "wal_buffers": "16MB", "min_wal_size": "4GB", "max_wal_size": "4GB", "checkpoint_timeout": "15min",
}
# Settings that are told with the figures, as the database says that they are.
TOLD = (
    "server_version", "fsync", "synchronous_commit", "synchronous_standby_names", "full_page_writes", "wal_compression", "wal_sync_method",
    "commit_delay", "shared_buffers", "wal_buffers", "min_wal_size", "max_wal_size", "checkpoint_timeout", "data_checksums",
)


class Side:
    """Three servers that replicate, and what they took so far."""

    key: ClassVar[str]
    name: ClassVar[str]
    user: str | None = None
    password: str | None = None
    # The ways to lose a server that are measured besides SIGKILL.
    losses: tuple[str, ...] = ()

    def client(self) -> dict[str, Any]:
        """The load generator's options for a client of the queue."""
        return {"node": self.node(), "user": self.user, "password": self.password}

    def node(self) -> str:
        """The address of the queue on the wire."""
        raise NotImplementedError

    def serving(self) -> Any:
        """The server that has the queue."""
        raise NotImplementedError

    def address(self, server: Any) -> str:
        raise NotImplementedError

    def others(self, server: Any) -> list[Any]:
        raise NotImplementedError

    def lose(self, server: Any, loss: str) -> None:
        raise NotImplementedError

    def may_accept(self, server: Any, loss: str) -> bool:
        """Whether the others may still lead clients to a server that was lost."""
        return False

    def mend(self, server: Any, loss: str) -> None:
        """Starts a server that was lost; returns when all is as it was."""
        raise NotImplementedError

    def settle(self) -> None:
        """Brings it into the state that it has after some time in production, before a load."""

    def processes(self, serving: Any) -> dict[str, list[Process]]:
        """The processes by their part."""
        raise NotImplementedError

    def counters(self) -> dict[str, float]:
        """What else is counted, since the start."""
        return {}

    def footnote(self) -> str:
        raise NotImplementedError


class JitneyFleet(Side):
    key, name = "jitney", "Jitney, PostgreSQL with two synchronous standbys"
    losses = (STOPPED, TOLD_TO_END)

    def __init__(self, directory: Path, stack: ExitStack, settings: dict[str, str], network: hosts.Network | None = None):
        """With a network each server has a host of it, and its store by the proxy of the cluster."""
        listen = (network.own if network else "127.0.0.1", 0)
        self.cluster = postgres.Cluster(directory / "postgres", standbys=MEMBERS - 1, settings=SETTINGS | settings, listen=listen)
        # Directly, and not through the proxies of the tests, which are Python's.
        self.cluster.settings["primary_conninfo"] = (
            f"host=127.0.0.1 port={self.cluster.primary.port} user=postgres password={self.cluster.password} sslmode=disable"
        )
        stack.enter_context(self.cluster)
        config = directory / "config.json"
        config.write_text(json.dumps(queues(QUEUE)))
        url = f"{self.cluster.url()}?sslmode=disable" if network else self.cluster.url(self.cluster.primary)
        # The network is this machine alone: clients need no keys.
        words = ["--auth", "development", "--allow-any-key-beyond-loopback"] if network else []
        self.fleet = fleet.Fleet(directory / "fleet", url, MEMBERS, config, words, proxied=False, hosts=network and network.hosts)
        stack.enter_context(self.fleet)
        self.namespace = next(iter(self.fleet.wait_owned("bench")))

    def node(self) -> str:
        return QUEUE

    def serving(self) -> fleet.Server:
        return self.fleet.wait_owned(self.namespace)[self.namespace]

    def address(self, server: fleet.Server) -> str:
        return f"{server.host}:{server.amqp[1]}"

    def others(self, server: fleet.Server) -> list[fleet.Server]:
        return [other for other in self.fleet.servers if other is not server]

    def lose(self, server: fleet.Server, loss: str) -> None:
        if loss == KILLED:
            server.kill()
        elif loss == STOPPED:
            server.freeze()
        elif loss == TOLD_TO_END:
            # Without waiting for its end.
            server.broker.signal(signal.SIGTERM)
        else:
            server.cut_off()

    def may_accept(self, server: fleet.Server, loss: str) -> bool:
        """A server that is told to end answers until it hands the namespace over."""
        text = "select coalesce(server, '') from jitney.namespace where name = %s"
        return loss == TOLD_TO_END and self.cluster.query(text, self.namespace)[0][0] in ("", server.name)

    def mend(self, server: fleet.Server, loss: str) -> None:
        if loss == STOPPED:
            server.thaw()
        elif loss == CUT_OFF:
            server.join()
        else:
            fleet.wait(lambda: not server.running, MEND_DEADLINE, f"{server} did not end")
            server.start()
        fleet.wait(lambda: len(self.fleet.balancer.well()) == MEMBERS, MEND_DEADLINE, f"{server} did not become well")
        self.serving()
        # Owners that are lost one after the other would put the namespace into quarantine, and rest, as docs/high-availability.md says.
        self.cluster.query("update jitney.namespace_state set failures = 0")
        self.cluster.query("update jitney.server set deaths = 0")

    def settle(self) -> None:
        # Without a checkpoint a young database makes a new file for every 16 MiB of its log, and commits wait while it is made. Later it
        # renames the old ones.
        for member in [self.cluster.primary, *self.cluster.standbys]:
            member.query("checkpoint")

    def processes(self, serving: fleet.Server) -> dict[str, list[Process]]:
        def of(server: fleet.Server) -> Process:
            return Process(server.broker.state["pid"])

        return {
            "serving": [of(serving)],
            "others": [of(server) for server in self.others(serving)],
            "primary": [Process(self.cluster.primary.process.pid)],
            "standbys": [Process(member.process.pid) for member in self.cluster.standbys],
        }

    def counters(self) -> dict[str, float]:
        told = self.serving().get("/metrics")
        appends, seconds = (sum(map(float, re.findall(rf"^jitney_log_sync_duration_seconds_{name}\{{[^}}]*\}} (\S+)", told, re.MULTILINE)))
                            for name in ("count", "sum"))
        written = self.cluster.query("select pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0]
        return {"appends": appends, "append_seconds": seconds, "wal_bytes": float(written)}

    def footnote(self) -> str:
        settings = ", ".join(f"`{name} = {self.cluster.primary.value(f'show {name}')}`" for name in TOLD)
        version = subprocess.run([str(binary()), "--version"], capture_output=True, text=True, check=True).stdout.strip()
        return f"{version}, a store over the primary's own address on loopback without TLS. PostgreSQL: {settings}"


class Node(peers.RabbitMQ43Quorum):
    """A node of a cluster of RabbitMQ."""

    node_name: str


class RabbitCluster(Side):
    key, name = "rabbitmq", "RabbitMQ, quorum queue with three members"
    user, password = Node.user, Node.password

    def __init__(self, directory: Path, stack: ExitStack):
        self.version = Node.install()
        names_port, *ports = free_ports(1 + 2 * MEMBERS)
        self.names_port = names_port
        self.places = {f"bench{at + 1}@localhost": (directory / f"node-{at + 1}", ports[2 * at], ports[2 * at + 1]) for at in range(MEMBERS)}
        # The daemon that knows the nodes' ports belongs to no node: it outlives those that are killed.
        words = ["setpriv", "--pdeathsig", "KILL", "chroot", str(Node.root()), "epmd", "-port", str(names_port), "-address", "127.0.0.1"]
        daemon = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(lambda: (daemon.kill(), daemon.wait()))
        wait_for_port(f"127.0.0.1:{names_port}")
        self.nodes: dict[str, Node] = {}
        stack.callback(self.close)
        for name, (place, _, _) in self.places.items():
            (place / "data").mkdir(parents=True)
            cookie = place / "data" / ".erlang.cookie"
            cookie.write_text("jitneybench")
            cookie.chmod(0o400)
        self.start(*self.places)
        declared = Node.definitions([QUEUE])
        # Declared when all nodes are there: a queue gets its members when it is made.
        declared["queues"][0]["arguments"] |= {"x-quorum-initial-group-size": MEMBERS}
        first = next(iter(self.places))
        (self.places[first][0] / "data" / "queues.json").write_text(json.dumps(declared))
        self.tool("rabbitmqctl", "import_definitions", "/bench/queues.json")
        self.wait_whole()

    def start(self, *names: str) -> None:
        """Starts nodes at the same time, for each waits for the others of its cluster."""
        nodes = "".join(f"cluster_formation.classic_config.nodes.{at + 1} = {each}\n" for at, each in enumerate(self.places))
        further = f"\ncluster_formation.peer_discovery_backend = classic_config\n{nodes}"
        launched = []
        for name in names:
            place, port, distribution = self.places[name]
            address, began = f"127.0.0.1:{port}", time.monotonic()
            words = Node.node_command(place, address, name, distribution, self.names_port, Node.definitions([]), further)
            launched.append((name, Node.launch(place, words), place, address, began))
        for name, *parts in launched:
            # It waits until the node listens.
            self.nodes[name] = Node(*parts)
            self.nodes[name].node_name = name
        # A node listens before it is ready.
        for program in (["await_startup"], ["await_online_nodes", str(MEMBERS)]):
            self.tool("rabbitmqctl", *program, "--timeout", f"{MEND_DEADLINE:.0f}")

    def close(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def tool(self, program: str, *words: str) -> str:
        """Runs a program of RabbitMQ against a node that runs."""
        name = next(name for name, node in self.nodes.items() if node.exists())
        settings = {"RABBITMQ_NODENAME": name, "ERL_EPMD_PORT": str(self.names_port)}
        command = Node.inside(self.places[name][0] / "data", settings, Node.program(program), *words)
        return peers.run(command, MEND_DEADLINE)

    def state(self) -> tuple[str, list[str]]:
        """The node that leads the queue, and those of its members that are online."""
        told = self.tool("rabbitmqctl", "--quiet", "list_queues", "name", "leader", "online", "--formatter", "json")
        # While a leader is elected the queue may be without one.
        known = [queue for queue in json.loads(told[told.index("["):]) if queue["name"] == QUEUE]
        return (known[0]["leader"], known[0]["online"]) if known else ("", [])

    def wait_whole(self) -> None:
        deadline = time.monotonic() + MEND_DEADLINE
        while len(self.state()[1]) < MEMBERS:
            if deadline < time.monotonic():
                raise MeasureError(f"the queue has not {MEMBERS} members after {MEND_DEADLINE:.0f} s: {self.state()}")

    def node(self) -> str:
        return f"{Node.address_prefix}{QUEUE}"

    def serving(self) -> Node:
        return self.nodes[self.state()[0]]

    def address(self, server: Node) -> str:
        return server.address

    def others(self, server: Node) -> list[Node]:
        return [other for other in self.nodes.values() if other is not server]

    def lose(self, server: Node, loss: str) -> None:
        assert loss == KILLED
        server.kill()

    def mend(self, server: Node, loss: str) -> None:
        self.start(server.node_name)
        self.wait_whole()

    def processes(self, serving: Node) -> dict[str, list[Process]]:
        return {"serving": [serving], "others": list(self.others(serving))}

    def footnote(self) -> str:
        return f"RabbitMQ {self.version}: {Node.setting}; each node's settings are those of docs/peers.md"


# --- measuring --------------------------------------------------------------------------------------------------------


class Measured:
    """What was measured of one side."""

    def __init__(self) -> None:
        self.throughput: dict[str, list[dict[str, Any]]] = {}
        self.latency: list[dict[str, Any]] = []
        # By the way in which the server was lost.
        self.take_overs: dict[str, list[dict[str, float]]] = {}
        # What went wrong with loads that were repeated.
        self.failures: list[str] = []
        self.footnote = ""


def usage(side: Side, serving: Any) -> dict[str, float]:
    parts = {part: sum(process.cpu_seconds() for process in processes) for part, processes in side.processes(serving).items()}
    return parts | side.counters()


def loaded(side: Side, serving: Any, **options: Any) -> dict[str, Any]:
    return load(side.address(serving), **{**side.client(), "timeout": LOAD_DEADLINE, **options})


def counted(side: Side, found: Measured, **options: Any) -> dict[str, Any]:
    """A load, and what each part took meanwhile for each message. One that fails is told with the figures, and repeated."""
    while True:
        serving = side.serving()
        before = usage(side, serving)
        try:
            report = loaded(side, serving, **options)
            break
        except MeasureError as error:
            found.failures.append(str(error))
            say(f"{side.key}: a load failed: {error}")
            if FAILURES < len(found.failures):
                raise
            rest(side)
    after = usage(side, serving)
    messages = report["received_total"]
    return report | {"for_each": {part: (after[part] - before[part]) / messages for part in after}}


def rest(side: Side, seconds: float = 10.0) -> None:
    """Waits until a side does little, so that what it has put off does not disturb the next; not for ever."""
    serving = side.serving()

    def spent() -> float:
        return sum(process.cpu_seconds() for processes in side.processes(serving).values() for process in processes)

    peers.wait_until_idle(spent, seconds, 0.5, 0.06)


def in_turn(sides: Sequence[Side], found: dict[str, Measured], arguments: argparse.Namespace) -> None:
    """Throughputs and latencies, side by side."""
    rates: dict[str, float] = {}
    for side in sides:
        first = loaded(side, side.serving(), messages=5_000)["rate"]
        rates[side.key] = loaded(side, side.serving(), messages=int(max(10_000, first * WARM_SECONDS)))["rate"]
    for pairs in arguments.pairs:
        for number in range(arguments.runs):
            for side in sides:
                messages = int(max(10_000, rates[side.key] * arguments.seconds))
                side.settle()
                report = counted(side, found[side.key], messages=messages, pairs=pairs, size=arguments.size)
                found[side.key].throughput.setdefault(str(pairs), []).append(report)
                say(f"{side.key}, {pairs} pairs, run {number + 1}: {told(report)}")
                rest(side)
    for number in range(arguments.runs):
        for side in sides:
            side.settle()
            report = counted(side, found[side.key], rate=PACE, warm_up=PACE, duration=arguments.seconds, size=arguments.size)
            found[side.key].latency.append(report)
            say(f"{side.key} at {PACE} a second, run {number + 1}: {quantiles([report])}; {told(report)}")
            rest(side)


def told(report: dict[str, Any]) -> str:
    """One report in a line."""
    parts = ", ".join(f"{part} {value * 1e6:.1f} s" for part, value in report["for_each"].items() if part in PARTS)
    text = f"{report['rate']:,.0f} messages a second; for a million: {parts}"
    each = report["for_each"]
    if appends := each.get("appends"):
        text += (f"; {1 / appends:.1f} messages an append of {each['append_seconds'] / appends * 1000:.1f} ms on average, "
                 f"{each['wal_bytes']:,.0f} bytes of WAL a message")
    return text


PARTS = ("serving", "others", "primary", "standbys")


@contextmanager
def quiet_load(side: Side, server: Any) -> Iterator[None]:
    """A slow load on a server, which ends with it."""
    words = loadgen_command("load", side.address(server), rate=QUIET_PACE, duration=MEND_DEADLINE, **side.client())
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def take_over(side: Side, loss: str = KILLED) -> dict[str, float]:
    """Loses the server that has the queue; returns the seconds until a message was accepted, and until one was delivered, by others."""
    serving = side.serving()
    ways = cycle(side.others(serving))
    with quiet_load(side, serving):
        time.sleep(1)
        lost, clock = time.time(), time.monotonic()
        side.lose(serving, loss)
        attempts, why = 0, ""
        while True:
            attempts += 1
            left = TAKE_OVER_DEADLINE - (time.monotonic() - clock)
            if left <= 0:
                raise MeasureError(f"{side.key}: no message {TAKE_OVER_DEADLINE:.0f} s after {loss}, in {attempts} attempts: {why}")
            may_be_its = side.may_accept(serving, loss)
            try:
                report = loaded(side, next(ways), messages=1, timeout=left)
                if not may_be_its:
                    break
                why = "the server that was lost may have accepted it"
            except MeasureError as error:
                why = str(error)
                # Not a processor for refusals alone: they come at once.
                time.sleep(0.02)
    found = {"accepted": report["first_accepted_at"] - lost, "delivered": report["first_received_at"] - lost, "attempts": attempts}
    side.mend(serving, loss)
    rest(side)
    return found


def take_overs(sides: Sequence[Side], found: dict[str, Measured], loss: str, count: int) -> None:
    """Take-overs after the same loss, in turn."""
    for number in range(count):
        for side in sides:
            took = take_over(side, loss)
            found[side.key].take_overs.setdefault(loss, []).append(took)
            say(f"{side.key}, {loss}, take-over {number + 1}: accepted after {took['accepted']:.2f} s, delivered after {took['delivered']:.2f} s,"
                f" attempts {took['attempts']:.0f}")


def cut_off(directory: Path, settings: dict[str, str], found: dict[str, Measured], count: int) -> None:
    """Take-overs of Jitney after the loss of the owner's network."""
    with ExitStack() as stack:
        try:
            network = stack.enter_context(hosts.Network(MEMBERS))
        except hosts.NetworkError as error:
            say(f"no network is cut, because no hosts can be made: {error}")
            return
        directory.mkdir()
        take_overs([JitneyFleet(directory, stack, settings, network)], found, CUT_OFF, count)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- the tables -------------------------------------------------------------------------------------------------------


def quantiles(reports: Sequence[dict[str, Any]]) -> str:
    """Milliseconds from when a message was due: to its receiver, and until its sender was told."""
    def of(which: str, name: str) -> float:
        return median(report[which][name] for report in reports) / 1000

    ends, tells = (f"{of(which, 'p50'):.2f} / {of(which, 'p99'):.1f} ms" for which in ("end_to_end", "acknowledged"))
    return f"{ends} (sender told after {tells})"


def cost(reports: Sequence[dict[str, Any]], *parts: str) -> str:
    known = [part for part in parts if part in reports[0]["for_each"]]
    if not known:
        return ""
    return f"{median(sum(report['for_each'][part] for part in known) for report in reports) * 1e6:.1f}"


def markdown(sides: Sequence[Side], found: dict[str, Measured]) -> str:
    lines = [
        "| three servers | connection pairs | messages a second | broker's CPU s / M: the serving one, the others | database's: primary, standbys |",
        "|---|---|---|---|---|",
    ]
    for pairs in found[sides[0].key].throughput:
        for side in sides:
            reports = found[side.key].throughput[pairs]
            rate = median(report["rate"] for report in reports)
            brokers = f"{cost(reports, 'serving')}, {cost(reports, 'others')}"
            database = f"{cost(reports, 'primary')}, {cost(reports, 'standbys')}" if cost(reports, "primary") else ""
            lines.append(f"| {side.name} | {pairs} | {rate:,.0f} | {brokers} | {database} |")
    lines += ["", f"| three servers | p50 / p99 at {PACE:,} messages a second |", "|---|---|"]
    lines += [f"| {side.name} | {quantiles(found[side.key].latency)} |" for side in sides if found[side.key].latency]
    lines += ["", "| three servers | the server is lost by | until the first message: median, longest | each |", "|---|---|---|---|"]
    for side, loss in ((side, loss) for loss in (KILLED, STOPPED, TOLD_TO_END, CUT_OFF) for side in sides):
        if took := [max(each["accepted"], each["delivered"]) for each in found[side.key].take_overs.get(loss, [])]:
            each = ", ".join(f"{seconds:.2f}" for seconds in sorted(took))
            lines.append(f"| {side.name} | {loss} | {median(took):.2f} s, {max(took):.2f} s | {each} |")
    return "\n".join([*lines, "", *ratios(sides, found), "", *footnotes(sides, found)])


def footnotes(sides: Sequence[Side], found: dict[str, Measured]) -> Iterator[str]:
    for side in sides:
        failed = found[side.key].failures
        yield f"- {side.name}: {found[side.key].footnote}." + (f" Loads that failed and were repeated: {len(failed)}." if failed else "")


def ratios(sides: Sequence[Side], found: dict[str, Measured]) -> list[str]:
    """How many times RabbitMQ's throughput Jitney's is, run by run."""
    lines = []
    if {side.key for side in sides} == {"jitney", "rabbitmq"}:
        for pairs, ours in found["jitney"].throughput.items():
            theirs = found["rabbitmq"].throughput[pairs]
            each = [our["rate"] / their["rate"] for our, their in zip(ours, theirs)]
            lines.append(f"Throughput to RabbitMQ's, {pairs} pairs: {median(each):.2f} x ({min(each):.2f} to {max(each):.2f}).")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Three servers that replicate, Jitney's and RabbitMQ's, in one run.")
    parser.add_argument("--only", choices=["jitney", "rabbitmq"], help="one of the two")
    parser.add_argument("--runs", type=int, default=5, help="runs of each load; medians are told")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long one load takes, about")
    parser.add_argument("--kills", type=int, default=10, help="take-overs of each after SIGKILL; 0 for none")
    parser.add_argument("--losses", type=int, default=10, help="take-overs of Jitney after each other loss; 0 for none")
    parser.add_argument("--pairs", type=int, action="append", help="connection pairs; may be repeated (default: 1, and 8)")
    parser.add_argument("--size", type=int, default=1024, help="bytes of a body")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of PostgreSQL")
    parser.add_argument("--json", metavar="FILE", help="write the figures behind the tables there too")
    arguments = parser.parse_args()
    arguments.pairs = arguments.pairs or [1, 8]
    settings = dict(setting.split("=", 1) for setting in arguments.set)
    makers: dict[str, Callable[[Path, ExitStack], Side]] = {
        "jitney": lambda place, stack: JitneyFleet(place, stack, settings), "rabbitmq": RabbitCluster,
    }
    with ExitStack() as stack:
        directory = stack.enter_context(Scratch())
        sides = []
        for key, make in makers.items():
            if arguments.only in (None, key):
                say(f"starting {key}")
                place = directory / key
                place.mkdir()
                sides.append(make(place, stack))
        found = {side.key: Measured() for side in sides}
        for side in sides:
            found[side.key].footnote = side.footnote()
        in_turn(sides, found, arguments)
        take_overs(sides, found, KILLED, arguments.kills)
        for side in sides:
            for loss in side.losses:
                take_overs([side], found, loss, arguments.losses)
        if arguments.losses and JitneyFleet.key in found:
            cut_off(directory / "hosts", settings, found, arguments.losses)
        print(f"{os.cpu_count()} cores, {time.strftime('%Y-%m-%d %H:%M')}, medians of {arguments.runs}, bodies of {arguments.size} bytes\n")
        print(markdown(sides, found))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({key: vars(each) for key, each in found.items()}, indent=1))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (MeasureError, peers.Unavailable, postgres.PostgresError, fleet.FleetError, fleet.BrokerError) as error:
        print(f"replicated: {error}", file=sys.stderr)
        sys.exit(1)
