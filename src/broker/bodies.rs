//! Bytes that several messages share: a topic's message is stored once, for all its subscriptions.

use std::collections::BTreeMap;

use crate::entity::BodyRef;

/// How many messages have the same bytes, where more than one has.
#[derive(Debug, Default)]
pub(super) struct SharedBodies {
    /// By the bytes' position.
    counts: BTreeMap<u64, u32>,
}

impl SharedBodies {
    /// Counts one message more that has these bytes.
    pub(super) fn share(&mut self, body: BodyRef) {
        *self.counts.entry(body.position).or_insert(1) += 1;
    }

    /// Counts one message less; returns whether none is left.
    pub(super) fn release(&mut self, body: BodyRef) -> bool {
        let Some(count) = self.counts.get_mut(&body.position) else {
            return true;
        };
        *count -= 1;
        if *count == 1 {
            self.counts.remove(&body.position);
        }
        false
    }

    /// Returns whether more than one message has these bytes.
    pub(super) fn is_shared(&self, body: BodyRef) -> bool {
        self.counts.contains_key(&body.position)
    }

    /// Counts anew what was found after a recovery: the positions of bytes that may be shared.
    pub(super) fn restore(&mut self, found: impl Iterator<Item = u64>) {
        self.counts.clear();
        for position in found {
            *self.counts.entry(position).or_insert(0) += 1;
        }
        self.counts.retain(|_, count| 1 < *count);
    }
}
