"""A container without an engine: the image alone in a tree of files, as process 1, in a network and a table of processes of its own."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from broker import ROOT, binary  # noqa: E402

CONFIG = "ServiceBus_Emulator/ConfigFiles/Config.json"
READY = "Emulator Service is Successfully Up!"


class CellError(Exception):
    """The broker in the cell did not do what was expected of it."""


class Image:
    """An image as `docker load` takes it: its files, and what it says of itself."""

    def __init__(self, file: Path):
        self.file = file
        with tarfile.open(file) as archive:
            def read(name: str) -> dict | list:
                return json.load(archive.extractfile(name))

            manifest, = read("manifest.json")
            self.layers = manifest["Layers"]
            self.config = read(manifest["Config"])["config"]

    @property
    def command(self) -> list[str]:
        return self.config["Entrypoint"] + self.config["Cmd"]

    @property
    def environment(self) -> dict[str, str]:
        return dict(each.split("=", 1) for each in self.config["Env"])

    def unpack(self, root: Path) -> None:
        """Writes its files, with their owners. A binary that is not static gets its libraries."""
        with tarfile.open(self.file) as archive:
            for layer in self.layers:
                with tarfile.open(fileobj=archive.extractfile(layer)) as files:
                    files.extractall(root, numeric_owner=True, filter="tar")
        program = root / self.config["Entrypoint"][0].lstrip("/")
        told = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
        for library in re.findall(r"(/\S+) \(0x", told):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)


@functools.cache
def image() -> Image:
    """The image that JITNEY_IMAGE names, or one of the binary under test."""
    if named := os.environ.get("JITNEY_IMAGE"):
        return Image(Path(named))
    directory = Path(tempfile.mkdtemp(prefix="jitney-image-"))
    atexit.register(shutil.rmtree, directory)
    file, notices = directory / "image.tar", directory / "licences.txt"
    notices.write_text("An image of a test.\n")
    command = [sys.executable, ROOT / "packaging/image.py", file, "0.0.0", notices, f"amd64={binary()}"]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "0"})
    return Image(file)


class Cell:
    def __init__(self, directory: Path, environment: dict[str, str], config: str | None = None, *, has_init: bool = False):
        self.image = image()
        self.has_init = has_init
        self.root = directory / "root"
        self.log = directory / "log"
        self.environment = {**self.image.environment, **environment}
        self.process: subprocess.Popen | None = None
        self.forwarder: subprocess.Popen | None = None
        self.listeners: dict[int, socket.socket] = {}
        self.image.unpack(self.root)
        # As an engine makes it.
        (self.root / "proc").mkdir()
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
                    sys.executable, HERE / "inside.py", self.root, self.image.config["User"], "init" if self.has_init else "",
                    json.dumps(self.environment), *self.image.command,
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

    def execute(self, command: list[str], **environment: str) -> subprocess.CompletedProcess:
        """As `docker exec` does."""
        user, group = self.image.config["User"].split(":")
        return subprocess.run(
            [
                shutil.which("nsenter"), f"--target={self.first()}", "--net", "--mount", "--pid", "--root", "--wd", f"--setgid={group}",
                f"--setuid={user}", "--", *command,
            ],
            capture_output=True, text=True, timeout=60, env={**self.environment, **environment},
        )

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
