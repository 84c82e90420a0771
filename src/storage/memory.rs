//! A disk that is memory: for brokers that keep nothing, and for tests.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::layout::usize_of;
use super::{CheckpointSink, Disk, Error, SegmentId};

/// Segments and checkpoints in memory; removing them frees it.
#[derive(Debug, Default)]
pub struct MemoryDisk {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    segments: BTreeMap<SegmentId, Vec<u8>>,
    checkpoints: BTreeMap<u64, Vec<u8>>,
}

impl MemoryDisk {
    /// Makes an empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Every change is done in one step: a thread that panicked left nothing half done.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for MemoryDisk {
    fn segments(&self) -> Result<Vec<(SegmentId, u64)>, Error> {
        let held = self.held();
        Ok(held
            .segments
            .iter()
            .map(|(&id, bytes)| (id, super::layout::u64_of(bytes.len())))
            .collect())
    }

    fn start_segment(&self, segment: SegmentId) -> Result<(), Error> {
        self.held().segments.entry(segment).or_default();
        Ok(())
    }

    fn remove_segment(&self, segment: SegmentId) -> Result<(), Error> {
        self.held().segments.remove(&segment);
        Ok(())
    }

    fn write(&self, segment: SegmentId, offset: u64, parts: &[&[u8]]) -> Result<(), Error> {
        let mut held = self.held();
        let bytes = held
            .segments
            .get_mut(&segment)
            .ok_or_else(|| missing("write segment", segment.0))?;
        let mut at = usize_of(offset);
        for part in parts {
            at = overwrite(bytes, at, part);
        }
        Ok(())
    }

    fn sync(&self, _: SegmentId) -> Result<(), Error> {
        Ok(())
    }

    fn read(&self, segment: SegmentId, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let held = self.held();
        let bytes = held
            .segments
            .get(&segment)
            .ok_or_else(|| missing("read segment", segment.0))?;
        Ok(copy(bytes, offset, into))
    }

    fn truncate(&self, segment: SegmentId, offset: u64) -> Result<(), Error> {
        let mut held = self.held();
        let bytes = held
            .segments
            .get_mut(&segment)
            .ok_or_else(|| missing("truncate segment", segment.0))?;
        bytes
            .get_mut(usize_of(offset)..)
            .unwrap_or_default()
            .fill(0);
        Ok(())
    }

    fn has_room(&self) -> bool {
        true
    }

    fn write_checkpoint(&self, number: u64) -> Result<Box<dyn CheckpointSink + '_>, Error> {
        Ok(Box::new(Sink {
            disk: self,
            number,
            bytes: Vec::new(),
        }))
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
        Ok(copy(bytes, offset, into))
    }

    fn remove_checkpoint(&self, number: u64) -> Result<(), Error> {
        self.held().checkpoints.remove(&number);
        Ok(())
    }
}

struct Sink<'a> {
    disk: &'a MemoryDisk,
    number: u64,
    bytes: Vec<u8>,
}

impl CheckpointSink for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.disk.held().checkpoints.insert(self.number, self.bytes);
        Ok(())
    }
}

/// Writes bytes into others at a place that may lie behind their end; returns where they end.
pub(super) fn overwrite(bytes: &mut Vec<u8>, at: usize, with: &[u8]) -> usize {
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
