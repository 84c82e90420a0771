//! Reading a request's map, in whatever types a client chose: any integer where a number is
//! meant, a list where an array is, symbols for strings (`protocol.md` §7.5).

use std::borrow::Cow;

use fe2o3_amqp_types::primitives::OrderedMap;
use serde_amqp::Value;

use crate::entity::{LockToken, SequenceNumber};
use crate::limits;
use crate::time::Timestamp;

/// The map in a request's body. What is wrong with an entry is told as a sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map<'a>(&'a OrderedMap<Value, Value>);

impl<'a> Map<'a> {
    pub(super) fn new(map: &'a OrderedMap<Value, Value>) -> Self {
        Self(map)
    }

    /// Returns an entry; null counts as none.
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        let mut entries = self.0.iter();
        let (_, value) = entries.find(|(key, _)| text(key).is_some_and(|key| key == name))?;
        (*value != Value::Null).then_some(value)
    }

    pub(super) fn integer(self, name: &str) -> Result<i64, String> {
        let value = self.require(name)?;
        integer(value).ok_or_else(|| wrong(name, "an integer", value))
    }

    pub(super) fn string(self, name: &str) -> Result<Cow<'a, str>, String> {
        let value = self.require(name)?;
        text(value).ok_or_else(|| wrong(name, "a string", value))
    }

    pub(super) fn optional_string(self, name: &str) -> Result<Option<Cow<'a, str>>, String> {
        self.get(name)
            .map(|value| text(value).ok_or_else(|| wrong(name, "a string", value)))
            .transpose()
    }

    pub(super) fn timestamp(self, name: &str) -> Result<Timestamp, String> {
        match self.require(name)? {
            Value::Timestamp(at) => Ok(Timestamp::from_millis(at.milliseconds())),
            other => Err(wrong(name, "a timestamp", other)),
        }
    }

    pub(super) fn optional_map(
        self,
        name: &str,
    ) -> Result<Option<&'a OrderedMap<Value, Value>>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Map(map)) => Ok(Some(map)),
            Some(other) => Err(wrong(name, "a map", other)),
        }
    }

    /// Returns the elements of a list or an array; one element may stand alone.
    pub(super) fn items(self, name: &str) -> Result<&'a [Value], String> {
        let items = match self.require(name)? {
            Value::List(items) => items.as_slice(),
            Value::Array(items) => items.0.as_slice(),
            other => return Err(wrong(name, "an array", other)),
        };
        if items.is_empty() {
            return Err(format!("'{name}' is empty"));
        }
        if limits::REQUEST_ITEMS_MAX < items.len() {
            let (count, max) = (items.len(), limits::REQUEST_ITEMS_MAX);
            return Err(format!(
                "'{name}' has {count} elements, and {max} are the most"
            ));
        }
        Ok(items)
    }

    pub(super) fn sequence_numbers(self, name: &str) -> Result<Vec<SequenceNumber>, String> {
        let number = |value| {
            integer(value)
                .map(|number| SequenceNumber(number.cast_unsigned()))
                .ok_or_else(|| wrong(name, "an array of longs", value))
        };
        self.items(name)?.iter().map(number).collect()
    }

    pub(super) fn lock_tokens(self, name: &str) -> Result<Vec<LockToken>, String> {
        let token = |value: &Value| match value {
            Value::Uuid(uuid) => Ok(LockToken::from_uuid(*uuid.as_inner())),
            other => Err(wrong(name, "an array of uuids", other)),
        };
        self.items(name)?.iter().map(token).collect()
    }

    pub(super) fn require(self, name: &str) -> Result<&'a Value, String> {
        self.get(name).ok_or_else(|| format!("'{name}' is missing"))
    }
}

pub(super) fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Symbol(symbol) => Some(Cow::Borrowed(symbol.as_str())),
        Value::Binary(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        _ => None,
    }
}

fn integer(value: &Value) -> Option<i64> {
    match *value {
        Value::Ubyte(n) => Some(n.into()),
        Value::Ushort(n) => Some(n.into()),
        Value::Uint(n) => Some(n.into()),
        Value::Ulong(n) => Some(n.cast_signed()),
        Value::Byte(n) => Some(n.into()),
        Value::Short(n) => Some(n.into()),
        Value::Int(n) => Some(n.into()),
        Value::Long(n) => Some(n),
        _ => None,
    }
}

pub(super) fn wrong(name: &str, expected: &str, found: &Value) -> String {
    let found = match found {
        Value::Described(_) => "a described value",
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::String(_) => "a string",
        Value::Symbol(_) => "a symbol",
        Value::Binary(_) => "a binary",
        Value::Uuid(_) => "a uuid",
        Value::Timestamp(_) => "a timestamp",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
        Value::Array(_) => "an array",
        _ => "a number",
    };
    format!("'{name}' must be {expected}, and {found} was found")
}
