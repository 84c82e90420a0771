//! Jobs: listed, begun and cancelled.

use crate::Gateway;
use crate::denied::host_shown;
use crate::limits;
use crate::request::{Request, Requester};
use jitney_base::address;
use jitney_base::ids::{EntityId, JobId};
use jitney_base::rights::Right;
use jitney_broker::namespace::{
    Denied, DeniedKind, Job, JobAction, JobDescription, JobState, StepContext,
};

/// Begin a job on one queue.
#[derive(Debug)]
pub struct StartJob {
    /// The path.
    pub path: String,
    /// The messages that it means, and the change.
    pub description: JobDescription,
}

/// List jobs of the namespace, the newest first.
#[derive(Debug)]
pub struct ListJobs {
    /// Those with smaller ids only; all if it is not given.
    pub before: Option<JobId>,
}

/// Look at a job.
#[derive(Debug)]
pub struct ReadJob(pub JobId);

/// Cancel a job.
#[derive(Debug)]
pub struct CancelJob(pub JobId);

/// Some jobs.
#[derive(Debug)]
pub struct JobsPage {
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// The one before which there are more; `None` at the end.
    pub next: Option<JobId>,
}

/// A job.
#[derive(Debug, Clone)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// The address of its queue, without a namespace.
    pub path: String,
    /// The job.
    pub job: Job,
    /// Why it runs and has no turn, if that is so.
    pub waits: Option<String>,
}

impl Request for StartJob {
    type Answer = JobView;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<JobView, Denied> {
        let (queue, address) = gateway.at_path(requester, &self.path, Right::Manage)?;
        let description = self.description;
        let prefix = address::namespace_of(&address.path);
        gateway.check_running_jobs(prefix, &address.path)?;
        if let Some(to) = description.action.destination() {
            let path = format!("{prefix}{}", to.trim_matches('/'));
            let checked = requester.authority.check_above(&path, Right::Send);
            checked.map_err(|text| {
                Denied::new(DeniedKind::Unauthorized, text, to).about("action.to")
            })?;
            if gateway.namespaces.resolve_path(&path).is_none() {
                let text = format!("action.to: there is no entity '{to}'.");
                let denied = Denied::new(DeniedKind::Argument, text, &address.path);
                return Err(denied.about("action.to"));
            }
        }
        let detail = serde_json::to_string(&description).unwrap_or_default();
        let started = gateway.namespaces.start_job(cx, queue, description);
        let refused = |error| Denied::new(DeniedKind::Argument, format!("{error}."), &address.path);
        let id = started.map_err(refused)?;
        let detail = format!("job {}: {detail}", id.0);
        let path = gateway.namespaces.name_of(queue);
        gateway.audit(cx, requester, "start_job", &path, &detail);
        let job = gateway.namespaces.job(id);
        let view = job.map(|(queue, job)| gateway.job_view(id, queue, job));
        view.ok_or_else(|| Denied::not_found("", &address.path))
    }
}

impl Request for ListJobs {
    type Answer = JobsPage;

    fn run(
        self,
        gateway: &mut Gateway,
        _cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<JobsPage, Denied> {
        let prefix = gateway.check_namespace(requester, Right::Listen)?;
        let jobs = gateway.namespaces.jobs();
        let jobs = jobs.filter(|(id, _, job)| {
            address::namespace_of(&job.path) == prefix
                && self.before.is_none_or(|before| *id < before)
        });
        let (mut views, mut bytes) = (Vec::<JobView>::new(), 0);
        for (id, queue, job) in jobs {
            if limits::ANSWER_PAGE_BYTES <= bytes {
                let next = views.last().map(|view| view.id);
                return Ok(JobsPage { jobs: views, next });
            }
            bytes += weight(&job.description);
            views.push(gateway.job_view(id, queue, job));
        }
        Ok(JobsPage {
            jobs: views,
            next: None,
        })
    }
}

impl Request for ReadJob {
    type Answer = JobView;

    fn run(
        self,
        gateway: &mut Gateway,
        _cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<JobView, Denied> {
        gateway.job(requester, self.0, Right::Listen)
    }
}

impl Request for CancelJob {
    type Answer = JobView;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<JobView, Denied> {
        let Self(id) = self;
        gateway.job(requester, id, Right::Manage)?;
        gateway.namespaces.cancel_job(cx, id);
        let view = gateway.job(requester, id, Right::Manage)?;
        let detail = format!("job {}", id.0);
        gateway.audit(cx, requester, "cancel_job", &view.job.path, &detail);
        Ok(view)
    }
}

impl Gateway {
    /// Checks that a namespace may have another job: half of what the others of the shard leave.
    fn check_running_jobs(&self, prefix: &str, path: &str) -> Result<(), Denied> {
        let jobs = self.namespaces.jobs();
        let running = jobs.filter(|(_, _, job)| job.state == JobState::Running);
        let own = running.filter(|(_, _, job)| address::namespace_of(&job.path) == prefix);
        let own = own.count();
        let others = self.namespaces.running_jobs().saturating_sub(own);
        let most = jitney_base::limits::part_for_one(limits::JOBS_RUNNING_MAX, others);
        if own < most {
            return Ok(());
        }
        let text = format!("{own} jobs of the namespace run already; {most} may run now.");
        Err(Denied::new(DeniedKind::Limit, text, path))
    }

    fn job(&self, requester: &Requester, id: JobId, right: Right) -> Result<JobView, Denied> {
        let host = requester.host.as_deref();
        let prefix = self.namespaces.directory().namespace_of(host);
        let found = self.namespaces.job(id);
        let found = found.filter(|(_, job)| {
            address::namespace_of(&job.path) == prefix
                && requester.authority.check_above(&job.path, right).is_ok()
        });
        let (queue, job) = found.ok_or_else(|| {
            let text = format!(
                "There is no job {} in {}, or no right to it.",
                id.0,
                host_shown(host)
            );
            Denied::new(DeniedKind::NotFound, text, "")
        })?;
        Ok(self.job_view(id, queue, job))
    }

    /// Returns a job, and whether it waits for room.
    fn job_view(&self, id: JobId, queue: EntityId, job: &Job) -> JobView {
        let path = address::without_namespace(&job.path);
        let path = if queue == queue.dead_letters() {
            format!("{path}/$DeadLetterQueue")
        } else if queue == queue.transfer_dead_letters() {
            format!("{path}/$Transfer/$DeadLetterQueue")
        } else {
            path.to_owned()
        };
        JobView {
            id,
            path,
            job: job.clone(),
            waits: self.namespaces.waits(job),
        }
    }
}

/// Returns the bytes of a description's texts and numbers in memory, about.
fn weight(description: &JobDescription) -> usize {
    let JobDescription {
        selection, action, ..
    } = description;
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = match action {
        JobAction::Move { to, action, body } => length(to) + length(action) + length(body),
        JobAction::DeadLetter {
            reason,
            description,
        } => length(reason) + length(description),
        JobAction::Delete | JobAction::Activate | JobAction::Reschedule { .. } => 0,
    };
    let selected = [
        &selection.session_id,
        &selection.message_id,
        &selection.correlation_id,
        &selection.reason,
        &selection.filter,
        &selection.text,
        &selection.json_path,
    ];
    let selected: usize = selected.into_iter().map(length).sum();
    let numbers = size_of_val(selection.numbers.as_slice());
    size_of::<JobView>() + texts + selected + numbers
}
