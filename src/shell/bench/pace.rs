//! Waiting to the microsecond: a latency of half a millisecond cannot be measured with a timer of one.
//!
//! The runtime's own timers tick in milliseconds. Linux has timers that are files, which the runtime
//! waits for as for sockets; elsewhere its own have to do.

use std::io;
use std::time::Instant;

#[cfg(target_os = "linux")]
mod timer {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::{Duration, Instant};

    use rustix::io::{Errno, read};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A timer of the system.
    #[derive(Debug)]
    pub(in super::super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        #[expect(
            deprecated,
            reason = "what took its place is unsafe, which is forbidden here; an owned file is sound"
        )]
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok(Self(AsyncFd::with_interest(timer, Interest::READABLE)?))
        }

        pub(super) async fn until(&self, at: Instant) -> io::Result<()> {
            let wait = at.saturating_duration_since(Instant::now());
            // Zero would stop the timer.
            let value = timespec(wait.max(Duration::from_nanos(1)));
            let once = Itimerspec {
                it_interval: timespec(Duration::ZERO),
                it_value: value,
            };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            loop {
                let mut ready = self.0.readable().await?;
                let expired = ready.try_io(|timer| {
                    let mut count = [0; 8];
                    match read(timer.get_ref(), &mut count) {
                        Ok(_) => Ok(()),
                        Err(Errno::AGAIN) => Err(io::ErrorKind::WouldBlock.into()),
                        Err(error) => Err(error.into()),
                    }
                });
                if let Ok(result) = expired {
                    return result;
                }
            }
        }
    }

    fn timespec(span: Duration) -> Timespec {
        Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(span.subsec_nanos()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    use std::io;
    use std::time::Instant;

    /// The runtime's timer.
    #[derive(Debug)]
    pub(in super::super) struct Timer;

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn until(&self, at: Instant) -> io::Result<()> {
            tokio::time::sleep_until(at.into()).await;
            Ok(())
        }
    }
}

/// Waits until given moments; one at a time.
#[derive(Debug, Default)]
pub(super) struct Pace(Option<timer::Timer>);

impl Pace {
    /// Waits until a moment, or not at all if it has passed. Who stops waiting may begin anew.
    pub(super) async fn until(&mut self, at: Instant) -> io::Result<()> {
        if at <= Instant::now() {
            return Ok(());
        }
        let timer = match self.0.take() {
            Some(timer) => timer,
            None => timer::Timer::new()?,
        };
        self.0.insert(timer).until(at).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_moment_is_not_left_before_it_has_come() {
        let mut pace = Pace::default();
        for micros in [300, 0, 1_500, 40] {
            let at = Instant::now() + Duration::from_micros(micros);
            pace.until(at).await.unwrap();
            assert!(at <= Instant::now());
        }
    }

    #[tokio::test]
    async fn waiting_begins_anew_after_it_was_given_up() {
        let mut pace = Pace::default();
        let far = Instant::now() + Duration::from_hours(1);
        let waited = tokio::time::timeout(Duration::from_millis(1), pace.until(far)).await;
        assert!(waited.is_err());
        let near = Instant::now() + Duration::from_millis(2);
        pace.until(near).await.unwrap();
        assert!(near <= Instant::now());
    }
}
