//! Chance that a test can repeat, and how much of it there is.

/// Chance that is the same every time (SplitMix64, <https://prng.di.unimi.it/splitmix64.c>).
#[derive(Clone, Debug)]
pub struct Chance(pub u64);

impl Chance {
    /// The next number, of all that there are.
    #[allow(clippy::should_implement_trait)] // There is always a next one.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 where there is none.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// True in so many cases of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How many of `all` cases are looked at: a sample, or all of them with `ARCHON_ACCEPT=full`.
pub fn cases(sample: u64, all: u64) -> u64 {
    if std::env::var("ARCHON_ACCEPT").is_ok_and(|v| v == "full") { all } else { sample }
}

/// Whether a test whose result needs a program that is missing may say so and end: not in CI (`CI=true`), and not where
/// all cases are wanted.
pub fn may_skip() -> bool {
    let is = |name, value| std::env::var(name).is_ok_and(|v| v == value);
    !is("CI", "true") && !is("ARCHON_ACCEPT", "full")
}

/// Where chance begins: `ARCHON_ACCEPT_SEED`, or 0.
pub fn first_seed() -> u64 {
    std::env::var("ARCHON_ACCEPT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}
