"""The loads of the Python, Go and Java SDKs, at the same time on the same namespaces: load.py, goload and javaload.

Each has its own queues in every namespace (ALL_QUEUES) and its own journal. goload and javaload are built when they are first used.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from audit import Auditor
from faults import CLIENT_SECONDS
from load import QUEUES, Load, patience, wait_more

HERE = Path(__file__).resolve().parent
TARGET = HERE / "target"
GOLOAD = TARGET / "goload"
JAVALOAD = TARGET / "javaload"
# Small, and at once: two cores have three databases and three servers beside it.
JAVA = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JAVALOAD / 'classes'}:{JAVALOAD / 'lib'}/*"]
# The queues of a namespace: the Python SDK's, and one for each of the others.
ALL_QUEUES = [*QUEUES, *({"Name": name, "Properties": QUEUES[0]["Properties"]} for name in ("go", "java"))]


@functools.cache
def build_loads() -> None:
    """Builds goload and javaload, and the clients of test_sdks.py that are beside them."""
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    subprocess.run(["go", "build", "-o", f"{TARGET}/", ".", "./steady"], cwd=HERE / "goload", env=environment, check=True)
    # Maven checks what it downloads; jars go into target/javaload/lib, so that one JVM is enough to run them.
    subprocess.run(["mvn", "--batch-mode", "--quiet", "--strict-checksums", "compile", "dependency:copy-dependencies"], cwd=HERE / "javaload",
                   check=True)


class Audits(dict[str, Auditor]):
    """The auditors of the loads, by SDK."""

    @property
    def violations(self) -> list[str]:
        """Those of all; and an SDK that has completed nothing has tested nothing."""
        found = [f"{sdk}: {violation}" for sdk, auditor in self.items() for violation in auditor.violations]
        return found + [f"{sdk} has completed nothing" for sdk, auditor in self.items() if not auditor.counts["complete!"]]

    def silences(self, namespaces: list[str], since: float, until: float) -> dict[str, dict[str, float | None]]:
        """By SDK and namespace, the longest time without an acknowledgement of a sending."""
        return {sdk: {name: auditor.silence(name, since, until) for name in namespaces} for sdk, auditor in self.items()}

    def longest(self, namespaces: list[str], since: float, until: float) -> str:
        """Says for each SDK the longest of all namespaces."""
        silences = self.silences(namespaces, since, until).items()
        return ", ".join(f"{sdk} {max(float('inf') if it is None else it for it in found.values()):.1f} s" for sdk, found in silences)

    def late(self, namespaces: list[str], since: float, until: float, seconds: float) -> list[str]:
        """The namespaces that were silent for longer than a fault allows, for an SDK that had to connect again."""
        limit = patience() * (seconds + CLIENT_SECONDS)
        return [f"{sdk}: {name} was silent {'to the end' if silence is None else f'for {silence:.1f} s'}, not {limit:.1f} s at most"
                for sdk, found in self.silences(namespaces, since, until).items()
                for name, silence in found.items() if silence is None or silence > limit]


class Loads:
    """The three loads; what Load does, for all of them."""

    def __init__(self, directory: Path, port: int, namespaces: list[str], name: str = "load"):
        """`port` is the balancer's. The journals are in the directory: NAME-python.journal and so on."""
        build_loads()
        # Python and Go are told the address; Java finds the names here.
        hosts = directory / f"{name}.hosts"
        hosts.write_text("".join(f"127.0.0.1 {namespace}.localhost\n" for namespace in namespaces))
        programs = {"Python": None, "Go": [str(GOLOAD)], "Java": [*JAVA, f"-Djdk.net.hosts.file={hosts}", "Javaload"]}
        self.namespaces = namespaces
        with ExitStack() as resources:
            self.by_sdk = {sdk: resources.enter_context(Load(directory / f"{name}-{sdk.lower()}.journal", f"127.0.0.1:{port}", namespaces, program))
                           for sdk, program in programs.items()}
            self._resources = resources.pop_all()

    def __enter__(self) -> Loads:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def acknowledged(self) -> Counter:
        """How many sendings of all SDKs together were acknowledged so far, by namespace."""
        return sum((load.acknowledged() for load in self.by_sdk.values()), Counter())

    def wait_more(self, count: int, seconds: float = 60, namespaces: list[str] | None = None) -> None:
        """Waits until each SDK had so many further sendings acknowledged in each namespace."""
        wait_more(self.by_sdk.values(), count, seconds, namespaces or self.namespaces)

    def finish(self) -> Audits:
        """Stops sending, and returns what the auditors say when all is received."""
        for load in self.by_sdk.values():
            load.stop()
        return Audits({sdk: load.finish() for sdk, load in self.by_sdk.items()})
