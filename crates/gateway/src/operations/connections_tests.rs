//! What a list says of receivers, and what becomes of their locks.

use super::tests::connections_from;
use super::*;
use crate::Report;
use crate::amqp::tests::{Bench, inquiry, message};
use jitney_amqp::{Event, Identity, LinkId, Product};
use jitney_base::time::Millis;
use jitney_broker::access::Grant;
use jitney_queue::{Description, Stuck};

const ONE: (ConnectionId, LinkId) = (ConnectionId(4), LinkId(1));
const TWO: (ConnectionId, LinkId) = (ConnectionId(5), LinkId(1));

fn connections(bench: &mut Bench) -> Vec<ConnectionView> {
    connections_from(bench, (ConnectionId(0), LinkId(0)), 100).0
}

/// A queue `q` with messages and long locks, and receivers with credit for one message each.
fn bench(messages: usize, receivers: &[(ConnectionId, LinkId)]) -> Bench {
    let mut bench = Bench::new();
    bench.run(|gateway, cx| {
        let description = Description {
            lock_duration: Millis::from_millis(300_000),
            ..Description::default()
        };
        gateway.ensure_entity(cx, "q", description).unwrap();
    });
    for &(connection, link) in receivers {
        bench.run(|gateway, cx| gateway.attach_receiver(cx, connection, link, "q"));
    }
    for _ in 0..messages {
        bench.send("q", message("a"));
    }
    bench
}

fn pass(bench: &mut Bench, millis: i64) {
    bench.now = bench.now.after(Millis::from_millis(millis));
}

fn stuck(bench: &mut Bench) -> Vec<Option<Stuck>> {
    let all = connections(bench).into_iter();
    all.flat_map(|connection| connection.links.into_iter().map(|link| link.stuck))
        .collect()
}

#[test]
fn a_receiver_is_stuck_when_messages_wait_for_it_and_nothing_happens() {
    let mut bench = bench(3, &[ONE]);
    assert_eq!(stuck(&mut bench), [None]);
    pass(&mut bench, 9_999);
    assert_eq!(stuck(&mut bench), [None]);
    pass(&mut bench, 1);
    assert_eq!(stuck(&mut bench), [Some(Stuck::Holding)]);
    let views = connections(&mut bench);
    let link = &views[0].links[0];
    assert_eq!((link.locked, link.waiting), (Some(1), Some(2)));
    assert_eq!(link.oldest_lock, link.idle_since);
    // Another that takes none is not, while the first has a message; when none has, none works.
    bench.run(|gateway, cx| gateway.attach_receiver(cx, TWO.0, TWO.1, "q"));
    pass(&mut bench, 20_000);
    assert_eq!(
        stuck(&mut bench),
        [Some(Stuck::Holding), Some(Stuck::Holding)]
    );
}

#[test]
fn a_receiver_that_waits_for_nothing_is_not_stuck_however_long_it_holds() {
    let mut bench = bench(1, &[ONE]);
    pass(&mut bench, 200_000);
    assert_eq!(stuck(&mut bench), [None]);
    let views = connections(&mut bench);
    assert_eq!(views[0].links[0].waiting, Some(0));
}

#[test]
fn locks_of_a_link_end_with_it_or_stay() {
    for (locks, left) in [(LocksThen::End, 0), (LocksThen::Stay, 1)] {
        let mut bench = bench(1, &[ONE]);
        let (connection, link) = ONE;
        bench.run(|gateway, cx| {
            let authority = gateway.authorize(cx.now, &inquiry(None, None, ""));
            let requester = Requester {
                host: None,
                authority: authority.unwrap(),
            };
            let close = CloseConnection {
                connection,
                link: Some(link),
                locks,
            };
            gateway.serve(cx, &requester, close).unwrap();
        });
        bench.run(Gateway::handle_timeout);
        let queue = bench.id("q");
        let queue = bench.gateway.namespaces().queue(queue).unwrap();
        assert_eq!(queue.locked(), left, "{locks:?}");
    }
}

#[test]
fn locks_of_a_connection_that_an_operator_closes_end_when_it_ends() {
    let mut bench = bench(1, &[ONE]);
    let locked = |bench: &Bench| {
        let queue = bench.id("q");
        bench.gateway.namespaces().queue(queue).unwrap().locked()
    };
    bench.run(|gateway, cx| {
        let authority = gateway.authorize(cx.now, &inquiry(None, None, ""));
        let requester = Requester {
            host: None,
            authority: authority.unwrap(),
        };
        let close = CloseConnection {
            connection: ONE.0,
            link: None,
            locks: LocksThen::End,
        };
        gateway.serve(cx, &requester, close).unwrap();
    });
    assert_eq!(locked(&bench), 1, "its client can settle still");
    bench.run(|gateway, cx| gateway.closed(cx, ONE.0, &[]));
    bench.run(Gateway::handle_timeout);
    assert_eq!(locked(&bench), 0);
}

#[test]
fn what_a_client_says_of_itself_is_told_and_cut() {
    let mut bench = bench(0, &[ONE]);
    bench.run(|gateway, cx| {
        let opened = Event::Opened {
            container_id: "c".repeat(1_000),
            hostname: None,
            identity: Identity::Anonymous,
            is_client_provider: false,
            product: Box::new(Product {
                name: "library".to_owned(),
                version: "1.2".to_owned(),
            }),
        };
        gateway.apply(cx, ONE.0, Report::Event(opened));
        let grant = |whose: &str| Grant {
            whose: whose.to_owned(),
            ..Grant::all()
        };
        // Two tokens of one key are one identity; what was not verified is none.
        gateway.connection(ONE.0).grants =
            vec![grant("key a"), grant(""), grant("key a"), grant("key b")];
    });
    let views = connections(&mut bench);
    let view = &views[0];
    assert_eq!(view.container_id.len(), 256);
    assert_eq!(
        (&*view.product.name, &*view.product.version),
        ("library", "1.2")
    );
    assert_eq!(view.identities, ["key a", "key b"]);
    assert_eq!(view.opened_at, bench.now);
}
