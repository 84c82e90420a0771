//! Error conditions and their names on the wire.

use super::Condition;

macro_rules! names {
    ($($variant:ident = $name:literal,)*) => {
        impl Condition {
            /// Returns the symbol on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<&str> for Condition {
            fn from(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }
    };
}

names! {
    InternalError = "amqp:internal-error",
    NotFound = "amqp:not-found",
    UnauthorizedAccess = "amqp:unauthorized-access",
    DecodeError = "amqp:decode-error",
    ResourceLimitExceeded = "amqp:resource-limit-exceeded",
    NotAllowed = "amqp:not-allowed",
    InvalidField = "amqp:invalid-field",
    NotImplemented = "amqp:not-implemented",
    IllegalState = "amqp:illegal-state",
    FrameSizeTooSmall = "amqp:frame-size-too-small",
    PreconditionFailed = "amqp:precondition-failed",
    ConnectionForced = "amqp:connection:forced",
    FramingError = "amqp:connection:framing-error",
    HandleInUse = "amqp:session:handle-in-use",
    ErrantLink = "amqp:session:errant-link",
    UnattachedHandle = "amqp:session:unattached-handle",
    DetachForced = "amqp:link:detach-forced",
    MessageSizeExceeded = "amqp:link:message-size-exceeded",
    Stolen = "amqp:link:stolen",
    ResourceDeleted = "amqp:resource-deleted",
    TransactionUnknownId = "amqp:transaction:unknown-id",
    TransactionRollback = "amqp:transaction:rollback",
    TransactionTimeout = "amqp:transaction:timeout",
    ArgumentError = "com.microsoft:argument-error",
    ArgumentOutOfRange = "com.microsoft:argument-out-of-range",
    DeadLetter = "com.microsoft:dead-letter",
    EntityDisabled = "com.microsoft:entity-disabled",
    MessageLockLost = "com.microsoft:message-lock-lost",
    MessageNotFound = "com.microsoft:message-not-found",
    AlreadyExists = "com.microsoft:entity-already-exists",
    SessionCannotBeLocked = "com.microsoft:session-cannot-be-locked",
    SessionLockLost = "com.microsoft:session-lock-lost",
    SessionNotFound = "com.microsoft:session-not-found",
    ServerBusy = "com.microsoft:server-busy",
    Timeout = "com.microsoft:timeout",
}
