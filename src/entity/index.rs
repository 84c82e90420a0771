//! The index of one queue: an entry per message, by number, without the bodies.
//!
//! Entries stand in chunks of 128 neighbouring ordinals, shared copy-on-write: a snapshot for a
//! checkpoint costs a pointer per chunk, and the queue goes on. A chunk knows the earliest end of
//! life in it, so expiry costs a timer per chunk, not per message.
//!
//! An *ordinal* is a message's number without roll-over: ordinals of one queue only grow, and
//! their low 48 bits are the sequence number's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::message_session::MessageSession;
use super::record::{BodyRef, SequenceNumber, StoredState};
use crate::message::Amendments;
use crate::time::{Millis, Timestamp};

/// What is known of a message.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) ordinal: u64,
    pub(super) body: BodyRef,
    /// When it was accepted, or became active.
    pub(super) enqueued_at: Timestamp,
    pub(super) time_to_live: Millis,
    pub(super) enqueued_number: SequenceNumber,
    pub(super) amendments: Option<Arc<Amendments>>,
    pub(super) message_session: Option<MessageSession>,
    /// Where it was dead-lettered, if it was forwarded from there.
    pub(super) dead_letter_source: Option<Arc<Box<str>>>,
    pub(super) state: StoredState,
    pub(super) delivery_count: u32,
    /// How often it was forwarded.
    pub(super) hops: u8,
    pub(super) locked: bool,
    /// Other messages may have the same bytes.
    pub(super) shared: bool,
    gone: bool,
}

impl Entry {
    pub(super) fn new(ordinal: u64, body: BodyRef, state: StoredState) -> Self {
        Self {
            ordinal,
            body,
            enqueued_at: Timestamp::EPOCH,
            time_to_live: Millis::MAX,
            enqueued_number: SequenceNumber(0),
            amendments: None,
            message_session: None,
            dead_letter_source: None,
            state,
            delivery_count: 0,
            hops: 0,
            locked: false,
            shared: false,
            gone: false,
        }
    }

    /// Returns when the message's life ends.
    pub(super) fn expires_at(&self) -> Timestamp {
        self.enqueued_at.after(self.time_to_live)
    }

    /// Returns whether time alone can remove it: deferred messages stay however old they are, and
    /// a scheduled one's life has not begun (`protocol.md` §13). Whoever holds a lock may settle
    /// after the end.
    fn can_expire(&self) -> bool {
        !self.gone
            && !self.locked
            && self.state == StoredState::Active
            && self.time_to_live != Millis::MAX
    }

    pub(super) fn is_available(&self) -> bool {
        !self.locked && self.state == StoredState::Active
    }
}

#[derive(Debug, Clone)]
struct Chunk {
    /// By ordinal; those that are gone stay until few are left.
    entries: Vec<Entry>,
    alive: usize,
    earliest: Timestamp,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    chunks: BTreeMap<u64, Arc<Chunk>>,
    expiry: BTreeSet<(Timestamp, u64)>,
    len: usize,
}

/// Ordinals in a chunk, as a power of two: 128 entries are some 10 KiB, copied in about a
/// microsecond when a snapshot shares them.
const CHUNK_BITS: u32 = 7;

impl Index {
    pub(super) fn insert(&mut self, entry: Entry) {
        let number = entry.ordinal >> CHUNK_BITS;
        let expires_at = entry.can_expire().then(|| entry.expires_at());
        let chunk = self.chunks.entry(number).or_insert_with(|| {
            Arc::new(Chunk {
                entries: Vec::new(),
                alive: 0,
                earliest: Timestamp::MAX,
            })
        });
        let chunk = Arc::make_mut(chunk);
        match chunk.entries.last() {
            Some(last) if entry.ordinal <= last.ordinal => {
                let at = chunk
                    .entries
                    .partition_point(|other| other.ordinal < entry.ordinal);
                let same = chunk
                    .entries
                    .get(at)
                    .filter(|other| other.ordinal == entry.ordinal);
                assert!(
                    same.is_none_or(|other| other.gone),
                    "a number is given twice"
                );
                match same {
                    Some(_) => chunk.entries.splice(at..=at, [entry]).for_each(drop),
                    None => chunk.entries.insert(at, entry),
                }
            }
            _ => chunk.entries.push(entry),
        }
        chunk.alive += 1;
        self.len += 1;
        if let Some(expires_at) = expires_at {
            self.expect_expiry(number, expires_at);
        }
    }

    pub(super) fn get(&self, ordinal: u64) -> Option<&Entry> {
        let chunk = self.chunks.get(&(ordinal >> CHUNK_BITS))?;
        let at = chunk.position(ordinal)?;
        chunk.entries.get(at).filter(|entry| !entry.gone)
    }

    /// Changes an entry in place; its expiry is looked at again afterwards.
    pub(super) fn update<T>(
        &mut self,
        ordinal: u64,
        change: impl FnOnce(&mut Entry) -> T,
    ) -> Option<T> {
        let number = ordinal >> CHUNK_BITS;
        let chunk = Arc::make_mut(self.chunks.get_mut(&number)?);
        let at = chunk.position(ordinal)?;
        let entry = chunk.entries.get_mut(at).filter(|entry| !entry.gone)?;
        let result = change(entry);
        let expires_at = entry.can_expire().then(|| entry.expires_at());
        if let Some(expires_at) = expires_at {
            self.expect_expiry(number, expires_at);
        }
        Some(result)
    }

    pub(super) fn remove(&mut self, ordinal: u64) -> Option<Entry> {
        let number = ordinal >> CHUNK_BITS;
        let chunk = Arc::make_mut(self.chunks.get_mut(&number)?);
        let at = chunk.position(ordinal)?;
        let entry = chunk.entries.get_mut(at).filter(|entry| !entry.gone)?;
        entry.gone = true;
        let taken = Entry {
            amendments: entry.amendments.take(),
            message_session: entry.message_session.take(),
            dead_letter_source: entry.dead_letter_source.take(),
            gone: false,
            ..entry.clone()
        };
        chunk.alive -= 1;
        self.len -= 1;
        if chunk.alive == 0 {
            self.expiry.remove(&(chunk.earliest, number));
            self.chunks.remove(&number);
        } else if chunk.alive * 4 < chunk.entries.len() {
            chunk.entries.retain(|entry| !entry.gone);
            chunk.entries.shrink_to_fit();
        }
        Some(taken)
    }

    /// Returns the entries from this ordinal on, in order.
    pub(super) fn from(&self, ordinal: u64) -> impl Iterator<Item = &Entry> {
        self.chunks
            .range(ordinal >> CHUNK_BITS..)
            .flat_map(move |(_, chunk)| {
                let at = match chunk.entries.first() {
                    Some(first) if first.ordinal < ordinal => chunk
                        .entries
                        .partition_point(|entry| entry.ordinal < ordinal),
                    _ => 0,
                };
                chunk.entries.get(at..).unwrap_or_default()
            })
            .filter(|entry| !entry.gone)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the time at which [`Index::expired`] may have something.
    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.expiry.first().map(|&(at, _)| at)
    }

    /// Returns the ordinals of some messages whose life is over at `now`, in order; to be called
    /// until it returns none. The caller removes each of them.
    pub(super) fn expired(&mut self, now: Timestamp) -> Vec<u64> {
        while let Some(&(at, number)) = self.expiry.first() {
            if now < at {
                break;
            }
            self.expiry.pop_first();
            let Some(chunk) = self.chunks.get_mut(&number) else {
                continue;
            };
            let due = chunk
                .entries
                .iter()
                .filter(|e| e.can_expire() && e.expires_at() <= now);
            let due: Vec<u64> = due.map(|entry| entry.ordinal).collect();
            let rest = chunk
                .entries
                .iter()
                .filter(|e| e.can_expire() && now < e.expires_at());
            let earliest = rest.map(Entry::expires_at).min().unwrap_or(Timestamp::MAX);
            Arc::make_mut(chunk).earliest = earliest;
            if earliest != Timestamp::MAX {
                self.expiry.insert((earliest, number));
            }
            if !due.is_empty() {
                return due;
            }
        }
        Vec::new()
    }

    fn expect_expiry(&mut self, number: u64, at: Timestamp) {
        let Some(chunk) = self.chunks.get_mut(&number) else {
            return;
        };
        if at < chunk.earliest {
            self.expiry.remove(&(chunk.earliest, number));
            self.expiry.insert((at, number));
            Arc::make_mut(chunk).earliest = at;
        }
    }
}

impl Chunk {
    /// Finds an entry: where it stands when nothing is missing before it, else by search.
    fn position(&self, ordinal: u64) -> Option<usize> {
        let first = self.entries.first()?.ordinal;
        let guess = usize::try_from(ordinal.checked_sub(first)?).ok()?;
        if self
            .entries
            .get(guess)
            .is_some_and(|entry| entry.ordinal == ordinal)
        {
            return Some(guess);
        }
        self.entries
            .binary_search_by_key(&ordinal, |entry| entry.ordinal)
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: BodyRef = BodyRef {
        position: 0,
        length: 1,
    };

    fn entry(ordinal: u64, expires_at: i64) -> Entry {
        let mut entry = Entry::new(ordinal, BODY, StoredState::Active);
        entry.time_to_live = Millis::from_millis(expires_at);
        entry
    }

    #[test]
    fn what_is_removed_is_gone_and_the_rest_stays_in_order() {
        let mut index = Index::default();
        for ordinal in 1..=1_000 {
            index.insert(entry(ordinal, 10));
        }
        for ordinal in (1..=1_000).filter(|ordinal| ordinal % 10 != 0) {
            assert!(index.remove(ordinal).is_some());
            assert!(index.remove(ordinal).is_none());
        }
        assert_eq!(index.len(), 100);
        let left: Vec<u64> = index.from(15).map(|entry| entry.ordinal).collect();
        assert_eq!(left, (2..=100).map(|tens| tens * 10).collect::<Vec<_>>());
        assert!(index.get(990).is_some() && index.get(991).is_none());
    }

    #[test]
    fn a_message_can_come_back_below_others() {
        let mut index = Index::default();
        for ordinal in [5, 9, 7, 300, 1] {
            index.insert(entry(ordinal, 10));
        }
        let all: Vec<u64> = index.from(0).map(|entry| entry.ordinal).collect();
        assert_eq!(all, [1, 5, 7, 9, 300]);
    }

    #[test]
    fn messages_expire_at_their_time_and_locked_or_deferred_ones_do_not() {
        let mut index = Index::default();
        for ordinal in 1..=300 {
            index.insert(entry(ordinal, i64::try_from(ordinal).unwrap()));
        }
        index.update(2, |entry| entry.locked = true);
        index.update(3, |entry| entry.state = StoredState::Deferred);
        assert_eq!(index.next_expiry(), Some(Timestamp::from_millis(1)));
        assert!(index.expired(Timestamp::from_millis(0)).is_empty());
        assert_eq!(index.expired(Timestamp::from_millis(5)), [1, 4, 5]);
        for ordinal in [1, 4, 5] {
            index.remove(ordinal);
        }
        assert!(index.expired(Timestamp::from_millis(5)).is_empty());
        index.update(2, |entry| entry.locked = false);
        assert_eq!(index.expired(Timestamp::from_millis(5)), [2]);
    }

    #[test]
    fn a_snapshot_does_not_change() {
        let mut index = Index::default();
        (1..=200).for_each(|ordinal| index.insert(entry(ordinal, 10)));
        let snapshot = index.clone();
        index.remove(7);
        index.update(8, |entry| entry.delivery_count = 3);
        assert_eq!(snapshot.len(), 200);
        assert!(snapshot.get(7).is_some());
        assert_eq!(snapshot.get(8).map(|entry| entry.delivery_count), Some(0));
    }
}
