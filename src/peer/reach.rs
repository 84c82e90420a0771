//! Where a connection or a request is served: here, or at the server that has its namespace. This is the only place that waits
//! for a namespace to have a server.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::client::TlsStream;
use tracing::debug;

use super::authority::PeerTls;
use super::header::OriginalClient;
use super::owners::{Holding, Owners, OwningServer};
use super::places::WaitingPlaces;
use crate::host::shards::Shards;
use crate::limits;
use crate::net::admission::{ConnectionSlot, ConnectionSlots, ListenerKind};
use jitney_shard::routing::ShardIndex;

/// The other servers, as connections reach them.
pub(crate) struct Peers {
    owners: Arc<dyn Owners>,
    tls: PeerTls,
    /// For connections that wait for the server of their namespace.
    places: WaitingPlaces,
    /// How long they wait.
    wait: Duration,
}

/// Whether a connection may be passed on to another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hop {
    /// It is a client's.
    First,
    /// Another server has passed it on: it is served here or not at all.
    Last,
}

impl Hop {
    /// Returns the hop of a connection that came to a listener of some kind.
    pub(crate) const fn of(kind: ListenerKind) -> Self {
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
pub(crate) enum Reached {
    Here(ShardIndex),
    Elsewhere(Box<PeerConnection>),
}

/// A connection to the server that has a namespace. The client's bytes are to follow.
#[derive(Debug)]
pub(crate) struct PeerConnection {
    pub(crate) stream: TlsStream<TcpStream>,
    pub(crate) namespace: String,
    pub(crate) owner: OwningServer,
    /// The connection's own, beside that of the client's.
    pub(crate) slot: ConnectionSlot,
}

/// A connection or a request whose server is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) shards: &'a Shards,
    /// For a connection to another server.
    pub(crate) slots: &'a ConnectionSlots,
    /// The name that the client has for this server: it names the namespace.
    pub(crate) host: Option<&'a str>,
    pub(crate) client: &'a OriginalClient,
    pub(crate) hop: Hop,
}

/// Why a connection is not served, here or elsewhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotPassed {
    #[error("no server has the namespace now: connect again")]
    NoServer,
    #[error("the namespace has another server now: connect again")]
    Moved,
    #[error("{0}: connect again later")]
    TooMany(TooMany),
    #[error("this server is stopping: connect again")]
    Stopping,
    #[error("the namespace's server does not accept who the client says it is")]
    Refused,
    #[error("the namespace's server cannot be reached: {0}")]
    Unreachable(#[from] io::Error),
}

/// The limit that a connection or a request would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooMany {
    #[error("too many connections wait for their namespaces to have servers")]
    Waiting,
    #[error("all file descriptors for connections to other servers are in use")]
    Open,
}

/// What the routes of this server say of a host.
enum QueuedReply {
    Here(ShardIndex),
    /// The namespace, which may be another server's.
    Elsewhere(String),
    /// The namespaces are not known yet.
    Unknown,
}

impl QueuedReply {
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
    pub(crate) fn new(owners: Arc<dyn Owners>, tls: PeerTls) -> Self {
        Self {
            owners,
            tls,
            places: WaitingPlaces::default(),
            wait: limits::OWNER_WAIT.as_duration(),
        }
    }

    /// Lets connections wait for another time.
    #[cfg(test)]
    pub(crate) fn waiting(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Makes peers with places for connections that wait, and a time that they wait.
    #[cfg(test)]
    fn with_places(
        owners: Arc<dyn Owners>,
        tls: PeerTls,
        places: WaitingPlaces,
        wait: Duration,
    ) -> Self {
        Self {
            places,
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
    /// No server was found in time, too many connections wait or are open, or this server stops.
    pub(crate) async fn reach(
        &self,
        lookup: Lookup<'_>,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<Reached, NotPassed> {
        tokio::select! {
            biased;
            reached = self.wait(lookup) => reached,
            _ = stopped.wait_for(|stopped| *stopped) => Err(NotPassed::Stopping),
        }
    }

    async fn wait(&self, lookup: Lookup<'_>) -> Result<Reached, NotPassed> {
        let until = Instant::now() + self.wait;
        let mut failed = NotPassed::NoServer;
        let mut other_since = None;
        let mut place = None;
        loop {
            let mut pause = limits::OWNER_LOOK;
            // The host is looked up anew: the namespaces may not have been known before.
            let namespace = match QueuedReply::of(lookup.shards, lookup.host) {
                QueuedReply::Here(shard) => return Ok(Reached::Here(shard)),
                QueuedReply::Elsewhere(namespace) => Some(namespace),
                QueuedReply::Unknown => None,
            };
            // This server's own has a shard soon.
            let owner = namespace.as_deref();
            let owner = owner.and_then(|it| self.owners.other_owner_of(it));
            match (&namespace, owner, lookup.hop) {
                (Some(namespace), Some(owner), Hop::First) => {
                    match self.connect(lookup, namespace, owner).await {
                        Ok(connection) => return Ok(Reached::Elsewhere(Box::new(connection))),
                        Err(error @ NotPassed::TooMany(_)) => return Err(error),
                        Err(error) => {
                            if matches!(error, NotPassed::Unreachable(_)) {
                                pause = limits::OWNER_RETRY;
                            }
                            failed = error;
                        }
                    }
                }
                (Some(_), Some(_), Hop::Last) => {
                    let since = *other_since.get_or_insert_with(Instant::now);
                    if limits::OTHER_OWNER_WAIT.as_duration() <= since.elapsed() {
                        return Err(NotPassed::Moved);
                    }
                }
                (Some(_) | None, _, _) => other_since = None,
            }
            if until <= Instant::now() {
                return Err(failed);
            }
            // Only from here on it waits: others are served at their first look, however many wait.
            if place.is_none() {
                let free = self.places.take(namespace);
                place = Some(free.ok_or(NotPassed::TooMany(TooMany::Waiting))?);
            }
            sleep(pause.as_duration()).await;
        }
    }

    /// Connects to the server that has a namespace, unless another takes that meanwhile.
    async fn connect(
        &self,
        lookup: Lookup<'_>,
        namespace: &str,
        owner: OwningServer,
    ) -> Result<PeerConnection, NotPassed> {
        let slot = lookup.slots.try_take();
        let slot = slot.ok_or(NotPassed::TooMany(TooMany::Open))?;
        let stream = tokio::select! {
            opened = self.open(&owner, lookup.client) => opened,
            // A server that hangs accepts connections. Another has the namespace by now, which may be this one.
            () = self.until_moved(namespace, &owner) => return Err(NotPassed::NoServer),
        };
        let stream = stream.inspect_err(|error| {
            debug!(server = owner.server, %error, "a server cannot be reached");
        })?;
        Ok(PeerConnection {
            stream,
            namespace: namespace.to_owned(),
            owner,
            slot,
        })
    }

    /// Connects to another server, and says who the client is.
    async fn open(
        &self,
        owner: &OwningServer,
        client: &OriginalClient,
    ) -> io::Result<TlsStream<TcpStream>> {
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
    pub(crate) async fn until_moved(&self, namespace: &str, owner: &OwningServer) {
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
