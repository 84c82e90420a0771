//! Sessions: windows, and the numbers of transfers and deliveries [2.5].
//!
//! Invariants: no transfer frame leaves while the peer's incoming window is closed; frames leave
//! in the order of their deliveries; `next_outgoing_id` counts those that left.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::connection::{End, Phase, undecodable};
use super::discharged::Discharged;
use super::dispositions::Range;
use super::frame::{self, FrameKind};
use super::link::{FlowState, LinkPhase};
use super::small_frame::SmallFrame;
use super::table::Table;
use super::transfers::Rest;
use super::unsettled::Unsettled;
use super::{Condition, Connection, Event, LinkId, Refusal, SessionId, Tag, serial, state};
use crate::codec::{List, ListWriter, Undecodable, descriptor};
use crate::limits;

#[derive(Debug)]
pub(super) struct Session {
    /// The channel on which the peer sends; none until it answered our begin.
    pub(super) peer_channel: Option<u16>,
    pub(super) next_incoming_id: u32,
    /// Frames received since our last flow.
    pub(super) unreported: u32,
    pub(super) next_outgoing_id: u32,
    /// Frames that the peer takes still.
    pub(super) remote_window: u32,
    /// Transfers that wait for the peer's window.
    pub(super) waiting: VecDeque<PendingTransfer>,
    /// Our links by the peer's handles.
    pub(super) by_handle: Table<u32, LinkId>,
    /// Our own handles that are taken.
    pub(super) handles: Table<u32, LinkId>,
    pub(super) peer_handle_max: u32,
    pub(super) unsettled: Unsettled,
    pub(super) discharged: Discharged,
    /// Dispositions to be sent as one: of messages that came in, and of those that went out.
    pub(super) settled_in: Option<Range>,
    pub(super) settled_out: Option<Range>,
    /// It is in the connection's list of sessions with pending dispositions.
    pub(super) unflushed: bool,
}

/// Something that is to be sent when the peer's window opens, or there is room for it, in its turn.
#[derive(Debug)]
pub(super) struct PendingTransfer {
    pub(super) link: LinkId,
    pub(super) what: What,
}

/// A transfer that waits.
#[derive(Debug)]
pub(super) enum What {
    /// A transfer's frame, of the delivery with this number.
    Frame(u32, Bytes),
    /// The rest of a large message. Frames are made of it when they can be sent.
    Rest(Rest),
}

impl What {
    fn len(&self) -> usize {
        match self {
            Self::Frame(_, frame) => frame.len(),
            Self::Rest(rest) => rest.payload.len(),
        }
    }

    /// Returns the number of the delivery that it belongs to.
    fn delivery(&self) -> u32 {
        match self {
            Self::Frame(number, _) => *number,
            Self::Rest(rest) => rest.number,
        }
    }
}

/// The first number of transfers, as the service has it (`transport.md#amqp-sessions`).
const FIRST_ID: u32 = 1;
/// The first number of deliveries, as the service has it. Proton's engine insists on it in a session
/// that it begins anew on another connection.
const FIRST_DELIVERY: u32 = 0;

impl Session {
    fn new(peer_channel: Option<u16>) -> Self {
        Self {
            peer_channel,
            next_incoming_id: 0,
            unreported: 0,
            next_outgoing_id: FIRST_ID,
            remote_window: 0,
            waiting: VecDeque::new(),
            by_handle: Table::default(),
            handles: Table::default(),
            peer_handle_max: u32::MAX,
            unsettled: Unsettled::new(FIRST_DELIVERY),
            settled_in: None,
            settled_out: None,
            discharged: Discharged::default(),
            unflushed: false,
        }
    }

    fn take_begin(&mut self, begin: &PeerBegin) {
        self.next_incoming_id = begin.next_outgoing_id;
        self.remote_window = begin.incoming_window;
        self.peer_handle_max = begin.handle_max;
    }

    /// Writes the session's part of a flow: always complete (`transport.md#flow`).
    pub(super) fn write_flow(&self, flow: &mut SmallFrame) {
        // Null until the peer's begin has its next-outgoing-id [2.7.4].
        match self.peer_channel {
            Some(_) => flow.uint(self.next_incoming_id),
            None => flow.null(),
        }
        flow.uint(limits::INCOMING_WINDOW);
        flow.uint(self.next_outgoing_id);
        flow.uint(limits::INCOMING_WINDOW);
    }

    /// Forgets the deliveries that wait for the peer's window, in whole or in part, and returns them.
    pub(super) fn take_unsent(&mut self) -> Vec<(LinkId, Tag)> {
        let unsettled = &mut self.unsettled;
        let waiting = self.waiting.iter();
        let numbers = waiting.map(|waiting| waiting.what.delivery());
        let unsent = numbers.filter_map(|number| unsettled.take(number));
        unsent.map(|sent| (sent.link, sent.tag)).collect()
    }

    pub(super) fn free_handle(&self) -> Option<u32> {
        let free = self.handles.first_free();
        (free <= self.peer_handle_max).then_some(free)
    }
}

struct PeerBegin {
    remote_channel: Option<u16>,
    next_outgoing_id: u32,
    incoming_window: u32,
    handle_max: u32,
}

impl PeerBegin {
    fn read(list: &mut List<'_>) -> Result<Self, Undecodable> {
        let remote_channel = list.ushort()?;
        let next_outgoing_id = list
            .uint()?
            .ok_or(Undecodable::Missing("next-outgoing-id"))?;
        let incoming_window = list
            .uint()?
            .ok_or(Undecodable::Missing("incoming-window"))?;
        let _outgoing_window = list.uint()?;
        let handle_max = list.uint()?.unwrap_or(u32::MAX);
        Ok(Self {
            remote_channel,
            next_outgoing_id,
            incoming_window,
            handle_max,
        })
    }
}

impl Connection {
    /// Begins a session (client role).
    pub fn begin(&mut self) -> Option<SessionId> {
        if self.handshake.phase != Phase::Opened {
            return None;
        }
        let id = self.free_channel()?;
        self.sessions.all.insert(id, Box::new(Session::new(None)));
        self.write_begin(id, None);
        Some(id)
    }

    pub(super) fn handle_begin(&mut self, channel: u16, mut list: List<'_>) -> Result<(), Refusal> {
        let begin = PeerBegin::read(&mut list).map_err(undecodable)?;
        if self
            .sessions
            .by_channel
            .get(channel)
            .is_some_and(|id| *id != ENDED)
        {
            return Err(not_allowed(format!(
                "Channel {channel} has a session already."
            )));
        }
        let max = self.config.channel_max;
        if max < channel {
            let text = format!("The channel is {channel}, and {max} is the highest.");
            return Err(frame::framing(text));
        }
        if let Some(answered) = begin.remote_channel {
            return self.begin_answered(channel, SessionId(answered), &begin);
        }
        if !self.config.trusts_peer
            && limits::UNAUTHENTICATED_SESSIONS_MAX <= self.sessions.all.len()
        {
            let max = limits::UNAUTHENTICATED_SESSIONS_MAX;
            return Err(not_allowed(format!(
                "Before a token is accepted there may be {max} sessions."
            )));
        }
        let Some(id) = self.free_channel() else {
            return Err(not_allowed("There are no more channels.".to_owned()));
        };
        let mut session = Session::new(Some(channel));
        session.take_begin(&begin);
        self.sessions.all.insert(id, Box::new(session));
        self.sessions.by_channel.insert(channel, id);
        self.write_begin(id, Some(channel));
        Ok(())
    }

    fn begin_answered(
        &mut self,
        channel: u16,
        id: SessionId,
        begin: &PeerBegin,
    ) -> Result<(), Refusal> {
        let session = self.sessions.all.get_mut(id);
        let Some(session) = session.filter(|session| session.peer_channel.is_none()) else {
            return Err(not_allowed(format!(
                "There is no begin on channel {} to be answered.",
                id.0
            )));
        };
        session.peer_channel = Some(channel);
        session.take_begin(begin);
        self.sessions.by_channel.insert(channel, id);
        self.flush_waiting(id);
        Ok(())
    }

    fn write_begin(&mut self, id: SessionId, answers: Option<u16>) {
        let handle_max = self.config.handle_max;
        self.write(id.0, |out| {
            let mut list = ListWriter::begin(out, descriptor::BEGIN);
            match answers {
                Some(channel) => list.ushort(channel),
                None => list.null(),
            }
            list.uint(FIRST_ID);
            list.uint(limits::INCOMING_WINDOW);
            list.uint(limits::INCOMING_WINDOW);
            list.uint(handle_max);
            list.end();
        });
    }

    pub(super) fn handle_end(&mut self, channel: u16, id: SessionId, error: Option<&Refusal>) {
        // Python keeps detaching links of a session that it has ended.
        self.sessions.by_channel.insert(channel, ENDED);
        if id != ENDED {
            self.flush_dispositions();
            self.write(id.0, |out| ListWriter::begin(out, descriptor::END).end());
            self.drop_session(id, error);
        }
    }

    /// Ends a session, for the peer broke a rule of it.
    pub(super) fn end_session(&mut self, id: SessionId, refusal: &Refusal) {
        self.flush_dispositions();
        let Some(session) = self.sessions.all.get(id) else {
            return;
        };
        let channel = session.peer_channel;
        self.write(id.0, |out| {
            let mut list = ListWriter::begin(out, descriptor::END);
            state::write_error(&mut list, refusal, None);
            list.end();
        });
        self.drop_session(id, None);
        if let Some(channel) = channel {
            self.sessions.by_channel.insert(channel, ENDED);
        }
    }

    fn drop_session(&mut self, id: SessionId, error: Option<&Refusal>) {
        let Some(mut session) = self.sessions.all.remove(id) else {
            return;
        };
        let mut unsent: BTreeMap<LinkId, Vec<Tag>> = BTreeMap::new();
        for (link, tag) in session.take_unsent() {
            unsent.entry(link).or_default().push(tag);
        }
        for waiting in session.waiting.drain(..) {
            self.sessions.waiting_bytes = self
                .sessions
                .waiting_bytes
                .saturating_sub(waiting.what.len());
        }
        for id in session.handles.into_values() {
            let Some(link) = self.take_link(id) else {
                continue;
            };
            self.partials.bytes = self.partials.bytes.saturating_sub(link.partial_bytes());
            // The owner has ended the others itself, or knows of their end.
            if link.phase != LinkPhase::Detaching {
                self.events.push_back(Event::Detached {
                    link: id,
                    error: error.cloned(),
                    unsent: unsent.remove(&id).unwrap_or_default(),
                });
            }
        }
    }

    /// Makes more frames of large messages, now that there is room for them: to be called when
    /// output was taken, as long as [`Connection::has_more`] says so.
    pub fn go_on(&mut self) {
        for id in std::mem::take(&mut self.sessions.unfinished) {
            self.flush_waiting(id);
        }
    }

    /// Returns whether more output can be made by [`Connection::go_on`].
    #[must_use]
    pub fn has_more(&self) -> bool {
        !self.sessions.unfinished.is_empty()
    }

    /// Sends the transfers that waited, as far as the peer's window is open.
    pub(super) fn flush_waiting(&mut self, id: SessionId) {
        let payload_max = frame::payload_max(self.peer.frame_max);
        while let Some(session) = self.sessions.all.get_mut(id)
            && let Some(next) = session.waiting.front_mut()
        {
            let (link, start) = (next.link, self.out.len());
            let is_done = match &mut next.what {
                _ if session.remote_window == 0 => return,
                What::Rest(_) if limits::OUTPUT_BYTES <= start => {
                    if !self.sessions.unfinished.contains(&id) {
                        self.sessions.unfinished.push(id);
                    }
                    return;
                }
                What::Frame(_, frame) => {
                    self.sessions.waiting_bytes =
                        self.sessions.waiting_bytes.saturating_sub(frame.len());
                    self.out.extend_from_slice(frame);
                    true
                }
                What::Rest(rest) => {
                    let written = rest.write(&mut self.out, id, payload_max);
                    self.sessions.waiting_bytes =
                        self.sessions.waiting_bytes.saturating_sub(written);
                    rest.payload.is_empty()
                }
            };
            session.remote_window -= 1;
            session.next_outgoing_id = session.next_outgoing_id.wrapping_add(1);
            frame::trace_written(&self.out, start, FrameKind::Amqp, id.0);
            if is_done {
                session.waiting.pop_front();
                self.transfer_left(link);
            }
        }
    }

    /// A transfer that waited has left: the flow that waited behind the last one of its link follows.
    fn transfer_left(&mut self, id: LinkId) {
        let link = self.links.all.get_mut(id);
        if let Some(FlowState::Outgoing(outgoing)) = link.map(|link| &mut link.flow) {
            outgoing.waiting = outgoing.waiting.saturating_sub(1);
            if outgoing.waiting == 0
                && let Some(reason) = outgoing.flow_after.take()
            {
                self.write_link_flow(id, reason);
            }
        }
    }

    /// Drops the waiting transfers of a link that ends: its handle means nothing after its detach.
    /// Returns the deliveries that were not sent as a whole: the peer has none of them.
    pub(super) fn drop_waiting(&mut self, id: SessionId, link: LinkId) -> Vec<Tag> {
        let Some(session) = self.sessions.all.get_mut(id) else {
            return Vec::new();
        };
        let (bytes, unsettled) = (&mut self.sessions.waiting_bytes, &mut session.unsettled);
        let mut unsent = Vec::new();
        session.waiting.retain(|waiting| {
            if waiting.link == link {
                *bytes = bytes.saturating_sub(waiting.what.len());
                let sent = unsettled.take(waiting.what.delivery());
                unsent.extend(sent.map(|sent| sent.tag));
            }
            waiting.link != link
        });
        unsent
    }

    /// Takes the session's part of a flow.
    pub(super) fn take_session_flow(&mut self, id: SessionId, flow: &SessionFlow) {
        if let Some(session) = self.sessions.all.get_mut(id) {
            // Null next-incoming-id: the peer has not seen our begin [2.7.4].
            let seen = flow.next_incoming_id.unwrap_or(FIRST_ID);
            let in_flight = serial::ahead(seen, session.next_outgoing_id).unwrap_or(0);
            session.remote_window = flow.incoming_window.saturating_sub(in_flight);
        }
        self.flush_waiting(id);
    }

    pub(super) fn write_session_flow(&mut self, id: SessionId) {
        let Some(session) = self.sessions.all.get_mut(id) else {
            return;
        };
        session.unreported = 0;
        let mut flow = SmallFrame::begin(id.0, descriptor::FLOW);
        session.write_flow(&mut flow);
        frame::write_small(&mut self.out, id.0, flow);
    }

    fn free_channel(&self) -> Option<SessionId> {
        let mut free = 0;
        for (taken, _) in self.sessions.all.iter() {
            if free < taken.0 {
                break;
            }
            free = taken.0.checked_add(1)?;
        }
        // The last channel number represents sessions that ended.
        let max = self.peer.channel_max.min(ENDED.0 - 1);
        let max = if self.end == End::Client {
            max.min(self.config.channel_max)
        } else {
            max
        };
        (free <= max).then_some(SessionId(free))
    }
}

/// The session of a channel whose session has ended: its frames are ignored.
pub(super) const ENDED: SessionId = SessionId(u16::MAX);

/// The session's part of a peer's flow.
pub(super) struct SessionFlow {
    pub(super) next_incoming_id: Option<u32>,
    pub(super) incoming_window: u32,
}

fn not_allowed(description: String) -> Refusal {
    Refusal {
        condition: Condition::NotAllowed,
        description,
    }
}
