//! How long a server may answer without a beat of its own.
//!
//! The other servers take the namespaces of one whose beat they have seen unchanged for 3 s. A server answers until 2 s after it
//! sent the last beat that succeeded, by a clock that runs while the machine sleeps. No clock of the database and no clock of
//! another machine decides anything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::limits;

/// The lease of this server.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// When it ends, in milliseconds of [`now`]; 0 before the first beat.
    until: AtomicU64,
}

impl Lease {
    /// Begins one that holds from the first beat on.
    pub(crate) fn begun() -> Self {
        Self {
            until: AtomicU64::new(1),
        }
    }

    /// Takes a beat that was sent then, and has succeeded.
    pub(crate) fn renew(&self, sent: u64) {
        let span = u64::try_from(limits::LEASE.as_millis()).unwrap_or_default();
        self.until.fetch_max(sent + span, Ordering::SeqCst);
    }

    /// Lets it hold, or lapses it.
    #[cfg(test)]
    pub(crate) fn set(&self, holds: bool) {
        self.until
            .store(if holds { u64::MAX } else { 1 }, Ordering::SeqCst);
    }

    /// Ends it: the other servers have declared this one dead.
    pub(crate) fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    /// Returns whether it was ended, or never began. One that has lapsed is another: it holds again after the next beat.
    pub(crate) fn has_ended(&self) -> bool {
        self.until.load(Ordering::SeqCst) == 0
    }

    /// Returns how long ago the last beat was sent that has succeeded.
    pub(crate) fn age(&self) -> Duration {
        let span = u64::try_from(limits::LEASE.as_millis()).unwrap_or_default();
        let sent = self.until.load(Ordering::SeqCst).saturating_sub(span);
        Duration::from_millis(now().saturating_sub(sent))
    }

    /// Returns whether this server may answer.
    pub(crate) fn holds(&self) -> bool {
        self.holds_at(now())
    }

    /// Returns whether this server may answer at a time.
    pub(crate) fn holds_at(&self, now: u64) -> bool {
        now < self.until.load(Ordering::SeqCst)
    }
}

/// Returns milliseconds since the machine was started, those in which it slept among them.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    let since = Duration::from_secs(seconds) + Duration::from_nanos(nanos);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_holds_from_when_its_beat_was_sent() {
        let lease = Lease::default();
        assert!(!lease.holds(), "there was no beat");
        let begun = Lease::begun();
        assert!(!begun.holds() && !begun.has_ended());
        lease.renew(now());
        assert!(lease.holds());
        assert!(lease.age() < Duration::from_secs(1));
        assert!(!lease.has_ended());
        lease.end();
        assert!(!lease.holds() && lease.has_ended());
        let span = u64::try_from(limits::LEASE.as_millis()).unwrap();
        lease.renew(now().saturating_sub(span));
        assert!(!lease.holds(), "the answer came too late");
        assert!(!lease.has_ended());
    }
}
