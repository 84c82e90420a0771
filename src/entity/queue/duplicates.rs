//! What was accepted within the window, so that it is not accepted again.

use std::collections::{BTreeSet, VecDeque};

use crate::limits;
use crate::time::{Millis, Timestamp};

/// The keys of messages that were accepted, from the oldest to the newest.
///
/// Memory: some 50 bytes a key, [`limits::DUPLICATE_KEYS_MAX`] keys at most; beyond, the oldest are
/// forgotten before their window ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Duplicates {
    keys: BTreeSet<u128>,
    order: VecDeque<(Timestamp, u128)>,
}

impl Duplicates {
    /// Remembers a key; returns `false` if it is known already.
    pub(super) fn insert(&mut self, now: Timestamp, window: Millis, key: u128) -> bool {
        self.forget(now, window);
        if !self.keys.insert(key) {
            return false;
        }
        self.order.push_back((now, key));
        if limits::DUPLICATE_KEYS_MAX < self.order.len()
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        true
    }

    /// Returns the keys with their times, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Timestamp, u128)> {
        self.order.iter().copied()
    }

    /// Returns how many keys are known.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the bytes that it takes, about: a key stands in a tree and in a ring.
    pub(super) fn memory(&self) -> usize {
        self.keys.len() * KEY_BYTES + self.order.capacity() * size_of::<(Timestamp, u128)>()
    }

    fn forget(&mut self, now: Timestamp, window: Millis) {
        while let Some(&(at, key)) = self.order.front() {
            if now < at.after(window) {
                return;
            }
            self.order.pop_front();
            self.keys.remove(&key);
        }
    }
}

/// What a key takes in a tree's node that is half full.
const KEY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

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
}
