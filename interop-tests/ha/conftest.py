"""What the tests that have clusters of their own share."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fleet import configuration
from loads import ALL_QUEUES
from postgres import Cluster
from broker import binary  # fleet.py has made it known

NAMESPACES = ["n1", "n2", "n3", "n4"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes a minute or more, or much of the machine")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A Config.json with the namespaces of NAMESPACES, which the loads of all SDKs can use."""
    return configuration(tmp_path / "Config.json", {name: {"Queues": ALL_QUEUES} for name in NAMESPACES})


def store(cluster: Cluster, *words: object, code: int = 0) -> str:
    """Runs `jitney store`; returns what it says."""
    verb, *rest = map(str, words)
    done = subprocess.run([binary(), "store", verb, "--store", cluster.url(), *rest], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr
