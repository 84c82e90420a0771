//! Messages whose bytes in the log are not what was written: each is contained when it is found, by a
//! delivery, a request, a search, or before it goes on. Everything else goes on.

use super::ways::Load;
use super::{
    Broker, ConnectionId, Link, LinkId, Response, StepContext, consumer_id, links::ServiceNode,
};
use crate::ids::{BodyRef, EntityId, SequenceNumber};
use crate::message::Stamps;
use crate::queue::{DeadLetter, Handover, ReceiveMode};

/// Bytes of a message that are not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The bytes.
    pub body: BodyRef,
    /// Where that is and what is wrong, for people.
    pub place: String,
}

/// A message that has lost its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contained {
    /// The entity that had it, as clients know it.
    pub entity: String,
    /// The number that it had there.
    pub number: SequenceNumber,
    /// Where its bytes were and what is wrong with them, for people.
    pub place: String,
}

impl Broker {
    /// Contains the damage of a message in a queue: it goes to the dead letters without its bytes.
    /// `None` if the message has gone, or has other bytes now.
    pub fn body_damaged(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        number: SequenceNumber,
        damage: &Damage,
    ) -> Option<Contained> {
        self.replace(cx, queue, number, damage)?;
        Some(self.contained(queue, number, damage))
    }

    /// Contains the damage of a message that was to be delivered. Its receiver gets the next one in
    /// its place, unless a drain has used up the credit meanwhile.
    pub fn delivery_damaged(
        &mut self,
        cx: &mut StepContext<'_>,
        receiver: (ConnectionId, LinkId),
        handover: &Handover,
        damage: &Damage,
        is_drained: bool,
    ) -> Option<Contained> {
        let (connection, link) = receiver;
        let Some(&Link::Receiver { queue, .. }) = self.link(connection, link) else {
            // The link has gone, and the message with it or back to its queue.
            return None;
        };
        let consumer = consumer_id(connection, link);
        let number = number_of(&handover.stamps);
        let replaced = self.replace(cx, queue, number, damage).is_some();
        let shows = self
            .queue(queue)
            .is_some_and(|queue| queue.is_shown(consumer));
        let was_deleted = handover.mode == ReceiveMode::ReceiveAndDelete && !shows;
        let is_contained = replaced || was_deleted;
        if !replaced && was_deleted {
            self.bring_back(cx, queue, &handover.stamps, damage);
        }
        let bytes = u64::from(handover.body.length);
        self.written(cx, connection, link, bytes);
        self.with_queue(cx, queue, |queue, cx| {
            if is_drained {
                queue.free(cx, handover.token);
            } else {
                queue.take_back(cx, consumer, handover.token);
            }
        });
        is_contained.then(|| self.contained(queue, number, damage))
    }

    /// Contains the damage of messages that a response was to carry, of which `damages` tells. One
    /// that was looked at is shown as it is now, one that was received is left out.
    pub fn response_damaged(
        &mut self,
        cx: &mut StepContext<'_>,
        responder: (ConnectionId, LinkId),
        response: &mut Response,
        damages: &[Damage],
    ) -> Vec<Contained> {
        let (connection, link) = responder;
        let bytes = response.bytes();
        let address = match self.link(connection, link) {
            Some(Link::Responses(state)) => match &state.node {
                ServiceNode::Management(address) => Some(address.clone()),
                ServiceNode::Cbs => None,
            },
            _ => None,
        };
        let queue = address.and_then(|address| self.resolve(&address));
        let mut contained = Vec::new();
        response.replace(|carried| {
            let damage = damages.iter().find(|damage| damage.body == carried.body);
            let Some(damage) = damage else { return true };
            let Some(queue) = queue else { return false };
            let number = number_of(&carried.stamps);
            let body = self.replace(cx, queue, number, damage);
            let was_deleted = carried.token.is_some() && carried.stamps.lock_token.is_none();
            if body.is_none() && was_deleted {
                self.bring_back(cx, queue, &carried.stamps, damage);
            }
            if body.is_some() || was_deleted {
                contained.push(self.contained(queue, number, damage));
            }
            match body {
                Some(body) if carried.token.is_none() => {
                    carried.body = body;
                    carried.stamps.amendments = Some(DeadLetter::damaged(&damage.place).amended());
                    true
                }
                _ => false,
            }
        });
        let less = bytes.saturating_sub(response.bytes());
        self.unload(cx, connection, Load::Answers(less));
        contained
    }

    /// Gives a message other bytes and dead-letters it; returns where they are.
    fn replace(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        number: SequenceNumber,
        damage: &Damage,
    ) -> Option<BodyRef> {
        let reason = DeadLetter::damaged(&damage.place);
        let contain = |queue: &mut super::Queue, cx: &mut super::Context<'_>| {
            queue.contain(cx, number, damage.body, reason)
        };
        self.with_queue(cx, queue, contain).flatten()
    }

    /// Makes a dead letter of a message that was received and deleted.
    fn bring_back(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        stamps: &Stamps,
        damage: &Damage,
    ) {
        let reason = DeadLetter::damaged(&damage.place);
        self.with_queue(cx, queue.base(), |queue, cx| {
            queue.bring_back(cx, stamps, reason);
        });
    }

    fn contained(&self, queue: EntityId, number: SequenceNumber, damage: &Damage) -> Contained {
        let node = self.node(queue);
        let entity = node.map(|node| node.address.to_string());
        Contained {
            entity: entity.unwrap_or_default(),
            number,
            place: damage.place.clone(),
        }
    }
}

/// Returns the number that a message has in its queue.
fn number_of(stamps: &Stamps) -> SequenceNumber {
    SequenceNumber(stamps.sequence_number.cast_unsigned())
}
