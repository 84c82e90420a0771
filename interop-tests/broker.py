#!/usr/bin/env python3
"""Starts, stops and kills the release binary for the interop suites.

A state file describes a broker, so that a suite in any language can control the broker that the runner started:

    broker.py STATE start     start it (again, with the same data directory and ports); wait until it is healthy
    broker.py STATE kill      SIGKILL; wait until it has ended
    broker.py STATE stop      SIGTERM; wait; print the exit code; fail if it is not 0
    broker.py STATE status    print "running" or "stopped"

Signals go only to the process whose id is in the state file.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = HERE / ".work"

START_DEADLINE = 30.0
STOP_DEADLINE = 15.0


class BrokerError(Exception):
    """A broker did not start, stop or become healthy."""


def target_dir() -> Path:
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def binary() -> Path:
    """The release binary; JITNEY_BINARY names another."""
    return Path(os.environ.get("JITNEY_BINARY", target_dir() / "release" / "jitney"))


# Below the ports that systems give to outgoing connections: one of these could take a port before its server does.
PORTS = range(10_000, 32_000)


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports on which nothing listens. All are held until all are known, so that they differ."""
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind((host, random.SystemRandom().choice(PORTS)))
            except OSError:
                one.close()
                continue
            held.append(one)
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


class Broker:
    """One broker process, described by its state file."""

    def __init__(self, state_file: Path):
        self.state_file = Path(state_file)
        self._load()

    @classmethod
    def create(
        cls, directory: Path, config: Path | None = None, arguments: list[str] | None = None, host: str = "127.0.0.1",
        ports: tuple[int, int] | None = None, ends_with: int | None = None,
    ) -> "Broker":
        """Describes a broker with its data below `directory`, and on free ports of `host` unless `ports` has the one for AMQP and the one
        for HTTP; does not start it. It is killed when the process `ends_with` has ended."""
        directory = Path(directory).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        amqp, http = ports or free_ports(2, host)
        state = {
            "binary": str(binary()),
            "config": str(config or HERE / "config.json"),
            "data_dir": str(directory / "data"),
            "log": str(directory / "broker.log"),
            "host": host,
            "amqp_port": amqp,
            "http_port": http,
            "arguments": arguments or [],
            "ends_with": ends_with,
            "pid": None,
            "exit_code": None,
        }
        state_file = directory / "broker.json"
        write_json(state_file, state)
        return cls(state_file)

    def _load(self) -> None:
        self.state = json.loads(self.state_file.read_text())

    @property
    def amqp_port(self) -> int:
        return self.state["amqp_port"]

    @property
    def http_port(self) -> int:
        return self.state["http_port"]

    @property
    def host(self) -> str:
        return self.state["host"]

    @property
    def log(self) -> Path:
        return Path(self.state["log"])

    @property
    def connection_string(self) -> str:
        host = "localhost" if self.host == "127.0.0.1" else self.host
        return (
            f"Endpoint=sb://{host}:{self.amqp_port};SharedAccessKeyName=RootManageSharedAccessKey;"
            "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
        )

    def environment(self) -> dict[str, str]:
        """The variables that a suite is given (README.md)."""
        return {
            "JITNEY_CONNECTION_STRING": self.connection_string,
            "JITNEY_AMQP_PORT": str(self.amqp_port),
            "JITNEY_HTTP_PORT": str(self.http_port),
            "JITNEY_BROKER_STATE": str(self.state_file),
            "JITNEY_BROKER_CONTROL": self.control,
        }

    def put_on_a_small_disk(self) -> None:
        """Lets it find its data on a disk of its own, which has room for the files without their zeros, and for a little more: too little
        for a segment. It takes no messages there and is not healthy, so it is launched, not started."""
        data = Path(self.state["data_dir"])
        whole, program = data.with_name("whole"), data.with_name("on-a-small-disk")
        shutil.rmtree(whole, ignore_errors=True)
        data.rename(whole)
        data.mkdir()
        steps = [
            f"mount -t tmpfs -o size=2m tmpfs {data}",
            f"cp -r --sparse=always {whole}/. {data}",
            f"rm -f {data}/spare-*.seg",
            f"exec {self.state['binary']} \"$@\"",
        ]
        program.write_text(f"#!/bin/sh\nexec unshare --map-root-user --mount sh -c '{' && '.join(steps)}' sh \"$@\"\n")
        program.chmod(0o755)
        self.state["binary"] = str(program)
        write_json(self.state_file, self.state)

    @property
    def control(self) -> str:
        """The command that controls this broker, to which a verb is appended. It has no spaces but between its words."""
        return f"{sys.executable} {HERE / 'broker.py'} {self.state_file}"

    def running(self) -> bool:
        self._load()
        return self.state["pid"] is not None and self.state["exit_code"] is None

    def start(self) -> None:
        """Starts the broker and returns when it is healthy."""
        self.launch()
        self._wait(self._healthy, START_DEADLINE, "did not become healthy")

    def launch(self) -> None:
        """Starts the broker and returns when there is a process."""
        if self.running():
            raise BrokerError("it is running already")
        if not Path(self.state["binary"]).is_file():
            raise BrokerError(f"no binary at {self.state['binary']}: run `cargo build --release` first")
        # `keep` has the broker as its child, so that any later process can read the exit code.
        write_json(self.state_file, {**self.state, "pid": None, "exit_code": None})
        subprocess.Popen(
            [sys.executable, str(HERE / "broker.py"), str(self.state_file), "keep"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        self._wait(lambda: self.state["pid"] is not None, START_DEADLINE, "was not started")

    def kill(self) -> None:
        """Ends the process with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ends the process with SIGTERM; returns the exit code."""
        return self._end(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Sends it a signal, and does not wait for what it does."""
        if not self.running():
            raise BrokerError("it is not running")
        os.kill(self.state["pid"], number)

    def finish(self) -> str | None:
        """Stops the broker at the end of a suite; returns what was wrong with it, or None."""
        try:
            if not self.running():
                return f"the broker was gone at the end (exit code {self.state['exit_code']})"
            code = self.stop()
        except BrokerError as error:
            if self.running():
                self.kill()
            return f"broker: {error}"
        panics = [line for line in self.log.read_text(errors="replace").splitlines() if "panicked at" in line]
        if panics:
            return f"the broker panicked: {panics[0]}"
        return f"the broker ended with {code}" if code else None

    def _end(self, number: int) -> int:
        if not self.running():
            raise BrokerError("it is not running")
        with contextlib.suppress(ProcessLookupError):  # It may end at this moment.
            os.kill(self.state["pid"], number)
        self._wait(lambda: not self.running(), STOP_DEADLINE, f"did not end on signal {number}")
        return self.state["exit_code"]

    def _healthy(self) -> bool:
        if self.state["exit_code"] is not None:
            raise BrokerError(f"it ended with {self.state['exit_code']} at start\n{self.log_tail()}")
        try:
            with urllib.request.urlopen(f"http://{self.host}:{self.http_port}/health", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def _wait(self, condition, seconds: float, complaint: str) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._load()
            if condition():
                return
            time.sleep(0.01)
        raise BrokerError(f"it {complaint} within {seconds:.0f} s\n{self.log_tail()}")

    def log_tail(self, lines: int = 20) -> str:
        if not self.log.is_file():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def keep(state_file: Path) -> None:
    """Starts the broker as a child, writes its process id, waits for its end, writes its exit code."""
    state = json.loads(state_file.read_text())
    command = [
        state["binary"], "serve",
        "--config", state["config"],
        "--data-dir", state["data_dir"],
        "--amqp", f"{state['host']}:{state['amqp_port']}",
        "--http", f"{state['host']}:{state['http_port']}",
        *state["arguments"],
    ]
    with open(state["log"], "ab") as log:
        log.write(f"--- {' '.join(command)}\n".encode())
        log.flush()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        state["pid"] = process.pid
        write_json(state_file, state)
        while state["exit_code"] is None:
            try:
                state["exit_code"] = process.wait(None if state["ends_with"] is None else 1)
            except subprocess.TimeoutExpired:
                if not Path(f"/proc/{state['ends_with']}").exists():
                    process.kill()
        if state_file.parent.is_dir():
            write_json(state_file, state)


def write_json(path: Path, value) -> None:
    """Replaces the file atomically."""
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(value, indent=1))
    scratch.replace(path)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    state_file, verb = Path(sys.argv[1]), sys.argv[2]
    try:
        if verb == "keep":
            keep(state_file)
        elif verb == "start":
            Broker(state_file).start()
        elif verb == "kill":
            Broker(state_file).kill()
        elif verb == "stop":
            code = Broker(state_file).stop()
            print(code)
            return 0 if code == 0 else 1
        elif verb == "status":
            print("running" if Broker(state_file).running() else "stopped")
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except BrokerError as error:
        print(f"broker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
