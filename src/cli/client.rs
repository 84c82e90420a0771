//! The client of the JSON API: which broker, with which credential.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::connection_string::{ConnectionString, place_of, url_host};
use super::error::CommandError;
use super::path::encoded;
use super::words;
use crate::host::root_key::KeysError;
use crate::http::operator::{self, KnownKey, OperatorArgs, Peer};
use crate::net::exchange::exchange;
use crate::net::fetch::{self, FetchError};
use crate::net::listen::EMULATOR_HTTP_PORT;
use crate::system::print;
use jitney_base::limits;
use jitney_base::secret::Secret;

/// Which broker is asked, and with which credential.
#[derive(Debug, Clone, Args)]
pub(super) struct ClientArgs {
    /// The broker's address, such as `http://localhost:5300`. The default is that of the connection string, or port 5300 of this
    /// machine.
    #[arg(long, value_name = "URL", env = "JITNEY_URL", global = true)]
    url: Option<String>,
    /// A connection string: the broker and the key.
    #[arg(
        long,
        value_name = "STRING",
        env = "SERVICEBUS_CONNECTION_STRING",
        hide_env_values = true,
        global = true
    )]
    connection: Option<Secret>,
    /// The namespace. The default is that of the address.
    #[arg(long, value_name = "NAME", global = true)]
    namespace: Option<String>,
    /// The data directory of a broker on this machine, whose keys are used if there is no connection string. They are for
    /// addresses of this machine only.
    #[arg(long, value_name = "DIR", default_value = "jitney-data", global = true)]
    data_dir: PathBuf,
    /// A file with the certificates of the authorities to trust, instead of the system's.
    #[arg(long, value_name = "FILE", global = true)]
    ca: Option<PathBuf>,
    /// The operator's key.
    #[command(flatten)]
    operator: OperatorArgs,
}

/// A broker, and the credential for it.
#[derive(Debug)]
pub(super) struct Client {
    is_tls: bool,
    host: String,
    /// Each is tried where nothing listens at those before it.
    ports: Vec<u16>,
    namespace: Option<String>,
    credential: ClientCredential,
    authorities: Authorities,
    /// The warning of a key that others can read was written.
    has_warned: AtomicBool,
}

/// What a request is authorized with.
#[derive(Debug)]
enum ClientCredential {
    None,
    Operator(KnownKey),
    /// A token of a connection string.
    Token(String),
}

/// An answer: its status, its version, its body.
struct ApiAnswer {
    status: StatusCode,
    version: Option<HeaderValue>,
    body: Bytes,
}

/// The type of most requests.
const JSON: &str = "application/json";

/// The body of a request, and its type.
struct Content {
    kind: &'static str,
    bytes: Bytes,
}

impl Content {
    fn json(text: impl Into<Bytes>) -> Self {
        Self {
            kind: JSON,
            bytes: text.into(),
        }
    }
}

/// Bytes of an answer that are read: one of the largest messages in base64, and what is around it.
const ANSWER_BYTES_MAX: u64 = limits::MESSAGE_SIZE_MAX / 3 * 4 + 8 * 1024 * 1024;

impl Client {
    pub(super) fn new(args: &ClientArgs) -> Result<Self, CommandError> {
        let connection = args
            .connection
            .as_ref()
            .map(|text| ConnectionString::parse(text.expose()))
            .transpose()?;
        let authorities = Authorities::of(args.ca.as_deref())?;
        let credential = match &connection {
            Some(connection) => ClientCredential::Token(connection.token("")),
            None => {
                let key = operator::known(&args.operator, &args.data_dir);
                let key = key.map_err(|error| match &error {
                    KeysError::File { path, source } => CommandError::of_file(path, source),
                    KeysError::Open(_)
                    | KeysError::Write(_)
                    | KeysError::Malformed(_)
                    | KeysError::Operator(_)
                    | KeysError::Random => CommandError::Usage(error.to_string()),
                })?;
                key.map_or(ClientCredential::None, ClientCredential::Operator)
            }
        };
        let (is_tls, host, ports) = match (&args.url, &connection) {
            (Some(url), _) => {
                let (is_tls, host, port) = place_of(url)?;
                (is_tls, host, vec![port])
            }
            (None, Some(connection)) => {
                let ports = connection.http_ports();
                (!connection.is_emulator, connection.host.clone(), ports)
            }
            (None, None) => (false, "127.0.0.1".to_owned(), vec![EMULATOR_HTTP_PORT]),
        };
        Ok(Self {
            is_tls,
            host,
            ports,
            namespace: args.namespace.clone(),
            credential,
            authorities,
            has_warned: AtomicBool::new(false),
        })
    }

    /// Asks the broker; the path is below `/api/v1/`.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&'static str, &str)],
    ) -> Result<T, CommandError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.exchange(method, path, Content::json(body), headers)
            .await
    }

    /// Sends a message as AMQP encodes it; the path is below `/api/v1/`.
    pub(super) async fn send_encoded<T: DeserializeOwned>(
        &self,
        path: &str,
        message: Vec<u8>,
    ) -> Result<T, CommandError> {
        let content = Content {
            kind: "application/octet-stream",
            bytes: message.into(),
        };
        self.exchange(Method::POST, path, content, &[]).await
    }

    /// Sends a text; the path is below `/api/v1/`.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        text: String,
    ) -> Result<T, CommandError> {
        self.exchange(method, path, Content::json(text), &[]).await
    }

    /// Returns an answer that is no JSON; the path is below `/api/v1/`.
    pub(super) async fn text(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<String, CommandError> {
        let answer = self
            .request(Method::GET, path, Content::json(""), headers)
            .await?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// Returns an answer and its version, for a change of what it shows; the path is below `/api/v1/`.
    pub(super) async fn versioned<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<(T, String), CommandError> {
        let answer = self
            .request(Method::GET, path, Content::json(""), &[])
            .await?;
        let version = answer.version.as_ref();
        let version = version.and_then(|version| version.to_str().ok());
        let version = version.ok_or_else(|| not_json(answer.status))?;
        Ok((answer.json()?, version.to_owned()))
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content: Content,
        headers: &[(&'static str, &str)],
    ) -> Result<T, CommandError> {
        let mut answer = self.request(method, path, content, headers).await?;
        if answer.status == StatusCode::NO_CONTENT {
            answer.body = Bytes::from_static(b"null");
        }
        answer.json()
    }

    /// Connects to the first of the ports at which something listens; returns the connection and the port.
    async fn connect(&self) -> Result<(TcpStream, u16), CommandError> {
        let mut faults = Vec::new();
        for &port in &self.ports {
            match TcpStream::connect((self.host.as_str(), port)).await {
                Ok(stream) => return Ok((stream, port)),
                Err(error) => {
                    let is_refused = error.kind() == ErrorKind::ConnectionRefused;
                    let why = if is_refused {
                        "nothing listens there".to_owned()
                    } else {
                        error.to_string()
                    };
                    faults.push(format!("{}: {why}", self.place(port)));
                    if !is_refused {
                        break;
                    }
                }
            }
        }
        Err(CommandError::Unreachable(format!(
            "Cannot reach the broker at {}. Start one with `jitney serve`, or say where it is with --url or --connection",
            faults.join("; ")
        )))
    }

    fn place(&self, port: u16) -> String {
        format!("{}:{port}", url_host(&self.host))
    }

    /// Returns what authorizes a request to a peer.
    fn authorization(&self, peer: Peer, place: &str) -> Option<String> {
        let known = match &self.credential {
            ClientCredential::None => return None,
            ClientCredential::Token(token) => return Some(token.clone()),
            ClientCredential::Operator(known) => known,
        };
        let key = known.for_peer(peer)?;
        let is_readable = !self.is_tls && peer == Peer::Elsewhere;
        if is_readable && !self.has_warned.swap(true, Ordering::Relaxed) {
            print::complain(format_args!(
                "jitney: warning: the operator's key goes to {place} without TLS, and can be read on the way; \
                 --url https://HOST:PORT encrypts it"
            ));
        }
        Some(format!("Bearer {}", key.expose()))
    }

    /// Says which credential was missing, if one was.
    fn advice(&self, peer: Peer) -> String {
        match &self.credential {
            ClientCredential::None => String::new(),
            ClientCredential::Operator(KnownKey::OfDirectory(_, file))
                if peer == Peer::Elsewhere =>
            {
                format!(
                    "; the key in {} is for brokers on this machine, and was not sent to another one: give a credential for it \
                     with --connection STRING or --operator-key-file FILE",
                    file.display()
                )
            }
            ClientCredential::Operator(KnownKey::OfDirectory(_, file)) => format!(
                "; the key was {}, of another broker or of another data directory: {}",
                file.display(),
                give("the right one")
            ),
            ClientCredential::Operator(KnownKey::Given(_)) => {
                "; the operator's key that was given is not this broker's".to_owned()
            }
            ClientCredential::Token(_) => {
                "; the key is that of --connection (or SERVICEBUS_CONNECTION_STRING)".to_owned()
            }
        }
    }

    /// Sends a request. What the broker refuses is an error.
    async fn request(
        &self,
        method: Method,
        path: &str,
        content: Content,
        headers: &[(&'static str, &str)],
    ) -> Result<ApiAnswer, CommandError> {
        let (stream, port) = self.connect().await?;
        let (place, peer) = (self.place(port), Peer::of(&stream));
        let failed =
            |error: &dyn fmt::Display| CommandError::Unreachable(format!("{place}: {error}"));
        let mut target = format!("/api/v1/{path}");
        if let Some(namespace) = &self.namespace {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str("namespace=");
            target.push_str(&encoded(namespace));
        }
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(HOST, &place);
        if let Some(authorization) = self.authorization(peer, &place) {
            request = request.header(AUTHORIZATION, authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header(CONTENT_TYPE, content.kind);
        let request = request
            .body(Full::new(content.bytes))
            .map_err(|error| failed(&error))?;
        let read = async |response: hyper::Response<hyper::body::Incoming>| {
            let status = response.status();
            let version = response.headers().get(ETAG).cloned();
            let most = usize::try_from(ANSWER_BYTES_MAX).unwrap_or(usize::MAX);
            let body = Limited::new(response.into_body(), most);
            let collected = body.collect().await;
            collected.map(|body| ApiAnswer {
                status,
                version,
                body: body.to_bytes(),
            })
        };
        let answered = if self.is_tls {
            let connector = self.authorities.connector();
            let connector = connector.map_err(|error| failed(&error))?;
            let name = ServerName::try_from(self.host.clone()).map_err(|error| failed(&error))?;
            let stream = connector
                .connect(name, stream)
                .await
                .map_err(|error| failed(&words::of_tls(error)))?;
            exchange(stream, request, read).await
        } else {
            exchange(stream, request, read).await
        };
        let answer = answered
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        let error = answer.refused();
        Err(match (answer.status, &self.credential) {
            (StatusCode::UNAUTHORIZED, ClientCredential::None) => CommandError::Refused(format!(
                "The broker at {place} wants a key: {}",
                give("one")
            )),
            (StatusCode::UNAUTHORIZED, _) => error.with(&self.advice(peer)),
            _ => error,
        })
    }
}

impl ApiAnswer {
    fn json<T: DeserializeOwned>(&self) -> Result<T, CommandError> {
        serde_json::from_slice(&self.body).map_err(|error| match error.classify() {
            Category::Data => CommandError::Refused(format!(
                "The broker has done it, and its answer ({}) is not what this version of jitney knows: {error}",
                self.status
            )),
            Category::Eof | Category::Syntax | Category::Io => not_json(self.status),
        })
    }

    /// Says what a problem that the broker answers with says.
    fn refused(&self) -> CommandError {
        // What is no broker may answer with other JSON, or with a problem of fewer fields.
        let Ok(problem) = self.json::<Value>() else {
            return not_json(self.status);
        };
        let detail = problem.get("detail").and_then(Value::as_str);
        let detail = detail.map_or_else(|| problem.to_string(), ToOwned::to_owned);
        let (text, is_missing) = words::said(&detail);
        let is_argument = problem.get("reason").and_then(Value::as_str) == Some("argument");
        let is_wrong = is_argument || problem.get("field").is_some();
        match self.status {
            _ if is_missing => CommandError::NotFound(text),
            StatusCode::NOT_FOUND => CommandError::NotFound(text),
            StatusCode::PRECONDITION_FAILED => CommandError::Changed(text),
            StatusCode::BAD_REQUEST if is_wrong => CommandError::Usage(text),
            _ => CommandError::Refused(text),
        }
    }
}

/// Says by which options a key is given.
pub(super) fn give(what: &str) -> String {
    format!(
        "give {what} with --data-dir DIR (the data directory of a broker on this machine), --operator-key-file FILE, or \
         --connection STRING"
    )
}

/// The authorities to trust: those of the file of `--ca`, which is read at once, or the system's, which are read when they are needed.
pub(super) struct Authorities(OnceLock<TlsConnector>);

impl Authorities {
    /// Reads the file, if one is given, whether it is needed or not.
    pub(super) fn of(file: Option<&Path>) -> Result<Self, CommandError> {
        let known = OnceLock::new();
        if let Some(file) = file {
            std::fs::metadata(file).map_err(|error| {
                CommandError::of_file(file, &error).with(" It was given by --ca.")
            })?;
            let read = fetch::connector(Some(file));
            let _ = known.set(read.map_err(|error| CommandError::Usage(format!("--ca: {error}")))?);
        }
        Ok(Self(known))
    }

    /// Returns what connects with TLS.
    pub(super) fn connector(&self) -> Result<TlsConnector, FetchError> {
        if let Some(known) = self.0.get() {
            return Ok(known.clone());
        }
        let made = fetch::connector(None)?;
        Ok(self.0.get_or_init(|| made).clone())
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorities(..)")
    }
}

fn not_json(status: StatusCode) -> CommandError {
    let text = format!("the answer ({status}) is not JSON: is this a broker?");
    CommandError::Unreachable(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use crate::net::certs::CertificateAuthority;
    use jitney_base::rights::Key;

    fn client(known: KnownKey) -> Client {
        Client {
            is_tls: false,
            host: "broker.example.com".to_owned(),
            ports: vec![5300],
            namespace: None,
            credential: ClientCredential::Operator(known),
            authorities: Authorities::of(None).unwrap(),
            has_warned: AtomicBool::new(false),
        }
    }

    #[test]
    fn authorities_of_a_file_are_read_once_and_a_file_of_none_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        let missing = Authorities::of(Some(&file)).unwrap_err();
        assert_eq!(missing.exit_code(), 4);
        std::fs::write(&file, "no certificate").unwrap();
        assert_eq!(Authorities::of(Some(&file)).unwrap_err().exit_code(), 2);
        let authority = CertificateAuthority::make(SystemTime::now()).unwrap();
        std::fs::write(&file, authority.pem()).unwrap();
        let authorities = Authorities::of(Some(&file)).unwrap();
        std::fs::remove_file(&file).unwrap();
        let [first, second] = [(); 2].map(|()| authorities.connector().unwrap());
        assert!(Arc::ptr_eq(first.config(), second.config()));
    }

    #[test]
    fn a_key_that_was_not_named_for_a_broker_elsewhere_is_not_sent_to_it() {
        let key = || Key::new("sixteen-letters-!".to_owned());
        let place = "broker.example.com:5300";
        let kept = client(KnownKey::OfDirectory(key(), "d/operator.key".into()));
        assert!(kept.authorization(Peer::Here, place).is_some());
        assert_eq!(kept.authorization(Peer::Elsewhere, place), None);
        let advice = kept.advice(Peer::Elsewhere);
        assert!(advice.contains("d/operator.key") && advice.contains("--connection"));
        assert!(kept.advice(Peer::Here).contains("--operator-key-file"));
        assert!(!kept.has_warned.load(Ordering::Relaxed));
        // One that is given goes there, with a warning where others can read it.
        let given = client(KnownKey::Given(key()));
        assert!(given.authorization(Peer::Here, place).is_some());
        assert!(!given.has_warned.load(Ordering::Relaxed));
        assert!(given.authorization(Peer::Elsewhere, place).is_some());
        assert!(given.has_warned.load(Ordering::Relaxed));
        let encrypted = Client {
            is_tls: true,
            ..client(KnownKey::Given(key()))
        };
        assert!(encrypted.authorization(Peer::Elsewhere, place).is_some());
        assert!(!encrypted.has_warned.load(Ordering::Relaxed));
    }
}
