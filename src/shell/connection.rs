//! One connection's task: bytes to events, replies to bytes.
//!
//! Whatever carries the bytes, TCP, TLS or a WebSocket, is a stream to it.

use std::collections::{BTreeMap, VecDeque};
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

use super::buffers::{Incoming, Output};
use super::clock::Clock;
use super::doors::Visit;
use super::mailbox::{Mail, Mailbox, Partials};
use super::outbox::{Outbox, Outgoing};
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
pub(super) async fn serve(stream: impl Stream, guest: Guest, clock: Arc<Clock>, owner: Mailbox) {
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
    if owner.send(mail).await.is_none() {
        return;
    }
    let presence = Presence::new(id, &owner);
    let engine = amqp::Connection::server(config, clock.elapsed());
    let mut task = Task {
        id,
        stream,
        engine,
        clock,
        outbox,
        visit: Some(guest.visit),
        incoming: Incoming::default(),
        partials: owner.partials(),
        output: Output::default(),
        inputs: Vec::new(),
        read: 0,
        whole: 0,
        outgoing: VecDeque::new(),
        rendered: Vec::new(),
        sent: Sent::default(),
        stalled: BTreeMap::new(),
    };
    match task.run(&owner).await {
        // TLS and WebSockets say that they end. Who does not read that has gone.
        Ok(()) => {
            let _ = timeout(LAST_WRITE_WAIT, task.stream.shutdown()).await;
        }
        Err(error) => debug!(connection = id.0, %error, "connection lost"),
    }
    task.engine.handle_eof(task.clock.elapsed());
    task.take_events();
    let inputs = std::mem::take(&mut task.inputs);
    presence.leave(inputs).await;
}

/// A connection that the owner knows. It is taken out of the broker when its task ends, also by a
/// panic: its links would keep their messages and message sessions for ever.
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

    /// Tells the owner the last of a connection, whose engine has ended.
    pub(super) async fn leave(mut self, inputs: Vec<Input>) {
        self.has_left = true;
        leave(self.id, &self.owner, inputs).await;
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
                let closed = Input::Event(Event::Closed {
                    error: None,
                    unsent: Vec::new(),
                });
                leave(id, &owner, vec![closed]).await;
            });
        }
    }
}

async fn leave(id: ConnectionId, owner: &Mailbox, inputs: Vec<Input>) {
    // The owner is gone only when the broker stops.
    let _ = owner.send_inputs(id, inputs, 0).await;
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
    incoming: Incoming,
    partials: Partials,
    output: Output,
    inputs: Vec<Input>,
    /// Bytes that were read since the owner was told.
    read: usize,
    /// Bytes of whole messages that the owner was not told of: they wait for room in its mailbox.
    whole: usize,
    /// Taken from the outbox, and not yet made into bytes.
    outgoing: VecDeque<Outgoing>,
    rendered: Vec<u8>,
    sent: Sent,
    /// Messages that are gone from their queue but had no credit left when they came here.
    stalled: BTreeMap<LinkId, VecDeque<(Handover, bytes::Bytes)>>,
}

/// What of the owner's was made into bytes, and the owner was not told of.
#[derive(Debug, Default)]
struct Sent {
    /// Bytes of messages on each link.
    written: BTreeMap<LinkId, u64>,
    /// Bytes of messages on all links.
    messages: u64,
    /// Bytes of answers.
    answers: u64,
}

/// Bytes waiting for the peer to read at which no more of them are made.
const OUTPUT_BYTES: usize = 256 * 1024;
/// Bytes waiting for the peer to read at which nothing of it is read either.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that wait for the window of a session, as written ones do: what is more was not written.
const WAITING_BYTES_MAX: usize = 64 * 1024;
/// How often a connection wakes up that has nothing to wait for.
const IDLE_WAKE: Duration = Duration::from_mins(4);
/// How long a peer may take to read the last that is written to it.
const LAST_WRITE_WAIT: Duration = Duration::from_secs(5);

/// What moved on a stream.
#[derive(Debug, Clone, Copy)]
struct Moved {
    at_end: bool,
}

impl<S: Stream> Task<S> {
    async fn run(&mut self, owner: &Mailbox) -> io::Result<()> {
        let mut at_end = false;
        let mut last_write = None;
        let mut timer = pin!(sleep_until(self.wakes_at(last_write)));
        loop {
            self.turn();
            if !self.inputs.is_empty() {
                let inputs = std::mem::take(&mut self.inputs);
                let bytes = std::mem::take(&mut self.read).max(self.whole);
                let sent = owner.send_inputs(self.id, inputs, bytes).await;
                if sent.is_none() {
                    return Ok(());
                }
                self.whole = 0;
                self.partials.set(self.kept_bytes());
            }
            let ends = self.engine.is_finished() || at_end;
            if ends && self.output.is_flushed() {
                return Ok(());
            }
            if ends {
                last_write.get_or_insert_with(|| Instant::now() + LAST_WRITE_WAIT);
            }
            // The timer is set anew only when it would be late: most turns move its end away.
            let wakes_at = self.wakes_at(last_write);
            if wakes_at < timer.deadline() || timer.is_elapsed() {
                timer.as_mut().reset(wakes_at);
            }
            let reads = !ends && self.output.len() <= OUTPUT_BYTES_MAX;
            let takes = self.outgoing.is_empty() && self.output.len() < OUTPUT_BYTES;
            let outbox = Arc::clone(&self.outbox);
            tokio::select! {
                biased;
                moved = poll_fn(|cx| self.poll_stream(cx, reads)) => at_end |= moved?.at_end,
                () = outbox.filled(), if takes => {}
                () = timer.as_mut() => {
                    if last_write.is_some_and(|end| end <= Instant::now()) {
                        return Ok(());
                    }
                    self.incoming.rest();
                    self.engine.handle_timeout(self.clock.elapsed());
                    self.end_visit();
                }
            }
        }
    }

    /// Returns when something is to be done though nothing moves.
    fn wakes_at(&self, last_write: Option<Instant>) -> Instant {
        let now = Instant::now();
        let engine = self.engine.poll_timeout();
        let engine = engine.map(|deadline| now + self.clock.until_elapsed(deadline));
        let visit = self.visit.as_ref().map(Visit::deadline);
        let next = [engine, visit, last_write].into_iter().flatten().min();
        next.unwrap_or(now + IDLE_WAKE)
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
            self.clock.elapsed(),
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
        if self.outgoing.is_empty() {
            self.outbox.take(&mut self.outgoing);
        }
        if self.output.len() < OUTPUT_BYTES {
            self.engine.go_on();
        }
        while self.output.len() + self.engine.output_bytes() < OUTPUT_BYTES
            && let Some(outgoing) = self.outgoing.pop_front()
        {
            self.send(outgoing);
        }
        // Some replies let the engine go on.
        self.take_events();
        self.engine
            .take_output(self.clock.elapsed(), self.output.bytes());
        self.partials.set(self.kept_bytes() + self.whole);
    }

    /// Returns how many bytes of the peer's the engine keeps.
    fn kept_bytes(&self) -> usize {
        self.engine.partial_bytes() + self.engine.link_bytes()
    }

    /// Writes what there is and reads what has come. Is ready when bytes were read, or when more can
    /// be written.
    fn poll_stream(&mut self, cx: &mut Context<'_>, reads: bool) -> Poll<io::Result<Moved>> {
        let before = self.output.len();
        self.output.poll_write(&mut self.stream, cx)?;
        let has_room = |bytes: usize| bytes <= before && self.output.len() < bytes;
        let waits = !self.outgoing.is_empty() || self.engine.has_more();
        let goes_on = (self.output.len() < OUTPUT_BYTES && waits)
            || has_room(OUTPUT_BYTES)
            || has_room(OUTPUT_BYTES_MAX)
            || (!reads && self.output.is_flushed());
        let goes_on = self.report_sent() || goes_on;
        let mut at_end = false;
        if reads && self.engine.is_held() {
            // What was read comes before what is still to be read.
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
        let others = self.whole + self.engine.link_bytes();
        let room = self.partials.room().saturating_sub(others);
        self.engine.set_partial_room(room);
        self.engine.handle_bytes(now, self.incoming.bytes());
        if at_end {
            self.engine.handle_eof(now);
        }
    }

    /// Tells the owner of messages that were written; returns whether there is something to tell.
    fn report_sent(&mut self) -> bool {
        if !self.is_all_written() {
            return false;
        }
        let before = self.inputs.len();
        self.sent.report(&mut self.inputs);
        before < self.inputs.len()
    }

    /// Returns whether the peer's socket, or its sessions' windows, have let all out: what waits for
    /// them is not written.
    fn is_all_written(&self) -> bool {
        self.output.is_empty() && self.engine.waiting_bytes() <= WAITING_BYTES_MAX
    }

    fn take_events(&mut self) {
        while let Some(mut event) = self.engine.poll_event() {
            match &mut event {
                Event::Credit { link, .. } => self.resend_stalled(*link),
                Event::Detached { link, .. } => {
                    self.stalled.remove(link);
                }
                Event::Closed { unsent, .. } => {
                    let more = std::mem::take(&mut self.outgoing);
                    unsent.extend(more.iter().filter_map(Outgoing::locked));
                    self.outbox.take(&mut self.outgoing);
                    let more = std::mem::take(&mut self.outgoing);
                    unsent.extend(more.iter().filter_map(Outgoing::locked));
                }
                Event::Transfer { payload, .. } => self.whole += payload.len(),
                Event::AttachAnswered(..)
                | Event::AttachRequested(..)
                | Event::Authenticating { .. }
                | Event::Disposition { .. }
                | Event::Opened { .. }
                | Event::RefusedInTransaction { .. }
                | Event::Unsent { .. } => {}
            }
            self.inputs.push(Input::Event(event));
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Close(refusal) => self.engine.close(self.clock.elapsed(), Some(refusal)),
            Outgoing::Deliver(link, handover, body) => self.deliver(link, handover, body),
            Outgoing::Respond(link, response, bodies) => {
                let encoded = response.encode(&bodies);
                self.sent.answers += response.bytes();
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
                self.stalled.remove(&link);
                self.engine.detach(link, Some(refusal));
            }
            Reply::Authenticated(is_genuine) => {
                self.engine.authenticated(is_genuine);
                // What came meanwhile was left alone.
                self.handle_bytes(false);
            }
            Reply::Admitted => {
                self.visit = None;
                self.engine.trust();
            }
            Reply::Close(_) | Reply::Deliver(..) | Reply::Respond(..) => {
                debug_assert!(false, "the owner turns these into others");
            }
        }
    }

    fn deliver(&mut self, link: LinkId, handover: Handover, body: bytes::Bytes) {
        self.sent.add(link, handover.body.length);
        self.transmit(link, handover, body);
    }

    fn transmit(&mut self, link: LinkId, handover: Handover, body: bytes::Bytes) {
        self.rendered.clear();
        let rest = message::render_front(&mut self.rendered, &body, &handover.stamps);
        let settle_mode = match handover.mode {
            ReceiveMode::PeekLock => SettleMode::OnReceipt,
            ReceiveMode::ReceiveAndDelete => SettleMode::OnSend,
        };
        let rest = body.slice_ref(rest);
        let payload: &[&[u8]] = &[&self.rendered];
        let delivery = Delivery {
            tag: handover.token.to_tag(),
            settle_mode,
            message_format: handover.stamps.message_format(),
            payload,
        };
        if self.engine.deliver_with(link, delivery, rest).is_ok() {
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
            self.transmit(link, handover, body);
        }
    }
}

impl Sent {
    fn add(&mut self, link: LinkId, bytes: u32) {
        *self.written.entry(link).or_default() += u64::from(bytes);
        self.messages += u64::from(bytes);
    }

    /// Moves what was written into inputs for the owner, if it is worth telling. A link that has gone is told of too:
    /// its bytes count to its connection's.
    fn report(&mut self, inputs: &mut Vec<Input>) {
        if self.messages + self.answers < limits::UNREPORTED_BYTES_MAX {
            return;
        }
        self.messages = 0;
        self.written.retain(|&link, bytes| {
            let bytes = std::mem::take(bytes);
            if bytes != 0 {
                inputs.push(Input::Written { link, bytes });
            }
            bytes != 0
        });
        let bytes = std::mem::take(&mut self.answers);
        if bytes != 0 {
            inputs.push(Input::Answered(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::pin::Pin;

    use tokio::io::ReadBuf;
    use tokio::sync::mpsc;

    use super::*;
    use crate::shell::doors::Visits;
    use crate::time::Timestamp;

    /// A stream that is a bug.
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

    #[tokio::test]
    async fn a_connection_whose_task_panics_is_taken_out_of_the_broker() {
        let (sender, mut mail) = mpsc::channel(limits::MAILBOX_LENGTH);
        let visits = Visits::new(100);
        let guest = Guest {
            id: ConnectionId(7),
            origin: Origin::default(),
            visit: visits.enter(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap(),
            is_trusted: true,
        };
        let clock = Arc::new(Clock::new(Timestamp::EPOCH));
        let owner = Mailbox::new(sender, usize::MAX);
        let served = tokio::spawn(serve(Panics, guest, clock, owner));
        assert!(matches!(
            mail.recv().await,
            Some(Mail::Connected(ConnectionId(7), ..))
        ));
        let Some(Mail::Inputs(ConnectionId(7), inputs, _)) = mail.recv().await else {
            panic!("its end is told");
        };
        assert!(matches!(
            inputs.as_slice(),
            [Input::Event(Event::Closed { .. })]
        ));
        assert!(matches!(
            mail.recv().await,
            Some(Mail::Disconnected(ConnectionId(7)))
        ));
        assert!(served.await.unwrap_err().is_panic());
    }
}
