//! What needs attention. `docs/operating.md#what-needs-attention` defines each kind.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What needs attention in the namespace, or with one entity.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Attention {
    /// When the broker looked: a second ago at most, or just now.
    pub looked_at: String,
    /// The most urgent items, 200 at most.
    pub items: Vec<AttentionItem>,
    /// How many there are of each kind, those that are left out among them; kinds of which there is none are absent.
    pub counts: Vec<AttentionCount>,
    /// Items that are left out.
    pub left_out: usize,
}

/// Something that needs attention.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AttentionItem {
    /// Tells it from the others, for as long as it holds: its kind, its receiver or job, and its entity.
    #[schema(example = "no_receiver::orders")]
    pub id: String,
    pub kind: AttentionKind,
    pub urgency: Urgency,
    /// The path of the entity; absent if the namespace is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// The connection of a receiver, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// The id of the receiver's link on that connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<u32>,
    /// The container-id of that connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The id of a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
    /// How much: of messages, locks or receivers how many, of a limit the percentage that is used.
    pub count: u64,
    /// When it began; absent if it held already when the broker looked for the first time since its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// A sentence that says it.
    pub text: String,
}

/// How many items there are of a kind.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AttentionCount {
    pub kind: AttentionKind,
    pub count: usize,
}

/// What needs attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// The broker takes no messages: its disk or its memory is full, or its store is away.
    MessagesRefused,
    /// Messages wait for a receiver to which nothing has happened for ten seconds.
    StuckReceiver,
    /// Messages were dead-lettered in the last hour, and the dead-letter queue has some.
    RecentDeadLetters,
    /// Messages could not be forwarded in the last hour, and became dead letters.
    ForwardingFailed,
    /// Dead letters wait to be forwarded, and their target does not take them.
    ForwardingBlocked,
    /// An entity has 90 % of the bytes that it may hold, or more.
    EntityFull,
    /// A namespace has 90 % of the memory or of the entities that it may have, or more.
    NamespaceNearLimit,
    /// Messages wait in an entity whose status forbids to send to it, or to receive from it.
    DisabledWithMessages,
    /// A job failed.
    JobFailed,
    /// More than ten locks ended before their message was settled in the last hour, and more than messages were completed.
    LocksExpire,
    /// There are messages that were sent by way of the entity in a transaction, and that their target refused.
    TransferDeadLetters,
    /// There are dead letters, and none came in the last hour.
    DeadLetters,
    /// Messages wait, and no receiver is attached.
    NoReceiver,
    /// Messages have been locked for five minutes.
    OldLock,
    /// A job has ended and left messages unchanged.
    JobSkipped,
}

/// Whether a person is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// Something does not work.
    Alarm,
    /// It may be as it is meant to be.
    Notice,
}
