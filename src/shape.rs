//! Whether bytes have the shape of AMQP values: lengths that fit, nesting that ends.
//!
//! Checked before anything is decoded, because a decoder that believes a length allocates it.
//! Nothing here knows what a value means.

use crate::limits;

/// Why bytes are not values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misshapen {
    /// They end within a value.
    #[error("the bytes end within a value")]
    Truncated,
    /// There is no such constructor.
    #[error("0x{0:02x} is not a constructor of a value")]
    Constructor(u8),
    /// Values hold values hold values.
    #[error("values are nested more than {} deep", limits::VALUE_DEPTH_MAX)]
    Depth,
    /// A list, map or array has too many elements, or more than its bytes can hold.
    #[error("a compound value tells of {0} elements, more than it may or can hold")]
    Count(usize),
    /// A map has a key without a value.
    #[error("a map tells of {0} elements, an odd number")]
    OddMap(usize),
    /// Bytes are left behind the last element of a list, map or array: a decoder that goes by the
    /// count would take them for what follows, unchecked.
    #[error("{0} bytes are left behind the elements of a compound value")]
    Surplus(usize),
}

/// Returns how many bytes the value at the front takes, having checked all of it.
pub fn value_length(bytes: &[u8]) -> Result<usize, Misshapen> {
    length_within(bytes, limits::VALUE_DEPTH_MAX)
}

fn length_within(bytes: &[u8], depth: usize) -> Result<usize, Misshapen> {
    let (&code, rest) = bytes.split_first().ok_or(Misshapen::Truncated)?;
    if code == 0x00 {
        let depth = depth.checked_sub(1).ok_or(Misshapen::Depth)?;
        let descriptor = length_within(rest, depth)?;
        let value = rest.get(descriptor..).ok_or(Misshapen::Truncated)?;
        return Ok(1 + descriptor + length_within(value, depth)?);
    }
    Ok(1 + body_length(code, rest, depth)?)
}

/// Returns the bytes that a value takes behind its constructor.
fn body_length(code: u8, rest: &[u8], depth: usize) -> Result<usize, Misshapen> {
    let fixed = match code {
        0x40..=0x45 => 0,
        0x50..=0x56 => 1,
        0x60 | 0x61 => 2,
        0x70..=0x74 => 4,
        0x80..=0x84 => 8,
        0x94 | 0x98 => 16,
        0xa0 | 0xa1 | 0xa3 => 1 + byte(rest)?,
        0xb0 | 0xb1 | 0xb3 => word(rest)?.checked_add(4).ok_or(Misshapen::Truncated)?,
        0xc0 | 0xc1 | 0xe0 => return compound(code, rest, 1, byte(rest)?, depth),
        0xd0 | 0xd1 | 0xf0 => return compound(code, rest, 4, word(rest)?, depth),
        _ => return Err(Misshapen::Constructor(code)),
    };
    if rest.len() < fixed {
        Err(Misshapen::Truncated)
    } else {
        Ok(fixed)
    }
}

fn compound(
    code: u8,
    rest: &[u8],
    width: usize,
    size: usize,
    depth: usize,
) -> Result<usize, Misshapen> {
    let depth = depth.checked_sub(1).ok_or(Misshapen::Depth)?;
    let end = width.checked_add(size).ok_or(Misshapen::Truncated)?;
    let inner = rest.get(width..end).ok_or(Misshapen::Truncated)?;
    let count = if width == 1 {
        byte(inner)?
    } else {
        word(inner)?
    };
    let mut elements = inner.get(width..).ok_or(Misshapen::Truncated)?;
    if limits::VALUE_ELEMENTS_MAX < count {
        return Err(Misshapen::Count(count));
    }
    if (code == 0xc1 || code == 0xd1) && count % 2 == 1 {
        return Err(Misshapen::OddMap(count));
    }
    if code == 0xe0 || code == 0xf0 {
        elements = array(elements, count, depth)?;
    } else {
        for _ in 0..count {
            let length = length_within(elements, depth).map_err(|error| match error {
                Misshapen::Truncated => Misshapen::Count(count),
                other => other,
            })?;
            elements = elements.get(length..).ok_or(Misshapen::Truncated)?;
        }
    }
    if elements.is_empty() {
        Ok(end)
    } else {
        Err(Misshapen::Surplus(elements.len()))
    }
}

/// Checks an array's elements, which share one constructor; returns what is left behind them.
fn array(elements: &[u8], count: usize, depth: usize) -> Result<&[u8], Misshapen> {
    let (mut code, mut elements) = match elements.split_first() {
        Some((&code, rest)) => (code, rest),
        None if count == 0 => return Ok(&[]),
        None => return Err(Misshapen::Truncated),
    };
    if code == 0x00 {
        let descriptor = length_within(elements, depth.checked_sub(1).ok_or(Misshapen::Depth)?)?;
        elements = elements.get(descriptor..).ok_or(Misshapen::Truncated)?;
        let (&described, rest) = elements.split_first().ok_or(Misshapen::Truncated)?;
        (code, elements) = (described, rest);
    }
    // Elements without bytes could be claimed by the thousand in a few bytes; no client sends them.
    if (0x40..=0x45).contains(&code) && elements.len() < count {
        return Err(Misshapen::Count(count));
    }
    for _ in 0..count {
        let length = body_length(code, elements, depth)?;
        elements = elements.get(length..).ok_or(Misshapen::Truncated)?;
    }
    Ok(elements)
}

fn byte(bytes: &[u8]) -> Result<usize, Misshapen> {
    bytes
        .first()
        .map(|&byte| usize::from(byte))
        .ok_or(Misshapen::Truncated)
}

fn word(bytes: &[u8]) -> Result<usize, Misshapen> {
    let bytes = bytes.first_chunk::<4>().ok_or(Misshapen::Truncated)?;
    usize::try_from(u32::from_be_bytes(*bytes)).map_err(|_| Misshapen::Truncated)
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
    fn elements_fill_what_holds_them() {
        check(&[0xc0, 3, 1, 0x40, 0x40], Err(Misshapen::Surplus(1)));
        check(&[0xc1, 3, 0, 0x40, 0x40], Err(Misshapen::Surplus(2)));
        check(&[0xe0, 4, 1, 0x50, 1, 2], Err(Misshapen::Surplus(1)));
        // An array without elements may name the type that they would have.
        check(&[0xe0, 2, 0, 0xa3], Ok(4));
    }
}
