use std::collections::BTreeMap;
use std::fs;

use super::namespace::Past;
use super::*;
use jitney_base::address::SubQueue;
use jitney_broker::namespace::{EntityStatistics, MessageCounts, QueueStatistics, Statistics};
use jitney_queue::{EntityKind, Status};

const HOUR: usize = limits::HISTORY_INTERVALS;

/// Ten seconds before the end of an interval of a week.
fn at(step: i64) -> Timestamp {
    Timestamp::from_millis(1_800_000 * 1_000_000 - 10_000 + step * 10_000)
}

/// What an entity has counted.
#[derive(Debug, Clone, Copy)]
struct Counted {
    path: &'static str,
    incoming: u64,
    completed: u64,
}

const fn counted(path: &'static str, incoming: u64, completed: u64) -> Counted {
    Counted {
        path,
        incoming,
        completed,
    }
}

fn entity(namespace: &str, counted: Counted) -> EntityStatistics {
    let mut queue = QueueStatistics {
        active: usize::try_from(counted.incoming - counted.completed).unwrap(),
        arrived: counted.incoming,
        ..QueueStatistics::default()
    };
    queue.counters.incoming = counted.incoming;
    queue.counters.completed = counted.completed;
    EntityStatistics {
        namespace: namespace.to_owned(),
        path: counted.path.to_owned(),
        kind: EntityKind::Queue,
        status: Status::Active,
        requires_session: false,
        forward_to: None,
        forward_dead_letters_to: None,
        next_number: None,
        queues: vec![(SubQueue::Main, queue)],
    }
}

fn statistics(namespace: &str, entities: &[Counted]) -> Statistics {
    let entities = entities.iter().map(|it| entity(namespace, *it));
    Statistics {
        entities: entities.collect(),
        ..Statistics::default()
    }
}

fn in_memory() -> History {
    History::open(None, limits::HISTORY_BYTES_MAX)
}

/// A look at the namespace `ns`, which is there though it has no entities.
fn look(entities: &[Counted]) -> Look {
    let mut look = Look::of([statistics("ns", entities)].iter());
    look.namespaces.entry("ns".to_owned()).or_default();
    look.here = BTreeSet::from(["ns".to_owned()]);
    look
}

fn take(history: &History, step: i64, entities: &[Counted]) {
    history.take(at(step), look(entities));
}

fn name(path: &str) -> EntityName<'_> {
    EntityName {
        namespace: "NS",
        path,
    }
}

fn past(history: &History, path: &str, range: Range) -> Vec<Past> {
    let found = history.of(name(path), range, Timestamp::EPOCH);
    found.map(|it| it.past).unwrap_or_default()
}

/// What came in, was completed and waits, of each interval of the last hour that ended after a step.
fn counts(history: &History, path: &str, after: i64) -> Vec<(u32, u32, u32)> {
    let found = history.of(name(path), Range::Hour, at(after)).unwrap();
    let counts = found.past.iter().map(|Past { point, .. }| {
        let counts = point.counts;
        (counts.incoming, counts.completed, point.messages.active)
    });
    counts.collect()
}

#[test]
fn each_interval_has_what_happened_in_it() {
    let history = in_memory();
    // What was counted before is of no interval.
    take(&history, 0, &[counted("a", 5, 0)]);
    assert!(past(&history, "a", Range::Hour).is_empty());
    take(&history, 1, &[counted("a", 5, 0), counted("b", 3, 3)]);
    take(&history, 2, &[counted("a", 12, 4), counted("b", 3, 3)]);
    assert_eq!(counts(&history, "A", 0), [(0, 0, 5), (7, 4, 8)]);
    assert_eq!(counts(&history, "b", 0), [(3, 3, 0), (0, 0, 0)]);
    assert_eq!(counts(&history, "", 1), [(7, 4, 8)]);
    assert_eq!(history.of(name("c"), Range::Hour, at(0)), None);
}

#[test]
fn what_comes_into_a_namespace_is_what_can_be_completed_there() {
    let entity = |path: &'static str, kind, published, arrived, completed| {
        let mut found = entity("ns", counted(path, 10, 0));
        let (_, queue) = &mut found.queues[0];
        queue.arrived = arrived;
        queue.published = published;
        // That of the second queue was forwarded from the first.
        queue.counters.completed = completed;
        EntityStatistics { kind, ..found }
    };
    let history = in_memory();
    take(&history, 0, &[]);
    let entities = vec![
        entity("topic", EntityKind::Topic, 10, 0, 0),
        entity(
            "topic/Subscriptions/one",
            EntityKind::Subscription,
            0,
            10,
            10,
        ),
        entity(
            "topic/Subscriptions/two",
            EntityKind::Subscription,
            0,
            10,
            10,
        ),
        entity("forwards", EntityKind::Queue, 0, 0, 0),
        entity("to", EntityKind::Queue, 0, 10, 10),
    ];
    // More entities than have a history of their own count as well.
    let topic_and_copy = QueueStatistics {
        published: 1,
        arrived: 1,
        ..QueueStatistics::default()
    };
    let others = [(("ns".to_owned(), SubQueue::Main), topic_and_copy)];
    let found = Statistics {
        entities,
        others: others.into(),
        ..Statistics::default()
    };
    history.take(at(1), Look::of([found].iter()));
    let last = past(&history, "", Range::Hour)[0].point.counts;
    assert_eq!(
        (last.published, last.incoming, last.completed),
        (11, 31, 30)
    );
}

#[test]
fn a_namespace_counts_nothing_again_when_an_entity_is_deleted_or_forwards_what_it_had() {
    let history = in_memory();
    let look = |step, entities: &[Counted], deleted: u64| {
        let mut found = statistics("ns", entities);
        let counts = MessageCounts {
            arrived: deleted,
            completed: deleted,
            ..MessageCounts::default()
        };
        found.deleted = BTreeMap::from([("ns".to_owned(), counts)]);
        history.take(at(step), Look::of([found].iter()));
    };
    look(0, &[counted("a", 500, 500), counted("b", 7, 0)], 0);
    look(1, &[counted("a", 510, 510), counted("b", 7, 0)], 0);
    // What it had counted since the look before counts, too.
    look(2, &[counted("b", 8, 0)], 511);
    // Three messages that had arrived are forwarded, and arrive where they end.
    look(3, &[counted("b", 5, 0)], 511);
    look(4, &[counted("b", 5, 0), counted("c", 3, 0)], 511);
    look(5, &[counted("b", 6, 0), counted("c", 3, 0)], 511);
    let found = past(&history, "", Range::Hour);
    let counts = found
        .iter()
        .map(|it| (it.point.counts.incoming, it.point.counts.completed));
    let counts: Vec<_> = counts.collect();
    assert_eq!(counts, [(10, 10), (2, 1), (0, 0), (0, 0), (1, 0)]);
}

#[test]
fn an_entity_that_is_made_again_begins_anew() {
    let history = in_memory();
    take(&history, 0, &[counted("a", 0, 0)]);
    take(&history, 1, &[counted("a", 50, 0)]);
    take(&history, 2, &[]);
    assert_eq!(history.of(name("a"), Range::Hour, at(0)), None);
    take(&history, 3, &[counted("a", 2, 1)]);
    assert_eq!(counts(&history, "a", 0), [(2, 1, 1)]);
    // Between two looks, it is known by its counters.
    take(&history, 4, &[counted("a", 1, 0)]);
    assert_eq!(counts(&history, "a", 3), [(1, 0, 1)]);
}

#[test]
fn intervals_without_change_take_no_memory_and_the_oldest_go() {
    let history = in_memory();
    let all = i64::try_from(HOUR).unwrap();
    take(&history, 0, &[counted("a", 0, 0)]);
    for step in 1..=all {
        take(&history, step, &[counted("a", 9, 0)]);
    }
    let points = |history: &History| {
        let kept = history.kept();
        kept.namespaces["ns"].series["a"].points.hour.points.len()
    };
    assert_eq!(points(&history), 1);
    assert_eq!(counts(&history, "a", -1).first(), Some(&(9, 0, 9)));
    take(&history, all + 1, &[counted("a", 9, 0)]);
    assert_eq!(points(&history), 0);
    let found = counts(&history, "a", -1);
    assert_eq!((found.len(), found[0]), (HOUR, (0, 0, 9)));
}

#[test]
fn rates_are_those_of_the_last_minute() {
    let history = in_memory();
    take(&history, 0, &[counted("a", 0, 0)]);
    assert_eq!(history.rates(name("a")), None);
    take(&history, 1, &[counted("a", 600, 10)]);
    let incoming = history.rates(name("a")).unwrap().incoming;
    assert!((incoming - 60.0).abs() < 1e-9, "{incoming}");
    for step in 2..=7 {
        take(&history, step, &[counted("a", 630, 10)]);
    }
    let rates = history.rates(name("a")).unwrap();
    assert_eq!((rates.incoming, rates.completed), (0.5, 0.0));
}

#[test]
fn a_day_and_a_week_have_longer_intervals_that_end_at_round_times() {
    let history = in_memory();
    // Two weeks, with a message each interval of an hour.
    let steps = 14 * 8_640;
    for step in 0..=steps {
        let incoming = u64::try_from(step).unwrap();
        take(&history, step, &[counted("a", incoming, 0)]);
    }
    for (range, seconds, count) in [(Range::Day, 300, 288), (Range::Week, 1_800, 336)] {
        let found = past(&history, "a", range);
        assert_eq!(found.len(), count, "{range:?}");
        for it in &found {
            assert_eq!(it.interval.end.as_millis() % (seconds * 1_000), 0);
            assert_eq!(it.interval.watched().as_millis(), seconds * 1_000);
            assert_eq!(i64::from(it.point.counts.incoming), seconds / 10);
        }
        assert!(found.is_sorted_by(|one, two| one.interval.end == two.interval.begin()));
    }
    // The next step ends those that have begun, and others begin.
    for step in 1..=3 {
        take(&history, steps + step, &[counted("a", 0, 0)]);
    }
    let found = history.of(name("a"), Range::Week, at(0)).unwrap();
    assert_eq!(
        found.current.unwrap().interval.watched().as_millis(),
        20_000
    );
}

#[test]
fn time_in_which_the_process_stood_still_is_a_gap() {
    let history = in_memory();
    take(&history, 0, &[counted("a", 0, 0)]);
    take(&history, 1, &[counted("a", 1, 0)]);
    // When these came is not known.
    take(&history, 100, &[counted("a", 50, 0)]);
    take(&history, 101, &[counted("a", 53, 0)]);
    let found = past(&history, "a", Range::Hour);
    let found = found.iter().map(|it| {
        (
            it.interval.begin(),
            it.interval.end,
            it.point.counts.incoming,
        )
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [(at(0), at(1), 1), (at(100), at(101), 3)]
    );
    let incoming = history.rates(name("a")).unwrap().incoming;
    assert!((incoming - 0.3).abs() < 1e-9, "{incoming}");
}

#[test]
fn a_clock_that_is_set_back_removes_what_would_lie_in_the_future() {
    let history = in_memory();
    for step in 0..=60 {
        let incoming = u64::try_from(step).unwrap();
        take(&history, step, &[counted("a", incoming, 0)]);
    }
    for step in [30, 31, 32] {
        take(&history, step, &[counted("a", 100, 0), counted("b", 1, 0)]);
        assert_in_order(&history);
    }
    let found = past(&history, "a", Range::Hour);
    assert_eq!(found.last().unwrap().interval.end, at(32));
    assert_eq!(found.len(), 32);
    // Far ahead and back: what is between is lost, what was before is there.
    take(&history, 9_000_000, &[counted("a", 100, 0)]);
    take(&history, 9_000_001, &[counted("a", 100, 0)]);
    for step in [33, 34] {
        take(&history, step, &[counted("a", 100, 0)]);
        assert_in_order(&history);
    }
    let found = past(&history, "a", Range::Hour);
    assert_eq!((found.len(), found[0].interval.end), (33, at(1)));
    assert_eq!(past(&history, "b", Range::Hour), []);
}

/// Ends increase, and points are of intervals that there are.
fn assert_in_order(history: &History) {
    for range in Range::ALL {
        for path in ["", "a", "b"] {
            let found = past(history, path, range);
            let is_before = |one: &Past, two: &Past| one.interval.end <= two.interval.begin();
            assert!(found.is_sorted_by(is_before), "{range:?} {path}: {found:?}");
        }
    }
    let kept = history.kept();
    let copy = format::decode(&format::encode(kept.all(), at(0))).unwrap();
    assert_eq!(copy, without_process(kept.clone()));
}

/// What is left of a history without what only a process knows.
fn without_process(mut kept: KeptHistories) -> KeptHistories {
    kept.namespaces
        .values_mut()
        .for_each(NamespaceHistory::pause);
    kept
}

#[test]
fn a_restart_keeps_the_history_and_leaves_a_gap() {
    let directory = tempfile::tempdir().unwrap();
    let open = || History::open(Some(directory.path()), limits::HISTORY_BYTES_MAX);
    let history = open();
    for step in 0..=50 {
        let incoming = u64::try_from(step).unwrap();
        take(
            &history,
            step,
            &[counted("a", incoming, 0), counted("gone", 1, 0)],
        );
    }
    let (before, day) = (
        past(&history, "a", Range::Hour),
        past(&history, "a", Range::Day),
    );
    let begun = history.of(name("a"), Range::Day, at(0)).unwrap().current;
    assert_eq!(begun.unwrap().point.counts.incoming, 50 - 31);
    history.write(at(50));
    drop(history);
    let history = open();
    assert_eq!(past(&history, "a", Range::Hour), before);
    assert_eq!(past(&history, "a", Range::Day), day);
    // Counters begin anew with the process, and so does what it watches. The interval of a day continues.
    take(&history, 55, &[counted("a", 4, 0)]);
    take(&history, 56, &[counted("a", 6, 0)]);
    let after = past(&history, "a", Range::Hour);
    let (last, rest) = after.split_last().unwrap();
    assert_eq!(rest, before);
    assert_eq!((last.interval.begin(), last.interval.end), (at(55), at(56)));
    assert_eq!(
        (last.point.counts.incoming, last.point.messages.active),
        (2, 6)
    );
    let begun = history
        .of(name("a"), Range::Day, at(0))
        .unwrap()
        .current
        .unwrap();
    assert_eq!(begun.point.counts.incoming, 50 - 31 + 2);
    assert_eq!(
        (begun.interval.begin(), begun.interval.end),
        (at(31), at(56))
    );
    assert_eq!(begun.interval.watched().as_millis(), 200_000);
    // It was deleted meanwhile.
    assert_eq!(history.of(name("gone"), Range::Hour, at(0)), None);
    assert_in_order(&history);
}

#[test]
fn an_interval_that_had_begun_ends_with_what_was_known_then() {
    let directory = tempfile::tempdir().unwrap();
    let open = || History::open(Some(directory.path()), limits::HISTORY_BYTES_MAX);
    let history = open();
    for step in 0..=40 {
        take(&history, step, &[counted("a", 7, 0)]);
    }
    history.write(at(40));
    let history = open();
    // An hour later there is nothing left in it.
    take(&history, 400, &[counted("a", 0, 0)]);
    let found = past(&history, "a", Range::Day);
    let last = found.last().unwrap();
    assert_eq!((last.interval.begin(), last.interval.end), (at(31), at(40)));
    assert_eq!(last.point.messages.active, 7);
}

#[test]
fn a_file_that_is_damaged_or_newer_is_no_history_and_no_obstacle() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(file::FILE);
    let open = || History::open(Some(directory.path()), limits::HISTORY_BYTES_MAX);
    let history = open();
    for step in 0..=40 {
        take(&history, step, &[counted("a", 7, 0), counted("b", 1, 1)]);
    }
    history.write(at(40));
    let whole = fs::read(&path).unwrap();
    assert!(format::decode(&whole).is_ok());
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        assert!(format::decode(&damaged).is_err(), "byte {at} is flipped");
        assert!(format::decode(&whole[..at]).is_err(), "it ends at {at}");
    }
    let mut newer = whole.clone();
    newer[8] += 1;
    let error = format::decode(&newer).unwrap_err();
    assert_eq!(error, Malformed::Version(format::VERSION + 1));
    for (contents, is_known) in [(&whole, true), (&newer, false)] {
        fs::write(&path, contents).unwrap();
        let history = open();
        assert_eq!(!past(&history, "a", Range::Hour).is_empty(), is_known);
        take(&history, 41, &[counted("a", 0, 0)]);
        history.write(at(41));
        assert_eq!(
            open().kept().clone(),
            without_process(history.kept().clone())
        );
    }
}

#[test]
fn contents_with_a_right_checksum_that_contradict_themselves_are_damaged() {
    let history = in_memory();
    for step in 0..=40 {
        take(&history, step, &[counted("a", 7, 0)]);
    }
    let whole = format::encode(history.kept().all(), at(40));
    let mut accepted = 0;
    for place in 24..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut file = whole.clone();
            file[place] = value;
            let sum = crc32c::crc32c(&file[16..]);
            file[12..16].copy_from_slice(&sum.to_le_bytes());
            let Ok(kept) = format::decode(&file) else {
                continue;
            };
            // Whatever it says is a history that continues.
            accepted += 1;
            let changed = in_memory();
            *changed.kept() = kept;
            for step in [41, 42, 300] {
                take(&changed, step, &[counted("a", 7, 0)]);
            }
            assert_in_order(&changed);
        }
    }
    assert!(0 < accepted, "counts may be anything");
}

#[test]
fn the_format_is_what_its_page_says() {
    let history = in_memory();
    take(&history, 0, &[counted("a", 300, 0)]);
    take(&history, 1, &[counted("a", 302, 1)]);
    let file = format::encode(history.kept().all(), at(1));
    let hex: Vec<String> = file.iter().map(|byte| format!("{byte:02x}")).collect();
    let hex = hex.concat();
    let page = include_str!("../../../docs/log-format.md");
    let (_, example) = page.split_once("### An example of a history").unwrap();
    let block = example.split("```").nth(1).unwrap();
    let written: String = block.split_whitespace().collect();
    assert_eq!(hex, written);
    assert_eq!(
        format::decode(&file).unwrap(),
        without_process(history.kept().clone())
    );
}

#[test]
fn all_histories_together_have_a_bound_which_namespaces_share() {
    let bytes_max = 256 * 1024;
    let history = History::open(None, bytes_max);
    // Names that live as long as the test.
    let paths: Vec<&'static str> = (0..200)
        .map(|at| &*Box::leak(format!("queue-{at}").into_boxed_str()))
        .collect();
    for step in 0..400 {
        let incoming = u64::try_from(step).unwrap();
        let busy: Vec<Counted> = paths
            .iter()
            .map(|path| counted(path, incoming, 0))
            .collect();
        let reports = [
            statistics("busy", &busy),
            statistics("ns", &[counted("a", incoming, 0)]),
        ];
        history.take(at(step), Look::of(reports.iter()));
        assert!(history.kept().bytes() <= bytes_max, "step {step}");
    }
    // That of the other namespace is whole.
    assert_eq!(past(&history, "a", Range::Hour).len(), HOUR);
    let busy = EntityName {
        namespace: "busy",
        path: "queue-7",
    };
    let found = history.of(busy, Range::Hour, at(0)).unwrap().past;
    assert!(!found.is_empty() && found.len() < HOUR, "{}", found.len());
    // What is left of it tells no zeros.
    assert!(found.iter().all(|it| it.point.counts.incoming == 1));
}

#[test]
fn a_namespace_that_another_server_takes_over_keeps_its_history_with_a_gap() {
    let (before, after) = (in_memory(), in_memory());
    for step in 0..=3 {
        take(&before, step, &[counted("a", 10, 0)]);
    }
    let extract = before.extract("NS", at(3)).unwrap();
    // The next server has looked before it has read what the first one has kept.
    for step in 5..=6 {
        take(&after, step, &[counted("a", 1, 0)]);
    }
    after.continue_from("NS", &extract).unwrap();
    for (step, incoming) in [(7, 1), (8, 1), (9, 3)] {
        take(&after, step, &[counted("a", incoming, 0)]);
    }
    let found = past(&after, "a", Range::Hour);
    let ends: Vec<Timestamp> = found.iter().map(|it| it.interval.end).collect();
    assert_eq!(ends, [at(1), at(2), at(3), at(8), at(9)]);
    let incoming = found.iter().map(|it| it.point.counts.incoming);
    assert_eq!(incoming.collect::<Vec<_>>(), [0, 0, 0, 0, 2]);
    // The first server forgets what it has given away.
    before.take(at(4), Look::of([].iter()));
    assert!(before.kept().namespaces.is_empty());
    assert_eq!(before.extract("ns", at(4)), None);
}

#[test]
fn what_is_no_history_of_a_namespace_leaves_what_was_seen() {
    let (one, other) = (in_memory(), in_memory());
    for step in 0..=1 {
        take(&one, step, &[counted("a", 1, 0)]);
        let look = Look::of([statistics("other", &[counted("b", 1, 0)])].iter());
        other.take(at(step), look);
    }
    let of_other = other.extract("other", at(1)).unwrap();
    assert!(one.continue_from("ns", &of_other).is_err());
    assert!(one.continue_from("ns", &of_other[..9]).is_err());
    assert_eq!(past(&one, "a", Range::Hour).len(), 1);
    assert_eq!(one.kept().namespaces.len(), 1);
}

#[test]
fn of_a_long_history_the_newer_part_goes_to_the_next_server() {
    const HOUR_STEPS: i64 = 360;
    let history = in_memory();
    let paths: Vec<&'static str> = (0..limits::HISTORY_ENTITIES_MAX)
        .map(|at| &*Box::leak(format!("queue-{at}").into_boxed_str()))
        .collect();
    for step in 0..HOUR_STEPS {
        let incoming = u64::try_from(step).unwrap() * 100_000;
        let busy: Vec<Counted> = paths
            .iter()
            .map(|path| counted(path, incoming, 0))
            .collect();
        take(&history, step, &busy);
    }
    let whole = format::encode(history.kept().all(), at(HOUR_STEPS - 1)).len();
    assert!(limits::HISTORY_STORE_BYTES_MAX < whole, "{whole}");
    let extract = history.extract("ns", at(HOUR_STEPS - 1)).unwrap();
    assert!(extract.len() <= limits::HISTORY_STORE_BYTES_MAX);
    let next = in_memory();
    next.continue_from("ns", &extract).unwrap();
    let found = past(&next, "queue-7", Range::Hour);
    assert_eq!(found.last().unwrap().interval.end, at(HOUR_STEPS - 1));
    assert!(found.len() < HOUR - 1, "{}", found.len());
}

#[test]
fn a_namespace_that_is_dropped_has_no_history() {
    let history = in_memory();
    take(&history, 0, &[counted("a", 1, 0)]);
    take(&history, 1, &[counted("a", 1, 0)]);
    let reports_nothing = Look {
        namespaces: BTreeMap::new(),
        here: BTreeSet::from(["ns".to_owned()]),
    };
    history.take(at(2), reports_nothing);
    assert_eq!(past(&history, "a", Range::Hour).len(), 1);
    let dropped = Look {
        namespaces: BTreeMap::new(),
        here: BTreeSet::new(),
    };
    history.take(at(3), dropped);
    assert_eq!(history.of(name(""), Range::Hour, at(0)), None);
}

/// A look at a queue of the namespace `ns` with so many messages and dead letters, of which so many were ever dead-lettered.
fn look_at_dead(active: usize, dead: usize, dead_lettered: u64) -> Look {
    let mut found = entity("ns", counted("a", 0, 0));
    let (_, queue) = &mut found.queues[0];
    queue.active = active;
    queue.counters.dead_lettered[0] = dead_lettered;
    let dead = QueueStatistics {
        active: dead,
        ..QueueStatistics::default()
    };
    found.queues.push((SubQueue::DeadLetter, dead));
    let found = Statistics {
        entities: vec![found],
        ..Statistics::default()
    };
    Look::of([found].iter())
}

#[test]
fn a_trend_has_the_change_of_an_hour_and_of_a_day_and_the_numbers_of_each_hour() {
    let history = in_memory();
    let trend = |step| history.trend(name("a"), at(step)).unwrap();
    history.take(at(0), look_at_dead(5, 1, 1));
    let first = trend(0);
    assert_eq!(
        (first.since, first.active.now, first.active.hour),
        (None, 5, 0)
    );
    assert_eq!(first.active.hours.len(), limits::TREND_HOURS);
    assert_eq!(first.active.hours.iter().flatten().count(), 1);
    // Two days, in which an hour adds a message and every second hour a dead letter that is then removed.
    let hour: i64 = 360;
    for step in 1..=48 * hour {
        let hours = u64::try_from(step / hour).unwrap();
        let active = usize::try_from(5 + hours).unwrap();
        let dead = usize::from(hours % 2 == 1);
        history.take(at(step), look_at_dead(active, dead, 1 + hours.div_ceil(2)));
    }
    let last = trend(48 * hour);
    // The first interval is the one in which the day begins.
    assert_eq!(last.since, Some(at(24 * hour + 1 - 30)));
    assert_eq!(
        (last.active.now, last.active.hour, last.active.day),
        (53, 1, 25)
    );
    let numbers: Vec<u32> = last.active.hours.iter().map(|it| it.unwrap()).collect();
    // The last interval of five minutes that ended within each hour was one before its message.
    assert_eq!(numbers[..3], [29, 30, 31]);
    assert_eq!(numbers[22..], [51, 53]);
    assert_eq!((last.dead_letters.now, last.dead_letters.hour), (0, -1));
    assert_eq!((last.dead_lettered.hour, last.dead_lettered.day), (0, 12));
    // In the last twenty hours there is no look.
    let later = trend(68 * hour);
    assert_eq!(
        later.active.hours.iter().filter(|it| it.is_none()).count(),
        19
    );
    assert_eq!(later.dead_lettered, trend::Sum { hour: 0, day: 2 });
}

#[test]
fn the_trends_of_a_namespace_are_those_of_entities_with_messages() {
    let history = in_memory();
    take(&history, 0, &[counted("Idle", 3, 3), counted("Busy", 3, 1)]);
    take(&history, 1, &[counted("Idle", 3, 3), counted("Busy", 5, 1)]);
    let found = history.trends("NS", at(1));
    let found: Vec<_> = found
        .iter()
        .map(|(path, trend)| (&path[..], trend.active.hour))
        .collect();
    assert_eq!(found, [("busy", 2)]);
    assert!(history.trends("other", at(1)).is_empty());
    assert_eq!(history.trend(name(""), at(1)).unwrap().active.hour, 2);
}
