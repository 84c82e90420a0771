//! The failures of part 10 of the design that beats are to survive, by their names, and two servers with one name.

use std::collections::VecDeque;
use std::time::Duration;

use super::*;
use jitney_cluster::lease::Lease;
use jitney_cluster::name::{Name, NameClaim, NameRow};

/// A server with a store of which a test decides.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one thing that a test decides"
)]
struct Rig {
    /// In milliseconds, as the lease has it.
    now: u64,
    /// How long the next answer takes.
    delay: u64,
    answers: VecDeque<Result<HeartbeatOutcome, StoreError>>,
    sent: usize,
    hangs: bool,
    lease: Lease,
    begun_anew: usize,
    is_replaced: bool,
    others: bool,
    /// How often it has given all namespaces away, and when.
    given: Vec<u64>,
    is_given: bool,
}

impl Rig {
    fn new() -> Self {
        Self {
            now: 1_000_000,
            delay: 0,
            answers: VecDeque::new(),
            sent: 0,
            hangs: false,
            lease: Lease::begun(),
            begun_anew: 0,
            is_replaced: false,
            others: true,
            given: Vec::new(),
            is_given: false,
        }
    }

    /// Beats for so long, while each answer takes a time; returns for how long the lease did hold at the answers.
    async fn run(&mut self, memory: &mut HeartbeatMemory, span: u64, delay: u64) -> usize {
        self.delay = delay;
        let until = self.now + span;
        let mut held = 0;
        while self.now < until {
            let next = self.now + 500;
            step(self, memory).await;
            held += usize::from(self.holds());
            self.now = self.now.max(next);
        }
        held
    }

    fn holds(&self) -> bool {
        self.lease.holds(self.now)
    }
}

impl HeartbeatIo for Rig {
    fn store(&self) -> &'static str {
        "store"
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn makes_progress(&self) -> bool {
        !self.hangs
    }

    fn has_left(&self) -> bool {
        false
    }

    async fn beat(&mut self) -> Result<HeartbeatOutcome, StoreError> {
        self.sent += 1;
        self.now += self.delay;
        self.answers
            .pop_front()
            .unwrap_or(Ok(HeartbeatOutcome::Done))
    }

    fn renew(&mut self, sent: u64) {
        self.lease.renew(sent);
    }

    fn others_may_take(&self) -> bool {
        self.others
    }

    async fn give_all(&mut self) -> Result<(), StoreError> {
        self.now += self.delay;
        self.given.push(self.now);
        self.is_given = true;
        self.answers
            .pop_front()
            .unwrap_or(Ok(HeartbeatOutcome::Done))?;
        Ok(())
    }

    fn is_well(&mut self) {
        self.is_given = false;
    }

    fn begin_anew(&mut self) {
        self.begun_anew += 1;
        self.lease.end();
    }

    fn replaced(&mut self, _: &StoreError) {
        self.is_replaced = true;
        self.lease.end();
    }
}

fn unfit() -> StoreError {
    StoreError::Unfit {
        place: String::new(),
        what: String::new(),
    }
}

/// beat-answer-delayed: the beat is in the store at once, and its answer comes late. The other servers may have taken the namespaces by
/// then, since there was no other beat.
#[tokio::test]
async fn a_beat_whose_answer_is_delayed_counts_from_when_it_was_sent() {
    let lease = u64::try_from(jitney_cluster::limits::LEASE.as_millis()).unwrap();
    let mut rig = Rig::new();
    let began = rig.now;
    rig.delay = lease - 1;
    step(&mut rig, &mut HeartbeatMemory::default()).await;
    assert!(rig.holds(), "for a moment");
    rig.now = began + lease;
    assert!(!rig.holds());
    for delay in [lease, 5_000] {
        rig.delay = delay;
        step(&mut rig, &mut HeartbeatMemory::default()).await;
        assert!(!rig.holds(), "the answer took {delay} ms");
    }
    rig.delay = 10;
    step(&mut rig, &mut HeartbeatMemory::default()).await;
    assert!(rig.holds());
}

/// late-beats: the way to the database takes 1.0 to 1.5 s. Each beat is in the store less than 3 s after the one before, so that no server
/// declares this one dead; and the lease of each is over when its answer comes, so that it answers nothing.
#[tokio::test]
async fn a_server_whose_beats_are_answered_after_their_lease_gives_its_namespaces_away() {
    for delay in [2_000, 2_500, 3_000] {
        let (mut rig, mut memory) = (Rig::new(), HeartbeatMemory::default());
        rig.run(&mut memory, 5_000, 10).await;
        assert!(rig.given.is_empty());
        let began = rig.now;
        let held = rig.run(&mut memory, 90_000, delay).await;
        assert_eq!(held, 0, "it answers nothing");
        let [given] = rig.given[..] else {
            panic!("{delay}: given {} times", rig.given.len());
        };
        assert!(given - began <= 4 * delay, "after {} ms", given - began);
        assert!(rig.is_given, "and it takes none");
        // It is fast again, and takes namespaces when it was so for a while.
        rig.run(&mut memory, 4_000, 100).await;
        assert!(rig.is_given);
        rig.run(&mut memory, 3_000, 100).await;
        assert!(!rig.is_given);
        rig.run(&mut memory, 20_000, delay).await;
        assert_eq!(rig.given.len(), 2);
    }
}

/// It serves slowly, and the others would not do it better if the database is slow.
#[tokio::test]
async fn a_server_keeps_its_namespaces_while_some_lease_holds_or_no_other_server_may_take_them() {
    let (mut rig, mut memory) = (Rig::new(), HeartbeatMemory::default());
    assert!(0 < rig.run(&mut memory, 90_000, 1_800).await);
    assert!(rig.given.is_empty());
    // The database pauses for some seconds, and takes the beat.
    for _ in 0..10 {
        rig.run(&mut memory, 5_900, 5_900).await;
        rig.run(&mut memory, 2_000, 10).await;
    }
    assert!(rig.given.is_empty());
    rig.others = false;
    rig.run(&mut memory, 60_000, 2_500).await;
    assert!(rig.given.is_empty());
    rig.others = true;
    rig.run(&mut memory, 2_500, 2_500).await;
    assert_eq!(rig.given.len(), 1);
    // Its way is slow still, and it serves slowly: nothing is taken.
    rig.run(&mut memory, 60_000, 1_500).await;
    assert!(rig.is_given);
}

/// That it is told to give them away may fail: it takes none all the same, and tries it no more in this way.
#[tokio::test]
async fn a_late_server_takes_no_namespaces_also_if_it_could_not_give_its_own_away() {
    let (mut rig, mut memory) = (Rig::new(), HeartbeatMemory::default());
    rig.answers.extend([
        Ok(HeartbeatOutcome::Done),
        Ok(HeartbeatOutcome::Done),
        Ok(HeartbeatOutcome::Done),
    ]);
    rig.answers.push_back(Err(unfit()));
    rig.run(&mut memory, 30_000, 2_500).await;
    assert_eq!(rig.given.len(), 1);
    assert!(rig.is_given);
    assert_eq!(rig.begun_anew, 1, "others may have its namespaces");
}

/// healthy-beat-hung-owner: the session of the beats is well, and an owner hangs. A server that said that it is alive would keep
/// a namespace that no server serves.
#[tokio::test]
async fn a_server_with_an_owner_that_hangs_does_not_say_that_it_is_alive() {
    let mut rig = Rig::new();
    step(&mut rig, &mut HeartbeatMemory::default()).await;
    assert_eq!(rig.sent, 1);
    rig.hangs = true;
    for _ in 0..5 {
        rig.now += 500;
        step(&mut rig, &mut HeartbeatMemory::default()).await;
    }
    assert_eq!(rig.sent, 1);
    assert!(!rig.holds(), "nor does it answer");
    rig.hangs = false;
    step(&mut rig, &mut HeartbeatMemory::default()).await;
    assert!(rig.sent == 2 && rig.holds());
}

/// restore-with-old-servers: the database was restored and has another identity. The server's memory does not match it.
#[tokio::test]
async fn a_server_serves_nothing_of_a_store_that_was_restored() {
    let mut rig = Rig::new();
    step(&mut rig, &mut HeartbeatMemory::default()).await;
    let replaced = StoreError::Replaced {
        place: String::new(),
        what: String::new(),
    };
    rig.answers.extend([Err(unfit()), Err(replaced)]);
    // That the store was away is reported already.
    let mut memory = HeartbeatMemory::default();
    step(&mut rig, &mut memory).await;
    assert!(memory.is_reported && !rig.is_replaced && rig.holds());
    step(&mut rig, &mut memory).await;
    assert!(rig.is_replaced && !rig.holds());
}

#[tokio::test]
async fn a_server_that_was_declared_dead_answers_no_more() {
    let mut rig = Rig::new();
    step(&mut rig, &mut HeartbeatMemory::default()).await;
    assert!(rig.holds());
    rig.answers.push_back(Ok(HeartbeatOutcome::NoRow));
    step(&mut rig, &mut HeartbeatMemory::default()).await;
    assert!(rig.lease.has_ended());
    rig.answers.push_back(Ok(HeartbeatOutcome::NotJoined));
    step(&mut rig, &mut HeartbeatMemory::default()).await;
    assert!(rig.lease.has_ended());
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
    servers: [One; 2],
}

#[derive(Default)]
struct One {
    incarnation: String,
    claim: NameClaim,
    found: Name,
}

/// One of the two, with the store.
struct OneOf<'a>(&'a mut NameClaims, usize);

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

    /// Lets half a second pass, in which these servers beat.
    async fn beat(&mut self, beating: impl IntoIterator<Item = usize>) {
        self.now += 500;
        for at in beating {
            step(&mut OneOf(self, at), &mut HeartbeatMemory::default()).await;
        }
    }

    fn has_name(&self, at: usize) -> bool {
        let own = &self.servers[at].incarnation;
        let row = self.row.as_ref();
        row.is_some_and(|row| row.is_alive && row.incarnation == *own)
    }
}

impl OneOf<'_> {
    /// Does what `FleetStore::try_to_join` does.
    fn try_to_join(&mut self) {
        let Self(store, at) = self;
        let now = Duration::from_millis(store.now);
        let one = &mut store.servers[*at];
        one.found = one.claim.judge(now, store.row.as_ref());
        if one.found == Name::Free {
            store.entered += 1;
            one.incarnation = format!("incarnation {}", store.entered);
            one.claim.enters(&one.incarnation);
            store.row = Some(NameRow {
                incarnation: one.incarnation.clone(),
                beat: 1,
                is_alive: true,
            });
        }
    }
}

impl HeartbeatIo for OneOf<'_> {
    fn store(&self) -> &'static str {
        "store"
    }

    fn now(&self) -> u64 {
        self.0.now
    }

    fn makes_progress(&self) -> bool {
        true
    }

    fn has_left(&self) -> bool {
        false
    }

    async fn beat(&mut self) -> Result<HeartbeatOutcome, StoreError> {
        if self.0.servers[self.1].incarnation.is_empty() {
            self.try_to_join();
        }
        if self.0.servers[self.1].incarnation.is_empty() {
            return Ok(HeartbeatOutcome::NotJoined);
        }
        if !self.0.has_name(self.1) {
            return Ok(HeartbeatOutcome::NoRow);
        }
        if let Some(row) = &mut self.0.row {
            row.beat += 1;
        }
        Ok(HeartbeatOutcome::Done)
    }

    fn renew(&mut self, _: u64) {}

    fn others_may_take(&self) -> bool {
        true
    }

    async fn give_all(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_well(&mut self) {}

    fn begin_anew(&mut self) {
        self.0.lost += 1;
        self.0.servers[self.1].incarnation.clear();
    }

    fn replaced(&mut self, _: &StoreError) {}
}

#[tokio::test]
async fn a_server_does_not_take_its_name_back_from_one_that_beats_under_it() {
    let mut both = NameClaims::new();
    both.beat([0]).await;
    assert!(both.has_name(0));
    // The first is frozen, and the second enters after its silence.
    for _ in 0..8 {
        both.beat([1]).await;
    }
    assert!(both.has_name(1));
    assert_eq!(both.entered, 2);
    // The first continues. It loses what it had, once, and the second has the name for as long as it beats.
    for _ in 0..60 {
        both.beat([0, 1]).await;
        assert!(both.has_name(1));
    }
    assert_eq!((both.entered, both.lost), (2, 1));
    assert_eq!(both.servers[0].found, Name::Taken);
    // The second is killed.
    for _ in 0..8 {
        both.beat([0]).await;
    }
    assert!(both.has_name(0));
    assert_eq!((both.entered, both.lost), (3, 1));
    // The first was declared dead by others, and no other server has its name: it joins at once.
    both.row.as_mut().unwrap().is_alive = false;
    both.beat([0]).await;
    both.beat([0]).await;
    assert!(both.has_name(0));
    assert_eq!((both.entered, both.lost), (4, 2));
}
