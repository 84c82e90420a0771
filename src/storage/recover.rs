//! Recovery: the newest checkpoint, then every frame behind it, then the end is made clean.
//!
//! The end of the log is the first place in its last segment where no whole frame is. What lies
//! behind it was never synced and goes, unless a frame there says that what is missing had been
//! synced when it was written: then, and wherever else a frame is missing, that is damage, and
//! nothing is changed.

use std::sync::Arc;

use super::codec::{self, Decoder};
use super::layout::{
    self, FRAME_ALIGNMENT, FRAME_HEADER, FrameHeader, Header, Position, SEGMENT_HEADER,
    SegmentHeader, checksum, u64_of, usize_of,
};
use super::reading::Window;
use super::usage::Usage;
use super::writer::Start;
use super::{CheckpointAt, Committer, Disk, Error, Options, SegmentId, Writer, checkpoint};
use crate::entity::{BodyRef, Record};
use crate::limits;
use crate::time::Timestamp;

/// What takes each record of a log, with the place of its body if it has one.
pub type Replay<'a> = dyn FnMut(&Record<'_>, Option<BodyRef>) -> Result<(), String> + 'a;

/// A log that was recovered.
pub struct Recovered {
    /// Its end; every live body is to be counted with [`Writer::retain`].
    pub writer: Writer,
    /// What writes it.
    pub committer: Committer,
    /// The largest timestamp of anything that happened.
    pub newest: Timestamp,
    /// The last frame: the next has the next number.
    pub last_frame: u64,
    /// Records that were replayed.
    pub records: u64,
    /// Bytes behind the end that a crash left and that were cut off.
    pub cut: bool,
}

/// Replays what a disk holds, and gets it ready to be written.
///
/// # Errors
///
/// [`Error::Corrupt`] and [`Error::CorruptCheckpoint`] if synced bytes have changed,
/// [`Error::Version`] if they are of another format, [`Error::Replay`] if `replay` failed: nothing
/// on the disk was changed then.
pub fn recover(
    disk: Arc<dyn Disk>,
    options: Options,
    replay: &mut Replay<'_>,
) -> Result<Recovered, Error> {
    let mut records = 0;
    let mut counting = |record: &Record<'_>, body: Option<BodyRef>| {
        records += 1;
        replay(record, body)
    };
    let checkpoint = checkpoint::read(&*disk, &mut counting)?;
    let segments = disk.segments()?;
    let mut recovery = Recovery::new(&*disk, options.store, checkpoint, &segments)?;
    recovery.replay_segments(&mut counting)?;
    let cut = recovery.clean_end()?;
    let Recovery {
        store,
        end,
        last_frame,
        newest,
        appended,
        usage,
        current,
        ..
    } = recovery;
    let checkpoint = checkpoint.unwrap_or(CheckpointAt {
        store,
        position: Position::START,
        frame: 0,
        newest: Timestamp::EPOCH,
        appended: 0,
        bytes: 0,
    });
    let committer = Committer::new(Arc::clone(&disk), store, current, last_frame);
    let position = end;
    let writer = Writer::new(Start {
        disk,
        options,
        store,
        position,
        last_frame,
        newest,
        checkpoint,
        appended,
        usage,
    });
    Ok(Recovered {
        writer,
        committer,
        newest,
        last_frame,
        records,
        cut,
    })
}

struct Recovery<'a> {
    disk: &'a dyn Disk,
    store: u64,
    /// Those that are replayed: without gaps, the first one has the checkpoint's place.
    segments: Vec<Found>,
    end: Position,
    last_frame: u64,
    newest: Timestamp,
    appended: u64,
    usage: Usage,
    /// The segment that is written on.
    current: Option<SegmentId>,
    /// What is to be done to the disk when all was good.
    cut: Option<Position>,
    never_begun: Option<SegmentId>,
}

struct Found {
    id: SegmentId,
    length: u64,
    header: SegmentHeader,
}

impl<'a> Recovery<'a> {
    /// Looks at the headers of the segments that are to be replayed.
    fn new(
        disk: &'a dyn Disk,
        new_store: u64,
        checkpoint: Option<CheckpointAt>,
        segments: &[(SegmentId, u64)],
    ) -> Result<Self, Error> {
        let mut usage = Usage::default();
        let end = checkpoint.map_or(Position::START, |at| at.position);
        let (older, rest) =
            segments.split_at(segments.partition_point(|(id, _)| *id < end.segment));
        for &(id, length) in older {
            usage.grow(id, length);
        }
        let mut recovery = Self {
            disk,
            store: checkpoint.map_or(new_store, |at| at.store),
            segments: Vec::new(),
            end,
            last_frame: checkpoint.map_or(0, |at| at.frame),
            newest: checkpoint.map_or(Timestamp::EPOCH, |at| at.newest),
            appended: 0,
            usage,
            current: None,
            cut: None,
            never_begun: None,
        };
        let mut known = checkpoint.is_some();
        for (at, &(id, length)) in rest.iter().enumerate() {
            let expected = SegmentId(end.segment.0 + u64_of(at));
            if id != expected {
                return Err(corrupt(
                    expected,
                    0,
                    "the segment is missing, and later ones are there",
                ));
            }
            let mut window = Window::new(disk, id, length);
            let header = SegmentHeader::decode(window.bytes(0, u64_of(SEGMENT_HEADER))?);
            match header {
                Header::Good(header) if header.segment == id => {
                    if !known {
                        (known, recovery.store) = (true, header.store);
                    }
                    if header.store != recovery.store {
                        return Err(corrupt(id, 0, "it belongs to another log"));
                    }
                    recovery.segments.push(Found { id, length, header });
                }
                Header::OtherFormat(found) => {
                    let known = layout::FORMAT;
                    return Err(Error::Version {
                        place: format!("segment {id}"),
                        found,
                        known,
                    });
                }
                // A removed segment's header: this one was to be the next and was never begun.
                Header::Good(_) | Header::Bad => {
                    if at + 1 != rest.len() || recovery.holds_frames(&mut window, known)? {
                        return Err(corrupt(id, 0, "its header is not whole"));
                    }
                    recovery.never_begun = Some(id);
                }
            }
        }
        if recovery.segments.is_empty() && 0 < recovery.last_frame {
            return Err(corrupt(
                end.segment,
                0,
                "the checkpoint's segment is missing",
            ));
        }
        Ok(recovery)
    }

    /// Returns whether a segment without a header has something to lose.
    fn holds_frames(&self, window: &mut Window<'_>, store_is_known: bool) -> Result<bool, Error> {
        let begin = u64_of(SEGMENT_HEADER);
        if store_is_known {
            return Ok(self.search(window, begin)?.any);
        }
        // The first segment of a log was never another's: what is not zero was written to it.
        let mut offset = begin;
        loop {
            let bytes = window.bytes(offset, u64_of(limits::RECOVERY_READ_BYTES))?;
            if bytes.is_empty() {
                return Ok(false);
            }
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(true);
            }
            offset += u64_of(bytes.len());
        }
    }

    fn replay_segments(&mut self, replay: &mut Replay<'_>) -> Result<(), Error> {
        let segments = std::mem::take(&mut self.segments);
        for (at, found) in segments.iter().enumerate() {
            let mut window = Window::new(self.disk, found.id, found.length);
            if self.end.segment != found.id {
                self.end = Position::begin(found.id);
                if found.header.first_frame != self.last_frame + 1 {
                    return Err(corrupt(
                        found.id,
                        0,
                        "it does not go on where the last one ended",
                    ));
                }
            }
            self.replay_segment(&mut window, replay)?;
            self.current = Some(found.id);
            self.usage.grow(found.id, self.end.offset);
            let Some(next) = segments.get(at + 1) else {
                return self.find_end(&mut window);
            };
            // A segment is begun only when the one before it is synced.
            if next.header.first_frame != self.last_frame + 1 {
                return Err(corrupt(found.id, self.end.offset, "a frame is damaged"));
            }
        }
        Ok(())
    }

    /// Replays frames up to where the next one should be and is not.
    fn replay_segment(
        &mut self,
        window: &mut Window<'_>,
        replay: &mut Replay<'_>,
    ) -> Result<(), Error> {
        let id = window.segment;
        loop {
            let offset = self.end.offset;
            let bytes = window.bytes(offset, u64_of(FRAME_HEADER))?;
            let Some(header) = FrameHeader::decode(self.store, id, bytes) else {
                return Ok(());
            };
            if header.number != self.last_frame + 1 || window.length < offset + header.span() {
                return Ok(());
            }
            let frame = window.bytes(offset, header.span())?;
            let payload = frame.get(FRAME_HEADER..).unwrap_or_default();
            if u64_of(frame.len()) < header.span()
                || checksum(self.store, payload) != header.checksum
            {
                return Ok(());
            }
            let records = payload
                .get(..usize_of(u64::from(header.length)))
                .unwrap_or_default();
            let begin = self.end.to_u64() + u64_of(FRAME_HEADER);
            let mut decoder = Decoder::new(records);
            loop {
                match decoder.next() {
                    Ok(Some((record, body))) => {
                        let body = body.map(|body| BodyRef {
                            position: begin + u64_of(body.offset),
                            length: body.length,
                        });
                        if let Some(at) = codec::happened_at(&record) {
                            self.newest = self.newest.max(at);
                        }
                        replay(&record, body).map_err(Error::Replay)?;
                    }
                    Ok(None) => break,
                    Err(codec::Malformed) => {
                        return Err(corrupt(id, offset, "a record cannot be read"));
                    }
                }
            }
            self.last_frame = header.number;
            self.end.offset += header.span();
            self.appended += header.span();
        }
    }

    /// Decides what lies behind the end of the last segment: nothing, what a crash left, or
    /// frames that tell of damage.
    fn find_end(&mut self, window: &mut Window<'_>) -> Result<(), Error> {
        let end = self.end.offset;
        let torn = layout::claims_segment(window.segment, window.bytes(end, u64_of(FRAME_HEADER))?);
        let behind = self.search(window, end)?;
        if self.last_frame < behind.synced {
            return Err(corrupt(
                window.segment,
                end,
                "a frame is damaged, with good ones behind it",
            ));
        }
        if torn || behind.any {
            self.cut = Some(self.end);
        }
        Ok(())
    }

    /// Looks for headers of frames at every place from here on where one could be.
    fn search(&self, window: &mut Window<'_>, from: u64) -> Result<Behind, Error> {
        let mut behind = Behind {
            any: false,
            synced: 0,
        };
        let mut offset = from;
        loop {
            let segment = window.segment;
            let bytes = window.bytes(offset, u64_of(limits::RECOVERY_READ_BYTES))?;
            if bytes.len() < FRAME_HEADER {
                return Ok(behind);
            }
            for place in bytes.windows(FRAME_HEADER).step_by(FRAME_ALIGNMENT) {
                if let Some(header) = FrameHeader::decode(self.store, segment, place)
                    && self.last_frame < header.number
                {
                    behind.any = true;
                    behind.synced = behind.synced.max(header.synced());
                }
            }
            // The last places were too near to the stretch's end: they are the next one's first.
            let looked_at = (bytes.len() - FRAME_HEADER) / FRAME_ALIGNMENT + 1;
            offset += u64_of(looked_at * FRAME_ALIGNMENT);
        }
    }

    /// Changes the disk, now that all is known to be good.
    fn clean_end(&mut self) -> Result<bool, Error> {
        if let Some(segment) = self.never_begun {
            self.disk.remove_segment(segment)?;
        }
        if let Some(cut) = self.cut {
            self.disk.truncate(cut.segment, cut.offset)?;
        }
        // What a process that was killed had not synced was read back all the same: from here on
        // it counts, so it must stay.
        if let Some(current) = self.current {
            self.disk.sync(current)?;
        }
        Ok(self.cut.is_some())
    }
}

/// What a search found.
struct Behind {
    any: bool,
    /// The newest frame that any of them says was synced before it.
    synced: u64,
}

fn corrupt(segment: SegmentId, offset: u64, what: &'static str) -> Error {
    Error::Corrupt {
        segment,
        offset,
        what,
    }
}
