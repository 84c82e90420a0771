//! What each act must lead to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jitney::entity::LockToken;
use jitney::entity::queue::EntityKind;
use jitney::limits;

use super::Expected;
use super::model::{
    Call, Link, Model, Operation, Receiver, SessionState, State, Transaction, number,
};
use super::round::{Round, Sight};
use crate::sim::acts::{Act, Ask, LinkKey, LinkKind, Place, Session, TransactionId, Verdict, Wish};
use crate::sim::wire::Draft;

const NOT_ALLOWED: &str = "amqp:not-allowed";
const NOT_FOUND: &str = "amqp:not-found";
const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
const DECODE_ERROR: &str = "amqp:decode-error";
const FULL: &str = "amqp:resource-limit-exceeded";
const TOO_LARGE: &str = "amqp:link:message-size-exceeded";
const DISABLED: &str = "com.microsoft:entity-disabled";
const LOCK_LOST: &str = "com.microsoft:message-lock-lost";
const SESSION_LOST: &str = "com.microsoft:session-lock-lost";
const UNKNOWN: &str = "amqp:transaction:unknown-id";
const NO_MESSAGE: &str = "com.microsoft:message-not-found";

/// How a management operation failed: its status and condition.
type Failed = (i32, &'static str);

impl Model {
    pub(super) fn act(&mut self, round: &mut Round, act: &Act) -> Result<(), String> {
        self.transactions.retain(|_, open| round.now < open.ends);
        match act {
            Act::Attach { at, place, kind } => self.attach(round, *at, *place, *kind)?,
            Act::Close { connection } => self.close(round, *connection)?,
            Act::Credit { at, limit, drain } => self.credit(round, *at, *limit, *drain)?,
            Act::Declare { at, delivery } => self.declare(round, *at, *delivery)?,
            Act::Detach { at } => self.detach(round, *at)?,
            Act::Discharge {
                at,
                delivery,
                id,
                fail,
            } => self.discharge(round, *at, *delivery, id, *fail)?,
            Act::Request {
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
                };
                self.request(round, *at, call)?;
            }
            Act::Returned { at, token } => self.returned(round, *at, *token)?,
            Act::Send {
                at,
                delivery,
                drafts,
                batch,
                transaction,
                ..
            } => {
                debug_assert!(*batch || drafts.len() == 1);
                self.send(round, *at, *delivery, drafts, transaction.as_ref())?;
            }
            Act::Settle { .. } => self.settle(round, act)?,
            Act::Timeout => {
                while let Some(place) = self.most_due(round.now) {
                    self.due(round, place)?;
                    self.arrive(round)?;
                    self.go_on(round, place)?;
                }
            }
            Act::Written { at, bytes } => {
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
        for place in self.places() {
            self.go_on(round, place)?;
        }
        Ok(())
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
            (LinkKind::Receiver { .. }, Some(_)) if self.goes_on(place) => Some(NOT_ALLOWED),
            (LinkKind::Receiver { .. }, Some(status)) if !status.can_receive() => Some(DISABLED),
            (LinkKind::Receiver { wish, .. }, Some(_)) => {
                (wish.is_some() != self.has_sessions(place)).then_some(NOT_ALLOWED)
            }
            (LinkKind::Requests | LinkKind::Responses | LinkKind::Coordinator, Some(_)) => None,
        };
        if let Some(condition) = refusal {
            round.answer(&format!("{at:?} refused with {condition}"), |sight| {
                matches!(sight, Sight::Refused(link, found) if *link == at && found == condition)
            })?;
            return Ok(());
        }
        if let LinkKind::Receiver { delete, wish } = kind {
            self.due(round, place)?;
            if let Some(Wish::Named(session)) = wish
                && self.queue(place).holders.contains_key(&session)
            {
                round.answer(&format!("{at:?} refused, {session} is taken"), |sight| {
                    matches!(sight, Sight::Refused(link, found)
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
                return self.hold(round.now, place, session, at, until);
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
            |sight| matches!(sight, Sight::Accepted(link, None) if *link == at),
        )?;
        if kind == LinkKind::Responses {
            let orphans = self.orphans.remove(&at.connection).unwrap_or_default();
            for call in orphans {
                self.submit(round, at.connection, call)?;
            }
        }
        Ok(())
    }

    fn close(&mut self, round: &mut Round, connection: u32) -> Result<(), String> {
        let links = self.links.keys().copied();
        let links: Vec<LinkKey> = links.filter(|at| at.connection == connection).collect();
        let mut gone = Vec::new();
        for at in links {
            gone.extend(self.let_go(at));
        }
        self.transactions.retain(|(of, _), _| *of != connection);
        for (at, place, session) in gone {
            self.release(round, at, place, session)?;
        }
        self.orphans.remove(&connection);
        Ok(())
    }

    pub(super) fn detach(&mut self, round: &mut Round, at: LinkKey) -> Result<(), String> {
        // Without the link that controls them, transactions come to nothing.
        self.transactions.retain(|_, open| open.by != at);
        match self.let_go(at) {
            Some((at, place, session)) => self.release(round, at, place, session),
            None => Ok(()),
        }
    }

    /// Takes a link away; returns which message session it held.
    fn let_go(&mut self, at: LinkKey) -> Option<(LinkKey, Place, Session)> {
        let place = self.links.remove(&at)?.place;
        let queue = self.queue_mut(place);
        queue.receivers.remove(&at);
        queue.waiting.retain(|(other, _)| *other != at);
        let mut holders = queue.holders.iter();
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
        let holders = &mut self.queue_mut(place).holders;
        // Its lock may just have ended.
        if holders.get(&session).is_some_and(|holder| holder.at == at) {
            holders.remove(&session);
            for ordinal in self.locked_in(place, session) {
                self.unlock(round, place, ordinal);
            }
            self.dispatch(round, place, &BTreeSet::new())?;
        }
        self.arrive(round)
    }

    fn credit(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        limit: u32,
        drain: bool,
    ) -> Result<(), String> {
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
            return Ok(());
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
        let Some(queue) = sender
            .filter(|link| link.kind == LinkKind::Sender)
            .map(|link| link.place.queue)
        else {
            return Ok(());
        };
        if let Some(id) = transaction {
            let taken = if drafts.iter().any(|draft| draft.malformed) {
                self.spoil(at.connection, id);
                Err((400, DECODE_ERROR))
            } else {
                let send = Operation::Send(queue, drafts.to_vec());
                self.enlist(round, at.connection, id, send)?
            };
            let sight = match taken {
                Ok(()) => Sight::TakenWithin(at, delivery, id.clone()),
                Err((_, why)) => Sight::SettledIncoming(at, delivery, Err(why.to_owned())),
            };
            return round.expect(&sight).map(drop);
        }
        let taken = self.take(round, queue, drafts)?;
        let expected = match &taken {
            Ok(_) => Ok(()),
            Err((_, condition)) => Err((*condition).to_owned()),
        };
        let sight = Sight::SettledIncoming(at, delivery, expected);
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

    /// Returns whether messages can be taken, all of them.
    fn admit(
        &mut self,
        round: &mut Round,
        queue: usize,
        drafts: &[Draft],
    ) -> Result<Result<(), Failed>, String> {
        if !self.room {
            return Ok(Err((403, FULL)));
        }
        let place = Place::main(queue);
        self.due(round, place)?;
        self.arrive(round)?;
        self.go_on(round, place)?;
        let description = self.description(place);
        if !description.status.can_send() {
            return Ok(Err((400, DISABLED)));
        }
        let mut bytes = self.held(queue);
        for draft in drafts {
            if self.has_sessions(place) && draft.session.is_none() {
                return Ok(Err((400, NOT_ALLOWED)));
            }
            let size = u64::try_from(draft.encode().len()).expect("fits");
            if description.max_message_bytes < size {
                return Ok(Err((403, TOO_LARGE)));
            }
            bytes += size;
        }
        if description.max_bytes < bytes {
            return Ok(Err((403, FULL)));
        }
        Ok(Ok(()))
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

    fn declare(&mut self, round: &mut Round, at: LinkKey, delivery: u32) -> Result<(), String> {
        let link = self.links.get(&at);
        if link.is_none_or(|link| link.kind != LinkKind::Coordinator) {
            return Ok(());
        }
        let id = round.declared(at, delivery)?;
        let open = Transaction {
            by: at,
            parts: Vec::new(),
            spoiled: false,
            ends: round.now + limits::TRANSACTION_TIMEOUT.as_millis(),
        };
        match self.transactions.insert((at.connection, id), open) {
            None => Ok(()),
            Some(other) => Err(format!("two transactions have one name: {other:?}")),
        }
    }

    fn discharge(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        delivery: u32,
        id: &TransactionId,
        fail: bool,
    ) -> Result<(), String> {
        let link = self.links.get(&at);
        if link.is_none_or(|link| link.kind != LinkKind::Coordinator) {
            return Ok(());
        }
        let open = self.transactions.remove(&(at.connection, id.clone()));
        let rolled_back = Err("amqp:transaction:rollback".to_owned());
        let mut pin = 0;
        let result = match open {
            None => Err(UNKNOWN.to_owned()),
            Some(_) if fail => Ok(()),
            Some(open) if open.spoiled => rolled_back,
            Some(open) if self.can_commit(round, &open)? => {
                for part in &open.parts {
                    pin = pin.max(self.carry_out(round, part)?);
                }
                Ok(())
            }
            Some(_) => rolled_back,
        };
        let told = round.expect(&Sight::SettledIncoming(at, delivery, result))?;
        round.pin(told, pin);
        Ok(())
    }

    /// Returns whether all of a transaction can be done.
    fn can_commit(&mut self, round: &mut Round, open: &Transaction) -> Result<bool, String> {
        let mut sent: BTreeMap<usize, Vec<Draft>> = BTreeMap::new();
        for part in &open.parts {
            if self.can_do(round, part)?.is_err() {
                return Ok(false);
            }
            if let Operation::Send(queue, drafts) = part {
                sent.entry(*queue).or_default().extend(drafts.clone());
            }
        }
        for (queue, drafts) in sent {
            if self.admit(round, queue, &drafts)?.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes something part of a transaction, if it could be done now; if not, nothing of the
    /// transaction is done.
    fn enlist(
        &mut self,
        round: &mut Round,
        connection: u32,
        id: &TransactionId,
        part: Operation,
    ) -> Result<Result<(), Failed>, String> {
        let key = (connection, id.clone());
        let Some(open) = self.transactions.get(&key) else {
            return Ok(Err((400, UNKNOWN)));
        };
        let weight = |part: &Operation| match part {
            Operation::Cancel(_, numbers) => numbers.len(),
            Operation::Send(_, drafts) => drafts.len(),
            Operation::Settle(..) => 1,
        };
        let held: usize = open.parts.iter().map(weight).sum();
        let taken_twice = match &part {
            Operation::Settle(place, token, _) => self.is_enlisted(*place, *token),
            Operation::Cancel(..) | Operation::Send(..) => false,
        };
        let result = if 100 < held + weight(&part) {
            Err((400, NOT_ALLOWED))
        } else {
            let can = self.can_do(round, &part)?;
            can.and(if taken_twice {
                Err((400, NOT_ALLOWED))
            } else {
                Ok(())
            })
        };
        let open = self.transactions.get_mut(&key).expect("it was found");
        match result {
            Ok(()) => open.parts.push(part),
            Err(_) => open.spoiled = true,
        }
        Ok(result)
    }

    fn spoil(&mut self, connection: u32, id: &TransactionId) {
        if let Some(open) = self.transactions.get_mut(&(connection, id.clone())) {
            open.spoiled = true;
        }
    }

    /// Returns whether the message with this lock is settled in an open transaction.
    fn is_enlisted(&self, place: Place, token: LockToken) -> bool {
        let mut parts = self.transactions.values().flat_map(|open| &open.parts);
        parts.any(
            |part| matches!(part, Operation::Settle(of, lock, _) if *of == place && *lock == token),
        )
    }

    fn can_do(
        &mut self,
        round: &mut Round,
        part: &Operation,
    ) -> Result<Result<(), Failed>, String> {
        let place = match part {
            Operation::Send(queue, drafts) => return self.admit(round, *queue, drafts),
            Operation::Cancel(place, _) | Operation::Settle(place, ..) => *place,
        };
        self.due(round, place)?;
        self.arrive(round)?;
        self.go_on(round, place)?;
        let queue = self.queue(place);
        Ok(match part {
            Operation::Settle(_, token, _) if queue.locked_by(*token).is_none() => {
                Err((410, self.lost(place)))
            }
            Operation::Settle(_, _, Verdict::DeadLetter { .. }) if place.is_dead() => {
                Err((400, NOT_ALLOWED))
            }
            Operation::Cancel(_, numbers) => {
                let scheduled = |&wanted: &i64| {
                    let found = queue.ordinal_of(wanted);
                    found.is_some_and(|at| queue.messages[&at].is_scheduled())
                };
                let all = numbers.iter().all(scheduled);
                if all { Ok(()) } else { Err((404, NO_MESSAGE)) }
            }
            Operation::Settle(..) | Operation::Send(..) => Ok(()),
        })
    }

    /// Does what can be done, and returns the group that it rests on.
    fn carry_out(&mut self, round: &mut Round, part: &Operation) -> Result<u64, String> {
        match part {
            Operation::Send(queue, drafts) => {
                let (_, pin) = self.put(round, *queue, drafts)?;
                return Ok(pin);
            }
            Operation::Settle(place, token, verdict) => {
                let lost = self.lost(*place);
                let decided = self.decide(round, *place, *token, verdict, lost);
                decided.map_err(|failed| format!("it could be done: {failed:?}"))?;
                self.dispatch(round, *place, &BTreeSet::new())?;
                self.arrive(round)?;
                self.go_on(round, *place)?;
                // What is released is what it was.
                if matches!(verdict, Verdict::Release) {
                    return Ok(0);
                }
            }
            Operation::Cancel(place, numbers) => {
                for &wanted in numbers {
                    // It may be cancelled twice in one transaction.
                    if let Some(ordinal) = self.queue(*place).ordinal_of(wanted) {
                        self.remove(*place, ordinal);
                    }
                }
            }
        }
        Ok(round.group)
    }

    fn settle(&mut self, round: &mut Round, act: &Act) -> Result<(), String> {
        let Act::Settle {
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
            // Nobody is answered, so the rest must not happen either.
            if let Some(id) = transaction {
                self.spoil(at.connection, id);
            }
            return Ok(());
        };
        let result = match transaction {
            Some(id) => {
                let settle = Operation::Settle(place, *token, verdict.clone());
                self.enlist(round, at.connection, id, settle)?
            }
            None if self.is_enlisted(place, *token) => Err((400, NOT_ALLOWED)),
            None => {
                self.due(round, place)?;
                let lost = self.lost(place);
                let result = self.decide(round, place, *token, verdict, lost);
                self.dispatch(round, place, &BTreeSet::new())?;
                result
            }
        };
        if *settled {
            return Ok(());
        }
        let name = match verdict {
            Verdict::Complete => "accepted",
            Verdict::Release => "released",
            Verdict::Abandon(_) => "modified",
            Verdict::Defer(_) => "modified, undeliverable here",
            Verdict::DeadLetter { .. } => "rejected",
        };
        let expected = match result {
            Ok(()) => Ok(name),
            Err((_, condition)) => Err(condition.to_owned()),
        };
        let sight = match (transaction, expected) {
            (Some(id), Ok(name)) => Sight::SettledWithin(*at, *delivery, id.clone(), name),
            (_, expected) => Sight::SettledOutgoing(*at, *delivery, expected),
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
                let queue = self.queue_mut(place);
                let message = queue.messages.get_mut(&ordinal).expect("it is locked");
                message.lock = None;
                message.state = State::Deferred;
                message.changed = group;
                message.modify(properties, group);
            }
            // "Dead-letter from DLQ not possible" (`protocol.md` §6.2); it stays locked.
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
        let call = call(place);
        let links = self.links.iter();
        let waiting = links.filter(|(of, _)| of.connection == at.connection);
        let waiting = waiting.flat_map(|(_, link)| &link.waiting);
        let orphans = self.orphans.get(&at.connection).into_iter().flatten();
        let (count, bytes) = waiting.chain(orphans).fold((0, 0), |(count, bytes), call| {
            (count + 1, bytes + call.bytes())
        });
        let fits = count == 0
            || (count < limits::REQUESTS_WAITING_MAX
                && bytes + call.bytes() <= limits::REQUESTS_WAITING_BYTES_MAX);
        let sight = match &call.transaction {
            Some(id) if fits => Sight::TakenWithin(at, 0, id.clone()),
            _ if fits => Sight::SettledIncoming(at, 0, Ok(())),
            _ => Sight::SettledIncoming(at, 0, Err(FULL.to_owned())),
        };
        round.expect(&sight)?;
        if !fits {
            return Ok(());
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
            let expected = self.ask(round, at.connection, &call)?;
            let expected = expected.unwrap_or_else(|(code, why)| Expected::plain(code, why));
            self.arrive(round)?;
            self.go_on(round, place)?;
            let (told, answer) = round.response(at)?;
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
            Ask::Schedule { drafts } => self
                .take(round, place.queue, drafts)?
                .map(|(numbers, pin)| Expected::numbers(numbers, pin)),
            Ask::Peek { .. } if self.forwards(place) => Err((400, NOT_ALLOWED)),
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
                self.receive_deferred(round, place, numbers, *delete, *session)
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
                let enlisted =
                    self.enlist(round, connection, id, Operation::Cancel(place, numbers))?;
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
                let id = call.transaction.as_ref().expect("there is one");
                let tokens: BTreeSet<LockToken> = tokens.iter().copied().collect();
                let mut result = Ok(Expected::done(0));
                for token in tokens {
                    let settle = Operation::Settle(place, token, verdict.clone());
                    if let Err(failed) = self.enlist(round, connection, id, settle)? {
                        result = Err(failed);
                        break;
                    }
                }
                result
            }
            Ask::Dispose { tokens, .. }
                if tokens.iter().any(|&token| self.is_enlisted(place, token)) =>
            {
                let first = tokens.iter().min().expect("there is one");
                if !self.is_enlisted(place, *first) {
                    self.due(round, place)?;
                }
                Ok(Expected::either([
                    (410, self.lost(place)),
                    (400, NOT_ALLOWED),
                ]))
            }
            Ask::Dispose { tokens, verdict } => {
                self.due(round, place)?;
                let queue = self.queue(place);
                let locked = tokens.iter().map(|token| queue.locked_by(*token));
                // One that is named twice is meant once; in which order they go is not said.
                let locked: Vec<Option<u64>> = locked.collect();
                let found = locked.iter().flatten().count();
                let Some(ordinals) = locked.into_iter().collect::<Option<BTreeSet<u64>>>() else {
                    let lost = (410, self.lost(place));
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

    /// Returns whether a message session is held over this connection, by the link that a call
    /// names if it names one.
    fn holds(&self, call: &Call, connection: u32, session: Option<Session>) -> bool {
        let holders = &self.queue(call.place).holders;
        let holder = session.and_then(|session| holders.get(&session));
        holder.is_some_and(|holder| {
            holder.at.connection == connection && call.about.is_none_or(|at| at == holder.at)
        })
    }

    /// What is asked about a session by its holder.
    fn of_session(
        &mut self,
        round: &Round,
        place: Place,
        session: Session,
        ask: &Ask,
    ) -> Result<Expected, Failed> {
        let held = self.held(place.queue);
        let description = self.description(place);
        let (duration, max_bytes) = (description.lock_duration, description.max_bytes);
        let has_room = self.room;
        let queue = self.queue_mut(place);
        let length = |state: Option<&Vec<u8>>| state.map_or(0, Vec::len);
        match ask {
            Ask::RenewSession { .. } => {
                let until = round.now.saturating_add(duration.as_millis());
                let holder = queue.holders.get_mut(&session).expect("it has one");
                holder.until = until;
                Ok(Expected::expiration(until))
            }
            Ask::SetState { state: Some(_), .. } if !has_room => Err((403, FULL)),
            Ask::SetState { state, .. } => {
                let kept = queue.states.get(&session);
                let before = length(kept.and_then(|kept| kept.state.as_ref()));
                let grows = length(state.as_ref()).saturating_sub(before);
                if 0 < grows && max_bytes < held + u64::try_from(grows).expect("fits") {
                    return Err((403, FULL));
                }
                let kept = SessionState {
                    state: state.clone(),
                    set_at: round.now,
                    changed: round.group,
                };
                queue.states.insert(session, kept);
                Ok(Expected::done(round.group))
            }
            _ => {
                let kept = queue.states.get(&session);
                let pin = kept.map_or(0, |kept| kept.changed);
                let state = kept.and_then(|kept| kept.state.clone());
                Ok(Expected::state(state, pin))
            }
        }
    }

    fn list_sessions(&self, place: Place, skip: i32, top: i32, since: Option<i64>) -> Expected {
        let queue = self.queue(place);
        let mut must = BTreeSet::new();
        let mut may = BTreeSet::new();
        if self.has_sessions(place) {
            match since {
                None => {
                    must.extend(queue.messages.values().filter_map(|m| m.draft.session));
                    let states = queue.states.iter();
                    let set = states.filter(|(_, kept)| kept.state.is_some());
                    must.extend(set.map(|(&session, _)| session));
                }
                // Whether one that was cleared counts is not said.
                Some(since) => {
                    let states = queue.states.iter();
                    for (&session, kept) in states.filter(|(_, kept)| since < kept.set_at) {
                        if kept.state.is_some() {
                            must.insert(session);
                        } else {
                            may.insert(session);
                        }
                    }
                }
            }
        }
        let bound = |number: i32| usize::try_from(number).expect("not below zero");
        let must = must.into_iter().skip(bound(skip)).take(bound(top));
        Expected::sessions(must.collect(), may)
    }

    fn receive_deferred(
        &mut self,
        round: &mut Round,
        place: Place,
        numbers: &[i64],
        delete: bool,
        session: Option<Session>,
    ) -> Result<Expected, Failed> {
        let of_session = self.has_sessions(place).then_some(session);
        let mut ordinals = BTreeSet::new();
        for &wanted in numbers {
            let queue = self.queue(place);
            let found = queue.ordinal_of(wanted).filter(|at| {
                let message = &queue.messages[at];
                message.state == State::Deferred
                    && message.lock.is_none()
                    && of_session.is_none_or(|session| message.draft.session == session)
            });
            ordinals.insert(found.ok_or((404, NO_MESSAGE))?);
        }
        let mut shown = BTreeMap::new();
        let mut pin = 0;
        for ordinal in ordinals {
            let message = &self.queue(place).messages[&ordinal];
            let mut expected = message.shown(place, ordinal);
            if delete {
                pin = round.group;
                self.remove(place, ordinal);
                shown.insert(number(ordinal), (expected, None));
            } else {
                pin = pin.max(message.changed);
                let (until, serial) = self.lock(round.now, place, ordinal);
                expected.locked_until = Some(until);
                shown.insert(number(ordinal), (expected, Some(serial)));
            }
        }
        Ok(Expected::deferred(shown, pin))
    }

    fn peek(&self, place: Place, from: i64, count: i32, session: Option<Session>) -> Expected {
        let queue = self.queue(place);
        // After a roll-over "from" has no meaning that is documented, but for the beginning.
        let from_number = u64::try_from(from).expect("it is none below zero");
        let start = if from == 0 {
            0
        } else {
            queue.begin_at(from_number)
        };
        let count = usize::try_from(count).expect("it is positive");
        let (mut shown, mut bytes, mut pin) = (Vec::new(), 0, 0);
        let most = count.min(limits::PEEK_MESSAGES_MAX);
        let messages = queue.messages.range(start..);
        let wanted = messages.filter(|(_, m)| session.is_none() || m.draft.session == session);
        for (&ordinal, message) in wanted.take(most) {
            bytes += message.size;
            let max = u64::try_from(limits::PEEK_BYTES_MAX).expect("fits");
            if max < bytes && !shown.is_empty() {
                break;
            }
            pin = pin.max(message.changed);
            shown.push(message.shown(place, ordinal));
        }
        Expected::peeked(shown, pin)
    }

    fn purge(
        &mut self,
        round: &Round,
        place: Place,
        count: i32,
        before: i64,
        session: Option<Session>,
    ) -> Expected {
        let count = usize::try_from(count).expect("it is positive");
        let messages = self.queue(place).messages.iter();
        let doomed: Vec<u64> = messages
            .filter(|(_, message)| message.is_available() && message.enqueued_at < before)
            .filter(|(_, message)| session.is_none() || message.draft.session == session)
            .take(count)
            .map(|(&ordinal, _)| ordinal)
            .collect();
        for &ordinal in &doomed {
            self.remove(place, ordinal);
        }
        Expected::purged(doomed.len(), round.group)
    }

    fn cancel(&mut self, round: &Round, place: Place, numbers: &[i64]) -> Result<Expected, Failed> {
        let mut ordinals = BTreeSet::new();
        for &wanted in numbers {
            let queue = self.queue(place);
            let found = queue.ordinal_of(wanted);
            let found =
                found.filter(|at| matches!(queue.messages[at].state, State::Scheduled { .. }));
            ordinals.insert(found.ok_or((404, NO_MESSAGE))?);
        }
        for ordinal in ordinals {
            self.remove(place, ordinal);
        }
        Ok(Expected::done(round.group))
    }

    fn renew(
        &mut self,
        round: &Round,
        place: Place,
        tokens: &[LockToken],
    ) -> Result<Expected, Failed> {
        let queue = self.queue(place);
        let found: Vec<Option<u64>> = tokens.iter().map(|&token| queue.locked_by(token)).collect();
        let duration = self.description(place).lock_duration.as_millis();
        let until = round.now.saturating_add(duration);
        let found: Option<Vec<u64>> = found.into_iter().collect();
        for ordinal in found.ok_or((410, LOCK_LOST))? {
            let messages = &mut self.queue_mut(place).messages;
            let message = messages.get_mut(&ordinal).expect("it is locked");
            message.lock.as_mut().expect("it is locked").until = until;
        }
        Ok(Expected::expirations(vec![until; tokens.len()]))
    }
}
