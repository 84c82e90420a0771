//! The only reader of clocks: the system's clock for dates, and the monotonic one for durations.
//!
//! [`Clock::now`] is the system's time as the broker follows it. A step back of up to
//! [`limits::CLOCK_HELD`] is held: time stops until the system has caught up. A larger step, in
//! either direction, is followed; [`Clock::look`] reports it once, and the owner lets the broker move
//! the deadlines that run by elapsed time. [`Clock::elapsed`] knows nothing of dates, and no step moves
//! it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tracing::warn;

use crate::limits;
use crate::time::{ClockStep, Millis, Timestamp};

/// The time, for the broker and its connections.
#[derive(Debug)]
pub struct Clock {
    began: Instant,
    line: Mutex<Line>,
    steps: AtomicU64,
    behind_log: Option<Millis>,
}

/// How the system's time is followed.
#[derive(Debug)]
struct Line {
    /// The time of the last look.
    shown: i64,
    /// When that was, in milliseconds of the monotonic clock.
    looked: i64,
    /// All steps that were followed, together.
    stepped: i64,
}

/// What one of those that follow a clock has seen of its steps.
#[derive(Debug, Default)]
pub struct Seen(i64);

/// Returns the system's time as it is, with its full precision: for spans, which other machines compare with theirs.
pub(super) fn system_time() -> SystemTime {
    SystemTime::now()
}

impl Clock {
    /// Starts at the system's time; at `newest`, the newest time of the log, if that lies ahead by no
    /// more than a step that is held.
    #[must_use]
    pub fn new(newest: Timestamp) -> Self {
        let (line, behind_log) = Line::start(newest.as_millis(), system());
        Self {
            began: Instant::now(),
            line: Mutex::new(line),
            steps: AtomicU64::new(0),
            behind_log,
        }
    }

    /// Returns how far the system's clock lay before the log's newest time at the start, if the log
    /// was not followed.
    #[must_use]
    pub fn behind_log(&self) -> Option<Millis> {
        self.behind_log
    }

    /// Reads the clocks; returns the time, and how far the system's clock was set since the look that
    /// `seen` is of. Each shard has its own.
    pub fn look(&self, seen: &mut Seen) -> (Timestamp, Option<ClockStep>) {
        let elapsed = self.elapsed().as_millis();
        let mut line = self.line();
        let step = line.look(system(), elapsed);
        if let Some(step) = step {
            let steps = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
            report(step, steps);
        }
        let step = line
            .stepped
            .saturating_sub(std::mem::replace(&mut seen.0, line.stepped));
        let step = (step != 0).then(|| ClockStep::from_millis(step));
        (Timestamp::from_millis(line.shown), step)
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        let elapsed = self.elapsed().as_millis();
        Timestamp::from_millis(self.line().at(elapsed))
    }

    /// Returns how often the system's clock was set since the start.
    #[cfg(test)]
    fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Returns the time since the start, on a scale of its own: for time-outs.
    pub fn elapsed(&self) -> Timestamp {
        let millis = self.began.elapsed().as_millis();
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    /// Returns the time until `deadline`; zero if it has passed.
    pub fn until(&self, deadline: Timestamp) -> Duration {
        span(deadline.since(self.now()))
    }

    /// Returns how long it is until `deadline`, a time of [`Clock::elapsed`].
    pub fn until_elapsed(&self, deadline: Timestamp) -> Duration {
        span(deadline.since(self.elapsed()))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // Each look is one step: a thread that panicked left no partial state.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn start(newest: i64, system: i64) -> (Self, Option<Millis>) {
        let behind = newest.saturating_sub(system);
        let (shown, behind_log) = if HELD < behind {
            (system, Some(Millis::from_millis(behind)))
        } else {
            (system.max(newest), None)
        };
        let line = Self {
            shown,
            looked: 0,
            stepped: 0,
        };
        (line, behind_log)
    }

    fn look(&mut self, system: i64, elapsed: i64) -> Option<ClockStep> {
        let by = system.saturating_sub(self.at(elapsed));
        self.looked = elapsed;
        if by.saturating_abs() <= HELD {
            self.shown = self.shown.max(system);
            return None;
        }
        self.shown = system;
        self.stepped = self.stepped.saturating_add(by);
        Some(ClockStep::from_millis(by))
    }

    /// Returns the time as the monotonic clock has it.
    fn at(&self, elapsed: i64) -> i64 {
        let since = elapsed.saturating_sub(self.looked);
        self.shown.saturating_add(since)
    }
}

/// Says that the system's clock was set.
fn report(step: ClockStep, steps: u64) {
    let milliseconds = step.as_millis();
    let what = if milliseconds < 0 {
        "set back"
    } else {
        "set ahead, or the machine was suspended"
    };
    warn!(
        milliseconds,
        steps,
        "the system's clock was {what}: stamps, schedules, ends of life and of tokens follow it; locks \
         and time-outs have as much time left as before"
    );
}

const HELD: i64 = limits::CLOCK_HELD.as_millis();

/// The system's time, in milliseconds since the epoch.
fn system() -> i64 {
    let system = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(system.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

fn span(millis: Millis) -> Duration {
    Duration::from_millis(u64::try_from(millis.as_millis()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAYS_30: i64 = 30 * 86_400_000;

    fn line(shown: i64) -> Line {
        Line {
            shown,
            looked: 0,
            stepped: 0,
        }
    }

    #[test]
    fn a_clock_that_is_not_set_is_followed() {
        let mut line = line(1_000_000);
        for (system, elapsed) in [(1_000_010, 10), (1_000_500, 480), (1_060_000, 60_400)] {
            assert_eq!(line.look(system, elapsed), None);
            assert_eq!(line.shown, system);
        }
    }

    #[test]
    fn a_step_back_of_up_to_a_second_is_held() {
        let mut line = line(1_000_000);
        assert_eq!(line.look(999_020, 20), None);
        assert_eq!(line.shown, 1_000_000);
        assert_eq!(line.look(999_520, 520), None);
        assert_eq!(line.shown, 1_000_000);
        assert_eq!(line.look(1_000_520, 1_520), None);
        assert_eq!(line.shown, 1_000_520);
    }

    #[test]
    fn a_step_is_seen_by_each_that_follows() {
        let clock = Clock::new(Timestamp::EPOCH);
        let (mut one, mut other) = (Seen::default(), Seen::default());
        assert_eq!(clock.look(&mut one).1, None);
        // The system's clock is where it was; what was shown is not.
        clock.line().shown -= DAYS_30;
        let step = clock.look(&mut one).1.unwrap().as_millis();
        assert!((DAYS_30..DAYS_30 + 60_000).contains(&step), "{step}");
        assert_eq!(clock.look(&mut one).1, None);
        assert_eq!(clock.look(&mut other).1.unwrap().as_millis(), step);
        assert_eq!((clock.look(&mut other).1, clock.steps()), (None, 1));
    }

    #[test]
    fn larger_steps_are_followed_and_reported_once() {
        for step in [-DAYS_30, -1_001, 1_001, DAYS_30] {
            let mut line = line(2 * DAYS_30);
            let set = 2 * DAYS_30 + 50 + step;
            assert_eq!(line.look(set, 50), Some(ClockStep::from_millis(step)));
            assert_eq!(line.shown, set);
            assert_eq!(line.look(set + 100, 150), None);
            assert_eq!(line.shown, set + 100);
        }
    }

    #[test]
    fn a_step_that_is_seen_late_is_what_the_monotonic_clock_did_not_see() {
        let mut line = line(1_000_000);
        assert_eq!(
            line.look(1_050_000, 60_000),
            Some(ClockStep::from_millis(-10_000))
        );
    }

    #[test]
    fn small_steps_back_that_add_up_are_followed() {
        let mut line = line(1_000_000);
        assert_eq!(line.look(999_200, 0), None);
        assert_eq!(line.look(998_400, 0), Some(ClockStep::from_millis(-1_600)));
        assert_eq!(line.shown, 998_400);
    }

    #[test]
    fn a_start_holds_the_newest_time_of_the_log_for_a_second_at_most() {
        let (line, behind) = Line::start(1_000_900, 1_000_000);
        assert_eq!((line.shown, behind), (1_000_900, None));
        let (line, behind) = Line::start(1_000_000, 1_000_900);
        assert_eq!((line.shown, behind), (1_000_900, None));
        let (line, behind) = Line::start(DAYS_30, 1_000_000);
        assert_eq!(line.shown, 1_000_000);
        assert_eq!(behind, Some(Millis::from_millis(DAYS_30 - 1_000_000)));
    }
}
