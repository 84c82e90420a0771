//! Messages taken in, handed out and settled without AMQP, by who may and by who may not.

use super::*;
use crate::StepReply;
use crate::amqp::tests::{Bench, inquiry};
use jitney_base::address::SubQueue;
use jitney_base::ids::{ConnectionId, RequestId};
use jitney_base::rights::Rights;
use jitney_base::time::{ClockStep, Millis};
use jitney_broker::access::Authority;
use jitney_broker::namespace::{Damage, Denied, DeniedKind};
use jitney_message::Draft;
use jitney_queue::{Description, Handover, Status};

/// How long receives wait.
const WAIT: Millis = Millis::from_secs(30);
/// A millisecond less.
const NEARLY: Millis = Millis::from_millis(29_999);

fn message(word: &str) -> Message {
    let mut composer = Draft::default().begin(Timestamp::EPOCH);
    composer.push(word.as_bytes());
    Message::parse(composer.finish()).unwrap()
}

/// A client without a key, which may do everything here.
fn requester(gateway: &mut Gateway, cx: &StepContext<'_>) -> Requester {
    let authority = gateway.authorize(cx.now, &inquiry(None, None, ""));
    Requester {
        host: None,
        authority: authority.unwrap(),
    }
}

fn request<R: Request>(bench: &mut Bench, request: R) -> Result<R::Answer, Denied> {
    let done = bench.run(|gateway, cx| {
        let requester = requester(gateway, cx);
        gateway.serve(cx, &requester, request)
    });
    bench.check_replay();
    done
}

fn send(bench: &mut Bench, path: &str, words: &[&str]) -> Result<Vec<SequenceNumber>, Denied> {
    let sent = SendMessages {
        path: path.to_owned(),
        messages: words.iter().map(|word| message(word)).collect(),
        sent_as: SentAs::Messages,
    };
    request(bench, sent)
}

fn settle(bench: &mut Bench, token: LockToken, settlement: Settlement) -> Result<(), Denied> {
    let path = "q".to_owned();
    request(
        bench,
        SettleOne {
            path,
            token,
            settlement,
        },
    )
}

fn renew(bench: &mut Bench, token: LockToken) -> Result<Timestamp, Denied> {
    let path = "q".to_owned();
    request(bench, RenewOne { path, token })
}

fn receive(bench: &mut Bench, request: u64, path: &str, mode: ReceiveMode) {
    let path = path.to_owned();
    bench.run(|gateway, cx| {
        let requester = requester(gateway, cx);
        let wait = WAIT;
        let receive = Receive { path, mode, wait };
        let request = RequestId(request);
        gateway.receive_one(cx, request, &requester, &receive);
    });
    bench.gateway.check();
}

/// Takes what was told last, which was a receive's.
fn told(bench: &mut Bench) -> (u64, ReceiveOutcome) {
    let reply = bench.received.pop().unwrap();
    (reply.request.0, reply.outcome)
}

/// Takes what was told last: a message, to a receive that is answered with it.
fn handed(bench: &mut Bench) -> Handover {
    match told(bench) {
        (request, ReceiveOutcome::Message(handed_out)) => {
            bench.gateway.receive_answered(RequestId(request));
            handed_out.handover
        }
        other => panic!("{other:?}"),
    }
}

fn refused(bench: &mut Bench) -> Denied {
    match told(bench) {
        (_, ReceiveOutcome::Refused(denied)) => denied,
        other => panic!("{other:?}"),
    }
}

fn cancel(bench: &mut Bench, request: u64) {
    bench.run(|gateway, cx| gateway.cancel_receive(cx, RequestId(request)));
    bench.gateway.check();
}

/// Lets time pass.
fn wait(bench: &mut Bench, millis: Millis) {
    bench.now = bench.now.after(millis);
    bench.run(|_, _| ());
    bench.gateway.check();
}

#[test]
fn a_message_is_sent_locked_renewed_given_back_and_completed() {
    let mut bench = Bench::new();
    let numbers = vec![SequenceNumber(1)];
    assert_eq!(send(&mut bench, "q", &["a"]), Ok(numbers));
    receive(&mut bench, 1, "q", ReceiveMode::PeekLock);
    let first = handed(&mut bench);
    assert_eq!(first.stamps.delivery_count, 0);
    bench.now = bench.now.after(Millis::from_secs(20));
    let until = bench.now.after(Description::default().lock_duration);
    assert_eq!(renew(&mut bench, first.token), Ok(until));
    let given_back = settle(&mut bench, first.token, Settlement::Abandon(None));
    assert_eq!(given_back, Ok(()));
    receive(&mut bench, 2, "Q", ReceiveMode::PeekLock);
    let second = handed(&mut bench);
    assert_eq!(second.stamps.delivery_count, 1);
    assert_ne!(first.token, second.token);
    let lost = first.token;
    let refused = [
        settle(&mut bench, lost, Settlement::Complete),
        settle(&mut bench, lost, Settlement::Abandon(None)),
        renew(&mut bench, lost).map(|_| ()),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().kind, DeniedKind::MessageLockLost);
    }
    let done = settle(&mut bench, second.token, Settlement::Complete);
    assert_eq!(done, Ok(()));
    let queue = bench.gateway.namespaces().find(&address("q")).unwrap();
    assert!(queue.is_empty());
}

fn address(path: &str) -> EntityAddress {
    EntityAddress {
        path: path.to_owned(),
        queue: SubQueue::Main,
    }
}

#[test]
fn a_receive_waits_for_one_message_and_takes_no_more() {
    let mut bench = Bench::new();
    receive(&mut bench, 1, "q", ReceiveMode::ReceiveAndDelete);
    assert!(bench.received.is_empty());
    assert_eq!(
        send(&mut bench, "q", &["a", "b"]),
        Ok(vec![SequenceNumber(1), SequenceNumber(2)])
    );
    handed(&mut bench);
    assert!(bench.received.is_empty());
    let queue = bench.gateway.namespaces().find(&address("q")).unwrap();
    assert_eq!(queue.len(), 1);
    bench.check_replay();
}

#[test]
fn what_is_given_back_unread_was_not_delivered() {
    let mut bench = Bench::new();
    send(&mut bench, "q", &["a"]).unwrap();
    receive(&mut bench, 1, "q", ReceiveMode::PeekLock);
    let token = handed(&mut bench).token;
    let queue = bench.id("q");
    bench.run(|gateway, cx| gateway.return_received(cx, queue, token));
    receive(&mut bench, 2, "q", ReceiveMode::PeekLock);
    let second = handed(&mut bench);
    assert_eq!(second.stamps.delivery_count, 0);
    // A lock that has gone gives nothing back.
    bench.run(|gateway, cx| gateway.return_received(cx, queue, token));
    receive(&mut bench, 3, "q", ReceiveMode::PeekLock);
    assert!(bench.received.is_empty());
}

#[test]
fn a_receive_that_has_waited_long_enough_is_told_so() {
    let mut bench = Bench::new();
    receive(&mut bench, 1, "q", ReceiveMode::PeekLock);
    let until = bench.now.after(WAIT);
    assert_eq!(bench.gateway.poll_timeout(), Some(until));
    wait(&mut bench, NEARLY);
    assert!(bench.received.is_empty());
    wait(&mut bench, Millis::from_millis(1));
    assert!(matches!(told(&mut bench), (1, ReceiveOutcome::Nothing)));
    send(&mut bench, "q", &["a"]).unwrap();
    assert!(bench.received.is_empty());
    assert!(!bench.gateway.has_open_receives());
}

#[test]
fn a_receive_without_a_wait_takes_what_is_there_or_nothing() {
    let mut bench = Bench::new();
    send(&mut bench, "q", &["a"]).unwrap();
    let mut outcomes = Vec::new();
    for request in 1..=2 {
        bench.run(|gateway, cx| {
            let requester = requester(gateway, cx);
            let receive = Receive {
                path: "q".to_owned(),
                mode: ReceiveMode::ReceiveAndDelete,
                wait: Millis::from_secs(0),
            };
            let request = RequestId(request);
            gateway.receive_one(cx, request, &requester, &receive);
        });
        outcomes.push(told(&mut bench).1);
    }
    assert!(
        matches!(
            outcomes[..],
            [ReceiveOutcome::Message(_), ReceiveOutcome::Nothing]
        ),
        "{outcomes:?}"
    );
}

#[test]
fn a_receive_waits_for_as_long_as_before_when_the_clock_is_set() {
    for millis in [-1_000_000, 1_000_000] {
        let mut bench = Bench::new();
        receive(&mut bench, 1, "q", ReceiveMode::PeekLock);
        let step = ClockStep::from_millis(millis);
        bench.now = bench.now.moved(step);
        let now = bench.now;
        bench.gateway.follow_clock(now, step);
        wait(&mut bench, NEARLY);
        assert!(bench.received.is_empty());
        wait(&mut bench, Millis::from_millis(1));
        assert!(matches!(told(&mut bench), (1, ReceiveOutcome::Nothing)));
    }
}

#[test]
fn a_receive_that_is_cancelled_takes_no_message() {
    for mode in [ReceiveMode::PeekLock, ReceiveMode::ReceiveAndDelete] {
        let mut bench = Bench::new();
        receive(&mut bench, 1, "q", mode);
        cancel(&mut bench, 1);
        assert!(matches!(told(&mut bench), (1, ReceiveOutcome::Nothing)));
        send(&mut bench, "q", &["a"]).unwrap();
        assert!(bench.received.is_empty());
        // One whose message is on its way gets that, and no other.
        receive(&mut bench, 2, "q", mode);
        cancel(&mut bench, 2);
        handed(&mut bench);
        assert!(bench.received.is_empty());
        // What has gone is not there to be cancelled.
        cancel(&mut bench, 2);
        assert!(!bench.gateway.has_open_receives());
    }
}

#[test]
fn receives_and_links_have_their_turns_together() {
    let mut bench = Bench::new();
    receive(&mut bench, 1, "q", ReceiveMode::PeekLock);
    bench.run(|gateway, cx| {
        let link = jitney_amqp::LinkId(0);
        gateway.attach_receiver(cx, ConnectionId(1), link, "q");
    });
    receive(&mut bench, 2, "q", ReceiveMode::PeekLock);
    send(&mut bench, "q", &["a", "b", "c"]).unwrap();
    let second = told(&mut bench);
    let first = told(&mut bench);
    assert_eq!((first.0, second.0), (1, 2));
    assert_eq!(bench.told.len(), 1);
}

#[test]
fn what_ends_an_entity_or_forbids_to_receive_ends_its_receives() {
    let mut bench = Bench::new();
    receive(&mut bench, 1, "q", ReceiveMode::PeekLock);
    receive(&mut bench, 2, "t/Subscriptions/a", ReceiveMode::PeekLock);
    let disabled = Description {
        status: Status::ReceiveDisabled,
        ..Description::default()
    };
    bench.run(|gateway, cx| gateway.ensure_entity(cx, "q", disabled).unwrap());
    assert!(matches!(refused(&mut bench).kind, DeniedKind::Disabled));
    assert!(bench.received.is_empty());
    bench.run(|gateway, cx| assert!(gateway.delete_entity(cx, "t")));
    assert!(matches!(refused(&mut bench).kind, DeniedKind::NotFound));
    assert!(!bench.gateway.has_open_receives());
    bench.gateway.check();
}

#[test]
fn a_receive_whose_message_has_lost_its_bytes_waits_for_another() {
    for mode in [ReceiveMode::PeekLock, ReceiveMode::ReceiveAndDelete] {
        let mut bench = Bench::new();
        send(&mut bench, "q", &["a"]).unwrap();
        receive(&mut bench, 1, "q", mode);
        let damage = |bench: &mut Bench| match told(bench) {
            (request, ReceiveOutcome::Message(handed_out)) => {
                let damage = Damage {
                    body: handed_out.handover.body,
                    place: "here".to_owned(),
                };
                let contained = bench.run(|gateway, cx| {
                    gateway.received_damaged(cx, RequestId(request), &handed_out, &damage)
                });
                assert!(contained.is_some());
                bench.gateway.check();
            }
            other => panic!("{other:?}"),
        };
        damage(&mut bench);
        assert!(bench.received.is_empty());
        send(&mut bench, "q", &["b"]).unwrap();
        // Its client leaves meanwhile: it takes no other.
        cancel(&mut bench, 1);
        damage(&mut bench);
        assert!(matches!(told(&mut bench), (1, ReceiveOutcome::Nothing)));
        send(&mut bench, "q", &["c"]).unwrap();
        assert!(bench.received.is_empty());
        assert!(!bench.gateway.has_open_receives());
    }
}

#[test]
fn what_cannot_be_asked_of_an_entity_is_refused() {
    let mut bench = Bench::new();
    let sessions = Description {
        requires_session: true,
        ..Description::default()
    };
    bench.run(|gateway, cx| gateway.ensure_entity(cx, "s", sessions).unwrap());
    for path in ["nowhere", "q/$management", "$cbs"] {
        let done = send(&mut bench, path, &["a"]);
        assert!(
            matches!(
                done,
                Err(Denied {
                    kind: DeniedKind::NotFound,
                    ..
                })
            ),
            "{path}: {done:?}"
        );
        receive(&mut bench, 1, path, ReceiveMode::PeekLock);
        assert!(
            matches!(refused(&mut bench).kind, DeniedKind::NotFound),
            "{path}"
        );
    }
    for path in ["t/Subscriptions/a", "q/$DeadLetterQueue", "s"] {
        let done = send(&mut bench, path, &["a"]);
        assert!(
            matches!(
                done,
                Err(Denied {
                    kind: DeniedKind::NotAllowed,
                    ..
                })
            ),
            "{path}: {done:?}"
        );
    }
    for path in ["t", "s", "one"] {
        receive(&mut bench, 1, path, ReceiveMode::PeekLock);
        assert!(
            matches!(refused(&mut bench).kind, DeniedKind::NotAllowed),
            "{path}"
        );
    }
    let large = "x".repeat(1024 * 1024);
    let done = send(&mut bench, "q", &["small", &large]);
    assert!(
        matches!(
            done,
            Err(Denied {
                kind: DeniedKind::TooLarge,
                ..
            })
        ),
        "{done:?}"
    );
    assert!(
        bench
            .gateway
            .namespaces()
            .find(&address("q"))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_topic_takes_what_its_subscriptions_hand_out() {
    let mut bench = Bench::new();
    send(&mut bench, "t", &["a"]).unwrap();
    receive(&mut bench, 1, "t/subscriptions/a", ReceiveMode::PeekLock);
    let token = handed(&mut bench).token;
    receive(&mut bench, 2, "/t/Subscriptions/b", ReceiveMode::PeekLock);
    handed(&mut bench);
    let path = "t/subscriptions/a".to_owned();
    let settlement = Settlement::Complete;
    let done = request(
        &mut bench,
        SettleOne {
            path,
            token,
            settlement,
        },
    );
    assert_eq!(done, Ok(()));
}

#[test]
fn each_operation_needs_its_right() {
    let mut bench = Bench::new();
    for (right, sends) in [(Right::Send, true), (Right::Listen, false)] {
        let rights = Rights {
            send: right == Right::Send,
            listen: right == Right::Listen,
            manage: false,
        };
        let requester = Requester {
            host: None,
            authority: Authority::of("q", rights),
        };
        let (sent, received) = bench.run(|gateway, cx| {
            let send = SendMessages {
                path: "q".to_owned(),
                messages: vec![message("a")],
                sent_as: SentAs::Messages,
            };
            let sent = gateway.serve(cx, &requester, send);
            let receive = Receive {
                path: "q".to_owned(),
                mode: ReceiveMode::ReceiveAndDelete,
                wait: WAIT,
            };
            gateway.receive_one(cx, RequestId(1), &requester, &receive);
            let received = gateway.replies().pop();
            (sent, received)
        });
        let kept_out = matches!(
            sent,
            Err(Denied {
                kind: DeniedKind::Unauthorized,
                ..
            })
        );
        assert_eq!(kept_out, !sends, "{sent:?}");
        let kept_out = matches!(
            received,
            Some(StepReply::Receive(ReceiveReply {
                outcome: ReceiveOutcome::Refused(_),
                ..
            }))
        );
        assert_eq!(kept_out, sends, "{received:?}");
        let elsewhere = bench.run(|gateway, cx| {
            let send = SendMessages {
                path: "two".to_owned(),
                messages: vec![message("a")],
                sent_as: SentAs::Messages,
            };
            gateway.serve(cx, &requester, send)
        });
        assert!(matches!(
            elsewhere,
            Err(Denied {
                kind: DeniedKind::Unauthorized,
                ..
            })
        ));
    }
}

/// Sends messages as a batch in the JSON of the REST interface.
fn send_json(bench: &mut Bench, path: &str, body: &str) -> Result<Vec<SequenceNumber>, Denied> {
    let messages = crate::rest::batch(body.as_bytes(), Timestamp::EPOCH).unwrap();
    let path = path.to_owned();
    let sent_as = SentAs::Batch;
    request(
        bench,
        SendMessages {
            path,
            messages,
            sent_as,
        },
    )
}

#[test]
fn a_batch_over_http_to_a_partitioned_entity_is_for_one_partition_as_over_amqp() {
    let mut bench = Bench::new();
    for (path, detects_duplicates, requires_session) in [
        ("plain", false, false),
        ("detecting", true, false),
        ("sessions", false, true),
    ] {
        let description = Description {
            partitioned: true,
            detects_duplicates,
            requires_session,
            ..Description::default()
        };
        bench
            .run(|gateway, cx| gateway.ensure_entity(cx, path, description))
            .unwrap();
    }
    let batch = |properties: [&str; 2]| {
        let [one, two] =
            properties.map(|it| format!(r#"{{"Body":"x","BrokerProperties":{{{it}}}}}"#));
        format!("[{one},{two}]")
    };
    let keys = batch([r#""PartitionKey":"a""#, r#""PartitionKey":"b""#]);
    let sessions = batch([r#""SessionId":"a""#, r#""SessionId":"b""#]);
    let ids = batch([r#""MessageId":"1""#, r#""MessageId":"2""#]);
    for (path, body, words) in [
        ("plain", &keys, "distinct SessionId or PartitionKey is not"),
        (
            "sessions",
            &sessions,
            "distinct SessionId or PartitionKey is",
        ),
        (
            "detecting",
            &ids,
            "distinct SessionId, PartitionKey, or Mes",
        ),
    ] {
        let denied = send_json(&mut bench, path, body).unwrap_err();
        assert_eq!(denied.kind, DeniedKind::NotAllowed, "{path}");
        assert!(denied.text.contains(words), "{path}: {}", denied.text);
        assert!(bench.seen(path).is_empty(), "{path}: none is taken");
    }
    let together = batch([
        r#""PartitionKey":"a","MessageId":"1""#,
        r#""PartitionKey":"a","MessageId":"2""#,
    ]);
    for (path, body) in [("q", &keys), ("plain", &ids), ("detecting", &together)] {
        let sent = send_json(&mut bench, path, body);
        assert!(sent.is_ok(), "{path}: {sent:?}");
        assert_eq!(bench.seen(path).len(), 2, "{path}");
    }
}

#[test]
fn a_message_over_http_has_an_id_or_a_key_where_partitions_find_duplicates() {
    let mut bench = Bench::new();
    let description = Description {
        partitioned: true,
        detects_duplicates: true,
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "detecting", description))
        .unwrap();
    let words = "must have either PartitionKey or MessageId";
    for refused in [
        send(&mut bench, "detecting", &["x"]),
        send_json(&mut bench, "detecting", r#"[{"Body":"x"}]"#),
    ] {
        let denied = refused.unwrap_err();
        assert_eq!(denied.kind, DeniedKind::NotAllowed);
        assert!(denied.text.contains(words), "{}", denied.text);
    }
    for (number, properties) in [r#""MessageId":"1""#, r#""PartitionKey":"a""#]
        .into_iter()
        .enumerate()
    {
        let body = format!(r#"[{{"Body":"x","BrokerProperties":{{{properties}}}}}]"#);
        let sent = send_json(&mut bench, "detecting", &body);
        assert!(sent.is_ok(), "{properties}: {sent:?}");
        assert_eq!(bench.seen("detecting").len(), number + 1);
    }
}
