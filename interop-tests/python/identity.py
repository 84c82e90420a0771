"""Identities, and the issuer of their tokens, whom the guarded broker believes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import jwt
from azure.core.credentials import AccessToken
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

ISSUER = "https://issuer.invalid/tenant"
AUDIENCE = "https://servicebus.azure.net"


class Issuer:
    """Signs tokens, with a key that lies in a directory."""

    def __init__(self, directory: Path):
        file = directory / "issuer.pem"
        if not file.exists():
            made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            file.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.key = load_pem_private_key(file.read_bytes(), None)
        # By which its signatures can be verified.
        self.published = directory / "issuer.json"

    def publish(self) -> Path:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        self.published.write_text(json.dumps({"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}))
        return self.published

    def token(self, claims: dict) -> AccessToken:
        now = int(time.time())
        good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "somebody", "iat": now, "nbf": now, "exp": now + 3600}
        told = {name: value for name, value in {**good, **claims}.items() if value is not None}
        return AccessToken(jwt.encode(told, self.key, "RS256", headers={"kid": "one"}), now + 3600)


class Identity:
    """A credential of the blocking SDK: gives out tokens with these claims, in the place of those of a good one."""

    def __init__(self, issuer: Issuer, claims: dict):
        self.issuer = issuer
        self.claims = claims

    def get_token(self, *scopes, **_) -> AccessToken:
        return self.issuer.token(self.claims)

    def close(self) -> None:
        pass


class IdentityOfAio:
    """The same for the asynchronous one."""

    def __init__(self, issuer: Issuer, claims: dict):
        self.issuer = issuer
        self.claims = claims

    async def get_token(self, *scopes, **_) -> AccessToken:
        return self.issuer.token(self.claims)

    async def close(self) -> None:
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass


def identity(kind: str, issuer: Issuer, role: str | None, **claims):
    """Somebody with a role, of those that the service has."""
    claims = {"roles": [f"Azure Service Bus Data {role}"] if role else None, **claims}
    return (IdentityOfAio if kind == "aio" else Identity)(issuer, claims)
