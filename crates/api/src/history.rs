//! The last hour of an entity, or of the namespace.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The last hour, in equal intervals. It begins with the process.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HourShown {
    /// The length of an interval. One that the broker ended late is longer.
    pub interval_seconds: u64,
    /// Of the last minute; absent until there are two intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<RatesShown>,
    /// The intervals, the oldest first; none of an entity that was just made, or beyond the 1,000 entities that have a history.
    pub points: Vec<PointShown>,
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
    /// Its end.
    pub at: String,
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
