//! The history of an entity, or of the namespace, and how messages have changed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How far back a history goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryRange {
    /// The last hour, in intervals of ten seconds.
    #[default]
    Hour,
    /// The last day, in intervals of five minutes.
    Day,
    /// The last week, in intervals of half an hour.
    Week,
}

/// A part of a history, in intervals.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryShown {
    #[serde(default)]
    #[schema(required)]
    pub range: HistoryRange,
    /// The length of an interval. One that the broker ended late is longer.
    pub interval_seconds: u64,
    /// Of the last minute; absent until there is an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<RatesShown>,
    /// The intervals that have ended, the oldest first; none of an entity that was just made, or beyond the 1,000 entities that have
    /// a history.
    pub points: Vec<PointShown>,
    /// The interval of a day or a week that has not ended yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<PointShown>,
    /// The times between points in which no broker looked: no broker ran, another server had the namespace, or the clock was set.
    #[serde(default)]
    #[schema(required)]
    pub gaps: Vec<GapShown>,
}

/// Messages per second.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RatesShown {
    /// Messages that came in; for a namespace those that arrived at queues and subscriptions to be received there: each copy of a
    /// topic's message counts, and one that was forwarded counts where it ends.
    pub incoming: f64,
    /// Messages that came in to topics.
    pub published: f64,
    /// Those that were completed, or received and deleted.
    pub completed: f64,
    pub dead_lettered: f64,
}

/// What happened in an interval, and the messages at its end.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PointShown {
    /// Its end; of one that has not ended, the last look.
    pub at: String,
    /// How long the broker has watched in it: less than the length of an interval if it was started or stopped then.
    #[serde(default)]
    #[schema(required)]
    pub seconds: f64,
    /// Messages that came in; for a namespace as in the rates.
    pub incoming: u32,
    /// Messages that came in to topics.
    pub published: u32,
    /// Messages that were completed, or received and deleted.
    pub completed: u32,
    /// Messages that were dead-lettered.
    pub dead_lettered: u32,
    pub active: u32,
    pub deferred: u32,
    pub scheduled: u32,
    pub dead_letters: u32,
}

/// A time in which no broker looked.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct GapShown {
    pub from: String,
    pub until: String,
}

/// The changes of a namespace's entities.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TrendsShown {
    /// That of the namespace as a whole; absent until the broker has looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<TrendShown>,
    /// Those of all entities that have a history, and had messages or dead letters within the last day, in the order of their paths.
    pub trends: Vec<EntityTrend>,
}

/// The change of an entity.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct EntityTrend {
    /// Its path in lower case.
    pub path: String,
    pub trend: TrendShown,
}

/// How the messages of an entity have changed over the last hour and day.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TrendShown {
    /// When the broker began to watch the entity within the last day; absent if it does not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Messages that receivers may get.
    pub active: ChangeShown,
    pub dead_letters: ChangeShown,
    /// How many messages were dead-lettered, whether they are still there or not.
    pub dead_lettered: SumShown,
}

/// A number of messages, and how it has changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangeShown {
    pub now: u32,
    /// The number of now less that of an hour ago, or of `since` if that is later.
    pub hour: i64,
    /// The number of now less that of a day ago, or of `since`.
    pub day: i64,
    /// The numbers of 24 hours, at the end of each and the oldest first; null where no broker looked. The last is that of now.
    #[schema(min_items = 24, max_items = 24)]
    pub hours: Vec<Option<u32>>,
}

/// What was counted.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SumShown {
    /// Within the last hour.
    pub hour: u64,
    /// Within the last day.
    pub day: u64,
}
