"""A container without an engine: the release binary alone in a tree of files, as process 1, in a network and a table of processes of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from broker import binary  # noqa: E402

# What an image of the broker has as its entry point, whatever it is told besides.
ENTRY = [
    "/usr/bin/jitney", "serve", "--amqp", "0.0.0.0:5672", "--http", "0.0.0.0:5300", "--data-dir", "/data", "--allow-any-key-beyond-loopback",
]
# Nobody in particular, as images should run.
USER = 65532
CONFIG = "ServiceBus_Emulator/ConfigFiles/Config.json"
READY = "Emulator Service is Successfully Up!"


class CellError(Exception):
    """The broker in the cell did not do what was expected of it."""


def libraries(program: Path) -> list[Path]:
    told = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return [Path(found) for found in re.findall(r"(/\S+) \(0x", told)]


class Cell:
    def __init__(self, directory: Path, environment: dict[str, str], config: str | None = None):
        self.root = directory / "root"
        self.log = directory / "log"
        self.environment = environment
        self.process: subprocess.Popen | None = None
        self.forwarder: subprocess.Popen | None = None
        self.listeners: dict[int, socket.socket] = {}
        for name in ("usr/bin", "proc", "tmp", "data", "ServiceBus_Emulator/ConfigFiles"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(binary(), self.root / "usr/bin/jitney")
        for library in libraries(binary()):
            target = self.root / str(library).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
        for name in ("data", "tmp"):
            shutil.chown(self.root / name, USER, USER)
        if config is not None:
            self.configure(config)

    def configure(self, config: str) -> None:
        """Copies the file to where Testcontainers copies it."""
        (self.root / CONFIG).write_text(config)
        (self.root / CONFIG).chmod(0o644)

    def start(self, *ports: int) -> None:
        """Starts it and publishes ports; does not wait for anything."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={self.root / 'proc'}",
                    sys.executable, HERE / "inside.py", self.root, str(USER), json.dumps(self.environment), *ENTRY,
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        first = self.wait(self.first, "there is no process 1")
        for port in ports:
            if port not in self.listeners:
                self.listeners[port] = socket.create_server(("127.0.0.1", 0), backlog=64)
        outside = {listener.fileno(): port for port, listener in self.listeners.items()}
        self.forwarder = subprocess.Popen(
            ["nsenter", f"--net=/proc/{first}/ns/net", sys.executable, HERE / "ports.py", *(f"{fd}:{port}" for fd, port in outside.items())],
            stdin=subprocess.DEVNULL, pass_fds=outside,
        )

    def first(self) -> int | None:
        """The id, out here, of what is process 1 in there."""
        try:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        except FileNotFoundError:
            raise CellError(f"it ended at once\n{self.told()}") from None
        return int(children[0]) if children else None

    def published(self, port: int) -> int:
        return self.listeners[port].getsockname()[1]

    def told(self) -> str:
        return self.log.read_text(errors="replace")

    def wait(self, condition, complaint: str, seconds: float = 60):
        deadline = time.monotonic() + seconds
        while True:
            if found := condition():
                return found
            if self.process.poll() is not None:
                raise CellError(f"{complaint}: it ended with {self.process.returncode}\n{self.told()}")
            if time.monotonic() > deadline:
                raise CellError(f"{complaint}: not within {seconds:.0f} s\n{self.told()}")
            time.sleep(0.02)

    def wait_for_log(self, times: int = 1) -> None:
        """As Testcontainers for Java does, and .NET did."""
        self.wait(lambda: self.told().count(READY) >= times, "the line that tells that it is ready")

    def end(self, number: int = signal.SIGTERM, seconds: float = 20) -> int:
        """As `docker stop` does, or `docker kill`."""
        os.kill(self.first(), number)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise CellError(f"it has not ended {seconds:.0f} s after {signal.Signals(number).name}\n{self.told()}") from None
        finally:
            self.close()
        return code

    def close(self) -> None:
        # The broker has changed its user, so the end of `unshare` does not end it.
        if self.process is not None and self.process.poll() is None and (first := self.first()):
            os.kill(first, signal.SIGKILL)
            self.process.wait()
        for each in (self.forwarder, self.process):
            if each is not None and each.poll() is None:
                each.kill()
                each.wait()
