#!/usr/bin/env python3
"""Starts the broker in the emulator's place, and runs a command beside it: unshare --net place.py DIRECTORY COMMAND…

The broker has the emulator's ports, 5672 and 5300, those of the service, 5671, 443 and 80, and a configuration of the emulator's form. The exit
code is that of the command, or 1 if something was wrong with the broker.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from broker import Broker  # noqa: E402

CONFIG = {"UserConfig": {"Namespaces": [{
    "Name": "sbemulatorns",
    "Queues": [{"Name": "queue.1"}],
    "Topics": [{"Name": "topic.1", "Subscriptions": [{"Name": "subscription.1"}]}],
}]}}


def main() -> int:
    directory, *command = sys.argv[1:]
    directory = Path(directory).resolve()
    directory.mkdir(parents=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    config = directory / "config.json"
    config.write_text(json.dumps(CONFIG))
    listeners = ["--http", "127.0.0.1:80", "--https", "127.0.0.1:443"]
    broker = Broker.create(directory, config, listeners, ports=(5672, 5300), ends_with=os.getpid())
    broker.start()
    try:
        authority = directory / "data" / "certs" / "ca.pem"
        code = subprocess.run(command, env={**os.environ, "SSL_CERT_FILE": str(authority)}, stdin=subprocess.DEVNULL).returncode
    finally:
        complaint = broker.finish()
    if complaint:
        print(complaint)
    return code or (1 if complaint else 0)


if __name__ == "__main__":
    sys.exit(main())
