//! The macro `#[tool]`: makes a function a tool that a model can call, with a schema made of its signature.
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
//! There are two names for the same macro, because a procedural macro cannot know through which crate it is
//! used: [`macro@tool`] generates paths into `archon_tools`, [`macro@facade_tool`] into `archon::tools`.
//! Each of these crates re-exports its own macro as `tool`. The documentation is at `archon_tools::tool`,
//! where the examples can be compiled.

mod attribute;
mod docs;
mod expand;
mod nearest;
mod parameter_names;
mod signature;
mod summary;

use proc_macro::TokenStream;

/// Makes a tool of a function, for crates that depend on `archon-tools`; see `archon_tools::tool`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    run(attribute, item, "::archon_tools")
}

/// Makes a tool of a function, for crates that depend on `archon`; see `archon::tool`.
#[proc_macro_attribute]
pub fn facade_tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    run(attribute, item, "::archon::tools")
}

fn run(attribute: TokenStream, item: TokenStream, home: &str) -> TokenStream {
    expand::expand(attribute.into(), item.into(), home).unwrap_or_else(|e| e.to_compile_error()).into()
}
