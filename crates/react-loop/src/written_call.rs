//! A tool call that a model wrote as text.

use archon_types::Json;

/// A tool call that a model wrote as text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WrittenCall {
    /// Name of the tool, as the model wrote it.
    pub tool: String,
    /// Arguments of the call; an empty object if the model wrote none.
    pub arguments: Json,
    /// Reason why the call must not run, as a text for the model; `None` if the call may run.
    pub refused: Option<&'static str>,
}

impl WrittenCall {
    pub(crate) fn new(tool: impl Into<String>, arguments: Json) -> Self {
        Self { tool: tool.into(), arguments, refused: None }
    }
}
