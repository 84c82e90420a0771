//! What the journal needs now and then: checkpoints, compaction, the removal of old segments. And
//! messages that need their bytes to be forwarded.

use std::collections::VecDeque;

use tracing::{debug, error, info, warn};

use super::{
    Cause, MaintenanceCounters, Observation, Output, ReadDone, ReadPurpose, Shard, Shortage,
};
use crate::limits;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{
    FoundBody, JobPage, Lack, Room, SearchPosition, Snapshot, WantedBody,
};
use jitney_journal::{CheckpointAt, Checkpoints};
use jitney_queue::Positions;

/// The maintenance that is under way.
#[derive(Debug)]
pub(super) struct Maintenance {
    pub(super) room: Room,
    checkpoint: Checkpoint,
    compaction: Option<Compaction>,
    /// Messages whose bytes are being read, so that they can be forwarded.
    forwarding: Vec<WantedBody>,
    /// The step of a job whose messages' bytes are being read.
    pub(super) job: Option<JobPage>,
    /// A step of a job has taken some milliseconds in this turn of the owner: the next is in the next one.
    pub(super) job_rests: bool,
    /// Jobs that waited for room at the last look.
    waiting_jobs: usize,
    pub(super) counters: MaintenanceCounters,
}

#[derive(Debug)]
enum Checkpoint {
    None,
    /// Taken, and not to be written before this group is synced, whatever the policy: it must not
    /// tell of records that the log may not have.
    Taken {
        group: u64,
        task: Box<CheckpointTask>,
    },
    BeingWritten,
}

/// A checkpoint to be written.
#[derive(Debug)]
pub struct CheckpointTask {
    at: CheckpointAt,
    snapshot: Snapshot,
}

/// A checkpoint that is on the disk.
#[derive(Debug)]
pub struct WrittenCheckpoint(CheckpointAt);

impl CheckpointTask {
    /// Writes the checkpoint, and removes older ones.
    ///
    /// # Errors
    ///
    /// The checkpoints that were there are there still.
    pub fn write(self, log: &dyn Checkpoints) -> Result<WrittenCheckpoint, jitney_journal::Error> {
        let Self { at, snapshot } = self;
        jitney_journal::write_checkpoint(log, at, |emit| snapshot.records(emit))
            .map(WrittenCheckpoint)
    }
}

/// The live bodies of some segments on their way to the log's end.
#[derive(Debug)]
struct Compaction {
    positions: Positions,
    /// Where to look for more; `None` at the end.
    search: Option<SearchPosition>,
    /// Those that were found and wait to be read: pinned.
    waiting: VecDeque<FoundBody>,
    /// Those that are being read.
    found: Vec<FoundBody>,
}

impl Default for Maintenance {
    fn default() -> Self {
        Self {
            room: Room::Enough,
            checkpoint: Checkpoint::None,
            compaction: None,
            forwarding: Vec::new(),
            job: None,
            job_rests: false,
            waiting_jobs: 0,
            counters: MaintenanceCounters::default(),
        }
    }
}

impl Shard {
    /// Does some of what is due; the open group has just been sealed.
    pub(super) fn maintain(&mut self) {
        self.set_room();
        self.gateway.namespaces_mut().pack_indexes();
        self.take_checkpoint();
        self.compact();
        let removable = self.journal.take_removable();
        if !removable.is_empty() {
            self.maintenance.counters.segments_removed +=
                u64::try_from(removable.len()).unwrap_or(u64::MAX);
            debug!(
                count = removable.len(),
                "removing segments that hold nothing alive"
            );
            self.outputs.push_back(Output::RemoveSegments(removable));
        }
    }

    /// Returns whether there is something to do that waits for nothing but its turn.
    pub(super) fn has_unfinished(&self) -> bool {
        let compaction = self.maintenance.compaction.as_ref();
        compaction.is_some_and(|compaction| compaction.found.is_empty())
            || self.may_forward()
            || self.may_work()
            || self.gateway.has_unfinished()
    }

    /// Accepts messages, or refuses them, as disk and memory have room.
    fn set_room(&mut self) {
        let memory_is_full = self.pressure.is_full || self.memory.is_full();
        let room = if memory_is_full {
            Room::None(Lack::Memory)
        } else if self.journal.accepts_messages() {
            Room::Enough
        } else {
            Room::None(Lack::Disk)
        };
        let shortage = self.shortage_of(room);
        let figures = shortage.map(Shortage::figures).unwrap_or_default();
        self.gateway.namespaces_mut().set_figures(figures);
        if self.maintenance.room == room {
            self.tell_of_waiting();
            return;
        }
        self.maintenance.room = room;
        self.gateway.namespaces_mut().set_room(room);
        if let Some(observer) = &mut self.observer {
            observer.observe(Observation::Room(room));
        }
        match shortage {
            Some(shortage) => warn!(
                missing_bytes = shortage.missing(),
                "{shortage}. Messages are refused until there is room; receivers are served. {}",
                shortage.remedy()
            ),
            None => info!("there is room again: messages are accepted"),
        }
        self.maintenance.waiting_jobs = 0;
        self.tell_of_waiting();
    }

    /// Logs that jobs wait for room, if it is more of them than before.
    fn tell_of_waiting(&mut self) {
        let namespaces = self.gateway.namespaces();
        let waiting = namespaces.running_jobs() - namespaces.workable_jobs();
        let before = std::mem::replace(&mut self.maintenance.waiting_jobs, waiting);
        if before < waiting
            && let Some(shortage) = self.shortage_of(self.maintenance.room)
        {
            warn!(
                jobs = waiting,
                "{shortage}. Jobs that move or change messages wait until there is room, because they do not free any. {}",
                shortage.remedy()
            );
        }
    }

    /// Returns whether messages may be forwarded: the disk keeps up, and none are being read.
    fn may_forward(&self) -> bool {
        self.maintenance.forwarding.is_empty()
            && self.gateway.namespaces().has_wanted()
            && self.maintenance.room == Room::Enough
            && self.durability.is_below_max()
    }

    /// Forwards messages whose bytes are in memory, as most are, or asks for their bytes.
    pub(super) fn forward(&mut self, now: Timestamp) {
        if !self.may_forward() {
            return;
        }
        let wanted = self.gateway.namespaces_mut().wanted();
        if wanted.is_empty() {
            return;
        }
        let cached = wanted
            .iter()
            .map(|wanted| Some((*wanted, self.journal.cached(wanted.body)?)));
        if let Some(found) = cached.collect::<Option<Vec<_>>>() {
            self.read_back(now, found);
            self.seal(now);
            return;
        }
        let bodies = wanted.iter().map(|wanted| wanted.body).collect();
        self.read(ReadPurpose::Forward, bodies);
        self.maintenance.forwarding = wanted;
    }

    /// Forwards messages whose bytes were read.
    pub(super) fn forward_read(&mut self, now: Timestamp, done: &ReadDone) {
        let wanted = std::mem::take(&mut self.maintenance.forwarding);
        let found = wanted
            .iter()
            .filter_map(|wanted| Some((*wanted, done.body(wanted.body)?)));
        self.read_back(now, found.collect());
        for wanted in wanted {
            if let Some(damage) = done.damage_of(wanted.body) {
                self.contain_in(now, wanted.entity, wanted.number, damage);
            }
        }
    }

    fn read_back(&mut self, now: Timestamp, found: Vec<(WantedBody, bytes::Bytes)>) {
        // A clone of the list is a count for each body.
        let bodies = if self.observer.is_some() {
            found.clone()
        } else {
            Vec::new()
        };
        self.step(now, Cause::Forward(&bodies), |gateway, cx| {
            gateway.read_back(cx, found);
        });
    }

    /// Returns whether a checkpoint or a compaction is due or under way: then no records are held. A checkpoint is taken
    /// between two groups.
    pub(super) fn maintains(&self) -> bool {
        let has_checkpoint = !matches!(self.maintenance.checkpoint, Checkpoint::None);
        has_checkpoint || self.maintenance.compaction.is_some() || self.journal.checkpoint_due()
    }

    fn take_checkpoint(&mut self) {
        debug_assert!(
            !self.journal.checkpoint_due() || self.journal.open_bytes() == 0,
            "a checkpoint would have what the log before it has not"
        );
        match &self.maintenance.checkpoint {
            Checkpoint::None if self.journal.checkpoint_due() => {
                let task = CheckpointTask {
                    at: self.journal.checkpoint_at(),
                    snapshot: self.gateway.namespaces().snapshot(),
                };
                self.outputs.push_back(Output::Sync);
                self.maintenance.checkpoint = Checkpoint::Taken {
                    group: self.durability.sealed(),
                    task: Box::new(task),
                };
            }
            Checkpoint::Taken { group, .. } if *group <= self.durability.synced() => {
                let being_written = Checkpoint::BeingWritten;
                let taken = std::mem::replace(&mut self.maintenance.checkpoint, being_written);
                if let Checkpoint::Taken { task, .. } = taken {
                    self.outputs.push_back(Output::WriteCheckpoint(task));
                }
            }
            Checkpoint::None | Checkpoint::Taken { .. } | Checkpoint::BeingWritten => {}
        }
    }

    /// A checkpoint was written, or could not be: the log has everything, and the next is written
    /// later.
    pub(super) fn checkpoint_written(
        &mut self,
        written: Result<WrittenCheckpoint, jitney_journal::Error>,
    ) {
        self.maintenance.checkpoint = Checkpoint::None;
        match written {
            Ok(WrittenCheckpoint(at)) => {
                self.maintenance.counters.checkpoints += 1;
                self.journal.checkpoint_written(at);
            }
            Err(error) => {
                self.maintenance.counters.checkpoints_failed += 1;
                error!(%error, "a checkpoint could not be written");
                self.journal.checkpoint_failed();
            }
        }
    }

    fn compact(&mut self) {
        let Some(compaction) = &mut self.maintenance.compaction else {
            let candidates = self.journal.compaction_candidates();
            self.maintenance.compaction = candidates.map(|positions| Compaction {
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
            debug!(positions = ?compaction.positions, "compacted: what is alive is at the log's end");
            self.maintenance.compaction = None;
            self.maintenance.counters.compactions += 1;
            self.gateway.namespaces_mut().end_search();
            return;
        };
        let positions = &compaction.positions;
        let scan = jitney_broker::limits::COMPACTION_SCAN;
        let (found, rest) = self
            .gateway
            .namespaces()
            .search_bodies(positions, search, scan);
        compaction.search = rest;
        // Until they are read: all of them may be gone by then.
        for found in &found {
            self.journal.pin(found.body);
        }
        compaction.waiting = found.into();
        self.read_survivors();
    }

    /// Asks for some of the bodies that compaction has found.
    fn read_survivors(&mut self) {
        let Some(compaction) = &mut self.maintenance.compaction else {
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
        self.read(ReadPurpose::Compact, bodies.clone());
        for body in bodies {
            self.journal.unpin(body);
        }
    }

    /// Appends what was read at the log's end, if it is still alive.
    pub(super) fn relocate(&mut self, now: Timestamp, done: &ReadDone) {
        let Some(compaction) = &mut self.maintenance.compaction else {
            return;
        };
        let found = std::mem::take(&mut compaction.found);
        let bytes: u64 = found.iter().map(|it| u64::from(it.body.length)).sum();
        self.maintenance.counters.compacted_bytes += bytes;
        self.step(now, Cause::Compaction(&found), |gateway, cx| {
            for found in &found {
                if let Some(body) = done.body(found.body) {
                    gateway.namespaces_mut().relocate(cx, found, &body);
                }
            }
        });
        for found in found {
            if let Some(damage) = done.damage_of(found.body) {
                self.contain_in(now, found.entity, found.number, damage);
            }
        }
    }
}
