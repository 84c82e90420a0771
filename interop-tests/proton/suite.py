"""Runs the modules named, or all, and prints the closing line that the runner reads."""

import sys
import unittest
from pathlib import Path

loader = unittest.defaultTestLoader
here = str(Path(__file__).resolve().parent)
suite = loader.loadTestsFromNames(sys.argv[1:]) if sys.argv[1:] else loader.discover(here)
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
failed = len(result.failures) + len(result.errors)
print(f"{result.testsRun - failed} passed, {failed} failed")
sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
