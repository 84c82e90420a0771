"""Writes the lines of the matrix (../README.md) from what `cargo test` said: a test's name begins with its scenarios'."""

import os
import re
import sys
from pathlib import Path

NO_ANSWER = "does not wait for the answer to a settlement, so it cannot be told"
RECONNECTION = "its reconnection resumes links, which Service Bus has not: it fails"
NOT_OFFERED = {
    **{f"S{number}": RECONNECTION for number in (301, 302, 303, 305, 306, 308)},
    "S09": "a message has no call for a header, footer or annotations of one's own",
    "S104": "its accept of the next session has no time-out of its own; the broker's is 65 s",
    "S134": "gives back nothing of what it has prefetched",
    "S304": "as S301: a session's link is not made anew",
    "S307": "no time-out of a send: its retries have one, and leave the send as it is",
    "S313": "gives back nothing of what it has prefetched",
    "S321": "its bodies are one data section",
    "S323": "its bodies are one data section",
    "S327": NO_ANSWER,
    "S269": "S264 with the emulator's key: it has no emulator's connection string",
    "S251": "the host it names is the one that it connects to",
}


def main() -> None:
    lines = []
    for line in sys.stdin:
        match = re.fullmatch(r"test (?:\w+::)*((?:s\d+_)+)\w+ \.\.\. (ok|FAILED)", line.strip())
        if match:
            state = "pass" if match[2] == "ok" else "fail"
            lines += [f"{name.upper()}\t{state}\t\n" for name in match[1].split("_") if name]
    if sys.argv[1:] != ["rest"]:
        lines += [f"{name}\tnot offered\t{why}\n" for name, why in NOT_OFFERED.items()]
    if "JITNEY_WORK" in os.environ:
        (Path(os.environ["JITNEY_WORK"]) / "scenarios.tsv").write_text("".join(lines))


if __name__ == "__main__":
    main()
