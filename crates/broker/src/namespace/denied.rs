//! Why an operation is not done, whatever protocol asked for it.
//!
//! The entities and their protocols share these values. Each protocol translates them in one place: for AMQP
//! and HTTP that is `denied` of crate `gateway`. Texts are the service's where clients match them
//! (`errors.md#texts`).

use std::borrow::Cow;
use std::fmt;

use jitney_base::address;
use jitney_queue::SendRefused;
use jitney_rules::RuleRefused;

use super::entities::EntityRefused;

/// Why an operation is not done. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Denied {
    /// The kind of the reason, by which clients decide what to do.
    pub kind: DeniedKind,
    /// The reason as a sentence, for people. Some SDKs match its beginning.
    pub text: String,
    /// The path of the entity that the operation was for; empty if there is none.
    pub entity: String,
    /// The field of the request that is wrong, if one is.
    pub field: Option<Box<WrongField>>,
}

/// A field of a request that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongField {
    /// What the JSON API calls it: `lock_duration`, `properties.color`.
    pub name: Cow<'static, str>,
    /// What would be right, if the text says so.
    pub allowed: Option<String>,
}

/// The kind of reason for which an operation is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeniedKind {
    /// An argument is out of range, or too long.
    Argument,
    /// Another version of the entity is there than the one that was asked for.
    Changed,
    /// The message cannot be decoded.
    Decode,
    /// The entity is deleted while it is in use.
    Deleted,
    /// An operator has detached the link.
    Detached,
    /// The entity's status forbids it.
    Disabled,
    /// There is such an entity or rule already.
    Exists,
    /// The server's disk or memory is full: it may be tried again later.
    Full,
    /// It is in use by another client.
    InUse,
    /// The server is at fault.
    Internal,
    /// A field of the request is not valid.
    InvalidField,
    /// A quota is reached.
    Limit,
    /// There is no such message.
    MessageNotFound,
    /// The lock of the message is not held.
    MessageLockLost,
    /// It cannot be done with this entity, or not in this state.
    NotAllowed,
    /// There is no such entity, rule or node.
    NotFound,
    /// It is not supported.
    NotImplemented,
    /// The message session is locked by another receiver.
    SessionCannotBeLocked,
    /// The lock of the message session is not held.
    SessionLockLost,
    /// No message session became available in time.
    Timeout,
    /// The message is larger than the entity allows.
    TooLarge,
    /// The transaction was rolled back.
    TransactionRollback,
    /// There is no such transaction.
    TransactionUnknown,
    /// The right to do it is missing.
    Unauthorized,
}

impl DeniedKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 24] = [
        Self::Argument,
        Self::Changed,
        Self::Decode,
        Self::Deleted,
        Self::Detached,
        Self::Disabled,
        Self::Exists,
        Self::Full,
        Self::InUse,
        Self::Internal,
        Self::InvalidField,
        Self::Limit,
        Self::MessageNotFound,
        Self::MessageLockLost,
        Self::NotAllowed,
        Self::NotFound,
        Self::NotImplemented,
        Self::SessionCannotBeLocked,
        Self::SessionLockLost,
        Self::Timeout,
        Self::TooLarge,
        Self::TransactionRollback,
        Self::TransactionUnknown,
        Self::Unauthorized,
    ];

    /// Returns its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::Changed => "changed",
            Self::Decode => "decode",
            Self::Deleted => "deleted",
            Self::Detached => "detached",
            Self::Disabled => "disabled",
            Self::Exists => "exists",
            Self::Full => "full",
            Self::InUse => "in_use",
            Self::Internal => "internal",
            Self::InvalidField => "invalid_field",
            Self::Limit => "limit",
            Self::MessageNotFound => "message_not_found",
            Self::MessageLockLost => "message_lock_lost",
            Self::NotAllowed => "not_allowed",
            Self::NotFound => "not_found",
            Self::NotImplemented => "not_implemented",
            Self::SessionCannotBeLocked => "session_cannot_be_locked",
            Self::SessionLockLost => "session_lock_lost",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::TransactionRollback => "transaction_rollback",
            Self::TransactionUnknown => "transaction_unknown",
            Self::Unauthorized => "unauthorized",
        }
    }
}

impl Denied {
    /// Says why an operation on an entity is not done.
    pub fn new(kind: DeniedKind, text: impl Into<String>, entity: &str) -> Self {
        Self {
            kind,
            text: text.into(),
            entity: entity.to_owned(),
            field: None,
        }
    }

    /// Names the field of the request that is wrong, unless it is named already.
    #[must_use]
    pub fn about(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.field.get_or_insert_with(|| {
            Box::new(WrongField {
                name: name.into(),
                allowed: None,
            })
        });
        self
    }

    /// Says that there is no such entity in the namespace that the client calls `host`; JavaScript and Java
    /// match the first sentence.
    #[must_use]
    pub fn not_found(host: &str, address: &str) -> Self {
        let text = format!(
            "The messaging entity 'sb://{host}/{address}' could not be found. To know more visit \
             https://aka.ms/sbResourceMgrExceptions."
        );
        Self::new(DeniedKind::NotFound, text, address)
    }

    /// Says that an entity went away before the operation came to it.
    #[must_use]
    pub fn gone(entity: &str) -> Self {
        Self::new(DeniedKind::NotFound, "The entity is gone.", entity)
    }

    /// Says that an entity's status forbids the operation.
    #[must_use]
    pub fn disabled(address: &address::EntityAddress) -> Self {
        let text = disabled_text(address);
        Self::new(DeniedKind::Disabled, text, &address.path)
    }

    /// Says why a subscription does not get a rule.
    #[must_use]
    pub fn rule(subscription: &str, name: &str, why: RuleRefused) -> Self {
        let is_of_name = matches!(why, RuleRefused::NameTaken | RuleRefused::Name);
        let (kind, text) = match why {
            RuleRefused::NameTaken => (
                DeniedKind::Exists,
                format!("The messaging entity '{subscription}/Rules/{name}' already exists."),
            ),
            RuleRefused::Name => (
                DeniedKind::Argument,
                format!(
                    "Name: found '{name}'; allowed: {}.",
                    address::PART_NAME_RULE
                ),
            ),
            RuleRefused::TooLarge => (DeniedKind::Argument, format!("{why}.")),
            RuleRefused::TooManyCorrelation | RuleRefused::TooManySql => {
                (DeniedKind::Limit, format!("{why}."))
            }
        };
        let denied = Self::new(kind, text, subscription);
        if is_of_name {
            denied.about("name")
        } else {
            denied
        }
    }

    /// Says why a queue does not take a message.
    pub(crate) fn send(reason: SendRefused, entity: &str) -> Self {
        let (kind, text) = match reason {
            SendRefused::Disabled => (DeniedKind::Disabled, disabled_text(entity)),
            SendRefused::Full { bytes, max_bytes } => (
                DeniedKind::Limit,
                format!(
                    "The maximum entity size has been reached or exceeded for Queue: '{entity}'. Size \
                     of entity in bytes:{bytes}, Max entity size in bytes:{max_bytes}."
                ),
            ),
            SendRefused::SessionMissing => (
                DeniedKind::NotAllowed,
                "The SessionId was not set on a message, and it cannot be sent to the entity. Entities \
                 that have session support enabled can only receive messages that have the SessionId \
                 set to a valid value."
                    .to_owned(),
            ),
            SendRefused::TooLarge { bytes, max_bytes } => (
                DeniedKind::TooLarge,
                format!(
                    "The received message (size:{bytes} bytes) exceeds the limit ({max_bytes} bytes) \
                     currently allowed on the entity."
                ),
            ),
        };
        let denied = Self::new(kind, text, entity);
        match reason {
            SendRefused::SessionMissing => denied.about("session_id"),
            SendRefused::Disabled | SendRefused::Full { .. } | SendRefused::TooLarge { .. } => {
                denied
            }
        }
    }
}

/// Says that an entity's status forbids the operation.
pub(super) fn disabled_text(entity: impl fmt::Display) -> String {
    format!("Messaging entity '{entity}' is currently disabled.")
}

impl From<EntityRefused> for Denied {
    fn from(refused: EntityRefused) -> Self {
        let kind = match &refused {
            EntityRefused::Rule { path, name, why } => return Self::rule(path, name, *why),
            EntityRefused::NoTopic(_) => DeniedKind::NotFound,
            // Its sub-code is that of what is not found, though its status is not.
            EntityRefused::NoTarget { .. } => {
                let text = format!("SubCode=40400. {refused}.");
                return Self::new(DeniedKind::InvalidField, text, "");
            }
            EntityRefused::Fixed { .. } | EntityRefused::OtherKind { .. } => {
                DeniedKind::InvalidField
            }
        };
        let field = match &refused {
            EntityRefused::Fixed { property, .. } => field_of(property),
            EntityRefused::NoTopic(_) => Some("topic"),
            EntityRefused::NoTarget { .. }
            | EntityRefused::OtherKind { .. }
            | EntityRefused::Rule { .. } => None,
        };
        let denied = Self::new(kind, format!("{refused}."), "");
        match field {
            Some(field) => denied.about(field),
            None => denied,
        }
    }
}

/// Returns what the JSON API calls a property that the administration API calls so.
pub(super) fn field_of(element: &str) -> Option<&'static str> {
    Some(match element {
        "AuthorizationRules" => "authorization_rules",
        "AutoDeleteOnIdle" => "auto_delete_on_idle",
        "DeadLetteringOnFilterEvaluationExceptions" => "dead_letter_on_filter_error",
        "DeadLetteringOnMessageExpiration" => "dead_letter_on_expiration",
        "DefaultMessageTimeToLive" => "default_time_to_live",
        "DuplicateDetectionHistoryTimeWindow" => "duplicate_detection_window",
        "EnableExpress" => "express",
        "EnablePartitioning" => "partitioned",
        "ForwardDeadLetteredMessagesTo" => "forward_dead_letters_to",
        "ForwardTo" => "forward_to",
        "KeyName" => "name",
        "LockDuration" => "lock_duration",
        "MaxDeliveryCount" => "max_delivery_count",
        "MaxMessageSizeInKilobytes" => "max_message_kilobytes",
        "MaxSizeInMegabytes" => "max_size_megabytes",
        "PrimaryKey" => "primary_key",
        "RequiresDuplicateDetection" => "requires_duplicate_detection",
        "RequiresSession" => "requires_session",
        "Rights" => "rights",
        "Status" => "status",
        "UserMetadata" => "user_metadata",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_the_place_of_its_number() {
        for (place, kind) in DeniedKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{}", kind.name());
        }
        assert_eq!(DeniedKind::Unauthorized as usize + 1, DeniedKind::ALL.len());
    }
}
