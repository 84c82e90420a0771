//! One queue: messages in the order of their numbers, and who may have them.
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
//! journal before anybody is told. Dead-letter queues are queues too, with a number space that is
//! not theirs: a dead letter keeps its number ("only the activation of a scheduled message
//! changes the number", `protocol.md` §13).
//!
//! Leaves to the broker: links and their connections, where departures go, who is allowed.

mod browse;
mod consumers;
mod description;
mod receive;
mod replay;
mod send;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::index::{Entry, Index};
use super::locks::LockTable;
use super::record::{BodyRef, EntityId, Journal, Record, SequenceNumber, StoredState};
use super::token::{LockToken, Random};
use crate::message::{Amendments, MessageState, Stamps};
use crate::time::{Millis, Timestamp};

pub use browse::Browsed;
pub use consumers::{ConsumerId, ReceiveMode};
pub use description::{Description, Status};
pub use receive::{DeadLetter, DeferredRefused, LockLost, Settlement, SettlementRefused};
pub use replay::{Replayed, Snapshot};
pub use send::{Arrival, SendRefused};

/// A queue, or the dead-letter queue of one.
#[derive(Debug)]
pub struct Queue {
    id: EntityId,
    kind: Kind,
    description: Description,
    /// The next message's ordinal.
    next: u64,
    index: Index,
    /// No message at or above it was ever looked at for delivery.
    cursor: u64,
    /// Messages below the cursor that can be delivered: given back, or late.
    returned: BTreeSet<u64>,
    scheduled: BTreeSet<(Timestamp, u64)>,
    deferred: usize,
    locks: LockTable,
    consumers: consumers::Consumers,
    bytes: u64,
}

/// What a queue is to its entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It takes messages from senders; what cannot be delivered goes to `dead_letters`.
    Main {
        /// The entity's dead-letter queue.
        dead_letters: EntityId,
    },
    /// It takes what the main queue could not deliver, and keeps it until somebody settles it.
    DeadLetter,
}

/// What a step needs of the world, and where it puts what comes of it.
pub struct Context<'a> {
    /// The time of the step.
    pub now: Timestamp,
    /// Where records go.
    pub journal: &'a mut dyn Journal,
    /// Random bits.
    pub random: &'a mut Random,
    /// What is to happen outside.
    pub effects: &'a mut Effects,
}

/// What comes of a step, in order.
#[derive(Debug, Default)]
pub struct Effects {
    /// Messages for receivers, and ends of drains.
    pub deliveries: Vec<Delivery>,
    /// Messages that go on to another queue. Their `Moved` record is not written yet: the broker
    /// passes each on to [`Queue::arrive`] in the same step.
    pub departures: Vec<Departure>,
}

/// Something for a receiver.
#[derive(Debug)]
pub enum Delivery {
    /// It has all that its drain was to bring: its credit up to this limit is used up.
    Drained(ConsumerId, u32),
    /// A message.
    Message(ConsumerId, Handover),
}

/// A message as it is handed to a receiver.
#[derive(Debug, Clone)]
pub struct Handover {
    /// The lock's token; random when the message is received and deleted at once.
    pub token: LockToken,
    /// How it is received.
    pub mode: ReceiveMode,
    /// Where its bytes are.
    pub body: BodyRef,
    /// What is written onto it.
    pub stamps: Stamps,
}

/// A message on its way to another queue.
#[derive(Debug)]
pub struct Departure {
    /// The queue it leaves.
    pub from: EntityId,
    /// The queue it goes to.
    pub to: EntityId,
    entry: Entry,
}

/// Numbers in a partition: sequence numbers have 48 bits below the partition's 16.
const NUMBER_MASK: u64 = (1 << 48) - 1;
/// The first ordinal's high bits. Not 0: so a number above the newest can be told to be one from
/// before the roll-over.
const EPOCH: u64 = 1 << 48;

impl Queue {
    /// Makes an empty queue whose first message gets `first`; 1 for a new one.
    #[must_use]
    pub fn new(id: EntityId, kind: Kind, description: Description, first: SequenceNumber) -> Self {
        let next = EPOCH | (first.0 & NUMBER_MASK);
        Self {
            id,
            kind,
            description,
            next,
            index: Index::default(),
            cursor: 0,
            returned: BTreeSet::new(),
            scheduled: BTreeSet::new(),
            deferred: 0,
            locks: LockTable::default(),
            consumers: consumers::Consumers::default(),
            bytes: 0,
        }
    }

    /// Replaces the queue's properties; locks that are held keep their ends.
    pub fn describe(&mut self, description: Description) {
        self.description = description;
    }

    /// Does what is due by `now`: ends of locks, activations, ends of life.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.end_locks(cx);
        self.activate_due(cx);
        self.expire(cx);
        self.dispatch(cx);
        debug_assert!(
            self.poll_timeout().is_none_or(|next| cx.now < next),
            "due work is left"
        );
        self.check();
    }

    /// Returns the time at which [`Queue::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let due = self.scheduled.first().map(|&(due, _)| due);
        [self.locks.next_deadline(), due, self.index.next_expiry()]
            .into_iter()
            .flatten()
            .min()
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

    /// Returns whether it holds no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number that the next message gets.
    #[must_use]
    pub fn next_number(&self) -> SequenceNumber {
        number(self.next)
    }

    /// Finds the ordinal that a number stands for: at or below the newest it is of this round of
    /// numbers, above it of the round before the roll-over.
    fn ordinal(&self, number: SequenceNumber) -> u64 {
        let low = number.0 & NUMBER_MASK;
        let epoch = self.next & !NUMBER_MASK;
        if low <= (self.next & NUMBER_MASK) {
            epoch | low
        } else {
            (epoch - EPOCH) | low
        }
    }

    /// Writes down what an entry has become.
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

    /// Takes a message out for good.
    fn remove(&mut self, cx: &mut Context<'_>, ordinal: u64) -> Option<Entry> {
        let entry = self.forget(ordinal)?;
        cx.journal.append(&Record::Removed {
            entity: self.id,
            number: number(ordinal),
        });
        cx.journal.release(entry.body);
        Some(entry)
    }

    /// Takes a message out of everything but its lock.
    fn forget(&mut self, ordinal: u64) -> Option<Entry> {
        let entry = self.index.remove(ordinal)?;
        self.bytes -= u64::from(entry.body.length);
        self.returned.remove(&ordinal);
        match entry.state {
            StoredState::Active => {}
            StoredState::Deferred => self.deferred -= 1,
            StoredState::Scheduled { due } => {
                self.scheduled.remove(&(due, ordinal));
            }
        }
        Some(entry)
    }

    /// Sends a message to the dead-letter queue, or drops it where there is none to send it to.
    fn dead_letter(&mut self, cx: &mut Context<'_>, ordinal: u64, reason: DeadLetter) {
        let Kind::Main { dead_letters } = self.kind else {
            return;
        };
        let Some(mut entry) = self.forget(ordinal) else {
            return;
        };
        let mut amendments = entry.amendments.as_deref().cloned().unwrap_or_default();
        amendments.merge(reason.into_amendments());
        entry.amendments = (!amendments.is_empty()).then(|| Arc::new(amendments));
        entry.locked = false;
        entry.state = StoredState::Active;
        cx.effects.departures.push(Departure {
            from: self.id,
            to: dead_letters,
            entry,
        });
    }

    /// Makes a message available that was not.
    fn give_back(&mut self, ordinal: u64) {
        if ordinal < self.cursor {
            self.returned.insert(ordinal);
        }
    }

    /// Asserts what must hold between steps.
    fn check(&self) {
        debug_assert!(self.returned.last().is_none_or(|&last| last < self.cursor));
        debug_assert!(self.locks.len() + self.scheduled.len() <= self.index.len());
        debug_assert!(
            self.index.len() > 0 || self.bytes == 0,
            "bytes of no message"
        );
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Queue {
    /// Finds the place of a number that another queue gave, by the shorter way round: a dead letter
    /// keeps its number, and the two queues may stand on different sides of the roll-over.
    fn place(&mut self, number: SequenceNumber) -> u64 {
        let ahead = number.0.wrapping_sub(self.next) & NUMBER_MASK;
        if ahead <= NUMBER_MASK / 2 {
            let ordinal = self.next + ahead;
            self.next = ordinal + 1;
            ordinal
        } else {
            self.next + ahead - EPOCH
        }
    }
}

/// Returns what is written onto a message.
fn stamps(queue: EntityId, entry: &Entry, locked_until: Option<Timestamp>) -> Stamps {
    // A queue and its dead letters, whose ids are neighbours, give a message the same.
    let mut bits = Random::new(u64::from(queue.0 / 2) << 48 ^ number(entry.ordinal).0);
    let id = u128::from(bits.next_u64()) << 64 | u128::from(bits.next_u64());
    Stamps {
        sequence_number: wire_number(number(entry.ordinal)),
        enqueued_sequence_number: wire_number(entry.enqueued_number),
        default_message_id: id.to_be_bytes(),
        enqueued_time: entry.enqueued_at,
        locked_until,
        lock_token: None,
        delivery_count: entry.delivery_count,
        state: match entry.state {
            StoredState::Active => MessageState::Active,
            StoredState::Deferred => MessageState::Deferred,
            StoredState::Scheduled { .. } => MessageState::Scheduled,
        },
        time_to_live: entry.time_to_live,
        dead_letter_source: None,
        amendments: entry.amendments.clone(),
    }
}

/// Returns the sequence number that an ordinal shows outside.
///
/// The partition, in the topmost 16 bits, is 0: there is one.
const fn number(ordinal: u64) -> SequenceNumber {
    SequenceNumber(ordinal & NUMBER_MASK)
}

/// Returns a number as AMQP's signed `long` carries it.
fn wire_number(number: SequenceNumber) -> i64 {
    number.0.cast_signed()
}

/// The shorter of what the sender and the entity allow (`protocol.md` §13).
fn effective_time_to_live(message: Option<Millis>, entity: Millis) -> Millis {
    message.map_or(entity, |own| own.min(entity))
}
