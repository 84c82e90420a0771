//! Health of an owner and its disk, which is read without a request.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::time::{Duration, Instant};

use super::quota::Quota;
use crate::limits;
use jitney_base::time::Millis;
use jitney_shard::Shortage;

/// Health of the owner and the disk, readable without a request.
#[derive(Debug)]
pub(crate) struct Vitals {
    began: Instant,
    /// Messages are admitted.
    has_room: AtomicBool,
    /// Why they are not.
    shortage: Mutex<Option<Shortage>>,
    /// When the owner's current turn began; 0 between turns.
    turn: AtomicU64,
    /// When the oldest pending group was given to the disk; 0 if there is none.
    sync: AtomicU64,
    /// AMQP sessions of the connections in the shard.
    sessions: AtomicUsize,
    /// Since when the namespace's store is away; 0 while it is not.
    suspended: AtomicU64,
    /// Of the namespace, where a shard has one.
    quota: Quota,
}

impl Vitals {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            has_room: AtomicBool::new(true),
            shortage: Mutex::new(None),
            turn: AtomicU64::new(0),
            sync: AtomicU64::new(0),
            sessions: AtomicUsize::new(0),
            suspended: AtomicU64::new(0),
            quota: Quota::new(),
        }
    }

    /// Returns what clients may send.
    pub(crate) const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Records that the namespace's store is away: clients get no answers.
    pub(crate) fn suspend(&self) {
        let since = self.stamp(Instant::now());
        self.suspended.store(since, Ordering::Relaxed);
    }

    /// Records that the namespace's store is back.
    pub(crate) fn resume(&self) {
        self.suspended.store(0, Ordering::Relaxed);
    }

    /// Returns for how long the namespace's store has been away, if it is.
    pub(crate) fn suspended_for(&self) -> Option<Duration> {
        let since = self.suspended.load(Ordering::Relaxed);
        let span = self.stamp(Instant::now()).saturating_sub(since);
        (since != 0).then(|| Duration::from_millis(span))
    }

    /// Returns how many AMQP sessions the connections in the shard have.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// A connection in the shard has `now` sessions, and had `before`.
    pub(crate) fn change_sessions(&self, before: usize, now: usize) {
        self.sessions.fetch_add(now, Ordering::Relaxed);
        self.sessions.fetch_sub(before, Ordering::Relaxed);
    }

    /// Returns whether a send to some entity would be accepted now, or after a bounded wait.
    pub(super) fn are_good(&self) -> bool {
        let now = Instant::now();
        let lasts = |since| self.lasts(since, limits::HEALTH_DELAY_MAX, now);
        self.has_room.load(Ordering::Relaxed) && !lasts(&self.turn) && !lasts(&self.sync)
    }

    /// Returns whether the owner's turn lasts for too long, so that its server is not to say that it is alive.
    pub(crate) fn hangs(&self, now: Instant) -> bool {
        self.lasts(&self.turn, limits::OWNER_TURN_MAX, now)
    }

    /// Returns whether something that began then, if it did, lasts longer than it may.
    fn lasts(&self, since: &AtomicU64, max: Millis, now: Instant) -> bool {
        let max = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
        let since = since.load(Ordering::Relaxed);
        since != 0 && max < self.stamp(now).saturating_sub(since)
    }

    /// Records why no messages are accepted; none if they are.
    pub(super) fn set_shortage(&self, shortage: Option<Shortage>) {
        let had_room = self.has_room.swap(shortage.is_none(), Ordering::Relaxed);
        if !had_room || shortage.is_some() {
            *self.shortage.lock().unwrap_or_else(PoisonError::into_inner) = shortage;
        }
    }

    /// Returns why no messages are accepted; none if they are.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        *self.shortage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner begins a turn.
    pub(super) fn turns(&self) {
        self.turn
            .store(self.stamp(Instant::now()), Ordering::Relaxed);
    }

    /// The owner has ended a turn; a group waits for the disk since then.
    pub(crate) fn rests(&self, syncs_since: Option<Instant>) {
        let since = syncs_since.map_or(0, |since| self.stamp(since));
        self.sync.store(since, Ordering::Relaxed);
        self.turn.store(0, Ordering::Relaxed);
    }

    /// Milliseconds since the start, and never 0.
    fn stamp(&self, at: Instant) -> u64 {
        let millis = at.saturating_duration_since(self.began).as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_hangs_whose_turn_does_not_end() {
        let vitals = Vitals::new();
        let (begun, long) = (Instant::now(), limits::OWNER_TURN_MAX.as_duration());
        let later = begun + 2 * long;
        assert!(!vitals.hangs(later), "it waits for something to do");
        vitals.turns();
        assert!(!vitals.hangs(begun + long / 2));
        assert!(vitals.hangs(later));
        vitals.rests(None);
        assert!(!vitals.hangs(later));
        // A group that waits for the store is no turn: the namespace is suspended, and its server is alive.
        vitals.rests(Some(begun));
        assert!(!vitals.hangs(later));
    }
}
