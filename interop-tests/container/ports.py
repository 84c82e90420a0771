"""Published ports: `ports.py FD:PORT…`, in the network of a cell.

Each FD is a listening socket of the network outside; whoever connects there is connected to PORT in here.
"""

import socket
import sys
import threading


def pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for each in (source, sink):
            each.close()


def serve(listener: socket.socket, port: int) -> None:
    while True:
        outer, _ = listener.accept()
        try:
            inner = socket.create_connection(("127.0.0.1", port), timeout=5)
        except OSError:
            outer.close()
            continue
        inner.settimeout(None)
        for pair in ((outer, inner), (inner, outer)):
            threading.Thread(target=pump, args=pair, daemon=True).start()


for argument in sys.argv[1:]:
    descriptor, port = map(int, argument.split(":"))
    threading.Thread(target=serve, args=(socket.socket(fileno=descriptor), port)).start()
