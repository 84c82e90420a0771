//! Some neighbouring entries of an index: open, or packed.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;

use super::{Entry, packed};
use crate::positions::Positions;
use crate::record::StoredState;
use jitney_base::memory::{Held, Memory, Page, Purpose};
use jitney_base::time::Timestamp;

/// Entries that can be worked on.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    /// By ordinal; removed entries stay until few are left.
    pub(super) entries: Vec<Entry>,
    pub(super) alive: usize,
    /// No entry's life ends earlier.
    pub(super) earliest: Timestamp,
    /// Bytes that entries have elsewhere.
    elsewhere: usize,
    held: Held,
}

/// Entries as bytes, and the facts about them that are needed without unpacking.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) alive: usize,
    /// Active entries without a lock.
    pub(super) available: usize,
    pub(super) earliest: Timestamp,
    /// The lowest and the highest position of a body.
    positions: (u64, u64),
    contents: Contents,
    /// Counts them: this, and the bytes where they are in memory.
    _held: (Held, Option<Held>),
}

#[derive(Debug)]
enum Contents {
    Memory(Box<[u8]>),
    Page(Box<dyn Page>),
}

/// An entry to look at: where it is, or in entries that were unpacked to be looked at.
#[derive(Debug)]
pub(crate) enum Seen<'i> {
    /// It is open.
    Here(&'i Entry),
    /// It was unpacked.
    Unpacked(Arc<Vec<Entry>>, usize),
}

impl Deref for Seen<'_> {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        match self {
            Self::Here(entry) => entry,
            Self::Unpacked(entries, at) => entries.get(*at).expect("a visited entry exists"),
        }
    }
}

impl Chunk {
    pub(super) fn new(memory: &Memory, capacity: usize) -> Self {
        let mut chunk = Self {
            entries: Vec::with_capacity(capacity),
            alive: 0,
            earliest: Timestamp::MAX,
            elsewhere: 0,
            held: memory.hold(Purpose::Open, 0),
        };
        chunk.count();
        chunk
    }

    /// Opens entries that were packed.
    pub(super) fn unpack(memory: &Memory, packed: &Packed) -> Self {
        let entries = packed.entries();
        let elsewhere = entries.iter().map(elsewhere).sum();
        let mut chunk = Self {
            alive: entries.len(),
            entries,
            earliest: packed.earliest,
            elsewhere,
            held: memory.hold(Purpose::Open, 0),
        };
        chunk.count();
        chunk
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        let capacity = self.entries.capacity();
        let more = elsewhere(&entry);
        match self.entries.last() {
            Some(last) if entry.ordinal <= last.ordinal => {
                let at = self
                    .entries
                    .partition_point(|other| other.ordinal < entry.ordinal);
                let same = self
                    .entries
                    .get(at)
                    .filter(|other| other.ordinal == entry.ordinal);
                assert!(
                    same.is_none_or(|other| other.gone),
                    "a number is given twice"
                );
                match same {
                    Some(_) => self.entries.splice(at..=at, [entry]).for_each(drop),
                    None => self.entries.insert(at, entry),
                }
            }
            _ => self.entries.push(entry),
        }
        self.alive += 1;
        self.elsewhere += more;
        if more != 0 || self.entries.capacity() != capacity {
            self.count();
        }
    }

    pub(super) fn get(&self, ordinal: u64) -> Option<&Entry> {
        let entry = self.entries.get(position(&self.entries, ordinal)?)?;
        (!entry.gone).then_some(entry)
    }

    /// Changes an entry.
    pub(super) fn update<T>(
        &mut self,
        ordinal: u64,
        change: impl FnOnce(&mut Entry) -> T,
    ) -> Option<(T, &Entry)> {
        let at = position(&self.entries, ordinal)?;
        let entry = self.entries.get_mut(at).filter(|entry| !entry.gone)?;
        let before = elsewhere(entry);
        let result = change(entry);
        let after = elsewhere(entry);
        if before != after {
            self.elsewhere = self.elsewhere + after - before;
            self.count();
        }
        Some((result, self.entries.get(at)?))
    }

    pub(super) fn remove(&mut self, ordinal: u64) -> Option<Entry> {
        let at = position(&self.entries, ordinal)?;
        let entry = self.entries.get_mut(at).filter(|entry| !entry.gone)?;
        entry.gone = true;
        let taken = Entry {
            amendments: entry.amendments.take(),
            message_session: entry.message_session.take(),
            dead_letter_source: entry.dead_letter_source.take(),
            gone: false,
            ..entry.clone()
        };
        self.alive -= 1;
        self.elsewhere -= elsewhere(&taken);
        if self.alive * 4 < self.entries.len() && 0 < self.alive {
            self.entries.retain(|entry| !entry.gone);
            self.entries.shrink_to_fit();
            self.count();
        }
        Some(taken)
    }

    pub(super) fn living(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.gone)
    }

    /// Returns the entries from an ordinal on that are not removed.
    pub(super) fn living_from(&self, ordinal: u64) -> impl Iterator<Item = &Entry> {
        let rest = self.entries.get(start(&self.entries, ordinal)..);
        rest.unwrap_or_default().iter().filter(|entry| !entry.gone)
    }

    /// Returns the ordinals of messages that have expired at `now`, and computes the next expiry.
    pub(super) fn expired(&mut self, now: Timestamp) -> Vec<u64> {
        let due = self
            .entries
            .iter()
            .filter(|e| e.can_expire() && e.expires_at() <= now);
        let due: Vec<u64> = due.map(|entry| entry.ordinal).collect();
        let rest = self
            .entries
            .iter()
            .filter(|e| e.can_expire() && now < e.expires_at());
        self.earliest = earliest(rest);
        due
    }

    /// Returns whether every ordinal of the chunk has been given out: `last` is the highest.
    pub(super) fn is_closed(&self, last: u64) -> bool {
        self.entries
            .last()
            .is_some_and(|entry| entry.ordinal == last)
    }

    pub(super) fn has_locked(&self) -> bool {
        self.living().any(|entry| entry.locked)
    }

    pub(super) fn pack(&self) -> Packed {
        let bytes = packed::pack(self.living());
        let memory = self.held.memory();
        let stub = size_of::<Packed>() + ALLOCATION;
        let (contents, bytes) = match memory.page(&bytes) {
            Some(page) => (Contents::Page(page), None),
            None => {
                let held = memory.hold(Purpose::Packed, bytes.len() + ALLOCATION);
                (Contents::Memory(bytes.into()), Some(held))
            }
        };
        let positions = self.living().map(|entry| entry.body.position);
        let positions = positions.fold((u64::MAX, 0), |(low, high), position| {
            (low.min(position), high.max(position))
        });
        Packed {
            alive: self.alive,
            available: self.living().filter(|entry| entry.is_available()).count(),
            earliest: earliest(self.living().filter(|entry| entry.can_expire())),
            positions,
            contents,
            _held: (memory.hold(Purpose::Other, stub), bytes),
        }
    }

    /// Counts its memory anew.
    fn count(&mut self) {
        let entries = self.entries.capacity() * size_of::<Entry>();
        let bytes = entries + self.elsewhere + size_of::<Self>() + 2 * ALLOCATION;
        self.held.resize(bytes);
    }
}

impl Packed {
    pub(super) fn entries(&self) -> Vec<Entry> {
        let read: Bytes;
        let bytes = match &self.contents {
            Contents::Memory(bytes) => &**bytes,
            Contents::Page(page) => {
                read = page.read();
                &read
            }
        };
        packed::unpack(bytes, self.alive)
    }

    /// Returns whether a body may lie in some ranges of positions.
    pub(super) fn may_lie_within(&self, positions: &Positions) -> bool {
        let (low, high) = self.positions;
        positions.meet(low, high)
    }
}

/// Finds an entry: by its offset if no entry before it is missing, else by search.
pub(super) fn position(entries: &[Entry], ordinal: u64) -> Option<usize> {
    let first = entries.first()?.ordinal;
    let guess = usize::try_from(ordinal.checked_sub(first)?).ok()?;
    if entries
        .get(guess)
        .is_some_and(|entry| entry.ordinal == ordinal)
    {
        return Some(guess);
    }
    entries
        .binary_search_by_key(&ordinal, |entry| entry.ordinal)
        .ok()
}

/// Finds the first entry from an ordinal on: by its offset if no entry before it is missing, else
/// by search.
fn start(entries: &[Entry], ordinal: u64) -> usize {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        return 0;
    };
    if last.ordinal < ordinal {
        return entries.len();
    }
    let guess = usize::try_from(ordinal.saturating_sub(first.ordinal)).unwrap_or(usize::MAX);
    let is_there =
        |entry: &Entry| entry.ordinal == ordinal || (guess == 0 && ordinal < entry.ordinal);
    if entries.get(guess).is_some_and(is_there) {
        return guess;
    }
    entries.partition_point(|entry| entry.ordinal < ordinal)
}

fn earliest<'e>(entries: impl Iterator<Item = &'e Entry>) -> Timestamp {
    entries
        .map(Entry::expires_at)
        .min()
        .unwrap_or(Timestamp::MAX)
}

/// Returns the bytes that an entry has elsewhere. Names are shared by many as a rule, and counted
/// for each.
fn elsewhere(entry: &Entry) -> usize {
    if entry.state == StoredState::Active
        && entry.amendments.is_none()
        && entry.message_session.is_none()
        && entry.dead_letter_source.is_none()
    {
        return 0;
    }
    let name = entry.message_session.as_ref();
    let name = name.map_or(0, |name| name.as_str().len() + 3 * ALLOCATION);
    let source = entry.dead_letter_source.as_ref();
    let source = source.map_or(0, |path| path.len() + 3 * ALLOCATION);
    let amendments = entry.amendments.as_ref();
    let amendments = amendments.map_or(0, |amendments| 2 * amendments.weight() + 3 * ALLOCATION);
    name + source + amendments
}

/// The bytes of an allocation beside its contents, about.
const ALLOCATION: usize = 16;
