//! One receiving connection of a load.

use std::sync::Arc;

use hdrhistogram::Histogram;

use super::client::{Turn, Work};
use super::encode::unix_micros;
use super::progress::{NOT_COUNTED, Progress};
use super::report::histogram;
use super::sender::STAMP_BYTES;
use crate::amqp::{Connection, Event, LinkId, Outcome};

/// How messages are received.
#[derive(Debug, Clone)]
pub(super) struct Receiving {
    /// Credit of each link, topped up at half.
    pub(super) credit: u32,
    /// Bytes of a body.
    pub(super) size: usize,
    /// One message in so many is deferred, and the others completed.
    pub(super) defer_every: Option<u64>,
    /// Whose latency counts.
    pub(super) counted: Counted,
}

/// Whose latency counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// Messages that are sent at the same time.
    Own,
    /// All: they were sent before.
    All,
}

/// Receives, and says what becomes of the messages.
pub(super) struct Receiver {
    progress: Arc<Progress>,
    receiving: Receiving,
    /// Credit that is left, by the number of the link.
    left: Vec<u32>,
    links: Vec<LinkId>,
    granted: bool,
    /// Received since the others were told.
    fresh: u64,
    received: u64,
    pub(super) latency: Histogram<u64>,
    /// Messages that came before they were due.
    pub(super) early: u64,
}

impl Receiver {
    pub(super) fn new(receiving: Receiving, links: Vec<LinkId>, progress: Arc<Progress>) -> Self {
        let numbers = links.iter().map(|link| slot(*link) + 1).max();
        Self {
            progress,
            left: vec![receiving.credit; numbers.unwrap_or(0)],
            receiving,
            links,
            granted: false,
            fresh: 0,
            received: 0,
            latency: histogram(),
            early: 0,
        }
    }

    fn measure(&mut self, payload: &[u8]) {
        let start = payload.len().checked_sub(self.receiving.size);
        let stamp = start.and_then(|start| payload.get(start..)?.first_chunk::<STAMP_BYTES>());
        let Some(stamp) = stamp.map(|stamp| u64::from_be_bytes(*stamp)) else {
            return;
        };
        let counts = match self.receiving.counted {
            Counted::Own => self.progress.counts(stamp),
            Counted::All => stamp != NOT_COUNTED,
        };
        if counts {
            let now = unix_micros();
            self.early += u64::from(now < stamp);
            self.latency.saturating_record(now.saturating_sub(stamp));
        }
    }
}

impl Work for Receiver {
    fn handle(&mut self, engine: &mut Connection, event: Event) -> Result<(), String> {
        let Event::Transfer {
            link,
            delivery,
            payload,
            settled,
            ..
        } = event
        else {
            return Ok(());
        };
        self.measure(&payload);
        self.received += 1;
        self.fresh += 1;
        let defers = |every: u64| self.received.is_multiple_of(every.max(1));
        let outcome = if self.receiving.defer_every.is_some_and(defers) {
            Outcome::Modified {
                delivery_failed: false,
                undeliverable_here: true,
                annotations: None,
            }
        } else {
            Outcome::Accepted
        };
        engine.settle_incoming(link, delivery, &outcome, settled);
        if let Some(left) = self.left.get_mut(slot(link)) {
            *left = left.saturating_sub(1);
            if *left <= self.receiving.credit / 2 && !self.progress.is_finished() {
                *left = self.receiving.credit;
                engine.grant_credit(link, self.receiving.credit);
            }
        }
        Ok(())
    }

    fn turn(&mut self, engine: &mut Connection) -> Turn {
        if !self.granted {
            self.granted = true;
            for &link in &self.links {
                engine.grant_credit(link, self.receiving.credit);
            }
        }
        if self.fresh > 0 {
            self.progress.received(std::mem::take(&mut self.fresh));
        }
        if self.progress.is_finished() {
            Turn::Done
        } else {
            Turn::Wait
        }
    }
}

fn slot(link: LinkId) -> usize {
    usize::try_from(link.0).unwrap_or(usize::MAX)
}
