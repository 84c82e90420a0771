//! The translation of [`Denied`] into the errors of AMQP, of management nodes and of HTTP.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::amqp::{Condition, Outcome, Refusal, Rejection};
use crate::ids::Random;
use crate::limits;
use crate::namespace::{Denied, DeniedKind};
use crate::time::Timestamp;

/// Adds to a reason's text what the service's texts end with: a random tracking id by which it is found in
/// logs, the entity and the time (`errors.md#texts`).
pub(super) fn tracked(mut denied: Denied, now: Timestamp, tracking: &mut Random) -> Denied {
    let (high, low) = (tracking.next_u64(), tracking.next_u64());
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
    let (d, e) = (low >> 48, low & 0xffff_ffff_ffff);
    let _ = write!(
        denied.text,
        " TrackingId:{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}, SystemTracker:{}, Timestamp:{}",
        denied.entity,
        now.to_service_text()
    );
    denied
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

impl DeniedKind {
    /// Returns the error condition by which AMQP clients know it (`errors.md#conditions`).
    #[must_use]
    pub fn condition(self) -> Condition {
        match self {
            Self::Argument => Condition::ArgumentError,
            Self::Changed => Condition::PreconditionFailed,
            Self::Decode => Condition::DecodeError,
            Self::Deleted => Condition::ResourceDeleted,
            Self::Detached => Condition::DetachForced,
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
            | Self::Detached
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
    pub(crate) const fn management_status(self) -> i32 {
        match self {
            Self::Argument
            | Self::Decode
            | Self::Deleted
            | Self::Detached
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

/// The marks by which a refusal over HTTP is found in logs.
#[derive(Debug, Clone, Copy)]
pub struct Tracking<'a> {
    /// A name that no other refusal has.
    pub id: &'a str,
    /// The namespace, or the entity, that refused.
    pub system: &'a str,
    /// When.
    pub at: Timestamp,
}

/// Returns the host by which texts name a namespace: the one that its client named, without a port.
pub(crate) fn host_shown(named: Option<&str>) -> &str {
    let host = named.unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    if host.is_empty() || limits::HOST_NAME_BYTES_MAX < host.len() {
        return "localhost";
    }
    host
}

/// Makes the outcome of a delivery that was refused.
pub(super) fn rejected(refusal: Refusal) -> Outcome {
    Outcome::Rejected(Some(Arc::new(Rejection {
        refusal,
        info: None,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_ends_as_the_service_s_do() {
        let now = Timestamp::from_millis(1_795_238_774_000);
        let denied = Denied::not_found("ns.example.org", "nope");
        let refusal = Refusal::from(tracked(denied, now, &mut Random::new(1)));
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

    #[test]
    fn a_namespace_is_called_as_its_client_calls_it() {
        assert_eq!(host_shown(Some("ns.example.org")), "ns.example.org");
        assert_eq!(host_shown(Some("127.0.0.1:5672")), "127.0.0.1");
        assert_eq!(host_shown(Some("[::1]:5672")), "[::1]");
        assert_eq!(host_shown(Some("[::1]")), "[::1]");
        assert_eq!(host_shown(None), "localhost");
        assert_eq!(host_shown(Some(&"h".repeat(256))), "localhost");
    }
}
