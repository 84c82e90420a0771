//! Messages taken in, handed out and settled without AMQP, by who may and by who may not.

use super::*;
use crate::address::SubQueue;
use crate::amqp::Event;
use crate::gateway::Report;
use crate::gateway::amqp::tests::{Bench, inquiry};
use crate::message::Draft;
use crate::namespace::{Denied, DeniedKind};
use crate::queue::{Description, Handover};
use crate::rights::Rights;
use crate::time::Millis;

const CONNECTION: ConnectionId = ConnectionId(9);

fn message(word: &str) -> Message {
    let mut composer = Draft::default().begin(Timestamp::EPOCH);
    composer.push(word.as_bytes());
    Message::parse(composer.finish()).unwrap()
}

fn operate(bench: &mut Bench, operation: MessageOperation) -> Result<MessageOutcome, Denied> {
    let done = bench.run(|gateway, cx| {
        let authority = gateway.authorize(cx.now, &inquiry(None, None, ""));
        gateway.message_operation(cx, None, &authority.unwrap(), operation)
    });
    bench.check_replay();
    done
}

fn send(bench: &mut Bench, path: &str, words: &[&str]) -> Result<MessageOutcome, Denied> {
    let operation = MessageOperation::Send {
        path: path.to_owned(),
        messages: words.iter().map(|word| message(word)).collect(),
    };
    operate(bench, operation)
}

fn action(
    bench: &mut Bench,
    token: LockToken,
    action: LockAction,
) -> Result<MessageOutcome, Denied> {
    let path = "q".to_owned();
    operate(
        bench,
        MessageOperation::Locked {
            path,
            token,
            action,
        },
    )
}

fn receive(bench: &mut Bench, link: u32, path: &str, mode: ReceiveMode) {
    let path = path.to_owned();
    bench.run(|gateway, cx| {
        let authority = gateway.authorize(cx.now, &inquiry(None, None, ""));
        let receive = Receive { path, mode };
        let at = (CONNECTION, LinkId(link));
        gateway.receive_one(cx, at, None, &authority.unwrap(), &receive);
    });
}

fn report(bench: &mut Bench, report: Report) {
    bench.run(|gateway, cx| gateway.apply(cx, CONNECTION, report));
}

/// Takes what was told last: a message.
fn handed(bench: &mut Bench) -> Handover {
    match bench.told.pop().map(|routed| routed.reply) {
        Some(Reply::Deliver(_, handover)) => handover,
        other => panic!("{other:?}"),
    }
}

fn refused(bench: &mut Bench) -> Denied {
    match bench.told.pop().map(|routed| routed.reply) {
        Some(Reply::RefuseLink(_, denied)) => denied,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_is_sent_locked_renewed_given_back_and_completed() {
    let mut bench = Bench::new();
    let numbers = vec![SequenceNumber(1)];
    assert_eq!(
        send(&mut bench, "q", &["a"]),
        Ok(MessageOutcome::Taken(numbers))
    );
    receive(&mut bench, 1, "q", ReceiveMode::PeekLock);
    let first = handed(&mut bench);
    assert_eq!(first.stamps.delivery_count, 0);
    bench.now = bench.now.after(Millis::from_secs(20));
    let until = bench.now.after(Description::default().lock_duration);
    let renewed = action(&mut bench, first.token, LockAction::Renew);
    assert_eq!(renewed, Ok(MessageOutcome::Renewed(until)));
    assert_eq!(
        action(&mut bench, first.token, LockAction::Unlock),
        Ok(MessageOutcome::Completed)
    );
    receive(&mut bench, 2, "Q", ReceiveMode::PeekLock);
    let second = handed(&mut bench);
    assert_eq!(second.stamps.delivery_count, 1);
    assert_ne!(first.token, second.token);
    for lost in [LockAction::Complete, LockAction::Renew, LockAction::Unlock] {
        let done = action(&mut bench, first.token, lost);
        assert!(
            matches!(
                done,
                Err(Denied {
                    kind: DeniedKind::MessageLockLost,
                    ..
                })
            ),
            "{done:?}"
        );
    }
    let done = action(&mut bench, second.token, LockAction::Complete);
    assert_eq!(done, Ok(MessageOutcome::Completed));
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
    assert!(bench.told.is_empty());
    assert_eq!(
        send(&mut bench, "q", &["a", "b"]),
        Ok(MessageOutcome::Taken(vec![
            SequenceNumber(1),
            SequenceNumber(2)
        ]))
    );
    handed(&mut bench);
    assert!(bench.told.is_empty());
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
    let link = LinkId(1);
    let none = Event::Credit {
        link,
        limit: 0,
        drain: false,
    };
    report(&mut bench, Report::Event(none));
    report(&mut bench, Report::Returned { token, link });
    report(&mut bench, Report::Written { link, bytes: 9 });
    let gone = Event::Detached {
        link,
        error: None,
        unsent: Vec::new(),
    };
    report(&mut bench, Report::Event(gone));
    assert!(bench.told.is_empty());
    receive(&mut bench, 2, "q", ReceiveMode::PeekLock);
    assert_eq!(handed(&mut bench).stamps.delivery_count, 0);
}

#[test]
fn a_receive_that_has_waited_long_enough_is_told_so() {
    let mut bench = Bench::new();
    receive(&mut bench, 1, "q", ReceiveMode::PeekLock);
    let drain = Event::Credit {
        link: LinkId(1),
        limit: 1,
        drain: true,
    };
    report(&mut bench, Report::Event(drain));
    let told = bench.told.pop().map(|routed| routed.reply);
    assert!(matches!(told, Some(Reply::Drained(LinkId(1), 1))));
    send(&mut bench, "q", &["a"]).unwrap();
    assert!(bench.told.is_empty());
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
    let action = LockAction::Complete;
    let done = operate(
        &mut bench,
        MessageOperation::Locked {
            path,
            token,
            action,
        },
    );
    assert_eq!(done, Ok(MessageOutcome::Completed));
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
        let authority = Authority::of("q", rights);
        let (sent, received) = bench.run(|gateway, cx| {
            let send = MessageOperation::Send {
                path: "q".to_owned(),
                messages: vec![message("a")],
            };
            let sent = gateway.message_operation(cx, None, &authority, send);
            let receive = Receive {
                path: "q".to_owned(),
                mode: ReceiveMode::ReceiveAndDelete,
            };
            let at = (CONNECTION, LinkId(1));
            gateway.receive_one(cx, at, None, &authority, &receive);
            let received = gateway.replies().pop().map(|routed| routed.reply);
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
        let kept_out = matches!(received, Some(Reply::RefuseLink(..)));
        assert_eq!(kept_out, sends, "{received:?}");
        let elsewhere = bench.run(|gateway, cx| {
            let send = MessageOperation::Send {
                path: "two".to_owned(),
                messages: vec![message("a")],
            };
            gateway.message_operation(cx, None, &authority, send)
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
