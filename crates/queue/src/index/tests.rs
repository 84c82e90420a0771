use std::collections::{BTreeMap, btree_map};

use proptest::prelude::*;

use super::*;
use jitney_base::limits;
use jitney_base::memory::{Budget, MemoryPages};

const BODY: BodyRef = BodyRef {
    position: 0,
    length: 1,
};

fn entry(ordinal: u64, expires_at: i64) -> Entry {
    let mut entry = Entry::new(ordinal, BODY, StoredState::Active);
    entry.time_to_live = Millis::from_millis(expires_at);
    entry
}

#[test]
fn what_is_removed_is_gone_and_the_rest_stays_in_order() {
    let mut index = Index::default();
    for ordinal in 1..=1_000 {
        index.insert(entry(ordinal, 10));
    }
    for ordinal in (1..=1_000).filter(|ordinal| ordinal % 10 != 0) {
        assert!(index.remove(ordinal).is_some());
        assert!(index.remove(ordinal).is_none());
    }
    assert_eq!(index.len(), 100);
    let left: Vec<u64> = index.from(15).map(|entry| entry.ordinal).collect();
    assert_eq!(left, (2..=100).map(|tens| tens * 10).collect::<Vec<_>>());
    assert!(index.get(990).is_some() && index.get(991).is_none());
}

#[test]
fn a_message_can_come_back_below_others() {
    let mut index = Index::default();
    for ordinal in [5, 9, 7, 300, 1] {
        index.insert(entry(ordinal, 10));
    }
    let all: Vec<u64> = index.from(0).map(|entry| entry.ordinal).collect();
    assert_eq!(all, [1, 5, 7, 9, 300]);
}

#[test]
fn messages_expire_at_their_time_and_locked_or_deferred_ones_do_not() {
    let mut index = Index::default();
    for ordinal in 1..=300 {
        index.insert(entry(ordinal, i64::try_from(ordinal).unwrap()));
    }
    index.update(2, |entry| entry.locked = true);
    index.update(3, |entry| entry.state = StoredState::Deferred);
    assert_eq!(index.next_expiry(), Some(Timestamp::from_millis(1)));
    assert!(index.expired(Timestamp::from_millis(0)).is_empty());
    assert_eq!(index.expired(Timestamp::from_millis(5)), [1, 4, 5]);
    for ordinal in [1, 4, 5] {
        index.remove(ordinal);
    }
    assert!(index.expired(Timestamp::from_millis(5)).is_empty());
    index.update(2, |entry| entry.locked = false);
    assert_eq!(index.expired(Timestamp::from_millis(5)), [2]);
}

#[test]
fn a_snapshot_does_not_change() {
    let mut index = Index::default();
    (1..=200).for_each(|ordinal| index.insert(entry(ordinal, 10)));
    let snapshot = index.freeze();
    index.remove(7);
    index.update(8, |entry| entry.delivery_count = 3);
    assert_eq!(snapshot.len(), 200);
    let mut counts = Vec::new();
    snapshot.for_each(|entry| counts.push((entry.ordinal, entry.delivery_count)));
    assert_eq!(
        counts,
        (1..=200).map(|ordinal| (ordinal, 0)).collect::<Vec<_>>()
    );
}

/// `cargo test --release --lib -- --ignored --nocapture costs_the_index`: a message that is added,
/// locked and removed, with others waiting after the first.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn what_a_message_costs_the_index() {
    for waiting in [100, 10_000, 1_000_000] {
        let mut index = Index::default();
        (1..=waiting).for_each(|ordinal| index.insert(entry(ordinal, 60_000)));
        let began = std::time::Instant::now();
        let count = 2_000_000;
        for ordinal in 1..=count {
            index.insert(entry(waiting + ordinal, 60_000));
            assert!(index.update(ordinal, |entry| entry.locked = true).is_some());
            assert!(index.remove(ordinal).is_some());
        }
        let took = began.elapsed().as_nanos();
        eprintln!(
            "{waiting} waiting: {} ns a message",
            took / u128::from(count)
        );
    }
}

/// Memory in which nothing stays open that need not, and little stays at all.
fn tight(packed: usize) -> Memory {
    let budget = Budget {
        open: 0,
        packed,
        ..Budget::default()
    };
    Memory::new(budget, Some(Box::new(MemoryPages)))
}

fn packed(index: &Index) -> usize {
    index.slots.len() - index.open.len()
}

#[test]
fn what_lies_between_the_ends_is_packed_and_read_as_it_was() {
    let mut index = Index::new(tight(0));
    (1..=10_000).for_each(|ordinal| index.insert(entry(ordinal, 10)));
    assert!(index.open.len() < 4, "{:?}", index.open);
    let all: Vec<u64> = index.from(0).map(|entry| entry.ordinal).collect();
    assert_eq!(all, (1..=10_000).collect::<Vec<_>>());
    assert_eq!(index.first_available(5_000), Some((5_000, BODY)));
    assert_eq!(index.get(9_000).map(|entry| entry.ordinal), Some(9_000));
    for ordinal in 1..=10_000 {
        assert!(index.remove(ordinal).is_some());
    }
    assert_eq!((index.len(), index.slots.len()), (0, 0));
    assert_eq!(index.memory.counted(), 0);
}

#[test]
fn a_plain_message_takes_few_bytes() {
    let memory = Memory::default();
    let mut index = Index::new(memory.clone());
    for ordinal in 1..=1_000_000 {
        let mut entry = entry(ordinal, 60_000);
        entry.body.position = ordinal * 1_060 + ordinal / 60 * 300;
        entry.body.length = 1_030;
        let later = i64::try_from(ordinal / 200).unwrap();
        entry.enqueued_at = Timestamp::from_millis(1_700_000_000_000 + later);
        index.insert(entry);
    }
    let bytes = memory.counted() - limits::OPEN_INDEX_BYTES;
    assert!(bytes < 8 * 1_000_000, "{bytes}");
}

#[test]
fn packed_messages_expire_at_their_time() {
    let mut index = Index::new(tight(usize::MAX));
    for ordinal in 1..=1_000 {
        index.insert(entry(ordinal, i64::try_from(ordinal).unwrap()));
    }
    index.remove(1);
    index.pack_chunks(usize::MAX);
    assert_eq!(packed(&index), index.slots.len());
    // A removed message is not waited for.
    assert_eq!(index.next_expiry(), Some(Timestamp::from_millis(2)));
    let mut expired = Vec::new();
    loop {
        let some = index.expired(Timestamp::from_millis(500));
        if some.is_empty() {
            break;
        }
        for ordinal in some {
            index.remove(ordinal);
            expired.push(ordinal);
        }
    }
    assert_eq!(expired, (2..=500).collect::<Vec<_>>());
    assert_eq!(index.next_expiry(), Some(Timestamp::from_millis(501)));
}

#[test]
fn a_search_for_bodies_passes_over_what_lies_elsewhere() {
    let mut index = Index::new(tight(usize::MAX));
    for ordinal in 0..100 * 128 {
        let mut entry = entry(ordinal, 10);
        entry.body.position = ordinal;
        index.insert(entry);
    }
    index.pack_chunks(usize::MAX);
    let within = std::iter::once(12_000..12_010).collect();
    let (found, rest) = index.bodies_within(&within, 0, 90 * PASSING_OVER);
    assert_eq!((found, rest), (Vec::new(), Some(90 * 128)));
    let (found, rest) = index.bodies_within(&within, 90 * 128, 1_000);
    let found: Vec<u64> = found.into_iter().map(|(ordinal, _)| ordinal).collect();
    assert_eq!((found, rest), ((12_000..12_010).collect(), None));
}

#[test]
fn a_snapshot_of_packed_messages_does_not_change() {
    let memory = tight(0);
    let mut index = Index::new(memory.clone());
    (1..=1_000).for_each(|ordinal| index.insert(entry(ordinal, 10)));
    let snapshot = index.freeze();
    (1..=1_000).for_each(|ordinal| drop(index.remove(ordinal)));
    let mut count = 0;
    snapshot.for_each(|_| count += 1);
    assert_eq!(count, 1_000);
    assert!(0 < memory.counted());
    drop(snapshot);
    assert_eq!(memory.counted(), 0);
}

fn amendments() -> impl Strategy<Value = Option<Arc<Amendments>>> {
    let some = prop::collection::btree_map("[a-z]{0,3}", "[a-c]{0,2}", 0..3).prop_map(|texts| {
        let mut amendments = Amendments::default();
        for (name, text) in texts {
            amendments.set_string(&name, &text);
        }
        Some(Arc::new(amendments))
    });
    prop_oneof![Just(None), some]
}

fn instant() -> impl Strategy<Value = Timestamp> {
    let usual = 1_700_000_000_000..1_700_000_001_000_i64;
    let any = prop_oneof![usual, Just(i64::MIN), Just(i64::MAX), Just(0), any::<i64>()];
    any.prop_map(Timestamp::from_millis)
}

fn state() -> impl Strategy<Value = StoredState> {
    prop_oneof![
        4 => Just(StoredState::Active),
        1 => Just(StoredState::Deferred),
        1 => instant().prop_map(|due| StoredState::Scheduled { due }),
    ]
}

fn life() -> impl Strategy<Value = Millis> {
    let any = prop_oneof![Just(i64::MAX), Just(0), 0..1_000_i64, 0..i64::MAX];
    any.prop_map(Millis::from_millis)
}

fn word() -> impl Strategy<Value = Option<String>> {
    prop_oneof![Just(None), "[a-c]{0,2}".prop_map(Some)]
}

prop_compose! {
    fn any_entry()(
        ordinal in prop_oneof![0..300_u64, any::<u64>()],
        position in prop_oneof![0..3_000_u64, any::<u64>()],
        length in prop_oneof![Just(7), Just(u32::MAX), any::<u32>()],
        (state, enqueued_at, time_to_live) in (state(), instant(), life()),
        (enqueued_number, amendments) in (prop_oneof![Just(0), any::<u64>()], amendments()),
        (session, source) in (word(), word()),
        (delivery_count, hops) in prop_oneof![Just((0, 0)), any::<(u32, u8)>()],
        (locked, acquired, shared) in any::<(bool, bool, bool)>(),
    ) -> Entry {
        let mut entry = Entry::new(ordinal, BodyRef { position, length }, state);
        entry.enqueued_at = enqueued_at;
        entry.time_to_live = time_to_live;
        entry.enqueued_number = SequenceNumber(enqueued_number);
        entry.amendments = amendments;
        entry.message_session = session.map(|name| MessageSession::from(name.as_str()));
        entry.dead_letter_source = source.map(|path| Arc::new(path.into()));
        entry.delivery_count = delivery_count;
        entry.hops = hops;
        entry.locked = locked;
        entry.shared = shared;
        if acquired {
            entry.acquired = Acquired::Perhaps;
        }
        entry
    }
}

fn shown<E: std::ops::Deref<Target = Entry>>(entry: E) -> String {
    format!("{:?}", *entry)
}

/// An operation on an index.
#[derive(Debug, Clone)]
enum Act {
    Insert(Box<Entry>),
    Remove(usize),
    Lock(usize, bool),
    Amend(usize, Option<Arc<Amendments>>),
    Expire(i64),
    PackChunks(usize),
    Freeze,
    Thaw,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => any_entry().prop_map(|entry| Act::Insert(Box::new(entry))),
        4 => any::<usize>().prop_map(Act::Remove),
        3 => any::<(usize, bool)>().prop_map(|(at, locked)| Act::Lock(at, locked)),
        2 => (any::<usize>(), amendments()).prop_map(|(at, amendments)| Act::Amend(at, amendments)),
        1 => (0..1_000_i64).prop_map(|at| Act::Expire(1_700_000_000_000 + at)),
        1 => (0..3_usize).prop_map(Act::PackChunks),
        1 => Just(Act::Freeze),
        1 => Just(Act::Thaw),
    ]
}

/// An index beside a plain map of the same entries.
struct Pair {
    index: Index,
    model: BTreeMap<u64, Entry>,
    frozen: Option<(Frozen, Vec<String>)>,
}

impl Pair {
    fn shown(&self) -> Vec<String> {
        self.model.values().map(shown).collect()
    }

    fn some(&self, at: usize) -> Option<u64> {
        let at = at.checked_rem(self.model.len())?;
        self.model.keys().nth(at).copied()
    }

    fn update(&mut self, at: usize, change: impl Fn(&mut Entry)) {
        if let Some(ordinal) = self.some(at) {
            assert!(self.index.update(ordinal, &change).is_some());
            self.model.entry(ordinal).and_modify(change);
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Insert(entry) => {
                if let btree_map::Entry::Vacant(place) = self.model.entry(entry.ordinal) {
                    place.insert((*entry).clone());
                    self.index.insert(*entry);
                }
            }
            Act::Remove(at) => {
                if let Some(ordinal) = self.some(at) {
                    let removed = self.index.remove(ordinal).expect("it is there");
                    assert_eq!(
                        self.model.remove(&ordinal).as_ref().map(shown),
                        Some(shown(&removed))
                    );
                    assert!(self.index.remove(ordinal).is_none());
                }
            }
            Act::Lock(at, locked) => self.update(at, |entry| entry.locked = locked),
            Act::Amend(at, amendments) => {
                self.update(at, |entry| entry.amendments.clone_from(&amendments));
            }
            Act::Expire(now) => self.expire(Timestamp::from_millis(now)),
            Act::PackChunks(most) => self.index.pack_chunks(most),
            Act::Freeze => self.frozen = Some((self.index.freeze(), self.shown())),
            Act::Thaw => {
                if let Some((frozen, expected)) = self.frozen.take() {
                    let mut found = Vec::new();
                    frozen.for_each(|entry| found.push(shown(entry)));
                    assert_eq!(found, expected);
                }
            }
        }
    }

    fn expire(&mut self, now: Timestamp) {
        let is_due = |entry: &Entry| entry.can_expire() && entry.expires_at() <= now;
        let mut due = self.model.values().filter(|entry| is_due(entry));
        let soonest = due.clone().map(Entry::expires_at).min();
        assert!(soonest.is_none() || self.index.next_expiry() <= soonest);
        let mut expected: Vec<u64> = due.by_ref().map(|entry| entry.ordinal).collect();
        let mut found = Vec::new();
        loop {
            let some = self.index.expired(now);
            if some.is_empty() {
                break;
            }
            for ordinal in some {
                assert!(
                    self.index.remove(ordinal).is_some() && self.model.remove(&ordinal).is_some()
                );
                found.push(ordinal);
            }
        }
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    fn check(&mut self, probe: u64) {
        let all: Vec<String> = self.index.from(0).map(shown).collect();
        assert_eq!(all, self.shown());
        assert_eq!(self.index.len(), self.model.len());
        let from = self.index.from(probe).map(shown);
        let expected = self.model.range(probe..).map(|(_, entry)| shown(entry));
        assert_eq!(from.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert_eq!(
            self.index.get(probe).map(shown),
            self.model.get(&probe).map(shown)
        );
        let mut available = self.model.range(probe..);
        let available = available.find(|(_, entry)| entry.is_available());
        let available = available.map(|(&ordinal, entry)| (ordinal, entry.body));
        assert_eq!(self.index.first_available(probe), available);
        let within = 1_000..2_000_u64;
        let positions = std::iter::once(within.clone()).collect();
        let (bodies, rest) = self.index.bodies_within(&positions, probe, usize::MAX);
        let expected = self.model.range(probe..);
        let expected = expected.filter(|(_, entry)| within.contains(&entry.body.position));
        let expected = expected.map(|(&ordinal, entry)| (ordinal, entry.body));
        assert_eq!((bodies, rest), (expected.collect(), None));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn entries_come_back_as_they_were_packed(entries in prop::collection::vec(any_entry(), 0..20)) {
        let bytes = packed::pack(entries.iter());
        let again = packed::unpack(&bytes, 0);
        let shown = |entries: &[Entry]| entries.iter().map(shown).collect::<Vec<_>>();
        prop_assert_eq!(shown(&again), shown(&entries));
    }

    #[test]
    fn an_index_is_a_map_whatever_of_it_is_packed(
        acts in prop::collection::vec(act(), 1..120),
        open in prop_oneof![Just(0), Just(3_000_usize)],
        packed in prop_oneof![Just(0), Just(500), Just(usize::MAX)],
        probe in 0..300_u64,
    ) {
        let budget = Budget { open, packed, ..Budget::default() };
        let memory = Memory::new(budget, Some(Box::new(MemoryPages)));
        let mut pair = Pair {
            index: Index::new(memory.clone()),
            model: BTreeMap::new(),
            frozen: None,
        };
        for act in acts {
            pair.act(act);
        }
        pair.check(probe);
        drop(pair);
        prop_assert_eq!(memory.counted(), 0);
    }
}
