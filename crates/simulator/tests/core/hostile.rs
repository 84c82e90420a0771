//! Hostile and broken peers: no input ends the broker, makes it keep more bytes than were sent, or
//! affects the next peer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::{Bytes, BytesMut};
use jitney_amqp::limits;
use jitney_amqp::{
    Connection, Delivery, Event, Identity, IncomingTransfer, LinkCredit, LinkId, LinkRole, Outcome,
    SettleMode,
};
use jitney_base::address;
use jitney_base::ids::Random;
use jitney_base::secret::Secret;
use jitney_message::{Amendments, Message, split_batch};

use crate::rig::{self, Rig};

/// A client's conversation: what it sends, one piece for each time it waits for an answer.
type Conversation = Vec<Bytes>;

/// A client that sends three messages, one of many frames, and receives and settles them.
fn conversation(identity: Identity, rig: &mut Rig) -> Conversation {
    let mut client = Connection::client(
        jitney_amqp::Config {
            identity,
            ..rig::config()
        },
        rig.now,
    );
    let mut said = Vec::new();
    let mut back = BytesMut::new();
    let mut links: Option<(LinkId, LinkId)> = None;
    let mut received = 0;
    for _ in 0..50 {
        let bytes = rig::said_by(&mut client, rig.now).freeze();
        if !bytes.is_empty() {
            back.unsplit(rig.exchange(&bytes));
            said.push(bytes);
        }
        client.handle_bytes(rig.now, &mut back);
        while let Some(event) = client.poll_event() {
            match event {
                Event::Opened { .. } => {
                    let session = client.begin().unwrap();
                    let attach = |client: &mut Connection, name, role| {
                        client.attach(session, name, role, "queue.1", SettleMode::OnReceipt)
                    };
                    let sender = attach(&mut client, "s", LinkRole::Outgoing).unwrap();
                    let receiver = attach(&mut client, "r", LinkRole::Incoming).unwrap();
                    links = Some((sender, receiver));
                }
                Event::AttachAnswered(link, _) if Some(link) == links.map(|(_, r)| r) => {
                    client.grant_credit(link, 10);
                }
                Event::Credit(LinkCredit { link, .. }) if received == 0 => {
                    let large =
                        [&[0x00, 0x53, 0x75, 0xb0, 0, 2, 0, 0][..], &vec![7; 131_072]].concat();
                    for body in [
                        &b"\x00\x53\x75\xa0\x02hi"[..],
                        &large,
                        b"\x00\x53\x77\xa1\x01x",
                    ] {
                        let payload: &[&[u8]] = &[body];
                        let settle_mode = SettleMode::OnReceipt;
                        let delivery = Delivery {
                            tag: [1; 16],
                            settle_mode,
                            message_format: 0,
                            payload,
                        };
                        let _ = client.deliver(link, delivery);
                    }
                }
                Event::Transfer(IncomingTransfer { link, delivery, .. }) => {
                    received += 1;
                    client.settle_incoming(link, delivery, &Outcome::Accepted);
                }
                _ => {}
            }
        }
    }
    client.close(rig.now, None);
    said.push(rig::said_by(&mut client, rig.now).freeze());
    assert_eq!(received, 3, "the conversation is a whole one");
    said
}

/// Changes some bytes of a conversation.
fn mutate(random: &mut Random, said: &Conversation) -> Conversation {
    let mut said: Vec<Vec<u8>> = said.iter().map(|piece| piece.to_vec()).collect();
    for _ in 0..=random.next_u64() % 4 {
        let at = below(random, said.len());
        let length = said[at].len();
        if length == 0 {
            continue;
        }
        let place = below(random, length);
        match random.next_u64() % 8 {
            0 => said[at][place] ^= 1 << (random.next_u64() % 8),
            1 => said[at][place] = random.next_u64().to_le_bytes()[0],
            2 => said[at].truncate(place),
            3 => {
                let copy = said[at].clone();
                said[at].extend(copy);
            }
            4 => {
                let other = said[below(random, said.len())].clone();
                said[at].splice(place..place, other);
            }
            5 => {
                for slot in said[at].iter_mut().skip(place).take(4) {
                    *slot = 0xff;
                }
            }
            6 => drop(said.remove(at)),
            _ => said.swap(at, below_len(random.next_u64(), length.min(1))),
        }
        if said.is_empty() {
            break;
        }
    }
    said.into_iter().map(Bytes::from).collect()
}

fn below(random: &mut Random, end: usize) -> usize {
    below_len(random.next_u64(), end)
}

fn below_len(bits: u64, end: usize) -> usize {
    usize::try_from(bits % u64::try_from(end.max(1)).unwrap()).unwrap()
}

#[test]
fn a_changed_conversation_affects_no_other_peer() {
    let mut random = Random::new(0x6a69_746e_6579);
    let mut rig = Rig::new();
    let mut said = vec![conversation(Identity::Anonymous, &mut rig)];
    rig.reconnect();
    let plain = Identity::Plain {
        user: "u".to_owned(),
        password: Secret::new("p"),
    };
    said.push(conversation(plain, &mut rig));
    for case in 0..20_000 {
        rig.reconnect();
        let changed = mutate(&mut random, &said[case % said.len()]);
        let fed: usize = changed.iter().map(Bytes::len).sum();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut answered = 0;
            for piece in &changed {
                for part in piece.chunks(1 + below(&mut random, 70_000)) {
                    answered += rig.exchange(part).len();
                    let max = usize::try_from(limits::FRAME_SIZE_MAX).unwrap();
                    assert!(
                        rig.unread() <= max + part.len(),
                        "a frame is waited for too long"
                    );
                }
            }
            answered += rig.wait(100).len();
            answered
        }));
        let answered = result.unwrap_or_else(|_| panic!("case {case} panicked"));
        // The output is bounded by the waiting messages and a small answer to each frame.
        assert!(
            answered <= 64 * fed + 4_000_000,
            "case {case}: {answered} bytes for {fed}"
        );
    }
    rig.reconnect();
    rig.wait(4_000_000);
    rig.reconnect();
    conversation(Identity::Anonymous, &mut rig);
}

#[test]
fn noise_before_the_open_is_answered_with_the_header_or_an_end() {
    let mut random = Random::new(7);
    for _ in 0..3_000 {
        let mut rig = Rig::new();
        let start: &[u8] = match random.next_u64() % 3 {
            0 => b"",
            1 => b"AMQP\x03\x01\x00\x00",
            _ => b"AMQP\x00\x01\x00\x00",
        };
        let noise: Vec<u8> = (0..random.next_u64() % 600)
            .map(|_| random.next_u64().to_le_bytes()[0])
            .collect();
        let answered = rig.exchange(&[start, &noise].concat()).len();
        assert!(answered < 2_000);
        rig.wait(limits::OPEN_DEADLINE.as_millis());
        assert!(
            rig.engine().is_finished(),
            "an unopened connection is dropped"
        );
    }
}

#[test]
fn a_large_frame_before_the_open_is_refused_at_its_head() {
    let mut rig = Rig::new();
    rig.exchange(b"AMQP\x00\x01\x00\x00\xff\xff\xff\xff\x02\x00\x00\x00");
    assert!(rig.engine().is_finished());
}

#[test]
fn no_bytes_make_a_parser_panic() {
    let mut random = Random::new(99);
    let seeds: [&[u8]; 4] = [
        b"\x00\x53\x70\xc0\x07\x05\x41\x50\x04\x40\x40\x43\x00\x53\x75\xa0\x02hi",
        b"\x00\x53\x72\xc1\x0b\x02\xa3\x05x-opt\xa1\x01v\x00\x53\x77\x40",
        b"\x00\x53\x73\xd0\x00\x00\x00\x0a\x00\x00\x00\x02\xa1\x02id\x40",
        b"\x00\x01k\x00\x00\x00\x02\x52\x01",
    ];
    for case in 0..60_000_usize {
        let mut bytes = seeds[case % seeds.len()].to_vec();
        for _ in 0..=random.next_u64() % 5 {
            let at = below(&mut random, bytes.len());
            match random.next_u64() % 3 {
                0 => bytes[at] = random.next_u64().to_le_bytes()[0],
                1 => bytes.truncate(at + 1),
                _ => bytes.insert(at, random.next_u64().to_le_bytes()[0]),
            }
        }
        let bytes = Bytes::from(bytes);
        let _ = Message::parse(bytes.clone());
        let _ = split_batch(&bytes);
        let _ = Amendments::decode(&bytes);
        let _ = jitney_amqp::codec::value_length(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = address::Address::parse(&text);
        let _ = jitney_config::parse(&text);
    }
}
