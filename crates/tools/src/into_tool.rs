//! Converts everything that a registry accepts into a tool: a tool, a shared tool, or a function with `#[tool]`.

use std::sync::Arc;

use archon_types::Tool;

/// Converts a value into a tool. The compiler always infers `How`, which only tells the implementations apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "put `#[tool]` before the function, or implement `archon_types::Tool`",
    note = "for a tool with state, call its function with the state: `.tool(refund(database))`"
)]
pub trait IntoTool<How> {
    /// Returns the tool, ready to be shared.
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
