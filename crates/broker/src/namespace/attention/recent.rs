//! What happened in an entity in the last hour, from counters that begin with the process.

use std::collections::VecDeque;

use crate::limits;
use jitney_base::time::{ClockStep, Timestamp};
use jitney_queue::{Counters, DeadLetterCause};

/// What is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) dead_lettered: u64,
    /// Those of them that could not be forwarded.
    pub(super) not_forwarded: u64,
    pub(super) locks_expired: u64,
    pub(super) completed: u64,
}

/// The counters of an entity, and what they were before each part of the last hour in which something went wrong.
#[derive(Debug, Default)]
pub(super) struct Recent {
    counted: Totals,
    spans: VecDeque<(Timestamp, Totals)>,
}

impl Totals {
    pub(super) fn of(counters: &Counters) -> Self {
        let forwarding = counters
            .dead_lettered
            .get(DeadLetterCause::Forwarding as usize);
        Self {
            dead_lettered: counters.dead_lettered.iter().sum(),
            not_forwarded: forwarding.copied().unwrap_or_default(),
            locks_expired: counters.locks_expired,
            completed: counters.completed,
        }
    }

    /// Returns whether something has gone wrong since the start.
    pub(super) const fn has_failures(&self) -> bool {
        self.dead_lettered != 0 || self.locks_expired != 0
    }

    const fn failures(&self) -> (u64, u64) {
        (self.dead_lettered, self.locks_expired)
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            dead_lettered: self.dead_lettered.saturating_sub(before.dead_lettered),
            not_forwarded: self.not_forwarded.saturating_sub(before.not_forwarded),
            locks_expired: self.locks_expired.saturating_sub(before.locks_expired),
            completed: self.completed.saturating_sub(before.completed),
        }
    }
}

impl Recent {
    /// Takes the counters as they are now, and returns what was counted since the first failure of the last hour.
    pub(super) fn take(&mut self, now: Timestamp, totals: Totals) -> Totals {
        let kept = limits::ATTENTION_RECENT;
        while self
            .spans
            .pop_front_if(|(began, _)| kept <= now.since(*began))
            .is_some()
        {}
        if totals.failures() != self.counted.failures() {
            let last = self.spans.back();
            let is_over = last.is_none_or(|(began, _)| limits::ATTENTION_SPAN <= now.since(*began));
            if is_over {
                self.spans.push_back((now, self.counted));
            }
        }
        self.counted = totals;
        let first = self.spans.front();
        first.map_or_else(Totals::default, |(_, before)| totals.since(before))
    }

    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        for (began, _) in &mut self.spans {
            *began = began.moved(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_base::time::Millis;

    fn totals(dead_lettered: u64, completed: u64) -> Totals {
        Totals {
            dead_lettered,
            completed,
            ..Totals::default()
        }
    }

    #[test]
    fn what_went_wrong_counts_for_an_hour() {
        let mut recent = Recent::default();
        let start = Timestamp::from_millis(1_000_000);
        let mut take = |seconds: i64, dead: u64, completed: u64| {
            let now = start.after(Millis::from_millis(seconds * 1_000));
            let found = recent.take(now, totals(dead, completed));
            (found.dead_lettered, found.completed)
        };
        assert_eq!(take(0, 0, 50), (0, 0));
        assert_eq!(take(10, 3, 60), (3, 10), "completions count from there on");
        assert_eq!(take(20, 4, 70), (4, 20));
        assert_eq!(take(1_000, 9, 70), (9, 20));
        assert_eq!(take(3_609, 9, 90), (9, 40));
        assert_eq!(
            take(3_610, 9, 90),
            (5, 20),
            "the first five minutes are over"
        );
        assert_eq!(take(4_600, 9, 90), (0, 0));
    }

    #[test]
    fn an_entity_has_a_bounded_number_of_spans() {
        let mut recent = Recent::default();
        for second in 0..10_000_u32 {
            let now = Timestamp::from_millis(i64::from(second) * 1_000);
            recent.take(now, totals(u64::from(second), 0));
        }
        let most = limits::ATTENTION_RECENT.as_millis() / limits::ATTENTION_SPAN.as_millis() + 1;
        assert!(recent.spans.len() <= usize::try_from(most).unwrap());
    }

    #[test]
    fn a_clock_that_is_set_moves_what_is_recent() {
        let mut recent = Recent::default();
        let start = Timestamp::from_millis(1_000_000);
        recent.take(start, totals(3, 0));
        let day = Millis::from_millis(24 * 3_600_000);
        recent.follow_clock(ClockStep::from_millis(day.as_millis()));
        let found = recent.take(start.after(day), totals(3, 0));
        assert_eq!(found.dead_lettered, 3);
    }
}
