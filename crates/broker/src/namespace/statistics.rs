//! The statistics of entities: how many messages they have, and what was done with them.

use std::collections::BTreeMap;

use super::Namespaces;
use super::directory::Entity;
use jitney_base::address::{self, SubQueue};
use jitney_base::ids::SequenceNumber;
use jitney_base::time::Timestamp;
use jitney_queue::{Counters, EntityKind, Queue, Status};

/// The entities of a shard's namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Entities with statistics of their own.
    pub entities: Vec<EntityStatistics>,
    /// The sums of all other entities' queues of a kind, by namespace.
    pub others: BTreeMap<(String, SubQueue), QueueStatistics>,
    /// What entities had counted that were deleted since, by namespace.
    pub deleted: BTreeMap<String, MessageCounts>,
}

/// What has happened to messages of entities, as [`QueueStatistics`] has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Messages that came in to be received there.
    pub arrived: u64,
    /// Messages that came in to a topic.
    pub published: u64,
    /// Messages that were completed, or received and deleted.
    pub completed: u64,
    /// Messages that were dead-lettered.
    pub dead_lettered: u64,
}

impl MessageCounts {
    /// Adds those of an entity's queue.
    pub fn add(&mut self, queue: &QueueStatistics) {
        self.arrived += queue.arrived;
        self.published += queue.published;
        self.completed += queue.counters.completed;
        self.dead_lettered += queue.counters.dead_lettered.iter().sum::<u64>();
    }
}

/// An entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityStatistics {
    /// The name of its namespace, in lower case.
    pub namespace: String,
    /// Its path, without its namespace, as its creator spelled it.
    pub path: String,
    /// Its kind.
    pub kind: EntityKind,
    /// What clients may do with it.
    pub status: Status,
    /// Its messages belong to message sessions.
    pub requires_session: bool,
    /// Where its messages are forwarded to, if they are.
    pub forward_to: Option<String>,
    /// Where its dead letters are forwarded to, if they are.
    pub forward_dead_letters_to: Option<String>,
    /// The number that its next message gets; `None` of a partitioned entity, in which each partition has numbers of its own.
    pub next_number: Option<SequenceNumber>,
    /// Its queues; of sub-queues only those that have or had messages.
    pub queues: Vec<(SubQueue, QueueStatistics)>,
}

/// One queue of an entity, or the sum of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Messages that receivers may get, those that are locked among them.
    pub active: usize,
    /// Messages that are received by their numbers only.
    pub deferred: usize,
    /// Messages that wait for their time.
    pub scheduled: usize,
    /// Messages that receivers have locked, in whatever state.
    pub locked: usize,
    /// Bytes of all messages as their senders encoded them.
    pub bytes: u64,
    /// Receivers.
    pub receivers: usize,
    /// How many more messages they take, together.
    pub credit: u64,
    /// Receivers that are stuck ([`Queue::stuck`]).
    pub stuck: usize,
    /// When the oldest message was enqueued that waits for a receiver.
    pub oldest: Option<Timestamp>,
    /// Message sessions that have messages, a state or a holder.
    pub sessions: usize,
    /// Message sessions that a receiver holds.
    pub sessions_held: usize,
    /// Messages that came in to be received here: to a queue or a subscription, but not those that it forwarded. So one that is
    /// forwarded counts where it ends, and each copy of a topic's message counts at its subscription.
    pub arrived: u64,
    /// Messages that came in to a topic, which is copied to its subscriptions.
    pub published: u64,
    /// What has happened.
    pub counters: Counters,
}

impl QueueStatistics {
    fn of(now: Timestamp, queue: &Queue, entity: EntityKind, kind: SubQueue) -> Self {
        let counters = queue.counters().copied().unwrap_or_default();
        let (arrived, published) = match (entity, kind) {
            (_, SubQueue::DeadLetter | SubQueue::TransferDeadLetter) => (0, 0),
            (EntityKind::Topic, SubQueue::Main) => (0, counters.incoming),
            (EntityKind::Queue | EntityKind::Subscription, SubQueue::Main) => {
                (counters.incoming.saturating_sub(counters.forwarded), 0)
            }
        };
        let (sessions, sessions_held) = queue.session_counts();
        let (scheduled, deferred) = (queue.scheduled(), queue.deferred());
        Self {
            active: queue.len() - scheduled - deferred,
            deferred,
            scheduled,
            locked: queue.locked(),
            bytes: queue.bytes(),
            receivers: queue.receivers(),
            credit: queue.credit(),
            stuck: queue.stuck_receivers(now),
            oldest: queue.oldest_waiting(),
            sessions,
            sessions_held,
            arrived,
            published,
            counters,
        }
    }

    /// Adds another queue.
    pub fn add(&mut self, other: &Self) {
        self.active += other.active;
        self.deferred += other.deferred;
        self.scheduled += other.scheduled;
        self.locked += other.locked;
        self.bytes += other.bytes;
        self.receivers += other.receivers;
        self.credit += other.credit;
        self.stuck += other.stuck;
        self.oldest = match (self.oldest, other.oldest) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        self.sessions += other.sessions;
        self.sessions_held += other.sessions_held;
        self.arrived += other.arrived;
        self.published += other.published;
        self.counters.add(&other.counters);
    }
}

impl Namespaces {
    /// Keeps what an entity has counted that is deleted: the counts of its namespace never become less.
    pub(super) fn count_deleted(&mut self, now: Timestamp, entity: &Entity) {
        let Some(queue) = self.queue(entity.base) else {
            return;
        };
        let counted = QueueStatistics::of(now, queue, entity.kind, SubQueue::Main);
        let prefix = address::namespace_of(&entity.path).to_owned();
        self.deleted.entry(prefix).or_default().add(&counted);
    }

    /// Returns the statistics of up to `most` entities, and the sums of the others. If there are more, namespaces share them: each
    /// has an equal part, and what one needs less, the others have more. Temporary nodes of clients are always among the others.
    /// The time that it takes grows with the entities.
    #[must_use]
    pub fn statistics(&self, now: Timestamp, most: usize) -> Statistics {
        let deleted = self.deleted.iter();
        let deleted = deleted.map(|(prefix, counts)| (self.directory.name_of(prefix), *counts));
        let mut found = Statistics {
            deleted: deleted.collect(),
            ..Statistics::default()
        };
        let mut shares = divide(most, self.directory.counts());
        for entity in self.directory.entities() {
            let namespace = self.directory.name_of(&entity.path);
            let all = [
                (SubQueue::Main, entity.base),
                (SubQueue::DeadLetter, entity.base.dead_letters()),
                (
                    SubQueue::TransferDeadLetter,
                    entity.base.transfer_dead_letters(),
                ),
            ];
            let queues = all.into_iter().filter_map(|(kind, id)| {
                let queue = self.queue(id)?;
                let is_used = !queue.is_empty() || queue.counters().is_some();
                (is_used || kind == SubQueue::Main).then_some((kind, queue))
            });
            let is_temporary = self
                .queue(entity.base)
                .is_some_and(|queue| queue.description().temporary);
            let of = |queue, kind| QueueStatistics::of(now, queue, entity.kind, kind);
            let queues = queues.map(|(kind, queue)| (kind, of(queue, kind)));
            let share = shares.get_mut(address::namespace_of(&entity.path));
            let share = share.filter(|share| 0 < **share && !is_temporary);
            if let Some(share) = share {
                *share -= 1;
                let queue = self.queue(entity.base);
                let description = queue.map(Queue::description);
                let is_partitioned = description.is_none_or(|it| it.partitioned);
                found.entities.push(EntityStatistics {
                    namespace,
                    path: address::without_namespace(&entity.path).to_owned(),
                    kind: entity.kind,
                    status: description.map_or(Status::Active, |it| it.status),
                    requires_session: description.is_some_and(|it| it.requires_session),
                    forward_to: description.and_then(|it| it.forward_to.clone()),
                    forward_dead_letters_to: description
                        .and_then(|it| it.forward_dead_letters_to.clone()),
                    next_number: queue.filter(|_| !is_partitioned).map(Queue::next_number),
                    queues: queues.collect(),
                });
            } else {
                for (kind, queue) in queues {
                    let others = found.others.entry((namespace.clone(), kind));
                    others.or_default().add(&queue);
                }
            }
        }
        found
    }
}

/// Divides a number among some that need so much each: what one needs less than an equal part, the others have more.
fn divide<N: Ord>(most: usize, needs: impl Iterator<Item = (N, usize)>) -> BTreeMap<N, usize> {
    let mut needs: Vec<(N, usize)> = needs.collect();
    needs.sort_by_key(|(_, need)| *need);
    let mut left = most;
    let parts = needs.len();
    let shares = needs.into_iter().enumerate().map(|(at, (name, need))| {
        // Those behind it need as much at least.
        let share = need.min(left / (parts - at));
        left -= share;
        (name, share)
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_with_many_entities_leaves_the_others_their_part() {
        let shares = |most, needs: [usize; 4]| {
            let needs = needs.into_iter().enumerate();
            let shares = divide(most, needs).into_values();
            shares.collect::<Vec<_>>()
        };
        assert_eq!(shares(100, [5_000, 10, 20, 5]), [65, 10, 20, 5]);
        assert_eq!(shares(100, [5_000, 10, 9_000, 5]), [42, 10, 43, 5]);
        assert_eq!(shares(100, [10, 20, 30, 40]), [10, 20, 30, 40]);
        assert_eq!(shares(3, [7, 7, 7, 7]).iter().sum::<usize>(), 3);
        assert_eq!(shares(0, [7, 7, 7, 7]), [0; 4]);
    }
}
