//! Choices that a seed makes.

/// A stream of choices (`SplitMix64`). It is not the simulated cluster's, so that a seed keeps its
/// conversation whatever becomes of that one.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    /// Whether something happens that does so in `percent` of all cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several things.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        from.get(self.below(from.len())).expect("there is something to choose from")
    }

    /// One of several texts.
    pub(super) fn text(&mut self, from: &[&str]) -> String {
        (*self.pick(from)).to_owned()
    }

    /// One of several things with weights.
    pub(super) fn weighted<'a, T>(&mut self, from: &'a [T], weight: impl Fn(&T) -> usize) -> &'a T {
        let mut left = self.below(from.iter().map(&weight).sum());
        let found = from.iter().find(|one| {
            let one = weight(one);
            let hit = left < one;
            left = left.saturating_sub(one);
            hit
        });
        found.expect("the number is below the sum of the weights")
    }
}
