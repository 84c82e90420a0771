//! This server's clock against a database's. A clock that is far off would end times to live, and the memory of duplicates, too early:
//! a server does not follow such a clock, and has no namespaces while another server may take them.
//!
//! Neither clock decides who is alive: a server whose clock is off beats.

use crate::limits;

/// The clock of this server, as it was compared with a database's.
#[derive(Debug, Default)]
pub struct ClockComparison {
    /// By how much it is ahead of the database's, in milliseconds.
    offset: i64,
    /// It is near enough to the database's for namespaces to be taken. It is not before it was compared.
    is_in_time: bool,
    /// What was logged since it was well.
    warned: Option<Skew>,
}

/// How far a clock is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skew {
    /// Enough for an operator to know, and namespaces are taken.
    Warned,
    /// Too much for namespaces to be taken.
    Refused,
}

impl ClockComparison {
    /// Takes by how many milliseconds this server's clock is ahead; returns what is to be logged. Each of the two is logged once until
    /// the clock is well again.
    pub fn compare(&mut self, offset: i64) -> Option<Skew> {
        self.offset = offset;
        let skew = skew_of(offset);
        self.is_in_time = skew != Some(Skew::Refused);
        let is_new = self.warned < skew;
        self.warned = skew.and_then(|_| self.warned.max(skew));
        skew.filter(|_| is_new)
    }

    /// Returns by how many milliseconds this server's clock is ahead of the database's, as it was compared last.
    #[must_use]
    pub const fn offset(&self) -> i64 {
        self.offset
    }

    /// Returns whether the clock is near enough to the database's for namespaces to be taken.
    #[must_use]
    pub const fn is_in_time(&self) -> bool {
        self.is_in_time
    }
}

fn skew_of(offset: i64) -> Option<Skew> {
    let apart = offset.abs();
    if limits::CLOCK_SKEW_MAX.as_millis() < apart {
        return Some(Skew::Refused);
    }
    (limits::CLOCK_SKEW_WARN.as_millis() < apart).then_some(Skew::Warned)
}

/// Returns by how many milliseconds this server's clock is ahead of the database's at least: it had a time when it asked, the database
/// another when it answered, and the answer took some milliseconds in all.
#[must_use]
pub fn offset_of(asked: i64, answered: i64, took: i64) -> i64 {
    let ahead = asked + took / 2 - answered;
    // The answer may have taken its time on one way.
    ahead.signum() * ahead.abs().saturating_sub(took / 2).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn a_clock_is_compared_without_what_the_answer_takes() {
        for offset in [0, 700, -700, HOUR, -HOUR] {
            assert_eq!(offset_of(10 * HOUR + offset, 10 * HOUR, 0), offset);
        }
        // The database read its clock at the begin, in the middle or at the end of 400 ms.
        for answered in [0, 200, 400] {
            assert_eq!(offset_of(0, answered, 400), 0);
        }
        assert_eq!(offset_of(HOUR, 200, 400), HOUR - 200);
        assert_eq!(offset_of(-HOUR, 200, 400), 200 - HOUR);
    }

    #[test]
    fn a_clock_that_is_off_is_logged_and_again_when_it_takes_no_namespaces() {
        let mut clock = ClockComparison::default();
        let mut compare = |offset| {
            let told = clock.compare(offset);
            (told, clock.is_in_time())
        };
        assert_eq!(compare(200), (None, true));
        assert_eq!(compare(300), (Some(Skew::Warned), true));
        assert_eq!(compare(-1_000), (None, true));
        assert_eq!(compare(1_001), (Some(Skew::Refused), false));
        assert_eq!(compare(-HOUR), (None, false));
        // It was logged that it is off more, and it is not well.
        assert_eq!(compare(300), (None, true));
        assert_eq!(compare(1_001), (None, false));
        assert_eq!(compare(0), (None, true));
        assert_eq!(compare(-1_001), (Some(Skew::Refused), false));
        assert_eq!(compare(0), (None, true));
        assert_eq!(compare(-201), (Some(Skew::Warned), true));
    }
}
