//! Writing values: appended to whatever bytes are before them.
//!
//! Lists and maps are written with a head for any size, which is filled in when their elements are there.

use bytes::BufMut;

use super::constructor::NULL;

/// Appends the descriptor of a type that AMQP defines.
#[inline]
pub fn write_descriptor(out: &mut impl BufMut, code: u64) {
    match u8::try_from(code) {
        Ok(code) => out.put_slice(&[0x00, 0x53, code]),
        Err(_) => {
            out.put_slice(&[0x00, 0x80]);
            out.put_u64(code);
        }
    }
}

/// Appends null.
pub fn write_null(out: &mut impl BufMut) {
    out.put_u8(NULL);
}

/// Appends a `boolean`.
pub fn write_boolean(out: &mut impl BufMut, value: bool) {
    out.put_u8(if value { 0x41 } else { 0x42 });
}

/// Appends a `uint` in its shortest form.
#[inline]
pub fn write_uint(out: &mut impl BufMut, value: u32) {
    match u8::try_from(value) {
        Ok(0) => out.put_u8(0x43),
        Ok(small) => out.put_slice(&[0x52, small]),
        Err(_) => {
            out.put_u8(0x70);
            out.put_u32(value);
        }
    }
}

/// Appends a `ulong`.
pub fn write_ulong(out: &mut impl BufMut, value: u64) {
    out.put_u8(0x80);
    out.put_u64(value);
}

/// Appends a `ushort`.
pub(crate) fn write_ushort(out: &mut impl BufMut, value: u16) {
    out.put_u8(0x60);
    out.put_u16(value);
}

/// Appends a `ubyte`.
pub(crate) fn write_ubyte(out: &mut impl BufMut, value: u8) {
    out.put_slice(&[0x50, value]);
}

/// Appends a `long`.
pub fn write_long(out: &mut impl BufMut, value: i64) {
    out.put_u8(0x81);
    out.put_i64(value);
}

/// Appends a `timestamp`, in milliseconds since 1970-01-01T00:00:00Z.
#[inline]
pub fn write_timestamp(out: &mut impl BufMut, millis: i64) {
    out.put_u8(0x83);
    out.put_i64(millis);
}

/// Appends a `binary`.
pub fn write_binary(out: &mut impl BufMut, value: &[u8]) {
    write_variable(out, 0xa0, value);
}

/// Appends a `string`.
pub fn write_string(out: &mut impl BufMut, value: &str) {
    write_variable(out, 0xa1, value.as_bytes());
}

/// Appends a `symbol`.
pub fn write_symbol(out: &mut impl BufMut, value: &str) {
    write_variable(out, 0xa3, value.as_bytes());
}

/// Appends a value of variable width; `short` is the constructor for lengths of one byte.
#[inline]
fn write_variable(out: &mut impl BufMut, short: u8, value: &[u8]) {
    if let Ok(length) = u8::try_from(value.len()) {
        out.put_slice(&[short, length]);
    } else {
        out.put_u8(short + 0x10);
        out.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
    }
    out.put_slice(value);
}

/// Appends the head of a list whose elements are appended next; returns what [`end_compound`] needs.
#[inline]
pub fn begin_list(out: &mut (impl BufMut + AsRef<[u8]>)) -> usize {
    begin_compound(out, 0xd0)
}

/// Appends the head of a map whose keys and values are appended next; returns what [`end_compound`] needs.
#[inline]
pub fn begin_map(out: &mut (impl BufMut + AsRef<[u8]>)) -> usize {
    begin_compound(out, 0xd1)
}

/// Appends the head of an array of strings, which [`write_array_string`] appends; returns what [`end_compound`] needs.
pub fn begin_string_array(out: &mut (impl BufMut + AsRef<[u8]>)) -> usize {
    let head = begin_compound(out, 0xf0);
    out.put_u8(0xb1);
    head
}

/// Appends an element of an array of strings.
pub fn write_array_string(out: &mut impl BufMut, value: &str) {
    out.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
    out.put_slice(value.as_bytes());
}

#[inline]
fn begin_compound(out: &mut (impl BufMut + AsRef<[u8]>), code: u8) -> usize {
    out.put_slice(&[code, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.as_ref().len() - 8
}

/// Writes the size and the count of elements, or of keys and values together, into the head of a compound that is complete.
#[inline]
pub fn end_compound(out: &mut [u8], head: usize, count: usize) {
    let size = u32::try_from(out.len() - head - 4).unwrap_or(u32::MAX);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let both = u64::from(size) << 32 | u64::from(count);
    if let Some(slot) = out.get_mut(head..).and_then(<[u8]>::first_chunk_mut) {
        *slot = both.to_be_bytes();
    }
}
