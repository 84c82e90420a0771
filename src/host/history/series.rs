//! What happened to one entity, or in a namespace as a whole, by intervals.
//!
//! An interval in which nothing happened takes no memory.

use std::collections::VecDeque;

use super::rings::{GROWTH, Intervals, OfRanges, Range};
use jitney_base::address::SubQueue;
use jitney_broker::namespace::{EntityStatistics, MessageCounts, QueueStatistics};

/// Counters since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counters {
    incoming: u64,
    published: u64,
    completed: u64,
    dead_lettered: u64,
}

/// What was counted in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IntervalCounts {
    /// Messages that came in; for a namespace those that arrived at queues and subscriptions.
    pub(crate) incoming: u32,
    /// Messages that came in to topics.
    pub(crate) published: u32,
    /// Messages that were completed, or received and deleted.
    pub(crate) completed: u32,
    /// Messages that were dead-lettered.
    pub(crate) dead_lettered: u32,
}

/// Messages by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Gauges {
    pub(crate) active: u32,
    pub(crate) deferred: u32,
    pub(crate) scheduled: u32,
    pub(crate) dead_letters: u32,
}

/// What happened in an interval, and the messages at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) counts: IntervalCounts,
    pub(crate) messages: Gauges,
}

/// The sums of the counters of some queues, and of the messages in them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    counted: Counters,
    pub(super) messages: Gauges,
}

/// The history of one entity, or of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Series {
    /// What was counted until the last look, if that is known.
    counted: Option<Counters>,
    /// The messages at the last look.
    pub(super) messages: Gauges,
    pub(super) points: OfRanges<Points>,
    /// The last look found it.
    pub(super) is_reported: bool,
}

/// The history of one range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Points {
    /// The number of the first interval that it knows.
    pub(super) from: u32,
    /// The messages before the first of the points.
    pub(super) before: Gauges,
    /// What was counted in the interval that has begun.
    pub(super) open: IntervalCounts,
    /// Intervals in which something happened.
    pub(super) points: VecDeque<NumberedPoint>,
}

/// A point with the number of its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberedPoint {
    pub(super) number: u32,
    pub(super) point: Point,
}

/// What was there before the look that has found a new series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewSeries {
    /// Nothing: the entity was made since the look before.
    Zero,
    /// Counters that are not known, and as many messages as now.
    Unknown { messages: Gauges },
}

/// Whether what was counted since the last look belongs to an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    LastLook,
    /// The broker did not look for a while: it is not known when it was counted.
    Pause,
}

impl Series {
    /// Begins a series with the intervals that have begun.
    pub(super) fn new(intervals: &OfRanges<Intervals>, new: NewSeries) -> Self {
        let (counted, before) = match new {
            NewSeries::Zero => (Some(Counters::default()), Gauges::default()),
            NewSeries::Unknown { messages } => (None, messages),
        };
        let points = |intervals: &Intervals| Points {
            from: intervals.next(),
            before,
            ..Points::default()
        };
        Self {
            counted,
            points: OfRanges {
                hour: points(&intervals.hour),
                day: points(&intervals.day),
                week: points(&intervals.week),
            },
            ..Self::default()
        }
    }

    /// Takes the counters and messages of a look at an entity. Counters that are less than before are those of one that was made
    /// again.
    pub(super) fn take(&mut self, sums: Sums, since: Since) {
        let before = self.counted.unwrap_or(sums.counted);
        let before = before.of_the_same(&sums.counted);
        self.add(sums, before, since);
    }

    /// Takes the counters and messages of a look at a namespace. What has arrived becomes less where it is forwarded later, to
    /// count where it ends: it is the most until then.
    pub(super) fn take_whole(&mut self, mut sums: Sums, since: Since) {
        let before = self.counted.unwrap_or(sums.counted);
        sums.counted = sums.counted.max(&before);
        self.add(sums, before, since);
    }

    fn add(&mut self, sums: Sums, before: Counters, since: Since) {
        let Sums { counted, messages } = sums;
        self.counted = Some(counted);
        self.messages = messages;
        self.is_reported = true;
        if since == Since::LastLook {
            let more = counted.since(&before);
            for points in self.points.all_mut() {
                points.open.add(more);
            }
        }
    }

    /// Forgets what was counted before: the entity is not watched for a while, or by another process.
    pub(super) fn pause(&mut self) {
        self.counted = None;
    }

    /// Ends an interval.
    pub(super) fn end(&mut self, range: Range, number: u32) {
        let messages = self.messages;
        self.points.of_mut(range).end(number, messages);
    }

    /// Returns the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let points = self.points.all().map(Points::bytes);
        size_of::<Self>() + points.iter().sum::<usize>()
    }
}

impl Points {
    /// Returns the bytes that it takes beside itself.
    pub(super) fn bytes(&self) -> usize {
        self.points.capacity() * size_of::<NumberedPoint>()
    }

    fn end(&mut self, number: u32, messages: Gauges) {
        let counts = std::mem::take(&mut self.open);
        let point = Point { counts, messages };
        let last = self.points.back();
        let unchanged = Point {
            messages: last.map_or(self.before, |last| last.point.messages),
            ..Point::default()
        };
        if point != unchanged {
            if self.points.len() == self.points.capacity() {
                self.points.reserve_exact(GROWTH);
            }
            self.points.push_back(NumberedPoint { number, point });
        }
    }

    /// Forgets what happened in intervals that are no more.
    pub(super) fn keep_to(&mut self, intervals: &Intervals) {
        let (first, next) = (intervals.first, intervals.next());
        while let Some(it) = self.points.pop_front_if(|it| it.number < first) {
            self.before = it.point.messages;
        }
        while self.points.pop_back_if(|it| next <= it.number).is_some() {}
        self.from = self.from.clamp(first, next);
        if self.points.is_empty() {
            self.points = VecDeque::new();
        }
    }

    /// Returns the point of each interval that it knows, with the interval's number.
    pub(super) fn expand(&self, intervals: &Intervals) -> impl Iterator<Item = (u32, Point)> {
        let mut points = self.points.iter().peekable();
        let mut messages = self.before;
        (self.from.max(intervals.first)..intervals.next()).map(move |number| {
            let mut counts = IntervalCounts::default();
            while let Some(next) = points.next_if(|it| it.number <= number) {
                messages = next.point.messages;
                if next.number == number {
                    counts = next.point.counts;
                }
            }
            (number, Point { counts, messages })
        })
    }
}

impl Counters {
    /// Returns what was counted since.
    fn since(&self, before: &Self) -> IntervalCounts {
        let more = |now: u64, before: u64| u32::try_from(now - before).unwrap_or(u32::MAX);
        IntervalCounts {
            incoming: more(self.incoming, before.incoming),
            published: more(self.published, before.published),
            completed: more(self.completed, before.completed),
            dead_lettered: more(self.dead_lettered, before.dead_lettered),
        }
    }

    /// Returns these counters where none of them is more than now, else zero: they are those of another entity.
    fn of_the_same(self, now: &Self) -> Self {
        if self.max(now) == *now {
            self
        } else {
            Self::default()
        }
    }

    fn max(&self, other: &Self) -> Self {
        Self {
            incoming: self.incoming.max(other.incoming),
            published: self.published.max(other.published),
            completed: self.completed.max(other.completed),
            dead_lettered: self.dead_lettered.max(other.dead_lettered),
        }
    }
}

impl IntervalCounts {
    pub(super) fn add(&mut self, other: Self) {
        self.incoming = self.incoming.saturating_add(other.incoming);
        self.published = self.published.saturating_add(other.published);
        self.completed = self.completed.saturating_add(other.completed);
        self.dead_lettered = self.dead_lettered.saturating_add(other.dead_lettered);
    }
}

impl Gauges {
    fn add(&mut self, other: Self) {
        self.active = self.active.saturating_add(other.active);
        self.deferred = self.deferred.saturating_add(other.deferred);
        self.scheduled = self.scheduled.saturating_add(other.scheduled);
        self.dead_letters = self.dead_letters.saturating_add(other.dead_letters);
    }
}

impl Sums {
    pub(super) fn of(entity: &EntityStatistics) -> Self {
        let mut found = Self::default();
        for (queue, statistics) in &entity.queues {
            let incoming = statistics.counters.incoming;
            found.add_queue(*queue, statistics, incoming);
        }
        found
    }

    /// Adds what entities had counted that are no more.
    pub(super) fn add_deleted(&mut self, counts: &MessageCounts) {
        let counted = &mut self.counted;
        counted.incoming += counts.arrived;
        counted.published += counts.published;
        counted.completed += counts.completed;
        counted.dead_lettered += counts.dead_lettered;
    }

    /// Adds a queue, of whose messages so many count as incoming.
    pub(super) fn add_queue(&mut self, kind: SubQueue, queue: &QueueStatistics, incoming: u64) {
        let size = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (active, deferred) = (size(queue.active), size(queue.deferred));
        match kind {
            SubQueue::Main => {
                let counted = &mut self.counted;
                counted.incoming += incoming;
                counted.published += queue.published;
                counted.completed += queue.counters.completed;
                counted.dead_lettered += queue.counters.dead_lettered.iter().sum::<u64>();
                self.messages.add(Gauges {
                    active,
                    deferred,
                    scheduled: size(queue.scheduled),
                    dead_letters: 0,
                });
            }
            SubQueue::DeadLetter => self.messages.add(Gauges {
                dead_letters: active.saturating_add(deferred),
                ..Gauges::default()
            }),
            SubQueue::TransferDeadLetter => {}
        }
    }
}
