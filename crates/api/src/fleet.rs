//! The servers that share a store, and which of them has which namespace.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The servers that share stores.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FleetShown {
    /// The server that answers.
    pub server: String,
    /// It may answer clients of all stores: its last beats are young enough.
    pub lease_held: bool,
    /// How long ago it looked at the stores, in milliseconds; of several, at the one whose last look is the oldest. Absent before all were
    /// looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_ms_ago: Option<u64>,
    pub stores: Vec<FleetStore>,
    pub configuration: FleetConfiguration,
    pub servers: Vec<FleetServer>,
    pub namespaces: Vec<FleetNamespace>,
}

/// A database with namespaces.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FleetStore {
    /// What the servers call it.
    pub name: String,
    /// The last look at it has succeeded; otherwise what is said of it is older.
    pub reached: bool,
    /// The server that answers may answer clients of the namespaces that it has there.
    pub lease_held: bool,
    /// The host and the database, without the password.
    #[schema(example = "db.example:5432/jitney")]
    pub place: String,
    /// The random identity that the store got when it was made, or restored to an earlier point in time; empty if it was never reached.
    pub identity: String,
    /// By how much the clock of the server that answers is ahead of the database's, in milliseconds. Beyond a second it is not followed,
    /// and the server takes no namespaces.
    pub clock_offset_ms: i64,
    /// Transactions since the oldest that the database has not frozen: at two billion it takes no writes.
    pub transaction_age: i64,
    /// Replication slots that no standby uses: they keep the database's log for ever.
    pub inactive_slots: i64,
    /// Bytes of the database's log that the standby which is furthest behind has not flushed; 0 where the role may not see that.
    pub standby_lag_bytes: i64,
}

/// The configuration that all servers apply.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FleetConfiguration {
    /// It grows with each change; 0 if no server was started with a file.
    pub number: i64,
    /// The SHA-256 of its text; absent if no server was started with a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// A server of the fleet.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FleetServer {
    pub name: String,
    /// Its beat is seen; otherwise it has left, or was declared dead because its beat did not come.
    pub alive: bool,
    /// It was told to stop: it gives its namespaces away and takes none, or it has left.
    pub leaving: bool,
    /// How often it has said that it is alive, since its start.
    pub beats: i64,
    /// How long ago its beat changed, as the server that answers has seen it, in milliseconds; after 3,000 it is declared dead. Absent if it is not alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beat_age_ms: Option<u64>,
    /// Why it takes no namespaces of some store: its clock is off, or it rests after deaths or late beats. Absent if it takes some, or is
    /// not alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_none: Option<Cow<'static, str>>,
    /// Where the other servers reach it.
    pub address: String,
    /// How many namespaces it has.
    pub namespaces: usize,
}

/// A namespace in the store.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FleetNamespace {
    pub name: String,
    /// The name of the store that it is in.
    pub store: String,
    /// Messages a second that came and were handed out, of late: namespaces are spread by it.
    pub rate: i64,
    /// Bytes a second that its clients may send together; absent without a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// The server that has it; absent while none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How often it was taken over, or taken anew.
    pub epoch: i64,
    /// Why its server answers nothing about it at the moment; absent if it does. The server that answers knows of a missing answer of
    /// the database only for its own namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<String>,
    /// Why it is left alone: its log cannot be served, or its servers have died too often. In the second case it is tried again after a
    /// pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
}

/// A namespace whose quarantine was ended.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Released {
    pub name: String,
    /// Why it was in quarantine.
    pub was: String,
}
