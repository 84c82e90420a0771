import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

from proton import Described, Message, int32, symbol, timestamp, ulong
from proton.reactor import Filter
from proton.utils import LinkDetached

from client import (
    AT_MOST_ONCE, DEADLINE, InSession, TestCase, bodies, connect, counts, now, number, numbers, session_of, unique_name,
)
from management import Management, SESSION_LOST, in_seconds, token_of, uuids

SHARED = symbol("com.microsoft:non-exclusive-session-filter")
CANNOT_BE_LOCKED = "com.microsoft:session-cannot-be-locked"
NOT_ALLOWED = "amqp:not-allowed"
TIMEOUT = "com.microsoft:timeout"


class Shared(InSession):
    """A receiver of a message session that others may have too, as .NET asks for it."""

    def __init__(self, name: str):
        super().__init__(name)
        self.filter = Filter({SHARED: Described(ulong(0x13_7000_000E), [name, None])})


def said(session: str, *words, **more) -> list[Message]:
    return [Message(body=word, group_id=session, **more) for word in words]


def hold_and_end(address: str, session: str, count: int) -> None:
    """Receives so many messages of a session, and ends without a word."""
    receiver = connect().create_receiver(address, name=unique_name(), options=InSession(session))
    for _ in range(count):
        receiver.receive(DEADLINE)
    os._exit(0)


class Sessions(TestCase):
    def session(self, address: str, name: str | None = None, wait: float = DEADLINE, connection=None, **modes):
        return self.receiver(address, InSession(name, wait, **modes), connection)

    def no_session(self, address: str, wait: float) -> float:
        """Nobody's next: how long it took to be told."""
        began = now()
        self.refused(self.session, address, None, wait, condition=TIMEOUT)
        return now() - began

    def held(self, address: str, name: str) -> None:
        self.refused(self.session, address, name, condition=CANNOT_BE_LOCKED)

    def manage(self, address: str, receiver) -> Management:
        return Management(self, address, link=receiver.link.name)

    def locked_until(self, receiver) -> float:
        """When the lock of a session ends, in seconds since 1970."""
        ticks = receiver.link.remote_properties[symbol("com.microsoft:locked-until-utc")]
        return ticks / 1e7 - 62_135_596_800

    def take_all(self, receiver) -> list:
        """What is there for a session's receiver; it is completed."""
        received = self.available(receiver)
        for _, delivery in received:
            self.complete(delivery)
        return bodies(received)

    def test_s101_a_session_is_accepted_by_name(self):
        self.send("s101", *[Message(body=body, group_id=body[0]) for body in ("a1", "b1", "a2", "b2", "a3")])
        for name, wanted in (("a", ["a1", "a2", "a3"]), ("b", ["b1", "b2"])):
            receiver = self.session("s101", name)
            received = self.available(receiver)
            self.assertEqual(bodies(received), wanted)
            self.assertEqual({message.group_id for message, _ in received}, {name})
            self.assertEqual(session_of(receiver), name)
            self.assertAlmostEqual(self.locked_until(receiver), now() + 60, delta=5)

    def test_s102_the_next_session_is_accepted(self):
        self.send("s102", *said("x", 1))
        receiver = self.session("s102")
        self.assertEqual((session_of(receiver), self.take_all(receiver)), ("x", [1]))

    def test_s103_each_session_has_one_receiver(self):
        self.send("s103", *said("x", "x"), *said("y", "y"))
        receivers = [self.session("s103", connection=self.other()) for _ in range(2)]
        self.assertEqual({session_of(receiver) for receiver in receivers}, {"x", "y"})
        for receiver in receivers:
            self.assertEqual(self.receive_one(receiver)[0].body, session_of(receiver))
        self.no_session("s103", 3)

    def test_s104_the_next_session_is_waited_for_in_vain(self):
        self.assertTrue(3 <= self.no_session("s104", 4) <= 10)

    def test_s105_the_next_session_is_waited_for(self):
        def accept():
            connection = connect()
            receiver = connection.create_receiver("s105", name=unique_name(), options=InSession(None, 20))
            granted = now()
            body = receiver.receive(DEADLINE).body
            name = session_of(receiver)
            connection.close()
            return granted, name, body

        sender = self.sender("s105")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(accept)
            self.nothing(self.receiver("s105/$DeadLetterQueue"))
            sender.send(*said("late", 1))
            sent = now()
            granted, name, body = waiting.result(DEADLINE)
        self.assertEqual((name, body), ("late", 1))
        self.assertLess(granted - sent, 2)

    def test_s106_a_session_that_is_given_up_is_the_next(self):
        self.send("s106", *said("x", 1, 2))
        first = self.session("s106", "x")
        _, delivery = self.receive_one(first)
        self.complete(delivery)

        def accept():
            connection = connect()
            receiver = connection.create_receiver("s106", name=unique_name(), options=InSession(None, 20))
            granted = now()
            body = receiver.receive(DEADLINE).body
            connection.close()
            return granted, body

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(accept)
            self.nothing(self.receiver("s106/$DeadLetterQueue"))
            first.close()
            closed = now()
            granted, body = waiting.result(DEADLINE)
        self.assertEqual(body, 2)
        self.assertLess(granted - closed, 2)

    def test_s107_who_gives_up_waiting_leaves_no_lock(self):
        other = connect()
        # It waits, and is not waited for.
        other.container.create_receiver(other.conn, "s107", name=unique_name(), options=InSession(None, 60))
        # The broker has it when it answers what came after.
        other.create_sender("s107", name=unique_name()).close()
        other.close()
        self.send("s107", *said("x", 1))
        began = now()
        receiver = self.session("s107", "x")
        self.assertLess(now() - began, 2)
        self.assertEqual(self.take_all(receiver), [1])

    def test_s108_a_session_that_never_was_is_accepted_by_name(self):
        began = now()
        receiver = self.session("s108", "new")
        self.assertLess(now() - began, 2)
        self.held("s108", "new")
        self.send("s108", *said("new", 1))
        self.assertEqual(bodies(self.receive(receiver, 1)), [1])

    def test_s109_a_session_is_held_by_one(self):
        self.send("s109", *said("x", 1))
        first = self.session("s109", "x")
        self.held("s109", "x")
        first.close()
        self.assertEqual(self.take_all(self.session("s109", "x")), [1])

    def test_s110_a_sessions_lock_is_renewed(self):
        self.send("s110", *said("x", 1))
        receiver = self.session("s110", "x")
        _, delivery = self.receive_one(receiver)
        management, last = self.manage("s110", receiver), 0
        for _ in range(4):
            self.nothing(receiver, 2)
            until = management.renew_session("x")
            self.assertGreater(until, last)
            self.assertAlmostEqual(until / 1000, now() + 5, delta=2)
            last = until
            self.held("s110", "x")
        self.complete(delivery)

    def test_s111_a_sessions_lock_ends(self):
        self.send("s111", *said("x", 1))
        holder = connect()
        first = self.session("s111", "x", connection=holder)
        self.receive_one(first)
        began, receiver = now(), None
        name = first.link.name
        while receiver is None and now() - began < DEADLINE:
            try:
                receiver = self.session("s111", "x")
            except LinkDetached as error:
                self.assertEqual(error.condition, CANNOT_BE_LOCKED)
        self.assertGreaterEqual(now() - began, 4)
        # Its link has ended, so whatever it still does is told that.
        with self.assertRaises(LinkDetached) as raised:
            first.receive(DEADLINE)
        self.assertEqual(raised.exception.condition, SESSION_LOST[1])
        management = Management(self, "s111", holder, name)
        management.refused("renew-session-lock", {"session-id": "x"}, *SESSION_LOST)
        management.refused("get-session-state", {"session-id": "x"}, *SESSION_LOST)
        holder.close()
        received = self.receive(receiver, 1)
        self.assertEqual((bodies(received), counts(received)), ([1], [1]))

    def test_s140_an_idle_holder_is_detached_two_seconds_after_its_lock(self):
        self.send("s140", *said("x", 1))
        holder = self.session("s140", "x")
        ends = self.locked_until(holder)
        [(_, delivery)] = self.receive(holder, 1)
        self.complete(delivery)
        self.nothing(holder, ends + 0.5 - now())
        # What comes now is for the session's next holder.
        self.send("s140", *said("x", "late"))
        with self.assertRaises(LinkDetached) as raised:
            holder.receive(DEADLINE)
        self.assertEqual(raised.exception.condition, SESSION_LOST[1])
        self.assertAlmostEqual(now(), ends + 2, delta=1.4)
        received = self.receive(self.session("s140", "x"), 1)
        self.assertEqual((bodies(received), counts(received)), (["late"], [0]))

    def test_s140_an_idle_holder_is_detached_when_another_accepts_its_session(self):
        holder = self.session("s140", "y", connection=self.other())
        ends = self.locked_until(holder)
        self.nothing(holder, ends - 1 - now())
        self.held("s140", "y")
        self.nothing(holder, ends + 0.2 - now())
        receiver = self.session("s140", "y")
        with self.assertRaises(LinkDetached) as raised:
            holder.receive(DEADLINE)
        self.assertEqual(raised.exception.condition, SESSION_LOST[1])
        self.assertLess(now(), ends + 1.5)
        self.send("s140", *said("y", 1))
        received = self.receive(receiver, 1)
        self.assertEqual((bodies(received), counts(received)), ([1], [0]))

    def test_s332_a_session_that_others_may_have_too_is_declined(self):
        # The words by which .NET knows that a service has no such sessions.
        self.refused(
            self.receiver, "s332", Shared("x"), condition=NOT_ALLOWED,
            text="contains invalid filter type. System only support Jms or Apache selector filter type.",
        )
        receiver = self.receiver("s332b", Shared("x"))
        filters = receiver.link.remote_source.filter
        filters.rewind()
        self.assertFalse(filters.next() and filters.get_object(), "a filter that is not applied is not echoed")
        self.send("s332b", *said("y", 1))
        self.assertEqual(bodies(self.receive(receiver, 1)), [1])

    def test_s113_giving_a_session_up_is_no_delivery(self):
        self.send("s113", *said("x", 1, 2, 3))
        receiver = self.session("s113", "x")
        self.receive(receiver, 2)
        receiver.close()
        received = self.available(self.session("s113", "x"))
        self.assertEqual((bodies(received), counts(received)), ([1, 2, 3], [0, 0, 0]))

    def test_s114_a_cut_connection_gives_its_session_up(self):
        self.send("s114", *said("x", 1, 2, 3))
        # A process of its own holds the session; its socket is closed by the system, and nothing is said.
        holder = multiprocessing.get_context("spawn").Process(target=hold_and_end, args=("s114", "x", 2))
        holder.start()
        holder.join(DEADLINE)
        self.assertEqual(holder.exitcode, 0)
        began, receiver = now(), None
        while receiver is None and now() - began < 5:
            try:
                receiver = self.session("s114", "x")
            except LinkDetached as error:
                self.assertEqual(error.condition, CANNOT_BE_LOCKED)
        self.assertEqual(bodies(self.available(receiver)), [1, 2, 3])

    def test_s115_an_abandoned_message_comes_first(self):
        self.send("s115", *said("x", 1, 2, 3))
        receiver = self.session("s115", "x")
        first, delivery = self.receive_one(receiver)
        self.abandon(delivery)
        received = self.receive(receiver, 3)
        self.assertEqual((bodies(received), counts(received)), ([1, 2, 3], [1, 0, 0]))
        self.assertEqual(number(received[0][0]), number(first))

    def test_s116_workers_share_sessions(self):
        for index in range(20):
            self.send("s116", *[Message(body=index, group_id=f"x{session}") for session in range(10)])

        def worker() -> list[tuple[str, list]]:
            connection, done = connect(), []
            try:
                while True:
                    receiver = connection.create_receiver("s116", name=unique_name(), options=InSession(None, 3))
                    seen = []
                    while len(seen) < 20:
                        seen.append(receiver.receive(DEADLINE).body)
                        receiver.accept()
                    done.append((session_of(receiver), seen))
                    receiver.close()
            except LinkDetached as error:
                self.assertEqual(error.condition, TIMEOUT)
            connection.close()
            return done

        with ThreadPoolExecutor(3) as pool:
            done = [each for work in [pool.submit(worker) for _ in range(3)] for each in work.result(60)]
        self.assertEqual(sorted(done), [(f"x{session}", list(range(20))) for session in range(10)])

    def test_s117_messages_go_to_who_holds_the_session(self):
        self.send("s117", *said("x", 0))
        receiver = self.session("s117", "x")
        self.assertEqual(self.take_all(receiver), [0])
        self.send("s117", *said("x", 1, 2, 3))
        self.no_session("s117", 3)
        self.assertEqual(bodies(self.receive(receiver, 3)), [1, 2, 3])

    def test_s118_sessions_have_states(self):
        x, y = self.session("s118", "x"), self.session("s118", "y")
        of_x, of_y = self.manage("s118", x), self.manage("s118", y)
        self.assertIsNone(of_x.state("x"))
        of_x.set_state("x", b"\x00\xff")
        self.assertEqual((of_x.state("x"), of_y.state("y")), (b"\x00\xff", None))
        of_x.set_state("x", b"")
        self.assertIsNone(of_x.state("x"))
        of_x.set_state("x", b"again")
        of_x.set_state("x", None)
        self.assertIsNone(of_x.state("x"))

    def test_s119_a_state_stays_without_messages(self):
        for state in (b"idle", bytes(index % 251 for index in range(200 * 1024))):
            receiver = self.session("s119", "idle")
            self.manage("s119", receiver).set_state("idle", state)
            receiver.close()
            receiver = self.session("s119", "idle")
            self.assertTrue(self.manage("s119", receiver).state("idle") == state)
            receiver.close()

    def test_s120_sessions_are_listed(self):
        self.send("s120", *said("a", 1), *said("b", 1), *said("c", 1), *said("e", 1))
        c, d, e = (self.session("s120", name) for name in "cde")
        self.manage("s120", d).set_state("d", b"state")
        self.take_all(e)
        _, delivery = self.receive_one(c)
        management = Management(self, "s120")
        self.assertEqual(sorted(management.sessions(page=3)), ["a", "b", "c", "d"])
        self.complete(delivery)
        self.manage("s120", d).set_state("d", None)
        self.assertEqual(sorted(management.sessions()), ["a", "b"])

    def test_s121_sessions_are_listed_by_the_change_of_their_state(self):
        self.send("s121", *said("plain", 1))
        old, new = self.session("s121", "old"), self.session("s121", "new")
        self.manage("s121", old).set_state("old", b"1")
        self.nothing(old)
        between = in_seconds(0)
        self.nothing(old)
        self.manage("s121", new).set_state("new", b"1")
        self.assertEqual(Management(self, "s121").sessions(since=between), ["new"])

    def test_s122_many_sessions_are_listed(self):
        sender = self.sender("s122")
        names = [f"x{index}" for index in range(250)]
        for name in names:
            sender.send(*said(name, 1))
        self.assertEqual(sorted(Management(self, "s122").sessions()), sorted(names))

    def test_s123_no_sessions_are_listed(self):
        self.assertEqual(Management(self, "s123").sessions(), [])
        answer = Management(self, "s123b").send_request("get-message-sessions", {
            "last-updated-time": timestamp(0), "skip": int32(0), "top": int32(100),
        })
        self.assertIn(answer.properties["statusCode"], (204, 400))

    def test_s124_deferred_messages_stay_in_their_session(self):
        self.send("s124", *said("x", 1, 2, 3))
        receiver = self.session("s124", "x")
        (one, first), (two, second), (_, third) = self.receive(receiver, 3)
        self.defer(first)
        self.defer(second)
        self.complete(third)
        receiver.close()
        y = self.session("s124", "y")
        self.manage("s124", y).by_number_fails(number(one), session="y")
        receiver = self.session("s124", "x")
        management = self.manage("s124", receiver)
        received = management.by_number(number(one), number(two), session="x")
        self.assertEqual([message.body for message, _ in received], [1, 2])
        for message, token in received:
            self.assertEqual(message.annotations.get("x-opt-message-state", 0), 1)
            management.settle("completed", token, session_id="x")
        self.assertEqual(management.peek(), [])

    def test_s125_a_message_is_scheduled_in_a_session(self):
        management, began = Management(self, "s125"), now()
        kept, gone = management.schedule(said("x", "kept", "gone"), in_seconds(3))
        management.cancel(gone)
        receiver = self.session("s125", wait=10)
        self.assertEqual(session_of(receiver), "x")
        self.assertGreaterEqual(now() - began, 2)
        received = self.available(receiver)
        self.assertEqual(bodies(received), ["kept"])
        self.assertNotEqual(numbers(received), [kept])

    def test_s126_a_session_is_peeked(self):
        self.send("s126", *said("a", 1), *said("b", 2), *said("a", 3), *said("b", 4, 5))
        receiver = self.session("s126", "a")
        self.assertEqual([message.body for message in self.manage("s126", receiver).peek(session="a")], [1, 3])
        self.assertEqual([message.body for message in Management(self, "s126").peek()], [1, 2, 3, 4, 5])

    def test_s127_a_message_needs_a_session(self):
        sender = self.sender("s127")
        delivery = sender.link.send(Message(body="none"))
        self.connection.wait(lambda: delivery.settled, msg="refusal")
        self.assertEqual(delivery.remote_state, delivery.REJECTED)
        self.assertIn("The SessionId was not set on a message", delivery.remote.condition.description)
        sender.send(*said("x", 1))
        received = self.receive(self.session("s127", "x"), 1)
        self.assertEqual(numbers(received), [1])

    def test_s128_a_receiver_needs_a_session(self):
        text = "It is not possible for an entity that requires sessions to create a non-sessionful message receiver"
        self.refused(self.receiver, "s128", condition=NOT_ALLOWED, text=text)

    def test_s129_a_queue_without_sessions_has_none(self):
        text = "A sessionful message receiver cannot be created on an entity that does not require sessions"
        for name in ("x", None):
            self.refused(self.session, "s129", name, condition=NOT_ALLOWED, text=text)
        self.send("s129", *said("x", 1))
        message, _ = self.receive_one(self.receiver("s129"))
        self.assertEqual(message.group_id, "x")

    def test_s130_dead_letters_have_no_sessions(self):
        self.send("s130", *said("a", 1), *said("b", 2))
        for name in ("a", "b"):
            _, delivery = self.receive_one(self.session("s130", name))
            self.dead_letter(delivery, name, "because")
        self.refused(self.session, "s130/$DeadLetterQueue", "a", condition=NOT_ALLOWED)
        receiver = self.receiver("s130/$DeadLetterQueue")
        for name, (message, delivery) in zip("ab", self.receive(receiver, 2)):
            self.assertEqual((message.group_id, number(message)), (name, message.body))
            self.reason(message, name, "because")
            self.complete(delivery)

    def test_s131_deliveries_are_bounded_in_a_session(self):
        self.send("s131", *said("x", 1, 2))
        receiver = self.session("s131", "x")
        for _ in range(2):
            message, delivery = self.receive_one(receiver)
            self.assertEqual(message.body, 1)
            self.abandon(delivery)
        self.assertEqual(bodies(self.receive(receiver, 1)), [2])
        message, _ = self.receive_one(self.receiver("s131/$DeadLetterQueue"))
        self.reason(message, "MaxDeliveryCountExceeded")

    def test_s132_a_session_is_received_and_deleted(self):
        self.send("s132", *said("x", 1, 2, 3))
        receiver = self.session("s132", "x", modes=AT_MOST_ONCE)
        self.assertEqual(bodies(self.receive(receiver, 3)), [1, 2, 3])
        self.assertEqual(Management(self, "s132").peek(), [])

    def test_s133_an_expired_message_grants_no_session(self):
        self.send("s133", *said("x", 1, ttl=1))
        dead = self.receiver("s133/$DeadLetterQueue")
        message, _ = self.receive_one(dead)
        self.assertEqual(message.group_id, "x")
        self.reason(message, "TTLExpiredException")
        self.no_session("s133", 3)

    def test_s134_what_was_prefetched_stays(self):
        self.send("s134", *said("x", *range(10)))
        receiver = self.session("s134", "x")
        receiver.link.flow(10)
        self.connection.wait(lambda: len(receiver.fetcher.incoming) == 10, msg="prefetch")
        _, delivery = self._take(receiver, receiver.fetcher.pop())
        self.complete(delivery)
        receiver.close()
        received = self.available(self.session("s134", "x"))
        self.assertEqual((bodies(received), counts(received)), (list(range(1, 10)), [0] * 9))

    def test_s136_session_ids_are_of_many_kinds(self):
        names = ["1", "x" * 128, "a b/c\\ü"]
        for name in names:
            self.send("s136", *said(name, 1))
        self.assertEqual(sorted(Management(self, "s136").sessions()), sorted(names))
        for name in names:
            self.assertEqual(self.take_all(self.session("s136", name)), [1])
        delivery = self.sender("s136").link.send(*said("x" * 129, 1))
        self.connection.wait(lambda: delivery.settled, msg="refusal")
        self.assertEqual(delivery.remote_state, delivery.REJECTED)

    def test_s137_sessions_by_hand(self):
        self.send("s137", *said("x", 1, 2))
        receiver = self.session("s137", "x")
        (one, _), (two, _) = self.receive(receiver, 2)
        management = self.manage("s137", receiver)
        management.settle("completed", token_of(one), session_id="x")
        answer = management.send_request("renew-lock", {"lock-tokens": uuids(token_of(two)), "session-id": "x"})
        self.assertGreaterEqual(answer.properties["statusCode"], 400)
        self.assertGreater(management.renew_session("x"), in_seconds(0))
        stranger = Management(self, "s137", link=unique_name())
        stranger.refused("get-session-state", {"session-id": "x"}, *SESSION_LOST)
