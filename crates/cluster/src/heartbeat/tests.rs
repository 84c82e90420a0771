//! The failures of part 10 of the design that heartbeats are to survive, by their names, and two servers with one name.

use std::collections::VecDeque;
use std::time::Duration;

use super::*;
use crate::lease::Lease;
use crate::limits;
use crate::planner::Fitness;
use crate::view::ServerRow;

/// What becomes of a heartbeat, where a test decides it.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Done,
    NoRow,
    Replaced,
    Unanswered,
}

/// A server with a store of which a test decides.
struct Rig {
    /// In milliseconds, as the lease has it.
    now: u64,
    /// How long the next answer takes.
    delay: u64,
    fates: VecDeque<Fate>,
    sent: usize,
    progress: Progress,
    state: MemberState,
    lease: Lease,
    lost: usize,
    view: StoreView,
    /// When it has released all namespaces.
    released: Vec<u64>,
}

fn since(now: u64) -> Duration {
    Duration::from_millis(now)
}

fn server(name: &str) -> ServerRow {
    ServerRow {
        name: name.to_owned(),
        incarnation: name.to_owned(),
        beat: 1,
        is_alive: true,
        address: String::new(),
        is_leaving: false,
        formats: 0,
        fitness: Fitness::Fit,
    }
}

fn dead(name: &str) -> ServerRow {
    ServerRow {
        is_alive: false,
        ..server(name)
    }
}

impl Rig {
    fn new() -> Self {
        let mut rig = Self {
            now: 1_000_000,
            delay: 0,
            fates: VecDeque::new(),
            sent: 0,
            progress: Progress::Made,
            state: MemberState {
                incarnation: "x".to_owned(),
                ..MemberState::default()
            },
            lease: Lease::begun(),
            lost: 0,
            view: StoreView::default(),
            released: Vec::new(),
        };
        rig.view.servers = vec![server("own"), server("other")];
        rig
    }

    /// Sends the heartbeat that is due, and carries out what follows.
    fn step(&mut self) {
        let mut next = self.state.next_heartbeat(self.progress);
        while let Some(request) = next {
            self.sent += 1;
            let sent = self.now;
            self.now += self.delay;
            let step = match self.fates.pop_front().unwrap_or(Fate::Done) {
                Fate::Replaced => self.state.replaced(),
                Fate::Unanswered => self.state.heartbeat_failed(&request),
                fate @ (Fate::Done | Fate::NoRow) => self.answer(request, sent, fate),
            };
            self.carry_out(step.effect);
            next = step.next;
        }
    }

    fn answer(&mut self, request: HeartbeatRequest, sent: u64, fate: Fate) -> HeartbeatStep {
        let now = since(self.now);
        match request {
            HeartbeatRequest::ReadName => self.state.name_read(now, None, "y".to_owned()),
            HeartbeatRequest::Enter(entry) => self.state.entered(now, entry, 0),
            HeartbeatRequest::Beat(_) => {
                let at = Moment {
                    sent,
                    now: self.now,
                    server: "own",
                    view: &self.view,
                };
                let found = match fate {
                    Fate::NoRow => OwnRow::Gone,
                    Fate::Done | Fate::Replaced | Fate::Unanswered => OwnRow::Alive,
                };
                self.state.beaten(at, found)
            }
            HeartbeatRequest::ReleaseAll(_) => self.state.all_released(now, Some(1)),
        }
    }

    fn carry_out(&mut self, effect: Option<HeartbeatEffect>) {
        match effect {
            None | Some(HeartbeatEffect::Waits(_)) => {}
            Some(HeartbeatEffect::Joined(_)) => self.lease = Lease::begun(),
            Some(HeartbeatEffect::Renew(sent) | HeartbeatEffect::RenewWell(sent)) => {
                self.lease.renew(sent);
            }
            Some(HeartbeatEffect::Released(_)) => self.released.push(self.now),
            Some(HeartbeatEffect::Lost) => {
                self.lost += 1;
                self.lease.end();
            }
            Some(HeartbeatEffect::Replaced) => self.lease.end(),
        }
    }

    /// Sends heartbeats for so long, while each answer takes a time; returns how often the lease did hold at the answers.
    fn run(&mut self, span: u64, delay: u64) -> usize {
        self.delay = delay;
        let until = self.now + span;
        let mut held = 0;
        while self.now < until {
            let next = self.now + 500;
            self.step();
            held += usize::from(self.holds());
            self.now = self.now.max(next);
        }
        held
    }

    fn holds(&self) -> bool {
        self.lease.holds(self.now)
    }
}

/// beat-answer-delayed: the heartbeat is in the store at once, and its answer comes late. The other servers may have taken the namespaces
/// by then, since there was no other heartbeat.
#[test]
fn a_heartbeat_whose_answer_is_delayed_counts_from_when_it_was_sent() {
    let lease = u64::try_from(limits::LEASE.as_millis()).unwrap();
    let mut rig = Rig::new();
    let began = rig.now;
    rig.delay = lease - 1;
    rig.step();
    assert!(rig.holds(), "for a moment");
    rig.now = began + lease;
    assert!(!rig.holds());
    for delay in [lease, 5_000] {
        rig.delay = delay;
        rig.step();
        assert!(!rig.holds(), "the answer took {delay} ms");
    }
    rig.delay = 10;
    rig.step();
    assert!(rig.holds());
}

/// late-beats: the way to the database takes 1.0 to 1.5 s. Each heartbeat is in the store less than 3 s after the one before, so that no
/// server declares this one dead; and the lease of each is over when its answer comes, so that it answers nothing.
#[test]
fn a_server_whose_heartbeats_are_answered_after_their_lease_releases_its_namespaces() {
    for delay in [2_000, 2_500, 3_000] {
        let mut rig = Rig::new();
        rig.run(5_000, 10);
        assert!(rig.released.is_empty());
        let began = rig.now;
        let held = rig.run(90_000, delay);
        assert_eq!(held, 0, "it answers nothing");
        let [released] = rig.released[..] else {
            panic!("{delay}: released {} times", rig.released.len());
        };
        assert!(
            released - began <= 4 * delay,
            "after {} ms",
            released - began
        );
        assert!(rig.state.is_late, "and it takes none");
        // It is fast again, and takes namespaces when it was so for a while.
        rig.run(4_000, 100);
        assert!(rig.state.is_late);
        rig.run(3_000, 100);
        assert!(!rig.state.is_late);
        rig.run(20_000, delay);
        assert_eq!(rig.released.len(), 2);
    }
}

/// It serves slowly, and the others would not do it better if the database is slow.
#[test]
fn a_server_keeps_its_namespaces_while_some_lease_holds_or_no_other_server_may_take_them() {
    let mut rig = Rig::new();
    assert!(0 < rig.run(90_000, 1_800));
    assert!(rig.released.is_empty());
    // The database pauses for some seconds, and takes the heartbeat.
    for _ in 0..10 {
        rig.run(5_900, 5_900);
        rig.run(2_000, 10);
    }
    assert!(rig.released.is_empty());
    rig.view.servers = vec![server("own"), dead("other")];
    rig.run(60_000, 2_500);
    assert!(rig.released.is_empty());
    rig.view.servers = vec![server("own"), server("other")];
    rig.run(2_500, 2_500);
    assert_eq!(rig.released.len(), 1);
    // Its way is slow still, and it serves slowly: nothing is taken.
    rig.run(60_000, 1_500);
    assert!(rig.state.is_late);
}

/// The request to release all namespaces may have no answer. The server takes none all the same, and does not send the request again.
#[test]
fn a_late_server_takes_no_namespaces_also_if_it_could_not_release_its_own() {
    let mut rig = Rig::new();
    rig.fates.extend([Fate::Done; 3]);
    rig.fates.push_back(Fate::Unanswered);
    rig.run(30_000, 2_500);
    assert!(rig.released.is_empty());
    assert!(rig.state.is_late);
    assert_eq!(rig.lost, 1, "others may have its namespaces");
}

/// healthy-beat-hung-owner: the session of the heartbeats is well, and an owner hangs. A server that said that it is alive would keep
/// a namespace that no server serves.
#[test]
fn a_server_with_an_owner_that_hangs_does_not_say_that_it_is_alive() {
    let mut rig = Rig::new();
    rig.step();
    assert_eq!(rig.sent, 1);
    rig.progress = Progress::Stuck;
    for _ in 0..5 {
        rig.now += 500;
        rig.step();
    }
    assert_eq!(rig.sent, 1);
    assert!(!rig.holds(), "nor does it answer");
    rig.progress = Progress::Made;
    rig.step();
    assert!(rig.sent == 2 && rig.holds());
}

/// restore-with-old-servers: the database was restored and has another identity. The server's memory does not match it.
#[test]
fn a_server_serves_nothing_of_a_store_that_was_restored() {
    let mut rig = Rig::new();
    rig.step();
    rig.fates.extend([Fate::Unanswered, Fate::Replaced]);
    rig.step();
    assert!(!rig.state.is_replaced && rig.holds());
    rig.step();
    assert!(rig.state.is_replaced && rig.lease.has_ended());
    rig.step();
    assert_eq!(rig.sent, 3, "it asks no more");
}

#[test]
fn a_server_that_was_declared_dead_answers_no_more_until_it_has_joined_anew() {
    let mut rig = Rig::new();
    rig.step();
    assert!(rig.holds());
    rig.fates.push_back(Fate::NoRow);
    rig.step();
    assert!(rig.lease.has_ended() && rig.lost == 1);
    rig.fates.push_back(Fate::Unanswered);
    rig.step();
    assert!(rig.lease.has_ended(), "its name could not be read");
    rig.step();
    assert!(rig.holds() && rig.state.incarnation == "y");
}

#[test]
fn a_server_that_has_left_loses_nothing_by_the_heartbeat_that_was_on_its_way() {
    let mut rig = Rig::new();
    let request = rig.state.next_heartbeat(Progress::Made);
    assert_eq!(request, Some(HeartbeatRequest::Beat("x".to_owned())));
    rig.state.has_left = true;
    let at = rig.now;
    let step = rig.answer(request.unwrap(), at, Fate::NoRow);
    assert_eq!(step, HeartbeatStep::default());
    assert_eq!(rig.state.next_heartbeat(Progress::Made), None);
}

/// A store that has the row of one name, and two servers that have this name.
struct NameClaims {
    /// In milliseconds since then.
    now: u64,
    row: Option<NameRow>,
    /// How often a server has entered.
    entered: u32,
    /// How often a server has lost what it had.
    lost: u32,
    servers: [MemberState; 2],
}

impl NameClaims {
    fn new() -> Self {
        Self {
            now: 0,
            row: None,
            entered: 0,
            lost: 0,
            servers: Default::default(),
        }
    }

    /// Lets half a second pass, in which these servers send heartbeats.
    fn beat(&mut self, beating: impl IntoIterator<Item = usize>) {
        self.now += 500;
        for at in beating {
            let mut next = self.servers[at].next_heartbeat(Progress::Made);
            while let Some(request) = next {
                let step = self.answer(at, request);
                self.lost += u32::from(step.effect == Some(HeartbeatEffect::Lost));
                next = step.next;
            }
        }
    }

    fn answer(&mut self, at: usize, request: HeartbeatRequest) -> HeartbeatStep {
        let now = since(self.now);
        let state = &mut self.servers[at];
        match request {
            HeartbeatRequest::ReadName => {
                let incarnation = format!("incarnation {}", self.entered + 1);
                state.name_read(now, self.row.clone(), incarnation)
            }
            HeartbeatRequest::Enter(entry) => {
                self.entered += 1;
                self.row = Some(NameRow {
                    incarnation: entry.incarnation.clone(),
                    beat: 1,
                    is_alive: true,
                });
                state.entered(now, entry, 0)
            }
            HeartbeatRequest::Beat(incarnation) => {
                let row = self.row.as_mut();
                let row = row.filter(|row| row.is_alive && row.incarnation == incarnation);
                let found = if let Some(row) = row {
                    row.beat += 1;
                    OwnRow::Alive
                } else {
                    OwnRow::Gone
                };
                let at = Moment {
                    sent: self.now,
                    now: self.now,
                    server: "own",
                    view: &StoreView::default(),
                };
                state.beaten(at, found)
            }
            HeartbeatRequest::ReleaseAll(_) => panic!("the answers come in time"),
        }
    }

    fn has_name(&self, at: usize) -> bool {
        let own = &self.servers[at].incarnation;
        let row = self.row.as_ref();
        row.is_some_and(|row| row.is_alive && row.incarnation == *own)
    }
}

#[test]
fn a_server_does_not_take_its_name_back_from_one_that_beats_under_it() {
    let mut both = NameClaims::new();
    both.beat([0]);
    assert!(both.has_name(0));
    // The first is frozen, and the second enters after its silence.
    for _ in 0..8 {
        both.beat([1]);
    }
    assert!(both.has_name(1));
    assert_eq!(both.entered, 2);
    // The first continues. It loses what it had, once, and the second has the name for as long as it beats.
    for _ in 0..60 {
        both.beat([0, 1]);
        assert!(both.has_name(1));
    }
    assert_eq!((both.entered, both.lost), (2, 1));
    assert_eq!(both.servers[0].claim.found(), Name::Taken);
    // The second is killed.
    for _ in 0..8 {
        both.beat([0]);
    }
    assert!(both.has_name(0));
    assert_eq!((both.entered, both.lost), (3, 1));
    // The first was declared dead by others, and no other server has its name: it joins at once.
    both.row.as_mut().unwrap().is_alive = false;
    both.beat([0]);
    both.beat([0]);
    assert!(both.has_name(0));
    assert_eq!((both.entered, both.lost), (4, 2));
}
