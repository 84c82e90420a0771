#!/usr/bin/env python3
"""The pages for users: every program of docs/clients is run as it is, each against a broker of its own, with the connection string
and the variables that the page sets; the commands of the other pages (shells.py); docs/configuration.md is compared with what the broker
says of itself, commands and options of all documents with its help, files with what it takes, and pages that repeat others with these.

A program is a fenced block in the page's language, and the block of text behind it is what it must print. The first program of a page
is run in the emulator's place, and with keys and TLS; the others in the emulator's place, but for those whose fence says `tls`.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from azure.servicebus import ServiceBusClient, ServiceBusMessage

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import checks  # noqa: E402
import shells  # noqa: E402
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
    replaced = [("localhost:5300", f"{ADDRESS}:{port}"), ("localhost", ADDRESS), ("=KEY'", f"={key}'"), ("$PWD/jitney-data", str(data))]
    for old, new in replaced:
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
# Former names of options, which are taken and are in no help.
FORMER = {"--most", "--settle", "--dead-letter"}
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
        directory / "broker", directory / "config.json", ["--auth", profile, "--https", f"{ADDRESS}:443"], host=ADDRESS,
        ends_with=os.getpid(),
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


# The strings that users have: with a port and without, in the emulator's place and with keys.
EMULATED = ("", ":5300", ":5672")
# Go's client takes a port for a part of the name in the certificate.
KEYED = {"python": ("", ":5300"), "javascript": ("", ":5300"), "go": ("",), "java": ("", ":5300")}


def run_with_strings(language: str) -> None:
    """Runs the first program of a page with each connection string and the variables of `jitney env`, nothing else: the broker listens
    at the ports to which SDKs go, and its certificate is for other names than this address."""
    page = DOCS / "clients" / f"{language}.md"
    all_blocks = blocks(page)
    mine = [(block, behind) for block, behind in zip(all_blocks, all_blocks[1:]) if block.words[:1] == [language]]
    for profile, endings in (("development", EMULATED), ("sas", KEYED[language])):
        by_argument = profile == "sas" and language in BY_ARGUMENT
        block, behind = next(pair for pair in mine if not by_argument or "tls" in pair[0].words)
        directory = DIRECTORY / f"{language}-strings-{profile}"
        (directory / "program").mkdir(parents=True)
        (directory / "config.json").write_text(json.dumps(EMPTY))
        further = [word for flag, port in (("amqp", 5672), ("amqps", 5671), ("http", 5300), ("http", 80), ("https", 443))
                   for word in (f"--{flag}", f"{ADDRESS}:{port}")]
        broker = Broker.create(
            directory / "broker", directory / "config.json", ["--auth", profile, *further], host=ADDRESS, ends_with=os.getpid(),
        )
        broker.start()
        try:
            data = Path(broker.state["data_dir"])
            (directory / "program" / "jitney-data").symlink_to(data)
            kept = {name: value for name, value in os.environ.items() if name not in AUTHORITIES and name.lower() not in PROXIES}
            told = output("env", "--java", "--format", "file", "--url", f"http://{ADDRESS}:5300", "--data-dir", str(data),
                          "--directory", str(directory / "authorities"))
            named = dict(line.split("=", 1) for line in told.splitlines())
            whole = named["SERVICEBUS_CONNECTION_STRING"]
            assert f"sb://{ADDRESS}" in whole, whole
            command = LANGUAGES[language](directory / "program", block, page)
            for ending in endings:
                string = re.sub(rf"sb://{re.escape(ADDRESS)}(:\d+)?", f"sb://{ADDRESS}{ending}", whole)
                done = subprocess.run(
                    command, cwd=directory / "program", env={**kept, **named, "SERVICEBUS_CONNECTION_STRING": string},
                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
                )
                assert done.returncode == 0, f"{string}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
                assert done.stdout == behind.text, f"{string}: it printed\n{done.stdout}{done.stderr}"
                # The next program creates it again.
                queue = "secured" if "tls" in block.words else "orders"
                reach = ["--connection", whole, "--ca", str(directory / "authorities" / "ca.pem")] if profile == "sas" else []
                output("queues", "delete", queue, "--yes", *reach, *([] if reach else ["--url", f"http://{ADDRESS}:5300"]))
        finally:
            wrong = broker.finish()
        assert wrong is None, wrong


def strings() -> list[Callable]:
    tests = []
    for language in LANGUAGES:
        def test(_world: None, language=language) -> None:
            run_with_strings(language)

        test.__name__ = f"every_string_serves_{language}"
        tests.append(test)
    return tests


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


# The service's longest time, which means that there is no limit.
FOR_EVER = "P10675199DT2H48M5.4775807S"
CONFIGURATION = DOCS / "configuration.md"


def tables(section: str) -> list[list[str]]:
    """The rows of all tables in a section of docs/configuration.md, without their heads; sections below it count as its parts."""
    marks = section.split()[0]
    text = CONFIGURATION.read_text()
    assert f"\n{section}\n" in text, f"there is no section {section}"
    behind = text.split(f"\n{section}\n", 1)[1]
    part = re.split(rf"^#{{1,{len(marks)}}} ", behind, maxsplit=1, flags=re.MULTILINE)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    rules = [at for at, row in enumerate(rows) if set("".join(row)) <= set("-| ")]
    heads = {at - 1 for at in rules} | set(rules)
    return [row for at, row in enumerate(rows) if at not in heads]


def literals(cell: str) -> list[str]:
    """What a cell has between backticks."""
    return re.findall(r"`([^`]*)`", cell)


def output(*words: str, code: int = 0) -> str:
    done = subprocess.run([str(binary()), *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def every_option_of_serve_is_on_the_page_with_its_default_and_no_other(_world: None) -> None:
    helped: dict[str, str] = {}
    for part in re.split(r"^ {2,6}(?=-)", output("serve", "--help"), flags=re.MULTILINE)[1:]:
        helped[re.match(r"(?:-\w, )?(--[\w-]+)", part)[1]] = part
    rows = {literals(row[0])[0].split()[0]: row for row in tables("## Options of jitney serve")}
    assert set(helped) == set(rows), f"not on the page {set(helped) - set(rows)}, not in the help {set(rows) - set(helped)}"
    for option, text in helped.items():
        default = re.search(r"\[default: (.*?)\]", text, re.DOTALL)
        if default:
            assert " ".join(default[1].split()) in literals(rows[option][1]), f"{option}: the default is {default[1]}"
        else:
            written = [word for word in literals(rows[option][1]) if re.fullmatch(r"[\d.:]+", word)]
            assert not written, f"{option} has no default {written} of its own"
        variable = re.search(r"\[env: (\w+)", text)
        named = re.findall(r"variable `(\w+)`", rows[option][2]) or [f"JITNEY_{option[2:].replace('-', '_').upper()}"]
        assert option == "--help" or variable and named == [variable[1]], f"{option}: the variable is {variable and variable[1]}, not {named}"


def every_property_of_an_entity_has_the_bounds_that_the_page_says(_world: None) -> None:
    rows = {literals(row[0])[0]: row for row in tables("### Properties")}
    source = (ROOT / "crates" / "config" / "src" / "lib.rs").read_text()
    listed = re.search(r"const PROPERTIES: \[&str; \d+\] = \[(.*?)\];", source, re.DOTALL)[1]
    known = set(re.findall(r'"(\w+)"', listed))
    below = CONFIGURATION.read_text().split("### Properties", 1)[1].split("### Rules", 1)[0]
    assert known == {name for name in literals(below) if name in known} and set(rows) <= known, known ^ set(rows)
    queue = {"Name": "q", "Properties": dict.fromkeys(rows, [])}
    file = DIRECTORY / "wrong.json"
    file.write_text(json.dumps({"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [queue]}]}}))
    told = dict(re.findall(r"Properties\.(\w+): found .*?; allowed: (.*)", output("config", "check", str(file), code=1)))
    assert set(told) == set(rows), set(told) ^ set(rows)
    for name, row in rows.items():
        missing = [word for word in literals(row[4]) if word not in told[name]]
        assert literals(row[4]) and not missing, f"{name}: the broker says {told[name]}, and the page has {missing}"


def every_property_of_an_entity_has_the_defaults_that_the_page_says(_world: None) -> None:
    rows = {literals(row[0])[0]: row for row in tables("### Properties")}
    kinds = {"Q": "Queues", "T": "Topics", "S": "Subscriptions"}
    for column, defaults in ((2, "emulator"), (3, "service")):
        directory = DIRECTORY / f"defaults-{defaults}"
        directory.mkdir()
        topic = {"Name": "t", "Subscriptions": [{"Name": "s"}]}
        file = directory / "config.json"
        file.write_text(json.dumps({"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [{"Name": "q"}], "Topics": [topic]}]}}))
        broker = Broker.create(directory / "broker", file, ["--config-defaults", defaults], ends_with=os.getpid())
        broker.start()
        try:
            made = json.loads(output("export", "config", "--url", f"http://127.0.0.1:{broker.http_port}"))
        finally:
            wrong = broker.finish()
        assert wrong is None, wrong
        namespace = made["UserConfig"]["Namespaces"][0]
        found = {"Q": namespace["Queues"][0], "T": namespace["Topics"][0], "S": namespace["Topics"][0]["Subscriptions"][0]}
        for kind, entity in found.items():
            assert entity["Properties"], f"no properties of {kinds[kind]}"
            for name, value in entity["Properties"].items():
                assert kind in rows[name][1].split(), f"{name} is one of {kinds[kind]}"
                text = value if isinstance(value, str) else json.dumps(value)
                if text == FOR_EVER:
                    assert rows[name][column] == "no limit", name
                    continue
                is_said = [text] == literals(rows[name][column])
                assert is_said, f"{name} of {kinds[kind]} is {text} by default, with --config-defaults {defaults}"
            # What is not exported has no value.
            for name, row in rows.items():
                if kind in row[1].split() and name not in entity["Properties"]:
                    silent = row[column] in ("no limit", "never", "none", "the namespace's", '`"Active"`', "`false`")
                    assert silent, f"{name} of {kinds[kind]} has no value by default, with --config-defaults {defaults}"


def the_example_of_the_page_is_accepted_without_a_warning(_world: None) -> None:
    file = DIRECTORY / "example.json"
    file.write_text(next(block.text for block in blocks(CONFIGURATION) if block.words == ["json"]))
    said = output("config", "check", "--strict", str(file))
    assert "ok (1 queues, 1 topics)" in said and "warning" not in said, said


def the_pages_name_the_versions_that_are_run(_world: None) -> None:
    texts = {name: (DOCS / "clients" / f"{name}.md").read_text() for name in LANGUAGES}
    packages = json.loads((HERE / "package.json").read_text())["dependencies"]
    module, version = re.search(r"(\S+/azservicebus) (v\S+)", (HERE / "go.mod").read_text()).groups()
    pinned = re.search(r"^azure-servicebus==\S+", (HERE.parent / "python" / "requirements.txt").read_text(), re.MULTILINE)[0]
    java = re.search(r"azure-messaging-servicebus</artifactId>\s*<version>.*?</version>", (HERE.parent / "java" / "pom.xml").read_text())[0]
    assert f"pip install {pinned}\n" in texts["python"], pinned
    assert f"npm install @azure/service-bus@{packages['@azure/service-bus']}\n" in texts["javascript"], packages
    assert f"go get {module}@{version}\n" in texts["go"], version
    assert re.sub(r"\s+", "", java) in re.sub(r"\s+", "", texts["java"]), java


def every_file_of_the_tree_that_a_page_shows_is_as_it_shows_it(_world: None) -> None:
    """A block behind a line that is a link and a colon has the text of the file."""
    count = 0
    for page in PAGES:
        shown = re.findall(r"^\[[^\]\n]+\]\(([^)#\n]+)\):\n\n```[^\n]*\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
        for path, text in shown:
            count += 1
            assert (page.parent / path).read_text() == text, f"{page.name} shows another text of {path}"
    assert count >= 6, f"{count} files are found"


@functools.cache
def help_of(*words: str) -> str:
    return output(*words, "--help")


PUNCTUATION = set("();<>|&")
# What a command may be behind, as the end of another one.
KEYWORDS = ("until", "do", "if", "then", "while", "!", "exec")
# A program is called by its name or its path, and by a unit of systemd behind the name of a setting.
PROGRAM = re.compile(r"(ExecStart=)?([\w~./-]*/)?jitney")
# A word that stands for one of the reader's.
PLACEHOLDER = re.compile(r"[A-Z][A-Z_-]*|.*(…|\.\.\.|\$).*")
PAGES = [ROOT / "README.md", ROOT / "certs" / "README.md", *sorted(DOCS.glob("**/*.md"))]


def lines_of(page: Path) -> list[str]:
    """The lines of a page that may be commands: in its blocks, and between backticks in its text."""
    text = page.read_text()
    found = []
    for block in shells.fences(str(page.relative_to(ROOT))):
        lines = block.text.replace("\\\n", " ").splitlines()
        if block.words[:1] == ["text"]:
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        elif block.words[:1] not in ([], ["sh"], ["ini"], ["yaml"]):
            lines = []
        found += [re.sub(r"^\s*(- )?(run: )?", "", line) for line in lines]
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return found + [" ".join(span.split()) for span in re.findall(r"`(jitney [^`]*)`", prose)]


def commands_of(line: str) -> list[list[str]]:
    """The words of each command of `jitney` in a line."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    try:
        tokens = list(reader)
    except ValueError:
        # A text of several lines is quoted.
        return []
    found = []
    # What a command is behind: nothing, the end of another one, or a variable.
    before = [";", *tokens]
    for at, token in enumerate(tokens):
        if " " in token:
            found += commands_of(token)
        elif PROGRAM.fullmatch(token) and (set(before[at]) <= PUNCTUATION or before[at] in KEYWORDS or re.match(r"\w+=", before[at])):
            behind = tokens[at + 1:]
            ends = [end for end, token in enumerate(behind) if token and set(token) <= PUNCTUATION]
            words = behind[: ends[0] if ends else len(behind)]
            # The number of a stream that is led elsewhere.
            found.append(words[:-1] if ends and words[-1:] == ["2"] else words)
    return found


def every_command_of_the_documents_is_one_that_jitney_knows(_world: None) -> None:
    wrong, count = [], 0
    for page, line, words in [(page, line, words) for page in PAGES for line in lines_of(page) for words in commands_of(line)]:
        whole = tuple(words)
        if PLACEHOLDER.fullmatch((*whole, "serve")[0]):
            continue
        path: list[str] = []
        while words:
            below = help_of(*path).partition("Commands:\n")[2].partition("\n\n")[0]
            if words[0] not in re.findall(r"^  ([\w-]+)", below, re.MULTILINE):
                break
            path.append(words.pop(0))
        if not path and words[:1] != ["--version"]:
            wrong.append(f"{page.name}: there is no such command: {line}")
        options = {word.partition("=")[0] for word in words if re.match(r"--\w", word)}
        missing = [option for option in options if not re.search(rf"{option}(?![\w-])", help_of(*path))]
        wrong += [f"{page.name}: there is no option {option}: {line}" for option in missing]
        count += 1
        if not any(PLACEHOLDER.fullmatch(word) for word in whole):
            # What is before is parsed, with its values.
            done = subprocess.run([str(binary()), *whole, "--help"], capture_output=True, text=True, timeout=60)
            # The text names an option, and not its value.
            if done.returncode != 0 and not (whole[-1].startswith("--") and "a value is required" in done.stderr):
                wrong.append(f"{page.name}: {line}: {done.stderr.strip().splitlines()[0]}")
    assert count > 300, f"{count} commands are found"
    assert not wrong, "\n".join(wrong)


def every_option_that_the_documents_name_is_one_of_a_command(_world: None) -> None:
    """Options between backticks, alone or with a value."""
    known = set(re.findall(r"--[a-z][\w-]*", " ".join(help_of(*path) for path in all_commands())))
    wrong, count = [], 0
    for page in PAGES:
        prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for span in re.findall(r"`(--[a-z][^`]*)`", prose):
            for option in re.findall(r"(?:^|(?<=[\s/]))--[a-z][\w-]*", span):
                count += 1
                if option not in known | FORMER:
                    wrong.append(f"{page.relative_to(ROOT)}: {span}")
    assert count > 300, f"{count} options are found"
    assert not wrong, "\n".join(wrong)


def all_commands(path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = help_of(*path).partition("Commands:\n")[2].partition("\n\n")[0]
    names = [name for name in re.findall(r"^  ([\w-]+)", below, re.MULTILINE) if name != "help"]
    return [path, *(found for name in names for found in all_commands((*path, name)))]


def every_config_json_of_the_documents_is_accepted(_world: None) -> None:
    texts = []
    for page in PAGES:
        found = [block.text for block in shells.fences(str(page.relative_to(ROOT))) if '"UserConfig"' in block.text]
        # A file of a shell's block is between the marks of its end.
        texts += [(page, re.search(r"<<'(\w+)'\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL)[2] if "<<'" in text else text)
                  for text in found if text.lstrip().startswith("{") or "<<'" in text]
    assert len(texts) >= 4, f"{len(texts)} files are found"
    for number, (page, text) in enumerate(texts):
        file = DIRECTORY / f"config-{number}.json"
        # Keys are not written out.
        file.write_text(text.replace('Key": "…"', 'Key": "a key of sixteen letters or more"'))
        said = output("config", "check", "--strict", str(file))
        assert "ok (" in said, f"{page.name}: {said}"


def every_yaml_and_json_of_the_documents_is_well_formed(_world: None) -> None:
    counts = dict.fromkeys(("yaml", "json"), 0)
    for page in PAGES:
        for block in shells.fences(str(page.relative_to(ROOT))):
            kind = (block.words or [""])[0]
            if kind in counts:
                counts[kind] += 1
                try:
                    # JSON is YAML, but for what is easily read wrongly.
                    json.loads(block.text) if kind == "json" else list(yaml.safe_load_all(block.text))
                except (ValueError, yaml.YAMLError) as error:
                    raise AssertionError(f"{page.name}: {error}\n{block.text}") from error
    assert all(2 < count for count in counts.values()), counts


def every_alert_is_on_the_page_of_monitoring_with_its_severity(_world: None) -> None:
    rules = (DOCS / "monitoring" / "alerts.yml").read_text()
    alerts = dict(re.findall(r"- alert: (\w+)$.*?severity: (\w+)", rules, re.MULTILINE | re.DOTALL))
    rows = re.findall(r"^\| (`Jitney.*?) \| (\w+) \|", (DOCS / "monitoring" / "README.md").read_text(), re.MULTILINE)
    written = {name: severity for names, severity in rows for name in literals(names)}
    assert alerts and written == alerts, set(written.items()) ^ set(alerts.items())


def every_figure_of_the_page_of_sizes_was_measured(_world: None) -> None:
    sources = " ".join((DOCS / f"{name}.md").read_text() for name in ("performance", "growth", "memory", "overload", "shards"))
    measured = set(re.findall(r"\d[\d,.]*\d|\d", sources))
    rows = [line for line in (DOCS / "sizing.md").read_text().splitlines() if line.startswith("|")]
    figures = {figure for row in rows for figure in re.findall(r"\d[\d,.]*\d|\d", row)}
    assert len(figures) > 40 and figures <= measured, f"in none of the pages with measurements: {figures - measured}"


def entities_are_created_on_first_use_if_that_is_asked_for(_world: None) -> None:
    directory = DIRECTORY / "first-use"
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(EMPTY))
    broker = Broker.create(directory / "broker", directory / "config.json", ["--create-on-use"], ends_with=os.getpid())
    broker.start()
    try:
        string = (f"Endpoint=sb://127.0.0.1:{broker.http_port};SharedAccessKeyName=any;SharedAccessKey=any;"
                  "UseDevelopmentEmulator=true;")
        with ServiceBusClient.from_connection_string(string) as client:
            with client.get_queue_sender("orders") as sender, client.get_queue_receiver("orders") as receiver:
                sender.schedule_messages(ServiceBusMessage("later"), datetime.now(UTC) + timedelta(hours=1))
                sender.send_messages(ServiceBusMessage("hello"))
                [message] = receiver.receive_messages(max_wait_time=10)
                assert str(message) == "hello"
                receiver.complete_message(message)
            with client.get_subscription_receiver("news", "eu") as receiver, client.get_topic_sender("news") as sender:
                assert receiver.peek_messages() == []
                sender.send_messages(ServiceBusMessage("published"))
                [message] = receiver.receive_messages(max_wait_time=10)
                assert str(message) == "published"
            with client.get_queue_sender("ordered") as sender:
                # A sender comes first: the queue has no sessions.
                sender.send_messages(ServiceBusMessage("plain"))
            with client.get_queue_receiver("carts", session_id="one") as receiver, client.get_queue_sender("carts") as sender:
                sender.send_messages(ServiceBusMessage("in a session", session_id="one"))
                [message] = receiver.receive_messages(max_wait_time=10)
                assert message.session_id == "one"
        listed = output("queues", "list", "--url", f"http://127.0.0.1:{broker.http_port}")
        assert all(name in listed for name in ("orders", "ordered", "carts")), listed
        said = output("audit", "--url", f"http://127.0.0.1:{broker.http_port}")
        assert "on first use" in said, said
    finally:
        wrong = broker.finish()
    assert wrong is None, wrong


TESTS: list[Callable] = [
    entities_are_created_on_first_use_if_that_is_asked_for,
    every_alert_is_on_the_page_of_monitoring_with_its_severity,
    every_figure_of_the_page_of_sizes_was_measured,
    every_command_of_the_documents_is_one_that_jitney_knows,
    every_config_json_of_the_documents_is_accepted,
    every_option_that_the_documents_name_is_one_of_a_command,
    every_yaml_and_json_of_the_documents_is_well_formed,
    every_option_of_serve_is_on_the_page_with_its_default_and_no_other,
    every_property_of_an_entity_has_the_bounds_that_the_page_says,
    every_property_of_an_entity_has_the_defaults_that_the_page_says,
    the_example_of_the_page_is_accepted_without_a_warning,
    the_pages_name_the_versions_that_are_run,
    every_file_of_the_tree_that_a_page_shows_is_as_it_shows_it,
]


def main() -> int:
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(parents=True)
    return checks.run(TESTS + shells.tests(DIRECTORY) + programs() + strings(), None, [], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
