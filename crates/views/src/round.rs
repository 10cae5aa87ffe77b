//! Conversation rounds: the log of a run as question, thoughts, tool calls and answer. They are computed from
//! the log and not stored.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    AssistantMessage, CallId, Content, Message, OutcomeStatus, PromptSource, Record, RecordBody, SessionId,
    StopReason, Timestamp, ToolCall, ToolResult,
};
use serde::{Deserialize, Serialize};

/// One question to an agent, with all events up to its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConversationRound {
    /// The id of the round. The first round has the id of the run, such as `run_1`. The second has `run_1.1`, the third
    /// `run_1.2`, and so on.
    pub round_id: String,
    /// The session.
    pub conversation_id: SessionId,
    /// The person's message. Steering messages during the round follow on further lines.
    pub user_message: String,
    /// The model's thoughts: its thinking, and the text of answers with tool calls.
    pub thoughts: Vec<String>,
    /// The tool calls, in the model's order.
    pub tool_calls: Vec<ToolCall>,
    /// The text of each tool result that the model read, in the order in which the results came.
    pub tool_observations: Vec<String>,
    /// The names of the skills that were activated.
    pub skill_activations: Vec<String>,
    /// The answer; `None` before there is one.
    pub final_answer: Option<String>,
    /// The number of tokens of the model calls of the round.
    pub tokens_used: u64,
    /// The time from the question to the last record of the round, in milliseconds.
    pub latency_ms: u64,
    /// The status of the round.
    pub status: RoundStatus,
}

/// The status of a [`ConversationRound`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RoundStatus {
    /// The model was not yet asked.
    #[default]
    Pending,
    /// The agent works, or waits for a person.
    InProgress,
    /// The round has its answer.
    Completed,
    /// The round ended without a final answer.
    Error,
}

impl ConversationRound {
    /// Returns the rounds of a run from its records. A steering message belongs to the current round; a
    /// follow-up starts the next round.
    pub fn of(records: &[Arc<Record>]) -> Vec<Self> {
        let mut fold = Fold::default();
        for record in records {
            fold.push(record);
        }
        fold.rounds
    }

    fn is_open(&self) -> bool {
        self.final_answer.is_none() && self.status != RoundStatus::Error
    }

    fn ask(&mut self, text: &str) {
        if !self.user_message.is_empty() {
            self.user_message.push('\n');
        }
        self.user_message.push_str(text);
    }

    fn answered(&mut self, message: &AssistantMessage) {
        self.tokens_used = self.tokens_used.saturating_add(message.usage.total());
        let calls: Vec<_> = message.tool_calls().map(ToolCall::target).collect();
        for block in &message.content {
            match block {
                Content::Thinking { thinking, .. } => self.think(thinking),
                Content::Text { text } if !calls.is_empty() => self.think(text),
                _ => {}
            }
        }
        let is_answer = match message.stop_reason {
            StopReason::Error | StopReason::Aborted | StopReason::Pause => false,
            StopReason::Refusal => message.error_message.is_none(),
            _ => true,
        };
        if calls.is_empty() && is_answer {
            self.final_answer = Some(message.text());
            self.status = RoundStatus::Completed;
        }
        self.tool_calls.extend(calls);
    }

    fn think(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.thoughts.push(text.to_owned());
        }
    }

    /// Reopens the round, because the loop sent a message after the answer, so the answer was not final.
    fn reopen(&mut self) {
        if let Some(text) = self.final_answer.take() {
            self.think(&text);
            self.status = RoundStatus::InProgress;
        }
    }
}

/// The tool that activates a skill, and the argument with the name of the skill.
const ACTIVATE_SKILL: (&str, &str) = ("activate_skill", "skill_name");

#[derive(Default)]
struct Fold {
    run: String,
    conversation: Option<SessionId>,
    rounds: Vec<ConversationRound>,
    began: Timestamp,
    /// The follow-ups that wait for the end of the current round.
    waiting: Vec<(String, Timestamp)>,
    calls: HashMap<CallId, ToolCall>,
}

impl Fold {
    fn push(&mut self, record: &Record) {
        match &record.body {
            RecordBody::RunStarted(started) => {
                self.run = started.run.to_string();
                self.conversation = Some(started.session.clone());
            }
            RecordBody::MessageAdded { message, source } => {
                if let Some(message) = message.as_llm() {
                    self.prompted(message, *source, record.at);
                }
            }
            RecordBody::ModelCallStarted { .. } => self.model_call_started(),
            RecordBody::ModelCallFinished { command, message, .. } => {
                let calls = message.tool_calls().map(ToolCall::target);
                self.calls.extend((0..).map(|i| CallId::new(*command, i)).zip(calls));
                self.with_round(|r| r.answered(message));
            }
            RecordBody::ToolCallFinished { call, result } | RecordBody::ToolCallRefused { call, result } => {
                self.observed(call, result);
            }
            RecordBody::HintAdded { .. } => self.with_round(ConversationRound::reopen),
            RecordBody::RunFinished(outcome) => self.with_round(|r| {
                let finished = outcome.status == OutcomeStatus::Finished;
                r.status = if finished { RoundStatus::Completed } else { RoundStatus::Error };
                r.final_answer = outcome.last_text().map(str::to_owned);
            }),
            RecordBody::Resumed => self.with_round(|r| {
                if r.status == RoundStatus::Error {
                    r.status = RoundStatus::InProgress;
                    r.final_answer = None;
                }
            }),
            _ => {}
        }
        let began = self.began;
        if !matches!(record.body, RecordBody::MessageAdded { .. }) {
            self.with_round(|r| r.latency_ms = record.at.millis_since(began));
        }
    }

    fn with_round(&mut self, change: impl FnOnce(&mut ConversationRound)) {
        if let Some(round) = self.rounds.last_mut() {
            change(round);
        }
    }

    fn prompted(&mut self, message: &Message, source: PromptSource, at: Timestamp) {
        // Without texts from the memory, which are not a part of the person's message.
        let text = Content::join_text(message.own_content()).into_owned();
        match self.rounds.last_mut() {
            Some(round) if round.status == RoundStatus::Pending => round.ask(&text),
            Some(round) if round.is_open() && source == PromptSource::Steer => round.ask(&text),
            Some(round) if round.is_open() => self.waiting.push((text, at)),
            _ => self.begin(&text, at),
        }
    }

    fn begin(&mut self, text: &str, at: Timestamp) {
        let Some(conversation_id) = self.conversation.clone() else { return };
        let round_id = match self.rounds.len() {
            0 => self.run.clone(),
            n => format!("{}.{n}", self.run),
        };
        self.began = at;
        self.rounds.push(ConversationRound {
            round_id,
            conversation_id,
            user_message: text.to_owned(),
            thoughts: Vec::new(),
            tool_calls: Vec::new(),
            tool_observations: Vec::new(),
            skill_activations: Vec::new(),
            final_answer: None,
            tokens_used: 0,
            latency_ms: 0,
            status: RoundStatus::Pending,
        });
    }

    /// Handles the start of a model call. If the current round has ended, the follow-ups that waited begin the next
    /// round.
    fn model_call_started(&mut self) {
        if self.rounds.last().is_some_and(|r| !r.is_open()) {
            for (i, (text, at)) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
                match i {
                    0 => self.begin(&text, at),
                    _ => self.with_round(|r| r.ask(&text)),
                }
            }
        }
        self.with_round(|r| {
            if r.status == RoundStatus::Pending {
                r.status = RoundStatus::InProgress;
            }
        });
    }

    fn observed(&mut self, call: &CallId, result: &ToolResult) {
        let Some(tool_call) = self.calls.remove(call) else { return };
        let (tool, argument) = ACTIVATE_SKILL;
        let skill = tool_call.arguments.get(argument).and_then(|name| name.as_str()).map(str::to_owned);
        let activated = tool_call.name == tool && !result.is_error();
        self.with_round(|r| {
            r.tool_observations.push(result.text());
            r.skill_activations.extend(skill.filter(|_| activated));
        });
    }
}
