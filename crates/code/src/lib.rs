//! Code that an agent writes, run in this process: Python and JavaScript, without files, network or other programs.
//!
//! [`CodeExecutor`] is a tool, `code_executor`. A program has a bound for each thing that it can use up
//! ([`CodeOptions`]), and it ends at once when its call is cancelled or dropped. Tools can be functions in it
//! ([`CodeExecutor::with_tools`]); their calls pass the guards of the toolbox that they come from.
//!
//! | concept | file |
//! |---|---|
//! | [`CodeExecutor`], the tool | `executor.rs` |
//! | its bounds | `options.rs` |
//! | which languages there are | `language.rs` |
//! | one program: its thread, its calls, its end | `program.rs` |
//! | time, memory and the word to stop | `meter.rs` |
//! | what a program reaches outside of itself | `host.rs` |
//! | tools as functions | `functions.rs` |
//! | what it writes, and what it comes to | `output.rs`, `outcome.rs` |
//! | Python | `python.rs` and `python/` |
//! | JavaScript | `javascript.rs`, `javascript/before.js` |
//!
//! Each language is a feature, and none of them is on by default: `python` (monty, which is all Rust) and `javascript`
//! (QuickJS, which takes a C compiler). Both interpreters were made to hold code that nobody trusts, and both are
//! programs that may have faults: one that corrupts memory is a fault of this process. Where that cannot be accepted,
//! run agents in a process of their own.

#![cfg_attr(
    not(any(feature = "python", feature = "javascript")),
    allow(rustdoc::broken_intra_doc_links, reason = "without a language there is no tool")
)]

#[cfg(any(feature = "python", feature = "javascript"))]
mod error;
#[cfg(any(feature = "python", feature = "javascript"))]
mod executor;
#[cfg(any(feature = "python", feature = "javascript"))]
mod functions;
#[cfg(any(feature = "python", feature = "javascript"))]
mod host;
#[cfg(feature = "javascript")]
mod javascript;
#[cfg(any(feature = "python", feature = "javascript"))]
mod language;
#[cfg(any(feature = "python", feature = "javascript"))]
mod meter;
#[cfg(any(feature = "python", feature = "javascript"))]
mod options;
#[cfg(any(feature = "python", feature = "javascript"))]
mod outcome;
#[cfg(any(feature = "python", feature = "javascript"))]
mod output;
#[cfg(any(feature = "python", feature = "javascript"))]
mod program;
#[cfg(feature = "python")]
mod python;

#[cfg(any(feature = "python", feature = "javascript"))]
pub use error::Error;
#[cfg(any(feature = "python", feature = "javascript"))]
pub use executor::CodeExecutor;
#[cfg(any(feature = "python", feature = "javascript"))]
pub use language::Language;
#[cfg(any(feature = "python", feature = "javascript"))]
pub use options::CodeOptions;
