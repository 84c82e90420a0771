//! Frames as words and words as frames, for dialogues that people read.
//!
//! ```text
//! ch=1 attach name="s" handle=0 role=sender target=target(address="q") properties={:key=5u}
//! ```
//!
//! Null fields are left out. Values: `"string"`, `:symbol`, `b"binary"`, `x"00ff"`, `5` (as the
//! field wants it; an int where any type may stand), `5u` uint, `5ub` ubyte, `5us` ushort, `5ul`
//! ulong, `5l` long, `5t` timestamp, `[list]`, `{key=value}`, `array[..]`, `name(field=value)` for
//! the specification's types, `@code value` for any other described type. Another codec than the
//! engine's does the encoding, so that the two can disagree.

use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use serde_amqp::primitives::{Array, OrderedMap, Timestamp};
use serde_amqp::{Value, from_slice, to_vec};

use jitney_amqp::codec;

/// Takes a frame's body apart: its performative in words, and its payload.
pub fn describe(body: &[u8]) -> String {
    if body.is_empty() {
        return "empty".to_owned();
    }
    let length = codec::value_length(body).expect("a frame begins with a value");
    let (performative, payload) = body.split_at(length);
    assert_eq!(
        performative[..2],
        [0x00, 0x53],
        "Python reads no other descriptors"
    );
    let value: Value = from_slice(performative).expect("a performative is a value");
    let mut text = String::new();
    write_fields(&mut text, &value, " ", "");
    if !payload.is_empty() {
        text.push_str(" payload=");
        text.push_str(&write_payload(payload));
    }
    text
}

/// Reads a frame's body from words.
pub fn body(text: &str) -> Vec<u8> {
    if text == "empty" {
        return Vec::new();
    }
    let mut reader = Reader { text };
    let name = reader.name();
    let (_, code, fields) = type_named(name);
    let (performative, payload) = reader.fields(code, fields, "");
    let mut bytes = to_vec(&performative).expect("words are encoded");
    bytes.extend(payload);
    bytes
}

/// Names, codes and fields of what stands in frames; behind each field, its type.
const TYPES: [(&str, u64, &str); 25] = [
    (
        "open",
        0x10,
        "container-id:s hostname:s max-frame-size:u channel-max:us idle-time-out:u outgoing-locales:* incoming-locales:* offered-capabilities:* desired-capabilities:* properties:*",
    ),
    (
        "begin",
        0x11,
        "remote-channel:us next-outgoing-id:u incoming-window:u outgoing-window:u handle-max:u offered-capabilities:* desired-capabilities:* properties:*",
    ),
    (
        "attach",
        0x12,
        "name:s handle:u role:r snd-settle-mode:ub rcv-settle-mode:ub source:* target:* unsettled:* incomplete-unsettled:b initial-delivery-count:u max-message-size:ul offered-capabilities:* desired-capabilities:* properties:*",
    ),
    (
        "flow",
        0x13,
        "next-incoming-id:u incoming-window:u next-outgoing-id:u outgoing-window:u handle:u delivery-count:u link-credit:u available:u drain:b echo:b properties:*",
    ),
    (
        "transfer",
        0x14,
        "handle:u delivery-id:u delivery-tag:x message-format:u settled:b more:b rcv-settle-mode:ub state:* resume:b aborted:b batchable:b",
    ),
    (
        "disposition",
        0x15,
        "role:r first:u last:u settled:b state:* batchable:b",
    ),
    ("detach", 0x16, "handle:u closed:b error:*"),
    ("end", 0x17, "error:*"),
    ("close", 0x18, "error:*"),
    ("error", 0x1d, "condition:y description:s info:*"),
    ("received", 0x23, "section-number:u section-offset:ul"),
    ("accepted", 0x24, ""),
    ("rejected", 0x25, "error:*"),
    ("released", 0x26, ""),
    (
        "modified",
        0x27,
        "delivery-failed:b undeliverable-here:b message-annotations:*",
    ),
    (
        "source",
        0x28,
        "address:s durable:u expiry-policy:y timeout:u dynamic:b dynamic-node-properties:* distribution-mode:y filter:* default-outcome:* outcomes:* capabilities:*",
    ),
    (
        "target",
        0x29,
        "address:s durable:u expiry-policy:y timeout:u dynamic:b dynamic-node-properties:* capabilities:*",
    ),
    ("coordinator", 0x30, "capabilities:*"),
    ("declared", 0x33, "txn-id:x"),
    ("transactional-state", 0x34, "txn-id:x outcome:*"),
    ("sasl-mechanisms", 0x40, "mechanisms:*"),
    ("sasl-init", 0x41, "mechanism:y response:x hostname:s"),
    ("sasl-challenge", 0x42, "challenge:x"),
    ("sasl-response", 0x43, "response:x"),
    ("sasl-outcome", 0x44, "code:ub additional-data:x"),
];

fn type_named(name: &str) -> (&'static str, u64, &'static str) {
    let known = TYPES.iter().find(|(known, ..)| *known == name);
    *known.unwrap_or_else(|| panic!("{name:?} is no type"))
}

fn fields_of(fields: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    fields
        .split_whitespace()
        .map(|field| field.split_once(':').expect("name:type"))
}

struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        self.text = self.text.trim_start();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip();
        match self.text.strip_prefix(token) {
            Some(rest) => {
                self.text = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) {
        assert!(self.take(token), "{token:?} expected at {:?}", self.text);
    }

    fn until(&mut self, end: impl Fn(char) -> bool) -> &'a str {
        let at = self.text.find(end).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(at);
        self.text = rest;
        word
    }

    fn name(&mut self) -> &'a str {
        self.skip();
        self.until(|c| !(c.is_ascii_alphanumeric() || c == '-'))
    }

    /// Reads `field=value ...` up to `end`: a described list, and the payload if there is one.
    fn fields(&mut self, code: u64, fields: &'static str, end: &str) -> (Value, Vec<u8>) {
        let names: Vec<_> = fields_of(fields).collect();
        let (mut list, mut payload) = (Vec::new(), Vec::new());
        loop {
            self.skip();
            if self.text.is_empty() || (!end.is_empty() && self.take(end)) {
                break;
            }
            let name = self.name();
            self.expect("=");
            if name == "payload" {
                payload = self.payload();
                continue;
            }
            if name == "fields" {
                let count = self
                    .until(|c| !c.is_ascii_digit())
                    .parse()
                    .expect("a count");
                list.resize(count, Value::Null);
                continue;
            }
            let at = names.iter().position(|(known, _)| *known == name);
            let at = at.unwrap_or_else(|| panic!("{name:?} is no field of {code:#x}"));
            if list.len() <= at {
                list.resize(at + 1, Value::Null);
            }
            list[at] = self.value(names[at].1);
        }
        (described(code, Value::List(list)), payload)
    }

    /// Reads `"text"` or `1000*"a"`, several joined by `+`.
    fn payload(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            self.skip();
            let count = self.until(|c| !c.is_ascii_digit());
            let count = if count.is_empty() {
                1
            } else {
                count.parse().expect("a count")
            };
            let _ = self.take("*");
            let Value::Binary(piece) = self.value("x") else {
                panic!("a payload")
            };
            bytes.extend(piece.repeat(count));
            if !self.take("+") {
                return bytes;
            }
        }
    }

    fn quoted(&mut self) -> String {
        self.expect("\"");
        let mut string = String::new();
        let mut chars = self.text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.text = &self.text[at + 1..];
                    return string;
                }
                '\\' => string.push(match chars.next().expect("an escape").1 {
                    '0' => '\0',
                    'n' => '\n',
                    other => other,
                }),
                other => string.push(other),
            }
        }
        panic!("a string without an end")
    }

    fn value(&mut self, wanted: &str) -> Value {
        self.skip();
        if self.text.starts_with('"') {
            let string = self.quoted();
            return match wanted {
                "x" => Value::Binary(string.into_bytes().into()),
                _ => Value::String(string),
            };
        }
        if self.take(":") {
            let word = self.until(|c| " =()[]{}".contains(c));
            return Value::Symbol(word.into());
        }
        if self.text.starts_with("x\"") {
            self.expect("x");
            let hex = self.quoted();
            return Value::Binary(from_hex(&hex).into());
        }
        if self.text.starts_with("b\"") {
            self.expect("b");
            return Value::Binary(self.quoted().into_bytes().into());
        }
        if self.take("array[") {
            return Value::Array(Array::from(self.values("]")));
        }
        if self.take("[") {
            return Value::List(self.values("]"));
        }
        if self.take("{") {
            let mut map = OrderedMap::new();
            while !self.take("}") {
                let key = self.value("*");
                self.expect("=");
                map.insert(key, self.value("*"));
            }
            return Value::Map(map);
        }
        if self.take("@") {
            let code = self.until(|c| !c.is_ascii_alphanumeric());
            let hex = code.strip_prefix("0x").expect("a code in hex");
            let code = u64::from_str_radix(hex, 16).expect("a code");
            return described(code, self.value("*"));
        }
        let word = self.until(|c| " =()[]{}".contains(c));
        match word {
            "null" => Value::Null,
            "true" | "receiver" => Value::Bool(true),
            "false" | "sender" => Value::Bool(false),
            _ if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') => number(word, wanted),
            _ => {
                let (_, code, fields) = type_named(word);
                self.expect("(");
                self.fields(code, fields, ")").0
            }
        }
    }

    fn values(&mut self, end: &str) -> Vec<Value> {
        let mut values = Vec::new();
        while !self.take(end) {
            values.push(self.value("*"));
        }
        values
    }
}

fn number(word: &str, wanted: &str) -> Value {
    let at = word
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(word.len());
    let (digits, suffix) = word.split_at(at);
    let kind = if suffix.is_empty() { wanted } else { suffix };
    let why = "a number in its range";
    match kind {
        "u" => Value::Uint(digits.parse().expect(why)),
        "ub" => Value::Ubyte(digits.parse().expect(why)),
        "us" => Value::Ushort(digits.parse().expect(why)),
        "ul" => Value::Ulong(digits.parse().expect(why)),
        "l" => Value::Long(digits.parse().expect(why)),
        "t" => Value::Timestamp(Timestamp::from(digits.parse::<i64>().expect(why))),
        _ => Value::Int(digits.parse().expect(why)),
    }
}

fn described(code: u64, value: Value) -> Value {
    Value::Described(Box::new(Described {
        descriptor: Descriptor::Code(code),
        value,
    }))
}

/// Writes a value of the specification's own types; `open` and `close` stand around its fields.
fn write_fields(text: &mut String, value: &Value, open: &str, close: &str) {
    let Value::Described(described) = value else {
        panic!("{value:?} is not described")
    };
    let (Descriptor::Code(code), Value::List(list)) = (&described.descriptor, &described.value)
    else {
        panic!("{described:?} is not a list")
    };
    let known = TYPES.iter().find(|(_, known, _)| known == code);
    let (name, _, fields) = known.unwrap_or_else(|| panic!("{code:#x} is no type"));
    text.push_str(name);
    let mut separator = open;
    if !close.is_empty() {
        text.push_str(open);
        separator = "";
    }
    for ((name, kind), value) in fields_of(fields).zip(list) {
        if *value == Value::Null {
            continue;
        }
        text.push_str(separator);
        separator = " ";
        text.push_str(name);
        text.push('=');
        write(text, value, kind);
    }
    // Fields that are null but stand there matter: Python indexes them.
    let given = list.len();
    if matches!(*name, "error" | "rejected" | "modified") {
        text.push_str(&format!("{separator}fields={given}"));
    }
    text.push_str(close);
}

fn write(text: &mut String, value: &Value, wanted: &str) {
    let plain = |kind: &'static str| if kind == wanted { "" } else { kind };
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(receiver) if wanted == "r" => {
            text.push_str(if *receiver { "receiver" } else { "sender" });
        }
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Uint(value) => text.push_str(&format!("{value}{}", plain("u"))),
        Value::Ubyte(value) => text.push_str(&format!("{value}{}", plain("ub"))),
        Value::Ushort(value) => text.push_str(&format!("{value}{}", plain("us"))),
        Value::Ulong(value) => text.push_str(&format!("{value}{}", plain("ul"))),
        Value::Long(value) => text.push_str(&format!("{value}l")),
        Value::Int(value) => text.push_str(&value.to_string()),
        Value::Timestamp(value) => text.push_str(&format!("{}t", value.milliseconds())),
        Value::String(value) => text.push_str(&format!("{value:?}")),
        Value::Symbol(value) => text.push_str(&format!(":{}", value.as_str())),
        Value::Binary(value) => text.push_str(&write_binary(value)),
        Value::List(list) => write_all(text, list, "["),
        Value::Array(array) => write_all(text, array, "array["),
        Value::Map(map) => {
            text.push('{');
            for (at, (key, value)) in map.iter().enumerate() {
                if at > 0 {
                    text.push(' ');
                }
                write(text, key, "*");
                text.push('=');
                write(text, value, "*");
            }
            text.push('}');
        }
        Value::Described(described) => match &described.descriptor {
            Descriptor::Code(code) if TYPES.iter().any(|(_, known, _)| known == code) => {
                write_fields(text, value, "(", ")");
            }
            Descriptor::Code(code) => {
                text.push_str(&format!("@{code:#x} "));
                write(text, &described.value, "*");
            }
            Descriptor::Name(name) => panic!("the descriptor {name:?} is a symbol"),
        },
        other => text.push_str(&format!("{other:?}")),
    }
}

fn write_all(text: &mut String, values: &[Value], open: &str) {
    text.push_str(open);
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        write(text, value, "*");
    }
    text.push(']');
}

fn is_plain(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|&byte| byte == b' ' || byte.is_ascii_graphic())
}

fn write_binary(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(string) if is_plain(bytes) => format!("b{string:?}"),
        _ => format!("x\"{}\"", to_hex(bytes)),
    }
}

/// Writes a payload, runs of the same byte as one.
pub fn write_payload(bytes: &[u8]) -> String {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        let run = rest.iter().take_while(|&&byte| byte == first).count();
        let length = if run >= 16 {
            run
        } else {
            // Up to the next long run.
            let next = rest
                .windows(16)
                .position(|w| w.iter().all(|&byte| byte == w[0]));
            next.unwrap_or(rest.len())
        };
        let (piece, after) = rest.split_at(length);
        let one = write_binary(if run >= 16 { &piece[..1] } else { piece });
        let one = one.strip_prefix('b').unwrap_or(&one);
        pieces.push(if run >= 16 {
            format!("{run}*{one}")
        } else {
            one.to_owned()
        });
        rest = after;
    }
    if pieces.is_empty() {
        "\"\"".to_owned()
    } else {
        pieces.join("+")
    }
}

/// Reads a payload as [`write_payload`] writes it.
pub fn read_payload(text: &str) -> Vec<u8> {
    Reader { text }.payload()
}

/// Writes bytes in hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads bytes in hexadecimal; blanks are passed over.
pub fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    digits
        .chunks(2)
        .map(|pair| byte(pair).expect("two digits"))
        .collect()
}
