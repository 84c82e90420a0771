"""A broker that verifies keys, tokens and certificates, and to SDKs looks like the service.

It listens at an address of its own, at the ports to which SDKs connect without being told: 5671 for AMQP with TLS, 443 for HTTPS and
WebSockets. It has two more ports on 127.0.0.1. The runner starts it for the suites that suites.toml gives an address, and tells
them by the variables of `environment`. Further entities and rules of its namespace are in the suite's secured.json.
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

from broker import HERE, Broker, binary, write_json

ROOT = "RootManageSharedAccessKey"
# The keys of the namespace. Suites in other languages have them as constants, too.
ROOT_KEY = "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ=="
LISTENER_KEY = "bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE="
SPEAKER_KEY = "c3BlYWtlciBrZXkgb2YgdGhlIGd1YXJkZWQgb25lISE="
RULES = [
    {"Name": ROOT, "Rights": ["Manage", "Send", "Listen"], "PrimaryKey": ROOT_KEY},
    {"Name": "listener", "Rights": ["Listen"], "PrimaryKey": LISTENER_KEY, "SecondaryKey": "a key that may listen"},
    {"Name": "speaker", "Rights": ["Send"], "PrimaryKey": "a key that may send", "SecondaryKey": SPEAKER_KEY},
]


# As the service would call the namespace, for clients that add the service's domain to what they are given.
SERVICE_NAME = "secured.servicebus.windows.net"
# Names in the certificate besides the address; the second one is of a second namespace.
NAMES = ("localhost", "elsewhere.localhost", SERVICE_NAME)


@dataclass
class Secured:
    """A secured broker: its files, its address, and the connection strings of its namespace."""

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
        """Adds arguments for the broker, which has not been started yet."""
        state = self.broker.state
        write_json(self.broker.state_file, {**state, "arguments": [*state["arguments"], *arguments]})

    def connection_string(self, name: str = ROOT, secret: str = ROOT_KEY, host: str | None = None) -> str:
        """As the service's portal shows it, but for the host."""
        return f"Endpoint=sb://{host or self.address}/;SharedAccessKeyName={name};SharedAccessKey={secret}"

    def bearing(self, signature: str) -> str:
        """A connection string with a signature in place of a key."""
        return f"Endpoint=sb://{self.address}/;SharedAccessSignature={signature}"

    def environment(self) -> dict[str, str]:
        """The variables that the runner sets for a suite (README.md)."""
        broker = self.broker
        return {
            "JITNEY_SECURED": str(self.directory),
            "JITNEY_SECURED_ADDRESS": self.address,
            "JITNEY_SECURED_AMQP_PORT": str(broker.amqp_port),
            "JITNEY_SECURED_HTTP_PORT": str(broker.http_port),
            "JITNEY_SECURED_CONTROL": broker.control,
            "JITNEY_SECURED_CERTIFICATES": str(self.directory / "certs"),
            "JITNEY_TOKEN": f"{sys.executable} {HERE / 'identity.py'} {self.directory}",
        }


def key(text: str) -> str:
    """A key as the service makes them, 256 bits in Base64; always the same one for a text."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def signature(resource: str, name: str = ROOT, secret: str = ROOT_KEY, seconds: float = 3600) -> str:
    """A shared access signature."""
    resource = urllib.parse.quote_plus(resource)
    until = int(time.time() + seconds)
    digest = hmac.new(secret.encode(), f"{resource}\n{until}".encode(), hashlib.sha256).digest()
    signed = urllib.parse.quote_plus(base64.b64encode(digest))
    return f"SharedAccessSignature sr={resource}&sig={signed}&se={until}&skn={name}"


def described(directory: Path, address: str, namespace: dict | None = None, names: tuple[str, ...] = ()) -> Secured:
    """Makes certificates and a configuration in an empty directory, and describes the broker; does not start it.

    `namespace` has properties of the namespace in Config.json: its rules are added to RULES, and `Elsewhere` is a list of further
    namespaces. `names` are added to those of the certificate.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    certs = directory / "certs"
    words = [word for name in (address, *NAMES, *names) for word in ("--name", name)]
    clients = ["--client", "listener", "--client", "nobody"]
    subprocess.run([binary(), "certs", certs, *words, *clients], check=True, stdout=subprocess.DEVNULL)
    properties = {"Name": "secured", "Queues": [], "Topics": [], **(namespace or {})}
    properties["AuthorizationRules"] = RULES + properties.get("AuthorizationRules", [])
    namespaces = [properties, *properties.pop("Elsewhere", [])]
    (directory / "config.json").write_text(json.dumps({"UserConfig": {"Namespaces": namespaces}}))
    Broker.create(
        directory, directory / "config.json",
        [
            "--auth", "sas", "--amqps", f"{address}:5671", "--https", f"{address}:443", "--tls-client-ca", str(certs / "ca.pem"),
            "--tls-cert", str(certs / "server.pem"), "--tls-key", str(certs / "server.key"),
        ],
    )
    return Secured(directory, address)


def finish(secured: Secured) -> str | None:
    """Stops the broker; returns what was wrong with it, or None."""
    complaint = secured.broker.finish()
    return complaint and f"secured: {complaint}"
