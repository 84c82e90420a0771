#!/usr/bin/env python3
"""Servers over PostgreSQL for tests of the console, with the kit of interop-tests/ha.

    fleet.py DIRECTORY SERVERS    servers over a primary and a standby, until its input ends

It prints what there is as one line of JSON, then carries out the commands of its input, a list of JSON a line, and answers each with a line:
`["kill", SERVER]`, `["start", SERVER]`, `["query", SQL]`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "ha"), str(HERE.parent)]
from fleet import Fleet, Server, configuration, wait  # noqa: E402
from postgres import Cluster  # noqa: E402

NAMESPACES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]


def main() -> None:
    directory = Path(sys.argv[1]).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    config = configuration(directory / "Config.json", {name: {"Queues": [{"Name": "orders"}]} for name in NAMESPACES})
    with Cluster(directory / "postgres", standbys=1) as cluster, Fleet(directory / "fleet", cluster.url(), int(sys.argv[2]), config, proxied=False) as fleet:
        # One that has just been taken over is owned before it is served.
        wait(lambda: all(answers(server, name) for server in fleet.servers for name in NAMESPACES), 60, "not each namespace is served")
        # The first server takes them all, and some move when the next is there: a page that is open then is cut off.
        share = len(NAMESPACES) // len(fleet.servers)
        wait(lambda: all(len(server.owned()) == share for server in fleet.servers), 60, "the namespaces are not spread evenly")
        say({"servers": {server.name: f"http://{server.host}:{server.http[1]}" for server in fleet.servers}, "namespaces": NAMESPACES})
        for line in sys.stdin:
            command, argument = json.loads(line)
            if command == "kill":
                fleet[argument].kill()
            elif command == "start":
                fleet[argument].start()
            else:
                cluster.query(argument)
            say(True)


def answers(server: Server, namespace: str) -> bool:
    try:
        return bool(server.get(f"/api/v1/access?namespace={namespace}"))
    except OSError:
        return False


def say(what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
