//! Ranges of the log that are in memory: recent frames, and frames that were read back.
//!
//! A frame in which nothing is alive any more goes at once: where receivers keep up, the same few
//! buffers are used again and again, and stay in the processor's cache.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};

use super::reading::{Stretch, slice};
use crate::limits;
use jitney_base::ids::BodyRef;

/// Recent frames and read stretches, each up to its budget; the oldest go first.
#[derive(Debug)]
pub(super) struct Cache {
    budget: usize,
    /// By ascending position. A removed one may have left an entry without bytes.
    frames: VecDeque<Recent>,
    /// Memory that the frames take.
    frame_bytes: usize,
    /// Those that have no bytes any more.
    gone: usize,
    /// Frames without live bodies: the frame with the record that ended the last, and their
    /// position. They are needed until that is durable, for a message that is received and deleted
    /// is given out then.
    dead: VecDeque<(u64, u64)>,
    /// Buffers to be used again.
    free: Vec<BytesMut>,
    reads: BTreeMap<u64, Stretch>,
    /// The order in which they came.
    read_order: VecDeque<u64>,
    read_bytes: usize,
}

#[derive(Debug)]
struct Recent {
    number: u64,
    position: u64,
    bytes: Bytes,
    /// The memory it takes, which is more than its bytes.
    held: usize,
    alive: u32,
}

impl Cache {
    /// Sets the budget in bytes; a quarter of it is for frames that were read back.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            budget,
            frames: VecDeque::new(),
            frame_bytes: 0,
            gone: 0,
            dead: VecDeque::new(),
            free: Vec::new(),
            reads: BTreeMap::new(),
            read_order: VecDeque::new(),
            read_bytes: 0,
        }
    }

    /// Sets another budget, and evicts frames beyond it.
    pub(super) fn set_budget(&mut self, budget: usize, durable: u64) {
        self.budget = budget;
        self.evict(durable);
        self.evict_reads();
    }

    /// Keeps a frame with a number of live bodies.
    pub(super) fn push_frame(&mut self, number: u64, position: u64, frame: BytesMut, alive: u32) {
        let held = frame.capacity();
        self.frame_bytes += held;
        self.frames.push_back(Recent {
            number,
            position,
            bytes: frame.freeze(),
            held,
            alive,
        });
        if alive == 0 {
            self.dead.push_back((number, position));
        }
    }

    /// Returns the newest frame's bytes.
    pub(super) fn newest(&self) -> Bytes {
        let newest = self.frames.back();
        newest.map(|frame| frame.bytes.clone()).unwrap_or_default()
    }

    /// Says that a body is not alive any more, by a record in the frame `by`.
    pub(super) fn release(&mut self, body: BodyRef, by: u64) {
        let Some(frame) = self.frame_of(body.position) else {
            return;
        };
        let end = frame.position + u64::try_from(frame.bytes.len()).unwrap_or(u64::MAX);
        if end <= body.position {
            return;
        }
        frame.alive = frame.alive.saturating_sub(1);
        if frame.alive == 0 {
            let position = frame.position;
            self.dead.push_back((by, position));
        }
    }

    /// Lets frames go that are dead, and old ones; none that is not durable, as the disk may not
    /// have it yet.
    pub(super) fn evict(&mut self, durable: u64) {
        while let Some((_, position)) = self.dead.pop_front_if(|(by, _)| *by <= durable) {
            if let Some(frame) = self.frame_of(position) {
                let (bytes, held) = (std::mem::take(&mut frame.bytes), frame.held);
                if !bytes.is_empty() {
                    self.gone += 1;
                    self.frame_bytes -= held;
                    self.reuse(bytes);
                }
            }
        }
        while let Some(frame) = self.frames.front() {
            let is_over = self.budget - self.budget / 4 < self.frame_bytes;
            if !frame.bytes.is_empty() && (!is_over || durable < frame.number) {
                break;
            }
            if let Some(frame) = self.frames.pop_front() {
                if frame.bytes.is_empty() {
                    self.gone -= 1;
                } else {
                    self.frame_bytes -= frame.held;
                    self.reuse(frame.bytes);
                }
            }
        }
        // Behind one that stays, places without bytes must not gather.
        if 64 < self.gone && self.frames.len() < 2 * self.gone {
            self.frames.retain(|frame| !frame.bytes.is_empty());
            self.gone = 0;
        }
    }

    /// Returns a buffer for a frame of about so many bytes.
    pub(super) fn buffer(&mut self, bytes: usize) -> BytesMut {
        // A buffer that is much too large would waste memory as long as its frame is kept.
        let fits = |buffer: &BytesMut| bytes <= buffer.capacity() && buffer.capacity() < 4 * bytes;
        match self.free.iter().position(fits) {
            Some(at) => self.free.swap_remove(at),
            None => BytesMut::with_capacity(bytes.next_power_of_two()),
        }
    }

    /// Keeps a buffer without other references.
    fn reuse(&mut self, bytes: Bytes) {
        if let Ok(mut buffer) = bytes.try_into_mut() {
            buffer.clear();
            if limits::FREE_BUFFERS_MAX <= self.free.len() {
                self.free.remove(0);
            }
            if buffer.capacity() <= limits::FREE_BUFFER_BYTES_MAX {
                self.free.push(buffer);
            }
        }
    }

    pub(super) fn push_read(&mut self, stretch: Stretch) {
        let position = stretch.position;
        // One that is larger than all that may be kept is read again when it is wanted again.
        if self.budget / 4 < stretch.bytes.len() {
            return;
        }
        self.read_bytes += stretch.bytes.len();
        match self.reads.insert(position, stretch) {
            Some(old) => self.read_bytes -= old.bytes.len(),
            None => self.read_order.push_back(position),
        }
        self.evict_reads();
    }

    /// Lets old reads go.
    fn evict_reads(&mut self) {
        while self.budget / 4 < self.read_bytes {
            let Some(oldest) = self.read_order.pop_front() else {
                return;
            };
            if let Some(old) = self.reads.remove(&oldest) {
                self.read_bytes -= old.bytes.len();
            }
        }
    }

    pub(super) fn find(&self, body: BodyRef) -> Option<Bytes> {
        let behind = self
            .frames
            .partition_point(|frame| frame.position <= body.position);
        let recent = behind.checked_sub(1).and_then(|at| self.frames.get(at));
        if let Some(found) = recent.and_then(|frame| slice(frame.position, &frame.bytes, body)) {
            return Some(found);
        }
        let (_, stretch) = self.reads.range(..=body.position).next_back()?;
        stretch.keep(body)
    }

    /// Finds the frame that a position lies in or after.
    fn frame_of(&mut self, position: u64) -> Option<&mut Recent> {
        let behind = self
            .frames
            .partition_point(|frame| frame.position <= position);
        self.frames.get_mut(behind.checked_sub(1)?)
    }
}
