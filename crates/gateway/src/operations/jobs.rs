//! Jobs: listed, begun and cancelled.

use super::{JobView, Operated};
use crate::Gateway;
use crate::denied::host_shown;
use crate::limits;
use jitney_base::address::{self, EntityAddress};
use jitney_base::ids::{EntityId, JobId};
use jitney_base::rights::Right;
use jitney_broker::access::Authority;
use jitney_broker::namespace::{
    Denied, DeniedKind, Job, JobAction, JobDescription, JobState, StepContext,
};

impl Gateway {
    pub(super) fn list_jobs(&self, prefix: &str, before: Option<JobId>) -> Operated {
        let jobs = self.namespaces.jobs();
        let jobs = jobs.filter(|(id, _, job)| {
            address::namespace_of(&job.path) == prefix && before.is_none_or(|before| *id < before)
        });
        let (mut views, mut bytes) = (Vec::<JobView>::new(), 0);
        for (id, queue, job) in jobs {
            if limits::ANSWER_PAGE_BYTES <= bytes {
                let next = views.last().map(|view| view.id);
                return Operated::Jobs(views, next);
            }
            bytes += weight(&job.description);
            views.push(self.job_view(id, queue, job));
        }
        Operated::Jobs(views, None)
    }

    pub(super) fn start_job(
        &mut self,
        cx: &mut StepContext<'_>,
        authority: &Authority,
        queue: EntityId,
        address: &EntityAddress,
        description: JobDescription,
    ) -> Result<Operated, Denied> {
        let prefix = address::namespace_of(&address.path);
        self.check_running_jobs(prefix, &address.path)?;
        if let Some(to) = description.action.destination() {
            let path = format!("{prefix}{}", to.trim_matches('/'));
            let checked = authority.check_above(&path, Right::Send);
            checked.map_err(|text| {
                Denied::new(DeniedKind::Unauthorized, text, to).about("action.to")
            })?;
            if self.namespaces.resolve_path(&path).is_none() {
                let text = format!("action.to: there is no entity '{to}'.");
                let denied = Denied::new(DeniedKind::Argument, text, &address.path);
                return Err(denied.about("action.to"));
            }
        }
        let detail = serde_json::to_string(&description).unwrap_or_default();
        let started = self.namespaces.start_job(cx, queue, description);
        let refused = |error| Denied::new(DeniedKind::Argument, format!("{error}."), &address.path);
        let id = started.map_err(refused)?;
        let detail = format!("job {}: {detail}", id.0);
        let path = self.namespaces.name_of(queue);
        self.audit(cx, authority, "start_job", &path, &detail);
        let job = self.namespaces.job(id);
        let view = job.map(|(queue, job)| self.job_view(id, queue, job));
        view.map(|view| Operated::Job(Box::new(view)))
            .ok_or_else(|| Denied::not_found("", &address.path))
    }

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

    pub(super) fn job(
        &self,
        host: Option<&str>,
        authority: &Authority,
        id: JobId,
        right: Right,
    ) -> Result<JobView, Denied> {
        let prefix = self.namespaces.directory().namespace_of(host);
        let found = self.namespaces.job(id);
        let found = found.filter(|(_, job)| {
            address::namespace_of(&job.path) == prefix
                && authority.check_above(&job.path, right).is_ok()
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

    pub(super) fn cancel_job(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        id: JobId,
    ) -> Result<JobView, Denied> {
        self.job(host, authority, id, Right::Manage)?;
        self.namespaces.cancel_job(cx, id);
        let view = self.job(host, authority, id, Right::Manage)?;
        let detail = format!("job {}", id.0);
        self.audit(cx, authority, "cancel_job", &view.job.path, &detail);
        Ok(view)
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
