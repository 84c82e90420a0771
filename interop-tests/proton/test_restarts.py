import multiprocessing
import os
import shlex
import subprocess
import threading

from proton import ConnectionException, Delivery, Message
from proton.handlers import MessagingHandler
from proton.reactor import Backoff, Container

from client import (
    DEADLINE, InSession, RECEIVER_SECOND, URL, bodies, connect, counts, now, number, numbered, numbers, origin, unique_name,
)
from management import Management, in_seconds
from test_topics import at, keyed, partition, with_n
from test_transactions import Working


def broker(*verbs: str) -> None:
    for verb in verbs:
        subprocess.run([*shlex.split(os.environ["JITNEY_BROKER_CONTROL"]), verb], check=True, timeout=60, stdout=subprocess.DEVNULL)


class Restarts(Working):
    def restart(self, *verbs: str) -> None:
        """Ends the broker and starts it again; the test goes on with another connection."""
        # Proton waits for an answer to its close, so it closes before.
        self.connection.close()
        broker(*(verbs or ("kill", "start")))
        self.connection = connect()
        self.addCleanup(self.connection.close)

    def test_s72_s73_queues_survive_a_kill(self):
        self.send("s72", *[Message(body=body, properties={"n": body}) for body in range(1, 7)])
        received = self.receive(self.receiver("s72"), 6)
        self.complete(received[0][1])
        self.defer(received[1][1])
        self.dead_letter(received[2][1], "why", "because")
        for _, delivery in received[3:]:
            self.settle(delivery, Delivery.RELEASED)
        Management(self, "s72").schedule([Message(body="far")], in_seconds(3600))
        Management(self, "s73").schedule([Message(body="due")], in_seconds(1))
        self.restart()
        management = Management(self, "s72")
        states = {number(message): message.annotations.get("x-opt-message-state", 0) for message in management.peek()}
        self.assertEqual(states, {2: 1, 4: 0, 5: 0, 6: 0, 7: 2})
        self.assertEqual([message.properties for message in management.peek(4, 3)], [{"n": 4}, {"n": 5}, {"n": 6}])
        letter, _ = self.receive_one(self.receiver("s72/$DeadLetterQueue"))
        self.assertEqual(letter.body, 3)
        self.send("s72", *numbered(1))
        self.assertEqual(management.peeked(), [2, 4, 5, 6, 7, 8])
        self.assertEqual(bodies(self.receive(self.receiver("s73"), 1)), ["due"])

    def test_s75_a_stop_is_in_good_order(self):
        self.send("s75", *numbered(1))
        _, delivery = self.receive_one(self.receiver("s75"))
        self.abandon(delivery)
        # One that is open when the broker stops; it ends with the broker's side of it.
        left_open = connect()
        left_open.create_receiver("s75", name=unique_name())
        began = now()
        # `stop` fails when the broker does not end with 0.
        self.restart("stop", "start")
        self.assertLess(now() - began, 30)
        received = self.receive(self.receiver("s75"), 1)
        self.assertEqual((bodies(received), counts(received)), ([1], [1]))

    def test_s138_sessions_survive_a_kill(self):
        sender = self.sender("s138")
        for body in range(1, 5):
            sender.send(Message(body=body, group_id="x"))
        x, y = self.receiver("s138", InSession("x")), self.receiver("s138", InSession("y"))
        for name, receiver in (("x", x), ("y", y)):
            Management(self, "s138", link=receiver.link.name).set_state(name, name.encode())
        (_, deferred), _ = self.receive(x, 2)
        self.defer(deferred)
        self.restart()
        x, y = self.receiver("s138", InSession("x")), self.receiver("s138", InSession("y"))
        management = Management(self, "s138", link=x.link.name)
        self.assertEqual(management.state("x"), b"x")
        self.assertEqual(Management(self, "s138", link=y.link.name).state("y"), b"y")
        self.assertEqual(numbers(self.available(x)), [2, 3, 4])
        [(message, _)] = management.by_number(1, session="x")
        self.assertEqual(message.body, 1)
        self.send("s138", Message(body=5, group_id="x"))
        self.assertEqual(numbers(self.receive(x, 1)), [5])

    def test_s158_s170_topics_and_their_rules_survive_a_kill(self):
        self.send("s158", *numbered(10))
        received = self.receive(self.receiver(at("s158", "a")), 5)
        for _, delivery in received[:3]:
            self.complete(delivery)
        self.defer(received[3][1])
        self.dead_letter(received[4][1], "why", "because")
        Management(self, "s158").schedule([Message(body="due")], in_seconds(2))
        rules = Management(self, at("s170", "a"))
        rules.ask("remove-rule", {"rule-name": "$Default"})
        rules.ask("add-rule", rules.add_rule("one", {"sql-filter": {"expression": "n = 1"}}))
        self.restart()
        messages = Management(self, at("s158", "a")).peek()
        there = [(number(message), origin(message)) for message in messages if message.body != "due"]
        self.assertEqual(there, [(each, each) for each in (4, 6, 7, 8, 9, 10)])
        receiver = self.receiver(at("s158", "a"))
        last = self.receive(receiver, 6)[-1][0]
        self.assertEqual((last.body, number(last)), ("due", 11))
        self.send("s158", *numbered(1))
        self.assertEqual(numbers(self.receive(receiver, 1)), [12])
        self.assertEqual([rule.value[2] for rule in Management(self, at("s170", "a")).rules()], ["one"])
        self.send("s170", *with_n(1, 2))
        self.assertEqual(self.here(at("s170", "a")), [1])

    def test_s159_s204_a_kill_in_the_middle_of_sending(self):
        """Two senders that go on after each kill; what they were told was accepted is there, once, and wherever it must be."""
        accepted: dict[str, list[str]] = {"s159": [], "s204": []}
        for _ in range(3):
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                sending = [pool.apply_async(send_until_cut, (address,)) for address in accepted]
                self.connection.wait(lambda: all(self.sent_to(each) > len(accepted[each]) + 20 for each in accepted), msg="sending")
                self.connection.close()
                broker("kill", "start")
                for address, work in zip(accepted, sending):
                    accepted[address] += work.get(DEADLINE)
            self.connection = connect()
        self.addCleanup(self.connection.close)
        self.assertTrue(all(accepted.values()))
        a, b = (self.all_of(at("s159", name)) for name in ("a", "b"))
        self.assertEqual([message.id for message in a], [message.id for message in b])
        self.assertEqual([number(message) for message in a], list(range(1, len(a) + 1)))
        self.assertEqual(len({message.id for message in a}), len(a))
        self.assertLessEqual(set(accepted["s159"]), {message.id for message in a})
        self.connection.wait(
            lambda: set(accepted["s204"]) <= {message.id for message in self.all_of("s204b")}, msg="forwarding",
        )
        forwarded = self.all_of("s204b")
        self.assertEqual(len({message.id for message in forwarded}), len(forwarded))
        self.assertEqual(len({origin(message) for message in forwarded}), len(forwarded))

    def sent_to(self, address: str) -> int:
        """How many there are at least."""
        return len(self.all_of({"s159": at("s159", "a"), "s204": "s204b"}[address]))

    def all_of(self, address: str) -> list[Message]:
        management, found = Management(self, address), []
        while page := management.peek(number(found[-1]) + 1 if found else 1):
            found += page
        return found

    def test_s188_ids_are_remembered_over_a_kill(self):
        self.send("s188", Message(id="same", body=1))
        self.restart()
        self.send("s188", Message(id="same", body=2), Message(id="other", body=3))
        self.assertEqual(self.here("s188"), [1, 3])

    def test_s217_numbers_go_on_in_each_partition(self):
        for index in range(5):
            self.send("s217", *[message for key in range(10) for message in keyed(f"k{key}", index)])
        before = self.all_of("s217")
        for _, delivery in self.receive(self.receiver("s217"), 10):
            self.complete(delivery)
        left = self.all_of("s217")
        self.assertEqual((len(before), len(left)), (50, 40))
        self.restart()
        self.assertEqual(sorted(map(number, self.all_of("s217"))), sorted(map(number, left)))
        self.send("s217", *[message for key in range(10) for message in keyed(f"k{key}", "new")])
        highest: dict[int, int] = {}
        for message in before:
            highest[partition(message)] = max(highest.get(partition(message), 0), number(message))
        new = [message for message in self.all_of("s217") if message.body == "new"]
        self.assertEqual(len(new), 10)
        for where in {partition(message) for message in new}:
            mine = sorted(number(message) for message in new if partition(message) == where)
            self.assertEqual(mine, list(range(highest[where] + 1, highest[where] + 1 + len(mine))))

    def test_s243_what_was_committed_survives_a_kill_and_nothing_else(self):
        # Proton does not close a connection that was cut without waiting for the answer.
        self.connection.close()
        self.connection = connect()
        self.send("s243", *numbered(2))
        deliveries = [delivery for _, delivery in self.receive(self.receiver("s243"), 2)]
        sender = self.sender("s243")
        committed, left = self.begin(), self.begin()
        for transaction, delivery, body in ((committed, deliveries[0], "committed"), (left, deliveries[1], "left")):
            self.settle_in(transaction, delivery, Delivery.ACCEPTED)
            self.send_in(transaction, sender, Message(body=body))
        self.commit(committed)
        broker("kill", "start")
        self.connection = connect()
        self.addCleanup(self.connection.close)
        self.assertEqual(Management(self, "s243").peeked(), [2, 3])
        # Locks are not written down: what was locked is there at once, or when its lock would have ended.
        self.assertEqual(sorted(bodies(self.receive(self.receiver("s243"), 2)), key=str), [2, "committed"])

    def test_s348_a_client_reconnects_by_itself(self):
        self.connection.close()
        exchange = Exchange("s348")
        running = threading.Thread(target=Container(exchange).run, daemon=True)
        running.start()
        self.assertTrue(exchange.first.wait(DEADLINE))
        broker("kill", "start")
        running.join(DEADLINE)
        self.assertFalse(running.is_alive())
        self.assertEqual((exchange.received, exchange.opened), (["before", "after"], 2))
        self.connection = connect()
        self.addCleanup(self.connection.close)
        self.assertEqual(self.here("s348"), [])


class Exchange(MessagingHandler):
    """Sends a message and takes it back; and again with the same connection, sender and receiver, after a reconnection."""

    def __init__(self, address: str):
        super().__init__(auto_accept=False)
        self.address, self.sent, self.received, self.opened = address, 0, [], 0
        self.first = threading.Event()

    def on_start(self, event):
        reconnect = Backoff(initial=0.1, max_delay=0.5)
        self.connection = event.container.connect(URL, allowed_mechs="ANONYMOUS", reconnect=reconnect)
        self.sender = event.container.create_sender(self.connection, self.address)
        event.container.create_receiver(self.connection, self.address, options=RECEIVER_SECOND)

    def on_connection_opened(self, event):
        self.opened += 1

    def on_sendable(self, event):
        wanted = ["before", "after"][:self.opened]
        if self.sent < len(wanted):
            event.sender.send(Message(body=wanted[self.sent]))
            self.sent += 1

    def on_message(self, event):
        self.received.append(event.message.body)
        event.delivery.update(Delivery.ACCEPTED)

    def on_settled(self, event):
        if not event.receiver:
            return
        event.delivery.settle()
        if len(self.received) == 1:
            self.first.set()
        else:
            self.connection.close()

    def on_transport_error(self, event):
        """The connection is made anew."""


def send_until_cut(address: str) -> list[str]:
    """Sends until the connection ends; the ids of what was accepted."""
    accepted: list[str] = []
    sender = connect().create_sender(address, name=unique_name())
    try:
        while True:
            message = Message(id=unique_name(), body=1)
            sender.send(message)
            accepted.append(message.id)
    except ConnectionException:
        return accepted
