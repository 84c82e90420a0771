#!/usr/bin/env python3
"""What the binary is made of: `inventory.py licences` prints the licences of all parts, `inventory.py sbom` a CycloneDX document.

Parts are the packages that cargo links into the binary. The licences are also those of Rust's standard library, of musl, and of
the console's libraries. The outputs depend on the tree, on the pinned tools and on SOURCE_DATE_EPOCH alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import ziglang

ROOT = Path(__file__).resolve().parent.parent
# All that is shipped is for this system; the two processors have the same packages.
TARGET = "x86_64-unknown-linux-musl"
TEXTS = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
# Licences of C code inside of packages, below the package's directory.
NESTED = ("c_src/mimalloc*/LICENSE", "aws-lc/LICENSE", "aws-lc/third_party/*/LICENSE")
APACHE = ROOT / "LICENSE-APACHE"


@dataclass
class Part:
    """A part of the binary."""

    name: str
    version: str
    licence: str
    repository: str = ""
    # The checksum in Cargo.lock, if it is from a registry.
    checksum: str = ""
    texts: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    is_ours: bool = False

    @property
    def reference(self) -> str:
        return f"pkg:cargo/{self.name}@{self.version}"


def read_metadata() -> dict[str, Any]:
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", TARGET]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def linked(metadata: dict[str, Any]) -> dict[str, list[str]]:
    """The packages that are linked into the binary, by their ids, each with those that it needs."""
    packages = {package["id"]: package for package in metadata["packages"]}
    needs = {node["id"]: [
        needed["pkg"] for needed in node["deps"]
        if any(kind["kind"] is None for kind in needed["dep_kinds"])
        and not any("proc-macro" in target["kind"] for target in packages[needed["pkg"]]["targets"])
    ] for node in metadata["resolve"]["nodes"]}
    found: dict[str, list[str]] = {}
    left = [metadata["resolve"]["root"]]
    while left:
        one = left.pop()
        if one not in found:
            found[one] = needs[one]
            left += needs[one]
    return found


def texts_of(directory: Path) -> list[str]:
    files = [file for file in sorted(directory.iterdir()) if file.is_file() and TEXTS.match(file.name)]
    files += [file for pattern in NESTED for file in sorted(directory.glob(pattern))]
    return [file.read_text(errors="replace").replace("\r\n", "\n").strip() for file in files]


def read_parts() -> list[Part]:
    """All packages; ours is the first."""
    metadata = read_metadata()
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(package["name"], package["version"]): package.get("checksum", "") for package in lock}
    packages = {package["id"]: package for package in metadata["packages"]}
    needs = linked(metadata)
    parts = {}
    for one in needs:
        package = packages[one]
        key = (package["name"], package["version"])
        parts[one] = Part(
            *key, licence=(package["license"] or "").replace("/", " OR "), repository=package["repository"] or "",
            checksum=checksums[key], texts=texts_of(Path(package["manifest_path"]).parent) if package["source"] else [],
            is_ours=package["source"] is None,
        )
    for one, part in parts.items():
        part.needs = sorted(parts[needed].reference for needed in needs[one])
    root = parts.pop(metadata["resolve"]["root"])
    return [root, *sorted(parts.values(), key=lambda part: (part.name, part.version))]


def add_missing_texts(parts: list[Part]) -> None:
    """Some packages leave the text of their licence in their repository."""
    of_repository = {part.repository: part.texts for part in parts if part.texts and part.repository}
    for part in parts:
        if part.is_ours or part.texts:
            continue
        if "Apache-2.0" in part.licence:
            part.texts = [APACHE.read_text().strip()]
        elif part.repository in of_repository:
            part.texts = of_repository[part.repository]
        else:
            raise SystemExit(f"inventory: {part.name} {part.version} ({part.licence}) has no text of its licence")


class Text(HTMLParser):
    """The text of a page, without what is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def handle_data(self, data: str) -> None:
        self.lines += [line.rstrip() for line in data.splitlines() if line.strip()]


def standard_library() -> str:
    """The notices of Rust's standard library and of the packages in it."""
    done = subprocess.run(["rustc", "--print", "sysroot"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    page = Text()
    page.feed((Path(done.stdout.strip()) / "share/doc/rust/COPYRIGHT-library.html").read_text())
    return "\n".join(page.lines)


def c_library() -> list[tuple[str, str]]:
    """What the linker adds to a program in Rust, with its licence."""
    directory = Path(ziglang.__file__).parent
    texts = {"musl": "lib/libc/musl/COPYRIGHT", "LLVM's libunwind": "lib/libunwind/LICENSE.TXT", "Zig's run-time library": "LICENSE"}
    return [(name, (directory / text).read_text().strip()) for name, text in texts.items()]


def licences(parts: list[Part]) -> str:
    add_missing_texts(parts)
    of_text: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        for text in part.texts:
            of_text[text].append(f"{part.name} {part.version}")
    of_text[standard_library()].append("Rust's standard library")
    for name, text in c_library():
        of_text[text].append(name)
    of_text[(ROOT / "src/console/vendor/LICENSES.txt").read_text().strip()].append("the console's libraries")
    lines = ["Jitney is licensed under MIT or Apache-2.0. The binary contains:", ""]
    lines += [f"  {part.name} {part.version}: {part.licence}" for part in parts if not part.is_ours]
    for text, names in sorted(of_text.items(), key=lambda item: item[1]):
        lines += ["", "=" * 100, ", ".join(dict.fromkeys(names)), "=" * 100, "", text]
    return "\n".join(lines) + "\n"


def component(part: Part, kind: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": kind, "bom-ref": part.reference, "name": part.name, "version": part.version, "purl": part.reference,
        "licenses": [{"expression": part.licence}],
    }
    if part.checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": part.checksum}]
    if part.repository:
        made["externalReferences"] = [{"type": "vcs", "url": part.repository}]
    return made


def sbom(parts: list[Part]) -> str:
    root, *others = parts
    when = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": component(root, "application")},
        "components": [component(part, "library") for part in others],
        "dependencies": [{"ref": part.reference, "dependsOn": part.needs} for part in parts],
    }
    # The number of a document is that of its contents.
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True))}"
    return json.dumps(document, indent=1) + "\n"


def main() -> int:
    outputs = {"licences": licences, "sbom": sbom}
    if len(sys.argv) != 2 or sys.argv[1] not in outputs:
        print(__doc__, file=sys.stderr)
        return 2
    sys.stdout.write(outputs[sys.argv[1]](read_parts()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
