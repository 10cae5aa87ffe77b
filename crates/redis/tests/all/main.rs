//! What the bus and the pool's index promise over a Redis. Each test starts a server of its own; where there is none, it
//! is ignored, unless `ARCHON_REQUIRE_REDIS` is set.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]
#![allow(clippy::print_stdout, reason = "figures are said aloud")]

use std::{env, process::ExitCode};

mod bus;
mod kills;
mod pool;
mod server;

fn main() -> ExitCode {
    if let Ok(url) = env::var(kills::WORKER) {
        kills::worker(&url);
        return ExitCode::SUCCESS;
    }
    archon_testkit::run_trials(&[bus::TRIALS, kills::TRIALS, pool::TRIALS])
}
