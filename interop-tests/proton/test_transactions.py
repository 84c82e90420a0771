from proton import Delivery, Described, Message, Timeout, symbol, ulong
from proton.handlers import TransactionHandler
from proton.reactor import Transaction

from client import InSession, TestCase, bodies, connect, counts, numbered, numbers, unique_name
from management import Management, disposition, in_seconds

TRANSACTIONAL = 0x34
UNKNOWN = "amqp:transaction:unknown-id"
# Milliseconds since 1970: when nothing that is scheduled comes.
FAR = 4_000_000_000_000


class Outcomes(TransactionHandler):
    """Notes what the broker says to each declare and discharge."""

    def __init__(self):
        self.said = []
        self.condition = None

    def on_transaction_declared(self, event):
        self.said.append("declared")

    def on_transaction_declare_failed(self, event):
        self._failed("not declared", event)

    def on_transaction_committed(self, event):
        self.said.append("committed")

    def on_transaction_aborted(self, event):
        self.said.append("aborted")

    def on_transaction_commit_failed(self, event):
        self._failed("not committed", event)

    def _failed(self, what, event):
        self.condition = event.delivery.remote.condition.name
        self.said.append(what)


class Working(TestCase):
    """A test that works in transactions."""

    def begin(self, connection=None, **options) -> Transaction:
        """A transaction that the broker has declared; Proton names descriptors by symbols."""
        connection = connection or self.connection
        outcomes = Outcomes()
        transaction = connection.container.declare_transaction(connection.conn, outcomes, **options)
        connection.wait(lambda: outcomes.said, msg="declare")
        self.assertEqual(outcomes.said, ["declared"])
        self.assertTrue(1 <= len(transaction.id) <= 32)
        return transaction

    def coordinate(self):
        """Attaches the coordinator: in transactions, links that come after it send by way of the first one's entity."""
        self.abort(self.begin())

    def there(self, address: str) -> list:
        """What is available at an entity that is not the transactions': their AMQP session receives from none but that."""
        other = connect()
        try:
            return self.here(address, other)
        finally:
            other.close()

    def end(self, transaction: Transaction, discharge, connection=None) -> tuple[str, str | None]:
        """Discharges; what was said, and the condition of a refusal."""
        outcomes = transaction.handler
        outcomes.said.clear()
        discharge(transaction)
        (connection or self.connection).wait(lambda: outcomes.said, msg="discharge")
        return outcomes.said[0], outcomes.condition

    def commit(self, transaction: Transaction):
        self.assertEqual(self.end(transaction, Transaction.commit), ("committed", None))

    def abort(self, transaction: Transaction):
        self.assertEqual(self.end(transaction, Transaction.abort), ("aborted", None))

    def try_send(self, transaction: Transaction, sender, message: Message) -> Delivery:
        """Sends in a transaction, and waits for what becomes of it."""
        delivery = transaction.send(sender.link, message)
        self.connection.wait(lambda: delivery.settled, msg="transactional send")
        return delivery

    def send_in(self, transaction: Transaction, sender, *messages: Message):
        for message in messages:
            delivery = self.try_send(transaction, sender, message)
            self.assertEqual(delivery.remote_state, TRANSACTIONAL)
            self.assertEqual(delivery.remote.data, [transaction.id, Described(ulong(Delivery.ACCEPTED), [])])

    def try_settle(self, transaction: Transaction, delivery: Delivery, outcome, *fields):
        """Proposes an outcome in a transaction, and waits for the broker's answer: it settles only what it refuses."""
        def is_answered():
            return delivery.settled or (delivery.remote_state == TRANSACTIONAL and delivery.remote.data[0] == transaction.id)

        delivery.local.data = [transaction.id, Described(ulong(outcome), list(fields))]
        delivery.update(TRANSACTIONAL)
        self.connection.wait(is_answered, msg="transactional outcome")

    def settle_in(self, transaction: Transaction, delivery: Delivery, outcome, *fields):
        self.try_settle(transaction, delivery, outcome, *fields)
        self.assertEqual(delivery.remote_state, TRANSACTIONAL)
        id, confirmed = delivery.remote.data
        self.assertEqual((id, confirmed.descriptor), (transaction.id, ulong(outcome)))

    def not_done(self, delivery: Delivery, condition: str):
        self.assertEqual((delivery.remote_state, delivery.remote.condition.name), (Delivery.REJECTED, condition))


class Transactions(Working):
    def test_s231_what_is_sent_in_a_transaction_arrives_when_it_is_committed(self):
        transaction = self.begin()
        sender = self.sender("s231")
        self.send_in(transaction, sender, *numbered(2))
        self.send("s231", Message(body="outside"))
        self.assertEqual(self.here("s231"), ["outside"])
        self.commit(transaction)
        received = self.available(self.receiver("s231"))
        self.assertEqual(bodies(received), ["outside", 1, 2])
        numbers = [message.annotations["x-opt-sequence-number"] for message, _ in received]
        self.assertEqual(numbers, [1, 2, 3])

    def test_s232_what_is_sent_in_a_transaction_that_is_aborted_never_was(self):
        transaction = self.begin()
        self.send_in(transaction, self.sender("s232"), *numbered(2))
        self.abort(transaction)
        self.send("s232", Message(body="outside"))
        received = self.available(self.receiver("s232"))
        self.assertEqual(bodies(received), ["outside"])
        self.assertEqual(received[0][0].annotations["x-opt-sequence-number"], 1)

    def test_s233_an_accepted_message_is_gone_when_the_transaction_is_committed(self):
        for settle_before_discharge in (False, True):
            self.send("s233", *numbered(1))
            _, delivery = self.receive_one(self.receiver("s233"))
            transaction = self.begin(settle_before_discharge=settle_before_discharge)
            transaction.accept(delivery)
            self.assertEqual(self.here("s233"), [])
            self.commit(transaction)
            delivery.settle()
            self.assertEqual(self.here("s233"), [])

    def test_s234_an_outcome_that_is_rolled_back_leaves_the_lock(self):
        self.send("s234", *numbered(1))
        _, delivery = self.receive_one(self.receiver("s234"))
        transaction = self.begin()
        self.settle_in(transaction, delivery, Delivery.ACCEPTED)
        self.assertFalse(delivery.settled)
        self.abort(transaction)
        self.assertEqual(self.here("s234"), [])
        management = Management(self, "s234")
        self.assertEqual(management.peeked(), [1])
        # The delivery is as it was. Proton would name the first transaction again in another one.
        delivery.update(Delivery.ACCEPTED)
        self.connection.wait(lambda: delivery.settled, msg="outcome outside of transactions")
        self.assertEqual(delivery.remote_state, Delivery.ACCEPTED)
        self.assertEqual(management.peeked(), [])
        # An abort of Proton's own releases what it accepted.
        self.send("s234", *numbered(1))
        _, delivery = self.receive_one(self.receiver("s234"))
        transaction = self.begin()
        transaction.accept(delivery)
        self.connection.wait(lambda: delivery.remote_state == TRANSACTIONAL, msg="transactional outcome")
        self.abort(transaction)
        message, delivery = self.receive_one(self.receiver("s234"))
        self.assertEqual((message.body, message.delivery_count), (1, 0))
        delivery.update(Delivery.ACCEPTED)
        delivery.settle()

    def test_s235_every_outcome_takes_effect_with_the_commit_or_not_at_all(self):
        management = Management(self, "s235")
        self.send("s235", *numbered(6))
        received = self.receive(self.receiver("s235"), 6)
        for discharge, three in ((self.abort, received[:3]), (self.commit, received[3:])):
            deliveries = [delivery for _, delivery in three]
            transaction = self.begin()
            self.settle_in(transaction, deliveries[0], Delivery.MODIFIED, True, False, {symbol("attempt"): 1})
            self.settle_in(transaction, deliveries[1], Delivery.RELEASED)
            info = {symbol("DeadLetterReason"): "why", symbol("DeadLetterErrorDescription"): "because"}
            error = Described(ulong(0x1D), [symbol("com.microsoft:dead-letter"), None, info])
            self.settle_in(transaction, deliveries[2], Delivery.REJECTED, error)
            self.assertEqual(self.here("s235"), [])
            self.assertEqual(self.here("s235/$DeadLetterQueue"), [])
            discharge(transaction)
        committed = self.available(self.receiver("s235"))
        self.assertEqual((bodies(committed), counts(committed)), ([4, 5], [1, 0]))
        self.assertEqual(committed[0][0].properties, {"attempt": 1})
        letter, _ = self.receive_one(self.receiver("s235/$DeadLetterQueue"))
        self.assertEqual(letter.body, 6)
        self.assertEqual(letter.properties, {"DeadLetterReason": "why", "DeadLetterErrorDescription": "because"})
        for message, _ in received[:3]:
            management.dispose(message, "completed")
        self.assertEqual(management.peeked(), [4, 5])

    def test_s236_a_message_is_accepted_and_another_sent_or_neither(self):
        self.coordinate()
        self.send("s236", *numbered(2))
        sender = self.sender("s236b")
        received = self.receive(self.receiver("s236"), 2)
        for discharge, (_, delivery) in zip((self.abort, self.commit), received):
            transaction = self.begin()
            self.settle_in(transaction, delivery, Delivery.ACCEPTED)
            self.send_in(transaction, sender, Message(body=discharge.__name__))
            discharge(transaction)
        self.assertEqual(self.there("s236b"), ["commit"])
        self.assertEqual(Management(self, "s236").peeked(), [1])

    def test_s236_a_transaction_of_two_entities_is_refused(self):
        sender, other = self.sender("s236"), self.sender("s236b")
        transaction = self.begin()
        self.send_in(transaction, other, Message(body="neither"))
        refusal = self.try_send(transaction, sender, Message(body="neither"))
        self.not_done(refusal, "amqp:not-allowed")
        self.assertIn("Local transactions cannot span multiple entities or partitions", refusal.remote.condition.description)
        self.assertEqual(self.end(transaction, Transaction.commit), ("not committed", "amqp:transaction:rollback"))

    def test_s236_a_session_with_a_coordinator_receives_from_its_first_entity_only(self):
        self.coordinate()
        self.sender("s248")
        self.refused(self.receiver, "s248b", condition="amqp:not-allowed", text="cannot span multiple top-level entities")
        self.receiver("s248")
        self.receiver("s248b", connection=self.other())

    def test_s237_a_transaction_ends_with_its_connection(self):
        self.send("s237", *numbered(1))
        other = connect()
        message, delivery = self.receive_one(self.receiver("s237", connection=other))
        transaction = self.begin(other)
        sent = transaction.send(other.create_sender("s237", name=unique_name()).link, Message(body="lost"))
        delivery.local.data = [transaction.id, Described(ulong(Delivery.ACCEPTED), [])]
        delivery.update(TRANSACTIONAL)
        other.wait(lambda: sent.settled and delivery.remote_state == TRANSACTIONAL, msg="work in a transaction")
        other.close()
        self.assertEqual(self.here("s237"), [])
        # It is locked still, and its lock is good for what comes.
        management = Management(self, "s237")
        self.assertEqual(management.peeked(), [1])
        management.dispose(message, "abandoned")
        received = self.receive(self.receiver("s237"), 1)
        self.assertEqual((bodies(received), counts(received)), ([1], [1]))

    def test_s238_a_transaction_that_is_not_is_refused_and_the_links_live_on(self):
        self.send("s238", *numbered(3))
        sender, receiver = self.sender("s238"), self.receiver("s238")
        other = connect()
        self.addCleanup(other.close)
        elsewhere, done, never = self.begin(other), self.begin(), self.begin()
        self.commit(done)
        self.commit(never)
        never.id = b"never"
        for transaction, (_, delivery) in zip((elsewhere, done, never), self.receive(receiver, 3)):
            self.not_done(self.try_send(transaction, sender, Message(body="refused")), UNKNOWN)
            self.try_settle(transaction, delivery, Delivery.ACCEPTED)
            self.not_done(delivery, UNKNOWN)
        # Of these, what was declared elsewhere can be discharged there.
        for transaction in (done, never):
            self.assertEqual(self.end(transaction, Transaction.commit), ("not committed", UNKNOWN))
        self.assertEqual(self.end(elsewhere, Transaction.commit, other), ("committed", None))
        self.assertEqual(Management(self, "s238").peeked(), [1, 2, 3])
        transaction = self.begin()
        self.send_in(transaction, sender, Message(body="next"))
        self.commit(transaction)
        self.assertEqual(self.here("s238"), ["next"])

    def test_s239_a_transaction_has_a_hundred_messages_and_no_more(self):
        sender = self.sender("s239")
        transaction = self.begin()
        self.send_in(transaction, sender, *numbered(100))
        refusal = self.try_send(transaction, sender, Message(body="one more"))
        self.not_done(refusal, "amqp:resource-limit-exceeded")
        self.assertIn("Can't send more than 100 messages in a single transaction", refusal.remote.condition.description)
        # What was refused in a transaction spoils it: some clients do not look at the refusal.
        self.assertEqual(self.end(transaction, Transaction.commit), ("not committed", "amqp:transaction:rollback"))
        self.assertEqual(self.here("s239"), [])
        transaction = self.begin()
        self.send_in(transaction, sender, *numbered(100))
        self.commit(transaction)
        self.assertEqual(self.here("s239"), list(range(1, 101)))

    def test_s240_requests_of_management_take_part(self):
        self.send("s240", *numbered(1))
        _, delivery = self.receive_one(self.receiver("s240"))
        delivery.local.undeliverable = True
        self.settle(delivery, Delivery.MODIFIED)
        management = Management(self, "s240")
        [kept] = management.schedule([Message(body="later")], FAR)
        [(_, token)] = management.by_number(1)
        complete = disposition("completed", token)
        for discharge in (self.abort, self.commit):
            before = management.peeked()
            self.assertEqual(before, [1, kept])
            transaction = self.begin()
            [scheduled] = management.schedule([Message(body="later")], FAR, transaction=transaction)
            management.cancel(kept, transaction=transaction)
            management.ask("update-disposition", complete, transaction)
            self.assertEqual(management.peeked(), before)
            discharge(transaction)
        self.assertEqual(management.peeked(), [scheduled])

    def test_s241_a_transaction_may_mix_sessions(self):
        sender = self.sender("s241")
        sender.send(Message(body="x1", group_id="x"))
        x = self.receiver("s241", InSession("x"))
        _, delivery = self.receive_one(x)
        transaction = self.begin()
        self.settle_in(transaction, delivery, Delivery.ACCEPTED)
        for body in ("y1", "x2", "y2"):
            self.send_in(transaction, sender, Message(body=body, group_id=body[0]))
        self.assertEqual(bodies(self.available(x)), [])
        self.commit(transaction)
        delivery.settle()
        self.assertEqual(bodies(self.available(x)), ["x2"])
        self.assertEqual(bodies(self.available(self.receiver("s241", InSession("y")))), ["y1", "y2"])

    def test_s242_a_transaction_sends_to_topics_and_queues(self):
        self.coordinate()
        topic, queue = self.sender("s242"), self.sender("s242b")
        for discharge in (self.abort, self.commit):
            transaction = self.begin()
            self.send_in(transaction, topic, Message(body=1, properties={"n": 1}), Message(body=2, properties={"n": 2}))
            self.send_in(transaction, queue, Message(body="queued"))
            discharge(transaction)
        self.assertEqual(self.here("s242/Subscriptions/a"), [1, 2])
        self.assertEqual(self.here("s242/Subscriptions/b"), [1])
        self.assertEqual(self.there("s242b"), ["queued"])

    def test_s245_a_lock_that_ends_within_a_transaction_spoils_it_or_does_not_matter(self):
        self.send("s245", *numbered(1))
        _, delivery = self.receive_one(self.receiver("s245"))
        transaction = self.begin()
        self.settle_in(transaction, delivery, Delivery.ACCEPTED)
        other = self.receiver("s245")
        other.link.flow(1)
        try:
            self.connection.wait(lambda: other.fetcher.has_message, timeout=7)
        except Timeout:
            pass
        said, condition = self.end(transaction, Transaction.commit)
        if said == "committed":
            self.assertFalse(other.fetcher.has_message)
            self.assertEqual(self.here("s245"), [])
        else:
            self.assertEqual((said, condition), ("not committed", "amqp:transaction:rollback"))
            received = self.receive(other, 1)
            self.assertEqual((bodies(received), counts(received)), ([1], [1]))

    def test_s246_two_transactions_of_a_connection_know_nothing_of_each_other(self):
        sender = self.sender("s246")
        one, other = self.begin(), self.begin()
        for body in (1, 2):
            self.send_in(one, sender, Message(body=f"one {body}"))
            self.send_in(other, sender, Message(body=f"other {body}"))
        self.abort(other)
        self.commit(one)
        self.assertEqual(self.here("s246"), ["one 1", "one 2"])

    def test_s247_a_transaction_that_does_not_fit_leaves_nothing(self):
        transaction = self.begin()
        sender = self.sender("s247")
        self.send_in(transaction, self.sender("s247b"), Message(body="beside"))
        for _ in range(15):
            delivery = self.try_send(transaction, sender, Message(body=bytes(100 * 1024), inferred=True))
            if delivery.remote_state != TRANSACTIONAL:
                self.not_done(delivery, "amqp:resource-limit-exceeded")
                break
        self.assertEqual(self.end(transaction, Transaction.commit), ("not committed", "amqp:transaction:rollback"))
        self.assertEqual((self.here("s247"), self.there("s247b")), ([], []))

    def test_s249_a_coordinator_wants_no_token(self):
        # Declared with a null global-id; its id is short, and a discharge with `fail` is accepted.
        self.abort(self.begin())

    def test_s230_a_transaction_has_one_partition(self):
        def keyed(key: str | None, body: str) -> Message:
            return Message(body=body, annotations={symbol("x-opt-partition-key"): key} if key else None)

        sender = self.sender("s230")
        for second in (keyed("other", "second"), keyed(None, "second")):
            transaction = self.begin()
            self.send_in(transaction, sender, keyed("one", "first"))
            refusal = self.try_send(transaction, sender, second)
            self.not_done(refusal, "amqp:not-allowed")
            self.assertEqual(self.end(transaction, Transaction.commit), ("not committed", "amqp:transaction:rollback"))
        self.assertEqual(self.here("s230"), [])
        transaction = self.begin()
        self.send_in(transaction, sender, keyed("one", "first"), keyed("one", "second"))
        self.commit(transaction)
        self.assertEqual(self.here("s230"), ["first", "second"])

    def test_s250_what_is_scheduled_for_now_comes_in_its_turn(self):
        management, sender = Management(self, "s250"), self.sender("s250")
        transaction = self.begin()
        self.send_in(transaction, sender, Message(body="sent"))
        management.schedule([Message(body="scheduled")], in_seconds(0), transaction=transaction)
        self.send_in(transaction, sender, Message(body="sent last"))
        self.commit(transaction)
        received = self.receive(self.receiver("s250"), 3)
        self.assertEqual(bodies(received), ["sent", "scheduled", "sent last"])
        self.assertEqual(numbers(received), sorted(numbers(received)))
