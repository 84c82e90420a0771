//! Jobs: changes of many messages.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::selection::MessageSelection;

/// A job.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub id: u64,
    /// The path of its queue: `orders`, `orders/$DeadLetterQueue`.
    pub entity: String,
    pub selection: MessageSelection,
    pub action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    pub state: RunState,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it runs and does nothing, and what helps: the disk or the memory is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Messages that there were when it began, or that its selection names by number: it looks at no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Messages that were selected so far.
    pub matched: u64,
    /// Messages that were changed so far.
    pub changed: u64,
    /// Messages that were left as they are.
    pub skipped: u64,
    /// Why the last of these was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_skipped: Option<String>,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Running,
    Completed,
    Cancelled,
    Failed,
}

/// What is done to each message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// It is deleted; a scheduled one is cancelled.
    Delete {},
    /// It becomes a new message of another entity, or of the one that it was dead-lettered in. Dead-letter properties, the
    /// delivery count and the number stay behind.
    Move {
        /// The path of the queue, the topic or the subscription that gets it; without one, where it was dead-lettered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// Statements that change its properties first, as the action of a rule does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(example = "SET color = 'red'; REMOVE attempts")]
        action: Option<String>,
        /// A template of its new body. `{{body}}` is the body, `{{body:/a/0}}` what a JSON pointer finds in it, as JSON, and
        /// `{{property:NAME}}` an application-property.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(example = "{\"amount\": 1.5, \"customer\": {{body:/customer}}}")]
        body: Option<String>,
    },
    /// It becomes a dead letter.
    DeadLetter {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// A deferred or scheduled message becomes active at once.
    Activate {},
    /// A scheduled message becomes active at another time.
    Reschedule {
        #[schema(example = "2026-11-23T12:00:00Z")]
        scheduled_for: String,
    },
}

/// A job to be begun.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// The path of a queue, a topic, a subscription, or one of their sub-queues.
    #[schema(example = "orders/$DeadLetterQueue")]
    pub entity: String,
    #[serde(default)]
    pub selection: MessageSelection,
    pub action: Action,
    /// It ends when it has changed so many.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub limit: Option<u64>,
}

/// Jobs, the newest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Jobs {
    /// Written one by one, before the rest.
    #[schema(required)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
    /// What `before` is to be for the next page; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
}
