//! The end of the log at any byte: a run is recorded, and done again up to each change of the
//! disk, and into each write; the broker must start on what is there, and be what it was at some
//! group that is not older than what anybody was told of.
//!
//! Here all that was written before the last change is there. What was not synced and is lost or
//! torn is the main simulation's.

use super::audit::Auditor;
use super::clients::Clients;
use super::disk::{Change, FaultyDisk, Image};
use super::operations::Request;
use super::plan::LogPlace;
use super::random::Stream;
use super::run::Run;
use super::world::{Harness, Mode, Stop};

/// Runs that are recorded, and turns of each.
const SEEDS: u64 = 8;
const TURNS: usize = 120;
/// Places in each write at which it is cut; `BYTES=1` cuts at each.
const CUTS: u64 = 3;

struct Crashes {
    seed: u64,
    run: Run,
    random: Stream,
    changes: Vec<Change>,
}

impl Crashes {
    /// The power goes during this change, of which so many bytes are there.
    fn check(&mut self, before: &Image, at: usize, bytes: usize) -> Result<(), String> {
        let mut image = before.clone();
        image.change(&self.changes[at], bytes);
        let durable = self.run.world.durable_after(at);
        let auditor = self.run.world.auditor.back_at(durable);
        let started = self.start(&image, auditor);
        started.map_err(|error| {
            let (seed, change) = (self.seed, &self.changes[at]);
            let change: String = format!("{change:?}").chars().take(60).collect();
            format!("seed {seed}, change {at} ({change}) cut after {bytes} bytes: {error}")
        })
    }

    fn start(&mut self, image: &Image, auditor: Auditor) -> Result<(), String> {
        let plan = &self.run.plan;
        let (segment_bytes, random) = (plan.segment_bytes, Stream::new(self.random.next(), "disk"));
        let disk = FaultyDisk::of(image, random, segment_bytes);
        let (entities, log) = (&plan.entities, LogPlace::Disk);
        let world = Harness::new(self.seed, segment_bytes, entities, Mode::Quiet, log);
        let mut world = world.map_err(|stop| format!("{stop:?}"))?;
        let now = self.run.world.now;
        let started = world.start_on(disk, auditor, now);
        let looked_at = started.and_then(|()| self.look(&mut world));
        // What a start has found, the next one finds again.
        let again = self.random.percent(10);
        let result = looked_at.and_then(|()| if again { world.restart() } else { Ok(()) });
        let result = result.and_then(|()| if again { self.look(&mut world) } else { Ok(()) });
        result.map_err(|stop| match stop {
            Stop::Ends | Stop::Unreadable => {
                "the disk did not fail, and the broker says so".to_owned()
            }
            Stop::Wrong(error) => format!("{}{error}", world.trace.tail()),
        })
    }

    fn look(&mut self, world: &mut Harness) -> Result<(), Stop> {
        let mut clients = Clients::new(self.random.next(), &self.run.plan);
        for act in clients.inspect() {
            world.step(&act)?;
        }
        // A job may have its turn in this one.
        world.operate(&Request::Jobs)?;
        world.finish_turn()
    }
}

#[test]
fn any_byte_of_the_log_may_be_the_last() {
    let mut points = 0;
    for seed in 1..=SEEDS {
        let run = Run::recorded(seed, TURNS).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let changes = run.world.disk.recorded();
        let random = Stream::new(seed, "crashes");
        let mut crashes = Crashes {
            seed,
            run,
            random,
            changes,
        };
        let mut image = Image::default();
        for at in 0..crashes.changes.len() {
            let bytes = crashes.changes[at].bytes();
            let mut cuts = vec![0, bytes];
            if super::number("BYTES").is_some() {
                cuts.extend(1..bytes);
            } else {
                cuts.extend((0..CUTS).map(|_| crashes.random.index(bytes + 1)));
            }
            cuts.sort_unstable();
            cuts.dedup();
            for cut in cuts {
                points += 1;
                if let Err(error) = crashes.check(&image, at, cut) {
                    panic!("{error}");
                }
            }
            let change = crashes.changes[at].clone();
            image.change(&change, bytes);
        }
    }
    println!("{points} places");
}
