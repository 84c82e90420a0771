//! Entities are made, changed and deleted.

use super::forwarding::{ForwardingTarget, address_of};
use super::queues::EntityNode;
use super::{EntityChange, Lifetime, Namespaces, StepContext, Topic};
use jitney_base::address::{self, SubQueue};
use jitney_base::ids::{EntityId, SequenceNumber};
use jitney_base::time::{Millis, Timestamp};
use jitney_queue::Record;
use jitney_queue::{ConsumerId, Description, EntityKind, History, Kind, Queue};
use jitney_rules::{Filter, Rule, RuleRefused, RuleSet};

/// Why an entity cannot be as it is wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntityRefused {
    /// A property that is fixed when an entity is made has another value.
    #[error("{} '{path}' was created with {is}; delete it, or ask for {is}", cannot_change(property, *kind))]
    Fixed {
        /// The entity.
        path: String,
        /// Its kind, or its value.
        kind: EntityKind,
        /// The property, as the administration API calls it.
        property: &'static str,
        /// Its value.
        is: bool,
    },
    /// It is another kind of entity.
    #[error("'{path}' is a {found:?}, and a {wanted:?} is asked for")]
    OtherKind {
        /// The entity.
        path: String,
        /// Its kind, or its value.
        found: EntityKind,
        /// The kind that is asked for.
        wanted: EntityKind,
    },
    /// A subscription cannot have a rule.
    #[error("'{path}' cannot have the rule '{name}': {why}")]
    Rule {
        /// The subscription.
        path: String,
        /// The rule.
        name: String,
        /// Why not.
        why: RuleRefused,
    },
    /// A subscription's topic is not there.
    #[error("the topic '{0}' does not exist")]
    NoTopic(String),
    /// There is nothing where it forwards to. The first sentence is the service's.
    #[error(
        "The auto forwarding destination entity doesn't exist: '{path}' forwards to '{target}', and there is no such \
         entity"
    )]
    NoTarget {
        /// The entity.
        path: String,
        /// Where it forwards to.
        target: String,
    },
}

/// Checks the name of a rule that is made: over every protocol and out of a file it is one that a file can have. A rule that an
/// earlier release has made under another name stays.
fn check_name(rule: &Rule) -> Result<(), RuleRefused> {
    if address::is_part_name(&rule.name) {
        return Ok(());
    }
    Err(RuleRefused::Name)
}

/// Says in the service's words that a property is fixed.
fn cannot_change(property: &str, kind: EntityKind) -> String {
    match property {
        "EnablePartitioning" => format!("Partitioning cannot be changed for {kind:?}."),
        _ => format!(
            "The value for the {property} property of an existing {kind:?} cannot be changed:"
        ),
    }
}

/// The rule that a subscription has if none is given: it takes every message.
const DEFAULT_RULE: &str = "$Default";

impl Namespaces {
    /// Makes an entity, or gives the one at this path these properties. A new subscription, at
    /// `topic/Subscriptions/name`, gets the rule `$Default`.
    ///
    /// Returns whether anything changed.
    ///
    /// # Errors
    ///
    /// Nothing changes if it cannot be.
    pub fn ensure_entity(
        &mut self,
        cx: &mut StepContext<'_>,
        path: &str,
        description: Description,
    ) -> Result<bool, EntityRefused> {
        match self.resolve_path(path) {
            Some(base) => self.change_entity(cx, base, description),
            None => {
                self.make_entity(cx, path, description, Vec::new())?;
                Ok(true)
            }
        }
    }

    /// Makes a subscription with these rules, or gives the one at this path these properties, and
    /// makes or replaces these rules. Without rules, a new one takes every message.
    ///
    /// Returns whether anything changed.
    ///
    /// # Errors
    ///
    /// If it cannot be; of a subscription that is there, what comes before the rule that is refused
    /// is changed.
    pub fn ensure_subscription(
        &mut self,
        cx: &mut StepContext<'_>,
        path: &str,
        description: Description,
        rules: Vec<Rule>,
    ) -> Result<bool, EntityRefused> {
        let missing = || EntityRefused::NoTopic(path.to_owned());
        let topic = self.topic_of(path, &description)?.ok_or_else(missing)?;
        let Some(subscription) = self.resolve_path(path) else {
            self.make_entity(cx, path, description, rules)?;
            return Ok(true);
        };
        let mut changed = self.change_entity(cx, subscription, description)?;
        for rule in rules {
            let known = self.topic(topic).rules.rule(subscription.0, &rule.name);
            let unchanged = |other: &Rule| {
                let as_old = Rule {
                    created_at: other.created_at,
                    ..rule.clone()
                };
                as_old.to_json() == other.to_json()
            };
            if known.is_some_and(unchanged) {
                continue;
            }
            let name = rule.name.clone();
            self.put_rule(cx, topic, subscription, rule)
                .map_err(|why| EntityRefused::Rule {
                    path: path.to_owned(),
                    name,
                    why,
                })?;
            changed = true;
        }
        Ok(changed)
    }

    /// Makes an entity; a subscription with these rules, or with one that takes every message.
    ///
    /// # Errors
    ///
    /// Nothing changes if it cannot be.
    pub fn make_entity(
        &mut self,
        cx: &mut StepContext<'_>,
        path: &str,
        mut description: Description,
        mut rules: Vec<Rule>,
    ) -> Result<EntityId, EntityRefused> {
        let path = &address::with_lower_case(path);
        self.limit_message_size(path, &mut description);
        let topic = self.topic_of(path, &description)?;
        let base = self.queues.next_id();
        if rules.is_empty() {
            rules.push(Rule {
                name: DEFAULT_RULE.to_owned(),
                filter: Filter::True,
                action: None,
                created_at: cx.now,
            });
        }
        if let Some(topic) = topic {
            let set = &mut self.topic(topic).rules;
            for rule in &rules {
                let inserted = rule.check();
                let inserted = inserted.and_then(|()| set.insert(base.0, rule.clone()));
                if let Err(why) = inserted {
                    set.remove_subscription(base.0);
                    return Err(EntityRefused::Rule {
                        path: path.to_owned(),
                        name: rule.name.clone(),
                        why,
                    });
                }
            }
        }
        description.history = History {
            created_at: cx.now,
            updated_at: cx.now,
            // Not that of one that had this path before.
            revision: cx.now.as_millis().cast_unsigned(),
        };
        record_entity(cx, base, path, &description);
        self.install(base, path, &description);
        self.watch(cx.now, base);
        if let Some(topic) = topic {
            // As the service tells it; that the topic is used says something else.
            if let Some(node) = self.queues.get_mut(topic) {
                node.accessed_at = Some(cx.now);
            }
            self.topic(topic).subscriptions.insert(base);
            for rule in &rules {
                self.record_rule(cx, base, &rule.name, Some(rule));
            }
        }
        self.mark_changed(cx, base);
        Ok(base)
    }

    /// Gives an entity other properties; returns whether they are other ones.
    ///
    /// # Errors
    ///
    /// If one is fixed; then nothing changes.
    pub(super) fn change_entity(
        &mut self,
        cx: &mut StepContext<'_>,
        base: EntityId,
        mut description: Description,
    ) -> Result<bool, EntityRefused> {
        let Some(node) = self.node(base) else {
            return Ok(false);
        };
        let (before, path) = (node.queue.description(), node.address.path.clone());
        self.limit_message_size(&path, &mut description);
        if before.equals(&description) {
            return Ok(false);
        }
        check_fixed(&path, before, &description)?;
        // Each version has a time of its own: clients compare them.
        let next = before.history.updated_at.after(Millis::from_millis(1));
        description.history = History {
            created_at: before.history.created_at,
            updated_at: next.max(cx.now),
            revision: before.history.revision + 1,
        };
        record_entity(cx, base, &path, &description);
        self.describe(base, &description);
        self.mark_changed(cx, base);
        self.watch(cx.now, base);
        self.changes.push_back(EntityChange::Described(base));
        Ok(true)
    }

    /// Forwards what lies in an entity whose properties have changed, if it is to be forwarded from now on, and what
    /// waits for it elsewhere.
    pub fn resume(&mut self, cx: &mut StepContext<'_>, base: EntityId) {
        for id in base.all() {
            self.poke(cx, id);
        }
        let path = self.node(base).map(|node| node.address.path.clone());
        self.try_waiting_for(&path.unwrap_or_default());
    }

    /// Deletes an entity with all that it holds; a topic with its subscriptions.
    pub fn delete_entity(&mut self, cx: &mut StepContext<'_>, path: &str) -> bool {
        let Some(entity) = self.directory.remove(path) else {
            return false;
        };
        let prefix = format!("{}/subscriptions/", address::key(path));
        let below = self.directory.entities_from(&prefix);
        let below = below.take_while(|(key, _)| key.starts_with(&prefix));
        let below: Vec<String> = below.map(|(_, entity)| entity.path.clone()).collect();
        for path in below {
            self.delete_entity(cx, &path);
        }
        if let Some(node) = self.node(entity.base) {
            let change = EntityChange::Deleted {
                base: entity.base,
                address: node.address.clone(),
                lifetime: if node.queue.description().temporary {
                    Lifetime::Temporary
                } else {
                    Lifetime::Lasting
                },
            };
            self.changes.push_back(change);
        }
        cx.journal.append(&Record::EntityDeleted {
            entity: entity.base,
        });
        self.release_bodies(cx, entity.base);
        self.note_room_in_topics();
        self.count_deleted(cx.now, &entity);
        self.forget(entity.base);
        true
    }

    /// Notes that an entity is used, which keeps it from being deleted as idle.
    pub fn record_access(&mut self, now: Timestamp, id: EntityId) {
        self.note_use(now, id);
        self.note_contact(now, id);
    }

    fn note_use(&mut self, now: Timestamp, id: EntityId) {
        if let Some(node) = self.queues.get_mut(id.base()) {
            node.last_used = now;
        }
    }

    /// Notes that a client has a link to an entity, or holds something of it, which is no use that keeps it.
    pub fn note_contact(&mut self, now: Timestamp, id: EntityId) {
        if let Some(node) = self.queues.get_mut(id.base()) {
            node.accessed_at = Some(now);
        }
    }

    /// Returns whether a receiver waits for messages of an entity.
    fn is_awaited(&self, base: EntityId) -> bool {
        let mut queues = base.all().into_iter().filter_map(|id| self.queue(id));
        queues.any(Queue::has_credit)
    }

    /// Looks after an entity that is to be deleted when it is idle.
    pub(super) fn watch(&mut self, now: Timestamp, base: EntityId) {
        let Some(node) = self.queues.get_mut(base) else {
            return;
        };
        node.last_used = now;
        let idle = node.queue.description().idle_deletion();
        if idle < Millis::MAX {
            self.queues.watch_idle(now.after(idle), base);
        }
    }

    /// Returns the next entity that may have been idle for as long as it may be; it goes to
    /// [`Namespaces::end_idle`].
    pub fn next_idle(&mut self, now: Timestamp) -> Option<EntityId> {
        self.queues.next_idle(now)
    }

    /// Deletes an entity that has been idle for as long as it may be (`entities.md#idle-entities`). A receiver that waits
    /// for messages keeps it; an open link alone does not.
    pub fn end_idle(&mut self, cx: &mut StepContext<'_>, base: EntityId) {
        let Some(node) = self.node(base) else {
            return;
        };
        let idle = node.queue.description().idle_deletion();
        if idle == Millis::MAX {
            return;
        }
        let (last_used, path) = (node.last_used, node.address.path.clone());
        // The time counts from when the last of them has become active, or the receiver has gone.
        let is_used = node.queue.has_scheduled() || self.is_awaited(base);
        if is_used {
            self.note_use(cx.now, base);
            self.queues.watch_idle(cx.now.after(idle), base);
        } else if cx.now < last_used.after(idle) {
            self.queues.watch_idle(last_used.after(idle), base);
        } else {
            self.delete_entity(cx, &path);
        }
    }

    /// Deletes what links had for themselves before the broker started anew.
    pub(super) fn delete_temporary(&mut self, cx: &mut StepContext<'_>) {
        let entities = self.directory.entities();
        let temporary = entities.filter(|entity| {
            let queue = self.queue(entity.base);
            queue.is_some_and(|queue| queue.description().temporary)
        });
        let paths: Vec<String> = temporary.map(|entity| entity.path.clone()).collect();
        for path in paths {
            self.delete_entity(cx, &path);
        }
    }

    /// Returns the id that the next entity gets.
    #[must_use]
    pub fn next_id(&self) -> EntityId {
        self.queues.next_id()
    }

    /// Returns the topics.
    pub fn topics(&self) -> impl Iterator<Item = EntityId> {
        self.topics.keys().copied()
    }

    /// Takes a receiver out of a queue. What it holds is for the caller to give back.
    pub fn remove_consumer(&mut self, now: Timestamp, queue: EntityId, consumer: ConsumerId) {
        self.note_contact(now, queue);
        let Some(node) = self.queues.get_mut(queue) else {
            return;
        };
        let asked = node.queue.asks(consumer);
        node.queue.remove_consumer(consumer);
        if asked {
            self.note_use(now, queue);
        }
    }

    /// Takes an entity out of everything but the paths.
    pub(super) fn forget(&mut self, base: EntityId) {
        for id in base.all() {
            self.forget_target(id);
            self.queues.remove(id);
        }
        self.topics.remove(&base);
        for topic in self.topics.values_mut() {
            if topic.subscriptions.remove(&base) {
                topic.rules.remove_subscription(base.0);
            }
        }
    }

    fn release_bodies(&mut self, cx: &mut StepContext<'_>, base: EntityId) {
        for id in base.all() {
            let Some(node) = self.queues.get_mut(id) else {
                continue;
            };
            let (bodies, journal) = (&mut self.bodies, &mut *cx.journal);
            node.queue.for_each_body(|body, _| {
                if bodies.release(body) {
                    journal.release(body);
                }
            });
        }
    }

    /// Adds an entity with its queues to the namespace.
    pub(super) fn install(&mut self, base: EntityId, path: &str, description: &Description) {
        let dead_letters = base.dead_letters();
        let memory = self.shares.of_namespace(address::namespace_of(path));
        self.queues.reserve(base);
        let kinds = [
            (base, Kind::Main { dead_letters }, SubQueue::Main),
            (dead_letters, Kind::DeadLetter, SubQueue::DeadLetter),
            (
                base.transfer_dead_letters(),
                Kind::DeadLetter,
                SubQueue::TransferDeadLetter,
            ),
        ];
        for (id, kind, sub_queue) in kinds {
            let queue = Queue::new(id, kind, description.clone(), SequenceNumber(1))
                .with_memory(memory)
                .with_message_ids(self.message_ids);
            let target = ForwardingTarget::of(description, sub_queue);
            let address = address_of(path, sub_queue);
            self.queues.insert(EntityNode::new(queue, address, target));
        }
        if description.kind == EntityKind::Topic {
            let topic = Topic {
                rules: RuleSet::counted(memory),
                ..Topic::default()
            };
            self.topics.insert(base, topic);
        }
        self.directory.insert(base, path, description.kind);
        self.directory.describe(path, description);
        self.try_waiting_for(path);
    }

    /// Gives an entity's queues other properties.
    pub(super) fn describe(&mut self, base: EntityId, description: &Description) {
        if let Some(node) = self.queues.get(base) {
            self.directory.describe(&node.address.path, description);
        }
        for id in base.all() {
            let Some(node) = self.queues.get_mut(id) else {
                continue;
            };
            node.queue.describe(description.clone());
            let target = ForwardingTarget::of(description, node.address.queue);
            if node.forwards_to != target {
                node.forwards_to = target;
                self.forget_target(id);
            }
        }
    }

    /// Returns the topic of a subscription, by its path.
    pub fn topic_of(
        &self,
        path: &str,
        description: &Description,
    ) -> Result<Option<EntityId>, EntityRefused> {
        if description.kind != EntityKind::Subscription {
            return Ok(None);
        }
        let missing = || EntityRefused::NoTopic(path.to_owned());
        let (topic, _) = address::split_subscription(path).ok_or_else(missing)?;
        let base = self.resolve_path(topic).ok_or_else(missing)?;
        let is_topic = self.topics.contains_key(&base);
        is_topic.then_some(Some(base)).ok_or_else(missing)
    }

    /// Gives a subscription a rule, and writes it down.
    ///
    /// # Errors
    ///
    /// If it has one of this name, or its topic has too many.
    pub fn keep_rule(
        &mut self,
        cx: &mut StepContext<'_>,
        topic: EntityId,
        subscription: EntityId,
        rule: Rule,
    ) -> Result<(), RuleRefused> {
        check_name(&rule)?;
        rule.check()?;
        self.topic(topic)
            .rules
            .insert(subscription.0, rule.clone())?;
        self.record_rule(cx, subscription, &rule.name, Some(&rule));
        Ok(())
    }

    /// Gives a subscription a rule in the place of the one that has its name, if there is one, and
    /// writes it down.
    ///
    /// # Errors
    ///
    /// If its topic has too many; the old one stays then.
    pub(super) fn put_rule(
        &mut self,
        cx: &mut StepContext<'_>,
        topic: EntityId,
        subscription: EntityId,
        rule: Rule,
    ) -> Result<(), RuleRefused> {
        rule.check()?;
        let rules = &mut self.topic(topic).rules;
        let old = rules.rule(subscription.0, &rule.name).cloned();
        if old.is_none() {
            check_name(&rule)?;
        }
        rules.remove(subscription.0, &rule.name);
        if let Err(refused) = rules.insert(subscription.0, rule.clone()) {
            if let Some(old) = old {
                // There was room for it a moment ago.
                let _ = rules.insert(subscription.0, old);
            }
            return Err(refused);
        }
        self.record_rule(cx, subscription, &rule.name, Some(&rule));
        Ok(())
    }

    fn record_rule(
        &mut self,
        cx: &mut StepContext<'_>,
        subscription: EntityId,
        name: &str,
        rule: Option<&Rule>,
    ) {
        let json = rule.map(Rule::to_json);
        cx.journal.append(&Record::Rule {
            entity: subscription,
            name,
            rule: json.as_deref(),
        });
        self.mark_changed(cx, subscription);
    }

    /// Takes a rule from a subscription; returns whether it had it.
    pub fn drop_rule(
        &mut self,
        cx: &mut StepContext<'_>,
        topic: EntityId,
        subscription: EntityId,
        name: &str,
    ) -> bool {
        if !self.topic(topic).rules.remove(subscription.0, name) {
            return false;
        }
        self.record_rule(cx, subscription, name, None);
        true
    }

    /// Notes that an entity has a new record.
    fn mark_changed(&mut self, cx: &StepContext<'_>, id: EntityId) {
        if let Some(node) = self.queues.get_mut(id) {
            node.group = cx.group;
        }
    }

    /// Returns what a topic is beside its queue.
    pub fn topic(&mut self, id: EntityId) -> &mut Topic {
        self.topics.entry(id).or_default()
    }
}

fn check_fixed(path: &str, is: &Description, wanted: &Description) -> Result<(), EntityRefused> {
    if is.kind != wanted.kind {
        return Err(EntityRefused::OtherKind {
            path: path.to_owned(),
            found: is.kind,
            wanted: wanted.kind,
        });
    }
    let detects = |description: &Description| description.detects_duplicates;
    let fixed = [
        (
            "RequiresSession",
            is.requires_session,
            wanted.requires_session,
        ),
        ("EnablePartitioning", is.partitioned, wanted.partitioned),
        ("RequiresDuplicateDetection", detects(is), detects(wanted)),
    ];
    match fixed.into_iter().find(|(_, is, wanted)| is != wanted) {
        None => Ok(()),
        Some((property, value, _)) => Err(EntityRefused::Fixed {
            path: path.to_owned(),
            kind: is.kind,
            property,
            is: value,
        }),
    }
}

fn record_entity(
    cx: &mut StepContext<'_>,
    entity: EntityId,
    path: &str,
    description: &Description,
) {
    let description = serde_json::to_vec(description).expect("numbers and words are JSON");
    cx.journal.append(&Record::Entity {
        entity,
        path,
        description: &description,
    });
}
