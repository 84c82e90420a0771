"""The auditor of the load: what must hold of the messages, by what was written down of requests and answers (load.py).

- A message whose sending was acknowledged is received and settled, or is there at the end: else it is lost.
- A message does not come back after its completion was acknowledged. After an acknowledged deferral it comes by its number only, and
  after it was dead-lettered it is in the dead-letter queue only. A cancelled schedule does not come, and none comes before it is due.
- A completion is acknowledged once.
- A number belongs to one message, and a message keeps its number. With duplicate detection, a message that was sent several times has one.
- The messages of a session whose sending was acknowledged have increasing numbers in the order in which they were sent. All are first
  received in the order of their numbers.
- A transaction is whole or not at all, also one whose commit has no answer: its messages and its completions. A message is completed by one
  transaction at most. Nothing of one that was rolled back is ever seen.
- The state of a session is what was acknowledged last, or what was asked for since.
- Bodies are whole, and there is no message that was not sent.

A request without an answer may have happened or not, and may happen later: it may be on its way through a network that is held. Only what a
receiver asked for after an acknowledgement contradicts it: what was on its way before may arrive later.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# How much earlier than asked a scheduled message may come: clocks are read at different moments.
EARLY_SECONDS = 0.2
# Where a message was received: from its queue, by its number, from the dead-letter queue.
QUEUE, NUMBER, DEAD = "queue", "number", "dead"
# Where it may not be received once the answer to a request is there.
BARRED = {"complete": {QUEUE, NUMBER, DEAD}, "defer": {QUEUE}, "dead": {QUEUE, NUMBER}, "cancel": {QUEUE, NUMBER, DEAD}}


@dataclass
class Message:
    entity: str
    # Requests and acknowledgements: when, by their names.
    asked: dict[str, float] = field(default_factory=dict)
    told: dict[str, float] = field(default_factory=dict)
    number: int | None = None
    received: int = 0
    left: bool = False
    # Of a scheduled one, as time of day.
    due: float | None = None
    session: str | None = None


    @property
    def is_seen(self) -> bool:
        return self.received > 0 or self.left


@dataclass
class Transaction:
    """One that sends messages, and completes others, of the same entity."""

    sent: list[str]
    completed: list[str]
    is_rolled_back: bool
    is_told: bool = False


@dataclass
class Auditor:
    messages: dict[tuple[str, str], Message] = field(default_factory=dict)
    # What the ids of this load begin with.
    prefixes: set[str] = field(default_factory=lambda: {""})
    # By entity, who has which number.
    numbers: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    # By entity and session: the ids in the order of their sending, and in that of their first receiving.
    sent: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    first: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    # By entity and what it sends.
    transactions: dict[tuple[str, str], Transaction] = field(default_factory=dict)
    # By entity and session: the states that the next reader may find. An earlier load's is there at first.
    states: dict[tuple[str, str], set[str | None]] = field(default_factory=dict)
    # By namespace: when sendings were acknowledged.
    sends: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    violations: list[str] = field(default_factory=list)
    counts: Counter = field(default_factory=Counter)
    ended: bool = False

    @classmethod
    def of(cls, journal: Path) -> Auditor:
        auditor = cls()
        with journal.open() as lines:
            auditor.take(json.loads(line) for line in lines if line.endswith("\n"))
        auditor.finish()
        return auditor

    def violation(self, text: str) -> None:
        self.violations.append(text)

    def take(self, lines: Iterable[list]) -> None:
        for when, event, entity, ids, more in lines:
            self.counts[event] += len(ids)
            self.read(when, event, entity, ids, more)

    def read(self, when: float, event: str, entity: str, ids: list[str], more) -> None:
        """One line of the journal."""
        verb, mark = event.rstrip("?!"), event[-1]
        if event == "end":
            self.ended = True
        if verb in ("commit", "rollback"):
            self.transaction(when, event, entity, ids, more)
            return
        if verb in ("set", "state"):
            self.state(event, entity, ids[0], more)
            return
        for index, id_ in enumerate(ids):
            prefix = id_.rpartition("-")[0]
            if event in ("send?", "schedule?"):
                self.prefixes.add(prefix)
                message = self.messages.setdefault((entity, id_), Message(entity))
                message.asked.setdefault("send", when)
                if event == "schedule?":
                    message.due = more
                elif more is not None and id_ not in self.sent[entity, more]:
                    message.session = more
                    self.sent[entity, more].append(id_)
                continue
            message = self.messages.get((entity, id_))
            if message is None and prefix not in self.prefixes:
                # An earlier load's, which has been audited: it was scheduled, and is left.
                continue
            if message is None:
                self.violation(f"{entity}: {id_} was never sent")
            elif event == "got":
                self.got(entity, id_, message, *more)
            elif event == "left":
                self.left(entity, id_, message, *more)
            elif event in ("send!", "schedule!"):
                message.told.setdefault("send", when)
                self.sends[entity.split("/")[0]].append(when)
                if event == "schedule!":
                    # It is the schedule's. The message gets another one when it is due, unless it was due when the request arrived.
                    self.numbered(entity, more[index], id_)
            elif mark == "?":
                message.asked[verb] = when
            else:
                if verb == "complete" and verb in message.told:
                    self.violation(f"{entity}: two completions of {id_} were acknowledged")
                message.told[verb] = when

    def transaction(self, when: float, event: str, entity: str, ids: list[str], completed: list[str]) -> None:
        """The end of a transaction that sends some messages, and completes others: its request, or its answer."""
        key = entity, " ".join(ids)
        if event[-1] == "?":
            self.transactions[key] = Transaction(ids, completed, event == "rollback?")
            for id_ in ids:
                self.prefixes.add(id_.rpartition("-")[0])
                self.messages[entity, id_] = Message(entity, {"send": when})
            return
        transaction = self.transactions[key]
        transaction.is_told = True
        if transaction.is_rolled_back:
            return
        for id_ in ids:
            self.messages[entity, id_].told["send"] = when
            self.sends[entity.split("/")[0]].append(when)
        for id_ in transaction.completed:
            message = self.messages.get((entity, id_))
            if message is None:
                # An earlier load's, which was left; what was never sent is told when it is received.
                continue
            if "complete" in message.told:
                self.violation(f"{entity}: two completions of {id_} were acknowledged")
            message.told["complete"] = when

    def state(self, event: str, entity: str, session: str, value: str | None) -> None:
        """A session's state was read, or is to be set, or was set."""
        allowed = self.states.setdefault((entity, session), {value})
        if event == "set?":
            allowed.add(value)
            return
        if event == "state" and value not in allowed:
            self.violation(f"{entity}: session {session} has the state {value}, and not one of {sorted(map(str, allowed))}")
        self.states[entity, session] = {value}

    def numbered(self, entity: str, number: int, id_: str) -> None:
        owner = self.numbers[entity].setdefault(number, id_)
        if owner != id_:
            self.violation(f"{entity}: number {number} belongs to {owner} and to {id_}")

    def seen(self, entity: str, id_: str, message: Message, number: int) -> None:
        if message.number not in (None, number):
            self.violation(f"{entity}: {id_} has the numbers {message.number} and {number}")
        message.number = number
        self.numbered(entity, number, id_)

    def got(self, entity: str, id_: str, message: Message, number: int, where: str, asked: float, clock: float, whole: bool) -> None:
        """`asked` is when the receiver asked for it, `clock` the time of day when it came."""
        self.seen(entity, id_, message, number)
        for verb, barred in BARRED.items():
            if where in barred and message.told.get(verb, asked) < asked:
                self.violation(f"{entity}: {id_} came from the {where} after its {verb} was acknowledged")
        if message.due is not None and clock < message.due - EARLY_SECONDS:
            self.violation(f"{entity}: {id_} came {message.due - clock:.1f} s before it was due")
        if not whole:
            self.violation(f"{entity}: {id_} came with another body")
        if message.session is not None and not message.received:
            self.first[entity, message.session].append(id_)
        message.received += 1

    def left(self, entity: str, id_: str, message: Message, number: int, where: str) -> None:
        """It was found at the end, when nothing else happened any more: in its queue, deferred, scheduled, or as a dead letter."""
        if message.left:
            self.violation(f"{entity}: {id_} is there twice")
        message.left = True
        if where != "scheduled":
            self.seen(entity, id_, message, number)
        for verb in ("complete", "cancel"):
            if verb in message.told:
                self.violation(f"{entity}: {id_} is there ({where}) after its {verb} was acknowledged")

    def finish(self) -> None:
        """Looks at what must be known only at the end."""
        completed = self.finish_transactions()
        for (entity, id_), message in self.messages.items():
            may_be_gone = "complete" in message.asked or "cancel" in message.asked or completed[entity, id_]
            if "send" in message.told and not message.left and not may_be_gone:
                self.violation(f"{entity}: {id_} was acknowledged and is lost (received {message.received} times)")
        for (entity, session), ids in self.sent.items():
            found = [self.messages[entity, id_] for id_ in ids]
            numbers = [message.number for message in found if message.number is not None and "send" in message.told]
            if numbers != sorted(numbers):
                self.violation(f"{entity}: the numbers of session {session} are not in the order of sending")
            received = [self.messages[entity, id_].number for id_ in self.first[entity, session]]
            if received != sorted(received):
                self.violation(f"{entity}: session {session} was received out of order")

    def finish_transactions(self) -> Counter:
        """Returns by how many transactions each message was completed."""
        completed: Counter = Counter()
        for (entity, _), transaction in self.transactions.items():
            there = [id_ for id_ in transaction.sent if self.messages[entity, id_].is_seen]
            if transaction.is_rolled_back:
                for id_ in there:
                    self.violation(f"{entity}: {id_} is there, and its transaction was rolled back")
                continue
            if 0 < len(there) < len(transaction.sent) and not transaction.is_told:
                self.violation(f"{entity}: of a transaction's messages {transaction.sent}, only {there} are there")
            if there or transaction.is_told:
                # What an earlier load has left is not of this audit.
                completed.update((entity, id_) for id_ in transaction.completed if (entity, id_) in self.messages)
        for (entity, id_), count in completed.items():
            if count > 1:
                self.violation(f"{entity}: {id_} was completed by {count} transactions")
            if self.messages[entity, id_].left:
                self.violation(f"{entity}: {id_} is there, and a transaction that completed it took effect")
        return completed

    def silence(self, namespace: str, since: float, until: float) -> float | None:
        """The longest time between two moments without an acknowledgement of a sending; None if there is none between them."""
        told = sorted(told for told in self.sends[namespace] if since <= told <= until)
        return max(after - before for before, after in zip([since, *told], told)) if told else None
