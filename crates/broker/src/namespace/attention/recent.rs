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
