//! Dispositions: outcomes of messages, in both directions.
//!
//! The owner's outcomes of neighbouring deliveries are sent as one range: at the latest when output
//! is taken, and before anything that ends their link.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::connection::undecodable;
use super::frame::{self, FrameKind};
use super::link::FlowState;
use super::links::FlowReason;
use super::small_frame::SmallFrame;
use super::state::{self, DeliveryState};
use super::unsettled::{Decision, Sent, Span};
use super::{
    Condition, Connection, DeliveryId, Event, IncomingDisposition, LinkId, Outcome, Refusal,
    Rejection, SessionId,
};
use crate::codec::{List, ListWriter, Undecodable, descriptor};
use crate::limits;

/// Consecutive deliveries with the same outcome, not sent to the peer yet.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) outcome: Outcome,
}

/// A receiver's disposition with deliveries that are not reported yet.
#[derive(Debug)]
pub(super) struct Deciding {
    session: SessionId,
    span: Span,
    settled: bool,
    outcome: Outcome,
    transaction: Option<Bytes>,
    /// Bytes that the outcome brings for each delivery.
    weight: usize,
}

/// Whose deliveries are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Those that came in: we are their receiver.
    Received,
    /// Those that went out.
    Sent,
}

impl Connection {
    /// Settles an incoming message that its sender did not settle, and returns its credit.
    pub fn settle_incoming(&mut self, id: LinkId, delivery: DeliveryId, outcome: &Outcome) {
        self.settle_without_credit(id, delivery, outcome);
        self.return_credit(id);
    }

    /// Settles an incoming message; its credit is to be returned by [`Connection::return_credit`].
    pub fn settle_without_credit(&mut self, id: LinkId, delivery: DeliveryId, outcome: &Outcome) {
        if let Some(session) = self.links.all.get(id).map(|link| link.session) {
            self.settle(session, Side::Received, delivery, outcome);
        }
    }

    /// Returns the credit of a message that came in, and tells the peer when there is enough of it. For a message that its
    /// sender settled, that is the whole answer.
    pub fn return_credit(&mut self, id: LinkId) {
        let Some(link) = self.links.all.get_mut(id) else {
            return;
        };
        if let FlowState::Incoming(incoming) = &mut link.flow
            && incoming.take_settled()
        {
            self.write_link_flow(id, FlowReason::Plain);
        }
    }

    /// Answers a receiver's decision about a message that went out; one that is settled already
    /// needs no answer. A decision in a transaction is provisional: the delivery stays unsettled
    /// until the transaction is discharged [4.4.2].
    pub fn settle_outgoing(&mut self, id: LinkId, delivery: DeliveryId, outcome: &Outcome) {
        let Some(session) = self.links.all.get(id).map(|link| link.session) else {
            return;
        };
        let Some(state) = self.sessions.all.get_mut(session) else {
            return;
        };
        let is_answered = match outcome {
            Outcome::InTransaction(..) => state.unsettled.is_unsettled(delivery.0),
            Outcome::Accepted
            | Outcome::Released
            | Outcome::Modified { .. }
            | Outcome::Rejected(_)
            | Outcome::Declared(_) => {
                let sent = state.unsettled.take(delivery.0);
                if sent.is_some_and(|sent| sent.provisional) {
                    state.discharged.note(delivery.0);
                }
                sent.is_some()
            }
        };
        if is_answered {
            self.settle(session, Side::Sent, delivery, outcome);
        }
    }

    fn settle(&mut self, id: SessionId, side: Side, delivery: DeliveryId, outcome: &Outcome) {
        let Some(session) = self.sessions.all.get_mut(id) else {
            return;
        };
        let waiting = match side {
            Side::Received => &mut session.settled_in,
            Side::Sent => &mut session.settled_out,
        };
        if let Some(range) = waiting
            && range.last.wrapping_add(1) == delivery.0
            && is_same(&range.outcome, outcome)
        {
            range.last = delivery.0;
            return;
        }
        let range = Range {
            first: delivery.0,
            last: delivery.0,
            outcome: outcome.clone(),
        };
        if let Some(full) = waiting.replace(range) {
            write_range(&mut self.out, id, side, &full);
        }
        if !session.unflushed {
            session.unflushed = true;
            self.sessions.unflushed.push(id);
        }
    }

    /// Writes the dispositions that waited for neighbours.
    pub fn flush_dispositions(&mut self) {
        while let Some(id) = self.sessions.unflushed.pop() {
            let Some(session) = self.sessions.all.get_mut(id) else {
                continue;
            };
            session.unflushed = false;
            // The settlements of a discharge are sent before the answer to the discharge.
            if let Some(range) = session.settled_out.take() {
                write_range(&mut self.out, id, Side::Sent, &range);
            }
            if let Some(range) = session.settled_in.take() {
                write_range(&mut self.out, id, Side::Received, &range);
            }
        }
    }

    pub(super) fn handle_disposition(
        &mut self,
        id: SessionId,
        mut list: List<'_>,
    ) -> Result<(), Refusal> {
        let peer = PeerDisposition::read(&mut list).map_err(undecodable)?;
        // A sender's disposition of its own message: it settles, and nothing depends on it.
        if !peer.receiver {
            return Ok(());
        }
        let Some(session) = self.sessions.all.get_mut(id) else {
            return Ok(());
        };
        let (outcome, transaction) = match peer.state {
            Some(state) => (state.outcome, state.transaction),
            None => (None, None),
        };
        let outcome = match outcome {
            Some(outcome) => outcome,
            // Settled without an outcome: the peer forgets the message, and another receiver may
            // want it.
            None if peer.settled => Outcome::Released,
            None => return Ok(()),
        };
        if !peer.settled {
            let late = session.discharged.take(peer.first, peer.last);
            self.refuse_late(id, &late, transaction.as_ref());
        }
        let Some(session) = self.sessions.all.get_mut(id) else {
            return Ok(());
        };
        let Some(span) = session.unsettled.span(peer.first, peer.last) else {
            return Ok(());
        };
        let weight = outcome.detail_bytes();
        if 0 < weight {
            let bytes = session.unsettled.count(span).saturating_mul(weight);
            if limits::DISPOSITION_BYTES_MAX < bytes {
                return Err(too_heavy(bytes));
            }
        }
        self.outcomes.deciding = Some(Deciding {
            session: id,
            span,
            settled: peer.settled,
            outcome,
            transaction,
            weight,
        });
        self.decide_some();
        Ok(())
    }

    /// Answers a receiver that decides about deliveries which are settled already.
    fn refuse_late(&mut self, id: SessionId, late: &[u32], transaction: Option<&Bytes>) {
        if late.is_empty() {
            return;
        }
        let refusal = Refusal {
            condition: Condition::NotFound,
            description:
                "The delivery is settled already, by the answer to what its receiver decided in a transaction."
                    .to_owned(),
        };
        self.events
            .extend(transaction.map(|id| Event::RefusedInTransaction {
                transaction: id.clone(),
                reason: refusal.description.clone(),
            }));
        let info = None;
        let outcome = Outcome::Rejected(Some(Arc::new(Rejection { refusal, info })));
        for &delivery in late {
            self.settle(id, Side::Sent, DeliveryId(delivery), &outcome);
        }
    }

    /// Reports deliveries of the disposition that is being taken, as many as there is room for.
    pub(super) fn decide_some(&mut self) {
        let Some(mut deciding) = self.outcomes.deciding.take() else {
            return;
        };
        let Some(session) = self.sessions.all.get_mut(deciding.session) else {
            return;
        };
        let room = limits::EVENTS_MAX.saturating_sub(self.events.len());
        let bytes = limits::EVENT_DETAIL_BYTES_MAX.saturating_sub(self.outcomes.detail_bytes);
        let most = match deciding.weight {
            0 => room,
            weight => room.min(bytes / weight),
        };
        // One at least when there is nothing else to report, or there would be no end.
        let most = most.max(usize::from(self.events.is_empty()));
        let before = self.events.len();
        let events = &mut self.events;
        let decision = match (deciding.settled, &deciding.transaction) {
            (true, _) => Decision::Final,
            (false, Some(_)) => Decision::Provisional,
            (false, None) => Decision::Pending,
        };
        let (settled, outcome) = (deciding.settled, &deciding.outcome);
        let transaction = &deciding.transaction;
        let report = |number: u32, sent: Sent| {
            events.push_back(Event::Disposition(IncomingDisposition {
                link: sent.link,
                delivery: DeliveryId(number),
                tag: sent.tag,
                settled,
                outcome: outcome.clone(),
                transaction: transaction.clone(),
            }));
        };
        let left = session
            .unsettled
            .decide(deciding.span, decision, most, report);
        self.outcomes.detail_bytes += (self.events.len() - before) * deciding.weight;
        if let Some(span) = left {
            deciding.span = span;
            self.outcomes.deciding = Some(deciding);
        }
    }
}

/// Compares outcomes: both are mostly the first.
#[inline]
fn is_same(one: &Outcome, other: &Outcome) -> bool {
    matches!((one, other), (Outcome::Accepted, Outcome::Accepted)) || one == other
}

fn too_heavy(bytes: usize) -> Refusal {
    Refusal {
        condition: Condition::ResourceLimitExceeded,
        description: format!(
            "The disposition brings {bytes} bytes of properties and texts to all of its deliveries \
             together, and {} are the most: settle fewer at a time.",
            limits::DISPOSITION_BYTES_MAX
        ),
    }
}

fn write_range(out: &mut BytesMut, id: SessionId, side: Side, range: &Range) {
    if matches!(range.outcome, Outcome::Accepted) {
        let mut frame = SmallFrame::begin(id.0, descriptor::DISPOSITION);
        frame.boolean(side == Side::Received);
        frame.uint(range.first);
        frame.uint(range.last);
        frame.boolean(true);
        frame.raw(state::ACCEPTED);
        return frame::write_small(out, id.0, frame);
    }
    frame::write(out, FrameKind::Amqp, id.0, |out| {
        write_body(out, side, range);
    });
}

/// Writes the body of a disposition frame.
pub(super) fn write_body(out: &mut BytesMut, side: Side, range: &Range) {
    let receiver = side == Side::Received;
    let mut list = ListWriter::begin(out, descriptor::DISPOSITION);
    list.boolean(receiver);
    list.uint(range.first);
    list.uint(range.last);
    // A message that came in is taken by then, whatever becomes of the transaction that it is in.
    list.boolean(receiver || !matches!(range.outcome, Outcome::InTransaction(..)));
    state::write_outcome(&mut list, &range.outcome);
    list.end();
}

struct PeerDisposition {
    receiver: bool,
    first: u32,
    last: u32,
    settled: bool,
    state: Option<DeliveryState>,
}

impl PeerDisposition {
    fn read(list: &mut List<'_>) -> Result<Self, Undecodable> {
        let receiver = list.boolean()?.ok_or(Undecodable::Missing("role"))?;
        let first = list.uint()?.ok_or(Undecodable::Missing("first"))?;
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
