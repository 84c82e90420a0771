//! The memory of a connection's links and tokens: names, addresses and audiences. It is counted, and bounded for
//! each connection; the bound is lower while memory is full. Transactions are counted elsewhere.

use super::{Link, ServiceNode, links};
use crate::Gateway;
use crate::limits;
use jitney_amqp::{Attach, LinkTarget};
use jitney_base::ids::ConnectionId;
use jitney_base::memory::{Held, Memory, Purpose};
use jitney_broker::namespace::{Denied, DeniedKind};

/// The counted memory of one connection.
#[derive(Debug)]
pub(crate) struct LinkMemory {
    links: Held,
    tokens: Held,
}

impl LinkMemory {
    fn new(memory: &Memory) -> Self {
        Self {
            links: memory.hold(Purpose::Other, 0),
            tokens: memory.hold(Purpose::Other, 0),
        }
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.tokens.bytes()
    }
}

impl Gateway {
    /// Checks that a connection may have one more link, before anything is done for it.
    pub(super) fn check_link_memory(
        &mut self,
        connection: ConnectionId,
        attach: &Attach,
    ) -> Result<(), Denied> {
        let answers_to = match &attach.target {
            LinkTarget::Node(Some(target)) => target.address.as_deref(),
            LinkTarget::Node(None) | LinkTarget::Coordinator => None,
        };
        let addresses = [
            attach.source.as_ref().and_then(|it| it.address.as_deref()),
            answers_to,
            attach.text(links::DESTINATION),
        ];
        let addresses = addresses.into_iter().flatten().map(str::len);
        let more = attach.name.len() + addresses.sum::<usize>();
        let Err(text) = self.check_memory_bytes(connection, more) else {
            return Ok(());
        };
        Err(Denied::new(DeniedKind::Limit, &text, ""))
    }

    /// Checks that so many more bytes may be kept for a connection; says why they may not.
    pub(super) fn check_memory_bytes(
        &mut self,
        connection: ConnectionId,
        more: usize,
    ) -> Result<(), String> {
        let is_full = self.namespaces.memory().is_full();
        let kept = self.link_memory(connection);
        let (max, why) = if is_full {
            let why = ", which is what a connection may have while the broker's memory is full";
            (limits::CONNECTION_KEPT_BYTES_FULL, why)
        } else if kept.links.memory().used_share().is_some() {
            let why = ", which is what a connection may have while its namespace has its share of the broker's memory";
            (limits::CONNECTION_KEPT_BYTES_FULL, why)
        } else {
            (limits::CONNECTION_KEPT_BYTES_MAX, "")
        };
        if kept.bytes() + more <= max {
            return Ok(());
        }
        Err(format!(
            "The names and addresses of the connection's links and tokens would have more than {max} \
             bytes{why}."
        ))
    }

    /// Counts a link that a connection has from now on.
    pub(super) fn keep_link(&mut self, connection: ConnectionId, link: &Link) {
        self.keep_link_bytes(connection, link.memory_bytes());
    }

    /// Counts a link no more.
    pub(super) fn drop_link(&mut self, connection: ConnectionId, link: &Link) {
        self.drop_link_bytes(connection, link.memory_bytes());
    }

    /// Counts bytes that a connection's link keeps.
    pub(super) fn keep_link_bytes(&mut self, connection: ConnectionId, bytes: usize) {
        let links = &mut self.link_memory(connection).links;
        links.resize(links.bytes() + bytes);
    }

    /// Counts such bytes no more.
    pub(super) fn drop_link_bytes(&mut self, connection: ConnectionId, bytes: usize) {
        let links = &mut self.link_memory(connection).links;
        links.resize(links.bytes().saturating_sub(bytes));
    }

    /// Counts the tokens that a connection has now.
    pub(super) fn keep_tokens(&mut self, connection: ConnectionId) {
        let grants = self.connection(connection).grants.iter();
        let bytes = grants.map(jitney_broker::access::Grant::memory_bytes).sum();
        self.link_memory(connection).tokens.resize(bytes);
    }

    fn link_memory(&mut self, connection: ConnectionId) -> &mut LinkMemory {
        let connection = self.connections.entry(connection);
        let memory = self.namespaces.memory_of(&connection.prefix);
        connection
            .link_memory
            .get_or_insert_with(|| LinkMemory::new(memory))
    }
}

impl Link {
    /// Returns how many bytes of the peer's it keeps.
    fn memory_bytes(&self) -> usize {
        let of = |node: &ServiceNode| node.resource().map_or(0, |path| path.len());
        match self {
            Self::Sender { destination, .. } => destination.as_deref().map_or(0, str::len),
            Self::Receiver { name, .. } => name.as_deref().map_or(0, str::len),
            Self::Waiting { name, .. } => name.len(),
            Self::Requests { node, .. } => of(node),
            Self::Responses(link) => {
                of(&link.node) + link.name.len() + link.target.as_deref().map_or(0, str::len)
            }
            Self::Coordinator { .. } => 0,
        }
    }
}
