"""Hosts of a network that can be cut: network namespaces of this machine, connected by a bridge. They need the rights to make them.

Nothing but this program's own interfaces is touched, and they end with it. A host that is cut off sends and receives nothing, and nothing tells it or
the others: no connection is reset.
"""

from __future__ import annotations

import atexit
import os
import subprocess
from pathlib import Path

# Addresses for tests of networks, which no network routes (RFC 2544).
NETWORK = "198.18"
# States of a port of a bridge.
FORWARDING, DISABLED = "3", "0"


class NetworkError(Exception):
    """A host could not be made."""


def run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip()}")


class Host:
    """One host: programs run in it by its wrapper."""

    def __init__(self, name: str, port: str, address: str):
        self.name, self.port, self.address = name, port, address

    def wrapper(self, program: Path, directory: Path) -> Path:
        """A script that runs a program in this host, as the same process."""
        script = directory / f"{program.name}-in-{self.name}"
        script.write_text(f'#!/bin/sh\nexec ip netns exec {self.name} {program} "$@"\n')
        script.chmod(0o755)
        return script

    def cut(self) -> None:
        """Loses every packet from and to it."""
        run("bridge", "link", "set", "dev", self.port, "state", DISABLED)

    def join(self) -> None:
        """Ends `cut`."""
        run("bridge", "link", "set", "dev", self.port, "state", FORWARDING)


class Network:
    """A bridge with hosts. This process has the address `own`."""

    def __init__(self, count: int):
        number = os.getpid() % 250 + 1
        self.prefix = f"jt{number}"
        self.own = f"{NETWORK}.{number}.1"
        self.hosts = [Host(f"{self.prefix}-{at}", f"{self.prefix}p{at}", f"{NETWORK}.{number}.{10 + at}") for at in range(count)]

    def __enter__(self) -> Network:
        atexit.register(self.close)
        self.close()
        try:
            run("ip", "link", "add", self.prefix, "type", "bridge")
            run("ip", "address", "add", f"{self.own}/24", "dev", self.prefix)
            run("ip", "link", "set", self.prefix, "up")
            for host in self.hosts:
                run("ip", "netns", "add", host.name)
                run("ip", "link", "add", host.port, "type", "veth", "peer", "name", "eth0", "netns", host.name)
                run("ip", "link", "set", host.port, "master", self.prefix, "up")
                for words in (["link", "set", "lo", "up"], ["address", "add", f"{host.address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
                    run("ip", "-n", host.name, *words)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        atexit.unregister(self.close)
        self.close()

    def close(self) -> None:
        """Removes what is there of it. A host lives as long as a program in it; its interface does not."""
        for host in self.hosts:
            subprocess.run(["ip", "link", "delete", host.port], capture_output=True, check=False)
            subprocess.run(["ip", "netns", "delete", host.name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", self.prefix], capture_output=True, check=False)
