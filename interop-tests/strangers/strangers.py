"""Strangers at the doors of a broker that verifies keys: what they send is nonsense, or too much, or nothing at all.

Every test ends with the same two questions: is the broker well, and what did it cost? It needs nothing but the standard library, for
a stranger speaks no client library's AMQP.
"""

from __future__ import annotations

import os
import random
import socket
import ssl
import struct
import sys
import time
import traceback
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from broker import Broker  # noqa: E402

# A stranger's time to prove a right (limits::ADMISSION_DEADLINE), and what a busy machine adds.
ADMISSION, SLACK = 20.0, 12.0
# limits::VISITS_PER_ADDRESS_MAX
VISITS = 1_000
MEGABYTE = 1024 * 1024

SASL_HEADER, AMQP_HEADER = b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00"


# --- AMQP by hand -----------------------------------------------------------------------------------------------------------------


def string(text: str) -> bytes:
    data = text.encode()
    return b"\xb1" + struct.pack(">I", len(data)) + data


def composite(code: int, *fields: bytes) -> bytes:
    body = b"".join(fields)
    return b"\x00\x53" + bytes([code]) + b"\xd0" + struct.pack(">II", len(body) + 4, len(fields)) + body


def uint(number: int) -> bytes:
    return b"\x70" + struct.pack(">I", number)


NULL, TRUE, FALSE = b"\x40", b"\x41", b"\x42"


def frame(body: bytes, kind: int = 0, channel: int = 0) -> bytes:
    return struct.pack(">IBBH", len(body) + 8, 2, kind, channel) + body


def opened() -> bytes:
    """All that comes before a link: ANONYMOUS, open, begin."""
    init = frame(composite(0x41, b"\xa3\x09ANONYMOUS", b"\xa0\x00"), kind=1)
    open_ = frame(composite(0x10, string("stranger"), string("localhost"), uint(65_536)))
    begin = frame(composite(0x11, NULL, uint(0), uint(65_536), uint(65_536)))
    return SASL_HEADER + init + AMQP_HEADER + open_ + begin


def attach(handle: int, address: str, padding: int = 0) -> bytes:
    source = composite(0x28, string("x" * padding)) if padding else NULL
    target = composite(0x29, string(address))
    return frame(composite(0x12, string(f"link {handle}"), uint(handle), FALSE, b"\x50\x02", b"\x50\x00", source, target, NULL, NULL, uint(0)))


def transfer(number: int, payload: bytes) -> bytes:
    return frame(composite(0x14, uint(0), uint(number), b"\xa0\x04" + struct.pack(">I", number), uint(0), FALSE, FALSE) + payload)


# --- the broker -------------------------------------------------------------------------------------------------------------------


class Doors:
    """The broker, and what is known of it from outside."""

    def __init__(self, broker: Broker):
        self.broker = broker
        self.port = broker.amqp_port

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=ADMISSION + SLACK)

    def check_well(self) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.broker.http_port}/health", timeout=10) as answer:
            assert answer.status == 200, answer.status

    def memory(self) -> int:
        """What the process has in memory, bytes."""
        pages = Path(f"/proc/{self.broker.state['pid']}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


def until_closed(peer: socket.socket) -> tuple[bytes, float]:
    """What the broker says before it closes, and how long that takes."""
    began, said = time.monotonic(), b""
    try:
        while data := peer.recv(65_536):
            said += data
    except ConnectionError:
        pass
    return said, time.monotonic() - began


def push(peer: socket.socket, data: bytes) -> None:
    """Sends as much as the broker takes."""
    try:
        peer.sendall(data)
    except (ConnectionError, TimeoutError):
        pass


# --- tests ------------------------------------------------------------------------------------------------------------------------


def silent_peers_are_closed_whatever_they_have_said(doors: Doors) -> None:
    beginnings = {
        "nothing": b"",
        "a byte": b"A",
        "a header": SASL_HEADER,
        "an open without a token": opened(),
        "a link to $cbs": opened() + attach(0, "$cbs"),
        "half a ClientHello": b"\x16\x03\x01\x02\x00\x01",
        "half a request": b"GET /hea",
        "half a head": b"GET /health HTTP/1.1\r\nHost: localhost\r\n",
        "a body that does not come": b"PUT /q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n<",
    }
    peers = []
    for name, said in beginnings.items():
        peer = doors.connect()
        peer.sendall(said)
        peers.append((name, peer))
    began = time.monotonic()
    for name, peer in peers:
        until_closed(peer)
        took = time.monotonic() - began
        assert took < ADMISSION + SLACK, f"{name}: closed after {took:.1f} s"
    # Nobody had to wait for them.
    doors.check_well()


def a_connection_that_only_asks_for_health_is_a_stranger_too(doors: Doors) -> None:
    peer, began = doors.connect(), time.monotonic()
    try:
        while time.monotonic() - began < ADMISSION + SLACK:
            peer.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if not peer.recv(65_536):
                break
            time.sleep(0.5)
    except ConnectionError:
        pass
    took = time.monotonic() - began
    assert took < ADMISSION + SLACK, "it may ask for ever"


def the_next_of_one_address_wait_and_others_come_in(doors: Doors) -> None:
    peers = [doors.connect() for _ in range(VISITS)]
    try:
        # At the address of AMQP: who asks for health at its own address waits for none of them.
        doors.check_well()
        late = doors.connect()
        late.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        # Another machine: another address of the loopback network.
        other = socket.create_connection(("127.0.0.1", doors.port), timeout=10, source_address=("127.0.0.77", 0))
        other.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        assert b"200 OK" in until_closed(other)[0], "another address is turned away"
        late.settimeout(0.5)
        try:
            said = late.recv(1)
            raise AssertionError(f"there was a place for one more: {said!r}")
        except TimeoutError:
            pass
    finally:
        for peer in peers:
            peer.close()
    late.settimeout(ADMISSION + SLACK)
    assert b"200 OK" in until_closed(late)[0], "its turn did not come"


def requests_to_cbs_take_little_memory(doors: Doors) -> None:
    properties = composite(0x73, string("1"))
    pairs = [string("operation"), string("put-token"), string("type"), string("jwt"), string("name"), string("sb://h/q")]
    body = b"".join(pairs)
    application = b"\x00\x53\x74\xd1" + struct.pack(">II", len(body) + 4, len(pairs)) + body
    elements = 60_000
    # A list of empty lists, a byte each: what is decoded of it takes a hundred times that.
    value = b"\x00\x53\x77\xd0" + struct.pack(">II", elements + 4, elements) + b"\x45" * elements
    message = properties + application + value
    before = doors.memory()
    peers = [doors.connect() for _ in range(20)]
    for peer in peers:
        push(peer, opened() + attach(0, "$cbs"))
        for number in range(60):
            push(peer, transfer(number, message))
    doors.check_well()
    grown = doors.memory() - before
    assert grown < 200 * MEGABYTE, f"{grown / MEGABYTE:.0f} MiB for {len(peers)} strangers"
    for peer in peers:
        peer.close()


def links_that_are_refused_take_little_memory(doors: Doors) -> None:
    before = doors.memory()
    peers = [doors.connect() for _ in range(5)]
    for peer in peers:
        push(peer, opened())
        for handle in range(4_000):
            push(peer, attach(handle, "secret", padding=50_000))
            if peer.fileno() < 0:
                break
    doors.check_well()
    grown = doors.memory() - before
    assert grown < 100 * MEGABYTE, f"{grown / MEGABYTE:.0f} MiB for {len(peers)} strangers"
    for peer in peers:
        peer.close()


def noise_is_answered_or_closed_and_does_no_harm(doors: Doors) -> None:
    dice = random.Random(7)
    seeds = [b"", b"A", SASL_HEADER, opened(), b"\x16\x03\x01\x00\xff", b"GET / HTTP/1.1\r\n", b"PUT /q HTTP/1.1\r\nHost: h\r\n\r\n", b"{"]
    for round_ in range(300):
        peer = doors.connect()
        push(peer, dice.choice(seeds) + dice.randbytes(dice.randrange(2_000)))
        peer.close()
    doors.check_well()


def exchange(doors: Doors, request: bytes) -> bytes:
    peer = doors.connect()
    push(peer, request)
    return until_closed(peer)[0]


def hostile_http_is_refused_with_a_status(doors: Doors) -> None:
    close = b"Connection: close\r\n"
    cases = [
        (b"GET /q HTTP/1.1\r\nHost: h\r\n" + close + b"\r\n", b" 401 "),
        (b"GET /$Resources/queues HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer a.b.c\r\n" + close + b"\r\n", b" 401 "),
        (b"GET /q HTTP/1.1\r\nHost: h\r\nAuthorization: SharedAccessSignature sr=&sig=&se=&skn=\r\n" + close + b"\r\n", b" 401 "),
        (b"GET /%ff%fe/..%2f..%2fetc HTTP/1.1\r\nHost: h\r\n" + close + b"\r\n", b" 40"),
        (b"BREW /q HTTP/1.1\r\nHost: h\r\n" + close + b"\r\n", b" 40"),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n", b" 4"),
        (b"GET /q HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", b" 4"),
        (b"GET /q HTTP/1.1\r\nHost: h\r\n" + b"X: a\r\n" * 5_000 + b"\r\n", b" 4"),
        (b"GET /$servicebus/websocket HTTP/1.1\r\nHost: h\r\n" + close + b"\r\n", b" 4"),
        (b"\x00\x01\x02", b"AMQP"),
    ]
    for request, status in cases:
        said = exchange(doors, request)
        assert status in said[:40], f"{request[:60]!r}: {said[:200]!r}"
        assert b"panic" not in said
    doors.check_well()


def tls_does_not_hold_anybody_up(doors: Doors) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for garbage in [b"\x16\x03\x01" + os.urandom(500), b"\x16" * 70_000, b"\x16\x03\x03\x00\x01\x01"]:
        exchange(doors, garbage)
    with context.wrap_socket(doors.connect(), server_hostname="localhost") as inside:
        # TLS within TLS is none.
        inside.sendall(b"\x16\x03\x01\x02\x00")
        until_closed(inside)
    doors.check_well()


def the_log_stays_short(doors: Doors) -> None:
    before = doors.broker.log.stat().st_size
    peer = doors.connect()
    for _ in range(50):
        push(peer, b"GET /" + b"p" * 30_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n")
    peer.shutdown(socket.SHUT_WR)
    until_closed(peer)
    grown = doors.broker.log.stat().st_size - before
    assert grown < 50 * 1024, f"{grown} bytes of log"


TESTS = [
    hostile_http_is_refused_with_a_status,
    tls_does_not_hold_anybody_up,
    noise_is_answered_or_closed_and_does_no_harm,
    the_log_stays_short,
    requests_to_cbs_take_little_memory,
    links_that_are_refused_take_little_memory,
    the_next_of_one_address_wait_and_others_come_in,
    a_connection_that_only_asks_for_health_is_a_stranger_too,
    silent_peers_are_closed_whatever_they_have_said,
]


def main() -> int:
    work = Path(os.environ.get("JITNEY_WORK", Path(__file__).parent / ".work"))
    broker = Broker.create(work / "guarded", arguments=["--auth", "sas", "--amqps", "127.0.0.1:0"])
    broker.start()
    passed = failed = 0
    try:
        for test in TESTS:
            began = time.monotonic()
            try:
                test(Doors(broker))
                passed += 1
                print(f"ok      {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED  {test.__name__}\n{traceback.format_exc()}", flush=True)
    finally:
        code = broker.stop() if broker.running() else broker.state["exit_code"]
    if code != 0 or "panicked at" in broker.log.read_text(errors="replace"):
        failed += 1
        print(f"FAILED  the broker ended with {code}\n{broker.log_tail()}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
