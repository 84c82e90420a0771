//! A shard's start on a faulty disk, and the reads of the log that fail.

use std::sync::Arc;

use jitney_base::address::{Address, EntityAddress};
use jitney_base::ids::SequenceNumber;
use jitney_base::memory::{Budget, Memory, MemoryPages};
use jitney_base::time::Timestamp;
use jitney_broker::access::Profile;
use jitney_broker::namespace::StepContext;
use jitney_gateway::Gateway;
use jitney_journal::{Committer, Disk, Error, NEWEST_KIND, Options};
use jitney_queue::Record;
use jitney_rules::{CorrelationFields, CorrelationFilter, Filter, Rule};
use jitney_shard::{Ready, Recovering, Shard};

use super::audit::Told;
use super::disk::FaultyDisk;
use super::plan::Planned;
use super::random::Stream;
use super::watcher::{Seen, Watcher};
use super::world::Stop;

/// Where reads for bodies fail, and those of a start: before so many others.
pub(super) const READS_OF_BODIES: u64 = 2;
const READS_OF_STARTS: u64 = 40;

/// How often reads of the log fail.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) random: Stream,
    /// In a thousand times.
    pub(super) chance: u64,
}

impl Unreadable {
    /// Reads from the disk, which may fail after fewer reads than `most`.
    pub(super) fn read<T>(
        &mut self,
        disk: &FaultyDisk,
        most: u64,
        read: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Result<T, Error>, Stop> {
        if self.chance != 0 && self.random.below(1_000) < self.chance {
            disk.fail_read_after(self.random.below(most));
        }
        let before = disk.failed_reads();
        let result = read();
        disk.read_well();
        match (&result, before == disk.failed_reads()) {
            (_, true) => Ok(result),
            (Err(Error::Io { .. }), false) => Err(Stop::Unreadable),
            (Err(error), false) => Err(Stop::Wrong(format!("the disk fails, and it is {error}"))),
            (Ok(_), false) => Err(Stop::Wrong("the disk fails, and nobody sees it".to_owned())),
        }
    }
}

/// A shard that has begun.
pub(super) struct Started {
    pub(super) shard: Shard,
    pub(super) seen: Seen,
    pub(super) last: u64,
    pub(super) newest: i64,
    /// Messages that have lost their bytes.
    pub(super) contained: Vec<Told>,
}

/// Recovers what a disk holds, as `jitney serve` does.
pub(super) fn start(
    disk: &Arc<FaultyDisk>,
    random: &mut Stream,
    unreadable: &mut Unreadable,
    segment_bytes: u64,
    now: i64,
    entities: &[Planned],
) -> Result<(Started, Committer), Stop> {
    let parts = StartParts::new(random, segment_bytes);
    let shared: Arc<dyn Disk> = Arc::<FaultyDisk>::clone(disk);
    let (gateway, options) = (parts.gateway, parts.options);
    let read = || Recovering::recover(gateway, shared, options);
    let recovering = match unreadable.read(disk, READS_OF_STARTS, read)? {
        Ok(recovering) => recovering,
        Err(Error::Io { .. }) if disk.is_broken() => return Err(Stop::Ends),
        Err(Error::Io { source, .. }) if disk.is_bad_sector(&source) => {
            disk.copy_to_another();
            return Err(Stop::Unreadable);
        }
        Err(error) => return Err(Stop::Wrong(format!("it does not start: {error}"))),
    };
    let watcher = Watcher {
        seen: Seen::default(),
        log: Arc::<FaultyDisk>::clone(disk),
        damaged: Some(Arc::clone(disk)),
    };
    begin(recovering, parts.memory, now, entities, watcher)
}

/// What a start needs beside the log.
pub(super) struct StartParts {
    pub(super) gateway: Gateway,
    pub(super) memory: Memory,
    pub(super) options: Options,
}

impl StartParts {
    pub(super) fn new(random: &mut Stream, segment_bytes: u64) -> Self {
        let number = random.next();
        let mut gateway = Gateway::new(number, Profile::Development);
        let memory = memory(number);
        gateway.set_memory(memory.clone());
        let options = Options {
            segment_bytes,
            cache_bytes: random.index(20_000),
            store: random.next(),
            // In some runs, checkpoints are written more often than their size asks for.
            tail_records_max: if number.is_multiple_of(4) {
                200
            } else {
                u64::MAX
            },
            newest_kind: NEWEST_KIND,
            accepts_loss: false,
        };
        Self {
            gateway,
            memory,
            options,
        }
    }
}

/// Begins with what was recovered; returns what writes its log, too.
pub(super) fn begin<C>(
    recovering: Recovering<C>,
    memory: Memory,
    now: i64,
    entities: &[Planned],
    watcher: Watcher,
) -> Result<(Started, C), Stop> {
    let newest = recovering.recovered().newest.as_millis();
    let now = Timestamp::from_millis(now);
    let ready = recovering.begin(now, memory, usize::MAX, |gateway, cx| {
        for planned in entities {
            ensure(gateway, cx, planned);
        }
        Ok::<(), Stop>(())
    });
    let Ready {
        mut shard,
        committer,
        last_group,
        contained,
        ..
    } = ready?;
    let contained = contained.into_iter();
    let contained = contained.map(|it| (it.entity, it.number.0.cast_signed()));
    let seen = watcher.seen.clone();
    shard.observe(Box::new(watcher));
    let started = Started {
        shard,
        seen,
        last: last_group,
        newest,
        contained: contained.collect(),
    };
    Ok((started, committer))
}

/// Makes an entity, or gives it new properties.
pub(super) fn ensure(gateway: &mut Gateway, cx: &mut StepContext<'_>, planned: &Planned) {
    let (path, description) = (&planned.path, planned.description.clone());
    let is_new = gateway.namespaces().find(&address(path)).is_none();
    let made = if planned.topic.is_some() {
        let rules = planned.rules.iter().map(|color| rule(*color)).collect();
        gateway.ensure_subscription(cx, path, description, rules)
    } else {
        gateway.ensure_entity(cx, path, description)
    };
    made.expect("an entity can be made");
    if is_new && planned.first != 1 {
        // As if so many messages had been there.
        let record = Record::Counter {
            entity: gateway
                .namespaces()
                .find(&address(path))
                .expect("it is there")
                .id(),
            next: SequenceNumber(planned.first),
        };
        cx.journal.append(&record);
        let replayed = gateway.namespaces_mut().replay(&record, None);
        replayed.expect("a counter can be replayed");
    }
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
                jitney_message::Scalar::Text(format!("c{color}").into()).into(),
            )],
            ..CorrelationFields::default()
        };
        Filter::Correlation(CorrelationFilter::new(fields).expect("it asks for something"))
    });
    Rule {
        // A name that a file can have.
        name: format!("rule-{color:?}").replace(['(', ')'], "-"),
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
