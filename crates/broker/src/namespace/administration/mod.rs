//! The operations of administrators, whatever the protocol: entities and rules are made, read,
//! listed, changed and deleted (`administration.md#administration-over-http`).
//!
//! An operation is one step: its records are one group with all others of that moment, and its
//! answer may leave when that group is durable.

mod authorization;
mod operate;
mod properties;

use std::borrow::Cow;

use super::Tier;
use jitney_base::rights::{Key, Rights};
use jitney_base::time::Timestamp;
use jitney_queue::Description;
use jitney_rules::Rule;

pub use operate::READ_CLAIMS;
pub use properties::Properties;

/// An operation. Paths are as clients of the namespace write them, decoded: `orders`,
/// `news/Subscriptions/eu`; their case does not matter.
#[derive(Debug, Clone, PartialEq)]
pub enum AdminOperation {
    /// Tell of the namespace itself.
    Namespace,
    /// Tell of a queue, a topic or a subscription.
    Read {
        /// Its path.
        path: String,
    },
    /// Tell of many, in the order of their names.
    List {
        /// The kind of entries.
        what: Listed,
        /// The number of entities to skip.
        skip: usize,
        /// The most entities to return; the broker may return fewer at a time.
        top: usize,
    },
    /// Make a queue or a topic.
    CreateEntity {
        /// Its path.
        path: String,
        /// A topic, and not a queue.
        is_topic: bool,
        /// Its properties.
        properties: Box<Properties>,
    },
    /// Make a subscription.
    CreateSubscription {
        /// Its path.
        path: String,
        /// Its properties.
        properties: Box<Properties>,
        /// Its first rule, instead of `$Default`, which takes all messages. Its time of making is
        /// the broker's to set.
        rule: Option<Box<Rule>>,
    },
    /// Replace the properties of a queue, a topic or a subscription; what is not given gets its
    /// default, but for what cannot be changed and for authorization rules, which stay.
    Update {
        /// Its path.
        path: String,
        /// The description that was sent is of this kind.
        kind: jitney_queue::EntityKind,
        /// Its properties.
        properties: Box<Properties>,
        /// The version that must be there: any, if `None`.
        revision: Option<u64>,
    },
    /// Delete a queue, a topic with its subscriptions, or a subscription.
    Delete {
        /// Its path.
        path: String,
        /// The version that must be there: any, if `None`.
        revision: Option<u64>,
    },
    /// Make, change or delete an authorization rule of a queue or a topic.
    ChangeAuthorization {
        /// The entity's path.
        path: String,
        /// The rule's name.
        name: String,
        /// The change.
        change: Box<AuthorizationChange>,
    },
    /// Tell of a rule.
    ReadRule {
        /// Its subscription's path.
        subscription: String,
        /// Its name.
        name: String,
    },
    /// Make a rule.
    CreateRule {
        /// Its subscription's path.
        subscription: String,
        /// The rule. Its time of making is the broker's to set.
        rule: Box<Rule>,
    },
    /// Replace a rule.
    UpdateRule {
        /// Its subscription's path.
        subscription: String,
        /// The rule, which has the name of the one that it replaces.
        rule: Box<Rule>,
        /// The version that must be there: any, if `None`.
        version: Option<u64>,
    },
    /// Delete a rule.
    DeleteRule {
        /// Its subscription's path.
        subscription: String,
        /// Its name.
        name: String,
        /// The version that must be there: any, if `None`.
        version: Option<u64>,
    },
}

impl AdminOperation {
    /// Returns the path of what it is about, as it is in the URL of its request: that is what a
    /// token must be for.
    pub(super) fn resource(&self) -> Cow<'_, str> {
        let of_rule = |subscription: &str, name: &str| format!("{subscription}/Rules/{name}");
        match self {
            Self::Namespace => Cow::Borrowed("$namespaceinfo"),
            Self::List { what, .. } => match what {
                Listed::Queues(_) => Cow::Borrowed("$Resources/Queues"),
                Listed::Topics(_) => Cow::Borrowed("$Resources/Topics"),
                Listed::Subscriptions(topic) => Cow::Owned(format!("{topic}/Subscriptions")),
                Listed::Rules(subscription) => Cow::Owned(format!("{subscription}/Rules")),
            },
            Self::Read { path }
            | Self::CreateEntity { path, .. }
            | Self::CreateSubscription { path, .. }
            | Self::Update { path, .. }
            | Self::ChangeAuthorization { path, .. }
            | Self::Delete { path, .. } => Cow::Borrowed(path),
            Self::ReadRule { subscription, name }
            | Self::DeleteRule {
                subscription, name, ..
            } => Cow::Owned(of_rule(subscription, name)),
            Self::CreateRule { subscription, rule }
            | Self::UpdateRule {
                subscription, rule, ..
            } => Cow::Owned(of_rule(subscription, &rule.name)),
        }
    }
}

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

/// A kind of list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// The queues of the namespace whose paths begin with this text, in any case.
    Queues(String),
    /// Its topics, likewise.
    Topics(String),
    /// The subscriptions of the topic at this path.
    Subscriptions(String),
    /// The rules of the subscription at this path.
    Rules(String),
}

/// The result of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum AdminAnswer {
    /// The namespace.
    Namespace(NamespaceView),
    /// A queue, a topic or a subscription, as it is now.
    Entity(Box<EntityView>),
    /// A rule, as it is now.
    Rule(Box<RuleView>),
    /// Entities, and whether there are more.
    Entities(Vec<EntityView>, More),
    /// Rules, and whether there are more.
    Rules(Vec<RuleView>, More),
    /// It is gone.
    Deleted,
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
