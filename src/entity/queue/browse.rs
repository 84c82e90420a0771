//! Looking at messages without changing them, and deleting many at once.

use super::{BodyRef, Context, Queue, SequenceNumber, Stamps, Timestamp, stamps};
use crate::limits;

/// A message as a browser sees it.
#[derive(Debug, Clone)]
pub struct Browsed {
    /// Where its bytes are.
    pub body: BodyRef,
    /// What is written onto it; never an end of a lock.
    pub stamps: Stamps,
}

impl Queue {
    /// Returns messages from a number on, in order, in whatever state: active, locked, deferred
    /// and scheduled ones.
    ///
    /// At most `count`, [`limits::PEEK_MESSAGES_MAX`], and about [`limits::PEEK_BYTES_MAX`] bytes,
    /// but one at least if there is one.
    #[must_use]
    pub fn browse(&self, from: SequenceNumber, count: usize) -> Vec<Browsed> {
        let start = self.ordinal(from);
        let above_newest = (self.next & super::NUMBER_MASK) < (from.0 & super::NUMBER_MASK);
        let round_before = self
            .index
            .first_ordinal()
            .is_some_and(|first| first < self.next & !super::NUMBER_MASK);
        if above_newest && !round_before {
            return Vec::new();
        }
        // From 0 means from the beginning, also where numbers have rolled over.
        let start = if from.0 == 0 { 0 } else { start };
        let mut bytes = 0;
        let mut found = Vec::new();
        for entry in self
            .index
            .from(start)
            .take(count.min(limits::PEEK_MESSAGES_MAX))
        {
            bytes += usize::try_from(entry.body.length).unwrap_or(usize::MAX);
            if limits::PEEK_BYTES_MAX < bytes && !found.is_empty() {
                break;
            }
            found.push(Browsed {
                body: entry.body,
                stamps: stamps(self.id, entry, None),
            });
        }
        found
    }

    /// Deletes up to `count` messages that can be received and were enqueued before a time, the
    /// oldest first, and returns how many there were.
    pub fn delete_batch(&mut self, cx: &mut Context<'_>, count: usize, before: Timestamp) -> usize {
        let doomed: Vec<u64> = self
            .index
            .from(0)
            .filter(|entry| entry.is_available() && entry.enqueued_at < before)
            .take(count)
            .map(|entry| entry.ordinal)
            .collect();
        for &ordinal in &doomed {
            self.remove(cx, ordinal);
        }
        self.check();
        doomed.len()
    }
}
