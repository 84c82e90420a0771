"""Runs the samples of Python's azure-servicebus as they are shipped, and checks what they print and what they leave.

    samples.py                  all
    samples.py send_queue       those of that name

Two collections: `current`, of the version that the suite installs, whose samples sign in with `azure-identity`, and
`connection-string`, the last version whose samples take a connection string. Both run on the same, current SDK, against a broker
that verifies keys and tokens, at the ports where the SDK looks for the service.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode

from issuer import Issuer
from proxy import Proxy

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from secured import ROOT, ROOT_KEY, described, finish  # noqa: E402
from broker import WORK  # noqa: E402
from outcomes import Outcomes  # noqa: E402
from sdists import unpacked  # noqa: E402

# An address of the suite's own.
ADDRESS = "127.0.0.28"

# A sample that takes longer hangs.
LIMIT = 90
SLOW_LIMIT = 600


# Each sample has a queue of its name, and where it needs them a queue with message sessions and a topic with a subscription.
Where = Literal["", "queue", "sessions", "topic"]
SUBSCRIPTION = "subscription"
SESSION = "the session"


@dataclass
class Sample:
    name: str
    # Lines that must be printed, each as often as it stands here; a pattern must match a whole line.
    prints: list[str] = field(default_factory=list)
    # What the asynchronous one prints, where that differs.
    prints_async: list[str] | None = None
    # Bodies that are there afterwards, and where; "" for nowhere to look.
    leaves: list[str] = field(default_factory=list)
    where: Where = "queue"
    # Runs before it, on the same queue, to have something to receive.
    after: str | None = None
    # It receives for ever; it is stopped once it has printed all that it should.
    endless: bool = False
    # There is no asynchronous one.
    only_sync: bool = False
    # The older collection does not have it.
    only_current: bool = False
    # Sends a message of each of these sessions before it, to its queue and its topic.
    given: list[str] = field(default_factory=list)
    # Minutes of it are sleep: once is enough, and its time and its queue are its own; the asynchronous one is an entry of its own.
    slow: bool = False
    # There is no blocking one, or it is another entry.
    only_async: bool = False
    # The lock duration of its queues, where it waits for one to expire.
    lock: str = "PT1M"
    # Placeholders in its text that it asks to be filled in, and by what.
    fills: dict[str, str] = field(default_factory=dict)
    # What is wrong with the asynchronous one itself, on any broker: it is not run.
    broken_async: str | None = None

    def kinds(self) -> list[str]:
        return ["async"] if self.only_async else ["sync"] if self.only_sync or self.slow or self.broken_async else ["sync", "async"]

    @property
    def queue(self) -> str:
        return f"samples/{self.name}/async" if self.only_async else f"samples/{self.name}"


SINGLE = ["Single Message"]
LISTED = SINGLE + ["Message in list"] * 10
BATCHED = LISTED + ["Message inside a ServiceBusMessageBatch"] * 10
IN_SESSION = ["Single session message"] + ["Session Message in list"] * 10 + ["Session Message inside a ServiceBusMessageBatch"] * 10

SAMPLES = [
    Sample("authenticate_client_connstr", where=""),
    Sample("authenticate_using_azure_named_key_credential", leaves=["hello"]),
    Sample("authenticate_using_azure_sas_credential", leaves=["hello"]),
    Sample(
        "auto_lock_renew",
        ["Send messages to non-sessionful queue.", "Send messages to sessionful queue.", "Register session into AutoLockRenewer."]
        + ["Register messages into AutoLockRenewer done."] * 2 + ["Complete messages."] * 2
        + ["Intentionally failed to renew lock on .*", r"Messages cannot be settled if they have timed out. \(This is expected\)"]
        + ["Lock renew failure demonstration complete."],
        leaves=["message"], slow=True, lock="PT30S",
    ),
    Sample(
        "auto_lock_renew",
        ["Send messages to non-sessionful queue.", "Send message to non-sessionful queue.", "Send message to topic."]
        + ["Send messages to sessionful queue.", "Register session into AutoLockRenewer."]
        + ["Register messages into AutoLockRenewer done."] * 2 + ["Complete queue messages.", "Complete subscription messages."]
        + ["Complete messages."] * 2
        + ["Intentionally failed to renew lock on .*", r"Messages cannot be settled if they have timed out. \(This is expected\)"]
        + ["Lock renew failure demonstration complete."],
        leaves=["message"], slow=True, only_async=True, lock="PT30S",
    ),
    Sample("client_identity_authentication", ["Send message is done."], leaves=SINGLE),
    Sample(
        "connection_to_custom_endpoint_address", leaves=SINGLE,
        fills={"<custom_endpoint_hostname>:<custom_endpoint_port>": "localhost:{http_port}", "<your_custom_ca_bundle_file_path>": "{authority}"},
    ),
    Sample(
        "deadletter_messages_and_correct",
        ["Messages sent"] * 2
        + ["Message delivery_count: (0|None)"] + [f"Message delivery_count: {count}" for count in range(1, 10)]
        + ["Deadletter message:", "Message to be deadlettered number: 0"]
        + [f"Fixing message: Body=b'Message to be deadlettered number: {n}', Subject=Bad" for n in range(0, 10, 2)]
        + ["Resending fixed messages"]
        + [f"Received fixed message: Body=b'Message to be deadlettered number: {n}', Subject=Good" for n in range(0, 10, 2)],
    ),
    Sample("failure_and_recovery", ["Opening", "Sending", "Receiving"] + [f"Data {n}" for n in range(10)], endless=True, only_sync=True),
    Sample("generate_sas_token_and_authenticate_client", where="", only_sync=True),
    Sample(
        "list_sessions",
        [f"{kind} session: {id}" for kind in ("Queue", "Subscription") for id in ("one", "two")],
        where="", given=["one", "two"], only_current=True,
    ),
    Sample(
        "mgmt_queue",
        ["-- Create Queue", r"Queue sb_mgmt_queue\S+ is created\.", "-- List Queues"] + [r"Queue Name: sb_mgmt_queue\S+"] * 3
        + ["Dead Lettering on Message Expiration: True", "Message Count: 0", r"Queue sb_mgmt_queue\S+ is deleted\."],
        where="",
    ),
    Sample(
        "mgmt_rule",
        [r"Rule sb_mgmt_rule\S+ is created\.", r"Rule sb_sql_rule\S+ is created\.", r"Rule Name: \$Default"]
        + [r"Rule Name: sb_mgmt_rule\S+"] * 2
        + [r"Rule Name: sb_sql_rule\S+", r"Rule sb_mgmt_rule\S+ is deleted\.", r"Rule sb_sql_rule\S+ is deleted\."],
        where="topic",
    ),
    Sample(
        "mgmt_subscription",
        [r"Subscription sb_mgmt_sub\S+ is created\."] + [r"Subscription Name: sb_mgmt_sub\S+"] * 3
        + ["Subscription Name: subscription", r"Subscription sb_mgmt_sub\S+ is deleted\."],
        where="topic",
    ),
    Sample(
        "mgmt_topic",
        [r"Topic sb_mgmt_topic\S+ is created\."] + [r"Topic Name: sb_mgmt_topic\S+"] * 3 + [r"Topic sb_mgmt_topic\S+ is deleted\."],
        where="",
    ),
    Sample(
        "proxy", ["Send message is done."], leaves=SINGLE,
        broken_async="its SDK gives aiohttp the proxy's address without a scheme: fails anywhere",
    ),
    Sample(
        "receive_deadlettered_messages",
        ["dead lettering messages"] + ["Message to be deadlettered"] * 10 + ["receiving deadlettered messages"]
        + ["Message to be deadlettered"] * 10,
    ),
    Sample(
        "receive_deferred_message_queue",
        ["Deferring msg: Message to be deferred"] * 10 + ["Completing deferred msg: Message to be deferred"] * 10 + ["Receive is done."],
    ),
    Sample("receive_iterator_queue", BATCHED, after="send_queue", endless=True),
    Sample("receive_peek", ["Single Message", "Message in list"], leaves=BATCHED, after="send_queue"),
    Sample("receive_queue", SINGLE + ["Message in list"] * 9, leaves=BATCHED[10:], after="send_queue"),
    Sample("receive_subscription", where="topic", after="send_topic"),
    Sample(
        "sample_code_servicebus",
        ["Hello World"] * 5 + ["msg"], lock="PT10S",
    ),
    Sample(
        "schedule_messages_and_cancellation",
        [r"Single message is scheduled and sequence number is \[\d+\]", r"Multiple messages are scheduled and sequence numbers are \[(\d+, ){9}\d+\]",
         "All scheduled messages are cancelled."],
    ),
    Sample(
        "schedule_topic_messages_and_cancellation",
        [r"Single message is scheduled and sequence number is \[\d+\]", r"Multiple messages are scheduled and sequence numbers are \[(\d+, ){9}\d+\]",
         "All scheduled messages are cancelled."],
        where="topic",
    ),
    Sample(
        "send_and_receive_amqp_annotated_message",
        [f"Message of {kind} body sent." for kind in ("data", "sequence", "value")]
        + [f"Message of {kind} body received. Body is:" for kind in ("data", "sequence", "value")]
        + ["b'aa'", "b'bb'", "b'cc'", r"\[b'message', 123.456, True\]", r"{b'key': \[-123, b'data', False\]}"],
    ),
    Sample("send_queue", ["Send message is done."], leaves=BATCHED),
    Sample("send_topic", ["Send message is done."], where="topic"),
    Sample(
        "session_pool_receive",
        # What its threads print runs together; the sum comes after them.
        ["Received total 200 messages across 10 sessions."],
        prints_async=[f"Message: Sample message no. {index}" for index in range(20)] * 5 + ["Message: shutdown"] * 5,
        where="sessions",
    ),
    Sample(
        "session_send_receive",
        ["Send message is done.", "Session state: b?'?START'?", "Session state: b?'?END'?", "Single session message", "Receive is done."]
        + ["Session Message in list"] * 9,
        leaves=IN_SESSION[10:], where="sessions",
    ),
    Sample(
        "topic_subscription_with_rule_operations",
        [f"'{count}' Messages From Subscription: {name}" for name, count in (
            ("sb-allmsgs-sub", 9), ("sb-sqlfilteronly-sub", 3), ("sb-sqlfilteraction-sub", 3), ("sb-corrfiltersub", 1),
        )]
        + ["Color Property = BlueProcessed, Correlation ID = important", "Rule ImportantCorrelationRule; Filter: CorrelationRuleFilter"]
        + [rf"Subscription sb-\S+ is {done}\." for done in ("created", "deleted")] * 4,
        leaves=["Rule with filter sample"] * 9, where="topic",
    ),
]

# The current send_queue and send_topic go on to send three more; their bodies carry who sent them.
SYNCHRONIZED = r"Synchronized message from (thread|coroutine) \d"


@dataclass
class Collection:
    name: str
    version: str

    def samples(self, kind: str) -> Path:
        return unpacked("azure-servicebus", self.version) / "samples" / f"{kind}_samples"


# The current one is that which the Python suite pins.
COLLECTIONS = [Collection("current", version("azure-servicebus")), Collection("connection-string", "7.11.4")]


class House:
    """The secured broker, the identity provider that it trusts, and the proxy."""

    def __init__(self, directory: Path):
        # The certificates are made first: the identity provider has the broker's.
        self.secured = described(directory, ADDRESS, entities())
        certs = directory / "certs"
        self.issuer = Issuer(ADDRESS, str(certs / "server.pem"), str(certs / "server.key"))
        self.secured.add("--oidc-issuer", self.issuer.name, "--oidc-ca", self.secured.authority)
        self.secured.broker.start()
        self.proxy = Proxy()

    def client(self) -> ServiceBusClient:
        return ServiceBusClient.from_connection_string(self.secured.connection_string(), connection_verify=self.secured.authority)

    def environment(self, queue: str) -> dict[str, str]:
        return {
            **os.environ,
            **self.issuer.environment(),
            "SERVICEBUS_CONNECTION_STR": self.secured.connection_string(),
            "SERVICEBUS_FULLY_QUALIFIED_NAMESPACE": ADDRESS,
            "SERVICEBUS_QUEUE_NAME": queue,
            "SERVICEBUS_SESSION_QUEUE_NAME": f"{queue}/sessions",
            "SERVICEBUS_SESSION_ID": SESSION,
            "SERVICEBUS_TOPIC_NAME": f"{queue}/topic",
            "SERVICEBUS_SUBSCRIPTION_NAME": SUBSCRIPTION,
            "SERVICEBUS_SAS_POLICY": ROOT,
            "SERVICEBUS_SAS_KEY": ROOT_KEY,
            # Whom to trust.
            "SSL_CERT_FILE": self.secured.authority,
            "REQUESTS_CA_BUNDLE": self.secured.authority,
            "PYTHONPATH": str(HERE / "trust"),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def entities() -> dict:
    """A queue for each sample, one with message sessions, and a topic with a subscription."""
    queues, topics = [], []
    for sample in SAMPLES:
        name = sample.queue
        properties = {"LockDuration": sample.lock, "MaxDeliveryCount": 10}
        queues.append({"Name": name, "Properties": properties})
        queues.append({"Name": f"{name}/sessions", "Properties": {**properties, "RequiresSession": True}})
        received = {**properties, "RequiresSession": bool(sample.given)}
        topics.append({"Name": f"{name}/topic", "Subscriptions": [{"Name": SUBSCRIPTION, "Properties": received}]})
    return {"Queues": queues, "Topics": topics}


def missing(expected: list[str], printed: list[str]) -> list[str]:
    """The patterns of `expected` that no line of `printed` is left for."""
    return [f"{pattern} ({count} times, wanted {wanted})" for pattern, wanted in Counter(expected).items()
            if (count := sum(bool(re.fullmatch(pattern, line)) for line in printed)) < wanted]


def run_file(house: House, path: Path, queue: str, expected: list[str], endless: bool, limit: int = LIMIT) -> str | None:
    """Runs one file; returns what is wrong with it."""
    process = subprocess.Popen(
        [sys.executable, str(path)], env=house.environment(queue), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=path.parent,
    )
    printed: list[str] = []
    reader = threading.Thread(target=lambda: printed.extend(line.rstrip("\n") for line in process.stdout))
    watch = threading.Timer(limit, process.kill)
    watch.start()
    if endless:
        stopped = False
        for line in process.stdout:
            printed.append(line.rstrip("\n"))
            if not stopped and not missing(expected, printed):
                # The last message it printed is settled before it comes round to the next: give it that moment.
                time.sleep(1)
                process.send_signal(signal.SIGTERM)
                stopped = True
    else:
        reader.start()
        reader.join()
    code = process.wait()
    in_time = watch.is_alive()
    watch.cancel()
    complaints = []
    if not in_time:
        complaints.append(f"not finished after {limit} s")
    elif code != (-signal.SIGTERM if endless else 0):
        complaints.append(f"exit code {code}")
    complaints += [f"not printed: {line}" for line in missing(expected, printed)]
    if any(line.startswith("Traceback") or " failed: " in line for line in printed):
        complaints.append("it printed an error")
    if complaints:
        return "\n".join(complaints + ["its output:"] + [f"  {line}" for line in printed[-60:]])
    return None


def taken(house: House, queue: str, where: Where) -> list[str]:
    """The bodies that are there; none is afterwards."""
    found: list[str] = []
    mode = {"receive_mode": ServiceBusReceiveMode.RECEIVE_AND_DELETE}
    with house.client() as client:
        if where == "topic":
            receivers = [client.get_subscription_receiver(f"{queue}/topic", SUBSCRIPTION, **mode)]
        elif where == "sessions":
            ids = client.list_queue_sessions(f"{queue}/sessions")
            receivers = [client.get_queue_receiver(f"{queue}/sessions", session_id=id, **mode) for id in ids]
        else:
            receivers = [client.get_queue_receiver(queue, **mode)]
        for receiver in receivers:
            with receiver:
                while messages := receiver.receive_messages(max_message_count=100, max_wait_time=1):
                    found += [str(message) for message in messages]
                if where == "sessions":
                    receiver.session.set_state(None)
    return found


def give(house: House, queue: str, sessions: list[str]) -> None:
    """Sends a message of each session to the sample's queue with sessions and to its topic."""
    with house.client() as client:
        for sender in (client.get_queue_sender(f"{queue}/sessions"), client.get_topic_sender(f"{queue}/topic")):
            with sender:
                sender.send_messages([ServiceBusMessage("given", session_id=id) for id in sessions])


def file_of(house: House, collection: Collection, kind: str, name: str, fills: dict[str, str]) -> Path:
    """The sample's file; where it asks for something to be filled in, a copy with that."""
    path = collection.samples(kind) / (f"{name}_async.py" if kind == "async" else f"{name}.py")
    if not fills:
        return path
    text = path.read_text()
    for placeholder, value in fills.items():
        if placeholder not in text:
            raise ValueError(f"{path} does not ask for {placeholder}")
        text = text.replace(placeholder, value.format(http_port=house.secured.broker.http_port, authority=house.secured.authority))
    copy = house.secured.directory / f"{collection.name}-{path.name}"
    copy.write_text(text)
    return copy


def run_sample(house: House, collection: Collection, kind: str, sample: Sample) -> str | None:
    queue = sample.queue
    # Sent by two samples of the current collection only.
    more = 3 if collection.name == "current" and {"send_queue", "send_topic"} & {sample.name, sample.after} else 0
    if sample.given:
        give(house, queue, sample.given)
    if sample.after:
        complaint = run_file(house, file_of(house, collection, kind, sample.after, {}), queue, [], endless=False)
        if complaint:
            return f"{sample.after}: {complaint}"
    prints = sample.prints if kind == "sync" or sample.prints_async is None else sample.prints_async
    expected, leaves = list(prints), list(sample.leaves)
    if sample.where == "topic" and "send_topic" in (sample.name, sample.after):
        # One of the four sends no list.
        published = SINGLE + BATCHED[-10:] if (collection.name, kind) == ("connection-string", "async") else BATCHED
        taken_first = 10 if sample.after else 0
        expected += published[:taken_first]
        leaves = published[taken_first:]
    if sample.endless:
        expected += [SYNCHRONIZED] * more
    if more and sample.after is None:
        expected += [r"(Thread|Coroutine) \d sent synchronized message successfully"] * more
    limit = SLOW_LIMIT if sample.slow else LIMIT
    file = file_of(house, collection, kind, sample.name, sample.fills)
    asked, tunnels = house.issuer.given, len(house.proxy.tunnels)
    complaint = run_file(house, file, queue, expected, sample.endless, limit)
    # What a sample is about must have happened, and not its contrary by some other way.
    if sample.name == "client_identity_authentication" and house.issuer.given == asked:
        complaint = f"{complaint or ''}\nno token was asked for"
    if sample.name == "proxy" and len(house.proxy.tunnels) == tunnels:
        complaint = f"{complaint or ''}\nit did not use the proxy"
    if not sample.where:
        return complaint
    # The blocking send_topic leaves the article out.
    left = [body.replace("inside ServiceBus", "inside a ServiceBus") for body in taken(house, queue, sample.where)]
    wanted = sorted(leaves + ["Synchronized"] * (0 if sample.endless else more))
    if sorted("Synchronized" if re.fullmatch(SYNCHRONIZED, body) else body for body in left) != wanted:
        return "\n".join(filter(None, [complaint, f"the {sample.where} holds {left}, wanted {wanted}"]))
    return complaint


def run_everywhere(house: House, sample: Sample, outcomes: Outcomes) -> list[tuple[str, str | None]]:
    """The sample in both collections, both kinds: one after the other, they share a queue."""
    results = []
    for collection in COLLECTIONS[:1] if sample.only_current or sample.slow else COLLECTIONS:
        for kind in sample.kinds():
            began = time.monotonic()
            complaint = run_sample(house, collection, kind, sample)
            title = f"{collection.name} {kind} {sample.name}"
            outcomes.program(file_name(collection, kind, sample.name), "fail" if complaint else "pass")
            print(f"{'FAILED' if complaint else 'ok    '} {title} ({time.monotonic() - began:.1f} s)", flush=True)
            results.append((title, complaint))
    return results


def file_name(collection: Collection, kind: str, name: str) -> str:
    """The sample's name in the matrix."""
    version = "" if collection is COLLECTIONS[0] else f" of {collection.version}"
    return f"{kind}_samples/{name}{'_async' if kind == 'async' else ''}.py{version}"


def unaccounted(collection: Collection, outcomes: Outcomes) -> list[str]:
    """Files of a collection that are not listed above. Adds an outcome for those that are listed and do not run."""
    known = set()
    for sample in SAMPLES:
        known |= {("sync", sample.name)} if "sync" in sample.kinds() else set()
        known |= {("async", sample.name)} if "async" in sample.kinds() else set()
        if sample.broken_async:
            known.add(("async", sample.name))
            outcomes.program(file_name(collection, "async", sample.name), "not offered", sample.broken_async)
        elif sample.slow and collection is not COLLECTIONS[0]:
            name = file_name(collection, sample.kinds()[0], sample.name)
            outcomes.program(name, "not offered", "sleeps for minutes: that of the current version is run")
    shipped = {
        (kind, path.stem.removesuffix("_async") if kind == "async" else path.stem)
        for kind in ("sync", "async") for path in collection.samples(kind).glob("*.py")
    }
    elsewhere = [str(path) for path in (unpacked("azure-servicebus", collection.version) / "samples").rglob("*.py")
                 if path.parent.name not in ("sync_samples", "async_samples")]
    return elsewhere + [f"{kind}_samples: {name}" for kind, name in sorted(shipped - known)]


def main() -> int:
    wanted = sys.argv[1:]
    samples = [sample for sample in SAMPLES if not wanted or sample.name in wanted]
    outcomes = Outcomes()
    for collection in COLLECTIONS:
        unpacked("azure-servicebus", collection.version)
        if not wanted:
            for file in unaccounted(collection, outcomes):
                outcomes.fail(f"{collection.name} has a sample that does not run: {file}")
    house = House(Path(os.environ.get("JITNEY_WORK") or WORK / "samples") / "secured")
    with ThreadPoolExecutor(max_workers=3) as pool, ThreadPoolExecutor(max_workers=2) as aside:
        running = [(aside if sample.slow else pool).submit(run_everywhere, house, sample, outcomes) for sample in samples]
        results = [each for future in running for each in future.result()]
    if complaint := finish(house.secured):
        outcomes.fail(complaint)
    for title, complaint in results:
        if complaint:
            print(f"\n{title}\n{complaint}")
    return outcomes.finish()


if __name__ == "__main__":
    sys.exit(main())
