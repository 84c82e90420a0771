//! What operators ask and do beside the administration of entities: look at messages, message sessions, connections and
//! jobs, begin and cancel jobs, set the state of a message session, close connections.
//!
//! A client with `Listen` sees, one with `Manage` changes. What concerns no entity needs the right to the namespace.

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
use crate::limits;
use jitney_amqp::{LinkId, Product};
use jitney_base::address::{self, Address, EntityAddress};
use jitney_base::ids::{
    BodyRef, ConnectionId, EntityId, JobId, LockToken, RequestId, SequenceNumber,
};
use jitney_base::rights::{AuthorizationRule, Right};
use jitney_base::time::Timestamp;
use jitney_broker::access::{Authority, PeerAddress};
use jitney_broker::namespace::{
    AuditEntry, AuditFilter, Denied, DeniedKind, Job, JobDescription, StepContext,
};
use jitney_queue::{
    Conditions, ConsumerId, Inspected, Looks, Schedule, SessionInspected, SessionList, Settlement,
    Spans, Stuck,
};

pub use connections::LocksThen;
pub use receives::ReceiveView;

/// An operation. Paths are as clients write them: `orders`, `orders/$DeadLetterQueue`, `news/Subscriptions/eu`.
#[derive(Debug)]
pub enum Operation {
    /// Look at messages of one queue, from a number on.
    Inspect {
        /// The path.
        path: String,
        /// The first number to look at; 0 for the beginning.
        from: SequenceNumber,
        /// Which messages.
        conditions: Conditions,
        /// As many at most.
        most: usize,
        /// With their bytes, so many at most; 0 for none. If the first has more, it is returned without them.
        bytes_max: usize,
    },
    /// Return the name of the namespace, and the path of an entity as its creator spelled it.
    Name {
        /// The path; without one, the namespace is meant.
        path: Option<String>,
        /// The right that the client must have.
        right: Right,
    },
    /// List the queues with messages of the namespace, in the order of their addresses.
    Queues {
        /// The address to begin at; the first if it is not given.
        from: Option<String>,
    },
    /// Count scheduled messages by the time when they become active.
    Schedule {
        /// The path.
        path: String,
        /// The spans of time.
        spans: Spans,
    },
    /// List message sessions that have messages or a state, in the order of their names.
    Sessions {
        /// The path.
        path: String,
        /// Those behind this id; all if it is not given.
        after: Option<String>,
        /// As many at most.
        most: usize,
    },
    /// Look at one message session, and its state.
    Session {
        /// The path.
        path: String,
        /// Its id.
        id: String,
    },
    /// Set or clear the state of a message session.
    SetSessionState {
        /// The path.
        path: String,
        /// Its id.
        id: String,
        /// The state; `None` clears it.
        state: Option<Vec<u8>>,
    },
    /// List connections of the namespace with their links, in the order of their ids.
    Connections {
        /// The connection to begin at, and its first link.
        from: (ConnectionId, LinkId),
        /// As many links at most; a connection without links counts as one.
        most: usize,
    },
    /// Close a connection, or detach one of its links.
    Close(ConnectionId, Option<LinkId>, LocksThen),
    /// List receives over HTTP of the namespace that wait for a message, in the order of their ids.
    Receives {
        /// Those behind this id; all if it is not given.
        after: Option<RequestId>,
        /// As many at most.
        most: usize,
    },
    /// End a receive over HTTP that waits for a message.
    EndReceive(RequestId),
    /// Lock active or deferred messages: all of them, or none.
    Lock {
        /// The path.
        path: String,
        /// Their numbers.
        numbers: Vec<SequenceNumber>,
    },
    /// Settle locked messages, each for itself.
    Settle {
        /// The path.
        path: String,
        /// Locks, and how their messages are settled.
        settlements: Vec<(LockToken, Settlement)>,
    },
    /// Begin a job on one queue.
    StartJob {
        /// The path.
        path: String,
        /// The messages that it means, and the change.
        description: Box<JobDescription>,
    },
    /// List jobs of the namespace, the newest first.
    Jobs {
        /// Those with smaller ids only; all if it is not given.
        before: Option<JobId>,
    },
    /// Look at a job.
    Job(JobId),
    /// Cancel a job.
    CancelJob(JobId),
    /// Make a namespace, for the operator. It is not recorded here: the server knows which namespaces a shard has.
    MakeNamespace {
        /// Its name.
        name: String,
        /// Its authorization rules.
        rules: Vec<AuthorizationRule>,
    },
    /// Take a step of the dropping of a namespace, for the operator: delete some of its entities, with their messages, and
    /// close its connections. If it has none left, it is gone.
    DropNamespace {
        /// Its name.
        name: String,
    },
    /// List the audit log of the namespace, the newest first.
    Audit(AuditPage),
    /// Add to the audit log what is done elsewhere.
    Note(Note),
}

/// What is done outside of the shard, and belongs into the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The operator makes a backup in this directory.
    Backup(String),
    /// A client reads the keys of an entity; of all entities without a path.
    KeysRead(Option<String>),
}

/// Some entries of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// Entries with smaller numbers only.
    pub before: u64,
    /// As many at most.
    pub most: usize,
    /// Which of them.
    pub filter: AuditFilter,
}

/// The result of an operation.
#[derive(Debug)]
pub enum Operated {
    /// Messages, and the number to continue at, if there are more.
    Messages(MessagesView),
    /// Names.
    Name {
        /// That of the namespace, in lower case.
        namespace: String,
        /// The path of the entity; empty without one.
        path: String,
        /// The largest message that the entity takes, in bytes; 0 without one.
        message_bytes_max: u64,
    },
    /// Addresses of queues, and the one to continue at.
    Queues(Vec<String>, Option<String>),
    /// Scheduled messages.
    Schedule(Schedule),
    /// Message sessions, and the id behind which there may be more.
    Sessions(Vec<SessionView>, Option<String>),
    /// A message session with its state.
    Session(SessionView, Option<Bytes>),
    /// Connections, and the connection and link to continue at. A connection that is continued has further links.
    Connections(Vec<ConnectionView>, Option<(ConnectionId, LinkId)>),
    /// Receives over HTTP, and the id behind which there are more.
    Receives(Vec<ReceiveView>, Option<RequestId>),
    /// Jobs, and the one before which there are more.
    Jobs(Vec<JobView>, Option<JobId>),
    /// A job.
    Job(Box<JobView>),
    /// Entries of the audit log with their numbers.
    Audit(Vec<(u64, AuditEntry)>),
    /// Messages that are locked now, in the order of their numbers.
    Locked(Vec<(SequenceNumber, LockToken)>),
    /// The result of each settlement.
    Settled(Vec<Result<(), Denied>>),
    /// Whether a namespace that is dropped is gone.
    Dropped(bool),
    /// It is done.
    Done,
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

/// A job.
#[derive(Debug, Clone)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// The address of its queue, without a namespace.
    pub path: String,
    /// The job.
    pub job: Job,
    /// Why it runs and has no turn, if that is so.
    pub waits: Option<String>,
}

impl Operated {
    /// Returns where the bytes are that its answer needs.
    pub fn bodies(&self) -> impl Iterator<Item = BodyRef> {
        let messages = match self {
            Self::Messages(view) if view.with_bytes => view.messages.as_slice(),
            Self::Messages(_)
            | Self::Name { .. }
            | Self::Queues(..)
            | Self::Schedule(_)
            | Self::Sessions(..)
            | Self::Session(..)
            | Self::Connections(..)
            | Self::Receives(..)
            | Self::Jobs(..)
            | Self::Job(_)
            | Self::Audit(_)
            | Self::Locked(_)
            | Self::Settled(_)
            | Self::Dropped(_)
            | Self::Done => &[],
        };
        messages.iter().map(|message| message.inspected.body)
    }
}

impl Gateway {
    /// Carries an operation out, in the namespace of a host name, for a client with these rights. The answer rests on the
    /// newest group of records.
    ///
    /// # Errors
    ///
    /// Nothing has changed then.
    pub fn perform(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        operation: Operation,
    ) -> Result<Operated, Denied> {
        let done = self.perform_unless_denied(cx, host, authority, operation);
        self.count_if_refused(&done);
        done
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each operation")]
    fn perform_unless_denied(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        operation: Operation,
    ) -> Result<Operated, Denied> {
        match operation {
            Operation::Inspect {
                path,
                from,
                conditions,
                most,
                bytes_max,
            } => {
                let queue = self.looked_at(cx, host, authority, &path)?;
                Ok(self.inspect(queue, from, &conditions, (most, bytes_max)))
            }
            Operation::Name { path, right } => self.names(host, authority, path.as_deref(), right),
            Operation::Queues { from } => {
                let prefix = self.check_namespace(host, authority, Right::Listen)?;
                self.queues_from(&prefix, from.as_deref())
            }
            Operation::Schedule { path, spans } => {
                let queue = self.looked_at(cx, host, authority, &path)?;
                self.count_scheduled(queue, &path, spans)
            }
            Operation::Sessions { path, after, most } => {
                let queue = self.looked_at(cx, host, authority, &path)?;
                Ok(self.list_sessions(queue, after.as_deref(), most))
            }
            Operation::Session { path, id } => {
                let queue = self.looked_at(cx, host, authority, &path)?;
                let found = self.namespaces.queue(queue);
                let state = found.and_then(|queue| queue.session_state(&id).cloned());
                Ok(Operated::Session(self.session_view(queue, id), state))
            }
            Operation::SetSessionState { path, id, state } => {
                let (queue, address) = self.at_path(host, authority, &path, Right::Manage)?;
                self.set_state_of_session(cx, queue, &address, &id, state)?;
                self.audit(cx, authority, "set_session_state", &address.path, &id);
                Ok(Operated::Done)
            }
            Operation::Connections { from, most } => {
                let prefix = self.check_namespace(host, authority, Right::Listen)?;
                Ok(self.list_connections(cx.now, &prefix, from, most))
            }
            Operation::Close(id, link, locks) => {
                self.close_for_operator(cx, host, authority, (id, link), locks)
            }
            Operation::Receives { after, most } => self.list_receives(host, authority, after, most),
            Operation::EndReceive(id) => self.end_receive_for_operator(cx, host, authority, id),
            Operation::Lock { path, numbers } => {
                self.lock_by_number(cx, host, authority, &path, &numbers)
            }
            Operation::Settle { path, settlements } => {
                self.settle_locked(cx, host, authority, &path, settlements)
            }
            Operation::StartJob { path, description } => {
                let (queue, address) = self.at_path(host, authority, &path, Right::Manage)?;
                self.start_job(cx, authority, queue, &address, *description)
            }
            Operation::Jobs { before } => {
                let prefix = self.check_namespace(host, authority, Right::Listen)?;
                Ok(self.list_jobs(&prefix, before))
            }
            Operation::Job(id) => {
                let view = self.job(host, authority, id, Right::Listen)?;
                Ok(Operated::Job(Box::new(view)))
            }
            Operation::CancelJob(id) => {
                let view = self.cancel_job(cx, host, authority, id)?;
                Ok(Operated::Job(Box::new(view)))
            }
            Operation::MakeNamespace { name, rules } => {
                self.make_namespace(cx, authority, &name, rules)
            }
            Operation::DropNamespace { name } => self.drop_namespace(cx, authority, &name),
            Operation::Audit(page) => self.list_audit(host, authority, &page),
            Operation::Note(note) => self.note(cx, host, authority, note),
        }
    }

    fn count_scheduled(
        &self,
        queue: EntityId,
        path: &str,
        spans: Spans,
    ) -> Result<Operated, Denied> {
        let queue = self.namespaces.queue(queue);
        let queue = queue.ok_or_else(|| Denied::not_found("", path))?;
        Ok(Operated::Schedule(queue.schedule(spans)))
    }

    fn list_audit(
        &self,
        host: Option<&str>,
        authority: &Authority,
        page: &AuditPage,
    ) -> Result<Operated, Denied> {
        let prefix = self.check_namespace(host, authority, Right::Manage)?;
        let entries = self.namespaces.audit_entries(&prefix, page.before);
        let entries = entries.filter(|(_, entry)| page.filter.holds_for(entry));
        let entries = entries.take(page.most);
        let entries = entries.map(|(number, entry)| (number, entry.clone()));
        Ok(Operated::Audit(entries.collect()))
    }

    fn note(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        note: Note,
    ) -> Result<Operated, Denied> {
        match note {
            Note::Backup(directory) => {
                namespaces::check_operator(authority)?;
                self.audit(cx, authority, "back_up", "", &directory);
            }
            Note::KeysRead(None) => {
                let prefix = self.check_namespace(host, authority, Right::Manage)?;
                let detail = "the keys of all entities";
                self.audit(cx, authority, "read_keys", &prefix, detail);
            }
            Note::KeysRead(Some(path)) => {
                let (_, address) = self.at_path(host, authority, &path, Right::Manage)?;
                self.audit(cx, authority, "read_keys", &address.path, "");
            }
        }
        Ok(Operated::Done)
    }

    /// Adds an entry to the audit log.
    fn audit(
        &mut self,
        cx: &mut StepContext<'_>,
        authority: &Authority,
        operation: &str,
        path: &str,
        detail: &str,
    ) {
        let actor = authority.actor();
        self.namespaces.audit(cx, actor, operation, path, detail);
    }

    /// Finds a queue that a client may look at. What is due in it is done first: what has expired is not shown.
    fn looked_at(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        path: &str,
    ) -> Result<EntityId, Denied> {
        let (queue, _) = self.at_path(host, authority, path, Right::Listen)?;
        self.with_queue(cx, queue, |_, _| ());
        Ok(queue)
    }

    /// Finds a queue by a path that is decoded already, for a client with a right to it.
    fn at_path(
        &self,
        host: Option<&str>,
        authority: &Authority,
        path: &str,
        right: Right,
    ) -> Result<(EntityId, EntityAddress), Denied> {
        let not_found = || Denied::not_found(host_shown(host), path);
        let Ok(Address::Entity(address)) = Address::of_path(path) else {
            return Err(not_found());
        };
        let prefix = self.namespaces.directory().namespace_of(host);
        let path = format!("{prefix}{}", address.path);
        let address = EntityAddress { path, ..address };
        let checked = authority.check_messages(&address.resource(), right);
        checked.map_err(|text| Denied::new(DeniedKind::Unauthorized, text, &address.path))?;
        let found = self.namespaces.resolve(&address);
        found.map(|id| (id, address)).ok_or_else(not_found)
    }

    fn names(
        &self,
        host: Option<&str>,
        authority: &Authority,
        path: Option<&str>,
        right: Right,
    ) -> Result<Operated, Denied> {
        let mut message_bytes_max = 0;
        let (prefix, path) = match path {
            None => {
                let prefix = self.check_namespace(host, authority, right)?;
                (prefix, String::new())
            }
            Some(path) => {
                let (queue, address) = self.at_path(host, authority, path, right)?;
                let base = self.namespaces.queue(queue.base());
                message_bytes_max = base.map_or(0, |base| base.description().max_message_bytes);
                (address.path, self.shown(queue.base()))
            }
        };
        let namespace = self.namespaces.directory().name_of(&prefix);
        Ok(Operated::Name {
            namespace,
            path,
            message_bytes_max,
        })
    }

    /// Checks a right to a whole namespace; returns the prefix of its entities' paths.
    fn check_namespace(
        &self,
        host: Option<&str>,
        authority: &Authority,
        right: Right,
    ) -> Result<String, Denied> {
        let prefix = self.namespaces.directory().namespace_of(host);
        let checked = authority.check(&prefix, right);
        checked.map_err(|text| Denied::new(DeniedKind::Unauthorized, text, ""))?;
        Ok(prefix)
    }

    fn inspect(
        &self,
        queue: EntityId,
        from: SequenceNumber,
        conditions: &Conditions,
        (most, bytes_max): (usize, usize),
    ) -> Operated {
        let mut view = MessagesView {
            messages: Vec::new(),
            next: None,
            with_bytes: 0 < bytes_max,
        };
        if let Some(found) = self.namespaces.queue(queue) {
            let most = most.clamp(1, limits::INSPECTED_MAX);
            let mut looks = Looks::default();
            let start = found.browse_start(from);
            let bounds = match bytes_max {
                0 => (most, usize::MAX),
                _ => (most, bytes_max),
            };
            let (messages, next) = found.inspect(start, None, conditions, bounds, &mut looks);
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
        Operated::Messages(view)
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

    fn queues_from(&self, prefix: &str, from: Option<&str>) -> Result<Operated, Denied> {
        let from = from.map(|path| match Address::of_path(path) {
            Ok(Address::Entity(address)) => {
                let path = format!("{prefix}{}", address.path);
                Ok(EntityAddress { path, ..address })
            }
            Ok(Address::Cbs | Address::Management(_)) | Err(_) => {
                let text = format!("'{path}' is no address of a queue.");
                Err(Denied::new(DeniedKind::Argument, text, path))
            }
        });
        let (found, next) = self
            .namespaces
            .queues_from(prefix, from.transpose()?.as_ref());
        let shown = found.into_iter().map(|queue| self.shown(queue));
        Ok(Operated::Queues(shown.collect(), next))
    }

    fn list_sessions(&self, queue: EntityId, after: Option<&str>, most: usize) -> Operated {
        let most = most.clamp(1, limits::INSPECTED_MAX);
        let mut list = SessionList::behind(after, most + 1);
        if let Some(queue) = self.namespaces.queue(queue) {
            let mut looks = Looks::default();
            queue.list_sessions(None, &mut list, &mut looks);
        }
        let mut names = std::mem::take(&mut list.names);
        let next = if most < names.len() {
            names.truncate(most);
            names.last().cloned()
        } else {
            list.continues_behind().map(ToOwned::to_owned)
        };
        let views = names.into_iter().map(|id| self.session_view(queue, id));
        Operated::Sessions(views.collect(), next)
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
    ) -> Result<Operated, Denied> {
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
            Some(Ok(())) | None => Ok(Operated::Done),
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
