//! Fuzzing of a log with arbitrary bytes: read it, write the result, and read that again.

use std::sync::Arc;

use bytes::BytesMut;

use super::codec::{self, Decoder};
use super::layout::{FRAME_HEADER, FrameHeader, SEGMENT_HEADER, SegmentHeader, checksum, u64_of};
use super::memory::MemoryDisk;
use super::{Disk, Options, SegmentId, recover};

const STORE: u64 = 1;
const SEGMENT: SegmentId = SegmentId(1);

/// Decodes an input as a frame's records, and as the bytes after the header of a segment; then
/// reads a log with a whole frame that holds it.
pub fn run(input: &[u8]) {
    check_records(input);
    replay(input);
    let (length, Some(last)) = (u32::try_from(input.len()), input.last()) else {
        return;
    };
    let header = FrameHeader {
        length: length.unwrap_or(u32::MAX),
        segment: SEGMENT,
        number: 1,
        ahead: 1,
        checksum: checksum(STORE, input),
    };
    let mut frame = header.encode(STORE).to_vec();
    frame.extend_from_slice(input);
    let span = header.span();
    while u64_of(frame.len()) < span {
        frame.push(0);
    }
    // Behind it there may be the beginning of another.
    let cut = usize::from(*last) % (FRAME_HEADER + input.len());
    let again = frame.get(..cut).unwrap_or_default().to_vec();
    frame.extend(again);
    replay(&frame);
}

/// Records that can be read are written as records that are read as the same.
fn check_records(input: &[u8]) {
    let mut decoder = Decoder::new(input);
    while let Ok(Some((record, _))) = decoder.next() {
        let mut written = BytesMut::new();
        codec::encode(&mut written, &record);
        let mut again = Decoder::new(&written);
        let read = again.next();
        assert!(
            matches!(&read, Ok(Some((read, _))) if *read == record),
            "{record:?} is read as {read:?}"
        );
        assert!(matches!(again.next(), Ok(None)), "{record:?} has a rest");
    }
}

/// Recovers a log with one segment. A second recovery must find the same number of records.
fn replay(bytes: &[u8]) {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let header = SegmentHeader {
        store: STORE,
        segment: SEGMENT,
        first_frame: 1,
        prepared: 0,
    };
    let header = header.encode();
    let written = disk
        .start_segment(SEGMENT)
        .and_then(|()| disk.write(SEGMENT, 0, &[&header, bytes]));
    assert!(written.is_ok(), "memory can be written");
    let options = Options {
        segment_bytes: u64_of(SEGMENT_HEADER) + (1 << 20),
        cache_bytes: 1 << 16,
        store: STORE,
        tail_records_max: u64::MAX,
        accepts_loss: false,
        newest_kind: crate::NEWEST_KIND,
    };
    let Ok(first) = recover(Arc::clone(&disk), options, &mut |_, _| Ok(())) else {
        return;
    };
    let second = recover(disk, options, &mut |_, _| Ok(()));
    assert!(
        second
            .as_ref()
            .is_ok_and(|second| second.records == first.records),
        "{} records at first, then {:?}",
        first.records,
        second
            .map(|second| second.records)
            .map_err(|error| error.to_string())
    );
}
