//! Promises of archon-views: folds over the log, the shape of their JSON, and the tables behind the states.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod agent_events;
mod audit;
mod cycles;
mod errors;
mod explanations;
mod graphs;
mod metrics;
mod performance;
mod rounds;
#[allow(dead_code, reason = "the tests of archon-agents-types use the rest")]
#[path = "../../../types/tests/types/samples.rs"]
mod samples;
mod sessions;
mod source_logs;
mod states;
#[allow(dead_code, reason = "the tests of archon-agents-types use the rest")]
#[path = "../../../types/tests/types/support.rs"]
mod support;
mod text_sources;
mod timelines;
