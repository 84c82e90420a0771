//! What goes out: deliveries, credit, and the way that is full.

use super::{
    Broker, ConnectionId, Effects, Link, LinkId, LockToken, Reply, Routed, Surroundings,
    consumer_id, link_of,
};
use crate::entity::queue::Delivery;

impl Broker {
    /// Passes what a queue gave out on to the links it is for.
    pub(super) fn deliver(around: &mut Surroundings<'_>, group: u64, effects: &mut Effects) {
        for delivery in effects.deliveries.drain(..) {
            let (consumer, reply) = match delivery {
                Delivery::Drained(consumer, limit) => {
                    (consumer, Reply::Drained(link_of(consumer).1, limit))
                }
                Delivery::Message(consumer, handover) => {
                    (consumer, Reply::Deliver(link_of(consumer).1, handover))
                }
            };
            let connection = link_of(consumer).0;
            around.replies.push(Routed {
                connection,
                rests_on: group,
                reply,
            });
        }
    }

    pub(super) fn written(
        &mut self,
        around: &mut Surroundings<'_>,
        connection: ConnectionId,
        link: LinkId,
        bytes: u64,
    ) {
        if let Some(&Link::Receiver { queue, .. }) = self.link(connection, link) {
            let consumer = consumer_id(connection, link);
            self.with_queue(around, queue, |queue, cx| {
                queue.written(cx, consumer, bytes);
            });
        }
    }

    pub(super) fn credit(
        &mut self,
        around: &mut Surroundings<'_>,
        connection: ConnectionId,
        link: LinkId,
        limit: u32,
        drain: bool,
    ) {
        match self.link(connection, link) {
            Some(&Link::Receiver { queue, .. }) => {
                let consumer = consumer_id(connection, link);
                self.with_queue(around, queue, |queue, cx| {
                    queue.set_credit(cx, consumer, limit, drain);
                });
            }
            Some(Link::Responses(_)) => self.respond_credit(around, connection, link, limit, drain),
            Some(Link::Sender { .. } | Link::Requests { .. }) | None => {}
        }
    }

    /// A message did not leave: it is as if it had not been delivered.
    pub(super) fn returned(
        &mut self,
        around: &mut Surroundings<'_>,
        connection: ConnectionId,
        link: LinkId,
        token: LockToken,
    ) {
        if let Some(&Link::Receiver { queue, .. }) = self.link(connection, link) {
            let consumer = consumer_id(connection, link);
            self.with_queue(around, queue, |queue, cx| {
                queue.take_back(cx, consumer, token);
            });
        }
    }
}
