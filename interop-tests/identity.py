#!/usr/bin/env python3
"""Identities, and the issuer of their tokens, which the secured broker trusts.

    identity.py DIRECTORY CLAIMS              prints a token with these claims, in JSON, in addition to those of a good one
    identity.py DIRECTORY CLAIMS --forged     the same, signed with a key that the broker does not know

A claim of null is left out. DIRECTORY is that of the secured broker, where `publish` has put the keys.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from pathlib import Path

ISSUER = "https://issuer.invalid/tenant"
AUDIENCE = "https://servicebus.azure.net"
LIFE_SECONDS = 3600


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def publish(directory: Path) -> list[str]:
    """Makes the issuer's key and a forger's; returns the broker's arguments."""
    for name in ("issuer", "forger"):
        subprocess.run(
            ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", directory / f"{name}.pem"],
            check=True, capture_output=True,
        )
    shown = subprocess.run(
        ["openssl", "rsa", "-in", directory / "issuer.pem", "-noout", "-modulus"], check=True, capture_output=True, text=True,
    )
    modulus = bytes.fromhex(shown.stdout.strip().removeprefix("Modulus="))
    # The exponent is OpenSSL's default, 65537.
    public = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "n": encoded(modulus), "e": "AQAB"}
    (directory / "keys.json").write_text(json.dumps({"keys": [public]}))
    return ["--oidc-issuer", ISSUER, "--oidc-jwks", str(directory / "keys.json")]


def token(directory: Path, claims: dict, signer: str = "issuer") -> str:
    now = int(time.time())
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "somebody", "iat": now, "nbf": now, "exp": now + LIFE_SECONDS}
    told = {name: value for name, value in {**good, **claims}.items() if value is not None}
    header = {"alg": "RS256", "typ": "JWT", "kid": "one"}
    text = ".".join(encoded(json.dumps(part).encode()) for part in (header, told))
    signed = subprocess.run(
        ["openssl", "dgst", "-sha256", "-sign", directory / f"{signer}.pem"], input=text.encode(), check=True, capture_output=True,
    )
    return f"{text}.{encoded(signed.stdout)}"


if __name__ == "__main__":
    print(token(Path(sys.argv[1]), json.loads(sys.argv[2]), "forger" if sys.argv[3:] == ["--forged"] else "issuer"))
