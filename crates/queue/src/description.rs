//! The properties of a queue, as they are stored.

use serde::{Deserialize, Serialize};

use jitney_base::rights::AuthorizationRule;
use jitney_base::time::{Millis, Timestamp};
use jitney_message::{DuplicateScope, PartitionedBy};

/// The properties of a queue, a topic or a subscription (`administration.md#queuedescription`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the service's properties"
)]
pub struct Description {
    /// What kind of entity it is.
    pub kind: EntityKind,
    /// How long a receiver has a message, or a message session, for itself.
    pub lock_duration: Millis,
    /// The longest that a message lives; [`Millis::MAX`] is for ever.
    pub default_time_to_live: Millis,
    /// Failed deliveries after which a message is dead-lettered.
    pub max_delivery_count: u32,
    /// Messages whose life ends are dead-lettered; else they are dropped.
    pub dead_letter_on_expiration: bool,
    /// A subscription's messages for which a filter cannot be evaluated are dead-lettered.
    pub dead_letter_on_filter_error: bool,
    /// Bytes of messages that the entity holds at most, its dead letters included.
    pub max_bytes: u64,
    /// Bytes of one message at most.
    pub max_message_bytes: u64,
    /// The operations that its status allows.
    pub status: Status,
    /// Messages belong to message sessions, and are received through them only. Fixed when the
    /// entity is made.
    pub requires_session: bool,
    /// Messages whose ids are known already are dropped. Fixed when the entity is made.
    pub detects_duplicates: bool,
    /// How long message-ids are remembered, where duplicates are dropped.
    pub duplicate_window: Millis,
    /// It has [`PARTITIONS`](crate::limits::PARTITIONS) number spaces instead of one. Fixed when the entity is made.
    pub partitioned: bool,
    /// The entity to which messages are forwarded.
    pub forward_to: Option<String>,
    /// The URL by which an administrator named that entity, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_to_address: Option<String>,
    /// The entity to which dead letters are forwarded.
    pub forward_dead_letters_to: Option<String>,
    /// The URL by which an administrator named that one, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_dead_letters_to_address: Option<String>,
    /// An entity that is not used for so long is deleted; [`Millis::MAX`] for never.
    pub auto_delete_on_idle: Millis,
    /// It was made for a link, and is deleted with it or at a restart.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub temporary: bool,
    /// User metadata.
    pub user_metadata: Option<String>,
    /// `EnableBatchedOperations`: stored and reported; the log batches its writes in any case.
    pub batched_operations: bool,
    /// `SupportOrdering`: stored and reported; order is kept in any case.
    pub supports_ordering: bool,
    /// `EnableExpress`: stored and reported; messages are durable in any case.
    pub express: bool,
    /// Authorization rules of the entity, besides those of its namespace.
    pub authorization: Vec<AuthorizationRule>,
    /// When it was made and changed.
    pub history: History,
}

/// When an entity was made and changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// When it was made.
    pub created_at: Timestamp,
    /// When its properties were last changed.
    pub updated_at: Timestamp,
    /// How often they were changed: its version.
    pub revision: u64,
}

impl Description {
    /// Returns within what two messages with one message-id are duplicates.
    #[must_use]
    pub const fn duplicate_scope(&self) -> DuplicateScope {
        if self.partitioned {
            DuplicateScope::PartitionKey
        } else {
            DuplicateScope::Entity
        }
    }

    /// Returns what decides the partition of a message, where there are several.
    #[must_use]
    pub const fn partitioned_by(&self) -> PartitionedBy {
        if self.detects_duplicates {
            PartitionedBy::KeysOrMessageId
        } else {
            PartitionedBy::Keys
        }
    }

    /// Returns the window of duplicate detection, if there is any.
    #[must_use]
    pub fn duplicates(&self) -> Option<Millis> {
        self.detects_duplicates.then_some(self.duplicate_window)
    }

    /// Returns how long the entity may be idle before it is deleted; [`Millis::MAX`] for never. An
    /// entity that forwards its messages or its dead letters is never idle.
    #[must_use]
    pub fn idle_deletion(&self) -> Millis {
        match (&self.forward_to, &self.forward_dead_letters_to) {
            (None, None) => self.auto_delete_on_idle,
            (Some(_), _) | (None, Some(_)) => Millis::MAX,
        }
    }

    /// Returns whether two are the same but for their histories.
    #[must_use]
    pub fn equals(&self, other: &Self) -> bool {
        let other = Self {
            history: self.history,
            ..other.clone()
        };
        *self == other
    }
}

/// The kind of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntityKind {
    /// Messages are sent to it, and received from it.
    Queue,
    /// Messages are sent to it, and received from its subscriptions.
    Topic,
    /// Messages come from its topic.
    Subscription,
}

/// The operations that an entity's status allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Sends and receives.
    Active,
    /// Neither.
    Disabled,
    /// Sends only.
    ReceiveDisabled,
    /// Receives only.
    SendDisabled,
}

impl Status {
    /// Returns whether senders may attach.
    #[must_use]
    pub fn can_send(self) -> bool {
        match self {
            Self::Active | Self::ReceiveDisabled => true,
            Self::Disabled | Self::SendDisabled => false,
        }
    }

    /// Returns whether receivers may attach.
    #[must_use]
    pub fn can_receive(self) -> bool {
        match self {
            Self::Active | Self::SendDisabled => true,
            Self::Disabled | Self::ReceiveDisabled => false,
        }
    }
}

impl Default for Description {
    /// Azure's defaults.
    fn default() -> Self {
        Self {
            kind: EntityKind::Queue,
            lock_duration: Millis::from_secs(60),
            default_time_to_live: Millis::MAX,
            max_delivery_count: 10,
            dead_letter_on_expiration: false,
            dead_letter_on_filter_error: true,
            max_bytes: 1024 * 1024 * 1024,
            max_message_bytes: jitney_message::limits::MESSAGE_SIZE_DEFAULT,
            status: Status::Active,
            requires_session: false,
            detects_duplicates: false,
            duplicate_window: Millis::from_secs(600),
            partitioned: false,
            forward_to: None,
            forward_to_address: None,
            forward_dead_letters_to: None,
            forward_dead_letters_to_address: None,
            auto_delete_on_idle: Millis::MAX,
            temporary: false,
            user_metadata: None,
            batched_operations: true,
            supports_ordering: true,
            express: false,
            authorization: Vec::new(),
            history: History::default(),
        }
    }
}
