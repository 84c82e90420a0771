#!/usr/bin/env python3
"""Backups beside the Python SDK: what was acknowledged before a backup began is in the restored broker exactly once, with its number
and its bytes; a backup that is killed leaves the one before it; `log check` finds a changed byte and names its message."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import checks  # noqa: E402
from broker import WORK, Broker, binary  # noqa: E402

DIRECTORY = Path(os.environ.get("JITNEY_WORK", WORK / "backup")) / "own"
# Not every resolver knows that names below `localhost` mean this machine.
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **options: resolve("localhost" if str(host).endswith(".localhost") else host, *rest, **options)
# How long something may take to be done.
DEADLINE = 120.0
# Backups under load.
ROUNDS = 4
CONFIG = {
    "UserConfig": {
        "Namespaces": [
            {"Name": "shop", "Queues": [{"Name": "orders"}, {"Name": "worked"}, {"Name": "bulk"}]},
            {"Name": "other", "Queues": [{"Name": "orders"}]},
        ]
    }
}


def jitney(*words: object, code: int | None = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([str(binary()), *map(str, words)], capture_output=True, text=True, timeout=DEADLINE)
    assert code is None or done.returncode == code, (words, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return done


def url(broker: Broker) -> list[str]:
    return ["--url", f"http://127.0.0.1:{broker.http_port}", "--data-dir", broker.state["data_dir"]]


def back_up(broker: Broker, target: Path) -> dict:
    return json.loads(jitney("backup", target, "--output", "json", *url(broker)).stdout)


def ask(broker: Broker, method: str, path: str, body: object) -> tuple[int, dict]:
    data = json.dumps(body).encode()
    address = f"http://127.0.0.1:{broker.http_port}/api/v1/{path}"
    headers = {"Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data, headers, method=method), timeout=DEADLINE) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def checked(directory: Path, code: int = 0) -> dict:
    return json.loads(jitney("log", "check", directory, "--output", "json", code=code).stdout)


def connect(broker: Broker, host: str = "localhost") -> ServiceBusClient:
    return ServiceBusClient.from_connection_string(broker.connection_string.replace("localhost", host, 1))


def body_of(name: str) -> str:
    """Every message has bytes of its own, of which half would be noticed."""
    return name + " " + hashlib.sha256(name.encode()).hexdigest() * (1 + len(name) * 7 % 50)


def peek(broker: Broker, queue: str, host: str = "localhost") -> dict[str, int]:
    """The messages of a queue, by their ids; their bodies are whole, and none is there twice."""
    found: dict[str, int] = {}
    with connect(broker, host) as client, client.get_queue_receiver(queue) as receiver:
        page = receiver.peek_messages(250, sequence_number=1)
        while page:
            for message in page:
                assert str(message) == body_of(message.message_id), f"{queue}: {message.message_id} has another body"
                assert message.message_id not in found, f"{queue}: {message.message_id} is there twice"
                found[message.message_id] = message.sequence_number
            page = receiver.peek_messages(250, sequence_number=page[-1].sequence_number + 1)
    return found


def restored(target: Path, directory: Path, config: Path, arguments: list[str]) -> Broker:
    """A broker, which does not run, with the data of a backup that is sound."""
    broker = Broker.create(directory, config, arguments)
    data = Path(broker.state["data_dir"])
    jitney("restore", target, data)
    report = checked(data)
    assert report["sound"] and all("torn_end" not in shard for shard in report["shards"]), report
    assert data.stat().st_mode & 0o777 == 0o700, oct(data.stat().st_mode)
    for file in data.rglob("*"):
        assert file.is_dir() or file.stat().st_mode & 0o077 == 0, file
    return broker


class Load:
    """Sends to `orders`; sends to `worked` and receives what is there; and sends to another namespace, which is in another shard."""

    def __init__(self, broker: Broker):
        self.broker, self.stopping, self.faults = broker, threading.Event(), []
        self.sent: dict[str, list[str]] = {"orders": [], "worked": [], "other": []}
        self.completed: set[str] = set()
        work = [lambda: self.send("orders"), lambda: self.send("worked"), self.complete, lambda: self.send("orders", "other")]
        self.threads = [threading.Thread(target=self.guarded, args=(each,)) for each in work]

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def guarded(self, work) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001
            self.faults.append(repr(error))

    def send(self, queue: str, namespace: str = "") -> None:
        name, host = namespace or queue, f"{namespace}.localhost" if namespace else "localhost"
        with connect(self.broker, host) as client, client.get_queue_sender(queue) as sender:
            number = 0
            while not self.stopping.is_set():
                ids = [f"{name}-{number + nth}" for nth in range(1 + number % 7)]
                sender.send_messages([ServiceBusMessage(body_of(each), message_id=each) for each in ids])
                self.sent[name] += ids
                number += len(ids)

    def complete(self) -> None:
        mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
        with connect(self.broker) as client, client.get_queue_receiver("worked", receive_mode=mode) as receiver:
            while not self.stopping.is_set():
                for message in receiver.receive_messages(20, max_wait_time=1):
                    self.completed.add(message.message_id)
                time.sleep(0.02)


def others(broker: Broker) -> dict[str, int]:
    """The messages of the other namespace."""
    return peek(broker, "orders", "other.localhost")


def backups_under_load_have_all_that_was_acknowledged(world: World) -> None:
    target, rounds = DIRECTORY / "loaded", []
    with Load(world.broker) as load:
        for number in range(ROUNDS):
            time.sleep(1.5)
            before = {queue: list(ids) for queue, ids in load.sent.items()}
            gone = set(load.completed)
            made = back_up(world.broker, target)
            after = {queue: len(ids) for queue, ids in load.sent.items()}
            rounds.append((before, gone, after, made))
            # Each is kept as it is now: the next one replaces it.
            shutil.copytree(target, DIRECTORY / f"loaded-{number}")
        assert not load.faults, load.faults
    assert len(rounds[0][3]["shards"]) == 2, rounds[0][3]
    assert all(len(before["orders"]) < after["orders"] for before, _, after, _ in rounds), "there was no load during the backups"
    numbers, of_other = peek(world.broker, "orders"), others(world.broker)
    for at, (before, _, _, made) in enumerate(rounds):
        broker = restored(DIRECTORY / f"loaded-{at}", DIRECTORY / f"restored-{at}", world.config, ["--shards", "2"])
        broker.start()
        found, other, worked = peek(broker, "orders"), others(broker), peek(broker, "worked")
        broker.stop()
        assert set(before["orders"]) <= set(found), sorted(set(before["orders"]) - set(found))[:20]
        assert set(before["other"]) <= set(other), sorted(set(before["other"]) - set(other))[:20]
        assert all(numbers[each] == number for each, number in found.items())
        assert all(of_other[each] == number for each, number in other.items())
        assert sorted(found.values()) == list(range(1, len(found) + 1)), "numbers have gaps"
        lost = set(before["worked"]) - set(worked) - load.completed
        assert not lost, sorted(lost)[:20]
        print(f"   {made['bytes']} bytes, {len(before['orders'])} acknowledged, {len(found)} and {len(other)} restored", flush=True)


def only_what_is_new_is_copied(world: World) -> None:
    target = DIRECTORY / "steps"
    fill(world.broker, 64)
    first = back_up(world.broker, target)
    assert first["copied_files"] == first["files"], first
    # The segment that a shard writes to is copied whole, and the entry in the audit log that a backup makes is enough to change one.
    # After the load a checkpoint or the cleaning of segments may have written more.
    shards, deadline, again = len(first["shards"]), time.monotonic() + DEADLINE, first
    assert 4 * shards <= first["files"], first
    while shards < again["copied_files"]:
        assert time.monotonic() < deadline, f"more than the segments written to are copied again: {again}, and at first {first}"
        again = back_up(world.broker, target)
    stored = sum(file.stat().st_size for file in (target / "files").iterdir())
    assert stored == again["bytes"], (stored, again)


def fill(broker: Broker, mebibytes: int) -> None:
    """Fills segments with messages of 200 KiB."""
    with connect(broker) as client, client.get_queue_sender("bulk") as sender:
        for number in range(mebibytes * 5):
            sender.send_messages(ServiceBusMessage(os.urandom(200 * 1024), message_id=f"bulk-{number}"))


def size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def a_backup_that_is_killed_leaves_the_one_before_it(world: World) -> None:
    target = DIRECTORY / "killed"
    before = peek(world.broker, "orders")
    back_up(world.broker, target)
    with connect(world.broker) as client, client.get_queue_sender("orders") as sender:
        sender.send_messages([ServiceBusMessage(body_of(f"late-{n}"), message_id=f"late-{n}") for n in range(20)])
    # New contents, so that there is much to copy.
    fill(world.broker, 80)
    running = subprocess.Popen([str(binary()), "backup", str(target), *url(world.broker)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    copying, deadline = target / "files" / "copying.tmp", time.monotonic() + DEADLINE
    while size_of(copying) < 1 << 20:
        assert running.poll() is None, "the backup ended before it could be killed"
        assert time.monotonic() < deadline, "the backup copies nothing"
    world.broker.kill()
    assert running.wait(timeout=30) == 3
    assert copying.exists()
    old = restored(target, DIRECTORY / "of-killed", world.config, ["--shards", "2"])
    old.start()
    assert peek(old, "orders") == before
    old.stop()
    world.broker.start()
    back_up(world.broker, target)
    assert not copying.exists()
    new = restored(target, DIRECTORY / "of-next", world.config, ["--shards", "2"])
    new.start()
    found = peek(new, "orders")
    new.stop()
    assert found == peek(world.broker, "orders") and set(found) == set(before) | {f"late-{n}" for n in range(20)}


def what_cannot_be_a_backup_is_refused(world: World) -> None:
    data = world.broker.state["data_dir"]
    for directory, word in (("relative", "absolute"), (f"{data}/inside", "data directory"), (str(HERE), "not of a backup")):
        status, answer = ask(world.broker, "POST", "server/backups", {"directory": directory})
        assert status == 400 and word in answer["detail"], (status, answer)
    answers: list[int] = []

    def one(name: str) -> None:
        answers.append(ask(world.broker, "POST", "server/backups", {"directory": str(DIRECTORY / name)})[0])

    threads = [threading.Thread(target=one, args=(f"twice-{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 409], answers
    done = jitney("restore", DIRECTORY / "killed", data, code=1)
    assert "not empty" in done.stderr, done.stderr
    done = jitney("restore", DIRECTORY, DIRECTORY / "nothing", code=1)
    assert "no manifest.json" in done.stderr, done.stderr


def keys_are_in_the_backup_and_only_the_operator_makes_one(world: World) -> None:
    broker = Broker.create(DIRECTORY / "keyed", world.config, ["--auth", "sas"])
    broker.start()
    try:
        target = DIRECTORY / "of-keyed"
        status, _ = ask(broker, "POST", "server/backups", {"directory": str(target)})
        assert status == 401 and not target.exists(), status
        back_up(broker, target)
        copy = restored(target, DIRECTORY / "rekeyed", world.config, ["--auth", "sas"])
        for name in ("root.key", "operator.key", "shards.json"):
            of = [Path(each.state["data_dir"], name).read_bytes() for each in (broker, copy)]
            assert of[0] == of[1], name
        copy.start()
        assert copy.stop() == 0
    finally:
        broker.stop()
    # A young log is sound: most of its only segment was made in advance.
    for each in (broker, copy):
        assert checked(Path(each.state["data_dir"]))["sound"], each.state["data_dir"]


def a_changed_byte_is_found_and_named(world: World) -> None:
    data = Path(world.broker.state["data_dir"])
    done = jitney("log", "check", data, code=2)
    assert "a broker runs" in done.stderr, done.stderr
    broker = restored(DIRECTORY / "killed", DIRECTORY / "flipped", world.config, ["--shards", "2"])
    data = Path(broker.state["data_dir"])
    for name in ("orders-3", "late-5"):
        wanted = body_of(name).encode()
        places = [(file, file.read_bytes().find(wanted)) for file in sorted(data.glob("*.seg"))]
        file, offset = next((file, offset) for file, offset in places if offset >= 0)
        with file.open("r+b") as segment:
            segment.seek(offset + 5)
            segment.write(bytes([wanted[5] ^ 1]))
        before = state_of(data)
        report = checked(data, code=1)
        assert state_of(data) == before, "the check has changed the directory"
        found = [each for shard in report["shards"] for each in shard["damage"] if each.get("entity") == "orders"]
        places = [each for each in found if each["file"] == file.name and offset - 64 <= each["offset"] <= offset + 5]
        assert len(places) == 1 and places[0]["sequence_number"], (name, offset, report)
    text = jitney("log", "check", data, code=1).stdout
    assert "of orders" in text and "MessageDamaged" in text, text
    checkpoint = next(iter(data.glob("*.checkpoint")), None)
    if checkpoint:
        content = bytearray(checkpoint.read_bytes())
        content[len(content) // 2] ^= 1
        checkpoint.write_bytes(content)
        report = checked(data, code=1)
        assert any(each["file"] == checkpoint.name for shard in report["shards"] for each in shard["damage"]), report


def state_of(directory: Path) -> dict[str, object]:
    files = sorted(each for each in directory.rglob("*") if each.is_file())
    return {str(each): (each.stat().st_mtime_ns, hashlib.sha256(each.read_bytes()).hexdigest()) for each in files}


TESTS = [
    backups_under_load_have_all_that_was_acknowledged, only_what_is_new_is_copied, a_backup_that_is_killed_leaves_the_one_before_it,
    what_cannot_be_a_backup_is_refused, keys_are_in_the_backup_and_only_the_operator_makes_one, a_changed_byte_is_found_and_named,
]


class World:
    """A broker with two shards."""

    def __init__(self, directory: Path):
        directory.mkdir(parents=True, exist_ok=True)
        self.config = directory / "Config.json"
        self.config.write_text(json.dumps(CONFIG))
        self.broker = Broker.create(directory / "loading", self.config, ["--shards", "2"])


def main(words: list[str]) -> int:
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    world = World(DIRECTORY)
    return checks.run(TESTS, world, [world.broker], words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
