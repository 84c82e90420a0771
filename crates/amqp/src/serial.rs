//! Serial numbers: 32 bits that wrap, compared by the shorter way round (RFC 1982, [2.8.10]).

/// Returns how far `to` is ahead of `from`; none if it is before it.
pub(super) const fn ahead(from: u32, to: u32) -> Option<u32> {
    let distance = to.wrapping_sub(from);
    if distance < 1 << 31 {
        Some(distance)
    } else {
        None
    }
}

/// The farthest that a number can be ahead of another.
pub(super) const AHEAD_MAX: u32 = (1 << 31) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        assert_eq!(ahead(u32::MAX, 1), Some(2));
        assert_eq!(ahead(1, u32::MAX), None);
        assert_eq!(ahead(7, 7), Some(0));
    }
}
