//! The header `BrokerProperties`: a message's properties of the service, as an object of JSON.

use serde_json::{Map, Value};

use super::{RestError, times, values};
use jitney_base::time::Millis;
use jitney_message::{Amendments, Draft, Field, Message, MessageState, Scalar};
use jitney_queue::{Handover, ReceiveMode};

/// The time to live of a message without end, in seconds: .NET's longest span of time.
const FOR_EVER: f64 = 922_337_203_685.477_5;

/// Names of fields of the properties.
const FIELDS: [(&str, Field); 7] = [
    ("CorrelationId", Field::CorrelationId),
    ("Label", Field::Label),
    ("MessageId", Field::MessageId),
    ("ReplyTo", Field::ReplyTo),
    ("ReplyToSessionId", Field::ReplyToSessionId),
    ("SessionId", Field::SessionId),
    ("To", Field::To),
];

/// Reads the properties that a sender may set. Read-only and unknown ones are ignored.
pub(super) fn read(object: &Map<String, Value>, draft: &mut Draft) -> Result<(), RestError> {
    for (name, value) in object {
        let known = |other: &&str| name.eq_ignore_ascii_case(other);
        if let Some((_, field)) = FIELDS.iter().find(|(other, _)| known(other)) {
            let text = text(name, value)?;
            draft.fields.extend(text.map(|text| (*field, text)));
        } else if known(&"PartitionKey") {
            draft.partition_key = text(name, value)?;
        } else if known(&"ScheduledEnqueueTimeUtc") {
            let text = text(name, value)?;
            let due = text.map(|text| times::read(&text).ok_or_else(|| wrong(name, "a time")));
            draft.due = due.transpose()?;
        } else if known(&"TimeToLive") || known(&"TimeToLiveTimeSpan") {
            draft.time_to_live = time_to_live(name, value)?;
        }
    }
    Ok(())
}

fn text(name: &str, value: &Value) -> Result<Option<String>, RestError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(wrong(name, "a text")),
    }
}

/// Reads a number of seconds, or a span of time; an endless one is none.
fn time_to_live(name: &str, value: &Value) -> Result<Option<Millis>, RestError> {
    let life = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64().and_then(times::seconds),
        Value::String(text) => times::span(text),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let life = life.ok_or_else(|| wrong(name, "a number of seconds, 0 or more"))?;
    let for_ever = times::seconds(FOR_EVER).unwrap_or(Millis::MAX);
    Ok(Some(life).filter(|life| *life < for_ever))
}

fn wrong(name: &str, allowed: &str) -> RestError {
    RestError::Malformed(format!("BrokerProperties: {name} must be {allowed}"))
}

/// Writes the properties of a received message.
pub(super) fn write(message: &Message, amended: &Amendments, handover: &Handover) -> String {
    let stamps = &handover.stamps;
    let mut object = Map::new();
    for (name, field) in FIELDS {
        let value = amended.field_of(message, field).map(Scalar::decode);
        if let Some(text) = value.and_then(|value| text_of(&value)) {
            object.insert(name.to_owned(), text.into());
        }
    }
    let mut set = |name: &str, value: Value| {
        object.entry(name).or_insert(value);
    };
    set("MessageId", stamps.default_message_id_text().into());
    let key = message.partition_key().map(ToOwned::to_owned);
    let has_key = key.is_some() || message.group_id().is_some();
    let by_id = (stamps.keyed_by_id && !has_key).then(|| message.field(Field::MessageId));
    let by_id = by_id.flatten().and_then(|id| text_of(&Scalar::decode(id)));
    if let Some(key) = key.or(by_id) {
        set("PartitionKey", key.into());
    }
    if let Some(due) = message.scheduled_enqueue_time() {
        set("ScheduledEnqueueTimeUtc", times::http(due).into());
    }
    if let Some(source) = &stamps.dead_letter_source {
        set("DeadLetterSource", (**source).into());
    }
    let count = stamps.delivery_count.saturating_add(1);
    set("DeliveryCount", count.into());
    let number = stamps.enqueued_sequence_number;
    set("EnqueuedSequenceNumber", number.into());
    set("EnqueuedTimeUtc", times::http(stamps.enqueued_time).into());
    set("SequenceNumber", stamps.sequence_number.into());
    if handover.mode == ReceiveMode::PeekLock {
        let token = jitney_rules::hyphenated(handover.token.to_uuid());
        set("LockToken", token.into());
        let until = stamps.locked_until.map(times::http);
        set("LockedUntilUtc", until.into());
    }
    let state = match stamps.state {
        MessageState::Active => "Active",
        MessageState::Deferred => "Deferred",
        MessageState::Scheduled => "Scheduled",
    };
    set("State", state.into());
    set("TimeToLive", seconds(stamps.time_to_live).into());
    values::ascii(&Value::Object(object).to_string())
}

fn seconds(life: Millis) -> f64 {
    if life == Millis::MAX {
        return FOR_EVER;
    }
    let seconds = f64::from(u32::try_from(life.as_millis() / 1000).unwrap_or(u32::MAX));
    let rest = u32::try_from(life.as_millis() % 1000).unwrap_or_default();
    seconds + f64::from(rest) / 1000.0
}

/// Returns the text of a field; binaries have none.
fn text_of(value: &Scalar<'_>) -> Option<String> {
    Some(match value {
        Scalar::Text(text) => text.clone().into_owned(),
        Scalar::Long(number) => number.to_string(),
        Scalar::Ulong(number) => number.to_string(),
        Scalar::Uuid(bytes) => jitney_rules::hyphenated(*bytes),
        Scalar::Boolean(_)
        | Scalar::Double(_)
        | Scalar::Duration(_)
        | Scalar::Null
        | Scalar::Opaque(_)
        | Scalar::Timestamp(_) => return None,
    })
}
