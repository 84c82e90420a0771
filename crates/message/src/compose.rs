//! Messages that come in another form than AMQP, made into one.
//!
//! The result is the message that an AMQP client would have sent: a header for the time to live,
//! annotations that the service defines, properties, application-properties, and one data section.

use std::borrow::Cow;

use bytes::Bytes;

use super::parse::section;
use super::{Field, Message, Scalar};
use jitney_amqp::codec::descriptor;
use jitney_amqp::codec::value::{binary, extent, text_bytes};
use jitney_amqp::codec::write::{
    begin_list, begin_map, end_compound, write_descriptor, write_null, write_string, write_symbol,
    write_uint,
};
use jitney_base::time::{Millis, Timestamp};

/// A message that is to be, but for its body.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    /// Fields of the properties.
    pub fields: Vec<(Field, String)>,
    /// How long it lives, if its sender says so.
    pub time_to_live: Option<Millis>,
    /// When it is to become active.
    pub due: Option<Timestamp>,
    /// The partition key.
    pub partition_key: Option<String>,
    /// The application-properties; the first value of a repeated name is used.
    pub properties: Vec<(String, Scalar<'static>)>,
}

/// A message whose body is being taken in.
#[derive(Debug)]
pub struct Composer {
    bytes: Vec<u8>,
    /// The offset of the body's length.
    length_at: usize,
}

impl Draft {
    /// Begins the message; `now` is when it was sent.
    #[must_use]
    pub fn begin(&self, now: Timestamp) -> Composer {
        let mut bytes = Vec::with_capacity(FRONT_BYTES);
        let life = self.time_to_live.map(|life| life.as_millis().max(1));
        if let Some(millis) = life {
            write_descriptor(&mut bytes, descriptor::HEADER);
            let list = begin_list(&mut bytes);
            write_null(&mut bytes);
            write_null(&mut bytes);
            write_uint(&mut bytes, u32::try_from(millis).unwrap_or(u32::MAX));
            end_compound(&mut bytes, list, 3);
        }
        self.annotations(&mut bytes);
        // A header has no room for more than 49 days: the truth is in the properties then.
        let is_long = life.is_some_and(|millis| i64::from(u32::MAX) <= millis);
        let end = self.time_to_live.filter(|_| is_long);
        self.properties(&mut bytes, end.map(|life| (now, now.after(life))));
        self.application_properties(&mut bytes);
        bytes.extend_from_slice(&[0x00, 0x53, 0x75, 0xb0, 0, 0, 0, 0]);
        let length_at = bytes.len() - 4;
        Composer { bytes, length_at }
    }

    fn annotations(&self, out: &mut Vec<u8>) {
        if self.due.is_none() && self.partition_key.is_none() {
            return;
        }
        write_descriptor(out, descriptor::MESSAGE_ANNOTATIONS);
        let map = begin_map(out);
        let mut count = 0;
        if let Some(due) = self.due {
            write_symbol(out, "x-opt-scheduled-enqueue-time");
            Scalar::from(due).encode(out);
            count += 2;
        }
        if let Some(key) = &self.partition_key {
            write_symbol(out, "x-opt-partition-key");
            write_string(out, key);
            count += 2;
        }
        end_compound(out, map, count);
    }

    fn properties(&self, out: &mut Vec<u8>, life: Option<(Timestamp, Timestamp)>) {
        /// The fields of the section [3.2.4], absolute-expiry-time and creation-time among them.
        const COUNT: usize = 13;
        const EXPIRY: usize = 8;
        const CREATION: usize = 9;
        if self.fields.is_empty() && life.is_none() {
            return;
        }
        write_descriptor(out, descriptor::PROPERTIES);
        let list = begin_list(out);
        for index in 0..COUNT {
            let text = self.fields.iter().find(|(it, _)| it.index() == index);
            match (text, life, index) {
                (Some((Field::ContentType, text)), ..) => write_symbol(out, text),
                (Some((_, text)), ..) => write_string(out, text),
                (None, Some((_, end)), EXPIRY) => Scalar::from(end).encode(out),
                (None, Some((begin, _)), CREATION) => Scalar::from(begin).encode(out),
                _ => write_null(out),
            }
        }
        end_compound(out, list, COUNT);
    }

    fn application_properties(&self, out: &mut Vec<u8>) {
        if self.properties.is_empty() {
            return;
        }
        write_descriptor(out, descriptor::APPLICATION_PROPERTIES);
        let map = begin_map(out);
        let mut names = std::collections::BTreeSet::new();
        for (name, value) in &self.properties {
            if names.insert(name.as_str()) {
                write_string(out, name);
                value.encode(out);
            }
        }
        end_compound(out, map, 2 * names.len());
    }
}

impl Composer {
    /// Takes more of the body.
    pub fn push(&mut self, body: &[u8]) {
        self.bytes.extend_from_slice(body);
    }

    /// Returns how many bytes of the body there are.
    #[must_use]
    pub fn body_len(&self) -> usize {
        self.bytes.len() - self.length_at - 4
    }

    /// Ends the message.
    #[must_use]
    pub fn finish(mut self) -> Bytes {
        let length = u32::try_from(self.body_len()).unwrap_or(u32::MAX);
        let slot = self.bytes.get_mut(self.length_at..);
        if let Some(slot) = slot.and_then(<[u8]>::first_chunk_mut) {
            *slot = length.to_be_bytes();
        }
        self.bytes.into()
    }
}

/// Bytes reserved before the body, enough for most messages.
const FRONT_BYTES: usize = 512;

impl Message {
    /// Returns the body for clients that do not speak AMQP: the content of data, texts and
    /// binaries, and any other value as it is encoded.
    #[must_use]
    pub fn plain_body(&self) -> Cow<'_, [u8]> {
        let body = self.sections.body.of(self.bytes()).unwrap_or_default();
        let mut pieces = pieces(body);
        match (pieces.next(), pieces.next()) {
            (None, _) => Cow::Borrowed(body),
            (Some(one), None) => Cow::Borrowed(one),
            (Some(one), Some(two)) => {
                let mut whole = [one, two].concat();
                pieces.for_each(|more| whole.extend_from_slice(more));
                Cow::Owned(whole)
            }
        }
    }
}

/// Returns the bytes in the sections of a body; nothing of one that is neither data nor text.
fn pieces(mut body: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (_, value) = section(body).ok()?;
        let (value, rest) = value.split_at_checked(extent(value)?)?;
        body = rest;
        binary(value).or_else(|| text_bytes(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compose(draft: &Draft, body: &[u8]) -> Message {
        let mut composer = draft.begin(Timestamp::from_millis(5_000));
        composer.push(body);
        assert_eq!(composer.body_len(), body.len());
        Message::parse(composer.finish()).unwrap()
    }

    #[test]
    fn a_draft_becomes_the_message_that_a_client_of_amqp_would_send() {
        let draft = Draft {
            fields: vec![
                (Field::MessageId, "m1".to_owned()),
                (Field::ContentType, "text/plain".to_owned()),
                (Field::SessionId, "s1".to_owned()),
                (Field::ReplyToSessionId, "r1".to_owned()),
            ],
            time_to_live: Some(Millis::from_millis(4_444)),
            due: Some(Timestamp::from_millis(77_000)),
            partition_key: Some("s1".to_owned()),
            properties: vec![
                ("n".to_owned(), Scalar::Long(7)),
                ("n".to_owned(), Scalar::Long(8)),
                ("t".to_owned(), Scalar::Text("x".into())),
            ],
        };
        let message = compose(&draft, b"hello");
        assert_eq!(message.group_id(), Some("s1"));
        assert_eq!(message.partition_key(), Some("s1"));
        assert_eq!(message.time_to_live(), Some(Millis::from_millis(4_444)));
        assert_eq!(
            message.scheduled_enqueue_time(),
            Some(Timestamp::from_millis(77_000))
        );
        assert_eq!(message.field(Field::MessageId), Some(&b"\xa1\x02m1"[..]));
        assert_eq!(
            message.field(Field::ContentType),
            Some(&b"\xa3\x0atext/plain"[..])
        );
        assert_eq!(
            message.field(Field::ReplyToSessionId),
            Some(&b"\xa1\x02r1"[..])
        );
        let properties: Vec<_> = message
            .application_properties()
            .map(|(name, value)| (name, Scalar::decode(value)))
            .collect();
        assert_eq!(
            properties,
            [("n", Scalar::Long(7)), ("t", Scalar::Text("x".into()))]
        );
        assert_eq!(message.plain_body(), &b"hello"[..]);
    }

    #[test]
    fn a_body_may_be_all_there_is() {
        let message = compose(&Draft::default(), b"");
        assert_eq!(message.plain_body(), &b""[..]);
        assert_eq!(message.time_to_live(), None);
        assert_eq!(message.field(Field::MessageId), None);
    }

    #[test]
    fn a_life_of_more_than_a_header_holds_is_kept() {
        let life = Millis::from_millis(90 * 86_400_000);
        let draft = Draft {
            time_to_live: Some(life),
            ..Draft::default()
        };
        assert_eq!(compose(&draft, b"x").time_to_live(), Some(life));
    }

    #[test]
    fn bodies_of_all_kinds_are_read() {
        for (body, plain) in [
            (
                &b"\x00\x53\x75\xa0\x01a\x00\x53\x75\xa0\x01b\x00\x53\x75\xa0\x01c"[..],
                &b"abc"[..],
            ),
            (b"\x00\x53\x77\xa1\x02hi", b"hi"),
            (b"\x00\x53\x77\xa0\x02\x00\x01", b"\x00\x01"),
            (b"\x00\x53\x77\x54\x07", b"\x00\x53\x77\x54\x07"),
            (b"", b""),
        ] {
            let message = Message::parse(Bytes::from_static(body)).unwrap();
            assert_eq!(message.plain_body(), plain, "{body:?}");
        }
    }
}
