//! The namespace: entities by their addresses, links to them, and the nodes `$management` and
//! `$cbs`.
//!
//! A [`Broker`] has one owner, who calls [`Broker::apply`] with what connections report and passes
//! the replies on. Each reply says which group of records it rests on, and may leave only when
//! that group is durable.
//!
//! Promises: what one entity tells one link comes in the order in which it happened; a reply about
//! a link that has gone is harmless.
//!
//! Leaves to others: bytes on the wire ([`crate::amqp`]), what happens to a message
//! ([`crate::entity`]), where records are kept.

mod access;
pub mod administration;
mod bodies;
mod cbs;
mod checks;
mod choice;
mod damage;
#[cfg(test)]
mod damage_tests;
mod delivery;
mod denied;
mod entities;
mod errors;
mod forwards;
mod jms;
#[cfg(test)]
mod jms_tests;
mod kept;
mod links;
mod loss;
#[cfg(test)]
mod loss_tests;
pub mod management;
mod memory;
mod onward;
pub mod recovery;
pub mod rest;
mod send;
mod settle;
#[cfg(test)]
mod tests;
mod tier;
mod transaction_scope;
mod transactions;
#[cfg(test)]
mod transactions_tests;
mod ways;
#[cfg(test)]
mod ways_tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::address::{self, EntityAddress, SubQueue};
use crate::amqp::{Accept, DeliveryId, Event, LinkId, Outcome, Refusal, SessionId};
use crate::ids::{BodyRef, EntityId, LockToken, Random, SequenceNumber};
use crate::limits;
use crate::queue::{
    Arriving, ConsumerId, Context, Description, Effects, EntityKind, Handover, Looks, Queue,
};
use crate::queue::{Journal, Record};
use crate::rules::{Evaluation, Match, RuleSet, Share};
use crate::time::{ClockStep, Timestamp};

pub use access::{
    Authority, Fault, Grant, Inquiry, JwksError, Origin, Peer, Profile, TokenIssuer, TokenRefused,
};
pub use damage::{Contained, Damage};
pub use denied::{Denied, DeniedKind};
pub use entities::EntityRefused;
pub use errors::Tracking;
pub use loss::{Salvage, Salvaged};
pub use management::Response;
pub use onward::WantedBody;
pub use recovery::Snapshot;
pub use tier::Tier;

/// A connection, for the life of the broker; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// What a connection reports.
#[derive(Debug)]
pub enum Input {
    /// What its engine reported.
    Event(Event),
    /// A delivery could not be sent, for its link has no credit any more.
    Returned {
        /// The message's lock.
        token: LockToken,
        /// The link it was for.
        link: LinkId,
    },
    /// Messages for a receiver were written to its peer.
    Written {
        /// The receiver's link.
        link: LinkId,
        /// Bytes of the messages as they are kept.
        bytes: u64,
    },
    /// So many bytes of [`Reply::Respond`] were written to the peer, or given up.
    Answered(u64),
}

/// What a connection is to do.
#[derive(Debug)]
pub enum Reply {
    /// Let a link in.
    AcceptLink(LinkId, Accept),
    /// Turn a link away.
    RefuseLink(LinkId, Denied),
    /// Send a message.
    Deliver(LinkId, Handover),
    /// All that a drain was to bring has been sent: credit up to this limit is used up.
    Drained(LinkId, u32),
    /// Say what became of a message that came in.
    SettleIncoming {
        /// The link it came on.
        link: LinkId,
        /// The delivery.
        delivery: DeliveryId,
        /// What became of it.
        outcome: Outcome,
        /// The peer settled it already: only credit is told.
        settled: bool,
    },
    /// Say what became of a decision about a message that went out.
    SettleOutgoing(LinkId, DeliveryId, Outcome),
    /// Answer a request.
    Respond(LinkId, Box<Response>),
    /// End a link.
    Detach(LinkId, Denied),
    /// End the connection, for this reason.
    Close(Refusal),
    /// Say whether the peer is who it says it is.
    Authenticated(bool),
    /// The peer has proved a right: what is kept tight for strangers may be let go.
    Admitted,
}

/// A reply and when it may leave.
#[derive(Debug)]
pub struct Routed {
    /// For whom.
    pub connection: ConnectionId,
    /// The group of records that must be durable first; 0 for none.
    pub rests_on: u64,
    /// What to do.
    pub reply: Reply,
}

/// What surrounds a step.
pub struct StepContext<'a> {
    /// The time.
    pub now: Timestamp,
    /// Where records go.
    pub journal: &'a mut dyn Journal,
    /// The number of the group of records that the journal is putting together; at least 1, and
    /// never smaller than in the step before.
    pub group: u64,
}

/// A namespace and all that is in it.
#[derive(Debug)]
pub struct Broker {
    /// By the form of the path that compares without case.
    by_path: BTreeMap<String, Entity>,
    /// By id. One that is gone leaves a word behind.
    queues: Vec<Option<Box<Node>>>,
    /// Entities that have authorization rules: they are looked through for who gives a name only.
    keyed: BTreeSet<EntityId>,
    /// The rules of the subscriptions of each topic.
    topics: BTreeMap<EntityId, Topic>,
    bodies: bodies::SharedBodies,
    /// Shared bytes that were moved, by their old position: where one message has them now.
    moved_bodies: BTreeMap<u64, (EntityId, SequenceNumber, BodyRef)>,
    /// Messages that have just come in, by the position of their bytes: those that go on at once
    /// need not be read.
    at_hand: bodies::AtHand,
    /// Queues from which messages cannot go on, or be given to who selects, before their bytes have been
    /// read.
    stalled: BTreeSet<EntityId>,
    /// Queues that messages are being sent on from in this step.
    sending_on: BTreeSet<EntityId>,
    /// When queues have something to do; a time may be too early, never too late.
    deadlines: BTreeSet<(Timestamp, EntityId)>,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Receivers of connections that have ended: messages for them may be on their way still.
    gone: BTreeMap<ConnectionId, Vec<(LinkId, EntityId)>>,
    /// The names of the namespaces; the first one answers to every host name that is no other's.
    namespaces: Vec<String>,
    /// What stands before the paths of the namespaces of the Standard tier.
    standard: BTreeSet<String>,
    /// When entities may be found to be idle; a time may be too early, never too late.
    idle_ends: BTreeSet<(Timestamp, EntityId)>,
    /// When transactions end by themselves.
    transaction_ends: BTreeSet<(Timestamp, ConnectionId, u64)>,
    /// Locks whose messages are settled in a transaction that is open, and its number.
    enlisted: BTreeMap<(EntityId, LockToken), u64>,
    next_transaction: u64,
    /// What all open transactions hold.
    transaction_bytes: usize,
    random: Random,
    /// For names of refusals, which tell nothing of the other.
    tracking: Random,
    access: access::Access,
    /// When tokens end; one that was replaced may still be here.
    token_ends: BTreeSet<(Timestamp, ConnectionId)>,
    room: Room,
    shares: memory::Shares,
    ways: ways::Ways,
    interpreted: settle::Interpreted,
    /// Kept from step to step for its memory.
    effects: Effects,
    /// Kept from publish to publish for its memory.
    matches: Vec<Match>,
    /// Likewise.
    evaluation: Evaluation,
    /// What is left of this turn for filters and selectors.
    share: Share,
    /// What is left of it for requests that look at messages.
    looks: Looks,
    /// Links whose next answer needs more looks than there were.
    unfinished: VecDeque<(ConnectionId, LinkId)>,
    /// The queue of `stalled` that had its turn last.
    last_stalled: EntityId,
    /// For how many messages bytes are wanted at a time: for as many as a share lasts.
    read_back_count: usize,
    /// What connections are to do, in order.
    replies: Vec<Routed>,
}

/// Whether the store can take more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It can.
    Enough,
    /// What is there can be settled, and nothing be added.
    None,
}

/// What a topic is beside its queue.
#[derive(Debug, Default)]
struct Topic {
    subscriptions: BTreeSet<EntityId>,
    rules: RuleSet,
    /// Its first message, if some of the rules have been looked at.
    paused: Option<Box<onward::Paused>>,
}

/// An entity: three queues, for messages, dead letters, and what could not be forwarded.
#[derive(Debug, Clone)]
struct Entity {
    path: String,
    base: EntityId,
    /// Never another; here, lists pass over many entities without a look at each.
    kind: EntityKind,
}

#[derive(Debug)]
struct Node {
    queue: Queue,
    /// The group of its newest record.
    group: u64,
    /// The time for which it stands in `deadlines`.
    armed: Option<Timestamp>,
    /// As clients know it, for error texts.
    address: EntityAddress,
    /// Where its messages go on to, if they do.
    onward: Option<onward::Onward>,
    /// From when on the entity is idle.
    last_used: Timestamp,
    /// When a client last used it, since the start.
    accessed_at: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Connection {
    /// What stands before the paths of its namespace's entities.
    prefix: String,
    /// The host by which its peer calls the namespace.
    host: String,
    origin: Origin,
    /// What it has proved.
    grants: Vec<Grant>,
    /// It has proved something once.
    admitted: bool,
    /// What it calls itself.
    container_id: String,
    /// It says that it brings JMS 2.0.
    brings_jms: bool,
    links: BTreeMap<LinkId, Link>,
    /// Receivers that have gone of late: messages for them may be on their way, and come back.
    departed: VecDeque<(LinkId, EntityId)>,
    /// What links of it have for themselves.
    holdings: BTreeMap<LinkId, jms::Holding>,
    /// Calls whose answers have no link yet.
    orphans: VecDeque<management::Call>,
    /// Bytes of calls that wait for their answers to leave.
    waiting: usize,
    way: ways::Way,
    transactions: transactions::Open,
    /// By the AMQP sessions that have a transaction coordinator.
    groups: BTreeMap<SessionId, transaction_scope::Group>,
    /// What is counted of it; nothing before it has a link or a token.
    kept: Option<kept::Kept>,
}

#[derive(Debug)]
enum Link {
    /// Messages come in for a queue or a topic.
    Sender {
        queue: EntityId,
        /// Where they go on to from there at once, if the sender says so.
        destination: Option<std::sync::Arc<str>>,
        /// By way of which entity they go in transactions, if its session has a coordinator that was
        /// there first.
        group: Option<EntityId>,
    },
    /// Messages go out of a queue.
    Receiver {
        queue: EntityId,
        /// Its name, if it holds a message session: requests about the session name it.
        name: Option<Box<str>>,
    },
    /// It is not let in yet: it waits for a message session.
    Waiting { queue: EntityId, name: Box<str> },
    /// Transactions are declared and discharged.
    Coordinator { session: SessionId },
    /// Requests come in.
    Requests {
        node: links::ServiceNode,
        session: SessionId,
    },
    /// Responses go out.
    Responses(links::ResponseLink),
}

impl Broker {
    /// Makes an empty namespace.
    #[must_use]
    pub fn new(seed: u64, profile: Profile) -> Self {
        Self {
            by_path: BTreeMap::new(),
            queues: Vec::new(),
            keyed: BTreeSet::new(),
            topics: BTreeMap::new(),
            bodies: bodies::SharedBodies::default(),
            moved_bodies: BTreeMap::new(),
            at_hand: bodies::AtHand::default(),
            stalled: BTreeSet::new(),
            sending_on: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            connections: BTreeMap::new(),
            gone: BTreeMap::new(),
            namespaces: Vec::new(),
            standard: BTreeSet::new(),
            idle_ends: BTreeSet::new(),
            transaction_ends: BTreeSet::new(),
            enlisted: BTreeMap::new(),
            next_transaction: 1,
            transaction_bytes: 0,
            random: Random::new(seed),
            tracking: Random::new(access::one_way(&seed.to_le_bytes())),
            access: access::Access::new(profile),
            token_ends: BTreeSet::new(),
            room: Room::Enough,
            shares: memory::Shares::default(),
            ways: ways::Ways::new(usize::MAX),
            interpreted: settle::Interpreted::default(),
            effects: Effects::default(),
            matches: Vec::new(),
            evaluation: Evaluation::default(),
            share: Share::default(),
            looks: Looks::default(),
            unfinished: VecDeque::new(),
            last_stalled: EntityId(0),
            read_back_count: limits::READ_BACK_MESSAGES,
            replies: Vec::new(),
        }
    }

    /// Does what a connection's report asks for.
    pub fn apply(&mut self, cx: &mut StepContext<'_>, connection: ConnectionId, input: Input) {
        self.end_transactions(cx.now);
        self.end_tokens(cx);
        match input {
            Input::Event(event) => self.apply_event(cx, connection, event),
            Input::Returned { token, link } => self.returned(cx, connection, link, token),
            Input::Written { link, bytes } => self.written(cx, connection, link, bytes),
            Input::Answered(bytes) => {
                self.unload(cx, connection, ways::Load::Answers(bytes));
            }
        }
    }

    /// Does what is due, or some of it: then [`Broker::poll_timeout`] stays where it is.
    pub fn handle_timeout(&mut self, cx: &mut StepContext<'_>) {
        self.share = Share::default();
        self.looks = Looks::default();
        self.go_on_unfinished(cx);
        self.end_transactions(cx.now);
        self.end_tokens(cx);
        self.tell_refusals(cx.now);
        self.close_stuck(cx);
        self.delete_idle(cx);
        loop {
            let due = self.deadlines.iter().take_while(|&&(at, _)| at <= cx.now);
            let due: Vec<EntityId> = due.take(limits::DUE_QUEUES).map(|&(_, id)| id).collect();
            let mut is_left = due.is_empty();
            for id in due {
                self.with_queue(cx, id, |_, _| ());
                is_left |= self.is_due(cx.now, id);
            }
            // Others have their turn, however much one queue has to do.
            if is_left {
                return;
            }
        }
    }

    /// Follows a clock that was set, to `now`, before the next step. Locks, waits for message
    /// sessions, transactions, idle deletion and throttling have as much time left as before; schedules,
    /// ends of life and of tokens are at their time by the clock.
    ///
    /// This costs time by the number of queues and locks, which a clock that is set is worth.
    pub fn follow_clock(&mut self, now: Timestamp, step: ClockStep) {
        self.move_transaction_ends(step);
        self.move_idle_ends(step);
        self.move_ways(step);
        self.access.follow_clock(step);
        for node in self.queues.iter_mut().flatten() {
            node.queue.follow_clock(now, step);
        }
        self.arm(now);
    }

    /// Returns the replies of the steps since it was emptied last, to be drained in place.
    pub fn replies(&mut self) -> &mut Vec<Routed> {
        &mut self.replies
    }

    /// Returns the time at which [`Broker::handle_timeout`] may have something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let queue = self.deadlines.first().map(|&(at, _)| at);
        let transaction = self.transaction_ends.first().map(|&(at, ..)| at);
        let idle = self.idle_ends.first().map(|&(at, _)| at);
        let token = self.token_ends.first().map(|&(at, _)| at);
        if self.has_unfinished() {
            return Some(Timestamp::EPOCH);
        }
        let all = queue.into_iter().chain(transaction).chain(idle);
        all.chain(token)
            .chain(self.next_refusals())
            .chain(self.ways.poll_timeout())
            .min()
    }

    /// Names the namespaces, the first of which answers to every host name that is no other's.
    pub fn set_namespaces<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        self.namespaces = names.map(str::to_lowercase).collect();
    }

    /// Returns the host by which a connection's peer calls its namespace.
    fn host_of(&self, connection: ConnectionId) -> String {
        let known = self.connections.get(&connection);
        let host = known.map(|connection| &*connection.host);
        host.filter(|host| !host.is_empty())
            .unwrap_or("localhost")
            .to_owned()
    }

    /// Finds the namespace that a peer means by a host name: by its first label. Returns what stands
    /// before the paths of its entities.
    fn namespace_of(&self, hostname: Option<&str>) -> String {
        let label = hostname.unwrap_or_default().split(['.', ':']).next();
        let label = label.unwrap_or_default();
        self.prefix_of(label)
    }

    /// Returns what stands before the paths of a namespace's entities: of one that is not known, as
    /// of the first.
    #[must_use]
    pub fn prefix_of(&self, namespace: &str) -> String {
        let name = namespace.to_lowercase();
        if self.namespaces.iter().skip(1).any(|other| *other == name) {
            return address::namespace_prefix(&name);
        }
        String::new()
    }

    /// Says whether the store can take more messages.
    pub fn set_room(&mut self, room: Room) {
        self.room = room;
    }

    /// Returns whether a send to some entity would be taken now.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.room == Room::Enough
    }

    /// Returns the queue at an address, as tests and tools see it.
    #[must_use]
    pub fn find(&self, address: &EntityAddress) -> Option<&Queue> {
        self.queue(self.resolve(address)?)
    }

    /// Returns the properties of the entity at a path.
    #[must_use]
    pub fn description(&self, path: &str) -> Option<&Description> {
        Some(self.queue(self.resolve_path(path)?)?.description())
    }

    fn apply_event(&mut self, cx: &mut StepContext<'_>, connection: ConnectionId, event: Event) {
        match event {
            Event::Transfer {
                link,
                delivery,
                payload,
                message_format,
                settled,
                transaction,
            } => {
                let incoming = send::Incoming {
                    link,
                    delivery,
                    payload,
                    message_format,
                    settled,
                    transaction,
                };
                self.transfer(cx, connection, incoming);
            }
            Event::Disposition {
                link,
                delivery,
                tag,
                settled,
                outcome,
                transaction,
            } => {
                let token = LockToken::from_tag(tag);
                let decision = settle::Decision {
                    link,
                    delivery,
                    token,
                    settled,
                    outcome,
                    transaction,
                };
                self.disposition(cx, connection, decision);
            }
            Event::Credit { link, limit, drain } => {
                self.credit(cx, connection, link, limit, drain);
            }
            Event::AttachRequested(link, attach) => self.attach(cx, connection, link, &attach),
            Event::Detached { link, unsent, .. } => {
                self.detached(cx, connection, link, &unsent);
            }
            Event::Unsent { link, tags } => self.unsent(cx, connection, link, &tags),
            Event::Authenticating { identity } => {
                self.authenticate(cx, connection, &identity);
            }
            Event::Opened {
                container_id,
                hostname,
                is_client_provider,
                ..
            } => {
                let state = self.connection(connection);
                state.container_id = container_id;
                state.brings_jms = is_client_provider;
                self.opened(connection, hostname.as_deref());
            }
            Event::Closed { unsent, .. } => self.closed(cx, connection, &unsent),
            Event::RefusedInTransaction {
                transaction,
                reason,
            } => self.spoil(connection, &transaction, &reason),
            Event::AttachAnswered(..) => {}
        }
    }

    /// Runs a step of one queue, and then all that comes of it: what goes to other queues too.
    fn with_queue<T>(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        step: impl FnOnce(&mut Queue, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let result = self.step(cx, id, step)?;
        let goes_on = self
            .node(id)
            .is_some_and(|node| node.onward.is_some() && !node.queue.is_empty());
        if goes_on {
            self.send_on(cx, id);
        } else if self.queue(id).is_some_and(Queue::is_undecided) {
            self.decide(cx, id);
        }
        Some(result)
    }

    /// Runs a step of one queue: first what is due, then `step`, then the departures to its dead
    /// letters.
    fn step<T>(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        step: impl FnOnce(&mut Queue, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mut effects = std::mem::take(&mut self.effects);
        let node = node_mut(&mut self.queues, id)?;
        let mut journal = Watched {
            inner: &mut *cx.journal,
            bodies: &mut self.bodies,
            wrote: false,
        };
        let mut queue_cx = Context {
            now: cx.now,
            journal: &mut journal,
            random: &mut self.random,
            effects: &mut effects,
        };
        if node.armed.is_some_and(|at| at <= cx.now) {
            node.queue
                .handle_timeout(&mut queue_cx, limits::DUE_MESSAGES);
        }
        let result = step(&mut node.queue, &mut queue_cx);
        // A departure is recorded where it arrives, in this same group.
        if journal.wrote || !effects.departures.is_empty() {
            node.group = cx.group;
        }
        let group = node.group;
        self.rearm(cx.now, id);
        self.deliver(cx, group, &mut effects);
        for departure in std::mem::take(&mut effects.departures) {
            self.effects = effects;
            self.arrive(cx, departure, Arriving::default());
            effects = std::mem::take(&mut self.effects);
        }
        self.effects = effects;
        Some(result)
    }

    /// Returns whether a queue has something to do.
    fn is_due(&self, now: Timestamp, id: EntityId) -> bool {
        let armed = self.node(id).and_then(|node| node.armed);
        armed.is_some_and(|armed| armed <= now)
    }

    /// Keeps a queue's place among the deadlines; one that lies too early is left alone, so that
    /// settling the next lock to end costs nothing.
    fn rearm(&mut self, now: Timestamp, id: EntityId) {
        let Some(node) = node_mut(&mut self.queues, id) else {
            return;
        };
        node.queue.count_memory();
        let next = node.queue.poll_timeout();
        let stands = match (node.armed, next) {
            (Some(armed), Some(next)) => armed <= next && now < armed,
            (Some(armed), None) => now < armed,
            (None, None) => true,
            (None, Some(_)) => false,
        };
        if !stands {
            if let Some(armed) = node.armed {
                self.deadlines.remove(&(armed, id));
            }
            node.armed = next;
            if let Some(next) = next {
                self.deadlines.insert((next, id));
            }
        }
    }

    fn resolve(&self, address: &EntityAddress) -> Option<EntityId> {
        let base = self.resolve_path(&address.path)?;
        Some(match address.queue {
            SubQueue::Main => base,
            SubQueue::DeadLetter => base.dead_letters(),
            SubQueue::TransferDeadLetter => base.transfer_dead_letters(),
        })
    }

    fn queue(&self, id: EntityId) -> Option<&Queue> {
        Some(&self.node(id)?.queue)
    }

    fn node(&self, id: EntityId) -> Option<&Node> {
        self.queues.get(usize::try_from(id.0).ok()?)?.as_deref()
    }

    fn node_mut(&mut self, id: EntityId) -> Option<&mut Node> {
        node_mut(&mut self.queues, id)
    }

    fn link(&self, connection: ConnectionId, link: LinkId) -> Option<&Link> {
        self.connections.get(&connection)?.links.get(&link)
    }
}

/// A journal that remembers whether it was written to, and knows of bytes that are shared.
struct Watched<'a> {
    inner: &'a mut dyn Journal,
    bodies: &'a mut bodies::SharedBodies,
    wrote: bool,
}

impl Journal for Watched<'_> {
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef> {
        self.wrote = true;
        self.inner.append(record)
    }

    fn release(&mut self, body: BodyRef) {
        if self.bodies.release(body) {
            self.inner.release(body);
        }
    }
}

impl std::fmt::Debug for StepContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepContext")
            .field("now", &self.now)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

fn node_mut(queues: &mut [Option<Box<Node>>], id: EntityId) -> Option<&mut Node> {
    queues.get_mut(usize::try_from(id.0).ok()?)?.as_deref_mut()
}

/// The name that a link has as a receiver of a queue.
fn consumer_id(connection: ConnectionId, link: LinkId) -> ConsumerId {
    ConsumerId(u64::from(connection.0) << 32 | u64::from(link.0))
}

/// The link behind a receiver of a queue.
fn link_of(consumer: ConsumerId) -> (ConnectionId, LinkId) {
    let low = u32::try_from(consumer.0 & u64::from(u32::MAX)).expect("masked to 32 bits");
    let high = u32::try_from(consumer.0 >> 32).expect("32 bits are left");
    (ConnectionId(high), LinkId(low))
}
