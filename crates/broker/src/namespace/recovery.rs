//! The namespace built up again from its records, and taken down into some for a checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use super::{Namespaces, StepContext};
use jitney_base::address;
use jitney_base::ids::{BodyRef, EntityId, JobId, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_queue::{Departure, Description, Queue, QueueSnapshot, Replayed};
use jitney_queue::{Passage, Positions, Record};
use jitney_rules::Rule;

/// The namespace as it was at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The id that the next entity gets.
    next: EntityId,
    pub(super) entities: Vec<(EntityId, String, Description)>,
    pub(super) rules: Vec<(EntityId, String, Vec<u8>)>,
    pub(super) jobs: Vec<(EntityId, JobId, Vec<u8>)>,
    pub(super) audit: Vec<(u64, Vec<u8>)>,
    pub(super) queues: Vec<QueueSnapshot>,
}

/// The position of a search for messages in old segments.
#[derive(Debug, Clone, Copy, Default)]
pub struct SearchPosition {
    queue: usize,
    ordinal: u64,
}

/// A message whose bytes lie where the search was for.
#[derive(Debug, Clone, Copy)]
pub struct FoundBody {
    /// The queue.
    pub entity: EntityId,
    /// Its number.
    pub number: SequenceNumber,
    /// Where its bytes are.
    pub body: BodyRef,
}

impl Namespaces {
    /// Applies a record again. Nothing is delivered, and nothing is recorded.
    pub fn replay(&mut self, record: &Record<'_>, body: Option<BodyRef>) -> Result<(), Replayed> {
        let entity = match *record {
            Record::Entity {
                entity,
                path,
                description,
            } => {
                return self.replay_entity(entity, path, description);
            }
            Record::EntityDeleted { entity } => {
                // Its ids stay taken.
                self.queues.reserve(entity);
                self.forget(entity);
                self.directory.remove_id(entity);
                return Ok(());
            }
            Record::Moved(ref passage) => {
                let departure = self.replaying(passage.from)?.replay_departure(passage)?;
                return self.replay_arrival(departure, passage);
            }
            Record::Copied(ref passage) => {
                let departure = self.replaying(passage.from)?.replay_copy(passage)?;
                return self.replay_arrival(departure, passage);
            }
            Record::SameBody {
                entity,
                number,
                of,
                of_number,
            } => {
                let body = self.replaying(of)?.body_of(of_number);
                let body = body.ok_or(Replayed::UnknownMessage {
                    entity: of.0,
                    number: of_number.0,
                })?;
                let known = self.replaying(entity)?.set_body(number, body);
                return known.then_some(()).ok_or(Replayed::UnknownMessage {
                    entity: entity.0,
                    number: number.0,
                });
            }
            Record::Rule { entity, name, rule } => return self.replay_rule(entity, name, rule),
            Record::Job { entity, job, state } => {
                let restored = self.jobs.restore(entity, job, state);
                return restored.ok_or(Replayed::Malformed {
                    entity: entity.0,
                    number: 0,
                    what: "its job cannot be read",
                });
            }
            Record::Audit { number, entry } => {
                let restored = self.audit.restore(number, entry);
                return restored.ok_or(Replayed::Malformed {
                    entity: 0,
                    number,
                    what: "an entry of the audit log cannot be read",
                });
            }
            Record::Enqueued { entity, .. }
            | Record::Removed { entity, .. }
            | Record::Changed { entity, .. }
            | Record::Relocated { entity, .. }
            | Record::Counter { entity, .. }
            | Record::SessionState { entity, .. }
            | Record::Seen { entity, .. }
            | Record::Alive { entity, .. } => entity,
        };
        self.replaying(entity)?.replay(record, body)
    }

    /// Counts the bytes that messages share, after the last record was replayed.
    pub fn count_shared(&mut self) {
        self.bodies.clear();
        // Those of subscriptions first: there the topic is known.
        let of_topic = |(topic, state): (&EntityId, &super::Topic)| {
            let topic = *topic;
            let subscriptions = state.subscriptions.clone().into_iter();
            subscriptions.map(move |subscription| (subscription, topic))
        };
        let topics: BTreeMap<EntityId, EntityId> = self.topics.iter().flat_map(of_topic).collect();
        let all = self.queues.ids();
        let all = all.map(|id| (id, topics.get(&id.base()).copied()));
        let (subscriptions, others): (Vec<_>, Vec<_>) = all.partition(|(_, topic)| topic.is_some());
        for (id, topic) in subscriptions.into_iter().chain(others) {
            let Some(node) = self.queues.get(id) else {
                continue;
            };
            let bodies = &mut self.bodies;
            node.queue.for_each_body(|body, shared| {
                if shared {
                    bodies.restore(body, topic);
                }
            });
        }
    }

    /// Lets every queue do what became due while the broker was down, before anything else.
    pub fn arm(&mut self, now: Timestamp) {
        let ids: Vec<EntityId> = self.queues.ids().collect();
        for id in ids {
            self.queues.rearm(now, id);
        }
    }

    /// Gets ready to serve after the last record was replayed.
    pub fn replayed(&mut self, cx: &mut StepContext<'_>) {
        self.resume_jobs(cx);
        self.delete_temporary(cx);
        self.arm(cx.now);
        let ids: Vec<EntityId> = self.queues.ids().collect();
        for id in ids {
            if let Some(node) = self.queues.get_mut(id) {
                node.queue.end_future(cx.now);
            }
            // Messages that were being forwarded when the server stopped are forwarded now.
            self.poke(cx, id);
            if id == id.base() {
                self.watch(cx.now, id);
            }
        }
    }

    /// Returns the namespace as it is now, at the cost of a pointer for each 128 messages.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let entities = self.directory.entities().filter_map(|entity| {
            let description = self.queue(entity.base)?.description().clone();
            Some((entity.base, entity.path.clone(), description))
        });
        let mut entities: Vec<_> = entities.collect();
        // A topic before its subscriptions.
        entities.sort_unstable_by_key(|(base, ..)| *base);
        let queues = self
            .queues
            .ids()
            .filter_map(|id| Some(self.queue(id)?.snapshot()));
        let rules = self.topics.values().flat_map(|topic| {
            let of = |&subscription: &EntityId| {
                let all = topic.rules.rules(subscription.0);
                all.map(move |rule| (subscription, rule.name.clone(), rule.to_json()))
            };
            topic.subscriptions.iter().flat_map(of)
        });
        Snapshot {
            next: self.queues.next_id(),
            entities,
            rules: rules.collect(),
            jobs: self.jobs.snapshot(),
            audit: self.audit.snapshot(),
            queues: queues.collect(),
        }
    }

    /// Calls `visit` with the place of every message's bytes, once for those that are shared.
    pub fn for_each_body(&self, mut visit: impl FnMut(BodyRef)) {
        let mut seen = BTreeSet::new();
        for id in self.queues.ids() {
            if let Some(queue) = self.queue(id) {
                queue.for_each_body(|body, shared| {
                    let first =
                        !shared || !self.bodies.is_shared(body) || seen.insert(body.position);
                    if first {
                        visit(body);
                    }
                });
            }
        }
    }

    /// Looks for messages whose bytes lie in some ranges of positions, at most `scan` messages far;
    /// returns where to continue, or `None` when all have been looked at.
    #[must_use]
    pub fn search_bodies(
        &self,
        positions: &Positions,
        from: SearchPosition,
        scan: usize,
    ) -> (Vec<FoundBody>, Option<SearchPosition>) {
        if self.queues.places() <= from.queue {
            return (Vec::new(), None);
        }
        let next_queue = Some(SearchPosition {
            queue: from.queue + 1,
            ordinal: 0,
        });
        let Some(node) = self.queues.place(from.queue) else {
            return (Vec::new(), next_queue);
        };
        let (found, rest) = node.queue.bodies_within(positions, from.ordinal, scan);
        let entity = node.queue.id();
        let found = found.into_iter().map(|(number, body)| FoundBody {
            entity,
            number,
            body,
        });
        let rest = rest.map(|ordinal| SearchPosition {
            queue: from.queue,
            ordinal,
        });
        (found.collect(), rest.or(next_queue))
    }

    /// Keeps a message's bytes in a new place, if it is there still and they are. Those that share
    /// them find them there.
    pub fn relocate(&mut self, cx: &mut StepContext<'_>, found: &FoundBody, body: &[u8]) {
        let FoundBody {
            entity,
            number,
            body: old,
        } = *found;
        let is_there = |it: &FoundBody| {
            let queue: Option<&Queue> = self.queue(it.entity);
            queue.and_then(|queue| queue.body_of(it.number)) == Some(it.body)
        };
        if !is_there(found) {
            return;
        }
        let moved = self.bodies.moved(old).filter(is_there);
        let new = match moved {
            Some(moved) => {
                cx.journal.append(&Record::SameBody {
                    entity,
                    number,
                    of: moved.entity,
                    of_number: moved.number,
                });
                moved.body
            }
            None => {
                let relocated = Record::Relocated {
                    entity,
                    number,
                    body,
                };
                let new = cx.journal.append(&relocated);
                let new = new.expect("a record with a body has a place for it");
                if self.bodies.is_shared(old) {
                    let now = FoundBody {
                        entity,
                        number,
                        body: new,
                    };
                    self.bodies.note_moved(old, now);
                }
                new
            }
        };
        if let Some(node) = self.queues.get_mut(entity) {
            node.queue.set_body(number, new);
            node.group = cx.group;
        }
        self.bodies.relocate(old, new);
        if self.bodies.release(old) {
            cx.journal.release(old);
        }
    }

    /// Forgets where shared bytes went: a search for messages in old segments is over.
    pub fn end_search(&mut self) {
        self.bodies.end_search();
    }

    fn replay_arrival(
        &mut self,
        departure: Departure,
        passage: &Passage<'_>,
    ) -> Result<(), Replayed> {
        self.replaying(passage.to)?
            .replay_arrival(departure, passage)
    }

    fn replay_rule(
        &mut self,
        entity: EntityId,
        name: &str,
        rule: Option<&[u8]>,
    ) -> Result<(), Replayed> {
        let malformed = Replayed::Malformed {
            entity: entity.0,
            number: 0,
            what: "its rule cannot be read",
        };
        let address = self.node(entity).map(|node| node.address.path.clone());
        let description = self.queue(entity).map(|queue| queue.description().clone());
        let (Some(path), Some(description)) = (address, description) else {
            return Err(Replayed::UnknownEntity { entity: entity.0 });
        };
        let Ok(Some(topic)) = self.topic_of(&path, &description) else {
            return Err(malformed);
        };
        let rules = &mut self.topic(topic).rules;
        rules.remove(entity.0, name);
        if let Some(json) = rule {
            let rule = Rule::from_json(json).map_err(|_| malformed.clone())?;
            rules.insert(entity.0, rule).map_err(|_| malformed)?;
        }
        Ok(())
    }

    fn replay_entity(
        &mut self,
        entity: EntityId,
        path: &str,
        description: &[u8],
    ) -> Result<(), Replayed> {
        let malformed = Replayed::Malformed {
            entity: entity.0,
            number: 0,
            what: "its description cannot be read",
        };
        let description: Description =
            serde_json::from_slice(description).map_err(|_| malformed.clone())?;
        if self.resolve_path(path) == Some(entity) {
            self.describe(entity, &description);
        } else {
            let topic = self.topic_of(path, &description).map_err(|_| malformed)?;
            self.install(entity, &address::with_lower_case(path), &description);
            if let Some(topic) = topic {
                self.topic(topic).subscriptions.insert(entity);
            }
        }
        Ok(())
    }

    fn replaying(&mut self, entity: EntityId) -> Result<&mut Queue, Replayed> {
        let node = self
            .queues
            .get_mut(entity)
            .ok_or(Replayed::UnknownEntity { entity: entity.0 })?;
        Ok(&mut node.queue)
    }
}

impl Snapshot {
    /// Emits the records from which [`Namespaces::replay`] makes the namespace again.
    pub fn records(&self, emit: &mut dyn FnMut(&Record<'_>)) {
        for (entity, path, description) in &self.entities {
            let description = serde_json::to_vec(description).expect("numbers and words are JSON");
            emit(&Record::Entity {
                entity: *entity,
                path,
                description: &description,
            });
        }
        let last = self.next.0.checked_sub(EntityId::PER_ENTITY).map(EntityId);
        if let Some(entity) = last.filter(|last| self.entities.iter().all(|(id, ..)| id != last)) {
            emit(&Record::EntityDeleted { entity });
        }
        for (entity, name, rule) in &self.rules {
            emit(&Record::Rule {
                entity: *entity,
                name,
                rule: Some(rule),
            });
        }
        for (entity, job, state) in &self.jobs {
            emit(&Record::Job {
                entity: *entity,
                job: *job,
                state: Some(state),
            });
        }
        for (number, entry) in &self.audit {
            emit(&Record::Audit {
                number: *number,
                entry,
            });
        }
        for queue in &self.queues {
            queue.records(emit);
        }
    }
}
