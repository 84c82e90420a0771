"""PgBouncer before a cluster, as Debian has it. It is unpacked inside this directory, and nothing of the system is changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from broker import free_ports
from postgres import HERE, ROLE, Cluster, give, unprivileged, wait

# With the libraries that it needs beside those of every Debian.
PACKAGES = ["pgbouncer", "libevent-2.1-7", "libc-ares2"]
UNPACKED = HERE / "target" / "pooler"


class PoolerError(Exception):
    """PgBouncer could not be installed or started."""


def install() -> None:
    """Downloads and unpacks it; does nothing if it is there."""
    mark, wanted = UNPACKED / "made", hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()
    if mark.is_file() and mark.read_text() == wanted:
        return
    shutil.rmtree(UNPACKED, ignore_errors=True)
    UNPACKED.mkdir(parents=True)
    if subprocess.run(["apt-get", "download", "--quiet=2", *PACKAGES], cwd=UNPACKED, check=False).returncode != 0:
        # The lists of packages may be old, or none.
        subprocess.run(["apt-get", "update", "--quiet=2"], check=False)
        if subprocess.run(["apt-get", "download", "--quiet=2", *PACKAGES], cwd=UNPACKED, check=False).returncode != 0:
            raise PoolerError(f"apt-get cannot download {', '.join(PACKAGES)}: these tests need Debian's packages")
    for package in UNPACKED.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, UNPACKED], check=True)
        package.unlink()
    mark.write_text(wanted)


class Pooler:
    """PgBouncer for the role's database, with a mode of pooling. With `turns`, it uses its sessions of the database in turns; usually it
    uses the one first that was used last."""

    def __init__(self, directory: Path, cluster: Cluster, mode: str, turns: bool = False):
        self.directory, self.cluster = Path(directory), cluster
        self.address = "127.0.0.1", free_ports(1)[0]
        self.log = self.directory / "pgbouncer.log"
        self.process: subprocess.Popen | None = None
        host, port = cluster.address.address
        self.settings = {
            "listen_addr": self.address[0], "listen_port": self.address[1], "unix_socket_dir": "", "pool_mode": mode, "auth_type": "scram-sha-256",
            "auth_file": self.directory / "users", "logfile": self.log, "default_pool_size": 40, "server_round_robin": int(turns),
            # What a client sets as it connects is not for the pooler.
            "ignore_startup_parameters": "extra_float_digits,options",
        }
        self.database = f"host={host} port={port} dbname={ROLE} user={ROLE} password={cluster.password}"

    def __enter__(self) -> Pooler:
        install()
        self.directory.mkdir(parents=True)
        (self.directory / "users").write_text(f'"{ROLE}" "{self.cluster.password}"\n')
        lines = ["[databases]", f"{ROLE} = {self.database}", "[pgbouncer]", *(f"{name} = {value}" for name, value in self.settings.items())]
        (self.directory / "pgbouncer.ini").write_text("\n".join(lines) + "\n")
        for path in [self.directory, *self.directory.iterdir()]:
            give(path)
        library = UNPACKED / "usr/lib" / f"{os.uname().machine}-linux-gnu"
        program = UNPACKED / "usr/sbin/pgbouncer"
        self.process = subprocess.Popen(
            unprivileged([program, "--quiet", self.directory / "pgbouncer.ini"]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "LD_LIBRARY_PATH": str(library)},
        )
        wait(self.is_ready, 20, "PgBouncer took no connection")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise PoolerError(f"PgBouncer ended with {self.process.returncode}\n{self.log.read_text() if self.log.is_file() else ''}")
        with self.cluster.connect(host=self.address[0], port=self.address[1]):
            return True
