"""Source distributions of Python packages, downloaded once. They contain the samples and tests that the packages lack."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from broker import WORK

CACHE = WORK / "sdists"


def unpacked(package: str, version: str) -> Path:
    """The directory of an unpacked source distribution, which is downloaded if it is not there yet."""
    directory = CACHE / f"{package}-{version}"
    if directory.is_dir():
        return directory
    # Suites may download the same at the same time: each into a directory of its own, and the first one stays.
    scratch = CACHE / f"fetching-{package}-{version}-{os.getpid()}"
    scratch.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:",
         "--dest", str(scratch), f"{package}=={version}"],
        check=True,
    )
    (archive,) = scratch.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(scratch / "unpacked", filter="data")
    (top,) = (scratch / "unpacked").iterdir()
    try:
        top.rename(directory)
    except OSError:
        if not directory.is_dir():
            raise
    shutil.rmtree(scratch)
    return directory
