"""The samples' identity provider, for Go's client of it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "samples"))
from issuer import APPLICATION, SECRET, Issuer  # noqa: E402

# What a pod has in a file, and shows in place of a secret.
ASSERTION = "the pod's own token"


class Provider(Issuer):
    """Go's client asks with a query where Python's has none; and it may show an assertion in place of a secret."""

    def token(self, asked: dict[str, str]) -> dict | None:
        if (asked.get("client_id"), asked.get("client_assertion")) == (APPLICATION, ASSERTION):
            asked = {**asked, "client_secret": SECRET}
        return super().token(asked)

    def handler(self):
        class Handler(super().handler()):
            def do_GET(self):
                self.path = self.path.partition("?")[0]
                super().do_GET()

        return Handler
