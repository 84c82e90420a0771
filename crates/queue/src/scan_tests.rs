//! Receivers that browse, or select.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::tests::{Bench, ONE, TWO, messages, numbers};
use jitney_message::Message;
use jitney_rules::{Share, selector};

/// Lets a browser of everything in, with credit.
fn browser(bench: &mut Bench, id: ConsumerId, credit: u32) -> Vec<Delivery> {
    let step = |queue: &mut Queue, cx: &mut Context<'_>| {
        queue.add_scan(
            id,
            ReceiveMode::PeekLock,
            ScanMode::Browse,
            Selection::default(),
        );
        queue.set_credit(cx, id, credit);
    };
    bench.step(step).1
}

fn credit(bench: &mut Bench, id: ConsumerId, limit: u32) -> Vec<Delivery> {
    let step = |queue: &mut Queue, cx: &mut Context<'_>| queue.drain(cx, id, limit);
    bench.step(step).1
}

fn dispatch(bench: &mut Bench) -> Vec<i64> {
    numbers(&messages(bench.step(Queue::dispatch).1))
}

#[test]
fn a_browser_is_shown_what_can_be_received_once_in_order_and_changes_nothing() {
    let mut bench = Bench::new(Description::default());
    for _ in 0..4 {
        bench.send(None, None);
    }
    bench.send(None, Some(5_000));
    let locked = bench.receive(1);
    let lines = bench.journal.lines.len();
    let shown = messages(browser(&mut bench, TWO, 2));
    assert_eq!(numbers(&shown), [2, 3]);
    assert!(
        shown
            .iter()
            .all(|it| it.mode == ReceiveMode::ReceiveAndDelete)
    );
    assert!(shown.iter().all(|it| it.stamps.locked_until.is_none()));
    let more = credit(&mut bench, TWO, 9);
    assert!(
        matches!(more[..], [Delivery::Message(..), Delivery::Drained(TWO, 9)]),
        "{more:?}"
    );
    assert_eq!(bench.journal.lines.len(), lines, "nothing is written down");
    bench.settle(locked[0].token, Settlement::Release).unwrap();
    assert_eq!(numbers(&bench.receive(9)), [1, 2, 3, 4]);
}

#[test]
fn a_browser_goes_on_with_what_comes_later() {
    let mut bench = Bench::new(Description::default());
    assert!(browser(&mut bench, ONE, 10).is_empty());
    bench.send(None, None);
    assert_eq!(dispatch(&mut bench), [1]);
    bench.send(None, None);
    assert_eq!(dispatch(&mut bench), [2]);
    assert!(dispatch(&mut bench).is_empty());
}

#[test]
fn a_browser_of_a_partitioned_queue_is_shown_each_message_once() {
    let mut bench = Bench::new(Description {
        partitioned: true,
        ..Description::default()
    });
    let mut sent: Vec<i64> = (0..40)
        .map(|_| i64::try_from(bench.send(None, None)).unwrap())
        .collect();
    let mut shown = numbers(&messages(browser(&mut bench, ONE, 30)));
    sent.extend((0..7).map(|_| i64::try_from(bench.send(None, None)).unwrap()));
    shown.extend(numbers(&messages(credit(&mut bench, ONE, 100))));
    shown.sort_unstable();
    sent.sort_unstable();
    assert_eq!(shown, sent);
}

/// A message of one application-property, `n`.
fn message(n: u8) -> Message {
    let map = [0x00, 0x53, 0x74, 0xc1, 6, 2, 0xa1, 1, b'n', 0x54, n];
    let body = [0x00, 0x53, 0x75, 0xa0, 1, b'x'];
    Message::parse([&map[..], &body].concat().into()).unwrap()
}

/// Sends messages of these numbers; returns them by the positions of their bytes.
fn send_all(bench: &mut Bench, all: impl IntoIterator<Item = u8>) -> BTreeMap<u64, Message> {
    let mut sent = BTreeMap::new();
    for n in all {
        let message = message(n);
        let arrival = Arrival {
            body: message.bytes(),
            ..Arrival::default()
        };
        let taken = bench.step(|queue, cx| queue.enqueue(cx, arrival)).0;
        sent.insert(taken.unwrap().body.position, message);
    }
    sent
}

fn select(bench: &mut Bench, id: ConsumerId, text: &str, credit: u32) -> Vec<Delivery> {
    let selector = Arc::new(selector(text).unwrap());
    let step = |queue: &mut Queue, cx: &mut Context<'_>| {
        let selection = Selection {
            selector: Some(selector),
            bytes_max: None,
        };
        queue.add_scan(id, ReceiveMode::PeekLock, ScanMode::Consume, selection);
        queue.drain(cx, id, credit);
    };
    bench.step(step).1
}

fn evaluate(bench: &mut Bench, loaded: &BTreeMap<u64, Message>) -> Vec<Delivery> {
    bench
        .step(|queue, cx| {
            queue.evaluate_selectors(cx, &|at| loaded.get(&at), &mut Share::default());
        })
        .1
}

#[test]
fn who_selects_gets_what_matches_and_leaves_the_rest() {
    let mut bench = Bench::new(Description::default());
    let sent = send_all(&mut bench, [1, 5, 2, 6, 3, 7]);
    // Neither a message nor the end of the drain is told before the bytes are there.
    assert!(select(&mut bench, ONE, "n > 4", 2).is_empty());
    assert!(bench.main.is_undecided());
    let wanted = bench.main.undecided(4);
    let read =
        |(_, body): &(SequenceNumber, BodyRef)| (body.position, sent[&body.position].clone());
    assert_eq!(wanted.len(), 4);
    let first = wanted.iter().map(read).collect();
    let given = evaluate(&mut bench, &first);
    assert!(
        matches!(
            given[..],
            [
                Delivery::Message(..),
                Delivery::Message(..),
                Delivery::Drained(ONE, 2)
            ]
        ),
        "{given:?}"
    );
    assert_eq!(numbers(&messages(given)), [2, 4]);
    assert!(!bench.main.is_undecided(), "it has no credit");
    assert_eq!(numbers(&bench.receive_by(TWO, 9)), [1, 3, 5, 6]);
}

#[test]
fn what_comes_back_is_looked_at_again() {
    let mut bench = Bench::new(Description::default());
    let sent = send_all(&mut bench, [5, 5, 1]);
    let held = bench.receive_by(TWO, 1);
    select(&mut bench, ONE, "n = 5", 9);
    assert_eq!(numbers(&messages(evaluate(&mut bench, &sent))), [2]);
    bench.settle(held[0].token, Settlement::Release).unwrap();
    credit(&mut bench, ONE, 20);
    assert_eq!(bench.main.undecided(9).len(), 1);
    assert_eq!(numbers(&messages(evaluate(&mut bench, &sent))), [1]);
    assert_eq!(numbers(&bench.receive_by(TWO, 9)), [3]);
}

#[test]
fn who_takes_only_small_messages_leaves_the_large_ones_to_others() {
    let mut bench = Bench::new(Description::default());
    let large = vec![0; 2_000];
    for body in [&large[..], b"small"] {
        let arrival = Arrival {
            body,
            ..Arrival::default()
        };
        bench.step(|queue, cx| queue.enqueue(cx, arrival));
    }
    let step = |queue: &mut Queue, cx: &mut Context<'_>| {
        let selection = Selection {
            selector: None,
            bytes_max: Some(1_000),
        };
        queue.add_scan(ONE, ReceiveMode::PeekLock, ScanMode::Consume, selection);
        queue.set_credit(cx, ONE, 10);
    };
    let got = messages(bench.step(step).1);
    assert_eq!(numbers(&got), [2]);
    assert_eq!(numbers(&bench.receive_by(TWO, 10)), [1]);
}
