//! Deliveries and responses whose messages have lost their bytes.

use super::management::Response;
use super::windows::Load;
use super::{Link, ServiceNode, consumer_id};
use crate::Gateway;
use jitney_amqp::LinkId;
use jitney_base::ids::{ConnectionId, EntityId, SequenceNumber};
use jitney_broker::namespace::{Contained, Damage, StepContext};
use jitney_message::Stamps;
use jitney_queue::{DeadLetter, Handover, ReceiveMode};

/// What has become of the credit of a delivery that is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryCredit {
    /// It is there for another message.
    Left,
    /// A drain has used it up.
    Drained,
}

impl Gateway {
    /// Contains the damage of a message that was to be delivered. Its receiver gets the next one in
    /// its place, if the credit is left.
    pub fn delivery_damaged(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        handover: &Handover,
        damage: &Damage,
        credit: DeliveryCredit,
    ) -> Option<Contained> {
        let Some(&Link::Receiver { queue, .. }) = self.link(connection, link) else {
            // The link has gone, and the message with it or back to its queue.
            return None;
        };
        let consumer = consumer_id(connection, link);
        let shows = self
            .namespaces
            .queue(queue)
            .is_some_and(|queue| queue.browses(consumer));
        let mode = if shows {
            ReceiveMode::PeekLock
        } else {
            handover.mode
        };
        let contained = self.contain_handed_out(cx, queue, mode, handover, damage);
        let bytes = u64::from(handover.body.length);
        self.written(cx, connection, link, bytes);
        self.with_queue(cx, queue, |queue, cx| match credit {
            DeliveryCredit::Left => queue.take_back(cx, consumer, handover.token),
            DeliveryCredit::Drained => queue.free(cx, handover.token),
        });
        contained
    }

    /// Contains the damage of a message that was handed out. It was deleted with that, if this is how it was received.
    pub(crate) fn contain_handed_out(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        mode: ReceiveMode,
        handover: &Handover,
        damage: &Damage,
    ) -> Option<Contained> {
        let was_deleted = mode == ReceiveMode::ReceiveAndDelete;
        let number = number_of(&handover.stamps);
        let replaced = self.with_namespaces(cx, |namespaces, cx| {
            namespaces.replace_body(cx, queue, number, damage)
        });
        let replaced = replaced.is_some();
        if !replaced && was_deleted {
            self.with_namespaces(cx, |namespaces, cx| {
                namespaces.bring_back(cx, queue, &handover.stamps, damage);
            });
        }
        (replaced || was_deleted).then(|| self.namespaces.contained(queue, number, damage))
    }

    /// Contains the damage of messages that a response was to carry, of which `damages` tells. One
    /// that was looked at is shown as it is now, one that was received is left out.
    pub fn response_damaged(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        response: &mut Response,
        damages: &[Damage],
    ) -> Vec<Contained> {
        let bytes = response.bytes();
        let address = match self.link(connection, link) {
            Some(Link::Responses(state)) => match &state.node {
                ServiceNode::Management(address) => Some(address.clone()),
                ServiceNode::Cbs => None,
            },
            _ => None,
        };
        let queue = address.and_then(|address| self.namespaces.resolve(&address));
        let mut contained = Vec::new();
        response.replace(|carried| {
            let damage = damages.iter().find(|damage| damage.body == carried.body);
            let Some(damage) = damage else { return true };
            let Some(queue) = queue else { return false };
            let number = number_of(&carried.stamps);
            let body = self.with_namespaces(cx, |namespaces, cx| {
                namespaces.replace_body(cx, queue, number, damage)
            });
            let was_deleted = carried.token.is_some() && carried.stamps.lock_token.is_none();
            if body.is_none() && was_deleted {
                self.with_namespaces(cx, |namespaces, cx| {
                    namespaces.bring_back(cx, queue, &carried.stamps, damage);
                });
            }
            if body.is_some() || was_deleted {
                contained.push(self.namespaces.contained(queue, number, damage));
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
}

/// Returns the number that a message has in its queue.
fn number_of(stamps: &Stamps) -> SequenceNumber {
    SequenceNumber(stamps.sequence_number.cast_unsigned())
}
