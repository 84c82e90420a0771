//! Dead letters that their own target does not take: they stay in the dead-letter queue, with their reason
//! (`entities.md#forwarding`).
//!
//! A target that is full or gone takes none. Its sources are tried again one after the other, the one that has waited
//! longest first, when there is room in it, and all of them when it is made or changed. A message that the target does
//! not take because of what the message is lets those behind it pass, and is tried again when the target is changed.
//! Nothing of this is recorded: after a restart all of them are tried.

use std::collections::{BTreeMap, BTreeSet};

use super::forwarding::{Forward, ForwardingTarget};
use super::{Namespaces, StepContext, address};
use jitney_base::ids::{EntityId, SequenceNumber};

/// Dead-letter queues whose target does not take all that is in them.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    /// By the target's path, as names are compared.
    targets: BTreeMap<String, Sources>,
    /// The target that a source waits for, and its place among the sources of the target.
    sources: BTreeMap<EntityId, (String, u64)>,
    /// The place of the next one.
    next: u64,
}

/// The dead-letter queues that forward to one target.
#[derive(Debug, Default)]
struct Sources {
    /// Those whose first message waits, by their places.
    waiting: BTreeMap<u64, EntityId>,
    /// Those that have messages which were passed over.
    passed_over: BTreeSet<EntityId>,
}

impl Blocked {
    /// Returns whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns whether a source waits for its target.
    pub(super) fn contains(&self, source: EntityId) -> bool {
        self.sources.contains_key(&source)
    }

    /// Returns whether a target does not take all messages of a source.
    pub(super) fn has(&self, source: EntityId, target: &str) -> bool {
        let of_target = || self.targets.get(&address::key(target));
        self.contains(source) || of_target().is_some_and(|it| it.passed_over.contains(&source))
    }

    /// Notes that the first message of a source waits for a target; a source that waits already keeps its place.
    pub(super) fn block(&mut self, path: &str, source: EntityId) {
        if self.contains(source) {
            return;
        }
        let (key, at) = (address::key(path), self.next);
        self.next += 1;
        let sources = self.targets.entry(key.clone()).or_default();
        sources.waiting.insert(at, source);
        self.sources.insert(source, (key, at));
    }

    /// Notes that a target does not take one message of a source.
    pub(super) fn pass_over(&mut self, path: &str, source: EntityId) {
        let sources = self.targets.entry(address::key(path)).or_default();
        sources.passed_over.insert(source);
    }

    /// Returns the source that has waited longest for a target.
    fn first(&self, key: &str) -> Option<EntityId> {
        let waiting = &self.targets.get(key)?.waiting;
        waiting.first_key_value().map(|(_, source)| *source)
    }

    /// Notes that a source does not wait; returns the one that has its turn, if this one had it.
    pub(super) fn remove(&mut self, source: EntityId) -> Option<EntityId> {
        let (key, at) = self.sources.remove(&source)?;
        let sources = self.targets.get_mut(&key)?;
        sources.waiting.remove(&at);
        self.forget_unused(&key);
        self.first(&key)
    }

    /// Notes that nothing of a source was passed over.
    fn forget_passed_over(&mut self, source: EntityId) {
        self.targets.retain(|_, sources| {
            sources.passed_over.remove(&source);
            !sources.is_unused()
        });
    }

    /// Takes all sources of a target.
    fn take(&mut self, key: &str) -> BTreeSet<EntityId> {
        let Some(sources) = self.targets.remove(key) else {
            return BTreeSet::new();
        };
        for source in sources.waiting.values() {
            self.sources.remove(source);
        }
        let mut all = sources.passed_over;
        all.extend(sources.waiting.into_values());
        all
    }

    fn forget_unused(&mut self, key: &str) {
        if self.targets.get(key).is_some_and(Sources::is_unused) {
            self.targets.remove(key);
        }
    }
}

impl Sources {
    fn is_unused(&self) -> bool {
        self.waiting.is_empty() && self.passed_over.is_empty()
    }
}

impl Namespaces {
    /// Notes that an entity holds less than before: the dead letters that have waited longest for it have their turn.
    pub(super) fn note_room(&mut self, id: EntityId) {
        let Some(node) = self.node(id.base()) else {
            return;
        };
        let first = self
            .forwarding
            .blocked
            .first(&address::key(&node.address.path));
        self.forwarding.ready.extend(first);
    }

    /// Notes that topics hold less than before.
    pub(super) fn note_room_in_topics(&mut self) {
        // It is asked for each message.
        if !self.bodies.are_lessened() {
            return;
        }
        for topic in self.bodies.take_lessened() {
            if !self.forwarding.blocked.is_empty() {
                self.note_room(topic);
            }
        }
    }

    /// Tries the dead letters again that wait for the entity at a path, which is new or was changed.
    pub(super) fn try_waiting_for(&mut self, path: &str) {
        if self.forwarding.blocked.is_empty() {
            return;
        }
        for source in self.forwarding.blocked.take(&address::key(path)) {
            if let Some(node) = self.queues.get_mut(source) {
                node.queue.turn_back();
                self.forwarding.ready.insert(source);
            }
        }
    }

    /// Forwards the dead letters whose turn has come in this step.
    pub fn forward_ready(&mut self, cx: &mut StepContext<'_>) {
        while let Some(source) = self.forwarding.ready.pop_first() {
            self.forward_all(cx, source);
        }
    }

    /// Returns whether the target of a dead-letter queue takes messages now, what is due there left aside.
    pub(super) fn has_room_for(
        &self,
        source: EntityId,
        number: SequenceNumber,
        path: &str,
        why: Forward,
    ) -> bool {
        let Some(facts) = self.queue(source).and_then(|it| it.forward_facts(number)) else {
            return true;
        };
        let target = self.resolve_path(path);
        self.refusal_to_forward(target, path, &facts, why)
            .is_none_or(|refused| !refused.is_of_target())
    }

    /// Forgets what a queue's target did not take: it has another target, or none.
    pub(super) fn forget_target(&mut self, id: EntityId) {
        self.forwarding.forget(id);
        self.forwarding.blocked.forget_passed_over(id);
        if id == id.dead_letters()
            && let Some(node) = self.queues.get_mut(id)
        {
            node.queue.turn_back();
        }
    }

    /// Checks that nothing waits that could go.
    pub(super) fn check_blocked(&self) {
        let Blocked {
            targets, sources, ..
        } = &self.forwarding.blocked;
        for (source, (key, at)) in sources {
            let waiting = targets.get(key).map(|it| &it.waiting);
            assert_eq!(waiting.and_then(|it| it.get(at)), Some(source));
        }
        let waiting: usize = targets.values().map(|it| it.waiting.len()).sum();
        assert_eq!(waiting, sources.len(), "each source waits for one target");
        for (key, of_target) in targets {
            assert!(!of_target.is_unused(), "'{key}' has sources");
            let Some(&first) = of_target.waiting.values().next() else {
                continue;
            };
            assert!(
                self.forwarding.stalled.contains(&first) || !self.could_go(first),
                "dead letters wait for '{key}', which takes them"
            );
        }
    }

    /// Returns whether the target of a dead-letter queue takes its first message.
    fn could_go(&self, source: EntityId) -> bool {
        let Some(node) = self.node(source) else {
            return false;
        };
        let first = node.queue.waiting_to_go(1).into_iter().next();
        let (Some((number, _)), Some(ForwardingTarget::Entity(path))) = (first, &node.forwards_to)
        else {
            return false;
        };
        self.has_room_for(source, number, path, Forward::DeadLetter)
    }
}
