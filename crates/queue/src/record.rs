//! Records: outcomes in the form in which they are stored. They are not commands, so that replay
//! needs no rules, and old logs need no old code.

use jitney_base::ids::{BodyRef, EntityId, JobId, SequenceNumber};
use jitney_base::time::{Millis, Timestamp};

/// The stored state of a message: locks are memory and are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredState {
    /// To be received.
    Active,
    /// Deferred; received only by number.
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
    /// An entity and all that it holds is deleted. Its id is never reused.
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
        /// The message session it belongs to, if it has one.
        message_session: Option<&'a str>,
        /// The key by which duplicates of it are detected, if the entity detects them.
        duplicate_key: Option<u128>,
        /// Its amendments, encoded ([`jitney_message::Amendments`]), if there are any: a
        /// message-format that is not AMQP's own.
        amendments: Option<&'a [u8]>,
        /// The message as the sender encoded it.
        body: &'a [u8],
    },
    /// A message was removed: completed, received-and-deleted, expired, cancelled, deleted.
    Removed {
        /// The entity.
        entity: EntityId,
        /// The message's number.
        number: SequenceNumber,
    },
    /// The state of a message changed.
    Changed {
        /// The entity.
        entity: EntityId,
        /// The message's number.
        number: SequenceNumber,
        /// Its state from now on.
        state: StoredState,
        /// Failed deliveries so far.
        delivery_count: u32,
        /// All of its amendments from now on, encoded ([`jitney_message::Amendments`]), if it has any.
        amendments: Option<&'a [u8]>,
    },
    /// A message moved to another entity, or was appended anew to its own: forwarded,
    /// dead-lettered, or activated at its time. The bytes stay where they are.
    Moved(Passage<'a>),
    /// A message of a topic came to a subscription. The topic still has it; the bytes are shared.
    Copied(Passage<'a>),
    /// The bytes of a message have a new position, so that the old one can be removed.
    Relocated {
        /// The entity.
        entity: EntityId,
        /// The message's number.
        number: SequenceNumber,
        /// The bytes.
        body: &'a [u8],
    },
    /// The bytes of a message are those of another one: their shared old position can be removed.
    SameBody {
        /// The entity.
        entity: EntityId,
        /// The message's number.
        number: SequenceNumber,
        /// The other one's entity.
        of: EntityId,
        /// The other one's number.
        of_number: SequenceNumber,
    },
    /// A message session's state was set or cleared.
    SessionState {
        /// The entity.
        entity: EntityId,
        /// The message session.
        message_session: &'a str,
        /// When it was set.
        at: Timestamp,
        /// The state; `None` when it was cleared.
        state: Option<&'a [u8]>,
    },
    /// A subscription's rule was set, or the rule of this name was deleted.
    Rule {
        /// The subscription.
        entity: EntityId,
        /// The rule's name.
        name: &'a str,
        /// The rule (opaque here; JSON of the owner's), or `None` if it was deleted.
        rule: Option<&'a [u8]>,
    },
    /// A job of an operator began, made progress or ended; or it was forgotten.
    Job {
        /// The queue whose messages it is about.
        entity: EntityId,
        /// The job.
        job: JobId,
        /// The job as it is now (opaque here; JSON of the owner's), or `None` if it is forgotten.
        state: Option<&'a [u8]>,
    },
    /// An administrative operation was carried out.
    Audit {
        /// Its number among those of the shard.
        number: u64,
        /// The entry of the audit log (opaque here; JSON of the owner's).
        entry: &'a [u8],
    },
    /// A message was forwarded into an entity that detects duplicates, or (in a checkpoint) was
    /// accepted before; duplicates of it are dropped.
    Seen {
        /// The entity.
        entity: EntityId,
        /// When.
        at: Timestamp,
        /// The key by which duplicates of it are detected.
        key: u128,
    },
    /// The number that the entity's next message of one partition gets: in a checkpoint, and where
    /// numbers were given out that no record names.
    Counter {
        /// The entity.
        entity: EntityId,
        /// The next number.
        next: SequenceNumber,
    },
    /// In a checkpoint only: a message that exists, and the position of its body.
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
        /// How often it was forwarded.
        hops: u8,
        /// The message session it belongs to, if it has one.
        message_session: Option<&'a str>,
        /// Where it was dead-lettered, if it was forwarded from there.
        dead_letter_source: Option<&'a str>,
        /// Its amendments, encoded, if it has any.
        amendments: Option<&'a [u8]>,
        /// Where its bytes are.
        body: BodyRef,
        /// Other messages may have the same bytes.
        shared: bool,
    },
}

/// A move of a message from one entity to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage<'a> {
    /// The entity it comes from.
    pub from: EntityId,
    /// The number it had there.
    pub from_number: SequenceNumber,
    /// The entity that has it now.
    pub to: EntityId,
    /// The number it has there.
    pub number: SequenceNumber,
    /// When.
    pub at: Timestamp,
    /// How long it lives there, counted from `at`.
    pub time_to_live: Millis,
    /// The number it had before it was forwarded; 0 if it never was.
    pub enqueued_number: SequenceNumber,
    /// Failed deliveries so far.
    pub delivery_count: u32,
    /// How often it was forwarded.
    pub hops: u8,
    /// The message session it belongs to there, if it has one.
    pub message_session: Option<&'a str>,
    /// Where it was dead-lettered, if it is forwarded from there.
    pub dead_letter_source: Option<&'a str>,
    /// All of its amendments from now on, encoded ([`jitney_message::Amendments`]), if it has any.
    pub amendments: Option<&'a [u8]>,
}

/// The destination of records: the group commit that is being put together.
///
/// Records of one step are one unit: all of them are kept, or none.
pub trait Journal {
    /// Adds a record, and returns where its body is kept: `None` for a record without one.
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef>;

    /// Releases a body: no message refers to these bytes any more.
    fn release(&mut self, body: BodyRef);

    /// Returns how many bytes the group has so far, where it is counted.
    fn open_bytes(&self) -> usize {
        0
    }
}
