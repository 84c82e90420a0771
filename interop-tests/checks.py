"""The tests of a suite that is written in Python: runs them one after the other against the brokers of the suite, and writes the closing
line that interop-tests/run reads."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from broker import Broker


NONE: Mapping[Callable, str] = MappingProxyType({})


def failure_of(test: Callable, world: object, reason: str | None) -> str | None:
    """Calls a test, and says how it failed. With the reason for which it fails, it must fail, by an assertion."""
    try:
        test(world)
    except Exception as error:
        is_known = reason is not None and isinstance(error, AssertionError)
        return None if is_known else traceback.format_exc()
    return None if reason is None else f"It passes, and leaves the list of tests that fail: {reason}.\n"


def run(
    tests: Iterable[Callable], world: object, brokers: list[Broker], words: list[str],
    not_yet: Mapping[Callable, str] = NONE,
) -> int:
    """Starts the brokers, calls the tests whose names contain one of the words (all, if there are none) with `world`, and stops the
    brokers that still run. Those in `not_yet` must fail, each for the reason there. Returns the exit code."""
    passed = failed = 0
    try:
        for broker in brokers:
            broker.start()
        for test in tests:
            name = test.__name__.replace("_", " ")
            if words and not any(word in name for word in words):
                continue
            reason = not_yet.get(test)
            failure = failure_of(test, world, reason)
            if failure is not None:
                failed += 1
                print(f"FAILED: {name}\n{failure}", flush=True)
            else:
                passed += 1
                print(f"ok: {name}" + ("" if reason is None else f": not yet, {reason}"), flush=True)
    finally:
        for broker in brokers:
            wrong = broker.finish()
            if wrong:
                failed += 1
                print(wrong, flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0
