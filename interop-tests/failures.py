"""Finds in a suite's log which tests failed, and why, in a few lines: the runner prints them last.

Suites print `FAIL` or `FAILED` and the name of a test, and below it the reason; pytest, cargo and Maven have forms of their own.
"""

from __future__ import annotations

import re

# What is printed of a failure below its name.
REASON_LINES_MAX = 5
CHARACTERS_MAX = 200
# What is printed of a log that names no failure.
TAIL_LINES = 10

# Lines that name a failure, with the name in a group.
HEADS = [
    re.compile(r"\s*FAIL(?:ED)?:? +(\S.*?)(?: \([\d.]+ m?s\))?"),
    # A report of pytest: `____ test_s01_a_message_goes_through ____`.
    re.compile(r"_{3,} (.+?) _{3,}"),
    # The output of a test of cargo.
    re.compile(r"---- (\S+) stdout ----"),
    re.compile(r" *--- FAIL: (\S+).*"),
    re.compile(r"\[ERROR\] +(\S.*)"),
    re.compile(r"\s*(VIOLATION .*)"),
]
# Lines with which the reason ends: another test, pytest's rules and its summary, the closing line.
ENDS = re.compile(r"ok +\S.*|test \S+ \.\.\. .*|={3,}.*|FAILED \S+\.py::.*|\d+ passed, \d+ failed.*")


def found(log: str) -> list[list[str]]:
    """The failures in a log: of each its name and the lines of its reason, in the order of the log."""
    failures: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in log.splitlines():
        if ENDS.fullmatch(line):
            current = None
        elif head := next(filter(None, (each.fullmatch(line) for each in HEADS)), None):
            current = failures.setdefault(head[1], [])
        elif current is not None and line.strip():
            current.append(line.rstrip())
    return [[shortened(name), *map(shortened, reason(lines))] for name, lines in failures.items()]


def reason(lines: list[str]) -> list[str]:
    """The telling lines: where and why in a report of pytest, the end of a traceback of Python, the beginning of all others."""
    errors = [line[1:].strip() for line in lines if line.startswith("E  ")]
    if errors:
        places = [line for line in lines if re.match(r"\S+\.py:\d+: in ", line)]
        return [*places[-1:], *errors][:REASON_LINES_MAX]
    tracebacks = [at for at, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    if tracebacks:
        return [line.strip() for line in end_of_traceback(lines[tracebacks[-1]:])[-REASON_LINES_MAX:]]
    return [line.strip() for line in lines[:REASON_LINES_MAX]]


def end_of_traceback(lines: list[str]) -> list[str]:
    """A traceback up to the line that names the exception, which is indented as the first one is. What a suite prints after it is cut off:
    it tells of other tests."""
    def indent(line: str) -> int:
        return len(line) - len(line.lstrip())

    last = next((at for at, line in enumerate(lines) if at and indent(line) <= indent(lines[0])), len(lines) - 1)
    return lines[:last + 1]


def shortened(line: str) -> str:
    return line if len(line) <= CHARACTERS_MAX else line[:CHARACTERS_MAX - 1] + "…"


def summary(log: str, lines_max: int) -> list[str]:
    """At most `lines_max` lines about what failed. If not all has room, names go before reasons."""
    failures = found(log)
    if not failures:
        tail = [line for line in log.splitlines() if line.strip()][-TAIL_LINES:]
        return [shortened(line) for line in tail[:max(lines_max, 0)]]
    left = lines_max - len(failures)
    if left < 0:
        names = [name for name, *_ in failures[:max(lines_max - 1, 0)]]
        return [*names, f"and {len(failures) - len(names)} more"]
    lines: list[str] = []
    for name, *why in failures:
        lines += [name, *("  " + line for line in why[:left])]
        left -= min(left, len(why))
    return lines
