//! Peers that do not read, and what they leave to others.

use crate::Report;
use crate::limits;
use bytes::Bytes;
use jitney_amqp::Event;
use jitney_amqp::SessionId;
use std::collections::BTreeMap;

use super::tests::Bench;
use super::windows::{Load, Windows};
use super::*;
use jitney_amqp::{Attach, Condition, LinkCredit, LinkRole, LinkTarget};
use jitney_base::time::Millis;
use jitney_message::Message;

const SHARE: usize = 8 * 1024 * 1024;
const BODY: usize = 60_000;

/// A queue with some messages of [`BODY`] bytes, and a share of [`SHARE`].
fn bench(messages: usize) -> Bench {
    let mut bench = Bench::new();
    bench.gateway.connections.windows = Windows::new(SHARE);
    send(&mut bench, messages, BODY);
    bench
}

fn send(bench: &mut Bench, messages: usize, body: usize) {
    let mut encoded = vec![0x00, 0x53, 0x75, 0xb0];
    encoded.extend_from_slice(&u32::try_from(body).unwrap().to_be_bytes());
    encoded.resize(encoded.len() + body, 7);
    let encoded = Bytes::from(encoded);
    for _ in 0..messages {
        bench.send("q", Message::parse(encoded.clone()).unwrap());
    }
}

fn report(bench: &mut Bench, connection: u32, report: Report) {
    let id = ConnectionId(connection + 1);
    bench.run(|gateway, cx| gateway.apply(cx, id, report));
}

/// Attaches a receiver of the queue, and gives it credit.
fn receive(bench: &mut Bench, connection: u32, link: u32) {
    use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
    use fe2o3_amqp_types::messaging::Source;
    let attach = Attach {
        name: format!("receiver {link}"),
        role: LinkRole::Outgoing,
        session: SessionId(0),
        source: Some(Source::builder().address("q").build()),
        target: LinkTarget::Node(None),
        snd_settle_mode: SenderSettleMode::default(),
        rcv_settle_mode: ReceiverSettleMode::default(),
        message_size_max: 0,
        properties: None,
    };
    let event = Event::AttachRequested(LinkId(link), Box::new(attach));
    report(bench, connection, Report::Event(event));
    let credit = Event::Credit(LinkCredit {
        link: LinkId(link),
        limit: 10_000,
        drain: false,
    });
    report(bench, connection, Report::Event(credit));
}

/// Takes how many messages each connection was handed, and which connections are to be closed.
fn told(bench: &mut Bench) -> (BTreeMap<u32, usize>, Vec<u32>) {
    let (mut handed, mut closed) = (BTreeMap::new(), Vec::new());
    for routed in std::mem::take(&mut bench.told) {
        match routed.reply {
            Reply::Deliver(..) => *handed.entry(routed.connection.0 - 1).or_default() += 1,
            Reply::Close(refusal) => {
                assert_eq!(refusal.condition, Condition::ResourceLimitExceeded);
                closed.push(routed.connection.0 - 1);
            }
            _ => {}
        }
    }
    (handed, closed)
}

/// Has a connection written messages of a link.
fn written(bench: &mut Bench, connection: u32, link: u32, messages: usize) {
    let bytes = u64::try_from(messages * (BODY + 8)).unwrap();
    let link = LinkId(link);
    report(bench, connection, Report::Written { link, bytes });
}

#[test]
fn who_does_not_read_gets_a_part_of_what_is_left() {
    let mut bench = bench(300);
    for connection in 0..3 {
        for link in 0..8 {
            receive(&mut bench, connection, link);
        }
    }
    let (handed, _) = told(&mut bench);
    // A link has a window of 1 MiB, which is 18 messages, or less if less is left. A connection is full
    // when it has as much as half of what is left.
    assert_eq!(handed, BTreeMap::from([(0, 54), (1, 36), (2, 24)]));
    // It has read all: it gets more, and no more than before.
    for link in 0..3 {
        written(&mut bench, 0, link, 18);
    }
    let (handed, _) = told(&mut bench);
    assert!(handed.keys().eq(&[0]), "{handed:?}");
    assert!((18..=54).contains(handed.get(&0).unwrap()), "{handed:?}");
}

#[test]
fn what_is_not_read_has_a_bound_and_who_reads_goes_on() {
    let mut bench = bench(1_200);
    for connection in 0..400 {
        receive(&mut bench, connection, 1);
    }
    let (handed, closed) = told(&mut bench);
    let all: usize = handed.values().sum();
    // Twice the share, and what is not counted of each.
    let uncounted = 64 * 1024 * handed.len();
    assert!(all * BODY <= 2 * SHARE + uncounted + BODY, "{all} messages");
    // The less is left, the less a connection gets; when too much waits, what is not counted.
    assert_eq!(handed.len(), 400);
    assert!(handed.values().is_sorted_by(|one, next| next <= one));
    assert_eq!(handed.get(&399), Some(&1));
    assert!(closed.is_empty());

    // One of them reads: it gets what is not counted, and is not closed.
    bench.now = bench.now.after(Millis::from_millis(1_500));
    let (&reader, &count) = handed.first_key_value().unwrap();
    written(&mut bench, reader, 1, count);
    let (more, _) = told(&mut bench);
    assert_eq!(more, BTreeMap::from([(reader, 1)]));
    bench.now = bench.now.after(Millis::from_millis(600));
    bench.run(|_, _| ());
    let (more, closed) = told(&mut bench);
    assert!(more.is_empty(), "{more:?}");
    let have_much = |(id, count): &(&u32, &usize)| 1 < **count && **id != reader;
    let much = handed.iter().filter(have_much).map(|(id, _)| id);
    assert!(closed.iter().eq(much), "{closed:?}");
    // They are closed once, however long that takes.
    bench.now = bench.now.after(Millis::from_secs(60));
    bench.run(|_, _| ());
    assert!(told(&mut bench).1.is_empty());
    for &id in &closed {
        let event = Event::Closed {
            error: None,
            unsent: Vec::new(),
        };
        report(&mut bench, id, Report::Event(event));
    }
    // Others get more: those that were handed little before come first.
    let (more, _) = told(&mut bench);
    assert!(more.contains_key(&reader), "{more:?}");
    assert!(more.contains_key(&200), "{more:?}");
}

#[test]
fn who_reads_goes_on_though_it_reports_little_at_a_time_while_others_read_nothing() {
    const SMALL: usize = 3_000;
    let mut bench = bench(0);
    send(&mut bench, 200, SMALL);
    bench.run(|gateway, cx| {
        for id in (1_000..1_300).map(ConnectionId) {
            gateway.connection(id);
            gateway
                .connections
                .load(cx.now, id, Load::Answers(128 * 1024));
        }
        gateway.stop_filled(cx, Vec::new());
    });
    receive(&mut bench, 0, 1);
    let (mut got, mut reported) = (0, 0);
    while let Some(count) = told(&mut bench).0.get(&0) {
        got += count;
        let bytes = u64::try_from((got - reported) * (SMALL + 8)).unwrap();
        if limits::REPORTED_BYTES <= bytes {
            let link = LinkId(1);
            report(&mut bench, 0, Report::Written { link, bytes });
            reported = got;
        }
    }
    assert_eq!(got, 200);
}

#[test]
fn a_namespace_whose_peers_read_nothing_leaves_answers_to_others() {
    let mut bench = bench(0);
    let Ok(jitney_base::address::Address::Management(address)) =
        jitney_base::address::Address::parse("q/$management")
    else {
        panic!("it is a management node");
    };
    let node = ServiceNode::Management(address);
    let share = u64::try_from(SHARE).unwrap();
    bench.run(|gateway, cx| {
        let mut told = |connections: std::ops::Range<u32>, prefix: &str| {
            let mut all = 0;
            for id in connections.map(ConnectionId) {
                prefix.clone_into(&mut gateway.connection(id).prefix);
                if gateway.connections.takes_answers(id, &node) {
                    all += share / 4;
                    let is_filled = gateway
                        .connections
                        .load(cx.now, id, Load::Answers(share / 4));
                    gateway.stop_filled(cx, is_filled.then_some(id).into_iter().collect());
                }
            }
            all
        };
        let one = told(1..100, "one/");
        assert!(
            (2 * share..=3 * share / 6 * 5).contains(&one),
            "{one} of {share}"
        );
        let two = told(100..200, "two/");
        assert!(0 < two && one + two < 3 * share, "{two}");
        assert!(0 < told(200..300, "three/"), "each has its first answer");
    });
}

#[test]
fn without_a_limit_of_memory_each_connection_has_its_window() {
    let mut bench = bench(600);
    bench.gateway.connections.windows = Windows::new(usize::MAX);
    for link in 0..20 {
        receive(&mut bench, 0, link);
    }
    let (handed, _) = told(&mut bench);
    // 16 MiB, in steps of 18 messages.
    assert_eq!(handed, BTreeMap::from([(0, 16 * 18)]));
}
