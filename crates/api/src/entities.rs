//! Queues, topics and subscriptions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::history::{RatesShown, TrendShown};
use crate::rules::RuleFilter;

/// A kind of entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Queue,
    Topic,
    Subscription,
}

/// What an entity's status allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntityStatus {
    Active,
    Disabled,
    ReceiveDisabled,
    SendDisabled,
}

/// A queue, a topic or a subscription.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Entity {
    /// Its path: `orders`, `news/Subscriptions/eu`.
    pub path: String,
    pub kind: Kind,
    pub properties: EntityProperties,
    pub counts: Counts,
    /// Bytes of its messages and dead letters, as their senders encoded them.
    pub size_bytes: u64,
    /// Of the last minute; absent until the history has two intervals of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<RatesShown>,
    /// How its messages have changed: in a list that was asked for with `trend=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trend: Option<TrendShown>,
    /// A topic's subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<usize>,
    pub created_at: String,
    pub updated_at: String,
    /// When a client last used it, since the broker started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accessed_at: Option<String>,
}

/// Messages of an entity by state.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Those that receivers may get, locked ones among them; not those that are deferred.
    pub active: usize,
    /// Those that are received by their numbers only.
    pub deferred: usize,
    /// Those, active or deferred, that receivers have locked.
    pub locked: usize,
    pub scheduled: usize,
    pub dead_letters: usize,
    /// On their way to the entity that this one forwards to.
    pub transfer: usize,
    /// Those that could not go there.
    pub transfer_dead_letters: usize,
}

/// Properties of an entity. What is left out of a request has the service's default. Times are ISO 8601 durations.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EntityProperties {
    #[schema(example = "PT1M")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_duration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size_megabytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_message_kilobytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_delivery_count: Option<u32>,
    #[schema(example = "P14D")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_time_to_live: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_on_expiration: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_on_filter_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_session: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_duplicate_detection: Option<bool>,
    #[schema(example = "PT10M")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_detection_window: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitioned: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_dead_letters_to: Option<String>,
    #[schema(example = "P1D")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_delete_on_idle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<EntityStatus>,
    /// Kept and returned, without an effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batched_operations: Option<bool>,
    /// Likewise, of topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_ordering: Option<bool>,
    /// Likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub express: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<String>,
}

/// An entity to be made or changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EntityRequest {
    pub kind: Kind,
    #[serde(default)]
    pub properties: EntityProperties,
    /// The first rule of a subscription that is made, instead of `$Default`, which takes all messages.
    #[serde(default)]
    pub rule: Option<FirstRule>,
}

/// The first rule of a subscription.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FirstRule {
    pub name: String,
    pub filter: RuleFilter,
    #[serde(default)]
    pub action: Option<String>,
}

/// Entities of one kind.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Entities {
    pub entities: Vec<Entity>,
    /// What `skip` is to be for the next page; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_skip: Option<usize>,
}
