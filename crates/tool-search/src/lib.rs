//! Tool search: an agent with many tools sends the definitions of a few, and finds the others by words.
//!
//! | concept | file |
//! |---|---|
//! | [`ToolIndex`], which tools fit a query | `index.rs` |
//! | exact names, which come first | `exact.rs` |
//! | texts of a definition, and their weights | `document.rs` |
//! | words of a text | `terms.rs` |
//!
//! *Invariants*
//!
//! - A query that is the name of a tool finds that tool first.
//! - The same tools and the same query give the same tools in the same order.

mod document;
mod exact;
mod index;
mod terms;

pub use index::ToolIndex;
