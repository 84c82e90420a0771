//! A namespace built up again from a log of which parts are lost.
//!
//! Every record that is left is replayed, as far as the state allows that it speaks of. What a lost
//! record had begun is gone, what it had ended is there again; messages that are left stay, also
//! where the record is lost that named their entity.

use std::collections::BTreeSet;

use super::recovery::SearchPosition;
use super::{Contained, Damage, Namespaces, StepContext};
use crate::limits;
use jitney_base::ids::{BodyRef, EntityId};
use jitney_queue::{Description, Replayed};
use jitney_queue::{Positions, Record};

/// Replays the records that are left.
#[derive(Debug, Default)]
pub struct Salvage {
    /// Entities that have messages, and whose names are lost.
    unnamed: BTreeSet<EntityId>,
    skipped: u64,
}

/// The result of a [`Salvage`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Records that speak of what is lost, and were left out.
    pub skipped: u64,
    /// The queues that have the messages of entities whose names are lost.
    pub unnamed: Vec<String>,
}

impl Salvage {
    /// Does again what a record says, if that can be done.
    pub fn replay(
        &mut self,
        namespaces: &mut Namespaces,
        record: &Record<'_>,
        body: Option<BodyRef>,
    ) {
        let replayed = if let Record::Entity { entity, path, .. } = *record {
            self.replay_entity(namespaces, record, entity, path)
        } else {
            if let Record::EntityDeleted { entity } = record {
                self.unnamed.remove(entity);
            }
            self.make_way(namespaces, record);
            namespaces.replay(record, body)
        };
        self.skipped += u64::from(replayed.is_err());
    }

    /// Says what came of it, after the last record.
    #[must_use]
    pub fn finish(self, namespaces: &Namespaces) -> Salvaged {
        let path = |entity: &EntityId| Some(namespaces.node(*entity)?.address.path.clone());
        Salvaged {
            skipped: self.skipped,
            unnamed: self.unnamed.iter().filter_map(path).collect(),
        }
    }

    /// Lets a message have its entity and its number although records before it are lost.
    fn make_way(&mut self, namespaces: &mut Namespaces, record: &Record<'_>) {
        let (to, number, arrives) = match record {
            Record::Enqueued { entity, number, .. } => (*entity, *number, true),
            Record::Moved(passage) | Record::Copied(passage) => {
                let source = namespaces.queue(passage.from);
                let found = source.and_then(|queue| queue.body_of(passage.from_number));
                (passage.to, passage.number, found.is_some())
            }
            Record::Entity { .. }
            | Record::EntityDeleted { .. }
            | Record::Removed { .. }
            | Record::Changed { .. }
            | Record::Relocated { .. }
            | Record::SameBody { .. }
            | Record::SessionState { .. }
            | Record::Rule { .. }
            | Record::Job { .. }
            | Record::Audit { .. }
            | Record::Seen { .. }
            | Record::Counter { .. }
            | Record::Alive { .. } => return,
        };
        if arrives && namespaces.node(to).is_none() {
            self.unnamed.insert(to.base());
            install_unnamed(namespaces, to.base());
        }
        let Some(node) = namespaces.queues.get_mut(to) else {
            return;
        };
        if arrives {
            node.queue.make_way(number);
        } else {
            node.queue.pass_over(number);
        }
    }

    fn replay_entity(
        &mut self,
        namespaces: &mut Namespaces,
        record: &Record<'_>,
        entity: EntityId,
        path: &str,
    ) -> Result<(), Replayed> {
        if self.unnamed.contains(&entity) {
            let named = name(namespaces, record, entity);
            if named.is_ok() {
                self.unnamed.remove(&entity);
            }
            return named;
        }
        if let Some(older) = namespaces
            .resolve_path(path)
            .filter(|older| *older != entity)
        {
            // It was deleted before another one got its path: the record of that is lost.
            forget(namespaces, older)?;
        }
        namespaces.replay(record, None)
    }
}

/// Gives messages a queue whose entity's name is lost.
fn install_unnamed(namespaces: &mut Namespaces, entity: EntityId) {
    let mut path = format!("recovered-{}", entity.0);
    while namespaces.resolve_path(&path).is_some() {
        path.push('-');
    }
    let description = Description {
        // It has numbers of any partition.
        partitioned: true,
        ..Description::default()
    };
    namespaces.install(entity, &path, &description);
}

/// Gives an entity its name and properties, with the messages that it has already.
fn name(
    namespaces: &mut Namespaces,
    record: &Record<'_>,
    entity: EntityId,
) -> Result<(), Replayed> {
    let queues = entity.all().into_iter();
    let kept = queues.filter_map(|id| Some(namespaces.queue(id)?.snapshot()));
    let kept: Vec<_> = kept.collect();
    namespaces.replay(&Record::EntityDeleted { entity }, None)?;
    let named = namespaces.replay(record, None);
    if named.is_err() {
        install_unnamed(namespaces, entity);
    }
    for queue in kept {
        queue.records(&mut |record| {
            let body = if let Record::Alive { body, .. } = record {
                Some(*body)
            } else {
                None
            };
            let replayed = namespaces.replay(record, body);
            debug_assert!(replayed.is_ok(), "a queue's own records: {replayed:?}");
        });
    }
    named
}

/// Forgets an entity that was deleted; a topic with its subscriptions.
fn forget(namespaces: &mut Namespaces, entity: EntityId) -> Result<(), Replayed> {
    let topic = namespaces.topics.get(&entity);
    let below = topic.map(|topic| topic.subscriptions.clone());
    let all = below.into_iter().flatten().chain([entity]);
    for entity in all {
        namespaces.replay(&Record::EntityDeleted { entity }, None)?;
    }
    Ok(())
}

impl Namespaces {
    /// Appends a record that repeats known state. The checkpoint that follows it replaces the part of
    /// the log that has lost records.
    pub fn restate(&mut self, cx: &mut StepContext<'_>) {
        let first = self.queues.iter().next();
        let known = match first.map(|node| &node.queue) {
            Some(queue) => Record::Counter {
                entity: queue.id(),
                next: queue.next_number(),
            },
            // No entity is left, the first one neither.
            None => Record::EntityDeleted {
                entity: EntityId(0),
            },
        };
        cx.journal.append(&known);
    }

    /// Contains the damage of the messages whose bytes lie in a part of the log that is lost. `place`
    /// says where bytes were, for people.
    pub fn contain_lost(
        &mut self,
        cx: &mut StepContext<'_>,
        lost: &Positions,
        place: impl Fn(BodyRef) -> String,
    ) -> Vec<Contained> {
        let mut contained = Vec::new();
        let mut from = Some(SearchPosition::default());
        while let Some(at) = from {
            let (found, rest) = self.search_bodies(lost, at, limits::COMPACTION_SCAN);
            for found in found {
                let damage = Damage {
                    body: found.body,
                    place: place(found.body),
                };
                contained.extend(self.body_damaged(cx, found.entity, found.number, &damage));
            }
            from = rest;
        }
        contained
    }
}
