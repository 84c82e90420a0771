//! Taking messages in: sends, schedules, what arrives from other queues.

use super::{
    Context, Departure, EntityId, Entry, Kind, NUMBER_MASK, Queue, Record, SequenceNumber,
    StoredState, effective_time_to_live, number,
};
use crate::time::{Millis, Timestamp};

/// A message that a sender hands in.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The message as its sender encoded it.
    pub body: &'a [u8],
    /// The time to live that its sender gave it.
    pub time_to_live: Option<Millis>,
    /// When it is to become active; a time that is not ahead means now.
    pub due: Option<Timestamp>,
}

/// Why a queue does not take a message.
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
}

impl Queue {
    /// Checks whether these messages can be taken, all or none. `elsewhere` are the bytes that
    /// count to the same entity but lie in its dead-letter queue.
    pub fn admit<'a>(
        &self,
        messages: impl IntoIterator<Item = &'a [u8]>,
        elsewhere: u64,
    ) -> Result<(), SendRefused> {
        if !self.description.status.can_send() {
            return Err(SendRefused::Disabled);
        }
        let held = self.bytes + elsewhere;
        let mut bytes = held;
        for message in messages {
            let size = u64::try_from(message.len()).unwrap_or(u64::MAX);
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

    /// Takes a message that was admitted, and returns its number.
    ///
    /// A scheduled message's number is good until it becomes active.
    ///
    /// # Panics
    ///
    /// If the journal has no place for a body.
    pub fn enqueue(&mut self, cx: &mut Context<'_>, arrival: Arrival<'_>) -> SequenceNumber {
        let state = match arrival.due {
            Some(due) if cx.now < due => StoredState::Scheduled { due },
            _ => StoredState::Active,
        };
        let time_to_live =
            effective_time_to_live(arrival.time_to_live, self.description.default_time_to_live);
        let ordinal = self.take_ordinal();
        let body = cx.journal.append(&Record::Enqueued {
            entity: self.id,
            number: number(ordinal),
            at: cx.now,
            time_to_live,
            state,
            enqueued_number: SequenceNumber(0),
            body: arrival.body,
        });
        let body = body.expect("a record with a body has a place for it");
        let mut entry = Entry::new(ordinal, body, state);
        entry.enqueued_at = cx.now;
        entry.time_to_live = time_to_live;
        self.add(entry);
        number(ordinal)
    }

    /// Takes a message that left another queue, and writes down that it moved.
    pub fn arrive(&mut self, cx: &mut Context<'_>, departure: Departure) {
        let Departure {
            from, mut entry, ..
        } = departure;
        let from_number = number(entry.ordinal);
        match self.kind {
            // A dead letter keeps its number and its time of arrival, and lives on for ever
            // (`protocol.md` §13).
            Kind::DeadLetter => {
                entry.ordinal = self.place(from_number);
                entry.time_to_live = Millis::MAX;
            }
            Kind::Main { .. } => {
                entry.ordinal = self.take_ordinal();
                entry.enqueued_at = cx.now;
            }
        }
        self.record_move(cx, from, from_number, &entry);
        self.add(entry);
    }

    /// Cancels scheduled messages: all of them, or none and `false` if one is not scheduled here.
    pub fn cancel(&mut self, cx: &mut Context<'_>, numbers: &[SequenceNumber]) -> bool {
        let ordinals: Vec<u64> = numbers.iter().map(|&number| self.ordinal(number)).collect();
        let all_scheduled = ordinals.iter().all(|&ordinal| {
            let entry = self.index.get(ordinal);
            entry.is_some_and(|entry| matches!(entry.state, StoredState::Scheduled { .. }))
        });
        if all_scheduled {
            for ordinal in ordinals {
                self.remove(cx, ordinal);
            }
            self.check();
        }
        all_scheduled
    }

    /// Makes scheduled messages active whose time has come, as if they were sent now: with new
    /// numbers, in the order of their times.
    pub(super) fn activate_due(&mut self, cx: &mut Context<'_>) {
        while let Some(&(due, ordinal)) = self.scheduled.first() {
            if cx.now < due {
                return;
            }
            let Some(mut entry) = self.forget(ordinal) else {
                return;
            };
            entry.ordinal = self.take_ordinal();
            entry.state = StoredState::Active;
            entry.enqueued_at = cx.now;
            self.record_move(cx, self.id, number(ordinal), &entry);
            self.add(entry);
        }
    }

    /// Puts an entry into its place in every index.
    pub(super) fn add(&mut self, entry: Entry) {
        self.bytes += u64::from(entry.body.length);
        match entry.state {
            StoredState::Active => self.give_back(entry.ordinal),
            StoredState::Deferred => self.deferred += 1,
            StoredState::Scheduled { due } => {
                self.scheduled.insert((due, entry.ordinal));
            }
        }
        self.index.insert(entry);
    }

    pub(super) fn take_ordinal(&mut self) -> u64 {
        let ordinal = self.next;
        // The low 48 bits roll over to zero, and the carry begins another round.
        self.next += 1;
        ordinal
    }

    fn record_move(
        &self,
        cx: &mut Context<'_>,
        from: EntityId,
        from_number: SequenceNumber,
        entry: &Entry,
    ) {
        let amendments = entry
            .amendments
            .as_ref()
            .map(|amendments| amendments.encode());
        cx.journal.append(&Record::Moved {
            from,
            from_number,
            to: self.id,
            number: SequenceNumber(entry.ordinal & NUMBER_MASK),
            at: entry.enqueued_at,
            time_to_live: entry.time_to_live,
            enqueued_number: entry.enqueued_number,
            delivery_count: entry.delivery_count,
            amendments: amendments.as_deref(),
        });
    }
}
