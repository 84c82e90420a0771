import uuid
from concurrent.futures import ThreadPoolExecutor

from proton import Data, Delivery, Message, int32, timestamp, ulong
from proton.utils import SyncRequestResponse

from client import (
    TestCase, bodies, connect, counts, now, number, numbered, numbers, stamp, unique_name,
)
from management import Management, in_seconds, token_of


class Settling(TestCase):
    def test_s03_names_do_not_depend_on_case(self):
        self.send("S03", *numbered(1))
        self.assertEqual(bodies(self.receive(self.receiver("s03"), 1)), [1])

    def test_s13_two_senders_two_thousand_messages(self):
        senders = [self.sender("s13") for _ in range(2)]
        deliveries = []
        for index in range(1, 1001):
            for name, sender in zip("ab", senders):
                self.connection.wait(lambda: sender.link.credit > 0, msg="credit")
                deliveries.append(sender.link.send(Message(body=[name, index])))
        self.connection.wait(lambda: all(delivery.settled for delivery in deliveries), msg="settlement of all")
        self.assertEqual({delivery.remote_state for delivery in deliveries}, {Delivery.ACCEPTED})
        receiver = self.receiver("s13")
        seen = {"a": [], "b": []}
        receiver.link.flow(100)
        for _ in range(2000):
            message, delivery = self.receive_one(receiver)
            seen[message.body[0]].append(message.body[1])
            delivery.update(delivery.ACCEPTED)
            delivery.settle()
            receiver.link.flow(1)
        self.assertEqual(seen, {"a": list(range(1, 1001)), "b": list(range(1, 1001))})
        receiver.close()
        self.assertEqual(self.here("s13"), [])

    def test_s15_numbers_begin_with_one_and_have_no_gap(self):
        self.send("s15", *numbered(7))
        self.assertEqual(numbers(self.receive(self.receiver("s15"), 7)), list(range(1, 8)))

    def test_s16_the_enqueued_time_is_that_of_the_send(self):
        before = now()
        self.send("s16", *numbered(1))
        after = now()
        receiver = self.receiver("s16")
        first, delivery = self.receive_one(receiver)
        self.assertTrue(before - 1 <= stamp(first, "enqueued-time") <= after + 1)
        self.abandon(delivery)
        again, _ = self.receive_one(receiver)
        self.assertEqual(stamp(again, "enqueued-time"), stamp(first, "enqueued-time"))
        self.assertEqual(number(again), number(first))

    def test_s17_a_message_carries_what_the_broker_knows_of_it(self):
        self.send("s17", Message(body=1, ttl=600))
        message, delivery = self.receive_one(self.receiver("s17"))
        self.assertEqual((number(message), message.delivery_count, message.ttl), (1, 0, 600))
        self.assertAlmostEqual(stamp(message, "locked-until"), now() + 30, delta=3)
        self.assertAlmostEqual(message.expiry_time, stamp(message, "enqueued-time") + 600, delta=0.01)
        self.assertEqual(message.annotations.get("x-opt-message-state", 0), 0)
        # Proton's client cannot read a delivery tag that is no text, so not that it is the token.
        self.assertIsInstance(token_of(message), uuid.UUID)

    def test_s24_deliveries_are_counted_and_bounded(self):
        self.send("s24", *numbered(1))
        receiver = self.receiver("s24")
        for count in range(3):
            message, delivery = self.receive_one(receiver)
            self.assertEqual(message.delivery_count, count)
            self.abandon(delivery)
        self.assertEqual(self.available(receiver), [])
        message, _ = self.receive_one(self.receiver("s24/$DeadLetterQueue"))
        self.reason(message, "MaxDeliveryCountExceeded", "Message could not be consumed after 3 delivery attempts.")

    def test_s25_one_delivery_is_enough(self):
        self.send("s25", *numbered(1))
        _, delivery = self.receive_one(self.receiver("s25"))
        self.abandon(delivery)
        self.assertEqual(bodies(self.receive(self.receiver("s25/$DeadLetterQueue"), 1)), [1])

    def test_s26_a_lock_ends(self):
        self.send("s26", *numbered(1))
        receiver = self.receiver("s26")
        first, old = self.receive_one(receiver)
        began = now()
        again, new = self.receive_one(receiver)
        self.assertGreaterEqual(now() - began, 4)
        self.assertEqual(again.delivery_count, 1)
        self.assertNotEqual(token_of(first), token_of(again))
        self.lost(old)
        self.complete(new)

    def test_s27_a_lock_is_renewed(self):
        self.send("s27", *numbered(1))
        receiver, other = self.receiver("s27"), self.receiver("s27")
        message, delivery = self.receive_one(receiver)
        management = Management(self, "s27", link=receiver.link.name)
        last = 0
        for _ in range(4):
            self.nothing(other, 2)
            [until] = management.renew(token_of(message))
            self.assertGreater(until, last)
            self.assertAlmostEqual(until / 1000, now() + 5, delta=2)
            last = until
        self.complete(delivery)
        self.nothing(other)

    def test_s28_a_lock_that_is_gone_is_not_renewed(self):
        self.send("s28", *numbered(2))
        receiver = self.receiver("s28")
        (done, delivery), (left, _) = self.receive(receiver, 2)
        self.complete(delivery)
        management = Management(self, "s28")
        management.renew_fails(token_of(done))
        again, _ = self.receive_one(receiver)
        self.assertEqual(again.body, 2)
        management.renew_fails(token_of(left))
        management.renew_fails(uuid.uuid4())

    def test_s34_a_message_comes_to_who_waits(self):
        receiver = self.receiver("s34")

        def elsewhere():
            connection = connect()
            connection.create_sender("s34", name=unique_name()).send(Message(body="late"))
            at = now()
            connection.close()
            return at

        self.nothing(receiver)
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(elsewhere)
            message, _ = self.receive_one(receiver)
            arrived = now()
        self.assertEqual(message.body, "late")
        self.assertLess(arrived - sent.result(), 2)

    def test_s38_dead_letters_are_messages_too(self):
        self.send("s38", *numbered(3))
        for _, delivery in self.receive(self.receiver("s38"), 3):
            self.dead_letter(delivery, "why", "because")
        management = Management(self, "s38/$DeadLetterQueue")
        for _ in range(2):
            self.assertEqual([message.body for message in management.peek()], [1, 2, 3])
        receiver = self.receiver("s38/$DeadLetterQueue")
        (_, completed), (_, abandoned), (deferred, third) = self.receive(receiver, 3)
        self.complete(completed)
        self.abandon(abandoned)
        self.defer(third)
        again, delivery = self.receive_one(receiver)
        self.assertEqual(again.body, 2)
        self.complete(delivery)
        [(message, token)] = management.by_number(number(deferred))
        self.assertEqual(message.body, 3)
        management.settle("completed", token)
        self.assertEqual(management.peek(), [])

    def test_s39_nobody_sends_to_a_dead_letter_queue(self):
        self.refused(self.sender, "s39/$DeadLetterQueue", condition="amqp:not-allowed")

    def test_s40_nothing_expires_in_a_dead_letter_queue(self):
        self.send("s40", *numbered(1))
        _, delivery = self.receive_one(self.receiver("s40"))
        self.dead_letter(delivery, "why", "because")
        receiver = self.receiver("s40/$DeadLetterQueue")
        _, delivery = self.receive_one(receiver)
        self.nothing(receiver, 4)
        for _ in range(12):
            self.abandon(delivery)
            message, delivery = self.receive_one(receiver)
        self.assertEqual(message.body, 1)

    def test_s41_an_expired_message_is_gone(self):
        self.send("s41", Message(body="short", ttl=1), Message(body="long"))
        dead = self.receiver("s41/$DeadLetterQueue")
        self.nothing(dead, 2)
        self.assertEqual(self.here("s41"), ["long"])
        self.nothing(dead)

    def test_s42_an_expired_message_is_a_dead_letter(self):
        self.send("s42", Message(body="short", ttl=1))
        message, _ = self.receive_one(self.receiver("s42/$DeadLetterQueue"))
        self.reason(message, "TTLExpiredException", "The message expired and was dead lettered.")
        self.assertEqual(self.here("s42"), [])

    def test_s43_a_queue_has_a_longest_time_to_live(self):
        self.send("s43", Message(body="none"), Message(body="hour", ttl=3600))
        receiver = self.receiver("s43")
        received = self.receive(receiver, 2)
        self.assertEqual([message.ttl for message, _ in received], [2, 2])
        for _, delivery in received:
            self.settle(delivery, Delivery.RELEASED)
        receiver.close()
        dead = self.receive(self.receiver("s43/$DeadLetterQueue"), 2)
        self.assertEqual(sorted(bodies(dead)), ["hour", "none"])

    def test_s44_a_locked_message_may_be_settled_after_its_time(self):
        self.send("s44", Message(body="short", ttl=1))
        receiver = self.receiver("s44")
        _, delivery = self.receive_one(receiver)
        self.nothing(receiver, 2)
        self.complete(delivery)

    def test_s45_a_message_is_scheduled(self):
        management = Management(self, "s45")
        when = in_seconds(3)
        self.assertEqual(management.schedule([Message(body="later")], when), [1])
        message, _ = self.receive_one(self.receiver("s45"))
        self.assertTrue(when / 1000 - 0.01 <= now() <= when / 1000 + 3)
        self.assertEqual((message.body, number(message)), ("later", 2))
        self.assertGreaterEqual(stamp(message, "enqueued-time") * 1000, when)
        self.assertEqual(message.annotations["x-opt-scheduled-enqueue-time"], when)

    def test_s46_ten_are_scheduled_at_once(self):
        management = Management(self, "s46")
        self.assertEqual(management.schedule(numbered(10), in_seconds(2)), list(range(1, 11)))
        received = self.receive(self.receiver("s46"), 10)
        self.assertEqual((bodies(received), numbers(received)), (list(range(1, 11)), list(range(11, 21))))

    def test_s47_a_message_may_bring_its_time(self):
        message, when = Message(body="later"), in_seconds(3)
        message.annotations = {"x-opt-scheduled-enqueue-time": timestamp(when)}
        self.send("s47", message)
        self.assertEqual(self.here("s47"), [])
        self.assertEqual(bodies(self.receive(self.receiver("s47"), 1)), ["later"])
        self.assertGreaterEqual(now(), when / 1000 - 0.01)

    def test_s48_a_scheduled_message_is_peeked(self):
        management, when = Management(self, "s48"), in_seconds(3600)
        [number_of_it] = management.schedule([Message(body="later")], when)
        [message] = management.peek()
        self.assertEqual((number(message), message.annotations.get("x-opt-message-state", 0)), (number_of_it, 2))
        self.assertEqual(message.annotations["x-opt-scheduled-enqueue-time"], when)

    def test_s49_scheduled_messages_are_cancelled(self):
        management = Management(self, "s49")
        one, two, three = management.schedule(numbered(3), in_seconds(3))
        management.cancel(one)
        management.cancel(two, three)
        self.assertEqual(management.peek(), [])
        self.nothing(self.receiver("s49"), 4)

    def test_s50_what_has_come_is_not_cancelled(self):
        management = Management(self, "s50")
        [number_of_it] = management.schedule([Message(body="soon")], in_seconds(1))
        _, delivery = self.receive_one(self.receiver("s50"))
        self.abandon(delivery)
        management.cancel_fails(number_of_it)
        self.assertEqual(len(management.peek()), 1)

    def test_s51_a_time_in_the_past_is_now(self):
        numbers_of_it = Management(self, "s51").schedule([Message(body="at once")], in_seconds(-60))
        self.assertEqual(len(numbers_of_it), 1)
        self.assertEqual(bodies(self.receive(self.receiver("s51"), 1)), ["at once"])

    def test_s52_what_is_not_scheduled_is_not_cancelled(self):
        management = Management(self, "s52")
        management.cancel_fails(4711)
        [number_of_it] = management.schedule([Message(body="later")], in_seconds(3600))
        management.cancel(number_of_it)
        management.cancel_fails(number_of_it)


class Deferring(TestCase):
    def deferred(self, queue: str, count: int) -> list[int]:
        """Sends messages, and defers them."""
        self.send(queue, *numbered(count))
        receiver = self.receiver(queue)
        received = self.receive(receiver, count)
        for _, delivery in received:
            self.defer(delivery)
        receiver.close()
        return numbers(received)

    def test_s53_deferred_messages_are_received_by_number(self):
        one, two, three = self.deferred("s53", 3)
        self.assertEqual(self.here("s53"), [])
        management = Management(self, "s53")
        received = management.by_number(one) + management.by_number(two, three)
        self.assertEqual([number(message) for message, _ in received], [one, two, three])
        for message, token in received:
            self.assertEqual(message.annotations.get("x-opt-message-state", 0), 1)
            self.assertGreater(stamp(message, "locked-until"), now())
            management.settle("completed", token)
        self.assertEqual(management.peek(), [])

    def test_s54_deferred_messages_are_received_and_deleted(self):
        wanted = self.deferred("s54", 2)
        management = Management(self, "s54")
        self.assertEqual([message.body for message, _ in management.by_number(*wanted, mode=0)], [1, 2])
        self.assertEqual(management.peek(), [])

    def test_s55_all_that_is_asked_for_or_nothing(self):
        self.assertEqual(self.deferred("s55", 3), [1, 2, 3])
        management = Management(self, "s55")
        management.by_number_fails(3, 4)
        management.by_number_fails(5, 6, 7)
        management.by_number(1)
        management.by_number_fails(1)
        self.assertEqual([message.body for message, _ in management.by_number(3)], [3])

    def test_s56_a_deferred_message_has_every_outcome(self):
        wanted = self.deferred("s56", 3)
        management = Management(self, "s56")
        (_, one), (_, two), (_, three) = management.by_number(*wanted)
        management.settle("abandoned", one)
        management.settle("suspended", two, deadletter_reason="why", deadletter_description="because")
        management.renew(three)
        management.settle("defered", three)
        self.assertEqual(self.here("s56"), [])
        again = management.by_number(wanted[0], wanted[2])
        self.assertEqual([message.body for message, _ in again], [1, 3])
        message, _ = self.receive_one(self.receiver("s56/$DeadLetterQueue"))
        self.assertEqual(message.body, 2)
        self.reason(message, "why", "because")

    def test_s57_a_deferred_message_is_peeked(self):
        wanted = self.deferred("s57", 1)
        [message] = Management(self, "s57").peek()
        self.assertEqual(([number(message)], message.annotations.get("x-opt-message-state", 0)), (wanted, 1))

    def test_s58_a_deferred_message_does_not_expire(self):
        self.send("s58", Message(body="short", ttl=2))
        message, delivery = self.receive_one(self.receiver("s58"))
        self.defer(delivery)
        self.nothing(self.receiver("s58/$DeadLetterQueue"), 4)
        [(again, _)] = Management(self, "s58").by_number(number(message))
        self.assertEqual(again.body, "short")

    def test_s59_a_message_is_deferred_with_properties(self):
        self.send("s59", *numbered(1))
        message, delivery = self.receive_one(self.receiver("s59"))
        self.defer(delivery, {"attempt": 1})
        [(again, _)] = Management(self, "s59").by_number(number(message))
        self.assertEqual(again.properties, {"attempt": 1})


class Peeking(TestCase):
    def test_s60_peek_shows_all_and_changes_nothing(self):
        management = Management(self, "s60")
        self.send("s60", *numbered(3))
        receiver = self.receiver("s60")
        (_, active), _, (_, deferred) = self.receive(receiver, 3)
        self.settle(active, Delivery.RELEASED)
        self.defer(deferred)
        management.schedule([Message(body=4)], in_seconds(3600))
        for _ in range(2):
            messages = management.peek()
            self.assertEqual([message.body for message in messages], [1, 2, 3, 4])
            states = [message.annotations.get("x-opt-message-state", 0) for message in messages]
            self.assertEqual(states, [0, 0, 1, 2])
            for message in messages:
                self.assertNotIn("x-opt-locked-until", message.annotations)
                self.assertNotIn("x-opt-lock-token", message.instructions or {})
        received = self.receive(receiver, 1)
        self.assertEqual((bodies(received), counts(received)), ([1], [0]))

    def test_s61_peek_begins_where_it_is_told(self):
        self.send("s61", *numbered(10))
        management = Management(self, "s61")
        self.assertEqual([message.body for message in management.peek(4, 3)], [4, 5, 6])
        self.assertEqual([message.body for message in management.peek(7, 3)], [7, 8, 9])
        self.assertEqual([message.body for message in management.peek(10, 3)], [10])
        self.assertEqual(management.peek(11, 3), [])

    def test_s62_an_empty_queue_is_peeked(self):
        self.assertEqual(Management(self, "s62").peek(), [])

    def test_s63_many_messages_are_peeked_in_pages(self):
        sender = self.sender("s63")
        deliveries = []
        for index in range(600):
            self.connection.wait(lambda: sender.link.credit > 0, msg="credit")
            deliveries.append(sender.link.send(Message(id=str(index), body=bytes(1024), inferred=True)))
        self.connection.wait(lambda: all(delivery.settled for delivery in deliveries), msg="settlement of all")
        management, found = Management(self, "s63"), []
        while page := management.peek(found[-1] + 1 if found else 1, 100):
            found += [number(message) for message in page]
        self.assertEqual(found, list(range(1, 601)))


class Entities(TestCase):
    DISABLED = "com.microsoft:entity-disabled"

    def test_s64_sending_is_disabled(self):
        self.refused(self.sender, "s64", condition=self.DISABLED)
        self.assertEqual(self.here("s64"), [])

    def test_s65_receiving_is_disabled(self):
        self.send("s65", *numbered(1))
        self.refused(self.receiver, "s65", condition=self.DISABLED)

    def test_s66_all_is_disabled(self):
        for create in (self.sender, self.receiver):
            self.refused(create, "s66", condition=self.DISABLED)


class ByHand(TestCase):
    def test_s68_an_unknown_operation_is_not_implemented(self):
        management = Management(self, "s68")
        management.refused("dance", {}, 501, "amqp:not-implemented")
        self.assertEqual(management.peek(), [])

    def test_s69_a_malformed_request_is_refused(self):
        management = Management(self, "s69")
        answers = [
            management.send_request("peek-message", {"from-sequence-number": 1}),
            management.send_request("renew-lock", {"lock-tokens": "text"}),
            management.send_request("peek-message", "no map"),
            management.ask_raw({"something": "else"}, {}),
        ]
        for answer in answers:
            self.assertEqual(answer.properties["statusCode"], 400)
            self.assertTrue(answer.properties["errorCondition"] and answer.properties["statusDescription"])
        self.assertEqual(management.peek(), [])

    def test_s70_messages_are_deleted_in_batches(self):
        self.send("s70", *numbered(5))
        management = Management(self, "s70")
        for wanted, done in ((3, 3), (100, 2)):
            body = {"message-count": int32(wanted), "enqueued-time-utc": timestamp(in_seconds(1))}
            self.assertEqual(management.ask("batch-delete-messages", body).body["message-count"], done)
        self.assertEqual(management.peek(), [])

    def test_s351_answers_come_to_a_dynamic_node(self):
        self.send("s351", *numbered(1))
        client = SyncRequestResponse(self.connection, "s351/$management")
        for first, found in ((1, 1), (2, 0)):
            request = Message(properties={"operation": "com.microsoft:peek-message"}, body={"from-sequence-number": first, "message-count": int32(5)})
            answer = client.call(request)
            self.assertEqual(answer.properties["statusCode"], 200 if found else 204)
            self.assertEqual(len((answer.body or {}).get("messages", [])), found)

    def test_s71_operations_take_numbers_and_lists_of_any_kind(self):
        management = Management(self, "s71")
        [first, second] = management.schedule(numbered(2), in_seconds(3600))
        management.ask("cancel-scheduled-message", {"sequence-numbers": [int32(first), ulong(second)]})
        self.send("s71", *numbered(4))
        received = self.receive(self.receiver("s71"), 4)
        tokens = [token_of(message) for message, _ in received]
        answer = management.ask("renew-lock", {"lock-tokens": tokens}).body["expirations"]
        self.assertEqual((answer.type, len(answer.elements)), (Data.TIMESTAMP, 4))
        for status, token in zip(("completed", "abandoned", "defered", "suspended"), tokens):
            management.ask("update-disposition", {"disposition-status": status, "lock-tokens": [token]})
        deferred = number(received[2][0])
        body = {"sequence-numbers": [ulong(deferred)], "receiver-settle-mode": int32(1)}
        [entry] = management.ask("receive-by-sequence-number", body).body["messages"]
        management.settle("completed", entry["lock-token"])
        body = {"from-sequence-number": int32(1), "message-count": 100}
        [entry] = management.ask("peek-message", body).body["messages"]
        self.assertEqual(bodies(self.receive(self.receiver("s71/$DeadLetterQueue"), 1)), [4])
