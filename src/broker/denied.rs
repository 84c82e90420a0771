//! Why an operation is not done, whatever protocol asked for it.
//!
//! The entities and their protocols share these values. Each protocol translates them in one place:
//! [`Refusal`]'s conversion for AMQP, [`DeniedKind::http_status`] for HTTP. Texts are the service's where clients
//! match them (`errors.md#texts`).

use std::fmt::Write as _;

use crate::amqp::{Condition, Refusal};
use crate::ids::Random;
use crate::limits;
use crate::queue::SendRefused;
use crate::rules::RuleRefused;
use crate::time::Timestamp;

use super::entities::EntityRefused;
use super::errors::stamp;

/// Why an operation is not done. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Denied {
    /// What kind of reason it is: clients decide by it what to do.
    pub kind: DeniedKind,
    /// The reason as a sentence, for people. Some SDKs match its beginning.
    pub text: String,
    /// The path of the entity that the operation was for; empty if there is none.
    pub entity: String,
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
    /// The entity's status forbids it.
    Disabled,
    /// There is such an entity or rule already.
    Exists,
    /// The server's disk or memory is full: it may be tried again later.
    Full,
    /// It is in use by somebody else.
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

impl Denied {
    /// Says why an operation on an entity is not done.
    pub fn new(kind: DeniedKind, text: impl Into<String>, entity: &str) -> Self {
        Self {
            kind,
            text: text.into(),
            entity: entity.to_owned(),
        }
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
    pub(super) fn gone() -> Self {
        Self::new(DeniedKind::NotFound, "The entity is gone.", "")
    }

    /// Says that an entity's status forbids the operation.
    pub(super) fn disabled(address: &crate::address::EntityAddress) -> Self {
        let text = format!("Messaging entity '{address}' is currently disabled.");
        Self::new(DeniedKind::Disabled, text, &address.path)
    }

    /// Says why a subscription does not get a rule.
    pub(super) fn rule(subscription: &str, name: &str, why: RuleRefused) -> Self {
        let (kind, text) = match why {
            RuleRefused::NameTaken => (
                DeniedKind::Exists,
                format!("The messaging entity '{subscription}/Rules/{name}' already exists."),
            ),
            RuleRefused::Name => (
                DeniedKind::Argument,
                format!(
                    "Name: found '{name}'; allowed: 1 to {} characters, none of them '/' or '\\'.",
                    limits::PART_NAME_LENGTH_MAX
                ),
            ),
            RuleRefused::TooLarge => (DeniedKind::Argument, format!("{why}.")),
            RuleRefused::TooManyCorrelation | RuleRefused::TooManySql => {
                (DeniedKind::Limit, format!("{why}."))
            }
        };
        Self::new(kind, text, subscription)
    }

    /// Says why a queue does not take a message.
    pub(super) fn send(reason: SendRefused, entity: &str) -> Self {
        let (kind, text) = match reason {
            SendRefused::Disabled => (
                DeniedKind::Disabled,
                format!("Messaging entity '{entity}' is currently disabled."),
            ),
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
        Self::new(kind, text, entity)
    }

    /// Adds to the text what the service's texts end with: a random tracking id by which it is found in logs,
    /// the entity and the time (`errors.md#texts`).
    pub(super) fn tracked(mut self, now: Timestamp, tracking: &mut Random) -> Self {
        let (high, low) = (tracking.next_u64(), tracking.next_u64());
        let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
        let (d, e) = (low >> 48, low & 0xffff_ffff_ffff);
        let _ = write!(
            self.text,
            " TrackingId:{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}, SystemTracker:{}, Timestamp:{}",
            self.entity,
            stamp(now)
        );
        self
    }
}

/// AMQP's error for it; to be made of one that is tracked.
impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        Self {
            condition: denied.kind.condition(),
            description: denied.text,
        }
    }
}

impl From<EntityRefused> for Denied {
    fn from(refused: EntityRefused) -> Self {
        let kind = match &refused {
            EntityRefused::Rule { path, name, why } => return Self::rule(path, name, *why),
            EntityRefused::NoTopic(_) => DeniedKind::NotFound,
            EntityRefused::Fixed { .. }
            | EntityRefused::OtherKind { .. }
            | EntityRefused::Forward { .. } => DeniedKind::InvalidField,
        };
        Self::new(kind, format!("{refused}."), "")
    }
}

impl DeniedKind {
    /// Returns the error condition by which AMQP clients know it (`errors.md#conditions`).
    #[must_use]
    pub fn condition(self) -> Condition {
        match self {
            Self::Argument => Condition::ArgumentError,
            Self::Changed => Condition::PreconditionFailed,
            Self::Decode => Condition::DecodeError,
            Self::Deleted => Condition::ResourceDeleted,
            Self::Disabled => Condition::EntityDisabled,
            Self::Exists => Condition::AlreadyExists,
            Self::Full | Self::Limit => Condition::ResourceLimitExceeded,
            Self::InUse => Condition::Other("amqp:resource-locked".to_owned()),
            Self::Internal => Condition::InternalError,
            Self::InvalidField => Condition::InvalidField,
            Self::MessageNotFound => Condition::MessageNotFound,
            Self::MessageLockLost => Condition::MessageLockLost,
            Self::NotAllowed => Condition::NotAllowed,
            Self::NotFound => Condition::NotFound,
            Self::NotImplemented => Condition::NotImplemented,
            Self::SessionCannotBeLocked => Condition::SessionCannotBeLocked,
            Self::SessionLockLost => Condition::SessionLockLost,
            Self::Timeout => Condition::Timeout,
            Self::TooLarge => Condition::MessageSizeExceeded,
            Self::TransactionRollback => Condition::TransactionRollback,
            Self::TransactionUnknown => Condition::TransactionUnknownId,
            Self::Unauthorized => Condition::UnauthorizedAccess,
        }
    }

    /// Returns the status by which HTTP clients know it (`administration.md#errors`). Of messages' REST
    /// interface, an entity that is missing is 410 instead.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match self {
            Self::Argument
            | Self::Decode
            | Self::InUse
            | Self::InvalidField
            | Self::NotAllowed
            | Self::NotImplemented
            | Self::SessionCannotBeLocked
            | Self::Timeout
            | Self::TransactionRollback
            | Self::TransactionUnknown => 400,
            Self::Unauthorized => 401,
            Self::Disabled | Self::Limit | Self::TooLarge => 403,
            Self::MessageLockLost
            | Self::MessageNotFound
            | Self::NotFound
            | Self::SessionLockLost => 404,
            Self::Exists => 409,
            Self::Deleted => 410,
            Self::Changed => 412,
            Self::Full | Self::Internal => 503,
        }
    }

    /// Returns the status by which the management nodes' clients know it (`management.md#responses`).
    pub(super) const fn management_status(self) -> i32 {
        match self {
            Self::Argument
            | Self::Decode
            | Self::Deleted
            | Self::Disabled
            | Self::InUse
            | Self::InvalidField
            | Self::NotAllowed
            | Self::TransactionRollback
            | Self::TransactionUnknown => 400,
            Self::Unauthorized => 401,
            Self::Full | Self::Limit | Self::TooLarge => 403,
            Self::MessageNotFound | Self::NotFound => 404,
            Self::Timeout => 408,
            Self::Exists => 409,
            Self::MessageLockLost | Self::SessionCannotBeLocked | Self::SessionLockLost => 410,
            Self::Changed => 412,
            Self::Internal => 500,
            Self::NotImplemented => 501,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_ends_as_the_service_s_do() {
        let now = Timestamp::from_millis(1_795_238_774_000);
        let denied = Denied::not_found("ns.example.org", "nope");
        let refusal = Refusal::from(denied.tracked(now, &mut Random::new(1)));
        assert!(refusal.description.starts_with(
            "The messaging entity 'sb://ns.example.org/nope' could not be found. To know more visit \
             https://aka.ms/sbResourceMgrExceptions. TrackingId:"
        ));
        assert!(
            refusal
                .description
                .ends_with(", SystemTracker:nope, Timestamp:11/21/2026 5:26:14 AM"),
            "{}",
            refusal.description
        );
    }
}
