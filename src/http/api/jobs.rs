//! Jobs: changes of many messages, in bounded steps that survive a restart.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use utoipa::{IntoParams, ToSchema};

use super::call::{Answer, Call};
use super::page::Page;
use super::problem::Problem;
use super::selection::{MessageSelection, instant};
use crate::limits;
use jitney_base::ids::JobId;
use jitney_broker::namespace::{JobAction, JobDescription, JobState};
use jitney_gateway::admin::time;
use jitney_gateway::operations::{CancelJob, JobView, ListJobs, ReadJob, StartJob};

/// A job.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Job {
    id: u64,
    /// The path of its queue: `orders`, `orders/$DeadLetterQueue`.
    entity: String,
    selection: MessageSelection,
    action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    state: RunState,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Why it runs and does nothing, and what helps: the disk or the memory is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    /// Messages that there were when it began, or that its selection names by number: it looks at no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Messages that were selected so far.
    matched: u64,
    /// Messages that were changed so far.
    changed: u64,
    /// Messages that were left as they are.
    skipped: u64,
    /// Why the last of these was.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_skipped: Option<String>,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RunState {
    Running,
    Completed,
    Cancelled,
    Failed,
}

/// What is done to each message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Action {
    /// It is deleted; a scheduled one is cancelled.
    Delete {},
    /// It becomes a new message of another entity, or of the one that it was dead-lettered in. Dead-letter properties, the
    /// delivery count and the number stay behind.
    Move {
        /// The path of the queue, the topic or the subscription that gets it; without one, where it was dead-lettered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// Statements that change its properties first, as the action of a rule does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(example = "SET color = 'red'; REMOVE attempts")]
        action: Option<String>,
        /// A template of its new body. `{{body}}` is the body, `{{body:/a/0}}` what a JSON pointer finds in it, as JSON, and
        /// `{{property:NAME}}` an application-property.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(example = "{\"amount\": 1.5, \"customer\": {{body:/customer}}}")]
        body: Option<String>,
    },
    /// It becomes a dead letter.
    DeadLetter {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// A deferred or scheduled message becomes active at once.
    Activate {},
    /// A scheduled message becomes active at another time.
    Reschedule {
        #[schema(example = "2026-11-23T12:00:00Z")]
        scheduled_for: String,
    },
}

/// A job to be begun.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JobRequest {
    /// The path of a queue, a topic, a subscription, or one of their sub-queues.
    #[schema(example = "orders/$DeadLetterQueue")]
    entity: String,
    #[serde(default)]
    selection: MessageSelection,
    action: Action,
    /// It ends when it has changed so many.
    #[serde(default)]
    #[schema(minimum = 1)]
    limit: Option<u64>,
}

/// Jobs, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Jobs {
    /// Written one by one, before the rest.
    #[schema(required)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<Job>,
    /// What `before` is to be for the next page; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<u64>,
}

/// Which jobs a list has.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct JobsQuery {
    /// Jobs with smaller ids only: `next_before` of the page before.
    before: Option<u64>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// How long an answer may wait for a job's end.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitQuery {
    /// The answer comes when the job has ended, or after so many seconds.
    #[serde(default)]
    #[param(maximum = 30)]
    wait: u64,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Begins a job. Messages that come later are not changed, nor those that a receiver has locked.
#[utoipa::path(post, path = "/api/v1/jobs", operation_id = "start_job", tag = "jobs", request_body = JobRequest, params(WaitQuery),
    responses((status = 202, body = Job), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn start(call: &Call<'_>, body: Body) -> Answer {
    let query: WaitQuery = call.query()?;
    let authority = call.authorize("").await?;
    let request: JobRequest = call.json(body).await?;
    let description = JobDescription {
        selection: request.selection.read("selection.")?,
        action: request.action.read()?,
        most: request.limit,
    };
    let checked = description.check();
    checked.map_err(|error| Problem::wrong(error.field(), format!("{error}.")))?;
    let path = request.entity;
    let started = call
        .request(authority.clone(), StartJob { path, description })
        .await?;
    wait(call, authority, started, StatusCode::ACCEPTED, query.wait).await
}

/// Lists the jobs of the namespace: those that run, and the last hundred of each shard.
#[utoipa::path(get, path = "/api/v1/jobs", operation_id = "list_jobs", tag = "jobs", params(JobsQuery),
    responses((status = 200, body = Jobs), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>) -> Answer {
    let query: JobsQuery = call.query()?;
    let authority = call.authorize("").await?;
    // They are there as the owner tells them, and as they are written.
    call.reserve(jitney_gateway::limits::ANSWER_PAGE_BYTES)
        .await?;
    let mut page = Page::begin(call, "jobs").await?;
    let mut last = None;
    if query
        .before
        .is_some_and(|before| i64::try_from(before).is_err())
    {
        return Err(Problem::wrong(
            "before",
            "before: no job has an id of more than 63 bits.",
        ));
    }
    let before = query.before.map(JobId);
    let jobs = call.request(authority, ListJobs { before }).await?;
    let mut next = jobs.next;
    for view in jobs.jobs {
        if page.is_full() {
            next = last;
            break;
        }
        last = Some(view.id);
        page.push(&Job::of(view))?;
    }
    page.respond(&Jobs {
        jobs: Vec::new(),
        next_before: next.map(|next| next.0),
    })
}

/// Returns a job.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", operation_id = "get_job", tag = "jobs", params(("id" = u64, Path, description = "Its id"), WaitQuery),
    responses((status = 200, body = Job), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get(call: &Call<'_>, id: &str) -> Answer {
    let query: WaitQuery = call.query()?;
    let id = read_id(id)?;
    let authority = call.authorize("").await?;
    let view = call.request(authority.clone(), ReadJob(id)).await?;
    wait(call, authority, view, StatusCode::OK, query.wait).await
}

/// Cancels a job. The changes that it has made stay.
#[utoipa::path(delete, path = "/api/v1/jobs/{id}", operation_id = "cancel_job", tag = "jobs", params(("id" = u64, Path, description = "Its id")),
    responses((status = 200, body = Job), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn cancel(call: &Call<'_>, id: &str) -> Answer {
    let id = read_id(id)?;
    let view = call.fetch("", CancelJob(id)).await?;
    call.answer(StatusCode::OK, &Job::of(view)).await
}

/// Answers with a job when it has ended, or after some seconds.
async fn wait(
    call: &Call<'_>,
    authority: jitney_broker::access::Authority,
    mut view: JobView,
    status: StatusCode,
    seconds: u64,
) -> Answer {
    /// How often the job is looked at.
    const PAUSE: Duration = Duration::from_millis(25);
    if limits::JOB_WAIT_SECONDS_MAX < seconds {
        let max = limits::JOB_WAIT_SECONDS_MAX;
        let text = format!("wait is {seconds}; up to {max} seconds are allowed.");
        return Err(Problem::wrong("wait", text));
    }
    let until = Instant::now() + Duration::from_secs(seconds);
    while view.job.state == JobState::Running && Instant::now() < until {
        sleep(PAUSE).await;
        view = call.request(authority.clone(), ReadJob(view.id)).await?;
    }
    call.answer(status, &Job::of(view)).await
}

fn read_id(text: &str) -> Result<JobId, Problem> {
    let id = text.parse().map(JobId);
    id.map_err(|_| Problem::bad_request(format!("'{text}' is no id of a job.")))
}

impl Job {
    pub(super) fn of(view: JobView) -> Self {
        let job = view.job;
        Self {
            id: view.id.0,
            entity: view.path,
            selection: MessageSelection::of(&job.description.selection),
            action: Action::of(job.description.action),
            limit: job.description.most,
            state: match job.state {
                JobState::Running => RunState::Running,
                JobState::Completed => RunState::Completed,
                JobState::Cancelled => RunState::Cancelled,
                JobState::Failed => RunState::Failed,
            },
            error: job.error,
            waits: view.waits,
            created_at: time(job.created_at),
            ended_at: job.ended_at.map(time),
            total: job.total,
            matched: job.matched,
            changed: job.changed,
            skipped: job.skipped,
            last_skipped: job.last_skipped,
        }
    }
}

impl Action {
    fn read(self) -> Result<JobAction, Problem> {
        Ok(match self {
            Self::Delete {} => JobAction::Delete,
            Self::Move { to, action, body } => JobAction::Move { to, action, body },
            Self::DeadLetter {
                reason,
                description,
            } => JobAction::DeadLetter {
                reason,
                description,
            },
            Self::Activate {} => JobAction::Activate,
            Self::Reschedule { scheduled_for } => {
                let due = instant("action.scheduled_for", Some(scheduled_for))?;
                let due = due.ok_or_else(|| {
                    Problem::wrong("action.scheduled_for", "action.scheduled_for is missing.")
                })?;
                JobAction::Reschedule { due }
            }
        })
    }

    fn of(action: JobAction) -> Self {
        match action {
            JobAction::Delete => Self::Delete {},
            JobAction::Move { to, action, body } => Self::Move { to, action, body },
            JobAction::DeadLetter {
                reason,
                description,
            } => Self::DeadLetter {
                reason,
                description,
            },
            JobAction::Activate => Self::Activate {},
            JobAction::Reschedule { due } => Self::Reschedule {
                scheduled_for: time(due),
            },
        }
    }
}
