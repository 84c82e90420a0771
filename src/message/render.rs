//! Messages on their way out.

use super::parse::Sections;
use super::value::{
    begin_compound, elements, end_compound, entries, extent, section, text, write_text,
};
use super::{Amendments, Field, MessageState, Stamps};
use crate::shape::Misshapen;
use crate::time::{Millis, Timestamp};

const LOCK_TOKEN: &str = "x-opt-lock-token";

/// 9999-12-31T23:59:59.999Z: the last time that .NET and Python can represent.
const TIME_MAX: Timestamp = Timestamp::from_millis(253_402_300_799_999);

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

/// Appends a message as it is delivered: the sender's bytes, with the broker's stamps
/// (`protocol.md` §5.6).
///
/// `message` was parsed when it was taken in; of bytes that are no message, all is appended.
pub fn render(out: &mut Vec<u8>, message: &[u8], stamps: &Stamps) {
    let trusted = |_, value: &[u8]| extent(value).ok_or(Misshapen::Truncated);
    let Ok(sections) = Sections::find(message, trusted) else {
        return out.extend_from_slice(message);
    };
    let at =
        |range: &Option<std::ops::Range<usize>>| range.clone().and_then(|range| message.get(range));
    out.reserve(message.len() + 256);
    header(out, at(&sections.header), stamps);
    delivery_annotations(out, at(&sections.delivery_annotations), stamps);
    annotations(out, at(&sections.message_annotations), stamps);
    properties(out, at(&sections.properties), stamps);
    let own = at(&sections.application_properties);
    application_properties(out, own, stamps.amendments.as_deref());
    let own = at(&sections.body).unwrap_or_default();
    if sections.body_is_wordy {
        wordy_body(out, own);
    } else {
        out.extend_from_slice(own);
    }
    if let Some(own) = at(&sections.footer) {
        out.extend_from_slice(&[0x00, 0x53, 0x78]);
        out.extend_from_slice(own);
    }
}

/// Writes the body's sections as the sender had them, but for their descriptors: Python skips two
/// bytes and takes the third for the section's code, whatever stands there.
fn wordy_body(out: &mut Vec<u8>, mut body: &[u8]) {
    while let Ok((code, value)) = section(body) {
        let length = extent(value).unwrap_or_default();
        let (value, rest) = value.split_at_checked(length).unwrap_or_default();
        out.extend_from_slice(&[0x00, 0x53, u8::try_from(code).unwrap_or_default()]);
        out.extend_from_slice(value);
        body = rest;
    }
}

/// Writes durable, priority and first-acquirer as the sender had them, and ttl and delivery-count
/// as they are.
fn header(out: &mut Vec<u8>, own: Option<&[u8]>, stamps: &Stamps) {
    let mut fields = elements(own.unwrap_or_default());
    let mut next = || fields.next().unwrap_or(&[0x40]);
    let (durable, priority, _ttl, first_acquirer) = (next(), next(), next(), next());
    out.extend_from_slice(&[0x00, 0x53, 0x70]);
    let list = begin_compound(out, 0xd0);
    out.extend_from_slice(durable);
    out.extend_from_slice(priority);
    if stamps.time_to_live == Millis::MAX {
        out.push(0x40);
    } else {
        let millis = stamps.time_to_live.as_millis();
        uint(out, u32::try_from(millis).unwrap_or(u32::MAX));
    }
    out.extend_from_slice(first_acquirer);
    uint(out, stamps.delivery_count);
    end_compound(out, list, 5);
}

/// Writes the sender's delivery-annotations, and the lock's token: some SDKs take it from here
/// (`protocol.md` §5.6), and would take an old one that came along when a message was sent on.
fn delivery_annotations(out: &mut Vec<u8>, own: Option<&[u8]>, stamps: &Stamps) {
    if own.is_none() && stamps.lock_token.is_none() {
        return;
    }
    out.extend_from_slice(&[0x00, 0x53, 0x71]);
    let map = begin_compound(out, 0xd1);
    let mut count = 0;
    for (key, value) in entries(own.unwrap_or_default()) {
        if text(key) != Some(LOCK_TOKEN) {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            count += 2;
        }
    }
    if let Some(token) = stamps.lock_token {
        fixed(out, LOCK_TOKEN, 0x98, &token);
        count += 2;
    }
    end_compound(out, map, count);
}

fn annotations(out: &mut Vec<u8>, own: Option<&[u8]>, stamps: &Stamps) {
    out.extend_from_slice(&[0x00, 0x53, 0x72]);
    let map = begin_compound(out, 0xd1);
    let mut count = 0;
    for (key, value) in entries(own.unwrap_or_default()) {
        if !text(key).is_some_and(|name| OURS.contains(&name)) {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            count += 2;
        }
    }
    let enqueued_number = stamps.enqueued_sequence_number.to_be_bytes();
    fixed(
        out,
        "x-opt-sequence-number",
        0x81,
        &stamps.sequence_number.to_be_bytes(),
    );
    fixed(out, "x-opt-enqueue-sequence-number", 0x81, &enqueued_number);
    let enqueued_time = stamps.enqueued_time.as_millis().to_be_bytes();
    fixed(out, "x-opt-enqueued-time", 0x83, &enqueued_time);
    let state: i32 = match stamps.state {
        MessageState::Active => 0,
        MessageState::Deferred => 1,
        MessageState::Scheduled => 2,
    };
    fixed(out, "x-opt-message-state", 0x71, &state.to_be_bytes());
    count += 8;
    if let Some(until) = stamps.locked_until {
        fixed(
            out,
            "x-opt-locked-until",
            0x83,
            &until.as_millis().to_be_bytes(),
        );
        count += 2;
    }
    if let Some(partition) = stamps.partition_id {
        fixed(out, "x-opt-partition-id", 0x61, &partition.to_be_bytes());
        count += 2;
    }
    if let Some(source) = &stamps.dead_letter_source {
        write_text(out, 0xa3, "x-opt-deadletter-source");
        write_text(out, 0xa1, source);
        count += 2;
    }
    end_compound(out, map, count);
}

/// Writes the properties as the sender had them, but for what is amended, a message-id where it gave none, and the
/// times of a message whose life has an end: clients take its time to live from them.
fn properties(out: &mut Vec<u8>, own: Option<&[u8]>, stamps: &Stamps) {
    const ABSOLUTE_EXPIRY_TIME: usize = 8;
    const CREATION_TIME: usize = 9;
    const NULL: &[u8] = &[0x40];
    out.extend_from_slice(&[0x00, 0x53, 0x73]);
    let mut fields = elements(own.unwrap_or_default()).peekable();
    let has_id = fields.peek().is_some_and(|id| *id != NULL);
    let lives_on = stamps.time_to_live == Millis::MAX;
    let amended = stamps.amendments.as_deref();
    let amended = amended.filter(|amended| amended.changes_fields());
    if let Some(own) = own.filter(|_| has_id && lives_on && amended.is_none()) {
        return out.extend_from_slice(own);
    }
    let changes = Field::ALL.map(|field| {
        (
            field.index(),
            amended.and_then(|amended| amended.field(field)),
        )
    });
    let change = |index| {
        changes
            .iter()
            .find(|(at, _)| *at == index)
            .and_then(|(_, value)| *value)
    };
    let changed = changes.iter().filter(|(_, value)| value.is_some());
    let least = changed.map(|(index, _)| index + 1).max().unwrap_or(1);
    let least = if lives_on {
        least
    } else {
        least.max(CREATION_TIME + 1)
    };
    let list = begin_compound(out, 0xd0);
    let mut count = 0;
    loop {
        let field = match fields.next() {
            Some(field) => field,
            None if count < least => NULL,
            None => break,
        };
        let field = change(count).unwrap_or(field);
        match (count, field == NULL) {
            (0, true) => default_message_id(out, stamps.default_message_id),
            (ABSOLUTE_EXPIRY_TIME, _) if !lives_on => {
                let end = stamps.enqueued_time.after(stamps.time_to_live);
                timestamp(out, end.min(TIME_MAX));
            }
            (CREATION_TIME, _) if !lives_on => timestamp(out, stamps.enqueued_time),
            _ => out.extend_from_slice(field),
        }
        count += 1;
    }
    end_compound(out, list, count);
}

fn default_message_id(out: &mut Vec<u8>, id: [u8; 16]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or_default();
    out.extend_from_slice(&[0xa1, 32]);
    out.extend(
        id.iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]),
    );
}

fn timestamp(out: &mut Vec<u8>, at: Timestamp) {
    out.push(0x83);
    out.extend_from_slice(&at.as_millis().to_be_bytes());
}

/// Writes the application-properties: what was not amended as the sender had it, then the rest.
fn application_properties(out: &mut Vec<u8>, own: Option<&[u8]>, amended: Option<&Amendments>) {
    let Some(amended) = amended.filter(|amended| !amended.leaves_properties()) else {
        if let Some(own) = own {
            out.extend_from_slice(&[0x00, 0x53, 0x74]);
            out.extend_from_slice(own);
        }
        return;
    };
    out.extend_from_slice(&[0x00, 0x53, 0x74]);
    let map = begin_compound(out, 0xd1);
    let mut count = 0;
    for (key, value) in entries(own.unwrap_or_default()) {
        if !text(key).is_some_and(|name| amended.contains(name)) {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            count += 2;
        }
    }
    for (name, value) in amended.iter() {
        write_text(out, 0xa1, name);
        out.extend_from_slice(value);
        count += 2;
    }
    end_compound(out, map, count);
}

fn fixed(out: &mut Vec<u8>, name: &str, code: u8, value: &[u8]) {
    write_text(out, 0xa3, name);
    out.push(code);
    out.extend_from_slice(value);
}

fn uint(out: &mut Vec<u8>, value: u32) {
    match u8::try_from(value) {
        Ok(0) => out.push(0x43),
        Ok(small) => out.extend_from_slice(&[0x52, small]),
        Err(_) => {
            out.push(0x70);
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}
