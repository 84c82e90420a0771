//! What a transaction may span and hold, and in which order it is done.

use super::tests::{Bench, message, to_coordinator};
use super::*;
use bytes::Bytes;
use jitney_amqp::Outcome;
use jitney_amqp::SessionId;
use jitney_base::ids::LockToken;
use jitney_base::ids::SequenceNumber;
use jitney_base::memory::Budget;
use jitney_base::memory::Memory;
use jitney_base::time::Millis;
use jitney_base::time::Timestamp;
use jitney_broker::limits;
use jitney_broker::namespace::LostLock;
use jitney_broker::namespace::Operation;
use jitney_broker::namespace::transactions::Done;
use jitney_broker::namespace::{Denied, DeniedKind};
use jitney_message::{Draft, Message};
use jitney_queue::Description;
use jitney_queue::{ReceiveMode, Settlement};

const ONE: ConnectionId = ConnectionId(1);
const OTHER: ConnectionId = ConnectionId(2);
const COORDINATOR: LinkId = LinkId(1);

/// Declares a transaction on a connection.
fn declare(bench: &mut Bench, connection: ConnectionId) -> Bytes {
    let session = SessionId(0);
    let link = Link::Coordinator { session };
    let links = &mut bench.gateway.connection(connection).links;
    links.insert(COORDINATOR, link);
    let body = vec![0x00, 0x53, 0x77, 0x00, 0x53, 0x31, 0x45];
    let declare = to_coordinator(COORDINATOR, body);
    match bench.run(|gateway, cx| gateway.control(cx, connection, &declare)) {
        Ok((Outcome::Declared(id), 0)) => id,
        other => panic!("{other:?}"),
    }
}

/// Commits a transaction, or rolls it back.
fn discharge(
    bench: &mut Bench,
    connection: ConnectionId,
    id: &[u8],
    fail: bool,
) -> Result<Outcome, Denied> {
    let mut body = vec![0x00, 0x53, 0x77, 0x00, 0x53, 0x32, 0xc0, 12, 2, 0xa0, 8];
    body.extend_from_slice(id);
    body.push(if fail { 0x41 } else { 0x42 });
    let discharge = to_coordinator(COORDINATOR, body);
    let outcome = bench.run(|gateway, cx| gateway.control(cx, connection, &discharge));
    outcome.map(|(outcome, _)| outcome)
}

#[test]
fn what_goes_by_way_of_an_entity_is_scheduled_at_the_commit_in_its_destination() {
    let mut bench = Bench::new();
    let id = declare(&mut bench, ONE);
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "target", Description::default()))
        .unwrap();
    let [via, target] = ["q", "target"].map(|path| bench.id(path));
    let later = bench.now.after(Millis::from_secs(60));
    let mut onward = send(via, due(later));
    if let Operation::Send { destination, .. } = &mut onward {
        *destination = Some("target".into());
    }
    enlist(&mut bench, ONE, &id, onward).unwrap();
    let scheduled = |bench: &Bench, id| bench.gateway.namespaces.queue(id).unwrap().scheduled();
    assert_eq!(scheduled(&bench, target), 0);
    assert_eq!(
        discharge(&mut bench, ONE, &id, false),
        Ok(Outcome::Accepted)
    );
    assert_eq!([via, target].map(|id| scheduled(&bench, id)), [0, 1]);
    assert_eq!(bench.seen("q"), []);
    bench.check_replay();
}

/// Does something in a transaction; returns why it was refused.
fn enlist(
    bench: &mut Bench,
    connection: ConnectionId,
    id: &[u8],
    operation: Operation,
) -> Result<(), (DeniedKind, String)> {
    let enlisted = bench.run(|gateway, cx| gateway.enlist(cx, connection, id, operation, None));
    enlisted.map_err(|denied| (denied.kind, denied.text))
}

fn send(queue: EntityId, message: Message) -> Operation {
    Operation::Send {
        queue,
        destination: None,
        group: None,
        messages: vec![message],
    }
}

fn complete(queue: EntityId, token: LockToken) -> Operation {
    Operation::Settle {
        queue,
        token,
        settlement: Settlement::Complete,
        lost: LostLock::Message,
    }
}

fn drafted(draft: &Draft) -> Message {
    let composer = draft.begin(Timestamp::EPOCH);
    Message::parse(composer.finish()).unwrap()
}

fn keyed(key: &str) -> Message {
    drafted(&Draft {
        partition_key: Some(key.to_owned()),
        ..Draft::default()
    })
}

fn due(at: Timestamp) -> Message {
    drafted(&Draft {
        due: Some(at),
        ..Draft::default()
    })
}

/// A bench with the partitioned queue `p`.
fn partitioned() -> (Bench, EntityId) {
    let mut bench = Bench::new();
    let description = Description {
        partitioned: true,
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "p", description))
        .unwrap();
    let queue = bench.id("p");
    (bench, queue)
}

/// Locks so many messages of a queue.
fn locked(bench: &mut Bench, queue: EntityId, count: u32) -> Vec<LockToken> {
    let consumer = consumer_id(ONE, LinkId(9));
    bench.told.clear();
    bench.run(|gateway, cx| {
        gateway.with_queue(cx, queue, |queue, cx| {
            queue.add_consumer(consumer, ReceiveMode::PeekLock);
            queue.set_credit(cx, consumer, count);
        });
    });
    let told = bench.told.drain(..);
    let tokens = told.filter_map(|routed| match routed.reply {
        Reply::Deliver(_, handover) => Some(handover.token),
        _ => None,
    });
    tokens.collect()
}

#[test]
fn the_sends_of_a_transaction_have_one_partition() {
    let (mut bench, queue) = partitioned();
    let id = declare(&mut bench, ONE);
    for _ in 0..2 {
        enlist(&mut bench, ONE, &id, send(queue, keyed("1"))).unwrap();
    }
    let (kind, text) = enlist(&mut bench, ONE, &id, send(queue, keyed("2"))).unwrap_err();
    assert_eq!(kind, DeniedKind::NotAllowed);
    assert!(
        text.starts_with("Local transactions cannot span multiple entities or partitions. All"),
        "{text}"
    );
    let outcome = discharge(&mut bench, ONE, &id, false);
    assert!(outcome.is_err(), "{outcome:?}");
    assert!(bench.seen("p").is_empty());

    let id = declare(&mut bench, ONE);
    let (kind, text) = enlist(&mut bench, ONE, &id, send(queue, message("x"))).unwrap_err();
    assert_eq!(kind, DeniedKind::NotAllowed);
    assert!(text.contains("needs a partition key"), "{text}");

    let id = declare(&mut bench, ONE);
    enlist(&mut bench, ONE, &id, send(queue, keyed("2"))).unwrap();
    assert_eq!(
        discharge(&mut bench, ONE, &id, false),
        Ok(Outcome::Accepted)
    );
    assert_eq!(bench.seen("p").len(), 1);
}

#[test]
fn a_completion_in_another_partition_is_refused_and_its_lock_is_given_up() {
    let (mut bench, queue) = partitioned();
    bench.send("p", keyed("1"));
    bench.send("p", keyed("2"));
    let tokens = locked(&mut bench, queue, 2);
    let id = declare(&mut bench, ONE);
    enlist(&mut bench, ONE, &id, complete(queue, tokens[0])).unwrap();
    let (kind, _) = enlist(&mut bench, ONE, &id, complete(queue, tokens[1])).unwrap_err();
    assert_eq!(kind, DeniedKind::NotAllowed);
    assert_eq!(discharge(&mut bench, ONE, &id, true), Ok(Outcome::Accepted));
    let mut settle = |token| {
        let lost = LostLock::Message;
        let settled = bench.run(|gateway, cx| {
            gateway
                .namespaces
                .settle(cx, queue, token, lost, Settlement::Complete)
        });
        settled.map_err(|denied| denied.kind)
    };
    assert_eq!(settle(tokens[0]), Ok(()));
    assert_eq!(settle(tokens[1]), Err(DeniedKind::MessageLockLost));
    assert_eq!(bench.seen("p").len(), 1);
}

#[test]
fn what_goes_by_way_of_a_partitioned_entity_is_where_its_via_key_says() {
    let via = |key: &str| {
        let mut bytes = vec![0x00, 0x53, 0x72, 0xc1, 28, 2, 0xa3, 23];
        bytes.extend_from_slice(b"x-opt-via-partition-key");
        bytes.extend_from_slice(&[0xa1, 1]);
        bytes.extend_from_slice(key.as_bytes());
        bytes[4] = u8::try_from(bytes.len() - 5).unwrap();
        bytes.extend_from_slice(&[0x00, 0x53, 0x75, 0xa0, 0]);
        Message::parse(bytes.into()).unwrap()
    };
    let (mut bench, queue) = partitioned();
    let other = bench.id("q");
    bench.send("p", via("1"));
    let tokens = locked(&mut bench, queue, 1);
    let through = |message| Operation::Send {
        queue: other,
        destination: None,
        group: Some(queue),
        messages: vec![message],
    };
    for (key, fits) in [("1", true), ("2", false)] {
        let id = declare(&mut bench, ONE);
        enlist(&mut bench, ONE, &id, complete(queue, tokens[0])).unwrap();
        enlist(&mut bench, ONE, &id, through(message("any"))).unwrap();
        let enlisted = enlist(&mut bench, ONE, &id, through(via(key)));
        assert_eq!(enlisted.is_ok(), fits, "{enlisted:?}");
        discharge(&mut bench, ONE, &id, true).unwrap();
    }
}

#[test]
fn a_topic_and_its_subscriptions_are_one_entity_of_a_transaction() {
    let mut bench = Bench::new();
    let (topic, subscription) = (bench.id("t"), bench.id("t/Subscriptions/a"));
    bench.send("t", message("x"));
    let tokens = locked(&mut bench, subscription, 1);
    let id = declare(&mut bench, ONE);
    enlist(&mut bench, ONE, &id, send(topic, message("y"))).unwrap();
    enlist(&mut bench, ONE, &id, complete(subscription, tokens[0])).unwrap();
    let queue = bench.id("q");
    let (kind, text) = enlist(&mut bench, ONE, &id, send(queue, message("z"))).unwrap_err();
    assert_eq!(kind, DeniedKind::NotAllowed);
    assert!(
        text.contains("began with 't': only sends of a cross-entity transaction go to 'q'"),
        "{text}"
    );
}

#[test]
fn messages_of_a_transaction_have_their_numbers_in_the_order_in_which_they_were_asked_for() {
    let mut bench = Bench::new();
    let queue = bench.id("q");
    let soon = bench.now.after(Millis::from_secs(60));
    let id = declare(&mut bench, ONE);
    enlist(&mut bench, ONE, &id, send(queue, message("first"))).unwrap();
    let now = bench.now;
    for at in [now, soon] {
        bench.run(|gateway, cx| {
            let scheduled = gateway.enlist_schedule(cx, ONE, &id, queue, due(at));
            scheduled.unwrap();
        });
    }
    enlist(&mut bench, ONE, &id, send(queue, message("last"))).unwrap();
    assert_eq!(
        discharge(&mut bench, ONE, &id, false),
        Ok(Outcome::Accepted)
    );
    let states = |bench: &Bench| {
        let queue = bench.gateway.namespaces.queue(queue).unwrap();
        let found = queue.browse(SequenceNumber(0), 100).into_iter();
        let found = found.map(|found| (found.stamps.sequence_number, found.body.length));
        found.collect::<Vec<_>>()
    };
    let length = |message: &Message| u32::try_from(message.bytes().len()).unwrap();
    let (first, scheduled, last) = (
        length(&message("first")),
        length(&due(now)),
        length(&message("last")),
    );
    // Numbers 1 and 2 were told of the scheduled ones: one is scheduled still, one has a new number.
    let expected = vec![(2, scheduled), (3, first), (4, scheduled), (5, last)];
    assert_eq!(states(&bench), expected);
    bench.now = soon;
    bench.run(|_, _| ());
    let expected = vec![(3, first), (4, scheduled), (5, last), (6, scheduled)];
    assert_eq!(states(&bench), expected);
    bench.check_replay();
}

#[test]
fn open_transactions_hold_a_share_of_the_memory_together() {
    const TOTAL: usize = 4_000_000;
    let mut bench = Bench::new();
    let memory = Memory::new(
        Budget {
            total: TOTAL,
            ..Budget::default()
        },
        None,
    );
    bench.gateway.namespaces.replace_memory(memory);
    let queue = bench.id("q");
    let large = |bytes: usize| {
        let mut composer = Draft::default().begin(Timestamp::EPOCH);
        composer.push(&vec![0; bytes]);
        Message::parse(composer.finish()).unwrap()
    };
    let all = TOTAL / limits::TRANSACTIONS_SHARE;
    let own = all / limits::CONNECTION_SHARE;
    let fill = |bench: &mut Bench, connection: ConnectionId| {
        let mut ids = Vec::new();
        for _ in 0..10 {
            let id = declare(bench, connection);
            let enlisted = enlist(bench, connection, &id, send(queue, large(own / 4)));
            ids.push(id);
            if let Err(refused) = enlisted {
                return (ids, refused);
            }
        }
        panic!("all was taken");
    };
    let counted = bench.gateway.namespaces.memory().counted();
    let (ids, (condition, text)) = fill(&mut bench, ONE);
    assert_eq!((ids.len(), condition), (4, DeniedKind::Limit));
    assert!(
        text.contains("transactions of the connection would hold"),
        "{text}"
    );
    let (_, (_, text)) = fill(&mut bench, OTHER);
    assert!(
        text.contains("transactions of the connection would hold"),
        "{text}"
    );
    let third = ConnectionId(3);
    let id = declare(&mut bench, third);
    enlist(&mut bench, third, &id, send(queue, large(own / 4))).unwrap();
    let (ids, (condition, text)) = fill(&mut bench, third);
    assert_eq!((ids.len(), condition), (1, DeniedKind::Limit));
    assert!(
        text.contains("transactions of all connections would hold"),
        "{text}"
    );
    let held = bench.gateway.namespaces.memory().counted() - counted;
    assert_eq!(held, bench.gateway.namespaces.transactions().bytes());
    assert!(held <= all, "{held}");
    // Who sends without a transaction has room, and so has the next one when these have ended.
    bench.send("q", large(own / 4));
    for connection in [ONE, OTHER, third] {
        bench.run(|gateway, _| gateway.roll_back(connection, None));
    }
    assert_eq!(bench.gateway.namespaces.transactions().bytes(), 0);
    let id = declare(&mut bench, third);
    enlist(&mut bench, third, &id, send(queue, large(own / 4))).unwrap();
}

#[test]
fn a_commit_tells_what_each_operation_has_done() {
    let mut bench = Bench::new();
    let queue = bench.id("q");
    bench.send("q", message("w"));
    let tokens = locked(&mut bench, queue, 1);
    let id = declare(&mut bench, ONE);
    enlist(&mut bench, ONE, &id, complete(queue, tokens[0])).unwrap();
    enlist(&mut bench, ONE, &id, send(queue, message("x"))).unwrap();
    let scheduled = due(bench.now.after(Millis::from_secs(9)));
    let number = bench
        .run(|gateway, cx| gateway.enlist_schedule(cx, ONE, &id, queue, scheduled))
        .unwrap();
    let transaction = jitney_broker::namespace::transactions::number(&id).unwrap();
    let mut carried_out = Vec::new();
    bench
        .run(|gateway, cx| {
            gateway.with_namespaces(cx, |namespaces, cx| {
                namespaces.commit(cx, transaction, &mut |done| carried_out.push(done))
            })
        })
        .unwrap();
    let done: Vec<_> = carried_out
        .iter()
        .map(|it| (it.what, it.numbers.clone()))
        .collect();
    let next = SequenceNumber(number.0 + 1);
    let wanted = [
        (Done::Settled("completed"), vec![SequenceNumber(1)]),
        (Done::Sent, vec![next]),
        (Done::Scheduled, vec![number]),
    ];
    assert_eq!(done, wanted);
    assert!(carried_out.iter().all(|it| it.queue == queue));
}

#[test]
fn a_transaction_has_a_hundred_messages_beside_its_settlements() {
    let mut bench = Bench::new();
    let queue = bench.id("q");
    bench.send("q", message("v"));
    bench.send("q", message("w"));
    let tokens = locked(&mut bench, queue, 2);
    let full = |bench: &mut Bench| {
        let id = declare(bench, ONE);
        for _ in 0..limits::TRANSACTION_MESSAGES_MAX {
            enlist(bench, ONE, &id, send(queue, keyed("k"))).unwrap();
        }
        id
    };
    let id = full(&mut bench);
    enlist(&mut bench, ONE, &id, complete(queue, tokens[0])).unwrap();
    let committed = discharge(&mut bench, ONE, &id, false);
    assert_eq!(committed.unwrap(), Outcome::Accepted, "as the service does");
    let id = full(&mut bench);
    enlist(&mut bench, ONE, &id, complete(queue, tokens[1])).unwrap();
    let refused = enlist(&mut bench, ONE, &id, send(queue, keyed("k")));
    let (kind, text) = refused.unwrap_err();
    assert_eq!(kind, DeniedKind::Limit);
    assert!(text.contains("more than 100 messages"), "{text}");
    assert!(discharge(&mut bench, ONE, &id, false).is_err());
}

#[test]
fn the_state_of_a_session_is_set_by_the_commit_of_its_holder() {
    let mut bench = Bench::new();
    let description = Description {
        requires_session: true,
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "s", description))
        .unwrap();
    let queue = bench.id("s");
    let holder = consumer_id(ONE, LinkId(9));
    bench.run(|gateway, cx| {
        gateway.with_queue(cx, queue, |queue, cx| {
            let wanted = jitney_queue::Wanted::Named("a");
            queue.accept_session(cx, holder, ReceiveMode::PeekLock, wanted)
        })
    });
    let set = |state: &'static [u8]| Operation::SetState {
        queue,
        message_session: "a".to_owned(),
        holder,
        state: Some(Bytes::from_static(state)),
    };
    let state = |bench: &Bench| {
        let queue = bench.gateway.namespaces.queue(queue).unwrap();
        queue.session_state("a").cloned()
    };
    let id = declare(&mut bench, ONE);
    enlist(&mut bench, ONE, &id, set(b"rolled back")).unwrap();
    discharge(&mut bench, ONE, &id, true).unwrap();
    assert_eq!(state(&bench), None);
    let id = declare(&mut bench, ONE);
    enlist(&mut bench, ONE, &id, set(b"first")).unwrap();
    enlist(&mut bench, ONE, &id, set(b"second")).unwrap();
    assert_eq!(state(&bench), None, "before the commit");
    discharge(&mut bench, ONE, &id, false).unwrap();
    assert_eq!(state(&bench).as_deref(), Some(&b"second"[..]));
    let id = declare(&mut bench, ONE);
    enlist(&mut bench, ONE, &id, set(b"lost")).unwrap();
    bench.run(|gateway, cx| {
        gateway.with_queue(cx, queue, |queue, cx| queue.release_session(cx, holder));
    });
    let refused = discharge(&mut bench, ONE, &id, false).unwrap_err();
    assert_eq!(refused.kind, DeniedKind::TransactionRollback);
    assert_eq!(state(&bench).as_deref(), Some(&b"second"[..]));
}
