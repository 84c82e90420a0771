//! Transfers, both ways: where the messages are.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};

use super::connection::undecodable;
use super::frame::{self, FrameKind};
use super::link::{FlowState, Gathered, Link, LinkPhase, Partial, PassedOver};
use super::links::{FlowReason, unattached};
use super::session::{PendingTransfer, What};
use super::small_frame::SmallFrame;
use super::state::DeliveryState;
use super::table::Table;
use super::{
    Condition, Connection, CreditLost, Delivery, DeliveryId, Event, IncomingTransfer, LinkId,
    Outcome, Refusal, Rejection, SessionId, SettleMode,
};
use crate::codec::{List, Undecodable, descriptor};
use crate::limits;

/// A transfer's fields, as far as they matter to us [2.7.5].
pub(super) struct Transfer {
    handle: u32,
    delivery: Option<u32>,
    tag: Option<PeerTag>,
    message_format: u32,
    settled: bool,
    more: bool,
    transaction: Option<Bytes>,
    course: Course,
}

/// The effect of a transfer on its delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// It is as if it had never been.
    Aborted,
    /// It continues one that an earlier link began.
    Resumed,
    /// It is sent, as nearly all are.
    Sent,
}

/// Bytes of a delivery-tag. AMQP's most are 32 [2.8.7]. The service takes longer ones, and the first Java SDK sends the 36
/// of a UUID as text (`messaging.md#transfers`).
const TAG_BYTES_MAX: usize = 128;

/// Bytes of a delivery-tag that is kept without an allocation: nearly all are.
const SHORT_TAG_BYTES_MAX: usize = 32;

/// A delivery-tag of the peer's choice. One of few bytes is always `Short`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PeerTag {
    Short {
        length: usize,
        bytes: [u8; SHORT_TAG_BYTES_MAX],
    },
    Long(Box<[u8]>),
}

impl PeerTag {
    fn read(tag: &[u8]) -> Result<Self, Undecodable> {
        let length = tag.len();
        let mut bytes = [0; SHORT_TAG_BYTES_MAX];
        if let Some(place) = bytes.get_mut(..length) {
            place.copy_from_slice(tag);
            Ok(Self::Short { length, bytes })
        } else if length <= TAG_BYTES_MAX {
            Ok(Self::Long(tag.into()))
        } else {
            Err(Undecodable::WrongType(
                "a delivery-tag of 128 bytes at most",
            ))
        }
    }
}

impl Transfer {
    pub(super) fn read(mut list: List<'_>) -> Result<Self, Undecodable> {
        let handle = list.uint()?.ok_or(Undecodable::Missing("handle"))?;
        let delivery = list.uint()?;
        let tag = list.binary()?.map(PeerTag::read).transpose()?;
        let message_format = list.uint()?.unwrap_or(0);
        let settled = list.boolean()?.unwrap_or_default();
        let more = list.boolean()?.unwrap_or_default();
        let mut transfer = Self {
            handle,
            delivery,
            tag,
            message_format,
            settled,
            more,
            transaction: None,
            course: Course::Sent,
        };
        if list.is_empty() {
            return Ok(transfer);
        }
        let _rcv_settle_mode = list.ubyte()?;
        if let Some(state) = list.raw()? {
            transfer.transaction = DeliveryState::decode(state)?.transaction;
        }
        let resume = list.boolean()?.unwrap_or_default();
        let aborted = list.boolean()?.unwrap_or_default();
        transfer.course = match (aborted, resume) {
            (true, _) => Course::Aborted,
            (false, true) => Course::Resumed,
            (false, false) => Course::Sent,
        };
        Ok(transfer)
    }
}

impl Connection {
    pub(super) fn handle_transfer(
        &mut self,
        id: SessionId,
        transfer: Transfer,
        payload: Bytes,
    ) -> Result<(), Refusal> {
        let Some(session) = self.sessions.all.get_mut(id) else {
            return Ok(());
        };
        session.next_incoming_id = session.next_incoming_id.wrapping_add(1);
        session.unreported += 1;
        let refresh = limits::INCOMING_WINDOW / 2 <= session.unreported;
        let Some(&link) = session.by_handle.get(transfer.handle) else {
            return Err(unattached(transfer.handle));
        };
        // Sent eagerly: peers count from our last flow.
        if refresh {
            self.write_session_flow(id);
        }
        self.take_transfer(link, transfer, payload)
    }

    /// Reports a delivery when it is whole.
    fn take_transfer(
        &mut self,
        id: LinkId,
        transfer: Transfer,
        payload: Bytes,
    ) -> Result<(), Refusal> {
        let Some(link) = self.links.all.get_mut(id) else {
            return Ok(());
        };
        let phase = link.phase;
        if phase == LinkPhase::Detaching {
            return Ok(());
        }
        let FlowState::Incoming(incoming) = &mut link.flow else {
            let description = "A transfer came on a link on which we send.".to_owned();
            return Err(Refusal {
                condition: Condition::NotAllowed,
                description,
            });
        };
        let format = match &incoming.partial {
            Some(partial) => partial.message_format,
            None => transfer.message_format,
        };
        let size_max = match phase {
            // The peer is not authorized yet.
            LinkPhase::Asked => u64::from(limits::FRAME_SIZE_MAX),
            LinkPhase::Asking | LinkPhase::Attached | LinkPhase::Detaching => {
                incoming.size_max(format)
            }
        };
        // Nearly every message is one frame.
        if let (None, Some(delivery)) = (&incoming.partial, transfer.delivery)
            && transfer.tag.is_some()
            && !transfer.more
            && transfer.course == Course::Sent
            && u64::try_from(payload.len()).is_ok_and(|length| length <= size_max)
        {
            incoming.delivery_count = incoming.delivery_count.wrapping_add(1);
            self.events.push_back(Event::Transfer(IncomingTransfer {
                link: id,
                delivery: DeliveryId(delivery),
                payload,
                message_format: transfer.message_format,
                settled: transfer.settled,
                transaction: transfer.transaction,
            }));
            return Ok(());
        }
        self.take_part(id, transfer, payload, size_max)
    }

    /// Puts a frame to those before it of the same delivery.
    fn take_part(
        &mut self,
        id: LinkId,
        transfer: Transfer,
        payload: Bytes,
        size_max: u64,
    ) -> Result<(), Refusal> {
        let link = self.links.all.get_mut(id);
        let Some(FlowState::Incoming(incoming)) = link.map(|link| &mut link.flow) else {
            return Ok(());
        };
        let mut partial = match incoming.partial.take() {
            Some(partial) => {
                partial.check_continued(&transfer)?;
                partial
            }
            None => Partial::begin(&transfer).map_err(undecodable)?,
        };
        let before = partial.gathered.len();
        let is_resumed = partial.passed_over == Some(PassedOver::Resumed);
        if transfer.course == Course::Aborted || (is_resumed && !transfer.more) {
            // As if it had never been sent: only its credit is used up, and comes back. Nothing is
            // known of a delivery that is resumed, for no link outlives its detach [2.7.5].
            self.partials.bytes = self.partials.bytes.saturating_sub(before);
            incoming.delivery_count = incoming.delivery_count.wrapping_add(1);
            if incoming.take_settled() {
                self.write_link_flow(id, FlowReason::Plain);
            }
            return Ok(());
        }
        partial.settled |= transfer.settled;
        let length = before + payload.len();
        let others = self.partials.bytes.saturating_sub(before);
        if size_max < u64::try_from(length).unwrap_or(u64::MAX)
            || (transfer.more && limits::PARTIAL_BYTES_MAX < others + length)
        {
            partial.pass_over(PassedOver::TooLarge);
        }
        if transfer.more && self.partials.room < others + length {
            partial.pass_over(PassedOver::NoRoom);
        }
        if transfer.more {
            partial.append(payload);
            self.partials.bytes = others + partial.gathered.len();
            incoming.partial = Some(partial);
            return Ok(());
        }
        self.partials.bytes = others;
        incoming.delivery_count = incoming.delivery_count.wrapping_add(1);
        let payload = if before == 0 {
            payload
        } else {
            partial.append(payload);
            std::mem::take(&mut partial.gathered).join()
        };
        self.take_whole(id, partial, payload);
        Ok(())
    }

    fn take_whole(&mut self, link: LinkId, partial: Partial, payload: Bytes) {
        let delivery = DeliveryId(partial.delivery);
        let Some(why) = partial.passed_over else {
            self.events.push_back(Event::Transfer(IncomingTransfer {
                link,
                delivery,
                payload,
                message_format: partial.message_format,
                settled: partial.settled,
                transaction: partial.transaction,
            }));
            return;
        };
        let (condition, description) = match why {
            PassedOver::TooLarge => {
                let text = "The message is larger than the link's max-message-size.";
                (Condition::MessageSizeExceeded, text)
            }
            PassedOver::NoRoom => {
                let text =
                    "The broker has too many messages in hand that are not whole yet; try again.";
                (Condition::ServerBusy, text)
            }
            // No disposition is expected for it.
            PassedOver::Resumed => return,
        };
        let refusal = Refusal {
            condition,
            description: description.to_owned(),
        };
        if let Some(transaction) = partial.transaction {
            self.events.push_back(Event::RefusedInTransaction {
                transaction,
                reason: refusal.description.clone(),
            });
        }
        if partial.settled {
            // Its loss would go unnoticed.
            self.detach(link, Some(refusal));
            self.events.push_back(Event::Detached {
                link,
                error: None,
                unsent: Vec::new(),
            });
        } else {
            let rejection = Rejection {
                refusal,
                info: None,
            };
            let outcome = Outcome::Rejected(Some(Arc::new(rejection)));
            self.settle_incoming(link, delivery, &outcome);
        }
    }

    /// Sends a message on an outgoing link.
    ///
    /// # Errors
    ///
    /// [`CreditLost`] if the link has no credit, or has ended: nothing is sent.
    pub fn deliver(
        &mut self,
        id: LinkId,
        delivery: Delivery<'_>,
    ) -> Result<DeliveryId, CreditLost> {
        self.deliver_with(id, delivery, Bytes::new())
    }

    /// Sends a message as [`Connection::deliver`] does, with `rest` after its payload. The rest of
    /// a large message is kept, and made into frames as they are sent ([`Connection::go_on`]).
    ///
    /// # Errors
    ///
    /// As those of [`Connection::deliver`].
    pub fn deliver_with(
        &mut self,
        id: LinkId,
        delivery: Delivery<'_>,
        rest: Bytes,
    ) -> Result<DeliveryId, CreditLost> {
        let payload_max = frame::payload_max(self.peer.frame_max);
        let link = self.links.all.get_mut(id).ok_or(CreditLost)?;
        let (LinkPhase::Attached, FlowState::Outgoing(outgoing)) = (link.phase, &mut link.flow)
        else {
            return Err(CreditLost);
        };
        if outgoing.credit() == 0 {
            return Err(CreditLost);
        }
        outgoing.delivery_count = outgoing.delivery_count.wrapping_add(1);
        let (handle, session) = (link.handle, link.session);
        let state = self.sessions.all.get_mut(session).ok_or(CreditLost)?;
        let number = match delivery.settle_mode {
            SettleMode::OnSend => state.unsettled.push_settled(),
            SettleMode::OnReceipt => state.unsettled.push(id, delivery.tag),
        };
        let before: usize = delivery.payload.iter().map(|piece| piece.len()).sum();
        let total = before + rest.len();
        let head = Head {
            channel: session.0,
            handle,
            number: Some(number),
            delivery: &delivery,
            more: payload_max < total,
        };
        // Nearly every message is one frame that may leave.
        if !head.more && state.remote_window > 0 && state.waiting.is_empty() {
            state.remote_window -= 1;
            state.next_outgoing_id = state.next_outgoing_id.wrapping_add(1);
            let start = self.out.len();
            head.write(&mut self.out, total);
            for piece in delivery.payload {
                self.out.extend_from_slice(piece);
            }
            self.out.extend_from_slice(&rest);
            frame::trace_written(&self.out, start, FrameKind::Amqp, session.0);
        } else {
            self.deliver_in_parts(id, session, head, rest);
        }
        Ok(DeliveryId(number))
    }

    /// Sends a message in as many frames as it takes; those outside the peer's window wait.
    fn deliver_in_parts(
        &mut self,
        id: LinkId,
        session: SessionId,
        mut head: Head<'_>,
        mut rest: Bytes,
    ) {
        let payload_max = frame::payload_max(self.peer.frame_max);
        let Some(state) = self.sessions.all.get_mut(session) else {
            return;
        };
        let (delivery, number) = (head.delivery, head.number.unwrap_or_default());
        let before: usize = delivery.payload.iter().map(|piece| piece.len()).sum();
        let mut pieces = Pieces {
            pieces: delivery.payload,
            rest: &rest,
            left: before + rest.len(),
        };
        loop {
            if head.number.is_none()
                && pieces.left <= rest.len()
                && limits::LARGE_REST_BYTES < pieces.left
            {
                rest.advance(rest.len() - pieces.left);
                self.sessions.waiting_bytes += rest.len();
                count_waiting(&mut self.links.all, id);
                let settled = delivery.settle_mode == SettleMode::OnSend;
                state.waiting.push_back(PendingTransfer {
                    link: id,
                    what: What::Rest(Rest {
                        number,
                        handle: head.handle,
                        settled,
                        payload: rest,
                    }),
                });
                return self.flush_waiting(session);
            }
            let size = pieces.left.min(payload_max);
            let last = !head.more;
            if state.remote_window > 0 && state.waiting.is_empty() {
                state.remote_window -= 1;
                state.next_outgoing_id = state.next_outgoing_id.wrapping_add(1);
                let start = self.out.len();
                head.write(&mut self.out, size);
                pieces.take(size, &mut self.out);
                frame::trace_written(&self.out, start, FrameKind::Amqp, session.0);
            } else {
                let mut frame = BytesMut::new();
                head.write(&mut frame, size);
                pieces.take(size, &mut frame);
                self.sessions.waiting_bytes += frame.len();
                count_waiting(&mut self.links.all, id);
                state.waiting.push_back(PendingTransfer {
                    link: id,
                    what: What::Frame(number, frame.freeze()),
                });
            }
            if last {
                return;
            }
            head.number = None;
            head.more = payload_max < pieces.left;
        }
    }
}

/// Counts a transfer of a link that waits in its session.
fn count_waiting(links: &mut Table<LinkId, Box<Link>>, id: LinkId) {
    let link = links.get_mut(id);
    if let Some(FlowState::Outgoing(outgoing)) = link.map(|link| &mut link.flow) {
        outgoing.waiting += 1;
    }
}

impl Partial {
    fn begin(transfer: &Transfer) -> Result<Self, Undecodable> {
        Ok(Self {
            tag: transfer
                .tag
                .clone()
                .ok_or(Undecodable::Missing("delivery-tag"))?,
            delivery: transfer
                .delivery
                .ok_or(Undecodable::Missing("delivery-id"))?,
            message_format: transfer.message_format,
            settled: transfer.settled,
            transaction: transfer.transaction.clone(),
            gathered: Gathered::default(),
            passed_over: (transfer.course == Course::Resumed).then_some(PassedOver::Resumed),
        })
    }

    /// Checks that a transfer continues this delivery, and not another [2.7.5]. `fe2o3-amqp` gives the
    /// last transfer of a delivery the next delivery-id, and repeats the tag: that is the same delivery.
    fn check_continued(&self, transfer: &Transfer) -> Result<(), Refusal> {
        let is_tagged = transfer.tag.as_ref() == Some(&self.tag);
        match transfer.delivery {
            Some(other) if other != self.delivery && !is_tagged => Err(Refusal {
                condition: Condition::NotAllowed,
                description: format!(
                    "A transfer of the delivery {other} came before the delivery {} was whole.",
                    self.delivery
                ),
            }),
            _ => Ok(()),
        }
    }

    /// The message is dropped. "Too large" is the error that helps its sender most.
    fn pass_over(&mut self, why: PassedOver) {
        if self.passed_over != Some(PassedOver::Resumed)
            && (self.passed_over.is_none() || why == PassedOver::TooLarge)
        {
            self.passed_over = Some(why);
        }
    }

    fn append(&mut self, payload: Bytes) {
        if self.passed_over.is_some() {
            self.gathered = Gathered::default();
        } else {
            self.gathered.append(payload);
        }
    }
}

/// A transfer's frame before its payload, as we write it.
struct Head<'a> {
    channel: u16,
    handle: u32,
    /// In the first frame of a delivery only.
    number: Option<u32>,
    delivery: &'a Delivery<'a>,
    more: bool,
}

impl Head<'_> {
    /// Appends it, for so many bytes of payload.
    fn write(&self, out: &mut BytesMut, payload: usize) {
        let mut frame = SmallFrame::begin(self.channel, descriptor::TRANSFER);
        frame.uint(self.handle);
        match self.number {
            Some(number) => {
                frame.uint(number);
                frame.tag(self.delivery.tag);
                frame.uint(self.delivery.message_format);
            }
            None => {
                frame.null();
                frame.null();
                frame.null();
            }
        }
        frame.boolean(self.delivery.settle_mode == SettleMode::OnSend);
        frame.boolean(self.more);
        frame.end(out, payload);
    }
}

/// The rest of a large message after its first frames.
#[derive(Debug)]
pub(super) struct Rest {
    /// The number of the delivery.
    pub(super) number: u32,
    handle: u32,
    settled: bool,
    pub(super) payload: Bytes,
}

impl Rest {
    /// Appends the next frame; returns how much of the payload it takes.
    pub(super) fn write(&mut self, out: &mut BytesMut, session: SessionId, most: usize) -> usize {
        let size = self.payload.len().min(most);
        let mut frame = SmallFrame::begin(session.0, descriptor::TRANSFER);
        frame.uint(self.handle);
        frame.null();
        frame.null();
        frame.null();
        frame.boolean(self.settled);
        frame.boolean(size < self.payload.len());
        frame.end(out, size);
        out.extend_from_slice(&self.payload.split_to(size));
        size
    }
}

/// A payload in pieces, taken from the front.
struct Pieces<'a> {
    pieces: &'a [&'a [u8]],
    /// The bytes after them.
    rest: &'a [u8],
    /// Bytes that have not been taken.
    left: usize,
}

impl Pieces<'_> {
    /// Appends the next `size` bytes.
    fn take(&mut self, size: usize, out: &mut BytesMut) {
        let before: usize = self.pieces.iter().map(|piece| piece.len()).sum();
        let mut skip = before + self.rest.len() - self.left;
        let mut wanted = size;
        for piece in self.pieces.iter().copied().chain([self.rest]) {
            let (skipped, piece) = piece.split_at(skip.min(piece.len()));
            skip -= skipped.len();
            let (taken, _) = piece.split_at(wanted.min(piece.len()));
            out.extend_from_slice(taken);
            wanted -= taken.len();
        }
        self.left -= size;
    }
}
