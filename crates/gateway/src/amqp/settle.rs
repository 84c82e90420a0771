//! Dispositions of receivers.

use std::sync::Arc;

use super::transactions::CommitSettlement;
use super::{Link, QueuedReply, Reply};
use crate::Gateway;
use crate::denied::rejected;
use jitney_amqp::codec::Encoded;
use jitney_amqp::{Condition, IncomingDisposition, Outcome, Rejection};
use jitney_base::ids::{ConnectionId, LockToken};
use jitney_broker::namespace::{LostLock, Operation, StepContext};
use jitney_message::Amendments;
use jitney_queue::{Changes, DeadLetter, Settlement};

impl Gateway {
    pub(crate) fn disposition(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        disposition: IncomingDisposition,
    ) {
        // A message that was received and deleted may be settled still: that does nothing
        // (`receiving.md#deliveries`).
        let Some(&Link::Receiver { queue, .. }) = self.link(connection, disposition.link) else {
            if let Some(id) = &disposition.transaction {
                let reason = "A message was settled on a link that has gone.";
                self.abort(connection, id, reason);
            }
            return;
        };
        let IncomingDisposition {
            link,
            delivery,
            tag,
            settled,
            outcome,
            transaction,
        } = disposition;
        let token = LockToken::from_tag(tag);
        // It is settled in the same transaction already: its receiver only forgets the delivery.
        if settled
            && self
                .namespaces
                .is_enlisted_in(transaction.as_deref(), queue, token)
        {
            return;
        }
        let (settlement, answer) = self.interpreted.interpret(outcome);
        let (result, answer) = match transaction {
            None => {
                let logged = self.begin_settled(queue, token, &settlement);
                let result = self.with_namespaces(cx, |namespaces, cx| {
                    namespaces.settle(cx, queue, token, LostLock::Message, settlement)
                });
                if let Some(logged) = logged {
                    self.log_settled(connection, queue, &logged, &result);
                }
                (result, answer)
            }
            Some(id) => {
                let at_commit = CommitSettlement {
                    link,
                    delivery,
                    outcome: answer.clone(),
                };
                let settle = Operation::Settle {
                    queue,
                    token,
                    settlement,
                    lost: LostLock::Message,
                };
                let at_commit = (!settled).then_some(at_commit);
                let result = self.enlist(cx, connection, &id, settle, at_commit);
                (result, Outcome::InTransaction(id, Box::new(answer)))
            }
        };
        if settled {
            return;
        }
        let durable_after = self.namespaces.group_of(queue);
        let outcome = match result {
            Ok(()) => answer,
            Err(denied) => rejected(self.refusal(cx.now, denied)),
        };
        let reply = Reply::SettleOutgoing(link, delivery, outcome);
        self.replies.push(QueuedReply {
            connection,
            durable_after,
            reply,
        });
    }
}

/// The last outcome that brought changes, and what they are: all deliveries of a disposition, and
/// those of others that say the same, share them.
#[derive(Debug, Default)]
pub(crate) struct Interpreted(Option<(Outcome, Changes)>);

impl Interpreted {
    /// Returns what an outcome means to a queue, and what is answered when it is done: the same
    /// kind, without details (`receiving.md#settlement`).
    fn interpret(&mut self, outcome: Outcome) -> (Settlement, Outcome) {
        match outcome {
            Outcome::Accepted => (Settlement::Complete, Outcome::Accepted),
            Outcome::Released => (Settlement::Release, Outcome::Released),
            Outcome::Modified {
                undeliverable_here, ..
            } => {
                let changes = self.changes(outcome);
                let answer = Outcome::Modified {
                    delivery_failed: false,
                    undeliverable_here,
                    annotations: None,
                };
                if undeliverable_here {
                    (Settlement::Defer(changes), answer)
                } else {
                    (Settlement::Abandon(changes), answer)
                }
            }
            Outcome::Rejected(_) => {
                let changes = self.changes(outcome);
                (Settlement::DeadLetter(changes), Outcome::Rejected(None))
            }
            // Only we say these, and never to ourselves.
            Outcome::Declared(_) | Outcome::InTransaction(..) => {
                (Settlement::Release, Outcome::Released)
            }
        }
    }

    /// Returns the changes that an outcome brings to its messages.
    fn changes(&mut self, outcome: Outcome) -> Changes {
        if !outcome.has_details() {
            return None;
        }
        if let Some((last, changes)) = &self.0
            && *last == outcome
        {
            return changes.clone();
        }
        let changes = match &outcome {
            Outcome::Modified { annotations, .. } => annotations
                .as_ref()
                .map(|map| Amendments::from_encoded(Encoded::new(map.bytes()))),
            Outcome::Rejected(Some(rejection)) => Some(dead_letter(rejection).into_amendments()),
            Outcome::Accepted
            | Outcome::Released
            | Outcome::Rejected(None)
            | Outcome::Declared(_)
            | Outcome::InTransaction(..) => None,
        };
        let changes = changes.filter(|changes| !changes.is_empty()).map(Arc::new);
        self.0 = Some((outcome, changes.clone()));
        changes
    }
}

/// Reads the reason out of a rejection. The SDKs put it into the info map; another client's
/// condition and description serve as well (`receiving.md#outcomes`).
fn dead_letter(rejection: &Rejection) -> DeadLetter {
    let Rejection { refusal, info } = rejection;
    let mut amendments = info
        .as_ref()
        .map(|map| Amendments::from_encoded(Encoded::new(map.bytes())))
        .unwrap_or_default();
    let mut reason = amendments.take_string("DeadLetterReason");
    let mut description = amendments.take_string("DeadLetterErrorDescription");
    if refusal.condition != Condition::DeadLetter {
        reason = reason.or_else(|| Some(refusal.condition.as_str().to_owned()));
    }
    if !refusal.description.is_empty() {
        description = description.or_else(|| Some(refusal.description.clone()));
    }
    DeadLetter {
        reason,
        description,
        amendments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_amqp::{EncodedFields, Fields, Value};

    fn modified(text: &str) -> Outcome {
        let mut fields = Fields::new();
        fields.insert("why".into(), Value::String(text.to_owned()));
        Outcome::Modified {
            delivery_failed: true,
            undeliverable_here: false,
            annotations: Some(EncodedFields::from(&fields)),
        }
    }

    #[test]
    fn deliveries_of_one_disposition_share_what_it_changes() {
        let mut interpreted = Interpreted::default();
        let mut changes = |outcome| match interpreted.interpret(outcome).0 {
            Settlement::Abandon(Some(changes)) => changes,
            other => panic!("{other:?}"),
        };
        let (first, second) = (changes(modified("a")), changes(modified("a")));
        assert!(Arc::ptr_eq(&first, &second));
        assert_ne!(changes(modified("b")), first);
        let mut expected = Amendments::default();
        expected.set_string("why", "a");
        assert_eq!(*first, expected);
    }
}
