"""What the tests that have clusters of their own share."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet import configuration
from load import QUEUES

NAMESPACES = ["n1", "n2", "n3", "n4"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes a minute or more, or much of the machine")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A Config.json with the namespaces of NAMESPACES, which the load can use."""
    return configuration(tmp_path / "Config.json", {name: {"Queues": QUEUES} for name in NAMESPACES})
