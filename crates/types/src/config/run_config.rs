//! The configuration of a run, as its log keeps it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    memory::Collection,
    messages::{CALL_TOOL, ContextConfig, TOOL_SEARCH},
    models::{ModelPrice, Reads, RequestOptions, ResponseFormat},
    tools::{ApprovalSettings, ToolExecutionStrategy, ToolSpec},
    values::Encoded,
};

use super::{
    failure::FailurePolicy, goal::GoalCheck, limits::ExecutionLimits, retry::RetryConfig,
    structured_output::OutputCheck,
};

/// The configuration of a run. The log stores it, so that replay needs no other settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct RunConfig {
    /// The id of the provider, such as `openai`.
    pub provider: String,
    /// The model, as the provider names it.
    pub model: String,
    /// The standing instructions for the model (the system prompt).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub system: Option<Arc<Encoded<String>>>,
    /// The tools that are offered to the model.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ToolSpec>"))]
    pub tools: Arc<Encoded<Vec<ToolSpec>>>,
    /// The deferred tools: the model finds them with a search and calls them with
    /// [`CALL_TOOL`](crate::messages::CALL_TOOL). Only their names, versions, annotations and alternatives are
    /// stored. An entry with the name `PREFIX*` stands for all tools of a [`ToolSource`](crate::ToolSource) that did
    /// not know its tools when the run began.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ToolSpec>"))]
    pub deferred_tools: Arc<[ToolSpec]>,
    /// The options of model requests, such as sampling and the maximum output length.
    pub options: Arc<RequestOptions>,
    /// The limits of the run.
    pub limits: ExecutionLimits,
    /// The retries of failed model calls.
    pub retry: RetryConfig,
    /// The handling of failures beyond the retries of model calls. `None`: a failure that these retries do
    /// not fix ends the run, tool calls are not retried, and tools have no circuit breaker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// The format of tool calls.
    pub tool_mode: ToolMode,
    /// The name of the tags around tool results in text mode. The name is different in each run, so that a
    /// text in a tool result cannot close the tag and pretend to be another result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_tag: Option<String>,
    /// The folder that the run's tools work in; `None` if the tools need no folder, or no folder was given. A
    /// permission rule for the session applies only in the folder for which the rule was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// A description of the expected output, for text mode and for the check of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<String>,
    /// The check of the answer against the expected output. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_check: Option<GoalCheck>,
    /// The check of answers against [`RequestOptions::response_format`]. Default none. In text mode the
    /// schema is then a part of the instructions, and not of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_check: Option<OutputCheck>,
    /// The settings of questions to people; `None` if nobody can be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalSettings>,
    /// The settings of the context window; without them the conversation is not compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextConfig>,
    /// The price of the model's tokens; a cost limit needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
    /// The media that the model reads.
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub reads: Reads,
    /// The strategy for the tool calls of one turn: in parallel, in sequence or in batches.
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub tool_execution: ToolExecutionStrategy,
    /// The number of steering messages that the model reads at once.
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub steering_mode: QueueMode,
    /// The number of follow-ups that the model reads at once.
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub follow_up_mode: QueueMode,
    /// The absolute paths of files with the project's instructions; the first that exists is used. They are
    /// read again before each request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub project_files: Vec<String>,
    /// The memory of the run; `None` for a run without a memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryConfig>,
}

impl RunConfig {
    /// Returns the names of all tools of the run: the offered ones, which requests define, and the deferred
    /// ones, which the model finds with a search. Leaves out [`TOOL_SEARCH`] and [`CALL_TOOL`] if there are
    /// deferred tools, because these two only lead to the deferred tools.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        let is_deferring = !self.deferred_tools.is_empty();
        let all = self.tools.iter().chain(self.deferred_tools.iter()).map(|tool| tool.name.as_str());
        all.filter(move |name| !is_deferring || ![TOOL_SEARCH, CALL_TOOL].contains(name))
    }

    /// Returns the offered or deferred tool with this name; `None` if the run has no such tool. For a deferred
    /// tool, only the name, the version, the annotations and the alternatives are set. For a tool of a
    /// [`ToolSource`](crate::ToolSource) that did not know its tools when the run began, returns the entry
    /// `PREFIX*` of the source.
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        let all = || self.tools.iter().chain(self.deferred_tools.iter());
        let is_source_of =
            |tool: &&ToolSpec| tool.name.strip_suffix('*').is_some_and(|prefix| name.starts_with(prefix));
        all().find(|tool| tool.name == name).or_else(|| self.deferred_tools.iter().find(is_source_of))
    }

    /// Returns true if a tool of the run takes files of this media type, such as `application/pdf`, as
    /// arguments.
    pub fn has_tool_for(&self, mime_type: &str) -> bool {
        self.tools
            .iter()
            .chain(self.deferred_tools.iter())
            .any(|tool| tool.annotations.takes_media(mime_type))
    }

    /// Returns true if a tool of the run takes pictures, PDF files or other media as arguments.
    pub fn has_media_tool(&self) -> bool {
        let takes_any = |tool: &ToolSpec| !tool.annotations.input_mime_types.is_empty();
        self.tools.iter().chain(self.deferred_tools.iter()).any(takes_any)
    }

    /// Returns the format that the run's answer is checked against; `None` if the answer is not checked. For
    /// a plan or a team it is the format of the final answer.
    pub fn output_format(&self) -> Option<&ResponseFormat> {
        self.output_check.and(self.options.response_format.as_ref())
    }
}

/// The settings of a run's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryConfig {
    /// The collection of the run's memories.
    pub collection: Collection,
    /// The id of the embedder; `None` if memories are found by words alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedder: Option<String>,
}

/// The number of waiting messages that the model reads at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QueueMode {
    /// Only the oldest message; the model reads the next one after it has answered.
    #[default]
    OneAtATime,
    /// All waiting messages.
    All,
}

/// The format in which tools are described to the model and called by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolMode {
    /// The provider's protocol for tool calls.
    #[default]
    Native,
    /// Text in the ReAct format: Thought, Action, Observation, Final Answer.
    Text,
}

#[cfg(test)]
mod tests {
    use crate::{Json, tools::ToolAnnotations};

    use super::*;

    #[test]
    fn tool_of_an_unknown_server_has_the_annotations_of_its_source() {
        let mut config = RunConfig::default();
        let spec =
            |name: &str, annotations| ToolSpec::new(name, "", Json::Null).with_annotations(annotations);
        config.deferred_tools =
            [spec("a__*", ToolAnnotations::destructive()), spec("a__read", ToolAnnotations::read_only())]
                .into();
        assert!(!config.tool("a__read").unwrap().annotations.destructive);
        assert!(config.tool("a__write").unwrap().annotations.destructive);
        assert!(config.tool("b__read").is_none() && config.tool("a").is_none());
    }
}
