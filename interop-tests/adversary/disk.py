"""A slow disk: what one process writes is held back by the system, as a slow device would hold it back.

The broker's own disk is throttled for the broker alone, by a control group; where that cannot be done (no right to make groups, a
filesystem without a device of its own) `SlowDisk.make` says so, and the tests overload the disk by the size of what they send.
"""

from __future__ import annotations

import os
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")


class SlowDisk:
    """A control group whose members write slowly to the device below a directory."""

    def __init__(self, group: Path, rule: Path, device: str):
        self.group, self.rule, self.device = group, rule, device

    @classmethod
    def make(cls, name: str, directory: Path) -> "SlowDisk | str":
        """Returns it, or why there is none."""
        device = device_of(directory)
        if device is None:
            return "the data is not on a block device"
        unified = (GROUPS / "cgroup.controllers").is_file()
        group = (GROUPS if unified else GROUPS / "blkio") / name
        rule = group / ("io.max" if unified else "blkio.throttle.write_bps_device")
        try:
            group.mkdir(exist_ok=True)
        except OSError as error:
            return f"no control group: {error.strerror}"
        if not rule.exists():
            group.rmdir()
            return f"control groups do not have {rule.name}"
        return cls(group, rule, device)

    def _write(self, rate: str) -> None:
        words = f"{self.device} wbps={rate}" if self.rule.name == "io.max" else f"{self.device} {rate}"
        self.rule.write_text(words + "\n")

    def slow(self, pid: int, bytes_per_second: int) -> None:
        """From now on the process writes no faster."""
        self._write(str(bytes_per_second))
        (self.group / "cgroup.procs").write_text(f"{pid}\n")

    def remove(self) -> None:
        """From now on its members write as fast as they can; they are given back to the group above."""
        self._write("max" if self.rule.name == "io.max" else "0")
        for pid in (self.group / "cgroup.procs").read_text().split():
            (self.group.parent / "cgroup.procs").write_text(f"{pid}\n")
        self.group.rmdir()


def device_of(directory: Path) -> str | None:
    """The whole disk below a directory, as `major:minor`; None if there is none."""
    number = os.stat(directory).st_dev
    found = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not found.exists():
        return None
    # Rules are for disks, not for their partitions.
    disk = found.resolve()
    if (disk / "partition").is_file():
        disk = disk.parent
    return (disk / "dev").read_text().strip()
