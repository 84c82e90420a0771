"""An identity provider, as much of one as `azure-identity` asks for: an application shows its secret, and gets a token.

It has the addresses of an AD FS, because from one of those the SDK expects no directory of all providers that there are.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

TENANT = "adfs"
APPLICATION = "the application"
SECRET = "the application's secret"


class Issuer:
    """Serves on a free port of an address until the process ends; counts the tokens that it gave."""

    def __init__(self, address: str, certificate: str, key: str):
        self.given = 0
        self.signing = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = ThreadingHTTPServer((address, 0), self.handler())
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self.host = f"https://{address}:{server.server_port}"
        self.name = f"{self.host}/{TENANT}"
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def environment(self) -> dict[str, str]:
        """What an application is told of it: the variables of `azure-identity`."""
        return {
            "AZURE_AUTHORITY_HOST": self.host, "AZURE_TENANT_ID": TENANT,
            "AZURE_CLIENT_ID": APPLICATION, "AZURE_CLIENT_SECRET": SECRET,
        }

    def described(self) -> dict:
        return {
            "issuer": self.name, "jwks_uri": f"{self.name}/keys", "token_endpoint": f"{self.name}/oauth2/token",
            "authorization_endpoint": f"{self.name}/oauth2/authorize",
        }

    def keys(self) -> dict:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.signing.public_key()))
        return {"keys": [{**public, "kid": "1", "use": "sig", "alg": "RS256"}]}

    def token(self, asked: dict[str, str]) -> dict | None:
        if (asked.get("client_id"), asked.get("client_secret")) != (APPLICATION, SECRET):
            return None
        now = int(time.time())
        claims = {
            "iss": self.name, "aud": asked["scope"].split()[0].removesuffix("/.default"), "iat": now, "nbf": now,
            "exp": now + 3600, "sub": APPLICATION, "roles": ["Azure Service Bus Data Owner"],
        }
        self.given += 1
        text = jwt.encode(claims, self.signing, algorithm="RS256", headers={"kid": "1"})
        return {"token_type": "Bearer", "expires_in": 3600, "access_token": text}

    def handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path.endswith("/.well-known/openid-configuration"):
                    self.answer(200, issuer.described())
                elif self.path == f"/{TENANT}/keys":
                    self.answer(200, issuer.keys())
                else:
                    self.answer(404, {"error": "not_found"})

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                token = issuer.token(dict(urllib.parse.parse_qsl(body)))
                self.answer(200 if token else 401, token or {"error": "invalid_client"})

            def answer(self, status: int, document: dict):
                text = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *arguments):
                """The suite's output is the samples'."""

        return Handler
