//! Clocks: the engine's monotonic time, and the system time that messages carry.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jitney_base::time::Timestamp;

/// The monotonic time of one connection, as its engine takes it.
#[derive(Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start, as a timestamp.
    pub(crate) fn elapsed(&self) -> Timestamp {
        let millis = self.0.elapsed().as_millis();
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    /// Returns the time until `deadline`, a timestamp of [`Clock::elapsed`]; zero if it has passed.
    pub(crate) fn until(&self, deadline: Timestamp) -> Duration {
        let millis = deadline.since(self.elapsed()).as_millis();
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}

/// Returns the system time in microseconds since 1970. Messages carry it, so that another process can
/// compute their latency.
pub(crate) fn unix_micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use jitney_base::time::Millis;

    use super::*;

    #[test]
    fn the_time_until_a_deadline_is_never_negative() {
        let clock = Clock::start();
        let now = clock.elapsed();
        let far = now.after(Millis::from_millis(60_000));
        let left = clock.until(far);
        assert!(left <= Duration::from_mins(1));
        assert!(Duration::from_secs(50) < left);
        assert_eq!(clock.until(now), Duration::ZERO);
    }
}
