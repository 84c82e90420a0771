//! One step of the broker: what it told whom, taken off piece by piece as the model explains it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jitney_base::ids::LockToken;

use super::model::{Message, Model, number, same_partition};
use crate::sim::acts::{LinkKey, Place, SESSIONS, Session, TransactionId, session_name};
use crate::sim::wire::{Answer, Seen};

/// Something that the broker tells somebody.
#[derive(Debug, Clone)]
pub(in crate::sim) enum ClientObservation {
    /// With the message session that it has, and until when.
    Accepted(LinkKey, Option<(String, i64)>),
    Answered(LinkKey, Answer),
    /// The credit of a request, on the link that it came on.
    CreditReturned(LinkKey),
    Delivered {
        at: LinkKey,
        token: LockToken,
        delete: bool,
        seen: Seen,
    },
    Declared(LinkKey, u32, TransactionId),
    Detached(LinkKey, String),
    /// With the limit up to which the credit is used up.
    Drained(LinkKey, u32),
    Refused(LinkKey, String),
    /// What became of a message that came in: taken, or the condition of the refusal.
    SettledIncoming(LinkKey, u32, Result<(), String>),
    /// What became of a decision: the outcome's name, or the condition of the refusal.
    SettledOutgoing(LinkKey, u32, Result<&'static str, String>),
    /// A decision is part of a transaction.
    SettledWithin(LinkKey, u32, TransactionId, &'static str),
    /// A message that came in is part of a transaction.
    TakenWithin(LinkKey, u32, TransactionId),
}

/// A step of the broker, as it is seen from outside.
#[derive(Debug, Clone, Copy)]
pub(in crate::sim) struct Observed<'a> {
    pub(in crate::sim) now: i64,
    /// The group of records that its changes are in.
    pub(in crate::sim) group: u64,
    /// What the broker tells somebody.
    pub(in crate::sim) sights: &'a [ClientObservation],
}

pub(in crate::sim) struct Round {
    pub(super) now: i64,
    /// The group of records that the step's changes are in.
    pub(super) group: u64,
    deliveries: BTreeMap<Place, VecDeque<(usize, ClientObservation)>>,
    answers: Vec<(usize, ClientObservation)>,
    /// Messages whose bytes are there.
    pub(super) at_hand: BTreeSet<u64>,
    /// Links that got a session in this step, by what said so.
    granted: BTreeMap<LinkKey, usize>,
    /// Messages on their way to dead-letter queues.
    pub(super) arrivals: Vec<(usize, u64, Message)>,
    /// For each thing told: the group that must be durable before it is.
    pub(super) pins: Vec<u64>,
}

impl Round {
    pub(super) fn new(model: &Model, observed: Observed<'_>) -> Result<Self, String> {
        let Observed { now, group, sights } = observed;
        let mut round = Self {
            now,
            group,
            deliveries: BTreeMap::new(),
            answers: Vec::new(),
            at_hand: BTreeSet::new(),
            granted: BTreeMap::new(),
            arrivals: Vec::new(),
            pins: vec![0; sights.len()],
        };
        for (at, sight) in sights.iter().enumerate() {
            match sight {
                ClientObservation::Delivered { at: link, .. }
                | ClientObservation::Drained(link, _) => {
                    let place = model.place_of(*link);
                    let place = place.ok_or_else(|| format!("no such link: {sight:?}"))?;
                    let waiting = round.deliveries.entry(place).or_default();
                    waiting.push_back((at, sight.clone()));
                }
                _ => round.answers.push((at, sight.clone())),
            }
        }
        Ok(round)
    }

    pub(super) fn pin(&mut self, sight: usize, group: u64) {
        self.pins[sight] = self.pins[sight].max(group);
    }

    /// Takes off the answer that is asked for.
    pub(super) fn answer(
        &mut self,
        what: &str,
        is_it: impl Fn(&ClientObservation) -> bool,
    ) -> Result<usize, String> {
        let found = self.answers.iter().position(|(_, sight)| is_it(sight));
        match found {
            Some(at) => Ok(self.answers.remove(at).0),
            None => Err(format!("expected {what}, and found {:?}", self.answers)),
        }
    }

    /// Takes off exactly this answer.
    pub(super) fn expect(&mut self, sight: &ClientObservation) -> Result<usize, String> {
        let shown = format!("{sight:?}");
        self.answer(&shown, |found| format!("{found:?}") == shown)
    }

    /// Takes off that a transaction was declared, and returns its name.
    pub(super) fn declared(&mut self, at: LinkKey, delivery: u32) -> Result<TransactionId, String> {
        let mut found = self.answers.iter();
        let found = found.position(
            |(_, it)| matches!(it, ClientObservation::Declared(to, of, _) if (*to, *of) == (at, delivery)),
        );
        match found.map(|position| self.answers.remove(position).1) {
            Some(ClientObservation::Declared(.., id)) => Ok(id),
            _ => Err(format!("nothing was declared: {:?}", self.answers)),
        }
    }

    /// Takes off that a link was let in, and returns to which session, and until when.
    pub(super) fn granted(&mut self, at: LinkKey) -> Result<(Session, i64), String> {
        let mut found = self.answers.iter();
        let found =
            found.position(|(_, it)| matches!(it, ClientObservation::Accepted(to, _) if *to == at));
        let (sight, found) = match found.map(|position| self.answers.remove(position)) {
            Some((sight, ClientObservation::Accepted(_, Some(found)))) => (sight, found),
            other => return Err(format!("{at:?} is to have a session: {other:?}")),
        };
        let (name, until) = found;
        let session = (0..SESSIONS).find(|&id| session_name(id) == name);
        self.granted.insert(at, sight);
        Ok((
            session.ok_or_else(|| format!("no session is {name}"))?,
            until,
        ))
    }

    /// Takes off the next response on a link.
    pub(super) fn response(&mut self, link: LinkKey) -> Result<(usize, Answer), String> {
        let found = self.answers.iter().position(
            |(_, sight)| matches!(sight, ClientObservation::Answered(at, _) if *at == link),
        );
        match found.map(|at| self.answers.remove(at)) {
            Some((at, ClientObservation::Answered(_, answer))) => Ok((at, answer)),
            _ => Err(format!("expected a response on {link:?}")),
        }
    }

    /// Takes off the next delivery of a place and makes it happen in the model.
    pub(super) fn delivery(
        &mut self,
        model: &mut Model,
        place: Place,
        fresh: &BTreeSet<u64>,
        waiting: &str,
    ) -> Result<(), String> {
        let next = self
            .deliveries
            .get_mut(&place)
            .and_then(VecDeque::pop_front);
        let Some((sight, next)) = next else {
            return Err(format!("{waiting}; nothing was delivered"));
        };
        let ClientObservation::Delivered {
            at,
            token,
            delete,
            seen,
        } = next
        else {
            return Err(format!("{waiting}; and found {next:?}"));
        };
        let queue = model.queue(place);
        let Some(receiver) = queue.receivers.get(&at) else {
            return Err(format!("{at:?} receives nothing from {place}"));
        };
        if !receiver.can_take() {
            return Err(format!(
                "{at:?} at {place} has no credit or no window: {receiver:?}"
            ));
        }
        if self.granted.get(&at).is_some_and(|&let_in| sight < let_in) {
            return Err(format!("{at:?} gets a message before it is let in"));
        }
        if receiver.delete != delete {
            return Err(format!("{at:?} receives in another mode"));
        }
        let Some(ordinal) = queue.ordinal_of(seen.number) else {
            return Err(format!("{place} has no message {}: {seen:?}", seen.number));
        };
        let message = &queue.messages[&ordinal];
        if !message.is_available() {
            let (number, state, lock) = (seen.number, message.state, &message.lock);
            return Err(format!(
                "message {number} of {place} was delivered to {at:?}: it is {state:?}, {lock:?}"
            ));
        }
        let of_session = model.has_sessions(place).then_some(message.draft.session);
        if let Some(session) = of_session {
            let holder = session.and_then(|id| queue.holders.get(&id));
            if holder.is_none_or(|holder| holder.at != at) {
                return Err(format!("{at:?} gets a message of {session:?}: {holder:?}"));
            }
        }
        let mut lower = queue.messages.range(..ordinal);
        let passed_over = lower.find(|(at, other)| {
            let same = of_session.is_none_or(|session| other.draft.session == session);
            let same = same && same_partition(**at, ordinal);
            other.is_available() && same && !fresh.contains(at)
        });
        if let Some((&lower, _)) = passed_over {
            let (low, high) = (number(lower), seen.number);
            return Err(format!("{place}: {high} was delivered, and {low} is there"));
        }
        let mut shown = message.shown(place, ordinal);
        let (size, changed) = (message.size, message.changed);
        if delete {
            self.pin(sight, self.group);
            shown.check(&seen)?;
            model.delete(place, ordinal);
        } else {
            self.pin(sight, changed);
            let (until, _) = model.lock(self.now, place, ordinal);
            shown.locked_until = Some(until);
            shown.check(&seen)?;
            if seen.lock_token != Some(token.to_uuid()) {
                return Err(format!("the lock token is {token}: {seen:?}"));
            }
            let queue = model.queue_mut(place);
            if queue.locked_by(token).is_some() {
                return Err(format!("the lock token {token} is given twice"));
            }
            let message = queue.messages.get_mut(&ordinal).expect("it is there");
            message.lock.as_mut().expect("it is locked").token = Some(token);
        }
        let receiver = model.queue_mut(place).receivers.get_mut(&at);
        let receiver = receiver.expect("it is there");
        receiver.delivered = receiver.delivered.wrapping_add(1);
        receiver.window -= i64::try_from(size).expect("fits");
        model.hand_out(at);
        Ok(())
    }

    /// Takes off the ends of these drains.
    pub(super) fn drained(
        &mut self,
        ended: &BTreeMap<LinkKey, u32>,
        place: Place,
    ) -> Result<(), String> {
        let mut left = ended.clone();
        for _ in ended {
            let next = self
                .deliveries
                .get_mut(&place)
                .and_then(VecDeque::pop_front);
            match next {
                Some((_, ClientObservation::Drained(at, limit)))
                    if left.remove(&at) == Some(limit) => {}
                other => {
                    return Err(format!(
                        "drains of {left:?} have ended, and found {other:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Everything was explained.
    pub(super) fn finish(self) -> Result<Vec<u64>, String> {
        let mut rest: Vec<(usize, ClientObservation)> = self.answers;
        rest.extend(self.deliveries.into_values().flatten());
        if rest.is_empty() {
            Ok(self.pins)
        } else {
            Err(format!("nothing explains {rest:?}"))
        }
    }
}
