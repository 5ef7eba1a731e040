//! Seeded random numbers: one seed gives one run.

/// A stream of random numbers (`SplitMix64`: small, fast, and good enough for names and delays).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of a component: equal seeds and names give equal numbers, and components do not
    /// disturb each other.
    #[must_use]
    pub fn stream(seed: u64, name: &str) -> Self {
        // FNV-1a spreads the name over the state.
        let state = name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(state)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A UUID of version 4.
    pub fn uuid(&mut self) -> String {
        let high = self.next_u64();
        let low = self.next_u64();
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff,
        )
    }

    /// Five characters as the server appends them to `generateName` (no vowels, no look-alikes).
    pub fn name_suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .map(|_| {
                let length = u64::try_from(ALPHABET.len()).unwrap_or(1);
                let index = usize::try_from(self.next_u64() % length).unwrap_or_default();
                char::from(ALPHABET.get(index).copied().unwrap_or(b'x'))
            })
            .collect()
    }
}
