//! Reading the log: a window that moves over a segment, and bodies.

use bytes::Bytes;

use super::layout::{Position, u64_of, usize_of};
use super::{Disk, Error, SegmentId};
use crate::entity::BodyRef;
use crate::limits;

/// Reads a body, and what lies behind it in its segment: the bodies that are wanted next.
/// Returns the position of the first byte, and the bytes: none behind `until`, which is what
/// [`Writer::readable_until`](super::Writer::readable_until) said before the read. Bytes that are
/// kept in memory must be those that are there for good.
///
/// # Errors
///
/// [`Error::Corrupt`] if the body is not there.
pub fn read_ahead(disk: &dyn Disk, body: BodyRef, until: u64) -> Result<(u64, Bytes), Error> {
    let Position { segment, offset } = Position::of(body);
    let length = usize_of(u64::from(body.length));
    let readable = until.saturating_sub(body.position);
    let wanted = u64_of(length.saturating_add(limits::READ_AHEAD_BYTES)).min(readable);
    let mut bytes = vec![0; usize_of(wanted).max(length)];
    let count = disk.read(segment, offset, &mut bytes)?;
    if count < length {
        return Err(Error::Corrupt {
            segment,
            offset,
            what: "a message's bytes are missing",
        });
    }
    bytes.truncate(count);
    Ok((body.position, Bytes::from(bytes)))
}

/// Reads a segment from front to back, a stretch at a time.
pub(super) struct Window<'a> {
    disk: &'a dyn Disk,
    pub(super) segment: SegmentId,
    /// The segment's length in bytes.
    pub(super) length: u64,
    /// Where the stretch begins.
    start: u64,
    stretch: Vec<u8>,
}

impl<'a> Window<'a> {
    pub(super) fn new(disk: &'a dyn Disk, segment: SegmentId, length: u64) -> Self {
        Self {
            disk,
            segment,
            length,
            start: 0,
            stretch: Vec::new(),
        }
    }

    /// Returns the bytes there; fewer only at the segment's end.
    pub(super) fn bytes(&mut self, offset: u64, count: u64) -> Result<&[u8], Error> {
        let count = usize_of(count.min(self.length.saturating_sub(offset)));
        let held = offset
            .checked_sub(self.start)
            .is_some_and(|skipped| skipped + u64_of(count) <= u64_of(self.stretch.len()));
        if !held {
            let left = self.length.saturating_sub(offset);
            let wanted = u64_of(count.max(limits::RECOVERY_READ_BYTES)).min(left);
            self.stretch.resize(usize_of(wanted), 0);
            self.start = offset;
            let read = self.disk.read(self.segment, offset, &mut self.stretch)?;
            self.stretch.truncate(read);
        }
        let from = usize_of(offset - self.start);
        let held = self.stretch.get(from..).unwrap_or_default();
        Ok(held.get(..count).unwrap_or(held))
    }
}
