//! The memory budget of the queues' indexes, and the store for the parts beyond it.
//!
//! A part of an index is *open*, for changes; *packed*, some bytes a message; or a *page*: packed,
//! and kept by a [`PageStore`] outside of memory. A part that is neither near a queue's ends nor in
//! use is packed when the open parts exceed their budget, and packed parts go to the store when
//! they exceed theirs.
//!
//! All memory is counted here, by its purpose, until it is dropped: a snapshot for a checkpoint
//! shares the parts of its queue, and each counts once.
//!
//! What one namespace has is counted for it besides. Where there are several, one of them has at most
//! two thirds of what the others leave, so that none of them takes the room of all.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;

use crate::limits;

/// Keeps pages outside of memory until the process ends.
pub trait PageStore: fmt::Debug + Send + Sync {
    /// Keeps some bytes for as long as the page lives; `None` if there is no room for them.
    fn put(&self, bytes: &[u8]) -> Option<Box<dyn Page>>;
}

/// Bytes that a store keeps; their space is free again when this is dropped.
pub trait Page: fmt::Debug + Send + Sync {
    /// Returns the bytes. A failed read ends the process, because an index cannot be guessed.
    fn read(&self) -> Bytes;
}

/// Budgets of memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Of open parts of indexes.
    pub open: usize,
    /// Of packed ones.
    pub packed: usize,
    /// Of all counted memory.
    pub total: usize,
    /// Of output that waits for peers, which is counted elsewhere.
    pub outgoing: usize,
}

impl Default for Budget {
    /// Packed parts stay in memory, and nothing else has a bound.
    fn default() -> Self {
        Self {
            open: limits::OPEN_INDEX_BYTES,
            packed: usize::MAX,
            total: usize::MAX,
            outgoing: usize::MAX,
        }
    }
}

/// The memory of the queues of a process, or of one of its namespaces: the amounts in use, and the budget.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    shared: Arc<Shared>,
    /// How many others there are that have as much of it as this one.
    others: usize,
    /// What the namespace has of it, if it is that of one.
    own: Option<Arc<Own>>,
}

/// The memory that one namespace has.
#[derive(Debug)]
struct Own {
    shared: Arc<Shared>,
    bytes: AtomicUsize,
    /// It had its share at the last query.
    is_used: AtomicBool,
    /// That it has its share was told.
    is_told: AtomicBool,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.shared.namespaces.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Shared {
    budget: Budget,
    store: Option<Box<dyn PageStore>>,
    open: AtomicUsize,
    packed: AtomicUsize,
    other: AtomicUsize,
    /// It was full at the last query.
    full: AtomicBool,
    /// How many namespaces have some of it.
    namespaces: AtomicUsize,
}

/// The share of one of several namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Bytes that the namespace has.
    pub used: usize,
    /// Bytes that it may have, as long as others have what they have now.
    pub most: usize,
}

/// The purpose of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Parts of indexes that are open.
    Open,
    /// Packed ones.
    Packed,
    /// Data that must stay in memory.
    Other,
}

/// An amount of memory in use: counted until this is dropped.
#[derive(Debug)]
pub struct Held {
    memory: Memory,
    purpose: Purpose,
    bytes: usize,
}

impl Memory {
    /// Takes the budget, and the store of pages.
    #[must_use]
    pub fn new(budget: Budget, store: Option<Box<dyn PageStore>>) -> Self {
        Self {
            shared: Arc::new(Shared {
                budget,
                store,
                ..Shared::default()
            }),
            others: 0,
            own: None,
        }
    }

    /// Returns the same memory for one more namespace: what it has is counted for it besides.
    #[must_use]
    pub fn of_namespace(&self) -> Self {
        self.shared.namespaces.fetch_add(1, Ordering::Relaxed);
        let own = Own {
            shared: Arc::clone(&self.shared),
            bytes: AtomicUsize::new(0),
            is_used: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
        };
        Self {
            own: Some(Arc::new(own)),
            ..self.clone()
        }
    }

    /// Returns the same memory for one of so many that have it together. All that is counted is
    /// counted for all; what one of them may have of it is an equal part.
    #[must_use]
    pub fn among(&self, count: usize) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            others: count.saturating_sub(1),
            own: self.own.clone(),
        }
    }

    /// Returns this account's budget of output that waits for peers, in bytes.
    #[must_use]
    pub fn outgoing(&self) -> usize {
        self.part(self.shared.budget.outgoing)
    }

    /// Returns all counted memory, in bytes.
    #[must_use]
    pub fn counted(&self) -> usize {
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        of(&self.shared.open) + of(&self.shared.packed) + of(&self.shared.other)
    }

    /// Returns counted memory by purpose, in bytes: open parts of indexes, packed parts, and all else.
    #[must_use]
    pub fn by_purpose(&self) -> [(&'static str, usize); 3] {
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        [
            ("index_open", of(&self.shared.open)),
            ("index_packed", of(&self.shared.packed)),
            ("other", of(&self.shared.other)),
        ]
    }

    /// Returns this account's budget of counted memory, in bytes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.part(self.shared.budget.total)
    }

    fn part(&self, bytes: usize) -> usize {
        match bytes {
            // There is no bound.
            usize::MAX => bytes,
            bytes => bytes / (1 + self.others),
        }
    }

    /// Returns whether counted memory has reached its budget. It stays full until a sixteenth is
    /// free again.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let total = self.shared.budget.total;
        let was_full = self.shared.full.load(Ordering::Relaxed);
        let bound = if was_full { self.enough() } else { total };
        let is_full = bound <= self.counted();
        self.shared.full.store(is_full, Ordering::Relaxed);
        is_full
    }

    /// Returns how many bytes may be counted when memory has been full and is not any more.
    #[must_use]
    pub fn enough(&self) -> usize {
        let total = self.shared.budget.total;
        total - total / 16
    }

    /// Returns the share of this namespace if it has all of it, until a sixteenth of that is free again. Without a budget, or
    /// without another namespace, there is none; nor where the others have everything, which is full then for all.
    #[must_use]
    pub fn used_share(&self) -> Option<Share> {
        let own = self.own.as_ref()?;
        let Share { used, most } = self.own_share()?;
        let was_used = own.is_used.load(Ordering::Relaxed);
        let bound = if was_used { most - most / 16 } else { most };
        let is_used = 0 < most && bound <= used;
        own.is_used.store(is_used, Ordering::Relaxed);
        if used < most / 2 {
            own.is_told.store(false, Ordering::Relaxed);
        }
        is_used.then_some(Share { used, most })
    }

    /// Returns what is used most, for its size: the memory of all, or the share of this namespace where others have some. Without a
    /// budget there is none.
    #[must_use]
    pub fn nearest_limit(&self) -> Option<Share> {
        let total = self.shared.budget.total;
        if total == usize::MAX {
            return None;
        }
        let all = Share {
            used: self.counted(),
            most: total,
        };
        let is_nearer = |own: &Share| {
            let scaled = |used: usize, most: usize| used as u128 * most as u128;
            scaled(all.used, own.most) < scaled(own.used, all.most)
        };
        Some(self.own_share().filter(is_nearer).unwrap_or(all))
    }

    /// Returns what this namespace uses, and its share: what the others leave, but for a part of that. Without a budget, or without
    /// another namespace, there is none.
    fn own_share(&self) -> Option<Share> {
        let own = self.own.as_ref()?;
        let total = self.shared.budget.total;
        if total == usize::MAX || self.shared.namespaces.load(Ordering::Relaxed) < 2 {
            return None;
        }
        let used = own.bytes.load(Ordering::Relaxed);
        let left = total.saturating_sub(self.counted().saturating_sub(used));
        let most = left - left / limits::NAMESPACE_SHARE_LEFT;
        Some(Share { used, most })
    }

    /// Returns whether it is still to be told that this namespace has its share: once, until it has less than half of it.
    #[must_use]
    pub fn is_to_be_told(&self) -> bool {
        let own = self.own.as_ref();
        own.is_some_and(|own| !own.is_told.swap(true, Ordering::Relaxed))
    }

    /// Returns the bytes of open parts beyond their budget.
    #[must_use]
    pub fn open_beyond(&self) -> usize {
        let open = self.shared.open.load(Ordering::Relaxed);
        open.saturating_sub(self.shared.budget.open)
    }

    /// Begins to count some bytes.
    #[must_use]
    pub fn hold(&self, purpose: Purpose, bytes: usize) -> Held {
        self.add(purpose, bytes);
        Held {
            memory: self.clone(),
            purpose,
            bytes,
        }
    }

    /// Gives bytes to the store if the packed parts exceed their budget.
    #[must_use]
    pub fn page(&self, bytes: &[u8]) -> Option<Box<dyn Page>> {
        let packed = self.shared.packed.load(Ordering::Relaxed);
        if packed.saturating_add(bytes.len()) <= self.shared.budget.packed {
            return None;
        }
        self.shared.store.as_ref()?.put(bytes)
    }

    fn add(&self, purpose: Purpose, bytes: usize) {
        self.counter(purpose).fetch_add(bytes, Ordering::Relaxed);
        if let Some(own) = &self.own {
            own.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn subtract(&self, purpose: Purpose, bytes: usize) {
        self.counter(purpose).fetch_sub(bytes, Ordering::Relaxed);
        if let Some(own) = &self.own {
            own.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn counter(&self, purpose: Purpose) -> &AtomicUsize {
        match purpose {
            Purpose::Open => &self.shared.open,
            Purpose::Packed => &self.shared.packed,
            Purpose::Other => &self.shared.other,
        }
    }
}

impl Held {
    /// Changes the amount.
    pub fn resize(&mut self, bytes: usize) {
        match bytes.cmp(&self.bytes) {
            Less => self.memory.subtract(self.purpose, self.bytes - bytes),
            Equal => {}
            Greater => self.memory.add(self.purpose, bytes - self.bytes),
        }
        self.bytes = bytes;
    }

    /// Returns the amount in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the account that it belongs to.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        self.memory.hold(self.purpose, self.bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.subtract(self.purpose, self.bytes);
    }
}

/// Pages in memory, for tests.
#[derive(Debug, Default)]
pub struct MemoryPages;

#[derive(Debug)]
struct MemoryPage(Bytes);

impl PageStore for MemoryPages {
    fn put(&self, bytes: &[u8]) -> Option<Box<dyn Page>> {
        Some(Box::new(MemoryPage(Bytes::copy_from_slice(bytes))))
    }
}

impl Page for MemoryPage {
    fn read(&self) -> Bytes {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_counts_until_it_is_dropped() {
        let memory = Memory::default();
        let mut open = memory.hold(Purpose::Open, 100);
        let copy = open.clone();
        let other = memory.hold(Purpose::Other, 7);
        assert_eq!(memory.counted(), 207);
        open.resize(10);
        drop(copy);
        assert_eq!(memory.counted(), 17);
        open.resize(30);
        drop(other);
        assert_eq!((memory.counted(), open.bytes()), (30, 30));
        drop(open);
        assert_eq!(memory.counted(), 0);
    }

    #[test]
    fn what_several_have_is_counted_for_all_and_each_may_have_a_part() {
        let budget = Budget {
            total: 160,
            outgoing: 40,
            ..Budget::default()
        };
        let memory = Memory::new(budget, None);
        let (one, other) = (memory.among(4), memory.among(4));
        assert_eq!((one.total(), one.outgoing()), (40, 10));
        let held = one.hold(Purpose::Other, 160);
        assert!(other.is_full() && memory.counted() == 160);
        drop(held);
        assert!(!other.is_full());
        assert_eq!(Memory::default().among(4).total(), usize::MAX);
    }

    #[test]
    fn what_was_full_is_full_until_there_is_some_room() {
        let budget = Budget {
            total: 160,
            ..Budget::default()
        };
        let memory = Memory::new(budget, None);
        let mut held = memory.hold(Purpose::Other, 155);
        assert!(!memory.is_full());
        held.resize(160);
        assert!(memory.is_full());
        held.resize(150);
        assert!(memory.is_full());
        held.resize(149);
        assert!(!memory.is_full());
    }

    #[test]
    fn a_namespace_leaves_some_memory_to_the_others() {
        let budget = Budget {
            total: 1_600,
            ..Budget::default()
        };
        let memory = Memory::new(budget, None);
        let one = memory.of_namespace();
        let mut held = one.hold(Purpose::Other, 1_590);
        assert_eq!(one.used_share(), None, "there is no other");
        let other = memory.of_namespace();
        let share = |used, most| Some(Share { used, most });
        assert_eq!(one.used_share(), share(1_590, 1_067));
        assert_eq!(one.nearest_limit(), share(1_590, 1_067), "its own share");
        assert_eq!(other.nearest_limit(), share(1_590, 1_600), "that of all");
        assert!(one.is_to_be_told() && !one.is_to_be_told());
        held.resize(1_066);
        assert_eq!(one.used_share(), share(1_066, 1_067));
        held.resize(1_000);
        assert_eq!(one.used_share(), None);
        held.resize(1_066);
        assert_eq!(one.used_share(), None, "less than its share");
        let parts = other.hold(Purpose::Open, 356);
        assert_eq!(other.used_share(), share(356, 356));
        assert_eq!(one.used_share(), share(1_066, 830));
        assert!(!memory.is_full() && memory.counted() == 1_422);
        assert!(!one.is_to_be_told(), "it had no less than half of it");
        held.resize(400);
        assert_eq!(one.used_share(), None);
        assert!(one.is_to_be_told());
        held.resize(1_244);
        let (_, third) = (memory.is_full(), memory.of_namespace());
        assert_eq!(third.used_share(), None, "it has nothing, and all is full");
        let copy = parts.clone();
        drop((parts, held));
        assert_eq!(memory.counted(), 356);
        drop((copy, other));
        assert_eq!(one.used_share(), None);
        assert_eq!(memory.counted(), 0);
        let empty = Share {
            used: 0,
            most: 1_600,
        };
        assert_eq!(one.nearest_limit(), Some(empty), "there is no other");
        let without_budget = Memory::default();
        assert_eq!(without_budget.nearest_limit(), None);
        let (one, _other) = (without_budget.of_namespace(), without_budget.of_namespace());
        let _held = one.hold(Purpose::Packed, usize::MAX / 2);
        assert_eq!(one.used_share(), None);
    }

    #[test]
    fn pages_are_what_is_beyond_the_budget_of_packed_bytes() {
        let (open, packed, total) = (10, 10, usize::MAX);
        let budget = Budget {
            open,
            packed,
            total,
            ..Budget::default()
        };
        let memory = Memory::new(budget, Some(Box::new(MemoryPages)));
        let held = memory.hold(Purpose::Packed, 6);
        assert!(memory.page(b"four").is_none());
        let page = memory.page(b"fives").expect("a store of memory has room");
        assert_eq!(page.read(), "fives");
        drop(held);
        assert!(memory.page(b"fives").is_none());
        assert!(
            Memory::new(budget, None)
                .page(b"more than ten bytes")
                .is_none()
        );
        let _open = memory.hold(Purpose::Open, 15);
        assert_eq!(memory.open_beyond(), 5);
    }
}
