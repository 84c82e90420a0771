#!/usr/bin/env python3
"""The matrix: which scenario passes, fails or is not offered with which client.

    interop-tests/matrix.py            prints it, from what the suites wrote in their last runs
    interop-tests/matrix.py --keep     and keeps it in docs/compatibility.md

Rows and what each client owes are read from scenarios.md, outcomes from the suites' `scenarios.tsv`, versions from their pins.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE / "scenarios.md"
DOCUMENT = HERE.parent / "docs" / "compatibility.md"
BEGIN = "<!-- the matrix: written by interop-tests/run, not by hand -->"
END = "<!-- end of the matrix -->"

# Fail beats pass beats not offered, when a scenario has several lines.
OUTCOMES = ["fail", "pass", "not offered"]
SIGNS = {"pass": "✓", "fail": "✗", "not offered": "–", "missing": "?", "": "·"}
LONGEST_NOTE = 80

# The words of the column "who", and the suites that they mean. A suite's own name is a word, too.
PYTHON = ["python-sync", "python-aio"]
GO = ["go", "go-wss"]
GENERIC = ["rhea", "proton"]
OFFICIAL = [*PYTHON, "javascript", "java", *GO, "rust"]
WORDS = {
    "all": OFFICIAL,
    "generic": GENERIC,
    "Py": PYTHON,
    "JS": ["javascript"],
    "Java": ["java"],
    "Go": GO,
    "Rust": ["rust"],
    # Cannot run here: transcripts at the level of frames.
    ".NET": [],
    "SDKs with administration": [*PYTHON, "javascript", "java", *GO],
    "SDKs with token credentials": [*PYTHON, "javascript", "java", *GO],
    "by hand": [],
}


class MatrixError(Exception):
    """scenarios.md, or what a suite wrote, cannot be read."""


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
    # What a suite runs that is no scenario of the list, such as samples, by its name.
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)

    def columns(self, scenarios: list[Scenario]) -> list[str]:
        return [name for name, cells in self.cells.items() if any(name in each.who or each.number in cells for each in scenarios)]

    def sign(self, suite: str, scenario: Scenario) -> str:
        cell = self.cells[suite].get(scenario.number)
        if cell:
            return SIGNS[cell.outcome]
        if suite in scenario.who:
            return SIGNS["missing"]
        # "Who" names the SDKs that have the call; of a generic client it asks only what it says.
        return SIGNS["not offered" if suite in OFFICIAL and scenario.who & set(OFFICIAL) else ""]

    def sections(self) -> dict[str, list[Scenario]]:
        found = defaultdict(list)
        for each in self.scenarios:
            found[each.section].append(each)
        return found

    def programs(self) -> dict[str, dict[str, Cell]]:
        """Of each suite, what has no number."""
        numbers = {each.number for each in self.scenarios}
        found = {suite: {name: cell for name, cell in cells.items() if name not in numbers} for suite, cells in self.cells.items()}
        return {suite: cells for suite, cells in found.items() if cells}

    def missing(self, suite: str) -> list[str]:
        cells = self.cells.get(suite, {})
        return [each.number for each in self.scenarios if suite in each.who and each.number not in cells]


def read_scenarios(known: list[str]) -> list[Scenario]:
    """The rows of scenarios.md; `known` are the names of the suites."""
    found: list[Scenario] = []
    section, who = "", None
    for line in SCENARIOS.read_text().splitlines():
        if heading := re.fullmatch(r"#+ (.*)", line):
            section, who = heading[1], None
        # The name of a queue may hold what Markdown takes for the end of a cell, escaped.
        elif row := re.match(r"\| (S\d+) \|.*(?<!\\)\|([^|]*)\|$", line):
            who = meant(row[1], row[2].strip(), who, known)
            if any(each.number == row[1] for each in found):
                raise MatrixError(f"scenarios.md has {row[1]} twice")
            found.append(Scenario(row[1], section, who))
    return found


def meant(number: str, text: str, before: set[str] | None, known: list[str]) -> set[str]:
    """The suites that a cell of "who" means. Conditions, in parentheses or after `with` or `that`, are for readers."""
    found: set[str] = set()
    for word in re.sub(r"\([^)]*\)", "", text).split(","):
        word = word.strip()
        short = re.sub(r" (with|that) .*", "", word)
        if word == "the same" and before is not None:
            found |= before
        elif word in WORDS or short in WORDS:
            found |= set(WORDS[word if word in WORDS else short])
        elif word in known:
            found.add(word)
        elif not word.startswith(("with ", "that ")):
            raise MatrixError(f"scenarios.md: who is {word!r} at {number}?")
    return found


def read_cells(path: Path) -> dict[str, Cell]:
    """What a suite wrote."""
    found: dict[str, Cell] = {}
    for line in path.read_text().splitlines():
        number, outcome, note = (line.split("\t") + ["", ""])[:3]
        if not number or outcome not in OUTCOMES or line.count("\t") != 2:
            raise MatrixError(f"{path}: {line!r} is not NAME<TAB>{'|'.join(OUTCOMES)}<TAB>note")
        if len(note) > LONGEST_NOTE or outcome == "not offered" and not note.strip():
            raise MatrixError(f"{path}: a note of 1 to {LONGEST_NOTE} characters for {line!r}, please")
        cell = found.setdefault(number, Cell(outcome, []))
        rank = OUTCOMES.index(outcome) - OUTCOMES.index(cell.outcome)
        if rank < 0:
            cell.outcome, cell.notes = outcome, []
        if rank <= 0 and note.strip() and note not in cell.notes:
            cell.notes.append(note.strip())
    return found


def collect(suites, known, work: Path) -> Matrix:
    """The matrix of those suites that wrote something, all that there are being known."""
    matrix = Matrix(read_scenarios([suite.name for suite in known]))
    for suite in suites:
        path = work / suite.name / "scenarios.tsv"
        if path.is_file():
            matrix.cells[suite.name] = read_cells(path)
    return matrix


def complaint(suite, suites, work: Path) -> str | None:
    """What is wrong with what a suite wrote, or did not write."""
    try:
        matrix = collect([suite], suites, work)
    except MatrixError as error:
        return str(error)
    cells = matrix.cells.get(suite.name, {})
    if unknown := [name for name in cells if re.fullmatch(r"S\d+", name) and name not in {each.number for each in matrix.scenarios}]:
        return f"scenarios.tsv has what scenarios.md has not: {' '.join(unknown)}"
    missing = matrix.missing(suite.name)
    return f"no line in scenarios.tsv for {' '.join(missing)}" if missing else None


def version(pin: str) -> str:
    """The version of `FILE:PACKAGE`, FILE being where a suite pins it."""
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
    else:
        found = re.search(rf"{re.escape(package)}\S*[=:~ ]+v?(\d\S*)", text)
    if not found:
        raise MatrixError(f"no version of {package} in {name}")
    return found[1]


def clients(suite) -> str:
    """What a suite runs, with versions."""
    return ", ".join(f"{pin.rsplit('/', 1)[-1].split(':')[-1]} {version(pin)}" for pin in suite.pins)


LEGEND = "✓ passes   ✗ fails   – not offered by this client   · not asked of this kind of client   ? no outcome"


def passing(cells: dict[str, Cell]) -> str:
    return ", ".join(sorted(name for name, cell in cells.items() if cell.outcome == "pass"))


def others(cells: dict[str, Cell]) -> list[tuple[str, Cell]]:
    return sorted((name, cell) for name, cell in cells.items() if cell.outcome != "pass")


def shown(matrix: Matrix, width: int = 118) -> str:
    """For a terminal: clients downwards, scenarios in blocks."""
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


def written(matrix: Matrix, suites) -> str:
    """For docs/compatibility.md: scenarios downwards."""
    named = {suite.name: suite for suite in suites}
    lines = [BEGIN, "", LEGEND.replace("   ", "; ") + ".", "", "| suite | client |", "|---|---|"]
    lines += [f"| {name} | {clients(named[name])} |" for name in matrix.cells]
    for section, scenarios in matrix.sections().items():
        names = matrix.columns(scenarios)
        if names:
            lines += ["", f"### {section}", "", "| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
            lines += [f"| {each.number} | " + " | ".join(matrix.sign(name, each) for name in names) + " |" for each in scenarios]
    for suite, cells in matrix.programs().items():
        lines += ["", f"### {suite}", ""]
        lines += textwrap.wrap(passing(cells), 140, initial_indent="✓ ", break_on_hyphens=False)
        lines += ["", *[f"- {SIGNS[cell.outcome]} {name}: {'; '.join(cell.notes)}" for name, cell in others(cells)]]
    lines += ["", "### Not offered, and why", ""]
    numbers = {each.number for each in matrix.scenarios}
    for suite, cells in matrix.cells.items():
        why = defaultdict(list)
        for name, cell in sorted(cells.items(), key=lambda each: int(re.sub(r"\D", "", each[0]) or 0)):
            if cell.outcome == "not offered" and name in numbers:
                why["; ".join(cell.notes)].append(name)
        lines += [f"- {suite}, {', '.join(which)}: {note}" for note, which in why.items()]
    lines += [
        "",
        "Where an official SDK has no line above, the column *who* of `interop-tests/scenarios.md` names the clients that have the call.",
        "", END,
    ]
    return "\n".join(lines)


def keep(matrix: Matrix, suites) -> bool:
    """Writes it into the document; tells whether that changed it."""
    text = DOCUMENT.read_text()
    if BEGIN not in text or END not in text:
        raise MatrixError(f"{DOCUMENT} has no place for the matrix")
    before, rest = text.split(BEGIN, 1)
    changed = before + written(matrix, suites) + rest.split(END, 1)[1]
    if changed != text:
        DOCUMENT.write_text(changed)
    return changed != text


def main() -> int:
    import runpy

    runner = runpy.run_path(str(HERE / "run"))
    suites = runner["SUITES"]
    try:
        matrix = collect(suites, suites, runner["WORK"])
        print(shown(matrix))
        if sys.argv[1:] == ["--keep"]:
            keep(matrix, suites)
    except MatrixError as error:
        print(f"matrix: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
