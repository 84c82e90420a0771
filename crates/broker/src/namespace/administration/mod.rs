//! The requests of administrators, whatever the protocol: entities and rules are made, read,
//! listed, changed and deleted (`administration.md#administration-over-http`).
//!
//! A request is one step: its records are one group with all others of that moment, and its
//! answer may leave when that group is durable.

mod authorization;
mod operate;
mod properties;
mod requests;

use super::Tier;
use jitney_base::rights::{Key, Rights};
use jitney_base::time::Timestamp;
use jitney_queue::Description;
use jitney_rules::Rule;

pub use operate::{Administration, READ_CLAIMS};
pub use properties::Properties;
pub use requests::{
    AdminRequest, ChangeAuthorization, CreateEntity, CreateRule, CreateSubscription, DeleteEntity,
    DeleteRule, ListEntities, ListRules, ReadEntity, ReadNamespace, ReadRule, UpdateEntity,
    UpdateRule,
};

/// A change of an authorization rule. New keys are arguments: they are random.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorizationChange {
    /// Give it these rights, and these keys where they are given. What it does not have yet gets a new key.
    Put {
        /// Its rights.
        rights: Rights,
        /// Its primary key.
        primary_key: Option<Key>,
        /// Its secondary key.
        secondary_key: Option<Key>,
        /// For keys that are missing.
        new_keys: [Key; 2],
    },
    /// Replace one of its keys.
    Rotate {
        /// The secondary key, and not the primary one.
        is_secondary: bool,
        /// The new key.
        new_key: Key,
    },
    /// Delete it.
    Delete,
}

/// Which entities a list has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// The queues of the namespace whose paths begin with this text, in any case.
    Queues(String),
    /// Its topics, likewise.
    Topics(String),
    /// The subscriptions of the topic at this path.
    Subscriptions(String),
}

/// Some entries of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage<T> {
    /// The entries.
    pub entries: Vec<T>,
    /// Whether there are more.
    pub more: More,
}

/// Whether a list has more entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// It does.
    Yes,
    /// That was the end.
    No,
}

/// A namespace, as an administrator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceView {
    /// Its name; that of the first one may be empty.
    pub name: String,
    /// Its tier.
    pub tier: Tier,
    /// When the oldest of the entities that there are was made.
    pub created_at: Timestamp,
}

/// An entity, as an administrator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityView {
    /// Its path as it was made, without its namespace.
    pub path: String,
    /// Its properties. Where it forwards to is a path without a namespace.
    pub description: Description,
    /// When a client last used it, since the broker started.
    pub accessed_at: Option<Timestamp>,
    /// Its messages.
    pub counts: Counts,
    /// Bytes of its messages as their senders encoded them, its dead letters' included.
    pub bytes: u64,
    /// A topic's subscriptions.
    pub subscriptions: usize,
    /// SQL filters of a topic's subscriptions, the true and the false ones among them.
    pub sql_filters: usize,
    /// Correlation filters of a topic's subscriptions.
    pub correlation_filters: usize,
}

/// Messages of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Those that are active, locked or deferred.
    pub active: usize,
    /// Those of them that are received by their numbers only.
    pub deferred: usize,
    /// Those, in whatever state, that receivers have locked.
    pub locked: usize,
    /// Dead letters.
    pub dead_letters: usize,
    /// Those that wait for their time.
    pub scheduled: usize,
    /// Those that are on their way to the entity that this one forwards to.
    pub transfer: usize,
    /// Those that could not go there.
    pub transfer_dead_letters: usize,
}

/// A rule, as an administrator sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleView {
    /// Its subscription's path as it was made, without its namespace.
    pub subscription: String,
    /// The rule.
    pub rule: Rule,
}
