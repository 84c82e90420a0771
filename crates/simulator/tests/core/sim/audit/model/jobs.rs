//! Jobs of operators, and the messages that are theirs.

use jitney_broker::limits;
use jitney_broker::namespace::JobState;

use super::*;
use crate::sim::operations::{Chosen, Work};

/// All jobs that are known.
#[derive(Debug, Clone, Default)]
pub(in crate::sim) struct Jobs {
    pub(in crate::sim::audit) all: BTreeMap<u64, Job>,
    pub(in crate::sim::audit) next: u64,
    /// The one that had its turn last, since the start.
    pub(in crate::sim::audit) last: Option<u64>,
    /// What the next step is about, since the start.
    pub(in crate::sim::audit) page: Option<Page>,
}

#[derive(Debug, Clone)]
pub(in crate::sim) struct Job {
    pub(in crate::sim::audit) work: Arc<Work>,
    pub(in crate::sim::audit) state: JobState,
    pub(in crate::sim::audit) begun: i64,
    pub(in crate::sim::audit) ended: Option<i64>,
    pub(in crate::sim::audit) matched: u64,
    pub(in crate::sim::audit) changed: u64,
    pub(in crate::sim::audit) skipped: u64,
    /// A part of the reason that is told.
    pub(in crate::sim::audit) reason: Option<&'static str>,
    /// The next numbers of its queue when it began, by partition.
    until: BTreeMap<u64, u64>,
    pub(in crate::sim::audit) position: u64,
    /// The group with what is told of it.
    pub(in crate::sim::audit) recorded: u64,
}

/// Messages that a job takes on together.
#[derive(Debug, Clone)]
pub(in crate::sim) struct Page {
    pub(in crate::sim::audit) job: u64,
    pub(in crate::sim::audit) ordinals: Vec<u64>,
    /// Where the job continues; none at the end.
    pub(in crate::sim::audit) next: Option<u64>,
}

impl Jobs {
    pub(in crate::sim::audit) fn running(&self) -> impl Iterator<Item = u64> {
        let running = self.all.iter();
        let running = running.filter(|(_, job)| job.state == JobState::Running);
        running.map(|(&id, _)| id)
    }

    /// Returns whose turn it is: the one after the last, of those that may work.
    pub(in crate::sim::audit) fn turn(&self, may_work: impl Fn(&Work) -> bool) -> Option<u64> {
        let last = self.last;
        let after = |id: &u64| last.is_none_or(|last| last < *id);
        let is_able = |id: &u64| may_work(&self.all[id].work);
        let mut able = self.running().filter(is_able);
        let first = self.running().find(is_able);
        able.find(after).or(first)
    }

    /// The oldest of too many that have ended is forgotten.
    pub(in crate::sim::audit) fn forget(&mut self) {
        let ended = self.all.iter();
        let ended = ended.filter(|(_, job)| job.state != JobState::Running);
        let ended: Vec<u64> = ended.map(|(&id, _)| id).collect();
        if limits::JOBS_ENDED_MAX < ended.len() {
            self.all.remove(&ended[0]);
        }
    }
}

impl Job {
    pub(in crate::sim::audit) fn new(work: Work, round: &Round, queue: &Queue) -> Self {
        Self {
            work: Arc::new(work),
            state: JobState::Running,
            begun: round.now,
            ended: None,
            matched: 0,
            changed: 0,
            skipped: 0,
            reason: None,
            until: queue.next.clone(),
            position: 0,
            recorded: round.group,
        }
    }

    pub(in crate::sim::audit) fn end(&mut self, now: i64, state: JobState) {
        self.state = state;
        self.ended = Some(now);
    }

    /// Returns whether a message was there when the job began.
    fn covers(&self, ordinal: u64) -> bool {
        let until = self.until.get(&partition_of(ordinal));
        until.is_some_and(|&until| ordinal & LOW < until)
    }

    /// Returns the next messages that the job takes on.
    pub(in crate::sim::audit) fn page(&self, id: u64, queue: &Queue) -> Page {
        let mut page = Page {
            job: id,
            ordinals: Vec::new(),
            next: None,
        };
        let mut bytes = 0;
        let max = if self.work.needs_bytes() {
            u64::try_from(limits::JOB_BYTES).expect("fits")
        } else {
            u64::MAX
        };
        for ordinal in self.candidates(queue) {
            if page.ordinals.len() == limits::JOB_MESSAGES {
                page.next = Some(ordinal);
                break;
            }
            let message = &queue.messages[&ordinal];
            if !self.covers(ordinal) || !self.work.chosen.meets(message) {
                continue;
            }
            bytes += message.size;
            if max < bytes && !page.ordinals.is_empty() {
                page.next = Some(ordinal);
                break;
            }
            page.ordinals.push(ordinal);
        }
        page
    }

    fn candidates(&self, queue: &Queue) -> Vec<u64> {
        let mut numbers = self.work.chosen.numbers.clone();
        if numbers.is_empty() {
            let from = queue.messages.range(self.position..);
            return from.map(|(&ordinal, _)| ordinal).collect();
        }
        numbers.sort_unstable();
        numbers.dedup();
        let found = numbers.iter().filter_map(|it| queue.ordinal_of(*it));
        found.filter(|&at| self.position <= at).collect()
    }
}

impl Chosen {
    /// Returns whether a message meets the conditions that need no bytes of it, but for its number.
    pub(in crate::sim::audit) fn meets(&self, message: &Message) -> bool {
        let state = match message.state {
            State::Active => 0,
            State::Deferred => 1,
            State::Scheduled { .. } => 2,
        };
        (self.states.is_empty() || self.states.contains(&state))
            && (self.session.is_none() || self.session == message.draft.session)
            && self.from.is_none_or(|from| from <= message.enqueued_at)
            && self
                .before
                .is_none_or(|before| message.enqueued_at < before)
    }

    /// Returns whether a message meets the others.
    pub(in crate::sim::audit) fn selects(&self, message: &Message) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        let property = |name: &str| message.properties.get(name).map(String::as_str);
        let id = message.draft.message_id();
        is(&self.message_id, id.as_deref())
            && is(&self.reason, property("DeadLetterReason"))
            && is(&self.color, property("color"))
            && self
                .text
                .as_ref()
                .is_none_or(|text| String::from_utf8_lossy(&message.draft.body()).contains(text))
    }
}

impl Queue {
    /// A dead letter has kept its number: later ones are above it.
    pub(super) fn pass(&mut self, ordinal: u64) {
        let next = self.next.entry(partition_of(ordinal)).or_default();
        *next = (*next).max((ordinal & LOW) + 1);
    }
}

/// The part of an ordinal below its partition.
const LOW: u64 = (1 << PARTITION) - 1;
