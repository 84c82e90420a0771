//! The limit of failed authentications. They are counted by the peer's address and the name that it
//! uses, and once for all shards. The count leaks: a peer that guesses a key delays others at its
//! address that use the same name, but not for long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{PeerAddress, one_way};
use crate::limits;
use crate::time::{ClockStep, Millis, Timestamp};

/// The failed attempts of all peers. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct FailedAttempts {
    shared: Arc<Mutex<Throttle>>,
    /// How far the clock of this holder was set since the holders began to share, milliseconds: levels
    /// leak by elapsed time.
    clock_steps: i64,
}

/// How many attempts of each peer failed lately: a bucket that leaks. Times are elapsed ones.
#[derive(Debug, Default)]
struct Throttle {
    /// Names come from unauthenticated peers, and may be long: they are kept as a hash.
    failures: BTreeMap<(PeerAddress, u64), Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Its level, in units of the time that one failure takes to leak.
    filled: Millis,
    since: Timestamp,
}

impl Bucket {
    fn filled(self, now: Timestamp) -> Millis {
        let leaked = now.since(self.since).as_millis();
        Millis::from_millis((self.filled.as_millis() - leaked).max(0))
    }
}

const FULL: Millis = Millis::from_millis(
    limits::AUTHENTICATION_FAILURES_MAX * limits::AUTHENTICATION_FAILURE_LEAK.as_millis(),
);

impl FailedAttempts {
    /// Returns how long a peer must wait before its next attempt is checked, if it must.
    pub(super) fn wait(&self, now: Timestamp, peer: PeerAddress, name: &str) -> Option<Millis> {
        self.throttle().wait(self.elapsed(now), peer, name)
    }

    /// Counts an attempt that failed.
    pub(super) fn failed(&self, now: Timestamp, peer: PeerAddress, name: &str) {
        self.throttle().failed(self.elapsed(now), peer, name);
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

impl Throttle {
    fn wait(&self, now: Timestamp, peer: PeerAddress, name: &str) -> Option<Millis> {
        let filled = self
            .failures
            .get(&(peer, one_way(name.as_bytes())))?
            .filled(now);
        let over = filled.as_millis() - FULL.as_millis() + LEAK.as_millis();
        (0 < over).then(|| Millis::from_millis(over))
    }

    fn failed(&mut self, now: Timestamp, peer: PeerAddress, name: &str) {
        let key = (peer, one_way(name.as_bytes()));
        if limits::AUTHENTICATION_PEERS_MAX <= self.failures.len() {
            self.failures
                .retain(|_, bucket| Millis::default() < bucket.filled(now));
        }
        if limits::AUTHENTICATION_PEERS_MAX <= self.failures.len() {
            // One is forgotten, so that memory stays bounded.
            self.failures.pop_first();
        }
        let before = self.failures.get(&key).map(|bucket| bucket.filled(now));
        let filled = before.unwrap_or_default().as_millis() + LEAK.as_millis();
        let bucket = Bucket {
            filled: Millis::from_millis(filled.min(FULL.as_millis())),
            since: now,
        };
        self.failures.insert(key, bucket);
    }
}

const LEAK: Millis = limits::AUTHENTICATION_FAILURE_LEAK;

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_remembered_is_bounded() {
        let mut throttle = Throttle::default();
        for peer in 0..limits::AUTHENTICATION_PEERS_MAX + 10 {
            throttle.failed(
                Timestamp::EPOCH,
                PeerAddress(u128::try_from(peer).unwrap()),
                "root",
            );
        }
        assert_eq!(throttle.failures.len(), limits::AUTHENTICATION_PEERS_MAX);
    }
}
