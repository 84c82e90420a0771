//! One GET over HTTP(S): bounded bytes, redirects that keep the scheme, plain HTTP to this machine
//! only. Small on purpose: it runs once an hour.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, HOST, LOCATION, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

use crate::limits;
use crate::server::exchange::exchange;

/// Why a document could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(in crate::server) enum FetchError {
    #[error("'{0}' is not a URL with http or https and a host")]
    Url(String),
    #[error("{0} must be https: plain http is for issuers on this machine only")]
    Plain(String),
    #[error("{from} redirects to {to}, which has another scheme")]
    OtherScheme { from: String, to: String },
    #[error("{0} redirects too often")]
    Redirects(String),
    #[error("{0} redirects without a usable Location")]
    Nowhere(String),
    #[error("cannot connect to {url}: {source}")]
    Connect { url: String, source: std::io::Error },
    #[error("{url} does not speak HTTP: {source}")]
    Http { url: String, source: hyper::Error },
    #[error("{url} answered {status}")]
    Status { url: String, status: StatusCode },
    #[error("the answer of {0} is longer than {max} bytes, or incomplete", max = limits::ISSUER_BYTES_MAX)]
    Body(String),
    #[error("the answer of {0} is not UTF-8")]
    Text(String),
    #[error("{path} holds no certificate that can be used: {reason}")]
    Certificates { path: PathBuf, reason: String },
    #[error("the system has no certificates to trust; --oidc-ca names others")]
    NoCertificates,
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// A URL that may be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    scheme: UrlScheme,
    /// A name, or an address without brackets.
    host: String,
    port: u16,
    /// The host and the port as they were written.
    authority: String,
    /// The path and the query.
    path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UrlScheme {
    Http,
    Https,
}

impl Url {
    /// Takes a URL apart.
    ///
    /// # Errors
    ///
    /// If it is none, or if it is plain http and not of this machine.
    pub(super) fn parse(text: &str) -> Result<Self, FetchError> {
        let no_url = || FetchError::Url(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| no_url())?;
        let (scheme, port) = match uri.scheme_str() {
            Some("https") => (UrlScheme::Https, 443),
            Some("http") => (UrlScheme::Http, 80),
            _ => return Err(no_url()),
        };
        let authority = uri.authority().ok_or_else(no_url)?;
        // A name and a password would be shown in logs.
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(no_url());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if scheme == UrlScheme::Http && !is_this_machine(&host) {
            return Err(FetchError::Plain(text.to_owned()));
        }
        Ok(Self {
            scheme,
            host,
            port: authority.port_u16().unwrap_or(port),
            authority: authority.to_string(),
            path: uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), ToString::to_string),
        })
    }

    /// Returns the target of a redirect: another URL with the same scheme, or a path on this host.
    pub(super) fn lead_to(&self, place: &str) -> Result<Self, FetchError> {
        let next = if place.starts_with('/') && !place.starts_with("//") {
            Self::parse(&format!("{}://{}{place}", self.scheme, self.authority))?
        } else {
            Self::parse(place)?
        };
        if next.scheme == self.scheme {
            Ok(next)
        } else {
            Err(FetchError::OtherScheme {
                from: self.to_string(),
                to: next.to_string(),
            })
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

impl fmt::Display for UrlScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

fn is_this_machine(host: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    host.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

/// The client.
#[derive(Debug)]
pub(super) struct Fetcher {
    /// Certificates to trust, instead of the system's. Read for each fetch, because files change.
    authorities: Option<PathBuf>,
}

impl Fetcher {
    /// Trusts a file of certificates, or the system's.
    ///
    /// # Errors
    ///
    /// If there is a file and it cannot be used.
    pub(super) fn new(authorities: Option<PathBuf>) -> Result<Self, FetchError> {
        if let Some(path) = &authorities {
            roots_of_file(path)?;
        }
        Ok(Self { authorities })
    }

    /// Returns the document at a URL.
    pub(super) async fn get(&self, url: &Url) -> Result<String, FetchError> {
        let mut place = url.clone();
        for _ in 0..=limits::ISSUER_REDIRECTS_MAX {
            match self.ask(&place).await? {
                FetchOutcome::Document(text) => return Ok(text),
                FetchOutcome::Elsewhere(next) => place = place.lead_to(&next)?,
            }
        }
        Err(FetchError::Redirects(url.to_string()))
    }

    async fn ask(&self, url: &Url) -> Result<FetchOutcome, FetchError> {
        let failed = |source| FetchError::Connect {
            url: url.to_string(),
            source,
        };
        let stream = connect(url).await.map_err(failed)?;
        match url.scheme {
            UrlScheme::Http => request(url, stream).await,
            UrlScheme::Https => {
                let name = ServerName::try_from(url.host.clone())
                    .map_err(|_| FetchError::Url(url.to_string()))?;
                let stream = connector(self.authorities.as_deref())?
                    .connect(name, stream)
                    .await;
                request(url, stream.map_err(failed)?).await
            }
        }
    }
}

/// Makes a client of TLS that trusts a file of certificates, or the system's.
///
/// # Errors
///
/// If the certificates cannot be used.
pub(in crate::server) fn connector(authorities: Option<&Path>) -> Result<TlsConnector, FetchError> {
    let roots = match authorities {
        Some(path) => roots_of_file(path)?,
        None => roots_of_system()?,
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

enum FetchOutcome {
    Document(String),
    Elsewhere(String),
}

fn roots_of_file(path: &Path) -> Result<rustls::RootCertStore, FetchError> {
    let unusable = |reason: String| FetchError::Certificates {
        path: path.to_owned(),
        reason,
    };
    let mut roots = rustls::RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
    for certificate in all {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| unusable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("there is none in PEM".to_owned()));
    }
    Ok(roots)
}

fn roots_of_system() -> Result<rustls::RootCertStore, FetchError> {
    let mut roots = rustls::RootCertStore::empty();
    // Single unreadable certificates are ignored, as long as there are others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(FetchError::NoCertificates);
    }
    Ok(roots)
}

async fn connect(url: &Url) -> std::io::Result<TcpStream> {
    let found = tokio::net::lookup_host((url.host.as_str(), url.port)).await?;
    // A name may resolve to anything, even "localhost".
    let fits = |address: &SocketAddr| url.scheme == UrlScheme::Https || address.ip().is_loopback();
    let addresses: Vec<SocketAddr> = found.filter(fits).collect();
    TcpStream::connect(addresses.as_slice()).await
}

/// Sends the request on a connection, which is not reused.
async fn request<S>(url: &Url, stream: S) -> Result<FetchOutcome, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = Request::get(&url.path)
        .header(HOST, &url.authority)
        .header(USER_AGENT, concat!("jitney/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/json")
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|_| FetchError::Url(url.to_string()))?;
    let answer = exchange(stream, request, async |response| read(url, response).await);
    answer.await.map_err(|source| FetchError::Http {
        url: url.to_string(),
        source,
    })?
}

async fn read(url: &Url, response: Response<Incoming>) -> Result<FetchOutcome, FetchError> {
    let status = response.status();
    if status.is_redirection() {
        let place = response.headers().get(LOCATION);
        let place = place.and_then(|place| place.to_str().ok());
        return place
            .map(|place| FetchOutcome::Elsewhere(place.to_owned()))
            .ok_or_else(|| FetchError::Nowhere(url.to_string()));
    }
    if status != StatusCode::OK {
        return Err(FetchError::Status {
            url: url.to_string(),
            status,
        });
    }
    let body = Limited::new(response.into_body(), limits::ISSUER_BYTES_MAX);
    let body = body.collect().await;
    let body = body.map_err(|_| FetchError::Body(url.to_string()))?;
    String::from_utf8(body.to_bytes().into())
        .map(FetchOutcome::Document)
        .map_err(|_| FetchError::Text(url.to_string()))
}
