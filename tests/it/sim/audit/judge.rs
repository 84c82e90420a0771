//! What each act must lead to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jitney::entity::LockToken;
use jitney::limits;

use super::Expected;
use super::model::{Call, Link, Model, Receiver, State, number};
use super::round::{Round, Sight};
use crate::sim::acts::{Act, Ask, LinkKey, LinkKind, Place, Verdict};
use crate::sim::wire::Draft;

const NOT_ALLOWED: &str = "amqp:not-allowed";
const NOT_FOUND: &str = "amqp:not-found";
const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
const DECODE_ERROR: &str = "amqp:decode-error";
const FULL: &str = "amqp:resource-limit-exceeded";
const TOO_LARGE: &str = "amqp:link:message-size-exceeded";
const DISABLED: &str = "com.microsoft:entity-disabled";
const LOCK_LOST: &str = "com.microsoft:message-lock-lost";
const NO_MESSAGE: &str = "com.microsoft:message-not-found";

/// How a management operation failed: its status and condition.
type Failed = (i32, &'static str);

impl Model {
    pub(super) fn act(&mut self, round: &mut Round, act: &Act) -> Result<(), String> {
        match act {
            Act::Attach { at, place, kind } => self.attach(round, *at, *place, *kind)?,
            Act::Close { connection } => self.close(*connection),
            Act::Credit { at, limit, drain } => self.credit(round, *at, *limit, *drain)?,
            Act::Detach { at } => self.detach(*at),
            Act::Request {
                at,
                id,
                reply_to,
                ask,
            } => self.request(round, *at, id, reply_to, ask)?,
            Act::Returned { at, token } => self.returned(round, *at, *token)?,
            Act::Send {
                at,
                delivery,
                drafts,
                batch,
                ..
            } => self.send(round, *at, *delivery, drafts, *batch)?,
            Act::Settle { .. } => self.settle(round, act)?,
            Act::Timeout => {
                for place in self.places() {
                    self.due(round, place)?;
                    self.arrive(round)?;
                }
            }
            Act::Written { at, bytes } => {
                if let Some(place) = self.receives(*at) {
                    self.due(round, place)?;
                    let receiver = self.queue_mut(place).receivers.get_mut(at);
                    let receiver = receiver.expect("it was found");
                    let bytes = i64::try_from(*bytes).expect("fits");
                    receiver.window = (receiver.window + bytes).min(Self::window());
                    self.dispatch(round, place, &BTreeSet::new())?;
                }
            }
        }
        self.arrive(round)
    }

    fn receives(&self, at: LinkKey) -> Option<Place> {
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
            (LinkKind::Sender, Some(_)) if place.dead => Some(NOT_ALLOWED),
            (LinkKind::Sender, Some(status)) => (!status.can_send()).then_some(DISABLED),
            (LinkKind::Receiver { .. }, Some(status)) => {
                (!status.can_receive()).then_some(DISABLED)
            }
            (LinkKind::Requests | LinkKind::Responses, Some(_)) => None,
        };
        if let Some(condition) = refusal {
            round.answer(&format!("{at:?} refused with {condition}"), |sight| {
                matches!(sight, Sight::Refused(link, found) if *link == at && found == condition)
            })?;
            return Ok(());
        }
        if let LinkKind::Receiver { delete } = kind {
            self.due(round, place)?;
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
        round.answer(
            &format!("{at:?} accepted"),
            |sight| matches!(sight, Sight::Accepted(link) if *link == at),
        )?;
        if kind == LinkKind::Responses {
            let orphans = self.orphans.remove(&at.connection).unwrap_or_default();
            for call in orphans {
                self.submit(round, at.connection, call)?;
            }
        }
        Ok(())
    }

    fn close(&mut self, connection: u32) {
        let links = self.links.keys().copied();
        let links: Vec<LinkKey> = links.filter(|at| at.connection == connection).collect();
        for at in links {
            self.detach(at);
        }
        self.orphans.remove(&connection);
    }

    pub(super) fn detach(&mut self, at: LinkKey) {
        let Some(link) = self.links.remove(&at) else {
            return;
        };
        self.queue_mut(link.place).receivers.remove(&at);
    }

    fn credit(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        limit: u32,
        drain: bool,
    ) -> Result<(), String> {
        if let Some(place) = self.receives(at) {
            self.due(round, place)?;
            let receiver = self.queue_mut(place).receivers.get_mut(&at);
            let receiver = receiver.expect("it was found");
            (receiver.limit, receiver.drain) = (limit, drain);
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
        let receiver = queue.receivers.get_mut(&at).expect("it was found");
        receiver.delivered = receiver.delivered.wrapping_sub(1);
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
        batch: bool,
    ) -> Result<(), String> {
        let sender = self.links.get(&at);
        let Some(queue) = sender
            .filter(|link| link.kind == LinkKind::Sender)
            .map(|link| link.place.queue)
        else {
            return Ok(());
        };
        debug_assert!(batch || drafts.len() == 1);
        let taken = self.take(round, queue, drafts)?;
        let expected = match &taken {
            Ok(_) => Ok(()),
            Err((_, condition)) => Err((*condition).to_owned()),
        };
        let sight = Sight::SettledIncoming(at, delivery, expected);
        let shown = format!("{sight:?}");
        let told = round.answer(&shown, |found| format!("{found:?}") == shown)?;
        if taken.is_ok() {
            round.pin(told, round.group);
        }
        Ok(())
    }

    /// Takes messages in, all or none.
    fn take(
        &mut self,
        round: &mut Round,
        queue: usize,
        drafts: &[Draft],
    ) -> Result<Result<Vec<i64>, Failed>, String> {
        if drafts.iter().any(|draft| draft.malformed) {
            return Ok(Err((400, DECODE_ERROR)));
        }
        if !self.room {
            return Ok(Err((403, FULL)));
        }
        let place = Place::main(queue);
        self.due(round, place)?;
        self.arrive(round)?;
        let description = self.description(place);
        if !description.status.can_send() {
            return Ok(Err((400, DISABLED)));
        }
        let held = self.queue(place).bytes() + self.queue(Place::dead(queue)).bytes();
        let mut bytes = held;
        for draft in drafts {
            let size = u64::try_from(draft.encode().len()).expect("fits");
            if description.max_message_bytes < size {
                return Ok(Err((403, TOO_LARGE)));
            }
            bytes += size;
        }
        if description.max_bytes < bytes {
            return Ok(Err((403, FULL)));
        }
        let numbers = drafts.iter().map(|draft| self.enqueue(round, queue, draft));
        let numbers: Vec<i64> = numbers.collect();
        self.dispatch(round, place, &BTreeSet::new())?;
        Ok(Ok(numbers))
    }

    fn settle(&mut self, round: &mut Round, act: &Act) -> Result<(), String> {
        let Act::Settle {
            at,
            delivery,
            token,
            settled,
            verdict,
        } = act
        else {
            return Ok(());
        };
        let Some(place) = self.receives(*at) else {
            return Ok(());
        };
        self.due(round, place)?;
        let result = self.decide(round, place, *token, verdict);
        self.dispatch(round, place, &BTreeSet::new())?;
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
        let shown = format!("{:?}", Sight::SettledOutgoing(*at, *delivery, expected));
        let told = round.answer(&shown, |found| format!("{found:?}") == shown)?;
        if result.is_ok() && !matches!(verdict, Verdict::Release) {
            round.pin(told, round.group);
        }
        Ok(())
    }

    /// Carries out what the holder of a lock decides.
    fn decide(
        &mut self,
        round: &mut Round,
        place: Place,
        token: LockToken,
        verdict: &Verdict,
    ) -> Result<(), Failed> {
        let queue = self.queue(place);
        let ordinal = queue.locked_by(token).ok_or((410, LOCK_LOST))?;
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
            Verdict::DeadLetter { .. } if place.dead => return Err((400, NOT_ALLOWED)),
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
        id: &str,
        reply_to: &str,
        ask: &Ask,
    ) -> Result<(), String> {
        let requests = self.links.get(&at);
        let Some(place) = requests
            .filter(|link| link.kind == LinkKind::Requests)
            .map(|link| link.place)
        else {
            return Ok(());
        };
        let call = Call {
            id: id.to_owned(),
            reply_to: reply_to.to_owned(),
            place,
            ask: ask.clone(),
        };
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
        let outcome = if fits { Ok(()) } else { Err(FULL.to_owned()) };
        let shown = format!("{:?}", Sight::SettledIncoming(at, 0, outcome));
        round.answer(&shown, |found| format!("{found:?}") == shown)?;
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
            let (id, place) = (call.id, call.place);
            let expected = self.ask(round, place, &call.ask)?;
            let expected = expected.unwrap_or_else(|(code, why)| Expected::plain(code, why));
            self.arrive(round)?;
            let (told, answer) = round.response(at)?;
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
        place: Place,
        ask: &Ask,
    ) -> Result<Result<Expected, Failed>, String> {
        let status = self.description(place).status;
        Ok(match ask {
            Ask::Unknown => Err((501, NOT_IMPLEMENTED)),
            Ask::Schedule { .. } if place.dead => Err((400, NOT_ALLOWED)),
            Ask::Schedule { drafts } => self
                .take(round, place.queue, drafts)?
                .map(|numbers| Expected::numbers(numbers, round.group)),
            Ask::Deferred { .. } | Ask::Purge { .. } if !status.can_receive() => {
                Err((400, DISABLED))
            }
            Ask::Deferred { numbers, delete } => {
                self.due(round, place)?;
                self.receive_deferred(round, place, numbers, *delete)
            }
            Ask::Peek { from, count } => {
                self.due(round, place)?;
                Ok(self.peek(place, *from, *count))
            }
            Ask::Purge { count, before } => {
                self.due(round, place)?;
                Ok(self.purge(round, place, *count, *before))
            }
            Ask::Cancel { numbers } => {
                self.due(round, place)?;
                self.cancel(round, place, numbers)
            }
            Ask::Renew { tokens } => {
                self.due(round, place)?;
                self.renew(round, place, tokens)
            }
            Ask::Dispose { tokens, verdict } => {
                self.due(round, place)?;
                let queue = self.queue(place);
                let locked = tokens.iter().map(|token| queue.locked_by(*token));
                // One that is named twice is meant once; in which order they go is not said.
                let Some(ordinals) = locked.collect::<Option<BTreeSet<u64>>>() else {
                    return Ok(Err((410, LOCK_LOST)));
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

    fn receive_deferred(
        &mut self,
        round: &mut Round,
        place: Place,
        numbers: &[i64],
        delete: bool,
    ) -> Result<Expected, Failed> {
        let mut ordinals = BTreeSet::new();
        for &wanted in numbers {
            let queue = self.queue(place);
            let found = queue.ordinal_of(wanted).filter(|at| {
                let message = &queue.messages[at];
                message.state == State::Deferred && message.lock.is_none()
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

    fn peek(&self, place: Place, from: i64, count: i32) -> Expected {
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
        for (&ordinal, message) in queue.messages.range(start..).take(most) {
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

    fn purge(&mut self, round: &Round, place: Place, count: i32, before: i64) -> Expected {
        let count = usize::try_from(count).expect("it is positive");
        let messages = self.queue(place).messages.iter();
        let doomed: Vec<u64> = messages
            .filter(|(_, message)| message.is_available() && message.enqueued_at < before)
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
