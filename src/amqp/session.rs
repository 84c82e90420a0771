//! Sessions: windows, and the numbers of transfers and deliveries [2.5].
//!
//! Invariants: no transfer frame leaves while the peer's incoming window is closed; frames leave
//! in the order of their deliveries; `next_outgoing_id` counts those that left.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};

use super::connection::{End, undecodable};
use super::frame::{self, FrameKind};
use super::wire::{List, ListWriter, Malformed};
use super::{
    Condition, Connection, Event, LinkId, Outcome, Refusal, SessionId, Tag, serial, state,
};
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
    /// Frames that wait for the peer's window.
    pub(super) waiting: VecDeque<Bytes>,
    /// Our links by the peer's handles.
    pub(super) by_handle: BTreeMap<u32, LinkId>,
    /// Our own handles that are taken.
    pub(super) handles: BTreeMap<u32, LinkId>,
    pub(super) peer_handle_max: u32,
    pub(super) unsettled: Unsettled,
    /// Dispositions to be sent as one: of messages that came in, and of those that went out.
    pub(super) accepted_in: Option<(u32, u32)>,
    pub(super) accepted_out: Option<(u32, u32)>,
    /// It stands in the connection's list of those with dispositions waiting.
    pub(super) unflushed: bool,
}

/// Deliveries that we sent and that are not settled, by their numbers.
#[derive(Debug)]
pub(super) struct Unsettled {
    first: u32,
    slots: VecDeque<Option<(LinkId, Tag)>>,
}

/// The first number of transfers and deliveries, as the service has it (`protocol.md` §1.4).
const FIRST_ID: u32 = 1;

impl Unsettled {
    /// Numbers a delivery; one that was sent settled is not kept.
    pub(super) fn push(&mut self, delivery: Option<(LinkId, Tag)>) -> u32 {
        let id = self.next();
        self.slots.push_back(delivery);
        self.trim();
        id
    }

    pub(super) fn get(&self, id: u32) -> Option<(LinkId, Tag)> {
        *self.slots.get(self.slot(id)?)?
    }

    pub(super) fn settle(&mut self, id: u32) {
        if let Some(slot) = self.slot(id).and_then(|at| self.slots.get_mut(at)) {
            *slot = None;
            self.trim();
        }
    }

    /// Returns the numbers of `first..=last` that may be unsettled: no more than there are.
    pub(super) fn within(&self, first: u32, last: u32) -> impl Iterator<Item = u32> + use<> {
        let from = serial::ahead(self.first, first).unwrap_or(0);
        let to = serial::ahead(self.first, last).map_or(0, |last| last.saturating_add(1));
        let end = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let base = self.first;
        (from..to.min(end)).map(move |offset| base.wrapping_add(offset))
    }

    fn next(&self) -> u32 {
        self.first
            .wrapping_add(u32::try_from(self.slots.len()).unwrap_or(u32::MAX))
    }

    fn slot(&self, id: u32) -> Option<usize> {
        usize::try_from(serial::ahead(self.first, id)?).ok()
    }

    fn trim(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

impl Session {
    fn new(peer_channel: Option<u16>) -> Self {
        Self {
            peer_channel,
            next_incoming_id: 0,
            unreported: 0,
            next_outgoing_id: FIRST_ID,
            remote_window: 0,
            waiting: VecDeque::new(),
            by_handle: BTreeMap::new(),
            handles: BTreeMap::new(),
            peer_handle_max: u32::MAX,
            unsettled: Unsettled {
                first: FIRST_ID,
                slots: VecDeque::new(),
            },
            accepted_in: None,
            accepted_out: None,
            unflushed: false,
        }
    }

    fn take_begin(&mut self, begin: &PeerBegin) {
        self.next_incoming_id = begin.next_outgoing_id;
        self.remote_window = begin.incoming_window;
        self.peer_handle_max = begin.handle_max;
    }

    /// Writes the session's part of a flow: always complete (`protocol.md` §0.1).
    pub(super) fn write_flow(&self, list: &mut ListWriter<'_>) {
        list.uint(self.next_incoming_id);
        list.uint(limits::INCOMING_WINDOW);
        list.uint(self.next_outgoing_id);
        list.uint(limits::INCOMING_WINDOW);
    }

    pub(super) fn free_handle(&self) -> Option<u32> {
        let mut free = 0;
        for &taken in self.handles.keys() {
            if free < taken {
                break;
            }
            free = taken + 1;
        }
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
    fn read(list: &mut List<'_>) -> Result<Self, Malformed> {
        let remote_channel = list.ushort()?;
        let next_outgoing_id = list.uint()?.ok_or(Malformed::Missing("next-outgoing-id"))?;
        let incoming_window = list.uint()?.ok_or(Malformed::Missing("incoming-window"))?;
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
        let id = self.free_channel()?;
        self.sessions.insert(id, Session::new(None));
        self.write_begin(id, None);
        Some(id)
    }

    pub(super) fn handle_begin(&mut self, channel: u16, mut list: List<'_>) -> Result<(), Refusal> {
        let begin = PeerBegin::read(&mut list).map_err(undecodable)?;
        if let Some(answered) = begin.remote_channel {
            let id = SessionId(answered);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.peer_channel = Some(channel);
                session.take_begin(&begin);
                self.by_channel.insert(channel, id);
            }
            return Ok(());
        }
        if self.by_channel.get(&channel).is_some_and(|&id| id != ENDED) {
            return Err(not_allowed(format!(
                "Channel {channel} has a session already."
            )));
        }
        let max = self.config.channel_max;
        if max < channel {
            return Err(not_allowed(format!(
                "The channel is {channel}, and {max} is the highest."
            )));
        }
        let Some(id) = self.free_channel() else {
            return Err(not_allowed("There are no more channels.".to_owned()));
        };
        let mut session = Session::new(Some(channel));
        session.take_begin(&begin);
        self.sessions.insert(id, session);
        self.by_channel.insert(channel, id);
        self.write_begin(id, Some(channel));
        Ok(())
    }

    fn write_begin(&mut self, id: SessionId, answers: Option<u16>) {
        let handle_max = self.config.handle_max;
        self.write(id.0, |out| {
            let mut list = ListWriter::begin(out, 0x11);
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

    pub(super) fn handle_end(&mut self, channel: u16, id: SessionId) {
        // Python goes on to detach links of a session that it has ended.
        self.by_channel.insert(channel, ENDED);
        if id != ENDED {
            self.flush_dispositions();
            self.write(id.0, |out| ListWriter::begin(out, 0x17).end());
            self.drop_session(id);
        }
    }

    /// Ends a session, for the peer broke a rule of it.
    pub(super) fn end_session(&mut self, id: SessionId, refusal: Option<&Refusal>) {
        self.flush_dispositions();
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let channel = session.peer_channel;
        self.write(id.0, |out| {
            let mut list = ListWriter::begin(out, 0x17);
            if let Some(refusal) = refusal {
                state::write_error(&mut list, refusal, None);
            }
            list.end();
        });
        self.drop_session(id);
        if let Some(channel) = channel {
            self.by_channel.insert(channel, ENDED);
        }
    }

    fn drop_session(&mut self, id: SessionId) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        for link in session.handles.into_values() {
            self.links.remove(&link);
            self.events.push_back(Event::Detached { link, error: None });
        }
    }

    /// Sends what waited for the peer's window.
    pub(super) fn flush_waiting(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        while session.remote_window > 0 {
            let Some(body) = session.waiting.pop_front() else {
                return;
            };
            session.remote_window -= 1;
            session.next_outgoing_id = session.next_outgoing_id.wrapping_add(1);
            frame::write(&mut self.out, FrameKind::Amqp, id.0, |out| {
                out.extend_from_slice(&body);
            });
        }
    }

    /// Takes the session's part of a flow.
    pub(super) fn take_session_flow(&mut self, id: SessionId, flow: &SessionFlow) {
        if let Some(session) = self.sessions.get_mut(&id) {
            // Null next-incoming-id: the peer has not seen our begin [2.7.4].
            let seen = flow.next_incoming_id.unwrap_or(FIRST_ID);
            let in_flight = serial::ahead(seen, session.next_outgoing_id).unwrap_or(0);
            session.remote_window = flow.incoming_window.saturating_sub(in_flight);
        }
        self.flush_waiting(id);
    }

    pub(super) fn write_session_flow(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.unreported = 0;
        frame::write(&mut self.out, FrameKind::Amqp, id.0, |out| {
            let mut list = ListWriter::begin(out, 0x13);
            session.write_flow(&mut list);
            list.end();
        });
    }

    /// Remembers an accepted delivery, to be told together with its neighbours.
    pub(super) fn coalesce(&mut self, id: SessionId, receiver: bool, delivery: u32) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let range = if receiver {
            &mut session.accepted_in
        } else {
            &mut session.accepted_out
        };
        match range {
            Some((_, last)) if last.wrapping_add(1) == delivery => *last = delivery,
            Some(full) => {
                let done = *full;
                *full = (delivery, delivery);
                write_accepted(&mut self.out, id, receiver, done);
            }
            None => *range = Some((delivery, delivery)),
        }
        if !session.unflushed {
            session.unflushed = true;
            self.unflushed.push(id);
        }
    }

    pub(super) fn flush_dispositions(&mut self) {
        for id in std::mem::take(&mut self.unflushed) {
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            session.unflushed = false;
            if let Some(range) = session.accepted_in.take() {
                write_accepted(&mut self.out, id, true, range);
            }
            if let Some(range) = session.accepted_out.take() {
                write_accepted(&mut self.out, id, false, range);
            }
        }
    }

    fn free_channel(&self) -> Option<SessionId> {
        let mut free = 0;
        for taken in self.sessions.keys() {
            if free < taken.0 {
                break;
            }
            free = taken.0.checked_add(1)?;
        }
        // The last channel number stands for sessions that ended.
        let max = self.peer_channel_max.min(ENDED.0 - 1);
        let max = if self.end == End::Client {
            max.min(self.config.channel_max)
        } else {
            max
        };
        (free <= max).then_some(SessionId(free))
    }
}

/// The session of a channel whose session has ended: what comes on it is passed over.
pub(super) const ENDED: SessionId = SessionId(u16::MAX);

/// The session's part of a peer's flow.
pub(super) struct SessionFlow {
    pub(super) next_incoming_id: Option<u32>,
    pub(super) incoming_window: u32,
}

fn write_accepted(out: &mut BytesMut, id: SessionId, receiver: bool, range: (u32, u32)) {
    frame::write(out, FrameKind::Amqp, id.0, |out| {
        state::write_disposition(out, receiver, range, true, &Outcome::Accepted);
    });
}

fn not_allowed(description: String) -> Refusal {
    Refusal {
        condition: Condition::NotAllowed,
        description,
    }
}
