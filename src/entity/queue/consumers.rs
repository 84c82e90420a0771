//! The receivers of one queue, and whose turn it is.

use std::collections::{BTreeMap, VecDeque};

/// A receiver of a queue: the broker's name for a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerId(pub u64);

/// How a receiver takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveMode {
    /// Locked for it until it settles (peek-lock).
    PeekLock,
    /// Gone once sent (receive-and-delete).
    ReceiveAndDelete,
}

#[derive(Debug)]
struct Consumer {
    mode: ReceiveMode,
    /// Deliveries allowed in all since the attach; a serial number.
    limit: u32,
    /// Deliveries made; a serial number.
    delivered: u32,
    drain: bool,
    /// The way to it is full.
    paused: bool,
    /// It stands in the queue of those that can take a message.
    waiting: bool,
}

#[derive(Debug, Default)]
pub(super) struct Consumers {
    all: BTreeMap<ConsumerId, Consumer>,
    /// Those that can take a message, in the order of their turns; may name some that cannot any
    /// more.
    turns: VecDeque<ConsumerId>,
    draining: Vec<ConsumerId>,
}

impl Consumer {
    fn credit(&self) -> u32 {
        // Below what was delivered already it is no error, and means none [2.6.7].
        let credit = self.limit.wrapping_sub(self.delivered);
        if credit < 1 << 31 { credit } else { 0 }
    }

    fn can_take(&self) -> bool {
        self.credit() > 0 && !self.paused
    }
}

impl Consumers {
    pub(super) fn add(&mut self, id: ConsumerId, mode: ReceiveMode) {
        let (limit, delivered, drain, paused, waiting) = (0, 0, false, false, false);
        let consumer = Consumer {
            mode,
            limit,
            delivered,
            drain,
            paused,
            waiting,
        };
        self.all.insert(id, consumer);
    }

    pub(super) fn remove(&mut self, id: ConsumerId) {
        self.all.remove(&id);
        self.turns.retain(|&other| other != id);
        self.draining.retain(|&other| other != id);
    }

    pub(super) fn set_credit(&mut self, id: ConsumerId, limit: u32, drain: bool) {
        let Some(consumer) = self.all.get_mut(&id) else {
            return;
        };
        consumer.limit = limit;
        if drain && !consumer.drain {
            self.draining.push(id);
        } else if !drain && consumer.drain {
            self.draining.retain(|&other| other != id);
        }
        consumer.drain = drain;
        self.enlist(id);
    }

    pub(super) fn set_paused(&mut self, id: ConsumerId, paused: bool) {
        if let Some(consumer) = self.all.get_mut(&id) {
            consumer.paused = paused;
            self.enlist(id);
        }
    }

    /// Takes one credit from whoever's turn it is.
    pub(super) fn next_turn(&mut self) -> Option<(ConsumerId, ReceiveMode)> {
        while let Some(&id) = self.turns.front() {
            let Some(consumer) = self.all.get_mut(&id) else {
                self.turns.pop_front();
                continue;
            };
            if !consumer.can_take() {
                consumer.waiting = false;
                self.turns.pop_front();
                continue;
            }
            consumer.delivered = consumer.delivered.wrapping_add(1);
            let mode = consumer.mode;
            if self.turns.len() > 1 {
                self.turns.rotate_left(1);
            }
            return Some((id, mode));
        }
        None
    }

    /// Returns whether anybody can take a message.
    pub(super) fn is_ready(&mut self) -> bool {
        while let Some(id) = self.turns.front() {
            if let Some(consumer) = self.all.get_mut(id) {
                if consumer.can_take() {
                    return true;
                }
                consumer.waiting = false;
            }
            self.turns.pop_front();
        }
        false
    }

    /// Ends the drains: what credit is left is used up, for there is nothing to send.
    ///
    /// One whose way is full goes on draining, for there may be more for it.
    pub(super) fn end_drains(&mut self) -> Vec<ConsumerId> {
        let all = &mut self.all;
        let (paused, done): (Vec<_>, Vec<_>) = std::mem::take(&mut self.draining)
            .into_iter()
            .partition(|id| all.get(id).is_some_and(|c| c.paused && c.credit() > 0));
        self.draining = paused;
        for id in &done {
            if let Some(consumer) = self.all.get_mut(id) {
                consumer.drain = false;
                if consumer.credit() > 0 {
                    consumer.delivered = consumer.limit;
                }
            }
        }
        done
    }

    pub(super) fn is_draining(&self) -> bool {
        !self.draining.is_empty()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ConsumerId> {
        self.all.keys().copied()
    }

    fn enlist(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.all.get_mut(&id)
            && consumer.can_take()
            && !consumer.waiting
        {
            consumer.waiting = true;
            self.turns.push_back(id);
        }
    }
}
