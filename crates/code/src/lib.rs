//! Runs code that an agent writes in this process: Python and JavaScript, without files, network or other
//! programs.
//!
//! Use this crate alone as a tool of any agent, or to run untrusted snippets with limits.
//!
//! [`CodeExecutor`] is the tool `code_executor`. A program has a limit for each resource ([`CodeOptions`]),
//! and ends at once when its call is cancelled or dropped. It can call tools as functions
//! ([`CodeExecutor::with_tools`]); these calls pass the guards of the toolbox that the tools come from.
//!
//! | concept | file |
//! |---|---|
//! | [`CodeExecutor`], the tool | `executor.rs` |
//! | limits of a program | `options.rs` |
//! | supported languages | `language.rs` |
//! | one program: its thread, its calls, its end | `program.rs` |
//! | processor time, memory and the stop flag | `meter.rs` |
//! | interface to the outside: output and tool calls | `host.rs` |
//! | tools as functions | `functions.rs` |
//! | captured output, and the result | `output.rs`, `outcome.rs` |
//! | Python | `python.rs` and `python/` |
//! | JavaScript | `javascript.rs`, `javascript/before.js` |
//!
//! Each language is a feature, and none is on by default: `python` (monty, pure Rust) and `javascript`
//! (QuickJS, which needs a C compiler). Both interpreters are made for untrusted code, but run in this
//! process: a memory bug in one of them is a bug of this process. If you cannot accept that, run agents in a
//! process of their own.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "python")] {
//! use archon_code::{CodeExecutor, CodeOptions};
//! use archon_types::Tool;
//!
//! let tool = CodeExecutor::new(CodeOptions::default());
//! assert_eq!(tool.spec().name, "code_executor");
//! # }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(feature = "python", feature = "javascript")),
    allow(rustdoc::broken_intra_doc_links, reason = "without a language there is no tool")
)]

#[cfg(any(feature = "python", feature = "javascript"))]
mod error;
#[cfg(any(feature = "python", feature = "javascript"))]
mod exact_json;
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
pub use error::CodeSetupError;
#[cfg(any(feature = "python", feature = "javascript"))]
pub use executor::CodeExecutor;
#[cfg(any(feature = "python", feature = "javascript"))]
pub use language::Language;
#[cfg(any(feature = "python", feature = "javascript"))]
pub use options::CodeOptions;
