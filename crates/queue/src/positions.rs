//! Places in the log: ranges of positions.

use std::ops::Range;

/// Ranges of positions, ascending, none of which touches another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Positions {
    ranges: Vec<Range<u64>>,
}

impl Positions {
    /// Returns whether a position is in one of them.
    #[must_use]
    pub fn contains(&self, position: u64) -> bool {
        let behind = self.ranges.partition_point(|range| range.end <= position);
        let range = self.ranges.get(behind);
        range.is_some_and(|range| range.start <= position)
    }

    /// Returns whether some of them lie between two positions, both of which count.
    #[must_use]
    pub fn meet(&self, first: u64, last: u64) -> bool {
        let behind = self.ranges.partition_point(|range| range.end <= first);
        let range = self.ranges.get(behind);
        range.is_some_and(|range| range.start <= last)
    }
}

impl FromIterator<Range<u64>> for Positions {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().collect();
        sorted.sort_by_key(|range| range.start);
        let mut ranges: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match ranges.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => ranges.push(range),
            }
        }
        Self { ranges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_what_lies_in_one_of_them() {
        let positions: Positions = [20..30, 0..5, 30..31, 3..8].into_iter().collect();
        assert_eq!(positions.ranges, [0..8, 20..31]);
        for position in 0..40 {
            let expected = position < 8 || (20..31).contains(&position);
            assert_eq!(positions.contains(position), expected, "{position}");
            for last in position..40 {
                let meets = (position..=last).any(|position| positions.contains(position));
                assert_eq!(
                    positions.meet(position, last),
                    meets,
                    "{position} to {last}"
                );
            }
        }
        assert!(!Positions::default().contains(0));
    }
}
