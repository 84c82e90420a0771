//! What needs attention: when a condition holds, since when, and that it costs little.

use std::sync::Arc;

use super::*;
use crate::amqp::tests::{Bench, inquiry, message};
use crate::amqp::{Link, consumer_id};
use jitney_amqp::LinkId;
use jitney_base::ids::ConnectionId;
use jitney_base::time::Millis;
use jitney_broker::limits as broker;
use jitney_broker::namespace::{
    Attention, AttentionItem, AttentionKind, JobAction, JobDescription, Lack, Room, Selection,
    Urgency,
};
use jitney_message::Message;
use jitney_queue::{Description, ReceiveMode, Settlement, Status, Wanted};

const ONE: (ConnectionId, LinkId) = (ConnectionId(4), LinkId(1));

fn ask(bench: &mut Bench, path: Option<&str>) -> Result<AttentionView, Denied> {
    let path = path.map(ToOwned::to_owned);
    bench.run(|gateway, cx| {
        let authority = gateway.authorize(cx.now, &inquiry(None, None, ""));
        let authority = authority.unwrap();
        let requester = Requester {
            host: None,
            authority,
        };
        gateway.serve(cx, &requester, ReadAttention { path })
    })
}

fn found(bench: &mut Bench) -> Arc<Attention> {
    ask(bench, None).unwrap().found
}

fn kinds(bench: &mut Bench) -> Vec<(AttentionKind, String, u64)> {
    let items = found(bench).items.clone().into_iter();
    items.map(|it| (it.kind, it.path, it.count)).collect()
}

fn item(bench: &mut Bench, kind: AttentionKind) -> AttentionItem {
    let found = found(bench);
    let item = found.items.iter().find(|item| item.kind == kind);
    item.unwrap_or_else(|| panic!("no {kind:?} among {:?}", found.items))
        .clone()
}

fn pass(bench: &mut Bench, seconds: i64) {
    bench.now = bench.now.after(Millis::from_millis(seconds * 1_000));
}

/// Lets the broker look, as it does when nothing asks.
fn watch(bench: &mut Bench) {
    let now = bench.now;
    bench.gateway.namespaces_mut().watch_all(now);
}

fn describe(bench: &mut Bench, path: &str, description: Description) {
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, path, description))
        .unwrap();
}

/// Receives the first message of a queue and dead-letters it.
fn dead_letter(bench: &mut Bench, path: &str) {
    let queue = bench.id(path);
    bench.run(|gateway, cx| {
        gateway.with_queue(cx, queue, |queue, cx| {
            let receiver = ConsumerId(7);
            queue.add_consumer(receiver, ReceiveMode::PeekLock);
            queue.set_credit(cx, receiver, 1);
            let token = cx
                .effects
                .deliveries
                .drain(..)
                .find_map(|delivery| match delivery {
                    jitney_queue::Delivery::Message(_, handover) => Some(handover.token),
                    _ => None,
                });
            queue.remove_consumer(receiver);
            let settlement = Settlement::DeadLetter(None);
            queue.settle(cx, token.unwrap(), settlement).unwrap();
        });
    });
}

#[test]
fn nothing_needs_attention_where_nothing_waits() {
    let mut bench = Bench::new();
    assert_eq!(
        *found(&mut bench),
        Attention {
            looked_at: bench.now,
            ..Attention::default()
        }
    );
}

#[test]
fn messages_that_no_receiver_takes_are_told_since_the_broker_has_seen_it() {
    let mut bench = Bench::new();
    watch(&mut bench);
    pass(&mut bench, 10);
    bench.send("q", message("a"));
    bench.send("q", message("b"));
    let expected = (AttentionKind::NoReceiver, "q".to_owned(), 2);
    assert_eq!(kinds(&mut bench), std::slice::from_ref(&expected));
    let since = Some(bench.now);
    pass(&mut bench, 60);
    let item = item(&mut bench, AttentionKind::NoReceiver);
    assert_eq!((item.since, item.kind.urgency()), (since, Urgency::Notice));
    assert_eq!(item.text, "2 messages wait, and no receiver is attached.");
    // It ends with a receiver, and begins anew without one.
    bench.run(|gateway, cx| gateway.attach_receiver(cx, ONE.0, ONE.1, "q"));
    pass(&mut bench, 2);
    assert_eq!(kinds(&mut bench), []);
    bench.run(|gateway, cx| gateway.closed(cx, ONE.0, &[]));
    pass(&mut bench, 2);
    let found = found(&mut bench);
    assert_eq!(found.items[0].since, Some(bench.now));
}

#[test]
fn what_held_at_the_first_look_has_no_beginning() {
    let mut bench = Bench::new();
    bench.send("q", message("a"));
    let first = item(&mut bench, AttentionKind::NoReceiver);
    assert_eq!(first.since, None);
    pass(&mut bench, 60);
    assert_eq!(item(&mut bench, AttentionKind::NoReceiver).since, None);
}

#[test]
fn a_namespace_is_looked_at_once_a_second_however_many_ask() {
    let mut bench = Bench::new();
    let before = found(&mut bench);
    bench.send("q", message("a"));
    assert!(Arc::ptr_eq(&before, &found(&mut bench)), "the same answer");
    let most = broker::ATTENTION_INTERVAL_MIN;
    bench.now = bench.now.after(Millis::from_millis(most.as_millis() - 1));
    assert!(Arc::ptr_eq(&before, &found(&mut bench)));
    bench.now = bench.now.after(Millis::from_millis(1));
    assert_eq!(found(&mut bench).items.len(), 1);
}

#[test]
fn a_stuck_receiver_is_told_with_its_client_and_since_it_is_idle() {
    let mut bench = Bench::new();
    describe(
        &mut bench,
        "slow",
        Description {
            lock_duration: Millis::from_millis(300_000),
            ..Description::default()
        },
    );
    bench.run(|gateway, cx| gateway.attach_receiver(cx, ONE.0, ONE.1, "slow"));
    for _ in 0..3 {
        bench.send("slow", message("a"));
    }
    let idle_since = bench.now;
    assert_eq!(kinds(&mut bench), [], "it may be at work");
    pass(&mut bench, 10);
    let view = ask(&mut bench, None).unwrap();
    let item = &view.found.items[0];
    assert_eq!(
        (item.kind, &*item.path, item.count, item.since),
        (AttentionKind::StuckReceiver, "slow", 2, Some(idle_since))
    );
    assert_eq!(
        item.text,
        "The receiver has 1 message locked and settles none; 2 messages wait for it."
    );
    let link = view.links[0].as_ref().unwrap();
    assert_eq!((link.connection, link.link), ONE);
}

#[test]
fn messages_of_a_session_that_another_holds_are_not_for_a_receiver() {
    let mut bench = Bench::new();
    describe(
        &mut bench,
        "s",
        Description {
            requires_session: true,
            lock_duration: Millis::from_millis(300_000),
            ..Description::default()
        },
    );
    // Both hold a session; messages wait in that of the first only, which works on one.
    let id = bench.id("s");
    let two = (ConnectionId(5), LinkId(1));
    for ((connection, link), session) in [(ONE, "a"), (two, "b")] {
        let receiver = consumer_id(connection, link);
        bench.run(|gateway, cx| {
            let state = Link::Receiver {
                queue: id,
                name: None,
            };
            gateway.connection(connection).links.insert(link, state);
            gateway.with_queue(cx, id, |queue, cx| {
                let wanted = Wanted::Named(session);
                let accepted = queue.accept_session(cx, receiver, ReceiveMode::PeekLock, wanted);
                accepted.unwrap();
                queue.set_credit(cx, receiver, 1);
            });
        });
    }
    for _ in 0..3 {
        // Properties with the group-id `a`.
        let bytes = b"\0\x53\x73\xc0\x0e\x0b@@@@@@@@@@\xa1\x01a\0\x53\x75\xa0\x01x";
        bench.send("s", Message::parse(Bytes::from_static(bytes)).unwrap());
    }
    pass(&mut bench, 60);
    let stuck = item(&mut bench, AttentionKind::StuckReceiver);
    assert_eq!(stuck.receiver, Some(consumer_id(ONE.0, ONE.1)));
    assert_eq!(
        found(&mut bench).counts[AttentionKind::StuckReceiver as usize],
        1
    );
}

#[test]
fn dead_letters_are_recent_for_an_hour_and_there_after_it() {
    let mut bench = Bench::new();
    watch(&mut bench);
    for _ in 0..2 {
        bench.send("q", message("a"));
        dead_letter(&mut bench, "q");
    }
    pass(&mut bench, 1);
    let began = bench.now;
    let recent = (AttentionKind::RecentDeadLetters, "q".to_owned(), 2);
    assert_eq!(kinds(&mut bench), [recent]);
    let text = found(&mut bench).items[0].text.clone();
    assert_eq!(
        text,
        "2 messages were dead-lettered in the last hour; 2 dead letters are there."
    );
    pass(&mut bench, 3_600);
    let there = item(&mut bench, AttentionKind::DeadLetters);
    assert_eq!((there.count, there.since), (2, Some(began)));
    assert_eq!(there.text, "2 dead letters are there.");
    assert_eq!(found(&mut bench).items.len(), 1);
}

#[test]
fn an_entity_that_is_nearly_full_and_forwarding_that_fails_are_told() {
    let mut bench = Bench::new();
    // A message of one letter has six bytes.
    let small = |max_bytes| Description {
        max_bytes,
        ..Description::default()
    };
    describe(&mut bench, "q", small(13));
    bench.run(|gateway, cx| gateway.attach_receiver(cx, ONE.0, ONE.1, "q"));
    bench.send("two", message("x"));
    assert_eq!(kinds(&mut bench), []);
    bench.send("two", message("y"));
    bench.send("two", message("z"));
    pass(&mut bench, 1);
    let found = kinds(&mut bench);
    let of = |kind, path: &str, count| (kind, path.to_owned(), count);
    assert_eq!(
        found,
        [
            of(AttentionKind::RecentDeadLetters, "two", 1),
            of(AttentionKind::ForwardingFailed, "two", 1),
            of(AttentionKind::EntityFull, "q", 92),
        ]
    );
    let text = item(&mut bench, AttentionKind::ForwardingFailed).text;
    assert_eq!(
        text,
        "1 message could not be forwarded to 'q' in the last hour."
    );
}

#[test]
fn dead_letters_that_their_target_does_not_take_are_told() {
    let mut bench = Bench::new();
    describe(
        &mut bench,
        "all",
        Description {
            max_bytes: 5,
            ..Description::default()
        },
    );
    describe(
        &mut bench,
        "dying",
        Description {
            forward_dead_letters_to: Some("all".to_owned()),
            ..Description::default()
        },
    );
    bench.send("dying", message("a"));
    dead_letter(&mut bench, "dying");
    let blocked = item(&mut bench, AttentionKind::ForwardingBlocked);
    assert_eq!((&*blocked.path, blocked.count), ("dying", 1));
    assert_eq!(
        blocked.text,
        "1 dead letter waits to be forwarded to 'all', which does not take it."
    );
}

#[test]
fn messages_in_a_disabled_entity_are_told() {
    for (status, text) in [
        (
            Status::Disabled,
            "The entity is disabled, and 1 message waits.",
        ),
        (
            Status::ReceiveDisabled,
            "Receiving is disabled, and 1 message waits.",
        ),
        (
            Status::SendDisabled,
            "Sending is disabled, and 1 message waits.",
        ),
    ] {
        let mut bench = Bench::new();
        bench.send("q", message("a"));
        describe(
            &mut bench,
            "q",
            Description {
                status,
                ..Description::default()
            },
        );
        let told = item(&mut bench, AttentionKind::DisabledWithMessages);
        assert_eq!((told.count, &*told.text), (1, text));
        let all = kinds(&mut bench);
        let without = all
            .iter()
            .any(|(kind, ..)| *kind == AttentionKind::NoReceiver);
        assert_eq!(without, status.can_receive(), "{status:?}");
    }
}

#[test]
fn old_locks_are_told_from_five_minutes_on() {
    let mut bench = Bench::new();
    describe(
        &mut bench,
        "slow",
        Description {
            lock_duration: Millis::from_millis(3_600_000),
            ..Description::default()
        },
    );
    bench.run(|gateway, cx| gateway.attach_receiver(cx, ONE.0, ONE.1, "slow"));
    bench.send("slow", message("a"));
    let made = bench.now;
    pass(&mut bench, 299);
    assert_eq!(kinds(&mut bench), []);
    pass(&mut bench, 1);
    let old = item(&mut bench, AttentionKind::OldLock);
    let since = made.after(broker::ATTENTION_OLD_LOCK);
    assert_eq!((old.count, old.since), (1, Some(since)));
}

#[test]
fn locks_that_end_by_themselves_are_told_if_they_are_more_than_what_is_completed() {
    let mut bench = Bench::new();
    describe(
        &mut bench,
        "short",
        Description {
            lock_duration: Millis::from_millis(1_000),
            max_delivery_count: 100,
            ..Description::default()
        },
    );
    watch(&mut bench);
    bench.send("short", message("a"));
    for at in 0..11_u32 {
        let link = (ConnectionId(4), LinkId(at));
        bench.run(|gateway, cx| gateway.attach_receiver(cx, link.0, link.1, "short"));
        pass(&mut bench, 2);
        bench.run(Gateway::handle_timeout);
        if at == 9 {
            assert!(
                kinds(&mut bench)
                    .iter()
                    .all(|(kind, ..)| *kind != AttentionKind::LocksExpire)
            );
        }
    }
    let expired = item(&mut bench, AttentionKind::LocksExpire);
    assert_eq!(expired.count, 11);
}

#[test]
fn what_concerns_the_namespace_and_jobs_are_told() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench.send("q", message("a"));
    }
    bench.run(|gateway, cx| gateway.attach_receiver(cx, ONE.0, ONE.1, "q"));
    // The receiver has one locked, which the job leaves.
    let description = JobDescription {
        selection: Selection::default(),
        action: JobAction::Delete,
        most: None,
    };
    let queue = bench.id("q");
    let id = bench.run(|gateway, cx| gateway.namespaces_mut().start_job(cx, queue, description));
    while let Some(page) = bench.run(Gateway::job_page) {
        bench.run(|gateway, cx| gateway.work(cx, page, &|_| None));
    }
    let skipped = item(&mut bench, AttentionKind::JobSkipped);
    assert_eq!(
        (skipped.job, skipped.count, &*skipped.path),
        (id.ok(), 1, "q")
    );
    assert_eq!(skipped.since, Some(bench.now));
    pass(&mut bench, 1);
    bench
        .gateway
        .namespaces_mut()
        .set_room(Room::None(Lack::Disk));
    let refused = item(&mut bench, AttentionKind::MessagesRefused);
    assert_eq!(
        refused.text,
        "The broker's disk is full: messages are refused."
    );
    assert_eq!((&*refused.path, refused.since), ("", Some(bench.now)));
}

#[test]
fn another_namespace_and_another_entity_are_not_told() {
    let mut bench = Bench::new();
    bench
        .gateway
        .namespaces_mut()
        .set_namespaces(["first", "other"].into_iter());
    describe(&mut bench, "//other/hidden", Description::default());
    bench.send("//other/hidden", message("a"));
    bench.send("q", message("a"));
    let paths: Vec<String> = kinds(&mut bench)
        .into_iter()
        .map(|(_, path, _)| path)
        .collect();
    assert_eq!(paths, ["q"]);
    let one = ask(&mut bench, Some("q")).unwrap().found;
    assert_eq!((one.items.len(), one.left_out), (1, 0));
    let none = ask(&mut bench, Some("one")).unwrap().found;
    assert_eq!(none.items.len(), 0);
    assert!(ask(&mut bench, Some("hidden")).is_err());
    pass(&mut bench, 1);
    watch(&mut bench);
    let counts = bench.gateway.namespaces().attention_counts();
    let of = |wanted: &str| {
        let found = counts.iter().find(|(name, _)| name == wanted);
        found.unwrap().1[AttentionKind::NoReceiver as usize]
    };
    assert_eq!((counts.len(), of("first"), of("other")), (2, 1, 1));
}

#[test]
fn of_many_entities_the_most_urgent_are_told_and_the_others_counted() {
    const ENTITIES: usize = 1_000;
    let mut bench = Bench::new();
    for at in 0..ENTITIES {
        let path = format!("many{at:03}");
        describe(&mut bench, &path, Description::default());
        bench.send(&path, message("a"));
    }
    bench.send("many007", message("a"));
    dead_letter(&mut bench, "many009");
    let found = found(&mut bench);
    assert_eq!(found.items.len(), broker::ATTENTION_ITEMS);
    assert_eq!(found.left_out, ENTITIES - broker::ATTENTION_ITEMS);
    assert_eq!(found.counts.iter().sum::<usize>(), ENTITIES);
    let paths: Vec<&str> = found.items.iter().take(2).map(|it| &*it.path).collect();
    assert_eq!(paths, ["many009", "many007"]);
    // The answer about one entity has its items, also those that the answer about the namespace leaves out.
    let one = ask(&mut bench, Some("many999")).unwrap().found;
    assert_eq!(one.items.len(), 1);
}
