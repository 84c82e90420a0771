//! The durability of groups of records, and the replies that wait for it.

use std::collections::VecDeque;

use super::ReceivedMessage;
use crate::limits;
use jitney_base::ids::RequestId;
use jitney_base::time::{ClockStep, Millis, Timestamp};
use jitney_gateway::QueuedReply;
use jitney_gateway::messages::ReceiveOutcome;
use jitney_gateway::request::Outcome;
use jitney_journal::Frame;

/// Something that leaves when the group that it rests on is durable.
#[derive(Debug)]
pub(super) enum Pending {
    /// For a connection.
    Reply(QueuedReply),
    /// For a request.
    Answer(RequestId, Outcome),
    /// For a receive without a link.
    Receive(RequestId, ReceiveOutcome),
    /// The same, with the message's bytes: the log may not have them any more.
    Received(RequestId, Box<ReceivedMessage>),
}

/// The groups of a journal, from the newest durable one on.
pub(super) struct Durability {
    /// Replies that could be sent, but for the store that cannot be reached.
    ready: Vec<Pending>,
    /// By the group that it rests on; the first list is for the group after `released`.
    pending: VecDeque<Vec<Pending>>,
    /// Empty lists, kept for their memory.
    spare: Vec<Vec<Pending>>,
    /// The newest group whose list was released.
    released: u64,
    /// The newest group that is durable, as the policy has it.
    durable: u64,
    /// The newest group that is synced.
    synced: u64,
    /// The newest group that was sealed.
    sealed: u64,
    /// Groups that are sealed and not durable: their bytes, and since when.
    in_flight: VecDeque<InFlight>,
    in_flight_bytes: usize,
    pace: Pace,
}

struct InFlight {
    group: u64,
    bytes: usize,
    since: Timestamp,
}

/// Lists that are kept for their memory.
const SPARE_MAX: usize = 4;

/// How many bytes may wait for the disk, by how long it takes: inputs wait behind them, so a slow disk
/// gets few.
struct Pace {
    bytes: usize,
    max: usize,
}

impl Pace {
    /// Takes the time from a group's end to its being durable.
    fn learn(&mut self, took: Millis) {
        if limits::SYNC_SLOW < took {
            self.bytes = (self.bytes / 2).max(limits::IN_FLIGHT_BYTES_MIN);
        } else if took < limits::SYNC_FAST {
            self.bytes = self.bytes.saturating_add(self.bytes / 8).min(self.max);
        }
    }
}

impl Durability {
    pub(super) fn new(last_group: u64, in_flight_bytes: usize) -> Self {
        Self {
            ready: Vec::new(),
            pending: VecDeque::new(),
            spare: Vec::new(),
            released: last_group,
            durable: last_group,
            synced: last_group,
            sealed: last_group,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            pace: Pace {
                bytes: in_flight_bytes,
                max: in_flight_bytes,
            },
        }
    }

    /// Returns the newest group that was sealed.
    pub(super) fn sealed(&self) -> u64 {
        self.sealed
    }

    /// Returns the newest group that is synced.
    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Returns the bytes of groups that are sealed and not durable.
    pub(super) fn in_flight_bytes(&self) -> usize {
        self.in_flight_bytes
    }

    /// Returns whether what rests on a group may leave.
    pub(super) fn is_durable(&self, group: u64) -> bool {
        group <= self.released
    }

    /// Returns whether more may be written: what is in flight is less than the disk's pace allows.
    pub(super) fn has_room(&self) -> bool {
        self.in_flight_bytes < self.pace.bytes
    }

    /// Returns whether less is in flight than ever may be.
    pub(super) fn is_below_max(&self) -> bool {
        self.in_flight_bytes < self.pace.max
    }

    /// Returns since when the oldest group is in flight.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        self.in_flight.front().map(|group| group.since)
    }

    /// Returns whether something waits for the group that is not sealed yet.
    pub(super) fn is_open_wanted(&self) -> bool {
        let open = usize::try_from(self.sealed - self.released).expect("groups in flight are few");
        self.pending.get(open).is_some_and(|list| !list.is_empty())
    }

    /// Keeps something until a group is durable.
    pub(super) fn defer(&mut self, group: u64, pending: Pending) {
        let Some(ahead) = group.checked_sub(self.released + 1) else {
            return self.ready.push(pending);
        };
        let ahead = usize::try_from(ahead).expect("groups in flight are few");
        if self.pending.len() <= ahead {
            let spare = &mut self.spare;
            self.pending
                .resize_with(ahead + 1, || spare.pop().unwrap_or_default());
        }
        if let Some(waiting) = self.pending.get_mut(ahead) {
            waiting.push(pending);
        }
    }

    /// Counts a group that is handed to the journal's store.
    pub(super) fn seal(&mut self, now: Timestamp, frame: &Frame) {
        self.sealed += 1;
        debug_assert_eq!(frame.number, self.sealed, "groups are counted alike");
        let bytes = frame.bytes.len();
        self.in_flight_bytes += bytes;
        self.in_flight.push_back(InFlight {
            group: self.sealed,
            bytes,
            since: now,
        });
    }

    /// Learns how far the store is.
    pub(super) fn learn(&mut self, now: Timestamp, durable: u64, synced: u64) {
        debug_assert!(durable <= self.sealed, "group {durable} was never sealed");
        self.durable = self.durable.max(durable);
        self.synced = self.synced.max(synced);
        let mut took = None;
        while let Some(oldest) = self.in_flight.front() {
            if self.durable < oldest.group {
                break;
            }
            took = Some(now.since(oldest.since));
            self.in_flight_bytes -= oldest.bytes;
            self.in_flight.pop_front();
        }
        if let Some(took) = took {
            self.pace.learn(took);
        }
    }

    /// Takes out what waited for the next group that is durable. [`Durability::put_back`] takes the
    /// empty list.
    pub(super) fn take_group(&mut self) -> Option<Vec<Pending>> {
        if !self.ready.is_empty() {
            return Some(std::mem::take(&mut self.ready));
        }
        if self.durable <= self.released {
            return None;
        }
        self.released += 1;
        Some(self.pending.pop_front().unwrap_or_default())
    }

    /// Keeps an empty list for its memory.
    pub(super) fn put_back(&mut self, list: Vec<Pending>) {
        if 0 < list.capacity() && self.spare.len() < SPARE_MAX {
            self.spare.push(list);
        }
    }

    /// Returns the replies that wait, in their order.
    pub(super) fn replies(&self) -> impl Iterator<Item = &QueuedReply> {
        self.ready
            .iter()
            .chain(self.pending.iter().flatten())
            .filter_map(|pending| match pending {
                Pending::Reply(routed) => Some(routed),
                Pending::Answer(..) | Pending::Receive(..) | Pending::Received(..) => None,
            })
    }

    /// Returns whether an answer to a request waits.
    pub(super) fn has_answers(&self) -> bool {
        let mut waiting = self.ready.iter().chain(self.pending.iter().flatten());
        waiting.any(|pending| match pending {
            Pending::Answer(..) | Pending::Receive(..) | Pending::Received(..) => true,
            Pending::Reply(_) => false,
        })
    }

    /// Drops everything that waits; returns the requests among it.
    pub(super) fn clear(&mut self) -> Vec<RequestId> {
        self.in_flight.clear();
        self.in_flight_bytes = 0;
        let waiting = self.ready.drain(..).chain(self.pending.drain(..).flatten());
        let requests = waiting.filter_map(|pending| match pending {
            Pending::Reply(_) => None,
            Pending::Answer(request, _)
            | Pending::Receive(request, _)
            | Pending::Received(request, _) => Some(request),
        });
        requests.collect()
    }

    /// The clock was set: groups are in flight for as long as before.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        for group in &mut self.in_flight {
            group.since = group.since.moved(step);
        }
    }
}

impl std::fmt::Debug for Durability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Durability")
            .field("durable", &self.durable)
            .field("synced", &self.synced)
            .field("sealed", &self.sealed)
            .field("in_flight_bytes", &self.in_flight_bytes)
            .finish_non_exhaustive()
    }
}
