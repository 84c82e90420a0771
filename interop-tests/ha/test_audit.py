"""Tests of the auditor: it accepts what may happen, and finds each thing that must not."""

from __future__ import annotations

import pytest

from audit import Auditor

Q = "one/plain"


def sent(id_: str, at: float = 0, session: str | None = None) -> list[list]:
    return [[at, "send?", Q, [id_], session], [at + 0.1, "send!", Q, [id_], None]]


def got(id_: str, number: int, at: float, where: str = "queue", asked: float | None = None, whole: bool = True) -> list:
    return [at, "got", Q, [id_], [number, where, at - 0.1 if asked is None else asked, 1000 + at, whole]]


def settled(verb: str, id_: str, at: float) -> list[list]:
    return [[at, f"{verb}?", Q, [id_], None], [at + 0.1, f"{verb}!", Q, [id_], None]]


def left(id_: str, number: int, where: str = "active") -> list:
    return [99, "left", Q, [id_], [number, where]]


def ended(verb: str, sent_: list[str], completed: list[str], at: float, answered: bool = True) -> list[list]:
    """A transaction that ends by `commit` or `rollback`."""
    return [[at, f"{verb}?", Q, sent_, completed], *([[at + 0.1, f"{verb}!", Q, sent_, completed]] if answered else [])]


def stated(event: str, value: str | None) -> list:
    return [0, event, Q, ["s"], value]


def found(*lines: list) -> list[str]:
    auditor = Auditor()
    auditor.take(lines)
    auditor.finish()
    return auditor.violations


SCHEDULED = [[0, "schedule?", Q, ["a"], 1005.0], [0.1, "schedule!", Q, ["a"], [1]]]

ALLOWED = {
    "received and completed": [*sent("a"), got("a", 1, 1), *settled("complete", "a", 2)],
    "still there": [*sent("a"), left("a", 1)],
    "not acknowledged, and gone": sent("a")[:1],
    "not acknowledged, and there": [sent("a")[0], got("a", 1, 1), left("a", 1)],
    "a completion without an answer, and gone": [*sent("a"), got("a", 1, 1), settled("complete", "a", 2)[0]],
    "a completion without an answer, and there": [*sent("a"), got("a", 1, 1), settled("complete", "a", 2)[0], got("a", 1, 3), left("a", 1)],
    "asked for before the completion": [*sent("a"), got("a", 1, 1), *settled("complete", "a", 2), got("a", 1, 3, asked=1.5)],
    "deferred, and by number": [*sent("a"), got("a", 1, 1), *settled("defer", "a", 2), got("a", 1, 3, "number"), *settled("complete", "a", 4)],
    "dead, and from there": [*sent("a"), got("a", 1, 1), *settled("dead", "a", 2), got("a", 1, 3, "dead"), *settled("complete", "a", 4)],
    "scheduled": [*SCHEDULED, got("a", 2, 6), *settled("complete", "a", 7)],
    "due when the request arrived": [*SCHEDULED, got("a", 1, 6), *settled("complete", "a", 7)],
    "a request that arrived late": [sent("a", 0, "s")[0], *sent("b", 1, "s"), got("b", 1, 2), got("a", 2, 3), left("a", 2), left("b", 1)],
    "scheduled and there": [*SCHEDULED, left("a", 1, "scheduled")],
    "scheduled and cancelled": [*SCHEDULED, *settled("cancel", "a", 2)],
    "sent twice, under one number": [*sent("a"), *sent("a", 1), got("a", 1, 2), left("a", 1)],
    "a session in order": [*sent("a", 0, "s"), *sent("b", 1, "s"), got("a", 1, 2), got("b", 2, 3), got("a", 1, 4), left("a", 1), left("b", 2)],
    "a transaction": [*sent("a"), got("a", 1, 1), *ended("commit", ["b", "c"], ["a"], 2), got("b", 2, 3), left("b", 2), left("c", 3)],
    "a transaction without an answer, whole": [*sent("a"), got("a", 1, 1), *ended("commit", ["b", "c"], ["a"], 2, False), got("b", 2, 3), left("b", 2),
                                               left("c", 3)],
    "a transaction without an answer, not at all": [*sent("a"), got("a", 1, 1), *ended("commit", ["b", "c"], ["a"], 2, False), left("a", 1)],
    "a transaction that completes what an earlier load has left": [got("x-1", 1, 1), *ended("commit", ["b-1"], ["x-1"], 2), left("b-1", 2)],
    "a transaction again": [*sent("a"), got("a", 1, 1), *ended("commit", ["b"], ["a"], 2, False), got("a", 1, 3), *ended("commit", ["c"], ["a"], 4),
                            left("c", 2)],
    "rolled back": [*sent("a"), got("a", 1, 1), *ended("rollback", ["b"], [], 2), left("a", 1)],
    "a state": [stated("state", None), stated("set?", "x"), stated("set!", "x"), stated("state", "x")],
    "a state without an answer, set": [stated("state", None), stated("set?", "x"), stated("state", "x"), stated("state", "x")],
    "an earlier load's state": [stated("state", "y"), stated("state", "y")],
    "a state without an answer, not set": [stated("state", None), stated("set?", "x"), stated("state", None)],
}
REFUSED = {
    "is lost": sent("a"),
    "is lost (received 1": [*sent("a"), got("a", 1, 1)],
    "came from the queue after its complete": [*sent("a"), got("a", 1, 1), *settled("complete", "a", 2), got("a", 1, 3)],
    "is there (active) after its complete": [*sent("a"), got("a", 1, 1), *settled("complete", "a", 2), left("a", 1)],
    "two completions": [*sent("a"), got("a", 1, 1), *settled("complete", "a", 2), *settled("complete", "a", 3)],
    "came from the queue after its defer": [*sent("a"), got("a", 1, 1), *settled("defer", "a", 2), got("a", 1, 3), left("a", 1)],
    "came from the queue after its dead": [*sent("a"), got("a", 1, 1), *settled("dead", "a", 2), got("a", 1, 3), left("a", 1)],
    "came from the queue after its cancel": [*SCHEDULED, *settled("cancel", "a", 2), got("a", 2, 6)],
    "before it was due": [*SCHEDULED, got("a", 2, 3), left("a", 2)],
    "number 1 belongs to a and to b": [*sent("a"), *sent("b"), left("a", 1), left("b", 1)],
    "has the numbers 1 and 2": [*sent("a"), got("a", 1, 1), got("a", 2, 2), left("a", 2)],
    "is there twice": [*sent("a"), left("a", 1), left("a", 1)],
    "with another body": [*sent("a"), got("a", 1, 1, whole=False), left("a", 1)],
    "was never sent": [left("a", 1)],
    "not in the order of sending": [*sent("a", 0, "s"), *sent("b", 1, "s"), left("a", 2), left("b", 1)],
    "c was acknowledged and is lost": [*sent("a"), got("a", 1, 1), *ended("commit", ["b", "c"], ["a"], 2), left("b", 2)],
    "only ['b'] are there": [*sent("a"), got("a", 1, 1), *ended("commit", ["b", "c"], ["a"], 2, False), left("b", 2)],
    "a was acknowledged and is lost": [*sent("a"), got("a", 1, 1), *ended("commit", ["b"], ["a"], 2, False)],
    "a transaction that completed it took effect": [*sent("a"), got("a", 1, 1), *ended("commit", ["b"], ["a"], 2, False), left("b", 2), left("a", 1)],
    "completed by 2 transactions": [*sent("a"), got("a", 1, 1), *ended("commit", ["b"], ["a"], 2, False), got("a", 1, 3),
                                    *ended("commit", ["c"], ["a"], 4), left("b", 2), left("c", 3)],
    "came from the queue after its complete was": [*sent("a"), got("a", 1, 1), *ended("commit", ["b"], ["a"], 2), got("a", 1, 3), left("b", 2)],
    "its transaction was rolled back": [*sent("a"), got("a", 1, 1), *ended("rollback", ["b"], [], 2), left("a", 1), left("b", 2)],
    "has the state None": [stated("state", None), stated("set?", "x"), stated("set!", "x"), stated("state", None)],
    "has the state x": [stated("state", None), stated("set?", "x"), stated("state", None), stated("state", "x")],
    "received out of order": [*sent("a", 0, "s"), *sent("b", 1, "s"), got("b", 2, 2), got("a", 1, 3), left("a", 1), left("b", 2)],
}


@pytest.mark.parametrize("name", ALLOWED)
def test_it_accepts(name: str) -> None:
    assert found(*ALLOWED[name]) == []


@pytest.mark.parametrize("text", REFUSED)
def test_it_finds(text: str) -> None:
    violations = found(*REFUSED[text])
    assert len(violations) == 1 and text in violations[0], violations


def test_the_longest_silence_is_found() -> None:
    auditor = Auditor()
    auditor.take([line for number, at in enumerate([0, 2, 5, 6]) for line in sent(f"{number}", at)])
    assert auditor.silence("one", 0, 10) == pytest.approx(3)
    assert auditor.silence("one", 1, 4) == pytest.approx(1.1)
    assert auditor.silence("one", 7, 9) is None
    assert auditor.silence("two", 0, 9) is None
