//! Receives without a link, and their answers.

use jitney_base::ids::EntityId;
use jitney_base::time::Millis;
use jitney_broker::access::Inquiry;
use jitney_gateway::messages::Receive;
use jitney_gateway::operations::EndReceive;
use jitney_gateway::request::Requester;
use jitney_queue::ReceiveMode;
use jitney_shard::{Call, ReceiveAnswer, ReceiveRequest};

use super::*;
use crate::sim::acts::Part;
use crate::sim::receives::Receiving;
use crate::sim::sights::{self, answer_of};

/// Receives that are not answered.
#[derive(Debug, Default)]
pub(super) struct Receives {
    /// Where they receive, and whether their clients have left.
    open: BTreeMap<LinkKey, (Place, bool)>,
    /// Those that are to be abandoned.
    abandoned: BTreeSet<LinkKey>,
    /// Operators' requests to end some, and whether they are to succeed.
    ending: BTreeMap<RequestId, bool>,
    /// What did not reach clients.
    returned: VecDeque<Receiving>,
    /// How many were begun, had a message, had one that they gave back, and were abandoned.
    pub(super) figures: [usize; 4],
}

impl Harness {
    /// Does something about a receive.
    pub(in crate::sim) fn receive(&mut self, act: &Receiving) -> Result<(), Stop> {
        if self.is_away {
            return Ok(());
        }
        let now = self.now;
        self.trace.note(|| format!("{now}: {act:?}"));
        let input = match *act {
            Receiving::Begin {
                at,
                place,
                delete,
                wait,
            } => {
                self.receives.open.insert(at, (place, false));
                self.places.insert(at, place);
                self.receives.figures[0] += 1;
                let mode = if delete {
                    ReceiveMode::ReceiveAndDelete
                } else {
                    ReceiveMode::PeekLock
                };
                let wanted = ReceiveRequest {
                    requester: Requester {
                        host: None,
                        authority: self.authority()?,
                    },
                    receive: Receive {
                        path: place.address(&self.paths),
                        mode,
                        wait: Millis::from_millis(wait),
                    },
                };
                Input::Receive(request_of(at), Box::new(wanted))
            }
            Receiving::Cancel { at, has_left } => {
                if let Some((_, left)) = self.receives.open.get_mut(&at) {
                    *left |= has_left;
                }
                Input::CancelReceive(request_of(at))
            }
            Receiving::End { at } => {
                let id = RequestId(self.next_request);
                self.next_request += 1;
                self.receives.ending.insert(id, self.auditor.is_waiting(at));
                let requester = Requester {
                    host: None,
                    authority: self.authority()?,
                };
                let call = Call::new(requester, EndReceive(request_of(at)));
                Input::Request(id, Box::new(call))
            }
            Receiving::Return { place, token, .. } => {
                let part = match place.part {
                    Part::Main => 0,
                    Part::Dead => 1,
                    Part::Transfer => 2,
                };
                let queue = u32::try_from(3 * place.queue + part).expect("few");
                Input::ReturnReceived(EntityId(queue), token)
            }
        };
        self.handle(input);
        let mut seen = self.seen.take();
        let (Some(Happened::Step(step)), true) = (seen.pop(), seen.is_empty()) else {
            return Err(Stop::Wrong("a receive is one step".to_owned()));
        };
        let sights = self.note(step.sights)?;
        let observed = Observed {
            now,
            group: step.group,
            sights: &sights,
        };
        let pins = self.auditor.receive(observed, act)?;
        self.wait_for(&sights, &pins);
        let wanted = self.shard.gateway().poll_timeout();
        self.auditor.check_timeout(wanted)?;
        self.shard.seal_if_large(Timestamp::from_millis(now));
        self.judge()
    }

    fn authority(&mut self) -> Result<jitney_broker::access::Authority, Stop> {
        let inquiry = Inquiry {
            peer: Origin::default().peer,
            host: None,
            nowhere: None,
            token: None,
            path: String::new(),
            supplementary: Vec::new(),
        };
        let authority = self
            .shard
            .authorize(Timestamp::from_millis(self.now), &inquiry);
        authority.map_err(|refused| Stop::Wrong(format!("a client has no rights: {refused:?}")))
    }

    /// A receive is answered: it was told that in some step, and its group is durable.
    pub(super) fn received(
        &mut self,
        request: RequestId,
        answer: &ReceiveAnswer,
    ) -> Result<(), Stop> {
        let at = sights::receive(request);
        let sight = answer_of(request, answer)?;
        let text = format!("{sight:?}");
        let open = self.receives.open.remove(&at);
        let (place, has_left) = open.ok_or_else(|| format!("nobody waits for {text}"))?;
        let waiting = self.unreleased.get_mut(&text);
        let waiting = waiting.and_then(VecDeque::pop_front);
        let Unreleased { pin, told, .. } =
            waiting.ok_or_else(|| format!("{text} is answered, and no step told it"))?;
        let released = self.auditor.released(pin);
        released.map_err(|error| format!("{text}: {error}"))?;
        if matches!(answer, ReceiveAnswer::Message(_)) {
            self.auditor.receive_answered(at);
            self.receives.figures[1] += 1;
        }
        if !has_left {
            self.released.push((told, sight));
        } else if let Some(token) = token_of(&sight) {
            self.receives.figures[2] += 1;
            let returned = Receiving::Return { at, place, token };
            self.receives.returned.push_back(returned);
        }
        Ok(())
    }

    /// An operator who ends a receive is answered; returns whether somebody has asked that.
    pub(super) fn has_ended<T, E>(
        &mut self,
        request: RequestId,
        answer: &Result<T, E>,
    ) -> Result<bool, Stop> {
        let is_done = answer.is_ok();
        match self.receives.ending.remove(&request) {
            None => Ok(false),
            Some(expected) if expected == is_done => Ok(true),
            Some(expected) => Err(Stop::Wrong(format!(
                "a receive is to be ended: {expected}, and was: {is_done}"
            ))),
        }
    }

    /// The store is away: receives that wait are to be abandoned.
    pub(super) fn expect_abandoned(&mut self) {
        let abandoned = self.auditor.abandon_receives();
        self.receives.abandoned.extend(abandoned);
    }

    /// A receive is not answered.
    pub(super) fn abandoned(&mut self, request: RequestId) -> Result<(), Stop> {
        let at = sights::receive(request);
        self.receives.figures[3] += 1;
        self.receives.open.remove(&at);
        if self.receives.abandoned.remove(&at) {
            Ok(())
        } else {
            Err(Stop::Wrong(format!("{at:?} is abandoned")))
        }
    }

    /// Checks that a fenced shard has abandoned all receives but those that were answered before.
    pub(super) fn check_abandoned(&self, gone: &BTreeSet<RequestId>) -> Result<(), Stop> {
        let mut open = self.receives.open.keys();
        match open.find(|at| !gone.contains(&request_of(**at))) {
            Some(at) => Err(Stop::Wrong(format!("{at:?} waits at a fenced shard"))),
            None => Ok(()),
        }
    }

    /// Returns a message that has not reached its client.
    pub(in crate::sim) fn returned(&mut self) -> Option<Receiving> {
        self.receives.returned.pop_front()
    }

    pub(in crate::sim) fn has_returned(&self) -> bool {
        !self.receives.returned.is_empty()
    }

    /// Returns where a receive receives, also one that is answered.
    pub(in crate::sim) fn place_of(&self, at: LinkKey) -> Option<Place> {
        self.places.get(&at).copied()
    }

    /// All receives have gone with their shard.
    pub(super) fn forget_receives(&mut self) {
        let figures = self.receives.figures;
        self.receives = Receives {
            figures,
            ..Receives::default()
        };
    }

    pub(super) fn check_receives(&self) -> Result<(), String> {
        let Receives {
            open,
            abandoned,
            ending,
            ..
        } = &self.receives;
        if open.is_empty() && abandoned.is_empty() && ending.is_empty() {
            return Ok(());
        }
        Err(format!("receives have no answer: {:?}", self.receives))
    }

    pub(in crate::sim) fn received_figures(&self) -> [usize; 4] {
        self.receives.figures
    }
}

fn request_of(at: LinkKey) -> RequestId {
    RequestId(u64::from(at.link))
}
