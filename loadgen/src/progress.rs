//! The progress of a load, shared by all its connections.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use tokio::sync::watch;

use crate::clock::unix_micros;
use crate::process::Usage;

/// Counts accepted and received messages, and records when the counting started and ended.
#[derive(Debug)]
pub(crate) struct Progress {
    plan: Plan,
    accepted: AtomicU64,
    received: AtomicU64,
    /// The number of receipts that completes the load; `u64::MAX` while it is unknown.
    receipts_expected: AtomicU64,
    /// The number of acceptances that completes the load; `u64::MAX` while it is unknown.
    acceptances_expected: AtomicU64,
    senders_left: AtomicUsize,
    sent: AtomicU64,
    stopped: AtomicBool,
    /// The time at which all connections were open, in microseconds since 1970.
    started: OnceLock<u64>,
    counting_started: OnceLock<Snapshot>,
    counting_ended: OnceLock<Snapshot>,
    first_accepted: OnceLock<u64>,
    first_received: OnceLock<u64>,
    complete: watch::Sender<bool>,
    events: mpsc::Sender<LoadEvent>,
}

/// The stamp of a warm-up message, in place of the time at which it was due.
pub(crate) const NOT_COUNTED: u64 = 0;

/// The extent of a load.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The number of messages, including the warm-up; none if the load is limited by time.
    pub(crate) messages: Option<u64>,
    /// The number of messages before those that are counted.
    pub(crate) warm_up: u64,
    /// The number of copies of each message that are received.
    pub(crate) copies: u64,
    /// The number of sending connections.
    pub(crate) senders: usize,
    pub(crate) receives: bool,
    /// The process id of the broker.
    pub(crate) pid: Option<u32>,
}

/// An event that the connections report to the main thread.
#[derive(Debug)]
pub(crate) enum LoadEvent {
    /// All connections of one direction are open, or one of them has failed.
    Ready,
    /// The warm-up is over.
    CountingStarted,
    /// All messages have been accepted and received.
    Complete,
}

/// The state of a load at one time.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) at: Instant,
    pub(crate) accepted: u64,
    pub(crate) received: u64,
    pub(crate) usage: Result<Option<Usage>, String>,
}

/// A future that is ready once, when the load is complete.
#[derive(Debug)]
pub(crate) struct Completion(Option<watch::Receiver<bool>>);

impl Completion {
    pub(crate) async fn wait(&mut self) {
        if let Some(complete) = &mut self.0 {
            // The sender lives as long as the load.
            let _ = complete.wait_for(|complete| *complete).await;
            self.0 = None;
        } else {
            std::future::pending::<()>().await;
        }
    }
}

impl Progress {
    pub(crate) fn new(plan: Plan, events: mpsc::Sender<LoadEvent>) -> Self {
        let sends = plan.senders > 0;
        let all = plan.messages.unwrap_or(u64::MAX);
        let receipts = if plan.receives {
            all.saturating_mul(plan.copies)
        } else {
            0
        };
        Self {
            accepted: AtomicU64::new(0),
            received: AtomicU64::new(0),
            receipts_expected: AtomicU64::new(receipts),
            acceptances_expected: AtomicU64::new(if sends { all } else { 0 }),
            senders_left: AtomicUsize::new(plan.senders),
            sent: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            started: OnceLock::new(),
            counting_started: OnceLock::new(),
            counting_ended: OnceLock::new(),
            first_accepted: OnceLock::new(),
            first_received: OnceLock::new(),
            complete: watch::Sender::new(false),
            plan,
            events,
        }
    }

    /// Starts the load when all connections are open. Without a warm-up, the counting starts too.
    pub(crate) fn start(&self) {
        self.started.get_or_init(unix_micros);
        if self.plan.warm_up == 0 {
            self.start_counting();
        }
    }

    pub(crate) fn completion(&self) -> Completion {
        Completion(Some(self.complete.subscribe()))
    }

    pub(crate) fn is_complete(&self) -> bool {
        *self.complete.borrow()
    }

    /// Returns whether the time of the load is over, so that senders must stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns whether the latency of a message is counted, by its due time in microseconds since
    /// 1970. Messages of an earlier load and messages after the end of the counting are not.
    pub(crate) fn is_counted(&self, due: u64) -> bool {
        let started = self.started.get().is_some_and(|started| *started <= due);
        started && self.counting_ended.get().is_none()
    }

    pub(crate) fn report(&self, event: LoadEvent) {
        // The receiver is gone if the load has failed.
        let _ = self.events.send(event);
    }

    /// Adds messages that the broker accepted.
    pub(crate) fn add_accepted(&self, count: u64) {
        self.first_accepted.get_or_init(unix_micros);
        let all = self.accepted.fetch_add(count, Ordering::Relaxed) + count;
        if !self.plan.receives && self.plan.warm_up <= all {
            self.start_counting();
        }
        self.check_completion();
    }

    /// Adds messages that were received.
    pub(crate) fn add_received(&self, count: u64) {
        self.first_received.get_or_init(unix_micros);
        let all = self.received.fetch_add(count, Ordering::Relaxed) + count;
        if self.plan.warm_up.saturating_mul(self.plan.copies) <= all {
            self.start_counting();
        }
        self.check_completion();
    }

    /// Records that a sender has sent all its messages. With the last sender their total is known.
    pub(crate) fn sender_finished(&self, count: u64) {
        let all = self.sent.fetch_add(count, Ordering::AcqRel) + count;
        if self.senders_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.acceptances_expected.store(all, Ordering::Release);
            if self.plan.receives {
                let receipts = all.saturating_mul(self.plan.copies);
                self.receipts_expected.store(receipts, Ordering::Release);
            }
            self.check_completion();
        }
    }

    /// Stops the senders and ends the counting, when the time of the load is over.
    pub(crate) fn stop(&self) {
        let _ = self.counting_ended.set(self.snapshot());
        self.stopped.store(true, Ordering::Relaxed);
        if self.plan.senders == 0 {
            self.receipts_expected.store(0, Ordering::Release);
            self.check_completion();
        }
    }

    /// Returns the state at the start and at the end of the counting.
    pub(crate) fn snapshots(&self) -> Option<(&Snapshot, &Snapshot)> {
        Some((self.counting_started.get()?, self.counting_ended.get()?))
    }

    /// Returns the number of messages received, counted or not.
    pub(crate) fn received_total(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Returns the times of the first acceptance and of the first receipt, in microseconds since 1970.
    pub(crate) fn first_times(&self) -> (Option<u64>, Option<u64>) {
        let (accepted, received) = (&self.first_accepted, &self.first_received);
        (accepted.get().copied(), received.get().copied())
    }

    fn start_counting(&self) {
        let started = &self.counting_started;
        if started.get().is_none() && started.set(self.snapshot()).is_ok() {
            self.report(LoadEvent::CountingStarted);
        }
    }

    fn check_completion(&self) {
        let (accepted, received) = (
            self.accepted.load(Ordering::Relaxed),
            self.received.load(Ordering::Relaxed),
        );
        if self.acceptances_expected.load(Ordering::Acquire) <= accepted
            && self.receipts_expected.load(Ordering::Acquire) <= received
            && !self.complete.send_replace(true)
        {
            if self.counting_ended.get().is_none() {
                let _ = self.counting_ended.set(self.snapshot());
            }
            self.report(LoadEvent::Complete);
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            at: Instant::now(),
            accepted: self.accepted.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            usage: self.plan.pid.map(Usage::of).transpose(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(plan: Plan) -> (Progress, mpsc::Receiver<LoadEvent>) {
        let (sender, events) = mpsc::channel();
        (Progress::new(plan, sender), events)
    }

    const PLAN: Plan = Plan {
        messages: Some(10),
        warm_up: 4,
        copies: 1,
        senders: 1,
        receives: true,
        pid: None,
    };

    #[test]
    fn messages_of_the_warm_up_are_not_counted() {
        let (progress, events) = progress(PLAN);
        progress.start();
        progress.add_accepted(6);
        progress.add_received(3);
        assert!(events.try_recv().is_err());
        progress.add_received(1);
        assert!(matches!(events.try_recv(), Ok(LoadEvent::CountingStarted)));
        progress.add_received(6);
        assert!(!progress.is_complete());
        progress.add_accepted(4);
        assert!(matches!(events.try_recv(), Ok(LoadEvent::Complete)));
        let (started, ended) = progress.snapshots().unwrap();
        assert_eq!((started.received, ended.received), (4, 10));
    }

    #[test]
    fn latency_is_counted_between_start_and_end() {
        let (progress, _events) = progress(PLAN);
        assert!(!progress.is_counted(unix_micros()));
        let before = unix_micros() - 1;
        progress.start();
        assert!(progress.is_counted(unix_micros()));
        assert!(!progress.is_counted(before));
        assert!(!progress.is_counted(NOT_COUNTED));
        progress.stop();
        assert!(!progress.is_counted(unix_micros()));
    }

    #[test]
    fn a_load_limited_by_time_is_complete_when_all_its_messages_are_received() {
        let (progress, events) = progress(Plan {
            messages: None,
            warm_up: 0,
            copies: 2,
            ..PLAN
        });
        progress.start();
        progress.add_accepted(5);
        progress.add_received(9);
        progress.stop();
        assert!(progress.is_stopped());
        assert!(!progress.is_complete());
        progress.sender_finished(5);
        assert!(!progress.is_complete());
        progress.add_received(1);
        assert!(progress.is_complete());
        assert_eq!(progress.snapshots().unwrap().1.received, 9);
        assert_eq!(progress.received_total(), 10);
        assert!(matches!(events.try_recv(), Ok(LoadEvent::CountingStarted)));
        assert!(matches!(events.try_recv(), Ok(LoadEvent::Complete)));
    }

    #[test]
    fn a_load_that_only_receives_is_complete_when_its_time_is_over() {
        let (progress, _events) = progress(Plan {
            messages: None,
            warm_up: 0,
            senders: 0,
            ..PLAN
        });
        progress.start();
        progress.add_received(3);
        assert!(!progress.is_complete());
        progress.stop();
        assert!(progress.is_complete());
    }
}
