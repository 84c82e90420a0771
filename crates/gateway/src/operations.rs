//! What operators ask and do beside the administration of entities: look at messages, message sessions, connections and
//! jobs, begin and cancel jobs, set the state of a message session, close connections.
//!
//! A client with `Listen` sees, one with `Manage` changes. What concerns no entity needs the right to the namespace.

mod attention;
#[cfg(test)]
mod attention_tests;
mod connections;
#[cfg(test)]
mod connections_tests;
mod jobs;
mod locks;
mod namespaces;
mod receives;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::Gateway;
use super::amqp::{ServiceNode, link_of};
use super::denied::host_shown;
use super::request::{Request, Requester};
use crate::limits;
use jitney_base::address::{self, Address, EntityAddress};
use jitney_base::ids::{BodyRef, ConnectionId, EntityId, SequenceNumber};
use jitney_base::rights::Right;
use jitney_base::time::Timestamp;
use jitney_broker::access::PeerAddress;
use jitney_broker::namespace::{AuditEntry, AuditFilter, Denied, DeniedKind, StepContext};
use jitney_queue::{
    Conditions, ConsumerId, Inspected, PageBounds, ScanBudget, Schedule, SessionInspected,
    SessionList, Spans,
};

pub use attention::{AttentionView, LinkOfItem, ReadAttention};
pub use connections::{
    CloseConnection, ConnectionView, ConnectionsPage, LinkRole, LinkView, ListConnections,
    LocksThen,
};
pub use jobs::{CancelJob, JobView, JobsPage, ListJobs, ReadJob, StartJob};
pub use locks::{LockMessages, SettleMessages};
pub use namespaces::{CreateNamespace, DeleteNamespace};
pub use receives::{EndReceive, ListReceives, ReceiveView, ReceivesPage};

/// Look at messages of one queue, from a number on. Paths are as clients write them: `orders`, `orders/$DeadLetterQueue`,
/// `news/Subscriptions/eu`.
#[derive(Debug)]
pub struct Inspect {
    /// The path.
    pub path: String,
    /// The first number to look at; 0 for the beginning.
    pub from: SequenceNumber,
    /// Which messages.
    pub conditions: Conditions,
    /// As many at most.
    pub most: usize,
    /// With their bytes, so many at most; 0 for none. If the first has more, it is returned without them.
    pub bytes_max: usize,
}

/// Tell the name of the namespace, and the path of an entity as its creator spelled it.
#[derive(Debug)]
pub struct ReadNames {
    /// The path; without one, the namespace is meant.
    pub path: Option<String>,
    /// The right that the client must have.
    pub right: Right,
}

/// List the queues with messages of the namespace, in the order of their addresses.
#[derive(Debug)]
pub struct ListQueues {
    /// The address to begin at; the first if it is not given.
    pub from: Option<String>,
}

/// Count scheduled messages by the time when they become active.
#[derive(Debug)]
pub struct CountScheduled {
    /// The path.
    pub path: String,
    /// The spans of time.
    pub spans: Spans,
}

/// List message sessions that have messages or a state, in the order of their names.
#[derive(Debug)]
pub struct ListSessions {
    /// The path.
    pub path: String,
    /// Those behind this id; all if it is not given.
    pub after: Option<String>,
    /// As many at most.
    pub most: usize,
}

/// Look at one message session, and its state.
#[derive(Debug)]
pub struct ReadSession {
    /// The path.
    pub path: String,
    /// Its id.
    pub id: String,
}

/// Set or clear the state of a message session.
#[derive(Debug)]
pub struct SetSessionState {
    /// The path.
    pub path: String,
    /// Its id.
    pub id: String,
    /// The state; `None` clears it.
    pub state: Option<Vec<u8>>,
}

/// List entries of the audit log of the namespace, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListAudit {
    /// Entries with smaller numbers only.
    pub before: u64,
    /// As many at most.
    pub most: usize,
    /// Which of them.
    pub filter: AuditFilter,
}

/// Add to the audit log what is done outside of the shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The operator makes a backup in this directory.
    Backup(String),
    /// A client reads the keys of an entity; of all entities without a path.
    KeysRead(Option<String>),
}

/// Names, as [`ReadNames`] asks for them.
#[derive(Debug)]
pub struct Names {
    /// That of the namespace, in lower case.
    pub namespace: String,
    /// The path of the entity; empty without one.
    pub path: String,
    /// The largest message that the entity takes, in bytes; 0 without one.
    pub message_bytes_max: u64,
}

/// Some queues.
#[derive(Debug)]
pub struct QueuesPage {
    /// Their addresses.
    pub addresses: Vec<String>,
    /// The address to continue at; `None` at the end.
    pub next: Option<String>,
}

/// Some message sessions.
#[derive(Debug)]
pub struct SessionsPage {
    /// The sessions.
    pub sessions: Vec<SessionView>,
    /// The id behind which there may be more; `None` at the end.
    pub next_after: Option<String>,
}

/// A message session with its state.
#[derive(Debug)]
pub struct SessionAndState {
    /// The session.
    pub session: SessionView,
    /// Its state, if it has one.
    pub state: Option<Bytes>,
}

/// Messages that were looked at.
#[derive(Debug)]
pub struct MessagesView {
    /// The messages.
    pub messages: Vec<MessageView>,
    /// The number at which a further look continues; `None` at the end.
    pub next: Option<SequenceNumber>,
    /// Their bytes are wanted, and are no more than may be.
    pub with_bytes: bool,
}

/// A message that was looked at.
#[derive(Debug)]
pub struct MessageView {
    /// The message.
    pub inspected: Inspected,
    /// The client that has it locked, if that is known.
    pub holder: Option<HolderView>,
}

/// A client that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderView {
    /// Its connection.
    pub connection: ConnectionId,
    /// The container-id of its connection, which SDKs let applications choose.
    pub container_id: String,
    /// Its address.
    pub peer: PeerAddress,
}

/// A message session.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Its id.
    pub id: String,
    /// Its messages, its state and its holder.
    pub inspected: SessionInspected,
    /// The client that holds it, and until when.
    pub holder: Option<(HolderView, Timestamp)>,
}

impl Request for Inspect {
    type Answer = MessagesView;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<MessagesView, Denied> {
        let queue = gateway.looked_at(cx, requester, &self.path)?;
        let Self {
            from,
            conditions,
            most,
            bytes_max,
            ..
        } = self;
        Ok(gateway.inspect(queue, from, &conditions, most, bytes_max))
    }

    fn bodies(answer: &MessagesView) -> Vec<BodyRef> {
        let messages = answer.messages.iter().filter(|_| answer.with_bytes);
        messages.map(|message| message.inspected.body).collect()
    }
}

impl Request for ReadNames {
    type Answer = Names;

    fn run(
        self,
        gateway: &mut Gateway,
        _cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<Names, Denied> {
        let mut message_bytes_max = 0;
        let (prefix, path) = match self.path {
            None => {
                let prefix = gateway.check_namespace(requester, self.right)?;
                (prefix, String::new())
            }
            Some(path) => {
                let (queue, address) = gateway.at_path(requester, &path, self.right)?;
                let base = gateway.namespaces.queue(queue.base());
                message_bytes_max = base.map_or(0, |base| base.description().max_message_bytes);
                (address.path, gateway.shown(queue.base()))
            }
        };
        let namespace = gateway.namespaces.directory().name_of(&prefix);
        Ok(Names {
            namespace,
            path,
            message_bytes_max,
        })
    }
}

impl Request for ListQueues {
    type Answer = QueuesPage;

    fn run(
        self,
        gateway: &mut Gateway,
        _cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<QueuesPage, Denied> {
        let prefix = gateway.check_namespace(requester, Right::Listen)?;
        let from = self.from.map(|path| match Address::of_path(&path) {
            Ok(Address::Entity(address)) => {
                let path = format!("{prefix}{}", address.path);
                Ok(EntityAddress { path, ..address })
            }
            Ok(Address::Cbs | Address::Management(_)) | Err(_) => {
                let text = format!("'{path}' is no address of a queue.");
                Err(Denied::new(DeniedKind::Argument, text, &path))
            }
        });
        let from = from.transpose()?;
        let (found, next) = gateway.namespaces.queues_from(&prefix, from.as_ref());
        let addresses = found.into_iter().map(|queue| gateway.shown(queue));
        Ok(QueuesPage {
            addresses: addresses.collect(),
            next,
        })
    }
}

impl Request for CountScheduled {
    type Answer = Schedule;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<Schedule, Denied> {
        let queue = gateway.looked_at(cx, requester, &self.path)?;
        let queue = gateway.namespaces.queue(queue);
        let queue = queue.ok_or_else(|| Denied::not_found("", &self.path))?;
        Ok(queue.schedule(self.spans))
    }
}

impl Request for ListSessions {
    type Answer = SessionsPage;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<SessionsPage, Denied> {
        let queue = gateway.looked_at(cx, requester, &self.path)?;
        let most = self.most.clamp(1, limits::INSPECTED_MAX);
        let mut list = SessionList::behind(self.after.as_deref(), most + 1);
        if let Some(queue) = gateway.namespaces.queue(queue) {
            let mut budget = ScanBudget::default();
            queue.list_sessions(None, &mut list, &mut budget);
        }
        let mut names = std::mem::take(&mut list.names);
        let next_after = if most < names.len() {
            names.truncate(most);
            names.last().cloned()
        } else {
            list.continues_behind().map(ToOwned::to_owned)
        };
        let sessions = names.into_iter();
        let sessions = sessions.map(|id| gateway.session_view(queue, id));
        Ok(SessionsPage {
            sessions: sessions.collect(),
            next_after,
        })
    }
}

impl Request for ReadSession {
    type Answer = SessionAndState;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<SessionAndState, Denied> {
        let queue = gateway.looked_at(cx, requester, &self.path)?;
        let found = gateway.namespaces.queue(queue);
        let state = found.and_then(|queue| queue.session_state(&self.id).cloned());
        Ok(SessionAndState {
            session: gateway.session_view(queue, self.id),
            state,
        })
    }
}

impl Request for SetSessionState {
    type Answer = ();

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<(), Denied> {
        let (queue, address) = gateway.at_path(requester, &self.path, Right::Manage)?;
        gateway.set_state_of_session(cx, queue, &address, &self.id, self.state)?;
        gateway.audit(cx, requester, "set_session_state", &address.path, &self.id);
        Ok(())
    }
}

impl Request for ListAudit {
    /// The entries with their numbers.
    type Answer = Vec<(u64, AuditEntry)>;

    fn run(
        self,
        gateway: &mut Gateway,
        _cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<Vec<(u64, AuditEntry)>, Denied> {
        let prefix = gateway.check_namespace(requester, Right::Manage)?;
        let entries = gateway.namespaces.audit_entries(&prefix, self.before);
        let entries = entries.filter(|(_, entry)| self.filter.holds_for(entry));
        let entries = entries.take(self.most);
        let entries = entries.map(|(number, entry)| (number, entry.clone()));
        Ok(entries.collect())
    }
}

impl Request for Note {
    type Answer = ();

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<(), Denied> {
        match self {
            Self::Backup(directory) => {
                namespaces::check_operator(&requester.authority)?;
                gateway.audit(cx, requester, "back_up", "", &directory);
            }
            Self::KeysRead(None) => {
                let prefix = gateway.check_namespace(requester, Right::Manage)?;
                let detail = "the keys of all entities";
                gateway.audit(cx, requester, "read_keys", &prefix, detail);
            }
            Self::KeysRead(Some(path)) => {
                let (_, address) = gateway.at_path(requester, &path, Right::Manage)?;
                gateway.audit(cx, requester, "read_keys", &address.path, "");
            }
        }
        Ok(())
    }
}

impl Gateway {
    /// Adds an entry to the audit log.
    fn audit(
        &mut self,
        cx: &mut StepContext<'_>,
        requester: &Requester,
        operation: &str,
        path: &str,
        detail: &str,
    ) {
        let actor = requester.authority.actor();
        self.namespaces.audit(cx, actor, operation, path, detail);
    }

    /// Finds a queue that a client may look at. What is due in it is done first: what has expired is not shown.
    fn looked_at(
        &mut self,
        cx: &mut StepContext<'_>,
        requester: &Requester,
        path: &str,
    ) -> Result<EntityId, Denied> {
        let (queue, _) = self.at_path(requester, path, Right::Listen)?;
        self.with_queue(cx, queue, |_, _| ());
        Ok(queue)
    }

    /// Finds a queue by a path that is decoded already, for a client with a right to it.
    fn at_path(
        &self,
        requester: &Requester,
        path: &str,
        right: Right,
    ) -> Result<(EntityId, EntityAddress), Denied> {
        let host = requester.host.as_deref();
        let not_found = || Denied::not_found(host_shown(host), path);
        let Ok(Address::Entity(address)) = Address::of_path(path) else {
            return Err(not_found());
        };
        let prefix = self.namespaces.directory().namespace_of(host);
        let path = format!("{prefix}{}", address.path);
        let address = EntityAddress { path, ..address };
        let checked = requester
            .authority
            .check_messages(&address.resource(), right);
        checked.map_err(|text| Denied::new(DeniedKind::Unauthorized, text, &address.path))?;
        let found = self.namespaces.resolve(&address);
        found.map(|id| (id, address)).ok_or_else(not_found)
    }

    /// Checks a right to a whole namespace; returns the prefix of its entities' paths.
    fn check_namespace(&self, requester: &Requester, right: Right) -> Result<String, Denied> {
        let directory = self.namespaces.directory();
        let prefix = directory.namespace_of(requester.host.as_deref());
        let checked = requester.authority.check(&prefix, right);
        checked.map_err(|text| Denied::new(DeniedKind::Unauthorized, text, ""))?;
        Ok(prefix)
    }

    fn inspect(
        &self,
        queue: EntityId,
        from: SequenceNumber,
        conditions: &Conditions,
        most: usize,
        bytes_max: usize,
    ) -> MessagesView {
        let mut view = MessagesView {
            messages: Vec::new(),
            next: None,
            with_bytes: 0 < bytes_max,
        };
        if let Some(found) = self.namespaces.queue(queue) {
            let most = most.clamp(1, limits::INSPECTED_MAX);
            let mut budget = ScanBudget::default();
            let start = found.browse_start(from);
            let bounds = PageBounds {
                messages_max: most,
                bytes_max: match bytes_max {
                    0 => usize::MAX,
                    _ => bytes_max,
                },
            };
            let (messages, next) = found.inspect(start, None, conditions, bounds, &mut budget);
            let mut lengths = messages.iter().map(|message| message.body.length);
            view.with_bytes &= lengths
                .all(|length| usize::try_from(length).is_ok_and(|length| length <= bytes_max));
            view.next = next.map(|next| found.number_at(next));
            let views = messages.into_iter().map(|inspected| MessageView {
                holder: inspected.holder.and_then(|holder| self.holder(holder)),
                inspected,
            });
            view.messages = views.collect();
        }
        view
    }

    fn holder(&self, receiver: ConsumerId) -> Option<HolderView> {
        let (id, _) = link_of(receiver);
        let connection = self.connections.get(id)?;
        Some(HolderView {
            connection: id,
            container_id: connections::cut(&connection.container_id),
            peer: connection.origin.peer,
        })
    }

    fn session_view(&self, queue: EntityId, id: String) -> SessionView {
        let inspected = self.namespaces.queue(queue).map_or(
            SessionInspected {
                messages: 0,
                state_bytes: None,
                holder: None,
            },
            |queue| queue.inspect_session(&id),
        );
        let holder = inspected.holder;
        let holder = holder.and_then(|(receiver, until)| Some((self.holder(receiver)?, until)));
        SessionView {
            id,
            inspected,
            holder,
        }
    }

    fn set_state_of_session(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        address: &EntityAddress,
        id: &str,
        state: Option<Vec<u8>>,
    ) -> Result<(), Denied> {
        let has_sessions = self
            .namespaces
            .queue(queue)
            .is_some_and(jitney_queue::Queue::has_sessions);
        if !has_sessions {
            let text = "The entity has no message sessions.";
            return Err(Denied::new(DeniedKind::NotAllowed, text, &address.path));
        }
        if state.is_some() {
            self.namespaces
                .check_room(&address.path, "no state is set until there is room again")?;
        }
        let elsewhere = self.namespaces.held_bytes(queue);
        let set = self.with_queue(cx, queue, |queue, cx| {
            let elsewhere = elsewhere.saturating_sub(queue.bytes());
            queue.set_session_state(cx, id, state.map(Into::into), elsewhere)
        });
        match set {
            Some(Ok(())) | None => Ok(()),
            Some(Err(refused)) => {
                let text = refused.to_string();
                Err(Denied::new(DeniedKind::Argument, text, &address.path))
            }
        }
    }

    /// Returns the address of a queue as clients of its namespace write it.
    pub(super) fn shown(&self, queue: EntityId) -> String {
        let name = self.namespaces.name_of(queue);
        address::without_namespace(&name).to_owned()
    }
}

pub(super) fn node_shown(node: &ServiceNode) -> String {
    match node {
        ServiceNode::Cbs => "$cbs".to_owned(),
        ServiceNode::Management(address) => {
            format!("{}/$management", address::without_namespace(&address.path))
        }
    }
}
