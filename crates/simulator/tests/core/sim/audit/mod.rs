//! The auditor: it holds a model made from the documentation (`entities.md#entities`) against what
//! the broker tells, and against what is left after a crash.
//!
//! It sees what is done to the broker, what the broker tells whom, which group of records each
//! step belongs to and which groups are durable. It never looks into the broker.
//!
//! What it holds the broker to:
//! - numbers are given once, in order, without a gap; a dead letter keeps its own;
//! - a message is with one receiver at a time while its lock holds, and a lock that has ended
//!   settles and renews nothing;
//! - receivers get what is available in the order of numbers, as soon as it is, as their credit
//!   allows, and a drain is answered when nothing is left;
//! - a message session has one holder at a time, who gets its messages in their order; what its
//!   end takes back counts, what its holder gives back does not; states are kept;
//! - each subscription that wants a topic's message gets one copy, with a number of its own, and
//!   what is forwarded is in one place, or in the dead-letter queue, never in two;
//! - a transaction is done as a whole, or not at all, whatever happens between;
//! - a message-id is accepted once in its window; one that the broker makes up has its form, and the clients' own
//!   [books](super::ledger) say that no other message has it, and that the message keeps it;
//! - whatever depends on time happens at its millisecond: what runs by elapsed time also where the
//!   clock was set ahead or back, all else by the clock;
//! - nothing is told before its record is durable, and after a crash the broker is what it was at
//!   the last group that is left: nothing of it is lost, and nothing else is there;
//! - a job changes a message as a whole or leaves it, none that came after the job began and none that is
//!   locked; it continues after a crash, and what is told of it is exact, and is kept;
//! - a message whose bytes were damaged on the disk, and no other one, is a dead letter without them
//!   from when they are read, and is reported once; until then it is what it was.

mod damage;
mod judge;
mod model;
mod operations;
mod receives;
mod round;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use jitney_amqp::Condition;
use jitney_base::ids::LockToken;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::Room;

use self::model::{Entity, Link, Model, Queue, Shown};
use super::acts::{ClientAction, LinkKind, Part, Place, Session, session_name};
use super::plan::Planned;
use super::receives::is_receive;
use super::wire::{Answer, Value, read_message};

pub(in crate::sim) use self::damage::{Amended, DamagedDelivery, DamagedReceive, Hit, Told, User};
pub(in crate::sim) use self::operations::{Due, Outcome};
pub(in crate::sim) use self::round::{ClientObservation, Observed, Round};

/// The auditor.
#[derive(Debug, Clone, Default)]
pub(in crate::sim) struct Auditor {
    model: Model,
    /// The model as it was at the end of each group that may be the last one after a crash.
    history: BTreeMap<u64, Arc<Model>>,
    durable: u64,
    /// The history is kept from the beginning.
    keeps_all: bool,
}

/// What a response must say.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    /// The group that must be durable before it is told.
    pub(super) pin: u64,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Count(usize),
    /// Deferred messages by number, with their locks.
    Deferred(BTreeMap<i64, (Shown, Option<u64>)>),
    Done,
    /// It failed for two reasons, and which one is told is not said.
    Either([(i32, &'static str); 2]),
    Expiration(i64),
    Expirations(Vec<i64>),
    Failed(i32, &'static str),
    Numbers(Vec<i64>),
    Peeked(Vec<Shown>),
    /// Those that must be named, and those that may be.
    Sessions(Vec<Session>, BTreeSet<Session>),
    State(Option<Vec<u8>>),
}

impl Auditor {
    pub(in crate::sim) fn new() -> Self {
        let mut auditor = Self::default();
        auditor.model.room = true;
        auditor.history.insert(0, Arc::new(auditor.model.clone()));
        auditor
    }

    /// A queue is made, with the number that its first message is to have, or gets new properties;
    /// links that these forbid end.
    pub(in crate::sim) fn describe(
        &mut self,
        observed: Observed<'_>,
        queue: usize,
        planned: &Planned,
    ) -> Result<Vec<u64>, String> {
        let mut round = Round::new(&self.model, observed)?;
        let description = &planned.description;
        if let Some(entity) = self.model.entities.get_mut(queue) {
            if entity.description == *description {
                return round.finish();
            }
            let before = std::mem::replace(&mut entity.description, description.clone());
            self.model.described(queue, &before);
        } else {
            let main = Queue {
                next: BTreeMap::from([(0, planned.first)]),
                ..Queue::default()
            };
            self.model.entities.push(Entity {
                description: description.clone(),
                path: planned.path.clone(),
                topic: planned.topic,
                rules: planned.rules.clone(),
                main,
                dead: Queue::default(),
                transfer: Queue::default(),
            });
        }
        let status = description.status;
        // As when they attach: forwarding is the reason, whatever the status.
        let reason = |link: &Link| match link.kind {
            LinkKind::Sender => (!status.can_send()).then_some(Condition::EntityDisabled),
            LinkKind::Receiver { .. } => {
                let forwards = match link.place.part {
                    Part::Main => description.forward_to.is_some(),
                    Part::Dead => description.forward_dead_letters_to.is_some(),
                    Part::Transfer => false,
                };
                if forwards {
                    Some(Condition::NotAllowed)
                } else {
                    (!status.can_receive()).then_some(Condition::EntityDisabled)
                }
            }
            LinkKind::Requests | LinkKind::Responses | LinkKind::Coordinator => None,
        };
        let links = self.model.links.iter();
        let doomed: Vec<_> = links
            .filter(|(_, link)| link.place.queue == queue)
            .filter_map(|(&at, link)| Some((at, reason(link)?)))
            .collect();
        for (at, reason) in doomed {
            if is_receive(at) {
                round.answer(&format!("{at:?} ended"), |sight| {
                    matches!(sight, ClientObservation::Refused(link, condition)
                        if *link == at && condition == reason.as_str())
                })?;
                self.model.end_receive(at);
                continue;
            }
            let waits = self.model.waits(at);
            round.answer(&format!("{at:?} detached"), |sight| {
                let (link, condition) = match sight {
                    ClientObservation::Detached(link, condition) if !waits => (link, condition),
                    ClientObservation::Refused(link, condition) if waits => (link, condition),
                    _ => return false,
                };
                *link == at && condition == reason.as_str()
            })?;
            self.model.detach(&mut round, at)?;
        }
        for place in Place::all(queue) {
            self.model.due(&mut round, place)?;
            self.model.arrive(&mut round)?;
            self.model.go_on(&mut round, place)?;
        }
        self.model.all_go_on(&mut round)?;
        round.finish()
    }

    pub(in crate::sim) fn room(&mut self, room: Room) {
        self.model.room = room == Room::Enough;
    }

    /// The clock was set: what runs by elapsed time has as much left as before.
    pub(in crate::sim) fn follow_clock(&mut self, millis: i64) {
        self.model.follow_clock(millis);
    }

    /// Judges one step; returns for each thing that was told the group that it must wait for.
    pub(in crate::sim) fn step(
        &mut self,
        observed: Observed<'_>,
        act: &ClientAction,
    ) -> Result<Vec<u64>, String> {
        // A link that is being attached is in the model only after that: deliveries to it cannot
        // come in the same step, for it has no credit.
        let mut round = Round::new(&self.model, observed)?;
        self.model.act(&mut round, act)?;
        round.finish()
    }

    /// These messages have been read, so that they can go on.
    pub(in crate::sim) fn read_back(
        &mut self,
        observed: Observed<'_>,
        queue: usize,
        found: &[(i64, Option<u64>)],
    ) -> Result<Vec<u64>, String> {
        let mut round = Round::new(&self.model, observed)?;
        let place = place_of(queue);
        let queue = self.model.queue(place);
        let bare = |number: i64| {
            let message = &queue.messages[&queue.ordinal_of(number)?];
            Some(message.draft.id).filter(|_| message.draft.bare)
        };
        let ids = found
            .iter()
            .filter_map(|(number, id)| id.or_else(|| bare(*number)));
        round.at_hand.extend(ids);
        self.model.due(&mut round, place)?;
        self.model.arrive(&mut round)?;
        self.model.go_on(&mut round, place)?;
        round.at_hand.clear();
        self.model.all_go_on(&mut round)?;
        round.finish()
    }

    /// Something leaves that had to wait for this group.
    pub(in crate::sim) fn released(&self, pin: u64) -> Result<(), String> {
        if self.durable < pin {
            let durable = self.durable;
            return Err(format!(
                "it is told and rests on group {pin}, and only group {durable} is durable"
            ));
        }
        Ok(())
    }

    /// A group of records has come to its end.
    pub(in crate::sim) fn sealed(&mut self, group: u64) {
        self.history.insert(group, Arc::new(self.model.clone()));
    }

    pub(in crate::sim) fn durable(&mut self, group: u64) {
        self.durable = group;
        if !self.keeps_all {
            self.history = self.history.split_off(&group);
        }
    }

    /// From now on, the broker may be started again at any group.
    pub(in crate::sim) fn keep_all(&mut self) {
        self.keeps_all = true;
    }

    /// Returns the auditor as it was when this was the newest durable group.
    pub(in crate::sim) fn back_at(&self, durable: u64) -> Self {
        Self {
            durable,
            ..self.clone()
        }
    }

    /// The broker has come back from a crash, and this is the last group that is left.
    pub(in crate::sim) fn restarted(&mut self, last: u64) -> Result<(), String> {
        if last < self.durable {
            let durable = self.durable;
            return Err(format!(
                "group {durable} was durable, and {last} is the last that is left"
            ));
        }
        let left = self.history.remove(&last);
        let left = left.ok_or_else(|| format!("group {last} was never sealed"))?;
        let dropped = std::mem::take(&mut self.model.dropped);
        let damaged = std::mem::take(&mut self.model.damaged);
        let keeps_deleted = self.model.keeps_deleted;
        self.model = Arc::unwrap_or_clone(left);
        self.model.dropped.extend(dropped);
        self.model.damaged.extend(damaged);
        self.model.keeps_deleted = keeps_deleted;
        self.model.restart();
        // Whoever starts finds out anew whether there is room.
        self.model.room = true;
        self.history = BTreeMap::from([(last, Arc::new(self.model.clone()))]);
        self.durable = last;
        Ok(())
    }

    /// Holds the time at which the broker wants to be called against the model.
    pub(in crate::sim) fn check_timeout(&self, wanted: Option<Timestamp>) -> Result<(), String> {
        let wanted = wanted.map(Timestamp::as_millis);
        match self.model.next_due() {
            Some(due) if wanted.is_none_or(|wanted| due < wanted) => Err(format!(
                "{} is due at {due}, and the broker wants to be called at {wanted:?}",
                self.model.due_there(due)
            )),
            _ => Ok(()),
        }
    }

    pub(in crate::sim) fn next_due(&self) -> Option<i64> {
        self.model.next_due()
    }

    /// Returns how many messages there should be.
    pub(in crate::sim) fn count(&self) -> usize {
        let places = self.model.places();
        places
            .map(|place| self.model.queue(place).messages.len())
            .sum()
    }

    /// Returns whether a message is there, or went in a way that the documentation knows.
    pub(in crate::sim) fn accounts_for(&self, id: u64) -> bool {
        self.model.gone.contains(&id) || self.model.dropped.contains(&id) || self.model.has(id)
    }

    /// Returns requests that were never answered although their link was there.
    pub(in crate::sim) fn unanswered(&self) -> Vec<String> {
        let links = self.model.links.values();
        let waiting = links.filter(|link| link.limit != link.sent);
        waiting
            .flat_map(|link| link.waiting.iter().map(|call| call.id.clone()))
            .collect()
    }
}

impl Expected {
    fn new(pin: u64, what: What) -> Self {
        Self { pin, what }
    }

    fn plain(code: i32, condition: &'static str) -> Self {
        Self::new(0, What::Failed(code, condition))
    }

    fn either(reasons: [(i32, &'static str); 2]) -> Self {
        Self::new(0, What::Either(reasons))
    }

    fn done(pin: u64) -> Self {
        Self::new(pin, What::Done)
    }

    fn numbers(numbers: Vec<i64>, pin: u64) -> Self {
        Self::new(pin, What::Numbers(numbers))
    }

    fn expirations(times: Vec<i64>) -> Self {
        Self::new(0, What::Expirations(times))
    }

    fn expiration(time: i64) -> Self {
        Self::new(0, What::Expiration(time))
    }

    fn sessions(must: Vec<Session>, may: BTreeSet<Session>) -> Self {
        Self::new(0, What::Sessions(must, may))
    }

    fn state(state: Option<Vec<u8>>, pin: u64) -> Self {
        Self::new(pin, What::State(state))
    }

    fn purged(count: usize, group: u64) -> Self {
        let pin = if count == 0 { 0 } else { group };
        Self::new(pin, What::Count(count))
    }

    fn peeked(shown: Vec<Shown>, pin: u64) -> Self {
        Self::new(pin, What::Peeked(shown))
    }

    fn deferred(shown: BTreeMap<i64, (Shown, Option<u64>)>, pin: u64) -> Self {
        Self::new(pin, What::Deferred(shown))
    }

    fn check(self, model: &mut Model, place: Place, answer: &Answer) -> Result<(), String> {
        let (code, condition) = match &self.what {
            What::Failed(code, condition) => (*code, Some(*condition)),
            What::Either([one, other]) => {
                let told = |(code, condition): &(i32, &'static str)| {
                    answer.code == *code && answer.condition.as_deref() == Some(condition)
                };
                let (code, condition) = if told(one) { one } else { other };
                (*code, Some(*condition))
            }
            What::Count(0) => (204, None),
            What::Peeked(shown) if shown.is_empty() => (204, None),
            What::Sessions(must, _) if must.is_empty() && answer.code == 204 => {
                (204, Some("com.microsoft:session-not-found"))
            }
            _ => (200, None),
        };
        if (answer.code, answer.condition.as_deref()) != (code, condition) {
            let expected = self.what;
            return Err(format!(
                "expected {code} {condition:?} for {expected:?}\n       found {answer:?}"
            ));
        }
        let longs = |name: &str| match answer.body.get(name) {
            Some(Value::Array(items)) => Ok(items.clone()),
            other => Err(format!("{name} is {other:?}")),
        };
        match self.what {
            What::Failed(..) | What::Either(_) | What::Done | What::Count(0) => {
                expect_empty(answer)
            }
            What::Count(count) => {
                let count = Value::Int(i32::try_from(count).expect("fits"));
                let found = answer.body.get("message-count");
                expect_equal(&Some(&count), &found)
            }
            What::Expirations(times) => {
                let found = longs("expirations")?;
                let times: Vec<Value> = times.into_iter().map(Value::Timestamp).collect();
                expect_equal(&times, &found)
            }
            What::Expiration(time) => {
                let found = answer.body.get("expiration");
                let time = Value::Timestamp(time);
                expect_equal(&Some(&time), &found)
            }
            What::State(state) => {
                let found = answer.body.get("session-state");
                let state = state.map_or(Value::Null, Value::Binary);
                expect_equal(&Some(&state), &found)
            }
            What::Sessions(..) if answer.code == 204 => expect_empty(answer),
            What::Sessions(must, may) => {
                let mut found = longs("sessions-ids")?;
                let name = |session: &Session| Value::String(session_name(*session));
                let optional: Vec<Value> = may.iter().map(name).collect();
                let must: Vec<Value> = must.iter().map(name).collect();
                found.retain(|name| must.contains(name) || !optional.contains(name));
                expect_equal(&must, &found)
            }
            What::Numbers(numbers) => {
                let found = longs("sequence-numbers")?;
                let numbers: Vec<Value> = numbers.into_iter().map(Value::Long).collect();
                expect_equal(&numbers, &found)
            }
            What::Peeked(shown) => {
                let found = carried(answer)?;
                if found.len() != shown.len() {
                    return Err(unexpected(&shown, answer));
                }
                for (shown, (message, token)) in shown.iter().zip(found) {
                    if token.is_some() {
                        return Err(unexpected(&"no lock token", &token));
                    }
                    shown.check(&read_message(&message)?)?;
                }
                Ok(())
            }
            What::Deferred(mut shown) => {
                let found = carried(answer)?;
                if found.len() != shown.len() {
                    return Err(unexpected(&shown, answer));
                }
                for (message, token) in found {
                    let seen = read_message(&message)?;
                    let Some((expected, serial)) = shown.remove(&seen.number) else {
                        return Err(format!("nobody asked for {seen:?}"));
                    };
                    expected.check(&seen)?;
                    let token = token.ok_or("a deferred message comes without a lock token")?;
                    if let Some(serial) = serial {
                        if seen.lock_token != Some(token) {
                            return Err(unexpected(&token, &seen));
                        }
                        model.name_lock(place, serial, LockToken::from_uuid(token));
                    }
                }
                Ok(())
            }
        }
    }
}

impl Model {
    /// The token of a lock is seen, if it holds still.
    fn name_lock(&mut self, place: Place, serial: u64, token: LockToken) {
        for message in self.queue_mut(place).messages.values_mut() {
            if let Some(lock) = message.lock.as_mut().filter(|lock| lock.serial == serial) {
                lock.token = Some(token);
            }
        }
    }
}

/// Returns which queue has this number: there are three of each entity.
fn place_of(queue: usize) -> Place {
    Place {
        queue: queue / 3,
        part: [Part::Main, Part::Dead, Part::Transfer][queue % 3],
    }
}

/// Takes the messages and their lock tokens out of a response.
fn carried(answer: &Answer) -> Result<Vec<(Vec<u8>, Option<[u8; 16]>)>, String> {
    let items = match answer.body.get("messages") {
        Some(Value::List(items)) => items.as_slice(),
        None => &[],
        other => return Err(format!("messages is {other:?}")),
    };
    let mut found = Vec::new();
    for item in items {
        let Value::Map(entries) = item else {
            return Err(format!("a message is {item:?}"));
        };
        let get = |name: &str| {
            let mut entries = entries.iter();
            let found = entries.find(|(key, _)| *key == Value::String(name.to_owned()));
            found.map(|(_, value)| value)
        };
        let Some(Value::Binary(message)) = get("message") else {
            return Err(format!("a message has no binary: {entries:?}"));
        };
        let token = match get("lock-token") {
            Some(Value::Uuid(token)) => Some(*token),
            None => None,
            other => return Err(format!("a lock token is {other:?}")),
        };
        found.push((message.clone(), token));
    }
    Ok(found)
}

fn expect_empty(answer: &Answer) -> Result<(), String> {
    if answer.body.is_empty() {
        Ok(())
    } else {
        Err(unexpected(&"an empty map", &answer.body))
    }
}

fn expect_equal<T: Debug + PartialEq>(expected: &T, found: &T) -> Result<(), String> {
    if expected == found {
        Ok(())
    } else {
        Err(unexpected(expected, found))
    }
}

fn unexpected(expected: &dyn Debug, found: &dyn Debug) -> String {
    format!("expected {expected:?}\n       found {found:?}")
}
