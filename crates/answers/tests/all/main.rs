//! Answers with tokens, over a service that remembers them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod links;
#[cfg(feature = "mail")]
mod mail;
#[cfg(feature = "page")]
mod page;
mod world;
