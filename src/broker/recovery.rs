//! The namespace built up again from its records, and taken down into some for a checkpoint.

use super::{Broker, Surroundings, address};
use crate::entity::queue::{Description, Replayed, Snapshot as QueueSnapshot};
use crate::entity::{BodyRef, EntityId, Record, SequenceNumber};

/// The namespace as it was at one moment.
#[derive(Debug)]
pub struct Snapshot {
    entities: Vec<(EntityId, String, Description)>,
    queues: Vec<QueueSnapshot>,
}

/// Where a search for messages in old segments stands.
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

impl Broker {
    /// Does again what a record says was done. Nobody is told, and nothing is recorded.
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
                for id in [entity, EntityId(entity.0 + 1)] {
                    if let Some(slot) = usize::try_from(id.0)
                        .ok()
                        .and_then(|at| self.queues.get_mut(at))
                    {
                        *slot = None;
                    }
                }
                self.by_path.retain(|_, found| found.main != entity);
                return Ok(());
            }
            Record::Moved {
                from,
                from_number,
                to,
                ..
            } => {
                let departure = self.replaying(from)?.replay_departure(from_number)?;
                return self.replaying(to)?.replay_arrival(departure, record);
            }
            Record::Enqueued { entity, .. }
            | Record::Removed { entity, .. }
            | Record::Changed { entity, .. }
            | Record::Relocated { entity, .. }
            | Record::Counter { entity, .. }
            | Record::Alive { entity, .. } => entity,
        };
        self.replaying(entity)?.replay(record, body)
    }

    /// Gets ready to serve after the last record was replayed.
    pub fn replayed(&mut self, around: &Surroundings<'_>) {
        let ids: Vec<EntityId> = self.queue_ids().collect();
        for id in ids {
            self.rearm(around.now, id);
        }
    }

    /// Returns the namespace as it is now, at the cost of a pointer for each 128 messages.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let entities = self.by_path.values().filter_map(|entity| {
            let description = self.queue(entity.main)?.description().clone();
            Some((entity.main, entity.path.clone(), description))
        });
        let queues = self
            .queue_ids()
            .filter_map(|id| Some(self.queue(id)?.snapshot()));
        Snapshot {
            entities: entities.collect(),
            queues: queues.collect(),
        }
    }

    /// Calls `visit` with the place of every message's bytes.
    pub fn for_each_body(&self, mut visit: impl FnMut(BodyRef)) {
        for id in self.queue_ids() {
            if let Some(queue) = self.queue(id) {
                queue.for_each_body(&mut visit);
            }
        }
    }

    /// Looks for messages whose bytes lie in a range of positions, at most `scan` messages far;
    /// returns where to go on, or `None` when all have been looked at.
    #[must_use]
    pub fn search_bodies(
        &self,
        positions: &std::ops::Range<u64>,
        from: SearchPosition,
        scan: usize,
    ) -> (Vec<FoundBody>, Option<SearchPosition>) {
        let Some(slot) = self.queues.get(from.queue) else {
            return (Vec::new(), None);
        };
        let next_queue = Some(SearchPosition {
            queue: from.queue + 1,
            ordinal: 0,
        });
        let Some(node) = slot else {
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

    /// Keeps a message's bytes in a new place, if it is there still and they are.
    pub fn relocate(&mut self, around: &mut Surroundings<'_>, found: &FoundBody, body: &[u8]) {
        self.with_queue(around, found.entity, |queue, cx| {
            queue.relocate(cx, found.number, found.body, body);
        });
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
            serde_json::from_slice(description).map_err(|_| malformed)?;
        if self
            .by_path
            .get(&address::key(path))
            .is_some_and(|found| found.main == entity)
        {
            for id in [entity, EntityId(entity.0 + 1)] {
                self.replaying(id)?.describe(description.clone());
            }
        } else {
            self.install(entity, path, &description);
        }
        Ok(())
    }

    fn replaying(&mut self, entity: EntityId) -> Result<&mut super::Queue, Replayed> {
        let node = self
            .node_mut(entity)
            .ok_or(Replayed::UnknownEntity { entity: entity.0 })?;
        Ok(&mut node.queue)
    }

    fn queue_ids(&self) -> impl Iterator<Item = EntityId> {
        self.queues.iter().flatten().map(|node| node.queue.id())
    }
}

impl Snapshot {
    /// Emits the records from which [`Broker::replay`] makes the namespace again.
    pub fn records(&self, emit: &mut dyn FnMut(&Record<'_>)) {
        for (entity, path, description) in &self.entities {
            let description = serde_json::to_vec(description).expect("numbers and words are JSON");
            emit(&Record::Entity {
                entity: *entity,
                path,
                description: &description,
            });
        }
        for queue in &self.queues {
            queue.records(emit);
        }
    }
}
