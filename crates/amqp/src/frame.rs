//! Frames: a length, a channel, a body [2.3].

use bytes::BytesMut;

use super::small_frame::SmallFrame;
use super::{Condition, Refusal, trace};
use crate::limits;

/// A protocol header: `AMQP`, a protocol id, a version [2.2].
pub(super) const HEADER_BYTES: usize = 8;
pub(super) const AMQP_HEADER: [u8; HEADER_BYTES] = *b"AMQP\x00\x01\x00\x00";
pub(super) const SASL_HEADER: [u8; HEADER_BYTES] = *b"AMQP\x03\x01\x00\x00";

const FRAME_HEAD_BYTES: usize = 8;

/// Which protocol a frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Amqp,
    Sasl,
}

/// A whole frame at the front of the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    pub(super) channel: u16,
    /// Where its body begins: the performative and its payload; empty in a frame that only keeps the
    /// connection alive.
    pub(super) body: usize,
    /// Its bytes in all.
    pub(super) size: usize,
}

/// Finds the next whole frame of the input; none if it is not complete yet.
pub(super) fn find(input: &[u8], size_max: u32) -> Result<Option<Frame>, Refusal> {
    let Some(head) = input.first_chunk::<FRAME_HEAD_BYTES>() else {
        return Ok(None);
    };
    let [s0, s1, s2, s3, doff, kind, c0, c1] = *head;
    let size = u32::from_be_bytes([s0, s1, s2, s3]);
    if size_max < size {
        return Err(framing(format!(
            "a frame of {size} bytes, and {size_max} are the most"
        )));
    }
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let body = usize::from(doff) * 4;
    if body < FRAME_HEAD_BYTES || size < body {
        return Err(framing(format!(
            "a frame of {size} bytes with a data offset of {doff}"
        )));
    }
    let kind = match kind {
        0 => FrameKind::Amqp,
        1 => FrameKind::Sasl,
        other => return Err(framing(format!("a frame of type {other}"))),
    };
    if input.len() < size {
        return Ok(None);
    }
    Ok(Some(Frame {
        kind,
        channel: u16::from_be_bytes([c0, c1]),
        body,
        size,
    }))
}

/// Writes a frame whose body `write` appends.
pub(super) fn write(
    out: &mut BytesMut,
    kind: FrameKind,
    channel: u16,
    write: impl FnOnce(&mut BytesMut),
) {
    let start = out.len();
    let [c0, c1] = channel.to_be_bytes();
    let kind_byte = match kind {
        FrameKind::Amqp => 0,
        FrameKind::Sasl => 1,
    };
    out.extend_from_slice(&[0, 0, 0, 0, 2, kind_byte, c0, c1]);
    write(out);
    let size = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(slot) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
        *slot = size.to_be_bytes();
    }
    trace_written(out, start, kind, channel);
}

/// Writes a frame that has no payload.
pub(super) fn write_small(out: &mut BytesMut, channel: u16, frame: SmallFrame) {
    let start = out.len();
    frame.end(out, 0);
    trace_written(out, start, FrameKind::Amqp, channel);
}

/// Traces a frame that was written from here to the end.
pub(super) fn trace_written(out: &BytesMut, start: usize, kind: FrameKind, channel: u16) {
    if let Some(body) = out.get(start + FRAME_HEAD_BYTES..) {
        trace::frame(trace::Direction::Out, kind, channel, body);
    }
}

/// An empty frame: it says that we are still there [2.4.5].
pub(super) fn write_empty(out: &mut BytesMut) {
    write(out, FrameKind::Amqp, 0, |_| ());
}

pub(super) fn framing(description: String) -> Refusal {
    Refusal {
        condition: Condition::FramingError,
        description,
    }
}

/// Payload that fits one transfer frame to this peer.
pub(super) fn payload_max(peer_frame_max: u32) -> usize {
    /// Bytes of a transfer's frame beside its payload: heads of 20, fields of at most 44.
    const TRANSFER_BYTES: u32 = 64;
    let size = peer_frame_max.clamp(limits::FRAME_SIZE_MIN, limits::FRAME_SIZE_MAX);
    usize::try_from(size - TRANSFER_BYTES).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_as_it_was_written() {
        let mut out = BytesMut::new();
        write(&mut out, FrameKind::Amqp, 7, |body| {
            body.extend_from_slice(b"abc");
        });
        assert!(find(&out[..10], 512).unwrap().is_none());
        let frame = find(&out, 512).unwrap().unwrap();
        let body = &out[frame.body..frame.size];
        assert_eq!((frame.channel, body), (7, &b"abc"[..]));
        assert_eq!(frame.size, out.len());
    }

    #[test]
    fn heads_that_lie_are_refused() {
        for head in [
            [0, 0, 2, 1, 2, 0, 0, 0],
            [0, 0, 0, 7, 2, 0, 0, 0],
            [0, 0, 0, 8, 1, 0, 0, 0],
            [0, 0, 0, 8, 3, 0, 0, 0],
            [0, 0, 0, 8, 2, 9, 0, 0],
        ] {
            assert!(find(&head, 512).is_err(), "{head:?}");
        }
    }
}
