#!/usr/bin/env python3
"""What takes the bytes of a binary that has its symbols, by crate: `CARGO_PROFILE_DIST_STRIP=none packaging/build TARGET`, then
`sizes.py target/static/TARGET/dist/jitney`.

A function of a generic type counts for the crate in which it is written, and not for the one that uses it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

# The path of a function begins with its crate, behind the signs of types: <&mut [jitney::owner::Owner] as …
CRATE = re.compile(r"[<&(\[*]*(?:mut |const |dyn )*([a-z_]\w*)(?:\[\w+\])?::")
DROP = re.compile(r"core::ptr::drop_in_place(?:::)?<(.*)>")


def crate_of(name: str) -> str:
    if found := DROP.match(name):
        name = found[1]
    found = CRATE.match(name)
    return found[1] if found else "C, assembly and closures of no name"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    command = ["nm", "--print-size", "--demangle=rust", sys.argv[1]]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sizes: Counter[str] = Counter()
    for size, kind, name in re.findall(r"^\w+ (\w+) (\w) (.*)$", listed, re.MULTILINE):
        sizes[crate_of(name) if kind in "tTwW" else "constants and data"] += int(size, 16)
    for crate, size in sizes.most_common(40):
        print(f"{size:10,} {crate}")
    print(f"{sizes.total():10,} all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
