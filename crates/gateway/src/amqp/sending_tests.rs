//! Which messages and batches are not taken, and how that is said.

use bytes::Bytes;

use super::tests::{Bench, scheduled};
use super::*;
use jitney_amqp::{DeliveryId, IncomingTransfer};
use jitney_base::ids::SequenceNumber;
use jitney_broker::namespace::{DeniedKind, Lack, Room};
use jitney_message::{BATCH_FORMAT, Message};
use jitney_queue::Description;

const ONE: ConnectionId = ConnectionId(1);
const LINK: LinkId = LinkId(1);

/// A message with a message-id, or with null for it, and perhaps a partition key.
fn sent(id: Option<u8>, key: Option<u8>) -> Message {
    let mut bytes = Vec::new();
    if let Some(key) = key {
        bytes.extend_from_slice(b"\x00\x53\x72\xc1\x19\x02\xa3\x13x-opt-partition-key\xa1\x01");
        bytes.push(key);
    }
    if let Some(id) = id {
        bytes.extend_from_slice(&[0x00, 0x53, 0x73, 0xc0, 4, 1, 0xa1, 1, id]);
    }
    bytes.extend_from_slice(jitney_message::EMPTY);
    Message::parse(bytes.into()).unwrap()
}

fn partitioned(detects_duplicates: bool) -> Description {
    Description {
        partitioned: true,
        detects_duplicates,
        ..Description::default()
    }
}

fn make(bench: &mut Bench, path: &str, description: Description) -> EntityId {
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, path, description))
        .unwrap();
    bench.id(path)
}

/// Sends a batch over a link; returns why the link was detached, if it was.
fn send_batch(bench: &mut Bench, queue: EntityId, payload: Bytes) -> Option<(DeniedKind, String)> {
    bench.run(|gateway, cx| {
        let link = Link::Sender {
            queue,
            destination: None,
            group: None,
            deliveries: 0,
        };
        gateway.connection(ONE).links.insert(LINK, link);
        let incoming = IncomingTransfer {
            link: LINK,
            delivery: DeliveryId(0),
            payload,
            message_format: BATCH_FORMAT,
            settled: false,
            transaction: None,
        };
        gateway.transfer(cx, ONE, incoming);
    });
    let told = std::mem::take(&mut bench.told);
    told.into_iter().find_map(|routed| match routed.reply {
        Reply::Detach(LINK, denied) => Some((denied.kind, denied.text)),
        _ => None,
    })
}

#[test]
fn a_batch_is_for_one_partition() {
    let mut bench = Bench::new();
    let plain = bench.id("q");
    let keyed = make(&mut bench, "p", partitioned(false));
    let detecting = make(&mut bench, "d", partitioned(true));
    let check = |queue, messages: &[Message]| {
        let checked = bench.gateway.namespaces.check_batch(queue, messages);
        checked.map_err(|denied| (denied.kind, denied.text))
    };
    let apart = [sent(Some(b'1'), Some(b'a')), sent(Some(b'2'), Some(b'b'))];
    assert_eq!(check(plain, &apart), Ok(()));
    let (kind, text) = check(keyed, &apart).unwrap_err();
    assert_eq!(kind, DeniedKind::NotAllowed);
    let words =
        "Batching brokered messages with distinct SessionId or PartitionKey is not supported";
    assert!(text.starts_with(words), "{text}");
    let together = [sent(Some(b'1'), Some(b'a')), sent(Some(b'2'), Some(b'a'))];
    assert_eq!(check(keyed, &together), Ok(()));
    assert_eq!(check(detecting, &together), Ok(()));
    let half = [sent(Some(b'1'), Some(b'a')), sent(Some(b'2'), None)];
    assert!(check(keyed, &half).is_err());
    let ids = [sent(Some(b'1'), None), sent(Some(b'2'), None)];
    assert_eq!(check(keyed, &ids), Ok(()));
    let (_, text) = check(detecting, &ids).unwrap_err();
    assert!(
        text.contains("SessionId, PartitionKey, or MessageId"),
        "{text}"
    );
    assert_eq!(check(detecting, &ids[..1]), Ok(()));
}

#[test]
fn a_message_has_an_id_or_a_key_where_partitions_find_duplicates() {
    let mut bench = Bench::new();
    let detecting = make(&mut bench, "d", partitioned(true));
    for (message, is_taken) in [
        (sent(None, None), false),
        (sent(Some(b'1'), None), true),
        (sent(None, Some(b'a')), true),
    ] {
        let taken = bench.run(|gateway, cx| gateway.take_messages(cx, detecting, vec![message]));
        assert_eq!(taken.is_ok(), is_taken, "{taken:?}");
        if let Err(denied) = taken {
            assert!(
                denied
                    .text
                    .contains("must have either PartitionKey or MessageId")
            );
        }
    }
    let keyed = make(&mut bench, "p", partitioned(false));
    let taken = bench.run(|gateway, cx| gateway.take_messages(cx, keyed, vec![sent(None, None)]));
    assert!(taken.is_ok());
}

#[test]
fn a_batch_without_data_or_of_too_many_bytes_ends_its_link() {
    let mut bench = Bench::new();
    let large = Description {
        max_message_bytes: jitney_base::limits::MESSAGE_SIZE_MAX,
        ..Description::default()
    };
    let queue = make(&mut bench, "large", large);
    let (kind, text) = send_batch(&mut bench, queue, Bytes::new()).unwrap();
    assert_eq!(kind, DeniedKind::NotAllowed);
    assert!(
        text.contains("received a batch message with no data in it"),
        "{text}"
    );
    // A data section of a message that is a data section.
    let batch = |length: usize| {
        let section = |bytes: Vec<u8>| {
            let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
            [&[0x00, 0x53, 0x75, 0xb0][..], &length, &bytes].concat()
        };
        Bytes::from(section(section(vec![0; length])))
    };
    let max = usize::try_from(jitney_message::limits::MESSAGE_SIZE_DEFAULT).unwrap();
    assert_eq!(send_batch(&mut bench, queue, batch(max)), None);
    assert_eq!(bench.seen("large").len(), 1);
    let (kind, text) = send_batch(&mut bench, queue, batch(max + 100_000)).unwrap();
    assert_eq!(kind, DeniedKind::NotAllowed);
    assert!(
        text.contains("1048576 bytes are the most of a batch"),
        "{text}"
    );
    assert_eq!(bench.seen("large").len(), 1);
    // What is no batch has the entity's own bound.
    let data = vec![0x00, 0x53, 0x75, 0xb0, 0x00, 0x20, 0x00, 0x00];
    let single = Message::parse([data, vec![0; 0x20_0000]].concat().into()).unwrap();
    bench.send("large", single);
    let held = bench.gateway.namespaces.queue(queue).unwrap().len();
    assert_eq!(held, 2);
}

#[test]
fn a_duplicate_that_is_scheduled_has_a_number_and_is_dropped() {
    let mut bench = Bench::new();
    let detects = Description {
        detects_duplicates: true,
        ..Description::default()
    };
    let queue = make(&mut bench, "detects", detects);
    let messages = vec![
        sent(Some(b'1'), None),
        sent(Some(b'1'), None),
        scheduled(9_000, b'x'),
    ];
    let numbers = bench.run(|gateway, cx| {
        gateway.with_namespaces(cx, |namespaces, cx| {
            namespaces.schedule_messages(cx, queue, messages)
        })
    });
    let expected = [1, 2, 3].map(SequenceNumber);
    assert_eq!(numbers.unwrap(), expected);
    assert_eq!(bench.seen("detects"), [(1, 0), (3, 0)]);
    bench.check_replay();
}

#[test]
fn properties_that_are_too_large_are_refused_on_every_way_in() {
    let mut bench = Bench::new();
    let queue = bench.id("q");
    let mut bytes = b"\x00\x53\x74\xd1".to_vec();
    let value = vec![b'x'; 40_000];
    bytes.extend_from_slice(
        &u32::try_from(4 + 3 + 5 + value.len())
            .unwrap()
            .to_be_bytes(),
    );
    bytes.extend_from_slice(&2_u32.to_be_bytes());
    bytes.extend_from_slice(b"\xa1\x01k\xb1");
    bytes.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(&value);
    bytes.extend_from_slice(jitney_message::EMPTY);
    let large = Message::parse(bytes.into()).unwrap();
    let taken = bench.run(|gateway, cx| gateway.take_messages(cx, queue, vec![large]));
    let denied = taken.unwrap_err();
    assert_eq!(denied.kind, DeniedKind::Argument);
    assert!(
        denied.text.contains("'k' has 40005 bytes, and 32768"),
        "{}",
        denied.text
    );
}

#[test]
fn a_refusal_for_want_of_room_says_what_is_full() {
    let mut bench = Bench::new();
    let queue = bench.id("q");
    for (lack, begins) in [
        (
            Lack::Disk,
            "The broker's disk is full: messages are received",
        ),
        (
            Lack::Memory,
            "The broker's memory is full: messages are received",
        ),
        (
            Lack::Store,
            "The broker cannot write to its store: messages",
        ),
    ] {
        bench.gateway.namespaces_mut().set_room(Room::None(lack));
        let taken =
            bench.run(|gateway, cx| gateway.take_messages(cx, queue, vec![sent(None, None)]));
        let denied = taken.unwrap_err();
        assert_eq!(denied.kind, DeniedKind::Full);
        assert!(denied.text.starts_with(begins), "{}", denied.text);
    }
    let namespaces = bench.gateway.namespaces_mut();
    namespaces.set_room(Room::None(Lack::Disk));
    namespaces.set_figures("1 MiB is free, 128 MiB are needed".to_owned());
    let taken = bench.run(|gateway, cx| gateway.take_messages(cx, queue, vec![sent(None, None)]));
    let text = taken.unwrap_err().text;
    let begins = "The broker's disk is full (1 MiB is free, 128 MiB are needed): messages are";
    assert!(text.starts_with(begins), "{text}");
}
