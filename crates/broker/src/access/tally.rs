//! The first refusals of a peer are logged one by one, the others as a sum: the lines that one peer
//! causes are bounded.

use std::collections::{BTreeMap, VecDeque};

use super::PeerAddress;
use crate::limits;
use jitney_base::time::{ClockStep, Timestamp};

/// The refusals of each peer: those that are logged, and the number of the others.
#[derive(Debug, Default)]
pub struct Tally {
    counts: BTreeMap<PeerAddress, Count>,
    /// When the spans end in which refusals are counted; all are of one length.
    ends: VecDeque<(Timestamp, PeerAddress)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    logged: u32,
    unlogged: u64,
}

impl Tally {
    /// Counts a refusal; returns whether it is logged by itself.
    pub fn note(&mut self, now: Timestamp, peer: PeerAddress) -> bool {
        if !self.counts.contains_key(&peer) {
            if limits::REFUSALS_PEERS_MAX <= self.counts.len() {
                return false;
            }
            self.ends
                .push_back((now.after(limits::REFUSALS_SPAN), peer));
        }
        let count = self.counts.entry(peer).or_default();
        let is_logged = count.logged < limits::REFUSALS_LOGGED_MAX;
        if is_logged {
            count.logged += 1;
        } else {
            count.unlogged += 1;
        }
        is_logged
    }

    /// Ends a span that is over; returns its peer, and how many of its refusals were not logged.
    pub fn end(&mut self, now: Timestamp) -> Option<(PeerAddress, u64)> {
        self.ends.front().filter(|(end, _)| *end <= now)?;
        let (_, peer) = self.ends.pop_front()?;
        let count = self.counts.remove(&peer).unwrap_or_default();
        Some((peer, count.unlogged))
    }

    /// A span is as long as before, wherever the clock was set to.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        for (end, _) in &mut self.ends {
            *end = end.moved(step);
        }
    }

    /// Returns when the next span ends.
    pub(super) fn next_end(&self) -> Option<Timestamp> {
        self.ends.front().map(|&(end, _)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refusals_of_a_peer_are_logged_and_the_others_in_a_sum() {
        let mut tally = Tally::default();
        let now = Timestamp::from_millis(1_000);
        let (one, other) = (PeerAddress(1), PeerAddress(2));
        let logged = (0..1_000).filter(|_| tally.note(now, one)).count();
        assert_eq!(
            logged,
            usize::try_from(limits::REFUSALS_LOGGED_MAX).unwrap()
        );
        let later = now.after(jitney_base::time::Millis::from_millis(1));
        assert!(tally.note(later, other));
        let end = now.after(limits::REFUSALS_SPAN);
        assert_eq!(tally.next_end(), Some(end));
        assert_eq!(tally.end(later), None);
        let unlogged = 1_000 - u64::from(limits::REFUSALS_LOGGED_MAX);
        assert_eq!(tally.end(end), Some((one, unlogged)));
        assert_eq!(tally.end(end), None);
        assert!(tally.note(end, one), "a new span has begun");
        let end = later.after(limits::REFUSALS_SPAN);
        tally.follow_clock(ClockStep::from_millis(-900_000));
        let end = end.moved(ClockStep::from_millis(-900_000));
        assert_eq!(tally.end(end), Some((other, 0)));
    }

    #[test]
    fn the_peers_that_are_counted_are_bounded() {
        let mut tally = Tally::default();
        for peer in 0..limits::REFUSALS_PEERS_MAX {
            let peer = PeerAddress(u128::try_from(peer).unwrap());
            assert!(tally.note(Timestamp::EPOCH, peer));
        }
        assert!(!tally.note(Timestamp::EPOCH, PeerAddress(u128::MAX)));
        assert_eq!(tally.counts.len(), limits::REFUSALS_PEERS_MAX);
    }
}
