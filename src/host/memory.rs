//! `--memory-limit`: how the limit is divided, and a check of the real size of the process.
//!
//! Memory that grows without bound while messages are not received is counted to the byte where it
//! is kept ([`Memory`]); memory with a bound of its own (the cache, groups on their way to the
//! disk) gets a part of the limit. The resident size is checked besides: it includes the
//! allocator's reserve and anything that is not counted here.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustix::thread::disable_transparent_huge_pages;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::shards::Shards;
use crate::limits;
use jitney_base::memory::{Budget, Memory};
use jitney_shard::Pressure;

/// A number of bytes in a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "a size is a whole number with a unit: B, KiB, MiB, GiB, or KB, MB, GB for powers of 1000, \
             as in 512MiB"
                .to_owned()
        };
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
        let unit = text.get(digits.len()..).unwrap_or_default().trim();
        let unit: u64 = match unit.to_ascii_lowercase().as_str() {
            "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            _ => return Err(wrong()),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let bytes = number.checked_mul(unit);
        bytes
            .map(Self)
            .ok_or_else(|| format!("{text} is more than any machine has"))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (1 << 30, "GiB"),
            (1 << 20, "MiB"),
            (1 << 10, "KiB"),
            (1, "B"),
        ];
        let fits = |(unit, _): &&(u64, &str)| *unit <= self.0 && self.0.is_multiple_of(*unit);
        let (unit, name) = units.iter().find(fits).unwrap_or(&(1, "B"));
        write!(f, "{}{name}", self.0 / unit)
    }
}

/// The least limit: an empty broker is near it.
const LEAST: ByteSize = ByteSize(limits::MEMORY_LIMIT_MIN);

/// Reads a limit.
///
/// # Errors
///
/// If it is no size, or less than [`LEAST`].
pub(crate) fn parse_limit(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse()?;
    if size.0 < LEAST.0 {
        return Err(format!("{size} is too little; {LEAST} is the least"));
    }
    Ok(size)
}

/// The division of the memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// All of it, if there is a limit.
    pub(crate) limit: Option<usize>,
    /// Recent messages' bodies.
    pub(crate) cache: usize,
    /// Entries and other state of queues.
    pub(crate) budget: Budget,
    /// Records on their way to the disk.
    pub(crate) in_flight: usize,
    /// Partially received messages.
    pub(crate) partials: usize,
    /// Answers of the JSON API.
    pub(crate) answers: usize,
    /// The state of namespaces whose changes clients follow.
    pub(crate) changes: usize,
    /// The history of entities.
    pub(crate) history: usize,
    /// One that is longer than it may be among these.
    pub(crate) long_answer: usize,
    /// Connections whose peers are unauthenticated. It is not counted, and comes out of the reserve.
    pub(crate) unauthenticated: usize,
    /// A segment of a log that is in memory.
    pub(crate) segment: u64,
}

impl Plan {
    /// Divides a limit; without one, only indexes are bounded, by `machine`.
    pub(crate) fn new(limit: Option<ByteSize>, cache: Option<usize>, machine: Option<u64>) -> Self {
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        let Some(ByteSize(limit)) = limit else {
            let machine = bytes(machine.unwrap_or(u64::MAX));
            let packed = (machine / 4).max(jitney_base::limits::OPEN_INDEX_BYTES);
            return Self {
                limit: None,
                cache: cache.unwrap_or(jitney_journal::limits::LOG_CACHE_BYTES),
                budget: Budget {
                    packed,
                    ..Budget::default()
                },
                in_flight: limits::IN_FLIGHT_BYTES_MAX,
                partials: limits::PARTIALS_BYTES_MAX,
                answers: limits::ANSWERS_BYTES_MAX,
                changes: limits::CHANGES_BYTES_MAX,
                history: limits::HISTORY_BYTES_MAX,
                long_answer: limits::ANSWERS_BYTES_MAX,
                unauthenticated: limits::UNAUTHENTICATED_TOTAL_BYTES_MAX,
                segment: jitney_journal::limits::SEGMENT_BYTES,
            };
        };
        let segment = (limit / 32).min(jitney_journal::limits::SEGMENT_BYTES);
        let limit = bytes(limit);
        let cache = cache
            .unwrap_or(limit / 16 * 3)
            .min(jitney_journal::limits::LOG_CACHE_BYTES);
        let outgoing = limit / 16;
        let in_flight = limits::IN_FLIGHT_BYTES_MAX.min(limit / 8);
        let partials = limits::PARTIALS_BYTES_MAX.min(limit / 8);
        let spare = limits::PROCESS_BYTES + limit / 16;
        let history = limits::HISTORY_BYTES_MAX.min(limit / 32);
        let bounded = cache.min(limit / 2) + in_flight + partials + outgoing;
        let shares = spare + bounded + history;
        // The reserve of a small broker is for any part that needs it.
        let total = limit.saturating_sub(shares).max(limit / 8);
        Self {
            limit: Some(limit),
            cache,
            budget: Budget {
                open: jitney_base::limits::OPEN_INDEX_BYTES.min(limit / 16),
                packed: limit / 32,
                total,
                outgoing,
            },
            in_flight,
            partials,
            answers: limits::ANSWERS_BYTES_MAX.min(outgoing),
            changes: limits::CHANGES_BYTES_MAX.min(outgoing),
            history,
            long_answer: limits::ANSWERS_BYTES_MAX.min(limit / 8),
            unauthenticated: limits::UNAUTHENTICATED_TOTAL_BYTES_MAX.min(limit / 8),
            segment,
        }
    }

    /// Returns the state before the size of the process is known.
    pub(super) fn no_pressure(&self) -> SizeWatch {
        SizeWatch {
            cache: self.cache,
            full: false,
            near: 0,
        }
    }

    /// Returns each shard's part of a cache that so many have.
    pub(crate) fn part_of_cache(&self, bytes: usize, shards: usize) -> usize {
        // Without a limit a busy shard has room, also beside a thousand others.
        let least = match self.limit {
            None => limits::SHARD_CACHE_BYTES_MIN.min(bytes),
            Some(_) => 0,
        };
        (bytes / shards.max(1)).max(least)
    }
}

/// Asks the system for small pages only: an allocator with large ones takes two megabytes where it
/// needs a few kilobytes, for each thread and kind of allocation.
pub(crate) fn take_small_pages() {
    // An old system has small ones only.
    let _ = disable_transparent_huge_pages(true);
}

/// Returns the memory of this machine, or of the process's cgroup, if that has less.
pub(crate) fn machine() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| {
        let kib = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
        Some(kib.trim().parse::<u64>().ok()? * 1024)
    });
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let own = group_limit(Path::new("/sys/fs/cgroup"), group.unwrap_or("/"));
    total.into_iter().chain(own).min()
}

/// Returns the least limit of a cgroup and its ancestors.
fn group_limit(root: &Path, group: &str) -> Option<u64> {
    let mut path = PathBuf::from(group.trim_start_matches('/'));
    let mut least = None;
    loop {
        let limit = fs::read_to_string(root.join(&path).join("memory.max"));
        let limit: Option<u64> = limit.ok().and_then(|text| text.trim().parse().ok());
        least = least.into_iter().chain(limit).min();
        if !path.pop() {
            return least;
        }
    }
}

/// The reaction to the size of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SizeWatch {
    /// The cache's budget in bytes.
    pub(crate) cache: usize,
    /// Messages are refused.
    pub(crate) full: bool,
    /// Consecutive checks above the limit although the cache was reduced.
    near: u8,
}

impl SizeWatch {
    /// Returns the part of it for each of a number of shards.
    fn pressure(self, plan: &Plan, shards: usize) -> Pressure {
        Pressure {
            cache_bytes: plan.part_of_cache(self.cache, shards),
            is_full: self.full,
        }
    }

    /// Decides after a check: `resident` bytes of a `limit`, of which `counted` are counted.
    /// Uncounted memory alone is no reason to refuse messages, because no receiver could free it.
    fn look(self, plan: &Plan, limit: usize, resident: usize, counted: usize) -> Self {
        let part = |sixteenths: usize| limit / 16 * sixteenths;
        let least = plan.cache / 16;
        let too_much = if self.full { part(14) } else { part(15) };
        let cache = if part(15) <= resident {
            least
        } else if part(14) <= resident {
            (self.cache - self.cache / 4).max(least)
        } else if resident < part(12) {
            (self.cache + plan.cache / 16).min(plan.cache)
        } else {
            self.cache
        };
        let explains = plan.budget.total / 4 * 3 <= counted;
        // Memory that the cache freed returns to the system after a while.
        let near = if too_much <= resident && self.cache <= least {
            self.near.saturating_add(1)
        } else {
            0
        };
        let full = explains && (self.full && 0 < near || limits::MEMORY_CHECKS_NEAR <= near);
        Self { cache, full, near }
    }
}

/// Checks the size of the process against the plan's limit, if it has one, and sends the shards the reaction, until their owners
/// end. Shards that come and go have equal parts of the cache.
pub(crate) async fn watch(plan: Plan, memory: Memory, shards: Arc<Shards>) {
    watch_size(resident, plan, memory, &shards).await;
}

async fn watch_size(
    resident: impl Fn() -> Option<usize>,
    plan: Plan,
    memory: Memory,
    shards: &Shards,
) {
    let mut pressure = plan.no_pressure();
    let mut members = shards.members();
    let mut told = pressure.pressure(&plan, members.len());
    let mut is_reported = false;
    let mut ticks = interval(limits::MEMORY_CHECK_INTERVAL.as_duration());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shards.closed() => return,
        }
        let mut now = pressure;
        if let Some(limit) = plan.limit {
            let resident = resident();
            if let Some(resident) = resident {
                now = pressure.look(&plan, limit, resident, memory.counted());
            } else if !is_reported {
                warn!(
                    "the size of the process cannot be read from /proc/self/statm: until it can be, \
                     --memory-limit holds for what is counted only"
                );
            }
            is_reported = resident.is_none();
        }
        let of_now = shards.members();
        let each = now.pressure(&plan, of_now.len());
        // A shard that comes has its part of the cache already, and does not know that memory is full.
        if each != told || each.is_full && !Arc::ptr_eq(&of_now, &members) {
            shards.press(each).await;
        }
        (members, told) = (of_now, each);
        pressure = now;
    }
}

/// Returns the resident size of the process.
fn resident() -> Option<usize> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::runtime::Handle;
    use tokio::sync::mpsc;

    use super::*;
    use crate::host::mailbox::Mailbox;
    use crate::host::owner_message::{Control, OwnerMessage};
    use crate::host::shards::Member;
    use crate::host::vitals::Vitals;
    use jitney_shard::routing::ShardIndex;

    const MIB: usize = 1 << 20;

    /// Makes an owner's mailbox, and the ends that the owner has.
    fn mailbox() -> (
        Mailbox,
        (mpsc::Receiver<Control>, mpsc::Receiver<OwnerMessage>),
    ) {
        let ((mail, of_mail), (control, of_control)) = (mpsc::channel(1), mpsc::channel(1));
        (Mailbox::new(mail, control, 1), (of_control, of_mail))
    }

    async fn cache_bytes(owner: &mut mpsc::Receiver<Control>) -> usize {
        let Some(Control::Pressure(pressure)) = owner.recv().await else {
            panic!("each shard is told");
        };
        pressure.cache_bytes
    }

    #[tokio::test]
    async fn a_size_that_cannot_be_read_for_a_while_is_looked_at_again() {
        let limit = 256 * MIB;
        let plan = Plan::new(Some(ByteSize(256 << 20)), None, None);
        let looks = AtomicUsize::new(0);
        let resident = move || match looks.fetch_add(1, Ordering::Relaxed) {
            0 => None,
            _ => Some(limit),
        };
        let ((one, mut of_one), (other, mut of_other)) = (mailbox(), mailbox());
        let shards = Shards::of_mailboxes(vec![("one", one), ("other", other)]);
        let watching = tokio::spawn(async move {
            watch_size(resident, plan, Memory::default(), &shards).await;
        });
        for (owner, _) in [&mut of_one, &mut of_other] {
            assert_eq!(cache_bytes(owner).await, plan.cache / 16 / 2);
        }
        drop((of_one, of_other));
        watching.await.unwrap();
    }

    #[tokio::test]
    async fn the_cache_is_divided_anew_when_a_shard_comes() {
        let plan = Plan::new(None, Some(64 * MIB), None);
        let ((one, mut of_one), (other, mut of_other)) = (mailbox(), mailbox());
        let shards = Arc::new(Shards::of_mailboxes(vec![("one", one)]));
        let watched = Arc::clone(&shards);
        let watching = tokio::spawn(async move {
            watch_size(|| None, plan, Memory::default(), &watched).await;
        });
        tokio::task::yield_now().await;
        shards.add(
            ShardIndex(1),
            Member {
                number: 1,
                owner: other,
                runtime: Handle::current(),
                vitals: Arc::new(Vitals::new()),
            },
        );
        for (owner, _) in [&mut of_one, &mut of_other] {
            assert_eq!(cache_bytes(owner).await, 32 * MIB);
        }
        drop((of_one, of_other));
        watching.await.unwrap();
    }

    #[test]
    fn each_of_many_shards_has_some_of_the_cache() {
        let unlimited = Plan::new(None, Some(64 * MIB), None);
        let parts = [1, 4, 1_000].map(|shards| unlimited.part_of_cache(64 * MIB, shards));
        assert_eq!(parts, [64 * MIB, 16 * MIB, MIB]);
        assert_eq!(unlimited.part_of_cache(0, 4), 0);
        let limited = Plan::new(Some(ByteSize(256 << 20)), None, None);
        assert_eq!(limited.part_of_cache(64 * MIB, 1_024), 64 * 1024);
    }

    #[test]
    fn sizes_have_units() {
        let sizes = [
            ("64MiB", 64 << 20),
            ("2GB", 2_000_000_000),
            ("1 gib", 1 << 30),
            ("512m", 512 << 20),
            ("10KB", 10_000),
            ("7B", 7),
        ];
        for (text, bytes) in sizes {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in [
            "",
            "512",
            "MiB",
            "-1MiB",
            "1.5GiB",
            "1XB",
            "99999999999GiB",
            "1é",
        ] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        let shown = [
            ByteSize(64 << 20),
            ByteSize(1_500 << 20),
            ByteSize(1_000),
            ByteSize(0),
        ];
        let shown: Vec<String> = shown.iter().map(ByteSize::to_string).collect();
        assert_eq!(shown, ["64MiB", "1500MiB", "1000B", "0B"]);
    }

    #[test]
    fn too_little_is_refused_with_what_is_enough() {
        assert_eq!(parse_limit("64MiB"), Ok(LEAST));
        let text = parse_limit("63MiB").unwrap_err();
        assert_eq!(text, "63MiB is too little; 64MiB is the least");
    }

    #[test]
    fn all_parts_together_are_within_the_limit() {
        for mib in [64, 65, 100, 128, 256, 512, 1_024, 16_384] {
            let plan = Plan::new(Some(ByteSize(mib << 20)), None, None);
            let limit = plan.limit.unwrap();
            let bounded = plan.cache + plan.in_flight + plan.partials + plan.budget.outgoing;
            let bounded = bounded + plan.history;
            let all = bounded + plan.budget.total + limits::PROCESS_BYTES;
            assert!(mib < 96 || all <= limit, "{mib}: {plan:?}");
            assert!(bounded + plan.budget.total <= limit, "{mib}: {plan:?}");
            // Some memory is left for open parts.
            let index = plan.budget.open + plan.budget.packed;
            assert!(index + limit / 64 <= plan.budget.total, "{mib}: {plan:?}");
        }
    }

    #[test]
    fn without_a_limit_only_indexes_are_paged() {
        let plan = Plan::new(None, None, Some(8 << 30));
        assert_eq!((plan.limit, plan.budget.total), (None, usize::MAX));
        assert_eq!(plan.budget.packed, 2 << 30);
        assert_eq!(plan.cache, jitney_journal::limits::LOG_CACHE_BYTES);
        assert_eq!(Plan::new(None, Some(7), None).cache, 7);
    }

    #[test]
    fn the_cache_gives_way_first_and_comes_back() {
        let plan = Plan::new(Some(ByteSize(128 << 20)), None, None);
        let limit = plan.limit.unwrap();
        let full = plan.budget.total;
        let mut pressure = plan.no_pressure();
        pressure = pressure.look(&plan, limit, 113 * MIB, full);
        assert!(pressure.cache < plan.cache && !pressure.full);
        pressure = pressure.look(&plan, limit, 121 * MIB, full);
        assert!(pressure.cache == plan.cache / 16 && !pressure.full);
        // Freed memory returns to the system a little later.
        let gone = (1..limits::MEMORY_CHECKS_NEAR)
            .fold(pressure, |now, _| now.look(&plan, limit, 121 * MIB, full));
        assert!(!gone.full && !gone.look(&plan, limit, 119 * MIB, full).full);
        pressure = gone.look(&plan, limit, 121 * MIB, full);
        assert!(pressure.full);
        // Until it is well below.
        pressure = pressure.look(&plan, limit, 117 * MIB, full);
        assert!(pressure.full);
        let least = (0..100).fold(pressure, |now, _| now.look(&plan, limit, 128 * MIB, full));
        assert_eq!(least.cache, plan.cache / 16);
        let most = (0..100).fold(least, |now, _| now.look(&plan, limit, 90 * MIB, full));
        assert_eq!((most.cache, most.full), (plan.cache, false));
    }

    #[test]
    fn what_cannot_be_made_less_stops_no_sender() {
        let plan = Plan::new(Some(ByteSize(128 << 20)), None, None);
        let limit = plan.limit.unwrap();
        let pressure = SizeWatch {
            cache: plan.cache / 16,
            full: true,
            near: limits::MEMORY_CHECKS_NEAR,
        };
        assert!(
            pressure
                .look(&plan, limit, 200 * MIB, plan.budget.total)
                .full
        );
        assert!(!pressure.look(&plan, limit, 200 * MIB, 0).full);
    }

    #[test]
    fn a_group_of_processes_has_the_least_of_the_limits_above_it() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("system/jitney");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(group_limit(root.path(), "/system/jitney"), None);
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        fs::write(root.path().join("system/memory.max"), "1000000\n").unwrap();
        assert_eq!(group_limit(root.path(), "/system/jitney"), Some(1_000_000));
        fs::write(inner.join("memory.max"), "5000\n").unwrap();
        assert_eq!(group_limit(root.path(), "/system/jitney"), Some(5_000));
        assert_eq!(group_limit(root.path(), "/"), None);
        assert!(resident().is_some_and(|bytes| MIB < bytes));
        assert!(machine().is_some_and(|bytes| 1 << 28 < bytes));
    }
}
