//! Choices that a seed makes.

use simcluster::random::Random;

/// A stream of choices.
#[derive(Debug)]
pub(super) struct Dice(Random);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Random::stream(seed, "conversations"))
    }

    /// A number below `end`; 0 if there is none.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.0.next_u64() % end).unwrap_or_default()
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
