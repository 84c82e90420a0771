//! The client of the JSON API: which broker, with which credential.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode, Uri};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;

use super::connection_string::{ConnectionString, EMULATOR_HTTP_PORT};
use crate::limits;
use crate::server::exchange::exchange;
use crate::server::fetch;
use crate::server::operator::{self, OperatorArgs};

/// Which broker is asked, and with which credential.
#[derive(Debug, Clone, Args)]
pub(in crate::server) struct ClientArgs {
    /// The broker's HTTP address. The default is that of the connection string, or port 5300 of this machine.
    #[arg(long, value_name = "URL", env = "JITNEY_URL", global = true)]
    url: Option<String>,
    /// A connection string, whose key is used.
    #[arg(
        long,
        value_name = "STRING",
        env = "SERVICEBUS_CONNECTION_STRING",
        hide_env_values = true,
        global = true
    )]
    connection: Option<String>,
    /// The namespace. The default is that of the address.
    #[arg(long, value_name = "NAME", global = true)]
    namespace: Option<String>,
    /// The data directory of a broker on this machine, where the operator's key is found if there is no connection string.
    #[arg(long, value_name = "DIR", default_value = "jitney-data", global = true)]
    data_dir: PathBuf,
    /// A file with the certificates of the authorities to trust, instead of the system's.
    #[arg(long, value_name = "FILE", global = true)]
    ca: Option<PathBuf>,
    /// The operator's key.
    #[command(flatten)]
    operator: OperatorArgs,
}

/// Why a command has failed.
#[derive(Debug)]
pub(super) enum CommandError {
    /// It was called wrongly.
    Usage(String),
    /// The broker cannot be reached, or does not answer as it should.
    Unreachable(String),
    /// There is no such thing.
    NotFound(String),
    /// The broker has refused it.
    Refused(String),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(text)
        | Self::Unreachable(text)
        | Self::NotFound(text)
        | Self::Refused(text)) = self;
        f.write_str(text)
    }
}

impl CommandError {
    /// Adds to its text.
    pub(super) fn with(self, more: &str) -> Self {
        match self {
            Self::Usage(text) => Self::Usage(text + more),
            Self::Unreachable(text) => Self::Unreachable(text + more),
            Self::NotFound(text) => Self::NotFound(text + more),
            Self::Refused(text) => Self::Refused(text + more),
        }
    }

    /// Returns the exit code: 1 refused, 2 wrongly called, 3 unreachable, 4 not found.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::NotFound(_) => 4,
        }
    }
}

/// A broker, and the credential for it.
#[derive(Debug)]
pub(super) struct Client {
    is_tls: bool,
    host: String,
    port: u16,
    namespace: Option<String>,
    authorization: Option<String>,
    ca: Option<PathBuf>,
}

/// The type of most requests.
const JSON: &str = "application/json";
/// Bytes of an answer that are read: one of the largest messages in base64, and what is around it.
const ANSWER_BYTES_MAX: u64 = limits::MESSAGE_SIZE_MAX / 3 * 4 + 8 * 1024 * 1024;

impl Client {
    pub(super) fn new(args: &ClientArgs) -> Result<Self, CommandError> {
        let connection = args
            .connection
            .as_deref()
            .map(ConnectionString::parse)
            .transpose()?;
        let url = match (&args.url, &connection) {
            (Some(url), _) => url.clone(),
            (None, Some(connection)) => connection.api_url(),
            (None, None) => format!("http://127.0.0.1:{EMULATOR_HTTP_PORT}"),
        };
        let wrong = || {
            let text =
                format!("--url is '{url}'; an address such as http://127.0.0.1:5300 is allowed");
            CommandError::Usage(text)
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let (is_tls, port) = match uri.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return Err(wrong()),
        };
        let host = uri
            .host()
            .ok_or_else(wrong)?
            .trim_matches(['[', ']'])
            .to_owned();
        let authorization = match &connection {
            Some(connection) => Some(connection.token("")),
            None => {
                let key = operator::known(&args.operator, &args.data_dir);
                let key = key.map_err(|error| CommandError::Usage(error.to_string()))?;
                key.map(|key| format!("Bearer {}", key.expose()))
            }
        };
        Ok(Self {
            is_tls,
            host,
            port: uri.port_u16().unwrap_or(port),
            namespace: args.namespace.clone(),
            authorization,
            ca: args.ca.clone(),
        })
    }

    /// Asks the broker; the path is below `/api/v1/`.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&'static str, &str)],
    ) -> Result<Value, CommandError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.exchange(method, path, (JSON, body.into()), headers)
            .await
    }

    /// Sends a message as AMQP encodes it; the path is below `/api/v1/`.
    pub(super) async fn send_encoded(
        &self,
        path: &str,
        message: Vec<u8>,
    ) -> Result<Value, CommandError> {
        let body = ("application/octet-stream", message.into());
        self.exchange(Method::POST, path, body, &[]).await
    }

    /// Sends a text; the path is below `/api/v1/`.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        text: String,
    ) -> Result<Value, CommandError> {
        self.exchange(method, path, (JSON, text.into()), &[]).await
    }

    /// Returns an answer that is no JSON; the path is below `/api/v1/`.
    pub(super) async fn text(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<String, CommandError> {
        let (status, bytes) = self
            .request(Method::GET, path, (JSON, Bytes::new()), headers)
            .await?;
        if status.is_success() {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        Err(refused(status, &bytes))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: (&'static str, Bytes),
        headers: &[(&'static str, &str)],
    ) -> Result<Value, CommandError> {
        let (status, bytes) = self.request(method, path, body, headers).await?;
        if status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        if status.is_success() {
            let answer = serde_json::from_slice(&bytes);
            return answer.map_err(|_| not_json(status));
        }
        Err(refused(status, &bytes))
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        (kind, body): (&'static str, Bytes),
        headers: &[(&'static str, &str)],
    ) -> Result<(StatusCode, Bytes), CommandError> {
        let place = format!("{}:{}", self.host, self.port);
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
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header(CONTENT_TYPE, kind);
        let request = request
            .body(Full::new(body))
            .map_err(|error| failed(&error))?;
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(|error| failed(&error))?;
        let read = async |response: hyper::Response<hyper::body::Incoming>| {
            let status = response.status();
            let most = usize::try_from(ANSWER_BYTES_MAX).unwrap_or(usize::MAX);
            let body = Limited::new(response.into_body(), most);
            body.collect().await.map(|body| (status, body.to_bytes()))
        };
        let answered = if self.is_tls {
            let connector = fetch::connector(self.ca.as_deref()).map_err(|error| failed(&error))?;
            let name = ServerName::try_from(self.host.clone()).map_err(|error| failed(&error))?;
            let stream = connector
                .connect(name, stream)
                .await
                .map_err(|error| failed(&error))?;
            exchange(stream, request, read).await
        } else {
            exchange(stream, request, read).await
        };
        answered
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))
    }
}

/// Says what a problem that the broker answers with says.
fn refused(status: StatusCode, bytes: &[u8]) -> CommandError {
    let Ok(problem) = serde_json::from_slice::<Value>(bytes) else {
        return not_json(status);
    };
    let detail = problem.get("detail").and_then(Value::as_str);
    let detail = detail.map_or_else(|| problem.to_string(), ToOwned::to_owned);
    match status {
        StatusCode::NOT_FOUND => CommandError::NotFound(detail),
        _ => CommandError::Refused(detail),
    }
}

fn not_json(status: StatusCode) -> CommandError {
    let text = format!("the answer ({status}) is not JSON: is this a broker?");
    CommandError::Unreachable(text)
}

/// Encodes a segment of a path.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
