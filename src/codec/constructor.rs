//! The constructors of values [AMQP 1.6]: how each of them encodes the length of its value.

/// Bytes that tell a length or a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    /// One byte.
    Byte,
    /// Four bytes.
    Word,
}

/// The layout of the bytes after a constructor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// A fixed number of bytes.
    Fixed(u8),
    /// A length, and that many bytes.
    Variable(Prefix),
    /// A size, a count, and values: a list or a map.
    Compound(Prefix),
    /// A size, a count, one constructor, and the bytes of values that share it.
    Array(Prefix),
    /// A described value, or no constructor.
    Other,
}

/// The constructor of null, and all of it.
pub(crate) const NULL: u8 = 0x40;
/// What a described value begins with.
pub(super) const DESCRIBED: u8 = 0x00;

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which would refuse it"
)]
const LAYOUTS: [Layout; 256] = {
    let mut layouts = [Layout::Other; 256];
    let mut code = 0;
    while code < layouts.len() {
        layouts[code] = match code {
            0x40..=0x45 => Layout::Fixed(0),
            0x50..=0x56 => Layout::Fixed(1),
            0x60 | 0x61 => Layout::Fixed(2),
            0x70..=0x74 => Layout::Fixed(4),
            0x80..=0x84 => Layout::Fixed(8),
            0x94 | 0x98 => Layout::Fixed(16),
            0xa0 | 0xa1 | 0xa3 => Layout::Variable(Prefix::Byte),
            0xb0 | 0xb1 | 0xb3 => Layout::Variable(Prefix::Word),
            0xc0 | 0xc1 => Layout::Compound(Prefix::Byte),
            0xd0 | 0xd1 => Layout::Compound(Prefix::Word),
            0xe0 => Layout::Array(Prefix::Byte),
            0xf0 => Layout::Array(Prefix::Word),
            _ => Layout::Other,
        };
        code += 1;
    }
    layouts
};

/// Returns the layout of what follows a constructor.
#[inline]
pub(super) fn layout(code: u8) -> Layout {
    LAYOUTS
        .get(usize::from(code))
        .copied()
        .unwrap_or(Layout::Other)
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
