//! Which conditions hold, and since when.

use super::AttentionKind;
use super::recent::{Recent, Totals};
use crate::limits;
use crate::namespace::directory::Entity;
use crate::namespace::{EntityNode, ForwardingTarget, JobState, Namespaces, Room};
use jitney_base::address;
use jitney_base::ids::{EntityId, JobId};
use jitney_base::time::{ClockStep, Timestamp};
use jitney_queue::{ConsumerId, EntityKind, Queue, Status, Stuck};

/// Something that holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttentionCondition {
    pub(super) kind: AttentionKind,
    pub(super) count: u64,
    pub(super) since: Option<Timestamp>,
    pub(super) detail: Detail,
}

/// What its sentence needs to know.
#[derive(Debug, Clone, Copy)]
pub(super) enum Detail {
    None,
    /// A receiver, how it is stuck, and how many messages it has locked.
    Receiver {
        consumer: ConsumerId,
        stuck: Stuck,
        locked: usize,
    },
    /// What an entity holds, and what it may hold.
    Bytes {
        held: u64,
        max: u64,
    },
    /// All dead letters.
    DeadLetters(usize),
    /// Messages that were completed meanwhile.
    Completed(u64),
    Status(Status),
    /// A job, and its entity if that is there still.
    Job {
        id: JobId,
        entity: Option<EntityId>,
    },
    Limit(Limit),
}

/// A limit of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Memory,
    Entities,
}

/// What a look has found of an entity.
#[derive(Debug, Default)]
pub(super) struct EntityConditions {
    pub(super) conditions: Vec<AttentionCondition>,
    /// Stuck receivers that are not among the conditions.
    pub(super) unlisted: usize,
    recent: Option<Box<Recent>>,
}

impl Detail {
    pub(super) const fn receiver(&self) -> Option<ConsumerId> {
        if let Self::Receiver { consumer, .. } = self {
            Some(*consumer)
        } else {
            None
        }
    }

    pub(super) const fn job(&self) -> Option<JobId> {
        if let Self::Job { id, .. } = self {
            Some(*id)
        } else {
            None
        }
    }

    /// Returns the entity of a job.
    pub(super) const fn job_entity(&self) -> Option<EntityId> {
        if let Self::Job { entity, .. } = self {
            *entity
        } else {
            None
        }
    }
}

impl AttentionCondition {
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        self.since = self.since.map(|since| since.moved(step));
    }
}

impl EntityConditions {
    pub(super) const fn is_empty(&self) -> bool {
        self.conditions.is_empty() && self.recent.is_none()
    }

    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        for condition in &mut self.conditions {
            condition.follow_clock(step);
        }
        if let Some(recent) = &mut self.recent {
            recent.follow_clock(step);
        }
    }
}

/// The conditions that hold now, beside those of the look before.
#[derive(Debug)]
struct Found<'a> {
    now: Vec<AttentionCondition>,
    before: &'a [AttentionCondition],
    /// When one began that did not hold before.
    begins: Option<Timestamp>,
}

impl Found<'_> {
    /// Adds a condition if there is some of what it counts; it began when a look first found it.
    fn add(&mut self, kind: AttentionKind, count: u64, detail: Detail) {
        if count == 0 {
            return;
        }
        let before = self.before.iter().find(|it| it.kind == kind);
        let since = before.map_or(self.begins, |before| before.since);
        self.add_since(kind, count, since, detail);
    }

    fn add_since(
        &mut self,
        kind: AttentionKind,
        count: u64,
        since: Option<Timestamp>,
        detail: Detail,
    ) {
        self.now.push(AttentionCondition {
            kind,
            count,
            since,
            detail,
        });
    }
}

pub(super) fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl Namespaces {
    /// Looks at an entity. `begins` is when a condition began that did not hold at the look before; `locks` is how many locks may be
    /// looked at.
    pub(super) fn conditions_of(
        &self,
        now: Timestamp,
        entity: &Entity,
        before: EntityConditions,
        begins: Option<Timestamp>,
        locks: &mut usize,
    ) -> EntityConditions {
        let mut state = EntityConditions::default();
        let Some(node) = self.node(entity.base) else {
            return state;
        };
        let queue = &node.queue;
        if queue.description().temporary {
            return state;
        }
        let mut found = Found {
            now: Vec::new(),
            before: &before.conditions,
            begins,
        };
        state.recent = before.recent;
        let recent = take_recent(&mut state.recent, now, queue);
        self.add_dead_letters(&mut found, entity.base, recent);
        if recent.locks_expired > limits::ATTENTION_LOCKS_EXPIRED.max(recent.completed) {
            let completed = Detail::Completed(recent.completed);
            found.add(AttentionKind::LocksExpire, recent.locks_expired, completed);
        }
        self.add_size(&mut found, entity);
        if entity.kind != EntityKind::Topic {
            add_waiting(&mut found, node);
        }
        for id in [entity.base, entity.base.dead_letters()] {
            if let Some(queue) = self.queue(id) {
                state.unlisted += add_stuck(&mut found, now, queue);
                add_old_locks(&mut found, now, queue, locks);
            }
        }
        state.conditions = found.now;
        state
    }

    fn add_dead_letters(&self, found: &mut Found<'_>, base: EntityId, recent: Totals) {
        let failed = recent.not_forwarded;
        found.add(AttentionKind::ForwardingFailed, failed, Detail::None);
        let transfer = self
            .queue(base.transfer_dead_letters())
            .map_or(0, Queue::len);
        found.add(
            AttentionKind::TransferDeadLetters,
            wide(transfer),
            Detail::None,
        );
        let id = base.dead_letters();
        let Some(dead) = self.node(id).filter(|node| !node.queue.is_empty()) else {
            return;
        };
        let all = dead.queue.len();
        let detail = Detail::DeadLetters(all);
        found.add(AttentionKind::DeadLetters, wide(all), detail);
        let recent = recent.dead_lettered;
        found.add(AttentionKind::RecentDeadLetters, recent, detail);
        if let Some(ForwardingTarget::Entity(path)) = &dead.forwards_to
            && self.forwarding.blocked.has(id, path)
        {
            let waiting = wide(dead.queue.waiting());
            found.add(AttentionKind::ForwardingBlocked, waiting, detail);
        }
    }

    fn add_size(&self, found: &mut Found<'_>, entity: &Entity) {
        // What a subscription holds counts to its topic.
        if entity.kind == EntityKind::Subscription {
            return;
        }
        let max = self
            .queue(entity.base)
            .map_or(0, |it| it.description().max_bytes);
        let held = self.held_bytes(entity.base);
        if let Some(percent) = nearly_full(held, max) {
            let detail = Detail::Bytes { held, max };
            found.add(AttentionKind::EntityFull, percent, detail);
        }
    }

    /// Looks at a namespace as a whole, and at its jobs.
    pub(super) fn own_conditions(
        &self,
        prefix: &str,
        before: &[AttentionCondition],
        begins: Option<Timestamp>,
    ) -> Vec<AttentionCondition> {
        let mut found = Found {
            now: Vec::new(),
            before,
            begins,
        };
        if self.room != Room::Enough {
            found.add(AttentionKind::MessagesRefused, 1, Detail::None);
        }
        if let Some((limit, percent)) = self.nearest_limit(prefix) {
            let detail = Detail::Limit(limit);
            found.add(AttentionKind::NamespaceNearLimit, percent, detail);
        }
        for (id, queue, job) in self.jobs() {
            if address::namespace_of(&job.path) != prefix {
                continue;
            }
            let base = queue.base();
            let entity = self.node(base).map(|_| base);
            let detail = Detail::Job { id, entity };
            match job.state {
                JobState::Failed => {
                    found.add_since(AttentionKind::JobFailed, 1, job.ended_at, detail);
                }
                JobState::Completed if 0 < job.skipped => {
                    let skipped = job.skipped;
                    found.add_since(AttentionKind::JobSkipped, skipped, job.ended_at, detail);
                }
                JobState::Completed | JobState::Running | JobState::Cancelled => {}
            }
        }
        found.now
    }

    /// Returns the limit of which a namespace has most, if that is nearly all of it, and the percentage.
    fn nearest_limit(&self, prefix: &str) -> Option<(Limit, u64)> {
        let memory = self.shares.known_namespace(prefix);
        let memory = memory.unwrap_or(&self.shares.memory).nearest_limit();
        let memory = memory.and_then(|it| nearly_full(wide(it.used), wide(it.most)));
        let entities = self.entity_share(prefix);
        let entities = nearly_full(wide(entities.used), wide(entities.most));
        let memory = memory.map(|percent| (Limit::Memory, percent));
        let entities = entities.map(|percent| (Limit::Entities, percent));
        let all = memory.into_iter().chain(entities);
        all.max_by_key(|(_, percent)| *percent)
    }
}

/// Returns the percentage that is used, if it is that much.
fn nearly_full(used: u64, most: u64) -> Option<u64> {
    if most == 0 {
        return None;
    }
    let percent = u64::try_from(u128::from(used) * 100 / u128::from(most)).unwrap_or(u64::MAX);
    (limits::ATTENTION_PERCENT <= percent).then_some(percent)
}

fn take_recent(recent: &mut Option<Box<Recent>>, now: Timestamp, queue: &Queue) -> Totals {
    let totals = queue.counters().map(Totals::of).unwrap_or_default();
    if !totals.has_failures() {
        *recent = None;
        return Totals::default();
    }
    recent.get_or_insert_default().take(now, totals)
}

/// Adds what is wrong where messages wait.
fn add_waiting(found: &mut Found<'_>, node: &EntityNode) {
    let queue = &node.queue;
    let waiting = wide(queue.waiting());
    let status = queue.description().status;
    if status != Status::Active {
        let detail = Detail::Status(status);
        found.add(AttentionKind::DisabledWithMessages, waiting, detail);
    }
    if status.can_receive() && node.forwards_to.is_none() && queue.receivers() == 0 {
        found.add(AttentionKind::NoReceiver, waiting, Detail::None);
    }
}

/// Adds stuck receivers; returns how many there are beyond those.
fn add_stuck(found: &mut Found<'_>, now: Timestamp, queue: &Queue) -> usize {
    if queue.waiting() == 0 {
        return 0;
    }
    let mut all = queue.consumers().filter_map(|consumer| {
        let stuck = queue.stuck(now, consumer)?;
        Some((consumer, stuck))
    });
    let listed = all.by_ref().take(limits::ATTENTION_RECEIVERS);
    for (consumer, stuck) in listed {
        let state = queue.receiver_progress(consumer);
        let detail = Detail::Receiver {
            consumer,
            stuck,
            locked: state.locked,
        };
        let waiting = wide(state.waiting);
        let kind = AttentionKind::StuckReceiver;
        found.add_since(kind, waiting, state.idle_since, detail);
    }
    all.count()
}

fn add_old_locks(found: &mut Found<'_>, now: Timestamp, queue: &Queue, budget: &mut usize) {
    let old = queue.old_locks(now, limits::ATTENTION_OLD_LOCK, budget);
    if let Some((made, count)) = old {
        let since = Some(made.after(limits::ATTENTION_OLD_LOCK));
        found.add_since(AttentionKind::OldLock, wide(count), since, Detail::None);
    }
}
