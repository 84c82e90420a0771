//! The simulation of the broker: one process, one seed, virtual time.
//!
//! A run makes queues, connects clients that do everything that clients do, moves time to just
//! before, at and just after whatever is due, and lets the disk fail, the power go and connections
//! break. The [auditor](audit) says what the broker should have told whom. In some runs bytes of
//! messages are damaged on the disk, and the auditor knows which. In some runs connections
//! go by [bytes], through the protocol engine, to clients of which some have small windows and some
//! stop reading for a while; in the others a client's input is the event itself.
//!
//! `cargo test --test simulator sim::` runs 200 seeds, and `make sim` other ones with every commit; `SEEDS=20000` runs more (`FIRST=n` from another
//! one on), `SEED=42` one, with everything that happens printed. Seeds of bugs that were fixed
//! stand in `seeds.txt`.

mod acts;
mod audit;
mod bytes;
mod client;
mod clients;
mod damaged;
mod database;
mod disk;
mod fleet;
mod ledger;
mod loss;
mod operations;
mod operators;
mod plan;
mod random;
mod receives;
mod recovery;
mod rowlog;
mod run;
mod server;
mod sights;
mod start;
mod takeovers;
mod watcher;
mod wire;
mod world;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::run::{Figures, Run};
use self::world::Mode;

const SEEDS: u64 = 200;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is '{text}' and must be a number")),
    )
}

/// Runs a seed; a panic of the broker fails it too.
fn check(seed: u64, mode: Mode) -> Result<Figures, String> {
    let mut run = Run::new(seed, mode)?;
    let result = catch_unwind(AssertUnwindSafe(|| run.go()));
    let result = result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", text.unwrap_or("of another kind")))
    });
    result.map_err(|error| {
        let (turn, tail) = (run.turn, run.tail());
        format!("seed {seed}, turn {turn}\n{tail}seed {seed}, turn {turn}: {error}")
    })
}

#[test]
fn every_seed_is_as_documented() {
    if let Some(seed) = number("SEED") {
        match check(seed, Mode::Loud) {
            Ok(figures) => println!("seed {seed}: {figures:?}"),
            Err(error) => panic!("{error}"),
        }
        return;
    }
    let first = number("FIRST").unwrap_or(1);
    let seeds = number("SEEDS").unwrap_or(SEEDS);
    let (mut all, mut wrong) = (Figures::default(), 0);
    for seed in first..first + seeds {
        let checked = check(seed, Mode::Quiet).and_then(|figures| {
            let added = all.add(&figures);
            added.map_err(|error| format!("\nseed {seed}, turn 0: {error}"))
        });
        match checked {
            Ok(()) => {}
            // More than one at a time is for those who look for what they have in common.
            Err(error) if number("ALL").is_some() => {
                wrong += 1;
                println!("{}", &error[error.rfind("\nseed ").unwrap_or(0)..]);
            }
            Err(error) => panic!("{error}\nSEED={seed} replays it"),
        }
    }
    println!("{all:?}");
    assert_eq!(wrong, 0, "seeds are wrong");
}

#[test]
fn seeds_of_fixed_bugs_stay_fixed() {
    let lines = include_str!("seeds.txt").lines();
    for line in lines
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let seed = line
            .split_whitespace()
            .next()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| panic!("'{line}' does not begin with a seed"));
        if let Err(error) = check(seed, Mode::Quiet) {
            panic!("{error}\nSEED={seed} replays it; it was fixed once: {line}");
        }
    }
}
