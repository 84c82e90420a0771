//! The state that all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tokio::sync::watch;
use tracing::debug;

use super::answers::Answers;
use super::api::{Changes, Searches};
use super::metrics::Metrics;
use super::operator::Operator;
use super::refusals::Refusals;
use super::sign_in::ConsoleSignIn;
use crate::amqp::connection::{self, AcceptedPeer};
use crate::host::backup::Backups;
use crate::host::history::History;
use crate::host::namespaces::ServerNamespaces;
use crate::host::shards::Shards;
use crate::net::admission::{Admission, ConnectionSlot, ConnectionSlots, ListenerKind, Permit};
use crate::net::balancers::Balancers;
use crate::net::socket::Stream;
use crate::net::tls::Tls;
use crate::peer::{Hop, Peers};
use crate::store::Fleet;
use crate::system::clock::Clock;
use jitney_base::ids::ConnectionId;
use jitney_broker::access::Origin;

/// The state that all connections share.
pub(crate) struct ServerState {
    pub(crate) clock: Arc<Clock>,
    pub(crate) shards: Arc<Shards>,
    pub(crate) tls: Arc<Tls>,
    pub(crate) admission: Admission,
    /// Counts the connections of administration listeners apart, so that others cannot keep health
    /// checks out.
    pub(crate) administration_admission: Admission,
    pub(crate) slots: ConnectionSlots,
    pub(crate) balancers: Balancers,
    pub(crate) operator: Operator,
    pub(crate) backups: Arc<Backups>,
    pub(crate) namespaces: Arc<ServerNamespaces>,
    /// The servers that share a store, if namespaces are in one.
    pub(crate) fleet: Option<Arc<Fleet>>,
    /// How their namespaces are reached.
    pub(crate) peers: Option<Arc<Peers>>,
    pub(crate) metrics: Metrics,
    pub(crate) history: Arc<History>,
    pub(crate) changes: Arc<Changes>,
    /// The bytes of answers of the JSON API.
    pub(crate) answers: Answers,
    pub(crate) searches: Searches,
    pub(crate) console: ConsoleSignIn,
    /// Every peer is authorized for everything (`--auth development`).
    pub(crate) is_open: bool,
    pub(crate) stopped: watch::Receiver<bool>,
    /// The malformed tokens that were refused before a shard was asked.
    pub(crate) refused_tokens: Refusals,
    /// How many HTTP requests were refused.
    pub(crate) refusals: AtomicU64,
}

impl ServerState {
    /// Returns what counts the unauthenticated connections of a listener.
    pub(crate) fn admission_of(&self, kind: ListenerKind) -> &Admission {
        match kind {
            ListenerKind::General | ListenerKind::Peer => &self.admission,
            ListenerKind::Administration | ListenerKind::Metrics => &self.administration_admission,
        }
    }
}

/// Serves AMQP on any stream. The connection holds its slot until the stream is closed.
pub(crate) async fn serve_amqp(
    server: &ServerState,
    kind: ListenerKind,
    stream: impl Stream,
    origin: Origin,
    permit: Permit,
    slot: ConnectionSlot,
) {
    let id = next_id();
    debug!(connection = id.0, peer = %permit.address(), "connected");
    let peer = AcceptedPeer {
        id,
        origin,
        permit,
        is_trusted: server.is_open,
    };
    let servers = connection::Servers {
        shards: Arc::clone(&server.shards),
        peers: server.peers.clone(),
        slots: server.slots.clone(),
        hop: Hop::of(kind),
    };
    let clock = Arc::clone(&server.clock);
    connection::serve(stream, peer, clock, servers, server.stopped.clone()).await;
    drop(slot);
}

/// Returns an identifier that no other connection has had.
pub(super) fn next_id() -> ConnectionId {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed))
}
