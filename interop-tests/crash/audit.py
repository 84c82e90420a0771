"""The auditor of the crash test: what may be where, from what the load wrote down, compared with what peek finds.

For every message it holds the set of places where the message may be. A request without an acknowledgement adds a place; an
acknowledgement leaves only that place. After a crash the message must be in one of its places, once, under a number that no other
message ever had; and the numbers of a queue, of what is there and what was, have no gaps.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field

DEAD_LETTERS = "/$DeadLetterQueue"

UNBORN = "unborn"  # Asked for; whether it was accepted nobody knows.
ACTIVE = "active"
DEFERRED = "deferred"
SCHEDULED = "scheduled"
DEAD = "dead"
GONE = "gone"

# In receive-and-delete mode what is on its way to the receiver when the broker dies is gone: at most what it had asked for.
IN_FLIGHT = 20

AFTER = {"send": ACTIVE, "complete": GONE, "defer": DEFERRED, "dead": DEAD, "cancel": GONE}


def body_of(id_: str) -> str:
    """The body of a message: its id, and as much of a pattern as its id says."""
    digest = zlib.crc32(id_.encode())
    length = [0, 10, 100, 100, 1000, 1000, 1000, 20_000 if digest % 5 == 0 else 1000][digest % 8]
    return f"{id_} " + (f"{digest:08x}" * (length // 8 + 1))[:length]


@dataclass
class Message:
    queue: str
    places: set[str]
    # The settlement that was asked for, and neither acknowledged nor overtaken by another delivery.
    pending: str | None = None
    # Due within the round: it moves from scheduled to active by itself, under a new number.
    near: bool = False
    # Its numbers are known from an acknowledgement, so none of them can be the reason of a gap.
    numbered: bool = True
    # It was received at some time.
    received: bool = False


@dataclass
class Auditor:
    messages: dict[str, Message] = field(default_factory=dict)
    # By queue, who has which number.
    numbers: dict[str, dict[int, str]] = field(default_factory=dict)
    # By queue, numbers whose owner nobody can know: of schedules that were accepted, and became active, unseen.
    unknown: dict[str, set[int]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    events: Counter = field(default_factory=Counter)

    def violation(self, text: str) -> None:
        self.violations.append(text)

    def number(self, queue: str, number: int, id_: str) -> None:
        # A dead letter keeps the number that it had in its queue.
        queue = queue.removesuffix(DEAD_LETTERS)
        owner = self.numbers.setdefault(queue, {}).setdefault(number, id_)
        if owner != id_:
            self.violation(f"{queue}: number {number} belongs to {id_} and to {owner}")
        if number in self.unknown.get(queue, ()):
            self.violation(f"{queue}: number {number} of {id_} was skipped before")

    def read(self, event: str, queue: str, ids: list[str], more) -> None:
        """One line of the journal."""
        self.events[event] += len(ids)
        verb, mark = event.rstrip("?!"), event[-1]
        for index, id_ in enumerate(ids):
            if event in ("send?", "schedule?"):
                self.messages[id_] = Message(queue, {UNBORN, ACTIVE if verb == "send" else SCHEDULED})
                if verb == "schedule":
                    self.messages[id_].numbered = False
                    if more:
                        self.messages[id_].near = True
                        self.messages[id_].places.add(ACTIVE)
                continue
            message = self.messages[id_]
            if event == "got":
                self.got(queue, id_, message, *more)
            elif verb in ("send", "schedule"):
                message.places.discard(UNBORN)
                if verb == "schedule":
                    message.numbered = True
                    self.number(queue, more[index], id_)
            elif mark == "?":
                message.pending = verb
                # Abandoning changes no place: what was received by number stays deferred.
                message.places |= {AFTER[verb]} if verb in AFTER else set()
            elif message.pending == verb:
                message.pending = None
                message.places = {AFTER[verb]} if verb in AFTER else message.places

    def got(self, queue: str, id_: str, message: Message, number: int, how: str, whole: bool) -> None:
        place = DEAD if queue.endswith(DEAD_LETTERS) else DEFERRED if how == "by number" else ACTIVE
        if place not in message.places:
            self.violation(f"{queue}: {id_} was {how} as {place}, but can only be {sorted(message.places)}")
        if message.pending in ("complete", "defer"):
            self.violation(f"{queue}: {id_} was {how} while another held its lock and wanted to {message.pending} it")
        if not whole:
            self.violation(f"{queue}: {id_} came with another body")
        self.number(queue, number, id_)
        message.pending = None
        message.received = True
        # What was delivered was durable, whether the sender was told or not.
        message.places = {GONE} if how == "taken" else {place}

    def compare(self, found: list[tuple[str, str, str, int]]) -> None:
        """Takes all that peek finds after a restart, `(queue, id, place, number)`; nothing is going on meanwhile."""
        there: dict[str, str] = {}
        for queue, id_, place, number in found:
            if id_ in there:
                self.violation(f"{queue}: {id_} is there twice, {there[id_]} and {place}")
            if id_ not in self.messages:
                self.violation(f"{queue}: {id_} was never sent")
                continue
            there[id_] = place
            self.number(queue, number, id_)
        silent: Counter = Counter()
        vanished: Counter = Counter()
        for id_, message in self.messages.items():
            place = there.get(id_)
            message.pending = None
            if message.near and not message.numbered and (message.received or place == ACTIVE):
                silent[message.queue] += 1
            message.numbered = True
            if place is None:
                if not message.places & {UNBORN, GONE}:
                    vanished[message.queue] += 1
                    if not self.deletes(message.queue) or vanished[message.queue] > IN_FLIGHT:
                        self.violation(f"{message.queue}: {id_} is lost; it must be {sorted(message.places)}")
                message.places = {GONE}
                continue
            if place not in message.places:
                self.violation(f"{message.queue}: {id_} is {place}; it must be {sorted(message.places)}")
            message.places = {place, ACTIVE} if message.near and place == SCHEDULED else {place}
        for queue, owners in self.numbers.items():
            if self.deletes(queue):
                continue
            known = owners.keys() | self.unknown.get(queue, set())
            gaps = set(range(1, max(known) + 1)) - known
            if len(gaps) > silent[queue]:
                self.violation(f"{queue}: numbers {sorted(gaps)} were skipped")
            self.unknown.setdefault(queue, set()).update(gaps)

    @staticmethod
    def deletes(queue: str) -> bool:
        """Whether the queue's receiver works in receive-and-delete mode."""
        return queue == "crash-4"

    def alive(self) -> list[str]:
        return sorted(id_ for id_, message in self.messages.items() if GONE not in message.places)
