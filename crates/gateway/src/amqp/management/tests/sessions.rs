//! Requests about a message session: by whom it is held, and who asks (`management.md#session-state`).
//!
//! Every SDK of today names the link that holds the session. Go's first one asks on a connection of its own and names
//! none, and its live test expects the deferred messages and their settlement.

use super::*;
use crate::testing::{attach_session, request_about};
use jitney_base::ids::LockToken;
use jitney_base::time::Millis;
use jitney_queue::{Description, Settlement};
use serde_bytes::ByteBuf;

/// The connection that holds the session, the link that holds it, and its name.
const HOLDER: ConnectionId = ConnectionId(7);
const LINK: LinkId = LinkId(3);
const NAME: &str = "link 3";
/// Another connection.
const OTHER: ConnectionId = ConnectionId(8);

/// A queue `s` with a message of the session `a` that the holder has deferred.
fn bench() -> Bench {
    let mut bench = Bench::new();
    let sessions = Description {
        requires_session: true,
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "s", sessions))
        .unwrap();
    // Properties with a group-id.
    let bytes = b"\0\x53\x73\xc0\x0e\x0b@@@@@@@@@@\xa1\x01a\0\x53\x75\xa0\x01x";
    bench.send("s", Message::parse(Bytes::from_static(bytes)).unwrap());
    hold(&mut bench);
    let credit = Event::Credit(LinkCredit {
        link: LINK,
        limit: 1,
        drain: false,
    });
    bench.run(|gateway, cx| gateway.apply(cx, HOLDER, Report::Event(credit)));
    let told = std::mem::take(&mut bench.told).into_iter();
    let tokens = told.filter_map(|routed| match routed.reply {
        Reply::Deliver(LINK, handover) => Some(handover.token),
        _ => None,
    });
    let [token] = tokens.collect::<Vec<LockToken>>()[..] else {
        panic!("one message is delivered");
    };
    let queue = bench.id("s");
    let deferred = bench.run(|gateway, cx| {
        gateway.with_queue(cx, queue, |queue, cx| {
            queue.settle(cx, token, Settlement::Defer(None))
        })
    });
    assert_eq!(deferred, Some(Ok(())), "it was locked");
    bench
}

fn hold(bench: &mut Bench) {
    let attached = attach_session(LINK, "s", Some("a"));
    bench.run(|gateway, cx| gateway.apply(cx, HOLDER, attached));
    let queue = bench.id("s");
    let held = bench.gateway.namespaces.queue(queue).unwrap();
    assert!(held.session_holder("a").is_some());
}

/// Ends the link that holds the session.
fn let_go(bench: &mut Bench) {
    let detached = Event::Detached {
        link: LINK,
        error: None,
        unsent: Vec::new(),
    };
    bench.run(|gateway, cx| gateway.apply(cx, HOLDER, Report::Event(detached)));
}

/// Asks something about the session on a connection; returns the status, and the answer's message.
fn asked(
    bench: &mut Bench,
    (by, link): (ConnectionId, Option<&str>),
    operation: &str,
    mut entries: Vec<(&str, Value)>,
) -> (i64, Message) {
    entries.push(("session-id", Value::String("a".to_owned())));
    bench.run(|gateway, cx| {
        if gateway.link(by, REQUESTS).is_none() {
            attach_both(gateway, cx, by, "s");
        }
        gateway.apply(cx, by, request_about(link, operation, entries));
    });
    let told = std::mem::take(&mut bench.told).into_iter();
    let responses = told.filter_map(|routed| match routed.reply {
        Reply::Respond(_, response) => Some(response),
        _ => None,
    });
    let response = { responses }.next().unwrap();
    let bodies: Vec<Bytes> = response.bodies().map(|body| bench.bytes(body)).collect();
    let answer = Message::parse(response.encode(&bodies).into()).unwrap();
    let property = |wanted| {
        let found = { answer.application_properties() }.find(|(name, _)| *name == wanted);
        Encoded::new(found.unwrap().1)
    };
    let status = property("statusCode").integer().unwrap();
    if status == 410 {
        let condition = property("errorCondition").text();
        assert_eq!(condition, Some("com.microsoft:session-lock-lost"));
    }
    (status, answer)
}

/// Returns an entry of an answer.
fn entry<'m>(answer: &'m Message, name: &str) -> Encoded<'m> {
    let map = Encoded::new(answer.value().unwrap());
    let found = { map.entries() }.find(|(key, _)| key.text() == Some(name));
    Encoded::new(found.unwrap().1)
}

/// Asks for the deferred message, to lock it.
fn receive(bench: &mut Bench, by: ConnectionId, link: Option<&str>) -> (i64, Message) {
    let entries = vec![
        ("sequence-numbers", Value::List(vec![Value::Long(1)])),
        ("receiver-settle-mode", Value::Uint(1)),
    ];
    asked(bench, (by, link), "receive-by-sequence-number", entries)
}

#[test]
fn deferred_messages_of_a_held_session_go_to_any_client_that_names_it_and_no_other_link() {
    let mut bench = bench();
    let (status, answer) = receive(&mut bench, OTHER, None);
    assert_eq!(status, 200);
    let messages = entry(&answer, "messages").items().unwrap();
    assert_eq!(messages.left(), 1);
    for (by, link) in [(OTHER, Some(NAME)), (HOLDER, Some("link 4"))] {
        assert_eq!(receive(&mut bench, by, link).0, 410, "{by:?} {link:?}");
    }
    // It is locked now, and the session's lock is not the reason.
    for (by, link) in [(HOLDER, None), (HOLDER, Some(NAME))] {
        assert_eq!(receive(&mut bench, by, link).0, 404, "{by:?} {link:?}");
    }
    let_go(&mut bench);
    assert_eq!(receive(&mut bench, OTHER, None).0, 410, "it is not held");
}

#[test]
fn a_message_of_a_held_session_is_settled_by_any_client_that_names_it_and_no_other_link() {
    let mut bench = bench();
    let (_, answer) = receive(&mut bench, OTHER, None);
    let message = { entry(&answer, "messages").items().unwrap() }
        .next()
        .unwrap();
    let token = message
        .entries()
        .find(|(key, _)| key.text() == Some("lock-token"));
    let token = Encoded::new(token.unwrap().1).uuid().unwrap();
    let complete = |bench: &mut Bench, by, link| {
        let entries = vec![
            ("disposition-status", Value::String("completed".to_owned())),
            ("lock-tokens", Value::List(vec![Value::Uuid(token.into())])),
        ];
        asked(bench, (by, link), "update-disposition", entries).0
    };
    assert_eq!(complete(&mut bench, OTHER, Some(NAME)), 410);
    assert_eq!(complete(&mut bench, HOLDER, Some("link 4")), 410);
    assert_eq!(bench.seen("s").len(), 1);
    assert_eq!(complete(&mut bench, OTHER, None), 200);
    assert_eq!(bench.seen("s"), []);
    let_go(&mut bench);
    assert_eq!(complete(&mut bench, OTHER, None), 410, "it is not held");
}

#[test]
fn the_state_of_a_held_session_is_read_and_set_by_any_client_that_names_it_and_no_other_link() {
    let mut bench = bench();
    let set = |bench: &mut Bench, by, link, state: &[u8]| {
        let entries = vec![("session-state", Value::Binary(ByteBuf::from(state)))];
        asked(bench, (by, link), "set-session-state", entries).0
    };
    let read = |bench: &mut Bench, by, link| {
        let (status, answer) = asked(bench, (by, link), "get-session-state", Vec::new());
        let state = (status == 200).then(|| entry(&answer, "session-state"));
        (status, state.and_then(Encoded::binary).map(<[u8]>::to_vec))
    };
    // Go's early releases name no link, on the connection of the holder.
    for (by, link, state) in [
        (HOLDER, None, b"1"),
        (HOLDER, Some(NAME), b"2"),
        (OTHER, None, b"3"),
    ] {
        assert_eq!(set(&mut bench, by, link, state), 200, "{by:?} {link:?}");
        assert_eq!(read(&mut bench, by, link), (200, Some(state.to_vec())));
    }
    for (by, link) in [(OTHER, Some(NAME)), (HOLDER, Some("link 4"))] {
        assert_eq!(set(&mut bench, by, link, b"4"), 410, "{by:?} {link:?}");
        assert_eq!(read(&mut bench, by, link), (410, None));
    }
    let_go(&mut bench);
    assert_eq!(set(&mut bench, OTHER, None, b"5"), 410, "it is not held");
    assert_eq!(read(&mut bench, OTHER, None), (410, None));
    hold(&mut bench);
    let state = read(&mut bench, HOLDER, Some(NAME));
    assert_eq!(state, (200, Some(b"3".to_vec())));
}

#[test]
fn the_lock_of_a_session_is_renewed_on_the_connection_that_holds_it() {
    let mut bench = bench();
    let renew = |bench: &mut Bench, by, link| {
        let (status, answer) = asked(bench, (by, link), "renew-session-lock", Vec::new());
        let until = (status == 200).then(|| entry(&answer, "expiration").timestamp());
        (status, until.flatten())
    };
    for (by, link) in [(HOLDER, None), (HOLDER, Some(NAME))] {
        bench.now = bench.now.after(Millis::from_secs(20));
        let until = bench.now.after(Description::default().lock_duration);
        assert_eq!(renew(&mut bench, by, link), (200, Some(until)));
    }
    for (by, link) in [(OTHER, None), (OTHER, Some(NAME)), (HOLDER, Some("link 4"))] {
        assert_eq!(renew(&mut bench, by, link), (410, None), "{by:?} {link:?}");
    }
    let_go(&mut bench);
    assert_eq!(renew(&mut bench, HOLDER, None), (410, None));
}
