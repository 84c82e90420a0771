//! The stream of changes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::attention::{AttentionCount, AttentionItem};
use crate::entities::{EntityStatus, Kind};

/// An entity as the event `entity` has it. Counts of what happened begin with the process.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EntityNow {
    pub path: String,
    pub kind: Kind,
    pub active: usize,
    pub deferred: usize,
    pub scheduled: usize,
    /// Messages that receivers have locked, in whatever state.
    pub locked: usize,
    pub dead_letters: usize,
    pub size_bytes: u64,
    pub receivers: usize,
    /// What clients may do with it.
    pub status: EntityStatus,
    /// Its messages belong to message sessions.
    pub requires_session: bool,
    /// Where its messages are forwarded to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_to: Option<String>,
    /// Where its dead letters are forwarded to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_dead_letters_to: Option<String>,
    /// The sequence number of its next message; absent of a partitioned entity, whose partitions number by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_number: Option<u64>,
    /// When the oldest message was enqueued that waits for a receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_enqueued_at: Option<String>,
    /// Messages that a transaction sent by way of it, and their target refused.
    pub transfer_dead_letters: usize,
    /// Message sessions that have messages, a state or a holder.
    pub sessions: usize,
    pub sessions_held: usize,
    pub incoming: u64,
    /// Messages that were completed, or received and deleted.
    pub completed: u64,
    pub abandoned: u64,
    /// Messages whose life ended, dead-lettered or not.
    pub expired: u64,
    pub locks_expired: u64,
    pub dead_lettered: u64,
    /// Messages that were forwarded or moved to another entity, and a topic's copies for its subscriptions.
    #[serde(default)]
    #[schema(required)]
    pub forwarded: u64,
    /// Messages of a topic that no subscription took.
    #[serde(default)]
    #[schema(required)]
    pub unmatched: u64,
}

/// What needs attention in the namespace, as the event `attention` has it: all of it, whenever some has changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AttentionNow {
    /// The most urgent items, 50 at most.
    pub items: Vec<AttentionItem>,
    /// How many there are of each kind.
    pub counts: Vec<AttentionCount>,
    /// Items that are left out.
    pub left_out: usize,
}

/// An entity as the event `entity_deleted` has it.
#[derive(Debug, Serialize, Deserialize)]
pub struct EntityDeleted {
    pub path: String,
}

/// A job or a connection as the events `job_forgotten` and `connection_closed` have it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Gone {
    pub id: u64,
}
