//! A search over all queues of a namespace.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::messages::MessageShown;
use crate::selection::is_zero;

/// Messages that were found.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Found {
    /// Written one by one, before the rest.
    #[schema(required)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<FoundMessage>,
    /// What `from_queue` is to be to continue; without it, all queues were looked at. An answer may be empty and have it: one
    /// request looks at a bounded number of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_queue: Option<String>,
    /// What `from_number` is to be to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_number: Option<u64>,
    /// Messages that are not here because evaluating `json_path` in their bodies takes too many steps.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undecided: u64,
}

/// A message that was found.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FoundMessage {
    /// The address of its queue: `orders`, `orders/$DeadLetterQueue`, `news/Subscriptions/eu`.
    pub queue: String,
    pub message: MessageShown,
}
