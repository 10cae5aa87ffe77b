//! Programs in both languages: what they come to, what they cannot do, and what ends them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod arithmetic;
mod bounds;
mod ends;
mod fixture;
mod functions;
mod values;
