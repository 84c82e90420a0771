//! Events that the engine reports to its owner, and commands of the owner to the engine.

use std::sync::Arc;

use bytes::Bytes;
use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp_types::messaging::{Source, Target};

use crate::limits;
use jitney_base::secret::Secret;
use jitney_base::time::Millis;

pub use fe2o3_amqp_types::definitions::Fields;
pub use serde_amqp::Value;

/// One of our links, for the life of its connection; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// One AMQP session of a connection: the channel on which we send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u16);

/// The properties `product` and `version` of a peer's open, cut; empty where there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Product {
    /// The name of the client library.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The number of a delivery in its session and direction; a serial number [2.8.10].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeliveryId(pub u32);

/// The delivery-tag of a message that we send: for a locked message, its lock token in .NET's
/// byte order (`receiving.md#lock-tokens`).
pub type Tag = [u8; 16];

/// The open performative of a connection of ours.
#[derive(Debug, Clone)]
pub struct Config {
    /// The container-id of our open.
    pub container_id: String,
    /// The hostname of our open; a client's only.
    pub hostname: Option<String>,
    /// The largest frame we accept, bytes.
    pub frame_size_max: u32,
    /// The highest channel we accept.
    pub channel_max: u16,
    /// The highest handle we accept in each session.
    pub handle_max: u32,
    /// The idle time-out that `open` announces to the peer; a connection is closed when its peer is silent for
    /// twice as long [2.4.5].
    pub idle_timeout: Millis,
    /// A client's SASL response; a server offers MSSBCBS, PLAIN and ANONYMOUS, and EXTERNAL too to
    /// a peer with a certificate.
    pub identity: Identity,
    /// The peer showed a certificate that was verified; a server's only.
    pub has_certificate: bool,
    /// The peer needs no `trust`; a server's only.
    pub trusts_peer: bool,
    /// The answer to the peer's open waits for `serve_here`: another server may be the one to give it. A server's only.
    pub holds_open: bool,
}

impl Config {
    /// Makes a server's, with the limits of this crate, for a peer that needs no `trust`.
    #[must_use]
    pub fn server(container_id: impl Into<String>) -> Self {
        Self {
            container_id: container_id.into(),
            hostname: None,
            frame_size_max: limits::FRAME_SIZE_MAX,
            channel_max: limits::CHANNEL_MAX,
            handle_max: limits::HANDLE_MAX,
            idle_timeout: limits::IDLE_TIMEOUT,
            identity: Identity::Anonymous,
            has_certificate: false,
            trusts_peer: true,
            holds_open: false,
        }
    }
}

/// The identity that a peer claims. Nothing is verified here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// No SASL layer at all: the peer began with the plain AMQP header.
    Unnamed,
    /// SASL ANONYMOUS or MSSBCBS: rights come from tokens on `$cbs`.
    Anonymous,
    /// SASL EXTERNAL: the identity in its certificate.
    External,
    /// SASL PLAIN: a key's name and the key.
    Plain {
        /// The name of a shared access key.
        user: String,
        /// The key.
        password: Secret,
    },
}

impl Identity {
    /// Returns the name that the peer goes by.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Plain { user, .. } => user,
            Self::Unnamed | Self::Anonymous | Self::External => "",
        }
    }
}

/// The direction of messages on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    /// The peer sends to us.
    Incoming,
    /// We send to the peer.
    Outgoing,
}

/// Where an incoming link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// A node with an address, or none.
    Node(Option<Target>),
    /// A transaction coordinator.
    Coordinator,
}

/// How unsettled deliveries of an outgoing link are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleMode {
    /// Sent settled: a delivery removes the message (receive-and-delete).
    OnSend,
    /// Sent unsettled: the receiver decides (peek-lock).
    OnReceipt,
}

/// A peer's attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attach {
    /// The link's name, unique in its connection and direction.
    pub name: String,
    /// Which way messages are to go.
    pub role: LinkRole,
    /// The peer's session in which it attached.
    pub session: SessionId,
    /// Where messages come from.
    pub source: Option<Source>,
    /// Where messages go to.
    pub target: LinkTarget,
    /// The sender's settle mode that was asked for.
    pub snd_settle_mode: SenderSettleMode,
    /// The receiver's settle mode that was asked for.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// The largest message the peer takes, bytes; 0 is no limit.
    pub message_size_max: u64,
    /// Link properties, `com.microsoft:timeout` among them.
    pub properties: Option<Fields>,
}

/// Our answer to an [`Attach`]: it echoes the requested terms that are in place [3.5.3, 3.5.4], and
/// adds these.
#[derive(Debug, Clone, Default)]
pub struct Accept {
    /// The largest message we take, bytes; 0 sends none.
    pub message_size_max: u64,
    /// Added to the link properties of the answer.
    pub properties: Option<Fields>,
    /// Credit granted at once on an incoming link, and kept topped up.
    pub credit: u32,
    /// The message session that is granted, reported in the filter that asked for one.
    pub message_session: Option<String>,
    /// The source's selector is in place.
    pub selects: bool,
    /// The capabilities of the node, of those that may be requested.
    pub capabilities: Vec<Capability>,
    /// The state that the source keeps for the peer outlives the link.
    pub is_durable: bool,
    /// The name of the node, for a peer that asked for one without a name.
    pub address: Option<String>,
    /// How deliveries will be settled; as was asked for, if not given.
    pub settle_mode: Option<SettleMode>,
}

/// An error for the peer, in AMQP's three fields, the third of which (info) is null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The machine's word for it.
    pub condition: Condition,
    /// The human's sentence.
    pub description: String,
}

/// Error conditions that we send, or distinguish when a peer sends them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// `amqp:internal-error`
    InternalError,
    /// `amqp:not-found`
    NotFound,
    /// `amqp:unauthorized-access`
    UnauthorizedAccess,
    /// `amqp:decode-error`
    DecodeError,
    /// `amqp:resource-limit-exceeded`
    ResourceLimitExceeded,
    /// `amqp:not-allowed`
    NotAllowed,
    /// `amqp:invalid-field`
    InvalidField,
    /// `amqp:not-implemented`
    NotImplemented,
    /// `amqp:illegal-state`
    IllegalState,
    /// `amqp:frame-size-too-small`
    FrameSizeTooSmall,
    /// `amqp:precondition-failed`
    PreconditionFailed,
    /// `amqp:connection:forced`
    ConnectionForced,
    /// `amqp:connection:framing-error`
    FramingError,
    /// `amqp:session:handle-in-use`
    HandleInUse,
    /// `amqp:session:errant-link`
    ErrantLink,
    /// `amqp:session:unattached-handle`
    UnattachedHandle,
    /// `amqp:link:detach-forced`
    DetachForced,
    /// `amqp:link:message-size-exceeded`
    MessageSizeExceeded,
    /// `amqp:link:stolen`
    Stolen,
    /// `amqp:resource-deleted`
    ResourceDeleted,
    /// `amqp:transaction:unknown-id`
    TransactionUnknownId,
    /// `amqp:transaction:rollback`
    TransactionRollback,
    /// `amqp:transaction:timeout`
    TransactionTimeout,
    /// `com.microsoft:argument-error`
    ArgumentError,
    /// `com.microsoft:argument-out-of-range`
    ArgumentOutOfRange,
    /// `com.microsoft:dead-letter`
    DeadLetter,
    /// `com.microsoft:entity-disabled`
    EntityDisabled,
    /// `com.microsoft:message-lock-lost`
    MessageLockLost,
    /// `com.microsoft:message-not-found`
    MessageNotFound,
    /// `com.microsoft:entity-already-exists`
    AlreadyExists,
    /// `com.microsoft:session-cannot-be-locked`
    SessionCannotBeLocked,
    /// `com.microsoft:session-lock-lost`
    SessionLockLost,
    /// `com.microsoft:session-not-found`
    SessionNotFound,
    /// `com.microsoft:server-busy`
    ServerBusy,
    /// `com.microsoft:timeout`
    Timeout,
    /// Any other, as the peer wrote it.
    Other(String),
}

/// The outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done with.
    Accepted,
    /// Not taken; as if it had never been delivered.
    Released,
    /// Not taken, with consequences.
    Modified {
        /// The delivery counts as failed. Service Bus counts every abandon, so it is ignored.
        delivery_failed: bool,
        /// Service Bus reads this as "defer".
        undeliverable_here: bool,
        /// Service Bus reads these as properties to modify.
        annotations: Option<EncodedFields>,
    },
    /// Refused for good: dead-lettered, or a failed operation in an answer of ours. All deliveries
    /// of a disposition share it.
    Rejected(Option<Arc<Rejection>>),
    /// A transaction was declared, and has this id; only we say so.
    Declared(Bytes),
    /// Provisionally, until the transaction of this id is discharged; only we say so.
    InTransaction(Bytes, Box<Self>),
}

/// The error of a rejected outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Condition and description.
    pub refusal: Refusal,
    /// The info map: for a dead-letter, its reason, description and properties to modify.
    pub info: Option<EncodedFields>,
}

/// A map with symbols for its keys, as its peer encoded it: decoded, it would take many times its
/// bytes. Its shape has been checked, its keys have not. A clone shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedFields(Bytes);

impl EncodedFields {
    /// Takes a map's bytes, whose shape has been checked.
    pub(super) const fn new(map: Bytes) -> Self {
        Self(map)
    }

    /// Returns the encoded map.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&Fields> for EncodedFields {
    fn from(fields: &Fields) -> Self {
        let map = serde_amqp::to_vec(fields).expect("a map of values can be written");
        Self(map.into())
    }
}

impl Outcome {
    /// Returns whether it says more than its kind.
    #[must_use]
    pub const fn has_details(&self) -> bool {
        matches!(
            self,
            Self::Modified {
                annotations: Some(_),
                ..
            } | Self::Rejected(Some(_))
        )
    }

    /// Returns the bytes that a peer sent with the kind of outcome.
    pub(super) fn detail_bytes(&self) -> usize {
        let length = |map: &Option<EncodedFields>| map.as_ref().map_or(0, |map| map.0.len());
        match self {
            Self::Accepted | Self::Released | Self::Rejected(None) | Self::Declared(_) => 0,
            Self::Modified { annotations, .. } => length(annotations),
            Self::Rejected(Some(rejection)) => {
                rejection.refusal.description.len() + length(&rejection.info)
            }
            Self::InTransaction(_, outcome) => outcome.detail_bytes(),
        }
    }
}

/// A message to send on an outgoing link.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The delivery-tag.
    pub tag: Tag,
    /// Whether the message is sent settled.
    pub settle_mode: SettleMode,
    /// 0 for a plain message; always sent explicitly.
    pub message_format: u32,
    /// The encoded message, in pieces that are sent one after the other.
    pub payload: &'a [&'a [u8]],
}

/// Result of `deliver` on a link without credit, or one that has ended: nothing was sent, the
/// message stays with the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditLost;

/// A message that came in, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingTransfer {
    /// The link.
    pub link: LinkId,
    /// To be given to `settle_incoming`, or for a settled message its link to `return_credit`: that is what tops the
    /// credit up.
    pub delivery: DeliveryId,
    /// The message as encoded; one slice, however many frames it took.
    pub payload: Bytes,
    /// 0, or 0x80013700 for a batch.
    pub message_format: u32,
    /// The peer has settled it: no disposition is to be sent.
    pub settled: bool,
    /// The transaction it belongs to.
    pub transaction: Option<Bytes>,
}

/// The credit that the receiver of an outgoing link gives.
///
/// `limit` is the delivery-count up to which we may send: the receiver's delivery-count plus
/// its link-credit [2.6.7]. It compares with a count of the messages handed to `deliver` since
/// the attach (beginning at 0), whatever the engine has still to process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkCredit {
    /// The link.
    pub link: LinkId,
    /// Deliveries allowed in all since the attach; a serial number.
    pub limit: u32,
    /// The receiver wants the messages available now, and then `drained`.
    pub drain: bool,
}

/// What a peer decides about a delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingDisposition {
    /// The link.
    pub link: LinkId,
    /// To be given to `settle_outgoing` when not yet settled.
    pub delivery: DeliveryId,
    /// The delivery-tag that the message was sent with.
    pub tag: Tag,
    /// The peer has settled it and expects no answer.
    pub settled: bool,
    /// The outcome of the message.
    pub outcome: Outcome,
    /// The transaction it belongs to.
    pub transaction: Option<Bytes>,
}

/// An action of the peer that its owner must know.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The peer identifies itself in SASL: answer with `authenticated`; nothing more is read until
    /// then. Not reported for an anonymous peer.
    Authenticating {
        /// The identity that it claims.
        identity: Identity,
    },
    /// The peer opened the connection. Our own open has been sent already.
    Opened {
        /// The peer's container-id.
        container_id: String,
        /// The host that the peer means to talk to; never matched strictly.
        hostname: Option<String>,
        /// The identity from SASL.
        identity: Identity,
        /// It says that it brings JMS 2.0.
        is_client_provider: bool,
        /// The product that it says it is.
        product: Box<Product>,
    },
    /// The peer wants a link: answer with `accept_link` or `refuse_link`.
    AttachRequested(LinkId, Box<Attach>),
    /// The peer answered our own attach (client role). A refusal is followed by `Detached`.
    AttachAnswered(LinkId, Box<Attach>),
    /// A whole message came in on an incoming link.
    Transfer(IncomingTransfer),
    /// A message of a transaction was too large for its link, and was refused already.
    RefusedInTransaction {
        /// The transaction.
        transaction: Bytes,
        /// Why it was refused.
        reason: String,
    },
    /// The receiver of an outgoing link changed its credit.
    Credit(LinkCredit),
    /// The receiver of an outgoing link decided about a delivery, or (client role) the broker
    /// about a message of ours.
    Disposition(IncomingDisposition),
    /// A link has ended: detached by the peer (answered already), or with its session. Not reported
    /// when the connection ends.
    Detached {
        /// The link.
        link: LinkId,
        /// The peer's reason, if it gave one.
        error: Option<Refusal>,
        /// Deliveries of it that the peer's window kept back, in whole or in part.
        unsent: Vec<Tag>,
    },
    /// Deliveries that the peer's window kept back, in whole or in part, on a link that the owner
    /// has detached.
    Unsent {
        /// The link.
        link: LinkId,
        /// The deliveries.
        tags: Vec<Tag>,
    },
    /// The connection has ended, in order or not. The last event.
    Closed {
        /// The peer's or our reason.
        error: Option<Refusal>,
        /// Deliveries that the peers' windows kept back, in whole or in part.
        unsent: Vec<(LinkId, Tag)>,
    },
}

impl Attach {
    /// Returns how the peer wants deliveries of an outgoing link settled.
    #[must_use]
    pub fn settle_mode(&self) -> SettleMode {
        match self.snd_settle_mode {
            SenderSettleMode::Settled => SettleMode::OnSend,
            SenderSettleMode::Unsettled | SenderSettleMode::Mixed => SettleMode::OnReceipt,
        }
    }

    /// Returns a link property that is a number of milliseconds, in whatever type.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a value of another type counts as absent"
    )]
    pub fn millis(&self, name: &str) -> Option<Millis> {
        let (_, value) = self
            .properties
            .as_ref()?
            .iter()
            .find(|(key, _)| key.as_str() == name)?;
        let millis = match *value {
            Value::Ubyte(value) => i64::from(value),
            Value::Ushort(value) => i64::from(value),
            Value::Uint(value) => i64::from(value),
            Value::Ulong(value) => i64::try_from(value).unwrap_or(i64::MAX),
            Value::Byte(value) => i64::from(value),
            Value::Short(value) => i64::from(value),
            Value::Int(value) => i64::from(value),
            Value::Long(value) => value,
            _ => return None,
        };
        Some(Millis::from_millis(millis))
    }

    /// Returns a link property that is a string.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a value of another type counts as absent"
    )]
    pub fn text(&self, name: &str) -> Option<&str> {
        let mut properties = self.properties.as_ref()?.iter();
        match properties.find(|(key, _)| key.as_str() == name)?.1 {
            Value::String(text) => Some(text),
            Value::Symbol(text) => Some(text.as_str()),
            _ => None,
        }
    }
}

/// The filter that asks for a message session.
pub(super) const SESSION_FILTER: &str = "com.microsoft:session-filter";

/// The message session that a receiver asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionFilter {
    /// This one.
    Named(String),
    /// Any that is free and has messages.
    Next,
    /// Neither a string nor null.
    Malformed,
}

/// The selector that a receiver has: which messages it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectorFilter {
    /// This condition.
    Text(String),
    /// No string.
    Malformed,
}

/// A capability of a node that a peer can ask for: a word of the JMS binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// A shared subscription is for all client ids.
    Global,
    /// Each message is for one receiver.
    Queue,
    /// A subscription may have several receivers.
    Shared,
    /// A temporary queue, deleted with the link that asked for it.
    TemporaryQueue,
    /// A temporary topic, deleted with the link that asked for it.
    TemporaryTopic,
    /// Each message is for all subscriptions.
    Topic,
}

impl Capability {
    /// Returns its symbol.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Queue => "queue",
            Self::Shared => "shared",
            Self::TemporaryQueue => "temporary-queue",
            Self::TemporaryTopic => "temporary-topic",
            Self::Topic => "topic",
        }
    }
}

/// A node that a peer asks for without naming it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DynamicNode {
    /// A queue.
    Queue,
    /// A topic.
    Topic,
}
