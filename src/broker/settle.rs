//! Receivers decide.

use bytes::Bytes;

use super::errors::rejected;
use super::transactions::Operation;
use super::{
    Broker, ConnectionId, DeliveryId, EntityId, Link, LinkId, LockToken, Outcome, Reply, Routed,
    Surroundings,
};
use crate::amqp::{Condition, Refusal, Rejection};
use crate::entity::queue::{DeadLetter, SessionLost, Settlement, SettlementRefused};
use crate::message::Amendments;

/// A disposition from a receiver.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) link: LinkId,
    pub(super) delivery: DeliveryId,
    pub(super) token: LockToken,
    pub(super) settled: bool,
    pub(super) outcome: Outcome,
    pub(super) transaction: Option<Bytes>,
}

impl Broker {
    pub(super) fn disposition(
        &mut self,
        around: &mut Surroundings<'_>,
        connection: ConnectionId,
        decision: Decision,
    ) {
        // What was received and deleted may be settled still, and is left alone (§5.5).
        let Some(&Link::Receiver { queue, .. }) = self.link(connection, decision.link) else {
            if let Some(id) = &decision.transaction {
                let reason = "A message was settled on a link that has gone.";
                self.spoil(connection, id, reason);
            }
            return;
        };
        let Decision {
            link,
            delivery,
            token,
            settled,
            outcome,
            transaction,
        } = decision;
        let (settlement, answer) = interpret(outcome);
        let (result, answer) = match transaction {
            None => (self.settle(around, queue, token, settlement), answer),
            Some(id) => {
                let settle = Operation::Settle {
                    queue,
                    token,
                    settlement,
                };
                let result = self.enlist(around, connection, &id, settle);
                (result, Outcome::InTransaction(id, Box::new(answer)))
            }
        };
        if settled {
            return;
        }
        let rests_on = self.node(queue).map_or(0, |node| node.group);
        let outcome = match result {
            Ok(()) => answer,
            Err(refusal) => rejected(refusal),
        };
        let reply = Reply::SettleOutgoing(link, delivery, outcome);
        around.replies.push(Routed {
            connection,
            rests_on,
            reply,
        });
    }
}

impl Broker {
    /// Settles a message outside of transactions.
    pub(super) fn settle(
        &mut self,
        around: &mut Surroundings<'_>,
        queue: EntityId,
        token: LockToken,
        settlement: Settlement,
    ) -> Result<(), Refusal> {
        self.check_not_enlisted(around, queue, token)?;
        let result = self.with_queue(around, queue, |queue, cx| {
            queue.settle(cx, token, settlement)
        });
        self.settled(around, queue, result)
    }

    /// Says in the service's words why a settlement did not happen.
    pub(super) fn settled(
        &mut self,
        around: &Surroundings<'_>,
        queue: EntityId,
        result: Option<Result<(), SettlementRefused>>,
    ) -> Result<(), Refusal> {
        if let Some(Ok(())) = result {
            return Ok(());
        }
        let node = self.node(queue);
        let name = node
            .map(|node| node.address.to_string())
            .unwrap_or_default();
        let has_sessions = node.is_some_and(|node| node.queue.has_sessions());
        let (condition, text) = match result {
            Some(Ok(())) => return Ok(()),
            Some(Err(refused)) => (
                condition(refused, has_sessions),
                match refused {
                    SettlementRefused::LockLost(_) if has_sessions => SessionLost.to_string(),
                    refused => refused.to_string(),
                },
            ),
            None => (Condition::NotFound, "The entity is gone.".to_owned()),
        };
        Err(self.refuse(around, condition, &text, &name))
    }

    pub(super) fn check_not_enlisted(
        &mut self,
        around: &Surroundings<'_>,
        queue: EntityId,
        token: LockToken,
    ) -> Result<(), Refusal> {
        if !self.enlisted.contains(&(queue, token)) {
            return Ok(());
        }
        let text = "The message is settled in a transaction that is still open.";
        Err(self.refuse(around, Condition::NotAllowed, text, ""))
    }
}

/// The condition for a settlement that did not happen.
fn condition(refused: SettlementRefused, has_sessions: bool) -> Condition {
    match refused {
        SettlementRefused::LockLost(_) if has_sessions => Condition::SessionLockLost,
        SettlementRefused::LockLost(_) => Condition::MessageLockLost,
        SettlementRefused::DeadLetterAlready => Condition::NotAllowed,
        SettlementRefused::TooManyProperties => Condition::ArgumentError,
    }
}

/// What an outcome means to a queue, and what is answered when it is done: the same kind, without
/// details (`protocol.md` §6.2).
fn interpret(outcome: Outcome) -> (Settlement, Outcome) {
    match outcome {
        Outcome::Accepted => (Settlement::Complete, Outcome::Accepted),
        Outcome::Released => (Settlement::Release, Outcome::Released),
        Outcome::Modified {
            delivery_failed: _,
            undeliverable_here,
            annotations,
        } => {
            let amendments = annotations
                .as_deref()
                .map(Amendments::from_fields)
                .unwrap_or_default();
            let answer = Outcome::Modified {
                delivery_failed: false,
                undeliverable_here,
                annotations: None,
            };
            if undeliverable_here {
                (Settlement::Defer(amendments), answer)
            } else {
                (Settlement::Abandon(amendments), answer)
            }
        }
        Outcome::Rejected(rejection) => {
            let reason = rejection
                .map(|rejection| dead_letter(*rejection))
                .unwrap_or_default();
            (Settlement::DeadLetter(reason), Outcome::Rejected(None))
        }
        // Only we say these, and never to ourselves.
        Outcome::Declared(_) | Outcome::InTransaction(..) => {
            (Settlement::Release, Outcome::Released)
        }
    }
}

/// Reads the reason out of a rejection. The SDKs put it into the info map; another client's
/// condition and description serve as well (`protocol.md` §6.1).
fn dead_letter(rejection: Rejection) -> DeadLetter {
    let Rejection { refusal, info } = rejection;
    let mut amendments = info
        .as_deref()
        .map(Amendments::from_fields)
        .unwrap_or_default();
    let mut reason = amendments.take_string("DeadLetterReason");
    let mut description = amendments.take_string("DeadLetterErrorDescription");
    if refusal.condition != Condition::DeadLetter {
        reason = reason.or_else(|| Some(refusal.condition.as_str().to_owned()));
    }
    if !refusal.description.is_empty() {
        description = description.or(Some(refusal.description));
    }
    DeadLetter {
        reason,
        description,
        amendments,
    }
}
