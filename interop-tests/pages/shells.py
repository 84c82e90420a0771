"""The commands of the pages for users, run as they are written: each page in a directory of its own, with a network, `/etc/hosts`,
`/var/lib` and `/var/backups` of its own, so that a page may take the ports, the files and the processes that it names.

A line `jitney serve …` is run beside those that follow it, in the place of the broker before it, and waited for until it is healthy. A
command that would ask gets `--yes`. `PID` is the broker's. Every command must end with 0, but for those that name a number or an id, which
the reader has and a new broker has not: they may say that there is none. What a block of text behind commands says must have been printed;
times, ids and sizes differ, and `…` stands for anything.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from broker import ROOT, binary  # noqa: E402

SECONDS = 240
PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@dataclass
class Page:
    """A page, and what its reader has besides."""

    path: str
    # Shell commands before the first block.
    given: str = ""
    # Shell commands before the first line that has a text.
    before: dict[str, str] = field(default_factory=dict)
    # The beginnings of lines that are not run, and of texts that are not looked for, and why.
    skipped: dict[str, str] = field(default_factory=dict)
    # Blocks of the page that are files: a text that they have, and the name of the file.
    files: dict[str, str] = field(default_factory=dict)


@dataclass
class Fence:
    """A fenced block, wherever it is indented."""

    words: list[str]
    text: str


def fences(path: str) -> list[Fence]:
    found = re.findall(r"^( *)```([^\n]*)\n(.*?)^ *```$", (ROOT / path).read_text(), re.MULTILINE | re.DOTALL)
    return [Fence(words.split(), re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)) for indent, words, text in found]


PROLOGUE = """
set -u
ip link set lo up
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /var/backups
cp /etc/hosts hosts
mount --bind hosts /etc/hosts
exec </dev/null 2>&1
: >failed
trap 'code=$?; printf "%s\\t%s\\n" "$code" "$BASH_COMMAND" >>failed' ERR
broker= last=
stop() { if [ -n "$broker" ]; then kill "$broker" 2>/dev/null; wait "$broker" 2>/dev/null; broker=; fi; true; }
start() {
  stop
  last="$1"
  eval "$1 2>serve.log &"
  broker=$!
  for _ in $(seq 200); do
    if timeout 5 jitney health >health.log 2>&1; then cat serve.log; return 0; fi
    if ! kill -0 "$broker" 2>/dev/null; then echo "it has ended: $1"; cat serve.log; broker=; return 1; fi
    sleep 0.1
  done
  echo "it is not healthy: $1"; cat health.log serve.log; return 1
}
revive() { if [ -n "$last" ] && ! kill -0 "$broker" 2>/dev/null; then start "$last"; fi; true; }
"""
# In a broker's place a page may start others, which end with the process namespace.
EPILOGUE = """
stop
exit 0
"""
ENTER = ["unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash"]

BUILT = dict.fromkeys(("make", "install target/", "export PATH="), "it is a build")
INSTALLED = dict.fromkeys(
    ("docker ", "sudo ", "tar -xf", "useradd ", "mkdir /etc", "cp packaging", "chgrp ", "chmod ", "systemctl "),
    "it changes the system: the suites dist and container",
)
READERS = "the program is the reader's"
GONE = "jitney queues delete orders --yes >/dev/null"
# A certificate of the reader's.
CERTIFICATE = "jitney certs given >/dev/null; cp given/server.pem given/server.key ."
# The connection string that the log of a broker with keys has.
STRING = r"""STRING=$(sed -n 's/.*connect: \(Endpoint=[^ ]*\).*/\1/p' serve.log)"""
# An authority's second certificate, for a broker in the cloud's place.
CLOUD = """
cp -r jitney-data/certs cloud-certs
jitney certs cloud-certs --name 127.0.0.2 >/dev/null
jitney serve --auth sas --data-dir cloud-data --amqp 127.0.0.2:5672 --http 127.0.0.2:5300 --https 127.0.0.2:443 \\
  --tls-cert cloud-certs/server.pem --tls-key cloud-certs/server.key 2>cloud.log &
timeout 20 sh -c 'until jitney health --url http://127.0.0.2:5300 >/dev/null 2>&1; do sleep 0.1; done'
CLOUD="Endpoint=sb://127.0.0.2;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=$(cat cloud-data/root.key)"
JITNEY="Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=$(cat jitney-data/root.key)"
at="--url http://127.0.0.2:5300 --data-dir cloud-data"
for queue in bills orders; do jitney queues create $queue $at >/dev/null; done
jitney queues create fwd --set forward_to=bills $at >/dev/null
jitney topics create news $at >/dev/null
jitney subscriptions create news/Subscriptions/eu --rule eu --filter "region = 'eu'" $at >/dev/null
"""
# What the portal exports, by hand.
TEMPLATE = """cat >template.json <<'END'
{"resources": [
  {"type": "Microsoft.ServiceBus/namespaces", "name": "[parameters('namespaces_bus_name')]", "properties": {}},
  {"type": "Microsoft.ServiceBus/namespaces/queues", "name": "[concat(parameters('namespaces_bus_name'), '/orders')]",
   "properties": {"lockDuration": "PT30S", "maxDeliveryCount": 5, "forwardTo": "bills", "status": "Active"}},
  {"type": "Microsoft.ServiceBus/namespaces/queues", "name": "[concat(parameters('namespaces_bus_name'), '/bills')]",
   "properties": {"lockDuration": "PT1M", "autoDeleteOnIdle": "P10675199DT2H48M5.4775807S"}},
  {"type": "Microsoft.ServiceBus/namespaces/topics", "name": "[concat(parameters('namespaces_bus_name'), '/news')]",
   "properties": {"supportOrdering": true}},
  {"type": "Microsoft.ServiceBus/namespaces/topics/subscriptions",
   "name": "[concat(parameters('namespaces_bus_name'), '/news/eu')]", "properties": {"isClientAffine": false, "maxDeliveryCount": 7}},
  {"type": "Microsoft.ServiceBus/namespaces/topics/subscriptions/rules",
   "name": "[concat(parameters('namespaces_bus_name'), '/news/eu/urgent')]",
   "properties": {"action": {}, "filterType": "SqlFilter", "sqlFilter": {"sqlExpression": "priority > 5", "compatibilityLevel": 20}}}
]}
END
"""

PAGES = [
    Page(
        "README.md",
        given='start "jitney serve"',
        skipped=BUILT | {"pip install": "it is installed", "python first.py": "the suite cli runs it", "1 hello": "the suite cli runs it"},
        before={"jitney serve --ephemeral": "stop; last=", "--tls-cert server.pem": f"kill $!; wait $!; {CERTIFICATE}"},
    ),
    Page("docs/install.md", skipped=BUILT | INSTALLED, before={"$STRING": STRING, "--tls-cert server.pem": CERTIFICATE}),
    Page(
        "docs/from-the-emulator.md",
        # The page's file, with the mistake of which it tells.
        given="sed 's/LockDuration/LockDuraton/' Config.json >bad.json",
        skipped={"docker compose": "it starts the emulator", "JITNEY_DATA_DIR=": "variables of an image"},
    ),
    Page(
        "docs/from-the-cloud.md",
        files={"list_queues": "copy_entities.py", "json.load(sys.stdin)": "config_of_template.py"},
        before={"REQUESTS_CA_BUNDLE": CLOUD, "template.json": TEMPLATE, "jitney peek": "export SSL_CERT_FILE=jitney-data/certs/bundle.pem"},
    ),
    Page(
        "docs/tests-and-ci.md",
        given=f"cp {ROOT}/interop-tests/examples/pytest/conftest.py {ROOT}/interop-tests/examples/pytest/Config.json .",
        files={"def client(namespace)": "test_orders.py"},
    ),
    Page("docs/configuration.md", given='start "jitney serve"'),
    Page(
        "docs/command-line.md",
        given='start "jitney serve --config Config.json"',
        before={"jitney queues update": "jitney queues update orders --set lock_duration=1m >/dev/null"},
        skipped={"Deleted 200,000": "so many messages are not sent here"},
    ),
    Page(
        "docs/operating.md",
        before={
            "curl http://localhost:5300/health": """
                start "jitney serve --config Config.json"
                jitney queues create archive >/dev/null
                for body in 1 2 3; do jitney send orders --body $body >/dev/null; done
                printf 'one\\ntwo\\n' >orders.txt
                """,
            "jitney queues create orders": GONE,
            "jitney subscriptions create": "jitney subscriptions delete news/Subscriptions/eu --yes >/dev/null",
            "jitney import config": "jitney send orders --body x >/dev/null; jitney receive orders --outcome dead-letter >/dev/null",
            "--next-session": f"{GONE}; jitney queues create orders --set requires_session=true >/dev/null",
            "jitney deferred": f"{GONE}; jitney queues create orders >/dev/null",
            "jitney restore": "stop; mv jitney-data before",
            "jitney log check": "stop",
        },
    ),
    Page("docs/upgrading.md", given='start "jitney serve --data-dir /var/lib/jitney"'),
    Page(
        "docs/troubleshooting.md",
        given='start "jitney serve --config Config.json"; jitney send orders --body 1 >/dev/null',
        skipped={
            "INFO jitney_gateway": "the log of a broker that verifies keys",
            **dict.fromkeys(("NUMBER STATE", "6 active"), "a client holds a lock"),
            "changed 1": "a client holds a lock",
        },
    ),
    Page("docs/monitoring/README.md"),
    Page(
        "docs/clients/README.md",
        given='start "jitney serve"',
        skipped={
            "Endpoint=sb://": "it is to be read",
            ";UseDevelopmentEmulator": "it names a home directory",
            "INFO jitney: listening": "the ports depend on the machine",
        },
    ),
    Page("docs/frameworks/README.md", given="printf '#!/bin/sh\\ntest -r \"$SSL_CERT_FILE\"\\n' >program; chmod +x program"),
    Page("docs/identity.md", files={"# issuer.py": "issuer.py"}),
    Page(
        "certs/README.md",
        before={"curl --cacert": 'jitney certs certs --name localhost >/dev/null; start "$last"'},
        skipped={
            **dict.fromkeys(("NODE_EXTRA_CA_CERTS=", "SSL_CERT_FILE=", "java ", "REQUESTS_CA_BUNDLE="), READERS),
            "cp $C/bundle.pem": "it changes Python's own file",
            "cp certs/ca.pem /usr": "it changes the system",
        },
    ),
]
# Pages with commands of `jitney` that need what is not here.
ELSEWHERE = {
    **{f"docs/clients/{name}.md": "programs()" for name in ("python", "javascript", "go", "java")},
    "docs/clients/dotnet.md": "the suite dotnet has its programs",
    "docs/high-availability.md": "it needs PostgreSQL: the suite ha",
    "docs/deploy/README.md": "it needs a cluster: the suite deploy",
}


def without_comment(line: str) -> str:
    return re.sub(r"(^|\s)\s*#\s.*$", "", line)


@functools.cache
def asks(words: tuple[str, ...]) -> bool:
    """Whether a command has an option by which it does not ask."""
    return "--yes" in subprocess.run([binary(), *words, "--help"], capture_output=True, text=True, timeout=60).stdout


def command_of(line: str) -> str:
    """A line of a page, as it is run."""
    line = without_comment(line).rstrip()
    if re.match(r"(\w+=\S+ )*jitney serve\b", line) and not line.endswith("&"):
        return f"start {shlex.quote(line)}"
    words = line.split()
    if words[:1] == ["jitney"] and "--yes" not in words and "--dry-run" not in words:
        names = tuple(word for word in words[1:3] if re.fullmatch(r"[a-z-]+", word))
        if asks(names) or asks(names[:1]):
            line += " --yes"
    return {"kill -TERM PID": "kill -TERM $broker; wait $broker", "kill -HUP PID": "revive; kill -HUP $broker"}.get(line, line)


def script_of(page: Page, blocks: list[Fence]) -> str:
    waiting = dict(page.before)
    lines = [PROLOGUE, page.given]
    for block in blocks:
        if block.words[:1] == ["sh"]:
            commands = block.text.replace("\\\n", " ").splitlines()
        elif block.words[:1] == ["text"]:
            # An example of a session: what it prints is in the text.
            commands = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
        else:
            continue
        lines.append("revive")
        for line in commands:
            if any(line.startswith(beginning) for beginning in page.skipped):
                continue
            for text in [text for text in waiting if text in line]:
                lines.append(waiting.pop(text))
            lines.append(command_of(line) + (" || true" if block.words[:1] == ["text"] else ""))
    assert not waiting, f"{page.path} has no line with {list(waiting)}"
    return "\n".join([*lines, EPILOGUE])


def comparable(text: str) -> str:
    """A text without what differs each time."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z?", "TIME", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "ID", text)
    text = re.sub(r"\b(?:less than )?\d[\d.,]*( ?)(ms|s)\b", r"N\1s", text)
    return re.sub(r"\s+", " ", text).strip()


def may_be_absent(code: str, command: str) -> bool:
    """Whether a command names a message, a job or a lock of the reader's, and is told that there is none."""
    return code == "4" and re.search(r"\b\d+\b", command) is not None or code == "1" and re.search(r"\b[0-9a-f]{8}-", command) is not None


def run(page: Page, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "bin").mkdir(parents=True)
    (directory / "bin" / "jitney").symlink_to(binary().resolve())
    blocks = fences(page.path)
    # The page's own, or that of the page for users of the emulator.
    all_blocks = [*blocks, *fences("docs/from-the-emulator.md")]
    configurations = [block for block in all_blocks if '"UserConfig"' in block.text and block.words == ["json"]]
    (directory / "Config.json").write_text(configurations[0].text)
    for text, name in page.files.items():
        (directory / name).write_text(next(block.text for block in blocks if text in block.text))
    (directory / "script").write_text(script_of(page, blocks))
    foreign = ("JITNEY_", "SERVICEBUS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign) and name.lower() not in PROXIES}
    path = f"{directory / 'bin'}:{ROOT / '.venv' / 'bin'}:{kept['PATH']}"
    environment = {**kept, "PATH": path, "HOME": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*ENTER, "script"], cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
    )
    printed = done.stdout
    assert done.returncode == 0, f"exit code {done.returncode}\n{printed[-3000:]}{done.stderr[-1000:]}"
    failed = [line.split("\t", 1) for line in (directory / "failed").read_text().splitlines()]
    wrong = [f"exit code {code}: {command}" for code, command in failed if not may_be_absent(code, command)]
    for block in blocks:
        if block.words[:1] == ["text"]:
            for part in re.split(r"^\$ .*$|…", block.text, flags=re.MULTILINE):
                part = comparable(part)
                if not part or any(part.startswith(beginning) for beginning in page.skipped):
                    continue
                if part not in comparable(printed):
                    wrong.append(f"it does not print: {part}")
    assert not wrong, "\n".join([*wrong, "it printed:", printed[-6000:]])


def every_page_with_commands_is_run(_world: None) -> None:
    known = {page.path for page in PAGES} | set(ELSEWHERE)
    pages = [ROOT / "README.md", ROOT / "certs" / "README.md", *(ROOT / "docs").glob("**/*.md")]
    found = {
        str(page.relative_to(ROOT))
        for page in pages
        for block in fences(str(page.relative_to(ROOT)))
        if block.words[:1] in ([], ["sh"], ["text"], ["console"]) and re.search(r"^(\$ |\w+=\S+ )*jitney ", block.text, re.MULTILINE)
    }
    assert found <= known, f"not run: {found - known}"
    assert len(found) >= 15 and {page.path for page in PAGES} <= found, {page.path for page in PAGES} - found


def tests(directory: Path) -> list[Callable]:
    made = [every_page_with_commands_is_run]
    for page in PAGES:
        name = re.sub(r"\W+", "_", page.path)

        def test(_world: None, page=page, name=name) -> None:
            run(page, directory / f"shell-{name}")

        test.__name__ = f"the_commands_of_{name}_run"
        made.append(test)
    return made
