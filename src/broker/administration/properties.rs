//! The properties of an entity, as an administrator gives them.

use crate::entity::AuthorizationRule;
use crate::entity::queue::Status;
use crate::time::Millis;

/// Properties of a queue, a topic or a subscription; `None` is what was not given. Those that an
/// entity of its kind does not have are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    /// `LockDuration`
    pub lock_duration: Option<Millis>,
    /// `MaxSizeInMegabytes`
    pub max_size_megabytes: Option<u64>,
    /// `RequiresDuplicateDetection`
    pub requires_duplicate_detection: Option<bool>,
    /// `RequiresSession`
    pub requires_session: Option<bool>,
    /// `DefaultMessageTimeToLive`; [`Millis::MAX`] for the service's largest.
    pub default_time_to_live: Option<Millis>,
    /// `DeadLetteringOnMessageExpiration`
    pub dead_letter_on_expiration: Option<bool>,
    /// `DeadLetteringOnFilterEvaluationExceptions`
    pub dead_letter_on_filter_error: Option<bool>,
    /// `DuplicateDetectionHistoryTimeWindow`
    pub duplicate_window: Option<Millis>,
    /// `MaxDeliveryCount`
    pub max_delivery_count: Option<u32>,
    /// `EnableBatchedOperations`
    pub batched_operations: Option<bool>,
    /// `AuthorizationRules`
    pub authorization: Option<Vec<AuthorizationRule>>,
    /// `Status`
    pub status: Option<Status>,
    /// `ForwardTo`, as it was written: a path or a URL; empty for none.
    pub forward_to: Option<String>,
    /// `ForwardDeadLetteredMessagesTo`, likewise.
    pub forward_dead_letters_to: Option<String>,
    /// `UserMetadata`
    pub user_metadata: Option<String>,
    /// `SupportOrdering`
    pub supports_ordering: Option<bool>,
    /// `AutoDeleteOnIdle`; [`Millis::MAX`] for never.
    pub auto_delete_on_idle: Option<Millis>,
    /// `EnablePartitioning`
    pub partitioned: Option<bool>,
    /// `EnableExpress`
    pub express: Option<bool>,
    /// `MaxMessageSizeInKilobytes`
    pub max_message_kilobytes: Option<u64>,
}
