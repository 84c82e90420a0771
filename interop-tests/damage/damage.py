"""Every file of a data directory cut, zeroed, flipped and removed, and the broker started on what is left.

Either it refuses to start, and says which file or segment is damaged and what can be done; or it starts, and every message that was
acknowledged is there, or is a dead letter with the reason MessageDamaged. What nobody can tell (docs/log-format.md, "What cannot be
told") is the end of the newest segment: zeros there look like a log that was never longer.

Two directories are damaged: one as a crash leaves it, and one with a checkpoint and a key that the broker made (root.key).

And a broker whose disk is full: it waits for space, and ends in order when it is told to. And the history of the entities, of which nothing
else depends: it outlives the broker, and is ignored if it is damaged.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import traceback
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusReceiveMode, ServiceBusSubQueue

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from broker import WORK, Broker, BrokerError  # noqa: E402

QUEUE = "q"
COUNT = 24
DAMAGED = "MessageDamaged"
ROOT_KEY = "root.key"
# Brokers that run at the same time: each of them waits for its disk and its client most of the time.
WORKERS = 6
CONFIG = {"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Queues": [{"Name": QUEUE, "Properties": {}}], "Topics": []}]}}
REMEDIES = ("--accept-data-loss", "backup", "delete", "remove", "replace")


def body(number: int) -> str:
    return f"<message {number}>" + "x" * 1000


class Place:
    """Where one broker has its data, and the messages that it acknowledged."""

    def __init__(self, directory: Path, has_key: bool = False):
        self.directory = directory
        self.data = directory / "data"
        self.has_key = has_key

    def broker(self, *arguments: str) -> Broker:
        """A broker on this data, which verifies keys if there is one."""
        if self.has_key:
            arguments = ("--auth", "sas", *arguments)
        config = self.directory / "config.json"
        self.directory.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps(CONFIG))
        broker = Broker.create(self.directory, config=config, arguments=list(arguments))
        broker.log.unlink(missing_ok=True)
        return broker

    def copy_of(self, whole: "Place") -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.has_key = whole.has_key
        subprocess.run(["cp", "-r", "--sparse=always", str(whole.data), str(self.data)], check=True)

    def client(self, broker: Broker) -> ServiceBusClient:
        """A client with the key that the broker has."""
        text = broker.connection_string
        if self.has_key:
            text = text.replace("SAS_KEY_VALUE", (self.data / ROOT_KEY).read_text().strip())
        return ServiceBusClient.from_connection_string(text)

    def segments(self) -> list[Path]:
        return sorted(path for path in self.data.glob("*.seg") if not path.name.startswith("spare-"))


def send(place: Place, broker: Broker, numbers: Iterable[int]) -> None:
    """Sends messages, each in a group of its own."""
    with place.client(broker) as client, client.get_queue_sender(QUEUE) as sender:
        for number in numbers:
            sender.send_messages(ServiceBusMessage(body(number)))


def fill(place: Place) -> None:
    """Sends the messages, and ends the broker as a crash does."""
    broker = place.broker()
    broker.start()
    send(place, broker, range(COUNT))
    broker.kill()


def fill_with_checkpoint(place: Place) -> None:
    """The same, with a checkpoint in the middle: losses that are accepted make one due."""
    fill(place)
    lose_frame(place, 5)
    broker = place.broker("--accept-data-loss")
    broker.start()
    wait_for_checkpoint(place)
    send(place, broker, [5])
    broker.kill()


def lose_frame(place: Place, number: int) -> Path:
    """Damages the record of a message; returns its segment."""
    [segment] = place.segments()
    flip(segment, frame_of(segment, body(number)))
    return segment


def wait_for_checkpoint(place: Place) -> None:
    deadline = time.monotonic() + 20
    while not list(place.data.glob("*.checkpoint")):
        assert time.monotonic() < deadline, "no checkpoint was written"
        time.sleep(0.01)


def drain(place: Place, broker: Broker, peeks_first: bool = True, queue: str = QUEUE) -> tuple[set[int], int]:
    """Takes all messages out; returns their numbers, and how many damaged ones are dead letters."""
    found: set[int] = set()
    damaged = 0

    def take(messages: list[ServiceBusReceivedMessage]) -> None:
        nonlocal damaged
        for message in messages:
            if message.dead_letter_reason == DAMAGED:
                assert str(message) == "", "a damaged message has a body"
                damaged += 1
            else:
                text = str(message)
                number = int(text.split(">")[0].split()[1])
                assert text == body(number), f"message {number} has another body"
                assert number not in found, f"message {number} is there twice"
                found.add(number)

    with place.client(broker) as client:
        for sub_queue in (None, ServiceBusSubQueue.DEAD_LETTER):
            mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
            with client.get_queue_receiver(queue, sub_queue=sub_queue, receive_mode=mode) as receiver:
                if sub_queue is None and not peeks_first:
                    take(receiver.receive_messages(max_message_count=COUNT, max_wait_time=1))
                while waiting := receiver.peek_messages(max_message_count=COUNT):
                    # A damaged message is shown once, and is in the dead-letter queue then.
                    count = sum(sub_queue is not None or message.dead_letter_reason != DAMAGED for message in waiting)
                    if count:
                        take(receiver.receive_messages(max_message_count=count, max_wait_time=5))
    return found, damaged


def started(broker: Broker) -> bool:
    """Starts the broker; whether it serves. A refusal must say where and what can be done."""
    try:
        broker.start()
        return True
    except BrokerError:
        return False


def check_refusal(broker: Broker, name: str) -> None:
    log = broker.log.read_text(errors="replace")
    assert broker.state["exit_code"] == 1, f"exit code {broker.state['exit_code']}\n{broker.log_tail()}"
    assert "panicked" not in log, log[-2000:]
    stem = name.removesuffix(".seg").removesuffix(".checkpoint")
    # Without the checkpoint, the segment that it stood for is what is damaged.
    assert stem in log or "segment" in log and name != ROOT_KEY, f"the refusal names no place:\n{broker.log_tail(3)}"
    assert any(remedy in log for remedy in REMEDIES), f"the refusal names no remedy:\n{broker.log_tail(3)}"


# --- what is done to a file -------------------------------------------------------------------------------------------------------


def used(path: Path) -> int:
    """The bytes of a file before the zeros at its end."""
    data = path.read_bytes()
    return len(data.rstrip(b"\0")) or len(data)


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << at % 8]))


def cut(path: Path, at: int) -> None:
    os.truncate(path, at)


def zero(path: Path, at: int) -> None:
    length = path.stat().st_size
    os.truncate(path, at)
    os.truncate(path, length)


def remove(path: Path, _: int) -> None:
    path.unlink()


def check(place: Place, name: Path, change: Callable[[Path, int], None], at: int) -> str:
    """Does one thing to one file; returns what came of it."""
    path = place.data / name
    is_newest = path in place.segments()[-1:]
    before = path.read_bytes()
    change(path, at)
    broker = place.broker()
    if not started(broker):
        check_refusal(broker, path.name)
        return "refused"
    try:
        found, damaged = drain(place, broker)
        lost = COUNT - len(found) - damaged
        log = broker.log.read_text(errors="replace")
        if damaged:
            assert "the bytes of a message are damaged" in log, "the damage is not in the log"
        if lost:
            assert is_newest and found == set(range(len(found))), f"{lost} messages lost, not at the end"
            if change is flip:
                assert "the end of the log was cut off" in log, "what is cut off is not in the log"
        if path.name == ROOT_KEY and path.read_bytes() != before:
            assert change is flip or "a new key, shown once" in log, "the new key is not in the log"
            return "another key"
        return "contained" if damaged else "lost the end" if lost else "harmless"
    finally:
        broker.kill()


def frame_of(segment: Path, text: str) -> int:
    """Where the frame begins that has a text: docs/log-format.md, "Frame"."""
    data = segment.read_bytes()
    at = data.index(text.encode()) // 8 * 8
    number = int(segment.stem, 16).to_bytes(8, "little")
    while data[at + 8 : at + 16] != number:
        at -= 8
    return at


# --- tests ------------------------------------------------------------------------------------------------------------------------


class Places:
    """The two directories that are copied, and where tests run at the same time."""

    def __init__(self, work: Path):
        self.crashed = Place(work / "crashed")
        self.checkpointed = Place(work / "checkpointed", has_key=True)
        self.free: SimpleQueue[Place] = SimpleQueue()
        for number in range(WORKERS):
            self.free.put(Place(work / f"damaged-{number}"))
        self.pool = ThreadPoolExecutor(WORKERS)

    def each(self, whole: Place, test: Callable[..., str | None], cases: Iterable[tuple]) -> list[str | None]:
        """Runs a test on a copy for each case; returns what they return."""
        def run(case: tuple) -> str | None:
            place = self.free.get()
            try:
                place.copy_of(whole)
                return test(place, *case)
            except BaseException as error:
                error.add_note(f"case {case}")
                raise
            finally:
                # A test that failed leaves its broker behind.
                state = place.directory / "broker.json"
                if state.is_file() and Broker(state).running():
                    Broker(state).kill()
                self.free.put(place)

        return list(self.pool.map(run, cases))


def one_flipped_bit_in_a_body_costs_that_message_alone(places: Places, dice: random.Random) -> None:
    def test(place: Place, number: int, bit: int) -> None:
        [segment] = place.segments()
        flip(segment, segment.read_bytes().index(body(number).encode()) + bit)
        broker = place.broker()
        broker.start()
        found, damaged = drain(place, broker)
        assert found == set(range(COUNT)) - {number} and damaged == 1, (number, len(found), damaged)
        assert broker.stop() == 0
        broker.start()
        assert drain(place, broker) == (set(), 0)
        broker.kill()

    places.each(places.crashed, test, [(number, dice.randrange(900)) for number in (0, COUNT // 2, COUNT - 2)])


def a_bit_that_flips_while_the_broker_runs_costs_that_message_alone(places: Places, _: random.Random) -> None:
    def test(place: Place, peeks_first: bool) -> None:
        broker = place.broker()
        broker.start()
        [segment] = place.segments()
        flip(segment, segment.read_bytes().index(body(3).encode()) + 100)
        found, damaged = drain(place, broker, peeks_first)
        assert damaged == 1 and found == set(range(COUNT)) - {3}, (len(found), damaged)
        assert broker.running(), "the broker has ended"
        broker.kill()

    places.each(places.crashed, test, [(True,), (False,)])


def a_shorter_file_is_refused_and_the_flag_goes_on_with_what_is_left(places: Places, _: random.Random) -> None:
    def test(place: Place) -> None:
        [segment] = place.segments()
        cut(segment, segment.read_bytes().index(body(10).encode()))
        broker = place.broker()
        assert not started(broker)
        check_refusal(broker, segment.name)
        broker = place.broker("--accept-data-loss")
        broker.start()
        found, damaged = drain(place, broker)
        assert (found, damaged) == (set(range(10)), 0), (found, damaged)
        assert "the log is used without this damaged part" in broker.log.read_text()
        broker.kill()

    places.each(places.crashed, test, [()])


def a_damaged_record_is_refused_and_the_flag_goes_on_behind_it(places: Places, _: random.Random) -> None:
    def test(place: Place) -> None:
        segment = lose_frame(place, 5)
        broker = place.broker()
        assert not started(broker)
        check_refusal(broker, segment.name)
        broker = place.broker("--accept-data-loss")
        broker.start()
        wait_for_checkpoint(place)
        broker.kill()
        # The checkpoint stands for what is left: the flag is for one start.
        broker = place.broker()
        broker.start()
        found, damaged = drain(place, broker)
        assert (found, damaged) == (set(range(COUNT)) - {5}, 0), (found, damaged)
        broker.kill()

    places.each(places.crashed, test, [()])


def messages_of_a_queue_whose_record_is_lost_are_in_a_queue_of_their_own(places: Places, _: random.Random) -> None:
    def test(place: Place) -> None:
        [segment] = place.segments()
        # The first frame lies behind the segment's header, and makes the queue.
        flip(segment, 64)
        broker = place.broker("--accept-data-loss")
        broker.start()
        assert "its messages are in this queue" in broker.log.read_text()
        found, damaged = drain(place, broker, queue="recovered-0")
        assert (found, damaged) == (set(range(COUNT)), 0), (found, damaged)
        assert drain(place, broker) == (set(), 0)
        broker.kill()

    places.each(places.crashed, test, [()])


def every_file_at_dozens_of_places(places: Places, dice: random.Random) -> None:
    """All files of the one directory; of the other those that the first does not have."""
    def files(whole: Place) -> list[Path]:
        return sorted(path.relative_to(whole.data) for path in whole.data.rglob("*") if path.is_file())

    crashed = files(places.crashed)
    rest = [name for name in files(places.checkpointed) if name not in crashed]
    assert {name.suffix for name in rest} == {".checkpoint", ".key"}, rest
    outcomes: dict[str, Counter] = {}
    for whole, names in ((places.crashed, crashed), (places.checkpointed, rest)):
        cases = [case for name in names for case in changes(whole, name, dice)]
        for (name, change, _), outcome in zip(cases, places.each(whole, check, cases), strict=True):
            print(f"  {name}: {change.__name__}: {outcome}", flush=True)
            kind = name.name if name.name == ROOT_KEY else name.suffix
            outcomes.setdefault(kind, Counter())[outcome] += 1
    assert outcomes[".seg"]["refused"] and outcomes[".seg"]["contained"], outcomes
    assert set(outcomes[".checkpoint"]) == {"refused"}, outcomes
    assert set(outcomes[ROOT_KEY]) == {"refused", "another key"}, outcomes


def history_of(broker: Broker) -> dict:
    """The last hour of the queue."""
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.http_port}/api/v1/entities/{QUEUE}/history", timeout=10) as answer:
        return json.load(answer)


def incoming(history: dict) -> int:
    return sum(point["incoming"] for point in history["points"])


def wait_for(condition: Callable[[], bool], complaint: str, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.05)


def a_history_outlives_its_broker_and_is_no_obstacle_when_it_is_damaged(places: Places, _: random.Random) -> None:
    def test(place: Place) -> None:
        file = place.data / "history.bin"
        broker = place.broker()
        broker.start()
        wait_for(file.exists, "no history is written")
        send(place, broker, range(COUNT, COUNT + 5))
        assert broker.stop() == 0
        # The stop has written what came after the first look.
        written = file.read_bytes()
        broker.start()
        found = history_of(broker)
        assert incoming(found) == 5 and found["points"][-1]["active"] == COUNT + 5, found
        wait_for(lambda: file.read_bytes() != written, "the history is not written while the broker runs")
        known = history_of(broker)["points"]
        broker.kill()
        time.sleep(0.1)
        broker.start()
        found = history_of(broker)["points"]
        # Points of the last seconds may have come after the last write.
        assert sum(point["incoming"] for point in found) == 5 and set(point["at"] for point in found) <= set(point["at"] for point in known), (found, known)
        # The time in which no broker ran is in no interval.
        wait_for(lambda: len(history_of(broker)["points"]) > len(found), "the history does not go on")
        broker.kill()
        for change in (flip, cut, zero):
            whole = file.read_bytes()
            change(file, len(whole) // 2)
            broker.log.unlink(missing_ok=True)
            broker.start()
            lines = [line for line in broker.log.read_text().splitlines() if "history" in line]
            assert len(lines) == 1 and "history.bin" in lines[0] and "begins anew" in lines[0], broker.log.read_text()
            assert incoming(history_of(broker)) == 0
            broker.kill()
            file.write_bytes(whole)
        # One of a later release.
        newer = bytearray(file.read_bytes())
        newer[8] = 2
        file.write_bytes(newer)
        broker.log.unlink(missing_ok=True)
        broker.start()
        wait_for_line(broker, "its version is 2, and this release knows 1")
        found, damaged = drain(place, broker)
        assert found == set(range(COUNT + 5)) and damaged == 0, (found, damaged)
        assert broker.stop() == 0
        assert file.read_bytes()[8] == 1

    places.each(places.crashed, test, [()])


def changes(whole: Place, name: Path, dice: random.Random) -> Iterable[tuple]:
    """What is done to a file, each time at another place."""
    path = whole.data / name
    is_log = path.suffix == ".seg" and not path.name.startswith("spare-")
    flips, others = (6, 3) if is_log else (3, 1) if whole.has_key else (1, 1)
    for change, count in [(flip, flips), (cut, others), (zero, others), (remove, 1)]:
        for _ in range(count):
            if change is remove or path.stat().st_size:
                yield name, change, dice.randrange(used(path)) if path.stat().st_size else 0


def wait_for_line(broker: Broker, text: str) -> None:
    deadline = time.monotonic() + 20
    while text not in broker.log.read_text(errors="replace"):
        assert broker.running(), f"it has ended\n{broker.log_tail()}"
        assert time.monotonic() < deadline, f"the log does not say {text!r}\n{broker.log_tail()}"
        time.sleep(0.01)


def a_broker_that_waits_for_space_ends_when_it_is_told_to(places: Places, _: random.Random) -> None:
    def settle(place: Place, broker: Broker) -> None:
        """Each dead letter is a record of some kilobytes; the first that finds no space is never answered."""
        with place.client(broker) as client, client.get_queue_receiver(QUEUE) as receiver:
            for message in receiver.receive_messages(max_message_count=COUNT, max_wait_time=5):
                receiver.dead_letter_message(message, reason="full", error_description="x" * 4000)

    def test(place: Place) -> None:
        broker = place.broker()
        broker.put_on_a_small_disk()
        # It is not healthy: no messages are taken.
        broker.launch()
        wait_for_line(broker, "Successfully Up")
        with open(f"/proc/{broker.state['pid']}/root{place.data}/filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError as error:
                assert error.errno == errno.ENOSPC, error
        # A thread that is not waited for: the broker's end is what ends it.
        threading.Thread(target=settle, args=(place, broker), daemon=True).start()
        wait_for_line(broker, "writes wait until there is space")
        code = broker.stop()
        assert code == 0, f"exit code {code}\n{broker.log_tail()}"
        assert "the groups that waited for space are dropped" in broker.log.read_text(), broker.log_tail()

    places.each(places.crashed, test, [()])


TESTS = [
    one_flipped_bit_in_a_body_costs_that_message_alone,
    a_bit_that_flips_while_the_broker_runs_costs_that_message_alone,
    a_shorter_file_is_refused_and_the_flag_goes_on_with_what_is_left,
    a_damaged_record_is_refused_and_the_flag_goes_on_behind_it,
    messages_of_a_queue_whose_record_is_lost_are_in_a_queue_of_their_own,
    every_file_at_dozens_of_places,
    a_broker_that_waits_for_space_ends_when_it_is_told_to,
    a_history_outlives_its_broker_and_is_no_obstacle_when_it_is_damaged,
]


def main(arguments: list[str]) -> int:
    seed = int(arguments[0]) if arguments else 14
    print(f"seed {seed}")
    dice = random.Random(seed)
    work = Path(os.environ.get("JITNEY_WORK", WORK / "damage")) / "places"
    shutil.rmtree(work, ignore_errors=True)
    places = Places(work)
    fill(places.crashed)
    fill_with_checkpoint(places.checkpointed)
    passed = failed = 0
    for test in TESTS:
        began = time.monotonic()
        try:
            test(places, dice)
            passed += 1
            print(f"ok {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED {test.__name__}\n{traceback.format_exc()}", flush=True)
    places.pool.shutdown()
    shutil.rmtree(work, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
