"""What a machine's administrator sets up, for the interpreters of this suite alone: whom to trust, and a line of /etc/hosts.

The SDK trusts the bundle of `certifi`, for which there is no setting. The name of the namespace must be one of the service's, because
some frameworks add `.servicebus.windows.net` to what they are given; it leads to this suite's broker.
"""

import os
import socket

resolve = socket.getaddrinfo


def resolve_here(host, *arguments, **options):
    if host is not None and host == os.environ.get("SUITE_HOST"):
        host = os.environ["SUITE_ADDRESS"]
    return resolve(host, *arguments, **options)


socket.getaddrinfo = resolve_here

try:
    import certifi
except ImportError:
    # Another interpreter, such as the broker's keeper.
    pass
else:
    shipped = certifi.where
    certifi.where = lambda: os.environ.get("SSL_CERT_FILE") or shipped()
