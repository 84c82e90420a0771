//! Deliveries to receivers, and credit for them.

use super::links::session_accept;
use super::windows::Load;
use super::{Link, QueuedReply, Reply, consumer_id, link_of};
use crate::messages::is_receive;
use crate::{Gateway, request_log};
use jitney_amqp::{LinkCredit, LinkId, Tag};
use jitney_base::ids::{ConnectionId, EntityId, LockToken};
use jitney_broker::namespace::{Deliveries, StepContext};
use jitney_broker::namespace::{Denied, DeniedKind};
use jitney_queue::{ConsumerId, Delivery, SessionGrant, SessionLost};

impl Gateway {
    /// Passes what queues have handed out on to the links that it is for.
    pub(crate) fn deliver(&mut self, cx: &mut StepContext<'_>, deliveries: &mut Deliveries) {
        let mut filled = Vec::new();
        let is_logged = request_log::is_on();
        let is_traced = self.namespaces.is_traced();
        for (durable_after, delivery) in deliveries.drain() {
            let (consumer, reply) = match delivery {
                Delivery::Drained(consumer, _) if is_receive(consumer) => {
                    self.receive_drained(cx, consumer);
                    continue;
                }
                Delivery::Message(consumer, handover) if is_receive(consumer) => {
                    self.hand_to_receive(cx, consumer, durable_after, *handover);
                    continue;
                }
                Delivery::Drained(consumer, limit) => {
                    (consumer, Reply::Drained(link_of(consumer).1, limit))
                }
                Delivery::Message(consumer, handover) => {
                    let (connection, link) = link_of(consumer);
                    if is_logged {
                        let queue = self.link(connection, link).and_then(Link::queue);
                        self.log_delivered(connection, queue, &handover);
                    }
                    if is_traced {
                        let queue = self.link(connection, link).and_then(Link::queue);
                        self.namespaces.trace_handed_out(queue, &handover);
                    }
                    let load = Load::Messages(u64::from(handover.body.length));
                    if self.connections.load(cx.now, connection, load) {
                        filled.push(connection);
                    }
                    (consumer, Reply::Deliver(link, handover))
                }
                Delivery::SessionGranted(consumer, grant) => {
                    (consumer, self.session_granted(consumer, &grant))
                }
                Delivery::NoSession(consumer) => (consumer, self.no_session(cx, consumer)),
                Delivery::SessionLost(consumer) => (consumer, self.session_lost(cx, consumer)),
            };
            self.replies.push(QueuedReply {
                connection: link_of(consumer).0,
                durable_after,
                reply,
            });
        }
        self.stop_filled(cx, filled);
    }

    /// Accepts a receiver that has waited for a message session.
    fn session_granted(&mut self, consumer: ConsumerId, grant: &SessionGrant) -> Reply {
        let (connection, link) = link_of(consumer);
        let links = &mut self.connection(connection).links;
        if let Some(Link::Waiting { queue, name }) = links.remove(&link) {
            let name = Some(name);
            links.insert(link, Link::Receiver { queue, name });
        }
        Reply::AcceptLink(link, Box::new(session_accept(grant)))
    }

    /// Removes the link of a receiver that its queue has removed; its connection may be gone too.
    fn forget_link(&mut self, consumer: ConsumerId) -> LinkId {
        let (connection, link) = link_of(consumer);
        let state = self.connections.get_mut(connection);
        if let Some(state) = state.and_then(|state| state.links.remove(&link)) {
            self.drop_link(connection, &state);
        }
        link
    }

    /// Refuses a receiver for which no message session became available in time.
    fn no_session(&mut self, cx: &StepContext<'_>, consumer: ConsumerId) -> Reply {
        let link = self.forget_link(consumer);
        let text = "The operation did not complete within the allotted timeout. No unlocked \
                    sessions were available.";
        let denied = Denied::new(DeniedKind::Timeout, text, "");
        Reply::RefuseLink(link, self.tracked(cx.now, denied))
    }

    /// Ends the link of a receiver whose message session's lock is over.
    fn session_lost(&mut self, cx: &StepContext<'_>, consumer: ConsumerId) -> Reply {
        let link = self.forget_link(consumer);
        let text = SessionLost.to_string();
        let denied = Denied::new(DeniedKind::SessionLockLost, text, "");
        Reply::Detach(link, self.tracked(cx.now, denied))
    }

    pub(crate) fn written(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        bytes: u64,
    ) {
        if let Some(&Link::Receiver { queue, .. }) = self.link(connection, link) {
            let consumer = consumer_id(connection, link);
            self.with_queue(cx, queue, |queue, cx| {
                queue.written(cx, consumer, bytes);
            });
        }
        self.unload(cx, connection, Load::Messages(bytes));
    }

    pub(crate) fn credit(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        credit: LinkCredit,
    ) {
        let LinkCredit { link, limit, drain } = credit;
        match self.link(connection, link) {
            Some(&(Link::Receiver { queue, .. } | Link::Waiting { queue, .. })) => {
                let consumer = consumer_id(connection, link);
                let allowance = self.connections.allowance(connection);
                let asks = self.with_queue(cx, queue, |queue, cx| {
                    // It may have been accepted since.
                    queue.allow(cx, consumer, allowance);
                    let before = queue.asks(consumer);
                    if drain {
                        queue.drain(cx, consumer, limit);
                    } else {
                        queue.set_credit(cx, consumer, limit);
                    }
                    before || queue.asks(consumer)
                });
                if asks == Some(true) {
                    self.namespaces.record_access(cx.now, queue);
                }
            }
            Some(Link::Responses(_)) => self.respond_credit(cx, connection, credit),
            Some(Link::Sender { .. } | Link::Requests { .. } | Link::Coordinator { .. }) => {}
            None => self.credit_early(connection, credit),
        }
    }

    /// A message was not sent: it is as if it had not been delivered.
    pub(crate) fn returned(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        token: LockToken,
    ) {
        if let Some(&Link::Receiver { queue, .. }) = self.link(connection, link) {
            let consumer = consumer_id(connection, link);
            self.with_queue(cx, queue, |queue, cx| {
                queue.take_back(cx, consumer, token);
            });
            return;
        }
        self.unsent(cx, connection, link, &[token.to_tag()]);
    }

    /// Messages were not sent to a receiver that is detached.
    pub(crate) fn unsent(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        tags: &[Tag],
    ) {
        let state = self.connections.get(connection);
        let departed = state.and_then(|state| state.departed.iter().find(|(of, _)| *of == link));
        if let Some(&(_, queue)) = departed {
            self.give_back(cx, queue, tags);
        }
    }

    /// Makes messages available again that were not sent to a receiver that is detached: it is as if
    /// they had not been delivered.
    pub(super) fn give_back(&mut self, cx: &mut StepContext<'_>, queue: EntityId, tags: &[Tag]) {
        if !tags.is_empty() {
            let tokens = tags.iter().map(|&tag| LockToken::from_tag(tag));
            self.with_queue(cx, queue, |queue, cx| queue.give_all_back(cx, tokens));
        }
    }
}
