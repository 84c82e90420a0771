//! Who the client is whose bytes follow: the PROXY protocol, version 2 (haproxy's proxy-protocol.txt, section 2.2), with what
//! TLS has proved in fields of our own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::limits;

/// The client of a connection that is passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Client {
    /// Its address; none of a local connection, such as a health check.
    pub(super) address: Option<IpAddr>,
    /// The name of the server that it asked TLS or HTTP for.
    pub(super) server_name: Option<String>,
    /// Whom its certificate names, if it showed one and it was verified.
    pub(super) certificate: Option<String>,
    /// It came over TLS.
    pub(super) is_secure: bool,
}

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The fixed part: the signature, version and command, family, length.
const FIXED: usize = 16;
const VERSION: u8 = 0x20;
const PROXY: u8 = 1;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
/// The server's name (section 2.2.2).
const AUTHORITY: u8 = 0x02;
/// Ours, of the range for applications (section 2.2.7): the name in the certificate.
const CERTIFICATE: u8 = 0xe0;
/// Ours: the client came over TLS.
const SECURE: u8 = 0xe1;

impl Client {
    /// Writes the header.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut rest = Vec::new();
        let family = match self.address {
            Some(IpAddr::V4(address)) => {
                rest.extend(address.octets());
                rest.extend(Ipv4Addr::UNSPECIFIED.octets());
                rest.extend([0; 4]);
                TCP4
            }
            Some(IpAddr::V6(address)) => {
                rest.extend(address.octets());
                rest.extend(Ipv6Addr::UNSPECIFIED.octets());
                rest.extend([0; 4]);
                TCP6
            }
            None => 0,
        };
        let fields = [
            (AUTHORITY, self.server_name.as_deref()),
            (CERTIFICATE, self.certificate.as_deref()),
            (SECURE, self.is_secure.then_some("")),
        ];
        for (kind, value) in fields {
            // A longer name is none that a certificate or a host has.
            let value = value.filter(|value| value.len() <= limits::PEER_NAME_BYTES_MAX);
            if let Some((value, length)) =
                value.and_then(|it| Some((it, u16::try_from(it.len()).ok()?)))
            {
                rest.push(kind);
                rest.extend(length.to_be_bytes());
                rest.extend(value.as_bytes());
            }
        }
        let command = if family == 0 { 0 } else { PROXY };
        let length = u16::try_from(rest.len()).unwrap_or_default();
        let mut header = SIGNATURE.to_vec();
        header.extend([VERSION | command, family]);
        header.extend(length.to_be_bytes());
        header.extend(rest);
        header
    }

    /// Reads the header in front of a connection's bytes.
    ///
    /// # Errors
    ///
    /// There is none, or it is longer than ever is needed.
    pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut fixed = [0; FIXED];
        stream.read_exact(&mut fixed).await?;
        let [.., command, family, high, low] = fixed;
        if !fixed.starts_with(&SIGNATURE) || command & 0xf0 != VERSION || PROXY < command & 0x0f {
            return Err(wrong("there is no header of the PROXY protocol, version 2"));
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        if limits::PEER_HEADER_BYTES_MAX < length {
            return Err(wrong("the header of the PROXY protocol is too long"));
        }
        let mut rest = vec![0; length];
        stream.read_exact(&mut rest).await?;
        Self::decode(command & 0x0f, family, &rest)
            .ok_or_else(|| wrong("the header of the PROXY protocol is not whole"))
    }

    fn decode(command: u8, family: u8, rest: &[u8]) -> Option<Self> {
        let (address, mut rest): (Option<IpAddr>, &[u8]) = match (command, family) {
            (PROXY, TCP4) => {
                let (addresses, rest) = rest.split_first_chunk::<12>()?;
                let source: [u8; 4] = *addresses.first_chunk()?;
                (Some(IpAddr::from(source)), rest)
            }
            (PROXY, TCP6) => {
                let (addresses, rest) = rest.split_first_chunk::<36>()?;
                let source: [u8; 16] = *addresses.first_chunk()?;
                (Some(IpAddr::from(source)), rest)
            }
            // A connection of the balancer's own: what follows is not for us.
            _ => (None, &[]),
        };
        let mut client = Self {
            address,
            server_name: None,
            certificate: None,
            is_secure: false,
        };
        while let Some((&[kind, high, low], value)) = rest.split_first_chunk() {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let (value, after) = value.split_at_checked(length)?;
            let text = || String::from_utf8(value.to_vec()).ok();
            match kind {
                AUTHORITY => client.server_name = Some(text()?),
                CERTIFICATE => client.certificate = Some(text()?),
                SECURE => client.is_secure = true,
                _ => {}
            }
            rest = after;
        }
        rest.is_empty().then_some(client)
    }
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients() -> Vec<Client> {
        let none = Client {
            address: None,
            server_name: None,
            certificate: None,
            is_secure: false,
        };
        vec![
            none.clone(),
            Client {
                address: Some("192.0.2.7".parse().unwrap()),
                ..none.clone()
            },
            Client {
                address: Some("2001:db8::1".parse().unwrap()),
                server_name: Some("one.example".to_owned()),
                certificate: Some("sender".to_owned()),
                is_secure: true,
            },
        ]
    }

    #[tokio::test]
    async fn a_header_is_read_as_it_was_written_and_nothing_behind_it() {
        for client in clients() {
            let mut bytes = client.encode();
            bytes.extend(b"AMQP");
            let mut stream = &bytes[..];
            let read = Client::read(&mut stream).await.unwrap();
            let expected = if client.address.is_some() {
                client
            } else {
                clients().remove(0)
            };
            assert_eq!(read, expected);
            assert_eq!(stream, b"AMQP");
        }
    }

    #[tokio::test]
    async fn a_header_that_is_cut_off_or_changed_is_refused() {
        let whole = clients()[2].encode();
        for length in 0..whole.len() {
            assert!(
                Client::read(&mut &whole[..length]).await.is_err(),
                "{length}"
            );
        }
        for at in (0..14).filter(|at| *at != 13) {
            let mut changed = whole.clone();
            changed[at] ^= 0x44;
            assert!(Client::read(&mut &changed[..]).await.is_err(), "{at}");
        }
        let mut long = whole.clone();
        (long[14], long[15]) = (0xff, 0xff);
        long.resize(70_000, 0);
        assert!(Client::read(&mut &long[..]).await.is_err());
        // A field that is longer than the header.
        let mut field = whole;
        field[16 + 36 + 2] = 0xf0;
        assert!(Client::read(&mut &field[..]).await.is_err());
    }
}
