//! A queue that requires message sessions.

use super::*;
use crate::limits;
use crate::tests::{Bench, ONE, TWO};

/// The bench of all queues, whose main queue requires message sessions.
fn bench() -> Bench {
    Bench::new(Description {
        requires_session: true,
        lock_duration: Millis::from_millis(100),
        ..Description::default()
    })
}

impl Bench {
    fn send_in(&mut self, session: &str) -> Vec<Delivery> {
        let arrival = Arrival {
            body: b"body",
            message_session: Some(session),
            ..Arrival::default()
        };
        let step = |queue: &mut Queue, cx: &mut Context<'_>| {
            queue.enqueue(cx, arrival);
            queue.dispatch(cx);
        };
        self.step(step).1
    }

    /// Accepts a session with credit for ten messages; returns their numbers and tokens.
    fn accept(&mut self, consumer: ConsumerId, wanted: Wanted<'_>) -> Vec<(i64, u32, LockToken)> {
        let step = |queue: &mut Queue, cx: &mut Context<'_>| {
            let accepted = queue.accept_session(cx, consumer, ReceiveMode::PeekLock, wanted);
            assert!(matches!(accepted, Ok(Accepted::Granted(_))), "{accepted:?}");
            queue.set_credit(cx, consumer, 10);
        };
        received(self.step(step).1)
    }

    fn pass(&mut self, millis: i64) -> Vec<Delivery> {
        self.now = self.now.after(Millis::from_millis(millis));
        self.step(|_, _| ()).1
    }
}

fn received(deliveries: Vec<Delivery>) -> Vec<(i64, u32, LockToken)> {
    let messages = deliveries.into_iter().map(|delivery| match delivery {
        Delivery::Message(_, handover) => {
            let stamps = handover.stamps;
            (
                stamps.sequence_number,
                stamps.delivery_count,
                handover.token,
            )
        }
        other => panic!("{other:?}"),
    });
    messages.collect()
}

fn numbers(received: &[(i64, u32, LockToken)]) -> Vec<(i64, u32)> {
    let of = |&(number, count, _): &(i64, u32, LockToken)| (number, count);
    received.iter().map(of).collect()
}

#[test]
fn a_session_is_one_receiver_s_with_all_its_messages() {
    let mut bench = bench();
    for session in ["a", "b", "a"] {
        assert!(bench.send_in(session).is_empty());
    }
    let got = bench.accept(ONE, Wanted::Named("a"));
    assert_eq!(numbers(&got), [(1, 0), (3, 0)]);
    let (taken, _) = bench
        .step(|queue, cx| queue.accept_session(cx, TWO, ReceiveMode::PeekLock, Wanted::Named("a")));
    assert_eq!(taken, Err(SessionTaken));
    let later = received(bench.send_in("a"));
    assert_eq!(
        numbers(&later),
        [(4, 0)],
        "what comes later is the holder's too"
    );
    let next = bench.accept(TWO, Wanted::Next(Timestamp::MAX));
    assert_eq!(numbers(&next), [(2, 0)]);
}

#[test]
fn what_is_abandoned_comes_again_before_the_rest() {
    let mut bench = bench();
    for _ in 0..2 {
        bench.send_in("a");
    }
    let got = bench.accept(ONE, Wanted::Named("a"));
    let abandon = Settlement::Abandon(None);
    let ((), again) = bench.step(|queue, cx| {
        queue.settle(cx, got[0].2, abandon).unwrap();
    });
    assert_eq!(numbers(&received(again)), [(1, 1)]);
}

#[test]
fn a_session_s_messages_are_given_back_uncounted_by_who_goes_and_counted_when_the_lock_ends() {
    let mut bench = bench();
    bench.send_in("a");
    bench.accept(ONE, Wanted::Named("a"));
    bench.step(|queue, cx| {
        queue.remove_consumer(ONE);
        queue.release_session(cx, ONE);
    });
    let got = bench.accept(TWO, Wanted::Next(Timestamp::MAX));
    assert_eq!(numbers(&got), [(1, 0)]);
    let lost = bench.pass(100);
    assert!(matches!(lost[..], [Delivery::SessionLost(TWO)]), "{lost:?}");
    let settled = bench.step(|queue, cx| queue.settle(cx, got[0].2, Settlement::Complete));
    assert_eq!(settled.0, Err(LockLost.into()));
    assert_eq!(numbers(&bench.accept(ONE, Wanted::Named("a"))), [(1, 1)]);
}

#[test]
fn a_renewed_session_lock_counts_from_now() {
    let mut bench = bench();
    bench.accept(ONE, Wanted::Named("a free one"));
    bench.pass(60);
    let renewed = bench.step(|queue, cx| queue.renew_session(cx.now, "a free one"));
    assert_eq!(renewed.0, Ok(Timestamp::from_millis(1_160)));
    assert!(bench.pass(60).is_empty());
    let renew = |queue: &mut Queue, cx: &mut Context<'_>| queue.renew_session(cx.now, "a free one");
    assert!(bench.pass(39).is_empty());
    assert_eq!(bench.step(renew).0, Ok(Timestamp::from_millis(1_259)));
    assert!(bench.pass(100).is_empty());
    assert_eq!(bench.step(renew).0, Err(SessionLost));
}

impl Bench {
    /// A receiver that deletes what it receives holds a session, has had all of it, and its lock has
    /// just ended.
    fn lapsed(consumer: ConsumerId) -> Self {
        let mut bench = bench();
        bench.send_in("a");
        let accept = |queue: &mut Queue, cx: &mut Context<'_>| {
            let mode = ReceiveMode::ReceiveAndDelete;
            let accepted = queue.accept_session(cx, consumer, mode, Wanted::Named("a"));
            assert!(matches!(accepted, Ok(Accepted::Granted(_))), "{accepted:?}");
            queue.set_credit(cx, consumer, 10);
        };
        assert_eq!(received(bench.step(accept).1).len(), 1);
        assert!(bench.pass(100).is_empty(), "its link is not ended yet");
        bench
    }
}

#[test]
fn an_idle_holder_goes_two_seconds_after_its_lock_and_gets_nothing_meanwhile() {
    let mut bench = Bench::lapsed(ONE);
    assert_eq!(bench.main.session_holder("a"), None);
    assert_eq!(bench.main.session_held_by(ONE), None);
    let late = bench.send_in("a");
    assert!(late.is_empty(), "delivered without a lock: {late:?}");
    assert!(bench.pass(1_999).is_empty());
    let lost = bench.pass(1);
    assert!(matches!(lost[..], [Delivery::SessionLost(ONE)]), "{lost:?}");
    let got = bench.accept(TWO, Wanted::Named("a"));
    assert_eq!(numbers(&got), [(2, 0)], "the message waited for the next");
}

#[test]
fn a_session_whose_lock_has_ended_is_given_at_once_to_who_asks_for_it() {
    for has_message in [false, true] {
        let mut bench = Bench::lapsed(ONE);
        let wanted = if has_message {
            bench.send_in("a");
            Wanted::Next(Timestamp::MAX)
        } else {
            Wanted::Named("a")
        };
        let step = |queue: &mut Queue, cx: &mut Context<'_>| {
            queue.accept_session(cx, TWO, ReceiveMode::PeekLock, wanted)
        };
        let (accepted, told) = bench.step(step);
        assert!(matches!(accepted, Ok(Accepted::Granted(_))), "{accepted:?}");
        assert!(matches!(told[..], [Delivery::SessionLost(ONE)]), "{told:?}");
        assert_eq!(bench.main.session_holder("a"), Some(TWO));
    }
}

#[test]
fn who_waits_has_the_session_of_an_idle_holder_as_soon_as_its_lock_is_over() {
    let mut bench = Bench::lapsed(ONE);
    let step = |queue: &mut Queue, cx: &mut Context<'_>| {
        queue.accept_session(cx, TWO, ReceiveMode::PeekLock, Wanted::Next(Timestamp::MAX))
    };
    assert_eq!(bench.step(step).0, Ok(Accepted::Waiting));
    let told = bench.send_in("a");
    assert!(
        matches!(
            &told[..],
            [Delivery::SessionLost(ONE), Delivery::SessionGranted(TWO, _)]
        ),
        "{told:?}"
    );
}

#[test]
fn an_idle_holder_that_goes_by_itself_leaves_nothing_behind() {
    let mut bench = Bench::lapsed(ONE);
    bench.step(|queue, cx| {
        queue.remove_consumer(ONE);
        queue.release_session(cx, ONE);
    });
    assert!(bench.pass(2_000).is_empty());
    assert!(listed(&bench).is_empty());
    assert_eq!(bench.main.poll_timeout(), None);
}

#[test]
fn who_waits_gets_the_first_session_that_comes_free_or_is_told_that_none_did() {
    let mut bench = bench();
    let wait = |bench: &mut Bench, consumer, until| {
        let until = Timestamp::from_millis(until);
        let (accepted, _) = bench.step(|queue, cx| {
            queue.accept_session(cx, consumer, ReceiveMode::PeekLock, Wanted::Next(until))
        });
        assert_eq!(accepted, Ok(Accepted::Waiting));
    };
    wait(&mut bench, ONE, 1_050);
    wait(&mut bench, TWO, 1_500);
    assert!(matches!(bench.pass(50)[..], [Delivery::NoSession(ONE)]));
    wait(&mut bench, ONE, 2_000);
    let granted = bench.send_in("a");
    assert!(
        matches!(&granted[..], [Delivery::SessionGranted(TWO, _)]),
        "{granted:?}"
    );
    bench.step(|queue, _| queue.remove_consumer(ONE));
    assert!(bench.send_in("b").is_empty(), "who has gone waits no more");
}

/// Lists the message sessions, a look at a time.
fn listed(bench: &Bench) -> Vec<String> {
    let mut list = SessionList::new(0, 10);
    while !list.is_complete {
        let mut budget = ScanBudget::default();
        budget.spend(limits::SCAN_BUDGET);
        bench.main.list_sessions(None, &mut list, &mut budget);
    }
    list.names
}

#[test]
fn a_state_outlives_its_messages_and_is_kept_until_it_is_cleared() {
    let mut bench = bench();
    let state = Some(bytes::Bytes::from_static(b"state"));
    let set = bench.step(|queue, cx| queue.set_session_state(cx, "a", state.clone(), 0));
    assert_eq!(set.0, Ok(()));
    assert_eq!(bench.main.bytes(), 5);
    assert_eq!(listed(&bench), ["a"]);
    let set = bench.step(|queue, cx| queue.set_session_state(cx, "a", None, 0));
    assert_eq!(set.0, Ok(()));
    assert_eq!(
        (bench.main.bytes(), bench.main.session_state("a")),
        (0, None)
    );
    assert!(listed(&bench).is_empty());
}

#[test]
fn a_message_without_a_session_is_not_taken() {
    let bench = bench();
    let admitted = bench.main.admit([Arrival::default()], 0);
    assert_eq!(admitted, Err(SendRefused::SessionMissing));
}

/// `cargo test --release -- --ignored --nocapture ten_thousand`: what a message costs the state
/// machine with sessions, and without.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn ten_thousand_sessions_at_once() {
    let names: Vec<String> = (0..10_000).map(|at| format!("session {at}")).collect();
    let mut bench = bench();
    bench.main.describe(Description {
        requires_session: true,
        lock_duration: Millis::from_secs(300),
        ..Description::default()
    });
    for (at, name) in (1..).zip(&names) {
        let consumer = ConsumerId(at);
        bench.step(|queue, cx| {
            let wanted = Wanted::Named(name);
            let accepted = queue.accept_session(cx, consumer, ReceiveMode::PeekLock, wanted);
            assert!(accepted.is_ok());
            queue.set_credit(cx, consumer, 1 << 30);
        });
    }
    let began = std::time::Instant::now();
    for at in 0..1_000_000_usize {
        let got = received(bench.send_in(&names[at % names.len()]));
        let settled = bench.step(|queue, cx| queue.settle(cx, got[0].2, Settlement::Complete));
        assert_eq!(settled.0, Ok(()));
        bench.journal.lines.clear();
    }
    eprintln!("{:?} for a million messages", began.elapsed());
}

#[test]
fn a_state_of_too_many_bytes_is_refused_and_the_old_one_stays() {
    let mut bench = bench();
    let largest = bytes::Bytes::from(vec![0; limits::SESSION_STATE_BYTES_MAX]);
    let state = Some(largest.clone());
    let set = bench.step(|queue, cx| queue.set_session_state(cx, "a", state, 0));
    assert_eq!(set.0, Ok(()));
    let larger = Some(bytes::Bytes::from(vec![0; largest.len() + 1]));
    let set = bench.step(|queue, cx| queue.set_session_state(cx, "a", larger, 0));
    assert!(set.0.is_err());
    assert_eq!(bench.main.session_state("a"), Some(&largest));
}

#[test]
fn a_message_of_a_session_shows_the_greatest_date_for_its_lock() {
    let mut bench = bench();
    bench.send_in("a");
    let step = |queue: &mut Queue, cx: &mut Context<'_>| {
        let wanted = Wanted::Named("a");
        let accepted = queue.accept_session(cx, ONE, ReceiveMode::PeekLock, wanted);
        assert!(matches!(accepted, Ok(Accepted::Granted(_))), "{accepted:?}");
        queue.set_credit(cx, ONE, 1);
    };
    let ((), deliveries) = bench.step(step);
    let [Delivery::Message(_, handover)] = &deliveries[..] else {
        panic!("{deliveries:?}");
    };
    assert_eq!(handover.stamps.locked_until, Some(Timestamp::END_OF_9999));
}

#[test]
fn what_waits_for_a_receiver_is_what_it_can_get() {
    let mut bench = bench();
    for session in ["a", "a", "b", "c", "c"] {
        bench.send_in(session);
    }
    let got = bench.accept(ONE, Wanted::Named("a"));
    let waiting = |bench: &Bench| {
        let mut budget = 100;
        let states = bench.main.receiver_states(&[ONE, TWO], &mut budget);
        states.iter().map(|it| it.waiting).collect::<Vec<_>>()
    };
    assert_eq!(
        waiting(&bench),
        [Some(0), Some(0)],
        "it has both of its session"
    );
    bench.step(|queue, cx| {
        queue.set_credit(cx, ONE, 2);
        queue.settle(cx, got[0].2, Settlement::Release).unwrap();
    });
    assert_eq!(
        waiting(&bench),
        [Some(1), Some(0)],
        "no message of another session waits for it"
    );
    // All sessions are held: another receiver waits for any.
    let three = ConsumerId(3);
    bench.accept(three, Wanted::Named("b"));
    bench.accept(ConsumerId(4), Wanted::Named("c"));
    let wait = Wanted::Next(Timestamp::MAX);
    let accepted =
        bench.step(|queue, cx| queue.accept_session(cx, TWO, ReceiveMode::PeekLock, wait));
    assert_eq!(accepted.0, Ok(Accepted::Waiting));
    assert_eq!(waiting(&bench), [Some(1), Some(0)]);
    let sessions = bench.main.sessions.as_ref().unwrap();
    assert_eq!(sessions.waiting_for(TWO), 0);
    // Without a holder its messages wait for the receiver that waits for any session.
    bench.step(|queue, cx| {
        queue.remove_consumer(TWO);
        queue.remove_consumer(ConsumerId(4));
        queue.release_session(cx, ConsumerId(4));
    });
    let sessions = bench.main.sessions.as_mut().unwrap();
    sessions.wait(TWO, Timestamp::MAX);
    assert_eq!(sessions.waiting_for(TWO), 2);
}
