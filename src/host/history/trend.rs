//! How the messages of an entity have changed over the last hour and day: what a list shows beside a number.

use super::namespace::NamespaceHistory;
use super::rings::Range;
use super::series::{Gauges, Series};
use crate::limits;
use jitney_base::time::Timestamp;

/// The change of an entity's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trend {
    /// When the first interval of the last day began that is known.
    pub(crate) since: Option<Timestamp>,
    pub(crate) active: Change,
    pub(crate) dead_letters: Change,
    /// How many messages were dead-lettered.
    pub(crate) dead_lettered: Sum,
}

/// A number of messages, and how it has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) now: u32,
    /// Over the last hour, or since the entity is known.
    pub(crate) hour: i64,
    pub(crate) day: i64,
    /// The number at the end of each of the last hours, the oldest first; nothing where no broker looked. The last is that of now.
    pub(crate) hours: Vec<Option<u32>>,
}

/// What was counted over the last hour and day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) hour: u64,
    pub(crate) day: u64,
}

impl Trend {
    /// Returns whether there were no messages.
    pub(super) fn is_idle(&self) -> bool {
        let is_none = |change: &Change| change.hours.iter().flatten().all(|number| *number == 0);
        self.dead_lettered == Sum::default() && is_none(&self.active) && is_none(&self.dead_letters)
    }
}

impl NamespaceHistory {
    pub(super) fn trend(&self, series: &Series, now: Timestamp) -> Trend {
        let hour = self.first_messages(series, Range::Hour, now);
        let day = self.first_messages(series, Range::Day, now);
        let hours = self.hours(series, now);
        let change = |of: fn(&Gauges) -> u32| {
            let latest = of(&series.messages);
            let since = |before: &Gauges| i64::from(latest) - i64::from(of(before));
            let ends = hours.iter().map(|it| it.as_ref().map(of));
            Change {
                now: latest,
                hour: since(&hour),
                day: since(&day),
                hours: ends.chain([Some(latest)]).collect(),
            }
        };
        Trend {
            since: self.since(series, now),
            active: change(|messages| messages.active),
            dead_letters: change(|messages| messages.dead_letters),
            dead_lettered: Sum {
                hour: self.dead_lettered(series, Range::Hour, now),
                day: self.dead_lettered(series, Range::Day, now),
            },
        }
    }

    /// Returns the number of the first interval of a range that a series knows.
    fn first(&self, series: &Series, range: Range, now: Timestamp) -> u32 {
        let intervals = self.intervals.of(range);
        let begin = range.begin(now);
        let old = intervals.ended.partition_point(|it| it.end <= begin);
        let old = u32::try_from(old).unwrap_or(u32::MAX);
        let first = intervals.first.saturating_add(old);
        first.max(series.points.of(range).from)
    }

    /// Returns the begin of the first interval within the last day that a series knows.
    fn since(&self, series: &Series, now: Timestamp) -> Option<Timestamp> {
        let begins = [Range::Day, Range::Hour].into_iter().filter_map(|range| {
            let intervals = self.intervals.of(range);
            let first = self.first(series, range, now);
            let found = intervals.numbered().find(|(at, _)| first <= *at);
            let found = found.map(|(_, interval)| interval);
            Some(found.or(intervals.open.as_ref())?.begin())
        });
        begins.min()
    }

    /// Returns the messages before the first interval of a range that a series knows.
    fn first_messages(&self, series: &Series, range: Range, now: Timestamp) -> Gauges {
        let first = self.first(series, range, now);
        let points = series.points.of(range);
        let before = points.points.iter().take_while(|it| it.number < first);
        let last = before.last();
        last.map_or(points.before, |it| it.point.messages)
    }

    /// Returns the messages at the ends of the last hours but the last one.
    fn hours(&self, series: &Series, now: Timestamp) -> Vec<Option<Gauges>> {
        let intervals = self.intervals.of(Range::Day);
        let points = series.points.of(Range::Day);
        let hour = Range::Hour.span().as_millis();
        let mut left = points.points.iter().peekable();
        let mut messages = points.before;
        let ends = (1..limits::TREND_HOURS).rev().map(|back| {
            let back = i64::try_from(back).unwrap_or(i64::MAX);
            Timestamp::from_millis(now.as_millis() - back * hour)
        });
        let ends = ends.map(|end| {
            let count = intervals.ended.partition_point(|it| it.end <= end);
            let at = count.checked_sub(1)?;
            let last = intervals.ended.get(at)?;
            let number = intervals.first.saturating_add(u32::try_from(at).ok()?);
            while let Some(next) = left.next_if(|it| it.number <= number) {
                messages = next.point.messages;
            }
            let is_known = points.from <= number;
            let is_recent = end.as_millis() - hour < last.end.as_millis();
            (is_known && is_recent).then_some(messages)
        });
        ends.collect()
    }

    fn dead_lettered(&self, series: &Series, range: Range, now: Timestamp) -> u64 {
        let first = self.first(series, range, now);
        let points = series.points.of(range);
        let recent = points.points.iter().rev();
        let recent = recent.take_while(|it| first <= it.number);
        let counts = recent.map(|it| it.point.counts).chain([points.open]);
        counts.map(|it| u64::from(it.dead_lettered)).sum()
    }
}
