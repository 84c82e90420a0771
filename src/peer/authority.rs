//! The certificates of the servers. The store keeps the authority, with its key: a server that can read the store is one of
//! the fleet. Each server makes a certificate for itself at its start.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::limits;

/// The name in every server's certificate: what is verified is the authority.
const NAME: &str = "peer.jitney";

/// Makes an authority: its certificate and its key, as PEM.
///
/// # Errors
///
/// The system's.
pub(crate) fn make_authority() -> io::Result<String> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let mut params = valid(limits::AUTHORITY_DAYS);
    params
        .distinguished_name
        .push(DnType::CommonName, "Jitney servers of a store");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let made = params.self_signed(&key).map_err(io::Error::other)?;
    Ok(format!("{}{}", made.pem(), key.serialize_pem()))
}

fn valid(days: u32) -> CertificateParams {
    let mut params = CertificateParams::default();
    let now = SystemTime::now();
    params.not_before = (now - limits::CERTIFICATE_SKEW.as_duration()).into();
    params.not_after = (now + DAY * days).into();
    params
}

const DAY: std::time::Duration = std::time::Duration::from_hours(24);

/// TLS between servers.
pub(crate) struct PeerTls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl PeerTls {
    /// Makes a certificate of this server, by the authority of the store.
    ///
    /// # Errors
    ///
    /// The authority cannot be read.
    pub(crate) fn new(authority: &str) -> io::Result<Self> {
        let der = CertificateDer::from_pem_slice(authority.as_bytes()).map_err(io::Error::other)?;
        let begin = authority.find("-----BEGIN PRIVATE KEY").unwrap_or_default();
        let key = authority.get(begin..).unwrap_or_default();
        let key = KeyPair::from_pem(key).map_err(io::Error::other)?;
        let issuer = Issuer::from_ca_cert_der(&der, key).map_err(io::Error::other)?;
        let own = KeyPair::generate().map_err(io::Error::other)?;
        let mut params = valid(limits::AUTHORITY_DAYS);
        params.distinguished_name.push(DnType::CommonName, NAME);
        let name = NAME.try_into().map_err(io::Error::other)?;
        params.subject_alt_names = vec![rcgen::SanType::DnsName(name)];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let made = params.signed_by(&own, &issuer).map_err(io::Error::other)?;
        let chain = vec![made.der().clone()];
        let key = || PrivateKeyDer::try_from(own.serialize_der()).map_err(io::Error::other);
        let mut roots = RootCertStore::empty();
        roots.add(der).map_err(io::Error::other)?;
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let accepts = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_client_cert_verifier(verifier.build().map_err(io::Error::other)?)
            .with_single_cert(chain.clone(), key()?)
            .map_err(io::Error::other)?;
        let connects = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key()?)
            .map_err(io::Error::other)?;
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(accepts)),
            connector: TlsConnector::from(Arc::new(connects)),
        })
    }

    /// Accepts a connection of another server.
    ///
    /// # Errors
    ///
    /// It is not another server's.
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<server::TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.acceptor.accept(stream).await
    }

    /// Connects to another server.
    ///
    /// # Errors
    ///
    /// It cannot be reached, or is not a server of the store.
    pub(crate) async fn connect(&self, address: &str) -> io::Result<client::TlsStream<TcpStream>> {
        self.connect_over(TcpStream::connect(address).await?).await
    }

    /// Connects to another server over a stream.
    ///
    /// # Errors
    ///
    /// It cannot be reached, or is not a server of the store.
    pub(super) async fn connect_over(
        &self,
        stream: TcpStream,
    ) -> io::Result<client::TlsStream<TcpStream>> {
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
        self.connector.connect(name, stream).await
    }
}

#[cfg(test)]
impl PeerTls {
    /// Shows the certificate that another authority has signed, or none, to servers of this one's authority.
    pub(super) fn showing(&self, certificate_of: Option<&Self>) -> Self {
        let mut connects = ClientConfig::clone(self.connector.config());
        connects.client_auth_cert_resolver = match certificate_of {
            Some(other) => Arc::clone(&other.connector.config().client_auth_cert_resolver),
            None => Arc::new(tests::NoCertificate),
        };
        Self {
            acceptor: self.acceptor.clone(),
            connector: TlsConnector::from(Arc::new(connects)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustls::SignatureScheme;
    use rustls::client::ResolvesClientCert;
    use rustls::sign::CertifiedKey;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A client without a certificate.
    #[derive(Debug)]
    pub(super) struct NoCertificate;

    impl ResolvesClientCert for NoCertificate {
        fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
            None
        }

        fn has_certs(&self) -> bool {
            false
        }
    }

    async fn talk(accepts: &PeerTls, connects: &PeerTls) -> io::Result<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let serve = async {
            let (stream, _) = listener.accept().await?;
            let mut stream = accepts.accept(stream).await?;
            stream.write_all(b"hello").await?;
            stream.shutdown().await
        };
        let connect = async {
            let mut stream = connects.connect(&address).await?;
            let mut read = Vec::new();
            stream.read_to_end(&mut read).await?;
            Ok(read)
        };
        let (served, read) = tokio::join!(serve, connect);
        served?;
        read
    }

    #[tokio::test]
    async fn servers_of_one_store_talk_to_each_other_and_to_no_others() {
        let authority = make_authority().unwrap();
        let (one, two) = (
            PeerTls::new(&authority).unwrap(),
            PeerTls::new(&authority).unwrap(),
        );
        assert_eq!(talk(&one, &two).await.unwrap(), b"hello");
        let other = PeerTls::new(&make_authority().unwrap()).unwrap();
        assert!(talk(&one, &other).await.is_err());
        assert!(talk(&other, &one).await.is_err());
    }
}
