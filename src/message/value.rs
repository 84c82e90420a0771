//! AMQP values read in place: only the requested ones are copied.

use super::Malformed;
use crate::shape::value_length;

/// How a constructor encodes the length of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    /// A fixed number of bytes.
    Fixed(u8),
    /// A length in one byte.
    Byte,
    /// A length in four bytes.
    Word,
    /// A described value or an unknown constructor: the length is not known without decoding it.
    Other,
}

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which would refuse it"
)]
const WIDTHS: [Width; 256] = {
    let mut widths = [Width::Other; 256];
    let mut code = 0;
    while code < widths.len() {
        widths[code] = match code {
            0x40..=0x45 => Width::Fixed(0),
            0x50..=0x56 => Width::Fixed(1),
            0x60 | 0x61 => Width::Fixed(2),
            0x70..=0x74 => Width::Fixed(4),
            0x80..=0x84 => Width::Fixed(8),
            0x94 | 0x98 => Width::Fixed(16),
            0xa0 | 0xa1 | 0xa3 | 0xc0 | 0xc1 | 0xe0 => Width::Byte,
            0xb0 | 0xb1 | 0xb3 | 0xd0 | 0xd1 | 0xf0 => Width::Word,
            _ => Width::Other,
        };
        code += 1;
    }
    widths
};

/// Returns how many bytes the value at the front takes, without a look into it: for values whose
/// shape has been checked, or that must not hold others.
#[inline]
pub(super) fn extent(value: &[u8]) -> Option<usize> {
    let (&code, rest) = value.split_first()?;
    match behind(code, rest) {
        Some(size) => Some(1 + size),
        // A described value: rare, and not worth a second decoder.
        None if code == 0x00 => value_length(value).ok(),
        None => None,
    }
}

/// Returns the bytes of a value after its constructor; nothing for a described one.
#[inline]
pub(super) fn behind(code: u8, rest: &[u8]) -> Option<usize> {
    let size = match *WIDTHS.get(usize::from(code))? {
        Width::Fixed(size) => usize::from(size),
        Width::Byte => 1 + usize::from(*rest.first()?),
        Width::Word => {
            let size = u32::from_be_bytes(*rest.first_chunk()?);
            usize::try_from(size).ok()?.checked_add(4)?
        }
        Width::Other => return None,
    };
    (size <= rest.len()).then_some(size)
}

/// The values that follow one another in some bytes.
#[derive(Debug, Clone)]
pub(super) struct Values<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Values<'a> {
    /// Takes a number of values from the front of some bytes.
    pub(super) const fn new(rest: &'a [u8], left: usize) -> Self {
        Self { rest, left }
    }

    /// Returns the bytes that have not been read.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns how many values have not been read.
    pub(super) const fn left(&self) -> usize {
        self.left
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let length = extent(self.rest)?;
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

/// Returns the bytes of a string or a symbol, which should be text.
pub(super) fn text_bytes(value: &[u8]) -> Option<&[u8]> {
    match value {
        [0xa1 | 0xa3, _, text @ ..] | [0xb1 | 0xb3, _, _, _, _, text @ ..] => Some(text),
        _ => None,
    }
}

/// Returns the text of a string or a symbol.
pub(super) fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(text_bytes(value)?).ok()
}

/// Returns whether a value is a string or a symbol.
pub(super) fn is_text(value: &[u8]) -> bool {
    text_bytes(value).is_some_and(|text| text.is_ascii() || std::str::from_utf8(text).is_ok())
}

/// Returns whether a value is a list, a map or an array.
pub(super) fn is_compound(value: &[u8]) -> bool {
    matches!(value, [0x45 | 0xc0 | 0xc1 | 0xd0 | 0xd1 | 0xe0 | 0xf0, ..])
}

/// Returns whether a value is a string or symbol with this text.
pub(super) fn is_called(value: &[u8], name: &str) -> bool {
    text_bytes(value) == Some(name.as_bytes())
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

/// Returns a `long`.
pub(super) fn long(value: &[u8]) -> Option<i64> {
    match value {
        [0x55, small] => Some(i64::from(small.cast_signed())),
        [0x81, bytes @ ..] => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
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

/// Reads the descriptor of a section; returns its code and the bytes after it.
#[inline]
pub(super) fn section(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    match bytes {
        [0x00, 0x53, code, rest @ ..] => Ok((u64::from(*code), rest)),
        _ => wordy_section(bytes),
    }
}

/// Reads a descriptor that is not written in the shortest way.
#[cold]
fn wordy_section(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
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
    let both = u64::from(size) << 32 | u64::from(count);
    if let Some(slot) = out.get_mut(head..).and_then(<[u8]>::first_chunk_mut) {
        *slot = both.to_be_bytes();
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
