//! An authorized connection to a namespace.

use std::fmt::Debug;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::connection::{Connection, ConnectionHandle};
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::{Session, SessionHandle};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::arguments::AmqpArgs;
use super::management::{self, PATIENCE, Requests, unique};
use crate::cli::client::Authorities;
use crate::cli::connection_string::{ConnectionString, Origin};
use crate::cli::error::CommandError;
use crate::cli::words;

/// A connection that is authorized for an entity.
#[derive(Debug)]
pub(super) struct Connected {
    connection: ConnectionHandle<()>,
    pub(super) session: SessionHandle<()>,
    pub(super) entity: String,
    requests: Option<Requests>,
}

impl Connected {
    /// Connects, and proves the right to an entity.
    pub(super) async fn open(args: &AmqpArgs, entity: &str) -> Result<Self, CommandError> {
        let authorities = Authorities::of(args.ca.as_deref())?;
        let string = match &args.connection {
            Some(text) => ConnectionString::parse(text.expose())?,
            None => ConnectionString::of_broker(args.url.as_deref(), &args.data_dir)?,
        };
        let entity = entity.trim_matches('/');
        string.check_entity(entity)?;
        let place = format!("{}:{}", string.host, string.amqp_port());
        let opened = timeout(PATIENCE, connect(&authorities, &string)).await;
        let opened = opened.unwrap_or_else(|_| Err("no answer in 30 seconds".to_owned()));
        let (connection, session) = opened.map_err(|error| {
            CommandError::Unreachable(format!("Cannot reach the broker at {place}: {error}"))
        })?;
        let mut connected = Self {
            connection,
            session,
            entity: entity.to_owned(),
            requests: None,
        };
        match management::put_token(&mut connected.session, &string, entity).await {
            Ok(()) => Ok(connected),
            Err(error) => {
                connected.end().await;
                if let CommandError::Refused(text) = &error
                    && text.contains(UNAUTHORIZED)
                {
                    return Err(error.with(&advice(&string.origin)));
                }
                Err(error)
            }
        }
    }

    /// Returns the links to the entity's management node.
    pub(super) async fn management(&mut self) -> Result<&mut Requests, CommandError> {
        if self.requests.is_none() {
            let node = format!("{}/$management", self.entity);
            self.requests = Some(Requests::open(&mut self.session, &node).await?);
        }
        let missing = || CommandError::Unreachable("there are no links".to_owned());
        self.requests.as_mut().ok_or_else(missing)
    }

    /// Closes the connection, and returns the result of the command.
    pub(super) async fn close(
        mut self,
        done: Result<ExitCode, CommandError>,
    ) -> Result<ExitCode, CommandError> {
        if let Some(requests) = self.requests.take() {
            requests.close().await;
        }
        self.end().await;
        done
    }

    /// Ends session and connection. The command is done: an error there changes nothing.
    async fn end(mut self) {
        let ending = async {
            let _ = self.session.end().await;
            let _ = self.connection.close().await;
        };
        let _ = timeout(Duration::from_secs(2), ending).await;
    }
}

async fn connect(
    authorities: &Authorities,
    string: &ConnectionString,
) -> Result<(ConnectionHandle<()>, SessionHandle<()>), String> {
    let stream = TcpStream::connect((string.host.as_str(), string.amqp_port())).await;
    let stream = stream.map_err(|error| {
        if error.kind() == ErrorKind::ConnectionRefused {
            return "nothing listens there. Start one with `jitney serve`, or say where it is with --connection or --url"
                .to_owned();
        }
        error.to_string()
    })?;
    // Without it, small frames wait for one another.
    let _ = stream.set_nodelay(true);
    if string.is_emulator {
        return handshake(string, stream).await;
    }
    let connector = authorities.connector().map_err(|error| error.to_string())?;
    // That connector is made for HTTP.
    let mut config = (**connector.config()).clone();
    config.alpn_protocols.clear();
    let name = ServerName::try_from(string.host.clone()).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await;
    handshake(string, stream.map_err(words::of_tls)?).await
}

async fn handshake<S>(
    string: &ConnectionString,
    stream: S,
) -> Result<(ConnectionHandle<()>, SessionHandle<()>), String>
where
    S: AsyncRead + AsyncWrite + Debug + Send + Unpin + 'static,
{
    let opened = Connection::builder()
        .container_id(format!("jitney-{}", unique()))
        .hostname(Some(string.host.as_str()))
        .sasl_profile(SaslProfile::Anonymous)
        .open_with_stream(stream)
        .await;
    let mut connection = opened.map_err(|error| error.to_string())?;
    let session = Session::begin(&mut connection).await;
    Ok((connection, session.map_err(|error| error.to_string())?))
}

/// The condition of a missing right.
const UNAUTHORIZED: &str = "amqp:unauthorized-access";

/// Says which credential was used, and which would be right.
fn advice(origin: &Origin) -> String {
    match origin {
        Origin::Given => {
            "; the key is that of --connection (or SERVICEBUS_CONNECTION_STRING)".to_owned()
        }
        Origin::OfDirectory(file) => {
            format!("; the key was {}: {}", file.display(), give("another"))
        }
        Origin::Any => format!("; no key was given or found: {}", give("one")),
    }
}

fn give(what: &str) -> String {
    format!(
        "give {what} with --connection STRING, or with --data-dir DIR of a broker on this machine that has made one (root.key)"
    )
}
