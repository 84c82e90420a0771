//! The only reader of clocks: the system's clock for dates, and the monotonic one for durations.
//!
//! [`Clock::now`] is the system's time as the broker follows it. A step back of up to
//! [`limits::CLOCK_HELD`] is held: time stops until the system has caught up. A larger step, in
//! either direction, is followed; [`Clock::look`] reports it once, and the owner lets the broker move
//! the deadlines that run by elapsed time. [`Clock::elapsed`] knows nothing of dates, and no step moves
//! it.
//!
//! Where servers share stores, the databases are witnesses (`Clock::testify`): from the first testimony on, the system's clock is followed
//! only while one of them agrees with it. Otherwise the time continues by the monotonic clock, from when a database last agreed: a clock that is
//! wrong lets nothing expire.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use tracing::warn;

use crate::limits;
use jitney_base::time::{ClockStep, Millis, Timestamp};

/// The time, for the broker and its connections.
#[derive(Debug)]
pub(crate) struct Clock {
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
    /// What each witness has last said of the system's clock: by how much it was ahead of the monotonic one when the witness agreed with
    /// it; none if it did not. Before the first testimony the system's clock is always followed.
    witnesses: Vec<Option<i64>>,
}

/// Both clocks, as they were read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockReading {
    /// The system's time.
    pub(crate) system: Timestamp,
    /// The time since the start.
    elapsed: i64,
}

/// What a witness says of the system's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Testimony {
    /// Its own clock has about the same time.
    Agrees,
    /// Its own clock has another time.
    Differs,
}

/// What one of those that follow a clock has seen of its steps.
#[derive(Debug, Default)]
pub(crate) struct SeenSteps(i64);

/// Returns the time since the machine was started, that in which it slept included: the clock of a fleet's decisions, which is
/// never set.
pub(crate) fn uptime() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(nanos)
}

/// Returns [`uptime`] in milliseconds, as leases have it.
pub(crate) fn since_boot() -> u64 {
    u64::try_from(uptime().as_millis()).unwrap_or(u64::MAX)
}

/// Returns the system's time as it is, with its full precision: for spans, which other machines compare with theirs.
pub(crate) fn system_time() -> SystemTime {
    SystemTime::now()
}

impl Clock {
    /// Starts at the system's time; at `newest`, the newest time of the log, if that lies ahead by no
    /// more than a step that is held.
    #[must_use]
    pub(crate) fn new(newest: Timestamp) -> Self {
        let (line, behind_log) = Line::start(newest.as_millis(), system());
        Self {
            began: Instant::now(),
            line: Mutex::new(line),
            steps: AtomicU64::new(0),
            behind_log,
        }
    }

    /// Reads the system's clock and the monotonic one, for a comparison with a witness.
    pub(crate) fn read(&self) -> ClockReading {
        ClockReading {
            elapsed: self.elapsed().as_millis(),
            system: Timestamp::from_millis(system()),
        }
    }

    /// Takes what a witness says of the system's clock, as it was read. Witnesses are numbered from 0.
    pub(crate) fn testify(&self, witness: usize, reading: ClockReading, says: Testimony) {
        self.line().testify(witness, reading, says);
    }

    /// Returns how far the system's clock lay before the log's newest time at the start, if the log
    /// was not followed.
    #[must_use]
    pub(crate) fn behind_log(&self) -> Option<Millis> {
        self.behind_log
    }

    /// Returns what one has seen that begins to follow: all steps until now.
    pub(crate) fn seen(&self) -> SeenSteps {
        SeenSteps(self.line().stepped)
    }

    /// Reads the clocks; returns the time, and how far the system's clock was set since the look that
    /// `seen` is of. Each shard has its own.
    pub(crate) fn look(&self, seen: &mut SeenSteps) -> (Timestamp, Option<ClockStep>) {
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
    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = self.elapsed().as_millis();
        Timestamp::from_millis(self.line().at(elapsed))
    }

    /// Returns how often the system's clock was set since the start.
    #[cfg(test)]
    fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Returns the time since the start, on a scale of its own: for time-outs.
    pub(crate) fn elapsed(&self) -> Timestamp {
        let millis = self.began.elapsed().as_millis();
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    /// Returns the time until `deadline`; zero if it has passed.
    pub(crate) fn until(&self, deadline: Timestamp) -> Duration {
        span(deadline.since(self.now()))
    }

    /// Returns how long it is until `deadline`, a time of [`Clock::elapsed`].
    pub(crate) fn until_elapsed(&self, deadline: Timestamp) -> Duration {
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
            witnesses: Vec::new(),
        };
        (line, behind_log)
    }

    fn testify(&mut self, witness: usize, reading: ClockReading, says: Testimony) {
        let (system, elapsed) = (reading.system.as_millis(), reading.elapsed);
        if self.witnesses.is_empty() {
            // From here on a look that comes late is a sign of a fault.
            self.look(system, elapsed);
        }
        if self.witnesses.len() <= witness {
            self.witnesses.resize(witness + 1, None);
        }
        if let Some(found) = self.witnesses.get_mut(witness) {
            *found = (says == Testimony::Agrees).then_some(system.saturating_sub(elapsed));
        }
    }

    /// Returns whether the system's clock is to be followed: it is as it was when a witness agreed with it.
    fn is_trusted(&self, system: i64, elapsed: i64) -> bool {
        let ahead = system.saturating_sub(elapsed);
        let is_same = |it: &i64| ahead.saturating_sub(*it).saturating_abs() <= HELD;
        self.witnesses.is_empty() || self.witnesses.iter().flatten().any(is_same)
    }

    fn look(&mut self, system: i64, elapsed: i64) -> Option<ClockStep> {
        let at = self.at(elapsed);
        if UNSEEN < elapsed.saturating_sub(self.looked) {
            // The monotonic clock may be at fault, too: what the witnesses have said was said before.
            self.witnesses.fill(None);
        }
        let by = system.saturating_sub(at);
        self.looked = elapsed;
        if !self.is_trusted(system, elapsed) {
            self.shown = at;
            return None;
        }
        if by.saturating_abs() <= HELD {
            self.shown = self.shown.max(system);
            return None;
        }
        self.shown = system;
        self.stepped = self.stepped.saturating_add(by);
        Some(ClockStep::from_millis(by))
    }

    /// Returns the time as the monotonic clock has it. Where there are witnesses, it continues for a while only without a look.
    fn at(&self, elapsed: i64) -> i64 {
        let mut since = elapsed.saturating_sub(self.looked);
        if !self.witnesses.is_empty() {
            since = since.min(UNSEEN);
        }
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
const UNSEEN: i64 = limits::CLOCK_UNSEEN_MAX.as_millis();

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
            witnesses: Vec::new(),
        }
    }

    const HOUR: i64 = 3_600_000;

    fn says(line: &mut Line, witness: usize, system: i64, elapsed: i64, says: Testimony) {
        let system = Timestamp::from_millis(system);
        line.testify(witness, ClockReading { system, elapsed }, says);
    }

    /// server-clock + 2 h: the messages of an hour to live would be gone before the database is asked.
    #[test]
    fn a_step_that_no_witness_has_seen_is_not_followed() {
        let began = 1_000 * HOUR;
        for step in [2 * HOUR, -2 * HOUR, 1_500, -1_500] {
            let mut line = line(1_000 * HOUR);
            says(&mut line, 0, began, 0, Testimony::Agrees);
            assert_eq!(line.look(began + 500, 500), None);
            // It is set between two comparisons, and the second finds that out.
            assert_eq!(line.look(began + 600 + step, 600), None);
            assert_eq!(line.shown, began + 600, "{step}");
            says(
                &mut line,
                0,
                began + 1_000 + step,
                1_000,
                Testimony::Differs,
            );
            for elapsed in (1_000..60_000).step_by(1_000) {
                assert_eq!(line.look(began + elapsed + step, elapsed), None);
                assert_eq!(line.shown, began + elapsed, "time continues");
            }
            // It is set right again, which was never noticed.
            says(&mut line, 0, began + 60_000, 60_000, Testimony::Agrees);
            assert_eq!(line.look(began + 60_100, 60_100), None);
            assert_eq!(line.shown, began + 60_100);
        }
    }

    #[test]
    fn a_step_is_followed_when_a_witness_agrees_with_the_new_time() {
        // The machine was suspended for an hour: its monotonic clock stood still.
        let began = 1_000 * HOUR;
        let mut line = line(1_000 * HOUR);
        says(&mut line, 0, began, 0, Testimony::Agrees);
        says(&mut line, 1, began, 0, Testimony::Differs);
        assert_eq!(line.look(began + HOUR + 500, 500), None);
        says(&mut line, 0, began + HOUR + 600, 600, Testimony::Agrees);
        let step = line.look(began + HOUR + 700, 700);
        assert_eq!(step, Some(ClockStep::from_millis(HOUR)));
        assert_eq!(line.shown, began + HOUR + 700);
        // Set after the comparison that agrees.
        assert_eq!(line.look(began + 3 * HOUR, 800), None);
        assert_eq!(line.shown, began + HOUR + 800);
    }

    #[test]
    fn a_clock_that_drifts_away_from_the_witness_is_not_followed_further() {
        let began = 1_000 * HOUR;
        let mut line = line(1_000 * HOUR);
        // Each step is small enough to be followed without a witness.
        for second in 1..=100 {
            let (ahead, elapsed) = (second * 500, second * 1_000);
            let verdict = if ahead <= 1_000 {
                Testimony::Agrees
            } else {
                Testimony::Differs
            };
            let system = began + elapsed + ahead;
            says(&mut line, 0, system, elapsed, verdict);
            assert_eq!(line.look(system, elapsed), None);
        }
        assert_eq!(line.shown, began + 100_000 + 1_000);
    }

    /// Some programs that set a clock set the monotonic one as well, as some virtual machines do when they continue.
    #[test]
    fn a_step_of_the_monotonic_clock_is_not_followed_without_a_witness_either() {
        let began = 1_000 * HOUR;
        let mut line = line(1_000 * HOUR);
        says(&mut line, 0, began, 0, Testimony::Agrees);
        assert_eq!(line.look(began + 100, 100), None);
        let step = 2 * HOUR;
        assert!(line.at(step + 200) <= began + 100 + UNSEEN);
        assert_eq!(line.look(began + step + 200, step + 200), None);
        assert!(line.shown <= began + 100 + UNSEEN, "{}", line.shown);
        says(
            &mut line,
            0,
            began + step + 500,
            step + 500,
            Testimony::Differs,
        );
        assert_eq!(line.look(began + step + 600, step + 600), None);
        assert!(line.shown <= began + 600 + UNSEEN, "{}", line.shown);
        // A process that was frozen for an hour sees the same, and the database agrees.
        says(
            &mut line,
            0,
            began + step + 700,
            step + 700,
            Testimony::Agrees,
        );
        line.look(began + step + 800, step + 800);
        assert_eq!(line.shown, began + step + 800);
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
        let (mut one, mut other) = (SeenSteps::default(), SeenSteps::default());
        assert_eq!(clock.look(&mut one).1, None);
        // The system's clock is where it was; what was shown is not.
        clock.line().shown -= DAYS_30;
        let step = clock.look(&mut one).1.unwrap().as_millis();
        assert!((DAYS_30..DAYS_30 + 60_000).contains(&step), "{step}");
        assert_eq!(clock.look(&mut one).1, None);
        assert_eq!(clock.look(&mut other).1.unwrap().as_millis(), step);
        assert_eq!((clock.look(&mut other).1, clock.steps()), (None, 1));
    }

    /// An owner of a namespace that was taken over: its shard has begun at the time after the step.
    #[test]
    fn one_that_begins_to_follow_sees_no_step_of_before() {
        let clock = Clock::new(Timestamp::EPOCH);
        clock.line().shown -= DAYS_30;
        assert!(clock.look(&mut SeenSteps::default()).1.is_some());
        assert_eq!(clock.look(&mut clock.seen()).1, None);
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
