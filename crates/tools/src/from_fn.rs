//! A tool from a closure, for schemas that are only known at run time and for tests.

use std::fmt;

use archon_types::{BoxFuture, Json, Tool, ToolContext, ToolError, ToolResult, ToolSpec};

/// A tool made of a [`ToolSpec`] and an async closure.
///
/// The closure owns its arguments and its context, which is cheap to clone.
///
/// ```
/// use archon_tools::{FnTool, ToolRegistry};
/// use archon_types::{ToolAnnotations, ToolSpec};
/// use serde_json::json;
///
/// let parameters = json!({
///     "type": "object",
///     "properties": { "text": { "type": "string" } },
///     "required": ["text"],
/// });
/// let spec = ToolSpec::new("echo", "Says the same thing again.", parameters)
///     .with_annotations(ToolAnnotations::read_only());
///
/// let registry = ToolRegistry::new();
/// registry.register(FnTool::new(spec, |arguments, _context| async move {
///     Ok(arguments["text"].as_str().unwrap_or_default().into())
/// }))?;
/// # Ok::<(), archon_tools::Error>(())
/// ```
pub struct FnTool<F> {
    spec: ToolSpec,
    call: F,
}

impl<F, Fut> FnTool<F>
where
    F: Fn(Json, ToolContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    /// A tool that `spec` describes and `call` does.
    pub fn new(spec: ToolSpec, call: F) -> Self {
        Self { spec, call }
    }
}

impl<F, Fut> Tool for FnTool<F>
where
    F: Fn(Json, ToolContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin((self.call)(arguments, context.clone()))
    }
}

impl<F> fmt::Debug for FnTool<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}
