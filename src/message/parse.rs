//! Finding a message's sections, in one pass.

use std::ops::Range;

use bytes::Bytes;

use super::Malformed;
use super::value::{count, elements, entries, section, text, timestamp, uint};
use crate::shape::value_length;
use crate::time::{Millis, Timestamp};

/// A parsed message: its bytes, and where its sections are.
#[derive(Debug, Clone)]
pub struct Message {
    bytes: Bytes,
    sections: Sections,
}

/// Where the values of sections are, behind their descriptors; the body and the footer with them.
#[derive(Debug, Clone, Default)]
pub(super) struct Sections {
    pub(super) header: Option<Range<usize>>,
    pub(super) delivery_annotations: Option<Range<usize>>,
    pub(super) message_annotations: Option<Range<usize>>,
    pub(super) properties: Option<Range<usize>>,
    pub(super) application_properties: Option<Range<usize>>,
    pub(super) body: Option<Range<usize>>,
    pub(super) footer: Option<Range<usize>>,
}

impl Sections {
    /// Finds the sections, in whatever order: Python puts the delivery-annotations last
    /// (`protocol.md` §4.5).
    pub(super) fn find(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut found = Self::default();
        let mut body_code = None;
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (code, value) = section(rest)?;
            let length = value_length(value).map_err(|error| Malformed(error.to_string()))?;
            let start = at + rest.len() - value.len();
            let end = start + length;
            let (slot, kind) = match code {
                0x70 => (&mut found.header, Kind::List),
                0x71 => (&mut found.delivery_annotations, Kind::Map),
                0x72 => (&mut found.message_annotations, Kind::Map),
                0x73 => (&mut found.properties, Kind::List),
                0x74 => (&mut found.application_properties, Kind::Map),
                0x75..=0x77 => {
                    match code {
                        0x75 => Kind::Binary.check(value, code)?,
                        0x76 => Kind::List.check(value, code)?,
                        _ => {}
                    }
                    found.add_body(at..end, code, &mut body_code)?;
                    at = end;
                    continue;
                }
                0x78 => (&mut found.footer, Kind::Map),
                other => return Err(Malformed(format!("{other:#x} is no section of a message"))),
            };
            if slot.is_some() {
                return Err(Malformed(format!("the section {code:#x} stands twice")));
            }
            kind.check(value, code)?;
            *slot = Some(if code == 0x78 { at..end } else { start..end });
            at = end;
        }
        Ok(found)
    }

    /// Adds a body section: data and sequences may follow one another, a value stands alone.
    fn add_body(
        &mut self,
        place: Range<usize>,
        code: u64,
        before: &mut Option<u64>,
    ) -> Result<(), Malformed> {
        match (&mut self.body, *before) {
            (None, _) => self.body = Some(place),
            (Some(body), Some(same)) if same == code && code != 0x77 && body.end == place.start => {
                body.end = place.end;
            }
            (Some(_), _) => {
                return Err(Malformed(
                    "the body has sections that do not go together".to_owned(),
                ));
            }
        }
        *before = Some(code);
        Ok(())
    }
}

/// What a section's value must be: no receiver could read it otherwise.
enum Kind {
    Binary,
    List,
    Map,
}

impl Kind {
    fn check(self, value: &[u8], code: u64) -> Result<(), Malformed> {
        let constructor = value.first().copied().unwrap_or_default();
        let fits = match self {
            Self::Binary => matches!(constructor, 0xa0 | 0xb0),
            Self::List => matches!(constructor, 0x45 | 0xc0 | 0xd0),
            Self::Map => matches!(constructor, 0xc1 | 0xd1) && count(value).is_multiple_of(2),
        };
        if fits {
            Ok(())
        } else {
            Err(Malformed(format!("the section {code:#x} has another type")))
        }
    }
}

impl Message {
    /// Finds a message's sections, having checked that all of it has the shape of AMQP values.
    ///
    /// # Errors
    ///
    /// [`Malformed`] says what is wrong, as a clause for a sentence.
    pub fn parse(bytes: Bytes) -> Result<Self, Malformed> {
        let sections = Sections::find(&bytes)?;
        Ok(Self { bytes, sections })
    }

    /// Returns the message as its sender encoded it.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the time to live that the sender gave it; 0 counts as none.
    #[must_use]
    pub fn time_to_live(&self) -> Option<Millis> {
        let millis = self
            .list_field(self.sections.header.as_ref(), 2)
            .and_then(uint)?;
        (millis > 0).then(|| Millis::from_millis(i64::from(millis)))
    }

    /// Returns the annotation x-opt-scheduled-enqueue-time.
    #[must_use]
    pub fn scheduled_enqueue_time(&self) -> Option<Timestamp> {
        let millis = self
            .annotation("x-opt-scheduled-enqueue-time")
            .and_then(timestamp)?;
        Some(Timestamp::from_millis(millis))
    }

    /// Returns the length of the message-id in characters, if it is a string.
    #[must_use]
    pub fn message_id_length(&self) -> usize {
        characters(self.list_field(self.sections.properties.as_ref(), 0))
    }

    /// Returns the length of the group-id, which is the Service Bus session's id, in characters.
    #[must_use]
    pub fn group_id_length(&self) -> usize {
        characters(self.list_field(self.sections.properties.as_ref(), 10))
    }

    /// Returns the length of the annotation x-opt-partition-key in characters.
    #[must_use]
    pub fn partition_key_length(&self) -> usize {
        characters(self.annotation("x-opt-partition-key"))
    }

    fn annotation(&self, name: &str) -> Option<&[u8]> {
        let map = self.bytes.get(self.sections.message_annotations.clone()?)?;
        entries(map)
            .find(|(key, _)| text(key) == Some(name))
            .map(|(_, value)| value)
    }

    fn list_field(&self, section: Option<&Range<usize>>, index: usize) -> Option<&[u8]> {
        elements(self.bytes.get(section?.clone())?).nth(index)
    }
}

fn characters(value: Option<&[u8]>) -> usize {
    value.and_then(text).map_or(0, |text| text.chars().count())
}
