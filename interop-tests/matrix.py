#!/usr/bin/env python3
"""The matrix: which scenario passes, fails or is not offered with which client.

    interop-tests/matrix.py            prints it, from the suites' last runs

Rows, and which suites must have an outcome, are read from scenarios.md; outcomes from the suites' `scenarios.tsv`; versions from
the files that pin them. `write` writes docs/interop-matrix.md.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import textwrap
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from broker import HERE, binary
from suites import GROUPS, SUITES, Suite, Tier, of_tier

SCENARIOS = HERE / "scenarios.md"
DOCUMENT = HERE.parent / "docs" / "interop-matrix.md"

# Fail beats pass beats not offered, when a scenario has several lines.
OUTCOMES = ["fail", "pass", "not offered"]
SIGNS = {"pass": "✓", "fail": "✗", "not offered": "–", "missing": "?", "": "·"}
LONGEST_NOTE = 80

# Suites of which every scenario without an outcome is shown as not offered.
OFFICIAL = set(GROUPS["all"])


class MatrixError(Exception):
    """scenarios.md or the outcomes of a suite cannot be read."""


@dataclass
class Scenario:
    number: str
    section: str
    who: set[str]


@dataclass
class Cell:
    outcome: str
    notes: list[str]


@dataclass
class Matrix:
    scenarios: list[Scenario]
    # Outcomes by suite, and by scenario or, for a test that is no scenario (a sample), by its name.
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)

    def columns(self, scenarios: list[Scenario]) -> list[str]:
        return [name for name, cells in self.cells.items() if any(name in each.who or each.number in cells for each in scenarios)]

    def sign(self, suite: str, scenario: Scenario) -> str:
        cell = self.cells[suite].get(scenario.number)
        if cell:
            return SIGNS[cell.outcome]
        if suite in scenario.who:
            return SIGNS["missing"]
        # "Who" names the SDKs that have the call. A generic client must have only the outcomes that it is named for.
        return SIGNS["not offered" if suite in OFFICIAL and scenario.who & OFFICIAL else ""]

    def sections(self) -> dict[str, list[Scenario]]:
        found = defaultdict(list)
        for each in self.scenarios:
            found[each.section].append(each)
        return found

    def programs(self) -> dict[str, dict[str, Cell]]:
        """The outcomes of each suite that are no scenarios."""
        numbers = {each.number for each in self.scenarios}
        found = {suite: {name: cell for name, cell in cells.items() if name not in numbers} for suite, cells in self.cells.items()}
        return {suite: cells for suite, cells in found.items() if cells}

    def missing(self, suite: str) -> list[str]:
        cells = self.cells.get(suite, {})
        return [each.number for each in self.scenarios if suite in each.who and each.number not in cells]


def read_scenarios() -> list[Scenario]:
    """The rows of scenarios.md."""
    found: list[Scenario] = []
    section, who = "", None
    for line in SCENARIOS.read_text().splitlines():
        if heading := re.fullmatch(r"#+ (.*)", line):
            section, who = heading[1], None
        # An escaped `\|` does not end a cell.
        elif row := re.match(r"\| (S\d+) \|.*(?<!\\)\|([^|]*)\|$", line):
            who = meant(row[1], row[2].strip(), who)
            if any(each.number == row[1] for each in found):
                raise MatrixError(f"scenarios.md has {row[1]} twice")
            found.append(Scenario(row[1], section, who))
    return found


def meant(number: str, text: str, before: set[str] | None) -> set[str]:
    """The suites that a cell of "who" names. Conditions, in parentheses or after `with` or `that`, are for readers."""
    words = {**GROUPS, **{suite.name: [suite.name] for suite in SUITES}}
    found: set[str] = set()
    for word in re.sub(r"\([^)]*\)", "", text).split(","):
        word = word.strip()
        short = re.sub(r" (with|that) .*", "", word)
        if word == "the same" and before is not None:
            found |= before
        elif word in words or short in words:
            found |= set(words[word if word in words else short])
        elif not word.startswith(("with ", "that ")):
            raise MatrixError(f"scenarios.md, {number}: {word!r} names no suite and no group of suites.toml")
    return found


def read_cells(path: Path) -> dict[str, Cell]:
    """The outcomes that a suite wrote."""
    found: dict[str, Cell] = {}
    for line in path.read_text().splitlines():
        number, outcome, note = (line.split("\t") + ["", ""])[:3]
        if not number or outcome not in OUTCOMES or line.count("\t") != 2:
            raise MatrixError(f"{path}: {line!r} is not NAME<TAB>{'|'.join(OUTCOMES)}<TAB>note")
        if len(note) > LONGEST_NOTE or outcome == "not offered" and not note.strip():
            raise MatrixError(f"{path}: {line!r} needs a note of 1 to {LONGEST_NOTE} characters")
        cell = found.setdefault(number, Cell(outcome, []))
        rank = OUTCOMES.index(outcome) - OUTCOMES.index(cell.outcome)
        if rank < 0:
            cell.outcome, cell.notes = outcome, []
        if rank <= 0 and note.strip() and note not in cell.notes:
            cell.notes.append(note.strip())
    return found


def collect(suites: list[Suite]) -> Matrix:
    """The matrix of those suites that wrote outcomes."""
    matrix = Matrix(read_scenarios())
    for suite in suites:
        path = suite.work / "scenarios.tsv"
        if path.is_file():
            matrix.cells[suite.name] = read_cells(path)
    return matrix


def complaint(suite: Suite) -> str | None:
    """What is wrong with the outcomes of a suite, or which are missing."""
    try:
        matrix = collect([suite])
    except MatrixError as error:
        return str(error)
    cells = matrix.cells.get(suite.name, {})
    known = {each.number for each in matrix.scenarios}
    if unknown := [name for name in cells if re.fullmatch(r"S\d+", name) and name not in known]:
        return f"not in scenarios.md: {' '.join(unknown)}"
    missing = matrix.missing(suite.name)
    return f"no outcome for {' '.join(missing)}" if missing else None


def version(pin: str) -> str:
    """The version of `FILE:PACKAGE`, as FILE pins it."""
    name, package = pin.split(":", 1)
    path = HERE / name
    text = path.read_text()
    if path.suffix == ".txt":
        found = re.search(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    elif path.suffix == ".json":
        content = json.loads(text)
        return {**content.get("dependencies", {}), **content.get("devDependencies", {})}[package]
    elif path.suffix == ".mod":
        found = re.search(rf"{re.escape(package)} v(\S+)", text)
    elif path.suffix == ".toml":
        value = tomllib.loads(text)["dependencies"][package]
        return (value if isinstance(value, str) else value["version"]).lstrip("=")
    elif path.suffix == ".xml":
        for each in ElementTree.fromstring(text).findall(".//{*}dependency"):
            if each.findtext("{*}artifactId") == package:
                return each.findtext("{*}version", default="")
        found = None
    elif path.suffix == ".csproj":
        found = re.search(rf'Include="{re.escape(package)}" Version="([^"]+)"', text)
    else:
        found = re.search(rf"{re.escape(package)}\S*[=:~ ]+v?(\d\S*)", text)
    if not found:
        raise MatrixError(f"no version of {package} in {name}")
    return found[1]


def packages(suite: Suite) -> str:
    """The tested packages of a suite, with versions."""
    return ", ".join(f"{short(pin.split(':', 1)[1])} {version(pin)}" for pin in suite.clients)


def short(package: str) -> str:
    """A Go module's name without host, path and major version; other names as they are."""
    parts = [part for part in package.split("/") if not re.fullmatch(r"v\d+", part)]
    return parts[-1] if "." in parts[0] else package


LEGEND = "✓ passes   ✗ fails   – not offered by this client   · not required of this client   ? no outcome"


def passing(cells: dict[str, Cell]) -> str:
    return ", ".join(sorted(name for name, cell in cells.items() if cell.outcome == "pass"))


def others(cells: dict[str, Cell]) -> list[tuple[str, Cell]]:
    return sorted((name, cell) for name, cell in cells.items() if cell.outcome != "pass")


def shown(matrix: Matrix, width: int = 118) -> str:
    """For a terminal: a row per suite, scenarios in blocks."""
    lines = []
    for section, scenarios in matrix.sections().items():
        names = matrix.columns(scenarios)
        if not names:
            continue
        room = max(len(each) for each in matrix.cells) + 4
        per_line = (width - room) // 5
        lines += ["", section]
        for start in range(0, len(scenarios), per_line):
            part = scenarios[start:start + per_line]
            lines.append(" " * room + " ".join(f"{each.number:<4}" for each in part).rstrip())
            lines += [f"  {name:<{room - 2}}" + " ".join(f"{matrix.sign(name, each):<4}" for each in part).rstrip() for name in names]
    for suite, cells in matrix.programs().items():
        lines += ["", f"{suite}"]
        lines += textwrap.wrap(passing(cells), width, initial_indent="  ✓ ", subsequent_indent="    ", break_on_hyphens=False)
        lines += [f"  {SIGNS[cell.outcome]} {name}: {'; '.join(cell.notes)}" for name, cell in others(cells)]
    lines += ["", LEGEND]
    return "\n".join(lines).lstrip("\n")


def written(matrix: Matrix, results: dict[str, str]) -> str:
    """The document: a row per scenario."""
    jitney = subprocess.run([binary(), "--version"], check=True, capture_output=True, text=True).stdout.strip()
    lines = [
        "# Interop matrix", "",
        "Generated by `interop-tests/run` after a run of every suite; do not edit. The scenarios are described in", "`interop-tests/scenarios.md`.", "",
        f"Date: {date.today()}. Broker: {jitney}, {platform.system()} {platform.machine()}.", "",
        LEGEND.replace("   ", "; ") + ".", "",
        "| suite | packages | tests |", "|---|---|---|",
    ]
    lines += [f"| {suite.name} | {packages(suite)} | {results[suite.name]} |" for suite in SUITES if suite.name in results]
    absent = [suite.name for suite in of_tier(Tier.INTEROP) if suite.name not in results]
    if absent:
        lines += ["", f"Without a result that day: {', '.join(absent)}."]
    for section, scenarios in matrix.sections().items():
        names = matrix.columns(scenarios)
        if names:
            lines += ["", f"## {section}", "", "| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
            lines += [f"| {each.number} | " + " | ".join(matrix.sign(name, each) for name in names) + " |" for each in scenarios]
    for suite, cells in matrix.programs().items():
        lines += ["", f"## {suite}", ""]
        lines += textwrap.wrap(passing(cells), 140, initial_indent="✓ ", break_on_hyphens=False)
        lines += ["", *[f"- {SIGNS[cell.outcome]} {name}: {'; '.join(cell.notes)}" for name, cell in others(cells)]]
    lines += ["", "## Not offered, and why", ""]
    numbers = {each.number for each in matrix.scenarios}
    for suite, cells in matrix.cells.items():
        why = defaultdict(list)
        for name, cell in sorted(cells.items(), key=lambda each: int(re.sub(r"\D", "", each[0]) or 0)):
            if cell.outcome == "not offered" and name in numbers:
                why["; ".join(cell.notes)].append(name)
        lines += [f"- {suite}, {', '.join(which)}: {note}" for note, which in why.items()]
    lines += ["", "An SDK without a line above lacks the call if the column *who* of `interop-tests/scenarios.md` does not name it.", ""]
    return "\n".join(lines)


def write(results: dict[str, str]) -> None:
    """Writes the document; `results` are the closing lines of the suites that ran, by name."""
    DOCUMENT.write_text(written(collect([suite for suite in SUITES if suite.name in results]), results))


def main() -> int:
    try:
        print(shown(collect(SUITES)))
    except MatrixError as error:
        print(f"matrix: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
