//! Tests of the order of memories, and of the times in questions.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod rank;
mod times;
