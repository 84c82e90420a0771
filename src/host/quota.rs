//! How many bytes a second the clients of a namespace may send together.
//!
//! What a connection reads is taken from the quota, and while that is used up, connections read nothing. The clients' TCP windows
//! close then: they send later, and nothing is refused. A second's worth of bytes may come at once. A request over HTTP waits
//! before its body is read; it is refused if it would have to wait for long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::limits;
use jitney_broker::namespace::{Denied, DeniedKind};

/// What may come at once, in microseconds of the quota.
const BURST: u64 = 1_000_000;

/// The quota of a namespace, if it has one.
#[derive(Debug)]
pub(crate) struct Quota {
    began: Instant,
    /// Bytes a second; 0 without a quota.
    rate: AtomicU64,
    /// Until when the bytes that were taken use the quota up, in microseconds since `began`.
    used_until: AtomicU64,
    /// How often a client was made to wait.
    waits: AtomicU64,
}

impl Quota {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            rate: AtomicU64::new(0),
            used_until: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        }
    }

    /// Sets the bytes a second, or that there is no quota. What was taken before is forgotten when that changes.
    pub(crate) fn set(&self, rate: Option<u64>) {
        let rate = rate.unwrap_or_default();
        if self.rate.swap(rate, Ordering::Relaxed) != rate {
            self.used_until.store(0, Ordering::Relaxed);
        }
    }

    /// Takes bytes that a client has sent.
    pub(crate) fn take(&self, bytes: usize) {
        self.take_at(self.elapsed(), bytes);
    }

    fn take_at(&self, now: u64, bytes: usize) {
        let rate = self.rate.load(Ordering::Relaxed);
        if rate == 0 {
            return;
        }
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let micros = bytes.saturating_mul(1_000_000) / rate;
        let add = |used: u64| Some(used.max(now).saturating_add(micros));
        let _ = self
            .used_until
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Returns until when nothing more is to be read; none while something may be.
    pub(crate) fn used_up_until(&self) -> Option<Instant> {
        if self.rate.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let until = self.used_up_until_at(self.elapsed())?;
        Some(self.began + Duration::from_micros(until))
    }

    fn used_up_until_at(&self, now: u64) -> Option<u64> {
        let until = self.used_until.load(Ordering::Relaxed);
        until.checked_sub(BURST).filter(|until| now < *until)
    }

    /// Waits while it is used up, but not for long.
    ///
    /// # Errors
    ///
    /// If it is used up for longer than a request waits.
    pub(crate) async fn wait(&self) -> Result<(), Denied> {
        let deadline = Instant::now() + limits::OWNER_WAIT.as_duration();
        let mut waits = false;
        while let Some(until) = self.used_up_until() {
            if !std::mem::replace(&mut waits, true) {
                self.note_wait();
            }
            if deadline < until {
                let text =
                    "The clients of the namespace send more than its quota: send it again later.";
                return Err(Denied::new(DeniedKind::Full, text, ""));
            }
            sleep_until(until).await;
        }
        Ok(())
    }

    /// A client begins to wait.
    pub(crate) fn note_wait(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often a client was made to wait.
    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Returns the microseconds since it was made.
    fn elapsed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn what_may_come_in_a_second_comes_at_once_and_then_so_many_bytes_a_second() {
        let quota = Quota::new();
        quota.take_at(0, 1_000_000);
        assert_eq!(quota.used_up_until_at(0), None, "there is no quota");
        quota.set(Some(1_000));
        quota.take_at(0, 1_000);
        assert_eq!(quota.used_up_until_at(0), None);
        quota.take_at(0, 500);
        assert_eq!(quota.used_up_until_at(0), Some(SECOND / 2));
        assert_eq!(quota.used_up_until_at(SECOND / 2), None);
        // What is not used is not kept.
        quota.take_at(60 * SECOND, 2_000);
        assert_eq!(quota.used_up_until_at(60 * SECOND), Some(61 * SECOND));
    }

    #[test]
    fn a_quota_that_is_changed_or_removed_counts_at_once() {
        let quota = Quota::new();
        quota.set(Some(1));
        quota.take(1_000_000);
        assert!(quota.used_up_until().is_some());
        quota.set(Some(1));
        assert!(quota.used_up_until().is_some(), "it is as it was");
        quota.set(Some(2));
        assert_eq!(quota.used_up_until(), None);
        quota.take(1_000_000);
        quota.set(None);
        assert_eq!(quota.used_up_until(), None);
    }
}
