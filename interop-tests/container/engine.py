"""An engine without containers: as much of the Docker Engine's API as a module of Testcontainers asks for, and cells behind it.

Whoever asks for the emulator's image, or for Jitney's, gets a cell with the broker. Whoever asks for a database gets one that says that it is ready, and does
nothing else: the broker has no use for it.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import struct
import tarfile
import threading
import time
import urllib.parse
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cell import Cell, CellError

DATABASE_READY = "Recovery is complete. This is an informational message only. No user action is required.\n"


class Container:
    """What was created under an id."""

    def __init__(self, directory: Path, asked: dict):
        self.asked = asked
        self.is_broker = any(name in asked["Image"] for name in ("servicebus", "jitney"))
        environment = dict(each.split("=", 1) for each in asked.get("Env", []))
        self.cell = Cell(directory, environment) if self.is_broker else None
        self.ports = [int(each.split("/")[0]) for each in asked.get("ExposedPorts", {})]
        self.started = False

    @property
    def running(self) -> bool:
        return self.started and (self.cell is None or self.cell.process.poll() is None)

    def start(self) -> None:
        if self.cell:
            # A broker that has ended already is a container that has exited.
            with contextlib.suppress(CellError):
                self.cell.start(*self.ports)
        self.started = True

    def stop(self) -> int | None:
        code = self.cell.end(signal.SIGTERM) if self.cell and self.running else None
        self.started = False
        return code

    def remove(self) -> None:
        """Ends it, as a removal does that is forced."""
        if self.cell:
            self.cell.close()
        self.started = False

    def told(self) -> bytes:
        return self.cell.told().encode() if self.cell else DATABASE_READY.encode()

    def described(self, name: str) -> dict:
        published = {
            f"{port}/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(self.cell.published(port) if self.cell else 1)}] for port in self.ports
        } if self.running else {}
        networks = {"network": {"IPAddress": "127.0.0.1", "NetworkID": "network", "Gateway": "", "Aliases": []}}
        return {
            "Id": name, "Name": f"/{name}", "Created": "2026-01-01T00:00:00Z", "Image": "image",
            "State": {"Running": self.running, "Status": "running" if self.running else "exited", "StartedAt": "2026-01-01T00:00:00Z",
                      "FinishedAt": "0001-01-01T00:00:00Z", "ExitCode": 0},
            "Config": {"Hostname": name[:12], "Image": self.asked["Image"], "Labels": self.asked.get("Labels", {}),
                       "ExposedPorts": self.asked.get("ExposedPorts", {}), "Tty": False},
            "HostConfig": {"PortBindings": self.asked.get("HostConfig", {}).get("PortBindings", {})},
            "NetworkSettings": {"Ports": published, "Networks": networks},
        }


@dataclass
class Log:
    """The log of a container that is asked for."""

    container: Container
    # Until the container ends.
    follows: bool


class Engine:
    """Serves until the process ends."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.containers: dict[str, Container] = {}
        # What was done, in order, and how brokers ended.
        self.done: list[str] = []
        self.codes: list[int] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        for container in self.containers.values():
            if container.cell:
                container.cell.close()

    def create(self, asked: dict) -> str:
        name = f"{len(self.containers) + 1:064x}"
        self.containers[name] = Container(self.directory / str(len(self.containers)), asked)
        self.done.append(f"create {asked['Image']}")
        return name

    def answer(self, method: str, path: str, query: dict, body: bytes) -> tuple[int, object]:
        """Returns a status, and what is said with it."""
        path = re.sub(r"^/v[\d.]+", "", path)
        if path == "/info":
            return 200, {"ServerVersion": "28.0.0", "OperatingSystem": "Linux", "OSType": "linux", "Architecture": "x86_64", "NCPU": 2,
                         "MemTotal": 1 << 32, "Runtimes": {}, "Labels": []}
        if path in ("/_ping", "/version"):
            return 200, {"ApiVersion": "1.44", "Version": "28.0.0", "Os": "linux", "Arch": "amd64"}
        if path.startswith("/images/"):
            # Every image is there.
            return 200, {"Id": "image", "RepoTags": [], "Config": {}}
        if path == "/networks/create":
            return 201, {"Id": "network", "Warning": ""}
        if path.startswith("/networks/"):
            return (204 if method == "DELETE" else 200), {}
        if path == "/containers/json":
            return 200, []
        if path == "/containers/create":
            return 201, {"Id": self.create(json.loads(body)), "Warnings": []}
        if not (found := re.fullmatch(r"/containers/(\w+)(?:/(\w+))?", path)) or found[1] not in self.containers:
            return 404, {"message": f"not here: {method} {path}"}
        container, verb = self.containers[found[1]], found[2]
        if verb:
            self.done.append(f"{verb} {container.asked['Image']}")
        if verb == "json":
            return 200, container.described(found[1])
        if verb == "archive" and method == "PUT":
            where = container.cell.root / query["path"][0].lstrip("/")
            with tarfile.open(fileobj=io.BytesIO(body)) as archive:
                for each in archive:
                    each.name = each.name.lstrip("/")
                    archive.extract(each, where, filter="tar")
            return 200, None
        if verb == "start":
            container.start()
            return 204, None
        if verb == "stop":
            code = container.stop()
            if code is not None:
                self.codes.append(code)
            return 204, None
        if verb == "logs":
            follows = query.get("follow", ["0"])[0].lower() in ("1", "true")
            return 200, Log(container, follows)
        if method == "DELETE":
            container.remove()
            return 204, None
        return 404, {"message": f"not here: {method} {path}"}

    def handler(self) -> type[BaseHTTPRequestHandler]:
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def body(self) -> bytes:
                if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = b""
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def serve(self) -> None:
                url = urllib.parse.urlsplit(self.path)
                try:
                    status, said = engine.answer(self.command, url.path, urllib.parse.parse_qs(url.query), self.body())
                except Exception as error:
                    status, said = 500, {"message": repr(error)}
                if isinstance(said, Log):
                    self.tell(said)
                    return
                text = b"" if said is None or status == 204 else json.dumps(said).encode()
                self.send_response(status)
                if text:
                    self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = serve

            def tell(self, log: Log) -> None:
                """What there is, or all as it comes, in the frames that carry two streams in one."""
                self.send_response(200)
                self.send_header("Content-Type", "application/vnd.docker.multiplexed-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                sent = 0
                try:
                    while True:
                        is_last = not (log.follows and log.container.running)
                        text = log.container.told()
                        if new := text[sent:]:
                            self.wfile.write(struct.pack(">BxxxI", 1, len(new)) + new)
                            self.wfile.flush()
                            sent = len(text)
                        if is_last:
                            return
                        time.sleep(0.05)
                except OSError:
                    pass

            def log_message(self, *arguments) -> None:
                """The suite's output is its own."""

        return Handler
