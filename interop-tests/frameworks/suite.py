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
from outcomes import Outcomes

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
    line = f"{'FAILED' if complaint else 'ok    '} {play.name} {number} ({time.monotonic() - began:.1f} s)"
    print(line + (f"\n{complaint}" if complaint else ""), flush=True)
    return complaint


def run_play(name: str, wanted: list[str], outcomes: Outcomes) -> None:
    play: Play = importlib.import_module(f"{name}_scenarios").PLAY
    chosen = [number for number in play.scenarios if not wanted or number in wanted]
    work = Path(os.environ.get("JITNEY_WORK") or HERE.parent / ".work" / name)
    house = House(name, work / "namespace", play.entities, play.plain)
    logging.basicConfig(filename=house.directory / "clients.log", format="%(asctime)s %(threadName)s %(name)s %(message)s")
    house.broker.start()
    with ThreadPoolExecutor(max_workers=TOGETHER) as pool:
        first = [number for number in chosen if number not in play.alone]
        complaints = dict(zip(first, pool.map(lambda number: run_scenario(house, play, number), first)))
    complaints |= {number: run_scenario(house, play, number) for number in chosen if number in play.alone}
    for number, complaint in complaints.items():
        outcomes.program(number, "fail" if complaint else "pass")
    if complaint := house.finish():
        outcomes.fail(complaint)
    outcomes.not_offered(play.absent)


def main() -> int:
    words = sys.argv[1:]
    names = [word for word in words if word in ADDRESSES]
    outcomes = Outcomes()
    for name in names or ADDRESSES:
        run_play(name, [word for word in words if word not in names], outcomes)
    return outcomes.finish()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Some of the libraries leave threads behind that nothing can end.
    os._exit(code)
