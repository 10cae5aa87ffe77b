//! `AgentEvent`: the event stream of other agent systems, computed from ours.
//!
//! [`AgentEvents`] folds records and deltas into it. Nothing here is stored.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, AgentMessage, AssistantMessage, CallId, CommandId, ContinuationKind, DeltaKind, Event, Json,
    LoopId, Message, Origin, Record, RecordBody, RunId, SessionId, StreamDelta, Timestamp, ToolCall,
    ToolCallId, ToolResult, TurnTrigger, Usage, iso8601,
};

/// What happens in a loop, for user interfaces and recorders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are named by their types")]
pub enum AgentEvent {
    /// A loop begins. `continuation_kind` is absent for the first loop of a session.
    AgentStart {
        agent_id: AgentId,
        session_id: SessionId,
        loop_id: LoopId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_loop_id: Option<RunId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continuation_kind: Option<ContinuationKind>,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Json>,
    },
    /// A loop ended. `messages` are all that it added to the conversation.
    AgentEnd {
        loop_id: LoopId,
        messages: Vec<AgentMessage>,
        usage: Usage,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rejection: Option<String>,
    },
    /// A turn begins.
    TurnStart {
        loop_id: LoopId,
        turn_index: u32,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
        triggered_by: TurnTrigger,
    },
    /// A turn ended, its tool results are there.
    TurnEnd {
        loop_id: LoopId,
        message: AgentMessage,
        usage: Usage,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
        tool_results: Vec<Message>,
    },
    /// A message begins; an assistant message is still empty here.
    MessageStart { loop_id: LoopId, message: AgentMessage },
    /// A piece of the assistant message arrived. The whole of it comes with `MessageEnd`.
    MessageUpdate { loop_id: LoopId, delta: StreamDelta },
    /// A message is complete.
    MessageEnd { loop_id: LoopId, message: AgentMessage },
    /// A tool starts.
    ToolExecutionStart { loop_id: LoopId, tool_call_id: ToolCallId, tool_name: String, args: Json },
    /// A tool has part of its result.
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
    /// A tool says something to the person.
    ProgressMessage { loop_id: LoopId, tool_call_id: ToolCallId, tool_name: String, text: String },
    /// A filter refused the prompt.
    InputRejected { loop_id: LoopId, reason: String },
    /// Several loops begin side by side.
    ParallelLoopStart {
        session_id: SessionId,
        loop_ids: Vec<LoopId>,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
    },
    /// One of several loops was chosen.
    ParallelLoopEnd {
        session_id: SessionId,
        selected_loop_id: LoopId,
        selected_config_index: usize,
        evaluation_usage: Usage,
        #[serde(with = "iso8601")]
        timestamp: Timestamp,
    },
}

/// Folds the events of one run into [`AgentEvent`]s.
#[derive(Clone, Debug, Default)]
pub struct AgentEvents {
    loop_id: Option<LoopId>,
    first_turn: TurnTrigger,
    turns: u32,
    open_turn: Option<OpenTurn>,
    streaming: Option<CommandId>,
    messages: Vec<AgentMessage>,
    usage: Usage,
}

#[derive(Clone, Debug, Default)]
struct OpenTurn {
    answer: Option<Box<AssistantMessage>>,
    calls: HashMap<CallId, ToolCall>,
    unanswered: usize,
    results: Vec<(CallId, Message)>,
}

impl AgentEvents {
    /// A projection at the start of a run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the run's next event and returns what it means, in order.
    pub fn push(&mut self, event: &Event) -> Vec<AgentEvent> {
        let mut out = Vec::new();
        match event {
            Event::Record { run, record } => self.record(run, record, &mut out),
            Event::Delta(delta) => self.delta(&delta.kind, delta.command, &mut out),
        }
        out
    }

    fn loop_id(&self) -> LoopId {
        self.loop_id.clone().unwrap_or_else(|| LoopId::new(""))
    }

    fn record(&mut self, _run: &RunId, record: &Record, out: &mut Vec<AgentEvent>) {
        match &record.body {
            RecordBody::RunStarted(started) => {
                self.loop_id = Some(started.loop_id.clone());
                self.first_turn = TurnTrigger::first(&started.origin, started.first_turn);
                let (parent, continuation) = match &started.origin {
                    Origin::Prompt => (None, None),
                    Origin::Continues { run, continuation, .. } => (Some(run), Some(continuation.clone())),
                    Origin::CalledBy { run, .. } => (Some(run), None),
                };
                out.push(AgentEvent::AgentStart {
                    agent_id: started.agent.clone(),
                    session_id: started.session.clone(),
                    loop_id: started.loop_id.clone(),
                    parent_loop_id: parent.cloned(),
                    continuation_kind: continuation,
                    timestamp: record.at,
                    metadata: None,
                });
            }
            RecordBody::Prompted { message, .. } => {
                self.open_turn(record.at, out);
                self.whole_message(message.clone(), out);
            }
            RecordBody::Noted { text } => {
                let message = Message::user(text.clone(), record.at);
                self.whole_message(message.into(), out);
            }
            RecordBody::ModelAsked { .. } => self.open_turn(record.at, out),
            RecordBody::ModelAnswered { command, message, .. } => {
                self.answered(*command, message, record.at, out);
            }
            RecordBody::ModelFailed { command, .. } if self.streaming == Some(*command) => {
                self.streaming = None;
            }
            RecordBody::ToolStarted { call, attempt: 0, .. } => self.tool_started(call, out),
            RecordBody::ToolFinished { call, result } => {
                self.tool_ended(call, result, true, record.at, out);
            }
            RecordBody::ToolRefused { call, result } => {
                self.tool_ended(call, result, false, record.at, out);
            }
            RecordBody::RunFinished(outcome) => {
                self.close_turn(record.at, out);
                out.push(AgentEvent::AgentEnd {
                    loop_id: self.loop_id(),
                    messages: std::mem::take(&mut self.messages),
                    usage: outcome.usage,
                    timestamp: record.at,
                    rejection: None,
                });
            }
            _ => {}
        }
    }

    fn delta(&mut self, kind: &DeltaKind, command: CommandId, out: &mut Vec<AgentEvent>) {
        let delta = match kind {
            DeltaKind::Text { text } => StreamDelta::Text { delta: text.clone() },
            DeltaKind::Thinking { text } => StreamDelta::Thinking { delta: text.clone() },
            DeltaKind::Arguments { text, .. } => StreamDelta::ToolCallDelta { delta: text.clone() },
            DeltaKind::Progress { call, text } => {
                if let Some(call) = self.open_turn.as_ref().and_then(|t| t.calls.get(call)) {
                    out.push(AgentEvent::ProgressMessage {
                        loop_id: self.loop_id(),
                        tool_call_id: call.id.clone(),
                        tool_name: call.name.clone(),
                        text: text.clone(),
                    });
                }
                return;
            }
            DeltaKind::ToolCall { .. } => return self.start_answer(command, out),
        };
        self.start_answer(command, out);
        out.push(AgentEvent::MessageUpdate { loop_id: self.loop_id(), delta });
    }

    fn start_answer(&mut self, command: CommandId, out: &mut Vec<AgentEvent>) {
        if self.streaming != Some(command) {
            self.streaming = Some(command);
            let message = Message::Assistant(AssistantMessage::default()).into();
            out.push(AgentEvent::MessageStart { loop_id: self.loop_id(), message });
        }
    }

    fn open_turn(&mut self, at: Timestamp, out: &mut Vec<AgentEvent>) {
        if self.open_turn.is_some() {
            return;
        }
        self.open_turn = Some(OpenTurn::default());
        let triggered_by = if self.turns == 0 { self.first_turn } else { TurnTrigger::Continuation };
        out.push(AgentEvent::TurnStart {
            loop_id: self.loop_id(),
            turn_index: self.turns,
            timestamp: at,
            triggered_by,
        });
        self.turns += 1;
    }

    fn whole_message(&mut self, message: AgentMessage, out: &mut Vec<AgentEvent>) {
        out.push(AgentEvent::MessageStart { loop_id: self.loop_id(), message: message.clone() });
        out.push(AgentEvent::MessageEnd { loop_id: self.loop_id(), message: message.clone() });
        self.messages.push(message);
    }

    fn answered(
        &mut self,
        command: CommandId,
        message: &AssistantMessage,
        at: Timestamp,
        out: &mut Vec<AgentEvent>,
    ) {
        self.start_answer(command, out);
        self.streaming = None;
        self.usage += message.usage;
        let whole: AgentMessage = Message::Assistant(message.clone()).into();
        out.push(AgentEvent::MessageEnd { loop_id: self.loop_id(), message: whole.clone() });
        self.messages.push(whole);
        let turn = self.open_turn.get_or_insert_default();
        turn.calls = (0..).map(|i| CallId::new(command, i)).zip(message.tool_calls().cloned()).collect();
        turn.unanswered = turn.calls.len();
        turn.answer = Some(Box::new(message.clone()));
        if turn.unanswered == 0 {
            self.close_turn(at, out);
        }
    }

    fn tool_started(&mut self, call: &CallId, out: &mut Vec<AgentEvent>) {
        if let Some(tool_call) = self.open_turn.as_ref().and_then(|t| t.calls.get(call)) {
            out.push(AgentEvent::ToolExecutionStart {
                loop_id: self.loop_id(),
                tool_call_id: tool_call.id.clone(),
                tool_name: tool_call.name.clone(),
                args: tool_call.arguments.clone(),
            });
        }
    }

    fn tool_ended(
        &mut self,
        call: &CallId,
        result: &ToolResult,
        started: bool,
        at: Timestamp,
        out: &mut Vec<AgentEvent>,
    ) {
        let loop_id = self.loop_id();
        let Some(turn) = &mut self.open_turn else { return };
        let Some(tool_call) = turn.calls.get(call) else { return };
        let message = Message::tool_result(tool_call, result, at);
        if started {
            out.push(AgentEvent::ToolExecutionEnd {
                loop_id,
                tool_call_id: tool_call.id.clone(),
                tool_name: tool_call.name.clone(),
                result: result.clone(),
                is_error: result.is_error(),
                child_loop_id: result.child_run.clone(),
            });
        }
        turn.results.push((call.clone(), message.clone()));
        turn.unanswered = turn.unanswered.saturating_sub(1);
        let done = turn.unanswered == 0;
        self.whole_message(message.into(), out);
        if done {
            self.close_turn(at, out);
        }
    }

    fn close_turn(&mut self, at: Timestamp, out: &mut Vec<AgentEvent>) {
        let Some(mut turn) = self.open_turn.take() else { return };
        let Some(answer) = turn.answer else { return };
        turn.results.sort_by_key(|(call, _)| (call.command, call.index));
        out.push(AgentEvent::TurnEnd {
            loop_id: self.loop_id(),
            usage: answer.usage,
            message: Message::Assistant(*answer).into(),
            timestamp: at,
            tool_results: turn.results.into_iter().map(|(_, m)| m).collect(),
        });
    }
}
