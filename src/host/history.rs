//! The last hour of the entities: their messages by state, and how many came and went, in equal intervals.
//!
//! Every shard reports its counters at the end of each interval. An interval in which nothing happened to an entity takes no
//! memory. The history begins with the process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::{MissedTickBehavior, interval};

use super::owner_message::ShardReport;
use super::shards::Shards;
use crate::limits;
use crate::system::clock::Clock;
use jitney_base::address::{self, SubQueue};
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{EntityStatistics, QueueStatistics, Statistics};

/// The history of all entities that have one, and of namespaces.
#[derive(Debug, Default)]
pub(crate) struct History {
    kept: Mutex<KeptSeries>,
}

#[derive(Debug, Default)]
struct KeptSeries {
    /// The ends of the intervals.
    ends: VecDeque<Timestamp>,
    /// By the name of the namespace, and the key of the path; that of a namespace as a whole is empty.
    series: BTreeMap<(String, String), Series>,
}

/// The history of one entity, or of a namespace.
#[derive(Debug, Default)]
struct Series {
    counted: Counters,
    /// Intervals in which something happened, with their ends.
    points: VecDeque<(Timestamp, Point)>,
    /// The messages before the first of those.
    before: Gauges,
    is_reported: bool,
}

/// Counters since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counters {
    incoming: u64,
    published: u64,
    completed: u64,
    dead_lettered: u64,
}

/// Messages by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Gauges {
    pub(crate) active: u32,
    pub(crate) deferred: u32,
    pub(crate) scheduled: u32,
    pub(crate) dead_letters: u32,
}

/// What queues have counted together, and the messages in them.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    counted: Counters,
    messages: Gauges,
}

/// What the counters of a new series were before its first interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NewSeries {
    Zero,
    Unknown,
}

/// What happened in an interval, and the messages at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Point {
    /// Messages that came in; for a namespace those that arrived at queues and subscriptions.
    pub(crate) incoming: u32,
    /// Messages that came in to topics.
    pub(crate) published: u32,
    /// Messages that were completed, or received and deleted.
    pub(crate) completed: u32,
    /// Messages that were dead-lettered.
    pub(crate) dead_lettered: u32,
    pub(crate) messages: Gauges,
}

/// Messages per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) incoming: f64,
    pub(crate) published: f64,
    pub(crate) completed: f64,
    pub(crate) dead_lettered: f64,
}

/// Takes the history of all shards until they end.
pub(crate) async fn record(history: Arc<History>, clock: Arc<Clock>, shards: Arc<Shards>) {
    let mut ticks = interval(limits::HISTORY_INTERVAL.as_duration());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shards.closed() => return,
        }
        let most = limits::HISTORY_ENTITIES_MAX / shards.count();
        let reports = shards.reports(most).await;
        history.take(clock.now(), &reports);
    }
}

impl History {
    fn kept(&self) -> MutexGuard<'_, KeptSeries> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends an interval.
    fn take(&self, now: Timestamp, reports: &[(u32, ShardReport)]) {
        let statistics = reports.iter();
        let statistics = statistics.map(|(_, report)| &report.statistics.gateway.namespaces);
        self.kept().take(now, statistics);
    }

    /// Returns the intervals of an entity that ended after a time, the oldest first; of a namespace as a whole if the path is
    /// empty. It is `None` if the entity has no history.
    pub(crate) fn of(
        &self,
        namespace: &str,
        path: &str,
        after: Timestamp,
    ) -> Option<Vec<(Timestamp, Point)>> {
        let kept = self.kept();
        let series = kept.series.get(&key(namespace, path))?;
        let first = kept.ends.partition_point(|end| *end <= after);
        Some(series.expand(kept.ends.range(first..)))
    }

    /// Returns the rates of an entity over the last minute, or since the process started if that is less.
    pub(crate) fn rates(&self, namespace: &str, path: &str) -> Option<Rates> {
        let kept = self.kept();
        let series = kept.series.get(&key(namespace, path))?;
        let last = *kept.ends.back()?;
        let first = kept.ends.len().saturating_sub(limits::RATE_INTERVALS + 1);
        let begin = *kept.ends.get(first)?;
        let seconds = last.since(begin).as_duration().as_secs_f64();
        if seconds == 0.0 {
            return None;
        }
        let mut sum = [0_u32; 4];
        for (end, point) in series.points.iter().rev() {
            if *end <= begin {
                break;
            }
            let counts = [
                point.incoming,
                point.published,
                point.completed,
                point.dead_lettered,
            ];
            for (sum, count) in sum.iter_mut().zip(counts) {
                *sum = sum.saturating_add(count);
            }
        }
        let rates = sum.map(|sum| f64::from(sum) / seconds);
        let [incoming, published, completed, dead_lettered] = rates;
        Some(Rates {
            incoming,
            published,
            completed,
            dead_lettered,
        })
    }
}

fn key(namespace: &str, path: &str) -> (String, String) {
    (namespace.to_lowercase(), address::key(path))
}

impl KeptSeries {
    fn take<'a>(&mut self, now: Timestamp, reports: impl Iterator<Item = &'a Statistics>) {
        let new = if self.ends.is_empty() {
            NewSeries::Unknown
        } else {
            NewSeries::Zero
        };
        self.ends.push_back(now);
        if limits::HISTORY_INTERVALS < self.ends.len() {
            self.ends.pop_front();
        }
        let mut sums: BTreeMap<String, Sums> = BTreeMap::new();
        for report in reports {
            for entity in &report.entities {
                let sum = sums.entry(entity.namespace.clone()).or_default();
                for (queue, statistics) in &entity.queues {
                    sum.add_queue(*queue, statistics, statistics.arrived);
                }
                // What one counted that was among the others until now is not of this interval.
                let new = if report.others.is_empty() {
                    new
                } else {
                    NewSeries::Unknown
                };
                let series = self.series.entry(key(&entity.namespace, &entity.path));
                series.or_default().take(now, Sums::of(entity), new);
            }
            for ((namespace, queue), others) in &report.others {
                let sum = sums.entry(namespace.clone()).or_default();
                sum.add_queue(*queue, others, others.arrived);
            }
        }
        for (namespace, sums) in sums {
            let series = self.series.entry((namespace, String::new()));
            series.or_default().take(now, sums, new);
        }
        let oldest = self.ends.front().copied().unwrap_or(now);
        self.series.retain(|_, series| {
            series.forget(oldest);
            std::mem::take(&mut series.is_reported)
        });
    }
}

impl Series {
    /// Takes counters and messages at the end of an interval.
    fn take(&mut self, now: Timestamp, sums: Sums, new: NewSeries) {
        let Sums { counted, messages } = sums;
        let is_new = self.points.is_empty() && self.counted == Counters::default();
        let before = if is_new && new == NewSeries::Unknown {
            counted
        } else {
            self.counted
        };
        let more = |now: u64, before: u64| narrow(now.saturating_sub(before));
        let point = Point {
            incoming: more(counted.incoming, before.incoming),
            published: more(counted.published, before.published),
            completed: more(counted.completed, before.completed),
            dead_lettered: more(counted.dead_lettered, before.dead_lettered),
            messages,
        };
        self.counted = counted;
        self.is_reported = true;
        let last = self.points.back();
        let unchanged = Point {
            messages: last.map_or(self.before, |(_, last)| last.messages),
            ..Point::default()
        };
        if point != unchanged {
            self.points.push_back((now, point));
        }
    }

    fn forget(&mut self, oldest: Timestamp) {
        while let Some((_, point)) = self.points.pop_front_if(|(end, _)| *end < oldest) {
            self.before = point.messages;
        }
    }

    /// Returns the point of each interval, by its end.
    fn expand<'a>(&self, ends: impl Iterator<Item = &'a Timestamp>) -> Vec<(Timestamp, Point)> {
        let mut points = self.points.iter().peekable();
        let mut messages = self.before;
        let mut found = Vec::new();
        for &end in ends {
            let mut point = Point::default();
            while let Some((at, next)) = points.next_if(|(at, _)| *at <= end) {
                messages = next.messages;
                if *at == end {
                    point = *next;
                }
            }
            point.messages = messages;
            found.push((end, point));
        }
        found
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
    fn of(entity: &EntityStatistics) -> Self {
        let mut found = Self::default();
        for (queue, statistics) in &entity.queues {
            let incoming = statistics.counters.incoming;
            found.add_queue(*queue, statistics, incoming);
        }
        found
    }

    /// Adds a queue, of whose messages so many count as incoming.
    fn add_queue(&mut self, kind: SubQueue, queue: &QueueStatistics, incoming: u64) {
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

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_queue::{EntityKind, Status};

    fn at(step: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + step * 10_000)
    }

    fn statistics(queues: &[(&str, u64, u64)]) -> Statistics {
        let entities = queues.iter().map(|&(path, incoming, completed)| {
            let mut queue = QueueStatistics {
                active: usize::try_from(incoming - completed).unwrap(),
                arrived: incoming,
                ..QueueStatistics::default()
            };
            queue.counters.incoming = incoming;
            queue.counters.completed = completed;
            EntityStatistics {
                namespace: "ns".to_owned(),
                path: path.to_owned(),
                kind: EntityKind::Queue,
                status: Status::Active,
                requires_session: false,
                queues: vec![(SubQueue::Main, queue)],
            }
        });
        Statistics {
            entities: entities.collect(),
            ..Statistics::default()
        }
    }

    fn take(history: &History, step: i64, queues: &[(&str, u64, u64)]) {
        history.kept().take(at(step), [statistics(queues)].iter());
    }

    fn counts(history: &History, path: &str, after: i64) -> Vec<(u32, u32, u32)> {
        let points = history.of("NS", path, at(after)).unwrap();
        let counts = points
            .into_iter()
            .map(|(_, point)| (point.incoming, point.completed, point.messages.active));
        counts.collect()
    }

    #[test]
    fn each_interval_has_what_happened_in_it() {
        let history = History::default();
        take(&history, 0, &[("a", 5, 0)]);
        take(&history, 1, &[("a", 5, 0), ("b", 3, 3)]);
        take(&history, 2, &[("a", 12, 4), ("b", 3, 3)]);
        assert_eq!(counts(&history, "A", -1), [(0, 0, 5), (0, 0, 5), (7, 4, 8)]);
        assert_eq!(counts(&history, "b", 0), [(3, 3, 0), (0, 0, 0)]);
        assert_eq!(counts(&history, "", 1), [(7, 4, 8)]);
        assert_eq!(history.of("ns", "c", at(0)), None);
    }

    #[test]
    fn what_comes_into_a_namespace_is_what_can_be_completed_there() {
        let entity = |path: &str, kind, published, arrived, completed| {
            let mut queue = QueueStatistics {
                arrived,
                published,
                ..QueueStatistics::default()
            };
            // That of the second queue was forwarded from the first.
            queue.counters.incoming = 10;
            queue.counters.completed = completed;
            EntityStatistics {
                namespace: "ns".to_owned(),
                path: path.to_owned(),
                kind,
                status: Status::Active,
                requires_session: false,
                queues: vec![(SubQueue::Main, queue)],
            }
        };
        let history = History::default();
        take(&history, 0, &[]);
        let entities = vec![
            entity("topic", EntityKind::Topic, 10, 0, 0),
            entity(
                "topic/Subscriptions/one",
                EntityKind::Subscription,
                0,
                10,
                10,
            ),
            entity(
                "topic/Subscriptions/two",
                EntityKind::Subscription,
                0,
                10,
                10,
            ),
            entity("forwards", EntityKind::Queue, 0, 0, 0),
            entity("to", EntityKind::Queue, 0, 10, 10),
        ];
        // More entities than have a history of their own count as well.
        let topic_and_copy = QueueStatistics {
            published: 1,
            arrived: 1,
            ..QueueStatistics::default()
        };
        let others = [(("ns".to_owned(), SubQueue::Main), topic_and_copy)];
        let found = Statistics {
            entities,
            others: others.into(),
        };
        history.kept().take(at(1), [found].iter());
        let points = history.of("ns", "", at(-1)).unwrap();
        let last = points.last().unwrap().1;
        assert_eq!(
            (last.published, last.incoming, last.completed),
            (11, 31, 30)
        );
    }

    #[test]
    fn an_entity_that_is_made_again_begins_anew() {
        let history = History::default();
        take(&history, 0, &[("a", 0, 0)]);
        take(&history, 1, &[("a", 50, 0)]);
        take(&history, 2, &[]);
        assert_eq!(history.of("ns", "a", at(0)), None);
        take(&history, 3, &[("a", 2, 1)]);
        assert_eq!(counts(&history, "a", 2), [(2, 1, 1)]);
    }

    #[test]
    fn intervals_without_change_take_no_memory_and_the_oldest_go() {
        let history = History::default();
        let all = i64::try_from(limits::HISTORY_INTERVALS).unwrap();
        take(&history, 0, &[("a", 0, 0)]);
        take(&history, 1, &[("a", 9, 0)]);
        for step in 2..=all {
            take(&history, step, &[("a", 9, 0)]);
        }
        assert_eq!(history.kept().series[&key("ns", "a")].points.len(), 1);
        assert_eq!(counts(&history, "a", -1).first(), Some(&(9, 0, 9)));
        take(&history, all + 1, &[("a", 9, 0)]);
        assert!(history.kept().series[&key("ns", "a")].points.is_empty());
        let found = counts(&history, "a", -1);
        assert_eq!(
            (found.len(), found[0]),
            (limits::HISTORY_INTERVALS, (0, 0, 9))
        );
    }

    #[test]
    fn rates_are_those_of_the_last_minute() {
        let history = History::default();
        take(&history, 0, &[("a", 0, 0)]);
        assert_eq!(history.rates("ns", "a"), None);
        take(&history, 1, &[("a", 600, 10)]);
        for step in 2..=7 {
            take(&history, step, &[("a", 630, 10)]);
        }
        let rates = history.rates("ns", "a").unwrap();
        assert_eq!((rates.incoming, rates.completed), (0.5, 0.0));
    }
}
