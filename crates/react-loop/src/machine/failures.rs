//! Handles failures of the model and of tools: retry, fallback, smaller request, or the end of the run.

use std::sync::Arc;

use archon_types::{
    CallId, CommandId, FailureKind, FallbackStep, ModelErrorCode, ModelFailure, ModelPrice, ModelTarget,
    RecordBody, RequestOptions, Timestamp, ToolMode, ToolResult,
};

use super::{Phase, ReactMachine, Step};
use crate::{
    CallStage, CallState,
    fallback::{self, Next},
};

impl ReactMachine {
    /// Returns the model, the key and the level of thinking of the open or next request.
    pub fn target(&self) -> ModelTarget {
        self.chain.target()
    }

    /// Returns the model of the [`target`](Self::target), by the provider's name for it.
    pub fn model(&self) -> &str {
        fallback::model(&self.config, self.target())
    }

    /// Returns the price of the model's tokens.
    pub(super) fn price(&self) -> Option<&ModelPrice> {
        fallback::price(&self.config, self.target())
    }

    /// Returns true if all models asked so far have a price.
    pub(super) fn is_priced(&self) -> bool {
        fallback::is_priced(&self.config, self.target())
    }

    /// Returns the options of the next request: as configured, except for a lower level of thinking after
    /// a fallback, and without the schema in text mode, where the prompt states the schema.
    pub(crate) fn request_options(&self) -> Arc<RequestOptions> {
        let thinking = self.target().thinking;
        let is_in_prompt = self.config.tool_mode == ToolMode::Text && self.output_format().is_some();
        if thinking.is_none() && !is_in_prompt {
            return self.config.options.clone();
        }
        let mut options = RequestOptions::clone(&self.config.options);
        options.thinking = thinking.unwrap_or(options.thinking);
        options.response_format = options.response_format.filter(|_| !is_in_prompt);
        Arc::new(options)
    }

    pub(super) fn failed(&mut self, command: CommandId, attempt: u32, failure: &ModelFailure, at: Timestamp) {
        self.meter.failed(failure);
        let overflow = failure.code == ModelErrorCode::ContextOverflow && at < self.deadline();
        let next = self.chain.failed(failure, &self.config, at, self.deadline());
        self.phase = match next {
            Next::Retry(until) => Phase::BackingOff { command, attempt, until },
            Next::Step => Phase::BackingOff { command, attempt, until: at },
            Next::Fail if overflow && self.window.overflowed() => {
                Phase::BackingOff { command, attempt, until: at }
            }
            Next::Fail if overflow && self.config.context.is_some() => {
                Phase::Finishing(Box::new(self.failure(FailureKind::ContextOverflow, TOO_LONG.to_owned())))
            }
            Next::Fail if failure.code == ModelErrorCode::Cancelled => {
                self.cancelled = true;
                Phase::Ready
            }
            Next::Fail if at >= self.deadline() => match self.limit {
                Some(_) => Phase::Finishing(Box::new(self.outcome_at_limit())),
                None => Phase::Ready,
            },
            Next::Fail => {
                Phase::Finishing(Box::new(self.failure(failure.code.into(), failure.message.clone())))
            }
        };
    }

    /// Handles a request whose answer was lost because the process died.
    pub(super) fn model_call_lost(&mut self, command: CommandId, attempt: u32, at: Timestamp) {
        self.meter.count_lost_call();
        self.phase = Phase::BackingOff { command, attempt, until: at };
    }

    /// Returns the record of the fallback step that follows from the latest failure, if a step is due.
    pub(super) fn step_due(&self, command: CommandId, attempt: u32) -> Option<RecordBody> {
        let due = self.chain.due()?.clone();
        Some(RecordBody::FallbackSelected {
            command,
            attempt,
            fallback: due.step,
            code: due.code,
            reason: due.reason,
        })
    }

    pub(super) fn fallback_selected(&mut self, step: &FallbackStep) {
        if matches!(self.phase, Phase::BackingOff { .. }) {
            self.chain.stepped(step);
            self.fit_window();
        }
    }

    /// Resets the failures when a failed run is resumed, because their causes may have passed.
    pub(super) fn forget_failures(&mut self) {
        self.chain = self.chain.at_start();
        self.fit_window();
    }

    /// Sets the window size to that of the current model.
    fn fit_window(&mut self) {
        let fallback = fallback::fallback(&self.config, self.target());
        self.window.resized(&self.config, fallback.and_then(|model| model.context_window));
    }

    pub(super) fn tool_call_finished(&mut self, id: CallId, result: &Arc<ToolResult>, at: Timestamp) {
        self.count_failure(id, result, at);
        self.note_agreed_plan(id, result);
        self.tool_ended(id, result, at);
    }

    /// Counts a tool's result for its circuit breaker.
    pub(super) fn count_failure(&mut self, id: CallId, result: &ToolResult, at: Timestamp) {
        let open = self.calls().iter().find(|call| call.id == id && call.result().is_none());
        let breaker = self.config.failure_policy.as_ref().and_then(|policy| policy.circuit_breaker);
        if let (Some(name), Some(breaker)) = (open.map(|call| call.call.name.clone()), breaker) {
            self.circuits.ended(&name, result, at, &breaker);
        }
    }

    /// Returns true if the call will not run because the circuit breaker of its tool is open. A call that
    /// a crash cut off runs again.
    pub(crate) fn is_breaker_open(&self, call: &CallState) -> bool {
        matches!(call.stage, CallStage::Requested { attempts: 0 })
            && self.circuits.is_open(&call.call.name, self.meter.now())
    }

    /// Returns true if the call tests whether its tool works again, so that other calls of the tool wait.
    pub(crate) fn is_on_trial(&self, call: &CallState) -> bool {
        self.circuits.is_half_open(&call.call.name, self.meter.now())
    }

    /// Returns the refusal of the first call whose tool is blocked.
    pub(super) fn refusal_due(&self, calls: &[CallState]) -> Option<Step> {
        let call = calls.iter().find(|call| self.is_breaker_open(call))?;
        let result = self.circuits.answer(&call.call.name, &self.config, self.meter.now());
        Some(Step::Append(RecordBody::ToolCallRefused { call: call.id, result: Arc::new(result) }))
    }
}

const TOO_LONG: &str = "Conversation too long, please start a new conversation";
