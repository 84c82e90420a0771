//! Connections and their links, for operators.

use std::collections::BTreeMap;

use super::{ConnectionView, LinkRole, LinkView, Operated, node_shown};
use crate::access::Authority;
use crate::amqp::{Condition, LinkId, Refusal};
use crate::gateway::amqp::{Link, consumer_id};
use crate::gateway::{Gateway, Reply, Routed};
use crate::ids::{ConnectionId, EntityId};
use crate::limits;
use crate::namespace::{Denied, DeniedKind, StepContext};
use crate::queue::ConsumerId;
use crate::rights::Right;

impl Gateway {
    pub(super) fn list_connections(
        &self,
        prefix: &str,
        (first, first_link): (ConnectionId, LinkId),
        most: usize,
    ) -> Operated {
        let mut left = most.clamp(1, limits::LISTED_LINKS);
        let (mut views, mut next) = (Vec::new(), None);
        let of_namespace = self.connections.iter_from(first);
        let of_namespace = of_namespace.filter(|(_, connection)| connection.prefix == prefix);
        for (id, connection) in of_namespace {
            if left == 0 {
                next = Some((id, LinkId(0)));
                break;
            }
            let from = if id == first { first_link } else { LinkId(0) };
            let mut links = connection.links.range(from..);
            let shown = links.by_ref().take(left);
            let shown: Vec<LinkView> = shown
                .map(|(&link, state)| self.link_view(link, state))
                .collect();
            left -= shown.len().max(1);
            views.push(ConnectionView {
                id,
                container_id: connection.container_id.clone(),
                host: connection.host.clone(),
                peer: connection.origin.peer,
                is_authorized: connection.authorized,
                links: shown,
            });
            if let Some((&link, _)) = links.next() {
                next = Some((id, link));
                break;
            }
        }
        self.add_receiver_states(&mut views);
        Operated::Connections(views, next)
    }

    fn link_view(&self, id: LinkId, link: &Link) -> LinkView {
        let (role, entity) = match link {
            Link::Sender { queue, .. } => (LinkRole::Sender, self.shown(*queue)),
            Link::Receiver { queue, .. } => (LinkRole::Receiver, self.shown(*queue)),
            Link::Waiting { queue, .. } => (LinkRole::WaitingReceiver, self.shown(*queue)),
            Link::Coordinator { .. } => (LinkRole::Coordinator, String::new()),
            Link::Requests { node, .. } => (LinkRole::Requests, node_shown(node)),
            Link::Responses(_) => (LinkRole::Responses, String::new()),
        };
        let deliveries = match link {
            Link::Sender { deliveries, .. } => Some(*deliveries),
            Link::Receiver { .. }
            | Link::Waiting { .. }
            | Link::Coordinator { .. }
            | Link::Requests { .. }
            | Link::Responses(_) => None,
        };
        LinkView {
            id,
            role,
            entity,
            credit: None,
            locked: None,
            oldest_locked: None,
            selector: None,
            session: None,
            deliveries,
        }
    }

    /// Adds to receivers their credit, their locks and their message sessions: each queue is looked at once.
    fn add_receiver_states(&self, views: &mut [ConnectionView]) {
        let mut by_queue: BTreeMap<EntityId, Vec<(usize, usize, ConsumerId)>> = BTreeMap::new();
        for (at, view) in views.iter().enumerate() {
            let Some(connection) = self.connections.get(view.id) else {
                continue;
            };
            for (index, link) in view.links.iter().enumerate() {
                if let Some(Link::Receiver { queue, .. }) = connection.links.get(&link.id) {
                    let receiver = consumer_id(view.id, link.id);
                    by_queue
                        .entry(*queue)
                        .or_default()
                        .push((at, index, receiver));
                }
            }
        }
        for (queue, receivers) in by_queue {
            let Some(queue) = self.namespaces.queue(queue) else {
                continue;
            };
            let ids: Vec<ConsumerId> = receivers.iter().map(|&(_, _, id)| id).collect();
            let states = queue.receiver_states(&ids);
            for ((at, index, id), state) in receivers.into_iter().zip(states) {
                let link = views.get_mut(at).and_then(|view| view.links.get_mut(index));
                if let Some(link) = link {
                    link.credit = Some(state.credit);
                    link.locked = Some(state.locked);
                    link.oldest_locked = state.oldest_locked;
                    link.selector = state.selector;
                    link.deliveries = Some(state.delivered);
                    link.session = queue.session_held_by(id).map(ToOwned::to_owned);
                }
            }
        }
    }

    pub(super) fn close_for_operator(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        (id, link): (ConnectionId, Option<LinkId>),
    ) -> Result<Operated, Denied> {
        let prefix = self.check_namespace(host, authority, Right::Manage)?;
        let connection = self.connections.get(id);
        if connection.is_none_or(|connection| connection.prefix != prefix) {
            let text = format!("There is no connection {}.", id.0);
            return Err(Denied::new(DeniedKind::NotFound, text, ""));
        }
        if let Some(link) = link {
            return self.detach_for_operator(cx, authority, &prefix, (id, link));
        }
        let detail = format!("connection {}: {}", id.0, self.client(id));
        self.audit(cx, authority, "close_connection", &prefix, &detail);
        let refusal = Refusal {
            condition: Condition::ConnectionForced,
            description: "An operator has closed the connection.".to_owned(),
        };
        self.replies.push(Routed {
            connection: id,
            rests_on: 0,
            reply: Reply::Close(refusal),
        });
        Ok(Operated::Done)
    }

    fn detach_for_operator(
        &mut self,
        cx: &mut StepContext<'_>,
        authority: &Authority,
        prefix: &str,
        (id, link): (ConnectionId, LinkId),
    ) -> Result<Operated, Denied> {
        let Some(found) = self.link(id, link) else {
            let text = format!("Connection {} has no link {}.", id.0, link.0);
            return Err(Denied::new(DeniedKind::NotFound, text, ""));
        };
        let entity = self.link_view(link, found).entity;
        let detail = format!(
            "link {} of connection {}: {}",
            link.0,
            id.0,
            self.client(id)
        );
        let path = format!("{prefix}{entity}");
        self.audit(cx, authority, "close_link", &path, &detail);
        let text = "An operator has detached the link.";
        let denied = Denied::new(DeniedKind::Detached, text, &entity);
        self.end_link(cx, id, link, denied);
        Ok(Operated::Done)
    }
}
