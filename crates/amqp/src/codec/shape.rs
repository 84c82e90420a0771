//! Whether bytes have the shape of AMQP values: lengths that fit, nesting that ends.
//!
//! Checked before anything is decoded, because a decoder that believes a length allocates it.
//! Nothing here knows what a value means.

use super::constructor::{Category, DESCRIBED, Prefix, Width, category, is_map, width};
use crate::limits;

/// Why bytes are not values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misshapen {
    /// They end inside a value.
    #[error("the bytes end within a value")]
    Truncated,
    /// There is no such constructor.
    #[error("0x{0:02x} is not a constructor of a value")]
    Constructor(u8),
    /// Values are nested too deeply.
    #[error("values are nested more than {} deep", limits::VALUE_DEPTH_MAX)]
    Depth,
    /// A list, map or array has too many elements, or more than its bytes can hold.
    #[error("a compound value claims {0} elements, more than it may or can hold")]
    Count(usize),
    /// Nested values have too many elements together.
    #[error(
        "the compound values have more than {} elements together",
        limits::VALUE_ELEMENTS_TOTAL_MAX
    )]
    Total,
    /// A map has a key without a value.
    #[error("a map claims {0} elements, an odd number")]
    OddMap(usize),
    /// Bytes are left after the last element of a list, map or array: a decoder that goes by the
    /// count would take them for the next value, unchecked.
    #[error("{0} bytes are left after the elements of a compound value")]
    Surplus(usize),
}

/// Returns how many bytes the value at the front takes, after a check of all of it.
pub fn value_length(bytes: &[u8]) -> Result<usize, Misshapen> {
    let mut room = Remaining {
        depth: limits::VALUE_DEPTH_MAX,
        elements: limits::VALUE_ELEMENTS_TOTAL_MAX,
    };
    length_within(bytes, &mut room)
}

/// The remaining allowance of a value.
struct Remaining {
    /// Levels of nesting.
    depth: usize,
    /// Elements of all compound values.
    elements: usize,
}

impl Remaining {
    /// Goes a level deeper.
    fn descend(&mut self) -> Result<(), Misshapen> {
        self.depth = self.depth.checked_sub(1).ok_or(Misshapen::Depth)?;
        Ok(())
    }
}

fn length_within(bytes: &[u8], room: &mut Remaining) -> Result<usize, Misshapen> {
    let (&code, rest) = bytes.split_first().ok_or(Misshapen::Truncated)?;
    if code == DESCRIBED {
        room.descend()?;
        let descriptor = length_within(rest, room)?;
        let value = rest.get(descriptor..).ok_or(Misshapen::Truncated)?;
        let length = length_within(value, room)?;
        room.depth += 1;
        return Ok(1 + descriptor + length);
    }
    Ok(1 + body_length(code, rest, room)?)
}

/// Returns how many bytes of a value follow its constructor.
fn body_length(code: u8, rest: &[u8], room: &mut Remaining) -> Result<usize, Misshapen> {
    let prefix = match width(code) {
        Width::Fixed(length) => {
            let length = usize::from(length);
            let fits = length <= rest.len();
            return fits.then_some(length).ok_or(Misshapen::Truncated);
        }
        Width::Byte => Prefix::Byte,
        Width::Word => Prefix::Word,
        Width::Other => return Err(Misshapen::Constructor(code)),
    };
    if category(code) != Category::Primitive {
        return compound(code, rest, prefix, room);
    }
    let (length, data) = prefix.split(rest).ok_or(Misshapen::Truncated)?;
    if data.len() < length {
        Err(Misshapen::Truncated)
    } else {
        Ok(prefix.bytes() + length)
    }
}

fn compound(
    code: u8,
    rest: &[u8],
    prefix: Prefix,
    room: &mut Remaining,
) -> Result<usize, Misshapen> {
    room.descend()?;
    let (size, inner) = prefix.split(rest).ok_or(Misshapen::Truncated)?;
    let inner = inner.get(..size).ok_or(Misshapen::Truncated)?;
    let (count, mut elements) = prefix.split(inner).ok_or(Misshapen::Truncated)?;
    if limits::VALUE_ELEMENTS_MAX < count {
        return Err(Misshapen::Count(count));
    }
    room.elements = room.elements.checked_sub(count).ok_or(Misshapen::Total)?;
    if is_map(code) && count % 2 == 1 {
        return Err(Misshapen::OddMap(count));
    }
    if category(code) == Category::Array {
        elements = array(elements, count, room)?;
    } else {
        for _ in 0..count {
            let length = length_within(elements, room).map_err(|error| {
                if matches!(error, Misshapen::Truncated) {
                    Misshapen::Count(count)
                } else {
                    error
                }
            })?;
            elements = elements.get(length..).ok_or(Misshapen::Truncated)?;
        }
    }
    room.depth += 1;
    if elements.is_empty() {
        Ok(prefix.bytes() + size)
    } else {
        Err(Misshapen::Surplus(elements.len()))
    }
}

/// Checks an array's elements, which share one constructor; returns the bytes after them.
fn array<'a>(
    elements: &'a [u8],
    count: usize,
    room: &mut Remaining,
) -> Result<&'a [u8], Misshapen> {
    let (mut code, mut elements) = match elements.split_first() {
        Some((&code, rest)) => (code, rest),
        None if count == 0 => return Ok(&[]),
        None => return Err(Misshapen::Truncated),
    };
    if code == DESCRIBED {
        room.descend()?;
        let descriptor = length_within(elements, room)?;
        room.depth += 1;
        elements = elements.get(descriptor..).ok_or(Misshapen::Truncated)?;
        let (&described, rest) = elements.split_first().ok_or(Misshapen::Truncated)?;
        (code, elements) = (described, rest);
    }
    // A few bytes could claim thousands of elements without bytes; no client sends them.
    if (0x40..=0x45).contains(&code) && elements.len() < count {
        return Err(Misshapen::Count(count));
    }
    for _ in 0..count {
        let length = body_length(code, elements, room)?;
        elements = elements.get(length..).ok_or(Misshapen::Truncated)?;
    }
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<usize, Misshapen>) {
        assert_eq!(value_length(bytes), expected, "{bytes:02x?}");
    }

    #[test]
    fn lengths_are_those_of_the_encoding() {
        check(&[0x40, 9], Ok(1));
        check(&[0x70, 0, 0, 0, 1], Ok(5));
        check(&[0xa1, 2, b'a', b'b', 9], Ok(4));
        check(&[0x00, 0x53, 0x24, 0x45], Ok(4));
        check(&[0xc0, 3, 2, 0x41, 0x42], Ok(5));
        check(&[0xe0, 4, 2, 0x50, 1, 2], Ok(6));
        check(&[0xe0, 1, 0], Ok(3));
        check(&[0xd0, 0, 0, 0, 4, 0, 0, 0, 0], Ok(9));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        check(&[], Err(Misshapen::Truncated));
        check(&[0x71, 0], Err(Misshapen::Truncated));
        check(
            &[0xb0, 0xff, 0xff, 0xff, 0xff, 0],
            Err(Misshapen::Truncated),
        );
        check(&[0xc0, 2, 9, 0x40], Err(Misshapen::Count(9)));
        check(&[0x3f], Err(Misshapen::Constructor(0x3f)));
        check(
            &[0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40],
            Err(Misshapen::Count(0xffff_ffff)),
        );
        check(
            &[0xf0, 0, 0, 0, 5, 0, 0, 0xff, 0xff, 0x41],
            Err(Misshapen::Count(0xffff)),
        );
        check(&[0x00; 200], Err(Misshapen::Depth));
        check(&[0xc1, 2, 1, 0x40], Err(Misshapen::OddMap(1)));
    }

    #[test]
    fn elements_are_counted_in_all_values_together() {
        // A list of lists of nulls.
        let inner_count = u32::try_from(limits::VALUE_ELEMENTS_MAX).unwrap();
        let mut inner = vec![0xd0];
        inner.extend_from_slice(&(inner_count + 4).to_be_bytes());
        inner.extend_from_slice(&inner_count.to_be_bytes());
        inner.resize(inner.len() + limits::VALUE_ELEMENTS_MAX, 0x40);
        let lists = |count: usize| {
            let mut all = vec![0xd0];
            let size = u32::try_from(inner.len() * count + 4).unwrap();
            all.extend_from_slice(&size.to_be_bytes());
            all.extend_from_slice(&u32::try_from(count).unwrap().to_be_bytes());
            all.extend(inner.repeat(count));
            all
        };
        let most = limits::VALUE_ELEMENTS_TOTAL_MAX / limits::VALUE_ELEMENTS_MAX - 1;
        let fits = lists(most);
        check_length(&fits, Ok(fits.len()));
        check_length(&lists(most + 1), Err(Misshapen::Total));
    }

    fn check_length(bytes: &[u8], expected: Result<usize, Misshapen>) {
        assert!(value_length(bytes) == expected, "{:?}", value_length(bytes));
    }

    #[test]
    fn elements_fill_what_holds_them() {
        check(&[0xc0, 3, 1, 0x40, 0x40], Err(Misshapen::Surplus(1)));
        check(&[0xc1, 3, 0, 0x40, 0x40], Err(Misshapen::Surplus(2)));
        check(&[0xe0, 4, 1, 0x50, 1, 2], Err(Misshapen::Surplus(1)));
        // An array without elements may name the type that they would have.
        check(&[0xe0, 2, 0, 0xa3], Ok(4));
    }
}
