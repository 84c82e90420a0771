//! A shard: one or more namespaces with their journal, as one state machine without I/O.
//!
//! A [`Shard`] decides everything that a server decides about messages: what an input does, which
//! replies wait for which group of records, which bodies are read back and stay readable until they
//! are, when checkpoints and compaction are due, and when no more messages are accepted. The server
//! around it carries out [`Output`]s and hands in [`Input`]s: it owns sockets, files, threads and
//! clocks, and decides nothing.
//!
//! ```text
//!  connection reports, requests ──► handle ──► broker step ──records──► open group
//!                                                   │ replies, each with the group it rests on
//!  journal progress, reads done ──► handle          ▼
//!                                             durability ──► reads ──► outgoing of a connection
//!  finish_turn: seal the group, forward, checkpoint, compact ──► poll_output
//! ```
//!
//! The order of calls in a turn: any number of [`Shard::handle`], each with [`Shard::seal_if_large`]
//! behind it, one [`Shard::handle_timeout`], one [`Shard::finish_turn`], and [`Shard::poll_output`] until
//! it returns nothing. The next turn is due at [`Shard::poll_timeout`], or with the next input.
//!
//! Invariants: a reply leaves only when the group that it rests on is durable; replies of one
//! connection that rest on the same group leave in their order, and none overtakes one that waits for
//! its bytes; the segment of a body that will be read stays until the read is done.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

mod check;
mod damage;
mod delivery;
mod durability;
pub mod inline;
mod input;
mod jobs;
pub mod limits;
mod maintenance;
mod observer;
mod output;
pub mod peer;
mod reads;
mod receives;
mod recovery;
pub mod routing;
mod shortage;
mod statistics;
#[cfg(test)]
mod tests;
pub mod transfer;

use std::collections::{BTreeMap, VecDeque};

use tracing::{info, warn};

use jitney_amqp::{Condition, Refusal};
use jitney_base::ids::ConnectionId;
use jitney_base::memory::Memory;
use jitney_base::time::{ClockStep, Timestamp};
use jitney_broker::access::{Authority, Inquiry, Origin, TokenRefused};
use jitney_broker::namespace::StepContext;
use jitney_gateway::messages::{HandedOut, ReceiveReply};
use jitney_gateway::request::{Outcome, Requester};
use jitney_gateway::{Gateway, QueuedReply, Reply, StepReply};
use jitney_journal::Writer;

pub use check::{Checked, DamageEffect, DamagePlace, Finding, JournalContents, check};
pub use delivery::{Backlog, Outgoing};
pub use input::{
    Call, Credential, Input, Pressure, ReceiveAnswer, ReceiveRequest, ReceivedMessage,
    RequestAnswer,
};
pub use jitney_base::ids::RequestId;
pub use jitney_gateway::Report;
pub use maintenance::{CheckpointTask, WrittenCheckpoint};
pub use observer::{Cause, DamageUser, Observation, Observer};
pub use output::{Answer, Output};
pub use reads::{ReadDone, ReadPurpose, ReadRequest, read};
pub use recovery::{Ready, Recovering};
pub use shortage::{Shortage, WHAT_FREES};
pub use statistics::{MaintenanceCounters, Statistics};

use durability::{Durability, Pending};
use maintenance::Maintenance;

/// In debug builds, the gateway is checked with each group whose number is a multiple of this.
const CHECKED_GROUPS: u64 = 16;

/// One or more namespaces and their journal.
pub struct Shard {
    gateway: Gateway,
    journal: Writer,
    durability: Durability,
    maintenance: Maintenance,
    connections: BTreeMap<ConnectionId, Connection>,
    outputs: VecDeque<Output>,
    /// Connections that have something in [`Connection::outgoing`] since the last turn.
    unsent: Vec<ConnectionId>,
    /// Empty between steps; kept for its memory.
    replies: Vec<StepReply>,
    memory: Memory,
    pressure: Pressure,
    store: Store,
    /// Answers whose bytes are being read.
    answers: BTreeMap<RequestId, Outcome>,
    /// Messages for receives whose bytes are being read, or were while nothing was released.
    receives: BTreeMap<RequestId, Box<HandedOut>>,
    /// The latter: they are to be read again. Their bodies are pinned.
    receives_again: Vec<RequestId>,
    /// When the open group is sealed although no client waits for its records; none if it has no records.
    held_until: Option<Timestamp>,
    /// Messages that have lost their bytes since the start.
    damaged: u64,
    is_stopping: bool,
    observer: Option<Box<dyn Observer + Send>>,
}

/// The state of the journal's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    Here,
    /// It cannot be reached, or it is unknown whether a group was appended: nothing is released.
    Away,
    /// Another server owns the shard: nothing is released any more.
    Fenced,
}

/// When a shard has something to do by itself, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A compaction, a forward or a request is unfinished: it continues in the next turn.
    Unfinished,
    /// Something in a namespace is due: a lock, a schedule, an end of life, a transaction, a token.
    Due,
    /// Records that no client waits for are to be made durable.
    Held,
}

/// A connection, as the shard knows it.
#[derive(Debug, Default)]
struct Connection {
    /// Output that the server has not taken yet.
    outgoing: VecDeque<Outgoing>,
    /// What was left of the server's last output for it when more came.
    backlog: Backlog,
    /// Replies behind one whose bytes are being read, that one first. Their bodies are pinned.
    held: VecDeque<QueuedReply>,
    /// Its read was done while nothing was released: it is to be read again.
    reads_again: bool,
}

/// The parts of a shard.
pub struct Parts {
    /// The namespaces.
    pub gateway: Gateway,
    /// The journal's end, as recovery has left it.
    pub journal: Writer,
    /// The newest group of the journal; it is durable.
    pub last_group: u64,
    /// The memory of what the namespaces hold.
    pub memory: Memory,
    /// Bytes of groups that may wait for the disk at most.
    pub in_flight_bytes: usize,
}

impl Shard {
    /// Makes a shard of what recovery has found.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            gateway: parts.gateway,
            journal: parts.journal,
            durability: Durability::new(parts.last_group, parts.in_flight_bytes),
            maintenance: Maintenance::default(),
            connections: BTreeMap::new(),
            outputs: VecDeque::new(),
            unsent: Vec::new(),
            replies: Vec::new(),
            memory: parts.memory,
            pressure: Pressure::default(),
            store: Store::Here,
            answers: BTreeMap::new(),
            receives: BTreeMap::new(),
            receives_again: Vec::new(),
            held_until: None,
            damaged: 0,
            is_stopping: false,
            observer: None,
        }
    }

    /// Reports every step and every sealed group to `observer` from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer + Send>) {
        self.observer = Some(observer);
    }

    /// Does what an input asks for.
    pub fn handle(&mut self, now: Timestamp, input: Input) {
        if self.is_fenced() {
            return self.handle_fenced(input);
        }
        match input {
            Input::Connected(id, origin) => self.connected(id, origin),
            Input::Reports(connection, reports) => {
                self.step(now, Cause::Reports, |gateway, cx| {
                    for report in reports {
                        gateway.apply(cx, connection, report);
                    }
                });
            }
            Input::Disconnected(id, left) => self.disconnected(now, id, &left),
            Input::Request(request, call) => self.request(now, request, *call),
            Input::Receive(request, wanted) => self.receive(now, request, &wanted),
            Input::CancelReceive(request) => self.cancel_receive(now, request),
            Input::ReturnReceived(queue, token) => self.return_received(now, queue, token),
            Input::IdentityKeys(keys) => {
                // The server has checked that they can be read.
                let _ = self.gateway.set_identity_keys(&keys);
            }
            Input::Pressure(pressure) => {
                self.journal.set_cache_bytes(pressure.cache_bytes);
                self.pressure = pressure;
            }
            Input::ClockStep(step) => self.follow_clock(now, step),
            Input::Durable { durable, synced } => self.take_progress(now, durable, synced),
            Input::Read(done) => self.take_read(now, done),
            Input::CheckpointWritten(written) => self.checkpoint_written(written),
            Input::StoreAway => self.suspend(now, "the journal's store cannot be reached"),
            Input::AppendUnknown { group } => {
                warn!(group, "it is unknown whether a group was appended");
                self.suspend(now, "the outcome of an append is unknown");
            }
            Input::StoreBack => self.resume(now),
            Input::AppendFenced => self.fence(now),
            Input::Stop => self.stop(now),
        }
    }

    fn request(&mut self, now: Timestamp, id: RequestId, call: Call) {
        let Call {
            credential,
            request,
        } = call;
        let requester = match credential {
            Credential::Authorized(requester) => requester,
            Credential::Token(inquiry) => match self.gateway.authorize(now, &inquiry) {
                Ok(authority) => {
                    let host = inquiry.host;
                    Requester { host, authority }
                }
                Err(refused) => {
                    let answer = Answer::Unauthorized(refused);
                    return self.outputs.push_back(Output::Answer(id, answer));
                }
            },
        };
        let outcome = self.step(now, Cause::Request, |gateway, cx| {
            request.run(gateway, cx, &requester)
        });
        self.answer_when_durable(id, outcome);
    }

    /// Ends the open group if it is large enough to be written by itself; to be called between inputs,
    /// so that the disk has work during a turn.
    pub fn seal_if_large(&mut self, now: Timestamp) {
        if jitney_broker::limits::GROUP_BYTES <= self.journal.open_bytes()
            && self.store == Store::Here
        {
            self.seal(now);
        }
    }

    /// Takes an input after another server has taken the shard: nothing is done any more.
    fn handle_fenced(&mut self, input: Input) {
        match input {
            Input::Connected(id, _) => {
                self.connections.insert(id, Connection::default());
                self.queue(id, Outgoing::Close(fenced()));
            }
            Input::Disconnected(id, _) => drop(self.connections.remove(&id)),
            Input::Request(request, _) | Input::Receive(request, _) => {
                self.outputs.push_back(Output::Abandon(request));
            }
            Input::Stop => self.is_stopping = true,
            Input::Reports(..)
            | Input::CancelReceive(_)
            | Input::ReturnReceived(..)
            | Input::IdentityKeys(_)
            | Input::Pressure(_)
            | Input::ClockStep(_)
            | Input::Durable { .. }
            | Input::Read(_)
            | Input::CheckpointWritten(_)
            | Input::AppendFenced
            | Input::AppendUnknown { .. }
            | Input::StoreAway
            | Input::StoreBack => {}
        }
    }

    /// Does what is due, or a part of it.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.maintenance.job_rests = false;
        if self.store == Store::Here {
            self.step(now, Cause::Timeout, Gateway::handle_timeout);
        }
    }

    /// Ends a turn: seals the open group if a client waits for it, forwards messages whose bytes are in
    /// memory, and begins the maintenance that is due.
    ///
    /// A sync costs more than all else that a message needs. Records that no client waits for, as that of
    /// a message which its receiver has settled by itself, are made durable with the next that a client waits
    /// for, or after [`limits::HELD_TIME_MAX`].
    pub fn finish_turn(&mut self, now: Timestamp) {
        match self.store {
            Store::Here => {}
            // Nothing leaves, not even what was released before.
            Store::Away => return,
            Store::Fenced => return self.send_all(),
        }
        self.gateway.finish_turn();
        self.seal_if_wanted(now);
        self.forward(now);
        self.work(now);
        if self.gateway.wants_identity_keys() {
            self.outputs.push_back(Output::FetchIdentityKeys);
        }
        self.maintain();
        self.seal_if_wanted(now);
        self.held_until = if self.journal.open_bytes() == 0 {
            None
        } else {
            let until = now.after(limits::HELD_TIME_MAX);
            self.held_until.or(Some(until))
        };
        self.send_all();
    }

    /// Ends the open group, unless its records can wait for others.
    fn seal_if_wanted(&mut self, now: Timestamp) {
        let is_due = self.held_until.is_some_and(|until| until <= now);
        let is_wanted = is_due
            || self.durability.is_open_wanted()
            || limits::HELD_BYTES_MAX <= self.journal.open_bytes()
            || self.is_stopping
            || self.maintains();
        if is_wanted {
            self.seal(now);
        }
    }

    /// Returns the next thing for the server to carry out.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when the next turn is due without an input, and why: at once if the time has passed.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Timestamp, Reason)> {
        if self.store != Store::Here {
            return None;
        }
        if self.has_unfinished() {
            return Some((Timestamp::EPOCH, Reason::Unfinished));
        }
        let due = self.gateway.poll_timeout();
        let due = due.map(|due| (due, Reason::Due));
        let held = self.held_until.map(|until| (until, Reason::Held));
        let earliest = due.into_iter().chain(held);
        earliest.min_by_key(|(at, _)| *at)
    }

    /// Returns whether another server has the journal: what this shard has still to say is that its connections are closed.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.store == Store::Fenced
    }

    /// Returns whether inputs of clients are to be handed in: they wait while too much waits for the
    /// disk, or while the store is away.
    #[must_use]
    pub fn takes_input(&self) -> bool {
        match self.store {
            Store::Here => self.durability.has_room(),
            Store::Away => false,
            Store::Fenced => true,
        }
    }

    /// Returns since when the oldest group waits for the disk.
    #[must_use]
    pub fn waits_for_disk_since(&self) -> Option<Timestamp> {
        self.durability.oldest()
    }

    /// Returns whether the shard was told to stop, every connection has gone, and every request is answered.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        let is_gone = || self.connections.is_empty() && (self.is_fenced() || !self.has_requests());
        self.is_stopping && is_gone()
    }

    /// Returns whether requests are not answered yet.
    fn has_requests(&self) -> bool {
        let is_read = !self.answers.is_empty();
        is_read || self.gateway.has_open_receives() || self.durability.has_answers()
    }

    /// Returns what a token proves. Nothing in the namespaces changes.
    ///
    /// # Errors
    ///
    /// Why the token is refused.
    pub fn authorize(
        &mut self,
        now: Timestamp,
        inquiry: &Inquiry,
    ) -> Result<Authority, TokenRefused> {
        self.gateway.authorize(now, inquiry)
    }

    /// Returns the list that [`Output::Send`] is about, to be drained in place.
    pub fn outgoing(&mut self, id: ConnectionId) -> Option<&mut VecDeque<Outgoing>> {
        Some(&mut self.connections.get_mut(&id)?.outgoing)
    }

    /// Says what a connection has of the output that it was given before.
    pub fn set_backlog(&mut self, id: ConnectionId, backlog: Backlog) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.backlog = backlog;
        }
    }

    /// Runs a step of the namespaces, as an operator's configuration does.
    pub fn configure<T>(
        &mut self,
        now: Timestamp,
        step: impl FnOnce(&mut Gateway, &mut StepContext<'_>) -> T,
    ) -> T {
        self.step(now, Cause::Configuration, step)
    }

    /// Returns the namespaces.
    #[must_use]
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Returns the journal's end.
    #[must_use]
    pub fn journal(&self) -> &Writer {
        &self.journal
    }

    /// Runs a step of the broker and sorts its replies by what they wait for.
    fn step<T>(
        &mut self,
        now: Timestamp,
        cause: Cause<'_>,
        step: impl FnOnce(&mut Gateway, &mut StepContext<'_>) -> T,
    ) -> T {
        let group = self.durability.sealed() + 1;
        let mut cx = StepContext {
            now,
            journal: &mut self.journal,
            group,
        };
        let result = step(&mut self.gateway, &mut cx);
        let mut replies = std::mem::take(&mut self.replies);
        std::mem::swap(&mut replies, self.gateway.replies());
        if let Some(observer) = &mut self.observer {
            observer.observe(Observation::Step {
                cause,
                group,
                replies: &replies,
                journal: &self.journal,
            });
        }
        let events = self.gateway.namespaces_mut().take_trace_events();
        self.outputs.extend(events.map(Output::Trace));
        let newest = self.newest_group();
        for reply in replies.drain(..) {
            let (durable_after, pending) = match reply {
                StepReply::Connection(routed) => (routed.durable_after, Pending::Reply(routed)),
                StepReply::Receive(ReceiveReply {
                    request,
                    durable_after,
                    outcome,
                }) => (durable_after, Pending::Receive(request, outcome)),
            };
            let group = durable_after.min(newest);
            if self.durability.is_durable(group) && self.store == Store::Here {
                self.release_pending(pending);
            } else {
                self.durability.defer(group, pending);
            }
        }
        self.replies = replies;
        result
    }

    /// From now on there is an [`Output::Trace`] for what happens to messages.
    pub fn turn_traces_on(&mut self) {
        self.gateway.namespaces_mut().turn_traces_on();
    }

    /// Returns the newest group that has records: one without any is never sealed.
    fn newest_group(&self) -> u64 {
        self.durability.sealed() + u64::from(self.journal.open_bytes() != 0)
    }

    fn connected(&mut self, id: ConnectionId, origin: Origin) {
        self.gateway.connected(id, origin);
        self.connections.insert(id, Connection::default());
        if self.is_stopping {
            self.queue(id, Outgoing::Close(stopping()));
        }
    }

    /// A connection has ended; `left` is what its task had not taken. Messages that were still to be
    /// delivered to it are available again.
    fn disconnected(&mut self, now: Timestamp, id: ConnectionId, left: &VecDeque<Outgoing>) {
        let Some(gone) = self.connections.remove(&id) else {
            return;
        };
        for routed in &gone.held {
            reads::for_each_body(&routed.reply, |body| self.journal.unpin(body));
        }
        let of_connection = |routed: &&QueuedReply| routed.connection == id;
        let waiting = self.durability.replies().filter(of_connection);
        let replies = gone.held.iter().chain(waiting);
        let outgoing = left.iter().chain(&gone.outgoing);
        let unsent = outgoing.filter_map(Outgoing::locked);
        let unsent: Vec<_> = unsent.chain(replies.filter_map(delivery::locked)).collect();
        self.step(now, Cause::Reports, |gateway, cx| {
            gateway.disconnected(cx, id, &unsent);
        });
    }

    /// The system's clock was set: what runs by elapsed time has as much left as before.
    fn follow_clock(&mut self, now: Timestamp, step: ClockStep) {
        self.durability.follow_clock(step);
        self.held_until = self.held_until.map(|until| until.moved(step));
        self.gateway.follow_clock(now, step);
        self.journal.follow_clock(now);
    }

    fn answer_when_durable(&mut self, request: RequestId, outcome: Outcome) {
        let group = self.newest_group();
        if self.durability.is_durable(group) && self.store == Store::Here {
            self.release_answer(request, outcome);
        } else {
            self.durability
                .defer(group, Pending::Answer(request, outcome));
        }
    }

    /// Ends the open group: it is to be appended to the journal.
    fn seal(&mut self, now: Timestamp) {
        if let Some(frame) = self.journal.seal() {
            self.held_until = None;
            self.durability.seal(now, &frame);
            if cfg!(debug_assertions) && frame.number.is_multiple_of(CHECKED_GROUPS) {
                self.gateway.check();
            }
            if let Some(observer) = &mut self.observer {
                observer.observe(Observation::Sealed(frame.number));
            }
            self.outputs.push_back(Output::Commit(frame));
        }
    }

    /// Lets go what waited for groups that have become durable.
    fn take_progress(&mut self, now: Timestamp, durable: u64, synced: u64) {
        self.durability.learn(now, durable, synced);
        if self.store == Store::Here {
            self.release_durable();
        }
        self.journal.durable(durable);
    }

    /// Releases what waited for groups that are durable.
    fn release_durable(&mut self) {
        while let Some(mut waiting) = self.durability.take_group() {
            for pending in waiting.drain(..) {
                self.release_pending(pending);
            }
            self.durability.put_back(waiting);
        }
    }

    fn release_pending(&mut self, pending: Pending) {
        match pending {
            Pending::Reply(routed) => self.release(routed),
            Pending::Answer(request, outcome) => self.release_answer(request, outcome),
            Pending::Receive(request, outcome) => self.release_receive(request, outcome),
            Pending::Received(request, message) => self.answer_receive(request, *message),
        }
    }

    fn queue(&mut self, id: ConnectionId, outgoing: Outgoing) {
        if self.gateway.namespaces().is_traced() {
            self.outputs
                .extend(delivery::traced(&outgoing).map(Output::Trace));
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            if connection.outgoing.is_empty() {
                self.unsent.push(id);
            }
            if matches!(outgoing, Outgoing::Close(_)) {
                self.outputs.push_back(Output::Close(id));
            }
            connection.outgoing.push_back(outgoing);
        }
    }

    /// Keeps what a connection was to be given: the server may answer no more, until the store is back.
    pub fn keep_unsent(&mut self, id: ConnectionId) {
        self.unsent.push(id);
    }

    /// Hands the server what has gathered for connections.
    fn send_all(&mut self) {
        for id in self.unsent.drain(..) {
            self.outputs.push_back(Output::Send(id));
        }
    }

    /// Releases nothing until the store is back: memory and connections stay. Receives that wait are abandoned: another
    /// server may have the messages by now.
    fn suspend(&mut self, now: Timestamp, why: &str) {
        if self.store == Store::Here {
            warn!("suspended: {why}; nothing is answered until it is back");
            self.store = Store::Away;
            self.abandon_receives(now);
        }
    }

    fn resume(&mut self, now: Timestamp) {
        if self.store == Store::Away {
            info!("the journal's store is back: going on");
            self.store = Store::Here;
            self.release_durable();
            let again = self.connections.iter_mut().filter_map(|(&id, connection)| {
                std::mem::take(&mut connection.reads_again).then_some(id)
            });
            for id in again.collect::<Vec<ConnectionId>>() {
                self.read_for(id);
            }
            self.read_receives_again();
            self.handle_timeout(now);
        }
    }

    /// Another server owns the shard: what is not durable here never will be, and is not answered.
    fn fence(&mut self, now: Timestamp) {
        warn!(
            connections = self.connections.len(),
            "another server owns this shard's journal: closing its connections"
        );
        self.store = Store::Fenced;
        self.abandon_receives(now);
        let reading = std::mem::take(&mut self.answers).into_keys();
        let receives = std::mem::take(&mut self.receives).into_keys();
        self.receives_again.clear();
        for request in reading.chain(receives).chain(self.durability.clear()) {
            self.outputs.push_back(Output::Abandon(request));
        }
        for connection in self.connections.values_mut() {
            connection.held.clear();
            connection.outgoing.clear();
        }
        self.close_all(fenced);
    }

    fn stop(&mut self, now: Timestamp) {
        info!(connections = self.connections.len(), "stopping");
        self.is_stopping = true;
        self.drain_receives(now);
        // Requests that were accepted before are answered before their connection closes. The links end with it:
        // to Qpid JMS a link that was detached is closed for good, and failover does not attach it
        // again.
        let group = self.newest_group();
        if self.durability.is_durable(group) {
            return self.close_all(stopping);
        }
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for connection in ids {
            let routed = QueuedReply {
                connection,
                durable_after: group,
                reply: Reply::Close(stopping()),
            };
            self.durability.defer(group, Pending::Reply(routed));
        }
    }

    fn close_all(&mut self, why: impl Fn() -> Refusal) {
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for connection in ids {
            self.release(QueuedReply {
                connection,
                durable_after: 0,
                reply: Reply::Close(why()),
            });
        }
    }
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard")
            .field("connections", &self.connections.len())
            .field("durability", &self.durability)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// Says why connections end when the process does.
#[must_use]
pub fn stopping() -> Refusal {
    Refusal {
        condition: Condition::ConnectionForced,
        description: "The broker is stopping.".to_owned(),
    }
}

/// Says why connections end when another server owns the shard.
fn fenced() -> Refusal {
    Refusal {
        condition: Condition::ConnectionForced,
        description: "The namespace is served by another server now; connect again.".to_owned(),
    }
}
