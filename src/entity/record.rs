//! What happened, in the form in which it is kept: outcomes, not commands, so that replay needs
//! no rules and old logs no old code.

use crate::time::{Millis, Timestamp};

/// An entity in its namespace: a number that is never given to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u32);

/// A message's number in its entity: 1 is the first; the topmost 16 bits are the partition's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub u64);

/// Where a message's bytes are kept. Opaque: given out by a [`Journal`], understood only by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BodyRef {
    /// The place.
    pub position: u64,
    /// The length in bytes.
    pub length: u32,
}

/// What a message is while nobody holds it: locks are memory and are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredState {
    /// To be received.
    Active,
    /// Set aside; received only by number.
    Deferred,
    /// Becomes active at its time.
    Scheduled {
        /// When.
        due: Timestamp,
    },
}

/// One thing that happened to an entity or a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Record<'a> {
    /// An entity exists, with this path and description (opaque here; JSON of the owner's).
    /// A later one with the same id replaces the description.
    Entity {
        /// The entity.
        entity: EntityId,
        /// Its path, as its creator spelled it.
        path: &'a str,
        /// Its properties.
        description: &'a [u8],
    },
    /// An entity and all that it holds is gone. Its id stays taken.
    EntityDeleted {
        /// The entity.
        entity: EntityId,
    },
    /// A message was accepted.
    Enqueued {
        /// The entity.
        entity: EntityId,
        /// The number that it got.
        number: SequenceNumber,
        /// When.
        at: Timestamp,
        /// How long it lives, counted from `at` (from its activation when scheduled).
        time_to_live: Millis,
        /// Active or scheduled.
        state: StoredState,
        /// The number it had in the entity that forwarded it, or its own; 0 when there is none.
        enqueued_number: SequenceNumber,
        /// The message as the sender encoded it.
        body: &'a [u8],
    },
    /// A message has gone: completed, received-and-deleted, expired, cancelled, deleted.
    Removed {
        /// The entity.
        entity: EntityId,
        /// The message's number.
        number: SequenceNumber,
    },
    /// A message changed where it is.
    Changed {
        /// The entity.
        entity: EntityId,
        /// The message's number.
        number: SequenceNumber,
        /// Its state from now on.
        state: StoredState,
        /// Failed deliveries so far.
        delivery_count: u32,
        /// All of its amendments from now on, encoded ([`crate::message::Amendments`]), if it has any.
        amendments: Option<&'a [u8]>,
    },
    /// A message went on to another entity, or was appended anew to its own: dead-lettered, or
    /// activated at its time. The bytes stay where they are.
    Moved {
        /// The entity it leaves.
        from: EntityId,
        /// The number it had there.
        from_number: SequenceNumber,
        /// The entity that has it now.
        to: EntityId,
        /// The number it has there.
        number: SequenceNumber,
        /// When.
        at: Timestamp,
        /// How long it lives there, counted from `at`.
        time_to_live: Millis,
        /// The number it had before it was forwarded.
        enqueued_number: SequenceNumber,
        /// Failed deliveries so far.
        delivery_count: u32,
        /// All of its amendments from now on, encoded ([`crate::message::Amendments`]), if it has any.
        amendments: Option<&'a [u8]>,
    },
    /// The bytes of a message are kept in a new place, so that the old one can go.
    Relocated {
        /// The entity.
        entity: EntityId,
        /// The message's number.
        number: SequenceNumber,
        /// The bytes.
        body: &'a [u8],
    },
    /// In a checkpoint only: the number that the entity's next message gets.
    Counter {
        /// The entity.
        entity: EntityId,
        /// The next number.
        next: SequenceNumber,
    },
    /// In a checkpoint only: a message that was alive, and where its bytes are.
    Alive {
        /// The entity.
        entity: EntityId,
        /// Its number.
        number: SequenceNumber,
        /// When it was accepted.
        at: Timestamp,
        /// How long it lives, counted from `at`.
        time_to_live: Millis,
        /// Its state.
        state: StoredState,
        /// The number it had before it was forwarded.
        enqueued_number: SequenceNumber,
        /// Failed deliveries so far.
        delivery_count: u32,
        /// Its amendments, encoded, if it has any.
        amendments: Option<&'a [u8]>,
        /// Where its bytes are.
        body: BodyRef,
    },
}

/// Where records go: the group commit that is being put together.
///
/// Records of one step are one unit: all of them are kept, or none.
pub trait Journal {
    /// Adds a record, and returns where its body is kept: `None` for a record without one.
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef>;

    /// Says that no message refers to these bytes any more.
    fn release(&mut self, body: BodyRef);
}
