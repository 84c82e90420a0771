//! Backups of the server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a backup is made.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// A directory on the broker's machine, as an absolute path: a new one, or one with a backup of this broker, which is
    /// replaced. Files that it has are not copied again.
    pub directory: String,
}

/// A backup that was made.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BackupMade {
    pub directory: String,
    /// When it was begun: all that was acknowledged before is in it.
    pub made_at: String,
    /// How many files it has, and their bytes.
    pub files: usize,
    pub bytes: u64,
    /// How many of them are new, and their bytes.
    pub copied_files: u64,
    pub copied_bytes: u64,
    pub shards: Vec<ShardBackup>,
}

/// Up to where a backup has the log of a shard.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShardBackup {
    pub shard: u32,
    /// The newest group of records.
    pub group: u64,
}
