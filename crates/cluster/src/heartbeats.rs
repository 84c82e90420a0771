//! Which servers are silent, by their heartbeats as one server sees them, and which rows of servers a store need not keep.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits;

/// The heartbeats of other servers in a store, as this one has seen them, by the incarnations of these servers.
#[derive(Debug)]
pub struct Heartbeats<K> {
    seen: BTreeMap<K, Heartbeat>,
    /// When they were looked at last.
    looked: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Heartbeat {
    number: i64,
    /// When it was seen first.
    since: Duration,
    /// For how long it was seen unchanged.
    silence: Duration,
}

impl<K> Default for Heartbeats<K> {
    fn default() -> Self {
        Self {
            seen: BTreeMap::new(),
            looked: None,
        }
    }
}

impl<K: Ord + Clone> Heartbeats<K> {
    /// Returns since when the last heartbeat of an incarnation is seen.
    #[must_use]
    pub fn since(&self, incarnation: &K) -> Option<Duration> {
        self.seen.get(incarnation).map(|beat| beat.since)
    }

    /// Takes the heartbeats of all other servers that are alive; returns the incarnations whose heartbeats were seen unchanged for
    /// [`limits::HEARTBEAT_SILENCE_MAX`].
    ///
    /// Time without looks does not count, but for two intervals of heartbeats: while the store was away, no server could send any, and after it this one may be
    /// the first.
    pub fn silent(&mut self, now: Duration, alive: impl IntoIterator<Item = (K, i64)>) -> Vec<K> {
        let span = self.looked.replace(now);
        let span = span.map_or(Duration::ZERO, |looked| now.saturating_sub(looked));
        let span = span.min(2 * limits::HEARTBEAT.as_duration());
        let mut before = std::mem::take(&mut self.seen);
        let mut silent = Vec::new();
        for (incarnation, number) in alive {
            let known = before.remove(&incarnation);
            let known = known.filter(|known| known.number == number);
            let mut beat = known.unwrap_or(Heartbeat {
                number,
                since: now,
                silence: Duration::ZERO,
            });
            if known.is_some() {
                beat.silence += span;
            }
            if limits::HEARTBEAT_SILENCE_MAX.as_duration() <= beat.silence {
                silent.push(incarnation.clone());
            }
            self.seen.insert(incarnation, beat);
        }
        silent
    }
}

/// Servers that have left, and those that were declared dead, as this server has seen them, by their incarnations.
#[derive(Debug, Default)]
pub struct DepartedServers {
    /// When each was seen first.
    since: BTreeMap<String, Duration>,
}

impl DepartedServers {
    /// Takes all servers that are not alive, and whether each has left in order; returns the incarnations that the store need not keep
    /// any more.
    pub fn forgotten<'a>(
        &mut self,
        now: Duration,
        gone: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Vec<String> {
        let mut before = std::mem::take(&mut self.since);
        let mut forgotten = Vec::new();
        for (incarnation, has_left) in gone {
            let mut since = before.remove(incarnation).unwrap_or(now);
            let kept = if has_left {
                limits::LEFT_SERVER_KEPT
            } else {
                limits::DEAD_SERVER_KEPT
            };
            if kept.as_duration() <= now.saturating_sub(since) {
                forgotten.push(incarnation.to_owned());
                // One that stays, because a namespace names it, is not asked for at each look.
                since = now;
            }
            self.since.insert(incarnation.to_owned(), since);
        }
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_that_does_not_change_is_silence() {
        let mut beats = Heartbeats::default();
        let began = Duration::from_secs(1_000_000);
        let mut at = |millis, alive: &[(&'static str, i64)]| {
            let now = began + Duration::from_millis(millis);
            beats.silent(now, alive.iter().copied())
        };
        for half in 0..6 {
            let silent = at(500 * half, &[("x", 1), ("y", 1 + i64::from(half == 5))]);
            assert!(silent.is_empty(), "{half}");
        }
        assert_eq!(at(3_000, &[("x", 1), ("y", 2)]), ["x"]);
        assert!(at(3_500, &[("y", 2)]).is_empty());
        // It was away, and is counted anew.
        assert!(at(4_000, &[("x", 1), ("y", 2)]).is_empty());
        // The store was away, and no server could beat: 1.5 s were seen until then, and 1 s counts.
        assert!(at(60_000, &[("x", 1), ("y", 2)]).is_empty());
        assert_eq!(at(60_500, &[("x", 2), ("y", 2)]), ["y"]);
    }

    #[test]
    fn a_server_that_is_gone_is_forgotten_after_a_time() {
        let begun = Duration::from_secs(1_000_000);
        let mut gone = DepartedServers::default();
        let seen = [("left", true), ("dead", false)];
        let after = |seconds| begun + Duration::from_secs(seconds);
        assert!(gone.forgotten(begun, seen).is_empty());
        assert!(gone.forgotten(after(59), seen).is_empty());
        assert_eq!(gone.forgotten(after(60), seen), ["left"]);
        // It is still there: it is tried again later.
        assert!(gone.forgotten(after(61), seen).is_empty());
        assert_eq!(gone.forgotten(after(120), seen), ["left"]);
        assert_eq!(gone.forgotten(after(3_600), [("dead", false)]), ["dead"]);
        // One that has come back and left again is another incarnation; the same name is no reason.
        assert!(
            gone.forgotten(after(3_601), [("left again", true)])
                .is_empty()
        );
        assert!(gone.forgotten(after(3_602), [("left", true)]).is_empty());
    }
}
