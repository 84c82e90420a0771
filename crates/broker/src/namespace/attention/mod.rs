//! What needs attention in each namespace. `docs/operating.md#what-needs-attention` defines each kind, once for the API, the
//! command line, the metrics and the console.
//!
//! ```text
//!  entities, jobs, room ──► conditions, by entity ──► items of the answer ──► every request
//!                                 │    ▲
//!                                 └────┘ since when, and what happened in the last hour
//! ```
//!
//! Promises: a namespace is looked at once in [`limits::ATTENTION_INTERVAL_MIN`] at most, however many ask; a look costs time by its
//! entities, its receivers where messages wait, and [`limits::ATTENTION_LOCKS`] locks, and never by its messages; a condition
//! that held at the first look since the start has no beginning, because the broker has not seen it.
//!
//! Leaves to the gateway: who may see it, and the connections of receivers.

mod conditions;
mod recent;
mod text;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Namespaces;
use crate::limits;
use conditions::{AttentionCondition, EntityConditions};
use jitney_base::address;
use jitney_base::ids::{EntityId, JobId};
use jitney_base::time::{ClockStep, Timestamp};
use jitney_queue::ConsumerId;

/// What is the matter with an entity, a receiver, a job or a namespace. What is more urgent comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttentionKind {
    /// The broker takes no messages.
    MessagesRefused,
    /// A receiver is stuck.
    StuckReceiver,
    /// Messages were dead-lettered in the last hour, and are there still.
    RecentDeadLetters,
    /// Messages could not be forwarded in the last hour.
    ForwardingFailed,
    /// Dead letters wait for the entity to which they are forwarded.
    ForwardingBlocked,
    /// An entity is nearly full, or is full.
    EntityFull,
    /// A namespace is near one of its limits.
    NamespaceNearLimit,
    /// Messages wait in an entity that is disabled.
    DisabledWithMessages,
    /// A job failed.
    JobFailed,
    /// Locks end before messages are settled.
    LocksExpire,
    /// Messages sent by way of an entity could not be delivered.
    TransferDeadLetters,
    /// There are dead letters.
    DeadLetters,
    /// Messages wait, and there is no receiver.
    NoReceiver,
    /// A message has been locked for long.
    OldLock,
    /// A job left messages as they are.
    JobSkipped,
}

/// Whether a person is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Something does not work.
    Alarm,
    /// It may be as it is meant to be.
    Notice,
}

/// One thing that needs attention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttentionItem {
    /// The kind of condition.
    pub kind: AttentionKind,
    /// The path of the entity without its namespace, as its creator spelled it; empty if the namespace is meant.
    pub path: String,
    /// The receiver.
    pub receiver: Option<ConsumerId>,
    /// The job.
    pub job: Option<JobId>,
    /// How much: the documentation says of what.
    pub count: u64,
    /// When it began; `None` if the broker has not seen that.
    pub since: Option<Timestamp>,
    /// A sentence for people.
    pub text: String,
}

/// How many items there are of each kind, in the order of [`AttentionKind::ALL`].
pub type AttentionCounts = [usize; AttentionKind::ALL.len()];

/// What needs attention in a namespace, or with one of its entities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attention {
    /// When the broker looked.
    pub looked_at: Timestamp,
    /// The most urgent items, [`limits::ATTENTION_ITEMS`] at most.
    pub items: Vec<AttentionItem>,
    /// Items by kind, those that are left out among them.
    pub counts: AttentionCounts,
    /// Items that are left out.
    pub left_out: usize,
}

/// The state of all looks.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// By the prefix of the namespace's paths.
    namespaces: BTreeMap<String, WatchedNamespace>,
    /// When all namespaces were last looked at; a namespace that is not known is new then.
    all_looked_at: Option<Timestamp>,
}

/// What the last look at a namespace found.
#[derive(Debug)]
struct WatchedNamespace {
    looked_at: Timestamp,
    /// Entities with conditions, or with something that happened in the last hour.
    entities: BTreeMap<EntityId, EntityConditions>,
    /// Those of the namespace as a whole.
    own: Vec<AttentionCondition>,
    told: Arc<Attention>,
}

impl AttentionKind {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 15] = [
        Self::MessagesRefused,
        Self::StuckReceiver,
        Self::RecentDeadLetters,
        Self::ForwardingFailed,
        Self::ForwardingBlocked,
        Self::EntityFull,
        Self::NamespaceNearLimit,
        Self::DisabledWithMessages,
        Self::JobFailed,
        Self::LocksExpire,
        Self::TransferDeadLetters,
        Self::DeadLetters,
        Self::NoReceiver,
        Self::OldLock,
        Self::JobSkipped,
    ];

    /// Returns its name in the API and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MessagesRefused => "messages_refused",
            Self::RecentDeadLetters => "recent_dead_letters",
            Self::StuckReceiver => "stuck_receiver",
            Self::ForwardingFailed => "forwarding_failed",
            Self::ForwardingBlocked => "forwarding_blocked",
            Self::EntityFull => "entity_full",
            Self::NamespaceNearLimit => "namespace_near_limit",
            Self::DisabledWithMessages => "disabled_with_messages",
            Self::JobFailed => "job_failed",
            Self::LocksExpire => "locks_expire",
            Self::TransferDeadLetters => "transfer_dead_letters",
            Self::DeadLetters => "dead_letters",
            Self::NoReceiver => "no_receiver",
            Self::OldLock => "old_lock",
            Self::JobSkipped => "job_skipped",
        }
    }

    /// Returns whether a person is needed.
    #[must_use]
    pub const fn urgency(self) -> Urgency {
        match self {
            Self::MessagesRefused
            | Self::RecentDeadLetters
            | Self::StuckReceiver
            | Self::ForwardingFailed
            | Self::ForwardingBlocked
            | Self::EntityFull
            | Self::NamespaceNearLimit
            | Self::DisabledWithMessages
            | Self::JobFailed
            | Self::LocksExpire
            | Self::TransferDeadLetters
            | Self::DeadLetters => Urgency::Alarm,
            Self::NoReceiver | Self::OldLock | Self::JobSkipped => Urgency::Notice,
        }
    }

    /// Returns the kind that says the same and more of an entity, if both hold: this one is not told then.
    const fn is_implied_by(self, other: Self) -> bool {
        matches!(
            (self, other),
            (
                Self::DeadLetters,
                Self::RecentDeadLetters | Self::ForwardingBlocked
            )
        )
    }
}

impl Watch {
    /// Follows a clock that was set: what lasts has lasted as long as before.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        self.all_looked_at = self.all_looked_at.map(|at| at.moved(step));
        for watched in self.namespaces.values_mut() {
            watched.looked_at = watched.looked_at.moved(step);
            for condition in &mut watched.own {
                condition.follow_clock(step);
            }
            for entity in watched.entities.values_mut() {
                entity.follow_clock(step);
            }
        }
    }

    /// Forgets a namespace that is removed.
    pub(super) fn forget(&mut self, prefix: &str) {
        self.namespaces.remove(prefix);
    }
}

impl Namespaces {
    /// Returns what needs attention in a namespace, by the prefix of its paths. It is that of the last look if that was less than
    /// [`limits::ATTENTION_INTERVAL_MIN`] ago.
    pub fn attention(&mut self, now: Timestamp, prefix: &str) -> Arc<Attention> {
        let known = self.watch.namespaces.get(prefix);
        let known = known.filter(|it| now.since(it.looked_at) < limits::ATTENTION_INTERVAL_MIN);
        match known {
            Some(watched) => Arc::clone(&watched.told),
            None => self.look_at(now, prefix),
        }
    }

    /// Returns what needs attention with one entity, which the list of its namespace may have left out.
    pub fn attention_of(&mut self, now: Timestamp, id: EntityId) -> Attention {
        let base = id.base();
        let path = self.name_of(base);
        let prefix = address::namespace_of(&path);
        let looked_at = self.attention(now, prefix).looked_at;
        let watched = self.watch.namespaces.get(prefix);
        let found = watched.and_then(|it| it.entities.get(&base));
        let mut told = Told::default();
        if let Some(found) = found {
            told.add(self, base, found);
        }
        if let Some(watched) = watched {
            told.add_own(watched, |condition| {
                condition.detail.job_entity() == Some(base)
            });
        }
        told.attention(self, looked_at)
    }

    /// Looks at all namespaces, unless that was less than [`limits::ATTENTION_INTERVAL`] ago. So beginnings are known when nothing asks.
    pub fn watch_all(&mut self, now: Timestamp) {
        let last = self.watch.all_looked_at;
        if last.is_some_and(|last| now.since(last) < limits::ATTENTION_INTERVAL) {
            return;
        }
        let prefixes = self.directory.prefixes();
        for prefix in &prefixes {
            self.attention(now, prefix);
        }
        let watched = &mut self.watch.namespaces;
        watched.retain(|prefix, _| prefixes.contains(prefix));
        self.watch.all_looked_at = Some(now);
    }

    /// Returns how many items there are of each kind, by the name of the namespace, as of the last looks.
    #[must_use]
    pub fn attention_counts(&self) -> Vec<(String, AttentionCounts)> {
        let all = self.watch.namespaces.iter();
        let all = all.map(|(prefix, it)| (self.directory.name_of(prefix), it.told.counts));
        all.collect()
    }

    fn look_at(&mut self, now: Timestamp, prefix: &str) -> Arc<Attention> {
        let before = self.watch.namespaces.remove(prefix);
        let is_seen = before.is_some() || self.watch.all_looked_at.is_some();
        let begins = is_seen.then_some(now);
        let (mut known, own) = match before {
            Some(before) => (before.entities, before.own),
            None => (BTreeMap::new(), Vec::new()),
        };
        let mut entities = BTreeMap::new();
        let mut locks = limits::ATTENTION_LOCKS;
        let mut told = Told::default();
        for (_, entity) in self.directory.entities_of(prefix, &address::key(prefix)) {
            let before = known.remove(&entity.base).unwrap_or_default();
            let found = self.conditions_of(now, entity, before, begins, &mut locks);
            if !found.is_empty() {
                entities.insert(entity.base, found);
            }
        }
        for (base, found) in &entities {
            told.add(self, *base, found);
        }
        let mut watched = WatchedNamespace {
            looked_at: now,
            own: self.own_conditions(prefix, &own, begins),
            entities,
            told: Arc::default(),
        };
        told.add_own(&watched, |_| true);
        watched.told = Arc::new(told.attention(self, now));
        let told = Arc::clone(&watched.told);
        self.watch.namespaces.insert(prefix.to_owned(), watched);
        told
    }
}

/// The conditions of an answer, before the most urgent ones are chosen.
#[derive(Debug, Default)]
struct Told {
    /// With their entities; those of a namespace or a job have none.
    found: Vec<(Option<EntityId>, AttentionCondition)>,
    counts: AttentionCounts,
    /// Counted, and not among those that were found.
    unlisted: usize,
}

impl Told {
    fn count(&mut self, kind: AttentionKind, more: usize) {
        if let Some(count) = self.counts.get_mut(kind as usize) {
            *count += more;
        }
    }

    fn add(&mut self, namespaces: &Namespaces, base: EntityId, entity: &EntityConditions) {
        debug_assert!(namespaces.node(base).is_some(), "it was just looked at");
        for condition in &entity.conditions {
            let mut all = entity.conditions.iter();
            if !all.any(|other| condition.kind.is_implied_by(other.kind)) {
                self.count(condition.kind, 1);
                self.found.push((Some(base), *condition));
            }
        }
        self.count(AttentionKind::StuckReceiver, entity.unlisted);
        self.unlisted += entity.unlisted;
    }

    fn add_own(
        &mut self,
        watched: &WatchedNamespace,
        is_meant: impl Fn(&AttentionCondition) -> bool,
    ) {
        let own = watched.own.iter().filter(|condition| is_meant(condition));
        for condition in own {
            self.count(condition.kind, 1);
            self.found.push((condition.detail.job_entity(), *condition));
        }
    }

    /// Chooses the most urgent.
    fn attention(mut self, namespaces: &Namespaces, looked_at: Timestamp) -> Attention {
        let rank =
            |(id, it): &(Option<EntityId>, AttentionCondition)| (it.kind, Reverse(it.count), *id);
        let most = limits::ATTENTION_ITEMS;
        let left_out = self.unlisted + self.found.len().saturating_sub(most);
        if most < self.found.len() {
            self.found.select_nth_unstable_by_key(most, rank);
            self.found.truncate(most);
        }
        // Receivers of one entity are in the order of their ids.
        self.found.sort_by_key(rank);
        let items = self.found.iter();
        let items = items.map(|(id, condition)| namespaces.item(*id, condition));
        Attention {
            looked_at,
            items: items.collect(),
            counts: self.counts,
            left_out,
        }
    }
}

impl Namespaces {
    fn item(&self, entity: Option<EntityId>, condition: &AttentionCondition) -> AttentionItem {
        let path = entity.map(|id| self.name_of(id)).unwrap_or_default();
        AttentionItem {
            kind: condition.kind,
            path: address::without_namespace(&path).to_owned(),
            receiver: condition.detail.receiver(),
            job: condition.detail.job(),
            count: condition.count,
            since: condition.since,
            text: self.attention_text(entity, condition),
        }
    }
}
