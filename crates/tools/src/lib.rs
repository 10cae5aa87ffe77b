//! Tools for models: a macro makes tools of functions, a registry holds them, and an engine checks a model's calls
//! with guards and runs them.
//!
//! Use this crate alone to run tool calls in a loop of your own, with checked arguments, permissions, time limits and
//! a sandbox.
//!
//! *Invariant*: a tool gets only arguments that match its schema. They come from the model, from a person who edited
//! them, or from a correction by the tool itself, if [`EngineOptions::corrections`] allows that; a note tells the model
//! of a correction. Every failure of a call, even a panic of the tool, becomes a
//! [`ToolResult`](archon_types::ToolResult).
//!
//! ```
//! use archon_tools::{ToolEngine, ToolRegistry, tool};
//!
//! /// Adds two numbers.
//! #[tool(read_only)]
//! async fn add(
//!     /// The first number.
//!     a: f64,
//!     /// The second number.
//!     b: f64,
//! ) -> f64 {
//!     a + b
//! }
//!
//! let registry = ToolRegistry::new();
//! registry.register(add)?;
//! let engine = ToolEngine::new(registry);
//! # Ok::<(), archon_tools::ToolSetupError>(())
//! ```

// | concept | file |
// |---|---|
// | `tool`, a function as a tool | `macro_support.rs`, and the crate `archon-macros` |
// | `FnTool`, a closure as a tool | `from_fn.rs` |
// | `ToolRegistry`, the tools by name | `registry.rs` |
// | `ToolEngine`, the `Toolbox` over a registry | `engine.rs` |
// | guards of calls and results, in order | `guard.rs` and `guards/`; a program's own: `call_guard.rs` |
// | `Permissions`, rules that allow, ask about or deny calls | `permissions.rs` |
// | time limit, cancellation, panics | `execute.rs` |
// | retries | `retry.rs` |
// | corrections of arguments | `correction.rs` |
// | `PatternAnalyzer`, advice on the use of tools | `patterns.rs` |
// | levels of detail, and large results in files | `output.rs` |
// | chat template tokens in results | `chat_tokens.rs` |
// | `ToolStats`, statistics | `statistics.rs` |
// | `process`, processes that tools start | the crate `archon-process` |
// | `sandbox`, the kernel's limits around commands | `sandbox.rs` |
// | `Workspace`, the folders that tools may see | `workspace.rs` |
// | `is_control_file`, files that start programs | `control.rs` |
// | `Composite`, a tool that is a graph of calls | `composite.rs` |
// | the tools that come with the crate | `builtin`, one file each |

#![cfg_attr(docsrs, feature(doc_cfg))]

// The macro generates paths into `::archon_tools`, also in this crate's tests.
#[allow(unused_extern_crates)]
extern crate self as archon_tools;

mod action_summary;
mod arguments;
#[cfg(all(unix, feature = "files"))]
mod beneath;
mod call_guard;
mod chat_tokens;
#[cfg(feature = "composite")]
mod composite;
#[cfg(feature = "files")]
mod control;
mod correction;
mod dialect;
#[cfg(feature = "files")]
mod diff;
mod engine;
mod error;
mod execute;
mod from_fn;
#[cfg(all(unix, feature = "files"))]
mod git_settings;
mod guard;
mod guards;
mod into_tool;
mod invocation;
mod lint;
mod log;
mod media_argument;
mod options;
mod output;
#[cfg(feature = "web")]
mod own_networks;
mod patterns;
mod permission_bound;
mod permissions;
/// Starts programs of a tool call as a process group. The run's log names the group before its processes do
/// anything; when the call ends, the processes that are still in the group are ended.
#[cfg(unix)]
pub mod process {
    pub use archon_process::{RUN_VARIABLE, spawn_group};
}
mod progress;
mod rate;
mod registry;
mod result_schema;
mod retry;
#[cfg(all(unix, feature = "bash"))]
pub mod sandbox;
mod schema;
#[cfg(feature = "files")]
mod seen;
mod statistics;
mod suggestion;
mod summary;
mod violations;
#[cfg(feature = "web")]
mod web;
#[cfg(feature = "files")]
mod workspace;

pub mod builtin;
#[doc(hidden)]
pub mod macro_support;

pub use call_guard::{CallGuard, FnGuard, GuardedCall};
#[cfg(feature = "composite")]
pub use composite::{
    Composite, CompositeProblem, CompositeTool, ForEachItem, Mapping, OnNodeFailure, ToolNode,
};
#[cfg(feature = "files")]
pub use control::is_control_file;
#[cfg(feature = "files")]
pub use diff::DiffOptions;
pub use engine::ToolEngine;
pub use error::ToolSetupError;
pub use from_fn::FnTool;
pub use into_tool::IntoTool;
pub use lint::lint;
pub use media_argument::MediaArgument;
pub use options::{Ask, CallRate, EngineOptions, ErrorStyle};
pub use output::effective_level;
pub use patterns::{CallMade, PatternAnalyzer, SingleCalls, Suggestion};
pub use permissions::{Permissions, Rule, Ruling};
pub use registry::ToolRegistry;
pub use result_schema::ResultSchema;
pub use retry::ToolRetryPolicy;
pub use schema::schema_of;
pub use statistics::{ToolStats, ToolUsage, prometheus};
pub use summary::Summarizer;
#[cfg(feature = "web")]
pub use web::WebOptions;
#[cfg(feature = "files")]
pub use workspace::Workspace;

#[doc = include_str!("tool_macro.md")]
pub use archon_macros::tool;

// For enums and structs inside of a tool's arguments; see `tool`.
pub use schemars;
