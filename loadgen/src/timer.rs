//! A timer with microsecond resolution.
//!
//! The timers of tokio have a resolution of one millisecond, which is too coarse for a latency below
//! that. On Linux this module uses `timerfd`; on other systems it uses tokio's timers.

use std::io;
use std::time::Instant;

use system::SystemTimer;

#[cfg(target_os = "linux")]
mod system {
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

    /// A `timerfd`.
    #[derive(Debug)]
    pub(super) struct SystemTimer(AsyncFd<OwnedFd>);

    impl SystemTimer {
        #[expect(
            deprecated,
            reason = "its replacement is unsafe, which is forbidden here; an owned descriptor is sound"
        )]
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok(Self(AsyncFd::with_interest(timer, Interest::READABLE)?))
        }

        pub(super) async fn until(&self, at: Instant) -> io::Result<()> {
            let wait = at.saturating_duration_since(Instant::now());
            // A value of zero would disarm the timer.
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
mod system {
    use std::io;
    use std::time::Instant;

    /// The timer of tokio.
    #[derive(Debug)]
    pub(super) struct SystemTimer;

    impl SystemTimer {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn until(&self, at: Instant) -> io::Result<()> {
            tokio::time::sleep_until(at.into()).await;
            Ok(())
        }
    }
}

/// A timer for one time at a time.
#[derive(Debug, Default)]
pub(crate) struct Timer(Option<SystemTimer>);

impl Timer {
    /// Waits until a time; returns at once if it has passed. A wait that is dropped is cancelled.
    pub(crate) async fn until(&mut self, at: Instant) -> io::Result<()> {
        if at <= Instant::now() {
            return Ok(());
        }
        let timer = match self.0.take() {
            Some(timer) => timer,
            None => SystemTimer::new()?,
        };
        self.0.insert(timer).until(at).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_wait_does_not_end_early() {
        let mut timer = Timer::default();
        for micros in [300, 0, 1_500, 40] {
            let at = Instant::now() + Duration::from_micros(micros);
            timer.until(at).await.unwrap();
            assert!(at <= Instant::now());
        }
    }

    #[tokio::test]
    async fn a_wait_works_after_a_cancelled_wait() {
        let mut timer = Timer::default();
        let far = Instant::now() + Duration::from_hours(1);
        let waited = tokio::time::timeout(Duration::from_millis(1), timer.until(far)).await;
        assert!(waited.is_err());
        let near = Instant::now() + Duration::from_millis(2);
        timer.until(near).await.unwrap();
        assert!(near <= Instant::now());
    }
}
