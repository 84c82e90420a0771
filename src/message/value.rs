//! AMQP values read in place: nothing is copied but what is asked for.

use super::Malformed;
use crate::shape::value_length;

/// The values that follow one another in some bytes.
#[derive(Debug, Clone)]
pub(super) struct Values<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Values<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let length = value_length(self.rest).ok()?;
        let (value, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(value)
    }
}

/// Returns how many elements a list has, or keys and values a map; 0 for anything else.
pub(super) fn count(value: &[u8]) -> usize {
    elements(value).left
}

/// Returns the elements of a list, or the keys and values of a map in turn; none of anything else.
pub(super) fn elements(value: &[u8]) -> Values<'_> {
    let (count, rest) = match value {
        [0xc0 | 0xc1, _, count, rest @ ..] => (usize::from(*count), rest),
        [0xd0 | 0xd1, _, _, _, _, a, b, c, d, rest @ ..] => {
            let count = u32::from_be_bytes([*a, *b, *c, *d]);
            (usize::try_from(count).unwrap_or(0), rest)
        }
        _ => (0, &[][..]),
    };
    Values { rest, left: count }
}

/// Returns a map's keys with their values.
pub(super) fn entries(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut elements = elements(value);
    std::iter::from_fn(move || Some((elements.next()?, elements.next()?)))
}

/// Returns the text of a string or a symbol.
pub(super) fn text(value: &[u8]) -> Option<&str> {
    match value {
        [0xa1 | 0xa3, _, text @ ..] | [0xb1 | 0xb3, _, _, _, _, text @ ..] => {
            std::str::from_utf8(text).ok()
        }
        _ => None,
    }
}

/// Returns the bytes of a binary.
pub(super) fn binary(value: &[u8]) -> Option<&[u8]> {
    match value {
        [0xa0, _, bytes @ ..] | [0xb0, _, _, _, _, bytes @ ..] => Some(bytes),
        _ => None,
    }
}

/// Returns a `uint`.
pub(super) fn uint(value: &[u8]) -> Option<u32> {
    match value {
        [0x43] => Some(0),
        [0x52, small] => Some(u32::from(*small)),
        [0x70, bytes @ ..] => Some(u32::from_be_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Returns a `timestamp` in milliseconds.
pub(super) fn timestamp(value: &[u8]) -> Option<i64> {
    match value {
        [0x83, bytes @ ..] => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Reads the descriptor of a section; returns its code and what stands behind it.
pub(super) fn section(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    const NAMES: [&str; 9] = [
        "amqp:header:list",
        "amqp:delivery-annotations:map",
        "amqp:message-annotations:map",
        "amqp:properties:list",
        "amqp:application-properties:map",
        "amqp:data:binary",
        "amqp:amqp-sequence:list",
        "amqp:amqp-value:*",
        "amqp:footer:map",
    ];
    match bytes {
        [0x00, 0x53, code, rest @ ..] => Ok((u64::from(*code), rest)),
        [0x00, 0x80, rest @ ..] => {
            let (code, rest) = rest
                .split_first_chunk::<8>()
                .ok_or_else(|| Malformed("the bytes end within a descriptor".to_owned()))?;
            Ok((u64::from_be_bytes(*code), rest))
        }
        [0x00, symbol @ ..] => {
            let length = value_length(symbol).map_err(|error| Malformed(error.to_string()))?;
            let (symbol, rest) = symbol.split_at(length);
            let name = text(symbol).unwrap_or_default();
            let code = (0x70_u64..).zip(NAMES).find(|(_, known)| *known == name);
            let (code, _) = code.ok_or_else(|| Malformed(format!("'{name}' is no section")))?;
            Ok((code, rest))
        }
        _ => Err(Malformed(
            "a section does not begin with a descriptor".to_owned(),
        )),
    }
}

/// Appends a list's or map's head for elements that are appended next, and returns where to mend
/// it with [`end_compound`].
pub(super) fn begin_compound(out: &mut Vec<u8>, code: u8) -> usize {
    out.extend_from_slice(&[code, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.len() - 8
}

/// Writes the size and count of a compound into its head.
pub(super) fn end_compound(out: &mut [u8], head: usize, count: usize) {
    let size = u32::try_from(out.len() - head - 4).unwrap_or(u32::MAX);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let bytes = size.to_be_bytes().into_iter().chain(count.to_be_bytes());
    for (slot, byte) in out.iter_mut().skip(head).zip(bytes) {
        *slot = byte;
    }
}

/// Appends a string, or a symbol.
pub(super) fn write_text(out: &mut Vec<u8>, short_code: u8, text: &str) {
    if let Ok(length) = u8::try_from(text.len()) {
        out.extend_from_slice(&[short_code, length]);
    } else {
        out.push(short_code + 0x10);
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
    }
    out.extend_from_slice(text.as_bytes());
}
