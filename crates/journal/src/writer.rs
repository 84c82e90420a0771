//! The log's end, for its owner: groups are put together here, and checkpoints and compactions
//! become due. Nothing here waits; frames go to the disk through a [`Committer`](super::Committer).
//!
//! Invariants: a body has its position from the moment it is appended, so a frame begins at the end
//! of the one before it, or in a new segment; frame numbers have no gap; released bytes count as
//! live until the frame that releases them is durable.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::cache::Cache;
use super::codec;
use super::layout::{FRAME_ALIGNMENT, FRAME_HEADER, Position, u64_of};
use super::reading::Stretch;
use super::usage::{LogStatistics, Usage};
use super::{Disk, Error, Options, SegmentId, Space};
use jitney_base::ids::BodyRef;
use jitney_base::time::Timestamp;
use jitney_queue::{Journal, Positions, Record};

/// One group commit, ready to be written: its records are kept all or none.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Counts frames without a gap, over restarts too; the first is 1.
    pub number: u64,
    /// Where it begins: bodies in it lie at their positions less this one.
    pub position: u64,
    /// A header's room, the records, and zeros up to the next frame.
    pub bytes: Bytes,
    /// Bytes of records.
    pub(super) length: u32,
}

/// A position between two frames that a checkpoint can represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointAt {
    pub(super) store: u64,
    pub(super) position: Position,
    /// The last frame before it.
    pub(super) frame: u64,
    /// The largest timestamp before it.
    pub(super) newest: Timestamp,
    /// Bytes of frames before it, counted as [`Writer`] does.
    pub(super) appended: u64,
    /// Records before it, counted as [`Writer`] does.
    pub(super) records: u64,
    /// Bytes of its records, when it is written.
    pub(super) bytes: u64,
}

/// The end of the durable log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// The number of the log's store.
    pub store: u64,
    /// The newest durable frame.
    pub frame: u64,
    /// The segment in which it ends.
    pub segment: SegmentId,
    /// The offset of its end there, bytes.
    pub offset: u64,
}

impl LogEnd {
    /// Returns whether a checkpoint, by its number, represents nothing after this end.
    #[must_use]
    pub fn has_checkpoint(&self, number: u64) -> bool {
        let Self {
            segment, offset, ..
        } = *self;
        Position::from_u64(number) <= Position { segment, offset }
    }
}

/// The writing end of the log.
pub struct Writer {
    disk: Option<Arc<dyn Disk>>,
    options: Options,
    store: u64,
    /// The frame that is being put together: empty, or a header's room and records.
    open: BytesMut,
    /// Bodies in it that are alive.
    open_alive: u32,
    /// Bytes that a frame has, about: the largest of the last ones.
    usual: usize,
    /// Where the open frame is, or the next one will be.
    position: Position,
    /// The last frame that was sealed.
    sealed: u64,
    durable: u64,
    /// The end of each frame after `durable`.
    ends: VecDeque<Position>,
    /// Where the last durable frame ends.
    durable_end: Position,
    newest: Timestamp,
    cache: Cache,
    usage: Usage,
    /// Bytes of frames, from the checkpoint on that the recovery began with.
    appended: u64,
    /// Records, from there on too.
    records: u64,
    /// The newest checkpoint that is on the disk.
    checkpoint: CheckpointAt,
    /// No checkpoint is due before this many bytes were appended: the last attempt failed.
    checkpoint_retry: u64,
    /// A part of the log is lost: a checkpoint of the rest is due.
    has_loss: bool,
}

/// The result of recovery.
pub(super) struct Start {
    /// The disk that must have room for the next frames; none if they are appended as rows, or not at all.
    pub(super) disk: Option<Arc<dyn Disk>>,
    pub(super) options: Options,
    pub(super) store: u64,
    /// Where the next frame goes, unless that is beyond a segment's nominal size.
    pub(super) position: Position,
    pub(super) last_frame: u64,
    pub(super) newest: Timestamp,
    pub(super) checkpoint: CheckpointAt,
    pub(super) appended: u64,
    /// Records after the checkpoint.
    pub(super) records: u64,
    pub(super) usage: Usage,
    pub(super) has_loss: bool,
}

impl Writer {
    pub(super) fn new(start: Start) -> Self {
        Self {
            cache: Cache::new(start.options.cache_bytes),
            disk: start.disk,
            options: start.options,
            store: start.store,
            open: BytesMut::new(),
            open_alive: 0,
            usual: 0,
            position: start.position,
            sealed: start.last_frame,
            durable: start.last_frame,
            ends: VecDeque::new(),
            durable_end: start.position,
            newest: start.newest,
            usage: start.usage,
            appended: start.appended,
            records: start.records,
            checkpoint: start.checkpoint,
            checkpoint_retry: 0,
            has_loss: start.has_loss,
        }
    }

    /// Returns what the log has.
    #[must_use]
    pub fn statistics(&self) -> LogStatistics {
        self.usage.statistics()
    }

    /// Ends the open frame; `None` if nothing was appended.
    ///
    /// # Panics
    ///
    /// If its records are longer than 4 GiB together.
    pub fn seal(&mut self) -> Option<Frame> {
        if self.open.is_empty() {
            return None;
        }
        let records = self.open.len() - FRAME_HEADER;
        let length = u32::try_from(records).expect("limits keep a group below 4 GiB");
        let span = self.open.len().next_multiple_of(FRAME_ALIGNMENT);
        self.open.resize(span, 0);
        self.usual = span.max(self.usual - self.usual / 64);
        let frame = std::mem::take(&mut self.open);
        let alive = std::mem::take(&mut self.open_alive);
        let position = self.position.to_u64();
        self.sealed += 1;
        self.position.offset += u64_of(span);
        self.usage.grow(self.position.segment, self.position.offset);
        self.appended += u64_of(span);
        self.ends.push_back(self.position);
        self.cache.push_frame(self.sealed, position, frame, alive);
        let bytes = self.cache.newest();
        self.cache.evict(self.durable);
        Some(Frame {
            number: self.sealed,
            position,
            bytes,
            length,
        })
    }

    /// Seals a frame without records. Its append shows that the log is this server's, before anything is answered.
    ///
    /// # Panics
    ///
    /// If something was appended that is not sealed.
    pub fn barrier(&mut self) -> Frame {
        assert!(self.open.is_empty(), "a barrier lies between two groups");
        self.begin();
        self.seal().expect("a frame was begun")
    }

    /// Returns the bytes of the open frame.
    #[must_use]
    pub fn open_bytes(&self) -> usize {
        self.open.len()
    }

    /// Returns a body that is in memory.
    #[must_use]
    pub fn cached(&self, body: BodyRef) -> Option<Bytes> {
        // A body that was relocated a moment ago may be asked for, by an old delivery.
        if let Some(start) = body.position.checked_sub(self.position.to_u64()) {
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(usize::try_from(body.length).ok()?)?;
            return self.open.get(start..end).map(Bytes::copy_from_slice);
        }
        self.cache.find(body)
    }

    /// Says how many bytes of recent groups and of read ones may stay in memory.
    pub fn set_cache_bytes(&mut self, bytes: usize) {
        self.cache.set_budget(bytes, self.durable);
    }

    /// Caches bytes that were read.
    pub fn insert_read(&mut self, stretch: Stretch) {
        self.cache.push_read(stretch);
    }

    /// Says up to which frame the log is durable.
    pub fn durable(&mut self, frame: u64) {
        debug_assert!(frame <= self.sealed, "frame {frame} was never sealed");
        while self.durable < frame {
            self.durable += 1;
            if let Some(end) = self.ends.pop_front() {
                self.durable_end = end;
            }
        }
        self.cache.evict(frame);
    }

    /// Returns the random number of the log's store.
    #[must_use]
    pub fn store(&self) -> u64 {
        self.store
    }

    /// Returns the position up to which the log may be read: bytes after it may still change on the
    /// disk.
    #[must_use]
    pub fn readable_until(&self) -> u64 {
        self.durable_end.to_u64()
    }

    /// Returns where the durable log ends: all that was acknowledged lies before it, and its bytes
    /// do not change any more.
    #[must_use]
    pub fn durable_end(&self) -> LogEnd {
        let Position { segment, offset } = self.durable_end;
        LogEnd {
            store: self.store,
            frame: self.durable,
            segment,
            offset,
        }
    }

    /// Returns the newest checkpoint that is on the disk.
    pub(super) fn checkpoint(&self) -> CheckpointAt {
        self.checkpoint
    }

    /// Returns whether messages are admitted; a full disk is left to records that free space.
    #[must_use]
    pub fn accepts_messages(&self) -> bool {
        self.disk.as_ref().is_none_or(|disk| disk.has_room())
    }

    /// Returns how much space the disk has, if that is known.
    #[must_use]
    pub fn space(&self) -> Option<Space> {
        self.disk.as_ref()?.space()
    }

    /// Returns whether enough was written since the last checkpoint for the next one.
    #[must_use]
    pub fn checkpoint_due(&self) -> bool {
        let behind = self.appended - self.checkpoint.appended;
        if behind == 0 || self.appended < self.checkpoint_retry {
            return false;
        }
        if self.has_loss {
            return true;
        }
        if !self.accepts_messages() {
            let (old, current) = (self.checkpoint.position.segment, self.position.segment);
            return self.usage.has_empty_from(old, current);
        }
        // A checkpoint writes the live entries and the other state of entities. Eight times that
        // must have been written in between, which recovery reads in about a second per some
        // gigabytes.
        let alive = self.usage.alive_count().saturating_mul(ALIVE_RECORD_BYTES);
        let worth = alive.max(self.checkpoint.bytes).saturating_mul(8);
        self.options.segment_bytes.max(worth) <= behind
            || self.options.tail_records_max <= self.records - self.checkpoint.records
    }

    /// Returns the position right after the last sealed frame; the next checkpoint represents the
    /// log up to it.
    #[must_use]
    pub fn checkpoint_at(&self) -> CheckpointAt {
        debug_assert!(self.open.is_empty(), "a checkpoint lies between two groups");
        CheckpointAt {
            store: self.store,
            position: self.position,
            frame: self.sealed,
            newest: self.newest,
            appended: self.appended,
            records: self.records,
            bytes: 0,
        }
    }

    /// Records that this checkpoint is on the disk: the result of
    /// [`write_checkpoint`](super::write_checkpoint).
    pub fn checkpoint_written(&mut self, at: CheckpointAt) {
        self.checkpoint = at;
        self.checkpoint_retry = 0;
        self.has_loss = false;
    }

    /// Says that a checkpoint could not be written: the next is not tried at once.
    pub fn checkpoint_failed(&mut self) {
        self.checkpoint_retry = self.appended + self.options.segment_bytes / 64;
    }

    /// Returns the positions of old segments with little alive, that should be appended anew.
    #[must_use]
    pub fn compaction_candidates(&mut self) -> Option<Positions> {
        self.usage
            .compaction_candidates(self.position.segment, self.options.segment_bytes)
    }

    /// Keeps a body's segment until [`Writer::unpin`]: it will be read, and may be dead by then.
    pub fn pin(&mut self, body: BodyRef) {
        self.usage.pin(body);
    }

    /// Says that a body that was pinned was read, or is not wanted any more.
    pub fn unpin(&mut self, body: BodyRef) {
        self.usage.unpin(body);
    }

    /// Takes out the segments that nothing needs: wholly before the newest written checkpoint,
    /// nothing alive, durably so, and nothing pinned.
    #[must_use]
    pub fn take_removable(&mut self) -> Vec<SegmentId> {
        self.usage
            .take_removable(self.checkpoint.position.segment, self.durable)
    }

    /// Counts a body as alive, after replay.
    pub fn retain(&mut self, body: BodyRef) {
        self.usage.recover(body);
    }

    /// Says after replay, when all that is alive was retained, whether all of it is there.
    pub fn check_bodies(&self) -> Result<(), Error> {
        let Some(Position { segment, offset }) = self.usage.lost().next() else {
            return Ok(());
        };
        Err(Error::Corrupt {
            segment,
            offset,
            what: "a message's bytes are missing",
        })
    }

    /// Returns where bodies that are alive should be and are not, as [`Writer::check_bodies`] finds;
    /// nothing that is appended lies there. To be asked before anything is appended.
    #[must_use]
    pub fn lost_bodies(&self) -> Positions {
        let end = self.position.to_u64();
        let lost = self.usage.lost().map(|from| {
            let next = Position::begin(SegmentId(from.segment.0 + 1));
            from.to_u64()..next.to_u64().min(end)
        });
        lost.filter(|range| !range.is_empty()).collect()
    }

    /// Opens a frame if none is open: where the last one ended, or in a new segment.
    fn begin(&mut self) {
        if !self.open.is_empty() {
            return;
        }
        if self.options.nominal() <= self.position.offset {
            self.position = Position::begin(SegmentId(self.position.segment.0 + 1));
        }
        self.usage.grow(self.position.segment, self.position.offset);
        self.open = self.cache.buffer(self.usual.max(FRAME_BYTES_MIN));
        self.open.resize(FRAME_HEADER, 0);
    }
}

impl Writer {
    /// Counts the newest time anew from now on: the clock was ahead, and has been set.
    pub fn follow_clock(&mut self, now: Timestamp) {
        self.newest = now;
    }
}

impl Journal for Writer {
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef> {
        self.begin();
        self.records += 1;
        if let Some(at) = codec::happened_at(record) {
            self.newest = self.newest.max(at);
        }
        let begin = self.open.len();
        let body = codec::encode(&mut self.open, record);
        let kind = self.open.get(begin);
        assert!(
            kind.is_some_and(|kind| *kind <= self.options.newest_kind),
            "no record is written of a kind that a server of the fleet does not read"
        );
        let body = body?;
        let position = self.position.to_u64() + u64_of(body.offset);
        let body = BodyRef {
            position,
            length: body.length,
        };
        self.usage.retain(body);
        self.open_alive += 1;
        Some(body)
    }

    fn release(&mut self, body: BodyRef) {
        self.usage.release(body, self.sealed + 1);
        if body.position < self.position.to_u64() {
            self.cache.release(body, self.sealed + 1);
        } else {
            self.open_alive = self.open_alive.saturating_sub(1);
        }
    }

    fn open_bytes(&self) -> usize {
        Self::open_bytes(self)
    }
}

/// The bytes of a message in a checkpoint, about.
const ALIVE_RECORD_BYTES: u64 = 40;
/// Bytes of memory for the smallest frame.
const FRAME_BYTES_MIN: usize = 512;
