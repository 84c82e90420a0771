"""The fault proxy between a client and the broker, as a child process (../fault_proxy.py)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent.parent / "fault_proxy.py"


class FaultProxy:
    def __init__(self, process: asyncio.subprocess.Process, port: int):
        self.process = process
        self.port = port

    @classmethod
    async def start(cls, port: int) -> "FaultProxy":
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), str(port), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )
        return cls(process, int(await asyncio.wait_for(process.stdout.readline(), 20)))

    async def do(self, command: str) -> int:
        """Tells it what to do; returns how many links or connections that met."""
        self.process.stdin.write(f"{command}\n".encode())
        return int(await asyncio.wait_for(self.process.stdout.readline(), 20))

    async def end(self) -> None:
        self.process.stdin.close()
        await self.process.wait()
