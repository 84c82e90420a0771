//! One link: the terms of its attach, and its flow state [2.6.7].

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::links::FlowReason;
use super::transfers::PeerTag;
use super::{Attach, LinkRole, SessionId, serial};
use crate::codec::Undecodable;
use crate::limits;

#[derive(Debug)]
pub(super) struct Link {
    pub(super) session: SessionId,
    pub(super) name: String,
    pub(super) role: LinkRole,
    /// Our handle.
    pub(super) handle: u32,
    /// The peer's; none until it attached (client role).
    pub(super) peer_handle: Option<u32>,
    pub(super) phase: LinkPhase,
    /// Source and target as the peer encoded them, to be echoed to the byte.
    pub(super) source: Option<Bytes>,
    pub(super) target: Option<Bytes>,
    pub(super) snd_settle_mode: u8,
    pub(super) rcv_settle_mode: u8,
    pub(super) flow: FlowState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkPhase {
    /// The peer attached, and the owner has not answered.
    Asked,
    /// We attached, and the peer has not answered (client role).
    Asking,
    Attached,
    /// We detached; the peer's detach is awaited, and all else passed over.
    Detaching,
}

#[derive(Debug)]
pub(super) enum FlowState {
    Incoming(IncomingLink),
    Outgoing(OutgoingLink),
}

/// Messages come in.
#[derive(Debug, Default)]
pub(super) struct IncomingLink {
    /// Credit that is kept up.
    pub(super) credit: u32,
    /// Deliveries received.
    pub(super) delivery_count: u32,
    /// Deliveries that the owner is done with.
    pub(super) settled: u32,
    /// Settled since the last flow.
    pub(super) unreported: u32,
    /// The largest message, bytes; 0 is no limit.
    pub(super) message_size_max: u64,
    pub(super) partial: Option<Partial>,
    /// Whether credit is topped up when deliveries are settled, or granted by the owner only.
    pub(super) tops_up: bool,
}

/// A partially received message.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) delivery: u32,
    pub(super) tag: PeerTag,
    pub(super) message_format: u32,
    pub(super) settled: bool,
    pub(super) transaction: Option<Bytes>,
    pub(super) gathered: Gathered,
    /// Nothing of it is kept.
    pub(super) passed_over: Option<PassedOver>,
}

/// Why nothing of a message is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassedOver {
    /// There was no room for more of it.
    NoRoom,
    /// It continues a delivery of an earlier link.
    Resumed,
    /// It is larger than the link takes.
    TooLarge,
}

/// Pieces of a message, put together once when all of them are there. Large ones stay in the memory
/// that they came in.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pieces: VecDeque<Bytes>,
    /// Small transfers that came since, copied: a slice would keep its whole read buffer in memory.
    tail: BytesMut,
    length: usize,
}

impl Gathered {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn append(&mut self, piece: Bytes) {
        self.length += piece.len();
        if limits::PIECES_BYTES_MAX < self.length {
            self.merge();
            self.tail.extend_from_slice(&piece);
            return;
        }
        if piece.len() < limits::COPIED_PIECE_BYTES {
            self.tail.extend_from_slice(&piece);
        } else {
            self.end_tail();
            self.pieces.push_back(piece);
        }
        if 4 * limits::COPIED_PIECE_BYTES <= self.tail.len() {
            self.end_tail();
        }
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            self.pieces
                .push_back(std::mem::take(&mut self.tail).freeze());
        }
    }

    /// Puts all pieces into the tail.
    fn merge(&mut self) {
        if self.pieces.is_empty() {
            return;
        }
        self.end_tail();
        self.tail.reserve(self.length);
        // They go as they are copied.
        while let Some(piece) = self.pieces.pop_front() {
            self.tail.extend_from_slice(&piece);
        }
    }

    /// Returns all of it in one.
    pub(super) fn join(mut self) -> Bytes {
        if self.tail.is_empty()
            && let (1, Some(only)) = (self.pieces.len(), self.pieces.front())
        {
            return only.clone();
        }
        self.merge();
        self.tail.freeze()
    }
}

/// Messages go out.
#[derive(Debug, Default)]
pub(super) struct OutgoingLink {
    /// Deliveries sent.
    pub(super) delivery_count: u32,
    /// Deliveries allowed in all.
    pub(super) limit: u32,
    /// Its transfers that wait in its session for the peer's window, or for room.
    pub(super) waiting: usize,
    /// The flow that follows the last of these. There is one at most, however often the peer asks.
    pub(super) flow_after: Option<FlowReason>,
}

impl Link {
    /// Returns how many bytes of the peer's are kept for it.
    pub(super) fn kept_bytes(&self) -> usize {
        let termini = [&self.source, &self.target].into_iter().flatten();
        self.name.len() + termini.map(Bytes::len).sum::<usize>()
    }

    /// Returns the bytes received of a partial message.
    pub(super) fn partial_bytes(&self) -> usize {
        match &self.flow {
            FlowState::Incoming(incoming) => incoming
                .partial
                .as_ref()
                .map_or(0, |partial| partial.gathered.len()),
            FlowState::Outgoing(_) => 0,
        }
    }
}

impl OutgoingLink {
    /// Takes a receiver's credit, counted from `counted` on.
    pub(super) fn grant(&mut self, counted: u32, credit: u32) {
        // A larger distance would be negative in serial-number arithmetic [2.8.10].
        self.limit = counted.wrapping_add(credit.min(serial::AHEAD_MAX));
    }

    pub(super) fn credit(&self) -> u32 {
        serial::ahead(self.delivery_count, self.limit).unwrap_or(0)
    }
}

impl IncomingLink {
    /// Returns the credit of a flow: the credit to maintain, less the unsettled deliveries.
    pub(super) fn link_credit(&self) -> u32 {
        let open = serial::ahead(self.settled, self.delivery_count);
        self.credit.saturating_sub(open.unwrap_or(0))
    }

    /// Returns how large a message of a format may be, bytes. Where several are in an envelope its
    /// sections do not count: Python leaves them out when it fills one.
    pub(super) fn size_max(&self, format: u32) -> u64 {
        let max = match self.message_size_max {
            0 => jitney_base::limits::MESSAGE_SIZE_MAX,
            max => max,
        };
        if format == 0 {
            max
        } else {
            max + limits::ENVELOPE_BYTES
        }
    }

    /// Counts a delivery that the owner is done with; returns whether a flow is due.
    pub(super) fn take_settled(&mut self) -> bool {
        self.settled = self.settled.wrapping_add(1);
        self.unreported += 1;
        self.tops_up && self.credit <= self.unreported.saturating_mul(2)
    }
}

/// The parts of an attach that the engine keeps, beside those for the owner.
pub(super) struct PeerAttach {
    pub(super) name: String,
    pub(super) handle: u32,
    pub(super) role: LinkRole,
    pub(super) source: Option<Bytes>,
    pub(super) target: Option<Bytes>,
    pub(super) snd_settle_mode: u8,
    pub(super) rcv_settle_mode: u8,
    /// The parts for the owner; source, target or properties may be malformed.
    pub(super) attach: Result<Attach, Undecodable>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_are_one_in_their_order() {
        let mut sizes = vec![
            1, 20_000, 3, 15_000, 15_000, 15_000, 15_000, 15_000, 70_000, 0, 2,
        ];
        sizes.extend([limits::PIECES_BYTES_MAX, 1, 20_000]);
        for count in 0..=sizes.len() {
            let mut gathered = Gathered::default();
            let mut expected = Vec::new();
            for (fill, size) in (0_u8..).zip(sizes.iter().take(count)) {
                gathered.append(Bytes::from(vec![fill; *size]));
                expected.resize(expected.len() + size, fill);
                assert_eq!(gathered.len(), expected.len());
            }
            assert_eq!(gathered.join(), expected);
        }
    }
}
