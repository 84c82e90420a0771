//! Transfers of clients: messages for entities, requests, and messages to the coordinator.

use std::sync::Arc;

use bytes::Bytes;

use super::{CreditReturn, Link, QueuedReply, Reply};
use crate::Gateway;
use crate::denied::rejected;
use crate::request_log::Numbers;
use jitney_amqp::{IncomingTransfer, LinkId, Outcome};
use jitney_base::ids::{ConnectionId, EntityId};
use jitney_broker::namespace::{Denied, DeniedKind, Operation, StepContext};
use jitney_message::{BATCH_FORMAT, Message, split_batch};

impl Gateway {
    pub(crate) fn transfer(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        incoming: IncomingTransfer,
    ) {
        let (link, delivery) = (incoming.link, incoming.delivery);
        let mut call = None;
        let taken = match self.link_mut(connection, link) {
            Some(Link::Sender {
                queue,
                destination,
                group,
                deliveries,
            }) => {
                *deliveries += 1;
                let queue = *queue;
                let to = (queue, destination.clone(), *group);
                let taken = self.take_delivery(cx, connection, to, &incoming);
                taken.map(|outcome| (outcome, self.namespaces.group_of(queue)))
            }
            Some(Link::Requests { node, session }) => {
                let (node, session) = (node.clone(), *session);
                let taken = self.take_request(connection, &incoming, node, session);
                let taken = taken.map_err(NotTaken::Delivery);
                taken.map(|taken| {
                    call = Some(taken);
                    (provisionally(&incoming, Outcome::Accepted), 0)
                })
            }
            Some(Link::Coordinator { .. }) => {
                let controlled = self.control(cx, connection, &incoming);
                controlled.map_err(NotTaken::Delivery)
            }
            // The link is detached by now: no answer is expected.
            Some(Link::Receiver { .. } | Link::Waiting { .. } | Link::Responses(_)) | None => {
                return;
            }
        };
        let (outcome, durable_after) = match taken {
            Ok(taken) => taken,
            // No outcome can tell a requester that has settled its request: only the end of its link can.
            Err(NotTaken::Delivery(denied))
                if incoming.settled && self.is_of_requests(connection, link) =>
            {
                return self.end_link(cx, connection, link, denied);
            }
            Err(NotTaken::Link(denied)) => {
                self.note_not_taken(connection, &incoming, &denied);
                self.end_link(cx, connection, link, denied);
                return;
            }
            Err(NotTaken::Delivery(denied)) => {
                self.note_not_taken(connection, &incoming, &denied);
                (rejected(self.refusal(cx.now, denied)), 0)
            }
        };
        let reply = Reply::SettleIncoming {
            link,
            delivery,
            outcome,
            settled: incoming.settled,
            credit: if call.is_some() {
                CreditReturn::Later
            } else {
                CreditReturn::Now
            },
        };
        self.replies.push(QueuedReply {
            connection,
            durable_after,
            reply,
        });
        // Behind its settlement: Python's first engine takes an answer that comes before it for a failure
        // (`cbs.md#links`).
        if let Some(call) = call {
            self.submit(cx, connection, call);
        }
    }

    fn is_of_requests(&self, connection: ConnectionId, link: LinkId) -> bool {
        matches!(self.link(connection, link), Some(Link::Requests { .. }))
    }

    /// Logs that a delivery is refused, and lets nothing of its transaction happen.
    fn note_not_taken(
        &mut self,
        connection: ConnectionId,
        incoming: &IncomingTransfer,
        denied: &Denied,
    ) {
        if let Some(state) = self.link(connection, incoming.link) {
            self.log_not_taken(connection, state, denied);
        }
        if let Some(id) = &incoming.transaction {
            self.abort(connection, id, &denied.text);
        }
    }

    /// Takes the messages of one delivery: all of them, or none.
    fn take_delivery(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        to: Leg,
        incoming: &IncomingTransfer,
    ) -> Result<Outcome, NotTaken> {
        if incoming.message_format == BATCH_FORMAT {
            check_batch_size(incoming.payload.len())?;
        }
        let payload = match incoming.transaction {
            // A message that waits for its transaction must not keep the whole buffer it was received in.
            Some(_) => {
                self.namespaces
                    .check_transaction_bytes(connection, incoming.payload.len())?;
                Bytes::copy_from_slice(&incoming.payload)
            }
            None => incoming.payload.clone(),
        };
        if incoming.message_format != BATCH_FORMAT {
            let message = Message::parse(payload);
            let message = message.map_err(|error| undecodable(&error.to_string()))?;
            let message = message.with_format(incoming.message_format);
            return Ok(self.take_parsed(cx, connection, to, incoming, [message])?);
        }
        let parts = split_batch(&payload).map_err(|error| undecodable(&error.to_string()))?;
        if parts.is_empty() {
            let text = "The link is force detached by the broker because publisher received a batch \
                        message with no data in it. Detach origin: Publisher.";
            return Err(NotTaken::Link(Denied::new(
                DeniedKind::NotAllowed,
                text,
                "",
            )));
        }
        let messages: Result<Vec<Message>, _> = parts.into_iter().map(Message::parse).collect();
        let messages = messages.map_err(|error| undecodable(&error.to_string()))?;
        let (queue, ..) = to;
        self.namespaces.check_batch(queue, &messages)?;
        Ok(self.take_parsed(cx, connection, to, incoming, messages)?)
    }

    fn take_parsed(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        (queue, destination, group): Leg,
        incoming: &IncomingTransfer,
        messages: impl AsRef<[Message]> + IntoIterator<Item = Message>,
    ) -> Result<Outcome, Denied> {
        if let Some(id) = &incoming.transaction {
            let send = Operation::Send {
                queue,
                destination,
                group,
                messages: messages.into_iter().collect(),
            };
            self.enlist(cx, connection, id, send, None)?;
            return Ok(provisionally(incoming, Outcome::Accepted));
        }
        let mut numbers = Numbers::begin();
        self.with_namespaces(cx, |namespaces, cx| {
            namespaces.admit(cx, queue, messages.as_ref())?;
            namespaces.put(cx, queue, destination.as_ref(), messages, |number| {
                numbers.push(number);
            });
            Ok::<(), Denied>(())
        })?;
        self.log_taken(connection, queue, &numbers);
        Ok(Outcome::Accepted)
    }
}

/// Why a delivery is not taken, and what is told of it.
#[derive(Debug)]
enum NotTaken {
    /// The delivery is rejected.
    Delivery(Denied),
    /// The link ends, as the service has it (`messaging.md#answers-to-sends`).
    Link(Denied),
}

impl From<Denied> for NotTaken {
    fn from(denied: Denied) -> Self {
        Self::Delivery(denied)
    }
}

/// Checks that a batch is as large as links announce, whatever a single message may have.
fn check_batch_size(bytes: usize) -> Result<(), NotTaken> {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let max = jitney_message::limits::MESSAGE_SIZE_DEFAULT;
    if bytes <= max + jitney_amqp::limits::ENVELOPE_BYTES {
        return Ok(());
    }
    let text = format!(
        "The link is force detached by the broker because publisher received a batch message of {bytes} \
         bytes, and {max} bytes are the most of a batch, as the link's property \
         com.microsoft:max-message-batch-size says. Detach origin: Publisher."
    );
    Err(NotTaken::Link(Denied::new(
        DeniedKind::NotAllowed,
        text,
        "",
    )))
}

/// The queue that a sender's link leads to, the destination to which its messages are transferred,
/// and the via entity of its transactions.
type Leg = (EntityId, Option<Arc<str>>, Option<EntityId>);

/// Makes the outcome of a delivery, which in a transaction is provisional.
fn provisionally(incoming: &IncomingTransfer, outcome: Outcome) -> Outcome {
    match &incoming.transaction {
        Some(id) => Outcome::InTransaction(id.clone(), Box::new(outcome)),
        None => outcome,
    }
}

fn undecodable(text: &str) -> Denied {
    let text = format!("The message could not be decoded: {text}.");
    Denied::new(DeniedKind::Decode, text, "")
}
