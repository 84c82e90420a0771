//! The disk's side of the log's end: writes frames and syncs them.
//!
//! Invariants: a segment is synced before the next one begins, and its header is synced before
//! its first frame is written; a frame that was written is never written again; each frame says
//! what had been synced when it was written. By these, recovery distinguishes damage from a crash.

use std::sync::Arc;

use bytes::Bytes;

use super::layout::{FRAME_HEADER, FrameHeader, Position, SegmentHeader, checksum, u64_of};
use super::{Disk, Error, Frame, SegmentId};

/// The one that writes.
pub struct Committer {
    disk: Arc<dyn Disk>,
    store: u64,
    /// The segment that is being written; its header is synced.
    current: Option<SegmentId>,
    written: u64,
    synced: u64,
    parts: Vec<Bytes>,
}

impl Committer {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        store: u64,
        current: Option<SegmentId>,
        last_frame: u64,
    ) -> Self {
        let (written, synced) = (last_frame, last_frame);
        Self {
            disk,
            store,
            current,
            written,
            synced,
            parts: Vec::new(),
        }
    }

    /// Writes frames in their order. They are not durable before the next [`Committer::sync`].
    ///
    /// # Errors
    ///
    /// [`Error::Full`]: nothing that counts has changed, and the same frames may be tried again.
    /// After any other error the log must be recovered.
    pub fn write(&mut self, frames: &[Frame]) -> Result<(), Error> {
        let written = self.written;
        let new = frames.partition_point(|frame| frame.number <= written);
        let mut rest = frames.get(new..).unwrap_or_default();
        while let Some(first) = rest.first() {
            let place = Position::from_u64(first.position);
            if self.current != Some(place.segment) {
                self.start(place.segment, first.number)?;
            }
            let count = rest.partition_point(|frame| {
                Position::from_u64(frame.position).segment == place.segment
            });
            let (now, later) = rest.split_at(count);
            self.write_together(place, now)?;
            rest = later;
        }
        Ok(())
    }

    /// Makes durable all that was written.
    ///
    /// # Errors
    ///
    /// After an error it is unknown what is durable: the log must be recovered.
    pub fn sync(&mut self) -> Result<(), Error> {
        if let Some(current) = self.current
            && self.synced < self.written
        {
            self.disk.sync(current)?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Returns the newest frame that is durable.
    #[must_use]
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// Removes a segment that nothing needs.
    pub fn remove(&mut self, segment: SegmentId) -> Result<(), Error> {
        debug_assert!(
            self.current != Some(segment),
            "segment {segment} is being written"
        );
        // With periodic syncs, a record that bytes are no longer needed may not be synced yet when
        // they are removed.
        self.sync()?;
        self.disk.remove_segment(segment)
    }

    fn start(&mut self, segment: SegmentId, first_frame: u64) -> Result<(), Error> {
        self.sync()?;
        self.disk.start_segment(segment)?;
        let header = SegmentHeader {
            store: self.store,
            segment,
            first_frame,
            prepared: self.disk.length(segment)?,
        }
        .encode();
        self.disk.write(segment, 0, &[&header])?;
        self.disk.sync(segment)?;
        self.current = Some(segment);
        Ok(())
    }

    /// Writes consecutive frames of one segment.
    fn write_together(&mut self, place: Position, frames: &[Frame]) -> Result<(), Error> {
        self.parts.clear();
        let mut end = place.offset;
        for frame in frames {
            debug_assert!(
                Position::from_u64(frame.position).offset == end,
                "frame {} does not follow the one before it",
                frame.number
            );
            end += u64_of(frame.bytes.len());
            let records = frame.bytes.slice(FRAME_HEADER..);
            let ahead = u32::try_from(frame.number - self.synced).unwrap_or(u32::MAX);
            let header = FrameHeader {
                length: frame.length,
                segment: place.segment,
                number: frame.number,
                ahead,
                checksum: checksum(self.store, &records),
            };
            let header = header.encode(self.store);
            self.parts.push(Bytes::copy_from_slice(&header));
            self.parts.push(records);
        }
        let written = self
            .disk
            .write_shared(place.segment, place.offset, &self.parts);
        // Segments that are not kept here can be removed.
        self.parts.clear();
        written?;
        self.written = frames.last().map_or(self.written, |last| last.number);
        Ok(())
    }
}
