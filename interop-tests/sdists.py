"""Source distributions of Python packages, fetched once: what their authors wrote besides the package, samples and tests."""

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
    """The source distribution, unpacked; fetched from the registry when it is not there yet."""
    directory = CACHE / f"{package}-{version}"
    if directory.is_dir():
        return directory
    # One that fetches the same at the same time has a directory of its own, and the first one stays.
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
