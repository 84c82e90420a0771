//! Links are attached and detached.

use std::collections::VecDeque;
use std::sync::Arc;

use super::filters::ReceiverFilter;
use super::management::{Call, Status};
use super::{Link, QueuedReply, Reply, ServiceNode, consumer_id};
use crate::Gateway;
use crate::first_use::FirstUse;
use crate::limits;
use jitney_amqp::{
    Accept, Attach, Capability, LinkId, LinkRole, LinkTarget, SessionFilter, SessionId, SettleMode,
    Tag,
};
use jitney_base::address::{Address, EntityAddress, SubQueue};
use jitney_base::ids::{ConnectionId, EntityId};
use jitney_base::rights::Right;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{Denied, DeniedKind, Lifetime, StepContext};
use jitney_queue::{
    Accepted, ConsumerId, Description, EntityKind, Queue, ReceiveMode, ScanMode, SessionGrant,
    Wanted,
};

/// A link on which a service node's responses go out.
#[derive(Debug)]
pub(crate) struct ResponseLink {
    pub(super) node: ServiceNode,
    pub(super) session: SessionId,
    pub(super) name: String,
    /// The address of the peer's end; requests name it as reply-to.
    pub(super) target: Option<String>,
    /// Responses allowed in all since the attach, and those sent; serial numbers.
    pub(super) limit: u32,
    pub(super) sent: u32,
    /// Calls whose answers wait for credit.
    pub(super) waiting: VecDeque<Call>,
}

impl Gateway {
    pub(crate) fn attach(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        attach: &Attach,
    ) {
        let state = self.connection(connection);
        let links = state.links.len() + state.early_attaches.len();
        let made = self.namespaces.next_id();
        let is_unauthenticated = !self.is_authorized(connection);
        let room = self.check_link_memory(connection, attach);
        let is_one_too_many = is_unauthenticated && limits::UNAUTHENTICATED_LINKS_MAX <= links;
        if room.is_ok() && !is_one_too_many && self.wait_for_token(cx.now, connection, link, attach)
        {
            return;
        }
        let answer = match (room, attach.role) {
            (Err(denied), _) => Err(denied),
            _ if is_one_too_many => Err(self.unauthorized(connection, "", None, "")),
            (Ok(()), LinkRole::Incoming) => self.attach_incoming(cx, connection, link, attach),
            (Ok(()), LinkRole::Outgoing) => self.attach_outgoing(cx, connection, link, attach),
        };
        let (state, reply) = match answer {
            Ok((state, accept)) => (
                Some(state),
                accept.map(|it| Reply::AcceptLink(link, Box::new(it))),
            ),
            Err(denied) => {
                let denied = self.tracked(cx.now, denied);
                (None, Some(Reply::RefuseLink(link, denied)))
            }
        };
        if let Some(mut state) = state {
            self.join_group(connection, attach.session, &mut state);
            if let Some(queue) = state.queue() {
                self.namespaces.note_contact(cx.now, queue);
            }
            self.keep_link(connection, &state);
            self.connection(connection).links.insert(link, state);
        } else if let Some(entity) = self.connection(connection).take_link_entity(link) {
            self.end_link_entity(cx, connection, &entity);
        }
        // An entity that was made for it must be durable before the link is accepted.
        let durable_after = if made == self.namespaces.next_id() {
            0
        } else {
            cx.group
        };
        self.replies.extend(reply.map(|reply| QueuedReply {
            connection,
            durable_after,
            reply,
        }));
        self.adopt_orphans(cx, connection, link);
    }

    fn attach_incoming(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        attach: &Attach,
    ) -> Result<(Link, Option<Accept>), Denied> {
        let mut service = Accept {
            message_size_max: jitney_base::limits::MESSAGE_SIZE_MAX,
            credit: limits::LINK_CREDIT,
            ..Accept::default()
        };
        let text = match &attach.target {
            LinkTarget::Node(target) => {
                target.as_ref().and_then(|target| target.address.as_deref())
            }
            // No right is needed here: .NET declares before it has put any token. Each operation
            // that joins the transaction is done on a link that needed its right.
            LinkTarget::Coordinator => {
                service.message_size_max = limits::CONTROL_MESSAGE_BYTES_MAX;
                self.begin_group(connection, attach.session);
                let session = attach.session;
                return Ok((Link::Coordinator { session }, Some(service)));
            }
        };
        let session = attach.session;
        let made = self.make_node(cx, connection, link, attach, text)?;
        let text = made.as_deref().or(text);
        let (id, address) = match self.node_at(connection, text, Right::Send)? {
            Found::Service(node) => {
                if node == ServiceNode::Cbs {
                    self.check_one_cbs(connection)?;
                }
                service.message_size_max = self.request_size_max(&node);
                service.credit = limits::REQUEST_CREDIT;
                return Ok((Link::Requests { node, session }, Some(service)));
            }
            Found::Queue(id, address) => (id, address),
        };
        let description = self
            .namespaces
            .queue(id)
            .map(|queue| queue.description().clone());
        let description = description.unwrap_or_default();
        self.namespaces.check_sendable(id, &address)?;
        if !description.status.can_send() {
            return Err(Denied::disabled(&address));
        }
        let destination = attach.text(DESTINATION);
        let destination = destination.map(|text| self.destination(connection, text));
        let size = description.max_message_bytes;
        let accept = Accept {
            message_size_max: size,
            credit: limits::LINK_CREDIT,
            properties: Some(super::management::batch_size_property(size)),
            address: made,
            capabilities: capabilities(&description),
            ..Accept::default()
        };
        let link = Link::Sender {
            queue: id,
            destination: destination.transpose()?,
            group: None,
            deliveries: 0,
        };
        Ok((link, Some(accept)))
    }

    /// Returns the size of the largest request that a service node takes: what it may carry, a
    /// message or a session's state, and what is around it.
    fn request_size_max(&self, node: &ServiceNode) -> u64 {
        let ServiceNode::Management(address) = node else {
            return limits::CBS_MESSAGE_BYTES_MAX;
        };
        let queue = self
            .namespaces
            .resolve(address)
            .and_then(|id| self.namespaces.queue(id));
        let message = queue.map_or(0, |queue| queue.description().max_message_bytes);
        let state =
            u64::try_from(jitney_queue::limits::SESSION_STATE_BYTES_MAX).unwrap_or(u64::MAX);
        message.max(state) + jitney_amqp::limits::ENVELOPE_BYTES
    }

    /// Finds the transfer destination of a sender's messages.
    fn destination(&mut self, connection: ConnectionId, text: &str) -> Result<Arc<str>, Denied> {
        match self.node_at(connection, Some(text), Right::Send)? {
            Found::Queue(_, address) if address.queue == SubQueue::Main => Ok(address.path.into()),
            Found::Queue(..) | Found::Service(_) => {
                let text = format!("Messages cannot be sent on to '{text}'.");
                Err(Denied::new(DeniedKind::NotAllowed, &text, ""))
            }
        }
    }

    /// Makes the node that an attach asks for, if it asks for one: a dynamic node, whose name is returned, or the
    /// entity at `address` that a JMS client names.
    fn make_node(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        attach: &Attach,
        address: Option<&str>,
    ) -> Result<Option<String>, Denied> {
        let made = match attach.dynamic() {
            Some(node) => Some(self.make_dynamic(cx, connection, link, node)?),
            None => None,
        };
        self.make_named(cx, connection, made.as_deref().or(address), attach)?;
        let used = if attach.role == LinkRole::Outgoing && attach.session_filter().is_some() {
            FirstUse::InSession
        } else {
            FirstUse::Plain
        };
        self.create_for_link(cx, connection, address, used)?;
        Ok(made)
    }

    fn attach_outgoing(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        attach: &Attach,
    ) -> Result<(Link, Option<Accept>), Denied> {
        let source = attach.source.as_ref();
        if source.is_none() && self.connection(connection).brings_jms {
            return self.unsubscribe(connection, link, attach);
        }
        let text = source.and_then(|source| source.address.as_deref());
        let made = self.make_node(cx, connection, link, attach, text)?;
        let text = made.as_deref().or(text);
        let (queue, address) = match self.node_at(connection, text, Right::Listen)? {
            Found::Service(node) => {
                let link = Link::Responses(ResponseLink::new(node, attach));
                return Ok((link, Some(Accept::default())));
            }
            Found::Queue(queue, address) => (queue, address),
        };
        self.check_group(connection, attach.session, queue, &address)?;
        let mode = receive_mode(attach);
        if address.queue == SubQueue::Main && self.can_subscribe(connection, queue) {
            return self.subscribe(cx, connection, link, attach, queue, &address);
        }
        self.namespaces.check_receivable(queue, &address)?;
        let consumer = consumer_id(connection, link);
        if let Some(filter) = self.receiver_filter(queue, &address, attach)? {
            self.check_filter(queue, &address, attach, &filter)?;
            let settle_mode = (filter.scan_mode == ScanMode::Browse).then_some(SettleMode::OnSend);
            let selects = filter.selection.selector.is_some();
            let ReceiverFilter {
                scan_mode,
                selection,
            } = filter;
            self.with_queue(cx, queue, |queue, cx| {
                queue.add_scan(consumer, mode, scan_mode, selection);
                queue.note_attached(cx.now, consumer);
            });
            let accept = Accept {
                address: made,
                settle_mode,
                selects,
                ..self.receiver_accept_of(queue)
            };
            let name = None;
            return Ok((Link::Receiver { queue, name }, Some(accept)));
        }
        let wanted = self.wanted_session(queue, &address, attach)?;
        let Some(wanted) = wanted else {
            self.with_queue(cx, queue, |queue, cx| {
                queue.add_consumer(consumer, mode);
                queue.note_attached(cx.now, consumer);
            });
            let name = None;
            let accept = Accept {
                address: made,
                ..self.receiver_accept_of(queue)
            };
            return Ok((Link::Receiver { queue, name }, Some(accept)));
        };
        let accepted = self.accept_session(cx, consumer, attach, queue, &wanted);
        accepted.ok_or_else(|| session_refused(&wanted, &address))
    }

    /// Accepts a receiver of a queue.
    fn receiver_accept_of(&self, queue: EntityId) -> Accept {
        let description = self.namespaces.queue(queue).map(Queue::description);
        Accept {
            capabilities: description.map(capabilities).unwrap_or_default(),
            ..receiver_accept()
        }
    }

    /// Accepts a receiver for a message session, or makes it wait for one; `None` if the session cannot be locked.
    fn accept_session(
        &mut self,
        cx: &mut StepContext<'_>,
        consumer: ConsumerId,
        attach: &Attach,
        queue: EntityId,
        wanted: &SessionFilter,
    ) -> Option<(Link, Option<Accept>)> {
        let accepted = self.with_queue(cx, queue, |queue, cx| {
            let wanted = match wanted {
                SessionFilter::Named(id) => Wanted::Named(id),
                SessionFilter::Next | SessionFilter::Malformed => Wanted::Next(
                    cx.now
                        .after(attach.millis(TIMEOUT).unwrap_or(limits::NEXT_SESSION_WAIT)),
                ),
            };
            queue.accept_session(cx, consumer, receive_mode(attach), wanted)
        });
        match accepted?.ok()? {
            Accepted::Granted(grant) => {
                let name = Some(attach.name.as_str().into());
                Some((Link::Receiver { queue, name }, Some(session_accept(&grant))))
            }
            Accepted::Waiting => {
                let name = attach.name.as_str().into();
                Some((Link::Waiting { queue, name }, None))
            }
        }
    }

    /// Reads which message session a receiver wants, if its entity has any.
    fn wanted_session(
        &self,
        queue: EntityId,
        address: &EntityAddress,
        attach: &Attach,
    ) -> Result<Option<SessionFilter>, Denied> {
        let has_sessions = self
            .namespaces
            .queue(queue)
            .is_some_and(Queue::has_sessions);
        if has_sessions && attach.session_filter().is_none() && attach.asks_for_shared_session() {
            // .NET decides by the text after the last quotation mark.
            let text = format!(
                "The link '{}' contains invalid filter type. System only support Jms or Apache selector \
                 filter type.",
                attach.name
            );
            return Err(Denied::new(DeniedKind::NotAllowed, &text, &address.path));
        }
        let (kind, text) = match (attach.session_filter(), has_sessions) {
            (None, false) => return Ok(None),
            (Some(SessionFilter::Malformed), _) => (
                DeniedKind::InvalidField,
                "The filter com.microsoft:session-filter must be a string or null.",
            ),
            (None, true) => {
                return self
                    .namespaces
                    .check_without_session(queue, address)
                    .map(|()| None);
            }
            (Some(_), false) => (
                DeniedKind::NotAllowed,
                "A sessionful message receiver cannot be created on an entity that does not require \
                 sessions. Ensure RequiresSession is set to true when creating a Queue or Subscription to \
                 enable sessionful behavior.",
            ),
            (Some(SessionFilter::Named(id)), true)
                if jitney_rules::limits::MESSAGE_ID_LENGTH_MAX < id.chars().count() =>
            {
                (
                    DeniedKind::Argument,
                    "The session id is longer than 128 characters.",
                )
            }
            (wanted @ Some(_), true) => return Ok(wanted),
        };
        Err(Denied::new(kind, text, &address.path))
    }

    /// The peer ended a link. Locks stay, but that of a message session
    /// (`receiving.md#lost-links`).
    pub(crate) fn detached(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        unsent: &[Tag],
    ) {
        let Some(state) = self.connection(connection).links.remove(&link) else {
            self.take_early_attach(connection, link);
            return;
        };
        self.drop_link(connection, &state);
        self.drop_calls(connection, &state);
        self.let_go(cx, connection, link, &state);
        if let Link::Receiver { queue, name: None } = state {
            let departed = &mut self.connection(connection).departed;
            departed.truncate(limits::DEPARTED_LINKS_MAX - 1);
            departed.push_front((link, queue));
            self.give_back(cx, queue, unsent);
        }
        self.release(cx, connection, link, &state);
        if let Some(entity) = self.connection(connection).take_link_entity(link) {
            self.end_link_entity(cx, connection, &entity);
        }
    }

    /// A connection ended, and with it all its links and transactions.
    pub(crate) fn closed(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        unsent: &[(LinkId, Tag)],
    ) {
        self.roll_back(connection, None);
        let early = self.connections.get(connection);
        let early = early.map(|state| state.early_attaches.keys().copied().collect::<Vec<_>>());
        for link in early.into_iter().flatten() {
            self.take_early_attach(connection, link);
        }
        let Some(mut state) = self.connections.end(connection) else {
            return;
        };
        for grant in &state.grants {
            self.connections
                .token_ends
                .remove(grant.expires_at, connection);
        }
        // All are removed before messages of one become available to the others.
        for (&link, state) in &state.links {
            self.let_go(cx, connection, link, state);
        }
        for (&link, state) in &state.links {
            if let &Link::Receiver { queue, name: None } = state {
                let of_link = unsent.iter().filter(|(of, _)| *of == link);
                let tags: Vec<Tag> = of_link.map(|(_, tag)| *tag).collect();
                self.give_back(cx, queue, &tags);
            }
            self.release(cx, connection, link, state);
        }
        if state.ends_locks {
            for (&link, of) in &state.links {
                self.end_locks_of(cx, connection, link, of);
            }
        }
        self.end_link_entities(cx, connection, state.take_link_entities());
        self.connections.forget_waiting(&state);
        self.resume_sending(cx);
    }

    /// Makes messages available again that were still to be brought to a connection when it ended: it is
    /// as if they had not been delivered. To be called once for each connection, behind
    /// [`Event::Closed`](jitney_amqp::Event::Closed).
    pub fn disconnected(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        unsent: &[(LinkId, Tag)],
    ) {
        for (link, queue) in self.connections.take_ended(connection) {
            let of_link = unsent.iter().filter(|(of, _)| *of == link);
            let tags: Vec<Tag> = of_link.map(|(_, tag)| *tag).collect();
            self.give_back(cx, queue, &tags);
        }
    }

    /// Ends the links that an entity's new properties forbid.
    pub(crate) fn detach_forbidden(&mut self, cx: &mut StepContext<'_>, base: EntityId) {
        let Some(node) = self.namespaces.node(base) else {
            return;
        };
        let (status, address) = (node.queue.description().status, node.address.clone());
        let forwards = |id: EntityId| {
            let node = self.namespaces.node(id);
            node.is_some_and(|node| node.forwards_to.is_some())
        };
        let (forwards, forwards_dead) = (forwards(base), forwards(base.dead_letters()));
        let doomed = self.connections.links_where(|state| match *state {
            Link::Sender { queue, .. } => queue == base && !status.can_send(),
            Link::Receiver { queue, .. } | Link::Waiting { queue, .. } => {
                queue.base() == base
                    && (!status.can_receive()
                        || (queue == base && forwards)
                        || (queue == base.dead_letters() && forwards_dead))
            }
            Link::Requests { .. } | Link::Responses(_) | Link::Coordinator { .. } => false,
        });
        for (connection, link) in doomed {
            let receives = match self.link(connection, link) {
                Some(Link::Receiver { queue, .. } | Link::Waiting { queue, .. }) => Some(*queue),
                _ => None,
            };
            let of_queue = receives.and_then(|queue| {
                let address = self.namespaces.node(queue)?.address.clone();
                self.namespaces.check_receivable(queue, &address).err()
            });
            let denied = of_queue.unwrap_or_else(|| Denied::disabled(&address));
            self.end_link(cx, connection, link, denied);
        }
    }

    /// Ends the links to an entity that was deleted, its management node's too.
    pub(crate) fn detach_deleted(
        &mut self,
        cx: &mut StepContext<'_>,
        base: EntityId,
        address: &EntityAddress,
        lifetime: Lifetime,
    ) {
        let (key, address) = (address.key(), address.to_string());
        let ended = self.connections.links_where(|state| match state {
            Link::Sender { queue, .. }
            | Link::Receiver { queue, .. }
            | Link::Waiting { queue, .. } => queue.base() == base,
            Link::Requests { node, .. } => node.is_of(&key),
            Link::Responses(link) => link.node.is_of(&key),
            Link::Coordinator { .. } => false,
        });
        for (connection, link) in ended {
            // As for one that was never there: the SDKs know no other word for it. Temporary ones
            // are what generic clients make.
            let denied = match lifetime {
                Lifetime::Temporary => {
                    let text = format!("The temporary node '{address}' has been deleted.");
                    Denied::new(DeniedKind::Deleted, text, &address)
                }
                Lifetime::Lasting => Denied::not_found(&self.host_of(connection), &address),
            };
            self.end_link(cx, connection, link, denied);
        }
    }

    /// Detaches a link; one that is not accepted yet is refused.
    pub(crate) fn end_link(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        denied: Denied,
    ) {
        let denied = self.tracked(cx.now, denied);
        let waiting = matches!(self.link(connection, link), Some(Link::Waiting { .. }));
        self.keep_subscription(connection, link);
        self.detached(cx, connection, link, &[]);
        let reply = if waiting {
            Reply::RefuseLink(link, denied)
        } else {
            Reply::Detach(link, denied)
        };
        self.replies.push(QueuedReply {
            connection,
            durable_after: cx.group,
            reply,
        });
    }

    /// Takes a link out of its queue.
    fn let_go(
        &mut self,
        cx: &StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        state: &Link,
    ) {
        if let Some(queue) = state.queue() {
            let consumer = consumer_id(connection, link);
            self.namespaces.remove_consumer(cx.now, queue, consumer);
        }
    }

    /// Ends the locks of a link that an operator has ended, as if their time were over. The locks of a message session ended
    /// with its link.
    pub(crate) fn end_locks_of(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        state: &Link,
    ) {
        if let &Link::Receiver { queue, name: None } = state {
            let consumer = consumer_id(connection, link);
            self.with_queue(cx, queue, |queue, cx| queue.end_locks_of(cx.now, consumer));
        }
    }

    /// Frees what a detached link held for itself alone.
    fn release(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        state: &Link,
    ) {
        match state {
            Link::Receiver {
                queue,
                name: Some(_),
            } => {
                let consumer = consumer_id(connection, link);
                self.with_queue(cx, *queue, |queue, cx| {
                    queue.release_session(cx, consumer);
                });
            }
            // No other link can commit the transactions of a coordinator that is gone.
            Link::Coordinator { session } => {
                self.roll_back(connection, Some(link));
                self.end_group(connection, *session);
            }
            Link::Receiver { .. }
            | Link::Waiting { .. }
            | Link::Sender { .. }
            | Link::Requests { .. }
            | Link::Responses(_) => {}
        }
    }

    /// Refuses a second link to `$cbs`: there is one on a connection, as with the service
    /// (`cbs.md#links`).
    fn check_one_cbs(&mut self, connection: ConnectionId) -> Result<(), Denied> {
        let mut links = self.connection(connection).links.values();
        let is_cbs =
            |link: &Link| matches!(link, Link::Requests { node, .. } if *node == ServiceNode::Cbs);
        if links.any(is_cbs) {
            let text = "The $cbs node has already been opened.";
            return Err(Denied::new(DeniedKind::NotAllowed, text, "$cbs"));
        }
        Ok(())
    }

    /// Finds what an address names. Who has no right to it is not told whether it is there.
    fn node_at(
        &mut self,
        connection: ConnectionId,
        text: Option<&str>,
        right: Right,
    ) -> Result<Found, Denied> {
        let text = text.unwrap_or_default();
        let decoded = Address::parse(text);
        let prefix = self.connection(connection).prefix.clone();
        let within = |address: EntityAddress| EntityAddress {
            path: format!("{prefix}{}", address.path),
            ..address
        };
        // A literal percent sign in a name is rare: decoded first, then as it is written.
        for address in [decoded.clone(), Address::parse_literal(text)] {
            match address {
                Ok(Address::Cbs) => return Ok(Found::Service(ServiceNode::Cbs)),
                Ok(Address::Entity(address)) => {
                    let address = within(address);
                    self.check_right(connection, &address.resource(), Some(right))?;
                    if let Some(id) = self.namespaces.resolve(&address) {
                        return Ok(Found::Queue(id, address));
                    }
                }
                Ok(Address::Management(address)) => {
                    let address = within(address);
                    self.check_right(connection, &address.resource(), None)?;
                    if self.namespaces.resolve(&address).is_some() {
                        return Ok(Found::Service(ServiceNode::Management(address)));
                    }
                }
                Err(_) => {}
            }
        }
        let host = self.host_of(connection);
        Err(match decoded {
            Ok(Address::Entity(address) | Address::Management(address)) => {
                Denied::not_found(&host, &address.to_string())
            }
            Ok(Address::Cbs) => Denied::not_found(&host, "$cbs"),
            Err(error) => {
                let text = format!("'{text}' is not the address of an entity: {error}.");
                Denied::new(DeniedKind::InvalidField, &text, "")
            }
        })
    }

    /// Checks that a connection may do something with an entity, or know of it at all.
    pub(super) fn check_right(
        &self,
        connection: ConnectionId,
        path: &str,
        right: Option<Right>,
    ) -> Result<(), Denied> {
        if self.may(connection, path, right) {
            return Ok(());
        }
        Err(self.unauthorized(connection, path, right, ""))
    }

    /// Says in a response why a request was not done.
    pub(super) fn failed(&mut self, now: Timestamp, denied: Denied) -> Status {
        let denied = self.tracked(now, denied);
        Status::denied(denied.kind, denied.text)
    }
}

/// The link property that names a sender's transfer destination.
pub(super) const DESTINATION: &str = "com.microsoft:transfer-destination-address";

/// The link property with the time that a client waits.
const TIMEOUT: &str = "com.microsoft:timeout";

impl ResponseLink {
    fn new(node: ServiceNode, attach: &Attach) -> Self {
        let target = match &attach.target {
            LinkTarget::Node(Some(target)) => target.address.clone(),
            LinkTarget::Node(None) | LinkTarget::Coordinator => None,
        };
        Self {
            node,
            session: attach.session,
            name: attach.name.clone(),
            target: target.filter(|address| !address.is_empty()),
            limit: 0,
            sent: 0,
            waiting: VecDeque::new(),
        }
    }
}

impl Link {
    /// Returns the queue that its messages come into or go out of.
    pub(crate) fn queue(&self) -> Option<EntityId> {
        match self {
            Self::Sender { queue, .. }
            | Self::Receiver { queue, .. }
            | Self::Waiting { queue, .. } => Some(*queue),
            Self::Requests { .. } | Self::Responses(_) | Self::Coordinator { .. } => None,
        }
    }
}

impl ServiceNode {
    /// Returns whether it is the management node of the entity with this path.
    fn is_of(&self, key: &str) -> bool {
        match self {
            Self::Cbs => false,
            Self::Management(address) => address.key() == key,
        }
    }

    /// Returns what rights are needed for, if any are.
    pub(super) fn resource(&self) -> Option<String> {
        match self {
            Self::Cbs => None,
            Self::Management(address) => Some(address.resource()),
        }
    }
}

/// Returns what an entity has of the capabilities that a peer may ask for.
pub(super) fn capabilities(description: &Description) -> Vec<Capability> {
    match (description.kind, description.temporary) {
        (EntityKind::Topic, false) => vec![Capability::Topic],
        (EntityKind::Topic, true) => vec![Capability::Topic, Capability::TemporaryTopic],
        (EntityKind::Queue, true) => vec![Capability::Queue, Capability::TemporaryQueue],
        (EntityKind::Queue, false) | (EntityKind::Subscription, _) => vec![Capability::Queue],
    }
}

pub(super) fn receiver_accept() -> Accept {
    Accept {
        message_size_max: jitney_base::limits::MESSAGE_SIZE_MAX,
        capabilities: vec![Capability::Queue],
        ..Accept::default()
    }
}

/// Accepts a receiver for a message session: with its id in the filter, and the end of its lock.
pub(super) fn session_accept(grant: &SessionGrant) -> Accept {
    Accept {
        properties: Some(super::management::locked_until_property(grant.until)),
        message_session: Some(grant.message_session.to_string()),
        ..receiver_accept()
    }
}

enum Found {
    Service(ServiceNode),
    Queue(EntityId, EntityAddress),
}

/// Returns how a receiver takes messages, as its settle mode says.
pub(super) fn receive_mode(attach: &Attach) -> ReceiveMode {
    match attach.settle_mode() {
        SettleMode::OnSend => ReceiveMode::ReceiveAndDelete,
        SettleMode::OnReceipt => ReceiveMode::PeekLock,
    }
}

/// Says that a message session cannot be locked for a receiver.
fn session_refused(wanted: &SessionFilter, address: &EntityAddress) -> Denied {
    let id = match wanted {
        SessionFilter::Named(id) => id,
        SessionFilter::Next | SessionFilter::Malformed => "",
    };
    let text = format!(
        "The requested session '{id}' cannot be accepted. It may be locked by another receiver."
    );
    Denied::new(DeniedKind::SessionCannotBeLocked, &text, &address.path)
}
