//! Tool search: an agent with many tools sends the definitions of a few, and finds the others by words,
//! and by meaning if there is an embedder.
//!
//! Use this crate alone to find tools by a name or by words; it needs no agent.
//!
//! *Invariants*
//!
//! - A query that is the name of a tool finds that tool first.
//! - The same tools and the same query give the same tools in the same order.
//!
//! # Example
//!
//! ```
//! use archon_tool_search::ToolIndex;
//! use archon_types::ToolSpec;
//! use serde_json::json;
//!
//! let object = || json!({ "type": "object" });
//! let tools = [
//!     ToolSpec::new("files__read", "Reads a file.", object()),
//!     ToolSpec::new("github__create_issue", "Opens a new issue in a repository.", object()),
//! ];
//! let index = ToolIndex::new(&tools);
//! assert_eq!(index.search("report a bug as an issue", 5), [1]);
//! ```

// | concept | file |
// |---|---|
// | `Deferral`, which tools are deferred | `deferral.rs` |
// | the tools `tool_search` and `call_tool` | `search_tool.rs` |
// | `ToolIndex`, which tools fit a query | `index.rs` |
// | exact names, which come first | `exact.rs` |
// | `ToolVectors`, which tools are close to a query by meaning | `vectors.rs` |
// | texts of a definition, and their weights | `document.rs` |
// | words of a text | `terms.rs` |

mod deferral;
mod document;
mod exact;
mod index;
mod search_tool;
mod terms;
mod vectors;

pub use deferral::{DEFINITION_TOKENS, Deferral};
pub use index::ToolIndex;
pub use vectors::ToolVectors;
