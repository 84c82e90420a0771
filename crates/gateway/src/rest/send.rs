//! Messages in requests: one in headers and a body, or many in JSON.

use base64::Engine as _;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{RestError, broker_properties, values};
use crate::limits;
use jitney_base::time::Timestamp;
use jitney_message::{Draft, Field, Message};

/// How a request encodes messages.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// The body is a list of them.
    Batch,
    /// The body is that of one.
    One(Box<Draft>),
}

/// The type of the body of a batch.
const BATCH: &str = "application/vnd.microsoft.servicebus.json";

/// Headers of HTTP, or of proxies: no properties of a message.
const OWN: [&str; 57] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "age",
    "allow",
    "alt-svc",
    "authorization",
    "brokerproperties",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "forwarded",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "last-modified",
    "location",
    "max-forwards",
    "origin",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "referer",
    "retry-after",
    "server",
    "servicebusauthorization",
    "set-cookie",
    "strict-transport-security",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "x-ms-retrypolicy",
];

/// Headers with these prefixes are set by proxies or browsers.
const OWN_PREFIXES: [&str; 4] = ["access-control-", "sec-", "x-forwarded-", "x-ms-client-"];

/// Returns whether a header of this name is a property of a message.
pub(super) fn is_property(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let own = OWN.binary_search(&name.as_str()).is_ok();
    !own && !OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Reads from the headers of a request how it encodes messages.
///
/// # Errors
///
/// [`RestError`] if `BrokerProperties` is malformed.
pub fn content(headers: &[(&str, &[u8])]) -> Result<Content, RestError> {
    let mut kinds = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let kind = kinds.next().map(|(_, value)| *value).unwrap_or_default();
    // The documentation allows no parameters; they are ignored.
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    if kind.trim_ascii().eq_ignore_ascii_case(BATCH.as_bytes()) {
        return Ok(Content::Batch);
    }
    Ok(Content::One(Box::new(draft(headers)?)))
}

/// Reads the headers of a message.
///
/// # Errors
///
/// [`RestError`] if `BrokerProperties` is malformed.
pub fn draft(headers: &[(&str, &[u8])]) -> Result<Draft, RestError> {
    let mut draft = Draft::default();
    for &(name, value) in headers {
        let value = String::from_utf8_lossy(value);
        if name.eq_ignore_ascii_case("content-type") {
            draft.fields.push((Field::ContentType, value.into_owned()));
        } else if name.eq_ignore_ascii_case("brokerproperties") {
            let object = serde_json::from_str(&value);
            let object = object.map_err(|error| {
                RestError::Malformed(format!("BrokerProperties is no object of JSON: {error}"))
            })?;
            broker_properties::read(&object, &mut draft)?;
        } else if is_property(name) {
            draft
                .properties
                .push((name.to_owned(), values::read(&value)));
        }
    }
    Ok(draft)
}

/// A message of a batch.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Item {
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    is_body_base64: bool,
    #[serde(default)]
    broker_properties: Option<Map<String, Value>>,
    #[serde(default)]
    user_properties: Option<Map<String, Value>>,
}

/// The messages of a batch, with a bounded count.
struct Items(Vec<Item>);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Items;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    if limits::REST_BATCH_MESSAGES_MAX <= items.len() {
                        let max = limits::REST_BATCH_MESSAGES_MAX;
                        return Err(A::Error::custom(format!(
                            "there are more than {max} messages"
                        )));
                    }
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        from.deserialize_seq(List)
    }
}

/// Reads the body of a batch.
///
/// # Errors
///
/// [`RestError`] names the fault, and the message that has it.
pub fn batch(body: &[u8], now: Timestamp) -> Result<Vec<Message>, RestError> {
    let items: Result<Items, _> = serde_json::from_slice(body);
    let Items(items) =
        items.map_err(|error| RestError::Malformed(format!("the batch: {error}")))?;
    if items.is_empty() {
        let text = "the batch holds no message".to_owned();
        return Err(RestError::Malformed(text));
    }
    let messages = items.into_iter().enumerate().map(|(at, item)| {
        let message = item.compose(now);
        message.map_err(|text| RestError::Malformed(format!("message {at} of the batch: {text}")))
    });
    messages.collect()
}

impl Item {
    fn compose(self, now: Timestamp) -> Result<Message, String> {
        let mut draft = Draft::default();
        if let Some(object) = &self.broker_properties {
            broker_properties::read(object, &mut draft).map_err(|error| error.to_string())?;
            let kind = object.get("ContentType").and_then(Value::as_str);
            let kind = kind.map(|kind| (Field::ContentType, kind.to_owned()));
            draft.fields.extend(kind);
        }
        for (name, value) in self.user_properties.unwrap_or_default() {
            let Some(value) = values::of_json(&value) else {
                return Err(format!("UserProperties: {name} must be a simple value"));
            };
            draft.properties.push((name, value));
        }
        let mut composer = draft.begin(now);
        let body = self.body.unwrap_or_default();
        if self.is_body_base64 {
            let decoded = base64::engine::general_purpose::STANDARD.decode(body);
            let decoded = decoded.map_err(|error| format!("Body is no base64: {error}"))?;
            composer.push(&decoded);
        } else {
            composer.push(body.as_bytes());
        }
        Message::parse(composer.finish()).map_err(|error| error.to_string())
    }
}
