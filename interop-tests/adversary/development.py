"""Attacks on a broker that takes any key, by somebody who is not on its machine: pages in its user's browser."""

from __future__ import annotations

from scene import Scene
from tools import http


async def pages_of_other_hosts(scene: Scene) -> None:
    """A page whose host has come to mean this machine (DNS rebinding) reads and sends as the browser's own host."""
    for host in ("evil.example", f"evil.example:{scene.http_port}"):
        for method, path, body in (("GET", "/$Resources/queues?api-version=2021-05", b""), ("POST", "/other/messages", b"planted")):
            answer = await http(scene, method, path, host=host, body=body)
            assert answer.status >= 400, f"{method} {path} for {host}: {answer.text[:200]}"
    for host in ("localhost", f"localhost:{scene.http_port}", f"127.0.0.1:{scene.http_port}"):
        answer = await http(scene, "GET", "/$Resources/queues?api-version=2021-05", host=host)
        assert answer.status == 200, f"for {host}: {answer.text[:200]}"


ATTACKS = [pages_of_other_hosts]
