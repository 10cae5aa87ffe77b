//! A wrapper that checks a tool's results against a JSON Schema.

use std::{fmt, sync::Arc};

use archon_types::{
    BoxFuture, Context, Correction, Json, Preview, SessionId, Subject, Tool, ToolContext, ToolError,
    ToolResult, ToolSpec,
};
use jsonschema::Validator;

use crate::{IntoTool, ToolSetupError, arguments::clip, dialect};

/// A tool that checks the results of another tool: a result that does not match a JSON Schema becomes an error.
///
/// ```
/// use archon_tools::{ResultSchema, tool};
///
/// /// Says how warm it is in a city.
/// #[tool(read_only)]
/// async fn weather(city: String) -> String {
///     format!(r#"{{"city": "{city}", "celsius": 21}}"#)
/// }
///
/// let schema = serde_json::json!({ "type": "object", "required": ["celsius"] });
/// let checked = ResultSchema::new(weather, &schema)?;
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
pub struct ResultSchema {
    tool: Arc<dyn Tool>,
    validator: Validator,
}

impl ResultSchema {
    /// Wraps `tool`, so that its results must match `schema`.
    ///
    /// # Errors
    /// [`ToolSetupError::InvalidSchema`] if the schema is not valid.
    pub fn new<How>(tool: impl IntoTool<How>, schema: &Json) -> Result<Self, ToolSetupError> {
        let tool = tool.into_tool();
        let validator = dialect::options(schema).build(schema).map_err(|e| {
            ToolSetupError::InvalidSchema { name: tool.spec().name.clone(), why: e.to_string() }
        })?;
        Ok(Self { tool, validator })
    }

    fn check(&self, result: ToolResult) -> Result<ToolResult, ToolError> {
        if result.is_error() {
            return Ok(result);
        }
        let wrong = |why: String| {
            ToolError::Failed(format!(
                "Tool '{}' returned a result that does not match its schema: {}. Its result was not used.",
                self.tool.spec().name,
                clip(&why, 300)
            ))
        };
        let value: Json = serde_json::from_str(&result.text()).map_err(|e| wrong(format!("no JSON, {e}")))?;
        match self.validator.iter_errors(&value).next() {
            Some(violation) => Err(wrong(format!("{violation} at '{}'", violation.instance_path()))),
            None => Ok(result),
        }
    }
}

impl Tool for ResultSchema {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move { self.check(self.tool.call(arguments, context).await?) })
    }

    fn preview(&self, arguments: &Json, run: &Context) -> Result<Option<Preview>, ToolError> {
        self.tool.preview(arguments, run)
    }

    fn subject(&self, arguments: &Json) -> Subject {
        self.tool.subject(arguments)
    }

    fn correction(&self, arguments: &Json, run: &Context) -> Option<Correction> {
        self.tool.correction(arguments, run)
    }

    fn calls(&self) -> &[String] {
        self.tool.calls()
    }

    fn recall(&self, session: &SessionId, result: &ToolResult) {
        self.tool.recall(session, result);
    }
}

impl fmt::Debug for ResultSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultSchema").field("tool", self.tool.spec()).finish_non_exhaustive()
    }
}
