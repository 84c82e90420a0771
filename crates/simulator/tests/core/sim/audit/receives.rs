//! What receives without a link must lead to: each is a receiver of its place for one message, and is told once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jitney_amqp::Condition;
use jitney_base::ids::LockToken;

use super::model::{Link, Model, Receiver};
use super::{Auditor, ClientObservation, Observed, Round};
use crate::sim::acts::{LinkKey, LinkKind, Place};
use crate::sim::receives::Receiving;

/// A receive that is not answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Receive {
    pub(super) place: Place,
    pub(super) delete: bool,
    pub(super) until: i64,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    /// It takes what is there, or nothing.
    Draining,
    /// A message is on its way to it.
    HandedOut,
    /// As before, and it takes no other one.
    Cancelled,
}

impl Auditor {
    /// Judges what comes of something that happens to a receive.
    pub(in crate::sim) fn receive(
        &mut self,
        observed: Observed<'_>,
        act: &Receiving,
    ) -> Result<Vec<u64>, String> {
        if let &Receiving::Begin {
            at,
            place,
            delete,
            wait,
        } = act
        {
            let receive = Receive {
                place,
                delete,
                until: observed.now.saturating_add(wait),
                state: State::Waiting,
            };
            self.model.receives.insert(at, receive);
        }
        let mut round = Round::new(&self.model, observed)?;
        let model = &mut self.model;
        match *act {
            Receiving::Begin { at, place, .. } => match model.why_refused(place) {
                Some(condition) => {
                    model.receives.remove(&at);
                    refused(&mut round, at, condition)?;
                }
                None => {
                    model.due(&mut round, place)?;
                    model.begin_to_wait(&mut round, at)?;
                }
            },
            Receiving::Cancel { at, .. } => {
                if let Some(place) = model.end_receive(at) {
                    round.drained(&BTreeMap::from([(at, 1)]), place)?;
                } else if let Some(receive) = model.receives.get_mut(&at) {
                    receive.state = State::Cancelled;
                }
            }
            Receiving::End { at } => {
                if model.end_receive(at).is_some() {
                    refused(&mut round, at, Condition::DetachForced.as_str())?;
                }
            }
            Receiving::Return { at, place, token } => {
                model.give_back(&mut round, &[(at, place, token)])?;
            }
        }
        model.arrive(&mut round)?;
        for place in model.places() {
            model.go_on(&mut round, place)?;
        }
        round.finish()
    }

    /// Returns whether a receive waits for a message.
    pub(in crate::sim) fn is_waiting(&self, at: LinkKey) -> bool {
        let receive = self.model.receives.get(&at);
        receive.is_some_and(Receive::waits)
    }

    /// A receive is answered with a message.
    pub(in crate::sim) fn receive_answered(&mut self, at: LinkKey) {
        self.model.receives.remove(&at);
    }

    /// The store is away: receives that wait are not answered any more.
    pub(in crate::sim) fn abandon_receives(&mut self) -> Vec<LinkKey> {
        let receives = self.model.receives.iter();
        let waiting = receives.filter(|(_, receive)| receive.waits());
        let waiting: Vec<LinkKey> = waiting.map(|(&at, _)| at).collect();
        for &at in &waiting {
            self.model.end_receive(at);
        }
        waiting
    }
}

fn refused(round: &mut Round, at: LinkKey, condition: &str) -> Result<usize, String> {
    round.answer(
        &format!("{at:?} refused with {condition}"),
        |sight| matches!(sight, ClientObservation::Refused(link, found) if *link == at && found == condition),
    )
}

impl Receive {
    fn waits(&self) -> bool {
        matches!(self.state, State::Waiting | State::Draining)
    }
}

impl Model {
    /// Returns why there is no receive without a message session at a place.
    fn why_refused(&self, place: Place) -> Option<&'static str> {
        let Some(entity) = self.entities.get(place.queue) else {
            return Some("amqp:not-found");
        };
        if self.goes_on(place) {
            Some("amqp:not-allowed")
        } else if !entity.description.status.can_receive() {
            Some("com.microsoft:entity-disabled")
        } else {
            self.has_sessions(place).then_some("amqp:not-allowed")
        }
    }

    /// Returns where a link or a receive receives.
    pub(super) fn place_of(&self, at: LinkKey) -> Option<Place> {
        let link = self.links.get(&at).map(|link| link.place);
        link.or_else(|| self.receives.get(&at).map(|receive| receive.place))
    }

    /// Makes a receive a receiver with credit for one message.
    fn begin_to_wait(&mut self, round: &mut Round, at: LinkKey) -> Result<(), String> {
        let receive = self.receives.get_mut(&at).expect("it was begun");
        let (place, delete) = (receive.place, receive.delete);
        let drain = receive.until <= round.now;
        receive.state = if drain {
            State::Draining
        } else {
            State::Waiting
        };
        let receiver = Receiver {
            delete,
            limit: 1,
            delivered: 0,
            drain,
            window: Self::window(),
        };
        self.queue_mut(place).receivers.insert(at, receiver);
        let link = Link {
            place,
            kind: LinkKind::Receiver { delete, wish: None },
            group: None,
            limit: 0,
            sent: 0,
            waiting: VecDeque::new(),
        };
        self.links.insert(at, link);
        self.dispatch(round, place, &BTreeSet::new())
    }

    /// A receive has its message: it is no receiver any more.
    pub(super) fn hand_out(&mut self, at: LinkKey) {
        if let Some(receive) = self.receives.get_mut(&at) {
            receive.state = State::HandedOut;
            let place = receive.place;
            self.links.remove(&at);
            self.queue_mut(place).receivers.remove(&at);
        }
    }

    /// Ends a receive that waits; returns where.
    pub(super) fn end_receive(&mut self, at: LinkKey) -> Option<Place> {
        let receive = self.receives.get(&at).filter(|receive| receive.waits())?;
        let place = receive.place;
        self.receives.remove(&at);
        self.links.remove(&at);
        self.queue_mut(place).receivers.remove(&at);
        Some(place)
    }

    /// Returns when the next receive has waited for long enough.
    pub(super) fn next_end_of_wait(&self) -> Option<i64> {
        let receives = self.receives.values();
        let waiting = receives.filter(|receive| receive.state == State::Waiting);
        waiting.map(|receive| receive.until).min()
    }

    /// Receives that have waited for long enough take what is there, or nothing.
    pub(super) fn end_waits(&mut self, round: &mut Round) -> Result<(), String> {
        loop {
            let receives = self.receives.iter_mut();
            let over =
                receives.filter(|(_, it)| it.state == State::Waiting && it.until <= round.now);
            let Some((&at, receive)) = over.min_by_key(|(at, it)| (it.until, **at)) else {
                return Ok(());
            };
            receive.state = State::Draining;
            let place = receive.place;
            self.due(round, place)?;
            if let Some(receiver) = self.queue_mut(place).receivers.get_mut(&at) {
                receiver.drain = true;
            }
            self.dispatch(round, place, &BTreeSet::new())?;
            self.arrive(round)?;
            self.go_on(round, place)?;
        }
    }

    /// A message on its way to a receive has lost its bytes and is free, if it is there: the receive takes another.
    pub(super) fn receive_again(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        token: LockToken,
    ) -> Result<(), String> {
        let Some(&Receive { place, state, .. }) = self.receives.get(&at) else {
            return Ok(());
        };
        if let Some(ordinal) = self.queue(place).locked_by(token) {
            self.unlock(round, place, ordinal);
        }
        self.dispatch(round, place, &BTreeSet::new())?;
        if state == State::HandedOut {
            return self.begin_to_wait(round, at);
        }
        self.receives.remove(&at);
        round.drained(&BTreeMap::from([(at, 1)]), place)
    }
}
