//! The clients' own books: what was accepted and what was finished, by what they were told.

use std::collections::{BTreeMap, BTreeSet};

use super::acts::LinkKey;

/// Messages by their ids.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Sent and not answered yet.
    sent: BTreeMap<(LinkKey, u32), Vec<u64>>,
    /// Completed and not answered yet, over a link or by a request.
    completing: BTreeMap<(LinkKey, u32), u64>,
    asked: BTreeMap<String, Vec<u64>>,
    pub(super) accepted: BTreeSet<u64>,
    finished: BTreeSet<u64>,
}

impl Ledger {
    pub(super) fn sent(&mut self, at: LinkKey, delivery: u32, ids: Vec<u64>) {
        self.sent.insert((at, delivery), ids);
    }

    pub(super) fn answered(&mut self, at: LinkKey, delivery: u32, taken: bool) {
        let ids = self.sent.remove(&(at, delivery)).unwrap_or_default();
        if taken {
            self.accepted.extend(ids);
        }
    }

    pub(super) fn completing(&mut self, at: LinkKey, delivery: u32, id: u64) {
        self.completing.insert((at, delivery), id);
    }

    pub(super) fn settled(&mut self, at: LinkKey, delivery: u32, completed: bool) {
        let id = self.completing.remove(&(at, delivery));
        if completed {
            self.finished.extend(id);
        }
    }

    pub(super) fn asked(&mut self, request: &str, ids: Vec<u64>) {
        self.asked.insert(request.to_owned(), ids);
    }

    pub(super) fn responded(&mut self, request: &str, done: bool) {
        let ids = self.asked.remove(request).unwrap_or_default();
        if done {
            self.finished.extend(ids);
        }
    }

    /// Somebody sees a message.
    pub(super) fn sees(&self, id: u64) -> Result<(), String> {
        if self.finished.contains(&id) {
            return Err(format!("message m{id} was finished, and here it is again"));
        }
        Ok(())
    }

    /// Somebody got a message for good.
    pub(super) fn got(&mut self, id: u64) -> Result<(), String> {
        self.sees(id)?;
        self.finished.insert(id);
        Ok(())
    }
}
