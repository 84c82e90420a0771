//! Described lists, such as performatives: their fields are read and written one after the other,
//! each as the type that the specification gives it.
//!
//! Nothing is allocated, and no length is believed that the bytes do not hold.

use bytes::BytesMut;

use super::constructor::{NULL, Prefix};
use super::descriptor::{self, DescriptorError};
use super::shape::{Misshapen, value_length};
use super::write;

/// Why a described list cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Undecodable {
    #[error("{0}")]
    Misshapen(#[from] Misshapen),
    #[error("a field is not {0}")]
    WrongType(&'static str),
    #[error("the field {0} is missing")]
    Missing(&'static str),
    #[error("{0}")]
    Descriptor(#[from] DescriptorError),
    #[error("it is not a list")]
    NotAList,
}

/// The fields of a list that are not read yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> List<'a> {
    /// Reads a list's head; returns its fields and the bytes after it.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Undecodable> {
        let (prefix, rest) = match bytes {
            [0x45, rest @ ..] => return Ok((Self { rest: &[], left: 0 }, rest)),
            [0xc0, rest @ ..] => (Prefix::Byte, rest),
            [0xd0, rest @ ..] => (Prefix::Word, rest),
            _ => return Err(Undecodable::NotAList),
        };
        let (size, rest) = prefix.split(rest).ok_or(Misshapen::Truncated)?;
        let (inner, after) = rest.split_at_checked(size).ok_or(Misshapen::Truncated)?;
        let (left, rest) = prefix.split(inner).ok_or(Misshapen::Truncated)?;
        Ok((Self { rest, left }, after))
    }

    /// Reads a described list; bytes after it are ignored.
    pub(crate) fn described(bytes: &'a [u8]) -> Result<(u64, Self), Undecodable> {
        let (code, rest) = descriptor::read(bytes)?;
        Ok((code, Self::open(rest)?.0))
    }

    /// Takes the constructor of the next field; none when it is null or left out.
    fn next(&mut self) -> Result<Option<u8>, Undecodable> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let (&code, rest) = self.rest.split_first().ok_or(Misshapen::Truncated)?;
        self.rest = rest;
        Ok((code != NULL).then_some(code))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Undecodable> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Misshapen::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(crate) fn uint(&mut self) -> Result<Option<u32>, Undecodable> {
        Ok(Some(match self.next()? {
            None => return Ok(None),
            Some(0x43) => 0,
            Some(0x52) => u32::from(self.fixed::<1>()?[0]),
            Some(0x70) => u32::from_be_bytes(self.fixed()?),
            Some(_) => return Err(Undecodable::WrongType("a uint")),
        }))
    }

    pub(crate) fn ulong(&mut self) -> Result<Option<u64>, Undecodable> {
        Ok(Some(match self.next()? {
            None => return Ok(None),
            Some(0x44) => 0,
            Some(0x53) => u64::from(self.fixed::<1>()?[0]),
            Some(0x80) => u64::from_be_bytes(self.fixed()?),
            Some(_) => return Err(Undecodable::WrongType("a ulong")),
        }))
    }

    pub(crate) fn ushort(&mut self) -> Result<Option<u16>, Undecodable> {
        match self.next()? {
            None => Ok(None),
            Some(0x60) => Ok(Some(u16::from_be_bytes(self.fixed()?))),
            Some(_) => Err(Undecodable::WrongType("a ushort")),
        }
    }

    pub(crate) fn ubyte(&mut self) -> Result<Option<u8>, Undecodable> {
        match self.next()? {
            None => Ok(None),
            Some(0x50) => Ok(Some(self.fixed::<1>()?[0])),
            Some(_) => Err(Undecodable::WrongType("a ubyte")),
        }
    }

    pub(crate) fn boolean(&mut self) -> Result<Option<bool>, Undecodable> {
        match self.next()? {
            None => Ok(None),
            Some(0x41) => Ok(Some(true)),
            Some(0x42) => Ok(Some(false)),
            Some(0x56) => Ok(Some(self.fixed::<1>()?[0] != 0)),
            Some(_) => Err(Undecodable::WrongType("a boolean")),
        }
    }

    pub(crate) fn binary(&mut self) -> Result<Option<&'a [u8]>, Undecodable> {
        self.variable(0xa0, 0xb0, "a binary")
    }

    pub(crate) fn string(&mut self) -> Result<Option<&'a str>, Undecodable> {
        let bytes = self.variable(0xa1, 0xb1, "a string")?;
        bytes
            .map(|bytes| text(bytes, "a string in UTF-8"))
            .transpose()
    }

    pub(crate) fn symbol(&mut self) -> Result<Option<&'a str>, Undecodable> {
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
    ) -> Result<Option<&'a [u8]>, Undecodable> {
        let Some(code) = self.next()? else {
            return Ok(None);
        };
        let (bytes, rest) = variable(code, short, long, self.rest, expected)?;
        self.rest = rest;
        Ok(Some(bytes))
    }

    /// Returns the next field as it is encoded, checked for its shape.
    pub(crate) fn raw(&mut self) -> Result<Option<&'a [u8]>, Undecodable> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let length = match self.rest {
            [NULL, ..] => 1,
            // An outcome without fields, as most are.
            [0x00, 0x53, _, 0x45, ..] => 4,
            rest => value_length(rest)?,
        };
        let (value, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Misshapen::Truncated)?;
        self.rest = rest;
        Ok((value != [NULL]).then_some(value))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }
}

fn variable<'a>(
    code: u8,
    short: u8,
    long: u8,
    rest: &'a [u8],
    expected: &'static str,
) -> Result<(&'a [u8], &'a [u8]), Undecodable> {
    let prefix = if code == short {
        Prefix::Byte
    } else if code == long {
        Prefix::Word
    } else {
        return Err(Undecodable::WrongType(expected));
    };
    let (length, rest) = prefix.split(rest).ok_or(Misshapen::Truncated)?;
    Ok(rest.split_at_checked(length).ok_or(Misshapen::Truncated)?)
}

fn text<'a>(bytes: &'a [u8], expected: &'static str) -> Result<&'a str, Undecodable> {
    std::str::from_utf8(bytes).map_err(|_| Undecodable::WrongType(expected))
}

/// Writes a described list, field by field; the list's head has room for any size.
///
/// Fields that are not written are null at the end. AMQP lets a sender leave them out [1.4], but the service
/// never does, and some clients take fields by their index (`transport.md#encoding`).
pub(crate) struct ListWriter<'a> {
    out: &'a mut BytesMut,
    head: usize,
    count: usize,
    fields: usize,
}

impl<'a> ListWriter<'a> {
    /// Begins a list of a type that AMQP defines, by the code of its descriptor.
    #[inline]
    pub(crate) fn begin(out: &'a mut BytesMut, code: u64) -> Self {
        write::write_descriptor(out, code);
        let head = write::begin_list(out);
        Self {
            out,
            head,
            count: 0,
            fields: descriptor::field_count(code),
        }
    }

    /// Ends the list, with null for each field that was not written.
    #[inline]
    pub(crate) fn end(mut self) {
        while self.count < self.fields {
            self.null();
        }
        write::end_compound(self.out, self.head, self.count);
    }

    /// Counts a field that is written next.
    fn field(&mut self) -> &mut BytesMut {
        self.count += 1;
        self.out
    }

    pub(crate) fn null(&mut self) {
        write::write_null(self.field());
    }

    pub(crate) fn uint(&mut self, value: u32) {
        write::write_uint(self.field(), value);
    }

    pub(crate) fn ulong(&mut self, value: u64) {
        write::write_ulong(self.field(), value);
    }

    pub(crate) fn ushort(&mut self, value: u16) {
        write::write_ushort(self.field(), value);
    }

    pub(crate) fn ubyte(&mut self, value: u8) {
        write::write_ubyte(self.field(), value);
    }

    pub(crate) fn boolean(&mut self, value: bool) {
        write::write_boolean(self.field(), value);
    }

    pub(crate) fn binary(&mut self, value: &[u8]) {
        write::write_binary(self.field(), value);
    }

    pub(crate) fn string(&mut self, value: &str) {
        write::write_string(self.field(), value);
    }

    pub(crate) fn symbol(&mut self, value: &str) {
        write::write_symbol(self.field(), value);
    }

    /// Writes a field that is encoded already.
    pub(crate) fn raw(&mut self, value: &[u8]) {
        self.field().extend_from_slice(value);
    }

    /// Writes a field that is encoded already, or null.
    pub(crate) fn raw_or_null(&mut self, value: Option<&[u8]>) {
        self.raw(value.unwrap_or(&[NULL]));
    }

    /// Writes a field that is a described list.
    pub(crate) fn list(&mut self, code: u64, write: impl FnOnce(&mut ListWriter<'_>)) {
        let mut inner = ListWriter::begin(self.field(), code);
        write(&mut inner);
        inner.end();
    }
}
