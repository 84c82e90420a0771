//! How long a server may answer without a beat of its own.
//!
//! The other servers take the namespaces of one whose beat they have seen unchanged for 3 s. A server answers until 2 s after it
//! sent the last beat that succeeded, by a clock that runs while the machine sleeps. No clock of the database and no clock of
//! another machine decides anything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::limits;

/// The lease of this server. Times are milliseconds of a clock that runs while the machine sleeps, and that is never set.
#[derive(Debug, Default)]
pub struct Lease {
    /// When it ends; 0 before the first heartbeat.
    until: AtomicU64,
}

impl Lease {
    /// Begins one that holds from the first beat on.
    #[must_use]
    pub fn begun() -> Self {
        Self {
            until: AtomicU64::new(1),
        }
    }

    /// Takes a beat that was sent then, and has succeeded.
    pub fn renew(&self, sent: u64) {
        let span = u64::try_from(limits::LEASE.as_millis()).unwrap_or_default();
        self.until.fetch_max(sent + span, Ordering::SeqCst);
    }

    /// Lets it hold, whatever the time is.
    #[cfg(any(test, feature = "testing"))]
    pub fn hold(&self) {
        self.until.store(u64::MAX, Ordering::SeqCst);
    }

    /// Lapses it, whatever the time is.
    #[cfg(any(test, feature = "testing"))]
    pub fn lapse(&self) {
        self.until.store(1, Ordering::SeqCst);
    }

    /// Ends it: the other servers have declared this one dead.
    pub fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    /// Returns whether it was ended, or never began. One that has lapsed is another: it holds again after the next beat.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.until.load(Ordering::SeqCst) == 0
    }

    /// Returns how long before `now` the last heartbeat was sent that has succeeded.
    #[must_use]
    pub fn age(&self, now: u64) -> Duration {
        let span = u64::try_from(limits::LEASE.as_millis()).unwrap_or_default();
        let sent = self.until.load(Ordering::SeqCst).saturating_sub(span);
        Duration::from_millis(now.saturating_sub(sent))
    }

    /// Returns whether this server may answer at a time.
    #[must_use]
    pub fn holds(&self, now: u64) -> bool {
        now < self.until.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_holds_from_when_its_heartbeat_was_sent() {
        let now = 1_000_000;
        let span = u64::try_from(limits::LEASE.as_millis()).unwrap();
        let lease = Lease::default();
        assert!(!lease.holds(now), "there was no heartbeat");
        let begun = Lease::begun();
        assert!(!begun.holds(now) && !begun.has_ended());
        lease.renew(now);
        assert!(lease.holds(now + span - 1) && !lease.holds(now + span));
        assert_eq!(lease.age(now + 5), Duration::from_millis(5));
        assert!(!lease.has_ended());
        lease.end();
        assert!(!lease.holds(now) && lease.has_ended());
        lease.renew(now - span);
        assert!(!lease.holds(now), "the answer came too late");
        assert!(!lease.has_ended());
    }
}
