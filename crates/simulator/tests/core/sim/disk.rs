//! A disk that fails in every way that a disk may: what was not synced is lost, torn or there, in
//! any order; any operation may be the last one; syncs and reads fail; space runs out.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use jitney_journal::{CheckpointSink, Checkpoints, Disk, Error, LogReader, SegmentId};

use super::random::Stream;

/// The disk; it stays when the broker crashes.
#[derive(Debug)]
pub(super) struct FaultyDisk {
    inner: Mutex<Inner>,
    segment_bytes: usize,
}

#[derive(Debug)]
struct Inner {
    random: Stream,
    segments: BTreeMap<SegmentId, Segment>,
    checkpoints: BTreeMap<u64, Vec<u8>>,
    /// Bytes of removed segments, that come again in new ones.
    prepared: Vec<Vec<u8>>,
    /// Operations that change something, before everything fails.
    fuse: Option<u64>,
    broken: bool,
    full: bool,
    fail_sync: bool,
    /// Reads before one that fails.
    fail_read: Option<u64>,
    /// Reads that have failed.
    failed_reads: usize,
    /// What has become of synced bytes, by segment and place.
    spots: BTreeMap<SegmentId, BTreeMap<usize, Spot>>,
    record: Option<Vec<Change>>,
}

/// Something that was done to the disk.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Checkpoint(u64, Vec<u8>),
    RemoveCheckpoint(u64),
    RemoveSegment(SegmentId),
    /// With the bytes that it begins with.
    StartSegment(SegmentId, Vec<u8>),
    Truncate(SegmentId, usize),
    Write(SegmentId, usize, Vec<u8>),
}

/// What is on a disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Image {
    segments: BTreeMap<SegmentId, Vec<u8>>,
    checkpoints: BTreeMap<u64, Vec<u8>>,
}

impl Image {
    /// Does what was done again; of a write, only the first bytes.
    pub(super) fn change(&mut self, change: &Change, bytes: usize) {
        match change {
            Change::Checkpoint(number, bytes) => {
                self.checkpoints.insert(*number, bytes.clone());
            }
            Change::RemoveCheckpoint(number) => {
                self.checkpoints.remove(number);
            }
            Change::RemoveSegment(segment) => {
                self.segments.remove(segment);
            }
            Change::StartSegment(segment, bytes) => {
                self.segments.insert(*segment, bytes.clone());
            }
            Change::Truncate(segment, offset) => {
                self.segments.entry(*segment).or_default()[*offset..].fill(0);
            }
            Change::Write(segment, offset, written) => {
                let into = self.segments.entry(*segment).or_default();
                overwrite(into, *offset, &written[..bytes]);
            }
        }
    }
}

impl Image {
    /// Flips a bit of these bytes, wherever they are.
    pub(super) fn flip_in(&mut self, bytes: &[u8], random: &mut Stream) {
        let (at, bit) = (random.index(bytes.len()), random.below(8));
        for segment in self.segments.values_mut() {
            let places = segment.windows(bytes.len()).enumerate();
            let found = places.filter(|(_, there)| *there == bytes);
            let found: Vec<usize> = found.map(|(place, _)| place).collect();
            for place in found {
                segment[place + at] ^= 1 << bit;
            }
        }
    }

    /// Flips a bit of a segment, cuts one, fills the rest of one with zeros, or removes one.
    pub(super) fn damage(&mut self, random: &mut Stream) {
        let ids: Vec<SegmentId> = self.segments.keys().copied().collect();
        let Some(&id) = random.pick(&ids) else { return };
        let Some(bytes) = self.segments.get_mut(&id) else {
            return;
        };
        let at = random.index(bytes.len().max(1));
        match random.below(10) {
            0 => drop(self.segments.remove(&id)),
            1 | 2 => bytes.truncate(at),
            3 | 4 => bytes.iter_mut().skip(at).for_each(|byte| *byte = 0),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
}

impl Change {
    /// Returns the length of a write.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Write(_, _, bytes) => bytes.len(),
            Self::Checkpoint(..)
            | Self::RemoveCheckpoint(..)
            | Self::RemoveSegment(..)
            | Self::StartSegment(..)
            | Self::Truncate(..) => 0,
        }
    }
}

impl Inner {
    fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(record) = &mut self.record {
            record.push(change());
        }
    }

    fn spots_in(
        &self,
        segment: SegmentId,
        places: Range<usize>,
    ) -> impl Iterator<Item = (usize, Spot)> {
        let spots = self.spots.get(&segment);
        let spots = spots
            .into_iter()
            .flat_map(move |spots| spots.range(places.clone()));
        spots.map(|(&place, &spot)| (place, spot))
    }

    /// What is written anew is there as it is written, unless it is the damage that was read.
    fn write_over(&mut self, segment: SegmentId, offset: usize, bytes: &mut [u8]) {
        let there: Vec<_> = self
            .spots_in(segment, offset..offset + bytes.len())
            .collect();
        for (place, spot) in there {
            let before = self.segments[&segment].current[place];
            let byte = &mut bytes[place - offset];
            if spot == Spot::Flipped(before ^ *byte) {
                *byte = before;
            } else if let Some(spots) = self.spots.get_mut(&segment) {
                spots.remove(&place);
            }
        }
    }

    /// Counts a read, which may be one that fails.
    fn count_read(&mut self, place: &str) -> Result<(), Error> {
        match &mut self.fail_read {
            Some(0) => {
                self.fail_read = None;
                self.failed_reads += 1;
                Err(Error::Io {
                    what: "read",
                    place: place.to_owned(),
                    source: io::Error::from_raw_os_error(TOO_MANY_FILES),
                })
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Bytes of the checksum behind a message's, and bits of a place in a segment.
const CHECKSUM: usize = 4;
const OFFSET_BITS: u32 = 36;

fn begin_of(segment: SegmentId) -> u64 {
    segment.0 << OFFSET_BITS
}

/// The system's number for an error of the process: no file can be opened.
const TOO_MANY_FILES: i32 = 24;
/// The system's number for an error of the device.
const BAD_SECTOR: i32 = 5;

/// A byte of the disk that is not read as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    /// These bits of it are others.
    Flipped(u8),
    /// It cannot be read.
    Bad,
}

#[derive(Debug, Clone, Default)]
struct Segment {
    /// What is there for certain.
    synced: Vec<u8>,
    /// What is read.
    current: Vec<u8>,
    writes: Vec<(usize, Vec<u8>)>,
}

impl FaultyDisk {
    pub(super) fn new(random: Stream, segment_bytes: u64) -> Self {
        let inner = Inner {
            random,
            segments: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            prepared: Vec::new(),
            fuse: None,
            broken: false,
            full: false,
            fail_sync: false,
            fail_read: None,
            failed_reads: 0,
            spots: BTreeMap::new(),
            record: None,
        };
        Self {
            inner: Mutex::new(inner),
            segment_bytes: usize::try_from(segment_bytes).expect("fits"),
        }
    }

    /// Makes one that holds something.
    pub(super) fn of(image: &Image, random: Stream, segment_bytes: u64) -> Self {
        let disk = Self::new(random, segment_bytes);
        let mut inner = disk.lock();
        inner.checkpoints = image.checkpoints.clone();
        for (&id, bytes) in &image.segments {
            let segment = Segment {
                synced: bytes.clone(),
                current: bytes.clone(),
                writes: Vec::new(),
            };
            inner.segments.insert(id, segment);
        }
        drop(inner);
        disk
    }

    /// Returns what is on it.
    pub(super) fn image(&self) -> Image {
        let inner = self.lock();
        let segments = inner.segments.iter();
        Image {
            segments: segments
                .map(|(&id, segment)| (id, segment.current.clone()))
                .collect(),
            checkpoints: inner.checkpoints.clone(),
        }
    }

    /// Damages some bytes that were written and synced before a place of the log, wherever they are, with the
    /// checksum behind them: bits flip, or nothing can be read there. Returns whether they are anywhere.
    pub(super) fn damage(&self, bytes: &[u8], until: u64, random: &mut Stream) -> bool {
        let mut inner = self.lock();
        let Inner {
            segments, spots, ..
        } = &mut *inner;
        let (is_bad, flips) = (random.percent(25), 1 + random.below(3));
        let places: Vec<usize> = (0..flips)
            .map(|_| random.index(bytes.len() + CHECKSUM))
            .collect();
        let spot = if is_bad {
            Spot::Bad
        } else {
            Spot::Flipped(1 << random.below(8))
        };
        let mut is_anywhere = false;
        for (&id, segment) in segments {
            let until = until.saturating_sub(begin_of(id));
            let until = usize::try_from(until).expect("fits");
            let until = until.min(segment.synced.len());
            let synced = segment.synced.get(..until).unwrap_or_default();
            let found = synced.windows(bytes.len()).enumerate();
            for (found, _) in found.filter(|(_, there)| *there == bytes) {
                if synced.len() < found + bytes.len() + CHECKSUM {
                    continue;
                }
                is_anywhere = true;
                for place in &places {
                    spots.entry(id).or_default().insert(found + place, spot);
                }
            }
        }
        is_anywhere
    }

    /// The operator copies the disk to another one: what cannot be read is zeros there.
    pub(super) fn copy_to_another(&self) {
        let mut inner = self.lock();
        let Inner {
            segments, spots, ..
        } = &mut *inner;
        for (id, spots) in spots {
            for (&place, spot) in spots {
                if *spot == Spot::Bad {
                    *spot = Spot::Flipped(segments[id].current[place]);
                }
            }
        }
    }

    /// Returns whether an error is that of a place of this disk which cannot be read.
    pub(super) fn is_bad_sector(&self, error: &io::Error) -> bool {
        let inner = self.lock();
        let mut spots = inner.spots.values().flat_map(BTreeMap::values);
        error.raw_os_error() == Some(BAD_SECTOR) && spots.any(|spot| *spot == Spot::Bad)
    }

    /// Looks at the disk as it would be without damage.
    pub(super) fn undamaged<T>(&self, look: impl FnOnce() -> T) -> T {
        let spots = std::mem::take(&mut self.lock().spots);
        let seen = look();
        self.lock().spots = spots;
        seen
    }

    /// From now on, what is done is written down.
    pub(super) fn record(&self) {
        self.lock().record = Some(Vec::new());
    }

    pub(super) fn recorded(&self) -> Vec<Change> {
        self.lock().record.clone().unwrap_or_default()
    }

    /// Returns the disk as all changes since the recording began have made it.
    pub(super) fn recorded_image(&self) -> Image {
        let mut image = Image::default();
        for change in self.recorded() {
            image.change(&change, change.bytes());
        }
        image
    }

    pub(super) fn recorded_count(&self) -> usize {
        self.lock().record.as_ref().map_or(0, Vec::len)
    }

    /// After so many more changes, nothing works any more.
    pub(super) fn light_fuse(&self, changes: u64) {
        self.lock().fuse = Some(changes);
    }

    pub(super) fn fill(&self) {
        self.lock().full = true;
    }

    pub(super) fn make_room(&self) {
        self.lock().full = false;
    }

    pub(super) fn is_full(&self) -> bool {
        self.lock().full
    }

    pub(super) fn fail_next_sync(&self) {
        self.lock().fail_sync = true;
    }

    /// After so many more reads of the log, one fails; [`FaultyDisk::read_well`] ends that.
    pub(super) fn fail_read_after(&self, reads: u64) {
        self.lock().fail_read = Some(reads);
    }

    /// No read is to fail any more.
    pub(super) fn read_well(&self) {
        self.lock().fail_read = None;
    }

    /// Returns how many reads have failed.
    pub(super) fn failed_reads(&self) -> usize {
        self.lock().failed_reads
    }

    /// Returns whether nothing works any more.
    pub(super) fn is_broken(&self) -> bool {
        self.lock().broken
    }

    /// The power goes and comes again.
    pub(super) fn crash(&self) {
        let mut inner = self.lock();
        let Inner {
            random, segments, ..
        } = &mut *inner;
        for segment in segments.values_mut() {
            let writes = std::mem::take(&mut segment.writes);
            // The sparing hand: all is there, and the order of writes does not show.
            let all = random.percent(20);
            let none = random.percent(20);
            for (offset, bytes) in writes {
                if all {
                    overwrite(&mut segment.synced, offset, &bytes);
                } else if !none {
                    tear(random, &mut segment.synced, offset, &bytes);
                }
            }
            segment.current.clone_from(&segment.synced);
        }
        (inner.fuse, inner.broken, inner.fail_sync) = (None, false, false);
    }

    /// A process that is killed leaves to the system what it has written.
    pub(super) fn kill(&self) {
        let mut inner = self.lock();
        (inner.fuse, inner.broken, inner.fail_sync) = (None, false, false);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("one thread uses it")
    }

    /// Counts a change; the last one before the crash happens partly or not at all.
    fn change(&self) -> Result<MutexGuard<'_, Inner>, Error> {
        let mut inner = self.lock();
        match &mut inner.fuse {
            Some(0) => inner.broken = true,
            Some(left) => *left -= 1,
            None => {}
        }
        if inner.broken {
            return Err(failed("change", "broken"));
        }
        Ok(inner)
    }
}

/// Keeps a part of what was written: its begin, its end, or some sectors.
fn tear(random: &mut Stream, synced: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    match random.below(6) {
        0 => {}
        1 => overwrite(synced, offset, bytes),
        2 => {
            let end = random.index(bytes.len() + 1);
            overwrite(synced, offset, &bytes[..end]);
        }
        3 => {
            let start = random.index(bytes.len() + 1);
            overwrite(synced, offset + start, &bytes[start..]);
        }
        _ => {
            const SECTOR: usize = 512;
            let mut at = 0;
            while at < bytes.len() {
                let end = (SECTOR - (offset + at) % SECTOR + at).min(bytes.len());
                if random.percent(50) {
                    overwrite(synced, offset + at, &bytes[at..end]);
                }
                at = end;
            }
        }
    }
}

fn overwrite(bytes: &mut Vec<u8>, at: usize, with: &[u8]) {
    if with.is_empty() {
        return;
    }
    let end = at + with.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[at..end].copy_from_slice(with);
}

fn failed(what: &'static str, place: &str) -> Error {
    Error::Io {
        what,
        place: place.to_owned(),
        source: io::Error::other("injected"),
    }
}

fn copy(bytes: &[u8], offset: u64, into: &mut [u8]) -> usize {
    let offset = usize::try_from(offset).expect("fits");
    let from = bytes.get(offset..).unwrap_or_default();
    let count = from.len().min(into.len());
    into[..count].copy_from_slice(&from[..count]);
    count
}

impl LogReader for FaultyDisk {
    fn segments(&self) -> Result<Vec<(SegmentId, u64)>, Error> {
        let inner = self.lock();
        let lengths = inner.segments.iter().map(|(&id, segment)| {
            let length = u64::try_from(segment.current.len()).expect("fits");
            (id, length)
        });
        Ok(lengths.collect())
    }

    fn read(&self, segment: SegmentId, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let mut inner = self.lock();
        inner.count_read("a segment")?;
        let found = inner.segments.get(&segment);
        let found = found.ok_or_else(|| failed("read", "no such segment"))?;
        let count = copy(&found.current, offset, into);
        let offset = usize::try_from(offset).expect("fits");
        for (place, spot) in inner.spots_in(segment, offset..offset + count) {
            match spot {
                Spot::Flipped(bits) => into[place - offset] ^= bits,
                Spot::Bad => {
                    return Err(Error::Io {
                        what: "read",
                        place: "a segment".to_owned(),
                        source: io::Error::from_raw_os_error(BAD_SECTOR),
                    });
                }
            }
        }
        Ok(count)
    }

    fn checkpoints(&self) -> Result<Vec<u64>, Error> {
        Ok(self.lock().checkpoints.keys().copied().collect())
    }

    fn read_checkpoint(&self, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let mut inner = self.lock();
        inner.count_read("a checkpoint")?;
        let found = inner.checkpoints.get(&number);
        let found = found.ok_or_else(|| failed("read", "no such checkpoint"))?;
        Ok(copy(found, offset, into))
    }
}

impl Checkpoints for FaultyDisk {
    fn write_checkpoint(&self, number: u64) -> Result<Box<dyn CheckpointSink + '_>, Error> {
        if self.change()?.full {
            return Err(Error::Full);
        }
        Ok(Box::new(Sink {
            disk: self,
            number,
            bytes: Vec::new(),
        }))
    }

    fn remove_checkpoint(&self, number: u64) -> Result<(), Error> {
        let mut inner = self.change()?;
        inner.checkpoints.remove(&number);
        inner.note(|| Change::RemoveCheckpoint(number));
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn start_segment(&self, segment: SegmentId) -> Result<(), Error> {
        let mut inner = self.change()?;
        if inner.segments.contains_key(&segment) {
            return Ok(());
        }
        if inner.full {
            return Err(Error::Full);
        }
        let bytes = inner.prepared.pop();
        let bytes = bytes.unwrap_or_else(|| vec![0; self.segment_bytes]);
        let new = Segment {
            synced: bytes.clone(),
            current: bytes,
            writes: Vec::new(),
        };
        inner.note(|| Change::StartSegment(segment, new.current.clone()));
        inner.segments.insert(segment, new);
        Ok(())
    }

    fn length(&self, segment: SegmentId) -> Result<u64, Error> {
        let inner = self.lock();
        let found = inner.segments.get(&segment);
        let length = found.map_or(0, |found| found.current.len());
        Ok(u64::try_from(length).expect("fits"))
    }

    fn remove_segment(&self, segment: SegmentId) -> Result<(), Error> {
        let mut inner = self.change()?;
        inner.note(|| Change::RemoveSegment(segment));
        inner.spots.remove(&segment);
        if let Some(removed) = inner.segments.remove(&segment)
            && inner.random.percent(70)
        {
            inner.prepared.push(removed.current);
        }
        Ok(())
    }

    fn write(&self, segment: SegmentId, offset: u64, parts: &[&[u8]]) -> Result<(), Error> {
        let bytes = parts.concat();
        let offset = usize::try_from(offset).expect("fits");
        if self.lock().broken {
            return Err(failed("write", "broken"));
        }
        let is_last = self.change().is_err();
        let mut inner = self.lock();
        let full = inner.full;
        let mut bytes = bytes;
        inner.write_over(segment, offset, &mut bytes);
        let Some(found) = inner.segments.get_mut(&segment) else {
            return Err(failed("write", "no such segment"));
        };
        if full && found.current.len() < offset + bytes.len() {
            return Err(Error::Full);
        }
        // Even a write that nobody was told of may have happened.
        found.writes.push((offset, bytes.clone()));
        overwrite(&mut found.current, offset, &bytes);
        inner.note(|| Change::Write(segment, offset, bytes));
        if is_last {
            return Err(failed("write", "broken"));
        }
        Ok(())
    }

    fn sync(&self, segment: SegmentId) -> Result<(), Error> {
        let mut inner = self.change()?;
        if inner.fail_sync {
            inner.broken = true;
            return Err(failed("sync", "a segment"));
        }
        let found = inner.segments.get_mut(&segment);
        let found = found.ok_or_else(|| failed("sync", "no such segment"))?;
        found.writes.clear();
        found.synced.clone_from(&found.current);
        Ok(())
    }

    fn truncate(&self, segment: SegmentId, offset: u64) -> Result<(), Error> {
        let mut inner = self.change()?;
        let found = inner.segments.get_mut(&segment);
        let found = found.ok_or_else(|| failed("truncate", "no such segment"))?;
        let offset = usize::try_from(offset).expect("fits");
        found.current[offset..].fill(0);
        found.writes.clear();
        found.synced.clone_from(&found.current);
        if let Some(spots) = inner.spots.get_mut(&segment) {
            spots.split_off(&offset);
        }
        inner.note(|| Change::Truncate(segment, offset));
        Ok(())
    }

    fn has_room(&self) -> bool {
        !self.is_full()
    }
}

struct Sink<'a> {
    disk: &'a FaultyDisk,
    number: u64,
    bytes: Vec<u8>,
}

impl CheckpointSink for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        drop(self.disk.change()?);
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        let mut inner = self.disk.change()?;
        inner.note(|| Change::Checkpoint(self.number, self.bytes.clone()));
        inner.checkpoints.insert(self.number, self.bytes);
        Ok(())
    }
}
