//! One receiving connection of a load.

use std::sync::Arc;

use hdrhistogram::Histogram;
use jitney_amqp::{Connection, Event, IncomingTransfer, LinkId, Outcome};

use crate::client::{Driver, Next};
use crate::clock::unix_micros;
use crate::encode::STAMP_BYTES;
use crate::progress::{NOT_COUNTED, Progress};
use crate::report::histogram;

/// The settings of a receiver.
#[derive(Debug, Clone)]
pub(crate) struct ReceiverConfig {
    /// The credit of each link; it is renewed when half of it is used.
    pub(crate) credit: u32,
    /// The size of a body in bytes.
    pub(crate) size: usize,
    /// The receiver defers one in this number of messages and completes the others.
    pub(crate) defer_every: Option<u64>,
    pub(crate) latency_of: LatencyOf,
}

/// The messages whose latency is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LatencyOf {
    /// Messages of the current load.
    ThisLoad,
    /// All messages, for a load that only receives.
    AllMessages,
}

/// Receives and settles messages on the links of one connection.
pub(crate) struct Receiver {
    progress: Arc<Progress>,
    config: ReceiverConfig,
    /// The remaining credit, by link id.
    credit_left: Vec<u32>,
    links: Vec<LinkId>,
    credit_granted: bool,
    /// Messages received since the last report to `progress`.
    unreported: u64,
    received: u64,
    pub(crate) latency: Histogram<u64>,
    /// Scheduled messages that were received before they were due.
    pub(crate) early: u64,
}

impl Receiver {
    pub(crate) fn new(config: ReceiverConfig, links: Vec<LinkId>, progress: Arc<Progress>) -> Self {
        let numbers = links.iter().map(|link| index(*link) + 1).max();
        Self {
            progress,
            credit_left: vec![config.credit; numbers.unwrap_or(0)],
            config,
            links,
            credit_granted: false,
            unreported: 0,
            received: 0,
            latency: histogram(),
            early: 0,
        }
    }

    fn record_latency(&mut self, payload: &[u8]) {
        let start = payload.len().checked_sub(self.config.size);
        let stamp = start.and_then(|start| payload.get(start..)?.first_chunk::<STAMP_BYTES>());
        let Some(stamp) = stamp.map(|stamp| u64::from_be_bytes(*stamp)) else {
            return;
        };
        let is_counted = match self.config.latency_of {
            LatencyOf::ThisLoad => self.progress.is_counted(stamp),
            LatencyOf::AllMessages => stamp != NOT_COUNTED,
        };
        if is_counted {
            let now = unix_micros();
            self.early += u64::from(now < stamp);
            self.latency.saturating_record(now.saturating_sub(stamp));
        }
    }
}

impl Driver for Receiver {
    fn handle_event(&mut self, engine: &mut Connection, event: Event) -> Result<(), String> {
        let Event::Transfer(IncomingTransfer {
            link,
            delivery,
            payload,
            settled,
            ..
        }) = event
        else {
            return Ok(());
        };
        self.record_latency(&payload);
        self.received += 1;
        self.unreported += 1;
        let defers = |every: u64| self.received.is_multiple_of(every.max(1));
        let outcome = if self.config.defer_every.is_some_and(defers) {
            Outcome::Modified {
                delivery_failed: false,
                undeliverable_here: true,
                annotations: None,
            }
        } else {
            Outcome::Accepted
        };
        if settled {
            engine.return_credit(link);
        } else {
            engine.settle_incoming(link, delivery, &outcome);
        }
        if let Some(left) = self.credit_left.get_mut(index(link)) {
            *left = left.saturating_sub(1);
            if *left <= self.config.credit / 2 && !self.progress.is_complete() {
                *left = self.config.credit;
                engine.grant_credit(link, self.config.credit);
            }
        }
        Ok(())
    }

    fn poll(&mut self, engine: &mut Connection) -> Next {
        if !self.credit_granted {
            self.credit_granted = true;
            for &link in &self.links {
                engine.grant_credit(link, self.config.credit);
            }
        }
        if self.unreported > 0 {
            self.progress
                .add_received(std::mem::take(&mut self.unreported));
        }
        if self.progress.is_complete() {
            Next::Finished
        } else {
            Next::Event
        }
    }
}

fn index(link: LinkId) -> usize {
    usize::try_from(link.0).unwrap_or(usize::MAX)
}
