//! The sequence numbers of one queue, and the ordinals that represent them.
//!
//! An ordinal is a partition (4 bits), how often the partition's numbers have rolled over (12 bits)
//! and a number in it (48 bits): so the ordinals of one partition only grow. A sequence number is
//! the partition (16 bits) and the number (48 bits).

use super::SequenceNumber;
use crate::limits;

/// The next ordinal of each partition.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    next: Vec<u64>,
    /// The partition of the next message that goes to any.
    turn: u64,
}

/// A number in its partition: the low 48 bits.
const MASK: u64 = (1 << 48) - 1;
/// One round of numbers. The first ordinals are in round 1, so that a number above the newest can
/// be assigned to the round before the roll-over.
const ROUND: u64 = 1 << 48;
const PARTITION_SHIFT: u32 = 60;

impl Numbers {
    pub(super) fn new(first: SequenceNumber, partitions: usize) -> Self {
        let next = (0_u64..).take(partitions);
        let next = next.map(|partition| partition << PARTITION_SHIFT | ROUND | (first.0 & MASK));
        Self {
            next: next.collect(),
            turn: 0,
        }
    }

    /// Takes the next ordinal: of the partition that `hash` decides, or of any.
    pub(super) fn take(&mut self, hash: Option<u64>) -> u64 {
        let count = u64::try_from(self.next.len()).expect("a few");
        let partition = hash.unwrap_or_else(|| {
            self.turn = self.turn.wrapping_add(1);
            self.turn
        });
        self.take_in(usize::try_from(partition % count).expect("less than the partitions"))
    }

    /// Takes the next ordinal of the partition of another one.
    pub(super) fn take_beside(&mut self, ordinal: u64) -> u64 {
        self.take_in(partition(ordinal))
    }

    /// Returns the next ordinal of a partition.
    pub(super) fn peek(&self, partition: usize) -> u64 {
        self.next.get(partition).copied().unwrap_or(u64::MAX)
    }

    /// Returns the next ordinals of all partitions.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.next.iter().copied()
    }

    /// Returns the ordinal of a number: at or below the newest it is of this round of numbers,
    /// above it of the round before the roll-over. For a partition that does not exist, returns one
    /// that no message has.
    pub(super) fn ordinal(&self, number: SequenceNumber) -> u64 {
        let low = number.0 & MASK;
        let partition = usize::try_from(number.0 >> 48).unwrap_or(usize::MAX);
        let Some(&next) = self.next.get(partition) else {
            return u64::MAX;
        };
        let round = next & !MASK;
        if low <= (next & MASK) {
            round | low
        } else {
            (round - ROUND) | low
        }
    }

    /// Returns whether a number is above the newest of its partition, and none of its partition has
    /// been before the roll-over.
    pub(super) fn is_ahead(&self, number: SequenceNumber) -> bool {
        let partition = usize::try_from(number.0 >> 48).unwrap_or(usize::MAX);
        let next = self.next.get(partition);
        next.is_none_or(|&next| (next & MASK) < (number.0 & MASK))
    }

    /// Returns whether a number of this round has been given.
    pub(super) fn is_given(&self, number: SequenceNumber) -> bool {
        let partition = usize::try_from(number.0 >> 48).unwrap_or(usize::MAX);
        let next = self.next.get(partition);
        next.is_some_and(|&next| number.0 & MASK < next & MASK)
    }

    /// Finds the ordinal of a number that another queue gave, by the shorter distance: a dead
    /// letter keeps its number, and the roll-over may lie between the two queues.
    pub(super) fn place(&mut self, number: SequenceNumber) -> u64 {
        let partition = usize::try_from(number.0 >> 48).unwrap_or(usize::MAX);
        let Some(next) = self.next.get_mut(partition) else {
            return self.take_in(0);
        };
        let ahead = number.0.wrapping_sub(*next) & MASK;
        if ahead <= MASK / 2 {
            let ordinal = *next + ahead;
            *next = ordinal + 1;
            ordinal
        } else {
            *next + ahead - ROUND
        }
    }

    /// Takes a number as the next of its partition, if it is.
    pub(super) fn expect(&mut self, found: SequenceNumber) -> Result<u64, SequenceNumber> {
        let partition = usize::try_from(found.0 >> 48).unwrap_or(usize::MAX);
        match self.next.get(partition) {
            Some(&next) if number(next) == found => Ok(self.take_in(partition)),
            Some(&next) => Err(number(next)),
            None => Err(SequenceNumber(0)),
        }
    }

    /// Goes on, from where its partition is, to a number in it.
    pub(super) fn restore(&mut self, next: SequenceNumber) {
        let partition = usize::try_from(next.0 >> 48).unwrap_or(usize::MAX);
        if let Some(slot) = self.next.get_mut(partition) {
            *slot += next.0.wrapping_sub(*slot) & MASK;
        }
    }

    /// Leaves out so many numbers of each partition.
    pub(super) fn skip(&mut self, count: u64) {
        for next in &mut self.next {
            // Into another round, if need be, as when they are given one by one.
            *next += count & MASK;
        }
    }

    fn take_in(&mut self, partition: usize) -> u64 {
        let Some(next) = self.next.get_mut(partition) else {
            return u64::MAX;
        };
        let ordinal = *next;
        // The low 48 bits roll over to zero, and the carry begins another round.
        *next += 1;
        ordinal
    }
}

/// Returns the sequence number that an ordinal shows outside.
pub(super) const fn number(ordinal: u64) -> SequenceNumber {
    SequenceNumber((ordinal >> PARTITION_SHIFT) << 48 | (ordinal & MASK))
}

/// Returns the lowest ordinal of an ordinal's round.
pub(super) const fn round_of(ordinal: u64) -> u64 {
    ordinal & !MASK
}

/// Returns the partition that a hash decides, in a partitioned queue.
pub(super) fn decided(hash: u64) -> usize {
    let count = u64::try_from(limits::PARTITIONS).expect("a few");
    usize::try_from(hash % count).expect("less than the partitions")
}

/// Returns an ordinal's partition.
pub(super) fn partition(ordinal: u64) -> usize {
    usize::try_from(ordinal >> PARTITION_SHIFT).expect("four bits fit")
}

/// Returns the lowest ordinal that a partition can have.
pub(super) fn first_of(partition: usize) -> u64 {
    match u64::try_from(partition) {
        Ok(partition) if partition < 16 => partition << PARTITION_SHIFT,
        _ => u64::MAX,
    }
}
