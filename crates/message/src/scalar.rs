//! AMQP's simple values, as rules compare and compute them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use jitney_amqp::codec::value::text;
use jitney_amqp::codec::write::{
    write_boolean, write_long, write_null, write_string, write_symbol, write_timestamp, write_ulong,
};
use jitney_amqp::codec::{Encoded, value_length};
use jitney_base::time::{TICKS_PER_MILLI, Timestamp, UNIX_EPOCH_TICKS};

/// A simple value: of a property, a parameter, or an expression.
///
/// All integers are one kind, and all floating and decimal numbers another: what a client sends
/// as `int` another sends as `long`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scalar<'a> {
    /// `boolean`.
    Boolean(bool),
    /// `float`, `double`, and the decimals, which become the nearest double.
    Double(#[serde(with = "digits")] f64),
    /// A `com.microsoft:timespan`: 100 ns.
    Duration(i64),
    /// An integer.
    Long(i64),
    /// No value.
    Null,
    /// Any other value, as it is encoded: binaries, lists, values with an unknown descriptor. It
    /// compares with nothing.
    Opaque(Cow<'a, [u8]>),
    /// `string`, `symbol`, `char`, or a `com.microsoft:uri`.
    Text(Cow<'a, str>),
    /// `timestamp`, or a `com.microsoft:datetime-offset`: 100 ns since 1970-01-01T00:00:00Z.
    Timestamp(i64),
    /// An integer that no [`Scalar::Long`] can be.
    Ulong(u64),
    /// `uuid`, in RFC 4122 order.
    Uuid([u8; 16]),
}

const TIMESPAN: &str = "com.microsoft:timespan";
const DATETIME_OFFSET: &str = "com.microsoft:datetime-offset";
const URI: &str = "com.microsoft:uri";

impl<'a> Scalar<'a> {
    /// Reads an encoded value.
    #[must_use]
    pub fn decode(value: &'a [u8]) -> Self {
        let opaque = Self::Opaque(Cow::Borrowed(value));
        match value {
            [0x40] => Self::Null,
            [0x41] => Self::Boolean(true),
            [0x42] => Self::Boolean(false),
            [0x56, byte] => Self::Boolean(*byte != 0),
            [0x72, a, b, c, d] => Self::Double(f64::from(f32::from_be_bytes([*a, *b, *c, *d]))),
            [0x82, rest @ ..] => {
                array(rest).map_or(opaque, |bytes| Self::Double(f64::from_be_bytes(bytes)))
            }
            [0x73, a, b, c, d] => {
                let found = char::from_u32(u32::from_be_bytes([*a, *b, *c, *d]));
                found.map_or(opaque, |found| Self::Text(found.to_string().into()))
            }
            [0x74, rest @ ..] => {
                let value = array::<4>(rest).and_then(|bytes| decimal(&bytes, 8, 101));
                value.map_or(opaque, Self::Double)
            }
            [0x84, rest @ ..] => {
                let value = array::<8>(rest).and_then(|bytes| decimal(&bytes, 10, 398));
                value.map_or(opaque, Self::Double)
            }
            [0x94, rest @ ..] => {
                let value = array::<16>(rest).and_then(|bytes| decimal(&as_ieee(bytes), 14, 6176));
                value.map_or(opaque, Self::Double)
            }
            [0x83, rest @ ..] => array(rest).map_or(opaque, |bytes| {
                Self::from(Timestamp::from_millis(i64::from_be_bytes(bytes)))
            }),
            [0x98, rest @ ..] => array(rest).map_or(opaque, Self::Uuid),
            [0x00, rest @ ..] => described(rest).unwrap_or(opaque),
            _ => match (text(value), Encoded::new(value).any_integer()) {
                (Some(text), _) => Self::Text(Cow::Borrowed(text)),
                (None, Some(integer)) => Self::from_integer(integer).unwrap_or(opaque),
                (None, None) => opaque,
            },
        }
    }

    /// Takes an integer that 64 bits hold, with a sign or without.
    #[must_use]
    pub fn from_integer(value: i128) -> Option<Self> {
        let long = i64::try_from(value).map(Self::Long);
        long.or_else(|_| u64::try_from(value).map(Self::Ulong)).ok()
    }

    /// Returns an integer.
    #[must_use]
    pub fn integer(&self) -> Option<i128> {
        match self {
            Self::Long(value) => Some(i128::from(*value)),
            Self::Ulong(value) => Some(i128::from(*value)),
            Self::Boolean(_)
            | Self::Double(_)
            | Self::Duration(_)
            | Self::Null
            | Self::Opaque(_)
            | Self::Text(_)
            | Self::Timestamp(_)
            | Self::Uuid(_) => None,
        }
    }

    /// Returns the value with bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> Scalar<'static> {
        match self {
            Self::Boolean(value) => Scalar::Boolean(value),
            Self::Double(value) => Scalar::Double(value),
            Self::Duration(value) => Scalar::Duration(value),
            Self::Long(value) => Scalar::Long(value),
            Self::Null => Scalar::Null,
            Self::Opaque(value) => Scalar::Opaque(Cow::Owned(value.into_owned())),
            Self::Text(value) => Scalar::Text(Cow::Owned(value.into_owned())),
            Self::Timestamp(value) => Scalar::Timestamp(value),
            Self::Ulong(value) => Scalar::Ulong(value),
            Self::Uuid(value) => Scalar::Uuid(value),
        }
    }

    /// Returns the same value, of this one's bytes.
    #[must_use]
    pub fn borrowed(&self) -> Scalar<'_> {
        match self {
            Self::Opaque(value) => Scalar::Opaque(Cow::Borrowed(value)),
            Self::Text(value) => Scalar::Text(Cow::Borrowed(value)),
            Self::Boolean(value) => Scalar::Boolean(*value),
            Self::Double(value) => Scalar::Double(*value),
            Self::Duration(value) => Scalar::Duration(*value),
            Self::Long(value) => Scalar::Long(*value),
            Self::Null => Scalar::Null,
            Self::Timestamp(value) => Scalar::Timestamp(*value),
            Self::Ulong(value) => Scalar::Ulong(*value),
            Self::Uuid(value) => Scalar::Uuid(*value),
        }
    }

    /// Appends the value, encoded.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => write_null(out),
            Self::Boolean(value) => write_boolean(out, *value),
            Self::Long(value) => write_long(out, *value),
            Self::Ulong(value) => write_ulong(out, *value),
            Self::Double(value) => fixed(out, 0x82, &value.to_be_bytes()),
            Self::Text(value) => write_string(out, value),
            Self::Uuid(value) => fixed(out, 0x98, value),
            Self::Timestamp(ticks) => write_timestamp(out, ticks.div_euclid(TICKS_PER_MILLI)),
            Self::Duration(ticks) => {
                out.push(0x00);
                write_symbol(out, TIMESPAN);
                write_long(out, *ticks);
            }
            Self::Opaque(value) => out.extend_from_slice(value),
        }
    }

    /// Appends the value as it is encoded where `before` was: in that type if it can hold the
    /// value, in its own if not. A client that reads an `int` need not learn to read a `long`.
    pub fn encode_like(&self, before: &[u8], out: &mut Vec<u8>) {
        let code = before.first().copied().unwrap_or_default();
        let done = match (self.integer(), self) {
            (Some(value), _) => encode_integer(out, code, value).is_some(),
            (None, Self::Double(value)) if code == 0x72 => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "there is no other way to the nearest"
                )]
                let single = *value as f32;
                // The same number, to the bit; what is more precise stays a double.
                let same = f64::from(single).to_bits() == value.to_bits();
                if same {
                    fixed(out, code, &single.to_be_bytes());
                }
                same
            }
            _ => false,
        };
        if !done {
            self.encode(out);
        }
    }
}

impl From<Timestamp> for Scalar<'_> {
    fn from(at: Timestamp) -> Self {
        Self::Timestamp(at.as_millis().saturating_mul(TICKS_PER_MILLI))
    }
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn fixed(out: &mut Vec<u8>, code: u8, bytes: &[u8]) {
    out.push(code);
    out.extend_from_slice(bytes);
}

/// Appends an integer in the type of which `code` is a constructor, if it can hold it.
fn encode_integer(out: &mut Vec<u8>, code: u8, value: i128) -> Option<()> {
    match code {
        0x50 => fixed(out, 0x50, &u8::try_from(value).ok()?.to_be_bytes()),
        0x51 => fixed(out, 0x51, &i8::try_from(value).ok()?.to_be_bytes()),
        0x60 => fixed(out, 0x60, &u16::try_from(value).ok()?.to_be_bytes()),
        0x61 => fixed(out, 0x61, &i16::try_from(value).ok()?.to_be_bytes()),
        0x43 | 0x52 | 0x70 => fixed(out, 0x70, &u32::try_from(value).ok()?.to_be_bytes()),
        0x54 | 0x71 => fixed(out, 0x71, &i32::try_from(value).ok()?.to_be_bytes()),
        0x44 | 0x53 | 0x80 => fixed(out, 0x80, &u64::try_from(value).ok()?.to_be_bytes()),
        0x72 | 0x82 => {
            // Integers that a double holds exactly, as most are.
            let small = i32::try_from(value).ok()?;
            Scalar::Double(f64::from(small)).encode_like(&[code], out);
        }
        _ => return None,
    }
    Some(())
}

/// Reads the rest of a described value after its 0x00, if it is one of .NET's.
fn described(bytes: &[u8]) -> Option<Scalar<'_>> {
    let length = value_length(bytes).ok()?;
    let (name, value) = bytes.split_at_checked(length)?;
    let ticks = |value| i64::try_from(Encoded::new(value).any_integer()?).ok();
    match text(name)? {
        TIMESPAN => Some(Scalar::Duration(ticks(value)?)),
        DATETIME_OFFSET => Some(Scalar::Timestamp(
            ticks(value)?.saturating_sub(UNIX_EPOCH_TICKS),
        )),
        URI => Some(Scalar::Text(Cow::Borrowed(text(value)?))),
        _ => None,
    }
}

/// Returns a decimal128 as IEEE 754 has it. Microsoft.Azure.Amqp writes the upper part of the exponent
/// two bits further down: 1.25 begins with `0c3c`, not with `303c`. The exponents of .NET's 0 to 28
/// digits after the point are read so; in IEEE 754 they would be those of numbers below 1e-4500.
const fn as_ieee(mut bytes: [u8; 16]) -> [u8; 16] {
    if let [first, 0x08..=0x40, 0, 0, ..] = &mut bytes
        && *first & 0x7f == 0x0c
    {
        *first = *first & 0x80 | 0x30;
    }
    bytes
}

/// Reads an IEEE 754 decimal in its binary encoding.
fn decimal(bytes: &[u8], exponent_bits: u32, bias: i32) -> Option<f64> {
    let mut bits = 0_u128;
    for &byte in bytes {
        bits = bits << 8 | u128::from(byte);
    }
    let width = u32::try_from(bytes.len()).ok()?.checked_mul(8)?;
    let (coefficient_bits, sign) = (width.checked_sub(1 + exponent_bits)?, bits >> (width - 1));
    let field = |from: u32, count: u32| bits >> from & ((1_u128 << count) - 1);
    let (exponent, coefficient) = match field(width - 3, 2) {
        // Infinities and NaN.
        3 if field(width - 5, 4) == 0xf => return None,
        3 => {
            let coefficient = 0b100_u128 << (coefficient_bits - 2) | field(0, coefficient_bits - 2);
            (field(coefficient_bits - 2, exponent_bits), coefficient)
        }
        _ => (
            field(coefficient_bits, exponent_bits),
            field(0, coefficient_bits),
        ),
    };
    let exponent = i32::try_from(exponent).ok()?.checked_sub(bias)?;
    let magnitude: f64 = format!("{coefficient}e{exponent}").parse().ok()?;
    Some(if sign == 0 { magnitude } else { -magnitude })
}

/// Doubles as text: JSON has no infinity.
mod digits {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&value.to_string())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}
