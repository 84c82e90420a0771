"""An HTTP proxy that makes tunnels, for who knows its password, at the place that the proxy sample names."""

from __future__ import annotations

import base64
import socket
import threading

PLACE = ("127.0.0.1", 8899)
CREDENTIALS = base64.b64encode(b"admin:123456").decode()


class Proxy:
    """Serves until the process ends; knows which tunnels were made."""

    def __init__(self):
        self.tunnels: list[str] = []
        listener = socket.create_server(PLACE)
        threading.Thread(target=self.accept, args=[listener], daemon=True).start()

    def accept(self, listener: socket.socket) -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=self.serve, args=[client], daemon=True).start()

    def serve(self, client: socket.socket) -> None:
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                received = client.recv(4096)
                if not received:
                    return
                head += received
            request, *headers = head.decode("latin-1").split("\r\n")
            method, target, _ = request.split(" ")
            proof = [line.split(":", 1)[1].strip() for line in headers if line.lower().startswith("proxy-authorization:")]
            if method != "CONNECT":
                client.sendall(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            elif proof != [f"Basic {CREDENTIALS}"]:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n")
            else:
                host, port = target.rsplit(":", 1)
                with socket.create_connection((host, int(port))) as server:
                    self.tunnels.append(target)
                    client.sendall(b"HTTP/1.1 200 Connection Established\r\n\r\n")
                    back = threading.Thread(target=pump, args=[server, client], daemon=True)
                    back.start()
                    pump(client, server)
                    back.join()


def pump(source: socket.socket, target: socket.socket) -> None:
    """Carries bytes until there are no more."""
    try:
        while received := source.recv(65536):
            target.sendall(received)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
