//! Which values are equal, and which comes first.

use std::cmp::Ordering;

use jitney_message::Scalar;

/// 2^64: the first number that no integer of ours reaches.
const INTEGERS_END: f64 = 18_446_744_073_709_551_616.0;

/// Returns whether two values are equal; `None` if they are of kinds that cannot be.
pub(super) fn equal(a: &Scalar<'_>, b: &Scalar<'_>) -> Option<bool> {
    match (a, b) {
        (Scalar::Boolean(a), Scalar::Boolean(b)) => Some(a == b),
        (Scalar::Uuid(a), Scalar::Uuid(b)) => Some(a == b),
        (Scalar::Text(a), Scalar::Text(b)) => Some(a == b),
        (a, b) if (is_nan(a) || is_nan(b)) && is_number(a) && is_number(b) => Some(false),
        (a, b) => Some(order(a, b)? == Ordering::Equal),
    }
}

/// Returns which of two values comes first; `None` if they are of kinds without an order.
///
/// Numbers of any kind compare by value, exactly.
pub(super) fn order(a: &Scalar<'_>, b: &Scalar<'_>) -> Option<Ordering> {
    match (a, b) {
        (Scalar::Text(a), Scalar::Text(b)) => Some(a.cmp(b)),
        (Scalar::Timestamp(a), Scalar::Timestamp(b))
        | (Scalar::Duration(a), Scalar::Duration(b))
        | (Scalar::Long(a), Scalar::Long(b)) => Some(a.cmp(b)),
        (Scalar::Double(a), Scalar::Double(b)) => a.partial_cmp(b),
        (Scalar::Double(a), b) => Some(integer_to_double(b.integer()?, *a)?.reverse()),
        (a, Scalar::Double(b)) => integer_to_double(a.integer()?, *b),
        (a, b) => Some(a.integer()?.cmp(&b.integer()?)),
    }
}

/// Returns whether a value is the double that is no number, and in no order with any.
pub(super) fn is_nan(value: &Scalar<'_>) -> bool {
    matches!(value, Scalar::Double(value) if value.is_nan())
}

fn is_number(value: &Scalar<'_>) -> bool {
    matches!(value, Scalar::Double(_)) || value.integer().is_some()
}

/// Returns whether a correlation filter that asks for one value takes the other.
pub(super) fn same(a: &Scalar<'_>, b: &Scalar<'_>) -> bool {
    equal(a, b).unwrap_or_else(|| a == b)
}

/// Returns a double that is an integer as one.
pub(super) fn whole(value: f64) -> Option<i128> {
    let floor = floor(value)?;
    (integer_to_double(floor, value) == Some(Ordering::Equal)).then_some(floor)
}

fn integer_to_double(a: i128, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    let Some(floor) = floor(b) else {
        return Some(if b < 0.0 {
            Ordering::Greater
        } else {
            Ordering::Less
        });
    };
    let fraction = if b.floor() < b {
        Ordering::Less
    } else {
        Ordering::Equal
    };
    Some(a.cmp(&floor).then(fraction))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the range has been checked"
)]
fn floor(value: f64) -> Option<i128> {
    (value.abs() < INTEGERS_END).then(|| value.floor() as i128)
}
