//! A disk that is memory: for brokers that keep nothing, and for tests.
//!
//! The parts of a write are kept without a copy, and are read in place.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::layout::{u64_of, usize_of};
use super::{CheckpointSink, Checkpoints, Disk, Error, LogReader, SegmentId};
use jitney_base::memory::{Held as MemoryHeld, Memory, Purpose};

/// Segments and checkpoints in memory; removing them frees it.
#[derive(Debug, Default)]
pub struct MemoryDisk {
    held: Mutex<MemoryState>,
    /// Whose part it is.
    memory: Memory,
}

#[derive(Debug, Default)]
struct MemoryState {
    segments: BTreeMap<SegmentId, MemorySegment>,
    checkpoints: BTreeMap<u64, (Vec<u8>, MemoryHeld)>,
}

impl MemoryState {
    fn segment(
        &mut self,
        what: &'static str,
        segment: SegmentId,
    ) -> Result<&mut MemorySegment, Error> {
        let found = self.segments.get_mut(&segment);
        found.ok_or_else(|| missing(what, segment.0))
    }
}

/// Parts as they were written, by their offsets; they do not overlap. The bytes between them are
/// zero.
#[derive(Debug)]
struct MemorySegment {
    parts: BTreeMap<usize, Bytes>,
    counted: MemoryHeld,
}

/// The bytes of a part beside its contents, about.
const PART_BYTES: usize = 128;

impl MemorySegment {
    fn length(&self) -> usize {
        let last = self.parts.last_key_value();
        last.map_or(0, |(start, part)| start + part.len())
    }

    fn write(&mut self, at: usize, bytes: Bytes) {
        let end = at + bytes.len();
        if at < self.length() {
            self.clear(at, end);
        }
        if !bytes.is_empty() {
            let counted = self.counted.bytes() + bytes.len() + PART_BYTES;
            self.counted.resize(counted);
            self.parts.insert(at, bytes);
        }
    }

    /// Removes the bytes between two offsets.
    fn clear(&mut self, at: usize, end: usize) {
        if end <= at {
            return;
        }
        let before = self.parts.range(..at).next_back();
        let first = before.map_or(at, |(&start, _)| start);
        let touched: Vec<usize> = self.parts.range(first..end).map(|(&key, _)| key).collect();
        for start in touched {
            let Some(part) = self.parts.remove(&start) else {
                continue;
            };
            if start < at {
                let kept = part.len().min(at - start);
                self.parts.insert(start, part.slice(..kept));
            }
            if end < start + part.len() {
                self.parts.insert(end, part.slice(end - start..));
            }
        }
        let all = self.parts.values();
        self.counted
            .resize(all.map(|part| part.len() + PART_BYTES).sum());
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> usize {
        let count = self.length().saturating_sub(offset).min(into.len());
        let into = into.get_mut(..count).unwrap_or_default();
        into.fill(0);
        let first = self.parts.range(..=offset).next_back();
        let first = first.map_or(offset, |(&start, _)| start);
        for (&start, part) in self.parts.range(first..offset + count) {
            let from = part.get(offset.saturating_sub(start)..).unwrap_or_default();
            let to = into.get_mut(start.saturating_sub(offset)..);
            for (to, from) in to.unwrap_or_default().iter_mut().zip(from) {
                *to = *from;
            }
        }
        count
    }

    /// Returns the rest of the part that lies there.
    fn share(&self, offset: usize) -> Option<Bytes> {
        let (start, part) = self.parts.range(..=offset).next_back()?;
        (offset - start < part.len()).then(|| part.slice(offset - start..))
    }
}

impl MemoryDisk {
    /// Makes an empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty one that is counted, and has no more room when too much is.
    #[must_use]
    pub fn within(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
            ..Self::default()
        }
    }

    fn held(&self) -> MutexGuard<'_, MemoryState> {
        // Every change is done in one step: a thread that panicked left nothing half done.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogReader for MemoryDisk {
    fn segments(&self) -> Result<Vec<(SegmentId, u64)>, Error> {
        let held = self.held();
        Ok(held
            .segments
            .iter()
            .map(|(&id, segment)| (id, u64_of(segment.length())))
            .collect())
    }

    fn share(&self, segment: SegmentId, offset: u64, least: usize) -> Option<Bytes> {
        let held = self.held();
        let shared = held.segments.get(&segment)?.share(usize_of(offset))?;
        (least <= shared.len()).then_some(shared)
    }

    fn read(&self, segment: SegmentId, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let mut held = self.held();
        let read = held.segment("read segment", segment)?;
        Ok(read.read(usize_of(offset), into))
    }

    fn checkpoints(&self) -> Result<Vec<u64>, Error> {
        Ok(self.held().checkpoints.keys().copied().collect())
    }

    fn read_checkpoint(&self, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let held = self.held();
        let bytes = held
            .checkpoints
            .get(&number)
            .ok_or_else(|| missing("read checkpoint", number))?;
        Ok(copy(&bytes.0, offset, into))
    }
}

impl Checkpoints for MemoryDisk {
    fn write_checkpoint(&self, number: u64) -> Result<Box<dyn CheckpointSink + '_>, Error> {
        Ok(Box::new(MemorySink {
            disk: self,
            number,
            bytes: Vec::new(),
        }))
    }

    fn remove_checkpoint(&self, number: u64) -> Result<(), Error> {
        self.held().checkpoints.remove(&number);
        Ok(())
    }
}

impl Disk for MemoryDisk {
    fn start_segment(&self, segment: SegmentId) -> Result<(), Error> {
        let mut held = self.held();
        held.segments
            .entry(segment)
            .or_insert_with(|| MemorySegment {
                parts: BTreeMap::new(),
                counted: self.memory.hold(Purpose::Other, 0),
            });
        Ok(())
    }

    fn remove_segment(&self, segment: SegmentId) -> Result<(), Error> {
        self.held().segments.remove(&segment);
        Ok(())
    }

    fn write(&self, segment: SegmentId, offset: u64, parts: &[&[u8]]) -> Result<(), Error> {
        let parts: Vec<Bytes> = parts
            .iter()
            .map(|part| Bytes::copy_from_slice(part))
            .collect();
        self.write_shared(segment, offset, &parts)
    }

    fn write_shared(&self, segment: SegmentId, offset: u64, parts: &[Bytes]) -> Result<(), Error> {
        let mut held = self.held();
        let written = held.segment("write segment", segment)?;
        let mut at = usize_of(offset);
        for part in parts {
            written.write(at, part.clone());
            at += part.len();
        }
        Ok(())
    }

    fn sync(&self, _: SegmentId) -> Result<(), Error> {
        Ok(())
    }

    fn truncate(&self, segment: SegmentId, offset: u64) -> Result<(), Error> {
        let mut held = self.held();
        let cut = held.segment("truncate segment", segment)?;
        cut.clear(usize_of(offset), cut.length());
        Ok(())
    }

    fn has_room(&self) -> bool {
        !self.memory.is_full()
    }
}

struct MemorySink<'a> {
    disk: &'a MemoryDisk,
    number: u64,
    bytes: Vec<u8>,
}

impl CheckpointSink for MemorySink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        let counted = self.disk.memory.hold(Purpose::Other, self.bytes.len());
        let checkpoint = (self.bytes, counted);
        self.disk.held().checkpoints.insert(self.number, checkpoint);
        Ok(())
    }
}

/// Copies as many bytes as there are and fit; returns their number.
pub(super) fn copy(bytes: &[u8], offset: u64, into: &mut [u8]) -> usize {
    let rest = bytes.get(usize_of(offset)..).unwrap_or_default();
    let count = rest.len().min(into.len());
    for (to, from) in into.iter_mut().zip(rest) {
        *to = *from;
    }
    count
}

pub(super) fn missing(what: &'static str, number: u64) -> Error {
    let source = io::Error::from(io::ErrorKind::NotFound);
    Error::Io {
        what,
        place: format!("{number:016x}"),
        source,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn parts_are_read_as_if_they_were_one(
            writes in prop::collection::vec((0..40_usize, prop::collection::vec(1..9_u8, 0..20), 0..40_u64), 0..30),
        ) {
            let disk = MemoryDisk::new();
            let id = SegmentId(1);
            disk.start_segment(id).unwrap();
            let mut plain = Vec::new();
            for (at, bytes, cut) in writes {
                if plain.len() < at + bytes.len() {
                    plain.resize(at + bytes.len(), 0);
                }
                plain[at..at + bytes.len()].copy_from_slice(&bytes);
                disk.write(id, u64_of(at), &[&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]]).unwrap();
                if cut < 5 {
                    disk.truncate(id, cut).unwrap();
                    let cut = usize_of(cut).min(plain.len());
                    plain[cut..].fill(0);
                }
                for from in 0..=plain.len() {
                    let mut read = vec![9; plain.len() - from + 3];
                    let count = disk.read(id, u64_of(from), &mut read).unwrap();
                    prop_assert!(plain[from..].starts_with(&read[..count]));
                    prop_assert!(plain[from + count..].iter().all(|byte| *byte == 0));
                    if let Some(shared) = disk.share(id, u64_of(from), 1) {
                        prop_assert!(plain[from..].starts_with(&shared));
                    }
                }
            }
        }
    }
}
