//! The history of entities: their messages by state, and how many came and went, in intervals over an hour, a day and a week.
//!
//! Every shard reports its counters at equal times. An interval in which nothing happened to an entity takes no memory. What all
//! take together is bounded: where it is too much, the namespace that takes the most loses the older half of its longest part. With
//! a data directory the history is written to a file from time to time, and read at the start (`format.rs`). Where servers share
//! namespaces in a store, the history of each is in the store (`src/store/history.rs`), and there is no file.
//!
//! | file | |
//! |---|---|
//! | `rings.rs` | intervals of three ranges |
//! | `series.rs` | what happened to an entity in them |
//! | `namespace.rs` | both, of one namespace |
//! | `kept.rs` | all namespaces, and their bound |
//! | `trend.rs` | how messages have changed |
//! | `format.rs` | the format of the file |
//! | `file.rs` | when it is read and written |

mod file;
mod format;
mod kept;
mod namespace;
mod rings;
mod series;
#[cfg(test)]
mod tests;
mod trend;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::warn;

use super::owner_message::ShardReport;
use super::shards::Shards;
use crate::limits;
use crate::system::clock::Clock;
use jitney_base::address;
use jitney_base::time::Timestamp;

use file::HistoryFile;
pub(crate) use format::Malformed;
use kept::{KeptHistories, Look};
pub(crate) use namespace::Past;
use namespace::{Forgot, NamespaceHistory};
pub(crate) use rings::Range;
use series::{IntervalCounts, Series};
pub(crate) use trend::{Change, Trend};

/// The history of all entities that have one, and of namespaces.
#[derive(Debug)]
pub(crate) struct History {
    kept: Mutex<KeptHistories>,
    /// Where it is kept, if it is.
    file: Option<HistoryFile>,
    bytes_max: usize,
}

/// A part of the history of an entity.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Extract {
    /// The intervals, the oldest first.
    pub(crate) past: Vec<Past>,
    /// The one that has begun.
    pub(crate) current: Option<Past>,
    /// Of the last minute.
    pub(crate) rates: Option<Rates>,
}

/// Messages per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) incoming: f64,
    pub(crate) published: f64,
    pub(crate) completed: f64,
    pub(crate) dead_lettered: f64,
}

/// Takes the history of all shards until they end, and writes it.
pub(crate) async fn record(history: Arc<History>, clock: Arc<Clock>, shards: Arc<Shards>) {
    let mut ticks = interval(limits::HISTORY_INTERVAL.as_duration());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pause = limits::HISTORY_WRITE_FIRST.as_duration();
    let mut due = None;
    let mut writing: Option<JoinHandle<()>> = None;
    loop {
        let now = tokio::select! {
            now = ticks.tick() => now,
            () = shards.closed() => return,
        };
        history.look(&clock, &shards).await;
        // A disk may take long, and has one file at a time to write.
        let is_writing = writing.as_ref().is_some_and(|it| !it.is_finished());
        if now < *due.get_or_insert(now + pause) || is_writing {
            continue;
        }
        pause = (2 * pause).min(limits::HISTORY_WRITE_INTERVAL.as_duration());
        due = Some(now + pause);
        writing = history.write_in_background(&clock);
    }
}

impl History {
    /// Reads the history of a data directory, if there is one; it takes up to so many bytes.
    pub(crate) fn open(directory: Option<&Path>, bytes_max: usize) -> Self {
        let file = directory.map(HistoryFile::new);
        let mut kept = file.as_ref().map(HistoryFile::read).unwrap_or_default();
        kept.fit(bytes_max);
        Self {
            kept: Mutex::new(kept),
            file,
            bytes_max,
        }
    }

    fn kept(&self) -> MutexGuard<'_, KeptHistories> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks all shards, and takes what they report.
    async fn look(&self, clock: &Clock, shards: &Shards) {
        let most = limits::HISTORY_ENTITIES_MAX / shards.count();
        let reports = shards.reports(most).await;
        let look = look_at(&reports, shards);
        self.take(clock.now(), look);
    }

    fn take(&self, now: Timestamp, look: Look) {
        let mut kept = self.kept();
        kept.take(now, look);
        kept.fit(self.bytes_max);
    }

    /// Writes the file, if there is one, in a thread that may wait.
    fn write_in_background(self: &Arc<Self>, clock: &Clock) -> Option<JoinHandle<()>> {
        self.file.as_ref()?;
        let (history, now) = (Arc::clone(self), clock.now());
        Some(tokio::task::spawn_blocking(move || history.write(now)))
    }

    fn write(&self, now: Timestamp) {
        if let Some(file) = &self.file {
            file.write(|| format::encode(self.kept().all(), now));
        }
    }

    /// Returns the history of a namespace as [`History::continue_from`] takes it at another server; nothing if it has none. It has
    /// [`limits::HISTORY_STORE_BYTES_MAX`] at most: of a longer one the older halves of its longest parts are left out.
    pub(crate) fn extract(&self, namespace: &str, now: Timestamp) -> Option<Vec<u8>> {
        let name = namespace.to_lowercase();
        let encode =
            |history: &NamespaceHistory| format::encode(std::iter::once((&name, history)), now);
        let (mut bytes, mut shorter) = {
            let kept = self.kept();
            let history = kept.namespaces.get(&name)?;
            let bytes = encode(history);
            if bytes.len() <= limits::HISTORY_STORE_BYTES_MAX {
                return Some(bytes);
            }
            (bytes, history.clone())
        };
        while limits::HISTORY_STORE_BYTES_MAX < bytes.len() {
            if shorter.forget_half() == Forgot::Nothing {
                return None;
            }
            bytes = encode(&shorter);
        }
        Some(bytes)
    }

    /// Takes the history of a namespace that another server had before, in place of what this one has seen of it since it has the
    /// namespace.
    ///
    /// # Errors
    ///
    /// The bytes are no history of it: what this server has seen stays.
    pub(crate) fn continue_from(&self, namespace: &str, bytes: &[u8]) -> Result<(), Malformed> {
        let name = namespace.to_lowercase();
        let mut found = format::decode(bytes)?.namespaces;
        let found = found.remove(&name).ok_or(Malformed::Other)?;
        let mut kept = self.kept();
        kept.namespaces.insert(name, found);
        kept.fit(self.bytes_max);
        Ok(())
    }

    /// Takes what has happened since the last look, and writes it: the broker stops. It waits for a while only.
    pub(crate) async fn finish(self: &Arc<Self>, clock: &Clock, shards: &Shards) {
        let wait = limits::HISTORY_STOP_WAIT.as_duration();
        let finish = async {
            // An owner that is stuck reports nothing.
            let _ = timeout(wait / 2, self.look(clock, shards)).await;
            if let Some(written) = self.write_in_background(clock) {
                // It panics only with the broker.
                let _ = written.await;
            }
        };
        if timeout(wait, finish).await.is_err() {
            warn!("the history was not written in time: its last minutes are lost");
        }
    }

    /// Returns the intervals of an entity that ended after a time, within a range; of a namespace as a whole if the path is empty.
    /// It is `None` if the entity has no history.
    pub(crate) fn of(
        &self,
        entity: EntityName<'_>,
        range: Range,
        after: Timestamp,
    ) -> Option<Extract> {
        let kept = self.kept();
        let namespace = kept.namespaces.get(&entity.namespace.to_lowercase())?;
        let series = namespace.series.get(&address::key(entity.path))?;
        Some(Extract {
            past: namespace.past(series, range, after),
            current: namespace.current(series, range),
            rates: namespace.rates(series),
        })
    }

    /// Returns how the messages of an entity have changed, if it has a history.
    pub(crate) fn trend(&self, entity: EntityName<'_>, now: Timestamp) -> Option<Trend> {
        let kept = self.kept();
        let namespace = kept.namespaces.get(&entity.namespace.to_lowercase())?;
        let series = namespace.series.get(&address::key(entity.path))?;
        Some(namespace.trend(series, now))
    }

    /// Returns how the messages of a namespace's entities have changed, by their paths in lower case: of those that had any within the
    /// last day.
    pub(crate) fn trends(&self, namespace: &str, now: Timestamp) -> Vec<(String, Trend)> {
        let kept = self.kept();
        let Some(namespace) = kept.namespaces.get(&namespace.to_lowercase()) else {
            return Vec::new();
        };
        let entities = namespace.series.iter().filter(|(path, _)| !path.is_empty());
        let trends = entities.map(|(path, series)| (path.clone(), namespace.trend(series, now)));
        trends.filter(|(_, trend)| !trend.is_idle()).collect()
    }

    /// Returns the rates of an entity over the last minute, or since the process started if that is less.
    pub(crate) fn rates(&self, entity: EntityName<'_>) -> Option<Rates> {
        let kept = self.kept();
        let namespace = kept.namespaces.get(&entity.namespace.to_lowercase())?;
        let series = namespace.series.get(&address::key(entity.path))?;
        namespace.rates(series)
    }
}

/// An entity, or a namespace as a whole: then the path is empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntityName<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) path: &'a str,
}

/// Sorts what shards have reported by namespaces.
fn look_at(reports: &[(u32, ShardReport)], shards: &Shards) -> Look {
    let routes = shards.routes();
    let reported: BTreeSet<u32> = reports.iter().map(|(number, _)| *number).collect();
    let statistics = reports.iter();
    let statistics = statistics.map(|(_, report)| &report.statistics.gateway.namespaces);
    let mut look = Look::of(statistics);
    for (name, shard) in routes.namespaces() {
        let Some(shard) = shard else {
            continue;
        };
        look.here.insert(name.to_owned());
        let number = shards.number(shard);
        // One without entities is in no report.
        if number.is_some_and(|number| reported.contains(&number)) {
            look.namespaces.entry(name.to_owned()).or_default();
        }
    }
    look
}

impl NamespaceHistory {
    /// Returns the rates of a series over the last minute, or since its last gap if that is less.
    fn rates(&self, series: &Series) -> Option<Rates> {
        let intervals = self.intervals.of(Range::Hour);
        let points = series.points.of(Range::Hour);
        let mut watched = Duration::ZERO;
        let mut first = intervals.next();
        let mut begin: Option<Timestamp> = None;
        for interval in intervals.ended.iter().rev().take(limits::RATE_INTERVALS) {
            if first == points.from || begin.is_some_and(|begin| interval.end < begin) {
                break;
            }
            first -= 1;
            begin = Some(interval.begin());
            watched += interval.watched().as_duration();
        }
        let mut sum = IntervalCounts::default();
        let recent = points.points.iter().rev();
        recent
            .take_while(|it| first <= it.number)
            .for_each(|it| sum.add(it.point.counts));
        let seconds = watched.as_secs_f64();
        let rate = |count: u32| f64::from(count) / seconds;
        (0.0 < seconds).then(|| Rates {
            incoming: rate(sum.incoming),
            published: rate(sum.published),
            completed: rate(sum.completed),
            dead_lettered: rate(sum.dead_lettered),
        })
    }
}
