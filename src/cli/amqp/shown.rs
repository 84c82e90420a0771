//! Messages as JSON, and as rows of a table.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fe2o3_amqp::types::messaging::annotations::OwnedKey;
use fe2o3_amqp::types::messaging::{Body, MessageId};
use fe2o3_amqp::types::primitives::{Symbol, Value};
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};

use super::management::whole;
use super::message::AnyMessage;
use crate::cli::shell::Output;
use crate::cli::table;
use crate::system::print;

/// Prints messages: a table, or a line of JSON for each.
pub(super) fn print(messages: &[&AnyMessage], output: Output) {
    let shown = messages.iter().map(|message| shown(message));
    match output {
        Output::Json => shown.for_each(|message| print::json_line(&message)),
        Output::Table => {
            let rows: Vec<Json> = shown.map(with_text).collect();
            print::line(table::RECEIVED.render(&rows));
        }
    }
}

/// Returns the sequence number of a message.
pub(super) fn number(message: &AnyMessage) -> Option<i64> {
    annotation(message, "x-opt-sequence-number").and_then(whole)
}

fn annotation<'a>(message: &'a AnyMessage, name: &str) -> Option<&'a Value> {
    let annotations = message.message_annotations.as_ref()?;
    annotations.0.get(&OwnedKey::from(Symbol::new(name)))
}

/// Gives a row the body as one text, whatever it is.
fn with_text(mut row: Json) -> Json {
    let body = row.get("body");
    let of = |name: &str| body.and_then(|body| body.get(name));
    let text = match (of("text"), of("json"), of("base64")) {
        (Some(text), _, _) => text.clone(),
        (_, Some(json), _) => json.to_string().into(),
        (_, _, Some(base64)) => format!("base64 {}", base64.as_str().unwrap_or_default()).into(),
        (None, None, None) => Json::Null,
    };
    if let Some(fields) = row.as_object_mut() {
        fields.insert("shown".to_owned(), text);
    }
    row
}

/// Returns a message as JSON; what it does not have is left out.
fn shown(message: &AnyMessage) -> Json {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Json| {
        if !value.is_null() {
            fields.insert(name.to_owned(), value);
        }
    };
    let annotated = |name| annotation(message, name).map_or(Json::Null, plain);
    add("sequence_number", annotated("x-opt-sequence-number"));
    let state = annotation(message, "x-opt-message-state").and_then(whole);
    let state = state.map(|state| match state {
        1 => "deferred",
        2 => "scheduled",
        _ => "active",
    });
    add("state", json!(state));
    add("enqueued_at", annotated("x-opt-enqueued-time"));
    add("scheduled_at", annotated("x-opt-scheduled-enqueue-time"));
    add("locked_until", annotated("x-opt-locked-until"));
    add("partition_key", annotated("x-opt-partition-key"));
    add("dead_letter_source", annotated("x-opt-deadletter-source"));
    if let Some(header) = &message.header {
        add("delivery_count", json!(header.delivery_count));
        add("ttl_ms", json!(header.ttl));
    }
    let mut content_type = None;
    if let Some(properties) = &message.properties {
        content_type = properties.content_type.as_ref().map(Symbol::as_str);
        add("message_id", id(properties.message_id.as_ref()));
        add("correlation_id", id(properties.correlation_id.as_ref()));
        add("session_id", json!(properties.group_id));
        add("subject", json!(properties.subject));
        add("to", json!(properties.to));
        add("reply_to", json!(properties.reply_to));
        add("content_type", json!(content_type));
    }
    if let Some(properties) = &message.application_properties {
        let all = properties.0.iter();
        let all: Map<String, Json> = all
            .map(|(name, value)| (name.clone(), plain(&Value::from(value.clone()))))
            .collect();
        let reason = all.get("DeadLetterReason").cloned();
        add("reason", reason.unwrap_or_default());
        add("properties", Json::Object(all));
    }
    add("body", body(&message.body, content_type));
    Json::Object(fields)
}

fn id(id: Option<&MessageId>) -> Json {
    match id {
        None => Json::Null,
        Some(MessageId::String(text)) => json!(text),
        Some(MessageId::Ulong(number)) => json!(number),
        Some(MessageId::Uuid(uuid)) => plain(&Value::Uuid(uuid.clone())),
        Some(MessageId::Binary(bytes)) => base64(bytes),
    }
}

/// Returns a body: `text` if it is text, `json` if it is a value or its content type says so, and
/// `base64` if it is other bytes.
fn body(body: &Body<Value>, content_type: Option<&str>) -> Json {
    match body {
        Body::Empty => json!({"kind": "none"}),
        Body::Value(value) => json!({"kind": "value", "json": plain(&value.0)}),
        Body::Sequence(lists) => {
            let lists = lists.iter();
            let lists: Vec<Vec<Json>> = lists
                .map(|list| list.0.iter().map(plain).collect())
                .collect();
            json!({"kind": "sequence", "json": lists})
        }
        Body::Data(parts) => {
            let bytes: Vec<u8> = parts
                .iter()
                .flat_map(|part| part.0.iter())
                .copied()
                .collect();
            let mut shown = of_bytes(&bytes, content_type);
            if let Some(fields) = shown.as_object_mut() {
                fields.insert("kind".to_owned(), "data".into());
            }
            shown
        }
    }
}

fn of_bytes(bytes: &[u8], content_type: Option<&str>) -> Json {
    let is_json = content_type.is_some_and(|it| it.to_ascii_lowercase().contains("json"));
    let parsed: Option<Json> = serde_json::from_slice(bytes).ok();
    if let Some(parsed) = parsed.filter(|_| is_json) {
        return json!({"json": parsed});
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({"text": text}),
        Err(_) => json!({"base64": base64(bytes)}),
    }
}

fn base64(bytes: &[u8]) -> Json {
    STANDARD.encode(bytes).into()
}

/// Returns a value of AMQP as JSON; what JSON does not have becomes text.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "the integers of AMQP, and decimals"
)]
fn plain(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(it) => json!(it),
        Value::Ulong(it) => json!(it),
        Value::Float(it) => json!(it.into_inner()),
        Value::Double(it) => json!(it.into_inner()),
        Value::Char(it) => json!(it.to_string()),
        Value::String(it) => json!(it),
        Value::Symbol(it) => json!(it.as_str()),
        Value::Binary(it) => base64(it),
        Value::Timestamp(it) => match Timestamp::from_millisecond(it.milliseconds()) {
            Ok(time) => json!(time.to_string()),
            Err(_) => json!(it.milliseconds()),
        },
        Value::Uuid(it) => {
            let hex = it.as_inner().iter().enumerate().map(|(at, byte)| {
                let dash = if let 4 | 6 | 8 | 10 = at { "-" } else { "" };
                format!("{dash}{byte:02x}")
            });
            hex.collect::<String>().into()
        }
        Value::List(list) => list.iter().map(plain).collect(),
        Value::Array(array) => array.clone().into_inner().iter().map(plain).collect(),
        Value::Map(map) => {
            let fields = map.iter().map(|(name, value)| {
                let name = plain(name);
                let text = name.as_str().map(ToOwned::to_owned);
                (text.unwrap_or_else(|| name.to_string()), plain(value))
            });
            Json::Object(fields.collect())
        }
        other => match whole(other) {
            Some(number) => json!(number),
            None => json!(format!("{other:?}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_json_text_or_bytes() {
        let json = Some("application/json; charset=utf-8");
        assert_eq!(of_bytes(b"{\"a\":1}", json), json!({"json": {"a": 1}}));
        assert_eq!(of_bytes(b"{\"a\":1}", None), json!({"text": "{\"a\":1}"}));
        assert_eq!(of_bytes(b"{", json), json!({"text": "{"}));
        assert_eq!(of_bytes(&[0xff, 0], None), json!({"base64": "/wA="}));
        let uuid = Value::Uuid([0x11; 16].into());
        assert_eq!(plain(&uuid), json!("11111111-1111-1111-1111-111111111111"));
    }
}
