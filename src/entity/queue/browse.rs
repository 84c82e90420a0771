//! Looking at messages without changing them, and deleting many at once.

use super::{
    BodyRef, Context, MessageSession, Queue, Seen, SequenceNumber, Stamps, Timestamp, numbers,
    stamps,
};
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
    /// and scheduled ones; with a message session, its messages only.
    ///
    /// At most `count`, [`limits::PEEK_MESSAGES_MAX`], and about [`limits::PEEK_BYTES_MAX`] bytes,
    /// but one at least if there is one.
    #[must_use]
    pub fn browse(
        &self,
        from: SequenceNumber,
        count: usize,
        message_session: Option<&str>,
    ) -> Vec<Browsed> {
        let start = self.browse_start(from);
        let count = count.min(limits::PEEK_MESSAGES_MAX);
        match (&self.sessions, message_session) {
            (Some(sessions), Some(id)) => {
                let ordinals = sessions.messages(id, start);
                self.browsed(ordinals.filter_map(|at| self.index.get(at)).take(count))
            }
            (None, Some(id)) => {
                let of_session = |entry: &Seen<'_>| {
                    entry
                        .message_session
                        .as_ref()
                        .is_some_and(|name| name.as_str() == id)
                };
                self.browsed(self.index.from(start).filter(of_session).take(count))
            }
            (_, None) => self.browsed(self.index.from(start).take(count)),
        }
    }

    /// Finds where a browser begins. From 0 means from the beginning, also where numbers have rolled
    /// over.
    fn browse_start(&self, from: SequenceNumber) -> u64 {
        if from.0 == 0 {
            return 0;
        }
        let start = self.ordinal(from);
        let partition = usize::try_from(from.0 >> 48).unwrap_or(usize::MAX);
        if limits::PARTITIONS <= partition {
            return u64::MAX;
        }
        if !self.numbers.is_ahead(from) {
            return start;
        }
        // Above the newest: it is of the round before the roll-over, if there was one.
        let next = self.numbers.peek(partition);
        let first = self.index.from(numbers::first_of(partition)).next();
        let first = first.map_or(u64::MAX, |entry| entry.ordinal);
        if next != u64::MAX && first < numbers::round_of(next) {
            start
        } else {
            numbers::first_of(partition + 1)
        }
    }

    fn browsed<'e>(&self, entries: impl Iterator<Item = Seen<'e>>) -> Vec<Browsed> {
        let mut bytes = 0;
        let mut found = Vec::new();
        for entry in entries {
            bytes += usize::try_from(entry.body.length).unwrap_or(usize::MAX);
            if limits::PEEK_BYTES_MAX < bytes && !found.is_empty() {
                break;
            }
            found.push(Browsed {
                body: entry.body,
                stamps: stamps(self.id, self.description.partitioned, &entry),
            });
        }
        found
    }

    /// Deletes up to `count` messages that can be received and were enqueued before a time, the
    /// oldest first, and returns how many there were.
    pub fn delete_batch(
        &mut self,
        cx: &mut Context<'_>,
        count: usize,
        before: Timestamp,
        message_session: Option<&str>,
    ) -> usize {
        let wanted = |entry: &Seen<'_>| {
            let name = entry.message_session.as_ref().map(MessageSession::as_str);
            entry.is_available()
                && entry.enqueued_at < before
                && (message_session.is_none() || message_session == name)
        };
        let doomed: Vec<u64> = self
            .index
            .from(0)
            .filter(wanted)
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
