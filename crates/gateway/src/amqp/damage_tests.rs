//! Messages whose bytes are damaged, in every state that a message can be in; each time the records
//! make the same broker again.

use super::tests::{Bench, message, scheduled};
use super::*;
use bytes::Bytes;
use jitney_base::ids::BodyRef;
use jitney_base::ids::SequenceNumber;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::Contained;
use jitney_broker::namespace::Damage;
use jitney_broker::namespace::WantedBody;
use jitney_broker::namespace::{LostLock, SearchPosition};
use jitney_queue::Description;
use jitney_queue::Handover;
use std::sync::Arc;

use jitney_message::{Amendments, EMPTY};
use jitney_queue::{
    DeadLetter, Delivery, EntityKind, ReceiveMode, ScanMode, Selection, Settlement,
};
use jitney_rules::selector;

const CONSUMER: ConsumerId = ConsumerId(7);

fn damage(body: BodyRef) -> Damage {
    let place = "segment 1, byte 100: its checksum is wrong".to_owned();
    Damage { body, place }
}

/// Takes a message out of a queue, locked or deleted.
fn receive(bench: &mut Bench, path: &str, mode: ReceiveMode) -> Handover {
    let id = bench.id(path);
    bench.run(|gateway, cx| {
        let given = gateway.namespaces.with_queue(cx, id, |queue, cx| {
            queue.add_consumer(CONSUMER, mode);
            queue.drain(cx, CONSUMER, 1);
            queue.remove_consumer(CONSUMER);
            std::mem::take(&mut cx.effects.deliveries)
        });
        let given = given.unwrap().into_iter();
        let mut given = given.filter_map(|delivery| match delivery {
            Delivery::Message(_, handover) => Some(handover),
            _ => None,
        });
        *given.next().unwrap()
    })
}

fn settle(bench: &mut Bench, path: &str, settlement: Settlement) {
    let token = receive(bench, path, ReceiveMode::PeekLock).token;
    let id = bench.id(path);
    bench
        .run(|gateway, cx| {
            gateway
                .namespaces
                .settle(cx, id, token, LostLock::Message, settlement)
        })
        .unwrap();
}

/// Damages the first message of a queue, and contains that.
fn contain(bench: &mut Bench, path: &str) -> Contained {
    let id = bench.id(path);
    let browsed = bench.gateway.namespaces.queue(id).unwrap();
    let browsed = browsed.browse(SequenceNumber(0), 1).remove(0);
    let number = SequenceNumber(browsed.stamps.sequence_number.cast_unsigned());
    let found = bench
        .run(|gateway, cx| gateway.body_damaged(cx, id, number, &damage(browsed.body)))
        .unwrap();
    let again =
        bench.run(|gateway, cx| gateway.body_damaged(cx, id, number, &damage(browsed.body)));
    assert_eq!(again, None, "its bytes are others now");
    found
}

/// Returns the only message of a queue: its number, its bytes, its reason and what more is said.
fn only(bench: &Bench, path: &str) -> (i64, Bytes, String, String) {
    let queue = bench.gateway.namespaces.queue(bench.id(path)).unwrap();
    let mut all = queue.browse(SequenceNumber(0), 9);
    assert_eq!(all.len(), 1, "{path}");
    let found = all.remove(0);
    let mut changed = Amendments::clone(&found.stamps.amendments.unwrap());
    let mut text = |name| changed.take_string(name).unwrap_or_default();
    (
        found.stamps.sequence_number,
        bench.bytes(found.body),
        text("DeadLetterReason"),
        text("DeadLetterErrorDescription"),
    )
}

fn check_dead_letter(bench: &Bench, path: &str) {
    let (number, bytes, reason, text) = only(bench, path);
    assert_eq!(
        (number, &bytes[..], reason.as_str()),
        (1, EMPTY, "MessageDamaged")
    );
    assert!(text.contains("segment 1, byte 100"), "{text}");
    bench.check_replay();
}

#[test]
fn in_whatever_state_it_is_a_damaged_message_becomes_a_dead_letter() {
    type Prepare = fn(&mut Bench);
    let states: [(&str, Prepare); 4] = [
        ("active", |_| ()),
        ("locked", |bench| {
            receive(bench, "q", ReceiveMode::PeekLock);
        }),
        ("deferred", |bench| {
            settle(bench, "q", Settlement::Defer(None));
        }),
        ("failed", |bench| {
            settle(bench, "q", Settlement::Abandon(None));
        }),
    ];
    for (state, prepare) in states {
        let mut bench = Bench::new();
        bench.send("q", message("first"));
        prepare(&mut bench);
        bench.send("q", message("next"));
        let contained = contain(&mut bench, "q");
        assert_eq!((contained.entity.as_str(), contained.number.0), ("q", 1));
        check_dead_letter(&bench, "q/dead");
        assert_eq!(bench.seen("q"), [(2, 0)], "{state}");
        let rest = bench
            .gateway
            .namespaces
            .queue(bench.id("q"))
            .unwrap()
            .bytes();
        assert_eq!(rest, 9, "{state}");
        let bench = bench.restarted();
        assert_eq!(only(&bench, "q/dead").0, 1);
    }
}

#[test]
fn a_dead_letter_stays_and_says_both_reasons() {
    let mut bench = Bench::new();
    bench.send("q", message("first"));
    let reason = DeadLetter::broker("Poison", "it is bad".to_owned());
    settle(
        &mut bench,
        "q",
        Settlement::DeadLetter(Some(reason.amended())),
    );
    receive(&mut bench, "q/dead", ReceiveMode::PeekLock);
    contain(&mut bench, "q/dead");
    check_dead_letter(&bench, "q/dead");
    let (.., text) = only(&bench, "q/dead");
    assert!(
        text.ends_with("It was dead-lettered before: Poison"),
        "{text}"
    );
    // Its lock is over, and it can be received as it is now.
    let handover = receive(&mut bench, "q/dead", ReceiveMode::PeekLock);
    assert_eq!(bench.bytes(handover.body), EMPTY);
}

#[test]
fn every_subscription_contains_its_own_copy_of_shared_bytes() {
    let mut bench = Bench::new();
    bench.send("t", message("x"));
    contain(&mut bench, "t/Subscriptions/a");
    check_dead_letter(&bench, "t/Subscriptions/a/dead");
    assert!(bench.seen("t/Subscriptions/a").is_empty());
    assert_eq!(bench.seen("t/Subscriptions/b"), [(1, 1)]);
    assert!(bench.released().is_empty(), "b has the damaged bytes still");
    contain(&mut bench, "t/Subscriptions/b");
    check_dead_letter(&bench, "t/Subscriptions/b/dead");
    assert_eq!(bench.released(), [1]);
}

#[test]
fn a_message_that_cannot_go_on_without_its_bytes_becomes_a_dead_letter_of_where_it_is() {
    let mut bench = Bench::new();
    let partitioned = Description {
        partitioned: true,
        ..Description::default()
    };
    let forwards = Description {
        forward_to: Some("parts".to_owned()),
        ..Description::default()
    };
    bench.run(|gateway, cx| {
        let parts = gateway.ensure_entity(cx, "parts", partitioned);
        parts.unwrap();
    });
    bench.send("q", message("first"));
    let id = bench.id("q");
    bench.step(|gateway, cx| {
        let forwarded = gateway.ensure_entity(cx, "q", forwards);
        forwarded.unwrap();
        gateway.with_queue(cx, id, |_, _| ());
    });
    let wanted = bench.gateway.namespaces_mut().wanted();
    assert_eq!(wanted.len(), 1);
    let WantedBody {
        entity,
        number,
        body,
    } = wanted[0];
    bench.step(|gateway, cx| {
        let contained = gateway.body_damaged(cx, entity, number, &damage(body));
        assert_eq!(contained.unwrap().entity, "q");
    });
    assert!(bench.gateway.namespaces_mut().wanted().is_empty());
    check_dead_letter(&bench, "q/dead");
    assert!(bench.seen("q").is_empty() && bench.seen("parts").is_empty());
}

#[test]
fn a_message_that_was_received_and_deleted_comes_back_as_a_dead_letter() {
    for kind in [EntityKind::Queue, EntityKind::Subscription] {
        let (path, at) = match kind {
            EntityKind::Subscription => ("t/Subscriptions/a", "t"),
            _ => ("q", "q"),
        };
        let mut bench = Bench::new();
        bench.send(at, message("first"));
        let handover = receive(&mut bench, path, ReceiveMode::ReceiveAndDelete);
        assert!(bench.seen(path).is_empty());
        let (connection, link) = (ConnectionId(1), LinkId(1));
        let id = bench.id(path);
        let contained = bench.run(|gateway, cx| {
            let receiver = Link::Receiver {
                queue: id,
                name: None,
            };
            gateway.connection(connection).links.insert(link, receiver);
            let damage = damage(handover.body);
            gateway.delivery_damaged(
                cx,
                connection,
                link,
                &handover,
                &damage,
                DeliveryCredit::Left,
            )
        });
        assert_eq!(contained.unwrap().number, SequenceNumber(1));
        let (number, bytes, reason, _) = only(&bench, &format!("{path}/dead"));
        assert_eq!(
            (number, &bytes[..], reason.as_str()),
            (2, EMPTY, "MessageDamaged")
        );
        assert!(bench.seen(path).is_empty());
        bench.check_replay();
    }
}

/// Gives the broker the bytes that it waits for, but for one message whose bytes are damaged.
fn read_back(bench: &mut Bench, damaged: SequenceNumber) -> Vec<Contained> {
    let (bad, good): (Vec<_>, Vec<_>) = bench
        .gateway
        .namespaces_mut()
        .wanted()
        .into_iter()
        .partition(|wanted| wanted.number == damaged);
    let good = good.into_iter();
    let good = good.map(|wanted| (wanted, bench.bytes(wanted.body)));
    let good: Vec<_> = good.collect();
    bench.step(|gateway, cx| {
        let contain = |wanted: &WantedBody| {
            let WantedBody {
                entity,
                number,
                body,
            } = *wanted;
            gateway.body_damaged(cx, entity, number, &damage(body))
        };
        let contained = bad.iter().filter_map(contain).collect();
        gateway.read_back(cx, good);
        contained
    })
}

#[test]
fn a_receiver_with_a_selector_gets_what_lies_behind_a_damaged_message() {
    let mut bench = Bench::new();
    for word in ["first", "second", "third"] {
        bench.send("q", message(word));
    }
    let (connection, link, id) = (ConnectionId(1), LinkId(1), bench.id("q"));
    let takes_all = Arc::new(selector("JMSType IS NULL").unwrap());
    bench.step(|gateway, cx| {
        let receiver = Link::Receiver {
            queue: id,
            name: None,
        };
        gateway.connection(connection).links.insert(link, receiver);
        let consumer = consumer_id(connection, link);
        gateway.with_queue(cx, id, |queue, cx| {
            let mode = ReceiveMode::PeekLock;
            let selection = Selection {
                selector: Some(takes_all),
                bytes_max: None,
            };
            queue.add_scan(consumer, mode, ScanMode::Consume, selection);
            queue.set_credit(cx, consumer, 9);
        });
    });
    assert!(bench.told.is_empty(), "their bytes are not in memory");
    let contained = read_back(&mut bench, SequenceNumber(2));
    assert_eq!(contained.len(), 1);
    assert!(
        bench.gateway.namespaces_mut().wanted().is_empty(),
        "nothing is undecided"
    );
    let told = bench.told.iter().filter_map(|routed| match &routed.reply {
        Reply::Deliver(_, handover) => Some(handover.stamps.sequence_number),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [1, 3]);
    let (number, bytes, reason, _) = only(&bench, "q/dead");
    assert_eq!(
        (number, &bytes[..], reason.as_str()),
        (2, EMPTY, "MessageDamaged")
    );
    bench.check_replay();
}

#[test]
fn a_damaged_message_of_a_topic_holds_up_none_behind_it() {
    let mut bench = Bench::new();
    bench.send("t", scheduled(2_000, b'x'));
    bench.send("t", scheduled(2_000, b'y'));
    bench.now = Timestamp::from_millis(2_000);
    bench.step(|_, _| ());
    let wanted = bench.gateway.namespaces_mut().wanted();
    let numbers: Vec<_> = wanted.iter().map(|wanted| wanted.number).collect();
    assert_eq!(wanted.len(), 2, "they are active, and their bytes decide");
    let contained = read_back(&mut bench, numbers[0]);
    assert_eq!(contained[0].entity, "t");
    assert!(!bench.gateway.namespaces().has_wanted());
    let (number, bytes, reason, _) = only(&bench, "t/dead");
    assert_eq!(
        (number.cast_unsigned(), &bytes[..], reason.as_str()),
        (numbers[0].0, EMPTY, "MessageDamaged")
    );
    assert!(bench.seen("t").is_empty());
    for subscription in ["t/Subscriptions/a", "t/Subscriptions/b"] {
        let enqueued = numbers[1].0.cast_signed();
        assert_eq!(bench.seen(subscription), [(1, enqueued)]);
    }
    bench.check_replay();
}

#[test]
fn a_compaction_leaves_nothing_where_damaged_bytes_were() {
    let mut bench = Bench::new();
    for word in ["first", "second", "third"] {
        bench.send("q", message(word));
    }
    bench.send("t", message("shared"));
    let old = || std::iter::once(0..5).collect();
    let search = |bench: &Bench| {
        let mut all = Vec::new();
        let mut from = Some(SearchPosition::default());
        while let Some(at) = from {
            let (found, rest) = bench.gateway.namespaces().search_bodies(&old(), at, 100);
            all.extend(found);
            from = rest;
        }
        all
    };
    let found = search(&bench);
    assert_eq!(found.len(), 5);
    // The second message of the queue, and the one that two subscriptions share.
    let is_damaged = |body: BodyRef| [2, 4].contains(&body.position);
    for found in found {
        let bytes = bench.bytes(found.body);
        bench.run(|gateway, cx| {
            if is_damaged(found.body) {
                let damage = damage(found.body);
                let contained = gateway.body_damaged(cx, found.entity, found.number, &damage);
                assert!(contained.is_some(), "{found:?}");
            } else {
                gateway.namespaces_mut().relocate(cx, &found, &bytes);
            }
        });
    }
    assert!(search(&bench).is_empty(), "the segment can go");
    let mut released = bench.released().to_vec();
    released.sort_unstable();
    assert_eq!(released, [1, 2, 3, 4]);
    assert_eq!(bench.seen("q"), [(1, 0), (3, 0)]);
    for path in ["q/dead", "t/Subscriptions/a/dead", "t/Subscriptions/b/dead"] {
        assert_eq!(only(&bench, path).2, "MessageDamaged");
    }
    bench.check_replay();
}
