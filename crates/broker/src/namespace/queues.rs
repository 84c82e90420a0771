//! The queues of all entities by their ids, and when each has something to do.

use std::collections::BTreeSet;

use super::forwarding::ForwardingTarget;
use jitney_base::address::EntityAddress;
use jitney_base::ids::EntityId;
use jitney_base::time::{ClockStep, Timestamp};
use jitney_queue::Queue;

/// The queues of a shard.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// By id. The place of one that is gone stays empty: no id is given twice.
    nodes: Vec<Option<Box<EntityNode>>>,
    /// When queues have something to do; a time may be too early, never too late.
    deadlines: BTreeSet<(Timestamp, EntityId)>,
    /// When entities may be found to be idle; a time may be too early, never too late.
    idle_ends: BTreeSet<(Timestamp, EntityId)>,
}

/// A queue in its place: an entity has three, for messages, dead letters, and transfer dead letters.
#[derive(Debug)]
pub struct EntityNode {
    /// The queue.
    pub queue: Queue,
    /// The group of its newest record.
    pub(crate) group: u64,
    /// The time that is in [`Queues::deadlines`] for it.
    armed: Option<Timestamp>,
    /// Its address as clients know it, for error texts.
    pub address: EntityAddress,
    /// Where its messages are forwarded to, if they are.
    pub forwards_to: Option<ForwardingTarget>,
    /// From when on the entity is idle.
    pub(super) last_used: Timestamp,
    /// When a client last used it, since the start.
    pub(super) accessed_at: Option<Timestamp>,
}

impl EntityNode {
    pub(super) fn new(
        queue: Queue,
        address: EntityAddress,
        forwards_to: Option<ForwardingTarget>,
    ) -> Self {
        Self {
            queue,
            group: 0,
            armed: None,
            address,
            forwards_to,
            last_used: Timestamp::EPOCH,
            accessed_at: None,
        }
    }

    /// Returns whether something is due.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.armed.is_some_and(|at| at <= now)
    }
}

impl Queues {
    pub(super) fn get(&self, id: EntityId) -> Option<&EntityNode> {
        self.nodes.get(usize::try_from(id.0).ok()?)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, id: EntityId) -> Option<&mut EntityNode> {
        self.nodes
            .get_mut(usize::try_from(id.0).ok()?)?
            .as_deref_mut()
    }

    /// Returns the queue in the place with this number, if it is there still.
    pub(super) fn place(&self, at: usize) -> Option<&EntityNode> {
        self.nodes.get(at)?.as_deref()
    }

    pub(super) fn place_mut(&mut self, at: usize) -> Option<&mut EntityNode> {
        self.nodes.get_mut(at)?.as_deref_mut()
    }

    /// Returns the number of places, which is the id of the next entity.
    pub(super) fn places(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the id that the next entity gets.
    pub(super) fn next_id(&self) -> EntityId {
        EntityId(u32::try_from(self.nodes.len()).expect("counted in 32 bits"))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &EntityNode> {
        self.nodes.iter().flatten().map(|node| &**node)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut EntityNode> {
        self.nodes.iter_mut().flatten().map(|node| &mut **node)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = EntityId> {
        self.iter().map(|node| node.queue.id())
    }

    /// Takes the ids of an entity, whether it gets queues or not.
    pub(super) fn reserve(&mut self, base: EntityId) {
        let last = base.transfer_dead_letters();
        let end = usize::try_from(last.0).expect("32 bits fit") + 1;
        if self.nodes.len() < end {
            self.nodes.resize_with(end, || None);
        }
    }

    /// Puts a queue into its place, which is reserved.
    pub(super) fn insert(&mut self, node: EntityNode) {
        let at = usize::try_from(node.queue.id().0).ok();
        if let Some(place) = at.and_then(|at| self.nodes.get_mut(at)) {
            *place = Some(Box::new(node));
        }
    }

    /// Removes a queue; its id stays taken.
    pub(super) fn remove(&mut self, id: EntityId) -> Option<Box<EntityNode>> {
        let at = usize::try_from(id.0).ok()?;
        let node = self.nodes.get_mut(at)?.take()?;
        if let Some(at) = node.armed {
            self.deadlines.remove(&(at, id));
        }
        Some(node)
    }

    /// Keeps a queue's deadline. One that lies too early is left alone, so that settling the message whose
    /// lock ends next costs nothing.
    pub(super) fn rearm(&mut self, now: Timestamp, id: EntityId) {
        let Some(node) = self.get_mut(id) else {
            return;
        };
        node.queue.count_memory();
        let (armed, next) = (node.armed, node.queue.poll_timeout());
        let stays = match (armed, next) {
            (Some(armed), Some(next)) => armed <= next && now < armed,
            (Some(armed), None) => now < armed,
            (None, None) => true,
            (None, Some(_)) => false,
        };
        if stays {
            return;
        }
        node.armed = next;
        if let Some(armed) = armed {
            self.deadlines.remove(&(armed, id));
        }
        if let Some(next) = next {
            self.deadlines.insert((next, id));
        }
    }

    /// Returns queues in which something is due, `max` at most.
    pub(super) fn due(&self, now: Timestamp, max: usize) -> Vec<EntityId> {
        let due = self.deadlines.iter().take_while(|&&(at, _)| at <= now);
        due.take(max).map(|&(_, id)| id).collect()
    }

    /// Watches for the time from when on an entity has been idle for long enough to be deleted.
    pub(super) fn watch_idle(&mut self, at: Timestamp, base: EntityId) {
        self.idle_ends.insert((at, base));
    }

    /// Takes the next entity that may have been idle for long enough.
    pub(super) fn next_idle(&mut self, now: Timestamp) -> Option<EntityId> {
        let &(at, base) = self.idle_ends.first()?;
        if now < at {
            return None;
        }
        self.idle_ends.pop_first();
        Some(base)
    }

    /// Returns when something may be due.
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        let queue = self.deadlines.first().map(|&(at, _)| at);
        let idle = self.idle_ends.first().map(|&(at, _)| at);
        queue.into_iter().chain(idle).min()
    }

    /// Moves what runs by elapsed time with the clock.
    pub(super) fn follow_clock(&mut self, now: Timestamp, step: ClockStep) {
        let before = std::mem::take(&mut self.idle_ends).into_iter();
        self.idle_ends = before.map(|(at, base)| (at.moved(step), base)).collect();
        for node in self.iter_mut() {
            node.last_used = node.last_used.moved(step);
            node.queue.follow_clock(now, step);
        }
    }

    /// Checks that deadlines and queues agree.
    pub(super) fn check(&self) {
        let armed = self
            .iter()
            .filter_map(|node| Some((node.armed?, node.queue.id())));
        let armed: BTreeSet<_> = armed.collect();
        assert!(armed == self.deadlines, "deadlines are those of the queues");
    }
}
