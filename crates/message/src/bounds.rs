//! What a message may have beside its body when it comes in (`entities.md#quotas`).
//!
//! Messages that are there already are not looked at: earlier releases took them.

use super::Message;
use crate::limits;
use jitney_amqp::codec::value::{entries, is_called, is_text, text};

/// What a message has beside its body and may not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PropertiesRefused {
    /// The name of a property is no string [3.2.5].
    #[error("the name of an application-property is no string")]
    Name,
    /// An annotation that only the broker sets, or that is a time, is null.
    #[error("the annotation {0} is null: leave it out")]
    NullAnnotation(&'static str),
    /// A property is too large.
    #[error(
        "the application-property '{name}' has {bytes} bytes, and {max} bytes are the most",
        max = limits::PROPERTY_BYTES_MAX
    )]
    Property {
        /// Its name, or the begin of it.
        name: String,
        /// Its bytes as it is encoded.
        bytes: usize,
    },
    /// All properties together are too large.
    #[error(
        "the properties, the application-properties and the annotations have {0} bytes together, and \
         {max} bytes are the most",
        max = limits::PROPERTIES_BYTES_MAX
    )]
    Properties(usize),
}

/// Annotations that the service refuses if they are null.
const NOT_NULL: [&str; 3] = [
    "x-opt-scheduled-enqueue-time",
    "x-opt-message-state",
    "x-opt-enqueue-sequence-number",
];

/// Characters of a property's name in a text.
const NAME_SHOWN: usize = 64;

impl Message {
    /// Checks what it has beside its body.
    ///
    /// # Errors
    ///
    /// The first thing that it may not have.
    pub fn check_properties(&self) -> Result<(), PropertiesRefused> {
        let of = |place: super::parse::Span| place.of(self.bytes());
        let annotations = of(self.sections.message_annotations).unwrap_or_default();
        let own = of(self.sections.application_properties).unwrap_or_default();
        let fields = of(self.sections.properties).unwrap_or_default();
        let all = annotations.len() + fields.len() + own.len();
        if limits::PROPERTIES_BYTES_MAX < all {
            return Err(PropertiesRefused::Properties(all));
        }
        for (key, value) in entries(annotations) {
            if value == [NULL] {
                let refused = NOT_NULL.into_iter().find(|name| is_called(key, name));
                if let Some(name) = refused {
                    return Err(PropertiesRefused::NullAnnotation(name));
                }
            }
        }
        for (key, value) in entries(own) {
            if !is_text(key) {
                return Err(PropertiesRefused::Name);
            }
            if limits::PROPERTY_BYTES_MAX < value.len() {
                let name = text(key).unwrap_or_default();
                let name = name.chars().take(NAME_SHOWN).collect();
                let bytes = value.len();
                return Err(PropertiesRefused::Property { name, bytes });
            }
        }
        Ok(())
    }
}

/// The constructor of null, and all of it.
const NULL: u8 = 0x40;

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with one section that is a map of one entry.
    fn with(section: u8, key: &[u8], value: &[u8]) -> Message {
        let size = u32::try_from(4 + key.len() + value.len()).unwrap();
        let mut bytes = vec![0x00, 0x53, section, 0xd1];
        bytes.extend_from_slice(&size.to_be_bytes());
        bytes.extend_from_slice(&2_u32.to_be_bytes());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(super::super::EMPTY);
        Message::parse(bytes.into()).unwrap()
    }

    /// A string of so many characters.
    fn string(length: usize) -> Vec<u8> {
        let mut value = vec![0xb1];
        value.extend_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
        value.resize(5 + length, b'x');
        value
    }

    #[test]
    fn a_property_has_32_kib_at_most() {
        let key = b"\xa1\x01k";
        let fits = limits::PROPERTY_BYTES_MAX - 5;
        assert_eq!(with(0x74, key, &string(fits)).check_properties(), Ok(()));
        let refused = PropertiesRefused::Property {
            name: "k".to_owned(),
            bytes: limits::PROPERTY_BYTES_MAX + 1,
        };
        let found = with(0x74, key, &string(fits + 1)).check_properties();
        assert_eq!(found, Err(refused));
    }

    #[test]
    fn all_properties_have_64_kib_at_most() {
        let found = with(0x72, b"\xa3\x01k", &string(70_000)).check_properties();
        assert!(
            matches!(found, Err(PropertiesRefused::Properties(_))),
            "{found:?}"
        );
        let found = with(0x72, b"\xa3\x01k", &string(40_000)).check_properties();
        assert_eq!(found, Ok(()), "one annotation has no bound of its own");
    }

    #[test]
    fn names_of_properties_are_strings() {
        let found = with(0x74, &[0x54, 1], &[0x41]).check_properties();
        assert_eq!(found, Err(PropertiesRefused::Name));
    }

    #[test]
    fn three_annotations_are_not_null() {
        for name in NOT_NULL {
            let mut key = vec![0xa3, u8::try_from(name.len()).unwrap()];
            key.extend_from_slice(name.as_bytes());
            let found = with(0x72, &key, &[NULL]).check_properties();
            assert_eq!(found, Err(PropertiesRefused::NullAnnotation(name)));
        }
        let other = b"\xa3\x17x-opt-deadletter-source";
        assert_eq!(with(0x72, other, &[NULL]).check_properties(), Ok(()));
    }
}
