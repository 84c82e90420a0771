//! The seam to where a log is kept, divided by what is asked of it.
//!
//! | trait | asked by | implemented for |
//! |---|---|---|
//! | [`LogReader`] | recovery, checks, reads of bodies | files, memory, rows of a store, files that are only read |
//! | [`Checkpoints`] | [`write_checkpoint`](super::write_checkpoint) | files, memory, rows of a store |
//! | [`Disk`] | [`Committer`](super::Committer), [`Writer`](super::Writer), the end of a recovery | files, memory |
//!
//! The interface has no paths and no handles. Every operation may be slow and may fail.

use std::fmt;

use bytes::Bytes;

use super::Error;

/// A segment's number: 1 is the first, each new one has the next; none is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u64);

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A log as it is read: segments, each a sequence of bytes with a number, and checkpoints, each named by the
/// position of the log that it represents. Offsets and lengths are in bytes.
///
/// Implementations must guarantee: bytes before the durable end of the log are there for as long as their segment
/// is, and a checkpoint that is listed is there as a whole. Several threads may read at once. Whether bytes are
/// what was written need not be checked: frames, bodies and checkpoints have checksums.
///
/// Errors are those of the environment: [`Error::Io`] of files and memory, [`Error::Store`] of a store, and
/// [`Error::Fenced`] of a log that another server owns.
pub trait LogReader: Send + Sync {
    /// Returns all segments in order of their numbers, with their lengths in bytes.
    fn segments(&self) -> Result<Vec<(SegmentId, u64)>, Error>;

    /// Reads as many bytes as there are and fit, and returns their number.
    fn read(&self, segment: SegmentId, offset: u64, into: &mut [u8]) -> Result<usize, Error>;

    /// Returns a number of bytes that need not be read: at least this many, if they were written
    /// together.
    fn share(&self, _segment: SegmentId, _offset: u64, _least: usize) -> Option<Bytes> {
        None
    }

    /// Returns the numbers of all checkpoints in their order.
    fn checkpoints(&self) -> Result<Vec<u64>, Error>;

    /// Reads as many bytes of a checkpoint as there are and fit, and returns their number.
    fn read_checkpoint(&self, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, Error>;
}

/// A log whose checkpoints are written, and removed when another replaces them.
///
/// Implementations must guarantee: a checkpoint is there from [`CheckpointSink::finish`] on, whole and durable, and
/// not before. In a log that another server owns nothing is changed: [`Error::Fenced`].
pub trait Checkpoints: LogReader {
    /// Begins a checkpoint, which is there only when it is finished. [`Error::Full`]: there is no space for it.
    fn write_checkpoint(&self, number: u64) -> Result<Box<dyn CheckpointSink + '_>, Error>;

    /// Removes a checkpoint.
    fn remove_checkpoint(&self, number: u64) -> Result<(), Error>;
}

/// A log whose segments are written at offsets, into space that was prepared, and are synced.
///
/// Implementations must guarantee: synced bytes stay; bytes that were written and not synced may
/// exist or not after a crash, each independently and in any order; nothing else changes. Starting
/// and removing segments is durable and atomic.
pub trait Disk: Checkpoints {
    /// Makes a segment from a prepared one; waits while one is being prepared. Its bytes are zero
    /// or those of a removed segment; one that is there already stays as it is.
    /// [`Error::Full`]: nothing has changed.
    fn start_segment(&self, segment: SegmentId) -> Result<(), Error>;

    /// Returns a segment's length in bytes, or 0 where it is not prepared ahead.
    fn length(&self, _segment: SegmentId) -> Result<u64, Error> {
        Ok(0)
    }

    /// Removes a segment; it may become a prepared one.
    fn remove_segment(&self, segment: SegmentId) -> Result<(), Error>;

    /// Writes all parts consecutively. [`Error::Full`]: bytes there may have changed.
    fn write(&self, segment: SegmentId, offset: u64, parts: &[&[u8]]) -> Result<(), Error>;

    /// Writes as [`Disk::write`] does; the parts may be kept as they are.
    fn write_shared(&self, segment: SegmentId, offset: u64, parts: &[Bytes]) -> Result<(), Error> {
        let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        self.write(segment, offset, &parts)
    }

    /// Makes all writes to a segment durable. After an error it is unknown which of them are.
    fn sync(&self, segment: SegmentId) -> Result<(), Error>;

    /// Makes all bytes from here to the segment's end zero, durably.
    fn truncate(&self, segment: SegmentId, offset: u64) -> Result<(), Error>;

    /// Returns whether another segment can be started, as far as is known.
    fn has_room(&self) -> bool;

    /// Returns how much space there is, if that is known.
    fn space(&self) -> Option<Space> {
        None
    }
}

/// The space of a disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// What is free.
    pub free: u64,
    /// What must be free for another segment.
    pub needed: u64,
}

/// A checkpoint that is being written. Dropped unfinished, it was never there.
pub trait CheckpointSink {
    /// Adds bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Makes it durable, and only then visible.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}
