//! Failures that were found in fleets of servers, each as it was found.

use super::*;

/// A fleet of three servers that has taken all of its namespaces.
fn fleet(namespaces: usize) -> Fleet {
    let mut fleet = Fleet::new(7, &["a", "b", "c"], namespaces);
    fleet.until_served(10_000).unwrap();
    fleet.run(20_000).unwrap();
    fleet
}

/// Returns how many namespaces a machine's server answers for.
fn share(fleet: &Fleet, at: usize) -> usize {
    let server = fleet.machines[at].server.as_ref();
    server.map_or(0, |server| server.answers_for(fleet.now).count())
}

fn shares(fleet: &Fleet) -> [usize; 3] {
    [0, 1, 2].map(|at| share(fleet, at))
}

#[test]
fn three_servers_have_alike() {
    let mut fleet = fleet(9);
    assert_eq!(shares(&fleet), [3; 3]);
    let taken = fleet.figures.takeovers;
    fleet.run(60_000).unwrap();
    assert_eq!(fleet.figures.takeovers, taken, "nothing moves");
    fleet.check_logs().unwrap();
}

/// Its heartbeats come in time for the others, and their answers too late for its lease: it would have its namespaces, and answer for
/// none.
#[test]
fn a_server_whose_way_to_the_database_is_slow_gives_its_namespaces_to_others() {
    let mut fleet = fleet(9);
    fleet.begin(Fault::Slow(0, 1_100));
    fleet.run(15_000).unwrap();
    assert_eq!(shares(&fleet)[0], 0);
    assert!(fleet.unserved().is_empty());
    // It is not declared dead, and gets nothing back, for as long as that lasts.
    fleet.run(60_000).unwrap();
    assert_eq!((shares(&fleet)[0], fleet.unserved()), (0, vec![]));
    fleet.end(Fault::Slow(0, 0));
    fleet
        .run(millis(limits::SERVER_REST.as_duration()) + 15_000)
        .unwrap();
    assert_eq!(shares(&fleet), [3; 3]);
    fleet.check_logs().unwrap();
}

/// It is frozen for 4 s of every 20 s: that is its own death each time, and none of the namespaces'.
#[test]
fn a_server_that_flaps_puts_no_namespace_into_quarantine() {
    let mut fleet = fleet(9);
    for _ in 0..10 {
        fleet.begin(Fault::Freeze(0));
        fleet.run(4_000).unwrap();
        fleet.end(Fault::Freeze(0));
        fleet.run(16_000).unwrap();
        assert!(fleet.unserved().is_empty());
    }
    let namespaces = fleet.database.namespaces.iter();
    assert_eq!(namespaces.filter(|it| it.is_quarantined).count(), 0);
    assert_eq!(shares(&fleet)[0], 0, "it rests");
    fleet.check_logs().unwrap();
}

#[test]
fn a_server_whose_clock_is_set_gives_its_namespaces_to_others() {
    let mut fleet = fleet(9);
    fleet.begin(Fault::Clock(0, 7_200_000));
    fleet.run(4_000).unwrap();
    assert_eq!((shares(&fleet)[0], fleet.unserved()), (0, vec![]));
    fleet.end(Fault::Clock(0, 0));
    fleet.run(10_000).unwrap();
    assert_eq!(shares(&fleet), [3; 3]);
}

/// What one server has in memory is not in a database that was restored.
#[test]
fn no_server_answers_from_before_a_database_was_restored() {
    let mut fleet = fleet(9);
    fleet.begin(Fault::Restore(2));
    fleet.run(3_000).unwrap();
    assert_eq!(shares(&fleet), [0; 3]);
    fleet.heal();
    fleet.until_served(15_000).unwrap();
    fleet.check_logs().unwrap();
}

#[test]
fn of_two_servers_with_one_name_one_serves() {
    let mut fleet = Fleet::new(3, &["a", "a", "b"], 6);
    fleet.run(20_000).unwrap();
    assert!(fleet.unserved().is_empty());
    assert!(shares(&fleet)[..2].contains(&0));
    let taken = fleet.figures.takeovers;
    fleet.run(60_000).unwrap();
    assert_eq!(fleet.figures.takeovers, taken, "nothing moves");
    // The one that has it is killed: the other is silent until then, and enters.
    let first = usize::from(share(&fleet, 0) == 0);
    fleet.begin(Fault::Crash(first));
    fleet.run(1_000).unwrap();
    fleet.until_served(15_000).unwrap();
}

#[test]
fn a_namespace_that_ends_its_servers_is_left_alone_and_the_others_are_served() {
    let mut fleet = fleet(6);
    fleet.begin(Fault::Poison(4));
    fleet.run(60_000).unwrap();
    assert!(fleet.database.namespaces[4].is_quarantined);
    fleet.run(15_000).unwrap();
    assert_eq!(fleet.unserved(), Vec::<i64>::new(), "{:#?}", fleet.trace);
    assert_eq!(shares(&fleet).iter().sum::<usize>(), 5);
    fleet.check_logs().unwrap();
}

#[test]
fn a_server_that_leaves_in_good_order_hands_its_namespaces_over() {
    let mut fleet = fleet(9);
    fleet.begin(Fault::Leave(0));
    let took = fleet.until_served(5_000).unwrap();
    assert!(took <= 2_000, "{took} ms");
    // It counts as no death.
    assert_eq!(fleet.database.servers["a"].deaths, 0);
    fleet.end(Fault::Leave(0));
    fleet.run(15_000).unwrap();
    assert_eq!(shares(&fleet), [3; 3]);
}
