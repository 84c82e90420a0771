//! The only reader of clocks.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::time::Timestamp;

/// A clock that never goes backwards, nor below the newest time in the log.
#[derive(Debug)]
pub struct Clock {
    newest: AtomicI64,
}

impl Clock {
    /// Starts at `floor` or the system's time, whichever is later.
    #[must_use]
    pub fn new(floor: Timestamp) -> Self {
        Self {
            newest: AtomicI64::new(floor.as_millis()),
        }
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        let system = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let millis = i64::try_from(system.as_millis()).unwrap_or(i64::MAX);
        let before = self.newest.fetch_max(millis, Ordering::Relaxed);
        Timestamp::from_millis(before.max(millis))
    }

    /// Returns how long it is until `deadline`; nothing if it has passed.
    pub fn until(&self, deadline: Timestamp) -> Duration {
        let millis = deadline.since(self.now()).as_millis();
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_does_not_fall_behind_the_log() {
        let ahead = Timestamp::from_millis(i64::MAX / 2);
        assert_eq!(Clock::new(ahead).now(), ahead);
    }
}
