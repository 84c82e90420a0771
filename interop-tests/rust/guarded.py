#!/usr/bin/env python3
"""The broker that verifies keys and certificates, for the tests that want one.

    guarded.py start     start it, and print what the tests are told of it, for a shell to evaluate
    guarded.py stop      stop it; fails when it did not end in good order
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from broker import Broker, binary  # noqa: E402

DIRECTORY = Path(os.environ["JITNEY_WORK"]) / "guarded"

# Its address besides 127.0.0.1: there it has the port that the SDK takes by itself, whatever its connection string says.
ADDRESS = "127.0.0.27"

# The keys stand in src/places.rs too.
ROOT = {
    "Name": "RootManageSharedAccessKey", "Rights": ["Manage", "Send", "Listen"],
    "PrimaryKey": "cm9vdCBrZXkgb2YgdGhlIHJ1c3QgYnJva2Vy",
}
LISTENER = {"Name": "listener", "Rights": ["Listen"], "PrimaryKey": "a key that may listen"}
SPEAKER = {"Name": "speaker", "Rights": ["Send"], "PrimaryKey": "a key that may send"}
OWN = {"Name": "own", "Rights": ["Send", "Listen"], "PrimaryKey": "a key of s291"}
QUEUES = ["s261", "s264", "s265", "s265b", "s291b", "s292", "s293", "s295"]
CONFIG = {"UserConfig": {"Namespaces": [{
    "Name": "guarded",
    "AuthorizationRules": [ROOT, LISTENER, SPEAKER],
    "Queues": [{"Name": "s291", "AuthorizationRules": [OWN]}, *({"Name": name} for name in QUEUES)],
    "Topics": [],
}]}}

# On the suite's own broker.
OPEN_QUEUES = ["s261r", "s261g", "s263r", "s263g"]
ENTRY = """<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">
<QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/></content></entry>"""


def ask(path: str, method: str = "GET", body: str | None = None) -> bytes:
    """A request to the suite's own broker."""
    url = f"http://localhost:{os.environ['JITNEY_HTTP_PORT']}/{path}"
    request = urllib.request.Request(url, body and body.encode(), {"Content-Type": "application/atom+xml"}, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()


def make_queue(name: str) -> None:
    """Makes a queue; a broker that has met the suite before has it already."""
    try:
        ask(f"{name}?api-version=2021-05", "PUT", ENTRY)
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise


def start() -> None:
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(parents=True)
    config, certificates, trusted = DIRECTORY / "config.json", DIRECTORY / "certs", DIRECTORY / "trusted.pem"
    config.write_text(json.dumps(CONFIG))
    # 127.0.0.1 is not among the names.
    names = ["--name", "localhost", "--name", ADDRESS, "--client", "listener", "--client", "nobody"]
    subprocess.run([binary(), "certs", str(certificates), *names], check=True, stdout=subprocess.DEVNULL)
    broker = Broker.create(DIRECTORY, config, [
        "--auth", "sas", "--amqps", f"{ADDRESS}:5671", "--tls-cert", str(certificates / "server.pem"),
        "--tls-key", str(certificates / "server.key"), "--tls-client-ca", str(certificates / "ca.pem"),
    ])
    broker.start()
    # The SDK takes its authorities from the environment: those of both brokers.
    trusted.write_bytes(ask("ca.pem") + (certificates / "ca.pem").read_bytes())
    for name in OPEN_QUEUES:
        make_queue(name)
    print(f"export JITNEY_GUARDED_PORT={broker.amqp_port}")
    print(f"export JITNEY_GUARDED_CERTIFICATES='{certificates}'")
    print(f"export SSL_CERT_FILE='{trusted}'")


def stop() -> None:
    broker = Broker(DIRECTORY / "broker.json")
    code = broker.stop()
    if code != 0 or "panicked at" in broker.log.read_text(errors="replace"):
        sys.exit(f"the guarded broker ended with {code}\n{broker.log_tail()}")


if __name__ == "__main__":
    {"start": start, "stop": stop}[sys.argv[1]]()
