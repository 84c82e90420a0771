//! Damaged bodies: a run is recorded, bits of messages' bodies are flipped on its disk, and the broker
//! is started on that. All that waits for its bytes goes on, and a compaction reads every body: each
//! damaged message must end as a dead letter without its bytes, and all others keep theirs.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use jitney_base::ids::{BodyRef, EntityId, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_broker::access::Profile;
use jitney_broker::limits;
use jitney_broker::namespace::{Damage, StepContext};
use jitney_broker::namespace::{FoundBody, SearchPosition};
use jitney_gateway::Gateway;
use jitney_journal::{Disk, Error, LogReader, NEWEST_KIND, Options, Recovered};
use jitney_queue::EntityKind;
use jitney_queue::Positions;

use super::disk::{FaultyDisk, Image};
use super::loss::{Messages, Model, Watched, messages, retain};
use super::plan::Planned;
use super::random::Stream;
use super::run::Run;

/// Runs that are recorded, turns of each, and how often each is damaged.
const SEEDS: u64 = 12;
const TURNS: usize = 120;
const TIMES: usize = 10;

/// What a message's bytes are, or the error that reading them is answered with.
fn read(log: &dyn LogReader, body: BodyRef) -> Result<Bytes, Error> {
    let read = jitney_journal::read_ahead(log, body, 0, u64::MAX)?;
    Ok(read.body(body).expect("it was read for that"))
}

/// Returns whether messages stay in a queue: they neither go on nor are copied from it.
fn stay(entities: &[Planned], queue: u32) -> bool {
    let at = usize::try_from(queue / EntityId::PER_ENTITY).expect("few");
    let Some(planned) = entities.get(at) else {
        return false;
    };
    let is = &planned.description;
    let goes_on = match queue % EntityId::PER_ENTITY {
        0 => is.forward_to.is_some() || is.kind == EntityKind::Topic,
        1 => is.forward_dead_letters_to.is_some(),
        _ => false,
    };
    !goes_on
}

/// Returns whether a queue is one of dead letters, or one that some are forwarded to.
fn takes_dead_letters(entities: &[Planned], queue: u32) -> bool {
    let at = usize::try_from(queue / EntityId::PER_ENTITY).expect("few");
    let path = entities.get(at).map(|planned| planned.path.as_str());
    let mut targets = entities
        .iter()
        .map(|planned| planned.description.forward_dead_letters_to.as_deref());
    !queue.is_multiple_of(EntityId::PER_ENTITY)
        || targets.any(|target| target.is_some() && target == path)
}

/// A broker on a damaged log; it does what the server does when bytes are not what was written.
struct Damaged {
    gateway: Gateway,
    recovered: Recovered,
    model: Model,
    disk: Arc<dyn Disk>,
    contained: usize,
}

impl Damaged {
    fn start(disk: Arc<dyn Disk>, options: Options) -> Self {
        let (mut gateway, mut model) = (Gateway::new(1, Profile::Development), Model::default());
        let recovered = jitney_journal::recover(Arc::clone(&disk), options, &mut |record, body| {
            model.replay(record, body);
            let replayed = gateway.namespaces_mut().replay(record, body);
            replayed.map_err(|error| error.to_string())
        });
        let mut recovered = recovered.unwrap_or_else(|error| panic!("it does not start: {error}"));
        gateway.namespaces_mut().count_shared();
        retain(&gateway, &mut recovered);
        recovered
            .writer
            .check_bodies()
            .expect("all bodies are there");
        Self {
            gateway,
            recovered,
            model,
            disk,
            contained: 0,
        }
    }

    /// Runs a step; nothing is due in it.
    fn step<T>(&mut self, step: impl FnOnce(&mut Gateway, &mut StepContext<'_>) -> T) -> T {
        let mut journal = Watched {
            writer: &mut self.recovered.writer,
            model: &mut self.model,
        };
        let mut cx = StepContext {
            now: Timestamp::EPOCH,
            journal: &mut journal,
            group: self.recovered.last_frame + 1,
        };
        let result = step(&mut self.gateway, &mut cx);
        assert!(self.gateway.replies().is_empty(), "nobody is there");
        result
    }

    /// Reads bytes; what was appended since the start is in memory.
    fn read(&self, body: BodyRef) -> Result<Bytes, Damage> {
        let cached = self.recovered.writer.cached(body);
        let read = cached.map_or_else(|| read(&*self.disk, body), Ok);
        read.map_err(|error| Damage {
            body,
            place: error.to_string(),
        })
    }

    fn contain(&mut self, entity: EntityId, number: SequenceNumber, damage: &Damage) {
        let contained = self.step(|gateway, cx| gateway.body_damaged(cx, entity, number, damage));
        self.contained += usize::from(contained.is_some());
    }

    /// Lets everything go on that waits for its bytes.
    fn go_on(&mut self) {
        self.step(Gateway::replayed);
        while self.gateway.namespaces().has_wanted() {
            let mut found = Vec::new();
            for wanted in self.gateway.namespaces_mut().wanted() {
                match self.read(wanted.body) {
                    Ok(bytes) => found.push((wanted, bytes)),
                    Err(damage) => self.contain(wanted.entity, wanted.number, &damage),
                }
            }
            self.step(|gateway, cx| gateway.read_back(cx, found));
        }
    }

    /// Moves every body to the log's end.
    fn compact(&mut self) {
        let until = self.recovered.writer.readable_until();
        let old: Positions = std::iter::once(0..until).collect();
        let mut from = Some(SearchPosition::default());
        while let Some(at) = from {
            let (found, rest) =
                self.gateway
                    .namespaces()
                    .search_bodies(&old, at, limits::COMPACTION_SCAN);
            for found in found {
                self.relocate(&found);
            }
            from = rest;
        }
        self.step(|gateway, _| gateway.namespaces_mut().end_search());
        let left = messages(&self.gateway);
        let left = left.values().filter(|body| old.contains(body.position));
        assert_eq!(left.count(), 0, "a message's bytes stayed");
    }

    fn relocate(&mut self, found: &FoundBody) {
        match self.read(found.body) {
            Ok(bytes) => {
                self.step(|gateway, cx| gateway.namespaces_mut().relocate(cx, found, &bytes));
            }
            Err(damage) => self.contain(found.entity, found.number, &damage),
        }
    }

    /// Writes one more frame: damage in the last one looks like a crash during its write.
    fn write_on(&mut self) {
        self.step(|gateway, cx| gateway.namespaces_mut().restate(cx));
        let frames: Vec<_> = self.recovered.writer.seal().into_iter().collect();
        let committer = &mut self.recovered.committer;
        committer.write(&frames).expect("the disk works");
        committer.sync().expect("the disk works");
    }

    fn bytes(&self) -> Messages<Bytes> {
        let all = messages(&self.gateway).into_iter();
        let read = |body| self.read(body).expect("no damage is left");
        all.map(|(at, body)| (at, read(body))).collect()
    }
}

/// Damages some messages of a log; returns whose bytes were damaged.
fn damage(image: &mut Image, before: &Messages<Bytes>, random: &mut Stream) -> BTreeSet<Bytes> {
    let all: Vec<&Bytes> = before.values().filter(|bytes| bytes.len() > 40).collect();
    let mut damaged = BTreeSet::new();
    for _ in 0..=random.below(4) {
        if let Some(&bytes) = random.pick(&all)
            && damaged.insert(bytes.clone())
        {
            image.flip_in(bytes, random);
        }
    }
    damaged
}

struct Figures {
    damaged: usize,
    contained: usize,
}

/// Damages a recorded log once, and sees what comes of it.
fn check(run: &Run, image: &Image, options: Options, random: &mut Stream, figures: &mut Figures) {
    let disk = |image: &Image, seed| {
        let random = Stream::new(seed, "disk");
        Arc::new(FaultyDisk::of(image, random, options.segment_bytes))
    };
    let whole = disk(image, 1);
    let mut before = Damaged::start(Arc::<FaultyDisk>::clone(&whole), options);
    before.write_on();
    let (before, mut image) = (before.bytes(), whole.image());
    let damaged = damage(&mut image, &before, random);
    let mut gateway = Damaged::start(disk(&image, 2), options);
    assert_eq!(
        messages(&gateway.gateway).len(),
        before.len(),
        "all are there"
    );
    let found: Vec<_> = gateway.recovered.damaged.clone();
    for found in found {
        let damage = Damage {
            body: found.body,
            place: found.place(),
        };
        gateway.contain(found.entity, found.number, &damage);
    }
    gateway.go_on();
    gateway.compact();
    assert_eq!(messages(&gateway.gateway), gateway.model.messages);
    let after = gateway.bytes();
    let held: BTreeSet<&Bytes> = after.values().collect();
    for bytes in &damaged {
        assert!(!held.contains(bytes), "damaged bytes were handed out");
    }
    let entities = &run.world.entities;
    for ((queue, number), bytes) in &after {
        let is_kept = bytes[..] != *jitney_message::EMPTY || takes_dead_letters(entities, *queue);
        assert!(is_kept, "message {number} of queue {queue} has no bytes");
    }
    for (&(queue, number), bytes) in &before {
        if stay(entities, queue) && !damaged.contains(bytes) {
            assert!(
                held.contains(bytes),
                "message {number} of queue {queue} has gone"
            );
        }
    }
    let hit = before.values().filter(|bytes| damaged.contains(*bytes));
    figures.damaged += hit.count();
    figures.contained += gateway.contained;
}

#[test]
fn damaged_bodies_cost_these_messages_alone() {
    let mut figures = Figures {
        damaged: 0,
        contained: 0,
    };
    for seed in 1..=SEEDS {
        let run = Run::recorded(seed, TURNS).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let image = run.world.disk.recorded_image();
        let options = Options {
            segment_bytes: run.plan.segment_bytes,
            cache_bytes: 1 << 20,
            store: 1,
            tail_records_max: u64::MAX,
            newest_kind: NEWEST_KIND,
            accepts_loss: false,
        };
        let mut random = Stream::new(seed, "damaged");
        for _ in 0..TIMES {
            check(&run, &image, options, &mut random, &mut figures);
        }
    }
    let Figures { damaged, contained } = figures;
    println!("{damaged} messages were damaged, {contained} contained");
    assert!(100 < contained && contained <= 2 * damaged);
}
