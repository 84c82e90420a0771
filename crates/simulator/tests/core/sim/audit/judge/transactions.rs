//! What is done in transactions.

use super::scopes::joined;
use super::*;

impl Model {
    pub(super) fn declare(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        delivery: u32,
    ) -> Result<(), String> {
        if !self.is_coordinator(at) {
            return Ok(());
        }
        let id = round.declared(at, delivery)?;
        let open = Transaction {
            by: at,
            scope: None,
            parts: Vec::new(),
            spoiled: false,
            ends: round.now + jitney_broker::limits::TRANSACTION_TIMEOUT.as_millis(),
        };
        match self.transactions.insert((at.connection, id), open) {
            None => Ok(()),
            Some(other) => Err(format!("two transactions have one name: {other:?}")),
        }
    }

    fn is_coordinator(&self, at: LinkKey) -> bool {
        let link = self.links.get(&at);
        link.is_some_and(|link| link.kind == LinkKind::Coordinator)
    }

    pub(super) fn roll_back(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        delivery: u32,
        id: &TransactionId,
    ) -> Result<(), String> {
        if !self.is_coordinator(at) {
            return Ok(());
        }
        let result = match self.transactions.remove(&(at.connection, id.clone())) {
            None => Err(UNKNOWN.to_owned()),
            Some(_) => Ok(()),
        };
        round.expect(&ClientObservation::SettledIncoming(at, delivery, result))?;
        Ok(())
    }

    pub(super) fn commit(
        &mut self,
        round: &mut Round,
        at: LinkKey,
        delivery: u32,
        id: &TransactionId,
    ) -> Result<(), String> {
        if !self.is_coordinator(at) {
            return Ok(());
        }
        let open = self.transactions.remove(&(at.connection, id.clone()));
        let rolled_back = Err("amqp:transaction:rollback".to_owned());
        let mut pin = 0;
        let result = match open {
            None => Err(UNKNOWN.to_owned()),
            Some(open) if open.spoiled => rolled_back,
            Some(open) if self.can_commit(round, &open)? => {
                for part in &open.parts {
                    pin = pin.max(self.carry_out(round, part)?);
                }
                for part in &open.parts {
                    if let Operation::Settle(_, _, verdict, Some((at, delivery))) = part {
                        let settled = Ok(outcome_of(verdict));
                        let sight = ClientObservation::SettledOutgoing(*at, *delivery, settled);
                        let told = round.expect(&sight)?;
                        round.pin(told, pin);
                    }
                }
                Ok(())
            }
            Some(_) => rolled_back,
        };
        let told = round.expect(&ClientObservation::SettledIncoming(at, delivery, result))?;
        round.pin(told, pin);
        Ok(())
    }

    /// Returns whether all of a transaction can be done.
    pub(super) fn can_commit(
        &mut self,
        round: &mut Round,
        open: &Transaction,
    ) -> Result<bool, String> {
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
    /// transaction is done. With it comes by way of which entity it is sent.
    pub(super) fn enlist(
        &mut self,
        round: &mut Round,
        connection: u32,
        id: &TransactionId,
        part: Operation,
        group: Option<usize>,
    ) -> Result<Result<(), Failed>, String> {
        let key = (connection, id.clone());
        let Some(open) = self.transactions.get(&key) else {
            return Ok(Err((400, UNKNOWN)));
        };
        let parts = || open.parts.iter().chain([&part]);
        let sent = |part: &Operation| match part {
            Operation::Send(_, drafts) => drafts.len(),
            Operation::Cancel(..) | Operation::Settle(..) => 0,
        };
        let settled = |part: &Operation| match part {
            Operation::Cancel(_, numbers) => numbers.len(),
            Operation::Send(..) => 0,
            Operation::Settle(..) => 1,
        };
        // Messages and settlements are counted apart (`transactions.md#transactions`).
        let is_too_large = jitney_broker::limits::TRANSACTION_MESSAGES_MAX
            < parts().map(sent).sum()
            || jitney_base::limits::TRANSACTION_SETTLEMENTS_MAX < parts().map(settled).sum();
        let before = open.scope;
        let taken_twice = match &part {
            Operation::Settle(place, token, ..) => self.is_enlisted(*place, *token),
            Operation::Cancel(..) | Operation::Send(..) => false,
        };
        // It is of another partition, or entity.
        let mut is_apart = false;
        let result = if is_too_large {
            Err((403, FULL))
        } else {
            let can = self.can_do(round, &part)?;
            let scope = self
                .scope_of(&part, group)
                .and_then(|more| joined(before, more));
            is_apart = can.is_ok() && !taken_twice && scope.is_none();
            let scope = scope.filter(|_| !taken_twice);
            can.and_then(|()| scope.ok_or((400, NOT_ALLOWED)))
        };
        let open = self.transactions.get_mut(&key).expect("it was found");
        match result {
            Ok(scope) => {
                open.scope = Some(scope);
                open.parts.push(part);
            }
            Err(_) => {
                open.spoiled = true;
                if let Operation::Settle(place, token, ..) = part
                    && is_apart
                    && self.description(place).partitioned
                {
                    let abandon = Verdict::Abandon(BTreeMap::new());
                    // There is a lock: it could be done otherwise.
                    let _ = self.decide(round, place, token, &abandon, LOCK_LOST);
                    self.dispatch(round, place, &BTreeSet::new())?;
                    self.arrive(round)?;
                }
            }
        }
        Ok(result.map(drop))
    }

    /// Schedules messages in a transaction. The answer has their sequence numbers before the commit, and no other message gets these
    /// numbers. This model does not support a commit of such a transaction.
    pub(super) fn schedule_within(
        &mut self,
        round: &mut Round,
        connection: u32,
        call: &Call,
        drafts: &[Draft],
    ) -> Result<Result<Expected, Failed>, String> {
        let (id, place) = (call.transaction.as_ref(), call.place);
        let id = id.expect("there is one");
        let mut numbers = Vec::new();
        for draft in drafts {
            let send = Operation::Send(place.queue, vec![draft.clone()]);
            if let Err(failed) = self.enlist(round, connection, id, send, None)? {
                return Ok(Err(failed));
            }
            let partition = self.partition(place, draft);
            numbers.push(number(self.queue_mut(place).take(partition)));
        }
        Ok(Ok(Expected::numbers(numbers, round.group)))
    }

    pub(super) fn spoil(&mut self, connection: u32, id: &TransactionId) {
        if let Some(open) = self.transactions.get_mut(&(connection, id.clone())) {
            open.spoiled = true;
        }
    }

    /// Returns whether the message with this lock is settled in an open transaction.
    pub(super) fn is_enlisted(&self, place: Place, token: LockToken) -> bool {
        let mut parts = self.transactions.values().flat_map(|open| &open.parts);
        parts.any(
            |part| matches!(part, Operation::Settle(of, lock, ..) if *of == place && *lock == token),
        )
    }

    pub(super) fn can_do(
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
            Operation::Settle(_, token, ..) if queue.locked_by(*token).is_none() => {
                Err((410, self.lost(place)))
            }
            Operation::Settle(_, _, Verdict::DeadLetter { .. }, _) if place.is_dead() => {
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
    pub(super) fn carry_out(&mut self, round: &mut Round, part: &Operation) -> Result<u64, String> {
        match part {
            Operation::Send(queue, drafts) => {
                let (_, pin) = self.put(round, *queue, drafts)?;
                return Ok(pin);
            }
            Operation::Settle(place, token, verdict, _) => {
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
}
