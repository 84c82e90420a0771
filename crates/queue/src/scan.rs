//! Receivers that scan a queue on their own: browsers, and those with a selector.
//!
//! Each has its own position in the queue and looks at every deliverable message once, in order; a
//! message that is added below the position afterwards is looked at too. A message that it does not
//! take stays available to others. Evaluating a selector needs the message body. If the body is not
//! loaded, the receiver is undecided, and the broker schedules a read ([`Queue::undecided`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{
    BodyRef, ConsumerId, Context, Delivery, Handover, LockToken, Queue, ReceiveMode,
    SequenceNumber, number, numbers, stamps,
};
use crate::limits;
use jitney_message::{Amendments, Message};
use jitney_rules::{Facts, Share, SqlFilter};

/// Returns the message whose body is at a position, if the body is loaded.
pub type LoadedMessage<'m> = &'m dyn Fn(u64) -> Option<&'m Message>;

/// The effect of a scanning receiver on the messages it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanMode {
    /// The message stays as it is.
    Browse,
    /// The receiver gets the message, as any other receiver does.
    Consume,
}

/// The messages that a receiver takes or browses.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Its selector; without one, it takes all messages.
    pub selector: Option<Arc<SqlFilter>>,
    /// The largest message it takes, in bytes as sent.
    pub bytes_max: Option<u64>,
}

/// Why a message is deliverable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    /// It was delivered before, and returned.
    Again,
    /// It is new in this queue.
    New,
}

/// A receiver's scan of the queue.
#[derive(Debug)]
pub(super) struct Scan {
    scan_mode: ScanMode,
    choice: Selection,
    /// The position at which it continues, in each partition.
    next: Vec<u64>,
    /// Messages below that position that it has yet to look at.
    again: BTreeSet<u64>,
    /// The body of its next message must be read first, or its share ended before that message.
    undecided: bool,
}

impl Scan {
    fn new(scan_mode: ScanMode, choice: Selection, partitions: usize) -> Self {
        Self {
            scan_mode,
            choice,
            next: (0..partitions).map(numbers::first_of).collect(),
            again: BTreeSet::new(),
            undecided: false,
        }
    }

    pub(super) const fn selection(&self) -> &Selection {
        &self.choice
    }

    pub(super) fn is_undecided(&self) -> bool {
        self.undecided
    }

    /// Records a message that was added below the position.
    pub(super) fn offer(&mut self, ordinal: u64, offered: Offered) {
        let has_seen = self.scan_mode == ScanMode::Browse && offered == Offered::Again;
        let next = match self.next.as_slice() {
            &[next] => next,
            all => all
                .get(numbers::partition(ordinal))
                .copied()
                .unwrap_or_default(),
        };
        if ordinal < next && !has_seen {
            self.again.insert(ordinal);
        }
    }

    /// Forgets a message that was removed.
    pub(super) fn forget(&mut self, ordinal: u64) {
        self.again.remove(&ordinal);
    }

    /// Moves the position past a message.
    fn pass(&mut self, ordinal: u64) {
        if self.again.remove(&ordinal) {
            return;
        }
        let partition = match self.next.len() {
            1 => 0,
            _ => numbers::partition(ordinal),
        };
        if let Some(next) = self.next.get_mut(partition) {
            *next = ordinal + 1;
        }
    }
}

impl Queue {
    /// Adds a receiver, without credit, that scans the messages on its own: all of them, or those
    /// that its selector matches.
    pub fn add_scan(
        &mut self,
        id: ConsumerId,
        mode: ReceiveMode,
        scan_mode: ScanMode,
        choice: Selection,
    ) {
        let partitions = self.numbers.iter().count();
        let scan = Scan::new(scan_mode, choice, partitions);
        self.consumers.add_scan(id, mode, scan);
    }

    /// Returns whether there are scanning receivers.
    #[must_use]
    pub fn has_scans(&self) -> bool {
        !self.consumers.scans().is_empty()
    }

    /// Returns whether a receiver browses.
    #[must_use]
    pub fn browses(&self, id: ConsumerId) -> bool {
        let scan = self.consumers.scans().get(&id);
        scan.is_some_and(|scan| scan.scan_mode == ScanMode::Browse)
    }

    /// Returns whether a receiver waits for a body to be read: see [`Queue::undecided`].
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.consumers.scans().values().any(Scan::is_undecided)
    }

    /// Returns the messages whose bodies receivers wait for, with their positions: about this many,
    /// the next ones of each receiver.
    #[must_use]
    pub fn undecided(&self, count: usize) -> Vec<(SequenceNumber, BodyRef)> {
        let scans = self.consumers.scans().values();
        let open: Vec<&Scan> = scans.filter(|scan| scan.undecided).take(count).collect();
        let each = count / open.len().max(1);
        let mut found = BTreeMap::new();
        for scan in open {
            let again = scan.again.iter().filter_map(|&at| self.index.get(at));
            let ahead = scan.next.iter().enumerate().flat_map(|(partition, &next)| {
                let entries = self.index.available(next);
                entries.take_while(move |entry| {
                    scan.next.len() == 1 || numbers::partition(entry.ordinal) == partition
                })
            });
            let waiting = again.chain(ahead).filter(|entry| entry.is_available());
            for entry in waiting.take(each) {
                let place = entry.body.position;
                found.insert(place, (number(entry.ordinal), entry.body));
            }
        }
        found.into_values().collect()
    }

    /// Lets receivers continue that wait for bodies, as far as these are loaded (by their
    /// positions), and until the share is spent.
    pub fn evaluate_selectors(
        &mut self,
        cx: &mut Context<'_>,
        loaded: LoadedMessage<'_>,
        share: &mut Share,
    ) {
        if !self.is_behind {
            self.scan(cx, loaded, share);
            self.end_drains(cx);
        }
    }

    /// Delivers the messages that scanning receivers find, one to each receiver in turn.
    pub(super) fn scan(
        &mut self,
        cx: &mut Context<'_>,
        loaded: LoadedMessage<'_>,
        share: &mut Share,
    ) {
        let mut ids: Vec<ConsumerId> = self.consumers.scans().keys().copied().collect();
        while !ids.is_empty() {
            ids.retain(|&id| self.scan_one(cx, id, loaded, share));
        }
    }

    /// Looks at one message for a receiver; returns whether it can look at another.
    fn scan_one(
        &mut self,
        cx: &mut Context<'_>,
        id: ConsumerId,
        loaded: LoadedMessage<'_>,
        share: &mut Share,
    ) -> bool {
        if let Some(scan) = self.consumers.scan_mut(id) {
            scan.undecided = false;
        }
        if !self.consumers.can_take(id) {
            return false;
        }
        let Some((ordinal, body)) = self.found_by(id) else {
            return false;
        };
        if !self.consumers.fits(id, body.length) {
            return false;
        }
        let takes = self.takes(id, ordinal, body, loaded, share);
        let Some(scan) = self.consumers.scan_mut(id) else {
            return false;
        };
        match takes {
            None => {
                scan.undecided = true;
                false
            }
            Some(false) => {
                scan.pass(ordinal);
                true
            }
            Some(true) => {
                scan.pass(ordinal);
                let scan_mode = scan.scan_mode;
                self.give_found(cx, id, scan_mode, ordinal, body);
                true
            }
        }
    }

    /// Finds the next message that a receiver has to look at.
    fn found_by(&mut self, id: ConsumerId) -> Option<(u64, BodyRef)> {
        let scan = self.consumers.scan_mut(id)?;
        while let Some(&ordinal) = scan.again.first() {
            let entry = self.index.get(ordinal);
            if let Some(entry) = entry.filter(|entry| entry.is_available()) {
                return Some((ordinal, entry.body));
            }
            scan.again.pop_first();
        }
        let is_one = scan.next.len() == 1;
        for (partition, next) in scan.next.iter_mut().enumerate() {
            let found = self.index.first_available(*next);
            let here =
                |&(ordinal, _): &(u64, BodyRef)| is_one || numbers::partition(ordinal) == partition;
            if let Some((ordinal, body)) = found.filter(here) {
                // Skipped messages are skipped once.
                *next = ordinal;
                return Some((ordinal, body));
            }
            *next = self.numbers.peek(partition);
        }
        None
    }

    /// Returns whether a receiver takes a message; `None` if its body must be read first, or the
    /// share is spent.
    fn takes(
        &self,
        id: ConsumerId,
        ordinal: u64,
        body: BodyRef,
        loaded: LoadedMessage<'_>,
        share: &mut Share,
    ) -> Option<bool> {
        let Some(scan) = self.consumers.scans().get(&id) else {
            return Some(true);
        };
        if scan
            .choice
            .bytes_max
            .is_some_and(|max| max < self.size_sent(ordinal))
        {
            return Some(false);
        }
        let Some(selector) = &scan.choice.selector else {
            return Some(true);
        };
        if share.is_spent() {
            return None;
        }
        let message = loaded(body.position)?;
        let Some(entry) = self.index.get(ordinal) else {
            return Some(false);
        };
        let facts = Facts {
            sequence_number: number(ordinal),
            enqueued_time: entry.enqueued_at,
            time_to_live: entry.time_to_live,
            seed: ordinal,
        };
        let unchanged = Amendments::default();
        let changed = entry.amendments.as_deref().unwrap_or(&unchanged);
        Some(selector.is_true_of(message, changed, &facts, share))
    }

    /// Returns the size of a message as sent, with all that the broker adds.
    fn size_sent(&self, ordinal: u64) -> u64 {
        let Some(entry) = self.index.get(ordinal) else {
            return 0;
        };
        let amended = entry.amendments.as_ref().map_or(0, |it| it.size());
        let source = entry.dead_letter_source.as_ref().map_or(0, |it| it.len());
        let added = u64::try_from(amended + source).unwrap_or(u64::MAX);
        u64::from(entry.body.length) + limits::STAMPS_BYTES + added
    }

    fn give_found(
        &mut self,
        cx: &mut Context<'_>,
        id: ConsumerId,
        scan_mode: ScanMode,
        ordinal: u64,
        body: BodyRef,
    ) {
        let Some(mode) = self.consumers.take(id, body.length) else {
            return;
        };
        let handover = match scan_mode {
            ScanMode::Consume => {
                self.returned.remove(&ordinal);
                self.hand_over(cx, ordinal, id, mode)
            }
            ScanMode::Browse => self.index.get(ordinal).map(|entry| {
                Box::new(Handover {
                    token: LockToken::new(cx.random.next_u64(), cx.random.next_u64()),
                    mode: ReceiveMode::ReceiveAndDelete,
                    body: entry.body,
                    stamps: stamps(self.origin(), &entry),
                })
            }),
        };
        if let Some(handover) = handover {
            let message = Delivery::Message(id, handover);
            cx.effects.deliveries.push(message);
        }
    }
}
