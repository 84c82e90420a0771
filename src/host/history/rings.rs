//! The intervals of a namespace's history, in three resolutions: an hour, a day and a week.
//!
//! Intervals have numbers, and what happened in one refers to it by its number. So a clock that is set changes no order: intervals
//! whose ends would lie in the future are removed, and time without a look is in no interval.

use std::collections::VecDeque;

use crate::limits;
use jitney_base::time::{Millis, Timestamp};

/// How far back a history goes. The further it goes, the longer are its intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    Hour,
    Day,
    Week,
}

/// One of each range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OfRanges<T> {
    pub(super) hour: T,
    pub(super) day: T,
    pub(super) week: T,
}

/// A time during which a namespace was watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) end: Timestamp,
    /// From its begin to its end, milliseconds.
    pub(super) length: u32,
    /// How much of that the namespace was watched, milliseconds.
    pub(super) watched: u32,
}

/// The intervals of one range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Intervals {
    /// Those that have ended, the oldest first. Ends increase.
    pub(super) ended: VecDeque<Interval>,
    /// The number of the first of them.
    pub(super) first: u32,
    /// The one that has begun.
    pub(super) open: Option<Interval>,
}

impl Range {
    pub(crate) const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Week];

    /// Returns the time that it covers.
    pub(crate) const fn span(self) -> Millis {
        match self {
            Self::Hour => Millis::from_secs(3_600),
            Self::Day => Millis::from_secs(86_400),
            Self::Week => Millis::from_secs(7 * 86_400),
        }
    }

    /// Returns where it begins.
    pub(crate) const fn begin(self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis().saturating_sub(self.span().as_millis()))
    }

    /// Returns the length of its intervals.
    pub(crate) const fn interval(self) -> Millis {
        match self {
            Self::Hour => limits::HISTORY_INTERVAL,
            Self::Day => limits::HISTORY_DAY_INTERVAL,
            Self::Week => limits::HISTORY_WEEK_INTERVAL,
        }
    }

    /// Returns how many of its intervals are kept.
    pub(super) const fn intervals_max(self) -> usize {
        match self {
            Self::Hour => limits::HISTORY_INTERVALS,
            Self::Day => limits::HISTORY_DAY_INTERVALS,
            Self::Week => limits::HISTORY_WEEK_INTERVALS,
        }
    }

    /// Returns whether an interval that began at a time is over. One of an hour lasts from one look to the next; the others end at
    /// multiples of their length, so that a restart does not shift them.
    fn is_over(self, begin: Timestamp, now: Timestamp) -> bool {
        let step = self.interval().as_millis();
        let place = |time: Timestamp| time.as_millis().div_euclid(step);
        match self {
            Self::Hour => true,
            Self::Day | Self::Week => place(begin) != place(now),
        }
    }
}

impl<T> OfRanges<T> {
    pub(super) fn of(&self, range: Range) -> &T {
        match range {
            Range::Hour => &self.hour,
            Range::Day => &self.day,
            Range::Week => &self.week,
        }
    }

    pub(super) fn of_mut(&mut self, range: Range) -> &mut T {
        match range {
            Range::Hour => &mut self.hour,
            Range::Day => &mut self.day,
            Range::Week => &mut self.week,
        }
    }

    pub(super) fn all(&self) -> [&T; 3] {
        [&self.hour, &self.day, &self.week]
    }

    pub(super) fn all_mut(&mut self) -> [&mut T; 3] {
        [&mut self.hour, &mut self.day, &mut self.week]
    }
}

impl Interval {
    pub(crate) fn begin(&self) -> Timestamp {
        Timestamp::from_millis(self.end.as_millis().saturating_sub(i64::from(self.length)))
    }

    /// Returns for how long the namespace was watched.
    pub(crate) fn watched(&self) -> Millis {
        Millis::from_millis(i64::from(self.watched))
    }
}

impl Intervals {
    /// Returns the number of the interval that has begun, or begins next.
    pub(super) fn next(&self) -> u32 {
        let count = u32::try_from(self.ended.len()).unwrap_or(u32::MAX);
        self.first.saturating_add(count)
    }

    /// Returns the intervals with their numbers, the oldest first.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (u32, &Interval)> {
        (self.first..).zip(&self.ended)
    }

    /// Adds the time from one look to the next.
    pub(super) fn watch(&mut self, begin: Timestamp, now: Timestamp) {
        let millis = |span: Millis| u32::try_from(span.as_millis()).unwrap_or(u32::MAX);
        let looked = millis(now.since(begin));
        self.open = Some(match self.open {
            None => Interval {
                end: now,
                length: looked,
                watched: looked,
            },
            Some(open) => Interval {
                end: now,
                length: millis(now.since(open.begin())),
                watched: open.watched.saturating_add(looked),
            },
        });
    }

    /// Ends the interval that has begun, if it is over; returns its number.
    pub(super) fn end(&mut self, range: Range, now: Timestamp) -> Option<u32> {
        let number = self.next();
        let open = self.open.take_if(|open| range.is_over(open.begin(), now))?;
        if self.ended.len() == self.ended.capacity() {
            self.ended.reserve_exact(GROWTH);
        }
        self.ended.push_back(open);
        self.forget_oldest(self.ended.len().saturating_sub(range.intervals_max()));
        Some(number)
    }

    /// Removes intervals that end after a time: the clock was set back. Returns whether the one that has begun was among them.
    pub(super) fn forget_after(&mut self, now: Timestamp) -> Option<Interval> {
        while self.ended.pop_back_if(|it| now < it.end).is_some() {}
        self.open.take_if(|open| now < open.end)
    }

    pub(super) fn forget_oldest(&mut self, count: usize) {
        let count = count.min(self.ended.len());
        self.ended.drain(..count);
        self.first = self
            .first
            .saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Returns the bytes that it takes beside itself.
    pub(super) fn bytes(&self) -> usize {
        self.ended.capacity() * size_of::<Interval>()
    }
}

/// How many places are added where a list is full: doubling it would double what an hour takes.
pub(super) const GROWTH: usize = 16;
