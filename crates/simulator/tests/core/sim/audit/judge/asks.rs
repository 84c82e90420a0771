//! What management operations do.

use jitney_base::time::Timestamp;
use jitney_broker::namespace::DeniedKind;

use super::*;
use crate::sim::audit::Shown;
use crate::sim::wire::batch;

impl Model {
    /// Returns which lock is lost where a request settles without one: only the message's, if the link
    /// that it is about holds a message session.
    pub(super) fn lost_over(
        &mut self,
        round: &mut Round,
        call: &Call,
        connection: u32,
    ) -> Result<&'static str, String> {
        if !self.has_sessions(call.place) {
            return Ok(LOCK_LOST);
        }
        self.due(round, call.place)?;
        let mut holders = self.queue(call.place).holders.values();
        let holds = holders
            .any(|holder| holder.at.connection == connection && call.about == Some(holder.at));
        Ok(if holds { LOCK_LOST } else { SESSION_LOST })
    }

    /// Returns whether a batch on a sender's link is larger than links announce: it ends the link.
    pub(in crate::sim::audit) fn is_over_batch_size(&self, at: LinkKey, drafts: &[Draft]) -> bool {
        let link = self.links.get(&at);
        let max =
            jitney_message::limits::MESSAGE_SIZE_DEFAULT + jitney_amqp::limits::ENVELOPE_BYTES;
        let bytes = u64::try_from(batch(drafts).len()).expect("fits");
        link.is_some_and(|link| link.kind == LinkKind::Sender) && max < bytes
    }

    /// Returns whether messages of one batch are for several partitions, by what their sender says.
    pub(super) fn is_torn(&self, queue: usize, drafts: &[Draft]) -> bool {
        let description = self.description(Place::main(queue));
        let key = |draft: &Draft| {
            let id = draft.session.is_none() && description.detects_duplicates;
            (draft.session, id.then(|| draft.message_id()))
        };
        let mut keys = drafts.iter().map(key);
        let first = keys.next();
        description.partitioned && keys.any(|key| Some(key) != first)
    }

    /// Returns whether some message has nothing by which partitions that detect duplicates can find the same one again.
    fn lacks_key(&self, place: Place, drafts: &[Draft]) -> bool {
        let description = self.description(place);
        let is_undecided = |draft: &Draft| self.decided_partition(place, draft).is_none();
        description.partitioned && description.detects_duplicates && drafts.iter().any(is_undecided)
    }

    /// Returns whether messages can be taken, all of them.
    pub(super) fn admit(
        &mut self,
        round: &mut Round,
        queue: usize,
        drafts: &[Draft],
    ) -> Result<Result<(), Failed>, String> {
        if !self.room {
            return Ok(Err((403, FULL)));
        }
        let place = Place::main(queue);
        if self.lacks_key(place, drafts) {
            return Ok(Err((400, NOT_ALLOWED)));
        }
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

    /// Returns whether a message session is held, over this connection by the link that a call names if it names
    /// one.
    ///
    /// A renewal needs the connection even if it names no link.
    pub(super) fn holds(&self, call: &Call, connection: u32, session: Option<Session>) -> bool {
        let of_connection = matches!(call.ask, Ask::RenewSession { .. });
        let holders = &self.queue(call.place).holders;
        let holder = session.and_then(|session| holders.get(&session));
        holder.is_some_and(|holder| {
            let is_here = holder.at.connection == connection;
            match call.about {
                None => is_here || !of_connection,
                Some(at) => is_here && at == holder.at,
            }
        })
    }

    /// What is asked about a session by its holder.
    pub(super) fn of_session(
        &mut self,
        round: &Round,
        place: Place,
        session: Session,
        ask: &Ask,
    ) -> Result<Expected, Failed> {
        let (held, room) = (self.held(place.queue), self.room);
        let description = self.description(place);
        let (duration, max_bytes) = (description.lock_duration, description.max_bytes);
        let queue = self.queue_mut(place);
        let length = |state: Option<&Vec<u8>>| state.map_or(0, Vec::len);
        match ask {
            Ask::RenewSession { .. } => {
                let until = round.now.saturating_add(duration.as_millis());
                let holder = queue.holders.get_mut(&session).expect("it has one");
                holder.until = until;
                Ok(Expected::expiration(until))
            }
            Ask::SetState { state: Some(_), .. } if !room => Err((403, FULL)),
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

    pub(super) fn list_sessions(
        &self,
        place: Place,
        skip: i32,
        top: i32,
        since: Option<i64>,
    ) -> Expected {
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

    /// Finds the deferred messages that are asked for: all of them, or none.
    pub(super) fn find_deferred(
        &self,
        place: Place,
        numbers: &[i64],
        session: Option<Session>,
    ) -> Result<BTreeSet<u64>, Failed> {
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
        Ok(ordinals)
    }

    pub(super) fn delete_deferred(
        &mut self,
        round: &Round,
        place: Place,
        ordinals: BTreeSet<u64>,
    ) -> Expected {
        let mut shown = BTreeMap::new();
        for ordinal in ordinals {
            let expected = self.queue(place).messages[&ordinal].shown(place, ordinal);
            self.delete(place, ordinal);
            shown.insert(number(ordinal), (expected, None));
        }
        let pin = if shown.is_empty() { 0 } else { round.group };
        Expected::deferred(shown, pin)
    }

    pub(super) fn lock_deferred(
        &mut self,
        round: &Round,
        place: Place,
        ordinals: BTreeSet<u64>,
    ) -> Expected {
        let mut shown = BTreeMap::new();
        let mut pin = 0;
        for ordinal in ordinals {
            let message = &self.queue(place).messages[&ordinal];
            let mut expected = message.shown(place, ordinal);
            pin = pin.max(message.changed);
            let (until, serial) = self.lock(round.now, place, ordinal);
            expected.locked_until = Some(until);
            shown.insert(number(ordinal), (expected, Some(serial)));
        }
        Expected::deferred(shown, pin)
    }

    /// An operator locks deferred messages: all of them, or none. Returns the group with the newest change of them, and the
    /// serial numbers of their locks.
    pub(in crate::sim::audit) fn lock_by_number(
        &mut self,
        round: &mut Round,
        place: Place,
        numbers: &[i64],
    ) -> Result<Result<(u64, Vec<(i64, u64)>), DeniedKind>, String> {
        if !self.description(place).status.can_receive() {
            return Ok(Err(DeniedKind::Disabled));
        }
        if self.has_sessions(place) {
            return Ok(Err(DeniedKind::NotAllowed));
        }
        self.due(round, place)?;
        let mut ordinals = BTreeSet::new();
        let queue = self.queue(place);
        for &wanted in numbers {
            let found = queue.ordinal_of(wanted).filter(|at| {
                let message = &queue.messages[at];
                let is_scheduled = !matches!(message.state, State::Active | State::Deferred);
                !is_scheduled && message.lock.is_none()
            });
            ordinals.extend(found.map(|at| (at, wanted)));
        }
        let is_found = |wanted: &i64| ordinals.iter().any(|(_, number)| number == wanted);
        let mut result = Err(DeniedKind::MessageNotFound);
        if numbers.iter().all(is_found) {
            let (mut pin, mut locks) = (0, Vec::new());
            for (ordinal, number) in ordinals {
                pin = pin.max(self.queue(place).messages[&ordinal].changed);
                let (_, serial) = self.lock(round.now, place, ordinal);
                locks.push((number, serial));
            }
            result = Ok((pin, locks));
        }
        self.arrive(round)?;
        self.go_on(round, place)?;
        Ok(result)
    }

    /// An operator settles locked messages, each for itself.
    pub(in crate::sim::audit) fn settle_locked(
        &mut self,
        round: &mut Round,
        place: Place,
        settlements: &[(LockToken, Verdict)],
    ) -> Result<Vec<Result<(), DeniedKind>>, String> {
        let mut results = Vec::new();
        for (token, verdict) in settlements {
            if self.is_enlisted(place, *token) {
                results.push(Err(DeniedKind::NotAllowed));
                continue;
            }
            self.due(round, place)?;
            let lost = self.lost(place);
            let result = self.decide(round, place, *token, verdict, lost);
            self.dispatch(round, place, &BTreeSet::new())?;
            self.arrive(round)?;
            self.go_on(round, place)?;
            results.push(result.map_err(|(_, condition)| match condition {
                LOCK_LOST => DeniedKind::MessageLockLost,
                SESSION_LOST => DeniedKind::SessionLockLost,
                _ => DeniedKind::NotAllowed,
            }));
        }
        Ok(results)
    }

    pub(super) fn peek(
        &self,
        place: Place,
        from: i64,
        count: i32,
        session: Option<Session>,
    ) -> Expected {
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
        let most = count.min(jitney_queue::limits::PEEK_MESSAGES_MAX);
        let messages = queue.messages.range(start..);
        let wanted = messages.filter(|(_, m)| session.is_none() || m.draft.session == session);
        for (&ordinal, message) in wanted.take(most) {
            bytes += message.size;
            let max = u64::try_from(jitney_queue::limits::PEEK_BYTES_MAX).expect("fits");
            if max < bytes && !shown.is_empty() {
                break;
            }
            pin = pin.max(message.changed);
            // A deferred message of a message session shows the greatest date, as one that is received.
            let ends = self.has_sessions(place) && message.state == State::Deferred;
            shown.push(Shown {
                locked_until: ends.then(|| Timestamp::END_OF_9999.as_millis()),
                is_peeked: true,
                ..message.shown(place, ordinal)
            });
        }
        Expected::peeked(shown, pin)
    }

    pub(super) fn purge(
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

    pub(super) fn cancel(
        &mut self,
        round: &Round,
        place: Place,
        numbers: &[i64],
    ) -> Result<Expected, Failed> {
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

    pub(super) fn renew(
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
