//! Messages, requests and performatives as clients encode them.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use serde_amqp::primitives::{Binary, OrderedMap, Symbol, Timestamp};

/// What is in a message beside its id and its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    /// The message session.
    pub(crate) session: Option<String>,
    /// When it is to be enqueued, milliseconds.
    pub(crate) due: Option<i64>,
}

/// Makes a described list or value.
pub(crate) fn described(code: u64, value: Value) -> Value {
    Value::Described(Box::new(Described {
        descriptor: Descriptor::Code(code),
        value,
    }))
}

pub(crate) fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

pub(crate) fn symbol(text: &str) -> Value {
    Value::Symbol(Symbol::from(text))
}

/// Makes a map of keys of one kind.
pub(crate) fn map(entries: Vec<(Value, Value)>) -> Value {
    Value::Map(entries.into_iter().collect::<OrderedMap<_, _>>())
}

/// Appends a described list: a performative or a section.
pub(crate) fn write_list(out: &mut Vec<u8>, code: u64, fields: Vec<Value>) {
    write(out, code, Value::List(fields));
}

fn write(out: &mut Vec<u8>, code: u64, value: Value) {
    out.extend(serde_amqp::to_vec(&described(code, value)).unwrap());
}

/// Encodes a message with a header, an id, a content type and a body.
pub(crate) fn message(id: usize, size: usize, extras: &Extras) -> Vec<u8> {
    let mut out = Vec::new();
    write_list(&mut out, 0x70, vec![Value::Bool(true)]);
    if let Some(due) = extras.due {
        let due = Value::Timestamp(Timestamp::from_milliseconds(due));
        let name = symbol("x-opt-scheduled-enqueue-time");
        write(&mut out, 0x72, map(vec![(name, due)]));
    }
    let mut properties = vec![Value::Null; 7];
    properties[0] = string(&format!("message-{id:08}"));
    properties[6] = symbol("application/octet-stream");
    if let Some(session) = &extras.session {
        properties.resize(10, Value::Null);
        properties.push(string(session));
    }
    write_list(&mut out, 0x73, properties);
    write(
        &mut out,
        0x75,
        Value::Binary(Binary::from(vec![0x5a; size])),
    );
    out
}

/// Puts messages into one batch.
pub(crate) fn batch(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for message in messages {
        write(&mut out, 0x75, Value::Binary(Binary::from(message.clone())));
    }
    out
}

/// Encodes a request for messages to look at.
pub(crate) fn peek(id: usize, reply_to: &str, count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut properties = vec![Value::Null; 5];
    properties[0] = string(&format!("request-{id:08}"));
    properties[4] = string(reply_to);
    write_list(&mut out, 0x73, properties);
    let operation = (string("operation"), string("com.microsoft:peek-message"));
    write(&mut out, 0x74, map(vec![operation]));
    let count = i32::try_from(count).unwrap();
    let body = map(vec![
        (string("from-sequence-number"), Value::Long(1)),
        (string("message-count"), Value::Int(count)),
    ]);
    write(&mut out, 0x77, body);
    out
}
