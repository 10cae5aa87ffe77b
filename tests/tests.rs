//! What Archon promises, tested across its crates. Each file is one promise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod fork;
mod hooks;
mod interruptions;
mod kill;
mod live;
mod parallel;
mod replay;
mod scenarios;
mod steering;
mod wire;
