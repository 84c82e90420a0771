#!/usr/bin/env python3
"""A fleet of servers over one or several stores, on loopback, whose failures a test decides.

    fleet.py            a primary with two standbys and three servers, until interrupted: `make ha`

Each server has an address of its own, 127.0.0.41 and so on. Its networks are proxies: `server.stores[NAME]` to each store, `server.clients` from
the balancer, `server.peers` from the other servers, so that `server.cut_off()` is the loss of its network while its process lives. Clients connect to
`fleet.connection_string`, the address of a balancer that asks the servers for their health.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import re
import signal
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import postgres  # noqa: E402
from broker import START_DEADLINE, Broker, BrokerError, free_ports, write_json  # noqa: E402
from hosts import Host  # noqa: E402
from proxy import Address, Balancer, Proxy  # noqa: E402

# The last number of the first server's address.
FIRST = 41
# The balancer's ports of `make ha`, if they are free, and those of servers with hosts of their own.
AMQP, HTTP, PEER, METRICS = 5672, 5300, 5670, 5301
# The namespaces of the demonstration. Hosts that name none lead to the first.
DEMO = ("sbemulatorns", "orders", "others")
# How long a namespace may be without an owner after the loss of a server.
OWNED_DEADLINE = 30.0
OWNED, SUSPENDED = (re.compile(rf'^jitney_namespace_{what}\{{([^}}]*)\}} 1(?:\.0)?$', re.MULTILINE) for what in ("owned", "suspended"))
NAMESPACE = re.compile(r'namespace="([^"]*)"')


class FleetError(Exception):
    """A server or a namespace did not become what was waited for."""


def configuration(file: Path, namespaces: dict[str, dict]) -> Path:
    """Writes a Config.json with these namespaces: their names, and their properties."""
    document = {"UserConfig": {"Namespaces": [{"Name": name, "Queues": [], "Topics": [], **rest} for name, rest in namespaces.items()]}}
    file.write_text(json.dumps(document, indent=1))
    return file


class Server:
    """One server of a fleet."""

    def __init__(self, fleet: Fleet, number: int):
        self.fleet, self.name = fleet, f"server-{number + 1}"
        # With hosts, each server is alone in one, and its ports are free.
        self.machine = fleet.hosts[number] if fleet.hosts else None
        self.host = self.machine.address if self.machine else f"127.0.0.{FIRST + number}"
        # The network to each store, by the store's name.
        self.stores = {name: Proxy(place(url)) for name, url in fleet.stores.items()} if fleet.proxied else {}
        self.amqp, self.http, self.peer = ((self.host, port) for port in ((AMQP, HTTP, PEER) if self.machine else free_ports(3, self.host)))
        # Where it answers without a key: beyond loopback, metrics have an address of their own.
        self.open = (self.host, METRICS) if self.machine else self.http
        # The network from the other servers.
        self.peers = Proxy(self.peer) if fleet.proxied else None
        self.broker = Broker.create(
            fleet.directory / self.name, fleet.config, [*fleet.store_arguments(self), *fleet.arguments], self.host,
            (self.amqp[1], self.http[1]), os.getpid(),
        )
        if self.machine:
            state = self.broker.state
            write_json(self.broker.state_file, state | {"binary": str(self.machine.wrapper(Path(state["binary"]), fleet.directory))})
        # The networks from the balancer, for AMQP and HTTP.
        self.clients = [Proxy(address) for address in (self.amqp, self.http)] if fleet.proxied else []

    def __repr__(self) -> str:
        return self.name

    @property
    def running(self) -> bool:
        return self.broker.running()

    def start(self) -> None:
        """Starts it; returns when it is healthy."""
        self.broker.start()

    def kill(self) -> None:
        """SIGKILL."""
        self.broker.kill()

    def stop(self) -> int:
        """SIGTERM; waits; returns the exit code."""
        return self.broker.stop()

    def freeze(self) -> None:
        """SIGSTOP: its connections stay open."""
        self.broker.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.broker.signal(signal.SIGCONT)

    def networks(self) -> list[Proxy]:
        return [*self.stores.values(), *self.clients, *filter(None, [self.peers])]

    @property
    def ways(self) -> tuple[Address, Address]:
        """Where the balancer finds it, for AMQP and HTTP."""
        if self.clients:
            return self.clients[0].address, self.clients[1].address
        return self.amqp, self.http

    def cut_off(self) -> None:
        """Its networks lose every packet: to the stores, from the clients, and from the other servers. It still reaches the others, unless it has a
        host of its own."""
        if self.machine:
            self.machine.cut()
        for network in self.networks():
            network.hold()

    def join(self) -> None:
        """Ends `cut_off`."""
        if self.machine:
            self.machine.join()
        for network in self.networks():
            network.release()

    def get(self, path: str, seconds: float = 2) -> str:
        with urllib.request.urlopen(f"http://{self.host}:{self.open[1]}{path}", timeout=seconds) as answer:
            return answer.read().decode()

    def ask(self, method: str, path: str, body: object = None, seconds: float = 15) -> tuple[int, dict]:
        """The status and the body of an answer of its JSON API; a body that is no object is its `detail`."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.host}:{self.http[1]}/api/v1/{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            return error.code, json.loads(text) if text.startswith("{") else {"detail": text}

    def owned(self) -> set[str]:
        """The namespaces that it owns, by what it says; none if it does not answer. Those that are suspended may be another server's by now."""
        try:
            text = self.get("/metrics")
        except OSError:
            return set()

        def names(what: re.Pattern) -> set[str]:
            return {found[1] for labels in what.findall(text) if (found := NAMESPACE.search(labels))}

        return names(OWNED) - names(SUSPENDED)


class Fleet:
    """Servers, and the balancer before them, below a directory."""

    def __init__(self, directory: Path, stores: str | dict[str, str], servers: int = 3, config: Path | None = None,
                 arguments: list[str] | None = None, proxied: bool = True, proxy_protocol: bool = False,
                 listen: tuple[Address, Address] = (("127.0.0.1", 0), ("127.0.0.1", 0)), hosts: list[Host] | None = None):
        """`stores` is the URL of the only store, or the URLs of several by their names; none means that each server keeps its own data
        directory, for a single one. Without `proxied` the servers have their networks for themselves, and none can be cut. `listen` are the
        balancer's addresses for AMQP and HTTP; with `proxy_protocol` it tells servers the client's address. With `hosts`, each server has one of
        them, and no proxy: the whole host can be cut off."""
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.several = isinstance(stores, dict)
        self.stores: dict[str, str] = stores if isinstance(stores, dict) else {"store": stores} if stores else {}
        self.config, self.arguments, self.proxied = config, arguments or [], proxied and not hosts
        self.hosts = hosts or []
        self.servers = [Server(self, number) for number in range(servers)]
        amqp, http = listen
        ways = [server.ways for server in self.servers]
        self.balancer = Balancer(ways, amqp, proxy_protocol)
        self.http_balancer = Balancer([(health, health) for _, health in ways], http, proxy_protocol)

    def __enter__(self) -> Fleet:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> Server:
        return next(server for server in self.servers if server.name == name)

    def store_arguments(self, server: Server) -> list[str]:
        """The arguments of a server for its stores and its peers."""
        if not self.stores:
            return []
        words = ["--server", server.name, "--peer-listen", f"{server.host}:{server.peer[1]}"]
        if server.peers:
            words += ["--peer-address", f"{server.peers.address[0]}:{server.peers.port}"]
        if server.machine:
            words += ["--metrics", f"{server.host}:{METRICS}"]
        for name, url in self.stores.items():
            if server.stores:
                url = through(url, server.stores[name].address)
            words += ["--store", f"{name}={url}" if self.several else url]
        return words

    @property
    def connection_string(self) -> str:
        return self.connection_string_for()

    def connection_string_for(self, namespace: str | None = None, server: Server | None = None) -> str:
        """The connection string of a namespace, through the balancer or directly to a server. Names below `localhost` must lead to this
        machine."""
        host, port = server.amqp if server else ("localhost", self.balancer.port)
        if namespace:
            host = f"{namespace}.localhost"
        return f"Endpoint=sb://{host}:{port};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"

    @property
    def running(self) -> list[Server]:
        return [server for server in self.servers if server.running]

    def start(self) -> None:
        """Starts all servers at the same time; returns when they are healthy."""
        atexit.register(self.close)
        try:
            start(self.servers)
            wait(lambda: len(self.balancer.well()) == len(self.servers), START_DEADLINE, "the balancer found not all servers well")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kills what runs, without asking how it was."""
        atexit.unregister(self.close)
        for server in self.servers:
            if server.running:
                server.kill()
        for network in [self.balancer, self.http_balancer, *(network for server in self.servers for network in server.networks())]:
            network.close()

    def finish(self) -> list[str]:
        """Stops the servers in order; returns what was wrong with them. Servers that a test has ended are not asked."""
        complaints = []
        for server in self.servers:
            if server.running:
                complaints += [f"{server}: {complaint}" for complaint in filter(None, [server.broker.finish()])]
            else:
                complaints += [f"{server}: {line}" for line in server.broker.log_tail(100_000).splitlines() if "panicked at" in line]
        self.close()
        return complaints

    def owners(self) -> dict[str, list[Server]]:
        """The namespaces, and the servers that say that they own them. The one place that knows how servers tell it."""
        found: dict[str, list[Server]] = {}
        for server in self.running:
            for namespace in server.owned():
                found.setdefault(namespace, []).append(server)
        return found

    def owner(self, namespace: str) -> Server | None:
        """The only server that says that it owns the namespace."""
        found = self.owners().get(namespace, [])
        return found[0] if len(found) == 1 else None

    def wait_owned(self, *namespaces: str, others_than: Server | None = None, seconds: float = OWNED_DEADLINE) -> dict[str, Server]:
        """Waits until each namespace has one owner, which is not `others_than`."""
        def found() -> dict[str, Server]:
            owners = self.owners()
            single = {name: owners[name][0] for name in namespaces if len(owners.get(name, [])) == 1}
            return single if len(single) == len(namespaces) and others_than not in single.values() else {}

        try:
            return wait(found, seconds, "not each namespace got an owner")
        except FleetError as error:
            owners = self.owners()
            missing = [name for name in namespaces if len(owners.get(name, [])) != 1]
            raise FleetError(f"{error}: {len(missing)} of {len(namespaces)} have not one owner, such as {missing[:3]}") from None


def start(servers: Iterable[Server]) -> None:
    """Starts servers at the same time; returns when they are healthy."""
    with ThreadPoolExecutor() as pool:
        for _ in pool.map(Server.start, servers):
            pass


def wait(condition: Callable[[], object], seconds: float, complaint: str):
    """Returns what the condition returns as soon as it is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise FleetError(f"{complaint} within {seconds:.0f} s")
        time.sleep(0.02)
    return found


def place(url: str) -> Address:
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port or 5432


def through(url: str, address: Address) -> str:
    """The URL with another address."""
    parts = urllib.parse.urlsplit(url)
    user, _, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}@{address[0]}:{address[1]}").geturl()


def free(*addresses: Address) -> bool:
    for address in addresses:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError:
                return False
    return True


def demo(servers: int) -> None:
    """What `make ha` shows."""
    with tempfile.TemporaryDirectory(prefix="jitney-ha-") as temporary:
        directory = Path(temporary)
        print("starting PostgreSQL: a primary and two standbys ...", flush=True)
        usual = (("127.0.0.1", AMQP), ("127.0.0.1", HTTP))
        listen = usual if free(*usual) else (("127.0.0.1", 0), ("127.0.0.1", 0))
        with postgres.Cluster(directory / "postgres") as cluster:
            print(f"starting {servers} servers ...", flush=True)
            config = configuration(directory / "Config.json", {name: {"Queues": [{"Name": "queue.1"}]} for name in DEMO})
            with Fleet(directory / "fleet", cluster.url(), servers, config, listen=listen) as fleet:
                print(f"\n{fleet.connection_string}\n")
                print(f"It is the namespace {DEMO[0]} with queue.1; others.localhost instead of localhost is the namespace `others`.")
                print(f"The console is at http://127.0.0.1:{fleet.http_balancer.port}/.")
                for server in fleet.servers:
                    print(f"  {server}: pid {server.broker.state['pid']}, http://{server.host}:{server.http[1]}/, log {server.broker.log}")
                for member in cluster.members:
                    role = "primary" if member is cluster.primary else "standby"
                    print(f"  {member}: PostgreSQL, {role}, pid {member.process.pid}, log {member.log}")
                print(f"  {cluster.url()}")
                print("\nTry: kill -9 a server. Others take its namespaces; it is started again after ten seconds.")
                print("     kill -STOP a server, and kill -CONT it later. kill -TERM hands its namespaces over.")
                print("     kill -9 the primary. A standby is promoted, and the former primary follows it.")
                print("Ctrl-C ends all.", flush=True)
                try:
                    mend(cluster, fleet)
                except KeyboardInterrupt:
                    print("\nending ...", flush=True)
                    signal.signal(signal.SIGINT, signal.SIG_IGN)


def mend(cluster: postgres.Cluster, fleet: Fleet) -> None:
    """Does what a cluster manager would do: promotes, and starts again what has ended."""
    gone: dict[Server, float] = {}
    shown: dict[str, list[Server]] = {}
    while True:
        time.sleep(0.5)
        if not cluster.primary.running:
            former, began = cluster.primary, time.monotonic()
            chosen = cluster.promote()
            print(f"{former} has ended; {chosen} was promoted in {time.monotonic() - began:.1f} s", flush=True)
            cluster.rejoin(former)
            print(f"{former} follows {chosen}", flush=True)
        for standby in cluster.standbys:
            if not standby.running:
                standby.start()
                print(f"{standby} was started again", flush=True)
        for server in fleet.servers:
            if server.running:
                gone.pop(server, None)
            elif time.monotonic() > gone.setdefault(server, time.monotonic() + 10):
                server.start()
                print(f"{server} was started again, pid {server.broker.state['pid']}", flush=True)
        owners = fleet.owners()
        if owners != shown:
            for namespace, found in sorted(owners.items()):
                if found != shown.get(namespace):
                    print(f"{namespace} is owned by {', '.join(map(str, found))}", flush=True)
            shown = owners


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=3)
    options = parser.parse_args()
    try:
        demo(options.servers)
    except (BrokerError, FleetError, postgres.PostgresError) as error:
        print(f"ha: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
