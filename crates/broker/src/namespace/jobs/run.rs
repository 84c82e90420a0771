//! The steps of jobs.

use std::sync::Arc;

use bytes::Bytes;

use super::template::Template;
use super::{Job, JobAction, JobDescription, JobRefused, JobState, Plan, Running};
use crate::limits;
use crate::namespace::forwarding::Forward;
use crate::namespace::{Lack, Namespaces, Room, StepContext};
use jitney_base::address;
use jitney_base::ids::{BodyRef, EntityId, JobId};
use jitney_message::{Amendments, Field, Message, Stamps, render_with_body};
use jitney_queue::{
    Arrival, Arriving, Conditions, DeadLetter, ForwardFacts, Inspected, PageBounds, Queue, Record,
    ScanBudget, ScanPosition, without_dead_letter,
};
use jitney_rules::{Facts, Share};

/// The messages of one step of a job.
#[derive(Debug)]
pub struct JobPage {
    job: JobId,
    queue: EntityId,
    messages: Vec<Inspected>,
    /// The position behind them; none at the end.
    next: Option<ScanPosition>,
    needs_bytes: bool,
}

impl JobPage {
    /// Returns where the bytes are that the step needs.
    #[must_use]
    pub fn bodies(&self) -> Vec<BodyRef> {
        let bodies = self.messages.iter().map(|message| message.body);
        bodies.filter(|_| self.needs_bytes).collect()
    }
}

/// Why a message is left as it is.
type Left = String;

/// Returns how many messages a job looks at.
fn messages_of(queue: &Queue, conditions: &Conditions) -> u64 {
    let named = conditions.numbers.len();
    let count = if named == 0 { queue.len() } else { named };
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl Namespaces {
    /// Returns how many jobs run.
    #[must_use]
    pub fn running_jobs(&self) -> usize {
        self.jobs.running()
    }

    /// Returns how many of the jobs that run may have a turn: where messages are refused, those that delete.
    #[must_use]
    pub fn workable_jobs(&self) -> usize {
        self.jobs.workable(self.room)
    }

    /// Returns whether the last step of a job has taken so long that others are to have their turn before the next.
    #[must_use]
    pub fn job_was_costly(&self) -> bool {
        self.jobs.was_costly
    }

    /// Returns why a job that runs has no turn, for operators; none if it may have one.
    #[must_use]
    pub fn waits(&self, job: &Job) -> Option<String> {
        let lack = match self.room {
            Room::None(lack) if job.state == JobState::Running && !job.may_work(self.room) => lack,
            Room::None(_) | Room::Enough => return None,
        };
        let (why, remedy) = match lack {
            Lack::Disk => (
                "The broker's disk is full",
                "make space in the file system of the data directory, ",
            ),
            Lack::Memory => ("The broker's memory is full", "raise --memory-limit, "),
            Lack::Store => return None,
        };
        Some(format!(
            "{why}, and this job frees none of it: it continues when there is room. For that, {remedy}delete messages with \
             'jitney purge', delete entities, or let receivers complete messages."
        ))
    }

    /// Returns a job, and the queue that it is about.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<(EntityId, &Job)> {
        self.jobs.get(id)
    }

    /// Returns all jobs, the newest first.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, EntityId, &Job)> {
        self.jobs.iter().rev()
    }

    /// Begins a job on a queue. Its record is of this step.
    ///
    /// # Errors
    ///
    /// If its description cannot be read: nothing has changed then.
    pub fn start_job(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        description: JobDescription,
    ) -> Result<JobId, JobRefused> {
        let plan = description.compile()?;
        let id = JobId(self.jobs.next);
        self.jobs.next += 1;
        let Some(node) = self.node(queue) else {
            return Ok(id);
        };
        let job = Job {
            path: node.address.path.clone(),
            description,
            state: JobState::Running,
            error: None,
            created_at: cx.now,
            ended_at: None,
            total: Some(messages_of(&node.queue, &plan.selector.conditions)),
            matched: 0,
            changed: 0,
            skipped: 0,
            last_skipped: None,
            position: 0,
            until: node.queue.until_now(),
        };
        self.jobs.running.insert(id, Running { queue, job, plan });
        self.record_job(cx, id);
        Ok(id)
    }

    /// Cancels a job, if it runs; the changes that it has made stay.
    pub fn cancel_job(&mut self, cx: &mut StepContext<'_>, id: JobId) {
        self.end_job(cx, id, JobState::Cancelled, None);
    }

    /// Lets jobs continue where they were after the last record was replayed. One that an earlier release has begun and that
    /// this one refuses has failed.
    pub(in crate::namespace) fn resume_jobs(&mut self, cx: &mut StepContext<'_>) {
        for (id, (queue, mut job)) in std::mem::take(&mut self.jobs.restored) {
            match job.description.compile() {
                Ok(plan) => {
                    if let Some(node) = self.queues.get(queue) {
                        let ScanPosition(position) =
                            node.queue.position_again(ScanPosition(job.position));
                        job.position = position;
                        job.until = node.queue.until_again(&job.until);
                    }
                    self.jobs.running.insert(id, Running { queue, job, plan });
                }
                Err(refused) => {
                    job.error = Some(format!("this release refuses it: {refused}"));
                    job.end(cx.now, JobState::Failed);
                    self.jobs.ended.insert(id, (queue, job));
                    self.record_job(cx, id);
                }
            }
        }
    }

    /// Returns the messages of the next step of some job.
    pub fn job_page(&mut self, cx: &mut StepContext<'_>) -> Option<JobPage> {
        let id = self.jobs.next_running(self.room)?;
        self.jobs.last = Some(id);
        let queue = self.jobs.get(id)?.0;
        if self.node(queue).is_none() {
            let text = "the entity was deleted".to_owned();
            self.end_job(cx, id, JobState::Failed, Some(text));
            return None;
        }
        // What is due there is done first.
        self.poke(cx, queue);
        let Running { job, plan, .. } = self.jobs.running.get(&id)?;
        let needs_bytes = plan.needs_bytes(&job.description.action);
        let bytes_max = if needs_bytes {
            limits::JOB_BYTES
        } else {
            usize::MAX
        };
        let (messages, next) = self.queue(queue)?.inspect(
            job.position,
            Some(&job.until),
            &plan.selector.conditions,
            PageBounds {
                messages_max: limits::JOB_MESSAGES,
                bytes_max,
            },
            &mut ScanBudget::of(limits::JOB_SCANNED),
        );
        Some(JobPage {
            job: id,
            queue,
            messages,
            next,
            needs_bytes,
        })
    }

    /// Does one step of a job: changes the messages of a page whose bytes have been read, as far as they are needed, and
    /// records its progress. Bytes that cannot be read are not among them.
    pub fn work(
        &mut self,
        cx: &mut StepContext<'_>,
        page: JobPage,
        find: &dyn Fn(BodyRef) -> Option<Bytes>,
    ) {
        let JobPage {
            job: id,
            queue,
            messages,
            next,
            needs_bytes,
        } = page;
        // It may have been cancelled while its messages were read.
        let Some(mut running) = self.jobs.running.remove(&id) else {
            return;
        };
        let mut share = Share::default();
        let mut position = next;
        for seen in messages {
            if share.is_spent() || limits::GROUP_BYTES <= cx.journal.open_bytes() {
                position = self
                    .queue(queue)
                    .map(|queue| queue.position_of(seen.number));
                break;
            }
            // It may have changed while its bytes were read.
            let conditions = &running.plan.selector.conditions;
            let now = self.queue(queue);
            let now = now.and_then(|queue| queue.inspect_one(seen.number, conditions));
            let Some(inspected) = now else {
                continue;
            };
            let message = if needs_bytes {
                let bytes = find(seen.body).and_then(|bytes| Message::parse(bytes).ok());
                if bytes.is_none() {
                    running.job.skip("the message's bytes are damaged");
                    continue;
                }
                bytes
            } else {
                None
            };
            let meant = Meant {
                queue,
                inspected,
                message,
            };
            self.work_on(cx, &mut running.job, &running.plan, &meant, &mut share);
            if running.job.is_over() {
                position = None;
                break;
            }
        }
        self.jobs.was_costly = share.is_spent();
        if let Some(ScanPosition(position)) = position {
            running.job.position = position;
            self.jobs.running.insert(id, running);
        } else {
            running.job.end(cx.now, JobState::Completed);
            self.jobs.ended.insert(id, (queue, running.job));
        }
        self.record_job(cx, id);
    }

    fn work_on(
        &mut self,
        cx: &mut StepContext<'_>,
        job: &mut Job,
        plan: &Plan,
        meant: &Meant,
        share: &mut Share,
    ) {
        let Meant {
            queue,
            inspected,
            message,
        } = meant;
        let facts = self
            .queue(*queue)
            .and_then(|queue| queue.facts(inspected.number, 0));
        if let (Some(message), Some(facts)) = (message, &facts) {
            let stamps = &inspected.stamps;
            match plan.selector.selects(message, stamps, facts, share) {
                Ok(true) => {}
                Ok(false) => return,
                Err(undecided) => return job.skip(undecided.to_string()),
            }
        }
        job.matched += 1;
        if inspected.is_locked {
            return job.skip("a receiver has the message locked");
        }
        let is_changed = match (&job.description.action, message, facts) {
            (JobAction::Move { to, .. }, Some(message), Some(facts)) => {
                let moving = Moving {
                    from: *queue,
                    inspected,
                    message,
                    facts: &facts,
                };
                let to = to.clone();
                self.move_one(cx, plan, &moving, to.as_deref(), share)
            }
            (action, ..) => self.change_one(cx, action, meant),
        };
        match is_changed {
            Ok(()) => job.changed += 1,
            Err(why) => job.skip(why),
        }
    }

    fn change_one(
        &mut self,
        cx: &mut StepContext<'_>,
        action: &JobAction,
        meant: &Meant,
    ) -> Result<(), Left> {
        let number = meant.inspected.number;
        let is_changed = self.with_queue(cx, meant.queue, |queue, cx| {
            let is_changed = match action {
                JobAction::Delete => queue.delete_one(cx, number),
                JobAction::DeadLetter {
                    reason,
                    description,
                } => {
                    let reason = DeadLetter {
                        reason: reason.clone(),
                        description: description.clone(),
                        amendments: Amendments::default(),
                    };
                    queue.dead_letter_one(cx, number, Some(reason.amended()))
                }
                JobAction::Activate => queue.activate_one(cx, number),
                JobAction::Reschedule { due } => queue.reschedule_one(cx, number, *due),
                JobAction::Move { .. } => false,
            };
            queue.dispatch(cx);
            is_changed
        });
        if is_changed == Some(true) {
            return Ok(());
        }
        Err("the message is gone, or is in a state in which this cannot be done".to_owned())
    }

    /// Moves one message to another entity, as a new one there.
    fn move_one(
        &mut self,
        cx: &mut StepContext<'_>,
        plan: &Plan,
        moving: &Moving<'_>,
        to: Option<&str>,
        share: &mut Share,
    ) -> Result<(), Left> {
        let &Moving {
            from,
            inspected,
            message,
            facts,
        } = moving;
        let target = self.target_of(from, inspected, to)?;
        let mut changes = without_dead_letter(inspected.stamps.amendments.as_deref());
        if let Some(action) = &plan.action {
            let changed = action.changes(message, &changes, facts, share);
            changes = changed.map_err(|error| format!("action: {error}"))?;
        }
        if let Some(template) = &plan.template {
            return self.rewrite_one(cx, template, moving, changes, target, share);
        }
        let session = changes.field(Field::SessionId);
        let session = if session.is_some() {
            changes.group_id()
        } else {
            message.group_id()
        };
        let session = session.map(ToOwned::to_owned);
        // What is due in either is done first, and forwarded: expiry there may make room.
        self.poke(cx, target);
        self.poke(cx, from);
        let description = self.queue(target).map(|queue| queue.description().clone());
        let description = description.ok_or_else(|| "the destination is gone".to_owned())?;
        if description.requires_session && session.is_none() {
            return Err("the destination requires sessions, and the message has none".to_owned());
        }
        let path = self.name_of(target);
        let facts = ForwardFacts {
            hops: 0,
            bytes: u64::from(inspected.body.length),
            has_session: session.is_some(),
        };
        let refused = self.refusal_to_forward(Some(target), &path, &facts, Forward::Message);
        if let Some(refused) = refused {
            return Err(refused.reason.description.unwrap_or_default());
        }
        let arrival = Arrival::of(message, &description);
        let number = inspected.number;
        let departure = self
            .step(cx, from, |queue, _| queue.take_out(number, target))
            .flatten();
        let Some(mut departure) = departure else {
            return Err("the message is gone".to_owned());
        };
        departure.renew(arrival.time_to_live);
        departure.set_message_session(session.as_deref());
        departure.set_amendments(changes);
        let arriving = Arriving {
            // The entity knows its key already: it is no duplicate of itself.
            duplicate_key: None,
            partition_hash: arrival.partition_hash,
            due: None,
            dead_letter: None,
        };
        self.record_access(cx.now, target);
        self.arrive(cx, departure, arriving);
        // It may have been a dead letter that waited for room at its target: the next one may be smaller.
        self.poke(cx, from);
        Ok(())
    }

    /// Puts a message with a new body into another entity, and removes the one that it was.
    fn rewrite_one(
        &mut self,
        cx: &mut StepContext<'_>,
        template: &Template,
        moving: &Moving<'_>,
        changes: Amendments,
        target: EntityId,
        share: &mut Share,
    ) -> Result<(), Left> {
        let &Moving {
            from,
            inspected,
            message,
            ..
        } = moving;
        if target == from {
            return Err("body: the destination is the queue that the message is in".to_owned());
        }
        // What is due in either is done first, so that nothing but this step removes the message.
        self.poke(cx, target);
        self.poke(cx, from);
        let number = inspected.number;
        let there = self.queue(from);
        let there = there.and_then(|queue| queue.inspect_one(number, &Conditions::default()));
        if there.is_none_or(|there| there.is_locked) {
            return Err("the message is gone".to_owned());
        }
        let description = self.queue(target).map(Queue::description);
        let max = description.map_or(0, |description| description.max_message_bytes);
        // A byte that is read, and one that is written, take about a step.
        share.spend(u64::from(inspected.body.length));
        let body = template.fill(message, &changes, max)?;
        share.spend(u64::try_from(body.len()).unwrap_or(u64::MAX));
        let stamps = Stamps {
            amendments: Some(Arc::new(changes)),
            ..inspected.stamps.clone()
        };
        let mut bytes = Vec::new();
        render_with_body(&mut bytes, message.bytes(), &stamps, body.as_bytes());
        let rewritten = Message::parse(bytes.into()).map_err(|error| error.to_string())?;
        let rewritten = [rewritten];
        let admitted = self.admit(cx, target, &rewritten);
        admitted.map_err(|denied| denied.text)?;
        let duplicates = self.put(cx, target, None, rewritten, |_| ());
        if duplicates == 1 {
            let text = "the destination has had a message with this id, and drops duplicates";
            return Err(text.to_owned());
        }
        let is_removed = self.with_queue(cx, from, |queue, cx| queue.delete_one(cx, number));
        debug_assert_eq!(is_removed, Some(true), "it was there, and not locked");
        Ok(())
    }

    /// Finds the entity that gets a message.
    fn target_of(
        &self,
        from: EntityId,
        inspected: &Inspected,
        to: Option<&str>,
    ) -> Result<EntityId, Left> {
        let path = self
            .node(from)
            .map(|node| node.address.path.clone())
            .unwrap_or_default();
        let prefix = address::namespace_of(&path);
        let source = inspected.stamps.dead_letter_source.as_deref();
        let named = to.or(source);
        let target = match named {
            Some(named) => {
                let found = self.resolve_path(&format!("{prefix}{}", named.trim_matches('/')));
                found.ok_or_else(|| format!("there is no entity '{named}'"))?
            }
            None if from == from.base() => {
                return Err("the message is no dead letter, and no destination is named".to_owned());
            }
            None => from.base(),
        };
        Ok(target)
    }

    fn end_job(
        &mut self,
        cx: &mut StepContext<'_>,
        id: JobId,
        state: JobState,
        error: Option<String>,
    ) {
        let Some(Running { queue, mut job, .. }) = self.jobs.running.remove(&id) else {
            return;
        };
        job.error = error;
        job.end(cx.now, state);
        self.jobs.ended.insert(id, (queue, job));
        self.record_job(cx, id);
    }

    /// Records a job as it is now, and forgets the oldest of too many that have ended.
    fn record_job(&mut self, cx: &mut StepContext<'_>, id: JobId) {
        let Some((entity, job)) = self.jobs.get(id) else {
            return;
        };
        let state = Some(job.to_json());
        cx.journal.append(&Record::Job {
            entity,
            job: id,
            state: state.as_deref(),
        });
        if let Some((job, entity)) = self.jobs.forget_oldest() {
            let state = None;
            cx.journal.append(&Record::Job { entity, job, state });
        }
    }
}

/// A message that a job looks at, in its queue, and its bytes if they are needed.
struct Meant {
    queue: EntityId,
    inspected: Inspected,
    message: Option<Message>,
}

/// A message that a job moves to another entity, with its bytes.
struct Moving<'a> {
    from: EntityId,
    inspected: &'a Inspected,
    message: &'a Message,
    facts: &'a Facts,
}
