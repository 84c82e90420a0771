"""The basis of every measurement: processes with their CPU time and memory, a broker of one's own, the load generator.

    with Scratch() as directory, Jitney.start(directory, queues("bench")) as broker:
        report = load(broker.address, node="bench", messages=100_000, pid=broker.pid)
        print(report["rate"], report["broker"]["cpu_seconds_per_million"])

The binaries are target/release/jitney and target/release/loadgen. JITNEY_BINARY and LOADGEN_BINARY name others, and CARGO_TARGET_DIR
moves target/. Nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from broker import ROOT, binary, free_ports, target_dir  # noqa: E402,F401

TICKS = os.sysconf("SC_CLK_TCK")
# How long a broker may take to come up or to go, and one load to be done, seconds.
START_DEADLINE = 120.0
STOP_DEADLINE = 60.0
LOAD_DEADLINE = 600.0


class MeasureError(Exception):
    """A broker or the load generator did not do what was asked."""


def raise_open_files() -> None:
    """Lets this process and its children open as many files as the system allows: connections are files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def end_in_order() -> None:
    """Lets SIGTERM unwind the program, so that brokers are ended and directories removed."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


raise_open_files()
end_in_order()


class Process:
    """A process on this machine, and those that it started: what they took so far."""

    def __init__(self, pid: int):
        self.pid = pid

    def tree(self) -> list[int]:
        """Its id, and those of all its descendants."""
        children: dict[int, list[int]] = {}
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            if (fields := _stat(pid)) is not None:
                children.setdefault(int(fields[1]), []).append(pid)
        found = [self.pid]
        for pid in found:
            found += children.get(pid, [])
        return found

    def cpu_seconds(self) -> float:
        """User and system time, of children that have ended too."""
        # Behind the name: state 0, parent 1, ..., utime 11, stime 12, and those of ended children 13, 14.
        return sum(sum(map(int, fields[11:15])) for pid in self.tree() if (fields := _stat(pid))) / TICKS

    def switches(self) -> int:
        """How often its threads that are there gave up a core, or lost it."""
        tasks = (task for pid in self.tree() for task in Path(f"/proc/{pid}/task").glob("*/status"))
        lines = (line for task in tasks for line in task.read_text().splitlines() if "_ctxt_switches" in line)
        return sum(int(line.split()[1]) for line in lines)

    def resident_bytes(self) -> int:
        """Memory that is in RAM now."""
        return sum(_status(pid, "VmRSS") for pid in self.tree())

    def peak_bytes(self) -> int:
        """The most that was in RAM at a time; of several processes the sum of each one's own."""
        return sum(_status(pid, "VmHWM") for pid in self.tree())

    def exists(self) -> bool:
        fields = _stat(self.pid)
        return fields is not None and fields[0] != "Z"


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat behind the name, which may hold anything; none if the process has gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _status(pid: int, name: str) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


class Jitney(Process):
    """The release binary, serving in a directory of its own on a free port."""

    # What is printed for people, and what a load needs to sign in: nothing, for the profile is development.
    name = "Jitney"
    user: str | None = None
    password: str | None = None

    def __init__(self, process: subprocess.Popen[str], directory: Path, address: str, started_at: float, start_seconds: float):
        super().__init__(process.pid)
        self.process = process
        self.directory = directory
        self.address = address
        # Just before the process was made, seconds since 1970, and how long it took until it said that it is up.
        self.started_at = started_at
        self.start_seconds = start_seconds

    @classmethod
    def start(
        cls, directory: Path, config: dict[str, Any] | None = None, arguments: Iterable[str] = (), address: str | None = None,
        before: Iterable[str] = (),
    ) -> Jitney:
        """Starts a broker with its data in `directory`/data, where there may be some, and waits until it is up.

        `before` is a command that runs the broker, as `taskset`.
        """
        directory.mkdir(parents=True, exist_ok=True)
        amqp, http = (f"127.0.0.1:{port}" for port in free_ports(2))
        amqp = address or amqp
        command = [*before, str(binary()), "serve", "--amqp", amqp, "--http", http, "--data-dir", str(directory / "data"), *arguments]
        if config is not None:
            path = directory / "config.json"
            path.write_text(json.dumps(config))
            command += ["--config", str(path)]
        started_at, began = time.time(), time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "RUST_LOG": "info,jitney::run=debug"},
        )
        watchdog = threading.Timer(START_DEADLINE, process.kill)
        watchdog.start()
        said = []
        for line in process.stderr:
            said.append(line)
            if "Successfully Up" in line:
                break
        up = time.monotonic() - began
        watchdog.cancel()
        if process.poll() is not None or not said or "Successfully Up" not in said[-1]:
            process.kill()
            raise MeasureError(f"the broker did not start: {process.wait()}\n{''.join(said[-20:])}")
        # The rest of its log is read, so that it can go on writing.
        threading.Thread(target=_copy, args=(said, process.stderr, directory / "broker.log"), daemon=True).start()
        return cls(process, directory, amqp, started_at, up)

    def node(self, queue: str) -> str:
        """The address of a queue on the wire."""
        return queue

    def data_bytes(self) -> int:
        """What its data take on the disk: blocks, not lengths."""
        return sum(path.stat().st_blocks * 512 for path in (self.directory / "data").rglob("*") if path.is_file())

    def stop(self) -> None:
        """Ends it in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would, as far as a process can."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise MeasureError(f"the broker did not end on signal {number}") from None

    def __enter__(self) -> Jitney:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def _copy(said: list[str], lines: Iterator[str], path: Path) -> None:
    with path.open("a") as log:
        log.writelines(said)
        log.flush()
        for line in lines:
            log.write(line)
            log.flush()


def queues(*names: str, topics: Iterable[dict[str, Any]] = (), **properties: Any) -> dict[str, Any]:
    """A configuration with these queues, long-lived and large, each with `properties`."""
    defaults = {"DefaultMessageTimeToLive": "P14D", "LockDuration": "PT5M", "MaxSizeInMegabytes": 200_000}
    entries = [{"Name": name, "Properties": {**defaults, **properties}} for name in names]
    return {"UserConfig": {"Namespaces": [{"Name": "bench", "Queues": entries, "Topics": list(topics)}]}}


def load(address: str, *, timeout: float = LOAD_DEADLINE, **options: Any) -> dict[str, Any]:
    """Runs `loadgen load --json` against a broker and returns its report.

    An option is its flag: `send_only=True` is --send-only, `size=100` is --size 100; none and false leave it out.
    """
    return loadgen("load", address, timeout=timeout, **options)


# Messages a second at which a broker is quiet.
QUIET_PACES = (2_000, 200)


def load_at_pace(broker: Jitney, node: str, pace: int, seconds: int) -> tuple[dict[str, Any], float]:
    """Keeps a pace; returns the report, and the context switches of the broker for a message."""
    messages, before = pace * seconds, broker.switches()
    report = load(broker.address, node=node, messages=messages, rate=pace, pid=broker.pid)
    return report, (broker.switches() - before) / messages


def loadgen(command: str, address: str, *, timeout: float = LOAD_DEADLINE, **options: Any) -> dict[str, Any]:
    """Runs a command of `loadgen` and returns its report: the last line that it prints."""
    words = loadgen_command(command, address, **options)
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise MeasureError(f"not done after {timeout:.0f} s: {' '.join(words)}") from None
    if done.returncode != 0:
        raise MeasureError(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def hold(address: str, *, timeout: float = LOAD_DEADLINE, **options: Any) -> Iterator[dict[str, Any]]:
    """Runs `loadgen hold`: the connections are there until the block ends. Gives its report."""
    words = loadgen_command("hold", address, **options)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(timeout, process.kill)
        watchdog.start()
        try:
            line = process.stdout.readline()
            if not line:
                raise MeasureError(f"{' '.join(words)}: {process.stderr.read().strip()}")
            yield json.loads(line)
            if process.poll() is not None:
                raise MeasureError(f"{' '.join(words)}: {process.stderr.read().strip()}")
        finally:
            watchdog.cancel()
            process.stdin.close()


def loadgen_binary() -> Path:
    """The load generator's release binary; LOADGEN_BINARY names another."""
    path = Path(os.environ.get("LOADGEN_BINARY", target_dir() / "release" / "loadgen"))
    if not path.is_file():
        raise MeasureError(f"no binary at {path}: run `cargo build --release` first")
    return path


def loadgen_command(command: str, address: str, **options: Any) -> list[str]:
    """The words of a command of `loadgen`, as they would be typed."""
    words = [str(loadgen_binary()), command, "--json", "--broker", address]
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words


@contextmanager
def Scratch() -> Iterator[Path]:
    """A directory that is removed in the end; below TMPDIR, so that a disk can be chosen."""
    path = Path(tempfile.mkdtemp(prefix="jitney-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def wait_for_port(address: str, seconds: float = START_DEADLINE) -> None:
    """Waits until somebody listens at HOST:PORT."""
    host, port = address.rsplit(":", 1)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise MeasureError(f"nobody listens at {address} after {seconds:.0f} s")
