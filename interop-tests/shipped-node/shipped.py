#!/usr/bin/env python3
"""Tests and examples that packages of the npm registry ship, run from where npm puts them and as they are.

- `systemic-azure-bus`: its own tests, which were written to run on Azure. It stands on the first generation of Microsoft's SDK,
  `@azure/service-bus` 1.x.
- `amqp10`: its tests and examples for Service Bus, by SASL PLAIN.

They find a broker of their own where they look for the service: at port 5671, with TLS, under the service's names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from secured import ROOT_KEY as KEY, described  # noqa: E402
from outcomes import Outcomes  # noqa: E402

DIRECTORY = Path(os.environ["JITNEY_WORK"]) / "shipped"
MODULES = HERE / "node_modules"
ADDRESS = "127.0.0.31"
NAMESPACE = "shipped"
HOST = f"{NAMESPACE}.servicebus.windows.net"

# Seconds for the tests of one package, and for one example.
TESTS_LIMIT, EXAMPLE_LIMIT = 200, 30

PROPERTIES = {"LockDuration": "PT30S", "MaxDeliveryCount": 10}
ENTITIES = {
    "Name": NAMESPACE,
    "Queues": [{"Name": name, "Properties": PROPERTIES} for name in ("queue", "example")],
    "Topics": [
        # Three deliveries, as the tests that retry a message expect.
        {"Name": "stress.test", "Subscriptions": [{"Name": "stress.test.assess", "Properties": {**PROPERTIES, "MaxDeliveryCount": 3}}]},
        {"Name": "duplicates.test", "Subscriptions": [{"Name": "test", "Properties": PROPERTIES}]},
        {"Name": "topic", "Subscriptions": [{"Name": "subscription", "Properties": PROPERTIES}]},
    ],
}

# What a test that is shipped does not do, and why; anything else that does not run is a failure.
LEFT_OUT = {
    "systemic-azure-bus: Topics - Systemic Azure Bus API removes duplicated messages based on messageId": "left out by its authors",
}


def add(outcomes: Outcomes, name: str, outcome: str, note: str = "", seconds: float = 0.0) -> None:
    outcomes.program(name, outcome, note)
    print(f"{outcome:<12} {name} ({seconds:.1f} s) {note}", flush=True)


def environment(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "NODE_EXTRA_CA_CERTS": str(DIRECTORY / "certs" / "ca.pem"),
        "NODE_OPTIONS": f"--require={HERE / 'hosts.cjs'}",
        "JITNEY_SHIPPED_HOST": ADDRESS,
        **more,
    }


def run_mocha(package: str, tests: list[str], limit_of_one: int, outcomes: Outcomes, **more: str) -> None:
    """Runs tests that a package ships, by mocha, and tells what became of each."""
    log = DIRECTORY / f"{package}.log"
    mocha = str(MODULES / "mocha" / "bin" / "mocha")
    command = ["node", mocha, "--recursive", "--exit", "--reporter", "json", "--timeout", str(limit_of_one)]
    began = time.monotonic()
    with log.open("wb") as sink:
        try:
            done = subprocess.run(
                [*command, *tests], cwd=MODULES / package, env=environment(**more), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=sink, timeout=TESTS_LIMIT,
            )
        except subprocess.TimeoutExpired:
            add(outcomes, f"{package}: tests", "fail", f"not finished after {TESTS_LIMIT} s", time.monotonic() - began)
            return
    text = done.stdout.decode(errors="replace")
    # Before the report is what the tests print.
    at = text.rfind('{\n  "stats"')
    if at < 0:
        print(text[-4000:], log.read_text(errors="replace")[-4000:])
        add(outcomes, f"{package}: tests", "fail", "no report", time.monotonic() - began)
        return
    report = json.loads(text[at:])
    pending = {test["fullTitle"] for test in report["pending"]}
    failures = {test["fullTitle"]: test["err"] for test in report["failures"]}
    for test in report["tests"]:
        title = test["fullTitle"]
        name, seconds = f"{package}: {title}", test.get("duration", 0) / 1000
        if title in pending:
            why = LEFT_OUT.get(name)
            add(outcomes, name, "not offered" if why else "fail", why or "it did not run", seconds)
        elif title in failures:
            add(outcomes, name, "fail", failures[title].get("message", ""), seconds)
        else:
            add(outcomes, name, "pass", "", seconds)
    # A hook that failed is no test of the report, and takes tests with it.
    for title in failures.keys() - {test["fullTitle"] for test in report["tests"]}:
        add(outcomes, f"{package}: {title}", "fail", failures[title].get("message", ""))


def run_example(package: str, path: str, outcomes: Outcomes, must_say: str, **more: str) -> None:
    """Runs a program that a package ships: it must end by itself, well, and have said this."""
    name, began = f"{package}: {path}", time.monotonic()
    try:
        done = subprocess.run(
            ["node", path], cwd=MODULES / package, env=environment(**more), stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=EXAMPLE_LIMIT,
        )
    except subprocess.TimeoutExpired as error:
        print(error.stdout)
        add(outcomes, name, "fail", f"not finished after {EXAMPLE_LIMIT} s", time.monotonic() - began)
        return
    good = done.returncode == 0 and must_say in done.stdout
    if not good:
        print(done.stdout)
    add(outcomes, name, "pass" if good else "fail", "" if good else f"exit code {done.returncode}", time.monotonic() - began)


def main() -> int:
    outcomes = Outcomes()
    broker = described(DIRECTORY, ADDRESS, ENTITIES, (HOST,)).broker
    broker.start()
    string = f"Endpoint=sb://{HOST}/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey={KEY}"
    try:
        run_mocha("systemic-azure-bus", ["test"], 20_000, outcomes, AZURE_SERVICEBUS_CONNECTION_STRING=string)
        keys = {"ServiceBusQueueKeyNames": "RootManageSharedAccessKey", "ServiceBusQueueKeys": KEY}
        run_mocha(
            "amqp10", ["test/integration/servicebus/queues"], 20_000, outcomes, ServiceBusNamespace=NAMESPACE,
            ServiceBusQueueNames="queue", ValidProcessVersions="v", **keys,
        )
        one = {"ServiceBusNamespace": HOST, "ServiceBusQueueName": "example", "ServiceBusTopicName": "topic"}
        one |= {"ServiceBusTopicSubscriptionName": "subscription"}
        for kind in ("Queue", "Topic"):
            one |= {f"ServiceBus{kind}KeyName": "RootManageSharedAccessKey", f"ServiceBus{kind}Key": KEY}
        saw = "disconnected, when we saw the value we inserted."
        run_example("amqp10", "examples/simple_servicebus_queues.js", outcomes, saw, **one)
        run_example("amqp10", "examples/simple_servicebus_topics.js", outcomes, saw, **one)
    finally:
        complaint = broker.finish()
    if complaint:
        outcomes.fail(complaint)
    return outcomes.finish()


if __name__ == "__main__":
    sys.exit(main())
