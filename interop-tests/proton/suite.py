"""Runs the tests named, or all.

    suite.py                everything
    suite.py s24 s101       the tests whose names contain a word

Tests mostly wait, so they run side by side; those that end the broker run after the others, by themselves.
"""

import json
import sys
import time
import unittest
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from textwrap import indent

TOGETHER = 10
# Modules whose tests run one after the other, beside the others: those of the secured broker count its connections.
WHOLE = {"test_transports"}
ALONE = {"test_restarts"}

here = Path(__file__).resolve().parent
sys.path.append(str(here.parent))
from outcomes import Outcomes  # noqa: E402


def tests_of(suite: unittest.TestSuite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from tests_of(each)
        else:
            yield each


class Result(unittest.TestResult):
    """The duration of each test, and what was wrong with it, by its method's name."""

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


def run(ids: list[str]) -> tuple[dict[str, float], dict[str, str]]:
    """Runs tests, in a process of the pool; their times, and what was wrong."""
    result = Result()
    unittest.defaultTestLoader.loadTestsFromNames(ids).run(result)
    text = ""
    for name in result.seconds | result.complaints:
        complaint = result.complaints.get(name, "")
        text += f"{'FAIL' if complaint else 'ok  '}  {name} ({result.seconds.get(name, 0):.1f} s)\n{indent(complaint, '      ')}"
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
        groups_run = list(pool.map(run, [group for group in groups if group]))
    groups_run += [run([each]) for each in ids if module[each] in ALONE]
    for each_seconds, each_complaints in groups_run:
        seconds.update(each_seconds)
        complaints.update(each_complaints)
    outcomes = Outcomes()
    for name in seconds | complaints:
        outcomes.test(name, name not in complaints)
    outcomes.not_offered(json.loads((here / "not-offered.json").read_text()))
    return outcomes.finish()


if __name__ == "__main__":
    sys.exit(main())
