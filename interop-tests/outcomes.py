#!/usr/bin/env python3
"""Collects the outcomes of a suite's tests: writes scenarios.tsv for the matrix, and prints the closing line.

    TESTS | outcomes.py [--not-offered FILE]…                 lines `ok NAME` and `FAIL NAME`, or those of `cargo test`
    go test -json | outcomes.py --go [--not-offered FILE]…
    outcomes.py --junit [--not-offered FILE]… REPORT.xml…     JUnit reports

The name of a test begins with the numbers of its scenarios: `S24 S25 a title`, `TestS24_S25_a_title`, `test_s24_a_title`. FILE has the
scenarios that the client has no call for, with the reason: { "S05 S06 S231-S240": "no transactions" }. The input is printed as it comes.
The exit code is 0 if something passed and nothing failed. Suites in Python import `Outcomes`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

# What the matrix has room for.
NOTE_CHARACTERS_MAX = 80


class Outcomes:
    """The outcomes of a suite."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        # Name, outcome and note, for the matrix.
        self.rows: list[tuple[str, str, str]] = []

    def test(self, name: str, has_passed: bool) -> None:
        """Adds a test, which stands in the matrix under the scenarios in its name."""
        self.count(has_passed)
        self.rows += [(number, "pass" if has_passed else "fail", "") for number in scenarios(name)]

    def program(self, name: str, outcome: str, note: str = "") -> None:
        """Adds a test that is no scenario, such as a sample. `outcome` is pass, fail or not offered."""
        if outcome != "not offered":
            self.count(outcome == "pass")
        self.rows.append((name, outcome, note))

    def not_offered(self, reasons: dict[str, str]) -> None:
        """Adds scenarios that the client has no call for. One that ran all the same has failed."""
        ran = {name for name, _, _ in self.rows}
        for number, reason in expanded(reasons):
            if number in ran:
                self.fail(f"{number} ran, but is listed as not offered: {reason}")
            self.rows.append((number, "not offered", reason))

    def fail(self, what: str) -> None:
        """Adds a failure that is no test."""
        print(f"FAIL  {what}", flush=True)
        self.failed += 1

    def count(self, has_passed: bool) -> None:
        self.passed += has_passed
        self.failed += not has_passed

    def finish(self) -> int:
        """Writes the outcomes, prints the closing line and returns the exit code."""
        if work := os.environ.get("JITNEY_WORK"):
            lines = ["\t".join((name, outcome, shortened(note))) + "\n" for name, outcome, note in self.rows]
            Path(work, "scenarios.tsv").write_text("".join(lines))
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 0 if self.passed and not self.failed else 1


def shortened(note: str) -> str:
    return " ".join(note.split())[:NOTE_CHARACTERS_MAX]


def scenarios(name: str) -> list[str]:
    """The numbers that a test's name begins with: `tests::s07_s120_title` has S07 and S120."""
    found = re.match(r"(?:Test|test_)?((?:[Ss]\d+[ _])+)", name.rsplit("::", 1)[-1])
    return [f"S{int(number):02}" for number in re.findall(r"\d+", found[1])] if found else []


def expanded(reasons: dict[str, str]) -> Iterable[tuple[str, str]]:
    """Each scenario of `{ "S05 S231-S240": "reason" }` with its reason."""
    for words, reason in reasons.items():
        for word in words.split():
            first, _, last = word.replace("S", "").partition("-")
            for number in range(int(first), int(last or first) + 1):
                yield f"S{number:02}", reason


def read_lines(outcomes: Outcomes, lines: Iterable[str]) -> None:
    own = re.compile(r"(ok|FAIL) +(\S.*?)(?: \([\d.]+ m?s\))?")
    cargo = re.compile(r"test (\S+) \.\.\. (ok|FAILED|ignored)")
    for line in lines:
        print(line, end="", flush=True)
        if found := own.fullmatch(line.rstrip()):
            outcomes.test(found[2], found[1] == "ok")
        elif found := cargo.fullmatch(line.rstrip()):
            outcomes.test(found[1], found[2] == "ok")


def read_go(outcomes: Outcomes, lines: Iterable[str]) -> None:
    """Reads `go test -json`; prints a line per test, and the output of those that did not pass."""
    output: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            print(line, end="", flush=True)
            continue
        name, action = event.get("Test", ""), event["Action"]
        if action in ("output", "build-output"):
            output[name].append(event["Output"])
        elif action in ("pass", "fail", "skip"):
            # With the package ends what has not ended by itself: tests that hang, or the output of a build.
            ended = [name] if name or action == "pass" else [*output, name]
            for each in dict.fromkeys(ended):
                print_go(outcomes, each, action, event.get("Elapsed", 0), output.pop(each, []))
            if action == "fail" and not outcomes.failed:
                outcomes.fail(event["Package"])


def print_go(outcomes: Outcomes, name: str, action: str, seconds: float, said: list[str]) -> None:
    has_passed = action == "pass"
    if name:
        outcomes.test(name, has_passed)
        print(f"{'ok  ' if has_passed else 'FAIL'}  {name} ({seconds * 1000:.0f} ms)", flush=True)
    if not has_passed:
        print("".join(f"      {text}" for text in said if not text.lstrip().startswith("=== ")), end="", flush=True)


def read_junit(outcomes: Outcomes, reports: list[str]) -> None:
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            outcomes.test(case.get("name", ""), all(case.find(tag) is None for tag in ("failure", "error", "skipped")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--go", action="store_true")
    parser.add_argument("--junit", nargs="+", metavar="REPORT", default=[])
    parser.add_argument("--not-offered", action="append", metavar="FILE", default=[])
    options = parser.parse_args()
    outcomes = Outcomes()
    if options.junit:
        read_junit(outcomes, options.junit)
    else:
        sys.stdin.reconfigure(errors="replace")
        (read_go if options.go else read_lines)(outcomes, sys.stdin)
    for path in options.not_offered:
        outcomes.not_offered(json.loads(Path(path).read_text()))
    return outcomes.finish()


if __name__ == "__main__":
    sys.exit(main())
