"""The right to listen at ports below 1024, to which SDKs go without being told."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys

# The lowest port that suites listen at.
LOWEST = 443
# Set in the network namespace that `in_namespace` makes.
INSIDE = "JITNEY_TESTS_NAMESPACE"

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


def are_permitted() -> bool:
    """Whether this process may listen at them."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", LOWEST))
        except PermissionError:
            return False
        except OSError:
            # It is used: the right is there.
            return True
    return True


def in_namespace() -> None:
    """Runs this program again in a network namespace of its own, where it has the right, if it lacks it and the system permits that.
    There is no way out of it: only suites that download nothing run there."""
    if INSIDE in os.environ:
        raise_loopback()
        return
    if are_permitted():
        return
    enter = ["unshare", "--user", "--map-root-user", "--net"]
    try:
        permitted = subprocess.run([*enter, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        permitted = False
    if permitted:
        os.execvpe(enter[0], [*enter, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


def raise_loopback() -> None:
    """The loopback interface of a new namespace is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        request = struct.pack("16sh", b"lo", 0)
        _, flags = struct.unpack("16sh", fcntl.ioctl(anything, SIOCGIFFLAGS, request))
        fcntl.ioctl(anything, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP))
