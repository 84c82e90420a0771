"""Every file of a data directory cut, zeroed, flipped and removed, and the broker started on what is left.

Either it refuses to start, and says which file or segment is damaged and what can be done; or it starts, and every message that was
acknowledged is there, or is a dead letter with the reason MessageDamaged. What nobody can tell (docs/log-format.md, "What cannot be
told") is the end of the newest segment: zeros there look like a log that was never longer.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from broker import WORK, Broker, BrokerError  # noqa: E402

QUEUE = "q"
COUNT = 24
DAMAGED = "MessageDamaged"
CONFIG = {"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Queues": [{"Name": QUEUE, "Properties": {}}], "Topics": []}]}}
REMEDIES = ("--accept-data-loss", "backup", "delete", "move", "replace")


def body(number: int) -> str:
    return f"<message {number}>" + "x" * 1000


class Place:
    """Where one broker has its data, and the messages that it acknowledged."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.data = directory / "data"

    def broker(self, *arguments: str) -> Broker:
        config = self.directory / "config.json"
        self.directory.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps(CONFIG))
        broker = Broker.create(self.directory, config=config, arguments=list(arguments))
        broker.log.unlink(missing_ok=True)
        return broker

    def copy_of(self, whole: Path) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        self.directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", "--sparse=always", str(whole), str(self.data)], check=True)

    def segments(self) -> list[Path]:
        return sorted(path for path in self.data.glob("*.seg") if not path.name.startswith("spare-"))


def fill(place: Place) -> None:
    """Sends the messages, each in a group of its own, and ends the broker as a crash does."""
    broker = place.broker()
    broker.start()
    with ServiceBusClient.from_connection_string(broker.connection_string) as client:
        with client.get_queue_sender(QUEUE) as sender:
            for number in range(COUNT):
                sender.send_messages(ServiceBusMessage(body(number)))
    broker.kill()


def drain(broker: Broker) -> tuple[set[int], int]:
    """Peeks, then receives all; returns the numbers of the messages, and how many damaged ones are dead letters."""
    found: set[int] = set()
    damaged = 0
    with ServiceBusClient.from_connection_string(broker.connection_string) as client:
        with client.get_queue_receiver(QUEUE) as receiver:
            receiver.peek_messages(max_message_count=COUNT)
        for sub_queue in (None, ServiceBusSubQueue.DEAD_LETTER):
            if len(found) == COUNT:
                break
            mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
            with client.get_queue_receiver(QUEUE, sub_queue=sub_queue, receive_mode=mode) as receiver:
                while len(found) < COUNT and (messages := receiver.receive_messages(max_message_count=COUNT, max_wait_time=1)):
                    for message in messages:
                        if message.dead_letter_reason == DAMAGED:
                            assert str(message) == "", "a damaged message has a body"
                            damaged += 1
                        else:
                            text = str(message)
                            number = int(text.split(">")[0].split()[1])
                            assert text == body(number), f"message {number} has another body"
                            found.add(number)
    return found, damaged


def started(broker: Broker) -> bool:
    """Starts the broker; whether it serves. A refusal must say where and what can be done."""
    try:
        broker.start()
        return True
    except BrokerError:
        return False


def check_refusal(place: Place, broker: Broker, name: str) -> None:
    log = broker.log.read_text(errors="replace")
    assert broker.state["exit_code"] == 1, f"exit code {broker.state['exit_code']}\n{broker.log_tail()}"
    assert "panicked" not in log, log[-2000:]
    stem = name.removesuffix(".seg").removesuffix(".checkpoint")
    assert stem in log or "segment" in log, f"the refusal names no place:\n{broker.log_tail(3)}"
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


def check(place: Place, path: Path, change, at: int) -> str:
    """Does one thing to one file; returns what came of it."""
    is_newest = path.name.endswith(".seg") and path in place.segments()[-1:]
    change(path, at)
    broker = place.broker()
    if not started(broker):
        check_refusal(place, broker, path.name)
        return "refused"
    try:
        found, damaged = drain(broker)
        lost = COUNT - len(found) - damaged
        log = broker.log.read_text(errors="replace")
        if damaged:
            assert "the bytes of a message are not what was written" in log, "the damage is not in the log"
        if lost:
            assert is_newest and found == set(range(len(found))), f"{lost} messages lost, not at the end"
            if change is flip:
                assert "the end of the log was cut off" in log, "what is cut off is not in the log"
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


def one_flipped_bit_in_a_body_costs_that_message_alone(place: Place, whole: Path, dice: random.Random) -> None:
    for number in (0, COUNT // 2, COUNT - 2):
        place.copy_of(whole)
        [segment] = place.segments()
        at = segment.read_bytes().index(body(number).encode())
        flip(segment, at + dice.randrange(900))
        broker = place.broker()
        broker.start()
        found, damaged = drain(broker)
        assert found == set(range(COUNT)) - {number} and damaged == 1, (number, len(found), damaged)
        assert broker.stop() == 0
        broker.start()
        assert drain(broker) == (set(), 0)
        broker.kill()


def a_bit_that_flips_while_the_broker_runs_costs_that_message_alone(place: Place, whole: Path, _: random.Random) -> None:
    place.copy_of(whole)
    broker = place.broker()
    broker.start()
    [segment] = place.segments()
    flip(segment, segment.read_bytes().index(body(3).encode()) + 100)
    found, damaged = drain(broker)
    assert damaged == 1 and found == set(range(COUNT)) - {3}, (len(found), damaged)
    assert broker.running(), "the broker has ended"
    broker.kill()


def a_shorter_file_is_refused_and_the_flag_goes_on_with_what_is_left(place: Place, whole: Path, _: random.Random) -> None:
    place.copy_of(whole)
    [segment] = place.segments()
    cut(segment, segment.read_bytes().index(body(10).encode()))
    broker = place.broker()
    assert not started(broker)
    check_refusal(place, broker, segment.name)
    broker = place.broker("--accept-data-loss")
    broker.start()
    found, damaged = drain(broker)
    assert (found, damaged) == (set(range(10)), 0), (found, damaged)
    assert "the log goes on without what is damaged here" in broker.log.read_text()
    broker.kill()


def a_damaged_record_is_refused_and_the_flag_goes_on_behind_it(place: Place, whole: Path, _: random.Random) -> None:
    place.copy_of(whole)
    [segment] = place.segments()
    flip(segment, frame_of(segment, body(5)))
    broker = place.broker()
    assert not started(broker)
    check_refusal(place, broker, segment.name)
    broker = place.broker("--accept-data-loss")
    broker.start()
    deadline = time.monotonic() + 20
    while not list(place.data.glob("*.checkpoint")):
        assert time.monotonic() < deadline, "no checkpoint was written"
        time.sleep(0.05)
    broker.kill()
    # The checkpoint stands for what is left: the flag is for one start.
    broker = place.broker()
    broker.start()
    found, damaged = drain(broker)
    assert (found, damaged) == (set(range(COUNT)) - {5}, 0), (found, damaged)
    broker.kill()


def every_file_at_dozens_of_places(place: Place, whole: Path, dice: random.Random) -> None:
    place.copy_of(whole)
    names = sorted(path.relative_to(place.data) for path in place.data.rglob("*") if path.is_file())
    outcomes: dict[str, int] = {}
    for name in names:
        is_log = str(name).endswith(".seg") and not str(name).startswith("spare-")
        changes = [(flip, 6 if is_log else 1), (cut, 3 if is_log else 1), (zero, 3 if is_log else 1), (remove, 1)]
        for change, count in changes:
            for _ in range(count):
                place.copy_of(whole)
                path = place.data / name
                if change is not remove and path.stat().st_size == 0:
                    continue
                outcome = check(place, path, change, dice.randrange(used(path)) if path.stat().st_size else 0)
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                print(f"  {name}: {change.__name__}: {outcome}", flush=True)
    assert outcomes.get("refused", 0) and outcomes.get("contained", 0), outcomes


TESTS = [
    one_flipped_bit_in_a_body_costs_that_message_alone,
    a_bit_that_flips_while_the_broker_runs_costs_that_message_alone,
    a_shorter_file_is_refused_and_the_flag_goes_on_with_what_is_left,
    a_damaged_record_is_refused_and_the_flag_goes_on_behind_it,
    every_file_at_dozens_of_places,
]


def main(arguments: list[str]) -> int:
    seed = int(arguments[0]) if arguments else 14
    print(f"seed {seed}")
    dice = random.Random(seed)
    work = Path(os.environ.get("JITNEY_WORK", WORK / "damage")) / "places"
    shutil.rmtree(work, ignore_errors=True)
    whole = Place(work / "whole")
    fill(whole)
    place = Place(work / "damaged")
    passed = failed = 0
    for test in TESTS:
        began = time.monotonic()
        try:
            test(place, whole.data, dice)
            passed += 1
            print(f"ok {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"FAILED {test.__name__}", flush=True)
            state = place.directory / "broker.json"
            if state.is_file() and Broker(state).running():
                Broker(state).kill()
    shutil.rmtree(work, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
