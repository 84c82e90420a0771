//! Duplicate detection: keys of the messages accepted within the window.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::limits;
use jitney_base::time::{Millis, Timestamp};

/// The keys of messages that were accepted, from the oldest to the newest.
///
/// Memory: some 50 bytes a key, [`limits::DUPLICATE_KEYS_MAX`] keys at most; beyond, the oldest are
/// forgotten before their window ends.
#[derive(Debug, Default)]
pub(super) struct Duplicates {
    keys: BTreeSet<u128>,
    order: Order,
}

/// Keys and their times, the oldest first, in lists that are shared copy-on-write: a snapshot of a
/// million costs a thousand pointers.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    lists: VecDeque<Arc<Vec<(Timestamp, u128)>>>,
    /// How many at the front of the first list are removed.
    gone: usize,
    len: usize,
}

/// Keys in one list.
const LIST_LENGTH: usize = 1_024;

impl Duplicates {
    /// Remembers a key; returns `false` if it is known already.
    pub(super) fn insert(&mut self, now: Timestamp, window: Millis, key: u128) -> bool {
        self.forget(now, window);
        if !self.keys.insert(key) {
            return false;
        }
        self.order.push(now, key);
        if limits::DUPLICATE_KEYS_MAX < self.order.len {
            self.pop();
        }
        true
    }

    /// Shortens remembered times to one window from now: the clock was ahead when they were
    /// recorded.
    pub(super) fn follow_clock(&mut self, now: Timestamp) {
        for list in &mut self.order.lists {
            if list.iter().any(|&(at, _)| now < at) {
                for (at, _) in Arc::make_mut(list) {
                    *at = (*at).min(now);
                }
            }
        }
    }

    /// Returns the keys with their times as they are now.
    pub(super) fn snapshot(&self) -> Order {
        self.order.clone()
    }

    /// Returns how many keys are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.order.len
    }

    /// Returns the bytes that it takes, about: a key is in a tree and in a list.
    pub(super) fn memory(&self) -> usize {
        self.keys.len() * (KEY_BYTES + size_of::<(Timestamp, u128)>())
    }

    fn forget(&mut self, now: Timestamp, window: Millis) {
        while let Some((at, _)) = self.order.first() {
            if now < at.after(window) {
                return;
            }
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some((_, key)) = self.order.first() {
            self.order.pop();
            self.keys.remove(&key);
        }
    }
}

impl Order {
    /// Returns the keys with their times, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Timestamp, u128)> {
        let all = self.lists.iter().flat_map(|list| list.iter().copied());
        all.skip(self.gone)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn first(&self) -> Option<(Timestamp, u128)> {
        self.lists.front()?.get(self.gone).copied()
    }

    fn push(&mut self, at: Timestamp, key: u128) {
        if self
            .lists
            .back()
            .is_none_or(|list| LIST_LENGTH <= list.len())
        {
            self.lists.push_back(Arc::default());
        }
        if let Some(list) = self.lists.back_mut() {
            Arc::make_mut(list).push((at, key));
            self.len += 1;
        }
    }

    /// Removes the oldest key; there is one.
    fn pop(&mut self) {
        self.gone += 1;
        self.len -= 1;
        if self
            .lists
            .front()
            .is_some_and(|list| list.len() <= self.gone)
        {
            self.lists.pop_front();
            self.gone = 0;
        }
    }
}

/// The bytes of a key in a tree's node that is half full.
const KEY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_clock_that_was_ahead_is_known_for_a_window_and_no_longer() {
        let at = Timestamp::from_millis;
        let window = Millis::from_millis(10);
        let mut known = Duplicates::default();
        assert!(known.insert(at(1_000_000), window, 1));
        assert!(known.insert(at(1_000_005), window, 2));
        known.follow_clock(at(100));
        assert!(!known.insert(at(104), window, 1));
        assert!(!known.insert(at(109), window, 2));
        assert!(known.insert(at(110), window, 2));
        assert_eq!(known.len(), 1);
    }

    #[test]
    fn so_many_keys_are_known_and_the_oldest_are_forgotten() {
        let (mut known, window) = (Duplicates::default(), Millis::from_millis(10));
        let now = Timestamp::from_millis(0);
        let count = limits::DUPLICATE_KEYS_MAX;
        for key in 0..=count {
            assert!(known.insert(now, window, u128::try_from(key).unwrap()));
        }
        assert_eq!(known.len(), count);
        assert!(!known.insert(now, window, 1), "it is among the newest");
        assert!(known.insert(now, window, 0), "it was the oldest");
    }

    #[test]
    fn a_key_is_known_until_its_window_ends() {
        let (mut known, window) = (Duplicates::default(), Millis::from_millis(10));
        let at = Timestamp::from_millis;
        assert!(known.insert(at(0), window, 7));
        assert!(!known.insert(at(9), window, 7));
        assert!(
            known.insert(at(10), window, 7),
            "the window counts from the first"
        );
        assert_eq!(known.len(), 1);
    }

    #[test]
    fn a_snapshot_has_what_was_known_then_oldest_first() {
        let (mut known, window) = (Duplicates::default(), Millis::from_millis(5_000));
        for key in 0..3_000_u128 {
            let at = Timestamp::from_millis(i64::try_from(key).unwrap());
            assert!(known.insert(at, window, key));
        }
        let snapshot = known.snapshot();
        assert!(known.insert(Timestamp::from_millis(7_000), window, 9_999));
        let keys: Vec<u128> = snapshot.iter().map(|(_, key)| key).collect();
        assert!(keys.into_iter().eq(0..3_000));
        let keys: Vec<u128> = known.snapshot().iter().map(|(_, key)| key).collect();
        assert!(keys.into_iter().eq((2_001..3_000).chain([9_999])));
        assert_eq!(known.len(), 1_000);
    }
}
