//! The constructors of values [AMQP 1.6]: how each of them encodes the length of its value.

/// How a constructor encodes the length of what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// A fixed number of bytes.
    Fixed(u8),
    /// A length in one byte, and that many bytes.
    Byte,
    /// A length in four bytes, and that many bytes.
    Word,
    /// A described value, or no constructor.
    Other,
}

/// What follows a constructor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Category {
    /// The bytes of one value.
    Primitive,
    /// A count, and values: a list or a map.
    Compound,
    /// A count, one constructor, and the bytes of values that share it.
    Array,
}

/// The bytes that hold a length or a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    /// One byte.
    Byte,
    /// Four bytes.
    Word,
}

/// The constructor of null, and all of it.
pub(crate) const NULL: u8 = 0x40;
/// What a described value begins with.
pub(super) const DESCRIBED: u8 = 0x00;

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

/// Returns how a constructor encodes the length of what follows it.
#[inline]
pub(super) fn width(code: u8) -> Width {
    WIDTHS
        .get(usize::from(code))
        .copied()
        .unwrap_or(Width::Other)
}

/// Returns what follows a constructor of a length in one or four bytes.
#[inline]
pub(super) const fn category(code: u8) -> Category {
    match code >> 4 {
        0xc | 0xd => Category::Compound,
        0xe | 0xf => Category::Array,
        _ => Category::Primitive,
    }
}

/// Returns whether a constructor is that of a map.
pub(super) const fn is_map(code: u8) -> bool {
    matches!(code, 0xc1 | 0xd1)
}

impl Prefix {
    /// Returns how many bytes it has.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Word => 4,
        }
    }

    /// Splits a number off the front; none if there are too few bytes.
    #[inline]
    pub(super) fn split(self, bytes: &[u8]) -> Option<(usize, &[u8])> {
        match self {
            Self::Byte => {
                let (&number, rest) = bytes.split_first()?;
                Some((usize::from(number), rest))
            }
            Self::Word => {
                let (number, rest) = bytes.split_first_chunk::<4>()?;
                Some((usize::try_from(u32::from_be_bytes(*number)).ok()?, rest))
            }
        }
    }
}
