//! Looking at messages without changing them, and deleting many at once.

use super::{
    BodyRef, Context, MessageSession, Queue, Seen, SequenceNumber, Stamps, StoredState, Timestamp,
    numbers, stamps,
};
use crate::limits;

/// A message as a browser sees it.
#[derive(Debug, Clone)]
pub struct Browsed {
    /// Where its bytes are.
    pub body: BodyRef,
    /// Annotations to add on the way out; of locks, only that of a deferred message of a session, whose end is none.
    pub stamps: Stamps,
}

/// Entries that requests may still look at in this turn.
#[derive(Debug)]
pub struct ScanBudget {
    left: usize,
}

/// The position at which a request continues that has used up its share of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanPosition(pub u64);

/// The messages that a batch-delete deletes.
#[derive(Debug, Clone, Copy)]
pub struct Doomed<'a> {
    /// As many at most.
    pub count: usize,
    /// Those that were enqueued before.
    pub before: Timestamp,
    /// Those of one message session.
    pub message_session: Option<&'a str>,
}

/// The cost of the removal of a message, in messages looked at.
const SCANNED_PER_REMOVAL: usize = 16;

impl ScanBudget {
    /// Makes a share of some.
    #[must_use]
    pub const fn of(left: usize) -> Self {
        Self { left }
    }

    /// Returns whether nothing of it is left.
    #[must_use]
    pub const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Takes one, if there is one.
    pub const fn take(&mut self) -> bool {
        let is_there = 0 < self.left;
        self.left = self.left.saturating_sub(1);
        is_there
    }

    /// Takes some, or all that are left.
    pub const fn spend(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count);
    }
}

impl Default for ScanBudget {
    fn default() -> Self {
        let left = limits::SCAN_BUDGET;
        Self { left }
    }
}

impl Queue {
    /// Returns messages from a number on, in order, in whatever state: active, locked, deferred
    /// and scheduled ones.
    ///
    /// At most `count`, [`limits::PEEK_MESSAGES_MAX`], and about [`limits::PEEK_BYTES_MAX`] bytes,
    /// but one at least if there is one.
    #[must_use]
    pub fn browse(&self, from: SequenceNumber, count: usize) -> Vec<Browsed> {
        let entries = self.index.from(self.browse_start(from));
        self.browsed(entries.take(count.min(limits::PEEK_MESSAGES_MAX)))
    }

    /// Peeks at the messages of one message session, from where a browser begins
    /// ([`Queue::browse_start`]). Stops when its share of entries is used up, and returns the
    /// messages found, or the position to continue at if there are none.
    pub fn browse_session(
        &self,
        start: u64,
        count: usize,
        message_session: &str,
        budget: &mut ScanBudget,
    ) -> Result<Vec<Browsed>, ScanPosition> {
        let count = count.min(limits::PEEK_MESSAGES_MAX);
        if let Some(sessions) = &self.sessions {
            budget.spend(count);
            let ordinals = sessions.messages(message_session, start);
            let entries = ordinals.filter_map(|at| self.index.get(at));
            return Ok(self.browsed(entries.take(count)));
        }
        let mut next = None;
        let allowed = self.index.from(start).take_while(|entry| {
            let is_allowed = budget.take();
            next = (!is_allowed).then_some(entry.ordinal);
            is_allowed
        });
        let found = self.browsed(
            allowed
                .filter(|entry| session_of(entry) == Some(message_session))
                .take(count),
        );
        match next {
            Some(next) if found.is_empty() => Err(ScanPosition(next)),
            _ => Ok(found),
        }
    }

    /// Finds where a browser begins. From 0 means from the beginning, also where numbers have rolled
    /// over.
    #[must_use]
    pub fn browse_start(&self, from: SequenceNumber) -> u64 {
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
            let mut stamps = stamps(self.origin(), &entry);
            // The service says it of deferred messages of sessions only, as of those that are received.
            if self.sessions.is_some() && matches!(entry.state, StoredState::Deferred) {
                stamps.locked_until = Some(Timestamp::END_OF_9999);
            }
            let body = entry.body;
            found.push(Browsed { body, stamps });
        }
        found
    }

    /// Deletes up to `count` messages that can be received and were enqueued before a time, the
    /// oldest first, from a position on. Returns their number, and the position to continue at if
    /// its share of entries is used up.
    pub fn delete_batch(
        &mut self,
        cx: &mut Context<'_>,
        doomed: &Doomed<'_>,
        start: u64,
        budget: &mut ScanBudget,
    ) -> (usize, Option<ScanPosition>) {
        let wanted = |entry: &Seen<'_>| {
            entry.is_available()
                && entry.enqueued_at < doomed.before
                && doomed
                    .message_session
                    .is_none_or(|id| session_of(entry) == Some(id))
        };
        let (mut found, mut next) = (Vec::new(), None);
        let entries: Box<dyn Iterator<Item = Seen<'_>>> =
            match (&self.sessions, doomed.message_session) {
                (Some(sessions), Some(id)) => {
                    let ordinals = sessions.messages(id, start);
                    Box::new(ordinals.filter_map(|at| self.index.get(at)))
                }
                _ => Box::new(self.index.available(start)),
            };
        for entry in entries {
            if found.len() == doomed.count {
                break;
            }
            if !budget.take() {
                next = Some(ScanPosition(entry.ordinal));
                break;
            }
            if wanted(&entry) {
                found.push(entry.ordinal);
            }
        }
        budget.spend(found.len() * SCANNED_PER_REMOVAL);
        for &ordinal in &found {
            self.remove(cx, ordinal);
        }
        self.check();
        (found.len(), next)
    }
}

fn session_of<'e>(entry: &'e Seen<'_>) -> Option<&'e str> {
    entry.message_session.as_ref().map(MessageSession::as_str)
}
