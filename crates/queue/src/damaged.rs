//! Messages whose bytes in the log are damaged.
//!
//! Such a message loses its bytes and nothing else: it gets those of an empty message, and goes to
//! the dead letters with a reason. A dead letter stays where it is, and is marked.

use std::sync::Arc;

use super::{
    Amendments, BodyRef, Context, DeadLetter, DeadLetterCause, Entry, Kind, Queue, Record,
    SequenceNumber, Stamps, StoredState, number,
};
use jitney_base::time::Millis;
use jitney_message::{EMPTY, Field};

impl Queue {
    /// Takes a message with damaged bytes out of whatever state it is in, and dead-letters it with
    /// the bytes of an empty message. Returns where these are; `None` if no message of this number
    /// has the damaged bytes any more.
    pub fn contain(
        &mut self,
        cx: &mut Context<'_>,
        number: SequenceNumber,
        damaged: BodyRef,
        reason: DeadLetter,
    ) -> Option<BodyRef> {
        let ordinal = self.ordinal(number);
        let entry = self.index.get(ordinal)?;
        if entry.body != damaged {
            return None;
        }
        let session = entry.message_session.clone();
        let reason = reason.after(entry.amendments.as_deref());
        if let Some(token) = self.locks.of(ordinal) {
            self.end_lock(cx.now, token);
        }
        let body = cx.journal.append(&Record::Relocated {
            entity: self.id,
            number,
            body: EMPTY,
        });
        let body = body.expect("a record with a body has a place for it");
        self.set_body(number, body);
        cx.journal.release(damaged);
        let mut reason = reason.into_amendments();
        if let Some(name) = &session {
            // The sender's bytes, which would have it, are lost.
            reason.set_field(Field::SessionId, Some(name.as_str()));
        }
        match self.kind {
            Kind::Main { .. } => {
                let cause = DeadLetterCause::Damaged;
                self.dead_letter(cx, ordinal, cause, Some(Arc::new(reason)));
            }
            Kind::DeadLetter => self.mark(cx, ordinal, reason),
        }
        Some(body)
    }

    /// Marks a dead letter, which stays.
    fn mark(&mut self, cx: &mut Context<'_>, ordinal: u64, reason: Amendments) {
        self.index.update(ordinal, |entry| {
            super::receive::amend(&mut entry.amendments, Some(Arc::new(reason)));
        });
        self.record_change(cx, ordinal);
        self.unlock(cx, ordinal);
        // It may have been locked, and receivers wait for it.
        self.dispatch(cx);
    }

    /// Makes a dead letter of a message that was received and deleted, and whose bytes turned out
    /// to be damaged before they were sent. It gets a number of its own, and keeps the old one as
    /// its enqueued sequence number.
    pub fn bring_back(&mut self, cx: &mut Context<'_>, stamps: &Stamps, reason: DeadLetter) {
        let ordinal = self.numbers.take(None);
        let body = cx.journal.append(&Record::Enqueued {
            entity: self.id,
            number: number(ordinal),
            at: stamps.enqueued_time,
            time_to_live: Millis::MAX,
            state: StoredState::Active,
            message_session: None,
            duplicate_key: None,
            amendments: None,
            body: EMPTY,
        });
        let body = body.expect("a record with a body has a place for it");
        let mut entry = Entry::new(ordinal, body, StoredState::Active);
        entry.enqueued_at = stamps.enqueued_time;
        entry.time_to_live = Millis::MAX;
        entry.enqueued_number = SequenceNumber(stamps.sequence_number.cast_unsigned());
        entry.delivery_count = stamps.delivery_count;
        entry.amendments.clone_from(&stamps.amendments);
        self.add(entry);
        let cause = DeadLetterCause::Damaged;
        self.dead_letter(cx, ordinal, cause, Some(reason.amended()));
    }
}
