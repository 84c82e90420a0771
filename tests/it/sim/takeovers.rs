//! What goes wrong between an owner of a log and its database, one at a time and by name. The [simulation](super) has all
//! of it together and in any order.

use std::sync::Arc;

use jitney::journal::appender::{Answer, Appended, End, Event};
use jitney::journal::memory::MemoryDisk;
use jitney::journal::{self, Disk, Options, Writer};

use super::database::Database;
use super::random::Stream;
use super::server::{Server, end_of};

const STORE: u64 = 7;

struct Rig {
    database: Arc<Database>,
    writer: Writer,
    random: Stream,
}

impl Rig {
    fn new(name: &str) -> Self {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let recovered = journal::recover(disk, Options::new(STORE), &mut |_, _| Ok(()));
        let mut random = Stream::new(1, name);
        Self {
            database: Arc::new(Database::new(random.fork())),
            writer: recovered.expect("it is empty").writer,
            random,
        }
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
fn a_session_that_holds_the_claim_for_ever_is_ended() {
    let mut rig = Rig::new("execute-without-sync");
    let mut former = rig.take();
    rig.append(&mut former);
    rig.database.cut_in_the_middle(session(&former));
    let mut owner = rig.begin();
    for _ in 0..1_000 {
        owner.drive();
        rig.database.pass(5);
        if owner.is_reading() {
            return;
        }
    }
    panic!("the log is never taken");
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
