//! Stretches of the log that are in memory: recent frames, and what was read back.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::reading::{Stretch, slice};
use crate::entity::BodyRef;

/// Recent frames and read stretches, each up to its budget; the oldest go first.
#[derive(Debug)]
pub(super) struct Cache {
    budget: usize,
    /// By position, which rises.
    frames: VecDeque<Recent>,
    frame_bytes: usize,
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
}

impl Cache {
    /// Takes the budget in bytes; a quarter of it is for what is read.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            budget,
            frames: VecDeque::new(),
            frame_bytes: 0,
            reads: BTreeMap::new(),
            read_order: VecDeque::new(),
            read_bytes: 0,
        }
    }

    pub(super) fn push_frame(&mut self, number: u64, position: u64, bytes: Bytes) {
        self.frame_bytes += bytes.len();
        self.frames.push_back(Recent {
            number,
            position,
            bytes,
        });
    }

    /// Lets old frames go; none that is not durable, as the disk may not have it yet.
    pub(super) fn evict(&mut self, durable: u64) {
        while self.budget - self.budget / 4 < self.frame_bytes {
            let Some(oldest) = self.frames.pop_front_if(|oldest| oldest.number <= durable) else {
                return;
            };
            self.frame_bytes -= oldest.bytes.len();
        }
    }

    pub(super) fn push_read(&mut self, stretch: Stretch) {
        let position = stretch.position;
        self.read_bytes += stretch.bytes.len();
        match self.reads.insert(position, stretch) {
            Some(old) => self.read_bytes -= old.bytes.len(),
            None => self.read_order.push_back(position),
        }
        while self.budget / 4 < self.read_bytes && 1 < self.read_order.len() {
            let oldest = self.read_order.pop_front();
            if let Some(old) = oldest.and_then(|position| self.reads.remove(&position)) {
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
        stretch.body(body)
    }
}
