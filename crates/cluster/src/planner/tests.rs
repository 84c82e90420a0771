use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn all(stores: usize) -> StoreSet {
    let mut all = StoreSet::default();
    (0..stores).for_each(|store| all.add(store));
    all
}

fn key(id: i64) -> NamespaceKey {
    NamespaceKey { store: 0, id }
}

fn keys(ids: impl IntoIterator<Item = i64>) -> Vec<NamespaceKey> {
    ids.into_iter().map(key).collect()
}

fn servers(names: &[&str]) -> Vec<Member> {
    let live = |name: &&str| Member {
        name: (*name).to_owned(),
        formats: 1,
        stores: all(1),
    };
    names.iter().map(live).collect()
}

fn seen(id: i64, owner: Owner, rate: i64) -> NamespaceState {
    NamespaceState {
        key: key(id),
        owner,
        rate,
        formats: 1,
        is_fixed: false,
    }
}

#[test]
fn each_free_namespace_has_one_server_that_takes_it_and_all_carry_alike() {
    let mut namespaces: Vec<NamespaceState> =
        (0..30).map(|id| seen(id, Owner::Absent, 0)).collect();
    namespaces.push(seen(30, Owner::Member(0), 9_500));
    let mut look = ClusterView {
        members: servers(&["a", "b", "c"]),
        namespaces,
    };
    let [a, b, c] = [0, 1, 2].map(|own| look.to_acquire(own));
    assert_eq!((a.len(), b.len(), c.len()), (3, 14, 13));
    let mut sum = [a.clone(), b.clone(), c.clone()].concat();
    sum.sort_unstable();
    assert_eq!(sum, keys(0..30));
    // A look in the middle changes nothing.
    for key in b.iter().take(7).chain(&c[2..5]) {
        let at = usize::try_from(key.id).unwrap();
        look.namespaces[at].owner = Owner::Member(if b.contains(key) { 1 } else { 2 });
    }
    assert_eq!(look.to_acquire(0), a);
    assert_eq!(look.to_acquire(1), b[7..]);
    assert_eq!(look.to_acquire(2), [&c[..2], &c[5..]].concat());
}

#[test]
fn what_a_server_carries_of_other_stores_counts_and_one_that_is_away_keeps_its_namespaces() {
    let mut live = servers(&["a", "b"]);
    for server in &mut live {
        server.stores.add(1);
    }
    let of_other = |id| NamespaceState {
        key: NamespaceKey { store: 1, id },
        is_fixed: true,
        ..seen(id, Owner::Member(0), 0)
    };
    let free = (0..10).map(|id| seen(id, Owner::Absent, 0));
    let mut look = ClusterView {
        members: live,
        namespaces: free.chain((0..6).map(of_other)).collect(),
    };
    let taken = |look: &ClusterView| [look.to_acquire(0).len(), look.to_acquire(1).len()];
    assert_eq!(taken(&look), [2, 8], "both have eight of both stores");
    look.members[0].stores = StoreSet(2);
    assert_eq!(
        taken(&look),
        [0, 10],
        "a does not reach the store of the free ones"
    );
    for namespace in &mut look.namespaces[..10] {
        namespace.owner = Owner::Member(1);
    }
    look.members[0].stores = all(2);
    assert_eq!(look.to_release(1, 9).len(), 2);
    look.namespaces.truncate(12);
    look.namespaces
        .iter_mut()
        .for_each(|it| it.owner = Owner::Member(0));
    assert_eq!(look.to_release(0, 9), keys(0..6));
    look.namespaces.drain(..8);
    assert!(
        look.namespaces.iter().filter(|it| it.is_fixed).count() == 2
            && look.to_release(0, 9) == keys(8..10),
        "what is away stays"
    );
}

#[test]
fn a_server_that_may_take_nothing_has_no_share_and_gives() {
    let mut live = servers(&["a", "b", "c"]);
    live[1].stores = StoreSet::default();
    let mut look = ClusterView {
        members: live,
        namespaces: (0..9).map(|id| seen(id, Owner::Absent, 0)).collect(),
    };
    let shares = [0, 1, 2].map(|own| look.to_acquire(own).len());
    assert_eq!(shares, [5, 0, 4], "the others do not wait for it");
    for namespace in &mut look.namespaces {
        namespace.owner = Owner::Member(1);
    }
    assert_eq!(look.to_release(1, 9).len(), 6, "until all have three");
    // It has nothing, and that does not make the loads of the others uneven.
    look.namespaces = (0..40)
        .map(|id| match id % 2 {
            0 => seen(id, Owner::Member(0), 1_000),
            _ => seen(id, Owner::Member(2), 850),
        })
        .collect();
    assert!(look.to_release(0, 9).is_empty());
}

/// The store was away when it released them.
#[test]
fn a_server_gives_back_what_it_neither_serves_nor_may_take() {
    let mut members = servers(&["a", "b"]);
    members[1].stores = StoreSet::default();
    let mut namespaces: Vec<NamespaceState> =
        (0..4).map(|id| seen(id, Owner::Member(1), 0)).collect();
    namespaces[2].is_fixed = true;
    let view = |members: &[Member]| ClusterView {
        members: members.to_vec(),
        namespaces: namespaces.clone(),
    };
    let served = BTreeSet::from([key(0)]);
    let mut planner = Planner::default();
    let now = Duration::from_secs(1_000);
    let decided = planner.decide(now, Some(1), view(&members), &served);
    assert_eq!(decided.give_back, keys([1, 3]));
    let decided = planner.decide(now, Some(1), view(&members), &served);
    assert_eq!(decided.give_back, [], "it is at work");
    planner.released(key(1));
    let decided = planner.decide(now, Some(1), view(&members), &served);
    assert_eq!(decided.give_back, keys([1]), "it has failed again");
    // What it may take is taken again, by it or by another.
    members[1].stores = all(1);
    planner.released(key(1));
    let decided = planner.decide(now, Some(1), view(&members), &served);
    assert_eq!(decided.give_back, []);
}

#[test]
fn a_server_that_may_take_nothing_gives_all_away_if_another_may_take_it() {
    let mut live = servers(&["a", "b", "c"]);
    live[1].stores = StoreSet::default();
    let mut namespaces: Vec<NamespaceState> =
        (0..40).map(|id| seen(id, Owner::Member(1), 0)).collect();
    namespaces[0].is_fixed = true;
    namespaces[1].formats = 2;
    let look = |members: &[Member]| ClusterView {
        members: members.to_vec(),
        namespaces: namespaces.clone(),
    };
    assert_eq!(look(&live).to_shed(1), keys(2..40));
    assert!(look(&live).to_shed(0).is_empty());
    let served: BTreeSet<NamespaceKey> = keys(0..40).into_iter().collect();
    let mut planner = Planner::default();
    let now = Duration::from_secs(1_000_000);
    let judged = planner.decide(now, Some(1), look(&live), &served);
    assert_eq!(judged, Decision::default(), "the others are being judged");
    // Nothing is moved yet that is moved to make loads alike.
    let now = now + JUDGED + Duration::from_millis(1);
    let first = planner.decide(now, Some(1), look(&live), &served);
    assert_eq!(first.release, keys(2..18));
    assert_eq!(first.acquire, []);
    let none = planner.decide(now, Some(1), look(&live), &served);
    assert_eq!(none.release, [], "so many at a time");
    for key in keys(2..10) {
        planner.released(key);
    }
    let left: BTreeSet<NamespaceKey> = keys(10..40).into_iter().collect();
    let next = planner.decide(now, Some(1), look(&live), &left);
    assert_eq!(next.release, keys(18..26));
    // No server may take them.
    for server in &mut live {
        server.stores = StoreSet::default();
    }
    let mut planner = Planner::default();
    for after in [0, 2, 20] {
        let now = now + Duration::from_secs(after);
        let kept = planner.decide(now, Some(1), look(&live), &served);
        assert_eq!(kept, Decision::default());
    }
}

#[test]
fn a_server_that_rests_has_namespaces_only_where_no_other_is_fit() {
    let bests = [Fitness::Fit, Fitness::Resting];
    let may = |fitness: Fitness| bests.map(|best| fitness.may_take(best));
    assert_eq!(may(Fitness::Fit), [true, true]);
    assert_eq!(may(Fitness::Resting), [false, true]);
    assert_eq!(may(Fitness::Unfit), [false, false]);
}

#[test]
fn a_namespace_in_quarantine_is_left_alone() {
    let mut one = seen(1, Owner::Absent, 0);
    one.is_fixed = true;
    let look = ClusterView {
        members: servers(&["a"]),
        namespaces: vec![one],
    };
    assert!(look.to_acquire(0).is_empty());
}

/// mixed-formats: see also `looks.rs`.
#[test]
fn a_server_takes_no_log_that_may_have_records_which_it_does_not_read() {
    let mut live = servers(&["a", "b"]);
    live[1].formats = 2;
    let mut namespaces: Vec<NamespaceState> = (0..8).map(|id| seen(id, Owner::Absent, 0)).collect();
    for it in &mut namespaces {
        it.formats = 2;
    }
    let mut look = ClusterView {
        members: live,
        namespaces,
    };
    assert!(look.to_acquire(0).is_empty());
    assert_eq!(look.to_acquire(1).len(), 8, "however many it has");
    for namespace in &mut look.namespaces {
        namespace.owner = Owner::Member(1);
    }
    assert!(
        look.to_release(1, 9).is_empty(),
        "no other server reads them"
    );
    // One that no live server reads does not keep the others where they are.
    look.namespaces.push(NamespaceState {
        formats: 3,
        ..seen(9, Owner::Absent, 0)
    });
    look.namespaces
        .iter_mut()
        .take(6)
        .for_each(|it| it.formats = 1);
    assert_eq!(look.to_release(1, 9).len(), 4);
    let mut planner = Planner::default();
    let now = Duration::from_secs(1_000_000);
    let late =
        |planner: &mut Planner, at| planner.late(&look, Some(0), now + Duration::from_secs(at));
    assert!(late(&mut planner, 0).is_empty());
    assert!(late(&mut planner, 9).is_empty(), "nor when it is late");
}

#[test]
fn records_of_a_new_kind_are_written_when_all_servers_read_them() {
    assert_eq!(formats_of([], 18), 18);
    assert_eq!(formats_of([18, 17, 19], 18), 17);
    assert_eq!(formats_of([19, 20], 18), 18);
}

#[test]
fn namespaces_move_to_a_server_that_is_new_until_it_carries_as_much_and_no_further() {
    let mut look = ClusterView {
        members: servers(&["a", "b"]),
        namespaces: (0..9).map(|id| seen(id, Owner::Member(0), 0)).collect(),
    };
    let mut moves = 0;
    while let [given] = look.to_release(0, 1)[..] {
        moves += 1;
        let at = usize::try_from(given.id).unwrap();
        look.namespaces[at].owner = Owner::Absent;
        assert_eq!(look.to_release(0, 9).len(), 4 - moves, "it is on its way");
        assert_eq!(look.to_acquire(1), [given]);
        look.namespaces[at].owner = Owner::Member(1);
        assert!(look.to_release(1, 9).is_empty(), "nothing comes back");
    }
    assert_eq!(moves, 4);
    look.namespaces
        .iter_mut()
        .for_each(|it| it.owner = Owner::Member(0));
    assert_eq!(look.to_release(0, 3).len(), 3);
    assert_eq!(look.to_release(0, 9).len(), 4, "no more than that");
}

#[test]
fn one_that_is_heavier_than_the_difference_stays() {
    let live = servers(&["a", "b"]);
    let mut look = ClusterView {
        members: live,
        namespaces: vec![seen(1, Owner::Member(0), 50_000)],
    };
    assert!(look.to_release(0, 9).is_empty());
    look.namespaces.push(seen(2, Owner::Member(0), 0));
    assert_eq!(look.to_release(0, 9), keys([2]), "the light one");
}

#[test]
fn rates_that_change_a_little_move_nothing() {
    let all = |rate| ClusterView {
        members: servers(&["a", "b"]),
        namespaces: (0..40)
            .map(|id| match id % 2 {
                0 => seen(id, Owner::Member(0), rate),
                _ => seen(id, Owner::Member(1), 1_000),
            })
            .collect(),
    };
    for rate in [850, 1_000, 1_150] {
        for own in [0, 1] {
            assert!(all(rate).to_release(own, 9).is_empty(), "{rate}");
        }
    }
    assert_eq!(all(2_000).to_release(0, 9).len(), 3);
}

#[test]
fn namespaces_without_messages_are_spread_to_the_last() {
    let look = ClusterView {
        members: servers(&["a", "b", "c"]),
        namespaces: (0..1_000)
            .map(|id| seen(id, Owner::Member(usize::from(id % 3 != 0)), 0))
            .collect(),
    };
    assert_eq!(look.to_release(1, 1_000).len(), 333);
    assert_eq!(look.to_release(0, 1_000).len(), 0, "it has its share");
}

mod simulation;
