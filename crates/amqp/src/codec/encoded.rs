//! An encoded value, read in place: decoded, it would take many times its bytes.

use super::constructor::{self, DESCRIBED, NULL, Prefix};
use super::descriptor;
use super::value::{self, Values, compound_head, contents, data_length, extent};
use jitney_base::time::Timestamp;

/// A value whose shape has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoded<'a> {
    code: u8,
    /// The bytes after the constructor.
    data: &'a [u8],
}

/// The elements of a list or an array, one after the other.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    /// Those of an array have one constructor.
    code: Option<u8>,
    rest: &'a [u8],
    left: usize,
}

impl<'a> Encoded<'a> {
    /// Takes a value with its constructor; no bytes count as null.
    #[must_use]
    pub const fn new(value: &'a [u8]) -> Self {
        match value {
            [code, data @ ..] => Self { code: *code, data },
            [] => Self {
                code: NULL,
                data: &[],
            },
        }
    }

    /// Returns whether it is null.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.code == NULL
    }

    /// Returns whether it has a descriptor.
    #[must_use]
    pub const fn is_described(self) -> bool {
        self.code == DESCRIBED
    }

    /// Returns the code of its descriptor, and the value that is described; `None` if it has no descriptor, or
    /// one that is a name which AMQP does not define.
    #[must_use]
    pub fn described(self) -> Option<(u64, Self)> {
        if self.code != DESCRIBED {
            return None;
        }
        let (code, value) = descriptor::read_code(self.data).ok()?;
        Some((code, Self::new(value)))
    }

    /// Returns the bytes after its constructor.
    #[must_use]
    pub const fn data(self) -> &'a [u8] {
        self.data
    }

    /// Returns whether it is a symbol.
    #[must_use]
    pub const fn is_symbol(self) -> bool {
        matches!(self.code, 0xa3 | 0xb3)
    }

    /// Returns whether it is a map.
    #[must_use]
    pub const fn is_map(self) -> bool {
        constructor::is_map(self.code)
    }

    /// Returns the text of a string or a symbol, or of a binary that is text.
    #[must_use]
    pub fn text(self) -> Option<&'a str> {
        let bytes = match self.code {
            0xa1 | 0xa3 => self.data.get(1..),
            0xb1 | 0xb3 => self.data.get(4..),
            _ => self.binary(),
        };
        std::str::from_utf8(bytes?).ok()
    }

    /// Returns the bytes of a binary.
    #[must_use]
    pub fn binary(self) -> Option<&'a [u8]> {
        match self.code {
            0xa0 => self.data.get(1..),
            0xb0 => self.data.get(4..),
            _ => None,
        }
    }

    /// Returns a boolean.
    #[must_use]
    pub const fn boolean(self) -> Option<bool> {
        match (self.code, self.data) {
            (0x41, _) | (0x56, [1]) => Some(true),
            (0x42, _) | (0x56, [0]) => Some(false),
            _ => None,
        }
    }

    /// Returns an integer of any type.
    #[must_use]
    pub fn any_integer(self) -> Option<i128> {
        value::integer(self.code, self.data)
    }

    /// Returns an integer of any type; an `ulong` beyond 63 bits becomes negative.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        let integer = self.any_integer()?;
        let long = i64::try_from(integer).ok();
        long.or_else(|| u64::try_from(integer).ok().map(u64::cast_signed))
    }

    /// Returns a timestamp.
    #[must_use]
    pub fn timestamp(self) -> Option<Timestamp> {
        let millis = self.data.try_into().ok().map(i64::from_be_bytes)?;
        (self.code == 0x83).then_some(Timestamp::from_millis(millis))
    }

    /// Returns a UUID, in RFC 4122 order.
    #[must_use]
    pub fn uuid(self) -> Option<[u8; 16]> {
        let bytes = self.data.try_into().ok()?;
        (self.code == 0x98).then_some(bytes)
    }

    /// Returns the keys of a map, each with its value as it is encoded; none of anything else.
    pub fn entries(self) -> impl Iterator<Item = (Self, &'a [u8])> {
        let mut values = if self.is_map() {
            self.elements()
        } else {
            Values::new(&[], 0)
        };
        std::iter::from_fn(move || Some((Self::new(values.next()?), values.next()?)))
    }

    /// Returns the elements of a list or an array.
    #[must_use]
    pub fn items(self) -> Option<Items<'a>> {
        let array = |prefix| match compound_head(prefix, self.data) {
            Some((count, [code, rest @ ..])) => (Some(*code), rest, count),
            // Without a constructor it has no elements.
            Some((_, [])) | None => (None, &[][..], 0),
        };
        let (code, rest, left) = match self.code {
            0x45 | 0xc0 | 0xd0 => {
                let values = self.elements();
                (None, values.rest(), values.left())
            }
            0xe0 => array(Prefix::Byte),
            0xf0 => array(Prefix::Word),
            _ => return None,
        };
        Some(Items { code, rest, left })
    }

    /// Returns the contents of a list or a map.
    fn elements(self) -> Values<'a> {
        contents(self.code, self.data)
    }

    /// Returns the kind of a value.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self.code {
            0x00 => "a described value",
            0x40 => "null",
            0x41 | 0x42 | 0x56 => "a boolean",
            0x45 | 0xc0 | 0xd0 => "a list",
            0x73 => "a char",
            0x83 => "a timestamp",
            0x98 => "a uuid",
            0xa0 | 0xb0 => "a binary",
            0xa1 | 0xb1 => "a string",
            0xa3 | 0xb3 => "a symbol",
            0xc1 | 0xd1 => "a map",
            0xe0 | 0xf0 => "an array",
            _ => "a number",
        }
    }
}

impl Items<'_> {
    /// Returns how many elements have not been read.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.left
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Encoded<'a>;

    fn next(&mut self) -> Option<Encoded<'a>> {
        self.left = self.left.checked_sub(1)?;
        let length = match self.code {
            None => extent(self.rest)?,
            Some(code) => data_length(code, self.rest)?,
        };
        let (value, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(match self.code {
            None => Encoded::new(value),
            Some(code) => Encoded { code, data: value },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(value: &[u8]) -> Vec<Option<i64>> {
        let items = Encoded::new(value).items().unwrap();
        items.map(Encoded::integer).collect()
    }

    #[test]
    fn elements_of_lists_and_arrays_are_read_alike() {
        assert_eq!(
            integers(&[0xc0, 7, 3, 0x55, 0xff, 0x43, 0x71, 0, 0, 0, 7]),
            [Some(-1), Some(0), Some(7)]
        );
        assert_eq!(integers(&[0xe0, 4, 2, 0x55, 0xfe, 3]), [Some(-2), Some(3)]);
        let long = [0xf0, 0, 0, 0, 13, 0, 0, 0, 1, 0x81, 0, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(integers(&long), [Some(256)]);
        assert!(integers(&[0x45]).is_empty());
        assert!(integers(&[0xe0, 1, 0]).is_empty());
        assert!(Encoded::new(&[0x41]).items().is_none());
        let texts = [0xe0, 6, 2, 0xa1, 1, b'a', 1, b'b'];
        let texts = Encoded::new(&texts).items().unwrap();
        assert_eq!(
            texts.map(Encoded::text).collect::<Vec<_>>(),
            [Some("a"), Some("b")]
        );
    }

    #[test]
    fn a_map_has_keys_with_values_and_nothing_else_has() {
        let map = [0xc1, 7, 2, 0xa1, 1, b'k', 0x53, 9, 0];
        let entries: Vec<_> = Encoded::new(&map).entries().collect();
        assert_eq!(entries.len(), 1);
        let (key, value) = entries[0];
        assert_eq!(key.text(), Some("k"));
        assert_eq!(Encoded::new(value).integer(), Some(9));
        assert_eq!(Encoded::new(&[0xc0, 3, 2, 0x43, 0x43]).entries().count(), 0);
        assert!(Encoded::new(&[]).is_null());
    }
}
