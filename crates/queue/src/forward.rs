//! Messages that go from one queue to another: dead letters, forwarded ones, copies of a topic's.

use std::sync::Arc;

use super::{
    Amendments, BodyRef, Context, DeadLetter, DeadLetterCause, EntityId, Entry, Kind, Passage,
    Queue, Record, SequenceNumber, StoredState, number,
};
use jitney_base::time::{Millis, Timestamp};
use jitney_rules::Facts;

/// A message on its way to another queue, which it leaves or is copied from. No record of it is
/// written yet: [`Queue::arrive`] writes it.
#[derive(Debug)]
pub struct Departure {
    /// The queue it comes from.
    pub from: EntityId,
    /// The queue it goes to.
    pub to: EntityId,
    pub(super) entry: Entry,
    pub(super) kind: PassageKind,
}

/// What becomes of a message in the queue that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassageKind {
    /// It leaves.
    Moved,
    /// It stays.
    Copied,
}

/// What decides whether another entity takes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardFacts {
    /// How often it was forwarded.
    pub hops: u8,
    /// Its bytes as its sender encoded them.
    pub bytes: u64,
    /// It belongs to a message session.
    pub has_session: bool,
}

/// Facts about a message that its destination needs and cannot read from the bytes.
#[derive(Debug, Default)]
pub struct Arriving {
    /// The key by which the destination detects duplicates of it.
    pub duplicate_key: Option<u128>,
    /// The hash that decides its partition there, if any.
    pub partition_hash: Option<u64>,
    /// When it becomes active there, if that was set; a time in the past means now.
    pub due: Option<Timestamp>,
    /// The destination stores it as a dead letter.
    pub dead_letter: Option<DeadLetter>,
}

impl Departure {
    pub(super) fn new(from: EntityId, to: EntityId, entry: Entry) -> Self {
        Self {
            from,
            to,
            entry,
            kind: PassageKind::Moved,
        }
    }

    /// Changes its destination: it could not be forwarded.
    pub fn redirect(&mut self, to: EntityId, reason: DeadLetter) {
        self.to = to;
        self.amend(Arc::new(reason.into_amendments()));
    }

    /// Changes its properties.
    pub fn amend(&mut self, later: Arc<Amendments>) {
        super::receive::amend(&mut self.entry.amendments, Some(later));
    }

    /// Returns the changes to it.
    #[must_use]
    pub fn amendments(&self) -> Option<&Amendments> {
        self.entry.amendments.as_deref()
    }

    /// Gives it another time to live; the destination may shorten it.
    pub fn set_time_to_live(&mut self, life: Millis) {
        self.entry.time_to_live = life;
    }

    /// Counts one forward more.
    pub fn hop(&mut self) {
        self.entry.hops = self.entry.hops.saturating_add(1);
    }

    /// Puts it into another message session, or takes it out of its own.
    pub fn set_message_session(&mut self, id: Option<&str>) {
        self.entry.message_session = id.map(Into::into);
    }

    /// Says where it was dead-lettered.
    pub fn set_dead_letter_source(&mut self, path: &str) {
        self.entry.dead_letter_source = Some(Arc::new(path.into()));
    }

    /// Returns whether the queue it comes from keeps it.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.kind == PassageKind::Copied
    }

    /// Returns the bytes of the message.
    #[must_use]
    pub fn body(&self) -> BodyRef {
        self.entry.body
    }
}

impl Queue {
    /// Returns the messages that can be forwarded now and the positions of their bodies, in order.
    #[must_use]
    pub fn waiting_to_go(&self, count: usize) -> Vec<(SequenceNumber, BodyRef)> {
        self.going().take(count).collect()
    }

    fn going(&self) -> impl Iterator<Item = (SequenceNumber, BodyRef)> {
        let returned = self.returned.iter().filter_map(|&at| self.index.get(at));
        let found = returned.chain(self.index.available(self.cursor));
        found.map(|entry| (number(entry.ordinal), entry.body))
    }

    /// Returns the first message that can be forwarded now, and the position of its body. A message
    /// that cannot be forwarded is skipped once.
    pub fn first_to_go(&mut self) -> Option<(SequenceNumber, BodyRef)> {
        if self.description.partitioned || !self.returned.is_empty() {
            return self.going().next();
        }
        let fresh = self.index.first_available(self.cursor);
        self.cursor = fresh.map_or_else(|| self.numbers.peek(0), |(ordinal, _)| ordinal);
        fresh.map(|(ordinal, body)| (number(ordinal), body))
    }

    /// Returns what decides whether another entity takes a message; `None` if it cannot leave.
    #[must_use]
    pub fn forward_facts(&self, number: SequenceNumber) -> Option<ForwardFacts> {
        let entry = self.index.get(self.ordinal(number))?;
        entry.is_available().then(|| ForwardFacts {
            hops: entry.hops,
            bytes: u64::from(entry.body.length),
            has_session: entry.message_session.is_some(),
        })
    }

    /// Leaves the first message that can be forwarded where it is: those behind it have their turn.
    pub fn leave_behind(&mut self, number: SequenceNumber) {
        let ordinal = self.ordinal(number);
        self.returned.remove(&ordinal);
        if !self.description.partitioned {
            self.cursor = self.cursor.max(ordinal + 1);
        }
        self.check();
    }

    /// Gives those that were left behind their turn again.
    pub fn turn_back(&mut self) {
        if self.sessions.is_some() {
            return;
        }
        self.returned.clear();
        if self.description.partitioned {
            let available = self.index.available(0);
            self.returned = available.map(|entry| entry.ordinal).collect();
        } else {
            self.cursor = 0;
        }
    }

    /// Removes a message that is forwarded.
    pub fn depart(&mut self, number: SequenceNumber, to: EntityId) -> Option<Departure> {
        let ordinal = self.ordinal(number);
        let available = self
            .index
            .get(ordinal)
            .is_some_and(|entry| entry.is_available());
        let entry = available.then(|| self.forget(ordinal))??;
        Some(Departure::new(self.id, to, entry))
    }

    /// Counts a message that has gone on to its target.
    pub fn count_forwarded(&mut self) {
        self.count().forwarded += 1;
    }

    /// Counts a message that its target has refused, and that was dead-lettered for it.
    pub fn count_refused(&mut self) {
        self.count().dead_letter(DeadLetterCause::Forwarding);
    }

    /// Removes a topic's message that one subscription alone gets. Its bytes count to the topic as those of copies do.
    pub fn depart_to_subscription(
        &mut self,
        number: SequenceNumber,
        to: EntityId,
    ) -> Option<Departure> {
        let mut departure = self.depart(number, to)?;
        departure.entry.shared = true;
        self.count().forwarded += 1;
        Some(departure)
    }

    /// Copies a message for a subscription. The one here stays, and shares its bytes.
    pub fn copy(&mut self, number: SequenceNumber, to: EntityId) -> Option<Departure> {
        let copy = self.copy_again(number, to)?;
        self.count().forwarded += 1;
        Some(copy)
    }

    /// Copies a message as [`Queue::copy`] did before the process started.
    pub(super) fn copy_again(&self, number: SequenceNumber, to: EntityId) -> Option<Departure> {
        let mut entry = self.index.get(self.ordinal(number))?.clone();
        entry.shared = true;
        Some(Departure {
            from: self.id,
            to,
            entry,
            kind: PassageKind::Copied,
        })
    }

    /// Returns the properties that rules read and the message's bytes do not have.
    #[must_use]
    pub fn facts(&self, number: SequenceNumber, seed: u64) -> Option<Facts> {
        let entry = self.index.get(self.ordinal(number))?;
        Some(Facts {
            sequence_number: number,
            enqueued_time: entry.enqueued_at,
            time_to_live: entry.time_to_live,
            seed,
        })
    }

    /// Returns the amendments of a message.
    #[must_use]
    pub fn amendments(&self, number: SequenceNumber) -> Option<Arc<Amendments>> {
        self.index.get(self.ordinal(number))?.amendments.clone()
    }

    /// Removes a topic's message that has been copied to all subscriptions that take it, if any does.
    pub fn published(&mut self, cx: &mut Context<'_>, number: SequenceNumber) {
        let ordinal = self.ordinal(number);
        self.remove(cx, ordinal);
    }

    /// Removes a topic's message that no subscription has taken.
    pub fn published_to_none(&mut self, cx: &mut Context<'_>, number: SequenceNumber) {
        self.published(cx, number);
        self.count().unmatched += 1;
    }

    /// Adds a message from another queue, and records its arrival.
    ///
    /// A duplicate is dropped.
    pub fn arrive(&mut self, cx: &mut Context<'_>, departure: Departure, arriving: Arriving) {
        let Departure {
            from,
            mut entry,
            kind,
            ..
        } = departure;
        let from_number = number(entry.ordinal);
        match self.kind {
            // A dead letter keeps its number and its time of arrival, and never expires
            // (`entities.md#sequence-numbers`).
            Kind::DeadLetter => {
                entry.ordinal = self.numbers.place(from_number);
                entry.time_to_live = Millis::MAX;
            }
            Kind::Main { .. } => {
                if self.is_duplicate(cx, &arriving) {
                    drop_departed(cx, from, from_number, entry.body, kind);
                    return;
                }
                self.settle_in(cx, &mut entry, from_number, &arriving);
            }
        }
        self.record_passage(cx, from, from_number, &entry, kind);
        let ordinal = entry.ordinal;
        let lost = self.sessions.is_some() && entry.message_session.is_none();
        let due = arriving.due.filter(|due| cx.now < *due);
        let due = due.filter(|_| matches!(self.kind, Kind::Main { .. }));
        if let Some(due) = due {
            entry.state = StoredState::Scheduled { due };
        }
        self.add(entry);
        if due.is_some() {
            // The passage says nothing of a time.
            self.record_change(cx, ordinal);
        }
        let counters = self.count();
        counters.incoming += 1;
        counters.scheduled += u64::from(due.is_some());
        let failed = arriving
            .dead_letter
            .map(|reason| (DeadLetterCause::Filter, reason));
        let no_session = lost.then(|| (DeadLetterCause::NoSession, DeadLetter::without_session()));
        if let Some((cause, reason)) = failed.or(no_session) {
            let changes = Some(Arc::new(reason.into_amendments()));
            self.dead_letter(cx, ordinal, cause, changes);
        }
    }

    /// Makes a message one of this queue's, with a number, a time of arrival and a time to live of
    /// its own here.
    fn settle_in(
        &mut self,
        cx: &Context<'_>,
        entry: &mut Entry,
        from_number: SequenceNumber,
        arriving: &Arriving,
    ) {
        entry.ordinal = self.numbers.take(arriving.partition_hash);
        entry.enqueued_at = cx.now;
        entry.delivery_count = 0;
        entry.state = StoredState::Active;
        entry.time_to_live = entry
            .time_to_live
            .min(self.description.default_time_to_live);
        // A message that was forwarded several times keeps the number of its first entity
        // (`entities.md#forwarding`).
        if entry.enqueued_number == SequenceNumber(0) {
            entry.enqueued_number = from_number;
        }
        let name = entry.message_session.take();
        entry.message_session = name.map(|name| self.intern(name.as_str()));
    }

    fn is_duplicate(&mut self, cx: &mut Context<'_>, arriving: &Arriving) -> bool {
        let window = self.description.duplicates();
        let (Some(window), Some(key)) = (window, arriving.duplicate_key) else {
            return false;
        };
        if !self.duplicates.insert(cx.now, window, key) {
            self.count().duplicates += 1;
            return true;
        }
        let (entity, at) = (self.id, cx.now);
        cx.journal.append(&Record::Seen { entity, at, key });
        false
    }

    pub(super) fn record_passage(
        &self,
        cx: &mut Context<'_>,
        from: EntityId,
        from_number: SequenceNumber,
        entry: &Entry,
        kind: PassageKind,
    ) {
        let amendments = entry
            .amendments
            .as_ref()
            .map(|amendments| amendments.encode());
        let source = entry.dead_letter_source.as_ref();
        let passage = Passage {
            from,
            from_number,
            to: self.id,
            number: number(entry.ordinal),
            at: entry.enqueued_at,
            time_to_live: entry.time_to_live,
            enqueued_number: entry.enqueued_number,
            delivery_count: entry.delivery_count,
            hops: entry.hops,
            message_session: entry
                .message_session
                .as_ref()
                .map(super::MessageSession::as_str),
            dead_letter_source: source.map(|source| &***source),
            amendments: amendments.as_deref(),
        };
        cx.journal.append(&match kind {
            PassageKind::Moved => Record::Moved(passage),
            PassageKind::Copied => Record::Copied(passage),
        });
    }
}

/// Records that a message left one queue and arrived in none.
fn drop_departed(
    cx: &mut Context<'_>,
    entity: EntityId,
    number: SequenceNumber,
    body: BodyRef,
    kind: PassageKind,
) {
    if kind == PassageKind::Moved {
        cx.journal.append(&Record::Removed { entity, number });
    }
    cx.journal.release(body);
}
