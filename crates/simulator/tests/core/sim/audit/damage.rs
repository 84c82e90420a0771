//! What must come of messages whose bytes on the disk are damaged, when somebody needs the bytes.

use std::collections::BTreeSet;
use std::sync::Arc;

use jitney_base::ids::LockToken;

use super::model::{ANY, Message, Model, NEVER, State};
use super::{Auditor, Observed, Round, carried, place_of, unexpected};
use crate::sim::acts::{LinkKey, LinkKind, Place};
use crate::sim::wire::{Answer, Seen, read_message};

const REASON: &str = "DeadLetterReason";
const DESCRIPTION: &str = "DeadLetterErrorDescription";
const DAMAGED: &str = "MessageDamaged";

/// A message that the broker says has lost its bytes: the path of its queue, and its number there.
pub(in crate::sim) type Told = (String, i64);

/// Somebody who needs bytes that are damaged.
#[derive(Debug)]
pub(in crate::sim) struct Hit {
    pub(in crate::sim) user: User,
    /// Some of the bytes were moved, so that a message may have good ones now.
    pub(in crate::sim) moved: bool,
}

#[derive(Debug)]
pub(in crate::sim) enum User {
    /// The broker itself: to send this message on, or to move it.
    Broker {
        queue: usize,
        number: i64,
    },
    Delivery(DamagedDelivery),
    Receive(DamagedReceive),
    /// A response, with the places in it of the messages whose bytes are damaged.
    Response {
        at: LinkKey,
        answer: Answer,
        damaged: BTreeSet<usize>,
    },
}

/// A message on its way to a link.
#[derive(Debug)]
pub(in crate::sim) struct DamagedDelivery {
    pub(in crate::sim) at: LinkKey,
    pub(in crate::sim) token: LockToken,
    pub(in crate::sim) delete: bool,
    pub(in crate::sim) seen: Seen,
    pub(in crate::sim) bytes: u64,
    /// A drain behind it has used up the credit.
    pub(in crate::sim) is_drained: bool,
}

/// A message on its way to a receive without a link.
#[derive(Debug)]
pub(in crate::sim) struct DamagedReceive {
    pub(in crate::sim) at: LinkKey,
    pub(in crate::sim) token: LockToken,
    pub(in crate::sim) delete: bool,
    pub(in crate::sim) seen: Seen,
}

/// A response that was to carry messages whose bytes are damaged.
#[derive(Debug)]
pub(in crate::sim) struct Amended {
    before: Answer,
    damaged: BTreeSet<usize>,
    /// The numbers of those that are shown without their bytes; the others are left out.
    shown: BTreeSet<i64>,
}

/// Takes a message off what the broker has told, if it is there.
fn is_told(told: &mut Vec<Told>, place: Place, paths: &[String], number: i64) -> bool {
    let path = place.address(paths);
    let is_it = |(found, of): &Told| *of == number && found.eq_ignore_ascii_case(&path);
    let found = told.iter().position(is_it);
    found.map(|at| told.remove(at)).is_some()
}

impl Auditor {
    /// Returns the messages whose bytes the broker has, with these.
    pub(in crate::sim) fn bodies(&self) -> Vec<(u64, Vec<u8>)> {
        let places = self.model.places();
        let messages = places.flat_map(|place| self.model.queue(place).messages.values());
        let whole = messages.filter(|message| !message.draft.bare);
        let mut bodies: Vec<_> = whole
            .map(|message| (message.draft.id, message.draft.encode()))
            .collect();
        bodies.sort_unstable();
        bodies.dedup();
        bodies
    }

    /// From now on, bytes may be damaged: what was received and deleted may come back without them.
    pub(in crate::sim) fn keep_deleted(&mut self) {
        self.model.keeps_deleted = true;
    }

    /// The bytes of a message are damaged on the disk.
    pub(in crate::sim) fn damage(&mut self, id: u64) {
        self.model.damaged.insert(id);
    }

    /// Judges what came of a hit; returns also the response that is to leave, if it was one.
    pub(in crate::sim) fn hit(
        &mut self,
        observed: Observed<'_>,
        hit: Hit,
        mut told: Vec<Told>,
        paths: &[String],
    ) -> Result<(Vec<u64>, Option<Amended>), String> {
        let mut round = Round::new(&self.model, observed)?;
        let mut finding = Finding {
            told: &mut told,
            paths,
            moved: hit.moved,
        };
        let mut amended = None;
        match hit.user {
            User::Broker { queue, number } => {
                let place = place_of(queue);
                self.model
                    .lose(&mut round, &mut finding, place, number, None)?;
            }
            User::Delivery(delivery) => {
                self.model
                    .lose_delivery(&mut round, &mut finding, &delivery)?;
            }
            User::Receive(receive) => {
                self.model
                    .lose_received(&mut round, &mut finding, &receive)?;
            }
            User::Response {
                at,
                answer,
                damaged,
            } => {
                let lost =
                    self.model
                        .lose_in_response(&mut round, &mut finding, at, &answer, &damaged)?;
                amended = Some(Amended {
                    before: answer,
                    damaged,
                    shown: lost,
                });
            }
        }
        if let Some(told) = told.first() {
            return Err(format!("{told:?} has lost its bytes, and nobody met it"));
        }
        self.model.all_go_on(&mut round)?;
        Ok((round.finish()?, amended))
    }

    /// Judges what a start has found in the log: these messages have lost their bytes.
    pub(in crate::sim) fn hits_at_start(
        &mut self,
        observed: Observed<'_>,
        told: Vec<Told>,
        paths: &[String],
    ) -> Result<(), String> {
        if told.is_empty() {
            return Ok(());
        }
        let mut round = Round::new(&self.model, observed)?;
        // What can go on is on its way before.
        for place in self.model.places() {
            self.model.due(&mut round, place)?;
            self.model.arrive(&mut round)?;
            self.model.go_on(&mut round, place)?;
        }
        for told in told {
            let (path, number) = &told;
            let mut places = self.model.places();
            let place = places.find(|place| place.address(paths).eq_ignore_ascii_case(path));
            let place = place.ok_or_else(|| format!("no queue is {path}"))?;
            let number = *number;
            let mut told = vec![told];
            let mut finding = Finding {
                told: &mut told,
                paths,
                moved: false,
            };
            self.model
                .lose(&mut round, &mut finding, place, number, None)?;
            if let Some(told) = told.first() {
                return Err(format!("{told:?} has lost its bytes, and is not there"));
            }
        }
        self.model.all_go_on(&mut round)?;
        round.finish().map(drop)
    }
}

impl Amended {
    /// Returns whether this response, which has left, is the one.
    pub(in crate::sim) fn is_of(&self, answer: &Answer) -> bool {
        self.before.correlation_id == answer.correlation_id
    }

    /// Holds the response that has left against the one that there was to be.
    pub(in crate::sim) fn check(&self, answer: &Answer) -> Result<(), String> {
        let (before, after) = (carried(&self.before)?, carried(answer)?);
        let mut after = after.into_iter();
        for (at, (message, token)) in before.into_iter().enumerate() {
            let seen = read_message(&message)?;
            if !self.damaged.contains(&at) {
                let next = after.next();
                if next.as_ref() != Some(&(message, token)) {
                    return Err(unexpected(&seen, &next));
                }
            } else if self.shown.contains(&seen.number) {
                let (next, _) = after.next().ok_or("a message is not shown")?;
                let next = read_message(&next)?;
                let reason = next.properties.get(REASON).map(String::as_str);
                let is_bare = (next.id, next.number, next.padding) == (0, seen.number, 0);
                if !is_bare || reason != Some(DAMAGED) {
                    return Err(unexpected(&seen, &next));
                }
            }
        }
        if after.next().is_some() {
            return Err(unexpected(&"no more", answer));
        }
        let is_empty = carried(answer)?.is_empty();
        let code = if is_empty { 404 } else { 200 };
        if answer.code == code {
            Ok(())
        } else {
            Err(unexpected(&code, answer))
        }
    }
}

/// What the broker has told of what it found.
struct Finding<'a> {
    told: &'a mut Vec<Told>,
    paths: &'a [String],
    moved: bool,
}

impl Model {
    /// A message's bytes are needed: it loses them if it has damaged ones. Returns whether it did.
    fn lose(
        &mut self,
        round: &mut Round,
        finding: &mut Finding<'_>,
        place: Place,
        number: i64,
        id: Option<u64>,
    ) -> Result<bool, String> {
        self.due(round, place)?;
        self.arrive(round)?;
        self.go_on(round, place)?;
        let told = is_told(finding.told, place, finding.paths, number);
        let queue = self.queue(place);
        let there = queue.ordinal_of(number).filter(|ordinal| {
            let draft = &queue.messages[ordinal].draft;
            !draft.bare && id.is_none_or(|id| id == draft.id)
        });
        match there {
            Some(ordinal) if told => {
                let id = queue.messages[&ordinal].draft.id;
                if !self.damaged.contains(&id) {
                    return Err(format!("m{id} has lost its bytes, which are good"));
                }
                self.strip(round, place, ordinal);
                self.dispatch(round, place, &BTreeSet::new())?;
                self.arrive(round)?;
                self.go_on(round, place)?;
                Ok(true)
            }
            Some(_) if !finding.moved => Err(format!(
                "the bytes of message {number} of {place} are damaged, and it has them still"
            )),
            None if told => {
                finding.told.push((place.address(finding.paths), number));
                Ok(false)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Takes a message's bytes away, and makes it a dead letter.
    fn strip(&mut self, round: &mut Round, place: Place, ordinal: u64) {
        let group = round.group;
        let messages = &mut self.queue_mut(place).messages;
        let message = messages.get_mut(&ordinal).expect("it was found");
        let session = message.draft.session;
        message.draft = Arc::new(message.draft.without_bytes(session));
        message.size = u64::try_from(message.draft.encode().len()).expect("fits");
        message.properties = message.amended.clone();
        message.lock = None;
        message.stays = false;
        message.changed = group;
        let reason = [(REASON, DAMAGED), (DESCRIPTION, ANY)];
        if !place.is_dead() {
            return self.depart(round, place, ordinal, &reason);
        }
        for (name, text) in reason {
            message.amend(name, text);
        }
        self.unlock(round, place, ordinal);
    }

    fn lose_delivery(
        &mut self,
        round: &mut Round,
        finding: &mut Finding<'_>,
        delivery: &DamagedDelivery,
    ) -> Result<(), String> {
        let &DamagedDelivery {
            at,
            token,
            delete,
            ref seen,
            bytes,
            is_drained,
        } = delivery;
        let link = self.links.get(&at);
        let link = link.filter(|link| matches!(link.kind, LinkKind::Receiver { .. }));
        let Some(place) = link.map(|link| link.place) else {
            return Ok(());
        };
        let is_lost = self.lose(round, finding, place, seen.number, Some(seen.id))?;
        if delete && !is_lost {
            self.bring_back(round, finding, place, seen)?;
        }
        let queue = self.queue_mut(place);
        if let Some(receiver) = queue.receivers.get_mut(&at) {
            let bytes = i64::try_from(bytes).expect("fits");
            receiver.window = (receiver.window + bytes).min(Self::window());
        }
        self.dispatch(round, place, &BTreeSet::new())?;
        let queue = self.queue_mut(place);
        if let Some(receiver) = queue.receivers.get_mut(&at).filter(|_| !is_drained) {
            receiver.delivered = receiver.delivered.wrapping_sub(1);
        }
        if let Some(ordinal) = self.queue(place).locked_by(token) {
            self.unlock(round, place, ordinal);
        }
        self.dispatch(round, place, &BTreeSet::new())?;
        self.arrive(round)
    }

    fn lose_received(
        &mut self,
        round: &mut Round,
        finding: &mut Finding<'_>,
        receive: &DamagedReceive,
    ) -> Result<(), String> {
        let &DamagedReceive {
            at,
            token,
            delete,
            ref seen,
        } = receive;
        let Some(place) = self.place_of(at) else {
            return Ok(());
        };
        let is_lost = self.lose(round, finding, place, seen.number, Some(seen.id))?;
        if delete && !is_lost {
            self.bring_back(round, finding, place, seen)?;
        }
        self.receive_again(round, at, token)?;
        self.arrive(round)
    }

    /// Returns the numbers of the messages that the response shows without their bytes.
    fn lose_in_response(
        &mut self,
        round: &mut Round,
        finding: &mut Finding<'_>,
        at: LinkKey,
        answer: &Answer,
        damaged: &BTreeSet<usize>,
    ) -> Result<BTreeSet<i64>, String> {
        let mut shown = BTreeSet::new();
        let Some(place) = self.links.get(&at).map(|link| link.place) else {
            return Ok(shown);
        };
        for (at, (message, token)) in carried(answer)?.into_iter().enumerate() {
            if !damaged.contains(&at) {
                continue;
            }
            let seen = read_message(&message)?;
            let is_lost = self.lose(round, finding, place, seen.number, Some(seen.id))?;
            let was_deleted = token.is_some() && seen.lock_token.is_none();
            if !is_lost && was_deleted {
                self.bring_back(round, finding, place, &seen)?;
            }
            if is_lost && token.is_none() {
                shown.insert(seen.number);
            }
        }
        Ok(shown)
    }

    /// A message that was received and deleted, and could not be sent, becomes a dead letter with a new
    /// number.
    fn bring_back(
        &mut self,
        round: &mut Round,
        finding: &mut Finding<'_>,
        from: Place,
        seen: &Seen,
    ) -> Result<(), String> {
        if !is_told(finding.told, from, finding.paths, seen.number) {
            let number = seen.number;
            return Err(format!("nobody is told what became of {number} of {from}"));
        }
        if !self.damaged.contains(&seen.id) {
            let id = seen.id;
            return Err(format!("m{id} has lost its bytes, which are good"));
        }
        let place = Place::main(from.queue);
        self.due(round, place)?;
        let deleted = self.deleted.remove(&(from, seen.number));
        let deleted = deleted.ok_or_else(|| format!("{seen:?} was not deleted"))?;
        let draft = deleted.draft.without_bytes(None);
        let amended = deleted.amended.clone();
        let partition = self.partition(place, &draft);
        let ordinal = self.queue_mut(place).take(partition);
        let message = Message {
            size: u64::try_from(draft.encode().len()).expect("fits"),
            draft: Arc::new(draft),
            enqueued_at: seen.enqueued_at,
            time_to_live: NEVER,
            state: State::Active,
            lock: None,
            delivery_count: seen.delivery_count,
            properties: amended.clone(),
            amended,
            enqueued_number: seen.number,
            hops: 0,
            stays: false,
            source: None,
            changed: round.group,
        };
        self.queue_mut(place).messages.insert(ordinal, message);
        let reason = [(REASON, DAMAGED), (DESCRIPTION, ANY)];
        self.depart(round, place, ordinal, &reason);
        self.arrive(round)?;
        self.go_on(round, place)?;
        Ok(())
    }
}
