//! The translation of [`Denied`] into the errors of AMQP, of management nodes and of HTTP.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::limits;
use jitney_amqp::{Condition, Outcome, Refusal, Rejection};
use jitney_base::ids::Random;
use jitney_base::time::Timestamp;
use jitney_broker::access::one_way;
use jitney_broker::namespace::{Denied, DeniedKind};

/// The refusals of a gateway: their counts and their tracking ids.
#[derive(Debug)]
pub(crate) struct Refusals {
    /// Since the process started, by [`DeniedKind`].
    counts: [u64; DeniedKind::ALL.len()],
    /// Tracking ids must not tell what lock tokens are made of: their seed is derived one way.
    ids: Random,
}

impl Refusals {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            counts: [0; DeniedKind::ALL.len()],
            ids: Random::new(one_way(&seed.to_le_bytes())),
        }
    }

    /// Returns how many there were since the process started, by [`DeniedKind`].
    pub(crate) fn counts(&self) -> [u64; DeniedKind::ALL.len()] {
        self.counts
    }

    /// Counts a refusal.
    pub(crate) fn count(&mut self, kind: DeniedKind) {
        if let Some(count) = self.counts.get_mut(kind as usize) {
            *count += 1;
        }
    }

    /// Counts a request that was refused.
    pub(crate) fn count_if_refused<T>(&mut self, done: &Result<T, Denied>) {
        if let Err(denied) = done {
            self.count(denied.kind);
        }
    }

    /// Counts a refusal, and adds to its text what the service's texts end with: a random tracking id by which it is found
    /// in logs, the entity and the time (`errors.md#texts`).
    pub(crate) fn tracked(&mut self, now: Timestamp, mut denied: Denied) -> Denied {
        self.count(denied.kind);
        let (high, low) = (self.ids.next_u64(), self.ids.next_u64());
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
}

/// AMQP's error for it; to be made of one that is tracked.
#[must_use]
pub fn refusal(denied: Denied) -> Refusal {
    Refusal {
        condition: condition(denied.kind),
        description: denied.text,
    }
}

/// Returns the error condition by which AMQP clients know it (`errors.md#conditions`).
#[must_use]
pub fn condition(kind: DeniedKind) -> Condition {
    match kind {
        DeniedKind::Argument => Condition::ArgumentError,
        DeniedKind::Changed => Condition::PreconditionFailed,
        DeniedKind::Decode => Condition::DecodeError,
        DeniedKind::Deleted => Condition::ResourceDeleted,
        DeniedKind::Detached => Condition::DetachForced,
        DeniedKind::Disabled => Condition::EntityDisabled,
        DeniedKind::Exists => Condition::AlreadyExists,
        DeniedKind::Full | DeniedKind::Limit => Condition::ResourceLimitExceeded,
        DeniedKind::InUse => Condition::Other("amqp:resource-locked".to_owned()),
        DeniedKind::Internal => Condition::InternalError,
        DeniedKind::InvalidField => Condition::InvalidField,
        DeniedKind::MessageNotFound => Condition::MessageNotFound,
        DeniedKind::MessageLockLost => Condition::MessageLockLost,
        DeniedKind::NotAllowed => Condition::NotAllowed,
        DeniedKind::NotFound => Condition::NotFound,
        DeniedKind::NotImplemented => Condition::NotImplemented,
        DeniedKind::SessionCannotBeLocked => Condition::SessionCannotBeLocked,
        DeniedKind::SessionLockLost => Condition::SessionLockLost,
        DeniedKind::Timeout => Condition::Timeout,
        DeniedKind::TooLarge => Condition::MessageSizeExceeded,
        DeniedKind::TransactionRollback => Condition::TransactionRollback,
        DeniedKind::TransactionUnknown => Condition::TransactionUnknownId,
        DeniedKind::Unauthorized => Condition::UnauthorizedAccess,
    }
}

/// Returns the status by which HTTP clients know it (`administration.md#errors`). Of messages' REST
/// interface, an entity that is missing is 410 instead.
#[must_use]
pub const fn http_status(kind: DeniedKind) -> u16 {
    match kind {
        DeniedKind::Argument
        | DeniedKind::Decode
        | DeniedKind::Detached
        | DeniedKind::InUse
        | DeniedKind::InvalidField
        | DeniedKind::NotAllowed
        | DeniedKind::NotImplemented
        | DeniedKind::SessionCannotBeLocked
        | DeniedKind::Timeout
        | DeniedKind::TransactionRollback
        | DeniedKind::TransactionUnknown => 400,
        DeniedKind::Unauthorized => 401,
        DeniedKind::Disabled | DeniedKind::Limit | DeniedKind::TooLarge => 403,
        DeniedKind::MessageLockLost
        | DeniedKind::MessageNotFound
        | DeniedKind::NotFound
        | DeniedKind::SessionLockLost => 404,
        DeniedKind::Exists => 409,
        DeniedKind::Deleted => 410,
        DeniedKind::Changed => 412,
        DeniedKind::Full | DeniedKind::Internal => 503,
    }
}

/// Returns the status by which the management nodes' clients know it (`management.md#responses`).
pub(crate) const fn management_status(kind: DeniedKind) -> i32 {
    match kind {
        DeniedKind::Argument
        | DeniedKind::Decode
        | DeniedKind::Deleted
        | DeniedKind::Detached
        | DeniedKind::Disabled
        | DeniedKind::InUse
        | DeniedKind::InvalidField
        | DeniedKind::NotAllowed
        | DeniedKind::TransactionRollback
        | DeniedKind::TransactionUnknown => 400,
        DeniedKind::Unauthorized => 401,
        DeniedKind::Full | DeniedKind::Limit | DeniedKind::TooLarge => 403,
        DeniedKind::MessageNotFound | DeniedKind::NotFound => 404,
        DeniedKind::Timeout => 408,
        DeniedKind::Exists => 409,
        DeniedKind::MessageLockLost
        | DeniedKind::SessionCannotBeLocked
        | DeniedKind::SessionLockLost => 410,
        DeniedKind::Changed => 412,
        DeniedKind::Internal => 500,
        DeniedKind::NotImplemented => 501,
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
        let refusal = refusal(Refusals::new(1).tracked(now, denied));
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
