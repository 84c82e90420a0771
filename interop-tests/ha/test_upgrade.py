"""The release before beside this one: a fleet is upgraded server by server under load, and goes back."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from broker import binary, write_json  # fleet.py has made it known
from fleet import Fleet, Server, configuration, wait
from load import QUEUES, Load, patience
from postgres import HERE, Cluster
from test_configuration import RESTART_SECONDS

NAMESPACES = ["one", "two", "three"]


@pytest.fixture(scope="module")
def previous() -> Path:
    """The broker of the release before: it is built when it is first wanted."""
    built = subprocess.run([HERE / "previous"], check=True, stdout=subprocess.PIPE, text=True)
    return Path(built.stdout.strip()).resolve()


def use(server: Server, program: Path) -> None:
    """Lets a server start with a program from now on."""
    write_json(server.broker.state_file, server.broker.state | {"binary": str(program)})


def program_of(server: Server) -> Path:
    """The program that a server runs."""
    return Path(f"/proc/{server.broker.state['pid']}/exe").resolve()


def test_a_fleet_is_upgraded_and_goes_back_under_load(previous: Path, tmp_path: Path) -> None:
    config = configuration(tmp_path / "Config.json", {name: {"Queues": QUEUES} for name in NAMESPACES})
    newest = binary().resolve()
    with Cluster(tmp_path / "postgres", standbys=1) as cluster:
        fleet = Fleet(tmp_path / "fleet", cluster.url(), 3, config)
        for server in fleet.servers:
            use(server, previous)
        upgrade_and_go_back(fleet, [newest, previous, newest], tmp_path)


def upgrade_and_go_back(fleet: Fleet, programs: list[Path], directory: Path) -> None:
    with fleet:
        fleet.wait_owned(*NAMESPACES)
        restarts: list[tuple[str, float, float]] = []
        with Load(directory / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
            load.wait_more(10)
            for program in programs:
                for server in fleet.servers:
                    since = time.monotonic()
                    assert server.stop() == 0, server.broker.log_tail()
                    use(server, program)
                    server.start()
                    assert program_of(server) == program
                    wait(lambda: len(fleet.balancer.well()) == len(fleet.servers), 30, "a server did not become well again")
                    wait(lambda server=server: server.owned(), 30, f"{server} got no namespace with {program}")
                    fleet.wait_owned(*NAMESPACES)
                    load.wait_more(10)
                    restarts.append((f"{server} with {program}", since, time.monotonic()))
            auditor = load.finish()
        assert auditor.violations == []
        for what, since, until in restarts:
            for name in NAMESPACES:
                silence = auditor.silence(name, since, until)
                assert silence is not None and silence < RESTART_SECONDS * patience(), f"{name} was silent for {silence} s at the start of {what}"
        assert fleet.finish() == []
