//! What jobs do: each message that one is about is changed as a whole, or is left, for a reason.

use std::sync::Arc;

use jitney_broker::namespace::JobState;

use super::*;
use crate::sim::acts::Part;
use crate::sim::audit::model::{Job, Message, NEVER};
use crate::sim::operations::{Body, Change, MARK, Paint, Work};
use crate::sim::wire::IdFrom;

/// Why a message is left: a part of what is told.
type Left = &'static str;

const LOCKED: Left = "a receiver has the message locked";
const UNFIT: Left = "the message is gone, or is in a state in which this cannot be done";
const GONE: Left = "the message is gone";
const NO_DEAD_LETTER: Left = "the message is no dead letter, and no destination is named";
const NO_SESSION: Left = "the destination requires sessions, and the message has none";
const SAME: Left = "body: the destination is the queue that the message is in";
const NO_TEXT: Left = "body: its bytes are no UTF-8";
const NO_PROPERTY: Left = "body: the message has no property color";
const DUPLICATE: Left = "the destination has had a message with this id, and drops duplicates";
/// Of refusals, only whether there is one is said.
const REFUSED: Left = "";

const DEAD_LETTER_PROPERTIES: [&str; 2] = ["DeadLetterReason", "DeadLetterErrorDescription"];

impl Model {
    /// An operator begins a job; returns its id.
    pub(in crate::sim::audit) fn begin(&mut self, round: &Round, work: Work) -> u64 {
        let id = self.jobs.next;
        let place = work.place;
        let job = Job::new(work, round, self.queue(place));
        let jobs = Arc::make_mut(&mut self.jobs);
        jobs.all.insert(id, job);
        jobs.next += 1;
        id
    }

    /// A job has its turn: what it is about is looked up, or is changed.
    pub(in crate::sim::audit) fn work(&mut self, round: &mut Round) -> Result<(), String> {
        let Some(page) = Arc::make_mut(&mut self.jobs).page.take() else {
            // Without room, only those that delete have a turn.
            let has_room = self.room;
            let id = self
                .jobs
                .turn(|work| has_room || work.change == Change::Delete)
                .ok_or("no job may have its turn, and one has")?;
            Arc::make_mut(&mut self.jobs).last = Some(id);
            let place = self.jobs.all[&id].work.place;
            self.due(round, place)?;
            self.arrive(round)?;
            self.go_on(round, place)?;
            let page = self.jobs.all[&id].page(id, self.queue(place));
            Arc::make_mut(&mut self.jobs).page = Some(page);
            return Ok(());
        };
        let job = &self.jobs.all[&page.job];
        if job.state != JobState::Running {
            return Ok(());
        }
        let mut job = job.clone();
        let mut next = page.next;
        for ordinal in page.ordinals {
            self.work_on(round, &mut job, ordinal)?;
            if job.work.most.is_some_and(|most| most <= job.changed) {
                next = None;
                break;
            }
        }
        job.recorded = round.group;
        match next {
            Some(position) => job.position = position,
            None => job.end(round.now, JobState::Completed),
        }
        let jobs = Arc::make_mut(&mut self.jobs);
        jobs.all.insert(page.job, job);
        jobs.forget();
        Ok(())
    }

    fn work_on(&mut self, round: &mut Round, job: &mut Job, ordinal: u64) -> Result<(), String> {
        let work = Arc::clone(&job.work);
        let message = self.queue(work.place).messages.get(&ordinal);
        let Some(message) = message.filter(|message| work.chosen.meets(message)) else {
            return Ok(());
        };
        if !work.chosen.selects(message) {
            return Ok(());
        }
        job.matched += 1;
        let result = if message.lock.is_some() {
            Err(LOCKED)
        } else {
            self.change(round, &work, ordinal)?
        };
        match result {
            Ok(()) => job.changed += 1,
            Err(why) => {
                job.skipped += 1;
                job.reason = Some(why);
            }
        }
        Ok(())
    }

    fn change(
        &mut self,
        round: &mut Round,
        work: &Work,
        ordinal: u64,
    ) -> Result<Result<(), Left>, String> {
        let place = work.place;
        if let Change::Move { to, paint, body } = &work.change {
            let to = match self.target(place, ordinal, *to) {
                Ok(to) => to,
                Err(left) => return Ok(Err(left)),
            };
            let message = self.queue(place).messages[&ordinal].clone();
            let message = renewed(message, paint.as_ref());
            return match body {
                None => self.bring(round, place, ordinal, message, to),
                Some(body) => self.rewrite(round, place, ordinal, message, to, body),
            };
        }
        self.due(round, place)?;
        let group = round.group;
        let is_free = self.is_free(place, ordinal);
        let messages = &mut self.queue_mut(place).messages;
        let message = messages.get_mut(&ordinal).filter(|_| is_free);
        let state = message.as_ref().map(|message| message.state);
        let is_done = match (&work.change, message, state) {
            (Change::Delete, Some(_), _) => {
                self.remove(place, ordinal);
                true
            }
            (
                Change::DeadLetter {
                    reason,
                    description,
                },
                Some(_),
                _,
            ) if !place.is_dead() => {
                let texts = DEAD_LETTER_PROPERTIES
                    .into_iter()
                    .zip([reason, description]);
                let told = texts.filter_map(|(name, text)| Some((name, text.as_deref()?)));
                self.depart(round, place, ordinal, &told.collect::<Vec<_>>());
                true
            }
            (Change::Activate, Some(message), Some(State::Deferred)) => {
                message.state = State::Active;
                message.changed = group;
                true
            }
            (Change::Activate, Some(_), Some(State::Scheduled { .. })) => {
                self.activate(round, place, ordinal);
                true
            }
            (Change::Reschedule(due), Some(message), Some(State::Scheduled { .. })) => {
                message.state = State::Scheduled { due: *due };
                message.changed = group;
                true
            }
            _ => false,
        };
        self.dispatch(round, place, &BTreeSet::new())?;
        self.arrive(round)?;
        self.go_on(round, place)?;
        Ok(if is_done { Ok(()) } else { Err(UNFIT) })
    }

    fn is_free(&self, place: Place, ordinal: u64) -> bool {
        let message = self.queue(place).messages.get(&ordinal);
        message.is_some_and(|message| message.lock.is_none())
    }

    /// Finds the entity that gets a message.
    fn target(&self, place: Place, ordinal: u64, to: Option<usize>) -> Result<usize, Left> {
        let source = &self.queue(place).messages[&ordinal].source;
        let dead_lettered = source.as_ref().and_then(|path| {
            let mut entities = self.entities.iter();
            entities.position(|entity| entity.path == *path)
        });
        match to.or(dead_lettered) {
            Some(to) => Ok(to),
            None if place.part == Part::Main => Err(NO_DEAD_LETTER),
            None => Ok(place.queue),
        }
    }

    /// Brings a message to another entity, as a new one there.
    fn bring(
        &mut self,
        round: &mut Round,
        from: Place,
        ordinal: u64,
        message: Message,
        to: usize,
    ) -> Result<Result<(), Left>, String> {
        let target = Place::main(to);
        // What is due in either is done first, whatever then becomes of the message.
        self.settle_due(round, target)?;
        self.settle_due(round, from)?;
        if self.has_sessions(target) && message.draft.session.is_none() {
            return Ok(Err(NO_SESSION));
        }
        let description = self.description(target);
        let is_taken = description.status.can_send()
            && message.size <= description.max_message_bytes
            && self.held(to) + message.size <= description.max_bytes;
        if !is_taken {
            return Ok(Err(REFUSED));
        }
        if !self.is_free(from, ordinal) {
            return Ok(Err(GONE));
        }
        self.queue_mut(from).messages.remove(&ordinal);
        self.add(round, target, message, number(ordinal))?;
        Ok(Ok(()))
    }

    /// Puts a message with another body into an entity, and removes the one that it was.
    fn rewrite(
        &mut self,
        round: &mut Round,
        from: Place,
        ordinal: u64,
        message: Message,
        to: usize,
        body: &Body,
    ) -> Result<Result<(), Left>, String> {
        let target = Place::main(to);
        if target == from {
            return Ok(Err(SAME));
        }
        self.settle_due(round, target)?;
        self.settle_due(round, from)?;
        if !self.is_free(from, ordinal) {
            return Ok(Err(GONE));
        }
        if String::from_utf8(message.draft.body()).is_err() {
            return Ok(Err(NO_TEXT));
        }
        let text = match body {
            Body::Text(text) => *text,
            Body::Color => match message.properties.get("color") {
                Some(color) => color.as_str(),
                None => return Ok(Err(NO_PROPERTY)),
            },
        };
        let mut draft = (*message.draft).clone();
        draft.tail.push_str(MARK);
        draft.tail.push_str(text);
        draft.properties = message.properties;
        if draft.id_from == IdFrom::Broker {
            draft.id_from = IdFrom::Job(from.queue, number(ordinal));
        }
        let drafts = [draft];
        if self.admit(round, to, &drafts)?.is_err() {
            return Ok(Err(REFUSED));
        }
        // The job leaves what would be dropped; of the number nothing is said, which is 0 after the rollover too.
        let id = drafts[0].id;
        let was_dropped = self.dropped.remove(&id);
        self.put(round, to, &drafts)?;
        let is_dropped = self.dropped.remove(&id);
        if was_dropped {
            self.dropped.insert(id);
        }
        if is_dropped {
            return Ok(Err(DUPLICATE));
        }
        // The new one is the same message still. It may have been forwarded already, and dropped as a duplicate of this one.
        self.queue_mut(from).messages.remove(&ordinal);
        self.gone_if_last(id);
        self.dispatch(round, from, &BTreeSet::new())?;
        self.settle_due(round, from)?;
        Ok(Ok(()))
    }

    /// What is due at a place is done, and what comes of it.
    fn settle_due(&mut self, round: &mut Round, place: Place) -> Result<(), String> {
        self.due(round, place)?;
        self.arrive(round)?;
        self.go_on(round, place)
    }
}

/// Returns a message as a move brings it to another entity: as one that was never delivered, dead-lettered or forwarded,
/// with the time to live that its sender gave it.
fn renewed(message: Message, paint: Option<&Paint>) -> Message {
    let own = message.draft.time_to_live.filter(|&millis| 0 < millis);
    let mut message = Message {
        time_to_live: own.map_or(NEVER, i64::from),
        enqueued_number: 0,
        hops: 0,
        stays: false,
        source: None,
        ..message
    };
    for name in DEAD_LETTER_PROPERTIES {
        message.properties.remove(name);
        message.amended.remove(name);
    }
    match paint {
        None => {}
        Some(Paint::Set(color)) => message.amend("color", color),
        Some(Paint::Strip) => {
            message.properties.remove("color");
            message.amended.remove("color");
        }
    }
    message
}
