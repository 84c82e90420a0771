"""Tests of proxy.py, fleet.py and load.py themselves, with a single server that has a data directory."""

from __future__ import annotations

import shutil
import socket
import struct
import time
from pathlib import Path

import pytest

from fleet import Fleet, configuration, wait
from load import QUEUES, Load
from proxy import SIGNATURE, Balancer, Proxy

NAMESPACES = ["one", "two"]


class Echo:
    """Listens, and sends one connection back what it sends."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()

    def accept(self) -> socket.socket:
        self.listener.settimeout(5)
        accepted = self.listener.accept()[0]
        accepted.settimeout(5)
        return accepted


def connected(proxy: Proxy, echo: Echo) -> tuple[socket.socket, socket.socket]:
    near = socket.create_connection(proxy.address, 5)
    return near, echo.accept()


def is_silent(end: socket.socket) -> bool:
    end.settimeout(0.3)
    try:
        end.recv(1)
    except TimeoutError:
        return True
    finally:
        end.settimeout(5)
    return False


def test_a_held_network_loses_nothing_in_the_end() -> None:
    echo = Echo()
    proxy = Proxy(echo.address)
    near, far = connected(proxy, echo)
    near.sendall(b"a")
    assert far.recv(10) == b"a"
    proxy.hold()
    near.sendall(b"b")
    assert is_silent(far)
    # A new connection is not refused, and reaches nothing.
    other = socket.create_connection(proxy.address, 5)
    assert is_silent(other)
    # Nor does an end pass.
    far.close()
    assert is_silent(near)
    proxy.release()
    assert has_ended(near)
    assert echo.accept()


def has_ended(end: socket.socket) -> bool:
    """Returns whether the connection ends, in order or with a reset."""
    try:
        return end.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_cut_resets_and_an_address_can_lead_elsewhere() -> None:
    first, second = Echo(), Echo()
    proxy = Proxy(first.address)
    near, _ = connected(proxy, first)
    proxy.point(second.address)
    with pytest.raises(ConnectionResetError):
        near.recv(1)
    near, far = connected(proxy, second)
    proxy.point(first.address, cut=False)
    near.sendall(b"x")
    assert far.recv(1) == b"x"
    connected(proxy, first)
    proxy.down()
    with pytest.raises(ConnectionResetError):
        near.recv(1)
    assert has_ended(socket.create_connection(proxy.address, 5))


def test_a_slow_network_takes_its_time() -> None:
    echo = Echo()
    proxy = Proxy(echo.address)
    near, far = connected(proxy, echo)
    proxy.slow(100_000)
    began, count = time.monotonic(), 0
    near.sendall(bytes(50_000))
    while count < 50_000:
        count += len(far.recv(65_536))
    assert 0.4 < time.monotonic() - began < 3


def test_a_balancer_takes_turns_skips_who_is_away_and_tells_the_address() -> None:
    echoes = [Echo(), Echo()]
    away = socket.create_server(("127.0.0.1", 0))
    balancer = Balancer([(away.getsockname(), None), *((echo.address, None) for echo in echoes)], proxy_protocol=True)
    away.close()
    for echo in [*echoes, *echoes]:
        near, far = connected(balancer, echo)
        header = far.recv(28)
        assert header[:12] == SIGNATURE and header[12:16] == b"\x21\x11\0\x0c"
        assert socket.inet_ntoa(header[16:20]) == "127.0.0.1"
        assert struct.unpack(">HH", header[24:]) == (near.getsockname()[1], balancer.port)


@pytest.fixture
def fleet(tmp_path: Path):
    config = configuration(tmp_path / "Config.json", {name: {"Queues": QUEUES} for name in NAMESPACES})
    with Fleet(tmp_path, None, 1, config) as made:
        yield made


def test_a_server_that_keeps_its_word_passes_the_audit(fleet: Fleet, tmp_path: Path) -> None:
    server = fleet.servers[0]
    with Load(tmp_path / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
        load.wait_more(20)
        server.kill()
        wait(lambda: not fleet.balancer.well(), 10, "the balancer did not notice")
        server.start()
        load.wait_more(20)
        since = time.monotonic()
        server.freeze()
        wait(lambda: not fleet.balancer.well(), 10, "the balancer did not notice")
        server.thaw()
        load.wait_more(20)
        until = time.monotonic()
        server.cut_off()
        wait(lambda: not fleet.balancer.well(), 10, "the balancer did not notice")
        server.join()
        load.wait_more(20)
        assert server.stop() == 0
        server.start()
        load.wait_more(20)
        auditor = load.finish()
    assert auditor.violations == []
    assert all(0.5 < auditor.silence(name, since, until) < 10 for name in NAMESPACES)
    assert fleet.finish() == []


def test_a_server_that_forgets_does_not(fleet: Fleet, tmp_path: Path) -> None:
    server = fleet.servers[0]
    with Load(tmp_path / "journal", f"127.0.0.1:{fleet.balancer.port}", NAMESPACES) as load:
        load.wait_more(50)
        server.kill()
        shutil.rmtree(server.broker.state["data_dir"])
        server.start()
        load.wait_more(50)
        auditor = load.finish()
    assert any("belongs to" in violation for violation in auditor.violations)
