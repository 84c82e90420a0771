//! The locks of one queue: found by token in constant time, and ended in the order of their
//! deadlines.
//!
//! Locks are made in the order of their serial numbers, and nearly all are settled soon and in that
//! order. So the recent ones are in a ring, where no lock costs a tree node. Locks that break the
//! order (a renewed one, one that is held while thousands are made and settled) move to a tree.
//!
//! Invariants: a lock is in exactly one of the two; the ring's deadlines do not decrease; the
//! ring's front is a live lock, and at least a quarter of the ring beyond 1,024 slots is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::ConsumerId;
use jitney_base::ids::LockToken;
use jitney_base::time::{ClockStep, Timestamp};

/// One message's lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lock {
    /// The message, by its place in the queue's index.
    pub(super) ordinal: u64,
    /// When the lock ends: at this time it is over.
    pub(super) until: Timestamp,
    /// The receiver that has it.
    pub(super) holder: ConsumerId,
    /// When it was made: renewals do not change it.
    pub(super) made: Timestamp,
    /// The part of its token that cannot be guessed.
    pub(super) nonce: u64,
}

#[derive(Debug, Default)]
pub(super) struct LockTable {
    /// Serial number of the ring's front.
    base: u64,
    recent: VecDeque<Option<Lock>>,
    recent_live: usize,
    /// No lock in the ring ends later.
    newest: Timestamp,
    kept: BTreeMap<u64, Lock>,
    deadlines: BTreeSet<(Timestamp, u64)>,
}

/// Ring slots that are kept without asking how many of them are live.
const RING_SLACK: usize = 1_024;

/// The bytes of a lock outside of the ring, in the nodes of two trees.
const KEPT_BYTES: usize = 118;

impl LockTable {
    pub(super) fn insert(&mut self, lock: Lock) -> LockToken {
        let serial = self.base + u64::try_from(self.recent.len()).expect("fits 64 bits");
        let in_order = self.newest <= lock.until || self.recent_live == 0;
        if in_order {
            self.recent.push_back(Some(lock));
            self.recent_live += 1;
            self.newest = lock.until;
        } else {
            // The entity's lock duration was shortened.
            self.recent.push_back(None);
            self.keep(serial, lock);
        }
        self.trim();
        LockToken::new(serial, lock.nonce)
    }

    pub(super) fn get(&self, token: LockToken) -> Option<&Lock> {
        let serial = token.serial();
        let lock = match self.slot(serial).and_then(|at| self.recent.get(at)) {
            Some(Some(lock)) => lock,
            _ => self.kept.get(&serial)?,
        };
        (LockToken::new(serial, lock.nonce) == token).then_some(lock)
    }

    pub(super) fn remove(&mut self, token: LockToken) -> Option<Lock> {
        self.get(token)?;
        self.take(token.serial())
    }

    /// Moves a lock's end; returns whether there is such a lock.
    pub(super) fn renew(&mut self, token: LockToken, until: Timestamp) -> bool {
        let Some(mut lock) = self.remove(token) else {
            return false;
        };
        lock.until = until;
        self.keep(token.serial(), lock);
        true
    }

    /// Moves the ends of all locks with the clock.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        for lock in self.recent.iter_mut().flatten() {
            lock.until = lock.until.moved(step);
            lock.made = lock.made.moved(step);
        }
        self.newest = self.newest.moved(step);
        for lock in self.kept.values_mut() {
            lock.until = lock.until.moved(step);
            lock.made = lock.made.moved(step);
        }
        let deadlines = std::mem::take(&mut self.deadlines).into_iter();
        let moved = deadlines.map(|(until, serial)| (until.moved(step), serial));
        self.deadlines = moved.collect();
    }

    /// Returns the time at which the next lock ends.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let recent = self
            .recent
            .front()
            .copied()
            .flatten()
            .map(|lock| lock.until);
        let kept = self.deadlines.first().map(|&(until, _)| until);
        recent.into_iter().chain(kept).min()
    }

    /// Takes out a lock that is over at `now`, the earliest first.
    pub(super) fn pop_expired(&mut self, now: Timestamp) -> Option<Lock> {
        let deadline = self.next_deadline()?;
        if now < deadline {
            return None;
        }
        let serial = match self.deadlines.first() {
            Some(&(until, serial)) if until == deadline => serial,
            _ => self.base,
        };
        self.take(serial)
    }

    /// Finds the lock of a message. It looks at all locks, and is called rarely.
    pub(super) fn of(&self, ordinal: u64) -> Option<LockToken> {
        let recent = (self.base..).zip(&self.recent);
        let recent = recent.filter_map(|(serial, lock)| Some((serial, lock.as_ref()?)));
        let kept = self.kept.iter().map(|(&serial, lock)| (serial, lock));
        let mut all = recent.chain(kept);
        let (serial, lock) = all.find(|(_, lock)| lock.ordinal == ordinal)?;
        Some(LockToken::new(serial, lock.nonce))
    }

    /// Moves the ends of all locks of a receiver to `now`; returns how many there are. It looks at all locks, and is called
    /// rarely.
    pub(super) fn end_of(&mut self, holder: ConsumerId, now: Timestamp) -> usize {
        let recent = (self.base..).zip(&self.recent);
        let recent = recent.filter_map(|(serial, lock)| Some((serial, lock.as_ref()?)));
        let kept = self.kept.iter().map(|(&serial, lock)| (serial, lock));
        let own = recent.chain(kept).filter(|(_, lock)| lock.holder == holder);
        let serials: Vec<u64> = own.map(|(serial, _)| serial).collect();
        for &serial in &serials {
            if let Some(mut lock) = self.take(serial) {
                lock.until = lock.until.min(now);
                self.keep(serial, lock);
            }
        }
        serials.len()
    }

    /// Returns all locks, in the order in which they were made.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Lock> {
        let mut recent = (self.base..).zip(&self.recent);
        let mut kept = self.kept.iter().peekable();
        let mut next = recent.by_ref().find(|(_, lock)| lock.is_some());
        std::iter::from_fn(move || match (next, kept.peek()) {
            (Some((serial, _)), Some(&(&older, _))) if older < serial => {
                kept.next().map(|(_, lock)| lock)
            }
            (Some((_, lock)), _) => {
                next = recent.by_ref().find(|(_, lock)| lock.is_some());
                lock.as_ref()
            }
            (None, _) => kept.next().map(|(_, lock)| lock),
        })
    }

    /// Returns all locks.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Lock> {
        self.recent.iter().flatten().chain(self.kept.values())
    }

    pub(super) fn len(&self) -> usize {
        self.recent_live + self.kept.len()
    }

    /// Returns the bytes that it takes, about.
    pub(super) fn memory(&self) -> usize {
        self.recent.capacity() * size_of::<Option<Lock>>() + self.kept.len() * KEPT_BYTES
    }

    fn slot(&self, serial: u64) -> Option<usize> {
        usize::try_from(serial.checked_sub(self.base)?).ok()
    }

    fn take(&mut self, serial: u64) -> Option<Lock> {
        if let Some(lock) = self
            .slot(serial)
            .and_then(|at| self.recent.get_mut(at))
            .and_then(Option::take)
        {
            self.recent_live -= 1;
            self.trim();
            return Some(lock);
        }
        let lock = self.kept.remove(&serial)?;
        self.deadlines.remove(&(lock.until, serial));
        Some(lock)
    }

    fn keep(&mut self, serial: u64, lock: Lock) {
        self.kept.insert(serial, lock);
        self.deadlines.insert((lock.until, serial));
    }

    /// Restores the ring's invariants after a slot was emptied or added.
    fn trim(&mut self) {
        if self.recent.len() > RING_SLACK + 4 * self.recent_live {
            let base = self.base;
            let stragglers: Vec<_> = (base..).zip(self.recent.drain(..)).collect();
            self.base += u64::try_from(stragglers.len()).expect("fits 64 bits");
            self.recent_live = 0;
            for (serial, lock) in stragglers {
                if let Some(lock) = lock {
                    self.keep(serial, lock);
                }
            }
        }
        while let Some(None) = self.recent.front() {
            self.recent.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::consumers::NO_ONE;
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn lock(
        ordinal: u64,
        holder: ConsumerId,
        made: Timestamp,
        until: Timestamp,
        nonce: u64,
    ) -> Lock {
        Lock {
            ordinal,
            until,
            holder,
            made,
            nonce,
        }
    }

    #[test]
    fn locks_end_in_the_order_of_their_deadlines() {
        let mut locks = LockTable::default();
        let first = locks.insert(lock(1, NO_ONE, at(0), at(10), 7));
        let second = locks.insert(lock(2, NO_ONE, at(0), at(20), 8));
        assert!(locks.renew(first, at(30)));
        assert_eq!(locks.next_deadline(), Some(at(20)));
        assert!(locks.pop_expired(at(19)).is_none());
        assert_eq!(locks.pop_expired(at(20)).map(|lock| lock.ordinal), Some(2));
        assert!(locks.get(second).is_none());
        assert_eq!(locks.pop_expired(at(30)).map(|lock| lock.ordinal), Some(1));
        assert_eq!(locks.len(), 0);
        assert_eq!(locks.next_deadline(), None);
    }

    #[test]
    fn locks_last_as_long_as_before_when_their_clock_is_set() {
        for millis in [-1_000_000, 1_000_000] {
            let mut locks = LockTable::default();
            let first = locks.insert(lock(1, NO_ONE, at(0), at(10), 7));
            locks.insert(lock(2, NO_ONE, at(0), at(20), 8));
            locks.insert(lock(3, NO_ONE, at(0), Timestamp::MAX, 9));
            assert!(locks.renew(first, at(30)));
            locks.follow_clock(ClockStep::from_millis(millis));
            let ended = |locks: &mut LockTable, at: i64| {
                let lock = locks.pop_expired(Timestamp::from_millis(at + millis));
                lock.map(|lock| lock.ordinal)
            };
            assert_eq!(ended(&mut locks, 19), None);
            assert_eq!(ended(&mut locks, 20), Some(2));
            assert_eq!(ended(&mut locks, 29), None);
            assert_eq!(ended(&mut locks, 30), Some(1));
            assert_eq!(locks.next_deadline(), Some(Timestamp::MAX));
            locks.insert(lock(4, NO_ONE, at(0), at(40 + millis), 1));
            assert_eq!(ended(&mut locks, 40), Some(4));
        }
    }

    #[test]
    fn locks_of_a_receiver_are_told_in_order_and_end_together() {
        let (one, two) = (ConsumerId(1), ConsumerId(2));
        let mut locks = LockTable::default();
        let first = locks.insert(lock(7, one, at(0), at(100), 1));
        locks.insert(lock(3, two, at(1), at(101), 2));
        locks.insert(lock(5, one, at(2), at(102), 3));
        // A renewed lock is as old as before.
        assert!(locks.renew(first, at(200)));
        let told: Vec<_> = locks
            .in_order()
            .map(|lock| (lock.ordinal, lock.made))
            .collect();
        assert_eq!(told, [(7, at(0)), (3, at(1)), (5, at(2))]);
        assert_eq!(locks.end_of(one, at(50)), 2);
        assert_eq!(locks.next_deadline(), Some(at(50)));
        let ended = [(); 2].map(|()| locks.pop_expired(at(50)).map(|lock| lock.holder));
        assert_eq!(ended, [Some(one); 2]);
        assert!(locks.pop_expired(at(100)).is_none());
        assert_eq!(
            locks.pop_expired(at(101)).map(|lock| lock.holder),
            Some(two)
        );
    }

    #[test]
    fn a_token_with_another_nonce_opens_nothing() {
        let mut locks = LockTable::default();
        let token = locks.insert(lock(1, NO_ONE, at(0), at(10), 7));
        assert!(locks.get(LockToken::new(token.serial(), 8)).is_none());
        assert!(locks.remove(token).is_some());
        assert!(locks.remove(token).is_none());
    }

    #[test]
    fn a_shorter_lock_made_later_ends_first() {
        let mut locks = LockTable::default();
        locks.insert(lock(1, NO_ONE, at(0), at(100), 1));
        locks.insert(lock(2, NO_ONE, at(0), at(50), 2));
        assert_eq!(locks.pop_expired(at(50)).map(|lock| lock.ordinal), Some(2));
        assert_eq!(locks.next_deadline(), Some(at(100)));
    }

    #[test]
    fn one_lock_held_for_long_does_not_hold_the_ring() {
        let mut locks = LockTable::default();
        let held = locks.insert(lock(0, NO_ONE, at(0), at(1_000), 0));
        for ordinal in 1..10_000 {
            let token = locks.insert(lock(ordinal, NO_ONE, at(0), at(1_000), ordinal));
            assert!(locks.remove(token).is_some());
        }
        assert!(locks.recent.len() <= RING_SLACK + 4);
        assert_eq!(locks.get(held).map(|lock| lock.ordinal), Some(0));
        assert_eq!(locks.len(), 1);
    }
}
