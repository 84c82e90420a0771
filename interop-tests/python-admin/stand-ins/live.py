"""A plugin of pytest: the fixture that the tests' own conftest asks for, and coroutines as tests."""

import pytest


@pytest.fixture(scope="session")
def test_proxy():
    """There is none."""
