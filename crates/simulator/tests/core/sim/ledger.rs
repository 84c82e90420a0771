//! The clients' own books: what was accepted and what was finished, by what they were told.

use std::collections::{BTreeMap, BTreeSet};

use super::acts::{LinkKey, Place, TransactionId};
use super::wire::{Seen, made_up_id};

/// A copy of a message: its id, and where there may be several, its entity and its number there.
pub(super) type Copy = (u64, usize, i64);

/// Messages by their ids.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Sent and not answered yet.
    sent: BTreeMap<(LinkKey, u32), Vec<u64>>,
    /// Completed and not answered yet, over a link or by a request.
    completing: BTreeMap<(LinkKey, u32), Copy>,
    asked: BTreeMap<String, Vec<Copy>>,
    /// Sent and completed in transactions that are open.
    within: BTreeMap<TransactionId, (Vec<u64>, Vec<Copy>)>,
    pub(super) accepted: BTreeSet<u64>,
    /// When it was told.
    finished: BTreeMap<Copy, u64>,
    /// When what is heard now was told; it may have been on its way for long.
    told: u64,
    pub(super) made_up: MadeUp,
}

/// Message-ids that the broker has made up. No two messages have the same, and a message keeps its own: at each
/// delivery, after each start, and as a dead letter. With another number, or in another entity, it is another message.
/// One that a job gives another body takes its id along, as if its sender had given it.
#[derive(Debug, Default)]
pub(super) struct MadeUp {
    /// By the entity of a message and its number there.
    ids: BTreeMap<(usize, i64), u128>,
    /// By its id.
    messages: BTreeMap<u128, (usize, i64)>,
    /// Which message its sender made, by its id.
    sent: BTreeMap<u128, u64>,
}

impl MadeUp {
    /// Somebody sees a message with its message-id.
    pub(super) fn sees(&mut self, place: Place, seen: &Seen) -> Result<(), String> {
        // Clients give none of this form.
        let Some(id) = made_up_id(&seen.message_id) else {
            return Ok(());
        };
        let sent = *self.sent.entry(id).or_insert(seen.id);
        if seen.id != 0 && sent != seen.id && sent != 0 {
            return Err(format!(
                "m{sent} has the made-up message-id {id:032x} of {seen:?} of {place}"
            ));
        }
        if !seen.tail.is_empty() {
            return Ok(());
        }
        let message = (place.queue, seen.number);
        let before = *self.ids.entry(message).or_insert(id);
        if before != id {
            return Err(format!(
                "a message had the made-up message-id {before:032x}, and has {id:032x} now: {seen:?} of {place}"
            ));
        }
        let other = *self.messages.entry(id).or_insert(message);
        if other != message {
            let (entity, number) = other;
            return Err(format!(
                "message {number} of {entity} has the made-up message-id {id:032x} of {seen:?} of {place}"
            ));
        }
        Ok(())
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u128> {
        self.messages.keys().copied()
    }
}

impl Ledger {
    /// What is heard from now on was told then.
    pub(super) fn hears(&mut self, told: u64) {
        self.told = told;
    }

    fn finish(&mut self, ids: impl IntoIterator<Item = Copy>) {
        let told = self.told;
        self.finished.extend(ids.into_iter().map(|id| (id, told)));
    }

    pub(super) fn sent(&mut self, at: LinkKey, delivery: u32, ids: Vec<u64>) {
        self.sent.insert((at, delivery), ids);
    }

    pub(super) fn accepted(&mut self, at: LinkKey, delivery: u32) {
        let ids = self.sent.remove(&(at, delivery)).unwrap_or_default();
        self.accepted.extend(ids);
    }

    pub(super) fn refused(&mut self, at: LinkKey, delivery: u32) {
        self.sent.remove(&(at, delivery));
    }

    pub(super) fn sent_within(&mut self, at: LinkKey, delivery: u32, id: TransactionId) {
        let ids = self.sent.remove(&(at, delivery)).unwrap_or_default();
        self.within.entry(id).or_default().0.extend(ids);
    }

    pub(super) fn settled_within(&mut self, at: LinkKey, delivery: u32, id: TransactionId) {
        let completed = self.completing.remove(&(at, delivery));
        self.within.entry(id).or_default().1.extend(completed);
    }

    /// A transaction has come to its end: all that was done in it was done.
    pub(super) fn committed(&mut self, id: &TransactionId) {
        let (sent, completed) = self.within.remove(id).unwrap_or_default();
        self.accepted.extend(sent);
        self.finish(completed);
    }

    /// A transaction has come to its end: nothing that was done in it was done.
    pub(super) fn rolled_back(&mut self, id: &TransactionId) {
        self.within.remove(id);
    }

    /// All connections are lost: nobody can commit what was open.
    pub(super) fn lost(&mut self) {
        self.within.clear();
    }

    pub(super) fn completing(&mut self, at: LinkKey, delivery: u32, id: Copy) {
        self.completing.insert((at, delivery), id);
    }

    pub(super) fn completed(&mut self, at: LinkKey, delivery: u32) {
        let id = self.completing.remove(&(at, delivery));
        self.finish(id);
    }

    pub(super) fn not_completed(&mut self, at: LinkKey, delivery: u32) {
        self.completing.remove(&(at, delivery));
    }

    pub(super) fn asked(&mut self, request: &str, ids: Vec<Copy>) {
        self.asked.insert(request.to_owned(), ids);
    }

    pub(super) fn done(&mut self, request: &str) {
        let ids = self.asked.remove(request).unwrap_or_default();
        self.finish(ids);
    }

    pub(super) fn not_done(&mut self, request: &str) {
        self.asked.remove(request);
    }

    /// Somebody sees a message.
    pub(super) fn sees(&self, id: Copy) -> Result<(), String> {
        let finished = self.finished.get(&id);
        if finished.is_some_and(|&finished| finished < self.told) {
            let (message, entity, number) = id;
            return Err(format!(
                "message {message}, which is number {number} of entity {entity}, was finished, and here it is again"
            ));
        }
        Ok(())
    }

    /// Somebody got a message for good.
    pub(super) fn got(&mut self, id: Copy) -> Result<(), String> {
        self.sees(id)?;
        self.finish([id]);
        Ok(())
    }
}
