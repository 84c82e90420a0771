//! Every list that this engine writes has all fields of its type: some clients take them by their index.

use std::collections::BTreeSet;

use bytes::BytesMut;

use super::*;
use crate::codec::{List, ListWriter, descriptor};

/// The fields that the specification gives each list which the engine writes, and the section that says so.
const FIELDS: &[(u64, usize)] = &[
    (0x10, 10), // open [2.7.1]
    (0x11, 8),  // begin [2.7.2]
    (0x12, 14), // attach [2.7.3]
    (0x13, 11), // flow [2.7.4]
    (0x14, 11), // transfer [2.7.5]
    (0x15, 6),  // disposition [2.7.6]
    (0x16, 3),  // detach [2.7.7]
    (0x17, 1),  // end [2.7.8]
    (0x18, 1),  // close [2.7.9]
    (0x1d, 3),  // error [2.8.14]
    (0x24, 0),  // accepted [3.4.2]
    (0x25, 1),  // rejected [3.4.3]
    (0x26, 0),  // released [3.4.4]
    (0x27, 3),  // modified [3.4.5]
    (0x28, 11), // source [3.5.3]
    (0x29, 7),  // target [3.5.4]
    (0x33, 1),  // declared [4.5.5]
    (0x34, 2),  // transactional-state [4.5.8]
    (0x40, 1),  // sasl-mechanisms [5.3.3.1]
    (0x41, 3),  // sasl-init [5.3.3.2]
    (0x44, 2),  // sasl-outcome [5.3.3.5]
];

/// Checks the lists of all frames; `seen` gets their descriptors.
pub(super) fn assert_complete(mut frames: &[u8], seen: &mut BTreeSet<u64>) {
    while let Some((head, rest)) = frames.split_first_chunk::<8>() {
        if head.starts_with(b"AMQP") {
            frames = rest;
            continue;
        }
        let size = usize::try_from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
        let (frame, after) = frames.split_at(size.unwrap());
        // A frame without a performative keeps the connection alive.
        if frame.len() > 8 {
            assert_list(&frame[8..], seen);
        }
        frames = after;
    }
}

fn assert_list(bytes: &[u8], seen: &mut BTreeSet<u64>) {
    let (code, mut list) = List::described(bytes).unwrap();
    let (_, expected) = FIELDS.iter().find(|(known, _)| *known == code).unwrap();
    seen.insert(code);
    let mut count = 0;
    while !list.is_empty() {
        count += 1;
        // The fields of these that are described lists; a filter or an outcome of the peer may be shorter.
        if let Some(field @ [0x00, 0x53, ..]) = list.raw().unwrap()
            && FIELDS
                .iter()
                .any(|(known, _)| *known == u64::from(field[2]))
        {
            assert_list(field, seen);
        }
    }
    assert_eq!(
        count,
        *expected,
        "the fields of {:?}",
        descriptor::name(code)
    );
}

#[test]
fn every_outcome_and_every_ending_has_all_fields() {
    let refusal = Refusal {
        condition: Condition::NotFound,
        description: "no".to_owned(),
    };
    let modified = |failed| Outcome::Modified {
        delivery_failed: failed,
        undeliverable_here: false,
        annotations: None,
    };
    let rejection = Rejection {
        refusal,
        info: None,
    };
    let mut seen = BTreeSet::new();
    for outcome in [
        Outcome::Accepted,
        Outcome::Released,
        modified(true),
        modified(false),
        Outcome::Rejected(None),
        Outcome::Rejected(Some(rejection.into())),
        Outcome::Declared(vec![1].into()),
        Outcome::InTransaction(vec![1].into(), Outcome::Accepted.into()),
    ] {
        let mut out = BytesMut::new();
        let range = dispositions::Range {
            first: 0,
            last: 0,
            outcome,
        };
        dispositions::write_body(&mut out, dispositions::Side::Received, &range);
        assert_list(&out, &mut seen);
    }
    let endings = [descriptor::END, descriptor::CLOSE, descriptor::DETACH];
    for code in endings {
        let mut out = BytesMut::new();
        ListWriter::begin(&mut out, code).end();
        assert_list(&out, &mut seen);
    }
    let outcomes = [0x24, 0x25, 0x26, 0x27, 0x33, 0x34];
    assert!(outcomes.iter().all(|code| seen.contains(code)), "{seen:x?}");
}
