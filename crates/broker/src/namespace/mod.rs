//! Namespaces: entities by their addresses, and what happens between them.
//!
//! [`Namespaces`] has the queues of all entities, brings messages from one to the next, and carries out
//! transactions and the operations of administrators. It knows no protocol: the gateway (crate `gateway`) has
//! the connections, and translates refusals. `Namespaces::take_deliveries` returns the messages that queues have
//! handed out to receivers, in order.
//!
//! Each operation is a step with a [`StepContext`]. The records of a step are in one group of the journal; work
//! that became due before is done first.

pub mod administration;
mod attention;
mod audit;
mod bodies;
mod checks;
mod damage;
mod denied;
mod directory;
mod entities;
mod extract;
mod forward_checks;
mod forward_waits;
mod forwarding;
mod jobs;
mod loss;
mod memory;
mod queues;
mod recovery;
mod send;
mod settle;
mod statistics;
mod tier;
mod traces;
mod transaction_scope;
pub mod transactions;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::limits;
use jitney_base::address::{self, EntityAddress, SubQueue};
use jitney_base::ids::{BodyRef, EntityId, MessageIds, Random};
use jitney_base::time::{ClockStep, Timestamp};
use jitney_queue::{Arriving, Context, Delivery, Description, Effects, Journal, Queue, Record};
use jitney_rules::RuleSet;

pub use attention::{Attention, AttentionCounts, AttentionItem, AttentionKind, Urgency};
pub use audit::{AuditEntry, AuditFilter, TARGET as AUDIT_TARGET};
pub use damage::{Contained, Damage};
pub use denied::{Denied, DeniedKind, WrongField};
pub use entities::EntityRefused;
pub use forwarding::WantedBody;
pub use jobs::{
    Job, JobAction, JobDescription, JobPage, JobRefused, JobState, Selection, SelectionError,
    Selector, Undecided, dead_letter_text,
};
pub use loss::{Salvage, Salvaged};
pub use recovery::{FoundBody, SearchPosition, Snapshot};
pub use statistics::{EntityStatistics, MessageCounts, QueueStatistics, Statistics};
pub use tier::Tier;
pub use traces::{HandedOut, TraceEvent};

pub(crate) use directory::Directory;
pub use forwarding::ForwardingTarget;
pub(crate) use queues::EntityNode;
pub use settle::LostLock;
pub use transactions::{Operation, Transactions};

use attention::Watch;
use audit::Audit;
use bodies::SharedBodies;
use forwarding::Forwarding;
use jobs::Jobs;
use memory::Shares;
use queues::Queues;
use send::is_ahead;

/// The context of a step.
pub struct StepContext<'a> {
    /// The time.
    pub now: Timestamp,
    /// Where records go.
    pub journal: &'a mut dyn Journal,
    /// The number of the group of records that the journal is putting together; at least 1, and
    /// never smaller than in the step before.
    pub group: u64,
}

/// The namespaces of a shard, and all that is in them.
#[derive(Debug)]
pub struct Namespaces {
    directory: Directory,
    queues: Queues,
    /// The rules of the subscriptions of each topic.
    topics: BTreeMap<EntityId, Topic>,
    bodies: SharedBodies,
    forwarding: Forwarding,
    transactions: Transactions,
    jobs: Jobs,
    audit: Audit,
    watch: Watch,
    /// What entities had counted that were deleted since the process started, by the prefixes of their paths.
    deleted: BTreeMap<String, MessageCounts>,
    random: Random,
    message_ids: MessageIds,
    room: Room,
    /// How much there is, and is needed, of what there is too little of, for people; empty if that is not known.
    figures: String,
    shares: Shares,
    /// The effects of the steps since the deliveries were taken, with [`Namespaces::groups`].
    effects: Effects,
    /// To each end of a run of deliveries in [`Namespaces::effects`]: the group that they rest on.
    groups: Vec<(usize, u64)>,
    /// Entities that were changed or deleted since it was taken.
    changes: VecDeque<EntityChange>,
    /// What has happened to messages since it was taken; none unless messages are traced.
    trace_events: Option<Vec<TraceEvent>>,
}

/// The room of the store for more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It can.
    Enough,
    /// Messages can be settled and deleted, and none be added.
    None(Lack),
}

/// What there is too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// Space on the disk.
    Disk,
    /// Memory.
    Memory,
    /// The store: it is away, or the broker stops.
    Store,
}

/// A topic, beside its queue.
#[derive(Debug, Default)]
pub struct Topic {
    pub(crate) subscriptions: BTreeSet<EntityId>,
    /// The rules of its subscriptions.
    pub rules: RuleSet,
    /// Its first message, if some of the rules have been evaluated.
    paused: Option<Box<forwarding::Paused>>,
}

/// An entity that is not any more as it was: links to it may have to end.
#[derive(Debug)]
pub enum EntityChange {
    /// It has other properties. [`Namespaces::resume`] is to be called when links have ended.
    Described(EntityId),
    /// It is gone.
    Deleted {
        /// Its identifier.
        base: EntityId,
        /// Its address.
        address: EntityAddress,
        /// How long it was to be there.
        lifetime: Lifetime,
    },
}

/// How long an entity is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until a client deletes it, or it has been idle for too long.
    Lasting,
    /// As long as the link that made it, at most.
    Temporary,
}

/// Deliveries of queues to receivers, in order, each with the group of records that it rests on.
#[derive(Debug, Default)]
pub struct Deliveries {
    list: Vec<Delivery>,
    groups: Vec<(usize, u64)>,
}

impl Deliveries {
    /// Takes all of them out, each with the group that it rests on.
    pub fn drain(&mut self) -> impl Iterator<Item = (u64, Delivery)> {
        let mut groups = self.groups.drain(..).peekable();
        let list = self.list.drain(..).enumerate();
        list.map(move |(at, delivery)| {
            while groups.next_if(|&(end, _)| end <= at).is_some() {}
            let group = groups.peek().map_or(0, |&(_, group)| group);
            (group, delivery)
        })
    }
}

impl Namespaces {
    /// Makes an empty namespace.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            directory: Directory::default(),
            queues: Queues::default(),
            topics: BTreeMap::new(),
            bodies: SharedBodies::default(),
            forwarding: Forwarding::default(),
            transactions: Transactions::default(),
            jobs: Jobs::default(),
            audit: Audit::default(),
            watch: Watch::default(),
            deleted: BTreeMap::new(),
            random: Random::new(seed),
            message_ids: MessageIds::of_log(0),
            room: Room::Enough,
            figures: String::new(),
            shares: Shares::default(),
            effects: Effects::default(),
            groups: Vec::new(),
            changes: VecDeque::new(),
            trace_events: None,
        }
    }

    /// Returns the entities by their paths.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the open transactions.
    #[must_use]
    pub fn transactions(&self) -> &Transactions {
        &self.transactions
    }

    /// Returns random bits.
    pub fn random_bits(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// Says which ids messages have whose senders gave them none, in this log.
    pub fn set_message_ids(&mut self, ids: MessageIds) {
        self.message_ids = ids;
        for node in self.queues.iter_mut() {
            node.queue.set_message_ids(ids);
        }
    }

    /// Says whether the store can take more messages.
    pub fn set_room(&mut self, room: Room) {
        self.room = room;
    }

    /// Says how much there is, and is needed, of what there is too little of: refusals have it.
    pub fn set_figures(&mut self, figures: String) {
        self.figures = figures;
    }

    /// Names the namespaces, the first of which answers to every host name that is no other's.
    pub fn set_namespaces<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        self.directory.set_names(names);
    }

    /// Adds a namespace without entities, unless it is there.
    pub fn add_namespace(&mut self, name: &str) {
        if !self.directory.has_name(name) {
            self.directory.add_name(name);
        }
    }

    /// Removes a namespace that has no entities; the first stays.
    pub fn remove_namespace(&mut self, name: &str) {
        self.directory.remove_name(name);
        if !self.directory.has_name(name) {
            let prefix = address::namespace_prefix(&name.to_lowercase());
            self.shares.forget_namespace(&prefix);
            self.watch.forget(&prefix);
            self.deleted.remove(&prefix);
        }
    }

    /// Returns the paths of up to `most` entities of a namespace besides the first; of a topic also its subscriptions.
    #[must_use]
    pub fn some_entities(&self, name: &str, most: usize) -> Vec<String> {
        if !self.directory.has_name(name) {
            return Vec::new();
        }
        let prefix = self.directory.prefix_of(name);
        let below = self.directory.entities_from(&prefix);
        let below = below.take_while(|(key, _)| key.starts_with(&prefix));
        let paths = below.map(|(_, entity)| entity.path.clone());
        paths.take(most).collect()
    }

    /// Returns the prefix of the paths of a namespace's entities: of one that is not known, that of the
    /// first.
    #[must_use]
    pub fn prefix_of(&self, namespace: &str) -> String {
        self.directory.prefix_of(namespace)
    }

    /// Returns the names of the namespaces that have entities, in lower case, except the first: the paths of its
    /// entities name no namespace.
    #[must_use]
    pub fn namespaces_with_entities(&self) -> BTreeSet<String> {
        self.directory.names_with_entities()
    }

    /// Returns the queue at an address, as tests and tools see it.
    #[must_use]
    pub fn find(&self, address: &EntityAddress) -> Option<&Queue> {
        self.queue(self.resolve(address)?)
    }

    /// Returns the properties of the entity at a path.
    #[must_use]
    pub fn description(&self, path: &str) -> Option<&Description> {
        Some(self.queue(self.resolve_path(path)?)?.description())
    }

    /// Follows a clock that was set, to `now`, before the next step. Locks, waits for message sessions,
    /// transactions and idle deletion have as much time left as before; schedules and ends of life are at
    /// their time by the clock.
    ///
    /// This costs time by the number of queues and locks.
    pub fn follow_clock(&mut self, now: Timestamp, step: ClockStep) {
        self.transactions.follow_clock(step);
        self.watch.follow_clock(step);
        self.queues.follow_clock(now, step);
        self.arm(now);
    }

    /// Begins a turn: filters and selectors have their share of time again.
    pub fn begin_turn(&mut self) {
        self.forwarding.begin_turn();
    }

    /// Returns queues in which something is due, some at a time.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Vec<EntityId> {
        self.queues.due(now, limits::DUE_QUEUES)
    }

    /// Returns whether a queue has something to do.
    #[must_use]
    pub fn is_due(&self, now: Timestamp, id: EntityId) -> bool {
        self.node(id).is_some_and(|node| node.is_due(now))
    }

    /// Returns the time at which something may be due in a queue, or an entity be idle for long enough.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let queues = self.queues.poll_timeout();
        let transactions = self.transactions.poll_timeout();
        queues.into_iter().chain(transactions).min()
    }

    /// Puts what queues have handed out into `deliveries`, which is empty; returns whether there was
    /// something.
    pub fn take_deliveries(&mut self, deliveries: &mut Deliveries) -> bool {
        debug_assert!(deliveries.list.is_empty(), "it was drained");
        std::mem::swap(&mut deliveries.list, &mut self.effects.deliveries);
        std::mem::swap(&mut deliveries.groups, &mut self.groups);
        !deliveries.list.is_empty()
    }

    /// Takes the next entity that was changed or deleted.
    pub fn next_change(&mut self) -> Option<EntityChange> {
        self.changes.pop_front()
    }

    /// Runs a step of one queue, and then all that comes of it: what goes to other queues too.
    pub fn with_queue<T>(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        step: impl FnOnce(&mut Queue, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let result = self.step(cx, id, step)?;
        let forwards = self.node(id).is_some_and(|node| {
            let is_waiting = !node.queue.is_empty() || self.forwarding.blocked.contains(id);
            node.forwards_to.is_some() && is_waiting
        });
        if forwards {
            self.forward_all(cx, id);
        } else if self.queue(id).is_some_and(Queue::is_undecided) {
            self.evaluate_selectors(cx, id);
        }
        Some(result)
    }

    /// Does what is due in a queue, and what comes of it.
    pub(crate) fn poke(&mut self, cx: &mut StepContext<'_>, id: EntityId) {
        self.with_queue(cx, id, |_, _| ());
    }

    /// Runs a step of one queue: first what is due, then `step`, then the departures to its dead
    /// letters.
    fn step<T>(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        step: impl FnOnce(&mut Queue, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mut effects = std::mem::take(&mut self.effects);
        let before = effects.deliveries.len();
        let Some(node) = self.queues.get_mut(id) else {
            self.effects = effects;
            return None;
        };
        let mut journal = Watched {
            inner: &mut *cx.journal,
            bodies: &mut self.bodies,
            wrote: false,
        };
        let mut queue_cx = Context {
            now: cx.now,
            journal: &mut journal,
            random: &mut self.random,
            effects: &mut effects,
        };
        let bytes = node.queue.bytes();
        if node.is_due(cx.now) {
            node.queue
                .handle_timeout(&mut queue_cx, limits::DUE_MESSAGES);
        }
        let result = step(&mut node.queue, &mut queue_cx);
        let has_less = node.queue.bytes() < bytes;
        // A departure is recorded where it arrives, in this same group.
        if journal.wrote || !effects.departures.is_empty() {
            node.group = cx.group;
        }
        if before < effects.deliveries.len() {
            self.groups.push((effects.deliveries.len(), node.group));
        }
        self.queues.rearm(cx.now, id);
        if has_less && !self.forwarding.blocked.is_empty() {
            self.note_room(id);
        }
        self.note_room_in_topics();
        for departure in std::mem::take(&mut effects.departures) {
            self.effects = effects;
            self.arrive(cx, departure, Arriving::default());
            effects = std::mem::take(&mut self.effects);
        }
        self.effects = effects;
        Some(result)
    }

    /// Finds the queue at an address.
    #[must_use]
    pub fn resolve(&self, address: &EntityAddress) -> Option<EntityId> {
        let base = self.resolve_path(&address.path)?;
        Some(match address.queue {
            SubQueue::Main => base,
            SubQueue::DeadLetter => base.dead_letters(),
            SubQueue::TransferDeadLetter => base.transfer_dead_letters(),
        })
    }

    /// Returns the queues with messages of a namespace, by the prefix of its paths, in the order of their addresses from
    /// one on, and the path of the entity to continue at.
    #[must_use]
    pub fn queues_from(
        &self,
        prefix: &str,
        from: Option<&EntityAddress>,
    ) -> (Vec<EntityId>, Option<String>) {
        let start = from.map_or_else(|| address::key(prefix), |from| address::key(&from.path));
        let mut found = Vec::new();
        let of_namespace = self.directory.entities_of(prefix, &start);
        for (at, (key, entity)) in of_namespace.enumerate() {
            if at == limits::SEARCHED_ENTITIES {
                let path = address::without_namespace(&entity.path);
                return (found, Some(path.to_owned()));
            }
            let subqueue = from.filter(|_| key == start).map(|from| from.queue);
            let base = entity.base;
            let queues = [base, base.dead_letters(), base.transfer_dead_letters()];
            let skipped = match subqueue {
                None | Some(SubQueue::Main) => 0,
                Some(SubQueue::DeadLetter) => 1,
                Some(SubQueue::TransferDeadLetter) => 2,
            };
            let queues = queues.into_iter().skip(skipped);
            found
                .extend(queues.filter(|&id| self.queue(id).is_some_and(|queue| !queue.is_empty())));
        }
        (found, None)
    }

    /// Returns whether there is an entity at a path as clients write it, in the namespace of a host name.
    #[must_use]
    pub fn exists(&self, host: Option<&str>, path: &str) -> bool {
        let prefix = self.directory.namespace_of(host);
        let path = path.trim_matches('/');
        self.resolve_path(&format!("{prefix}{path}")).is_some()
    }

    /// Finds an entity by its path, whatever its case.
    #[must_use]
    pub fn resolve_path(&self, path: &str) -> Option<EntityId> {
        self.directory.find(path)
    }

    /// Returns the queue of an entity.
    #[must_use]
    pub fn queue(&self, id: EntityId) -> Option<&Queue> {
        Some(&self.node(id)?.queue)
    }

    /// Returns an entity.
    #[must_use]
    pub fn node(&self, id: EntityId) -> Option<&EntityNode> {
        self.queues.get(id)
    }

    /// Returns the group of records that a reply about a queue rests on: that of its newest record.
    #[must_use]
    pub fn group_of(&self, id: EntityId) -> u64 {
        self.node(id).map_or(0, |node| node.group)
    }

    /// Returns the address of a queue as clients know it; empty if it is gone.
    #[must_use]
    pub fn name_of(&self, id: EntityId) -> String {
        let node = self.node(id);
        node.map(|node| node.address.to_string())
            .unwrap_or_default()
    }

    /// Checks what holds between steps. It looks at every entity and every open transaction.
    ///
    /// # Panics
    ///
    /// If it does not hold, which is a bug.
    pub fn check(&self) {
        self.directory.check();
        self.queues.check();
        self.forwarding.check();
        self.check_blocked();
        self.transactions.check();
        for entity in self.directory.entities() {
            let node = self.node(entity.base).expect("each entity has queues");
            assert_eq!(node.address.path, entity.path);
            assert_eq!(node.queue.description().kind, entity.kind);
        }
        for (topic, state) in &self.topics {
            let kind = self.queue(*topic).map(|queue| queue.description().kind);
            assert_eq!(kind, Some(jitney_queue::EntityKind::Topic));
            for subscription in &state.subscriptions {
                assert!(self.node(*subscription).is_some(), "it was deleted");
            }
        }
    }
}

/// A journal that remembers whether it was written to, and knows of bytes that are shared.
struct Watched<'a> {
    inner: &'a mut dyn Journal,
    bodies: &'a mut SharedBodies,
    wrote: bool,
}

impl Journal for Watched<'_> {
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef> {
        self.wrote = true;
        self.inner.append(record)
    }

    fn release(&mut self, body: BodyRef) {
        if self.bodies.release(body) {
            self.inner.release(body);
        }
    }
}

impl std::fmt::Debug for StepContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepContext")
            .field("now", &self.now)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

#[cfg(any(test, feature = "testing"))]
impl Namespaces {
    /// Counts what is held from now on in another memory.
    pub fn replace_memory(&mut self, memory: jitney_base::memory::Memory) {
        self.shares = Shares::new(memory);
    }

    /// Returns the rules of a subscription.
    #[must_use]
    pub fn rules_of(&self, subscription: EntityId) -> Vec<jitney_rules::Rule> {
        let topics = self.topics.values();
        let rules = topics.flat_map(|topic| topic.rules.rules(subscription.0));
        rules.cloned().collect()
    }

    /// Returns the paths of all entities, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let entities = self.directory.entities();
        entities.map(|entity| entity.path.clone()).collect()
    }

    /// Returns the number that the next message of each queue gets.
    #[must_use]
    pub fn next_numbers(&self) -> Vec<u64> {
        let queues = self.queues.iter();
        queues.map(|node| node.queue.next_number().0).collect()
    }

    /// Fills the directory up to a number of names, which have no queues of their own.
    pub fn fill_directory(&mut self, count: usize, base: EntityId) {
        for number in self.directory.len()..count {
            let kind = jitney_queue::EntityKind::Queue;
            self.directory.insert(base, &format!("z{number}"), kind);
        }
    }
}
