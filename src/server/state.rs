//! The state that all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tokio::sync::watch;
use tracing::debug;

use super::admission::{Admission, ConnectionSlot, ConnectionSlots, ListenerKind, Permit};
use super::answers::Answers;
use super::api::{Changes, Searches};
use super::backup::Backups;
use super::balancers::Balancers;
use super::clock::Clock;
use super::connection::{self, AcceptedPeer};
use super::history::History;
use super::metrics::Metrics;
use super::namespaces::ServerNamespaces;
use super::operator::Operator;
use super::peer::{Hop, Peers};
use super::refusals::Refusals;
use super::shards::Shards;
use super::sign_in::ConsoleSignIn;
use super::socket::Stream;
use super::store::Fleet;
use super::tls::Tls;
use jitney_base::ids::ConnectionId;
use jitney_broker::access::Origin;

/// The state that all connections share.
pub(super) struct ServerState {
    pub(super) clock: Arc<Clock>,
    pub(super) shards: Arc<Shards>,
    pub(super) tls: Arc<Tls>,
    pub(super) admission: Admission,
    /// Counts the connections of administration listeners apart, so that others cannot keep health
    /// checks out.
    pub(super) administration_admission: Admission,
    pub(super) slots: ConnectionSlots,
    pub(super) balancers: Balancers,
    pub(super) operator: Operator,
    pub(super) backups: Arc<Backups>,
    pub(super) namespaces: Arc<ServerNamespaces>,
    /// The servers that share a store, if namespaces are in one.
    pub(super) fleet: Option<Arc<Fleet>>,
    /// How their namespaces are reached.
    pub(super) peers: Option<Arc<Peers>>,
    pub(super) metrics: Metrics,
    pub(super) history: Arc<History>,
    pub(super) changes: Arc<Changes>,
    /// The bytes of answers of the JSON API.
    pub(super) answers: Answers,
    pub(super) searches: Searches,
    pub(super) console: ConsoleSignIn,
    /// Every peer is authorized for everything (`--auth development`).
    pub(super) is_open: bool,
    pub(super) stopped: watch::Receiver<bool>,
    /// The malformed tokens that were refused before a shard was asked.
    pub(super) refused_tokens: Refusals,
    /// How many HTTP requests were refused.
    pub(super) refusals: AtomicU64,
}

impl ServerState {
    /// Returns what counts the unauthenticated connections of a listener.
    pub(super) fn admission_of(&self, kind: ListenerKind) -> &Admission {
        match kind {
            ListenerKind::General | ListenerKind::Peer => &self.admission,
            ListenerKind::Administration | ListenerKind::Metrics => &self.administration_admission,
        }
    }
}

/// Serves AMQP on any stream. The connection holds its slot until the stream is closed.
pub(super) async fn serve_amqp(
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
