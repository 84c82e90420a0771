//! The memory of a shard that has nothing to do: servers may have thousands of them.

use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;

use jitney_base::memory::Memory;
use jitney_base::time::Timestamp;
use jitney_broker::access::Profile;
use jitney_gateway::Gateway;
use jitney_journal::memory::MemoryDisk;
use jitney_journal::{Disk, Options};
use jitney_shard::{Recovering, Shard};

/// Bytes that an idle shard may take.
const IDLE_BYTES_MAX: usize = 32 * 1024;
/// Shards that are measured together.
const SHARDS: usize = 1_000;

/// Makes a shard of an empty journal; the memory of its disk is not counted.
fn idle(number: usize) -> Shard {
    let seed = u64::try_from(number).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let gateway = Gateway::new(seed, Profile::Development);
    let recovering = Recovering::recover(gateway, disk, Options::new(seed)).unwrap();
    let ready = recovering.begin(Timestamp::EPOCH, Memory::default(), usize::MAX, |_, _| {
        Ok::<_, ()>(())
    });
    ready.unwrap().shard
}

fn resident_bytes() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * page_bytes()
}

/// The size of a page, of which `statm` counts.
fn page_bytes() -> usize {
    let text = fs::read_to_string("/proc/self/smaps").unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("KernelPageSize:"));
    let kilobytes: usize = line
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    kilobytes * 1024
}

/// Prints the memory of an idle shard; the process does nothing else.
#[test]
#[ignore = "run by an_idle_shard_takes_little_memory, in a process of its own"]
fn measure() {
    drop(black_box(idle(0)));
    let before = resident_bytes();
    let shards: Vec<Shard> = (0..SHARDS).map(idle).collect();
    let bytes = resident_bytes().saturating_sub(before) / SHARDS;
    drop(black_box(shards));
    println!("bytes={bytes}");
}

#[test]
fn an_idle_shard_takes_little_memory() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "idle::measure",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes = text
        .split("bytes=")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    let bytes: usize = bytes.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
    println!("an idle shard takes {bytes} bytes");
    assert!(0 < bytes && bytes <= IDLE_BYTES_MAX, "{bytes} bytes");
}
