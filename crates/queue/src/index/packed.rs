//! Entries as bytes, each encoded as its differences from the one before it.
//!
//! For each entry: a byte of flags, then what they do not say is as before or as usual, as
//! variable-length integers, seven bits in a byte. Differences are taken modulo 2^64, and signs
//! are in the lowest bit. Names and amendments are written at their first occurrence and numbered;
//! then they go by their numbers. All of it is of this process only, and has no version.

use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use bytes::Bytes;

use super::{Acquired, Entry};
use crate::message_session::MessageSession;
use crate::record::StoredState;
use jitney_base::ids::{BodyRef, SequenceNumber};
use jitney_base::time::{Millis, Timestamp};
use jitney_message::Amendments;

/// The ordinal is the next one.
const NEXT: u8 = 0x01;
/// The body has the length of the one before.
const SAME_LENGTH: u8 = 0x02;
/// It was accepted at the same time.
const SAME_TIME: u8 = 0x04;
/// It lives as long.
const SAME_LIFE: u8 = 0x08;
const SHARED: u8 = 0x10;
const LOCKED: u8 = 0x20;
/// A second byte of flags follows.
const UNUSUAL: u8 = 0x40;
const ACQUIRED: u8 = 0x80;

const DEFERRED: u8 = 0x01;
const SCHEDULED: u8 = 0x02;
const DELIVERED: u8 = 0x04;
const FORWARDED: u8 = 0x08;
const NUMBERED: u8 = 0x10;
const IN_SESSION: u8 = 0x20;
const DEAD_LETTERED: u8 = 0x40;
const AMENDED: u8 = 0x80;

/// Returns the entries as bytes.
pub(super) fn pack<'e>(entries: impl Iterator<Item = &'e Entry>) -> Vec<u8> {
    let mut packing = Packing {
        out: Vec::with_capacity(1024),
        before: Before::default(),
        sessions: BTreeMap::new(),
        sources: BTreeMap::new(),
        amendments: BTreeMap::new(),
    };
    for entry in entries {
        packing.add(entry);
    }
    packing.out
}

/// Returns the entries that were packed.
///
/// # Panics
///
/// If they were not: a store that keeps pages outside of memory sees to it that they are whole.
pub(super) fn unpack(bytes: &[u8], capacity: usize) -> Vec<Entry> {
    let mut unpacking = Unpacking {
        rest: bytes,
        before: Before::default(),
        sessions: Vec::new(),
        sources: Vec::new(),
        amendments: Vec::new(),
    };
    let mut entries = Vec::with_capacity(capacity);
    while !unpacking.rest.is_empty() {
        let entry = unpacking.next();
        entries.push(entry.expect("a packed entry is whole"));
    }
    entries
}

/// The previous entry, to which the next one is compared.
struct Before {
    ordinal: u64,
    /// Where the body ended.
    end: u64,
    length: u32,
    enqueued_at: i64,
    time_to_live: Millis,
    enqueued_number: u64,
}

impl Default for Before {
    fn default() -> Self {
        Self {
            ordinal: 0,
            end: 0,
            length: 0,
            enqueued_at: 0,
            time_to_live: Millis::MAX,
            enqueued_number: 0,
        }
    }
}

impl Before {
    fn set(&mut self, entry: &Entry) {
        *self = Self {
            ordinal: entry.ordinal,
            end: end(entry.body),
            length: entry.body.length,
            enqueued_at: entry.enqueued_at.as_millis(),
            time_to_live: entry.time_to_live,
            enqueued_number: entry.enqueued_number.0,
        };
    }
}

fn end(body: BodyRef) -> u64 {
    body.position.wrapping_add(u64::from(body.length))
}

struct Packing<'e> {
    out: Vec<u8>,
    before: Before,
    /// The values encoded so far, and their numbers.
    sessions: BTreeMap<&'e str, u64>,
    sources: BTreeMap<&'e str, u64>,
    amendments: BTreeMap<Bytes, u64>,
}

impl<'e> Packing<'e> {
    fn add(&mut self, entry: &'e Entry) {
        let before = &self.before;
        let (flags, unusual) = (self.flags(entry), unusual(entry));
        let step = entry.ordinal.wrapping_sub(before.ordinal);
        let gap = entry.body.position.wrapping_sub(before.end);
        let later = entry.enqueued_at.as_millis();
        let later = later.wrapping_sub(before.enqueued_at);
        let number = entry.enqueued_number.0;
        let number = number.wrapping_sub(before.enqueued_number);
        self.out.push(flags);
        if flags & UNUSUAL != 0 {
            self.out.push(unusual);
        }
        if flags & NEXT == 0 {
            self.number(step);
        }
        self.signed(gap.cast_signed());
        if flags & SAME_LENGTH == 0 {
            self.number(u64::from(entry.body.length));
        }
        if flags & SAME_TIME == 0 {
            self.signed(later);
        }
        if flags & SAME_LIFE == 0 {
            self.number(entry.time_to_live.as_millis().cast_unsigned());
        }
        if let StoredState::Scheduled { due } = entry.state {
            self.signed(due.as_millis().wrapping_sub(entry.enqueued_at.as_millis()));
        }
        if unusual & DELIVERED != 0 {
            self.number(u64::from(entry.delivery_count));
        }
        if unusual & FORWARDED != 0 {
            self.out.push(entry.hops);
        }
        if unusual & NUMBERED != 0 {
            self.signed(number.cast_signed());
        }
        if let Some(name) = &entry.message_session {
            let known = known(&mut self.sessions, name.as_str());
            self.write_known(known, name.as_str().as_bytes());
        }
        if let Some(path) = &entry.dead_letter_source {
            let known = known(&mut self.sources, &***path);
            self.write_known(known, path.as_bytes());
        }
        if let Some(amendments) = &entry.amendments {
            let bytes = amendments.encode();
            let known = known(&mut self.amendments, bytes.clone());
            self.write_known(known, &bytes);
        }
        self.before.set(entry);
    }

    fn flags(&self, entry: &Entry) -> u8 {
        let before = &self.before;
        let all = [
            (NEXT, entry.ordinal == before.ordinal.wrapping_add(1)),
            (SAME_LENGTH, entry.body.length == before.length),
            (
                SAME_TIME,
                entry.enqueued_at.as_millis() == before.enqueued_at,
            ),
            (SAME_LIFE, entry.time_to_live == before.time_to_live),
            (SHARED, entry.shared),
            (LOCKED, entry.locked),
            (ACQUIRED, entry.acquired == Acquired::Perhaps),
            (UNUSUAL, unusual(entry) != 0),
        ];
        gather(all)
    }

    /// Writes the number of a value that was encoded before, or the next number and the value.
    fn write_known(&mut self, known: Result<u64, u64>, bytes: &[u8]) {
        match known {
            Ok(number) => self.number(number),
            Err(next) => {
                self.number(next);
                self.bytes(bytes);
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(u64::try_from(bytes.len()).expect("fits 64 bits"));
        self.out.extend_from_slice(bytes);
    }

    fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }

    fn number(&mut self, mut number: u64) {
        while 0x7f < number {
            let low = u8::try_from(number & 0x7f).expect("masked to seven bits");
            self.out.push(low | 0x80);
            number >>= 7;
        }
        self.out
            .push(u8::try_from(number).expect("seven bits are left"));
    }
}

/// Returns the number of a value that was encoded before, or the number that it gets now.
fn known<T: Ord>(said: &mut BTreeMap<T, u64>, what: T) -> Result<u64, u64> {
    let next = u64::try_from(said.len()).expect("fits 64 bits");
    match said.entry(what) {
        btree_map::Entry::Occupied(found) => Ok(*found.get()),
        btree_map::Entry::Vacant(place) => {
            place.insert(next);
            Err(next)
        }
    }
}

/// Returns the flags of the fields that most messages do not have.
fn unusual(entry: &Entry) -> u8 {
    let is = |state: StoredState| entry.state == state;
    let all = [
        (DEFERRED, is(StoredState::Deferred)),
        (
            SCHEDULED,
            matches!(entry.state, StoredState::Scheduled { .. }),
        ),
        (DELIVERED, entry.delivery_count != 0),
        (FORWARDED, entry.hops != 0),
        (NUMBERED, entry.enqueued_number.0 != 0),
        (IN_SESSION, entry.message_session.is_some()),
        (DEAD_LETTERED, entry.dead_letter_source.is_some()),
        (AMENDED, entry.amendments.is_some()),
    ];
    gather(all)
}

fn gather<const COUNT: usize>(all: [(u8, bool); COUNT]) -> u8 {
    all.into_iter()
        .filter(|(_, is_set)| *is_set)
        .fold(0, |flags, (flag, _)| flags | flag)
}

struct Unpacking<'b> {
    rest: &'b [u8],
    before: Before,
    sessions: Vec<MessageSession>,
    sources: Vec<Arc<Box<str>>>,
    amendments: Vec<Arc<Amendments>>,
}

impl<'b> Unpacking<'b> {
    fn next(&mut self) -> Option<Entry> {
        let flags = self.byte()?;
        let unusual = if flags & UNUSUAL == 0 {
            0
        } else {
            self.byte()?
        };
        let step = if flags & NEXT == 0 { self.number()? } else { 1 };
        let gap = self.signed()?.cast_unsigned();
        let position = self.before.end.wrapping_add(gap);
        let length = if flags & SAME_LENGTH == 0 {
            u32::try_from(self.number()?).ok()?
        } else {
            self.before.length
        };
        let later = if flags & SAME_TIME == 0 {
            self.signed()?
        } else {
            0
        };
        let time_to_live = if flags & SAME_LIFE == 0 {
            Millis::from_millis(self.number()?.cast_signed())
        } else {
            self.before.time_to_live
        };
        let enqueued_at = self.before.enqueued_at.wrapping_add(later);
        let state = if unusual & SCHEDULED != 0 {
            let due = enqueued_at.wrapping_add(self.signed()?);
            StoredState::Scheduled {
                due: Timestamp::from_millis(due),
            }
        } else if unusual & DEFERRED != 0 {
            StoredState::Deferred
        } else {
            StoredState::Active
        };
        let ordinal = self.before.ordinal.wrapping_add(step);
        let mut entry = Entry::new(ordinal, BodyRef { position, length }, state);
        entry.enqueued_at = Timestamp::from_millis(enqueued_at);
        entry.time_to_live = time_to_live;
        entry.shared = flags & SHARED != 0;
        entry.locked = flags & LOCKED != 0;
        if flags & ACQUIRED != 0 {
            entry.acquired = Acquired::Perhaps;
        }
        if unusual != 0 {
            self.add_unusual(unusual, &mut entry)?;
        }
        self.before.set(&entry);
        Some(entry)
    }

    fn add_unusual(&mut self, unusual: u8, entry: &mut Entry) -> Option<()> {
        if unusual & DELIVERED != 0 {
            entry.delivery_count = u32::try_from(self.number()?).ok()?;
        }
        if unusual & FORWARDED != 0 {
            entry.hops = self.byte()?;
        }
        if unusual & NUMBERED != 0 {
            let number = self.signed()?.cast_unsigned();
            let number = self.before.enqueued_number.wrapping_add(number);
            entry.enqueued_number = SequenceNumber(number);
        }
        if unusual & IN_SESSION != 0 {
            let at = self.index()?;
            if at == self.sessions.len() {
                let name = std::str::from_utf8(self.bytes()?).ok()?;
                self.sessions.push(name.into());
            }
            entry.message_session = Some(self.sessions.get(at)?.clone());
        }
        if unusual & DEAD_LETTERED != 0 {
            let at = self.index()?;
            if at == self.sources.len() {
                let path = std::str::from_utf8(self.bytes()?).ok()?;
                self.sources.push(Arc::new(path.into()));
            }
            entry.dead_letter_source = Some(Arc::clone(self.sources.get(at)?));
        }
        if unusual & AMENDED != 0 {
            let at = self.index()?;
            if at == self.amendments.len() {
                let amendments = Amendments::decode(self.bytes()?).ok()?;
                self.amendments.push(Arc::new(amendments));
            }
            entry.amendments = Some(Arc::clone(self.amendments.get(at)?));
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = self.index()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    fn index(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        let sign = 0_u64.wrapping_sub(number & 1);
        Some((number >> 1 ^ sign).cast_signed())
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
        }
    }
}
