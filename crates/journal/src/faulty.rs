//! A disk that loses power: synced bytes stay, any of the others may be lost.

#![allow(
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails may do so in any way"
)]

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::EIO;
use super::layout::{u64_of, usize_of};
use super::memory::{copy, missing};
use super::{CheckpointSink, Checkpoints, Disk, Error, LogReader, SegmentId};

/// Bytes that a disk writes wholly or not at all.
const ATOMIC_BYTES: usize = 16;

/// Written and synced bytes, apart.
#[derive(Debug, Default)]
pub struct FaultyDisk {
    held: Mutex<FaultyState>,
}

#[derive(Debug, Default)]
struct FaultyState {
    segments: BTreeMap<SegmentId, FaultySegment>,
    /// Removed segments as they were: the next ones begin as these.
    spares: Vec<Vec<u8>>,
    checkpoints: BTreeMap<u64, Vec<u8>>,
    /// Operations until the power fails.
    operations_left: Option<u64>,
    /// Syncs until one fails.
    syncs_left: Option<u64>,
    /// Bytes until the disk is full.
    room: Option<u64>,
    /// A place that cannot be read.
    bad: Option<(SegmentId, usize)>,
}

#[derive(Debug, Default)]
struct FaultySegment {
    /// The bytes that a reader sees.
    written: Vec<u8>,
    synced: Vec<u8>,
    /// In the order in which they were written since the last sync.
    unsynced: Vec<(usize, Vec<u8>)>,
}

/// Numbers that look random, from a seed.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }
}

impl FaultyDisk {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The power fails after this many more operations.
    pub fn cut_power_after(&self, operations: u64) {
        self.held().operations_left = Some(operations);
    }

    /// The n-th sync from now fails.
    pub fn fail_sync(&self, after: u64) {
        self.held().syncs_left = Some(after);
    }

    /// The bytes of free space left; `None` for no limit.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.held().room = bytes;
    }

    /// Operations work again; nothing was lost.
    pub fn restore_power(&self) {
        let mut held = self.held();
        (held.operations_left, held.syncs_left) = (None, None);
    }

    /// Restores the power: bytes that were written and not synced are kept or lost at random.
    pub fn crash(&self, seed: u64) {
        let mut dice = Dice::new(seed);
        self.restore_power();
        let mut held = self.held();
        for segment in held.segments.values_mut() {
            let mut writes = std::mem::take(&mut segment.unsynced);
            for at in (1..writes.len()).rev() {
                if dice.below(2) == 0 {
                    writes.swap(at, usize_of(dice.below(u64_of(at))));
                }
            }
            for (at, bytes) in writes {
                let fate = dice.below(4);
                for (nth, part) in bytes.chunks(ATOMIC_BYTES).enumerate() {
                    let stays = match fate {
                        0 => false,
                        1 => true,
                        2 => dice.below(2) == 0,
                        _ => dice.below(8) != 0,
                    };
                    if stays {
                        overwrite(&mut segment.synced, at + nth * ATOMIC_BYTES, part);
                    }
                }
            }
            segment.written = segment.synced.clone();
        }
    }

    /// Makes a byte unreadable: a read that it is among fails (EIO).
    pub fn spoil(&self, segment: SegmentId, offset: usize) {
        self.held().bad = Some((segment, offset));
    }

    /// Changes one byte that was synced.
    pub fn damage(&self, segment: SegmentId, offset: usize) {
        let mut held = self.held();
        let segment = held.segments.get_mut(&segment).unwrap();
        segment.written[offset] ^= 0x10;
        segment.synced[offset] ^= 0x10;
    }

    /// Cuts a segment.
    pub fn cut(&self, segment: SegmentId, length: usize) {
        let mut held = self.held();
        let segment = held.segments.get_mut(&segment).unwrap();
        segment.written.truncate(length);
        segment.synced.truncate(length);
    }

    /// Makes bytes of a segment zero from an offset on.
    pub fn zero(&self, segment: SegmentId, offset: usize) {
        let mut held = self.held();
        let segment = held.segments.get_mut(&segment).unwrap();
        segment.written[offset..].fill(0);
        segment.synced[offset..].fill(0);
    }

    /// Changes one byte of a checkpoint.
    pub fn damage_checkpoint(&self, number: u64, offset: usize) {
        self.held().checkpoints.get_mut(&number).unwrap()[offset] ^= 0x10;
    }

    fn held(&self) -> MutexGuard<'_, FaultyState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock for one operation that changes something.
    fn operate(&self) -> Result<MutexGuard<'_, FaultyState>, Error> {
        let mut held = self.held();
        match &mut held.operations_left {
            Some(0) => return Err(missing("power", 0)),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(held)
    }
}

impl FaultyState {
    fn segment(&mut self, segment: SegmentId) -> Result<&mut FaultySegment, Error> {
        self.segments
            .get_mut(&segment)
            .ok_or_else(|| missing("find segment", segment.0))
    }

    fn take_room(&mut self, bytes: usize) -> Result<(), Error> {
        if let Some(room) = &mut self.room {
            *room = room.checked_sub(u64_of(bytes)).ok_or(Error::Full)?;
        }
        Ok(())
    }
}

impl LogReader for FaultyDisk {
    fn segments(&self) -> Result<Vec<(SegmentId, u64)>, Error> {
        let held = self.held();
        Ok(held
            .segments
            .iter()
            .map(|(&id, segment)| (id, u64_of(segment.written.len())))
            .collect())
    }

    fn read(&self, segment: SegmentId, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let mut held = self.held();
        let places = usize_of(offset)..usize_of(offset) + into.len();
        if let Some((bad, place)) = held.bad
            && bad == segment
            && places.contains(&place)
        {
            return Err(Error::Io {
                what: "read",
                place: segment.to_string(),
                source: io::Error::from_raw_os_error(EIO),
            });
        }
        Ok(copy(&held.segment(segment)?.written, offset, into))
    }

    fn checkpoints(&self) -> Result<Vec<u64>, Error> {
        Ok(self.held().checkpoints.keys().copied().collect())
    }

    fn read_checkpoint(&self, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let held = self.held();
        let bytes = held
            .checkpoints
            .get(&number)
            .ok_or_else(|| missing("find", number))?;
        Ok(copy(bytes, offset, into))
    }
}

impl Checkpoints for FaultyDisk {
    fn write_checkpoint(&self, number: u64) -> Result<Box<dyn CheckpointSink + '_>, Error> {
        Ok(Box::new(FaultySink {
            disk: self,
            number,
            bytes: Vec::new(),
        }))
    }

    fn remove_checkpoint(&self, number: u64) -> Result<(), Error> {
        self.operate()?.checkpoints.remove(&number);
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn start_segment(&self, segment: SegmentId) -> Result<(), Error> {
        let mut held = self.operate()?;
        if held.segments.contains_key(&segment) {
            return Ok(());
        }
        held.take_room(64)?;
        let bytes = held.spares.pop().unwrap_or_else(|| vec![0; 4096]);
        let started = FaultySegment {
            written: bytes.clone(),
            synced: bytes,
            unsynced: Vec::new(),
        };
        held.segments.insert(segment, started);
        Ok(())
    }

    fn length(&self, segment: SegmentId) -> Result<u64, Error> {
        Ok(u64_of(self.held().segment(segment)?.written.len()))
    }

    fn remove_segment(&self, segment: SegmentId) -> Result<(), Error> {
        let mut held = self.operate()?;
        if let Some(removed) = held.segments.remove(&segment) {
            held.spares.push(removed.written);
        }
        Ok(())
    }

    fn write(&self, segment: SegmentId, offset: u64, parts: &[&[u8]]) -> Result<(), Error> {
        let mut held = self.operate()?;
        let mut at = usize_of(offset);
        for part in parts {
            held.take_room(part.len())?;
            let segment = held.segment(segment)?;
            segment.unsynced.push((at, part.to_vec()));
            at = overwrite(&mut segment.written, at, part);
        }
        Ok(())
    }

    fn sync(&self, segment: SegmentId) -> Result<(), Error> {
        let mut held = self.operate()?;
        let fails = held.syncs_left == Some(0);
        held.syncs_left = held.syncs_left.map(|left| left.saturating_sub(1));
        if fails {
            // The system takes the pages for clean: they are read as written, and not written again.
            held.segment(segment)?.unsynced.clear();
            return Err(missing("sync", segment.0));
        }
        let segment = held.segment(segment)?;
        for (at, bytes) in std::mem::take(&mut segment.unsynced) {
            overwrite(&mut segment.synced, at, &bytes);
        }
        Ok(())
    }

    fn truncate(&self, segment: SegmentId, offset: u64) -> Result<(), Error> {
        let mut held = self.operate()?;
        let segment = held.segment(segment)?;
        segment.written[usize_of(offset)..].fill(0);
        segment.unsynced.clear();
        segment.synced.clone_from(&segment.written);
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.held().room.is_none()
    }
}

struct FaultySink<'a> {
    disk: &'a FaultyDisk,
    number: u64,
    bytes: Vec<u8>,
}

impl CheckpointSink for FaultySink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.disk.operate()?.take_room(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.disk
            .operate()?
            .checkpoints
            .insert(self.number, self.bytes);
        Ok(())
    }
}

/// Writes bytes at an offset that may lie beyond the end; returns the new end.
fn overwrite(bytes: &mut Vec<u8>, at: usize, with: &[u8]) -> usize {
    let end = at + with.len();
    if at == bytes.len() {
        bytes.extend_from_slice(with);
        return end;
    }
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes
        .get_mut(at..end)
        .expect("it was made that long")
        .copy_from_slice(with);
    end
}
