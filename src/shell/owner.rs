//! The owner: one task that has the broker, and everything that is decided goes through it.
//!
//! Durable before told: what the broker answers waits until the group of records it rests on is
//! synced. Groups are pipelined: while one is being synced the broker goes on, and the next sync
//! takes all that has gathered.

mod damage;
mod messages;
#[cfg(test)]
mod tests;
mod upkeep;

pub(super) use upkeep::Written;

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::{info, warn};

use super::clock::Clock;
use super::committer::{Committer, Order, Progress, SharedDisk};
use super::mailbox::{Administered, Administration, Mail, Messaged, Vitals};
use super::memory::{Plan, Pressure};
use super::outbox::{Outbox, Outgoing};
use super::reader;
use crate::amqp::{Condition, LinkId, Refusal, Tag};
use crate::broker::{Broker, ConnectionId, Reply, Room, Routed, Surroundings};
use crate::entity::queue::ReceiveMode;
use crate::entity::{BodyRef, Memory};
use crate::limits;
use crate::storage::{Stretch, Writer};
use crate::time::{ClockStep, Timestamp};

/// Something that is told when the group of records that it rests on is durable.
enum Told {
    /// To a connection.
    Reply(Routed),
    /// To an administrator.
    Administered(oneshot::Sender<Administered>, Box<Administered>),
    /// To whom asked for something about messages.
    Messaged(oneshot::Sender<Messaged>, Messaged),
}

/// The owner of the broker and of the log's end.
pub(super) struct Owner {
    broker: Broker,
    writer: Writer,
    clock: Arc<Clock>,
    mailbox: mpsc::Receiver<Mail>,
    committer: Committer,
    progress: watch::Receiver<Progress>,
    reader: reader::Reader,
    disk: SharedDisk,
    sender: mpsc::Sender<Mail>,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Replies by the group they rest on; the first is for the group after `durable`.
    pending: VecDeque<Vec<Told>>,
    /// Empty ones, for their memory.
    spare: Vec<Vec<Told>>,
    /// The newest group that is durable.
    durable: u64,
    /// The newest group that is synced: `durable` may be ahead, as the policy has it.
    synced: u64,
    /// The newest group that was handed to the committer.
    sealed: u64,
    /// Groups handed to the committer that are not durable: their bytes, and since when.
    in_flight: VecDeque<(u64, usize, Instant)>,
    in_flight_bytes: usize,
    replies: Vec<Routed>,
    /// Connections that have something in `Connection::outgoing`.
    touched: Vec<ConnectionId>,
    upkeep: upkeep::Upkeep,
    /// Told when an identity token was signed with a key that is not known.
    keys_wanted: Arc<Notify>,
    vitals: Arc<Vitals>,
    pace: Pace,
    memory: Memory,
    pressure: Pressure,
    /// Messages that have lost their bytes since the start.
    damaged: u64,
    stopping: bool,
}

/// What an owner is made of.
pub(super) struct Parts {
    pub(super) broker: Broker,
    pub(super) writer: Writer,
    pub(super) clock: Arc<Clock>,
    pub(super) sender: mpsc::Sender<Mail>,
    pub(super) mailbox: mpsc::Receiver<Mail>,
    pub(super) committer: Committer,
    pub(super) reader: reader::Reader,
    pub(super) disk: SharedDisk,
    pub(super) keys_wanted: Arc<Notify>,
    pub(super) vitals: Arc<Vitals>,
    pub(super) memory: Memory,
    pub(super) plan: Plan,
}

/// How long the owner sleeps at most: a clock that was set is seen by then.
const LOOK: Duration = Duration::from_millis(limits::CLOCK_LOOK.as_millis().cast_unsigned());
/// Groups in flight whose lists of replies are kept for their memory.
const SPARE_MAX: usize = 4;

struct Connection {
    outbox: Arc<Outbox>,
    outgoing: VecDeque<Outgoing>,
    /// It has not taken yet what was left for it.
    is_behind: bool,
    /// Replies behind one whose bytes are being read, that one first.
    held: VecDeque<Routed>,
}

/// How many bytes may wait for the disk, by how long it takes: what comes in stands behind them, so
/// that a slow disk must have few.
struct Pace {
    bytes: usize,
    most: usize,
}

impl Pace {
    fn new(most: usize) -> Self {
        Self { bytes: most, most }
    }

    /// Takes the time from a group's end to its being durable.
    fn learn(&mut self, took: Duration) {
        /// Longer than this is too long to stand behind.
        const LONG: Duration = Duration::from_millis(250);
        if LONG < took {
            self.bytes = (self.bytes / 2).max(limits::IN_FLIGHT_BYTES_MIN);
        } else if took < LONG / 4 {
            self.bytes = (self.bytes + self.bytes / 8).min(self.most);
        }
    }
}

impl Owner {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts {
            broker,
            writer,
            clock,
            sender,
            mailbox,
            committer,
            reader,
            disk,
            keys_wanted,
            vitals,
            memory,
            plan,
        } = parts;
        let progress = committer.progress();
        let durable = progress.borrow().durable;
        Self {
            broker,
            writer,
            clock,
            mailbox,
            committer,
            progress,
            reader,
            disk,
            sender,
            connections: BTreeMap::new(),
            pending: VecDeque::new(),
            spare: Vec::new(),
            durable,
            synced: durable,
            sealed: durable,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            replies: Vec::new(),
            touched: Vec::new(),
            upkeep: upkeep::Upkeep::default(),
            keys_wanted,
            vitals,
            pace: Pace::new(plan.in_flight),
            memory,
            pressure: plan.no_pressure(),
            damaged: 0,
            stopping: false,
        }
    }

    /// Runs until a stop was asked for and all connections have gone.
    pub(super) async fn run(mut self) {
        let mut mail = Vec::with_capacity(limits::MAILBOX_DRAIN);
        let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
        let mut wakes_at = None;
        while !(self.stopping && self.connections.is_empty()) {
            let deadline = self.broker.poll_timeout();
            // The timer is set anew only when its end changes, which it seldom does.
            if deadline != wakes_at || timer.is_elapsed() {
                wakes_at = deadline;
                let span = deadline.map(|deadline| self.clock.until(deadline));
                let end = Instant::now() + span.unwrap_or(LOOK).min(LOOK);
                timer.as_mut().reset(end);
            }
            let has_upkeep = self.has_upkeep();
            // With too much in flight, the disk is what everybody waits for.
            let can_take = self.in_flight_bytes < self.pace.bytes;
            self.vitals
                .rests(self.in_flight.front().map(|&(_, _, since)| since));
            tokio::select! {
                biased;
                changed = self.progress.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                count = self.mailbox.recv_many(&mut mail, limits::MAILBOX_DRAIN), if can_take => {
                    if count == 0 {
                        return;
                    }
                }
                // Connections have their turn on this thread first. Without that the runtime would
                // take the mailbox for empty before long, as it does with a task that never waits.
                () = tokio::task::yield_now(), if has_upkeep => {}
                () = timer.as_mut() => {}
            }
            let (now, step) = self.clock.look();
            self.vitals.turns();
            if let Some(step) = step {
                self.follow_clock(now, step);
                wakes_at = None;
            }
            self.take_progress();
            for mail in mail.drain(..) {
                self.take(now, mail);
                if limits::GROUP_BYTES <= self.writer.open_bytes() {
                    self.seal();
                }
            }
            self.step(now, Broker::handle_timeout);
            self.seal();
            self.send_on(now);
            if self.broker.wants_identity_keys() {
                self.keys_wanted.notify_one();
            }
            self.maintain();
            self.seal();
            self.flush();
        }
    }

    /// The system's clock was set: what runs by elapsed time has as much left as before.
    fn follow_clock(&mut self, now: Timestamp, step: ClockStep) {
        let (milliseconds, steps) = (step.as_millis(), self.clock.steps());
        let what = if milliseconds < 0 {
            "set back"
        } else {
            "set ahead, or the machine was suspended"
        };
        warn!(
            milliseconds,
            steps,
            "the system's clock was {what}: stamps, schedules, ends of life and of tokens follow it; \
             locks and time-outs have as much time left as before"
        );
        self.broker.follow_clock(now, step);
        self.writer.follow_clock(now);
    }

    fn take(&mut self, now: Timestamp, mail: Mail) {
        match mail {
            Mail::Inputs(connection, inputs, _room) => {
                self.step(now, |broker, around| {
                    for input in inputs {
                        broker.apply(around, connection, input);
                    }
                });
            }
            Mail::Connected(id, outbox, origin) => {
                self.broker.connected(id, origin);
                let connection = Connection {
                    outbox,
                    outgoing: VecDeque::new(),
                    is_behind: false,
                    held: VecDeque::new(),
                };
                self.connections.insert(id, connection);
                if self.stopping {
                    self.queue(id, Outgoing::Close(stopping()));
                }
            }
            Mail::Disconnected(id) => self.disconnected(now, id),
            Mail::Authorize(inquiry, answer) => {
                let authorized = self.broker.authorize(now, &inquiry);
                // Who asked may have gone.
                let _ = answer.send(authorized);
            }
            Mail::Administer(administration, answer) => {
                let Administration {
                    host,
                    authority,
                    operation,
                } = *administration;
                let done = self.step(now, |broker, around| {
                    broker.administer(around, host.as_deref(), &authority, operation)
                });
                let rests_on = self.newest();
                self.hold(rests_on, Told::Administered(answer, Box::new(done)));
            }
            Mail::Message(request, answer, _room) => self.operate(now, *request, answer),
            Mail::Receive(connection, link, request) => {
                self.hand_out(now, (connection, link), *request);
            }
            Mail::IdentityKeys(keys) => {
                // Who fetched them has checked them.
                let _ = self.broker.set_identity_keys(&keys);
            }
            Mail::Pressure(pressure) => {
                self.writer.set_cache_bytes(pressure.cache);
                self.pressure = pressure;
            }
            Mail::Read(done) => self.take_read(now, done),
            Mail::CheckpointWritten(written) => self.checkpoint_written(written),
            Mail::Stop => self.stop(),
        }
    }

    /// A connection has ended. Messages that were still to be brought to it are nobody's.
    fn disconnected(&mut self, now: Timestamp, id: ConnectionId) {
        let Some(mut gone) = self.connections.remove(&id) else {
            return;
        };
        let mut left = VecDeque::new();
        gone.outbox.take(&mut left);
        left.append(&mut gone.outgoing);
        for routed in &gone.held {
            for_each_body(&routed.reply, |body| self.writer.unpin(body));
        }
        let pending = self.pending.iter().flatten().filter_map(|told| match told {
            Told::Reply(routed) if routed.connection == id => Some(routed),
            Told::Reply(_) | Told::Administered(..) | Told::Messaged(..) => None,
        });
        let replies = gone.held.iter().chain(pending);
        let unsent = left.iter().filter_map(Outgoing::locked);
        let unsent: Vec<_> = unsent.chain(replies.filter_map(locked)).collect();
        self.step(now, |broker, around| {
            broker.disconnected(around, id, &unsent);
        });
    }

    /// Runs a step of the broker and sorts its replies by what they wait for.
    fn step<T>(
        &mut self,
        now: Timestamp,
        step: impl FnOnce(&mut Broker, &mut Surroundings<'_>) -> T,
    ) -> T {
        let mut replies = std::mem::take(&mut self.replies);
        let group = self.sealed + 1;
        let mut around = Surroundings {
            now,
            journal: &mut self.writer,
            group,
            replies: &mut replies,
        };
        let result = step(&mut self.broker, &mut around);
        let newest = self.newest();
        for routed in replies.drain(..) {
            self.hold(routed.rests_on.min(newest), Told::Reply(routed));
        }
        self.replies = replies;
        result
    }

    /// Returns the newest group that has records: one that nothing is written into never comes.
    fn newest(&self) -> u64 {
        self.sealed + u64::from(self.writer.open_bytes() != 0)
    }

    /// Tells something when a group is durable.
    fn hold(&mut self, rests_on: u64, told: Told) {
        let Some(ahead) = rests_on.checked_sub(self.durable + 1) else {
            return self.tell(told);
        };
        let ahead = usize::try_from(ahead).expect("groups in flight are few");
        if self.pending.len() <= ahead {
            let spare = &mut self.spare;
            self.pending
                .resize_with(ahead + 1, || spare.pop().unwrap_or_default());
        }
        if let Some(waiting) = self.pending.get_mut(ahead) {
            waiting.push(told);
        }
    }

    fn tell(&mut self, told: Told) {
        match told {
            Told::Reply(routed) => self.release(routed),
            Told::Administered(answer, done) => {
                // Who asked may have gone.
                let _ = answer.send(*done);
            }
            Told::Messaged(answer, done) => {
                let _ = answer.send(done);
            }
        }
    }

    /// Hands the records gathered so far to the committer.
    fn seal(&mut self) {
        if let Some(frame) = self.writer.seal() {
            self.sealed += 1;
            debug_assert_eq!(frame.number, self.sealed, "groups are counted alike");
            let bytes = frame.bytes.len();
            self.in_flight
                .push_back((self.sealed, bytes, Instant::now()));
            self.in_flight_bytes += frame.bytes.len();
            self.committer.order(Order::Commit(frame));
        }
    }

    /// Lets go what waited for groups that have become durable.
    fn take_progress(&mut self) {
        let Progress { durable, synced } = *self.progress.borrow_and_update();
        self.synced = synced;
        while self.durable < durable {
            self.durable += 1;
            let mut waiting = self.pending.pop_front().unwrap_or_default();
            for told in waiting.drain(..) {
                self.tell(told);
            }
            if 0 < waiting.capacity() && self.spare.len() < SPARE_MAX {
                self.spare.push(waiting);
            }
        }
        let mut took = None;
        while let Some(&(group, bytes, since)) = self.in_flight.front() {
            if durable < group {
                break;
            }
            took = Some(since.elapsed());
            self.in_flight.pop_front();
            self.in_flight_bytes -= bytes;
        }
        if let Some(took) = took {
            self.pace.learn(took);
        }
        self.writer.durable(durable);
    }

    /// A reply may leave: it does, unless bytes must be read first, for it or one before it.
    fn release(&mut self, routed: Routed) {
        let id = routed.connection;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.held.is_empty() {
            for_each_body(&routed.reply, |body| self.writer.pin(body));
            connection.held.push_back(routed);
            return;
        }
        match resolve(&self.writer, &[], connection.is_behind, routed) {
            Ok(outgoing) => self.queue(id, outgoing),
            Err(routed) => {
                for_each_body(&routed.reply, |body| self.writer.pin(body));
                connection.held.push_back(*routed);
                self.read_for(id);
            }
        }
    }

    /// Asks for bytes. Their segments stay until they are there, whoever wanted them.
    fn read(&mut self, purpose: reader::Purpose, wanted: Vec<BodyRef>) {
        for &body in &wanted {
            self.writer.pin(body);
        }
        self.reader.read(reader::Request {
            purpose,
            wanted,
            until: self.writer.readable_until(),
        });
    }

    /// Asks for the bytes that a connection's held replies need.
    fn read_for(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        let mut wanted = Vec::new();
        let (mut bytes, mut stretch) = (0, None);
        for routed in &connection.held {
            for_each_body(&routed.reply, |body| {
                bytes += reader::cost(&mut stretch, body);
                wanted.push(body);
            });
            if limits::READ_BYTES_MAX <= bytes {
                break;
            }
        }
        self.read(reader::Purpose::Deliver(id), wanted);
    }

    fn take_read(&mut self, now: Timestamp, done: reader::Done) {
        for &body in &done.wanted {
            self.writer.unpin(body);
        }
        let id = match done.purpose {
            reader::Purpose::Deliver(id) => id,
            reader::Purpose::Compact => return self.relocate(now, &done),
            reader::Purpose::SendOn => return self.send_on_read(now, &done),
        };
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let is_behind = connection.is_behind;
        let mut held = std::mem::take(&mut connection.held);
        let mut hits = Vec::new();
        while let Some(routed) = held.pop_front() {
            for_each_body(&routed.reply, |body| self.writer.unpin(body));
            match resolve(&self.writer, &done.stretches, is_behind, routed) {
                Ok(outgoing) => self.queue(id, outgoing),
                Err(routed) => match self.hit(routed, &done.damages, held.iter()) {
                    Ok(hit) => hits.push(hit),
                    Err(routed) => {
                        for_each_body(&routed.reply, |body| self.writer.pin(body));
                        held.push_front(*routed);
                        break;
                    }
                },
            }
        }
        for stretch in done.stretches {
            self.writer.insert_read(stretch);
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.held = held;
            if !connection.held.is_empty() {
                self.read_for(id);
            }
        }
        // What the broker says of them comes behind what is held.
        for hit in hits {
            self.contain(now, hit, &done.damages);
        }
    }

    fn queue(&mut self, id: ConnectionId, outgoing: Outgoing) {
        if let Some(connection) = self.connections.get_mut(&id) {
            if connection.outgoing.is_empty() {
                self.touched.push(id);
            }
            connection.outgoing.push_back(outgoing);
        }
    }

    /// Gives connections what has gathered for them.
    fn flush(&mut self) {
        for id in self.touched.drain(..) {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.is_behind = connection.outbox.put(&mut connection.outgoing);
            }
        }
    }

    fn stop(&mut self) {
        info!(connections = self.connections.len(), "stopping");
        self.stopping = true;
        self.vitals.set_room(false);
        self.seal();
        // What was accepted before is answered before the connection closes. The links end with it:
        // to Qpid JMS a link that was detached is closed for good, and failover does not attach it
        // again.
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for connection in ids {
            let routed = Routed {
                connection,
                rests_on: self.sealed,
                reply: Reply::Close(stopping()),
            };
            self.hold(self.sealed, Told::Reply(routed));
        }
    }

    fn set_room(&mut self) {
        let memory_is_full = self.pressure.full || self.memory.is_full();
        let room = if self.writer.accepts_messages() && !memory_is_full {
            Room::Enough
        } else {
            Room::None
        };
        if self.upkeep.room != room {
            self.upkeep.room = room;
            self.vitals.set_room(room == Room::Enough);
            self.broker.set_room(room);
            match room {
                Room::None if memory_is_full => warn!(
                    counted = self.memory.counted(),
                    "memory is full, as --memory-limit has it: no more messages are taken until \
                     there is room; receivers go on"
                ),
                Room::None => warn!(
                    "the disk is full: no more messages are taken until there is space; receivers \
                     go on"
                ),
                Room::Enough => info!("there is room again: messages are taken"),
            }
        }
    }
}

/// Returns the link and the delivery-tag of a message that a reply brings, if its receiver is to settle
/// it.
fn locked(routed: &Routed) -> Option<(LinkId, Tag)> {
    match &routed.reply {
        Reply::Deliver(link, handover) if handover.mode == ReceiveMode::PeekLock => {
            Some((*link, handover.token.to_tag()))
        }
        _ => None,
    }
}

/// Adds its bytes to a reply, or returns it if some are not in memory.
///
/// Who is behind gets copies where the bytes are few: they would keep all in memory that is around
/// them.
fn resolve(
    writer: &Writer,
    stretches: &[Stretch],
    is_behind: bool,
    routed: Routed,
) -> Result<Outgoing, Box<Routed>> {
    let find = |body: BodyRef| -> Option<Bytes> {
        let found = writer
            .cached(body)
            .or_else(|| stretches.iter().find_map(|read| read.keep(body)))?;
        let is_copied = is_behind && found.len() < limits::COPIED_BODY_BYTES;
        Some(if is_copied {
            Bytes::copy_from_slice(&found)
        } else {
            found
        })
    };
    let Routed {
        connection,
        rests_on,
        reply,
    } = routed;
    match reply {
        Reply::Deliver(link, handover) => match find(handover.body) {
            Some(bytes) => Ok(Outgoing::Deliver(link, handover, bytes)),
            None => Err(Box::new(Routed {
                connection,
                rests_on,
                reply: Reply::Deliver(link, handover),
            })),
        },
        Reply::Respond(link, response) => {
            match response.bodies().map(find).collect::<Option<Vec<Bytes>>>() {
                Some(bodies) => Ok(Outgoing::Respond(link, response, bodies)),
                None => Err(Box::new(Routed {
                    connection,
                    rests_on,
                    reply: Reply::Respond(link, response),
                })),
            }
        }
        Reply::Close(refusal) => Ok(Outgoing::Close(refusal)),
        reply @ (Reply::AcceptLink(..)
        | Reply::RefuseLink(..)
        | Reply::Drained(..)
        | Reply::SettleIncoming { .. }
        | Reply::SettleOutgoing(..)
        | Reply::Detach(..)
        | Reply::Authenticated(_)
        | Reply::Admitted) => Ok(Outgoing::Reply(reply)),
    }
}

/// Says why connections end when the process does.
fn stopping() -> Refusal {
    Refusal {
        condition: Condition::ConnectionForced,
        description: "The broker is stopping.".to_owned(),
    }
}

fn for_each_body(reply: &Reply, mut visit: impl FnMut(BodyRef)) {
    match reply {
        Reply::Deliver(_, handover) => visit(handover.body),
        Reply::Respond(_, response) => response.bodies().for_each(visit),
        Reply::AcceptLink(..)
        | Reply::RefuseLink(..)
        | Reply::Drained(..)
        | Reply::SettleIncoming { .. }
        | Reply::SettleOutgoing(..)
        | Reply::Detach(..)
        | Reply::Authenticated(_)
        | Reply::Admitted
        | Reply::Close(_) => {}
    }
}
