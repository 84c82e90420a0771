//! One connection's end in its server: the engine's events become reports to the shard, and what the
//! shard sends becomes frames.
//!
//! A [`Peer`] has no socket and no clock. The server reads bytes into the engine and writes the
//! engine's output; a test or a bench moves them from memory.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use tracing::debug;

use super::{Outgoing, Report};
use jitney_amqp::{Connection, Delivery, Event, IncomingTransfer, LinkCredit, LinkId, SettleMode};
use jitney_base::ids::LockToken;
use jitney_base::time::Timestamp;
use jitney_gateway::limits;
use jitney_gateway::{CreditReturn, Reply};
use jitney_queue::{Handover, ReceiveMode};

/// One connection's end in its server.
pub struct Peer {
    /// The protocol's state.
    pub engine: Connection,
    /// From the shard, and not yet made into frames.
    pub outgoing: VecDeque<Outgoing>,
    reports: Vec<Report>,
    /// Bytes of the messages in `reports`.
    message_bytes: usize,
    rendered: Vec<u8>,
    written: Written,
    /// Messages that were received and deleted, but had no credit left when they came here.
    stalled: BTreeMap<LinkId, VecDeque<(Box<Handover>, Bytes)>>,
    is_closed: bool,
}

/// The effect of a reply beside its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyEffect {
    /// Nothing.
    None,
    /// Hand the bytes in that were read: the engine has waited with them for this reply.
    ReadOn,
    /// The peer has proved a right: it is no longer bound by the limits of the unauthenticated.
    Admitted,
}

/// Bytes that were made into frames, and are not reported to the shard yet.
#[derive(Debug, Default)]
struct Written {
    /// Bytes of messages on each link.
    links: BTreeMap<LinkId, u64>,
    /// Bytes of messages on all links.
    messages: u64,
    /// Bytes of answers.
    answers: u64,
}

impl Peer {
    /// Makes one for a connection that has just begun.
    #[must_use]
    pub fn new(engine: Connection) -> Self {
        Self {
            engine,
            outgoing: VecDeque::new(),
            reports: Vec::new(),
            message_bytes: 0,
            rendered: Vec::new(),
            written: Written::default(),
            stalled: BTreeMap::new(),
            is_closed: false,
        }
    }

    /// Takes the engine's events.
    pub fn take_events(&mut self) {
        while let Some(mut event) = self.engine.poll_event() {
            match &mut event {
                Event::Credit(LinkCredit { link, .. }) => self.resend_stalled(*link),
                Event::Detached { link, .. } => {
                    self.stalled.remove(link);
                }
                Event::Closed { unsent, .. } => {
                    self.is_closed = true;
                    let left = self.outgoing.drain(..);
                    unsent.extend(left.filter_map(|outgoing| outgoing.locked()));
                }
                Event::Transfer(IncomingTransfer { payload, .. }) => {
                    self.message_bytes += payload.len();
                }
                Event::AttachAnswered(..)
                | Event::AttachRequested(..)
                | Event::Authenticating { .. }
                | Event::Disposition(_)
                | Event::Opened { .. }
                | Event::RefusedInTransaction { .. }
                | Event::Unsent { .. } => {}
            }
            self.reports.push(Report::Event(event));
        }
    }

    /// Returns whether the connection is closed: then nothing is sent any more, and what is in the
    /// shard's list goes back with [`Input::Disconnected`](super::Input::Disconnected).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns whether there is something to report.
    #[must_use]
    pub fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Returns the bytes of messages that wait to be reported.
    #[must_use]
    pub fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Returns how many messages that were received and deleted wait for credit.
    #[must_use]
    pub fn stalled(&self) -> usize {
        self.stalled.values().map(VecDeque::len).sum()
    }

    /// Takes what is to be reported to the shard.
    pub fn take_reports(&mut self) -> Vec<Report> {
        self.message_bytes = 0;
        std::mem::take(&mut self.reports)
    }

    /// Reports what was written, if it is enough to be worth it; to be called when the peer has taken
    /// all output. Returns whether there is a report.
    pub fn report_written(&mut self) -> bool {
        let before = self.reports.len();
        self.written.report(&mut self.reports);
        before < self.reports.len()
    }

    /// Makes the next of what the shard sends into frames. `now` is the engine's time.
    pub fn send_next(&mut self, now: Timestamp) -> Option<ReplyEffect> {
        let effect = match self.outgoing.pop_front()? {
            Outgoing::Close(refusal) => {
                self.engine.close(now, Some(refusal));
                ReplyEffect::None
            }
            Outgoing::Deliver(link, handover, body) => {
                self.written.add(link, handover.body.length);
                self.deliver(link, handover, body);
                ReplyEffect::None
            }
            Outgoing::Respond(link, response, bodies) => {
                self.written.answers += response.bytes();
                let encoded = response.encode(&bodies);
                // The request's settlement goes before its answer.
                self.engine.flush_dispositions();
                let delivery = Delivery {
                    tag: [0; 16],
                    settle_mode: SettleMode::OnSend,
                    message_format: 0,
                    payload: &[&encoded],
                };
                if self.engine.deliver(link, delivery).is_err() {
                    debug!(?link, "a response had no link or credit left");
                }
                ReplyEffect::None
            }
            Outgoing::Reply(reply) => self.carry_out(reply),
        };
        Some(effect)
    }

    fn carry_out(&mut self, reply: Reply) -> ReplyEffect {
        match reply {
            Reply::AcceptLink(link, accept) => self.engine.accept_link(link, *accept),
            Reply::RefuseLink(link, denied) => self
                .engine
                .refuse_link(link, jitney_gateway::denied::refusal(denied)),
            Reply::Drained(link, limit) => self.engine.drained(link, limit),
            Reply::SettleIncoming {
                link,
                delivery,
                outcome,
                settled,
                credit,
            } => {
                if !settled {
                    self.engine.settle_without_credit(link, delivery, &outcome);
                }
                if credit == CreditReturn::Now {
                    self.engine.return_credit(link);
                }
            }
            Reply::ReturnCredit(link) => self.engine.return_credit(link),
            Reply::SettleOutgoing(link, delivery, outcome) => {
                self.engine.settle_outgoing(link, delivery, &outcome);
            }
            Reply::Detach(link, denied) => {
                self.stalled.remove(&link);
                self.engine
                    .detach(link, Some(jitney_gateway::denied::refusal(denied)));
            }
            Reply::Authenticated(is_genuine) => {
                if is_genuine {
                    self.engine.authenticated();
                } else {
                    self.engine.refuse_authentication();
                }
                return ReplyEffect::ReadOn;
            }
            Reply::Admitted => {
                self.engine.trust();
                return ReplyEffect::Admitted;
            }
            Reply::Close(_) | Reply::Deliver(..) | Reply::Respond(..) => {
                debug_assert!(false, "the shard makes others of these");
            }
        }
        ReplyEffect::None
    }

    fn deliver(&mut self, link: LinkId, handover: Box<Handover>, body: Bytes) {
        self.rendered.clear();
        let rest = jitney_message::render_front(&mut self.rendered, &body, &handover.stamps);
        let (settle_mode, tag) = match handover.mode {
            ReceiveMode::PeekLock => (SettleMode::OnReceipt, handover.token.to_tag()),
            ReceiveMode::ReceiveAndDelete => (SettleMode::OnSend, LockToken::NIL.to_tag()),
        };
        let rest = body.slice_ref(rest);
        let delivery = Delivery {
            tag,
            settle_mode,
            message_format: handover.stamps.message_format(),
            payload: &[&self.rendered],
        };
        if self.engine.deliver_with(link, delivery, rest).is_ok() {
            return;
        }
        match handover.mode {
            ReceiveMode::PeekLock => {
                let token = handover.token;
                self.reports.push(Report::Returned { token, link });
            }
            // It is gone from its queue: it waits for credit here, or ends with its link.
            ReceiveMode::ReceiveAndDelete => {
                if self.engine.is_attached(link) {
                    let stalled = self.stalled.entry(link).or_default();
                    stalled.push_back((handover, body));
                }
            }
        }
    }

    fn resend_stalled(&mut self, link: LinkId) {
        for (handover, body) in self.stalled.remove(&link).unwrap_or_default() {
            self.deliver(link, handover, body);
        }
    }
}

impl Written {
    fn add(&mut self, link: LinkId, bytes: u32) {
        *self.links.entry(link).or_default() += u64::from(bytes);
        self.messages += u64::from(bytes);
    }

    /// Moves what was written into reports, if it is worth it. A link that has gone is reported too: its
    /// bytes count to its connection's.
    fn report(&mut self, reports: &mut Vec<Report>) {
        if self.messages + self.answers < limits::REPORTED_BYTES {
            return;
        }
        self.messages = 0;
        self.links.retain(|&link, bytes| {
            let bytes = std::mem::take(bytes);
            if bytes != 0 {
                reports.push(Report::Written { link, bytes });
            }
            bytes != 0
        });
        let bytes = std::mem::take(&mut self.answers);
        if bytes != 0 {
            reports.push(Report::Answered(bytes));
        }
    }
}
