"""The operator's part of the API: the server and its namespaces; who a client is; bodies that are compressed; locks by number."""

from __future__ import annotations

import base64
import gzip
import io
import json
import socket
import subprocess
import time
import zipfile
import zlib

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

# How long a client may take to see that its connection was closed.
DEADLINE = 30.0


RESOLVE = socket.getaddrinfo


def resolve(host, *args, **kwargs):
    """Host names of namespaces lead to this machine, as lines in /etc/hosts would."""
    return RESOLVE("localhost" if str(host).endswith(".localhost") else host, *args, **kwargs)


socket.getaddrinfo = resolve


def client_of(broker, namespace: str) -> ServiceBusClient:
    """A client that calls another namespace by its host name."""
    text = broker.connection_string.replace("sb://localhost:", f"sb://{namespace}.localhost:")
    return ServiceBusClient.from_connection_string(text)


def namespaces_are_made_and_dropped(world) -> None:
    api = world.api
    names = lambda: {one["name"]: one for one in api("GET", "namespaces")["namespaces"]}
    before = names()
    (first,) = [one for one in before.values() if one["first"]]
    made = api("PUT", "namespaces/Tenant-1")
    assert made == {"name": "tenant-1", "shard": 0, "first": False, "configured": False}, made
    assert set(names()) == {*before, "tenant-1"}
    status, problem = api.ask("PUT", "namespaces/tenant-1")
    assert status == 409 and "tenant-1" in problem["detail"], problem
    for wrong in ("a_b", "x" * 51, "a.b", "%20"):
        status, problem = api.ask("PUT", f"namespaces/{wrong}")
        assert status == 400 and "letters, digits and hyphens" in problem["detail"], (wrong, problem)
    api("PUT", "entities/own?namespace=tenant-1", {"kind": "queue"})
    with client_of(world.open, "tenant-1") as client:
        with client.get_queue_sender("own") as sender:
            sender.send_messages([ServiceBusMessage(f"of the tenant {n}") for n in range(3)])
    # It is there after a crash.
    world.open.kill()
    world.open.start()
    assert "tenant-1" in names()
    with client_of(world.open, "tenant-1") as client, client.get_queue_receiver("own") as receiver:
        (message,) = receiver.receive_messages(1, max_wait_time=10)
        assert str(message) == "of the tenant 0"
        receiver.complete_message(message)
        # A client is connected while it is dropped.
        api("DELETE", "namespaces/tenant-1")
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                # The name means the first namespace now, which has no such queue.
                receiver.receive_messages(1, max_wait_time=1)
                assert time.monotonic() < deadline, "the receiver was not told"
            except ServiceBusError:
                break
    assert set(names()) == set(before)
    status, problem = api.ask("DELETE", "namespaces/tenant-1")
    assert status == 404, problem
    # Nothing of it comes back with its name.
    api("PUT", "namespaces/tenant-1")
    assert api("GET", "entities?kind=queue&namespace=tenant-1")["entities"] == []
    world.open.kill()
    world.open.start()
    assert api("GET", "entities?kind=queue&namespace=tenant-1")["entities"] == []
    api("DELETE", "namespaces/tenant-1")
    world.open.kill()
    world.open.start()
    assert set(names()) == set(before)
    status, problem = api.ask("DELETE", f"namespaces/{first['name']}")
    assert status == 409 and "is the first" in problem["detail"], problem
    operations = [one["operation"] for one in api("GET", "audit?limit=20")["entries"]]
    assert "delete_namespace" not in operations, "the audit log of another namespace has it"


def a_namespace_is_made_with_the_entities_of_a_file(world) -> None:
    from api import KEYS, Api, token

    api = world.api
    names = lambda: {one["name"] for one in api("GET", "namespaces")["namespaces"]}
    before = names()

    def file(*namespaces: dict) -> bytes:
        return b"// as people have it\n" + json.dumps({"UserConfig": {"Namespaces": namespaces}}).encode()

    def paths(namespace: str) -> list[list[str]]:
        found = (api("GET", f"entities?kind={kind}&namespace={namespace}")["entities"] for kind in ("queue", "topic"))
        return [[one["path"] for one in entities] for entities in found]

    shop = {"Name": "shop", "Queues": [{"Name": "orders"}], "Topics": [{"Name": "news", "Subscriptions": [{"Name": "eu"}]}]}
    bank = {"Name": "bank", "Queues": [{"Name": "bills"}]}
    # The name in the file is another.
    assert api("PUT", "namespaces/one", file(shop))["name"] == "one"
    assert paths("one") == [["orders"], ["news"]], paths("one")
    with client_of(world.open, "one") as client, client.get_topic_sender("news") as sender:
        sender.send_messages(ServiceBusMessage("published"))
    assert api("PUT", "namespaces/two?from=BANK", file(shop, bank))["name"] == "two"
    assert paths("two") == [["bills"], []], paths("two")
    status, problem = api.ask("PUT", "namespaces/one", file(bank))
    assert status == 409, problem
    assert paths("one")[0] == ["orders"], "a namespace that is there has what it had"
    # A mistake, several namespaces, none of this name, an unknown parameter, and an entity that cannot be made.
    forwards = {"Name": "in", "Properties": {"ForwardTo": "nowhere"}}
    wrong = [
        ("", b"{ not", "1:"), ("", file(shop, bank), "from=NAME"), ("?from=none", file(shop, bank), "'shop', 'bank'"),
        ("?x=1", file(shop), "x"), ("", file({"Name": "shop", "Queues": [{"Name": "fine"}, forwards]}), "nowhere"),
    ]
    for query, body, text in wrong:
        status, problem = api.ask("PUT", f"namespaces/three{query}", body)
        assert status == 400 and text in problem["detail"], (query, status, problem)
    assert names() == {*before, "one", "two"}
    world.open.kill()
    world.open.start()
    assert paths("one") == [["orders"], ["news"]], "it is there after a crash"
    with client_of(world.open, "one") as client, client.get_subscription_receiver("news", "eu") as receiver:
        (message,) = receiver.receive_messages(1, max_wait_time=10)
        assert str(message) == "published"
    for name in ("one", "two"):
        api("DELETE", f"namespaces/{name}")
    manage = Api(world.closed.http_port, token("manage", KEYS["manage"]))
    assert manage.ask("PUT", "namespaces/three", file(shop))[0] == 401, "it is the operator's"


def the_server_is_the_operators(world) -> None:
    from api import KEYS, Api, token

    server = world.api("GET", "server")
    assert server["open"] is True and server["shards"][0]["healthy"] and server["process"]["resident_bytes"] > 1 << 20, server
    assert server["data"]["free_bytes"] > 0 and server["shards"][0]["log_bytes"] > 0, server
    manage = Api(world.closed.http_port, token("manage", KEYS["manage"]))
    for method, path in (("GET", "server"), ("GET", "namespaces"), ("PUT", "namespaces/mine"), ("DELETE", "namespaces/mine")):
        status, problem = manage.ask(method, path)
        assert status == 401 and "operator" in problem["detail"], (path, problem)


def a_client_learns_what_it_may_do(world) -> None:
    from api import KEYS, Api, token

    port = world.closed.http_port
    for name, rights in (("manage", ["send", "listen", "manage"]), ("send", ["send"]), ("listen", ["listen"])):
        access = Api(port, token(name, KEYS[name]))("GET", "access")
        assert access["rights"] == rights and access["actor"] == f"key {name}" and not access["operator"], access
        assert not access["open"] and access["version"] and "namespaces" not in access, access
    access = world.api("GET", "access")
    assert access["operator"] and access["open"] and access["namespace"] in access["namespaces"], access
    status, _ = Api(port, token("send", "wrong")).ask("GET", "access")
    assert status == 401


def compressed_bodies_are_shown_unpacked(world) -> None:
    api = world.api
    text = json.dumps({"order": 7, "lines": ["a"] * 50})
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("order.json", text)
    bodies = {"gzip": gzip.compress(text.encode()), "deflate": zlib.compress(text.encode()), "zip": archive.getvalue()}
    with world.client() as client, client.get_queue_sender("bulk") as sender:
        for body in bodies.values():
            sender.send_messages(ServiceBusMessage(body))
        sender.send_messages(ServiceBusMessage(gzip.compress(bytes(5_000_000))))
        sender.send_messages(ServiceBusMessage(b"plain"))
    shown, further = [], ""
    while further is not None:
        # A page counts the bytes that it shows.
        page = api("GET", f"entities/bulk/messages?body=full{further}")
        shown += page["messages"]
        further = f"&from={page['next']}" if page.get("next") is not None else None
    assert len(shown) == 5, shown
    for message, (form, body) in zip(shown, bodies.items()):
        assert message["body"]["decoded"] == {"format": form, "text": text}, message
        assert base64.b64decode(message["body"]["base64"]) == body
    large = shown[3]["body"]["decoded"]
    assert large["truncated"] and large["text"] == "\0" * (256 * 1024), {**large, "text": len(large["text"])}
    assert "decoded" not in shown[4]["body"], shown[4]
    assert all("decoded" not in one["body"] for one in api("GET", "entities/bulk/messages")["messages"])
    one = api("GET", f"entities/bulk/messages/{shown[0]['sequence_number']}")
    assert one["body"]["decoded"]["text"] == text
    api.job("bulk", {"kind": "delete"})


def one_dead_letter_is_received_by_its_number(world) -> None:
    api, broker = world.api, world.open
    with world.client() as client, client.get_queue_sender("bulk") as sender, client.get_queue_receiver("bulk") as receiver:
        sender.send_messages([ServiceBusMessage(f"dead {n}") for n in range(3)])
        for message in receiver.receive_messages(3, max_wait_time=10):
            receiver.dead_letter_message(message, reason="odd")
        sender.send_messages([ServiceBusMessage("active"), ServiceBusMessage("other")])
    numbers = [one["sequence_number"] for one in api.messages("bulk/$DeadLetterQueue")]

    def jitney(*words: str) -> subprocess.CompletedProcess:
        command = [broker.state["binary"], *words, "--url", f"http://127.0.0.1:{broker.http_port}", "--output", "json"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    done = jitney("lock", "bulk", str(numbers[1]), "--dead-letters")
    assert done.returncode == 0, done
    (locked,) = json.loads(done.stdout)["messages"]
    assert locked["body"]["text"] == "dead 1" and locked["dead_letter"]["reason"] == "odd", locked
    done = jitney("lock", "bulk", str(numbers[1]), "--dead-letters")
    assert done.returncode == 4 and "is locked" in done.stderr, done
    done = jitney("settle", "bulk", locked["lock_token"], "--dead-letters", "--outcome", "complete")
    assert done.returncode == 0, done
    assert [one["sequence_number"] for one in api.messages("bulk/$DeadLetterQueue")] == [numbers[0], numbers[2]]
    done = jitney("settle", "bulk", locked["lock_token"], "--dead-letters", "--outcome", "complete")
    assert done.returncode == 1, done
    # An active message that is locked so goes to no receiver.
    active = next(one for one in api.messages("bulk") if one["body"]["text"] == "active")
    (held,) = api("POST", "entities/bulk/lock", {"sequence_numbers": [active["sequence_number"]]})["messages"]
    with world.client() as client, client.get_queue_receiver("bulk") as receiver:
        (message,) = receiver.receive_messages(1, max_wait_time=10)
        assert str(message) == "other"
        receiver.complete_message(message)
        api("POST", "entities/bulk/settle", {"settlements": [{"lock_token": held["lock_token"], "outcome": "abandon"}]})
        (message,) = receiver.receive_messages(1, max_wait_time=10)
        assert str(message) == "active" and message.delivery_count == 1
        receiver.complete_message(message)
    # Jobs of single messages.
    done = jitney("dead-letter", "bulk", "--yes", "--number", "1")
    assert done.returncode == 0 and json.loads(done.stdout)["matched"] == 0, done
    api.job("bulk/$DeadLetterQueue", {"kind": "delete"})


def commands_activate_reschedule_and_dead_letter(world) -> None:
    import datetime

    api, broker = world.api, world.open
    far = datetime.datetime(2100, 1, 1)
    with world.client() as client, client.get_queue_sender("bulk") as sender:
        numbers = sender.schedule_messages([ServiceBusMessage(f"later {n}") for n in range(3)], far)
    with world.client() as client, client.get_queue_sender("grouped") as sender:
        sender.send_messages([ServiceBusMessage(f"{name} {n}", session_id=name) for name in "ab" for n in range(2)])

    def jitney(*words: str, given: str = "") -> dict:
        command = [broker.state["binary"], *words, "--url", f"http://127.0.0.1:{broker.http_port}", "--output", "json"]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        return json.loads(done.stdout) if done.stdout.strip() else {}

    assert jitney("reschedule", "bulk", "--at", "2101-01-01T00:00:00Z", "--number", str(numbers[0]), "--yes")["changed"] == 1
    due = {one["sequence_number"]: one["scheduled_for"][:4] for one in api.messages("bulk", state="scheduled")}
    assert due == {numbers[0]: "2101", numbers[1]: "2100", numbers[2]: "2100"}, due
    assert jitney("activate", "bulk", "--state", "scheduled", "--number", str(numbers[1]), "--yes")["changed"] == 1
    (active,) = api.messages("bulk", state="active")
    assert active["body"]["text"] == "later 1", active
    assert jitney("dead-letter", "grouped", "--session", "a", "--dead-letter-reason", "poison", "--yes")["changed"] == 2
    dead = [one for one in api.messages("grouped/$DeadLetterQueue") if one["session_id"] == "a"]
    assert [(one["session_id"], one["dead_letter"]["reason"]) for one in dead] == [("a", "poison")] * 2, dead
    jitney("sessions", "set-state", "grouped", "b", "half done")
    shown = jitney("sessions", "show", "grouped", "b")
    assert base64.b64decode(shown["state_base64"]) == b"half done", shown
    assert jitney("server")["shards"][0]["number"] == 0
    config = {"UserConfig": {"Namespaces": [{"Name": "other"}, {"Name": "this", "Queues": [{"Name": "made"}]}]}}
    created = jitney("namespaces", "create", "by-command", "--config", "-", "--from", "this", given=json.dumps(config))
    assert created["name"] == "by-command", created
    assert api("GET", "entities/made?namespace=by-command")["path"] == "made"
    assert "by-command" in {one["name"] for one in jitney("namespaces", "list")["namespaces"]}
    jitney("namespaces", "delete", "by-command", "--yes")
    for queue in ("bulk", "grouped", "grouped/$DeadLetterQueue"):
        api.job(queue, {"kind": "delete"})


def rates_and_links_tell_what_clients_do(world) -> None:
    api = world.api
    with world.client() as client, client.get_queue_sender("bulk") as sender, client.get_queue_receiver("bulk") as receiver:
        sender.send_messages([ServiceBusMessage(str(n)) for n in range(4)])
        first, *_ = receiver.receive_messages(2, max_wait_time=10)
        links = [link for connection in api("GET", "connections")["connections"] for link in connection["links"]]
        (sending,) = [link for link in links if link["role"] == "sender" and link["entity"] == "bulk"]
        (receiving,) = [link for link in links if link["role"] == "receiver" and link["entity"] == "bulk"]
        assert sending["deliveries"] == 1, "a batch is one delivery"
        assert receiving["deliveries"] >= 2 and receiving["oldest_locked"] == first.sequence_number, receiving
    deadline = time.monotonic() + 60
    while "rates" not in api("GET", "entities/bulk"):
        assert time.monotonic() < deadline, "there are no rates"
        time.sleep(0.2)
    rates = api("GET", "entities/bulk")["rates"]
    assert rates["incoming"] >= 0 and rates["completed"] >= 0, rates
    # What is new has an empty history, and not none.
    api("PUT", "entities/fresh", {"kind": "queue"})
    assert len(api("GET", "entities/fresh/history")["points"]) <= 1
    api("DELETE", "entities/fresh")
    api.job("bulk", {"kind": "delete"})


TESTS = [
    namespaces_are_made_and_dropped, a_namespace_is_made_with_the_entities_of_a_file, the_server_is_the_operators, a_client_learns_what_it_may_do, compressed_bodies_are_shown_unpacked,
    one_dead_letter_is_received_by_its_number, commands_activate_reschedule_and_dead_letter, rates_and_links_tell_what_clients_do,
]
