//! One queue: messages in the order of their numbers, and the receivers that hold them.
//!
//! ```text
//!            due                    receive                    complete
//! Scheduled ─────► Active ────────────────────────► locked ─────────────► gone
//!     │ cancel        ▲  ▲   abandon, release, lock's end │ │
//!     ▼               │  └─────────────────────────────────┘ │ defer
//!    gone             │         (only by number)             ▼
//!                     │        Deferred ◄──────► locked ◄── Deferred
//!                     └ nothing leads back
//!  Active or locked ──► departs to the dead-letter queue: by the receiver's word, after too many
//!                       deliveries, at the end of its life
//! ```
//!
//! Promises: numbers are given in order, without a gap, once; a message is with at most one
//! receiver; what is due by `now` is done before anything else; every change is a record in the
//! journal before it is acknowledged. Dead-letter queues are queues too, with a number space that is
//! not theirs: a dead letter keeps its number ("only the activation of a scheduled message
//! changes the number", `entities.md#scheduled-messages`).
//!
//! Leaves to the broker: links and their connections, destinations of departures, authorization.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

mod accept;
mod browse;
mod consumers;
mod counters;
mod damaged;
mod description;
mod duplicates;
mod forward;
mod id_map;
mod index;
mod inspect;
pub mod limits;
mod locks;
mod message_session;
mod numbers;
mod ordinals;
mod positions;
mod receive;
mod record;
mod repair;
mod replay;
mod scan;
#[cfg(test)]
mod scan_tests;
mod send;
#[cfg(test)]
mod session_tests;
mod sessions;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use index::{Acquired, Entry, Frozen, Index, Seen};
use jitney_base::ids::{BodyRef, EntityId, LockToken, MessageIds, Random, SequenceNumber};
use jitney_base::memory::{Held, Memory, Purpose};
use jitney_base::time::{ClockStep, Millis, Timestamp};
use jitney_message::{Amendments, MessageState, Stamps};
use locks::LockTable;
use numbers::number;

pub use accept::{
    Accepted, SessionGrant, SessionList, SessionLost, SessionTaken, StateRefused, Wanted,
};
pub use browse::{Browsed, Doomed, ScanBudget, ScanPosition};
pub use consumers::{Allowance, ConsumerId, ReceiveMode};
pub use counters::{Counters, DeadLetterCause};
pub use description::{Description, EntityKind, History, Status};
pub use forward::{Arriving, Departure, ForwardFacts};
pub use inspect::{
    Conditions, Inspected, PageBounds, ReceiverProgress, ReceiverState, Schedule, SessionInspected,
    Spans, Stuck, Until,
};
pub use message_session::MessageSession;
pub use positions::Positions;
pub use receive::{
    Changes, DEAD_LETTER_DESCRIPTION, DEAD_LETTER_REASON, DeadLetter, DeferredRefused, LockLost,
    Settlement, SettlementRefused,
};
pub use record::{Journal, Passage, Record, StoredState};
pub use repair::{NotLockable, without_dead_letter};
pub use replay::{QueueSnapshot, Replayed};
pub use scan::{LoadedMessage, ScanMode, Selection};
pub use send::{Arrival, SendRefused, Taken};

/// A queue, or the dead-letter queue of one.
#[derive(Debug)]
pub struct Queue {
    id: EntityId,
    kind: Kind,
    description: Description,
    numbers: numbers::Numbers,
    index: Index,
    /// No message at or above it was ever looked at for delivery. A partitioned queue has none: all
    /// that can be delivered is in `returned`.
    cursor: u64,
    /// Messages below the cursor that can be delivered: released, or added late.
    returned: BTreeSet<u64>,
    /// The partition that the last message given out was of.
    last_partition: usize,
    /// With message sessions, `sessions` knows the deliverable messages, and the cursor and
    /// `returned` are unused.
    sessions: Option<sessions::Sessions>,
    duplicates: duplicates::Duplicates,
    scheduled: BTreeSet<(Timestamp, u64)>,
    deferred: usize,
    /// Deferred messages that are locked.
    deferred_locked: usize,
    locks: LockTable,
    consumers: consumers::Consumers,
    bytes: u64,
    /// Some messages have expired and are not removed yet: nothing is delivered meanwhile.
    is_behind: bool,
    /// The amendments that a replay read last, because the next message may have the same.
    replayed: Option<(Box<[u8]>, Arc<Amendments>)>,
    /// Bytes of memory beside the entries of messages.
    held: Held,
    /// Made with the first message: most queues of a large namespace see none.
    counters: Option<Box<Counters>>,
    message_ids: MessageIds,
}

/// The role of a queue in its entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It takes messages from senders; what cannot be delivered goes to `dead_letters`.
    Main {
        /// The entity's dead-letter queue.
        dead_letters: EntityId,
    },
    /// It takes messages that the main queue could not deliver or forward, and keeps them until
    /// they are settled.
    DeadLetter,
}

/// The context of a step: what it may use of the world, and its outputs.
pub struct Context<'a> {
    /// The time of the step.
    pub now: Timestamp,
    /// Where records go.
    pub journal: &'a mut dyn Journal,
    /// Random bits.
    pub random: &'a mut Random,
    /// The effects of the step.
    pub effects: &'a mut Effects,
}

/// The effects of a step, in order.
#[derive(Debug, Default)]
pub struct Effects {
    /// Messages for receivers, and ends of drains.
    pub deliveries: Vec<Delivery>,
    /// Messages that go to another queue. Their `Moved` record is not written yet: the broker
    /// passes each to [`Queue::arrive`] in the same step.
    pub departures: Vec<Departure>,
}

/// An effect for a receiver.
#[derive(Debug)]
pub enum Delivery {
    /// Its drain is complete: its credit up to this limit is used up.
    Drained(ConsumerId, u32),
    /// A message.
    Message(ConsumerId, Box<Handover>),
    /// The message session that it waited for.
    SessionGranted(ConsumerId, SessionGrant),
    /// No message session came free within the wait: the receiver is refused.
    NoSession(ConsumerId),
    /// The lock of its message session has ended: it is no longer a receiver.
    SessionLost(ConsumerId),
}

/// A message as it is handed to a receiver.
#[derive(Debug, Clone)]
pub struct Handover {
    /// The lock's token; random when the message is received and deleted at once: then no client sees it.
    pub token: LockToken,
    /// How it is received.
    pub mode: ReceiveMode,
    /// Where its bytes are.
    pub body: BodyRef,
    /// The amendments and stamps of the message.
    pub stamps: Stamps,
}

impl Queue {
    /// Makes an empty queue whose first message gets `first`; 1 for a new one.
    #[must_use]
    pub fn new(id: EntityId, kind: Kind, description: Description, first: SequenceNumber) -> Self {
        let has_sessions = description.requires_session && matches!(kind, Kind::Main { .. });
        let (partitions, cursor) = if description.partitioned {
            (limits::PARTITIONS, u64::MAX)
        } else {
            (1, 0)
        };
        Self {
            id,
            kind,
            description,
            numbers: numbers::Numbers::new(first, partitions),
            index: Index::default(),
            cursor,
            returned: BTreeSet::new(),
            last_partition: 0,
            sessions: has_sessions.then(sessions::Sessions::default),
            duplicates: duplicates::Duplicates::default(),
            scheduled: BTreeSet::new(),
            deferred: 0,
            deferred_locked: 0,
            locks: LockTable::default(),
            consumers: consumers::Consumers::default(),
            bytes: 0,
            is_behind: false,
            replayed: None,
            held: Memory::default().hold(Purpose::Other, 0),
            counters: None,
            message_ids: MessageIds::of_log(0),
        }
    }

    /// Takes the source of ids for messages without one.
    #[must_use]
    pub fn with_message_ids(mut self, ids: MessageIds) -> Self {
        self.set_message_ids(ids);
        self
    }

    /// Replaces the source of ids for messages without one: it is known when the log has been read.
    pub fn set_message_ids(&mut self, ids: MessageIds) {
        self.message_ids = ids;
    }

    fn origin(&self) -> Origin {
        Origin {
            queue: self.id,
            partitioned: self.description.partitioned,
            keyed_by_id: self.description.partitioned && self.description.detects_duplicates,
            ids: self.message_ids,
        }
    }

    /// Takes the memory that it has together with others. It must be empty.
    #[must_use]
    pub fn with_memory(mut self, memory: &Memory) -> Self {
        debug_assert!(self.is_empty(), "messages are counted elsewhere");
        self.index = Index::new(memory.clone());
        self.held = memory.hold(Purpose::Other, 0);
        self
    }

    /// Returns the memory that it has together with others.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        self.held.memory()
    }

    /// Counts the memory of what it holds beside its messages' entries.
    pub fn count_memory(&mut self) {
        let sessions = self.sessions.as_ref().map_or(0, sessions::Sessions::memory);
        let bytes = self.scheduled.len() * SCHEDULED_BYTES
            + self.returned.len() * RETURNED_BYTES
            + self.locks.memory()
            + self.duplicates.memory()
            + sessions;
        // The counter is shared by threads: small changes are not worth an update.
        if COUNTED_BYTES < bytes.abs_diff(self.held.bytes()) {
            self.held.resize(bytes);
        }
    }

    /// Packs up to `most` parts of its index if those that are open take too much.
    pub fn pack(&mut self, most: usize) {
        self.index.pack_chunks(most);
    }

    /// Replaces the queue's properties, except those that are fixed when it is made. Held locks
    /// keep their ends.
    pub fn describe(&mut self, description: Description) {
        debug_assert_eq!(
            self.description.requires_session,
            description.requires_session
        );
        debug_assert_eq!(self.description.partitioned, description.partitioned);
        self.description = description;
    }

    /// Does what is due by `now`: ends of locks, activations, expiries. It handles a bounded number
    /// of messages; the rest is still due.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_>, most: usize) {
        let mut left = most;
        self.end_locks(cx, &mut left);
        self.end_sessions(cx);
        self.activate_due(cx, &mut left);
        self.expire(cx, &mut left);
        self.is_behind = self.index.next_expiry().is_some_and(|next| next <= cx.now);
        self.dispatch(cx);
        debug_assert!(
            left == 0 || self.poll_timeout().is_none_or(|next| cx.now < next),
            "due work is left"
        );
        self.check();
    }

    /// Follows a clock that was set, to `now`. Deadlines by elapsed time keep their distance;
    /// deadlines by the clock stay. Stamps and numbers that were given stay.
    pub fn follow_clock(&mut self, now: Timestamp, step: ClockStep) {
        self.locks.follow_clock(step);
        self.consumers.follow_clock(step);
        if let Some(sessions) = &mut self.sessions {
            sessions.follow_clock(step);
        }
        self.end_future(now);
        self.is_behind = self.index.next_expiry().is_some_and(|next| next <= now);
    }

    /// Corrects duplicate keys that were recorded while the clock was ahead.
    pub fn end_future(&mut self, now: Timestamp) {
        self.duplicates.follow_clock(now);
    }

    /// Returns the time at which [`Queue::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        // Asked after every step: no list is made of these.
        let mut next = self.locks.next_deadline().unwrap_or(Timestamp::MAX);
        if let Some(&(due, _)) = self.scheduled.first() {
            next = next.min(due);
        }
        if let Some(expiry) = self.index.next_expiry() {
            next = next.min(expiry);
        }
        let sessions = self.sessions.as_ref();
        if let Some(end) = sessions.and_then(sessions::Sessions::next_deadline) {
            next = next.min(end);
        }
        (next < Timestamp::MAX).then_some(next)
    }

    /// Returns the queue's id.
    #[must_use]
    pub fn id(&self) -> EntityId {
        self.id
    }

    /// Returns what the queue is to its entity.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the queue's properties.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Returns what has happened here since the process started.
    #[must_use]
    pub fn counters(&self) -> Option<&Counters> {
        self.counters.as_deref()
    }

    /// Returns the counters, for something that has happened.
    fn count(&mut self) -> &mut Counters {
        self.counters.get_or_insert_default()
    }

    /// Counts a message that is completed.
    fn count_completed(&mut self, now: Timestamp, enqueued_at: Timestamp) {
        let counters = self.count();
        counters.completed += 1;
        counters.time_in_queue.record_millis(now.since(enqueued_at));
    }

    /// Returns the bytes of all its messages as their senders encoded them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of its messages, in whatever state.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns whether a message of it waits for its time.
    #[must_use]
    pub fn has_scheduled(&self) -> bool {
        !self.scheduled.is_empty()
    }

    /// Returns the number of messages that wait for their time.
    #[must_use]
    pub fn scheduled(&self) -> usize {
        self.scheduled.len()
    }

    /// Returns the number of deferred messages.
    #[must_use]
    pub fn deferred(&self) -> usize {
        self.deferred
    }

    /// Returns the number of messages that are locked.
    #[must_use]
    pub fn locked(&self) -> usize {
        self.locks.len()
    }

    /// Returns the number of messages that may be given to a receiver and that none has locked.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let active = self.len() - self.scheduled.len() - self.deferred;
        active - (self.locks.len() - self.deferred_locked)
    }

    /// Returns the number of receivers.
    #[must_use]
    pub fn receivers(&self) -> usize {
        self.consumers.len()
    }

    /// Returns whether any receiver takes more messages.
    #[must_use]
    pub fn has_credit(&self) -> bool {
        self.consumers().any(|consumer| self.asks(consumer))
    }

    /// Returns whether a receiver takes more messages. One that waits for a message session takes none yet, whatever its
    /// credit.
    #[must_use]
    pub fn asks(&self, consumer: ConsumerId) -> bool {
        let sessions = self.sessions.as_ref();
        let waits = sessions.is_some_and(|sessions| sessions.is_waiting(consumer));
        !waits && 0 < self.credit_of(consumer)
    }

    /// Returns how many more messages a receiver takes; none of one that is not there.
    #[must_use]
    pub fn credit_of(&self, consumer: ConsumerId) -> u32 {
        self.consumers.credit(consumer).unwrap_or(0)
    }

    /// Returns up to which delivery a receiver takes messages since its attach, and how many it got: serial numbers
    /// [2.6.7].
    #[must_use]
    pub fn credit_position(&self, consumer: ConsumerId) -> Option<(u32, u32)> {
        self.consumers.position(consumer)
    }

    /// Returns how many more messages all receivers take.
    #[must_use]
    pub fn credit(&self) -> u64 {
        self.consumers.credits()
    }

    /// Returns when the first message was enqueued that may be given to a receiver and that none has locked.
    #[must_use]
    pub fn oldest_waiting(&self) -> Option<Timestamp> {
        let has_cursor = self.sessions.is_none() && !self.description.partitioned;
        // With a cursor, all that is available below it was returned.
        let first = match self.returned.first() {
            _ if !has_cursor => 0,
            Some(&ordinal) => ordinal,
            None => self.cursor,
        };
        let entry = self.index.available(first).next()?;
        Some(entry.enqueued_at)
    }

    /// Returns the number of message sessions that have a message, a state or a holder, and of those with a holder.
    #[must_use]
    pub fn session_counts(&self) -> (usize, usize) {
        let sessions = self.sessions.as_ref();
        sessions.map_or((0, 0), sessions::Sessions::counts)
    }

    /// Returns whether it holds no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number that the next message gets; of a partitioned queue, in the first partition.
    #[must_use]
    pub fn next_number(&self) -> SequenceNumber {
        number(self.numbers.peek(0))
    }

    /// Returns the ordinal of a number.
    fn ordinal(&self, number: SequenceNumber) -> u64 {
        self.numbers.ordinal(number)
    }

    /// Records the new state of an entry.
    fn record_change(&self, cx: &mut Context<'_>, ordinal: u64) {
        let Some(entry) = self.index.get(ordinal) else {
            return;
        };
        let amendments = entry
            .amendments
            .as_ref()
            .map(|amendments| amendments.encode());
        cx.journal.append(&Record::Changed {
            entity: self.id,
            number: number(ordinal),
            state: entry.state,
            delivery_count: entry.delivery_count,
            amendments: amendments.as_deref(),
        });
    }

    /// Removes a message.
    fn remove(&mut self, cx: &mut Context<'_>, ordinal: u64) -> Option<Entry> {
        let entry = self.forget(ordinal)?;
        cx.journal.append(&Record::Removed {
            entity: self.id,
            number: number(ordinal),
        });
        cx.journal.release(entry.body);
        Some(entry)
    }

    /// Removes a message from every index except the locks.
    fn forget(&mut self, ordinal: u64) -> Option<Entry> {
        let entry = self.index.remove(ordinal)?;
        self.bytes -= u64::from(entry.body.length);
        self.returned.remove(&ordinal);
        self.consumers.forget(ordinal);
        if let (Some(sessions), Some(name)) = (&mut self.sessions, &entry.message_session) {
            sessions.remove(name, ordinal);
        }
        match entry.state {
            StoredState::Active => {}
            StoredState::Deferred => {
                self.deferred -= 1;
                self.deferred_locked -= usize::from(entry.locked);
            }
            StoredState::Scheduled { due } => {
                self.scheduled.remove(&(due, ordinal));
            }
        }
        Some(entry)
    }

    /// Sends a message to the dead-letter queue, or drops it where there is none to send it to.
    fn dead_letter(
        &mut self,
        cx: &mut Context<'_>,
        ordinal: u64,
        cause: DeadLetterCause,
        changes: Changes,
    ) {
        let Kind::Main { dead_letters } = self.kind else {
            return;
        };
        let Some(mut entry) = self.forget(ordinal) else {
            return;
        };
        self.count().dead_letter(cause);
        receive::amend(&mut entry.amendments, changes);
        entry.locked = false;
        entry.state = StoredState::Active;
        let departure = Departure::new(self.id, dead_letters, entry);
        cx.effects.departures.push(departure);
    }

    /// Makes a message available that was not.
    fn give_back(&mut self, ordinal: u64) {
        self.consumers.offer(ordinal, scan::Offered::Again);
        if let Some(sessions) = &mut self.sessions {
            let entry = self.index.get(ordinal);
            if let Some(name) = entry.as_ref().and_then(|e| e.message_session.as_ref()) {
                sessions.add_available(name, ordinal);
            }
        } else if ordinal < self.cursor {
            self.returned.insert(ordinal);
        }
    }

    /// Asserts what must hold between steps.
    fn check(&self) {
        debug_assert!(self.returned.last().is_none_or(|&last| last < self.cursor));
        debug_assert!(self.locks.len() + self.scheduled.len() <= self.index.len());
        debug_assert!(
            self.deferred_locked <= self.deferred.min(self.locks.len()),
            "locks of deferred messages are counted"
        );
        debug_assert!(
            self.index.len() > 0 || self.bytes == self.state_bytes(),
            "bytes of no message"
        );
    }

    /// Returns the bytes of the states of message sessions.
    fn state_bytes(&self) -> u64 {
        self.sessions
            .as_ref()
            .map_or(0, sessions::Sessions::state_bytes)
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// What the annotations of a message need to know of its queue.
#[derive(Debug, Clone, Copy)]
struct Origin {
    queue: EntityId,
    partitioned: bool,
    /// The message-id decides the partition of a message without another key.
    keyed_by_id: bool,
    ids: MessageIds,
}

/// Returns the annotations of a message.
fn stamps(origin: Origin, entry: &Entry) -> Stamps {
    Stamps {
        sequence_number: wire_number(number(entry.ordinal)),
        enqueued_sequence_number: wire_number(entry.enqueued_number),
        keyed_by_id: origin.keyed_by_id,
        partition_id: origin
            .partitioned
            .then(|| i16::try_from(numbers::partition(entry.ordinal)).unwrap_or_default()),
        default_message_id: origin.ids.id(origin.queue, number(entry.ordinal)),
        enqueued_time: entry.enqueued_at,
        locked_until: None,
        lock_token: None,
        delivered: false,
        delivery_count: entry.delivery_count,
        acquired: entry.acquired == Acquired::Perhaps,
        state: match entry.state {
            StoredState::Active => MessageState::Active,
            StoredState::Deferred => MessageState::Deferred,
            StoredState::Scheduled { .. } => MessageState::Scheduled,
        },
        time_to_live: entry.time_to_live,
        dead_letter_source: entry
            .dead_letter_source
            .as_ref()
            .map(|source| (***source).into()),
        amendments: entry.amendments.clone(),
    }
}

/// The bytes of a scheduled message, in a tree's node that is half full.
const SCHEDULED_BYTES: usize = 36;
/// The bytes of a returned message.
const RETURNED_BYTES: usize = 20;
/// Bytes by which a queue's memory may be other than it was last counted.
const COUNTED_BYTES: usize = 4 * 1024;

/// Returns a number as AMQP's signed `long` carries it.
fn wire_number(number: SequenceNumber) -> i64 {
    number.0.cast_signed()
}

/// The shorter of what the sender and the entity allow (`entities.md#time-to-live`).
fn effective_time_to_live(message: Option<Millis>, entity: Millis) -> Millis {
    message.map_or(entity, |own| own.min(entity))
}
