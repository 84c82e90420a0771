//! Message sessions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::messages::Lock;

/// A message session.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Session {
    pub id: String,
    /// Its messages, in whatever state; 1,000 means 1,000 or more.
    pub messages: usize,
    /// Bytes of its state; without it, it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_bytes: Option<usize>,
    /// A receiver has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
    /// Its state in base64; in the answer about one session only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_base64: Option<String>,
}

/// Message sessions, in the order of their ids.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Sessions {
    pub sessions: Vec<Session>,
    /// What `after` is to be for the next page; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// A new state of a message session.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionStateRequest {
    /// The state in base64; null clears it.
    pub state_base64: Option<String>,
}
