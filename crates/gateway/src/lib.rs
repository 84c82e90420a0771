//! The gateway: the protocols of a shard's clients, AMQP and HTTP.
//!
//! [`Gateway`] has the connections, their links and grants, the receives over HTTP, and the namespaces that they work with. Its owner
//! calls [`Gateway::apply`] with what connections report, and passes [`Gateway::replies`] on. Each reply says
//! which group of records it rests on, and may leave only when that group is durable.
//!
//! Promises: what one entity tells one link comes in the order in which it happened; a reply about a link that
//! has gone is harmless.
//!
//! Leaves to others: bytes on the wire ([`jitney_amqp`]), what happens to messages and entities
//! ([`jitney_broker::namespace`]), what a token proves ([`jitney_broker::access`]), where records are kept.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

pub mod admin;
#[cfg(test)]
mod administration_tests;
pub mod amqp;
pub mod denied;
mod first_use;
pub mod limits;
pub mod messages;
pub mod operations;
pub mod request;
pub mod request_log;
pub mod rest;
mod statistics;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use jitney_amqp::{Accept, DeliveryId, Event, Identity, LinkId, Outcome, Refusal};
use jitney_base::ids::{BodyRef, ConnectionId, EntityId, LockToken};
use jitney_base::memory::Memory;
use jitney_base::time::{ClockStep, Timestamp};
use jitney_broker::access::{Access, Attempt, Profile};
use jitney_broker::namespace::{
    Contained, Damage, Deliveries, Denied, EntityChange, EntityRefused, JobPage, Namespaces,
    StepContext, Tier, WantedBody,
};
use jitney_queue::{Context, Description, Handover, Queue};
use jitney_rules::Rule;

pub use amqp::management::Response;
pub use denied::Tracking;
pub use statistics::Statistics;

use amqp::Link;
use amqp::connections::{Connection, Connections};
use amqp::management::Scans;
use amqp::settle::Interpreted;
use amqp::windows::Load;
use denied::Refusals;
use messages::{ReceiveReply, Receives};

/// A report of a connection to the shard that serves it.
#[derive(Debug)]
pub enum Report {
    /// An event of its engine.
    Event(Event),
    /// A delivery could not be sent: its link has no credit any more.
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
    /// The identity that a peer claims in SASL, if other shards are asked about it too or one has accepted it: a
    /// refusal is not counted as a failed authentication.
    TryIdentity(Identity),
}

/// An instruction for a connection.
#[derive(Debug)]
pub enum Reply {
    /// Accept a link.
    AcceptLink(LinkId, Box<Accept>),
    /// Refuse a link.
    RefuseLink(LinkId, Denied),
    /// Send a message.
    Deliver(LinkId, Box<Handover>),
    /// A drain is complete: credit up to this limit is used up.
    Drained(LinkId, u32),
    /// Settle a message that was received.
    SettleIncoming {
        /// The link it came on.
        link: LinkId,
        /// The delivery.
        delivery: DeliveryId,
        /// Its outcome.
        outcome: Outcome,
        /// The peer settled it already.
        settled: bool,
        /// What becomes of its credit.
        credit: CreditReturn,
    },
    /// Return the credit of a delivery that came on this link and was settled before.
    ReturnCredit(LinkId),
    /// Settle a message that was sent.
    SettleOutgoing(LinkId, DeliveryId, Outcome),
    /// Send a response.
    Respond(LinkId, Box<Response>),
    /// Detach a link.
    Detach(LinkId, Denied),
    /// Close the connection, for this reason.
    Close(Refusal),
    /// Say whether the identity that the peer claims in SASL is genuine.
    Authenticated(bool),
    /// The peer is authorized for something: it has the limits of authorized peers from now on.
    Admitted,
}

/// When the credit of a delivery that came in is returned to its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreditReturn {
    /// With its settlement.
    Now,
    /// By [`Reply::ReturnCredit`].
    Later,
}

/// A reply and when it may leave.
#[derive(Debug)]
pub struct QueuedReply {
    /// The connection.
    pub connection: ConnectionId,
    /// The group of records that must be durable first; 0 for none.
    pub durable_after: u64,
    /// The instruction.
    pub reply: Reply,
}

/// Something that a step tells a client.
#[derive(Debug)]
pub enum StepReply {
    /// To a connection.
    Connection(QueuedReply),
    /// To a receive without a link.
    Receive(ReceiveReply),
}

impl From<QueuedReply> for StepReply {
    fn from(routed: QueuedReply) -> Self {
        Self::Connection(routed)
    }
}

impl From<ReceiveReply> for StepReply {
    fn from(reply: ReceiveReply) -> Self {
        Self::Receive(reply)
    }
}

/// What steps tell clients, in order.
#[derive(Debug, Default)]
struct Replies(Vec<StepReply>);

impl Replies {
    fn push(&mut self, reply: impl Into<StepReply>) {
        self.0.push(reply.into());
    }

    fn extend<R: Into<StepReply>>(&mut self, replies: impl IntoIterator<Item = R>) {
        self.0.extend(replies.into_iter().map(Into::into));
    }
}

/// The clients of a shard's namespaces, and the namespaces.
#[derive(Debug)]
pub struct Gateway {
    namespaces: Namespaces,
    access: Access,
    connections: Connections,
    receives: Receives,
    scans: Scans,
    refusals: Refusals,
    /// Clients create entities by using them.
    creates_on_use: bool,
    replies: Replies,
    interpreted: Interpreted,
    /// Empty between steps; kept for its memory.
    deliveries: Deliveries,
}

impl Gateway {
    /// Makes a gateway to an empty namespace.
    #[must_use]
    pub fn new(seed: u64, profile: Profile) -> Self {
        Self {
            namespaces: Namespaces::new(seed),
            access: Access::new(profile),
            connections: Connections::new(usize::MAX),
            receives: Receives::default(),
            scans: Scans::default(),
            refusals: Refusals::new(seed),
            creates_on_use: false,
            replies: Replies::default(),
            interpreted: Interpreted::default(),
            deliveries: Deliveries::default(),
        }
    }

    /// Returns the namespaces.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// Returns the namespaces, for what concerns no client: replay, snapshots, and the moving of bodies.
    pub fn namespaces_mut(&mut self) -> &mut Namespaces {
        &mut self.namespaces
    }

    /// Says how much memory queues and what waits to be written may take, before the first queue is there.
    pub fn set_memory(&mut self, memory: Memory) {
        self.connections = Connections::new(memory.outgoing());
        self.namespaces.set_memory(memory);
    }

    /// Handles a connection's report.
    pub fn apply(&mut self, cx: &mut StepContext<'_>, connection: ConnectionId, report: Report) {
        self.end_transactions(cx.now);
        self.end_tokens(cx);
        let before = self.replies.0.len();
        match report {
            Report::Event(event) => self.apply_event(cx, connection, event),
            Report::Returned { token, link } => self.returned(cx, connection, link, token),
            Report::Written { link, bytes } => self.written(cx, connection, link, bytes),
            Report::Answered(bytes) => {
                self.unload(cx, connection, Load::Answers(bytes));
            }
            Report::TryIdentity(identity) => {
                self.authenticate(cx.now, connection, &identity, Attempt::OneOfSeveral);
            }
        }
        self.log_links(before);
    }

    /// Does what is due, or some of it: then [`Gateway::poll_timeout`] stays where it is.
    pub fn handle_timeout(&mut self, cx: &mut StepContext<'_>) {
        self.scans.begin_turn();
        self.namespaces.begin_turn();
        self.resume_unfinished(cx);
        self.end_transactions(cx.now);
        self.end_tokens(cx);
        self.end_early_attaches(cx.now);
        self.end_waits(cx);
        self.log_refusals(cx.now);
        self.close_stuck(cx);
        self.delete_idle(cx);
        loop {
            let due = self.namespaces.due(cx.now);
            let mut is_left = due.is_empty();
            for id in due {
                self.with_queue(cx, id, |_, _| ());
                is_left |= self.namespaces.is_due(cx.now, id);
            }
            // Other work has its turn, however much one queue has to do.
            if is_left {
                return;
            }
        }
    }

    /// Follows a clock that was set, to `now`, before the next step. Locks, waits for message
    /// sessions, transactions, idle deletion and throttling have as much time left as before; schedules,
    /// ends of life and of tokens are at their time by the clock.
    ///
    /// This costs time by the number of queues and locks.
    pub fn follow_clock(&mut self, now: Timestamp, step: ClockStep) {
        self.namespaces.follow_clock(now, step);
        self.connections.follow_clock(step);
        self.receives.follow_clock(step);
        self.access.follow_clock(step);
    }

    /// Ends a turn: requests that look at messages have their budget again, whether anything was due in it or not.
    pub fn finish_turn(&mut self) {
        self.scans.begin_turn();
    }

    /// Returns the time at which [`Gateway::handle_timeout`] may have something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.has_unfinished() {
            return Some(Timestamp::EPOCH);
        }
        let all = [
            self.namespaces.poll_timeout(),
            self.connections.poll_timeout(),
            self.access.poll_timeout(),
            self.receives.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Returns the replies of the steps since it was emptied last, to be drained in place.
    pub fn replies(&mut self) -> &mut Vec<StepReply> {
        &mut self.replies.0
    }

    /// Makes an entity, or gives the one at this path these properties. A new subscription, at
    /// `topic/Subscriptions/name`, gets the rule `$Default`.
    ///
    /// Returns whether anything changed.
    ///
    /// # Errors
    ///
    /// Nothing changes if it cannot be.
    pub fn ensure_entity(
        &mut self,
        cx: &mut StepContext<'_>,
        path: &str,
        description: Description,
    ) -> Result<bool, EntityRefused> {
        self.with_namespaces(cx, |namespaces, cx| {
            namespaces.ensure_entity(cx, path, description)
        })
    }

    /// Makes a subscription with these rules, or gives the one at this path these properties, and
    /// makes or replaces these rules. Without rules, a new one takes every message.
    ///
    /// Returns whether anything changed.
    ///
    /// # Errors
    ///
    /// If it cannot be; of a subscription that is there, what comes before the rule that is refused
    /// is changed.
    pub fn ensure_subscription(
        &mut self,
        cx: &mut StepContext<'_>,
        path: &str,
        description: Description,
        rules: Vec<Rule>,
    ) -> Result<bool, EntityRefused> {
        self.with_namespaces(cx, |namespaces, cx| {
            namespaces.ensure_subscription(cx, path, description, rules)
        })
    }

    /// Deletes an entity with all that it holds; a topic with its subscriptions. Returns whether it was there.
    pub fn delete_entity(&mut self, cx: &mut StepContext<'_>, path: &str) -> bool {
        self.with_namespaces(cx, |namespaces, cx| namespaces.delete_entity(cx, path))
    }

    /// Puts a namespace into a tier. Entities that it has already and that allow larger messages
    /// than the tier does allow the tier's largest from now on.
    pub fn set_tier(&mut self, cx: &mut StepContext<'_>, namespace: &str, tier: Tier) {
        self.with_namespaces(cx, |namespaces, cx| {
            namespaces.set_tier(cx, namespace, tier);
        });
    }

    /// Returns the messages of the next step of some job.
    pub fn job_page(&mut self, cx: &mut StepContext<'_>) -> Option<JobPage> {
        self.with_namespaces(cx, Namespaces::job_page)
    }

    /// Does a step of a job, with the bytes of its messages where they were read.
    pub fn work(
        &mut self,
        cx: &mut StepContext<'_>,
        page: JobPage,
        find: &dyn Fn(BodyRef) -> Option<bytes::Bytes>,
    ) {
        self.with_namespaces(cx, |namespaces, cx| namespaces.work(cx, page, find));
    }

    /// Forwards messages whose bytes have been read, or gives them to receivers with selectors.
    pub fn read_back(&mut self, cx: &mut StepContext<'_>, found: Vec<(WantedBody, bytes::Bytes)>) {
        self.with_namespaces(cx, |namespaces, cx| namespaces.read_back(cx, found));
    }

    /// Gets ready to serve after the last record was replayed.
    pub fn replayed(&mut self, cx: &mut StepContext<'_>) {
        self.with_namespaces(cx, Namespaces::replayed);
    }

    /// Contains the damage of a message in a queue: it goes to the dead letters without its bytes.
    /// `None` if the message has gone, or has other bytes now.
    pub fn body_damaged(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        number: jitney_base::ids::SequenceNumber,
        damage: &Damage,
    ) -> Option<Contained> {
        self.with_namespaces(cx, |namespaces, cx| {
            namespaces.body_damaged(cx, queue, number, damage)
        })
    }

    fn apply_event(&mut self, cx: &mut StepContext<'_>, connection: ConnectionId, event: Event) {
        match event {
            Event::Transfer(transfer) => self.transfer(cx, connection, transfer),
            Event::Disposition(disposition) => self.disposition(cx, connection, disposition),
            Event::Credit(credit) => self.credit(cx, connection, credit),
            Event::AttachRequested(link, attach) => self.attach(cx, connection, link, &attach),
            Event::Detached { link, unsent, .. } => {
                self.detached(cx, connection, link, &unsent);
            }
            Event::Unsent { link, tags } => self.unsent(cx, connection, link, &tags),
            Event::Authenticating { identity } => {
                self.authenticate(cx.now, connection, &identity, Attempt::Last);
            }
            Event::Opened {
                container_id,
                hostname,
                is_client_provider,
                product,
                ..
            } => {
                let state = self.connection(connection);
                state.container_id = container_id;
                state.product = *product;
                state.opened_at = cx.now;
                state.brings_jms = is_client_provider;
                self.opened(connection, hostname.as_deref());
            }
            Event::Closed { unsent, .. } => self.closed(cx, connection, &unsent),
            Event::RefusedInTransaction {
                transaction,
                reason,
            } => self.abort(connection, &transaction, &reason),
            Event::AttachAnswered(..) => {}
        }
    }

    /// Runs a step of the namespaces, and passes on what it hands out to receivers.
    pub(crate) fn with_namespaces<T>(
        &mut self,
        cx: &mut StepContext<'_>,
        step: impl FnOnce(&mut Namespaces, &mut StepContext<'_>) -> T,
    ) -> T {
        let result = step(&mut self.namespaces, cx);
        self.namespaces.forward_ready(cx);
        self.pass_on(cx);
        result
    }

    /// Runs a step of one queue, and passes on what comes of it.
    fn with_queue<T>(
        &mut self,
        cx: &mut StepContext<'_>,
        id: EntityId,
        step: impl FnOnce(&mut Queue, &mut Context<'_>) -> T,
    ) -> Option<T> {
        self.with_namespaces(cx, |namespaces, cx| namespaces.with_queue(cx, id, step))
    }

    /// Passes on what queues have handed out, and ends the links to entities that have changed.
    fn pass_on(&mut self, cx: &mut StepContext<'_>) {
        let mut deliveries = std::mem::take(&mut self.deliveries);
        if self.namespaces.take_deliveries(&mut deliveries) {
            self.deliver(cx, &mut deliveries);
        }
        self.deliveries = deliveries;
        while let Some(change) = self.namespaces.next_change() {
            match change {
                EntityChange::Described(base) => {
                    self.detach_forbidden(cx, base);
                    self.end_forbidden_receives(cx, base);
                    self.with_namespaces(cx, |namespaces, cx| namespaces.resume(cx, base));
                }
                EntityChange::Deleted {
                    base,
                    address,
                    lifetime,
                } => {
                    self.detach_deleted(cx, base, &address, lifetime);
                    self.end_receives_of(cx, base, &address);
                }
            }
        }
    }

    /// Deletes the entities that have been idle for as long as they may.
    fn delete_idle(&mut self, cx: &mut StepContext<'_>) {
        while let Some(base) = self.namespaces.next_idle(cx.now) {
            self.with_namespaces(cx, |namespaces, cx| namespaces.end_idle(cx, base));
        }
    }

    /// Returns a connection, which is made if there is none.
    fn connection(&mut self, id: ConnectionId) -> &mut Connection {
        self.connections.entry(id)
    }

    fn link(&self, connection: ConnectionId, link: LinkId) -> Option<&Link> {
        self.connections.get(connection)?.links.get(&link)
    }

    fn link_mut(&mut self, connection: ConnectionId, link: LinkId) -> Option<&mut Link> {
        self.connections.get_mut(connection)?.links.get_mut(&link)
    }

    /// Returns the host by which a connection's peer calls its namespace.
    fn host_of(&self, connection: ConnectionId) -> String {
        let known = self.connections.get(connection);
        let host = known.map(|connection| &*connection.host);
        host.filter(|host| !host.is_empty())
            .unwrap_or("localhost")
            .to_owned()
    }

    /// Marks a reason for a refusal with a tracking id.
    fn tracked(&mut self, now: Timestamp, denied: Denied) -> Denied {
        self.refusals.tracked(now, denied)
    }

    /// Makes AMQP's error of a reason for a refusal.
    fn refusal(&mut self, now: Timestamp, denied: Denied) -> Refusal {
        denied::refusal(self.tracked(now, denied))
    }

    /// Checks what holds between steps. It looks at every entity, connection and open transaction.
    ///
    /// # Panics
    ///
    /// If it does not hold, which is a bug.
    pub fn check(&self) {
        self.namespaces.check();
        self.connections.check();
        self.check_receives();
        for (id, connection) in self.connections.iter() {
            let open = self.namespaces.transactions().count_of(id);
            assert_eq!(connection.transactions.len(), open);
        }
    }
}
