//! Sessions: the runs of a conversation as a tree, in a format that programs outside of this project write and read.
//!
//! A session is computed from logs. [`Session::read`] builds it from a journal, and a
//! [`SessionRecorder`](crate::SessionRecorder) builds it from [`AgentEvent`]s as they happen.

use archon_types::{
    AgentId, AgentMessage, ContinuationKind, Json, LoopId, RunConfig, RunId, SessionId, ThinkingLevel,
    Timestamp, ToolCallId, Usage, iso8601,
};
use serde::{Deserialize, Serialize};

use crate::agent_event::AgentEvent;

/// The runs of one conversation, which this format calls loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Session {
    /// The id of the session.
    pub session_id: SessionId,
    /// The agent of the first loop.
    pub agent_id: AgentId,
    /// The time at which the session was created.
    #[serde(with = "iso8601")]
    pub created_at: Timestamp,
    /// The time of the last activity.
    #[serde(with = "iso8601")]
    pub last_active_at: Timestamp,
    /// The reason why the session was created.
    pub formation: SessionFormation,
    /// The call that started the session, if an agent of another session did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_spawn_ref: Option<SpawnRef>,
    /// All loops, in the order in which they started.
    pub loops: Vec<LoopRecord>,
}

impl Session {
    /// Creates a session without loops, with the formation [`SessionFormation::Explicit`].
    pub fn new(session_id: SessionId, agent_id: AgentId, at: Timestamp) -> Self {
        Self {
            session_id,
            agent_id,
            created_at: at,
            last_active_at: at,
            formation: SessionFormation::Explicit,
            parent_spawn_ref: None,
            loops: Vec::new(),
        }
    }

    /// Returns the loops without a parent loop in this session.
    pub fn root_loops(&self) -> impl Iterator<Item = &LoopRecord> {
        self.loops
            .iter()
            .filter(|l| l.parent_loop_id.as_ref().is_none_or(|parent| self.get_loop(parent).is_none()))
    }

    /// Returns the loops of this session that continue the given loop, or that the given loop called.
    pub fn children_of<'a>(&'a self, loop_id: &'a LoopId) -> impl Iterator<Item = &'a LoopRecord> {
        self.loops.iter().filter(move |l| l.parent_loop_id.as_ref() == Some(loop_id))
    }

    /// Returns the other branches of the parallel group that a loop belongs to.
    pub fn parallel_siblings<'a>(&'a self, loop_id: &'a LoopId) -> impl Iterator<Item = &'a LoopRecord> {
        let group = self.get_loop(loop_id).and_then(|l| l.parallel_group.as_ref());
        self.loops.iter().filter(move |l| {
            l.loop_id != *loop_id && group.is_some_and(|group| group.all_loop_ids.contains(&l.loop_id))
        })
    }

    /// Returns the loop with this id.
    pub fn get_loop(&self, loop_id: &LoopId) -> Option<&LoopRecord> {
        self.loops.iter().find(|l| l.loop_id == *loop_id)
    }

    /// Returns the tokens of all loops together.
    pub fn total_usage(&self) -> Usage {
        let mut total = Usage::default();
        self.loops.iter().for_each(|l| total += l.usage);
        total
    }

    /// Returns the conversation up to the end of a loop: the messages of the loops that it continues, oldest
    /// first, and then its own messages. If the loop branches off from an earlier loop, the messages of that
    /// loop after the branching point are included too, because only the log has that point.
    pub fn history(&self, loop_id: &LoopId) -> Vec<AgentMessage> {
        let mut chain = Vec::new();
        let mut next = self.get_loop(loop_id);
        while let Some(one) = next {
            if chain.len() == self.loops.len() {
                break; // The file was written by hand, and its loops go round in a circle.
            }
            chain.push(one);
            let continues = one.continuation_kind.is_some();
            next = one.parent_loop_id.as_ref().filter(|_| continues).and_then(|id| self.get_loop(id));
        }
        chain.iter().rev().flat_map(|one| one.messages.iter().cloned()).collect()
    }

    pub(crate) fn loop_mut(&mut self, loop_id: &LoopId) -> Option<&mut LoopRecord> {
        self.loops.iter_mut().rev().find(|l| l.loop_id == *loop_id)
    }
}

/// The reason why a session was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SessionFormation {
    /// The session was created explicitly.
    Explicit,
    /// A loop named a session that did not exist.
    #[default]
    FirstLoop,
    /// The previous session had been idle for longer than the maximum.
    InactivityTimeout {
        /// The maximum idle time in seconds.
        secs: u64,
    },
}

/// One loop, which is one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoopRecord {
    /// The display name of the run, unique in its session.
    pub loop_id: LoopId,
    /// The id of the run; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The session of the loop.
    pub session_id: SessionId,
    /// The agent of the loop.
    pub agent_id: AgentId,
    /// The loop that this loop continues, or the loop that called this loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_loop_id: Option<LoopId>,
    /// The kind of the continuation; `None` for the first loop of a session and for a loop that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_kind: Option<ContinuationKind>,
    /// The time at which the loop started.
    #[serde(with = "iso8601")]
    pub started_at: Timestamp,
    /// The time at which the loop ended; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_iso8601")]
    pub ended_at: Option<Timestamp>,
    /// The status of the loop.
    pub status: LoopStatus,
    /// The reason why the prompt was rejected; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<String>,
    /// The configuration; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<LoopConfigSnapshot>,
    /// The messages that the loop added to the conversation.
    pub messages: Vec<AgentMessage>,
    /// The tokens of the loop's model calls.
    pub usage: Usage,
    /// Data of the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The events of the loop, with pieces of messages only if the recorder's configuration asks for them.
    #[serde(default)]
    pub events: Vec<LoopEvent>,
    /// The loops of this session that continue this loop, or that this loop called.
    #[serde(default)]
    pub children_loop_ids: Vec<LoopId>,
    /// The loops in other sessions that this loop started with its tool calls.
    #[serde(default)]
    pub child_loop_refs: Vec<ChildLoopRef>,
    /// The parallel group of the loop; `None` if it was not a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_group: Option<ParallelGroupRecord>,
}

/// The status of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LoopStatus {
    /// The loop waits for a person or a timer.
    Pending,
    /// The loop is running, or its process died.
    #[default]
    Running,
    /// The loop ended with an answer or at a limit.
    Completed,
    /// The prompt of the loop was rejected.
    Rejected,
    /// The loop was cancelled, failed, or its end was not observed.
    Aborted,
}

/// The configuration of a loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoopConfigSnapshot {
    /// The model, as the provider names it.
    pub model: String,
    /// The id of the provider.
    pub provider: String,
    /// The id of the configuration within the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_id: Option<String>,
    /// The name of the configuration, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of the provider's protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The base URL of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// True if the model thinks before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// The context window of the model, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The maximum number of tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The thinking level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    /// The sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
}

impl From<&RunConfig> for LoopConfigSnapshot {
    fn from(config: &RunConfig) -> Self {
        Self {
            model: config.model.clone(),
            provider: config.provider.clone(),
            reasoning: Some(config.options.thinking != ThinkingLevel::default()),
            context_window: config.context.as_ref().map(|c| c.max_context_tokens),
            max_tokens: config.options.max_tokens,
            thinking_level: Some(config.options.thinking),
            temperature: config.options.temperature,
            ..Self::default()
        }
    }
}

/// An event of a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoopEvent {
    /// The index of the event among all events of this loop, also those that were left out, from 0.
    pub sequence: u64,
    /// The event.
    pub event: AgentEvent,
}

/// A reference from a loop to a loop of another session that one of its tool calls started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildLoopRef {
    /// The id of the call.
    pub tool_call_id: ToolCallId,
    /// The tool that was called.
    pub tool_name: String,
    /// The id of the child loop.
    pub child_loop_id: LoopId,
    /// The session of the child loop.
    pub child_session_id: SessionId,
}

/// A reference from a session to the tool call in another session that started the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnRef {
    /// The session of the calling loop.
    pub parent_session_id: SessionId,
    /// The calling loop.
    pub parent_loop_id: LoopId,
    /// The id of the call.
    pub tool_call_id: ToolCallId,
    /// The tool that was called.
    pub tool_name: String,
}

/// A group of loops that ran in parallel, of which one was selected. Each loop has a copy of this record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParallelGroupRecord {
    /// All loops of the group, in the order of their configurations.
    pub all_loop_ids: Vec<LoopId>,
    /// The loop that was selected.
    pub selected_loop_id: LoopId,
    /// The index of the selected loop's configuration, from 0.
    pub selected_config_index: usize,
    /// The tokens that the selection used.
    pub evaluation_usage: Usage,
    /// True if the loop with this copy was selected.
    pub is_selected: bool,
}

/// The progress of saving a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum SessionState {
    /// No session exists.
    #[default]
    NoSession,
    /// The session has unsaved changes.
    SessionActive,
    /// The session is being saved.
    Saving,
    /// The session is saved.
    Saved,
}

impl SessionState {
    /// Returns true if the state may change to `next`. A save that fails leads back to
    /// [`SessionActive`](Self::SessionActive).
    pub fn may_become(self, next: Self) -> bool {
        use SessionState::{NoSession, Saved, Saving, SessionActive};
        matches!(
            (self, next),
            (NoSession, SessionActive)
                | (SessionActive, Saving)
                | (Saving, Saved | SessionActive)
                | (Saved, Saving)
        )
    }
}

/// Returns messages as JSON text.
///
/// # Errors
/// The messages cannot be written as JSON. This does not happen with messages that a run made or that were read from
/// JSON.
pub fn save_messages(messages: &[AgentMessage]) -> Result<String, serde_json::Error> {
    serde_json::to_string(messages)
}

/// Returns the messages of a JSON text that [`save_messages`] wrote.
///
/// # Errors
/// The text is not a list of messages.
pub fn restore_messages(json: &str) -> Result<Vec<AgentMessage>, serde_json::Error> {
    serde_json::from_str(json)
}

/// A serde adapter like [`iso8601`], for optional times.
mod optional_iso8601 {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Timestamp, iso8601};

    #[derive(Serialize, Deserialize)]
    struct Time(#[serde(with = "iso8601")] Timestamp);

    pub(super) fn serialize<S: Serializer>(t: &Option<Timestamp>, s: S) -> Result<S::Ok, S::Error> {
        t.map(Time).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<Time>::deserialize(d)?.map(|time| time.0))
    }
}
