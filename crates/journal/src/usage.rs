//! Live bytes in each segment: which segments can be removed, and which are worth compacting.

use std::collections::{BTreeMap, BTreeSet};

use super::SegmentId;
use super::layout::Position;
use jitney_base::ids::BodyRef;
use jitney_queue::Positions;

/// The segments of the log and their live bytes.
#[derive(Debug, Default)]
pub(super) struct Usage {
    segments: BTreeMap<SegmentId, SegmentUsage>,
    /// Those in which nothing is alive, the one that is being written among them.
    empty: BTreeSet<SegmentId>,
    length: u64,
    alive: u64,
    alive_count: u64,
    /// Where the first live body begins that lies in no segment, or not within its segment; by
    /// segment.
    lost: BTreeMap<SegmentId, u64>,
    /// Bytes appended and released when a candidate was last looked for.
    looked_at: u64,
    turnover: u64,
}

/// The segments of a log, and what lies in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogStatistics {
    /// Segments with frames.
    pub segments: usize,
    /// Bytes of all frames.
    pub bytes: u64,
    /// Bytes of messages that are still there.
    pub live_bytes: u64,
    /// Bodies of messages that are still there; several messages may share one.
    pub live_messages: u64,
}

#[derive(Debug, Default)]
struct SegmentUsage {
    length: u64,
    alive: u64,
    alive_count: u64,
    /// The newest frame with a record that ended a body here.
    released_in: u64,
    /// Not to be compacted again before the log has turned over this much.
    compact_after: u64,
    /// Bodies here that are to be read, dead or alive.
    pins: u64,
}

impl Usage {
    /// Returns what segments there are and what lies in them.
    pub(super) fn statistics(&self) -> LogStatistics {
        LogStatistics {
            segments: self.segments.len(),
            bytes: self.length,
            live_bytes: self.alive,
            live_messages: self.alive_count,
        }
    }

    /// Takes in a segment, or more of one that is there.
    pub(super) fn grow(&mut self, segment: SegmentId, length: u64) {
        let found = self.segments.entry(segment).or_default();
        if found.alive_count == 0 {
            self.empty.insert(segment);
        }
        let more = length.saturating_sub(found.length);
        found.length += more;
        self.length += more;
        self.turnover += more;
    }

    /// Counts a body that recovery found: it must lie within its segment.
    pub(super) fn recover(&mut self, body: BodyRef) {
        let Position { segment, offset } = Position::of(body);
        let end = offset.saturating_add(u64::from(body.length));
        let length = self.segments.get(&segment).map_or(0, |found| found.length);
        if length < end {
            let first = self.lost.entry(segment).or_insert(offset);
            *first = (*first).min(offset);
        }
        self.retain(body);
    }

    /// Counts a body in.
    pub(super) fn retain(&mut self, body: BodyRef) {
        let id = Position::of(body).segment;
        let Some(segment) = self.segments.get_mut(&id) else {
            return;
        };
        if segment.alive_count == 0 {
            self.empty.remove(&id);
        }
        segment.alive_count += 1;
        segment.alive += taken(body);
        self.alive_count += 1;
        self.alive += taken(body);
    }

    /// Counts a body out; the record that ended it is in this frame.
    pub(super) fn release(&mut self, body: BodyRef, frame: u64) {
        let id = Position::of(body).segment;
        let Some(segment) = self.segments.get_mut(&id) else {
            return;
        };
        debug_assert!(0 < segment.alive_count, "{body:?} was released twice");
        let bytes = taken(body);
        segment.alive_count = segment.alive_count.saturating_sub(1);
        segment.alive = segment.alive.saturating_sub(bytes);
        segment.released_in = segment.released_in.max(frame);
        self.alive_count = self.alive_count.saturating_sub(1);
        self.alive = self.alive.saturating_sub(bytes);
        self.turnover += bytes;
        if segment.alive_count == 0 {
            self.empty.insert(id);
        }
    }

    /// Keeps a body's segment until it was read, though nothing may be alive there by then.
    pub(super) fn pin(&mut self, body: BodyRef) {
        if let Some(segment) = self.segments.get_mut(&Position::of(body).segment) {
            segment.pins += 1;
        }
    }

    /// Takes back a [`Usage::pin`].
    pub(super) fn unpin(&mut self, body: BodyRef) {
        if let Some(segment) = self.segments.get_mut(&Position::of(body).segment) {
            debug_assert!(0 < segment.pins, "{body:?} was never to be read");
            segment.pins = segment.pins.saturating_sub(1);
        }
    }

    /// Returns the segments before this one without live bytes, now and in the durable state, and
    /// without pending reads.
    pub(super) fn take_removable(&mut self, before: SegmentId, durable: u64) -> Vec<SegmentId> {
        let segments = &self.segments;
        let dead = self.empty.range(..before).copied().filter(|id| {
            segments
                .get(id)
                .is_some_and(|segment| segment.pins == 0 && segment.released_in <= durable)
        });
        let removable: Vec<SegmentId> = dead.collect();
        for id in &removable {
            self.empty.remove(id);
            if let Some(segment) = self.segments.remove(id) {
                self.length -= segment.length;
            }
        }
        removable
    }

    /// Returns the positions of segments before this one that are worth compacting, those with the
    /// fewest live bytes first. Segments with next to no live bytes cost next to nothing; others
    /// are compacted when more than a fifth of the log, and a quarter of themselves, is dead.
    ///
    /// Several are compacted together, because a compaction scans all messages. Survivors gather: a
    /// segment full of them is not chosen again, one that messages passed through is. So one log
    /// serves both, and little is written twice (`docs/log-format.md`).
    pub(super) fn compaction_candidates(
        &mut self,
        before: SegmentId,
        segment_bytes: u64,
    ) -> Option<Positions> {
        if self.turnover < self.looked_at + segment_bytes / 16 {
            return None;
        }
        self.looked_at = self.turnover;
        // Four segments are in use however little is alive.
        let is_much_dead = self.alive + self.alive / 4 + 4 * segment_bytes < self.length;
        let turnover = self.turnover;
        let worth = |segment: &SegmentUsage| {
            let is_nearly_dead = 8 * segment.alive < segment.length;
            let is_partly_dead = 4 * segment.alive < 3 * segment.length;
            0 < segment.alive_count
                && segment.compact_after <= turnover
                && (is_nearly_dead || is_much_dead && is_partly_dead)
        };
        let mut candidates: Vec<(SegmentId, &mut SegmentUsage)> = self
            .segments
            .range_mut(..before)
            .filter(|(_, segment)| worth(segment))
            .map(|(&id, segment)| (id, segment))
            .collect();
        candidates.sort_by_key(|(_, segment)| segment.alive);
        // Survivors take new space first, so a compaction is bounded.
        let (mut survives, mut dead) = (0, 0);
        let enough = candidates.iter().position(|(_, segment)| {
            survives += segment.alive;
            segment_bytes / 4 < survives
        });
        candidates.truncate(enough.map_or(candidates.len(), |enough| enough.max(1)));
        for (_, segment) in &candidates {
            dead += segment.length.saturating_sub(segment.alive);
        }
        if dead == 0 || !is_much_dead && dead < 2 * segment_bytes {
            return None;
        }
        let positions = candidates.into_iter().map(|(id, segment)| {
            // Bodies that are left after one attempt are being read, or are moving between
            // entities: try again later.
            segment.compact_after = turnover + segment_bytes;
            let begin = |id| Position::begin(id).to_u64();
            begin(id)..begin(SegmentId(id.0 + 1))
        });
        Some(positions.collect())
    }

    pub(super) fn alive_count(&self) -> u64 {
        self.alive_count
    }

    /// Returns whether a newer checkpoint would let segments go.
    pub(super) fn has_empty_from(&self, checkpoint: SegmentId, current: SegmentId) -> bool {
        checkpoint < current && self.empty.range(checkpoint..current).next().is_some()
    }

    /// Returns where live bodies should be and are not: the rest of their segments.
    pub(super) fn lost(&self) -> impl Iterator<Item = Position> {
        let lost = self.lost.iter();
        lost.map(|(&segment, &offset)| Position { segment, offset })
    }
}

/// Returns the bytes of a body in the log after a relocation: without the overhead, segments full
/// of small bodies would count as half dead, and be compacted again and again.
fn taken(body: BodyRef) -> u64 {
    u64::from(body.length) + RELOCATED_RECORD_BYTES
}

/// The bytes of a relocation besides the body, about: kind, entity, number, length, sum.
const RELOCATED_RECORD_BYTES: u64 = 16;
