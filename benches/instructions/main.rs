//! The work of the broker's core without its shell: client bytes to events, steps, records,
//! replies and bytes again, on one thread, with a disk in memory and a clock of its own. Run under
//! callgrind, which counts the instructions of `serve_turn`: the same number on each run, however busy
//! the machine is.
//!
//! `interop-tests/bench/instructions` runs it; by hand: `instructions pair-1k 6400`.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark that cannot continue has nothing better to do"
)]

mod client;
mod messages;
mod workloads;
mod world;

use std::io::Write as _;

/// The release's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [name, count] if !name.starts_with('-') => {
            let count = count.parse().expect("a number of messages");
            workloads::run(name, count);
        }
        // `cargo bench` says `--bench`; `--list` and nothing at all ask for names.
        _ => {
            let mut out = std::io::stdout();
            for workload in &workloads::ALL {
                writeln!(out, "{}\t{}", workload.name, workload.title).unwrap();
            }
        }
    }
}
