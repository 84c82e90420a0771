"""The crash test on a real process: SIGKILL under load, restart on the same data, compare; twenty times over.

    crash.py [ROUNDS [SEED]]
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from azure.servicebus import ServiceBusClient, ServiceBusMessageState, ServiceBusReceiveMode, ServiceBusSubQueue

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from audit import ACTIVE, DEAD, DEAD_LETTERS, DEFERRED, GONE, SCHEDULED, Auditor, body_of  # noqa: E402
from broker import Broker  # noqa: E402

HERE = Path(__file__).resolve().parent
QUEUES = ["crash-1", "crash-2", "crash-3", "crash-4"]
PLACES = {
    ServiceBusMessageState.ACTIVE: ACTIVE, ServiceBusMessageState.DEFERRED: DEFERRED, ServiceBusMessageState.SCHEDULED: SCHEDULED,
}
# Until the last near schedule of a round is due: they are at most 1 s ahead.
SETTLE = 5.0


class Journal:
    """What the load wrote, read as it grows."""

    def __init__(self, path: Path):
        self.path = path
        self.offset = 0
        path.touch()

    def fresh(self) -> list:
        with self.path.open("rb") as file:
            file.seek(self.offset)
            text = file.read()
        # A line being written stays for the next time.
        text = text[: text.rfind(b"\n") + 1]
        self.offset += len(text)
        return [json.loads(line) for line in text.splitlines()]


def connect() -> ServiceBusClient:
    return ServiceBusClient.from_connection_string(os.environ["JITNEY_CONNECTION_STRING"])


def peek(queue: str, dead: bool) -> list[tuple[str, str, str, int]]:
    options = {"sub_queue": ServiceBusSubQueue.DEAD_LETTER} if dead else {}
    name = queue + DEAD_LETTERS if dead else queue
    found = []
    with connect() as client, client.get_queue_receiver(queue, **options) as receiver:
        page = receiver.peek_messages(250, sequence_number=1)
        while page:
            for message in page:
                if str(message) != body_of(message.message_id):
                    raise AssertionError(f"{name}: {message.message_id} has another body")
                found.append((name, message.message_id, DEAD if dead else PLACES[message.state], message.sequence_number))
            page = receiver.peek_messages(250, sequence_number=page[-1].sequence_number + 1)
    return found


def look() -> list[tuple[str, str, str, int]]:
    """What peek finds in all queues: `(queue, id, place, number)`."""
    # Side by side, because the SDK takes its time to open a link.
    with ThreadPoolExecutor(max_workers=2 * len(QUEUES)) as pool:
        peeks = [pool.submit(peek, queue, dead) for queue in QUEUES for dead in (False, True)]
        return [each for found in peeks for each in found.result()]


def all_there_is(auditor: Auditor) -> list[tuple[str, str, str, int]]:
    """What peek finds, once nothing is on the move any more: no near schedule is left scheduled."""
    deadline = time.monotonic() + SETTLE
    while True:
        found = look()
        waiting = [id_ for _, id_, place, _ in found if place == SCHEDULED and id_ in auditor.messages and auditor.messages[id_].near]
        if not waiting:
            return found
        if time.monotonic() > deadline:
            auditor.violation(f"still scheduled, long after their time: {waiting}")
            return found
        time.sleep(0.1)


def crash(broker: Broker, journal: Journal, auditor: Auditor, number: int, dice: random.Random) -> str:
    """One round: load, kill, restart, compare. Returns what happened, for the log."""
    before = auditor.events.copy()
    load = subprocess.Popen(
        [sys.executable, str(HERE / "load.py"), str(journal.path), str(number), str(dice.getrandbits(32))],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        # Killed after so many acknowledgements, and a moment later: in the middle of anything.
        target, told = dice.choice([150, 300, 600, 1200]), 0
        deadline = time.monotonic() + 20
        lines = []
        while told < target:
            new = journal.fresh()
            lines += new
            told += sum(line[0].endswith("!") for line in new)
            if load.poll() is not None:
                raise AssertionError(f"the load ended by itself, with {load.returncode}")
            if time.monotonic() > deadline:
                # Slower than thought, on a busy machine; whatever has been told will do.
                if told == 0:
                    raise AssertionError("the load got no acknowledgement in 20 s")
                break
            time.sleep(0.005)
        time.sleep(dice.uniform(0, 0.05))
        broker.kill()
        # What is in its sockets it may still read and write down.
        time.sleep(0.1)
    finally:
        load.send_signal(signal.SIGKILL)
        load.wait()
    for line in lines + journal.fresh():
        auditor.read(*line)
    if dice.random() < 0.3:
        # Recovery may be cut short as well.
        broker.launch()
        time.sleep(dice.uniform(0, 0.05))
        if broker.running():
            broker.kill()
    began = time.monotonic()
    broker.start()
    started = time.monotonic() - began
    found = all_there_is(auditor)
    auditor.compare(found)
    new = auditor.events - before
    told = {event.rstrip("!"): count for event, count in sorted(new.items()) if event.endswith("!")}
    return f"{sum(told.values())} acknowledged {told}, {len(found)} there after a start of {started:.2f} s"


def take_out(queue: str, dead: bool, there: list[tuple[str, str, str, int]]) -> tuple[list[str], str | None]:
    """Receives all messages of a queue as a client; returns the ids, and what was wrong."""
    options = {"sub_queue": ServiceBusSubQueue.DEAD_LETTER} if dead else {}
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    by_place = {place: [number for _, _, at, number in there if at == place] for place in (ACTIVE, DEFERRED, SCHEDULED, DEAD)}
    complaint = None
    with connect() as client, client.get_queue_receiver(queue, receive_mode=mode, **options) as receiver:
        taken = []
        while messages := receiver.receive_messages(max_message_count=200, max_wait_time=1):
            taken += messages
        if [message.sequence_number for message in taken] != by_place[DEAD if dead else ACTIVE]:
            complaint = f"{queue}: {len(taken)} received are not, in order, the {len(by_place[DEAD if dead else ACTIVE])} that peek shows"
        for start in range(0, len(by_place[DEFERRED]), 50):
            taken += receiver.receive_deferred_messages(by_place[DEFERRED][start : start + 50])
        ids = [message.message_id for message in taken]
        if by_place[SCHEDULED]:
            with client.get_queue_sender(queue) as sender:
                for start in range(0, len(by_place[SCHEDULED]), 50):
                    sender.cancel_scheduled_messages(by_place[SCHEDULED][start : start + 50])
            ids += [id_ for _, id_, place, _ in there if place == SCHEDULED]
    return ids, complaint


def drain(auditor: Auditor) -> None:
    """Takes everything out, so that what peek shows is also what can be had."""
    found = look()
    taken = []
    with ThreadPoolExecutor(max_workers=2 * len(QUEUES)) as pool:
        work = []
        for queue in QUEUES:
            for dead in (False, True):
                name = queue + DEAD_LETTERS if dead else queue
                work.append(pool.submit(take_out, queue, dead, [each for each in found if each[0] == name]))
        for each in work:
            ids, complaint = each.result()
            taken += ids
            if complaint:
                auditor.violation(complaint)
    if sorted(taken) != sorted(id_ for _, id_, _, _ in found):
        auditor.violation(f"{len(taken)} messages were taken out, {len(found)} were there")
    for id_ in taken:
        auditor.messages[id_].places = {GONE}


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().getrandbits(32)
    print(f"{rounds} rounds, seed {seed} (it chooses the load; what the timing does is the machine's)")
    dice = random.Random(seed)
    broker = Broker(Path(os.environ["JITNEY_BROKER_STATE"]))
    journal = Journal(Path(os.environ.get("JITNEY_WORK", ".")) / f"journal-{os.getpid()}.jsonl")
    auditor = Auditor()
    passed = failed = 0
    for number in range(1, rounds + 2):
        known = len(auditor.violations)
        if number <= rounds:
            title, done = f"round {number}", crash(broker, journal, auditor, number, dice)
        else:
            drain(auditor)
            broker.kill()
            broker.start()
            auditor.compare(look())
            if auditor.alive():
                auditor.violation(f"not gone: {auditor.alive()[:20]}")
            title, done = "emptied, killed, started again", "empty"
        new = auditor.violations[known:]
        print(f"{title}: {done}", flush=True)
        for violation in new[:20]:
            print(f"  VIOLATION {violation}", flush=True)
        if new:
            failed += 1
            break
        passed += 1
    print(f"{sum(count for event, count in auditor.events.items() if event.endswith('!'))} acknowledgements held against {passed} starts")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
