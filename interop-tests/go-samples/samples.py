"""Runs the examples and the live tests of the Go module azservicebus as they are shipped.

    samples.py build        copies the module out of Go's cache and builds its tests
    samples.py [NAME…]      runs them: all, or those whose names contain one of these

The broker is the suite's own: it looks like the service at an address of its own, verifies keys and tokens, and stands for both of the
namespaces that the live tests ask for. A live test is one that the module itself skips when it is told not to go to a service.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import secured  # noqa: E402
from outcomes import Outcomes  # noqa: E402
from provider import Provider  # noqa: E402

MODULE = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
ADDRESS = "127.0.0.29"
# A test that takes longer hangs; the examples are one test, of which one waits for a minute.
LIMIT, LIMIT_OF_EXAMPLES = 150, 300
EXAMPLES = "TestExamples"
TOGETHER = 8

# What cannot be as the module's tests want it, and why. Each must fail: one that passes has no place here.
STANDARD = "the namespace is Premium, this test's is Standard"
HIDDEN = "who lacks the right is not told that a queue is missing"
ENQUEUED = "wants no x-opt-enqueue-sequence-number, where the live tests of the older module want 0"
ELSEWHERE = {
    "TestAdminClient_CreateQueue_Standard": STANDARD,
    "TestAdminClient_QueueWithMaxValues": STANDARD,
    "TestAdminClient_TopicAndSubscription_Standard": STANDARD,
    "Test_Sender_Send_MessageTooBig": STANDARD,
    # The difference that docs/compatibility.md has under administration.
    "TestAdminClient_LackPermissions_Queue": HIDDEN,
    "TestAdminClient_LackPermissions_Topic": HIDDEN,
    "TestSender_SendAMQPMessageWithMultipleByteSlicesInData": ENQUEUED,
}
# What may pass or not, and why.
EITHER = {
    "TestReceiveWithDifferentWaitTime": "wants that not all of 1,000 messages come within 20 ms",
}


@dataclass
class Package:
    """A package of the module with tests that go to a broker."""

    name: str
    directory: str
    # Its tests name their queues by the second: one at a time.
    alone: str | None = None


PACKAGES = [
    Package("azservicebus", ".", "TestRenewLocks.*"),
    Package("admin", "admin"),
    Package("internal", "internal", ".*"),
]


@dataclass
class Outcome:
    name: str
    seconds: float
    # The test's, and those below it: name and PASS, FAIL or SKIP.
    results: dict[str, str]
    output: str
    why: str | None


def module() -> Path:
    return work() / "module"


def work() -> Path:
    return Path(os.environ["JITNEY_WORK"])


def binary(package: Package) -> Path:
    return work() / f"{package.name}.test"


def build() -> None:
    """Copies the version that the Go suite pins, puts the harness beside its examples, and builds its tests."""
    pinned = re.search(rf"^\s*{re.escape(MODULE)} (v\S+)", (HERE.parent / "go" / "go.mod").read_text(), re.MULTILINE)
    assert pinned, "../go/go.mod pins no version"
    answer = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@{pinned[1]}"], cwd=HERE, capture_output=True, text=True, check=True)
    shutil.rmtree(module(), ignore_errors=True)
    shutil.copytree(json.loads(answer.stdout)["Dir"], module())
    for path in [module(), *module().rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    for directory, file in (".", "examples_test.go"), ("admin", "administration_test.go"):
        target = module() / directory / f"harness_{file}"
        assert not target.exists()
        shutil.copy(HERE / "harness" / file, target)
    for package in PACKAGES:
        subprocess.run(["go", "test", "-c", "-o", binary(package), f"./{package.directory}"], cwd=module(), check=True)


# The rules that the module's own template (test-resources.bicep) makes, and its queues.
RULES = [
    {"Name": "NoManage", "Rights": ["Send", "Listen"], "PrimaryKey": secured.key("no manage")},
    {"Name": "SendOnly", "Rights": ["Send"], "PrimaryKey": secured.key("send only")},
    {"Name": "ListenOnly", "Rights": ["Listen"], "PrimaryKey": secured.key("listen only")},
]
QUEUES = [
    {"Name": "testQueue", "Properties": {"LockDuration": "PT5M"}},
    {"Name": "testQueueWithSessions", "Properties": {"LockDuration": "PT5M", "RequiresSession": True}},
]


class House:
    """The broker, and the identity provider that it trusts."""

    def __init__(self):
        entities = {"Queues": QUEUES, "AuthorizationRules": RULES}
        self.secured = secured.described(work() / "secured", ADDRESS, entities)
        certs = self.secured.directory / "certs"
        self.issuer = Provider(ADDRESS, str(certs / "server.pem"), str(certs / "server.key"))
        self.secured.add("--oidc-issuer", self.issuer.name, "--oidc-ca", self.secured.authority)
        self.secured.broker.start()

    def environment(self) -> dict[str, str]:
        strings = {"": self.secured.connection_string(), "_PREMIUM": self.secured.connection_string()}
        for each, suffix in zip(RULES, ("_NO_MANAGE", "_SEND_ONLY", "_LISTEN_ONLY")):
            strings[suffix] = self.secured.connection_string(each["Name"], each["PrimaryKey"])
        return {
            **os.environ,
            **self.issuer.environment(),
            **{f"SERVICEBUS_CONNECTION_STRING{suffix}": text for suffix, text in strings.items()},
            "SERVICEBUS_ENDPOINT": ADDRESS,
            "SERVICEBUS_ENDPOINT_PREMIUM": ADDRESS,
            "AZURE_RECORD_MODE": "live",
            # Whom to trust.
            "SSL_CERT_FILE": self.secured.authority,
        }


def bring_up_loopback() -> None:
    """A new network's loopback interface is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name, get, put, up = b"lo", 0x8913, 0x8914, 1
        (flags,) = struct.unpack_from("H", fcntl.ioctl(any_socket, get, struct.pack("16sH14x", name, 0)), 16)
        fcntl.ioctl(any_socket, put, struct.pack("16sH14x", name, flags | up))


def live_tests(package: Package) -> list[str]:
    """The tests that skip, or of which a part does, when the module is told that there is no service."""
    answer = subprocess.run(
        [binary(package), "-test.v"], cwd=module() / package.directory, capture_output=True, text=True, timeout=LIMIT,
        env={**os.environ, "AZURE_RECORD_MODE": "playback"},
    )
    found = re.findall(r"^ *--- SKIP: (\w+)", answer.stdout, re.MULTILINE)
    return list(dict.fromkeys(found))


def run_test(house: House, package: Package, name: str) -> Outcome:
    began = time.monotonic()
    limit = LIMIT_OF_EXAMPLES if name == EXAMPLES else LIMIT
    try:
        answer = subprocess.run(
            [binary(package), "-test.v", "-test.run", f"^{name}$"], cwd=module() / package.directory, env=house.environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit,
        )
        output, why = answer.stdout, None if answer.returncode == 0 else f"exit code {answer.returncode}"
    except subprocess.TimeoutExpired as expired:
        output, why = (expired.stdout or b"").decode(errors="replace"), f"not finished after {limit} s"
    results = {test: word for word, test in re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", output, re.MULTILINE)}
    if not why and results.get(name) != "PASS":
        why = "it did not run"
    outcome = Outcome(name, time.monotonic() - began, results, output, why)
    if name != EXAMPLES:
        say(outcome)
    return outcome


def say(outcome: Outcome) -> None:
    reason = ELSEWHERE.get(outcome.name) or EITHER.get(outcome.name)
    word = "ok    " if not outcome.why else "left  " if reason else "FAILED"
    print(f"{word} {outcome.name} ({outcome.seconds:.1f} s){f': {reason}' if word == 'left  ' else ''}", flush=True)


def again(house: House, package: Package, outcome: Outcome) -> Outcome:
    """Many of these tests have bounds of seconds in them: one that failed beside seven others has another try by itself."""
    if not outcome.why or outcome.name == EXAMPLES or outcome.name in {**ELSEWHERE, **EITHER}:
        return outcome
    print(f"again  {outcome.name}")
    return run_test(house, package, outcome.name)


def run_all(house: House, wanted: list[str]) -> list[tuple[Package, Outcome]]:
    """Each test is a process of its own; they mostly wait, so several run at once."""
    def in_turn(package: Package, names: list[str]) -> list[tuple[Package, Outcome]]:
        return [(package, run_test(house, package, name)) for name in names]

    lanes = []
    for package in PACKAGES:
        names = [*live_tests(package), *([EXAMPLES] if package.name != "internal" else [])]
        names = [name for name in names if not wanted or any(each in name for each in wanted)]
        alone = [name for name in names if package.alone and re.fullmatch(package.alone, name)]
        lanes += [(package, [name]) for name in names if name not in alone]
        lanes += [(package, alone)] if alone else []
    # What takes longest first.
    lanes.sort(key=lambda lane: EXAMPLES not in lane[1])
    with ThreadPoolExecutor(max_workers=TOGETHER) as pool:
        results = [each for found in pool.map(lambda lane: in_turn(*lane), lanes) for each in found]
    return [(package, again(house, package, outcome)) for package, outcome in results]


def examples(outcome: Outcome) -> dict[str, bool]:
    """Whether each example passed."""
    return {
        test.split("/", 1)[1].replace("_", " ", 1) if "/admin_" in test else test.split("/", 1)[1]: word == "PASS"
        for test, word in outcome.results.items() if test.startswith(f"{EXAMPLES}/")
    }


def shipped_examples(package: Package) -> set[str]:
    """The examples that there are in the module's files."""
    found = set()
    for path in (module() / package.directory).glob("example_*_test.go"):
        found |= set(re.findall(r"^func (Example\w*)\(\)", path.read_text(), re.MULTILINE))
    return {f"admin {name}" if package.name == "admin" else name for name in found}


def main() -> int:
    if sys.argv[1:] == ["build"]:
        build()
        return 0
    wanted = sys.argv[1:]
    bring_up_loopback()
    house = House()
    results = run_all(house, wanted)
    outcomes = Outcomes()
    for package in PACKAGES:
        live = [outcome for owner, outcome in results if owner is package and outcome.name != EXAMPLES]
        good = 0
        for outcome in live:
            if outcome.name in ELSEWHERE and not outcome.why:
                outcomes.fail(f"{outcome.name}: it passes, but is listed as one that cannot ({ELSEWHERE[outcome.name]})")
            elif outcome.why and (reason := ELSEWHERE.get(outcome.name) or EITHER.get(outcome.name)):
                outcomes.program(f"test {outcome.name}", "not offered", reason)
            elif outcome.why:
                print(f"\n{outcome.name}: {outcome.why}\n{outcome.output[-6000:]}")
                outcomes.program(f"test {outcome.name}", "fail")
            else:
                good += 1
                outcomes.count(True)
        if good:
            # One row for all of them.
            outcomes.rows.append((f"live tests of {package.name}", "pass", f"{good} of {len(live)}"))
        for _, outcome in (each for each in results if each[0] is package and each[1].name == EXAMPLES):
            found = examples(outcome)
            for name, is_good in found.items():
                outcomes.program(f"example {name}", "pass" if is_good else "fail")
                print(f"{'ok    ' if is_good else 'FAILED'} {name}")
            for name in shipped_examples(package) - set(found):
                outcomes.fail(f"example {name} has no outcome")
            if outcome.why and all(found.values()):
                outcomes.fail(f"the examples of {package.name}: {outcome.why}")
            if outcome.why:
                print(outcome.output[-12000:])
    if complaint := secured.finish(house.secured):
        outcomes.fail(complaint)
    if house.issuer.given == 0 and not wanted:
        outcomes.fail("no token was asked for")
    return outcomes.finish()


if __name__ == "__main__":
    sys.exit(main())
