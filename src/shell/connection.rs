//! One connection's task: bytes to events, replies to bytes.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tracing::debug;

use super::clock::Clock;
use super::outbox::{Outbox, Outgoing};
use super::owner::Mail;
use crate::amqp::{self, Condition, Delivery, Event, LinkId, Refusal, SettleMode};
use crate::broker::{ConnectionId, Input, Reply};
use crate::entity::queue::{Handover, ReceiveMode};
use crate::{limits, message};

/// Serves a connection until it ends.
pub(super) async fn serve(
    stream: TcpStream,
    id: ConnectionId,
    config: amqp::Config,
    clock: Arc<Clock>,
    owner: mpsc::Sender<Mail>,
) {
    let outbox = Arc::new(Outbox::default());
    if owner
        .send(Mail::Connected(id, Arc::clone(&outbox)))
        .await
        .is_err()
    {
        return;
    }
    let engine = amqp::Connection::server(config, clock.now());
    let mut task = Task {
        id,
        stream,
        engine,
        clock,
        outbox,
        incoming: BytesMut::new(),
        output: BytesMut::new(),
        inputs: Vec::new(),
        outgoing: Vec::new(),
        rendered: Vec::new(),
        written: BTreeMap::new(),
        stalled: BTreeMap::new(),
        closed: false,
    };
    if let Err(error) = task.run(&owner).await {
        debug!(connection = id.0, %error, "connection lost");
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

struct Task {
    id: ConnectionId,
    stream: TcpStream,
    engine: amqp::Connection,
    clock: Arc<Clock>,
    outbox: Arc<Outbox>,
    incoming: BytesMut,
    output: BytesMut,
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

impl Task {
    async fn run(&mut self, owner: &mpsc::Sender<Mail>) -> io::Result<()> {
        let mut at_end = false;
        loop {
            self.turn()?;
            if !self.inputs.is_empty() {
                let inputs = std::mem::take(&mut self.inputs);
                if owner.send(Mail::Inputs(self.id, inputs)).await.is_err() {
                    return Ok(());
                }
            }
            if self.output.is_empty() && (self.engine.is_finished() || at_end) {
                return Ok(());
            }
            let deadline = self.engine.poll_timeout();
            let until = deadline.map(|deadline| self.clock.until(deadline));
            let timer = async {
                match until {
                    Some(span) => tokio::time::sleep(span).await,
                    None => std::future::pending().await,
                }
            };
            let congested = OUTPUT_BYTES_MAX < self.output.len();
            let interest = match (self.output.is_empty(), congested) {
                (true, _) => Interest::READABLE,
                (false, false) => Interest::READABLE | Interest::WRITABLE,
                (false, true) => Interest::WRITABLE,
            };
            tokio::select! {
                ready = self.stream.ready(interest) => {
                    if ready?.is_readable() && !congested {
                        at_end = self.read()?;
                    }
                }
                () = self.outbox.filled(), if !congested => {}
                () = timer => self.engine.handle_timeout(self.clock.now()),
            }
        }
    }

    /// Does all that can be done without waiting.
    fn turn(&mut self) -> io::Result<()> {
        loop {
            self.take_events();
            if self.output.len() <= OUTPUT_BYTES_MAX {
                let mut outgoing = std::mem::take(&mut self.outgoing);
                self.outbox.take(&mut outgoing);
                for outgoing in outgoing.drain(..) {
                    self.send(outgoing);
                }
                self.outgoing = outgoing;
            }
            self.take_output();
            let before = self.output.len();
            self.write()?;
            // Once more, if room was made for what still waits in the outbox.
            if before <= OUTPUT_BYTES_MAX || OUTPUT_BYTES_MAX < self.output.len() {
                return Ok(());
            }
        }
    }

    /// Reads what has come; returns whether the peer has ended.
    fn read(&mut self) -> io::Result<bool> {
        let mut total = 0;
        let at_end = loop {
            self.incoming.reserve(READ_BYTES);
            match self.stream.try_read_buf(&mut self.incoming) {
                Ok(0) => break true,
                Ok(count) => total += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(error) => return Err(error),
            }
            if READ_BYTES_MAX <= total {
                break false;
            }
        };
        let now = self.clock.now();
        self.engine.handle_bytes(now, &mut self.incoming);
        if at_end {
            self.engine.handle_eof(now);
        }
        Ok(at_end)
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.try_write(&self.output) {
                Ok(count) => self.output.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        // What waits for a session's window is not written: its receiver's window stays shut.
        if OUTPUT_BYTES_MAX < self.engine.waiting_bytes() {
            return Ok(());
        }
        for (&link, bytes) in &mut self.written {
            if WRITTEN_BYTES <= *bytes {
                let bytes = std::mem::take(bytes);
                self.inputs.push(Input::Written { link, bytes });
            }
        }
        Ok(())
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
