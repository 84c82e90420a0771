#!/usr/bin/env python3
"""The commands that send, receive and manage messages, against a broker of their own: what they print, and their exit codes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import checks  # noqa: E402
from broker import ROOT, WORK, Broker, binary  # noqa: E402

DIRECTORY = Path(os.environ.get("JITNEY_WORK", WORK / "cli")) / "own"
QUEUES = ["plain", "lines", "settled", "deferred", "scheduled", "secure", "wrong", "counted"]
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

    def __init__(self, broker: Broker):
        self.broker = broker
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
    bodies = [row["body"] for row in cli.rows("receive", "lines", "--count", "9", "--wait", "1", "--delete")]
    assert bodies == [{"kind": "data", "json": {"a": 1}}, {"kind": "data", "text": "no json"}, {"kind": "data", "base64": "/wA="}], bodies


def a_message_is_settled_as_wanted(cli: Cli) -> None:
    cli("send", "settled", "--body", "x")
    assert cli.rows("receive", "settled", "--settle", "abandon")[0]["delivery_count"] == 0
    assert cli.rows("receive", "settled", "--settle", "dead-letter", "--reason", "Bad", "--description", "why")[0]["delivery_count"] == 1
    (row,) = cli.rows("peek", "settled", "--dead-letters")
    assert row["properties"] == {"DeadLetterReason": "Bad", "DeadLetterErrorDescription": "why"}, row
    assert "Bad" in cli("messages", "list", "settled", "--dead-letters", "--reason", "Bad")
    assert len(cli.rows("receive", "settled", "--dead-letters")) == 1
    assert "nothing" in cli("peek", "settled", "--dead-letters")


def deferred_messages_are_received_by_number(cli: Cli) -> None:
    cli("send", "deferred", "--body", "x")
    (row,) = cli.rows("receive", "deferred", "--settle", "defer")
    number = str(row["sequence_number"])
    assert cli.rows("deferred", "deferred", number)[0]["state"] == "deferred"
    assert "message-not-found" in cli.fails(4, "deferred", "deferred", number)


def scheduled_messages_are_cancelled(cli: Cli) -> None:
    first, second = cli("schedule", "scheduled", "--in", "1h", "--body", "later", "--count", "2").split()
    cli("schedule", "scheduled", "--at", "2020-01-01T00:00:00Z", "--body", "now")
    cli("cancel", "scheduled", first)
    cli.fails(4, "cancel", "scheduled", first)
    assert cli.rows("receive", "scheduled")[0]["body"]["text"] == "now"
    assert [row["sequence_number"] for row in cli.rows("peek", "scheduled")] == [int(second)]
    assert '"state": "scheduled"' in cli("messages", "show", "scheduled", second, "--output", "json")


def sessions_are_named_or_next(cli: Cli) -> None:
    cli.fails(1, "send", "grouped", "--body", "x")
    for session in "ABC":
        cli("send", "grouped", "--body", session, "--session", session)
    assert [row["body"]["text"] for row in cli.rows("peek", "grouped", "--session", "C")] == ["C"]
    assert cli.rows("receive", "grouped", "--session", "B", "--wait", "1")[0]["session_id"] == "B"
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
        assert failed.returncode == 2 and b"line 151" in failed.stderr and b"--from-line 101" in failed.stderr, failed.stderr
        mended = bodies[:150] + [""] + bodies[150:]
        cli("import", "messages", "plain", "-", "--from-line", "101", stdin="\n".join(mended).encode())
        shown = json.loads(cli("messages", "list", "plain", "--limit", "300", "--output", "json"))["messages"]
        assert [one["properties"]["n"] for one in shown] == list(range(230))
        cli("purge", "plain", "--yes")
        cli.fails(2, "import", "messages", "plain", str(Path(directory) / "none"))
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
    cli.fails(1, "rules", "create", "typed/Subscriptions/s", "a b", "--filter", "a = 1")
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
    assert "not-found" in cli.fails(4, "send", "nowhere", "--body", "x")
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
    assert len(cli.rows("receive", "counted", "--count", "200")) == 200


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
]


def main(words: list[str]) -> int:
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(parents=True)
    config = DIRECTORY / "config.json"
    config.write_text(json.dumps(CONFIG))
    broker = Broker.create(DIRECTORY / "broker", config)
    return checks.run(TESTS, Cli(broker), [broker], words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
