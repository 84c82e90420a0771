//! Messages that are sent.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Messages that were sent.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Sent {
    /// Their sequence numbers; 0 for one that was dropped as a duplicate.
    pub sequence_numbers: Vec<u64>,
}
