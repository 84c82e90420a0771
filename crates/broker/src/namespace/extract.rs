//! One namespace of several, taken out of their shard; and numbers that are left out after the end of a log was lost.

use std::collections::BTreeSet;

use super::{AuditEntry, Job, Namespaces, Snapshot, StepContext};
use jitney_base::address;
use jitney_base::ids::EntityId;
use jitney_queue::{Context, Effects, Kind};

impl Snapshot {
    /// Returns the part of the namespace whose entities have this prefix in their paths, as a shard has it in which it is
    /// the first: without the prefix. Entities, messages and jobs keep their ids and numbers.
    #[must_use]
    pub fn of_namespace(mut self, prefix: &str) -> Self {
        let is_own = |path: &str| address::namespace_of(path) == prefix;
        let plain = |path: &mut String| *path = address::without_namespace(path).to_owned();
        self.entities.retain(|(_, path, _)| is_own(path));
        let kept: BTreeSet<EntityId> = self.entities.iter().map(|(base, ..)| *base).collect();
        for (_, path, description) in &mut self.entities {
            plain(path);
            let targets = [
                &mut description.forward_to,
                &mut description.forward_dead_letters_to,
            ];
            targets.into_iter().flatten().for_each(plain);
        }
        let is_kept = |entity: EntityId| kept.contains(&entity.base());
        self.rules.retain(|(entity, ..)| is_kept(*entity));
        self.jobs.retain(|(entity, ..)| is_kept(*entity));
        for (.., state) in &mut self.jobs {
            // What was replayed can be read.
            if let Ok(mut job) = serde_json::from_slice::<Job>(state) {
                plain(&mut job.path);
                *state = serde_json::to_vec(&job).expect("numbers and texts are JSON");
            }
        }
        self.audit.retain_mut(|(_, entry)| {
            let Ok(mut found) = serde_json::from_slice::<AuditEntry>(entry) else {
                return false;
            };
            if found.namespace != prefix {
                return false;
            }
            found.namespace.clear();
            *entry = serde_json::to_vec(&found).expect("numbers and texts are JSON");
            true
        });
        self.queues.retain(|queue| is_kept(queue.id()));
        self
    }

    /// Returns the number of queues, topics and subscriptions.
    #[must_use]
    pub fn entity_count(&self) -> usize {
        self.entities.len()
    }
}

impl Namespaces {
    /// Leaves out so many sequence numbers of every entity: the log has lost its end, and they may have been given there. To
    /// be called before anything that is due is done.
    pub fn skip_numbers(&mut self, cx: &mut StepContext<'_>, count: u64) {
        let mut effects = Effects::default();
        for node in self.queues.iter_mut() {
            // Dead letters keep the numbers of their entity.
            if let Kind::Main { .. } = node.queue.kind() {
                let mut queue_cx = Context {
                    now: cx.now,
                    journal: &mut *cx.journal,
                    random: &mut self.random,
                    effects: &mut effects,
                };
                node.queue.skip_numbers(&mut queue_cx, count);
                node.group = cx.group;
            }
        }
    }
}
