//! A response, and how it is written.

use bytes::Bytes;
use fe2o3_amqp_types::primitives::{OrderedMap, Symbol};
use serde_amqp::Value;
use serde_amqp::primitives::{Array, Timestamp as WireTimestamp, Uuid};
use serde_bytes::ByteBuf;

use super::RequestMessage;
use jitney_amqp::Condition;
use jitney_amqp::codec::descriptor;
use jitney_amqp::codec::write::{
    begin_list, begin_map, begin_string_array, end_compound, write_array_string, write_descriptor,
    write_null, write_string,
};
use jitney_base::ids::{BodyRef, LockToken, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_broker::namespace::DeniedKind;
use jitney_message::Stamps;

/// The response of a service node. It is written when the messages in it have been read.
#[derive(Debug)]
pub struct Response {
    /// As it is encoded.
    correlation_id: Option<Bytes>,
    reply_to: Option<String>,
    status: Status,
    body: Body,
}

/// A status code and what goes with it (`management.md#responses`).
#[derive(Debug)]
pub(crate) struct Status {
    code: i32,
    description: String,
    condition: Option<Condition>,
}

/// The content of a response.
#[derive(Debug)]
pub(crate) enum Body {
    Empty,
    /// `message-count`.
    Count(usize),
    /// `expirations`.
    Expirations(Vec<Timestamp>),
    /// `messages`.
    Messages(Vec<Carried>),
    /// `sequence-numbers`.
    SequenceNumbers(Vec<SequenceNumber>),
    /// `sessions-ids`, and `skip` for the next page.
    Sessions {
        skip: i32,
        ids: Vec<String>,
    },
    /// Anything else.
    Entries(Vec<(&'static str, Value)>),
}

/// A message in a response.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) body: BodyRef,
    pub(crate) stamps: Stamps,
    pub(crate) token: Option<LockToken>,
    /// The client asked for the message without its body.
    pub(crate) omits_body: bool,
}

impl Status {
    /// Returns its code and its text.
    pub(crate) fn shown(&self) -> (i32, &str) {
        (self.code, &self.description)
    }

    pub(crate) fn ok() -> Self {
        Self {
            code: 200,
            description: "OK".to_owned(),
            condition: None,
        }
    }

    pub(crate) fn accepted() -> Self {
        Self {
            code: 202,
            description: "Accepted".to_owned(),
            condition: None,
        }
    }

    pub(crate) fn no_content() -> Self {
        Self {
            code: 204,
            description: "No Content".to_owned(),
            condition: None,
        }
    }

    /// There is no message session to tell of.
    pub(crate) fn no_session() -> Self {
        Self {
            condition: Some(Condition::SessionNotFound),
            ..Self::no_content()
        }
    }

    /// The request itself is wrong.
    pub(crate) fn invalid(text: &str) -> Self {
        let description = format!("The request is not valid: {text}.");
        Self {
            code: 400,
            description,
            condition: Some(Condition::ArgumentError),
        }
    }

    /// It could not be done, for this reason; the description ends with a tracking id.
    pub(crate) fn denied(kind: DeniedKind, description: String) -> Self {
        Self {
            code: crate::denied::management_status(kind),
            description,
            condition: Some(crate::denied::condition(kind)),
        }
    }

    pub(crate) fn unauthorized(description: String) -> Self {
        Self {
            code: 401,
            description,
            condition: Some(Condition::UnauthorizedAccess),
        }
    }

    /// Not now: it may be tried again.
    pub(crate) fn busy(description: String) -> Self {
        Self {
            code: 503,
            description,
            condition: Some(Condition::ServerBusy),
        }
    }
}

impl Response {
    pub(super) fn new(request: &RequestMessage, status: Status, body: Body) -> Self {
        Self {
            correlation_id: request.message_id.clone(),
            reply_to: request.reply_to.clone(),
            status,
            body,
        }
    }

    /// Returns the places of the messages that [`Response::encode`] needs.
    pub fn bodies(&self) -> impl Iterator<Item = BodyRef> {
        let carried = match &self.body {
            Body::Messages(carried) => carried.as_slice(),
            Body::Empty
            | Body::Count(_)
            | Body::Expirations(_)
            | Body::SequenceNumbers(_)
            | Body::Sessions { .. }
            | Body::Entries(_) => &[],
        };
        carried.iter().map(|carried| carried.body)
    }

    /// Keeps of its messages those that `keep` says, which may change them. Without any, it says
    /// that there is no such message, if it had one.
    pub(crate) fn replace(&mut self, keep: impl FnMut(&mut Carried) -> bool) {
        let Body::Messages(carried) = &mut self.body else {
            return;
        };
        carried.retain_mut(keep);
        if carried.is_empty() {
            self.body = Body::Empty;
            let text = "The bytes of the message are damaged: it is in the dead-letter queue, without \
                        them.";
            self.status = Status::denied(DeniedKind::MessageNotFound, text.to_owned());
        }
    }

    /// Returns how many bytes of memory it takes with its messages, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        /// The memory that a response, and each message or element in it, takes besides.
        const BESIDE: u64 = 256;
        let length = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let content = match &self.body {
            Body::Empty | Body::Count(_) => 0,
            Body::Expirations(times) => length(times.len()) * 8,
            Body::SequenceNumbers(numbers) => length(numbers.len()) * 8,
            Body::Sessions { ids, .. } => length(ids.iter().map(String::len).sum()),
            Body::Messages(carried) => carried
                .iter()
                .map(|carried| BESIDE + u64::from(carried.body.length))
                .sum(),
            Body::Entries(entries) => entries.iter().map(|(_, value)| weight(value)).sum(),
        };
        let id = self.correlation_id.as_ref().map_or(0, Bytes::len);
        let reply_to = self.reply_to.as_ref().map_or(0, String::len);
        BESIDE + length(id) + length(reply_to) + content
    }

    /// Writes the response as a message; `bodies` are those of [`Response::bodies`], in order.
    #[must_use]
    pub fn encode(&self, bodies: &[Bytes]) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        self.encode_properties(&mut out);
        self.encode_application_properties(&mut out);
        write_descriptor(&mut out, descriptor::AMQP_VALUE);
        if let Body::Sessions { skip, ids } = &self.body {
            encode_sessions(&mut out, *skip, ids);
        } else {
            encode(&mut out, &Value::Map(self.map(bodies)));
        }
        out
    }

    /// The properties section: correlation-id is the sixth field, `to` the third.
    fn encode_properties(&self, out: &mut Vec<u8>) {
        write_descriptor(out, descriptor::PROPERTIES);
        let list = begin_list(out);
        write_null(out);
        write_null(out);
        match &self.reply_to {
            Some(reply_to) => write_string(out, reply_to),
            None => write_null(out),
        }
        write_null(out);
        write_null(out);
        match &self.correlation_id {
            Some(id) => out.extend_from_slice(id),
            None => write_null(out),
        }
        end_compound(out, list, 6);
    }

    fn encode_application_properties(&self, out: &mut Vec<u8>) {
        let Status {
            code,
            description,
            condition,
        } = &self.status;
        let mut map = OrderedMap::new();
        // Two spellings: `$cbs` documents the hyphens, the management node the other.
        for (code_name, description_name) in [
            ("statusCode", "statusDescription"),
            ("status-code", "status-description"),
        ] {
            map.insert(string(code_name), Value::Int(*code));
            map.insert(string(description_name), string(description));
        }
        if let Some(condition) = condition {
            let symbol = Value::Symbol(Symbol::from(condition.as_str()));
            map.insert(string("errorCondition"), symbol);
        }
        write_descriptor(out, descriptor::APPLICATION_PROPERTIES);
        encode(out, &Value::Map(map));
    }

    fn map(&self, bodies: &[Bytes]) -> OrderedMap<Value, Value> {
        let entry = match &self.body {
            Body::Empty | Body::Sessions { .. } => None,
            Body::Entries(entries) => {
                let entries = entries.iter();
                return entries
                    .map(|(name, value)| (string(name), value.clone()))
                    .collect();
            }
            Body::Count(count) => {
                let count = i32::try_from(*count).unwrap_or(i32::MAX);
                Some(("message-count", Value::Int(count)))
            }
            Body::Expirations(times) => {
                let times = times
                    .iter()
                    .map(|at| Value::Timestamp(WireTimestamp::from(at.as_millis())));
                Some(("expirations", Value::Array(Array(times.collect()))))
            }
            Body::SequenceNumbers(numbers) => {
                let numbers = numbers
                    .iter()
                    .map(|number| Value::Long(number.0.cast_signed()));
                Some(("sequence-numbers", Value::Array(Array(numbers.collect()))))
            }
            Body::Messages(carried) => {
                let messages = carried
                    .iter()
                    .zip(bodies)
                    .map(|(carried, body)| carried.map(body));
                Some(("messages", Value::List(messages.collect())))
            }
        };
        entry
            .into_iter()
            .map(|(name, value)| (string(name), value))
            .collect()
    }
}

impl Carried {
    fn map(&self, body: &Bytes) -> Value {
        let mut rendered = Vec::with_capacity(body.len() + 256);
        if self.omits_body {
            jitney_message::render_without_body(&mut rendered, body, &self.stamps);
        } else {
            jitney_message::render(&mut rendered, body, &self.stamps);
        }
        let mut map = OrderedMap::new();
        map.insert(string("message"), Value::Binary(ByteBuf::from(rendered)));
        if let Some(token) = self.token {
            map.insert(
                string("lock-token"),
                Value::Uuid(Uuid::from(token.to_uuid())),
            );
        }
        Value::Map(map)
    }
}

/// Writes an array of strings by hand: `serde_amqp` gives its elements the lengths of their
/// characters, where bytes are meant.
fn encode_sessions(out: &mut Vec<u8>, skip: i32, ids: &[String]) {
    let map = begin_map(out);
    write_string(out, "skip");
    encode(out, &Value::Int(skip));
    write_string(out, "sessions-ids");
    let array = begin_string_array(out);
    for id in ids {
        write_array_string(out, id);
    }
    end_compound(out, array, ids.len());
    end_compound(out, map, 4);
}

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn encode(out: &mut Vec<u8>, value: &Value) {
    let bytes = serde_amqp::to_vec(value).expect("values made here can be written");
    out.extend_from_slice(&bytes);
}

/// Returns how many bytes a value takes, about.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other value has a fixed size"
)]
fn weight(value: &Value) -> u64 {
    const BESIDE: u64 = 64;
    let bytes = match value {
        Value::Binary(bytes) => bytes.len(),
        Value::String(text) => text.len(),
        Value::List(values) => return BESIDE + values.iter().map(weight).sum::<u64>(),
        Value::Map(entries) => {
            let each = entries
                .iter()
                .map(|(key, value)| weight(key) + weight(value));
            return BESIDE + each.sum::<u64>();
        }
        Value::Described(described) => return BESIDE + weight(&described.value),
        _ => 0,
    };
    BESIDE + u64::try_from(bytes).unwrap_or(u64::MAX)
}
