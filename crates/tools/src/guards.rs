//! All guards, one file each, in the order in which a call and its result pass them.
//!
//! Some checks are not here, because they need the run's log: the circuit breaker (a tool that keeps
//! failing is not called for a while), the retries of a call, and the detection of repeated calls. They
//! belong to the loop (`crates/react-loop/src/circuit_breaker.rs`, `machine/tool_retry.rs`,
//! `repetition.rs`), like the cut of a result to its share of the context window (`window/truncate.rs`).
//! They check a call before these guards, and its result after them.

mod consent;
mod exists;
mod facts;
mod format;
mod log;
mod markup;
mod matches_schema;
mod media;
mod mode;
mod own;
mod permission;
mod preview;
mod rules;
mod secrets;
mod size;
mod statistics;
mod well_formed;

use crate::guard::Guard;

pub(crate) use consent::{may_ask, needs_consent};
pub(crate) use facts::{millis, stamp};
pub(crate) use mode::is_accepted_edit;

/// Every guard in order. A new guard is a new file and a line here.
pub(crate) const GUARDS: &[&dyn Guard] = &[
    // Before the tool runs.
    &exists::Exists,                // the tool is registered
    &well_formed::WellFormed,       // the arguments were JSON
    &size::Size,                    // they are neither too large nor too deep
    &matches_schema::MatchesSchema, // they fit the tool's schema
    &media::MediaTypes,             // the media that they name have types and sizes that the tool takes
    &permission::Permission,        // the permissions that the tool needs are granted
    &rules::Rules,                  // no rule denies it, here or above
    &mode::Mode,                    // the mode of the session allows it
    &preview::Preview,              // the tool can make the change, e.g. the session has read the file
    &own::Own,                      // the program's own guards let it pass; they also see the result first
    &consent::Consent,              // a person approves it, if it needs approval
    // Here the tool runs: `execute.rs`; outside a run perhaps again: `retry.rs`.
    &facts::Facts,           // times, attempts, version
    &secrets::Secrets,       // the run's secrets are redacted
    &markup::Markup,         // tags that a result may not have are removed
    &format::Format,         // the wanted level of detail; large data are stored in a file
    &statistics::Statistics, // counted for the tool
    &log::Log,               // a line in the application's log
];
