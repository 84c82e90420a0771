//! Scheduled messages by the time when they become active.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Scheduled messages in spans of time.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduledCounts {
    /// The beginning; absent if none was given, and nothing is scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The end; likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Messages that become active in each span; none without a beginning.
    pub spans: Vec<ScheduledSpan>,
    /// All scheduled messages of the entity.
    pub total: usize,
    /// More messages than one request counts are scheduled for this time: those behind are not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// One span of time.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduledSpan {
    pub from: String,
    pub messages: usize,
}
