//! One connection's task: bytes to events, replies to bytes.
//!
//! The transport is a stream: TCP, TLS or a WebSocket.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info};

use super::admission::Permit;
use super::buffers::{Incoming, Output};
use super::clock::Clock;
use super::mailbox::{Mail, Mailbox, Partials};
use super::outbox::Outbox;
use crate::access::Origin;
use crate::amqp::{self, Condition, Event, Refusal};
use crate::ids::ConnectionId;
use crate::limits;
use crate::shard::Report;
use crate::shard::peer::{Effect, Peer};

/// A stream that can carry a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A peer whose connection was accepted.
pub(super) struct AcceptedPeer {
    pub(super) id: ConnectionId,
    pub(super) origin: Origin,
    /// Its permit as an unauthenticated connection.
    pub(super) permit: Permit,
    /// The peer is authorized for everything.
    pub(super) is_trusted: bool,
}

/// Serves a connection until it ends.
pub(super) async fn serve(
    stream: impl Stream,
    peer: AcceptedPeer,
    clock: Arc<Clock>,
    owner: Mailbox,
) {
    let id = peer.id;
    let config = amqp::Config {
        has_certificate: peer.origin.certificate.is_some(),
        trusts_peer: peer.is_trusted,
        ..amqp::Config::server(format!("jitney_G{}", id.0))
    };
    let outbox = Arc::new(Outbox::default());
    let mail = Mail::Connected(id, Arc::clone(&outbox), peer.origin);
    if owner.send(mail).await.is_none() {
        return;
    }
    let presence = Presence::new(id, &owner);
    let engine = amqp::Connection::server(config, clock.elapsed());
    let mut task = Task {
        id,
        stream,
        peer: Peer::new(engine),
        clock,
        outbox,
        permit: Some(peer.permit),
        incoming: Incoming::default(),
        partials: owner.partials(),
        output: Output::default(),
        read: 0,
    };
    match task.run(&owner).await {
        // Send close_notify or the WebSocket close frame; give up if the peer no longer reads.
        Ok(()) => {
            let _ = timeout(LAST_WRITE_WAIT, task.stream.shutdown()).await;
        }
        Err(error) => debug!(connection = id.0, %error, "connection lost"),
    }
    task.peer.engine.handle_eof(task.clock.elapsed());
    task.peer.take_events();
    presence.leave(task.peer.take_reports()).await;
}

/// A connection that is registered with the owner. It is removed from the broker when its task
/// ends, also by a panic: otherwise its links would keep their messages and message sessions for
/// ever.
#[derive(Debug)]
pub(super) struct Presence {
    id: ConnectionId,
    owner: Mailbox,
    has_left: bool,
}

impl Presence {
    pub(super) fn new(id: ConnectionId, owner: &Mailbox) -> Self {
        Self {
            id,
            owner: owner.clone(),
            has_left: false,
        }
    }

    /// Sends the owner the last reports of a connection whose engine has ended.
    pub(super) async fn leave(mut self, reports: Vec<Report>) {
        self.has_left = true;
        leave(self.id, &self.owner, reports).await;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let (id, owner) = (self.id, self.owner.clone());
        // Without a runtime the process ends, and the owner with it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let closed = Report::Event(Event::Closed {
                    error: None,
                    unsent: Vec::new(),
                });
                leave(id, &owner, vec![closed]).await;
            });
        }
    }
}

async fn leave(id: ConnectionId, owner: &Mailbox, reports: Vec<Report>) {
    // The owner ends only when the broker stops.
    let _ = owner.send_reports(id, reports, 0).await;
    let _ = owner.send(Mail::Disconnected(id)).await;
}

struct Task<S> {
    id: ConnectionId,
    stream: S,
    peer: Peer,
    clock: Arc<Clock>,
    outbox: Arc<Outbox>,
    /// Held until the peer is authorized, which it must be by the permit's deadline.
    permit: Option<Permit>,
    incoming: Incoming,
    partials: Partials,
    output: Output,
    /// Bytes that were read since the last report.
    read: usize,
}

/// Unread output, in bytes, at which no more is produced.
const OUTPUT_BYTES: usize = 256 * 1024;
/// Unread output, in bytes, at which input is not read either.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that wait for a session's window like written ones: bytes beyond were not written.
const WAITING_BYTES_MAX: usize = 64 * 1024;
/// How often an idle connection wakes up.
const IDLE_WAKE: Duration = Duration::from_mins(4);
/// How long a peer may take to read the last output.
const LAST_WRITE_WAIT: Duration = Duration::from_secs(5);
/// How long it may read nothing of that.
const LAST_WRITE_PAUSE: Duration = Duration::from_secs(1);

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
            ends_at: now + LAST_WRITE_WAIT,
            looks_at: now + LAST_WRITE_PAUSE,
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
        self.looks_at = (now + LAST_WRITE_PAUSE).min(self.ends_at);
        self.ends_at <= now || !reads
    }
}

/// The progress of a stream.
#[derive(Debug, Clone, Copy)]
struct Moved {
    at_end: bool,
}

impl<S: Stream> Task<S> {
    async fn run(&mut self, owner: &Mailbox) -> io::Result<()> {
        let mut at_end = false;
        let mut last_write: Option<LastWrite> = None;
        let mut timer = pin!(sleep_until(self.wakes_at(None)));
        loop {
            self.turn();
            if self.peer.has_reports() {
                let whole = self.peer.message_bytes();
                let reports = self.peer.take_reports();
                let bytes = std::mem::take(&mut self.read).max(whole);
                let sent = owner.send_reports(self.id, reports, bytes).await;
                if sent.is_none() {
                    return Ok(());
                }
                self.partials.set(self.kept_bytes());
            }
            let ends = self.peer.engine.is_finished() || at_end;
            if ends && self.output.is_flushed() {
                return Ok(());
            }
            if ends {
                last_write.get_or_insert_with(|| LastWrite::begin(self.output.len()));
            }
            // The timer is set anew only when it would be late: most turns move its end away.
            let wakes_at = self.wakes_at(last_write.as_ref());
            if wakes_at < timer.deadline() || timer.is_elapsed() {
                timer.as_mut().reset(wakes_at);
            }
            let reads = !ends && self.output.len() <= OUTPUT_BYTES_MAX;
            let takes = self.peer.outgoing.is_empty() && self.output.len() < OUTPUT_BYTES;
            let outbox = Arc::clone(&self.outbox);
            let is_open = last_write.is_none();
            tokio::select! {
                biased;
                moved = poll_fn(|cx| self.poll_stream(cx, reads)) => at_end |= moved?.at_end,
                () = outbox.filled(), if takes => {}
                // A peer that does not read may never let the close frame be written.
                () = outbox.closing(), if is_open => {
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

    /// Returns the next deadline.
    fn wakes_at(&self, last_write: Option<&LastWrite>) -> Instant {
        let now = Instant::now();
        let engine = self.peer.engine.poll_timeout();
        let engine = engine.map(|deadline| now + self.clock.until_elapsed(deadline));
        let permit = self.permit.as_ref().map(Permit::deadline);
        let last_write = last_write.map(|last_write| last_write.looks_at);
        let next = [engine, permit, last_write].into_iter().flatten().min();
        next.unwrap_or(now + IDLE_WAKE)
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
        }
        if self.output.len() < OUTPUT_BYTES {
            self.peer.engine.go_on();
        }
        while self.output.len() + self.peer.engine.output_bytes() < OUTPUT_BYTES
            && let Some(effect) = self.peer.send_next(self.clock.elapsed())
        {
            match effect {
                Effect::None => {}
                Effect::ReadOn => self.handle_bytes(false),
                Effect::Admitted => self.permit = None,
            }
        }
        // Some replies let the engine continue.
        self.peer.take_events();
        self.peer
            .engine
            .take_output(self.clock.elapsed(), self.output.bytes());
        self.partials
            .set(self.kept_bytes() + self.peer.message_bytes());
    }

    /// Returns the bytes of the peer's input that the engine keeps.
    fn kept_bytes(&self) -> usize {
        self.peer.engine.partial_bytes() + self.peer.engine.link_bytes()
    }

    /// Writes output and reads input. Ready when bytes were read, or when more can be written.
    fn poll_stream(&mut self, cx: &mut Context<'_>, reads: bool) -> Poll<io::Result<Moved>> {
        let before = self.output.len();
        self.output.poll_write(&mut self.stream, cx)?;
        let has_room = |bytes: usize| bytes <= before && self.output.len() < bytes;
        let waits = !self.peer.outgoing.is_empty() || self.peer.engine.has_more();
        let goes_on = (self.output.len() < OUTPUT_BYTES && waits)
            || has_room(OUTPUT_BYTES)
            || has_room(OUTPUT_BYTES_MAX)
            || (!reads && self.output.is_flushed());
        let goes_on = self.report_written() || goes_on;
        let mut at_end = false;
        if reads && self.peer.engine.is_held() {
            // The buffered input is processed before more is read.
            self.handle_bytes(false);
            return Poll::Ready(Ok(Moved { at_end }));
        }
        if reads {
            let read = self.incoming.poll_read(&mut self.stream, cx);
            if read.is_ready() || !goes_on {
                let count = ready!(read)?;
                at_end = count == 0;
                self.read += count;
                self.handle_bytes(at_end);
                return Poll::Ready(Ok(Moved { at_end }));
            }
        }
        if goes_on {
            return Poll::Ready(Ok(Moved { at_end }));
        }
        Poll::Pending
    }

    fn handle_bytes(&mut self, at_end: bool) {
        let now = self.clock.elapsed();
        let others = self.peer.message_bytes() + self.peer.engine.link_bytes();
        let room = self.partials.room().saturating_sub(others);
        self.peer.engine.set_partial_room(room);
        self.peer.engine.handle_bytes(now, self.incoming.bytes());
        if at_end {
            self.peer.engine.handle_eof(now);
        }
    }

    /// Reports messages that were written; returns whether there is something to report.
    fn report_written(&mut self) -> bool {
        self.is_all_written() && self.peer.report_written()
    }

    /// Returns whether all output has been written to the peer's socket and no session's window
    /// holds any back.
    fn is_all_written(&self) -> bool {
        self.output.is_empty() && self.peer.engine.waiting_bytes() <= WAITING_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::pin::Pin;

    use tokio::io::ReadBuf;
    use tokio::sync::mpsc;

    use super::*;
    use crate::server::admission::Admission;
    use crate::time::Timestamp;

    /// A stream that panics.
    struct Panics;

    impl AsyncRead for Panics {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            panic!("as it is to");
        }
    }

    impl AsyncWrite for Panics {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn accepted() -> AcceptedPeer {
        AcceptedPeer {
            id: ConnectionId(7),
            origin: Origin::default(),
            permit: Admission::new(100)
                .try_admit(IpAddr::V4(Ipv4Addr::LOCALHOST))
                .unwrap(),
            is_trusted: true,
        }
    }

    #[tokio::test]
    async fn a_peer_that_reads_nothing_is_cut_off_when_its_connection_is_closed() {
        let (sender, mut mail) = mpsc::channel(limits::MAILBOX_LENGTH);
        let clock = Arc::new(Clock::new(Timestamp::EPOCH));
        // Fewer bytes than the answers to the input.
        let (mut peer, stream) = tokio::io::duplex(16);
        let served = tokio::spawn(serve(
            stream,
            accepted(),
            clock,
            Mailbox::new(sender, usize::MAX),
        ));
        let Some(Mail::Connected(_, outbox, _)) = mail.recv().await else {
            panic!("it is told first");
        };
        peer.write_all(b"AMQP\x00\x01\x00\x00").await.unwrap();
        let open = b"\0\0\0\x11\x02\0\0\0\0\x53\x10\xc0\x04\x01\xa1\x01c";
        peer.write_all(open).await.unwrap();
        assert!(matches!(mail.recv().await, Some(Mail::Reports(..))));
        outbox.close();
        timeout(2 * LAST_WRITE_WAIT, served).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_connection_whose_task_panics_is_taken_out_of_the_broker() {
        let (sender, mut mail) = mpsc::channel(limits::MAILBOX_LENGTH);
        let clock = Arc::new(Clock::new(Timestamp::EPOCH));
        let owner = Mailbox::new(sender, usize::MAX);
        let served = tokio::spawn(serve(Panics, accepted(), clock, owner));
        assert!(matches!(
            mail.recv().await,
            Some(Mail::Connected(ConnectionId(7), ..))
        ));
        let Some(Mail::Reports(ConnectionId(7), reports, _)) = mail.recv().await else {
            panic!("its end is told");
        };
        assert!(matches!(
            reports.as_slice(),
            [Report::Event(Event::Closed { .. })]
        ));
        assert!(matches!(
            mail.recv().await,
            Some(Mail::Disconnected(ConnectionId(7)))
        ));
        assert!(served.await.unwrap_err().is_panic());
    }
}
