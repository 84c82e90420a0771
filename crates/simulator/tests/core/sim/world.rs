//! A shard on a faulty disk: the code that serves in production, driven by a run. Everything happens
//! when the run says so: turns, writes, syncs, reads, checkpoints. Everything is shown to the auditor.

mod damage;
mod log;
mod operators;
mod receives;
mod rows;
mod store;
mod trace;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;

use jitney_base::ids::{BodyRef, ConnectionId, LockToken};
use jitney_base::time::{ClockStep, Timestamp};
use jitney_broker::access::Origin;
use jitney_broker::namespace::WantedBody;
use jitney_gateway::Reply;
use jitney_journal::{Committer, Error, Frame};
use jitney_queue::Description;
use jitney_shard::{
    self, Backlog, CheckpointTask, Input, Outgoing, Output, ReadPurpose, ReadRequest, Reason,
    Report, RequestId, Shard,
};

use super::acts::{ClientAction, LinkKey, LinkKind, Place};
use super::audit::{
    Amended, Auditor, ClientObservation, DamagedDelivery, Due, Hit, Observed, Outcome, Told, User,
};
use super::bytes::{Left, Wires};
use super::disk::FaultyDisk;
use super::operations::Request;
use super::plan::{LogPlace, Planned};
use super::random::Stream;
use super::receives::is_receive;
use super::sights::{at_of, is_silent, sent, token_of};
use super::start::{READS_OF_BODIES, Unreadable, ensure, start};
use super::watcher::{Happened, Met, Seen, Step, Why};
use super::wire::Answer;

use self::receives::Receives;
pub(super) use self::rows::Failed;
use self::rows::Rows;
use self::trace::Trace;

/// Why a run ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The disk has failed: the process ends, and the next start recovers.
    Ends,
    /// The log cannot be read: the process ends, and what it wrote is there.
    Unreadable,
    /// The broker is wrong.
    Wrong(String),
}

impl From<String> for Stop {
    fn from(text: String) -> Self {
        Self::Wrong(text)
    }
}

/// What becomes of all that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is printed.
    Loud,
    /// The last of it is kept, for whoever looks for what went wrong.
    Quiet,
    /// What was done to the disk is kept, to be done again.
    Recorded,
}

/// When a run begins.
const BEGIN: i64 = 1_700_000_000_000;

/// A shard and what is around it.
pub(super) struct Harness {
    pub(super) now: i64,
    /// No clock was ever further ahead.
    latest: i64,
    pub(super) disk: Arc<FaultyDisk>,
    pub(super) auditor: Auditor,
    pub(super) entities: Vec<Planned>,
    paths: Vec<String>,
    /// What has left, for clients to read, with its place in the order in which it was told.
    pub(super) released: Vec<(u64, ClientObservation)>,
    pub(super) trace: Trace,
    random: Stream,
    unreadable: Unreadable,
    /// Connections with both their ends, in a run that goes by bytes.
    wires: Option<Wires>,
    segment_bytes: u64,
    shard: Shard,
    seen: Seen,
    /// What writes the log on the disk, if it is there.
    committer: Option<Committer>,
    /// The log, if it is in rows of a database and not on the disk.
    rows: Option<Rows>,
    frames: VecDeque<Frame>,
    written: u64,
    durable: u64,
    sealed: u64,
    connections: BTreeSet<u32>,
    /// Where links receive, also those that have gone.
    places: BTreeMap<LinkKey, Place>,
    /// Links that have gone, and in which order.
    departed: BTreeMap<LinkKey, u64>,
    is_away: bool,
    /// What has not left yet, by what it says.
    unreleased: BTreeMap<String, VecDeque<Unreleased>>,
    /// How much was told.
    told: u64,
    reads: VecDeque<ReadRequest>,
    checkpoint: Option<Box<CheckpointTask>>,
    /// Messages whose bytes were moved while some are read to go on: they are wanted again.
    moved: Vec<WantedBody>,
    /// How often each was done: checkpoints, segments removed, bodies moved, bodies read.
    done: [usize; 4],
    /// Where bodies were that were moved.
    moved_from: BTreeSet<u64>,
    /// Responses that lost messages on their way.
    amended: Vec<(Unreleased, Amended)>,
    /// Up to where the log is synced; up to where a durable frame says so, and what was written would.
    ends: Ends,
    /// Messages whose bytes were damaged, and those that have lost them.
    pub(super) damage: [usize; 2],
    /// After so many changes of the disk, this group was known to be durable.
    known: Vec<(usize, u64)>,
    /// What operators have asked since the start, and what there is to be answered.
    asked: BTreeMap<RequestId, (Request, Due)>,
    next_request: u64,
    receives: Receives,
    /// What operators were answered, for them to read.
    pub(super) answers: Vec<(Request, Outcome)>,
}

/// Ends of the log, as positions in it.
#[derive(Debug, Default)]
struct Ends {
    written: u64,
    synced: u64,
    /// The newest frame that was written says that it was synced so far.
    claimed: u64,
    /// The newest frame of a write that failed because the disk was full. It may have been written, and is not
    /// written again: it says what was synced at that time.
    attempted: u64,
    /// And that frame is durable: damage before this cannot be taken for a torn end.
    proved: u64,
}

/// Something that has not left yet.
#[derive(Debug)]
struct Unreleased {
    /// The group that the auditor wants it to wait for.
    pin: u64,
    /// Its place in the order in which things were told.
    told: u64,
    at: LinkKey,
    /// It says that a drain has come to its end.
    is_drained: bool,
    /// The lock of a message whose receiver is to settle it.
    token: Option<LockToken>,
}

impl Harness {
    pub(super) fn new(
        seed: u64,
        segment_bytes: u64,
        entities: &[Planned],
        mode: Mode,
        log: LogPlace,
    ) -> Result<Self, Stop> {
        let disk = FaultyDisk::new(Stream::new(seed, "disk"), segment_bytes);
        if mode == Mode::Recorded {
            disk.record();
        }
        let disk = Arc::new(disk);
        let mut random = Stream::new(seed, "world");
        let mut auditor = Auditor::new();
        if mode == Mode::Recorded {
            auditor.keep_all();
        }
        let mut unreadable = Unreadable {
            random: Stream::new(seed, "unreadable"),
            chance: 0,
        };
        let mut rows = (log == LogPlace::Rows).then(|| Rows::new(seed));
        let (started, committer) = match &mut rows {
            Some(rows) => {
                let (started, _) = rows.start(&mut random, segment_bytes, BEGIN, entities)?;
                (started, None)
            }
            None => {
                let (random, unreadable) = (&mut random, &mut unreadable);
                let started = start(&disk, random, unreadable, segment_bytes, BEGIN, entities)?;
                (started.0, Some(started.1))
            }
        };
        if log == LogPlace::Rows {
            // The group that shows that the log is this server's.
            auditor.sealed(started.last);
            auditor.durable(started.last);
        }
        let trace = Trace {
            loud: mode == Mode::Loud,
            ..Trace::default()
        };
        let mut world = Self {
            now: BEGIN,
            latest: BEGIN,
            disk,
            auditor,
            entities: entities.to_vec(),
            paths: entities.iter().map(|it| it.path.clone()).collect(),
            released: Vec::new(),
            trace,
            random,
            unreadable,
            wires: None,
            segment_bytes,
            shard: started.shard,
            seen: started.seen,
            committer,
            rows,
            frames: VecDeque::new(),
            written: started.last,
            durable: started.last,
            sealed: started.last,
            connections: BTreeSet::new(),
            places: BTreeMap::new(),
            departed: BTreeMap::new(),
            is_away: false,
            unreleased: BTreeMap::new(),
            told: 0,
            reads: VecDeque::new(),
            checkpoint: None,
            moved: Vec::new(),
            done: [0; 4],
            moved_from: BTreeSet::new(),
            amended: Vec::new(),
            ends: Ends::default(),
            damage: [0; 2],
            known: Vec::new(),
            asked: BTreeMap::new(),
            next_request: 1,
            receives: Receives::default(),
            answers: Vec::new(),
        };
        world.describe_all()?;
        world.finish_turn()?;
        world.sync_all()?;
        Ok(world)
    }

    /// Tells the auditor of all entities, which the shard has made at its start.
    fn describe_all(&mut self) -> Result<(), Stop> {
        let observed = Observed {
            now: self.now,
            group: self.sealed + 1,
            sights: &[],
        };
        for (at, planned) in self.entities.iter().enumerate() {
            self.auditor.describe(observed, at, planned)?;
        }
        Ok(())
    }

    /// Gives a queue new properties.
    pub(super) fn describe(&mut self, at: usize, description: Description) -> Result<(), Stop> {
        self.trace
            .note(|| format!("entity {at} becomes {description:?}"));
        self.entities[at].description = description;
        let planned = self.entities[at].clone();
        let now = Timestamp::from_millis(self.now);
        self.shard
            .configure(now, |gateway, cx| ensure(gateway, cx, &planned));
        for happened in self.seen.take() {
            let Happened::Step(step) = happened else {
                return Err(Stop::Wrong("a step, and nothing else".to_owned()));
            };
            let sights = self.note(step.sights)?;
            let observed = Observed {
                now: self.now,
                group: step.group,
                sights: &sights,
            };
            let pins = self.auditor.describe(observed, at, &planned)?;
            self.wait_for(&sights, &pins);
        }
        Ok(())
    }

    /// Sets the clock, ahead or back.
    pub(super) fn set_clock(&mut self, millis: i64) {
        self.trace.note(|| format!("the clock is set by {millis}"));
        self.move_clock(millis);
        self.handle(Input::ClockStep(ClockStep::from_millis(millis)));
        self.auditor.follow_clock(millis);
    }

    /// Sets the clock before the broker is started again.
    pub(super) fn set_clock_while_down(&mut self, millis: i64) {
        self.trace
            .note(|| format!("the clock is set by {millis} over a restart"));
        self.move_clock(millis);
    }

    /// From now on, in a thousand times that the log is read, so many fail.
    pub(super) fn fail_reads(&mut self, chance: u64) {
        self.unreadable.chance = chance;
    }

    /// From now on, connections go by bytes.
    pub(super) fn go_by_bytes(&mut self, seed: u64) {
        self.wires = Some(Wires::new(seed));
    }

    /// Returns how many frames clients have read, how many acts could not be said, and how much was kept
    /// back at some time.
    pub(super) fn by_bytes(&self) -> [usize; 3] {
        self.wires.as_ref().map_or([0; 3], |wires| wires.figures)
    }

    /// Clients open their windows and read everything.
    pub(super) fn read_all(&mut self) -> Result<(), Stop> {
        if let Some(wires) = &mut self.wires {
            wires.read_all(&mut self.released)?;
        }
        Ok(())
    }

    /// Takes what a server's end of a connection has to report by itself.
    pub(super) fn reported(&mut self) -> Option<ClientAction> {
        self.wires.as_mut()?.reported(None)
    }

    pub(super) fn has_reports(&self) -> bool {
        self.wires.as_ref().is_some_and(Wires::has_reports)
    }

    /// Returns whether something is to be written or read, of which more can come.
    pub(super) fn has_unwritten(&self) -> bool {
        !self.frames.is_empty() || !self.reads.is_empty()
    }

    fn move_clock(&mut self, millis: i64) {
        self.latest = self.latest.max(self.now);
        self.now += millis;
    }

    fn handle(&mut self, input: Input) {
        self.shard.handle(Timestamp::from_millis(self.now), input);
    }

    /// Returns whether the shard takes what clients do.
    pub(super) fn takes_input(&self) -> bool {
        self.shard.takes_input()
    }

    /// Does one act of a client, or what is due.
    pub(super) fn step(&mut self, act: &ClientAction) -> Result<(), Stop> {
        if self.is_away {
            // What is due is done when the store is back.
            return Ok(());
        }
        let is_report = matches!(
            act,
            ClientAction::Returned { .. }
                | ClientAction::Unsent { .. }
                | ClientAction::Written { .. }
        );
        // What the server's end has to report comes before what its client does.
        if let (false, Some(connection)) = (is_report, act.connection()) {
            while let Some(first) = self
                .wires
                .as_mut()
                .and_then(|w| w.reported(Some(connection)))
            {
                self.step(&first)?;
            }
        }
        let now = self.now;
        let mut act = act.clone();
        if let ClientAction::Close {
            connection, unsent, ..
        } = &mut act
        {
            *unsent = self.unsent(*connection);
        }
        match act {
            ClientAction::Attach {
                at,
                place,
                kind: LinkKind::Receiver { wish: None, .. },
            } => drop(self.places.insert(at, place)),
            ClientAction::Detach { at, .. } => self.depart(at),
            _ => {}
        }
        if let Some(connection) = act.connection() {
            self.connect(connection)?;
        }
        let reports = match (act.input(&self.paths), &mut self.wires) {
            (Some((connection, _)), Some(wires)) if !is_report => {
                wires.say(connection, &mut act, &self.paths, &mut self.released)?
            }
            (input, _) => input.into_iter().map(|(_, report)| report).collect(),
        };
        let act = &act;
        self.trace.note(|| format!("{now}: {act:?}"));
        match act.connection() {
            Some(_) if reports.is_empty() => {
                self.trace.note(|| "    it is no input".to_owned());
                return Ok(());
            }
            Some(connection) => self.handle(Input::Reports(ConnectionId(connection), reports)),
            None => self.shard.handle_timeout(Timestamp::from_millis(now)),
        }
        if let ClientAction::Close { connection, .. } = act {
            self.connections.remove(connection);
            let id = ConnectionId(*connection);
            self.handle(Input::Disconnected(id, VecDeque::new()));
        }
        // Clients read their answers at once, so that none has to wait for others to be read.
        let mut sights = Vec::new();
        let mut group = self.sealed + 1;
        loop {
            let mut answered = Vec::new();
            for happened in self.seen.take() {
                match happened {
                    Happened::Step(step) if matches!(step.cause, Why::Reports | Why::Timeout) => {
                        sights.extend(self.note(step.sights)?);
                        answered.extend(step.answered);
                        group = step.group;
                    }
                    _ => return Err(Stop::Wrong("more than one act".to_owned())),
                }
            }
            if answered.is_empty() {
                break;
            }
            for (connection, bytes) in answered {
                self.handle(Input::Reports(connection, vec![Report::Answered(bytes)]));
            }
        }
        let observed = Observed {
            now,
            group,
            sights: &sights,
        };
        let pins = self.auditor.step(observed, act)?;
        self.wait_for(&sights, &pins);
        let wanted = self.shard.gateway().poll_timeout();
        if matches!(act, ClientAction::Timeout) && wanted.is_some_and(|at| at.as_millis() <= now) {
            return Err(Stop::Wrong(format!(
                "the broker is called for ever: {wanted:?}"
            )));
        }
        self.auditor.check_timeout(wanted)?;
        self.shard.seal_if_large(Timestamp::from_millis(now));
        self.judge()
    }

    /// Opens a connection, if it is not open.
    fn connect(&mut self, id: u32) -> Result<(), Stop> {
        if !self.connections.insert(id) {
            return Ok(());
        }
        let origin = Origin::default();
        self.handle(Input::Connected(ConnectionId(id), origin));
        let opened = self
            .wires
            .as_mut()
            .map(|wires| wires.open(id))
            .transpose()?;
        if let Some(reports) = opened {
            self.handle(Input::Reports(ConnectionId(id), reports));
            for happened in self.seen.take() {
                let Happened::Step(step) = happened else {
                    return Err(Stop::Wrong("more than one act".to_owned()));
                };
                if !self.note(step.sights)?.is_empty() {
                    return Err(Stop::Wrong(
                        "a connection is told of its opening".to_owned(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Ends a turn, and carries out what the shard wants, or keeps it for later.
    pub(super) fn finish_turn(&mut self) -> Result<(), Stop> {
        self.shard.finish_turn(Timestamp::from_millis(self.now));
        self.judge()?;
        self.carry_out_all()
    }

    fn carry_out_all(&mut self) -> Result<(), Stop> {
        while let Some(output) = self.shard.poll_output() {
            match output {
                Output::Commit(frame) => self.frames.push_back(frame),
                // The run syncs when it likes.
                Output::Sync => {}
                Output::Read(request) => {
                    self.reads.push_back(request);
                }
                Output::WriteCheckpoint(task) => self.checkpoint = Some(task),
                Output::RemoveSegments(segments) => {
                    for segment in segments {
                        self.trace.note(|| format!("segment {segment} goes"));
                        self.done[1] += 1;
                        match &self.rows {
                            Some(rows) => rows.remove(segment),
                            None => {
                                let removed = self.committer().remove(segment);
                                removed.map_err(|_| Stop::Ends)?;
                            }
                        }
                    }
                }
                Output::Send(id) => {
                    let backlog = if self.random.percent(20) {
                        Backlog::Unwritten
                    } else {
                        Backlog::Empty
                    };
                    self.shard.set_backlog(id, backlog);
                    let sent = self.shard.outgoing(id).map(std::mem::take);
                    self.send(id, sent.unwrap_or_default())?;
                }
                Output::Answer(request, answer) => self.answered(request, answer)?,
                Output::Abandon(request) => self.abandoned(request)?,
                Output::Close(_) | Output::FetchIdentityKeys | Output::Trace(_) => {
                    return Err(Stop::Wrong(format!("nobody asked for {output:?}")));
                }
            }
        }
        Ok(())
    }

    /// Shows the auditor what the shard has done by itself.
    fn judge(&mut self) -> Result<(), Stop> {
        let mut all = VecDeque::from(self.seen.take());
        let mut compacts = false;
        while let Some(happened) = all.pop_front() {
            match happened {
                Happened::Sealed(group) => {
                    self.sealed = group;
                    self.auditor.sealed(group);
                }
                Happened::Room(room) => self.auditor.room(room),
                Happened::Step(step) => {
                    compacts = matches!(step.cause, Why::Compaction(_));
                    self.judge_step(step)?;
                }
                Happened::Damaged(met) => {
                    let Some(Happened::Step(step)) = all.pop_front() else {
                        return Err(Stop::Wrong("nothing comes of damage".to_owned()));
                    };
                    let mut told = Vec::new();
                    while let Some(Happened::Contained(contained)) = all.front() {
                        told.push(contained.clone());
                        all.pop_front();
                    }
                    if compacts {
                        // What was read for that has stayed where it is.
                        for body in &met.bodies {
                            self.moved_from.remove(&body.position);
                        }
                    }
                    self.judge_damage(*met, step, told)?;
                }
                Happened::Contained(told) => {
                    return Err(Stop::Wrong(format!("{told:?} has lost its bytes, unasked")));
                }
            }
        }
        Ok(())
    }

    fn judge_step(&mut self, step: Step) -> Result<(), Stop> {
        let sights = self.note(step.sights)?;
        let (now, group) = (self.now, step.group);
        let observed = Observed {
            now,
            group,
            sights: &sights,
        };
        let pins = match step.cause {
            Why::Compaction(found) => {
                self.done[2] += found.len();
                let bodies = found.iter().map(|found| found.body.position);
                self.moved_from.extend(bodies);
                let is_forward = |read: &ReadRequest| read.purpose() == ReadPurpose::Forward;
                if self.reads.iter().any(is_forward) {
                    self.moved.extend(found);
                }
                if sights.is_empty() {
                    return Ok(());
                }
                let text = format!("a body moved, and {sights:?} is told");
                return Err(Stop::Wrong(text));
            }
            Why::Forward(found) => {
                let Some((first, _)) = found.first() else {
                    return Ok(());
                };
                let queue = usize::try_from(first.entity.0).expect("few");
                // By its number too: one that became active since it was found has another, and stays.
                let is_there = |wanted: &WantedBody| !self.moved.contains(wanted);
                let there = found.iter().filter(|(wanted, _)| is_there(wanted));
                let ids: Vec<_> = there
                    .map(|(wanted, id)| (wanted.number.0.cast_signed(), *id))
                    .collect();
                self.trace
                    .note(|| format!("{now} group {group}: queue {queue} sends {ids:?} on"));
                self.auditor.read_back(observed, queue, &ids)?
            }
            Why::Timeout => self.auditor.step(observed, &ClientAction::Timeout)?,
            Why::Job => {
                let judged = self.auditor.work(observed);
                let done = self.auditor.last_turn();
                self.trace
                    .note(|| format!("{now} group {group}: a job has its turn: {done}"));
                judged?
            }
            Why::Reports | Why::Configuration | Why::Damage | Why::Request => {
                return Err(Stop::Wrong("nobody did anything".to_owned()));
            }
        };
        self.wait_for(&sights, &pins);
        Ok(())
    }

    fn note(
        &mut self,
        sights: Result<Vec<ClientObservation>, String>,
    ) -> Result<Vec<ClientObservation>, Stop> {
        let sights = sights?;
        for sight in &sights {
            self.trace.note(|| format!("    {sight:?}"));
        }
        Ok(sights)
    }

    /// Remembers which groups must be durable before clients see what they are told.
    fn wait_for(&mut self, sights: &[ClientObservation], pins: &[u64]) {
        for (sight, &pin) in sights.iter().zip(pins) {
            if let ClientObservation::Detached(at, _) = sight {
                self.depart(*at);
            }
            let (at, token) = (at_of(sight), token_of(sight));
            if !is_receive(at) && !self.connections.contains(&at.connection) {
                continue;
            }
            self.told += 1;
            let told = self.told;
            let waiting = self.unreleased.entry(format!("{sight:?}")).or_default();
            waiting.push_back(Unreleased {
                pin,
                told,
                at,
                is_drained: matches!(sight, ClientObservation::Drained(..)),
                token,
            });
        }
    }

    /// Something has left for a client, who reads it, or has its engine read it.
    fn send(&mut self, id: ConnectionId, outgoing: VecDeque<Outgoing>) -> Result<(), Stop> {
        let mut left = Vec::new();
        for outgoing in &outgoing {
            if !matches!(outgoing, Outgoing::Reply(Reply::Admitted)) {
                left.push(self.release(id, outgoing)?);
            }
        }
        match &mut self.wires {
            Some(wires) if !outgoing.is_empty() => {
                wires.send(id, outgoing, left, &mut self.released)?;
            }
            _ => {
                let left = left.into_iter().map(|left| (left.told, left.sight));
                self.released.extend(left);
            }
        }
        Ok(())
    }

    /// Something has left: it was told in some step, and its group is durable.
    fn release(&mut self, id: ConnectionId, outgoing: &Outgoing) -> Result<Left, Stop> {
        let sight = sent(id, outgoing)?;
        let text = format!("{sight:?}");
        if self.is_away {
            return Err(Stop::Wrong(format!(
                "{text} has left while the store is away"
            )));
        }
        let waiting = self.unreleased.get_mut(&text);
        let waiting = waiting.and_then(VecDeque::pop_front);
        let Unreleased { pin, told, .. } = match (waiting, &sight) {
            (Some(waiting), _) => waiting,
            (None, ClientObservation::Answered(at, answer)) => {
                self.released_amended(*at, answer)?
            }
            _ => return Err(Stop::Wrong(format!("{text} has left, and no step told it"))),
        };
        let released = self.auditor.released(pin);
        released.map_err(|error| format!("{text}: {error}"))?;
        Ok(Left {
            told,
            sight,
            is_silent: is_silent(outgoing),
            is_unsure: false,
        })
    }

    /// Takes out what has not left for a connection that ends; returns the messages among it.
    fn unsent(&mut self, connection: u32) -> Vec<(LinkKey, Place, LockToken)> {
        let mut unsent = Vec::new();
        self.amended
            .retain(|(of, _)| of.at.connection != connection);
        for waiting in self.unreleased.values_mut() {
            waiting.retain(|unreleased| {
                let is_of = unreleased.at.connection == connection;
                if let (true, Some(token)) = (is_of, unreleased.token) {
                    unsent.push((unreleased.at, unreleased.told, token));
                }
                !is_of
            });
        }
        // Links that are there come first, then those that went last.
        let gone = |at: LinkKey| self.departed.get(&at).map_or(0, |order| u64::MAX - order);
        unsent.sort_unstable_by_key(|&(at, told, _)| (gone(at), at, told));
        // What belongs to a message session is free with it.
        let placed = unsent
            .into_iter()
            .filter_map(|(at, _, token)| Some((at, *self.places.get(&at)?, token)));
        placed.collect()
    }

    fn depart(&mut self, at: LinkKey) {
        let order = u64::try_from(self.departed.len()).expect("few") + 1;
        self.departed.entry(at).or_insert(order);
    }

    /// Does some of what the shard has threads for: a read, or the writing of a checkpoint.
    pub(super) fn work(&mut self) -> Result<(), Stop> {
        if let Some(request) = self.reads.pop_front() {
            self.read(request)?;
        }
        let Some(task) = self.checkpoint.take() else {
            return Ok(());
        };
        let written = if self.random.percent(10) {
            let source = io::Error::from(io::ErrorKind::WouldBlock);
            let (what, place) = ("start the thread of", "a checkpoint".to_owned());
            Err(Error::Io {
                what,
                place,
                source,
            })
        } else {
            match &self.rows {
                Some(rows) => task.write(&*rows.log()),
                None => task.write(&*self.disk),
            }
        };
        self.trace
            .note(|| format!("a checkpoint: {:?}", written.as_ref().err()));
        self.done[0] += usize::from(written.is_ok());
        self.handle(Input::CheckpointWritten(written));
        self.judge()
    }

    fn read(&mut self, request: ReadRequest) -> Result<(), Stop> {
        let purpose = request.purpose();
        self.trace.note(|| format!("read for {purpose:?}"));
        let disk = Arc::clone(&self.disk);
        let done = match &self.rows {
            Some(rows) => jitney_shard::read(&*rows.log(), request),
            None => {
                let read = || jitney_shard::read(&*disk, request);
                self.unreadable.read(&disk, READS_OF_BODIES, read)?
            }
        };
        let done = done.map_err(|error| format!("{purpose:?}: {error}"))?;
        self.done[3] += 1;
        self.handle(Input::Read(done));
        self.judge()?;
        if purpose == ReadPurpose::Forward {
            self.moved.clear();
        }
        Ok(())
    }

    /// Lets everything go on that can.
    pub(super) fn work_all(&mut self) -> Result<(), Stop> {
        for _ in 0..10_000 {
            self.finish_turn()?;
            let is_idle = self.reads.is_empty() && self.checkpoint.is_none();
            let unfinished = matches!(self.shard.poll_timeout(), Some((_, Reason::Unfinished)));
            if is_idle && !unfinished && !self.shard.gateway().namespaces().has_wanted() {
                return Ok(());
            }
            self.work()?;
        }
        Err(Stop::Wrong("there is always more to do".to_owned()))
    }

    /// Returns the newest group that was known to be durable after so many changes of the disk.
    pub(super) fn durable_after(&self, changes: usize) -> u64 {
        let known = self.known.iter().take_while(|(at, _)| *at <= changes);
        known.last().map_or(0, |&(_, durable)| durable)
    }

    /// Puts another disk in, with what an auditor knows of it, and starts the broker on that.
    pub(super) fn start_on(
        &mut self,
        disk: FaultyDisk,
        auditor: Auditor,
        now: i64,
    ) -> Result<(), Stop> {
        (self.disk, self.auditor, self.now) = (Arc::new(disk), auditor, now);
        self.latest = now;
        self.restart()
    }

    pub(super) fn wanted(&self) -> Option<i64> {
        self.shard
            .gateway()
            .poll_timeout()
            .map(Timestamp::as_millis)
    }

    pub(super) fn is_clean(&self) -> bool {
        self.durable == self.sealed
    }

    /// Says whether all that was told has left; the log is synced, and nothing is being read.
    pub(super) fn check_released(&self) -> Result<(), String> {
        if let Some((request, due)) = self.asked.values().next() {
            return Err(format!("{request:?} was never answered: {due:?}"));
        }
        self.check_receives()?;
        let left: usize = self.unreleased.values().map(VecDeque::len).sum();
        if left == 0 {
            return Ok(());
        }
        let some = self
            .unreleased
            .iter()
            .find(|(_, waiting)| !waiting.is_empty());
        Err(format!("{left} replies have never left, as {some:?}"))
    }

    /// Returns how many checkpoints, removed segments, relocated messages and reads there were.
    pub(super) fn maintenance(&self) -> [usize; 4] {
        self.done
    }
}
