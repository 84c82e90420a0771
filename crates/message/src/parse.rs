//! Finding a message's sections, in one pass.

use bytes::Bytes;

use super::Malformed;
use jitney_amqp::codec::value::{
    count, elements, entries, extent, is_called, is_compound, is_text, long, text, text_bytes,
    timestamp, uint,
};
use jitney_amqp::codec::{Misshapen, descriptor, value_length};
use jitney_base::time::{Millis, Timestamp};

/// A parsed message: its bytes, and where its sections are.
#[derive(Debug, Clone)]
pub struct Message {
    bytes: Bytes,
    pub(super) sections: Sections,
    message_id: Span,
    group_id: Span,
    /// The header's ttl, milliseconds; 0 is none.
    time_to_live: u32,
    /// The message-format that it came with.
    format: u32,
}

/// Where something is in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    start: u32,
    /// No value is empty: an empty range means an absent value.
    end: u32,
}

impl Span {
    /// Makes a range in a message, no part of which lies beyond 4 GiB.
    fn new(start: usize, end: usize) -> Self {
        let narrow = |at| u32::try_from(at).unwrap_or(u32::MAX);
        let (start, end) = (narrow(start), narrow(end));
        Self { start, end }
    }

    /// Returns the bytes there; none if nothing is there.
    pub(super) fn of(self, bytes: &[u8]) -> Option<&[u8]> {
        if self == Self::default() {
            return None;
        }
        bytes.get(self.start()..self.end())
    }

    fn start(self) -> usize {
        usize::try_from(self.start).unwrap_or(usize::MAX)
    }

    fn end(self) -> usize {
        usize::try_from(self.end).unwrap_or(usize::MAX)
    }
}

/// The ranges of the values of sections, after their descriptors; those of the body include them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sections {
    pub(super) header: Span,
    pub(super) delivery_annotations: Span,
    pub(super) message_annotations: Span,
    pub(super) properties: Span,
    pub(super) application_properties: Span,
    pub(super) body: Span,
    pub(super) footer: Span,
    /// A descriptor in the body is not written `00 53 xx`, as Python takes for granted.
    pub(super) has_long_descriptors: bool,
}

/// The bytes of a descriptor as we write it: `00 53 xx`.
const DESCRIPTOR_SIZE: usize = 3;

/// Reads the descriptor of a section; returns its code and the bytes after it.
#[inline]
pub(super) fn section(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    descriptor::read(bytes).map_err(|error| Malformed(error.to_string()))
}

impl Sections {
    /// Finds the sections, in whatever order: Python puts the delivery-annotations last
    /// (`messaging.md#sections`).
    ///
    /// `length` measures the value of a section, and checks it if it is a sender's.
    #[inline]
    pub(super) fn find(
        bytes: &[u8],
        length: impl Fn(u64, &[u8]) -> Result<usize, Malformed>,
    ) -> Result<Self, Malformed> {
        let mut found = Self::default();
        let mut body_code = None;
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (code, value) = section(rest)?;
            let start = at + rest.len() - value.len();
            let next = start + length(code, value)?;
            let is_long = start - at != DESCRIPTOR_SIZE;
            let slot = match code {
                descriptor::HEADER => &mut found.header,
                descriptor::DELIVERY_ANNOTATIONS => &mut found.delivery_annotations,
                descriptor::MESSAGE_ANNOTATIONS => &mut found.message_annotations,
                descriptor::PROPERTIES => &mut found.properties,
                descriptor::APPLICATION_PROPERTIES => &mut found.application_properties,
                descriptor::DATA..=descriptor::AMQP_VALUE => {
                    found.add_body(Span::new(at, next), code, &mut body_code)?;
                    found.has_long_descriptors |= is_long;
                    at = next;
                    continue;
                }
                descriptor::FOOTER => &mut found.footer,
                other => return Err(Malformed(format!("{other:#x} is no section of a message"))),
            };
            if *slot != Span::default() {
                return Err(Malformed(format!("the section {code:#x} is repeated")));
            }
            *slot = Span::new(start, next);
            at = next;
        }
        Ok(found)
    }

    /// Adds a body section: data and sequences may be repeated, a value may not.
    fn add_body(
        &mut self,
        place: Span,
        code: u64,
        before: &mut Option<u64>,
    ) -> Result<(), Malformed> {
        match *before {
            None => self.body = place,
            Some(same)
                if same == code
                    && code != descriptor::AMQP_VALUE
                    && self.body.end == place.start =>
            {
                self.body.end = place.end;
            }
            Some(_) => {
                return Err(Malformed(
                    "the body has sections that do not go together".to_owned(),
                ));
            }
        }
        *before = Some(code);
        Ok(())
    }
}

/// Measures a section's value, having checked its shape, and that it is of the type that a section
/// of its kind has: no receiver could read it otherwise.
fn measure(code: u64, value: &[u8]) -> Result<usize, Malformed> {
    let length = match code {
        // Their fields are checked one by one later, and none holds other values.
        descriptor::HEADER | descriptor::PROPERTIES => extent(value).ok_or(Misshapen::Truncated),
        _ => value_length(value),
    };
    let length = length.map_err(|error| Malformed(error.to_string()))?;
    let constructor = value.first().copied().unwrap_or_default();
    let fits = match code {
        descriptor::HEADER | descriptor::PROPERTIES | descriptor::AMQP_SEQUENCE => {
            matches!(constructor, 0x45 | 0xc0 | 0xd0)
        }
        descriptor::DELIVERY_ANNOTATIONS
        | descriptor::MESSAGE_ANNOTATIONS
        | descriptor::APPLICATION_PROPERTIES
        | descriptor::FOOTER => {
            matches!(constructor, 0xc1 | 0xd1) && count(value).is_multiple_of(2)
        }
        descriptor::DATA => matches!(constructor, 0xa0 | 0xb0),
        _ => true,
    };
    if !fits {
        return Err(Malformed(format!("the section {code:#x} has another type")));
    }
    if code == descriptor::APPLICATION_PROPERTIES
        && entries(value).any(|(_, value)| is_compound(value))
    {
        let text = "an application-property is a list, a map or an array, and not a simple value";
        return Err(Malformed(text.to_owned()));
    }
    Ok(length)
}

/// The type that a field of a list section must have, if it is not null. A string may be a symbol
/// and the other way round: generic clients send one for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldType {
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
const HEADER: [FieldType; 5] = [
    FieldType::Boolean,
    FieldType::Ubyte,
    FieldType::Uint,
    FieldType::Boolean,
    FieldType::Uint,
];

/// The place of ttl in it.
const TIME_TO_LIVE: usize = 2;

/// The fields of the properties [3.2.4].
const PROPERTIES: [FieldType; 13] = [
    FieldType::Id,
    FieldType::Binary,
    FieldType::Text,
    FieldType::Text,
    FieldType::Text,
    FieldType::Id,
    FieldType::Text,
    FieldType::Text,
    FieldType::Timestamp,
    FieldType::Timestamp,
    FieldType::Text,
    FieldType::Uint,
    FieldType::Text,
];

/// The ranges of the fields that every entity needs.
const MESSAGE_ID: usize = 0;
const GROUP_ID: usize = 10;

impl FieldType {
    fn takes(self, constructor: u8, value: &[u8]) -> bool {
        let binary = matches!(constructor, 0xa0 | 0xb0);
        match self {
            Self::Binary => binary,
            Self::Boolean => matches!(constructor, 0x41 | 0x42 | 0x56),
            Self::Id => {
                let number = matches!(constructor, 0x44 | 0x53 | 0x80 | 0x98);
                number || binary || is_text(value)
            }
            Self::Text => is_text(value),
            Self::Timestamp => constructor == 0x83,
            Self::Ubyte => constructor == 0x50,
            Self::Uint => matches!(constructor, 0x43 | 0x52 | 0x70),
        }
    }
}

/// Checks the fields of a list section. A wrong one would break every receiver of the message in
/// turn (Python calls a constructor with all that is there), and never its sender.
///
/// Reports each field that is not null, by its index and where it begins in the list.
fn check_fields(
    list: &[u8],
    fields: &[FieldType],
    mut report: impl FnMut(usize, usize, &[u8]),
) -> Result<(), Malformed> {
    let values = elements(list);
    let (claimed, mut rest) = (values.left(), values.rest());
    if fields.len() < claimed {
        return Err(Malformed(format!("a section has {claimed} fields")));
    }
    let cut = || Malformed("the bytes end within a field".to_owned());
    for (index, field) in (0..claimed).zip(fields) {
        let (&constructor, after) = rest.split_first().ok_or_else(cut)?;
        if constructor == NULL {
            rest = after;
            continue;
        }
        let at = list.len() - rest.len();
        let length = extent(rest).ok_or_else(cut)?;
        let (value, after) = rest.split_at_checked(length).ok_or_else(cut)?;
        rest = after;
        if !field.takes(constructor, value) {
            return Err(Malformed(format!(
                "the field {index} of a section is no {field:?}"
            )));
        }
        report(index, at, value);
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Malformed("a section is longer than its fields".to_owned()))
    }
}

/// The constructor of null, and all of it.
const NULL: u8 = 0x40;

impl Message {
    /// Finds a message's sections, having checked that all of it has the shape of AMQP values.
    ///
    /// # Errors
    ///
    /// [`Malformed`] names the fault, as a clause for a sentence.
    pub fn parse(bytes: Bytes) -> Result<Self, Malformed> {
        let sections = Sections::find(&bytes, measure)?;
        let mut time_to_live = 0;
        if let Some(header) = sections.header.of(&bytes) {
            check_fields(header, &HEADER, |index, _, value| {
                if index == TIME_TO_LIVE {
                    time_to_live = uint(value).unwrap_or(0);
                }
            })?;
        }
        let (mut message_id, mut group_id) = (Span::default(), Span::default());
        if let Some(properties) = sections.properties.of(&bytes) {
            let start = sections.properties.start();
            check_fields(properties, &PROPERTIES, |index, at, value| {
                let place = Span::new(start + at, start + at + value.len());
                match index {
                    MESSAGE_ID => message_id = place,
                    GROUP_ID => group_id = place,
                    _ => {}
                }
            })?;
        }
        Ok(Self {
            bytes,
            sections,
            message_id,
            group_id,
            time_to_live,
            format: 0,
        })
    }

    /// Says which message-format it came with.
    #[must_use]
    pub fn with_format(self, format: u32) -> Self {
        Self { format, ..self }
    }

    /// Returns the message-format that it came with; 0 is AMQP's own.
    #[must_use]
    pub fn format(&self) -> u32 {
        self.format
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
        let millis = self.time_to_live;
        if millis == u32::MAX
            && let (Some(creation), Some(expiry)) = (self.time(9), self.time(8))
            && creation < expiry
        {
            return Some(expiry.since(creation));
        }
        (millis > 0).then(|| Millis::from_millis(i64::from(millis)))
    }

    /// Returns when it is to become active: the annotation x-opt-scheduled-enqueue-time, or else
    /// x-opt-delivery-time, which is how clients of JMS say it.
    #[must_use]
    pub fn scheduled_enqueue_time(&self) -> Option<Timestamp> {
        let map = self.sections.message_annotations.of(&self.bytes)?;
        let mut delivery = None;
        for (key, value) in entries(map) {
            if is_called(key, "x-opt-scheduled-enqueue-time") {
                return timestamp(value).map(Timestamp::from_millis);
            }
            if is_called(key, "x-opt-delivery-time") {
                delivery = timestamp(value).or_else(|| long(value));
            }
        }
        delivery.map(Timestamp::from_millis)
    }

    /// Returns the length of the message-id in characters, if it is a string.
    #[must_use]
    pub fn message_id_length(&self) -> usize {
        self.message_id().map_or(0, characters)
    }

    /// Returns the message-id as it is encoded; `None` if it is null.
    pub(super) fn message_id(&self) -> Option<&[u8]> {
        self.message_id.of(&self.bytes)
    }

    /// Returns the group-id as it is encoded; `None` if it is null.
    pub(super) fn encoded_group_id(&self) -> Option<&[u8]> {
        self.group_id.of(&self.bytes)
    }

    /// Returns a timestamp of the properties.
    fn time(&self, index: usize) -> Option<Timestamp> {
        let properties = self.sections.properties.of(&self.bytes)?;
        let millis = elements(properties).nth(index).and_then(timestamp)?;
        Some(Timestamp::from_millis(millis))
    }

    #[inline]
    pub(super) fn annotation(&self, name: &str) -> Option<&[u8]> {
        let map = self.sections.message_annotations.of(&self.bytes)?;
        entries(map)
            .find(|(key, _)| is_called(key, name))
            .map(|(_, value)| value)
    }
}

/// Returns the length of a string in characters; 0 of anything else.
fn characters(value: &[u8]) -> usize {
    match text_bytes(value) {
        Some(text) if text.is_ascii() => text.len(),
        Some(_) => text(value).map_or(0, |text| text.chars().count()),
        None => 0,
    }
}
