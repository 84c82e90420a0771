//! Jobs: changes of many messages, in bounded steps that survive a restart.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use serde::Deserialize;
use tokio::time::{Instant, sleep};
use utoipa::IntoParams;

use super::call::{Answer, Call};
use super::page::Page;
use super::problem::Problem;
use super::selection::{instant, read_selection, selection_of};
use crate::limits;
use jitney_api::jobs::{Action, Job, JobRequest, Jobs, RunState};
use jitney_base::ids::JobId;
use jitney_broker::namespace::{JobAction, JobDescription, JobState};
use jitney_gateway::admin::time;
use jitney_gateway::operations::{CancelJob, JobView, ListJobs, ReadJob, StartJob};

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
        selection: read_selection(request.selection, "selection.")?,
        action: read_action(request.action)?,
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
        page.push(&job_of(view))?;
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
    call.answer(StatusCode::OK, &job_of(view)).await
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
    call.answer(status, &job_of(view)).await
}

fn read_id(text: &str) -> Result<JobId, Problem> {
    let id = text.parse().map(JobId);
    id.map_err(|_| Problem::bad_request(format!("'{text}' is no id of a job.")))
}

pub(super) fn job_of(view: JobView) -> Job {
    let job = view.job;
    Job {
        id: view.id.0,
        entity: view.path,
        selection: selection_of(&job.description.selection),
        action: action_of(job.description.action),
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

fn read_action(action: Action) -> Result<JobAction, Problem> {
    Ok(match action {
        Action::Delete {} => JobAction::Delete,
        Action::Move { to, action, body } => JobAction::Move { to, action, body },
        Action::DeadLetter {
            reason,
            description,
        } => JobAction::DeadLetter {
            reason,
            description,
        },
        Action::Activate {} => JobAction::Activate,
        Action::Reschedule { scheduled_for } => {
            let due = instant("action.scheduled_for", Some(scheduled_for))?;
            let due = due.ok_or_else(|| {
                Problem::wrong("action.scheduled_for", "action.scheduled_for is missing.")
            })?;
            JobAction::Reschedule { due }
        }
    })
}

fn action_of(action: JobAction) -> Action {
    match action {
        JobAction::Delete => Action::Delete {},
        JobAction::Move { to, action, body } => Action::Move { to, action, body },
        JobAction::DeadLetter {
            reason,
            description,
        } => Action::DeadLetter {
            reason,
            description,
        },
        JobAction::Activate => Action::Activate {},
        JobAction::Reschedule { due } => Action::Reschedule {
            scheduled_for: time(due),
        },
    }
}
