#!/usr/bin/env python3
"""The pages for users: every program of docs/clients is run as it is, each against a broker of its own, with the connection string
and the variables that the page sets; docs/configuration.md is compared with what the broker says of itself.

A program is a fenced block in the page's language, and the block of text behind it is what it must print. The first program of a page
is run in the emulator's place, and with keys and TLS; the others in the emulator's place, but for those whose fence says `tls`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import checks  # noqa: E402
from broker import ROOT, WORK, Broker, binary  # noqa: E402

DOCS = ROOT / "docs"
DIRECTORY = Path(os.environ.get("JITNEY_WORK", WORK / "pages")).resolve() / "own"
# SDKs go to ports 5671 and 443 without being told, so these brokers have an address of their own.
ADDRESS = "127.0.0.51"
EMPTY = {"UserConfig": {"Defaults": "service", "Namespaces": [{"Name": "sbemulatorns"}]}}
# Java's first start takes seconds on a busy machine, and so does Go's compiler.
SECONDS = 180


@dataclass
class Block:
    """A fenced block: the words behind the fence, and the text."""

    words: list[str]
    text: str


def blocks(page: Path) -> list[Block]:
    found = re.findall(r"^```([^\n]*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [Block(words.split(), text) for words, text in found]


def variables(page: Path, block: Block, data: Path, port: int) -> dict[str, str]:
    """The variables that a block of shell commands sets, for a broker at another address and with other data than the page's."""
    exports = "\n".join(line for line in block.text.splitlines() if line.startswith("export "))
    assert exports, f"{page.name}: a block of the shell exports nothing"
    key = (data / "root.key").read_text().strip() if "=KEY'" in exports else ""
    for old, new in [("localhost:5300", f"{ADDRESS}:{port}"), ("localhost", ADDRESS), ("=KEY'", f"={key}'"), ("$PWD/jitney-data", str(data))]:
        exports = exports.replace(old, new)
    done = subprocess.run(["bash", "-c", f"set -eu\n{exports}\nenv -0"], capture_output=True, check=True, env={"PATH": os.environ["PATH"]})
    pairs = dict(pair.split("=", 1) for pair in done.stdout.decode().split("\0") if pair)
    named = re.findall(r"^export (\w+)=", exports, re.MULTILINE)
    return {name: pairs[name] for name in named}


# How a program is written into a directory and which command runs it, by language.


def python(directory: Path, block: Block, _page: Path) -> list[str]:
    (directory / "program.py").write_text(block.text)
    return [sys.executable, "program.py"]


def javascript(directory: Path, block: Block, _page: Path) -> list[str]:
    (directory / "node_modules").symlink_to(HERE / "node_modules")
    (directory / "program.mjs").write_text(block.text)
    return ["node", "program.mjs"]


def go(directory: Path, block: Block, _page: Path) -> list[str]:
    for name in ("go.mod", "go.sum"):
        shutil.copy(HERE / name, directory)
    (directory / "main.go").write_text(block.text)
    # With the variables of this machine: the compiler may have to download.
    built = ["go", "build", "-mod=readonly", "-o", "program", "."]
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    done = subprocess.run(built, cwd=directory, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return ["./program"]


def java(directory: Path, block: Block, page: Path) -> list[str]:
    """The jars are copied once, by the project file of the page."""
    jars = DIRECTORY / "java-libraries"
    if not jars.exists():
        made = DIRECTORY / "java-project"
        made.mkdir()
        (made / "pom.xml").write_text(next(block.text for block in blocks(page) if block.words == ["xml"]))
        command = ["mvn", "--batch-mode", "--quiet", "--strict-checksums", "dependency:copy-dependencies"]
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        (made / "target" / "lib").rename(jars)
    name = re.search(r"^(?:public )?class (\w+)", block.text, re.MULTILINE)[1]
    (directory / f"{name}.java").write_text(block.text)
    return ["java", "-cp", f"{jars}/*", f"{name}.java"]


LANGUAGES: dict[str, Callable[[Path, Block, Path], list[str]]] = {"python": python, "javascript": javascript, "go": go, "java": java}
# Whose client of messages trusts by an argument only, so that its first program has no TLS.
BY_ARGUMENT = ("python",)
# Variables of this machine that name certificate authorities: a page's programs have those of the page alone.
AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "JAVA_TOOL_OPTIONS")
PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def run_program(page: Path, block: Block, expected: str, directory: Path, secured: bool) -> None:
    """Runs a program against a broker of its own, and compares what it prints."""
    shells = [block for block in blocks(page) if block.words == ["sh"] and "jitney serve" in block.text]
    assert len(shells) == 2, f"{page.name}: two blocks of the shell start a broker, without and with keys"
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "program").mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(EMPTY))
    profile = "sas" if secured else "development"
    broker = Broker.create(
        directory / "broker", directory / "config.json", ["--auth", profile, "--https", f"{ADDRESS}:443"], host=ADDRESS, ends_with=os.getpid(),
    )
    data = Path(broker.state["data_dir"])
    # The broker's own certificate, for another address than the page's.
    subprocess.run([binary(), "certs", data / "certs", "--name", ADDRESS], check=True, stdout=subprocess.DEVNULL)
    broker.start()
    try:
        (directory / "program" / "jitney-data").symlink_to(data)
        command = LANGUAGES[page.stem](directory / "program", block, page)
        kept = {name: value for name, value in os.environ.items() if name not in AUTHORITIES and name.lower() not in PROXIES}
        named = variables(page, shells[secured], data, broker.http_port)
        if "tls" in block.words:
            # It names the authority itself.
            named = {name: value for name, value in named.items() if name not in AUTHORITIES}
        environment = {**kept, **named}
        done = subprocess.run(
            command, cwd=directory / "program", env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        assert done.stdout == expected, f"it printed\n{done.stdout}and the page says\n{expected}{done.stderr}"
    finally:
        wrong = broker.finish()
    assert wrong is None, wrong


def programs() -> list[Callable]:
    """A test for each program of each page, and for each way to run it."""
    tests = []
    for language in LANGUAGES:
        page = DOCS / "clients" / f"{language}.md"
        all_blocks = blocks(page)
        mine = [(block, behind) for block, behind in zip(all_blocks, all_blocks[1:]) if block.words[:1] == [language]]
        for number, (block, behind) in enumerate(mine, 1):
            assert behind.words == ["text"], f"{page.name}: program {number} is not followed by its output"
            ways = [True] if "tls" in block.words else [False, True] if number == 1 and language not in BY_ARGUMENT else [False]
            for secured in ways:
                ending = "_with_keys_and_tls" if secured else ""

                def test(_world: None, page=page, block=block, behind=behind, number=number, secured=secured, ending=ending) -> None:
                    run_program(page, block, behind.text, DIRECTORY / f"{page.stem}-{number}{ending}", secured)

                test.__name__ = f"program_{number}_of_{page.name}{ending}"
                tests.append(test)
    assert len(tests) >= 12, f"{len(tests)} programs are found"
    return tests


def main() -> int:
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(parents=True)
    return checks.run(programs(), None, [], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
