"""The suite's second broker: it verifies keys, and looks to the SDK like the service.

It listens on an address of its own at the ports that the SDK goes to by itself, 5671 for AMQP with TLS and 443 for HTTPS and
WebSockets, because the SDK takes no other port from a connection string of production. Nothing of the SDK is changed for it but
whom it trusts: the authority that `jitney certs` made.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import shutil
import subprocess
import sys
import time
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from broker import Broker, binary, write_json  # noqa: E402

# A suite's own, so that two suites can run at once.
ADDRESSES = {"sync": "127.0.0.21", "aio": "127.0.0.22"}

ROOT = "RootManageSharedAccessKey"


def key(text: str) -> str:
    """A key as the service makes them, 256 bits in Base64; always the same one for a text."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# The rules of the namespace.
RULES = [
    {"Name": ROOT, "Rights": ["Manage", "Send", "Listen"], "PrimaryKey": key("root")},
    {"Name": "listener", "Rights": ["Listen"], "PrimaryKey": key("listener")},
    {"Name": "speaker", "Rights": ["Send"], "PrimaryKey": key("other"), "SecondaryKey": key("speaker")},
]


@dataclass
class Guarded:
    """Where the guarded broker is, and what a client must know of it."""

    directory: Path
    address: str

    @property
    def authority(self) -> str:
        """The file of the authority that signed the broker's certificate."""
        return str(self.directory / "certs" / "ca.pem")

    @property
    def broker(self) -> Broker:
        return Broker(self.directory / "broker.json")

    def add(self, *arguments: str) -> None:
        """Gives the broker, which is not started yet, further arguments."""
        state = self.broker.state
        write_json(self.broker.state_file, {**state, "arguments": [*state["arguments"], *arguments]})

    def connection_string(self, name: str = ROOT, secret: str = key("root"), host: str | None = None) -> str:
        """What the service's portal would give out, but for the host."""
        return f"Endpoint=sb://{host or self.address}/;SharedAccessKeyName={name};SharedAccessKey={secret}"

    def bearing(self, signature: str) -> str:
        """A connection string with a signature in place of a key."""
        return f"Endpoint=sb://{self.address}/;SharedAccessSignature={signature}"


def signature(resource: str, name: str = ROOT, secret: str = key("root"), seconds: float = 3600) -> str:
    """A shared access signature, as anybody can make one."""
    resource = urllib.parse.quote_plus(resource)
    until = int(time.time() + seconds)
    digest = hmac.new(secret.encode(), f"{resource}\n{until}".encode(), hashlib.sha256).digest()
    signed = urllib.parse.quote_plus(base64.b64encode(digest))
    return f"SharedAccessSignature sr={resource}&sig={signed}&se={until}&skn={name}"


def described(directory: Path, address: str, entities: dict | None = None) -> Guarded:
    """Makes certificates and a configuration in an empty directory, and describes the broker; does not start it."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    names = ["--name", address, "--name", "localhost"]
    subprocess.run([binary(), "certs", directory / "certs", *names], check=True, stdout=subprocess.DEVNULL)
    namespace = {"Name": "guarded", "AuthorizationRules": RULES, "Queues": [], "Topics": [], **(entities or {})}
    (directory / "config.json").write_text(json.dumps({"UserConfig": {"Namespaces": [namespace]}}))
    certs = directory / "certs"
    Broker.create(
        directory, directory / "config.json",
        [
            "--auth", "sas", "--amqps", f"{address}:5671", "--https", f"{address}:443",
            "--tls-cert", str(certs / "server.pem"), "--tls-key", str(certs / "server.key"),
        ],
    )
    return Guarded(directory, address)


def finish(guarded: Guarded) -> str | None:
    """Stops it; tells what is wrong with how it ended."""
    broker = guarded.broker
    if not broker.running():
        return f"the guarded broker was gone at the end (exit code {broker.state['exit_code']})"
    code = broker.stop()
    if code != 0:
        return f"the guarded broker ended with {code}"
    panics = [line for line in broker.log.read_text(errors="replace").splitlines() if "panicked at" in line]
    return f"the guarded broker panicked: {panics[0]}" if panics else None
