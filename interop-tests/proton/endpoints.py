"""Connections with TLS to the suite's broker, which accepts any key, and to the secured broker."""

import base64
import hashlib
import hmac
import os
import time
import urllib.parse
import urllib.request
from pathlib import Path

from proton import Message, SSLDomain

from client import DEADLINE, RECEIVER_FIRST, connect, unique_name

# The secured broker's address, besides 127.0.0.1: there it has the port that AMQPS uses by default.
ADDRESS = os.environ.get("JITNEY_SECURED_ADDRESS", "")

ROOT = "RootManageSharedAccessKey"
# The keys of ../secured.py, and of secured.json.
KEYS = {ROOT: "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==", "listener": "a key that may listen", "speaker": "a key that may send"}
QUEUE_KEY = "a key of s291"
ELSEWHERE = "a key of the other namespace"

SASL_TOKEN = "servicebus.windows.net:sastoken"


class Secured:
    """The secured broker (../secured.py), which the runner started."""

    def __init__(self):
        self.certificates = Path(os.environ["JITNEY_SECURED_CERTIFICATES"])
        self.port = os.environ["JITNEY_SECURED_AMQP_PORT"]

    def file(self, name: str) -> str:
        """A file that `jitney certs` made."""
        return str(self.certificates / name)

    def trust(self, client: str | None = None) -> SSLDomain:
        """What a client needs for TLS, with a certificate of its own or without."""
        domain = trusting(self.file("ca.pem"))
        if client:
            domain.set_credentials(self.file(f"{client}.pem"), self.file(f"{client}.key"), None)
        return domain

    def nameless(self, **options):
        """A connection that has proved nothing."""
        return connect(url=f"amqps://localhost:{self.port}", ssl_domain=self.trust(), **options)

    def plain(self, name: str, key: str | None = None, **options):
        """A connection with a rule's name and a key, as generic clients make them."""
        key = KEYS[name] if key is None else key
        url = f"amqps://localhost:{self.port}"
        return connect(url=url, ssl_domain=self.trust(), allowed_mechs="PLAIN", user=name, password=key, **options)


def trusting(authority: str) -> SSLDomain:
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(authority)
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    return domain


def authority() -> str:
    """The authority of the suite's own broker, as a file."""
    url = f"http://localhost:{os.environ['JITNEY_HTTP_PORT']}/ca.pem"
    with urllib.request.urlopen(url, timeout=20) as answer:
        path = Path(os.environ["JITNEY_WORK"]) / "ca.pem"
        path.write_bytes(answer.read())
    return str(path)


def signed(resource: str, name: str, key: str | None = None, expiry: int | None = None) -> str:
    """A shared access signature."""
    expiry = expiry or int(time.time()) + 600
    resource = urllib.parse.quote_plus(resource)
    key = (KEYS[name] if key is None else key).encode()
    signature = base64.b64encode(hmac.digest(key, f"{resource}\n{expiry}".encode(), hashlib.sha256))
    signature, name = urllib.parse.quote_plus(signature), urllib.parse.quote_plus(name)
    return f"SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={name}"


class Tokens:
    """`$cbs` on a connection."""

    def __init__(self, connection):
        self.requests = connection.create_sender("$cbs", name=unique_name())
        self.responses = connection.create_receiver("$cbs", name=unique_name(), options=RECEIVER_FIRST)

    def put(self, audience: str, token: str) -> int:
        """The status of the answer; the link's name is where the answer goes."""
        properties = {"operation": "put-token", "type": SASL_TOKEN, "name": audience}
        request = Message(id=unique_name(), reply_to=self.responses.link.name, properties=properties, body=token)
        self.requests.send(request)
        # It comes settled.
        answer = self.responses.receive(DEADLINE)
        if answer.correlation_id != request.id:
            raise AssertionError(f"the answer to {answer.correlation_id!r}, and not to {request.id!r}")
        return answer.properties["status-code"]
