//! Histograms of durations, with buckets that are the same for all: they can be added.

use crate::time::Millis;

/// The upper bounds of the buckets, in microseconds. One more bucket has what is longer.
pub const BOUNDS_MICROS: [u64; 20] = [
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    60_000_000,
    600_000_000,
    3_600_000_000,
    86_400_000_000,
];

/// How many durations were of which length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: [u64; BOUNDS_MICROS.len() + 1],
    sum_micros: u64,
}

impl Histogram {
    /// Counts a duration, in microseconds.
    pub fn record(&mut self, micros: u64) {
        let at = BOUNDS_MICROS.partition_point(|&bound| bound < micros);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum_micros = self.sum_micros.saturating_add(micros);
    }

    /// Counts a duration of the core, which has milliseconds; one that a clock that was set made negative is 0.
    pub fn record_millis(&mut self, duration: Millis) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or_default();
        self.record(millis.saturating_mul(1_000));
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum_micros = self.sum_micros.saturating_add(other.sum_micros);
    }

    /// Returns the number of durations in each bucket, not in those below; the last has those beyond all bounds.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations, in microseconds.
    #[must_use]
    pub fn sum_micros(&self) -> u64 {
        self.sum_micros
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let mut histogram = Histogram::default();
        for micros in [0, 100, 101, 1_000, 86_400_000_001] {
            histogram.record(micros);
        }
        histogram.record_millis(Millis::from_millis(1));
        histogram.record_millis(Millis::from_millis(-5));
        let filled: Vec<(usize, u64)> = histogram.counts().iter().copied().enumerate().collect();
        let filled: Vec<(usize, u64)> = filled.into_iter().filter(|(_, n)| 0 < *n).collect();
        assert_eq!(filled, [(0, 3), (1, 1), (3, 2), (20, 1)]);
        assert_eq!(histogram.count(), 7);
        assert_eq!(histogram.sum_micros(), 86_400_002_202);
    }

    #[test]
    fn two_are_added() {
        let (mut one, mut two) = (Histogram::default(), Histogram::default());
        one.record(50);
        two.record(70);
        two.record(5_000_000);
        one.add(&two);
        assert_eq!((one.count(), one.sum_micros()), (3, 5_000_120));
        assert_eq!(one.counts().first(), Some(&2));
    }

    #[test]
    fn bounds_ascend() {
        assert!(BOUNDS_MICROS.is_sorted_by(|a, b| a < b));
    }
}
