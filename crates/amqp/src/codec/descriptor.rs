//! Descriptors of the types that AMQP defines: their codes, and their names.

use super::constructor::DESCRIBED;
use super::shape::{Misshapen, value_length};
use super::value::text;
use crate::limits;

/// Why bytes do not begin with the descriptor of a type that AMQP defines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// The bytes are not a value.
    #[error("{0}")]
    Misshapen(#[from] Misshapen),
    /// The value is not a described one.
    #[error("a value has no descriptor")]
    Missing,
    /// The descriptor is a value of another type.
    #[error("a descriptor is neither a ulong nor a symbol")]
    WrongType,
    /// AMQP defines no type of this name.
    #[error("AMQP defines no type called {0:?}")]
    Unknown(String),
}

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $symbol:literal $(, $fields:literal)?;)*) => {
        $($(#[$doc])* pub const $name: u64 = $code;)*

        /// Returns how many fields the specification gives a type that is a list, and 0 for any other.
        #[must_use]
        #[inline]
        pub const fn field_count(code: u64) -> usize {
            match code {
                $($($name => $fields,)?)*
                _ => 0,
            }
        }

        /// Every type that AMQP defines for frames, messages and transactions, with its symbolic descriptor.
        const TYPES: &[(u64, &str)] = &[$(($name, $symbol)),*];
    };
}

// The number at the end is that of the fields of a list.
types! {
    /// The performative open [2.7.1].
    OPEN = 0x10, "amqp:open:list", 10;
    /// The performative begin [2.7.2].
    BEGIN = 0x11, "amqp:begin:list", 8;
    /// The performative attach [2.7.3].
    ATTACH = 0x12, "amqp:attach:list", 14;
    /// The performative flow [2.7.4].
    FLOW = 0x13, "amqp:flow:list", 11;
    /// The performative transfer [2.7.5].
    TRANSFER = 0x14, "amqp:transfer:list", 11;
    /// The performative disposition [2.7.6].
    DISPOSITION = 0x15, "amqp:disposition:list", 6;
    /// The performative detach [2.7.7].
    DETACH = 0x16, "amqp:detach:list", 3;
    /// The performative end [2.7.8].
    END = 0x17, "amqp:end:list", 1;
    /// The performative close [2.7.9].
    CLOSE = 0x18, "amqp:close:list", 1;
    /// An error [2.8.14].
    ERROR = 0x1d, "amqp:error:list", 3;
    /// The delivery state received [3.4.1].
    RECEIVED = 0x23, "amqp:received:list", 2;
    /// The outcome accepted [3.4.2].
    ACCEPTED = 0x24, "amqp:accepted:list";
    /// The outcome rejected [3.4.3].
    REJECTED = 0x25, "amqp:rejected:list", 1;
    /// The outcome released [3.4.4].
    RELEASED = 0x26, "amqp:released:list";
    /// The outcome modified [3.4.5].
    MODIFIED = 0x27, "amqp:modified:list", 3;
    /// A source [3.5.3].
    SOURCE = 0x28, "amqp:source:list", 11;
    /// A target [3.5.4].
    TARGET = 0x29, "amqp:target:list", 7;
    /// A transaction coordinator [4.5.1].
    COORDINATOR = 0x30, "amqp:coordinator:list", 1;
    /// The request to begin a transaction [4.5.2].
    DECLARE = 0x31, "amqp:declare:list", 1;
    /// The request to end a transaction [4.5.3].
    DISCHARGE = 0x32, "amqp:discharge:list", 2;
    /// The outcome declared [4.5.5].
    DECLARED = 0x33, "amqp:declared:list", 1;
    /// The state of a delivery in a transaction [4.5.8].
    TRANSACTIONAL_STATE = 0x34, "amqp:transactional-state:list", 2;
    /// The mechanisms that a server offers [5.3.3.1].
    SASL_MECHANISMS = 0x40, "amqp:sasl-mechanisms:list", 1;
    /// A client's choice of a mechanism [5.3.3.2].
    SASL_INIT = 0x41, "amqp:sasl-init:list", 3;
    /// The outcome of an authentication [5.3.3.5].
    SASL_OUTCOME = 0x44, "amqp:sasl-outcome:list", 2;
    /// The section header [3.2.1].
    HEADER = 0x70, "amqp:header:list", 5;
    /// The section delivery-annotations [3.2.2].
    DELIVERY_ANNOTATIONS = 0x71, "amqp:delivery-annotations:map";
    /// The section message-annotations [3.2.3].
    MESSAGE_ANNOTATIONS = 0x72, "amqp:message-annotations:map";
    /// The section properties [3.2.4].
    PROPERTIES = 0x73, "amqp:properties:list", 13;
    /// The section application-properties [3.2.5].
    APPLICATION_PROPERTIES = 0x74, "amqp:application-properties:map";
    /// The section data [3.2.6].
    DATA = 0x75, "amqp:data:binary";
    /// The section amqp-sequence [3.2.7].
    AMQP_SEQUENCE = 0x76, "amqp:amqp-sequence:list";
    /// The section amqp-value [3.2.8].
    AMQP_VALUE = 0x77, "amqp:amqp-value:*";
    /// The section footer [3.2.9].
    FOOTER = 0x78, "amqp:footer:map";
}

/// Returns the short name of a type: `open` of `amqp:open:list`.
#[must_use]
pub fn name(code: u64) -> Option<&'static str> {
    let (_, symbol) = TYPES.iter().find(|(known, _)| *known == code)?;
    symbol.split(':').nth(1)
}

/// Reads the descriptor at the front; returns its code and the bytes after it.
///
/// A descriptor that is a symbol gives the code of the type that AMQP calls so.
///
/// # Errors
///
/// [`DescriptorError`] if the bytes do not begin with one.
#[inline]
pub fn read(bytes: &[u8]) -> Result<(u64, &[u8]), DescriptorError> {
    match bytes {
        [DESCRIBED, rest @ ..] => read_code(rest),
        _ => Err(DescriptorError::Missing),
    }
}

/// Reads a descriptor after the byte that announces it.
#[inline]
pub(super) fn read_code(bytes: &[u8]) -> Result<(u64, &[u8]), DescriptorError> {
    match bytes {
        [0x53, code, rest @ ..] => Ok((u64::from(*code), rest)),
        _ => read_long_code(bytes),
    }
}

/// Reads a descriptor that is not encoded in the shortest form.
#[cold]
fn read_long_code(bytes: &[u8]) -> Result<(u64, &[u8]), DescriptorError> {
    match bytes {
        [0x44, rest @ ..] => Ok((0, rest)),
        [0x80, rest @ ..] => {
            let (code, rest) = rest.split_first_chunk::<8>().ok_or(Misshapen::Truncated)?;
            Ok((u64::from_be_bytes(*code), rest))
        }
        symbol @ [0xa3 | 0xb3, ..] => {
            let length = value_length(symbol)?;
            let (symbol, rest) = symbol.split_at_checked(length).unwrap_or((symbol, &[]));
            let symbol = text(symbol).unwrap_or_default();
            let found = TYPES.iter().find(|(_, known)| *known == symbol);
            let unknown = || symbol.chars().take(limits::TRACE_TEXT_MAX).collect();
            let (code, _) = found.ok_or_else(|| DescriptorError::Unknown(unknown()))?;
            Ok((*code, rest))
        }
        [] => Err(Misshapen::Truncated.into()),
        _ => Err(DescriptorError::WrongType),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_a_code_in_any_width_or_a_name() {
        let symbol = [&[0x00, 0xa3, 14][..], b"amqp:open:list", &[9]].concat();
        let long = [&[0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x10][..], &[9]].concat();
        for bytes in [&[0x00, 0x53, 0x10, 9][..], &symbol, &long] {
            assert_eq!(read(bytes), Ok((OPEN, &[9][..])), "{bytes:02x?}");
        }
        assert_eq!(read(&[0x00, 0x44, 9]), Ok((0, &[9][..])));
        assert_eq!(name(AMQP_VALUE), Some("amqp-value"));
        assert_eq!(name(0x99), None);
    }

    #[test]
    fn bytes_without_a_known_descriptor_are_refused() {
        let unknown = [&[0x00, 0xa3, 4][..], b"open"].concat();
        for (bytes, expected) in [
            (&[][..], DescriptorError::Missing),
            (&[0x40], DescriptorError::Missing),
            (&[0x00], Misshapen::Truncated.into()),
            (&[0x00, 0xa1, 1, b'x'], DescriptorError::WrongType),
            (&[0x00, 0x80, 1], Misshapen::Truncated.into()),
            (&[0x00, 0xa3, 9, b'a'], Misshapen::Truncated.into()),
            (&unknown, DescriptorError::Unknown("open".to_owned())),
        ] {
            assert_eq!(read(bytes), Err(expected), "{bytes:02x?}");
        }
    }
}
