"""Runs the scenarios of the frameworks: `suite.py kombu`, `suite.py celery S435`, `suite.py` for all."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stage import ADDRESSES, HERE, Failure, House, Play, Scene

# The scenarios mostly wait.
TOGETHER = 6


def run_scenario(house: House, play: Play, number: str) -> str | None:
    """Returns what is wrong."""
    directory = house.directory / number
    directory.mkdir()
    scene = Scene(house, number, directory)
    began = time.monotonic()
    complaint = None
    try:
        play.scenarios[number](scene)
    except Failure as failure:
        complaint = str(failure)
    except Exception:
        # Where it began, and how it ended.
        lines = traceback.format_exc().splitlines()
        complaint = "\n".join([line for line in lines if "_scenarios.py" in line] + lines[-6:])
    finally:
        scene.close()
    if complaint:
        complaint += "".join(f"\n  {each.log.name}:\n{each.tail()}" for each in scene.programs)
    print(f"{'FAILED' if complaint else 'ok    '} {play.name} {number} ({time.monotonic() - began:.1f} s)", flush=True)
    return complaint


def run_play(name: str, wanted: list[str]) -> dict[str, str | None]:
    play: Play = importlib.import_module(f"{name}_scenarios").PLAY
    chosen = [number for number in play.scenarios if not wanted or number in wanted]
    work = Path(os.environ.get("JITNEY_WORK") or HERE.parent / ".work" / name)
    house = House(name, work / "namespace", play.entities, play.plain)
    logging.basicConfig(filename=house.directory / "clients.log", format="%(asctime)s %(threadName)s %(name)s %(message)s")
    house.broker.start()
    with ThreadPoolExecutor(max_workers=TOGETHER) as pool:
        first = [number for number in chosen if number not in play.alone]
        outcomes = dict(zip(first, pool.map(lambda number: run_scenario(house, play, number), first)))
    outcomes |= {number: run_scenario(house, play, number) for number in chosen if number in play.alone}
    if complaint := house.finish():
        outcomes["the broker"] = complaint
    if "JITNEY_WORK" in os.environ:
        lines = [f"{number}\t{'fail' if complaint else 'pass'}\t" for number, complaint in sorted(outcomes.items()) if number[0] == "S"]
        lines += [f"{number}\tnot offered\t{why}" for number, why in sorted(play.absent.items())]
        (work / "scenarios.tsv").write_text("".join(f"{line}\n" for line in lines))
    return {f"{name} {number}": complaint for number, complaint in outcomes.items()}


def main() -> int:
    words = sys.argv[1:]
    names = [word for word in words if word in ADDRESSES]
    outcomes: dict[str, str | None] = {}
    for name in names or ADDRESSES:
        outcomes |= run_play(name, [word for word in words if word not in names])
    failures = {title: complaint for title, complaint in outcomes.items() if complaint}
    for title, complaint in failures.items():
        print(f"\n{title}\n{complaint}")
    print(f"{len(outcomes) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not outcomes else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Some of the libraries leave threads behind that nothing can end.
    os._exit(code)
