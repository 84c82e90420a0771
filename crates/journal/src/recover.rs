//! Recovery: read the newest checkpoint, then every frame after it, then truncate the incomplete
//! end.
//!
//! The end of the log is the first position in its last segment without a whole frame. Bytes after
//! it were never synced and are removed, unless a later frame says that the missing one had been
//! synced when it was written. That, and a missing frame anywhere else, is damage, and nothing is
//! changed. [`read_log`] reads in the same way, and changes nothing at all.

use std::collections::VecDeque;
use std::sync::Arc;

use super::codec::{self, Decoder};
use super::damage::{self, Cut, DamagedBody, Loss};
use super::layout::{
    self, FRAME_ALIGNMENT, FRAME_HEADER, FrameHeader, Header, Position, SEGMENT_HEADER,
    SegmentHeader, checksum, u64_of, usize_of,
};
use super::reading::Window;
use super::usage::Usage;
use super::writer::Start;
use super::{
    CheckpointAt, Committer, Disk, Error, LogReader, Options, SegmentId, Writer, checkpoint,
};
use crate::limits;
use jitney_base::ids::BodyRef;
use jitney_base::time::Timestamp;
use jitney_queue::Record;

/// Receives each record of a log, with the position of its body if it has one.
pub type Replay<'a> = dyn FnMut(&Record<'_>, Option<BodyRef>) -> Result<(), String> + 'a;

/// A log that was read.
///
/// `C` is what writes its next frames: a [`Committer`] where [`recover`] has made the log ready for that. A log that
/// is only read has none, and neither has one in rows: an [`Appender`](super::appender::Appender) decides there.
pub struct Recovered<C = Committer> {
    /// Its end; every live body is to be counted with [`Writer::retain`].
    pub writer: Writer,
    /// The writer of the log.
    pub committer: C,
    /// The largest timestamp of anything that happened.
    pub newest: Timestamp,
    /// The last frame: the next has the next number.
    pub last_frame: u64,
    /// Records that were replayed.
    pub records: u64,
    /// Frames that were replayed.
    pub frames: u64,
    /// Bytes after the end that a crash left. [`recover`] cuts them off.
    pub cut: Option<Cut>,
    /// Messages whose bodies are damaged, in frames whose records are good.
    pub damaged: Vec<DamagedBody>,
    /// The losses that were accepted.
    pub losses: Vec<Loss>,
}

/// Replays what a disk holds, and gets it ready to be written.
///
/// # Errors
///
/// Those of [`read_log`]: nothing on the disk was changed then. The disk cannot be written.
pub fn recover(
    disk: Arc<dyn Disk>,
    options: Options,
    replay: &mut Replay<'_>,
) -> Result<Recovered, Error> {
    let recovery = Recovery::replayed(&*disk, options, replay)?;
    recovery.clean_end(&*disk)?;
    let current = recovery.current.map(|found| found.id);
    let (store, last_frame) = (recovery.store, recovery.last_frame);
    let committer = Committer::new(Arc::clone(&disk), store, current, last_frame);
    Ok(recovery.into_recovered(options, Some(Arc::clone(&disk)), committer))
}

/// Replays what a log in segments holds, and changes nothing of it.
///
/// # Errors
///
/// [`Error::Corrupt`] and [`Error::CorruptCheckpoint`] if synced bytes have changed,
/// [`Error::Version`] if they are of another format, [`Error::Replay`] if `replay` failed.
pub fn read_log(
    log: &dyn LogReader,
    options: Options,
    replay: &mut Replay<'_>,
) -> Result<Recovered<()>, Error> {
    let recovery = Recovery::replayed(log, options, replay)?;
    Ok(recovery.into_recovered(options, None, ()))
}

/// What the frames before the checkpoint were found to be, which a start does not read.
#[derive(Debug, Default)]
pub struct Older {
    /// Frames with good records.
    pub frames: u64,
    /// Bodies that are damaged in frames whose records are good.
    pub damaged: Vec<DamagedBody>,
    /// Frames that are damaged.
    pub losses: Vec<Loss>,
}

/// Checks the segments before that of the checkpoint, of which a start reads live bodies alone.
///
/// # Errors
///
/// A segment cannot be read.
pub fn check_older<C>(log: &dyn LogReader, recovered: &Recovered<C>) -> Result<Older, Error> {
    let checkpoint = recovered.writer.checkpoint();
    let segments = log.segments()?;
    let count = segments.partition_point(|(id, _)| *id < checkpoint.position.segment);
    let mut older = Older::default();
    for (at, &(id, length)) in segments.iter().enumerate().take(count) {
        let next = segments.get(at + 1).filter(|(next, _)| next.0 == id.0 + 1);
        let next = next.map(|&(id, length)| first_frame(log, checkpoint.store, id, length));
        let next = next.transpose()?.flatten();
        let Some(first) = first_frame(log, checkpoint.store, id, length)? else {
            let (segment, offset, what) = (id, 0, "its header is not whole");
            older.losses.push(Loss {
                segment,
                offset,
                what,
            });
            continue;
        };
        let mut recovery = Recovery::within(log, checkpoint, id, first);
        let mut window = Window::new(log, id, length);
        match recovery.replay_whole(&mut window, next, &mut |_, _| Ok(())) {
            Ok(()) => {}
            Err(Error::Corrupt {
                segment,
                offset,
                what,
            }) => recovery.losses.push(Loss {
                segment,
                offset,
                what,
            }),
            Err(error) => return Err(error),
        }
        // A segment is begun only when the one before it is synced: nothing there may be torn.
        if let Some(cut) = recovery.cut.filter(|_| recovery.losses.is_empty()) {
            recovery.losses.push(Loss {
                segment: cut.segment,
                offset: cut.offset,
                what: "a frame is damaged",
            });
        }
        older.frames += recovery.frames;
        older.damaged.append(&mut recovery.damaged);
        older.losses.append(&mut recovery.losses);
    }
    Ok(older)
}

/// Returns the number of a segment's first frame, if its header is good.
fn first_frame(
    log: &dyn LogReader,
    store: u64,
    id: SegmentId,
    length: u64,
) -> Result<Option<u64>, Error> {
    let mut window = Window::new(log, id, length);
    let header = SegmentHeader::decode(window.bytes(0, u64_of(SEGMENT_HEADER))?);
    Ok(match header {
        Header::Good(header) if header.segment == id && header.store == store => {
            Some(header.first_frame)
        }
        Header::Good(_) | Header::Bad | Header::OtherFormat(_) => None,
    })
}

struct Recovery<'a> {
    log: &'a dyn LogReader,
    store: u64,
    /// A checkpoint or a segment has told the store's number.
    is_store_known: bool,
    /// Those that are replayed: without gaps, the first one has the checkpoint's place.
    segments: Vec<SearchResult>,
    end: Position,
    last_frame: u64,
    newest: Timestamp,
    appended: u64,
    /// The newest checkpoint.
    checkpoint: Option<CheckpointAt>,
    /// Records that were replayed, those of the checkpoint among them.
    records: u64,
    /// Frames that were replayed.
    frames: u64,
    usage: Usage,
    /// The segment that is written on.
    current: Option<SearchResult>,
    /// The offset of the checkpoint in its segment, if frames lie before it there.
    lies_behind: Option<Position>,
    /// The newest frame that is known to be synced, and the frames after it in the newest segment
    /// with their offsets.
    synced: u64,
    unsynced: VecDeque<(u64, u64)>,
    damaged: Vec<DamagedBody>,
    losses: Vec<Loss>,
    accepts_loss: bool,
    /// Changes to make on the disk when everything was read.
    cut: Option<Cut>,
    never_begun: Option<SegmentId>,
    /// Segments that are shorter than they were made, and how long that was.
    short: Vec<(SegmentId, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct SearchResult {
    id: SegmentId,
    length: u64,
    header: SegmentHeader,
}

impl<'a> Recovery<'a> {
    /// Begins at the first frame of a segment, whose number is known; losses are collected.
    fn within(log: &'a dyn LogReader, checkpoint: CheckpointAt, id: SegmentId, first: u64) -> Self {
        let last_frame = first.saturating_sub(1);
        Self {
            log,
            store: checkpoint.store,
            is_store_known: true,
            segments: Vec::new(),
            end: Position::begin(id),
            last_frame,
            newest: checkpoint.newest,
            appended: 0,
            checkpoint: Some(checkpoint),
            records: 0,
            frames: 0,
            usage: Usage::default(),
            current: None,
            lies_behind: None,
            synced: last_frame,
            unsynced: VecDeque::new(),
            damaged: Vec::new(),
            losses: Vec::new(),
            accepts_loss: true,
            cut: None,
            never_begun: None,
            short: Vec::new(),
        }
    }

    /// Replays all of a log: its newest checkpoint, and every frame after it.
    fn replayed(
        log: &'a dyn LogReader,
        options: Options,
        replay: &mut Replay<'_>,
    ) -> Result<Self, Error> {
        let mut records = 0;
        let mut counting = |record: &Record<'_>, body: Option<BodyRef>| {
            records += 1;
            replay(record, body)
        };
        let checkpoint = checkpoint::read(log, &mut counting)?;
        let segments = log.segments()?;
        let mut recovery = Self::new(log, options, checkpoint, &segments)?;
        recovery.replay_segments(&mut counting)?;
        recovery.records = records;
        // The end of a segment after skipped frames is not an end of its own.
        let end = recovery.end.offset;
        recovery.cut = recovery.cut.filter(|cut| cut.offset == end);
        Ok(recovery)
    }

    /// Returns the log with what writes its next frames, and the disk that must have room for them; if any are written.
    fn into_recovered<C>(
        self,
        options: Options,
        disk: Option<Arc<dyn Disk>>,
        committer: C,
    ) -> Recovered<C> {
        let Self {
            store,
            end,
            last_frame,
            newest,
            appended,
            checkpoint,
            records,
            frames,
            usage,
            damaged,
            losses,
            cut,
            ..
        } = self;
        let checkpoint = checkpoint.unwrap_or(CheckpointAt {
            store,
            position: Position::START,
            frame: 0,
            newest: Timestamp::EPOCH,
            appended: 0,
            records: 0,
            bytes: 0,
        });
        let writer = Writer::new(Start {
            disk,
            options,
            store,
            position: end,
            last_frame,
            newest,
            checkpoint,
            appended,
            // The checkpoints of a log in files go by its bytes.
            records: 0,
            usage,
            has_loss: !losses.is_empty(),
        });
        Recovered {
            writer,
            committer,
            newest,
            last_frame,
            records,
            frames,
            cut,
            damaged,
            losses,
        }
    }

    /// Looks at the headers of the segments that are to be replayed.
    fn new(
        log: &'a dyn LogReader,
        options: Options,
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
        let last_frame = checkpoint.map_or(0, |at| at.frame);
        let has_frames = |at: &Position| Position::begin(at.segment).offset < at.offset;
        let mut recovery = Self {
            log,
            store: checkpoint.map_or(options.store, |at| at.store),
            is_store_known: checkpoint.is_some(),
            segments: Vec::new(),
            end,
            last_frame,
            newest: checkpoint.map_or(Timestamp::EPOCH, |at| at.newest),
            appended: 0,
            checkpoint,
            records: 0,
            frames: 0,
            usage,
            current: None,
            lies_behind: checkpoint.map(|at| at.position).filter(has_frames),
            synced: last_frame,
            unsynced: VecDeque::new(),
            damaged: Vec::new(),
            losses: Vec::new(),
            accepts_loss: options.accepts_loss,
            cut: None,
            never_begun: None,
            short: Vec::new(),
        };
        let mut expected = end.segment;
        let last = rest.last().map_or(expected, |&(id, _)| id);
        for &(id, length) in rest {
            if id != expected {
                let what = "the segment is missing, and later ones are there";
                recovery.lose(expected, 0, what)?;
            }
            expected = SegmentId(id.0 + 1);
            let found = recovery.look_at(id, length, last)?;
            recovery.segments.extend(found);
        }
        if recovery.segments.is_empty() && 0 < recovery.last_frame {
            recovery.lose(end.segment, 0, "the checkpoint's segment is missing")?;
        }
        Ok(recovery)
    }

    /// Reads a segment's header; `None` if it was never written. The first header has the store's
    /// number, if no checkpoint does.
    fn look_at(
        &mut self,
        id: SegmentId,
        length: u64,
        last: SegmentId,
    ) -> Result<Option<SearchResult>, Error> {
        let mut window = Window::new(self.log, id, length);
        let header = SegmentHeader::decode(window.bytes(0, u64_of(SEGMENT_HEADER))?);
        let header = match header {
            Header::Good(header) if header.segment == id => {
                if !self.is_store_known {
                    (self.is_store_known, self.store) = (true, header.store);
                }
                if header.store != self.store {
                    return Err(corrupt(id, 0, "it belongs to another log"));
                }
                if length < header.prepared {
                    self.lose(id, length, "the file ends here, and was made longer")?;
                    self.short.push((id, header.prepared));
                }
                header
            }
            Header::OtherFormat(found) => {
                return Err(Error::Version {
                    place: format!("segment {id}"),
                    found,
                    known: layout::FORMAT,
                });
            }
            // A removed segment's header: this one was to be the next and was never begun.
            Header::Good(_) | Header::Bad => {
                let may_be_new = id == last
                    && if self.is_store_known {
                        self.search(&mut window, u64_of(SEGMENT_HEADER))?.frames == 0
                    } else {
                        Self::is_empty(&mut window)?
                    };
                if may_be_new {
                    // A file is made whole before it gets its name.
                    if length < u64_of(SEGMENT_HEADER) {
                        self.lose(id, length, "the file ends within its header")?;
                    }
                    self.never_begun = Some(id);
                    return Ok(None);
                }
                if !self.is_store_known {
                    let what = "its header is incomplete, and no other has the number of the \
                                store, without which --accept-data-loss finds nothing either";
                    return Err(corrupt(id, 0, what));
                }
                self.lose(id, 0, "its header is not whole")?;
                SegmentHeader {
                    store: self.store,
                    segment: id,
                    first_frame: 0,
                    prepared: 0,
                }
            }
        };
        Ok(Some(SearchResult { id, length, header }))
    }

    /// Returns an error, unless the loss is accepted.
    fn lose(&mut self, segment: SegmentId, offset: u64, what: &'static str) -> Result<(), Error> {
        if !self.accepts_loss {
            return Err(corrupt(segment, offset, what));
        }
        self.losses.push(Loss {
            segment,
            offset,
            what,
        });
        Ok(())
    }

    /// Returns whether nothing was written to the first segment of a log behind its header: it is not a recycled one, so that bytes
    /// other than zero were.
    fn is_empty(window: &mut Window<'_>) -> Result<bool, Error> {
        let mut offset = u64_of(SEGMENT_HEADER);
        loop {
            let bytes = window.bytes(offset, u64_of(limits::RECOVERY_READ_BYTES))?;
            if bytes.is_empty() {
                return Ok(true);
            }
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            offset += u64_of(bytes.len());
        }
    }

    fn replay_segments(&mut self, replay: &mut Replay<'_>) -> Result<(), Error> {
        let segments = std::mem::take(&mut self.segments);
        for (at, found) in segments.iter().enumerate() {
            let mut window = Window::new(self.log, found.id, found.length);
            if self.end.segment != found.id {
                self.end = Position::begin(found.id);
                let first = found.header.first_frame;
                if first != 0 && first != self.last_frame + 1 {
                    let what = "it does not continue where the last one ended";
                    self.lose(found.id, 0, what)?;
                    self.last_frame = self.last_frame.max(first - 1);
                }
                // A segment is begun only when the one before it is synced.
                self.synced = self.last_frame;
                self.unsynced.clear();
            }
            let next = segments.get(at + 1).map(|next| next.header.first_frame);
            self.replay_whole(&mut window, next, replay)?;
            self.current = Some(*found);
            // A file may end before the position of its checkpoint.
            let length = self.end.offset.min(found.length);
            self.usage.grow(found.id, length);
        }
        Ok(())
    }

    /// Replays a segment up to the next one's first frame, or to the log's end.
    fn replay_whole(
        &mut self,
        window: &mut Window<'_>,
        next: Option<u64>,
        replay: &mut Replay<'_>,
    ) -> Result<(), Error> {
        loop {
            self.replay_segment(window, replay)?;
            let damage = match next {
                // Unknown if the header of the next one is lost.
                Some(0) => None,
                // A segment is begun only when the one before it is synced.
                Some(first) => (first != self.last_frame + 1).then_some("a frame is damaged"),
                None => self.find_end(window)?,
            };
            let Some(what) = damage else { return Ok(()) };
            if self.replay_damaged(window, replay)? {
                continue;
            }
            self.lose(window.segment, self.end.offset, what)?;
            if self.skip(window)? {
                continue;
            }
            if let Some(first) = next {
                self.last_frame = self.last_frame.max(first - 1);
            }
            return Ok(());
        }
    }

    /// Replays a frame of which only bodies are damaged; returns whether it was one.
    fn replay_damaged(
        &mut self,
        window: &mut Window<'_>,
        replay: &mut Replay<'_>,
    ) -> Result<bool, Error> {
        let (segment, offset) = (window.segment, self.end.offset);
        let bytes = window.bytes(offset, u64_of(FRAME_HEADER))?;
        let header = FrameHeader::decode(self.store, segment, bytes);
        let Some(header) = header.filter(|header| header.number == self.last_frame + 1) else {
            return Ok(false);
        };
        let frame = window.bytes(offset, header.span())?;
        let payload = frame.get(FRAME_HEADER..).unwrap_or_default();
        let begin = self.end.to_u64() + u64_of(FRAME_HEADER);
        let Some(damaged) = damage::damaged_bodies(self.store, &header, payload, begin) else {
            return Ok(false);
        };
        self.damaged.extend(damaged);
        self.replay_frame(&header, payload, replay)?;
        Ok(true)
    }

    /// Goes to the next frame of the segment that has a good header; returns whether there is one.
    fn skip(&mut self, window: &mut Window<'_>) -> Result<bool, Error> {
        let from = self.end.offset + u64_of(FRAME_ALIGNMENT);
        let last = self.last_frame;
        let mut found = None;
        damage::each_header(self.store, window, from, |offset, header| {
            if last < header.number {
                found = Some((offset, header.number));
            }
            found.is_none()
        })?;
        if let Some((offset, number)) = found {
            (self.end.offset, self.last_frame) = (offset, number - 1);
        }
        Ok(found.is_some())
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
            self.replay_frame(&header, payload, replay)?;
        }
    }

    /// Replays the records of the frame at the end.
    fn replay_frame(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        replay: &mut Replay<'_>,
    ) -> Result<(), Error> {
        let records = payload
            .get(..usize_of(u64::from(header.length)))
            .unwrap_or_default();
        let begin = self.end.to_u64() + u64_of(FRAME_HEADER);
        let Position { segment, offset } = self.end;
        let malformed = || corrupt(segment, offset, MALFORMED);
        replay_records(records, begin, &mut self.newest, replay, malformed)?;
        self.synced = self.synced.max(header.synced());
        self.unsynced.push_back((header.number, self.end.offset));
        let synced = self.synced;
        while self
            .unsynced
            .pop_front_if(|(number, _)| *number <= synced)
            .is_some()
        {}
        self.last_frame = header.number;
        self.frames += 1;
        self.end.offset += header.span();
        self.appended += header.span();
        Ok(())
    }

    /// Decides what the bytes after the end of the last segment are: nothing, the remains of a
    /// crash, or damage, which is returned.
    fn find_end(&mut self, window: &mut Window<'_>) -> Result<Option<&'static str>, Error> {
        let end = self.end.offset;
        let (segment, number) = (window.segment, self.last_frame + 1);
        let bytes = window.bytes(end, u64_of(FRAME_HEADER))?;
        let torn = layout::claims_frame(segment, number, bytes);
        let behind = self.search(window, end)?;
        if torn || 0 < behind.frames {
            let until = behind.until.max(end + u64_of(FRAME_HEADER));
            self.cut = Some(Cut {
                segment: window.segment,
                offset: end,
                bytes: until - end,
                frames: behind.frames.max(1),
            });
        }
        if self.last_frame < behind.synced {
            return Ok(Some("a frame is damaged, with good ones after it"));
        }
        if self.lies_behind == Some(self.end) && !self.ends_here(window)? {
            return Ok(Some("the log ends before the position of its checkpoint"));
        }
        Ok(None)
    }

    /// Returns whether the last frame ends where the log does, with records that are good.
    fn ends_here(&self, window: &mut Window<'_>) -> Result<bool, Error> {
        let (end, last) = (self.end.offset, self.last_frame);
        let from = u64_of(SEGMENT_HEADER);
        let mut found = None;
        damage::each_header(self.store, window, from, |offset, header| {
            if header.number == last && offset + header.span() == end {
                found = Some((offset, *header));
            }
            found.is_none() && offset < end
        })?;
        let Some((offset, header)) = found else {
            return Ok(false);
        };
        let frame = window.bytes(offset, header.span())?;
        let payload = frame.get(FRAME_HEADER..).unwrap_or_default();
        if checksum(self.store, payload) == header.checksum {
            return Ok(true);
        }
        // Zeros up to the end may continue after it.
        let records = payload.get(..usize_of(u64::from(header.length)));
        let ends_in_zeros = records.is_none_or(|records| records.ends_with(&[0; 4]));
        let damaged = damage::damaged_bodies(self.store, &header, payload, 0);
        Ok(!ends_in_zeros && damaged.is_some())
    }

    /// Looks for headers of later frames at every place from here on where one could be.
    fn search(&self, window: &mut Window<'_>, from: u64) -> Result<Behind, Error> {
        let mut behind = Behind::default();
        let last = self.last_frame;
        damage::each_header(self.store, window, from, |offset, header| {
            if last < header.number {
                behind.frames += 1;
                behind.until = behind.until.max(offset + header.span());
                behind.synced = behind.synced.max(header.synced());
            }
            true
        })?;
        Ok(behind)
    }

    /// Changes the disk that was read, now that all is known to be good.
    fn clean_end(&self, disk: &dyn Disk) -> Result<(), Error> {
        if let Some(segment) = self.never_begun {
            disk.remove_segment(segment)?;
        }
        for &(segment, prepared) in &self.short {
            disk.write(segment, prepared - 1, &[&[0]])?;
            disk.sync(segment)?;
        }
        if let Some(cut) = self.cut {
            disk.truncate(cut.segment, cut.offset)?;
        }
        // Frames that a killed process had not synced were read back all the same: from here on
        // they count, so they must stay.
        if let Some(current) = self.current {
            self.write_tail_again(disk, &current)?;
            disk.sync(current.id)?;
        }
        Ok(())
    }

    /// Writes the frames again that are not known to be synced, as they are, and the segment's header.
    /// After a sync that failed the system may have them in memory only, and take them for written.
    fn write_tail_again(&self, disk: &dyn Disk, current: &SearchResult) -> Result<(), Error> {
        let rewrite = || -> Result<(), Error> {
            disk.write(current.id, 0, &[&current.header.encode()])?;
            let Some(&(_, mut offset)) = self.unsynced.front() else {
                return Ok(());
            };
            let mut bytes = vec![0; limits::RECOVERY_READ_BYTES];
            while offset < self.end.offset {
                let left = self.end.offset - offset;
                let wanted = bytes.len().min(usize_of(left));
                let part = bytes.get_mut(..wanted).unwrap_or_default();
                let count = disk.read(current.id, offset, part)?;
                let part = part.get(..count).filter(|part| !part.is_empty());
                let Some(part) = part else { break };
                disk.write(current.id, offset, &[part])?;
                offset += u64_of(count);
            }
            Ok(())
        };
        match rewrite() {
            // Where even written bytes need new space, they stay as they are.
            Err(Error::Full) => Ok(()),
            done => done,
        }
    }
}

/// What is wrong with a frame whose checksum is right and whose records are not.
pub(super) const MALFORMED: &str = "a record cannot be read";

/// Replays the records of a frame, which begin at this position of the log; raises `newest` to the times in them.
pub(super) fn replay_records(
    records: &[u8],
    begin: u64,
    newest: &mut Timestamp,
    replay: &mut Replay<'_>,
    malformed: impl FnOnce() -> Error,
) -> Result<(), Error> {
    let mut decoder = Decoder::new(records);
    loop {
        match decoder.next() {
            Ok(Some((record, body))) => {
                let body = body.map(|body| BodyRef {
                    position: begin + u64_of(body.offset),
                    length: body.length,
                });
                if let Some(at) = codec::happened_at(&record) {
                    *newest = (*newest).max(at);
                }
                replay(&record, body).map_err(Error::Replay)?;
            }
            Ok(None) => return Ok(()),
            Err(codec::MalformedRecord) => return Err(malformed()),
        }
    }
}

/// The result of a search.
#[derive(Default)]
struct Behind {
    /// Headers of frames.
    frames: u64,
    /// Where the last of them ends.
    until: u64,
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
