//! The broker with its log on a faulty disk, driven as the shell drives it: steps, groups, seals,
//! syncs, the release of replies, checkpoints and compaction. Everything happens when it is told
//! to; everything is shown to the auditor.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use jitney::address::{Address, EntityAddress};
use jitney::amqp::{Accept, LinkId, Outcome, Refusal, Value as AmqpValue};
use jitney::broker::recovery::{FoundBody, SearchPosition};
use jitney::broker::{
    Broker, ConnectionId, Input, Profile, Reply, Room, Routed, Snapshot, Surroundings, WantedBody,
};
use jitney::entity::queue::{Description, ReceiveMode};
use jitney::entity::rules::{CorrelationFields, CorrelationFilter, Filter, Rule};
use jitney::entity::{
    BodyRef, Budget, EntityId, Journal, Memory, MemoryPages, Positions, Record, SequenceNumber,
};
use jitney::storage::{self, CheckpointAt, Committer, Disk, Error, Frame, Options, Writer};
use jitney::time::{ClockStep, Timestamp};
use jitney::{limits, message};

use super::acts::{Act, LinkKey};
use super::audit::{Auditor, Sight};
use super::disk::FaultyDisk;
use super::plan::Planned;
use super::random::Stream;
use super::wire::{read_answer, read_message, sent_id};

/// Why a run ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The disk has failed: the process ends, and the next start recovers.
    Ends,
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

/// A reply that waits for its group, and the group that the auditor wants it to wait for.
struct Pending {
    routed: Routed,
    pin: u64,
}

/// When a run begins.
const BEGIN: i64 = 1_700_000_000_000;

/// The broker and what is around it.
pub(super) struct World {
    pub(super) now: i64,
    /// No clock was ever further ahead.
    latest: i64,
    pub(super) disk: Arc<FaultyDisk>,
    pub(super) auditor: Auditor,
    pub(super) entities: Vec<Planned>,
    paths: Vec<String>,
    /// What has left, for clients to read.
    pub(super) released: Vec<Sight>,
    pub(super) trace: Trace,
    random: Stream,
    segment_bytes: u64,
    broker: Broker,
    writer: Writer,
    committer: Committer,
    frames: VecDeque<Frame>,
    sealed: u64,
    written: u64,
    durable: u64,
    pending: BTreeMap<u64, Vec<Pending>>,
    upkeep: Upkeep,
    /// Messages that are being read, to go on.
    sending_on: Vec<WantedBody>,
    /// Those of them whose bytes lie elsewhere now: they are wanted again.
    moved: Vec<WantedBody>,
    /// After so many changes of the disk, this group was known to be durable.
    known: Vec<(usize, u64)>,
}

#[derive(Default)]
struct Upkeep {
    checkpoint: Option<(u64, CheckpointAt, Snapshot)>,
    compaction: Option<(Positions, Option<SearchPosition>)>,
    /// How often each was done.
    checkpoints: usize,
    removed: usize,
    relocated: usize,
}

/// The last things that happened.
#[derive(Debug, Default)]
pub(super) struct Trace {
    lines: VecDeque<String>,
    /// Everything is printed at once.
    pub(super) loud: bool,
}

impl Trace {
    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        const LINES: usize = 60;
        let line = line();
        if self.loud {
            println!("{line}");
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(super) fn tail(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

impl World {
    pub(super) fn new(
        seed: u64,
        segment_bytes: u64,
        entities: &[Planned],
        mode: Mode,
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
        let started = start(&disk, &mut random, segment_bytes)?;
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
            segment_bytes,
            broker: started.broker,
            writer: started.writer,
            committer: started.committer,
            frames: VecDeque::new(),
            sealed: started.last,
            written: started.last,
            durable: started.last,
            pending: BTreeMap::new(),
            upkeep: Upkeep::default(),
            sending_on: Vec::new(),
            moved: Vec::new(),
            known: Vec::new(),
        };
        world.install()?;
        world.seal();
        world.sync_all()?;
        Ok(world)
    }

    /// Makes the queues that there should be.
    fn install(&mut self) -> Result<(), Stop> {
        for at in 0..self.entities.len() {
            self.ensure(at)?;
        }
        Ok(())
    }

    fn ensure(&mut self, at: usize) -> Result<(), Stop> {
        let planned = self.entities[at].clone();
        let (path, description) = (&planned.path, planned.description.clone());
        let (mut replies, group) = (Vec::new(), self.sealed + 1);
        let is_new = self.broker.find(&address(path)).is_none();
        let mut around = Surroundings {
            now: Timestamp::from_millis(self.now),
            journal: &mut self.writer,
            group,
            replies: &mut replies,
        };
        let made = if planned.topic.is_some() {
            let rules = planned.rules.iter().map(|color| rule(*color)).collect();
            self.broker
                .ensure_subscription(&mut around, path, description, rules)
        } else {
            self.broker.ensure_entity(&mut around, path, description)
        };
        made.expect("an entity can be made");
        if is_new && planned.first != 1 {
            // As if so many messages had been there.
            let record = Record::Counter {
                entity: EntityId(u32::try_from(3 * at).expect("few")),
                next: SequenceNumber(planned.first),
            };
            self.writer.append(&record);
            let replayed = self.broker.replay(&record, None);
            replayed.map_err(|error| Stop::Wrong(error.to_string()))?;
        }
        let sights = self.look_at(&replies)?;
        for sight in &sights {
            self.trace.note(|| format!("    {sight:?}"));
        }
        let now = (self.now, group);
        let pins = self.auditor.describe(now, at, &planned, &sights)?;
        self.pass_on(replies, &pins)
    }

    /// Gives a queue new properties.
    pub(super) fn describe(&mut self, at: usize, description: Description) -> Result<(), Stop> {
        self.trace
            .note(|| format!("entity {at} becomes {description:?}"));
        self.entities[at].description = description;
        self.ensure(at)
    }

    /// Sets the clock, ahead or back.
    pub(super) fn set_clock(&mut self, millis: i64) {
        self.trace.note(|| format!("the clock is set by {millis}"));
        self.move_clock(millis);
        let now = Timestamp::from_millis(self.now);
        self.broker
            .follow_clock(now, ClockStep::from_millis(millis));
        self.writer.follow_clock(now);
        self.auditor.follow_clock(millis);
    }

    /// Sets the clock before the broker is started again.
    pub(super) fn set_clock_while_down(&mut self, millis: i64) {
        self.trace
            .note(|| format!("the clock is set by {millis} over a restart"));
        self.move_clock(millis);
    }

    fn move_clock(&mut self, millis: i64) {
        self.latest = self.latest.max(self.now);
        self.now += millis;
    }

    /// Runs one step of the broker.
    pub(super) fn step(&mut self, act: &Act) -> Result<(), Stop> {
        let group = self.sealed + 1;
        let now = self.now;
        self.trace.note(|| format!("{now} group {group}: {act:?}"));
        let mut replies = Vec::new();
        let mut around = Surroundings {
            now: Timestamp::from_millis(now),
            journal: &mut self.writer,
            group,
            replies: &mut replies,
        };
        match act.input(&self.paths) {
            Some((connection, input)) => {
                self.broker
                    .apply(&mut around, ConnectionId(connection), input);
            }
            None => self.broker.handle_timeout(&mut around),
        }
        // Clients read their answers at once, so that none has to wait for others to be read.
        let mut read = 0;
        while read < around.replies.len() {
            let answers = around.replies[read..].iter().filter_map(answered);
            let answers: Vec<_> = answers.collect();
            read = around.replies.len();
            for (connection, bytes) in answers {
                let input = Input::Answered(bytes);
                self.broker.apply(&mut around, connection, input);
            }
        }
        self.broker.relieve();
        let sights = self.look_at(&replies)?;
        for sight in &sights {
            self.trace.note(|| format!("    {sight:?}"));
        }
        let pins = self.auditor.step(now, group, act, &sights)?;
        let wanted = self.broker.poll_timeout();
        if matches!(act, Act::Timeout) && wanted.is_some_and(|at| at.as_millis() <= now) {
            return Err(Stop::Wrong(format!(
                "the broker is called for ever: {wanted:?}"
            )));
        }
        self.auditor.check_timeout(wanted)?;
        self.pass_on(replies, &pins)
    }

    fn pass_on(&mut self, replies: Vec<Routed>, pins: &[u64]) -> Result<(), Stop> {
        for (routed, &pin) in replies.into_iter().zip(pins) {
            let pending = Pending { routed, pin };
            if pending.routed.rests_on <= self.durable {
                self.release(&pending)?;
            } else {
                let waiting = self.pending.entry(pending.routed.rests_on).or_default();
                waiting.push(pending);
            }
        }
        Ok(())
    }

    fn release(&mut self, pending: &Pending) -> Result<(), Stop> {
        let sight = self.look(&pending.routed)?;
        let pin = self.auditor.released(pending.pin);
        pin.map_err(|error| format!("{sight:?}: {error}"))?;
        self.released.push(sight);
        Ok(())
    }

    fn look_at(&self, replies: &[Routed]) -> Result<Vec<Sight>, Stop> {
        replies.iter().map(|routed| self.look(routed)).collect()
    }

    /// Reads a reply as its client does.
    fn look(&self, routed: &Routed) -> Result<Sight, Stop> {
        let at = |link: LinkId| LinkKey {
            connection: routed.connection.0,
            link: link.0,
        };
        Ok(match &routed.reply {
            Reply::AcceptLink(link, accept) => Sight::Accepted(at(*link), grant(accept)?),
            Reply::RefuseLink(link, refusal) => Sight::Refused(at(*link), condition(refusal)),
            Reply::Detach(link, refusal) => Sight::Detached(at(*link), condition(refusal)),
            Reply::Drained(link, limit) => Sight::Drained(at(*link), *limit),
            Reply::Deliver(link, handover) => {
                let body = self.body(handover.body)?;
                let mut rendered = Vec::new();
                message::render(&mut rendered, &body, &handover.stamps);
                Sight::Delivered {
                    at: at(*link),
                    token: handover.token,
                    delete: handover.mode == ReceiveMode::ReceiveAndDelete,
                    seen: read_message(&rendered)?,
                }
            }
            Reply::SettleIncoming {
                link,
                delivery,
                outcome,
                ..
            } => {
                let (at, delivery) = (at(*link), delivery.0);
                match outcome {
                    Outcome::Accepted => Sight::SettledIncoming(at, delivery, Ok(())),
                    Outcome::Declared(id) => Sight::Declared(at, delivery, id.to_vec()),
                    Outcome::InTransaction(id, inner) if **inner == Outcome::Accepted => {
                        Sight::TakenWithin(at, delivery, id.to_vec())
                    }
                    other => Sight::SettledIncoming(at, delivery, Err(refused(other))),
                }
            }
            Reply::SettleOutgoing(link, delivery, outcome) => {
                let (at, delivery) = (at(*link), delivery.0);
                match (outcome, settlement(outcome)) {
                    (_, Some(name)) => Sight::SettledOutgoing(at, delivery, Ok(name)),
                    (Outcome::InTransaction(id, inner), _) => match settlement(inner) {
                        Some(name) => Sight::SettledWithin(at, delivery, id.to_vec(), name),
                        None => return Err(Stop::Wrong(format!("{inner:?} in a transaction"))),
                    },
                    (other, None) => Sight::SettledOutgoing(at, delivery, Err(refused(other))),
                }
            }
            Reply::Respond(link, response) => {
                let bodies: Result<Vec<Bytes>, Stop> =
                    response.bodies().map(|body| self.body(body)).collect();
                let answer = read_answer(&response.encode(&bodies?))?;
                Sight::Answered(at(*link), answer)
            }
            Reply::Close(_) | Reply::Authenticated(_) | Reply::Admitted => {
                return Err(Stop::Wrong(format!("nobody asked for {:?}", routed.reply)));
            }
        })
    }

    fn body(&self, body: BodyRef) -> Result<Bytes, Stop> {
        if let Some(bytes) = self.writer.cached(body) {
            return Ok(bytes);
        }
        let read = storage::read_ahead(&*self.disk, body, 4096, self.writer.readable_until());
        let read = read.map_err(|error| Stop::Wrong(format!("{body:?}: {error}")))?;
        Ok(read.body(body).expect("it was read for that"))
    }

    /// Ends the open group.
    pub(super) fn seal(&mut self) {
        if let Some(frame) = self.writer.seal() {
            self.sealed += 1;
            assert_eq!(frame.number, self.sealed, "groups are counted alike");
            self.frames.push_back(frame);
            self.auditor.sealed(self.sealed);
        }
    }

    /// Writes some of the frames that wait.
    pub(super) fn write(&mut self, count: usize) -> Result<(), Stop> {
        let frames: Vec<Frame> = self.frames.iter().take(count).cloned().collect();
        match self.committer.write(&frames) {
            Ok(()) => {
                self.frames.drain(..frames.len());
                self.written = frames.last().map_or(self.written, |frame| frame.number);
                Ok(())
            }
            Err(Error::Full) => Ok(()),
            Err(_) => Err(Stop::Ends),
        }
    }

    /// Makes durable what was written, and lets go what waited for it.
    pub(super) fn sync(&mut self) -> Result<(), Stop> {
        self.committer.sync().map_err(|_| Stop::Ends)?;
        // Of frames that were written in part before the disk was full, some may count.
        self.durable = self.written;
        self.known.push((self.disk.recorded_count(), self.durable));
        self.auditor.durable(self.durable);
        self.writer.durable(self.durable);
        let durable = self.durable;
        let later = self.pending.split_off(&(durable + 1));
        for pending in std::mem::replace(&mut self.pending, later).into_values() {
            for pending in pending {
                self.release(&pending)?;
            }
        }
        Ok(())
    }

    pub(super) fn sync_all(&mut self) -> Result<(), Stop> {
        self.write(usize::MAX)?;
        self.sync()
    }

    /// Does what the log needs now and then; the open group has just been sealed.
    pub(super) fn maintain(&mut self) -> Result<(), Stop> {
        let enough = self.writer.accepts_messages();
        self.broker
            .set_room(if enough { Room::Enough } else { Room::None });
        self.auditor.room(enough);
        self.checkpoint()?;
        self.compact()?;
        // What is being read must be there.
        let removable = if self.sending_on.is_empty() {
            self.writer.take_removable()
        } else {
            Vec::new()
        };
        for segment in removable {
            self.trace.note(|| format!("segment {segment} goes"));
            self.upkeep.removed += 1;
            self.committer.remove(segment).map_err(|_| Stop::Ends)?;
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), Stop> {
        match self.upkeep.checkpoint.take() {
            None if self.writer.checkpoint_due() => {
                let at = self.writer.checkpoint_at();
                self.upkeep.checkpoint = Some((self.sealed, at, self.broker.snapshot()));
            }
            Some((group, at, snapshot)) if group <= self.durable => {
                self.trace
                    .note(|| format!("checkpoint after group {group}"));
                let disk: &dyn Disk = &*self.disk;
                match storage::write_checkpoint(disk, at, |emit| snapshot.records(emit)) {
                    Ok(at) => {
                        self.upkeep.checkpoints += 1;
                        self.writer.checkpoint_written(at);
                    }
                    Err(Error::Full) => self.writer.checkpoint_failed(),
                    Err(_) => return Err(Stop::Ends),
                }
            }
            taken => self.upkeep.checkpoint = taken,
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<(), Stop> {
        let Some((positions, search)) = self.upkeep.compaction.take() else {
            let candidate = self.writer.compaction_candidates();
            let begin = Some(SearchPosition::default());
            self.upkeep.compaction = candidate.map(|positions| (positions, begin));
            return Ok(());
        };
        let Some(search) = search else {
            self.broker.end_search();
            return Ok(());
        };
        let scan = 1 + self.random.index(40).min(limits::COMPACTION_SCAN);
        let (found, rest) = self.broker.search_bodies(&positions, search, scan);
        for found in found {
            self.relocate(&found)?;
        }
        self.upkeep.compaction = Some((positions, rest));
        Ok(())
    }

    fn relocate(&mut self, found: &FoundBody) -> Result<(), Stop> {
        let body = self.body(found.body)?;
        let (mut replies, group, now) = (Vec::new(), self.sealed + 1, self.now);
        let mut around = Surroundings {
            now: Timestamp::from_millis(now),
            journal: &mut self.writer,
            group,
            replies: &mut replies,
        };
        self.broker.relocate(&mut around, found, &body);
        self.moved.push(WantedBody {
            entity: found.entity,
            number: found.number,
            body: found.body,
        });
        self.upkeep.relocated += 1;
        if !replies.is_empty() {
            let told = self.look_at(&replies)?;
            return Err(Stop::Wrong(format!("a body moved, and {told:?} is told")));
        }
        Ok(())
    }

    /// Begins to read messages that are to go on, or lets those go on that were read.
    pub(super) fn send_on(&mut self) -> Result<(), Stop> {
        if self.sending_on.is_empty() {
            self.sending_on = self.broker.wanted();
            self.moved.clear();
            return Ok(());
        }
        let (mut found, mut ids) = (Vec::new(), Vec::new());
        for wanted in std::mem::take(&mut self.sending_on) {
            let body = self.body(wanted.body)?;
            let is_there =
                |moved: &WantedBody| (moved.entity, moved.body) != (wanted.entity, wanted.body);
            if self.moved.iter().all(is_there) {
                ids.push(sent_id(&body)?);
            }
            found.push((wanted, body));
        }
        let entity = found[0].0.entity;
        let (mut replies, group, now) = (Vec::new(), self.sealed + 1, self.now);
        let mut around = Surroundings {
            now: Timestamp::from_millis(now),
            journal: &mut self.writer,
            group,
            replies: &mut replies,
        };
        self.broker.read_back(&mut around, found);
        self.trace
            .note(|| format!("{now} group {group}: {entity:?} sends {ids:?} on"));
        let sights = self.look_at(&replies)?;
        for sight in &sights {
            self.trace.note(|| format!("    {sight:?}"));
        }
        let queue = usize::try_from(entity.0).expect("few");
        let pins = self.auditor.read_back((now, group), queue, ids, &sights)?;
        self.pass_on(replies, &pins)
    }

    /// Lets everything go on that can.
    pub(super) fn send_all_on(&mut self) -> Result<(), Stop> {
        while self.broker.has_wanted() || !self.sending_on.is_empty() {
            self.send_on()?;
        }
        Ok(())
    }

    /// Starts the broker again on what is on the disk.
    pub(super) fn restart(&mut self) -> Result<(), Stop> {
        let started = start(&self.disk, &mut self.random, self.segment_bytes)?;
        let last = started.last;
        self.trace.note(|| format!("restarted after group {last}"));
        self.auditor.restarted(last)?;
        self.latest = self.latest.max(self.now);
        if self.latest < started.newest {
            let newest = started.newest;
            return Err(Stop::Wrong(format!(
                "{newest} is in the log, and no clock was there"
            )));
        }
        self.broker = started.broker;
        self.writer = started.writer;
        self.committer = started.committer;
        (self.sealed, self.written, self.durable) = (last, last, last);
        self.frames.clear();
        self.pending.clear();
        self.released.clear();
        self.sending_on.clear();
        self.upkeep = Upkeep {
            checkpoint: None,
            compaction: None,
            ..std::mem::take(&mut self.upkeep)
        };
        self.install()?;
        let mut around = Surroundings {
            now: Timestamp::from_millis(self.now),
            journal: &mut self.writer,
            group: self.sealed + 1,
            replies: &mut Vec::new(),
        };
        self.broker.replayed(&mut around);
        self.step(&Act::Timeout)
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
        self.broker.poll_timeout().map(Timestamp::as_millis)
    }

    pub(super) fn is_clean(&self) -> bool {
        self.durable == self.sealed
    }

    /// Returns how many checkpoints, removed segments and relocated messages there were.
    pub(super) fn upkeep(&self) -> [usize; 3] {
        let upkeep = &self.upkeep;
        [upkeep.checkpoints, upkeep.removed, upkeep.relocated]
    }
}

struct Started {
    broker: Broker,
    writer: Writer,
    committer: Committer,
    last: u64,
    newest: i64,
}

/// Recovers what a disk holds, as `jitney serve` does.
fn start(disk: &Arc<FaultyDisk>, random: &mut Stream, segment_bytes: u64) -> Result<Started, Stop> {
    let number = random.next();
    let mut broker = Broker::new(number, Profile::Development);
    broker.set_memory(memory(number));
    let options = Options {
        segment_bytes,
        cache_bytes: random.index(20_000),
        store: random.next(),
        accepts_loss: false,
    };
    let mut replay = |record: &Record<'_>, body| {
        let replayed = broker.replay(record, body);
        replayed.map_err(|error| error.to_string())
    };
    let disk: Arc<dyn Disk> = Arc::<FaultyDisk>::clone(disk);
    let mut recovered = match storage::recover(disk, options, &mut replay) {
        Ok(recovered) => recovered,
        Err(Error::Io { .. }) => return Err(Stop::Ends),
        Err(error) => return Err(Stop::Wrong(format!("it does not start: {error}"))),
    };
    broker.count_shared();
    broker.for_each_body(|body| recovered.writer.retain(body));
    let bodies = recovered.writer.check_bodies();
    bodies.map_err(|error| Stop::Wrong(format!("it does not start: {error}")))?;
    Ok(Started {
        broker,
        writer: recovered.writer,
        committer: recovered.committer,
        last: recovered.last_frame,
        newest: recovered.newest.as_millis(),
    })
}

/// Makes memory that is short more often than not: then what nothing happens to is packed after each
/// step, and lies in memory or on pages.
fn memory(number: u64) -> Memory {
    let of = |sizes: [usize; 4], number: u64| sizes[usize::try_from(number % 4).expect("few")];
    let budget = Budget {
        open: of([0, 0, 2_000, 1_000_000], number),
        packed: of([0, 100, 1_000, usize::MAX], number >> 8),
        ..Budget::default()
    };
    Memory::new(budget, Some(Box::new(MemoryPages)))
}

/// Makes a rule that takes a color, or all.
fn rule(color: Option<u64>) -> Rule {
    let filter = color.map_or(Filter::True, |color| {
        let fields = CorrelationFields {
            properties: vec![(
                "color".to_owned(),
                message::Scalar::Text(format!("c{color}").into()).into(),
            )],
            ..CorrelationFields::default()
        };
        Filter::Correlation(CorrelationFilter::new(fields).expect("it asks for something"))
    });
    Rule {
        name: format!("rule-{color:?}"),
        filter,
        action: None,
        created_at: Timestamp::EPOCH,
    }
}

fn address(path: &str) -> EntityAddress {
    match Address::parse(path) {
        Ok(Address::Entity(address)) => address,
        other => panic!("{other:?}"),
    }
}

/// The year 1970 in ticks of 100 nanoseconds since the year 1 (`receiving.md#session-filter`).
const EPOCH: i64 = 621_355_968_000_000_000;

/// Reads which message session a link is let in to, and until when.
fn grant(accept: &Accept) -> Result<Option<(String, i64)>, String> {
    let Some(name) = &accept.message_session else {
        return Ok(None);
    };
    let properties = accept.properties.iter().flat_map(|fields| fields.iter());
    let mut until = properties.filter(|(key, _)| key.as_str() == "com.microsoft:locked-until-utc");
    match until.next() {
        Some((_, AmqpValue::Long(ticks))) => Ok(Some((name.clone(), (ticks - EPOCH) / 10_000))),
        other => Err(format!("the session {name} is locked until {other:?}")),
    }
}

/// Returns what the outcome of a decision is called, if it was carried out.
fn settlement(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Accepted => Some("accepted"),
        Outcome::Released => Some("released"),
        Outcome::Modified {
            undeliverable_here: true,
            ..
        } => Some("modified, undeliverable here"),
        Outcome::Modified { .. } => Some("modified"),
        Outcome::Rejected(None) => Some("rejected"),
        Outcome::Rejected(Some(_)) | Outcome::Declared(_) | Outcome::InTransaction(..) => None,
    }
}

fn condition(refusal: &Refusal) -> String {
    refusal.condition.as_str().to_owned()
}

fn refused(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Rejected(Some(rejection)) => condition(&rejection.refusal),
        other => format!("{other:?}"),
    }
}

/// The bytes of an answer, and whose it is.
fn answered(routed: &Routed) -> Option<(ConnectionId, u64)> {
    match &routed.reply {
        Reply::Respond(_, response) => Some((routed.connection, response.bytes())),
        _ => None,
    }
}
