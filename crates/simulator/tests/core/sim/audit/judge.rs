//! What each act must lead to.

mod asks;
mod jobs;
mod scopes;
mod transactions;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jitney_base::ids::LockToken;
use jitney_gateway::limits;
use jitney_queue::EntityKind;

use super::Expected;
use super::model::{
    Call, Link, Model, Operation, Receiver, Scope, SessionState, State, Transaction, number,
    partition_of,
};
use super::round::{ClientObservation, Round};
use crate::sim::acts::{
    Ask, ClientAction, LinkKey, LinkKind, Place, Session, TransactionId, Verdict, Wish,
};
use crate::sim::wire::Draft;

const NOT_ALLOWED: &str = "amqp:not-allowed";
const NOT_FOUND: &str = "amqp:not-found";
const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
const DECODE_ERROR: &str = "amqp:decode-error";
const FULL: &str = "amqp:resource-limit-exceeded";
const BUSY: &str = "com.microsoft:server-busy";
const TOO_LARGE: &str = "amqp:link:message-size-exceeded";
const DISABLED: &str = "com.microsoft:entity-disabled";
const LOCK_LOST: &str = "com.microsoft:message-lock-lost";
const SESSION_LOST: &str = "com.microsoft:session-lock-lost";
const UNKNOWN: &str = "amqp:transaction:unknown-id";
const NO_MESSAGE: &str = "com.microsoft:message-not-found";

/// How a management operation failed: its status and condition.
type Failed = (i32, &'static str);

impl Model {
    pub(super) fn act(&mut self, round: &mut Round, act: &ClientAction) -> Result<(), String> {
        self.transactions.retain(|_, open| round.now < open.ends);
        match act {
            ClientAction::Attach { at, place, kind } => self.attach(round, *at, *place, *kind)?,
            ClientAction::Close {
                connection,
                unsent,
                kept,
            } => {
                // A message of a receiver that the shard has forgotten waits for its lock to end.
                let is_known =
                    |at: LinkKey| self.links.contains_key(&at) || self.departed_from(at).is_some();
                let unsent: Vec<_> = unsent.iter().copied().filter(|it| is_known(it.0)).collect();
                self.close(round, *connection, kept)?;
                self.give_back(round, &unsent)?;
            }
            ClientAction::Credit { .. } => self.credit(round, act)?,
            ClientAction::Declare { at, delivery } => self.declare(round, *at, *delivery)?,
            ClientAction::Detach { at, kept } => {
                self.detach(round, *at)?;
                self.unsent(round, *at, kept)?;
            }
            ClientAction::Discharge {
                at,
                delivery,
                id,
                fail,
            } => {
                if *fail {
                    self.roll_back(round, *at, *delivery, id)?;
                } else {
                    self.commit(round, *at, *delivery, id)?;
                }
            }
            ClientAction::Request {
                at,
                id,
                reply_to,
                about,
                transaction,
                ask,
            } => {
                let call = |place| Call {
                    id: id.clone(),
                    reply_to: reply_to.clone(),
                    about: *about,
                    transaction: transaction.clone(),
                    place,
                    ask: ask.clone(),
                    at: *at,
                    has_room: true,
                };
                self.request(round, *at, call)?;
            }
            ClientAction::Unsent { at, tokens } => self.unsent(round, *at, tokens)?,
            ClientAction::Returned { at, token } => self.returned(round, *at, *token)?,
            ClientAction::Send {
                at,
                delivery,
                drafts,
                batch,
                transaction,
                ..
            } => {
                debug_assert!(*batch || drafts.len() == 1);
                if *batch && self.is_over_batch_size(*at, drafts) {
                    if let Some(id) = transaction {
                        self.spoil(at.connection, id);
                    }
                    round.expect(&ClientObservation::Detached(*at, NOT_ALLOWED.to_owned()))?;
                    self.detach(round, *at)?;
                } else {
                    self.send(round, *at, *delivery, drafts, transaction.as_ref())?;
                }
            }
            ClientAction::Settle { .. } => self.settle(round, act)?,
            ClientAction::Timeout => {
                self.end_waits(round)?;
                while let Some(place) = self.most_due(round.now) {
                    self.due(round, place)?;
                    self.arrive(round)?;
                    self.go_on(round, place)?;
                }
            }
            ClientAction::Written { at, bytes } => {
                if let Some(place) = self.receives(*at) {
                    self.due(round, place)?;
                    let bytes = i64::try_from(*bytes).expect("fits");
                    if let Some(receiver) = self.queue_mut(place).receivers.get_mut(at) {
                        receiver.window = (receiver.window + bytes).min(Self::window());
                    }
                    self.dispatch(round, place, &BTreeSet::new())?;
                }
            }
        }
        self.arrive(round)?;
        self.all_go_on(round)
    }

    /// Returns whether senders send to a place.
    fn takes(&self, place: Place) -> bool {
        let kind = self.description(place).kind;
        !place.is_dead() && kind != EntityKind::Subscription
    }

    /// Returns where a link receives that was let in.
    fn receives(&self, at: LinkKey) -> Option<Place> {
        self.wants(at).filter(|_| !self.waits(at))
    }

    /// Returns whether a link waits for a message session.
    pub(super) fn waits(&self, at: LinkKey) -> bool {
        let queue = self.wants(at).map(|place| self.queue(place));
        queue.is_some_and(|queue| queue.waiting.iter().any(|(other, _)| *other == at))
    }

    /// Returns where a link receives, or waits for a message session.
    fn wants(&self, at: LinkKey) -> Option<Place> {
        let link = self.links.get(&at)?;
        matches!(link.kind, LinkKind::Receiver { .. }).then_some(link.place)
    }

    fn attach(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        place: Place,
        kind: LinkKind,
    ) -> Result<(), String> {
        let status = self.entities.get(place.queue).map(|e| e.description.status);
        let refusal = match (kind, status) {
            (_, None) => Some(NOT_FOUND),
            (LinkKind::Sender, Some(_)) if !self.takes(place) => Some(NOT_ALLOWED),
            (LinkKind::Sender, Some(status)) => (!status.can_send()).then_some(DISABLED),
            (LinkKind::Receiver { .. }, Some(_)) if self.is_elsewhere(at, place) => {
                Some(NOT_ALLOWED)
            }
            (LinkKind::Receiver { .. }, Some(_)) if self.goes_on(place) => Some(NOT_ALLOWED),
            (LinkKind::Receiver { .. }, Some(status)) if !status.can_receive() => Some(DISABLED),
            (LinkKind::Receiver { wish, .. }, Some(_)) => {
                (wish.is_some() != self.has_sessions(place)).then_some(NOT_ALLOWED)
            }
            (LinkKind::Requests | LinkKind::Responses | LinkKind::Coordinator, Some(_)) => None,
        };
        if let Some(condition) = refusal {
            round.answer(&format!("{at:?} refused with {condition}"), |sight| {
                matches!(sight, ClientObservation::Refused(link, found) if *link == at && found == condition)
            })?;
            return Ok(());
        }
        if let LinkKind::Receiver { delete, wish } = kind {
            self.due(round, place)?;
            if let Some(Wish::Named(session)) = wish
                && self.queue(place).holders.contains_key(&session)
            {
                round.answer(&format!("{at:?} refused, {session} is taken"), |sight| {
                    matches!(sight, ClientObservation::Refused(link, found)
                        if *link == at && found == "com.microsoft:session-cannot-be-locked")
                })?;
                return self.arrive(round);
            }
            let receiver = Receiver {
                delete,
                limit: 0,
                delivered: 0,
                drain: false,
                window: Self::window(),
            };
            self.queue_mut(place).receivers.insert(at, receiver);
        }
        let link = Link {
            place,
            kind,
            group: self.join_group(at, place, kind),
            limit: 0,
            sent: 0,
            waiting: VecDeque::new(),
        };
        self.links.insert(at, link);
        match kind {
            LinkKind::Receiver {
                wish: Some(Wish::Named(wanted)),
                ..
            } => {
                let (session, until) = round.granted(at)?;
                if session != wanted {
                    return Err(format!("{at:?} wanted {wanted} and got {session}"));
                }
                return self.hold(round, place, session, at, until);
            }
            LinkKind::Receiver {
                wish: Some(Wish::Next(millis)),
                ..
            } => {
                if !self.queue(place).free_sessions().is_empty() {
                    return self.grant(round, place, at, &BTreeSet::new());
                }
                let until = round.now.saturating_add(i64::from(millis));
                self.queue_mut(place).waiting.push((at, until));
                return Ok(());
            }
            _ => {}
        }
        round.answer(
            &format!("{at:?} accepted"),
            |sight| matches!(sight, ClientObservation::Accepted(link, None) if *link == at),
        )?;
        if kind == LinkKind::Responses {
            let orphans = self.orphans.remove(&at.connection).unwrap_or_default();
            for call in orphans {
                self.submit(round, at.connection, call)?;
            }
        }
        Ok(())
    }

    fn close(
        &mut self,
        round: &mut Round,
        connection: u32,
        kept: &[(LinkKey, LockToken)],
    ) -> Result<(), String> {
        let links = self.links.keys().copied();
        let links: Vec<LinkKey> = links.filter(|at| at.connection == connection).collect();
        let mut gone = Vec::new();
        for &at in &links {
            gone.push((at, self.let_go(at)));
        }
        self.transactions.retain(|(of, _), _| *of != connection);
        for (at, gone) in gone {
            let of_link = kept.iter().filter(|(of, _)| *of == at);
            let tokens: Vec<LockToken> = of_link.map(|(_, token)| *token).collect();
            self.unsent(round, at, &tokens)?;
            if let Some((at, place, session)) = gone {
                self.release(round, at, place, session)?;
            }
        }
        self.orphans.remove(&connection);
        self.departed.retain(|(at, _)| at.connection != connection);
        Ok(())
    }

    /// Frees messages that were still to be delivered on a link that has ended.
    fn unsent(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        tokens: &[LockToken],
    ) -> Result<(), String> {
        let Some(place) = self.departed_from(at) else {
            return Ok(());
        };
        let unsent = tokens.iter().map(|token| (at, place, *token));
        self.give_back(round, &unsent.collect::<Vec<_>>())
    }

    /// Frees messages that were still to be delivered to a connection that has ended, link by link.
    pub(super) fn give_back(
        &mut self,
        round: &mut Round,
        unsent: &[(LinkKey, Place, LockToken)],
    ) -> Result<(), String> {
        for of_link in unsent.chunk_by(|one, next| one.0 == next.0) {
            let place = of_link[0].1;
            self.due(round, place)?;
            for (_, _, token) in of_link {
                if let Some(ordinal) = self.queue(place).locked_by(*token) {
                    self.unlock(round, place, ordinal);
                }
            }
            self.dispatch(round, place, &BTreeSet::new())?;
            // What has expired there is a dead letter before the next link's messages are freed.
            self.arrive(round)?;
        }
        Ok(())
    }

    pub(super) fn detach(&mut self, round: &mut Round, at: LinkKey) -> Result<(), String> {
        // Without the link that controls them, transactions come to nothing.
        self.transactions.retain(|_, open| open.by != at);
        for call in self
            .links
            .get(&at)
            .into_iter()
            .flat_map(|link| &link.waiting)
        {
            round.expect(&ClientObservation::CreditReturned(call.at))?;
        }
        let gone = self.let_go(at);
        let last_first = self.departed.iter().rev();
        let mut of_connection = last_first.filter(|(of, _)| of.connection == at.connection);
        let forgotten = of_connection.nth(limits::DEPARTED_LINKS_MAX).copied();
        self.departed.retain(|it| Some(*it) != forgotten);
        match gone {
            Some((at, place, session)) => self.release(round, at, place, session),
            None => Ok(()),
        }
    }

    /// Returns where a receiver received that has gone, as far as the shard remembers it.
    fn departed_from(&self, at: LinkKey) -> Option<Place> {
        let mut departed = self.departed.iter();
        departed.find(|(of, _)| *of == at).map(|(_, place)| *place)
    }

    /// Takes a link away; returns which message session it held, though its lock may be over.
    fn let_go(&mut self, at: LinkKey) -> Option<(LinkKey, Place, Session)> {
        let Link { kind, place, .. } = self.links.remove(&at)?;
        if matches!(kind, LinkKind::Receiver { wish: None, .. }) {
            self.departed.push((at, place));
        }
        self.leave_group(at);
        let queue = self.queue_mut(place);
        queue.receivers.remove(&at);
        queue.waiting.retain(|(other, _)| *other != at);
        let mut holders = queue.holders.iter().chain(&queue.lapsed);
        let (&session, _) = holders.find(|(_, holder)| holder.at == at)?;
        Some((at, place, session))
    }

    /// A link that has gone gives its message session back; its deliveries do not count.
    fn release(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        place: Place,
        session: Session,
    ) -> Result<(), String> {
        self.due(round, place)?;
        // Its lock may just have ended.
        let queue = self.queue_mut(place);
        queue.lapsed.retain(|_, holder| holder.at != at);
        let holders = &mut queue.holders;
        if holders.get(&session).is_some_and(|holder| holder.at == at) {
            holders.remove(&session);
            for ordinal in self.locked_in(place, session) {
                self.unlock(round, place, ordinal);
            }
            self.dispatch(round, place, &BTreeSet::new())?;
        }
        self.arrive(round)
    }

    fn credit(&mut self, round: &mut Round, act: &ClientAction) -> Result<(), String> {
        let &ClientAction::Credit { at, limit, drain } = act else {
            return Ok(());
        };
        if let Some(place) = self.wants(at) {
            self.due(round, place)?;
            if let Some(receiver) = self.queue_mut(place).receivers.get_mut(&at) {
                (receiver.limit, receiver.drain) = (limit, drain);
            }
            return self.dispatch(round, place, &BTreeSet::new());
        }
        if let Some(link) = self.links.get_mut(&at)
            && link.kind == LinkKind::Responses
        {
            link.limit = limit;
            return self.flush(round, at);
        }
        Ok(())
    }

    fn returned(&mut self, round: &mut Round, at: LinkKey, token: LockToken) -> Result<(), String> {
        let Some(place) = self.receives(at) else {
            return match self.departed_from(at) {
                Some(place) => self.give_back(round, &[(at, place, token)]),
                None => Ok(()),
            };
        };
        self.due(round, place)?;
        let queue = self.queue_mut(place);
        if let Some(receiver) = queue.receivers.get_mut(&at) {
            receiver.delivered = receiver.delivered.wrapping_sub(1);
        }
        if let Some(ordinal) = queue.locked_by(token) {
            self.unlock(round, place, ordinal);
        }
        self.dispatch(round, place, &BTreeSet::new())
    }

    fn send(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        delivery: u32,
        drafts: &[Draft],
        transaction: Option<&TransactionId>,
    ) -> Result<(), String> {
        let sender = self.links.get(&at);
        let Some((queue, group)) = sender
            .filter(|link| link.kind == LinkKind::Sender)
            .map(|link| (link.place.queue, link.group))
        else {
            return Ok(());
        };
        if let Some(id) = transaction {
            let taken = if drafts.iter().any(|draft| draft.malformed) {
                self.spoil(at.connection, id);
                Err((400, DECODE_ERROR))
            } else if self.is_torn(queue, drafts) {
                self.spoil(at.connection, id);
                Err((400, NOT_ALLOWED))
            } else {
                let send = Operation::Send(queue, drafts.to_vec());
                self.enlist(round, at.connection, id, send, group)?
            };
            let sight = match taken {
                Ok(()) => ClientObservation::TakenWithin(at, delivery, id.clone()),
                Err((_, why)) => {
                    ClientObservation::SettledIncoming(at, delivery, Err(why.to_owned()))
                }
            };
            return round.expect(&sight).map(drop);
        }
        let malformed = drafts.iter().any(|draft| draft.malformed);
        let taken = if !malformed && self.is_torn(queue, drafts) {
            Err((400, NOT_ALLOWED))
        } else {
            self.take(round, queue, drafts)?
        };
        let expected = match &taken {
            Ok(_) => Ok(()),
            Err((_, condition)) => Err((*condition).to_owned()),
        };
        let sight = ClientObservation::SettledIncoming(at, delivery, expected);
        let shown = format!("{sight:?}");
        let told = round.answer(&shown, |found| format!("{found:?}") == shown)?;
        if let Ok((_, pin)) = taken {
            round.pin(told, pin);
        }
        Ok(())
    }

    /// Takes messages in, all or none.
    fn take(
        &mut self,
        round: &mut Round,
        queue: usize,
        drafts: &[Draft],
    ) -> Result<Result<(Vec<i64>, u64), Failed>, String> {
        if drafts.iter().any(|draft| draft.malformed) {
            return Ok(Err((400, DECODE_ERROR)));
        }
        let admitted = self.admit(round, queue, drafts)?;
        Ok(match admitted {
            Ok(()) => Ok(self.put(round, queue, drafts)?),
            Err(failed) => Err(failed),
        })
    }

    /// Takes messages in that were admitted.
    fn put(
        &mut self,
        round: &mut Round,
        queue: usize,
        drafts: &[Draft],
    ) -> Result<(Vec<i64>, u64), String> {
        let place = Place::main(queue);
        let taken = drafts.iter().map(|draft| self.enqueue(round, queue, draft));
        let (numbers, groups): (Vec<i64>, Vec<u64>) = taken.unzip();
        self.dispatch(round, place, &BTreeSet::new())?;
        round.at_hand.extend(drafts.iter().map(|draft| draft.id));
        self.go_on(round, place)?;
        round.at_hand.clear();
        Ok((numbers, groups.into_iter().max().unwrap_or_default()))
    }

    fn settle(&mut self, round: &mut Round, act: &ClientAction) -> Result<(), String> {
        let ClientAction::Settle {
            at,
            delivery,
            token,
            settled,
            verdict,
            transaction,
        } = act
        else {
            return Ok(());
        };
        let Some(place) = self.receives(*at) else {
            // Nobody would be told that it was not done.
            if let Some(id) = transaction {
                self.spoil(at.connection, id);
            }
            return Ok(());
        };
        let result = match transaction {
            Some(id) => {
                let answer = (!settled).then_some((*at, *delivery));
                let settle = Operation::Settle(place, *token, verdict.clone(), answer);
                let enlisted = self.enlist(round, at.connection, id, settle, None)?;
                enlisted.map_err(|(code, condition)| match code {
                    410 => (code, LOCK_LOST),
                    _ => (code, condition),
                })
            }
            None if self.is_enlisted(place, *token) => Err((400, NOT_ALLOWED)),
            None => {
                self.due(round, place)?;
                // A link of which this is heard has its message session.
                let result = self.decide(round, place, *token, verdict, LOCK_LOST);
                self.dispatch(round, place, &BTreeSet::new())?;
                result
            }
        };
        if *settled {
            return Ok(());
        }
        let name = outcome_of(verdict);
        let expected = match result {
            Ok(()) => Ok(name),
            Err((_, condition)) => Err(condition.to_owned()),
        };
        let sight = match (transaction, expected) {
            (Some(id), Ok(name)) => {
                ClientObservation::SettledWithin(*at, *delivery, id.clone(), name)
            }
            (_, expected) => ClientObservation::SettledOutgoing(*at, *delivery, expected),
        };
        let told = round.expect(&sight)?;
        if transaction.is_none() && result.is_ok() && !matches!(verdict, Verdict::Release) {
            round.pin(told, round.group);
        }
        Ok(())
    }

    /// Returns the word for a lock that is over.
    fn lost(&self, place: Place) -> &'static str {
        if self.has_sessions(place) {
            SESSION_LOST
        } else {
            LOCK_LOST
        }
    }

    /// Carries out what the holder of a lock decides.
    fn decide(
        &mut self,
        round: &mut Round,
        place: Place,
        token: LockToken,
        verdict: &Verdict,
        lost: &'static str,
    ) -> Result<(), Failed> {
        let queue = self.queue(place);
        let ordinal = queue.locked_by(token).ok_or((410, lost))?;
        self.decide_on(round, place, ordinal, verdict)
    }

    fn decide_on(
        &mut self,
        round: &mut Round,
        place: Place,
        ordinal: u64,
        verdict: &Verdict,
    ) -> Result<(), Failed> {
        match verdict {
            Verdict::Complete => {
                self.remove(place, ordinal);
            }
            Verdict::Release => self.unlock(round, place, ordinal),
            Verdict::Abandon(properties) => self.fail(round, place, ordinal, properties),
            Verdict::Defer(properties) => {
                let group = round.group;
                if self.count(round, place, ordinal, properties) {
                    let queue = self.queue_mut(place);
                    let message = queue.messages.get_mut(&ordinal).expect("it is locked");
                    message.state = State::Deferred;
                    message.changed = group;
                }
            }
            // A dead letter cannot be dead-lettered (`entities.md#dead-letters`); it stays locked.
            Verdict::DeadLetter { .. } if place.is_dead() => return Err((400, NOT_ALLOWED)),
            Verdict::DeadLetter {
                reason,
                description,
                properties,
            } => {
                let mut all: Vec<(&str, &str)> = properties
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect();
                let texts = [
                    ("DeadLetterReason", reason),
                    ("DeadLetterErrorDescription", description),
                ];
                for (name, text) in texts {
                    all.extend(text.as_deref().map(|text| (name, text)));
                }
                self.depart(round, place, ordinal, &all);
            }
        }
        Ok(())
    }

    fn request(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        call: impl FnOnce(Place) -> Call,
    ) -> Result<(), String> {
        let requests = self.links.get(&at);
        let Some(place) = requests
            .filter(|link| link.kind == LinkKind::Requests)
            .map(|link| link.place)
        else {
            return Ok(());
        };
        let mut call = call(place);
        let links = self.links.iter();
        let waiting = links.filter(|(of, _)| of.connection == at.connection);
        let waiting = waiting.flat_map(|(_, link)| &link.waiting);
        let orphans = self.orphans.get(&at.connection).into_iter().flatten();
        let waiting: usize = waiting.chain(orphans).map(Call::bytes).sum();
        let fits = waiting == 0 || waiting + call.bytes() <= limits::REQUESTS_WAITING_BYTES_MAX;
        // No request for which there was credit is rejected.
        let sight = match &call.transaction {
            Some(id) => ClientObservation::TakenWithin(at, 0, id.clone()),
            None => ClientObservation::SettledIncoming(at, 0, Ok(())),
        };
        round.expect(&sight)?;
        call.has_room = fits;
        if let Some(id) = call.transaction.take_if(|_| !fits) {
            self.spoil(at.connection, &id);
        }
        self.submit(round, at.connection, call)
    }

    /// Lets a request wait where its response is to leave.
    fn submit(&mut self, round: &mut Round, connection: u32, call: Call) -> Result<(), String> {
        let mut links = self.links.iter_mut();
        let found = links.find(|(at, link)| {
            at.connection == connection
                && link.kind == LinkKind::Responses
                && link.place == call.place
                && at.reply_to() == call.reply_to
        });
        if let Some((&at, link)) = found {
            link.waiting.push_back(call);
            return self.flush(round, at);
        }
        self.orphans.entry(connection).or_default().push(call);
        Ok(())
    }

    /// Requests are carried out when their responses can leave.
    fn flush(&mut self, round: &mut Round, at: LinkKey) -> Result<(), String> {
        loop {
            let link = self.links.get_mut(&at).expect("it was found");
            let credit = link.limit.wrapping_sub(link.sent);
            if credit == 0 || credit >= 1 << 31 {
                return Ok(());
            }
            let Some(call) = link.waiting.pop_front() else {
                return Ok(());
            };
            link.sent = link.sent.wrapping_add(1);
            let place = call.place;
            let expected = if call.has_room {
                self.ask(round, at.connection, &call)?
            } else {
                Err((503, BUSY))
            };
            if let (Some(id), Err(_)) = (&call.transaction, &expected) {
                self.spoil(at.connection, id);
            }
            let expected = expected.unwrap_or_else(|(code, why)| Expected::plain(code, why));
            self.arrive(round)?;
            // A request that deletes messages frees room: dead letters that wait for room arrive before the next request is carried out.
            self.all_go_on(round)?;
            let (told, answer) = round.response(at)?;
            round.expect(&ClientObservation::CreditReturned(call.at))?;
            let id = call.id;
            if answer.correlation_id != id {
                let found = answer.correlation_id;
                return Err(format!(
                    "expected the response to {id}, found that to {found}"
                ));
            }
            round.pin(told, expected.pin);
            expected
                .check(self, place, &answer)
                .map_err(|error| format!("the response to {id}: {error}"))?;
        }
    }

    /// Carries a management operation out.
    fn ask(
        &mut self,
        round: &mut Round,
        connection: u32,
        call: &Call,
    ) -> Result<Result<Expected, Failed>, String> {
        let place = call.place;
        let status = self.description(place).status;
        Ok(match &call.ask {
            Ask::Unknown => Err((501, NOT_IMPLEMENTED)),
            Ask::Schedule { .. } if !self.takes(place) => Err((400, NOT_ALLOWED)),
            Ask::Schedule { drafts } if call.transaction.is_some() => {
                self.schedule_within(round, connection, call, drafts)?
            }
            Ask::Schedule { drafts } => {
                self.numbers_dropped = true;
                let taken = self.take(round, place.queue, drafts)?;
                self.numbers_dropped = false;
                taken.map(|(numbers, pin)| Expected::numbers(numbers, pin))
            }
            Ask::Peek { .. } if self.forwards(place) => Err((400, NOT_ALLOWED)),
            Ask::Purge { .. } if self.description(place).partitioned => Err((400, NOT_ALLOWED)),
            Ask::Deferred { .. } | Ask::Purge { .. } if !status.can_receive() => {
                Err((400, DISABLED))
            }
            Ask::Deferred {
                numbers,
                delete,
                session,
            } => {
                self.due(round, place)?;
                if self.has_sessions(place) && !self.holds(call, connection, *session) {
                    return Ok(Err((410, SESSION_LOST)));
                }
                let found = self.find_deferred(place, numbers, *session);
                found.map(|ordinals| {
                    if *delete {
                        self.delete_deferred(round, place, ordinals)
                    } else {
                        self.lock_deferred(round, place, ordinals)
                    }
                })
            }
            Ask::GetState { session }
            | Ask::SetState { session, .. }
            | Ask::RenewSession { session } => {
                self.due(round, place)?;
                if !self.holds(call, connection, Some(*session)) {
                    return Ok(Err((410, SESSION_LOST)));
                }
                self.of_session(round, place, *session, &call.ask)
            }
            Ask::ListSessions { skip, top, since } => {
                self.due(round, place)?;
                Ok(self.list_sessions(place, *skip, *top, *since))
            }
            Ask::Peek {
                from,
                count,
                session,
            } => {
                self.due(round, place)?;
                Ok(self.peek(place, *from, *count, *session))
            }
            Ask::Purge {
                count,
                before,
                session,
            } => {
                self.due(round, place)?;
                Ok(self.purge(round, place, *count, *before, *session))
            }
            Ask::Cancel { numbers } if call.transaction.is_some() => {
                let numbers = numbers.iter().copied().collect();
                let id = call.transaction.as_ref().expect("there is one");
                let cancel = Operation::Cancel(place, numbers);
                let enlisted = self.enlist(round, connection, id, cancel, None)?;
                enlisted.map(|()| Expected::done(0))
            }
            Ask::Cancel { numbers } => {
                self.due(round, place)?;
                self.cancel(round, place, numbers)
            }
            Ask::Renew { .. } if self.has_sessions(place) => Err((400, NOT_ALLOWED)),
            Ask::Renew { tokens } => {
                self.due(round, place)?;
                self.renew(round, place, tokens)
            }
            Ask::Dispose { tokens, verdict } if call.transaction.is_some() => {
                let lost = self.lost_over(round, call, connection)?;
                let id = call.transaction.as_ref().expect("there is one");
                let tokens: BTreeSet<LockToken> = tokens.iter().copied().collect();
                let mut result = Ok(Expected::done(0));
                for token in tokens {
                    let settle = Operation::Settle(place, token, verdict.clone(), None);
                    let enlisted = self.enlist(round, connection, id, settle, None)?;
                    if let Err((code, condition)) = enlisted {
                        result = Err((code, if code == 410 { lost } else { condition }));
                        break;
                    }
                }
                result
            }
            Ask::Dispose { tokens, .. }
                if tokens.iter().any(|&token| self.is_enlisted(place, token)) =>
            {
                let lost = self.lost_over(round, call, connection)?;
                let first = tokens.iter().min().expect("there is one");
                if !self.is_enlisted(place, *first) {
                    self.due(round, place)?;
                }
                Ok(Expected::either([(410, lost), (400, NOT_ALLOWED)]))
            }
            Ask::Dispose { tokens, verdict } => {
                let lost = self.lost_over(round, call, connection)?;
                self.due(round, place)?;
                let queue = self.queue(place);
                let locked = tokens.iter().map(|token| queue.locked_by(*token));
                // One that is named twice is meant once; in which order they go is not said.
                let locked: Vec<Option<u64>> = locked.collect();
                let found = locked.iter().flatten().count();
                let Some(ordinals) = locked.into_iter().collect::<Option<BTreeSet<u64>>>() else {
                    let lost = (410, lost);
                    let twice_dead =
                        place.is_dead() && matches!(verdict, Verdict::DeadLetter { .. });
                    return Ok(if twice_dead && 0 < found {
                        Ok(Expected::either([lost, (400, NOT_ALLOWED)]))
                    } else {
                        Err(lost)
                    });
                };
                let mut result = Ok(Expected::done(round.group));
                for ordinal in &ordinals {
                    if let Err(failed) = self.decide_on(round, place, *ordinal, verdict) {
                        result = Err(failed);
                    }
                }
                self.dispatch(round, place, &ordinals)?;
                result
            }
        })
    }
}

/// Returns the name of the outcome that settles a delivery so.
fn outcome_of(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Complete => "accepted",
        Verdict::Release => "released",
        Verdict::Abandon(_) => "modified",
        Verdict::Defer(_) => "modified, undeliverable here",
        Verdict::DeadLetter { .. } => "rejected",
    }
}
