//! Links come and go.

use std::collections::VecDeque;

use super::access::Right;
use super::errors::{not_found, refusal};
use super::management::Call;
use super::{
    Broker, Connection, ConnectionId, EntityId, Link, Reply, Routed, Surroundings, consumer_id,
};
use crate::address::{Address, EntityAddress, SubQueue};
use crate::amqp::{
    Accept, Attach, Condition, Identity, LinkId, LinkRole, LinkTarget, Refusal, SessionId,
    SettleMode,
};
use crate::entity::queue::{ConsumerId, ReceiveMode};
use crate::limits;

/// A node that answers requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServiceNode {
    Cbs,
    Management(EntityAddress),
}

/// A link on which a service node's responses go out.
#[derive(Debug)]
pub(super) struct ResponseLink {
    pub(super) node: ServiceNode,
    pub(super) session: SessionId,
    pub(super) name: String,
    /// What the peer calls its end; requests name it as reply-to.
    pub(super) target: Option<String>,
    /// Responses allowed in all since the attach, and those sent; serial numbers.
    pub(super) limit: u32,
    pub(super) sent: u32,
    /// Calls whose answers wait for credit.
    pub(super) waiting: VecDeque<Call>,
}

impl Broker {
    pub(super) fn attach(
        &mut self,
        around: &mut Surroundings<'_>,
        connection: ConnectionId,
        link: LinkId,
        attach: &Attach,
    ) {
        let answer = match attach.role {
            LinkRole::Incoming => self.attach_incoming(around, connection, attach),
            LinkRole::Outgoing => self.attach_outgoing(around, connection, attach),
        };
        let reply = match answer {
            Ok((state, accept)) => {
                if let &Link::Receiver { queue, mode } = &state {
                    let consumer = consumer_id(connection, link);
                    self.with_queue(around, queue, |queue, _| queue.add_consumer(consumer, mode));
                }
                self.connection(connection).links.insert(link, state);
                Reply::AcceptLink(link, accept)
            }
            Err(refusal) => Reply::RefuseLink(link, refusal),
        };
        around.replies.push(Routed {
            connection,
            rests_on: 0,
            reply,
        });
        self.adopt_orphans(around, connection, link);
    }

    fn attach_incoming(
        &mut self,
        around: &Surroundings<'_>,
        connection: ConnectionId,
        attach: &Attach,
    ) -> Result<(Link, Accept), Refusal> {
        let text = match &attach.target {
            LinkTarget::Node(target) => {
                target.as_ref().and_then(|target| target.address.as_deref())
            }
            LinkTarget::Coordinator => {
                let text = "This broker does not support transactions yet.";
                return Err(self.refuse(around, Condition::NotImplemented, text, "coordinator"));
            }
        };
        let session = attach.session;
        let service = Accept {
            message_size_max: limits::MESSAGE_SIZE_MAX,
            credit: limits::LINK_CREDIT,
            properties: None,
        };
        match self.node_at(around, text)? {
            Found::Service(node) => Ok((Link::Requests { node, session }, service)),
            Found::Queue(id, address) if address.queue == SubQueue::Main => {
                self.check_right(around, connection, &address, Right::Send)?;
                let description = self.queue(id).map(|queue| queue.description().clone());
                let description = description.unwrap_or_default();
                if !description.status.can_send() {
                    return Err(self.disabled(around, &address));
                }
                let size = description.max_message_bytes;
                let accept = Accept {
                    message_size_max: size,
                    credit: limits::LINK_CREDIT,
                    properties: Some(super::management::batch_size_property(size)),
                };
                Ok((Link::Sender { queue: id }, accept))
            }
            Found::Queue(_, address) => {
                let text = format!("Messages cannot be sent to the sub-queue '{address}'.");
                Err(self.refuse(around, Condition::NotAllowed, &text, &address.path))
            }
        }
    }

    fn attach_outgoing(
        &mut self,
        around: &Surroundings<'_>,
        connection: ConnectionId,
        attach: &Attach,
    ) -> Result<(Link, Accept), Refusal> {
        let source = attach.source.as_ref();
        let text = source.and_then(|source| source.address.as_deref());
        match self.node_at(around, text)? {
            Found::Service(node) => {
                let target = match &attach.target {
                    LinkTarget::Node(Some(target)) => target.address.clone(),
                    LinkTarget::Node(None) | LinkTarget::Coordinator => None,
                };
                let link = ResponseLink {
                    node,
                    session: attach.session,
                    name: attach.name.clone(),
                    target: target.filter(|address| !address.is_empty()),
                    limit: 0,
                    sent: 0,
                    waiting: VecDeque::new(),
                };
                Ok((Link::Responses(link), Accept::default()))
            }
            Found::Queue(queue, address) => {
                self.check_right(around, connection, &address, Right::Listen)?;
                if attach.has_session_filter() {
                    let text = "A sessionful message receiver cannot be created on an entity that \
                                does not require sessions.";
                    return Err(self.refuse(around, Condition::NotAllowed, text, &address.path));
                }
                let status = self.queue(queue).map(|queue| queue.description().status);
                if status.is_some_and(|status| !status.can_receive()) {
                    return Err(self.disabled(around, &address));
                }
                let mode = match attach.settle_mode() {
                    SettleMode::OnSend => ReceiveMode::ReceiveAndDelete,
                    SettleMode::OnReceipt => ReceiveMode::PeekLock,
                };
                let accept = Accept {
                    message_size_max: limits::MESSAGE_SIZE_MAX,
                    ..Accept::default()
                };
                Ok((Link::Receiver { queue, mode }, accept))
            }
        }
    }

    /// The peer ended a link. Locks stay (`protocol.md` §6.3).
    pub(super) fn detached(&mut self, connection: ConnectionId, link: LinkId) {
        let Some(state) = self.connection(connection).links.remove(&link) else {
            return;
        };
        self.let_go(connection, link, &state);
    }

    /// A connection ended, and with it all its links.
    pub(super) fn closed(&mut self, connection: ConnectionId) {
        let Some(state) = self.connections.remove(&connection) else {
            return;
        };
        for (link, state) in state.links {
            self.let_go(connection, link, &state);
        }
    }

    /// Ends the links that an entity's new properties forbid.
    pub(super) fn detach_forbidden(&mut self, around: &mut Surroundings<'_>, main: EntityId) {
        let Some(node) = self.node(main) else { return };
        let (status, address) = (node.queue.description().status, node.address.clone());
        let dead_letters = EntityId(main.0 + 1);
        let mut doomed = Vec::new();
        for (&connection, state) in &self.connections {
            for (&link, state) in &state.links {
                let forbidden = match state {
                    Link::Sender { queue } => *queue == main && !status.can_send(),
                    Link::Receiver { queue, .. } => {
                        (*queue == main || *queue == dead_letters) && !status.can_receive()
                    }
                    Link::Requests { .. } | Link::Responses(_) => false,
                };
                if forbidden {
                    doomed.push((connection, link));
                }
            }
        }
        for (connection, link) in doomed {
            let refusal = self.disabled(around, &address);
            self.detached(connection, link);
            let (rests_on, reply) = (around.group, Reply::Detach(link, refusal));
            around.replies.push(Routed {
                connection,
                rests_on,
                reply,
            });
        }
    }

    pub(super) fn connection(&mut self, id: ConnectionId) -> &mut Connection {
        self.connections.entry(id).or_default()
    }

    fn let_go(&mut self, connection: ConnectionId, link: LinkId, state: &Link) {
        if let &Link::Receiver { queue, .. } = state {
            let consumer: ConsumerId = consumer_id(connection, link);
            if let Some(node) = self.node_mut(queue) {
                node.queue.remove_consumer(consumer);
            }
        }
    }

    /// Finds what an address names.
    fn node_at(&mut self, around: &Surroundings<'_>, text: Option<&str>) -> Result<Found, Refusal> {
        let text = text.unwrap_or_default();
        let decoded = Address::parse(text);
        // A literal percent sign in a name is rare: decoded first, then as it is written.
        for address in [decoded.clone(), Address::parse_literal(text)] {
            match address {
                Ok(Address::Cbs) => return Ok(Found::Service(ServiceNode::Cbs)),
                Ok(Address::Entity(address)) => {
                    if let Some(id) = self.resolve(&address) {
                        return Ok(Found::Queue(id, address));
                    }
                }
                Ok(Address::Management(address)) => {
                    if self.resolve(&address).is_some() {
                        return Ok(Found::Service(ServiceNode::Management(address)));
                    }
                }
                Err(_) => {}
            }
        }
        Err(match decoded {
            Ok(Address::Entity(address) | Address::Management(address)) => {
                not_found(&address.to_string(), around.now, &mut self.random)
            }
            Ok(Address::Cbs) => not_found("$cbs", around.now, &mut self.random),
            Err(error) => {
                let text = format!("'{text}' is not the address of an entity: {error}.");
                self.refuse(around, Condition::InvalidField, &text, "")
            }
        })
    }

    fn check_right(
        &mut self,
        around: &Surroundings<'_>,
        _connection: ConnectionId,
        address: &EntityAddress,
        right: Right,
    ) -> Result<(), Refusal> {
        if self
            .profile
            .allows(&Identity::Anonymous, &address.path, right)
        {
            return Ok(());
        }
        let text = format!(
            "Unauthorized access. '{right:?}' claim(s) are required to perform this operation. \
             Resource: 'sb://jitney/{address}'."
        );
        Err(self.refuse(around, Condition::UnauthorizedAccess, &text, &address.path))
    }

    fn disabled(&mut self, around: &Surroundings<'_>, address: &EntityAddress) -> Refusal {
        let text = format!("Messaging entity '{address}' is currently disabled.");
        self.refuse(around, Condition::EntityDisabled, &text, &address.path)
    }

    pub(super) fn refuse(
        &mut self,
        around: &Surroundings<'_>,
        condition: Condition,
        text: &str,
        entity: &str,
    ) -> Refusal {
        refusal(condition, text, entity, around.now, &mut self.random)
    }
}

enum Found {
    Service(ServiceNode),
    Queue(EntityId, EntityAddress),
}
