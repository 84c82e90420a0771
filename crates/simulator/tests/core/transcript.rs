//! Conversations at frame level, stored as text: frames of the client (`C:`), frames of the broker
//! (`S:`), and other events (`T:`): time passes (`+MILLIS`), the connection is replaced by a new one
//! (`drop`), or the broker verifies keys from the beginning (`keys`).
//!
//! They are tests, documentation of the wire, and examples to begin a new one from. `UPDATE=1 cargo
//! test --test simulator transcript` writes the answers anew; commit a difference only if you understand
//! it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jitney_amqp::words;
use serde_amqp::Value;
use serde_amqp::primitives::{OrderedMap, Symbol};
use serde_bytes::ByteBuf;

use crate::engine::words as any;
use crate::rig::Rig;

#[test]
fn every_transcript_is_what_the_broker_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/core/transcripts");
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 10, "the transcripts are there");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let played = play(&text);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, played).unwrap();
        } else {
            assert!(
                text == played,
                "{}:\n{text}\nis now:\n{played}",
                file.display()
            );
        }
    }
}

/// Returns the input of the clients in all transcripts, a list of encoded lines for each.
pub fn said() -> Vec<Vec<Vec<u8>>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/core/transcripts");
    let entries = std::fs::read_dir(directory).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let said = |file| -> Vec<Vec<u8>> {
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.lines();
        let said = lines.filter_map(|line| line.strip_prefix("C: "));
        said.map(encode).collect()
    };
    files.into_iter().map(said).collect()
}

/// Returns the dialogue with the answers that the broker gives.
fn play(text: &str) -> String {
    let mut rig = Rig::new();
    let mut played = String::new();
    for line in text.lines() {
        let answer = match line.split_once(' ') {
            Some(("C:", said)) => rig.exchange(&encode(said)),
            Some(("T:", "drop")) => {
                rig.reconnect();
                bytes::BytesMut::new()
            }
            Some(("T:", "keys")) => {
                rig = Rig::verified();
                bytes::BytesMut::new()
            }
            Some(("T:", span)) => rig.wait(span.trim_start_matches('+').parse().unwrap()),
            Some(("S:", _)) => continue,
            _ => bytes::BytesMut::new(),
        };
        writeln!(played, "{line}").unwrap();
        describe(&answer, &mut played);
    }
    played
}

fn describe(mut answer: &[u8], played: &mut String) {
    while !answer.is_empty() {
        if answer.starts_with(b"AMQP") {
            let (header, rest) = answer.split_at(8);
            let kind = if header[4] == 3 { "sasl" } else { "amqp" };
            writeln!(played, "S: header {kind}").unwrap();
            answer = rest;
            continue;
        }
        let size = usize::try_from(u32::from_be_bytes(answer[..4].try_into().unwrap())).unwrap();
        let (frame, rest) = answer.split_at(size);
        let channel = u16::from_be_bytes([frame[6], frame[7]]);
        writeln!(played, "S: ch={channel} {}", words(&frame[8..])).unwrap();
        let sought = described_properties();
        if frame.windows(sought.len()).any(|window| window == sought) {
            writeln!(played, "S: with the described properties, byte for byte").unwrap();
        }
        answer = rest;
    }
}

/// Fields of performatives with their types, in order.
const PERFORMATIVES: [(&str, u8, &str); 10] = [
    (
        "sasl-init",
        0x41,
        "mechanism:symbol response:hex hostname:string",
    ),
    (
        "open",
        0x10,
        "container-id:string hostname:string max-frame-size:uint channel-max:ushort idle-time-out:uint",
    ),
    (
        "begin",
        0x11,
        "remote-channel:ushort next-outgoing-id:uint incoming-window:uint outgoing-window:uint handle-max:uint",
    ),
    (
        "attach",
        0x12,
        "name:string handle:uint role:role snd-settle-mode:ubyte rcv-settle-mode:ubyte source:source target:target unsettled:null incomplete:null initial-delivery-count:uint max-message-size:ulong offered-capabilities:null desired-capabilities:null properties:link",
    ),
    (
        "flow",
        0x13,
        "next-incoming-id:uint incoming-window:uint next-outgoing-id:uint outgoing-window:uint handle:uint delivery-count:uint link-credit:uint available:uint drain:bool echo:bool",
    ),
    (
        "transfer",
        0x14,
        "handle:uint delivery-id:uint delivery-tag:hex message-format:uint settled:bool more:bool rcv-settle-mode:ubyte state:state resume:bool aborted:bool",
    ),
    (
        "disposition",
        0x15,
        "role:role first:uint last:uint settled:bool state:state",
    ),
    ("detach", 0x16, "handle:uint closed:bool"),
    ("end", 0x17, ""),
    ("close", 0x18, ""),
];

fn encode(said: &str) -> Vec<u8> {
    let mut words = said.split_ascii_whitespace();
    let name = words.next().unwrap();
    match (name, words.clone().next()) {
        ("header", Some("sasl")) => return b"AMQP\x03\x01\x00\x00".to_vec(),
        ("header", Some("amqp")) => return b"AMQP\x00\x01\x00\x00".to_vec(),
        ("raw", Some(hex)) => return bytes_of(hex),
        // Any performative, in the words of the engine's dialogues.
        ("frame", Some(_)) => {
            let body = any::body(said.trim_start_matches("frame "));
            let size = u32::try_from(body.len() + 8).unwrap().to_be_bytes();
            return [&size[..], &[2, 0, 0, 0], &body].concat();
        }
        _ => {}
    }
    let (_, code, fields) = PERFORMATIVES
        .iter()
        .find(|(known, ..)| *known == name)
        .unwrap();
    let mut given: BTreeMap<&str, &str> = words
        .map(|word| word.split_once('=').unwrap_or((word, "true")))
        .collect();
    let channel: u16 = given.remove("ch").unwrap_or("0").parse().unwrap();
    let values: Vec<Value> = fields
        .split_ascii_whitespace()
        .map(|field| {
            let (field, kind) = field.split_once(':').unwrap();
            if kind == "link" {
                return link_properties(&mut given);
            }
            given
                .remove(field)
                .map_or(Value::Null, |text| value(kind, text))
        })
        .collect();
    let mut body = vec![0x00, 0x53, *code];
    body.extend(serde_amqp::to_vec(&Value::List(values)).unwrap());
    body.extend(payload(&mut given));
    assert!(given.is_empty(), "unknown fields in '{said}': {given:?}");
    let size = u32::try_from(body.len() + 8).unwrap().to_be_bytes();
    let kind = u8::from(name.starts_with("sasl"));
    let channel = channel.to_be_bytes();
    [&size[..], &[2, kind], &channel, &body].concat()
}

fn value(kind: &str, text: &str) -> Value {
    match kind {
        "string" => Value::String(text.to_owned()),
        "symbol" => Value::Symbol(Symbol::from(text)),
        "uint" => Value::Uint(text.parse().unwrap()),
        "ushort" => Value::Ushort(text.parse().unwrap()),
        "ubyte" => Value::Ubyte(text.parse().unwrap()),
        "ulong" => Value::Ulong(text.parse().unwrap()),
        "bool" => Value::Bool(text == "true"),
        "role" => Value::Bool(text == "receiver"),
        "hex" => Value::Binary(ByteBuf::from(bytes_of(text))),
        // `queue`, `queue/of/SESSION` for a message session of it, `queue/of/` for any.
        // `queue/beside/SESSION` for a session that others may have too, as .NET asks for it.
        "source" => match (text.split_once("/of/"), text.split_once("/beside/")) {
            (None, None) => described(0x28, vec![string(text)]),
            (Some((address, session)), _) => {
                let session = match session {
                    "" => Value::Null,
                    session => string(session),
                };
                filtered(address, "com.microsoft:session-filter", session)
            }
            (None, Some((address, session))) => {
                let name = "com.microsoft:non-exclusive-session-filter";
                let fields = vec![string(session), Value::Null];
                filtered(address, name, described(0x13_7000_000e, fields))
            }
        },
        "target" if text == "coordinator" => described(0x30, vec![]),
        "target" => described(0x29, vec![Value::String(text.to_owned())]),
        // `in/HEX` for a send in the transaction of this id, `in/HEX/accepted` for an outcome.
        "state" if text.starts_with("in/") => {
            let mut parts = text.splitn(3, '/').skip(1);
            let id = Value::Binary(ByteBuf::from(bytes_of(parts.next().unwrap())));
            let outcome = parts.next().map_or(Value::Null, |text| value(kind, text));
            described(0x34, vec![id, outcome])
        }
        "state" => match text {
            "accepted" => described(0x24, vec![]),
            "rejected" => described(0x25, vec![]),
            "released" => described(0x26, vec![]),
            "modified" => described(0x27, vec![]),
            "deferred" => described(0x27, vec![Value::Null, Value::Bool(true)]),
            other => panic!("{other} is no outcome"),
        },
        other => panic!("{other} is no type"),
    }
}

/// A source with a filter.
fn filtered(address: &str, name: &str, value: Value) -> Value {
    let mut filter = OrderedMap::new();
    filter.insert(Value::Symbol(Symbol::from(name)), value);
    let mut fields = vec![string(address)];
    fields.resize(7, Value::Null);
    fields.push(Value::Map(filter));
    described(0x28, fields)
}

/// A link's properties: `timeout=MILLIS`, `entity-type=NAME`, `receiver-name=NAME`, `via=ADDRESS`.
fn link_properties(given: &mut BTreeMap<&str, &str>) -> Value {
    let mut properties = OrderedMap::new();
    for (word, name) in [
        ("timeout", "com.microsoft:timeout"),
        ("entity-type", "com.microsoft:entity-type"),
        ("receiver-name", "com.microsoft:receiver-name"),
        ("via", "com.microsoft:transfer-destination-address"),
    ] {
        if let Some(text) = given.remove(word) {
            let kind = if word == "timeout" { "uint" } else { "string" };
            properties.insert(Value::Symbol(Symbol::from(name)), value(kind, text));
        }
    }
    if properties.is_empty() {
        return Value::Null;
    }
    Value::Map(properties)
}

/// Application properties of the types that .NET describes, as it does.
fn described_properties() -> Vec<u8> {
    let of = |name: &str, value: Value| {
        let descriptor = serde_amqp::descriptor::Descriptor::Name(Symbol::from(name));
        let value = serde_amqp::described::Described { descriptor, value };
        Value::Described(Box::new(value))
    };
    let properties = [
        (
            "span",
            of("com.microsoft:timespan", Value::Long(36_000_000_000)),
        ),
        (
            "place",
            of("com.microsoft:uri", string("http://localhost/")),
        ),
        (
            "moment",
            of(
                "com.microsoft:datetime-offset",
                Value::Long(637_134_336_000_000_000),
            ),
        ),
    ];
    let map = properties.map(|(name, value)| (string(name), value));
    section(0x74, &Value::Map(map.into_iter().collect()))
}

fn described(code: u64, fields: Vec<Value>) -> Value {
    let descriptor = serde_amqp::descriptor::Descriptor::Code(code);
    let value = Value::List(fields);
    Value::Described(Box::new(serde_amqp::described::Described {
        descriptor,
        value,
    }))
}

/// The payload of a transfer: `body=TEXT`, `bytes=N`, `batch=TEXT,TEXT`, or a request by
/// `operation=NAME`, with `reply-to`, `text=BODY` or entries of the map: `long:NAME`, `int:NAME`.
///
/// `described` gives a body .NET's described properties; `rule=NAME` is a rule as .NET sends it, that
/// takes all; `session=NAME` puts a body into a message session, `subject=TEXT` gives it a subject, and
/// `delivery-time=MILLIS` a time before which it is not to be delivered; `declare` and `discharge=HEX`, with `fail`,
/// are for the coordinator.
fn payload(given: &mut BTreeMap<&str, &str>) -> Vec<u8> {
    if given.remove("declare").is_some() {
        return section(0x77, &described(0x31, vec![]));
    }
    if let Some(id) = given.remove("discharge") {
        let id = Value::Binary(ByteBuf::from(bytes_of(id)));
        let fail = Value::Bool(given.remove("fail").is_some());
        return section(0x77, &described(0x32, vec![id, fail]));
    }
    if let Some(session) = given.remove("session") {
        let mut properties = vec![Value::Null; 10];
        properties.push(string(session));
        let body = data(given.remove("body").unwrap_or_default().as_bytes());
        return [section(0x73, &Value::List(properties)), body].concat();
    }
    if let Some(subject) = given.remove("subject") {
        let properties = vec![Value::Null, Value::Null, Value::Null, string(subject)];
        let body = data(given.remove("body").unwrap_or_default().as_bytes());
        return [section(0x73, &Value::List(properties)), body].concat();
    }
    if let Some(time) = given.remove("delivery-time") {
        let name = Value::Symbol(Symbol::from("x-opt-delivery-time"));
        let mut annotations = OrderedMap::new();
        annotations.insert(name, Value::Long(time.parse().unwrap()));
        let body = data(given.remove("body").unwrap_or_default().as_bytes());
        return [section(0x72, &Value::Map(annotations)), body].concat();
    }
    if let Some(text) = given.remove("body") {
        let properties = given.remove("described").map(|_| described_properties());
        return [properties.unwrap_or_default(), data(text.as_bytes())].concat();
    }
    if let Some(count) = given.remove("bytes") {
        return data(&vec![b'x'; count.parse().unwrap()]);
    }
    if let Some(texts) = given.remove("batch") {
        return texts
            .split(',')
            .flat_map(|text| data(&data(text.as_bytes())))
            .collect();
    }
    let Some(operation) = given.remove("operation") else {
        return Vec::new();
    };
    let reply_to = given
        .remove("reply-to")
        .map_or(Value::Null, |to| Value::String(to.to_owned()));
    let id = Value::String("request-1".to_owned());
    let properties = Value::List(vec![id, Value::Null, Value::Null, Value::Null, reply_to]);
    let mut application = OrderedMap::new();
    application.insert(string("operation"), string(operation));
    for (word, name) in [
        ("type", "type"),
        ("name", "name"),
        ("link", "associated-link-name"),
        ("tracking-id", "com.microsoft:tracking-id"),
    ] {
        if let Some(text) = given.remove(word) {
            application.insert(string(name), string(text));
        }
    }
    if let Some(text) = given.remove("server-timeout") {
        let name = string("com.microsoft:server-timeout");
        application.insert(name, value("uint", text));
    }
    let rule = given.remove("rule");
    let body = match given.remove("text") {
        Some(text) => string(&text.replace('_', " ")),
        None if rule.is_some() => rule_of(rule.unwrap_or_default()),
        None => {
            let entries = std::mem::take(given).into_iter().map(|(name, text)| {
                let (kind, name) = name.split_once(':').unwrap();
                let value = match kind {
                    "long" => Value::Long(text.parse().unwrap()),
                    "int" => Value::Int(text.parse().unwrap()),
                    "timestamp" => Value::Timestamp(text.parse::<i64>().unwrap().into()),
                    _ => string(text),
                };
                (string(name), value)
            });
            Value::Map(entries.collect())
        }
    };
    [
        section(0x73, &properties),
        section(0x74, &Value::Map(application)),
        section(0x77, &body),
    ]
    .concat()
}

/// The body of a request for a rule: its name twice, and an empty map where there is no action.
fn rule_of(name: &str) -> Value {
    let map = |entries: Vec<(&str, Value)>| {
        let entries = entries
            .into_iter()
            .map(|(name, value)| (string(name), value));
        Value::Map(entries.collect())
    };
    let description = map(vec![
        ("rule-name", string(name)),
        ("sql-filter", map(vec![("expression", string("1=1"))])),
        ("sql-rule-action", map(vec![])),
    ]);
    map(vec![
        ("rule-name", string(name)),
        ("rule-description", description),
    ])
}

fn section(code: u8, value: &Value) -> Vec<u8> {
    [&[0x00, 0x53, code][..], &serde_amqp::to_vec(value).unwrap()].concat()
}

fn data(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[0x00, 0x53, 0x75, 0xb0][..], &length, body].concat()
}

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}
