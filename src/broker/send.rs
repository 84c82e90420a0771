//! Messages come in.

use crate::broker::{Denied, DeniedKind};
use std::sync::Arc;

use bytes::Bytes;

use super::errors::rejected;
use super::transactions::Operation;
use super::{
    Broker, ConnectionId, DeliveryId, EntityId, Link, LinkId, Outcome, Reply, Routed, StepContext,
    Timestamp,
};
use crate::ids::SequenceNumber;
use crate::limits;
use crate::message::{BATCH_FORMAT, Message, split_batch};
use crate::queue::{Arrival, Taken};

/// A delivery on an incoming link.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) link: LinkId,
    pub(super) delivery: DeliveryId,
    pub(super) payload: Bytes,
    pub(super) message_format: u32,
    pub(super) settled: bool,
    pub(super) transaction: Option<Bytes>,
}

impl Broker {
    pub(super) fn transfer(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        incoming: Incoming,
    ) {
        let (link, delivery) = (incoming.link, incoming.delivery);
        let taken = match self.link(connection, link) {
            Some(Link::Sender {
                queue,
                destination,
                group,
            }) => {
                let queue = *queue;
                let to = (queue, destination.clone(), *group);
                let taken = self.take_delivery(cx, connection, to, &incoming);
                taken.map(|outcome| (outcome, self.node(queue).map_or(0, |node| node.group)))
            }
            Some(Link::Requests { .. }) => {
                let accepted = self.request(cx, connection, &incoming);
                accepted.map(|()| (provisionally(&incoming, Outcome::Accepted), 0))
            }
            Some(Link::Coordinator { .. }) => self.control(cx, connection, &incoming),
            // The link has gone meanwhile; nobody waits for an answer.
            Some(Link::Receiver { .. } | Link::Waiting { .. } | Link::Responses(_)) | None => {
                return;
            }
        };
        let (outcome, rests_on) = match taken {
            Ok(taken) => taken,
            Err(denied) => {
                if let Some(id) = &incoming.transaction {
                    self.spoil(connection, id, &denied.text);
                }
                (rejected(self.refusal(cx.now, denied)), 0)
            }
        };
        let reply = Reply::SettleIncoming {
            link,
            delivery,
            outcome,
            settled: incoming.settled,
        };
        self.replies.push(Routed {
            connection,
            rests_on,
            reply,
        });
    }

    /// Takes the messages of one delivery: all of them, or none.
    fn take_delivery(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        to: Leg,
        incoming: &Incoming,
    ) -> Result<Outcome, Denied> {
        let payload = match incoming.transaction {
            // What waits for its transaction must not hold the buffer that it came in.
            Some(_) => {
                self.check_transaction_bytes(connection, incoming.payload.len())?;
                Bytes::copy_from_slice(&incoming.payload)
            }
            None => incoming.payload.clone(),
        };
        if incoming.message_format != BATCH_FORMAT {
            let message = Message::parse(payload);
            let message = message.map_err(|error| undecodable(&error.to_string()))?;
            let message = message.with_format(incoming.message_format);
            return self.take_parsed(cx, connection, to, incoming, [message]);
        }
        let parts = split_batch(&payload);
        let messages: Result<Vec<Message>, _> =
            parts.and_then(|parts| parts.into_iter().map(Message::parse).collect());
        let messages = messages.map_err(|error| undecodable(&error.to_string()))?;
        self.take_parsed(cx, connection, to, incoming, messages)
    }

    fn take_parsed(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        (queue, destination, group): Leg,
        incoming: &Incoming,
        messages: impl AsRef<[Message]> + IntoIterator<Item = Message>,
    ) -> Result<Outcome, Denied> {
        let mut all = messages.as_ref().iter();
        if destination.is_some() && all.any(|message| is_ahead(cx.now, message)) {
            let text = "A message that is sent on to another entity cannot be scheduled.";
            return Err(Denied::new(DeniedKind::NotAllowed, text, ""));
        }
        if let Some(id) = &incoming.transaction {
            let send = Operation::Send {
                queue,
                destination,
                group,
                messages: messages.into_iter().collect(),
            };
            self.enlist(cx, connection, id, send)?;
            return Ok(provisionally(incoming, Outcome::Accepted));
        }
        self.admit(cx, queue, messages.as_ref())?;
        self.put(cx, queue, destination.as_ref(), messages, |_| ());
        Ok(Outcome::Accepted)
    }

    /// Takes messages into a queue, all or none, and returns their numbers; 0 for a duplicate.
    pub(super) fn take_messages(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        messages: Vec<Message>,
    ) -> Result<Vec<SequenceNumber>, Denied> {
        self.admit(cx, id, &messages)?;
        let mut numbers = Vec::with_capacity(messages.len());
        self.put(cx, id, None, messages, |number| numbers.push(number));
        Ok(numbers)
    }

    /// Checks whether a queue takes these messages.
    pub(super) fn admit(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        messages: &[Message],
    ) -> Result<(), Denied> {
        self.check_room(
            "messages are received and settled, and none are taken until there is room again",
        )?;
        for message in messages {
            check_keys(message)?;
        }
        // What is due may move bytes to the dead letters, where they count too.
        if self.is_due(cx.now, id) {
            self.with_queue(cx, id, |_, _| ());
        }
        let held = self.held_bytes(id);
        let admitted = self.queue(id).map(|queue| {
            let description = queue.description();
            let arrivals = messages.iter();
            let arrivals = arrivals.map(|message| Arrival::of(message, description));
            queue.admit(arrivals, held.saturating_sub(queue.bytes()))
        });
        match admitted {
            Some(Ok(())) => Ok(()),
            Some(Err(reason)) => {
                let name = self.node(id).map(|node| node.address.to_string());
                let name = name.unwrap_or_default();
                Err(Denied::send(reason, &name))
            }
            None => Err(Denied::gone()),
        }
    }

    /// Puts messages that were admitted into a queue, or through it to where they go on to. `told`
    /// hears their numbers; 0 for a duplicate.
    pub(super) fn put(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        destination: Option<&Arc<str>>,
        messages: impl IntoIterator<Item = Message>,
        mut told: impl FnMut(SequenceNumber),
    ) {
        self.note_use(cx.now, id);
        let Some(node) = self.node(id) else {
            return;
        };
        let keeps = destination.is_some() || node.onward.is_some();
        let selects = node.queue.has_scans();
        let mut at_hand = std::mem::take(&mut self.at_hand);
        let mut goes_on: Vec<Taken> = Vec::new();
        self.step(cx, id, |queue, cx| {
            for message in messages {
                let arrival = Arrival::of(&message, queue.description());
                let taken = queue.enqueue(cx, arrival);
                told(taken.map_or(SequenceNumber(0), |taken| taken.number));
                if let Some(taken) = taken.filter(|_| keeps || selects) {
                    at_hand.insert(taken.body.position, message);
                    goes_on.push(taken);
                }
            }
            if !keeps {
                queue.dispatch(cx);
            }
        });
        self.at_hand = at_hand;
        match destination {
            Some(path) => {
                for taken in goes_on {
                    self.forward(cx, id, taken.number, taken.body, path);
                }
            }
            None if keeps => self.send_on(cx, id),
            None if selects => self.decide(cx, id),
            None => {}
        }
        self.at_hand.clear();
    }

    /// Puts a message into a queue that was admitted, and is scheduled with a number that was
    /// reserved for it.
    pub(super) fn put_reserved(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        number: SequenceNumber,
        message: Message,
    ) {
        self.note_use(cx.now, id);
        self.with_queue(cx, id, |queue, cx| {
            let arrival = Arrival::of(&message, queue.description());
            queue.enqueue_reserved(cx, arrival, number)
        });
    }
}

/// The queue that a sender's link leads to, the destination to which its messages are transferred,
/// and the via entity of its transactions.
type Leg = (EntityId, Option<Arc<str>>, Option<EntityId>);

/// Returns whether a message is scheduled for a time to come.
pub(super) fn is_ahead(now: Timestamp, message: &Message) -> bool {
    let due = message.scheduled_enqueue_time();
    due.is_some_and(|due| now < due)
}

/// Says what became of a delivery, which in a transaction is provisional.
fn provisionally(incoming: &Incoming, outcome: Outcome) -> Outcome {
    match &incoming.transaction {
        Some(id) => Outcome::InTransaction(id.clone(), Box::new(outcome)),
        None => outcome,
    }
}

fn undecodable(text: &str) -> Denied {
    let text = format!("The message could not be decoded: {text}.");
    Denied::new(DeniedKind::Decode, text, "")
}

/// Checks what has a length limit (`entities.md#quotas`), and keys that contradict each other.
fn check_keys(message: &Message) -> Result<(), Denied> {
    let max = limits::MESSAGE_ID_LENGTH_MAX;
    let characters = |text: Option<&str>| text.map_or(0, |text| text.chars().count());
    let lengths = [
        ("message-id", message.message_id_length()),
        ("group-id (session id)", characters(message.group_id())),
        ("x-opt-partition-key", characters(message.partition_key())),
    ];
    for (name, length) in lengths {
        if max < length {
            let text = format!("The {name} has {length} characters, and {max} are the most.");
            return Err(Denied::new(DeniedKind::Argument, text, ""));
        }
    }
    match (message.group_id(), message.partition_key()) {
        (Some(id), Some(key)) if id != key => {
            let text = format!(
                "The partition key '{key}' differs from the session id '{id}': with both set, they \
                 must be the same."
            );
            Err(Denied::new(DeniedKind::NotAllowed, text, ""))
        }
        _ => Ok(()),
    }
}
