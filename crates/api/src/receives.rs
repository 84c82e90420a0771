//! Receives over HTTP that wait for a message.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A receive over HTTP that waits for a message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Receive {
    pub id: u64,
    /// The address of the queue or the subscription.
    pub entity: String,
    pub mode: Mode,
    /// Whose credentials its client has: `operator`, `key NAME`, `identity SUBJECT`; `anyone` if none are verified.
    pub client: String,
    /// The address of its client; of IPv6 the network.
    pub peer: String,
    /// The host by which its client calls the namespace.
    pub host: String,
    /// When it came.
    pub began_at: String,
    /// Until when it waits.
    pub waits_until: String,
}

/// How a message is received.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReceiveMode)]
pub enum Mode {
    /// Locked for the client.
    PeekLock,
    /// Deleted at once.
    ReceiveAndDelete,
}

/// Receives over HTTP that wait, in the order of their ids.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Receives {
    pub receives: Vec<Receive>,
    /// What `after` is to be for the next page; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}
