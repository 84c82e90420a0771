//! What an operator does to messages by their numbers. A message that a receiver has locked is left alone.

use std::sync::Arc;

use super::consumers::NO_ONE;
use super::{
    Amendments, Changes, Context, DeadLetterCause, Departure, EntityId, Entry, Handover, Kind,
    Millis, Queue, ReceiveMode, SequenceNumber, StoredState, Timestamp, number,
};

/// A message that cannot be locked by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The message {number} {why}.", number = number.0)]
pub struct NotLockable {
    /// Its number.
    pub number: SequenceNumber,
    /// Why.
    pub why: &'static str,
}

impl Queue {
    /// Returns whether there is a message with this number that no receiver has locked.
    fn is_free(&self, number: SequenceNumber) -> bool {
        let entry = self.index.get(self.ordinal(number));
        entry.is_some_and(|entry| !entry.locked)
    }

    /// Locks active or deferred messages for no receiver: all of them, or none.
    ///
    /// # Errors
    ///
    /// The first that cannot be locked, and why.
    pub fn lock_by_number(
        &mut self,
        cx: &mut Context<'_>,
        numbers: &[SequenceNumber],
    ) -> Result<Vec<Handover>, NotLockable> {
        let mut ordinals: Vec<u64> = numbers.iter().map(|&it| self.ordinal(it)).collect();
        ordinals.sort_unstable();
        ordinals.dedup();
        for &ordinal in &ordinals {
            let why = match self.index.get(ordinal) {
                None => "is not there",
                Some(entry) if entry.locked => "is locked by a receiver",
                Some(entry) => match entry.state {
                    StoredState::Scheduled { .. } => "is scheduled: activate it first",
                    StoredState::Active | StoredState::Deferred => continue,
                },
            };
            let number = number(ordinal);
            return Err(NotLockable { number, why });
        }
        let locked = ordinals.into_iter().filter_map(|ordinal| {
            self.returned.remove(&ordinal);
            self.hand_over(cx, ordinal, NO_ONE, ReceiveMode::PeekLock)
        });
        let locked = locked.map(|handover| *handover).collect();
        self.check();
        Ok(locked)
    }

    /// Deletes a message; returns whether it was there and free.
    pub fn delete_one(&mut self, cx: &mut Context<'_>, number: SequenceNumber) -> bool {
        let ordinal = self.ordinal(number);
        self.is_free(number) && self.remove(cx, ordinal).is_some()
    }

    /// Takes a message out, whatever its state, to bring it to another queue as a new one.
    pub fn take_out(&mut self, number: SequenceNumber, to: EntityId) -> Option<Departure> {
        if !self.is_free(number) {
            return None;
        }
        let ordinal = self.ordinal(number);
        let entry = self.forget(ordinal)?;
        self.count().forwarded += 1;
        Some(Departure::new(self.id, to, entry))
    }

    /// Sends a message to the dead-letter queue; returns whether it was there and free.
    pub fn dead_letter_one(
        &mut self,
        cx: &mut Context<'_>,
        number: SequenceNumber,
        changes: Changes,
    ) -> bool {
        if !self.is_free(number) || !matches!(self.kind, Kind::Main { .. }) {
            return false;
        }
        let ordinal = self.ordinal(number);
        self.dead_letter(cx, ordinal, DeadLetterCause::Operator, changes);
        true
    }

    /// Lets a deferred message, or one that waits for its time, be received as any other; returns whether there was a
    /// free one.
    pub fn activate_one(&mut self, cx: &mut Context<'_>, number: SequenceNumber) -> bool {
        let ordinal = self.ordinal(number);
        if !self.is_free(number) {
            return false;
        }
        match self.index.get(ordinal).map(|entry| entry.state) {
            Some(StoredState::Deferred) => {
                self.set_state(cx, ordinal, StoredState::Active);
                true
            }
            Some(StoredState::Scheduled { .. }) => self.activate(cx, ordinal).is_some(),
            Some(StoredState::Active) | None => false,
        }
    }

    /// Changes the time at which a scheduled message becomes active; returns whether there was one.
    pub fn reschedule_one(
        &mut self,
        cx: &mut Context<'_>,
        number: SequenceNumber,
        due: Timestamp,
    ) -> bool {
        let ordinal = self.ordinal(number);
        let state = self.index.get(ordinal).map(|entry| entry.state);
        let is_scheduled = matches!(state, Some(StoredState::Scheduled { .. }));
        if is_scheduled {
            self.set_state(cx, ordinal, StoredState::Scheduled { due });
        }
        is_scheduled
    }

    fn set_state(&mut self, cx: &mut Context<'_>, ordinal: u64, state: StoredState) {
        let Some(mut entry) = self.forget(ordinal) else {
            return;
        };
        entry.state = state;
        self.add(entry);
        self.record_change(cx, ordinal);
    }
}

impl Departure {
    /// Makes it a message that was never delivered, dead-lettered or forwarded, with the time to live that its sender
    /// gave it.
    pub fn renew(&mut self, time_to_live: Option<Millis>) {
        let entry: &mut Entry = &mut self.entry;
        entry.time_to_live = time_to_live.unwrap_or(Millis::MAX);
        entry.hops = 0;
        entry.enqueued_number = SequenceNumber(0);
        entry.dead_letter_source = None;
    }

    /// Replaces the changes to the message.
    pub fn set_amendments(&mut self, amendments: Amendments) {
        self.entry.amendments = (!amendments.is_empty()).then(|| Arc::new(amendments));
    }
}

/// Returns the changes of a message without those that made it a dead letter.
#[must_use]
pub fn without_dead_letter(amendments: Option<&Amendments>) -> Amendments {
    let mut left = amendments.cloned().unwrap_or_default();
    for name in super::receive::DEAD_LETTER_PROPERTIES {
        left.forget(name);
    }
    left
}
