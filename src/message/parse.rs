//! Finding a message's sections, in one pass.

use std::ops::Range;

use bytes::Bytes;

use super::Malformed;
use super::value::{count, elements, entries, extent, section, text, timestamp, uint};
use crate::shape::{Misshapen, value_length};
use crate::time::{Millis, Timestamp};

/// A parsed message: its bytes, and where its sections are.
#[derive(Debug, Clone)]
pub struct Message {
    bytes: Bytes,
    pub(super) sections: Sections,
}

/// Where the values of sections are, behind their descriptors; those of the body with them.
#[derive(Debug, Clone, Default)]
pub(super) struct Sections {
    pub(super) header: Option<Range<usize>>,
    pub(super) delivery_annotations: Option<Range<usize>>,
    pub(super) message_annotations: Option<Range<usize>>,
    pub(super) properties: Option<Range<usize>>,
    pub(super) application_properties: Option<Range<usize>>,
    pub(super) body: Option<Range<usize>>,
    /// A descriptor in the body is not written `00 53 xx`, as Python takes for granted.
    pub(super) body_is_wordy: bool,
    pub(super) footer: Option<Range<usize>>,
}

/// The bytes of a descriptor as we write it: `00 53 xx`.
const DESCRIPTOR_SIZE: usize = 3;

impl Sections {
    /// Finds the sections, in whatever order: Python puts the delivery-annotations last
    /// (`protocol.md` §4.5).
    ///
    /// `length` measures the value of a section, and checks it if it is a sender's.
    pub(super) fn find(
        bytes: &[u8],
        length: impl Fn(u64, &[u8]) -> Result<usize, Misshapen>,
    ) -> Result<Self, Malformed> {
        let mut found = Self::default();
        let mut body_code = None;
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (code, value) = section(rest)?;
            let start = at + rest.len() - value.len();
            let length = length(code, value).map_err(|error| Malformed(error.to_string()))?;
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
                    found.body_is_wordy |= start - at != DESCRIPTOR_SIZE;
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
            *slot = Some(start..end);
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

/// What a field of a list section must be, if it is not null. A string may be a symbol and the
/// other way round: generic clients send one for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Binary,
    Boolean,
    /// A message-id: ulong, uuid, binary or string.
    Id,
    Text,
    Timestamp,
    Ubyte,
    Uint,
}

/// The fields of the header [3.2.1].
const HEADER: [Field; 5] = [
    Field::Boolean,
    Field::Ubyte,
    Field::Uint,
    Field::Boolean,
    Field::Uint,
];

/// The fields of the properties [3.2.4].
const PROPERTIES: [Field; 13] = [
    Field::Id,
    Field::Binary,
    Field::Text,
    Field::Text,
    Field::Text,
    Field::Id,
    Field::Text,
    Field::Text,
    Field::Timestamp,
    Field::Timestamp,
    Field::Text,
    Field::Uint,
    Field::Text,
];

impl Field {
    fn takes(self, value: &[u8]) -> bool {
        let constructor = value.first().copied().unwrap_or_default();
        let binary = matches!(constructor, 0xa0 | 0xb0);
        match self {
            Self::Binary => binary,
            Self::Boolean => matches!(constructor, 0x41 | 0x42 | 0x56),
            Self::Id => {
                let number = matches!(constructor, 0x44 | 0x53 | 0x80 | 0x98);
                number || binary || text(value).is_some()
            }
            Self::Text => text(value).is_some(),
            Self::Timestamp => constructor == 0x83,
            Self::Ubyte => constructor == 0x50,
            Self::Uint => matches!(constructor, 0x43 | 0x52 | 0x70),
        }
    }
}

/// Checks the fields of a list section. A wrong one would break every receiver of the message in
/// turn (Python calls a constructor with all that is there), and never its sender.
fn check_fields(list: &[u8], fields: &[Field]) -> Result<(), Malformed> {
    let told = count(list);
    if fields.len() < told {
        return Err(Malformed(format!("a section has {told} fields")));
    }
    let mut values = elements(list);
    for (place, field) in fields.iter().take(told).enumerate() {
        let value = values.next();
        let value = value.ok_or_else(|| Malformed("the bytes end within a field".to_owned()))?;
        if value != [0x40] && !field.takes(value) {
            return Err(Malformed(format!(
                "the field {place} of a section is no {field:?}"
            )));
        }
    }
    if values.end() {
        Ok(())
    } else {
        Err(Malformed("a section is longer than its fields".to_owned()))
    }
}

impl Message {
    /// Finds a message's sections, having checked that all of it has the shape of AMQP values.
    ///
    /// # Errors
    ///
    /// [`Malformed`] says what is wrong, as a clause for a sentence.
    pub fn parse(bytes: Bytes) -> Result<Self, Malformed> {
        let sections = Sections::find(&bytes, |code, value| match code {
            // Their fields are checked one by one below, and none holds other values.
            0x70 | 0x73 => extent(value).ok_or(Misshapen::Truncated),
            _ => value_length(value),
        })?;
        let at = |place: &Option<Range<usize>>| bytes.get(place.clone()?);
        check_fields(at(&sections.header).unwrap_or_default(), &HEADER)?;
        check_fields(at(&sections.properties).unwrap_or_default(), &PROPERTIES)?;
        Ok(Self { bytes, sections })
    }

    /// Returns the message as its sender encoded it.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the time to live that the sender gave it; 0 counts as none.
    ///
    /// A header holds 49 days at most. For more, clients send its greatest value, and the truth as
    /// creation-time and absolute-expiry-time.
    #[must_use]
    pub fn time_to_live(&self) -> Option<Millis> {
        let millis = self
            .list_field(self.sections.header.as_ref(), 2)
            .and_then(uint)?;
        if millis == u32::MAX
            && let (Some(creation), Some(expiry)) = (self.time(9), self.time(8))
            && creation < expiry
        {
            return Some(expiry.since(creation));
        }
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

    /// Returns a field of the properties.
    pub(super) fn property(&self, index: usize) -> Option<&[u8]> {
        self.list_field(self.sections.properties.as_ref(), index)
    }

    /// Returns a timestamp of the properties.
    fn time(&self, index: usize) -> Option<Timestamp> {
        let millis = self
            .list_field(self.sections.properties.as_ref(), index)
            .and_then(timestamp)?;
        Some(Timestamp::from_millis(millis))
    }

    pub(super) fn annotation(&self, name: &str) -> Option<&[u8]> {
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
