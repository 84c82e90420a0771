"""The tests of a suite that is written in Python: runs them one after the other against the brokers of the suite, and writes the closing
line that interop-tests/run reads."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable

from broker import Broker


def run(tests: Iterable[Callable], world: object, brokers: list[Broker], words: list[str]) -> int:
    """Starts the brokers, calls the tests whose names contain one of the words (all, if there are none) with `world`, and stops the
    brokers that still run. Returns the exit code."""
    passed = failed = 0
    try:
        for broker in brokers:
            broker.start()
        for test in tests:
            name = test.__name__.replace("_", " ")
            if words and not any(word in name for word in words):
                continue
            try:
                test(world)
            except Exception:
                failed += 1
                print(f"FAILED: {name}\n{traceback.format_exc()}", flush=True)
            else:
                passed += 1
                print(f"ok: {name}", flush=True)
    finally:
        for broker in brokers:
            wrong = broker.finish()
            if wrong:
                failed += 1
                print(wrong, flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0
