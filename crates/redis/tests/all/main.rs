//! What the bus and the pool's index promise over a Redis. Each test starts a server of its own; where there is none, it
//! says so and does nothing, unless `ARCHON_REQUIRE_REDIS` is set.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "figures, and what is skipped, are said aloud")]

mod bus;
mod kills;
mod pool;
mod server;
