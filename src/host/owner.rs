//! The owner: the task that has a shard, hands it its inputs, and carries out its outputs.
//!
//! It decides nothing. It owns the parts that a shard must not know: the mailbox, the committer's
//! and the reader's threads, the connections' outboxes, the requests that wait for an answer, and
//! the clock.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use super::committer::{CommitterCommand, LogSink, SyncProgress};
use super::mailbox;
use super::outbox::Outbox;
use super::owner_message::{Control, OwnerMessage, ShardReport};
use super::provision;
use super::reader::Reader;
use super::traces::ShardTraces;
use super::vitals::Vitals;
use crate::limits;
use crate::system::clock::{self, Clock, SeenSteps};
use crate::system::supervisor;
use jitney_base::histogram::Histogram;
use jitney_base::ids::ConnectionId;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::access::TokenRefused;
use jitney_broker::namespace::StepContext;
use jitney_cluster::lease::Lease;
use jitney_gateway::Gateway;
use jitney_journal::Checkpoints;
use jitney_shard::{
    Answer, CheckpointTask, Input, Output, ReceiveAnswer, ReceivedMessage, RequestAnswer,
    RequestId, Shard,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;

/// The task that has a shard.
pub(crate) struct Owner {
    shard: Shard,
    clock: Arc<Clock>,
    seen: SeenSteps,
    mailbox: mpsc::Receiver<OwnerMessage>,
    control: mpsc::Receiver<Control>,
    sender: mpsc::Sender<OwnerMessage>,
    committer: Box<dyn LogSink>,
    /// None where the log is in files.
    store: Option<StoreState>,
    progress: watch::Receiver<SyncProgress>,
    reader: Reader,
    log: Arc<dyn Checkpoints>,
    start_thread: StartThread,
    outboxes: BTreeMap<ConnectionId, Arc<Outbox>>,
    /// Groups that are not durable yet, and when each was ended.
    commits: VecDeque<(u64, Instant)>,
    /// How long that took.
    commit_times: Histogram,
    /// Requests that are not answered yet.
    requests: BTreeMap<RequestId, Asker>,
    /// Notified when an identity token was signed with a key that is not known.
    keys_wanted: Arc<Notify>,
    vitals: Arc<Vitals>,
    traces: Option<Tracing>,
}

/// Makes spans of the shard's events.
struct Tracing {
    traces: ShardTraces,
    /// When the turn began.
    turn: SystemTime,
    /// The newest group that is durable.
    durable: u64,
}

/// The parts of an owner.
pub(crate) struct OwnerParts {
    pub(crate) shard: Shard,
    pub(crate) clock: Arc<Clock>,
    pub(crate) sender: mpsc::Sender<OwnerMessage>,
    pub(crate) mailbox: mpsc::Receiver<OwnerMessage>,
    pub(crate) control: mpsc::Receiver<Control>,
    pub(crate) committer: Box<dyn LogSink>,
    /// None where the log is in files.
    pub(crate) store: Option<StoreParts>,
    pub(crate) reader: Reader,
    /// Where checkpoints are written.
    pub(crate) log: Arc<dyn Checkpoints>,
    pub(crate) keys_wanted: Arc<Notify>,
    pub(crate) vitals: Arc<Vitals>,
    pub(crate) traces: Option<ShardTraces>,
}

/// What a namespace's owner is to know of the store: the latest is what counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreEvent {
    /// It is unknown whether this group was appended.
    Unknown {
        /// The group.
        group: u64,
    },
    /// It is known what was appended.
    Back,
    /// Another server owns the namespace, or its log is not what was acknowledged.
    Fenced,
}

/// What an owner is to know of the store that its log is in.
pub(crate) struct StoreParts {
    pub(crate) lease: Arc<Lease>,
    pub(crate) events: watch::Receiver<StoreEvent>,
}

/// The store that the log is in, as the owner knows it.
struct StoreState {
    parts: StoreParts,
    /// The lease did not hold when it was last looked at.
    is_lapsed: bool,
    /// It is unknown what was appended.
    is_unknown: bool,
}

/// The task that waits for the answer to a request.
enum Asker {
    Request(oneshot::Sender<Result<RequestAnswer, TokenRefused>>),
    Receive(oneshot::Sender<ReceiveAnswer>),
}

/// Work for a thread of its own.
type Work = Box<dyn FnOnce() + Send>;
/// Called with the panic's message if the thread panics.
type Panicked = Box<dyn FnOnce(String) + Send>;

/// How the thread that writes a checkpoint is started.
type StartThread = fn(Work, Panicked) -> io::Result<()>;

/// Starts the thread that writes a checkpoint, which the broker can do without: the log has
/// everything.
fn start_thread(work: Work, panicked: Panicked) -> io::Result<()> {
    let ended = |end: thread::Result<()>| {
        if let Err(panic) = end {
            panicked(supervisor::message(&*panic));
        }
    };
    supervisor::spawn_watched("checkpoint", work, ended).map(drop)
}

impl Owner {
    pub(crate) fn new(parts: OwnerParts) -> Self {
        let OwnerParts {
            mut shard,
            clock,
            sender,
            mailbox,
            control,
            committer,
            store,
            reader,
            log,
            keys_wanted,
            vitals,
            traces,
        } = parts;
        if traces.is_some() {
            shard.turn_traces_on();
        }
        let traces = traces.map(|traces| Tracing {
            traces,
            turn: clock::system_time(),
            durable: 0,
        });
        Self {
            shard,
            seen: clock.seen(),
            clock,
            mailbox,
            control,
            sender,
            progress: committer.progress(),
            committer,
            store: store.map(|parts| StoreState {
                parts,
                is_lapsed: false,
                is_unknown: false,
            }),
            reader,
            log,
            start_thread,
            outboxes: BTreeMap::new(),
            commits: VecDeque::new(),
            commit_times: Histogram::default(),
            requests: BTreeMap::new(),
            keys_wanted,
            vitals,
            traces,
        }
    }

    /// Runs until the shard was stopped and all connections have ended.
    pub(crate) async fn run(mut self) {
        let mut mail = Vec::with_capacity(jitney_shard::limits::MAILBOX_DRAIN);
        let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
        let mut wakes_at = None;
        // The committer of a namespace ends when another server has it.
        let (mut is_written, mut is_controlled) = (true, true);
        while !self.shard.is_stopped() {
            let deadline = self.shard.poll_timeout().map(|(deadline, _)| deadline);
            // The timer is set anew only when its deadline changes, which is rare.
            if deadline != wakes_at || timer.is_elapsed() {
                wakes_at = deadline;
                let span = deadline.map(|deadline| self.clock.until(deadline));
                let look = self.look();
                let end = Instant::now() + span.unwrap_or(look).min(look);
                timer.as_mut().reset(end);
            }
            let is_due = deadline == Some(Timestamp::EPOCH);
            let takes_input = self.shard.takes_input();
            self.vitals.rests(self.waits_for_disk_since());
            tokio::select! {
                biased;
                changed = self.progress.changed(), if is_written => {
                    if changed.is_err() && self.store.is_none() {
                        return;
                    }
                    is_written = changed.is_ok();
                }
                event = next_event(&mut self.store), if self.store.is_some() => {
                    let now = self.clock.now();
                    self.learn_of_store(now, event);
                }
                control = self.control.recv(), if is_controlled => match control {
                    Some(control) => self.handle_control(control),
                    None => is_controlled = false,
                },
                count = self.mailbox.recv_many(&mut mail, jitney_shard::limits::MAILBOX_DRAIN), if takes_input => {
                    if count == 0 {
                        return;
                    }
                }
                // Connections run on this thread first. Otherwise the runtime would soon consider
                // the mailbox empty, as it does with a task that never waits.
                () = tokio::task::yield_now(), if is_due => {}
                () = timer.as_mut() => {}
            }
            let (now, step) = self.clock.look(&mut self.seen);
            self.vitals.turns();
            if let Some(step) = step {
                self.shard.handle(now, Input::ClockStep(step));
                wakes_at = None;
            }
            self.turn(now, &mut mail);
        }
    }

    /// One turn of the shard.
    fn turn(&mut self, now: Timestamp, mail: &mut Vec<OwnerMessage>) {
        if let Some(tracing) = &mut self.traces {
            tracing.turn = clock::system_time();
        }
        self.look_at_lease(now);
        let progress = *self.progress.borrow_and_update();
        self.learn(now, progress);
        for mail in mail.drain(..) {
            self.take(now, mail);
            self.shard.seal_if_large(now);
            self.carry_out_all(now);
        }
        self.shard.handle_timeout(now);
        self.shard.finish_turn(now);
        self.carry_out_all(now);
        if let Some(progress) = self.committer.flush() {
            self.learn(now, progress);
            self.shard.finish_turn(now);
            self.carry_out_all(now);
            // The owner syncs once in a turn: inputs wait meanwhile.
            self.committer.hand_over();
        }
        self.vitals.set_shortage(self.shard.shortage());
    }

    /// Returns how long the owner may wait without a look at clocks.
    fn look(&self) -> Duration {
        let look = match self.store {
            Some(_) => limits::LEASE_LOOK,
            None => limits::CLOCK_LOOK,
        };
        look.as_duration()
    }

    /// Returns whether this server may answer no more. What was answered a moment before is on its way.
    fn has_lapsed(&self) -> bool {
        let store = self.store.as_ref();
        store.is_some_and(|store| !store.parts.lease.holds(clock::since_boot()))
    }

    /// Suspends the shard when the lease has lapsed, and lets it continue when there is a beat again.
    fn look_at_lease(&mut self, now: Timestamp) {
        let has_lapsed = self.has_lapsed();
        let Some(store) = &mut self.store else {
            return;
        };
        if std::mem::replace(&mut store.is_lapsed, has_lapsed) == has_lapsed {
            return;
        }
        if has_lapsed {
            self.vitals.suspend();
        } else {
            self.vitals.resume();
        }
        if store.is_unknown {
            return;
        }
        let input = if has_lapsed {
            Input::StoreAway
        } else {
            Input::StoreBack
        };
        self.shard.handle(now, input);
    }

    fn learn_of_store(&mut self, now: Timestamp, event: StoreEvent) {
        let Some(store) = &mut self.store else {
            return;
        };
        match event {
            StoreEvent::Unknown { group } => {
                store.is_unknown = true;
                self.shard.handle(now, Input::AppendUnknown { group });
            }
            StoreEvent::Back => {
                store.is_unknown = false;
                if !store.is_lapsed {
                    self.shard.handle(now, Input::StoreBack);
                }
            }
            StoreEvent::Fenced => {
                self.shard.handle(now, Input::AppendFenced);
                self.shard.handle(now, Input::Stop);
            }
        }
    }

    fn learn(&mut self, now: Timestamp, progress: SyncProgress) {
        let SyncProgress { durable, synced } = progress;
        if let Some(tracing) = &mut self.traces {
            tracing.durable = durable;
            tracing.traces.durable(durable);
        }
        let mut done = None;
        while let Some((_, since)) = self.commits.pop_front_if(|(group, _)| *group <= durable) {
            let done = *done.get_or_insert_with(Instant::now);
            let took = done.saturating_duration_since(since).as_micros();
            self.commit_times
                .record(u64::try_from(took).unwrap_or(u64::MAX));
        }
        self.shard.handle(now, Input::Durable { durable, synced });
    }

    fn waits_for_disk_since(&self) -> Option<Instant> {
        let since = self.shard.waits_for_disk_since()?;
        let waited = self.clock.now().since(since).as_millis();
        Instant::now().checked_sub(Duration::from_millis(
            u64::try_from(waited).unwrap_or_default(),
        ))
    }

    fn handle_control(&mut self, control: Control) {
        match control {
            Control::Report(most, answer) => {
                let report = ShardReport {
                    statistics: self.shard.statistics(self.clock.now(), most),
                    commit_times: self.commit_times,
                    sync_times: self.committer.sync_times(),
                    sessions: self.vitals.sessions(),
                };
                // The task that asked may have ended.
                let _ = answer.send(report);
            }
            Control::Pressure(pressure) => {
                let now = self.clock.now();
                self.shard.handle(now, Input::Pressure(pressure));
            }
        }
    }

    /// Hands one item of the mailbox to the shard.
    fn take(&mut self, now: Timestamp, mail: OwnerMessage) {
        let input = match mail {
            OwnerMessage::Connected(id, outbox, origin) => {
                self.outboxes.insert(id, outbox);
                Input::Connected(id, origin)
            }
            OwnerMessage::Disconnected(id) => {
                let mut left = VecDeque::new();
                if let Some(outbox) = self.outboxes.remove(&id) {
                    outbox.take(&mut left);
                }
                Input::Disconnected(id, left)
            }
            OwnerMessage::Reports(connection, reports, _room) => {
                // The room is free again when the shard is done with them.
                self.shard.handle(now, Input::Reports(connection, reports));
                return;
            }
            OwnerMessage::Authorize(inquiry, answer) => {
                // The task that asked may have ended.
                let _ = answer.send(self.shard.authorize(now, &inquiry));
                return;
            }
            OwnerMessage::LogEnd(answer) => {
                // The task that asked may have ended.
                let _ = answer.send(self.shard.journal().durable_end());
                return;
            }
            OwnerMessage::Missing(host, mut paths, answer) => {
                let namespaces = self.shard.gateway().namespaces();
                paths.retain(|path| !namespaces.exists(Some(&host), path));
                // The task that asked may have ended.
                let _ = answer.send(paths);
                return;
            }
            OwnerMessage::Reload(reload, answer) => {
                let configure = |gateway: &mut Gateway, cx: &mut StepContext<'_>| {
                    provision::reload(gateway, cx, &reload)
                };
                // The task that asked may have ended.
                let _ = answer.send(self.shard.configure(now, configure));
                return;
            }
            OwnerMessage::Request(call, _room, answer) => {
                let request = mailbox::next_request();
                self.requests.insert(request, Asker::Request(answer));
                // The room is free again when the shard is done with it.
                self.shard.handle(now, Input::Request(request, call));
                return;
            }
            OwnerMessage::Receive(request, mut wanted, until, answer) => {
                let left = until.saturating_duration_since(Instant::now()).as_millis();
                wanted.receive.wait = Millis::from_millis(i64::try_from(left).unwrap_or(i64::MAX));
                self.requests.insert(request, Asker::Receive(answer));
                Input::Receive(request, wanted)
            }
            OwnerMessage::Input(input) => input,
        };
        self.shard.handle(now, input);
    }

    fn carry_out_all(&mut self, now: Timestamp) {
        while let Some(output) = self.shard.poll_output() {
            self.carry_out(now, output);
        }
    }

    fn carry_out(&mut self, now: Timestamp, output: Output) {
        match output {
            Output::Commit(frame) => {
                if let Some(tracing) = &mut self.traces {
                    tracing.traces.committed(frame.number);
                }
                self.commits.push_back((frame.number, Instant::now()));
                self.committer.order(CommitterCommand::Commit(frame));
            }
            Output::Sync => self.committer.order(CommitterCommand::Sync),
            Output::RemoveSegments(segments) => {
                self.committer.order(CommitterCommand::Remove(segments));
            }
            Output::Read(request) => self.reader.read(request),
            Output::WriteCheckpoint(task) => self.write_checkpoint(now, *task),
            Output::Send(id) if self.has_lapsed() && !self.shard.is_fenced() => {
                self.shard.keep_unsent(id);
            }
            Output::Send(id) => {
                let outbox = self.outboxes.get(&id);
                if let (Some(outbox), Some(outgoing)) = (outbox, self.shard.outgoing(id)) {
                    let backlog = outbox.put(outgoing);
                    self.shard.set_backlog(id, backlog);
                }
            }
            Output::Close(id) => {
                if let Some(outbox) = self.outboxes.get(&id) {
                    outbox.close();
                }
            }
            // Another server may have the namespace by now.
            Output::Answer(request, answer) if self.has_lapsed() => self.hold_back(request, answer),
            Output::Answer(request, answer) => self.answer(now, request, answer),
            // Its task sees that the channel is closed.
            Output::Abandon(request) => drop(self.requests.remove(&request)),
            Output::FetchIdentityKeys => self.keys_wanted.notify_one(),
            Output::Trace(event) => {
                if let Some(tracing) = &mut self.traces {
                    let (begun, durable) = (tracing.turn, tracing.durable);
                    tracing.traces.happened(event, begun, durable);
                }
            }
        }
    }

    /// Does not answer a request, for this server may not. A message that was handed out is given later, if it may again.
    fn hold_back(&mut self, request: RequestId, answer: Answer) {
        if let Answer::Received(ReceiveAnswer::Message(message)) = answer
            && !self.shard.is_fenced()
        {
            self.shard.keep_received(request, *message);
        } else {
            self.requests.remove(&request);
        }
    }

    fn answer(&mut self, now: Timestamp, request: RequestId, answer: Answer) {
        // The task that asked may have ended.
        match (self.requests.remove(&request), answer) {
            (Some(Asker::Request(asker)), Answer::Request(answer)) => {
                let _ = asker.send(Ok(answer));
            }
            (Some(Asker::Request(asker)), Answer::Unauthorized(refused)) => {
                let _ = asker.send(Err(refused));
            }
            (Some(Asker::Receive(asker)), Answer::Received(answer)) => {
                if let Err(ReceiveAnswer::Message(message)) = asker.send(answer) {
                    self.give_back(now, &message);
                }
            }
            (None, Answer::Received(ReceiveAnswer::Message(message))) => {
                self.give_back(now, &message);
            }
            (asker, _) => debug_assert!(asker.is_none(), "{request:?} is of another kind"),
        }
    }

    /// Gives a message back whose client has left.
    fn give_back(&mut self, now: Timestamp, message: &ReceivedMessage) {
        if let Some(returned) = message.returned() {
            self.shard.handle(now, returned);
        }
    }

    /// Writes a checkpoint in a thread of its own.
    fn write_checkpoint(&mut self, now: Timestamp, task: CheckpointTask) {
        let log = Arc::clone(&self.log);
        let (owner, owner_of_panic) = (self.sender.clone(), self.sender.clone());
        // The owner has ended when the broker stopped; the checkpoint is good all the same.
        let work = move || {
            let written = Input::CheckpointWritten(task.write(&*log));
            drop(owner.blocking_send(OwnerMessage::Input(written)));
        };
        let panicked = move |message| {
            let text = format!("its thread has panicked ({message}), which is a bug");
            let failed = Err(failed("write", io::Error::other(text)));
            drop(
                owner_of_panic.blocking_send(OwnerMessage::Input(Input::CheckpointWritten(failed))),
            );
        };
        if let Err(error) = (self.start_thread)(Box::new(work), Box::new(panicked)) {
            let failed = Err(failed("start the thread of", error));
            self.shard.handle(now, Input::CheckpointWritten(failed));
        }
    }
}

/// Waits for the next event of the store; for ever where there is none.
async fn next_event(store: &mut Option<StoreState>) -> StoreEvent {
    if let Some(store) = store
        && store.parts.events.changed().await.is_ok()
    {
        return *store.parts.events.borrow_and_update();
    }
    std::future::pending().await
}

fn failed(what: &'static str, source: io::Error) -> jitney_journal::Error {
    jitney_journal::Error::Io {
        what,
        place: "a checkpoint".to_owned(),
        source,
    }
}
