//! The start, before listeners accept connections: shards are opened, recovered and configured.
//!
//! The record of namespaces and their shards is read first; then each shard's log, all at the same
//! time; then namespaces that have no shard get one, which is recorded before anything of them is
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use tracing::{debug, error, info, warn};

use super::arguments::ServeArgs;
use super::start_error::StartError;
use crate::host::committer::{CommitterHandle, SharedDisk};
use crate::host::disk::FileDisk;
use crate::host::memory::Plan;
use crate::host::page_file::PageFile;
use crate::host::placement::{self, Placement};
use crate::host::provision::{self, FirstNamespace};
use crate::system::clock::Clock;
use jitney_base::memory::{Memory, PageStore};
use jitney_base::rights::Key;
use jitney_broker::access::{FailedAttempts, Profile};
use jitney_broker::namespace::{Contained, Damage, StepContext};
use jitney_config::{Configuration, Namespace};
use jitney_gateway::Gateway;
use jitney_journal::Checkpoints;
use jitney_journal::memory::MemoryDisk;
use jitney_shard::routing::{Routes, ShardIndex};
use jitney_shard::{Ready, Recovering, Shard};

/// Shards that are ready to run.
pub(super) struct Started {
    /// At least one; in the order of their indexes in `routes`.
    pub(crate) shards: Vec<StartedShard>,
    pub(crate) routes: Routes,
    pub(crate) placement: Placement,
    pub(crate) clock: Arc<Clock>,
    pub(crate) memory: Memory,
    /// How many messages the logs of all shards had.
    pub(crate) messages: u64,
}

/// A shard that is ready to run.
pub(super) struct StartedShard {
    /// Its number in the data directory.
    pub(crate) number: u32,
    pub(crate) shard: Shard,
    pub(crate) committer: CommitterHandle,
    pub(crate) log: Arc<dyn Checkpoints>,
    /// The same, if it is in files: backups are made of them.
    pub(crate) files: Option<Arc<FileDisk>>,
}

/// A shard whose log was read.
struct RecoveredShard {
    number: u32,
    recovering: Recovering,
    disk: SharedDisk,
    files: Option<Arc<FileDisk>>,
}

/// The parameters of the start of all shards.
pub(super) struct Startup<'a> {
    pub(crate) args: &'a ServeArgs,
    pub(crate) config: &'a Configuration,
    pub(crate) plan: Plan,
    pub(crate) profile: Profile,
    /// For the namespaces that have no keys in the configuration.
    pub(crate) root_key: Option<Key>,
    /// Where messages are kept, and the disk of the first shard, which has it locked; without one they
    /// are in memory.
    pub(crate) data: Option<(&'a Path, Arc<FileDisk>)>,
}

impl Startup<'_> {
    /// Opens, recovers and configures all shards.
    ///
    /// # Errors
    ///
    /// Why the server cannot start.
    pub(crate) fn run(self) -> Result<Started, StartError> {
        let mut placement = match &self.data {
            Some((directory, _)) => Placement::load(directory)?,
            None => Placement::default(),
        };
        let numbers = placement.shards(self.args.shards);
        self.report_further(&numbers);
        let memory = self.memory()?;
        let recovered = self.recover(&numbers, &memory)?;
        let namespaces = self.namespaces(&placement);
        self.place(&mut placement, &namespaces, &recovered)?;
        let clock = follow(&recovered);
        let messages = recovered.iter().map(|it| it.recovering.messages).sum();
        let index = |namespace: &Namespace| {
            let number = placement.shard_of(&namespace.name);
            let at = recovered.iter().position(|shard| shard.number == number);
            ShardIndex(at.expect("every shard that has a namespace was recovered"))
        };
        let indexes = namespaces.iter().map(|it| (&it.name[..], index(it)));
        let routes = Routes::new(indexes);
        let mut shards = Vec::new();
        let share = memory.among(recovered.len());
        let in_flight = (self.plan.in_flight / recovered.len())
            .max(jitney_shard::limits::IN_FLIGHT_BYTES_MIN.min(self.plan.in_flight));
        for mut shard in recovered {
            let number = shard.number;
            let own = |it: &&Namespace| placement.shard_of(&it.name) == number;
            let own: Vec<&Namespace> = namespaces.iter().filter(own).collect();
            if clock.behind_log().is_some() {
                shard.recovering.follow_clock(clock.now());
            }
            let configure = |gateway: &mut Gateway, cx: &mut StepContext<'_>| {
                let first = if number == 0 {
                    FirstNamespace::Here
                } else {
                    FirstNamespace::Elsewhere
                };
                provision::provision(gateway, cx, &own, first, self.root_key.as_ref())
            };
            let begin = shard
                .recovering
                .begin(clock.now(), share.clone(), in_flight, configure);
            let Ready {
                shard: state,
                committer,
                last_group,
                contained,
                settled,
            } = begin
                .map_err(|lines| StartError::Entities(self.args.configuration.located(&lines)))?;
            report_damage(&contained, &settled);
            shards.push(StartedShard {
                number,
                shard: state,
                committer: CommitterHandle::start(committer, self.args.sync.into(), last_group)?,
                log: shard.disk,
                files: shard.files,
            });
        }
        Ok(Started {
            shards,
            routes,
            placement,
            clock,
            memory,
            messages,
        })
    }

    /// Returns the namespaces of the configuration, and those that the operator has made.
    fn namespaces(&self, placement: &Placement) -> Vec<Namespace> {
        let mut all = self.config.namespaces.clone();
        for name in placement.made() {
            if !all.iter().any(|it| it.name.eq_ignore_ascii_case(name)) {
                all.push(Namespace::empty(name));
            }
        }
        all
    }

    /// Reports that more shards are served than were asked for.
    fn report_further(&self, numbers: &BTreeSet<u32>) {
        let asked = self.args.shards;
        let further: Vec<u32> = numbers.range(asked..).copied().collect();
        if !further.is_empty() {
            info!(
                shards = asked,
                ?further,
                "shards beyond --shards have namespaces, and are served too; new namespaces are not \
                 put there"
            );
        }
    }

    /// Makes room for what indexes do not need in memory: one file for all shards.
    fn memory(&self) -> Result<Memory, StartError> {
        let pages = match &self.data {
            Some((directory, _)) => {
                let pages: Box<dyn PageStore> = Box::new(PageFile::create(directory)?);
                Some(pages)
            }
            None => None,
        };
        Ok(Memory::new(self.plan.budget, pages))
    }

    /// Reads the logs of all shards, each in a thread of its own.
    fn recover(
        &self,
        numbers: &BTreeSet<u32>,
        memory: &Memory,
    ) -> Result<Vec<RecoveredShard>, StartError> {
        let mut disks: Vec<(u32, SharedDisk, Option<Arc<FileDisk>>)> = Vec::new();
        for &number in numbers {
            let files = match &self.data {
                Some((_, files)) if number == 0 => Some(Arc::clone(files)),
                Some((directory, _)) => {
                    let directory = placement::directory_of(directory, number);
                    Some(FileDisk::open(&directory)?)
                }
                None => None,
            };
            let disk: SharedDisk = match &files {
                Some(files) => Arc::<FileDisk>::clone(files),
                None => Arc::new(MemoryDisk::within(memory)),
            };
            disks.push((number, disk, files));
        }
        let count = disks.len();
        let share = memory.among(count);
        let attempts = FailedAttempts::default();
        let results = thread::scope(|scope| {
            let threads = disks.into_iter().map(|(number, disk, files)| {
                let (read, share, attempts) = (&self, share.clone(), attempts.clone());
                scope.spawn(move || {
                    let recovering =
                        read.recover_one(number, Arc::clone(&disk), count, share, attempts)?;
                    Ok::<_, jitney_journal::Error>(RecoveredShard {
                        number,
                        recovering,
                        disk,
                        files,
                    })
                })
            });
            let threads: Vec<_> = threads.collect();
            let joined = threads.into_iter().map(ScopedJoinHandle::join);
            joined.collect::<Vec<_>>()
        });
        let shards = results.into_iter().map(|result| {
            let recovered = result.map_err(|_| StartError::Recovery)??;
            report_recovery(recovered.number, &recovered.recovering);
            Ok(recovered)
        });
        shards.collect()
    }

    fn recover_one(
        &self,
        number: u32,
        disk: SharedDisk,
        count: usize,
        memory: Memory,
        attempts: FailedAttempts,
    ) -> Result<Recovering, jitney_journal::Error> {
        let seed = RandomState::new().hash_one((std::process::id(), number));
        let mut gateway = Gateway::new(seed, self.profile);
        gateway.set_token_issuer(self.args.oidc.issuer());
        if self.args.configuration.create_on_use {
            gateway.create_on_use();
        }
        gateway.set_memory(memory);
        gateway.share_failed_attempts(attempts);
        let mut options = jitney_journal::Options::new(seed);
        options.cache_bytes = self.plan.part_of_cache(self.plan.cache, count);
        if self.data.is_none() {
            options.segment_bytes = self.plan.segment;
        }
        options.accepts_loss = self.args.accept_data_loss;
        Recovering::recover(gateway, disk, options)
    }

    /// Gives namespaces their shards, and records that.
    fn place(
        &self,
        placement: &mut Placement,
        namespaces: &[Namespace],
        recovered: &[RecoveredShard],
    ) -> Result<(), StartError> {
        let found = recovered
            .iter()
            .map(|shard| (shard.number, shard.recovering.namespaces()));
        let found: BTreeMap<u32, BTreeSet<String>> = found.collect();
        let names: Vec<&str> = namespaces.iter().map(|it| &it.name[..]).collect();
        let directory = self.data.as_ref().map(|(directory, _)| *directory);
        let place = directory.unwrap_or_else(|| Path::new(""));
        let has_changed = placement.place(place, &names, self.args.shards, &found)?;
        match directory {
            Some(directory) if has_changed => Ok(placement.store(directory)?),
            _ => Ok(()),
        }
    }
}

/// Follows the system's clock, though a log may have times that lie ahead of it.
fn follow(recovered: &[RecoveredShard]) -> Arc<Clock> {
    let newest = recovered.iter();
    let newest = newest
        .map(|shard| shard.recovering.recovered().newest)
        .max();
    let clock = Clock::new(newest.unwrap_or(jitney_base::time::Timestamp::EPOCH));
    if let Some(behind) = clock.behind_log() {
        warn!(
            milliseconds = behind.as_millis(),
            "the log has times that lie ahead of the system's clock, which was ahead then or is behind \
             now. It is followed: messages keep their stamps, numbers and order; check the clock"
        );
    }
    Arc::new(clock)
}

/// Reports what the recovery of a shard's log found.
fn report_recovery(shard: u32, recovering: &Recovering) {
    let (recovered, salvaged) = (recovering.recovered(), &recovering.salvaged);
    if let Some(cut) = recovered.cut {
        warn!(
            shard,
            segment = %cut.segment,
            offset = cut.offset,
            bytes = cut.bytes,
            frames = cut.frames,
            "the end of the log was cut off: a crash left frames there that were never synced, or the \
             newest one is damaged"
        );
    }
    for loss in &recovered.losses {
        error!(
            shard,
            segment = %loss.segment,
            offset = loss.offset,
            "data loss accepted: the log is used without this damaged part: {}",
            loss.what
        );
    }
    if 0 < salvaged.skipped {
        error!(
            shard,
            records = salvaged.skipped,
            "records that refer to lost ones were skipped"
        );
    }
    for queue in &salvaged.unnamed {
        error!(
            shard,
            queue, "the record with an entity's name is lost: its messages are in this queue"
        );
    }
    debug!(shard, messages = recovering.messages, "recovered");
}

/// Reports the messages whose bytes are damaged or lost.
fn report_damage(contained: &[Contained], settled: &[Damage]) {
    for found in contained {
        error!(
            entity = found.entity,
            number = found.number.0,
            place = found.place,
            "the bytes of a message are damaged: it is in the dead-letter queue with an empty body; \
             check the disk"
        );
    }
    for damage in settled {
        error!(
            place = damage.place,
            "the bytes of a settled message are damaged; check the disk"
        );
    }
}
