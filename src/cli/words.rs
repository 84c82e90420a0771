//! Words for people: durations, sizes and counts as the command line takes and prints them, and what errors of brokers and parsers
//! say.

use std::fmt::Display;
use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use serde_json::error::Category;

/// The longest duration of the service, which means that something never ends.
pub(super) use jitney_base::time::LONGEST as NEVER;

/// Reads a duration: `30s`, `1h 30m`, `14d`, or ISO 8601 such as PT30S.
pub(crate) fn duration(text: &str) -> Result<SignedDuration, String> {
    parsed(text)
        .filter(SignedDuration::is_positive)
        .ok_or_else(|| "a duration such as 30s, 10m, 1h or PT10M is allowed".to_owned())
}

/// Reads a duration to wait for, which may be given as a number of seconds.
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    let read = seconds.or_else(|| parsed(text)?.try_into().ok());
    read.ok_or_else(|| "a duration such as 30s, 10m, PT10M or 30 is allowed".to_owned())
}

/// Reads a time.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    text.parse()
        .map_err(|_| "a time with its zone is allowed, such as 2030-01-01T12:00:00Z".to_owned())
}

/// Checks a time, and leaves it as it is written.
pub(super) fn checked_time(text: &str) -> Result<String, String> {
    time(text).map(|_| text.to_owned())
}

fn parsed(text: &str) -> Option<SignedDuration> {
    let span: Span = text.trim().parse().ok()?;
    // In a duration of ISO 8601 a month has no length, and neither has a year.
    span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()
}

/// Returns a duration of the command line as ISO 8601, which the broker takes. What is none stays as it is: the broker says so.
pub(super) fn iso(text: &str) -> String {
    if text.eq_ignore_ascii_case("never") {
        return NEVER.to_owned();
    }
    parsed(text).map_or_else(|| text.to_owned(), |duration| duration.to_string())
}

/// Returns a duration of ISO 8601 as people write it: `1h 30m`, or `never`.
pub(super) fn shown_duration(iso: &str) -> Option<String> {
    if iso == NEVER {
        return Some("never".to_owned());
    }
    let duration = parsed(iso).filter(|_| iso.starts_with('P'))?;
    let whole = duration.as_secs();
    let units = [
        (whole / 86_400, "d"),
        (whole / 3_600 % 24, "h"),
        (whole / 60 % 60, "m"),
    ];
    let units = units.into_iter().filter(|(count, _)| *count != 0);
    let mut parts: Vec<String> = units
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    let (seconds, millis) = (whole % 60, duration.subsec_millis());
    if millis != 0 {
        let text = format!("{seconds}.{millis:03}");
        parts.push(format!("{}s", text.trim_end_matches('0')));
    } else if seconds != 0 || parts.is_empty() {
        parts.push(format!("{seconds}s"));
    }
    Some(parts.join(" "))
}

/// Returns a number with its thousands apart: 200,000.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at != 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a length as a count.
pub(super) fn whole(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Returns a number of things: `1 message`, `2,000 messages`.
pub(super) fn count(of: u64, thing: &str) -> String {
    let plural = if of == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", number(of))
}

/// Returns a size: `512 B`, `1.5 KiB`.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut rest) = (u128::from(bytes) * 10 / 1_024, UNITS.iter());
    let mut unit = rest.next();
    while let Some(next) = rest.as_slice().first().filter(|_| 10_240 <= tenths) {
        tenths /= 1_024;
        unit = Some(next);
        rest.next();
    }
    let unit = unit.copied().unwrap_or_default();
    if tenths.is_multiple_of(10) || 1_000 <= tenths {
        format!("{} {unit}", tenths / 10)
    } else {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

/// Returns how long something took: `12 ms`, `1.5 s`, `2m 5s`.
pub(super) fn taken(elapsed: Duration) -> String {
    let millis = elapsed.as_millis();
    if millis == 0 {
        return "less than 1 ms".to_owned();
    }
    if millis < 100 {
        return format!("{millis} ms");
    }
    if elapsed.as_secs() < 60 {
        return format!("{:.1} s", elapsed.as_secs_f64());
    }
    let whole = SignedDuration::from_secs(elapsed.as_secs().try_into().unwrap_or(i64::MAX));
    shown_duration(&whole.to_string()).unwrap_or_default()
}

/// Says that there is no entity at a path, and how to find those that there are.
pub(super) fn no_entity(path: &str) -> String {
    let path = path.trim_matches('/');
    let lower = path.to_ascii_lowercase();
    let before = |part: &str| lower.find(part).and_then(|at| path.get(..at));
    if let Some(subscription) = before("/rules/") {
        let rule = path.get(subscription.len() + "/rules/".len()..);
        let rule = rule.unwrap_or_default();
        return format!(
            "There is no rule '{rule}' in '{subscription}'. `jitney rules list {subscription}` lists those that there are."
        );
    }
    let path = before("/$").unwrap_or(path);
    match before("/subscriptions/") {
        Some(topic) => format!(
            "There is no entity '{path}'. `jitney queues list`, `jitney topics list` and `jitney subscriptions list {topic}` list \
             those that there are."
        ),
        None => format!(
            "There is no entity '{path}'. `jitney queues list` and `jitney topics list` list those that there are."
        ),
    }
}

/// Returns the path of the entity that an answer says is not there.
fn missing(text: &str) -> Option<&str> {
    let quoted = text
        .strip_prefix("Entity '")
        .or_else(|| text.strip_prefix("The messaging entity '"))
        .or_else(|| text.strip_prefix("action.to: there is no entity '"))?;
    let (name, rest) = quoted.split_once('\'')?;
    let is_missing = rest.starts_with(" was not found")
        || rest.starts_with(" could not be found")
        || rest == ".";
    let path = match name.split_once("://") {
        Some((_, address)) => address.split_once('/')?.1,
        None => name,
    };
    Some(path).filter(|_| is_missing)
}

/// Returns what a broker says is wrong as a sentence of the command line; whether it is that an entity is missing.
pub(super) fn said(text: &str) -> (String, bool) {
    // The service's texts end with what its support asks for.
    let text = text.split(" TrackingId:").next().unwrap_or(text);
    if let Some(path) = missing(text) {
        let option = if text.starts_with("action.to") {
            "--to: "
        } else {
            ""
        };
        return (format!("{option}{}", no_entity(path)), true);
    }
    let text = text.replace(
        " To know more visit https://aka.ms/sbResourceMgrExceptions.",
        "",
    );
    (with_options(text), false)
}

/// Fields of the API, and the options that give them.
const OPTIONS: [(&str, &str); 14] = [
    ("json_path", "--json-path"),
    ("filter", "--filter"),
    ("text", "--text"),
    ("scheduled_from", "--due-from"),
    ("scheduled_before", "--due-before"),
    ("session_id", "--session"),
    ("message_id", "--message-id"),
    ("numbers", "--number"),
    ("since", "--since"),
    ("action.scheduled_for", "--at"),
    ("action.action", "--action"),
    ("action.body", "--body"),
    ("limit", "--limit"),
    ("spans", "--spans"),
];

/// Names the option instead of the field of the API at the beginning of a text.
fn with_options(text: String) -> String {
    let named = text.strip_prefix("selection.").unwrap_or(&text);
    let found = OPTIONS.iter().find_map(|(field, option)| {
        let rest = named.strip_prefix(field)?;
        rest.starts_with([':', ' '])
            .then(|| format!("{option}{rest}"))
    });
    if let Some(found) = found {
        return found;
    }
    match text.strip_prefix("properties.") {
        Some(property) => format!("--set {property}"),
        None => text,
    }
}

/// Says what is wrong with a text that is to be JSON.
pub(super) fn not_json(error: &serde_json::Error) -> String {
    let place = format!("line {}, column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof => format!("not valid JSON: it ends too early, at {place}"),
        Category::Syntax | Category::Io => format!("not valid JSON, at {place}"),
        Category::Data => format!("not what is needed here: {error}"),
    }
}

/// Says why there is no TLS with a broker, and what helps.
pub(super) fn of_tls(error: impl Display) -> String {
    let text = error.to_string();
    if text.contains("UnknownIssuer") {
        return format!(
            "The broker's certificate is of an authority that is not trusted here. Name the authority's file with --ca: a broker's \
             own is certs/ca.pem in its data directory, and http://HOST:5300/ca.pem ({text})"
        );
    }
    if text.contains("NotValidForName") {
        return format!(
            "The broker's certificate is for other names than the one that was used: use one of them, or create another with \
             `jitney certs DIR --name NAME` ({text})"
        );
    }
    if text.contains("corrupt message") || text.contains("InvalidContentType") {
        return format!("The port takes no TLS ({text})");
    }
    format!("TLS: {text}")
}

/// Returns the text of an error of the parser of arguments in words for people.
pub(super) fn of_parser(text: &str) -> String {
    let plain = [
        (
            "invalid digit found in string",
            "a whole number such as 7 is allowed",
        ),
        (
            "cannot parse integer from empty string",
            "a whole number such as 7 is allowed",
        ),
        (
            "number too large to fit in target type",
            "the number is too large",
        ),
        (
            "number too small to fit in target type",
            "the number is too small",
        ),
        (
            "invalid IP address syntax",
            "an IP address such as 127.0.0.1 is allowed",
        ),
        (
            "invalid socket address syntax",
            "an address such as 127.0.0.1:5300 is allowed",
        ),
    ];
    plain.iter().fold(text.to_owned(), |text, (theirs, ours)| {
        text.replace(theirs, ours)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_iso_or_short() {
        assert_eq!(duration("10m"), Ok(SignedDuration::from_mins(10)));
        assert_eq!(duration("1h 30m"), Ok(SignedDuration::from_mins(90)));
        assert_eq!(duration("PT90S"), Ok(SignedDuration::from_secs(90)));
        assert_eq!(duration("P1D"), Ok(SignedDuration::from_hours(24)));
        assert_eq!(duration("14d"), Ok(SignedDuration::from_hours(14 * 24)));
        for wrong in ["", "10", "-5s", "soon", "P1M", "0s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(wait("30"), Ok(Duration::from_secs(30)));
        assert_eq!(wait("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(wait("PT0.5S"), Ok(Duration::from_millis(500)));
        assert_eq!(wait("0"), Ok(Duration::ZERO));
        assert!(wait("-1s").is_err() && wait("x").is_err());
        assert!(time("2030-01-01T12:00:00Z").is_ok());
        assert!(time("2030-01-01").is_err());
    }

    #[test]
    fn the_broker_gets_iso_and_people_get_what_is_short() {
        for (text, as_iso, shown) in [
            ("30s", "PT30S", "30s"),
            ("10m", "PT10M", "10m"),
            ("1h", "PT1H", "1h"),
            ("90s", "PT1M30S", "1m 30s"),
            ("14d", "PT336H", "14d"),
            ("PT0.5S", "PT0.5S", "0.5s"),
            ("never", NEVER, "never"),
        ] {
            assert_eq!(iso(text), as_iso);
            assert_eq!(shown_duration(as_iso).as_deref(), Some(shown));
        }
        assert_eq!(iso("soon"), "soon");
        assert_eq!(shown_duration("P1D").as_deref(), Some("1d"));
        assert_eq!(shown_duration("PT0S").as_deref(), Some("0s"));
        for other in ["active", "P", "1h", ""] {
            assert_eq!(shown_duration(other), None, "{other}");
        }
    }

    #[test]
    fn numbers_and_sizes_have_units() {
        assert_eq!(number(0), "0");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(count(1, "message"), "1 message");
        assert_eq!(count(200_000, "message"), "200,000 messages");
        for (bytes, shown) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1 KiB"),
            (1_536, "1.5 KiB"),
            (150 * 1_024 + 600, "150 KiB"),
            (1 << 20, "1 MiB"),
            (u64::MAX, "16383 PiB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
        assert_eq!(taken(Duration::ZERO), "less than 1 ms");
        assert_eq!(taken(Duration::from_millis(12)), "12 ms");
        assert_eq!(taken(Duration::from_millis(130)), "0.1 s");
        assert_eq!(taken(Duration::from_secs(125)), "2m 5s");
    }

    #[test]
    fn whatever_says_that_an_entity_is_missing_says_it_in_the_same_words() {
        let wanted = no_entity("nope");
        assert!(wanted.contains("'nope'") && wanted.contains("`jitney queues list`"));
        for text in [
            "Entity 'nope' was not found.",
            "The messaging entity 'nope' could not be found.",
            "The messaging entity 'sb://ns.example.com/nope' could not be found. To know more visit \
             https://aka.ms/sbResourceMgrExceptions. TrackingId:9b2e, SystemTracker:nope, Timestamp:11/27/2026",
            "The messaging entity 'sb://[::1]/nope/$DeadLetterQueue' could not be found. To know more",
        ] {
            assert_eq!(said(text), (wanted.clone(), true), "{text}");
        }
        let (text, _) = said("action.to: there is no entity 'nope'.");
        assert_eq!(text, format!("--to: {wanted}"));
        let (text, _) = said("Entity 'news/Subscriptions/one/Rules/x' was not found.");
        assert!(
            text.contains("no rule 'x' in 'news/Subscriptions/one'"),
            "{text}"
        );
        let (text, _) = said("Entity 'news/Subscriptions/x' was not found.");
        assert!(text.contains("`jitney subscriptions list news`"), "{text}");
        let other = "The messaging entity 'orders' already exists.";
        assert_eq!(said(other), (other.to_owned(), false));
    }

    #[test]
    fn a_field_of_the_api_is_named_as_its_option() {
        for (text, wanted) in [
            (
                "selection.json_path: at character 1: x",
                "--json-path: at character 1: x",
            ),
            ("action.scheduled_for is 'soon'", "--at is 'soon'"),
            (
                "properties.lock_duration is '7'",
                "--set lock_duration is '7'",
            ),
            ("texts are texts", "texts are texts"),
        ] {
            assert_eq!(said(text).0, wanted);
        }
    }

    #[test]
    fn parsers_speak_in_sentences() {
        let fault =
            |text: &str| not_json(&serde_json::from_str::<serde_json::Value>(text).unwrap_err());
        assert_eq!(fault("nojson"), "not valid JSON, at line 1, column 2");
        assert!(fault("{").contains("ends too early"));
        let text = of_parser("invalid value 'abc' for '<NUMBER>': invalid digit found in string");
        assert!(
            text.ends_with("a whole number such as 7 is allowed"),
            "{text}"
        );
        let text = of_tls("invalid peer certificate: UnknownIssuer");
        assert!(text.contains("--ca"), "{text}");
    }
}
