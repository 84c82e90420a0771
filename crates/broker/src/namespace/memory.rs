//! The memory that all queues take together, and what each namespace has of it.

use std::collections::BTreeMap;

use super::Namespaces;
use crate::limits;
use jitney_base::memory::{Held, Memory, Purpose};

/// The memory of all queues, and of what they share.
#[derive(Debug)]
pub(super) struct Shares {
    pub(super) memory: Memory,
    /// That of each namespace that has had an entity or a connection, by the prefix of its entities' paths.
    by_namespace: BTreeMap<String, Memory>,
    /// For bytes that several messages have.
    bodies: Held,
    /// The place of the queue whose index is packed next, if nothing happens in it.
    next: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Self::new(Memory::default())
    }
}

impl Shares {
    pub(super) fn new(memory: Memory) -> Self {
        Self {
            bodies: memory.hold(Purpose::Other, 0),
            memory,
            by_namespace: BTreeMap::new(),
            next: 0,
        }
    }

    /// Returns the memory of a namespace, by the prefix of its entities' paths.
    pub(super) fn of_namespace(&mut self, prefix: &str) -> &Memory {
        if !self.by_namespace.contains_key(prefix) {
            let memory = self.memory.of_namespace();
            self.by_namespace.insert(prefix.to_owned(), memory);
        }
        self.by_namespace.get(prefix).unwrap_or(&self.memory)
    }

    /// Returns the memory of a namespace that has had an entity or a connection.
    pub(super) fn known_namespace(&self, prefix: &str) -> Option<&Memory> {
        self.by_namespace.get(prefix)
    }

    /// Counts for a namespace no more: it is removed.
    pub(super) fn forget_namespace(&mut self, prefix: &str) {
        self.by_namespace.remove(prefix);
    }
}

impl Namespaces {
    /// Returns the memory that the queues and their clients share.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.shares.memory
    }

    /// Returns the memory of a namespace, by the prefix of its entities' paths.
    pub fn memory_of(&mut self, prefix: &str) -> &Memory {
        self.shares.of_namespace(prefix)
    }

    /// Says how much memory queues may take, before the first is there.
    pub fn set_memory(&mut self, memory: Memory) {
        debug_assert!(self.queues.places() == 0, "queues are counted elsewhere");
        self.shares = Shares::new(memory);
    }

    /// Packs what queues that nothing happens in have open, when all together have too much open;
    /// to be called now and then: what there is to do is done bit by bit.
    pub fn pack_indexes(&mut self) {
        let shares = &mut self.shares;
        shares.bodies.resize(self.bodies.memory());
        for _ in 0..self.queues.places().min(limits::RELIEF_LOOKS) {
            if shares.memory.open_beyond() == 0 {
                return;
            }
            shares.next = (shares.next + 1) % self.queues.places();
            if let Some(node) = self.queues.place_mut(shares.next) {
                node.queue.pack(limits::RELIEF_CHUNKS);
            }
        }
    }
}
