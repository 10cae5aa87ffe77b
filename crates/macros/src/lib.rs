//! The macro `#[tool]`: turns a function into a tool that a model can call. The schema of the arguments is
//! made from the function's signature.
//!
//! Use this crate through `archon-tools` or `archon`; no program depends on it alone.
//!
//! ```ignore
//! use archon_tools::tool;
//!
//! /// Adds two whole numbers and returns the sum.
//! #[tool(read_only)]
//! async fn add(a: i64, b: i64) -> String {
//!     (a + b).to_string()
//! }
//! ```
//!
//! The macro has two names, because a procedural macro cannot know through which crate it is used:
//! [`macro@tool`] generates paths into `archon_tools`, [`macro@facade_tool`] into `archon::tools`. Each of
//! these two crates re-exports its own version as `tool`. The full documentation is at `archon_tools::tool`,
//! where the examples can be compiled.

mod attribute;
mod docs;
mod expand;
mod nearest;
mod parameter_names;
mod signature;
mod summary;

use proc_macro::TokenStream;

/// Turns a function into a tool, for crates that depend on `archon-tools`; `archon_tools::tool` has the documentation.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    run(attribute, item, "::archon_tools")
}

/// Turns a function into a tool, for crates that depend on `archon`; `archon::tool` has the documentation.
#[proc_macro_attribute]
pub fn facade_tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    run(attribute, item, "::archon::tools")
}

fn run(attribute: TokenStream, item: TokenStream, home: &str) -> TokenStream {
    expand::expand(attribute.into(), item.into(), home).unwrap_or_else(|e| e.to_compile_error()).into()
}
