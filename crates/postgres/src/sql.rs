//! Numbers, as statements and rows of the database have them.

/// Converts a position or a number to the database's type.
#[must_use]
pub fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("positions and numbers of groups have 63 bits")
}

/// Converts a number of the database to a position.
#[must_use]
pub fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}
