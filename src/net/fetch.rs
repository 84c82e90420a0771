//! Requests of the server to others over HTTP(S): the keys of an issuer, and traces for a collector. Each has a connection
//! of its own and a bounded answer.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, HOST, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

use super::exchange::exchange;
use crate::limits;

/// Why a request had no usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("'{0}' is not a URL with http or https and a host")]
    Url(String),
    #[error("{0} must be https: plain http is for this machine only")]
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
    #[error("the answer of {0} is longer than {max} bytes, or incomplete", max = limits::FETCHED_BYTES_MAX)]
    Body(String),
    #[error("the answer of {0} is not UTF-8")]
    Text(String),
    #[error("{path} holds no certificate that can be used: {reason}")]
    Certificates { path: PathBuf, reason: String },
    #[error("the system has no certificates to trust: name a file of others")]
    NoCertificates,
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// Where plain http may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainHttp {
    /// To this machine only: what is asked for is trusted.
    ThisMachine,
    /// To any machine.
    Anywhere,
}

/// A URL that may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: UrlScheme,
    plain: PlainHttp,
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
    /// If it is none, or if it is plain http where that may not go.
    pub(crate) fn parse(text: &str, plain: PlainHttp) -> Result<Self, FetchError> {
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
        let is_bound = scheme == UrlScheme::Http && plain == PlainHttp::ThisMachine;
        if is_bound && !is_this_machine(&host) {
            return Err(FetchError::Plain(text.to_owned()));
        }
        Ok(Self {
            scheme,
            plain,
            host,
            port: authority.port_u16().unwrap_or(port),
            authority: authority.to_string(),
            path: uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), ToString::to_string),
        })
    }

    /// Returns the path and the query.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the origin in the form of a Content-Security-Policy, if it can name the host: it has no form for IPv6, and
    /// other signs would be read as further parts of the policy.
    pub(crate) fn origin(&self) -> Option<String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        if jitney_gateway::limits::HOST_NAME_BYTES_MAX < self.host.len()
            || !self.host.bytes().all(is_plain)
        {
            return None;
        }
        let host = self.host.to_ascii_lowercase();
        Some(match (self.scheme, self.port) {
            (UrlScheme::Https, 443) | (UrlScheme::Http, 80) => format!("{}://{host}", self.scheme),
            (scheme, port) => format!("{scheme}://{host}:{port}"),
        })
    }

    /// Returns the target of a redirect: another URL with the same scheme, or a path on this host.
    pub(crate) fn lead_to(&self, place: &str) -> Result<Self, FetchError> {
        let next = if place.starts_with('/') && !place.starts_with("//") {
            let url = format!("{}://{}{place}", self.scheme, self.authority);
            Self::parse(&url, self.plain)?
        } else {
            Self::parse(place, self.plain)?
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
#[derive(Debug, Clone)]
pub(crate) struct Fetcher {
    /// Certificates to trust, instead of the system's. Read for each fetch, because files change.
    authorities: Option<PathBuf>,
}

impl Fetcher {
    /// Trusts a file of certificates, or the system's.
    ///
    /// # Errors
    ///
    /// If there is a file and it cannot be used.
    pub(crate) fn new(authorities: Option<PathBuf>) -> Result<Self, FetchError> {
        if let Some(path) = &authorities {
            roots_of_file(path)?;
        }
        Ok(Self { authorities })
    }

    /// Returns the document at a URL.
    pub(crate) async fn get(&self, url: &Url) -> Result<String, FetchError> {
        let mut place = url.clone();
        for _ in 0..=limits::FETCH_REDIRECTS_MAX {
            match self.ask(&place).await? {
                FetchOutcome::Document(text) => return Ok(text),
                FetchOutcome::Elsewhere(next) => place = place.lead_to(&next)?,
            }
        }
        Err(FetchError::Redirects(url.to_string()))
    }

    /// Sends a request to a URL, and returns what `read` makes of the answer.
    pub(crate) async fn send<T>(
        &self,
        url: &Url,
        mut request: Request<Full<Bytes>>,
        read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, FetchError>,
    ) -> Result<T, FetchError> {
        const AGENT: &str = concat!("jitney/", env!("CARGO_PKG_VERSION"));
        let failed = |source| FetchError::Connect {
            url: url.to_string(),
            source,
        };
        let host = HeaderValue::from_str(&url.authority);
        let host = host.map_err(|_| FetchError::Url(url.to_string()))?;
        let path = url.path.parse::<Uri>();
        *request.uri_mut() = path.map_err(|_| FetchError::Url(url.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        let stream = connect(url).await.map_err(failed)?;
        let answer = match url.scheme {
            UrlScheme::Http => exchange(stream, request, read).await,
            UrlScheme::Https => {
                let name = ServerName::try_from(url.host.clone())
                    .map_err(|_| FetchError::Url(url.to_string()))?;
                let stream = connector(self.authorities.as_deref())?
                    .connect(name, stream)
                    .await;
                exchange(stream.map_err(failed)?, request, read).await
            }
        };
        answer.map_err(|source| FetchError::Http {
            url: url.to_string(),
            source,
        })?
    }

    async fn ask(&self, url: &Url) -> Result<FetchOutcome, FetchError> {
        let mut request = Request::new(Full::default());
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(ACCEPT, json);
        self.send(url, request, async |response| read(url, response).await)
            .await
    }
}

/// Makes a client of TLS that trusts a file of certificates, or the system's.
///
/// # Errors
///
/// If the certificates cannot be used.
pub(crate) fn connector(authorities: Option<&Path>) -> Result<TlsConnector, FetchError> {
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
    let is_bound = url.scheme == UrlScheme::Http && url.plain == PlainHttp::ThisMachine;
    let fits = |address: &SocketAddr| !is_bound || address.ip().is_loopback();
    let addresses: Vec<SocketAddr> = found.filter(fits).collect();
    TcpStream::connect(addresses.as_slice()).await
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
    let body = body(url, response).await?;
    String::from_utf8(body.into())
        .map(FetchOutcome::Document)
        .map_err(|_| FetchError::Text(url.to_string()))
}

/// Reads the body of an answer.
pub(crate) async fn body(url: &Url, response: Response<Incoming>) -> Result<Bytes, FetchError> {
    let body = Limited::new(response.into_body(), limits::FETCHED_BYTES_MAX);
    let body = body.collect().await;
    let body = body.map_err(|_| FetchError::Body(url.to_string()))?;
    Ok(body.to_bytes())
}
