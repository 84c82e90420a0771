//! Reading the log: a window that moves over a segment, and bodies.

use std::io;
use std::ops::Range;

use bytes::Bytes;

use super::error::EIO;
use super::layout::{BODY_CHECKSUM, Position, body_checksum, u64_of, usize_of};
use super::{Error, LogReader, SegmentId};
use crate::limits;
use jitney_base::ids::BodyRef;

/// A stretch of the log that was read back.
#[derive(Debug, Clone)]
pub struct Stretch {
    pub(super) position: u64,
    pub(super) bytes: Bytes,
    /// Bytes of bodies in here that were wanted when it was read.
    wanted: usize,
}

impl Stretch {
    /// Returns a body's bytes, if all of them are in here and undamaged.
    #[must_use]
    pub fn body(&self, body: BodyRef) -> Option<Bytes> {
        let bytes = slice(self.position, &self.bytes, body)?;
        let end = usize::try_from(body.position - self.position).ok()? + bytes.len();
        let sum = self.bytes.get(end..)?.first_chunk()?;
        (body_checksum(&bytes) == u32::from_le_bytes(*sum)).then_some(bytes)
    }

    /// Returns a body as [`Stretch::body`] does, to be kept for as long as it takes: in memory of its
    /// own if it is small and little else of the stretch was wanted, which would be kept with it.
    #[must_use]
    pub fn keep(&self, body: BodyRef) -> Option<Bytes> {
        let found = self.body(body)?;
        let is_small = found.len() < limits::COPIED_BODY_BYTES;
        let is_copied = is_small && 4 * self.wanted < self.bytes.len();
        Some(if is_copied {
            Bytes::copy_from_slice(&found)
        } else {
            found
        })
    }

    /// Counts one more body as wanted, if it lies in here; returns whether it does.
    /// [`Stretch::body`] checks whether it is damaged.
    pub fn serves(&mut self, body: BodyRef) -> bool {
        let Some(place) = place(self.position, &self.bytes, body) else {
            return false;
        };
        let has_sum = place.end + BODY_CHECKSUM <= self.bytes.len();
        self.wanted += if has_sum { place.len() } else { 0 };
        has_sum
    }
}

/// Reads a body, and up to `ahead` bytes after it in its segment, which are the bodies that are
/// wanted next; but nothing beyond `until`, the result of
/// [`Writer::readable_until`](super::Writer::readable_until) before the read. Bytes that are cached
/// must be final.
///
/// # Errors
///
/// [`Error::Body`] if the body is not there as it was written.
pub fn read_ahead(
    log: &dyn LogReader,
    body: BodyRef,
    ahead: usize,
    until: u64,
) -> Result<Stretch, Error> {
    let Position { segment, offset } = Position::of(body);
    let least = u64::from(body.length) + u64_of(BODY_CHECKSUM);
    let bytes = if let Some(shared) = log.share(segment, offset, usize_of(least)) {
        shared
    } else {
        let readable = until.saturating_sub(body.position);
        let most = (least + u64_of(ahead)).min(readable).max(least);
        let read = match read_some(log, segment, offset, most) {
            // A bad sector behind the body is not in the body.
            Err(Error::Io { source, .. }) if least < most && is_lasting(&source) => {
                read_some(log, segment, offset, least)
            }
            read => read,
        };
        read.map_err(|error| unreadable(body, error))?
    };
    let position = body.position;
    let wanted = usize_of(least);
    let stretch = Stretch {
        position,
        bytes,
        wanted,
    };
    if stretch.body(body).is_none() {
        return Err(Error::Body {
            segment,
            offset,
            what: "its checksum is wrong".to_owned(),
        });
    }
    Ok(stretch)
}

fn read_some(
    log: &dyn LogReader,
    segment: SegmentId,
    offset: u64,
    count: u64,
) -> Result<Bytes, Error> {
    let mut bytes = vec![0; usize_of(count)];
    let count = log.read(segment, offset, &mut bytes)?;
    bytes.truncate(count);
    Ok(Bytes::from(bytes))
}

/// Converts a failed read to the error of the body that it was for: a bad sector damages that body
/// alone.
fn unreadable(body: BodyRef, error: Error) -> Error {
    let Position { segment, offset } = Position::of(body);
    if let Error::Io { source, .. } = &error
        && is_lasting(source)
    {
        let what = format!("it cannot be read: {source}");
        return Error::Body {
            segment,
            offset,
            what,
        };
    }
    error
}

/// Returns whether the same read would fail again: a bad sector, or a file that is not there.
fn is_lasting(error: &io::Error) -> bool {
    error.raw_os_error() == Some(EIO) || error.kind() == io::ErrorKind::NotFound
}

/// Returns a body's bytes, if all of them are in the stretch.
pub(super) fn slice(position: u64, bytes: &Bytes, body: BodyRef) -> Option<Bytes> {
    Some(bytes.slice(place(position, bytes, body)?))
}

/// Returns where a body is in a stretch, if all of it is there.
fn place(position: u64, bytes: &Bytes, body: BodyRef) -> Option<Range<usize>> {
    let start = usize::try_from(body.position.checked_sub(position)?).ok()?;
    let end = start.checked_add(usize::try_from(body.length).ok()?)?;
    (end <= bytes.len()).then_some(start..end)
}

/// Reads a segment from front to back, a stretch at a time.
pub(super) struct Window<'a> {
    log: &'a dyn LogReader,
    pub(super) segment: SegmentId,
    /// The segment's length in bytes.
    pub(super) length: u64,
    /// Where the stretch begins.
    start: u64,
    stretch: Vec<u8>,
}

impl<'a> Window<'a> {
    pub(super) fn new(log: &'a dyn LogReader, segment: SegmentId, length: u64) -> Self {
        Self {
            log,
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
            let read = self.log.read(self.segment, offset, &mut self.stretch)?;
            self.stretch.truncate(read);
        }
        let from = usize_of(offset - self.start);
        let held = self.stretch.get(from..).unwrap_or_default();
        Ok(held.get(..count).unwrap_or(held))
    }
}
