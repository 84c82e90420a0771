#!/usr/bin/env python3
"""Runs a command of a suite against a broker of its own, beside the suite's: what ends its broker keeps no other from its own.

    apart.py DIRECTORY COMMAND [ARGUMENT…]

The command has the broker's variables (README.md), and the suite's others. The exit code is the command's, or 1 if the broker panicked
or was gone at the end. The data and the log are in DIRECTORY."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from broker import Broker


def main() -> int:
    directory, *command = sys.argv[1:]
    broker = Broker.create(Path(directory), ends_with=os.getpid())
    broker.start()
    code = subprocess.run(command, env={**os.environ, **broker.environment()}).returncode
    failure = broker.finish()
    if failure:
        print(failure)
    return code or int(failure is not None)


if __name__ == "__main__":
    sys.exit(main())
