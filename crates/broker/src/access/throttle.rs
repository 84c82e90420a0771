//! The limit of failed authentications. They are counted by the peer's address and the name that it
//! uses, and once for all shards. The count leaks. While it is full, a bad attempt is not told that it is bad, and is not counted; a good
//! one is accepted, so that a client that guesses keys locks out no other of its address.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{PeerAddress, one_way};
use crate::limits;
use jitney_base::time::{ClockStep, Millis, Timestamp};

/// The failed attempts of all peers. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct FailedAttempts {
    shared: Arc<Mutex<Throttle>>,
    /// How far the clock of this holder was set since the holders began to share, milliseconds: levels
    /// leak by elapsed time.
    clock_steps: i64,
}

/// How many attempts of each peer failed lately. Times are elapsed ones.
#[derive(Debug)]
struct Throttle {
    /// Attempts that failed.
    failures: Levels,
    /// Attempts that a shard refused before another one was asked: they are failures only when all shards
    /// have refused, and until then a peer could make others beside them.
    refusals: Levels,
}

/// A bucket that leaks for each peer and name.
#[derive(Debug)]
struct Levels {
    /// The time that one attempt takes to leak.
    leak: Millis,
    buckets: BTreeMap<BucketKey, Bucket>,
}

/// Whose bucket it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BucketKey {
    peer: PeerAddress,
    /// Names come from unauthenticated peers, and may be long: they are kept as a hash.
    name: u64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Its level, in units of the time that one attempt takes to leak.
    filled: Millis,
    since: Timestamp,
}

impl BucketKey {
    fn new(peer: PeerAddress, name: &str) -> Self {
        Self {
            peer,
            name: one_way(name.as_bytes()),
        }
    }
}

impl Bucket {
    fn filled(self, now: Timestamp) -> Millis {
        let leaked = now.since(self.since).as_millis();
        Millis::from_millis((self.filled.as_millis() - leaked).max(0))
    }
}

impl FailedAttempts {
    /// Returns how long a peer must wait until a bad attempt is answered as one, if it must.
    #[must_use]
    pub fn wait(&self, now: Timestamp, peer: PeerAddress, name: &str) -> Option<Millis> {
        self.throttle().wait(self.elapsed(now), peer, name)
    }

    /// Counts an attempt that failed.
    pub fn failed(&self, now: Timestamp, peer: PeerAddress, name: &str) {
        self.throttle().failed(self.elapsed(now), peer, name);
    }

    /// Counts an attempt that one shard refused; others are asked.
    pub(super) fn refused_by_one(&self, now: Timestamp, peer: PeerAddress, name: &str) {
        self.throttle()
            .refused_by_one(self.elapsed(now), peer, name);
    }

    /// Keeps the levels when the holder's clock is set.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        self.clock_steps = self.clock_steps.saturating_add(step.as_millis());
    }

    fn elapsed(&self, now: Timestamp) -> Timestamp {
        now.moved(ClockStep::from_millis(self.clock_steps.saturating_neg()))
    }

    fn throttle(&self) -> MutexGuard<'_, Throttle> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            failures: Levels::new(limits::AUTHENTICATION_FAILURE_LEAK),
            refusals: Levels::new(limits::AUTHENTICATION_REFUSAL_LEAK),
        }
    }
}

impl Throttle {
    fn wait(&self, now: Timestamp, peer: PeerAddress, name: &str) -> Option<Millis> {
        let key = BucketKey::new(peer, name);
        let failures = self.failures.wait(now, key);
        failures.max(self.refusals.wait(now, key))
    }

    fn failed(&mut self, now: Timestamp, peer: PeerAddress, name: &str) {
        self.failures.add(now, BucketKey::new(peer, name));
    }

    fn refused_by_one(&mut self, now: Timestamp, peer: PeerAddress, name: &str) {
        self.refusals.add(now, BucketKey::new(peer, name));
    }
}

impl Levels {
    const fn new(leak: Millis) -> Self {
        Self {
            leak,
            buckets: BTreeMap::new(),
        }
    }

    fn full(&self) -> i64 {
        limits::AUTHENTICATION_FAILURES_MAX * self.leak.as_millis()
    }

    fn wait(&self, now: Timestamp, key: BucketKey) -> Option<Millis> {
        let filled = self.buckets.get(&key)?.filled(now).as_millis();
        let over = filled - self.full() + self.leak.as_millis();
        (0 < over).then(|| Millis::from_millis(over))
    }

    fn add(&mut self, now: Timestamp, key: BucketKey) {
        let before = self.buckets.remove(&key);
        if limits::AUTHENTICATION_PEERS_MAX <= self.buckets.len() {
            self.buckets
                .retain(|_, bucket| Millis::default() < bucket.filled(now));
        }
        if limits::AUTHENTICATION_PEERS_MAX <= self.buckets.len() {
            // One is forgotten, so that memory stays bounded.
            self.buckets.pop_first();
        }
        let before = before.map(|bucket| bucket.filled(now)).unwrap_or_default();
        let filled = before.as_millis() + self.leak.as_millis();
        let bucket = Bucket {
            filled: Millis::from_millis(filled.min(self.full())),
            since: now,
        };
        self.buckets.insert(key, bucket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAK: Millis = limits::AUTHENTICATION_FAILURE_LEAK;

    #[test]
    fn a_peer_that_fails_too_often_waits_and_others_do_not() {
        let throttle = FailedAttempts::default();
        let (guesser, other) = (PeerAddress(1), PeerAddress(2));
        let mut now = Timestamp::from_millis(1_000_000);
        for _ in 0..limits::AUTHENTICATION_FAILURES_MAX {
            assert_eq!(throttle.wait(now, guesser, "root"), None);
            throttle.failed(now, guesser, "root");
        }
        assert_eq!(throttle.wait(now, guesser, "root"), Some(LEAK));
        assert_eq!(throttle.wait(now, other, "root"), None);
        assert_eq!(throttle.wait(now, guesser, "app"), None);
        now = now.after(LEAK);
        assert_eq!(throttle.wait(now, guesser, "root"), None);
        throttle.failed(now, guesser, "root");
        assert_eq!(throttle.wait(now, guesser, "root"), Some(LEAK));
    }

    #[test]
    fn a_bucket_leaks_as_before_when_the_clock_is_set() {
        let (mut throttle, peer) = (FailedAttempts::default(), PeerAddress(1));
        let mut now = Timestamp::from_millis(1_000_000);
        for _ in 0..limits::AUTHENTICATION_FAILURES_MAX {
            throttle.failed(now, peer, "root");
        }
        for millis in [-900_000, 900_000] {
            let step = ClockStep::from_millis(millis);
            throttle.follow_clock(step);
            now = now.moved(step);
            assert_eq!(throttle.wait(now, peer, "root"), Some(LEAK));
        }
    }

    #[test]
    fn failures_are_counted_together_by_all_holders_also_when_the_clock_is_set() {
        let mut holders = [FailedAttempts::default(), FailedAttempts::default()];
        holders[1] = holders[0].clone();
        let (now, peer) = (Timestamp::from_millis(1_000_000), PeerAddress(1));
        for attempt in 0..limits::AUTHENTICATION_FAILURES_MAX {
            let holder = usize::try_from(attempt % 2).unwrap();
            assert_eq!(holders[holder].wait(now, peer, "root"), None);
            holders[holder].failed(now, peer, "root");
        }
        let step = ClockStep::from_millis(-900_000);
        for holder in &mut holders {
            assert_eq!(holder.wait(now, peer, "root"), Some(LEAK));
            holder.follow_clock(step);
        }
        for holder in &holders {
            assert_eq!(holder.wait(now.moved(step), peer, "root"), Some(LEAK));
        }
    }

    #[test]
    fn a_peer_cannot_try_more_keys_while_shards_are_asked_about_others() {
        let attempts = FailedAttempts::default();
        let (now, peer) = (Timestamp::from_millis(1_000_000), PeerAddress(1));
        for _ in 0..limits::AUTHENTICATION_FAILURES_MAX {
            assert_eq!(attempts.wait(now, peer, "root"), None);
            attempts.refused_by_one(now, peer, "root");
        }
        let leak = limits::AUTHENTICATION_REFUSAL_LEAK;
        assert_eq!(attempts.wait(now, peer, "root"), Some(leak));
        assert_eq!(attempts.wait(now, peer, "app"), None);
        assert_eq!(attempts.wait(now.after(leak), peer, "root"), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut throttle = Throttle::default();
        for peer in 0..limits::AUTHENTICATION_PEERS_MAX + 10 {
            throttle.failed(
                Timestamp::EPOCH,
                PeerAddress(u128::try_from(peer).unwrap()),
                "root",
            );
        }
        assert_eq!(
            throttle.failures.buckets.len(),
            limits::AUTHENTICATION_PEERS_MAX
        );
    }
}
