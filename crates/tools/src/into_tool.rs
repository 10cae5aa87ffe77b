//! What a registry takes: a tool, a shared tool, or the function that `#[tool]` makes.

use std::sync::Arc;

use archon_types::Tool;

/// Turns into a tool. `How` only tells the implementations apart and is never written down.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "put `#[tool]` before the function, or implement `archon_types::Tool`",
    note = "a tool with state is made with it: `.tool(refund(database))`"
)]
pub trait IntoTool<How> {
    /// The tool.
    fn into_tool(self) -> Arc<dyn Tool>;
}

/// How a value is a tool: it is one.
#[derive(Debug)]
pub struct Itself;

/// How a value is a tool: it is shared.
#[derive(Debug)]
pub struct Shared;

/// How a value is a tool: calling it makes one.
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
