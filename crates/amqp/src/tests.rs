//! Two ends of a connection, wired to each other in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::BytesMut;

use super::field_tests::assert_complete;
use super::*;
use crate::limits;
use jitney_base::secret::Secret;
use jitney_base::time::{Millis, Timestamp};

struct Pair {
    now: Timestamp,
    client: Connection,
    server: Connection,
    to_server: BytesMut,
    to_client: BytesMut,
    /// The descriptors of what the two have written in `run`.
    written: BTreeSet<u64>,
}

fn config(identity: Identity) -> Config {
    Config {
        holds_open: false,
        container_id: "end".to_owned(),
        hostname: None,
        frame_size_max: 1_024,
        channel_max: 10,
        handle_max: 10,
        idle_timeout: Millis::from_secs(60),
        identity,
        has_certificate: false,
        trusts_peer: true,
    }
}

impl Pair {
    fn new(identity: Identity) -> Self {
        let now = Timestamp::from_millis(0);
        let client = Connection::client(config(identity), now);
        let server = Connection::server(config(Identity::Anonymous), now);
        let (to_server, to_client) = (BytesMut::new(), BytesMut::new());
        Self {
            now,
            client,
            server,
            to_server,
            to_client,
            written: BTreeSet::new(),
        }
    }

    /// Carries bytes to and fro until there are no more; returns what both ends report.
    fn run(&mut self) -> (Vec<Event>, Vec<Event>) {
        let mut of_server = Vec::new();
        loop {
            self.client.take_output(self.now, &mut self.to_server);
            self.server.take_output(self.now, &mut self.to_client);
            assert_complete(&self.to_server, &mut self.written);
            assert_complete(&self.to_client, &mut self.written);
            if self.to_server.is_empty() && self.to_client.is_empty() {
                break;
            }
            self.server.handle_bytes(self.now, &mut self.to_server);
            while let Some(event) = self.server.poll_event() {
                if matches!(event, Event::Authenticating { .. }) {
                    self.server.authenticated();
                    self.server.handle_bytes(self.now, &mut self.to_server);
                } else {
                    of_server.push(event);
                }
            }
            self.client.handle_bytes(self.now, &mut self.to_client);
        }
        let of_client = std::iter::from_fn(|| self.client.poll_event());
        (of_client.collect(), of_server)
    }

    /// Sends an open to a server that holds its answer.
    fn held() -> Self {
        let mut pair = Self::new(Identity::Unnamed);
        let held = Config {
            holds_open: true,
            ..config(Identity::Anonymous)
        };
        pair.server = Connection::server(held, pair.now);
        for _ in 0..4 {
            pair.client.take_output(pair.now, &mut pair.to_server);
            pair.server.handle_bytes(pair.now, &mut pair.to_server);
            pair.server.take_output(pair.now, &mut pair.to_client);
            pair.client.handle_bytes(pair.now, &mut pair.to_client);
        }
        pair
    }

    /// Opens, begins, and attaches a link in this role of the client's.
    fn attached(role: LinkRole) -> (Self, LinkId, LinkId) {
        let mut pair = Self::new(Identity::Anonymous);
        pair.run();
        let session = pair.client.begin().unwrap();
        let link = pair
            .client
            .attach(session, "l", role, "q", SettleMode::OnReceipt)
            .unwrap();
        let (_, asked) = pair.run();
        let [Event::AttachRequested(asked, attach)] = &asked[..] else {
            panic!("{asked:?}")
        };
        assert_eq!(attach.name, "l");
        let accept = Accept {
            credit: 10,
            message_size_max: 10_000,
            ..Accept::default()
        };
        pair.server.accept_link(*asked, accept);
        pair.run();
        (pair, link, *asked)
    }
}

fn delivery<'a>(payload: &'a [&'a [u8]]) -> Delivery<'a> {
    Delivery {
        tag: [7; 16],
        settle_mode: SettleMode::OnReceipt,
        message_format: 0,
        payload,
    }
}

#[test]
fn a_password_is_not_in_what_is_printed() {
    let identity = Identity::Plain {
        user: "user".to_owned(),
        password: Secret::new("hunter2"),
    };
    let event = Event::Authenticating { identity };
    let shown = format!("{event:?}");
    assert!(
        shown.contains("user") && !shown.contains("hunter2"),
        "{shown}"
    );
}

#[test]
fn a_connection_opens_with_and_without_sasl() {
    let plain = Identity::Plain {
        user: "u".to_owned(),
        password: Secret::new("p"),
    };
    for identity in [Identity::Unnamed, Identity::Anonymous, plain] {
        let (client, server) = Pair::new(identity.clone()).run();
        assert!(matches!(&client[..], [Event::Opened { .. }]), "{client:?}");
        let [Event::Opened { identity: seen, .. }] = &server[..] else {
            panic!("{server:?}")
        };
        assert_eq!(*seen, identity);
    }
}

#[test]
fn every_performative_has_all_fields() {
    let (mut pair, sender, receiver) = Pair::attached(LinkRole::Outgoing);
    pair.client
        .deliver(sender, delivery(&[&[7; 5_000]]))
        .unwrap();
    pair.run();
    let gone = Refusal {
        condition: Condition::NotFound,
        description: "gone".to_owned(),
    };
    pair.server.detach(receiver, Some(gone.clone()));
    pair.run();
    let now = pair.now;
    pair.server.close(now, Some(gone));
    pair.run();
    // The end of an AMQP session without an error is a test of its own.
    let codes = [
        0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x18, 0x1d, 0x29, 0x40, 0x41, 0x44,
    ];
    let missing: Vec<_> = codes
        .iter()
        .filter(|code| !pair.written.contains(code))
        .collect();
    assert!(missing.is_empty(), "{missing:x?}");
}

#[test]
fn messages_of_many_frames_arrive_whole_and_are_settled_together() {
    let (mut pair, sender, incoming) = Pair::attached(LinkRole::Outgoing);
    let body: Vec<u8> = (0..5_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    pair.client
        .deliver(
            sender,
            delivery(&[&body[..10], &body[10..2_000], &body[2_000..]]),
        )
        .unwrap();
    pair.client.deliver(sender, delivery(&[b"short"])).unwrap();
    let (_, events) = pair.run();
    let payloads: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::Transfer(IncomingTransfer {
                delivery, payload, ..
            }) => (*delivery, payload.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(payloads.len(), 2);
    assert_eq!(payloads[0].1, body);
    assert_eq!(payloads[1].1, &b"short"[..]);
    for (delivery, _) in &payloads {
        pair.server
            .settle_incoming(incoming, *delivery, &Outcome::Accepted);
    }
    let (events, _) = pair.run();
    let outcomes: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, Event::Disposition(_)))
        .collect();
    assert_eq!(outcomes.len(), 2);
}

#[test]
fn frames_of_a_large_message_are_made_as_output_is_taken() {
    const LENGTH: usize = 3 * 1024 * 1024;
    let (mut pair, receiver, sender) = Pair::attached(LinkRole::Incoming);
    pair.client.grant_credit(receiver, 10);
    pair.run();
    let body: Vec<u8> = (0..LENGTH).map(|n| (n % 251).to_le_bytes()[0]).collect();
    let rest = bytes::Bytes::copy_from_slice(&body[7..]);
    let payload: &[&[u8]] = &[&body[..7]];
    pair.server
        .deliver_with(sender, delivery(payload), rest)
        .unwrap();
    pair.server.deliver(sender, delivery(&[b"short"])).unwrap();
    assert!(LENGTH / 2 < pair.server.waiting_bytes());
    let mut received = Vec::new();
    while pair.server.has_more() || pair.server.output_bytes() > 0 {
        assert!(pair.server.output_bytes() < 512 * 1024, "a share at a time");
        received.extend(pair.run().0);
        pair.server.go_on();
    }
    let payloads = received.iter().map(|event| match event {
        Event::Transfer(IncomingTransfer { payload, .. }) => &payload[..],
        other => panic!("{other:?}"),
    });
    assert!(payloads.eq([&body[..], b"short"]));
    assert_eq!(pair.server.waiting_bytes(), 0);
}

#[test]
fn a_message_larger_than_the_link_takes_is_rejected_and_the_link_lives_on() {
    let (mut pair, sender, _) = Pair::attached(LinkRole::Outgoing);
    pair.client
        .deliver(sender, delivery(&[&vec![0; 20_000]]))
        .unwrap();
    pair.client.deliver(sender, delivery(&[b"ok"])).unwrap();
    let (client, server) = pair.run();
    let [
        Event::Disposition(IncomingDisposition {
            outcome: Outcome::Rejected(Some(rejection)),
            ..
        }),
    ] = &client[..]
    else {
        panic!("{client:?}")
    };
    assert_eq!(rejection.refusal.condition, Condition::MessageSizeExceeded);
    assert!(matches!(&server[..], [Event::Transfer(_)]));
}

#[test]
fn a_message_for_which_there_is_no_room_is_refused_for_now_and_the_next_is_taken() {
    let (mut pair, sender, _) = Pair::attached(LinkRole::Outgoing);
    pair.server.set_partial_room(1_000);
    let large = vec![0; 9_000];
    pair.client.deliver(sender, delivery(&[&large])).unwrap();
    let (client, server) = pair.run();
    let [
        Event::Disposition(IncomingDisposition {
            outcome: Outcome::Rejected(Some(rejection)),
            ..
        }),
    ] = &client[..]
    else {
        panic!("{client:?}")
    };
    assert_eq!(rejection.refusal.condition, Condition::ServerBusy);
    assert!(server.is_empty());
    assert_eq!(pair.server.partial_bytes(), 0);
    pair.server.set_partial_room(10_000);
    pair.client.deliver(sender, delivery(&[&large])).unwrap();
    let (_, server) = pair.run();
    assert!(matches!(&server[..], [Event::Transfer(_)]));
}

#[test]
fn credit_is_counted_topped_up_and_never_overrun() {
    let (mut pair, sender, incoming) = Pair::attached(LinkRole::Outgoing);
    for _ in 0..10 {
        pair.client.deliver(sender, delivery(&[b"x"])).unwrap();
    }
    assert_eq!(
        pair.client.deliver(sender, delivery(&[b"x"])),
        Err(CreditLost)
    );
    let (_, events) = pair.run();
    for event in &events[..5] {
        let Event::Transfer(IncomingTransfer { delivery, .. }) = event else {
            panic!()
        };
        pair.server
            .settle_incoming(incoming, *delivery, &Outcome::Accepted);
    }
    let (events, _) = pair.run();
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Credit(LinkCredit { limit: 15, .. }))),
        "{events:?}"
    );
}

#[test]
fn a_receiver_settles_and_the_answer_has_the_same_outcome() {
    let (mut pair, receiver, outgoing) = Pair::attached(LinkRole::Incoming);
    assert_eq!(
        pair.server.deliver(outgoing, delivery(&[b"m"])),
        Err(CreditLost)
    );
    pair.client.grant_credit(receiver, 5);
    let (_, events) = pair.run();
    assert_eq!(
        events,
        [Event::Credit(LinkCredit {
            link: outgoing,
            limit: 5,
            drain: false
        })]
    );
    let id = pair.server.deliver(outgoing, delivery(&[b"m"])).unwrap();
    let (events, _) = pair.run();
    let [Event::Transfer(IncomingTransfer { delivery, .. })] = events[..] else {
        panic!("{events:?}")
    };
    pair.client
        .settle_incoming(receiver, delivery, &Outcome::Accepted);
    let (_, events) = pair.run();
    let [
        Event::Disposition(IncomingDisposition {
            delivery,
            tag,
            settled: true,
            outcome: Outcome::Accepted,
            ..
        }),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*delivery, *tag), (id, [7; 16]));
    pair.server.drained(outgoing, 5);
    pair.run();
    assert_eq!(
        pair.server.deliver(outgoing, self::delivery(&[b"m"])),
        Err(CreditLost)
    );
}

/// Has `count` deliveries on their way, and one disposition for all of them with a text of 900 bytes.
fn disposition_of(count: u32) -> Pair {
    let (mut pair, receiver, outgoing) = Pair::attached(LinkRole::Incoming);
    pair.client.grant_credit(receiver, count);
    pair.run();
    let mut received = Vec::new();
    for _ in 0..count {
        pair.server.deliver(outgoing, delivery(&[b"m"])).unwrap();
        let (events, _) = pair.run();
        received.extend(events);
    }
    let refusal = Refusal {
        condition: Condition::DeadLetter,
        description: "x".repeat(900),
    };
    let rejected = Outcome::Rejected(Some(Arc::new(Rejection {
        refusal,
        info: None,
    })));
    for event in received {
        let Event::Transfer(IncomingTransfer { link, delivery, .. }) = event else {
            panic!("{event:?}")
        };
        pair.client.settle_incoming(link, delivery, &rejected);
    }
    pair.client.take_output(pair.now, &mut pair.to_server);
    assert!(pair.to_server.len() < 1_100, "one frame for all");
    pair
}

#[test]
fn a_disposition_of_many_deliveries_is_taken_in_shares_that_have_one_outcome() {
    const COUNT: usize = 3_000;
    let mut pair = disposition_of(u32::try_from(COUNT).unwrap());
    let mut shares = Vec::new();
    let mut first = None;
    loop {
        pair.server.handle_bytes(pair.now, &mut pair.to_server);
        let mut share = 0;
        while let Some(event) = pair.server.poll_event() {
            let Event::Disposition(IncomingDisposition {
                outcome: Outcome::Rejected(Some(rejection)),
                ..
            }) = event
            else {
                panic!("{event:?}")
            };
            assert!(Arc::ptr_eq(
                &rejection,
                first.get_or_insert_with(|| rejection.clone())
            ));
            share += 1;
        }
        shares.push(share);
        if !pair.server.is_held() {
            break;
        }
    }
    let most = limits::EVENT_DETAIL_BYTES_MAX / 900;
    assert!(shares.iter().all(|&share| share <= most), "{shares:?}");
    assert_eq!(shares.iter().sum::<usize>(), COUNT);
}

#[test]
fn a_disposition_that_would_bring_too_much_to_its_deliveries_ends_its_session() {
    let count = limits::DISPOSITION_BYTES_MAX / 900 + 1;
    let mut pair = disposition_of(u32::try_from(count).unwrap());
    pair.server.handle_bytes(pair.now, &mut pair.to_server);
    let events: Vec<_> = std::iter::from_fn(|| pair.server.poll_event()).collect();
    assert!(
        matches!(&events[..], [Event::Detached { .. }]),
        "{events:?}"
    );
    assert!(!pair.server.is_held());
}

#[test]
fn messages_that_the_window_keeps_back_are_reported_unsent_when_their_link_ends() {
    const KEPT_BACK: u32 = 2;
    let (mut pair, receiver, outgoing) = Pair::attached(LinkRole::Incoming);
    let count = limits::INCOMING_WINDOW + KEPT_BACK;
    pair.client.grant_credit(receiver, count);
    pair.run();
    let tag = |number: u32| u128::from(number).to_be_bytes();
    for number in 0..count {
        let message = Delivery {
            tag: tag(number),
            ..delivery(&[b"m"])
        };
        pair.server.deliver(outgoing, message).unwrap();
    }
    pair.server.detach(outgoing, None);
    let expected = Event::Unsent {
        link: outgoing,
        tags: (limits::INCOMING_WINDOW..count).map(tag).collect(),
    };
    assert_eq!(pair.server.poll_event(), Some(expected));
}

#[test]
fn a_refused_link_is_attached_to_nothing_and_detached_with_the_reason() {
    let mut pair = Pair::new(Identity::Anonymous);
    pair.run();
    let session = pair.client.begin().unwrap();
    pair.client
        .attach(session, "l", LinkRole::Outgoing, "q", SettleMode::OnReceipt)
        .unwrap();
    let (_, asked) = pair.run();
    let [Event::AttachRequested(link, _)] = asked[..] else {
        panic!()
    };
    let refusal = Refusal {
        condition: Condition::NotFound,
        description: "no".to_owned(),
    };
    pair.server.refuse_link(link, refusal.clone());
    let (events, _) = pair.run();
    let [
        Event::AttachAnswered(_, attach),
        Event::Detached { error, .. },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(attach.target, LinkTarget::Node(None));
    assert_eq!(error.as_ref(), Some(&refusal));
}

#[test]
fn a_name_goes_to_the_link_that_was_attached_last_and_each_before_it_ends_once() {
    let mut pair = Pair::new(Identity::Anonymous);
    pair.run();
    let session = pair.client.begin().unwrap();
    for name in ["other", "l", "l", "l"] {
        let mode = SettleMode::OnReceipt;
        pair.client
            .attach(session, name, LinkRole::Incoming, "q", mode)
            .unwrap();
    }
    // Also when all are read before the peer has heard of an end.
    let (_, events) = pair.run();
    let told = events.iter().map(|event| match event {
        Event::AttachRequested(link, _) => (link.0, "attaches"),
        Event::Detached { link, .. } => (link.0, "ends"),
        other => panic!("{other:?}"),
    });
    let [a, b, c, d, e, f] = told.collect::<Vec<_>>()[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        [a.1, b.1, c.1, d.1, e.1, f.1],
        [
            "attaches", "attaches", "ends", "attaches", "ends", "attaches"
        ]
    );
    assert_eq!((c.0, e.0), (b.0, d.0));
}

#[test]
fn silence_ends_a_connection_and_empty_frames_break_it() {
    let mut pair = Pair::new(Identity::Anonymous);
    pair.run();
    for _ in 0..10 {
        let next = pair
            .client
            .poll_timeout()
            .unwrap()
            .min(pair.server.poll_timeout().unwrap());
        assert!(pair.now < next);
        pair.now = next;
        pair.client.handle_timeout(pair.now);
        pair.server.handle_timeout(pair.now);
        pair.run();
    }
    assert!(!pair.server.is_finished());
    let silent = pair.now.after(Millis::from_secs(121));
    pair.server.handle_timeout(silent);
    let closed = std::iter::from_fn(|| pair.server.poll_event()).last();
    assert!(
        matches!(closed, Some(Event::Closed { error: Some(_), .. })),
        "{closed:?}"
    );
}

#[test]
fn an_empty_frame_is_answered_when_ours_is_due_before_long() {
    let mut pair = Pair::new(Identity::Anonymous);
    pair.run();
    let sent = |pair: &mut Pair| {
        let mut output = BytesMut::new();
        pair.server.take_output(pair.now, &mut output);
        output.len()
    };
    let due = pair.server.poll_timeout().unwrap();
    let begun = pair.now;
    for (after, expected) in [(9, 0), (16, 8), (17, 0)] {
        // The last that was sent, then, was sent at the beginning, or by this.
        pair.now = begun.after(Millis::from_secs(after));
        pair.server
            .handle_bytes(pair.now, &mut BytesMut::from(&b"\0\0\0\x08\x02\0\0\0"[..]));
        assert_eq!(sent(&mut pair), expected, "after {after} s");
    }
    assert!(due < pair.server.poll_timeout().unwrap());
}

#[test]
fn a_peer_of_another_protocol_is_told_ours() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"AMQP\x00\x00\x09\x01",
        b"\x16\x03\x01",
    ] {
        let mut server = Connection::server(config(Identity::Anonymous), Timestamp::EPOCH);
        server.handle_bytes(Timestamp::EPOCH, &mut BytesMut::from(bytes));
        let mut output = BytesMut::new();
        server.take_output(Timestamp::EPOCH, &mut output);
        assert_eq!(&output[..], b"AMQP\x03\x01\x00\x00");
        assert!(server.is_finished());
    }
}

#[test]
fn a_connection_that_does_not_open_in_time_is_dropped() {
    let mut server = Connection::server(config(Identity::Anonymous), Timestamp::EPOCH);
    let deadline = server.poll_timeout().unwrap();
    server.handle_timeout(deadline);
    assert!(server.is_finished());
    assert_eq!(server.poll_timeout(), None);
}

/// The cost of one message at the server's end, sent and received and settled both times:
/// `cargo test --release --lib amqp -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement"
)]
fn what_a_message_costs() {
    const BATCH: u32 = 64;
    const ROUNDS: u32 = 20_000;
    let mut pair = Pair::new(Identity::Anonymous);
    pair.client.config.frame_size_max = 65_536;
    pair.server.config.frame_size_max = 65_536;
    pair.run();
    let session = pair.client.begin().unwrap();
    let mode = SettleMode::OnReceipt;
    let attach = |pair: &mut Pair, name, role| pair.client.attach(session, name, role, "q", mode);
    let sender = attach(&mut pair, "s", LinkRole::Outgoing).unwrap();
    let receiver = attach(&mut pair, "r", LinkRole::Incoming).unwrap();
    let (_, asked) = pair.run();
    for event in asked {
        let Event::AttachRequested(link, _) = event else {
            panic!("{event:?}")
        };
        let accept = Accept {
            message_session: None,
            credit: 1_000,
            ..Accept::default()
        };
        pair.server.accept_link(link, accept);
    }
    pair.client.grant_credit(receiver, u32::MAX);
    pair.run();
    let outgoing = LinkId(1);
    let body = [7; 1_024];
    let mut spent = std::time::Duration::ZERO;
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    for _ in 0..ROUNDS {
        for _ in 0..BATCH {
            pair.client.deliver(sender, delivery(&[&body])).unwrap();
        }
        pair.client.take_output(pair.now, &mut input);
        let start = std::time::Instant::now();
        pair.server.handle_bytes(pair.now, &mut input);
        while let Some(event) = pair.server.poll_event() {
            if let Event::Transfer(IncomingTransfer {
                link,
                delivery: id,
                payload,
                ..
            }) = event
            {
                let accepted = Outcome::Accepted;
                pair.server.settle_incoming(link, id, &accepted);
                let payload: &[&[u8]] = &[&payload];
                pair.server.deliver(outgoing, delivery(payload)).unwrap();
            }
        }
        pair.server.take_output(pair.now, &mut output);
        spent += start.elapsed();
        pair.client.handle_bytes(pair.now, &mut output);
        while let Some(event) = pair.client.poll_event() {
            if let Event::Transfer(IncomingTransfer { link, delivery, .. }) = event {
                pair.client
                    .settle_incoming(link, delivery, &Outcome::Accepted);
            }
        }
        pair.client.take_output(pair.now, &mut input);
        let start = std::time::Instant::now();
        pair.server.handle_bytes(pair.now, &mut input);
        while pair.server.poll_event().is_some() {}
        pair.server.take_output(pair.now, &mut output);
        spent += start.elapsed();
        pair.client.handle_bytes(pair.now, &mut output);
        while pair.client.poll_event().is_some() {}
    }
    let count = BATCH * ROUNDS;
    println!("{} ns a message", spent.as_nanos() / u128::from(count));
}

/// A pair whose frames and handles let one connection say much.
fn roomy() -> (Pair, SessionId) {
    let config = |identity| Config {
        frame_size_max: limits::FRAME_SIZE_MAX,
        handle_max: limits::HANDLE_MAX,
        ..config(identity)
    };
    let mut pair = Pair::new(Identity::Anonymous);
    pair.client = Connection::client(config(Identity::Anonymous), pair.now);
    pair.server = Connection::server(config(Identity::Anonymous), pair.now);
    pair.run();
    let session = pair.client.begin().unwrap();
    pair.run();
    (pair, session)
}

/// Attaches a sender, and returns what the server's owner is asked, and why the link was refused by the
/// engine itself.
fn ask(
    pair: &mut Pair,
    session: SessionId,
    name: &str,
    address: &str,
) -> (Option<LinkId>, Option<Condition>) {
    let mode = SettleMode::OnReceipt;
    let link = pair
        .client
        .attach(session, name, LinkRole::Outgoing, address, mode);
    assert!(link.is_some());
    let (told, asked) = pair.run();
    let asked = asked.iter().find_map(|event| match event {
        Event::AttachRequested(id, _) => Some(*id),
        _ => None,
    });
    let refused = told.into_iter().find_map(|event| match event {
        Event::Detached { error, .. } => error.map(|error| error.condition),
        _ => None,
    });
    (asked, refused)
}

#[test]
fn a_link_with_a_name_or_an_address_of_many_bytes_is_refused() {
    let (mut pair, session) = roomy();
    let fits = "n".repeat(limits::LINK_NAME_BYTES_MAX);
    let long = "n".repeat(limits::LINK_NAME_BYTES_MAX + 1);
    let address = "a".repeat(limits::TERMINUS_BYTES_MAX);
    let too_large = Some(Condition::ResourceLimitExceeded);
    assert!(ask(&mut pair, session, &fits, "q").0.is_some());
    let kept = pair.server.link_bytes();
    assert!(fits.len() < kept);
    assert_eq!(
        ask(&mut pair, session, &long, "q"),
        (None, too_large.clone())
    );
    assert_eq!(ask(&mut pair, session, "l", &address), (None, too_large));
    assert_eq!(pair.server.link_bytes(), kept);
}

#[test]
fn a_large_frame_before_a_token_is_refused() {
    for (trusts_peer, is_refused) in [(false, true), (true, false)] {
        let (mut pair, _) = roomy();
        pair.server.config.trusts_peer = trusts_peer;
        let size = limits::FRAME_SIZE_UNAUTHENTICATED_MAX + 1;
        pair.to_server.extend_from_slice(&size.to_be_bytes());
        pair.to_server.extend_from_slice(&[2, 0, 0, 0]);
        pair.server.handle_bytes(pair.now, &mut pair.to_server);
        let event = pair.server.poll_event();
        assert_eq!(matches!(event, Some(Event::Closed { .. })), is_refused);
        // After a token the rest of the frame is awaited.
        assert_eq!(pair.to_server.is_empty(), is_refused);
    }
}

#[test]
fn all_names_of_a_connection_s_links_are_bounded_together() {
    let (mut pair, session) = roomy();
    let long = "n".repeat(limits::LINK_NAME_BYTES_MAX - 8);
    let mut refused = None;
    for number in 0..limits::HANDLE_MAX {
        let (asked, why) = ask(&mut pair, session, &format!("{number:08}{long}"), "q");
        refused = why;
        if asked.is_none() {
            break;
        }
    }
    assert_eq!(refused, Some(Condition::ResourceLimitExceeded));
    assert!(pair.server.link_bytes() <= limits::CONNECTION_LINKS_BYTES_MAX);
}

#[test]
fn of_a_link_that_has_ended_nothing_is_kept_though_the_peer_is_silent() {
    let (mut pair, session) = roomy();
    let name = "n".repeat(1_000);
    let mode = SettleMode::OnReceipt;
    for number in 0..100 {
        let name = format!("{name}{number}");
        pair.client
            .attach(session, &name, LinkRole::Outgoing, "q", mode)
            .unwrap();
    }
    pair.client.take_output(pair.now, &mut pair.to_server);
    pair.server.handle_bytes(pair.now, &mut pair.to_server);
    assert!(100 * name.len() < pair.server.link_bytes());
    let asked: Vec<LinkId> = std::iter::from_fn(|| pair.server.poll_event())
        .filter_map(|event| match event {
            Event::AttachRequested(id, _) => Some(id),
            _ => None,
        })
        .collect();
    assert_eq!(asked.len(), 100);
    let refusal = Refusal {
        condition: Condition::NotFound,
        description: "no".to_owned(),
    };
    // The server's output is never read, and so never answered.
    for link in &asked[..50] {
        pair.server.refuse_link(*link, refusal.clone());
    }
    for link in &asked[50..] {
        pair.server.accept_link(*link, Accept::default());
    }
    let names = pair.server.link_bytes();
    assert!(50 * name.len() < names && names < 51 * (name.len() + 2));
    for link in &asked[50..] {
        pair.server.detach(*link, Some(refusal.clone()));
    }
    assert_eq!(pair.server.link_bytes(), 0);
}

#[test]
fn a_connection_has_so_many_links_at_most() {
    let (mut pair, _) = roomy();
    let mut asked = 0;
    // Two sessions have handles for more.
    for number in 0..2 {
        let session = pair.client.begin().unwrap();
        pair.run();
        for link in 0..=limits::HANDLE_MAX {
            let name = format!("{number} {link}");
            let mode = SettleMode::OnReceipt;
            let role = LinkRole::Outgoing;
            pair.client.attach(session, &name, role, "q", mode).unwrap();
        }
        let (_, events) = pair.run();
        let asks = |event: &&Event| matches!(event, Event::AttachRequested(..));
        asked += events.iter().filter(asks).count();
    }
    assert_eq!(asked, limits::CONNECTION_LINKS_MAX);
}

#[test]
fn an_open_that_is_held_is_answered_when_its_connection_is_served_here() {
    let mut pair = Pair::held();
    let of_server: Vec<Event> = std::iter::from_fn(|| pair.server.poll_event()).collect();
    assert!(
        matches!(&of_server[..], [Event::Opened { .. }]),
        "{of_server:?}"
    );
    assert!(pair.client.poll_event().is_none(), "it has no answer yet");
    // What the peer sends meanwhile waits.
    pair.to_server.extend_from_slice(&[0, 0, 0, 8, 2, 0, 0, 0]);
    pair.server.handle_bytes(pair.now, &mut pair.to_server);
    assert_eq!(pair.to_server.len(), 8);
    pair.server.serve_here();
    let (client, server) = pair.run();
    assert!(matches!(&client[..], [Event::Opened { .. }]), "{client:?}");
    assert!(server.is_empty() && pair.to_server.is_empty());
}

#[test]
fn a_connection_whose_open_is_held_ends_when_it_is_closed() {
    let mut pair = Pair::held();
    pair.server.serve_here();
    pair.server.close(pair.now, None);
    let (client, _) = pair.run();
    assert!(
        matches!(&client[..], [Event::Opened { .. }, Event::Closed { .. }]),
        "{client:?}"
    );
}
