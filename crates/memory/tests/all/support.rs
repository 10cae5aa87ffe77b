//! What the tests share.

use std::env;

/// How many cases: few in CI, all in an acceptance run.
pub(crate) fn cases(few: u64, all: u64) -> u64 {
    if env::var("ARCHON_ACCEPT").as_deref() == Ok("full") { all } else { few }
}

/// Where random cases start.
pub(crate) fn seed() -> u64 {
    env::var("ARCHON_ACCEPT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7)
}
