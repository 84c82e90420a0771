"""The tree of a Debian system, in which packages are installed and the unit's command runs."""

from __future__ import annotations

import configparser
import shlex
import shutil
import signal
import socket
import subprocess
from pathlib import Path

UNIT = "jitney.service"
# Where units are: Debian's place, and the others'.
UNIT_PLACES = ("lib/systemd/system", "usr/lib/systemd/system")
PATIENCE = 60.0


class Unit(configparser.RawConfigParser):
    """A unit. Of a key that is there several times, the last value counts."""

    def __init__(self, file: Path):
        super().__init__(strict=False, delimiters=("=",), interpolation=None)
        self.optionxform = str
        self.read(file)
        self.service = self["Service"]


class System:
    def __init__(self, base: Path, root: Path):
        """A copy of a tree."""
        self.root = root
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "--archive", "--reflink=auto", base, root], check=True)
        self.process: subprocess.Popen | None = None
        self.manager: socket.socket | None = None

    def run(self, *command: object, expected: int = 0) -> str:
        """Runs a command in the tree; returns what it said."""
        done = subprocess.run(
            ["chroot", self.root, *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=300, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        )
        assert done.returncode == expected, f"{command} ended with {done.returncode}\n{done.stdout}"
        return done.stdout

    def bring(self, file: Path) -> str:
        """Copies a file into the tree; returns its path there."""
        shutil.copy(file, self.root / "tmp")
        return f"/tmp/{file.name}"

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")

    @property
    def unit(self) -> Unit:
        return Unit(next(file for place in UNIT_PLACES if (file := self.path(place) / UNIT).exists()))

    def start(self) -> None:
        """Does what systemd does with the unit: its directory, user, variables and command; waits until it is ready."""
        service = self.unit.service
        user = int(self.run("id", "-u", service["User"]))
        group = int(self.run("id", "-g", service["Group"]))
        state = self.path("/var/lib") / service["StateDirectory"]
        state.mkdir(exist_ok=True)
        state.chmod(int(service["StateDirectoryMode"], 8))
        shutil.chown(state, user, group)
        notify = state / "notify"
        notify.unlink(missing_ok=True)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(notify))
        shutil.chown(notify, user, group)
        self.manager.settimeout(PATIENCE)
        environment = dict(each.split("=", 1) for each in shlex.split(service["Environment"]))
        for line in self.path(service["EnvironmentFile"].lstrip("-")).read_text().splitlines():
            if line and not line.startswith("#"):
                name, value = line.split("=", 1)
                environment[name] = value
        environment["NOTIFY_SOCKET"] = f"/var/lib/{service['StateDirectory']}/notify"
        with (self.root / "tmp/broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [shutil.which("chroot"), f"--userspec={user}:{group}", "--groups=", self.root, *shlex.split(service["ExecStart"])],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, umask=int(service["UMask"], 8),
            )
        assert self.told() == "READY=1", self.log()

    def told(self) -> str:
        """What the service manager is told next."""
        try:
            return self.manager.recv(4096).decode()
        except TimeoutError:
            raise AssertionError(f"the broker told nothing\n{self.log()}") from None

    def log(self) -> str:
        return (self.root / "tmp/broker.log").read_text(errors="replace")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.told() == "STOPPING=1", self.log()
        code = self.process.wait(PATIENCE)
        assert code == 0, f"it ended with {code}\n{self.log()}"
        self.close()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.manager is not None:
            self.manager.close()

