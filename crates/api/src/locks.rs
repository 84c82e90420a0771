//! Messages that are locked by their numbers, and settled.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::messages::MessageShown;

/// Messages to be locked.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LockRequest {
    /// Their sequence numbers.
    #[schema(min_items = 1, max_items = 100)]
    pub sequence_numbers: Vec<u64>,
}

/// Messages that are locked now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Received {
    /// Written one by one. Behind a MiB of messages, and where the broker has no room for more, they are shown without
    /// their bodies and properties.
    #[schema(required)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<LockedMessage>,
}

/// A locked message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LockedMessage {
    /// By this it is settled, here or by a client.
    pub lock_token: String,
    #[serde(flatten)]
    pub message: MessageShown,
}

/// The outcome of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The message is removed.
    Complete,
    /// It is given back, and the delivery counts as failed. A deferred message stays deferred.
    Abandon,
    /// It goes to the dead-letter queue.
    DeadLetter,
    /// It can be received by its number only.
    Defer,
}

/// The results of settlements, in the order of the request.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Settlements {
    pub results: Vec<SettlementResult>,
}

/// The result of a settlement.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SettlementResult {
    pub lock_token: String,
    pub settled: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
