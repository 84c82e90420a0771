//! Messages that are sent.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use axum::body::Body;
use axum::http::{StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use utoipa::ToSchema;

use super::call::{Answer, Call, Object};
use super::entities::span;
use super::problem::{Problem, fault};
use super::selection::instant;
use crate::limits;
use jitney_api::sending::Sent;
use jitney_base::rights::Right;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::access::Authority;
use jitney_gateway::messages::{SendMessages, SentAs};
use jitney_gateway::operations::{Names, ReadNames};
use jitney_gateway::rest::property_of_json;
use jitney_message::{Draft, Field, Message, Scalar};

/// Messages to be sent, all or none. Each is encoded as soon as it is read: its form in memory is many times as large.
#[derive(Debug, ToSchema)]
pub(super) struct SendRequest {
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<NewMessage>)]
    messages: Vec<Message>,
}

/// A message to be sent.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NewMessage {
    /// The body as a text.
    body: Option<String>,
    /// The body in base64, instead.
    body_base64: Option<String>,
    /// The whole message as AMQP encodes it, in base64, instead of everything else.
    encoded: Option<String>,
    message_id: Option<String>,
    correlation_id: Option<String>,
    session_id: Option<String>,
    partition_key: Option<String>,
    subject: Option<String>,
    to: Option<String>,
    reply_to: Option<String>,
    reply_to_session_id: Option<String>,
    content_type: Option<String>,
    /// How long it lives, as an ISO 8601 duration.
    #[schema(example = "PT1H")]
    time_to_live: Option<String>,
    /// When it becomes active.
    #[schema(example = "2026-11-23T12:00:00Z")]
    scheduled_for: Option<String>,
    /// Application-properties: texts, numbers, booleans.
    #[serde(deserialize_with = "properties")]
    properties: BTreeMap<String, serde_json::Value>,
}

impl SendRequest {
    /// Reads a body, and encodes its messages.
    pub(super) fn read(body: &[u8], now: Timestamp) -> Result<Vec<Message>, Problem> {
        let wrong = Cell::new(None);
        let reader = SendReader { now, wrong: &wrong };
        let mut json = serde_json::Deserializer::from_slice(body);
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
        let read = reader.deserialize(tracked).and_then(|request| {
            json.end()?;
            Ok(request.messages)
        });
        let messages = read.map_err(|error| {
            wrong.take().unwrap_or_else(|| {
                let path = track.path().to_string();
                let text = format!("The body, at {path}: {}.", fault(&error));
                Problem::wrong(path, text)
            })
        })?;
        if messages.is_empty() {
            let text = format!("messages has no entries; 1 to {SENT_MAX} are allowed.");
            return Err(Problem::wrong("messages", text));
        }
        Ok(messages)
    }
}

/// Reads application-properties, as many as a message may have.
fn properties<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, serde_json::Value>, D::Error> {
    struct Bounded;
    impl<'de> Visitor<'de> for Bounded {
        type Value = BTreeMap<String, serde_json::Value>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an object")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut read = BTreeMap::new();
            while let Some((name, value)) = map.next_entry()? {
                if limits::MESSAGE_PROPERTIES_MAX <= read.len() {
                    let max = limits::MESSAGE_PROPERTIES_MAX;
                    return Err(M::Error::custom(format!(
                        "a message has {max} properties at most"
                    )));
                }
                read.insert(name, value);
            }
            Ok(read)
        }
    }
    from.deserialize_map(Bounded)
}

/// Reads a [`SendRequest`].
struct SendReader<'a> {
    now: Timestamp,
    /// Why a message cannot be encoded.
    wrong: &'a Cell<Option<Problem>>,
}

impl<'de> DeserializeSeed<'de> for SendReader<'_> {
    type Value = SendRequest;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<SendRequest, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SendReader<'_> {
    type Value = SendRequest;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<SendRequest, M::Error> {
        let mut messages = None;
        while let Some(name) = map.next_key::<String>()? {
            if name != "messages" {
                let error = M::Error::unknown_field(&name, &["messages"]);
                let text = format!("The body, at {name}: {}.", fault(&error));
                self.wrong.set(Some(Problem::wrong(name, text)));
                return Err(error);
            }
            if messages.is_some() {
                return Err(M::Error::duplicate_field("messages"));
            }
            let reader = SendReader { ..self };
            messages = Some(map.next_value_seed(MessagesReader(reader))?);
        }
        let messages = messages.ok_or_else(|| M::Error::missing_field("messages"))?;
        Ok(SendRequest { messages })
    }
}

/// Reads the list of messages, and encodes them one by one.
struct MessagesReader<'a>(SendReader<'a>);

impl<'de> DeserializeSeed<'de> for MessagesReader<'_> {
    type Value = Vec<Message>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Vec<Message>, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for MessagesReader<'_> {
    type Value = Vec<Message>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of messages")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Vec<Message>, S::Error> {
        let SendReader { now, wrong } = self.0;
        let mut messages = Vec::new();
        while let Some(Object(message)) = list.next_element::<Object<NewMessage>>()? {
            let at = messages.len();
            let encoded = if at < SENT_MAX {
                message.encode(&format!("messages[{at}]"), now)
            } else {
                let text = format!(
                    "messages has more than {SENT_MAX} entries; 1 to {SENT_MAX} are allowed."
                );
                Err(Problem::wrong("messages", text))
            };
            messages.push(encoded.map_err(|problem| {
                wrong.set(Some(problem));
                S::Error::custom("a message is wrong")
            })?);
        }
        Ok(messages)
    }
}

/// Messages in one request to send.
pub(super) const SENT_MAX: usize = 1_000;

/// Sends messages to a queue or a topic, at once or for a later time: all of them, or none. A body of the type
/// `application/octet-stream` is one message as AMQP encodes it, as large as the entity allows.
#[utoipa::path(post, path = "/api/v1/entities/{entity}/send", operation_id = "send_messages", tag = "messages",
    request_body(content((SendRequest = "application/json"), (Vec<u8> = "application/octet-stream"))),
    params(("entity" = String, Path, description = "The path of a queue or a topic")),
    responses((status = 200, body = Sent), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn send(call: &Call<'_>, entity: &str, body: Body) -> Answer {
    let authority = call.authorize(&format!("{entity}/messages")).await?;
    let kind = call.parts.headers.get(header::CONTENT_TYPE);
    let is_encoded = kind.is_some_and(|kind| kind.as_bytes() == b"application/octet-stream");
    let vitals = call.server.shards.vitals_of(&call.host);
    let quota = vitals.as_ref().map(|vitals| vitals.quota());
    if let Some(quota) = quota {
        quota.wait().await?;
    }
    let messages = if is_encoded {
        vec![read_encoded(call, &authority, entity, body).await?]
    } else {
        read_messages(call, body).await?
    };
    let owner = call.server.shards.owner_of(&call.host);
    let owner = owner.ok_or_else(Problem::stopping)?;
    let bytes = messages.iter().map(|message| message.bytes().len()).sum();
    if let Some(quota) = quota {
        quota.take(bytes);
    }
    let permit = owner.reserve(bytes).await.ok_or_else(Problem::stopping)?;
    // REST's paths are encoded, and this one was decoded.
    let path = utf8_percent_encode(entity, NON_ALPHANUMERIC).to_string();
    let sent = SendMessages {
        path,
        messages,
        sent_as: SentAs::Messages,
    };
    let (numbers, _) = call.request_in(Some(permit), authority, sent).await?;
    let sequence_numbers = numbers.into_iter().map(|number| number.0).collect();
    call.answer(StatusCode::OK, &Sent { sequence_numbers })
        .await
}

/// Reads the messages of a request.
async fn read_messages(call: &Call<'_>, body: Body) -> Result<Vec<Message>, Problem> {
    let bytes = call.bytes(body).await?;
    SendRequest::read(&bytes, call.server.clock.now())
}

/// Reads a body that is a message, up to the size that its entity allows.
async fn read_encoded(
    call: &Call<'_>,
    authority: &Authority,
    entity: &str,
    body: Body,
) -> Result<Message, Problem> {
    let names = ReadNames {
        path: Some(entity.to_owned()),
        right: Right::Send,
    };
    let Names {
        message_bytes_max, ..
    } = call.request(authority.clone(), names).await?;
    let max = usize::try_from(message_bytes_max).unwrap_or(usize::MAX);
    let bytes = call.bytes_up_to(body, max).await?;
    let parsed = Message::parse(bytes);
    parsed.map_err(|error| Problem::bad_request(format!("The body is no message: {error}.")))
}

impl NewMessage {
    /// Makes the message that an AMQP client would send.
    pub(super) fn encode(self, name: &str, now: Timestamp) -> Result<Message, Problem> {
        let wrong = |field: &str, why: &str| {
            let field = format!("{name}.{field}");
            let text = format!("{field}: {why}.");
            Problem::wrong(field, text)
        };
        let decoded = |field: &str, text: &str| {
            STANDARD
                .decode(text)
                .map_err(|error| wrong(field, &error.to_string()))
        };
        let parse = |bytes: Vec<u8>| {
            Message::parse(bytes.into()).map_err(|error| wrong("encoded", &error.to_string()))
        };
        if let Some(encoded) = &self.encoded {
            return parse(decoded("encoded", encoded)?);
        }
        let body = match (&self.body, &self.body_base64) {
            (Some(_), Some(_)) => return Err(wrong("body_base64", "body is given, too")),
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(text)) => decoded("body_base64", text)?,
            (None, None) => Vec::new(),
        };
        let fields = [
            (Field::MessageId, self.message_id),
            (Field::CorrelationId, self.correlation_id),
            (Field::SessionId, self.session_id),
            (Field::Label, self.subject),
            (Field::To, self.to),
            (Field::ReplyTo, self.reply_to),
            (Field::ReplyToSessionId, self.reply_to_session_id),
            (Field::ContentType, self.content_type),
        ];
        let fields = fields.into_iter();
        let fields = fields.filter_map(|(field, value)| Some((field, value?)));
        let properties = self.properties.iter().map(|(property, value)| {
            let read = property_value(name, property, value)?;
            Ok((property.clone(), read))
        });
        let due = instant(&format!("{name}.scheduled_for"), self.scheduled_for)?;
        let life = span(&format!("{name}.time_to_live"), self.time_to_live)?;
        let draft = Draft {
            fields: fields.collect(),
            time_to_live: life.filter(|life| *life != Millis::MAX),
            due,
            partition_key: self.partition_key,
            properties: properties.collect::<Result<Vec<_>, Problem>>()?,
        };
        let mut composer = draft.begin(now);
        composer.push(&body);
        parse(composer.finish().to_vec())
    }
}

/// Reads the value of an application-property of the thing with this name in the body.
pub(super) fn property_value(
    name: &str,
    property: &str,
    value: &serde_json::Value,
) -> Result<Scalar<'static>, Problem> {
    let wrong = || {
        let field = format!("{name}.properties.{property}");
        let text = format!("{field}: {value} is no text, number or boolean.");
        Problem::wrong(field, text)
    };
    property_of_json(value).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &serde_json::Value) -> Result<Vec<Message>, serde_json::Value> {
        let read = SendRequest::read(body.to_string().as_bytes(), Timestamp::EPOCH);
        read.map_err(|problem| serde_json::to_value(problem).unwrap())
    }

    #[test]
    fn messages_are_encoded_as_they_are_read_and_errors_name_their_place() {
        let body = json!({"messages": [{"body": "a"}, {"body": "b", "properties": {"n": 1}}]});
        assert_eq!(read(&body).unwrap().len(), 2);
        let many = |count: usize| json!({"messages": vec![json!({"body": ""}); count]});
        assert_eq!(read(&many(SENT_MAX)).unwrap().len(), SENT_MAX);
        let names = (0..=limits::MESSAGE_PROPERTIES_MAX).map(|number| (number.to_string(), 1));
        let properties: BTreeMap<String, i32> = names.collect();
        for (wrong, field) in [
            (many(0), "messages"),
            (many(SENT_MAX + 1), "messages"),
            (json!({"messages": [{}, {"bdy": ""}]}), "messages[1].bdy"),
            (
                json!({"messages": [{"body_base64": "?"}]}),
                "messages[0].body_base64",
            ),
            (
                json!({"messages": [{"properties": {"p": [1]}}]}),
                "messages[0].properties.p",
            ),
            (
                json!({"messages": [{"properties": properties}]}),
                "messages[0].properties",
            ),
            (json!({"messages": [], "more": 1}), "more"),
        ] {
            let problem = read(&wrong).unwrap_err();
            assert_eq!(problem["field"], field, "{problem}");
        }
    }
}
