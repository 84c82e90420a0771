//! What keeps an entity from being deleted as idle, and what does not.

use super::tests::{Bench, message};
use super::*;
use jitney_base::time::{Millis, Timestamp};
use jitney_queue::{Description, ReceiveMode};

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
        gateway.credit(cx, ONE, LINK, limit, false);
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
    pass(&mut bench, 299);
    assert!(is_there(&bench));
    pass(&mut bench, 1);
    assert!(!is_there(&bench));
}
