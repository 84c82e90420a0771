"""The date of one server, which a test sets while the server runs: no clock of the machine changes."""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
from pathlib import Path

from broker import write_json  # fleet.py has made it known
from fleet import Server

HERE = Path(__file__).resolve().parent


class Clock:
    """The clock of a server that is not started yet. Needs a C compiler, as the build of the server does."""

    def __init__(self, server: Server, directory: Path, monotonic: bool = False):
        """With `monotonic`, the monotonic clock is set as well."""
        directory.mkdir(parents=True, exist_ok=True)
        library, self.file, wrapper = directory / "clock.so", directory / "ahead", directory / "jitney"
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library), str(HERE / "clock.c")],
                       check=True)
        self.set(0)
        state = server.broker.state
        words = [f"export LD_PRELOAD={shlex.quote(str(library))} JITNEY_TEST_CLOCK={shlex.quote(str(self.file))}"]
        if monotonic:
            words.append("export JITNEY_TEST_CLOCK_ALL=1")
        wrapper.write_text("\n".join(["#!/bin/sh", *words, f'exec {shlex.quote(state["binary"])} "$@"\n']))
        wrapper.chmod(0o755)
        write_json(server.broker.state_file, state | {"binary": str(wrapper)})

    def set(self, seconds: int) -> None:
        """Sets it ahead by so many seconds of what is right."""
        with self.file.open("r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))
