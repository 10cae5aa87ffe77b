//! Tests of waiting agents: as tools, in their pool, and behind an assistant.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod agents;
mod assistant;
mod mini_loop;
mod office;
mod pool;
