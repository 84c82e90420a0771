//! The memory that all queues take together.

use super::Namespaces;
use crate::limits;
use jitney_base::memory::{Held, Memory, Purpose};

/// The memory of all queues, and of what they share.
#[derive(Debug)]
pub(super) struct Shares {
    pub(super) memory: Memory,
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
            next: 0,
        }
    }
}

impl Namespaces {
    /// Returns the memory that the queues and their clients share.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.shares.memory
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
