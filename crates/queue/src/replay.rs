//! Rebuilding a queue from its records, and writing it as records for a checkpoint.

use std::sync::Arc;

use bytes::Bytes;

use super::duplicates::Order;
use super::{
    Acquired, Amendments, BodyRef, Departure, EntityId, EntityKind, Entry, Frozen, Kind,
    MessageSession, Passage, Queue, Record, SequenceNumber, Timestamp, number,
};
use crate::Positions;

/// A queue as it was at one moment, shared with it until either changes.
#[derive(Debug, Clone)]
pub struct QueueSnapshot {
    id: EntityId,
    next: Vec<SequenceNumber>,
    index: Frozen,
    states: Vec<(MessageSession, Timestamp, Bytes)>,
    duplicates: Order,
}

/// Why a record is inconsistent: this broker cannot have written the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Replayed {
    /// It names a message that does not exist.
    #[error("entity {entity} has no message {number}")]
    UnknownMessage {
        /// The entity.
        entity: u32,
        /// The message's number.
        number: u64,
    },
    /// It gives a number that is not the next.
    #[error("entity {entity} gives number {found}, and {expected} is next")]
    OutOfOrder {
        /// The entity.
        entity: u32,
        /// The number that was next.
        expected: u64,
        /// The number that was given.
        found: u64,
    },
    /// It has no body, or amendments that cannot be read.
    #[error("entity {entity}, message {number}: {what}")]
    Malformed {
        /// The entity.
        entity: u32,
        /// The message's number.
        number: u64,
        /// The fault.
        what: &'static str,
    },
    /// It names an entity that does not exist.
    #[error("there is no entity {entity}")]
    UnknownEntity {
        /// The entity.
        entity: u32,
    },
}

impl Queue {
    /// Applies a record to this queue.
    ///
    /// `Moved` and `Copied` records are for [`Queue::replay_departure`], [`Queue::replay_copy`] and [`Queue::replay_arrival`],
    /// `SameBody` ones for [`Queue::set_body`].
    pub fn replay(&mut self, record: &Record<'_>, body: Option<BodyRef>) -> Result<(), Replayed> {
        match *record {
            Record::Enqueued {
                number,
                at,
                time_to_live,
                state,
                message_session,
                duplicate_key,
                amendments,
                ..
            } => {
                let ordinal = self.expect_number(number)?;
                let body = body.ok_or_else(|| self.malformed(number, "it has no body"))?;
                let mut entry = Entry::new(ordinal, body, state);
                entry.enqueued_at = at;
                entry.time_to_live = time_to_live;
                entry.message_session = message_session.map(|id| self.intern(id));
                entry.amendments = self.read_amendments(number, amendments)?;
                // Deliveries without an outcome are not in the log.
                entry.acquired = Acquired::Perhaps;
                self.add(entry);
                if let Some(key) = duplicate_key {
                    self.replay_seen(at, key);
                }
            }
            Record::Removed { number, .. } => {
                self.forget_number(number)?;
            }
            Record::Changed {
                number,
                state,
                delivery_count,
                amendments,
                ..
            } => {
                let mut entry = self.forget_number(number)?;
                entry.state = state;
                entry.delivery_count = delivery_count;
                entry.amendments = self.read_amendments(number, amendments)?;
                self.add(entry);
            }
            Record::Relocated { number, .. } => {
                let body = body.ok_or_else(|| self.malformed(number, "it has no body"))?;
                if !self.set_body(number, body) {
                    return Err(self.unknown(number));
                }
            }
            Record::Counter { next, .. } => self.numbers.restore(next),
            Record::Alive { .. } => self.replay_alive(record)?,
            Record::SessionState {
                message_session,
                at,
                state,
                ..
            } => {
                let state = state.map(Bytes::copy_from_slice);
                self.keep_session_state(message_session, state, at);
            }
            Record::Seen { at, key, .. } => self.replay_seen(at, key),
            Record::Entity { .. }
            | Record::EntityDeleted { .. }
            | Record::Moved(_)
            | Record::Copied(_)
            | Record::SameBody { .. }
            | Record::Rule { .. }
            | Record::Job { .. }
            | Record::Audit { .. } => {}
        }
        Ok(())
    }

    /// Remembers a key by the same rule as when it was accepted.
    fn replay_seen(&mut self, at: Timestamp, key: u128) {
        if let Some(window) = self.description.duplicates() {
            self.duplicates.insert(at, window, key);
        }
    }

    fn replay_alive(&mut self, record: &Record<'_>) -> Result<(), Replayed> {
        let Record::Alive {
            number,
            at,
            time_to_live,
            state,
            enqueued_number,
            delivery_count,
            hops,
            message_session,
            dead_letter_source,
            amendments,
            body,
            shared,
            ..
        } = *record
        else {
            return Ok(());
        };
        let mut entry = Entry::new(self.ordinal(number), body, state);
        entry.enqueued_at = at;
        entry.time_to_live = time_to_live;
        entry.enqueued_number = enqueued_number;
        entry.delivery_count = delivery_count;
        entry.hops = hops;
        entry.message_session = message_session.map(|id| self.intern(id));
        entry.dead_letter_source = dead_letter_source.map(|path| Arc::new(path.into()));
        entry.amendments = self.read_amendments(number, amendments)?;
        entry.shared = shared;
        entry.acquired = Acquired::Perhaps;
        self.add(entry);
        Ok(())
    }

    /// Copies the message of a `Copied` record that names this queue as the one that keeps it.
    ///
    /// # Errors
    ///
    /// The queue does not have it.
    pub fn replay_copy(&mut self, passage: &Passage<'_>) -> Result<Departure, Replayed> {
        let number = passage.from_number;
        let copy = self.copy_again(number, passage.to);
        copy.ok_or_else(|| self.unknown(number))
    }

    /// Takes out the message of a `Moved` record that names this queue as the one it leaves. The bytes of what leaves a topic for a
    /// subscription count to the topic.
    pub fn replay_departure(&mut self, passage: &Passage<'_>) -> Result<Departure, Replayed> {
        let number = passage.from_number;
        let mut entry = self.forget_number(number)?;
        let is_topic = self.description.kind == EntityKind::Topic;
        entry.shared |= is_topic && passage.to.base() != self.id.base();
        Ok(Departure::new(self.id, passage.to, entry))
    }

    /// Adds the message of such a record that names this queue as its destination.
    pub fn replay_arrival(
        &mut self,
        departure: Departure,
        passage: &Passage<'_>,
    ) -> Result<(), Replayed> {
        let number = passage.number;
        let mut entry = departure.entry;
        entry.ordinal = match self.kind {
            Kind::DeadLetter => self.numbers.place(number),
            Kind::Main { .. } => self.expect_number(number)?,
        };
        entry.state = super::StoredState::Active;
        entry.enqueued_at = passage.at;
        entry.time_to_live = passage.time_to_live;
        entry.enqueued_number = passage.enqueued_number;
        entry.delivery_count = passage.delivery_count;
        entry.hops = passage.hops;
        entry.message_session = passage.message_session.map(|id| self.intern(id));
        entry.dead_letter_source = passage.dead_letter_source.map(|path| Arc::new(path.into()));
        entry.amendments = self.read_amendments(number, passage.amendments)?;
        self.add(entry);
        Ok(())
    }

    /// Returns where a message's bytes are.
    #[must_use]
    pub fn body_of(&self, number: SequenceNumber) -> Option<BodyRef> {
        Some(self.index.get(self.ordinal(number))?.body)
    }

    /// Sets the new position of a message's bytes; returns whether the message exists.
    pub fn set_body(&mut self, number: SequenceNumber, body: BodyRef) -> bool {
        let ordinal = self.ordinal(number);
        let replaced = |entry: &mut Entry| std::mem::replace(&mut entry.body, body);
        let Some(old) = self.index.update(ordinal, replaced) else {
            return false;
        };
        // It is shorter where the old bytes were damaged.
        self.bytes = self.bytes - u64::from(old.length) + u64::from(body.length);
        true
    }

    /// Returns the queue as it is now; it costs a pointer for each 128 messages.
    #[must_use]
    pub fn snapshot(&self) -> QueueSnapshot {
        QueueSnapshot {
            id: self.id,
            next: self.numbers.iter().map(number).collect(),
            index: self.index.freeze(),
            states: self.session_states(),
            duplicates: self.duplicates.snapshot(),
        }
    }

    fn session_states(&self) -> Vec<(MessageSession, Timestamp, Bytes)> {
        let states = self
            .sessions
            .iter()
            .flat_map(super::sessions::Sessions::states);
        states
            .map(|(name, at, state)| (name.clone(), at, state.clone()))
            .collect()
    }

    /// Calls `visit` with the place of every message's bytes, and whether others may have the same.
    pub fn for_each_body(&self, mut visit: impl FnMut(BodyRef, bool)) {
        self.index.for_each(|entry| visit(entry.body, entry.shared));
    }

    /// Returns up to `count` messages, from a position in the queue on, whose bytes lie in a range
    /// of positions; and the position to continue at, or `None` at the end.
    ///
    /// For compaction: it looks at no more than about `scan` messages.
    #[must_use]
    pub fn bodies_within(
        &self,
        positions: &Positions,
        from: u64,
        scan: usize,
    ) -> (Vec<(SequenceNumber, BodyRef)>, Option<u64>) {
        let (found, rest) = self.index.bodies_within(positions, from, scan);
        let found = found.into_iter();
        let found = found.map(|(ordinal, body)| (number(ordinal), body));
        (found.collect(), rest)
    }

    /// Skips to a number, although those before it were never given out as far as is known.
    pub fn make_way(&mut self, number: SequenceNumber) {
        if matches!(self.kind, Kind::Main { .. }) && self.numbers.is_ahead(number) {
            self.numbers.restore(number);
        }
    }

    /// Skips past a number that was given to a message of which nothing is left.
    pub fn pass_over(&mut self, number: SequenceNumber) {
        self.make_way(number);
        if matches!(self.kind, Kind::Main { .. }) {
            // An older one was passed already.
            let _ = self.numbers.expect(number);
        }
    }

    fn expect_number(&mut self, found: SequenceNumber) -> Result<u64, Replayed> {
        let entity = self.id.0;
        let expected = match self.numbers.expect(found) {
            Ok(ordinal) => return Ok(ordinal),
            Err(expected) => expected,
        };
        // It may have been reserved before.
        let ordinal = self.ordinal(found);
        if self.numbers.is_given(found) && self.index.get(ordinal).is_none() {
            return Ok(ordinal);
        }
        Err(Replayed::OutOfOrder {
            entity,
            expected: expected.0,
            found: found.0,
        })
    }

    fn forget_number(&mut self, number: SequenceNumber) -> Result<Entry, Replayed> {
        let ordinal = self.ordinal(number);
        self.forget(ordinal).ok_or_else(|| self.unknown(number))
    }

    fn read_amendments(
        &mut self,
        number: SequenceNumber,
        bytes: Option<&[u8]>,
    ) -> Result<Option<Arc<Amendments>>, Replayed> {
        let Some(bytes) = bytes else { return Ok(None) };
        if let Some((_, known)) = self.replayed.as_ref().filter(|(last, _)| **last == *bytes) {
            return Ok(Some(Arc::clone(known)));
        }
        match Amendments::decode(bytes) {
            Ok(amendments) => {
                let amendments = Arc::new(amendments);
                self.replayed = Some((bytes.into(), Arc::clone(&amendments)));
                Ok(Some(amendments))
            }
            Err(_) => Err(self.malformed(number, "its amendments cannot be read")),
        }
    }

    fn unknown(&self, number: SequenceNumber) -> Replayed {
        Replayed::UnknownMessage {
            entity: self.id.0,
            number: number.0,
        }
    }

    fn malformed(&self, number: SequenceNumber, what: &'static str) -> Replayed {
        Replayed::Malformed {
            entity: self.id.0,
            number: number.0,
            what,
        }
    }
}

impl QueueSnapshot {
    /// Returns the queue's id.
    #[must_use]
    pub fn id(&self) -> EntityId {
        self.id
    }

    /// Emits the records from which [`Queue::replay`] rebuilds the queue.
    pub fn records(&self, emit: &mut dyn FnMut(&Record<'_>)) {
        let entity = self.id;
        for &next in &self.next {
            emit(&Record::Counter { entity, next });
        }
        for (name, at, state) in &self.states {
            emit(&Record::SessionState {
                entity,
                message_session: name.as_str(),
                at: *at,
                state: Some(state),
            });
        }
        for (at, key) in self.duplicates.iter() {
            emit(&Record::Seen { entity, at, key });
        }
        self.index.for_each(|entry| {
            let amendments = entry
                .amendments
                .as_ref()
                .map(|amendments| amendments.encode());
            emit(&Record::Alive {
                entity,
                number: number(entry.ordinal),
                at: entry.enqueued_at,
                time_to_live: entry.time_to_live,
                state: entry.state,
                enqueued_number: entry.enqueued_number,
                delivery_count: entry.delivery_count,
                hops: entry.hops,
                message_session: entry.message_session.as_ref().map(MessageSession::as_str),
                dead_letter_source: entry.dead_letter_source.as_ref().map(|path| &***path),
                amendments: amendments.as_deref(),
                body: entry.body,
                shared: entry.shared,
            });
        });
    }

    /// Returns an upper bound of the records that [`QueueSnapshot::records`] emits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len() + self.next.len() + self.states.len() + self.duplicates.len()
    }

    /// Returns whether there is no message in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }
}
