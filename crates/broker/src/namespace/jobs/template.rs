//! Templates of bodies: what a job writes in the place of a message's body.
//!
//! ```text
//! {{body}}            the body, which must be UTF-8
//! {{body:/a/0}}       the value that a JSON pointer finds in the body, as JSON          [RFC 6901]
//! {{property:NAME}}   an application-property as a text
//! ```

use std::borrow::Cow;

use serde_json::Value;

use crate::limits;
use jitney_message::{Amendments, Message, Scalar};

/// A template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// As it is.
    Text(String),
    /// The body.
    Body,
    /// The value at a JSON pointer in the body.
    Pointer(String),
    /// An application-property.
    Property(String),
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It is too long.
    #[error("it has {0} bytes, and {max} are the most", max = limits::TEMPLATE_BYTES_MAX)]
    TooLong(usize),
    /// It has too many placeholders.
    #[error("it has more than {max} placeholders", max = limits::TEMPLATE_PLACEHOLDERS_MAX)]
    TooMany,
    /// A placeholder has no end.
    #[error("'{{{{' at byte {0} has no '}}}}'")]
    Open(usize),
    /// A placeholder is unknown.
    #[error("'{{{{{0}}}}}' is unknown; body, body:/POINTER and property:NAME are allowed")]
    Unknown(String),
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        if limits::TEMPLATE_BYTES_MAX < text.len() {
            return Err(TemplateError::TooLong(text.len()));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            if limits::TEMPLATE_PLACEHOLDERS_MAX * 2 <= parts.len() {
                return Err(TemplateError::TooMany);
            }
            let open = TemplateError::Open(text.len() - after.len() - 2);
            let (name, behind) = after.split_once("}}").ok_or(open)?;
            parts.push(Part::Text(before.to_owned()));
            parts.push(match name.split_once(':') {
                None if name == "body" => Part::Body,
                Some(("body", pointer)) if pointer.starts_with('/') => {
                    Part::Pointer(pointer.to_owned())
                }
                Some(("property", name)) if !name.is_empty() => Part::Property(name.to_owned()),
                None | Some(_) => return Err(TemplateError::Unknown(name.to_owned())),
            });
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    /// Makes the body of a message, of `max` bytes at most.
    ///
    /// # Errors
    ///
    /// Why the message has none.
    pub(super) fn fill(
        &self,
        message: &Message,
        changed: &Amendments,
        max: u64,
    ) -> Result<String, String> {
        let body = message.plain_body();
        let json: Option<Value> = if self.0.iter().any(|part| matches!(part, Part::Pointer(_))) {
            if limits::SEARCHED_BYTES_MAX < body.len() {
                let max = limits::SEARCHED_BYTES_MAX;
                return Err(format!("body: its JSON has more than {max} bytes"));
            }
            let read = serde_json::from_slice(&body);
            Some(read.map_err(|error| format!("body: its bytes are no JSON: {error}"))?)
        } else {
            None
        };
        let mut out = String::new();
        let mut values_bytes = 0;
        for part in &self.0 {
            let text = match part {
                Part::Text(text) => Cow::Borrowed(text.as_str()),
                Part::Body => Cow::Borrowed(
                    str::from_utf8(&body).map_err(|_| "body: its bytes are no UTF-8".to_owned())?,
                ),
                Part::Pointer(pointer) => {
                    let found = json.as_ref().and_then(|json| json.pointer(pointer));
                    let found =
                        found.ok_or_else(|| format!("body: it has nothing at {pointer}"))?;
                    let value = found.to_string();
                    values_bytes += value.len();
                    if limits::TEMPLATE_VALUES_BYTES_MAX < values_bytes {
                        let max = limits::TEMPLATE_VALUES_BYTES_MAX;
                        return Err(format!(
                            "body: the values at its pointers have more than {max} bytes"
                        ));
                    }
                    Cow::Owned(value)
                }
                Part::Property(name) => {
                    let found = changed.property_of(message, name);
                    let found = found.and_then(|(_, value)| shown(&Scalar::decode(value)));
                    found.ok_or_else(|| format!("body: the message has no property {name}"))?
                }
            };
            if u64::try_from(out.len() + text.len()).map_or(true, |length| max < length) {
                return Err(format!("body: it has more than {max} bytes"));
            }
            out.push_str(&text);
        }
        Ok(out)
    }
}

/// Returns a value as a text; `None` for what has none.
fn shown<'a>(value: &Scalar<'a>) -> Option<Cow<'a, str>> {
    match value {
        Scalar::Text(text) => Some(text.clone()),
        Scalar::Boolean(value) => Some(value.to_string().into()),
        Scalar::Double(value) => Some(value.to_string().into()),
        Scalar::Long(value) => Some(value.to_string().into()),
        Scalar::Ulong(value) => Some(value.to_string().into()),
        Scalar::Uuid(uuid) => Some(jitney_rules::hyphenated(*uuid).into()),
        Scalar::Duration(_) | Scalar::Null | Scalar::Opaque(_) | Scalar::Timestamp(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_base::time::Timestamp;
    use jitney_message::Draft;

    fn filled(template: &str, body: &str, max: u64) -> Result<String, String> {
        let properties = vec![
            ("n".to_owned(), Scalar::Long(7)),
            ("color".to_owned(), Scalar::Text("red".into())),
        ];
        let draft = Draft {
            properties,
            ..Draft::default()
        };
        let mut composer = draft.begin(Timestamp::EPOCH);
        composer.push(body.as_bytes());
        let message = Message::parse(composer.finish().to_vec().into()).unwrap();
        let template = Template::parse(template).map_err(|error| error.to_string())?;
        template.fill(&message, &Amendments::default(), max)
    }

    #[test]
    fn placeholders_are_filled() {
        let body = r#"{"a": [1, {"b": "x"}], "c": 2.5}"#;
        let of = |template| filled(template, body, 1_000);
        assert_eq!(of("plain"), Ok("plain".to_owned()));
        assert_eq!(of("<{{body}}>"), Ok(format!("<{body}>")));
        let whole = r#"{"a": {{body:/a/1}}, "c": {{body:/c}}, "n": {{property:n}}}"#;
        let made = r#"{"a": {"b":"x"}, "c": 2.5, "n": 7}"#;
        assert_eq!(of(whole), Ok(made.to_owned()));
        assert_eq!(of("{{property:color}}"), Ok("red".to_owned()));
    }

    #[test]
    fn what_cannot_be_filled_is_told() {
        for (template, body, part) in [
            ("{{body:/x}}", "{}", "nothing at /x"),
            ("{{body:/x}}", "no", "no JSON"),
            ("{{property:x}}", "", "no property x"),
            ("{{body", "", "at byte 0"),
            ("a{{subject}}", "", "'{{subject}}' is unknown"),
            ("{{body}}{{body}}", "12345", "more than 8 bytes"),
        ] {
            let error = filled(template, body, 8).unwrap_err();
            assert!(error.contains(part), "{template}: {error}");
        }
        let large = format!("[\"{}\"]", "x".repeat(1_000_000));
        let again = "{{body:/0}}".repeat(limits::TEMPLATE_PLACEHOLDERS_MAX);
        let error = filled(&again, &large, u64::MAX).unwrap_err();
        assert!(error.contains("values at its pointers"), "{error}");
        let many = "{{body}}".repeat(limits::TEMPLATE_PLACEHOLDERS_MAX + 1);
        assert_eq!(Template::parse(&many), Err(TemplateError::TooMany));
        let long = "x".repeat(limits::TEMPLATE_BYTES_MAX + 1);
        assert!(Template::parse(&long).is_err());
    }
}
