//! What operators ask, what must come of it, and what they must be told.

use std::any::Any;
use std::sync::Arc;

use jitney_base::ids::{LockToken, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{Denied, DeniedKind, JobState};
use jitney_gateway::operations::{JobView, JobsPage};
use jitney_gateway::request::AnyAnswer;

use super::model::{Job, State, number};
use super::{Auditor, Observed, Round, expect_equal, unexpected};
use crate::sim::acts::Place;
use crate::sim::operations::Request;

/// Jobs that run at once: all are of one namespace.
const JOBS_MAX: usize =
    jitney_base::limits::part_for_one(jitney_gateway::limits::JOBS_RUNNING_MAX, 0);

/// What a request must be answered with.
#[derive(Debug)]
pub(in crate::sim) struct Due {
    /// The group that must be durable before that.
    pin: u64,
    told: Told,
}

#[derive(Debug)]
enum Told {
    Denied(DeniedKind),
    Job(u64, Job),
    /// The newest first.
    Jobs(Vec<(u64, Job)>),
    /// Numbers of messages in their order, and the serial numbers of their locks.
    Locked(Place, Vec<(i64, u64)>),
    Settled(Vec<Result<(), DeniedKind>>),
}

/// What an operator learns.
#[derive(Debug)]
pub(in crate::sim) enum Outcome {
    Nothing,
    Jobs(Vec<u64>),
    Locked(Place, Vec<(i64, LockToken)>),
}

impl Auditor {
    /// Judges the step of an operator's request; returns what it must be answered with.
    pub(in crate::sim) fn operate(
        &mut self,
        observed: Observed<'_>,
        request: &Request,
    ) -> Result<(Vec<u64>, Due), String> {
        let Observed { now, group, .. } = observed;
        let mut round = Round::new(&self.model, observed)?;
        let model = &mut self.model;
        let unknown = Due {
            pin: 0,
            told: Told::Denied(DeniedKind::NotFound),
        };
        let of_job = |model: &super::Model, id: u64| {
            let job = model.jobs.all.get(&id)?;
            Some(Due {
                pin: job.recorded,
                told: Told::Job(id, job.clone()),
            })
        };
        let due = match request {
            Request::Begin(_) if JOBS_MAX <= model.jobs.running().count() => Due {
                pin: 0,
                told: Told::Denied(DeniedKind::Limit),
            },
            Request::Begin(work) => {
                let id = model.begin(&round, (**work).clone());
                of_job(model, id).expect("it has begun")
            }
            Request::Cancel(id) => {
                let jobs = Arc::make_mut(&mut model.jobs);
                if let Some(job) = jobs.all.get_mut(id)
                    && job.state == JobState::Running
                {
                    job.end(now, JobState::Cancelled);
                    job.recorded = group;
                    let told = Told::Job(*id, job.clone());
                    jobs.forget();
                    Due { pin: group, told }
                } else {
                    of_job(model, *id).unwrap_or(unknown)
                }
            }
            Request::Look(id) => of_job(model, *id).unwrap_or(unknown),
            Request::Jobs => {
                let all = model.jobs.all.iter().rev();
                let all: Vec<(u64, Job)> = all.map(|(&id, job)| (id, job.clone())).collect();
                Due {
                    pin: all.iter().map(|(_, job)| job.recorded).max().unwrap_or(0),
                    told: Told::Jobs(all),
                }
            }
            Request::Lock { place, numbers } => {
                let (pin, told) = match model.lock_by_number(&mut round, *place, numbers)? {
                    Ok((pin, locked)) => (pin, Told::Locked(*place, locked)),
                    Err(kind) => (0, Told::Denied(kind)),
                };
                Due { pin, told }
            }
            Request::Settle { place, settlements } => {
                let settled = model.settle_locked(&mut round, *place, settlements)?;
                let is_done = settled.iter().any(Result::is_ok);
                Due {
                    pin: if is_done { group } else { 0 },
                    told: Told::Settled(settled),
                }
            }
        };
        Ok((round.finish()?, due))
    }

    /// Judges a turn of a job.
    pub(in crate::sim) fn work(&mut self, observed: Observed<'_>) -> Result<Vec<u64>, String> {
        let mut round = Round::new(&self.model, observed)?;
        self.model.work(&mut round)?;
        self.model.all_go_on(&mut round)?;
        round.finish()
    }

    /// Returns what a job did in its last turn, for people.
    pub(in crate::sim) fn last_turn(&self) -> String {
        let jobs = &self.model.jobs;
        if let Some(page) = &jobs.page {
            let numbers = page.ordinals.iter().map(|&ordinal| number(ordinal));
            return format!(
                "job {} looks at {:?}",
                page.job,
                numbers.collect::<Vec<i64>>()
            );
        }
        let last = jobs.last.and_then(|id| Some((id, jobs.all.get(&id)?)));
        last.map_or_else(String::new, |(id, job)| {
            let counts = [job.matched, job.changed, job.skipped];
            let (state, reason) = (job.state, job.reason);
            format!("job {id} is {state:?}, {counts:?} {reason:?}")
        })
    }

    /// Holds the answer to a request against what there is to be.
    pub(in crate::sim) fn answered(
        &mut self,
        due: &Due,
        answer: &Result<Box<dyn AnyAnswer>, Denied>,
        paths: &[String],
    ) -> Result<Outcome, String> {
        self.released(due.pin)?;
        let answer = match (&due.told, answer) {
            (Told::Denied(kind), Err(denied)) if denied.kind == *kind => {
                return Ok(Outcome::Nothing);
            }
            (_, Ok(answer)) => &**answer,
            (told, Err(denied)) => {
                return Err(format!("expected {told:?}\n       found {denied:?}"));
            }
        };
        match &due.told {
            Told::Job(id, job) => {
                check(*id, job, of_kind(answer)?, paths)?;
                Ok(Outcome::Jobs(vec![*id]))
            }
            Told::Jobs(jobs) => {
                let JobsPage { jobs: views, next } = of_kind(answer)?;
                if next.is_some() {
                    return Err(unexpected(&"the last page", next));
                }
                if jobs.len() != views.len() {
                    return Err(unexpected(jobs, views));
                }
                for ((id, job), view) in jobs.iter().zip(views) {
                    check(*id, job, view, paths)?;
                }
                Ok(Outcome::Jobs(jobs.iter().map(|(id, _)| *id).collect()))
            }
            Told::Locked(place, locks) => {
                let found: &Vec<(SequenceNumber, LockToken)> = of_kind(answer)?;
                let found: Vec<(i64, LockToken)> = found
                    .iter()
                    .map(|(SequenceNumber(number), token)| (number.cast_signed(), *token))
                    .collect();
                let numbers = found.iter().map(|(number, _)| number);
                let wanted = locks.iter().map(|(number, _)| number);
                if !numbers.eq(wanted) {
                    return Err(unexpected(locks, &found));
                }
                for ((_, serial), (_, token)) in locks.iter().zip(&found) {
                    self.model.name_lock(*place, *serial, *token);
                }
                Ok(Outcome::Locked(*place, found))
            }
            Told::Settled(settled) => {
                let found: &Vec<Result<(), Denied>> = of_kind(answer)?;
                let found: Vec<Result<(), DeniedKind>> = found
                    .iter()
                    .map(|result| result.clone().map_err(|denied| denied.kind))
                    .collect();
                expect_equal(settled, &found)?;
                Ok(Outcome::Nothing)
            }
            Told::Denied(kind) => Err(format!("expected {kind:?}\n       found {answer:?}")),
        }
    }

    /// Returns how many jobs there were, how many messages they changed, and how many they left.
    pub(in crate::sim) fn jobs_done(&self) -> [u64; 3] {
        let jobs = &self.model.jobs;
        let changed = jobs.all.values().map(|job| job.changed).sum();
        let skipped = jobs.all.values().map(|job| job.skipped).sum();
        [jobs.next, changed, skipped]
    }

    /// Returns the queues that have messages, and how many.
    pub(in crate::sim) fn filled(&self) -> Vec<(Place, u64)> {
        let count = |place| u64::try_from(self.model.queue(place).messages.len()).expect("fits");
        let places = self.model.places().map(|place| (place, count(place)));
        places.filter(|(_, count)| 0 < *count).collect()
    }

    /// Returns the numbers of the messages of a queue.
    pub(in crate::sim) fn numbers(&self, place: Place) -> Vec<i64> {
        let messages = self.model.queue(place).messages.keys();
        messages.map(|&ordinal| number(ordinal)).collect()
    }

    /// Returns the numbers of deferred messages.
    pub(in crate::sim) fn deferred(&self) -> Vec<(Place, i64)> {
        let places = self.model.places();
        let found = places.flat_map(|place| {
            let messages = self.model.queue(place).messages.iter();
            let deferred = messages.filter(|(_, message)| message.state == State::Deferred);
            deferred.map(move |(&ordinal, _)| (place, number(ordinal)))
        });
        found.collect()
    }

    /// Returns the jobs that run still.
    pub(in crate::sim) fn running_jobs(&self) -> Vec<u64> {
        self.model.jobs.running().collect()
    }
}

/// Holds what is told of a job against what it is.
fn check(id: u64, job: &Job, view: &JobView, paths: &[String]) -> Result<(), String> {
    let told = &view.job;
    let times = (job.begun, job.ended);
    let told_times = (
        told.created_at.as_millis(),
        told.ended_at.map(Timestamp::as_millis),
    );
    let counts = [job.matched, job.changed, job.skipped];
    let is_reason = match (job.reason, &told.last_skipped) {
        (Some(reason), Some(told)) => told.contains(reason),
        (reason, told) => reason.is_none() && told.is_none(),
    };
    let is_it = view.id.0 == id
        && view.path == job.work.place.address(paths)
        && told.description == job.work.description(paths)
        && told.state == job.state
        && told.error.is_none()
        && times == told_times
        && counts == [told.matched, told.changed, told.skipped]
        && is_reason;
    if is_it {
        Ok(())
    } else {
        Err(unexpected(&(id, job), view))
    }
}

/// Returns an answer as one of its kind.
fn of_kind<T: 'static>(answer: &dyn AnyAnswer) -> Result<&T, String> {
    let any: &dyn Any = answer;
    any.downcast_ref()
        .ok_or_else(|| format!("{answer:?} is of another kind"))
}
