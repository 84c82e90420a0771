//! Times and spans of time as the REST interface writes them.

use jitney_base::time::{Millis, Timestamp};

/// Returns a time in HTTP's form: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn http(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.as_millis());
    // Beyond the year 9999 there is no time that a client could show.
    let at = at.unwrap_or(jiff::Timestamp::MAX);
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Reads a time: that form, any of RFC 2822, or one of RFC 3339.
pub(super) fn read(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let millis = if let Ok(at) = text.parse::<jiff::Timestamp>() {
        at.as_millisecond()
    } else if let Ok(at) = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text) {
        at.as_millisecond()
    } else {
        // Without a zone it is UTC, as the property's name says.
        let at = text.parse::<jiff::civil::DateTime>().ok()?;
        let at = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        at.timestamp().as_millisecond()
    };
    Some(Timestamp::from_millis(millis))
}

/// Takes a number of seconds, with a fraction; a number beyond all times is an endless span.
pub(super) fn seconds(seconds: f64) -> Option<Millis> {
    let millis = seconds * 1000.0;
    if !(0.0..).contains(&millis) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is too long saturates"
    )]
    Some(Millis::from_millis(millis.round() as i64))
}

/// Reads a span of time as .NET writes it: `d.hh:mm:ss.fffffff`, of which days and fractions may be
/// missing; or a number of seconds.
pub(super) fn span(text: &str) -> Option<Millis> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return seconds(number);
    }
    let mut parts = text.split(':');
    let (first, minutes, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (days, hours) = first.split_once('.').unwrap_or(("0", first));
    if parts.next().is_some() {
        return None;
    }
    let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
    let (days, hours, minutes) = (whole(days)?, whole(hours)?, whole(minutes)?);
    let rest: f64 = rest.parse().ok()?;
    seconds(((days * 24.0 + hours) * 60.0 + minutes) * 60.0 + rest)
}

/// Writes a span of time, in units of 100 ns, as .NET does.
pub(super) fn write_span(ticks: i64) -> String {
    let (sign, ticks) = (if ticks < 0 { "-" } else { "" }, ticks.unsigned_abs());
    let (seconds, fraction) = (ticks / 10_000_000, ticks % 10_000_000);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = if days == 0 {
        String::new()
    } else {
        format!("{days}.")
    };
    let fraction = if fraction == 0 {
        String::new()
    } else {
        format!(".{fraction:07}")
    };
    let (hours, minutes, seconds) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{sign}{days}{hours:02}:{minutes:02}:{seconds:02}{fraction}")
}
