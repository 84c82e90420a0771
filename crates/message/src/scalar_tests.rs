//! Simple values, in every encoding.

use proptest::prelude::*;

use super::Scalar;

fn encoded(value: &Scalar<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

fn text(text: &str) -> Scalar<'_> {
    Scalar::Text(text.into())
}

#[test]
fn every_encoding_is_read() {
    let timespan = [&[0x00, 0xa3, 22][..], b"com.microsoft:timespan", &[0x55, 5]].concat();
    let offset = [
        &[0x00, 0xa3, 29][..],
        b"com.microsoft:datetime-offset",
        &[0x81],
        &621_355_968_000_000_007_i64.to_be_bytes(),
    ]
    .concat();
    let uri = [
        &[0x00, 0xa3, 17][..],
        b"com.microsoft:uri",
        &[0xa1, 1, b'u'],
    ]
    .concat();
    let foreign = [0x00, 0xa3, 1, b'x', 0x40];
    let cases: [(&[u8], Scalar<'_>); 36] = [
        (&[0x40], Scalar::Null),
        (&[0x41], Scalar::Boolean(true)),
        (&[0x42], Scalar::Boolean(false)),
        (&[0x56, 1], Scalar::Boolean(true)),
        (&[0x56, 0], Scalar::Boolean(false)),
        (&[0x43], Scalar::Long(0)),
        (&[0x44], Scalar::Long(0)),
        (&[0x50, 200], Scalar::Long(200)),
        (&[0x51, 0xff], Scalar::Long(-1)),
        (&[0x52, 200], Scalar::Long(200)),
        (&[0x53, 200], Scalar::Long(200)),
        (&[0x54, 0xff], Scalar::Long(-1)),
        (&[0x55, 0xff], Scalar::Long(-1)),
        (&[0x60, 1, 0], Scalar::Long(256)),
        (&[0x61, 0xff, 0xfe], Scalar::Long(-2)),
        (&[0x70, 0, 0, 1, 0], Scalar::Long(256)),
        (&[0x71, 0xff, 0xff, 0xff, 0xfe], Scalar::Long(-2)),
        (&[0x80, 0, 0, 0, 0, 0, 0, 0, 9], Scalar::Long(9)),
        (
            &[0x80, 255, 255, 255, 255, 255, 255, 255, 255],
            Scalar::Ulong(u64::MAX),
        ),
        (
            &[0x81, 255, 255, 255, 255, 255, 255, 255, 255],
            Scalar::Long(-1),
        ),
        (&[0x72, 0x3f, 0, 0, 0], Scalar::Double(0.5)),
        (&[0x82, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0], Scalar::Double(0.5)),
        (&[0x73, 0, 0, 0, b'c'], text("c")),
        (&[0x83, 0, 0, 0, 0, 0, 0, 0, 1], Scalar::Timestamp(10_000)),
        (
            &[0x98, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
            Scalar::Uuid([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
        ),
        (&[0xa1, 1, b'a'], text("a")),
        (&[0xb1, 0, 0, 0, 1, b'a'], text("a")),
        (&[0xa3, 1, b'a'], text("a")),
        (&[0xb3, 0, 0, 0, 1, b'a'], text("a")),
        (&[0xa0, 1, 5], Scalar::Opaque([0xa0, 1, 5][..].into())),
        (&[0x45], Scalar::Opaque([0x45][..].into())),
        (&foreign, Scalar::Opaque(foreign[..].into())),
        (&timespan, Scalar::Duration(5)),
        (&offset, Scalar::Timestamp(7)),
        (&uri, text("u")),
        (
            &[0x73, 0, 0x11, 0, 0],
            Scalar::Opaque([0x73, 0, 0x11, 0, 0][..].into()),
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(Scalar::decode(bytes), expected, "{bytes:x?}");
    }
}

#[test]
fn decimals_of_dotnet_s_are_read_as_those_of_others() {
    // The encoding of Microsoft.Azure.Amqp, and IEEE 754's form of it.
    for (dotnet, ieee, coefficient, expected) in [
        ([0x0c, 0x3c], [0x30, 0x3c], 125_u128, 1.25),
        ([0x8c, 0x3e], [0xb0, 0x3e], 25, -2.5),
        ([0x0c, 0x40], [0x30, 0x40], 7, 7.0),
        ([0x0c, 0x08], [0x30, 0x08], 1, 1e-28),
    ] {
        for begin in [dotnet, ieee] {
            let coefficient = &coefficient.to_be_bytes()[2..];
            let value = [&[0x94][..], &begin, coefficient].concat();
            assert_eq!(
                Scalar::decode(&value),
                Scalar::Double(expected),
                "{value:x?}"
            );
        }
    }
}

#[test]
fn decimals_are_the_nearest_doubles() {
    // Sign, exponent with its bias, coefficient.
    let small = |exponent: u32, coefficient: u32| (exponent << 23 | coefficient).to_be_bytes();
    let middle = |exponent: u64, coefficient: u64| (exponent << 53 | coefficient).to_be_bytes();
    let large = |exponent: u128, coefficient: u128| (exponent << 113 | coefficient).to_be_bytes();
    let cases = [
        ([&[0x74][..], &small(101, 5)].concat(), 5.0),
        ([&[0x74][..], &small((1 << 8) + 100, 25)].concat(), -2.5),
        // A coefficient that needs the other form: 2^23 and more.
        (
            [&[0x74][..], &(0b11 << 29 | 101 << 21 | 1_u32).to_be_bytes()].concat(),
            8_388_609.0,
        ),
        ([&[0x84][..], &middle(396, 1234)].concat(), 12.34),
        ([&[0x94][..], &large(6176 - 1, 105)].concat(), 10.5),
        (
            [&[0x94][..], &large((1 << 14) + 6180, 3)].concat(),
            -30_000.0,
        ),
        (
            [&[0x94][..], &large(6176, 1 << 96)].concat(),
            79_228_162_514_264_337_593_543_950_336.0,
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(
            Scalar::decode(&bytes),
            Scalar::Double(expected),
            "{bytes:x?}"
        );
    }
    for infinite in [0x78, 0x7c, 0xf8] {
        let bytes = [0x74, infinite, 0, 0, 0];
        assert_eq!(Scalar::decode(&bytes), Scalar::Opaque(bytes[..].into()));
    }
}

#[test]
fn a_value_takes_the_type_of_the_one_before_if_it_fits() {
    let cases: [(Scalar<'_>, &[u8], &[u8]); 12] = [
        (Scalar::Long(5), &[0x54, 1], &[0x71, 0, 0, 0, 5]),
        (Scalar::Long(5), &[0x50, 1], &[0x50, 5]),
        (Scalar::Long(-5), &[0x51, 1], &[0x51, 0xfb]),
        (Scalar::Long(5), &[0x60, 0, 1], &[0x60, 0, 5]),
        (Scalar::Long(5), &[0x61, 0, 1], &[0x61, 0, 5]),
        (Scalar::Long(5), &[0x43], &[0x70, 0, 0, 0, 5]),
        (Scalar::Long(5), &[0x44], &[0x80, 0, 0, 0, 0, 0, 0, 0, 5]),
        (
            Scalar::Long(-5),
            &[0x43],
            &[0x81, 255, 255, 255, 255, 255, 255, 255, 0xfb],
        ),
        (Scalar::Long(5), &[0xa1, 0], &[0x81, 0, 0, 0, 0, 0, 0, 0, 5]),
        (
            Scalar::Long(1),
            &[0x82, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x82, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0],
        ),
        (
            Scalar::Double(0.1),
            &[0x72, 0, 0, 0, 0],
            &[0x82, 0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a],
        ),
        (text("a"), &[0x54, 1], &[0xa1, 1, b'a']),
    ];
    for (value, before, expected) in cases {
        let mut out = Vec::new();
        value.encode_like(before, &mut out);
        assert_eq!(out, expected, "{value:?} where {before:x?} was");
    }
}

fn any_scalar() -> impl Strategy<Value = Scalar<'static>> {
    prop_oneof![
        any::<bool>().prop_map(Scalar::Boolean),
        any::<f64>().prop_map(Scalar::Double),
        any::<i64>().prop_map(Scalar::Duration),
        any::<i64>().prop_map(Scalar::Long),
        Just(Scalar::Null),
        ".{0,300}".prop_map(|text| Scalar::Text(text.into())),
        // The part of a time that AMQP stores.
        (-(1_i64 << 48)..1 << 48).prop_map(|millis| Scalar::Timestamp(millis * 10_000)),
        (1_u64 << 63..=u64::MAX).prop_map(Scalar::Ulong),
        any::<[u8; 16]>().prop_map(Scalar::Uuid),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_read_again(value in any_scalar()) {
        let bytes = encoded(&value);
        prop_assert_eq!(&Scalar::decode(&bytes), &value);
        prop_assert_eq!(&value.borrowed(), &value);
        let json = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Scalar<'_>>(&json).unwrap(), &value);
    }

    #[test]
    fn no_bytes_make_it_fall(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        let value = Scalar::decode(&bytes);
        if let Scalar::Opaque(own) = &value {
            prop_assert_eq!(&own[..], &bytes[..]);
        }
    }
}
