//! What archon-agents-types promises: the shape of everything that is written as JSON, the folds over the
//! log, the tables behind the states, and the defaults of the traits.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod agent_events;
mod bus;
mod conversation;
mod cycles;
mod errors;
mod golden;
mod log;
mod memory;
mod metrics;
mod models;
mod planning;
mod properties;
mod rounds;
mod samples;
#[cfg(feature = "schema")]
mod schema;
mod sessions;
mod states;
mod support;
mod tools;
