"""What is seen of a broker from outside while it is under load: its memory, its health, a pair of clients on a queue of their own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from amqp import bounded  # noqa: E402
from broker import Broker as AnyBroker, write_json  # noqa: E402

MEBIBYTE = 1024 * 1024
# Who asks for health waits so long at most.
HEALTH_WAIT = 10.0


class Broker(AnyBroker):
    """A broker with little."""

    def connection_string_of(self, name: str, key: str) -> str:
        """The connection string of an authorization rule."""
        return self.connection_string.replace("RootManageSharedAccessKey", name).replace("SAS_KEY_VALUE", key)

    def limit_descriptors(self, count: int) -> None:
        """Lets it have so many, from its next start on."""
        program = self.state_file.with_name("limited")
        program.write_text(f'#!/bin/sh\nulimit -n {count}\nexec "{self.state["binary"]}" "$@"\n')
        program.chmod(0o755)
        self.state["binary"] = str(program)
        write_json(self.state_file, self.state)


class Watch:
    """Asks a broker how it is, several times a second."""

    def __init__(self, broker: Broker):
        self.broker = broker
        self.peak = 0
        self.health: list[float] = []
        self.unhealthy: list[str] = []
        self.tasks = [asyncio.create_task(self._watch_memory()), asyncio.create_task(self._watch_health())]

    def memory(self) -> int:
        """What the process has in memory, bytes."""
        try:
            pages = Path(f"/proc/{self.broker.state['pid']}/statm").read_text().split()
        except OSError:
            # It has ended, which is told elsewhere.
            return 0
        return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0

    def begin(self) -> None:
        """From now on it counts."""
        self.peak, self.health, self.unhealthy = self.memory(), [], []

    def describe_health(self) -> str:
        """How long it took to be told."""
        ordered = sorted(self.health) or [0.0]
        return f"in {ordered[len(ordered) // 2] * 1000:.0f} ms, at most {ordered[-1] * 1000:.0f}"

    async def _watch_memory(self) -> None:
        while True:
            self.peak = max(self.peak, self.memory())
            await asyncio.sleep(0.02)

    async def _watch_health(self) -> None:
        while True:
            began = time.monotonic()
            try:
                status = await bounded(self._ask(), HEALTH_WAIT)
            except (OSError, TimeoutError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
                status = repr(error)
            self.health.append(time.monotonic() - began)
            if "200" not in status:
                self.unhealthy.append(status)
            await asyncio.sleep(0.1)

    async def _ask(self) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.broker.http_port)
        try:
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return (await reader.readuntil(b"\r\n")).decode().strip()
        finally:
            writer.close()

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        for ended in await asyncio.gather(*self.tasks, return_exceptions=True):
            if not isinstance(ended, asyncio.CancelledError):
                raise ended if isinstance(ended, BaseException) else AssertionError("a watch has ended")


class Pair:
    """The SDK's sender and receiver of queue `pair`, in a process of their own."""

    def __init__(self, process: asyncio.subprocess.Process):
        self.process = process

    @classmethod
    async def start(cls, broker: Broker, has_key: bool) -> "Pair":
        # The key is one for this queue only.
        connection_string = broker.connection_string_of("pair", "key-of-the-pair") if has_key else broker.connection_string
        # The whole stream's limit: a line tells of all that was lost.
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(HERE / "pair.py"), connection_string, "pair",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=16 * MEBIBYTE,
        )
        return cls(process)

    async def _ask(self, word: str, within: float) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{word}\n".encode())
        line = await bounded(self.process.stdout.readline(), within)
        assert line, "the pair has ended"
        return json.loads(line)

    async def mark(self) -> dict[str, Any]:
        """Returns what it has seen since it was last asked."""
        return await self._ask("mark", 30)

    async def end(self) -> dict[str, Any]:
        """Lets everything come that was sent, and ends it."""
        seen = await self._ask("end", 90)
        await self.process.wait()
        return seen

    async def stop(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
