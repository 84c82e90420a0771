#!/usr/bin/env python3
"""Other brokers, installed and measured as Jitney is: the same client, the same messages, the same run.

    peers.py                     every peer that can be installed here, beside Jitney, as a Markdown table
    peers.py --only artemis      those whose key begins so; again for more of them; `jitney` is one
    peers.py --install           installs them and prints their versions

Peers are installed below $JITNEY_BENCH_CACHE (~/.cache/jitney-bench without it): RabbitMQ into trees of Debian releases of
their own, ActiveMQ Artemis from its Maven artifact. Nothing else of the system is changed, and no service is left running. A tree of a
release is made and entered by root alone; a peer that cannot be installed is named with the reason. How each is set up, and why:
docs/peers.md.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from string import Template
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))
from measure import (  # noqa: E402
    START_DEADLINE, STOP_DEADLINE, Jitney, MeasureError, Process, Scratch, free_ports, load, median, queues,
)

TEMPLATES = Path(__file__).resolve().parent / "peers"
# The queue that is measured.
QUEUE = "bench"
# How long an installation may take, seconds: a Debian release is some 150 MB of packages.
INSTALL_DEADLINE = 1200.0
# How long one run of a load should take, and what it may take at most, seconds.
RUN_SECONDS = 3.0
WARM_SECONDS = 4.0
BACKLOG_SECONDS = 25.0
LOAD_DEADLINE = 90.0
# Where the sender and the receiver are bounded: messages not yet settled.
CREDIT = 1000
# System calls that wait for the disk.
SYNCS = "fsync,fdatasync,sync_file_range,msync"


class Unavailable(Exception):
    """A peer cannot be installed here; the text says why."""


def cache() -> Path:
    """Where peers are installed."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jitney-bench"
    path = Path(os.environ.get("JITNEY_BENCH_CACHE") or default)
    path.mkdir(parents=True, exist_ok=True)
    return path


def run(command: Sequence[str | Path], timeout: float = INSTALL_DEADLINE, **options: Any) -> str:
    """Runs a command of an installation, and returns what it printed."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
            **options,
        )
    except FileNotFoundError:
        raise Unavailable(f"there is no {words[0]}") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{words[0]} was not done after {timeout:.0f} s") from None
    if done.returncode != 0:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
        lines = [line.strip() for line in plain.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        told = [line for line in lines if line.startswith(("E: ", "[ERROR] "))] or lines[-1:]
        raise Unavailable(f"{Path(words[0]).name} failed: {told[0][:300]}")
    return done.stdout


def listens(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


class Peer(Process):
    """A broker that is not ours, as a process in a directory of its own; the same interface as measure.Jitney."""

    # How it is chosen on the command line, what is printed for people, and its setting in a line.
    key: ClassVar[str]
    name: ClassVar[str]
    setting: ClassVar[str]
    # SASL PLAIN.
    user: ClassVar[str | None] = "bench"
    password: ClassVar[str | None] = "bench"

    def __init__(self, process: subprocess.Popen[bytes], directory: Path, address: str, began: float):
        super().__init__(process.pid)
        self.process = process
        self.directory = directory
        self.address = address
        # From before the process was made until it accepted connections.
        self.start_seconds = 0.0
        while not listens(address):
            if process.poll() is not None or START_DEADLINE < time.monotonic() - began:
                self.kill()
                raise MeasureError(f"{self.name} does not listen after {time.monotonic() - began:.0f} s\n{self.log_tail()}")
            time.sleep(0.01)
        self.start_seconds = time.monotonic() - began

    @classmethod
    def install(cls) -> str:
        """Installs it where it is not yet, and returns its version; raises Unavailable."""
        raise NotImplementedError

    @classmethod
    def command(cls, directory: Path, address: str, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """Writes its configuration into the directory; returns what starts it, and the environment for that."""
        raise NotImplementedError

    @classmethod
    def start(cls, directory: Path, names: Sequence[str] = (QUEUE,)) -> Peer:
        """Starts it with its data below `directory`, where there may be some, and waits until it accepts connections."""
        directory.mkdir(parents=True, exist_ok=True)
        address = f"127.0.0.1:{free_ports(1)[0]}"
        words, environment = cls.command(directory, address, names)
        began = time.monotonic()
        return cls(cls.launch(directory, words, environment), directory, address, began)

    @staticmethod
    def launch(directory: Path, words: Sequence[str], environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Runs a command that logs to the directory, and waits for nothing. It ends with this process, however that ends."""
        with (directory / "broker.log").open("ab") as log:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            )

    def node(self, queue: str) -> str:
        """The address of a queue on the wire."""
        return queue

    def data_bytes(self) -> int:
        """What its data take on the disk: blocks, not lengths."""
        files = (path for path in (self.directory / "data").rglob("*") if path.is_file())
        return sum(path.stat().st_blocks * 512 for path in files)

    def stop(self) -> None:
        """Ends it in good order."""
        os.kill(self.main_pid(), signal.SIGTERM)
        try:
            self.process.wait(STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise MeasureError(f"{self.name} did not end on SIGTERM") from None

    def kill(self) -> None:
        """Ends it as a power cut would, as far as a process can; returns when all of its processes are gone."""
        pids = self.tree()
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not any(Process(pid).exists() for pid in pids))

    def main_pid(self) -> int:
        """The process that is told to end."""
        return self.pid

    def log_tail(self, lines: int = 15) -> str:
        log = self.directory / "broker.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.is_file() else "(no log)"

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class RabbitMQ(Peer):
    """RabbitMQ of a Debian release, in a tree of that release."""

    # The release, and where it looks for the queues of others.
    release: ClassVar[str]
    address_prefix: ClassVar[str] = "/queues/"
    plugins: ClassVar[Sequence[str]] = ()
    advanced: ClassVar[str] = "flow-4.config"
    arguments: ClassVar[dict[str, Any]]

    @classmethod
    def root(cls) -> Path:
        return cache() / f"debian-{cls.release}"

    @classmethod
    def install(cls) -> str:
        if os.geteuid() != 0:
            raise Unavailable(f"a tree of Debian {cls.release} is made and entered by root alone")
        if not (cls.root() / ".installed").is_file():
            install_release(cls.release, cls.root(), ["rabbitmq-server"])
        return cls.server(cls.root()).name.removeprefix("rabbitmq_server-")

    @staticmethod
    def server(tree: Path) -> Path:
        """Where the broker is inside of the tree, seen from outside."""
        found = sorted((tree / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"))
        if not found:
            raise Unavailable(f"no RabbitMQ in {tree}: remove the directory, and it is made again")
        return found[-1]

    @classmethod
    def command(cls, directory: Path, address: str, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        distribution, names_port = free_ports(2)
        return cls.node_command(directory, address, "bench@localhost", distribution, names_port, cls.definitions(names)), dict(os.environ)

    @classmethod
    def node_command(
        cls, directory: Path, address: str, node: str, distribution: int, names_port: int, definitions: dict[str, Any], further: str = "",
    ) -> list[str]:
        """Writes the configuration of a node, with `further` lines, and returns what starts it. `distribution` is its port for the other
        nodes, and `names_port` that of the daemon which knows all of them."""
        data = directory / "data"
        data.mkdir(exist_ok=True)
        template = Template((TEMPLATES / "rabbitmq/rabbitmq.conf").read_text())
        (data / "rabbitmq.conf").write_text(template.substitute(address=address) + further)
        shutil.copy(TEMPLATES / "rabbitmq" / cls.advanced, data / "advanced.config")
        (data / "definitions.json").write_text(json.dumps(definitions))
        (data / "enabled_plugins").write_text(f"[{','.join(cls.plugins)}].\n")
        settings = {
            "RABBITMQ_NODENAME": node, "RABBITMQ_DIST_PORT": str(distribution),
            "ERL_EPMD_PORT": str(names_port), "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": "/bench/mnesia", "RABBITMQ_LOG_BASE": "/bench/log",
            "RABBITMQ_CONFIG_FILE": "/bench/rabbitmq.conf", "RABBITMQ_ADVANCED_CONFIG_FILE": "/bench/advanced.config",
            "RABBITMQ_ENABLED_PLUGINS_FILE": "/bench/enabled_plugins", "RABBITMQ_PLUGINS_EXPAND_DIR": "/bench/plugins",
        }
        return cls.inside(data, settings, cls.program("rabbitmq-server"))

    @classmethod
    def program(cls, name: str) -> str:
        """One of RabbitMQ's programs, as the tree sees it."""
        return f"/{cls.server(cls.root()).relative_to(cls.root())}/sbin/{name}"

    @classmethod
    def inside(cls, data: Path, settings: dict[str, str], *words: str) -> list[str]:
        """What runs a program of the tree with a directory as its /bench."""
        usual = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/bench", "LANG": "C.UTF-8"}
        # Its own view of mounts and processes: both are gone with it, whatever it started.
        script = (
            'mount --bind "$1" "$0/bench" && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && tree="$0" && shift'
            ' && exec chroot "$tree" env -i "$@"'
        )
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c", script]
        return [*command, str(cls.root()), str(data), *(f"{name}={value}" for name, value in (usual | settings).items()), *words]

    @classmethod
    def definitions(cls, names: Sequence[str]) -> dict[str, Any]:
        """What it declares when it starts: a user, and the queues."""
        salt = b"jitn"
        digest = base64.b64encode(salt + hashlib.sha256(salt + str(cls.password).encode()).digest()).decode()
        hashing = "rabbit_password_hashing_sha256"
        user = {"name": cls.user, "password_hash": digest, "hashing_algorithm": hashing, "tags": ["administrator"]}
        rights = {"user": cls.user, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
        declared = [
            {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": cls.arguments} for name in names
        ]
        return {"users": [user], "vhosts": [{"name": "/"}], "permissions": [rights], "queues": declared}

    def node(self, queue: str) -> str:
        return self.address_prefix + queue

    def main_pid(self) -> int:
        for pid in self.tree():
            try:
                if Path(f"/proc/{pid}/comm").read_text().strip() == "beam.smp":
                    return pid
            except (FileNotFoundError, ProcessLookupError):
                pass
        return self.pid


class RabbitMQ43Quorum(RabbitMQ):
    key, name, release = "rabbitmq-4.3-quorum", "RabbitMQ 4.3, quorum queue", "sid"
    setting = "flow control widened; every command synced"
    arguments = {"x-queue-type": "quorum"}


class RabbitMQ43QuorumDefaults(RabbitMQ43Quorum):
    key, name = "rabbitmq-4.3-defaults", "RabbitMQ 4.3, quorum queue, as shipped"
    setting = "flow control as shipped; every command synced"
    advanced = "defaults.config"


class RabbitMQ43Classic(RabbitMQ):
    key, name, release = "rabbitmq-4.3-classic", "RabbitMQ 4.3, classic durable queue", "sid"
    setting = "flow control widened; not synced before the sender is told"
    arguments = {"x-queue-type": "classic"}


class RabbitMQ40Quorum(RabbitMQ43Quorum):
    key, name, release = "rabbitmq-4.0-quorum", "RabbitMQ 4.0, quorum queue", "trixie"


class RabbitMQ40Classic(RabbitMQ43Classic):
    key, name, release = "rabbitmq-4.0-classic", "RabbitMQ 4.0, classic durable queue", "trixie"


class RabbitMQ310Quorum(RabbitMQ43Quorum):
    key, name, release = "rabbitmq-3.10-quorum", "RabbitMQ 3.10 and its AMQP 1.0 plugin, quorum queue", "bookworm"
    address_prefix, plugins, advanced = "/amq/queue/", ("rabbitmq_amqp1_0",), "flow-3.config"


class RabbitMQ310Classic(RabbitMQ43Classic):
    key, name, release = "rabbitmq-3.10-classic", "RabbitMQ 3.10 and its AMQP 1.0 plugin, classic durable queue", "bookworm"
    address_prefix, plugins, advanced = "/amq/queue/", ("rabbitmq_amqp1_0",), "flow-3.config"


class Artemis(Peer):
    """ActiveMQ Artemis of its Maven artifact, on the system's Java."""

    version: ClassVar[str] = "2.44.0"
    plugin: ClassVar[str] = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
    journal: ClassVar[dict[str, Any]]
    heap: ClassVar[str] = "4G"

    @classmethod
    def home(cls) -> Path:
        return cache() / f"apache-artemis-{cls.version}"

    @classmethod
    def install(cls) -> str:
        if shutil.which("java") is None:
            raise Unavailable("there is no java")
        if not cls.home().is_dir():
            scratch = cache() / "artemis.part"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            artifact = f"org.apache.activemq:apache-artemis:{cls.version}:tar.gz:bin"
            copy = [f"{cls.plugin}:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={scratch}"]
            run(["mvn", "-B", "-q", *copy], cwd=scratch)
            run(["tar", "xzf", scratch / f"apache-artemis-{cls.version}-bin.tar.gz", "-C", scratch])
            (scratch / cls.home().name).rename(cls.home())
            shutil.rmtree(scratch)
        return cls.version

    @classmethod
    def command(cls, directory: Path, address: str, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        # A configuration is a tree of its own beside the data.
        settings = directory / "etc"
        settings.mkdir(exist_ok=True)
        (directory / "tmp").mkdir(exist_ok=True)
        queue = '         <address name="{0}"><anycast><queue name="{0}"/></anycast></address>'
        values = {
            "address": address, "addresses": "\n".join(queue.format(name) for name in names), "data": directory / "data",
            "settings": settings, **cls.journal,
        }
        for template in (TEMPLATES / "artemis").iterdir():
            (settings / template.name).write_text(Template(template.read_text()).substitute(values))
        home = cls.home()
        words = [
            "java", "-XX:+UseParallelGC", f"-Xms{cls.heap}", f"-Xmx{cls.heap}", "-XX:AutoBoxCacheMax=20000",
            "--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED",
            f"-Djava.security.auth.login.config={settings}/login.config", f"-Dlog4j2.configurationFile={settings}/log4j2.properties",
            "-classpath", f"{home}/lib/artemis-boot.jar", f"-Dartemis.home={home}", f"-Dartemis.instance={directory}",
            f"-Dartemis.instance.etc={settings}", f"-Ddata.dir={directory}/data", f"-Djava.io.tmpdir={directory}/tmp",
            f"-Djava.library.path={home}/bin/lib/linux-{platform.machine()}", "-Dlog4j2.disableJmx=true",
            "org.apache.activemq.artemis.boot.Artemis", "run",
        ]
        libraries = [str(path) for path in (cache() / "libaio").glob("**/lib/*") if path.is_dir()]
        return words, {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}


class ArtemisAio(Artemis):
    key, name = "artemis-aio", "ActiveMQ Artemis, journal by libaio"
    setting = "journal synced (O_DIRECT by libaio), 4 GiB of heap"
    journal = {"journal_type": "ASYNCIO", "buffer_size": "1M", "buffer_timeout": 100_000, "max_io": 4096}

    @classmethod
    def install(cls) -> str:
        version = super().install()
        if not libaio_is_there():
            install_libaio()
        return version


class ArtemisNio(Artemis):
    key, name = "artemis-nio", "ActiveMQ Artemis, journal by NIO"
    setting = "journal synced (fdatasync), 4 GiB of heap"
    journal = {"journal_type": "NIO", "buffer_size": "1M", "buffer_timeout": 100_000, "max_io": 1}


PEERS: Sequence[type[Peer]] = (
    RabbitMQ43Quorum, RabbitMQ43QuorumDefaults, RabbitMQ43Classic, RabbitMQ40Quorum, RabbitMQ40Classic,
    RabbitMQ310Quorum, RabbitMQ310Classic, ArtemisAio, ArtemisNio,
)


# --- installing -------------------------------------------------------------------------------------------------------


def mirror() -> str:
    """Where the system's own apt has Debian's packages from."""
    known = run(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"])
    for line in known.splitlines():
        origin, label, place = line.split("|", 2)
        if (origin, label) == ("Debian", "Debian"):
            return place
    raise Unavailable("the system's apt knows no Debian mirror: `apt-get update` first, on Debian")


def unpack(package: str, directory: Path) -> None:
    """Unpacks a package of the system's release into a directory; nothing is installed."""
    directory.mkdir(parents=True, exist_ok=True)
    run(["apt-get", "download", package], cwd=directory)
    found = sorted(directory.glob(f"{package}_*.deb"))
    if not found:
        raise Unavailable(f"apt brought no {package}")
    run(["dpkg-deb", "-x", found[-1], directory])
    found[-1].unlink()


def install_release(release: str, tree: Path, packages: Iterable[str]) -> None:
    """Makes a tree of a Debian release with these packages and what they need."""
    program, environment = shutil.which("debootstrap"), dict(os.environ)
    if program is None:
        tools = cache() / "debootstrap"
        if not tools.is_dir():
            unpack("debootstrap", tools)
        program = str(tools / "usr/sbin/debootstrap")
        environment["DEBOOTSTRAP_DIR"] = str(tools / "usr/share/debootstrap")
    part = tree.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    run([program, "--variant=minbase", f"--include={','.join(packages)}", release, part, mirror()], env=environment)
    # Erlang looks itself up by name; the packages are not wanted again.
    (part / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (part / "bench").mkdir()
    for package in (part / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()
    (part / ".installed").touch()
    part.rename(tree)


def libaio_is_there() -> bool:
    """Whether the library that Artemis reads and writes its journal by is in the system or in the cache."""
    return "libaio.so.1 " in run(["/sbin/ldconfig", "-p"]) or any((cache() / "libaio").glob("**/libaio.so.1"))


def install_libaio() -> None:
    directory = cache() / "libaio"
    try:
        unpack("libaio1", directory)
    except Unavailable:
        # Newer releases have it under a name of its own for 64-bit times, which on 64-bit machines is the same library.
        unpack("libaio1t64", directory)
    for library in directory.glob("**/libaio.so.1t64"):
        library.with_name("libaio.so.1").symlink_to(library.name)


# --- measuring --------------------------------------------------------------------------------------------------------


JITNEY_SETTING = "synced before the sender is told"


# What is measured for messages a second and CPU, by the names of the figures.
THROUGHPUTS: dict[str, dict[str, int]] = {"pair": {}, "pairs_8": {"pairs": 8}, "small": {"size": 100}}


def start_jitney(directory: Path) -> Jitney:
    return Jitney.start(directory, queues(QUEUE))


class Series:
    """The workloads on one broker, one after the other.

    `beside` is another broker: throughputs are measured on both, run by run in turn, so that a machine that is faster at one time than
    at another does not tell one from the other. The one whose turn it is not has nothing to do.
    """

    def __init__(self, start: Callable[[Path], Any], runs: int, backlog: int, beside: Callable[[Path], Any] | None = None):
        self.start = start
        self.runs = runs
        self.backlog = backlog
        self.beside = beside

    def measure(self) -> dict[str, Any]:
        with Scratch() as directory:
            with ExitStack() as stack:
                broker = stack.enter_context(self.start(directory / "first"))
                figures: dict[str, Any] = {"idle_bytes": broker.resident_bytes(), "start_seconds": broker.start_seconds}
                brokers = [broker] + ([stack.enter_context(self.beside(directory / "beside"))] if self.beside else [])
                rates = [self.warm(each) for each in brokers]
                for name, options in THROUGHPUTS.items():
                    found = self.throughput(brokers, rates, **options)
                    rates = [each["rate"] for each in found]
                    figures[name] = found[0]
                    if self.beside:
                        figures[name]["beside"] = found[1]
                figures["latency"] = self.latency(broker)
                figures["syncs_per_thousand"] = self.syncs(broker)
            figures["waiting"] = self.waiting(directory / "second", figures["pair"]["rate"])
        return figures

    def load(self, broker: Any, messages: int, **options: Any) -> dict[str, Any]:
        """One load, and what it took of the broker's CPU."""
        options = {"node": broker.node(QUEUE), "user": broker.user, "password": broker.password, "credit": CREDIT, **options}
        before = broker.cpu_seconds()
        report = load(broker.address, messages=messages, timeout=LOAD_DEADLINE, **options)
        return {**report, "cpu": (broker.cpu_seconds() - before) / messages * 1e6}

    def warm(self, broker: Any) -> float:
        """Loads that are not measured: compilers of bytecode learn, files are made. Returns the rate in the end."""
        rate = self.load(broker, 5_000)["rate"]
        return self.load(broker, int(max(10_000, rate * WARM_SECONDS)))["rate"]

    def throughput(self, brokers: Sequence[Any], rates: Sequence[float], **options: Any) -> list[dict[str, Any]]:
        """As much as each gets through, in turn; `rates` are what each can be expected to."""
        amounts = [int(max(10_000, rate * RUN_SECONDS)) for rate in rates]
        reports: list[list[dict[str, Any]]] = [[] for _ in brokers]
        for _ in range(self.runs):
            for broker, messages, found in zip(brokers, amounts, reports):
                found.append(self.load(broker, messages, **options))
                # What it has put off must not disturb the next one.
                wait_until_idle(broker.cpu_seconds)
        return [
            {name: median(report[name] for report in found) for name in ("rate", "cpu")} | {"messages": messages}
            for found, messages in zip(reports, amounts)
        ]

    def latency(self, broker: Any) -> dict[str, float]:
        """At 2,000 messages a second, from when each was due."""
        report = self.load(broker, 20_000, rate=2_000)
        return {"p50": report["end_to_end"]["p50"] / 1000, "p99": report["end_to_end"]["p99"] / 1000, "cpu": report["cpu"]}

    def syncs(self, broker: Any, messages: int = 20_000) -> float | None:
        """System calls that wait for the disk, per thousand messages; none where strace is not to be had."""
        if shutil.which("strace") is None:
            return None
        with Scratch() as directory:
            command = ["strace", "-f", "-qq", "-c", "-e", f"trace={SYNCS}", "-o", str(directory / "calls")]
            for pid in broker.tree():
                command += ["-p", str(pid)]
            watcher = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                wait_until(lambda: watcher.poll() is not None or traced(broker.tree()))
                if watcher.poll() is not None:
                    return None
                self.load(broker, messages)
            finally:
                watcher.send_signal(signal.SIGINT)
                watcher.wait()
            return calls_in((directory / "calls").read_text()) / messages * 1000

    def waiting(self, directory: Path, rate: float) -> dict[str, float]:
        """Memory with many messages waiting, and after SIGKILL the time to the first of them."""
        messages = int(min(self.backlog, rate * BACKLOG_SECONDS))
        with self.start(directory) as broker:
            self.load(broker, messages, send_only=True)
            figures: dict[str, float] = {"messages": messages, "resident_bytes": broker.resident_bytes()}
            figures["disk_bytes"] = broker.data_bytes()
            broker.kill()
        began = time.monotonic()
        with self.start(directory) as broker:
            while True:
                try:
                    self.load(broker, 1, receive_only=True, credit=1)
                    break
                except MeasureError:
                    # A peer may listen before its queues are there.
                    if LOAD_DEADLINE < time.monotonic() - began:
                        raise
            figures["restart_seconds"] = time.monotonic() - began
        return figures


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if deadline < time.monotonic():
            raise MeasureError(f"not so after {seconds:.0f} s")
        time.sleep(0.01)


def wait_until_idle(spent: Callable[[], float], seconds: float = 5.0, interval: float = 0.2, little: float = 0.02) -> None:
    """Waits until less CPU time than `little` is spent in an interval: usually a tenth of a processor. Not for ever, for some brokers
    never rest."""
    deadline = time.monotonic() + seconds
    before = spent()
    while time.monotonic() < deadline:
        time.sleep(interval)
        now = spent()
        if now - before < little:
            return
        before = now


def traced(pids: Iterable[int]) -> bool:
    """Whether all threads of these processes are watched."""
    for pid in pids:
        try:
            for status in Path(f"/proc/{pid}/task").glob("*/status"):
                if "TracerPid:\t0\n" in status.read_text():
                    return False
        except (FileNotFoundError, ProcessLookupError):
            pass
    return True


def calls_in(summary: str) -> int:
    """The calls in strace's summary: columns % time, seconds, usecs/call, calls, perhaps errors, name."""
    rows = (line.split() for line in summary.splitlines())
    return sum(int(row[3]) for row in rows if len(row) in (5, 6) and row[3].isdigit() and row[-1] != "total")


def chosen(keys: Sequence[str]) -> list[type[Peer]]:
    """The peers whose keys begin so; all of them without keys."""
    return [peer for peer in PEERS if not keys or any(peer.key.startswith(key) for key in keys)]


def compare(
    only: Sequence[str] = (), runs: int = 3, backlog: int = 1_000_000, say: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """Jitney and the peers, one after the other: for each its key, name, version and setting, and its figures or the reason why not.

    `only` are beginnings of keys, "jitney" among them; without any, it is all. `ratio` in a peer's entry says how many times better
    Jitney's throughputs were, measured in turn with that peer's.
    """
    entries: list[dict[str, Any]] = []
    ours = not only or "jitney" in only
    if ours:
        say(Jitney.name)
        figures = Series(start_jitney, runs, backlog).measure()
        entries.append({"key": "jitney", "name": Jitney.name, "version": "", "setting": JITNEY_SETTING, "figures": figures})
    for peer in chosen(only):
        entry: dict[str, Any] = {"key": peer.key, "name": peer.name, "version": "", "setting": peer.setting}
        entries.append(entry)
        say(peer.name)
        try:
            entry["version"] = peer.install()
            entry["figures"] = Series(peer.start, runs, backlog, start_jitney if ours else None).measure()
        except (Unavailable, MeasureError, OSError) as error:
            entry["unavailable"] = str(error)
            say(f"{peer.name}: {error}")
        if ours and "figures" in entry:
            entry["ratio"] = ratios(entry["figures"])
    return entries


def ratios(figures: dict[str, Any]) -> dict[str, float]:
    """How many times better Jitney's figures of the same minutes are than a peer's."""
    found = {}
    for name in THROUGHPUTS:
        theirs, ours = figures[name], figures[name]["beside"]
        found[f"{name}_rate"] = ours["rate"] / theirs["rate"]
        found[f"{name}_cpu"] = theirs["cpu"] / ours["cpu"]
    return found


def markdown(entries: Sequence[dict[str, Any]]) -> str:
    """The table: a row for each broker, with the ratio to Jitney's figure behind the peer's."""
    lines = [
        "| broker | 1 KiB, 1 pair: msg/s | CPU s / M | 8 pairs: msg/s | CPU s / M | 100 B: msg/s | CPU s / M | p50 / p99 at 2,000/s"
        " | syncs per 1,000 | waiting: RSS | restart |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    reasons = []
    for entry in entries:
        title = f"{entry['name']} ({entry['version']})" if entry["version"] else entry["name"]
        if "figures" not in entry:
            reasons.append(f"{title}: not measured, {entry['unavailable']}")
            continue
        figures, ratio = entry["figures"], entry.get("ratio", {})
        cells = [title]
        for name in THROUGHPUTS:
            cells.append(f"{figures[name]['rate']:,.0f}{times(ratio.get(name + '_rate'))}")
            cells.append(f"{figures[name]['cpu']:.1f}{times(ratio.get(name + '_cpu'))}")
        cells.append(f"{figures['latency']['p50']:.2f} / {figures['latency']['p99']:.1f} ms")
        syncs, waiting = figures["syncs_per_thousand"], figures["waiting"]
        cells.append("?" if syncs is None else f"{syncs:.1f}")
        cells.append(f"{waiting['resident_bytes'] / 2**20:,.0f} MiB with {waiting['messages']:,}")
        cells.append(f"{waiting['restart_seconds']:.2f} s")
        lines.append("| " + " | ".join(cells) + " |")
    settings = [f"{entry['name']}: {entry['setting']}" for entry in entries if "figures" in entry]
    told = "In brackets: how many times better Jitney was, measured in turn with that broker."
    return "\n".join([*lines, "", told, "", *(f"- {line}" for line in settings + reasons)])


def times(ratio: float | None) -> str:
    return "" if ratio is None else f" ({ratio:.1f} x)"


def main() -> int:
    parser = argparse.ArgumentParser(description="Other brokers, measured as Jitney is.")
    parser.add_argument("--only", action="append", default=[], metavar="KEY", help="a broker whose key begins so")
    parser.add_argument("--runs", type=int, default=3, help="runs of each throughput; the median is told")
    parser.add_argument("--backlog", type=int, default=1_000_000, help="messages that wait, if 25 s are enough to send them")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--install", action="store_true", help="install the peers, and measure nothing")
    arguments = parser.parse_args()
    if arguments.install:
        for peer in chosen(arguments.only):
            try:
                print(f"{peer.key}: {peer.install()}")
            except Unavailable as error:
                print(f"{peer.key}: {error}")
        return 0
    entries = compare(arguments.only, arguments.runs, arguments.backlog, lambda text: print(text, file=sys.stderr, flush=True))
    print(json.dumps(entries, indent=1) if arguments.json else markdown(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
