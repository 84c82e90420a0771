//! Changes that the broker makes to a message's application-properties.

use std::collections::BTreeMap;

use bytes::Bytes;
use fe2o3_amqp_types::definitions::Fields;
use fe2o3_amqp_types::primitives::OrderedMap;
use serde_amqp::Value;

use super::Malformed;
use super::value::{text, write_text};
use crate::shape::value_length;

/// Changes to a message's application-properties: names, and values as encoded AMQP.
///
/// Kept in the log as, for each in the order of their names: the length of its name (u16, big-endian), its name in UTF-8, the
/// length of its value (u32, big-endian), its value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Amendments {
    /// Ordered by name, so that a peer's thousands of them cost no more than they weigh.
    set: BTreeMap<String, Bytes>,
}

impl Amendments {
    /// Takes the properties to modify of an outcome: symbols name them (`protocol.md` §6.1).
    #[must_use]
    pub fn from_fields(fields: &Fields) -> Self {
        let mut amendments = Self::default();
        for (name, value) in fields {
            amendments.set_value(name.as_str(), value);
        }
        amendments
    }

    /// Takes the properties to modify of a management request: strings or symbols name them.
    #[must_use]
    pub fn from_map(map: &OrderedMap<Value, Value>) -> Self {
        let mut amendments = Self::default();
        for (name, value) in map {
            match name {
                Value::String(name) => amendments.set_value(name, value),
                Value::Symbol(name) => amendments.set_value(name.as_str(), value),
                _ => {}
            }
        }
        amendments
    }

    /// Returns the group-id, if that is changed.
    #[must_use]
    pub fn group_id(&self) -> Option<&str> {
        None
    }

    /// Sets a property to a string.
    pub fn set_string(&mut self, name: &str, value: &str) {
        let mut encoded = Vec::with_capacity(value.len() + 5);
        write_text(&mut encoded, 0xa1, value);
        self.set.insert(name.to_owned(), encoded.into());
    }

    /// Takes a property out if it is a string or a symbol; null is as good as none, and goes too.
    pub fn take_string(&mut self, name: &str) -> Option<String> {
        let value = self.set.get(name)?;
        let string = text(value).map(str::to_owned);
        if string.is_some() || value[..] == [0x40] {
            self.set.remove(name);
        }
        string
    }

    /// Adds later changes: where both name a property, the later one holds.
    pub fn merge(&mut self, later: Self) {
        self.set.extend(later.set);
    }

    /// Returns whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Returns whether a property is set.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.set.contains_key(name)
    }

    /// Returns names and encoded values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.set
            .iter()
            .map(|(name, value)| (name.as_str(), &value[..]))
    }

    /// Returns the form in which the log keeps them.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        for (name, value) in &self.set {
            out.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes());
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(value);
        }
        out.into()
    }

    /// Returns the bytes of [`Amendments::encode`]'s form.
    #[must_use]
    pub fn size(&self) -> usize {
        self.set
            .iter()
            .map(|(name, value)| 6 + name.len() + value.len())
            .sum()
    }

    /// Reads the form in which the log keeps them.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if [`Amendments::encode`] cannot have written it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let malformed = || Malformed("amendments that end too soon".to_owned());
        let mut set = BTreeMap::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (length, after) = rest.split_first_chunk::<2>().ok_or_else(malformed)?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (name, after) = after.split_at_checked(length).ok_or_else(malformed)?;
            let (length, after) = after.split_first_chunk::<4>().ok_or_else(malformed)?;
            let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| malformed())?;
            let (value, after) = after.split_at_checked(length).ok_or_else(malformed)?;
            if value_length(value) != Ok(value.len()) {
                return Err(Malformed("an amendment that is no value".to_owned()));
            }
            let name = std::str::from_utf8(name).map_err(|error| Malformed(error.to_string()))?;
            set.insert(name.to_owned(), Bytes::copy_from_slice(value));
            rest = after;
        }
        Ok(Self { set })
    }

    fn set_value(&mut self, name: &str, value: &Value) {
        // A name that the log's form cannot hold is no property's.
        if u16::try_from(name.len()).is_ok()
            && let Ok(encoded) = serde_amqp::to_vec(value)
        {
            self.set.insert(name.to_owned(), encoded.into());
        }
    }
}
