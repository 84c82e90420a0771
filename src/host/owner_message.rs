//! What the owner of a shard is asked, and what it answers.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use super::outbox::Outbox;
use jitney_base::histogram::Histogram;
use jitney_base::ids::{ConnectionId, RequestId};
use jitney_base::rights::Key;
use jitney_broker::access::{Actor, Authority, Inquiry, Origin, TokenRefused};
use jitney_config::Namespace;
use jitney_journal::LogEnd;
use jitney_shard::{
    Call, Input, Pressure, ReceiveAnswer, ReceiveRequest, Report, RequestAnswer, Statistics,
};

/// A message to the owner.
#[derive(Debug)]
pub(crate) enum OwnerMessage {
    /// A connection was opened, from this origin.
    Connected(ConnectionId, Arc<Outbox>, Origin),
    /// A connection's task has ended.
    Disconnected(ConnectionId),
    /// Everything that one read of a connection produced, and its room in the mailbox.
    Reports(ConnectionId, Vec<Report>, MailboxPermit),
    /// Verify a token.
    Authorize(
        Box<Inquiry>,
        oneshot::Sender<Result<Authority, TokenRefused>>,
    ),
    /// Carry a request out. What it sends has its room in the mailbox.
    Request(
        Box<Call>,
        Option<MailboxPermit>,
        oneshot::Sender<Result<RequestAnswer, TokenRefused>>,
    ),
    /// A receive without a link, which waits for its message until then.
    Receive(
        RequestId,
        Box<ReceiveRequest>,
        Instant,
        oneshot::Sender<ReceiveAnswer>,
    ),
    /// Say where the durable log ends.
    LogEnd(oneshot::Sender<LogEnd>),
    /// Say which of the entities at these paths do not exist, in the namespace of a host name.
    Missing(String, Vec<String>, oneshot::Sender<Vec<String>>),
    /// Make and change the entities that the configuration names.
    Reload(Box<Reload>, oneshot::Sender<Reloaded>),
    /// An input of the shard that needs nothing of the owner.
    Input(Input),
}

/// What the owner takes at any time, also while it takes no input because the disk is slow or the store is away.
#[derive(Debug)]
pub(crate) enum Control {
    /// Report what the shard has and has done, with so many entities one by one.
    Report(usize, oneshot::Sender<ShardReport>),
    /// Keep to this much memory.
    Pressure(Pressure),
}

/// What a shard has and has done, for an operator.
#[derive(Debug, Clone)]
pub(crate) struct ShardReport {
    pub(crate) statistics: Statistics,
    /// From the end of a group of records until it is durable.
    pub(crate) commit_times: Histogram,
    /// How long writes of groups with their syncs took.
    pub(crate) sync_times: Histogram,
    /// AMQP sessions.
    pub(crate) sessions: usize,
}

/// Room in the mailbox that a batch takes until the owner has processed it.
pub(crate) type MailboxPermit = OwnedSemaphorePermit;

/// The changes that a shard makes.
#[derive(Debug)]
pub(crate) struct Reload {
    pub(crate) namespaces: Vec<Namespace>,
    /// The names of those that are not there yet.
    pub(crate) new: Vec<String>,
    /// Namespaces and paths of entities that are to be deleted.
    pub(crate) deleted: Vec<(String, String)>,
    /// The keys and the tier of the namespaces change, too.
    pub(crate) keys: Option<NamespaceKeys>,
    /// For the audit log.
    pub(crate) actor: Actor,
}

/// The key of namespaces that have none in the file.
#[derive(Debug)]
pub(crate) struct NamespaceKeys {
    pub(crate) root_key: Option<Key>,
}

/// What a shard has done.
#[derive(Debug, Default)]
pub(crate) struct Reloaded {
    pub(crate) made: usize,
    pub(crate) changed: usize,
    pub(crate) deleted: usize,
    /// A sentence for each entity that could not be made or changed.
    pub(crate) refused: Vec<String>,
}

impl Reloaded {
    pub(crate) fn add(&mut self, other: Self) {
        self.made += other.made;
        self.changed += other.changed;
        self.deleted += other.deleted;
        self.refused.extend(other.refused);
    }
}
