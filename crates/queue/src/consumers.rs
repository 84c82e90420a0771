//! The receivers of one queue, and the order in which they get messages.

use std::collections::{BTreeMap, VecDeque};

use super::id_map::IdMap;
use super::scan::{Offered, Scan};
use crate::limits;
use jitney_base::time::{ClockStep, Timestamp};

/// A receiver of a queue: the broker's name for a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerId(pub u64);

/// The receiver of messages that were received by their numbers, which needs no link.
pub(super) const NO_ONE: ConsumerId = ConsumerId(u64::MAX);

/// How a receiver takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveMode {
    /// Locked for it until it settles (peek-lock).
    PeekLock,
    /// Removed once sent (receive-and-delete).
    ReceiveAndDelete,
}

/// How many bytes a receiver may be handed before some are written to its peer, given the bytes
/// that its connection has yet to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// None.
    Stopped,
    /// This many, and not one more: a larger message waits.
    Within(i64),
    /// This many, and the rest of the message with which they end.
    UpTo(i64),
}

#[derive(Debug)]
struct Consumer {
    mode: ReceiveMode,
    /// Deliveries allowed in all since the attach; a serial number.
    limit: u32,
    /// Deliveries made; a serial number.
    delivered: u32,
    /// Messages that were handed to it.
    handed_out: u64,
    /// Messages that it has locked.
    locked: usize,
    /// When something last happened to it: see [`Consumers::idle_since`].
    active_at: Option<Timestamp>,
    drain: bool,
    /// Bytes that may still be handed to it before some are written to its peer.
    window: i64,
    allowance: Allowance,
    /// It is in the queue of receivers that can take a message.
    waiting: bool,
}

#[derive(Debug, Default)]
pub(super) struct Consumers {
    all: IdMap<Consumer>,
    /// Receivers that can take a message, in the order of their turns. It may contain some that no
    /// longer can.
    turns: VecDeque<ConsumerId>,
    draining: Vec<ConsumerId>,
    /// The scans of receivers that read the queue at their own position, and have no turns.
    scans: BTreeMap<ConsumerId, Scan>,
}

impl Consumer {
    fn credit(&self) -> u32 {
        // A limit below the deliveries made already is no error, and grants no credit [2.6.7].
        let credit = self.limit.wrapping_sub(self.delivered);
        if credit < 1 << 31 { credit } else { 0 }
    }

    fn set_limit(&mut self, now: Timestamp, limit: u32) {
        if self.limit != limit || self.active_at.is_none() {
            self.active_at = Some(now);
        }
        self.limit = limit;
    }

    fn hand_out(&mut self) {
        self.delivered = self.delivered.wrapping_add(1);
        self.handed_out += 1;
    }

    fn can_take(&self) -> bool {
        self.credit() > 0 && self.has_window()
    }

    /// Returns whether it may be handed a message of any size.
    fn has_window(&self) -> bool {
        match self.allowance {
            Allowance::Stopped => false,
            Allowance::Within(bytes) | Allowance::UpTo(bytes) => 0 < self.left(bytes),
        }
    }

    /// Returns how many bytes of an allowance are left.
    fn left(&self, bytes: i64) -> i64 {
        bytes - (limits::RECEIVER_WINDOW_BYTES - self.window)
    }

    /// Returns whether it may be handed a message of so many bytes.
    fn fits(&self, bytes: u32) -> bool {
        match self.allowance {
            Allowance::Within(most) => i64::from(bytes) <= self.left(most),
            Allowance::Stopped | Allowance::UpTo(_) => true,
        }
    }
}

impl Consumers {
    pub(super) fn add(&mut self, id: ConsumerId, mode: ReceiveMode) {
        let consumer = Consumer {
            mode,
            limit: 0,
            delivered: 0,
            handed_out: 0,
            locked: 0,
            active_at: None,
            drain: false,
            window: limits::RECEIVER_WINDOW_BYTES,
            allowance: Allowance::UpTo(limits::RECEIVER_WINDOW_BYTES),
            waiting: false,
        };
        self.all.insert(id.0, consumer);
    }

    pub(super) fn add_scan(&mut self, id: ConsumerId, mode: ReceiveMode, scan: Scan) {
        self.add(id, mode);
        self.scans.insert(id, scan);
    }

    pub(super) fn scans(&self) -> &BTreeMap<ConsumerId, Scan> {
        &self.scans
    }

    pub(super) fn scan_mut(&mut self, id: ConsumerId) -> Option<&mut Scan> {
        self.scans.get_mut(&id)
    }

    /// Records that a message can be delivered.
    pub(super) fn offer(&mut self, ordinal: u64, offered: Offered) {
        for scan in self.scans.values_mut() {
            scan.offer(ordinal, offered);
        }
    }

    /// Forgets a message that was removed.
    pub(super) fn forget(&mut self, ordinal: u64) {
        for scan in self.scans.values_mut() {
            scan.forget(ordinal);
        }
    }

    pub(super) fn remove(&mut self, id: ConsumerId) {
        self.all.remove(id.0);
        self.scans.remove(&id);
        self.turns.retain(|&other| other != id);
        self.draining.retain(|&other| other != id);
    }

    pub(super) fn set_credit(&mut self, now: Timestamp, id: ConsumerId, limit: u32) {
        let Some(consumer) = self.all.get_mut(id.0) else {
            return;
        };
        consumer.set_limit(now, limit);
        if consumer.drain {
            consumer.drain = false;
            self.draining.retain(|&other| other != id);
        }
        self.enlist(id);
    }

    pub(super) fn drain(&mut self, now: Timestamp, id: ConsumerId, limit: u32) {
        let Some(consumer) = self.all.get_mut(id.0) else {
            return;
        };
        consumer.set_limit(now, limit);
        if !consumer.drain {
            consumer.drain = true;
            self.draining.push(id);
        }
        self.enlist(id);
    }

    /// Opens the window again by the bytes written to the peer; returns whether that lets a
    /// receiver continue.
    pub(super) fn written(&mut self, id: ConsumerId, bytes: i64) -> bool {
        let Some(consumer) = self.all.get_mut(id.0) else {
            return false;
        };
        let was_full = !consumer.has_window();
        consumer.window = (consumer.window + bytes).min(limits::RECEIVER_WINDOW_BYTES);
        let is_within = matches!(consumer.allowance, Allowance::Within(_));
        let goes_on = (was_full || is_within) && consumer.has_window();
        if goes_on {
            self.enlist(id);
        }
        goes_on
    }

    /// Sets the allowance of a receiver; returns whether that lets it continue.
    pub(super) fn allow(&mut self, id: ConsumerId, allowance: Allowance) -> bool {
        let Some(consumer) = self.all.get_mut(id.0) else {
            return false;
        };
        let is_new = consumer.allowance != allowance;
        consumer.allowance = allowance;
        let goes_on = is_new && consumer.can_take();
        if goes_on {
            self.enlist(id);
        }
        goes_on
    }

    /// Takes one credit from the receiver whose turn it is, and the message's bytes from its
    /// window.
    pub(super) fn next_turn(&mut self, bytes: u32) -> Option<(ConsumerId, ReceiveMode)> {
        while let Some(&id) = self.turns.front() {
            let Some(consumer) = self.all.get_mut(id.0) else {
                self.turns.pop_front();
                continue;
            };
            // A receiver whose window is too small for the message returns when bytes were written
            // to its peer.
            if !consumer.can_take() || !consumer.fits(bytes) {
                consumer.waiting = false;
                self.turns.pop_front();
                continue;
            }
            consumer.hand_out();
            consumer.window -= i64::from(bytes);
            let mode = consumer.mode;
            if self.turns.len() > 1 {
                self.turns.rotate_left(1);
            }
            return Some((id, mode));
        }
        None
    }

    /// Returns whether a receiver can take a message.
    pub(super) fn can_take(&self, id: ConsumerId) -> bool {
        self.all.get(id.0).is_some_and(Consumer::can_take)
    }

    /// Returns whether a receiver may be handed a message of so many bytes.
    pub(super) fn fits(&self, id: ConsumerId, bytes: u32) -> bool {
        self.all
            .get(id.0)
            .is_some_and(|consumer| consumer.fits(bytes))
    }

    /// Takes one credit from a receiver, and the message's bytes from its window.
    pub(super) fn take(&mut self, id: ConsumerId, bytes: u32) -> Option<ReceiveMode> {
        let consumer = self
            .all
            .get_mut(id.0)
            .filter(|consumer| consumer.can_take() && consumer.fits(bytes))?;
        consumer.hand_out();
        consumer.window -= i64::from(bytes);
        Some(consumer.mode)
    }

    /// Gives back a credit that was taken for a message that did not leave.
    pub(super) fn return_credit(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.all.get_mut(id.0) {
            consumer.delivered = consumer.delivered.wrapping_sub(1);
            consumer.handed_out -= 1;
            self.enlist(id);
        }
    }

    /// Returns whether any receiver can take a message.
    pub(super) fn is_ready(&mut self) -> bool {
        while let Some(id) = self.turns.front() {
            if let Some(consumer) = self.all.get_mut(id.0) {
                if consumer.can_take() {
                    return true;
                }
                consumer.waiting = false;
            }
            self.turns.pop_front();
        }
        false
    }

    /// Ends drains: the remaining credit is used up, because there is nothing to send.
    ///
    /// A receiver without allowance keeps draining, because there may be more for it; so does one
    /// that waits for a body.
    pub(super) fn end_drains(&mut self) -> Vec<(ConsumerId, u32)> {
        let mut done = Vec::new();
        let (all, scans) = (&mut self.all, &self.scans);
        self.draining.retain(|&id| {
            let Some(consumer) = all.get_mut(id.0) else {
                return false;
            };
            let undecided = scans.get(&id).is_some_and(Scan::is_undecided);
            let is_open = consumer.has_window() && consumer.fits(u32::MAX);
            if (undecided || !is_open) && consumer.credit() > 0 {
                return true;
            }
            consumer.drain = false;
            if consumer.credit() > 0 {
                consumer.delivered = consumer.limit;
            }
            done.push((id, consumer.limit));
            false
        });
        done
    }

    pub(super) fn is_draining(&self) -> bool {
        !self.draining.is_empty()
    }

    /// Returns how many more messages a receiver takes.
    pub(super) fn credit(&self, id: ConsumerId) -> Option<u32> {
        self.all.get(id.0).map(Consumer::credit)
    }

    /// Returns up to which delivery a receiver takes messages, and how many it got: serial numbers.
    pub(super) fn position(&self, id: ConsumerId) -> Option<(u32, u32)> {
        let consumer = self.all.get(id.0)?;
        Some((consumer.limit, consumer.delivered))
    }

    /// Notes that a receiver was attached.
    pub(super) fn attached(&mut self, now: Timestamp, id: ConsumerId) {
        if let Some(consumer) = self.all.get_mut(id.0) {
            consumer.active_at = Some(now);
        }
    }

    /// Notes that a message was handed to a receiver, which has it `locked`: one message or none.
    pub(super) fn handed(&mut self, now: Timestamp, id: ConsumerId, locked: usize) {
        if let Some(consumer) = self.all.get_mut(id.0) {
            consumer.locked += locked;
            consumer.active_at = Some(now);
        }
    }

    /// Notes that a lock of a receiver has ended, however it did.
    pub(super) fn unlocked(&mut self, now: Timestamp, id: ConsumerId) {
        if let Some(consumer) = self.all.get_mut(id.0) {
            // One that was added again has forgotten its locks.
            consumer.locked = consumer.locked.saturating_sub(1);
            consumer.active_at = Some(now);
        }
    }

    /// Moves the times of receivers with the clock.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        for id in self.all.ids() {
            if let Some(consumer) = self.all.get_mut(id) {
                consumer.active_at = consumer.active_at.map(|at| at.moved(step));
            }
        }
    }

    /// Returns how many messages a receiver has locked.
    pub(super) fn locked(&self, id: ConsumerId) -> usize {
        self.all.get(id.0).map_or(0, |consumer| consumer.locked)
    }

    /// Returns since when nothing has happened to a receiver: it was attached, its credit changed, a message was handed to
    /// it, or a lock of it ended (`docs/console.md#what-waits-and-what-is-stuck`).
    pub(super) fn idle_since(&self, id: ConsumerId) -> Option<Timestamp> {
        self.all.get(id.0)?.active_at
    }

    /// Returns how many messages were handed to a receiver.
    pub(super) fn handed_out(&self, id: ConsumerId) -> u64 {
        self.all.get(id.0).map_or(0, |consumer| consumer.handed_out)
    }

    /// Returns how many more messages all receivers take.
    pub(super) fn credits(&self) -> u64 {
        let all = self.all.values().map(Consumer::credit);
        all.map(u64::from).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ConsumerId> {
        self.all.ids().into_iter().map(ConsumerId)
    }

    fn enlist(&mut self, id: ConsumerId) {
        if self.scans.contains_key(&id) {
            return;
        }
        if let Some(consumer) = self.all.get_mut(id.0)
            && consumer.can_take()
            && !consumer.waiting
        {
            consumer.waiting = true;
            self.turns.push_back(id);
        }
    }
}
