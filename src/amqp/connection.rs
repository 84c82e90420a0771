//! One connection's task: bytes to events, replies to bytes.
//!
//! The transport is a stream: TCP, TLS or a WebSocket.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::membership::Membership;
use crate::host::outbox::Outbox;
use crate::host::partials::Partials;
use crate::host::shards::Shards;
use crate::limits;
use crate::net::admission::{ConnectionSlots, Permit};
use crate::net::buffers::{InputBuffer, OutputBuffer};
use crate::net::namespace_connections::{CountedConnection, TooManyConnections};
use crate::net::scheme::Scheme;
use crate::net::socket::{Socket, Stream};
use crate::peer::{Hop, Lookup, NotPassed, OriginalClient, PeerConnection, Peers, Reached};
use crate::system::clock::Clock;
use jitney_amqp::{Condition, Event, Refusal};
use jitney_base::ids::ConnectionId;
use jitney_broker::access::Origin;
use jitney_shard::Report;
use jitney_shard::peer::{Peer, ReplyEffect};
use jitney_shard::routing::{Host, Routing, ShardIndex};

/// A peer whose connection was accepted.
pub(crate) struct AcceptedPeer {
    pub(crate) id: ConnectionId,
    pub(crate) origin: Origin,
    /// Its permit as an unauthenticated connection.
    pub(crate) permit: Permit,
    /// The peer is authorized for everything.
    pub(crate) is_trusted: bool,
}

/// Where a connection can be served.
pub(crate) struct Servers {
    /// The shards of this server.
    pub(crate) shards: Arc<Shards>,
    /// The other servers of the fleet, if there is one.
    pub(crate) peers: Option<Arc<Peers>>,
    /// For the connection to one of them.
    pub(crate) slots: ConnectionSlots,
    /// Whether the connection may be passed on to one of them.
    pub(crate) hop: Hop,
}

/// Serves a connection until it ends.
pub(crate) async fn serve(
    stream: impl Stream,
    peer: AcceptedPeer,
    clock: Arc<Clock>,
    servers: Servers,
    stopped: watch::Receiver<bool>,
) {
    let Servers {
        shards,
        peers,
        slots,
        hop,
    } = servers;
    let id = peer.id;
    let is_first = peers.is_some() && hop == Hop::First;
    let config = jitney_amqp::Config {
        has_certificate: peer.origin.certificate.is_some(),
        trusts_peer: peer.is_trusted,
        holds_open: is_first,
        ..jitney_amqp::Config::server(format!("jitney_G{}", id.0))
    };
    let engine = jitney_amqp::Connection::server(config, clock.elapsed());
    let task = Box::new(ConnectionTask {
        id,
        stream,
        peer: Peer::new(engine),
        clock,
        routing: Routing::new(peer.origin.server_name.clone()),
        origin: peer.origin,
        membership: None,
        asks: None,
        outbox: Arc::default(),
        address: peer.permit.address(),
        permit: Some(peer.permit),
        incoming: InputBuffer::default(),
        partials: shards.partials(),
        shards,
        output: OutputBuffer::default(),
        read: 0,
        paused_until: None,
        runs_on: None,
        received: is_first.then(Vec::new),
        peers,
        slots,
        namespace: None,
        counted: None,
        hop,
        passed_on: None,
    });
    let mut moving = task.serve(stopped.clone()).await;
    while let Some(task) = moving {
        moving = match serve_on_shard(task, stopped.clone()).await {
            Ok(moving) => moving,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime of the shard has ended, and the server with it.
                Err(_) => return,
            },
        };
    }
}

/// Serves a connection on its shard's runtime, until it ends or goes to another shard: then it is returned.
async fn serve_on_shard<S: Stream>(
    mut task: Box<ConnectionTask<S>>,
    stopped: watch::Receiver<bool>,
) -> Result<Option<Box<ConnectionTask<S>>>, JoinError> {
    let Some(shard) = task.membership.as_ref().map(Membership::shard) else {
        return Ok(None);
    };
    task.runs_on = Some(shard);
    let Some(runtime) = task.shards.runtime(shard) else {
        return Ok(None);
    };
    let served = async move {
        // A socket that fails here fails again when it is read, which ends the connection.
        let entered = task.stream.socket().map(Socket::enter_runtime);
        if let Some(Err(error)) = entered {
            warn!(connection = task.id.0, %error, "cannot serve a connection on its shard's thread");
        }
        task.serve(stopped).await
    };
    runtime.spawn(served).await
}

struct ConnectionTask<S> {
    id: ConnectionId,
    stream: S,
    peer: Peer,
    clock: Arc<Clock>,
    shards: Arc<Shards>,
    /// What is known of the peer, until it is in its shard.
    origin: Origin,
    routing: Routing,
    /// Its place in a shard, once that is known.
    membership: Option<Membership>,
    /// The shard that is asked next whether the peer is who it says it is.
    asks: Option<(ShardIndex, Report)>,
    /// What the shard has for it.
    outbox: Arc<Outbox>,
    /// The peer's address.
    address: IpAddr,
    /// Held until the peer is authorized, which it must be by the permit's deadline.
    permit: Option<Permit>,
    incoming: InputBuffer,
    partials: Partials,
    output: OutputBuffer,
    /// Bytes that were read since the last report.
    read: usize,
    /// Until when nothing is read, because the quota of the namespace is used up.
    paused_until: Option<Instant>,
    /// The shard whose runtime serves it; none while that is the runtime of all.
    runs_on: Option<ShardIndex>,
    /// Everything that the peer has sent, until it is known whether the connection is passed on.
    received: Option<Vec<u8>>,
    /// The other servers of the fleet, if there is one.
    peers: Option<Arc<Peers>>,
    slots: ConnectionSlots,
    /// The namespace that the peer has named, until the connection counts for it.
    namespace: Option<String>,
    /// Its place among the connections of its namespace.
    counted: Option<CountedConnection>,
    hop: Hop,
    /// The connection to another server, to which it is passed on.
    passed_on: Option<Box<PeerConnection>>,
}

/// Returns whether a report says that the connection has ended.
fn is_end(report: &Report) -> bool {
    matches!(report, Report::Event(Event::Closed { .. }))
}

/// Says why a connection is not served.
fn not_served(error: &NotPassed) -> Refusal {
    Refusal {
        condition: Condition::ConnectionForced,
        description: format!("The namespace is not served: {error}."),
    }
}

/// Waits for a while until the store of a shard's namespace is there.
///
/// # Errors
///
/// A refusal for the peer: the store is still away, or this server stops.
async fn wait_for_store(
    shards: &Shards,
    shard: ShardIndex,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), Refusal> {
    let until = Instant::now() + limits::OWNER_WAIT.as_duration();
    while let Some(span) = shards.suspended_for(shard) {
        if limits::OWNER_WAIT.as_duration() <= span || until <= Instant::now() {
            return Err(store_is_away());
        }
        tokio::select! {
            () = sleep(limits::OWNER_LOOK.as_duration()) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return Err(jitney_shard::stopping()),
        }
    }
    Ok(())
}

/// Says that the store of a namespace is away.
fn store_is_away() -> Refusal {
    Refusal {
        condition: Condition::ServerBusy,
        description: "The namespace's database cannot be reached now: try again later.".to_owned(),
    }
}

/// Waits until the server that has passed a connection on has closed it, after this one has, and otherwise lets the socket be reset. The
/// end of a connection comes after its bytes: that server does not see it while its client does not read, but it sees a reset.
async fn close_for_passer(
    stream: &mut impl Stream,
    wait: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    let mut rest = [0; 512];
    let closed = async { while stream.read(&mut rest).await.is_ok_and(|count| 0 < count) {} };
    let closed = tokio::select! {
        closed = timeout(wait, closed) => closed,
        // That server takes the end of this one for the end of the connection.
        _ = stopped.wait_for(|stopped| *stopped) => return,
    };
    if closed.is_err()
        && let Some(socket) = stream.socket()
    {
        socket.reset_when_closed();
    }
}

/// How a connection's task leaves its runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskOutcome {
    Ended,
    /// It continues on the runtime of its shard.
    Moves,
    /// Another server has the namespace.
    IsPassedOn,
}

/// The deadline of a connection that is being closed: the peer reads the last output, or is cut
/// off.
#[derive(Debug)]
struct LastWrite {
    ends_at: Instant,
    /// The deadline for the next progress.
    looks_at: Instant,
    /// Bytes that waited at the last check.
    bytes: usize,
}

impl LastWrite {
    fn begin(bytes: usize) -> Self {
        let now = Instant::now();
        Self {
            ends_at: now + limits::LAST_WRITE_WAIT.as_duration(),
            looks_at: now + limits::LAST_WRITE_PAUSE.as_duration(),
            bytes,
        }
    }

    /// Returns whether the peer's time is over, with this many bytes still waiting.
    fn is_over(&mut self, bytes: usize) -> bool {
        let now = Instant::now();
        if now < self.looks_at {
            return false;
        }
        let reads = bytes == 0 || bytes < self.bytes;
        self.bytes = bytes;
        self.looks_at = (now + limits::LAST_WRITE_PAUSE.as_duration()).min(self.ends_at);
        self.ends_at <= now || !reads
    }
}

/// The progress of a stream.
#[derive(Debug, Clone, Copy)]
struct StreamProgress {
    at_end: bool,
}

/// Reads what the peer still sends, and drops it, until the peer has closed too. A socket that is closed with unread bytes is
/// reset, and the peer may lose what was written last (RFC 1122, 4.2.2.13): the close frame of a WebSocket, to which it
/// answers, is the usual one.
///
/// A server that stops does not wait for that.
async fn drop_rest(stream: &mut (impl AsyncRead + Unpin), mut stopped: watch::Receiver<bool>) {
    let mut rest = stream.take(limits::LAST_READ_BYTES_MAX);
    let mut nowhere = tokio::io::sink();
    let read = tokio::io::copy(&mut rest, &mut nowhere);
    tokio::select! {
        _ = timeout(limits::LAST_READ_WAIT.as_duration(), read) => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
}

impl<S: Stream> ConnectionTask<S> {
    /// Serves the connection until it ends, or until it is to be served by another runtime: then it is returned.
    async fn serve(mut self: Box<Self>, stopped: watch::Receiver<bool>) -> Option<Box<Self>> {
        // Whether the peer may still send something.
        let mut has_more = false;
        match self.run(stopped.clone()).await {
            Ok(TaskOutcome::Moves) => return Some(self),
            Ok(TaskOutcome::IsPassedOn) => {
                self.pass_on(stopped).await;
                return None;
            }
            // Send close_notify or the WebSocket close frame; give up if the peer no longer reads.
            Ok(TaskOutcome::Ended) => {
                let wait = limits::LAST_WRITE_WAIT.as_duration();
                let shut_down = timeout(wait, self.stream.shutdown()).await;
                has_more = matches!(shut_down, Ok(Ok(()))) && self.hop != Hop::Last;
            }
            Err(error) => debug!(connection = self.id.0, %error, "connection lost"),
        }
        self.peer.engine.handle_eof(self.clock.elapsed());
        self.peer.take_events();
        let mut reports = self.peer.take_reports();
        if self.routing.is_over() {
            self.routing.route(&self.shards.routes(), &mut reports);
        }
        // The last of them say that the engine has ended.
        if let Some(membership) = self.membership {
            membership.leave(reports).await;
        }
        if self.hop == Hop::Last {
            let wait = limits::LAST_WRITE_WAIT.as_duration();
            close_for_passer(&mut self.stream, wait, stopped).await;
        } else if has_more {
            drop_rest(&mut self.stream, stopped).await;
        }
        None
    }

    /// Returns whether it is known which shard serves it, and that one has another runtime.
    fn is_to_move(&mut self) -> bool {
        let shard = self.membership.as_ref().map(Membership::shard);
        shard.is_some()
            && shard != self.runs_on
            && self.routing.is_over()
            && self.stream.socket().is_some()
    }

    async fn run(&mut self, mut stopped: watch::Receiver<bool>) -> io::Result<TaskOutcome> {
        let mut at_end = false;
        let mut last_write: Option<LastWrite> = None;
        let mut timer = pin!(sleep_until(self.wakes_at(None)));
        loop {
            self.turn();
            if let Some(outcome) = self.report_read(&stopped).await {
                return Ok(outcome);
            }
            let ends = self.peer.engine.is_finished() || at_end;
            if ends && self.output.is_flushed() {
                return Ok(TaskOutcome::Ended);
            }
            if !ends && last_write.is_none() && self.is_to_move() {
                return Ok(TaskOutcome::Moves);
            }
            if ends {
                last_write.get_or_insert_with(|| LastWrite::begin(self.output.len()));
            }
            self.look_at_quota();
            // The timer is set anew only when it would be late, or far too early: most turns move its end away.
            let wakes_at = self.wakes_at(last_write.as_ref());
            let is_early = timer.deadline() + limits::TIMER_FAR.as_duration() < wakes_at;
            if wakes_at < timer.deadline() || is_early || timer.is_elapsed() {
                timer.as_mut().reset(wakes_at);
            }
            let reads = !ends && self.output.len() <= limits::OUTPUT_BYTES_MAX;
            let takes = self.peer.outgoing.is_empty()
                && self.output.len() < jitney_amqp::limits::OUTPUT_BYTES;
            let outbox = Arc::clone(&self.outbox);
            let is_open = last_write.is_none();
            // Those that are in a shard are closed by it.
            let is_alone = self.membership.is_none() && is_open;
            tokio::select! {
                biased;
                moved = poll_fn(|cx| if reads { self.poll_stream(cx) } else { self.poll_output(cx) }) => {
                    at_end |= moved?.at_end;
                }
                () = outbox.filled(), if takes => {}
                // A peer that does not read may never let the close frame be written.
                () = outbox.closing(), if is_open => {
                    last_write = Some(LastWrite::begin(self.output.len()));
                }
                _ = stopped.wait_for(|stopped| *stopped), if is_alone => {
                    self.peer.engine.close(self.clock.elapsed(), Some(jitney_shard::stopping()));
                    last_write = Some(LastWrite::begin(self.output.len()));
                }
                () = timer.as_mut() => {
                    if let Some(last_write) = &mut last_write
                        && last_write.is_over(self.output.len())
                    {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    self.incoming.rest();
                    self.peer.engine.handle_timeout(self.clock.elapsed());
                    self.close_unauthenticated();
                }
            }
        }
    }

    /// Passes the connection on to the server that has its namespace.
    async fn pass_on(mut self: Box<Self>, stopped: watch::Receiver<bool>) {
        let (peers, passed_on) = (self.peers.take(), self.passed_on.take());
        let (Some(peers), Some(connection)) = (peers, passed_on) else {
            return;
        };
        if let Some(other) = self.membership.take() {
            other.leave_early().await;
        }
        // The other server's answers follow these.
        if !self.flush().await {
            return;
        }
        let received = self.received.take().unwrap_or_default();
        self.partials.set(0);
        let permit = self.permit.take();
        let passed = peers.pass(&mut self.stream, &received, permit, *connection, stopped);
        if let Err(error) = passed.await {
            info!(
                connection = self.id.0,
                "a connection is not passed on: {error}"
            );
            self.refuse(not_served(&error));
            self.flush().await;
            let wait = limits::LAST_WRITE_WAIT.as_duration();
            let _ = timeout(wait, self.stream.shutdown()).await;
        }
    }

    /// Writes all output of the engine; returns whether the peer has taken it in time.
    async fn flush(&mut self) -> bool {
        self.peer
            .engine
            .take_output(self.clock.elapsed(), self.output.bytes());
        let flushed = poll_fn(|cx| -> Poll<io::Result<()>> {
            self.output.poll_write(&mut self.stream, cx)?;
            if self.output.is_flushed() {
                return Poll::Ready(Ok(()));
            }
            Poll::Pending
        });
        let wait = limits::LAST_WRITE_WAIT.as_duration();
        matches!(timeout(wait, flushed).await, Ok(Ok(())))
    }

    /// Answers the peer's `open`, which may have been held, and closes the connection.
    fn refuse(&mut self, refusal: Refusal) {
        self.peer.engine.serve_here();
        self.peer.engine.close(self.clock.elapsed(), Some(refusal));
    }

    /// Reports what was read; returns how the connection leaves its runtime, if it does.
    ///
    /// What is known after a report may let the engine answer and continue, without any reply of a shard: that is written, and
    /// reported, before anything else is waited for. The peer may send nothing more until it has the answer.
    async fn report_read(&mut self, stopped: &watch::Receiver<bool>) -> Option<TaskOutcome> {
        while self.peer.has_reports() {
            let whole = self.peer.message_bytes();
            let reports = self.peer.take_reports();
            let bytes = std::mem::take(&mut self.read).max(whole);
            if self.report(reports, bytes, stopped).await.is_none() {
                return Some(TaskOutcome::Ended);
            }
            if self.routing.take_accepted() {
                self.peer.engine.authenticated_for_now();
                self.handle_bytes();
            }
            self.take_engine_output();
            self.partials
                .set(self.kept_bytes() + self.peer.message_bytes());
        }
        if self.passed_on.is_some() {
            return Some(TaskOutcome::IsPassedOn);
        }
        if let Some((shard, report)) = self.asks.take() {
            self.enter(shard).await;
            let reported = match &self.membership {
                Some(membership) => membership.report(vec![report], 0).await,
                None => None,
            };
            return reported.is_none().then_some(TaskOutcome::Ended);
        }
        None
    }

    /// Reports to the shard that the peer has named, if it has named one; `None` if that has ended.
    async fn report(
        &mut self,
        mut reports: Vec<Report>,
        bytes: usize,
        stopped: &watch::Receiver<bool>,
    ) -> Option<()> {
        if self.membership.is_none() && reports.iter().all(is_end) {
            // No shard knows of the connection.
            return Some(());
        }
        self.note_namespace(&reports);
        let routed = self.routing.route(&self.shards.routes(), &mut reports);
        let shard = match (routed, self.routing.elsewhere()) {
            (Some(shard), _) => shard,
            (None, None) => return Some(()),
            (None, Some(host)) => match self.reach(host.clone(), stopped.clone()).await {
                Ok(Reached::Here(shard)) => {
                    self.routing.serve_at(shard, &mut reports);
                    shard
                }
                Ok(Reached::Elsewhere(connection)) => {
                    self.passed_on = Some(connection);
                    return Some(());
                }
                Err(error) => {
                    info!(connection = self.id.0, peer = %self.address, "a connection is not served: {error}");
                    self.refuse(not_served(&error));
                    return Some(());
                }
            },
        };
        if !self.is_in(shard)
            && let Err(refusal) = wait_for_store(&self.shards, shard, stopped.clone()).await
        {
            self.refuse(refusal);
            return Some(());
        }
        if self.routing.is_over() && self.received.take().is_some() {
            self.peer.engine.serve_here();
            self.handle_bytes();
        }
        self.enter(shard).await;
        self.membership.as_ref()?.report(reports, bytes).await
    }

    /// Takes note of the namespace that the peer names when it opens the connection.
    fn note_namespace(&mut self, reports: &[Report]) {
        let named = reports.iter().find_map(|report| match report {
            Report::Event(Event::Opened { hostname, .. }) => Some(hostname.as_deref()),
            Report::Event(_)
            | Report::Returned { .. }
            | Report::Written { .. }
            | Report::Answered(_)
            | Report::TryIdentity(_) => None,
        });
        if let Some(host) = named {
            let host = host.or(self.origin.server_name.as_deref());
            let routes = self.shards.routes();
            self.namespace = Some(routes.namespace_of(host).to_owned());
        }
    }

    /// Counts the connection for its namespace once its peer is authorized, or refuses it if the namespace has too many.
    fn count_for_namespace(&mut self) {
        let Some(namespace) = self.namespace.take_if(|_| self.permit.is_none()) else {
            return;
        };
        let namespaces = self.shards.routes().namespaces().count();
        match self.slots.connections().count(&namespace, namespaces) {
            Ok(counted) => self.counted = Some(counted),
            Err(TooManyConnections(most)) => {
                debug!(
                    connection = self.id.0,
                    namespace, "the namespace has too many connections"
                );
                self.refuse(Refusal {
                    condition: Condition::ResourceLimitExceeded,
                    description: format!(
                        "The namespace has {most} connections, and other namespaces need the rest: \
                         close some, or raise the broker's limit of open files."
                    ),
                });
            }
        }
    }

    /// Finds the server of the namespace that a host means.
    async fn reach(
        &mut self,
        host: Host,
        stopped: watch::Receiver<bool>,
    ) -> Result<Reached, NotPassed> {
        let peers = self.peers.clone().ok_or(NotPassed::NoServer)?;
        let certificate = self.origin.certificate.clone();
        let client = OriginalClient {
            address: self.address,
            server_name: self.origin.server_name.clone(),
            // AMQP makes no URLs, so that TLS matters only for its certificate.
            scheme: if certificate.is_some() {
                Scheme::Https
            } else {
                Scheme::Http
            },
            certificate,
        };
        let lookup = Lookup {
            shards: &self.shards,
            slots: &self.slots,
            host: host.0.as_deref(),
            client: &client,
            hop: self.hop,
        };
        peers.reach(lookup, stopped).await
    }

    /// Returns whether the connection has its place in a shard.
    fn is_in(&self, shard: ShardIndex) -> bool {
        self.membership.as_ref().map(Membership::shard) == Some(shard)
    }

    /// Enters a shard, and leaves the one before.
    async fn enter(&mut self, shard: ShardIndex) {
        if self.is_in(shard) {
            return;
        }
        if let Some(other) = self.membership.take() {
            other.leave_early().await;
        }
        let origin = if self.routing.is_over() {
            std::mem::take(&mut self.origin)
        } else {
            self.origin.clone()
        };
        self.membership = Membership::enter(&self.shards, shard, self.id, origin).await;
        if let Some(membership) = &self.membership {
            self.outbox = Arc::clone(membership.outbox());
        }
    }

    /// Returns the next deadline.
    fn wakes_at(&self, last_write: Option<&LastWrite>) -> Instant {
        let now = Instant::now();
        let engine = self.peer.engine.poll_timeout();
        let engine = engine.map(|deadline| {
            let span = self.clock.until_elapsed(deadline);
            if span < limits::TIMER_FAR.as_duration() {
                return now + span;
            }
            // The deadlines of many idle connections are the same then, and wake the thread once.
            let deadline = deadline.round_up(limits::TIMER_STEP);
            now + self.clock.until_elapsed(deadline)
        });
        let permit = self.permit.as_ref().map(Permit::deadline);
        let last_write = last_write.map(|last_write| last_write.looks_at);
        let all = [engine, permit, last_write, self.paused_until];
        let next = all.into_iter().flatten().min();
        next.unwrap_or(now + limits::CONNECTION_WAKE.as_duration())
    }

    /// Closes the connection if the peer was not authorized before the permit's deadline.
    fn close_unauthenticated(&mut self) {
        let is_over = |permit: &mut Permit| permit.deadline() <= Instant::now();
        let Some(permit) = self.permit.take_if(is_over) else {
            return;
        };
        info!(connection = self.id.0, peer = %permit.address(), "connection closed: the peer was not authorized before the deadline");
        let seconds = limits::ADMISSION_DEADLINE.as_millis() / 1000;
        self.peer.engine.close(
            self.clock.elapsed(),
            Some(Refusal {
                condition: Condition::ConnectionForced,
                description: format!(
                    "The connection has had no accepted token for {seconds} seconds, and is closed."
                ),
            }),
        );
    }

    /// Does all work that needs no wait.
    fn turn(&mut self) {
        self.peer.take_events();
        if self.peer.outgoing.is_empty() && !self.peer.is_closed() {
            self.outbox.take(&mut self.peer.outgoing);
            let routes = self.shards.routes();
            self.asks = self.routing.ask_next(&routes, &mut self.peer.outgoing);
        }
        if self.output.len() < jitney_amqp::limits::OUTPUT_BYTES {
            self.peer.engine.go_on();
        }
        while self.output.len() + self.peer.engine.output_bytes()
            < jitney_amqp::limits::OUTPUT_BYTES
            && let Some(effect) = self.peer.send_next(self.clock.elapsed())
        {
            match effect {
                ReplyEffect::None => {}
                ReplyEffect::ReadOn => self.handle_bytes(),
                ReplyEffect::Admitted => self.permit = None,
            }
        }
        self.count_for_namespace();
        // Some replies let the engine continue.
        self.take_engine_output();
        self.partials
            .set(self.kept_bytes() + self.peer.message_bytes());
        if let Some(permit) = &self.permit {
            let meter = permit.meter();
            meter.set_frames(self.peer.engine.unauthenticated_bytes());
            meter.set_unread(self.output.len());
        }
        if let Some(membership) = &mut self.membership {
            membership.set_sessions(self.peer.engine.session_count());
        }
    }

    /// Takes what the engine has to report and to write.
    fn take_engine_output(&mut self) {
        self.peer.take_events();
        let now = self.clock.elapsed();
        self.peer.engine.take_output(now, self.output.bytes());
    }

    /// Returns the bytes of the peer's input that the engine keeps.
    fn kept_bytes(&self) -> usize {
        let engine = &self.peer.engine;
        engine.partial_bytes() + engine.link_bytes() + self.routing.kept_bytes()
    }

    /// Returns when a connection may read again, if the quota of the namespace is used up.
    fn quota_used_up_until(&self) -> Option<Instant> {
        self.membership.as_ref()?.quota().used_up_until()
    }

    /// Stops reading while the quota of the namespace is used up.
    fn look_at_quota(&mut self) {
        let until = self.quota_used_up_until();
        if let (Some(_), None, Some(membership)) = (until, self.paused_until, &self.membership) {
            membership.quota().note_wait();
        }
        self.paused_until = until;
    }

    /// Writes output; returns whether more can be written.
    fn write_output(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let before = self.output.len();
        self.output.poll_write(&mut self.stream, cx)?;
        let has_room = |bytes: usize| bytes <= before && self.output.len() < bytes;
        let waits = !self.peer.outgoing.is_empty() || self.peer.engine.has_more();
        let goes_on = (self.output.len() < jitney_amqp::limits::OUTPUT_BYTES && waits)
            || has_room(jitney_amqp::limits::OUTPUT_BYTES)
            || has_room(limits::OUTPUT_BYTES_MAX);
        Ok(self.report_written() || goes_on)
    }

    /// Writes output, and reads nothing. Ready when all of it is written, or when more can be written.
    fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<StreamProgress>> {
        let goes_on = self.write_output(cx)?;
        if goes_on || self.output.is_flushed() {
            return Poll::Ready(Ok(StreamProgress { at_end: false }));
        }
        Poll::Pending
    }

    /// Writes output and reads input. Ready when bytes were read, or when more can be written.
    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<StreamProgress>> {
        let goes_on = self.write_output(cx)?;
        if self.peer.engine.is_held() {
            // The buffered input is processed before more is read.
            self.handle_bytes();
            return Poll::Ready(Ok(StreamProgress { at_end: false }));
        }
        if self.paused_until.is_none() && self.quota_used_up_until().is_some() {
            // Other connections have used it up since the timer was set.
            return Poll::Ready(Ok(StreamProgress { at_end: false }));
        }
        let most = self.input_room();
        if 0 < most {
            let read = self.incoming.poll_read(&mut self.stream, cx, most);
            if read.is_ready() || !goes_on {
                let count = ready!(read)?;
                self.read += count;
                if let Some(membership) = &self.membership {
                    membership.quota().take(count);
                }
                self.keep_received(count);
                self.handle_bytes();
                let at_end = count == 0;
                if at_end {
                    self.peer.engine.handle_eof(self.clock.elapsed());
                }
                return Poll::Ready(Ok(StreamProgress { at_end }));
            }
        }
        if goes_on {
            return Poll::Ready(Ok(StreamProgress { at_end: false }));
        }
        Poll::Pending
    }

    /// Keeps what was just read, until it is known which server has the namespace.
    fn keep_received(&mut self, count: usize) {
        if let Some(received) = &mut self.received {
            let bytes = self.incoming.bytes();
            let new = bytes.get(bytes.len().saturating_sub(count)..);
            received.extend_from_slice(new.unwrap_or_default());
        }
    }

    /// Returns how many bytes of input may be read. The engine leaves the rest of a frame; it leaves whole
    /// frames while the shards are asked about the peer's identity.
    fn input_room(&self) -> usize {
        if self.paused_until.is_some() {
            return 0;
        }
        let unread = self.incoming.len();
        if !self.routing.is_over() {
            return jitney_shard::limits::UNROUTED_BYTES_MAX.saturating_sub(unread);
        }
        let has_room = unread < jitney_amqp::limits::FRAME_SIZE_MAX as usize;
        if has_room { limits::INPUT_BYTES } else { 0 }
    }

    fn handle_bytes(&mut self) {
        let now = self.clock.elapsed();
        let others = self.peer.message_bytes() + self.peer.engine.link_bytes();
        let room = self.partials.room().saturating_sub(others);
        self.peer.engine.set_partial_room(room);
        self.peer.engine.handle_bytes(now, self.incoming.bytes());
    }

    /// Reports messages that were written; returns whether there is something to report.
    fn report_written(&mut self) -> bool {
        self.is_all_written() && self.peer.report_written()
    }

    /// Returns whether all output has been written to the peer's socket and no session's window
    /// holds any back.
    fn is_all_written(&self) -> bool {
        self.output.is_empty()
            && self.peer.engine.waiting_bytes() <= limits::WINDOW_WAITING_BYTES_MAX
    }
}
