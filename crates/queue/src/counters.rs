//! What has happened in a queue since the process started.

use jitney_base::histogram::Histogram;

/// Why a message was dead-lettered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterCause {
    /// A receiver settled it so, for a reason of its own.
    Receiver,
    /// Its life ended.
    Expired,
    /// It was delivered as often as it may be.
    DeliveryCount,
    /// The queue has message sessions, and the message belongs to none.
    NoSession,
    /// A rule could not be evaluated.
    Filter,
    /// It could not be forwarded.
    Forwarding,
    /// Its bytes in the log are damaged.
    Damaged,
    /// An operator did it.
    Operator,
}

impl DeadLetterCause {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Receiver,
        Self::Expired,
        Self::DeliveryCount,
        Self::NoSession,
        Self::Filter,
        Self::Forwarding,
        Self::Damaged,
        Self::Operator,
    ];

    /// Returns its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Receiver => "receiver",
            Self::Expired => "expired",
            Self::DeliveryCount => "max_delivery_count",
            Self::NoSession => "no_session",
            Self::Filter => "filter_error",
            Self::Forwarding => "forwarding",
            Self::Damaged => "damaged",
            Self::Operator => "operator",
        }
    }
}

/// Counts of messages and of what was done with them, and how long that took. They begin with the
/// process: no record has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Messages that came in: sent to the queue, forwarded to it, or dead-lettered into it.
    pub incoming: u64,
    /// Messages that were handed to receivers, each time.
    pub delivered: u64,
    /// Messages that were completed, or received and deleted.
    pub completed: u64,
    /// Deliveries that were abandoned.
    pub abandoned: u64,
    /// Messages that were deferred.
    pub deferred: u64,
    /// Messages that were sent for a later time.
    pub scheduled: u64,
    /// Scheduled messages that were cancelled.
    pub cancelled: u64,
    /// Messages that were dropped as duplicates.
    pub duplicates: u64,
    /// Locks of messages that ended before the receiver settled the message.
    pub locks_expired: u64,
    /// Messages whose life ended, dead-lettered or not.
    pub expired: u64,
    /// Messages that were forwarded, and copies for subscriptions.
    pub forwarded: u64,
    /// Messages of a topic that no subscription took.
    pub unmatched: u64,
    /// Messages that were dead-lettered, by [`DeadLetterCause`].
    pub dead_lettered: [u64; DeadLetterCause::ALL.len()],
    /// From a message's arrival to its delivery, each time.
    pub delivery_delay: Histogram,
    /// From a message's arrival to its completion.
    pub time_in_queue: Histogram,
}

impl Counters {
    /// Counts a dead letter.
    pub(super) fn dead_letter(&mut self, cause: DeadLetterCause) {
        if let Some(count) = self.dead_lettered.get_mut(cause as usize) {
            *count += 1;
        }
    }

    /// Adds what another queue has counted.
    pub fn add(&mut self, other: &Self) {
        self.incoming += other.incoming;
        self.delivered += other.delivered;
        self.completed += other.completed;
        self.abandoned += other.abandoned;
        self.deferred += other.deferred;
        self.scheduled += other.scheduled;
        self.cancelled += other.cancelled;
        self.duplicates += other.duplicates;
        self.locks_expired += other.locks_expired;
        self.expired += other.expired;
        self.forwarded += other.forwarded;
        self.unmatched += other.unmatched;
        for (count, more) in self.dead_lettered.iter_mut().zip(other.dead_lettered) {
            *count += more;
        }
        self.delivery_delay.add(&other.delivery_delay);
        self.time_in_queue.add(&other.time_in_queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_the_place_of_its_number() {
        for (place, cause) in DeadLetterCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, place, "{}", cause.name());
        }
        assert_eq!(
            DeadLetterCause::Operator as usize + 1,
            DeadLetterCause::ALL.len()
        );
    }

    #[test]
    fn causes_are_numbered_in_their_order() {
        for (at, cause) in DeadLetterCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, at);
        }
    }
}
