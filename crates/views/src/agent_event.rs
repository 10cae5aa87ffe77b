//! `AgentEvent`: the events of runs in a JSON form that programs outside of this project read, such as user interfaces
//! and recorders.

use archon_types::{
    AgentId, AgentMessage, ContinuationKind, Json, LoopId, Message, RunId, SessionId, Timestamp, ToolCallId,
    ToolResult, TurnTrigger, Usage, iso8601,
};
use serde::{Deserialize, Serialize};

/// An event of a loop, which is one run of an agent. For user interfaces and recorders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are named by their types")]
pub enum AgentEvent {
    /// A loop starts. `continuation_kind` is absent for the first loop of a session. Other loops refer to
    /// this loop, as their parent or child, by its `run_id`.
    AgentStart {
        agent_id: AgentId,
        session_id: SessionId,
        loop_id: LoopId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_loop_id: Option<RunId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continuation_kind: Option<ContinuationKind>,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Json>,
    },
    /// A loop ended. `messages` are all messages that the loop added to the conversation.
    AgentEnd {
        loop_id: LoopId,
        messages: Vec<AgentMessage>,
        usage: Usage,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rejection: Option<String>,
    },
    /// A turn starts.
    TurnStart {
        loop_id: LoopId,
        turn_index: u32,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
        triggered_by: TurnTrigger,
    },
    /// A turn ended; `tool_results` are the results of all its tool calls.
    TurnEnd {
        loop_id: LoopId,
        message: AgentMessage,
        usage: Usage,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
        tool_results: Vec<Message>,
    },
    /// A message starts. An assistant message is still empty here.
    MessageStart { loop_id: LoopId, message: AgentMessage },
    /// A piece of the assistant message arrived. `MessageEnd` has the complete message.
    MessageUpdate { loop_id: LoopId, delta: StreamDelta },
    /// A message is complete.
    MessageEnd { loop_id: LoopId, message: AgentMessage },
    /// A tool starts.
    ToolExecutionStart { loop_id: LoopId, tool_call_id: ToolCallId, tool_name: String, args: Json },
    /// A tool has a partial result.
    ToolExecutionUpdate {
        loop_id: LoopId,
        tool_call_id: ToolCallId,
        tool_name: String,
        partial_result: ToolResult,
    },
    /// A tool ended.
    ToolExecutionEnd {
        loop_id: LoopId,
        tool_call_id: ToolCallId,
        tool_name: String,
        result: ToolResult,
        is_error: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child_loop_id: Option<RunId>,
    },
    /// A tool reports its progress, for a person.
    ProgressMessage { loop_id: LoopId, tool_call_id: ToolCallId, tool_name: String, text: String },
    /// A filter rejected the prompt.
    InputRejected { loop_id: LoopId, reason: String },
    /// Several loops start in parallel.
    ParallelLoopStart {
        session_id: SessionId,
        loop_ids: Vec<LoopId>,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
    },
    /// One of the parallel loops was selected.
    ParallelLoopEnd {
        session_id: SessionId,
        selected_loop_id: LoopId,
        selected_config_index: usize,
        evaluation_usage: Usage,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
    },
}

/// A piece of an assistant message: text, thinking, or the arguments of a tool call. It comes from a
/// [`DeltaKind`](archon_types::DeltaKind), which has another JSON form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum StreamDelta {
    /// A piece of the answer's text.
    Text {
        /// The piece.
        delta: String,
    },
    /// A piece of the model's thinking.
    Thinking {
        /// The piece.
        delta: String,
    },
    /// A piece of a tool call's arguments.
    ToolCallDelta {
        /// The piece.
        delta: String,
    },
}
