//! A log of which one record after the other is lost: what is left of the broker, and what is said.

use super::tests::{Bench, message};
use super::*;
use crate::Gateway;
use jitney_base::ids::BodyRef;
use jitney_base::ids::SequenceNumber;
use jitney_base::time::Millis;
use jitney_base::time::Timestamp;
use jitney_broker::access::Profile;
use jitney_broker::namespace::Salvage;
use jitney_broker::namespace::Salvaged;
use jitney_broker::namespace::Snapshot;
use jitney_queue::Record;
use jitney_queue::{Description, EntityKind};
use jitney_queue::{Passage, StoredState};
use jitney_rules::{Filter, Rule};

const QUEUE: EntityId = EntityId(0);
const TOPIC: EntityId = EntityId(3);
const SUBSCRIPTION: EntityId = EntityId(6);
const OTHER: EntityId = EntityId(9);
const NOW: Timestamp = Timestamp::from_millis(1_000);

/// Records of a log, with the places of their bodies.
#[derive(Default)]
struct Log {
    records: Vec<(Record<'static>, Option<BodyRef>)>,
}

fn description(kind: EntityKind) -> &'static [u8] {
    let description = Description {
        kind,
        ..Description::default()
    };
    described(&description)
}

fn described(description: &Description) -> &'static [u8] {
    serde_json::to_vec(description).unwrap().leak()
}

/// The bytes of a message that was sent as the n-th one.
fn body(nth: u64) -> BodyRef {
    BodyRef {
        position: 100 * nth,
        length: 10,
    }
}

fn entity(entity: EntityId, path: &'static str, kind: EntityKind) -> Record<'static> {
    Record::Entity {
        entity,
        path,
        description: description(kind),
    }
}

fn passage(from: (EntityId, u64), to: (EntityId, u64)) -> Passage<'static> {
    Passage {
        from: from.0,
        from_number: SequenceNumber(from.1),
        to: to.0,
        number: SequenceNumber(to.1),
        at: NOW,
        time_to_live: Millis::MAX,
        enqueued_number: SequenceNumber(from.1),
        delivery_count: 0,
        hops: 0,
        message_session: None,
        dead_letter_source: None,
        amendments: None,
    }
}

fn removed(entity: EntityId, number: u64) -> Record<'static> {
    Record::Removed {
        entity,
        number: SequenceNumber(number),
    }
}

impl Log {
    fn add(mut self, record: Record<'static>) -> Self {
        self.records.push((record, None));
        self
    }

    /// The n-th message is sent, and gets a number.
    fn send(mut self, entity: EntityId, number: u64, nth: u64) -> Self {
        let record = Record::Enqueued {
            entity,
            number: SequenceNumber(number),
            at: NOW,
            time_to_live: Millis::MAX,
            state: StoredState::Active,
            message_session: None,
            duplicate_key: None,
            amendments: None,
            body: b"not looked at",
        };
        self.records.push((record, Some(body(nth))));
        self
    }

    /// A log that makes a queue, and sends it three messages.
    fn of_queue() -> Self {
        Self::default()
            .add(entity(QUEUE, "q", EntityKind::Queue))
            .send(QUEUE, 1, 1)
            .send(QUEUE, 2, 2)
            .send(QUEUE, 3, 3)
    }

    /// Replays all but some; the log is accepted as it is if none is lost.
    fn without(&self, lost: &[usize]) -> (Gateway, Salvaged) {
        let mut gateway = Gateway::new(1, Profile::Development);
        let mut salvage = Salvage::default();
        for (at, (record, body)) in self.records.iter().enumerate() {
            if !lost.contains(&at) {
                salvage.replay(&mut gateway.namespaces, record, *body);
            }
        }
        let salvaged = salvage.finish(&gateway.namespaces);
        gateway.namespaces_mut().count_shared();
        check_snapshot(&gateway);
        (gateway, salvaged)
    }
}

/// Every message: its queue, its number, and as which it was sent.
fn messages(gateway: &Gateway) -> Vec<(u32, u64, u64)> {
    let mut all = Vec::new();
    for id in (0..gateway.namespaces.next_id().0).map(EntityId) {
        let Some(queue) = gateway.namespaces.queue(id) else {
            continue;
        };
        for found in queue.browse(SequenceNumber(0), 100) {
            let number = found.stamps.sequence_number.cast_unsigned();
            all.push((id.0, number, found.body.position / 100));
        }
    }
    all
}

/// Checks that the checkpoint of the records that are left recovers the same broker.
fn check_snapshot(gateway: &Gateway) {
    let mut again = Gateway::new(2, Profile::Development);
    let snapshot: Snapshot = gateway.namespaces().snapshot();
    snapshot.records(&mut |record| {
        let body = match record {
            Record::Alive { body, .. } => Some(*body),
            _ => None,
        };
        again.namespaces.replay(record, body).unwrap();
    });
    assert_eq!(messages(&again), messages(gateway));
    let paths = |gateway: &Gateway| gateway.namespaces.paths();
    assert_eq!(paths(&again), paths(gateway));
    let next = |gateway: &Gateway| gateway.namespaces.next_numbers();
    assert_eq!(next(&again), next(gateway));
}

fn skipped(skipped: u64) -> Salvaged {
    Salvaged {
        skipped,
        unnamed: Vec::new(),
    }
}

#[test]
fn a_whole_log_is_replayed_as_without_the_flag() {
    let log = Log::of_queue().add(removed(QUEUE, 2));
    let (gateway, salvaged) = log.without(&[]);
    assert_eq!(salvaged, Salvaged::default());
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 3, 3)]);
}

#[test]
fn without_the_record_of_a_message_all_others_keep_their_numbers() {
    let log = Log::of_queue().add(removed(QUEUE, 2));
    let (gateway, salvaged) = log.without(&[2]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 3, 3)]);
    // The completion speaks of the message that is lost.
    assert_eq!(salvaged, skipped(1));
    let (gateway, salvaged) = log.without(&[3]);
    assert_eq!(messages(&gateway), [(0, 1, 1)]);
    assert_eq!(salvaged, skipped(0));
}

#[test]
fn without_the_record_of_its_completion_a_message_is_there_again() {
    let log = Log::of_queue().add(removed(QUEUE, 2)).send(QUEUE, 4, 4);
    let (gateway, salvaged) = log.without(&[4]);
    let all = [(0, 1, 1), (0, 2, 2), (0, 3, 3), (0, 4, 4)];
    assert_eq!((messages(&gateway), salvaged), (all.to_vec(), skipped(0)));
}

#[test]
fn without_the_record_of_a_change_a_message_is_what_it_was() {
    let changed = |state, delivery_count| Record::Changed {
        entity: QUEUE,
        number: SequenceNumber(2),
        state,
        delivery_count,
        amendments: None,
    };
    let log = Log::of_queue()
        .add(changed(StoredState::Active, 1))
        .add(changed(StoredState::Deferred, 2));
    let (gateway, salvaged) = log.without(&[5]);
    let found = gateway
        .namespaces
        .queue(QUEUE)
        .unwrap()
        .browse(SequenceNumber(2), 1);
    assert_eq!((found[0].stamps.delivery_count, salvaged), (1, skipped(0)));
    // The message itself: both changes are left out.
    let (gateway, salvaged) = log.without(&[2]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 3, 3)]);
    assert_eq!(salvaged, skipped(2));
}

#[test]
fn without_the_record_of_its_way_a_message_is_where_it_was() {
    let dead = QUEUE.dead_letters();
    let log = Log::of_queue()
        .add(Record::Moved(passage((QUEUE, 2), (dead, 2))))
        .add(removed(dead, 2));
    let (gateway, salvaged) = log.without(&[4]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 2, 2), (0, 3, 3)]);
    assert_eq!(salvaged, skipped(1));
    // The message itself: it arrives nowhere.
    let (gateway, salvaged) = log.without(&[2, 5]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 3, 3)]);
    assert_eq!(salvaged, skipped(1));
}

#[test]
fn numbers_that_a_lost_message_would_have_had_are_not_given_again() {
    let log = Log::of_queue()
        .add(entity(OTHER, "other", EntityKind::Queue))
        .add(Record::Moved(passage((QUEUE, 2), (OTHER, 1))))
        .add(Record::Moved(passage((QUEUE, 3), (OTHER, 2))))
        .add(Record::Counter {
            entity: OTHER,
            next: SequenceNumber(7),
        });
    let next = |gateway: &Gateway| gateway.namespaces.queue(OTHER).unwrap().next_number().0;
    let (gateway, _) = log.without(&[3, 7]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (9, 1, 2)]);
    assert_eq!(next(&gateway), 3);
    let (gateway, _) = log.without(&[5, 6]);
    assert_eq!(next(&gateway), 7);
}

#[test]
fn messages_of_an_entity_whose_name_is_lost_are_in_a_queue_of_their_own() {
    let dead = QUEUE.dead_letters();
    let log = Log::of_queue()
        .add(removed(QUEUE, 1))
        .add(Record::Moved(passage((QUEUE, 2), (dead, 2))))
        .add(entity(OTHER, "other", EntityKind::Queue))
        .add(Record::Moved(passage((QUEUE, 3), (OTHER, 1))))
        .send(QUEUE, 4, 4);
    let unnamed = |path: &str| Salvaged {
        skipped: 0,
        unnamed: vec![path.to_owned()],
    };
    let (gateway, salvaged) = log.without(&[0]);
    assert_eq!(messages(&gateway), [(0, 4, 4), (1, 2, 2), (9, 1, 3)]);
    assert_eq!(salvaged, unnamed("recovered-0"));
    assert_eq!(
        gateway.namespaces().resolve_path("recovered-0"),
        Some(QUEUE)
    );
    // What went on to one whose name is lost arrives all the same.
    let (gateway, salvaged) = log.without(&[6]);
    assert_eq!(messages(&gateway), [(0, 4, 4), (1, 2, 2), (9, 1, 3)]);
    assert_eq!(salvaged, unnamed("recovered-9"));
    // A record that brings no message makes no queue.
    let (gateway, salvaged) = log.without(&[0, 1, 2, 3, 8]);
    assert_eq!(messages(&gateway), []);
    assert_eq!(salvaged, skipped(3));
    assert!(gateway.namespaces().resolve_path("recovered-0").is_none());
}

#[test]
fn a_later_record_gives_messages_their_entity_s_name_and_properties_again() {
    let sessions = Description {
        requires_session: true,
        ..Description::default()
    };
    let log = Log::of_queue()
        .add(Record::Entity {
            entity: QUEUE,
            path: "q",
            description: described(&sessions),
        })
        .send(QUEUE, 4, 4);
    let (gateway, salvaged) = log.without(&[0, 2]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 3, 3), (0, 4, 4)]);
    assert_eq!(salvaged, skipped(0));
    assert_eq!(gateway.namespaces().resolve_path("q"), Some(QUEUE));
    assert!(gateway.namespaces().resolve_path("recovered-0").is_none());
    let queue = gateway.namespaces.queue(QUEUE).unwrap();
    assert!(queue.description().requires_session);
}

#[test]
fn a_name_that_cannot_be_given_leaves_the_messages_where_they_are() {
    let log = Log::of_queue().add(entity(
        QUEUE,
        "nowhere/Subscriptions/a",
        EntityKind::Subscription,
    ));
    let (gateway, salvaged) = log.without(&[0]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 2, 2), (0, 3, 3)]);
    let expected = Salvaged {
        skipped: 1,
        unnamed: vec!["recovered-0".to_owned()],
    };
    assert_eq!(salvaged, expected);
}

#[test]
fn without_the_record_of_its_deletion_an_entity_is_there_again_unless_another_has_its_path() {
    let deleted = |entity| Record::EntityDeleted { entity };
    let log = Log::of_queue().add(deleted(QUEUE));
    let (gateway, _) = log.without(&[4]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 2, 2), (0, 3, 3)]);

    let log = Log::default()
        .add(entity(TOPIC, "t", EntityKind::Topic))
        .add(entity(
            SUBSCRIPTION,
            "t/Subscriptions/a",
            EntityKind::Subscription,
        ))
        .send(TOPIC, 1, 1)
        .add(Record::Copied(passage((TOPIC, 1), (SUBSCRIPTION, 1))))
        .add(deleted(SUBSCRIPTION))
        .add(deleted(TOPIC))
        .add(entity(OTHER, "T", EntityKind::Queue))
        .send(OTHER, 1, 2);
    let (gateway, salvaged) = log.without(&[4, 5]);
    assert_eq!(messages(&gateway), [(9, 1, 2)]);
    assert_eq!(salvaged, skipped(0));
    assert!(
        gateway
            .namespaces()
            .resolve_path("t/Subscriptions/a")
            .is_none()
    );
    // A deletion of one whose name is lost deletes its messages too.
    let (gateway, salvaged) = log.without(&[0, 1]);
    assert_eq!(messages(&gateway), [(9, 1, 2)]);
    assert_eq!(salvaged, skipped(0));
}

#[test]
fn of_a_topic_s_message_every_copy_that_is_left_stays() {
    let log = Log::default()
        .add(entity(TOPIC, "t", EntityKind::Topic))
        .add(entity(
            SUBSCRIPTION,
            "t/Subscriptions/a",
            EntityKind::Subscription,
        ))
        .send(TOPIC, 1, 1)
        .add(Record::Copied(passage((TOPIC, 1), (SUBSCRIPTION, 1))))
        .add(removed(TOPIC, 1))
        .add(Record::Rule {
            entity: SUBSCRIPTION,
            name: "late",
            rule: Some(rule()),
        });
    let copied = (6, 1, 1);
    let of_topic = (3, 1, 1);
    for (lost, left, skipped, unnamed) in [
        (0, vec![copied], 2, vec!["recovered-3", "recovered-6"]),
        (1, vec![copied], 1, vec!["recovered-6"]),
        (2, vec![], 2, vec![]),
        (3, vec![], 0, vec![]),
        (4, vec![of_topic, copied], 0, vec![]),
        (5, vec![copied], 0, vec![]),
    ] {
        let (gateway, salvaged) = log.without(&[lost]);
        assert_eq!(messages(&gateway), left, "without record {lost}");
        assert_eq!(salvaged.skipped, skipped, "without record {lost}");
        assert_eq!(salvaged.unnamed, unnamed, "without record {lost}");
    }
}

/// A rule that takes everything.
fn rule() -> &'static [u8] {
    let rule = Rule {
        name: "late".to_owned(),
        filter: Filter::True,
        action: None,
        created_at: NOW,
    };
    rule.to_json().leak()
}

#[test]
fn what_a_lost_record_said_of_an_entity_is_as_it_was_before() {
    let state = |state: Option<&'static [u8]>| Record::SessionState {
        entity: QUEUE,
        message_session: "s",
        at: NOW,
        state,
    };
    let sessions = Description {
        requires_session: true,
        ..Description::default()
    };
    let longer = Description {
        lock_duration: Millis::from_secs(77),
        ..sessions.clone()
    };
    let of = |description: &Description| Record::Entity {
        entity: QUEUE,
        path: "q",
        description: described(description),
    };
    let log = Log::default()
        .add(of(&sessions))
        .add(state(Some(b"first")))
        .add(state(Some(b"second")))
        .add(of(&longer))
        .add(Record::Rule {
            entity: QUEUE,
            name: "r",
            rule: None,
        });
    let found = |lost: &[usize]| {
        let (gateway, salvaged) = log.without(lost);
        let mut states = Vec::new();
        gateway.namespaces().snapshot().records(&mut |record| {
            if let Record::SessionState { state, .. } = record {
                states.push(state.map(<[u8]>::to_vec));
            }
        });
        let lock = gateway
            .namespaces
            .queue(QUEUE)
            .unwrap()
            .description()
            .lock_duration;
        (states, lock, salvaged.skipped)
    };
    let (first, second) = (b"first".to_vec(), b"second".to_vec());
    // A queue has no rules.
    assert_eq!(
        found(&[]),
        (vec![Some(second.clone())], Millis::from_secs(77), 1)
    );
    assert_eq!(found(&[2]), (vec![Some(first)], Millis::from_secs(77), 1));
    assert_eq!(found(&[3]), (vec![Some(second)], sessions.lock_duration, 1));
}

#[test]
fn bytes_whose_new_place_is_lost_are_where_they_were() {
    let relocated = Record::Relocated {
        entity: QUEUE,
        number: SequenceNumber(2),
        body: b"not looked at",
    };
    let same = Record::SameBody {
        entity: QUEUE,
        number: SequenceNumber(3),
        of: QUEUE,
        of_number: SequenceNumber(2),
    };
    let mut log = Log::of_queue();
    log.records.push((relocated, Some(body(9))));
    let log = log.add(same);
    let (gateway, salvaged) = log.without(&[]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 2, 9), (0, 3, 9)]);
    assert_eq!(salvaged, skipped(0));
    let (gateway, _) = log.without(&[4]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 2, 2), (0, 3, 2)]);
    let (gateway, salvaged) = log.without(&[2]);
    assert_eq!(messages(&gateway), [(0, 1, 1), (0, 3, 3)]);
    assert_eq!(salvaged, skipped(2));
}

#[test]
fn keys_of_duplicates_that_are_left_are_remembered() {
    let detects = Description {
        detects_duplicates: true,
        ..Description::default()
    };
    let seen = |key| Record::Seen {
        entity: QUEUE,
        at: NOW,
        key,
    };
    let log = Log::default()
        .add(Record::Entity {
            entity: QUEUE,
            path: "q",
            description: described(&detects),
        })
        .add(seen(1))
        .add(seen(2));
    let (gateway, salvaged) = log.without(&[1]);
    let mut keys = Vec::new();
    gateway.namespaces().snapshot().records(&mut |record| {
        if let Record::Seen { key, .. } = record {
            keys.push(*key);
        }
    });
    assert_eq!((keys, salvaged), (vec![2], skipped(0)));
}

#[test]
fn messages_whose_bytes_are_lost_become_dead_letters_and_the_others_stay() {
    let mut bench = Bench::new();
    for word in ["first", "second", "third"] {
        bench.send("q", message(word));
    }
    bench.send("t", message("shared"));
    let lost = [2..3, 4..5].into_iter().collect();
    let place = |body: BodyRef| format!("place {}", body.position);
    let contained =
        bench.run(|gateway, cx| gateway.namespaces_mut().contain_lost(cx, &lost, place));
    let said = contained.into_iter();
    let said = said.map(|it| (it.entity, it.number.0, it.place));
    let said: Vec<_> = said.collect();
    let expected = [
        ("t/Subscriptions/a", 1, "place 4"),
        ("t/Subscriptions/b", 1, "place 4"),
        ("q", 2, "place 2"),
    ];
    let expected =
        expected.map(|(entity, number, place)| (entity.to_owned(), number, place.to_owned()));
    assert_eq!(said, expected);
    assert_eq!(bench.seen("q"), [(1, 0), (3, 0)]);
    assert_eq!(bench.seen("q/dead").len(), 1);
    assert_eq!(bench.seen("t/Subscriptions/a/dead").len(), 1);
    bench.check_replay();
    let again = bench.run(|gateway, cx| gateway.namespaces_mut().contain_lost(cx, &lost, place));
    assert!(again.is_empty(), "{again:?}");
}
