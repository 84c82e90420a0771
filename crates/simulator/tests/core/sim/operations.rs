//! What operators ask of the broker: jobs, in the form in which the auditor judges them and from which the broker's
//! requests are made.

use jitney_base::ids::{JobId, LockToken, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{JobAction, JobDescription, Selection};
use jitney_gateway::operations::{
    CancelJob, ListJobs, LockMessages, ReadJob, SettleMessages, StartJob,
};
use jitney_gateway::request::AnyRequest;
use jitney_message::{Amendments, MessageState};
use jitney_queue::{DeadLetter, Settlement};

use super::acts::{Place, Session, Verdict, session_name};

/// A request of an operator.
#[derive(Debug, Clone)]
pub(super) enum Request {
    /// Begin a job.
    Begin(Box<Work>),
    Cancel(u64),
    Jobs,
    Look(u64),
    /// Lock deferred messages, all or none.
    Lock {
        place: Place,
        numbers: Vec<i64>,
    },
    /// Settle locked messages, each for itself.
    Settle {
        place: Place,
        settlements: Vec<(LockToken, Verdict)>,
    },
}

/// What a job is to do, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) place: Place,
    pub(super) chosen: Chosen,
    pub(super) change: Change,
    pub(super) most: Option<u64>,
}

/// Which messages a job is about: those that meet all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    /// As peeks show them; none is all.
    pub(super) states: Vec<i32>,
    /// None is all.
    pub(super) numbers: Vec<i64>,
    pub(super) session: Option<Session>,
    pub(super) from: Option<i64>,
    pub(super) before: Option<i64>,
    pub(super) message_id: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) color: Option<String>,
    /// In the body.
    pub(super) text: Option<String>,
}

/// What a job does to each message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Activate,
    DeadLetter {
        reason: Option<String>,
        description: Option<String>,
    },
    Delete,
    /// To an entity, or where it was dead-lettered.
    Move {
        to: Option<usize>,
        paint: Option<Paint>,
        body: Option<Body>,
    },
    Reschedule(i64),
}

/// What the statements of a move do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Paint {
    Set(String),
    Strip,
}

/// What the template of a body adds to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    Text(&'static str),
    /// The color, which a message may not have.
    Color,
}

/// What stands before all that templates add.
pub(super) const MARK: &str = "~";

impl Chosen {
    /// Returns whether index entries do not decide it.
    pub(super) fn needs_bytes(&self) -> bool {
        self.message_id.is_some()
            || self.reason.is_some()
            || self.color.is_some()
            || self.text.is_some()
    }

    fn selection(&self) -> Selection {
        let state = |state: &i32| match state {
            0 => MessageState::Active,
            1 => MessageState::Deferred,
            _ => MessageState::Scheduled,
        };
        let color = self.color.as_ref();
        Selection {
            states: self.states.iter().map(state).collect(),
            numbers: self.numbers.iter().map(|it| it.cast_unsigned()).collect(),
            session_id: self.session.map(session_name),
            enqueued_from: self.from.map(Timestamp::from_millis),
            enqueued_before: self.before.map(Timestamp::from_millis),
            message_id: self.message_id.clone(),
            reason: self.reason.clone(),
            filter: color.map(|color| format!("color = '{color}'")),
            text: self.text.clone(),
            ..Selection::default()
        }
    }
}

impl Work {
    /// Returns whether the job must read messages.
    pub(super) fn needs_bytes(&self) -> bool {
        self.chosen.needs_bytes() || matches!(self.change, Change::Move { .. })
    }

    /// Returns it as an operator writes it; entities have these paths.
    pub(super) fn description(&self, paths: &[String]) -> JobDescription {
        let action = match &self.change {
            Change::Activate => JobAction::Activate,
            Change::DeadLetter {
                reason,
                description,
            } => JobAction::DeadLetter {
                reason: reason.clone(),
                description: description.clone(),
            },
            Change::Delete => JobAction::Delete,
            Change::Move { to, paint, body } => JobAction::Move {
                to: to.map(|to| paths[to].clone()),
                action: paint.as_ref().map(|paint| match paint {
                    Paint::Set(color) => format!("SET color = '{color}'"),
                    Paint::Strip => "REMOVE color".to_owned(),
                }),
                body: body.as_ref().map(|body| match body {
                    Body::Text(text) => format!("{{{{body}}}}{MARK}{text}"),
                    Body::Color => format!("{{{{body}}}}{MARK}{{{{property:color}}}}"),
                }),
            },
            Change::Reschedule(due) => JobAction::Reschedule {
                due: Timestamp::from_millis(*due),
            },
        };
        JobDescription {
            selection: self.chosen.selection(),
            action,
            most: self.most,
        }
    }
}

impl Request {
    /// Returns the broker's operation; entities have these paths.
    pub(super) fn request(&self, paths: &[String]) -> Box<dyn AnyRequest> {
        match self {
            Self::Begin(work) => Box::new(StartJob {
                path: work.place.address(paths),
                description: work.description(paths),
            }),
            Self::Cancel(id) => Box::new(CancelJob(JobId(*id))),
            Self::Jobs => Box::new(ListJobs { before: None }),
            Self::Look(id) => Box::new(ReadJob(JobId(*id))),
            Self::Lock { place, numbers } => Box::new(LockMessages {
                path: place.address(paths),
                numbers: numbers
                    .iter()
                    .map(|it| SequenceNumber(it.cast_unsigned()))
                    .collect(),
            }),
            Self::Settle { place, settlements } => Box::new(SettleMessages {
                path: place.address(paths),
                settlements: settlements
                    .iter()
                    .map(|(token, verdict)| (*token, settlement(verdict)))
                    .collect(),
            }),
        }
    }
}

fn settlement(verdict: &Verdict) -> Settlement {
    let changes = |properties: &std::collections::BTreeMap<String, String>| {
        let mut changes = Amendments::default();
        for (name, value) in properties {
            changes.set_string(name, value);
        }
        changes
    };
    match verdict {
        Verdict::Complete => Settlement::Complete,
        Verdict::Release => Settlement::Release,
        Verdict::Abandon(properties) => Settlement::Abandon(Some(changes(properties).into())),
        Verdict::Defer(properties) => Settlement::Defer(Some(changes(properties).into())),
        Verdict::DeadLetter {
            reason,
            description,
            properties,
        } => {
            let dead = DeadLetter {
                reason: reason.clone(),
                description: description.clone(),
                amendments: changes(properties),
            };
            Settlement::DeadLetter(Some(dead.amended()))
        }
    }
}
