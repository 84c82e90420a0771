#!/usr/bin/env python3
"""What an operator sees of a broker that the Python SDK uses: metrics in both text formats, by the parsers of Prometheus's own client;
who may see them; the alerts and the dashboard of docs/monitoring, by promtool; and traces (traces.py)."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.exceptions import ServiceBusError
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import checks  # noqa: E402
import traces  # noqa: E402
from broker import ROOT, WORK, Broker, free_ports  # noqa: E402

PROMTOOL = os.environ["PROMTOOL"]
DIRECTORY = Path(os.environ.get("JITNEY_WORK", WORK / "monitoring")) / "own"
MONITORING = ROOT / "docs" / "monitoring"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
# How long something may take to be visible: the reply to a client comes before its connection has reported all.
DEADLINE = 20.0

CONFIG = {
    "UserConfig": {
        "Namespaces": [
            {
                "Name": "shop",
                "Queues": [
                    {"Name": "orders", "Properties": {"MaxDeliveryCount": 2, "RequiresDuplicateDetection": True}},
                    {"Name": "brief", "Properties": {"DefaultMessageTimeToLive": "PT1S", "DeadLetteringOnMessageExpiration": True}},
                    {"Name": "grouped", "Properties": {"RequiresSession": True}},
                    {"Name": "metrics"},
                    {"Name": "stuck", "Properties": {"LockDuration": "PT5M"}},
                ],
                "Topics": [
                    {
                        "Name": "news",
                        "Subscriptions": [
                            {"Name": "all"},
                            {"Name": "none", "Rules": [{"Name": "r", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=0"}}}]},
                        ],
                    }
                ],
            }
        ]
    }
}


def fetch(port: int, path: str = "/metrics", **headers: str) -> tuple[int, str, str]:
    """The status, the content type and the text of an answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, response.headers["Content-Type"], response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


class Scrape:
    """The values of one answer."""

    def __init__(self, port: int):
        status, _, self.text = fetch(port)
        assert status == 200, self.text
        self.values = {(each.name, frozenset(each.labels.items())): each.value
                       for family in read_prometheus(self.text) for each in family.samples}

    def __call__(self, name: str, **labels: str) -> float:
        """The sum of the values with these labels."""
        wanted = set(labels.items())
        return sum(value for (found, has), value in self.values.items() if found == name and wanted <= has)

    def queue(self, name: str, entity: str, sub_queue: str = "", **labels: str) -> float:
        return self(f"jitney_entity_{name}", namespace="shop", entity=entity, sub_queue=sub_queue, **labels)


def eventually(port: int, check: Callable[[Scrape], None]) -> None:
    """Waits until a check of the metrics passes."""
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            return check(Scrape(port))
        except AssertionError:
            if deadline < time.monotonic():
                raise
            time.sleep(0.1)


class World:
    """A broker without keys and one with, and what is known of them."""

    def __init__(self, directory: Path):
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "Config.json"
        config.write_text(json.dumps(CONFIG))
        self.open = Broker.create(directory / "open", config)
        (self.alone,) = free_ports(1)
        arguments = ["--auth", "sas", "--metrics", f"127.0.0.1:{self.alone}", "--metrics-entities", "2"]
        self.closed = Broker.create(directory / "closed", config, arguments)
        self.collector = traces.Collector()
        arguments = ["--traces", self.collector.url, "--traces-header", "X-Api-Key=of the test"]
        self.traced = Broker.create(directory / "traced", config, arguments)

    def client(self) -> ServiceBusClient:
        return ServiceBusClient.from_connection_string(self.open.connection_string)


def metrics_count_what_a_client_does(world: World) -> None:
    port = world.open.http_port
    with world.client() as client:
        with client.get_queue_sender("orders") as sender:
            sender.send_messages([ServiceBusMessage(f"body {index}", message_id=str(index)) for index in range(5)])
            sender.send_messages(ServiceBusMessage("again", message_id="0"))
            numbers = sender.schedule_messages(
                [ServiceBusMessage("later", message_id=f"later {index}") for index in range(3)],
                schedule_time_utc=datetime.datetime(2100, 1, 1),
            )
            sender.cancel_scheduled_messages(numbers[:1])
        with client.get_queue_receiver("orders", prefetch_count=0) as receiver:
            one, two, three, four = (receiver.receive_messages(1, max_wait_time=10)[0] for _ in range(4))
            receiver.complete_message(one)
            receiver.defer_message(two)
            receiver.dead_letter_message(three, reason="because", error_description="of a test")
            receiver.abandon_message(four)
            # The second failure is the last that it may have; the fifth message comes behind it.
            (again,) = receiver.receive_messages(1, max_wait_time=10)
            receiver.abandon_message(again)

            def check(at: Scrape) -> None:
                assert at.queue("incoming_messages_total", "orders") == 8, at.text
                assert at.queue("duplicate_messages_total", "orders") == 1
                assert at.queue("scheduled_messages_total", "orders") == 3
                assert at.queue("cancelled_messages_total", "orders") == 1
                assert at.queue("completed_messages_total", "orders") == 1
                assert at.queue("deferred_messages_total", "orders") == 1
                assert at.queue("abandoned_messages_total", "orders") == 2
                assert at.queue("dead_lettered_messages_total", "orders", reason="receiver") == 1
                assert at.queue("dead_lettered_messages_total", "orders", reason="max_delivery_count") == 1
                assert at.queue("messages", "orders", state="scheduled") == 2
                assert at.queue("messages", "orders", state="deferred") == 1
                assert at.queue("messages", "orders", "dead_letter", state="active") == 2
                assert at.queue("delivered_messages_total", "orders") >= 5
                assert at.queue("size_bytes", "orders") > 0
                assert at.queue("receivers", "orders") == 1
                assert at("jitney_links", role="receiver") == 1
                assert 1 <= at("jitney_amqp_sessions", shard="0") <= at("jitney_connections")
                assert at("jitney_delivery_delay_seconds_count", namespace="shop") >= 5
                assert at("jitney_time_in_queue_seconds_count", namespace="shop") >= 1
                assert at("jitney_log_commit_duration_seconds_count", shard="0") > 0
                assert at("jitney_log_sync_duration_seconds_count", shard="0") > 0
                assert at("jitney_log_bytes", shard="0") > at("jitney_log_live_bytes", shard="0") > 0

            eventually(port, check)

    def gone(at: Scrape) -> None:
        assert at.queue("receivers", "orders") == 0
        assert at("jitney_links") == 0 and at("jitney_connections") == 0 and at("jitney_amqp_sessions") == 0
        assert at.queue("locked_messages", "orders") <= 1

    eventually(port, gone)


def metrics_count_expiry_sessions_topics_and_refusals(world: World) -> None:
    port = world.open.http_port
    with world.client() as client:
        with client.get_queue_sender("brief") as sender:
            sender.send_messages([ServiceBusMessage("old") for _ in range(3)])
        with client.get_queue_sender("grouped") as sender:
            sender.send_messages([ServiceBusMessage("a", session_id="a"), ServiceBusMessage("b", session_id="b")])
        with client.get_topic_sender("news") as sender:
            sender.send_messages([ServiceBusMessage("n") for _ in range(4)])
        with client.get_subscription_receiver("news", "all", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
            left = 4
            while left:
                left -= len(receiver.receive_messages(left, max_wait_time=10))
        try:
            client.get_queue_sender("nonesuch").send_messages(ServiceBusMessage("x"))
            raise AssertionError("there is no such queue")
        except ServiceBusError:
            pass
        with client.get_queue_receiver("grouped", session_id="a"):

            def check(at: Scrape) -> None:
                assert at.queue("expired_messages_total", "brief") == 3
                assert at.queue("dead_lettered_messages_total", "brief", reason="expired") == 3
                assert at.queue("incoming_messages_total", "brief", "dead_letter") == 3
                assert at.queue("sessions", "grouped", state="held") == 1
                assert at.queue("sessions", "grouped", state="free") == 1
                assert at.queue("incoming_messages_total", "news") == 4
                assert at.queue("forwarded_messages_total", "news") == 4
                assert at.queue("unmatched_messages_total", "news") == 0
                assert at.queue("incoming_messages_total", "news/Subscriptions/all") == 4
                assert at.queue("completed_messages_total", "news/Subscriptions/all") == 4
                assert at.queue("incoming_messages_total", "news/Subscriptions/none") == 0
                assert at("jitney_refusals_total", reason="not_found") >= 1

            eventually(port, check)


def both_formats_are_read_by_their_parsers(world: World) -> None:
    port = world.open.http_port
    status, kind, text = fetch(port, Accept=f"{OPENMETRICS},text/plain;q=0.5")
    assert status == 200 and kind.startswith(OPENMETRICS), kind
    modern = {family.name: family for family in read_openmetrics(text)}
    status, kind, text = fetch(port, Accept="text/plain")
    assert status == 200 and kind.startswith("text/plain; version=0.0.4"), kind
    plain = {family.name: family for family in read_prometheus(text)}
    assert modern.keys() == plain.keys(), modern.keys() ^ plain.keys()
    for name, family in modern.items():
        assert (family.type, family.documentation) == (plain[name].type, plain[name].documentation), name
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True)
    assert checked.returncode == 0 and not checked.stderr, checked.stdout + checked.stderr


def an_entity_may_be_named_metrics(world: World) -> None:
    with world.client() as client:
        with client.get_queue_sender("metrics") as sender:
            sender.send_messages(ServiceBusMessage("hello"))
    status, kind, text = fetch(world.open.http_port, "/metrics?api-version=2021-05")
    assert status == 200 and "atom" in kind and "QueueDescription" in text, text


def the_operators_key_is_needed(world: World) -> None:
    port = world.closed.http_port
    key = (Path(world.closed.state["data_dir"]) / "operator.key").read_text()
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {key}"}):
        status, _, text = fetch(port, **headers)
        assert status == 401 and "operator.key" in text, (status, text)
    status, _, text = fetch(port, Authorization=f"Bearer {key}")
    assert status == 200 and "jitney_build_info" in text, text
    assert key not in world.closed.log.read_text()


def the_address_of_metrics_is_for_them_alone(world: World) -> None:
    port = world.alone
    assert fetch(port)[0] == 200
    assert fetch(port, "/health")[0] == 200
    assert fetch(port, "/health/ready?entity=orders")[0] == 200
    for path in ("/", "/ca.pem", "/orders", "/orders/messages/head", "/$servicebus/websocket", "/metrics?api-version=2021-05"):
        status, _, text = fetch(port, path)
        assert status == 404 and "only" in text, (path, status, text)
    # AMQP is not spoken there: the connection ends without an answer.
    with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
        peer.sendall(b"AMQP\x00\x01\x00\x00")
        try:
            answer = peer.recv(8)
        except ConnectionResetError:
            answer = b""
    assert answer == b"", answer


def entities_beyond_the_bound_are_added_up(world: World) -> None:
    at = Scrape(world.alone)
    named = {dict(labels)["entity"] for (name, labels) in at.values if name == "jitney_entity_size_bytes"}
    assert len(named) == 3 and "*" in named, named
    others = {dict(labels)["sub_queue"] for (name, labels) in at.values
              if name == "jitney_entity_size_bytes" and dict(labels)["entity"] == "*"}
    assert "" in others and "*" not in others, others


def health_says_what_is_missing(world: World) -> None:
    port = world.open.http_port
    for path in ("/health", "/health/live", "/health/ready", "/health/ready?entity=Orders&entity=news%2FSubscriptions%2Fall"):
        status, kind, text = fetch(port, path)
        assert status == 200 and json.loads(text) == {"status": "healthy", "message": "Service is healthy."}, text
    status, _, text = fetch(port, "/health/ready?entity=orders&entity=nonesuch&entity=news/Subscriptions/other")
    assert status == 503 and json.loads(text)["missing"] == ["nonesuch", "news/Subscriptions/other"], text
    status, _, text = fetch(port, "/health/ready?" + "&".join(f"entity={number}" for number in range(101)))
    assert status == 400 and "100" in text, text
    # Which entities there are is for those who may see them.
    assert fetch(world.closed.http_port, "/health/ready")[0] == 200
    assert fetch(world.closed.http_port, "/health/ready?entity=orders")[0] == 401


def the_command_asks_for_health(world: World) -> None:
    def ask(broker: Broker, *words: str) -> subprocess.CompletedProcess:
        command = [broker.state["binary"], "health", "--http", f"127.0.0.1:{broker.http_port}", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=DIRECTORY)

    done = ask(world.open)
    assert done.returncode == 0 and "healthy" in done.stdout and not done.stderr, done
    done = ask(world.open, "--entity", "orders", "--entity", "news/Subscriptions/all")
    assert done.returncode == 0, done
    done = ask(world.open, "--entity", "orders", "--entity", "nonesuch")
    assert done.returncode == 1 and "nonesuch" in done.stderr and '"orders"' not in done.stderr, done
    # With keys the command finds the operator's in the data directory.
    done = ask(world.closed, "--entity", "orders")
    assert done.returncode == 1 and "operator.key" in done.stderr, done
    done = ask(world.closed, "--entity", "orders", "--namespace", "shop", "--data-dir", world.closed.state["data_dir"])
    assert done.returncode == 0, done
    (nobody,) = free_ports(1)
    done = ask(world.open, "--http-port", str(nobody))
    assert done.returncode == 1 and str(nobody) in done.stderr, done


def alerts_are_right(_: World) -> None:
    rules = MONITORING / "alerts.yml"
    checked = subprocess.run([PROMTOOL, "check", "rules", str(rules)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tests = DIRECTORY / "alerts-test.yml"
    tests.write_text((HERE / "alerts-test.yml").read_text().replace("RULES", json.dumps(str(rules))))
    tested = subprocess.run([PROMTOOL, "test", "rules", str(tests)], capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    names = set(re.findall(r"- alert: (\w+)", rules.read_text()))
    assert names == set(re.findall(r"alertname: (\w+)", tests.read_text())), "each alert has a test"


def a_receiver_that_is_stuck_is_counted_and_alerted(world: World) -> None:
    """What a broker reports of a receiver that settles nothing is what the alert is about."""
    port, series = world.open.http_port, []
    with world.client() as client, client.get_queue_receiver("stuck") as receiver:
        with client.get_queue_sender("stuck") as sender:
            sender.send_messages([ServiceBusMessage(f"{number}") for number in range(2)])
        (first,) = receiver.receive_messages(1, max_wait_time=10)

        def is_stuck(at: Scrape) -> None:
            assert at.queue("messages", "stuck", state="active") == 2 and at.queue("receivers", "stuck") == 1, at.text
            found = [(labels, value) for (name, labels), value in at.values.items()
                     if name == "jitney_entity_stuck_receivers"]
            assert [(dict(labels)["entity"], value) for labels, value in found if value] == [("stuck", 1)], found
            series[:] = found
            # What the API tells as stuck is counted for the namespace, too.
            assert at("jitney_namespace_attention", namespace="shop", kind="stuck_receiver") == 1, at.text

        # It is not stuck before ten seconds have passed.
        assert Scrape(port).queue("stuck_receivers", "stuck") == 0
        eventually(port, is_stuck)
        receiver.complete_message(first)
        (second,) = receiver.receive_messages(1, max_wait_time=10)
        receiver.complete_message(second)

        def works(at: Scrape) -> None:
            assert at.queue("stuck_receivers", "stuck") == 0 and at.queue("receivers", "stuck") == 1, at.text
            assert at("jitney_namespace_attention", namespace="shop", kind="stuck_receiver") == 0, at.text

        eventually(port, works)

    def text(labels: frozenset[tuple[str, str]]) -> str:
        pairs = [("job", "jitney"), ("instance", "broker"), *sorted(labels)]
        return "jitney_entity_stuck_receivers{" + ",".join(f"{name}={json.dumps(value)}" for name, value in pairs) + "}"

    fires = {"exp_labels": {"severity": "warning", "instance": "broker", "namespace": "shop", "entity": "stuck"}}
    fires["exp_annotations"] = annotations("JitneyStuckReceivers", value="1", **fires["exp_labels"])
    case = {
        "interval": "1m",
        "input_series": [{"series": text(labels), "values": f"{value:.0f}x9 0x9"} for labels, value in series],
        "alert_rule_test": [{"eval_time": f"{minute}m", "alertname": "JitneyStuckReceivers", "exp_alerts": alerts}
                            for minute, alerts in ((4, []), (5, [fires]), (9, [fires]), (10, []))],
    }
    tests = DIRECTORY / "stuck-test.yml"
    rules = str(MONITORING / "alerts.yml")
    tests.write_text(json.dumps({"rule_files": [rules], "evaluation_interval": "1m", "tests": [case]}))
    tested = subprocess.run([PROMTOOL, "test", "rules", str(tests)], capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def annotations(alert: str, value: str, **labels: str) -> dict[str, str]:
    """The annotations of an alert, with the values that Prometheus puts in."""
    rule = (MONITORING / "alerts.yml").read_text().partition(f"- alert: {alert}\n")[2].partition("- alert:")[0]

    def put(found: re.Match) -> str:
        return value if found[1] == "$value" else labels[found[1].removeprefix("$labels.")]

    texts = re.findall(r'(summary|action): "(.*)"', rule)
    return {name: re.sub(r"{{ (\$[\w.]+) }}", put, text) for name, text in texts}


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b((?:jitney|process)_[a-z_]+)", expression))


def what_is_queried_is_reported(world: World) -> None:
    """Every expression of the dashboard and of the alerts is good, and every metric in it is there."""
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(expressions) > 20
    plain = [re.sub(r"\$(instance|namespace|entity)", ".*", each).replace("$__rate_interval", "5m") for each in expressions]
    rules = DIRECTORY / "dashboard.yml"
    rules.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": [
        {"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(plain)]}]}))
    checked = subprocess.run([PROMTOOL, "check", "rules", str(rules)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    variables = [each["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    alerts = re.findall(r"expr: (.+)", (MONITORING / "alerts.yml").read_text())
    families = {family.name: family for family in read_prometheus(Scrape(world.open.http_port).text)}
    reported = {name + suffix for name, family in families.items() for suffix in {
        "counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))}
    for expression in [*plain, *variables, *alerts]:
        assert names_in(expression) <= reported, names_in(expression) - reported


TESTS = [
    metrics_count_what_a_client_does, metrics_count_expiry_sessions_topics_and_refusals, both_formats_are_read_by_their_parsers,
    an_entity_may_be_named_metrics, the_operators_key_is_needed, the_address_of_metrics_is_for_them_alone,
    entities_beyond_the_bound_are_added_up, health_says_what_is_missing, the_command_asks_for_health, alerts_are_right,
    a_receiver_that_is_stuck_is_counted_and_alerted, what_is_queried_is_reported,
    *traces.TESTS,
]


def main(words: list[str]) -> int:
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    world = World(DIRECTORY)
    return checks.run(TESTS, world, [world.open, world.closed, world.traced], words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
