//! The core's time: a number, read from a clock elsewhere.

use std::fmt;
use std::time::Duration;

/// The ticks of .NET, 100 ns, in a millisecond.
pub const TICKS_PER_MILLI: i64 = 10_000;
/// 1970-01-01T00:00:00Z in ticks of .NET, which counts them from the year 1.
pub const UNIX_EPOCH_TICKS: i64 = 621_355_968_000_000_000;

/// Ticks of .NET in a second.
pub const SECOND: i128 = 10_000_000;
/// Ticks of .NET in a day.
pub const DAY: i128 = 86_400 * SECOND;
/// .NET's longest time span, which represents "for ever".
pub const LONGEST: &str = "P10675199DT2H48M5.4775807S";
/// Days of it. Clients lose some of the rest when they read it and write it back.
pub const LONGEST_DAYS: i128 = 10_675_199;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
///
/// The wire (AMQP `timestamp`), the log and the state machines all use this unit.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// A length of time in milliseconds; never negative.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Millis(i64);

/// How far a clock was set: ahead, or back.
///
/// Deadlines by elapsed time (locks, waits, transactions) are moved with the clock, and keep their
/// distance. Schedules, expiries and tokens follow the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep(i64);

impl ClockStep {
    /// Takes milliseconds: negative ones for a clock that was set back.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns milliseconds: negative ones for a clock that was set back.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }
}

impl Timestamp {
    /// 9999-12-31T23:59:59.999Z: the last time that .NET and Python can represent.
    pub const END_OF_9999: Self = Self::from_millis(253_402_300_799_999);

    /// Returns it as the service prints times in texts: `11/21/2026 5:26:14 AM`, in UTC.
    #[must_use]
    pub fn to_service_text(self) -> String {
        jiff::Timestamp::from_millisecond(self.as_millis())
            .map(|at| {
                at.to_zoned(jiff::tz::TimeZone::UTC)
                    .strftime("%-m/%-d/%Y %-I:%M:%S %p")
                    .to_string()
            })
            .unwrap_or_default()
    }

    /// The end of time: later than any time that a client can send.
    pub const MAX: Self = Self(i64::MAX);
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// Takes milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the time that lies `span` later, or [`Timestamp::MAX`] beyond the range.
    #[must_use]
    pub const fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// Returns the next multiple of `step` since the epoch, or this one if it is a multiple;
    /// [`Timestamp::MAX`] beyond the range.
    #[must_use]
    pub const fn round_up(self, step: Millis) -> Self {
        match self.0.rem_euclid(step.0) {
            0 => self,
            over => Self(self.0.saturating_add(step.0 - over)),
        }
    }

    /// Returns this deadline after a step of the clock, at the same distance from now as before;
    /// [`Timestamp::MAX`] stays where it is.
    #[must_use]
    pub const fn moved(self, step: ClockStep) -> Self {
        if self.0 == i64::MAX {
            return self;
        }
        Self(self.0.saturating_add(step.0))
    }

    /// Returns how long ago `earlier` was: zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        let span = self.0.saturating_sub(earlier.0);
        Millis(if span < 0 { 0 } else { span })
    }
}

/// Returns a duration in units of 100 ns in ISO 8601, as .NET writes it.
#[must_use]
pub fn ticks_as_duration(ticks: i128) -> String {
    let part = |count: i128, letter: char| match count {
        0 => String::new(),
        count => format!("{count}{letter}"),
    };
    let sign = if ticks < 0 { "-" } else { "" };
    let ticks = ticks.abs();
    let (seconds, fraction) = (ticks / SECOND, ticks % SECOND);
    let days = part(ticks / DAY, 'D');
    let hours = part(seconds / 3_600 % 24, 'H');
    let minutes = part(seconds / 60 % 60, 'M');
    let seconds = match (seconds % 60, fraction) {
        (whole, 0) => part(whole, 'S'),
        (whole, fraction) => {
            let digits = format!("{fraction:07}");
            format!("{whole}.{}S", digits.trim_end_matches('0'))
        }
    };
    let time = [hours, minutes, seconds].concat();
    match (days.is_empty(), time.is_empty()) {
        (true, true) => "PT0S".to_owned(),
        (false, true) => format!("{sign}P{days}"),
        (_, false) => format!("{sign}P{days}T{time}"),
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Millis {
    /// Returns it in ISO 8601, as .NET writes it: its longest time span for one that has no end.
    #[must_use]
    pub fn to_iso_text(self) -> String {
        let ticks = i128::from(self.0) * i128::from(TICKS_PER_MILLI);
        if LONGEST_DAYS * DAY <= ticks {
            return LONGEST.to_owned();
        }
        ticks_as_duration(ticks)
    }

    /// No end: a time to live that never expires.
    pub const MAX: Self = Self(i64::MAX);
    /// A duration of zero.
    pub const ZERO: Self = Self(0);

    /// Takes a number of milliseconds; a negative one counts as zero.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(if millis < 0 { 0 } else { millis })
    }

    /// Takes a number of seconds.
    #[must_use]
    pub const fn from_secs(secs: u32) -> Self {
        Self(secs as i64 * 1000)
    }

    /// Returns the number of milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns it as the standard library's duration, for timers.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0.cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rounded_up_to_a_multiple_and_no_deadline_stays_none() {
        let step = Millis::from_millis(500);
        let up = |millis| Timestamp::from_millis(millis).round_up(step).as_millis();
        assert_eq!([up(0), up(1), up(500), up(501)], [0, 500, 500, 1_000]);
        assert_eq!(up(-1), 0);
        assert_eq!(Timestamp::MAX.round_up(step), Timestamp::MAX);
    }

    #[test]
    fn the_far_future_saturates() {
        assert_eq!(Timestamp::from_millis(5).after(Millis::MAX), Timestamp::MAX);
    }

    #[test]
    fn a_deadline_moves_with_its_clock_and_no_deadline_stays_none() {
        let (ahead, back) = (ClockStep::from_millis(9), ClockStep::from_millis(-9));
        let at = Timestamp::from_millis(10);
        assert_eq!(at.moved(ahead), Timestamp::from_millis(19));
        assert_eq!(at.moved(back), Timestamp::from_millis(1));
        assert_eq!(Timestamp::MAX.moved(back), Timestamp::MAX);
    }

    #[test]
    fn time_that_lies_ahead_is_no_time_ago() {
        let (early, late) = (Timestamp::from_millis(1), Timestamp::from_millis(9));
        assert_eq!(late.since(early), Millis::from_millis(8));
        assert_eq!(early.since(late), Millis::ZERO);
    }
}
