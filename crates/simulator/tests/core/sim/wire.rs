//! Messages, requests and responses as bytes: an encoder and a decoder of our own, so that the
//! broker's are not checked against themselves.

use std::collections::BTreeMap;
use std::fmt;

use super::acts::{Session, session_name};

/// An AMQP value, with its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Array(Vec<Self>),
    Binary(Vec<u8>),
    Bool(bool),
    Described(Box<Self>, Box<Self>),
    /// One that is encoded already.
    Encoded(Vec<u8>),
    Int(i32),
    List(Vec<Self>),
    Long(i64),
    Map(Vec<(Self, Self)>),
    Null,
    String(String),
    Symbol(String),
    Timestamp(i64),
    Ubyte(u8),
    Uint(u32),
    Ulong(u64),
    Ushort(u16),
    Uuid([u8; 16]),
}

/// A message as a sender makes it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Draft {
    /// Names the message in the whole run; in its body. None is 0.
    pub(super) id: u64,
    /// Whose message-id it has, if not its own.
    pub(super) same_as: Option<u64>,
    pub(super) id_from: IdFrom,
    pub(super) time_to_live: Option<u32>,
    pub(super) due: Option<i64>,
    pub(super) properties: BTreeMap<String, String>,
    pub(super) session: Option<Session>,
    /// Bytes of body behind the id.
    pub(super) padding: usize,
    /// What jobs have added to the body.
    pub(super) tail: String,
    /// It cannot be read.
    pub(super) malformed: bool,
    /// The broker has it without its bytes, which were damaged.
    pub(super) bare: bool,
}

/// Who gives a message its message-id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdFrom {
    Sender,
    /// It is made up whenever somebody sees the message.
    Broker,
    /// It was made up for the message with this number in this entity. A job that gave it another body wrote it down.
    Job(usize, i64),
}

/// A message as somebody sees it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: u64,
    pub(super) message_id: String,
    pub(super) padding: usize,
    /// What is in the body behind that.
    pub(super) tail: String,
    pub(super) number: i64,
    pub(super) enqueued_number: i64,
    pub(super) enqueued_at: i64,
    pub(super) locked_until: Option<i64>,
    pub(super) lock_token: Option<[u8; 16]>,
    pub(super) delivery_count: u32,
    pub(super) state: i32,
    pub(super) time_to_live: Option<u32>,
    pub(super) expires_at: Option<i64>,
    pub(super) due: Option<i64>,
    pub(super) session: Option<String>,
    /// Where it was dead-lettered, before it was forwarded.
    pub(super) source: Option<String>,
    pub(super) properties: BTreeMap<String, String>,
}

/// A response as its client reads it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) correlation_id: String,
    pub(super) code: i32,
    pub(super) condition: Option<String>,
    pub(super) body: BTreeMap<String, Value>,
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{} of {} bytes", self.id, self.padding)?;
        note(f, "the same as", self.same_as)?;
        if self.id_from != IdFrom::Sender {
            write!(f, ", its message-id from {:?}", self.id_from)?;
        }
        note(f, "ttl", self.time_to_live)?;
        note(f, "due", self.due)?;
        note(f, "session", self.session)?;
        f.write_str(&self.tail)?;
        if self.malformed {
            f.write_str(" malformed")?;
        }
        if self.bare {
            f.write_str(" without its bytes")?;
        }
        write!(f, " {:?}", self.properties)
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, number, state) = (self.id, self.number, self.state);
        write!(
            f,
            "#{number} m{id} of {} bytes{}, state {state}",
            self.padding, self.tail
        )?;
        note(f, "number before", Some(self.enqueued_number))?;
        note(f, "at", Some(self.enqueued_at))?;
        note(f, "count", Some(self.delivery_count))?;
        note(f, "locked until", self.locked_until)?;
        note(f, "ttl", self.time_to_live)?;
        note(f, "ends", self.expires_at)?;
        note(f, "due", self.due)?;
        note(f, "session", self.session.as_ref())?;
        note(f, "from", self.source.as_ref())?;
        write!(f, " {:?}", self.properties)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.correlation_id, self.code)?;
        note(f, "because", self.condition.as_ref())?;
        for (name, value) in &self.body {
            match value {
                Value::List(items) if name == "messages" => {
                    for item in items {
                        let Value::Map(entries) = item else { continue };
                        for (_, value) in entries {
                            if let Value::Binary(bytes) = value {
                                write!(f, "\n      {:?}", read_message(bytes))?;
                            }
                        }
                    }
                }
                other => write!(f, ", {name}: {other:?}")?,
            }
        }
        Ok(())
    }
}

fn note<T: fmt::Display>(f: &mut fmt::Formatter<'_>, name: &str, value: Option<T>) -> fmt::Result {
    match value {
        Some(value) => write!(f, ", {name} {value}"),
        None => Ok(()),
    }
}

impl Draft {
    pub(super) fn encode(&self) -> Vec<u8> {
        if self.malformed {
            return vec![0x00, 0x53, 0x75, 0xa0, 0xff, 0x01];
        }
        if self.bare {
            return vec![0x00, 0x53, 0x75, 0xa0, 0x00];
        }
        let mut out = Vec::new();
        if let Some(millis) = self.time_to_live {
            let fields = vec![Value::Bool(true), Value::Null, Value::Uint(millis)];
            section(&mut out, 0x70, &Value::List(fields));
        }
        if let Some(due) = self.due {
            let name = Value::Symbol("x-opt-scheduled-enqueue-time".to_owned());
            section(
                &mut out,
                0x72,
                &Value::Map(vec![(name, Value::Timestamp(due))]),
            );
        }
        let mut fields = vec![match self.id_from {
            IdFrom::Broker => Value::Null,
            IdFrom::Sender => Value::String(self.own_id()),
            // As long as the one that it has.
            IdFrom::Job(..) => Value::String("0".repeat(32)),
        }];
        if let Some(session) = self.session {
            fields.resize(10, Value::Null);
            fields.push(Value::String(session_name(session)));
        }
        // Without a message-id, half of them have no properties at all.
        if fields != [Value::Null] || self.id.is_multiple_of(2) {
            section(&mut out, 0x73, &Value::List(fields));
        }
        if !self.properties.is_empty() {
            section(&mut out, 0x74, &strings(&self.properties));
        }
        section(&mut out, 0x75, &Value::Binary(self.body()));
        out
    }

    /// Returns what is left of it without its bytes.
    pub(super) fn without_bytes(&self, session: Option<Session>) -> Self {
        Self {
            id: self.id,
            same_as: None,
            id_from: IdFrom::Broker,
            time_to_live: None,
            due: None,
            properties: BTreeMap::new(),
            session,
            padding: 0,
            tail: String::new(),
            malformed: false,
            bare: true,
        }
    }

    fn own_id(&self) -> String {
        format!("m{}", self.same_as.unwrap_or(self.id))
    }

    /// Returns the message-id in the bytes of the message, if they have one. For an id that the broker made up, and that a job wrote
    /// into the bytes, it returns a placeholder.
    pub(super) fn message_id(&self) -> Option<String> {
        match self.id_from {
            IdFrom::Broker => None,
            IdFrom::Sender => Some(self.own_id()),
            IdFrom::Job(entity, number) => Some(format!("of {number} in {entity}")),
        }
    }

    pub(super) fn body(&self) -> Vec<u8> {
        let mut body = self.id.to_be_bytes().to_vec();
        body.resize(8 + self.padding, self.id.to_be_bytes()[7]);
        body.extend_from_slice(self.tail.as_bytes());
        body
    }
}

/// Reads a body: the message's id, how many bytes are the last one of that, and what comes behind them.
pub(super) fn read_body(body: &[u8]) -> Result<(u64, usize, String), String> {
    let (id, rest) = match body.split_first_chunk() {
        Some((id, rest)) => (*id, rest),
        // What the broker has of a message whose bytes were damaged.
        None if body.is_empty() => ([0; 8], &[][..]),
        None => return Err("the body is cut".to_owned()),
    };
    let padding = rest.iter().take_while(|byte| **byte == id[7]).count();
    let tail = str::from_utf8(&rest[padding..]);
    let tail = tail.map_err(|_| "the body is not what was sent")?;
    Ok((u64::from_be_bytes(id), padding, tail.to_owned()))
}

/// Reads a message-id that the broker has made up: 32 hexadecimal digits.
pub(super) fn made_up_id(text: &str) -> Option<u128> {
    let id = u128::from_str_radix(text, 16).ok()?;
    (format!("{id:032x}") == text).then_some(id)
}

/// Returns the id of a message as its sender made it; `None` if its bytes were damaged.
pub(super) fn sent_id(bytes: &[u8]) -> Result<Option<u64>, String> {
    match sections(bytes)?.get(&0x75) {
        Some(Value::Binary(body)) if body.is_empty() => Ok(None),
        Some(Value::Binary(body)) => {
            let id = body.first_chunk().ok_or("the body is cut")?;
            Ok(Some(u64::from_be_bytes(*id)))
        }
        other => Err(format!("the body is {other:?}")),
    }
}

/// Puts messages into one batch.
pub(super) fn batch(drafts: &[Draft]) -> Vec<u8> {
    let mut out = Vec::new();
    for draft in drafts {
        section(&mut out, 0x75, &Value::Binary(draft.encode()));
    }
    out
}

/// Encodes what declares a transaction.
pub(super) fn declare() -> Vec<u8> {
    control(0x31, vec![Value::Null])
}

/// Encodes what commits one.
pub(super) fn commit(id: &[u8]) -> Vec<u8> {
    control(0x32, vec![Value::Binary(id.to_vec()), Value::Bool(false)])
}

/// Encodes what rolls one back.
pub(super) fn roll_back(id: &[u8]) -> Vec<u8> {
    control(0x32, vec![Value::Binary(id.to_vec()), Value::Bool(true)])
}

fn control(code: u8, fields: Vec<Value>) -> Vec<u8> {
    let mut out = vec![0x00, 0x53, 0x77];
    section(&mut out, code, &Value::List(fields));
    out
}

/// Encodes a request.
pub(super) fn request(
    id: &str,
    reply_to: &str,
    operation: &str,
    about: Option<&str>,
    body: Value,
) -> Vec<u8> {
    let mut out = Vec::new();
    let string = |text: &str| Value::String(text.to_owned());
    let fields = vec![
        string(id),
        Value::Null,
        Value::Null,
        Value::Null,
        string(reply_to),
    ];
    section(&mut out, 0x73, &Value::List(fields));
    let mut properties = vec![(string("operation"), string(operation))];
    properties.extend(about.map(|link| (string("associated-link-name"), string(link))));
    section(&mut out, 0x74, &Value::Map(properties));
    section(&mut out, 0x77, &body);
    out
}

/// Makes a map with string keys and values.
pub(super) fn strings(map: &BTreeMap<String, String>) -> Value {
    let entries = map
        .iter()
        .map(|(key, value)| (Value::String(key.clone()), Value::String(value.clone())));
    Value::Map(entries.collect())
}

/// Makes a map with string keys.
pub(super) fn map(entries: Vec<(&str, Value)>) -> Value {
    let entries = entries
        .into_iter()
        .map(|(key, value)| (Value::String(key.to_owned()), value));
    Value::Map(entries.collect())
}

/// Reads a message as it is delivered; every stamp must have its exact type.
pub(super) fn read_message(bytes: &[u8]) -> Result<Seen, String> {
    let sections = sections(bytes)?;
    let header = list(sections.get(&0x70).ok_or("no header")?)?;
    let annotations = text_map(sections.get(&0x72).ok_or("no message-annotations")?)?;
    let delivery = sections.get(&0x71).map(text_map).transpose()?;
    let properties = list(sections.get(&0x73).ok_or("no properties")?)?;
    let Some(Value::Binary(body)) = sections.get(&0x75) else {
        return Err("no data in the body".to_owned());
    };
    let (id, padding, tail) = read_body(body)?;
    let Some(Value::String(message_id)) = properties.first() else {
        return Err(format!("the message-id is {:?}", properties.first()));
    };
    let long = |name: &str| match annotations.get(name) {
        Some(Value::Long(number)) => Ok(*number),
        other => Err(format!("{name} is {other:?}")),
    };
    let time = |name: &str| match annotations.get(name) {
        Some(Value::Timestamp(at)) => Ok(Some(*at)),
        None => Ok(None),
        other => Err(format!("{name} is {other:?}")),
    };
    let state = match annotations.get("x-opt-message-state") {
        Some(Value::Int(state)) => *state,
        None => 0,
        other => return Err(format!("x-opt-message-state is {other:?}")),
    };
    let lock_token = match delivery
        .as_ref()
        .and_then(|map| map.get("x-opt-lock-token"))
    {
        Some(Value::Uuid(token)) => Some(*token),
        None => None,
        other => return Err(format!("x-opt-lock-token is {other:?}")),
    };
    let uint = |at: usize| match header.get(at) {
        Some(Value::Uint(number)) => Ok(Some(*number)),
        Some(Value::Null) | None => Ok(None),
        other => Err(format!("header field {at} is {other:?}")),
    };
    let mut own = BTreeMap::new();
    if let Some(map) = sections.get(&0x74) {
        for (name, value) in text_map(map)? {
            let Value::String(value) = value else {
                return Err(format!("{name} is {value:?}"));
            };
            own.insert(name, value);
        }
    }
    Ok(Seen {
        id,
        message_id: message_id.clone(),
        padding,
        tail,
        number: long("x-opt-sequence-number")?,
        enqueued_number: match annotations.get("x-opt-enqueue-sequence-number") {
            None => 0,
            Some(_) => long("x-opt-enqueue-sequence-number")?,
        },
        enqueued_at: time("x-opt-enqueued-time")?.ok_or("no x-opt-enqueued-time")?,
        locked_until: time("x-opt-locked-until")?,
        lock_token,
        delivery_count: uint(4)?.ok_or("no delivery-count")?,
        state,
        time_to_live: uint(2)?,
        expires_at: match properties.get(8) {
            Some(Value::Timestamp(at)) => Some(*at),
            _ => None,
        },
        due: time("x-opt-scheduled-enqueue-time")?,
        session: match properties.get(10) {
            Some(Value::String(name)) => Some(name.clone()),
            Some(Value::Null) | None => None,
            other => return Err(format!("the group-id is {other:?}")),
        },
        source: match annotations.get("x-opt-deadletter-source") {
            Some(Value::String(path)) => Some(path.clone()),
            None => None,
            other => return Err(format!("x-opt-deadletter-source is {other:?}")),
        },
        properties: own,
    })
}

/// Reads a response.
pub(super) fn read_answer(bytes: &[u8]) -> Result<Answer, String> {
    let sections = sections(bytes)?;
    let properties = list(sections.get(&0x73).ok_or("no properties")?)?;
    let Some(Value::String(correlation_id)) = properties.get(5) else {
        return Err(format!("the correlation-id is {:?}", properties.get(5)));
    };
    let application = text_map(sections.get(&0x74).ok_or("no application-properties")?)?;
    let code = match application.get("statusCode") {
        Some(Value::Int(code)) => *code,
        other => return Err(format!("statusCode is {other:?}")),
    };
    let condition = match application.get("errorCondition") {
        Some(Value::Symbol(condition)) => Some(condition.clone()),
        None => None,
        other => return Err(format!("errorCondition is {other:?}")),
    };
    let body = text_map(sections.get(&0x77).ok_or("no amqp-value")?)?;
    Ok(Answer {
        correlation_id: correlation_id.clone(),
        code,
        condition,
        body,
    })
}

fn list(value: &Value) -> Result<Vec<Value>, String> {
    match value {
        Value::List(items) => Ok(items.clone()),
        other => Err(format!("{other:?} is no list")),
    }
}

fn text_map(value: &Value) -> Result<BTreeMap<String, Value>, String> {
    let Value::Map(entries) = value else {
        return Err(format!("{value:?} is no map"));
    };
    let mut map = BTreeMap::new();
    for (key, value) in entries {
        let (Value::String(key) | Value::Symbol(key)) = key else {
            return Err(format!("{key:?} is no name"));
        };
        if map.insert(key.clone(), value.clone()).is_some() {
            return Err(format!("{key} stands twice"));
        }
    }
    Ok(map)
}

pub(super) fn section(out: &mut Vec<u8>, code: u8, value: &Value) {
    out.extend_from_slice(&[0x00, 0x53, code]);
    encode(out, value);
}

fn sections(bytes: &[u8]) -> Result<BTreeMap<u8, Value>, String> {
    let mut rest = bytes;
    let mut found = BTreeMap::new();
    while !rest.is_empty() {
        let [0x00, 0x53, code, value @ ..] = rest else {
            return Err("a section has another descriptor than 00 53".to_owned());
        };
        rest = value;
        let value = decode(&mut rest)?;
        if found.insert(*code, value).is_some() {
            return Err(format!("the section {code:#x} is repeated"));
        }
    }
    Ok(found)
}

fn encode(out: &mut Vec<u8>, value: &Value) {
    let long = |out: &mut Vec<u8>, code: u8, bytes: &[u8]| {
        out.push(code);
        out.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_be_bytes());
        out.extend_from_slice(bytes);
    };
    let compound = |out: &mut Vec<u8>, code: u8, count: usize, items: &[u8]| {
        out.push(code);
        out.extend_from_slice(&u32::try_from(items.len() + 4).unwrap().to_be_bytes());
        out.extend_from_slice(&u32::try_from(count).unwrap().to_be_bytes());
        out.extend_from_slice(items);
    };
    match value {
        Value::Null => out.push(0x40),
        Value::Bool(true) => out.push(0x41),
        Value::Bool(false) => out.push(0x42),
        Value::Ubyte(number) => out.extend_from_slice(&[0x50, *number]),
        Value::Described(descriptor, value) => {
            out.push(0x00);
            encode(out, descriptor);
            encode(out, value);
        }
        Value::Encoded(bytes) => out.extend_from_slice(bytes),
        Value::Ushort(number) => {
            out.push(0x60);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::Uint(number) => {
            out.push(0x70);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::Ulong(number) => {
            out.push(0x80);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::Int(number) => {
            out.push(0x71);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::Long(number) => {
            out.push(0x81);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::Timestamp(at) => {
            out.push(0x83);
            out.extend_from_slice(&at.to_be_bytes());
        }
        Value::Uuid(bytes) => {
            out.push(0x98);
            out.extend_from_slice(bytes);
        }
        Value::Binary(bytes) => long(out, 0xb0, bytes),
        Value::String(text) => long(out, 0xb1, text.as_bytes()),
        Value::Symbol(text) => long(out, 0xb3, text.as_bytes()),
        Value::List(items) | Value::Array(items) => {
            let mut inner = Vec::new();
            for item in items {
                encode(&mut inner, item);
            }
            compound(out, 0xd0, items.len(), &inner);
        }
        Value::Map(entries) => {
            let mut inner = Vec::new();
            for (key, value) in entries {
                encode(&mut inner, key);
                encode(&mut inner, value);
            }
            compound(out, 0xd1, 2 * entries.len(), &inner);
        }
    }
}

/// Reads one value.
pub(super) fn read_value(rest: &mut &[u8]) -> Result<Value, String> {
    decode(rest)
}

fn decode(rest: &mut &[u8]) -> Result<Value, String> {
    let [code] = take::<1>(rest)?;
    decode_as(code, rest)
}

fn decode_as(code: u8, rest: &mut &[u8]) -> Result<Value, String> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|error| error.to_string());
    Ok(match code {
        0x00 => {
            let descriptor = decode(rest)?;
            Value::Described(Box::new(descriptor), Box::new(decode(rest)?))
        }
        0x40 => Value::Null,
        0x41 => Value::Bool(true),
        0x42 => Value::Bool(false),
        0x43 => Value::Uint(0),
        0x44 => Value::Ulong(0),
        0x45 => Value::List(Vec::new()),
        0x50 => Value::Ubyte(take::<1>(rest)?[0]),
        0x52 => Value::Uint(u32::from(take::<1>(rest)?[0])),
        0x53 => Value::Ulong(u64::from(take::<1>(rest)?[0])),
        0x54 => Value::Int(i32::from(i8::from_be_bytes(take(rest)?))),
        0x55 => Value::Long(i64::from(i8::from_be_bytes(take(rest)?))),
        0x56 => Value::Bool(take::<1>(rest)?[0] != 0),
        0x60 => Value::Ushort(u16::from_be_bytes(take(rest)?)),
        0x61 => Value::Int(i32::from(i16::from_be_bytes(take(rest)?))),
        0x70 => Value::Uint(u32::from_be_bytes(take(rest)?)),
        0x71 => Value::Int(i32::from_be_bytes(take(rest)?)),
        0x80 => Value::Ulong(u64::from_be_bytes(take(rest)?)),
        0x81 => Value::Long(i64::from_be_bytes(take(rest)?)),
        0x83 => Value::Timestamp(i64::from_be_bytes(take(rest)?)),
        0x98 => Value::Uuid(take(rest)?),
        0xa0 | 0xb0 => Value::Binary(variable(code, rest)?),
        0xa1 | 0xb1 => Value::String(text(variable(code, rest)?)?),
        0xa3 | 0xb3 => Value::Symbol(text(variable(code, rest)?)?),
        0xc0 | 0xd0 => Value::List(items(code, rest)?),
        0xc1 | 0xd1 => {
            let items = items(code, rest)?;
            let entries = items.chunks_exact(2);
            Value::Map(entries.map(|e| (e[0].clone(), e[1].clone())).collect())
        }
        0xe0 | 0xf0 => {
            let (_, count) = size_and_count(code, rest)?;
            let [constructor] = take::<1>(rest)?;
            let items = (0..count).map(|_| decode_as(constructor, rest));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        other => return Err(format!("no value begins with {other:#x}")),
    })
}

fn items(code: u8, rest: &mut &[u8]) -> Result<Vec<Value>, String> {
    let (_, count) = size_and_count(code, rest)?;
    (0..count).map(|_| decode(rest)).collect()
}

fn size_and_count(code: u8, rest: &mut &[u8]) -> Result<(usize, usize), String> {
    let (size, count) = if matches!(code, 0xc0 | 0xc1 | 0xe0) {
        let [size, count] = take(rest)?;
        (u32::from(size), u32::from(count))
    } else {
        let size = u32::from_be_bytes(take(rest)?);
        (size, u32::from_be_bytes(take(rest)?))
    };
    Ok((
        usize::try_from(size).unwrap(),
        usize::try_from(count).unwrap(),
    ))
}

fn variable(code: u8, rest: &mut &[u8]) -> Result<Vec<u8>, String> {
    let length = if code < 0xb0 {
        usize::from(take::<1>(rest)?[0])
    } else {
        usize::try_from(u32::from_be_bytes(take(rest)?)).unwrap()
    };
    let (bytes, after) = rest.split_at_checked(length).ok_or("a value is cut")?;
    *rest = after;
    Ok(bytes.to_vec())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    let (bytes, after) = rest.split_first_chunk::<N>().ok_or("a value is cut")?;
    *rest = after;
    Ok(*bytes)
}
