//! Promises of archon-agents-types: the shape of everything that is written as JSON, the tables behind the
//! states, and the defaults of the traits.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod bus;
mod conversation;
mod golden;
mod log;
mod memory;
mod models;
mod planning;
mod properties;
mod samples;
#[cfg(feature = "schema")]
mod schema;
mod states;
mod support;
mod tools;
