//! Repeatable pseudo-random numbers for tests, and the number of random cases that a test runs.

/// A random number generator that gives the same numbers for the same seed (SplitMix64,
/// <https://prng.di.unimi.it/splitmix64.c>).
#[derive(Clone, Debug)]
pub struct Chance(pub u64);

impl Chance {
    /// Returns the next number; each of its 64 bits is random.
    #[allow(clippy::should_implement_trait)] // There is always a next one.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// Returns `true` with a probability of `percent` in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Returns the number of cases to run: `sample`, or `all` with `ARCHON_ACCEPT=full`.
pub fn cases(sample: u64, all: u64) -> u64 {
    if std::env::var("ARCHON_ACCEPT").is_ok_and(|v| v == "full") { all } else { sample }
}

/// Returns true if a test may be skipped because a program that it needs is missing. Returns false in CI (`CI=true`)
/// and with `ARCHON_ACCEPT=full`.
pub fn may_skip() -> bool {
    let is = |name, value| std::env::var(name).is_ok_and(|v| v == value);
    !is("CI", "true") && !is("ARCHON_ACCEPT", "full")
}

/// Returns the first seed of random tests: `ARCHON_ACCEPT_SEED`, or 0.
pub fn first_seed() -> u64 {
    std::env::var("ARCHON_ACCEPT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}
