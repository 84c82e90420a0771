//! The audit log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Entries of the audit log, the newest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditLog {
    pub entries: Vec<Entry>,
    /// What `before` is to be for the next page; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
}

/// An administrative operation that was carried out.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    pub number: u64,
    /// When it was carried out, the first time if it was repeated.
    pub at: String,
    /// How often: equal operations within ten seconds are one entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// When it was carried out last, if it was repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<String>,
    /// `operator`, `key NAME`, `identity SUBJECT`, `client CONTAINER-ID` of a connection, or `the configuration file`; `anyone` if
    /// no credentials are verified.
    pub actor: String,
    /// The address of the client; of IPv6 the network.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub peer: String,
    #[schema(example = "update")]
    pub operation: String,
    /// The path of the entity; absent if it is about none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub entity: String,
    /// What it changed. Keys are left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}
