//! Which messages are meant, and how many they are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// To be received, or locked.
    Active,
    /// Received by its number only.
    Deferred,
    /// Waits for its time.
    Scheduled,
}

/// Which messages.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MessageSelection {
    /// States; none means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<State>,
    /// Sequence numbers; none means all.
    #[schema(max_items = 1000)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Enqueued at this time or later.
    #[schema(example = "2026-11-23T12:00:00Z")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueued_from: Option<String>,
    /// Enqueued before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueued_before: Option<String>,
    /// Scheduled for this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_from: Option<String>,
    /// Scheduled for a time before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The reason of a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Those that have no reason of a dead letter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_reason: bool,
    /// The error description of a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Those that have no error description of a dead letter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_description: bool,
    /// A SQL filter over properties, as rules have.
    #[schema(example = "color = 'red'")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// A text that the body contains, within its first MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A `JSONPath` [RFC 9535] that finds something in the body, which must be JSON of at most a MiB.
    #[schema(example = "$.order[?@.total > 100]")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_path: Option<String>,
}

/// A selection whose messages are counted.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CountRequest {
    /// The path of a queue, a topic, a subscription, or one of their sub-queues.
    #[schema(example = "orders/$DeadLetterQueue")]
    pub entity: String,
    #[serde(default)]
    pub selection: MessageSelection,
    /// The first sequence number to look at: `next` of the answer before.
    #[serde(default)]
    pub from: u64,
}

/// Messages that a selection means.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SelectionCount {
    pub messages: u64,
    /// Those of them that a receiver has locked: a job would leave them as they are.
    pub locked: u64,
    /// Bytes of all of them as their senders encoded them.
    pub size_bytes: u64,
    /// Messages that are not counted because evaluating `json_path` in their bodies takes too many steps: a job would leave
    /// them as they are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undecided: u64,
    /// What `from` is to be to continue; without it, all were looked at. One answer looks at a bounded number of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Returns whether a count is left out of an answer.
#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the macro that serializes a field passes a reference"
)]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}
