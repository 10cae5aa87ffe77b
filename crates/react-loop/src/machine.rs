//! The machine: what is to be done next follows from the records so far, and from nothing else.
//!
//! No time, no chance, no I/O: they come in with the records. [`ReactMachine::apply`] takes a record,
//! [`ReactMachine::next`] says what it leads to. An answer to a command that is closed changes
//! nothing. Whatever the records say, the machine ends within its limits, and no request holds a
//! tool call without its result.

use std::sync::Arc;

use archon_types::{
    AgentMessage, AssistantMessage, CallId, CommandId, ContinuationKind, Effect, Encoded, LimitReached,
    Message, OnLimit, Origin, Outcome, OutcomeStatus, ReactState, Record, RecordBody, Request, RunConfig,
    RunStarted, StopReason, Timestamp, ToolMode, ToolResult, ToolResultStatus, metadata,
};
use serde::{Deserialize, Serialize};

use crate::{
    CallStage, CallState, ContextManager, ContextParts, History, Messages, SummaryDue, ToolGate,
    action_parser::{Action, parse_action},
    limits::Meter,
    retry, text_mode,
    window::unique_calls,
};

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a command is made and carried out at once, never kept")]
#[non_exhaustive]
pub enum Command<'a> {
    /// Append this derived record.
    Append(RecordBody),
    /// Append `ModelAsked` and send [`ReactMachine::request`] to the model.
    AskModel {
        /// The command that the answer must name.
        command: CommandId,
        /// From 0.
        attempt: u32,
        /// The turn, from 0.
        turn: u32,
    },
    /// Ask the model to sum up old turns, then append `Summarized`.
    Summarize(SummaryDue),
    /// Bring every call that has no result to one.
    RunCalls(&'a [CallState]),
    /// Wait, then append `ClockRead`.
    WaitUntil(Timestamp),
    /// Wait for a prompt: nothing was asked yet.
    WaitForPrompt,
    /// Nothing is left to do.
    Done(&'a Outcome),
}

/// The state of one run: a fold of its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReactMachine {
    run: archon_types::RunId,
    config: RunConfig,
    system: Option<Arc<Encoded<String>>>,
    window: ContextManager,
    phase: Phase,
    meter: Meter,
    next_command: u64,
    /// Prompts that came while something else was under way.
    queued: Vec<Message>,
    cancelled: bool,
    limit: Option<LimitReached>,
    last_answer: String,
}

/// Where the run stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
enum Phase {
    /// Nobody asked anything yet.
    Fresh,
    /// The model's turn, unless a limit says otherwise.
    Ready,
    /// A request is with the model.
    Asking { command: CommandId, attempt: u32 },
    /// A failed request waits to be sent again.
    BackingOff { command: CommandId, attempt: u32, until: Timestamp },
    /// The calls of an answer are on their way to their results.
    Acting { answer: Box<AssistantMessage>, calls: Vec<CallState> },
    /// The loop has something to tell the model; then `then` follows.
    Noting { text: String, then: Box<Phase> },
    /// The outcome is clear and its record is due.
    Finishing(Box<Outcome>),
    /// The last record is written.
    Ended(Box<Outcome>),
}

impl ReactMachine {
    /// The machine of a run that begins, in a conversation that may have begun before.
    pub fn new(started: &RunStarted, at: Timestamp, history: History) -> Self {
        Self::with_parts(started, at, history, ContextParts::default())
    }

    /// As [`new`](Self::new), with parts of the program's own for the context window.
    pub fn with_parts(started: &RunStarted, at: Timestamp, history: History, parts: ContextParts) -> Self {
        let mut meter = Meter::default();
        meter.start(at);
        // A branch spends what is left to the run that it leaves; the next prompt has a budget of its own.
        let is_branch =
            matches!(started.origin, Origin::Continues { continuation: ContinuationKind::Branch { .. }, .. });
        if is_branch {
            meter.carry(history.spent);
        }
        let unanswered = is_branch && history.wants_answer();
        let system = match started.config.tool_mode {
            ToolMode::Text => Some(Arc::new(Encoded::new(text_mode::system_prompt(&started.config)))),
            _ => started.config.system.clone(),
        };
        let text = system.as_ref().map(|system| system.as_str());
        Self {
            run: started.run.clone(),
            config: started.config.clone(),
            window: ContextManager::new(&started.config, text, history, parts),
            system,
            phase: if unanswered { Phase::Ready } else { Phase::Fresh },
            meter,
            next_command: 0,
            queued: Vec::new(),
            cancelled: false,
            limit: None,
            last_answer: String::new(),
        }
    }

    /// Takes one record. Records that answer nothing that is open change nothing.
    pub fn apply(&mut self, record: &Record) {
        self.meter.see(record.at);
        match &record.body {
            RecordBody::Prompted { message, .. } => self.prompted(message),
            RecordBody::ModelAsked { command, attempt, .. } => self.asked(*command, *attempt),
            RecordBody::ModelAnswered { command, attempt, message } if self.is_asking(*command, *attempt) => {
                self.answered(*command, message);
            }
            RecordBody::ModelFailed { command, attempt, failure } if self.is_asking(*command, *attempt) => {
                self.failed(*command, *attempt, failure, record.at);
            }
            RecordBody::CallLost { command, attempt } if self.is_asking(*command, *attempt) => {
                self.phase = Phase::BackingOff { command: *command, attempt: *attempt, until: record.at };
            }
            RecordBody::ToolStarted { call, attempt, effect, .. } => {
                self.tool_started(*call, *attempt, *effect)
            }
            RecordBody::ToolFinished { call, result } => self.tool_ended(*call, result, record.at),
            RecordBody::ToolRefused { call, result } => self.tool_ended(*call, result, record.at),
            RecordBody::Noted { text } => self.noted(text, record.at),
            RecordBody::Summarized(summary) => {
                self.meter.usage += summary.usage;
                self.window.summarized(summary);
            }
            RecordBody::Compacted(compaction) => self.window.compacted(compaction, record.at),
            RecordBody::ContextStatus { level, text } if !matches!(self.phase, Phase::Ended(_)) => {
                self.window.told(*level, text, record.at);
            }
            RecordBody::CancelRequested { .. } => self.cancelled = true,
            RecordBody::Resumed => self.resumed(record.at),
            RecordBody::LimitReached(limit) => self.limit_reached(*limit),
            RecordBody::RunFinished(outcome) => self.phase = Phase::Ended(outcome.clone()),
            _ => {}
        }
    }

    /// What is to be done now. Asking again without a new record gives the same answer.
    pub fn next(&self) -> Command<'_> {
        match &self.phase {
            Phase::Ended(outcome) => Command::Done(outcome),
            Phase::Finishing(outcome) => Command::Append(RecordBody::RunFinished(outcome.clone())),
            Phase::Acting { calls, .. } => self.next_of_calls(calls),
            _ if self.cancelled => self.finish(self.outcome(OutcomeStatus::Cancelled)),
            Phase::Fresh => Command::WaitForPrompt,
            Phase::Noting { text, .. } => Command::Append(RecordBody::Noted { text: text.clone() }),
            Phase::Ready => match self.meter.reached(&self.config.limits) {
                Some(limit) if self.limit.is_none() => Command::Append(RecordBody::LimitReached(limit)),
                _ => self.ask_in_window(),
            },
            Phase::BackingOff { until, .. } if self.meter.now() < *until => Command::WaitUntil(*until),
            Phase::BackingOff { command, attempt, .. } => match self.window.recovery() {
                Some(record) => Command::Append(record),
                None => self.ask(*command, attempt + 1),
            },
            // Only a driver that lost its place asks while an answer is on its way; the deadline
            // is what ends the wait.
            Phase::Asking { .. } => Command::WaitUntil(self.deadline()),
        }
    }

    /// The request that [`Command::AskModel`] means.
    pub fn request(&self) -> Request {
        let mut request = Request::default();
        request.model.clone_from(&self.config.model);
        request.system.clone_from(&self.system);
        request.messages = self.window.messages().clone();
        request.options = self.config.options.clone();
        // A forced summary is an answer, so no tools are offered for it.
        if self.limit.is_none() && self.config.tool_mode == ToolMode::Native {
            request.tools = self.config.tools.clone();
        }
        request
    }

    /// The conversation so far, as the next request or a run that goes on from here carries it.
    pub fn messages(&self) -> &Messages {
        self.window.messages()
    }

    /// The conversation's window: what the model sees, and how full it is.
    pub fn window(&self) -> &ContextManager {
        &self.window
    }

    /// What a run that goes on from here begins with. Calls without a result are not carried over.
    pub fn into_history(mut self) -> History {
        let open: Vec<_> = self.calls().iter().filter(|c| c.result().is_none()).map(|c| c.id).collect();
        for call in open {
            self.tool_ended(call, &ToolResult::cancelled(NOT_CARRIED_OVER), self.meter.now());
        }
        let spent = self.meter.spent();
        History { spent, ..self.window.into_history() }
    }

    /// Turns that were taken in this run.
    pub(crate) fn turns(&self) -> u32 {
        self.meter.turns
    }

    /// Whether nothing is under way: no request, no call.
    pub(crate) fn is_at_rest(&self) -> bool {
        !matches!(self.phase, Phase::Asking { .. } | Phase::BackingOff { .. } | Phase::Acting { .. })
    }

    /// With what the run works.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// When the run's time is up.
    pub fn deadline(&self) -> Timestamp {
        self.meter.deadline(&self.config.limits)
    }

    /// The request that is with the model, if one is.
    pub fn open_request(&self) -> Option<(CommandId, u32)> {
        match self.phase {
            Phase::Asking { command, attempt } => Some((command, attempt)),
            _ => None,
        }
    }

    /// The calls of the turn that is under way, with their results as far as there are any.
    pub(crate) fn calls(&self) -> &[CallState] {
        match &self.phase {
            Phase::Acting { calls, .. } => calls,
            _ => &[],
        }
    }

    /// The outcome, once the last record is written.
    pub fn ended(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Whether the run was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// The state's name, for people.
    pub fn state(&self) -> ReactState {
        match &self.phase {
            Phase::Fresh => ReactState::Idle,
            Phase::Asking { .. } | Phase::BackingOff { .. } => ReactState::Thinking,
            Phase::Acting { .. } => ReactState::Acting,
            Phase::Ready | Phase::Noting { .. } => ReactState::Observing,
            Phase::Finishing(o) | Phase::Ended(o) if o.is_finished() => ReactState::Finished,
            Phase::Finishing(_) | Phase::Ended(_) => ReactState::Error,
        }
    }

    fn is_asking(&self, command: CommandId, attempt: u32) -> bool {
        self.open_request() == Some((command, attempt))
    }

    fn ask(&self, command: CommandId, attempt: u32) -> Command<'_> {
        Command::AskModel { command, attempt, turn: self.meter.turns }
    }

    /// Asks the next question, after what the window wants first.
    fn ask_in_window(&self) -> Command<'_> {
        let now = self.meter.now();
        if let Some(due) = self.window.summary_due(now) {
            return Command::Summarize(due);
        }
        match self.window.due(now) {
            Some(record) => Command::Append(record),
            None => self.ask(CommandId(self.next_command), 0),
        }
    }

    fn finish(&self, outcome: Outcome) -> Command<'_> {
        Command::Append(RecordBody::RunFinished(Box::new(outcome)))
    }

    fn next_of_calls<'a>(&'a self, calls: &'a [CallState]) -> Command<'a> {
        let Some(call) = calls.iter().find(|c| matches!(c.stage, CallStage::Requested { .. })) else {
            return Command::RunCalls(calls);
        };
        let result = match self.window.tool_gate(calls.len()) {
            _ if self.cancelled => ToolResult::cancelled(CANCELLED),
            ToolGate::Blocked(text) => ToolResult::failed(ToolResultStatus::Error, text.clone(), text)
                .with_metadata(metadata::ERROR_TYPE, "context_limit"),
            _ => return Command::RunCalls(calls),
        };
        Command::Append(RecordBody::ToolRefused { call: call.id, result: Box::new(result) })
    }

    fn prompted(&mut self, message: &AgentMessage) {
        let Some(message) = message.as_llm() else { return };
        let message = match self.config.tool_mode {
            ToolMode::Text if matches!(self.phase, Phase::Fresh) => {
                text_mode::first_prompt(message, &self.config)
            }
            _ => message.clone(),
        };
        match self.phase {
            Phase::Fresh | Phase::Ready => {
                self.window.push_prompt(message);
                self.phase = Phase::Ready;
            }
            _ => self.queued.push(message),
        }
    }

    fn asked(&mut self, command: CommandId, attempt: u32) {
        let expected = match self.phase {
            Phase::Ready => command.0 == self.next_command && attempt == 0,
            Phase::BackingOff { command: open, attempt: before, .. } => {
                command == open && attempt == before + 1
            }
            _ => false,
        };
        if expected {
            self.next_command = command.0 + 1;
            self.window.asked();
            self.phase = Phase::Asking { command, attempt };
        }
    }

    fn answered(&mut self, command: CommandId, answer: &AssistantMessage) {
        self.meter.turns += 1;
        self.meter.usage += answer.usage;
        self.window.answered(answer.usage);
        match answer.stop_reason {
            // What an aborted answer asked for was never agreed to: it stays out of the window.
            StopReason::Aborted => {
                self.last_answer = answer.text();
                self.cancelled = true;
                self.phase = Phase::Ready;
            }
            StopReason::Error => {
                let error = answer.error_message.clone().unwrap_or_else(|| answer.text());
                self.phase = Phase::Finishing(Box::new(self.failure(error)));
            }
            _ if self.limit.is_some() => self.summarised(answer),
            _ => match self.config.tool_mode {
                ToolMode::Text => self.answered_in_text(command, answer),
                _ => self.answered_natively(command, answer),
            },
        }
    }

    fn answered_natively(&mut self, command: CommandId, answer: &AssistantMessage) {
        let calls = unique_calls(answer, command.0);
        if calls.is_empty() {
            self.final_answer(answer.text(), answer);
        } else {
            self.act(command, calls, answer);
        }
    }

    fn answered_in_text(&mut self, command: CommandId, answer: &AssistantMessage) {
        let calls = unique_calls(answer, command.0);
        if !calls.is_empty() {
            self.meter.parse_failures = 0;
            return self.act(command, calls, answer);
        }
        match parse_action(&answer.text()) {
            Ok(Action::Final(text)) => self.final_answer(text, answer),
            // A call stands in the answer as a block; without one the text did not parse as a call.
            Ok(Action::Call { .. }) => self.misunderstood("the action has no tool name", answer),
            Err(failure) => self.misunderstood(&failure.to_string(), answer),
        }
    }

    fn misunderstood(&mut self, error: &str, answer: &AssistantMessage) {
        self.meter.parse_failures += 1;
        self.window.push_spoken(answer.clone());
        if self.meter.parse_failures >= self.config.limits.max_parse_failures {
            let error = format!(
                "the model's answer could not be understood {} times in a row: {error}",
                self.meter.parse_failures
            );
            self.phase = Phase::Finishing(Box::new(self.failure(error)));
        } else {
            self.note(text_mode::format_reminder(error));
        }
    }

    fn act(&mut self, command: CommandId, calls: Vec<archon_types::ToolCall>, answer: &AssistantMessage) {
        let calls = (0..)
            .zip(calls)
            .map(|(index, call)| CallState::requested(CallId::new(command, index), call))
            .collect();
        self.phase = Phase::Acting { answer: Box::new(answer.clone()), calls };
    }

    fn final_answer(&mut self, text: String, answer: &AssistantMessage) {
        self.window.push_spoken(answer.clone());
        self.last_answer.clone_from(&text);
        if self.flush_queue() {
            self.phase = Phase::Ready;
            return;
        }
        let mut outcome = self.outcome(OutcomeStatus::Finished);
        outcome.answer = text;
        self.phase = Phase::Finishing(Box::new(outcome));
    }

    fn summarised(&mut self, answer: &AssistantMessage) {
        self.window.push_spoken(answer.clone());
        self.last_answer = match parse_action(&answer.text()) {
            Ok(Action::Final(text)) if self.config.tool_mode == ToolMode::Text => text,
            _ => answer.text(),
        };
        self.phase = Phase::Finishing(Box::new(self.outcome_at_limit()));
    }

    fn failed(
        &mut self,
        command: CommandId,
        attempt: u32,
        failure: &archon_types::ModelFailure,
        at: Timestamp,
    ) {
        let overflow = failure.code == "context_overflow" && at < self.deadline();
        // Sending a smaller request is not trying the same one again.
        let tries = attempt.saturating_sub(self.window.overflows());
        let due = retry::next_attempt_at(&self.config.retry, failure, tries, at, self.deadline());
        self.phase = match due {
            Some(until) => Phase::BackingOff { command, attempt, until },
            None if overflow && self.window.overflowed() => Phase::BackingOff { command, attempt, until: at },
            None if overflow && self.config.context.is_some() => {
                Phase::Finishing(Box::new(self.failure(TOO_LONG.to_owned())))
            }
            None if failure.code == "cancelled" => {
                self.cancelled = true;
                Phase::Ready
            }
            None if at >= self.deadline() => match self.limit {
                Some(_) => Phase::Finishing(Box::new(self.outcome_at_limit())),
                None => Phase::Ready,
            },
            None => Phase::Finishing(Box::new(self.failure(failure.message.clone()))),
        };
    }

    fn with_call(&mut self, id: CallId, change: impl FnOnce(&mut CallState)) {
        if let Phase::Acting { calls, .. } = &mut self.phase
            && let Some(call) = calls.iter_mut().find(|c| c.id == id)
        {
            change(call);
        }
    }

    fn tool_started(&mut self, id: CallId, attempt: u32, effect: Effect) {
        self.with_call(id, |c| c.start(attempt, effect));
        if let Phase::Acting { calls, .. } = &self.phase
            && effect == Effect::SideEffect
            && let Some(call) = calls.iter().find(|c| c.id == id)
        {
            self.meter.world_changed_by(&call.call);
        }
    }

    fn tool_ended(&mut self, id: CallId, result: &ToolResult, at: Timestamp) {
        self.with_call(id, |call| call.finish(result, at));
        let Phase::Acting { calls, .. } = &self.phase else { return };
        if self.config.tool_mode == ToolMode::Native
            && let Some(call) = calls.iter().find(|call| call.id == id)
        {
            self.window.arrived(call);
        }
        if calls.iter().any(|c| c.result().is_none()) {
            return;
        }
        let Phase::Acting { answer, calls } = std::mem::replace(&mut self.phase, Phase::Ready) else {
            return;
        };
        let mut repeated = false;
        for call in &calls {
            repeated |= self.meter.count_call(&call.call);
        }
        match self.config.tool_mode {
            ToolMode::Text => {
                self.window.push_spoken(*answer);
                for call in &calls {
                    self.window.push_result(text_mode::observation(call, &self.config, at));
                }
            }
            _ => self.window.push_turn(*answer, &calls),
        }
        if repeated && !self.cancelled {
            self.note(REPEATED);
        }
        self.flush_queue();
    }

    fn note(&mut self, text: impl Into<String>) {
        self.phase = Phase::Noting { text: text.into(), then: Box::new(Phase::Ready) };
    }

    fn noted(&mut self, text: &str, at: Timestamp) {
        if let Phase::Noting { then, .. } = &mut self.phase {
            let then = std::mem::replace(&mut **then, Phase::Ready);
            self.phase = then;
            self.window.push(Message::user(text, at));
            self.flush_queue();
        }
    }

    fn limit_reached(&mut self, limit: LimitReached) {
        self.limit = Some(limit);
        let summary = self.config.limits.on_limit == OnLimit::ForceSummary
            && !matches!(limit, LimitReached::Duration { .. });
        let (text, then) = match summary {
            true => (FORCE_SUMMARY.to_owned(), Phase::Ready),
            false => {
                (format!("[Agent stopped: {limit}]"), Phase::Finishing(Box::new(self.outcome_at_limit())))
            }
        };
        self.phase = Phase::Noting { text, then: Box::new(then) };
    }

    fn resumed(&mut self, at: Timestamp) {
        self.meter.resume(at);
        self.cancelled = false;
        match &mut self.phase {
            Phase::Acting { calls, .. } => calls.iter_mut().for_each(CallState::lose),
            Phase::Ended(outcome)
                if matches!(outcome.status, OutcomeStatus::Cancelled | OutcomeStatus::Failed) =>
            {
                self.phase = Phase::Ready;
            }
            Phase::Finishing(outcome) if outcome.status == OutcomeStatus::Cancelled => {
                self.phase = Phase::Ready;
            }
            _ => {}
        }
    }

    /// Moves queued prompts into the window; true if there were any.
    fn flush_queue(&mut self) -> bool {
        let any = !self.queued.is_empty();
        for message in std::mem::take(&mut self.queued) {
            self.window.push_prompt(message);
        }
        any
    }

    fn outcome(&self, status: OutcomeStatus) -> Outcome {
        let mut outcome = Outcome::new(self.run.clone(), status);
        outcome.turns = self.meter.turns;
        outcome.usage = self.meter.usage;
        outcome.answer.clone_from(&self.last_answer);
        outcome
    }

    fn failure(&self, error: String) -> Outcome {
        let mut outcome = self.outcome(OutcomeStatus::Failed);
        outcome.error = Some(error);
        outcome
    }

    fn outcome_at_limit(&self) -> Outcome {
        let Some(limit) = self.limit else { return self.outcome(OutcomeStatus::Finished) };
        match self.config.limits.on_limit {
            OnLimit::Error => self.failure(limit.to_string()),
            _ => self.outcome(OutcomeStatus::Limit(limit)),
        }
    }
}

/// What a call reads that was not started because the run was cancelled.
const CANCELLED: &str = "Cancelled";
/// What an open call reads in a run that goes on from here.
const NOT_CARRIED_OVER: &str = "Not carried over: this call had no result when the conversation went on \
                                without it. Nothing is known of its effect.";
const TOO_LONG: &str = "Conversation too long, please start a new conversation";
const REPEATED: &str =
    "You already tried this action with the same arguments. Consider a different approach.";
const FORCE_SUMMARY: &str = "You have executed enough steps. Please provide a final answer based on the \
                             information gathered so far.";
