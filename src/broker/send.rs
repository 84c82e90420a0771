//! Messages come in.

use bytes::Bytes;

use super::errors::{rejected, send_refused};
use super::{
    Broker, ConnectionId, DeliveryId, EntityId, Link, LinkId, Outcome, Reply, Room, Routed,
    Surroundings,
};
use crate::amqp::{Condition, Refusal};
use crate::entity::SequenceNumber;
use crate::entity::queue::Arrival;
use crate::limits;
use crate::message::{BATCH_FORMAT, Message, split_batch};

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
        around: &mut Surroundings<'_>,
        connection: ConnectionId,
        incoming: Incoming,
    ) {
        let (link, delivery) = (incoming.link, incoming.delivery);
        let (outcome, rests_on) = match self.link(connection, link) {
            Some(&Link::Sender { queue }) => {
                let outcome = match self.take_delivery(around, queue, &incoming) {
                    Ok(()) => Outcome::Accepted,
                    Err(refusal) => rejected(refusal),
                };
                (outcome, self.node(queue).map_or(0, |node| node.group))
            }
            Some(Link::Requests { .. }) => {
                let outcome = match self.request(around, connection, &incoming) {
                    Ok(()) => Outcome::Accepted,
                    Err(refusal) => rejected(refusal),
                };
                (outcome, 0)
            }
            // The link has gone meanwhile; nobody waits for an answer.
            Some(Link::Receiver { .. } | Link::Responses(_)) | None => return,
        };
        let reply = Reply::SettleIncoming {
            link,
            delivery,
            outcome,
            settled: incoming.settled,
        };
        around.replies.push(Routed {
            connection,
            rests_on,
            reply,
        });
    }

    /// Takes the messages of one delivery: all of them, or none.
    fn take_delivery(
        &mut self,
        around: &mut Surroundings<'_>,
        queue: EntityId,
        incoming: &Incoming,
    ) -> Result<(), Refusal> {
        if incoming.transaction.is_some() {
            let text = "The transaction is not known: this broker does not support them yet.";
            return Err(self.refuse(around, Condition::TransactionUnknownId, text, ""));
        }
        if incoming.message_format == BATCH_FORMAT {
            let parts = split_batch(&incoming.payload).map_err(|error| error.to_string());
            let messages = parts.and_then(|parts| {
                parts
                    .into_iter()
                    .map(|part| Message::parse(part).map_err(|e| e.to_string()))
                    .collect()
            });
            let messages: Vec<Message> =
                messages.map_err(|text| self.undecodable(around, &text))?;
            self.take_messages(around, queue, &messages)?;
        } else {
            let message = Message::parse(incoming.payload.clone());
            let message = message.map_err(|error| self.undecodable(around, &error.to_string()))?;
            self.take_messages(around, queue, std::slice::from_ref(&message))?;
        }
        Ok(())
    }

    /// Takes messages into a queue, all or none, and returns their numbers.
    pub(super) fn take_messages(
        &mut self,
        around: &mut Surroundings<'_>,
        id: EntityId,
        messages: &[Message],
    ) -> Result<Vec<SequenceNumber>, Refusal> {
        if self.room == Room::None {
            let text = "The broker's disk is full: messages are received and settled, and none are \
                        taken until there is space again.";
            return Err(self.refuse(around, Condition::ResourceLimitExceeded, text, ""));
        }
        for message in messages {
            check_lengths(message)
                .map_err(|text| self.refuse(around, Condition::ArgumentError, &text, ""))?;
        }
        // What is due may move bytes to the dead letters, where they count too.
        self.with_queue(around, id, |_, _| ());
        let elsewhere = self
            .queue(EntityId(id.0 + 1))
            .map_or(0, super::super::entity::queue::Queue::bytes);
        let taken = self.with_queue(around, id, |queue, cx| {
            queue.admit(
                messages.iter().map(|message| &message.bytes()[..]),
                elsewhere,
            )?;
            let numbers = messages.iter().map(|message| {
                queue.enqueue(
                    cx,
                    Arrival {
                        body: message.bytes(),
                        time_to_live: message.time_to_live(),
                        due: message.scheduled_enqueue_time(),
                    },
                )
            });
            let numbers: Vec<SequenceNumber> = numbers.collect();
            queue.dispatch(cx);
            Ok(numbers)
        });
        let name = self
            .node(id)
            .map(|node| node.address.to_string())
            .unwrap_or_default();
        match taken {
            Some(Ok(numbers)) => Ok(numbers),
            Some(Err(reason)) => {
                let (condition, text) = send_refused(reason, &name);
                Err(self.refuse(around, condition, &text, &name))
            }
            None => Err(self.refuse(around, Condition::NotFound, "The entity is gone.", &name)),
        }
    }

    fn undecodable(&mut self, around: &Surroundings<'_>, text: &str) -> Refusal {
        let text = format!("The message could not be decoded: {text}.");
        self.refuse(around, Condition::DecodeError, &text, "")
    }
}

/// Checks what has a length limit (`protocol.md` §13, quotas).
fn check_lengths(message: &Message) -> Result<(), String> {
    let max = limits::MESSAGE_ID_LENGTH_MAX;
    let lengths = [
        ("message-id", message.message_id_length()),
        ("group-id (session id)", message.group_id_length()),
        ("x-opt-partition-key", message.partition_key_length()),
    ];
    for (name, length) in lengths {
        if max < length {
            return Err(format!(
                "The {name} has {length} characters, and {max} are the most."
            ));
        }
    }
    Ok(())
}
