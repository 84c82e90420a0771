//! Receivers decide.

use bytes::Bytes;

use super::errors::rejected;
use super::{
    Broker, ConnectionId, DeliveryId, Link, LinkId, LockToken, Outcome, Reply, Routed, Surroundings,
};
use crate::amqp::{Condition, Rejection};
use crate::entity::queue::{DeadLetter, Settlement, SettlementRefused};
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
        let refused = if transaction.is_some() {
            let text = "The transaction is not known: this broker does not support them yet.";
            Some((Condition::TransactionUnknownId, text.to_owned()))
        } else {
            let result = self.with_queue(around, queue, |queue, cx| {
                queue.settle(cx, token, settlement)
            });
            match result {
                Some(Ok(())) => None,
                Some(Err(refused)) => Some((condition(refused), refused.to_string())),
                None => Some((Condition::NotFound, "The entity is gone.".to_owned())),
            }
        };
        if settled {
            return;
        }
        let (name, rests_on) = self.node(queue).map_or((String::new(), 0), |node| {
            (node.address.to_string(), node.group)
        });
        let outcome = match refused {
            None => answer,
            Some((condition, text)) => rejected(self.refuse(around, condition, &text, &name)),
        };
        let reply = Reply::SettleOutgoing(link, delivery, outcome);
        around.replies.push(Routed {
            connection,
            rests_on,
            reply,
        });
    }
}

/// The condition for a settlement that did not happen.
pub(super) fn condition(refused: SettlementRefused) -> Condition {
    match refused {
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
