//! Chance that depends on a seed and on what it is asked for, never on the order of asking.

use std::time::Duration;

/// A source of chance for one component.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The chance of `component` under a seed.
    pub(crate) fn new(seed: u64, component: &str) -> Self {
        Self(mix(seed ^ sum(&[component])))
    }

    /// `delay`, made longer by up to so many percent; always the same for the same names.
    pub(crate) fn vary(self, delay: Duration, percent: u32, names: &[&str]) -> Duration {
        let part = mix(self.0 ^ sum(names)) % 1000;
        let extra = delay.as_nanos() * u128::from(percent) * u128::from(part) / 100_000;
        delay + u64::try_from(extra).map_or(Duration::ZERO, Duration::from_nanos)
    }
}

/// FNV-1a, 64 bits, of the names and their ends.
fn sum(names: &[&str]) -> u64 {
    names
        .iter()
        .flat_map(|name| name.bytes().chain(std::iter::once(0)))
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// The finaliser of splitmix64: spreads every bit over all others.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
