//! Random numbers of our own, so that a seed means the same after a dependency was upgraded.

/// A stream of random numbers: `SplitMix64`. Each part of the simulation has its own, so that a
/// change to one does not change what the others do.
#[derive(Debug, Clone)]
pub(super) struct Stream(u64);

impl Stream {
    pub(super) fn new(seed: u64, salt: &str) -> Self {
        let mut stream = Self(seed);
        for byte in salt.bytes() {
            stream.0 = stream.next().wrapping_add(u64::from(byte));
        }
        stream
    }

    /// Returns a stream of its own.
    pub(super) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Returns a number in a range, both ends included.
    pub(super) fn within(&mut self, low: i64, high: i64) -> i64 {
        let span = high.abs_diff(low) + 1;
        low.saturating_add_unsigned(self.below(span))
    }

    /// Returns whether something that happens so often in a hundred times happens.
    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        let length = u64::try_from(length).expect("fits");
        usize::try_from(self.below(length)).expect("it was one")
    }

    /// Returns one of some things.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() {
            None
        } else {
            from.get(self.index(from.len()))
        }
    }

    /// Returns the place of a weight, the more often the heavier it is.
    pub(super) fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (at, &weight) in weights.iter().enumerate() {
            if left < weight {
                return at;
            }
            left -= weight;
        }
        0
    }
}
