//! A log in the rows of a database: its owner, those that were owners before and do not know that they are not, and all
//! that goes wrong between a server and its database.

use jitney_journal::SegmentId;
use jitney_journal::appender::{Answer, End, Event};
use jitney_shard::Recovering;

use super::super::database::Database;
use super::super::plan::Fault;
use super::super::rowlog::ModelLog;
use super::super::server::{Server, end_of};
use super::super::start::{StartParts, Started, begin};
use super::super::watcher::Watcher;
use super::*;

/// How often the database may continue before something that must happen has happened.
const PATIENCE: usize = 10_000;

/// What a fault has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum Failed {
    /// The server continues.
    Goes,
    /// The server ends, or another takes the log over.
    Ends,
    /// It is none of the log's.
    Other,
}

/// The log, its owner, and former ones.
pub(super) struct Rows {
    database: Arc<Database>,
    /// The number of the log's store.
    store: u64,
    random: Stream,
    owner: Option<Server>,
    former: Vec<Former>,
}

/// A server that does not know yet that another has the log.
struct Former {
    server: Server,
    /// The last group that the next owner has read: what was answered is not after it.
    last: u64,
    checkpoint: Option<Box<CheckpointTask>>,
}

impl Rows {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Stream::new(seed, "rows");
        Self {
            database: Arc::new(Database::new(random.fork())),
            store: random.next(),
            random,
            owner: None,
            former: Vec::new(),
        }
    }

    pub(super) fn log(&self) -> Arc<ModelLog> {
        Arc::clone(&self.owner().log)
    }

    fn owner(&self) -> &Server {
        self.owner.as_ref().expect("the log was taken")
    }

    pub(super) fn commit(&mut self, frames: impl Iterator<Item = Frame>) {
        let owner = self.owner.as_mut().expect("the log was taken");
        for frame in frames {
            owner.appender.commit(frame);
        }
    }

    pub(super) fn remove(&self, segment: SegmentId) {
        // If it is refused, the next owner does it.
        let _ = self.log().remove_segment(segment);
    }

    /// A new server takes the log over; returns the last group that it has read, too.
    pub(super) fn start(
        &mut self,
        random: &mut Stream,
        segment_bytes: u64,
        now: i64,
        entities: &[Planned],
    ) -> Result<(Started, u64), Stop> {
        let mut server = self.take()?;
        let mut parts = StartParts::new(random, segment_bytes);
        parts.options.store = self.store;
        let read = Recovering::read_rows(parts.gateway, &*server.log, parts.options);
        let (mut recovering, last) = read.map_err(|error| format!("it does not start: {error}"))?;
        let found = last.place.frame;
        server.answered(Answer::Read(last));
        let barrier = recovering.barrier();
        let number = barrier.number;
        server.appender.commit(barrier);
        let is_durable = |it: &Server| number <= it.appender.durable();
        if let Some(end) = self.wait(&mut server, "append", is_durable)? {
            return Err(Stop::Wrong(format!("a new owner cannot append: {end}")));
        }
        for former in &mut self.former {
            former.last = former.last.min(found);
        }
        let watcher = Watcher {
            seen: Seen::default(),
            log: Arc::<ModelLog>::clone(&server.log),
            damaged: None,
        };
        self.owner = Some(server);
        let (started, ()) = begin(recovering, parts.memory, now, entities, watcher)?;
        Ok((started, found))
    }

    /// Takes the log over. A former owner that finds out what it has appended raises the epoch meanwhile.
    fn take(&mut self) -> Result<Server, Stop> {
        for _ in 0..PATIENCE {
            let mut server = Server::new(&self.database, self.store, self.random.fork());
            match self.wait(&mut server, "read the log", Server::is_reading)? {
                None => return Ok(server),
                Some(End::Fenced) => {}
                Some(end) => return Err(Stop::Wrong(format!("a log cannot be taken: {end}"))),
            }
        }
        Err(Stop::Wrong("a log never can be taken".to_owned()))
    }

    /// Lets the database continue until a new server is so far, with some faults on the way.
    fn wait(
        &mut self,
        server: &mut Server,
        what: &str,
        is_done: impl Fn(&Server) -> bool,
    ) -> Result<Option<End>, Stop> {
        for _ in 0..PATIENCE {
            let events = server.drive();
            if is_done(server) {
                return Ok(None);
            }
            if let Some(end) = end_of(&events) {
                return Ok(Some(end.clone()));
            }
            self.database.pass(1 + self.random.below(4));
            if let Some(session) = server.session()
                && self.random.percent(1)
            {
                // An append or a question of an owner is asked again; an acquisition is not.
                if 0 < server.appender.durable() {
                    self.database.terminate(session);
                }
            }
        }
        Err(Stop::Wrong(format!("a new owner never can {what}")))
    }

    /// The owner is one no more, and may or may not know that.
    fn leave(&mut self, mut checkpoint: Option<Box<CheckpointTask>>) {
        let Some(mut server) = self.owner.take() else {
            return;
        };
        if let Some(task) = checkpoint.take_if(|_| self.random.percent(30)) {
            // It ends in the middle of a checkpoint.
            let parts = self.random.below(3);
            server.log.end_after(parts);
            let _ = task.write(&*server.log);
        }
        if self.random.percent(70) {
            let last = u64::MAX;
            self.former.push(Former {
                server,
                last,
                checkpoint,
            });
        } else {
            server.lose_session();
        }
    }

    /// Former owners do what they are at. Nothing of it may come about.
    fn drive_former(&mut self) -> Result<(), String> {
        let mut left = Vec::new();
        for mut former in std::mem::take(&mut self.former) {
            let events = former.server.drive();
            let durable = former.server.appender.durable();
            if former.last < durable {
                return Err(format!(
                    "a former owner was told that group {durable} is durable, and the next one has read {}",
                    former.last
                ));
            }
            match end_of(&events) {
                Some(End::Fenced) => continue,
                Some(end) => return Err(format!("a former owner ends: {end}")),
                None => {}
            }
            if self.random.percent(20) {
                self.meddle(&mut former)?;
            }
            left.push(former);
        }
        self.former = left;
        Ok(())
    }

    /// A former owner writes its checkpoint and removes what it does not need.
    fn meddle(&mut self, former: &mut Former) -> Result<(), String> {
        let checkpoints = |database: &Database| {
            database.look(|tables| (tables.checkpoints.clone(), tables.segments()))
        };
        let before = checkpoints(&self.database);
        if let Some(task) = former.checkpoint.take()
            && task.write(&*former.server.log).is_ok()
        {
            return Err("a former owner has written a checkpoint".to_owned());
        }
        if let Some(&segment) = before.1.keys().next() {
            let _ = former.server.log.remove_segment(segment);
        }
        if checkpoints(&self.database) != before {
            return Err("a former owner has changed the log".to_owned());
        }
        Ok(())
    }
}

impl Harness {
    pub(in crate::sim) fn is_in_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// The database continues for a while.
    pub(super) fn pass_rows(&mut self) -> Result<(), Stop> {
        if let Some(rows) = &mut self.rows {
            rows.database.pass(rows.random.below(12));
        }
        self.drive_rows()
    }

    /// Everything that was committed becomes durable.
    pub(super) fn pass_all_rows(&mut self) -> Result<(), Stop> {
        for _ in 0..PATIENCE {
            if let Some(rows) = &self.rows {
                rows.database.pass_all();
            }
            self.drive_rows()?;
            let is_idle = self.rows.as_ref().is_some_and(|it| it.owner().is_idle());
            if is_idle && self.durable == self.sealed - self.unsent_frames() && !self.is_away {
                return Ok(());
            }
        }
        Err(Stop::Wrong("what was appended is never durable".to_owned()))
    }

    fn unsent_frames(&self) -> u64 {
        u64::try_from(self.frames.len()).expect("few")
    }

    fn drive_rows(&mut self) -> Result<(), Stop> {
        let Some(rows) = &mut self.rows else {
            return Ok(());
        };
        let owner = rows.owner.as_mut().expect("the log was taken");
        let events = owner.drive();
        let durable = owner.appender.durable();
        rows.drive_former()?;
        for event in events {
            self.trace.note(|| format!("the log: {event:?}"));
            match event {
                Event::Unknown { group, .. } => {
                    self.is_away = true;
                    self.expect_abandoned();
                    self.handle(Input::AppendUnknown { group });
                }
                Event::Back => {
                    self.is_away = false;
                    self.handle(Input::StoreBack);
                }
                Event::Ended(end) => return Err(Stop::Wrong(format!("the owner ends: {end}"))),
            }
            self.judge()?;
        }
        if self.durable < durable {
            (self.durable, self.written) = (durable, durable);
            self.auditor.durable(durable);
            self.handle(Input::Durable {
                durable,
                synced: durable,
            });
        }
        self.judge()
    }

    /// Something goes wrong with the database, the connections to it, or the server.
    pub(in crate::sim) fn fail_rows(&mut self, fault: Fault) -> Result<Failed, Stop> {
        if fault == Fault::Fenced {
            self.fence()?;
        }
        let Some(rows) = &mut self.rows else {
            return Ok(Failed::Other);
        };
        let session = rows.owner().session();
        let database = &rows.database;
        match (fault, session) {
            (Fault::Crash | Fault::Kill | Fault::Fenced, _) => {
                rows.leave(self.checkpoint.take());
                return Ok(Failed::Ends);
            }
            (Fault::Fuse, _) if rows.random.percent(50) => database.restart(),
            (Fault::Fuse, _) => database.promote(),
            (Fault::Full, Some(session)) => database.cancel(session),
            (Fault::SyncFails, Some(session)) if rows.random.percent(30) => {
                database.cut_in_the_middle(session);
            }
            (Fault::SyncFails, Some(session)) => database.terminate(session),
            (Fault::Store, _) => {
                if let Some(owner) = &mut rows.owner {
                    owner.lose_session();
                }
            }
            (Fault::Full | Fault::SyncFails, None) => {}
            (Fault::Stop | Fault::Describe, _) => return Ok(Failed::Other),
        }
        Ok(Failed::Goes)
    }
}
