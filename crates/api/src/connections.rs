//! Connections and their links.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A connection.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Connection {
    pub id: u32,
    /// The container-id of its `open`, which SDKs let applications choose; its first 256 characters.
    pub container_id: String,
    /// The client library that its `open` names; its first 128 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub product: String,
    /// The version of that library, likewise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The host by which it calls the namespace.
    pub host: String,
    /// Its address; of IPv6 the network.
    pub peer: String,
    /// Its port; absent if another server has passed the connection on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// It came over TLS.
    pub secure: bool,
    /// When its `open` came.
    pub opened_at: String,
    /// Whose credentials it has shown: `key NAME`, `identity SUBJECT`; none if none were verified.
    pub identities: Vec<String>,
    /// It was authorized for something.
    pub authorized: bool,
    pub links: Vec<Link>,
}

/// A link.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Link {
    pub id: u32,
    pub role: Role,
    /// The address of its entity; empty if it has none.
    pub entity: String,
    /// How many more messages a receiver takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<u32>,
    /// How many messages a receiver has locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked: Option<usize>,
    /// The lowest sequence number of the messages that a receiver has locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_locked: Option<u64>,
    /// When the oldest lock of a receiver was made; a renewal does not change it. It is absent if the receiver has none, or
    /// if the 20,000 oldest locks that a list looks at have none of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_lock_at: Option<String>,
    /// Since when nothing has happened to a receiver: it was attached, its credit changed, a message was handed to it, or one
    /// of its locks ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<String>,
    /// Messages that this receiver may get and that none has: of a message session those of the session, of a receiver that
    /// waits for a session those of all sessions that no receiver holds. It is not known, and absent, where a receiver has a
    /// selector or browses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<usize>,
    /// Why a receiver is stuck: messages wait for it, and nothing has happened to it for ten seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<StuckFor>,
    /// The selector of a receiver: it takes only what matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The message session that a receiver holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Deliveries since the attach: those that a sender has made, each with one message or a batch, or messages that were
    /// handed to a receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<u64>,
}

/// Why a receiver is stuck.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StuckFor {
    /// It has messages locked, and settles none.
    Holding,
    /// It has none, and takes none; no other receiver can take what waits, or none has a message of the queue locked.
    Silent,
}

/// What becomes of the locks of receivers that are ended.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Locks {
    /// They end at once, as if their time were over: messages return to their queue, and the delivery counts as failed.
    #[default]
    End,
    /// They stay until their time is over, as they do when a client goes by itself.
    Stay,
}

/// The purpose of a link.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The client sends messages.
    Sender,
    /// It receives messages.
    Receiver,
    /// It waits for a message session.
    WaitingReceiver,
    /// It declares and discharges transactions.
    Coordinator,
    /// It sends requests to a service node.
    Requests,
    /// It receives the responses of a service node.
    Responses,
}

/// Connections of a namespace, in the order of their ids.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Connections {
    /// Written one by one, before the rest.
    #[schema(required)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// What `from` is to be for the next page; without it there is none. A page has up to 1,000 links: a connection that has
    /// more is in the next page again, with further links.
    #[schema(example = "17.1001")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
