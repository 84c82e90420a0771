//! The PROXY protocol, version 2 (haproxy's proxy-protocol.txt, section 2.2): the header in front of a connection's bytes by
//! which a balancer, or another server of the fleet, says who the client is.
//!
//! A header is read to its last byte and no further, so that TLS or AMQP follows. Its length is checked before memory is taken
//! for it. Fields of unknown kinds are skipped. The callers decide whose headers are believed, and how long they wait for one.
//!
//! Crates that parse it (`ppp`, `proxy-header`, `proxy-protocol-rs`) were compared. The first two verify no checksum, the third
//! takes version 1 too, and all leave the bounded read to the caller, which is most of this file.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::limits;

/// The kinds of fields (section 2.2.1).
pub(crate) mod field {
    /// The name of the server that the client asked TLS for.
    pub(crate) const AUTHORITY: u8 = 0x02;
    /// The checksum of the header.
    pub(super) const CRC32C: u8 = 0x03;
    /// What TLS says of the client.
    pub(crate) const SSL: u8 = 0x20;
    /// Within [`SSL`]: the common name of the client's certificate.
    pub(crate) const SSL_CN: u8 = 0x22;
    /// A bit of the first byte of [`SSL`] (section 2.2.6): the client came over TLS.
    pub(crate) const CLIENT_SSL: u8 = 0x01;
    /// A bit of that byte: the client has shown a certificate in this connection.
    pub(crate) const CLIENT_CERT_CONN: u8 = 0x02;
}

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The fixed part: the signature, version and command, family, length.
const FIXED: usize = 16;
/// The first bits of the byte that has the command, too.
const VERSION: u8 = 0x20;
const LOCAL: u8 = 0;
const PROXY: u8 = 1;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
/// The head of a field: its kind and its length.
const FIELD_HEAD: usize = 3;

/// A header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ProxyHeader {
    /// The client's address; none of a connection that the sender makes for itself, such as a health check.
    pub(crate) source: Option<SocketAddr>,
    /// The fields behind the addresses: kinds and values.
    fields: Vec<(u8, Vec<u8>)>,
}

/// Why a header is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error(
        "the connection does not begin with a header of the PROXY protocol, version 2, but with {0}"
    )]
    Missing(Beginning),
    #[error("the header of the PROXY protocol has the version {0}, and only 2 is known")]
    Version(u8),
    #[error("the header of the PROXY protocol has the unknown command {0}")]
    Command(u8),
    #[error(
        "the header of the PROXY protocol has the family {0:#04x}, and only TCP over IPv4 (0x11) or IPv6 (0x21) is accepted"
    )]
    Family(u8),
    #[error(
        "the header of the PROXY protocol has {0} bytes behind its fixed part, and at most {max} are read",
        max = limits::PROXY_HEADER_BYTES_MAX
    )]
    Long(usize),
    #[error(
        "the header of the PROXY protocol is too short for its addresses or for one of its fields"
    )]
    Short,
    #[error("the checksum of the header of the PROXY protocol is wrong")]
    Checksum,
    #[error("the connection has ended within the header of the PROXY protocol")]
    Ended,
    #[error("the header of the PROXY protocol cannot be read: {0}")]
    Read(#[from] io::Error),
}

/// What a connection begins with in place of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    Amqp,
    Other,
    Tls,
    VersionOne,
}

impl fmt::Display for Beginning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Amqp => "AMQP",
            Self::Other => "other bytes",
            Self::Tls => "TLS",
            Self::VersionOne => "the header of version 1",
        })
    }
}

impl Beginning {
    /// Returns what the first bytes of a connection are the beginning of; a part of a word suffices.
    fn of(bytes: &[u8]) -> Self {
        let begins = |word: &[u8]| word.starts_with(bytes) || bytes.starts_with(word);
        match bytes {
            [0x16, ..] => Self::Tls,
            _ if begins(b"AMQP") => Self::Amqp,
            _ if begins(b"PROXY ") => Self::VersionOne,
            _ => Self::Other,
        }
    }
}

impl ProxyHeader {
    /// Makes the header of a client's connection.
    pub(crate) fn new(source: SocketAddr) -> Self {
        Self {
            source: Some(source),
            fields: Vec::new(),
        }
    }

    /// Adds a field.
    ///
    /// # Panics
    ///
    /// If its value is longer than a whole header may be.
    pub(crate) fn add(&mut self, kind: u8, value: Vec<u8>) {
        assert!(
            value.len() <= limits::PROXY_HEADER_BYTES_MAX,
            "a field is a part of the header"
        );
        self.fields.push((kind, value));
    }

    /// Returns the value of the first field of a kind.
    pub(crate) fn field(&self, kind: u8) -> Option<&[u8]> {
        let found = self.fields.iter().find(|(found, _)| *found == kind);
        found.map(|(_, value)| value.as_slice())
    }

    /// Writes the header.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut rest = Vec::new();
        let (command, family) = match self.source {
            // The second address is the one that the client has connected to, which is not asked for.
            Some(SocketAddr::V4(source)) => {
                rest.extend(source.ip().octets());
                rest.extend(Ipv4Addr::UNSPECIFIED.octets());
                (PROXY, TCP4)
            }
            Some(SocketAddr::V6(source)) => {
                rest.extend(source.ip().octets());
                rest.extend(Ipv6Addr::UNSPECIFIED.octets());
                (PROXY, TCP6)
            }
            None => (LOCAL, 0),
        };
        if let Some(source) = self.source {
            rest.extend(source.port().to_be_bytes());
            rest.extend([0; 2]);
        }
        for (kind, value) in &self.fields {
            write_field(&mut rest, *kind, value);
        }
        let mut header = SIGNATURE.to_vec();
        header.extend([VERSION | command, family]);
        header.extend(length_of(&rest));
        header.extend(rest);
        header
    }

    /// Reads the header in front of a connection's bytes, and nothing behind it.
    ///
    /// # Errors
    ///
    /// There is none, or it is wrong. What is no header is refused at its first wrong byte.
    pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Self, HeaderError> {
        let mut whole = vec![0; FIXED];
        let mut count = 0;
        while count < FIXED {
            let left = whole.get_mut(count..).unwrap_or_default();
            let read = stream.read(left).await?;
            if read == 0 {
                return Err(HeaderError::Ended);
            }
            count += read;
            let bytes = whole.get(..count).unwrap_or_default();
            let signature = bytes.get(..SIGNATURE.len()).unwrap_or(bytes);
            if !SIGNATURE.starts_with(signature) {
                return Err(HeaderError::Missing(Beginning::of(bytes)));
            }
        }
        let Some(&[command, family, high, low]) = whole.last_chunk() else {
            return Err(HeaderError::Short);
        };
        if command & 0xf0 != VERSION {
            return Err(HeaderError::Version(command >> 4));
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        if limits::PROXY_HEADER_BYTES_MAX < length {
            return Err(HeaderError::Long(length));
        }
        whole.resize(FIXED + length, 0);
        let rest = whole.get_mut(FIXED..).unwrap_or_default();
        match stream.read_exact(rest).await {
            Ok(_) => Self::decode(command & 0x0f, family, &whole),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(HeaderError::Ended),
            Err(error) => Err(error.into()),
        }
    }

    fn decode(command: u8, family: u8, whole: &[u8]) -> Result<Self, HeaderError> {
        let rest = whole.get(FIXED..).unwrap_or_default();
        let (source, addresses): (SocketAddr, usize) = match (command, family) {
            // The sender's own connection: everything else in the header is to be ignored.
            (LOCAL, _) => return Ok(Self::default()),
            (PROXY, TCP4) => {
                let (addresses, _) = rest.split_first_chunk::<12>().ok_or(HeaderError::Short)?;
                let [a, b, c, d, _, _, _, _, high, low, _, _] = *addresses;
                let port = u16::from_be_bytes([high, low]);
                (SocketAddr::from(([a, b, c, d], port)), addresses.len())
            }
            (PROXY, TCP6) => {
                let (addresses, _) = rest.split_first_chunk::<36>().ok_or(HeaderError::Short)?;
                let source: [u8; 16] = *addresses.first_chunk().ok_or(HeaderError::Short)?;
                let [high, low, _, _]: [u8; 4] =
                    *addresses.last_chunk().ok_or(HeaderError::Short)?;
                let source = IpAddr::from(source).to_canonical();
                let port = u16::from_be_bytes([high, low]);
                (SocketAddr::new(source, port), addresses.len())
            }
            (PROXY, _) => return Err(HeaderError::Family(family)),
            (command, _) => return Err(HeaderError::Command(command)),
        };
        let mut header = Self::new(source);
        let mut at = FIXED + addresses;
        for field in fields(rest.get(addresses..).unwrap_or_default()) {
            let (kind, value) = field?;
            at += FIELD_HEAD;
            if kind == field::CRC32C {
                check(whole, at, value)?;
            }
            at += value.len();
            header.fields.push((kind, value.to_vec()));
        }
        Ok(header)
    }
}

/// Returns fields: kinds and values. After a field that is not whole there is an error, and nothing more.
pub(crate) fn fields(bytes: &[u8]) -> impl Iterator<Item = Result<(u8, &[u8]), HeaderError>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = rest.split_first_chunk::<FIELD_HEAD>();
        let field = field.and_then(|(&[kind, high, low], after)| {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let (value, after) = after.split_at_checked(length)?;
            Some((kind, value, after))
        });
        let Some((kind, value, after)) = field else {
            rest = &[];
            return Some(Err(HeaderError::Short));
        };
        rest = after;
        Some(Ok((kind, value)))
    })
}

/// Writes a field.
pub(crate) fn write_field(bytes: &mut Vec<u8>, kind: u8, value: &[u8]) {
    bytes.push(kind);
    bytes.extend(length_of(value));
    bytes.extend(value);
}

fn length_of(bytes: &[u8]) -> [u8; 2] {
    let length = u16::try_from(bytes.len());
    length.expect("a header is shorter").to_be_bytes()
}

/// Verifies the checksum of a header, `value`, which is at `at`. It is computed with zeros in its own place (section 2.2.3).
fn check(whole: &[u8], at: usize, value: &[u8]) -> Result<(), HeaderError> {
    let said: [u8; 4] = value.try_into().map_err(|_| HeaderError::Checksum)?;
    let before = whole.get(..at).unwrap_or_default();
    let after = whole.get(at + said.len()..).unwrap_or_default();
    let sum = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    let sum = crc32c::crc32c_append(sum, after);
    if sum == u32::from_be_bytes(said) {
        Ok(())
    } else {
        Err(HeaderError::Checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "192.0.2.7:5555";
    const V6: &str = "[2001:db8::1]:443";

    fn header(source: &str) -> ProxyHeader {
        ProxyHeader::new(source.parse().unwrap())
    }

    /// A header with bytes behind its fixed part.
    fn raw(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([command, family]);
        bytes.extend(length_of(rest));
        bytes.extend(rest);
        bytes
    }

    /// A header with a checksum of its own between other fields.
    fn summed() -> (Vec<u8>, usize) {
        let mut summed = header(V4);
        summed.add(0x04, vec![0; 9]);
        summed.add(field::CRC32C, vec![0; 4]);
        summed.add(field::AUTHORITY, b"one.example".to_vec());
        let mut bytes = summed.encode();
        let at = FIXED + 12 + FIELD_HEAD + 9 + FIELD_HEAD;
        let sum = crc32c::crc32c(&bytes).to_be_bytes();
        bytes[at..at + 4].copy_from_slice(&sum);
        (bytes, at)
    }

    async fn read(mut bytes: &[u8]) -> Result<ProxyHeader, HeaderError> {
        ProxyHeader::read(&mut bytes).await
    }

    #[tokio::test]
    async fn a_header_is_read_as_it_was_written_and_nothing_behind_it() {
        let mut full = header(V6);
        full.add(field::AUTHORITY, b"one.example".to_vec());
        full.add(0xee, b"of a vendor".to_vec());
        for header in [ProxyHeader::default(), header(V4), full] {
            let mut bytes = header.encode();
            bytes.extend(b"AMQP");
            let mut stream = &bytes[..];
            assert_eq!(ProxyHeader::read(&mut stream).await.unwrap(), header);
            assert_eq!(stream, b"AMQP");
        }
    }

    #[tokio::test]
    async fn a_header_that_comes_byte_by_byte_is_read() {
        let bytes = header(V4).encode();
        let (mut near, mut far) = tokio::io::duplex(1);
        let write = async {
            tokio::io::AsyncWriteExt::write_all(&mut near, &bytes)
                .await
                .unwrap();
        };
        let (read, ()) = tokio::join!(ProxyHeader::read(&mut far), write);
        assert_eq!(read.unwrap(), header(V4));
    }

    #[tokio::test]
    async fn an_address_of_ipv4_within_ipv6_is_that_of_ipv4() {
        let read = read(&header("[::ffff:192.0.2.7]:5555").encode()).await;
        assert_eq!(read.unwrap().source, Some(V4.parse().unwrap()));
    }

    #[tokio::test]
    async fn what_is_behind_the_command_local_is_ignored() {
        for (family, rest) in [
            (0, vec![]),
            (TCP4, vec![7; 12]),
            (0x31, vec![7; 216]),
            (0xff, vec![1, 2]),
            (TCP4, vec![field::CRC32C, 0, 4, 1, 2, 3, 4]),
        ] {
            let read = read(&raw(VERSION | LOCAL, family, &rest)).await;
            assert_eq!(read.unwrap(), ProxyHeader::default(), "{family:#04x}");
        }
    }

    #[tokio::test]
    async fn a_header_that_is_cut_off_is_refused() {
        let (whole, _) = summed();
        for length in 0..whole.len() {
            let read = read(&whole[..length]).await;
            assert!(matches!(read, Err(HeaderError::Ended)), "{length}");
        }
    }

    #[tokio::test]
    async fn what_is_no_header_is_refused_at_its_first_wrong_byte() {
        for (bytes, beginning) in [
            (&b"A"[..], Beginning::Amqp),
            (b"AMQP\0\x01\0\0", Beginning::Amqp),
            (b"\x16\x03\x01", Beginning::Tls),
            (
                b"PROXY TCP4 192.0.2.7 192.0.2.8 5555 5672\r\n",
                Beginning::VersionOne,
            ),
            (b"GET / HTTP/1.1\r\n", Beginning::Other),
            (b"\r\n\r\n\0\r\nQUIT\r", Beginning::Other),
        ] {
            // The other end stays open: what is missing may never come.
            let (mut near, mut far) = tokio::io::duplex(64);
            tokio::io::AsyncWriteExt::write_all(&mut near, bytes)
                .await
                .unwrap();
            let read = ProxyHeader::read(&mut far).await;
            let found = match read {
                Err(HeaderError::Missing(found)) => found,
                other => panic!("{bytes:?}: {other:?}"),
            };
            assert_eq!(found, beginning, "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn a_length_beyond_the_bound_is_refused_before_its_bytes() {
        let mut bytes = raw(VERSION | PROXY, TCP4, &[]);
        for length in [limits::PROXY_HEADER_BYTES_MAX + 1, 0xffff] {
            let length = u16::try_from(length).unwrap();
            bytes[14..16].copy_from_slice(&length.to_be_bytes());
            let (mut near, mut far) = tokio::io::duplex(64);
            tokio::io::AsyncWriteExt::write_all(&mut near, &bytes)
                .await
                .unwrap();
            let read = ProxyHeader::read(&mut far).await;
            assert!(matches!(read, Err(HeaderError::Long(_))), "{read:?}");
        }
        let mut longest = vec![0; 12];
        write_field(
            &mut longest,
            0x04,
            &vec![0; limits::PROXY_HEADER_BYTES_MAX - 15],
        );
        assert!(read(&raw(VERSION | PROXY, TCP4, &longest)).await.is_ok());
    }

    #[tokio::test]
    async fn other_versions_commands_and_families_are_refused() {
        let addresses = [0; 216];
        for version in [0x01, 0x11, 0x31, 0xf1] {
            let read = read(&raw(version, TCP4, &addresses)).await;
            assert!(
                matches!(read, Err(HeaderError::Version(_))),
                "{version:#04x}"
            );
        }
        for command in 2..16 {
            let read = read(&raw(VERSION | command, TCP4, &addresses)).await;
            assert!(matches!(read, Err(HeaderError::Command(_))), "{command}");
        }
        for family in (0..=0xff).filter(|family| ![TCP4, TCP6].contains(family)) {
            let read = read(&raw(VERSION | PROXY, family, &addresses)).await;
            assert!(matches!(read, Err(HeaderError::Family(_))), "{family:#04x}");
        }
    }

    #[tokio::test]
    async fn a_length_that_fits_neither_the_addresses_nor_the_fields_is_refused() {
        let field = [0xee, 0, 3, 1, 2, 3];
        for (family, addresses) in [(TCP4, 12), (TCP6, 36)] {
            for length in 0..addresses {
                let read = read(&raw(VERSION | PROXY, family, &vec![0; length])).await;
                assert!(matches!(read, Err(HeaderError::Short)), "{length}");
            }
            for length in 1..field.len() {
                let rest = [&vec![0; addresses][..], &field[..length]].concat();
                let read = read(&raw(VERSION | PROXY, family, &rest)).await;
                assert!(matches!(read, Err(HeaderError::Short)), "{length}");
            }
        }
    }

    #[tokio::test]
    async fn a_checksum_is_verified_if_there_is_one() {
        let (whole, at) = summed();
        let found = read(&whole).await.unwrap();
        assert_eq!(found.field(field::AUTHORITY), Some(&b"one.example"[..]));
        // Any bit of the addresses, of the checksum and of the values of fields.
        for changed in (FIXED..FIXED + 12)
            .chain(at..at + 4)
            .chain(whole.len() - 11..whole.len())
        {
            let mut bytes = whole.clone();
            bytes[changed] ^= 1;
            let read = read(&bytes).await;
            assert!(matches!(read, Err(HeaderError::Checksum)), "{changed}");
        }
        let mut short = header(V4);
        short.add(field::CRC32C, vec![0; 3]);
        assert!(matches!(
            read(&short.encode()).await,
            Err(HeaderError::Checksum)
        ));
    }
}
