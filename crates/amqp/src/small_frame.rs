//! Frames whose fields are few and small, as most frames are.

use bytes::BytesMut;

use super::Tag;
use crate::codec::descriptor;

/// Writes a frame whose fields are few and small, as most frames are: into an array first, so that
/// the output is asked for room once.
///
/// The bytes are those that [`crate::codec::ListWriter`] writes.
pub(super) struct SmallFrame {
    bytes: [u8; SMALL_FRAME_BYTES],
    length: usize,
    count: usize,
    fields: usize,
}

/// A frame's head, a list's head, and ten fields of five bytes with a tag of 16.
const SMALL_FRAME_BYTES: usize = FIELDS_AT + 10 * 5 + 18;
/// Where the fields begin.
const FIELDS_AT: usize = 20;

impl SmallFrame {
    pub(super) fn begin(channel: u16, code: u64) -> Self {
        let fields = descriptor::field_count(code);
        // The codes of all performatives fit in a byte.
        let [.., code] = code.to_be_bytes();
        let mut bytes = [0; SMALL_FRAME_BYTES];
        let [c0, c1] = channel.to_be_bytes();
        if let Some(head) = bytes.first_chunk_mut() {
            *head = [0, 0, 0, 0, 2, 0, c0, c1, 0x00, 0x53, code, 0xd0];
        }
        Self {
            bytes,
            length: FIELDS_AT,
            count: 0,
            fields,
        }
    }

    fn put<const N: usize>(&mut self, field: [u8; N]) {
        let room = self.bytes.get_mut(self.length..);
        let slot = room.and_then(<[u8]>::first_chunk_mut);
        debug_assert!(slot.is_some(), "a small frame has few fields");
        if let Some(slot) = slot {
            *slot = field;
            self.length += N;
        }
    }

    pub(super) fn null(&mut self) {
        self.raw([0x40]);
    }

    /// Writes a field that is encoded already.
    pub(super) fn raw<const N: usize>(&mut self, field: [u8; N]) {
        self.count += 1;
        self.put(field);
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.raw([if value { 0x41 } else { 0x42 }]);
    }

    pub(super) fn uint(&mut self, value: u32) {
        match u8::try_from(value) {
            Ok(0) => self.raw([0x43]),
            Ok(small) => self.raw([0x52, small]),
            Err(_) => {
                self.raw([0x70]);
                self.put(value.to_be_bytes());
            }
        }
    }

    pub(super) fn tag(&mut self, value: Tag) {
        const LENGTH: u8 = 16;
        self.raw([0xa0, LENGTH]);
        self.put(value);
    }

    /// Appends the frame, with null for each field that was not written, and with the length of the payload that
    /// follows it.
    pub(super) fn end(mut self, out: &mut BytesMut, payload: usize) {
        while self.count < self.fields {
            self.null();
        }
        let fill = |bytes: &mut [u8], at: usize, value: usize| {
            let value = u32::try_from(value).unwrap_or(u32::MAX);
            if let Some(slot) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *slot = value.to_be_bytes();
            }
        };
        fill(&mut self.bytes, 0, self.length + payload);
        fill(&mut self.bytes, FIELDS_AT - 8, self.length - FIELDS_AT + 4);
        fill(&mut self.bytes, FIELDS_AT - 4, self.count);
        out.reserve(self.length + payload);
        out.extend_from_slice(self.bytes.get(..self.length).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame::{self, FrameKind};
    use super::*;
    use crate::codec::ListWriter;

    #[derive(Debug, Clone)]
    enum Field {
        Boolean(bool),
        Null,
        Tag(Tag),
        Uint(u32),
    }

    fn field() -> impl Strategy<Value = Field> {
        prop_oneof![
            any::<bool>().prop_map(Field::Boolean),
            Just(Field::Null),
            any::<u32>().prop_map(Field::Uint),
            (0..300_u32).prop_map(Field::Uint),
        ]
    }

    proptest! {
        #[test]
        fn small_frames_have_the_bytes_of_others(
            channel: u16,
            code: u8,
            mut fields in prop::collection::vec(field(), 0..11),
            tag in prop::option::of(any::<Tag>()),
            payload in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            if let (Some(field), Some(tag)) = (fields.first_mut(), tag) {
                *field = Field::Tag(tag);
            }
            let mut expected = BytesMut::new();
            frame::write(&mut expected, FrameKind::Amqp, channel, |out| {
                let mut list = ListWriter::begin(out, u64::from(code));
                for field in &fields {
                    match field {
                        Field::Boolean(value) => list.boolean(*value),
                        Field::Null => list.null(),
                        Field::Tag(value) => list.binary(value),
                        Field::Uint(value) => list.uint(*value),
                    }
                }
                list.end();
                out.extend_from_slice(&payload);
            });
            let mut small = SmallFrame::begin(channel, u64::from(code));
            for field in &fields {
                match field {
                    Field::Boolean(value) => small.boolean(*value),
                    Field::Null => small.null(),
                    Field::Tag(value) => small.tag(*value),
                    Field::Uint(value) => small.uint(*value),
                }
            }
            let mut got = BytesMut::new();
            small.end(&mut got, payload.len());
            got.extend_from_slice(&payload);
            prop_assert_eq!(got, expected);
        }
    }
}
