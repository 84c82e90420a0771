//! Connections and their links, as the gateway knows them.

use std::collections::{BTreeMap, VecDeque};

use super::early_attach::{EarlyAttach, EarlyAttachEnds};
use super::grants::TokenEnds;
use super::link_memory::LinkMemory;
use super::management::Call;
use super::transactions::{Declared, Group};
use super::windows::{Window, Windows};
use super::{Link, jms};
use jitney_amqp::{LinkId, Product, SessionId};
use jitney_base::ids::{ConnectionId, EntityId};
use jitney_base::time::{ClockStep, Timestamp};
use jitney_broker::access::{Grant, Origin};

/// All connections: each with its links, and what concerns them all, which is when something of them ends and how much may wait to
/// be written to their peers.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(super) open: BTreeMap<ConnectionId, Connection>,
    /// The receivers of connections that have ended: messages for them may be on their way still.
    ended: BTreeMap<ConnectionId, Vec<(LinkId, EntityId)>>,
    pub(super) token_ends: TokenEnds,
    pub(super) early_attach_ends: EarlyAttachEnds,
    pub(super) windows: Windows,
}

/// A connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// The prefix of the paths of its namespace's entities.
    pub(crate) prefix: String,
    /// The host by which its peer calls the namespace.
    pub(crate) host: String,
    pub(crate) origin: Origin,
    /// Its grants.
    pub(crate) grants: Vec<Grant>,
    /// It was authorized for something once.
    pub(crate) authorized: bool,
    /// The container-id of its `open`.
    pub(crate) container_id: String,
    /// The product of its `open`.
    pub(crate) product: Product,
    /// When its `open` came.
    pub(crate) opened_at: Timestamp,
    /// An operator closes it: the locks of its receivers end with it.
    pub(crate) ends_locks: bool,
    /// It is a JMS 2.0 client, as its `open` says.
    pub(crate) brings_jms: bool,
    pub(crate) links: BTreeMap<LinkId, Link>,
    /// Attaches to management nodes that wait for a token.
    pub(super) early_attaches: BTreeMap<LinkId, EarlyAttach>,
    /// Receivers that were detached recently: messages for them may be under way, and come back.
    pub(crate) departed: VecDeque<(LinkId, EntityId)>,
    /// Entities that end with one of its links.
    link_entities: BTreeMap<LinkId, jms::LinkEntity>,
    /// Those links by the paths of the entities that are deleted with them: a request may name one.
    temporary: BTreeMap<String, LinkId>,
    /// Requests whose responses have no link yet.
    pub(crate) orphans: VecDeque<Call>,
    /// Bytes of requests that wait for their responses to be sent.
    pub(crate) waiting: usize,
    pub(super) window: Window,
    /// Its open transactions, by their numbers.
    pub(crate) transactions: BTreeMap<u64, Declared>,
    /// By the AMQP sessions that have a transaction coordinator.
    pub(crate) groups: BTreeMap<SessionId, Group>,
    /// The memory of its links and tokens; `None` before it has any.
    pub(crate) link_memory: Option<LinkMemory>,
}

impl Connection {
    /// Returns the receiver of a dynamic node that the connection has made, and the node's queue.
    pub(super) fn receiver_of_dynamic(&self, address: &str) -> Option<(LinkId, EntityId)> {
        if self.temporary.is_empty() {
            return None;
        }
        let &link = self.temporary.get(&format!("{}{address}", self.prefix))?;
        match self.links.get(&link)? {
            Link::Receiver { queue, .. } => Some((link, *queue)),
            Link::Sender { .. }
            | Link::Waiting { .. }
            | Link::Coordinator { .. }
            | Link::Requests { .. }
            | Link::Responses(_) => None,
        }
    }

    /// Notes an entity that ends with a link.
    pub(super) fn add_link_entity(&mut self, link: LinkId, entity: jms::LinkEntity) {
        if let jms::LinkEntity::Temporary(path) = &entity {
            self.temporary.insert(path.clone(), link);
        }
        self.link_entities.insert(link, entity);
    }

    /// Returns the entity that ends with a link, if one does.
    pub(super) fn link_entity(&self, link: LinkId) -> Option<&jms::LinkEntity> {
        self.link_entities.get(&link)
    }

    /// Takes the entity that ends with a link, if one does.
    pub(super) fn take_link_entity(&mut self, link: LinkId) -> Option<jms::LinkEntity> {
        let entity = self.link_entities.remove(&link)?;
        if let jms::LinkEntity::Temporary(path) = &entity
            && self.temporary.get(path) == Some(&link)
        {
            self.temporary.remove(path);
        }
        Some(entity)
    }

    /// Takes the entities that end with the connection's links.
    pub(super) fn take_link_entities(&mut self) -> impl Iterator<Item = jms::LinkEntity> + use<> {
        self.temporary.clear();
        std::mem::take(&mut self.link_entities).into_values()
    }
}

impl Connections {
    /// Makes a gateway's connections, of which all together may have so many bytes waiting to be written.
    pub(crate) fn new(outgoing: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            token_ends: TokenEnds::default(),
            early_attach_ends: EarlyAttachEnds::default(),
            windows: Windows::new(outgoing),
        }
    }

    /// Returns when the next thing ends: a token, the wait of an attach, or the patience with peers that read nothing.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        let all = [
            self.token_ends.poll_timeout(),
            self.early_attach_ends.poll_timeout(),
            self.windows.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Follows a clock that was set. Tokens end at their time by the clock.
    pub(crate) fn follow_clock(&mut self, step: ClockStep) {
        self.windows.follow_clock(step);
        self.early_attach_ends.follow_clock(step);
        for connection in self.open.values_mut() {
            connection.window.follow_clock(step);
            for early in connection.early_attaches.values_mut() {
                early.follow_clock(step);
            }
        }
    }

    /// Returns the connection with an id, if it is open.
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.open.get(&id)
    }

    /// Returns the connection with an id, if it is open.
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.open.get_mut(&id)
    }

    /// Returns the connection with an id, which is made if there is none.
    pub(crate) fn entry(&mut self, id: ConnectionId) -> &mut Connection {
        self.open.entry(id).or_default()
    }

    /// Returns how many are open.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.open.iter().map(|(&id, connection)| (id, connection))
    }

    /// Returns the connections from an id on.
    pub(crate) fn iter_from(
        &self,
        from: ConnectionId,
    ) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        let open = self.open.range(from..);
        open.map(|(&id, connection)| (id, connection))
    }

    pub(super) fn ids(&self) -> Vec<ConnectionId> {
        self.open.keys().copied().collect()
    }

    /// Ends a connection. Which queues its receivers had is remembered until it is known which of their
    /// messages have not come to it ([`Connections::take_ended`]).
    pub(super) fn end(&mut self, id: ConnectionId) -> Option<Connection> {
        let connection = self.open.remove(&id)?;
        let open = connection.links.iter();
        let open = open.filter_map(|(&link, state)| match *state {
            Link::Receiver { queue, name: None } => Some((link, queue)),
            Link::Receiver { .. }
            | Link::Sender { .. }
            | Link::Waiting { .. }
            | Link::Coordinator { .. }
            | Link::Requests { .. }
            | Link::Responses(_) => None,
        });
        let receivers: Vec<_> = open.chain(connection.departed.iter().copied()).collect();
        if !receivers.is_empty() {
            self.ended.insert(id, receivers);
        }
        Some(connection)
    }

    /// Takes the receivers that a connection had when it ended.
    pub(super) fn take_ended(&mut self, id: ConnectionId) -> Vec<(LinkId, EntityId)> {
        self.ended.remove(&id).unwrap_or_default()
    }

    /// Returns the links for which `wanted` is true.
    pub(super) fn links_where(
        &self,
        mut wanted: impl FnMut(&Link) -> bool,
    ) -> Vec<(ConnectionId, LinkId)> {
        let mut found = Vec::new();
        for (&connection, state) in &self.open {
            for (&link, state) in &state.links {
                if wanted(state) {
                    found.push((connection, link));
                }
            }
        }
        found
    }

    /// Checks what holds between steps.
    pub(crate) fn check(&self) {
        self.windows.check(self);
        for (id, connection) in &self.open {
            for (&link, early) in &connection.early_attaches {
                assert!(!connection.links.contains_key(&link), "it is attached once");
                self.early_attach_ends.check(*id, link, early);
            }
            for grant in &connection.grants {
                self.token_ends.check(*id, grant);
            }
            assert!(!self.ended.contains_key(id), "no id is used twice");
            let waiting = connection.waiting_calls();
            assert_eq!(connection.waiting, waiting, "calls that wait are counted");
            for link in connection.link_entities.keys() {
                assert!(connection.links.contains_key(link), "it goes with its link");
            }
            for (path, link) in &connection.temporary {
                let entity = connection.link_entities.get(link);
                let is_it = matches!(entity, Some(jms::LinkEntity::Temporary(of)) if of == path);
                assert!(is_it, "a path leads to the entity's own link");
            }
        }
    }
}
