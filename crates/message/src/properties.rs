//! Properties of a message that rules read, in place.

use super::parse::{Span, section};
use super::{Amendments, Malformed, Message};
use jitney_amqp::codec::descriptor;
use jitney_amqp::codec::value::{elements, entries, is_called, text};

/// A field of the properties section that rules compare, and may change. Service Bus's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// content-type.
    ContentType,
    /// correlation-id.
    CorrelationId,
    /// subject.
    Label,
    /// message-id.
    MessageId,
    /// reply-to.
    ReplyTo,
    /// reply-to-group-id.
    ReplyToSessionId,
    /// group-id.
    SessionId,
    /// to.
    To,
}

/// A section whose properties rules read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The sender's own properties.
    ApplicationProperties,
    /// Delivery annotations: for the broker.
    MessageAnnotations,
    /// The fields of [`Field`], and others.
    Properties,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ContentType,
        Self::CorrelationId,
        Self::Label,
        Self::MessageId,
        Self::ReplyTo,
        Self::ReplyToSessionId,
        Self::SessionId,
        Self::To,
    ];

    /// Returns its place in the section [3.2.4].
    pub(super) const fn index(self) -> usize {
        match self {
            Self::MessageId => 0,
            Self::To => 2,
            Self::Label => 3,
            Self::ReplyTo => 4,
            Self::CorrelationId => 5,
            Self::ContentType => 6,
            Self::SessionId => 10,
            Self::ReplyToSessionId => 12,
        }
    }

    /// Returns AMQP's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ContentType => "content-type",
            Self::CorrelationId => "correlation-id",
            Self::Label => "subject",
            Self::MessageId => "message-id",
            Self::ReplyTo => "reply-to",
            Self::ReplyToSessionId => "reply-to-group-id",
            Self::SessionId => "group-id",
            Self::To => "to",
        }
    }

    /// Returns the field that AMQP calls so.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }
}

impl Message {
    /// Returns the encoded value of a field of the properties; `None` if it is null.
    #[must_use]
    pub fn field(&self, field: Field) -> Option<&[u8]> {
        let fields = self.section(self.sections.properties);
        elements(fields)
            .nth(field.index())
            .filter(|value| *value != [0x40])
    }

    /// Returns names and encoded values of the application-properties.
    pub fn application_properties(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let map = self.section(self.sections.application_properties);
        entries(map).filter_map(|(key, value)| Some((text(key)?, value)))
    }

    /// Returns the encoded value that its body holds; no bytes if it has no body.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the body is no amqp-value.
    pub fn value(&self) -> Result<&[u8], Malformed> {
        match self.section(self.sections.body) {
            [] => Ok(&[]),
            body => match section(body)? {
                (descriptor::AMQP_VALUE, value) => Ok(value),
                _ => Err(Malformed("the body must be an amqp-value".to_owned())),
            },
        }
    }

    /// Returns the encoded value of a message annotation; `None` if it is null.
    #[must_use]
    pub fn message_annotation(&self, name: &str) -> Option<&[u8]> {
        let map = self.section(self.sections.message_annotations);
        let mut found = entries(map).filter(|(key, _)| is_called(key, name));
        found
            .next()
            .map(|(_, value)| value)
            .filter(|value| *value != [0x40])
    }

    /// Returns about how many steps it takes to look for a name in a section: one for each of its
    /// values, more for long names, which are checked to be text, and for described values, which are
    /// read to find their end.
    #[must_use]
    pub fn steps_to_search(&self, part: Part) -> u64 {
        let place = match part {
            Part::ApplicationProperties => self.sections.application_properties,
            Part::MessageAnnotations => self.sections.message_annotations,
            Part::Properties => self.sections.properties,
        };
        let steps = elements(self.section(place)).map(|value| match value {
            [0x00, ..] => 1 + value.len() / 8,
            [0xa3 | 0xb3 | 0xa1 | 0xb1, ..] => 1 + value.len() / 64,
            _ => 1,
        });
        u64::try_from(steps.sum::<usize>()).unwrap_or(u64::MAX)
    }

    fn section(&self, place: Span) -> &[u8] {
        place.of(self.bytes()).unwrap_or_default()
    }
}

impl Amendments {
    /// Returns the encoded value of a field of a message with these changes; `None` if it is null.
    #[must_use]
    pub fn field_of<'a>(&'a self, message: &'a Message, field: Field) -> Option<&'a [u8]> {
        let value = self.field(field).or_else(|| message.field(field));
        value.filter(|value| *value != [0x40])
    }

    /// Returns names and encoded values of the application-properties of a message with these
    /// changes.
    pub fn properties_of<'a>(
        &'a self,
        message: &'a Message,
    ) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let own = message.application_properties();
        let untouched = own.filter(|(key, _)| !self.contains(key));
        untouched.chain(self.iter())
    }

    /// Returns the name, as it is spelled there, and the encoded value of the first
    /// application-property of a message with these changes that has a name like this one
    /// ([`same_name`]).
    #[must_use]
    pub fn property_of<'a>(
        &'a self,
        message: &'a Message,
        name: &str,
    ) -> Option<(&'a str, &'a [u8])> {
        self.properties_of(message)
            .find(|(key, _)| same_name(key, name))
    }
}

/// Returns whether two names are one and the same to a rule: case is ignored.
#[must_use]
pub fn same_name(a: &str, b: &str) -> bool {
    let folded = |name| str::chars(name).flat_map(char::to_lowercase);
    // A name in a message may be long: only one that is the same is read to its end.
    a.eq_ignore_ascii_case(b) || !b.is_ascii() && folded(a).eq(folded(b)) && !a.is_ascii()
}
