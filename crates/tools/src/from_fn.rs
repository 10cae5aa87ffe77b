//! Tools made of closures, for schemas that are known only at run time, and for tests.

use archon_types::{BoxFuture, Context, Json, Preview, Tool, ToolContext, ToolError, ToolResult, ToolSpec};

use crate::action_summary::summary;

/// A tool that is made from a [`ToolSpec`] and an async closure.
///
/// Each call gives the closure its own arguments and its own context.
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
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
///
/// `?` works on any error, because every error converts into a [`ToolError`]. A function that makes such a
/// tool returns `impl Tool`; data that the calls need are moved into the closure:
///
/// ```
/// use std::{path::PathBuf, sync::Arc};
///
/// use archon_tools::FnTool;
/// use archon_types::{Tool, ToolAnnotations, ToolSpec};
/// use serde_json::json;
///
/// fn remove_note(folder: Arc<PathBuf>) -> impl Tool {
///     let parameters = json!({
///         "type": "object",
///         "properties": { "note": { "type": "integer" } },
///         "required": ["note"],
///     });
///     let spec = ToolSpec::new("remove_note", "Removes a note for good.", parameters)
///         .with_annotations(ToolAnnotations::destructive());
///     let tool = FnTool::new(spec, move |arguments, _context| {
///         let folder = folder.clone();
///         async move {
///             std::fs::remove_file(folder.join(format!("{}.txt", arguments["note"])))?;
///             Ok("Removed.".into())
///         }
///     });
///     tool.with_summary("Remove note {note} for good")
/// }
/// # let _ = remove_note(Arc::default());
/// ```
pub struct FnTool<F> {
    spec: ToolSpec,
    summary: Option<String>,
    call: F,
}

impl<F, Fut> FnTool<F>
where
    F: Fn(Json, ToolContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    /// Creates a tool with this spec. `call` gets the arguments and the context of each call, and returns the result.
    pub fn new(spec: ToolSpec, call: F) -> Self {
        Self { spec, summary: None, call }
    }

    /// Sets the line that a person reads in an approval request: `Refund {cents} cents of order {order}`.
    /// Names in braces are replaced by the call's arguments, which are shortened, and quoted if they are more
    /// than one word. Default: the tool's name and arguments.
    ///
    /// ```
    /// use archon_tools::FnTool;
    /// use archon_types::ToolSpec;
    ///
    /// let spec = ToolSpec::new("refund", "Refunds cents.", serde_json::json!({ "type": "object" }));
    /// let tool = FnTool::new(spec, |_, _| async { Ok("Refunded.".into()) });
    /// let tool = tool.with_summary("Refund {cents} cents of order {order}");
    /// ```
    pub fn with_summary(mut self, template: impl Into<String>) -> Self {
        self.summary = Some(template.into());
        self
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

    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        let line = |template: &String| Preview::new(summary(template, arguments, &self.spec));
        Ok(self.summary.as_ref().map(line))
    }
}

archon_types::debug_fields!(FnTool<F>: spec);
