//! Test doubles and checks that tests share, so that no test waits for real time, draws a random id or
//! reaches a network.
//!
//! Use this crate in the tests of your own agents, tools and stores, as a development dependency only.
//!
//! | item | stands in for |
//! |---|---|
//! | [`VirtualClock`] | time, which changes only when a test advances it |
//! | [`RealClock`] | nothing: real time for tests of processes, which can skip ahead |
//! | [`SeededIds`] | identity: the same ids in every run of a test |
//! | [`Chance`], [`cases`] | randomness: numbers that repeat, and the number of cases to run |
//! | [`MortalJournal`] | a journal whose process dies at a chosen append |
//! | [`RecordingSink`] | a watcher of runs |
//! | [`InboxJournal`] | a journal with an inbox |
//! | [`RecordingBus`] | a bus whose messages a test reads |
//! | [`RecordingQuestions`], [`RecordingChannel`] | a service with questions to people, and a way to them |
//! | [`FnAgent`], [`answer`] | an agent, as one closure |
//! | [`drive`], [`poll_until_idle`] | a runtime: one future, whose waits take no time |
//! | [`Ended`] | nothing: the outcome of a run, failed or not |
//! | [`FnProvider`] | a model, as one closure |
//! | [`LateTools`] | the tools of a server that is still starting |
//! | [`instructions`] | a stopwatch: the cost of a command, counted in instructions by valgrind |
//! | [`McpScript`] | an MCP server: a shell script that answers as a test wants |
//! | [`MockServer`] | a service: a real HTTP/1.1 server on this machine that replays a script |
//! | [`check_memory_store`], [`foreign_memories`] | nothing: checks of the contract of every memory store |
//! | `run_trials`, with the feature `trials` | the harness: tests that need a server are ignored where there is none |
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use archon_testkit::{SeededIds, VirtualClock};
//! use archon_types::{Clock, Ids};
//!
//! let clock = VirtualClock::new();
//! let before = clock.now();
//! clock.advance(Duration::from_secs(60));
//! assert_eq!(clock.now().since(before), Duration::from_secs(60));
//!
//! assert_eq!(SeededIds::new(7).fresh("run"), "run_00070001");
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod chance;
mod clock;
mod ended;
mod fn_agent;
mod fn_provider;
mod idle;
mod ids;
mod inbox_journal;
mod instructions;
mod late_tools;
mod mcp_script;
mod memory_store;
mod mock_response;
mod mock_server;
mod mortal_journal;
mod pairing;
mod real_clock;
mod recording_bus;
mod recording_questions;
mod sink;
#[cfg(feature = "trials")]
mod trials;

pub use chance::{Chance, cases, first_seed, may_skip};
pub use clock::VirtualClock;
pub use ended::Ended;
pub use fn_agent::{FnAgent, answer};
pub use fn_provider::FnProvider;
pub use idle::{drive, poll_until_idle};
pub use ids::SeededIds;
pub use inbox_journal::InboxJournal;
pub use instructions::instructions;
pub use late_tools::LateTools;
pub use mcp_script::McpScript;
pub use memory_store::{OpenMemoryStore, all_entries, check_memory_store, foreign_memories};
pub use mock_response::{Gate, MockResponse};
pub use mock_server::{MockServer, RecordedRequest};
pub use mortal_journal::MortalJournal;
pub use pairing::{assert_paired, pairing_faults};
pub use real_clock::RealClock;
pub use recording_bus::RecordingBus;
pub use recording_questions::{RecordingChannel, RecordingQuestions};
pub use sink::RecordingSink;
#[cfg(feature = "trials")]
pub use trials::{Need, Trial, run_trials};
