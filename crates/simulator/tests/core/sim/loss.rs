//! Damage that is accepted: a run is recorded, files of its log are damaged, cut, emptied or removed,
//! and the broker is started as with `--accept-data-loss`. Whatever the records that are left say is
//! there must be there; and the next start, without the flag, must find the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use jitney_base::ids::{BodyRef, EntityId};
use jitney_base::time::Timestamp;
use jitney_broker::access::Profile;
use jitney_broker::limits;
use jitney_broker::namespace::SearchPosition;
use jitney_broker::namespace::{Damage, Salvage, StepContext};
use jitney_gateway::Gateway;
use jitney_journal::{
    self, Checkpoints, Disk, Error, NEWEST_KIND, Options, Recovered, Writer, write_checkpoint,
};
use jitney_queue::{Journal, Positions, Record};

use super::disk::{FaultyDisk, Image};
use super::random::Stream;
use super::run::Run;

/// Runs that are recorded, turns of each, and how often each is damaged.
const SEEDS: u64 = 12;
const TURNS: usize = 120;
const TIMES: usize = 60;

/// Who has which bytes: queue and number of each message.
pub(super) type Messages<B = BodyRef> = BTreeMap<(u32, u64), B>;

/// What the records that are left say, read without any of the broker's rules.
#[derive(Default)]
pub(super) struct Model {
    pub(super) messages: Messages,
}

impl Model {
    pub(super) fn replay(&mut self, record: &Record<'_>, body: Option<BodyRef>) {
        let messages = &mut self.messages;
        match *record {
            Record::Enqueued { entity, number, .. } | Record::Alive { entity, number, .. } => {
                messages.insert((entity.0, number.0), body.expect("it has a body"));
            }
            Record::Removed { entity, number } => {
                messages.remove(&(entity.0, number.0));
            }
            Record::Moved(ref passage) => {
                let moved = messages.remove(&(passage.from.0, passage.from_number.0));
                messages.extend(moved.map(|body| ((passage.to.0, passage.number.0), body)));
            }
            Record::Copied(ref passage) => {
                let copied = messages
                    .get(&(passage.from.0, passage.from_number.0))
                    .copied();
                messages.extend(copied.map(|body| ((passage.to.0, passage.number.0), body)));
            }
            Record::Relocated { entity, number, .. } => {
                if let Some(at) = messages.get_mut(&(entity.0, number.0)) {
                    *at = body.expect("it has a body");
                }
            }
            Record::SameBody {
                entity,
                number,
                of,
                of_number,
            } => {
                let body = messages.get(&(of.0, of_number.0)).copied();
                if let (Some(at), Some(body)) = (messages.get_mut(&(entity.0, number.0)), body) {
                    *at = body;
                }
            }
            Record::EntityDeleted { entity } => {
                messages.retain(|(id, _), _| EntityId(*id).base() != entity);
            }
            Record::Changed { .. }
            | Record::Counter { .. }
            | Record::Entity { .. }
            | Record::Rule { .. }
            | Record::Job { .. }
            | Record::Audit { .. }
            | Record::Seen { .. }
            | Record::SessionState { .. } => {}
        }
    }
}

/// Every message of a broker.
pub(super) fn messages(gateway: &Gateway) -> Messages {
    let everywhere: Positions = std::iter::once(0..u64::MAX).collect();
    let mut all = Messages::new();
    let mut from = Some(SearchPosition::default());
    while let Some(at) = from {
        let (found, rest) =
            gateway
                .namespaces()
                .search_bodies(&everywhere, at, limits::COMPACTION_SCAN);
        let found = found.iter();
        all.extend(found.map(|found| ((found.entity.0, found.number.0), found.body)));
        from = rest;
    }
    all
}

/// A log, and what its records say.
pub(super) struct Watched<'a> {
    pub(super) writer: &'a mut Writer,
    pub(super) model: &'a mut Model,
}

impl Journal for Watched<'_> {
    fn append(&mut self, record: &Record<'_>) -> Option<BodyRef> {
        let body = self.writer.append(record);
        self.model.replay(record, body);
        body
    }

    fn release(&mut self, body: BodyRef) {
        self.writer.release(body);
    }
}

struct Losses {
    options: Options,
    random: Stream,
    image: Image,
    /// How often it started, with messages whose bytes were lost, and not at all.
    started: usize,
    contained: usize,
    refused: usize,
}

impl Losses {
    /// Damages a copy of the log, and starts on it.
    fn check(&mut self) {
        let mut image = self.image.clone();
        for _ in 0..=self.random.below(3) {
            image.damage(&mut self.random);
        }
        let random = Stream::new(self.random.next(), "disk");
        let disk = FaultyDisk::of(&image, random, self.options.segment_bytes);
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let (mut gateway, mut model) = (Gateway::new(1, Profile::Development), Model::default());
        let mut salvage = Salvage::default();
        let options = Options {
            accepts_loss: true,
            ..self.options
        };
        let recovered = jitney_journal::recover(Arc::clone(&disk), options, &mut |record, body| {
            model.replay(record, body);
            salvage.replay(gateway.namespaces_mut(), record, body);
            Ok(())
        });
        let mut recovered = match recovered {
            Ok(recovered) => recovered,
            Err(error @ Error::Corrupt { .. }) => {
                let text = error.to_string();
                assert!(text.contains("finds nothing either"), "{text}");
                self.refused += 1;
                return;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(messages(&gateway), model.messages, "what is left is there");
        self.started += 1;
        retain(&gateway, &mut recovered);
        let lost = recovered.writer.lost_bodies();
        self.contained += usize::from(lost != Positions::default());
        Self::go_on(&mut gateway, &mut recovered, &*disk, &lost, &mut model);
        assert_eq!(self.start_again(disk), model.messages, "the next start");
    }

    /// Does what a start does after the recovery, up to the checkpoint that stands for what is left.
    fn go_on(
        gateway: &mut Gateway,
        recovered: &mut Recovered,
        log: &dyn Checkpoints,
        lost: &Positions,
        model: &mut Model,
    ) {
        let (writer, committer) = (&mut recovered.writer, &mut recovered.committer);
        let mut journal = Watched { writer, model };
        let mut cx = StepContext {
            // Nothing is due.
            now: Timestamp::EPOCH,
            journal: &mut journal,
            group: recovered.last_frame + 1,
        };
        for found in &recovered.damaged {
            let damage = Damage {
                body: found.body,
                place: found.place(),
            };
            gateway.body_damaged(&mut cx, found.entity, found.number, &damage);
        }
        let found =
            gateway
                .namespaces_mut()
                .contain_lost(&mut cx, lost, jitney_journal::lost_place);
        let again =
            gateway
                .namespaces_mut()
                .contain_lost(&mut cx, lost, jitney_journal::lost_place);
        assert!(again.is_empty(), "{found:?}, then {again:?}");
        if !recovered.losses.is_empty() || !recovered.damaged.is_empty() {
            gateway.namespaces_mut().restate(&mut cx);
        }
        let frames: Vec<_> = writer.seal().into_iter().collect();
        committer.write(&frames).expect("the disk works");
        committer.sync().expect("the disk works");
        if writer.checkpoint_due() {
            let (at, snapshot) = (writer.checkpoint_at(), gateway.namespaces().snapshot());
            write_checkpoint(log, at, |emit| snapshot.records(emit)).expect("the disk works");
        }
    }

    /// Starts without the flag.
    fn start_again(&self, disk: Arc<dyn Disk>) -> Messages {
        let mut gateway = Gateway::new(1, Profile::Development);
        let recovered = jitney_journal::recover(disk, self.options, &mut |record, body| {
            let replayed = gateway.namespaces_mut().replay(record, body);
            replayed.map_err(|error| error.to_string())
        });
        let mut recovered = recovered.unwrap_or_else(|error| panic!("the next start: {error}"));
        retain(&gateway, &mut recovered);
        let bodies = recovered.writer.check_bodies();
        bodies.unwrap_or_else(|error| panic!("the next start: {error}"));
        messages(&gateway)
    }
}

/// Counts all bodies in, as a start does.
pub(super) fn retain(gateway: &Gateway, recovered: &mut Recovered) {
    gateway
        .namespaces()
        .for_each_body(|body| recovered.writer.retain(body));
}

#[test]
fn what_accepted_damage_leaves_is_kept_and_found_again() {
    let (mut started, mut contained, mut refused) = (0, 0, 0);
    for seed in 1..=SEEDS {
        let run = Run::recorded(seed, TURNS).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let image = run.world.disk.recorded_image();
        let options = Options {
            segment_bytes: run.plan.segment_bytes,
            cache_bytes: 0,
            store: 1,
            tail_records_max: u64::MAX,
            newest_kind: NEWEST_KIND,
            accepts_loss: false,
        };
        let mut losses = Losses {
            options,
            random: Stream::new(seed, "losses"),
            image,
            started: 0,
            contained: 0,
            refused: 0,
        };
        for time in 0..TIMES {
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| losses.check()));
            assert!(checked.is_ok(), "seed {seed}, time {time}");
        }
        started += losses.started;
        contained += losses.contained;
        refused += losses.refused;
    }
    println!("{started} started, {contained} of them without some bytes; {refused} refused");
    assert!(contained > 0 && refused < started);
}
