//! Single values, read in place: only the requested ones are copied.

use super::constructor::{DESCRIBED, Prefix, Width, width};
use super::shape::value_length;

/// Returns how many bytes the value at the front takes, without a look into it: for values whose
/// shape has been checked, or that must not hold others.
#[inline]
#[must_use]
pub fn extent(value: &[u8]) -> Option<usize> {
    let (&code, rest) = value.split_first()?;
    match data_length(code, rest) {
        Some(size) => Some(1 + size),
        // A described value: rare, and not worth a second decoder.
        None if code == DESCRIBED => value_length(value).ok(),
        None => None,
    }
}

/// Returns how many bytes of a value follow its constructor; nothing for a described value.
#[inline]
pub(super) fn data_length(code: u8, rest: &[u8]) -> Option<usize> {
    let length = match width(code) {
        Width::Fixed(length) => usize::from(length),
        Width::Byte => 1 + usize::from(*rest.first()?),
        Width::Word => {
            let length = u32::from_be_bytes(*rest.first_chunk()?);
            usize::try_from(length).ok()?.checked_add(4)?
        }
        Width::Other => return None,
    };
    (length <= rest.len()).then_some(length)
}

/// The values that follow one another in some bytes.
#[derive(Debug, Clone)]
pub struct Values<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Values<'a> {
    /// Takes a number of values from the front of some bytes.
    pub(crate) const fn new(rest: &'a [u8], left: usize) -> Self {
        Self { rest, left }
    }

    /// Returns the bytes that have not been read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns how many values have not been read.
    #[must_use]
    pub const fn left(&self) -> usize {
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
#[must_use]
pub fn count(value: &[u8]) -> usize {
    elements(value).left
}

/// Returns the elements of a list, or the keys and values of a map in turn; none of anything else.
#[inline]
#[must_use]
pub fn elements(value: &[u8]) -> Values<'_> {
    match value {
        [code, data @ ..] => contents(*code, data),
        [] => Values::new(&[], 0),
    }
}

/// Returns the elements of a list or a map whose constructor has been read; none of anything else.
#[inline]
pub(super) fn contents(code: u8, data: &[u8]) -> Values<'_> {
    let found = match code {
        0xc0 | 0xc1 => compound_head(Prefix::Byte, data),
        0xd0 | 0xd1 => compound_head(Prefix::Word, data),
        _ => None,
    };
    let (count, rest) = found.unwrap_or((0, &[]));
    Values::new(rest, count)
}

/// Reads the size and the count of a compound value; returns the count and the bytes after both.
#[inline]
pub(super) fn compound_head(prefix: Prefix, data: &[u8]) -> Option<(usize, &[u8])> {
    let (_, data) = prefix.split(data)?;
    prefix.split(data)
}

/// Returns a map's keys with their values.
pub fn entries(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut elements = elements(value);
    std::iter::from_fn(move || Some((elements.next()?, elements.next()?)))
}

/// Returns the bytes of a string or a symbol, which should be text.
#[must_use]
pub fn text_bytes(value: &[u8]) -> Option<&[u8]> {
    match value {
        [0xa1 | 0xa3, _, text @ ..] | [0xb1 | 0xb3, _, _, _, _, text @ ..] => Some(text),
        _ => None,
    }
}

/// Returns the text of a string or a symbol.
#[must_use]
pub fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(text_bytes(value)?).ok()
}

/// Returns whether a value is a string or a symbol.
#[must_use]
pub fn is_text(value: &[u8]) -> bool {
    text_bytes(value).is_some_and(|text| text.is_ascii() || std::str::from_utf8(text).is_ok())
}

/// Returns whether a value is a list, a map or an array.
#[must_use]
pub fn is_compound(value: &[u8]) -> bool {
    matches!(value, [0x45 | 0xc0 | 0xc1 | 0xd0 | 0xd1 | 0xe0 | 0xf0, ..])
}

/// Returns whether a value is a string or symbol with this text.
#[must_use]
pub fn is_called(value: &[u8], name: &str) -> bool {
    text_bytes(value) == Some(name.as_bytes())
}

/// Returns the bytes of a binary.
#[must_use]
pub fn binary(value: &[u8]) -> Option<&[u8]> {
    match value {
        [0xa0, _, bytes @ ..] | [0xb0, _, _, _, _, bytes @ ..] => Some(bytes),
        _ => None,
    }
}

/// Returns an integer of any type, from its constructor and the bytes after it.
pub(crate) fn integer(code: u8, data: &[u8]) -> Option<i128> {
    Some(match (code, data) {
        (0x43 | 0x44, []) => 0,
        (0x50 | 0x52 | 0x53, [byte]) => i128::from(*byte),
        (0x51 | 0x54 | 0x55, [byte]) => i128::from(byte.cast_signed()),
        (0x60, _) => i128::from(u16::from_be_bytes(data.try_into().ok()?)),
        (0x61, _) => i128::from(i16::from_be_bytes(data.try_into().ok()?)),
        (0x70, _) => i128::from(u32::from_be_bytes(data.try_into().ok()?)),
        (0x71, _) => i128::from(i32::from_be_bytes(data.try_into().ok()?)),
        (0x80, _) => i128::from(u64::from_be_bytes(data.try_into().ok()?)),
        (0x81, _) => i128::from(i64::from_be_bytes(data.try_into().ok()?)),
        _ => return None,
    })
}

/// Returns a `uint`.
#[must_use]
pub fn uint(value: &[u8]) -> Option<u32> {
    match value {
        [0x43] => Some(0),
        [0x52, small] => Some(u32::from(*small)),
        [0x70, bytes @ ..] => Some(u32::from_be_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Returns a `long`.
#[must_use]
pub fn long(value: &[u8]) -> Option<i64> {
    match value {
        [0x55, small] => Some(i64::from(small.cast_signed())),
        [0x81, bytes @ ..] => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Returns a `timestamp` in milliseconds.
#[must_use]
pub fn timestamp(value: &[u8]) -> Option<i64> {
    match value {
        [0x83, bytes @ ..] => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}
