//! The server: its version, its process and its shards.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The server.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Server {
    pub version: Cow<'static, str>,
    /// Any key is accepted (the development profile).
    pub open: bool,
    pub started_at: String,
    pub process: Process,
    /// Where messages are stored; absent if they are in memory only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    pub shards: Vec<ShardShown>,
}

/// What the process takes of the machine.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Process {
    pub cpu_seconds: f64,
    pub resident_bytes: u64,
    pub threads: u64,
    pub descriptors: u64,
    pub descriptors_max: u64,
    /// Memory that is counted where it is kept, as in the metric `jitney_memory_bytes`.
    pub counted_bytes: BTreeMap<Cow<'static, str>, usize>,
}

/// The data directory.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Data {
    pub directory: String,
    /// Bytes of its file system, and those that are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
}

/// A shard.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShardShown {
    pub number: u32,
    pub namespaces: Vec<String>,
    /// Its owner and its disk make progress.
    pub healthy: bool,
    /// Messages are accepted: neither its disk nor the memory is full.
    pub accepts_messages: bool,
    /// Why they are not, and what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortage: Option<String>,
    pub connections: usize,
    pub log_bytes: u64,
    /// Bytes of the log that messages still use.
    pub live_bytes: u64,
    pub segments: usize,
    /// The newest group of records.
    pub groups: u64,
}
