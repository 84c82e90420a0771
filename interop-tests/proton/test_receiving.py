from proton import Delivery, Endpoint, Message, symbol

from client import (
    AT_MOST_ONCE, RECEIVER_FIRST, RECEIVER_SECOND, TestCase, bodies, connect, counts, dead_letter, numbered, unique_name,
)

# A frame with room for one of the messages that fill a window.
FRAME_BYTES = 1024


class Receiving(TestCase):
    def test_s18_a_locked_message_is_nobody_elses(self):
        self.send("s18", *numbered(1))
        _, delivery = self.receive_one(self.receiver("s18"))
        other = self.receiver("s18")
        self.assertEqual(self.available(other), [])
        self.settle(delivery, Delivery.ACCEPTED)
        self.assertEqual(self.available(other), [])

    def test_s19_settled_deliveries_are_gone(self):
        self.send("s19", *numbered(3))
        receiver = self.receiver("s19", AT_MOST_ONCE)
        self.assertEqual(receiver.link.remote_snd_settle_mode, receiver.link.SND_SETTLED)
        received = self.receive(receiver, 3)
        self.assertEqual(bodies(received), [1, 2, 3])
        self.assertEqual([delivery for _, delivery in received], [None] * 3)
        self.assertEqual(self.available(self.receiver("s19")), [])

    def test_s20_a_modified_message_comes_again_before_the_next(self):
        self.send("s20", *numbered(2))
        receiver = self.receiver("s20")
        _, delivery = self.receive_one(receiver)
        delivery.local.failed = True
        self.settle(delivery, Delivery.MODIFIED)
        received = self.receive(receiver, 2)
        self.assertEqual((bodies(received), counts(received)), ([1, 2], [1, 0]))

    def test_s21_modified_with_annotations_changes_application_properties(self):
        self.send("s21", *numbered(1))
        receiver = self.receiver("s21")
        _, delivery = self.receive_one(receiver)
        delivery.local.annotations = {symbol("attempt"): 1}
        self.settle(delivery, Delivery.MODIFIED)
        message, _ = self.receive_one(receiver)
        self.assertEqual(message.properties, {"attempt": 1})

    def test_s22_a_rejected_message_is_dead_lettered_with_its_reason(self):
        self.send("s22", *numbered(1))
        receiver = self.receiver("s22")
        _, delivery = self.receive_one(receiver)
        delivery.local.condition = dead_letter("why", "because")
        self.settle(delivery, Delivery.REJECTED)
        self.assertEqual(self.available(receiver), [])
        message, _ = self.receive_one(self.receiver("s22/$DeadLetterQueue"))
        self.assertEqual(message.body, 1)
        self.assertEqual(message.properties, {"DeadLetterReason": "why", "DeadLetterErrorDescription": "because"})

    def test_s23_a_message_is_rejected_without_a_reason(self):
        self.send("s23", *numbered(1))
        _, delivery = self.receive_one(self.receiver("s23"))
        self.settle(delivery, Delivery.REJECTED)
        self.assertEqual(bodies(self.receive(self.receiver("s23/$DeadLetterQueue"), 1)), [1])

    def test_s31_what_a_closed_connection_held_comes_back_when_its_lock_ends(self):
        self.send("s31", *numbered(3))
        other = connect()
        self.receive_one(self.receiver("s31", connection=other))
        other.close()
        receiver = self.receiver("s31")
        self.assertEqual(bodies(self.available(receiver)), [2, 3])
        received = self.receive(receiver, 1)
        self.assertEqual((bodies(received), counts(received)), ([1], [1]))

    def test_s32_released_messages_are_there_at_once_and_count_nothing(self):
        self.send("s32", *numbered(2))
        for _, delivery in self.receive(self.receiver("s32"), 2):
            self.settle(delivery, Delivery.RELEASED)
        received = self.available(self.receiver("s32"))
        self.assertEqual((bodies(received), counts(received)), ([1, 2], [0, 0]))

    def test_s33_a_drain_on_an_empty_queue_ends_the_credit(self):
        receiver = self.receiver("s33")
        for _ in range(10):
            self.assertEqual(self.available(receiver, 10), [])
            self.assertEqual(receiver.link.credit, 0)
        self.send("s33", *numbered(1))
        self.assertEqual(bodies(self.receive(receiver, 1)), [1])

    def test_s35_two_receivers_share_a_queue(self):
        self.send("s35", *numbered(20))
        receivers = [self.receiver("s35"), self.receiver("s35")]
        seen = []
        for _ in range(10):
            for receiver in receivers:
                message, delivery = self.receive_one(receiver)
                seen.append(message.body)
                self.settle(delivery, Delivery.ACCEPTED)
        self.assertEqual(sorted(seen), list(range(1, 21)))

    def test_s36_a_drain_brings_no_more_than_the_credit(self):
        self.send("s36", *numbered(10))
        receiver = self.receiver("s36")
        self.assertEqual(bodies(self.available(receiver, 4)), [1, 2, 3, 4])
        self.assertEqual(bodies(self.available(receiver, 100)), list(range(5, 11)))

    def test_s37_receivers_settle_first_or_second(self):
        self.send("s37", *numbered(20))
        first = self.receiver("s37", RECEIVER_FIRST)
        second = self.receiver("s37", RECEIVER_SECOND)
        self.assertEqual(first.link.remote_rcv_settle_mode, first.link.RCV_FIRST)
        self.assertEqual(second.link.remote_rcv_settle_mode, second.link.RCV_SECOND)
        for _, delivery in reversed(self.receive(first, 10)):
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
        for _, delivery in reversed(self.receive(second, 10)):
            self.settle(delivery, Delivery.ACCEPTED)
        self.assertEqual(self.available(self.receiver("s37")), [])

    def test_s331_what_a_window_kept_back_is_available_at_once_and_not_counted(self):
        for end in ("link", "session", "connection"):
            self.send("s331", *(Message(body=number, properties={"padding": "x" * 500}) for number in range(1, 11)))
            # A client with room for two frames, which reads neither.
            other = self.other(max_frame_size=FRAME_BYTES)
            session = other.conn.session()
            session.incoming_capacity = 2 * FRAME_BYTES
            session.open()
            link = session.receiver(unique_name())
            link.source.address = "s331"
            link.open()
            link.flow(1_000)
            other.wait(lambda: link.queued == 2, msg="a full window")
            receiver = self.receiver("s331")
            self.assertEqual(self.available(receiver), [])
            ended = {"link": link, "session": session, "connection": other.conn}[end]
            ended.close()
            other.wait(lambda: ended.state & Endpoint.REMOTE_CLOSED, msg=f"the end of the {end}")
            received = self.receive(receiver, 8)
            self.assertEqual((bodies(received), counts(received)), (list(range(3, 11)), [0] * 8), end)
            for _, delivery in received:
                self.complete(delivery)
            # What was sent is locked until its lock ends.
            received = self.receive(receiver, 2)
            self.assertEqual((bodies(received), counts(received)), ([1, 2], [1, 1]), end)
            for _, delivery in received:
                self.complete(delivery)
            receiver.close()
