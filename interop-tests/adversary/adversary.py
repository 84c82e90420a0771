"""Clients with a key to receive, with a key to send and with none, that try for memory, processor time, descriptors, log and other people's
messages; beside them a well-behaved pair, somebody who asks for health, and somebody who looks at memory.

    adversary.py [WORD…]         the attacks whose names have one of the words
    adversary.py long [WORD…]    more than a broker can do, some minutes: long.py
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import answers  # noqa: E402
import development  # noqa: E402
import long  # noqa: E402
import searches  # noqa: E402
import unauthenticated  # noqa: E402
import with_listen  # noqa: E402
import with_send  # noqa: E402
import without_key  # noqa: E402
from scene import Attack, Result, Stage, perform  # noqa: E402
from watch import HERE  # noqa: E402

# MiB: what the broker is told to take, and what it may have in memory. What lies between is the program itself, and what the system's
# count has of files and of memory that was given back.
MEMORY_LIMIT, MEMORY_MAX = 128, 192
# The longest time for which the pair may get nothing, seconds. Half a second is the aim.
GAP_MAX = 5.0

ARGUMENTS = ["--auth", "sas", "--amqps", "127.0.0.1:0", "--memory-limit", f"{MEMORY_LIMIT}MiB"]


def stage(name: str, attacks: list[Attack], **more: object) -> Stage:
    return Stage(name, attacks, MEMORY_MAX, GAP_MAX, "keys.json", arguments=ARGUMENTS, **more)


STAGES = [
    stage("keys", [*without_key.ATTACKS, *with_listen.ATTACKS, *with_send.ATTACKS], beside=without_key.BESIDE),
    stage("descriptors", [with_send.all_descriptors], descriptors=with_send.DESCRIPTORS),
    Stage("answers", answers.ATTACKS, MEMORY_MAX, GAP_MAX, "answers.json", arguments=ARGUMENTS),
    Stage("neighbours", searches.ATTACKS, MEMORY_MAX, GAP_MAX, "neighbours.json", arguments=ARGUMENTS),
    Stage("unauthenticated", unauthenticated.ATTACKS, MEMORY_MAX, GAP_MAX, "unauthenticated.json", arguments=ARGUMENTS),
    Stage("development", development.ATTACKS, MEMORY_MAX, GAP_MAX, "long.json", has_keys=False),
]


def chosen(stages: list[Stage], words: list[str]) -> list[Stage]:
    """The stages with those of their attacks that are meant."""
    def meant(attacks: list[Attack]) -> list[Attack]:
        return [attack for attack in attacks if not words or any(word in attack.__name__ for word in words)]

    found = [replace(stage, attacks=meant(stage.attacks), beside=meant(stage.beside)) for stage in stages]
    return [stage for stage in found if stage.attacks or stage.beside]


async def run(stages: list[Stage], work: Path) -> Result:
    result = Result()
    for each in stages:
        await perform(each, work / each.name, result)
    return result


def main() -> int:
    words = sys.argv[1:]
    is_long = words[:1] == ["long"]
    # Ten thousand connections are as many descriptors, here and in the broker, which takes what it is allowed.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    needed = (long.CROWD if is_long else without_key.VISITS) + 1_000
    if most < needed:
        print(f"FAILED  {most} descriptors are too few: ulimit -n {2 * needed}\n0 passed, 1 failed")
        return 1
    # Whoever ends it early ends its broker too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    name = "adversary-long" if is_long else "adversary"
    work = Path(os.environ.get("JITNEY_WORK", HERE.parent / ".work" / name))
    stages = chosen(long.STAGES, words[1:]) if is_long else chosen(STAGES, words)
    result = asyncio.run(run(stages, work))
    seconds, attack = result.longest
    print(f"the pair waited {seconds:.2f} s for a message at the longest ({attack}); the broker had {result.peak:.0f} MiB in memory at most")
    print(f"{result.passed} passed, {result.failed} failed")
    return 1 if result.failed or not result.passed else 0


if __name__ == "__main__":
    sys.exit(main())
