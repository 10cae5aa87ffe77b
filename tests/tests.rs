//! What Archon promises, tested across its crates. Each folder is one subject, each file one promise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod agent;
mod approvals;
mod crash;
mod limits;
mod memory;
mod scenarios;
mod service;
mod sessions;
mod shared;
mod tools;
