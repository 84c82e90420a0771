//! What goes wrong between an owner of a log and its database, one at a time and by name. The [simulation](super) has all
//! of it together and in any order.

mod clients;

use std::sync::Arc;

use jitney_base::ids::{EntityId, SequenceNumber};
use jitney_journal::appender::{Answer, Appended, End, Event};
use jitney_journal::memory::MemoryDisk;
use jitney_journal::rows::recover_rows;
use jitney_journal::{
    Checkpoints as _, Disk, Error, LogReader as _, Options, Writer, write_checkpoint,
};
use jitney_queue::{Journal as _, Record};

use super::database::Database;
use super::random::Stream;
use super::server::{Server, end_of};

const STORE: u64 = 7;

/// Records of a group: the checkpoint of a few groups has several parts.
const RECORDS: u64 = 400;

struct Rig {
    database: Arc<Database>,
    writer: Writer,
    random: Stream,
    /// The numbers that records of the log have, in their order.
    numbers: Vec<u64>,
}

impl Rig {
    fn new(name: &str) -> Self {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let recovered = jitney_journal::recover(disk, Options::new(STORE), &mut |_, _| Ok(()));
        let mut random = Stream::new(1, name);
        Self {
            database: Arc::new(Database::new(random.fork())),
            writer: recovered.expect("it is empty").writer,
            random,
            numbers: Vec::new(),
        }
    }

    /// Returns a log of one group with a checkpoint, and its owner.
    fn with_checkpoint(name: &str) -> (Self, Server) {
        let mut rig = Self::new(name);
        let mut owner = rig.take();
        rig.count(&mut owner);
        rig.checkpoint(&owner).expect("it owns the log");
        (rig, owner)
    }

    /// Lets a new server take the log over.
    fn take(&mut self) -> Server {
        let server = self.begin();
        self.finish(server)
    }

    fn begin(&mut self) -> Server {
        Server::new(&self.database, STORE, self.random.fork())
    }

    fn finish(&self, mut server: Server) -> Server {
        for _ in 0..100 {
            assert_eq!(server.drive(), [], "nothing is told before the log is read");
            if server.is_reading() {
                let last = self.database.look(|tables| tables.last_before(u64::MAX));
                server.answered(Answer::Read(last.unwrap_or(Appended::ROOT)));
                return server;
            }
            self.database.pass_all();
        }
        panic!("the log is never taken");
    }

    /// Sends a group as a row of its own.
    fn append(&mut self, server: &mut Server) {
        server.appender.commit(self.writer.barrier());
        server.drive();
    }

    /// Lets everything continue until the server waits for nothing; returns what it was told.
    fn settle(&self, server: &mut Server) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..100 {
            events.extend(server.drive());
            if server.is_idle() {
                return events;
            }
            self.database.pass_all();
        }
        panic!("the server waits for ever: {server:?}");
    }

    /// Returns the numbers of the groups that the log has.
    fn groups(&self) -> Vec<u64> {
        let rows = self.database.look(|tables| tables.rows_from(0));
        rows.iter().map(|(row, _)| row.frame).collect()
    }

    /// Appends a group with the next numbers, and lets it become durable.
    fn count(&mut self, server: &mut Server) {
        let first = u64::try_from(self.numbers.len()).expect("few");
        for number in first..first + RECORDS {
            self.writer.append(&counter(number));
            self.numbers.push(number);
        }
        let frame = self.writer.seal().expect("it has records");
        server.appender.commit(frame);
        assert_eq!(self.settle(server), []);
    }

    /// Lets a server write a checkpoint of the whole log, and remove older ones.
    fn checkpoint(&self, server: &Server) -> Result<(), Error> {
        let at = self.writer.checkpoint_at();
        let written = write_checkpoint(&*server.log, at, |emit| {
            for &number in &self.numbers {
                emit(&counter(number));
            }
        });
        written.map(drop)
    }

    /// Returns the numbers that a server recovers from its log.
    fn recovered(server: &Server) -> Vec<u64> {
        let mut found = Vec::new();
        let recovered = recover_rows(&*server.log, Options::new(STORE), &mut |record, _| {
            if let Record::Counter { next, .. } = record {
                found.push(next.0);
            }
            Ok(())
        });
        recovered.expect("the log is whole");
        found
    }

    /// Returns all that the tables have.
    fn tables(&self) -> String {
        self.database.look(|tables| format!("{tables:?}"))
    }

    fn checkpoints(&self) -> Vec<u64> {
        self.database
            .look(|tables| tables.checkpoints.iter().copied().collect())
    }

    /// Checks that a server cannot write a checkpoint, and cannot remove anything.
    fn check_fenced(&self, former: &Server) {
        let before = self.tables();
        check_fenced(&self.checkpoint(former));
        for older in self.checkpoints() {
            check_fenced(&former.log.remove_checkpoint(older));
        }
        let segments = former.log.segments().expect("the model can be read");
        assert_ne!(segments, [], "there are rows to be removed");
        for (segment, _) in segments {
            check_fenced(&former.log.remove_segment(segment));
        }
        assert_eq!(self.tables(), before, "nothing is changed");
    }
}

fn counter(number: u64) -> Record<'static> {
    Record::Counter {
        entity: EntityId(1),
        next: SequenceNumber(number),
    }
}

fn check_fenced(result: &Result<(), Error>) {
    assert!(matches!(result, Err(Error::Fenced)), "{result:?}");
}

fn session(server: &Server) -> u32 {
    server.session().expect("it has appended")
}

#[test]
fn a_group_behind_one_that_failed_is_not_appended() {
    let mut rig = Rig::new("hole-behind-failed-group");
    let mut owner = rig.take();
    for _ in 0..3 {
        rig.append(&mut owner);
    }
    rig.database.cancel(session(&owner));
    rig.database.pass_all();
    assert_eq!(
        rig.groups(),
        [0; 0],
        "the second and third have no row before them"
    );
    let events = rig.settle(&mut owner);
    assert!(
        matches!(&events[..], [Event::Unknown { group: 1, .. }, Event::Back]),
        "{events:?}"
    );
    assert_eq!((rig.groups(), owner.appender.durable()), (vec![1, 2, 3], 3));
}

#[test]
fn an_append_that_arrives_late_finds_another_epoch() {
    let mut rig = Rig::new("unknown-then-appears");
    let mut owner = rig.take();
    rig.append(&mut owner);
    let old = session(&owner);
    rig.database.leave_waiting(old);
    let events = owner.drive();
    assert!(
        matches!(events[..], [Event::Unknown { group: 1, .. }]),
        "{events:?}"
    );
    // The epoch is raised first, then the statement of the old session is executed.
    rig.database.advance(session(&owner));
    rig.database.replicate();
    rig.database.advance(session(&owner));
    rig.database.advance(old);
    rig.database.replicate();
    rig.database.advance(old);
    assert_eq!(rig.groups(), [0; 0], "it is refused");
    rig.settle(&mut owner);
    assert_eq!((rig.groups(), owner.appender.durable()), (vec![1], 1));
}

#[test]
fn what_only_the_primary_has_is_not_told() {
    let mut rig = Rig::new("visible-then-lost");
    let mut owner = rig.take();
    rig.append(&mut owner);
    rig.database.advance(session(&owner));
    rig.database.terminate(session(&owner));
    assert_eq!(rig.groups(), [1], "it is seen, and on no standby");
    owner.drive();
    rig.database.advance(session(&owner));
    owner.drive();
    assert_eq!(owner.appender.durable(), 0);
    rig.database.promote();
    assert_eq!(rig.groups(), [0; 0]);
    rig.settle(&mut owner);
    assert_eq!((rig.groups(), owner.appender.durable()), (vec![1], 1));
    rig.database.promote();
    assert_eq!(rig.groups(), [1]);
}

#[test]
fn a_cancelled_wait_for_a_standby_acknowledges_nothing() {
    let mut rig = Rig::new("cancelled-commit-acks");
    let mut owner = rig.take();
    rig.append(&mut owner);
    rig.database.advance(session(&owner));
    rig.database.cancel(session(&owner));
    let events = owner.drive();
    assert!(
        matches!(events[..], [Event::Unknown { group: 1, .. }]),
        "{events:?}"
    );
    assert_eq!(owner.appender.durable(), 0);
    rig.database.promote();
    rig.settle(&mut owner);
    assert_eq!((rig.groups(), owner.appender.durable()), (vec![1], 1));
}

#[test]
fn owners_with_the_same_epoch_are_told_apart() {
    let mut rig = Rig::new("same-epoch-two-owners");
    let mut former = rig.take();
    rig.append(&mut former);
    rig.settle(&mut former);
    // Its next epoch is on no standby when the primary is lost, and the next owner gets the same.
    rig.database.terminate(session(&former));
    rig.append(&mut former);
    former.drive();
    rig.database.advance(session(&former));
    rig.database.promote();
    let mut owner = rig.take();
    rig.append(&mut owner);
    rig.settle(&mut owner);
    let before = rig.groups();
    let events = rig.settle(&mut former);
    assert_eq!(end_of(&events), Some(&End::Fenced), "{events:?}");
    assert_eq!(rig.groups(), before);
    rig.append(&mut owner);
    assert_eq!(rig.settle(&mut owner), []);
}

#[test]
fn a_log_without_what_was_acknowledged_is_stopped() {
    for missing in 1..4 {
        let mut rig = Rig::new("acknowledged-tail-missing");
        let mut owner = rig.take();
        for _ in 0..4 {
            rig.append(&mut owner);
            rig.settle(&mut owner);
        }
        // An acquisition and four groups were committed.
        rig.database.let_lag(1, missing);
        let last = rig.database.promote_wrongly();
        assert!(last < owner.appender.durable());
        rig.append(&mut owner);
        let events = rig.settle(&mut owner);
        assert!(matches!(end_of(&events), Some(End::Lost(_))), "{events:?}");
        let why = rig.database.look(|tables| tables.quarantined.clone());
        assert!(
            why.is_some_and(|why| why.contains("group 4")),
            "an operator is told"
        );
    }
}

#[test]
fn an_owner_without_appends_finds_out_what_another_primary_has() {
    for missing in 0..3 {
        let mut rig = Rig::new("acknowledged-tail-unseen");
        let mut owner = rig.take();
        for _ in 0..3 {
            rig.append(&mut owner);
            rig.settle(&mut owner);
        }
        rig.database.let_lag(1, missing);
        rig.database.promote_wrongly();
        owner
            .appender
            .check("the database has another primary".to_owned());
        let events = rig.settle(&mut owner);
        let is_lost = matches!(end_of(&events), Some(End::Lost(_)));
        assert_eq!(is_lost, 0 < missing, "{events:?}");
        let quarantined = rig.database.look(|tables| tables.quarantined.is_some());
        assert_eq!(quarantined, 0 < missing);
        if missing == 0 {
            assert_eq!(events, [], "no append is unknown");
            rig.append(&mut owner);
            assert_eq!(rig.settle(&mut owner), []);
            assert_eq!(rig.groups(), [1, 2, 3, 4]);
        }
    }
}

#[test]
fn an_append_that_is_unanswered_at_a_promotion_is_unknown() {
    let mut rig = Rig::new("unanswered-at-promotion");
    let mut owner = rig.take();
    rig.append(&mut owner);
    rig.database.advance(session(&owner));
    owner
        .appender
        .check("the database has another primary".to_owned());
    let events = rig.settle(&mut owner);
    assert!(
        matches!(events[..], [Event::Unknown { group: 1, .. }, Event::Back]),
        "{events:?}"
    );
    assert_eq!((rig.groups(), owner.appender.durable()), (vec![1], 1));
}

#[test]
fn a_lost_acquisition_stops_its_owner() {
    let mut rig = Rig::new("acknowledged-epoch-missing");
    let mut owner = rig.take();
    rig.append(&mut owner);
    rig.settle(&mut owner);
    rig.database.let_lag(1, 2);
    rig.database.promote_wrongly();
    rig.append(&mut owner);
    let events = rig.settle(&mut owner);
    assert!(matches!(end_of(&events), Some(End::Lost(_))), "{events:?}");
}

#[test]
fn an_acquisition_that_only_the_primary_has_is_not_missed() {
    let mut rig = Rig::new("seen-acquisition-lost");
    let mut owner = rig.take();
    rig.append(&mut owner);
    rig.settle(&mut owner);
    rig.database.terminate(session(&owner));
    rig.append(&mut owner);
    owner.drive();
    // It raises its epoch, is not answered, and sees then that it has.
    rig.database.advance(session(&owner));
    rig.database.terminate(session(&owner));
    for _ in 0..2 {
        owner.drive();
        rig.database.advance(session(&owner));
    }
    owner.drive();
    let seen = rig.database.look(|tables| tables.claim);
    assert_eq!(owner.appender.claim(), seen);
    rig.database.promote();
    let left = rig.database.look(|tables| tables.claim);
    assert!(left.epoch < seen.epoch, "no standby had it");
    let events = rig.settle(&mut owner);
    assert_eq!(events, [Event::Back]);
    assert_eq!((rig.groups(), owner.appender.durable()), (vec![1, 2], 2));
}

#[test]
fn a_take_over_reads_what_was_being_appended() {
    let mut rig = Rig::new("snapshot-before-lock");
    let mut former = rig.take();
    rig.append(&mut former);
    // The append holds the claim until a standby has it.
    rig.database.advance(session(&former));
    let mut owner = rig.begin();
    owner.drive();
    rig.database.advance(session(&owner));
    owner.drive();
    assert!(!owner.is_reading(), "the claim is held");
    let owner = rig.finish(owner);
    assert_eq!(owner.appender.durable(), 1, "the group was read");
    rig.settle(&mut former);
    assert_eq!(former.appender.durable(), 1, "it was answered");
}

#[test]
fn of_two_that_take_a_log_at_once_one_has_it() {
    let mut rig = Rig::new("two-acquisitions");
    let (mut one, mut other) = (rig.begin(), rig.begin());
    one.drive();
    other.drive();
    rig.database.pass_all();
    one.drive();
    assert!(one.is_reading());
    let events = other.drive();
    assert_eq!(end_of(&events), Some(&End::Fenced), "{events:?}");
    let mut owner = rig.finish(one);
    rig.append(&mut owner);
    assert_eq!(rig.settle(&mut owner), []);
}

#[test]
fn a_session_that_holds_the_claim_for_ever_is_ended() {
    for is_committing in [false, true] {
        let mut rig = Rig::new("execute-without-sync");
        let mut former = rig.take();
        let mut owner = rig.begin();
        owner.drive();
        rig.append(&mut former);
        if is_committing {
            rig.database.advance(session(&former));
        }
        rig.database.cut_in_the_middle(session(&former));
        let before = rig.database.look(|tables| tables.claim);
        rig.database.pass(5_000);
        let claim = rig.database.look(|tables| tables.claim);
        assert_eq!(claim, before, "the session holds it, however long that is");
        for _ in 0..1_000 {
            owner.drive();
            if owner.is_reading() {
                break;
            }
            rig.database.pass(5);
        }
        assert!(owner.is_reading(), "the log is never taken");
        // The statement has no effect, or it was committed before the new owner reads.
        let found = u64::from(is_committing);
        assert_eq!(rig.groups(), (1..=found).collect::<Vec<_>>());
        let owner = rig.finish(owner);
        assert_eq!(owner.appender.durable(), found);
        let events = rig.settle(&mut former);
        assert_eq!(end_of(&events), Some(&End::Fenced), "{events:?}");
        assert_eq!(former.appender.durable(), 0, "it was never answered");
        assert_eq!(rig.groups(), (1..=found).collect::<Vec<_>>());
    }
}

#[test]
fn a_former_owner_does_not_take_the_rows_of_the_next_for_damage() {
    let mut rig = Rig::new("raised-and-frozen");
    let mut former = rig.take();
    rig.append(&mut former);
    rig.settle(&mut former);
    rig.database.terminate(session(&former));
    rig.append(&mut former);
    former.drive();
    // It raises its epoch, and is frozen before it reads the rows.
    rig.database.pass_all();
    let mut owner = rig.take();
    rig.append(&mut owner);
    rig.settle(&mut owner);
    let events = rig.settle(&mut former);
    assert_eq!(end_of(&events), Some(&End::Fenced), "{events:?}");
    assert_eq!(rig.database.look(|tables| tables.quarantined.clone()), None);
}

#[test]
fn an_owner_whose_acquisition_was_lost_changes_nothing() {
    let (mut rig, _) = Rig::with_checkpoint("same-epoch-acquired");
    let mut former = rig.take();
    // The standby that is promoted has all but the acquisition, and the next owner gets the same epoch.
    rig.database.let_lag(1, 1);
    rig.database.promote_wrongly();
    let mut owner = rig.take();
    let claims = [&former, &owner].map(|server| server.appender.claim());
    assert_eq!(claims[0].epoch, claims[1].epoch);
    assert_ne!(claims[0].owner, claims[1].owner);
    rig.check_fenced(&former);
    let before = rig.tables();
    let frame = rig.writer.barrier();
    former.appender.commit(frame.clone());
    let events = rig.settle(&mut former);
    assert_eq!(end_of(&events), Some(&End::Fenced), "{events:?}");
    assert_eq!(rig.tables(), before);
    owner.appender.commit(frame);
    assert_eq!(rig.settle(&mut owner), []);
}

#[test]
fn a_row_of_another_log_at_the_same_place_is_not_taken_for_the_own_one() {
    // The last group that was answered, and the one whose answer did not come.
    for other in [1, 2] {
        let mut rig = Rig::new("same-place-other-row");
        let mut owner = rig.take();
        rig.append(&mut owner);
        rig.settle(&mut owner);
        rig.append(&mut owner);
        rig.database.advance(session(&owner));
        rig.database.diverge(other);
        assert_eq!(rig.groups(), [1, 2]);
        let events = rig.settle(&mut owner);
        assert!(matches!(end_of(&events), Some(End::Lost(_))), "{events:?}");
        assert_eq!(owner.appender.durable(), 1);
        let why = rig.database.look(|tables| tables.quarantined.clone());
        assert!(why.is_some(), "an operator is told");
    }
}

#[test]
fn a_former_owner_changes_no_checkpoint() {
    let (mut rig, mut former) = Rig::with_checkpoint("zombie-checkpoint");
    rig.count(&mut former);
    let older = rig.checkpoints();
    let number = older[0] + 64;
    let mut sink = former.log.write_checkpoint(number).expect("it begins");
    sink.write(&[1; 1_000]).expect("it owns the log");
    let mut owner = rig.take();
    let before = rig.tables();
    check_fenced(&sink.write(&[1; 1_000]));
    check_fenced(&sink.finish());
    let is_done = (rig.database).finish_checkpoint(former.log.claim(), number);
    assert!(!is_done, "it is not finished without its last part either");
    rig.check_fenced(&former);
    assert_eq!((rig.tables(), rig.checkpoints()), (before, older));
    assert_eq!(Rig::recovered(&owner), rig.numbers);
    rig.count(&mut owner);
    rig.checkpoint(&owner).expect("it owns the log");
    let written = rig.tables();
    rig.check_fenced(&former);
    assert_eq!(rig.tables(), written);
    let next = rig.take();
    assert_eq!(Rig::recovered(&next), rig.numbers);
}

#[test]
fn a_former_owner_removes_no_segment() {
    let mut rig = Rig::new("zombie-drop");
    let mut former = rig.take();
    rig.count(&mut former);
    let segments = former.log.segments().expect("the model can be read");
    let mut owner = rig.take();
    for (segment, _) in &segments {
        check_fenced(&former.log.remove_segment(*segment));
    }
    assert_eq!(Rig::recovered(&owner), rig.numbers);
    rig.count(&mut owner);
    // A former owner that finds out that it is one removes nothing either.
    rig.database.terminate(session(&former));
    former.appender.commit(rig.writer.barrier());
    let events = rig.settle(&mut former);
    assert_eq!(end_of(&events), Some(&End::Fenced), "{events:?}");
    for (segment, _) in &segments {
        check_fenced(&former.log.remove_segment(*segment));
    }
    assert_eq!(rig.groups(), [1, 2]);
    let next = rig.take();
    assert_eq!(Rig::recovered(&next), rig.numbers);
}

#[test]
fn a_checkpoint_without_all_its_parts_is_not_read() {
    for appended in [1, 0] {
        let mut parts = 0;
        while ends_between_parts(parts, appended) {
            parts += 1;
        }
        assert!(3 < parts, "{parts}");
    }
}

/// Lets an owner end after it has written some parts of a checkpoint; returns whether there were more. The next one appends so
/// many groups before it writes a checkpoint: if it appends none, that is at the same place.
fn ends_between_parts(parts: u64, appended: usize) -> bool {
    let (mut rig, mut former) = Rig::with_checkpoint("crash-between-chunks");
    let older = rig.checkpoints();
    rig.count(&mut former);
    former.log.end_after(parts);
    if rig.checkpoint(&former).is_ok() {
        return false;
    }
    let mut owner = rig.take();
    assert_eq!(rig.checkpoints(), older, "after {parts} parts");
    assert_eq!(Rig::recovered(&owner), rig.numbers, "after {parts} parts");
    for _ in 0..appended {
        rig.count(&mut owner);
    }
    rig.checkpoint(&owner).expect("it owns the log");
    assert!(older < rig.checkpoints());
    assert_eq!(rig.checkpoints().len(), 1, "the older one is removed");
    let next = rig.take();
    assert_eq!(Rig::recovered(&next), rig.numbers, "after {parts} parts");
    true
}
