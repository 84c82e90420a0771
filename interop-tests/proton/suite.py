"""Runs the tests named, or all, writes the lines of the matrix (../README.md) and prints the closing line.

    suite.py                everything
    suite.py s24 s101       the tests whose names contain a word

Tests mostly wait, so they run side by side; those that end the broker run after the others, by themselves.
"""

import os
import re
import sys
import time
import unittest
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from not_offered import NOT_OFFERED

TOGETHER = 10
# Modules with a broker of their own, which one fixture starts; it comes along with the others as a whole.
WHOLE = {"test_doors"}
ALONE = {"test_restarts"}

here = Path(__file__).resolve().parent


def tests_of(suite: unittest.TestSuite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from tests_of(each)
        else:
            yield each


class Outcome(unittest.TestResult):
    """What became of each test, by its method's name."""

    def __init__(self):
        super().__init__()
        self.complaints: dict[str, str] = {}
        self.seconds: dict[str, float] = {}

    def startTest(self, test):
        super().startTest(test)
        self.seconds[name_of(test)] = -time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.seconds[name_of(test)] += time.monotonic()

    def addError(self, test, err):
        super().addError(test, err)
        self.complaints[name_of(test)] = self.errors[-1][1]

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.complaints[name_of(test)] = self.failures[-1][1]


def name_of(test) -> str:
    """A fixture that fails is no test, and has a name all the same."""
    return getattr(test, "_testMethodName", str(test))


def scenarios_of(name: str) -> list[str]:
    """`test_s120_s121_sessions_are_listed` is of S120 and S121."""
    prefix = re.match(r"test_((?:s\d+_)+)", name)
    return [word.upper() for word in prefix[1].split("_") if word] if prefix else []


def run(ids: list[str]) -> tuple[dict[str, float], dict[str, str]]:
    """Runs tests, in a process of the pool; their times, and what was wrong."""
    result = Outcome()
    unittest.defaultTestLoader.loadTestsFromNames(ids).run(result)
    text = "".join(
        f"{name} ... {'FAILED' if name in result.complaints else 'ok'} ({seconds:.1f} s)\n"
        for name, seconds in result.seconds.items()
    )
    text += "".join(f"\n{name}\n{complaint}\n" for name, complaint in result.complaints.items())
    sys.stdout.write(text)
    sys.stdout.flush()
    return result.seconds, result.complaints


def main() -> int:
    words = sys.argv[1:]
    ids = [test.id() for test in tests_of(unittest.defaultTestLoader.discover(str(here)))]
    if words:
        ids = [each for each in ids if any(word in each for word in words)]
    module = {each: each.split(".")[0] for each in ids}
    groups = [[each for each in ids if module[each] == name] for name in sorted(WHOLE)]
    groups += [[each] for each in ids if module[each] not in WHOLE | ALONE]
    seconds: dict[str, float] = {}
    complaints: dict[str, str] = {}
    with ProcessPoolExecutor(TOGETHER) as pool:
        outcomes = list(pool.map(run, [group for group in groups if group]))
    outcomes += [run([each]) for each in ids if module[each] in ALONE]
    for of_group in outcomes:
        seconds.update(of_group[0])
        complaints.update(of_group[1])
    if "JITNEY_WORK" in os.environ:
        lines = [f"{each}\t{'fail' if name in complaints else 'pass'}\t" for name in seconds for each in scenarios_of(name)]
        lines += [f"{each}\tnot offered\t{why}" for each, why in NOT_OFFERED.items()]
        (Path(os.environ["JITNEY_WORK"]) / "scenarios.tsv").write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(seconds.keys() - complaints.keys())} passed, {len(complaints)} failed")
    return 0 if seconds and not complaints else 1


if __name__ == "__main__":
    sys.exit(main())
