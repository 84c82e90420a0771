//! Connections and their links, for operators.

use std::collections::BTreeMap;

use super::node_shown;
use crate::amqp::connections::Connection;
use crate::amqp::{Link, consumer_id};
use crate::limits;
use crate::request::{Request, Requester};
use crate::{Gateway, QueuedReply, Reply};
use jitney_amqp::{Condition, LinkId, Product, Refusal};
use jitney_base::ids::{ConnectionId, EntityId, SequenceNumber};
use jitney_base::rights::Right;
use jitney_base::time::Timestamp;
use jitney_broker::access::PeerAddress;
use jitney_broker::namespace::{Denied, DeniedKind, StepContext};
use jitney_queue::{ConsumerId, Stuck};

/// What becomes of the messages that a receiver has locked when an operator ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocksThen {
    /// Their locks end with the link, as if their time were over: the delivery counts as failed.
    End,
    /// They stay locked until their time is over, as they do when a client goes.
    Stay,
}

/// Locks that one list looks at, to tell how old those of its receivers are: some milliseconds.
const LOCKS_LOOKED: usize = 20_000;

/// Characters of a container-id, a host or an identity that a list has.
const SHOWN_MAX: usize = 256;

/// Returns what the audit log says of locks.
const fn noted(locks: LocksThen) -> &'static str {
    match locks {
        LocksThen::End => "; its locks end",
        LocksThen::Stay => "; its locks stay",
    }
}

pub(super) fn cut(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}

/// Returns whose credentials a connection has shown, each once.
fn identities(connection: &Connection) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let shown = connection.grants.iter().map(|grant| cut(&grant.whose));
    for whose in shown.filter(|whose| !whose.is_empty()) {
        if !found.contains(&whose) {
            found.push(whose);
        }
    }
    found
}

/// List connections of the namespace with their links, in the order of their ids.
#[derive(Debug)]
pub struct ListConnections {
    /// The connection to begin at, and its first link.
    pub from: (ConnectionId, LinkId),
    /// As many links at most; a connection without links counts as one.
    pub most: usize,
}

/// Close a connection, or detach one of its links.
#[derive(Debug)]
pub struct CloseConnection {
    /// The connection.
    pub connection: ConnectionId,
    /// The link; without one, the connection is closed.
    pub link: Option<LinkId>,
    /// What becomes of the locks.
    pub locks: LocksThen,
}

/// Some connections.
#[derive(Debug)]
pub struct ConnectionsPage {
    /// The connections. One that is continued has further links.
    pub connections: Vec<ConnectionView>,
    /// The connection and the link to continue at; `None` at the end.
    pub next: Option<(ConnectionId, LinkId)>,
}

/// A connection.
#[derive(Debug, Clone)]
pub struct ConnectionView {
    /// Its id.
    pub id: ConnectionId,
    /// The container-id of its `open`.
    pub container_id: String,
    /// The host by which it calls the namespace.
    pub host: String,
    /// Its peer's address.
    pub peer: PeerAddress,
    /// Its peer's port, if it is known.
    pub port: Option<u16>,
    /// It came over TLS.
    pub is_secure: bool,
    /// The product that its `open` names.
    pub product: Product,
    /// When its `open` came.
    pub opened_at: Timestamp,
    /// Whose credentials it has shown, as the audit log names them.
    pub identities: Vec<String>,
    /// It was authorized for something.
    pub is_authorized: bool,
    /// Its links.
    pub links: Vec<LinkView>,
}

/// The purpose of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    /// The client sends messages.
    Sender,
    /// It receives messages.
    Receiver,
    /// It waits for a message session.
    WaitingReceiver,
    /// It declares and discharges transactions.
    Coordinator,
    /// It sends requests to a service node.
    Requests,
    /// It receives the responses of a service node.
    Responses,
}

/// A link.
#[derive(Debug, Clone)]
pub struct LinkView {
    /// Its id on its connection.
    pub id: LinkId,
    /// Its purpose.
    pub role: LinkRole,
    /// The address of its entity; empty if it has none.
    pub entity: String,
    /// How many more messages a receiver takes.
    pub credit: Option<u32>,
    /// How many messages a receiver has locked.
    pub locked: Option<usize>,
    /// The lowest number of the messages that a receiver has locked.
    pub oldest_locked: Option<SequenceNumber>,
    /// When the oldest of its locks was made.
    pub oldest_lock: Option<Timestamp>,
    /// Since when nothing has happened on a receiver.
    pub idle_since: Option<Timestamp>,
    /// Messages that a receiver may get and that none has.
    pub waiting: Option<usize>,
    /// A receiver is stuck.
    pub stuck: Option<Stuck>,
    /// The text of a receiver's selector.
    pub selector: Option<String>,
    /// The message session that a receiver holds.
    pub session: Option<String>,
    /// Deliveries that have come over a sender's link, or messages that were handed to a receiver.
    pub deliveries: Option<u64>,
}

impl Request for ListConnections {
    type Answer = ConnectionsPage;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<ConnectionsPage, Denied> {
        let prefix = gateway.check_namespace(requester, Right::Listen)?;
        let (first, first_link) = self.from;
        let mut left = self.most.clamp(1, limits::LISTED_LINKS);
        let (mut views, mut next) = (Vec::new(), None);
        let of_namespace = gateway.connections.iter_from(first);
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
                .map(|(&link, state)| gateway.link_view(link, state))
                .collect();
            left -= shown.len().max(1);
            views.push(ConnectionView {
                id,
                container_id: cut(&connection.container_id),
                host: cut(&connection.host),
                peer: connection.origin.peer,
                port: connection.origin.port,
                is_secure: connection.origin.is_secure,
                product: connection.product.clone(),
                opened_at: connection.opened_at,
                identities: identities(connection),
                is_authorized: connection.authorized,
                links: shown,
            });
            if let Some((&link, _)) = links.next() {
                next = Some((id, link));
                break;
            }
        }
        gateway.add_receiver_states(cx.now, &mut views);
        Ok(ConnectionsPage {
            connections: views,
            next,
        })
    }
}

impl Request for CloseConnection {
    type Answer = ();

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<(), Denied> {
        let prefix = gateway.check_namespace(requester, Right::Manage)?;
        let Self {
            connection: id,
            link,
            locks,
        } = self;
        let connection = gateway.connections.get(id);
        if connection.is_none_or(|connection| connection.prefix != prefix) {
            let text = format!("There is no connection {}.", id.0);
            return Err(Denied::new(DeniedKind::NotFound, text, ""));
        }
        if let Some(link) = link {
            return gateway.detach_for_operator(cx, requester, &prefix, id, link, locks);
        }
        let detail = format!(
            "connection {}: {}{}",
            id.0,
            gateway.client(id),
            noted(locks)
        );
        gateway.audit(cx, requester, "close_connection", &prefix, &detail);
        let refusal = Refusal {
            condition: Condition::ConnectionForced,
            description: "An operator has closed the connection.".to_owned(),
        };
        gateway.connection(id).ends_locks = locks == LocksThen::End;
        gateway.replies.push(QueuedReply {
            connection: id,
            durable_after: 0,
            reply: Reply::Close(refusal),
        });
        Ok(())
    }
}

impl Gateway {
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
            oldest_lock: None,
            idle_since: None,
            waiting: None,
            stuck: None,
            selector: None,
            session: None,
            deliveries,
        }
    }

    /// Adds to receivers their credit, their locks and their message sessions: each queue is looked at once.
    fn add_receiver_states(&self, now: Timestamp, views: &mut [ConnectionView]) {
        let mut budget = LOCKS_LOOKED;
        let mut by_queue: BTreeMap<EntityId, Vec<(usize, usize, ConsumerId)>> = BTreeMap::new();
        for (at, view) in views.iter().enumerate() {
            let Some(connection) = self.connections.get(view.id) else {
                continue;
            };
            for (index, link) in view.links.iter().enumerate() {
                let found = connection.links.get(&link.id);
                if let Some(Link::Receiver { queue, .. } | Link::Waiting { queue, .. }) = found {
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
            let states = queue.receiver_states(&ids, &mut budget);
            for ((at, index, id), state) in receivers.into_iter().zip(states) {
                let link = views.get_mut(at).and_then(|view| view.links.get_mut(index));
                if let Some(link) = link {
                    link.idle_since = state.idle_since;
                    link.waiting = state.waiting;
                    if link.role == LinkRole::WaitingReceiver {
                        continue;
                    }
                    link.stuck = queue.stuck(now, id);
                    link.credit = Some(state.credit);
                    link.locked = Some(state.locked);
                    link.oldest_locked = state.oldest_locked;
                    link.oldest_lock = state.oldest_lock;
                    link.selector = state.selector;
                    link.deliveries = Some(state.delivered);
                    link.session = queue.session_held_by(id).map(ToOwned::to_owned);
                }
            }
        }
    }

    fn detach_for_operator(
        &mut self,
        cx: &mut StepContext<'_>,
        requester: &Requester,
        prefix: &str,
        id: ConnectionId,
        link: LinkId,
        locks: LocksThen,
    ) -> Result<(), Denied> {
        let Some(found) = self.link(id, link) else {
            let text = format!("Connection {} has no link {}.", id.0, link.0);
            return Err(Denied::new(DeniedKind::NotFound, text, ""));
        };
        let entity = self.link_view(link, found).entity;
        let receives = match found {
            Link::Receiver { queue, name: None } => Some(*queue),
            Link::Receiver { .. }
            | Link::Sender { .. }
            | Link::Waiting { .. }
            | Link::Coordinator { .. }
            | Link::Requests { .. }
            | Link::Responses(_) => None,
        };
        let detail = format!(
            "link {} of connection {}: {}{}",
            link.0,
            id.0,
            self.client(id),
            noted(locks)
        );
        let path = format!("{prefix}{entity}");
        self.audit(cx, requester, "close_link", &path, &detail);
        let text = "An operator has detached the link.";
        let denied = Denied::new(DeniedKind::Detached, text, &entity);
        self.end_link(cx, id, link, denied);
        if let Some(queue) = receives.filter(|_| locks == LocksThen::End) {
            self.end_locks_of(cx, id, link, &Link::Receiver { queue, name: None });
        }
        Ok(())
    }
}
