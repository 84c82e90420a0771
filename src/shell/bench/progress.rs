//! How far a load is: what all its connections share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use tokio::sync::watch;

use super::encode::unix_micros;
use super::process::Usage;

/// Counts what was accepted and received, and notes when counting began and ended.
#[derive(Debug)]
pub(super) struct Progress {
    plan: Plan,
    accepted: AtomicU64,
    received: AtomicU64,
    /// Arrivals after which all have come; unknown while senders go on for a time.
    arrivals: AtomicU64,
    /// Messages after whose acceptance all have gone.
    sendings: AtomicU64,
    senders_left: AtomicUsize,
    sent: AtomicU64,
    over: AtomicBool,
    /// When all connections were there, microseconds since 1970.
    started: OnceLock<u64>,
    began: OnceLock<Mark>,
    ended: OnceLock<Mark>,
    first_accepted: OnceLock<u64>,
    first_received: OnceLock<u64>,
    finished: watch::Sender<bool>,
    events: mpsc::Sender<Said>,
}

/// What a message of the warm-up carries instead of the time at which it was due.
pub(super) const NOT_COUNTED: u64 = 0;

/// What a load is to do.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Messages in all, those of the warm-up too; none while it goes by time.
    pub(super) messages: Option<u64>,
    /// The first of them, which are not counted.
    pub(super) warm_up: u64,
    /// How often each message arrives.
    pub(super) copies: u64,
    /// How many connections send.
    pub(super) senders: usize,
    pub(super) receives: bool,
    /// Whose CPU time counts.
    pub(super) pid: Option<u32>,
}

/// What the connections tell the main thread.
#[derive(Debug)]
pub(super) enum Said {
    /// All connections of one side are there.
    Ready,
    /// The warm-up is over.
    Counting,
    /// All that was sent has been accepted, and received.
    Finished,
}

/// A moment, and how far the load was.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    pub(super) at: Instant,
    pub(super) accepted: u64,
    pub(super) received: u64,
    pub(super) usage: Result<Option<Usage>, String>,
}

/// Told when everything is finished, once.
#[derive(Debug)]
pub(super) struct Finished(Option<watch::Receiver<bool>>);

impl Finished {
    pub(super) async fn wait(&mut self) {
        if let Some(told) = &mut self.0 {
            // The sender lives as long as the load.
            let _ = told.wait_for(|finished| *finished).await;
            self.0 = None;
        } else {
            std::future::pending::<()>().await;
        }
    }
}

impl Progress {
    pub(super) fn new(plan: Plan, events: mpsc::Sender<Said>) -> Self {
        let sends = plan.senders > 0;
        // Counted messages follow those of the warm-up; without an end nothing is the last.
        let all = plan.messages.unwrap_or(u64::MAX);
        let arrivals = if plan.receives {
            all.saturating_mul(plan.copies)
        } else {
            0
        };
        Self {
            accepted: AtomicU64::new(0),
            received: AtomicU64::new(0),
            arrivals: AtomicU64::new(arrivals),
            sendings: AtomicU64::new(if sends { all } else { 0 }),
            senders_left: AtomicUsize::new(plan.senders),
            sent: AtomicU64::new(0),
            over: AtomicBool::new(false),
            started: OnceLock::new(),
            began: OnceLock::new(),
            ended: OnceLock::new(),
            first_accepted: OnceLock::new(),
            first_received: OnceLock::new(),
            finished: watch::Sender::new(false),
            plan,
            events,
        }
    }

    /// All connections are there: counting begins at once without a warm-up.
    pub(super) fn begin(&self) {
        self.started.get_or_init(unix_micros);
        if self.plan.warm_up == 0 {
            self.count();
        }
    }

    pub(super) fn finished(&self) -> Finished {
        Finished(Some(self.finished.subscribe()))
    }

    pub(super) fn is_finished(&self) -> bool {
        *self.finished.borrow()
    }

    /// Returns whether senders are to send no more.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns whether the latency of a message counts that was due then, microseconds since 1970:
    /// not if another load sent it, and not after the end.
    pub(super) fn counts(&self, due: u64) -> bool {
        let started = self.started.get().is_some_and(|started| *started <= due);
        started && self.ended.get().is_none()
    }

    pub(super) fn say(&self, said: Said) {
        // Nobody listens any more when the load has failed.
        let _ = self.events.send(said);
    }

    /// Counts messages that the broker accepted.
    pub(super) fn accepted(&self, count: u64) {
        self.first_accepted.get_or_init(unix_micros);
        let all = self.accepted.fetch_add(count, Ordering::Relaxed) + count;
        if !self.plan.receives && self.plan.warm_up <= all {
            self.count();
        }
        self.finish_if_done();
    }

    /// Counts messages that were received.
    pub(super) fn received(&self, count: u64) {
        self.first_received.get_or_init(unix_micros);
        let all = self.received.fetch_add(count, Ordering::Relaxed) + count;
        if self.plan.warm_up.saturating_mul(self.plan.copies) <= all {
            self.count();
        }
        self.finish_if_done();
    }

    /// A sender has sent all that it will; the last one knows how many there are.
    pub(super) fn sent(&self, count: u64) {
        let all = self.sent.fetch_add(count, Ordering::AcqRel) + count;
        if self.senders_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.sendings.store(all, Ordering::Release);
            if self.plan.receives {
                let arrivals = all.saturating_mul(self.plan.copies);
                self.arrivals.store(arrivals, Ordering::Release);
            }
            self.finish_if_done();
        }
    }

    /// The time is up: what comes later is not counted.
    pub(super) fn end(&self) {
        let _ = self.ended.set(self.mark());
        self.over.store(true, Ordering::Relaxed);
        if self.plan.senders == 0 {
            self.arrivals.store(0, Ordering::Release);
            self.finish_if_done();
        }
    }

    /// Returns when counting began and ended.
    pub(super) fn marks(&self) -> Option<(&Mark, &Mark)> {
        Some((self.began.get()?, self.ended.get()?))
    }

    /// Returns how many messages were received, whether they count or not.
    pub(super) fn received_in_all(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Returns when the first message was accepted and when one was received, microseconds since 1970.
    pub(super) fn firsts(&self) -> (Option<u64>, Option<u64>) {
        let (accepted, received) = (&self.first_accepted, &self.first_received);
        (accepted.get().copied(), received.get().copied())
    }

    fn count(&self) {
        if self.began.get().is_none() && self.began.set(self.mark()).is_ok() {
            self.say(Said::Counting);
        }
    }

    fn finish_if_done(&self) {
        let (accepted, received) = (
            self.accepted.load(Ordering::Relaxed),
            self.received.load(Ordering::Relaxed),
        );
        if self.sendings.load(Ordering::Acquire) <= accepted
            && self.arrivals.load(Ordering::Acquire) <= received
            && !self.finished.send_replace(true)
        {
            if self.ended.get().is_none() {
                let _ = self.ended.set(self.mark());
            }
            self.say(Said::Finished);
        }
    }

    fn mark(&self) -> Mark {
        Mark {
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

    fn progress(plan: Plan) -> (Progress, mpsc::Receiver<Said>) {
        let (events, told) = mpsc::channel();
        (Progress::new(plan, events), told)
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
    fn what_comes_before_the_warm_up_is_over_is_not_counted() {
        let (progress, told) = progress(PLAN);
        progress.begin();
        progress.accepted(6);
        progress.received(3);
        assert!(told.try_recv().is_err());
        progress.received(1);
        assert!(matches!(told.try_recv(), Ok(Said::Counting)));
        progress.received(6);
        assert!(!progress.is_finished());
        progress.accepted(4);
        assert!(matches!(told.try_recv(), Ok(Said::Finished)));
        let (began, ended) = progress.marks().unwrap();
        assert_eq!((began.received, ended.received), (4, 10));
    }

    #[test]
    fn latency_counts_of_what_was_sent_between_begin_and_end() {
        let (progress, _told) = progress(PLAN);
        assert!(!progress.counts(unix_micros()));
        let before = unix_micros() - 1;
        progress.begin();
        assert!(progress.counts(unix_micros()));
        assert!(!progress.counts(before));
        assert!(!progress.counts(NOT_COUNTED));
        progress.end();
        assert!(!progress.counts(unix_micros()));
    }

    #[test]
    fn a_load_that_goes_by_time_ends_when_what_was_sent_has_come() {
        let (progress, told) = progress(Plan {
            messages: None,
            warm_up: 0,
            copies: 2,
            ..PLAN
        });
        progress.begin();
        progress.accepted(5);
        progress.received(9);
        progress.end();
        assert!(progress.is_over());
        assert!(!progress.is_finished());
        progress.sent(5);
        assert!(!progress.is_finished());
        progress.received(1);
        assert!(progress.is_finished());
        assert_eq!(progress.marks().unwrap().1.received, 9);
        assert_eq!(progress.received_in_all(), 10);
        assert!(matches!(told.try_recv(), Ok(Said::Counting)));
        assert!(matches!(told.try_recv(), Ok(Said::Finished)));
    }

    #[test]
    fn a_load_that_only_receives_ends_with_its_time() {
        let (progress, _told) = progress(Plan {
            messages: None,
            warm_up: 0,
            senders: 0,
            ..PLAN
        });
        progress.begin();
        progress.received(3);
        assert!(!progress.is_finished());
        progress.end();
        assert!(progress.is_finished());
    }
}
