//! A call as a model wrote it, in text.

use archon_types::Json;

/// A call as a model wrote it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WrittenCall {
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The arguments; an empty object if there were none.
    pub arguments: Json,
    /// The reason why the call must not run, in words for the model; `None` if it may run.
    pub refused: Option<&'static str>,
}

impl WrittenCall {
    pub(crate) fn new(tool: impl Into<String>, arguments: Json) -> Self {
        Self { tool: tool.into(), arguments, refused: None }
    }
}
