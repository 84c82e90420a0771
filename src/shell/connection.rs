//! One connection's task: bytes to events, replies to bytes.
//!
//! Whatever carries the bytes, TCP, TLS or a WebSocket, is a stream to it.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::io::poll_read_buf;
use tracing::{debug, info};

use super::clock::Clock;
use super::doors::Visit;
use super::outbox::{Outbox, Outgoing};
use super::owner::Mail;
use crate::amqp::{self, Condition, Delivery, Event, LinkId, Refusal, SettleMode};
use crate::broker::{ConnectionId, Input, Origin, Reply};
use crate::entity::queue::{Handover, ReceiveMode};
use crate::{limits, message};

/// What can carry a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A peer that has come in.
pub(super) struct Guest {
    pub(super) id: ConnectionId,
    pub(super) origin: Origin,
    /// Its place among those that have not proved a right.
    pub(super) visit: Visit,
    /// Nothing needs to be proved.
    pub(super) is_trusted: bool,
}

/// Serves a connection until it ends.
pub(super) async fn serve(
    stream: impl Stream,
    guest: Guest,
    clock: Arc<Clock>,
    owner: mpsc::Sender<Mail>,
) {
    let id = guest.id;
    let config = amqp::Config {
        container_id: format!("jitney_G{}", id.0),
        hostname: None,
        frame_size_max: limits::FRAME_SIZE_MAX,
        channel_max: limits::CHANNEL_MAX,
        handle_max: limits::HANDLE_MAX,
        idle_timeout: limits::IDLE_TIMEOUT,
        identity: amqp::Identity::Anonymous,
        has_certificate: guest.origin.certificate.is_some(),
        trusts_peer: guest.is_trusted,
    };
    let outbox = Arc::new(Outbox::default());
    let mail = Mail::Connected(id, Arc::clone(&outbox), guest.origin);
    if owner.send(mail).await.is_err() {
        return;
    }
    let engine = amqp::Connection::server(config, clock.now());
    let mut task = Task {
        id,
        stream,
        engine,
        clock,
        outbox,
        visit: Some(guest.visit),
        incoming: BytesMut::new(),
        output: BytesMut::new(),
        needs_flush: false,
        inputs: Vec::new(),
        outgoing: Vec::new(),
        rendered: Vec::new(),
        written: BTreeMap::new(),
        stalled: BTreeMap::new(),
        closed: false,
    };
    match task.run(&owner).await {
        // TLS and WebSockets say that they end. Who does not read that has gone.
        Ok(()) => {
            let _ = timeout(LAST_WRITE_WAIT, task.stream.shutdown()).await;
        }
        Err(error) => debug!(connection = id.0, %error, "connection lost"),
    }
    if !task.closed {
        task.inputs
            .push(Input::Event(Event::Closed { error: None }));
    }
    let inputs = std::mem::take(&mut task.inputs);
    // The owner is gone only when the broker stops.
    let _ = owner.send(Mail::Inputs(id, inputs)).await;
    let _ = owner.send(Mail::Disconnected(id)).await;
}

struct Task<S> {
    id: ConnectionId,
    stream: S,
    engine: amqp::Connection,
    clock: Arc<Clock>,
    outbox: Arc<Outbox>,
    /// Held until the peer has proved a right, which it must do by its end.
    visit: Option<Visit>,
    incoming: BytesMut,
    output: BytesMut,
    /// Bytes were written that the stream may hold back.
    needs_flush: bool,
    inputs: Vec<Input>,
    outgoing: Vec<Outgoing>,
    rendered: Vec<u8>,
    /// Bytes of messages sent on each link that the owner was not told of.
    written: BTreeMap<LinkId, u64>,
    /// Messages that are gone from their queue but had no credit left when they came here.
    stalled: BTreeMap<LinkId, VecDeque<(Handover, bytes::Bytes)>>,
    closed: bool,
}

/// Bytes that are read at a time: enough for 64 messages of 1 KiB.
const READ_BYTES: usize = 64 * 1024;
/// Bytes that are read before the owner is told.
const READ_BYTES_MAX: usize = 512 * 1024;
/// Bytes waiting for the peer to read at which we stop making more of them.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of messages written after which the owner is told: a quarter of a receiver's window.
const WRITTEN_BYTES: u64 = limits::RECEIVER_WINDOW_BYTES.cast_unsigned() / 4;
/// How long a peer may take to read the last that is written to it.
const LAST_WRITE_WAIT: Duration = Duration::from_secs(5);

/// What moved on a stream.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    /// Bytes have come, or the end.
    read: bool,
    at_end: bool,
}

impl<S: Stream> Task<S> {
    async fn run(&mut self, owner: &mpsc::Sender<Mail>) -> io::Result<()> {
        let mut at_end = false;
        let mut last_write = None;
        loop {
            self.turn();
            if !self.inputs.is_empty() {
                let inputs = std::mem::take(&mut self.inputs);
                if owner.send(Mail::Inputs(self.id, inputs)).await.is_err() {
                    return Ok(());
                }
            }
            let ends = self.engine.is_finished() || at_end;
            if ends && self.output.is_empty() && !self.needs_flush {
                return Ok(());
            }
            if ends {
                last_write.get_or_insert_with(|| Instant::now() + LAST_WRITE_WAIT);
            }
            let timer = sleep_until(self.wakes_at(last_write));
            let congested = OUTPUT_BYTES_MAX < self.output.len();
            let outbox = Arc::clone(&self.outbox);
            tokio::select! {
                biased;
                moved = poll_fn(|cx| self.poll_stream(cx, !congested && !ends)) => {
                    let moved = moved?;
                    if moved.read {
                        at_end |= moved.at_end;
                        self.handle_bytes(moved.at_end);
                    }
                }
                () = outbox.filled(), if !congested => {}
                () = timer => {
                    if last_write.is_some_and(|end| end <= Instant::now()) {
                        return Ok(());
                    }
                    self.engine.handle_timeout(self.clock.now());
                    self.end_visit();
                }
            }
        }
    }

    /// Returns when something is to be done though nothing moves.
    fn wakes_at(&self, last_write: Option<Instant>) -> Option<Instant> {
        let engine = self.engine.poll_timeout();
        let engine = engine.map(|deadline| Instant::now() + self.clock.until(deadline));
        let visit = self.visit.as_ref().map(Visit::deadline);
        [engine, visit, last_write].into_iter().flatten().min()
    }

    /// Shows out who has not proved a right in time.
    fn end_visit(&mut self) {
        let is_over = |visit: &mut Visit| visit.deadline() <= Instant::now();
        let Some(visit) = self.visit.take_if(is_over) else {
            return;
        };
        info!(connection = self.id.0, peer = %visit.address(), "no token was accepted in time");
        let seconds = limits::ADMISSION_DEADLINE.as_millis() / 1000;
        self.engine.close(
            self.clock.now(),
            Some(Refusal {
                condition: Condition::ConnectionForced,
                description: format!(
                    "The connection has had no accepted token for {seconds} seconds, and is closed."
                ),
            }),
        );
    }

    /// Does all that can be done without waiting.
    fn turn(&mut self) {
        self.take_events();
        if self.output.len() <= OUTPUT_BYTES_MAX {
            let mut outgoing = std::mem::take(&mut self.outgoing);
            self.outbox.take(&mut outgoing);
            for outgoing in outgoing.drain(..) {
                self.send(outgoing);
            }
            self.outgoing = outgoing;
            // Some replies let the engine go on.
            self.take_events();
        }
        self.take_output();
    }

    /// Writes what there is and reads what has come. Is ready when bytes were read, or when what
    /// waits to be written has become little enough to make more.
    fn poll_stream(&mut self, cx: &mut Context<'_>, reads: bool) -> Poll<io::Result<Moved>> {
        let before = self.output.len();
        while !self.output.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.output) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    self.output.advance(count);
                    self.needs_flush = true;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => break,
            }
        }
        if self.needs_flush && self.output.is_empty() {
            match Pin::new(&mut self.stream).poll_flush(cx) {
                Poll::Ready(flushed) => {
                    flushed?;
                    self.needs_flush = false;
                }
                Poll::Pending => {}
            }
        }
        let has_room = OUTPUT_BYTES_MAX < before && self.output.len() <= OUTPUT_BYTES_MAX;
        let is_written = self.output.is_empty() && !self.needs_flush;
        if self.report_written() || has_room || (!reads && is_written) {
            return Poll::Ready(Ok(Moved::default()));
        }
        if !reads || READ_BYTES_MAX <= self.incoming.len() {
            return Poll::Pending;
        }
        let mut total = 0;
        loop {
            self.incoming.reserve(READ_BYTES);
            let read = poll_read_buf(Pin::new(&mut self.stream), cx, &mut self.incoming);
            if read.is_pending() && 0 < total {
                break;
            }
            let count = ready!(read)?;
            total += count;
            if count == 0 || READ_BYTES_MAX <= total {
                let at_end = count == 0;
                return Poll::Ready(Ok(Moved { read: true, at_end }));
            }
        }
        Poll::Ready(Ok(Moved {
            read: true,
            at_end: false,
        }))
    }

    fn handle_bytes(&mut self, at_end: bool) {
        let now = self.clock.now();
        self.engine.handle_bytes(now, &mut self.incoming);
        if at_end {
            self.engine.handle_eof(now);
        }
    }

    /// Tells the owner of messages that were written; returns whether there is something to tell.
    fn report_written(&mut self) -> bool {
        // What waits for a session's window is not written: its receiver's window stays shut.
        if !self.output.is_empty() || OUTPUT_BYTES_MAX < self.engine.waiting_bytes() {
            return false;
        }
        let before = self.inputs.len();
        for (&link, bytes) in &mut self.written {
            if WRITTEN_BYTES <= *bytes {
                let bytes = std::mem::take(bytes);
                self.inputs.push(Input::Written { link, bytes });
            }
        }
        before < self.inputs.len()
    }

    fn take_output(&mut self) {
        let output = self.engine.take_output(self.clock.now());
        if self.output.is_empty() {
            self.output = output;
        } else {
            self.output.extend_from_slice(&output);
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.engine.poll_event() {
            match &event {
                Event::Credit { link, .. } => self.resend_stalled(*link),
                Event::Detached { link, .. } => {
                    self.written.remove(link);
                    self.stalled.remove(link);
                }
                Event::Closed { .. } => self.closed = true,
                Event::AttachAnswered(..)
                | Event::AttachRequested(..)
                | Event::Authenticating { .. }
                | Event::Disposition { .. }
                | Event::Opened { .. }
                | Event::RefusedInTransaction { .. }
                | Event::Transfer { .. } => {}
            }
            self.inputs.push(Input::Event(event));
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Close => self.engine.close(
                self.clock.now(),
                Some(Refusal {
                    condition: Condition::ConnectionForced,
                    description: "The broker is stopping.".to_owned(),
                }),
            ),
            Outgoing::Deliver(link, handover, body) => self.deliver(link, handover, body),
            Outgoing::Respond(link, response, bodies) => {
                let encoded = response.encode(&bodies);
                let tag = [0; 16];
                let payload: &[&[u8]] = &[&encoded];
                let delivery = Delivery {
                    tag,
                    settle_mode: SettleMode::OnSend,
                    message_format: 0,
                    payload,
                };
                if self.engine.deliver(link, delivery).is_err() {
                    debug!(
                        connection = self.id.0,
                        "a response had no link or credit left"
                    );
                }
            }
            Outgoing::Reply(reply) => self.carry_out(reply),
        }
    }

    fn carry_out(&mut self, reply: Reply) {
        match reply {
            Reply::AcceptLink(link, accept) => self.engine.accept_link(link, accept),
            Reply::RefuseLink(link, refusal) => self.engine.refuse_link(link, refusal),
            Reply::Drained(link, limit) => self.engine.drained(link, limit),
            Reply::SettleIncoming {
                link,
                delivery,
                outcome,
                settled,
            } => {
                self.engine
                    .settle_incoming(link, delivery, &outcome, settled);
            }
            Reply::SettleOutgoing(link, delivery, outcome) => {
                self.engine.settle_outgoing(link, delivery, &outcome);
            }
            Reply::Detach(link, refusal) => {
                self.written.remove(&link);
                self.stalled.remove(&link);
                self.engine.detach(link, Some(refusal));
            }
            Reply::Authenticated(is_genuine) => {
                if let (false, Some(visit)) = (is_genuine, &self.visit) {
                    info!(connection = self.id.0, peer = %visit.address(), "SASL failed");
                }
                self.engine.authenticated(is_genuine);
                // What came meanwhile was left alone.
                self.handle_bytes(false);
            }
            Reply::Admitted => {
                self.visit = None;
                self.engine.trust();
            }
            Reply::Close | Reply::Deliver(..) | Reply::Respond(..) => {
                debug_assert!(false, "the owner turns these into others");
            }
        }
    }

    fn deliver(&mut self, link: LinkId, handover: Handover, body: bytes::Bytes) {
        self.rendered.clear();
        message::render(&mut self.rendered, &body, &handover.stamps);
        let settle_mode = match handover.mode {
            ReceiveMode::PeekLock => SettleMode::OnReceipt,
            ReceiveMode::ReceiveAndDelete => SettleMode::OnSend,
        };
        let payload: &[&[u8]] = &[&self.rendered];
        let delivery = Delivery {
            tag: handover.token.to_tag(),
            settle_mode,
            message_format: 0,
            payload,
        };
        *self.written.entry(link).or_default() += u64::from(handover.body.length);
        if self.engine.deliver(link, delivery).is_ok() {
            return;
        }
        match handover.mode {
            ReceiveMode::PeekLock => {
                self.inputs.push(Input::Returned {
                    token: handover.token,
                    link,
                });
            }
            // It is gone from its queue: it waits for credit here, or ends with its link.
            ReceiveMode::ReceiveAndDelete => {
                self.stalled
                    .entry(link)
                    .or_default()
                    .push_back((handover, body));
            }
        }
    }

    fn resend_stalled(&mut self, link: LinkId) {
        for (handover, body) in self.stalled.remove(&link).unwrap_or_default() {
            self.deliver(link, handover, body);
        }
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
