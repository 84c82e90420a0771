//! AMQP connections that are passed on to the server that has their namespace.
//!
//! A client names its namespace in `open`. By then this server has exchanged the protocol headers and SASL with it. Its bytes were
//! kept; they are sent again to the other server, whose answers up to its protocol header were given already and are left out. From
//! there on bytes are copied. What the client said of itself in SASL is judged by the other server.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::client::TlsStream;
use tracing::debug;

use super::authority::PeerTls;
use super::header::Client;
use crate::limits;
use crate::server::socket::Stream;
use crate::server::store::Fleet;

/// The other servers, as connections reach them.
pub(in crate::server) struct Peers {
    fleet: Arc<Fleet>,
    tls: PeerTls,
    /// Connections that wait for a namespace to have a server.
    held: Semaphore,
}

/// What is known of a connection that is to be passed on.
pub(in crate::server) struct Spliced {
    /// Everything that the client has sent.
    pub(in crate::server) received: Vec<u8>,
    /// In lower case.
    pub(in crate::server) namespace: String,
    pub(in crate::server) address: Option<IpAddr>,
    pub(in crate::server) server_name: Option<String>,
    pub(in crate::server) certificate: Option<String>,
}

/// Why a connection is not passed on.
#[derive(Debug, thiserror::Error)]
pub(in crate::server) enum NotPassed {
    #[error("no server has the namespace now: connect again")]
    NoServer,
    #[error("the namespace's server does not accept who the client says it is")]
    Refused,
    #[error("the namespace's server cannot be reached: {0}")]
    Unreachable(#[from] io::Error),
}

impl Peers {
    pub(in crate::server) fn new(fleet: Arc<Fleet>, tls: PeerTls) -> Self {
        Self {
            fleet,
            tls,
            held: Semaphore::new(limits::HELD_CONNECTIONS_MAX),
        }
    }

    /// Returns a place among the connections that wait for a namespace to have a server, if there is one.
    pub(in crate::server) fn hold(&self) -> Option<SemaphorePermit<'_>> {
        self.held.try_acquire().ok()
    }

    /// Returns whether another server has a namespace.
    pub(in crate::server) fn have(&self, namespace: &str) -> bool {
        self.fleet.server_of(namespace).is_some()
    }

    pub(super) fn tls(&self) -> &PeerTls {
        &self.tls
    }

    /// Connects to the server that has a namespace; returns its name, too. Waits for a while where none has it.
    pub(super) async fn connect(
        &self,
        namespace: &str,
        client: &Client,
    ) -> Result<(TlsStream<TcpStream>, String), NotPassed> {
        let _held = self.hold().ok_or(NotPassed::NoServer)?;
        let until = Instant::now() + limits::OWNER_WAIT.as_duration();
        loop {
            if let Some((server, address)) = self.fleet.server_of(namespace) {
                match timeout(
                    limits::PEER_CONNECT_WAIT.as_duration(),
                    self.tls.connect(&address),
                )
                .await
                {
                    Ok(Ok(mut stream)) => {
                        stream.write_all(&client.encode()).await?;
                        return Ok((stream, server));
                    }
                    // It may have died: another takes the namespace soon.
                    Ok(Err(error)) => debug!(address, %error, "a server cannot be reached"),
                    Err(_) => debug!(address, "a server does not answer"),
                }
            }
            // This server may have taken it meanwhile: the client's next connection is served here.
            if until <= Instant::now() || self.fleet.has(namespace) {
                return Err(NotPassed::NoServer);
            }
            sleep(limits::OWNER_LOOK.as_duration()).await;
        }
    }

    /// Passes a connection on, until one side ends it, or another server takes the namespace.
    ///
    /// # Errors
    ///
    /// The client has got nothing yet; why it is to be closed.
    pub(in crate::server) async fn pass(
        &self,
        stream: &mut impl Stream,
        spliced: Spliced,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<(), NotPassed> {
        let Spliced {
            received,
            namespace,
            address,
            server_name,
            certificate,
        } = spliced;
        let client = Client {
            address,
            server_name,
            certificate,
            is_secure: false,
        };
        let (mut other, server) = self.connect(&namespace, &client).await?;
        other.write_all(&received).await?;
        let prelude = skip_prelude(&mut other);
        let wait = limits::PEER_CONNECT_WAIT.as_duration();
        let prelude = timeout(wait, prelude).await;
        prelude.map_err(|_| NotPassed::NoServer)??;
        let size = limits::SPLICE_BUFFER_BYTES;
        let copied = tokio::select! {
            copied = copy_bidirectional_with_sizes(stream, &mut other, size, size) => copied.map(|_| ()),
            () = self.changes(&namespace, &server) => Ok(()),
            _ = stopped.wait_for(|stopped| *stopped) => Ok(()),
        };
        if let Err(error) = copied {
            debug!(%error, "a connection that was passed on has ended");
        }
        Ok(())
    }

    /// Waits until another server has a namespace.
    async fn changes(&self, namespace: &str, server: &str) {
        loop {
            sleep(limits::BEAT.as_duration()).await;
            let now = self.fleet.server_of(namespace);
            // Where none has it, its last server closes the connection, or is gone, which TCP notices.
            let is_other = now.is_some_and(|(now, _)| now != server);
            if is_other || self.fleet.has(namespace) {
                return;
            }
        }
    }
}

/// Reads what the other server answers up to its AMQP header, which the client has got from this server.
async fn skip_prelude(other: &mut TlsStream<TcpStream>) -> Result<(), NotPassed> {
    /// Bytes of a protocol header, and of a frame's head [2.2, 2.3].
    const HEAD: usize = 8;
    /// The kind of a SASL frame [5.3.1].
    const SASL: u8 = 1;
    /// The descriptor of the outcome [5.3.3.6], and its code 0.
    const OUTCOME: u8 = 0x44;
    let mut left = limits::UNROUTED_BYTES_MAX;
    loop {
        let mut head = [0; HEAD];
        other.read_exact(&mut head).await?;
        if head.starts_with(b"AMQP") {
            let [_, _, _, _, protocol, ..] = head;
            if protocol == 0 {
                return Ok(());
            }
            continue;
        }
        let [a, b, c, d, _, kind, ..] = head;
        let size = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let rest = size
            .checked_sub(HEAD)
            .filter(|rest| kind == SASL && *rest <= left);
        let rest = rest.ok_or(NotPassed::Refused)?;
        left -= rest;
        let mut body = vec![0; rest];
        other.read_exact(&mut body).await?;
        // A described list, of one-byte or four-byte sizes, whose first field is the code.
        let (list8, list32) = (0xc0, 0xd0);
        let code = match body.get(2..4) {
            Some([OUTCOME, list]) if *list == list8 => body.get(7),
            Some([OUTCOME, list]) if *list == list32 => body.get(13),
            _ => None,
        };
        if code.is_some_and(|code| *code != 0) {
            return Err(NotPassed::Refused);
        }
    }
}
