"""Runs the tests of administration that the Python SDK has in its source distribution, unchanged, and holds them to what is expected.

    tests.py                all
    tests.py NAME…          those whose names hold one

They were recorded against a Standard namespace, and so is that of the broker, which verifies keys.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from broker import WORK  # noqa: E402
from secured import ROOT, ROOT_KEY, described, finish  # noqa: E402
from outcomes import Outcomes  # noqa: E402
from sdists import unpacked  # noqa: E402

# Every test clears the namespace, so that the two kinds have a broker each, at an address of its own.
ADDRESSES = {"mgmt_tests": "127.0.0.34", "mgmt_tests/async": "127.0.0.35"}

# Tests that cannot pass here, and why.
ELSEWHERE: dict[str, str] = {}

LIMIT = 300


def run(directory: Path, part: str, words: list[str]) -> tuple[dict[str, str], str | None]:
    """The outcome of each test of one part by its name, and what is wrong with how the broker ended."""
    secured = described(directory, ADDRESSES[part], {"Sku": "Standard"})
    secured.broker.start()
    tests = unpacked("azure-servicebus", version("azure-servicebus")) / "tests"
    report = directory / "report.xml"
    paths = [HERE / "stand-ins", HERE.parent / "samples" / "trust", tests, tests / "mgmt_tests", tests / "mgmt_tests" / "async"]
    environment = {
        **os.environ,
        "ADMIN_CONNECTION_STRING": secured.connection_string(),
        "ADMIN_NAMESPACE": secured.address,
        "ADMIN_KEY_NAME": ROOT,
        "ADMIN_KEY": ROOT_KEY,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "SSL_CERT_FILE": secured.authority,
        "REQUESTS_CA_BUNDLE": secured.authority,
    }
    command = [
        sys.executable, "-m", "pytest", "--quiet", "--tb=short", "--show-capture=no", "--import-mode=append", "-p", "live", "-p", "no:cacheprovider",
        "-o", "asyncio_mode=auto", "--timeout=60", f"--rootdir={tests}", f"--junit-xml={report}",
        *(["-k", " or ".join(words)] if words else []),
        *map(str, sorted((tests / part).glob("test_*.py"))),
    ]
    try:
        subprocess.run(command, env=environment, cwd=directory, stdin=subprocess.DEVNULL, timeout=LIMIT)
    finally:
        complaint = finish(secured)
    return read(report), complaint


def read(report: Path) -> dict[str, str]:
    """Of each test "passed", "skipped: …", or what it said."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        what = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        found[case.get("name")] = "passed" if what is None else f"{what.tag}: {what.get('message')}"
    return found


def judged(name: str, outcome: str) -> tuple[str, str]:
    """What becomes of a test in the matrix, and the note."""
    reason = ELSEWHERE.get(name.replace("_async_", "_"))
    if outcome.startswith("skipped: "):
        return "not offered", "left out by its authors"
    if reason:
        # What has begun to pass is to be taken off the list.
        return ("fail", "it passes, but is expected not to") if outcome == "passed" else ("not offered", reason)
    return ("pass", "") if outcome == "passed" else ("fail", outcome)


def main() -> int:
    work = Path(os.environ.get("JITNEY_WORK") or WORK / "python-admin")
    unpacked("azure-servicebus", version("azure-servicebus"))
    with ThreadPoolExecutor() as pool:
        parts = {part: pool.submit(run, work / part.replace("/", "-"), part, sys.argv[1:]) for part in ADDRESSES}
    outcomes = Outcomes()
    for part, done in parts.items():
        found, complaint = done.result()
        if complaint:
            outcomes.fail(complaint)
        for name, outcome in sorted(found.items()):
            what, note = judged(name, outcome)
            outcomes.program(name, what, note)
            if what == "fail":
                print(f"FAIL  {name}\n      {outcome}")
    return outcomes.finish()


if __name__ == "__main__":
    sys.exit(main())
