//! Programs in both languages: their results, their limits and their ends.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod arithmetic;
mod bounds;
mod ends;
mod fixture;
mod functions;
mod values;
