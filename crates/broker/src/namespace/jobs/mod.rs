//! Jobs: what an operator has done to many messages, in bounded steps.
//!
//! ```text
//!  start ──► running ──► completed            a step: look at some entries, read the bytes of those that
//!               │  └────► failed              may be meant, change each message by records of its own, and
//!               └ cancel ► cancelled          record the job's progress, all in one group
//! ```
//!
//! Promises: a message is changed by one step of its queue, or is left as it is; a job continues after a restart where its
//! last durable step has left it; it changes only messages that were there when it began, as far as their numbers tell
//! (`docs/operating.md#jobs`), and none that a receiver has locked.
//!
//! Leaves to others: when a step is done and how bytes are read (crate `shard`); rights
//! (`operations` of crate `gateway`).

mod json_path;
mod run;
mod selection;
mod template;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::namespace::Room;
use jitney_base::ids::{EntityId, JobId};
use jitney_base::time::Timestamp;
use jitney_queue::Until;
use jitney_rules::{Action, SqlError};
use template::{Template, TemplateError};

pub use run::JobPage;
pub use selection::{Selection, SelectionError, Selector, Undecided, dead_letter_text};

/// What a job does to each message that it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum JobAction {
    /// It is deleted.
    Delete,
    /// It becomes a new message of another entity, or of the one that it was dead-lettered in. Dead-letter properties,
    /// delivery counts and numbers stay behind.
    Move {
        /// The path of the queue, the topic or the subscription that gets it; without one, where it was dead-lettered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// Statements that change its properties first, as the action of a rule does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<String>,
        /// A template of its new body: `{{body}}`, `{{body:/a/0}}`, `{{property:NAME}}`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
    },
    /// It becomes a dead letter.
    DeadLetter {
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The description.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// A deferred or scheduled message becomes active at once.
    Activate,
    /// A scheduled message becomes active at another time.
    Reschedule {
        /// When.
        due: Timestamp,
    },
}

/// What a job is to do, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobDescription {
    /// Which messages.
    #[serde(default)]
    pub selection: Selection,
    /// What is done to each.
    pub action: JobAction,
    /// After so many it ends; all if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It runs.
    Running,
    /// It has looked at every message.
    Completed,
    /// It was cancelled; what it had done stays.
    Cancelled,
    /// It cannot continue; what it had done stays.
    Failed,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The path of the queue, with the prefix of its namespace, as it was when the job began.
    pub path: String,
    /// The messages that it changes, and how.
    pub description: JobDescription,
    /// Its state.
    pub state: JobState,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Messages that there were when it began: it looks at no others, or at those that its selection names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Messages that met the conditions.
    pub matched: u64,
    /// Messages that were changed.
    pub changed: u64,
    /// Messages that were left as they are: a receiver had them locked, the change was refused, or it is not known whether they
    /// are meant.
    pub skipped: u64,
    /// Why the last of those was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_skipped: Option<String>,
    /// The position at which it continues.
    position: u64,
    /// Messages with later numbers came after it began.
    until: Until,
}

/// A job that runs.
#[derive(Debug)]
struct Running {
    /// The queue.
    queue: EntityId,
    job: Job,
    plan: Plan,
}

/// A description, compiled.
#[derive(Debug)]
struct Plan {
    selector: Selector,
    action: Option<Action>,
    template: Option<Template>,
}

/// Why a description is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobRefused {
    /// Its selection cannot be read.
    #[error("selection.{0}")]
    Selection(#[from] SelectionError),
    /// Its statements cannot be read.
    #[error("action.action: {0}")]
    Action(#[from] SqlError),
    /// The template of a body cannot be read.
    #[error("action.body: {0}")]
    Template(#[from] TemplateError),
    /// Its statements are too long.
    #[error("action.action has {0} characters, and {max} are the most", max = jitney_rules::limits::SQL_LENGTH_MAX)]
    TooLong(usize),
    /// It would change nothing.
    #[error(
        "limit is 0, and a job changes one message at least; without a limit it changes all that are selected"
    )]
    NoMessages,
}

impl JobRefused {
    /// Returns the field of the description that is wrong.
    #[must_use]
    pub fn field(&self) -> String {
        match self {
            Self::Selection(error) => format!("selection.{}", error.field()),
            Self::Action(_) | Self::TooLong(_) => "action.action".to_owned(),
            Self::Template(_) => "action.body".to_owned(),
            Self::NoMessages => "limit".to_owned(),
        }
    }
}

impl JobAction {
    /// Returns whether it frees the disk and memory of each message, and adds nothing.
    const fn frees(&self) -> bool {
        match self {
            Self::Delete => true,
            Self::Move { .. }
            | Self::DeadLetter { .. }
            | Self::Activate
            | Self::Reschedule { .. } => false,
        }
    }

    /// Returns the entity that it names to bring messages to.
    #[must_use]
    pub fn destination(&self) -> Option<&str> {
        match self {
            Self::Move { to, .. } => to.as_deref(),
            Self::Delete | Self::DeadLetter { .. } | Self::Activate | Self::Reschedule { .. } => {
                None
            }
        }
    }
}

impl JobDescription {
    /// Checks that it can be read.
    ///
    /// # Errors
    ///
    /// Which part of it cannot be read.
    pub fn check(&self) -> Result<(), JobRefused> {
        if self.most == Some(0) {
            return Err(JobRefused::NoMessages);
        }
        self.compile().map(drop)
    }

    fn compile(&self) -> Result<Plan, JobRefused> {
        let selector = self.selection.compile()?;
        let action = match &self.action {
            JobAction::Move {
                action: Some(text), ..
            } => {
                let length = text.chars().count();
                if jitney_rules::limits::SQL_LENGTH_MAX < length {
                    return Err(JobRefused::TooLong(length));
                }
                Some(Action::parse(text)?)
            }
            JobAction::Move { .. }
            | JobAction::Delete
            | JobAction::DeadLetter { .. }
            | JobAction::Activate
            | JobAction::Reschedule { .. } => None,
        };
        let template = match &self.action {
            JobAction::Move {
                body: Some(text), ..
            } => Some(Template::parse(text)?),
            JobAction::Move { .. }
            | JobAction::Delete
            | JobAction::DeadLetter { .. }
            | JobAction::Activate
            | JobAction::Reschedule { .. } => None,
        };
        Ok(Plan {
            selector,
            action,
            template,
        })
    }
}

impl Plan {
    /// Returns whether a step needs the messages' bytes.
    const fn needs_bytes(&self, action: &JobAction) -> bool {
        self.selector.needs_bytes() || matches!(action, JobAction::Move { .. })
    }
}

/// The jobs of a shard.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    /// Asked about in every turn: those that have ended are apart.
    running: BTreeMap<JobId, Running>,
    /// With their queues.
    ended: BTreeMap<JobId, (EntityId, Job)>,
    /// Those that ran as the records that were replayed so far have it. Each is compiled once, after the last record.
    restored: BTreeMap<JobId, (EntityId, Job)>,
    /// The number of the next.
    next: u64,
    /// The running job that had its turn last.
    last: Option<JobId>,
    /// Its last step has spent a share of steps, some milliseconds or more.
    was_costly: bool,
}

impl Jobs {
    /// Returns a job, and the queue that it is about.
    pub(super) fn get(&self, id: JobId) -> Option<(EntityId, &Job)> {
        let running = self.running.get(&id);
        let running = running.map(|running| (running.queue, &running.job));
        running.or_else(|| {
            let other = self.ended.get(&id).or_else(|| self.restored.get(&id));
            other.map(|(queue, job)| (*queue, job))
        })
    }

    /// Returns all jobs, the oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (JobId, EntityId, &Job)> {
        let ids: BTreeSet<JobId> = self
            .running
            .keys()
            .chain(self.ended.keys())
            .chain(self.restored.keys())
            .copied()
            .collect();
        let all = ids.into_iter();
        all.filter_map(|id| self.get(id).map(|(queue, job)| (id, queue, job)))
    }

    /// Returns how many run.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns how many of those that run may have a turn.
    fn workable(&self, room: Room) -> usize {
        let running = self.running.values();
        running.filter(|running| running.job.may_work(room)).count()
    }

    /// Returns whose turn it is among those that run and may have one.
    fn next_running(&self, room: Room) -> Option<JobId> {
        let after = self.last.map_or(JobId(0), |last| JobId(last.0 + 1));
        let later = self.running.range(after..);
        let mut in_turn = later.chain(self.running.range(..after));
        let next = in_turn.find(|(_, running)| running.job.may_work(room));
        next.map(|(&id, _)| id)
    }

    /// Takes a job as a record has it; `None` if it cannot be read.
    pub(super) fn restore(
        &mut self,
        queue: EntityId,
        id: JobId,
        state: Option<&[u8]>,
    ) -> Option<()> {
        self.next = self.next.max(id.0 + 1);
        self.running.remove(&id);
        self.ended.remove(&id);
        self.restored.remove(&id);
        let Some(state) = state else {
            return Some(());
        };
        let job: Job = serde_json::from_slice(state).ok()?;
        let place = match job.state {
            JobState::Running => &mut self.restored,
            JobState::Completed | JobState::Cancelled | JobState::Failed => &mut self.ended,
        };
        place.insert(id, (queue, job));
        Some(())
    }

    /// Returns the records of all jobs.
    pub(super) fn snapshot(&self) -> Vec<(EntityId, JobId, Vec<u8>)> {
        self.iter()
            .map(|(id, queue, job)| (queue, id, job.to_json()))
            .collect()
    }

    /// Forgets the job that ended first, if there are too many.
    fn forget_oldest(&mut self) -> Option<(JobId, EntityId)> {
        if self.ended.len() <= limits::JOBS_ENDED_MAX {
            return None;
        }
        let (id, (queue, _)) = self.ended.pop_first()?;
        Some((id, queue))
    }
}

impl Job {
    /// Returns whether it may have a turn: what frees no room waits for some.
    fn may_work(&self, room: Room) -> bool {
        match room {
            Room::Enough => true,
            Room::None(_) => self.description.action.frees(),
        }
    }

    fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts are JSON")
    }

    fn end(&mut self, now: Timestamp, state: JobState) {
        self.state = state;
        self.ended_at = Some(now);
    }

    fn skip(&mut self, why: impl Into<String>) {
        self.skipped += 1;
        self.last_skipped = Some(why.into());
    }

    fn is_over(&self) -> bool {
        self.description
            .most
            .is_some_and(|most| most <= self.changed)
    }
}
