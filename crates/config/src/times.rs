//! Times and spans of time of 100 ns, as correlation filters compare them.

/// Nanoseconds of a tick.
const TICK: i128 = 100;

/// Reads a time.
pub(super) fn date_time(text: &str) -> Option<i64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(at.as_nanosecond() / TICK).ok()
}

/// Writes a time; as a number of ticks where there is no such text.
pub(super) fn write_date_time(ticks: i64) -> Option<String> {
    let at = jiff::Timestamp::from_nanosecond(i128::from(ticks) * TICK);
    at.ok().map(|at| at.to_string())
}

/// Reads a span of time: an ISO 8601 duration of days, hours, minutes and seconds.
pub(super) fn duration(text: &str) -> Option<i64> {
    // jiff reads words too, "1 minute" for one.
    text.trim_start_matches('-').strip_prefix('P')?;
    let span: jiff::Span = text.parse().ok()?;
    if (span.get_years(), span.get_months()) != (0, 0) {
        return None;
    }
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours());
    i64::try_from(duration.ok()?.as_nanos() / TICK).ok()
}

/// Writes a span of time.
pub(super) fn write_duration(ticks: i64) -> Option<String> {
    let nanos = i128::from(ticks) * TICK;
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let duration =
        jiff::SignedDuration::new(i64::try_from(seconds).ok()?, i32::try_from(rest).ok()?);
    let text = duration.to_string();
    // What is not read back is written otherwise.
    (self::duration(&text) == Some(ticks)).then_some(text)
}
