//! What is alive in each segment, and so which can go and which are worth compacting.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::SegmentId;
use super::layout::Position;
use crate::entity::BodyRef;

/// The segments of the log and what lives in them.
#[derive(Debug, Default)]
pub(super) struct Usage {
    segments: BTreeMap<SegmentId, Segment>,
    /// Those in which nothing is alive, the one that is being written among them.
    empty: BTreeSet<SegmentId>,
    length: u64,
    alive: u64,
    alive_count: u64,
    /// A live body that lies in no segment, or not within its segment.
    lost: Option<BodyRef>,
    /// Bytes appended and released when a candidate was last looked for.
    looked_at: u64,
    turnover: u64,
}

#[derive(Debug, Default)]
struct Segment {
    length: u64,
    alive: u64,
    alive_count: u64,
    /// The newest frame with a record that ended a body here.
    released_in: u64,
    /// Not to be compacted again before the log has turned over this much.
    compact_after: u64,
}

impl Usage {
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
            self.lost.get_or_insert(body);
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

    /// Takes out the segments before this one that hold nothing alive, now nor in what is durable.
    pub(super) fn take_removable(&mut self, before: SegmentId, durable: u64) -> Vec<SegmentId> {
        let segments = &self.segments;
        let dead = self.empty.range(..before).copied().filter(|id| {
            segments
                .get(id)
                .is_some_and(|segment| segment.released_in <= durable)
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

    /// Returns the positions of the segment before this one with the least alive, when more than a
    /// fifth of the log, and a quarter of that segment, is dead.
    ///
    /// Survivors gather: a segment full of them is not chosen again, one that messages passed
    /// through is. So one log does for both, and little is written twice (`docs/log-format.md`).
    pub(super) fn compaction_candidate(
        &mut self,
        before: SegmentId,
        segment_bytes: u64,
    ) -> Option<Range<u64>> {
        if self.turnover < self.looked_at + segment_bytes / 16 {
            return None;
        }
        self.looked_at = self.turnover;
        // Four segments are in use however little is alive.
        if self.length <= self.alive + self.alive / 4 + 4 * segment_bytes {
            return None;
        }
        let turnover = self.turnover;
        let worth = |segment: &Segment| {
            0 < segment.alive_count
                && 4 * segment.alive < 3 * segment.length
                && segment.compact_after <= turnover
        };
        let (&id, segment) = self
            .segments
            .range_mut(..before)
            .filter(|(_, segment)| worth(segment))
            .min_by_key(|(_, segment)| segment.alive)?;
        // What is left of it after one attempt is being read, or changes hands: not at once again.
        segment.compact_after = turnover + segment_bytes;
        let next = SegmentId(id.0 + 1);
        Some(
            Position {
                segment: id,
                offset: 0,
            }
            .to_u64()..Position {
                segment: next,
                offset: 0,
            }
            .to_u64(),
        )
    }

    pub(super) fn alive_count(&self) -> u64 {
        self.alive_count
    }

    /// Returns whether a newer checkpoint would let segments go.
    pub(super) fn has_empty_from(&self, checkpoint: SegmentId, current: SegmentId) -> bool {
        checkpoint < current && self.empty.range(checkpoint..current).next().is_some()
    }

    /// Returns a live body that is not there.
    pub(super) fn lost(&self) -> Option<BodyRef> {
        self.lost
    }
}

/// Returns what a body takes in the log when it was appended anew: with less than that, segments
/// full of small bodies would look half dead, and be compacted for ever.
fn taken(body: BodyRef) -> u64 {
    u64::from(body.length) + RELOCATED_RECORD_BYTES
}

/// What a relocation takes besides the body, at least nearly: kind, entity, number, length, sum.
const RELOCATED_RECORD_BYTES: u64 = 16;
