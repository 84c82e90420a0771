//! Values as text: durations, times, numbers and booleans, as XML Schema and .NET write them.

use jitney_base::time::{DAY, LONGEST_DAYS, Millis, SECOND, Timestamp};
use jitney_queue::Status;

/// 100 ns in a millisecond.
const MILLI: i64 = 10_000;
/// .NET's first time, which represents "never".
const NEVER: &str = "0001-01-01T00:00:00Z";
/// The last one.
const LAST: &str = "9999-12-31T23:59:59.9999999Z";

/// Reads an ISO 8601 duration, in 100 ns. A year is 365 days and a month 30, as .NET reads them.
pub(super) fn parse_ticks(text: &str) -> Option<i128> {
    /// The unit of each letter, in the order of the format; the second `M` is after `T`.
    const UNITS: [(u8, bool, i128); 7] = [
        (b'Y', false, 365 * DAY),
        (b'M', false, 30 * DAY),
        (b'W', false, 7 * DAY),
        (b'D', false, DAY),
        (b'H', true, 3_600 * SECOND),
        (b'M', true, 60 * SECOND),
        (b'S', true, SECOND),
    ];
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut rest = text.strip_prefix('P')?;
    let mut units = UNITS.iter();
    let (mut ticks, mut of_time, mut any) = (0_i128, false, false);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T')
            && !of_time
        {
            (rest, of_time, any) = (time, true, false);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')?;
        let (number, tail) = rest.split_at_checked(end)?;
        let letter = *tail.as_bytes().first()?;
        let (_, _, unit) = units.find(|(name, time, _)| *name == letter && *time == of_time)?;
        ticks = ticks.checked_add(amount(number, *unit)?)?;
        any = true;
        rest = tail.get(1..)?;
    }
    any.then_some(if negative { -ticks } else { ticks })
}

/// Reads a number of units, with a fraction or without, in 100 ns.
fn amount(number: &str, unit: i128) -> Option<i128> {
    // More digits of a fraction than .NET can hold are cut off.
    const DIGITS: usize = 9;
    let (whole, fraction) = number.split_once(['.', ',']).unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction = fraction.get(..DIGITS).unwrap_or(fraction);
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let part = fraction.parse::<i128>().ok()?.checked_mul(unit)? / scale;
    i128::from(whole).checked_mul(unit)?.checked_add(part)
}

/// Reads a duration: [`Millis::MAX`] for .NET's longest time span and beyond.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Millis> {
    let ticks = parse_ticks(text)?;
    if LONGEST_DAYS * DAY <= ticks {
        return Some(Millis::MAX);
    }
    let millis = i64::try_from(ticks / i128::from(MILLI)).ok()?;
    (0 <= ticks).then_some(Millis::from_millis(millis))
}

/// Writes a duration.
#[must_use]
pub fn duration(length: Millis) -> String {
    length.to_iso_text()
}

/// Writes a time.
#[must_use]
pub fn time(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.as_millis());
    at.map_or_else(|_| LAST.to_owned(), |at| at.to_string())
}

/// Writes an optional time.
pub(super) fn time_or_never(at: Option<Timestamp>) -> String {
    at.map_or_else(|| NEVER.to_owned(), time)
}

/// Reads a time, in 100 ns since 1970; one without an offset is UTC.
#[must_use]
pub fn parse_time(text: &str) -> Option<i64> {
    let at = text.parse::<jiff::Timestamp>().or_else(|_| {
        let local: jiff::civil::DateTime = text.parse()?;
        local
            .to_zoned(jiff::tz::TimeZone::UTC)
            .map(|at| at.timestamp())
    });
    i64::try_from(at.ok()?.as_nanosecond().div_euclid(100)).ok()
}

/// Writes a time that is given in 100 ns since 1970.
pub(super) fn ticks_as_time(ticks: i64) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(ticks) * 100);
    at.map_or_else(|_| LAST.to_owned(), |at| at.to_string())
}

/// Reads a number; XML Schema has names for infinities and NaN.
pub(super) fn parse_double(text: &str) -> Option<f64> {
    match text {
        "INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

/// Writes a number.
pub(super) fn double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    match number {
        f64::INFINITY => "INF".to_owned(),
        f64::NEG_INFINITY => "-INF".to_owned(),
        number => format!("{number:?}"),
    }
}

/// Reads a boolean.
pub(super) fn parse_boolean(text: &str) -> Option<bool> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    match (is("true") || text == "1", is("false") || text == "0") {
        (true, _) => Some(true),
        (_, true) => Some(false),
        (false, false) => None,
    }
}

/// Reads a status that can be set.
pub(super) fn parse_status(text: &str) -> Option<Status> {
    let all = [
        Status::Active,
        Status::Disabled,
        Status::ReceiveDisabled,
        Status::SendDisabled,
    ];
    all.into_iter().find(|found| status(*found) == text)
}

/// Writes a status.
#[must_use]
pub const fn status(status: Status) -> &'static str {
    match status {
        Status::Active => "Active",
        Status::Disabled => "Disabled",
        Status::ReceiveDisabled => "ReceiveDisabled",
        Status::SendDisabled => "SendDisabled",
    }
}

/// Reads a uuid, in braces or not.
pub(super) fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let lengths = text.split('-').map(str::len);
    let digits: String = text.split('-').collect();
    if !lengths.eq([8, 4, 4, 4, 12]) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes())
}
