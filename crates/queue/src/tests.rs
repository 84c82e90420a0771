use super::*;
use crate::limits;
use crate::{Arrival, DeferredRefused, LockLost, SendRefused};

/// A main queue and its dead letters, with a journal that keeps its records.
pub(super) struct Bench {
    pub(super) now: Timestamp,
    pub(super) main: Queue,
    dead: Queue,
    pub(super) journal: Kept,
    random: Random,
}

#[derive(Default)]
pub(super) struct Kept {
    pub(super) lines: Vec<String>,
    position: u64,
    released: usize,
}

impl Journal for Kept {
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef> {
        self.lines.push(format!("{record:?}"));
        let body = match record {
            Record::Enqueued { body, .. } | Record::Relocated { body, .. } => body.len(),
            _ => return None,
        };
        self.position += 1;
        Some(BodyRef {
            position: self.position,
            length: u32::try_from(body).unwrap(),
        })
    }

    fn release(&mut self, _: BodyRef) {
        self.released += 1;
    }
}

const MAIN: EntityId = EntityId(0);
const DEAD: EntityId = EntityId(1);
pub(super) const ONE: ConsumerId = ConsumerId(1);
pub(super) const TWO: ConsumerId = ConsumerId(2);

impl Bench {
    pub(super) fn new(description: Description) -> Self {
        Self::starting_at(description, 1)
    }

    fn starting_at(description: Description, first: u64) -> Self {
        let kind = Kind::Main { dead_letters: DEAD };
        Self {
            now: Timestamp::from_millis(1_000),
            main: Queue::new(MAIN, kind, description.clone(), SequenceNumber(first)),
            dead: Queue::new(DEAD, Kind::DeadLetter, description, SequenceNumber(1)),
            journal: Kept::default(),
            random: Random::new(1),
        }
    }

    /// Runs a step of the main queue as the broker does.
    pub(super) fn step<T>(
        &mut self,
        step: impl FnOnce(&mut Queue, &mut Context<'_>) -> T,
    ) -> (T, Vec<Delivery>) {
        let mut effects = Effects::default();
        let mut cx = Context {
            now: self.now,
            journal: &mut self.journal,
            random: &mut self.random,
            effects: &mut effects,
        };
        self.main.handle_timeout(&mut cx, usize::MAX);
        let result = step(&mut self.main, &mut cx);
        for departure in std::mem::take(&mut cx.effects.departures) {
            self.dead.arrive(&mut cx, departure, Arriving::default());
        }
        (result, effects.deliveries)
    }

    pub(super) fn send(&mut self, time_to_live: Option<i64>, due: Option<i64>) -> u64 {
        let arrival = Arrival {
            body: b"body",
            time_to_live: time_to_live.map(Millis::from_millis),
            due: due.map(Timestamp::from_millis),
            ..Arrival::default()
        };
        let taken = self.step(|queue, cx| queue.enqueue(cx, arrival)).0;
        taken.unwrap().number.0
    }

    pub(super) fn receive(&mut self, count: u32) -> Vec<Handover> {
        self.receive_by(ONE, count)
    }

    pub(super) fn receive_by(&mut self, id: ConsumerId, count: u32) -> Vec<Handover> {
        let ((), deliveries) = self.step(|queue, cx| {
            queue.add_consumer(id, ReceiveMode::PeekLock);
            queue.drain(cx, id, count);
            queue.remove_consumer(id);
        });
        messages(deliveries)
    }

    pub(super) fn settle(
        &mut self,
        token: LockToken,
        settlement: Settlement,
    ) -> Result<(), SettlementRefused> {
        self.step(|queue, cx| queue.settle(cx, token, settlement)).0
    }

    fn wait(&mut self, millis: i64) {
        self.now = self.now.after(Millis::from_millis(millis));
        self.step(|_, _| ());
    }

    fn browse(&self) -> Vec<(i64, MessageState)> {
        let all = self.main.browse(SequenceNumber(0), 100);
        all.iter()
            .map(|found| (found.stamps.sequence_number, found.stamps.state))
            .collect()
    }
}

/// Messages that were enqueued before a time.
fn doomed(count: usize, before: Timestamp) -> Doomed<'static> {
    Doomed {
        count,
        before,
        message_session: None,
    }
}

pub(super) fn messages(deliveries: Vec<Delivery>) -> Vec<Handover> {
    let handovers = deliveries
        .into_iter()
        .filter_map(|delivery| match delivery {
            Delivery::Message(_, handover) => Some(handover),
            _ => None,
        });
    handovers.map(|handover| *handover).collect()
}

pub(super) fn numbers(handovers: &[Handover]) -> Vec<i64> {
    handovers
        .iter()
        .map(|handover| handover.stamps.sequence_number)
        .collect()
}

fn description() -> Description {
    Description {
        lock_duration: Millis::from_millis(100),
        max_delivery_count: 3,
        ..Description::default()
    }
}

#[test]
fn numbers_begin_at_one_and_have_no_gap() {
    let mut bench = Bench::new(description());
    assert_eq!(
        (0..5).map(|_| bench.send(None, None)).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    assert_eq!(numbers(&bench.receive(10)), [1, 2, 3, 4, 5]);
}

#[test]
fn numbers_roll_over_to_zero_at_the_end_of_their_range() {
    let last = (1 << 48) - 1;
    let mut bench = Bench::starting_at(description(), last - 1);
    assert_eq!(
        (0..4).map(|_| bench.send(None, None)).collect::<Vec<_>>(),
        [last - 1, last, 0, 1]
    );
    let in_order = [last.cast_signed() - 1, last.cast_signed(), 0, 1];
    let all: Vec<i64> = bench.browse().iter().map(|&(number, _)| number).collect();
    assert_eq!(all, in_order);
    let from_the_last = bench.main.browse(SequenceNumber(last), 10);
    assert_eq!(from_the_last.len(), 3);
    let received = bench.receive(10);
    assert_eq!(numbers(&received), in_order);
    for handover in received {
        bench.settle(handover.token, Settlement::Complete).unwrap();
    }
    assert!(bench.main.is_empty());
    assert_eq!(bench.main.bytes(), 0);
}

#[test]
fn a_lock_holds_until_its_time_and_not_longer() {
    let mut bench = Bench::new(description());
    bench.send(None, None);
    let first = bench.receive(1).remove(0);
    assert_eq!(
        first.stamps.locked_until,
        Some(Timestamp::from_millis(1_100))
    );
    bench.wait(99);
    assert!(bench.receive(1).is_empty());
    bench.wait(1);
    assert_eq!(
        bench.settle(first.token, Settlement::Complete),
        Err(LockLost.into())
    );
    let again = bench.receive(1).remove(0);
    assert_eq!(again.stamps.delivery_count, 1);
    assert_ne!(again.token, first.token);
    assert_eq!(bench.settle(again.token, Settlement::Complete), Ok(()));
    assert_eq!(
        bench.settle(again.token, Settlement::Complete),
        Err(LockLost.into())
    );
}

#[test]
fn a_renewed_lock_counts_from_now() {
    let mut bench = Bench::new(description());
    bench.send(None, None);
    let handover = bench.receive(1).remove(0);
    bench.wait(60);
    let now = bench.now;
    let renewed = bench.step(|queue, _| queue.renew(now, handover.token)).0;
    assert_eq!(renewed, Ok(Timestamp::from_millis(1_160)));
    bench.wait(99);
    assert!(bench.main.is_locked(handover.token));
    bench.wait(1);
    let now = bench.now;
    assert_eq!(
        bench.step(|queue, _| queue.renew(now, handover.token)).0,
        Err(LockLost)
    );
}

#[test]
fn what_is_given_back_comes_before_what_is_newer() {
    let mut bench = Bench::new(description());
    (0..4).for_each(|_| _ = bench.send(None, None));
    let taken = bench.receive(3);
    bench.settle(taken[2].token, Settlement::Release).unwrap();
    bench
        .settle(taken[0].token, Settlement::Abandon(None))
        .unwrap();
    let again = bench.receive(10);
    assert_eq!(numbers(&again), [1, 3, 4]);
    assert_eq!(again[0].stamps.delivery_count, 1, "abandoned");
    assert_eq!(again[1].stamps.delivery_count, 0, "released");
}

#[test]
fn messages_that_are_changed_alike_share_their_changes() {
    let mut bench = Bench::new(description());
    (0..3).for_each(|_| _ = bench.send(None, None));
    let mut changes = Amendments::default();
    changes.set_string("why", &"x".repeat(60_000));
    let changes = Some(Arc::new(changes));
    let taken = bench.receive(3);
    let settlements = [
        Settlement::Abandon(changes.clone()),
        Settlement::Defer(changes.clone()),
        Settlement::DeadLetter(changes.clone()),
    ];
    for (handover, settlement) in taken.iter().zip(settlements) {
        bench.settle(handover.token, settlement).unwrap();
    }
    let all = [&bench.main, &bench.dead].map(|queue| queue.browse(SequenceNumber(0), 10));
    let all: Vec<_> = all.into_iter().flatten().collect();
    assert_eq!(all.len(), 3);
    for seen in all {
        let has = seen.stamps.amendments.as_ref();
        assert!(has.is_some_and(|has| Arc::ptr_eq(has, changes.as_ref().unwrap())));
    }
}

#[test]
fn a_property_is_not_changed_to_a_map() {
    let mut bench = Bench::new(description());
    bench.send(None, None);
    let taken = bench.receive(1);
    let mut changes = Amendments::default();
    changes.set_encoded("map", vec![0xc1, 1, 0]);
    let defer = Settlement::Defer(Some(Arc::new(changes)));
    assert_eq!(
        bench.settle(taken[0].token, defer),
        Err(SettlementRefused::NotSimple)
    );
    assert_eq!(bench.settle(taken[0].token, Settlement::Release), Ok(()));
}

#[test]
fn many_small_changes_weigh_more_than_their_bytes() {
    let mut bench = Bench::new(description());
    bench.send(None, None);
    let taken = bench.receive(1);
    let mut changes = Amendments::default();
    for number in 0..2_000 {
        changes.set_string(&number.to_string(), "");
    }
    assert!(changes.size() < jitney_rules::limits::AMENDMENTS_BYTES_MAX / 2);
    let abandon = Settlement::Abandon(Some(Arc::new(changes)));
    assert_eq!(
        bench.settle(taken[0].token, abandon),
        Err(SettlementRefused::TooManyProperties)
    );
}

#[test]
fn too_many_failures_lead_to_the_dead_letters() {
    let mut bench = Bench::new(description());
    bench.send(None, None);
    for _ in 0..2 {
        let handover = bench.receive(1).remove(0);
        bench
            .settle(handover.token, Settlement::Abandon(None))
            .unwrap();
    }
    bench.receive(1);
    bench.wait(100);
    assert!(bench.main.is_empty());
    let dead = bench.dead.browse(SequenceNumber(0), 10);
    assert_eq!(dead.len(), 1);
    assert_eq!(
        dead[0].stamps.sequence_number, 1,
        "a dead letter keeps its number"
    );
    assert_eq!(dead[0].stamps.delivery_count, 3);
    let mut amendments = (**dead[0].stamps.amendments.as_ref().unwrap()).clone();
    assert_eq!(
        amendments.take_string("DeadLetterReason").as_deref(),
        Some("MaxDeliveryCountExceeded")
    );
    assert_eq!(
        amendments
            .take_string("DeadLetterErrorDescription")
            .as_deref(),
        Some("Message could not be consumed after 3 delivery attempts.")
    );
}

#[test]
fn a_message_lives_as_long_as_the_shorter_of_both_limits() {
    let limit = Millis::from_millis(50);
    let mut bench = Bench::new(Description {
        default_time_to_live: limit,
        ..description()
    });
    bench.send(Some(20), None);
    bench.send(Some(500), None);
    bench.send(None, None);
    bench.wait(19);
    assert_eq!(bench.browse().len(), 3);
    bench.wait(1);
    assert_eq!(bench.browse().len(), 2);
    bench.wait(30);
    assert!(bench.main.is_empty());
    assert!(bench.dead.is_empty());
    assert_eq!(bench.journal.released, 3);
}

#[test]
fn what_expires_is_dead_lettered_where_that_is_asked_for() {
    let mut bench = Bench::new(Description {
        dead_letter_on_expiration: true,
        ..description()
    });
    bench.send(Some(20), None);
    let locked = bench.receive(1).remove(0);
    bench.send(Some(20), None);
    bench.wait(20);
    assert_eq!(bench.dead.len(), 1, "the locked one is its holder's still");
    bench.settle(locked.token, Settlement::Release).unwrap();
    assert_eq!(bench.dead.len(), 2, "and ends when it is given back");
    assert_eq!(bench.journal.released, 0);
}

#[test]
fn deferred_messages_are_received_by_number_only_and_do_not_expire() {
    let mut bench = Bench::new(Description {
        dead_letter_on_expiration: true,
        ..description()
    });
    (0..3).for_each(|_| _ = bench.send(Some(60), None));
    for handover in bench.receive(3) {
        bench
            .settle(handover.token, Settlement::Defer(None))
            .unwrap();
    }
    bench.wait(1_000);
    assert!(bench.receive(3).is_empty());
    let deferred = MessageState::Deferred;
    assert_eq!(
        bench.browse(),
        [(1, deferred), (2, deferred), (3, deferred)]
    );
    let by_number = |bench: &mut Bench, numbers: &[u64]| {
        let numbers: Vec<_> = numbers.iter().copied().map(SequenceNumber).collect();
        bench
            .step(|queue, cx| queue.receive_deferred(cx, &numbers, ReceiveMode::PeekLock, None))
            .0
    };
    assert_eq!(by_number(&mut bench, &[3, 4]).unwrap_err(), DeferredRefused);
    let taken = by_number(&mut bench, &[3, 1]).unwrap();
    assert_eq!(numbers(&taken), [1, 3]);
    assert_eq!(by_number(&mut bench, &[1]).unwrap_err(), DeferredRefused);
    bench
        .settle(taken[0].token, Settlement::Abandon(None))
        .unwrap();
    bench.settle(taken[1].token, Settlement::Complete).unwrap();
    assert_eq!(
        bench.browse(),
        [(1, deferred), (2, deferred)],
        "abandoned, it stays deferred"
    );
    let dead = Settlement::DeadLetter(None);
    let one = by_number(&mut bench, &[1]).unwrap().remove(0);
    bench.settle(one.token, dead).unwrap();
    assert_eq!(bench.dead.len(), 1);
}

#[test]
fn an_operator_locks_active_and_deferred_messages_by_their_numbers() {
    let mut bench = Bench::new(description());
    for _ in 0..4 {
        bench.send(None, None);
    }
    let first = bench.receive(1).remove(0);
    bench.settle(first.token, Settlement::Defer(None)).unwrap();
    let lock = |bench: &mut Bench, numbers: &[u64]| {
        let numbers: Vec<_> = numbers.iter().copied().map(SequenceNumber).collect();
        bench.step(|queue, cx| queue.lock_by_number(cx, &numbers)).0
    };
    let refused = lock(&mut bench, &[3, 9]).unwrap_err();
    assert_eq!(refused.to_string(), "The message 9 is not there.");
    let locked = lock(&mut bench, &[3, 1, 3]).unwrap();
    assert_eq!(numbers(&locked), [1, 3]);
    let refused = lock(&mut bench, &[3]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "The message 3 is locked by a receiver."
    );
    // Receivers get the others, and what is given back.
    assert_eq!(numbers(&bench.receive(4)), [2, 4]);
    bench
        .settle(locked[1].token, Settlement::Abandon(None))
        .unwrap();
    let again = bench.receive(1).remove(0);
    assert_eq!(again.stamps.sequence_number, 3);
    assert_eq!(again.stamps.delivery_count, 1);
    bench.settle(locked[0].token, Settlement::Complete).unwrap();
    assert!(lock(&mut bench, &[1]).is_err());
}

#[test]
fn the_oldest_message_that_waits_is_known() {
    let mut bench = Bench::new(description());
    let oldest = |bench: &mut Bench| bench.step(|queue, _| queue.oldest_waiting()).0;
    assert_eq!(oldest(&mut bench), None);
    bench.send(None, None);
    let one = oldest(&mut bench);
    bench.wait(1_000);
    bench.send(None, None);
    assert!(one.is_some() && oldest(&mut bench) == one);
    let taken = bench.receive(1).remove(0);
    assert!(one < oldest(&mut bench));
    bench
        .settle(taken.token, Settlement::Abandon(None))
        .unwrap();
    assert_eq!(oldest(&mut bench), one);
}

#[test]
fn a_message_that_is_deferred_was_delivered() {
    let mut bench = Bench::new(description());
    bench.send(None, None);
    let mut handover = bench.receive(1).remove(0);
    for count in 0..2 {
        assert_eq!(handover.stamps.delivery_count, count);
        bench
            .settle(handover.token, Settlement::Defer(None))
            .unwrap();
        let first = [SequenceNumber(1)];
        let (taken, _) =
            bench.step(|queue, cx| queue.receive_deferred(cx, &first, ReceiveMode::PeekLock, None));
        handover = taken.unwrap().remove(0);
    }
    assert_eq!(handover.stamps.delivery_count, 2);
    bench
        .settle(handover.token, Settlement::Defer(None))
        .unwrap();
    assert_eq!(bench.dead.len(), 1, "it was delivered three times");
    assert_eq!(bench.browse(), []);
}

#[test]
fn scheduled_messages_come_at_their_time_with_new_numbers() {
    let mut bench = Bench::new(description());
    let late = bench.send(None, Some(1_200));
    let soon = bench.send(Some(50), Some(1_100));
    let past = bench.send(None, Some(900));
    assert_eq!((late, soon, past), (1, 2, 3));
    assert_eq!(numbers(&bench.receive(5)), [3]);
    bench.wait(99);
    assert_eq!(bench.browse()[0], (1, MessageState::Scheduled));
    bench.wait(1);
    let received = bench.receive(5);
    assert_eq!(
        numbers(&received),
        [3, 4],
        "the lock of message 3 ends now too"
    );
}

#[test]
fn scheduled_messages_can_be_cancelled_until_they_are_active() {
    let mut bench = Bench::new(description());
    let numbers: Vec<_> = (0..3)
        .map(|_| SequenceNumber(bench.send(None, Some(1_100))))
        .collect();
    assert!(
        !bench
            .step(|queue, cx| queue.cancel(cx, &[numbers[0], SequenceNumber(9)]))
            .0
    );
    assert_eq!(bench.browse().len(), 3, "none was cancelled");
    assert!(bench.step(|queue, cx| queue.cancel(cx, &numbers[..2])).0);
    bench.wait(100);
    assert!(!bench.step(|queue, cx| queue.cancel(cx, &numbers[2..])).0);
    assert_eq!(bench.browse(), [(4, MessageState::Active)]);
}

#[test]
fn a_full_or_disabled_queue_takes_nothing() {
    let bench = Bench::new(Description {
        max_bytes: 10,
        max_message_bytes: 8,
        ..description()
    });
    let admit = |messages: &[&'static [u8]]| {
        let arrivals = messages.iter().map(|&body| Arrival {
            body,
            ..Arrival::default()
        });
        bench.main.admit(arrivals, 0)
    };
    assert_eq!(admit(&[b"12345678", b"12"]), Ok(()));
    assert_eq!(
        admit(&[b"12345678", b"123"]),
        Err(SendRefused::Full {
            bytes: 0,
            max_bytes: 10
        })
    );
    assert_eq!(
        admit(&[b"123456789"]),
        Err(SendRefused::TooLarge {
            bytes: 9,
            max_bytes: 8
        })
    );
    let disabled = Description {
        status: Status::SendDisabled,
        ..description()
    };
    assert_eq!(
        Bench::new(disabled).main.admit([], 0),
        Err(SendRefused::Disabled)
    );
}

#[test]
fn receivers_take_turns_and_a_drain_ends_with_a_notice() {
    let mut bench = Bench::new(description());
    (0..3).for_each(|_| _ = bench.send(None, None));
    let ((), deliveries) = bench.step(|queue, cx| {
        queue.add_consumer(ONE, ReceiveMode::PeekLock);
        queue.add_consumer(TWO, ReceiveMode::ReceiveAndDelete);
        queue.set_credit(cx, ONE, 1);
        queue.drain(cx, TWO, 5);
    });
    let seen: Vec<(ConsumerId, Option<i64>)> = deliveries
        .iter()
        .map(|delivery| match delivery {
            Delivery::Drained(id, _) => (*id, None),
            Delivery::Message(id, handover) => (*id, Some(handover.stamps.sequence_number)),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        seen,
        [(ONE, Some(1)), (TWO, Some(2)), (TWO, Some(3)), (TWO, None)]
    );
    bench.send(None, None);
    let ((), deliveries) = bench.step(|queue, cx| queue.set_credit(cx, TWO, 5));
    assert!(deliveries.is_empty(), "the drain used up all credit");
}

#[test]
fn a_batch_delete_takes_what_can_be_received_and_is_old_enough() {
    let mut bench = Bench::new(description());
    (0..3).for_each(|_| _ = bench.send(None, None));
    bench.receive(1);
    bench.wait(10);
    bench.send(None, None);
    let before = bench.now;
    assert_eq!(
        bench
            .step(|queue, cx| queue
                .delete_batch(cx, &doomed(10, before), 0, &mut ScanBudget::default())
                .0)
            .0,
        2
    );
    let left: Vec<i64> = bench.browse().iter().map(|&(number, _)| number).collect();
    assert_eq!(left, [1, 4]);
}

#[test]
fn the_next_deadline_is_ahead_after_every_step() {
    let mut bench = Bench::new(description());
    bench.send(Some(10), None);
    bench.send(None, Some(1_005));
    while let Some(next) = bench.main.poll_timeout() {
        bench.now = next;
        bench.step(|_, _| ());
        assert!(bench.main.poll_timeout().is_none_or(|after| next < after));
    }
    assert_eq!(bench.browse(), [(3, MessageState::Active)]);
}

/// The bits of a place that are those of a sequence number.
fn ordinal_bits(place: u64) -> u64 {
    place & 0xffff_ffff_ffff
}

#[test]
fn who_looks_for_messages_goes_on_where_the_looks_ended() {
    let mut bench = Bench::new(description());
    (0..10).for_each(|_| _ = bench.send(None, None));
    let few = || {
        let mut budget = ScanBudget::default();
        budget.spend(limits::SCAN_BUDGET - 3);
        budget
    };
    // None has a session, and none is old enough.
    let mut start = bench.main.browse_start(SequenceNumber(2));
    let mut turns = Vec::new();
    while let Err(next) = bench.main.browse_session(start, 5, "s", &mut few()) {
        assert!(start < next.0);
        start = next.0;
        turns.push(ordinal_bits(start));
    }
    assert_eq!(turns, [5, 8]);
    let before = bench.now;
    let (mut start, mut turns) = (0, Vec::new());
    loop {
        let doomed = doomed(5, before);
        let delete = |queue: &mut Queue, cx: &mut Context<'_>| {
            queue.delete_batch(cx, &doomed, start, &mut few())
        };
        let (deleted, next) = bench.step(delete).0;
        assert_eq!(deleted, 0);
        let Some(next) = next else { break };
        start = next.0;
        turns.push(ordinal_bits(start));
    }
    assert_eq!(turns, [4, 7, 10]);
    // The messages found are reported at once, and the deleted ones are counted.
    bench.wait(10);
    let before = bench.now;
    let mut budget = few();
    let first = |queue: &mut Queue, cx: &mut Context<'_>| {
        queue.delete_batch(cx, &doomed(5, before), 0, &mut budget)
    };
    let (deleted, next) = bench.step(first).0;
    assert_eq!(
        (deleted, next.map(|next| ordinal_bits(next.0))),
        (3, Some(4))
    );
    assert_eq!(bench.browse().len(), 7);
}

#[test]
fn who_gets_a_message_after_another_is_not_its_first_acquirer() {
    let mut bench = Bench::new(description());
    bench.send(None, None);
    let first = bench.receive(1).remove(0);
    assert!(!first.stamps.acquired);
    bench.settle(first.token, Settlement::Release).unwrap();
    let again = bench.receive(1).remove(0);
    assert!(again.stamps.acquired, "it was released");
    assert_eq!(again.stamps.delivery_count, 0);
    let dead = Settlement::DeadLetter(None);
    bench.settle(again.token, dead).unwrap();
    let dead = bench.dead.browse(SequenceNumber(0), 1).remove(0);
    assert!(dead.stamps.acquired, "it came to the dead letters");
}

#[test]
fn a_message_format_is_kept_with_its_message_and_read_from_the_log() {
    let mut bench = Bench::new(description());
    let arrival = Arrival {
        body: b"body",
        message_format: 7,
        ..Arrival::default()
    };
    bench.step(|queue, cx| queue.enqueue(cx, arrival));
    let got = bench.receive(1).remove(0);
    assert_eq!(got.stamps.message_format(), 7);
    let mut changes = Amendments::default();
    changes.set_string("why", "later");
    let abandon = Settlement::Abandon(Some(Arc::new(changes)));
    bench.settle(got.token, abandon).unwrap();
    let again = bench.receive(1).remove(0);
    assert_eq!(again.stamps.message_format(), 7, "changes leave it");

    let kept = Amendments::of_format(7).map(|format| format.encode());
    let record = Record::Enqueued {
        entity: MAIN,
        number: SequenceNumber(1),
        at: bench.now,
        time_to_live: Millis::MAX,
        state: StoredState::Active,
        message_session: None,
        duplicate_key: None,
        amendments: kept.as_deref(),
        body: b"body",
    };
    assert!(bench.journal.lines.contains(&format!("{record:?}")));
    let mut replayed = Bench::new(description());
    replayed.main.replay(&record, Some(got.body)).unwrap();
    let found = replayed.main.browse(SequenceNumber(0), 1).remove(0);
    assert_eq!(found.stamps.message_format(), 7);
    assert!(found.stamps.acquired, "who had it before is not known");
}

#[test]
fn the_state_of_a_receiver_has_its_locks_its_idle_time_and_what_waits() {
    let mut bench = Bench::new(Description {
        lock_duration: Millis::from_millis(60_000),
        ..Description::default()
    });
    for _ in 0..5 {
        bench.send(None, None);
    }
    let state = |bench: &Bench, budget: usize| {
        let mut budget = budget;
        let [state] = &bench.main.receiver_states(&[ONE], &mut budget)[..] else {
            panic!("one receiver has one state");
        };
        state.clone()
    };
    let at = Timestamp::from_millis;
    let ((), deliveries) = bench.step(|queue, cx| {
        queue.add_consumer(ONE, ReceiveMode::PeekLock);
        queue.set_credit(cx, ONE, 2);
    });
    let got = messages(deliveries);
    bench.wait(5_000);
    let now = state(&bench, 100);
    assert_eq!((now.locked, now.waiting), (2, Some(3)));
    assert_eq!(
        (now.oldest_lock, now.idle_since),
        (Some(at(1_000)), Some(at(1_000)))
    );
    assert_eq!(now.oldest_locked, Some(SequenceNumber(1)));
    // A renewal is no progress, and makes no lock younger.
    assert!(bench.main.renew(bench.now, got[0].token).is_ok());
    assert_eq!(state(&bench, 100).idle_since, Some(at(1_000)));
    assert_eq!(state(&bench, 100).oldest_lock, Some(at(1_000)));
    // With too few looks it is not known how old locks are; how many there are is counted.
    let few = state(&bench, 0);
    assert_eq!(
        (few.locked, few.oldest_lock, few.oldest_locked),
        (2, None, None)
    );
    bench.settle(got[0].token, Settlement::Defer(None)).unwrap();
    let now = state(&bench, 100);
    assert_eq!(
        (now.locked, now.waiting, now.idle_since),
        (1, Some(3), Some(at(6_000)))
    );
    // A deferred message that is locked waits for no receiver, and takes nothing from what does.
    let deferred = |bench: &mut Bench| {
        let (mode, number) = (ReceiveMode::PeekLock, [SequenceNumber(1)]);
        let step = |queue: &mut Queue, cx: &mut Context<'_>| {
            queue.receive_deferred(cx, &number, mode, None).unwrap()
        };
        bench.step(step).0[0].token
    };
    for settlement in [
        Settlement::Abandon(None),
        Settlement::Defer(None),
        Settlement::Release,
        Settlement::Complete,
    ] {
        let token = deferred(&mut bench);
        assert_eq!(bench.main.waiting(), 3);
        bench.settle(token, settlement).unwrap();
        assert_eq!(bench.main.waiting(), 3);
    }
}

#[test]
fn locks_of_a_receiver_that_an_operator_ends_count_as_failed() {
    let mut bench = Bench::new(Description::default());
    bench.send(None, None);
    bench.send(None, None);
    let one = bench.receive_by(ONE, 1);
    let two = bench.receive_by(TWO, 1);
    let ended = bench.step(|queue, cx| queue.end_locks_of(cx.now, ONE)).0;
    assert_eq!((ended, bench.main.poll_timeout()), (1, Some(bench.now)));
    bench.step(|_, _| ());
    assert!(!bench.main.is_locked(one[0].token) && bench.main.is_locked(two[0].token));
    let again = bench.receive_by(TWO, 1);
    assert_eq!(
        (
            again[0].stamps.sequence_number,
            again[0].stamps.delivery_count
        ),
        (1, 1)
    );
}
