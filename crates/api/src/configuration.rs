//! A configuration that is applied.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The changes that a configuration has made.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Applied {
    pub made: usize,
    pub changed: usize,
    /// A sentence for each entity that could not be made or changed.
    pub refused: Vec<String>,
    /// A sentence for each name or value of the file that has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
