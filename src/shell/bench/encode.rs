//! Messages as bytes: what a load sends, and what it asks of a management node.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::shape::value_length;

/// A header that says "durable": brokers exist that forget messages without it.
const DURABLE: [u8; 7] = [0x00, 0x53, 0x70, 0xc0, 0x02, 0x01, 0x41];

/// Writes the sections in front of a body.
///
/// Returns where the eight bytes are that say when the message is to be enqueued, milliseconds since
/// 1970, if it is not to be at once.
pub(super) fn head(
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
        // Reply-to, correlation-id, content-type, content-encoding, and two times are null.
        fields.extend_from_slice(&[0x40; 6]);
        string(&mut fields, id);
        count = 11;
    }
    out.extend_from_slice(&[0x00, 0x53, 0x73, 0xd0]);
    out.extend_from_slice(&word(fields.len() + 4));
    out.extend_from_slice(&word(count));
    out.extend_from_slice(&fields);
    due
}

/// Whether a message has a time at which it is to be enqueued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheduled {
    No,
    Yes,
}

/// Writes a number over the eight bytes at a place.
pub(super) fn patch(bytes: &mut [u8], at: usize, number: u64) {
    for (slot, byte) in bytes.iter_mut().skip(at).zip(number.to_be_bytes()) {
        *slot = byte;
    }
}

/// Writes what stands in front of the bytes of a body.
pub(super) fn data_head(out: &mut Vec<u8>, size: usize) {
    out.extend_from_slice(&[0x00, 0x53, 0x75, 0xb0]);
    out.extend_from_slice(&word(size));
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.push(0xb1);
    out.extend_from_slice(&word(text.len()));
    out.extend_from_slice(text.as_bytes());
}

fn word(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

/// A map under construction.
#[derive(Debug, Default)]
pub(super) struct Map {
    entries: Vec<u8>,
    count: usize,
}

impl Map {
    fn entry(mut self, name: &str, value: &[u8]) -> Self {
        string(&mut self.entries, name);
        self.entries.extend_from_slice(value);
        self.count += 2;
        self
    }

    pub(super) fn binary(self, name: &str, value: &[u8]) -> Self {
        let value = [&[0xb0][..], &word(value.len()), value].concat();
        self.entry(name, &value)
    }

    pub(super) fn text(self, name: &str, text: &str) -> Self {
        let mut value = Vec::new();
        string(&mut value, text);
        self.entry(name, &value)
    }

    pub(super) fn uint(self, name: &str, number: u8) -> Self {
        self.entry(name, &[0x52, number])
    }

    /// Adds an array of longs.
    pub(super) fn longs(self, name: &str, numbers: &[i64]) -> Self {
        let mut value = vec![0xf0];
        value.extend_from_slice(&word(numbers.len() * 8 + 5));
        value.extend_from_slice(&word(numbers.len()));
        value.push(0x81);
        for number in numbers {
            value.extend_from_slice(&number.to_be_bytes());
        }
        self.entry(name, &value)
    }

    /// Adds a list of maps.
    pub(super) fn maps(self, name: &str, maps: impl Iterator<Item = Self>) -> Self {
        let (mut all, mut count) = (Vec::new(), 0);
        for map in maps {
            map.write(&mut all);
            count += 1;
        }
        let mut value = vec![0xd0];
        value.extend_from_slice(&word(all.len() + 4));
        value.extend_from_slice(&word(count));
        value.extend_from_slice(&all);
        self.entry(name, &value)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(0xd1);
        out.extend_from_slice(&word(self.entries.len() + 4));
        out.extend_from_slice(&word(self.count));
        out.extend_from_slice(&self.entries);
    }
}

/// Encodes a request to a management node.
pub(super) fn request(operation: &str, body: &Map) -> Vec<u8> {
    let mut out = vec![0x00, 0x53, 0x73, 0xc0, 4, 1, 0xa1, 1, b'r'];
    let properties = Map::default().text("operation", &format!("com.microsoft:{operation}"));
    out.extend_from_slice(&[0x00, 0x53, 0x74]);
    properties.write(&mut out);
    out.extend_from_slice(&[0x00, 0x53, 0x77]);
    body.write(&mut out);
    out
}

/// Returns an entry of the map in a message's section.
pub(super) fn entry<'a>(message: &'a [u8], section: u8, name: &str) -> Option<&'a [u8]> {
    let mut rest = message;
    let mut map = loop {
        let [0x00, 0x53, code, value @ ..] = rest else {
            return None;
        };
        let (value, behind) = value.split_at_checked(value_length(value).ok()?)?;
        if *code == section {
            break match value {
                [0xc1, _, _, entries @ ..] | [0xd1, _, _, _, _, _, _, _, _, entries @ ..] => {
                    entries
                }
                _ => return None,
            };
        }
        rest = behind;
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

/// Reads an array of longs.
pub(super) fn longs(array: &[u8]) -> Option<Vec<i64>> {
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

/// Reads a whole number of any type.
pub(super) fn integer(value: &[u8]) -> Option<i64> {
    match value {
        [0x55 | 0x54, byte] => Some(i64::from(byte.cast_signed())),
        [0x81, bytes @ ..] => Some(i64::from_be_bytes(*bytes.first_chunk()?)),
        [0x71, bytes @ ..] => Some(i64::from(i32::from_be_bytes(*bytes.first_chunk()?))),
        _ => None,
    }
}

/// Returns the microseconds since 1970: what messages carry, so that another process can tell how
/// long one took.
pub(super) fn unix_micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::{Field, Message};
    use crate::time::Timestamp;

    #[test]
    fn what_is_sent_is_a_message() {
        let mut bytes = Vec::new();
        let due = head(&mut bytes, Scheduled::Yes, Some("a"), Some("one"));
        patch(&mut bytes, due.unwrap(), 1_700_000_000_123);
        data_head(&mut bytes, 300);
        bytes.extend_from_slice(&[7; 300]);
        let message = Message::parse(Bytes::from(bytes)).unwrap();
        let due = Timestamp::from_millis(1_700_000_000_123);
        assert_eq!(message.scheduled_enqueue_time(), Some(due));
        let text = |field| message.field(field).map(|value| value.get(5..).unwrap());
        assert_eq!(text(Field::Label), Some(&b"a"[..]));
        assert_eq!(text(Field::SessionId), Some(&b"one"[..]));
    }

    #[test]
    fn what_is_asked_can_be_read_back() {
        let numbers = [1, -2, i64::MAX];
        let body = Map::default()
            .uint("small", 7)
            .maps("maps", [Map::default().binary("b", &[1, 2])].into_iter())
            .longs("numbers", &numbers);
        let request = request("try-it", &body);
        Message::parse(Bytes::from(request.clone())).unwrap();
        let operation = entry(&request, 0x74, "operation").unwrap();
        assert!(operation.ends_with(b"com.microsoft:try-it"));
        let found = entry(&request, 0x77, "numbers").and_then(longs);
        assert_eq!(found.as_deref(), Some(&numbers[..]));
        assert_eq!(entry(&request, 0x77, "small"), Some(&[0x52, 7][..]));
        assert_eq!(entry(&request, 0x77, "large"), None);
        assert_eq!(longs(&[0xe0, 4, 2, 0x55, 0xff, 3]), Some(vec![-1, 3]));
        assert_eq!(integer(&[0x71, 0, 0, 0, 200]), Some(200));
    }
}
