#!/usr/bin/env python3
"""Adds up JUnit reports and prints the closing line that `interop-tests/run` reads; fails when something failed or nothing ran."""

import sys
import xml.etree.ElementTree as ElementTree

total = failed = skipped = 0
for name in sys.argv[1:]:
    for suite in ElementTree.parse(name).iter("testsuite"):
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
print(f"{total - failed - skipped} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
sys.exit(0 if total > skipped and not failed and not skipped else 1)
