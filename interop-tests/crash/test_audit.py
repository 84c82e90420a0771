"""The auditor finds what it is there for, and lets pass what may be."""

import re

import pytest

from audit import ACTIVE, DEAD, DEAD_LETTERS, DEFERRED, SCHEDULED, Auditor

Q = "crash-2"
SENT = [["send?", Q, ["a", "b", "c"], None], ["send!", Q, ["a", "b", "c"], None]]
ALL = [(Q, "a", ACTIVE, 1), (Q, "b", ACTIVE, 2), (Q, "c", ACTIVE, 3)]


def got(id_, number, how="received", queue=Q):
    return ["got", queue, [id_], [number, how, True]]


def asked(verb, id_):
    return [f"{verb}?", Q, [id_], None]


def told(verb, id_):
    return [f"{verb}!", Q, [id_], None]


def audit(lines, found):
    auditor = Auditor()
    for line in lines:
        auditor.read(*line)
    auditor.compare(found)
    return auditor.violations


@pytest.mark.parametrize(
    "lines, found",
    [
        (SENT, ALL),
        # Asked for, not acknowledged: there or not.
        (SENT + [["send?", Q, ["d"], None]], ALL),
        (SENT + [["send?", Q, ["d"], None]], ALL + [(Q, "d", ACTIVE, 4)]),
        (SENT + [got("a", 1), asked("complete", "a")], ALL),
        (SENT + [got("a", 1), asked("complete", "a")], ALL[1:]),
        (SENT + [got("a", 1), asked("complete", "a"), told("complete", "a")], ALL[1:]),
        (SENT + [got("a", 1), asked("defer", "a"), told("defer", "a")], [(Q, "a", DEFERRED, 1)] + ALL[1:]),
        # The dead letter is received and completed before its sender is told.
        (
            SENT + [got("a", 1), asked("dead", "a"), got("a", 1, queue=Q + DEAD_LETTERS), asked("complete", "a"), told("complete", "a"),
                    told("dead", "a")],
            ALL[1:],
        ),
        # A near schedule whose acknowledgement was lost took a number that nobody saw.
        (SENT + [["schedule?", Q, ["d"], True]], ALL + [(Q, "d", ACTIVE, 5)]),
        (SENT + [["schedule?", Q, ["d"], True], got("d", 5)], ALL + [(Q, "d", ACTIVE, 5)]),
        (SENT + [["schedule?", Q, ["d"], True], ["schedule!", Q, ["d"], [4]]], ALL + [(Q, "d", ACTIVE, 5)]),
    ],
)
def test_what_may_be_passes(lines, found):
    assert audit(lines, found) == []


@pytest.mark.parametrize(
    "lines, found, complaint",
    [
        (SENT, ALL[:2], "c is lost"),
        (SENT, ALL + [(Q, "a", ACTIVE, 4)], "a is there twice"),
        (SENT, ALL + [(Q, "x", ACTIVE, 4)], "x was never sent"),
        (SENT, ALL[:2] + [(Q, "c", ACTIVE, 4)], r"numbers \[3\] were skipped"),
        (SENT, ALL[:2] + [(Q, "c", ACTIVE, 2)], "number 2 belongs to"),
        (SENT, ALL[:2] + [(Q, "c", DEAD, 3)], "c is dead; it must be"),
        (SENT + [got("a", 1), asked("complete", "a"), told("complete", "a")], ALL, "a is active; it must be"),
        (SENT + [got("a", 1), asked("complete", "a"), told("complete", "a"), got("a", 1)], ALL[1:], "can only be"),
        (SENT + [got("a", 1), asked("complete", "a"), got("a", 1)], ALL, "held its lock"),
        (SENT + [got("a", 1), asked("defer", "a"), told("defer", "a")], ALL, "a is active; it must be"),
        (SENT + [got("a", 1), asked("dead", "a"), told("dead", "a")], ALL[1:] + [(Q + DEAD_LETTERS, "a", DEAD, 2)], "number 2 belongs to"),
        (SENT + [["send?", Q, ["d"], None], got("d", 4)], ALL, "d is lost"),
        (SENT + [["schedule?", Q, ["d"], True], ["schedule!", Q, ["d"], [4]]], ALL + [(Q, "d", ACTIVE, 6)], r"numbers \[5\] were skipped"),
        (SENT + [["schedule?", Q, ["d"], False], ["schedule!", Q, ["d"], [4]]], ALL, "d is lost"),
        (
            SENT + [["schedule?", Q, ["d"], False], ["schedule!", Q, ["d"], [4]], asked("cancel", "d"), told("cancel", "d")],
            ALL + [(Q, "d", SCHEDULED, 4)], "d is scheduled; it must be",
        ),
    ],
)
def test_what_may_not_be_is_found(lines, found, complaint):
    violations = audit(lines, found)
    assert any(re.search(complaint, each) for each in violations), violations
