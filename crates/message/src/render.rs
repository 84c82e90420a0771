//! Messages on their way out.

use super::parse::{Sections, section};
use super::{Amendments, Field, Malformed, MessageState, Stamps};
use jitney_amqp::codec::descriptor;
use jitney_amqp::codec::value::{elements, entries, extent, is_called, text};
use jitney_amqp::codec::write::{
    begin_list, begin_map, end_compound, write_binary, write_descriptor, write_null, write_string,
    write_symbol, write_timestamp, write_uint,
};
use jitney_base::time::{Millis, Timestamp};

const LOCK_TOKEN: &str = "x-opt-lock-token";

/// Annotations that are the broker's to give: a sender that hands a received message on may have
/// them in it, and they are left out.
const OURS: [&str; 8] = [
    "x-opt-sequence-number",
    "x-opt-enqueue-sequence-number",
    "x-opt-enqueued-time",
    "x-opt-locked-until",
    LOCK_TOKEN,
    "x-opt-message-state",
    "x-opt-deadletter-source",
    "x-opt-partition-id",
];

/// It is one of them where the broker gives it: the sender's is null then, if there is one.
const PARTITION_KEY: &str = "x-opt-partition-key";

/// Appends a message as it is delivered: the sender's bytes, with the broker's stamps
/// (`messaging.md#stamps`).
///
/// `message` was parsed when it was taken in; of bytes that are no message, all is appended.
pub fn render(out: &mut Vec<u8>, message: &[u8], stamps: &Stamps) {
    let rest = render_front(out, message, stamps);
    out.extend_from_slice(rest);
}

/// Appends a message as it is to be sent again: with the changes in its stamps and another body, in one data section, and
/// with the message-id that receivers know it by. Else it is as its sender made it: stamps of the queue that it is in, as
/// a key or the end of its life, would be taken for the sender's. A footer is left out: it may sign the body.
pub fn render_with_body(out: &mut Vec<u8>, message: &[u8], stamps: &Stamps, body: &[u8]) {
    let trusted = |_, value: &[u8]| extent(value).ok_or_else(cut);
    let Ok(sections) = Sections::find(message, trusted) else {
        return;
    };
    let amended = stamps.amendments.as_deref();
    if let Some(own) = sections.header.of(message) {
        write_descriptor(out, descriptor::HEADER);
        out.extend_from_slice(own);
    }
    if let Some(own) = sections.delivery_annotations.of(message) {
        write_descriptor(out, descriptor::DELIVERY_ANNOTATIONS);
        let map = begin_map(out);
        let count = others(out, own, |key| is_called(key, LOCK_TOKEN));
        end_compound(out, map, count);
    }
    let own = sections.message_annotations.of(message);
    let mut settings = amended.into_iter().flat_map(Amendments::annotations);
    if own.is_some() || settings.next().is_some() {
        write_descriptor(out, descriptor::MESSAGE_ANNOTATIONS);
        let map = begin_map(out);
        let count = annotations_but(out, own, None, amended);
        end_compound(out, map, count);
    }
    let own = sections.properties.of(message);
    fields(out, own, amended, stamps.default_message_id, None);
    let own = sections.application_properties.of(message);
    let amended = amended.filter(|amended| !amended.leaves_properties());
    application_properties(out, own, amended);
    write_descriptor(out, descriptor::DATA);
    write_binary(out, body);
}

/// Appends a message as [`render`] does, without body and footer: what a browser gets that asked for no body.
pub fn render_without_body(out: &mut Vec<u8>, message: &[u8], stamps: &Stamps) {
    let trusted = |_, value: &[u8]| extent(value).ok_or_else(cut);
    if let Ok(sections) = Sections::find(message, trusted) {
        front_of(&sections, message).write(out, stamps);
        let own = sections.application_properties.of(message);
        application_properties(out, own, stamps.amendments.as_deref());
    }
}

/// Appends the front of a message as [`render`] does, and returns the rest: bytes of the sender's
/// that need not be copied.
pub fn render_front<'m>(out: &mut Vec<u8>, message: &'m [u8], stamps: &Stamps) -> &'m [u8] {
    let amended = stamps.amendments.as_deref();
    let amended = amended.filter(|amended| !amended.leaves_properties());
    if let (Some(front), None) = (Front::find(message), amended) {
        front.write(out, stamps);
        return front.rest;
    }
    let trusted = |_, value: &[u8]| extent(value).ok_or_else(cut);
    let Ok(sections) = Sections::find(message, trusted) else {
        return message;
    };
    front_of(&sections, message).write(out, stamps);
    let own = sections.application_properties.of(message);
    application_properties(out, own, amended);
    let own = sections.body.of(message).unwrap_or_default();
    if sections.has_long_descriptors {
        body_with_short_descriptors(out, own);
    } else {
        out.extend_from_slice(own);
    }
    if let Some(own) = sections.footer.of(message) {
        write_descriptor(out, descriptor::FOOTER);
        out.extend_from_slice(own);
    }
    &[]
}

/// Returns the front of a message whose sections are known.
fn front_of<'m>(sections: &Sections, message: &'m [u8]) -> Front<'m> {
    Front {
        header: sections.header.of(message),
        delivery_annotations: sections.delivery_annotations.of(message),
        message_annotations: sections.message_annotations.of(message),
        properties: sections.properties.of(message),
        rest: &[],
    }
}

/// The part of a message that a delivery encodes anew, and the rest.
struct Front<'m> {
    header: Option<&'m [u8]>,
    delivery_annotations: Option<&'m [u8]>,
    message_annotations: Option<&'m [u8]>,
    properties: Option<&'m [u8]>,
    /// Application-properties, body and footer, with their descriptors.
    rest: &'m [u8],
}

impl<'m> Front<'m> {
    /// Finds it in a message as nearly all are: the sections in the order of the specification, each
    /// once, their descriptors written `00 53 xx`.
    fn find(message: &'m [u8]) -> Option<Self> {
        let mut front = Self {
            header: None,
            delivery_annotations: None,
            message_annotations: None,
            properties: None,
            rest: message,
        };
        let mut last = 0;
        while let [0x00, 0x53, code @ 0x70..=0x73, value @ ..] = front.rest {
            let (value, rest) = value.split_at_checked(extent(value)?)?;
            if *code <= last {
                return None;
            }
            let slot = match code {
                0x70 => &mut front.header,
                0x71 => &mut front.delivery_annotations,
                0x72 => &mut front.message_annotations,
                _ => &mut front.properties,
            };
            *slot = Some(value);
            last = *code;
            front.rest = rest;
        }
        let mut rest = front.rest;
        while !rest.is_empty() {
            let [0x00, 0x53, code @ 0x74..=0x78, value @ ..] = rest else {
                return None;
            };
            if *code < last {
                return None;
            }
            last = *code;
            rest = value.get(extent(value)?..)?;
        }
        Some(front)
    }

    fn write(&self, out: &mut Vec<u8>, stamps: &Stamps) {
        out.reserve(FRONT_BYTES);
        header(out, self.header, stamps);
        delivery_annotations(out, self.delivery_annotations, stamps);
        annotations(out, self, stamps);
        properties(out, self.properties, stamps);
    }
}

impl Front<'_> {
    /// Returns the message-id where it decides the partition: the sender gave neither a session nor a key.
    fn id_as_key(&self) -> Option<&str> {
        const GROUP_ID: usize = 10;
        const KEYS: [&str; 2] = ["x-opt-partition-key", "x-opt-via-partition-key"];
        let mut fields = elements(self.properties?);
        let id = text(fields.next()?)?;
        let session = fields.nth(GROUP_ID - 1).and_then(text);
        let annotations = entries(self.message_annotations.unwrap_or_default());
        let is_key = |key: &[u8]| KEYS.iter().any(|name| is_called(key, name));
        let mut keys = annotations.filter(|(key, value)| is_key(key) && text(value).is_some());
        (session.is_none() && keys.next().is_none()).then_some(id)
    }
}

/// Bytes reserved for the front of most messages: stamps, and properties of a usual size.
const FRONT_BYTES: usize = 512;

#[cold]
fn cut() -> Malformed {
    Malformed("the bytes end within a section".to_owned())
}

/// Writes the body's sections as the sender had them, except for their descriptors: Python skips
/// two bytes and takes the third for the section's code, whatever it is.
fn body_with_short_descriptors(out: &mut Vec<u8>, mut body: &[u8]) {
    while let Ok((code, value)) = section(body) {
        let length = extent(value).unwrap_or_default();
        let (value, rest) = value.split_at_checked(length).unwrap_or_default();
        out.extend_from_slice(&[0x00, 0x53, u8::try_from(code).unwrap_or_default()]);
        out.extend_from_slice(value);
        body = rest;
    }
}

/// Writes durable, priority and first-acquirer as the sender had them, and ttl and delivery-count
/// as they are. A message that another receiver had is not acquired for the first time.
fn header(out: &mut Vec<u8>, own: Option<&[u8]>, stamps: &Stamps) {
    let mut fields = elements(own.unwrap_or_default());
    let mut next = || fields.next().unwrap_or(&[0x40]);
    let (durable, priority, _ttl, first_acquirer) = (next(), next(), next(), next());
    write_descriptor(out, descriptor::HEADER);
    let list = begin_list(out);
    short(out, durable);
    short(out, priority);
    if stamps.time_to_live == Millis::MAX {
        write_null(out);
    } else {
        let millis = stamps.time_to_live.as_millis();
        write_uint(out, u32::try_from(millis).unwrap_or(u32::MAX));
    }
    // A message that was delivered before has been acquired before [3.2.1].
    let is_first = matches!(first_acquirer, [0x41] | [0x56, 0x01]);
    if is_first && (stamps.acquired || 0 < stamps.delivery_count) {
        out.push(0x42);
    } else {
        short(out, first_acquirer);
    }
    write_uint(out, stamps.delivery_count);
    end_compound(out, list, 5);
}

/// Appends a value that has one or two bytes mostly.
fn short(out: &mut Vec<u8>, value: &[u8]) {
    match value {
        [byte] => out.push(*byte),
        value => out.extend_from_slice(value),
    }
}

/// Writes the sender's delivery-annotations, and the lock's token: some SDKs take it from here
/// (`messaging.md#stamps`), and would take an old one that came along when a message was sent on.
fn delivery_annotations(out: &mut Vec<u8>, own: Option<&[u8]>, stamps: &Stamps) {
    if own.is_none() && stamps.lock_token.is_none() && !stamps.delivered {
        return;
    }
    write_descriptor(out, descriptor::DELIVERY_ANNOTATIONS);
    let map = begin_map(out);
    let mut count = own.map_or(0, |own| others(out, own, |key| is_called(key, LOCK_TOKEN)));
    if let Some(token) = stamps.lock_token {
        let entry = *b"\xa3\x10x-opt-lock-token\x98\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        out.extend_from_slice(&with(entry, entry.len() - token.len(), token));
        count += 2;
    }
    end_compound(out, map, count);
}

/// Appends the entries of a sender's map but those whose keys are left out, and returns how many keys and
/// values they are.
fn others(out: &mut Vec<u8>, own: &[u8], is_left_out: impl Fn(&[u8]) -> bool) -> usize {
    let mut count = 0;
    for (key, value) in entries(own) {
        if !is_left_out(key) {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            count += 2;
        }
    }
    count
}

fn annotations(out: &mut Vec<u8>, front: &Front<'_>, stamps: &Stamps) {
    let own = front.message_annotations;
    write_descriptor(out, descriptor::MESSAGE_ANNOTATIONS);
    let map = begin_map(out);
    let key = front.id_as_key().filter(|_| stamps.keyed_by_id);
    let own_key = key.map(|_| PARTITION_KEY);
    let mut count = annotations_but(out, own, own_key, stamps.amendments.as_deref());
    out.extend_from_slice(&usual_stamps(stamps));
    count += 6 + unusual_stamps(out, stamps);
    if let Some(until) = stamps.locked_until {
        let entry = *b"\xa3\x12x-opt-locked-until\x83\0\0\0\0\0\0\0\0";
        let until = until.as_millis().to_be_bytes();
        out.extend_from_slice(&with(entry, entry.len() - until.len(), until));
        count += 2;
    }
    if let Some(partition) = stamps.partition_id {
        out.extend_from_slice(b"\xa3\x12x-opt-partition-id\x61");
        out.extend_from_slice(&partition.to_be_bytes());
        count += 2;
    }
    if let Some(key) = key {
        out.extend_from_slice(b"\xa3\x13x-opt-partition-key");
        write_string(out, key);
        count += 2;
    }
    if let Some(source) = &stamps.dead_letter_source {
        out.extend_from_slice(b"\xa3\x17x-opt-deadletter-source");
        write_string(out, source);
        count += 2;
    }
    end_compound(out, map, count);
}

/// Appends the sender's annotations as they were changed, without those that are the broker's to give and without one more,
/// and returns how many keys and values they are.
fn annotations_but(
    out: &mut Vec<u8>,
    own: Option<&[u8]>,
    own_key: Option<&str>,
    amended: Option<&Amendments>,
) -> usize {
    let changed = |key: &[u8]| {
        let mut settings = amended.into_iter().flat_map(Amendments::annotations);
        settings.any(|(setting, _)| is_called(key, setting.name()))
    };
    let is_left_out = |key: &[u8]| {
        let mut left_out = OURS.iter().copied().chain(own_key);
        left_out.any(|name| is_called(key, name)) || changed(key)
    };
    let mut count = own.map_or(0, |own| others(out, own, is_left_out));
    for (setting, value) in amended.into_iter().flat_map(Amendments::annotations) {
        if value != [0x40] {
            write_symbol(out, setting.name());
            out.extend_from_slice(value);
            count += 2;
        }
    }
    count
}

/// The entries that every message has, as they are encoded: one piece of a known size, so that it is
/// written as such.
fn usual_stamps(stamps: &Stamps) -> [u8; 102] {
    const NUMBER: usize = 24;
    const ENQUEUED_NUMBER: usize = NUMBER + 8 + 32;
    const ENQUEUED_TIME: usize = ENQUEUED_NUMBER + 8 + 22;
    let entries = *b"\xa3\x15x-opt-sequence-number\x81\0\0\0\0\0\0\0\0\
        \xa3\x1dx-opt-enqueue-sequence-number\x81\0\0\0\0\0\0\0\0\
        \xa3\x13x-opt-enqueued-time\x83\0\0\0\0\0\0\0\0";
    let enqueued_time = stamps.enqueued_time.as_millis().to_be_bytes();
    let enqueued_number = stamps.enqueued_sequence_number.to_be_bytes();
    let entries = with(entries, NUMBER, stamps.sequence_number.to_be_bytes());
    let entries = with(entries, ENQUEUED_NUMBER, enqueued_number);
    with(entries, ENQUEUED_TIME, enqueued_time)
}

/// Writes the annotation that the service leaves out at its default: the state. Returns how many keys and values were
/// written.
fn unusual_stamps(out: &mut Vec<u8>, stamps: &Stamps) -> usize {
    let state: i32 = match stamps.state {
        MessageState::Active => return 0,
        MessageState::Deferred => 1,
        MessageState::Scheduled => 2,
    };
    out.extend_from_slice(b"\xa3\x13x-opt-message-state\x71");
    out.extend_from_slice(&state.to_be_bytes());
    2
}

/// Puts bytes into the place that is left for them.
fn with<const N: usize, const M: usize>(mut bytes: [u8; N], at: usize, value: [u8; M]) -> [u8; N] {
    if let Some(slot) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *slot = value;
    }
    bytes
}

/// Writes the properties as the sender had them, except for amendments, a message-id where the
/// sender gave none, and the times of a message that expires: clients compute its time to live from
/// them.
fn properties(out: &mut Vec<u8>, own: Option<&[u8]>, stamps: &Stamps) {
    let life = (stamps.time_to_live != Millis::MAX).then(|| Life {
        begin: stamps.enqueued_time,
        end: stamps.enqueued_time.after(stamps.time_to_live),
    });
    let amended = stamps.amendments.as_deref();
    fields(out, own, amended, stamps.default_message_id, life);
}

/// When a message that expires was enqueued, and when it expires.
struct Life {
    begin: Timestamp,
    end: Timestamp,
}

/// Writes the fields of the properties. Without a life, its times are the sender's.
fn fields(
    out: &mut Vec<u8>,
    own: Option<&[u8]>,
    amended: Option<&Amendments>,
    default_id: [u8; 16],
    life: Option<Life>,
) {
    const ABSOLUTE_EXPIRY_TIME: usize = 8;
    const CREATION_TIME: usize = 9;
    const NULL: &[u8] = &[0x40];
    write_descriptor(out, descriptor::PROPERTIES);
    let mut fields = elements(own.unwrap_or_default());
    let has_id = fields.clone().next().is_some_and(|id| id != NULL);
    let amended = amended.filter(|amended| amended.changes_fields());
    if let Some(own) = own.filter(|_| has_id && life.is_none() && amended.is_none()) {
        return out.extend_from_slice(own);
    }
    let changes =
        amended.map(|amended| Field::ALL.map(|field| (field.index(), amended.field(field))));
    let changes = changes.as_ref().map_or(&[][..], |changes| &changes[..]);
    let change = |index| {
        let mut changes = changes.iter();
        changes
            .find(|(at, _)| *at == index)
            .and_then(|(_, value)| *value)
    };
    let changed = changes.iter().filter(|(_, value)| value.is_some());
    let least = changed.map(|(index, _)| index + 1).max().unwrap_or(1);
    let least = if life.is_none() {
        least
    } else {
        least.max(CREATION_TIME + 1)
    };
    let list = begin_list(out);
    let mut count = 0;
    loop {
        let field = match fields.next() {
            Some(field) => field,
            None if count < least => NULL,
            None => break,
        };
        let field = change(count).unwrap_or(field);
        match (count, field == NULL, &life) {
            (0, true, _) => default_message_id(out, default_id),
            (ABSOLUTE_EXPIRY_TIME, _, Some(life)) => {
                write_timestamp(out, life.end.min(Timestamp::END_OF_9999).as_millis());
            }
            (CREATION_TIME, _, Some(life)) => write_timestamp(out, life.begin.as_millis()),
            _ => out.extend_from_slice(field),
        }
        count += 1;
    }
    end_compound(out, list, count);
}

fn default_message_id(out: &mut Vec<u8>, id: [u8; 16]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or_default();
    let mut value = [0; 34];
    let [code, length, text @ ..] = &mut value;
    (*code, *length) = (0xa1, 32);
    for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(id) {
        *pair = [digit(byte >> 4), digit(byte & 0xf)];
    }
    out.extend_from_slice(&value);
}

/// Writes the application-properties: those without amendments as the sender had them, then the
/// amended ones.
fn application_properties(out: &mut Vec<u8>, own: Option<&[u8]>, amended: Option<&Amendments>) {
    let Some(amended) = amended else {
        if let Some(own) = own {
            write_descriptor(out, descriptor::APPLICATION_PROPERTIES);
            out.extend_from_slice(own);
        }
        return;
    };
    write_descriptor(out, descriptor::APPLICATION_PROPERTIES);
    let map = begin_map(out);
    let mut count = 0;
    for (key, value) in entries(own.unwrap_or_default()) {
        if !text(key).is_some_and(|name| amended.contains(name)) {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            count += 2;
        }
    }
    for (name, value) in amended.iter() {
        write_string(out, name);
        out.extend_from_slice(value);
        count += 2;
    }
    end_compound(out, map, count);
}
