//! Where a connection or a request is served: here, or at the server that has its namespace. This is the only place that waits
//! for a namespace to have a server.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::client::TlsStream;
use tracing::debug;

use super::authority::PeerTls;
use super::header::Client;
use super::owners::{Holding, Owner, Owners};
use crate::limits;
use crate::server::admission::ListenerKind;
use crate::server::shards::Shards;
use crate::shard::routing::ShardIndex;

/// The other servers, as connections reach them.
pub(in crate::server) struct Peers {
    owners: Arc<dyn Owners>,
    tls: PeerTls,
    /// Connections that wait for the server of their namespace.
    held: Semaphore,
    /// How long they wait.
    wait: Duration,
}

/// Whether a connection may be passed on to another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Hop {
    /// It is a client's.
    First,
    /// Another server has passed it on: it is served here or not at all.
    Last,
}

impl Hop {
    /// Returns the hop of a connection that came to a listener of some kind.
    pub(in crate::server) const fn of(kind: ListenerKind) -> Self {
        match kind {
            ListenerKind::Peer => Self::Last,
            ListenerKind::General | ListenerKind::Administration | ListenerKind::Metrics => {
                Self::First
            }
        }
    }
}

/// Where a connection is served.
#[derive(Debug)]
pub(in crate::server) enum Reached {
    Here(ShardIndex),
    Elsewhere(Box<PeerConnection>),
}

/// A connection to the server that has a namespace. The client's bytes are to follow.
#[derive(Debug)]
pub(in crate::server) struct PeerConnection {
    pub(super) stream: TlsStream<TcpStream>,
    pub(super) namespace: String,
    pub(super) owner: Owner,
}

/// Why a connection is not served, here or elsewhere.
#[derive(Debug, thiserror::Error)]
pub(in crate::server) enum NotPassed {
    #[error("no server has the namespace now: connect again")]
    NoServer,
    #[error("the namespace has another server now: connect again")]
    Moved,
    #[error("too many connections wait for their namespaces to have servers: connect again later")]
    TooMany,
    #[error("this server is stopping: connect again")]
    Stopping,
    #[error("the namespace's server does not accept who the client says it is")]
    Refused,
    #[error("the namespace's server cannot be reached: {0}")]
    Unreachable(#[from] io::Error),
}

/// What the routes of this server say of a host.
enum Routed {
    Here(ShardIndex),
    /// The namespace, which may be another server's.
    Elsewhere(String),
    /// The namespaces are not known yet.
    Unknown,
}

impl Routed {
    fn of(shards: &Shards, host: Option<&str>) -> Self {
        let routes = shards.routes();
        match (routes.shard_of(host), routes.elsewhere_of(host)) {
            (Some(shard), _) => Self::Here(shard),
            (None, Some(namespace)) => Self::Elsewhere(namespace.to_owned()),
            (None, None) => Self::Unknown,
        }
    }
}

impl Peers {
    pub(in crate::server) fn new(owners: Arc<dyn Owners>, tls: PeerTls) -> Self {
        Self {
            owners,
            tls,
            held: Semaphore::new(limits::HELD_CONNECTIONS_MAX),
            wait: limits::OWNER_WAIT.as_duration(),
        }
    }

    /// Makes peers with a bound of connections that wait, and a time that they wait.
    #[cfg(test)]
    pub(in crate::server) fn holding(
        owners: Arc<dyn Owners>,
        tls: PeerTls,
        held: usize,
        wait: Duration,
    ) -> Self {
        Self {
            held: Semaphore::new(held),
            wait,
            ..Self::new(owners, tls)
        }
    }

    pub(super) fn tls(&self) -> &PeerTls {
        &self.tls
    }

    /// Finds the server of the namespace that a host means, and connects to it if it is another. A namespace without a server is
    /// waited for; so is one whose server cannot be reached, because another takes it over soon.
    ///
    /// # Errors
    ///
    /// No server was found in time, too many connections wait, or this server stops.
    pub(in crate::server) async fn reach(
        &self,
        shards: &Shards,
        host: Option<&str>,
        client: &Client,
        hop: Hop,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<Reached, NotPassed> {
        if let Routed::Here(shard) = Routed::of(shards, host) {
            return Ok(Reached::Here(shard));
        }
        let _held = self.held.try_acquire().map_err(|_| NotPassed::TooMany)?;
        tokio::select! {
            reached = self.wait(shards, host, client, hop) => reached,
            _ = stopped.wait_for(|stopped| *stopped) => Err(NotPassed::Stopping),
        }
    }

    async fn wait(
        &self,
        shards: &Shards,
        host: Option<&str>,
        client: &Client,
        hop: Hop,
    ) -> Result<Reached, NotPassed> {
        let until = Instant::now() + self.wait;
        let mut failed = NotPassed::NoServer;
        let mut other_since = None;
        loop {
            let mut pause = limits::OWNER_LOOK;
            // The host is looked up anew: the namespaces may not have been known before.
            match Routed::of(shards, host) {
                Routed::Here(shard) => return Ok(Reached::Here(shard)),
                Routed::Elsewhere(namespace) if hop == Hop::First => {
                    // This server's own has a shard soon.
                    if let Some(owner) = self.owners.other_owner_of(&namespace) {
                        let opened = tokio::select! {
                            opened = self.open(&owner, client) => Some(opened),
                            // A server that hangs accepts connections. Another has the namespace by now, which may be this one.
                            () = self.until_moved(&namespace, &owner) => None,
                        };
                        match opened {
                            Some(Ok(stream)) => {
                                let connection = PeerConnection {
                                    stream,
                                    namespace,
                                    owner,
                                };
                                return Ok(Reached::Elsewhere(Box::new(connection)));
                            }
                            Some(Err(error)) => {
                                debug!(server = owner.server, %error, "a server cannot be reached");
                                failed = error.into();
                                pause = limits::OWNER_RETRY;
                            }
                            None => failed = NotPassed::NoServer,
                        }
                    }
                }
                Routed::Elsewhere(namespace)
                    if self.owners.other_owner_of(&namespace).is_some() =>
                {
                    let since = *other_since.get_or_insert_with(Instant::now);
                    if limits::OTHER_OWNER_WAIT.as_duration() <= since.elapsed() {
                        return Err(NotPassed::Moved);
                    }
                }
                Routed::Elsewhere(_) | Routed::Unknown => other_since = None,
            }
            if until <= Instant::now() {
                return Err(failed);
            }
            sleep(pause.as_duration()).await;
        }
    }

    /// Connects to another server, and says who the client is.
    async fn open(&self, owner: &Owner, client: &Client) -> io::Result<TlsStream<TcpStream>> {
        let wait = limits::PEER_CONNECT_WAIT.as_duration();
        let opened = timeout(wait, async {
            let mut stream = self.tls.connect(&owner.address).await?;
            stream.write_all(&client.encode()).await?;
            stream.flush().await?;
            Ok(stream)
        });
        opened
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Waits until a server no longer has a namespace. If no server has it, the wait continues for a moment: the last server may still
    /// close its connections by itself.
    pub(super) async fn until_moved(&self, namespace: &str, owner: &Owner) {
        let mut changes = self.owners.changes();
        let mut until = None;
        loop {
            match self.owners.holding(namespace, owner) {
                Holding::Holds => until = None,
                Holding::Moved => return,
                Holding::Unowned => {
                    let wait = limits::OWNERLESS_WAIT.as_duration();
                    until = until.or_else(|| Some(Instant::now() + wait));
                }
            }
            let is_over = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = is_over => return,
            }
        }
    }
}

#[cfg(test)]
mod tests;
