//! Bodies that their senders have compressed, decompressed for people who look at them. Nothing is kept.
//!
//! Only the first [`limits::DECODED_BYTES_MAX`] bytes are decompressed, whatever the body's size.

use std::io::Read;

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};

use crate::limits;

/// A body that was decompressed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    /// The name of the format.
    pub(super) format: &'static str,
    pub(super) bytes: Vec<u8>,
    /// These are the first bytes only.
    pub(super) truncated: bool,
}

/// Returns the decompressed body if its first bytes, or what its sender says of it (`content-encoding`), tell a format, and it
/// is of that format.
pub(super) fn decode(body: &[u8], encoding: Option<&str>) -> Option<Decoded> {
    let said = encoding.map(|encoding| encoding.trim().to_ascii_lowercase());
    match (body, said.as_deref()) {
        ([0x1f, 0x8b, 8, ..], _) => read("gzip", GzDecoder::new(body)),
        ([b'P', b'K', 3, 4, ..], _) => unzip(body),
        (_, Some("br" | "brotli")) => {
            let buffer = limits::DECODED_BYTES_MAX.min(BROTLI_BUFFER);
            read(
                "brotli",
                brotli_decompressor::Decompressor::new(body, buffer),
            )
        }
        // RFC 1950, section 2.2: method 8, and a multiple of 31.
        ([first, second, ..], _) if is_zlib(*first, *second) => {
            read("deflate", ZlibDecoder::new(body))
        }
        // Some senders mean the bare format by that.
        (_, Some("deflate")) => read("deflate", DeflateDecoder::new(body)),
        _ => None,
    }
}

/// Bytes that are read at a time.
const BROTLI_BUFFER: usize = 4_096;

fn is_zlib(first: u8, second: u8) -> bool {
    first & 0x8f == 8 && (u16::from(first) << 8 | u16::from(second)).is_multiple_of(31)
}

fn read(format: &'static str, from: impl Read) -> Option<Decoded> {
    let most = limits::DECODED_BYTES_MAX;
    let mut bytes = Vec::new();
    let more = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    from.take(more).read_to_end(&mut bytes).ok()?;
    let truncated = most < bytes.len();
    bytes.truncate(most);
    Some(Decoded {
        format,
        bytes,
        truncated,
    })
}

/// Returns the first file of an archive (PKWARE's APPNOTE 6.3.10, section 4.3.7).
fn unzip(body: &[u8]) -> Option<Decoded> {
    let two = |at: usize| Some(u16::from_le_bytes(body.get(at..at + 2)?.try_into().ok()?));
    let four = |at: usize| Some(u32::from_le_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let (method, size) = (two(8)?, usize::try_from(four(18)?).ok()?);
    let start = 30 + usize::from(two(26)?) + usize::from(two(28)?);
    let content = body.get(start..)?;
    match method {
        0 => read("zip", content.get(..size)?),
        8 => read("zip", DeflateDecoder::new(content)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"a body of a message, a body of a message, a body of a message";

    fn text(decoded: Option<Decoded>) -> (&'static str, Vec<u8>) {
        let decoded = decoded.unwrap();
        assert!(!decoded.truncated);
        (decoded.format, decoded.bytes)
    }

    fn deflated() -> Vec<u8> {
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        bare.write_all(TEXT).unwrap();
        bare.finish().unwrap()
    }

    /// An archive with one file.
    fn archive(method: u16, content: &[u8]) -> Vec<u8> {
        let size = u32::try_from(content.len()).unwrap();
        let mut out = b"PK\x03\x04\x14\0\0\0".to_vec();
        out.extend(method.to_le_bytes());
        out.extend([0; 8]);
        out.extend(size.to_le_bytes());
        out.extend(u32::try_from(TEXT.len()).unwrap().to_le_bytes());
        out.extend([5, 0, 2, 0]);
        out.extend(b"a.txtXX");
        out.extend(content);
        out
    }

    #[test]
    fn each_format_is_read() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(TEXT).unwrap();
        let gzip = gzip.finish().unwrap();
        assert_eq!(text(decode(&gzip, None)), ("gzip", TEXT.to_vec()));
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(TEXT).unwrap();
        let zlib = zlib.finish().unwrap();
        assert_eq!(text(decode(&zlib, None)), ("deflate", TEXT.to_vec()));
        let bare = text(decode(&deflated(), Some(" Deflate ")));
        assert_eq!(bare, ("deflate", TEXT.to_vec()));
        let zip = text(decode(&archive(8, &deflated()), None));
        assert_eq!(zip, ("zip", TEXT.to_vec()));
        let stored = text(decode(&archive(0, TEXT), None));
        assert_eq!(stored, ("zip", TEXT.to_vec()));
        // A block that is not compressed, and an empty last one (RFC 7932, section 9).
        let brotli = b"\x0b\x02\x80hello\x03";
        let brotli = text(decode(brotli, Some("br")));
        assert_eq!(brotli, ("brotli", b"hello".to_vec()));
    }

    #[test]
    fn what_is_not_compressed_is_left_alone() {
        for body in [
            &b""[..],
            b"hello",
            b"\x1f\x8b\x08 no gzip",
            b"PK\x03\x04",
            b"PK\x03\x04\x14\0\0\0\x08\0aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            b"x\x9c no zlib",
            b"{\"a\": 1}",
        ] {
            assert_eq!(decode(body, None), None, "{body:?}");
            assert_eq!(decode(body, Some("identity")), None, "{body:?}");
        }
        assert_eq!(decode(b"\xff\xff\xff\xff", Some("br")), None);
        assert_eq!(decode(b"\xff\xff\xff\xff", Some("deflate")), None);
        assert_eq!(decode(&archive(99, TEXT), None), None);
    }

    #[test]
    fn a_body_that_expands_without_end_is_cut() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        let zeros = vec![0; limits::DECODED_BYTES_MAX];
        for _ in 0..100 {
            gzip.write_all(&zeros).unwrap();
        }
        let decoded = decode(&gzip.finish().unwrap(), None).unwrap();
        assert!(decoded.truncated);
        assert_eq!(decoded.bytes, zeros);
    }
}
