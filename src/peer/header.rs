//! The header of the PROXY protocol by which one server of the fleet tells another whose bytes follow. What TLS has proved of the client
//! is in its fields. The header is believed because its sender has shown a certificate of the store's authority.

use std::net::{IpAddr, SocketAddr};

use tokio::io::AsyncRead;

use crate::limits;
use crate::net::proxy_protocol::{HeaderError, ProxyHeader, field, fields, write_field};
use crate::net::scheme::Scheme;

/// The client of a connection that is passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OriginalClient {
    pub(crate) address: IpAddr,
    /// The name of the server that it asked TLS or HTTP for.
    pub(crate) server_name: Option<String>,
    /// Whom its certificate names, if it showed one and it was verified.
    pub(crate) certificate: Option<String>,
    pub(crate) scheme: Scheme,
}

/// Why a connection of another server is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("the header of the PROXY protocol does not say who the client is")]
    Unknown,
    #[error("the field {0:#04x} of the header of the PROXY protocol is malformed")]
    Field(u8),
}

/// Bytes that begin the field about TLS (section 2.2.6): bits, and four zeros if the certificate was verified.
const SSL_HEAD: usize = 5;

impl OriginalClient {
    /// Writes the header.
    pub(super) fn encode(&self) -> Vec<u8> {
        // Neither a certificate nor a host has a longer name.
        let fits = |name: &&String| name.len() <= limits::PEER_NAME_BYTES_MAX;
        // Nothing reads the port.
        let mut header = ProxyHeader::new(SocketAddr::new(self.address, 0));
        if let Some(name) = self.server_name.as_ref().filter(fits) {
            header.add(field::AUTHORITY, name.clone().into_bytes());
        }
        let certificate = self.certificate.as_ref().filter(fits);
        let secure = match self.scheme {
            Scheme::Http => 0,
            Scheme::Https => field::CLIENT_SSL,
        };
        let shown = certificate.map_or(0, |_| field::CLIENT_CERT_CONN);
        let mut tls = vec![secure | shown, 0, 0, 0, 0];
        if let Some(name) = certificate {
            write_field(&mut tls, field::SSL_CN, name.as_bytes());
        }
        if secure | shown != 0 {
            header.add(field::SSL, tls);
        }
        header.encode()
    }

    /// Reads the header in front of a connection's bytes.
    ///
    /// # Errors
    ///
    /// There is no header, or another server would not send it.
    pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Self, ClientError> {
        let header = ProxyHeader::read(stream).await?;
        let source = header.source.ok_or(ClientError::Unknown)?;
        let mut found = Self {
            address: source.ip(),
            server_name: header
                .field(field::AUTHORITY)
                .map(|name| text(field::AUTHORITY, name))
                .transpose()?,
            certificate: None,
            scheme: Scheme::Http,
        };
        if let Some(tls) = header.field(field::SSL) {
            let head = tls.split_first_chunk::<SSL_HEAD>();
            let (head, rest) = head.ok_or(ClientError::Field(field::SSL))?;
            let [bits, verified @ ..] = *head;
            found.scheme = Scheme::of_bits(bits);
            let is_proved = bits & field::CLIENT_CERT_CONN != 0 && verified == [0; 4];
            for each in fields(rest) {
                let (kind, value) = each?;
                if kind == field::SSL_CN && is_proved {
                    found.certificate = Some(text(kind, value)?);
                }
            }
        }
        Ok(found)
    }
}

fn text(kind: u8, value: &[u8]) -> Result<String, ClientError> {
    String::from_utf8(value.to_vec()).map_err(|_| ClientError::Field(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients() -> Vec<OriginalClient> {
        let client = OriginalClient {
            address: "192.0.2.7".parse().unwrap(),
            server_name: None,
            certificate: None,
            scheme: Scheme::Http,
        };
        vec![
            client.clone(),
            OriginalClient {
                scheme: Scheme::Https,
                ..client.clone()
            },
            OriginalClient {
                certificate: Some("sender".to_owned()),
                ..client
            },
            OriginalClient {
                address: "2001:db8::1".parse().unwrap(),
                server_name: Some("one.example".to_owned()),
                certificate: Some("sender".to_owned()),
                scheme: Scheme::Https,
            },
        ]
    }

    async fn read(header: &ProxyHeader) -> Result<OriginalClient, ClientError> {
        OriginalClient::read(&mut &header.encode()[..]).await
    }

    #[tokio::test]
    async fn a_client_is_read_as_it_was_written_and_nothing_behind_it() {
        for client in clients() {
            let mut bytes = client.encode();
            bytes.extend(b"AMQP");
            let mut stream = &bytes[..];
            assert_eq!(OriginalClient::read(&mut stream).await.unwrap(), client);
            assert_eq!(stream, b"AMQP");
        }
    }

    #[tokio::test]
    async fn a_name_that_is_too_long_is_left_out() {
        let mut client = clients().remove(3);
        client.server_name = Some("n".repeat(limits::PEER_NAME_BYTES_MAX + 1));
        client.certificate.clone_from(&client.server_name);
        let read = OriginalClient::read(&mut &client.encode()[..])
            .await
            .unwrap();
        assert_eq!((read.server_name, read.certificate), (None, None));
    }

    #[tokio::test]
    async fn a_certificate_that_was_not_verified_names_no_client() {
        let source = "192.0.2.7:1".parse().unwrap();
        for head in [[3, 0, 0, 0, 1], [1, 0, 0, 0, 0]] {
            let mut tls = head.to_vec();
            write_field(&mut tls, field::SSL_CN, b"sender");
            let mut header = ProxyHeader::new(source);
            header.add(field::SSL, tls);
            assert_eq!(read(&header).await.unwrap().certificate, None, "{head:?}");
        }
    }

    #[tokio::test]
    async fn a_header_without_a_client_or_with_other_fields_is_refused() {
        assert!(matches!(
            read(&ProxyHeader::default()).await,
            Err(ClientError::Unknown)
        ));
        let source = "192.0.2.7:1".parse().unwrap();
        for (kind, value) in [
            (field::AUTHORITY, vec![0xff]),
            (field::SSL, vec![1, 0, 0, 0]),
            (field::SSL, vec![3, 0, 0, 0, 0, field::SSL_CN, 0, 9, b'n']),
            (field::SSL, vec![3, 0, 0, 0, 0, field::SSL_CN, 0, 1, 0xff]),
        ] {
            let mut header = ProxyHeader::new(source);
            header.add(kind, value.clone());
            assert!(read(&header).await.is_err(), "{kind:#04x} {value:?}");
        }
    }
}
