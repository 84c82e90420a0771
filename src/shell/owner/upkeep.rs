//! What the log needs now and then: checkpoints, compaction, the removal of old segments.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;

use tracing::{debug, error};

use super::super::committer::{Order, SharedDisk};
use super::super::mailbox::Mail;
use super::super::reader::{Done, Purpose};
use super::super::supervisor;
use super::Owner;
use crate::broker::recovery::{FoundBody, SearchPosition};
use crate::broker::{Room, Snapshot, WantedBody};
use crate::entity::Positions;
use crate::limits;
use crate::storage::{self, CheckpointAt};
use crate::time::Timestamp;

/// A checkpoint that is on the disk.
#[derive(Debug)]
pub(in super::super) struct Written(CheckpointAt);

pub(super) struct Upkeep {
    pub(super) room: Room,
    pub(super) checkpoint: Checkpoint,
    compaction: Option<Compaction>,
    /// Messages that go on from one entity to another when their bytes have been read.
    sending_on: Vec<WantedBody>,
    pub(super) start_thread: StartThread,
}

/// Something that a thread of its own does.
type Work = Box<dyn FnOnce() + Send>;
/// What is to be done if it panics, with what the panic says.
type Panicked = Box<dyn FnOnce(String) + Send>;

/// How the thread of a checkpoint is started.
pub(super) type StartThread = fn(Work, Panicked) -> io::Result<()>;

/// Starts the thread of a checkpoint, which the broker can do without: the log has everything.
pub(super) fn start_thread(work: Work, panicked: Panicked) -> io::Result<()> {
    let ended = |end: thread::Result<()>| {
        if let Err(panic) = end {
            panicked(supervisor::message(&*panic));
        }
    };
    supervisor::spawn_watched("checkpoint", work, ended).map(drop)
}

pub(super) enum Checkpoint {
    None,
    /// Taken, and not to be written before this group is synced, whatever the policy: it must not
    /// tell of records that the log may not have.
    Taken {
        group: u64,
        at: CheckpointAt,
        snapshot: Snapshot,
    },
    BeingWritten,
}

/// The survivors of some segments on their way to the log's end.
struct Compaction {
    positions: Positions,
    /// Where to look for more; `None` at the end.
    search: Option<SearchPosition>,
    /// Those that were found and wait to be read: pinned.
    waiting: VecDeque<FoundBody>,
    /// Those that are being read.
    found: Vec<FoundBody>,
}

impl Default for Upkeep {
    fn default() -> Self {
        let (checkpoint, compaction) = (Checkpoint::None, None);
        Self {
            room: Room::Enough,
            checkpoint,
            compaction,
            sending_on: Vec::new(),
            start_thread,
        }
    }
}

fn failed(what: &'static str, source: io::Error) -> storage::Error {
    storage::Error::Io {
        what,
        place: "a checkpoint".to_owned(),
        source,
    }
}

impl Owner {
    /// Does some of what is to be done; the writer has just sealed its group.
    pub(super) fn maintain(&mut self) {
        self.set_room();
        self.broker.relieve();
        self.take_checkpoint();
        self.compact();
        let removable = self.writer.take_removable();
        if !removable.is_empty() {
            debug!(
                count = removable.len(),
                "removing segments that hold nothing alive"
            );
            self.committer.order(Order::Remove(removable));
        }
    }

    /// Returns whether there is upkeep that waits for nothing but its turn: calls that others have
    /// interrupted are.
    pub(super) fn has_upkeep(&self) -> bool {
        let compaction = self.upkeep.compaction.as_ref();
        compaction.is_some_and(|compaction| compaction.found.is_empty())
            || self.may_send_on()
            || self.broker.has_unfinished()
    }

    /// Returns whether messages may be sent on: the disk keeps up, and none are being read.
    fn may_send_on(&self) -> bool {
        self.upkeep.sending_on.is_empty()
            && self.broker.has_wanted()
            && self.upkeep.room == Room::Enough
            && self.in_flight_bytes < self.pace.most
    }

    /// Reads bytes that messages need to go on from one entity to another; most are in memory.
    pub(super) fn send_on(&mut self, now: Timestamp) {
        if !self.may_send_on() {
            return;
        }
        let wanted = self.broker.wanted();
        let cached = wanted
            .iter()
            .map(|wanted| Some((*wanted, self.writer.cached(wanted.body)?)));
        if let Some(found) = cached.collect::<Option<Vec<_>>>() {
            self.step(now, |broker, around| broker.read_back(around, found));
            self.seal();
            return;
        }
        let bodies = wanted.iter().map(|wanted| wanted.body);
        self.read(Purpose::SendOn, bodies.collect());
        self.upkeep.sending_on = wanted;
    }

    /// Lets messages go on whose bytes were read.
    pub(super) fn send_on_read(&mut self, now: Timestamp, done: &Done) {
        let wanted = std::mem::take(&mut self.upkeep.sending_on);
        let found = wanted.iter().filter_map(|wanted| {
            let mut stretches = done.stretches.iter();
            let body = stretches.find_map(|read| read.body(wanted.body))?;
            Some((*wanted, body))
        });
        let found = found.collect();
        self.step(now, |broker, around| broker.read_back(around, found));
        for wanted in wanted {
            if let Some(damage) = done.damage_of(wanted.body) {
                self.contain_in(now, (wanted.entity, wanted.number), damage);
            }
        }
    }

    pub(super) fn take_checkpoint(&mut self) {
        match &self.upkeep.checkpoint {
            Checkpoint::None if self.writer.checkpoint_due() => {
                let (group, at) = (self.sealed, self.writer.checkpoint_at());
                let snapshot = self.broker.snapshot();
                self.committer.order(Order::Sync);
                self.upkeep.checkpoint = Checkpoint::Taken {
                    group,
                    at,
                    snapshot,
                };
            }
            Checkpoint::Taken { group, .. } if *group <= self.synced => {
                let taken =
                    std::mem::replace(&mut self.upkeep.checkpoint, Checkpoint::BeingWritten);
                if let Checkpoint::Taken { at, snapshot, .. } = taken {
                    self.write_checkpoint(at, snapshot);
                }
            }
            Checkpoint::None | Checkpoint::Taken { .. } | Checkpoint::BeingWritten => {}
        }
    }

    fn write_checkpoint(&mut self, at: CheckpointAt, snapshot: Snapshot) {
        let disk: SharedDisk = Arc::clone(&self.disk);
        let (owner, owner_of_panic) = (self.sender.clone(), self.sender.clone());
        let work = move || {
            match storage::write_checkpoint(&*disk, at, |emit| snapshot.records(emit)) {
                // The owner is gone when the broker stops; the checkpoint is good all the same.
                Ok(at) => drop(owner.blocking_send(Mail::CheckpointWritten(Ok(Written(at))))),
                Err(error) => drop(owner.blocking_send(Mail::CheckpointWritten(Err(error)))),
            }
        };
        let panicked = move |message| {
            let text = format!("its thread has panicked ({message}), which is a bug");
            let source = io::Error::other(text);
            let failed = Err(failed("write", source));
            drop(owner_of_panic.blocking_send(Mail::CheckpointWritten(failed)));
        };
        let started = (self.upkeep.start_thread)(Box::new(work), Box::new(panicked));
        if let Err(source) = started {
            self.checkpoint_written(Err(failed("start the thread of", source)));
        }
    }

    pub(super) fn checkpoint_written(&mut self, written: Result<Written, storage::Error>) {
        self.upkeep.checkpoint = Checkpoint::None;
        match written {
            Ok(Written(at)) => self.writer.checkpoint_written(at),
            // The log has everything; the next checkpoint may have more luck.
            Err(error) => {
                error!(%error, "a checkpoint could not be written");
                self.writer.checkpoint_failed();
            }
        }
    }

    fn compact(&mut self) {
        let Some(compaction) = &mut self.upkeep.compaction else {
            self.upkeep.compaction =
                self.writer
                    .compaction_candidates()
                    .map(|positions| Compaction {
                        positions,
                        search: Some(SearchPosition::default()),
                        waiting: VecDeque::new(),
                        found: Vec::new(),
                    });
            return;
        };
        if !compaction.found.is_empty() {
            return;
        }
        if !compaction.waiting.is_empty() {
            return self.read_survivors();
        }
        let Some(search) = compaction.search else {
            debug!(positions = ?compaction.positions, "survivors stand at the log's end now");
            self.upkeep.compaction = None;
            self.broker.end_search();
            return;
        };
        let (found, rest) =
            self.broker
                .search_bodies(&compaction.positions, search, limits::COMPACTION_SCAN);
        compaction.search = rest;
        // Until they are read: all of them may be gone by then.
        for found in &found {
            self.writer.pin(found.body);
        }
        compaction.waiting = found.into();
        self.read_survivors();
    }

    /// Asks for the bytes of some survivors.
    fn read_survivors(&mut self) {
        let Some(compaction) = &mut self.upkeep.compaction else {
            return;
        };
        let mut bytes = 0;
        while bytes < limits::COMPACTION_BYTES
            && let Some(found) = compaction.waiting.pop_front()
        {
            bytes += usize::try_from(found.body.length).unwrap_or(limits::COMPACTION_BYTES);
            compaction.found.push(found);
        }
        let bodies: Vec<_> = compaction.found.iter().map(|found| found.body).collect();
        if bodies.is_empty() {
            return;
        }
        self.read(Purpose::Compact, bodies.clone());
        for body in bodies {
            self.writer.unpin(body);
        }
    }

    /// Appends what was read at the log's end, if it is still alive.
    pub(super) fn relocate(&mut self, now: Timestamp, done: &Done) {
        let Some(compaction) = &mut self.upkeep.compaction else {
            return;
        };
        let found = std::mem::take(&mut compaction.found);
        self.step(now, |broker, around| {
            for found in &found {
                let mut stretches = done.stretches.iter();
                let body = stretches.find_map(|read| read.body(found.body));
                if let Some(body) = body {
                    broker.relocate(around, found, &body);
                }
            }
        });
        for found in found {
            if let Some(damage) = done.damage_of(found.body) {
                self.contain_in(now, (found.entity, found.number), damage);
            }
        }
    }
}
