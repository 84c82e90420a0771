//! Analysis of damaged bytes: whether only bodies in a frame are damaged, and where the next good
//! frame is.

use super::codec::Decoder;
use super::layout::{
    BODY_CHECKSUM, FRAME_ALIGNMENT, FRAME_HEADER, FrameHeader, Position, body_checksum, checksum,
    u64_of, usize_of,
};
use super::reading::Window;
use super::{Error, SegmentId};
use crate::limits;
use jitney_base::ids::{BodyRef, EntityId, SequenceNumber};
use jitney_queue::Record;

/// A message whose body was found to be damaged when the log was recovered; its record is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedBody {
    /// The queue that the record names.
    pub entity: EntityId,
    /// The number that the message has there.
    pub number: SequenceNumber,
    /// The damaged bytes.
    pub body: BodyRef,
}

impl DamagedBody {
    /// Returns the position and the fault as text for operators.
    #[must_use]
    pub fn place(&self) -> String {
        place(self.body, "its checksum is wrong")
    }

    /// Returns the segment of the damaged bytes, and their offset there.
    #[must_use]
    pub fn position(&self) -> (SegmentId, u64) {
        let Position { segment, offset } = Position::of(self.body);
        (segment, offset)
    }
}

/// Returns where a body was that the log has lost, for people.
#[must_use]
pub fn lost_place(body: BodyRef) -> String {
    place(body, "the file is missing, or ends before it")
}

fn place(body: BodyRef, what: &str) -> String {
    let Position { segment, offset } = Position::of(body);
    let what = what.to_owned();
    Error::Body {
        segment,
        offset,
        what,
    }
    .to_string()
}

/// Something that was synced once and is not there, and without which the log was recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Where.
    pub segment: SegmentId,
    /// How far from the segment's begin, bytes.
    pub offset: u64,
    /// The fault.
    pub what: &'static str,
}

/// Bytes after the log's end that were cut off: a crash left them, or the newest frame is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Where.
    pub segment: SegmentId,
    /// How far from the segment's begin, bytes.
    pub offset: u64,
    /// Bytes of frames.
    pub bytes: u64,
    /// Frames, whole or not.
    pub frames: u64,
}

/// Returns the damaged bodies of a frame whose checksum is wrong, by the positions they have from
/// `begin` on, if these bodies are all that is wrong with it.
///
/// A body's own checksum is in the frame, and with it the body's contribution to the frame's
/// checksum: with that instead of the bytes, the frame's checksum is right if all records are.
/// Damage in the body's checksum counts as damage of the body: it changes the sum in two places,
/// which cancel out.
pub(super) fn damaged_bodies(
    store: u64,
    header: &FrameHeader,
    payload: &[u8],
    begin: u64,
) -> Option<Vec<DamagedBody>> {
    let records = payload.get(..usize_of(u64::from(header.length)))?;
    let mut decoder = Decoder::new(records);
    let (mut sum, mut summed) = (checksum(store, &[]), 0);
    let mut damaged = Vec::new();
    while let Some((record, body)) = decoder.next().ok()? {
        let Some(body) = body else { continue };
        let end = body.offset + usize_of(u64::from(body.length));
        let bytes = payload.get(body.offset..end)?;
        let own = payload.get(end..end + BODY_CHECKSUM)?.first_chunk()?;
        let own = u32::from_le_bytes(*own);
        sum = crc32c::crc32c_append(sum, payload.get(summed..body.offset)?);
        sum = crc32c::crc32c_combine(sum, own, bytes.len());
        summed = end;
        if body_checksum(bytes) != own
            && let Record::Enqueued { entity, number, .. }
            | Record::Relocated { entity, number, .. } = record
        {
            let body = BodyRef {
                position: begin + u64_of(body.offset),
                length: body.length,
            };
            damaged.push(DamagedBody {
                entity,
                number,
                body,
            });
        }
    }
    sum = crc32c::crc32c_append(sum, payload.get(summed..)?);
    (sum == header.checksum).then_some(damaged)
}

/// Shows every header of a frame from a place of a segment on, at every place where one could be,
/// until `visit` says to stop.
pub(super) fn each_header(
    store: u64,
    window: &mut Window<'_>,
    from: u64,
    mut visit: impl FnMut(u64, &FrameHeader) -> bool,
) -> Result<(), Error> {
    let mut offset = from;
    loop {
        let segment = window.segment;
        let bytes = window.bytes(offset, u64_of(limits::RECOVERY_READ_BYTES))?;
        if bytes.len() < FRAME_HEADER {
            return Ok(());
        }
        let places = (offset..).step_by(FRAME_ALIGNMENT);
        let found = bytes.windows(FRAME_HEADER).step_by(FRAME_ALIGNMENT);
        for (at, place) in places.zip(found) {
            if let Some(header) = FrameHeader::decode(store, segment, place)
                && !visit(at, &header)
            {
                return Ok(());
            }
        }
        // The last places were too near to the stretch's end: they are the next one's first.
        let looked_at = (bytes.len() - FRAME_HEADER) / FRAME_ALIGNMENT + 1;
        offset += u64_of(looked_at * FRAME_ALIGNMENT);
    }
}
