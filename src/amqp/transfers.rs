//! Transfers and dispositions, both ways: where the messages are.

use bytes::{Bytes, BytesMut};

use super::connection::undecodable;
use super::frame::{self, FrameKind};
use super::link::{FlowState, LinkPhase, Partial};
use super::links::{Answer, unattached};
use super::state::{self, DeliveryState};
use super::wire::{List, ListWriter, Malformed};
use super::{
    Condition, Connection, CreditLost, Delivery, DeliveryId, Event, LinkId, Outcome, Refusal,
    Rejection, SessionId, SettleMode,
};
use crate::limits;

/// A transfer's fields, as far as they matter to us [2.7.5].
struct Transfer {
    handle: u32,
    delivery: Option<u32>,
    message_format: u32,
    settled: bool,
    more: bool,
    state: Option<DeliveryState>,
    aborted: bool,
}

impl Transfer {
    fn read(list: &mut List<'_>) -> Result<Self, Malformed> {
        let handle = list.uint()?.ok_or(Malformed::Missing("handle"))?;
        let delivery = list.uint()?;
        let _tag = list.binary()?;
        let message_format = list.uint()?.unwrap_or(0);
        let settled = list.boolean()?.unwrap_or_default();
        let more = list.boolean()?.unwrap_or_default();
        let mut transfer = Self {
            handle,
            delivery,
            message_format,
            settled,
            more,
            state: None,
            aborted: false,
        };
        if list.is_empty() {
            return Ok(transfer);
        }
        let _rcv_settle_mode = list.ubyte()?;
        transfer.state = list.raw()?.map(DeliveryState::decode).transpose()?;
        let _resume = list.boolean()?;
        transfer.aborted = list.boolean()?.unwrap_or_default();
        Ok(transfer)
    }
}

impl Connection {
    pub(super) fn handle_transfer(
        &mut self,
        id: SessionId,
        mut list: List<'_>,
        payload: Bytes,
    ) -> Result<(), Refusal> {
        let transfer = Transfer::read(&mut list).map_err(undecodable)?;
        let Some(session) = self.sessions.get_mut(&id) else {
            return Ok(());
        };
        session.next_incoming_id = session.next_incoming_id.wrapping_add(1);
        session.unreported += 1;
        let refresh = limits::INCOMING_WINDOW / 2 <= session.unreported;
        let Some(&link) = session.by_handle.get(&transfer.handle) else {
            return Err(unattached(transfer.handle));
        };
        // Eagerly: what peers count, they count from our last flow.
        if refresh {
            self.write_session_flow(id);
        }
        self.take_transfer(link, transfer, payload)
    }

    /// Puts the frames of a delivery together, and reports it when it is whole.
    fn take_transfer(
        &mut self,
        id: LinkId,
        transfer: Transfer,
        payload: Bytes,
    ) -> Result<(), Refusal> {
        let Some(link) = self.links.get_mut(&id) else {
            return Ok(());
        };
        if link.phase == LinkPhase::Detaching {
            return Ok(());
        }
        let FlowState::Incoming(incoming) = &mut link.flow else {
            let description = "A transfer came on a link on which we send.".to_owned();
            return Err(Refusal {
                condition: Condition::NotAllowed,
                description,
            });
        };
        let transaction = transfer.state.and_then(|state| state.transaction);
        let mut partial = match incoming.partial.take() {
            Some(partial) => partial,
            None => {
                let delivery = transfer.delivery.ok_or(Malformed::Missing("delivery-id"));
                let delivery = delivery.map_err(undecodable)?;
                incoming.delivery_count = incoming.delivery_count.wrapping_add(1);
                let (message_format, settled) = (transfer.message_format, transfer.settled);
                if !transfer.more && !transfer.aborted {
                    let delivery = DeliveryId(delivery);
                    self.events.push_back(Event::Transfer {
                        link: id,
                        delivery,
                        payload,
                        message_format,
                        settled,
                        transaction,
                    });
                    return Ok(());
                }
                let (bytes, too_large) = (BytesMut::new(), false);
                Partial {
                    delivery,
                    message_format,
                    settled,
                    transaction,
                    bytes,
                    too_large,
                }
            }
        };
        if transfer.aborted {
            // As if it had never been sent: its credit comes back with the next flow.
            incoming.settled = incoming.settled.wrapping_add(1);
            return Ok(());
        }
        partial.settled |= transfer.settled;
        partial.append(&payload, incoming.message_size_max);
        if transfer.more {
            incoming.partial = Some(partial);
        } else {
            self.take_whole(id, partial);
        }
        Ok(())
    }

    fn take_whole(&mut self, link: LinkId, partial: Partial) {
        let Partial {
            delivery,
            message_format,
            settled,
            transaction,
            bytes,
            too_large,
        } = partial;
        let delivery = DeliveryId(delivery);
        if !too_large {
            let payload = bytes.freeze();
            self.events.push_back(Event::Transfer {
                link,
                delivery,
                payload,
                message_format,
                settled,
                transaction,
            });
            return;
        }
        let description = "The message is larger than the link's max-message-size.".to_owned();
        let refusal = Refusal {
            condition: Condition::MessageSizeExceeded,
            description,
        };
        if settled {
            // Nobody would hear of its loss.
            self.detach(link, Some(refusal));
            self.events.push_back(Event::Detached { link, error: None });
        } else {
            let rejection = Rejection {
                refusal,
                info: None,
            };
            self.write_rejection(link, delivery, rejection);
        }
    }

    fn write_rejection(&mut self, link: LinkId, delivery: DeliveryId, rejection: Rejection) {
        self.settle_incoming(
            link,
            delivery,
            &Outcome::Rejected(Some(Box::new(rejection))),
            false,
        );
    }

    /// Says what became of a message that came in, and tops its link's credit up.
    ///
    /// For one that the peer sent `settled`, only the credit is told.
    pub fn settle_incoming(
        &mut self,
        id: LinkId,
        delivery: DeliveryId,
        outcome: &Outcome,
        settled: bool,
    ) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let session = link.session;
        let mut tops_up = false;
        if let FlowState::Incoming(incoming) = &mut link.flow {
            incoming.settled = incoming.settled.wrapping_add(1);
            incoming.unreported += 1;
            tops_up = incoming.tops_up && incoming.credit <= incoming.unreported.saturating_mul(2);
        }
        if !settled {
            self.write_settlement(session, true, delivery, outcome);
        }
        if tops_up {
            self.write_link_flow(id, Answer::Plain);
        }
    }

    /// Answers a receiver's decision about a message that went out.
    pub fn settle_outgoing(&mut self, id: LinkId, delivery: DeliveryId, outcome: &Outcome) {
        let Some(session) = self.links.get(&id).map(|link| link.session) else {
            return;
        };
        if let Some(state) = self.sessions.get_mut(&session) {
            state.unsettled.settle(delivery.0);
        }
        self.write_settlement(session, false, delivery, outcome);
    }

    fn write_settlement(
        &mut self,
        session: SessionId,
        receiver: bool,
        delivery: DeliveryId,
        outcome: &Outcome,
    ) {
        if *outcome == Outcome::Accepted {
            return self.coalesce(session, receiver, delivery.0);
        }
        self.write(session.0, |out| {
            let range = (delivery.0, delivery.0);
            state::write_disposition(out, receiver, range, true, outcome);
        });
    }

    /// Sends a message on an outgoing link.
    ///
    /// # Errors
    ///
    /// [`CreditLost`] if the link has no credit, or has gone: nothing is sent.
    pub fn deliver(
        &mut self,
        id: LinkId,
        delivery: Delivery<'_>,
    ) -> Result<DeliveryId, CreditLost> {
        let payload_max = frame::payload_max(self.peer_frame_max);
        let link = self.links.get_mut(&id).ok_or(CreditLost)?;
        let (LinkPhase::Attached, FlowState::Outgoing(outgoing)) = (link.phase, &mut link.flow)
        else {
            return Err(CreditLost);
        };
        if outgoing.credit() == 0 {
            return Err(CreditLost);
        }
        outgoing.delivery_count = outgoing.delivery_count.wrapping_add(1);
        let (handle, session) = (link.handle, link.session);
        let state = self.sessions.get_mut(&session).ok_or(CreditLost)?;
        let kept = match delivery.settle_mode {
            SettleMode::OnSend => None,
            SettleMode::OnReceipt => Some((id, delivery.tag)),
        };
        let number = state.unsettled.push(kept);
        let total: usize = delivery.payload.iter().map(|piece| piece.len()).sum();
        let mut pieces = Pieces {
            pieces: delivery.payload,
            left: total,
        };
        let mut first = true;
        loop {
            let size = pieces.left.min(payload_max);
            let head = Head {
                handle,
                number: first.then_some(number),
                delivery: &delivery,
                more: size < pieces.left,
            };
            let last = !head.more;
            if state.remote_window > 0 && state.waiting.is_empty() {
                state.remote_window -= 1;
                state.next_outgoing_id = state.next_outgoing_id.wrapping_add(1);
                frame::write(&mut self.out, FrameKind::Amqp, session.0, |out| {
                    head.write(out);
                    pieces.take(size, out);
                });
            } else {
                let mut body = BytesMut::with_capacity(size + 64);
                head.write(&mut body);
                pieces.take(size, &mut body);
                state.waiting.push_back(body.freeze());
            }
            first = false;
            if last {
                return Ok(DeliveryId(number));
            }
        }
    }

    pub(super) fn handle_disposition(
        &mut self,
        id: SessionId,
        mut list: List<'_>,
    ) -> Result<(), Refusal> {
        let peer = PeerDisposition::read(&mut list).map_err(undecodable)?;
        // A sender's word about what it sent: it settles, and nothing depends on it.
        if !peer.receiver {
            return Ok(());
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return Ok(());
        };
        let (outcome, transaction) = match peer.state {
            Some(state) => (state.outcome, state.transaction),
            // Settled without a word: the peer forgets it.
            None => (peer.settled.then_some(Outcome::Released), None),
        };
        let Some(outcome) = outcome else {
            return Ok(());
        };
        for number in session.unsettled.within(peer.first, peer.last) {
            let Some((link, tag)) = session.unsettled.get(number) else {
                continue;
            };
            if peer.settled {
                session.unsettled.settle(number);
            }
            self.events.push_back(Event::Disposition {
                link,
                delivery: DeliveryId(number),
                tag,
                settled: peer.settled,
                outcome: outcome.clone(),
                transaction: transaction.clone(),
            });
        }
        Ok(())
    }
}

struct PeerDisposition {
    receiver: bool,
    first: u32,
    last: u32,
    settled: bool,
    state: Option<DeliveryState>,
}

impl PeerDisposition {
    fn read(list: &mut List<'_>) -> Result<Self, Malformed> {
        let receiver = list.boolean()?.ok_or(Malformed::Missing("role"))?;
        let first = list.uint()?.ok_or(Malformed::Missing("first"))?;
        let last = list.uint()?.unwrap_or(first);
        let settled = list.boolean()?.unwrap_or_default();
        let state = list.raw()?.map(DeliveryState::decode).transpose()?;
        Ok(Self {
            receiver,
            first,
            last,
            settled,
            state,
        })
    }
}

impl Partial {
    fn append(&mut self, payload: &[u8], size_max: u64) {
        let size = u64::try_from(self.bytes.len() + payload.len()).unwrap_or(u64::MAX);
        let max = if size_max == 0 {
            limits::MESSAGE_SIZE_MAX
        } else {
            size_max
        };
        if self.too_large || max < size {
            self.too_large = true;
            self.bytes = BytesMut::new();
        } else {
            self.bytes.extend_from_slice(payload);
        }
    }
}

/// A transfer's performative, as we write it.
struct Head<'a> {
    handle: u32,
    /// In the first frame of a delivery only.
    number: Option<u32>,
    delivery: &'a Delivery<'a>,
    more: bool,
}

impl Head<'_> {
    fn write(&self, out: &mut BytesMut) {
        let mut list = ListWriter::begin(out, 0x14);
        list.uint(self.handle);
        match self.number {
            Some(number) => {
                list.uint(number);
                list.binary(&self.delivery.tag);
                list.uint(self.delivery.message_format);
            }
            None => {
                list.null();
                list.null();
                list.null();
            }
        }
        list.boolean(self.delivery.settle_mode == SettleMode::OnSend);
        list.boolean(self.more);
        list.end();
    }
}

/// A payload in pieces, taken from the front.
struct Pieces<'a> {
    pieces: &'a [&'a [u8]],
    left: usize,
}

impl Pieces<'_> {
    /// Appends the next `size` bytes.
    fn take(&mut self, size: usize, out: &mut BytesMut) {
        let total: usize = self.pieces.iter().map(|piece| piece.len()).sum();
        let mut skip = total - self.left;
        let mut wanted = size;
        for &piece in self.pieces {
            let (skipped, piece) = piece.split_at(skip.min(piece.len()));
            skip -= skipped.len();
            let (taken, _) = piece.split_at(wanted.min(piece.len()));
            out.extend_from_slice(taken);
            wanted -= taken.len();
        }
        self.left -= size;
    }
}
