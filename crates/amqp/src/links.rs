//! Attach, flow and detach.

use bytes::Bytes;
use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp_types::messaging::{Source, Target};

use super::connection::undecodable;
use super::frame;
use super::link::{FlowState, IncomingLink, Link, LinkPhase, OutgoingLink, PeerAttach};
use super::session::SessionFlow;
use super::small_frame::SmallFrame;
use super::termini::{
    decode, held_source, held_target, name_source, name_target, session_source, terminus,
};
use super::{
    Accept, Attach, Condition, Connection, Event, Fields, LinkCredit, LinkId, LinkRole, LinkTarget,
    Refusal, SessionId, SettleMode, Tag, serial, state,
};
use crate::codec::{List, ListWriter, Undecodable, descriptor};
use crate::limits;

impl Connection {
    pub(super) fn handle_attach(
        &mut self,
        session: SessionId,
        mut list: List<'_>,
    ) -> Result<(), Refusal> {
        let peer = read_attach(session, &mut list).map_err(undecodable)?;
        let handle_max = self.config.handle_max;
        let Some(state) = self.sessions.all.get(session) else {
            return Ok(());
        };
        if handle_max < peer.handle {
            let description = format!(
                "The handle is {}, and {handle_max} is the highest.",
                peer.handle
            );
            // It ends the connection [2.7.2].
            return Err(frame::framing(description));
        }
        if state.by_handle.get(peer.handle).is_some() {
            let description = format!("The handle {} is attached already.", peer.handle);
            return Err(Refusal {
                condition: Condition::HandleInUse,
                description,
            });
        }
        match self.link_named(&peer.name, peer.role) {
            Some((id, LinkPhase::Asking)) => {
                return self.attach_answered(id, peer).map_err(undecodable);
            }
            Some((id, LinkPhase::Asked | LinkPhase::Attached)) => self.steal(id),
            Some((_, LinkPhase::Detaching)) | None => {}
        }
        self.attach_asked(session, peer)
    }

    /// Finds the link that has a name now; one that ends has it no more.
    fn link_named(&self, name: &str, role: LinkRole) -> Option<(LinkId, LinkPhase)> {
        let mut named = self.links.names.find(name, role).filter_map(|id| {
            let link = self.links.all.get(id)?;
            let ends = link.phase == LinkPhase::Detaching;
            let same = link.name == name && link.role == role;
            (same && !ends).then_some((id, link.phase))
        });
        named.next()
    }

    fn attach_asked(&mut self, session: SessionId, peer: PeerAttach) -> Result<(), Refusal> {
        if limits::CONNECTION_LINKS_MAX <= self.links.all.len() {
            let description = "The connection has too many links.".to_owned();
            return Err(Refusal {
                condition: Condition::ResourceLimitExceeded,
                description,
            });
        }
        let handle = self
            .sessions
            .all
            .get(session)
            .and_then(|session| session.free_handle());
        let Some(handle) = handle else {
            let description = "There are no more handles.".to_owned();
            return Err(Refusal {
                condition: Condition::ResourceLimitExceeded,
                description,
            });
        };
        let id = self.new_link_id();
        let too_large = self.check_size(&peer);
        let flow = match peer.role {
            LinkRole::Incoming => FlowState::Incoming(IncomingLink::default()),
            LinkRole::Outgoing => FlowState::Outgoing(OutgoingLink::default()),
        };
        let link = Link {
            session,
            name: peer.name,
            role: peer.role,
            handle,
            peer_handle: Some(peer.handle),
            phase: LinkPhase::Asked,
            source: peer.source,
            target: peer.target,
            snd_settle_mode: peer.snd_settle_mode,
            rcv_settle_mode: peer.rcv_settle_mode,
            flow,
        };
        self.keep_link(id, link);
        if let Some(state) = self.sessions.all.get_mut(session) {
            state.by_handle.insert(peer.handle, id);
            state.handles.insert(handle, id);
        }
        if let Err(refusal) = too_large {
            self.refuse_link(id, refusal);
            return Ok(());
        }
        match peer.attach {
            Ok(attach) => {
                let attach = Box::new(attach);
                self.events.push_back(Event::AttachRequested(id, attach));
            }
            // A malformed attach is refused; other links do not suffer for it.
            Err(error) => self.refuse_link(id, undecodable(error)),
        }
        Ok(())
    }

    /// Checks that the attach of a peer is small enough to be kept.
    fn check_size(&self, peer: &PeerAttach) -> Result<(), Refusal> {
        let of = |terminus: &Option<Bytes>| terminus.as_ref().map_or(0, Bytes::len);
        let (name, source, target) = (peer.name.len(), of(&peer.source), of(&peer.target));
        let refused = |what: &str, bytes: usize, max: usize| {
            Err(Refusal {
                condition: Condition::ResourceLimitExceeded,
                description: format!("{what} {bytes} bytes, and {max} is the most."),
            })
        };
        if limits::LINK_NAME_BYTES_MAX < name {
            return refused("The link's name has", name, limits::LINK_NAME_BYTES_MAX);
        }
        for (what, bytes) in [("source", source), ("target", target)] {
            if limits::TERMINUS_BYTES_MAX < bytes {
                let what = format!("The link's {what} has");
                return refused(&what, bytes, limits::TERMINUS_BYTES_MAX);
            }
        }
        let all = self.links.bytes + name + source + target;
        if limits::CONNECTION_LINKS_BYTES_MAX < all {
            let what = "The names of the connection's links, and the sources and targets of those \
                        that wait, would have";
            return refused(what, all, limits::CONNECTION_LINKS_BYTES_MAX);
        }
        Ok(())
    }

    /// Drops a link's source and target: they are echoed once.
    fn drop_termini(&mut self, id: LinkId) {
        let Some(link) = self.links.all.get_mut(id) else {
            return;
        };
        let before = link.kept_bytes();
        (link.source, link.target) = (None, None);
        self.links.bytes -= before - link.kept_bytes();
    }

    /// Drops everything kept of a link that ends, though the peer may never answer the detach: its
    /// handle alone stays taken.
    fn drop_name(&mut self, id: LinkId) {
        self.drop_termini(id);
        let Some(link) = self.links.all.get_mut(id) else {
            return;
        };
        let name = std::mem::take(&mut link.name);
        self.links.names.remove(&name, link.role, id);
        self.links.bytes -= name.len();
    }

    fn attach_answered(&mut self, id: LinkId, peer: PeerAttach) -> Result<(), Undecodable> {
        let attach = Box::new(peer.attach?);
        if let Some(link) = self.links.all.get_mut(id) {
            link.peer_handle = Some(peer.handle);
            link.phase = LinkPhase::Attached;
            if let Some(state) = self.sessions.all.get_mut(link.session) {
                state.by_handle.insert(peer.handle, id);
            }
        }
        self.events.push_back(Event::AttachAnswered(id, attach));
        Ok(())
    }

    /// Accepts a link that the peer attached, and echoes its terms (`transport.md#attach`).
    pub fn accept_link(&mut self, id: LinkId, accept: Accept) {
        let Some(link) = self.links.all.get_mut(id) else {
            return;
        };
        if link.phase != LinkPhase::Asked {
            return;
        }
        link.phase = LinkPhase::Attached;
        if accept.settle_mode == Some(SettleMode::OnSend) {
            link.snd_settle_mode = 1;
        }
        if let FlowState::Incoming(incoming) = &mut link.flow {
            incoming.credit = accept.credit;
            incoming.tops_up = true;
            incoming.message_size_max = accept.message_size_max;
        }
        let (mut source, mut target) = (link.source.clone(), link.target.clone());
        match link.role {
            LinkRole::Incoming => target = target.map(|asked| held_target(&asked, &accept)),
            LinkRole::Outgoing => source = source.map(|asked| held_source(&asked, &accept)),
        }
        if let Some(name) = accept.address.as_deref() {
            match link.role {
                LinkRole::Incoming => target = target.map(|asked| name_target(&asked, name)),
                LinkRole::Outgoing => source = Some(name_source(source.as_ref(), name)),
            }
        }
        self.write_attach(id, source.as_deref(), target.as_deref(), &accept);
        self.drop_termini(id);
        if accept.credit > 0 {
            self.write_link_flow(id, FlowReason::Plain);
        }
    }

    /// Turns a link away: an attach that leads nowhere, and a detach that says why
    /// (`transport.md#refused-links`).
    pub fn refuse_link(&mut self, id: LinkId, refusal: Refusal) {
        let Some(link) = self.links.all.get_mut(id) else {
            return;
        };
        if link.phase != LinkPhase::Asked {
            return;
        }
        link.phase = LinkPhase::Attached;
        // Neither source nor target: Go waits for the detach only when both are null.
        self.write_attach(id, None, None, &Accept::default());
        self.detach(id, Some(refusal));
    }

    /// Ends a link. Messages that waited for the peer's window are reported.
    pub fn detach(&mut self, id: LinkId, refusal: Option<Refusal>) {
        let tags = self.end_link(id, refusal);
        if !tags.is_empty() {
            self.events.push_back(Event::Unsent { link: id, tags });
        }
    }

    /// Ends a link, and returns the deliveries of it that have not left.
    fn end_link(&mut self, id: LinkId, refusal: Option<Refusal>) -> Vec<Tag> {
        self.flush_dispositions();
        let Some(link) = self.links.all.get_mut(id) else {
            return Vec::new();
        };
        let phase = std::mem::replace(&mut link.phase, LinkPhase::Detaching);
        match phase {
            LinkPhase::Detaching => return Vec::new(),
            LinkPhase::Asked => self.write_attach(id, None, None, &Accept::default()),
            LinkPhase::Asking | LinkPhase::Attached => {}
        }
        let unsent = self.forget_deliveries(id);
        self.write_detach(id, Ending::Closed, refusal.as_ref());
        self.drop_name(id);
        unsent
    }

    /// Drops the unsent transfers of a link that ends. Returns their deliveries.
    fn forget_deliveries(&mut self, id: LinkId) -> Vec<Tag> {
        let Some(link) = self.links.all.get_mut(id) else {
            return Vec::new();
        };
        self.partials.bytes = self.partials.bytes.saturating_sub(link.partial_bytes());
        let session = link.session;
        match &mut link.flow {
            FlowState::Incoming(incoming) => {
                incoming.partial = None;
                Vec::new()
            }
            FlowState::Outgoing(_) => {
                let unsent = self.drop_waiting(session, id);
                if let Some(state) = self.sessions.all.get_mut(session) {
                    state.unsettled.forget(id);
                }
                unsent
            }
        }
    }

    /// Asks the peer for a link (client role).
    ///
    /// `address` is the peer's node: the target of a link on which we send, else the source.
    pub fn attach(
        &mut self,
        session: SessionId,
        name: &str,
        role: LinkRole,
        address: &str,
        mode: SettleMode,
    ) -> Option<LinkId> {
        let (source, target) = match role {
            LinkRole::Incoming => (
                terminus(descriptor::SOURCE, address),
                terminus(descriptor::TARGET, name),
            ),
            LinkRole::Outgoing => (
                terminus(descriptor::SOURCE, name),
                terminus(descriptor::TARGET, address),
            ),
        };
        self.attach_termini(session, name, role, source, target, mode)
    }

    /// Asks the peer for a link that receives a message session of a node (client role).
    pub fn attach_message_session(
        &mut self,
        session: SessionId,
        name: &str,
        address: &str,
        message_session: &str,
    ) -> Option<LinkId> {
        let source = session_source(address, message_session);
        let target = terminus(descriptor::TARGET, name);
        let mode = SettleMode::OnReceipt;
        self.attach_termini(session, name, LinkRole::Incoming, source, target, mode)
    }

    fn attach_termini(
        &mut self,
        session: SessionId,
        name: &str,
        role: LinkRole,
        source: Bytes,
        target: Bytes,
        mode: SettleMode,
    ) -> Option<LinkId> {
        let handle = self.sessions.all.get(session)?.free_handle()?;
        let flow = match role {
            LinkRole::Incoming => FlowState::Incoming(IncomingLink::default()),
            LinkRole::Outgoing => FlowState::Outgoing(OutgoingLink::default()),
        };
        let (snd_settle_mode, rcv_settle_mode) = match mode {
            SettleMode::OnSend => (1, 0),
            SettleMode::OnReceipt => (0, 0),
        };
        let id = self.new_link_id();
        let link = Link {
            session,
            name: name.to_owned(),
            role,
            handle,
            peer_handle: None,
            phase: LinkPhase::Asking,
            source: Some(source.clone()),
            target: Some(target.clone()),
            snd_settle_mode,
            rcv_settle_mode,
            flow,
        };
        self.keep_link(id, link);
        self.sessions
            .all
            .get_mut(session)?
            .handles
            .insert(handle, id);
        self.write_attach(id, Some(&source), Some(&target), &Accept::default());
        Some(id)
    }

    pub(super) fn handle_detach(
        &mut self,
        session: SessionId,
        mut list: List<'_>,
    ) -> Result<(), Refusal> {
        let handle = list.uint().map_err(undecodable)?;
        let handle = handle
            .ok_or(Undecodable::Missing("handle"))
            .map_err(undecodable)?;
        let closed = list.boolean().map_err(undecodable)?.unwrap_or_default();
        let ending = if closed {
            Ending::Closed
        } else {
            Ending::Suspended
        };
        let error = list
            .raw()
            .and_then(|error| error.map(state::error).transpose());
        let error = error.map_err(undecodable)?;
        let Some(state) = self.sessions.all.get_mut(session) else {
            return Ok(());
        };
        let Some(id) = state.by_handle.remove(handle) else {
            return Err(unattached(handle));
        };
        self.flush_dispositions();
        let phase = self.links.all.get(id).map(|link| link.phase);
        match phase {
            Some(LinkPhase::Asked) => self.detach(id, None),
            Some(LinkPhase::Attached | LinkPhase::Asking) => self.write_detach(id, ending, None),
            Some(LinkPhase::Detaching) | None => {}
        }
        let unsent = self.drop_link(id);
        if phase != Some(LinkPhase::Detaching) {
            self.events.push_back(Event::Detached {
                link: id,
                error,
                unsent,
            });
        }
        Ok(())
    }

    pub(super) fn handle_flow(
        &mut self,
        session: SessionId,
        mut list: List<'_>,
    ) -> Result<(), Refusal> {
        let flow = PeerFlow::read(&mut list).map_err(undecodable)?;
        self.take_session_flow(session, &flow.session);
        let Some(handle) = flow.handle else {
            if flow.echo {
                self.write_session_flow(session);
            }
            return Ok(());
        };
        let Some(state) = self.sessions.all.get(session) else {
            return Ok(());
        };
        let Some(&id) = state.by_handle.get(handle) else {
            return Err(unattached(handle));
        };
        let Some(link) = self.links.all.get_mut(id) else {
            return Ok(());
        };
        if link.phase == LinkPhase::Detaching {
            return Ok(());
        }
        match &mut link.flow {
            // The credit in a sender's flow is ignored: Python grants itself some
            // (`messaging.md#sender-links`). But after a drain, the sender has used up its credit.
            FlowState::Incoming(incoming) => {
                if let Some(count) = flow.delivery_count.filter(|_| flow.drain) {
                    let used_up = serial::ahead(incoming.delivery_count, count).unwrap_or(0);
                    incoming.delivery_count = incoming.delivery_count.wrapping_add(used_up);
                    incoming.settled = incoming.settled.wrapping_add(used_up);
                }
            }
            FlowState::Outgoing(outgoing) => {
                if let Some(credit) = flow.link_credit {
                    // Before it has seen our attach it counts from our first number, 0 [2.6.7].
                    outgoing.grant(flow.delivery_count.unwrap_or(0), credit);
                }
                let limit = outgoing.limit;
                self.events.push_back(Event::Credit(LinkCredit {
                    link: id,
                    limit,
                    drain: flow.drain,
                }));
            }
        }
        if flow.echo && !flow.drain {
            self.answer_flow(id);
        }
        Ok(())
    }

    /// Answers a flow with the state of its link, behind the transfers that the state has in it.
    fn answer_flow(&mut self, id: LinkId) {
        let link = self.links.all.get_mut(id);
        if let Some(FlowState::Outgoing(outgoing)) = link.map(|link| &mut link.flow)
            && 0 < outgoing.waiting
        {
            outgoing.flow_after.get_or_insert(FlowReason::Plain);
        } else {
            self.write_link_flow(id, FlowReason::Plain);
        }
    }

    /// Completes a drain: the remaining credit up to `limit` is used up. Credit that came after the
    /// drain stays.
    pub fn drained(&mut self, id: LinkId, limit: u32) {
        let Some(link) = self.links.all.get_mut(id) else {
            return;
        };
        let FlowState::Outgoing(outgoing) = &mut link.flow else {
            return;
        };
        let within = serial::ahead(limit, outgoing.limit).is_some();
        if within && serial::ahead(outgoing.delivery_count, limit).is_some() {
            outgoing.delivery_count = limit;
        }
        // The count in the answer has these transfers in it.
        if 0 < outgoing.waiting {
            outgoing.flow_after = Some(FlowReason::Drained);
        } else {
            self.write_link_flow(id, FlowReason::Drained);
        }
    }

    /// Returns whether a link is attached: accepted, and detached by neither end.
    #[must_use]
    pub fn is_attached(&self, id: LinkId) -> bool {
        let link = self.links.all.get(id);
        link.is_some_and(|link| link.phase == LinkPhase::Attached)
    }

    /// Grants credit on an incoming link (client role), in deliveries from now on.
    pub fn grant_credit(&mut self, id: LinkId, credit: u32) {
        let Some(link) = self.links.all.get_mut(id) else {
            return;
        };
        if let FlowState::Incoming(incoming) = &mut link.flow {
            incoming.settled = incoming.delivery_count;
            incoming.credit = credit;
            self.write_link_flow(id, FlowReason::Plain);
        }
    }

    pub(super) fn write_link_flow(&mut self, id: LinkId, answer: FlowReason) {
        let Some(link) = self.links.all.get_mut(id) else {
            return;
        };
        // Before our attach the peer does not know the handle, and after our detach it means nothing.
        if matches!(link.phase, LinkPhase::Asked | LinkPhase::Detaching) {
            return;
        }
        let Some(session) = self.sessions.all.get_mut(link.session) else {
            return;
        };
        session.unreported = 0;
        let (delivery_count, credit) = match &mut link.flow {
            FlowState::Incoming(incoming) => {
                incoming.unreported = 0;
                (incoming.delivery_count, incoming.link_credit())
            }
            FlowState::Outgoing(outgoing) => (outgoing.delivery_count, outgoing.credit()),
        };
        let channel = link.session.0;
        let mut frame = SmallFrame::begin(channel, descriptor::FLOW);
        session.write_flow(&mut frame);
        frame.uint(link.handle);
        frame.uint(delivery_count);
        frame.uint(credit);
        if answer == FlowReason::Drained {
            frame.uint(0);
            frame.boolean(true);
            frame.boolean(false);
        }
        frame::write_small(&mut self.out, channel, frame);
    }

    fn write_attach(
        &mut self,
        id: LinkId,
        source: Option<&[u8]>,
        target: Option<&[u8]>,
        accept: &Accept,
    ) {
        let Some(link) = self.links.all.get(id) else {
            return;
        };
        let properties = state::encode_map(accept.properties.as_ref());
        frame::write(
            &mut self.out,
            frame::FrameKind::Amqp,
            link.session.0,
            |out| {
                let mut list = ListWriter::begin(out, descriptor::ATTACH);
                list.string(&link.name);
                list.uint(link.handle);
                list.boolean(link.role == LinkRole::Incoming);
                list.ubyte(link.snd_settle_mode);
                list.ubyte(link.rcv_settle_mode);
                list.raw_or_null(source);
                list.raw_or_null(target);
                list.null();
                list.null();
                match link.role {
                    LinkRole::Incoming => list.null(),
                    LinkRole::Outgoing => list.uint(0),
                }
                if accept.message_size_max > 0 {
                    list.ulong(accept.message_size_max);
                } else {
                    list.null();
                }
                list.null();
                list.null();
                list.raw_or_null(properties.as_deref());
                list.end();
            },
        );
    }

    fn write_detach(&mut self, id: LinkId, ending: Ending, refusal: Option<&Refusal>) {
        let Some(link) = self.links.all.get(id) else {
            return;
        };
        frame::write(
            &mut self.out,
            frame::FrameKind::Amqp,
            link.session.0,
            |out| {
                let mut list = ListWriter::begin(out, descriptor::DETACH);
                list.uint(link.handle);
                list.boolean(ending == Ending::Closed);
                if let Some(refusal) = refusal {
                    state::write_error(&mut list, refusal, None);
                }
                list.end();
            },
        );
    }

    /// Ends a link whose name the peer attaches anew [2.6.1].
    fn steal(&mut self, id: LinkId) {
        let description = "The link was attached anew under the same name.".to_owned();
        let unsent = self.end_link(
            id,
            Some(Refusal {
                condition: Condition::Stolen,
                description,
            }),
        );
        self.events.push_back(Event::Detached {
            link: id,
            error: None,
            unsent,
        });
    }

    fn drop_link(&mut self, id: LinkId) -> Vec<Tag> {
        let unsent = self.forget_deliveries(id);
        if let Some(link) = self.take_link(id)
            && let Some(session) = self.sessions.all.get_mut(link.session)
        {
            session.handles.remove(link.handle);
        }
        unsent
    }

    fn keep_link(&mut self, id: LinkId, link: Link) {
        self.links.bytes += link.kept_bytes();
        self.links.names.insert(&link.name, link.role, id);
        self.links.all.insert(id, Box::new(link));
    }

    pub(super) fn take_link(&mut self, id: LinkId) -> Option<Box<Link>> {
        let link = self.links.all.remove(id)?;
        self.links.names.remove(&link.name, link.role, id);
        self.links.bytes -= link.kept_bytes();
        Some(link)
    }

    fn new_link_id(&mut self) -> LinkId {
        let id = LinkId(self.links.next);
        self.links.next = self.links.next.wrapping_add(1);
        id
    }
}

/// How a link ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// For good.
    Closed,
    /// Its peer may mean to attach it again: it is answered in kind [2.6.5], and nothing of it is
    /// kept.
    Suspended,
}

/// The reason for a link flow of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowReason {
    /// The answer to a drain.
    Drained,
    Plain,
}

struct PeerFlow {
    session: SessionFlow,
    handle: Option<u32>,
    delivery_count: Option<u32>,
    link_credit: Option<u32>,
    drain: bool,
    echo: bool,
}

impl PeerFlow {
    fn read(list: &mut List<'_>) -> Result<Self, Undecodable> {
        let next_incoming_id = list.uint()?;
        let incoming_window = list
            .uint()?
            .ok_or(Undecodable::Missing("incoming-window"))?;
        let _next_outgoing_id = list.uint()?;
        let _outgoing_window = list.uint()?;
        let handle = list.uint()?;
        let delivery_count = list.uint()?;
        let link_credit = list.uint()?;
        let _available = list.uint()?;
        let drain = list.boolean()?.unwrap_or_default();
        let echo = list.boolean()?.unwrap_or_default();
        let session = SessionFlow {
            next_incoming_id,
            incoming_window,
        };
        Ok(Self {
            session,
            handle,
            delivery_count,
            link_credit,
            drain,
            echo,
        })
    }
}

fn read_attach(session: SessionId, list: &mut List<'_>) -> Result<PeerAttach, Undecodable> {
    let name = list
        .string()?
        .ok_or(Undecodable::Missing("name"))?
        .to_owned();
    let handle = list.uint()?.ok_or(Undecodable::Missing("handle"))?;
    let is_receiver = list.boolean()?.ok_or(Undecodable::Missing("role"))?;
    let role = if is_receiver {
        LinkRole::Outgoing
    } else {
        LinkRole::Incoming
    };
    let snd_settle_mode = list.ubyte()?.unwrap_or(2);
    let rcv_settle_mode = list.ubyte()?.unwrap_or(0);
    let source = list.raw()?;
    let target = list.raw()?;
    let _unsettled = list.raw()?;
    let _incomplete_unsettled = list.boolean()?;
    let _initial_delivery_count = list.uint()?;
    let message_size_max = list.ulong()?.unwrap_or(0);
    let _offered_capabilities = list.raw()?;
    let _desired_capabilities = list.raw()?;
    let properties = list.raw()?;
    let attach = || {
        Ok(Attach {
            name: name.clone(),
            role,
            session,
            source: source.map(decode::<Source>).transpose()?,
            target: read_target(target)?,
            snd_settle_mode: match snd_settle_mode {
                0 => SenderSettleMode::Unsettled,
                1 => SenderSettleMode::Settled,
                _ => SenderSettleMode::Mixed,
            },
            rcv_settle_mode: match rcv_settle_mode {
                1 => ReceiverSettleMode::Second,
                _ => ReceiverSettleMode::First,
            },
            message_size_max,
            properties: state::field_map(properties)?.map(|fields| -> Fields { *fields }),
        })
    };
    Ok(PeerAttach {
        handle,
        role,
        source: source.map(Bytes::copy_from_slice),
        target: target.map(Bytes::copy_from_slice),
        snd_settle_mode,
        rcv_settle_mode,
        attach: attach(),
        name,
    })
}

fn read_target(bytes: Option<&[u8]>) -> Result<LinkTarget, Undecodable> {
    let Some(bytes) = bytes else {
        return Ok(LinkTarget::Node(None));
    };
    match descriptor::read(bytes)?.0 {
        descriptor::COORDINATOR => Ok(LinkTarget::Coordinator),
        _ => Ok(LinkTarget::Node(Some(decode::<Target>(bytes)?))),
    }
}

pub(super) fn unattached(handle: u32) -> Refusal {
    let description = format!("The handle {handle} is not attached.");
    Refusal {
        condition: Condition::UnattachedHandle,
        description,
    }
}
