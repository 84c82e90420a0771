"""The list of interop suites, read from suites.toml."""

from __future__ import annotations

import os
import shutil
import tomllib
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import ports
from broker import HERE, WORK

# What suites with a second broker need.
LOW_PORTS = "the right to listen at port 443"
# Directories with an executable `run` that are no suites.
OTHERS = {"bench"}


class Tier(Enum):
    """How often a suite runs. TEST and CI suites run for INTEROP as well; MANUAL suites only when they are named."""

    TEST = "test"
    CI = "ci"
    INTEROP = "interop"
    MANUAL = "manual"


@dataclass
class Suite:
    """One entry of suites.toml, where its fields are described."""

    name: str
    run: str
    tier: Tier
    limit: int
    clients: list[str]
    about: str
    alone: bool = False
    secured: str | None = None
    needs: list[str] = field(default_factory=list)
    optional: bool = False

    @property
    def command(self) -> list[str]:
        program, *arguments = self.run.split()
        return [str(HERE / program), *arguments]

    @property
    def directory(self) -> Path:
        return Path(self.command[0]).parent

    @property
    def missing(self) -> list[str]:
        """The needs of the suite that are not met here."""
        def is_there(word: str) -> bool:
            return bool(os.environ.get(word) if word.isupper() else shutil.which(word))

        missing = [need for need in self.needs if not any(map(is_there, need.split("|")))]
        if self.secured and not ports.are_permitted():
            missing.append(LOW_PORTS)
        return missing

    @property
    def lacks(self) -> str | None:
        """What the suite would need to run here; None if all of it is there."""
        return ", ".join(need.replace("|", " or ") for need in self.missing) or None

    @property
    def work(self) -> Path:
        """Where its logs and results are."""
        return WORK / self.name


def read() -> tuple[list[Suite], dict[str, list[str]]]:
    """The suites and the groups of suites. Exits with a message if the list and the tree disagree."""
    document = tomllib.loads((HERE / "suites.toml").read_text())
    suites = [Suite(**{**entry, "tier": Tier(entry["tier"])}) for entry in document["suite"]]
    names = [suite.name for suite in suites]
    wrong = [f"{name} is listed twice" for name in sorted(set(names)) if names.count(name) > 1]
    wrong += [f"{suite.name}: {suite.command[0]} is not executable" for suite in suites if not os.access(suite.command[0], os.X_OK)]
    listed = {suite.directory.name for suite in suites} | OTHERS
    wrong += [f"{path.parent.name}/run is not listed" for path in sorted(HERE.glob("*/run")) if path.parent.name not in listed]
    wrong += [f"group {group}: no suite {name}" for group, members in document["groups"].items() for name in members if name not in names]
    if wrong:
        raise SystemExit("suites.toml: " + "; ".join(wrong))
    return suites, document["groups"]


SUITES, GROUPS = read()


def of_tier(tier: Tier) -> list[Suite]:
    """The suites that run for a tier: INTEROP includes TEST and CI."""
    tiers = {Tier.TEST, Tier.CI, Tier.INTEROP} if tier is Tier.INTEROP else {tier}
    return [suite for suite in SUITES if suite.tier in tiers]


def named(words: list[str]) -> list[Suite]:
    """The suites with a given name, or else those whose names begin with it, in the order of the list."""
    found: list[Suite] = []
    for word in words:
        # `java` alone does not mean `javascript`.
        meant = [suite for suite in SUITES if suite.name == word] or [suite for suite in SUITES if suite.name.startswith(word)]
        if not meant:
            raise SystemExit(f"no suite begins with {word!r}; there are {', '.join(suite.name for suite in SUITES)}")
        found += meant
    return [suite for suite in SUITES if suite in found]
