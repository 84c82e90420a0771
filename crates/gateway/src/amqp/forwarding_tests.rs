//! What becomes of messages and dead letters that their target does not take.

use super::tests::{Bench, message, scheduled};
use super::*;
use jitney_amqp::{DeliveryId, IncomingTransfer, Outcome};
use jitney_base::ids::SequenceNumber;
use jitney_base::time::{Millis, Timestamp};
use jitney_message::{Message, Scalar};
use jitney_queue::{Description, EntityKind, ReceiveMode, Status};
use jitney_rules::{Action, Filter, Rule};

/// Makes an entity, or gives it other properties.
fn describe(bench: &mut Bench, path: &str, description: Description) {
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, path, description))
        .unwrap();
}

/// A queue whose messages expire after a second, and are dead letters that go to another one.
fn dying(to: &str) -> Description {
    Description {
        default_time_to_live: Millis::from_secs(1),
        dead_letter_on_expiration: true,
        forward_dead_letters_to: Some(to.to_owned()),
        ..Description::default()
    }
}

/// A queue that holds so many bytes; a message of one letter has six.
fn small(max_bytes: u64) -> Description {
    Description {
        max_bytes,
        ..Description::default()
    }
}

/// Lets a second pass.
fn second(bench: &mut Bench) {
    bench.now = bench.now.after(Millis::from_secs(1));
    bench.run(|_, _| ());
}

/// Removes a message, as its receiver does.
fn delete(bench: &mut Bench, path: &str, number: u64) {
    let id = bench.id(path);
    let number = SequenceNumber(number);
    let deleted = bench
        .run(|gateway, cx| gateway.with_queue(cx, id, |queue, cx| queue.delete_one(cx, number)));
    assert_eq!(deleted, Some(true));
}

fn reason(bench: &Bench, path: &str, number: u64) -> String {
    let queue = bench.gateway.namespaces.queue(bench.id(path)).unwrap();
    let changes = queue.amendments(SequenceNumber(number)).unwrap();
    let plain = message("");
    let reason = changes.property_of(&plain, "DeadLetterReason").unwrap().1;
    let Scalar::Text(reason) = Scalar::decode(reason) else {
        panic!("it has a reason");
    };
    reason.to_string()
}

#[test]
fn what_cannot_be_forwarded_is_a_dead_letter_of_the_source() {
    let mut bench = Bench::new();
    describe(&mut bench, "q", small(10));
    bench.send("two", message("x"));
    bench.send("two", message("y"));
    assert_eq!(bench.seen("q"), [(1, 1)]);
    assert_eq!(bench.seen("two/dead"), [(2, 0)]);
    assert_eq!(bench.seen("two/transfer"), []);
    assert_eq!(reason(&bench, "two/dead", 2), "TransferDestinationRefused");
    bench.run(|gateway, cx| gateway.delete_entity(cx, "q"));
    bench.send("two", message("z"));
    assert_eq!(reason(&bench, "two/dead", 3), "TransferDestinationNotFound");
    bench.check_replay();
}

#[test]
fn what_cannot_be_forwarded_goes_where_dead_letters_are_collected() {
    let mut bench = Bench::new();
    describe(&mut bench, "all", Description::default());
    for path in ["one", "two", "q"] {
        let is = bench
            .gateway
            .namespaces()
            .description(path)
            .unwrap()
            .clone();
        let forward_dead_letters_to = Some("all".to_owned());
        let description = Description {
            forward_dead_letters_to,
            ..is
        };
        describe(&mut bench, path, description);
    }
    let circle = Description {
        forward_to: Some("one".to_owned()),
        forward_dead_letters_to: Some("all".to_owned()),
        ..Description::default()
    };
    describe(&mut bench, "q", circle);
    bench.send("q", message("x"));
    assert_eq!(bench.seen("one/dead"), []);
    assert_eq!(bench.seen("all"), [(1, 1)]);
    assert_eq!(reason(&bench, "all", 1), "MaxTransferHopCountExceeded");
    bench.check_replay();
}

#[test]
fn a_dead_letter_in_a_circle_ends_too() {
    let mut bench = Bench::new();
    let both = Description {
        forward_to: Some("q".to_owned()),
        forward_dead_letters_to: Some("q".to_owned()),
        ..Description::default()
    };
    describe(&mut bench, "q", both);
    bench.send("q", message("x"));
    // Four times as a message, once as a dead letter.
    assert_eq!(bench.seen("q/dead"), [(6, 1)]);
    assert_eq!(reason(&bench, "q/dead", 6), "MaxTransferHopCountExceeded");
    bench.check_replay();
    assert_eq!(bench.restarted().seen("q/dead"), [(6, 1)]);
}

#[test]
fn dead_letters_wait_for_room_where_they_go() {
    let mut bench = Bench::new();
    describe(&mut bench, "q", small(13));
    describe(&mut bench, "dying", dying("q"));
    describe(&mut bench, "also", dying("q"));
    for text in ["1", "2"] {
        bench.send("q", message(text));
    }
    for text in ["3", "4"] {
        bench.send("dying", message(text));
    }
    bench.now = bench.now.after(Millis::from_millis(1));
    bench.send("also", message("5"));
    second(&mut bench);
    assert_eq!(bench.seen("dying/dead"), [(1, 0), (2, 0)]);
    assert_eq!(bench.seen("also/dead"), [(1, 0)]);
    assert_eq!(reason(&bench, "dying/dead", 1), "TTLExpiredException");
    // They go when there is room, those first that have waited longest.
    delete(&mut bench, "q", 1);
    assert_eq!(bench.seen("q"), [(2, 0), (3, 1)]);
    assert_eq!(reason(&bench, "q", 3), "TTLExpiredException");
    delete(&mut bench, "q", 2);
    delete(&mut bench, "q", 3);
    assert_eq!(
        bench.seen("dying/dead").len() + bench.seen("also/dead").len(),
        0
    );
    assert_eq!(bench.seen("q").len(), 2);
    bench.check_replay();
}

#[test]
fn dead_letters_wait_over_a_restart_and_for_more_room() {
    let mut bench = Bench::new();
    describe(&mut bench, "q", small(7));
    describe(&mut bench, "dying", dying("q"));
    bench.send("q", message("1"));
    bench.send("dying", message("2"));
    second(&mut bench);
    assert_eq!(bench.seen("dying/dead"), [(1, 0)]);
    bench.check_replay();
    let mut bench = bench.restarted();
    assert_eq!(bench.seen("dying/dead"), [(1, 0)]);
    describe(&mut bench, "q", small(20));
    assert_eq!(bench.seen("dying/dead"), []);
    assert_eq!(bench.seen("q"), [(1, 0), (2, 1)]);
}

#[test]
fn dead_letters_wait_for_a_target_that_is_gone_and_go_to_one_that_is_disabled() {
    let mut bench = Bench::new();
    describe(&mut bench, "dying", dying("q"));
    bench.run(|gateway, cx| gateway.delete_entity(cx, "q"));
    bench.send("dying", message("1"));
    second(&mut bench);
    assert_eq!(bench.seen("dying/dead"), [(1, 0)]);
    let disabled = Description {
        status: Status::Disabled,
        ..Description::default()
    };
    describe(&mut bench, "Q", disabled);
    assert_eq!(bench.seen("q"), [(1, 1)]);
    assert_eq!(reason(&bench, "q", 1), "TTLExpiredException");
    bench.check_replay();
}

#[test]
fn a_dead_letter_that_is_not_taken_lets_others_pass() {
    let mut bench = Bench::new();
    let narrow = Description {
        max_message_bytes: 8,
        ..Description::default()
    };
    describe(&mut bench, "q", narrow);
    describe(&mut bench, "dying", dying("q"));
    for text in ["too long", "2", "longer yet", "4"] {
        bench.send("dying", message(text));
    }
    second(&mut bench);
    assert_eq!(bench.seen("dying/dead"), [(1, 0), (3, 0)]);
    assert_eq!(bench.seen("q"), [(1, 2), (2, 4)]);
    assert_eq!(reason(&bench, "dying/dead", 1), "TTLExpiredException");
    let wide = Description {
        max_message_bytes: 13,
        ..Description::default()
    };
    describe(&mut bench, "q", wide);
    assert_eq!(bench.seen("dying/dead"), [(3, 0)]);
    // From when on it forwards no dead letters, all of them can be received.
    let keeps = Description {
        forward_dead_letters_to: None,
        ..dying("q")
    };
    describe(&mut bench, "dying", keeps);
    let (connection, link) = (ConnectionId(1), LinkId(1));
    let dead = bench.id("dying/dead");
    let given = bench.run(|gateway, cx| {
        gateway.with_queue(cx, dead, |queue, cx| {
            let consumer = consumer_id(connection, link);
            queue.add_consumer(consumer, ReceiveMode::ReceiveAndDelete);
            queue.set_credit(cx, consumer, 5);
            cx.effects.deliveries.len()
        })
    });
    assert_eq!(given, Some(1));
    bench.check_replay();
}

#[test]
fn room_in_a_topic_is_room_for_dead_letters() {
    let mut bench = Bench::new();
    let of_topic = |max_bytes| Description {
        kind: EntityKind::Topic,
        ..small(max_bytes)
    };
    describe(&mut bench, "t", of_topic(7));
    describe(&mut bench, "dying", dying("t"));
    bench.send("t", message("1"));
    bench.send("dying", message("2"));
    second(&mut bench);
    assert_eq!(bench.seen("dying/dead"), [(1, 0)]);
    delete(&mut bench, "t/Subscriptions/a", 1);
    assert_eq!(bench.seen("dying/dead"), [(1, 0)]);
    delete(&mut bench, "t/Subscriptions/b", 1);
    assert_eq!(bench.seen("dying/dead"), []);
    assert_eq!(bench.seen("t/Subscriptions/b").len(), 1);
    bench.check_replay();
}

#[test]
fn what_has_no_session_is_a_dead_letter_where_it_was_to_go_from() {
    let mut bench = Bench::new();
    let with_sessions = Description {
        requires_session: true,
        ..Description::default()
    };
    describe(&mut bench, "sessions", with_sessions);
    let forwards = Description {
        forward_to: Some("sessions".to_owned()),
        ..Description::default()
    };
    describe(&mut bench, "plain", forwards);
    bench.send("plain", message("x"));
    assert_eq!(bench.seen("sessions/dead"), []);
    assert_eq!(reason(&bench, "plain/dead", 1), "Session ID is null.");
    describe(&mut bench, "dying", dying("sessions"));
    bench.send("dying", message("y"));
    bench.now = Timestamp::from_millis(9_000);
    bench.run(|_, _| ());
    assert_eq!(reason(&bench, "dying/dead", 1), "TTLExpiredException");
    bench.check_replay();
}

/// Gives a subscription one rule, which takes all and has an action.
fn act(bench: &mut Bench, action: &str) {
    let rule = Rule {
        name: "$Default".to_owned(),
        filter: Filter::True,
        action: Some(Action::parse(action).unwrap()),
        created_at: bench.now,
    };
    let of = Description {
        kind: EntityKind::Subscription,
        forward_to: Some("target".to_owned()),
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_subscription(cx, "t/Subscriptions/a", of, vec![rule]))
        .unwrap();
}

#[test]
fn what_an_action_sets_holds_where_the_copy_is_forwarded_to() {
    let mut bench = Bench::new();
    let detects = Description {
        detects_duplicates: true,
        ..Description::default()
    };
    describe(&mut bench, "target", detects);
    act(&mut bench, "SET sys.MessageId = 'one'");
    bench.send("t", message("1"));
    bench.send("t", message("2"));
    assert_eq!(bench.seen("target"), [(1, 1)]);
    act(
        &mut bench,
        "SET sys.MessageId = 'two'; SET sys.ScheduledEnqueueTimeUtc = '1970-01-01T00:01:00Z'",
    );
    bench.send("t", message("3"));
    let target = bench.id("target");
    let scheduled = |bench: &Bench| bench.gateway.namespaces.queue(target).unwrap().scheduled();
    assert_eq!(scheduled(&bench), 1);
    bench.check_replay();
    bench.now = Timestamp::from_millis(60_000);
    bench.run(|_, _| ());
    assert_eq!(scheduled(&bench), 0);
    assert_eq!(bench.seen("target").len(), 2);
    bench.check_replay();
}

#[test]
fn what_a_copy_was_changed_to_decides_its_partition_behind_the_topic_that_it_is_forwarded_to() {
    let mut bench = Bench::new();
    let of_kind = |kind| Description {
        kind,
        ..Description::default()
    };
    describe(&mut bench, "target", of_kind(EntityKind::Topic));
    let partitioned = Description {
        partitioned: true,
        ..of_kind(EntityKind::Subscription)
    };
    describe(&mut bench, "target/Subscriptions/p", partitioned);
    act(&mut bench, "SET sys.SessionId = 'one'");
    for text in ["1", "2", "3"] {
        bench.send("t", message(text));
    }
    let partition = jitney_message::partition_hash_of_key("one") % 16;
    let numbers = bench.seen("target/Subscriptions/p").into_iter();
    let partitions: Vec<u64> = numbers
        .map(|(number, _)| number.unsigned_abs() >> 48)
        .collect();
    assert_eq!(partitions, [partition; 3]);
    bench.check_replay();
}

#[test]
fn an_action_shortens_and_lengthens_the_life_of_a_copy() {
    let mut bench = Bench::new();
    describe(&mut bench, "target", Description::default());
    act(&mut bench, "SET sys.TimeToLive = '0:0:2'");
    bench.send("t", message("1"));
    assert_eq!(bench.seen("target").len(), 1);
    second(&mut bench);
    assert_eq!(bench.seen("target").len(), 1);
    second(&mut bench);
    assert_eq!(bench.seen("target"), []);
    bench.check_replay();
}

#[test]
fn what_is_sent_by_way_of_an_entity_and_refused_is_a_transfer_dead_letter() {
    let mut bench = Bench::new();
    let disabled = Description {
        status: Status::Disabled,
        ..Description::default()
    };
    describe(&mut bench, "target", disabled);
    let via = bench.id("q");
    bench.run(|gateway, cx| {
        gateway.with_namespaces(cx, |namespaces, cx| {
            let target = "target".into();
            namespaces.put(cx, via, Some(&target), [message("x")], |_| ());
        });
    });
    assert_eq!(bench.seen("q/transfer"), [(1, 0)]);
    assert_eq!(
        reason(&bench, "q/transfer", 1),
        "TransferDestinationRefused"
    );
    assert_eq!(bench.seen("q/dead"), []);
    bench.check_replay();
}

/// Sends a message over a link to `via` with the transfer destination `target`; returns how it is settled.
fn send_via(bench: &mut Bench, via: &str, message: &Message) -> Outcome {
    const LINK: LinkId = LinkId(7);
    let one = ConnectionId(1);
    let queue = bench.id(via);
    let payload = message.bytes().to_vec().into();
    bench.run(|gateway, cx| {
        let link = Link::Sender {
            queue,
            destination: Some("target".into()),
            group: None,
            deliveries: 0,
        };
        gateway.connection(one).links.insert(LINK, link);
        let incoming = IncomingTransfer {
            link: LINK,
            delivery: DeliveryId(0),
            payload,
            message_format: 0,
            settled: false,
            transaction: None,
        };
        gateway.transfer(cx, one, incoming);
    });
    let told = std::mem::take(&mut bench.told);
    let outcome = told.into_iter().find_map(|routed| match routed.reply {
        Reply::SettleIncoming { outcome, .. } => Some(outcome),
        _ => None,
    });
    outcome.expect("the delivery is settled")
}

#[test]
fn what_is_sent_by_way_of_an_entity_waits_for_its_time_in_its_destination() {
    let mut bench = Bench::new();
    describe(&mut bench, "target", Description::default());
    let outcome = send_via(&mut bench, "q", &scheduled(60_000, b'x'));
    assert_eq!(outcome, Outcome::Accepted);
    // One whose time is over is taken as any other.
    let outcome = send_via(&mut bench, "q", &scheduled(500, b'y'));
    assert_eq!(outcome, Outcome::Accepted);
    assert_eq!(bench.seen("q"), []);
    assert_eq!(bench.seen("target"), [(1, 1), (2, 2)]);
    let waiting = |bench: &Bench, path: &str| {
        let queue = bench.gateway.namespaces.queue(bench.id(path)).unwrap();
        let counted = queue.counters().map_or(0, |counters| counters.scheduled);
        (queue.scheduled(), counted)
    };
    assert_eq!(waiting(&bench, "q"), (0, 0));
    assert_eq!(waiting(&bench, "target"), (1, 1));
    bench.check_replay();
    bench = bench.restarted();
    bench.now = Timestamp::from_millis(59_999);
    bench.run(|_, _| ());
    assert_eq!(waiting(&bench, "target").0, 1);
    bench.now = Timestamp::from_millis(60_000);
    bench.run(|_, _| ());
    assert_eq!(waiting(&bench, "target").0, 0);
    // As if it were sent now.
    assert_eq!(bench.seen("target"), [(2, 2), (3, 1)]);
    bench.check_replay();
}

#[test]
fn what_is_scheduled_by_way_of_an_entity_and_refused_does_not_wait() {
    let mut bench = Bench::new();
    let disabled = Description {
        status: Status::Disabled,
        ..Description::default()
    };
    describe(&mut bench, "target", disabled);
    let outcome = send_via(&mut bench, "q", &scheduled(60_000, b'x'));
    assert_eq!(outcome, Outcome::Accepted);
    assert_eq!(bench.seen("q/transfer"), [(1, 0)]);
    let id = bench.id("q/transfer");
    let queue = bench.gateway.namespaces.queue(id).unwrap();
    assert_eq!(queue.scheduled(), 0);
    bench.check_replay();
}
