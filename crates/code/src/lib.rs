//! Runs code that an agent writes: Python and JavaScript programs, inside of this process, without files,
//! network or other programs.
//!
//! Use this crate alone to give any agent a tool that runs code.
//!
//! [`CodeExecutor`] is the tool `code_executor`. A program has a limit for each resource ([`CodeOptions`]),
//! and ends at once when its call is cancelled or dropped. It can call tools as functions
//! ([`CodeExecutor::with_tools`]); these calls pass the guards of the toolbox that the tools come from.
//!
//! Each language is a feature, and none is on by default: `python` (monty, pure Rust) and `javascript`
//! (QuickJS, which needs a C compiler). Without a language the crate is empty. Both interpreters are made for
//! untrusted code, but run in this process: a memory bug in one of them is a bug of this process. If you
//! cannot accept that, run agents in a process of their own.
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

// | concept | file |
// |---|---|
// | `CodeExecutor`, the tool | `executor.rs` |
// | limits of a program | `options.rs` |
// | supported languages | `language.rs` |
// | one program: its thread, its calls, its end | `program.rs` |
// | processor time, memory and the stop flag | `meter.rs` |
// | interface to the outside: output and tool calls | `host.rs` |
// | tools as functions | `functions.rs` |
// | captured output, and the result | `output.rs`, `outcome.rs` |
// | Python | `python.rs` and `python/` |
// | JavaScript | `javascript.rs`, `javascript/before.js` |

#![cfg_attr(docsrs, feature(doc_cfg))]
// Above the `cfg` that empties the crate: the attributes above it stay, and so does the text with its links.
#![cfg_attr(
    not(any(feature = "python", feature = "javascript")),
    allow(rustdoc::broken_intra_doc_links, reason = "without a language there is no tool")
)]
#![cfg(any(feature = "python", feature = "javascript"))]

mod error;
mod exact_json;
mod executor;
mod functions;
mod host;
#[cfg(feature = "javascript")]
mod javascript;
mod language;
mod meter;
mod options;
mod outcome;
mod output;
mod program;
#[cfg(feature = "python")]
mod python;

pub use error::CodeSetupError;
pub use executor::CodeExecutor;
pub use language::Language;
pub use options::CodeOptions;
