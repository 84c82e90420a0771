//! The index of one queue: an entry per message, by number, without the bodies.
//!
//! Entries are in chunks of 128 neighbouring ordinals, shared copy-on-write: a snapshot for a
//! checkpoint costs a pointer per chunk, and does not stop the queue. A chunk knows the earliest
//! expiry in it, so expiry costs a timer per chunk, not per message.
//!
//! A long queue is worked on at its ends. When the open chunks of all queues take more than their
//! budget, one in between is *packed*: its entries become some bytes, in memory or on a page
//! ([`memory`](jitney_base::memory)). A change of an entry opens its chunk first; a reader unpacks a
//! temporary copy.
//!
//! An *ordinal* is a message's number without roll-over: ordinals of one queue only grow, and
//! their low 48 bits are the sequence number's.

mod chunk;
mod packed;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::message_session::MessageSession;
use super::positions::Positions;
use super::record::StoredState;
use chunk::{Chunk, Packed};
use jitney_base::ids::{BodyRef, SequenceNumber};
use jitney_base::memory::Memory;
use jitney_base::time::{Millis, Timestamp};
use jitney_message::Amendments;

pub(super) use chunk::Seen;

/// The index entry of a message.
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
    pub(super) acquired: Acquired,
    /// Other messages may have the same bytes.
    pub(super) shared: bool,
    gone: bool,
}

/// Whether a receiver has had a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acquired {
    /// None has.
    Never,
    /// One has, or may have had it before a restart.
    Perhaps,
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
            acquired: Acquired::Never,
            shared: false,
            gone: false,
        }
    }

    /// Returns when the message's life ends.
    pub(super) fn expires_at(&self) -> Timestamp {
        self.enqueued_at.after(self.time_to_live)
    }

    /// Returns whether time alone can remove it: deferred messages stay however old they are, and a
    /// scheduled one's life has not begun (`entities.md#time-to-live`). The holder of a lock may
    /// settle after the expiry.
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

/// The entries of one queue.
#[derive(Debug, Default)]
pub(super) struct Index {
    memory: Memory,
    /// By number; there is none without a living entry.
    slots: VecDeque<Slot>,
    /// The numbers of those that are open.
    open: BTreeSet<u64>,
    expiry: BTreeSet<(Timestamp, u64)>,
    len: usize,
}

/// An index as it was at one moment.
#[derive(Debug, Clone)]
pub(super) struct Frozen {
    slots: VecDeque<Slot>,
    len: usize,
}

#[derive(Debug, Clone)]
struct Slot {
    /// The ordinals of its entries, less their lowest bits.
    number: u64,
    entries: Entries,
}

#[derive(Debug, Clone)]
enum Entries {
    Open(Arc<Chunk>),
    Packed(Arc<Packed>),
}

/// Ordinals in a chunk, as a power of two: 128 entries are some 12 KiB, copied in about a
/// microsecond when a snapshot shares them.
const CHUNK_BITS: u32 = 7;
/// Entries of a chunk at most.
const CHUNK_ENTRIES: usize = 1 << CHUNK_BITS;
/// Chunks that are looked at for one that is better packed than others: a partitioned queue has
/// sixteen to which messages are added.
const CANDIDATES: usize = 32;
/// Chunks that are packed when one is opened or begun, so that what is too much becomes less.
const PACKED_AT_ONCE: usize = 2;
/// Chunks with expired messages of which the lowest goes first: beyond them, the earliest expiry decides. A partitioned queue has
/// some in each of its sixteen partitions.
const DUE_CHUNKS_COMPARED: usize = 64;
/// The cost of skipping a packed chunk, in entries looked at.
const PASSING_OVER: usize = 4;

impl Index {
    pub(super) fn new(memory: Memory) -> Self {
        Self {
            memory,
            ..Self::default()
        }
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        let number = entry.ordinal >> CHUNK_BITS;
        let expires_at = entry.can_expire().then(|| entry.expires_at());
        let at = match self.find(number) {
            Ok(at) => at,
            Err(at) => {
                self.begin(at, number);
                at
            }
        };
        let Some(chunk) = self.open(at) else { return };
        chunk.insert(entry);
        self.len += 1;
        if let Some(expires_at) = expires_at {
            self.expect_expiry(at, expires_at);
        }
    }

    pub(super) fn get(&self, ordinal: u64) -> Option<Seen<'_>> {
        let at = self.find(ordinal >> CHUNK_BITS).ok()?;
        match &self.slots.get(at)?.entries {
            Entries::Open(chunk) => chunk.get(ordinal).map(Seen::Here),
            Entries::Packed(packed) => {
                let entries = Arc::new(packed.entries());
                let at = chunk::position(&entries, ordinal)?;
                Some(Seen::Unpacked(entries, at))
            }
        }
    }

    /// Changes an entry in place; its expiry is looked at again afterwards.
    pub(super) fn update<T>(
        &mut self,
        ordinal: u64,
        change: impl FnOnce(&mut Entry) -> T,
    ) -> Option<T> {
        let at = self.find(ordinal >> CHUNK_BITS).ok()?;
        let (result, entry) = self.open(at)?.update(ordinal, change)?;
        if entry.can_expire() {
            let expires_at = entry.expires_at();
            self.expect_expiry(at, expires_at);
        }
        Some(result)
    }

    pub(super) fn remove(&mut self, ordinal: u64) -> Option<Entry> {
        let at = self.find(ordinal >> CHUNK_BITS).ok()?;
        let chunk = self.open(at)?;
        let taken = chunk.remove(ordinal)?;
        let (alive, earliest) = (chunk.alive, chunk.earliest);
        self.len -= 1;
        if alive == 0 {
            let number = ordinal >> CHUNK_BITS;
            self.expiry.remove(&(earliest, number));
            self.open.remove(&number);
            self.slots.remove(at);
        }
        Some(taken)
    }

    /// Returns the entries from this ordinal on, in order, to look at.
    pub(super) fn from(&self, ordinal: u64) -> impl Iterator<Item = Seen<'_>> {
        self.entries_where(ordinal, |_| true)
    }

    /// Returns the entries from this ordinal on, without the packed chunks in which none is
    /// deliverable.
    fn entries_where(
        &self,
        ordinal: u64,
        wants: impl Fn(&Packed) -> bool,
    ) -> impl Iterator<Item = Seen<'_>> {
        let (Ok(first) | Err(first)) = self.find(ordinal >> CHUNK_BITS);
        let slots = self.slots.range(first..);
        slots.flat_map(move |slot| {
            let (open, unpacked) = match &slot.entries {
                Entries::Open(chunk) => (Some(chunk), None),
                Entries::Packed(packed) if wants(packed) => {
                    (None, Some(Arc::new(packed.entries())))
                }
                Entries::Packed(_) => (None, None),
            };
            let open = open.into_iter().flat_map(|chunk| chunk.living());
            let unpacked = unpacked.into_iter().flat_map(|entries| {
                let all = 0..entries.len();
                all.map(move |at| Seen::Unpacked(Arc::clone(&entries), at))
            });
            open.map(Seen::Here)
                .chain(unpacked)
                .skip_while(move |entry| entry.ordinal < ordinal)
        })
    }

    /// Returns deliverable messages from this ordinal on, in order. Packed chunks that have none
    /// are skipped.
    pub(super) fn available(&self, ordinal: u64) -> impl Iterator<Item = Seen<'_>> {
        self.entries_where(ordinal, |packed| 0 < packed.available)
            .filter(|entry| entry.is_available())
    }

    /// Looks at messages, in the order of their ordinals: what is packed is unpacked once.
    pub(super) fn look_at(&self, ordinals: &[u64], mut visit: impl FnMut(Option<&Entry>)) {
        let mut unpacked: Option<(usize, Vec<Entry>)> = None;
        for &ordinal in ordinals {
            let slot = self.find(ordinal >> CHUNK_BITS).ok();
            let slot = slot.and_then(|at| Some((at, &self.slots.get(at)?.entries)));
            match slot {
                None => visit(None),
                Some((_, Entries::Open(chunk))) => visit(chunk.get(ordinal)),
                Some((at, Entries::Packed(packed))) => {
                    let known = unpacked.take().filter(|(known, _)| *known == at);
                    let (_, entries) =
                        unpacked.insert(known.unwrap_or_else(|| (at, packed.entries())));
                    let found = chunk::position(entries, ordinal);
                    visit(found.and_then(|found| entries.get(found)));
                }
            }
        }
    }

    /// Finds the first message from this ordinal on that can be given out, and its body. Its chunk
    /// is open then.
    pub(super) fn first_available(&mut self, ordinal: u64) -> Option<(u64, BodyRef)> {
        let (Ok(mut at) | Err(mut at)) = self.find(ordinal >> CHUNK_BITS);
        loop {
            match &self.slots.get(at)?.entries {
                Entries::Open(chunk) => {
                    let mut rest = chunk.living_from(ordinal);
                    if let Some(entry) = rest.find(|entry| entry.is_available()) {
                        return Some((entry.ordinal, entry.body));
                    }
                    at += 1;
                }
                // The next turn looks at it.
                Entries::Packed(packed) if 0 < packed.available => self.unpack(at),
                Entries::Packed(_) => at += 1,
            }
        }
    }

    /// Returns messages, from an ordinal on, whose bodies lie in some ranges of positions; and the
    /// ordinal to continue at, or `None` at the end. It looks at about `scan` entries at most.
    pub(super) fn bodies_within(
        &self,
        positions: &Positions,
        from: u64,
        scan: usize,
    ) -> (Vec<(u64, BodyRef)>, Option<u64>) {
        let mut found = Vec::new();
        let mut look = |entry: &Entry| {
            if from <= entry.ordinal && positions.contains(entry.body.position) {
                found.push((entry.ordinal, entry.body));
            }
        };
        let (Ok(first) | Err(first)) = self.find(from >> CHUNK_BITS);
        let mut scanned = 0;
        for slot in self.slots.range(first..) {
            if scan <= scanned {
                return (found, Some(slot.number << CHUNK_BITS));
            }
            if let Entries::Packed(packed) = &slot.entries
                && !packed.may_lie_within(positions)
            {
                scanned += PASSING_OVER;
            } else {
                scanned += CHUNK_ENTRIES;
                slot.entries.for_each(&mut look);
            }
        }
        (found, None)
    }

    /// Calls `visit` with every entry, in order.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&Entry)) {
        for slot in &self.slots {
            slot.entries.for_each(&mut visit);
        }
    }

    /// Returns the index as it is now, at the cost of a pointer for each chunk.
    pub(super) fn freeze(&self) -> Frozen {
        Frozen {
            slots: self.slots.clone(),
            len: self.len,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the time at which [`Index::expired`] may have something.
    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.expiry.first().map(|&(at, _)| at)
    }

    /// Returns the ordinals of some messages whose life is over at `now`, in order; to be called
    /// until it returns none. The caller removes each of them. All calls together go by ordinal, if
    /// no more than [`DUE_CHUNKS_COMPARED`] chunks have such messages.
    pub(super) fn expired(&mut self, now: Timestamp) -> Vec<u64> {
        loop {
            let due = self.expiry.iter().take_while(|&&(at, _)| at <= now);
            let compared = due.take(DUE_CHUNKS_COMPARED);
            let Some(&(at, number)) = compared.min_by_key(|&&(_, number)| number) else {
                return Vec::new();
            };
            self.expiry.remove(&(at, number));
            let found = self.find(number).ok();
            let Some(chunk) = found.and_then(|at| self.open(at)) else {
                continue;
            };
            let due = chunk.expired(now);
            let earliest = chunk.earliest;
            if earliest != Timestamp::MAX {
                self.expiry.insert((earliest, number));
            }
            if !due.is_empty() {
                return due;
            }
        }
    }

    /// Packs up to `most` chunks if the open ones of all queues take more than their budget.
    pub(super) fn pack_chunks(&mut self, most: usize) {
        self.pack_others(None, most);
    }

    fn expect_expiry(&mut self, at: usize, expires_at: Timestamp) {
        let Some(slot) = self.slots.get_mut(at) else {
            return;
        };
        if let Entries::Open(chunk) = &mut slot.entries
            && expires_at < chunk.earliest
        {
            self.expiry.remove(&(chunk.earliest, slot.number));
            self.expiry.insert((expires_at, slot.number));
            Arc::make_mut(chunk).earliest = expires_at;
        }
    }

    /// Finds the index of a chunk, or the index at which it would be inserted. Without a gap this
    /// takes no search.
    fn find(&self, number: u64) -> Result<usize, usize> {
        let Some(first) = self.slots.front() else {
            return Err(0);
        };
        let guess = usize::try_from(number.wrapping_sub(first.number)).unwrap_or(usize::MAX);
        match self.slots.get(guess) {
            Some(slot) if slot.number == number => Ok(guess),
            _ => self.search(number),
        }
    }

    /// Finds the index of a chunk by search, where some before it are missing.
    fn search(&self, number: u64) -> Result<usize, usize> {
        let count = self.slots.len();
        let last = self.slots.back().map_or(0, |slot| slot.number);
        let Some(back) = last.checked_sub(number) else {
            return Err(count);
        };
        let guess = usize::try_from(back).ok();
        let guess = guess.and_then(|back| count.checked_sub(back + 1));
        if let Some(guess) = guess
            && let Some(slot) = self.slots.get(guess)
            && slot.number == number
        {
            return Ok(guess);
        }
        self.slots.binary_search_by_key(&number, |slot| slot.number)
    }

    /// Makes a chunk without entries.
    fn begin(&mut self, at: usize, number: u64) {
        let before = at.checked_sub(1).and_then(|before| self.slots.get(before));
        let capacity = match before.map(|slot| &slot.entries) {
            // It will be as full as the one before it.
            Some(Entries::Open(chunk)) if chunk.entries.len() == CHUNK_ENTRIES => CHUNK_ENTRIES,
            Some(Entries::Open(_) | Entries::Packed(_)) | None => 0,
        };
        let chunk = Arc::new(Chunk::new(&self.memory, capacity));
        let entries = Entries::Open(chunk);
        self.slots.insert(at, Slot { number, entries });
        self.open.insert(number);
        self.pack_others(Some(number), PACKED_AT_ONCE);
    }

    fn open(&mut self, at: usize) -> Option<&mut Chunk> {
        if let Entries::Packed(_) = self.slots.get(at)?.entries {
            self.unpack(at);
        }
        match &mut self.slots.get_mut(at)?.entries {
            Entries::Open(chunk) => Some(Arc::make_mut(chunk)),
            Entries::Packed(_) => None,
        }
    }

    #[cold]
    fn unpack(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at) else {
            return;
        };
        if let Entries::Packed(packed) = &slot.entries {
            let chunk = Chunk::unpack(&self.memory, packed);
            slot.entries = Entries::Open(Arc::new(chunk));
            let number = slot.number;
            self.open.insert(number);
            self.pack_others(Some(number), PACKED_AT_ONCE);
        }
    }

    fn pack_others(&mut self, keep: Option<u64>, most: usize) {
        for _ in 0..most {
            if self.memory.open_beyond() == 0 {
                return;
            }
            let Some(number) = self.dispensable(keep) else {
                return;
            };
            self.pack(number);
        }
    }

    /// Finds an open chunk that will not be needed soon: far from the reading end, not where
    /// messages are added, and if possible without a locked message.
    fn dispensable(&self, keep: Option<u64>) -> Option<u64> {
        let others = self.open.iter().rev().copied();
        let others = others.filter(|&number| Some(number) != keep);
        let mut second = None;
        let mut third = None;
        for number in others.take(CANDIDATES) {
            let slot = self.find(number).ok().and_then(|at| self.slots.get(at));
            let Some(Entries::Open(chunk)) = slot.map(|slot| &slot.entries) else {
                continue;
            };
            let highest = (number << CHUNK_BITS) | ((1 << CHUNK_BITS) - 1);
            if !chunk.is_closed(highest) {
                third = third.or(Some(number));
            } else if chunk.has_locked() {
                second = second.or(Some(number));
            } else {
                return Some(number);
            }
        }
        second.or(third)
    }

    fn pack(&mut self, number: u64) {
        let Some(slot) = self.find(number).ok().and_then(|at| self.slots.get_mut(at)) else {
            return;
        };
        if let Entries::Open(chunk) = &slot.entries {
            let packed = chunk.pack();
            if packed.earliest != chunk.earliest {
                self.expiry.remove(&(chunk.earliest, number));
                if packed.earliest != Timestamp::MAX {
                    self.expiry.insert((packed.earliest, number));
                }
            }
            slot.entries = Entries::Packed(Arc::new(packed));
            self.open.remove(&number);
        }
    }
}

impl Frozen {
    /// Calls `visit` with every entry, in order.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&Entry)) {
        for slot in &self.slots {
            slot.entries.for_each(&mut visit);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Entries {
    fn for_each(&self, visit: &mut impl FnMut(&Entry)) {
        match self {
            Self::Open(chunk) => chunk.living().for_each(visit),
            Self::Packed(packed) => packed.entries().iter().for_each(visit),
        }
    }
}
