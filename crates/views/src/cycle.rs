//! Cycles: the log of a run as one structured entry per turn, with prompt, thought, calls and results. Cycles
//! are a view of the log for people and for log analysis, and are not stored.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    AssistantMessage, CallId, CommandId, Content, Json, LoopId, Message, ReactState, Record, RecordBody,
    RunId, RunStarted, SessionId, Timestamp, ToolCall, ToolResult, ToolResultStatus, Usage, iso8601, shorten,
};
use serde::{Deserialize, Serialize};

/// One turn of a run: an answer of the model and the results of its tool calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cycle {
    /// The time of the model request.
    #[serde(with = "iso8601")]
    pub timestamp: Timestamp,
    /// The id of the run, which correlates entries, log lines and tool calls.
    pub correlation_id: RunId,
    /// Always `react-loop`.
    pub component: String,
    /// The number of the turn, from 1.
    pub cycle: u32,
    /// The last state of the loop in this turn.
    pub state: ReactState,
    /// The new text that the model reads in this turn, cut to 200 characters.
    pub prompt_preview: String,
    /// The model's thoughts: its thinking, and the text of an answer with tool calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thought: String,
    /// The text of the answer.
    pub llm_response: String,
    /// The tool calls in the answer.
    pub parsed_action: Vec<CycleAction>,
    /// The results, in the order in which the tool calls ended.
    pub tool_result: Vec<CycleObservation>,
    /// The session, the run, and the attempts of the model call.
    pub context: CycleContext,
    /// The durations and the tokens of the turn.
    pub performance: CyclePerformance,
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CycleAction {
    /// The name of the tool.
    pub tool: String,
    /// The arguments, as the model gave them.
    pub arguments: Json,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleObservation {
    /// The name of the tool.
    pub tool: String,
    /// The status of the call.
    pub status: ToolResultStatus,
    /// The text that the model reads.
    pub content: String,
}

/// The context of a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleContext {
    /// The session.
    pub session_id: SessionId,
    /// The display name of the run.
    pub loop_id: LoopId,
    /// The [`content_hash`](archon_types::Request::content_hash) of the last request of the turn.
    pub request_hash: String,
    /// The number of attempts of the model call.
    pub attempts: u32,
    /// The errors of failed attempts, and of failed tool calls that were retried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// The durations and the tokens of a cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CyclePerformance {
    /// The time from the first request to the answer, in milliseconds.
    pub model_ms: u64,
    /// The time from the answer to the last tool result, in milliseconds.
    pub tools_ms: u64,
    /// The tokens of the answer and of its request.
    pub usage: Usage,
    /// The metrics of each tool call.
    pub tool_calls: Vec<ToolCallRecord>,
}

/// The metrics of one tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCallRecord {
    /// The name of the tool.
    pub name: String,
    /// The arguments; text and nested values are cut to 100 characters.
    pub args_summary: Json,
    /// The milliseconds from the first start of the call to its end; 0 for a call that never started.
    pub duration_ms: u64,
    /// True if the call succeeded.
    pub success: bool,
    /// The status of the call.
    pub result_status: ToolResultStatus,
    /// The number of characters of the result.
    pub result_chars: u64,
    /// The tokens of the whole answer that made this call, and of its request. Other calls in the same answer have the
    /// same number.
    pub token_attribution: Usage,
}

impl Cycle {
    /// Returns the cycles of a run from its records.
    pub fn of(records: &[Arc<Record>]) -> Vec<Self> {
        let mut fold = Fold::default();
        for record in records {
            fold.push(record);
        }
        fold.cycles
    }

    /// Returns the cycle as lines of text: failed attempts, thought, tool calls, results, answer.
    pub fn lines(&self) -> Vec<String> {
        let failed = self.context.failures.iter().map(|failure| format!("Failed: {failure}"));
        let mut lines: Vec<String> = failed.collect();
        if !self.thought.is_empty() {
            lines.push(format!("Thought: {}", self.thought));
        }
        lines.extend(self.parsed_action.iter().map(|a| format!("Action: {} {}", a.tool, a.arguments)));
        lines.extend(self.tool_result.iter().map(|o| format!("Observation: {}", o.content)));
        if self.parsed_action.is_empty() && !self.llm_response.is_empty() {
            lines.push(format!("Answer: {}", self.llm_response));
        }
        lines
    }
}

#[derive(Default)]
struct Fold {
    started: Option<Box<RunStarted>>,
    cycles: Vec<Cycle>,
    /// The texts that the model has not read yet.
    unread: Vec<String>,
    asked_at: Timestamp,
    /// The command and the attempt of the request that the model is working on.
    asking: Option<(CommandId, u32)>,
    answered_at: Timestamp,
    calls: HashMap<CallId, Call>,
}

struct Call {
    call: ToolCall,
    started_at: Option<Timestamp>,
}

impl Fold {
    fn push(&mut self, record: &Record) {
        let at = record.at;
        match &record.body {
            RecordBody::RunStarted(started) => self.started = Some(started.clone()),
            RecordBody::MessageAdded { message, .. } => {
                self.unread.extend(message.as_llm().map(Message::text));
            }
            RecordBody::HintAdded { text } | RecordBody::ContextStatus { text, .. } => {
                self.unread.push(text.clone());
            }
            RecordBody::ModelCallStarted { command, attempt, turn, request_hash } => {
                self.asking = Some((*command, *attempt));
                self.model_call_started(*attempt, *turn, request_hash, at);
            }
            RecordBody::ModelCallFinished { command, attempt, message }
                if self.asking == Some((*command, *attempt)) =>
            {
                self.asking = None;
                let calls = message.tool_calls().map(|call| Call { call: call.target(), started_at: None });
                self.calls = (0..).map(|index| CallId::new(*command, index)).zip(calls).collect();
                self.answered_at = at;
                let model_ms = at.millis_since(self.asked_at);
                self.with_last(|cycle| cycle.answered(message, model_ms));
            }
            RecordBody::ModelCallFailed { failure, .. } => self.with_last(|cycle| {
                cycle.context.failures.push(failure.message.clone());
                cycle.state = ReactState::Error;
            }),
            RecordBody::ModelCallLost { .. } => {
                self.with_last(|cycle| cycle.context.failures.push("the answer was lost".to_owned()));
            }
            RecordBody::ToolCallStarted { call, .. } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.started_at.get_or_insert(at);
                }
            }
            RecordBody::ToolCallFailed { result, .. } => {
                self.with_last(|cycle| cycle.context.failures.push(result.text()));
            }
            RecordBody::ToolCallFinished { call, result } | RecordBody::ToolCallRefused { call, result } => {
                self.observed(call, result, at);
            }
            RecordBody::RunFinished(outcome) => self.with_last(|cycle| {
                cycle.state = if outcome.is_finished() { ReactState::Finished } else { ReactState::Error };
            }),
            _ => {}
        }
    }

    fn with_last(&mut self, change: impl FnOnce(&mut Cycle)) {
        if let Some(cycle) = self.cycles.last_mut() {
            change(cycle);
        }
    }

    fn model_call_started(&mut self, attempt: u32, turn: u32, request_hash: &str, at: Timestamp) {
        let number = turn.saturating_add(1);
        if attempt > 0
            && let Some(cycle) = self.cycles.last_mut().filter(|cycle| cycle.cycle == number)
        {
            cycle.context.attempts += 1;
            request_hash.clone_into(&mut cycle.context.request_hash);
            cycle.state = ReactState::Thinking;
            return;
        }
        let Some(started) = &self.started else { return };
        self.asked_at = at;
        self.cycles.push(Cycle {
            timestamp: at,
            correlation_id: started.run.clone(),
            component: "react-loop".to_owned(),
            cycle: number,
            state: ReactState::Thinking,
            prompt_preview: shorten(&std::mem::take(&mut self.unread).join("\n"), PREVIEW, "..."),
            thought: String::new(),
            llm_response: String::new(),
            parsed_action: Vec::new(),
            tool_result: Vec::new(),
            context: CycleContext {
                session_id: started.session.clone(),
                loop_id: started.loop_id.clone(),
                request_hash: request_hash.to_owned(),
                attempts: 1,
                failures: Vec::new(),
            },
            performance: CyclePerformance::default(),
        });
    }

    fn observed(&mut self, id: &CallId, result: &ToolResult, at: Timestamp) {
        let Some(Call { call, started_at }) = self.calls.remove(id) else { return };
        let (text, since) = (result.text(), at.millis_since(self.answered_at));
        self.unread.push(text.clone());
        let all_there = self.calls.is_empty();
        self.with_last(|cycle| {
            cycle.performance.tools_ms = since;
            cycle.performance.tool_calls.push(ToolCallRecord {
                name: call.name.clone(),
                args_summary: summary(&call.arguments),
                duration_ms: started_at.map_or(0, |started| at.millis_since(started)),
                success: !result.is_error(),
                result_status: result.status,
                result_chars: text.chars().count() as u64,
                token_attribution: cycle.performance.usage,
            });
            cycle.tool_result.push(CycleObservation {
                tool: call.name,
                status: result.status,
                content: text,
            });
            if all_there {
                cycle.state = ReactState::Observing;
            }
        });
    }
}

impl Cycle {
    fn answered(&mut self, message: &AssistantMessage, model_ms: u64) {
        self.performance.model_ms = model_ms;
        self.performance.usage = message.usage;
        self.llm_response = message.text();
        let action = |call: &ToolCall| {
            let ToolCall { name: tool, arguments, .. } = call.target();
            CycleAction { tool, arguments }
        };
        self.parsed_action = message.tool_calls().map(action).collect();
        let acts = !self.parsed_action.is_empty();
        let thought = message.content.iter().filter_map(|block| match block {
            Content::Thinking { thinking, .. } => Some(thinking.trim()),
            Content::Text { text } if acts => Some(text.trim()),
            _ => None,
        });
        self.thought = thought.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        if acts {
            self.state = ReactState::Acting;
        }
    }
}

fn summary(arguments: &Json) -> Json {
    let short = |value: &Json| match value {
        Json::String(text) => Json::String(shorten(text, ARGUMENT, "...")),
        Json::Array(_) | Json::Object(_) => Json::String(shorten(&value.to_string(), ARGUMENT, "...")),
        other => other.clone(),
    };
    match arguments {
        Json::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), short(value))).collect(),
        other => short(other),
    }
}

/// The maximum number of characters of the prompt preview.
const PREVIEW: usize = 200;

/// The maximum number of characters of an argument.
const ARGUMENT: usize = 100;
