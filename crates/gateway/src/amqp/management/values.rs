//! Reading a request's map, in whatever types a client chose: any integer where a number is
//! meant, a list where an array is, symbols for strings (`management.md#tolerated-types`).

use crate::limits;
use jitney_amqp::codec::{Encoded, Items};
use jitney_base::ids::{LockToken, SequenceNumber};
use jitney_base::time::Timestamp;

/// The map in a request's body. What is wrong with an entry is told as a sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map<'a>(Encoded<'a>);

impl<'a> Map<'a> {
    /// Takes a value that is a map.
    pub(super) fn new(map: Encoded<'a>) -> Option<Self> {
        map.is_map().then_some(Self(map))
    }

    /// Returns the value itself.
    pub(super) const fn encoded(self) -> Encoded<'a> {
        self.0
    }

    /// Returns an entry; null counts as none.
    pub(super) fn get(self, name: &str) -> Option<Encoded<'a>> {
        let mut entries = self.0.entries();
        let (_, value) = entries.find(|(key, _)| key.text() == Some(name))?;
        let value = Encoded::new(value);
        (!value.is_null()).then_some(value)
    }

    pub(super) fn integer(self, name: &str) -> Result<i64, String> {
        let value = self.require(name)?;
        value
            .integer()
            .ok_or_else(|| wrong(name, "an integer", value))
    }

    pub(super) fn string(self, name: &str) -> Result<&'a str, String> {
        let value = self.require(name)?;
        value.text().ok_or_else(|| wrong(name, "a string", value))
    }

    pub(super) fn optional_string(self, name: &str) -> Result<Option<&'a str>, String> {
        self.get(name)
            .map(|value| value.text().ok_or_else(|| wrong(name, "a string", value)))
            .transpose()
    }

    pub(super) fn optional_boolean(self, name: &str) -> Result<Option<bool>, String> {
        self.get(name)
            .map(|value| {
                value
                    .boolean()
                    .ok_or_else(|| wrong(name, "a boolean", value))
            })
            .transpose()
    }

    pub(super) fn timestamp(self, name: &str) -> Result<Timestamp, String> {
        let value = self.require(name)?;
        value
            .timestamp()
            .ok_or_else(|| wrong(name, "a timestamp", value))
    }

    pub(super) fn optional_map(self, name: &str) -> Result<Option<Self>, String> {
        self.get(name)
            .map(|value| Self::new(value).ok_or_else(|| wrong(name, "a map", value)))
            .transpose()
    }

    /// Returns the elements of a list or an array. One without elements asks for nothing, and is no mistake.
    pub(super) fn items(self, name: &str) -> Result<Items<'a>, String> {
        let value = self.require(name)?;
        let items = value.items();
        let items = items.ok_or_else(|| wrong(name, "an array", value))?;
        let (count, max) = (items.left(), limits::REQUEST_ITEMS_MAX);
        if max < count {
            return Err(format!(
                "'{name}' has {count} elements, and {max} are the most"
            ));
        }
        Ok(items)
    }

    pub(super) fn sequence_numbers(self, name: &str) -> Result<Vec<SequenceNumber>, String> {
        let number = |value: Encoded<'_>| {
            let number = value.integer();
            number
                .map(|number| SequenceNumber(number.cast_unsigned()))
                .ok_or_else(|| wrong(name, "an array of longs", value))
        };
        self.items(name)?.map(number).collect()
    }

    pub(super) fn lock_tokens(self, name: &str) -> Result<Vec<LockToken>, String> {
        let token = |value: Encoded<'_>| {
            let uuid = value.uuid();
            uuid.map(LockToken::from_uuid)
                .ok_or_else(|| wrong(name, "an array of uuids", value))
        };
        self.items(name)?.map(token).collect()
    }

    fn require(self, name: &str) -> Result<Encoded<'a>, String> {
        self.get(name).ok_or_else(|| format!("'{name}' is missing"))
    }
}

pub(super) fn wrong(name: &str, expected: &str, found: Encoded<'_>) -> String {
    let found = found.kind();
    format!("'{name}' must be {expected}, and {found} was found")
}
