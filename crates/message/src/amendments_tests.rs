//! Changes to messages, and what the log keeps of them.

use proptest::prelude::*;

use super::tests::any_amendments;
use super::*;
use jitney_amqp::codec::Encoded;

#[test]
fn amendments_of_older_logs_mean_what_they_did() {
    let kept = [
        &[0, 1, b'a', 0, 0, 0, 2, 0x54, 7][..],
        &[0, 2, b'b', b'c', 0, 0, 0, 1, 0x40],
    ]
    .concat();
    let read = Amendments::decode(&kept).unwrap();
    let entries: Vec<_> = read.iter().collect();
    assert_eq!(entries, [("a", &[0x54, 7][..]), ("bc", &[0x40][..])]);
    assert_eq!(read.encode(), kept);
}

#[test]
fn what_rules_change_is_in_the_log_to_the_byte() {
    let mut amendments = Amendments::default();
    amendments.remove("a");
    amendments.set_field(Field::To, Some("x"));
    amendments.set_field(Field::SessionId, None);
    let kept = [
        &[0, 1, b'a', 0, 0, 0, 0][..],
        &[0, 8],
        b"group-id",
        &[0, 0, 0, 2, 0x01, 0x40],
        &[0, 2],
        b"to",
        &[0, 0, 0, 4, 0x01, 0xa1, 1, b'x'],
    ];
    assert_eq!(amendments.encode(), kept.concat());
    assert_eq!(amendments.size(), kept.concat().len());
    assert_eq!(amendments.group_id(), None);
    for broken in [
        &[0, 1, b'x', 0, 0, 0, 2, 0x01, 0x40][..],
        &[0, 2, b't', b'o', 0, 0, 0, 1, 0x01],
        &[0, 2, b't', b'o', 0, 0, 0, 3, 0x01, 0x40, 0x40],
        &[0, 2, b't', b'o', 0, 0, 0, 1, 0x02],
    ] {
        assert!(Amendments::decode(broken).is_err(), "{broken:?}");
    }
}

#[test]
fn a_reason_is_taken_out_of_the_amendments_if_it_is_text() {
    let mut amendments = Amendments::default();
    amendments.set_string("DeadLetterReason", "old");
    amendments.set_string("DeadLetterReason", "new");
    assert_eq!(
        amendments.take_string("DeadLetterReason").as_deref(),
        Some("new")
    );
    assert!(amendments.is_empty());
    let map = [0xc1, 6, 2, 0xa1, 1, b'n', 0x54, 7];
    let mut amendments = Amendments::from_encoded(Encoded::new(&map));
    assert_eq!(amendments.take_string("n"), None);
    assert!(!amendments.is_empty());
}

proptest! {
    #[test]
    fn what_is_in_the_log_is_read_again(first in any_amendments(), later in any_amendments()) {
        let mut both = first.clone();
        both.merge(&later);
        prop_assert_eq!(Amendments::decode(&both.encode()), Ok(both.clone()));
        let names = ('a'..='e').flat_map(|a| ["", "a", "b", "c", "d", "e"].map(|b| format!("{a}{b}")));
        for name in names {
            let holds = if later.contains(&name) { &later } else { &first };
            let value = |amendments: &Amendments| -> Option<Vec<u8>> {
                let found = amendments.iter().find(|(held, _)| *held == name);
                found.map(|(_, value)| value.to_vec())
            };
            prop_assert_eq!(value(&both), value(holds));
            prop_assert_eq!(both.contains(&name), holds.contains(&name));
        }
        for field in Field::ALL {
            prop_assert_eq!(both.field(field), later.field(field).or_else(|| first.field(field)));
        }
        prop_assert_eq!(both.size(), both.encode().len());
        prop_assert_eq!(first.is_empty() && later.is_empty(), both.is_empty());
    }
}
