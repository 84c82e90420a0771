//! Attaches to management nodes that come before a token that holds for them: they wait for one.
//!
//! Java's SDK up to 7.15.2 attaches the links of a management node when it makes a client for it, and puts the token
//! with the first request (`cbs.md#before-a-token`). Such an attach is answered when a token holds for its node; without one
//! it is refused as any other after a while. Nothing is looked up before: who has no right is not told whether the node
//! is there. A connection has few of them at a time ([`limits::EARLY_ATTACHES_MAX`]), and their names and addresses are
//! counted with those of its links.

use std::collections::BTreeSet;

use super::connections::Connections;
use super::{QueuedReply, Reply};
use crate::Gateway;
use crate::limits;
use jitney_amqp::{Attach, LinkCredit, LinkId, LinkRole, LinkTarget};
use jitney_base::address::Address;
use jitney_base::ids::ConnectionId;
use jitney_base::time::{ClockStep, Timestamp};
use jitney_broker::namespace::StepContext;

/// An attach that waits for a token.
#[derive(Debug)]
pub(crate) struct EarlyAttach {
    attach: Attach,
    /// What the token must hold for.
    resource: String,
    /// The credit that the peer has given meanwhile.
    credit: Option<LinkCredit>,
    ends: Timestamp,
}

/// When such attaches are refused.
#[derive(Debug, Default)]
pub(crate) struct EarlyAttachEnds {
    ends: BTreeSet<(Timestamp, ConnectionId, LinkId)>,
}

impl EarlyAttachEnds {
    /// Returns when the next one is refused.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        self.ends.first().map(|&(at, ..)| at)
    }

    fn next(&mut self, now: Timestamp) -> Option<(ConnectionId, LinkId)> {
        let &(at, connection, link) = self.ends.first()?;
        (at <= now).then(|| {
            self.ends.pop_first();
            (connection, link)
        })
    }

    /// Follows a clock that was set.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        let ends = std::mem::take(&mut self.ends).into_iter();
        let ends = ends.map(|(at, connection, link)| (at.moved(step), connection, link));
        self.ends = ends.collect();
    }

    /// Checks that the end of an attach is known.
    pub(crate) fn check(&self, connection: ConnectionId, link: LinkId, early: &EarlyAttach) {
        assert!(self.ends.contains(&(early.ends, connection, link)));
    }
}

impl EarlyAttach {
    /// Follows a clock that was set.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        self.ends = self.ends.moved(step);
    }

    /// Returns how many bytes of the peer's it keeps.
    fn memory_bytes(&self) -> usize {
        self.resource.len() + memory_bytes(&self.attach)
    }
}

impl Gateway {
    /// Lets an attach wait for a token, if one may be about to come. Returns whether it waits.
    pub(super) fn wait_for_token(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        link: LinkId,
        attach: &Attach,
    ) -> bool {
        let Some(resource) = self.resource_without_token(connection, attach) else {
            return false;
        };
        let ends = now.after(limits::EARLY_ATTACH_WAIT);
        let early = EarlyAttach {
            attach: reduced(attach),
            resource,
            credit: None,
            ends,
        };
        let bytes = early.memory_bytes();
        let count = self.connection(connection).early_attaches.len();
        if limits::EARLY_ATTACHES_MAX <= count
            || jitney_amqp::limits::LINK_NAME_BYTES_MAX < bytes
            || self.check_memory_bytes(connection, bytes).is_err()
        {
            return false;
        }
        self.keep_link_bytes(connection, bytes);
        self.connections
            .insert_early_attach(connection, link, early);
        true
    }

    /// Returns what a peer lacks a token for that attaches to a management node; `None` if it lacks none, or puts none.
    fn resource_without_token(&mut self, id: ConnectionId, attach: &Attach) -> Option<String> {
        if !self.access.verifies() {
            return None;
        }
        let text = match (attach.role, &attach.target) {
            (LinkRole::Incoming, LinkTarget::Node(target)) => {
                target.as_ref()?.address.as_deref()?
            }
            (LinkRole::Incoming, LinkTarget::Coordinator) => return None,
            (LinkRole::Outgoing, _) => attach.source.as_ref()?.address.as_deref()?,
        };
        let Ok(Address::Management(address)) = Address::parse(text) else {
            return None;
        };
        let connection = self.connection(id);
        // Who has a right by SASL puts no tokens.
        if connection.grants.iter().any(|grant| !grant.is_of_token) {
            return None;
        }
        let resource = format!("{}{}", connection.prefix, address.resource());
        (!self.may(id, &resource, None)).then_some(resource)
    }

    /// Notes the credit of a link whose attach waits.
    pub(super) fn credit_early(&mut self, connection: ConnectionId, credit: LinkCredit) {
        let connection = self.connections.get_mut(connection);
        if let Some(early) = connection.and_then(|it| it.early_attaches.get_mut(&credit.link)) {
            early.credit = Some(credit);
        }
    }

    /// Takes an attach that waits no more.
    pub(super) fn take_early_attach(
        &mut self,
        connection: ConnectionId,
        link: LinkId,
    ) -> Option<EarlyAttach> {
        let early = self.connections.take_early_attach(connection, link)?;
        self.drop_link_bytes(connection, early.memory_bytes());
        Some(early)
    }

    /// Answers the attaches of a connection for whose nodes a token holds now.
    pub(super) fn answer_early_attaches(&mut self, cx: &mut StepContext<'_>, id: ConnectionId) {
        let early = self.connection(id).early_attaches.iter();
        let all: Vec<(LinkId, String)> = early
            .map(|(&link, early)| (link, early.resource.clone()))
            .collect();
        for (link, resource) in all {
            if self.may(id, &resource, None)
                && let Some(early) = self.take_early_attach(id, link)
            {
                self.attach(cx, id, link, &early.attach);
                if let Some(credit) = early.credit {
                    self.credit(cx, id, credit);
                }
            }
        }
    }

    /// Refuses the attaches for whose nodes no token has come in time.
    pub(crate) fn end_early_attaches(&mut self, now: Timestamp) {
        while let Some((connection, link)) = self.connections.early_attach_ends.next(now) {
            let Some(early) = self.take_early_attach(connection, link) else {
                continue;
            };
            let denied = self.unauthorized(connection, &early.resource, None, "");
            let denied = self.tracked(now, denied);
            self.replies.push(QueuedReply {
                connection,
                durable_after: 0,
                reply: Reply::RefuseLink(link, denied),
            });
        }
    }
}

impl Connections {
    fn insert_early_attach(&mut self, connection: ConnectionId, link: LinkId, early: EarlyAttach) {
        let end = (early.ends, connection, link);
        self.early_attach_ends.ends.insert(end);
        self.entry(connection).early_attaches.insert(link, early);
    }

    fn take_early_attach(&mut self, connection: ConnectionId, link: LinkId) -> Option<EarlyAttach> {
        let early = self.get_mut(connection)?.early_attaches.remove(&link)?;
        let end = (early.ends, connection, link);
        self.early_attach_ends.ends.remove(&end);
        Some(early)
    }
}

/// Returns what of an attach to a management node is kept: the rest says nothing there, and may be large.
fn reduced(attach: &Attach) -> Attach {
    let mut reduced = attach.clone();
    reduced.properties = None;
    if let Some(source) = &mut reduced.source {
        source.filter = None;
        source.default_outcome = None;
        source.outcomes = None;
        source.capabilities = None;
        source.dynamic_node_properties = None;
    }
    if let LinkTarget::Node(Some(target)) = &mut reduced.target {
        target.capabilities = None;
        target.dynamic_node_properties = None;
    }
    reduced
}

/// Returns how many bytes of the peer's an attach has that is kept.
fn memory_bytes(attach: &Attach) -> usize {
    let source = attach.source.as_ref().and_then(|it| it.address.as_deref());
    let target = match &attach.target {
        LinkTarget::Node(Some(target)) => target.address.as_deref(),
        LinkTarget::Node(None) | LinkTarget::Coordinator => None,
    };
    let addresses = [source, target].into_iter().flatten().map(str::len);
    attach.name.len() + addresses.sum::<usize>()
}
