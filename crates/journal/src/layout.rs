//! The log's layout: segment headers, frame headers, positions. `docs/log-format.md` shows it.
//!
//! All numbers are little-endian. Checksums are CRC-32C and begin with the store's number, which is
//! random: neither a removed segment's bytes nor a sender that knows this format can make bytes
//! that pass for a frame.

use super::SegmentId;
use jitney_base::ids::BodyRef;

/// The format's version, in each segment and each checkpoint.
pub(super) const FORMAT: u32 = 1;
/// A segment's header, bytes; frames follow.
pub(super) const SEGMENT_HEADER: usize = 64;
/// A frame's header, bytes; records follow.
pub(super) const FRAME_HEADER: usize = 32;
/// A checkpoint's header, bytes; blocks follow.
pub(super) const CHECKPOINT_HEADER: usize = 64;
/// Bytes of the checksum after a body: a body that is read back without its frame is checked by it.
pub(super) const BODY_CHECKSUM: usize = 4;
/// Frames begin at multiples of this, bytes, so that a search for frames is faster.
pub(super) const FRAME_ALIGNMENT: usize = 8;

const SEGMENT_MAGIC: [u8; 8] = *b"jitney-l";
const CHECKPOINT_MAGIC: [u8; 8] = *b"jitney-c";
/// The bits of a position that are the offset: frames of 64 GiB, 2^28 segments.
const OFFSET_BITS: u32 = 36;

/// Where a byte of the log is: its segment, and its offset there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) segment: SegmentId,
    pub(super) offset: u64,
}

impl Position {
    /// The first frame's, in a new log.
    pub(super) const START: Self = Self::begin(SegmentId(1));

    /// Returns the place of a segment's first frame.
    pub(super) const fn begin(segment: SegmentId) -> Self {
        Self {
            segment,
            offset: 64,
        }
    }

    pub(super) fn from_u64(position: u64) -> Self {
        let segment = SegmentId(position >> OFFSET_BITS);
        Self {
            segment,
            offset: position & ((1 << OFFSET_BITS) - 1),
        }
    }

    pub(super) fn to_u64(self) -> u64 {
        debug_assert!(
            self.offset < 1 << OFFSET_BITS,
            "a segment is one group longer than nominal"
        );
        (self.segment.0 << OFFSET_BITS) | self.offset
    }

    pub(super) fn of(body: BodyRef) -> Self {
        Self::from_u64(body.position)
    }
}

const _: () = assert!(SEGMENT_HEADER == 64 && SEGMENT_HEADER.is_multiple_of(FRAME_ALIGNMENT));

/// The first bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) store: u64,
    pub(super) segment: SegmentId,
    /// The number of its first frame: all before it are synced in older segments. 0 if its header
    /// was lost.
    pub(super) first_frame: u64,
    /// Its length when it was begun, bytes: it never gets shorter. 0 where that is not known.
    pub(super) prepared: u64,
}

/// The first bytes of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CheckpointHeader {
    pub(super) store: u64,
    pub(super) position: u64,
    pub(super) frame: u64,
    pub(super) newest: i64,
}

/// The contents of a file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header<T> {
    Good(T),
    OtherFormat(u32),
    Bad,
}

/// Both headers: magic, format, checksum, four words, zeros.
fn encode_words(magic: [u8; 8], words: [u64; 4]) -> [u8; SEGMENT_HEADER] {
    let mut out = Fields::<SEGMENT_HEADER>::new();
    out.put(0, &magic);
    out.put(8, &FORMAT.to_le_bytes());
    for (at, word) in (16..).step_by(8).zip(words) {
        out.put(at, &word.to_le_bytes());
    }
    let checksum = crc32c::crc32c(&out.0);
    out.put(12, &checksum.to_le_bytes());
    out.0
}

fn decode_words(magic: [u8; 8], bytes: &[u8]) -> Header<[u64; 4]> {
    let Some(bytes) = bytes.first_chunk::<SEGMENT_HEADER>() else {
        return Header::Bad;
    };
    let mut copy = Fields(*bytes);
    copy.put(12, &[0; 4]);
    if bytes.first_chunk() != Some(&magic) || crc32c::crc32c(&copy.0) != u32_at(bytes, 12) {
        return Header::Bad;
    }
    match u32_at(bytes, 8) {
        FORMAT => Header::Good([16, 24, 32, 40].map(|at| u64_at(bytes, at))),
        other => Header::OtherFormat(other),
    }
}

impl SegmentHeader {
    pub(super) fn encode(self) -> [u8; SEGMENT_HEADER] {
        encode_words(
            SEGMENT_MAGIC,
            [self.store, self.segment.0, self.first_frame, self.prepared],
        )
    }

    pub(super) fn decode(bytes: &[u8]) -> Header<Self> {
        match decode_words(SEGMENT_MAGIC, bytes) {
            Header::Good([store, segment, first_frame, prepared]) => Header::Good(Self {
                store,
                segment: SegmentId(segment),
                first_frame,
                prepared,
            }),
            Header::OtherFormat(format) => Header::OtherFormat(format),
            Header::Bad => Header::Bad,
        }
    }
}

impl CheckpointHeader {
    pub(super) fn encode(self) -> [u8; CHECKPOINT_HEADER] {
        let newest = self.newest.cast_unsigned();
        encode_words(
            CHECKPOINT_MAGIC,
            [self.store, self.position, self.frame, newest],
        )
    }

    pub(super) fn decode(bytes: &[u8]) -> Header<Self> {
        match decode_words(CHECKPOINT_MAGIC, bytes) {
            Header::Good([store, position, frame, newest]) => Header::Good(Self {
                store,
                position,
                frame,
                newest: newest.cast_signed(),
            }),
            Header::OtherFormat(format) => Header::OtherFormat(format),
            Header::Bad => Header::Bad,
        }
    }
}

/// The first bytes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Bytes of records, without the zeros after them.
    pub(super) length: u32,
    pub(super) segment: SegmentId,
    pub(super) number: u64,
    /// The distance, in frame numbers, to the newest frame that was synced when this one was
    /// written: at least 1. A missing frame before that one is damage, a missing frame after it may
    /// be a crash.
    pub(super) ahead: u32,
    pub(super) checksum: u32,
}

impl FrameHeader {
    pub(super) fn encode(self, store: u64) -> [u8; FRAME_HEADER] {
        let mut out = Fields::<FRAME_HEADER>::new();
        out.put(0, &self.length.to_le_bytes());
        out.put(8, &self.segment.0.to_le_bytes());
        out.put(16, &self.number.to_le_bytes());
        out.put(24, &self.ahead.to_le_bytes());
        out.put(28, &self.checksum.to_le_bytes());
        let checksum = checksum(store, &out.0);
        out.put(4, &checksum.to_le_bytes());
        out.0
    }

    /// Returns the header that the bytes begin with, if it is one of this segment.
    pub(super) fn decode(store: u64, segment: SegmentId, bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<FRAME_HEADER>()?;
        // Most that is looked at in a search ends here.
        if u64_at(bytes, 8) != segment.0 {
            return None;
        }
        let mut copy = Fields(*bytes);
        copy.put(4, &[0; 4]);
        if checksum(store, &copy.0) != u32_at(bytes, 4) {
            return None;
        }
        Some(Self {
            length: u32_at(bytes, 0),
            segment,
            number: u64_at(bytes, 16),
            ahead: u32_at(bytes, 24),
            checksum: u32_at(bytes, 28),
        })
    }

    /// Returns the newest frame that had been synced when this one was written.
    pub(super) fn synced(&self) -> u64 {
        self.number.saturating_sub(u64::from(self.ahead))
    }

    /// Returns the bytes from this frame's begin to the next one's.
    pub(super) fn span(&self) -> u64 {
        let whole = u64::from(self.length) + u64_of(FRAME_HEADER);
        whole.next_multiple_of(u64_of(FRAME_ALIGNMENT))
    }
}

/// Returns the checksum of a store's bytes.
pub(super) fn checksum(store: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&store.to_le_bytes()), bytes)
}

/// Returns the checksum of a body. Its frame's checksum has the store's number for both.
pub(super) fn body_checksum(body: &[u8]) -> u32 {
    crc32c::crc32c(body)
}

/// Returns whether the bytes where a frame would begin say that they are one of this segment, or of
/// this number, whole or not.
pub(super) fn claims_frame(segment: SegmentId, number: u64, bytes: &[u8]) -> bool {
    bytes
        .first_chunk::<FRAME_HEADER>()
        .is_some_and(|bytes| u64_at(bytes, 8) == segment.0 || u64_at(bytes, 16) == number)
}

/// Widens a length.
pub(super) fn u64_of(length: usize) -> u64 {
    u64::try_from(length).expect("no machine has wider addresses")
}

/// Narrows a length that is known to fit.
pub(super) fn usize_of(length: u64) -> usize {
    usize::try_from(length).expect("it is below the length of a segment")
}

/// A header in the making.
struct Fields<const N: usize>([u8; N]);

impl<const N: usize> Fields<N> {
    fn new() -> Self {
        Self([0; N])
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let place = self
            .0
            .get_mut(at..at + bytes.len())
            .expect("the field is within its header");
        place.copy_from_slice(bytes);
    }
}

fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
    u32::from_le_bytes(*field.expect("the field is within its header"))
}

fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
    u64::from_le_bytes(*field.expect("the field is within its header"))
}
