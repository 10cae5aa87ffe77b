//! What Archon promises, tested across its crates. Each file is one promise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod failures;
mod fork;
mod hooks;
mod kill;
mod live;
mod replay;
mod scenarios;
mod steering;
mod storage_failures;
mod wire;
