//! What keeps an entity from being deleted as idle, and what does not.

use super::tests::{Bench, message};
use super::*;
use crate::Report;
use crate::testing::{attach_both, attach_session, request};
use jitney_amqp::{Event, LinkCredit};
use jitney_base::time::{Millis, Timestamp};
use jitney_queue::{Description, ReceiveMode, Settlement};
use serde_amqp::Value;

const ONE: ConnectionId = ConnectionId(1);
const LINK: LinkId = LinkId(1);

fn bench() -> Bench {
    let mut bench = Bench::new();
    let idle = Description {
        auto_delete_on_idle: Millis::from_secs(300),
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "idle", idle))
        .unwrap();
    bench
}

/// Lets so many seconds pass.
fn pass(bench: &mut Bench, seconds: u32) {
    bench.now = bench.now.after(Millis::from_secs(seconds));
    bench.run(|_, _| ());
}

fn is_there(bench: &Bench) -> bool {
    bench.gateway.namespaces().resolve_path("idle").is_some()
}

/// Sets the credit of a receiver, which is added if it is not there.
fn set_credit(bench: &mut Bench, limit: u32) {
    let queue = bench.id("idle");
    bench.run(|gateway, cx| {
        let consumer = consumer_id(ONE, LINK);
        if gateway.link(ONE, LINK).is_none() {
            let state = Link::Receiver { queue, name: None };
            gateway.connection(ONE).links.insert(LINK, state);
            gateway.with_queue(cx, queue, |queue, _| {
                queue.add_consumer(consumer, ReceiveMode::PeekLock);
            });
        }
        let credit = LinkCredit {
            link: LINK,
            limit,
            drain: false,
        };
        gateway.credit(cx, ONE, credit);
    });
}

#[test]
fn a_receiver_that_waits_keeps_its_entity_and_one_without_credit_does_not() {
    let mut bench = bench();
    set_credit(&mut bench, 5);
    for _ in 0..4 {
        pass(&mut bench, 299);
    }
    assert!(is_there(&bench));
    set_credit(&mut bench, 0);
    pass(&mut bench, 299);
    assert!(
        is_there(&bench),
        "the time counts from the end of the credit"
    );
    pass(&mut bench, 2);
    assert!(!is_there(&bench));
}

#[test]
fn an_open_link_that_does_not_ask_keeps_nothing() {
    let mut bench = bench();
    set_credit(&mut bench, 0);
    pass(&mut bench, 300);
    assert!(!is_there(&bench));
}

#[test]
fn a_message_that_is_sent_or_settled_is_a_use() {
    let mut bench = bench();
    bench.now = Timestamp::from_millis(200_000);
    bench.send("idle", message("x"));
    set_credit(&mut bench, 1);
    let told = std::mem::take(&mut bench.told).into_iter();
    let tokens = told.filter_map(|routed| match routed.reply {
        Reply::Deliver(LINK, handover) => Some(handover.token),
        _ => None,
    });
    let token = { tokens }.next().unwrap();
    // Its lock holds for a minute.
    let queue = bench.id("idle");
    pass(&mut bench, 50);
    bench.run(|gateway, cx| {
        gateway.with_namespaces(cx, |namespaces, cx| {
            let lost = jitney_broker::namespace::LostLock::Message;
            let settled = namespaces.settle(cx, queue, token, lost, Settlement::Complete);
            settled.unwrap();
        });
    });
    pass(&mut bench, 299);
    assert!(is_there(&bench), "it was settled a second less ago");
    pass(&mut bench, 1);
    assert!(!is_there(&bench));
    let mut bench = self::bench();
    bench.now = Timestamp::from_millis(200_000);
    bench.send("idle", message("x"));
    pass(&mut bench, 299);
    assert!(is_there(&bench), "it was sent a second less ago");
    pass(&mut bench, 1);
    assert!(!is_there(&bench));
}

#[test]
fn an_operation_on_messages_is_a_use() {
    let long = |name, value| (name, Value::Long(value));
    let numbers = || Value::List(vec![Value::Long(7)]);
    let operations = [
        (
            "peek-message",
            vec![
                long("from-sequence-number", 0),
                ("message-count", Value::Int(1)),
            ],
        ),
        (
            "receive-by-sequence-number",
            vec![
                ("sequence-numbers", numbers()),
                ("receiver-settle-mode", Value::Uint(1)),
            ],
        ),
        (
            "cancel-scheduled-message",
            vec![("sequence-numbers", numbers())],
        ),
    ];
    for (operation, entries) in operations {
        let mut bench = bench();
        bench.run(|gateway, cx| attach_both(gateway, cx, ONE, "idle"));
        pass(&mut bench, 200);
        bench.run(|gateway, cx| gateway.apply(cx, ONE, request(operation, entries)));
        pass(&mut bench, 299);
        assert!(is_there(&bench), "{operation}");
        pass(&mut bench, 1);
        assert!(!is_there(&bench), "{operation}");
    }
}

/// The bench with message sessions.
fn with_sessions() -> Bench {
    let mut bench = Bench::new();
    let idle = Description {
        requires_session: true,
        auto_delete_on_idle: Millis::from_secs(300),
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "idle", idle))
        .unwrap();
    bench
}

/// A flow that allows so many messages.
fn flow(link: LinkId, limit: u32) -> Report {
    Report::Event(Event::Credit(LinkCredit {
        link,
        limit,
        drain: false,
    }))
}

#[test]
fn a_session_processor_that_waits_keeps_nothing_whether_it_gives_credit_or_not() {
    for credit in [0, 10] {
        let mut bench = with_sessions();
        for round in 0..5 {
            assert!(is_there(&bench));
            let link = LinkId(10 + round);
            bench.run(|gateway, cx| {
                gateway.apply(cx, ONE, attach_session(link, "idle", None));
                assert!(matches!(
                    gateway.link(ONE, link),
                    Some(Link::Waiting { .. })
                ));
                if 0 < credit {
                    gateway.apply(cx, ONE, flow(link, credit));
                }
            });
            // Its wait is over after 65 s, and then it asks again.
            pass(&mut bench, 70);
        }
        assert!(!is_there(&bench), "with a credit of {credit}");
    }
}

#[test]
fn a_message_session_that_is_renewed_keeps_nothing_until_its_receiver_asks_for_messages() {
    let renewals = |bench: &mut Bench| {
        for _ in 0..6 {
            bench.run(|gateway, cx| {
                let session = ("session-id", Value::String("a".to_owned()));
                for operation in ["renew-session-lock", "get-session-state"] {
                    gateway.apply(cx, ONE, request(operation, vec![session.clone()]));
                }
            });
            pass(bench, 50);
        }
    };
    for (credit, is_kept) in [(0, false), (1, true)] {
        let mut bench = with_sessions();
        let link = LinkId(3);
        bench.run(|gateway, cx| {
            gateway.apply(cx, ONE, attach_session(link, "idle", Some("a")));
            assert!(matches!(
                gateway.link(ONE, link),
                Some(Link::Receiver { .. })
            ));
            attach_both(gateway, cx, ONE, "idle");
            if 0 < credit {
                gateway.apply(cx, ONE, flow(link, credit));
            }
        });
        renewals(&mut bench);
        assert_eq!(is_there(&bench), is_kept, "with a credit of {credit}");
    }
}
