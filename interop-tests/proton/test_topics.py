from proton import Delivery, Message, int32, symbol, timestamp, ulong
from proton.utils import SendException

from client import (
    InSession, TestCase, bodies, counts, number, numbered, numbers, origin, plain, session_of, stamp,
)
from management import Management, in_seconds, token_of

NOT_ALLOWED = "amqp:not-allowed"
DISABLED = "com.microsoft:entity-disabled"
FULL = "amqp:resource-limit-exceeded"


def at(topic: str, subscription: str) -> str:
    return f"{topic}/Subscriptions/{subscription}"


def dead(topic: str, subscription: str) -> str:
    return f"{at(topic, subscription)}/$DeadLetterQueue"


def with_n(*values) -> list[Message]:
    return [Message(body=value, properties={"n": value}) for value in values]


class Topics(TestCase):
    def fill(self, address: str, size: int = 100 * 1024, most: int = 30) -> int:
        """Sends until one is refused; how many were not."""
        sender = self.sender(address)
        for count in range(most):
            delivery = sender.link.send(Message(body=bytes(size), inferred=True))
            self.connection.wait(lambda: delivery.settled, msg="outcome")
            if delivery.remote_state != delivery.ACCEPTED:
                self.assertEqual(delivery.remote.condition.name, FULL)
                return count
        self.fail("nothing was refused")

    def test_s67_a_full_queue_takes_messages_again(self):
        count = self.fill("s67")
        receiver = self.receiver("s67")
        received = self.receive(receiver, count)
        for _, delivery in received[:5]:
            self.complete(delivery)
        self.send("s67", *numbered(1))
        for _, delivery in received[5:]:
            self.complete(delivery)
        self.assertEqual(bodies(self.receive(receiver, 1)), [1])

    def test_s141_every_subscription_has_its_copy(self):
        self.send("s141", *with_n(1, 2, 3, 4, 5))
        for name in ("a", "b"):
            received = self.available(self.receiver(at("s141", name)))
            self.assertEqual((bodies(received), numbers(received)), ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]))
        odd = self.available(self.receiver(at("s141", "odd")))
        self.assertEqual((bodies(odd), numbers(odd)), ([1, 3, 5], [1, 2, 3]))
        self.assertEqual([origin(message) for message, _ in odd], [1, 3, 5])
        self.assertEqual([message.properties for message, _ in odd], [{"n": 1}, {"n": 3}, {"n": 5}])

    def test_s142_a_topic_without_subscriptions_takes_messages(self):
        self.send("s142", *numbered(3))

    def test_s143_subscriptions_settle_apart(self):
        self.send("s143", *numbered(3))
        (one, first), (two, second), (three, third) = self.receive(self.receiver(at("s143", "a")), 3)
        self.complete(first)
        self.defer(second)
        self.abandon(third)
        received = self.receive(self.receiver(at("s143", "b")), 3)
        self.assertEqual((bodies(received), counts(received)), ([1, 2, 3], [0, 0, 0]))
        self.assertFalse({token_of(message) for message, _ in received} & {token_of(each) for each in (one, two, three)})
        [(message, _)] = Management(self, at("s143", "a")).by_number(number(two))
        self.assertEqual(message.body, 2)

    def test_s144_a_subscription_has_dead_letters_of_its_own(self):
        self.send("s144", *numbered(1))
        _, delivery = self.receive_one(self.receiver(at("s144", "a")))
        self.dead_letter(delivery, "why", "because")
        message, _ = self.receive_one(self.receiver(dead("s144", "a")))
        self.reason(message, "why", "because")
        self.assertEqual((self.here(at("s144", "b")), self.here(dead("s144", "b"))), ([1], []))

    def test_s145_a_subscription_may_have_sessions(self):
        self.send("s145", *[Message(body=body, group_id=body[0]) for body in ("x1", "y1", "x2")])
        received = self.available(self.receiver(at("s145", "plain")))
        self.assertEqual([(message.body, message.group_id) for message, _ in received], [("x1", "x"), ("y1", "y"), ("x2", "x")])
        address = at("s145", "s")
        x = self.receiver(address, InSession("x"))
        management = Management(self, address, link=x.link.name)
        management.set_state("x", b"state")
        self.assertGreater(management.renew_session("x"), in_seconds(0))
        self.assertEqual(bodies(self.available(x)), ["x1", "x2"])
        other = self.receiver(address, InSession(None, 10))
        self.assertEqual((session_of(other), bodies(self.available(other))), ("y", ["y1"]))
        x.close()
        x = self.receiver(address, InSession("x"))
        self.assertEqual(Management(self, address, link=x.link.name).state("x"), b"state")
        self.assertEqual(bodies(self.available(x)), ["x1", "x2"])

    def test_s146_a_message_without_a_session_is_a_dead_letter(self):
        self.send("s146", *numbered(1))
        self.assertEqual(self.here(at("s146", "plain")), [1])
        message, _ = self.receive_one(self.receiver(dead("s146", "s")))
        self.reason(message, "Session ID is null.")

    def test_s147_messages_are_scheduled_on_a_topic(self):
        when = in_seconds(4)
        Management(self, "s147").schedule([Message(body="scheduled")], when)
        message = Message(body="sent")
        message.annotations = {symbol("x-opt-scheduled-enqueue-time"): timestamp(when)}
        self.send("s147", message)
        for name in ("a", "b"):
            self.assertEqual(self.here(at("s147", name)), [])
            self.assertEqual(Management(self, at("s147", name)).peek(), [])
        for name in ("a", "b"):
            receiver = self.receiver(at("s147", name))
            received = self.receive(receiver, 2)
            self.assertEqual(sorted(bodies(received)), ["scheduled", "sent"])
            for message, _ in received:
                self.assertEqual(message.annotations["x-opt-scheduled-enqueue-time"], when)
                self.assertGreaterEqual(stamp(message, "enqueued-time") * 1000, when)
            self.assertEqual(self.available(receiver), [])

    def test_s148_scheduled_messages_are_cancelled_on_a_topic(self):
        management = Management(self, "s148")
        one, two, three = management.schedule(numbered(3), in_seconds(2))
        management.cancel(one)
        management.cancel(two, three)
        management.cancel_fails(one)
        self.nothing(self.receiver(at("s148", "a")), 3)

    def test_s149_nobody_sends_to_a_subscription_or_receives_from_a_topic(self):
        self.refused(self.sender, at("s149", "a"), condition=NOT_ALLOWED)
        self.refused(self.receiver, "s149", condition=NOT_ALLOWED)

    def test_s150_a_subscription_that_is_not_there(self):
        for address in (at("s150", "no-such"), at("no-such", "a")):
            self.refused(self.receiver, address, condition="amqp:not-found", text="could not be found")

    def test_s151_names_of_topics_do_not_depend_on_case(self):
        self.send("S151", *numbered(1))
        self.assertEqual(bodies(self.take("s151/SUBSCRIPTIONS/mixed", 1)), [1])

    def test_s152_subscriptions_lock_and_count_apart(self):
        self.send("s152", *numbered(1))
        receiver = self.receiver(at("s152", "a"))
        first, _ = self.receive_one(receiver)
        Management(self, at("s152", "a")).renew(token_of(first))
        second, _ = self.receive_one(receiver)
        self.assertEqual((first.delivery_count, second.delivery_count), (0, 1))
        message, _ = self.receive_one(self.receiver(dead("s152", "a")))
        self.reason(message, "MaxDeliveryCountExceeded")
        self.assertEqual(self.here(at("s152", "b")), [1])

    def test_s153_the_shortest_time_to_live_counts(self):
        self.send("s153", *numbered(1))
        for name in ("short", "keep"):
            message, _ = self.receive_one(self.receiver(dead("s153", name)))
            self.reason(message, "TTLExpiredException")
        self.assertEqual((self.here(at("s153", "drop")), self.here(dead("s153", "drop"))), ([], []))

    def test_s154_large_messages_are_in_every_subscription(self):
        large = bytes(index * 31 % 251 for index in range(200 * 1024))
        self.send("s154", *numbered(100), Message(body=large, inferred=True))
        for name in ("a", "b", "c"):
            received = self.take(at("s154", name), 101)
            self.assertEqual(bodies(received)[:100], list(range(1, 101)))
            self.assertTrue(plain(received[100][0].body) == large)
            self.assertEqual(self.here(at("s154", name)), [])

    def test_s155_topics_and_subscriptions_are_disabled(self):
        self.refused(self.sender, "s155", condition=DISABLED)
        self.assertEqual(self.here(at("s155", "a")), [])
        self.send("s155b", *numbered(1))
        self.assertEqual(self.here(at("s155b", "on")), [1])
        self.refused(self.receiver, at("s155b", "off"), condition=DISABLED)

    def test_s156_a_full_topic_takes_messages_again(self):
        count = self.fill("s156")
        for name in ("a", "b"):
            self.take(at("s156", name), count)
        self.send("s156", *numbered(1))

    def test_s157_a_subscription_is_peeked(self):
        self.send("s157", *[Message(body=body, group_id="x") for body in range(1, 4)])
        receiver = self.receiver(at("s157", "a"))
        _, (_, deferred), (_, active) = self.receive(receiver, 3)
        self.defer(deferred)
        self.settle(active, Delivery.RELEASED)
        messages = Management(self, at("s157", "a")).peek()
        self.assertEqual([message.body for message in messages], [1, 2, 3])
        self.assertEqual([message.annotations.get("x-opt-message-state", 0) for message in messages], [0, 1, 0])
        management = Management(self, at("s157", "s"))
        self.assertEqual([message.body for message in management.peek(session="x")], [1, 2, 3])
        self.assertEqual(management.sessions(), ["x"])


# Subject, id, and properties of the messages of S162; where each arrives.
TABLE = [
    ("subject", "m-1", {"color": "red", "size": 1}, "eq in like exists or math sys user keyword"),
    ("other", "m-2", {"color": "red", "size": 5}, "eq between in like exists paren user"),
    ("subject", "x-3", {"color": "green", "size": 10}, "ne between in exists paren"),
    (None, "m-4", {"color": "blue", "size": 11, "urgent": True}, "ne gt notin exists or paren bool"),
    (None, "m-5", {"size": 1, "urgent": False}, "isnull exists or math"),
    (None, "m-6", {"color": "Red", "note": "50% off"}, "ne notin escape paren"),
    (None, "m-7", {"note": "500", "strange name": 1}, "isnull quoted"),
    (None, "m-8", {"color": "rust", "size": "20"}, "ne notin like exists paren"),
]
SQL_FILTERS = (
    "eq ne gt between in notin like escape isnull exists or paren math bool quoted sys user keyword"
).split()
CORRELATION_FILTERS = "id label mid to reply rsid sid type prop both".split()


class Rules(TestCase):
    def test_s161_a_subscription_without_a_rule_takes_all(self):
        self.send("s161", *numbered(2))
        there = {name: self.here(at("s161", name)) for name in ("all", "none", "every")}
        self.assertEqual(there, {"all": [1, 2], "none": [], "every": [1, 2]})

    def test_s162_sql_filters(self):
        for index, (subject, id, properties, _) in enumerate(TABLE):
            self.send("s162", Message(body=index + 1, subject=subject, id=id, properties=properties))
        for name in SQL_FILTERS:
            wanted = [index + 1 for index, row in enumerate(TABLE) if name in row[3].split()]
            self.assertEqual(self.here(at("s162", name)), wanted, name)

    def test_s163_correlation_filters(self):
        def message(body, mark: str, content_type: str, properties: dict) -> Message:
            return Message(
                body=body, correlation_id=f"c{mark}", subject=f"s{mark}", id=f"m{mark}", address=f"t{mark}",
                reply_to=f"r{mark}", reply_to_group_id=f"rs{mark}", group_id=f"x{mark}", content_type=content_type,
                properties=properties,
            )
        self.send(
            "s163", message(1, "1", "text/plain", {"color": "red", "size": 1}),
            message(2, "2", "text/html", {"color": "blue", "size": 2}), Message(body=3),
            Message(body=4, subject="S1", properties={"size": "1", "color": "red"}),
        )
        for name in CORRELATION_FILTERS:
            self.assertEqual(self.here(at("s163", name)), [1, 4] if name == "prop" else [1], name)

    def test_s164_an_action_changes_its_copy(self):
        self.send("s164", Message(body=1, subject="s", properties={"n": 1, "secret": "x"}))
        changed, _ = self.receive_one(self.receiver(at("s164", "act")))
        self.assertEqual(changed.subject, "changed")
        self.assertTrue(changed.properties.pop("RuleName"))
        self.assertEqual(changed.properties, {"urgent": "yes", "n": 2})
        same, _ = self.receive_one(self.receiver(at("s164", "plain")))
        self.assertEqual((same.subject, same.properties), ("s", {"n": 1, "secret": "x"}))

    def test_s165_rules_with_actions_make_copies(self):
        self.send("s165", *with_n(1, 2))
        received = [message for message, _ in self.available(self.receiver(at("s165", "five")))]
        ones = [message for message in received if message.body == 1]
        self.assertEqual([message.body for message in received].count(2), 1)
        marks = {(message.properties.get("source"), message.properties.get("RuleName")) for message in ones}
        self.assertEqual((len(ones), marks), (3, {(None, None), ("r4", "r4"), ("r5", "r5")}))
        self.assertEqual((len({number(each) for each in ones}), {origin(each) for each in ones}), (3, {1}))

    def test_s167_a_filter_that_fails(self):
        self.send("s167", Message(body="two", properties={"n": 2}), Message(body="zero", properties={"n": 0}), Message(body="none"))
        for name in ("strict", "lax"):
            self.assertEqual(self.here(at("s167", name)), ["two"])
        message, _ = self.receive_one(self.receiver(dead("s167", "strict")))
        self.assertEqual(message.body, "zero")
        self.assertTrue(message.properties["DeadLetterReason"] and message.properties["DeadLetterErrorDescription"])
        self.assertEqual(self.here(dead("s167", "lax")), [])

    def test_s168_rules_are_added_and_removed(self):
        management = Management(self, at("s168", "a"))
        [default] = management.rules()
        self.assertEqual(default.value[2], "$Default")
        management.ask("add-rule", management.add_rule("small", {"sql-filter": {"expression": "n < 10"}}, "SET size = 'small'"))
        management.ask("add-rule", management.add_rule("red", {"correlation-filter": {"properties": {"color": "red"}}}))
        management.ask("remove-rule", {"rule-name": "$Default"})
        rules = {rule.value[2]: rule.value for rule in management.rules()}
        self.assertEqual(set(rules), {"small", "red"})
        self.assertEqual(rules["small"][0].value[0], "n < 10")
        self.assertEqual(rules["small"][1].value[0], "SET size = 'small'")
        self.assertEqual(rules["red"][0].value[8], {"color": "red"})
        for rule in rules.values():
            self.assertIsInstance(rule[3], timestamp)
        self.send("s168", *with_n(1, 20), Message(body="red", properties={"n": 20, "color": "red"}))
        received = self.available(self.receiver(at("s168", "a")))
        self.assertEqual(bodies(received), [1, "red"])
        self.assertEqual(received[0][0].properties["size"], "small")

    def test_s169_a_rule_that_is_there_or_is_not(self):
        management = Management(self, at("s169", "a"))
        twice = management.add_rule("twice", {"sql-filter": {"expression": "n = 1"}})
        management.ask("add-rule", twice)
        management.refused("add-rule", twice, 409, "com.microsoft:entity-already-exists")
        management.refused("remove-rule", {"rule-name": "no-such"}, 404, "amqp:not-found")
        management.refused("add-rule", management.add_rule("bad", {"sql-filter": {"expression": "SELECT * FROM"}}), 400)
        management.refused("add-rule", management.add_rule("bad2", {"sql-filter": {"expression": "1=1"}}, "JUMP"), 400)
        self.assertEqual({rule.value[2] for rule in management.rules()}, {"$Default", "twice"})

    def test_s171_rules_by_hand(self):
        management = Management(self, at("s171", "a"))
        filter = {"sql-filter": {"expression": "1=1"}}
        management.ask("add-rule", management.add_rule("null", filter))
        empty = {"rule-name": "empty", "rule-description": {**filter, "sql-rule-action": {}}}
        management.ask("add-rule", empty)
        fields = ("correlation-id", "message-id", "to", "reply-to", "session-id", "reply-to-session-id", "content-type")
        correlation = {**{name: None for name in fields}, "label": "x", "properties": {}}
        management.ask("add-rule", management.add_rule("nulls", {"correlation-filter": correlation}))
        rules = management.rules()
        self.assertEqual(len(rules), 4)
        for rule in rules:
            self.assertEqual(rule.descriptor, ulong(0x13700000004))
            filter, action, name, created = rule.value
            self.assertIn(filter.descriptor, [ulong(code) for code in range(0x1370000006, 0x137000000A)])
            self.assertEqual((action.descriptor, action.value), (ulong(0x13700000005), []))
            self.assertEqual((type(name), type(created)), (str, timestamp))
        self.assertEqual(len(management.rules(1, 2)), 2)
        self.assertEqual(management.rules(4, 10), [])

    def test_s172_an_action_moves_a_message_to_a_session(self):
        self.send("s172", Message(body=1, group_id="x"))
        receiver = self.receiver(at("s172", "s"), InSession("moved"))
        self.assertEqual(bodies(self.receive(receiver, 1)), [1])


class Duplicates(TestCase):
    def ids(self, address: str) -> list:
        return [message.id for message in Management(self, address).peek()]

    def test_s181_an_id_is_taken_once(self):
        self.send("s181", *[Message(id="one", body=1)] * 5, Message(id="other", body=2))
        received = self.available(self.receiver("s181"))
        self.assertEqual((bodies(received), numbers(received)), ([1, 2], [1, 2]))

    def test_s182_an_id_is_remembered_for_a_while(self):
        receiver = self.receiver("s182/$DeadLetterQueue")
        for body, wait in ((1, 1), (2, 21), (3, 0)):
            self.send("s182", Message(id="same", body=body))
            if wait:
                self.nothing(receiver, wait)
        self.assertEqual(self.here("s182"), [1, 3])

    def test_s184_it_does_not_matter_what_became_of_the_first(self):
        messages = [Message(id=name, body=name) for name in ("completed", "deferred", "dead")]
        self.send("s184", *messages)
        receiver = self.receiver("s184")
        (_, completed), (_, deferred), (_, letter) = self.receive(receiver, 3)
        self.complete(completed)
        self.defer(deferred)
        self.dead_letter(letter, "why", "because")
        self.send("s184", *messages)
        self.nothing(receiver)

    def test_s185_without_an_id_nothing_is_a_duplicate(self):
        self.send("s185", *numbered(3))
        self.send("s185", Message(id="7", body="text"), Message(id=ulong(7), body="number"))
        self.assertEqual(self.here("s185")[:3], [1, 2, 3])
        self.assertIn("text", self.here("s185"))

    def test_s186_a_scheduled_message_counts(self):
        Management(self, "s186").schedule([Message(id="same", body="scheduled")], in_seconds(2))
        self.send("s186", Message(id="same", body="sent"))
        receiver = self.receiver("s186")
        self.assertEqual(bodies(self.receive(receiver, 1)), ["scheduled"])
        self.nothing(receiver)

    def test_s187_a_topic_finds_duplicates(self):
        self.send("s187", Message(id="same", body=1), Message(id="same", body=2))
        self.assertEqual([self.here(at("s187", name)) for name in ("a", "b")], [[1], [1]])

    def test_s189_sessions_do_not_matter_to_it(self):
        self.send("s189", Message(id="same", body=1, group_id="x"), Message(id="same", body=2, group_id="y"))
        self.assertEqual([message.group_id for message in Management(self, "s189").peek()], ["x"])


class Forwarding(TestCase):
    def dead_letters(self, queue: str) -> str:
        return f"{queue}/$DeadLetterQueue"

    def test_s191_a_queue_forwards(self):
        self.send("s191b", *numbered(2))
        self.send("s191", *[Message(body=body) for body in (3, 4, 5)])
        received = self.receive(self.receiver("s191b"), 5)
        self.assertEqual((bodies(received), numbers(received)), ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]))
        self.assertEqual([origin(message) for message, _ in received[2:]], [1, 2, 3])

    def test_s192_forwards_go_on(self):
        for index, queue in enumerate(("s192c", "s192b", "s192")):
            self.send(queue, Message(body=index))
            self.connection.wait(lambda: len(Management(self, "s192c").peek()) == index + 1, msg="forwarding")
        received = self.receive(self.receiver("s192c"), 3)
        self.assertEqual((bodies(received), origin(received[2][0])), ([0, 1, 2], 1))

    def test_s193_forwards_are_bounded(self):
        self.send("s193", Message(body="too far"))
        self.send("s193b", Message(body="far"))
        self.assertEqual(bodies(self.receive(self.receiver("s193f"), 1)), ["far"])
        message, _ = self.receive_one(self.receiver(self.dead_letters("s193e")))
        self.assertEqual(message.body, "too far")
        self.reason(message, "MaxTransferHopCountExceeded")

    def test_s194_nobody_receives_from_who_forwards(self):
        self.refused(self.receiver, "s194", condition=NOT_ALLOWED)
        request = {"from-sequence-number": 1, "message-count": int32(1)}
        Management(self, "s194").refused("peek-message", request, 400, NOT_ALLOWED)

    def test_s195_a_target_that_is_disabled(self):
        self.send("s195", *numbered(1))
        [(message, _)] = self.take(self.dead_letters("s195"), 1)
        self.assertTrue(message.properties["DeadLetterReason"])
        self.assertEqual(self.here(self.dead_letters("s195")), [])

    def test_s196_a_target_that_is_full(self):
        self.send("s196", *[Message(id=str(index), body=bytes(100 * 1024), inferred=True) for index in range(15)])
        there, left = [], []

        def all_are_somewhere() -> bool:
            there[:] = Duplicates.ids(self, "s196b")
            left[:] = Duplicates.ids(self, self.dead_letters("s196"))
            return len(there) + len(left) >= 15

        self.connection.wait(all_are_somewhere, msg="forwarding")
        self.assertEqual(sorted(there + left, key=int), [str(index) for index in range(15)])
        self.assertTrue(there and left)

    def test_s197_a_subscription_forwards(self):
        self.send("s197", *with_n(1, 2, 3))
        received = self.receive(self.receiver("s197b"), 2)
        self.assertEqual((bodies(received), numbers(received)), ([2, 3], [1, 2]))
        self.assertEqual([origin(message) for message, _ in received], [2, 3])

    def test_s198_a_queue_forwards_to_a_topic(self):
        self.send("s198", *[Message(body=color, properties={"color": color}) for color in ("red", "blue")])
        self.assertEqual(bodies(self.receive(self.receiver(at("s198b", "all")), 2)), ["red", "blue"])
        self.assertEqual(self.here(at("s198b", "red")), ["red"])

    def test_s199_dead_letters_are_forwarded(self):
        self.send("s199", Message(body="dead"), Message(body="abandoned"), Message(body="expired", ttl=1))
        receiver = self.receiver("s199")
        (_, dead_one), (_, abandoned) = self.receive(receiver, 2)
        self.dead_letter(dead_one, "why", "because")
        self.abandon(abandoned)
        received = self.receive(self.receiver("s199b"), 3)
        reasons = {message.body: message.properties["DeadLetterReason"] for message, _ in received}
        self.assertEqual(reasons, {"dead": "why", "abandoned": "MaxDeliveryCountExceeded", "expired": "TTLExpiredException"})
        self.assertEqual({message.annotations["x-opt-deadletter-source"] for message, _ in received}, {"s199"})
        self.assertEqual(numbers(received), [1, 2, 3])
        self.refused(self.receiver, "s199/$DeadLetterQueue", condition=NOT_ALLOWED)

    def test_s200_dead_letters_of_a_subscription_are_forwarded(self):
        self.send("s200", *numbered(1))
        _, delivery = self.receive_one(self.receiver(at("s200", "a")))
        self.dead_letter(delivery, "why", "because")
        message, _ = self.receive_one(self.receiver("s200b"))
        self.reason(message, "why")
        self.assertIn("s200", message.annotations["x-opt-deadletter-source"])

    def test_s201_scheduled_messages_are_forwarded_when_due(self):
        management, when = Management(self, "s201"), in_seconds(3)
        _, gone = management.schedule([Message(body="kept"), Message(body="gone")], when)
        management.cancel(gone)
        receiver = self.receiver("s201b")
        message, _ = self.receive_one(receiver)
        self.assertEqual(message.body, "kept")
        self.assertGreaterEqual(in_seconds(0), when)
        self.assertEqual(self.available(receiver), [])

    def test_s202_a_target_with_sessions(self):
        self.send("s202", Message(body="x", group_id="x"), Message(body="none"))
        self.assertEqual(bodies(self.receive(self.receiver("s202b", InSession("x")), 1)), ["x"])
        letters = Management(self, self.dead_letters("s202"))
        self.connection.wait(letters.peek, msg="dead letter")
        self.assertEqual([message.body for message in letters.peek()], ["none"])

    def test_s203_a_target_that_finds_duplicates(self):
        same = Message(id="same", body=1)
        self.send("s203", same, same)
        receiver = self.receiver("s203b")
        self.assertEqual(bodies(self.receive(receiver, 1)), [1])
        self.send("s203b", same)
        self.nothing(receiver)


def partition(message: Message) -> int:
    return number(message) >> 48


def keyed(key: str, *words, **more) -> list[Message]:
    messages = [Message(body=word, **more) for word in words]
    for message in messages:
        message.annotations = {symbol("x-opt-partition-key"): key}
    return messages


class Partitions(TestCase):
    def by_key(self, address: str) -> dict[str, list[Message]]:
        received = [message for message, _ in self.available(self.receiver(address))]
        keys = {message.annotations["x-opt-partition-key"] for message in received}
        return {key: [each for each in received if each.annotations["x-opt-partition-key"] == key] for key in keys}

    def in_one(self, messages: list[Message]) -> None:
        [where] = {partition(message) for message in messages}
        self.assertTrue(0 <= where <= 15)

    def test_s211_a_key_is_in_one_partition(self):
        for index in range(5):
            self.send("s211", *keyed("k", index), *keyed("j", index))
        found = self.by_key("s211")
        self.assertEqual(set(found), {"k", "j"})
        for messages in found.values():
            self.in_one(messages)
            self.assertEqual([message.body for message in messages], list(range(5)))
        if partition(found["k"][0]) != partition(found["j"][0]):
            for messages in found.values():
                first = number(messages[0])
                self.assertEqual([number(message) for message in messages], list(range(first, first + 5)))

    def test_s212_a_session_is_in_one_partition(self):
        for index in range(3):
            self.send("s212", *[Message(body=index, group_id=f"x{session}") for session in range(5)])
        for session in range(5):
            received = self.available(self.receiver("s212", InSession(f"x{session}")))
            self.assertEqual(bodies(received), [0, 1, 2])
            self.in_one([message for message, _ in received])
        with self.assertRaises(SendException):
            self.send("s212", *keyed("y", 1, group_id="x"))

    def test_s213_without_a_key_partitions_take_turns(self):
        self.send("s213", *numbered(100))
        management = Management(self, "s213")
        found: list[Message] = []
        while page := management.peek(number(found[-1]) + 1 if found else 1, 30):
            found += page
        self.assertEqual(sorted(message.body for message in found), list(range(1, 101)))
        self.assertGreater(len({partition(message) for message in found}), 1)
        received = self.receive(self.receiver("s213"), 100)
        self.assertEqual(sorted(bodies(received)), list(range(1, 101)))
        by_partition = {partition(message): (message, delivery) for message, delivery in received}
        for message, delivery in by_partition.values():
            self.defer(delivery)
            [(again, token)] = management.by_number(number(message))
            self.assertEqual(again.body, message.body)
            management.settle("suspended", token)
        letters = self.receive(self.receiver("s213/$DeadLetterQueue"), len(by_partition))
        self.assertEqual(sorted(bodies(letters)), sorted(message.body for message, _ in by_partition.values()))
        for numbers_of_them in [management.schedule([Message(body=0)], in_seconds(3600)) for _ in range(4)]:
            management.cancel(*numbers_of_them)

    def test_s214_duplicates_are_of_one_key(self):
        one = Message(id="1", body=1)
        self.send("s214", one, one, *keyed("k", 2, 2, id="2"), *keyed("j", 3, id="2"))
        self.assertEqual(sorted(self.here("s214")), [1, 2, 3])

    def test_s216_a_topic_has_partitions(self):
        for index in range(5):
            self.send("s216", *keyed("k", index), *keyed("j", index))
        found = self.by_key(at("s216", "a"))
        for key in ("k", "j"):
            self.in_one(found[key])
            self.assertEqual([message.body for message in found[key]], list(range(5)))
