#!/usr/bin/env python3
"""The commands that send, receive and manage messages, against a broker of their own: what they print, and their exit codes."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import checks  # noqa: E402
from broker import ROOT, WORK, Broker, binary, free_ports  # noqa: E402

DIRECTORY = Path(os.environ.get("JITNEY_WORK", WORK / "cli")) / "own"
QUEUES = ["plain", "lines", "settled", "deferred", "scheduled", "secure", "wrong", "counted", "many", "held", "updated"]
CONFIG = {
    "UserConfig": {
        "Namespaces": [
            {
                "Name": "sbemulatorns",
                "Queues": [{"Name": name} for name in QUEUES] + [{"Name": "grouped", "Properties": {"RequiresSession": True}}],
                "Topics": [{"Name": "news", "Subscriptions": [{"Name": "one"}]}],
            }
        ]
    }
}


class Cli:
    """The command line, with the connection string of a broker."""

    def __init__(self, broker: Broker, closed: Broker):
        self.broker, self.closed = broker, closed
        url = f"http://127.0.0.1:{broker.http_port}"
        self.environment = {**os.environ, "SERVICEBUS_CONNECTION_STRING": broker.connection_string, "JITNEY_URL": url}

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess:
        command = [str(binary()), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, env=self.environment, timeout=60)

    def __call__(self, *arguments: str, stdin: bytes = b"") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, (arguments, done.returncode, done.stderr)
        return done.stdout.decode()

    def rows(self, *arguments: str) -> list[dict]:
        return [json.loads(line) for line in self(*arguments, "--output", "json").splitlines()]

    def fails(self, code: int, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == code, (arguments, done.returncode, done.stderr)
        return done.stderr.decode()


def a_message_arrives_as_it_was_sent(cli: Cli) -> None:
    given = ["--message-id", "m1", "--correlation-id", "c1", "--subject", "s", "--to", "t", "--reply-to", "r", "--ttl", "10m"]
    typed = ["n=7", "f=1.5", "b=true", 't="7"', "word=red"]
    cli("send", "plain", "--body", "hello", *given, *(word for pair in typed for word in ("--property", pair)))
    (seen,) = cli.rows("peek", "plain")
    (row,) = cli.rows("receive", "plain")
    assert row["body"] == {"kind": "data", "text": "hello"} == seen["body"], row
    assert row["properties"] == {"n": 7, "f": 1.5, "b": True, "t": "7", "word": "red"}, row
    assert [row[name] for name in ("message_id", "correlation_id", "subject", "to", "reply_to", "ttl_ms")] == ["m1", "c1", "s", "t", "r", 600000]
    assert cli.rows("receive", "plain", "--wait", "1") == []


def lines_files_and_bytes_are_bodies(cli: Cli) -> None:
    cli("send", "lines", "--lines", "--content-type", "application/json", stdin=b'{"a": 1}\nno json\n')
    cli("send", "lines", stdin=bytes([255, 0]))
    bodies = [row["body"] for row in cli.rows("receive", "lines", "--limit", "9", "--wait", "1s", "--delete")]
    assert bodies == [{"kind": "data", "json": {"a": 1}}, {"kind": "data", "text": "no json"}, {"kind": "data", "base64": "/wA="}], bodies


def a_message_is_settled_as_wanted(cli: Cli) -> None:
    cli("send", "settled", "--body", "x")
    assert cli.rows("receive", "settled", "--outcome", "abandon")[0]["delivery_count"] == 0
    assert cli.rows("receive", "settled", "--outcome", "dead-letter", "--reason", "Bad", "--description", "why")[0]["delivery_count"] == 1
    (row,) = cli.rows("peek", "settled", "--dead-letters")
    assert row["properties"] == {"DeadLetterReason": "Bad", "DeadLetterErrorDescription": "why"}, row
    assert "Bad" in cli("messages", "list", "settled", "--dead-letters", "--reason", "Bad")
    assert len(cli.rows("receive", "settled", "--dead-letters")) == 1
    assert "nothing" in cli("peek", "settled", "--dead-letters")


def deferred_messages_are_received_by_number(cli: Cli) -> None:
    cli("send", "deferred", "--body", "x")
    (row,) = cli.rows("receive", "deferred", "--outcome", "defer")
    number = str(row["sequence_number"])
    assert cli.rows("deferred", "deferred", number)[0]["state"] == "deferred"
    assert "message-not-found" in cli.fails(4, "deferred", "deferred", number)


def scheduled_messages_are_cancelled(cli: Cli) -> None:
    first, second = cli("schedule", "scheduled", "--in", "PT1H", "--body", "later", "--count", "2").split()
    cli("schedule", "scheduled", "--at", "2020-01-01T00:00:00Z", "--body", "now")
    assert cli("cancel", "scheduled", first) == "Cancelled 1 scheduled message of scheduled.\n"
    cli.fails(4, "cancel", "scheduled", first)
    assert cli.rows("receive", "scheduled")[0]["body"]["text"] == "now"
    assert [row["sequence_number"] for row in cli.rows("peek", "scheduled")] == [int(second)]
    assert '"state": "scheduled"' in cli("messages", "show", "scheduled", second, "--output", "json")


def sessions_are_named_or_next(cli: Cli) -> None:
    cli.fails(1, "send", "grouped", "--body", "x")
    for session in "ABC":
        cli("send", "grouped", "--body", session, "--session", session)
    assert [row["body"]["text"] for row in cli.rows("peek", "grouped", "--session", "C")] == ["C"]
    assert cli.rows("receive", "grouped", "--session", "B", "--wait", "PT1S")[0]["session_id"] == "B"
    assert {cli.rows("receive", "grouped", "--next-session", "--wait", "1")[0]["session_id"] for _ in range(2)} == {"A", "C"}
    assert cli.rows("receive", "grouped", "--next-session", "--wait", "1") == []


def a_subscription_gets_what_its_topic_is_sent(cli: Cli) -> None:
    cli("send", "news", "--body", "x")
    assert cli.rows("receive", "news/Subscriptions/one")[0]["body"]["text"] == "x"


def tls_trusts_the_authority_that_is_named(cli: Cli) -> None:
    authority = DIRECTORY / "ca.pem"
    with urllib.request.urlopen(f"http://127.0.0.1:{cli.broker.http_port}/ca.pem", timeout=10) as answer:
        authority.write_bytes(answer.read())
    text = f"Endpoint=sb://localhost:{cli.broker.amqp_port};SharedAccessKeyName=R;SharedAccessKey=k;EntityPath=secure"
    over = ["--connection", text, "--ca", str(authority)]
    cli("send", "secure", "--body", "x", *over)
    assert cli.rows("receive", "secure", *over)[0]["body"]["text"] == "x"
    assert "EntityPath" in cli.fails(2, "send", "plain", "--body", "x", *over)
    cli.fails(3, "send", "secure", "--body", "x", "--connection", text)


def messages_are_exported_and_imported(cli: Cli) -> None:
    bodies = [json.dumps({"body": f"line {n} ä", "properties": {"n": n}}) for n in range(230)]
    cli("import", "messages", "plain", "-", stdin="\n".join(bodies).encode())
    blob = bytes(range(256)) * 40
    with tempfile.TemporaryDirectory() as directory:
        first, second = Path(directory) / "first.jsonl", Path(directory) / "second.jsonl"
        cli("send", "plain", "--file", str(write(Path(directory) / "blob", blob)))
        cli("export", "messages", "plain", "--file", str(first))
        lines = [json.loads(line) for line in first.read_text().splitlines()]
        assert len(lines) == 231 and all(line["encoded"] and "body" not in line for line in lines)
        assert cli("export", "messages", "plain", "--filter", "n >= 225").count("\n") == 5
        cli("purge", "plain", "--yes")
        cli("import", "messages", "plain", str(first))
        cli("export", "messages", "plain", "--file", str(second))
        before, after = ([kept(line) for line in file.read_text().splitlines()] for file in (first, second))
        assert before == after, (before[:2], after[:2])
        shown = json.loads(cli("messages", "list", "plain", "--limit", "300", "--output", "json"))["messages"]
        assert [one["body"].get("text") for one in shown[:230]] == [f"line {n} ä" for n in range(230)] and shown[7]["properties"] == {"n": 7}
        # A wrong line is named, and the lines before it are sent once.
        cli("purge", "plain", "--yes")
        broken = bodies[:150] + ["{"] + bodies[150:]
        failed = cli.run("import", "messages", "plain", "-", stdin="\n".join(broken).encode())
        assert failed.returncode == 2 and b"Line 151" in failed.stderr and b"--from-line 101" in failed.stderr, failed.stderr
        mended = bodies[:150] + [""] + bodies[150:]
        cli("import", "messages", "plain", "-", "--from-line", "101", stdin="\n".join(mended).encode())
        shown = json.loads(cli("messages", "list", "plain", "--limit", "300", "--output", "json"))["messages"]
        assert [one["properties"]["n"] for one in shown] == list(range(230))
        cli("purge", "plain", "--yes")
        cli.fails(4, "import", "messages", "plain", str(Path(directory) / "none"))
        config = Path(directory) / "Config.json"
        cli("export", "config", "--file", str(config))
        assert {queue["Name"] for queue in json.loads(config.read_text())["UserConfig"]["Namespaces"][0]["Queues"]} >= set(QUEUES)
        cli("queues", "delete", "wrong", "--yes")
        assert json.loads(cli("import", "config", str(config), "--output", "json")) == {"made": 1, "changed": 0, "refused": []}
        cli("queues", "show", "wrong")


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def kept(line: str) -> bytes:
    """The bytes of a message from the application-properties on: the broker sets times before these, and a missing message id."""
    encoded = base64.b64decode(json.loads(line)["encoded"])
    return encoded[min(at for at in (encoded.find(b"\x00\x53\x74"), encoded.find(b"\x00\x53\x75")) if at != -1):]


def keys_are_rotated_and_looks_are_printed(cli: Cli) -> None:
    made = json.loads(cli("keys", "create", "plain", "app", "--right", "send", "--output", "json"))
    rotated = json.loads(cli("keys", "rotate", "plain", "app", "--key", "primary", "--yes", "--output", "json"))
    assert rotated["secondary_key"] == made["secondary_key"] and rotated["primary_key"] != made["primary_key"]
    assert "app" in cli("keys", "list", "plain") and "send" in cli("keys", "list", "plain")
    cli.fails(2, "keys", "delete", "plain", "app")
    cli("keys", "delete", "plain", "app", "--yes")
    assert cli("keys", "list", "plain").strip() == "nothing"
    cli("send", "counted", "--body", "a needle in the hay", "--message-id", "needle")
    found = json.loads(cli("search", "--text", "needle", "--output", "json"))["messages"]
    assert [(one["queue"], one["message"]["message_id"]) for one in found] == [("counted", "needle")], found
    assert "counted" in cli("search", "--message-id", "needle")
    cli("schedule", "scheduled", "--body", "later", "--in", "1h")
    assert sum(span["messages"] for span in json.loads(cli("scheduled", "scheduled", "--output", "json"))["spans"]) >= 1
    assert "points" in json.loads(cli("history", "--output", "json")) and "points" in json.loads(cli("history", "counted", "--output", "json"))
    assert json.loads(cli("history", "counted", "--range", "week", "--output", "json"))["interval_seconds"] == 1800
    assert "put" in cli("audit") or "create" in cli("audit") or "update" in cli("audit")
    cli("rules", "create", "news/Subscriptions/one", "red", "--filter", "color = 'red' AND n > 3")
    tested = cli("rules", "test", "news", "--message", json.dumps({"properties": {"color": "red"}}))
    assert "unknown" in tested and "n > 3" in tested and "true" in tested, tested
    cli("rules", "delete", "news/Subscriptions/one", "red")
    number = found[0]["message"]["sequence_number"]
    assert "$Default" in cli("rules", "test", "news/Subscriptions/one", "--kept", f"counted:{number}")
    cli.fails(2, "rules", "test", "news", "--kept", "counted")
    first, second = (json.loads(line) for line in cli("top", "--count", "2", "--interval", "1", "--output", "json").splitlines())
    (counted,) = [one for one in first["entities"] if one["path"] == "counted"]
    assert counted["active"] == 1 and {one["path"] for one in second["entities"]} >= {"counted", "news", "news/Subscriptions/one"}, counted
    assert "IN/S" in cli("top", "--count", "1")
    cli.fails(4, "connections", "close", "4000000000", "--link", "1")
    cli("purge", "counted", "--yes")
    cli("purge", "scheduled", "--yes")


def values_of_filters_keep_their_types(cli: Cli) -> None:
    typed = {
        "when": {"Type": "dateTime", "Value": "2026-11-23T12:00:00Z"},
        "span": {"Type": "duration", "Value": "PT1M30S"},
        "id": {"Type": "uuid", "Value": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"},
        "text": "2026-11-23T12:00:00Z",
        "number": 7,
    }
    rule = {"Name": "typed", "Properties": {"FilterType": "Correlation", "CorrelationFilter": {"Properties": typed}}}
    topic = {"Name": "typed", "Subscriptions": [{"Name": "s", "Rules": [rule]}]}
    config = {"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Topics": [topic]}]}}
    cli("import", "config", str(write(DIRECTORY / "typed.json", json.dumps(config).encode())))
    exported = DIRECTORY / "exported.json"
    cli("export", "config", "--file", str(exported))
    (namespace,) = json.loads(exported.read_text())["UserConfig"]["Namespaces"]
    (found,) = [topic for topic in namespace["Topics"] if topic["Name"] == "typed"]
    assert found["Subscriptions"][0]["Rules"][0]["Properties"]["CorrelationFilter"]["Properties"] == typed, found
    assert "ok (" in cli("config", "check", "--strict", str(exported))
    # A name that no file can have is refused over HTTP, too.
    cli.fails(2, "rules", "create", "typed/Subscriptions/s", "a b", "--filter", "a = 1")
    cli("topics", "delete", "typed", "--yes")


def the_first_program_of_the_readme_works(cli: Cli) -> None:
    """Messages and administration with the one string of the README, by the Python SDK."""
    readme = (ROOT / "README.md").read_text()
    program = readme.split("```python\n", 1)[1].split("```", 1)[0]
    assert "sb://localhost:5300;" in program and '"jitney-data/certs/ca.pem"' in program, program
    program = program.replace("sb://localhost:5300;", f"sb://localhost:{cli.broker.http_port};")
    program = program.replace("jitney-data/certs/ca.pem", f"{cli.broker.state['data_dir']}/certs/ca.pem")
    for _ in range(2):
        python = [str(ROOT / ".venv" / "bin" / "python"), "-c", program]
        done = subprocess.run(python, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout.endswith(" hello\n"), (done.stdout, done.stderr)
    cli("queues", "delete", "orders", "--yes")


def mistakes_have_exit_codes(cli: Cli) -> None:
    assert "There is no entity 'nowhere'" in cli.fails(4, "send", "nowhere", "--body", "x")
    assert "SharedAccessKey" in cli.fails(2, "send", "wrong", "--body", "x", "--connection", "Endpoint=sb://a;SharedAccessKeyName=r")
    cli.fails(3, "receive", "wrong", "--connection", "Endpoint=sb://localhost:1;SharedAccessKeyName=r;SharedAccessKey=k;UseDevelopmentEmulator=true")
    cli.fails(2, "receive", "wrong", "--reason", "Bad")
    cli.fails(2, "send", "wrong", "--body", "x", "--property", "color")


def stats_count_messages_by_state(cli: Cli) -> None:
    cli("send", "counted", "--body", "x", "--count", "200")
    cli("schedule", "counted", "--in", "1h", "--body", "x")
    (entity,) = json.loads(cli("stats", "counted", "--output", "json"))["entities"]
    assert (entity["counts"]["active"], entity["counts"]["scheduled"]) == (200, 1), entity
    assert "news/Subscriptions/one" in cli("stats")
    assert len(cli.rows("receive", "counted", "--limit", "200")) == 200


def every_wrong_input_has_its_answer(cli: Cli) -> None:
    """The table of inputs.toml: the exit code and the text of each."""
    table = tomllib.loads((HERE / "inputs.toml").read_text())
    files = DIRECTORY / "inputs"
    files.mkdir()
    for name, text in table["files"].items():
        (files / name).write_text(text)
    (unused,) = free_ports(1)
    values = {
        "dir": files,
        "amqp": cli.broker.amqp_port,
        "http": cli.broker.http_port,
        "closed": cli.closed.http_port,
        "closed_string": f"Endpoint=sb://localhost:{cli.closed.http_port};UseDevelopmentEmulator=true;SharedAccessKeyName=RootManageSharedAccessKey",
        "unused": unused,
    }

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text

    clean = {name: value for name, value in os.environ.items() if name not in ("SERVICEBUS_CONNECTION_STRING", "JITNEY_URL")}
    environments = {
        "open": cli.environment,
        "closed": {**clean, "JITNEY_URL": f"http://127.0.0.1:{cli.closed.http_port}"},
        "nowhere": clean,
    }
    wrong = []
    for row in table["input"]:
        known = {"run", "at", "stdin", "as", "code", "says", "not"}
        assert row.keys() <= known and row["says"], row
        command = [str(binary()), *shlex.split(filled(row["run"]))]
        if row.get("as") == "nobody" and os.geteuid() == 0:
            command = ["setpriv", "--reuid", "65534", "--clear-groups", *command]
        # Nothing is found in the directory in which it runs.
        try:
            done = subprocess.run(
                command, input=row.get("stdin", "").encode(), capture_output=True, env=environments[row.get("at", "open")], timeout=60, cwd=files)
        except subprocess.TimeoutExpired as expired:
            wrong.append(f"{row['run']}: no end: {(expired.stderr or b'').decode()[-500:]}")
            continue
        answer = (done.stdout + done.stderr).decode()
        missing = [text for text in row["says"] if filled(text) not in answer]
        present = [text for text in row.get("not", []) if filled(text) in answer]
        if done.returncode != row["code"] or missing or present:
            wrong.append(f"{row['run']}: exit code {done.returncode} for {row['code']}; not said {missing}; said {present}:\n{answer[-800:]}")
    assert len(table["input"]) >= 60
    assert not wrong, "\n".join([f"{len(wrong)} of {len(table['input'])}:", *wrong])


def a_full_disk_is_told_and_deletions_go_on(cli: Cli) -> None:
    """The messages were sent where there was room; then the broker has a disk that has none."""
    full = Broker.create(DIRECTORY / "full", Path(cli.broker.state["config"]), ["--auth", "development"])
    url = f"http://127.0.0.1:{full.http_port}"
    own = Cli(full, cli.closed)
    own.environment = {**cli.environment, "SERVICEBUS_CONNECTION_STRING": full.connection_string, "JITNEY_URL": url}
    full.start()
    own("send", "plain", "--body", "x", "--count", "20")
    full.stop()
    full.put_on_a_small_disk()
    full.launch()
    try:
        checks_until(lambda: b"shortages" in own.run("health", "--url", url).stderr)
        figures = r"[01] MiB are free, (and )?1\d\d MiB are needed"
        # What is full, how much of it there is and is needed.
        for command in (("send", "plain", "--body", "x"), ("schedule", "plain", "--in", "1h", "--body", "x"), ("queues", "create", "more")):
            refused = own.fails(1, *command)
            assert re.search(rf"The broker's disk is full \({figures}\): ", refused), (command, refused)
        unwell = own.fails(1, "health", "--url", url)
        assert '"of":"disk"' in unwell and re.search(figures, unwell) and "jitney purge" in unwell, unwell
        # What needs room says why it waits, and what frees nothing is not begun in silence.
        own("move", "plain", "--to", "many", "--yes", "--detach")
        waiting = own("jobs", "show", job_of(own), "--output", "json")
        assert "disk is full" in waiting and "jitney purge" in waiting, waiting
        own("jobs", "cancel", job_of(own))
        # What frees space is done at once.
        assert own("purge", "plain", "--limit", "5", "--yes").startswith("Deleted 5 of 20 messages of plain in ")
        assert len(own.rows("receive", "plain", "--wait", "5s")) == 1
        deleted = own("purge", "plain", "--yes")
        assert deleted.startswith("Deleted 14 of 14 messages of plain in "), deleted
        deleted = own("queues", "delete", "lines", "--yes")
        assert deleted.startswith("Deleted the queue lines "), deleted
    finally:
        wrong = full.finish()
    assert wrong is None, wrong


def lists_say_how_many_of_how_many_they_show(cli: Cli) -> None:
    assert cli("send", "many", "--body", "x" * 100, "--count", "1200").startswith("Sent 1,200 messages to many in ")
    listed = cli("messages", "list", "many")
    assert listed.splitlines()[-1] == "20 of 1,200 messages; --limit N shows more, --from 21 the next ones.", listed
    # What reads a pipe gets whole values.
    assert "x" * 100 in listed and "..." not in listed, listed
    assert "there may be more" in cli("messages", "list", "many", "--text", "x", "--limit", "5")
    assert "of 1,200" in cli("messages", "list", "many", "--state", "active", "--limit", "5")
    assert json.loads(cli("messages", "list", "many", "--limit", "5", "--output", "json"))["next"] == 6
    assert "5 shown; there may be more" in cli("peek", "many", "--limit", "5")
    assert "--limit N" not in cli("messages", "list", "many", "--limit", "1200")
    assert "1,200 messages of many (" in cli("purge", "many", "--dry-run")
    deleted = cli("purge", "many", "--limit", "100", "--yes")
    assert deleted.startswith("Deleted 100 of 1,200 messages of many in ") and deleted.count("\n") == 1, deleted
    assert json.loads(cli("purge", "many", "--yes", "--output", "json"))["changed"] == 1100
    assert cli.fails(1, "jobs", "cancel", job_of(cli)).startswith("jitney: Job ")


def job_of(cli: Cli) -> str:
    return str(json.loads(cli("jobs", "list", "--output", "json"))["jobs"][0]["id"])


def locked_messages_and_links_are_found(cli: Cli) -> None:
    for body in ("first", "second", "third"):
        cli("send", "held", "--body", body)
    environment = cli.environment
    cli("schedule", "held", "--in", "1h", "--body", "later")
    (row,) = cli.rows("receive", "held", "--outcome", "none")
    locked = json.loads(cli("messages", "list", "held", "--state", "locked", "--output", "json"))["messages"]
    assert [one["sequence_number"] for one in locked] == [row["sequence_number"]] and locked[0]["lock"]["until"], locked
    both = json.loads(cli("messages", "list", "held", "--state", "locked", "--state", "scheduled", "--output", "json"))["messages"]
    assert sorted(one["state"] for one in both) == ["active", "scheduled"], both
    assert cli("export", "messages", "held", "--state", "locked").count("\n") == 1
    assert cli("search", "--text", "first", "--state", "locked").count("first") <= 1
    cli("purge", "held", "--state", "scheduled", "--yes")
    with subprocess.Popen(
        [str(binary()), "receive", "grouped", "--session", "held", "--wait", "60s"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as receiver:
        def link() -> tuple[str, str] | None:
            rows = [line.split() for line in cli("connections", "list").splitlines()]
            header = rows[0]
            found = [row for row in rows[1:] if "grouped" in row]
            return (found[0][header.index("CONNECTION")], found[0][header.index("LINK")]) if found else None

        found = checks_until(link)
        assert cli("connections", "close", found[0], "--link", found[1]) == f"Closed the link {found[1]} of connection {found[0]}.\n"
        receiver.communicate(timeout=30)
        assert receiver.returncode != 0


def what_needs_attention_is_shown(cli: Cli) -> None:
    cli("queues", "create", "needy")
    cli("queues", "create", "calm")
    assert cli("attention", "calm") == "nothing\n"
    cli("send", "needy", "--body", "one")
    # A notice alone is no failure.
    shown = checks_until(lambda: (text := cli("attention", "needy")) != "nothing\n" and text)
    header, row = shown.splitlines()
    assert header.split() == ["URGENCY", "KIND", "ENTITY", "COUNT", "SINCE", "WHAT"], shown
    assert row.split()[:4] == ["notice", "no_receiver", "needy", "1"], shown
    assert row.endswith("1 message waits, and no receiver is attached."), shown
    cli("receive", "needy", "--outcome", "dead-letter", "--reason", "Bad")

    def alarm() -> list[dict]:
        done = cli.run("attention", "needy", "--output", "json")
        found = json.loads(done.stdout)["items"]
        has_alarm = any(item["urgency"] == "alarm" for item in found)
        assert done.returncode == int(has_alarm), (done.returncode, found)
        return found if has_alarm else []

    (item,) = checks_until(alarm)
    assert (item["kind"], item["count"]) == ("recent_dead_letters", 1) and item["since"], item
    assert "recent_dead_letters" in cli.run("attention").stdout.decode()
    assert "There is no entity 'nope'." in cli.fails(4, "attention", "nope")
    cli("purge", "needy", "--dead-letters", "--yes")
    for name in ("needy", "calm"):
        cli("queues", "delete", name, "--yes")


def checks_until(condition):
    """Asks until there is an answer: the command that asks is the pause."""
    for _ in range(500):
        found = condition()
        if found:
            return found
    raise AssertionError("it has not come")


def an_update_changes_what_it_names(cli: Cli) -> None:
    show = lambda kind, path: json.loads(cli(kind, "show", path, "--output", "json"))["properties"]
    cli("topics", "create", "updated-topic", "--set", "default_time_to_live=14d")
    cli("subscriptions", "create", "updated-topic/Subscriptions/s", "--set", "lock_duration=30s", "--set", "default_time_to_live=1h")
    for kind, path, first, second in (
        ("queues", "updated", ("lock_duration=30s", "lock_duration", "PT30S"), ("max_delivery_count=7", "max_delivery_count", 7)),
        ("topics", "updated-topic", ("auto_delete_on_idle=PT1H", "auto_delete_on_idle", "PT1H"), ("max_size_megabytes=2048", "max_size_megabytes", 2048)),
        (
            "subscriptions", "updated-topic/Subscriptions/s", ("lock_duration=PT45S", "lock_duration", "PT45S"),
            ("max_delivery_count=7", "max_delivery_count", 7)),
    ):
        before = show(kind, path)
        for text, name, value in (first, second):
            said = cli(kind, "update", path, "--set", text)
            assert said.startswith(f"Updated the {kind[:-1]} {path}: {name} ") and said.count("\n") == 1, said
            before[name] = value
            after = show(kind, path)
            assert after == before, (before, after)
        # What is not named gets its default.
        cli(kind, "update", path, "--replace", "--set", second[0])
        replaced = show(kind, path)
        assert replaced[second[1]] == second[2] and replaced[first[1]] != first[2], replaced
    assert "default_time_to_live          14d" not in cli("topics", "show", "updated-topic")
    assert "auto_delete_on_idle           never" in cli("queues", "update", "updated", "--set", "auto_delete_on_idle=never") + cli("queues", "show", "updated")
    deleted = cli("topics", "delete", "updated-topic", "--yes")
    assert deleted.startswith("Deleted the topic updated-topic with 0 messages and 1 subscription in "), deleted


def keys_of_a_data_directory_are_found_by_every_command(cli: Cli) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in ("SERVICEBUS_CONNECTION_STRING", "JITNEY_URL")}
    where = ["--url", f"http://127.0.0.1:{cli.closed.http_port}", "--data-dir", cli.closed.state["data_dir"]]

    def run(*words: str) -> str:
        done = subprocess.run([str(binary()), *words, *where], capture_output=True, env=clean, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, (words, done)
        return done.stdout.decode() + done.stderr.decode()

    assert "plain" in run("stats")
    assert run("send", "plain", "--body", "x").startswith("Sent 1 message to plain in ")
    run("schedule", "plain", "--body", "later", "--in", "1h")
    assert "x" in run("peek", "plain") and "x" in run("receive", "plain", "--wait", "1s")
    assert "verifies none" not in run("keys", "create", "plain", "app", "--right", "send")
    # Where any key is accepted, it says so.
    done = cli.run("keys", "create", "plain", "other", "--right", "send")
    assert done.returncode == 0 and b"accepts any key for everything, and verifies none" in done.stderr, done
    cli("keys", "delete", "plain", "other", "--yes")
    # A string's own port is asked first: every port takes HTTP.
    ended = subprocess.run(
        [str(binary()), "stats", "--connection", cli.broker.connection_string], capture_output=True, env=clean, timeout=60)
    assert ended.returncode == 0 and b"plain" in ended.stdout, ended


def a_collector_that_is_not_there_is_warned_of(cli: Cli) -> None:
    (unused,) = free_ports(1)
    traced = Broker.create(DIRECTORY / "traced", Path(cli.broker.state["config"]), ["--traces", f"http://127.0.0.1:{unused}"])
    traced.start()
    try:
        environment = {**os.environ, "SERVICEBUS_CONNECTION_STRING": traced.connection_string}
        property = "Diagnostic-Id=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        command = [str(binary()), "send", "plain", "--body", "x", "--property", property]
        subprocess.run(command, check=True, capture_output=True, env=environment, timeout=60)
    finally:
        traced.stop()
    log = traced.log.read_text()
    assert "collector" in log and "WARN" in log, log


TESTS = [
    a_message_arrives_as_it_was_sent,
    lines_files_and_bytes_are_bodies,
    a_message_is_settled_as_wanted,
    deferred_messages_are_received_by_number,
    scheduled_messages_are_cancelled,
    sessions_are_named_or_next,
    a_subscription_gets_what_its_topic_is_sent,
    tls_trusts_the_authority_that_is_named,
    messages_are_exported_and_imported,
    keys_are_rotated_and_looks_are_printed,
    values_of_filters_keep_their_types,
    the_first_program_of_the_readme_works,
    mistakes_have_exit_codes,
    stats_count_messages_by_state,
    every_wrong_input_has_its_answer,
    a_full_disk_is_told_and_deletions_go_on,
    lists_say_how_many_of_how_many_they_show,
    locked_messages_and_links_are_found,
    what_needs_attention_is_shown,
    an_update_changes_what_it_names,
    keys_of_a_data_directory_are_found_by_every_command,
    a_collector_that_is_not_there_is_warned_of,
]


def main(words: list[str]) -> int:
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(parents=True)
    config = DIRECTORY / "config.json"
    config.write_text(json.dumps(CONFIG))
    broker = Broker.create(DIRECTORY / "broker", config)
    closed = Broker.create(DIRECTORY / "closed", config, ["--auth", "sas"])
    return checks.run(TESTS, Cli(broker, closed), [broker, closed], words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
