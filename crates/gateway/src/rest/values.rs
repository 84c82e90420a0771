//! Values of application-properties, in headers and in JSON.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::times;
use jitney_base::time::Timestamp;
use jitney_message::Scalar;
use jitney_rules::hyphenated;

/// Reads the value of a header: text is in double quotes, numbers, `true` and `false` are not.
/// Anything else is text too.
pub(super) fn read(text: &str) -> Scalar<'static> {
    let text = text.trim();
    if let Some(inner) = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        let escaped = serde_json::from_str(text);
        return Scalar::Text(escaped.unwrap_or_else(|_| inner.to_owned()).into());
    }
    let number = text.parse().ok().and_then(Scalar::from_integer);
    match text {
        "true" | "True" => Scalar::Boolean(true),
        "false" | "False" => Scalar::Boolean(false),
        text => number
            .or_else(|| double(text))
            .unwrap_or_else(|| Scalar::Text(text.to_owned().into())),
    }
}

/// Reads a number that is no integer; texts like `inf` are none.
fn double(text: &str) -> Option<Scalar<'static>> {
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let ends = text.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let number = text.parse().ok().filter(|_| begins && ends);
    number.map(Scalar::Double)
}

/// Reads a value of a batch; `None` if it is not a type that a property can have.
#[must_use]
pub fn of_json(value: &Value) -> Option<Scalar<'static>> {
    match value {
        Value::Null => Some(Scalar::Null),
        Value::Bool(value) => Some(Scalar::Boolean(*value)),
        Value::Number(number) => {
            let integer = number.as_i64().map(Scalar::Long);
            let integer = integer.or_else(|| number.as_u64().map(Scalar::Ulong));
            integer.or_else(|| number.as_f64().map(Scalar::Double))
        }
        Value::String(text) => Some(Scalar::Text(text.clone().into())),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Writes a value as JSON: times and durations as texts, what JSON has no form for as the text of its bytes in base64.
#[must_use]
pub fn to_json(value: &Scalar<'_>) -> Value {
    match value {
        Scalar::Null => Value::Null,
        Scalar::Boolean(value) => Value::from(*value),
        Scalar::Double(value) if value.is_finite() => Value::from(*value),
        Scalar::Double(value) => Value::from(value.to_string()),
        Scalar::Duration(ticks) => Value::from(times::write_span(*ticks)),
        Scalar::Long(value) => Value::from(*value),
        Scalar::Ulong(value) => Value::from(*value),
        Scalar::Text(text) => Value::from(text.as_ref()),
        Scalar::Timestamp(ticks) => {
            let at = jiff::Timestamp::from_nanosecond(i128::from(*ticks) * 100);
            Value::from(at.unwrap_or(jiff::Timestamp::MAX).to_string())
        }
        Scalar::Uuid(bytes) => Value::from(hyphenated(*bytes)),
        Scalar::Opaque(bytes) => Value::from(STANDARD.encode(bytes)),
    }
}

/// Writes the value of a header; `None` if it cannot be one.
pub(super) fn write(value: &Scalar<'_>) -> Option<String> {
    Some(match value {
        Scalar::Boolean(value) => value.to_string(),
        // With a decimal point, so that it is read as a floating number.
        Scalar::Double(value) if value.is_finite() => format!("{value:?}"),
        Scalar::Double(value) => quoted(&value.to_string()),
        Scalar::Duration(ticks) => quoted(&times::write_span(*ticks)),
        Scalar::Long(value) => value.to_string(),
        Scalar::Text(text) => quoted(text),
        Scalar::Timestamp(ticks) => {
            let at = Timestamp::from_millis(ticks.div_euclid(10_000));
            quoted(&times::http(at))
        }
        Scalar::Ulong(value) => value.to_string(),
        Scalar::Uuid(bytes) => quoted(&hyphenated(*bytes)),
        Scalar::Null | Scalar::Opaque(_) => return None,
    })
}

fn quoted(text: &str) -> String {
    ascii(&Value::from(text).to_string())
}

/// Writes JSON with the characters that a header can have.
pub(super) fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        // JSON leaves this one as it is, and HTTP allows no control character.
        if c.is_ascii() && c != '\u{7f}' {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Reads a UUID, with hyphens or without.
#[must_use]
pub fn uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.trim_matches(['{', '}']);
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let is_one = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_one);
    number.map(u128::to_be_bytes)
}
