//! The encoding of messages: those of a load, and requests to a management node.

use jitney_amqp::codec::value_length;

/// Size of the timestamp at the beginning of each body: the time at which the message was due, in
/// microseconds since 1970.
pub(crate) const STAMP_BYTES: usize = 8;

/// A header section with `durable` set: some brokers keep other messages in memory only.
const DURABLE: [u8; 7] = [0x00, 0x53, 0x70, 0xc0, 0x02, 0x01, 0x41];

/// Writes the sections before the body of a message.
///
/// Returns the offset of the scheduled enqueue time, eight bytes in milliseconds since 1970, if the
/// message is scheduled.
pub(crate) fn sections_before_body(
    out: &mut Vec<u8>,
    scheduled: Scheduled,
    subject: Option<&str>,
    message_session: Option<&str>,
) -> Option<usize> {
    const NAME: &[u8; 28] = b"x-opt-scheduled-enqueue-time";
    out.extend_from_slice(&DURABLE);
    let due = match scheduled {
        Scheduled::No => None,
        Scheduled::Yes => {
            out.extend_from_slice(&[0x00, 0x53, 0x72, 0xc1, 40, 2, 0xa3, 28]);
            out.extend_from_slice(NAME);
            out.push(0x83);
            out.extend_from_slice(&[0; 8]);
            Some(out.len() - 8)
        }
    };
    if subject.is_none() && message_session.is_none() {
        return due;
    }
    let mut fields = vec![0x40, 0x40, 0x40];
    let mut count = 4;
    match subject {
        Some(subject) => string(&mut fields, subject),
        None => fields.push(0x40),
    }
    if let Some(id) = message_session {
        // reply-to, correlation-id, content-type, content-encoding and both times are null.
        fields.extend_from_slice(&[0x40; 6]);
        string(&mut fields, id);
        count = 11;
    }
    out.extend_from_slice(&[0x00, 0x53, 0x73, 0xd0]);
    out.extend_from_slice(&be_u32(fields.len() + 4));
    out.extend_from_slice(&be_u32(count));
    out.extend_from_slice(&fields);
    due
}

/// Whether a message has a scheduled enqueue time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheduled {
    No,
    Yes,
}

/// Overwrites eight bytes at an offset with a number.
pub(crate) fn overwrite(bytes: &mut [u8], offset: usize, number: u64) {
    for (slot, byte) in bytes.iter_mut().skip(offset).zip(number.to_be_bytes()) {
        *slot = byte;
    }
}

/// Writes the descriptor and the length of a data section.
pub(crate) fn data_section_head(out: &mut Vec<u8>, size: usize) {
    out.extend_from_slice(&[0x00, 0x53, 0x75, 0xb0]);
    out.extend_from_slice(&be_u32(size));
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.push(0xb1);
    out.extend_from_slice(&be_u32(text.len()));
    out.extend_from_slice(text.as_bytes());
}

fn be_u32(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

/// Builds an AMQP map.
#[derive(Debug, Default)]
pub(crate) struct MapBuilder {
    entries: Vec<u8>,
    count: usize,
}

impl MapBuilder {
    fn entry(mut self, name: &str, value: &[u8]) -> Self {
        string(&mut self.entries, name);
        self.entries.extend_from_slice(value);
        self.count += 2;
        self
    }

    pub(crate) fn binary(self, name: &str, value: &[u8]) -> Self {
        let value = [&[0xb0][..], &be_u32(value.len()), value].concat();
        self.entry(name, &value)
    }

    pub(crate) fn text(self, name: &str, text: &str) -> Self {
        let mut value = Vec::new();
        string(&mut value, text);
        self.entry(name, &value)
    }

    pub(crate) fn uint(self, name: &str, number: u8) -> Self {
        self.entry(name, &[0x52, number])
    }

    /// Adds an array of long.
    pub(crate) fn longs(self, name: &str, numbers: &[i64]) -> Self {
        let mut value = vec![0xf0];
        value.extend_from_slice(&be_u32(numbers.len() * 8 + 5));
        value.extend_from_slice(&be_u32(numbers.len()));
        value.push(0x81);
        for number in numbers {
            value.extend_from_slice(&number.to_be_bytes());
        }
        self.entry(name, &value)
    }

    /// Adds a list of maps.
    pub(crate) fn maps(self, name: &str, maps: impl Iterator<Item = Self>) -> Self {
        let (mut all, mut count) = (Vec::new(), 0);
        for map in maps {
            map.write(&mut all);
            count += 1;
        }
        let mut value = vec![0xd0];
        value.extend_from_slice(&be_u32(all.len() + 4));
        value.extend_from_slice(&be_u32(count));
        value.extend_from_slice(&all);
        self.entry(name, &value)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(0xd1);
        out.extend_from_slice(&be_u32(self.entries.len() + 4));
        out.extend_from_slice(&be_u32(self.count));
        out.extend_from_slice(&self.entries);
    }
}

/// Encodes a request to the management node of an entity.
pub(crate) fn request(operation: &str, body: &MapBuilder) -> Vec<u8> {
    let mut out = vec![0x00, 0x53, 0x73, 0xc0, 4, 1, 0xa1, 1, b'r'];
    let properties = MapBuilder::default().text("operation", &format!("com.microsoft:{operation}"));
    out.extend_from_slice(&[0x00, 0x53, 0x74]);
    properties.write(&mut out);
    out.extend_from_slice(&[0x00, 0x53, 0x77]);
    body.write(&mut out);
    out
}

/// Returns the encoded value of a key in a section of a message that is a map.
pub(crate) fn map_entry<'a>(message: &'a [u8], section: u8, name: &str) -> Option<&'a [u8]> {
    let mut rest = message;
    let mut map = loop {
        let [0x00, 0x53, code, value @ ..] = rest else {
            return None;
        };
        let (value, next) = value.split_at_checked(value_length(value).ok()?)?;
        if *code == section {
            break match value {
                [0xc1, _, _, entries @ ..] | [0xd1, _, _, _, _, _, _, _, _, entries @ ..] => {
                    entries
                }
                _ => return None,
            };
        }
        rest = next;
    };
    while !map.is_empty() {
        let (key, rest) = map.split_at_checked(value_length(map).ok()?)?;
        let (value, rest) = rest.split_at_checked(value_length(rest).ok()?)?;
        let key = match key {
            [0xa1 | 0xa3, _, text @ ..] | [0xb1 | 0xb3, _, _, _, _, text @ ..] => text,
            _ => &[],
        };
        if key == name.as_bytes() {
            return Some(value);
        }
        map = rest;
    }
    None
}

/// Decodes an array of long.
pub(crate) fn longs(array: &[u8]) -> Option<Vec<i64>> {
    let ([0xe0, _, _, elements @ ..] | [0xf0, _, _, _, _, _, _, _, _, elements @ ..]) = array
    else {
        return None;
    };
    let (&code, elements) = elements.split_first()?;
    match code {
        0x81 => {
            let (longs, []) = elements.as_chunks::<8>() else {
                return None;
            };
            Some(longs.iter().map(|&long| i64::from_be_bytes(long)).collect())
        }
        0x55 => {
            let small = |&byte: &u8| i64::from(byte.cast_signed());
            Some(elements.iter().map(small).collect())
        }
        _ => None,
    }
}

/// Decodes a signed integer of 8, 32 or 64 bits.
pub(crate) fn integer(value: &[u8]) -> Option<i64> {
    match value {
        [0x55 | 0x54, byte] => Some(i64::from(byte.cast_signed())),
        [0x81, bytes @ ..] => Some(i64::from_be_bytes(*bytes.first_chunk()?)),
        [0x71, bytes @ ..] => Some(i64::from(i32::from_be_bytes(*bytes.first_chunk()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use jitney_base::time::Timestamp;
    use jitney_message::{Field, Message};

    use super::*;

    #[test]
    fn an_encoded_message_parses() {
        let mut bytes = Vec::new();
        let due = sections_before_body(&mut bytes, Scheduled::Yes, Some("a"), Some("one"));
        overwrite(&mut bytes, due.unwrap(), 1_700_000_000_123);
        data_section_head(&mut bytes, 300);
        bytes.extend_from_slice(&[7; 300]);
        let message = Message::parse(Bytes::from(bytes)).unwrap();
        let due = Timestamp::from_millis(1_700_000_000_123);
        assert_eq!(message.scheduled_enqueue_time(), Some(due));
        let text = |field| message.field(field).map(|value| value.get(5..).unwrap());
        assert_eq!(text(Field::Label), Some(&b"a"[..]));
        assert_eq!(text(Field::SessionId), Some(&b"one"[..]));
    }

    #[test]
    fn an_encoded_request_decodes() {
        let numbers = [1, -2, i64::MAX];
        let body = MapBuilder::default()
            .uint("small", 7)
            .maps(
                "maps",
                [MapBuilder::default().binary("b", &[1, 2])].into_iter(),
            )
            .longs("numbers", &numbers);
        let request = request("an-operation", &body);
        Message::parse(Bytes::from(request.clone())).unwrap();
        let operation = map_entry(&request, 0x74, "operation").unwrap();
        assert!(operation.ends_with(b"com.microsoft:an-operation"));
        let found = map_entry(&request, 0x77, "numbers").and_then(longs);
        assert_eq!(found.as_deref(), Some(&numbers[..]));
        assert_eq!(map_entry(&request, 0x77, "small"), Some(&[0x52, 7][..]));
        assert_eq!(map_entry(&request, 0x77, "large"), None);
        assert_eq!(longs(&[0xe0, 4, 2, 0x55, 0xff, 3]), Some(vec![-1, 3]));
        assert_eq!(integer(&[0x71, 0, 0, 0, 200]), Some(200));
    }
}
