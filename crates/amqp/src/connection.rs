//! The connection: its phases, its frames, its timers.
//!
//! ```text
//! Header ──SASL──► Sasl ──outcome──► Header ──AMQP──► Open ──open──► Opened ──close──► Closing
//!    └───────────────────AMQP──────────────────────────►┘                                 │ close
//!                            any error, or the end of the bytes ──────────────────► Finished
//! ```

use std::collections::VecDeque;

use bytes::{Buf, BytesMut};

use super::dispositions::Deciding;
use super::frame::{self, Frame, FrameKind};
use super::link::Link;
use super::names::LinkNames;
use super::session::Session;
use super::table::Table;
use super::transfers::Transfer;
use super::{Condition, Config, Event, Identity, LinkId, Refusal, SessionId, Tag, state, trace};
use crate::codec::{List, ListWriter, Undecodable, descriptor};
use crate::limits;
use jitney_base::time::{Millis, Timestamp};

/// One end of one AMQP connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) end: End,
    pub(super) config: Config,
    pub(super) handshake: Handshake,
    pub(super) peer: PeerLimits,
    pub(super) sessions: Sessions,
    pub(super) links: Links,
    pub(super) partials: Partials,
    pub(super) outcomes: Outcomes,
    timers: Timers,
    pub(super) events: VecDeque<Event>,
    pub(super) out: BytesMut,
    /// The input waits until events have been taken.
    is_held: bool,
    reported_closed: bool,
}

/// How far the two ends have come before the connection is open, and what the peer has said of itself.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) phase: Phase,
    pub(super) identity: Identity,
    /// Capabilities that our open offers.
    pub(super) offered: Vec<&'static str>,
    /// Frames of the peer before its open.
    frames: usize,
    /// The cost of an untrusted peer since its open, bytes.
    unauthenticated_bytes: usize,
}

/// What the peer's open allows.
#[derive(Debug)]
pub(super) struct PeerLimits {
    pub(super) frame_max: u32,
    pub(super) channel_max: u16,
    /// How long the peer waits for a frame of ours.
    pub(super) idle_timeout: Option<Millis>,
}

/// The sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) all: Table<SessionId, Box<Session>>,
    /// Our sessions by the channels on which the peer sends.
    pub(super) by_channel: Table<u16, SessionId>,
    /// Those with dispositions that wait to be put together.
    pub(super) unflushed: Vec<SessionId>,
    /// Those with large messages of which frames have still to be made.
    pub(super) unfinished: Vec<SessionId>,
    /// Bytes of transfers that wait for their windows.
    pub(super) waiting_bytes: usize,
}

/// The links of all sessions.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) all: Table<LinkId, Box<Link>>,
    pub(super) names: LinkNames,
    /// The number of the next.
    pub(super) next: u32,
    /// Bytes of their names, and of sources and targets of pending attaches.
    pub(super) bytes: usize,
}

/// Partially received messages.
#[derive(Debug)]
pub(super) struct Partials {
    pub(super) bytes: usize,
    /// How many bytes there may be.
    pub(super) room: usize,
}

/// Outcomes that the peer has told.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    /// A disposition that is being processed, not all deliveries of which were reported.
    pub(super) deciding: Option<Deciding>,
    /// Bytes that the outcomes among the events bring, counted for each delivery.
    pub(super) detail_bytes: usize,
}

/// When something came and left last, and when the connection is given up.
#[derive(Debug)]
struct Timers {
    received_at: Timestamp,
    sent_at: Timestamp,
    /// When an unopened or closing connection is given up.
    deadline: Option<Timestamp>,
}

/// Which end of the connection we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A protocol header is awaited; the SASL layer comes first, or is over.
    Header,
    /// SASL frames are awaited.
    Sasl,
    /// The owner's word about the peer is awaited.
    Deciding,
    /// The peer's open is awaited.
    Open,
    /// The peer's open is here, and the owner's word whether the connection is served here is awaited.
    Routing,
    Opened,
    /// We closed; the peer's close is awaited.
    Closing,
    /// Nothing is read any more.
    Finished,
}

/// The work that a frame leaves.
enum Dispatched {
    Done,
    /// Take this transfer, whose payload begins there in the frame's body.
    Transfer(SessionId, Transfer, usize),
}

impl Connection {
    /// Begins the server's end of a connection.
    #[must_use]
    pub fn server(config: Config, now: Timestamp) -> Self {
        Self::new(End::Server, config, now)
    }

    /// Begins the client's end: it speaks first.
    #[must_use]
    pub fn client(config: Config, now: Timestamp) -> Self {
        let mut connection = Self::new(End::Client, config, now);
        connection.begin_client();
        connection
    }

    fn new(end: End, config: Config, now: Timestamp) -> Self {
        Self {
            end,
            config,
            handshake: Handshake {
                phase: Phase::Header,
                identity: Identity::Unnamed,
                offered: Vec::new(),
                frames: 0,
                unauthenticated_bytes: 0,
            },
            peer: PeerLimits {
                frame_max: limits::FRAME_SIZE_MIN,
                channel_max: 0,
                idle_timeout: None,
            },
            sessions: Sessions::default(),
            links: Links::default(),
            partials: Partials {
                bytes: 0,
                room: usize::MAX,
            },
            outcomes: Outcomes::default(),
            timers: Timers {
                received_at: now,
                sent_at: now,
                deadline: Some(now.after(limits::OPEN_DEADLINE)),
            },
            events: VecDeque::new(),
            out: BytesMut::new(),
            is_held: false,
            reported_closed: false,
        }
    }

    /// Processes the input: whole frames are consumed, and the rest is left in `input`. When there
    /// is much to report, whole frames are left too ([`Connection::is_held`]).
    pub fn handle_bytes(&mut self, now: Timestamp, input: &mut BytesMut) {
        self.timers.received_at = now;
        if self.events.is_empty() {
            self.outcomes.detail_bytes = 0;
        }
        loop {
            self.decide_some();
            self.is_held = self.outcomes.deciding.is_some() || self.is_full();
            if self.is_held {
                return;
            }
            let more = match self.handshake.phase {
                Phase::Finished => {
                    input.clear();
                    return;
                }
                // The peer must be authenticated first; then the owner calls again.
                Phase::Deciding | Phase::Routing => return,
                Phase::Header => self.take_header(input),
                Phase::Sasl | Phase::Open | Phase::Opened | Phase::Closing => {
                    self.take_frame(now, input)
                }
            };
            if !more {
                return;
            }
        }
    }

    /// Returns whether the input waits until all events have been taken: then
    /// [`Connection::handle_bytes`] must be called again, before more is read.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns whether there is as much to report as one share may have.
    fn is_full(&self) -> bool {
        limits::EVENTS_MAX <= self.events.len()
            || limits::EVENT_DETAIL_BYTES_MAX <= self.outcomes.detail_bytes
    }

    /// The peer will send no more bytes.
    pub fn handle_eof(&mut self, _now: Timestamp) {
        self.finish(None);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if self.handshake.phase == Phase::Finished {
            return;
        }
        self.rest();
        if self.timers.deadline.is_some_and(|deadline| deadline <= now) {
            return self.finish(None);
        }
        if self.silent_until() <= now && self.handshake.phase == Phase::Opened {
            let description = format!(
                "The connection was inactive for more than the allowed {} milliseconds.",
                self.silent_until()
                    .since(self.timers.received_at)
                    .as_millis()
            );
            let condition = Condition::ResourceLimitExceeded;
            self.fail(
                now,
                Refusal {
                    condition,
                    description,
                },
            );
            return;
        }
        if self.keep_alive_at().is_some_and(|at| at <= now) {
            self.write_empty_frame(now);
        }
    }

    /// Gives memory back that a burst has left: nothing has happened for a while.
    fn rest(&mut self) {
        if self.events.is_empty() {
            self.events = VecDeque::new();
        }
        if self.out.is_empty() {
            self.out = BytesMut::new();
        }
        for session in self.sessions.all.values_mut() {
            session.unsettled.rest();
        }
    }

    /// Returns when [`Connection::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.handshake.phase == Phase::Finished {
            return None;
        }
        let idle = (self.handshake.phase == Phase::Opened).then(|| self.silent_until());
        [self.timers.deadline, idle, self.keep_alive_at()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the next thing that the owner must know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Moves the bytes that are to be sent to the end of `into`; `now` is when. An empty buffer is
    /// exchanged for the full one, so that the memory of both is used again and again.
    pub fn take_output(&mut self, now: Timestamp, into: &mut BytesMut) {
        self.flush_dispositions();
        if self.out.is_empty() {
            return;
        }
        self.timers.sent_at = now;
        if into.is_empty() {
            std::mem::swap(into, &mut self.out);
        } else {
            into.extend_from_slice(&self.out);
        }
        self.out.clear();
    }

    /// Returns how many bytes [`Connection::take_output`] would move, at least.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        self.out.len()
    }

    /// Returns whether nothing more will be read: the output is to be sent, and the socket closed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handshake.phase == Phase::Finished
    }

    /// Returns how many sessions are open.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.all.len()
    }

    /// Returns how many bytes of transfers wait for the peer to open its sessions' windows, or for the
    /// frames before them: memory that no socket pushes back on.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.sessions.waiting_bytes
    }

    /// Returns what the frames of the peer count for since its open, before it was authorized.
    #[must_use]
    pub fn unauthenticated_bytes(&self) -> usize {
        self.handshake.unauthenticated_bytes
    }

    /// Returns the bytes of partially received messages.
    #[must_use]
    pub fn partial_bytes(&self) -> usize {
        self.partials.bytes
    }

    /// Returns the bytes of the peer's attaches that are kept.
    #[must_use]
    pub fn link_bytes(&self) -> usize {
        self.links.bytes
    }

    /// Says how many bytes of such messages may be kept: one that goes beyond is refused.
    pub fn set_partial_room(&mut self, bytes: usize) {
        self.partials.room = bytes;
    }

    /// Closes the connection in order: nothing else is sent or reported any more.
    pub fn close(&mut self, now: Timestamp, refusal: Option<Refusal>) {
        match self.handshake.phase {
            Phase::Opened => {
                self.flush_dispositions();
                self.write_close(refusal.as_ref());
                self.forget_links();
                self.handshake.phase = Phase::Closing;
                self.timers.deadline = Some(now.after(limits::CLOSE_WAIT));
            }
            Phase::Header | Phase::Sasl | Phase::Deciding | Phase::Open | Phase::Routing => {
                self.finish(refusal);
            }
            Phase::Closing | Phase::Finished => {}
        }
    }

    /// Ends the connection because the peer broke a rule of it.
    pub(super) fn fail(&mut self, now: Timestamp, refusal: Refusal) {
        match self.handshake.phase {
            // The peer does not hear a close without an open before it.
            Phase::Open if self.end == End::Server => {
                self.write_open();
                self.write_close(Some(&refusal));
                self.finish(Some(refusal));
            }
            Phase::Opened => {
                self.close(now, Some(refusal.clone()));
                self.report_closed(Some(refusal));
            }
            Phase::Header
            | Phase::Sasl
            | Phase::Deciding
            | Phase::Open
            | Phase::Routing
            | Phase::Closing
            | Phase::Finished => {
                self.finish(Some(refusal));
            }
        }
    }

    pub(super) fn finish(&mut self, error: Option<Refusal>) {
        self.handshake.phase = Phase::Finished;
        self.timers.deadline = None;
        self.report_closed(error);
    }

    pub(super) fn report_closed(&mut self, error: Option<Refusal>) {
        if !self.reported_closed {
            self.reported_closed = true;
            let unsent = self.forget_links();
            self.events.push_back(Event::Closed { error, unsent });
        }
    }

    /// Late commands for links find none. Returns the deliveries that have not left.
    fn forget_links(&mut self) -> Vec<(LinkId, Tag)> {
        self.outcomes.deciding = None;
        let sessions = std::mem::take(&mut self.sessions.all).into_values();
        let unsent = sessions.flat_map(|mut session| session.take_unsent());
        let unsent = unsent.collect();
        self.links.all.clear();
        self.links.names.clear();
        self.sessions.waiting_bytes = 0;
        self.sessions.unfinished.clear();
        self.partials.bytes = 0;
        self.links.bytes = 0;
        unsent
    }

    /// The connection is open: from now on only silence ends it.
    pub(super) fn opened(&mut self) {
        self.handshake.phase = Phase::Opened;
        self.timers.deadline = None;
    }

    pub(super) fn write(&mut self, channel: u16, body: impl FnOnce(&mut BytesMut)) {
        frame::write(&mut self.out, FrameKind::Amqp, channel, body);
    }

    fn write_close(&mut self, refusal: Option<&Refusal>) {
        self.write(0, |out| {
            let mut list = ListWriter::begin(out, descriptor::CLOSE);
            if let Some(refusal) = refusal {
                state::write_error(&mut list, refusal, None);
            }
            list.end();
        });
    }

    /// Returns until when the peer may be silent.
    fn silent_until(&self) -> Timestamp {
        let idle = self.config.idle_timeout;
        self.timers.received_at.after(idle).after(idle)
    }

    fn keep_alive_at(&self) -> Option<Timestamp> {
        Some(self.timers.sent_at.after(self.silence_max()?))
    }

    /// Returns after how long without output the peer is sent an empty frame.
    fn silence_max(&self) -> Option<Millis> {
        if self.handshake.phase != Phase::Opened {
            return None;
        }
        let half = Millis::from_millis(self.peer.idle_timeout?.as_millis() / 2);
        Some(half.min(limits::KEEP_ALIVE_MAX).max(limits::KEEP_ALIVE_MIN))
    }

    /// The peer has sent an empty frame. Ours goes with it if it is due before long: an idle connection wakes up
    /// once then, and not twice.
    fn take_empty_frame(&mut self) {
        let now = self.timers.received_at;
        let silent = now.since(self.timers.sent_at).as_millis();
        let max = self.silence_max();
        if max.is_some_and(|max| max.as_millis() <= 2 * silent) {
            self.write_empty_frame(now);
        }
    }

    fn write_empty_frame(&mut self, now: Timestamp) {
        self.timers.sent_at = now;
        frame::write_empty(&mut self.out);
    }

    /// Takes one frame; returns whether there may be another.
    fn take_frame(&mut self, now: Timestamp, input: &mut BytesMut) -> bool {
        let size_max = match self.handshake.phase {
            Phase::Opened if self.is_untrusted() => {
                limits::FRAME_SIZE_UNAUTHENTICATED_MAX.min(self.config.frame_size_max)
            }
            Phase::Opened | Phase::Closing => self.config.frame_size_max,
            Phase::Header
            | Phase::Sasl
            | Phase::Deciding
            | Phase::Open
            | Phase::Routing
            | Phase::Finished => limits::FRAME_SIZE_UNOPENED_MAX,
        };
        let frame = match frame::find(input, size_max) {
            Ok(Some(frame)) => frame,
            Ok(None) => return false,
            Err(refusal) => {
                // The beginning of the next frame is unknown.
                input.clear();
                self.fail(now, refusal);
                return false;
            }
        };
        let body = input.get(frame.body..frame.size).unwrap_or_default();
        trace::frame(trace::Direction::In, frame.kind, frame.channel, body);
        let done = self
            .bound_unauthenticated(body.len())
            .and_then(|()| self.dispatch(&frame, body));
        match done {
            Ok(Dispatched::Done) => input.advance(frame.size),
            // The only frames that are kept: as a slice of the read buffer.
            Ok(Dispatched::Transfer(session, transfer, payload)) => {
                let mut bytes = input.split_to(frame.size).freeze();
                bytes.advance(frame.body + payload);
                if let Err(refusal) = self.handle_transfer(session, transfer, bytes) {
                    self.end_session(session, &refusal);
                }
            }
            Err(refusal) => {
                input.advance(frame.size);
                self.fail(now, refusal);
            }
        }
        true
    }

    /// Returns whether the peer is a client that is not authorized.
    fn is_untrusted(&self) -> bool {
        self.end == End::Server && !self.config.trusts_peer
    }

    /// Counts the cost of a peer that has not opened, or is not authorized.
    fn bound_unauthenticated(&mut self, bytes: usize) -> Result<(), Refusal> {
        if matches!(self.handshake.phase, Phase::Sasl | Phase::Open) {
            self.handshake.frames += 1;
            if limits::UNOPENED_FRAMES_MAX < self.handshake.frames {
                return Err(frame::framing("too many frames before an open".to_owned()));
            }
        }
        if self.handshake.phase == Phase::Opened && self.is_untrusted() {
            self.handshake.unauthenticated_bytes += bytes.max(limits::UNAUTHENTICATED_FRAME_BYTES);
            if limits::UNAUTHENTICATED_BYTES_MAX < self.handshake.unauthenticated_bytes {
                let condition = Condition::ResourceLimitExceeded;
                let description = "Too much was sent before a token was accepted.".to_owned();
                return Err(Refusal {
                    condition,
                    description,
                });
            }
        }
        Ok(())
    }

    fn dispatch(&mut self, frame: &Frame, body: &[u8]) -> Result<Dispatched, Refusal> {
        match (self.handshake.phase, frame.kind) {
            (Phase::Open | Phase::Opened | Phase::Closing, FrameKind::Amqp) => {
                if body.is_empty() {
                    self.take_empty_frame();
                    return Ok(Dispatched::Done);
                }
                self.handle_performative(frame.channel, body)
            }
            (Phase::Sasl, FrameKind::Sasl) => {
                self.handle_sasl(body)?;
                Ok(Dispatched::Done)
            }
            (_, kind) => Err(frame::framing(format!(
                "a frame of {kind:?} out of its place"
            ))),
        }
    }

    fn handle_performative(&mut self, channel: u16, body: &[u8]) -> Result<Dispatched, Refusal> {
        let (code, list, payload) = split(body).map_err(undecodable)?;
        if self.handshake.phase == Phase::Open && code != descriptor::OPEN {
            return Err(illegal("the first frame is not an open"));
        }
        if self.handshake.phase == Phase::Closing && code != descriptor::CLOSE {
            return Ok(Dispatched::Done);
        }
        match code {
            descriptor::OPEN => self.handle_open(list)?,
            descriptor::CLOSE => {
                let error = error_field(list).map_err(undecodable)?;
                self.handle_close(error);
            }
            descriptor::BEGIN => self.handle_begin(channel, list)?,
            _ => {
                let Some(&session) = self.sessions.by_channel.get(channel) else {
                    // An end for a channel that has none may cross our own.
                    return if code == descriptor::END {
                        Ok(Dispatched::Done)
                    } else {
                        Err(illegal(&format!("channel {channel} has no session")))
                    };
                };
                let result = match code {
                    descriptor::ATTACH => self.handle_attach(session, list),
                    descriptor::FLOW => self.handle_flow(session, list),
                    descriptor::TRANSFER => match Transfer::read(list) {
                        Ok(transfer) => {
                            let payload = body.len() - payload.len();
                            return Ok(Dispatched::Transfer(session, transfer, payload));
                        }
                        Err(error) => Err(undecodable(error)),
                    },
                    descriptor::DISPOSITION => self.handle_disposition(session, list),
                    descriptor::DETACH => self.handle_detach(session, list),
                    descriptor::END => {
                        let error = error_field(list).map_err(undecodable)?;
                        self.handle_end(channel, session, error.as_ref());
                        Ok(())
                    }
                    other => {
                        return Err(undecodable_code(other));
                    }
                };
                // A fault within a session ends that session only.
                match result {
                    Err(refusal) if refusal.condition == Condition::FramingError => {
                        return Err(refusal);
                    }
                    Err(refusal) => self.end_session(session, &refusal),
                    Ok(()) => {}
                }
            }
        }
        Ok(Dispatched::Done)
    }

    fn handle_close(&mut self, error: Option<Refusal>) {
        if self.handshake.phase == Phase::Opened {
            self.flush_dispositions();
            self.write_close(None);
        }
        self.finish(error);
    }
}

/// Splits a frame's body into its performative and the payload after it.
fn split(body: &[u8]) -> Result<(u64, List<'_>, &[u8]), Undecodable> {
    let (code, rest) = descriptor::read(body)?;
    let (list, payload) = List::open(rest)?;
    Ok((code, list, payload))
}

/// Reads the only field of an end and a close.
fn error_field(mut list: List<'_>) -> Result<Option<Refusal>, Undecodable> {
    list.raw()?.map(state::error).transpose()
}

pub(super) fn undecodable(error: Undecodable) -> Refusal {
    Refusal {
        condition: Condition::DecodeError,
        description: format!("The frame could not be decoded: {error}."),
    }
}

fn undecodable_code(code: u64) -> Refusal {
    let description = format!("The performative {code:#x} is not known.");
    Refusal {
        condition: Condition::NotImplemented,
        description,
    }
}

pub(super) fn illegal(text: &str) -> Refusal {
    Refusal {
        condition: Condition::IllegalState,
        description: format!("{text}."),
    }
}
