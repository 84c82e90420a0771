//! The promises of a log, against a model, with power failures anywhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::faulty::{Dice, FaultyDisk};
use super::memory::MemoryDisk;
use super::*;
use jitney_base::ids::{BodyRef, EntityId, JobId, SequenceNumber};
use jitney_base::time::{Millis, Timestamp};
use jitney_queue::{Journal, Passage, Record, StoredState};

pub(super) const OPTIONS: Options = Options {
    segment_bytes: 4096,
    cache_bytes: 8192,
    store: 0x5eed,
    tail_records_max: u64::MAX,
    accepts_loss: false,
    newest_kind: NEWEST_KIND,
};
const QUEUE: EntityId = EntityId(3);
/// Bytes that are read after a body.
const AHEAD: usize = 256;

/// Messages by their numbers: where each is, and what it must be.
pub(super) type Messages = BTreeMap<u64, BodyRef>;

fn body_of(number: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice::new(number);
    (0..length)
        .map(|_| u8::try_from(dice.below(256)).unwrap())
        .collect()
}

fn enqueued(number: u64, body: &[u8]) -> Record<'_> {
    Record::Enqueued {
        entity: QUEUE,
        number: SequenceNumber(number),
        at: Timestamp::from_millis(1_700_000_000_000 + number.cast_signed()),
        time_to_live: Millis::MAX,
        state: StoredState::Active,
        message_session: None,
        duplicate_key: None,
        amendments: None,
        body,
    }
}

fn removed(number: u64) -> Record<'static> {
    Record::Removed {
        entity: QUEUE,
        number: SequenceNumber(number),
    }
}

fn alive(number: u64, body: BodyRef) -> Record<'static> {
    Record::Alive {
        entity: QUEUE,
        number: SequenceNumber(number),
        at: Timestamp::from_millis(0),
        time_to_live: Millis::MAX,
        state: StoredState::Active,
        enqueued_number: SequenceNumber(number),
        delivery_count: 0,
        hops: 0,
        message_session: None,
        dead_letter_source: None,
        amendments: None,
        body,
        shared: false,
    }
}

pub(super) fn replay(
    messages: &mut Messages,
    record: &Record<'_>,
    body: Option<BodyRef>,
) -> Result<(), String> {
    match *record {
        Record::Enqueued { number, .. } => {
            let new = messages.insert(number.0, body.unwrap()).is_none();
            new.then_some(()).ok_or_else(|| format!("{number:?} twice"))
        }
        Record::Alive { number, body, .. } => {
            messages.insert(number.0, body);
            Ok(())
        }
        Record::Relocated { number, .. } => {
            let old = messages.insert(number.0, body.unwrap());
            old.map(|_| ())
                .ok_or_else(|| format!("{number:?} is not there to be relocated"))
        }
        Record::Removed { number, .. } => {
            let old = messages.remove(&number.0);
            old.map(|_| ())
                .ok_or_else(|| format!("{number:?} is not there to be removed"))
        }
        ref other => Err(format!("{other:?}")),
    }
}

pub(super) fn open(disk: Arc<dyn Disk>) -> Result<(Recovered, Messages), Error> {
    let (recovered, messages) = open_with(disk, OPTIONS)?;
    recovered.writer.check_bodies()?;
    Ok((recovered, messages))
}

/// Goes on without what is damaged or missing.
pub(super) fn open_accepting(disk: Arc<dyn Disk>) -> Result<(Recovered, Messages), Error> {
    let options = Options {
        accepts_loss: true,
        ..OPTIONS
    };
    open_with(disk, options)
}

fn open_with(disk: Arc<dyn Disk>, options: Options) -> Result<(Recovered, Messages), Error> {
    let mut messages = Messages::new();
    let mut recovered = recover(disk, options, &mut |record, body| {
        replay(&mut messages, record, body)
    })?;
    for body in messages.values() {
        recovered.writer.retain(*body);
    }
    Ok((recovered, messages))
}

/// An owner and a committer in one, and all states that the log may be found in.
pub(super) struct Model {
    pub(super) disk: Arc<FaultyDisk>,
    pub(super) writer: Writer,
    committer: Committer,
    pub(super) messages: Messages,
    /// The length of each message's body, for ever.
    lengths: BTreeMap<u64, usize>,
    next: u64,
    waiting: Vec<Frame>,
    sealed: u64,
    pub(super) synced: u64,
    /// The messages after each frame, by number and length; those that may be the last.
    states: BTreeMap<u64, Vec<u64>>,
}

impl Model {
    fn new() -> Self {
        let disk = Arc::new(FaultyDisk::new());
        let (recovered, messages) = open(disk.clone()).unwrap();
        Self {
            disk,
            writer: recovered.writer,
            committer: recovered.committer,
            messages,
            lengths: BTreeMap::new(),
            next: 1,
            waiting: Vec::new(),
            sealed: 0,
            synced: 0,
            states: BTreeMap::from([(0, Vec::new())]),
        }
    }

    pub(super) fn enqueue(&mut self, length: usize) {
        let number = self.next;
        self.next += 1;
        let body = body_of(number, length);
        let place = self.writer.append(&enqueued(number, &body)).unwrap();
        assert_eq!(self.writer.cached(place).as_deref(), Some(&body[..]));
        self.lengths.insert(number, length);
        self.messages.insert(number, place);
    }

    fn remove(&mut self, nth: u64) {
        let at = usize::try_from(nth).unwrap() % self.messages.len().max(1);
        let Some((&number, &place)) = self.messages.iter().nth(at) else {
            return;
        };
        self.messages.remove(&number);
        assert_eq!(self.writer.append(&removed(number)), None);
        self.writer.release(place);
    }

    pub(super) fn seal(&mut self) {
        if let Some(frame) = self.writer.seal() {
            self.sealed += 1;
            assert_eq!(frame.number, self.sealed);
            self.waiting.push(frame);
            self.states
                .insert(self.sealed, self.messages.keys().copied().collect());
        }
    }

    pub(super) fn write(&mut self) -> Result<(), Error> {
        self.seal();
        self.committer.write(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<(), Error> {
        self.write()?;
        self.committer.sync()?;
        self.synced = self.sealed;
        self.writer.durable(self.synced);
        Ok(())
    }

    pub(super) fn checkpoint(&mut self) -> Result<(), Error> {
        self.sync()?;
        let at = self.writer.checkpoint_at();
        let written = write_checkpoint(&*self.disk, at, |emit| {
            for (&number, &place) in &self.messages {
                emit(&alive(number, place));
            }
        });
        match written {
            Ok(at) => self.writer.checkpoint_written(at),
            Err(error) => {
                self.writer.checkpoint_failed();
                return Err(error);
            }
        }
        Ok(())
    }

    fn tidy(&mut self) -> Result<(), Error> {
        self.seal();
        for segment in self.writer.take_removable() {
            self.committer.remove(segment)?;
        }
        Ok(())
    }

    /// Appends the survivors of some segments anew.
    fn compact(&mut self) -> Result<(), Error> {
        self.sync()?;
        let Some(positions) = self.writer.compaction_candidates() else {
            return Ok(());
        };
        let messages = self.messages.clone();
        for (number, old) in messages
            .into_iter()
            .filter(|(_, at)| positions.contains(at.position))
        {
            let read = read_ahead(&*self.disk, old, AHEAD, self.writer.readable_until())?;
            let body = read.body(old).unwrap();
            self.writer.insert_read(read);
            let record = Record::Relocated {
                entity: QUEUE,
                number: SequenceNumber(number),
                body: &body,
            };
            let new = self.writer.append(&record).unwrap();
            self.writer.release(old);
            self.messages.insert(number, new);
        }
        Ok(())
    }

    fn apply(&mut self, op: &Op) -> Result<(), Error> {
        match *op {
            Op::Enqueue(length) => self.enqueue(length),
            Op::Remove(nth) => self.remove(nth),
            Op::Seal => self.seal(),
            Op::Write => self.write()?,
            Op::Sync => self.sync()?,
            Op::Checkpoint => self.checkpoint()?,
            Op::Tidy => self.tidy()?,
            Op::Compact => self.compact()?,
        }
        Ok(())
    }

    /// The power fails and comes back, and what is recovered is one of the states that may be.
    pub(super) fn crash(&mut self, seed: u64) {
        self.disk.crash(seed);
        self.restart();
    }

    /// The process ends, and what was written is found whether it was synced or not.
    pub(super) fn kill(&mut self) {
        self.disk.restore_power();
        self.restart();
    }

    fn restart(&mut self) {
        let (recovered, messages) = open(self.disk.clone()).unwrap();
        let last = recovered.last_frame;
        assert!(
            self.synced <= last && last <= self.sealed,
            "{} {last} {}",
            self.synced,
            self.sealed
        );
        let found: Vec<u64> = messages.keys().copied().collect();
        assert_eq!(found, self.states[&last], "after frame {last}");
        for (&number, &place) in &messages {
            let until = recovered.writer.readable_until();
            let read = read_ahead(&*self.disk, place, AHEAD, until).unwrap();
            let length = self.lengths[&number];
            assert_eq!(
                read.body(place).unwrap(),
                body_of(number, length),
                "message {number}"
            );
        }
        (self.writer, self.committer, self.messages) =
            (recovered.writer, recovered.committer, messages);
        self.waiting.clear();
        (self.sealed, self.synced) = (last, last);
        self.states = BTreeMap::from([(last, found)]);
    }
}

#[derive(Debug, Clone)]
enum Op {
    Enqueue(usize),
    Remove(u64),
    Seal,
    Write,
    Sync,
    Checkpoint,
    Tidy,
    Compact,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..400_usize).prop_map(Op::Enqueue),
        1 => (400..6000_usize).prop_map(Op::Enqueue),
        6 => any::<u64>().prop_map(Op::Remove),
        3 => Just(Op::Seal),
        3 => Just(Op::Write),
        2 => Just(Op::Sync),
        1 => Just(Op::Checkpoint),
        1 => Just(Op::Tidy),
        1 => Just(Op::Compact),
    ]
}

/// How a life of the broker ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Power(u64),
    Kill,
}

/// Operations, the number of disk operations before the end, and the kind of end.
fn life() -> impl Strategy<Value = (Vec<Op>, u64, End)> {
    let end = prop_oneof![3 => any::<u64>().prop_map(End::Power), 1 => Just(End::Kill)];
    (prop::collection::vec(op(), 1..60), 1..60_u64, end)
}

/// mixed-formats: see `src/store/poller.rs` for where the bound comes from.
#[test]
#[should_panic(
    expected = "no record is written of a kind that a server of the fleet does not read"
)]
fn a_record_of_a_newer_kind_than_all_servers_read_is_not_written() {
    let options = Options {
        newest_kind: NEWEST_KIND - 1,
        ..OPTIONS
    };
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let recovered = recover(disk, options, &mut |_, _| Ok(())).unwrap();
    let mut writer = recovered.writer;
    let older = Record::EntityDeleted { entity: QUEUE };
    writer.append(&older);
    let newest = Record::Audit {
        number: 1,
        entry: b"{}",
    };
    writer.append(&newest);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_synced_is_there_after_any_crash(
        lives in prop::collection::vec(life(), 1..6),
    ) {
        let mut model = Model::new();
        for (ops, operations, end) in &lives {
            model.disk.cut_power_after(*operations);
            // The first error is the power's: what is done after it does not reach the disk.
            let _ = ops.iter().try_for_each(|op| model.apply(op));
            match *end {
                End::Power(seed) => model.crash(seed),
                End::Kill => model.kill(),
            }
        }
        // A second recovery finds the same, with nothing to cut.
        model.crash(0);
    }

    #[test]
    fn every_record_is_read_as_it_was_written(
        number: u64, at: i64, due: i64, live in 0..=i64::MAX, count: u32, bytes: Vec<u8>, some in any::<bool>(),
    ) {
        let (number, at) = (SequenceNumber(number), Timestamp::from_millis(at));
        let time_to_live = Millis::from_millis(live);
        let state = StoredState::Scheduled { due: Timestamp::from_millis(due) };
        let (entity, to, body) = (EntityId(count), EntityId(7), &bytes[..]);
        let amendments = some.then_some(body);
        let place = BodyRef { position: number.0, length: count };
        let (enqueued_number, delivery_count) = (number, count);
        let (message_session, dead_letter_source) = (some.then_some("s"), some.then_some("a/$b"));
        let duplicate_key = some.then_some(u128::from(number.0) << 60);
        let passage = Passage {
            from: entity, from_number: number, to, number, at, time_to_live, enqueued_number,
            delivery_count, hops: 7, message_session, dead_letter_source, amendments,
        };
        let records = [
            Record::Entity { entity, path: "a/$b", description: body },
            Record::EntityDeleted { entity },
            Record::Enqueued { entity, number, at, time_to_live, state, message_session, duplicate_key, amendments, body },
            Record::Removed { entity, number },
            Record::Changed { entity, number, state, delivery_count, amendments },
            Record::Moved(passage.clone()),
            Record::Copied(passage),
            Record::SameBody { entity, number, of: to, of_number: number },
            Record::SessionState { entity, message_session: "s", at, state: amendments },
            Record::Rule { entity, name: "r", rule: amendments },
            Record::Audit { number: number.0, entry: body },
            Record::Job { entity, job: JobId(number.0), state: amendments },
            Record::Seen { entity, at, key: u128::from(number.0) << 7 },
            Record::Relocated { entity, number, body },
            Record::Counter { entity, next: number },
            Record::Alive {
                entity, number, at, time_to_live, state, enqueued_number, delivery_count, amendments,
                body: place, hops: 3, message_session, dead_letter_source, shared: some,
            },
        ];
        let mut out = bytes::BytesMut::new();
        let bodies: Vec<_> = records.iter().map(|record| codec::encode(&mut out, record)).collect();
        let mut decoder = codec::Decoder::new(&out);
        for (record, body) in records.iter().zip(bodies) {
            prop_assert_eq!(decoder.next(), Ok(Some((record.clone(), body))));
        }
        prop_assert_eq!(decoder.next(), Ok(None));
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes: Vec<u8>) {
        let mut decoder = codec::Decoder::new(&bytes);
        while let Ok(Some(_)) = decoder.next() {}
    }
}

#[test]
fn a_removal_is_eight_bytes_at_most() {
    let mut out = bytes::BytesMut::new();
    let record = Record::Removed {
        entity: EntityId(16_383),
        number: SequenceNumber((1 << 35) - 1),
    };
    codec::encode(&mut out, &record);
    assert!(out.len() <= 8, "{}", out.len());
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap();
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

#[test]
fn the_format_is_what_its_page_says() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut log = recover(disk.clone(), OPTIONS, &mut |_, _| Ok(())).unwrap();
    let place = log.writer.append(&enqueued(1, b"hello")).unwrap();
    log.writer.append(&removed(300));
    log.committer.write(&[log.writer.seal().unwrap()]).unwrap();
    write_checkpoint(&*disk, log.writer.checkpoint_at(), |emit| {
        emit(&alive(1, place));
    })
    .unwrap();
    let mut bytes = [0; 4096];
    let length = disk.read(SegmentId(1), 0, &mut bytes).unwrap();
    assert_eq!(
        hex(&bytes[..length]),
        [
            "6a69746e65792d6c0100000016910be9ed5e0000000000000100000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "1b0000009ff74f1301000000000000000100000000000000010000009a0258ae",
            "03030182a0abfef962000000000568656c6c6f4cbb719a0403ac020000000000",
        ]
        .concat()
    );
    let number = disk.checkpoints().unwrap()[0];
    let length = disk.read_checkpoint(number, 0, &mut bytes).unwrap();
    assert_eq!(
        hex(&bytes[..length]),
        [
            "6a69746e65792d63010000000b16626ced5e0000000000008000000010000000",
            "01000000000000000168e5cf8b01000000000000000000000000000000000000",
            "14000000ce0c4780090301000000010000000000ee8080808002",
            "0500",
            "00000000d01f65560100000000000000",
        ]
        .concat()
    );
}

/// Writes this many messages, each in a synced frame of its own.
pub(super) fn written(count: u64) -> Model {
    let mut model = Model::new();
    for _ in 0..count {
        model.enqueue(100);
        model.sync().unwrap();
    }
    model
}

#[test]
fn damage_in_any_synced_byte_is_noticed_unless_it_is_in_the_last_frame() {
    // A frame is 152 bytes: a header of 32, and the rest with zeros up to a multiple of 8.
    let frames = 152 * 9;
    for offset in 0..64 + frames {
        let model = written(10);
        model.disk.damage(SegmentId(1), offset);
        let found = open(model.disk.clone()).map(|(recovered, _)| recovered.damaged.len());
        let message = format!("byte {offset}: {found:?}");
        assert!(
            matches!(
                found,
                Ok(1) | Err(Error::Corrupt { .. } | Error::Version { .. })
            ),
            "{message}"
        );
    }
    let model = written(10);
    model.disk.damage(SegmentId(1), 64 + frames);
    assert_eq!(
        open(model.disk.clone()).unwrap().0.last_frame,
        9,
        "it may never have been synced"
    );
}

#[test]
fn a_damaged_frame_at_the_end_of_a_full_segment_is_noticed() {
    let model = written(40);
    let (segment, _) = model.disk.segments().unwrap()[0];
    // The last frame that begins in the segment: 25 of 152 bytes reach its nominal end.
    model.disk.damage(segment, 64 + 24 * 152 + 4);
    assert!(matches!(
        open(model.disk.clone()),
        Err(Error::Corrupt {
            segment: SegmentId(1),
            ..
        })
    ));
}

#[test]
fn frames_that_a_crash_left_behind_the_end_never_come_back() {
    for seed in 0..300 {
        let mut model = written(2);
        for _ in 0..4 {
            // Each as long as the others: what is written next ends where an old one begins.
            model.enqueue(100);
            model.seal();
        }
        model.write().unwrap();
        model.crash(seed);
        model.enqueue(100);
        model.sync().unwrap();
        model.crash(seed);
    }
}

#[test]
fn what_was_read_back_after_the_process_was_killed_outlives_the_power() {
    for seed in 0..100 {
        let mut model = written(2);
        model.enqueue(100);
        model.write().unwrap();
        model.kill();
        assert_eq!(model.synced, 3);
        model.crash(seed);
    }
}

#[test]
fn what_is_not_durable_stays_in_memory() {
    let mut model = Model::new();
    for _ in 0..200 {
        model.enqueue(100);
        model.seal();
    }
    assert!(
        model
            .messages
            .values()
            .all(|body| model.writer.cached(*body).is_some())
    );
    model.sync().unwrap();
    assert!(
        model
            .messages
            .values()
            .any(|body| model.writer.cached(*body).is_none())
    );
}

#[test]
fn a_missing_segment_is_noticed() {
    let model = written(100);
    let count = u64::try_from(model.disk.segments().unwrap().len()).unwrap();
    assert!(3 <= count, "{count}");
    for missing in 1..count {
        let model = written(100);
        model.disk.remove_segment(SegmentId(missing)).unwrap();
        assert!(
            matches!(open(model.disk.clone()), Err(Error::Corrupt { .. })),
            "{missing}"
        );
    }
}

#[test]
fn damage_in_any_byte_of_a_checkpoint_is_noticed() {
    let mut model = written(3);
    model.checkpoint().unwrap();
    let number = model.disk.checkpoints().unwrap()[0];
    let mut bytes = vec![0; 4096];
    let length = model.disk.read_checkpoint(number, 0, &mut bytes).unwrap();
    for offset in 0..length {
        model.disk.damage_checkpoint(number, offset);
        let found = open(model.disk.clone()).map(|_| ());
        assert!(found.is_err(), "byte {offset}");
        model.disk.damage_checkpoint(number, offset);
    }
    assert!(open(model.disk.clone()).is_ok());
}

#[test]
fn segments_go_when_nothing_in_them_is_alive_and_a_checkpoint_has_the_rest() {
    let mut model = written(200);
    assert!(
        !model.writer.checkpoint_due(),
        "as much would be written again as was"
    );
    for _ in 0..200 {
        model.remove(0);
    }
    assert!(model.writer.checkpoint_due());
    model.sync().unwrap();
    assert_eq!(model.writer.take_removable(), [], "no checkpoint yet");
    model.checkpoint().unwrap();
    assert!(!model.writer.checkpoint_due());
    model.tidy().unwrap();
    assert_eq!(model.disk.segments().unwrap().len(), 1);
    model.crash(1);
}

#[test]
fn a_checkpoint_is_due_after_so_many_records_however_much_it_would_write() {
    let model = written(200);
    assert!(!model.writer.checkpoint_due());
    let options = Options {
        tail_records_max: 200,
        ..OPTIONS
    };
    let (recovered, _) = open_with(model.disk.clone(), options).unwrap();
    let mut writer = recovered.writer;
    assert!(!writer.checkpoint_due());
    for _ in 0..200 {
        writer.append(&Record::EntityDeleted { entity: QUEUE });
    }
    writer.seal().unwrap();
    assert!(writer.checkpoint_due());
    writer.checkpoint_written(writer.checkpoint_at());
    writer.append(&Record::EntityDeleted { entity: QUEUE });
    writer.seal().unwrap();
    assert!(!writer.checkpoint_due());
}

#[test]
fn a_segment_stays_until_what_ended_its_last_message_is_durable() {
    let mut model = written(100);
    model.checkpoint().unwrap();
    for _ in 0..100 {
        model.remove(0);
    }
    model.write().unwrap();
    assert_eq!(model.writer.take_removable(), []);
    model.sync().unwrap();
    assert!(!model.writer.take_removable().is_empty());
}

#[test]
fn disk_use_stays_within_twice_what_is_alive_and_some_segments() {
    let mut model = Model::new();
    let mut longest = 0;
    for round in 0..3_000_u64 {
        model.enqueue(100);
        // Every fiftieth message stays.
        if let Some((&newest, _)) = model.messages.last_key_value()
            && newest % 50 != 0
        {
            let last = u64::try_from(model.messages.len()).unwrap() - 1;
            model.remove(last);
        }
        model.sync().unwrap();
        model.compact().unwrap();
        if model.writer.checkpoint_due() {
            model.checkpoint().unwrap();
        }
        model.tidy().unwrap();
        let alive: u64 = model
            .messages
            .values()
            .map(|body| u64::from(body.length))
            .sum();
        let used: u64 = model
            .disk
            .segments()
            .unwrap()
            .iter()
            .map(|(_, length)| length)
            .sum();
        assert!(
            used <= alive + alive / 4 + 10 * OPTIONS.segment_bytes,
            "round {round}: {used}, {alive}"
        );
        longest = longest.max(used);
    }
    model.crash(3);
    assert!(0 < longest);
}

#[test]
fn a_full_disk_changes_nothing_that_counts_and_goes_on_when_there_is_space() {
    for room in 0..2_000 {
        let mut model = written(20);
        model.disk.set_room(Some(room));
        for _ in 0..8 {
            model.enqueue(200);
            model.seal();
        }
        assert!(!model.writer.accepts_messages());
        assert!(matches!(model.sync(), Err(Error::Full)), "{room}");
        model.disk.set_room(None);
        assert!(model.writer.accepts_messages());
        model.sync().unwrap();
        assert_eq!(model.synced, 28);
        model.crash(room);
        assert_eq!(model.messages.len(), 28);
    }
}

#[test]
fn a_failed_sync_is_an_error_and_what_was_synced_before_is_found() {
    let mut model = written(5);
    model.disk.fail_sync(0);
    model.enqueue(10);
    assert!(matches!(model.sync(), Err(Error::Io { .. })));
    model.crash(7);
}

#[test]
fn numbers_and_the_newest_time_go_on_where_they_were() {
    let mut model = written(5);
    model.checkpoint().unwrap();
    for _ in 0..5 {
        model.remove(0);
    }
    model.sync().unwrap();
    model.checkpoint().unwrap();
    let (recovered, messages) = open(model.disk.clone()).unwrap();
    assert_eq!(recovered.last_frame, 6);
    assert_eq!(recovered.newest, Timestamp::from_millis(1_700_000_000_005));
    assert!(messages.is_empty());
    assert_eq!(model.disk.checkpoints().unwrap().len(), 1);
}

#[test]
fn another_format_is_refused_by_its_number() {
    let disk = MemoryDisk::new();
    let mut header = layout::SegmentHeader {
        store: 1,
        segment: SegmentId(1),
        first_frame: 1,
        prepared: 0,
    }
    .encode();
    header[8] = 9;
    header[12..16].fill(0);
    let sum = crc32c::crc32c(&header);
    header[12..16].copy_from_slice(&sum.to_le_bytes());
    disk.start_segment(SegmentId(1)).unwrap();
    disk.write(SegmentId(1), 0, &[&header]).unwrap();
    let found = open(Arc::new(disk)).map(|_| ());
    assert!(
        matches!(
            found,
            Err(Error::Version {
                found: 9,
                known: 1,
                ..
            })
        ),
        "{found:?}"
    );
}

#[test]
fn what_was_replayed_and_not_understood_stops_the_start() {
    let model = written(2);
    let mut refuse = |_: &Record<'_>, _| Err("no".to_owned());
    let found = recover(model.disk.clone(), OPTIONS, &mut refuse).map(|_| ());
    assert!(matches!(found, Err(Error::Replay(_))));
}

#[test]
fn a_body_that_is_in_no_segment_is_noticed() {
    let mut model = written(1);
    model.writer.retain(BodyRef {
        position: 77 << 36,
        length: 3,
    });
    assert!(matches!(
        model.writer.check_bodies(),
        Err(Error::Corrupt { .. })
    ));
}

/// How long recovery takes: `cargo test --release --lib storage -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement"
)]
fn recovery_of_a_million_messages() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let options = Options::new(5);
    let mut recovered = recover(disk.clone(), options, &mut |_, _| Ok(())).unwrap();
    let body = vec![7; 1024];
    let start = std::time::Instant::now();
    let mut frames = Vec::new();
    for number in 0..1_000_000 {
        recovered.writer.append(&enqueued(number, &body));
        if number % 128 == 127 {
            frames.extend(recovered.writer.seal());
            recovered.committer.write(&frames).unwrap();
            recovered.committer.sync().unwrap();
            recovered.writer.durable(frames.last().unwrap().number);
            frames.clear();
        }
    }
    println!("written in {:?}", start.elapsed());
    let start = std::time::Instant::now();
    let again = recover(disk, options, &mut |_, _| Ok(())).unwrap();
    println!(
        "{} records recovered in {:?}",
        again.records,
        start.elapsed()
    );
}
