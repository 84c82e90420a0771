//! Admitting messages: sends, schedules, arrivals from other queues.

use std::sync::Arc;

use super::forward::PassageKind;
use super::scan::Offered;
use super::{
    BodyRef, Context, Entry, LockToken, MessageSession, Queue, Record, SequenceNumber, StoredState,
    effective_time_to_live, number, numbers,
};
use jitney_base::time::{Millis, Timestamp};
use jitney_message::{Amendments, Message};

/// A message that a sender hands in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrival<'a> {
    /// The message as its sender encoded it.
    pub body: &'a [u8],
    /// The time to live that its sender gave it.
    pub time_to_live: Option<Millis>,
    /// When it becomes active; a time in the past means now.
    pub due: Option<Timestamp>,
    /// The message session it belongs to.
    pub message_session: Option<&'a str>,
    /// The key by which duplicates of it are detected.
    pub duplicate_key: Option<u128>,
    /// The hash that decides its partition, if any.
    pub partition_hash: Option<u64>,
    /// The message-format that it came with; 0 is AMQP's own.
    pub message_format: u32,
}

/// A message that was accepted.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// Its number; the number of a scheduled message is valid until it becomes active.
    pub number: SequenceNumber,
    /// Where its bytes are.
    pub body: BodyRef,
}

/// Why a queue refuses a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendRefused {
    /// Its status forbids sends.
    #[error("sends are disabled")]
    Disabled,
    /// It would hold more bytes than it may.
    #[error("{bytes} bytes are held, and {max_bytes} bytes are the most")]
    Full {
        /// The bytes it holds.
        bytes: u64,
        /// The bytes it may hold.
        max_bytes: u64,
    },
    /// The message is too large.
    #[error("the message has {bytes} bytes, and {max_bytes} bytes are the most")]
    TooLarge {
        /// The message's bytes.
        bytes: u64,
        /// The bytes a message may have.
        max_bytes: u64,
    },
    /// It has no message session, and the entity requires one.
    #[error("the message belongs to no message session")]
    SessionMissing,
}

impl<'a> Arrival<'a> {
    /// Extracts the fields of a message that an entity with this description needs.
    #[must_use]
    pub fn of(message: &'a Message, description: &super::Description) -> Self {
        Self {
            body: message.bytes(),
            time_to_live: message.time_to_live(),
            due: message.scheduled_enqueue_time(),
            message_session: message.group_id(),
            duplicate_key: description
                .detects_duplicates
                .then(|| message.duplicate_key(description.duplicate_scope()))
                .flatten(),
            partition_hash: description
                .partitioned
                .then(|| message.partition_hash(description.partitioned_by()))
                .flatten(),
            message_format: message.format(),
        }
    }
}

impl Queue {
    /// Checks whether these messages are admitted, all or none. `elsewhere` are the bytes that
    /// count to the same entity but lie in its dead-letter queues.
    pub fn admit<'a>(
        &self,
        messages: impl IntoIterator<Item = Arrival<'a>>,
        elsewhere: u64,
    ) -> Result<(), SendRefused> {
        if !self.description.status.can_send() {
            return Err(SendRefused::Disabled);
        }
        let held = self.bytes + elsewhere;
        let mut bytes = held;
        for message in messages {
            if self.sessions.is_some() && message.message_session.is_none() {
                return Err(SendRefused::SessionMissing);
            }
            let size = u64::try_from(message.body.len()).unwrap_or(u64::MAX);
            let max_bytes = self.description.max_message_bytes;
            if max_bytes < size {
                return Err(SendRefused::TooLarge {
                    bytes: size,
                    max_bytes,
                });
            }
            bytes = bytes.saturating_add(size);
        }
        let max_bytes = self.description.max_bytes;
        if max_bytes < bytes {
            Err(SendRefused::Full {
                bytes: held,
                max_bytes,
            })
        } else {
            Ok(())
        }
    }

    /// Stores a message that was admitted. A duplicate is dropped, and gets no number.
    ///
    /// # Panics
    ///
    /// If the journal has no place for a body.
    pub fn enqueue(&mut self, cx: &mut Context<'_>, arrival: Arrival<'_>) -> Option<Taken> {
        self.take_in(cx, arrival, None)
    }

    /// Reserves a number for a message that may follow, by [`Queue::enqueue_reserved`].
    pub fn reserve(&mut self, cx: &mut Context<'_>, partition_hash: Option<u64>) -> SequenceNumber {
        let ordinal = self.numbers.take(partition_hash);
        cx.journal.append(&Record::Counter {
            entity: self.id,
            next: number(ordinal + 1),
        });
        number(ordinal)
    }

    /// Leaves out so many numbers of each partition: they may have been given, by a log that has lost its end.
    pub fn skip_numbers(&mut self, cx: &mut Context<'_>, count: u64) {
        self.numbers.skip(count);
        for next in self.numbers.iter() {
            cx.journal.append(&Record::Counter {
                entity: self.id,
                next: number(next),
            });
        }
    }

    /// Stores a message that was admitted, with the number that was reserved for it.
    pub fn enqueue_reserved(
        &mut self,
        cx: &mut Context<'_>,
        arrival: Arrival<'_>,
        reserved: SequenceNumber,
    ) -> Option<Taken> {
        self.take_in(cx, arrival, Some(reserved))
    }

    fn take_in(
        &mut self,
        cx: &mut Context<'_>,
        arrival: Arrival<'_>,
        reserved: Option<SequenceNumber>,
    ) -> Option<Taken> {
        let duplicate_key = arrival.duplicate_key;
        if let (Some(window), Some(key)) = (self.description.duplicates(), duplicate_key)
            && !self.duplicates.insert(cx.now, window, key)
        {
            self.count().duplicates += 1;
            return None;
        }
        let state = match arrival.due {
            Some(due) if cx.now < due => StoredState::Scheduled { due },
            _ => StoredState::Active,
        };
        let time_to_live =
            effective_time_to_live(arrival.time_to_live, self.description.default_time_to_live);
        let ordinal = match reserved {
            Some(number) => self.ordinal(number),
            None => self.numbers.take(arrival.partition_hash),
        };
        let amendments = Amendments::of_format(arrival.message_format);
        let encoded = amendments.as_ref().map(Amendments::encode);
        let body = cx.journal.append(&Record::Enqueued {
            entity: self.id,
            number: number(ordinal),
            at: cx.now,
            time_to_live,
            state,
            message_session: arrival.message_session,
            duplicate_key,
            amendments: encoded.as_deref(),
            body: arrival.body,
        });
        let body = body.expect("a record with a body has a place for it");
        let mut entry = Entry::new(ordinal, body, state);
        entry.enqueued_at = cx.now;
        entry.time_to_live = time_to_live;
        entry.message_session = arrival.message_session.map(|id| self.intern(id));
        entry.amendments = amendments.map(Arc::new);
        self.add(entry);
        let counters = self.count();
        counters.incoming += 1;
        counters.scheduled += u64::from(matches!(state, StoredState::Scheduled { .. }));
        let number = number(ordinal);
        Some(Taken { number, body })
    }

    /// Returns the partition of messages with this hash, if the queue is partitioned.
    #[must_use]
    pub fn partition_of_hash(hash: u64) -> usize {
        numbers::decided(hash)
    }

    /// Returns the partition that a number is of, if the queue is partitioned.
    #[must_use]
    pub fn partition_of_number(number: SequenceNumber) -> usize {
        usize::try_from(number.0 >> 48).unwrap_or(usize::MAX)
    }

    /// Returns the partition of the message with this lock.
    #[must_use]
    pub fn partition_of_lock(&self, token: LockToken) -> Option<usize> {
        let lock = self.locks.get(token)?;
        Some(numbers::partition(lock.ordinal))
    }

    /// Returns whether all of these are scheduled here.
    #[must_use]
    pub fn are_scheduled(&self, numbers: &[SequenceNumber]) -> bool {
        let ordinals: Vec<u64> = numbers.iter().map(|&number| self.ordinal(number)).collect();
        let mut all_scheduled = true;
        self.index.look_at(&ordinals, |entry| {
            all_scheduled &=
                entry.is_some_and(|entry| matches!(entry.state, StoredState::Scheduled { .. }));
        });
        all_scheduled
    }

    /// Cancels scheduled messages: all of them, or none and `false` if one is not scheduled here.
    pub fn cancel(&mut self, cx: &mut Context<'_>, numbers: &[SequenceNumber]) -> bool {
        let all_scheduled = self.are_scheduled(numbers);
        if all_scheduled {
            for &number in numbers {
                self.remove(cx, self.ordinal(number));
            }
            self.count().cancelled += u64::try_from(numbers.len()).unwrap_or(u64::MAX);
            self.check();
        }
        all_scheduled
    }

    /// Activates scheduled messages whose time has come, as if they were sent now: with new
    /// numbers, in the order of their times.
    pub(super) fn activate_due(&mut self, cx: &mut Context<'_>, left: &mut usize) {
        while let Some(&(due, ordinal)) = self.scheduled.first() {
            if cx.now < due || *left == 0 {
                return;
            }
            *left -= 1;
            if self.activate(cx, ordinal).is_none() {
                return;
            }
        }
    }

    /// Activates a scheduled message; `None` if it is not there.
    pub(super) fn activate(&mut self, cx: &mut Context<'_>, ordinal: u64) -> Option<()> {
        let mut entry = self.forget(ordinal)?;
        entry.ordinal = self.numbers.take_beside(ordinal);
        entry.state = StoredState::Active;
        entry.enqueued_at = cx.now;
        self.record_passage(cx, self.id, number(ordinal), &entry, PassageKind::Moved);
        self.add(entry);
        Some(())
    }

    /// Adds an entry to every index.
    pub(super) fn add(&mut self, mut entry: Entry) {
        self.bytes += u64::from(entry.body.length);
        let (ordinal, state) = (entry.ordinal, entry.state);
        if let (Some(sessions), Some(name)) = (&mut self.sessions, &entry.message_session) {
            // The shared name of the session, which finds it without a search.
            entry.message_session = sessions.add(name, ordinal);
        }
        self.index.insert(entry);
        match state {
            StoredState::Active => {
                self.consumers.offer(ordinal, Offered::New);
                self.give_back(ordinal);
            }
            StoredState::Deferred => self.deferred += 1,
            StoredState::Scheduled { due } => {
                self.scheduled.insert((due, ordinal));
            }
        }
    }

    /// Returns the name of a message session, the one that others use already if there are others.
    pub(super) fn intern(&self, id: &str) -> MessageSession {
        let known = self
            .sessions
            .as_ref()
            .and_then(|sessions| sessions.name(id));
        known.unwrap_or_else(|| id.into())
    }
}
