//! Reading and writing the encodings that performatives use.
//!
//! Performatives are lists whose fields are read one after the other, each as the type that the
//! specification gives it. Nothing is allocated, and no length is believed that the bytes do not
//! hold.

use bytes::{BufMut, BytesMut};

use super::Tag;
use crate::shape::{self, Misshapen};

/// Why a performative cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("{0}")]
    Misshapen(#[from] Misshapen),
    #[error("a field is not {0}")]
    WrongType(&'static str),
    #[error("the field {0} is missing")]
    Missing(&'static str),
    #[error("it is not a described list")]
    NotAList,
}

/// The fields of a list that are not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    rest: &'a [u8],
    left: usize,
}

/// Reads the descriptor of the value at the front; symbolic ones are looked up.
pub(super) fn descriptor(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    match bytes {
        [0x00, 0x53, code, rest @ ..] => Ok((u64::from(*code), rest)),
        [0x00, 0x44, rest @ ..] => Ok((0, rest)),
        [0x00, 0x80, rest @ ..] => {
            let (code, rest) = rest.split_first_chunk::<8>().ok_or(Misshapen::Truncated)?;
            Ok((u64::from_be_bytes(*code), rest))
        }
        [0x00, code @ (0xa3 | 0xb3), rest @ ..] => {
            let (name, rest) = variable(*code, 0xa3, 0xb3, rest, "a symbol")?;
            let code = std::str::from_utf8(name).ok().and_then(code_of);
            Ok((
                code.ok_or(Malformed::WrongType("a known descriptor"))?,
                rest,
            ))
        }
        _ => Err(Malformed::NotAList),
    }
}

fn code_of(name: &str) -> Option<u64> {
    let names = [
        ("amqp:open:list", 0x10),
        ("amqp:begin:list", 0x11),
        ("amqp:attach:list", 0x12),
        ("amqp:flow:list", 0x13),
        ("amqp:transfer:list", 0x14),
        ("amqp:disposition:list", 0x15),
        ("amqp:detach:list", 0x16),
        ("amqp:end:list", 0x17),
        ("amqp:close:list", 0x18),
        ("amqp:error:list", 0x1d),
        ("amqp:received:list", 0x23),
        ("amqp:accepted:list", 0x24),
        ("amqp:rejected:list", 0x25),
        ("amqp:released:list", 0x26),
        ("amqp:modified:list", 0x27),
        ("amqp:source:list", 0x28),
        ("amqp:target:list", 0x29),
        ("amqp:coordinator:list", 0x30),
        ("amqp:declared:list", 0x33),
        ("amqp:transactional-state:list", 0x34),
        ("amqp:sasl-mechanisms:list", 0x40),
        ("amqp:sasl-init:list", 0x41),
        ("amqp:sasl-outcome:list", 0x44),
    ];
    names
        .iter()
        .find(|(known, _)| *known == name)
        .map(|&(_, code)| code)
}

impl<'a> List<'a> {
    /// Reads a list's head; returns its fields and the bytes after it.
    pub(super) fn open(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        match bytes {
            [0x45, rest @ ..] => Ok((Self { rest: &[], left: 0 }, rest)),
            [0xc0, size, rest @ ..] => {
                let (inner, rest) = rest
                    .split_at_checked(usize::from(*size))
                    .ok_or(Misshapen::Truncated)?;
                let (&count, fields) = inner.split_first().ok_or(Misshapen::Truncated)?;
                Ok((
                    Self {
                        rest: fields,
                        left: usize::from(count),
                    },
                    rest,
                ))
            }
            [0xd0, rest @ ..] => {
                let (size, rest) = word(rest)?;
                let (inner, rest) = rest.split_at_checked(size).ok_or(Misshapen::Truncated)?;
                let (left, fields) = word(inner)?;
                Ok((Self { rest: fields, left }, rest))
            }
            _ => Err(Malformed::NotAList),
        }
    }

    /// Reads a described list that must be all there is.
    pub(super) fn described(bytes: &'a [u8]) -> Result<(u64, Self), Malformed> {
        let (code, rest) = descriptor(bytes)?;
        Ok((code, Self::open(rest)?.0))
    }

    /// Takes the constructor of the next field; none when it is null or left out.
    fn next(&mut self) -> Result<Option<u8>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let (&code, rest) = self.rest.split_first().ok_or(Misshapen::Truncated)?;
        self.rest = rest;
        Ok((code != 0x40).then_some(code))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Misshapen::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(super) fn uint(&mut self) -> Result<Option<u32>, Malformed> {
        Ok(Some(match self.next()? {
            None => return Ok(None),
            Some(0x43) => 0,
            Some(0x52) => u32::from(self.fixed::<1>()?[0]),
            Some(0x70) => u32::from_be_bytes(self.fixed()?),
            Some(_) => return Err(Malformed::WrongType("a uint")),
        }))
    }

    pub(super) fn ulong(&mut self) -> Result<Option<u64>, Malformed> {
        Ok(Some(match self.next()? {
            None => return Ok(None),
            Some(0x44) => 0,
            Some(0x53) => u64::from(self.fixed::<1>()?[0]),
            Some(0x80) => u64::from_be_bytes(self.fixed()?),
            Some(_) => return Err(Malformed::WrongType("a ulong")),
        }))
    }

    pub(super) fn ushort(&mut self) -> Result<Option<u16>, Malformed> {
        match self.next()? {
            None => Ok(None),
            Some(0x60) => Ok(Some(u16::from_be_bytes(self.fixed()?))),
            Some(_) => Err(Malformed::WrongType("a ushort")),
        }
    }

    pub(super) fn ubyte(&mut self) -> Result<Option<u8>, Malformed> {
        match self.next()? {
            None => Ok(None),
            Some(0x50) => Ok(Some(self.fixed::<1>()?[0])),
            Some(_) => Err(Malformed::WrongType("a ubyte")),
        }
    }

    pub(super) fn boolean(&mut self) -> Result<Option<bool>, Malformed> {
        match self.next()? {
            None => Ok(None),
            Some(0x41) => Ok(Some(true)),
            Some(0x42) => Ok(Some(false)),
            Some(0x56) => Ok(Some(self.fixed::<1>()?[0] != 0)),
            Some(_) => Err(Malformed::WrongType("a boolean")),
        }
    }

    pub(super) fn binary(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        self.variable(0xa0, 0xb0, "a binary")
    }

    pub(super) fn string(&mut self) -> Result<Option<&'a str>, Malformed> {
        let bytes = self.variable(0xa1, 0xb1, "a string")?;
        bytes
            .map(|bytes| text(bytes, "a string in UTF-8"))
            .transpose()
    }

    pub(super) fn symbol(&mut self) -> Result<Option<&'a str>, Malformed> {
        let bytes = self.variable(0xa3, 0xb3, "a symbol")?;
        bytes
            .map(|bytes| text(bytes, "a symbol in ASCII"))
            .transpose()
    }

    fn variable(
        &mut self,
        short: u8,
        long: u8,
        expected: &'static str,
    ) -> Result<Option<&'a [u8]>, Malformed> {
        let Some(code) = self.next()? else {
            return Ok(None);
        };
        let (bytes, rest) = variable(code, short, long, self.rest, expected)?;
        self.rest = rest;
        Ok(Some(bytes))
    }

    /// Returns the next field as it is encoded, checked for its shape.
    pub(super) fn raw(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let length = match self.rest {
            [0x40, ..] => 1,
            // An outcome without fields, as most are.
            [0x00, 0x53, _, 0x45, ..] => 4,
            rest => shape::value_length(rest)?,
        };
        let (value, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Misshapen::Truncated)?;
        self.rest = rest;
        Ok((value != [0x40]).then_some(value))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }
}

fn variable<'a>(
    code: u8,
    short: u8,
    long: u8,
    rest: &'a [u8],
    expected: &'static str,
) -> Result<(&'a [u8], &'a [u8]), Malformed> {
    let (length, rest) = if code == short {
        let (&length, rest) = rest.split_first().ok_or(Misshapen::Truncated)?;
        (usize::from(length), rest)
    } else if code == long {
        word(rest)?
    } else {
        return Err(Malformed::WrongType(expected));
    };
    Ok(rest.split_at_checked(length).ok_or(Misshapen::Truncated)?)
}

fn text<'a>(bytes: &'a [u8], expected: &'static str) -> Result<&'a str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed::WrongType(expected))
}

fn word(bytes: &[u8]) -> Result<(usize, &[u8]), Malformed> {
    let (word, rest) = bytes.split_first_chunk::<4>().ok_or(Misshapen::Truncated)?;
    let word = usize::try_from(u32::from_be_bytes(*word)).map_err(|_| Misshapen::Truncated)?;
    Ok((word, rest))
}

/// Writes a described list, field by field.
///
/// Trailing fields may be left out by not writing them; the list's head has room for any size.
pub(super) struct ListWriter<'a> {
    out: &'a mut BytesMut,
    head: usize,
    count: u32,
}

impl<'a> ListWriter<'a> {
    pub(super) fn begin(out: &'a mut BytesMut, code: u8) -> Self {
        out.extend_from_slice(&[0x00, 0x53, code, 0xd0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let head = out.len() - 8;
        Self {
            out,
            head,
            count: 0,
        }
    }

    /// Ends the list.
    pub(super) fn end(self) {
        let size = u32::try_from(self.out.len() - self.head - 4).unwrap_or(u32::MAX);
        let both = u64::from(size) << 32 | u64::from(self.count);
        let head = self.out.get_mut(self.head..);
        if let Some(slot) = head.and_then(<[u8]>::first_chunk_mut) {
            *slot = both.to_be_bytes();
        }
    }

    pub(super) fn null(&mut self) {
        self.raw(&[0x40]);
    }

    pub(super) fn uint(&mut self, value: u32) {
        self.count += 1;
        match u8::try_from(value) {
            Ok(0) => self.out.put_u8(0x43),
            Ok(small) => self.out.extend_from_slice(&[0x52, small]),
            Err(_) => {
                self.out.put_u8(0x70);
                self.out.put_u32(value);
            }
        }
    }

    pub(super) fn ulong(&mut self, value: u64) {
        self.count += 1;
        self.out.put_u8(0x80);
        self.out.put_u64(value);
    }

    pub(super) fn ushort(&mut self, value: u16) {
        self.count += 1;
        self.out.put_u8(0x60);
        self.out.put_u16(value);
    }

    pub(super) fn ubyte(&mut self, value: u8) {
        self.count += 1;
        self.out.extend_from_slice(&[0x50, value]);
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.count += 1;
        self.out.put_u8(if value { 0x41 } else { 0x42 });
    }

    pub(super) fn binary(&mut self, value: &[u8]) {
        self.variable(0xa0, value);
    }

    pub(super) fn string(&mut self, value: &str) {
        self.variable(0xa1, value.as_bytes());
    }

    pub(super) fn symbol(&mut self, value: &str) {
        self.variable(0xa3, value.as_bytes());
    }

    fn variable(&mut self, short: u8, value: &[u8]) {
        self.count += 1;
        match u8::try_from(value.len()) {
            Ok(length) => self.out.extend_from_slice(&[short, length]),
            Err(_) => {
                self.out.put_u8(short + 0x10);
                self.out
                    .put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
            }
        }
        self.out.extend_from_slice(value);
    }

    /// Writes a field that is encoded already.
    pub(super) fn raw(&mut self, value: &[u8]) {
        self.count += 1;
        self.out.extend_from_slice(value);
    }

    pub(super) fn raw_or_null(&mut self, value: Option<&[u8]>) {
        self.raw(value.unwrap_or(&[0x40]));
    }

    /// Writes a field that is a described list.
    pub(super) fn list(&mut self, code: u8, write: impl FnOnce(&mut ListWriter<'_>)) {
        self.count += 1;
        let mut inner = ListWriter::begin(self.out, code);
        write(&mut inner);
        inner.end();
    }
}

/// Writes a frame whose fields are few and small, as most frames are: into an array first, so that
/// the output is asked for room once.
///
/// The bytes are those that [`ListWriter`] writes.
pub(super) struct SmallFrame {
    bytes: [u8; SMALL_FRAME_BYTES],
    length: usize,
    count: u8,
}

/// A frame's head, a list's head, and ten fields of five bytes with a tag of 16.
const SMALL_FRAME_BYTES: usize = FIELDS_AT + 10 * 5 + 18;
/// Where the fields begin.
const FIELDS_AT: usize = 20;

impl SmallFrame {
    pub(super) fn begin(channel: u16, code: u8) -> Self {
        let mut bytes = [0; SMALL_FRAME_BYTES];
        let [c0, c1] = channel.to_be_bytes();
        if let Some(head) = bytes.first_chunk_mut() {
            *head = [0, 0, 0, 0, 2, 0, c0, c1, 0x00, 0x53, code, 0xd0];
        }
        Self {
            bytes,
            length: FIELDS_AT,
            count: 0,
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

    /// Appends the frame, with the length of the payload that follows it.
    pub(super) fn end(mut self, out: &mut BytesMut, payload: usize) {
        let fill = |bytes: &mut [u8], at: usize, value: usize| {
            let value = u32::try_from(value).unwrap_or(u32::MAX);
            if let Some(slot) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *slot = value.to_be_bytes();
            }
        };
        fill(&mut self.bytes, 0, self.length + payload);
        fill(&mut self.bytes, FIELDS_AT - 8, self.length - FIELDS_AT + 4);
        fill(&mut self.bytes, FIELDS_AT - 4, usize::from(self.count));
        out.reserve(self.length + payload);
        out.extend_from_slice(self.bytes.get(..self.length).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame::{self, FrameKind};
    use super::*;

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
                let mut list = ListWriter::begin(out, code);
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
            let mut small = SmallFrame::begin(channel, code);
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
