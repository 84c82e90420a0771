//! A log as rows of a store's tables: how frames become a row, and how rows become the log again.
//!
//! A row has consecutive frames of one segment, which were appended by one statement: it is kept wholly
//! or not at all. It covers the same bytes of the log as the frames have in a file, so that a body's
//! position means the same in both. The records are kept apart from the bodies: recovery reads the
//! records alone, and so in a fraction of the time. Frame headers are not kept: their fields are the row's.
//!
//! ```text
//!  position ┌────────┬─────────────────────────┬────────┬──────────────────┐ position + span
//!           │ header │ records, with bodies    │ header │ records, ...     │
//!           └────────┴─────────────────────────┴────────┴──────────────────┘
//!             (zeros)  meta: records without bodies, and where bodies were cut out; body: all bodies
//! ```
//!
//! `docs/store-format.md` has the format to the byte.

use std::cell::Cell;
use std::ops::Range;

use bytes::{BufMut as _, Bytes, BytesMut};

use super::appender::Appended;
use super::codec::{self, Decoder};
use super::layout::{FRAME_ALIGNMENT, FRAME_HEADER, Position, checksum, u64_of, usize_of};
use super::recover::{MALFORMED, Recovered, Replay, replay_records};
use super::usage::Usage;
use super::writer::Start;
use super::{CheckpointAt, Error, Frame, LogReader, Options, SegmentId, Writer, checkpoint};
use jitney_base::ids::BodyRef;
use jitney_base::time::Timestamp;
use jitney_queue::Record;

/// Consecutive frames of one segment, to be appended by one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Where in the log they begin.
    pub position: u64,
    /// Bytes of the log that they take.
    pub span: u64,
    /// The number of the last of them.
    pub frame: u64,
    /// The records without their bodies.
    pub meta: Bytes,
    /// The bodies, one after the other.
    pub body: Bytes,
}

/// The place of a row in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPlace {
    /// Where its first frame begins.
    pub position: u64,
    /// Bytes of the log that it takes.
    pub span: u64,
    /// The number of its last frame.
    pub frame: u64,
}

impl RowPlace {
    /// The row before the first one of a log: it has no frames.
    pub const ROOT: Self = Self {
        position: 1 << 36,
        span: 64,
        frame: 0,
    };

    /// Returns the segment.
    #[must_use]
    pub fn segment(&self) -> SegmentId {
        Position::from_u64(self.position).segment
    }

    /// Returns whether a row at a position may follow this one: right behind it, or at the begin of the next
    /// segment.
    #[must_use]
    pub fn precedes(&self, position: u64) -> bool {
        let next = Position::begin(SegmentId(self.segment().0 + 1));
        position == self.position + self.span || position == next.to_u64()
    }
}

/// Returns the segment of a position, and the offset there in bytes.
#[must_use]
pub fn place(position: u64) -> (SegmentId, u64) {
    let Position { segment, offset } = Position::from_u64(position);
    (segment, offset)
}

/// Returns the position of an offset in a segment.
#[must_use]
pub fn position(segment: SegmentId, offset: u64) -> u64 {
    Position { segment, offset }.to_u64()
}

/// A row that was read, or could not be.
#[derive(Debug)]
pub struct StoredRow {
    /// Its place.
    pub place: RowPlace,
    /// The records without their bodies.
    pub meta: Bytes,
}

impl Row {
    /// Makes a row of consecutive frames of one segment, of a log with this store number.
    ///
    /// # Panics
    ///
    /// If there is none, or a frame is not as the writer seals it.
    #[must_use]
    pub fn of(store: u64, frames: &[Frame]) -> Self {
        let (first, last) = (frames.first(), frames.last());
        let (first, last) = first.zip(last).expect("a row has frames");
        let mut cuts = Cuts::default();
        for frame in frames {
            let records = records_of(frame);
            cuts.lengths.push(records.len());
            cuts.take(records);
        }
        let mut meta = BytesMut::with_capacity(cuts.records.len() + 8 * cuts.bodies.len() + 32);
        meta.put_u32_le(0);
        varint(&mut meta, cuts.lengths.len());
        for length in &cuts.lengths {
            varint(&mut meta, *length);
        }
        varint(&mut meta, cuts.bodies.len());
        for (skipped, length) in &cuts.bodies {
            varint(&mut meta, *skipped);
            varint(&mut meta, *length);
        }
        meta.extend_from_slice(&cuts.records);
        seal(store, first.position, &mut meta);
        Self {
            position: first.position,
            span: last.position - first.position + u64_of(last.bytes.len()),
            frame: last.number,
            meta: meta.freeze(),
            body: cuts.body.freeze(),
        }
    }

    /// Returns its place.
    #[must_use]
    pub fn place(&self) -> RowPlace {
        RowPlace {
            position: self.position,
            span: self.span,
            frame: self.frame,
        }
    }
}

/// Returns how many of these frames can be one row: those of the first one's segment, of about so many bytes in
/// all.
#[must_use]
pub fn fit(frames: &[Frame], bytes: usize) -> usize {
    let Some(first) = frames.first() else {
        return 0;
    };
    let segment = Position::from_u64(first.position).segment;
    let mut sum = 0;
    let fits = |frame: &&Frame| {
        sum += frame.bytes.len();
        let is_near = Position::from_u64(frame.position).segment == segment;
        is_near && (sum <= bytes || frame.number == first.number)
    };
    frames.iter().take_while(fits).count()
}

/// The bodies that are cut out of the records of a row.
#[derive(Default)]
struct Cuts {
    /// Bytes of records with their bodies, of each frame.
    lengths: Vec<usize>,
    /// Bytes between the body before and this one, and its length.
    bodies: Vec<(usize, usize)>,
    /// Bytes since the last body.
    since: usize,
    records: BytesMut,
    body: BytesMut,
}

impl Cuts {
    fn take(&mut self, records: &[u8]) {
        let mut decoder = Decoder::new(records);
        let mut done = 0;
        loop {
            match decoder.next() {
                Ok(Some((_, None))) => {}
                Ok(Some((_, Some(body)))) => {
                    let length = usize_of(u64::from(body.length));
                    let (before, rest) = records.split_at(body.offset);
                    let kept = before.get(done..).unwrap_or_default();
                    let cut = rest.get(..length).unwrap_or_default();
                    self.records.extend_from_slice(kept);
                    self.body.extend_from_slice(cut);
                    self.bodies.push((self.since + kept.len(), length));
                    self.since = 0;
                    done = body.offset + length;
                }
                Ok(None) => break,
                Err(codec::MalformedRecord) => unreachable!("the writer has made these records"),
            }
        }
        let rest = records.get(done..).unwrap_or_default();
        self.records.extend_from_slice(rest);
        self.since += rest.len();
    }
}

fn records_of(frame: &Frame) -> &[u8] {
    let length = usize_of(u64::from(frame.length));
    let records = frame.bytes.get(FRAME_HEADER..FRAME_HEADER + length);
    records.expect("a sealed frame has its records")
}

/// Writes the checksum of a row's meta, which depends on its place too.
fn seal(store: u64, position: u64, meta: &mut BytesMut) {
    let sum = sum(store, position, meta.get(4..).unwrap_or_default());
    for (to, from) in meta.iter_mut().zip(sum.to_le_bytes()) {
        *to = from;
    }
}

fn sum(store: u64, position: u64, rest: &[u8]) -> u32 {
    crc32c::crc32c_append(checksum(store, &position.to_le_bytes()), rest)
}

fn varint(out: &mut BytesMut, value: usize) {
    let mut value = u64_of(value);
    while 0x80 <= value {
        out.put_u8(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
        value >>= 7;
    }
    out.put_u8(u8::try_from(value).unwrap_or_default());
}

/// The contents of a row.
#[derive(Debug)]
pub struct Unpacked {
    /// The bytes of the log from its position on. Frame headers are zeros, and so are bodies if they were not
    /// given.
    bytes: Vec<u8>,
    /// Where the records of each frame begin and end in there.
    frames: Vec<(usize, usize)>,
    /// Where the bodies are in there, in their order.
    bodies: Vec<Range<usize>>,
}

impl Unpacked {
    /// Returns the bytes of the log from the row's position on.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns which bytes of the row's bodies, one behind the other, a range of these bytes has; none if it has no
    /// body.
    #[must_use]
    pub fn needed(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let mut needed: Option<Range<usize>> = None;
        let mut before = 0;
        for body in &self.bodies {
            let (start, end) = (body.start.max(range.start), body.end.min(range.end));
            if start < end {
                let (start, end) = (before + start - body.start, before + end - body.start);
                needed = Some(needed.map_or(start, |needed| needed.start)..end);
            }
            before += body.len();
        }
        needed
    }

    /// Puts some bytes of the row's bodies where they belong; `at` is where they are in all of them.
    pub fn put(&mut self, at: usize, part: &[u8]) {
        let mut before = 0;
        for body in &self.bodies {
            let start = before.max(at);
            let end = (before + body.len()).min(at + part.len());
            if start < end {
                let from = part.get(start - at..end - at).unwrap_or_default();
                let place = body.start + start - before;
                let to = self.bytes.get_mut(place..place + from.len());
                to.unwrap_or_default().copy_from_slice(from);
            }
            before += body.len();
        }
    }
}

/// The reasons why a row is not what was written.
const WRONG_SUM: &str = "a row's checksum is wrong";
const WRONG_LENGTHS: &str = "a row's lengths do not fit its place";
const WRONG_BODY: &str = "a row's bodies have another length than its records say";

/// Makes the bytes of the log of a row; without bodies, those are zeros.
///
/// # Errors
///
/// The row is not what was written.
pub fn unpack(
    store: u64,
    place: RowPlace,
    meta: &[u8],
    bodies: Option<&[u8]>,
) -> Result<Unpacked, Error> {
    let damaged = |what| damaged(place.position, what);
    let (head, rest) = meta.split_at_checked(4).ok_or_else(|| damaged(WRONG_SUM))?;
    let found = head.first_chunk().map(|head| u32::from_le_bytes(*head));
    if found != Some(sum(store, place.position, rest)) {
        return Err(damaged(WRONG_SUM));
    }
    let span = usize_of(place.span);
    let mut reader = Reader { rest };
    // The checksum is right, so the counts are what was written; each takes at least a byte.
    let unpacked = (|| {
        let count = reader.count()?;
        let lengths = (0..count).map(|_| reader.varint());
        let lengths = lengths.collect::<Option<Vec<usize>>>()?;
        let count = reader.count()?;
        let cuts = (0..count).map(|_| Some((reader.varint()?, reader.varint()?)));
        let cuts = cuts.collect::<Option<Vec<(usize, usize)>>>()?;
        // The place has no checksum: its span is not believed unless it is that of the frames.
        let taken = lengths.iter().try_fold(0_usize, |before, length| {
            let end = before.checked_add(FRAME_HEADER)?.checked_add(*length)?;
            end.checked_next_multiple_of(FRAME_ALIGNMENT)
        });
        taken.filter(|taken| *taken == span)?;
        let mut records = Joined::new(reader.rest, bodies, &cuts);
        let mut bytes = Vec::with_capacity(span);
        let mut frames = Vec::with_capacity(lengths.len());
        for length in lengths {
            bytes.resize(bytes.len() + FRAME_HEADER, 0);
            let start = bytes.len();
            let end = start + length;
            records.fill(&mut bytes, end)?;
            frames.push((start, end));
            bytes.resize(end.next_multiple_of(FRAME_ALIGNMENT), 0);
        }
        records.is_at_end().then_some(Unpacked {
            bytes,
            frames,
            bodies: records.places,
        })
    })();
    unpacked.ok_or_else(|| {
        damaged(if bodies.is_some() {
            WRONG_BODY
        } else {
            WRONG_LENGTHS
        })
    })
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn varint(&mut self) -> Option<usize> {
        let mut value: u64 = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return usize::try_from(value).ok();
            }
        }
        None
    }

    /// Reads a number of things of which each takes a byte or more.
    fn count(&mut self) -> Option<usize> {
        self.varint().filter(|count| *count <= self.rest.len())
    }
}

/// Records with their bodies put back.
struct Joined<'a> {
    records: &'a [u8],
    /// `None`: zeros are put there.
    bodies: Option<&'a [u8]>,
    cuts: &'a [(usize, usize)],
    /// Bytes of records before the next body.
    before: usize,
    /// Bytes of that body that are to come.
    body: usize,
    /// Where bodies were put.
    places: Vec<Range<usize>>,
}

impl<'a> Joined<'a> {
    fn new(records: &'a [u8], bodies: Option<&'a [u8]>, cuts: &'a [(usize, usize)]) -> Self {
        let mut joined = Self {
            records,
            bodies,
            cuts,
            before: 0,
            body: 0,
            places: Vec::with_capacity(cuts.len()),
        };
        joined.next_cut();
        joined
    }

    fn next_cut(&mut self) {
        match self.cuts.split_first() {
            Some((&(before, body), rest)) => {
                (self.before, self.body, self.cuts) = (before, body, rest);
            }
            None => (self.before, self.body) = (usize::MAX, 0),
        }
    }

    /// Appends records with their bodies up to a length.
    fn fill(&mut self, out: &mut Vec<u8>, end: usize) -> Option<()> {
        while out.len() < end {
            if 0 < self.before {
                let count = self.before.min(end - out.len());
                let (now, rest) = self.records.split_at_checked(count)?;
                out.extend_from_slice(now);
                self.records = rest;
                self.before -= if self.before == usize::MAX { 0 } else { count };
            } else {
                let count = self.body.min(end - out.len());
                self.places.push(out.len()..out.len() + count);
                match &mut self.bodies {
                    Some(bodies) => {
                        let (now, rest) = bodies.split_at_checked(count)?;
                        out.extend_from_slice(now);
                        *bodies = rest;
                    }
                    None => out.resize(out.len() + count, 0),
                }
                self.body -= count;
            }
            if self.before == 0 && self.body == 0 {
                self.next_cut();
            }
        }
        Some(())
    }

    fn is_at_end(&self) -> bool {
        let has_bodies = self.bodies.is_some_and(|rest| !rest.is_empty());
        self.records.is_empty() && self.cuts.is_empty() && self.body == 0 && !has_bodies
    }
}

/// A log in rows, as it is read. [`LogReader::read`] finds the bytes of bodies by their positions.
pub trait RowLog: LogReader {
    /// Returns the rows from a position on, in their order, with their random numbers.
    ///
    /// # Errors
    ///
    /// The store refuses, or cannot be reached.
    fn tail(&self, from: u64) -> Result<Tail<'_>, Error>;

    /// Returns the last row before a position; none in a log without rows there.
    ///
    /// # Errors
    ///
    /// The store refuses, or cannot be reached.
    fn last_before(&self, position: u64) -> Result<Option<Appended>, Error>;
}

/// The rows of a log, with their random numbers.
pub type Tail<'a> = Box<dyn Iterator<Item = Result<(StoredRow, i64), Error>> + 'a>;

/// Replays a log that is kept in rows, and gets it ready to be written: its newest checkpoint, then all rows from the
/// checkpoint's position on. Returns its last row, too: the next is appended after it.
///
/// # Errors
///
/// [`Error::CorruptRows`] and [`Error::CorruptCheckpoint`] if something is not what was written or is missing,
/// [`Error::Replay`] if `replay` failed.
pub fn recover_rows(
    log: &dyn RowLog,
    options: Options,
    replay: &mut Replay<'_>,
) -> Result<(Recovered<()>, Appended), Error> {
    let from = log.checkpoints()?.last().copied();
    let from = from.unwrap_or(RowPlace::ROOT.position);
    let mut last = log.last_before(from)?.unwrap_or(Appended::ROOT);
    // A checkpoint lies between two groups, which may be in one row.
    let has_both = from < last.place.position + last.place.span;
    let rows = log.tail(if has_both { last.place.position } else { from })?;
    let mut rows = rows.map(|row| {
        let (row, id) = row?;
        let place = row.place;
        last = Appended { place, id };
        Ok(row)
    });
    let recovered = replay_rows(log, options, &mut rows, replay)?;
    if last.place.frame != recovered.last_frame {
        return Err(damaged(
            from,
            "rows are missing before the position of the checkpoint",
        ));
    }
    Ok((recovered, last))
}

fn replay_rows(
    log: &dyn LogReader,
    options: Options,
    rows: &mut dyn Iterator<Item = Result<StoredRow, Error>>,
    replay: &mut Replay<'_>,
) -> Result<Recovered<()>, Error> {
    let records = Cell::new(0);
    let mut counting = |record: &Record<'_>, body: Option<BodyRef>| {
        records.set(records.get() + 1);
        replay(record, body)
    };
    let found = checkpoint::read(log, &mut counting)?;
    let of_checkpoint = records.get();
    let store = options.store;
    let checkpoint = found.unwrap_or(CheckpointAt {
        store,
        position: Position::START,
        frame: 0,
        newest: Timestamp::EPOCH,
        appended: 0,
        records: 0,
        bytes: 0,
    });
    let mut usage = Usage::default();
    for (segment, length) in log.segments()? {
        usage.grow(segment, length);
    }
    let mut state = RowRecovery {
        store,
        // What lies before it is not read.
        last: RowPlace {
            position: checkpoint.position.to_u64(),
            span: 0,
            frame: checkpoint.frame,
        },
        newest: checkpoint.newest,
        appended: 0,
        frames: 0,
    };
    for row in rows {
        state.replay_row(&row?, &mut counting)?;
    }
    let position = Position::from_u64(state.last.position + state.last.span);
    usage.grow(position.segment, position.offset);
    let last_frame = state.last.frame;
    let writer = Writer::new(Start {
        disk: None,
        options,
        store,
        position,
        last_frame,
        newest: state.newest,
        checkpoint,
        appended: state.appended,
        records: records.get() - of_checkpoint,
        usage,
        has_loss: false,
    });
    Ok(Recovered {
        writer,
        committer: (),
        newest: state.newest,
        last_frame,
        records: records.get(),
        frames: state.frames,
        cut: None,
        damaged: Vec::new(),
        losses: Vec::new(),
    })
}

struct RowRecovery {
    store: u64,
    last: RowPlace,
    newest: Timestamp,
    appended: u64,
    frames: u64,
}

impl RowRecovery {
    fn replay_row(&mut self, row: &StoredRow, replay: &mut Replay<'_>) -> Result<(), Error> {
        let place = row.place;
        let damaged = |what| damaged(place.position, what);
        let mut unpacked = unpack(self.store, place, &row.meta, None)?;
        let checkpoint = self.last.position;
        let is_in_row = (place.position + 1..place.position + place.span).contains(&checkpoint);
        if self.last.span == 0 && is_in_row {
            // The checkpoint has the first groups of the row, up to one that begins right there.
            let begins = |start: usize| place.position + u64_of(start - FRAME_HEADER);
            unpacked
                .frames
                .retain(|&(start, _)| checkpoint <= begins(start));
            let first = unpacked.frames.first();
            if first.is_none_or(|&(start, _)| begins(start) != checkpoint) {
                return Err(damaged("no group of a row begins at the checkpoint"));
            }
        } else if !self.last.precedes(place.position) {
            return Err(damaged("a row does not follow the one before it"));
        }
        let count = u64_of(unpacked.frames.len());
        if place.frame != self.last.frame + count {
            return Err(damaged("frames are missing before a row"));
        }
        for &(start, end) in &unpacked.frames {
            let records = unpacked.bytes.get(start..end).unwrap_or_default();
            let begin = place.position + u64_of(start);
            let malformed = || damaged(MALFORMED);
            replay_records(records, begin, &mut self.newest, replay, malformed)?;
        }
        self.frames += count;
        self.appended += place.span;
        self.last = place;
        Ok(())
    }
}

/// Returns the error of a row whose bodies are not all there.
#[must_use]
pub fn without_bodies(place: RowPlace) -> Error {
    damaged(place.position, "a part of a row's bodies is missing")
}

fn damaged(position: u64, what: &'static str) -> Error {
    let Position { segment, offset } = Position::from_u64(position);
    Error::CorruptRows {
        segment,
        offset,
        what,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::MemoryDisk;
    use jitney_base::ids::{EntityId, SequenceNumber};
    use jitney_base::time::Millis;
    use jitney_queue::{Journal as _, StoredState};

    const STORE: u64 = 7;
    const ENTITY: EntityId = EntityId(3);

    fn writer() -> Writer {
        let disk = Arc::new(MemoryDisk::new());
        let mut options = Options::new(STORE);
        options.segment_bytes = 4096;
        super::super::recover(disk, options, &mut |_, _| Ok(()))
            .unwrap()
            .writer
    }

    fn enqueue(writer: &mut Writer, number: u64, body: &[u8]) -> BodyRef {
        let record = Record::Enqueued {
            entity: ENTITY,
            number: SequenceNumber(number),
            at: Timestamp::from_millis(1_000),
            time_to_live: Millis::from_secs(9),
            state: StoredState::Active,
            message_session: None,
            duplicate_key: None,
            amendments: None,
            body,
        };
        writer.append(&record).unwrap()
    }

    /// Frames with bodies of these lengths, three in each.
    fn frames(writer: &mut Writer, lengths: &[usize]) -> (Vec<Frame>, Vec<(BodyRef, Vec<u8>)>) {
        let (mut frames, mut bodies) = (Vec::new(), Vec::new());
        let mut number = 0;
        for lengths in lengths.chunks(3) {
            for &length in lengths {
                number += 1;
                let body: Vec<u8> = (0..length)
                    .map(|at| u8::try_from(at % 251).unwrap())
                    .collect();
                bodies.push((enqueue(writer, number, &body), body));
                writer.append(&Record::Removed {
                    entity: ENTITY,
                    number: SequenceNumber(number),
                });
            }
            frames.push(writer.seal().unwrap());
        }
        (frames, bodies)
    }

    #[test]
    fn a_row_has_the_bytes_of_its_frames_at_their_places() {
        let mut writer = writer();
        let (frames, bodies) = frames(&mut writer, &[0, 1, 5, 300, 2, 7, 1000, 0, 0]);
        let row = Row::of(STORE, &frames);
        assert_eq!(row.frame, 3);
        let unpacked = unpack(STORE, row.place(), &row.meta, Some(&row.body)).unwrap();
        for frame in &frames {
            let start = usize_of(frame.position - row.position) + FRAME_HEADER;
            let records = &frame.bytes[FRAME_HEADER..];
            assert_eq!(&unpacked.bytes()[start..start + records.len()], records);
        }
        for (place, body) in bodies {
            let start = usize_of(place.position - row.position);
            assert_eq!(&unpacked.bytes()[start..start + body.len()], body);
        }
        let total: usize = [0, 1, 5, 300, 2, 7, 1000].iter().sum();
        assert_eq!(row.body.len(), total, "bodies are apart");
    }

    #[test]
    fn a_range_of_a_row_needs_only_the_bodies_in_it() {
        const PART: usize = 64;
        let mut writer = writer();
        let (frames, _) = frames(&mut writer, &[0, 1, 5, 300, 2, 7, 700, 0, 0]);
        let row = Row::of(STORE, &frames);
        let whole = unpack(STORE, row.place(), &row.meta, Some(&row.body)).unwrap();
        let whole = whole.bytes();
        for start in 0..whole.len() {
            for end in [start + 1, start + 40, whole.len()] {
                let range = start..end.min(whole.len());
                let mut found = unpack(STORE, row.place(), &row.meta, None).unwrap();
                if let Some(needed) = found.needed(&range) {
                    assert!(needed.end <= row.body.len() && needed.len() <= range.len());
                    for part in needed.start / PART..needed.end.div_ceil(PART) {
                        let at = part * PART;
                        found.put(at, &row.body[at..row.body.len().min(at + PART)]);
                    }
                }
                assert_eq!(
                    &found.bytes()[range.clone()],
                    &whole[range.clone()],
                    "{range:?}"
                );
            }
        }
    }

    #[test]
    fn a_row_that_was_changed_anywhere_is_refused() {
        let mut writer = writer();
        let (frames, _) = frames(&mut writer, &[4, 0, 30]);
        let row = Row::of(STORE, &frames);
        for at in 0..row.meta.len() {
            let mut meta = row.meta.to_vec();
            meta[at] ^= 0x10;
            assert!(unpack(STORE, row.place(), &meta, None).is_err(), "{at}");
        }
        let cut = &row.body[1..];
        assert!(unpack(STORE, row.place(), &row.meta, Some(cut)).is_err());
        let moved = RowPlace {
            position: row.position + 8,
            ..row.place()
        };
        assert!(unpack(STORE, moved, &row.meta, None).is_err());
        assert!(unpack(STORE + 1, row.place(), &row.meta, None).is_err());
        for more in [8, 1 << 40, 1 << 62] {
            let longer = RowPlace {
                span: row.span + more,
                ..row.place()
            };
            assert!(unpack(STORE, longer, &row.meta, None).is_err(), "{more}");
        }
    }

    #[test]
    fn rows_are_replayed_without_their_bodies() {
        let mut writer = writer();
        let (frames, bodies) = frames(&mut writer, &[100; 45]);
        let mut rows = Vec::new();
        let mut rest = &frames[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fit(rest, 700));
            rows.push(Row::of(STORE, now));
            rest = later;
        }
        assert!(rows.iter().any(|row| row.place().segment() == SegmentId(2)));
        let empty = MemoryDisk::new();
        let mut options = Options::new(STORE);
        options.segment_bytes = 4096;
        let stored = |row: &Row| StoredRow {
            place: row.place(),
            meta: row.meta.clone(),
        };
        let mut found = Vec::new();
        let mut all = rows.iter().map(|row| Ok(stored(row)));
        let recovered = replay_rows(&empty, options, &mut all, &mut |_, body| {
            found.extend(body);
            Ok(())
        });
        let recovered = recovered.unwrap();
        let places: Vec<BodyRef> = bodies.iter().map(|(place, _)| *place).collect();
        assert_eq!(found, places);
        assert_eq!(recovered.last_frame, 15);
        let mut next = recovered.writer;
        let barrier = next.barrier();
        assert_eq!((barrier.number, barrier.length), (16, 0));
        let last = rows.last().unwrap().place();
        assert!(last.precedes(barrier.position));
        // A missing row is found, wherever it is.
        for missing in 0..rows.len() - 1 {
            let kept = rows.iter().enumerate().filter(|(at, _)| *at != missing);
            let mut kept = kept.map(|(_, row)| Ok(stored(row)));
            let recovered = replay_rows(&empty, options, &mut kept, &mut |_, _| Ok(()));
            assert!(recovered.is_err(), "{missing}");
        }
    }

    #[test]
    fn frames_of_one_row_are_of_one_segment_and_not_too_many() {
        let mut writer = writer();
        let (frames, _) = frames(&mut writer, &[900; 12]);
        assert_eq!(fit(&[], 10), 0);
        assert_eq!(fit(&frames, 10), 1, "one in any case");
        let first = Position::from_u64(frames[0].position).segment;
        let same = frames
            .iter()
            .filter(|it| Position::from_u64(it.position).segment == first);
        assert_eq!(fit(&frames, 1 << 30), same.count());
        assert!(RowPlace::ROOT.precedes(frames[0].position));
    }
}
