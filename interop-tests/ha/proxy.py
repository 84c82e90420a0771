"""TCP proxies on loopback: the networks between clients, servers and databases, whose faults a test decides.

    Proxy       one address that leads to one target: a network that can be cut, held or slow, and an address that can lead elsewhere
    Balancer    one address that leads to several targets in turn: the balancer in front of a fleet

All proxies of a process share one thread. Their methods may be called from any other thread.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

Address = tuple[str, int]

CHUNK = 64 * 1024
# How many of them may be on a long way.
WAY_CHUNKS = 256
# How much of the time that a slow network was idle may be used later.
LATE_SECONDS = 0.1
# How long a target may take to accept a connection.
CONNECT_SECONDS = 1.0
# How often a balancer asks whether a server is well, and how long the answer may take: longer on a machine with other work.
CHECK_SECONDS = 0.25
CHECK_DEADLINE = 0.5 * max(1.0, float(os.environ.get("JITNEY_PATIENCE", 1)))
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


class Loop:
    """The event loop of all proxies, in a thread that ends with the process."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="proxies", daemon=True).start()

    def run(self, awaitable: Awaitable) -> object:
        async def awaited() -> object:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(awaited(), self.loop).result(30)

    def call(self, function: Callable, *arguments: object) -> object:
        async def called() -> object:
            return function(*arguments)

        return self.run(called())


_loop: Loop | None = None
_making = threading.Lock()


def loop() -> Loop:
    global _loop
    with _making:
        _loop = _loop or Loop()
    return _loop


@dataclass(eq=False)
class Passage:
    """One connection, and the one to the target behind it, if there is one yet."""

    near: asyncio.StreamWriter
    target: Address | None = None
    far: asyncio.StreamWriter | None = None

    def abort(self) -> None:
        """Resets both connections."""
        for writer in filter(None, (self.near, self.far)):
            sock = writer.get_extra_info("socket")
            if sock is not None and sock.fileno() != -1:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Proxy:
    def __init__(self, target: Address | None = None, listen: Address = ("127.0.0.1", 0)):
        self.target = target
        self.passages: set[Passage] = set()
        self._refuses = False
        # Bytes a second in each direction of a connection; None means no limit.
        self._rate: int | None = None
        # How long bytes take in each direction.
        self._delay = 0.0
        self._open = asyncio.Event()
        self._open.set()
        self._server = loop().run(asyncio.start_server(self._take, *listen, backlog=512))
        self.address: Address = self._server.sockets[0].getsockname()[:2]

    @property
    def port(self) -> int:
        return self.address[1]

    def point(self, target: Address | None, cut: bool = True) -> None:
        """Leads new connections to another target, and resets the others, as a cluster manager's address does after a promotion. Without
        `cut` the others stay: connections to a former primary that is still there."""
        self.target = target
        if cut:
            self.cut()

    def cut(self) -> int:
        """Resets every connection; new ones are accepted. Returns how many there were."""
        return loop().call(self._abort, lambda passage: True)

    def hold(self) -> None:
        """Stops traffic in both directions, on old and new connections, which stay open: a network that loses every packet."""
        loop().call(self._open.clear)

    def release(self) -> None:
        """Ends `hold`: what was sent meanwhile arrives, as TCP repeats what was lost."""
        loop().call(self._open.set)

    def down(self) -> None:
        """Resets every connection, and every new one at once."""
        self._refuses = True
        self.cut()

    def up(self) -> None:
        """Ends `down`."""
        self._refuses = False

    def slow(self, rate: int | None) -> None:
        """Lets so many bytes a second pass in each direction of a connection; None ends this."""
        self._rate = rate

    def delay(self, seconds: float) -> None:
        """Lets bytes take so long in each direction: a long way, on which no bytes are lost, and many are on their way at a time."""
        self._delay = seconds

    def close(self) -> None:
        """Stops listening, and resets every connection."""
        loop().call(self._server.close)
        self.cut()

    def _abort(self, chosen: Callable[[Passage], bool]) -> int:
        found = [passage for passage in self.passages if chosen(passage)]
        for passage in found:
            passage.abort()
        return len(found)

    async def _connect(self) -> tuple[Address, asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connects to the target."""
        target = self.target
        if target is None:
            return None
        try:
            return target, *await asyncio.wait_for(asyncio.open_connection(*target), CONNECT_SECONDS)
        except (OSError, asyncio.TimeoutError):
            return None

    def _greeting(self, near: asyncio.StreamWriter) -> bytes:
        """What the target is sent before the client's bytes."""
        return b""

    def passing(self, data: bytes) -> bytes:
        """What is passed on of some bytes: all, unless a test changes them."""
        return data

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passage = Passage(writer)
        self.passages.add(passage)
        tasks = []
        try:
            await self._open.wait()
            connected = None if self._refuses else await self._connect()
            if connected is None or self._refuses:
                passage.abort()
                return
            passage.target, far, passage.far = connected
            passage.far.write(self._greeting(writer))
            tasks = [asyncio.ensure_future(self._carry(*each)) for each in ((reader, passage.far), (far, writer))]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.passages.discard(passage)
            for task in tasks:
                task.cancel()
            # What was written before is sent.
            for each in filter(None, (writer, passage.far)):
                each.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # When the next bytes may pass, if the network is slow. A sleep that took longer than it was to take is made up for.
        due = 0.0
        way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAY_CHUNKS)
        arriving = asyncio.ensure_future(self._arrive(way, writer))
        try:
            while data := await reader.read(CHUNK if self._rate is None else max(1, min(CHUNK, self._rate // 50))):
                await self._open.wait()
                if self._rate is not None:
                    now = asyncio.get_running_loop().time()
                    due = max(due, now - LATE_SECONDS) + len(data) / self._rate
                    await asyncio.sleep(due - now)
                if self._delay or not way.empty():
                    await way.put((asyncio.get_running_loop().time() + self._delay, data))
                    continue
                writer.write(self.passing(data))
                await writer.drain()
            await way.join()
        except OSError:
            pass
        finally:
            arriving.cancel()
        # The end of a connection does not pass a network that loses every packet either.
        await self._open.wait()

    async def _arrive(self, way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        """Passes on what has taken its time on the way."""
        while True:
            due, data = await way.get()
            try:
                await asyncio.sleep(due - asyncio.get_running_loop().time())
                await self._open.wait()
                writer.write(self.passing(data))
                await writer.drain()
            finally:
                way.task_done()


@dataclass(eq=False)
class Target:
    address: Address
    # Where `GET /health/ready` is answered with 200 while the server is well; without it, a server is well if it accepts connections.
    health: Address | None = None
    well: bool = False
    check: asyncio.Task | None = field(default=None, repr=False)


class Balancer(Proxy):
    """Leads each connection to the next target that is well and accepts it. A target that is no longer well loses its connections."""

    def __init__(self, targets: list[tuple[Address, Address | None]], listen: Address = ("127.0.0.1", 0), proxy_protocol: bool = False):
        self.targets = [Target(*each) for each in targets]
        self.proxy_protocol = proxy_protocol
        self._next = 0
        super().__init__(None, listen)
        for target in self.targets:
            target.well = target.health is None
            if target.health:
                target.check = loop().call(self._watch, target)

    def close(self) -> None:
        for target in self.targets:
            if target.check:
                loop().call(target.check.cancel)
        super().close()

    def well(self) -> list[Address]:
        return [target.address for target in self.targets if target.well]

    def _watch(self, target: Target) -> asyncio.Task:
        return asyncio.ensure_future(self._check(target))

    async def _check(self, target: Target) -> None:
        while True:
            try:
                async with asyncio.timeout(CHECK_DEADLINE):
                    target.well = await is_ready(target.health)
            except (OSError, ValueError, asyncio.TimeoutError, asyncio.IncompleteReadError):
                target.well = False
            if not target.well:
                self._abort(lambda passage: passage.target == target.address)
            await asyncio.sleep(CHECK_SECONDS)

    async def _connect(self) -> tuple[Address, asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self.targets:
            target = self.targets[self._next % len(self.targets)]
            self._next += 1
            if not target.well:
                continue
            try:
                return target.address, *await asyncio.wait_for(asyncio.open_connection(*target.address), CONNECT_SECONDS)
            except (OSError, asyncio.TimeoutError):
                continue
        return None

    def _greeting(self, near: asyncio.StreamWriter) -> bytes:
        if not self.proxy_protocol:
            return b""
        (source, source_port), (own, own_port) = near.get_extra_info("peername")[:2], near.get_extra_info("sockname")[:2]
        addresses = socket.inet_aton(source) + socket.inet_aton(own) + struct.pack(">HH", source_port, own_port)
        # Version 2, PROXY; TCP over IPv4.
        return SIGNATURE + b"\x21\x11" + struct.pack(">H", len(addresses)) + addresses


async def is_ready(address: Address) -> bool:
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(f"GET /health/ready HTTP/1.1\r\nHost: {address[0]}\r\nConnection: close\r\n\r\n".encode())
        return (await reader.readline()).split()[1:2] == [b"200"]
    finally:
        writer.close()
