//! Conversion of what a registry accepts: a tool, a shared tool, or the function that `#[tool]` makes.

use std::sync::Arc;

use archon_types::Tool;

/// Converts a value into a tool. `How` only distinguishes the implementations; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "put `#[tool]` before the function, or implement `archon_types::Tool`",
    note = "for a tool with state, call its function with the state: `.tool(refund(database))`"
)]
pub trait IntoTool<How> {
    /// Returns the tool.
    fn into_tool(self) -> Arc<dyn Tool>;
}

/// Marker for [`IntoTool`]: the value is a tool.
#[derive(Debug)]
pub struct Itself;

/// Marker for [`IntoTool`]: the value is a shared tool.
#[derive(Debug)]
pub struct Shared;

/// Marker for [`IntoTool`]: the value is a function that makes a tool.
#[derive(Debug)]
pub struct Constructor;

impl<T: Tool + 'static> IntoTool<Itself> for T {
    fn into_tool(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

impl IntoTool<Shared> for Arc<dyn Tool> {
    fn into_tool(self) -> Arc<dyn Tool> {
        self
    }
}

impl<F: FnOnce() -> T, T: Tool + 'static> IntoTool<Constructor> for F {
    fn into_tool(self) -> Arc<dyn Tool> {
        Arc::new(self())
    }
}
