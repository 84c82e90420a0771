//! The history of one namespace: its intervals, and the series of its entities.

use std::collections::BTreeMap;

use super::rings::{Interval, Intervals, OfRanges, Range};
use super::series::{IntervalCounts, NewSeries, Point, Series, Since, Sums};
use crate::limits;
use jitney_base::time::Timestamp;

/// The history of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamespaceHistory {
    pub(super) intervals: OfRanges<Intervals>,
    /// By the key of the path; that of the namespace as a whole is empty.
    pub(super) series: BTreeMap<String, Series>,
    /// The last look, if it found the namespace.
    looked: Option<Timestamp>,
}

/// What a look has found in a namespace.
#[derive(Debug, Default)]
pub(super) struct NamespaceLook {
    /// By the key of the path.
    pub(super) entities: BTreeMap<String, Sums>,
    /// All entities together, also those that are not in the list.
    pub(super) whole: Sums,
    /// What an entity has counted that was not found by the look before.
    pub(super) new: NewEntities,
}

/// Where an entity may have been before it was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NewEntities {
    /// It was made since.
    #[default]
    Made,
    /// It may have been one of those beyond the entities that have a history.
    Unknown,
}

/// An interval, and what happened in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) interval: Interval,
    pub(crate) point: Point,
}

impl NamespaceHistory {
    pub(super) fn take(&mut self, now: Timestamp, look: NamespaceLook) {
        let pause = limits::HISTORY_PAUSE.as_millis();
        let last = self.looked.filter(|last| {
            let since = now.since(*last).as_millis();
            (1..=pause).contains(&since)
        });
        self.forget_after(now);
        if last.is_none() {
            // One that has begun before the pause ends with what was known then.
            self.end_intervals(now);
        }
        let new = |sums: Sums| match look.new {
            NewEntities::Made if last.is_some() => NewSeries::Zero,
            NewEntities::Made | NewEntities::Unknown => NewSeries::Unknown {
                messages: sums.messages,
            },
        };
        let since = match last {
            Some(_) => Since::LastLook,
            None => Since::Pause,
        };
        let (series, intervals) = (&mut self.series, &self.intervals);
        let mut of = |key: String, sums: Sums, take: fn(&mut Series, Sums, Since)| {
            let series = series.entry(key);
            let series = series.or_insert_with(|| Series::new(intervals, new(sums)));
            take(series, sums, since);
        };
        of(String::new(), look.whole, Series::take_whole);
        for (key, sums) in look.entities {
            of(key, sums, Series::take);
        }
        let is_reported = |series: &mut Series| std::mem::take(&mut series.is_reported);
        self.series.retain(|_, series| is_reported(series));
        if let Some(last) = last {
            for intervals in self.intervals.all_mut() {
                intervals.watch(last, now);
            }
            self.end_intervals(now);
        }
        self.looked = Some(now);
    }

    /// Ends the intervals that are over.
    fn end_intervals(&mut self, now: Timestamp) {
        for range in Range::ALL {
            let intervals = self.intervals.of_mut(range);
            let Some(number) = intervals.end(range, now) else {
                continue;
            };
            for series in self.series.values_mut() {
                series.end(range, number);
                series.points.of_mut(range).keep_to(intervals);
            }
        }
    }

    /// The namespace is not watched from now on.
    pub(super) fn pause(&mut self) {
        if self.looked.take().is_some() {
            self.series.values_mut().for_each(Series::pause);
        }
    }

    /// Removes what lies in the future: the clock was set back.
    fn forget_after(&mut self, now: Timestamp) {
        for range in Range::ALL {
            let intervals = self.intervals.of_mut(range);
            let has_open = intervals.forget_after(now).is_none();
            for series in self.series.values_mut() {
                let points = series.points.of_mut(range);
                points.keep_to(intervals);
                if !has_open {
                    points.open = IntervalCounts::default();
                }
            }
        }
    }

    /// Removes the older half of what takes the most memory. Returns whether there was anything.
    pub(super) fn forget_half(&mut self) -> Forgot {
        let bytes = |range: Range| {
            let series = self.series.values();
            let of_series = series.map(|it| it.points.of(range).bytes());
            of_series.sum::<usize>() + self.intervals.of(range).bytes()
        };
        let largest = Range::ALL.into_iter().max_by_key(|range| bytes(*range));
        let range = largest.unwrap_or(Range::Week);
        let intervals = self.intervals.of_mut(range);
        let count = intervals.ended.len().div_ceil(2);
        if count == 0 {
            return Forgot::Nothing;
        }
        intervals.forget_oldest(count);
        intervals.ended.shrink_to_fit();
        for series in self.series.values_mut() {
            let points = series.points.of_mut(range);
            points.keep_to(intervals);
            points.points.shrink_to_fit();
        }
        Forgot::Half
    }

    /// Returns when its newest interval ended.
    pub(super) fn newest(&self) -> Option<Timestamp> {
        let intervals = self.intervals.all();
        let ends = intervals.map(|it| it.open.or_else(|| it.ended.back().copied()));
        ends.into_iter().flatten().map(|it| it.end).max()
    }

    /// Returns the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let intervals = self.intervals.all().map(Intervals::bytes);
        let series = self.series.iter();
        let series = series.map(|(key, series)| key.capacity() + ENTRY_BYTES + series.bytes());
        size_of::<Self>() + intervals.iter().sum::<usize>() + series.sum::<usize>()
    }

    /// Returns the intervals of a series that ended after a time, the oldest first.
    pub(super) fn past(&self, series: &Series, range: Range, after: Timestamp) -> Vec<Past> {
        let intervals = self.intervals.of(range);
        let points = series.points.of(range);
        let known = intervals.numbered().skip_while(|(at, _)| *at < points.from);
        let known = known.zip(points.expand(intervals));
        let known = known.map(|((_, interval), (_, point))| Past {
            interval: *interval,
            point,
        });
        known.filter(|it| after < it.interval.end).collect()
    }

    /// Returns the interval of a series that has begun.
    pub(super) fn current(&self, series: &Series, range: Range) -> Option<Past> {
        let interval = self.intervals.of(range).open?;
        let point = Point {
            counts: series.points.of(range).open,
            messages: series.messages,
        };
        Some(Past { interval, point })
    }
}

/// What [`NamespaceHistory::forget_half`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forgot {
    Half,
    Nothing,
}

/// Bytes of an entry of the map of series, beside the series and the text of its key.
const ENTRY_BYTES: usize = size_of::<String>() + 16;
